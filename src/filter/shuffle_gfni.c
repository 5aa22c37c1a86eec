/*
 * shuffle_gfni.c: the shuffle kernels for vectors of 64 bytes, with an instruction that multiplies
 * matrices of 8 x 8 bits (AVX-512 F, BW, DQ, VL, VBMI, and GFNI).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#if defined(__x86_64__)
#define TARGET \
	__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi,bmi2,gfni")))
#include "filter/shuffle_512.h"

/* Bit j of byte i of a product is the parity of byte i of the first operand and byte 7 - j of the
 * second.  With the unit matrix as the first that is bit i of byte 7 - j: the transpose, once
 * the bytes have been reversed. */
INLINE __m512i transpose_bits(__m512i x)
{
	__m512i reverse = _mm512_set4_epi32(0x08090A0B, 0x0C0D0E0F, 0x00010203, 0x04050607);
	__m512i unit = _mm512_set1_epi64((int64_t)0x8040201008040201ULL);
	return _mm512_gf2p8affine_epi64_epi8(unit, _mm512_shuffle_epi8(x, reverse), 0);
}

const lade__shuffle_kernels lade__shuffle_gfni = {
	LADE_CPU_AVX512, to_planes, from_planes, to_rows, from_rows, join_planes,
};
#endif
