/*
 * copy_rows.h: the kernels of plan.h, written once for each instruction set.  The file that
 * includes it defines:
 *
 * TARGET   the function attribute that selects the instruction set
 * LANES    lanes of 16 bytes of a vector; 0: no vectors
 * and, unless LANES is 0:
 * vec, LOAD(p), STORE(p, v)   LANES * 16 bytes
 * LOAD_LANES(p, step)         lane l from p + l * step
 * LOW_n(a, b), HIGH_n(a, b)   in each lane, units of n bytes of the lower (upper) halves of a and b
 *                             in turn; n is 1, 2, 4 and 8
 * STREAM(p, v), if there is one: as STORE(), past the caches, to an aligned p
 * SHUFFLE(v, m), MASK(p)      the bytes of each lane by the lane's indices; 16 bytes in each lane
 *
 * Loads and stores of a kernel stay within the units of its arguments: a tail is a vector that ends
 * where the unit ends.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "array/plan.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline)) TARGET
#define WIDTH (16 * (size_t)LANES)

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

/* Runs 'body' with s and d at each unit. */
#define EACH_UNIT(body)                                                                         \
	for (size_t i = 0; i < outer->count; i++) {                                             \
		const uint8_t *s = src + (ptrdiff_t)i * outer->src;                             \
		uint8_t *d = dst + (ptrdiff_t)i * outer->dst;                                   \
		for (size_t j = inner->count; j; j--) {                                         \
			body;                                                                   \
			s += inner->src;                                                        \
			d += inner->dst;                                                        \
		}                                                                               \
	}

/* ---- units as they are -------------------------------------------------------------------- */

/* A unit of 'half' to 2 * half bytes, by two that overlap. */
INLINE void copy_halves(uint8_t *d, const uint8_t *s, size_t unit, size_t half)
{
	uint8_t a[64], b[64];
	memcpy(a, s, half);
	memcpy(b, s + unit - half, half);
	memcpy(d, a, half);
	memcpy(d + unit - half, b, half);
}

#if LANES
INLINE void copy_long(uint8_t *d, const uint8_t *s, size_t unit)
{
	size_t i = 0;
	vec tail = LOAD(s + unit - WIDTH);
	for (; i + 4 * WIDTH <= unit; i += 4 * WIDTH) {
		vec v0 = LOAD(s + i), v1 = LOAD(s + i + WIDTH);
		vec v2 = LOAD(s + i + 2 * WIDTH), v3 = LOAD(s + i + 3 * WIDTH);
		STORE(d + i, v0);
		STORE(d + i + WIDTH, v1);
		STORE(d + i + 2 * WIDTH, v2);
		STORE(d + i + 3 * WIDTH, v3);
	}
	for (; i + WIDTH < unit; i += WIDTH)
		STORE(d + i, LOAD(s + i));
	STORE(d + unit - WIDTH, tail);
}
#endif

#ifdef STREAM
/* Lines of the destination that are written whole go past the caches, which then need not read
 * them first.  (One that is written in part on another way as well is slow.) */
INLINE void copy_stream(uint8_t *d, const uint8_t *s, size_t unit)
{
	for (size_t i = 0; i < unit; i += WIDTH)
		STREAM(d + i, LOAD(s + i));
}

#define STREAM_LINE 64

static bool may_stream(const uint8_t *dst, const lade__plan_unit *unit,
                       const lade__plan_loop *outer, const lade__plan_loop *inner)
{
	uintptr_t odd = (uintptr_t)dst | unit->size | (uintptr_t)outer->dst | (uintptr_t)inner->dst;
	return unit->large && odd % STREAM_LINE == 0;
}
#endif

/* Longer units are the C library's. */
#define LONG_MOST 2048

static TARGET void rows_copy(const uint8_t *src, uint8_t *dst, const lade__plan_unit *u,
                             const lade__plan_loop *outer, const lade__plan_loop *inner)
{
	size_t unit = u->size;
	if (unit == 1)
		EACH_UNIT(*d = *s)
	else if (unit == 2)
		EACH_UNIT(memcpy(d, s, 2))
	else if (unit == 4)
		EACH_UNIT(memcpy(d, s, 4))
	else if (unit == 8)
		EACH_UNIT(memcpy(d, s, 8))
	else if (unit == 16)
		EACH_UNIT(memcpy(d, s, 16))
	else if (unit == 32)
		EACH_UNIT(memcpy(d, s, 32))
	else if (unit == 64)
		EACH_UNIT(memcpy(d, s, 64))
	else if (unit < 4)
		EACH_UNIT(copy_halves(d, s, unit, 2))
	else if (unit < 8)
		EACH_UNIT(copy_halves(d, s, unit, 4))
	else if (unit < 16)
		EACH_UNIT(copy_halves(d, s, unit, 8))
	else if (unit < 32)
		EACH_UNIT(copy_halves(d, s, unit, 16))
	else if (unit < 64)
		EACH_UNIT(copy_halves(d, s, unit, 32))
	else if (unit < 128)
		EACH_UNIT(copy_halves(d, s, unit, 64))
#ifdef STREAM
	else if (unit <= LONG_MOST && may_stream(dst, u, outer, inner)) {
		EACH_UNIT(copy_stream(d, s, unit))
		__asm__ volatile("sfence" : : : "memory");
	}
#endif
#if LANES
	else if (unit <= LONG_MOST)
		EACH_UNIT(copy_long(d, s, unit))
#endif
	else
		EACH_UNIT(memcpy(d, s, unit))
}

/* ---- swapped units ------------------------------------------------------------------------ */

INLINE void swap_2(uint8_t *d, const uint8_t *s)
{
	uint16_t v;
	memcpy(&v, s, 2);
	v = __builtin_bswap16(v);
	memcpy(d, &v, 2);
}

INLINE void swap_4(uint8_t *d, const uint8_t *s)
{
	uint32_t v;
	memcpy(&v, s, 4);
	v = __builtin_bswap32(v);
	memcpy(d, &v, 4);
}

INLINE void swap_8(uint8_t *d, const uint8_t *s)
{
	uint64_t v;
	memcpy(&v, s, 8);
	v = __builtin_bswap64(v);
	memcpy(d, &v, 8);
}

INLINE void swap_16(uint8_t *d, const uint8_t *s)
{
	uint8_t t[8];
	swap_8(t, s);
	swap_8(d, s + 8);
	memcpy(d + 8, t, 8);
}

/* Any unit, by its swapped parts. */
INLINE void swap_any(uint8_t *d, const uint8_t *s, size_t unit, size_t swap)
{
	for (size_t at = 0; at < unit; at += swap)
		for (size_t k = 0; k < swap; k++)
			d[at + k] = s[at + swap - 1 - k];
}

#define SWAP_PARTS(n)                                                                           \
	EACH_UNIT({                                                                             \
		for (size_t at = 0; at < unit; at += n)                                         \
			swap_##n(d + at, s + at);                                               \
	})

#if LANES
static const uint8_t swap_masks[5][16] = {
	{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
	{1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14},
	{3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12},
	{7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8},
	{15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0},
};

INLINE vec swap_mask(size_t swap)
{
	return MASK(swap_masks[swap < 2 ? 0 : swap == 2 ? 1 : swap == 4 ? 2 : swap == 8 ? 3 : 4]);
}

/* The tail begins at a multiple of 'swap' as both the unit and the vector are. */
INLINE void swap_long(uint8_t *d, const uint8_t *s, size_t unit, vec mask)
{
	vec tail = LOAD(s + unit - WIDTH);
	for (size_t i = 0; i + WIDTH < unit; i += WIDTH)
		STORE(d + i, SHUFFLE(LOAD(s + i), mask));
	STORE(d + unit - WIDTH, SHUFFLE(tail, mask));
}
#endif

static TARGET void rows_swap(const uint8_t *src, uint8_t *dst, const lade__plan_unit *u,
                             const lade__plan_loop *outer, const lade__plan_loop *inner)
{
	size_t unit = u->size, swap = u->swap;
#if LANES
	if (unit >= WIDTH && (swap == 2 || swap == 4 || swap == 8 || swap == 16)) {
		vec mask = swap_mask(swap);
		EACH_UNIT(swap_long(d, s, unit, mask))
		return;
	}
#endif
	if (unit == swap && swap == 2)
		EACH_UNIT(swap_2(d, s))
	else if (unit == swap && swap == 4)
		EACH_UNIT(swap_4(d, s))
	else if (unit == swap && swap == 8)
		EACH_UNIT(swap_8(d, s))
	else if (swap == 2)
		SWAP_PARTS(2)
	else if (swap == 4)
		SWAP_PARTS(4)
	else if (swap == 8)
		SWAP_PARTS(8)
	else if (swap == 16)
		SWAP_PARTS(16)
	else
		EACH_UNIT(swap_any(d, s, unit, swap))
}

static void rows(const uint8_t *src, uint8_t *dst, const lade__plan_unit *unit,
                 const lade__plan_loop *outer, const lade__plan_loop *inner)
{
	if (unit->swap)
		rows_swap(src, dst, unit, outer, inner);
	else
		rows_copy(src, dst, unit, outer, inner);
}

/* ---- turning ------------------------------------------------------------------------------ */

#if LANES
/*
 * M = 16 / unit vectors, lane l of vector k from source row b + l * M + k, are in each lane a
 * square of M x M units, the index of a unit (row, column).  A riffle takes units from the first
 * and the second half of the M vectors in turn and so rotates the index left by a bit; log2(M) of
 * them make it (column, row): vector k is column k, and its lanes are rows that follow one another.
 */
#define RIFFLE(n, M, times)                                                                     \
	UNROLL                                                                                  \
	for (int r = 0; r < times; r++) {                                                       \
		vec t[M];                                                                       \
		UNROLL                                                                          \
		for (size_t k = 0; k < (M) / 2; k++) {                                          \
			t[2 * k] = LOW_##n(v[k], v[k + (M) / 2]);                               \
			t[2 * k + 1] = HIGH_##n(v[k], v[k + (M) / 2]);                          \
		}                                                                               \
		UNROLL                                                                          \
		for (size_t k = 0; k < (M); k++)                                                \
			v[k] = t[k];                                                            \
	}

INLINE void turn_square(const uint8_t *s, uint8_t *d, const lade__plan_unit *u, size_t unit,
                        vec mask, const lade__plan_turn *by)
{
	ptrdiff_t src_row = by->src, dst_row = by->dst;
	bool swap = u->swap != 0;
	const size_t M = 16 / unit;
	vec v[16];
	UNROLL
	for (size_t k = 0; k < M; k++) {
		v[k] = LOAD_LANES(s + (ptrdiff_t)k * src_row, (ptrdiff_t)M * src_row);
		if (swap)
			v[k] = SHUFFLE(v[k], mask);
	}
	if (unit == 1) {
		RIFFLE(1, 16, 4)
	} else if (unit == 2) {
		RIFFLE(2, 8, 3)
	} else if (unit == 4) {
		RIFFLE(4, 4, 2)
	} else if (unit == 8) {
		RIFFLE(8, 2, 1)
	}
#ifdef STREAM
	if (WIDTH == STREAM_LINE && u->large) {
		UNROLL
		for (size_t k = 0; k < M; k++)
			STREAM(d + (ptrdiff_t)k * dst_row, v[k]);
		return;
	}
#endif
	UNROLL
	for (size_t k = 0; k < M; k++)
		STORE(d + (ptrdiff_t)k * dst_row, v[k]);
}

/*
 * How many rows of the destination are written in turn.  Stores of whole lines take 512 bytes of
 * each row of the source, which are long runs of a page; stores of parts come back to their lines,
 * which must stay at hand till then.
 */
#define TURN_ROWS(unit) (WIDTH == 64 ? 512 / (unit) : 32)

/* The last squares of both axes reach back over units that are done already. */
INLINE void turn_unit(const uint8_t *src, uint8_t *dst, const lade__plan_unit *u, size_t unit,
                      const lade__plan_turn *t)
{
	const size_t M = 16 / unit, N = WIDTH / unit, band = TURN_ROWS(unit);
	vec mask = swap_mask(unit > 1 ? u->swap : 0);
	for (size_t a0 = 0; a0 < t->a; a0 += band) {
		size_t a1 = t->a - a0 < band ? t->a : a0 + band;
		for (size_t b = 0; b < t->b; b += N) {
			size_t row = b + N <= t->b ? b : t->b - N;
			for (size_t a = a0; a < a1; a += M) {
				size_t column = a + M <= t->a ? a : t->a - M;
				turn_square(src + (ptrdiff_t)row * t->src + column * unit,
				            dst + (ptrdiff_t)column * t->dst + row * unit, u,
				            unit, mask, t);
			}
		}
	}
}

static TARGET void turn(const uint8_t *src, uint8_t *dst, const lade__plan_unit *unit,
                        const lade__plan_turn *t)
{
	lade__plan_unit u = *unit;
#ifdef STREAM
	/* Whole lines only; with smaller units the loads are what takes the time. */
	u.large &= u.size == 16 &&
	           ((uintptr_t)dst | (uintptr_t)t->dst | t->b * u.size) % STREAM_LINE == 0;
#endif
	if (u.size == 1)
		turn_unit(src, dst, &u, 1, t);
	else if (u.size == 2)
		turn_unit(src, dst, &u, 2, t);
	else if (u.size == 4)
		turn_unit(src, dst, &u, 4, t);
	else if (u.size == 8)
		turn_unit(src, dst, &u, 8, t);
	else
		turn_unit(src, dst, &u, 16, t);
#ifdef STREAM
	if (u.large)
		__asm__ volatile("sfence" : : : "memory");
#endif
}
#endif
