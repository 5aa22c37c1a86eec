/*
 * ints_avx2.c: the kernels of ints.h for vectors of 32 bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,bmi,bmi2")))
#include "filter/ints_simple.h"

#define vec __m256i
#define VEC_BYTES 32
#define LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), (v))
#define ADD(bits, a, b) _mm256_add_epi##bits((a), (b))
#define UP(v, n) _mm256_slli_si256((v), (n))
#define LAST(bits, v) _mm256_shuffle_epi8((v), LAST##bits)
/* The lower lane's total, in the upper lane: 0x08 is (zero, lower). */
#define ADD_LANES(bits, v) \
	ADD(bits, v, _mm256_permute2x128_si256(LAST(bits, v), LAST(bits, v), 0x08))
#define TOTAL(bits, v) _mm256_permute4x64_epi64(LAST(bits, v), 0xFF)
#define LAST8 _mm256_set1_epi8(15)
#define LAST16 _mm256_set1_epi16(0x0F0E)
#define LAST32 _mm256_set1_epi32(0x0F0E0D0C)
#define LAST64 _mm256_set1_epi64x(0x0F0E0D0C0B0A0908)
#define ALL(bits, x) ALL##bits(x)
#define ALL8(x) _mm256_set1_epi8((char)(x))
#define ALL16(x) _mm256_set1_epi16((short)(x))
#define ALL32(x) _mm256_set1_epi32((int)(x))
#define ALL64(x) _mm256_set1_epi64x((long long)(x))
#include "filter/ints_sum.h"

const lade__int_kernels lade__ints_avx2 = INT_KERNELS(LADE_CPU_AVX2);
#endif
