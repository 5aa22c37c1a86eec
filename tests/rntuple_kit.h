/*
 * rntuple_kit.h: reads all of an RNTuple; makes the checksums of a damaged one right again, so that
 * tests and fuzzers get behind them.  Envelopes must be stored, not compressed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_RNTUPLE_KIT_H
#define LADE_TESTS_RNTUPLE_KIT_H

#include "base/support.h"

#include <lade/checksum.h>
#include <lade/rntuple.h>

#include <stdlib.h>

/* Reads all columns in one batch; '*sum' is the checksum of their bytes, 0 after a failure.
 * LADE_E_LIMIT: a column has more than 'most' bytes. */
static inline lade_status kit_read_all(lade_rntuple *tuple, uint64_t most, uint64_t *sum,
                                       lade_error *err)
{
	size_t n = (size_t)lade_rntuple_about(tuple)->column_count, total = 0;
	lade_rntuple_target *targets = calloc(n + 1, sizeof *targets);
	*sum = 0;
	for (size_t i = 0; targets && i < n; i++) {
		const lade_rntuple_column *c = lade_rntuple_column_at(tuple, i);
		if (c->element_count > most / c->elem_size) {
			free(targets);
			return LADE_E_LIMIT;
		}
		/* One more for columns of offsets. */
		size_t size = (size_t)(c->element_count + 1) * c->elem_size;
		targets[i] = (lade_rntuple_target){.column = i,
		                                   .count = c->element_count,
		                                   .span = lade_host_span(NULL, size)};
		total += size;
	}
	uint8_t *data = calloc(1, total + 1);
	if (!targets || !data)
		abort();
	for (size_t i = 0, at = 0; i < n; at += targets[i++].span.size)
		targets[i].span.data = data + at;
	lade_rntuple_read_options options = {
		.struct_size = sizeof options, .target_size = sizeof *targets, .threads = 1};
	lade_status status = lade_rntuple_read(tuple, targets, n, &options, NULL, err);
	*sum = status == LADE_OK ? lade_checksum_of(LADE_XXH3, data, total) : 0;
	free(targets);
	free(data);
	return status;
}

static inline uint64_t kit_be(const uint8_t *p, size_t size)
{
	uint64_t value = 0;
	for (size_t i = 0; i < size; i++)
		value = value << 8 | p[i];
	return value;
}

/* Seals the envelope of a type at 'at'; 'header': the header's checksum, at byte 'where' of it, or
 * where 0.  Returns its own checksum; 0: there is none. */
static inline uint64_t kit_seal(uint8_t *data, size_t size, uint64_t at, unsigned type,
                                uint64_t header, size_t where)
{
	if (at > size || size - at < 32)
		return 0;
	uint64_t head = lade__le64(data + at), own = head >> 16;
	if ((head & 0xFFFF) != type || own < 32 || own > size - at)
		return 0;
	if (where)
		lade__le_put(data + at + where, header, 8);
	uint64_t sum = lade_checksum_of(LADE_XXH3, data + at, (size_t)own - 8);
	lade__le_put(data + at + own - 8, sum, 8);
	return sum;
}

/* The anchor's payload begins at 'anchor'; page lists are looked for everywhere. */
static inline void kit_reseal(uint8_t *data, size_t size, size_t anchor)
{
	if (anchor > size || size - anchor < 78)
		return;
	uint8_t *a = data + anchor, sum[8];
	lade__le_put(sum, lade_checksum_of(LADE_XXH3, a + 6, 64), 8);
	for (size_t i = 0; i < 8; i++)
		a[70 + i] = sum[7 - i];
	uint64_t header = kit_seal(data, size, kit_be(a + 14, 8), 1, 0, 0);
	if (header == 0)
		return;
	for (size_t at = 0; at + 32 < size; at++)
		kit_seal(data, size, at, 3, header, 8);
	kit_seal(data, size, kit_be(a + 38, 8), 2, header, 16);
}

/* Where the first anchor's payload begins; 'size' if there is none. */
static inline size_t kit_anchor(const uint8_t *data, size_t size)
{
	static const uint8_t begin[] = {0x40, 0, 0, 0x42, 0, 2, 0, 1};
	for (size_t at = 0; at + 78 <= size; at++)
		if (memcmp(data + at, begin, sizeof begin) == 0)
			return at;
	return size;
}

#endif
