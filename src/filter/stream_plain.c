/*
 * stream_plain.c: the kernels of stream.h without any instruction set in particular, and the
 * choice.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define TARGET
#include "filter/stream_simple.h"

#define SUM(bits)                                                                             \
	static uint64_t sum##bits(const void *src, void *dst, size_t count, uint64_t before)  \
	{                                                                                     \
		return sum_loop##bits(src, dst, count, before);                               \
	}

SUM(8)
SUM(16)
SUM(32)
SUM(64)

const lade__stream_kernels lade__stream_plain = STREAM_KERNELS(LADE_CPU_PLAIN);

const lade__stream_kernels *lade__stream_kernels_of(lade_cpu cpu)
{
#if defined(__x86_64__)
	if (cpu >= LADE_CPU_AVX512)
		return &lade__stream_avx512;
	if (cpu >= LADE_CPU_AVX2)
		return &lade__stream_avx2;
	if (cpu >= LADE_CPU_SSE42)
		return &lade__stream_sse42;
#endif
	(void)cpu;
	return &lade__stream_plain;
}

uint64_t lade__stream_at(const void *data, unsigned log2, size_t i)
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
