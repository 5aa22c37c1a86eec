/*
 * rows_avx512.h: rows of 32 words to rows of halves, for decoding; and of the encoder's strings, of
 * which 16 words of 16 lanes are transposed in registers.  Included by avx512.c after lanes.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

/* Rows of 16 words become columns. */
INLINE void transpose(__m512i v[16])
{
	__m512i t[16];
#pragma GCC unroll 8
	for (unsigned i = 0; i < 16; i += 2) {
		t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
		t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
	}
	/* Of four rows: v[i + j] has column j of each quarter. */
#pragma GCC unroll 4
	for (unsigned i = 0; i < 16; i += 4) {
		v[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
		v[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
		v[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
		v[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
	}
	/* The quarters of four such, transposed. */
#pragma GCC unroll 4
	for (unsigned j = 0; j < 4; j++) {
		__m512i a = _mm512_shuffle_i32x4(v[j], v[4 + j], 0x88);
		__m512i b = _mm512_shuffle_i32x4(v[j], v[4 + j], 0xDD);
		__m512i c = _mm512_shuffle_i32x4(v[8 + j], v[12 + j], 0x88);
		__m512i d = _mm512_shuffle_i32x4(v[8 + j], v[12 + j], 0xDD);
		t[j] = _mm512_shuffle_i32x4(a, c, 0x88);
		t[8 + j] = _mm512_shuffle_i32x4(a, c, 0xDD);
		t[4 + j] = _mm512_shuffle_i32x4(b, d, 0x88);
		t[12 + j] = _mm512_shuffle_i32x4(b, d, 0xDD);
	}
#pragma GCC unroll 16
	for (unsigned i = 0; i < 16; i++)
		v[i] = t[i];
}

/* Numbers of 32 bits to ones of 16. */
INLINE __m512i narrowed(__m512i low, __m512i high)
{
	return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi32_epi16(low)),
	                          _mm512_cvtepi32_epi16(high), 1);
}

/* Which halves there are of a row: lane l has its word's low half if halves[l] is above 2 * row,
 * and the high half if it is above 2 * row + 1. */
INLINE uint64_t halves_of(__m512i halves, unsigned row)
{
	__m512i at = _mm512_set1_epi16((short)(2 * row));
	uint64_t has = _pdep_u64(_mm512_cmpgt_epu16_mask(halves, at), 0x5555555555555555);
	at = _mm512_add_epi16(at, _mm512_set1_epi16(1));
	return has | _pdep_u64(_mm512_cmpgt_epu16_mask(halves, at), 0xAAAAAAAAAAAAAAAA);
}

/* A row that not all lanes have, with zeros for the others.  Gives what follows. */
INLINE const uint8_t *ragged_row(const uint8_t *from, uint64_t has, uint8_t out[128])
{
	for (unsigned k = 0; k < 2; k++) {
		uint32_t some = (uint32_t)(has >> 32 * k);
		unsigned count = (unsigned)__builtin_popcount(some);
		__m512i v = _mm512_maskz_loadu_epi16(_bzhi_u32(UINT32_MAX, count), from);
		_mm512_store_si512(out + 64 * k, _mm512_maskz_expand_epi16(some, v));
		from += 2 * count;
	}
	return from;
}

/* To rows of the words' low halves and of their high ones, in turn. */
static TARGET void gather(uint8_t *strings, const uint8_t *words, const unsigned halves[ANS_LANES],
                          unsigned full)
{
	const __m512i even = _mm512_set_epi16(62, 60, 58, 56, 54, 52, 50, 48, 46, 44, 42, 40, 38,
	                                      36, 34, 32, 30, 28, 26, 24, 22, 20, 18, 16, 14, 12,
	                                      10, 8, 6, 4, 2, 0);
	const __m512i odd = _mm512_add_epi16(even, _mm512_set1_epi16(1));
	__m512i low = _mm512_loadu_si512(halves), high = _mm512_loadu_si512(halves + 16);
	unsigned rows = (_mm512_reduce_max_epu32(_mm512_max_epu32(low, high)) + 1) / 2;
	__m512i own = narrowed(low, high);
	_Alignas(64) uint8_t aside[128];
	for (unsigned r = 0; r < rows; r++) {
		const uint8_t *from = words;
		if (r < full) {
			words += 128;
		} else {
			words = ragged_row(words, halves_of(own, r), aside);
			from = aside;
		}
		__m512i a = _mm512_loadu_si512(from), b = _mm512_loadu_si512(from + 64);
		uint8_t *to = strings + ROWS_AT + 128 * (size_t)r;
		_mm512_store_si512(to, _mm512_permutex2var_epi16(a, even, b));
		_mm512_store_si512(to + 64, _mm512_permutex2var_epi16(a, odd, b));
	}
}

/* Words [at, at + 16) of all strings, to rows. */
INLINE void sixteen_rows(const uint8_t *strings, unsigned at, uint8_t *rows)
{
	for (unsigned half = 0; half < 2; half++) {
		const uint8_t *from = strings + 16 * half * ANS_PITCH + 4 * (size_t)at;
		__m512i v[16];
#pragma GCC unroll 16
		for (unsigned l = 0; l < 16; l++)
			v[l] = _mm512_loadu_si512(from + l * ANS_PITCH);
		transpose(v);
#pragma GCC unroll 16
		for (unsigned r = 0; r < 16; r++)
			_mm512_storeu_si512(rows + 128 * (size_t)r + 64 * half, v[r]);
	}
}

static TARGET void scatter(const uint8_t *strings, uint8_t *words, const uint32_t length[ANS_LANES],
                           unsigned full)
{
	_Alignas(64) uint8_t aside[16 * 128];
	__m512i low = _mm512_loadu_si512(length), high = _mm512_loadu_si512(length + 16);
	unsigned rows = (_mm512_reduce_max_epu32(_mm512_max_epu32(low, high)) + 31) / 32;
	__m512i own = _mm512_srli_epi16(narrowed(low, high), 4);
	unsigned at = 0;
	for (; at + 16 <= full; at += 16, words += 16 * 128)
		sixteen_rows(strings, at, words);
	for (; at < rows; at += 16) {
		sixteen_rows(strings, at, aside);
		for (unsigned r = at; r < at + 16 && r < rows; r++) {
			const uint8_t *row = aside + 128 * (size_t)(r - at);
			uint64_t has = halves_of(own, r);
			for (unsigned k = 0; k < 2; k++) {
				uint32_t some = (uint32_t)(has >> 32 * k);
				unsigned count = (unsigned)__builtin_popcount(some);
				__m512i v = _mm512_load_si512(row + 64 * k);
				v = _mm512_maskz_compress_epi16(some, v);
				_mm512_mask_storeu_epi16(words, _bzhi_u32(UINT32_MAX, count), v);
				words += 2 * count;
			}
		}
	}
}
