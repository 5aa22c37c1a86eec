/*
 * blocks.h: how the shuffles cut large buffers into blocks that stay in the cache, and write what
 * does not fit the cache past it.  Leaves out the kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_FILTER_BLOCKS_H
#define LADE_FILTER_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#define LINE ((size_t)64) /* bytes of a line of the cache */

/* Outputs from this size on do not fit the caches: they are written past them, which saves
 * reading their lines first. */
#define NONTEMPORAL_BYTES ((size_t)32 << 20)

/*
 * Elements of a block whose planes fill at most 'bytes', and 'most' (at least 64) elements at
 * most: a multiple of 64, and of 512 (a line of each row of bits) if there are as many.  The planes
 * are one line further apart than they are long, since planes a power of two apart would share
 * few sets of the cache: elem * (n + LINE) <= bytes.  'bytes' is at least 128 * elem, which leaves
 * room for 64 elements.
 */
static inline size_t block_count(size_t elem, size_t bytes, size_t most)
{
	size_t n = bytes / elem / LINE * LINE - LINE;
	if (n > most)
		n = most;
	return n >= 8 * LINE ? n / (8 * LINE) * (8 * LINE) : n;
}

/* Bytes up to the next line of the cache. */
static inline size_t to_line(const void *p)
{
	return (0 - (size_t)(uintptr_t)p) % LINE;
}

/* The next block of 'left' elements; 'first', if not 0, makes those that follow start at a line. */
static inline size_t block_next(size_t block, size_t left, size_t first)
{
	size_t n = first && first < block ? first : block;
	return n < left ? n : left;
}

/* Copies past the caches if 'nontemporal'; nontemporal_end() must follow before anybody else may
 * look. */
static inline void copy_out(uint8_t *dst, const uint8_t *src, size_t size, bool nontemporal)
{
#if defined(__x86_64__)
	size_t head = to_line(dst);
	if (nontemporal && size >= LINE + head) {
		memcpy(dst, src, head);
		size_t i = head;
		for (; i + LINE <= size; i += LINE) {
			for (size_t k = 0; k < LINE; k += 16) {
				__m128i v = _mm_loadu_si128(
					(const __m128i *)(const void *)(src + i + k));
				_mm_stream_si128((__m128i *)(void *)(dst + i + k), v);
			}
		}
		memcpy(dst + i, src + i, size - i);
		return;
	}
#endif
	(void)nontemporal;
	memcpy(dst, src, size);
}

static inline void nontemporal_end(bool nontemporal)
{
#if defined(__x86_64__)
	if (nontemporal)
		_mm_sfence();
#endif
	(void)nontemporal;
}

#endif
