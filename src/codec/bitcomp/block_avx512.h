/*
 * block_avx512.h: the encoder's steps for AVX-512: what units need, and their bits.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/bitcomp/bitcomp.h"

#include <string.h>

#define INLINE_512 static inline TARGET __attribute__((always_inline, unused))

/* ---- what units need ------------------------------------------------------------------------- */

/* The two inputs' even elements OR their odd ones, of 8 and 4 bytes, within 16 bytes, of which the
 * first input's come first; of 16 bytes, within all. */
INLINE_512 __m512i or_8(__m512i a, __m512i b)
{
	return _mm512_or_si512(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

INLINE_512 __m512i or_4(__m512i a, __m512i b)
{
	__m512 x = _mm512_castsi512_ps(a), y = _mm512_castsi512_ps(b);
	return _mm512_or_si512(_mm512_castps_si512(_mm512_shuffle_ps(x, y, 0x88)),
	                       _mm512_castps_si512(_mm512_shuffle_ps(x, y, 0xDD)));
}

INLINE_512 __m512i or_16(__m512i a, __m512i b)
{
	return _mm512_or_si512(_mm512_shuffle_i64x2(a, b, 0x88), _mm512_shuffle_i64x2(a, b, 0xDD));
}

/* The bits of a group's units, from ORs a[k] of vectors 2 k and 2 k + 1: a unit is a vector, a half
 * or a quarter of it. */
INLINE_512 void needs_8(const __m512i a[4], uint8_t *need)
{
	__m512i all = or_16(or_16(a[0], a[1]), or_16(a[2], a[3]));
	all = _mm512_sub_epi64(_mm512_set1_epi64(64), _mm512_lzcnt_epi64(all));
	_mm_storel_epi64((__m128i *)(void *)need, _mm512_cvtepi64_epi8(all));
}

INLINE_512 void needs_4(const __m512i a[4], uint8_t *need)
{
	/* By quarters: units 0 2 8 10, 1 3 9 11, 4 6 12 14, 5 7 13 15. */
	__m512i all = or_4(or_16(a[0], a[1]), or_16(a[2], a[3]));
	const __m512i order =
		_mm512_setr_epi32(0, 4, 1, 5, 8, 12, 9, 13, 2, 6, 3, 7, 10, 14, 11, 15);
	all = _mm512_sub_epi32(_mm512_set1_epi32(32), _mm512_lzcnt_epi32(all));
	all = _mm512_permutexvar_epi32(order, all);
	_mm_storeu_si128((__m128i *)(void *)need, _mm512_cvtepi32_epi8(all));
}

INLINE_512 void needs_2_or_1(unsigned log, const __m512i a[4], uint8_t *need)
{
	const __m128i order = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
	for (unsigned k = 0; k < 2; k++) {
		/* Quarter u has unit u of four vectors. */
		__m512i all = or_4(a[2 * k], a[2 * k + 1]);
		all = _mm512_or_si512(all, _mm512_srli_epi32(all, 16));
		if (log == 0)
			all = _mm512_or_si512(all, _mm512_srli_epi32(all, 8));
		all = _mm512_and_si512(all, _mm512_set1_epi32(log == 0 ? 0xFF : 0xFFFF));
		all = _mm512_sub_epi32(_mm512_set1_epi32(32), _mm512_lzcnt_epi32(all));
		_mm_storeu_si128((__m128i *)(void *)(need + 16 * k),
		                 _mm_shuffle_epi8(_mm512_cvtepi32_epi8(all), order));
	}
}

INLINE_512 __m512i difference(unsigned log, __m512i a, __m512i b)
{
	return log == 0   ? _mm512_sub_epi8(a, b)
	       : log == 1 ? _mm512_sub_epi16(a, b)
	       : log == 2 ? _mm512_sub_epi32(a, b)
	                  : _mm512_sub_epi64(a, b);
}

/* As NAME(refer)() of block_encode.h, which calls it with a constant 'how'. */
INLINE_512 void refer_as(lade__bitcomp_refer how, uint8_t *t, size_t groups, uint64_t reference,
                         uint8_t *need, const uint8_t *next)
{
	const unsigned log = how.log;
	__m512i ref = log == 0   ? _mm512_set1_epi8((char)reference)
	              : log == 1 ? _mm512_set1_epi16((short)reference)
	              : log == 2 ? _mm512_set1_epi32((int)reference)
	                         : _mm512_set1_epi64((long long)reference);
	size_t size = groups * LADE_BITCOMP_GROUP;
	for (size_t i = 0; i < size; i += LADE_BITCOMP_GROUP) {
		__m512i v[8], a[4];
#pragma GCC unroll 8
		for (unsigned k = 0; k < 8; k++) {
			v[k] = _mm512_loadu_si512(t + i + 64 * k);
			v[k] = how.above ? difference(log, ref, v[k]) : difference(log, v[k], ref);
			if (how.keep)
				_mm512_storeu_si512(t + i + 64 * k, v[k]);
			if (next)
				PREFETCH_NEXT(next, i + 64 * k, 1);
		}
#pragma GCC unroll 4
		for (unsigned k = 0; k < 4; k++)
			a[k] = or_8(v[2 * k], v[2 * k + 1]);
		if (log == 3)
			needs_8(a, need);
		else if (log == 2)
			needs_4(a, need);
		else
			needs_2_or_1(log, a, need);
		need += log == 3 ? 8 : log == 2 ? 16 : 32;
	}
}

#define REFER_AS refer_as

/* ---- bits of elements of 1 and 2 bytes, four units at once ----------------------------------- */

/* By width, of 64 bytes: where the first half of a unit's bits ends within a byte, what moves its
 * last 4 bits to its begin, and by how much the second half is moved; the bytes of the first half,
 * and of the second, as bits. */
#define BY_WIDTH(F) \
	{ \
		F(0), F(1), F(2), F(3), F(4), F(5), F(6), F(7), F(8), F(9), F(10), F(11), F(12), \
			F(13), F(14), F(15), F(16) \
	}
#define OVER(w) ((uint8_t)((w) % 2 ? 4 * (w)-4 : 64))
#define MOVE(w) ((w) % 2 ? 4 : 0)
#define ONES(w) ((uint8_t)((w) > 8 ? 0 : (1 << (w)) - 1))
#define ONES_FIRST(w) ((1 << (w) / 2) - 1)
#define ONES_SECOND(w) ((1 << ((w) - (w) / 2)) - 1)

static const uint8_t over_of[64] = BY_WIDTH(OVER), move_of[64] = BY_WIDTH(MOVE);
static const uint8_t ones_of[2][2][64] = {{BY_WIDTH(ONES), BY_WIDTH(ONES)},
                                          {BY_WIDTH(ONES_FIRST), BY_WIDTH(ONES_SECOND)}};

/* How the four units of a vector are moved: by how much the second of two values, of two pairs, of
 * two halves. */
typedef struct moves {
	__m512i by[4];
} moves;

/* From the units' widths, one in each field of 2 (log 0) or 4 bytes of a quarter. */
INLINE_512 moves moves_of(unsigned log, __m512i width)
{
	moves m;
	__m512i less = _mm512_sub_epi32(_mm512_set1_epi32(log == 0 ? 8 << 16 | 8 : 16), width);
	__m512i twice = _mm512_add_epi32(less, less);
	m.by[0] = less;
	if (log == 0) {
		m.by[1] = _mm512_and_si512(twice, _mm512_set1_epi32(0xFF));
		m.by[2] = _mm512_and_si512(_mm512_add_epi32(twice, twice), _mm512_set1_epi64(0xFF));
		m.by[3] = _mm512_setzero_si512();
	} else {
		m.by[1] = _mm512_and_si512(twice, _mm512_set1_epi64(0xFF));
		m.by[2] = _mm512_maskz_permutexvar_epi8(0x0101010101010101, width,
		                                        _mm512_loadu_si512(over_of));
		m.by[3] = _mm512_maskz_permutexvar_epi8(0x0100010001000100, width,
		                                        _mm512_loadu_si512(move_of));
	}
	return m;
}

/* A field's low half, and its high half moved down to it. */
#define JOIN(bits, v, low, by) \
	_mm512_ternarylogic_epi64(v, low, _mm512_srlv_epi##bits(_mm512_andnot_si512(low, v), by), \
	                          0xEA)

/* The bits of each half of the four units, from the half's first byte on. */
INLINE_512 __m512i join(unsigned log, __m512i v, const moves *m)
{
	const __m512i low_1 = _mm512_set1_epi16(0xFF), low_2 = _mm512_set1_epi32(0xFFFF);
	const __m512i low_4 = _mm512_set1_epi64(0xFFFFFFFF);
	if (log == 0) {
		v = JOIN(16, v, low_1, m->by[0]);
		v = JOIN(32, v, low_2, m->by[1]);
		return JOIN(64, v, low_4, m->by[2]);
	}
	v = JOIN(32, v, low_2, m->by[0]);
	v = JOIN(64, v, low_4, m->by[1]);
	/* The first half may end within a byte, which becomes the second's first. */
	__m512i over = _mm512_bslli_epi128(_mm512_srlv_epi64(v, m->by[2]), 8);
	return _mm512_or_si512(_mm512_sllv_epi64(v, m->by[3]), over);
}

/* The bytes that are left of each half: for all units, two bytes each. */
INLINE_512 void halves_of(unsigned log, const uint8_t *widths, size_t units, uint8_t *ones)
{
	__m512i lut[2], order[2];
	uint8_t turns[128];
	for (unsigned i = 0; i < 128; i++)
		turns[i] = (uint8_t)(i / 2 + i % 2 * 64);
	for (unsigned k = 0; k < 2; k++) {
		lut[k] = _mm512_loadu_si512(ones_of[log][k]);
		order[k] = _mm512_loadu_si512(turns + 64 * k);
	}
	for (size_t u = 0; u < units; u += 64) {
		__m512i w = _mm512_loadu_si512(widths + u);
		__m512i a = _mm512_permutexvar_epi8(w, lut[0]);
		__m512i b = _mm512_permutexvar_epi8(w, lut[1]);
		for (unsigned k = 0; k < 2; k++)
			_mm512_storeu_si512(ones + 2 * u + 64 * k,
			                    _mm512_permutex2var_epi8(a, order[k], b));
	}
}

INLINE_512 uint8_t *pack_quarters(unsigned log, const uint8_t *x, size_t units,
                                  const uint8_t *widths, uint8_t *to)
{
	uint8_t ones[2 * (BLOCK / 16 + 64)];
	/* Quarter k of four widths becomes width k. */
	const __m512i quarter = _mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3);
	const __m512i spread = _mm512_or_si512(_mm512_shuffle_epi8(quarter, _mm512_setzero_si512()),
	                                       log == 0 ? _mm512_set1_epi16((short)0x8000)
	                                                : _mm512_set1_epi32((int)0x80808000));
	halves_of(log, widths, units, ones);
	for (size_t u = 0; u < units; u += 4) {
		uint32_t four;
		uint64_t keep;
		memcpy(&four, widths + u, 4);
		memcpy(&keep, ones + 2 * u, 8);
		moves m = moves_of(log, _mm512_shuffle_epi8(_mm512_set1_epi32((int)four), spread));
		__m512i v = join(log, _mm512_loadu_si512(x + 16 * u), &m);
		_mm512_storeu_si512(to, _mm512_maskz_compress_epi8(keep, v));
		to += __builtin_popcountll(keep);
	}
	return to;
}

/* ---- bits of elements of 4 and 8 bytes, a unit at once --------------------------------------- */

/*
 * Fields of at least 8 bits, or two of 4, so that byte j of a unit has bits of one field or of two
 * that follow each other.  Each is a number of 8 bytes, moved up by 0 to 7 bits so that its bits
 * have their places in bytes; then byte j is byte FROM(first) OR byte FROM(second) of the moved
 * fields, or, from 'all' on, of what was moved out of these.  A unit is w bytes; e is the fields'
 * width, and g the fields from one that counts to the next.
 */
#define FIRST(e, j) (8 * (j) / (e))
#define SECOND(e, j) ((8 * (j) + 7) / (e))
#define PLACE(e, j, i) ((j) - (i) * (e) / 8)
#define FROM(e, g, j, i, all) (8 * (g) * (i) + (PLACE(e, j, i) < 8 ? PLACE(e, j, i) : (all)))
#define FROM_FIRST(w, e, g, j, all) \
	((uint8_t)((j) < (w) ? FROM(e, g, j, FIRST(e, j), all) : 0))
#define FROM_SECOND(w, e, g, j, all) \
	((uint8_t)((j) < (w) ? FROM(e, g, j, SECOND(e, j), all) : 0))
#define MOVED(e, g, i) ((i) / (g) * (e)&7)

#define FROM_8(F, w, e, g, j, all) \
	F(w, e, g, j, all), F(w, e, g, j + 1, all), F(w, e, g, j + 2, all), \
		F(w, e, g, j + 3, all), F(w, e, g, j + 4, all), F(w, e, g, j + 5, all), \
		F(w, e, g, j + 6, all), F(w, e, g, j + 7, all)
#define FROM_32(F, w, e, g, j, all) \
	FROM_8(F, w, e, g, j, all), FROM_8(F, w, e, g, j + 8, all), \
		FROM_8(F, w, e, g, j + 16, all), FROM_8(F, w, e, g, j + 24, all)

/* Of 4 bytes: two values are a field, or four where these have fewer than 8 bits. */
typedef struct way_4 {
	uint8_t first[32], second[32];
	uint64_t less, more, moved[4], unused[2];
} way_4;
#define WAY_4(w, e, g) \
	{ \
		{FROM_32(FROM_FIRST, w, e, g, 0, 0)}, {FROM_32(FROM_SECOND, w, e, g, 0, 0)}, \
			32 - (w), (g) == 1 ? 64 : 2 * (w), \
			{MOVED(e, g, 0), MOVED(e, g, 1), MOVED(e, g, 2), MOVED(e, g, 3)}, \
		{ \
			0 \
		} \
	}
#define WAYS_4(w) WAY_4(w, 2 * (w), 1), WAY_4((w) + 1, 2 * (w) + 2, 1)
static const _Alignas(64) way_4 ways_4[33] = {
	WAY_4(0, 16, 1), WAY_4(1, 4, 2), WAY_4(2, 8, 2), WAY_4(3, 12, 2), WAYS_4(4),
	WAYS_4(6),       WAYS_4(8),      WAYS_4(10),     WAYS_4(12),      WAYS_4(14),
	WAYS_4(16),      WAYS_4(18),     WAYS_4(20),     WAYS_4(22),      WAYS_4(24),
	WAYS_4(26),      WAYS_4(28),     WAYS_4(30),     WAY_4(32, 64, 1)};

/* Of 8 bytes, by the width less 8. */
typedef struct way_8 {
	uint8_t first[64], second[64];
} way_8;
#define WAY_8(w) \
	{ \
		{FROM_32(FROM_FIRST, w, w, 1, 0, 64), FROM_32(FROM_FIRST, w, w, 1, 32, 64)}, \
		{ \
			FROM_32(FROM_SECOND, w, w, 1, 0, 64), \
				FROM_32(FROM_SECOND, w, w, 1, 32, 64) \
		} \
	}
#define WAYS_8(w) \
	WAY_8(w), WAY_8((w) + 1), WAY_8((w) + 2), WAY_8((w) + 3), WAY_8((w) + 4), WAY_8((w) + 5), \
		WAY_8((w) + 6), WAY_8((w) + 7)
static const _Alignas(64) way_8 ways_8[57] = {WAYS_8(8),  WAYS_8(16), WAYS_8(24), WAYS_8(32),
                                              WAYS_8(40), WAYS_8(48), WAYS_8(56), WAY_8(64)};

INLINE_512 __m512i moved_8(unsigned width)
{
	const __m512i iota = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
	__m512i at = _mm512_mul_epu32(iota, _mm512_set1_epi64(width));
	return _mm512_and_si512(at, _mm512_set1_epi64(7));
}

INLINE_512 void pack_8(const uint8_t *x, unsigned width, uint8_t *to)
{
	__m512i v = _mm512_loadu_si512(x);
	if (width < 8) {
		uint64_t fields = _bzhi_u64(UINT64_MAX, width) * (UINT64_MAX / 0xFF);
		uint64_t bytes = (uint64_t)_mm_cvtsi128_si64(_mm512_cvtepi64_epi8(v));
		uint64_t bits = _pext_u64(bytes, fields);
		memcpy(to, &bits, 8);
		return;
	}
	const way_8 *way = &ways_8[width - 8];
	__m512i by = moved_8(width);
	__m512i out = _mm512_srlv_epi64(v, _mm512_sub_epi64(_mm512_set1_epi64(64), by));
	v = _mm512_sllv_epi64(v, by);
	v = _mm512_or_si512(_mm512_permutex2var_epi8(v, _mm512_load_si512(way->first), out),
	                    _mm512_permutex2var_epi8(v, _mm512_load_si512(way->second), out));
	_mm512_storeu_si512(to, v);
}

#define LOAD_32(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))

INLINE_512 void pack_4(const uint8_t *x, unsigned width, uint8_t *to)
{
	const way_4 *way = &ways_4[width];
	const __m256i low = _mm256_set1_epi64x(0xFFFFFFFF);
	__m256i v = LOAD_32(x);
	if (width == 31) {
		/* The only one of which bits would be moved out. */
		__m512i w = _mm512_sllv_epi64(_mm512_cvtepu32_epi64(v), moved_8(width));
		const way_8 *wide = &ways_8[31 - 8];
		w = _mm512_or_si512(_mm512_permutexvar_epi8(_mm512_load_si512(wide->first), w),
		                    _mm512_permutexvar_epi8(_mm512_load_si512(wide->second), w));
		_mm256_storeu_si256((__m256i *)(void *)to, _mm512_castsi512_si256(w));
		return;
	}
	v = _mm256_ternarylogic_epi64(v, low,
	                              _mm256_srlv_epi64(_mm256_andnot_si256(low, v),
	                                                _mm256_set1_epi64x((long long)way->less)),
	                              0xEA);
	if (width - 1 < 3)
		v = _mm256_or_si256(v, _mm256_sllv_epi64(_mm256_bsrli_epi128(v, 8),
		                                         _mm256_set1_epi64x((long long)way->more)));
	v = _mm256_sllv_epi64(v, LOAD_32(way->moved));
	v = _mm256_or_si256(_mm256_permutexvar_epi8(LOAD_32(way->first), v),
	                    _mm256_permutexvar_epi8(LOAD_32(way->second), v));
	_mm256_storeu_si256((__m256i *)(void *)to, v);
}

INLINE_512 void pack_unit(unsigned log, const uint8_t *x, unsigned width, uint8_t *to)
{
	if (log == 2)
		pack_4(x, width, to);
	else
		pack_8(x, width, to);
}

/* ---- all units ------------------------------------------------------------------------------- */

/* The bits of units of a width each; gives their end. */
INLINE_512 uint8_t *pack_all(unsigned log, const uint8_t *x, size_t units, const uint8_t *widths,
                             uint8_t *to)
{
	if (log < 2)
		return pack_quarters(log, x, units, widths, to);
	for (size_t u = 0; u < units; u++, x += 8u << log) {
		pack_unit(log, x, widths[u], to);
		to += widths[u];
	}
	return to;
}

INLINE_512 uint8_t *pack_same(unsigned log, const uint8_t *x, size_t units, unsigned width,
                              uint8_t *to)
{
	if (log < 2) {
		uint8_t ones[2 * 64], widths[64];
		memset(widths, (int)width, sizeof widths);
		halves_of(log, widths, 4, ones);
		uint64_t keep;
		memcpy(&keep, ones, 8);
		moves m = moves_of(log, log == 0 ? _mm512_set1_epi16((short)width)
		                                 : _mm512_set1_epi32((int)width));
		unsigned each = width << (log == 0);
		uint8_t *end = to + units * each;
		for (size_t u = 0; u < units; u += 4, to += 4 * each) {
			__m512i v = join(log, _mm512_loadu_si512(x + 16 * u), &m);
			_mm512_storeu_si512(to, _mm512_maskz_compress_epi8(keep, v));
		}
		return end;
	}
	for (size_t u = 0; u < units; u++, x += 8u << log, to += width)
		pack_unit(log, x, width, to);
	return to;
}

#define PACK_ALL pack_all
#define PACK_SAME pack_same

/* ---- the dictionary -------------------------------------------------------------------------- */

/* As lade__bitcomp_ranks(). */
INLINE_512 void ranks(const uint16_t count[256], uint8_t rank[256])
{
	uint8_t bucket[256], iota[64];
	__m512i buckets[4], out[4], most = _mm512_setzero_si512();
	unsigned before = 0;
	for (unsigned i = 0; i < 64; i++)
		iota[i] = (uint8_t)i;
	for (unsigned i = 0; i < 256; i += 16) {
		__m512i n = _mm512_cvtepu16_epi32(
			_mm256_loadu_si256((const __m256i *)(const void *)(count + i)));
		__m512i bits = _mm512_sub_epi32(_mm512_set1_epi32(32), _mm512_lzcnt_epi32(n));
		__m512i twice = _mm512_sub_epi32(bits, _mm512_set1_epi32(2));
		/* A shift by less than 0 is one by much. */
		__m512i next = _mm512_and_si512(_mm512_srlv_epi32(n, twice), _mm512_set1_epi32(1));
		__m512i b = _mm512_add_epi32(_mm512_add_epi32(bits, twice), next);
		b = _mm512_mask_mov_epi32(b, _mm512_cmple_epu32_mask(n, _mm512_set1_epi32(1)), n);
		_mm_storeu_si128((__m128i *)(void *)(bucket + i), _mm512_cvtepi32_epi8(b));
	}
	for (unsigned k = 0; k < 4; k++) {
		buckets[k] = _mm512_loadu_si512(bucket + 64 * k);
		out[k] = _mm512_setzero_si512();
		most = _mm512_max_epu8(most, buckets[k]);
	}
	most = _mm512_xor_si512(most, _mm512_set1_epi8(-1));
	for (int b = (int)(255 - least_in_64(0, most)); b >= 0; b--) {
#pragma GCC unroll 4
		for (unsigned k = 0; k < 4; k++) {
			__mmask64 m = _mm512_cmpeq_epi8_mask(buckets[k], _mm512_set1_epi8((char)b));
			__m512i next = _mm512_add_epi8(_mm512_loadu_si512(iota),
			                               _mm512_set1_epi8((char)before));
			out[k] = _mm512_mask_expand_epi8(out[k], m, next);
			before += (unsigned)__builtin_popcountll(m);
		}
	}
	for (unsigned k = 0; k < 4; k++)
		_mm512_storeu_si512(rank + 64 * k, out[k]);
}
#define RANKS ranks
