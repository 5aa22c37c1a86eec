/*
 * items.c: one call on bare bytes: its options and tables, its heads, its batch.  What heads mean
 * is in decode.c and encode.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bare/items.h"

#include "base/options.h"
#include "base/support.h"
#include "base/try.h"

#include <stdlib.h>

size_t lade_bare_head(const lade_spec *spec, lade_bare kind, size_t *field)
{
	size_t own = 0;

	if (spec && (kind == LADE_BARE_WITH_SIZE || kind == LADE_BARE_WITH_SIZE_16)) {
		const lade_stage *last = lade_spec_stage(spec, lade_spec_count(spec) - 1);
		own = last->algorithm->size_field ? last->algorithm->size_field : 8;
	}
	if (field)
		*field = own;
	return own && kind == LADE_BARE_WITH_SIZE_16 ? LADE__BARE_HEAD_MAX : own;
}

/* As lade_bare_head(), of an item. */
size_t lade__bare_head_of(const lade__bare_call *c, size_t i, size_t *field)
{
	if (c->given.items[i].spec)
		return lade_bare_head(c->given.items[i].spec, c->kind, field);
	if (field)
		*field = c->field;
	return c->head;
}

void lade__bare_close(lade__bare_call *c)
{
	lade_spec_unref(c->copy);
	if (c->block != &c->one)
		free(c->block);
	lade__given_close(&c->given);
}

/* The options and the items and results of 'given'.  On failure there is nothing to close. */
lade_status lade__bare_open(lade__bare_call *c, lade_engine *engine, lade__given given,
                            const lade_bare_options *caller, lade_error *err)
{
	lade_bare_options options;
	lade_status status;

	memset(c, 0, offsetof(lade__bare_call, one));
	c->engine = engine;
	c->count = given.count;
	c->first = SIZE_MAX;
	c->err = err;
	if (!engine)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "engine is NULL");
	if (!given.items && given.count)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "items is NULL for %zu items",
		                 given.count);
	status = lade__options_read(&options, sizeof options, caller, "bare options", err);
	if (status == LADE_OK)
		status = lade__options_read(&c->batch, sizeof c->batch, options.batch,
		                            "batch options", err);
	if (status != LADE_OK)
		return status;
	c->spec = options.spec;
	c->kind = options.kind ? options.kind : LADE_BARE_RAW;
	if ((unsigned)c->kind > LADE_BARE_WITH_SIZE_16)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "bare kind %d is unknown",
		                 (int)c->kind);
	lade__sizes sizes = {c->batch.item_size, c->batch.segment_size, c->batch.output_size,
	                     c->batch.result_size};
	c->given = given;
	c->given.host = lade__engine_host(engine);
	status = lade__given_open(&c->given, &sizes, err);
	if (status != LADE_OK)
		return status;
	c->batch.item_size = sizeof(lade_item);
	c->batch.segment_size = sizeof(lade_segment);
	c->batch.output_size = sizeof(lade_item_output);
	c->batch.result_size = sizeof(lade_result);
	c->head = lade_bare_head(c->spec, c->kind, &c->field);
	return LADE_OK;
}

/* Tables for the heads alone, or for running the items too. */
lade_status lade__bare_tables(lade__bare_call *c, bool all)
{
	size_t each = all ? sizeof(lade__bare_row) : sizeof(lade__bare_stored), count = c->count;

	c->block = &c->one;
	if (count > 1)
		c->block = count < SIZE_MAX / each ? malloc(count * each) : NULL;
	if (!c->block)
		return lade_fail(c->err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu items",
		                 count);
	c->heads = c->block;
	if (!all)
		return LADE_OK;
	c->items = c->block;
	c->segments = (lade_segment *)(c->items + count);
	c->sizes = (uint64_t *)(c->segments + count);
	c->results = (lade_result *)(c->sizes + count);
	c->heads = (lade__bare_stored *)(c->results + count);
	if (c->given.results)
		c->results = c->given.results;
	return LADE_OK;
}

/* An item fails, whatever the batch says of it. */
void lade__bare_fail_item(lade__bare_call *c, size_t i, const lade_error *error)
{
	if (c->results)
		c->results[i] = (lade_result){error->status, 0};
	if (c->batch.item_errors)
		c->batch.item_errors[i] = *error;
	if (i <= c->first) {
		c->first = i;
		c->status = error->status;
		lade_fail(c->err, error->status, error->offset, "item %zu: %s", i, error->message);
	}
}

/* What moves bytes between places, and stands for items that are not to be run. */
static lade_status copy_spec(lade__bare_call *c, lade_error *err)
{
	return c->copy ? LADE_OK : lade_spec_parse(c->engine, "copy", &c->copy, err);
}

static bool is_on_device(const lade__bare_call *c, size_t i, lade_direction direction)
{
	const lade_item *item = &c->given.items[i];

	return direction == LADE_DECODE
	               ? item->src_count && !lade_kind_is_host(item->src->place.kind)
	               : !lade_kind_is_host(item->dst.place.kind);
}

/* Whether item 'i' has room for its head. */
static bool has_head(const lade__bare_call *c, size_t i, lade_direction direction)
{
	const lade_item *item = &c->given.items[i];
	size_t size = lade__bare_head_of(c, i, NULL);

	if (direction == LADE_DECODE)
		return item->src_count == 1 && item->src && item->src->data &&
		       item->src->size >= size;
	return !c->results[i].status;
}

/* Moves the heads of items on devices, all in one batch. */
static lade_status move_device_heads(lade__bare_call *c, size_t count, lade_direction direction,
                                     lade_error *err)
{
	lade_batch_options options = {LADE__OUR_SIZES, .stream = c->batch.stream};
	lade_item *items = malloc(count * (sizeof *items + sizeof(lade_segment) +
	                                   sizeof(lade_result) + sizeof(size_t)));
	lade_status status = copy_spec(c, err);
	lade_segment *segments = (lade_segment *)(items + count);
	lade_result *results = (lade_result *)(segments + count);
	size_t *which = (size_t *)(results + count), n = 0;

	if (!items || status != LADE_OK) {
		free(items);
		return status != LADE_OK ? status
		                         : lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                                     "no memory for the sizes of %zu items",
		                                     count);
	}
	for (size_t i = 0; i < c->count; i++) {
		const lade_item *item = &c->given.items[i];
		size_t size = lade__bare_head_of(c, i, NULL);
		lade_span dst = lade_host_span(c->heads[i].bytes, size);
		if (!is_on_device(c, i, direction) || !has_head(c, i, direction))
			continue;
		segments[n] = (lade_segment){.data = c->heads[i].bytes, .size = size};
		if (direction == LADE_DECODE) {
			segments[n].data = item->src->data;
			segments[n].place = item->src->place;
		} else {
			dst = item->dst;
			dst.size = size;
		}
		items[n] = (lade_item){.src = &segments[n], .src_count = 1, .dst = dst};
		which[n++] = i;
	}
	/* A call that failed has no results. */
	memset(results, 0, n * sizeof *results);
	status = lade_decode_into(c->engine, c->copy, items, n, results, &options, err);
	for (size_t k = 0; k < n; k++)
		c->heads[which[k]].status = results[k].status;
	free(items);
	for (size_t k = 0; k < c->count && status != LADE_OK; k++)
		if (c->heads[k].status)
			return LADE_OK; /* items have failed, not the call */
	return status;
}

/* Moves all heads. */
lade_status lade__bare_move_heads(lade__bare_call *c, lade_direction direction, lade_error *err)
{
	size_t on_device = 0;

	for (size_t i = 0; i < c->count; i++) {
		size_t size = lade__bare_head_of(c, i, NULL);
		c->heads[i].status = LADE_OK;
		if (!has_head(c, i, direction))
			continue;
		if (is_on_device(c, i, direction))
			on_device++;
		else if (direction == LADE_DECODE)
			memcpy(c->heads[i].bytes, c->given.items[i].src->data, size);
		else
			memcpy(c->given.items[i].dst.data, c->heads[i].bytes, size);
	}
	return on_device ? move_device_heads(c, on_device, direction, err) : LADE_OK;
}

/* Runs the batch of c->items; what failed there is noted. */
lade_status lade__bare_run(lade__bare_call *c, lade_direction direction)
{
	lade_status status;

	memset(c->results, 0, c->count * sizeof *c->results);
	status = (direction == LADE_DECODE ? lade_decode_into : lade_encode_into)(
		c->engine, c->spec, c->items, c->count, c->results, &c->batch, c->err);
	for (size_t i = 0; status != LADE_OK && i < c->count; i++) {
		size_t head = lade__bare_head_of(c, i, NULL);
		lade_error *own = c->batch.item_errors ? &c->batch.item_errors[i] : NULL;
		if (!c->results[i].status)
			continue;
		if (own && direction == LADE_DECODE && own->offset != LADE_NO_OFFSET)
			own->offset += head;
		if (c->first != SIZE_MAX)
			continue;
		c->first = i;
		c->status = c->results[i].status;
		if (c->err && direction == LADE_DECODE && c->err->offset != LADE_NO_OFFSET)
			c->err->offset += head;
	}
	/* The options or the engine were not what they should be: no item was looked at. */
	return c->first == SIZE_MAX ? status : LADE_OK;
}

/* An item that takes no part. */
lade_status lade__bare_leave_out(lade__bare_call *c, size_t i, lade_error *err)
{
	c->segments[i] = (lade_segment){.data = c->heads[i].bytes};
	c->items[i] = (lade_item){.src = &c->segments[i], .src_count = 1};
	lade_status status = copy_spec(c, err);
	c->items[i].spec = c->copy;
	return status;
}
