/*
 * copy_avx2.c: the copies of plans by vectors of 32 bytes.
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
#define STREAM(p, v) _mm256_stream_si256((__m256i *)(void *)(p), (v))
#define LOAD_16(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define LOAD_LANES(p, step) \
	_mm256_inserti128_si256(_mm256_castsi128_si256(LOAD_16(p)), LOAD_16((p) + (step)), 1)
#define LOW_1(a, b) _mm256_unpacklo_epi8((a), (b))
#define HIGH_1(a, b) _mm256_unpackhi_epi8((a), (b))
#define LOW_2(a, b) _mm256_unpacklo_epi16((a), (b))
#define HIGH_2(a, b) _mm256_unpackhi_epi16((a), (b))
#define LOW_4(a, b) _mm256_unpacklo_epi32((a), (b))
#define HIGH_4(a, b) _mm256_unpackhi_epi32((a), (b))
#define LOW_8(a, b) _mm256_unpacklo_epi64((a), (b))
#define HIGH_8(a, b) _mm256_unpackhi_epi64((a), (b))
#define SHUFFLE(v, m) _mm256_shuffle_epi8((v), (m))
#define MASK(p) _mm256_broadcastsi128_si256(LOAD_16(p))
#include "array/copy_rows.h"

const lade__plan_kernels lade__plan_avx2 = {rows, turn, 32};
#endif
