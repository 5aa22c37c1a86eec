/*
 * shuffle.c: byte and bit shuffle of whole buffers and of tiles, on top of the kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter/shuffle.h"

#include <string.h>

static const lade__shuffle_kernels *kernels_of(lade_cpu cpu)
{
	(void)cpu;
	return &lade__shuffle_plain;
}

/* ---- byte shuffle ------------------------------------------------------------------------- */

/* The bytes after the last whole element belong to the tile that ends there. */
static size_t tail_size(size_t elem, size_t total, size_t off, size_t count)
{
	return off + count == total / elem ? total % elem : 0;
}

static void copy(void *dst, const void *src, size_t size)
{
	if (size)
		memcpy(dst, src, size);
}

void lade__shuffle_tile(size_t elem, size_t total, size_t off, size_t count, const void *src,
                        void *dst, lade_cpu cpu)
{
	const uint8_t *from = src;
	uint8_t *to = dst;
	size_t pitch = total / elem, tail = tail_size(elem, total, off, count);
	kernels_of(cpu)->to_planes(from, to + off, count, elem, pitch);
	copy(to + pitch * elem, from + count * elem, tail);
}

void lade__unshuffle_tile(size_t elem, size_t total, size_t off, size_t count, const void *src,
                          void *dst, lade_cpu cpu)
{
	const uint8_t *from = src;
	uint8_t *to = dst;
	size_t pitch = total / elem, tail = tail_size(elem, total, off, count);
	kernels_of(cpu)->from_planes(from + off, to, count, elem, pitch);
	copy(to + count * elem, from + pitch * elem, tail);
}

void lade__shuffle(size_t elem, size_t size, const void *src, void *dst, lade_cpu cpu)
{
	lade__shuffle_tile(elem, size, 0, size / elem, src, dst, cpu);
}

void lade__unshuffle(size_t elem, size_t size, const void *src, void *dst, lade_cpu cpu)
{
	lade__unshuffle_tile(elem, size, 0, size / elem, src, dst, cpu);
}

/* ---- bit shuffle -------------------------------------------------------------------------- */

/* Elements that pass through the planes at a time: a multiple of 8 whose planes stay in the
 * first-level cache. */
#define BLOCK_BYTES 16384

static size_t block_count(size_t elem)
{
	return BLOCK_BYTES / elem / 64 * 64;
}

/* The single bits of elements that do not fill a byte of the rows: [off, off + count), inside
 * one group of 8.  A group's first bits set the whole byte, later ones are added to it. */
static void bits_to_rows(size_t elem, size_t pitch, size_t off, size_t count, const uint8_t *src,
                         uint8_t *dst)
{
	for (size_t j = 0; j < elem; j++) {
		for (size_t k = 0; k < 8; k++) {
			uint8_t *byte = dst + (8 * j + k) * pitch + off / 8;
			unsigned bits = off % 8 ? *byte : 0;
			for (size_t i = 0; i < count; i++)
				bits |= ((src[i * elem + j] >> k) & 1u) << (off % 8 + i);
			*byte = (uint8_t)bits;
		}
	}
}

static void bits_from_rows(size_t elem, size_t pitch, size_t off, size_t count,
                           const uint8_t *src, uint8_t *dst)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < elem; j++) {
			unsigned byte = 0;
			for (size_t k = 0; k < 8; k++) {
				unsigned row = src[(8 * j + k) * pitch + off / 8];
				byte |= ((row >> (off % 8 + i)) & 1u) << k;
			}
			dst[i * elem + j] = (uint8_t)byte;
		}
	}
}

/* Whole groups of 8: 'off' and 'count' are multiples of 8; 'pitch' is a row's bytes. */
static void groups_to_rows(const lade__shuffle_kernels *kernels, size_t elem, size_t pitch,
                           size_t off, size_t count, const uint8_t *src, uint8_t *dst)
{
	_Alignas(64) uint8_t planes[BLOCK_BYTES];
	size_t block = block_count(elem);
	for (size_t done = 0; done < count; done += block) {
		size_t n = count - done < block ? count - done : block;
		kernels->to_planes(src + done * elem, planes, n, elem, n);
		for (size_t j = 0; j < elem; j++)
			kernels->to_rows(planes + j * n, dst + 8 * j * pitch + (off + done) / 8, n, pitch);
	}
}

static void groups_from_rows(const lade__shuffle_kernels *kernels, size_t elem, size_t pitch,
                             size_t off, size_t count, const uint8_t *src, uint8_t *dst)
{
	_Alignas(64) uint8_t planes[BLOCK_BYTES];
	size_t block = block_count(elem);
	for (size_t done = 0; done < count; done += block) {
		size_t n = count - done < block ? count - done : block;
		for (size_t j = 0; j < elem; j++)
			kernels->from_rows(src + 8 * j * pitch + (off + done) / 8, planes + j * n, n,
			                   pitch);
		kernels->from_planes(planes, dst + done * elem, n, elem, n);
	}
}

/* How a tile falls apart: bits up to a multiple of 8, whole groups, bits, and elements after the
 * last group of the buffer, which are not transposed. */
typedef struct bit_parts {
	size_t head, groups, tail, rest; /* elements; they sum up to the tile's */
} bit_parts;

static bit_parts split_tile(size_t elem, size_t total, size_t off, size_t count)
{
	size_t end = total / elem / 8 * 8; /* elements that are transposed */
	size_t in = off >= end ? 0 : count < end - off ? count : end - off;
	bit_parts p = {.rest = count - in};
	p.head = off % 8 ? 8 - off % 8 : 0;
	if (p.head > in)
		p.head = in;
	p.groups = (in - p.head) / 8 * 8;
	p.tail = in - p.head - p.groups;
	return p;
}

void lade__bitshuffle_tile(size_t elem, size_t total, size_t off, size_t count, const void *src,
                           void *dst, lade_cpu cpu)
{
	const uint8_t *from = src;
	uint8_t *to = dst;
	size_t pitch = total / elem / 8;
	bit_parts p = split_tile(elem, total, off, count);
	if (p.head)
		bits_to_rows(elem, pitch, off, p.head, from, to);
	off += p.head;
	from += p.head * elem;
	groups_to_rows(kernels_of(cpu), elem, pitch, off, p.groups, from, to);
	off += p.groups;
	from += p.groups * elem;
	if (p.tail)
		bits_to_rows(elem, pitch, off, p.tail, from, to);
	off += p.tail;
	from += p.tail * elem;
	copy(to + off * elem, from, p.rest * elem + tail_size(elem, total, off, p.rest));
}

void lade__bitunshuffle_tile(size_t elem, size_t total, size_t off, size_t count,
                             const void *src, void *dst, lade_cpu cpu)
{
	const uint8_t *from = src;
	uint8_t *to = dst;
	size_t pitch = total / elem / 8;
	bit_parts p = split_tile(elem, total, off, count);
	if (p.head)
		bits_from_rows(elem, pitch, off, p.head, from, to);
	off += p.head;
	to += p.head * elem;
	groups_from_rows(kernels_of(cpu), elem, pitch, off, p.groups, from, to);
	off += p.groups;
	to += p.groups * elem;
	if (p.tail)
		bits_from_rows(elem, pitch, off, p.tail, from, to);
	off += p.tail;
	to += p.tail * elem;
	copy(to, from + off * elem, p.rest * elem + tail_size(elem, total, off, p.rest));
}

void lade__bitshuffle(size_t elem, size_t size, const void *src, void *dst, lade_cpu cpu)
{
	lade__bitshuffle_tile(elem, size, 0, size / elem, src, dst, cpu);
}

void lade__bitunshuffle(size_t elem, size_t size, const void *src, void *dst, lade_cpu cpu)
{
	lade__bitunshuffle_tile(elem, size, 0, size / elem, src, dst, cpu);
}
