/*
 * kernels.h: the inner loops of the cascaded codec, one set for each instruction set.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CODEC_CASCADED_KERNELS_H
#define LADE_CODEC_CASCADED_KERNELS_H

#include <lade/cpu.h>

#include <stddef.h>
#include <stdint.h>

/* What the elements of an array are between, seen as unsigned numbers after '^ flip'. */
typedef struct lade__cascaded_range {
	uint64_t low, high;
} lade__cascaded_range;

/*
 * By the logarithm of the element's size.  Pointers to elements are of any alignment; nothing
 * overlaps.
 *
 * unpack: dst[i] = base + the i-th entry of 'width' bits at src; reads nothing at or behind 'end',
 *         which is not before the array's last byte
 * expand: each value as often as its count says, 1 to 8192; the counts sum up to 'n', and nothing
 *         is written behind the n-th element
 * range:  of 'count' elements, at least one
 * runs:   takes runs of equal elements out: values and lengths, and how many; 0 where there are
 *         more than 'most', which the arrays have room for
 * turn:   dst[i] = src[i] rotated right by 'by' bits, 1 to one less than an element has; both may
 *         be the same
 * pack:   the low 'width' bits of v[i] - base; 'dst' has 8 bytes behind the array, which become
 *         0 or stay
 */
typedef struct lade__cascaded_kernels {
	void (*unpack[4])(const uint8_t *src, const uint8_t *end, void *dst, size_t count,
	                  unsigned width, uint64_t base);
	void (*expand[4])(const void *values, const uint16_t *counts, size_t runs, void *dst,
	                  size_t n);
	lade__cascaded_range (*range[4])(const void *values, size_t count, uint64_t flip);
	size_t (*runs[4])(const void *src, size_t count, void *values, uint16_t *counts,
	                  size_t most);
	void (*turn[4])(const void *src, void *dst, size_t count, unsigned by);
	void (*pack[4])(const void *values, size_t count, unsigned width, uint64_t base,
	                uint8_t *dst);
} lade__cascaded_kernels;

extern const lade__cascaded_kernels lade__cascaded_plain;
#if defined(__x86_64__)
extern const lade__cascaded_kernels lade__cascaded_avx2, lade__cascaded_avx512;
#endif

/* The best ones of a level. */
const lade__cascaded_kernels *lade__cascaded_kernels_of(lade_cpu cpu);

#endif
