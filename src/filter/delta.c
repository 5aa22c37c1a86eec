/*
 * delta.c: differences of neighbours, as numcodecs has them (docs/format/filters.md, section 3).
 *
 * Integers wrap in the decoded type, so that decoding sums modulo a power of two, in vectors.  As
 * soon as a real is involved, sums run in the type that NumPy promotes the two to, one after the
 * other.  A difference that the encoded type cannot hold is refused: it would spoil every element
 * behind it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter/reals.h"
#include "filter/ints.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const lade_option options[] = {
	{.name = "dtype", .type = LADE_OPTION_DTYPE, .required = true, .doc = "the elements' type"},
	{.name = "astype", .type = LADE_OPTION_DTYPE, .doc = "the differences' type, if another"},
};

static void sizes(const lade_stage *stage, size_t *decoded, size_t *encoded)
{
	*decoded = lade_dtype_size(lade__filter_dtype(stage, 0));
	*encoded = lade_dtype_size(lade__filter_dtype(stage, 1));
}

static lade_status check(const lade_stage *stage, lade_error *err)
{
	lade_status status = lade__filter_check_dtype(stage, 0, "iuf", err);
	return status == LADE_OK ? lade__filter_check_dtype(stage, 1, "iuf", err) : status;
}

/* Sums of reals are rounded. */
static bool is_lossy(const lade_stage *stage)
{
	return lade_dtype_class(lade__filter_dtype(stage, 0)) == 'f' ||
	       lade_dtype_class(lade__filter_dtype(stage, 1)) == 'f';
}

/* ---- integers ------------------------------------------------------------------------------- */

/* Elements of a block of 4 KiB at most. */
#define BLOCK_COUNT 512

/*
 * Compares the differences in 'block' with what decoding will read from 'stored'.  Returns 'count',
 * or the index of the first one that is not kept.  A type as wide as the elements' keeps all bits,
 * whatever their signs.
 */
static size_t count_kept(const uint64_t *block, lade_dtype dtype, const void *stored,
                         lade_dtype astype, size_t count)
{
	size_t size = lade_dtype_size(dtype), i = 0;
	uint64_t back[BLOCK_COUNT];
	if (astype == LADE_F2) {
		/* Rounding is allowed, infinity is not. */
		const uint8_t *at = stored;
		while (i < count && (lade__le16(at + 2 * i) & 0x7FFF) != 0x7C00)
			i++;
		return i;
	}
	if (lade_dtype_class(astype) == 'f' || lade_dtype_size(astype) >= size)
		return count;
	lade__convert(astype, dtype)(stored, back, count);
	if (memcmp(block, back, count * size) == 0)
		return count;
	while (memcmp((uint8_t *)block + i * size, (uint8_t *)back + i * size, size) == 0)
		i++;
	return i;
}

/* LADE_E_VALUE for element 'index', whose difference, or the element itself if it is the first, is
 * 'word' in type 'dtype'. */
static lade_status no_fit(size_t index, lade_dtype dtype, lade_dtype astype, uint64_t word,
                          lade_error *err)
{
	size_t size = lade_dtype_size(dtype);
	unsigned above = 64 - 8 * (unsigned)size;
	bool wide = index == 0 && lade_dtype_class(dtype) == 'u';
	uint64_t value = word << above >> above;

	/* A difference is a signed number, whatever the elements are. */
	if (!wide && above && value >> (63 - above))
		value |= ~(uint64_t)0 << (64 - above);
	char text[24];
	if (wide)
		snprintf(text, sizeof text, "%llu", (unsigned long long)value);
	else
		snprintf(text, sizeof text, "%lld", (long long)value);
	return lade_fail(err, LADE_E_VALUE, (uint64_t)index * size,
	                 "delta: element %zu: %s %s does not fit in type %s", index,
	                 index ? "the difference" : "the value", text, lade_dtype_text(astype));
}

static lade_status diff_integers(const lade_run *run, const lade_elements *tile, lade_error *err)
{
	const void *src = tile->src;
	void *dst = tile->dst;
	const size_t count = tile->elem_count;
	lade_carry *carry = tile->carry;
	lade_dtype dtype = lade__filter_dtype(run->stage, 0),
		   astype = lade__filter_dtype(run->stage, 1);
	size_t size = lade_dtype_size(dtype), to_size = lade_dtype_size(astype);
	unsigned log2 = lade__log2(size);
	const lade__int_kernels *kernels = lade__int_kernels_of(run->cpu);
	uint64_t before = carry->word[0], block[BLOCK_COUNT];
	if (count)
		carry->word[0] = lade__int_at(src, log2, count - 1);
	if (dtype == astype) {
		kernels->diff[log2](src, dst, count, before);
		return LADE_OK;
	}
	lade__convert_fn *convert = lade__convert(dtype, astype);
	const uint8_t *in = src;
	for (size_t i = 0, n; i < count; i += n) {
		n = count - i < BLOCK_COUNT ? count - i : BLOCK_COUNT;
		uint64_t last = lade__int_at(in + i * size, log2, n - 1);
		kernels->diff[log2](in + i * size, block, n, before);
		uint8_t *to = (uint8_t *)dst + i * to_size;
		convert(block, to, n); /* any integer: it wraps, or is rounded */
		size_t good = count_kept(block, dtype, to, astype, n);
		if (good < n)
			return no_fit(tile->elem_off + i + good, dtype, astype,
			              lade__int_at(block, log2, good), err);
		before = last;
	}
	return LADE_OK;
}

static void sum_integers(const lade_run *run, const lade_elements *tile)
{
	const void *src = tile->src;
	void *dst = tile->dst;
	const size_t count = tile->elem_count;
	lade_carry *carry = tile->carry;
	lade_dtype dtype = lade__filter_dtype(run->stage, 0),
		   astype = lade__filter_dtype(run->stage, 1);
	size_t size = lade_dtype_size(dtype), from_size = lade_dtype_size(astype);
	unsigned log2 = lade__log2(size);
	const lade__int_kernels *kernels = lade__int_kernels_of(run->cpu);
	uint64_t block[BLOCK_COUNT];
	if (dtype == astype) {
		carry->word[0] = kernels->sum[log2](src, dst, count, carry->word[0]);
		return;
	}
	lade__convert_fn *convert = lade__convert(astype, dtype);
	for (size_t i = 0, n; i < count; i += n) {
		n = count - i < BLOCK_COUNT ? count - i : BLOCK_COUNT;
		convert((const uint8_t *)src + i * from_size, block, n);
		carry->word[0] =
			kernels->sum[log2](block, (uint8_t *)dst + i * size, n, carry->word[0]);
	}
}

/* ---- reals -------------------------------------------------------------------------- */

static bool is_real(lade_dtype dtype)
{
	return lade_dtype_class(dtype) == 'f';
}

/* The least value above 0 that is no finite real of the type, after rounding. */
static double limit_of(lade_dtype dtype)
{
	return dtype == LADE_F2 ? 65520 : dtype == LADE_F4 ? 0x1.ffffffp127 : (double)INFINITY;
}

/* The type that NumPy's sum of the two would have: the wider of two reals; of an integer and a
 * real, the real if it holds all integers of the type, or else a wider one. */
static const lade__reals *promoted(lade_dtype a, lade_dtype b)
{
	size_t wide = 0;
	for (unsigned k = 0; k < 2; k++) {
		lade_dtype dtype = k ? b : a;
		size_t size = lade_dtype_size(dtype);
		size_t want = is_real(dtype) ? size : size == 1 ? 2 : size == 2 ? 4 : 8;
		if (want > wide)
			wide = want;
	}
	return wide == 2 ? &lade__reals_f2 : wide == 4 ? &lade__reals_f4 : &lade__reals_f8;
}

/* Sums of reals that are integers' differences: each sum loses its fraction and wraps, as the
 * integers did when they were encoded. */
static lade_status sum_to_integers(const lade_run *run, const lade_elements *tile, lade_error *err)
{
	const lade_stage *stage = run->stage;
	lade_dtype dtype = lade__filter_dtype(stage, 0), astype = lade__filter_dtype(stage, 1);
	lade_dtype wide = dtype == LADE_U8 ? LADE_U8 : LADE_I8;
	const lade__reals *reals = promoted(dtype, astype);
	lade__convert_fn *convert = lade__convert(wide, dtype);
	size_t from_size = lade_dtype_size(astype), size = lade_dtype_size(dtype);
	lade__real_args args = {.word = tile->carry->word, .first = tile->elem_off == 0};
	lade__real_step step = {reals, reals->sum, astype, wide};
	uint64_t block[BLOCK_COUNT];
	lade_elements part = *tile;
	part.dst = block;
	for (size_t i = 0, n; i < tile->elem_count; i += n) {
		n = tile->elem_count - i < BLOCK_COUNT ? tile->elem_count - i : BLOCK_COUNT;
		part.src = (const uint8_t *)tile->src + i * from_size;
		part.elem_off = tile->elem_off + i;
		part.elem_count = n;
		lade_status status = lade__real_map(stage, &step, &args, &part, err);
		if (status != LADE_OK)
			return status;
		convert(block, (uint8_t *)tile->dst + i * size, n);
	}
	return LADE_OK;
}

static lade_status encode(const lade_run *run, const lade_elements *tile, lade_error *err)
{
	const lade_stage *stage = run->stage;
	lade_dtype dtype = lade__filter_dtype(stage, 0), astype = lade__filter_dtype(stage, 1);
	lade_status status = lade__filter_whole(stage, tile->total, err);
	if (status != LADE_OK)
		return status;
	if (!is_real(dtype))
		return diff_integers(run, tile, err);
	const lade__reals *reals = lade__reals_of(dtype);
	/* In the elements' type first. */
	double limit = fmin(limit_of(dtype), is_real(astype) ? limit_of(astype) : INFINITY);
	lade__real_args args = {
		.limit = limit, .word = tile->carry->word, .first = tile->elem_off == 0};
	lade__real_step step = {reals, reals->diff, dtype, astype};
	return lade__real_map(stage, &step, &args, tile, err);
}

static lade_status decode(const lade_run *run, const lade_elements *tile, lade_error *err)
{
	const lade_stage *stage = run->stage;
	lade_dtype dtype = lade__filter_dtype(stage, 0), astype = lade__filter_dtype(stage, 1);
	if (!is_real(dtype) && !is_real(astype)) {
		sum_integers(run, tile);
		return LADE_OK;
	}
	if (!is_real(dtype))
		return sum_to_integers(run, tile, err);
	const lade__reals *reals = promoted(dtype, astype);
	lade__real_args args = {.word = tile->carry->word, .first = tile->elem_off == 0};
	lade__real_step step = {reals, reals->sum, astype, dtype};
	return lade__real_map(stage, &step, &args, tile, err);
}

LADE__TILE_FILTER_MAYBE_LOSSY(delta, 34, 0, is_lossy,
                              "differences of neighbours (docs/format/filters.md, 3)", options,
                              check, sizes, false, LADE_TILE_IN_ORDER, encode, LADE_TILE_IN_ORDER,
                              decode)
