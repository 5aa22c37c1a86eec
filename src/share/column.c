/*
 * column.c: reads the head of a version (docs/format/share.md, section 2).
 *
 * The head is private memory.  What is read of blocks, the first and last offsets, is of sealed
 * memory, which nobody can change.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "share/column.h"

#include "base/support.h"
#include "base/try.h"
#include "share/emit.h"
#include "share/job.h"

#include <stdlib.h>
#include <string.h>

#define COUNT_MAX ((int64_t)1 << 56)
#define ARRAY_FIXED 32
#define BUFFER_SIZE 24

typedef struct reader {
	lade__cursor c;
	lade__blocks *blocks;
	const uint8_t *data; /* of the head */
	uint64_t data_size;
	const lade__buffer *memory;
	size_t memory_count;
} reader;

static lade_status corrupt(const lade__node *n, const char *what, uint64_t have, uint64_t want,
                           lade_error *err)
{
	return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
	                 "'%.60s' of format '%.30s': %s: have %llu, want %llu", n->name, n->format,
	                 what, (unsigned long long)have, (unsigned long long)want);
}

static lade_status read_buffer(reader *r, const lade__node *n, lade__buffer *out, lade_error *err)
{
	uint32_t block = (uint32_t)lade__take(&r->c, 4), reserved = (uint32_t)lade__take(&r->c, 4);
	uint64_t off = lade__take(&r->c, 8), size = lade__take(&r->c, 8);
	lade__buffer whole = {r->data, r->data_size, NULL};

	if (block == LADE__BLOCK_NONE) {
		*out = (lade__buffer){NULL, 0, NULL};
		return off || size || reserved
			       ? corrupt(n, "a buffer without a block has bytes", size, 0, err)
			       : LADE_OK;
	}
	if (block != LADE__BLOCK_INLINE) {
		if (block >= r->memory_count)
			return corrupt(n, "a buffer's block", block, r->memory_count, err);
		whole = r->memory[block];
	}
	if (reserved || off > whole.size || size > whole.size - off)
		return corrupt(n, "a buffer passes the end of its block", off, whole.size, err);
	*out = (lade__buffer){whole.data + off, size, whole.vmm};
	return LADE_OK;
}

/* ---- what must fit ---------------------------------------------------------------------- */

static lade_status want_buffer(const lade__column *c, size_t i, uint64_t size, lade_error *err)
{
	if (c->buffers[i].size < size)
		return corrupt(c->node, "bytes of a buffer", c->buffers[i].size, size, err);
	return LADE_OK;
}

/* Offsets of BYTES and LIST: what they lead to has 'limit' bytes or values. */
static lade_status check_offsets(const lade__column *c, uint64_t limit, lade_error *err)
{
	size_t width = c->node->type.width;
	uint64_t end = (uint64_t)(c->off + c->length);
	lade_status status;

	TRY(want_buffer(c, 1, (end + 1) * width, err));
	if (c->buffers[1].vmm)
		return LADE_OK;
	int64_t first = lade__element(c->buffers[1].data, width, (uint64_t)c->off);
	int64_t last = lade__element(c->buffers[1].data, width, end);
	if (first < 0 || last < first)
		return corrupt(c->node, "the last offset is before the first", (uint64_t)last,
		               (uint64_t)first, err);
	if ((uint64_t)last > limit)
		return corrupt(c->node, "the last offset", (uint64_t)last, limit, err);
out:
	return status;
}

static lade_status check_views(const lade__column *c, uint64_t end, lade_error *err)
{
	size_t strings = c->buffer_count - 3;
	const lade__buffer *sizes = &c->buffers[c->buffer_count - 1];
	lade_status status;

	TRY(want_buffer(c, 1, end * 16, err));
	TRY(want_buffer(c, c->buffer_count - 1, (uint64_t)strings * 8, err));
	if (sizes->vmm)
		return LADE_OK;
	for (size_t i = 0; i < strings; i++) {
		int64_t size = lade__element(sizes->data, 8, i);
		if (size < 0)
			return corrupt(c->node, "a size of strings", (uint64_t)size, 0, err);
		TRY(want_buffer(c, 2 + i, (uint64_t)size, err));
	}
out:
	return status;
}

static lade_status check_runs(const lade__column *c, uint64_t end, lade_error *err)
{
	const lade__column *ends = c->children[0], *values = c->children[1];

	if (ends->null_count > 0 || ends->length > values->length)
		return corrupt(c->node, "run ends, and values for them", (uint64_t)ends->length,
		               (uint64_t)values->length, err);
	if (!end)
		return LADE_OK;
	int64_t last = 0;
	if (ends->length && ends->buffers[1].vmm)
		return LADE_OK;
	if (ends->length)
		last = lade__element(ends->buffers[1].data, ends->node->type.width,
		                     (uint64_t)(ends->off + ends->length - 1));
	if (last < (int64_t)end)
		return corrupt(c->node, "the last run end", (uint64_t)last, end, err);
	return LADE_OK;
}

static lade_status want_children(const lade__column *c, uint64_t length, lade_error *err)
{
	for (size_t i = 0; i < c->node->child_count; i++)
		if ((uint64_t)c->children[i]->length < length)
			return corrupt(c->node, "values of a child",
			               (uint64_t)c->children[i]->length, length, err);
	return LADE_OK;
}

/* The bitmap, or null_count where there is none. */
static lade_status check_nulls(lade__column *c, uint64_t end, lade_error *err)
{
	lade__layout l = c->node->type.layout;

	if (l == LADE__AS_NULLS || l == LADE__AS_RUNS || l == LADE__AS_SPARSE ||
	    l == LADE__AS_DENSE) {
		if (c->null_count > 0 && l != LADE__AS_NULLS)
			return corrupt(c->node, "nulls of a type that has none",
			               (uint64_t)c->null_count, 0, err);
		return LADE_OK;
	}
	if (c->buffers[0].data)
		return want_buffer(c, 0, (end + 7) / 8, err);
	if (c->null_count > 0)
		return corrupt(c->node, "nulls without a bitmap", (uint64_t)c->null_count, 0, err);
	c->null_count = 0;
	return LADE_OK;
}

lade_status lade__column_fits(lade__column *c, lade_error *err)
{
	const lade__type *t = &c->node->type;
	uint64_t end = (uint64_t)(c->off + c->length), all;
	lade_status status;

	for (size_t i = 0; i < c->buffer_count; i++) {
		size_t align = lade__type_align(t, i, c->buffer_count);
		if ((uintptr_t)c->buffers[i].data % align)
			return corrupt(c->node, "a buffer's address", (uintptr_t)c->buffers[i].data,
			               align, err);
	}
	TRY(check_nulls(c, end, err));
	switch (t->layout) {
	case LADE__AS_BITS:
		return want_buffer(c, 1, (end + 7) / 8, err);
	case LADE__AS_FIXED:
		if (__builtin_mul_overflow(end, t->width, &all))
			return corrupt(c->node, "values", end, 0, err);
		return want_buffer(c, 1, all, err);
	case LADE__AS_BYTES:
		return check_offsets(c, c->buffers[2].size, err);
	case LADE__AS_LIST:
		return check_offsets(c, (uint64_t)c->children[0]->length, err);
	case LADE__AS_VIEWS:
		return check_views(c, end, err);
	case LADE__AS_LISTVIEW:
		TRY(want_buffer(c, 1, end * t->width, err));
		return want_buffer(c, 2, end * t->width, err);
	case LADE__AS_FIXED_LIST:
		if (__builtin_mul_overflow(end, t->width, &all))
			return corrupt(c->node, "values", end, 0, err);
		return want_children(c, all, err);
	case LADE__AS_STRUCT:
		return want_children(c, end, err);
	case LADE__AS_SPARSE:
		TRY(want_buffer(c, 0, end, err));
		return want_children(c, end, err);
	case LADE__AS_DENSE:
		TRY(want_buffer(c, 0, end, err));
		return want_buffer(c, 1, end * 4, err);
	case LADE__AS_RUNS:
		return check_runs(c, end, err);
	default:
		return LADE_OK;
	}
out:
	return status;
}

/* ---- reading ---------------------------------------------------------------------------- */

static lade_status no_memory(lade_error *err)
{
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a version");
}

static lade_status read_chunk(reader *r, const lade__node *n, lade__column **out, lade_error *err)
{
	lade__column *c = lade__blocks_alloc(r->blocks, 1, sizeof *c);
	size_t want = lade__type_buffers(&n->type);
	lade_status status;

	*out = c;
	if (!c)
		return no_memory(err);
	c->node = n;
	c->length = (int64_t)lade__take(&r->c, 8);
	c->null_count = (int64_t)lade__take(&r->c, 8);
	c->off = (int64_t)lade__take(&r->c, 8);
	c->buffer_count = (size_t)lade__take(&r->c, 4);
	uint64_t reserved = lade__take(&r->c, 4);
	if (r->c.bad || reserved || c->length < 0 || c->off < 0 || c->length > COUNT_MAX ||
	    c->off > COUNT_MAX || c->null_count < -1 || c->null_count > c->length)
		return corrupt(n, "a length, an offset or a null count", (uint64_t)c->length,
		               (uint64_t)c->null_count, err);
	if (c->buffer_count > r->c.left / BUFFER_SIZE ||
	    (n->type.layout == LADE__AS_VIEWS ? c->buffer_count < want : c->buffer_count != want))
		return corrupt(n, "buffers", c->buffer_count, want, err);
	c->buffers = lade__blocks_alloc(r->blocks, c->buffer_count, sizeof *c->buffers);
	c->children = lade__blocks_alloc(r->blocks, n->child_count, sizeof *c->children);
	if (!c->buffers || !c->children)
		return no_memory(err);
	for (size_t i = 0; i < c->buffer_count; i++)
		TRY(read_buffer(r, n, &c->buffers[i], err));
	for (size_t i = 0; i < n->child_count; i++)
		TRY(read_chunk(r, n->children[i], &c->children[i], err));
	if (n->dictionary)
		TRY(read_chunk(r, n->dictionary, &c->dictionary, err));
	TRY(lade__column_fits(c, err));
out:
	return status;
}

/* One device has all buffers of a batch, or none: '*device', if one below it has some. */
static lade_status find_device(const lade__column *c, const lade__device **device, bool *some,
                               lade_error *err)
{
	lade_status status = LADE_OK;

	for (size_t i = 0; i < c->buffer_count; i++) {
		const lade__device *d = c->buffers[i].vmm ? c->buffers[i].vmm->device : NULL;
		if (!c->buffers[i].data)
			continue;
		if (*some && d != *device)
			return corrupt(c->node, "its buffers are in several places", i, 0, err);
		*device = d;
		*some = true;
	}
	for (size_t i = 0; i < c->node->child_count; i++)
		TRY(find_device(c->children[i], device, some, err));
	if (c->dictionary)
		TRY(find_device(c->dictionary, device, some, err));
out:
	return status;
}

/* Of all batches.  One without buffers is where the others are. */
static lade_status find_devices(lade__head *head, lade_error *err)
{
	const lade__device *any = NULL;
	lade_status status = LADE_OK;

	head->devices = lade__blocks_alloc(&head->blocks, head->batch_count, sizeof *head->devices);
	bool *some = lade__blocks_alloc(&head->blocks, head->batch_count, sizeof *some);
	if (!head->devices || !some)
		return no_memory(err);
	for (size_t i = 0; i < head->batch_count; i++) {
		TRY(find_device(head->batches[i], &head->devices[i], &some[i], err));
		any = any ? any : head->devices[i];
	}
	for (size_t i = 0; i < head->batch_count; i++)
		if (!some[i])
			head->devices[i] = any;
out:
	return status;
}

lade_status lade__head_read(const uint8_t *head, size_t size, const lade__buffer *memory,
                            size_t memory_count, lade__head *out, lade_error *err)
{
	lade__cursor c = {head, size, false};
	const uint8_t *magic = lade__take_bytes(&c, 4);
	uint16_t layout = (uint16_t)lade__take(&c, 2), reserved = (uint16_t)lade__take(&c, 2);
	lade_status status = LADE_OK;
	uint64_t rows = 0;

	memset(out, 0, sizeof *out);
	if (!magic || memcmp(magic, "LSHV", 4) || reserved)
		return lade_fail(err, LADE_E_CORRUPT, 0, "it does not begin as a version does");
	if (layout != 1)
		return lade_fail(err, LADE_E_VERSION, 4, "layout %u of a version, want 1", layout);
	out->rows = lade__take(&c, 8);
	out->batch_count = (size_t)lade__take(&c, 4);
	size_t nodes = (size_t)lade__take(&c, 4), schema_size = (size_t)lade__take(&c, 4);
	size_t arrays_size = (size_t)lade__take(&c, 4);
	const uint8_t *schema = lade__take_bytes(&c, schema_size);
	const uint8_t *arrays = lade__take_bytes(&c, arrays_size);
	size_t data = (size_t)(size - c.left + 63) & ~(size_t)63;
	if (c.bad || out->batch_count > arrays_size / ARRAY_FIXED || (c.left && data > size))
		return lade_fail(err, LADE_E_CORRUPT, 16,
		                 "a head of %zu bytes has a schema of %zu and arrays of %zu", size,
		                 schema_size, arrays_size);
	data = data < size ? data : size;
	reader r = {.c = {arrays, arrays_size, false},
	            .blocks = &out->blocks,
	            .data = head + data,
	            .data_size = size - data,
	            .memory = memory,
	            .memory_count = memory_count};
	TRY(lade__nodes_read(schema, schema_size, nodes, &out->blocks, &out->root, err));
	out->batches = lade__blocks_alloc(&out->blocks, out->batch_count, sizeof *out->batches);
	TRY(out->batches ? LADE_OK : no_memory(err));
	for (size_t i = 0; i < out->batch_count; i++) {
		TRY(read_chunk(&r, out->root, &out->batches[i], err));
		rows += (uint64_t)out->batches[i]->length;
	}
	if (r.c.left || rows != out->rows)
		TRY(corrupt(out->root, "rows of all arrays", rows, out->rows, err));
	TRY(find_devices(out, err));
out:
	if (status != LADE_OK)
		lade__head_free(out);
	return status;
}

void lade__head_free(lade__head *head)
{
	lade__blocks_free(&head->blocks);
	memset(head, 0, sizeof *head);
}

/* ---- to the C interface ----------------------------------------------------------------- */

typedef struct export {
	lade_share_version *version;
	const void *buffers[];
} export;

static void release_array(struct ArrowArray *a)
{
	export *e = a->private_data;

	for (int64_t i = 0; i < a->n_children && a->children; i++) {
		if (a->children[i] && a->children[i]->release)
			a->children[i]->release(a->children[i]);
		free(a->children[i]);
	}
	if (a->dictionary && a->dictionary->release)
		a->dictionary->release(a->dictionary);
	free(a->dictionary);
	free(a->children);
	a->release = NULL;
	if (e)
		lade_share_version_unref(e->version);
	free(e);
}

lade_status lade__column_export(const lade__column *c, lade_share_version *version,
                                struct ArrowArray *out, lade_error *err)
{
	size_t child_count = c->node->child_count;
	export *e = malloc(sizeof *e + c->buffer_count * sizeof *e->buffers);
	lade_status status = LADE_OK;

	*out = (struct ArrowArray){.length = c->length,
	                           .null_count = c->null_count,
	                           .offset = c->off,
	                           .n_buffers = (int64_t)c->buffer_count,
	                           .n_children = (int64_t)child_count,
	                           .release = release_array,
	                           .private_data = e};
	if (child_count)
		out->children = calloc(child_count, sizeof *out->children);
	if (e) {
		e->version = lade_share_version_ref(version);
		out->buffers = e->buffers;
	}
	if (!e || (child_count && !out->children))
		TRY(no_memory(err));
	for (size_t i = 0; i < c->buffer_count; i++)
		e->buffers[i] = c->buffers[i].data;
	for (size_t i = 0; i < child_count; i++) {
		out->children[i] = calloc(1, sizeof **out->children);
		TRY(out->children[i]
			    ? lade__column_export(c->children[i], version, out->children[i], err)
			    : no_memory(err));
	}
	if (c->dictionary) {
		out->dictionary = calloc(1, sizeof *out->dictionary);
		TRY(out->dictionary
			    ? lade__column_export(c->dictionary, version, out->dictionary, err)
			    : no_memory(err));
	}
out:
	if (status != LADE_OK)
		release_array(out);
	return status;
}
