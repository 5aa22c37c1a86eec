/*
 * plain.c: the loops of the ANS format in plain C, and the choice of an instruction set's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define TARGET
#define LOW_BITS(v, n) ((v) & (((uint64_t)1 << ((n)&63)) - 1))
#include "codec/ans/lanes.h"

const lade__ans_kernels lade__ans_plain = {
	LADE_CPU_PLAIN, false, decode, encode, gather, scatter, cross, count,
};

const lade__ans_kernels *lade__ans_kernels_of(lade_cpu cpu)
{
#if defined(__x86_64__)
	if (cpu >= LADE_CPU_AVX512)
		return &lade__ans_avx512;
	if (cpu >= LADE_CPU_AVX2)
		return &lade__ans_avx2;
#endif
	(void)cpu;
	return &lade__ans_plain;
}
