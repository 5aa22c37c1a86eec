/*
 * emit.c: what is published: which memory is shared, what is copied, and the head that says so.
 *
 * A walk over each batch with its schema.  A node whose buffers, and those below it, are all in
 * memory that can be shared is recorded as it is.  The buffers of any other node are copied, only
 * the part that is seen, and its children decide for themselves:
 *
 *     struct at rows [off, off + len)      children at the same rows
 *     list                                 its child at the elements of these rows
 *
 * Arrays on a device are walked in the same way.  What the walk must see, such as offsets, is
 * copied to the host; what is copied as it is stays on the device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "share/emit.h"

#include "base/support.h"
#include "base/try.h"
#include "share/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN 64
/* Numbers of elements and bytes: sums and products with 16 do not overflow. */
#define COUNT_MAX ((int64_t)1 << 56)

/* What a walk is at: a node, its array, and the rows that are seen. */
typedef struct place {
	const lade__node *node;
	const struct ArrowArray *array;
	int64_t off, len; /* off: in the array's buffers, with its own offset */
} place;

static lade_status emit(lade__emitted *p, place at, lade_error *err);

static lade_status bad(const place *at, const char *what, lade_error *err)
{
	return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "'%.60s' of format '%.30s': %s",
	                 at->node->name, at->node->format, what);
}

static lade_status no_memory(lade_error *err)
{
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for what is published");
}

/* ---- what an array has ------------------------------------------------------------------ */

static bool has_validity(const lade__node *node)
{
	lade__layout l = node->type.layout;

	return l != LADE__AS_NULLS && l != LADE__AS_SPARSE && l != LADE__AS_DENSE &&
	       l != LADE__AS_RUNS;
}

/* The bitmap; NULL: no nulls. */
static const uint8_t *validity(const place *at)
{
	if (!has_validity(at->node) || !at->array->null_count)
		return NULL;
	return at->array->buffers[0];
}

/* A child, with 'len' rows from 'off' on of the child's own. */
static place child(const place *at, size_t i, int64_t off, int64_t len)
{
	const struct ArrowArray *array = at->array->children[i];

	return (place){at->node->children[i], array, array->offset + off, len};
}

static place whole(const lade__node *node, const struct ArrowArray *array)
{
	return (place){node, array, array->offset, array->length};
}

static lade_status check(const place *at, lade_error *err)
{
	const struct ArrowArray *a = at->array;
	const lade__node *n = at->node;
	size_t want = lade__type_buffers(&n->type);

	if (!a || !a->release)
		return bad(at, "an array is NULL or released", err);
	if (a->length < 0 || a->offset < 0 || a->length > COUNT_MAX || a->offset > COUNT_MAX)
		return bad(at, "a length or an offset is not possible", err);
	if (at->off < a->offset || at->len < 0 || at->off + at->len > a->offset + a->length)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "'%.60s' of format '%.30s' has %lld values, want %lld", n->name,
		                 n->format, (long long)a->length,
		                 (long long)(at->off - a->offset + at->len));
	if (n->type.layout == LADE__AS_VIEWS ? a->n_buffers < (int64_t)want
	                                     : a->n_buffers != (int64_t)want)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "'%.60s' of format '%.30s' has %lld buffers, want %zu", n->name,
		                 n->format, (long long)a->n_buffers, want);
	if (a->n_children != (int64_t)n->child_count || (a->n_buffers && !a->buffers) ||
	    !a->dictionary != !n->dictionary)
		return bad(at, "children, buffers or dictionary are not those of the schema", err);
	return LADE_OK;
}

/* ---- what the host must see ------------------------------------------------------------- */

/* 'size' bytes from 'off' on of an array's buffer, where the host can read them; a copy of a
 * device's stays until the plan goes. */
static lade_status on_host(lade__emitted *p, const void *buffer, uint64_t off, uint64_t size,
                           const void **out, lade_error *err)
{
	const uint8_t *from = buffer;
	void *copy;

	*out = from ? from + off : NULL;
	if (!p->device || !from || !size)
		return LADE_OK;
	copy = lade__blocks_alloc(&p->blocks, size, 1);
	if (!copy)
		return no_memory(err);
	p->staged += size;
	*out = copy;
	return lade__device_read(p->device, from + off, size, copy, err);
}

/* Integer 'at' of an array's buffer, of 'width' bytes. */
static lade_status element(lade__emitted *p, const void *buffer, size_t width, uint64_t at,
                           int64_t *out, lade_error *err)
{
	uint8_t bytes[8];
	const uint8_t *from = (const uint8_t *)buffer + at * width;
	lade_status status = LADE_OK;

	if (p->device) {
		status = lade__device_read(p->device, from, width, bytes, err);
		from = bytes;
	}
	*out = status == LADE_OK ? lade__element(from, width, 0) : 0;
	return status;
}

/* The bitmap from the byte on that has the first row, whose bit is at->off % 8; NULL: no nulls. */
static lade_status bitmap(lade__emitted *p, const place *at, const uint8_t **out, lade_error *err)
{
	const uint8_t *bits = at->len ? validity(at) : NULL;
	uint64_t first = (uint64_t)at->off / 8, end = ((uint64_t)(at->off + at->len) + 7) / 8;
	const void *seen;
	lade_status status = on_host(p, bits, first, end - first, &seen, err);

	*out = seen;
	return status;
}

/* The offsets of the first row and behind the last one. */
static lade_status range_of(lade__emitted *p, const place *at, int64_t *first, int64_t *last,
                            lade_error *err)
{
	const void *offsets = at->array->buffers[1];
	size_t width = at->node->type.width;
	lade_status status;

	*first = *last = 0;
	if (!at->len)
		return LADE_OK;
	if (!offsets)
		return bad(at, "there are no offsets", err);
	TRY(element(p, offsets, width, (uint64_t)at->off, first, err));
	TRY(element(p, offsets, width, (uint64_t)(at->off + at->len), last, err));
	if (*first < 0 || *last < *first || *last > COUNT_MAX)
		return bad(at, "its offsets do not ascend", err);
out:
	return status;
}

/* Bytes of buffer i from its start to the last row that is seen. */
static lade_status buffer_size(lade__emitted *p, const place *at, int64_t i, uint64_t *size,
                               lade_error *err)
{
	const struct ArrowArray *a = at->array;
	const lade__type *t = &at->node->type;
	uint64_t end = (uint64_t)(at->off + at->len);
	int64_t first, last;
	lade_status status = LADE_OK;

	*size = 0;
	if (i == 0 && has_validity(at->node)) {
		*size = a->buffers[0] ? (end + 7) / 8 : 0;
		if (!a->buffers[0] && a->null_count > 0)
			return bad(at, "there are nulls and no bitmap", err);
		return LADE_OK;
	}
	switch (t->layout) {
	case LADE__AS_BITS:
		*size = (end + 7) / 8;
		break;
	case LADE__AS_FIXED:
		if (__builtin_mul_overflow(end, t->width, size) || *size > (uint64_t)COUNT_MAX)
			return bad(at, "it is too large", err);
		break;
	case LADE__AS_BYTES:
	case LADE__AS_LIST:
		*size = (end + 1) * t->width;
		if (i == 2) {
			TRY(range_of(p, at, &first, &last, err));
			*size = (uint64_t)last;
		}
		break;
	case LADE__AS_VIEWS:
		*size = end * 16;
		if (i == a->n_buffers - 1)
			*size = (uint64_t)(a->n_buffers - 3) * 8;
		else if (i > 1) {
			TRY(a->buffers[a->n_buffers - 1]
			            ? element(p, a->buffers[a->n_buffers - 1], 8,
			                      (uint64_t)i - 2, &last, err)
			            : bad(at, "a buffer is NULL", err));
			*size = (uint64_t)last;
		}
		break;
	case LADE__AS_LISTVIEW:
		*size = end * t->width;
		break;
	case LADE__AS_SPARSE:
	case LADE__AS_DENSE:
		*size = i ? end * 4 : end;
		break;
	default:
		break;
	}
	if (*size && !a->buffers[i])
		return bad(at, "a buffer is NULL", err);
out:
	return status;
}

/* ---- writing the arrays' tree ----------------------------------------------------------- */

static void put_node(lade__emitted *p, int64_t length, int64_t null_count, int64_t off,
                     size_t buffers)
{
	lade__out_put(&p->arrays, (uint64_t)length, 8);
	lade__out_put(&p->arrays, (uint64_t)null_count, 8);
	lade__out_put(&p->arrays, (uint64_t)off, 8);
	lade__out_put(&p->arrays, buffers, 4);
	lade__out_put(&p->arrays, 0, 4);
}

static void put_buffer(lade__emitted *p, uint32_t block, uint64_t off, uint64_t size)
{
	lade__out_put(&p->arrays, block, 4);
	lade__out_put(&p->arrays, 0, 4);
	lade__out_put(&p->arrays, off, 8);
	lade__out_put(&p->arrays, size, 8);
}

static void no_buffer(lade__emitted *p)
{
	put_buffer(p, LADE__BLOCK_NONE, 0, 0);
}

/* A buffer that a job writes.  The job's kind, source and numbers are set; size 0: no buffer. */
static lade_status copy_buffer(lade__emitted *p, lade__job job, lade_error *err)
{
	if (!job.size) {
		no_buffer(p);
		return LADE_OK;
	}
	if (p->job_count == p->job_cap) {
		size_t cap = p->job_cap ? p->job_cap * 2 : 64;
		lade__job *larger = realloc(p->jobs, cap * sizeof *larger);
		if (!larger)
			return no_memory(err);
		p->jobs = larger;
		p->job_cap = cap;
	}
	if (job.kind != LADE__JOB_NONE) {
		job.dst = p->data_size;
		p->data_size = (p->data_size + job.size + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
		p->copied += job.size;
	}
	if (p->data_size > (uint64_t)COUNT_MAX)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "it is too large to be copied");
	job.ref = p->arrays.size;
	p->jobs[p->job_count++] = job;
	put_buffer(p, 0, job.dst, job.size);
	return LADE_OK;
}

/* Bytes of an array's buffer. */
static lade_status copy_bytes(lade__emitted *p, const void *src, uint64_t size, lade_error *err)
{
	return copy_buffer(p,
	                   (lade__job){.kind = LADE__JOB_BYTES,
	                               .src = src,
	                               .size = size,
	                               .far = p->device != NULL},
	                   err);
}

static void through_host(lade__emitted *p, const place *at, const char *what)
{
	if (p->device && !p->rewritten[0])
		snprintf(p->rewritten, sizeof p->rewritten,
		         "'%.40s': %s were rewritten on the host", at->node->name, what);
}

/* Bits of an array's buffer.  A device copies whole bytes: the host must shift them, and hide bits
 * that are not seen. */
static lade_status copy_bits(lade__emitted *p, const uint8_t *bits, const place *at,
                             lade_error *err)
{
	uint64_t off = (uint64_t)at->off, len = (uint64_t)at->len, size = (len + 7) / 8;
	bool whole = !(len % 8) || at->off + at->len == at->array->offset + at->array->length;
	const void *seen;
	lade_status status;

	if (!len || (p->device && !(off % 8) && whole))
		return copy_bytes(p, len ? bits + off / 8 : NULL, size, err);
	through_host(p, at, "bits");
	TRY(on_host(p, bits, off / 8, (off + len + 7) / 8 - off / 8, &seen, err));
	TRY(copy_buffer(p,
	                (lade__job){.kind = LADE__JOB_BITS,
	                            .src = seen,
	                            .off = off % 8,
	                            .count = len,
	                            .size = size},
	                err));
out:
	return status;
}

/* ---- sharing ---------------------------------------------------------------------------- */

/* The area of bytes in the arrays' place.  A device's memory that must not be copied is lent. */
static lade__area *area_of(const lade__emitted *p, const void *data, uint64_t size)
{
	lade__area *area = lade__area_find(p->areas, data, size);

	if (area && (area->vmm ? area->vmm->device : NULL) != p->device)
		area = NULL;
	if (!area && p->device && p->copy == LADE_SHARE_COPY_NEVER)
		lade__areas_lease(p->areas, p->device, data, size, &area, NULL);
	return area;
}

/* Why a buffer cannot be shared.  'align' 0: it is not in shared memory. */
static void because(lade__emitted *p, const place *at, int64_t buffer, size_t align)
{
	size_t i = 0;
	char column[48];

	if (p->why[0])
		return;
	while (i < p->root->child_count && p->root->children[i] != at->node)
		i++;
	if (at->node->name[0])
		snprintf(column, sizeof column, "'%.40s'", at->node->name);
	else if (i < p->root->child_count)
		snprintf(column, sizeof column, "column %zu", i);
	else
		snprintf(column, sizeof column, "%s",
		         at->node == p->root ? "the column" : "a column without a name");
	if (align)
		snprintf(p->why, sizeof p->why, "%s: buffer %lld is not aligned to %u bytes",
		         column, (long long)buffer, (unsigned)align);
	else
		snprintf(p->why, sizeof p->why, "%s: buffer %lld is not in shared memory", column,
		         (long long)buffer);
}

/* Whether all memory of a node and those below it can be shared.  Children are shared whole: the
 * node's offset says which part is seen. */
static lade_status can_share(lade__emitted *p, place at, bool *can, lade_error *err)
{
	uint64_t size;
	lade_status status;

	TRY(check(&at, err));
	for (int64_t i = 0; i < at.array->n_buffers && at.len; i++) {
		TRY(buffer_size(p, &at, i, &size, err));
		bool there = !size || area_of(p, at.array->buffers[i], size);
		size_t align = lade__type_align(&at.node->type, (size_t)i,
		                                (size_t)at.array->n_buffers);
		*can = there && (!size || !((uintptr_t)at.array->buffers[i] % align));
		if (!*can) {
			because(p, &at, i, there ? align : 0);
			return LADE_OK;
		}
	}
	for (size_t i = 0; i < at.node->child_count && *can; i++) {
		TRY(at.array->children[i] ? LADE_OK : bad(&at, "a child is NULL", err));
		place below = whole(at.node->children[i], at.array->children[i]);
		if (below.len)
			TRY(can_share(p, below, can, err));
	}
	if (at.node->dictionary && *can)
		TRY(can_share(p, whole(at.node->dictionary, at.array->dictionary), can, err));
out:
	return status;
}

static lade_status share_buffer(lade__emitted *p, const void *data, uint64_t size, lade_error *err)
{
	lade__area *area;
	size_t i = 0;

	if (!size) {
		no_buffer(p);
		return LADE_OK;
	}
	area = area_of(p, data, size);
	if (!area)
		return lade_fail(err, LADE_E_STATE, LADE_NO_OFFSET,
		                 "a buffer is not there any more");
	while (i < p->used_count && p->used[i] != area)
		i++;
	if (i == LADE__AREAS_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "more than %d shared blocks in one version", LADE__AREAS_MAX);
	p->used[i] = area;
	p->used_count += i == p->used_count;
	p->shared += size;
	if (area->vmm && area->vmm->lease)
		p->leased += size;
	put_buffer(p, (uint32_t)i, (uint64_t)((const uint8_t *)data - area->data), size);
	return LADE_OK;
}

static lade_status share_node(lade__emitted *p, place at, lade_error *err)
{
	const struct ArrowArray *a = at.array;
	lade__layout l = at.node->type.layout;
	bool same = at.off == a->offset && at.len == a->length;
	uint64_t size;
	lade_status status;

	if (!at.len)
		return emit(p, at, err);
	int64_t nulls = same ? a->null_count : -1;
	if (l == LADE__AS_NULLS || !validity(&at))
		nulls = l == LADE__AS_NULLS ? at.len : 0;
	put_node(p, at.len, nulls, at.off, (size_t)a->n_buffers);
	for (int64_t i = 0; i < a->n_buffers; i++) {
		TRY(buffer_size(p, &at, i, &size, err));
		if (i == 0 && has_validity(at.node) && !validity(&at))
			size = 0;
		TRY(share_buffer(p, a->buffers[i], size, err));
	}
	for (size_t i = 0; i < at.node->child_count; i++)
		TRY(share_node(p, whole(at.node->children[i], a->children[i]), err));
	if (at.node->dictionary)
		TRY(share_node(p, whole(at.node->dictionary, a->dictionary), err));
out:
	return status;
}

/* ---- copying ---------------------------------------------------------------------------- */

/* The entry of a node without an offset, and its bitmap if it has one. */
static lade_status copy_node(lade__emitted *p, const place *at, size_t buffers, lade_error *err)
{
	const struct ArrowArray *a = at->array;
	const uint8_t *bits = at->len ? validity(at) : NULL, *seen;
	int64_t nulls = at->node->type.layout == LADE__AS_NULLS ? at->len : 0;
	lade_status status = LADE_OK;

	/* What is on a device is counted here only if its maker did not. */
	if (bits && p->device && a->null_count > 0 && at->len == a->length) {
		nulls = a->null_count;
	} else if (bits) {
		TRY(bitmap(p, at, &seen, err));
		nulls = (int64_t)lade__count_nulls(seen, (uint64_t)at->off % 8, (uint64_t)at->len);
	}
	put_node(p, at->len, nulls, 0, buffers);
	if (!has_validity(at->node))
		return LADE_OK;
	if (nulls)
		return copy_bits(p, bits, at, err);
	no_buffer(p);
out:
	return status;
}

/* 'count' offsets, less the first one.  Without rows there is one offset of 0. */
static lade_status copy_offsets(lade__emitted *p, const place *at, int64_t first, lade_error *err)
{
	static const uint8_t zeros[8];
	size_t width = at->node->type.width;
	uint64_t size = ((uint64_t)at->len + 1) * width;
	const uint8_t *from = at->array->buffers[1];
	lade__job job = {.kind = LADE__JOB_BYTES, .src = zeros, .size = width};
	lade_status status;

	if (!at->len)
		return copy_buffer(p, job, err);
	if (!first)
		return copy_bytes(p, from + (uint64_t)at->off * width, size, err);
	through_host(p, at, "offsets");
	job = (lade__job){.kind = LADE__JOB_REBASE,
	                  .width = width,
	                  .base = first,
	                  .count = (uint64_t)at->len + 1,
	                  .most = INT64_MAX,
	                  .size = size};
	TRY(on_host(p, from, (uint64_t)at->off * width, size, &job.src, err));
	TRY(copy_buffer(p, job, err));
out:
	return status;
}

static lade_status copy_strings(lade__emitted *p, place at, lade_error *err)
{
	int64_t first, last;
	const uint8_t *data = at.array->buffers[2];
	lade_status status;

	TRY(range_of(p, &at, &first, &last, err));
	TRY(copy_node(p, &at, 3, err));
	TRY(copy_offsets(p, &at, first, err));
	if (last > first && !data)
		TRY(bad(&at, "there is no data", err));
	TRY(copy_bytes(p, last > first ? data + first : NULL, (uint64_t)(last - first), err));
out:
	return status;
}

static lade_status copy_list(lade__emitted *p, place at, lade_error *err)
{
	int64_t first, last;
	lade_status status;

	TRY(range_of(p, &at, &first, &last, err));
	TRY(copy_node(p, &at, 2, err));
	TRY(copy_offsets(p, &at, first, err));
	TRY(emit(p, child(&at, 0, first, last - first), err));
out:
	return status;
}

/* A range of the child that has all rows; nulls and empty ones point nowhere. */
static lade_status copy_list_view(lade__emitted *p, place at, lade_error *err)
{
	size_t width = at.node->type.width;
	uint64_t first = (uint64_t)at.off * width, all = (uint64_t)at.len * width;
	const void *offsets, *sizes;
	const uint8_t *bits;
	int64_t low = INT64_MAX, high = 0;
	lade__job job = {.kind = LADE__JOB_REBASE,
	                 .width = width,
	                 .count = (uint64_t)at.len,
	                 .size = all,
	                 .bit = (uint64_t)at.off % 8,
	                 .most = INT64_MAX};
	lade_status status;

	TRY(bitmap(p, &at, &bits, err));
	TRY(on_host(p, at.array->buffers[1], first, all, &offsets, err));
	TRY(on_host(p, at.array->buffers[2], first, all, &sizes, err));
	through_host(p, &at, "offsets");
	for (uint64_t i = 0; i < (uint64_t)at.len; i++) {
		if (bits && !lade__bit(bits, job.bit + i))
			continue;
		int64_t off = lade__element(offsets, width, i);
		int64_t size = lade__element(sizes, width, i);
		if (off < 0 || size < 0 || off > COUNT_MAX || size > COUNT_MAX)
			return bad(&at, "an offset or a size is negative", err);
		if (size) {
			low = off < low ? off : low;
			high = off + size > high ? off + size : high;
		}
	}
	low = low < high ? low : high;
	TRY(copy_node(p, &at, 3, err));
	job.validity = bits;
	job.sizes = sizes;
	job.src = offsets;
	job.base = low;
	TRY(copy_buffer(p, job, err));
	job.src = sizes;
	job.base = 0;
	TRY(copy_buffer(p, job, err));
	TRY(emit(p, child(&at, 0, low, high - low), err));
out:
	return status;
}

/* The buffers of a view type's strings, which GATHER reads. */
static lade_status strings_on_host(lade__emitted *p, const place *at, const void ***data,
                                   lade_error *err)
{
	const struct ArrowArray *a = at->array;
	size_t count = (size_t)a->n_buffers - 3;
	const void **copies;
	uint64_t size;
	lade_status status = LADE_OK;

	if (!p->device || !at->len)
		return LADE_OK;
	through_host(p, at, "strings of views");
	copies = lade__blocks_alloc(&p->blocks, count, sizeof *copies);
	if (!copies)
		return no_memory(err);
	for (size_t i = 0; i < count; i++) {
		TRY(buffer_size(p, at, (int64_t)i + 2, &size, err));
		TRY(on_host(p, a->buffers[2 + i], 0, size, &copies[i], err));
	}
	*data = copies;
out:
	return status;
}

/* Long strings are packed, those of nulls left out: then come the sizes of their buffers. */
static lade_status copy_views(lade__emitted *p, place at, lade_error *err)
{
	const struct ArrowArray *a = at.array;
	const uint8_t *bits;
	const void *views, **data = (const void **)a->buffers + 2;
	int64_t buffers = a->n_buffers - 3;
	uint64_t bit = (uint64_t)at.off % 8;
	lade__packing packing = {0};
	lade__bytes_out sizes = {0};
	lade_status status = LADE_OK;

	TRY(bitmap(p, &at, &bits, err));
	TRY(on_host(p, a->buffers[1], 16 * (uint64_t)at.off, 16 * (uint64_t)at.len, &views, err));
	TRY(strings_on_host(p, &at, &data, err));
	for (uint64_t i = 0; i < (uint64_t)at.len; i++) {
		const uint8_t *view = (const uint8_t *)views + 16 * i;
		uint32_t size = lade__le32(view), buffer = lade__le32(view + 8);
		if ((bits && !lade__bit(bits, bit + i)) || size <= LADE__VIEW_INLINE)
			continue;
		if (size > INT32_MAX || buffer >= (uint64_t)buffers || !data[buffer])
			TRY(bad(&at, "a view has no such buffer", err));
		uint64_t before = packing.in_buffer;
		if (lade__pack(&packing, size))
			lade__out_put(&sizes, before, 8);
	}
	if (packing.in_buffer)
		lade__out_put(&sizes, packing.in_buffer, 8);
	uint8_t *kept = lade__blocks_alloc(&p->blocks, sizes.size + 1, 1);
	TRY(sizes.failed || !kept ? no_memory(err) : LADE_OK);
	if (sizes.size)
		memcpy(kept, sizes.bytes, sizes.size);
	lade__job job = {.kind = LADE__JOB_VIEWS,
	                 .count = (uint64_t)at.len,
	                 .size = 16 * (uint64_t)at.len,
	                 .validity = bits,
	                 .bit = bit,
	                 .src = views,
	                 .data = data};
	TRY(copy_node(p, &at, 3 + sizes.size / 8, err));
	TRY(copy_buffer(p, job, err));
	/* One job writes all buffers of strings, without gaps between them. */
	job.kind = LADE__JOB_GATHER;
	for (size_t i = 0; i < sizes.size / 8; i++) {
		uint64_t size = lade__le64(kept + 8 * i);
		job.size = i ? size : packing.total;
		TRY(copy_buffer(p, job, err));
		if (i == 0)
			job.dst = p->jobs[p->job_count - 1].dst;
		job.kind = LADE__JOB_NONE;
		/* The entry has the buffer's own size. */
		for (size_t b = 0; b < 8; b++)
			if (!p->arrays.failed)
				p->arrays.bytes[p->arrays.size - 8 + b] = (uint8_t)(size >> 8 * b);
		job.dst += size;
	}
	TRY(copy_buffer(p, (lade__job){LADE__JOB_BYTES, .src = kept, .size = sizes.size}, err));
out:
	free(sizes.bytes);
	return status;
}

static lade_status copy_dense(lade__emitted *p, place at, lade_error *err)
{
	const void *seen, *offsets;
	const int8_t *ids;
	int64_t *bases = lade__blocks_alloc(&p->blocks, 128, sizeof *bases);
	int64_t low[127], high[127];
	lade_status status;

	TRY(bases ? LADE_OK : no_memory(err));
	for (size_t i = 0; i < at.node->child_count; i++)
		low[i] = INT64_MAX, high[i] = 0;
	TRY(on_host(p, at.array->buffers[0], (uint64_t)at.off, (uint64_t)at.len, &seen, err));
	ids = seen;
	TRY(on_host(p, at.array->buffers[1], 4 * (uint64_t)at.off, 4 * (uint64_t)at.len, &offsets,
	            err));
	through_host(p, &at, "offsets");
	for (uint64_t i = 0; i < (uint64_t)at.len; i++) {
		int64_t c = ids[i] < 0 ? -1 : at.node->type.child_of[ids[i]];
		int64_t off = lade__element(offsets, 4, i);
		if (c < 0 || off < 0)
			TRY(bad(&at, "a type id or an offset is not valid", err));
		low[c] = off < low[c] ? off : low[c];
		high[c] = off + 1 > high[c] ? off + 1 : high[c];
	}
	for (int id = 0; id < 128; id++)
		if (at.node->type.child_of[id] >= 0)
			bases[id] = low[at.node->type.child_of[id]];
	TRY(copy_node(p, &at, 2, err));
	TRY(copy_bytes(p, at.len ? (const uint8_t *)at.array->buffers[0] + at.off : NULL,
	               (uint64_t)at.len, err));
	TRY(copy_buffer(p,
	                (lade__job){.kind = LADE__JOB_DENSE,
	                            .count = (uint64_t)at.len,
	                            .size = 4 * (uint64_t)at.len,
	                            .bases = bases,
	                            .src = offsets,
	                            .ids = ids},
	                err));
	for (size_t i = 0; i < at.node->child_count; i++) {
		int64_t first = low[i] < high[i] ? low[i] : high[i];
		TRY(emit(p, child(&at, i, first, high[i] - first), err));
	}
out:
	return status;
}

/* The runs that the rows are in; the last run ends with them. */
static lade_status copy_runs(lade__emitted *p, place at, lade_error *err)
{
	place ends = whole(at.node->children[0], at.array->children[0]);
	size_t width = ends.node->type.width;
	int64_t first = 0, count = 0;
	const void *from = NULL;
	lade_status status;

	TRY(check(&ends, err));
	if (at.len) {
		if (ends.len && !ends.array->buffers[1])
			TRY(bad(&at, "there are no run ends", err));
		if (ends.len)
			TRY(on_host(p, ends.array->buffers[1], (uint64_t)ends.off * width,
			            (uint64_t)ends.len * width, &from, err));
		through_host(p, &at, "run ends");
		while (first < ends.len && lade__element(from, width, (uint64_t)first) <= at.off)
			first++;
		while (first + count < ends.len &&
		       lade__element(from, width, (uint64_t)(first + count)) < at.off + at.len)
			count++;
		count++;
		if (first + count > ends.len)
			TRY(bad(&at, "the run ends do not reach the last value", err));
	}
	ends.off += first;
	ends.len = count;
	TRY(copy_node(p, &at, 0, err));
	TRY(copy_node(p, &ends, 2, err));
	TRY(copy_buffer(p,
	                (lade__job){.kind = LADE__JOB_REBASE,
	                            .width = width,
	                            .base = at.off,
	                            .most = at.len,
	                            .count = (uint64_t)count,
	                            .size = (uint64_t)count * width,
	                            .src = count ? (const uint8_t *)from +
	                                                   (uint64_t)first * width
	                                         : NULL},
	                err));
	TRY(emit(p, child(&at, 1, first, count), err));
out:
	return status;
}

static lade_status copy_flat(lade__emitted *p, place at, lade_error *err)
{
	const lade__type *t = &at.node->type;
	const uint8_t *data = at.array->n_buffers > 1 ? at.array->buffers[1] : NULL;
	lade_status status = LADE_OK;

	TRY(copy_node(p, &at, lade__type_buffers(t), err));
	switch (t->layout) {
	case LADE__AS_BITS:
		TRY(copy_bits(p, data, &at, err));
		break;
	case LADE__AS_FIXED:
		TRY(copy_bytes(p, data ? data + (uint64_t)at.off * t->width : NULL,
		               (uint64_t)at.len * t->width, err));
		break;
	case LADE__AS_FIXED_LIST:
		if (__builtin_mul_overflow(at.off, (int64_t)t->width, &at.off) ||
		    __builtin_mul_overflow(at.len, (int64_t)t->width, &at.len) ||
		    at.off > COUNT_MAX || at.len > COUNT_MAX)
			TRY(bad(&at, "it is too large", err));
		TRY(emit(p, child(&at, 0, at.off, at.len), err));
		break;
	case LADE__AS_SPARSE:
		data = at.array->buffers[0];
		TRY(copy_bytes(p, data ? data + at.off : NULL, (uint64_t)at.len, err));
		/* fall through */
	case LADE__AS_STRUCT:
		for (size_t i = 0; i < at.node->child_count; i++)
			TRY(emit(p, child(&at, i, at.off, at.len), err));
		break;
	default:
		break;
	}
	if (at.node->dictionary)
		TRY(emit(p, whole(at.node->dictionary, at.array->dictionary), err));
out:
	return status;
}

static lade_status emit(lade__emitted *p, place at, lade_error *err)
{
	bool can = p->copy != LADE_SHARE_COPY_ALWAYS && at.len;
	uint64_t size;
	lade_status status;

	TRY(check(&at, err));
	for (size_t i = 0; i < at.node->child_count; i++)
		TRY(at.array->children && at.array->children[i] ? LADE_OK
		                                                : bad(&at, "a child is NULL", err));
	if (can)
		TRY(can_share(p, at, &can, err));
	if (can)
		return share_node(p, at, err);
	for (int64_t i = 0; i < at.array->n_buffers && at.len; i++) {
		TRY(buffer_size(p, &at, i, &size, err));
		/* The top of a table has no memory of its own. */
		if (p->copy == LADE_SHARE_COPY_NEVER && size)
			TRY(lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET, "%s", p->why));
	}
	if (p->copy == LADE_SHARE_COPY_NEVER && at.len && at.node->type.layout == LADE__AS_RUNS)
		TRY(lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET, "%s", p->why));
	switch (at.node->type.layout) {
	case LADE__AS_BYTES:
		return copy_strings(p, at, err);
	case LADE__AS_LIST:
		return copy_list(p, at, err);
	case LADE__AS_LISTVIEW:
		return copy_list_view(p, at, err);
	case LADE__AS_VIEWS:
		return copy_views(p, at, err);
	case LADE__AS_DENSE:
		return copy_dense(p, at, err);
	case LADE__AS_RUNS:
		return copy_runs(p, at, err);
	default:
		return copy_flat(p, at, err);
	}
out:
	return status;
}

/* ---- plans ------------------------------------------------------------------------------ */

static const struct ArrowArray *batch_of(const lade_share_table *table, size_t i)
{
	const struct ArrowDeviceArray *d = table->batches ? NULL : table->device_batches[i];

	return table->batches ? table->batches[i] : d ? &d->array : NULL;
}

lade_status lade__emit_make(lade__emitted *p, const lade_share_table *table, lade__areas *areas,
                            lade_share_copy copy, lade_error *err)
{
	lade_status status;

	memset(p, 0, sizeof *p);
	p->areas = areas;
	p->copy = copy;
	TRY(lade__nodes_from_schema(table->schema, &p->blocks, &p->root, &p->node_count, err));
	lade__nodes_write(p->root, &p->schema);
	if (!table->batches && table->batch_count)
		TRY(lade__emit_find_device(p, table, err));
	for (size_t i = 0; i < table->batch_count; i++) {
		const struct ArrowArray *batch = batch_of(table, i);
		if (!batch || !batch->release)
			TRY(lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
			              "array %zu is NULL or released", i));
		place top = whole(p->root, batch);
		TRY(emit(p, top, err));
		p->rows += (uint64_t)top.len;
	}
	if (p->schema.failed || p->arrays.failed)
		TRY(no_memory(err));
	if (p->schema.size + p->arrays.size > LADE__HEAD_MAX - LADE__HEAD_FIXED - ALIGN)
		TRY(lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		              "schema and arrays take %zu bytes, at most %u",
		              p->schema.size + p->arrays.size,
		              LADE__HEAD_MAX - LADE__HEAD_FIXED - ALIGN));
	if (!p->copied)
		p->why[0] = 0;
	else if (copy == LADE_SHARE_COPY_ALWAYS)
		snprintf(p->why, sizeof p->why, "a copy was asked for");
	if (p->rewritten[0])
		memcpy(p->why, p->rewritten, sizeof p->why);
out:
	if (status != LADE_OK)
		lade__emit_free(p);
	return status;
}

void lade__emit_free(lade__emitted *p)
{
	lade__blocks_free(&p->blocks);
	free(p->schema.bytes);
	free(p->arrays.bytes);
	free(p->jobs);
	memset(p, 0, sizeof *p);
}

size_t lade__emit_head_size(const lade__emitted *p)
{
	return (LADE__HEAD_FIXED + p->schema.size + p->arrays.size + ALIGN - 1) &
	       ~(size_t)(ALIGN - 1);
}

void lade__emit_head(lade__emitted *p, uint32_t block, size_t batch_count, uint8_t *to)
{
	size_t size = lade__emit_head_size(p);

	for (size_t i = 0; i < p->job_count; i++)
		lade__le_put(p->arrays.bytes + p->jobs[i].ref, block, 4);
	memset(to, 0, size);
	memcpy(to, "LSHV", 4);
	lade__le_put(to + 4, 1, 2);
	lade__le_put(to + 8, p->rows, 8);
	lade__le_put(to + 16, batch_count, 4);
	lade__le_put(to + 20, p->node_count, 4);
	lade__le_put(to + 24, p->schema.size, 4);
	lade__le_put(to + 28, p->arrays.size, 4);
	memcpy(to + 32, p->schema.bytes, p->schema.size);
	if (p->arrays.size)
		memcpy(to + 32 + p->schema.size, p->arrays.bytes, p->arrays.size);
}
