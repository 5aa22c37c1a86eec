/*
 * avx512.c: the loops of the ANS format for AVX-512.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET \
	__attribute__(( \
		target("avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2," \
	               "avx512vpopcntdq,bmi,bmi2,lzcnt,popcnt")))
#include "codec/ans/lanes.h"

#include "codec/ans/count_avx512.h"
#include "codec/ans/decode_avx512.h"
#include "codec/ans/encode_avx512.h"
#include "codec/ans/rows_avx512.h"

const lade__ans_kernels lade__ans_avx512 = {
	LADE_CPU_AVX512, true, decode, encode, gather, scatter, cross, count,
};
#endif
