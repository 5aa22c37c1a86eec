/*
 * guard.h: buffers that end (or begin) at a page that must not be touched, so that one byte too
 * many is a crash and not luck.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_GUARD_H
#define LADE_TESTS_GUARD_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct guard {
	uint8_t *data; /* 'size' bytes, the next one faults (or the one before, see below) */
	size_t size;
	void *map;
	size_t map_size;
} guard;

/* 'at_end': the byte after the last one faults; otherwise the byte before the first one. */
static inline guard guard_new(size_t size, int at_end)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t body = (size + page - 1) / page * page;
	guard g = {.size = size, .map_size = body + 2 * page};
	g.map = mmap(NULL, g.map_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (g.map == MAP_FAILED)
		abort();
	uint8_t *first = (uint8_t *)g.map + page;
	if (body && mprotect(first, body, PROT_READ | PROT_WRITE))
		abort();
	g.data = at_end ? first + (body - size) : first;
	memset(first, 0xA5, body);
	return g;
}

/* A copy of 'size' bytes, read-only from now on. */
static inline guard guard_copy(const void *src, size_t size, int at_end)
{
	guard g = guard_new(size, at_end);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	if (size)
		memcpy(g.data, src, size);
	if (g.map_size > 2 * page &&
	    mprotect((uint8_t *)g.map + page, g.map_size - 2 * page, PROT_READ))
		abort();
	return g;
}

static inline void guard_free(guard *g)
{
	munmap(g->map, g->map_size);
	g->map = NULL;
}

/* A small generator whose seed tests print: xorshift64*. */
typedef struct rng {
	uint64_t s;
} rng;

static inline uint64_t rng_next(rng *r)
{
	r->s ^= r->s >> 12;
	r->s ^= r->s << 25;
	r->s ^= r->s >> 27;
	return r->s * 0x2545F4914F6CDD1DULL;
}

static inline uint64_t rng_below(rng *r, uint64_t n)
{
	return n ? rng_next(r) % n : 0;
}

#endif
