/*
 * given.c: what a call was given, in this version's structs, whatever version its caller was
 * compiled for.
 *
 *     block:  | items | segments | outputs | results |
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "array/given.h"

#include "base/support.h"

#include <lade/version.h>

#if LADE_VERSION <= 200 && !defined(LADE_TEST_GROWN)
/* Until 0.2.0 is released, a struct that grows moves its line in given.h. */
_Static_assert(LADE__ITEM_0_2 == sizeof(lade_item) && LADE__SEGMENT_0_2 == sizeof(lade_segment) &&
                       LADE__RESULT_0_2 == sizeof(lade_result) &&
                       LADE__CANDIDATE_0_2 == sizeof(lade_candidate) &&
                       LADE__OUTPUT_0_2 == sizeof(lade_item_output),
               "0.2.0's structs have other last fields");
#endif

/* ---- copies ------------------------------------------------------------------------------ */

static lade_status surplus(lade_error *err, const char *what, size_t i, size_t given, size_t ours,
                           size_t bad)
{
	return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
	                 "%s %zu: it has %zu bytes, this library's have %zu, and byte %zu is not "
	                 "zero: this version has no such field",
	                 what, i, given, ours, bad);
}

/* Structs of one kind that an item has, and where they are copied to. */
typedef struct list {
	const char *what;
	size_t count;
	const void *from;
	size_t from_size; /* of each */
	void *to;
	size_t to_size;
} list;

static lade_status copy_list(const list *l, size_t item, lade_error *err)
{
	const unsigned char *from = l->from;
	unsigned char *at = l->to;
	for (size_t k = 0; k < l->count; k++) {
		size_t bad = lade__struct_copy(at + k * l->to_size, l->to_size,
		                               from + k * l->from_size, l->from_size);
		if (bad != SIZE_MAX) {
			lade_error why;
			surplus(&why, l->what, k, l->from_size, l->to_size, bad);
			return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "item %zu: %s", item,
			                 why.message);
		}
	}
	return LADE_OK;
}

/* Where the parts of the block go, and how many there are of each. */
typedef struct copies {
	bool segments, outputs; /* whether they are copied */
	size_t segment_count, output_count;
	lade_item *items;
	lade_segment *segment;
	lade_item_output *output;
} copies;

static lade_status count_copies(const lade__given *g, const unsigned char *items, size_t size,
                                copies *c, lade_error *err)
{
	bool bad = false;
	for (size_t i = 0; i < g->count && !bad; i++) {
		lade_item item;
		lade__struct_copy(&item, sizeof item, items + i * size, size);
		if (c->segments && item.src)
			bad |= __builtin_add_overflow(c->segment_count, item.src_count,
			                              &c->segment_count);
		if (c->outputs && item.outputs)
			bad |= __builtin_add_overflow(c->output_count, item.output_count,
			                              &c->output_count);
	}
	return !bad ? LADE_OK
	            : lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
	                        "the segments or outputs of %zu items overflow", g->count);
}

static lade_status take_block(lade__given *g, copies *c, lade_error *err)
{
	const size_t parts[4][2] = {{g->count, sizeof(lade_item)},
	                            {c->segment_count, sizeof(lade_segment)},
	                            {c->output_count, sizeof(lade_item_output)},
	                            {g->results ? g->count : 0, sizeof(lade_result)}};
	size_t at[4], size = 0, each;
	bool bad = false;
	for (int i = 0; i < 4; i++) {
		at[i] = size;
		bad |= __builtin_mul_overflow(parts[i][0], parts[i][1], &each) ||
		       __builtin_add_overflow(size, each, &size);
	}
	g->block_size = size;
	unsigned char *block = bad ? NULL : lade__host_alloc(g->host, size);
	if (!block)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for %zu items in this version's structs", g->count);
	g->block = block;
	c->items = g->block;
	c->segment = (lade_segment *)(void *)(block + at[1]);
	c->output = (lade_item_output *)(void *)(block + at[2]);
	if (g->results) {
		g->caller_results = (unsigned char *)g->results;
		g->results = (lade_result *)(void *)(block + at[3]);
	}
	return LADE_OK;
}

static lade_status copy_item(copies *c, const unsigned char *from, size_t i,
                             const lade__sizes *sizes, lade_error *err)
{
	lade_item *to = &c->items[i];
	size_t bad = lade__struct_copy(to, sizeof *to, from, sizes->item);
	lade_status status = LADE_OK;
	if (bad != SIZE_MAX)
		return surplus(err, "item", i, sizes->item, sizeof *to, bad);
	if (c->segments && to->src) {
		list l = {"segment",      to->src_count, to->src,
		          sizes->segment, c->segment,    sizeof *c->segment};
		status = copy_list(&l, i, err);
		to->src = c->segment;
		c->segment += to->src_count;
	}
	if (status == LADE_OK && c->outputs && to->outputs) {
		list l = {"output",      to->output_count, to->outputs,
		          sizes->output, c->output,        sizeof *c->output};
		status = copy_list(&l, i, err);
		to->outputs = c->output;
		c->output += to->output_count;
	}
	return status;
}

static lade_status copy_arrays(lade__given *g, const unsigned char *items, const lade__sizes *sizes,
                               lade_error *err)
{
	copies c = {.segments = sizes->segment != sizeof(lade_segment),
	            .outputs = sizes->output != sizeof(lade_item_output)};
	lade_status status = count_copies(g, items, sizes->item, &c, err);
	if (status == LADE_OK)
		status = take_block(g, &c, err);
	for (size_t i = 0; status == LADE_OK && i < g->count; i++)
		status = copy_item(&c, items + i * sizes->item, i, sizes, err);
	for (size_t i = 0; status == LADE_OK && g->results && i < g->count; i++)
		lade__struct_copy(&g->results[i], sizeof *g->results,
		                  g->caller_results + i * sizes->result, sizes->result);
	g->items = c.items;
	g->result_size = sizes->result;
	return status;
}

lade_status lade__given_open(lade__given *g, const lade__sizes *given, lade_error *err)
{
	static const lade__sizes ours = {sizeof(lade_item), sizeof(lade_segment),
	                                 sizeof(lade_item_output), sizeof(lade_result)};
	lade__sizes sizes = *given;
	/* Most calls: this version's sizes, or none given, which are 0.2's, and the same. */
	if (memcmp(given, &ours, sizeof ours) == 0)
		return LADE_OK;
	if (LADE__ITEM_0_2 == sizeof(lade_item) && LADE__SEGMENT_0_2 == sizeof(lade_segment) &&
	    LADE__OUTPUT_0_2 == sizeof(lade_item_output) &&
	    LADE__RESULT_0_2 == sizeof(lade_result) &&
	    (given->item | given->segment | given->output | given->result) == 0)
		return LADE_OK;
	lade_status status = lade__size_given(&sizes.item, LADE__ITEM_0_2, "item_size", err);
	if (status == LADE_OK)
		status = lade__size_given(&sizes.segment, LADE__SEGMENT_0_2, "segment_size", err);
	if (status == LADE_OK)
		status = lade__size_given(&sizes.output, LADE__OUTPUT_0_2, "output_size", err);
	if (status == LADE_OK)
		status = lade__size_given(&sizes.result, LADE__RESULT_0_2, "result_size", err);
	if (status != LADE_OK || g->count == 0 ||
	    (sizes.item == sizeof(lade_item) && sizes.segment == sizeof(lade_segment) &&
	     sizes.output == sizeof(lade_item_output) &&
	     (!g->results || sizes.result == sizeof(lade_result))))
		return status;
	status = copy_arrays(g, (const unsigned char *)g->items, &sizes, err);
	if (status != LADE_OK) {
		g->caller_results = NULL;
		lade__given_close(g);
	}
	return status;
}

void lade__given_close(lade__given *g)
{
	if (!g->block)
		return;
	for (size_t i = 0; g->caller_results && i < g->count; i++)
		lade__struct_copy(g->caller_results + i * g->result_size, g->result_size,
		                  &g->results[i], sizeof *g->results);
	lade__host_free(g->host, g->block, g->block_size);
	g->block = NULL;
}

/* ---- arrays on devices -------------------------------------------------------------------- */

lade_status lade__arrays_read(const lade_arrays *given, lade_arrays *arrays, lade_error *err)
{
	if (!given)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "arrays is NULL");
	return lade__options_read(arrays, sizeof *arrays, given, "arrays", err);
}
