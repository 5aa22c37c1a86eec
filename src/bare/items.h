/*
 * items.h: one call on the bare bytes of N items (docs/format/bare.md): its tables, and the heads
 * before the items' bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BARE_ITEMS_H
#define LADE_BARE_ITEMS_H

#include "array/given.h"
#include "engine/engine.h"

#include <lade/bare.h>

#define LADE__BARE_HEAD_MAX 16

/* A head as it is stored. */
typedef struct lade__bare_stored {
	uint8_t bytes[LADE__BARE_HEAD_MAX];
	lade_status status; /* of fetching or storing it */
} lade__bare_stored;

/* The tables of one item. */
typedef struct lade__bare_row {
	lade_item item;
	lade_segment segment;
	uint64_t size;
	lade_result result;
	lade__bare_stored head;
} lade__bare_row;

typedef struct lade__bare_call {
	lade_engine *engine;
	const lade_spec *spec;
	lade_bare kind;
	lade_batch_options batch;
	lade__given given; /* the caller's items and results */
	size_t count;
	/* One for each item; memory from malloc(), or 'one'. */
	lade_item *items;
	lade_segment *segments;
	lade_result *results;
	uint64_t *sizes; /* what the heads say */
	lade__bare_stored *heads;
	void *block;
	lade_spec *copy;    /* NULL until wanted */
	size_t head, field; /* of the call's spec */
	size_t first;       /* the first item that failed; SIZE_MAX: none */
	lade_status status; /* its status */
	lade_error *err;
	lade__bare_row one; /* the tables of a call with one item */
} lade__bare_call;

/*
 * Reads the options, and the items and results of 'given'.  On failure there is nothing to close.
 * Owns: 'c', until lade__bare_close()
 */
lade_status lade__bare_open(lade__bare_call *c, lade_engine *engine, lade__given given,
                            const lade_bare_options *caller, lade_error *err);
void lade__bare_close(lade__bare_call *c);

/* Allocates tables for the heads alone, or ('all') for running the items too. */
lade_status lade__bare_tables(lade__bare_call *c, bool all);

/* Notes that item 'i' failed, whatever the batch says of it. */
void lade__bare_fail_item(lade__bare_call *c, size_t i, const lade_error *error);

/* As lade_bare_head(), for item 'i'. */
size_t lade__bare_head_of(const lade__bare_call *c, size_t i, size_t *field);

static inline const lade_spec *lade__bare_spec(const lade__bare_call *c, size_t i)
{
	return c->given.items[i].spec ? c->given.items[i].spec : c->spec;
}

/* Fetches all heads (LADE_DECODE) or stores them; a failed one has it in its status. */
lade_status lade__bare_move_heads(lade__bare_call *c, lade_direction direction, lade_error *err);

/* Makes item 'i' one without bytes, so that the others keep their numbers. */
lade_status lade__bare_leave_out(lade__bare_call *c, size_t i, lade_error *err);

/* Runs the batch of c->items, and notes which failed; the call fails only if no item was read. */
lade_status lade__bare_run(lade__bare_call *c, lade_direction direction);

#endif
