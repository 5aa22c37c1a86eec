/*
 * shuffle_sse42.c: the shuffle kernels for vectors of 16 bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("sse4.2")))
#define LANES 1
#define vec __m128i
#define LOAD(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define STORE(p, v) _mm_storeu_si128((__m128i *)(void *)(p), (v))
#define LOAD_LANES(p, step) LOAD(p)
#define STORE_LANE(p, v, lane) STORE(p, v)
#define STREAM_LANE(p, v, lane) _mm_stream_si128((__m128i *)(void *)(p), (v))
#define LOW(a, b) _mm_unpacklo_epi8((a), (b))
#define HIGH(a, b) _mm_unpackhi_epi8((a), (b))

#include "filter/shuffle_simd.h"

/* transpose_bits() of shuffle_plain.c in both halves of a vector. */
INLINE __m128i transpose_bits(__m128i x)
{
	__m128i t = _mm_and_si128(_mm_xor_si128(x, _mm_srli_epi64(x, 7)),
	                          _mm_set1_epi64x(0x00AA00AA00AA00AA));
	x = _mm_xor_si128(_mm_xor_si128(x, t), _mm_slli_epi64(t, 7));
	t = _mm_and_si128(_mm_xor_si128(x, _mm_srli_epi64(x, 14)),
	                  _mm_set1_epi64x(0x0000CCCC0000CCCC));
	x = _mm_xor_si128(_mm_xor_si128(x, t), _mm_slli_epi64(t, 14));
	t = _mm_and_si128(_mm_xor_si128(x, _mm_srli_epi64(x, 28)),
	                  _mm_set1_epi64x(0x00000000F0F0F0F0));
	return _mm_xor_si128(_mm_xor_si128(x, t), _mm_slli_epi64(t, 28));
}

const lade__shuffle_kernels lade__shuffle_sse42 = {
	LADE_CPU_SSE42, to_planes, from_planes, to_rows, from_rows, join_planes,
};
#endif
