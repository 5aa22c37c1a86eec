/*
 * copy_plain.c: the copies of plans for any machine.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define TARGET
#define LANES 0
#include "array/copy_rows.h"

/* Squares of a cache line's units or less. */
static void turn(const uint8_t *src, uint8_t *dst, const lade__plan_unit *u,
                 const lade__plan_turn *t)
{
	size_t unit = u->size, band = 64 / unit;
	for (size_t a = 0; a < t->a; a += band) {
		lade__plan_loop across = {t->a - a < band ? t->a - a : band, (ptrdiff_t)unit,
		                          t->dst};
		lade__plan_loop along = {t->b, t->src, (ptrdiff_t)unit};
		rows(src + a * unit, dst + (ptrdiff_t)a * t->dst, u, &along, &across);
	}
}

const lade__plan_kernels lade__plan_plain = {rows, turn, 16};
