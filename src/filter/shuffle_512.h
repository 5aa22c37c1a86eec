/*
 * shuffle_512.h: the vectors of 64 bytes that shuffle_simd.h is written on, for the two files that
 * use them.  TARGET is defined before.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <immintrin.h>

#define LANES 4
#define vec __m512i
#define LOAD(p) _mm512_loadu_si512((const void *)(p))
#define STORE(p, v) _mm512_storeu_si512((void *)(p), (v))
#define LOAD_16(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define LOAD_LANES(p, step)                                                                     \
	_mm512_inserti32x4(                                                                     \
		_mm512_inserti32x4(_mm512_inserti32x4(_mm512_castsi128_si512(LOAD_16(p)),       \
	                                              LOAD_16((p) + (step)), 1),                \
	                           LOAD_16((p) + 2 * (step)), 2),                               \
		LOAD_16((p) + 3 * (step)), 3)
#define STORE_LANE(p, v, lane) \
	_mm_storeu_si128((__m128i *)(void *)(p), _mm512_extracti32x4_epi32((v), (lane)))
#define STREAM_LANE(p, v, lane) \
	_mm_stream_si128((__m128i *)(void *)(p), _mm512_extracti32x4_epi32((v), (lane)))
#define LOW(a, b) _mm512_unpacklo_epi8((a), (b))
#define HIGH(a, b) _mm512_unpackhi_epi8((a), (b))

#include "filter/shuffle_simd.h"
