/*
 * shuffle.c: the byte shuffle of whole buffers and of tiles, and the choice of the kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter/shuffle.h"

#include "filter/blocks.h"

const lade__shuffle_kernels *lade__shuffle_kernels_of(lade_cpu cpu)
{
#if defined(__x86_64__)
	/* GFNI is no level of its own: all processors with AVX-512 VBMI but the first have it. */
	if (cpu >= LADE_CPU_AVX512)
		return __builtin_cpu_supports("gfni") ? &lade__shuffle_gfni : &lade__shuffle_avx512;
	if (cpu >= LADE_CPU_AVX2)
		return &lade__shuffle_avx2;
	if (cpu >= LADE_CPU_SSE42)
		return &lade__shuffle_sse42;
#endif
	(void)cpu;
	return &lade__shuffle_plain;
}

/* ---- large buffers -------------------------------------------------------------------------- */

/* A block's planes, together: in the first-level cache.  Large elements need more for a line of
 * each plane. */
#define BLOCK_BYTES 8192
#define BLOCK_MOST 32768

/*
 * The planes of large buffers are often a power of two apart, so that what is written to each would
 * fall into the same few sets of the cache: they are collected and written past it.
 */
static void blocks_to_planes(const lade__shuffle_kernels *kernels, size_t elem, size_t pitch,
                             size_t count, const uint8_t *src, uint8_t *dst)
{
	_Alignas(64) uint8_t planes[BLOCK_MOST];
	size_t block = block_count(elem, elem <= 32 ? BLOCK_BYTES : BLOCK_MOST, BLOCK_BYTES), n;
	for (size_t done = 0; done < count; done += n) {
		n = block_next(block, count - done, to_line(dst + done));
		kernels->to_planes(src + done * elem, planes, n, elem, n + LINE);
		for (size_t j = 0; j < elem; j++)
			copy_out(dst + done + j * pitch, planes + j * (n + LINE), n, true);
	}
	nontemporal_end(true);
}

/* The output is contiguous, so that a block of it is written past the caches at once. */
static void blocks_from_planes(const lade__shuffle_kernels *kernels, size_t elem, size_t pitch,
                               size_t count, const uint8_t *src, uint8_t *dst)
{
	_Alignas(64) uint8_t elements[BLOCK_BYTES];
	size_t block = sizeof elements / elem, n;
	for (size_t done = 0; done < count; done += n) {
		n = block_next(block, count - done, to_line(src + done));
		kernels->from_planes(src + done, elements, n, elem, pitch);
		copy_out(dst + done * elem, elements, n * elem, true);
	}
	nontemporal_end(true);
}

/* ---- tiles ---------------------------------------------------------------------------------- */

/* The bytes after the last whole element go with the tile that ends there. */
static void copy_tail(size_t elem, size_t total, size_t end, const uint8_t *src, uint8_t *dst)
{
	if (end == total / elem && total % elem)
		memcpy(dst, src, total % elem);
}

void lade__shuffle_tile(size_t elem, const lade_elements *tile, lade_cpu cpu)
{
	const lade__shuffle_kernels *kernels = lade__shuffle_kernels_of(cpu);
	const uint8_t *from = tile->src;
	uint8_t *to = tile->dst;
	size_t total = tile->total, pitch = total / elem;
	size_t off = tile->elem_off, count = tile->elem_count;
	if (total < NONTEMPORAL_BYTES)
		kernels->to_planes(from, to + off, count, elem, pitch);
	else
		blocks_to_planes(kernels, elem, pitch, count, from, to + off);
	copy_tail(elem, total, off + count, from + count * elem, to + pitch * elem);
}

void lade__unshuffle_tile(size_t elem, const lade_elements *tile, lade_cpu cpu)
{
	const lade__shuffle_kernels *kernels = lade__shuffle_kernels_of(cpu);
	const uint8_t *from = tile->src;
	uint8_t *to = tile->dst;
	size_t total = tile->total, pitch = total / elem;
	size_t off = tile->elem_off, count = tile->elem_count;
	if (count * elem < NONTEMPORAL_BYTES)
		kernels->from_planes(from + off, to, count, elem, pitch);
	else
		blocks_from_planes(kernels, elem, pitch, count, from + off, to);
	copy_tail(elem, total, off + count, from + pitch * elem, to + count * elem);
}

void lade__shuffle(size_t elem, size_t size, const void *src, void *dst, lade_cpu cpu)
{
	lade_elements all = {src, dst, 0, size / elem, size, NULL};
	lade__shuffle_tile(elem, &all, cpu);
}

void lade__unshuffle(size_t elem, size_t size, const void *src, void *dst, lade_cpu cpu)
{
	lade_elements all = {src, dst, 0, size / elem, size, NULL};
	lade__unshuffle_tile(elem, &all, cpu);
}
