/*
 * items.c: bare bytes of N items in any place (docs/format/bare.md).
 *
 *     decode:  heads to the host --> check --> batch of what follows the heads --> compare
 *     encode:  batch behind the heads' places --> heads to the destinations
 *
 * An item whose head is wrong takes part as an item without bytes, so that all keep their numbers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "array/given.h"
#include "array/plan.h"
#include "base/options.h"
#include "base/support.h"
#include "base/try.h"
#include "engine/engine.h"

#include <lade/bare.h>

#include <inttypes.h>
#include <stdlib.h>

#define HEAD_MAX 16
/* On the word of a size field no more scratch is taken for a part of an item. */
#define BELIEVED ((uint64_t)1 << 30)
/* A claim of fewer bytes, or of fewer for each encoded one, is believed until it is decoded. */
#define CLAIM_LARGE ((uint64_t)1 << 20)
#define CLAIM_RATIO 16

typedef struct stored {
	uint8_t bytes[HEAD_MAX];
	lade_status status; /* of fetching or storing it */
} stored;

/* The tables of one item. */
typedef struct row {
	lade_item item;
	lade_segment segment;
	uint64_t size;
	lade_result result;
	stored head;
} row;

typedef struct call {
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
	stored *heads;
	void *block;
	lade_spec *copy; /* NULL until wanted */
	size_t head, field; /* of the call's spec */
	size_t first;       /* the first item that failed; SIZE_MAX: none */
	lade_status status; /* its status */
	lade_error *err;
	row one; /* the tables of a call with one item */
} call;

size_t lade_bare_head(const lade_spec *spec, lade_bare kind, size_t *field)
{
	size_t own = 0;

	if (spec && (kind == LADE_BARE_WITH_SIZE || kind == LADE_BARE_WITH_SIZE_16)) {
		const lade_stage *last = lade_spec_stage(spec, lade_spec_count(spec) - 1);
		own = last->algorithm->size_field ? last->algorithm->size_field : 8;
	}
	if (field)
		*field = own;
	return own && kind == LADE_BARE_WITH_SIZE_16 ? HEAD_MAX : own;
}

static const lade_spec *spec_of(const call *c, size_t i)
{
	return c->given.items[i].spec ? c->given.items[i].spec : c->spec;
}

/* As lade_bare_head(), of an item. */
static size_t head_of(const call *c, size_t i, size_t *field)
{
	if (c->given.items[i].spec)
		return lade_bare_head(c->given.items[i].spec, c->kind, field);
	if (field)
		*field = c->field;
	return c->head;
}

/* ---- one call --------------------------------------------------------------------------- */

static void call_close(call *c)
{
	lade_spec_unref(c->copy);
	if (c->block != &c->one)
		free(c->block);
	lade__given_close(&c->given);
}

/* The options and the items and results of 'given'.  On failure there is nothing to close. */
static lade_status call_open(call *c, lade_engine *engine, lade__given given,
                             const lade_bare_options *caller, lade_error *err)
{
	lade_bare_options options;
	lade_status status;

	memset(c, 0, offsetof(call, one));
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
static lade_status want_tables(call *c, bool all)
{
	size_t each = all ? sizeof(row) : sizeof(stored), count = c->count;

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
	c->heads = (stored *)(c->results + count);
	if (c->given.results)
		c->results = c->given.results;
	return LADE_OK;
}

/* An item fails, whatever the batch says of it. */
static void fail_item(call *c, size_t i, const lade_error *error)
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
static lade_status want_copy(call *c, lade_error *err)
{
	return c->copy ? LADE_OK : lade_spec_parse(c->engine, "copy", &c->copy, err);
}

/* ---- heads ------------------------------------------------------------------------------ */

static bool far_head(const call *c, size_t i, lade_direction direction)
{
	const lade_item *item = &c->given.items[i];

	return direction == LADE_DECODE
	               ? item->src_count && !lade_kind_is_host(item->src->place.kind)
	               : !lade_kind_is_host(item->dst.place.kind);
}

/* Whether item 'i' has room for its head. */
static bool has_head(const call *c, size_t i, lade_direction direction)
{
	const lade_item *item = &c->given.items[i];
	size_t size = head_of(c, i, NULL);

	if (direction == LADE_DECODE)
		return item->src_count == 1 && item->src && item->src->data &&
		       item->src->size >= size;
	return !c->results[i].status;
}

/* Moves the heads of items on devices, all in one batch. */
static lade_status move_far(call *c, size_t count, lade_direction direction, lade_error *err)
{
	lade_batch_options options = {LADE__OUR_SIZES, .stream = c->batch.stream};
	lade_item *items = malloc(count * (sizeof *items + sizeof(lade_segment) +
	                                   sizeof(lade_result) + sizeof(size_t)));
	lade_status status = want_copy(c, err);
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
		size_t size = head_of(c, i, NULL);
		lade_span dst = lade_host_span(c->heads[i].bytes, size);
		if (!far_head(c, i, direction) || !has_head(c, i, direction))
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
static lade_status move_heads(call *c, lade_direction direction, lade_error *err)
{
	size_t far = 0;

	for (size_t i = 0; i < c->count; i++) {
		size_t size = head_of(c, i, NULL);
		c->heads[i].status = LADE_OK;
		if (!has_head(c, i, direction))
			continue;
		if (far_head(c, i, direction))
			far++;
		else if (direction == LADE_DECODE)
			memcpy(c->heads[i].bytes, c->given.items[i].src->data, size);
		else
			memcpy(c->given.items[i].dst.data, c->heads[i].bytes, size);
	}
	return far ? move_far(c, far, direction, err) : LADE_OK;
}

/* ---- decoding --------------------------------------------------------------------------- */

static bool is_large(uint64_t claim, size_t size)
{
	return claim >= CLAIM_LARGE && claim / CLAIM_RATIO >= size;
}

/* Nothing decides where the bytes go but the destination's size. */
static bool is_plain(const lade_item *item)
{
	return !item->layout && !item->output_count && !item->range_off && !item->range_size;
}

/* Whether 'size' bytes can decode to as many as they claim. */
static lade_status claim_can_be(const lade_spec *spec, size_t size, uint64_t claim, lade_error *err)
{
	uint64_t most;

	if (!is_large(claim, size))
		return LADE_OK;
	most = lade_spec_decoded_max(spec, size);
	return claim <= most ? LADE_OK
	                     : lade_fail(err, LADE_E_CORRUPT, 0,
	                                 "the data states %" PRIu64
	                                 " bytes, and %zu bytes of %s decode to at most "
	                                 "%" PRIu64 " at most",
	                                 claim, size,
	                                 lade_spec_count(spec) == 1
	                                         ? lade_spec_stage(spec, 0)->algorithm->name
	                                         : lade_spec_text(spec),
	                                 most);
}

/* What the one segment of an item says of its size behind its first 'head' bytes, whatever the
 * caller says. */
static uint64_t own_claim(const call *c, size_t i, size_t head)
{
	lade_batch_options options = {LADE__OUR_SIZES, .stream = c->batch.stream};
	lade_segment segment = *c->given.items[i].src;
	lade_item item = {.src = &segment, .src_count = 1};
	lade_result claim;

	segment.data = (const char *)segment.data + head;
	segment.size -= head;
	segment.decoded_size = 0;
	return lade_decoded_sizes(c->engine, spec_of(c, i), &item, 1, &claim, &options, NULL) ==
	                       LADE_OK
	               ? claim.size
	               : LADE_SIZE_UNKNOWN;
}

/* Looks at a claim that would take much memory for few bytes, before any is taken: what the formats
 * can make of them at most, and what the bytes behind the head say. */
static lade_status check_claim(const call *c, size_t i, uint64_t claim, lade_error *err)
{
	const lade_item *item = &c->given.items[i];
	size_t head = head_of(c, i, NULL), size = 0;
	lade_status status;
	uint64_t own;

	if (claim < CLAIM_LARGE || !spec_of(c, i))
		return LADE_OK;
	for (size_t k = 0; k < item->src_count; k++) {
		if (item->src[k].decoded_size && !head)
			return LADE_OK; /* the caller's own word */
		size += item->src[k].size;
	}
	status = claim_can_be(spec_of(c, i), size - head, claim, err);
	if (status != LADE_OK || !head || !is_large(claim, size - head))
		return status;
	own = own_claim(c, i, head);
	return own == LADE_SIZE_UNKNOWN || own == claim
	               ? LADE_OK
	               : lade_fail(err, LADE_E_CORRUPT, 0,
	                           "the data states %" PRIu64 " bytes and decodes to %" PRIu64,
	                           claim, own);
}

/* The size that item 'i' claims. */
static lade_status read_head(const call *c, size_t i, uint64_t *size, lade_error *err)
{
	const lade_item *item = &c->given.items[i];
	const uint8_t *bytes = c->heads[i].bytes;
	size_t field, head = head_of(c, i, &field);

	*size = LADE_SIZE_UNKNOWN;
	if (!spec_of(c, i))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "neither the call nor the item has a spec");
	if (item->src_count != 1 || !item->src)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "%zu segments, bare bytes with their size are one",
		                 item->src ? item->src_count : 0);
	if (!item->src->data && item->src->size)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "the segment is NULL and has %zu bytes", item->src->size);
	if (item->src->size < head)
		return lade_fail(err, LADE_E_TRUNCATED, item->src->size,
		                 "%zu bytes, and the size before the data takes %zu",
		                 item->src->size, head);
	if (c->heads[i].status)
		return lade_fail(err, c->heads[i].status, LADE_NO_OFFSET,
		                 "the size before the data could not be fetched");
	for (size_t b = field; b < head; b++)
		if (bytes[b])
			return lade_fail(err, LADE_E_CORRUPT, b,
			                 "byte %zu before the data is %u, want 0", b, bytes[b]);
	*size = field == 4 ? lade__le32(bytes) : lade__le64(bytes);
	if (*size > PTRDIFF_MAX) {
		uint64_t claim = *size;
		*size = LADE_SIZE_UNKNOWN;
		return lade_fail(err, LADE_E_CORRUPT, 0, "the data states %" PRIu64 " bytes",
		                 claim);
	}
	lade_status status = check_claim(c, i, *size, err);
	if (status != LADE_OK)
		*size = LADE_SIZE_UNKNOWN;
	return status;
}

/* Makes the batch's item of what follows the head. */
static lade_status behind_head(call *c, size_t i, lade_error *err)
{
	lade_item *item = &c->items[i];
	lade_segment *segment = &c->segments[i];
	size_t head = head_of(c, i, NULL);
	uint64_t *size = &c->sizes[i];
	lade_status status = read_head(c, i, size, err);

	if (status != LADE_OK)
		return status;
	*item = c->given.items[i];
	*segment = *item->src;
	segment->data = (const char *)segment->data + head;
	segment->size -= head;
	item->src = segment;
	if (!is_plain(item)) {
		if (*size <= BELIEVED)
			segment->decoded_size = (size_t)*size;
		return LADE_OK;
	}
	if (*size > item->dst.size)
		return lade_fail(err, LADE_E_NOSPACE, 0,
		                 "the data states %" PRIu64 " bytes, the destination has %zu",
		                 *size, item->dst.size);
	item->dst.size = (size_t)*size;
	return LADE_OK;
}

/* Whether an item gave what it claims. */
static lade_status compare(const call *c, size_t i, lade_error *err)
{
	lade_result result = c->results[i];

	if (!is_plain(&c->given.items[i]))
		return LADE_OK;
	if (result.status == LADE_E_NOSPACE)
		return lade_fail(err, LADE_E_CORRUPT, 0,
		                 "the data states %" PRIu64 " bytes and decodes to more",
		                 c->sizes[i]);
	if (result.status == LADE_OK && result.size != c->sizes[i])
		return lade_fail(err, LADE_E_CORRUPT, 0,
		                 "the data states %" PRIu64 " bytes and decodes to %zu",
		                 c->sizes[i], result.size);
	return LADE_OK;
}

/* Runs the batch of c->items; what failed there is noted. */
static lade_status run_batch(call *c, lade_direction direction)
{
	lade_status status;

	memset(c->results, 0, c->count * sizeof *c->results);
	status = (direction == LADE_DECODE ? lade_decode_into : lade_encode_into)(
		c->engine, c->spec, c->items, c->count, c->results, &c->batch, c->err);
	for (size_t i = 0; status != LADE_OK && i < c->count; i++) {
		size_t head = head_of(c, i, NULL);
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
static lade_status blank(call *c, size_t i, lade_error *err)
{
	c->segments[i] = (lade_segment){.data = c->heads[i].bytes};
	c->items[i] = (lade_item){.src = &c->segments[i], .src_count = 1};
	lade_status status = want_copy(c, err);
	c->items[i].spec = c->copy;
	return status;
}

static lade_status decode_items(call *c)
{
	lade_error error;
	lade_status status = want_tables(c, true);
	bool bad = false;

	if (status == LADE_OK)
		status = move_heads(c, LADE_DECODE, c->err);
	for (size_t i = 0; status == LADE_OK && i < c->count; i++)
		if (behind_head(c, i, NULL) != LADE_OK) {
			bad = true;
			status = blank(c, i, c->err);
		}
	if (status == LADE_OK)
		status = run_batch(c, LADE_DECODE);
	for (size_t i = 0; status == LADE_OK && i < c->count; i++)
		if ((bad && behind_head(c, i, &error) != LADE_OK) ||
		    compare(c, i, &error) != LADE_OK)
			fail_item(c, i, &error);
	return status == LADE_OK ? c->status : status;
}

/* Whether an item had too little room because it claims more than it can give: none would do. */
static bool claims_too_much(const call *c, size_t i, lade_error *err)
{
	const lade_item *item = &c->given.items[i];
	uint64_t claim;

	if (c->results[i].status != LADE_E_NOSPACE || item->src_count != 1)
		return false;
	claim = own_claim(c, i, 0);
	return claim != LADE_SIZE_UNKNOWN &&
	       claim_can_be(spec_of(c, i), item->src->size, claim, err) != LADE_OK;
}

static lade_status decode_raw(call *c)
{
	lade_error error;
	lade_status status;

	c->results = c->given.results;
	if (!c->results)
		c->results = c->count > 1 ? c->block = calloc(c->count, sizeof *c->results)
		                          : &c->one.result;
	if (!c->results)
		return lade_fail(c->err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu items",
		                 c->count);
	memset(c->results, 0, c->count * sizeof *c->results);
	status = lade_decode_into(c->engine, c->spec, c->given.items, c->count, c->results,
	                          &c->batch, c->err);
	for (size_t i = 0; status != LADE_OK && i < c->count; i++) {
		if (c->results[i].status && c->first == SIZE_MAX) {
			c->first = i;
			c->status = status;
		}
		if (claims_too_much(c, i, &error))
			fail_item(c, i, &error);
	}
	/* A call that failed by itself looked at no item. */
	return c->first == SIZE_MAX ? status : c->status;
}

lade_status lade_bare_decode_into(lade_engine *engine, const lade_item *items, size_t count,
                                  lade_result *results, const lade_bare_options *options,
                                  lade_error *err)
{
	call c;
	lade_error own;
	lade__given given = {.items = items, .results = results, .count = count};
	lade_status status = call_open(&c, engine, given, options, err ? err : &own);

	if (status != LADE_OK)
		return status;
	status = c.kind == LADE_BARE_RAW ? decode_raw(&c) : decode_items(&c);
	call_close(&c);
	return status;
}

/* Raw bytes state their sizes where the format does; a size that cannot be is an item's failure. */
static lade_status raw_sizes(call *c)
{
	lade_error error;
	lade_status status;

	memset(c->results, 0, c->count * sizeof *c->results);
	status = lade_decoded_sizes(c->engine, c->spec, c->given.items, c->count, c->results,
	                            &c->batch, c->err);
	for (size_t i = 0; status != LADE_OK && i < c->count; i++)
		if (c->results[i].status && c->first == SIZE_MAX) {
			c->first = i;
			c->status = c->results[i].status;
		}
	if (status != LADE_OK && c->first == SIZE_MAX)
		return status; /* the call's own failure */
	for (size_t i = 0; i < c->count; i++)
		if (!c->results[i].status &&
		    check_claim(c, i, c->results[i].size, &error) != LADE_OK)
			fail_item(c, i, &error);
	return c->status;
}

static lade_status head_sizes(call *c)
{
	lade_error error;
	lade_status status = want_tables(c, false);

	if (status == LADE_OK)
		status = move_heads(c, LADE_DECODE, c->err);
	for (size_t i = 0; status == LADE_OK && i < c->count; i++) {
		uint64_t size;
		if (read_head(c, i, &size, &error) == LADE_OK)
			c->results[i] = (lade_result){LADE_OK, (size_t)size};
		else
			fail_item(c, i, &error);
	}
	return status == LADE_OK ? c->status : status;
}

lade_status lade_bare_decoded_sizes(lade_engine *engine, const lade_item *items, size_t count,
                                    lade_result *results, const lade_bare_options *options,
                                    lade_error *err)
{
	call c;
	lade_error own;
	lade__given given = {.items = items, .results = results, .count = count};
	lade_status status = call_open(&c, engine, given, options, err ? err : &own);

	if (status != LADE_OK)
		return status;
	c.results = c.given.results;
	if (count)
		status = !results                 ? lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                                              "results is NULL")
		         : c.kind == LADE_BARE_RAW ? raw_sizes(&c)
		                                   : head_sizes(&c);
	call_close(&c);
	return status;
}

/* ---- encoding --------------------------------------------------------------------------- */

/* The bytes of an item's chunk. */
static lade_status chunk_size(const lade_item *item, uint64_t *size, lade_error *err)
{
	lade__plan plan;
	lade_status status;

	*size = 0;
	if (item->layout && item->src_count == 1 && item->src) {
		status = lade__plan_make(item->layout, LADE_ENCODE, item->src->size, &plan, err);
		*size = status == LADE_OK ? plan.chunk_size : 0;
		return status;
	}
	for (size_t k = 0; item->src && k < item->src_count; k++)
		*size += item->src[k].size;
	return LADE_OK;
}

/* Makes the batch's item, which goes behind its head, and the head. */
static lade_status before_data(call *c, size_t i, lade_error *err)
{
	lade_item *item = &c->items[i];
	size_t field, head = head_of(c, i, &field);
	uint64_t size;
	lade_status status;

	*item = c->given.items[i];
	if (!spec_of(c, i))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "neither the call nor the item has a spec");
	if (!item->dst.data && item->dst.size)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "the destination is NULL and has %zu bytes", item->dst.size);
	if (item->dst.size < head)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "the size before the data takes %zu bytes, the destination has "
		                 "%zu",
		                 head, item->dst.size);
	status = chunk_size(item, &size, err);
	if (status != LADE_OK)
		return status;
	if (field == 4 && size > UINT32_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "%" PRIu64 " bytes, and the size before the data holds %" PRIu32
		                 " at most",
		                 size, UINT32_MAX);
	memset(c->heads[i].bytes, 0, HEAD_MAX);
	lade__le_put(c->heads[i].bytes, size, field);
	item->dst.data = (char *)item->dst.data + head;
	item->dst.size -= head;
	return LADE_OK;
}

static lade_status encode_items(call *c)
{
	lade_error error;
	lade_status status = want_tables(c, true);
	bool bad = false;

	for (size_t i = 0; status == LADE_OK && i < c->count; i++)
		if (before_data(c, i, NULL) != LADE_OK) {
			bad = true;
			status = blank(c, i, c->err);
		}
	if (status == LADE_OK)
		status = run_batch(c, LADE_ENCODE);
	for (size_t i = 0; bad && status == LADE_OK && i < c->count; i++)
		if (before_data(c, i, &error) != LADE_OK)
			fail_item(c, i, &error);
	if (status == LADE_OK)
		status = move_heads(c, LADE_ENCODE, c->err);
	for (size_t i = 0; status == LADE_OK && i < c->count; i++) {
		if (c->results[i].status)
			continue;
		c->results[i].size += head_of(c, i, NULL);
		if (!c->heads[i].status)
			continue;
		lade_fail(&error, c->heads[i].status, LADE_NO_OFFSET,
		          "the size before the data could not be stored");
		fail_item(c, i, &error);
	}
	return status == LADE_OK ? c->status : status;
}

lade_status lade_bare_encode_into(lade_engine *engine, const lade_item *items, size_t count,
                                  lade_result *results, const lade_bare_options *options,
                                  lade_error *err)
{
	call c;
	lade_error own;
	lade__given given = {.items = items, .results = results, .count = count};
	lade_status status = call_open(&c, engine, given, options, err ? err : &own);

	if (status != LADE_OK)
		return status;
	status = c.kind == LADE_BARE_RAW
	                 ? lade_encode_into(engine, c.spec, c.given.items, count, c.given.results,
	                                    &c.batch, err)
	                 : encode_items(&c);
	call_close(&c);
	return status;
}
