/*
 * ints_plain.c: the kernels of ints.h without any instruction set in particular, and the
 * choice.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define TARGET
#include "filter/ints_simple.h"

#define SUM(bits)                                                                             \
	static uint64_t sum##bits(const void *src, void *dst, size_t count, uint64_t before)  \
	{                                                                                     \
		return sum_loop##bits(src, dst, count, before);                               \
	}

SUM(8)
SUM(16)
SUM(32)
SUM(64)

const lade__int_kernels lade__ints_plain = INT_KERNELS(LADE_CPU_PLAIN);

const lade__int_kernels *lade__int_kernels_of(lade_cpu cpu)
{
#if defined(__x86_64__)
	if (cpu >= LADE_CPU_AVX512)
		return &lade__ints_avx512;
	if (cpu >= LADE_CPU_AVX2)
		return &lade__ints_avx2;
	if (cpu >= LADE_CPU_SSE42)
		return &lade__ints_sse42;
#endif
	(void)cpu;
	return &lade__ints_plain;
}

uint64_t lade__int_at(const void *data, unsigned log2, size_t i)
{
	switch (log2) {
	case 0:
		return ((const any8 *)data)[i];
	case 1:
		return ((const any16 *)data)[i];
	case 2:
		return ((const any32 *)data)[i];
	default:
		return ((const any64 *)data)[i];
	}
}
