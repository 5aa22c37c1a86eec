/*
 * count_avx512.h: counting bytes by their bits.  512 bytes become eight vectors of a bit each, and
 * these two times 16, of the low and of the high four bits' values; a symbol's bytes are the ones
 * of both its vectors.  Tables in memory take a cycle a byte, this as much, and half where not all
 * values of the high bits occur.  Included by avx512.c after lanes.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

/* Vectors of 512 bytes that are counted together, so that sums are seldom stored. */
#define GROUPS 4

/* Exchanges the bits of 'a' that are not in 'low' with those of 'b' that are: 'up' and 'down' are
 * 'b' and 'a' shifted to each other's places. */
INLINE void exchange(__m512i *a, __m512i *b, __m512i up, __m512i down, __m512i low)
{
	*a = _mm512_ternarylogic_epi64(low, *a, up, 0xCA);
	*b = _mm512_ternarylogic_epi64(low, down, *b, 0xCA);
}

/* 512 bytes; v[k] has bit k of all, in any order. */
INLINE void bits_of(const uint8_t *from, __m512i v[8])
{
#pragma GCC unroll 8
	for (unsigned i = 0; i < 8; i++)
		v[i] = _mm512_loadu_si512(from + 64 * i);
#pragma GCC unroll 4
	for (unsigned i = 0; i < 4; i++) {
		__m512i *a = &v[i], *b = a + 4;
		exchange(a, b, _mm512_slli_epi16(*b, 4), _mm512_srli_epi16(*a, 4),
		         _mm512_set1_epi8(0x0F));
	}
#pragma GCC unroll 4
	for (unsigned i = 0; i < 4; i++) {
		__m512i *a = &v[i / 2 * 4 + i % 2], *b = a + 2;
		exchange(a, b, _mm512_slli_epi16(*b, 2), _mm512_srli_epi16(*a, 2),
		         _mm512_set1_epi8(0x33));
	}
#pragma GCC unroll 4
	for (unsigned i = 0; i < 4; i++) {
		__m512i *a = &v[2 * i], *b = a + 1;
		exchange(a, b, _mm512_slli_epi16(*b, 1), _mm512_srli_epi16(*a, 1),
		         _mm512_set1_epi8(0x55));
	}
}

/* Where four bits have each value. */
INLINE void values_of(const __m512i bit[4], __m512i out[16])
{
	__m512i pair[2][4];
#pragma GCC unroll 2
	for (unsigned k = 0; k < 2; k++) {
		__m512i a = bit[2 * k], b = bit[2 * k + 1];
		pair[k][0] = _mm512_ternarylogic_epi64(a, b, b, 0x03); /* neither */
		pair[k][1] = _mm512_andnot_si512(b, a);
		pair[k][2] = _mm512_andnot_si512(a, b);
		pair[k][3] = _mm512_and_si512(a, b);
	}
#pragma GCC unroll 16
	for (unsigned i = 0; i < 16; i++)
		out[i] = _mm512_and_si512(pair[0][i % 4], pair[1][i / 4]);
}

/* Adds the 64-bit sums of each vector. */
INLINE void add_sums(const __m512i part[16], uint32_t sum[16])
{
	const __m512i order =
		_mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
	__m512i v[8];
	/* Part i + 8 in the high halves of part i. */
#pragma GCC unroll 8
	for (unsigned i = 0; i < 8; i++)
		v[i] = _mm512_or_si512(part[i], _mm512_slli_epi64(part[i + 8], 32));
#pragma GCC unroll 4
	for (unsigned i = 0; i < 4; i++)
		v[i] = _mm512_add_epi32(_mm512_unpacklo_epi64(v[2 * i], v[2 * i + 1]),
		                        _mm512_unpackhi_epi64(v[2 * i], v[2 * i + 1]));
#pragma GCC unroll 3
	for (unsigned i = 0; i < 3; i++) {
		__m512i a = i < 2 ? v[2 * i] : v[0], b = i < 2 ? v[2 * i + 1] : v[1];
		v[i < 2 ? i : 0] = _mm512_add_epi32(_mm512_shuffle_i64x2(a, b, 0x88),
		                                    _mm512_shuffle_i64x2(a, b, 0xDD));
	}
	__m512i all = _mm512_permutexvar_epi32(order, v[0]);
	_mm512_storeu_si512(sum, _mm512_add_epi32(all, _mm512_loadu_si512(sum)));
}

static TARGET void count(const uint8_t *plane, size_t size, uint32_t sum[256])
{
	__m512i part[16][16], low[GROUPS][16], high[16][GROUPS];
	unsigned seen = 0; /* a bit for each value of the high bits */
	size_t i = 0;
	for (; size - i >= 512 * GROUPS; i += 512 * GROUPS) {
		for (unsigned g = 0; g < GROUPS; g++) {
			__m512i bit[8], value[16];
			bits_of(plane + i + 512 * g, bit);
			values_of(bit, low[g]);
			values_of(bit + 4, value);
#pragma GCC unroll 16
			for (unsigned h = 0; h < 16; h++)
				high[h][g] = value[h];
		}
		for (unsigned h = 0; h < 16; h++) {
			__m512i any = high[h][0];
#pragma GCC unroll 4
			for (unsigned g = 1; g < GROUPS; g++)
				any = _mm512_or_si512(any, high[h][g]);
			if (!_mm512_test_epi64_mask(any, any))
				continue;
			if (!(seen >> h & 1))
				memset(part[h], 0, sizeof part[h]);
			seen |= 1U << h;
#pragma GCC unroll 16
			for (unsigned l = 0; l < 16; l++) {
				__m512i n = part[h][l];
#pragma GCC unroll 4
				for (unsigned g = 0; g < GROUPS; g++)
					n = _mm512_add_epi64(
						n, _mm512_popcnt_epi64(_mm512_and_si512(
							   high[h][g], low[g][l])));
				part[h][l] = n;
			}
		}
	}
	for (unsigned h = 0; h < 16; h++)
		if (seen >> h & 1)
			add_sums(part[h], sum + 16 * h);
	count_by_tables(plane + i, size - i, sum);
}
