/*
 * decode.c: decodes bare bytes of N items in any place (docs/format/bare.md), and their sizes.
 *
 *     heads to the host --> check --> batch of what follows the heads --> compare
 *
 * An item whose head is wrong takes part as an item without bytes, so that all keep their numbers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bare/items.h"
#include "base/support.h"

#include <inttypes.h>
#include <stdlib.h>

/* On the word of a size field no more scratch is taken for a part of an item. */
#define BELIEVED ((uint64_t)1 << 30)
/* A claim of fewer bytes, or of fewer for each encoded one, is believed until it is decoded. */
#define CLAIM_LARGE ((uint64_t)1 << 20)
#define CLAIM_RATIO 16

static bool is_large(uint64_t claim, size_t size)
{
	return claim >= CLAIM_LARGE && claim / CLAIM_RATIO >= size;
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
	                                 "%" PRIu64,
	                                 claim, size,
	                                 lade_spec_count(spec) == 1
	                                         ? lade_spec_stage(spec, 0)->algorithm->name
	                                         : lade_spec_text(spec),
	                                 most);
}

/* What the one segment of an item says of its size behind its first 'head' bytes, whatever the
 * caller says. */
static uint64_t own_claim(const lade__bare_call *c, size_t i, size_t head)
{
	lade_batch_options options = {LADE__OUR_SIZES, .stream = c->batch.stream};
	lade_segment segment = *c->given.items[i].src;
	lade_item item = {.src = &segment, .src_count = 1};
	lade_result claim;

	segment.data = (const char *)segment.data + head;
	segment.size -= head;
	segment.decoded_size = 0;
	return lade_decoded_sizes(c->engine, lade__bare_spec(c, i), &item, 1, &claim, &options,
	                          NULL) == LADE_OK
	               ? claim.size
	               : LADE_SIZE_UNKNOWN;
}

/* Looks at a claim that would take much memory for few bytes, before any is taken: what the formats
 * can make of them at most, and what the bytes behind the head say. */
static lade_status check_claim(const lade__bare_call *c, size_t i, uint64_t claim, lade_error *err)
{
	const lade_item *item = &c->given.items[i];
	size_t head = lade__bare_head_of(c, i, NULL), size = 0;
	lade_status status;
	uint64_t own;

	if (claim < CLAIM_LARGE || !lade__bare_spec(c, i))
		return LADE_OK;
	for (size_t k = 0; k < item->src_count; k++) {
		if (item->src[k].decoded_size && !head)
			return LADE_OK; /* the caller's own word */
		size += item->src[k].size;
	}
	status = claim_can_be(lade__bare_spec(c, i), size - head, claim, err);
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
static lade_status read_head(const lade__bare_call *c, size_t i, uint64_t *size, lade_error *err)
{
	const lade_item *item = &c->given.items[i];
	const uint8_t *bytes = c->heads[i].bytes;
	size_t field, head = lade__bare_head_of(c, i, &field);

	*size = LADE_SIZE_UNKNOWN;
	if (!lade__bare_spec(c, i))
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

/* Nothing decides where the bytes go but the destination's size. */
static bool is_plain(const lade_item *item)
{
	return !item->layout && !item->output_count && !item->range_off && !item->range_size;
}

/* Makes the batch's item of what follows the head. */
static lade_status behind_head(lade__bare_call *c, size_t i, lade_error *err)
{
	lade_item *item = &c->items[i];
	lade_segment *segment = &c->segments[i];
	size_t head = lade__bare_head_of(c, i, NULL);
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
static lade_status compare(const lade__bare_call *c, size_t i, lade_error *err)
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

static lade_status decode_items(lade__bare_call *c)
{
	lade_error error;
	lade_status status = lade__bare_tables(c, true);
	bool bad = false;

	if (status == LADE_OK)
		status = lade__bare_move_heads(c, LADE_DECODE, c->err);
	for (size_t i = 0; status == LADE_OK && i < c->count; i++)
		if (behind_head(c, i, NULL) != LADE_OK) {
			bad = true;
			status = lade__bare_leave_out(c, i, c->err);
		}
	if (status == LADE_OK)
		status = lade__bare_run(c, LADE_DECODE);
	for (size_t i = 0; status == LADE_OK && i < c->count; i++)
		if ((bad && behind_head(c, i, &error) != LADE_OK) ||
		    compare(c, i, &error) != LADE_OK)
			lade__bare_fail_item(c, i, &error);
	return status == LADE_OK ? c->status : status;
}

/* Whether an item had too little room because it claims more than it can give: none would do. */
static bool claims_too_much(const lade__bare_call *c, size_t i, lade_error *err)
{
	const lade_item *item = &c->given.items[i];
	uint64_t claim;

	if (c->results[i].status != LADE_E_NOSPACE || item->src_count != 1)
		return false;
	claim = own_claim(c, i, 0);
	return claim != LADE_SIZE_UNKNOWN &&
	       claim_can_be(lade__bare_spec(c, i), item->src->size, claim, err) != LADE_OK;
}

static lade_status decode_raw(lade__bare_call *c)
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
			lade__bare_fail_item(c, i, &error);
	}
	/* A call that failed by itself looked at no item. */
	return c->first == SIZE_MAX ? status : c->status;
}

lade_status lade_bare_decode_into(lade_engine *engine, const lade_item *items, size_t count,
                                  lade_result *results, const lade_bare_options *options,
                                  lade_error *err)
{
	lade__bare_call c;
	lade_error own;
	lade__given given = {.items = items, .results = results, .count = count};
	lade_status status = lade__bare_open(&c, engine, given, options, err ? err : &own);

	if (status != LADE_OK)
		return status;
	status = c.kind == LADE_BARE_RAW ? decode_raw(&c) : decode_items(&c);
	lade__bare_close(&c);
	return status;
}

/* Raw bytes state their sizes where the format does; a size that cannot be is an item's failure. */
static lade_status raw_sizes(lade__bare_call *c)
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
			lade__bare_fail_item(c, i, &error);
	return c->status;
}

static lade_status head_sizes(lade__bare_call *c)
{
	lade_error error;
	lade_status status = lade__bare_tables(c, false);

	if (status == LADE_OK)
		status = lade__bare_move_heads(c, LADE_DECODE, c->err);
	for (size_t i = 0; status == LADE_OK && i < c->count; i++) {
		uint64_t size;
		if (read_head(c, i, &size, &error) == LADE_OK)
			c->results[i] = (lade_result){LADE_OK, (size_t)size};
		else
			lade__bare_fail_item(c, i, &error);
	}
	return status == LADE_OK ? c->status : status;
}

lade_status lade_bare_decoded_sizes(lade_engine *engine, const lade_item *items, size_t count,
                                    lade_result *results, const lade_bare_options *options,
                                    lade_error *err)
{
	lade__bare_call c;
	lade_error own;
	lade__given given = {.items = items, .results = results, .count = count};
	lade_status status = lade__bare_open(&c, engine, given, options, err ? err : &own);

	if (status != LADE_OK)
		return status;
	c.results = c.given.results;
	if (count)
		status = !results ? lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "results is NULL")
		         : c.kind == LADE_BARE_RAW ? raw_sizes(&c)
		                                   : head_sizes(&c);
	lade__bare_close(&c);
	return status;
}
