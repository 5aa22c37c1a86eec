/*
 * encode.c: encodes N items to bare bytes in any place (docs/format/bare.md).
 *
 *     batch behind the heads' places --> heads to the destinations
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "array/plan.h"
#include "bare/items.h"
#include "base/support.h"

#include <inttypes.h>

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
static lade_status before_data(lade__bare_call *c, size_t i, lade_error *err)
{
	lade_item *item = &c->items[i];
	size_t field, head = lade__bare_head_of(c, i, &field);
	uint64_t size;
	lade_status status;

	*item = c->given.items[i];
	if (!lade__bare_spec(c, i))
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
	memset(c->heads[i].bytes, 0, LADE__BARE_HEAD_MAX);
	lade__le_put(c->heads[i].bytes, size, field);
	item->dst.data = (char *)item->dst.data + head;
	item->dst.size -= head;
	return LADE_OK;
}

static lade_status encode_items(lade__bare_call *c)
{
	lade_error error;
	lade_status status = lade__bare_tables(c, true);
	bool bad = false;

	for (size_t i = 0; status == LADE_OK && i < c->count; i++)
		if (before_data(c, i, NULL) != LADE_OK) {
			bad = true;
			status = lade__bare_leave_out(c, i, c->err);
		}
	if (status == LADE_OK)
		status = lade__bare_run(c, LADE_ENCODE);
	for (size_t i = 0; bad && status == LADE_OK && i < c->count; i++)
		if (before_data(c, i, &error) != LADE_OK)
			lade__bare_fail_item(c, i, &error);
	if (status == LADE_OK)
		status = lade__bare_move_heads(c, LADE_ENCODE, c->err);
	for (size_t i = 0; status == LADE_OK && i < c->count; i++) {
		if (c->results[i].status)
			continue;
		c->results[i].size += lade__bare_head_of(c, i, NULL);
		if (!c->heads[i].status)
			continue;
		lade_fail(&error, c->heads[i].status, LADE_NO_OFFSET,
		          "the size before the data could not be stored");
		lade__bare_fail_item(c, i, &error);
	}
	return status == LADE_OK ? c->status : status;
}

lade_status lade_bare_encode_into(lade_engine *engine, const lade_item *items, size_t count,
                                  lade_result *results, const lade_bare_options *options,
                                  lade_error *err)
{
	lade__bare_call c;
	lade_error own;
	lade__given given = {.items = items, .results = results, .count = count};
	lade_status status = lade__bare_open(&c, engine, given, options, err ? err : &own);

	if (status != LADE_OK)
		return status;
	status = c.kind == LADE_BARE_RAW ? lade_encode_into(engine, c.spec, c.given.items, count,
	                                                    c.given.results, &c.batch, err)
	                                 : encode_items(&c);
	lade__bare_close(&c);
	return status;
}
