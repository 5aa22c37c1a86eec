/*
 * block_avx2.h: what avx2.c and avx512.c share: the bits of a unit of elements of 4 or 8 bytes, and
 * the least of a vector's elements.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stddef.h>
#include <stdint.h>

#define INLINE_AVX2 static inline TARGET __attribute__((always_inline, unused))
#define LOAD_8(p) _mm_loadl_epi64((const __m128i *)(const void *)(p))
#define LOAD_16(p) _mm_loadu_si128((const __m128i *)(const void *)(p))

/*
 * Eight values of 'width' bits, at most 32, from 'from' on, as elements of 4 or 8 bytes; reads up
 * to 16 bytes behind them.  The second four begin 0 or 4 bits behind a byte's begin.
 */
INLINE_AVX2 void unpack_words(unsigned log, const uint8_t *from, unsigned width, uint8_t *to)
{
	__m128i a = LOAD_16(from), b = LOAD_16(from + width / 2);
	long long over = 4 * width & 7;
	__m256i out;
	if (width <= 25) {
		/* A value is within the four bytes from its first bit's on. */
		__m256i at = _mm256_mullo_epi16(_mm256_set1_epi32((int)width),
		                                _mm256_setr_epi32(0, 1, 2, 3, 0, 1, 2, 3));
		at = _mm256_add_epi32(
			at, _mm256_and_si256(_mm256_set1_epi32((int)over),
		                             _mm256_setr_epi32(0, 0, 0, 0, -1, -1, -1, -1)));
		__m256i byte = _mm256_shuffle_epi8(
			_mm256_srli_epi32(at, 3),
			_mm256_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12, 0, 0,
		                         0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12));
		byte = _mm256_add_epi8(byte, _mm256_set1_epi32(0x03020100));
		out = _mm256_shuffle_epi8(_mm256_setr_m128i(a, b), byte);
		out = _mm256_srlv_epi32(out, _mm256_and_si256(at, _mm256_set1_epi32(7)));
	} else {
		/* Within five, in halves of 8 bytes, whose last ones do not count. */
		__m256i half[2] = {_mm256_broadcastsi128_si256(a), _mm256_broadcastsi128_si256(b)};
		for (int k = 0; k < 2; k++) {
			__m256i at = _mm256_mullo_epi16(_mm256_set1_epi64x((long long)width),
			                                _mm256_setr_epi64x(0, 1, 2, 3));
			at = _mm256_add_epi64(at, _mm256_set1_epi64x(k ? over : 0));
			__m256i byte = _mm256_shuffle_epi8(
				_mm256_srli_epi64(at, 3),
				_mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 8, 8, 8, 8, 8, 8, 0,
			                         0, 0, 0, 0, 0, 0, 0, 8, 8, 8, 8, 8, 8, 8, 8));
			byte = _mm256_add_epi8(byte, _mm256_set1_epi64x(0x0706050403020100));
			half[k] = _mm256_srlv_epi64(_mm256_shuffle_epi8(half[k], byte),
			                            _mm256_and_si256(at, _mm256_set1_epi64x(7)));
		}
		out = _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(half[0]),
		                                            _mm256_castsi256_ps(half[1]), 0x88));
		out = _mm256_permute4x64_epi64(out, 0xD8);
	}
	out = _mm256_and_si256(out, _mm256_set1_epi32((int)_bzhi_u32(UINT32_MAX, width)));
	if (log == 3) {
		__m256i low = _mm256_cvtepu32_epi64(_mm256_castsi256_si128(out));
		_mm256_storeu_si256((__m256i *)(void *)to, low);
		out = _mm256_cvtepu32_epi64(_mm256_extracti128_si256(out, 1));
		to += 32;
	}
	_mm256_storeu_si256((__m256i *)(void *)to, out);
}
#define UNPACK_WORDS unpack_words

INLINE_AVX2 __m256i least_of(unsigned log, __m256i a, __m256i b)
{
	return log == 0   ? _mm256_min_epu8(a, b)
	       : log == 1 ? _mm256_min_epu16(a, b)
	                  : _mm256_min_epu32(a, b);
}

/* The least of a vector's elements. */
INLINE_AVX2 uint64_t least_in_32(unsigned log, __m256i v)
{
	if (log == 3) {
		uint64_t e[4], least;
		_mm256_storeu_si256((__m256i *)(void *)e, v);
		least = e[0] < e[1] ? e[0] : e[1];
		least = e[2] < least ? e[2] : least;
		return e[3] < least ? e[3] : least;
	}
	v = least_of(log, v, _mm256_permute4x64_epi64(v, 0x4E));
	if (log == 2) {
		v = least_of(log, v, _mm256_shuffle_epi32(v, 0x4E));
		v = least_of(log, v, _mm256_shuffle_epi32(v, 0xB1));
		return (uint32_t)_mm256_cvtsi256_si32(v);
	}
	/* Of bytes a word becomes the least of its two. */
	if (log == 0)
		v = least_of(0, v, _mm256_srli_epi16(v, 8));
	return (uint16_t)_mm_extract_epi16(_mm_minpos_epu16(_mm256_castsi256_si128(v)), 0);
}
