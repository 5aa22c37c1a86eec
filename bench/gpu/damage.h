/*
 * damage.h: numbers of chance, and how the programs that look for weak kernels damage chunks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BENCH_DAMAGE_H
#define LADE_BENCH_DAMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct chance {
	uint64_t s;
} chance;

static inline uint64_t next(chance *g)
{
	g->s ^= g->s >> 12, g->s ^= g->s << 25, g->s ^= g->s >> 27;
	return g->s * 0x2545F4914F6CDD1DULL;
}

static inline size_t below(chance *g, size_t n)
{
	return n ? (size_t)(next(g) % n) : 0;
}

static inline chance chance_of(uint64_t seed)
{
	chance g = {(seed + 1) * 0x9E3779B97F4A7C15ULL | 1};
	next(&g);
	return g;
}

/* 'size' bytes of words, and now and then some from up to 64 KiB before, as chance has it. */
static inline void words(unsigned char *to, size_t size)
{
	static const unsigned char word[][4] = {"a ", "chun", "of ", "word", "0.25", "\0\0\0\7"};
	chance g = chance_of(4);
	for (size_t i = 0; i < size;) {
		bool far = i > 65536 && below(&g, 50) == 0;
		size_t n = far ? 4 + below(&g, 400) : 4;
		const unsigned char *from = word[below(&g, 6)];
		if (far)
			from = to + i - n - below(&g, 65536 - n);
		for (; n && i < size; n--)
			to[i++] = *from++;
	}
}

/* Bits flipped, bytes replaced, runs of 0x00 and 0xFF, cut short, all random, or as it is; gives
 * the size that is left. */
static inline size_t damage(chance *g, unsigned char *s, size_t size)
{
	switch (below(g, 8)) {
	case 0:
		return below(g, size + 1);
	case 1:
		for (size_t i = 0; i < size; i++)
			s[i] = (unsigned char)next(g);
		break;
	case 2:
	case 3: {
		unsigned char value = below(g, 2) ? 255 : 0;
		size_t i = below(g, size), end = i + below(g, 600);
		for (; i < end && i < size; i++)
			s[i] = value;
		break;
	}
	case 4:
		for (size_t k = 1 + below(g, 5); k && size; k--)
			s[below(g, size)] = (unsigned char)next(g);
		break;
	case 5:
		break;
	default:
		for (size_t k = 1 + below(g, 4); k && size; k--)
			s[below(g, size)] ^= (unsigned char)(1u << below(g, 8));
	}
	return size;
}

#endif
