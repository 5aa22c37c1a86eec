/*
 * copy_avx512.c: the copies of plans by vectors of 64 bytes (F, BW, DQ, VL).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,bmi,bmi2")))
#define LANES 4
#define vec __m512i
#define LOAD(p) _mm512_loadu_si512((const void *)(p))
#define STORE(p, v) _mm512_storeu_si512((void *)(p), (v))
#define STREAM(p, v) _mm512_stream_si512((void *)(p), (v))
#define LOAD_16(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define LOAD_LANES(p, step)                                                                     \
	_mm512_inserti32x4(                                                                     \
		_mm512_inserti32x4(_mm512_inserti32x4(_mm512_castsi128_si512(LOAD_16(p)),       \
	                                              LOAD_16((p) + (step)), 1),                \
	                           LOAD_16((p) + 2 * (step)), 2),                               \
		LOAD_16((p) + 3 * (step)), 3)
#define LOW_1(a, b) _mm512_unpacklo_epi8((a), (b))
#define HIGH_1(a, b) _mm512_unpackhi_epi8((a), (b))
#define LOW_2(a, b) _mm512_unpacklo_epi16((a), (b))
#define HIGH_2(a, b) _mm512_unpackhi_epi16((a), (b))
#define LOW_4(a, b) _mm512_unpacklo_epi32((a), (b))
#define HIGH_4(a, b) _mm512_unpackhi_epi32((a), (b))
#define LOW_8(a, b) _mm512_unpacklo_epi64((a), (b))
#define HIGH_8(a, b) _mm512_unpackhi_epi64((a), (b))
#define SHUFFLE(v, m) _mm512_shuffle_epi8((v), (m))
#define MASK(p) _mm512_broadcast_i32x4(LOAD_16(p))
#include "array/copy_rows.h"

const lade__plan_kernels lade__plan_avx512 = {rows, turn, 64};
#endif
