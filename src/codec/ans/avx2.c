/*
 * avx2.c: the loops of the ANS format for AVX2 and BMI2.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,bmi,bmi2,popcnt")))
#include "codec/ans/lanes.h"

/* Registers of 8 lanes; lanes 0 to 7 are in the first. */
#define EIGHTS (ANS_LANES / 8)

/* Stores what is loaded again in parts: compilers would take registers apart by shuffles. */
INLINE void put(void *to, __m256i v)
{
	_mm256_store_si256(to, v);
	__asm__ volatile("" : "+m"(*(__m256i *)to));
}

/*
 * What a table has at eight places, 'place' being a macro of their number.  Gathers take longer;
 * broadcasts are loads and nothing else, and blends go to more ports of a processor than shuffles.
 */
#define EIGHT_OF(table, place) \
	_mm256_blend_epi32(FOUR_OF(table, place, 0), FOUR_OF(table, place, 4), 0xF0)
#define FOUR_OF(table, place, i) \
	_mm256_blend_epi32(TWO_OF(table, place, i), TWO_OF(table, place, (i) + 2), 0xCC)
#define TWO_OF(table, place, i) \
	_mm256_blend_epi32(_mm256_set1_epi32((int)(table)[place(i)]), \
	                   _mm256_set1_epi32((int)(table)[place((i) + 1)]), 0xAA)

#include "codec/ans/decode_avx2.h"
#include "codec/ans/encode_avx2.h"
#include "codec/ans/rows_avx2.h"

const lade__ans_kernels lade__ans_avx2 = {
	LADE_CPU_AVX2, false, decode, encode, gather, scatter, cross, count_by_tables,
};
#endif
