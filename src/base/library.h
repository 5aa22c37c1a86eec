/*
 * library.h: libraries that are opened at run time, so that liblade needs neither their headers nor
 * themselves.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BASE_LIBRARY_H
#define LADE_BASE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Opens the first of 'files' that is there, and stores the addresses of 'names' at 'functions', a
 * struct of as many function pointers.  Both lists end with NULL.  NULL: no file is there, or it
 * lacks a function.
 */
void *lade__library_open(const char *const *files, const char *const *names, void *functions);
void lade__library_close(void *library); /* NULL is fine */

/*
 * Coders of streams count the bytes they have not used yet.  'room' left in a destination is 0, and
 * the coder may still have something to do, or something to write: it gets this byte, and what
 * writes there does not fit.
 */
typedef struct lade__flow {
	const unsigned char *src;
	size_t size, in;
	unsigned char *dst;
	size_t cap, out;
	unsigned char spare;
} lade__flow;

/* What the coder gets next: at most 'most' bytes each. */
static inline size_t lade__flow_left(const lade__flow *c, size_t most)
{
	return c->size - c->in < most ? c->size - c->in : most;
}

static inline size_t lade__flow_room(const lade__flow *c, size_t most)
{
	size_t room = c->cap - c->out;
	return room == 0 ? 1 : room < most ? room : most;
}

static inline unsigned char *lade__flow_to(lade__flow *c)
{
	return c->out == c->cap ? &c->spare : c->dst + c->out;
}

typedef enum lade__progress { LADE__MOVED = 0, LADE__STUCK, LADE__FULL } lade__progress;

/* Counts what a step took and gave.  FULL: the result does not fit; STUCK: there was nothing. */
static inline lade__progress lade__flow_step(lade__flow *c, size_t took, size_t gave)
{
	c->in += took;
	if (gave > c->cap - c->out)
		return LADE__FULL;
	c->out += gave;
	return took || gave ? LADE__MOVED : LADE__STUCK;
}

#endif
