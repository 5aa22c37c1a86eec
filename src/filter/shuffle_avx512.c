/*
 * shuffle_avx512.c: the shuffle kernels for vectors of 64 bytes (F, BW, DQ, VL, VBMI).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#if defined(__x86_64__)
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi,bmi2")))
#include "filter/shuffle_512.h"

/* transpose_bits() of shuffle_plain.c in each eighth of a vector.  Of three-operand functions,
 * 0x28 is (a ^ b) & c and 0x96 is a ^ b ^ c. */
INLINE __m512i transpose_bits(__m512i x)
{
	__m512i t = _mm512_ternarylogic_epi64(x, _mm512_srli_epi64(x, 7),
	                                      _mm512_set1_epi64(0x00AA00AA00AA00AA), 0x28);
	x = _mm512_ternarylogic_epi64(x, t, _mm512_slli_epi64(t, 7), 0x96);
	t = _mm512_ternarylogic_epi64(x, _mm512_srli_epi64(x, 14),
	                              _mm512_set1_epi64(0x0000CCCC0000CCCC), 0x28);
	x = _mm512_ternarylogic_epi64(x, t, _mm512_slli_epi64(t, 14), 0x96);
	t = _mm512_ternarylogic_epi64(x, _mm512_srli_epi64(x, 28),
	                              _mm512_set1_epi64(0x00000000F0F0F0F0), 0x28);
	return _mm512_ternarylogic_epi64(x, t, _mm512_slli_epi64(t, 28), 0x96);
}

const lade__shuffle_kernels lade__shuffle_avx512 = {
	LADE_CPU_AVX512, to_planes, from_planes, to_rows, from_rows, join_planes,
};
#endif
