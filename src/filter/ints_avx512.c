/*
 * ints_avx512.c: the kernels of ints.h for vectors of 64 bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi,bmi2")))
#include "filter/ints_simple.h"

#define vec __m512i
#define VEC_BYTES 64
#define LOAD(p) _mm512_loadu_si512((const void *)(p))
#define STORE(p, v) _mm512_storeu_si512((void *)(p), (v))
#define ADD(bits, a, b) _mm512_add_epi##bits((a), (b))
#define UP(v, n) _mm512_bslli_epi128((v), (n))
#define LAST(bits, v) _mm512_shuffle_epi8((v), LAST##bits)
/* The lanes' totals t0 to t3, added one lane up, and these sums two lanes up:
 * (0, t0, t0 + t1, t0 + t1 + t2) is added to the lanes. */
#define ADD_LANES(bits, v) add_lanes##bits(v)
#define ADD_LANES_FN(bits)                                                                    \
	static inline TARGET __m512i add_lanes##bits(__m512i v)                               \
	{                                                                                     \
		__m512i zero = _mm512_setzero_si512(), t = LAST(bits, v);                     \
		t = ADD(bits, t, _mm512_alignr_epi64(t, zero, 6));                            \
		t = ADD(bits, t, _mm512_alignr_epi64(t, zero, 4));                            \
		return ADD(bits, v, _mm512_alignr_epi64(t, zero, 6));                         \
	}
#define TOTAL(bits, v) _mm512_shuffle_i64x2(LAST(bits, v), LAST(bits, v), 0xFF)
#define LAST8 _mm512_set1_epi8(15)
#define LAST16 _mm512_set1_epi16(0x0F0E)
#define LAST32 _mm512_set1_epi32(0x0F0E0D0C)
#define LAST64 _mm512_set1_epi64(0x0F0E0D0C0B0A0908)
#define ALL(bits, x) ALL##bits(x)
#define ALL8(x) _mm512_set1_epi8((char)(x))
#define ALL16(x) _mm512_set1_epi16((short)(x))
#define ALL32(x) _mm512_set1_epi32((int)(x))
#define ALL64(x) _mm512_set1_epi64((long long)(x))
ADD_LANES_FN(8)
ADD_LANES_FN(16)
ADD_LANES_FN(32)
ADD_LANES_FN(64)
#include "filter/ints_sum.h"

const lade__int_kernels lade__ints_avx512 = INT_KERNELS(LADE_CPU_AVX512);
#endif
