/*
 * shuffle_simd.h: the byte shuffle kernels, written once for vectors of 1, 2 or 4 lanes of 16
 * bytes.  Included by the file of each instruction set, which defines:
 *
 * TARGET        the function attribute that selects the instruction set
 * LANES         lanes of a vector
 * vec           the vector type
 * LOAD(p)       LANES * 16 bytes from p
 * STORE(p, v)   and back
 * LOAD_LANES(p, step)      lane l from p + l * step
 * STORE_LANE(p, v, lane)   the 16 bytes of one lane; 'lane' is a constant
 * STREAM_LANE(p, v, lane)  likewise, past the caches; p is aligned to 16 bytes
 * LOW(a, b), HIGH(a, b)    in each lane, the bytes of the lower (upper) halves of a and b in turn
 * transpose_bits(v)        in each 8 bytes, bit 8r + c goes to bit 8c + r; defined later
 *
 * All of it rests on one step.  Take n vectors as one sequence of 16n bytes for each lane; a
 * riffle takes bytes from its first and its second half in turn, so that the byte at index x
 * goes to x with its bits rotated left by one.  16 elements of n = 2^e bytes have the index
 * (i: 4 bits, j: e bits); 4 riffles make it (j, i), which are planes; e more make it (i, j) again.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter/shuffle.h"

#define INLINE static inline __attribute__((always_inline)) TARGET
#define WIDTH (16 * (size_t)LANES)

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

INLINE vec transpose_bits(vec x);

INLINE void riffle(vec *v, size_t n, unsigned times)
{
	vec t[16];
	UNROLL
	for (unsigned r = 0; r < times; r++) {
		UNROLL
		for (size_t k = 0; k < n / 2; k++) {
			t[2 * k] = LOW(v[k], v[k + n / 2]);
			t[2 * k + 1] = HIGH(v[k], v[k + n / 2]);
		}
		UNROLL
		for (size_t k = 0; k < n; k++)
			v[k] = t[k];
	}
}

/* Stores the lanes of v[0..n), lane l of v[k] at p + l * lane_step + k * step; lane 0 of all of
 * them first. */
INLINE void store_lanes(uint8_t *p, const vec *v, size_t n, size_t step, size_t lane_step)
{
	(void)lane_step;
	UNROLL
	for (size_t k = 0; k < n; k++)
		STORE_LANE(p + k * step, v[k], 0);
#if LANES > 1
	UNROLL
	for (size_t k = 0; k < n; k++)
		STORE_LANE(p + lane_step + k * step, v[k], 1);
#endif
#if LANES > 2
	UNROLL
	for (size_t k = 0; k < n; k++)
		STORE_LANE(p + 2 * lane_step + k * step, v[k], 2);
	UNROLL
	for (size_t k = 0; k < n; k++)
		STORE_LANE(p + 3 * lane_step + k * step, v[k], 3);
#endif
}

/* As store_lanes() with contiguous lanes, past the caches. */
INLINE void stream_lanes(uint8_t *p, const vec *v, size_t n)
{
	UNROLL
	for (size_t k = 0; k < n; k++)
		STREAM_LANE(p + 16 * k, v[k], 0);
#if LANES > 1
	UNROLL
	for (size_t k = 0; k < n; k++)
		STREAM_LANE(p + 16 * (n + k), v[k], 1);
#endif
#if LANES > 2
	UNROLL
	for (size_t k = 0; k < n; k++)
		STREAM_LANE(p + 16 * (2 * n + k), v[k], 2);
	UNROLL
	for (size_t k = 0; k < n; k++)
		STREAM_LANE(p + 16 * (3 * n + k), v[k], 3);
#endif
}

/* ---- elements of 2, 4, 8 and 16 bytes -------------------------------------------------------- */

/* Each returns how many elements it did: all, or none where there are fewer than WIDTH.  The last
 * step reaches back over elements that are done already rather than leave some undone. */

INLINE size_t planes_pow2(const uint8_t *src, uint8_t *dst, size_t count, size_t elem,
                          size_t pitch)
{
	size_t i = 0;
	for (; count >= WIDTH && i < count; i += WIDTH) {
		vec v[16];
		i = i < count - WIDTH ? i : count - WIDTH;
		UNROLL
		for (size_t k = 0; k < elem; k++)
			v[k] = LOAD_LANES(src + i * elem + 16 * k, 16 * elem);
		riffle(v, elem, 4);
		UNROLL
		for (size_t j = 0; j < elem; j++)
			STORE(dst + j * pitch + i, v[j]);
	}
	return i;
}

INLINE size_t elements_pow2(const uint8_t *src, uint8_t *dst, size_t count, size_t elem,
                            size_t pitch)
{
	size_t i = 0;
	for (; count >= WIDTH && i < count; i += WIDTH) {
		vec v[16];
		i = i < count - WIDTH ? i : count - WIDTH;
		UNROLL
		for (size_t j = 0; j < elem; j++)
			v[j] = LOAD(src + j * pitch + i);
		riffle(v, elem, elem == 2 ? 1 : elem == 4 ? 2 : elem == 8 ? 3 : 4);
		store_lanes(dst + i * elem, v, elem, 16, 16 * elem);
	}
	return i;
}

/* Each plane by itself; 'past' is a constant.  What the last step reaches back to may have any
 * alignment, so it is stored as usual. */
INLINE size_t join_pow2(const uint8_t *const *planes, uint8_t *dst, size_t count, size_t elem,
                        bool past)
{
	size_t i = 0;
	for (; count >= WIDTH && i < count; i += WIDTH) {
		vec v[16];
		const bool back = i > count - WIDTH;
		i = back ? count - WIDTH : i;
		UNROLL
		for (size_t j = 0; j < elem; j++)
			v[j] = LOAD(planes[j] + i);
		riffle(v, elem, elem == 2 ? 1 : elem == 4 ? 2 : elem == 8 ? 3 : 4);
		if (past && !back)
			stream_lanes(dst + i * elem, v, elem);
		else
			store_lanes(dst + i * elem, v, elem, 16, 16 * elem);
	}
	return i;
}

/* ---- elements of any other size ------------------------------------------------------------- */

/* Squares of 16 elements by 16 of their bytes.  The columns of a square begin at each multiple of
 * 16 and at elem - 16, so that some are done twice, with the same result.  Elements below 16 bytes
 * have one square, wider than they are, which takes in bytes of the next element: it needs
 * 16 bytes from the start of each of its elements on. */

INLINE size_t squares_end(size_t count, size_t elem)
{
	size_t over = elem < 16 ? (16 - elem + elem - 1) / elem : 0; /* elements read too far */
	return count > over ? count - over : 0;
}

static TARGET size_t planes_any(const uint8_t *src, uint8_t *dst, size_t count, size_t elem,
                                size_t pitch)
{
	size_t end = squares_end(count, elem), i = 0;
	for (; i + WIDTH <= end; i += WIDTH) {
		size_t c = 0;
		for (;;) {
			vec v[16];
			UNROLL
			for (size_t k = 0; k < 16; k++)
				v[k] = LOAD_LANES(src + (i + k) * elem + c, 16 * elem);
			riffle(v, 16, 4);
			size_t columns = elem < 16 ? elem : 16;
			for (size_t j = 0; j < columns; j++)
				STORE(dst + (c + j) * pitch + i, v[j]);
			if (c + 16 >= elem)
				break;
			c = c + 32 <= elem ? c + 16 : elem - 16;
		}
	}
	return i;
}

/* The bytes that a square of a small element writes too far are written again, in order, by the
 * elements that they belong to. */
static TARGET size_t elements_any(const uint8_t *src, uint8_t *dst, size_t count, size_t elem,
                                  size_t pitch)
{
	size_t end = squares_end(count, elem), i = 0;
	for (; i + WIDTH <= end; i += WIDTH) {
		size_t c = 0;
		for (;;) {
			vec v[16];
			size_t columns = elem < 16 ? elem : 16;
			for (size_t j = 0; j < 16; j++)
				v[j] = LOAD(src + (c + (j < columns ? j : 0)) * pitch + i);
			riffle(v, 16, 4);
			store_lanes(dst + i * elem + c, v, 16, elem, 16 * elem);
			if (c + 16 >= elem)
				break;
			c = c + 32 <= elem ? c + 16 : elem - 16;
		}
	}
	return i;
}

/* ---- rows of bits --------------------------------------------------------------------------- */

/* Lane l has elements 128l to 128l + 127, that is bytes (q: 4 bits, m: 3 bits).  Transposing the
 * bits of each group q makes that (q, k); four riffles make it (k, q), a row for each bit k.
 * The last step reaches back over bytes that are done already rather than leave some undone. */
static TARGET void to_rows(const uint8_t *src, uint8_t *dst, size_t count, size_t pitch)
{
	size_t i = 0, step = 8 * WIDTH;
	for (; count >= step && i < count; i += step) {
		vec v[8];
		i = i < count - step ? i : count - step;
		UNROLL
		for (size_t k = 0; k < 8; k++)
			v[k] = transpose_bits(LOAD_LANES(src + i + 16 * k, 128));
		riffle(v, 8, 4);
		UNROLL
		for (size_t k = 0; k < 8; k++)
			STORE(dst + k * pitch + i / 8, v[k]);
	}
	lade__shuffle_plain.to_rows(src + i, dst + i / 8, count - i, pitch);
}

static TARGET void from_rows(const uint8_t *src, uint8_t *dst, size_t count, ptrdiff_t pitch)
{
	size_t i = 0, step = 8 * WIDTH;
	for (; count >= step && i < count; i += step) {
		vec v[8];
		i = i < count - step ? i : count - step;
		UNROLL
		for (size_t k = 0; k < 8; k++)
			v[k] = LOAD(src + (ptrdiff_t)k * pitch + i / 8);
		riffle(v, 8, 3);
		UNROLL
		for (size_t k = 0; k < 8; k++)
			v[k] = transpose_bits(v[k]);
		store_lanes(dst + i, v, 8, 16, 128);
	}
	lade__shuffle_plain.from_rows(src + i / 8, dst + i, count - i, pitch);
}

/* ---- the two kernels ------------------------------------------------------------------------ */

#ifndef PLANES_2
#define PLANES_2(...) planes_pow2(__VA_ARGS__)
#define PLANES_4(...) planes_pow2(__VA_ARGS__)
#define PLANES_8(...) planes_pow2(__VA_ARGS__)
#define ELEMENTS_2(...) elements_pow2(__VA_ARGS__)
#define ELEMENTS_4(...) elements_pow2(__VA_ARGS__)
#define ELEMENTS_8(...) elements_pow2(__VA_ARGS__)
#endif

static TARGET void to_planes(const uint8_t *src, uint8_t *dst, size_t count, size_t elem,
                             size_t pitch)
{
	size_t done;
	switch (elem) {
	case 2:
		done = PLANES_2(src, dst, count, 2, pitch);
		break;
	case 4:
		done = PLANES_4(src, dst, count, 4, pitch);
		break;
	case 8:
		done = PLANES_8(src, dst, count, 8, pitch);
		break;
	case 16:
		done = planes_pow2(src, dst, count, 16, pitch);
		break;
	default:
		done = planes_any(src, dst, count, elem, pitch);
		break;
	}
	lade__shuffle_plain.to_planes(src + done * elem, dst + done, count - done, elem, pitch);
}

static TARGET void from_planes(const uint8_t *src, uint8_t *dst, size_t count, size_t elem,
                               size_t pitch)
{
	size_t done;
	switch (elem) {
	case 2:
		done = ELEMENTS_2(src, dst, count, 2, pitch);
		break;
	case 4:
		done = ELEMENTS_4(src, dst, count, 4, pitch);
		break;
	case 8:
		done = ELEMENTS_8(src, dst, count, 8, pitch);
		break;
	case 16:
		done = elements_pow2(src, dst, count, 16, pitch);
		break;
	default:
		done = elements_any(src, dst, count, elem, pitch);
		break;
	}
	lade__shuffle_plain.from_planes(src + done, dst + done * elem, count - done, elem, pitch);
}

static TARGET void join_planes(const uint8_t *const *planes, uint8_t *dst, size_t count,
                               size_t elem, bool past)
{
	size_t done = 0;
	const uint8_t *rest[16];
	past = past && (uintptr_t)dst % 16 == 0;
#define JOIN(n) \
	done = past ? join_pow2(planes, dst, count, n, true) \
	            : join_pow2(planes, dst, count, n, false)
	if (elem == 2)
		JOIN(2);
	else if (elem == 4)
		JOIN(4);
	else if (elem == 8)
		JOIN(8);
	else if (elem == 16)
		JOIN(16);
#undef JOIN
	if (past)
		_mm_sfence(); /* other threads see the bytes when they see that the call is done */
	if (done == count)
		return;
	for (size_t j = 0; j < elem && done; j++)
		rest[j] = planes[j] + done;
	lade__shuffle_plain.join_planes(done ? rest : planes, dst + done * elem, count - done, elem,
	                                false);
}
