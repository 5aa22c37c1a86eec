/*
 * delta.c: differences of neighbours, as numcodecs has them (docs/format/filters.md, section 3).
 *
 * Integers wrap in the decoded type, so that decoding sums modulo a power of two, in vectors.  As
 * soon as a real is involved, sums run in the type that NumPy promotes the two to, one after the
 * other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter/reals.h"
#include "filter/stream.h"

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

/* Sums of reals are rounded; differences that wrap come back only if all their bits are kept. */
static bool is_lossy(const lade_stage *stage)
{
	lade_dtype dtype = lade__filter_dtype(stage, 0), astype = lade__filter_dtype(stage, 1);
	return lade_dtype_class(dtype) == 'f' || lade_dtype_class(astype) == 'f' ||
	       lade_dtype_size(astype) < lade_dtype_size(dtype);
}

/* ---- integers ------------------------------------------------------------------------------- */

/* Elements of a block of 4 KiB at most. */
#define BLOCK_COUNT 512

static lade_status diff_integers(const lade_run *run, const void *src, void *dst, size_t off,
                                 size_t count, lade_carry *carry, lade_error *err)
{
	lade_dtype dtype = lade__filter_dtype(run->stage, 0),
		   astype = lade__filter_dtype(run->stage, 1);
	size_t size = lade_dtype_size(dtype), to_size = lade_dtype_size(astype);
	unsigned log2 = lade__log2(size);
	const lade__stream_kernels *kernels = lade__stream_kernels_of(run->cpu);
	uint64_t before = carry->word[0], block[BLOCK_COUNT];
	if (count)
		carry->word[0] = lade__stream_at(src, log2, count - 1);
	if (dtype == astype) {
		kernels->diff[log2](src, dst, count, before);
		return LADE_OK;
	}
	lade__convert_fn *convert = lade__convert(dtype, astype);
	const uint8_t *in = src;
	for (size_t i = 0, n; i < count; i += n) {
		n = count - i < BLOCK_COUNT ? count - i : BLOCK_COUNT;
		uint64_t last = lade__stream_at(in + i * size, log2, n - 1);
		kernels->diff[log2](in + i * size, block, n, before);
		size_t good = convert(block, (uint8_t *)dst + i * to_size, n);
		if (good < n)
			return lade__value_error(run->stage, off + i + good, dtype, astype, err);
		before = last;
	}
	return LADE_OK;
}

static void sum_integers(const lade_run *run, const void *src, void *dst, size_t count,
                         lade_carry *carry)
{
	lade_dtype dtype = lade__filter_dtype(run->stage, 0),
		   astype = lade__filter_dtype(run->stage, 1);
	size_t size = lade_dtype_size(dtype), from_size = lade_dtype_size(astype);
	unsigned log2 = lade__log2(size);
	const lade__stream_kernels *kernels = lade__stream_kernels_of(run->cpu);
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
static lade_status sum_to_integers(const lade_run *run, const void *src, void *dst, size_t off,
                                   size_t count, lade_carry *carry, lade_error *err)
{
	const lade_stage *stage = run->stage;
	lade_dtype dtype = lade__filter_dtype(stage, 0), astype = lade__filter_dtype(stage, 1);
	lade_dtype wide = dtype == LADE_U8 ? LADE_U8 : LADE_I8;
	const lade__reals *reals = promoted(dtype, astype);
	lade__convert_fn *convert = lade__convert(wide, dtype);
	size_t from_size = lade_dtype_size(astype), size = lade_dtype_size(dtype);
	lade__real_args args = {.word = carry->word, .first = off == 0};
	uint64_t block[BLOCK_COUNT];
	for (size_t i = 0, n; i < count; i += n) {
		n = count - i < BLOCK_COUNT ? count - i : BLOCK_COUNT;
		lade_status status = lade__real_map(stage, reals, reals->sum, &args,
		                                    (const uint8_t *)src + i * from_size, astype,
		                                    block, wide, off + i, n, err);
		if (status != LADE_OK)
			return status;
		convert(block, (uint8_t *)dst + i * size, n);
	}
	return LADE_OK;
}

static lade_status encode(const lade_run *run, const void *src, void *dst, size_t off, size_t count,
                          size_t total, lade_carry *carry, lade_error *err)
{
	const lade_stage *stage = run->stage;
	lade_dtype dtype = lade__filter_dtype(stage, 0), astype = lade__filter_dtype(stage, 1);
	lade_status status = lade__filter_whole(stage, total, err);
	if (status != LADE_OK)
		return status;
	if (!is_real(dtype))
		return diff_integers(run, src, dst, off, count, carry, err);
	const lade__reals *reals = lade__reals_of(dtype);
	lade__real_args args = {.word = carry->word, .first = off == 0};
	return lade__real_map(stage, reals, reals->diff, &args, src, dtype, dst, astype, off, count,
	                      err);
}

static lade_status decode(const lade_run *run, const void *src, void *dst, size_t off, size_t count,
                          size_t total, lade_carry *carry, lade_error *err)
{
	const lade_stage *stage = run->stage;
	lade_dtype dtype = lade__filter_dtype(stage, 0), astype = lade__filter_dtype(stage, 1);
	(void)total;
	if (!is_real(dtype) && !is_real(astype)) {
		sum_integers(run, src, dst, count, carry);
		return LADE_OK;
	}
	if (!is_real(dtype))
		return sum_to_integers(run, src, dst, off, count, carry, err);
	const lade__reals *reals = promoted(dtype, astype);
	lade__real_args args = {.word = carry->word, .first = off == 0};
	return lade__real_map(stage, reals, reals->sum, &args, src, astype, dst, dtype, off, count,
	                      err);
}

LADE__TILE_FILTER_MAYBE_LOSSY(delta, 34, 0, is_lossy,
                              "differences of neighbours (docs/format/filters.md, 3)", options,
                              check, sizes, false, LADE_TILE_STREAM, encode, LADE_TILE_STREAM,
                              decode)
