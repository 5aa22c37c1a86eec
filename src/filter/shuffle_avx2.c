/*
 * shuffle_avx2.c: the shuffle kernels for vectors of 32 bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,bmi,bmi2")))
#define LANES 2
#define vec __m256i
#define LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), (v))
#define LOAD_16(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define LOAD_LANES(p, step) \
	_mm256_inserti128_si256(_mm256_castsi128_si256(LOAD_16(p)), LOAD_16((p) + (step)), 1)
#define STORE_LANE(p, v, lane) \
	_mm_storeu_si128((__m128i *)(void *)(p), _mm256_extracti128_si256((v), (lane)))
#define STREAM_LANE(p, v, lane) \
	_mm_stream_si128((__m128i *)(void *)(p), _mm256_extracti128_si256((v), (lane)))
#define LOW(a, b) _mm256_unpacklo_epi8((a), (b))
#define HIGH(a, b) _mm256_unpackhi_epi8((a), (b))

#include "filter/shuffle_simd.h"

/* transpose_bits() of shuffle_plain.c in the four quarters of a vector. */
INLINE __m256i transpose_bits(__m256i x)
{
	__m256i t = _mm256_and_si256(_mm256_xor_si256(x, _mm256_srli_epi64(x, 7)),
	                             _mm256_set1_epi64x(0x00AA00AA00AA00AA));
	x = _mm256_xor_si256(_mm256_xor_si256(x, t), _mm256_slli_epi64(t, 7));
	t = _mm256_and_si256(_mm256_xor_si256(x, _mm256_srli_epi64(x, 14)),
	                     _mm256_set1_epi64x(0x0000CCCC0000CCCC));
	x = _mm256_xor_si256(_mm256_xor_si256(x, t), _mm256_slli_epi64(t, 14));
	t = _mm256_and_si256(_mm256_xor_si256(x, _mm256_srli_epi64(x, 28)),
	                     _mm256_set1_epi64x(0x00000000F0F0F0F0));
	return _mm256_xor_si256(_mm256_xor_si256(x, t), _mm256_slli_epi64(t, 28));
}

const lade__shuffle_kernels lade__shuffle_avx2 = {
	LADE_CPU_AVX2, to_planes, from_planes, to_rows, from_rows, join_planes,
};
#endif
