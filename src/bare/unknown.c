/*
 * unknown.c: lade_decode_new(): items whose size may be known to nobody, into memory that the call
 * takes.
 *
 * All items that are not done yet run as one batch, with their room in one block; those that had
 * too little run again with more.  Results are slices of the blocks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "array/given.h"
#include "base/options.h"
#include "base/try.h"
#include "batch/batch.h"
#include "engine/engine.h"

#include <lade/array.h>

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Results begin at multiples of this. */
#define PIECE_ALIGN ((size_t)64)
#define GUESS_LEAST ((size_t)8 << 10)
#define GROWTH 4

/* What is known of an item. */
typedef struct entry {
	size_t cap, most; /* its room in this round, and the most that it can get */
	bool done;        /* its array is there, or it failed */
	lade_array *own;  /* its room where it is not in the round's block */
} entry;

/* The tables of one item. */
typedef struct row {
	lade_item item;
	lade_error error;
	lade_result result;
	entry entry;
	size_t which;
} row;

typedef struct call {
	lade_engine *engine;
	lade_decode_new_options options;
	lade_array_options array;
	lade_batch_options batch;
	lade_error *item_errors; /* the caller's, or NULL */
	lade__given given;
	lade_array **arrays;
	entry *entries;
	/* Of the items of a round, which are fewer with each. */
	size_t *which;
	lade_item *items;
	lade_result *results;
	lade_error *errors;
	void *block; /* from malloc(), or 'one' */
	size_t first; /* that failed; SIZE_MAX: none */
	lade_status status;
	lade_error *err;
	row one;
} call;

static void fail_item(call *c, size_t i, const lade_error *error)
{
	c->entries[i].done = true;
	if (c->item_errors)
		c->item_errors[i] = *error;
	if (i < c->first) {
		c->first = i;
		c->status = error->status;
		lade_fail(c->err, error->status, error->offset, "item %zu: %s", i, error->message);
	}
}

/* ---- the call --------------------------------------------------------------------------- */

static lade_status read_options(call *c, const lade_decode_new_options *given)
{
	lade_status status = lade__options_read(&c->options, sizeof c->options, given,
	                                        "decode options", c->err);

	if (status == LADE_OK)
		status = lade__options_read(&c->array, sizeof c->array, c->options.array,
		                            "array options", c->err);
	if (status == LADE_OK)
		status = lade__options_read(&c->batch, sizeof c->batch, c->options.batch,
		                            "batch options", c->err);
	if (!c->array.stream)
		c->array.stream = c->batch.stream;
	if (status == LADE_OK && c->array.gone)
		status = lade_fail(c->err, LADE_E_ARG, LADE_NO_OFFSET,
		                   "array options: 'gone' is not for arrays of one block");
	return status;
}

static lade_status call_open(call *c, const lade_item *items, size_t count)
{
	lade__sizes sizes = {c->batch.item_size, c->batch.segment_size, c->batch.output_size, 0};

	c->given = (lade__given){.items = items, .count = count,
	                         .host = lade__engine_host(c->engine)};
	lade_status status = lade__given_open(&c->given, &sizes, c->err);
	if (status != LADE_OK)
		return status;
	c->batch.item_size = sizeof(lade_item);
	c->batch.segment_size = sizeof(lade_segment);
	c->batch.output_size = sizeof(lade_item_output);
	c->batch.result_size = sizeof(lade_result);
	c->block = &c->one;
	if (count > 1)
		c->block = count < SIZE_MAX / sizeof(row) ? malloc(count * sizeof(row)) : NULL;
	if (!c->block) {
		lade__given_close(&c->given);
		return lade_fail(c->err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu items",
		                 count);
	}
	c->items = c->block;
	c->errors = (lade_error *)(c->items + count);
	c->results = (lade_result *)(c->errors + count);
	c->entries = (entry *)(c->results + count);
	c->which = (size_t *)(c->entries + count);
	memset(c->entries, 0, count * sizeof *c->entries);
	memset(c->arrays, 0, count * sizeof(lade_array *));
	return LADE_OK;
}

static void call_close(call *c)
{
	if (c->block != &c->one)
		free(c->block);
	lade__given_close(&c->given);
}

static lade_bare_options bare_options(const call *c)
{
	return (lade_bare_options){.struct_size = sizeof(lade_bare_options),
	                           .spec = c->options.spec,
	                           .kind = c->options.kind,
	                           .batch = &c->batch};
}

/* ---- room ------------------------------------------------------------------------------- */

static size_t clip(uint64_t size)
{
	return size < PTRDIFF_MAX - PIECE_ALIGN ? (size_t)size : PTRDIFF_MAX - PIECE_ALIGN;
}

/* How much of 'size' decoded bytes, which may be unknown, an item's range has. */
static uint64_t in_range(const lade_item *item, uint64_t size)
{
	if (size != LADE_SIZE_UNKNOWN)
		size = item->range_off < size ? size - item->range_off : 0;
	return item->range_size && item->range_size < size ? item->range_size : size;
}

/* What an item has at first, and may have at most. */
static lade_status first_room(call *c, size_t i, lade_error *err)
{
	const lade_item *item = &c->given.items[i];
	const lade_spec *spec = item->spec ? item->spec : c->options.spec;
	uint64_t stated = c->results[i].status ? LADE_SIZE_UNKNOWN : c->results[i].size;
	uint64_t encoded = 0, guess;
	entry *e = &c->entries[i];

	if (!spec || (!item->src && item->src_count))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 spec ? "src is NULL for %zu segments"
		                      : "neither the call nor the item (%zu segments) has a spec",
		                 item->src_count);
	if (item->layout || item->output_count || item->tail)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "layouts, outputs and tails are not for new arrays");
	for (size_t k = 0; k < item->src_count; k++)
		encoded += item->src[k].size;
	stated = in_range(item, stated);
	e->most = clip(in_range(item, lade_spec_decoded_max(spec, encoded)));
	if (c->options.largest && c->options.largest < e->most)
		e->most = (size_t)c->options.largest;
	guess = encoded < GUESS_LEAST / GROWTH ? GUESS_LEAST : encoded * GROWTH;
	e->cap = clip(stated == LADE_SIZE_UNKNOWN ? guess : stated);
	if (e->cap <= e->most)
		return LADE_OK;
	if (stated != LADE_SIZE_UNKNOWN && c->options.largest && stated > c->options.largest)
		return lade_fail(err, LADE_E_LIMIT, 0,
		                 "it decodes to %" PRIu64 " bytes, the limit is %" PRIu64, stated,
		                 c->options.largest);
	e->cap = e->most;
	return LADE_OK;
}

/* What the items say of their sizes.  Where this fails decoding says why. */
static void look_up(call *c)
{
	const lade_item *item = c->given.items;
	const lade_spec *spec = item->spec ? item->spec : c->options.spec;
	const lade_segment *segment = item->src_count == 1 ? item->src : NULL;
	lade_bare_options bare = bare_options(c);
	uint64_t size;

	for (size_t i = 0; i < c->given.count; i++)
		c->results[i] = (lade_result){LADE_E_UNKNOWN_SIZE, 0};
	if (c->given.count > 1 || c->options.kind > LADE_BARE_RAW || !spec || !segment ||
	    !segment->data || segment->decoded_size || item->tail ||
	    !lade_kind_is_host(segment->place.kind))
		lade_bare_decoded_sizes(c->engine, item, c->given.count, c->results, &bare, NULL);
	/* One raw item on the host wants no tables, and no text of why no size is stated. */
	else if (lade__spec_decoded_size(spec, segment->data, segment->size, &size, NULL) ==
	                 LADE_OK &&
	         size <= lade_spec_decoded_max(spec, segment->size))
		c->results[0] = (lade_result){LADE_OK, (size_t)size};
}

static size_t padded(size_t size)
{
	return (size + PIECE_ALIGN - 1) & ~(PIECE_ALIGN - 1);
}

/* Room for the round's items: in one block, or, where that is not to be had, each for itself. */
static lade_array *take_room(call *c, size_t count)
{
	lade_array *block = NULL;
	size_t total = 0, at = 0;

	for (size_t k = 0; k < count && total != SIZE_MAX; k++) {
		size_t cap = c->entries[c->which[k]].cap;
		if (count > 1)
			cap = padded(cap);
		total = cap > SIZE_MAX - total ? SIZE_MAX : total + cap;
	}
	if (total < PTRDIFF_MAX)
		lade_array_new(total, c->options.place, &c->array, &block, NULL);
	for (size_t k = 0; k < count; k++) {
		entry *e = &c->entries[c->which[k]];
		lade_span span;
		if (!block)
			lade_array_new(e->cap, c->options.place, &c->array, &e->own, NULL);
		/* The batch's stream may be another than the one that the block is made on. */
		if (c->options.place.kind == LADE_DEVICE && (block ? !k : e->own != NULL))
			lade_array_follow(block ? block : e->own, c->options.place.device,
			                  c->batch.stream, NULL);
		span = lade_array_span(block ? block : e->own);
		if (block && span.data)
			span.data = (char *)span.data + at;
		span.size = block || e->own ? e->cap : 0;
		span.place = c->options.place;
		c->items[k].dst = span;
		at += padded(e->cap);
	}
	return block;
}

/* ---- rounds ----------------------------------------------------------------------------- */

/* The result of a round's item becomes an array; a block of its own is given up to it. */
static lade_status keep(call *c, size_t k, lade_array **block, size_t at, bool alone,
                        lade_error *err)
{
	size_t i = c->which[k], size = c->results[k].size;
	lade_array **own = alone && *block ? block : &c->entries[i].own;

	if (!*own)
		return lade_array_slice(*block, at, size, &c->arrays[i], err);
	c->arrays[i] = *own;
	*own = NULL;
	return lade_array_shrink(c->arrays[i], size, err);
}

/* An item that had too little room gets more, or fails. */
static void grow(call *c, size_t k, const lade_error *error)
{
	size_t i = c->which[k];
	entry *e = &c->entries[i];
	lade_error why = *error;

	if (error->status == LADE_E_NOSPACE && e->cap < e->most) {
		e->cap = e->cap > e->most / GROWTH ? e->most : e->cap * GROWTH;
		e->cap = e->cap < GUESS_LEAST && e->most >= GUESS_LEAST ? GUESS_LEAST : e->cap;
		return;
	}
	if (error->status == LADE_E_NOSPACE && e->most == c->options.largest)
		lade_fail(&why, LADE_E_LIMIT, LADE_NO_OFFSET,
		          "it decodes to more than %" PRIu64 " bytes", c->options.largest);
	fail_item(c, i, &why);
}

/* Runs all items that are not done. */
static lade_status run_round(call *c, size_t *left)
{
	lade_bare_options options = bare_options(c);
	lade_array *block;
	lade_error error;
	size_t count = 0, at = 0;
	lade_status status;

	for (size_t i = 0; i < c->given.count; i++)
		if (!c->entries[i].done) {
			c->items[count] = c->given.items[i];
			c->which[count++] = i;
		}
	*left = count;
	if (!count)
		return LADE_OK;
	block = take_room(c, count);
	c->batch.item_errors = c->errors;
	memset(c->results, 0, count * sizeof *c->results);
	status = lade_bare_decode_into(c->engine, c->items, count, c->results, &options, &error);
	bool looked = status == LADE_OK;
	for (size_t k = 0; k < count; k++)
		looked |= c->results[k].status != LADE_OK;
	for (size_t k = 0; k < count; k++) {
		entry *e = &c->entries[c->which[k]];
		size_t cap = e->cap;
		lade_error why;
		if (!block && !e->own) {
			lade_fail(&why, LADE_E_NOMEM, LADE_NO_OFFSET,
			          "%zu bytes could not be allocated", cap);
			fail_item(c, c->which[k], &why);
		} else if (c->results[k].status) {
			grow(c, k, &c->errors[k]);
		} else if (looked) {
			e->done = true;
			if (keep(c, k, &block, at, count == 1, &why) != LADE_OK)
				fail_item(c, c->which[k], &why);
		}
		lade_array_unref(e->own);
		e->own = NULL;
		at += padded(cap);
	}
	lade_array_unref(block);
	/* A call that looked at no item has failed by itself. */
	return looked ? LADE_OK
	              : lade_fail(c->err, error.status, error.offset, "%s", error.message);
}

lade_status lade_decode_new(lade_engine *engine, const lade_item *items, size_t count,
                            lade_array **arrays, const lade_decode_new_options *options,
                            lade_error *err)
{
	lade_error own, error;
	call c;
	lade_status status;

	if (!engine || (count && (!items || !arrays)))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 !engine  ? "engine"
		                 : !items ? "items"
		                          : "arrays");
	memset(&c, 0, offsetof(call, one));
	c.engine = engine;
	c.arrays = arrays;
	c.first = SIZE_MAX;
	c.err = err ? err : &own;
	status = read_options(&c, options);
	if (status != LADE_OK || !count)
		return status;
	status = call_open(&c, items, count);
	if (status != LADE_OK)
		return status;
	c.item_errors = c.batch.item_errors;
	c.batch.item_errors = NULL;
	look_up(&c);
	for (size_t i = 0; i < count; i++)
		if (first_room(&c, i, &error) != LADE_OK)
			fail_item(&c, i, &error);
	for (size_t left = 1; left && status == LADE_OK;)
		status = run_round(&c, &left);
	call_close(&c);
	return status == LADE_OK ? c.status : status;
}
