/*
 * kernels_plain.c: the kernels of kernels.h in C.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define TARGET
#include "codec/cascaded/kernels_simple.h"

#define UNPACK(bits) \
	static void unpack##bits(const uint8_t *src, const uint8_t *end, void *dst, size_t count, \
	                         unsigned width, uint64_t base) \
	{ \
		if (width) \
			unpack_from##bits((packed){src, end, width, base}, dst, 0, count); \
		else \
			fill##bits(dst, count, base); \
	}

UNPACK(8)
UNPACK(16)
UNPACK(32)
UNPACK(64)

const lade__cascaded_kernels lade__cascaded_plain = CASCADED_KERNELS;

const lade__cascaded_kernels *lade__cascaded_kernels_of(lade_cpu cpu)
{
#if defined(__x86_64__)
	if (cpu >= LADE_CPU_AVX512)
		return &lade__cascaded_avx512;
	if (cpu >= LADE_CPU_AVX2)
		return &lade__cascaded_avx2;
#endif
	(void)cpu;
	return &lade__cascaded_plain;
}
