/*
 * avx2.c: the loops of the ANS format for AVX2 and BMI2.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,bmi,bmi2")))
#define LOW_BITS(v, n) _bzhi_u64((v), (n))
#include "codec/ans/lanes.h"

const lade__ans_kernels lade__ans_avx2 = {
	LADE_CPU_AVX2, false, decode, encode, gather, scatter, cross, count,
};
#endif
