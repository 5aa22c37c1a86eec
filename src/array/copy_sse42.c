/*
 * copy_sse42.c: the copies of plans by vectors of 16 bytes.
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
#define LOW_1(a, b) _mm_unpacklo_epi8((a), (b))
#define HIGH_1(a, b) _mm_unpackhi_epi8((a), (b))
#define LOW_2(a, b) _mm_unpacklo_epi16((a), (b))
#define HIGH_2(a, b) _mm_unpackhi_epi16((a), (b))
#define LOW_4(a, b) _mm_unpacklo_epi32((a), (b))
#define HIGH_4(a, b) _mm_unpackhi_epi32((a), (b))
#define LOW_8(a, b) _mm_unpacklo_epi64((a), (b))
#define HIGH_8(a, b) _mm_unpackhi_epi64((a), (b))
#define SHUFFLE(v, m) _mm_shuffle_epi8((v), (m))
#define MASK(p) LOAD(p)
#include "array/copy_rows.h"

const lade__plan_kernels lade__plan_sse42 = {rows, turn, 16};
#endif
