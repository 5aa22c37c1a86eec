/*
 * ints.h: the kernels of the filters that go through integers in order: delta, zigzag, byteswap.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_FILTER_INTS_H
#define LADE_FILTER_INTS_H

#include <lade/cpu.h>

#include <stddef.h>
#include <stdint.h>

/*
 * One instruction set's kernels, by the logarithm of the element's size (1, 2, 4, 8 bytes).
 * 'src' and 'dst' are of any alignment, and are equal or do not overlap.  Sums wrap.
 *
 * diff: dst[i] = src[i] - src[i - 1], where src[-1] is 'before'
 * sum:  dst[i] = before + src[0] + ... + src[i]; returns the last, or 'before' when count is 0
 * zig:  dst[i] = src[i] * 2 without a sign: 0, -1, 1, -2 are 0, 1, 2, 3
 * zag:  the reverse of zig
 * swap: dst[i] = src[i] with its bytes reversed
 */
typedef struct lade__int_kernels {
	lade_cpu cpu;
	void (*diff[4])(const void *src, void *dst, size_t count, uint64_t before);
	uint64_t (*sum[4])(const void *src, void *dst, size_t count, uint64_t before);
	void (*zig[4])(const void *src, void *dst, size_t count);
	void (*zag[4])(const void *src, void *dst, size_t count);
	void (*swap[4])(const void *src, void *dst, size_t count);
} lade__int_kernels;

extern const lade__int_kernels lade__ints_plain;
#if defined(__x86_64__)
extern const lade__int_kernels lade__ints_sse42, lade__ints_avx2, lade__ints_avx512;
#endif

/* The best ones of a level. */
const lade__int_kernels *lade__int_kernels_of(lade_cpu cpu);

/* 0, 1, 2, 3 for 1, 2, 4, 8. */
static inline unsigned lade__log2(size_t size)
{
	return size >= 8 ? 3 : size >= 4 ? 2 : size >= 2 ? 1 : 0;
}

/* Element 'i' of integers of 1 << log2 bytes, not sign-extended. */
uint64_t lade__int_at(const void *data, unsigned log2, size_t i);

#endif
