/*
 * bytes.c: the filters that know only the size of elements: shuffle, bitshuffle, split, byteswap.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter/filters.h"
#include "filter/shuffle.h"
#include "filter/ints.h"

static void sizes(const lade_stage *stage, size_t *decoded, size_t *encoded)
{
	*decoded = *encoded = (size_t)stage->option[0].i;
}

#define TILE(way, call)                                                                        \
	static lade_status way(const lade_run *run, const lade_elements *tile, lade_error *err) \
	{                                                                                      \
		(void)err;                                                                     \
		size_t elem = (size_t)run->stage->option[0].i;                                 \
		call(elem, tile, run->cpu);                                                    \
		return LADE_OK;                                                                \
	}

static const lade_option shuffle_options[] = {
	{.name = "size", .type = LADE_OPTION_INT, .required = true, .min = 1, .max = 255,
	 .doc = "bytes an element"},
};

/* ---- shuffle and bitshuffle --------------------------------------------------------- */

TILE(shuffle, lade__shuffle_tile)
TILE(unshuffle, lade__unshuffle_tile)
LADE__TILE_FILTER(shuffle, 32, 0, "bytes of equal weight together (docs/format/filters.md, 1)",
                  shuffle_options, NULL, sizes, true, LADE_TILE_SCATTER, shuffle, LADE_TILE_GATHER,
                  unshuffle)

static const char *const orders[] = {"lsb", "msb", NULL};

static const lade_option bit_options[] = {
	{.name = "size", .type = LADE_OPTION_INT, .required = true, .min = 1, .max = 255,
	 .doc = "bytes an element"},
	{.name = "order", .type = LADE_OPTION_ENUM, .names = orders,
	 .doc = "which bit's row comes first, the lowest or the highest"},
	{.name = "block", .type = LADE_OPTION_INT, .min = 0, .max = INT32_MAX,
	 .doc = "bytes that are shuffled on their own, a multiple of 8 * size; 0: all"},
};

static lade_status bit_check(const lade_stage *stage, lade_error *err)
{
	long long size = stage->option[0].i, block = stage->option[2].i;
	if (block % (8 * size))
		return lade_fail(err, LADE_E_SPEC, LADE_NO_OFFSET,
		                 "bitshuffle: a block of %lld bytes is not whole groups of 8 "
		                 "elements of %lld", block, size);
	return LADE_OK;
}

#define BIT_TILE(way, call)                                                                    \
	static lade_status way(const lade_run *run, const lade_elements *tile, lade_error *err) \
	{                                                                                      \
		(void)err;                                                                     \
		const lade_value *option = run->stage->option;                                 \
		lade__bit_form form = {(size_t)option[0].i, option[1].i != 0,                  \
		                       (size_t)option[2].i};                                   \
		call(&form, tile, run->cpu);                                                   \
		return LADE_OK;                                                                \
	}

BIT_TILE(bitshuffle, lade__bitshuffle_tile)
BIT_TILE(bitunshuffle, lade__bitunshuffle_tile)
LADE__TILE_FILTER(bitshuffle, 33, 0, "bits of equal weight together (docs/format/filters.md, 2)",
                  bit_options, bit_check, sizes, true, LADE_TILE_SCATTER, bitshuffle,
                  LADE_TILE_GATHER, bitunshuffle)

/* ---- split -------------------------------------------------------------------------- */

/* The same bytes as a shuffle's, for whole elements only. */
static lade_status split(const lade_run *run, const lade_elements *tile, lade_error *err)
{
	lade_status status = lade__filter_whole(run->stage, tile->total, err);
	return status == LADE_OK ? shuffle(run, tile, err) : status;
}

LADE__TILE_FILTER(split, 36, 0, "a stream for each byte of an element (docs/format/filters.md, 5)",
                  shuffle_options, NULL, sizes, false, LADE_TILE_SCATTER, split,
                  LADE_TILE_GATHER, unshuffle)

/* ---- byteswap ----------------------------------------------------------------------- */

static const lade_option swap_options[] = {
	{.name = "size", .type = LADE_OPTION_INT, .required = true, .min = 1, .max = 8,
	 .doc = "bytes an element: 1, 2, 4 or 8"},
};

static lade_status swap_check(const lade_stage *stage, lade_error *err)
{
	int64_t size = stage->option[0].i;
	if (size & (size - 1))
		return lade_fail(err, LADE_E_SPEC, LADE_NO_OFFSET,
		                 "byteswap: size is %lld, want 1, 2, 4 or 8", (long long)size);
	return LADE_OK;
}

static lade_status swap(const lade_run *run, const lade_elements *tile, lade_error *err)
{
	lade_status status = lade__filter_whole(run->stage, tile->total, err);
	if (status == LADE_OK)
		lade__int_kernels_of(run->cpu)
			->swap[lade__log2((size_t)run->stage->option[0].i)](tile->src, tile->dst,
		                                                            tile->elem_count);
	return status;
}

LADE__TILE_FILTER(byteswap, 43, 0, "each element's bytes in reverse (docs/format/filters.md, 12)",
                  swap_options, swap_check, sizes, false, LADE_TILE_IN_ORDER, swap,
                  LADE_TILE_IN_ORDER, swap)
