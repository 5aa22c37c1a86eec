/*
 * rows_avx2.h: rows of 32 words to rows of halves, for decoding; and of the encoder's strings, of
 * which 8 words of 8 lanes are transposed in registers.  Included by avx2.c after lanes.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

/* A row of words to one of their low halves and one of their high ones; each 16 lanes in the order
 * in which VPACKSSDW has them. */
INLINE void put_row(uint8_t *to, const __m256i word[4])
{
	const __m256i apart = _mm256_broadcastsi128_si256(
		_mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
#pragma GCC unroll 2
	for (unsigned i = 0; i < 2; i++) {
		__m256i a = _mm256_shuffle_epi8(word[2 * i], apart);
		__m256i b = _mm256_shuffle_epi8(word[2 * i + 1], apart);
		_mm256_store_si256((__m256i *)(to + 32 * i), _mm256_unpacklo_epi64(a, b));
		_mm256_store_si256((__m256i *)(to + ROW_SIZE + 32 * i),
		                   _mm256_unpackhi_epi64(a, b));
	}
}

/* 8 lanes of a row that not all lanes have: lane l has its word's low half if halves[l] is above
 * 2 * row, and the high half if it is above 2 * row + 1.  Others' are anything.  Reads up to 32
 * bytes; gives what follows. */
INLINE const uint8_t *ragged_words(const uint8_t *from, __m256i halves, unsigned row, __m256i *out)
{
	const __m256i two = _mm256_set1_epi32(2), place = _mm256_set1_epi32(0x03020100);
	const __m256i first = _mm256_broadcastsi128_si256(
		_mm_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12));
	__m256i low = _mm256_cmpgt_epi32(halves, _mm256_set1_epi32((int)(2 * row)));
	__m256i high = _mm256_cmpgt_epi32(halves, _mm256_set1_epi32((int)(2 * row + 1)));
	/* Bytes that lanes have, and those before a lane's in its four. */
	__m256i have = _mm256_add_epi32(_mm256_and_si256(low, two), _mm256_and_si256(high, two));
	__m256i one = _mm256_slli_si256(have, 4);
	__m256i before = _mm256_add_epi32(_mm256_add_epi32(one, _mm256_slli_si256(one, 4)),
	                                  _mm256_slli_si256(one, 8));
	/* Two bits for each half that is there. */
	uint32_t all = (uint32_t)_mm256_movemask_epi8(_mm256_packs_epi32(low, high));
	const uint8_t *middle = from + __builtin_popcount(all & 0xFFFF);
	__m256i v = _mm256_inserti128_si256(
		_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)from)),
		_mm_loadu_si128((const __m128i *)middle), 1);
	*out = _mm256_shuffle_epi8(v, _mm256_add_epi8(_mm256_shuffle_epi8(before, first), place));
	return from + __builtin_popcount(all);
}

/* To rows of the words' low halves and of their high ones, in turn. */
static TARGET void gather(uint8_t *strings, const uint8_t *words, const unsigned halves[ANS_LANES],
                          unsigned full)
{
	uint8_t *to = strings + ROWS_AT, aside[2 * 4 * ANS_LANES];
	__m256i own[4], word[4];
	unsigned most = 0, sum = 0;
	for (unsigned l = 0; l < ANS_LANES; l++) {
		most = halves[l] > most ? halves[l] : most;
		sum += halves[l];
	}
	for (unsigned j = 0; j < 4; j++)
		own[j] = _mm256_loadu_si256((const __m256i *)(halves + 8 * j));
	const uint8_t *end = words + 2 * (size_t)sum;
	for (unsigned r = 0; r < full; r++, words += 4 * ANS_LANES, to += 2 * ROW_SIZE) {
		for (unsigned j = 0; j < 4; j++)
			word[j] = _mm256_loadu_si256((const __m256i *)(words + 32 * j));
		put_row(to, word);
	}
	for (unsigned r = full; 2 * r < most; r++, to += 2 * ROW_SIZE) {
		/* Nothing behind the end is read. */
		if (end && end - words < 4 * ANS_LANES) {
			memcpy(aside, words, (size_t)(end - words));
			words = aside;
			end = NULL;
		}
		for (unsigned j = 0; j < 4; j++)
			words = ragged_words(words, own[j], r, &word[j]);
		put_row(to, word);
	}
}

/* Words [at, at + 8) of all strings, to rows. */
INLINE void eight_rows(const uint8_t *strings, unsigned at, uint8_t *rows)
{
	for (unsigned j = 0; j < 4; j++) {
		const uint8_t *from = strings + 8 * j * ANS_PITCH + 4 * (size_t)at;
		__m256i v[8], t[8];
#pragma GCC unroll 8
		for (unsigned l = 0; l < 8; l++)
			v[l] = _mm256_loadu_si256((const __m256i *)(from + l * ANS_PITCH));
#pragma GCC unroll 4
		for (unsigned l = 0; l < 8; l += 2) {
			t[l] = _mm256_unpacklo_epi32(v[l], v[l + 1]);
			t[l + 1] = _mm256_unpackhi_epi32(v[l], v[l + 1]);
		}
		/* Of four lanes: v[l + r] has word r of each half. */
#pragma GCC unroll 2
		for (unsigned l = 0; l < 8; l += 4) {
			v[l] = _mm256_unpacklo_epi64(t[l], t[l + 2]);
			v[l + 1] = _mm256_unpackhi_epi64(t[l], t[l + 2]);
			v[l + 2] = _mm256_unpacklo_epi64(t[l + 1], t[l + 3]);
			v[l + 3] = _mm256_unpackhi_epi64(t[l + 1], t[l + 3]);
		}
#pragma GCC unroll 4
		for (unsigned r = 0; r < 4; r++) {
			uint8_t *to = rows + 4 * ANS_LANES * r + 32 * j;
			_mm256_storeu_si256((__m256i *)to,
			                    _mm256_permute2x128_si256(v[r], v[4 + r], 0x20));
			_mm256_storeu_si256((__m256i *)(to + 4 * 4 * ANS_LANES),
			                    _mm256_permute2x128_si256(v[r], v[4 + r], 0x31));
		}
	}
}

static TARGET void scatter(const uint8_t *strings, uint8_t *words, const uint32_t length[ANS_LANES],
                           unsigned full)
{
	uint8_t rows[8 * 4 * ANS_LANES], aside[4 * ANS_LANES + 4], more[ANS_LANES];
	unsigned most = 0, sum = 0, at = 0;
	for (unsigned l = 0; l < ANS_LANES; l++) {
		most = length[l] > most ? length[l] : most;
		sum += length[l];
		more[l] =
			(uint8_t)(length[l] / 16 - 2 * full); /* what a description has room for */
	}
	const uint8_t *end = words + sum / 8;
	__m256i left = _mm256_loadu_si256((const __m256i *)more);
	const __m256i two = _mm256_set1_epi8(2);
	for (; at + 8 <= full; at += 8, words += 8 * 4 * ANS_LANES)
		eight_rows(strings, at, words);
	for (; 32 * at < most; at += 8) {
		eight_rows(strings, at, rows);
		for (unsigned r = at; r < at + 8 && 32 * r < most; r++) {
			const uint8_t *row = rows + 4 * ANS_LANES * (r - at);
			if (r < full) {
				memcpy(words, row, 4 * ANS_LANES);
				words += 4 * ANS_LANES;
				continue;
			}
			/* The bytes that lanes have; each lane writes 4, the next one over those
			 * that it does not have. */
			uint8_t have[ANS_LANES];
			__m256i halves = _mm256_min_epu8(left, two);
			_mm256_storeu_si256((__m256i *)have, _mm256_add_epi8(halves, halves));
			left = _mm256_subs_epu8(left, two);
			bool near = end - words < (ptrdiff_t)sizeof aside;
			uint8_t *to = near ? aside : words;
			for (unsigned l = 0; l < ANS_LANES; l++) {
				memcpy(to, row + 4 * l, 4);
				to += have[l];
			}
			if (near)
				memcpy(words, aside, (size_t)(to - aside));
			words += near ? to - aside : to - words;
		}
	}
}
