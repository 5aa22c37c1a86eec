/*
 * place.h: buffers of tests of kernels, at any alignment, between a guard page and a guard zone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_PLACE_H
#define LADE_TESTS_PLACE_H

#include "guard.h"
#include "kernel_test.h"

/* A buffer of 'size' bytes, 'skew' bytes behind a guard page (with a zone between) or before one.
 */
struct place {
	guard g;
	size_t skew, size;
	uint8_t *data;
};

static place place_new(size_t size, size_t skew, int at_end)
{
	place p = {guard_new(size + skew, at_end), skew, size, nullptr};
	if (size + skew)
		memset(p.g.data, 0xC3, size + skew);
	p.data = p.g.data + (at_end ? 0 : skew);
	return p;
}

/* Also wants the zone as it was. */
static void place_free(place *p)
{
	const uint8_t *zone = p->data == p->g.data ? p->g.data + p->size : p->g.data;
	for (size_t i = 0; i < p->skew; i++)
		assert_int_equal(zone[i], 0xC3);
	guard_free(&p->g);
}

#endif
