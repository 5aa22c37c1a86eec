/*
 * ints_sse42.c: the kernels of ints.h for vectors of 16 bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("sse4.2")))
#include "filter/ints_simple.h"

#define vec __m128i
#define VEC_BYTES 16
#define LOAD(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define STORE(p, v) _mm_storeu_si128((__m128i *)(void *)(p), (v))
#define ADD(bits, a, b) _mm_add_epi##bits((a), (b))
#define UP(v, n) _mm_slli_si128((v), (n))
#define ADD_LANES(bits, v) (v)
#define TOTAL(bits, v) _mm_shuffle_epi8((v), LAST##bits)
#define LAST8 _mm_set1_epi8(15)
#define LAST16 _mm_set1_epi16(0x0F0E)
#define LAST32 _mm_set1_epi32(0x0F0E0D0C)
#define LAST64 _mm_set1_epi64x(0x0F0E0D0C0B0A0908)
#define ALL(bits, x) ALL##bits(x)
#define ALL8(x) _mm_set1_epi8((char)(x))
#define ALL16(x) _mm_set1_epi16((short)(x))
#define ALL32(x) _mm_set1_epi32((int)(x))
#define ALL64(x) _mm_set1_epi64x((long long)(x))
#include "filter/ints_sum.h"

const lade__int_kernels lade__ints_sse42 = INT_KERNELS(LADE_CPU_SSE42);
#endif
