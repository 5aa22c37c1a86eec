/*
 * write_strings.c: chunks of elements of any length.
 *
 *	| count 4 | size 4 | bytes | size 4 | bytes | ...
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "zarr/write.h"

#include <stdlib.h>
#include <string.h>

typedef struct item {
	const uint8_t *bytes;
	size_t size;
} item;

typedef struct taking {
	const lade__zwrite *w;
	item *items;
	lade_error *err;
	lade_status status;
} taking;

/* Element number 'in_result' of the source. */
static void take(void *ctx, uint64_t in_chunk, uint64_t in_result)
{
	taking *t = ctx;
	const int64_t *offsets = t->w->source.offsets;
	int64_t from = offsets[in_result], to = offsets[in_result + 1];
	if (from < 0 || to < from || to - from > INT32_MAX ||
	    (uint64_t)to > t->w->source.span.size) {
		t->status = lade_fail(t->err, LADE_E_CORRUPT, in_result,
		                      "source: element %llu has the bytes from %lld to %lld of %zu",
		                      (unsigned long long)in_result, (long long)from,
		                      (long long)to, t->w->source.span.size);
		return;
	}
	item own = {(const uint8_t *)t->w->source.span.data + from, (size_t)(to - from)};
	size_t good = t->w->array->type.cls == LADE_ZARR_STRING
	                      ? lade__utf8_prefix(own.bytes, own.size) : own.size;
	if (good < own.size)
		t->status = lade_fail(t->err, LADE_E_CORRUPT, in_result,
		                      "source: element %llu is not UTF-8 at its byte %zu of %zu",
		                      (unsigned long long)in_result, good, own.size);
	t->items[in_chunk] = own;
}

/* Finds the elements of an old chunk. */
static lade_status read_items(const uint8_t *bytes, size_t size, item *items, size_t count,
                              lade_error *err)
{
	size_t at = 4;
	if (size < 4 || lade__le32(bytes) != count)
		return lade_fail(err, LADE_E_CORRUPT, 0, "a chunk of %zu bytes: want %zu elements",
		                 size, count);
	for (size_t i = 0; i < count; i++) {
		size_t own = size - at >= 4 ? lade__le32(bytes + at) : 0;
		if (size - at < 4 || own > size - at - 4)
			return lade_fail(err, LADE_E_CORRUPT, at,
			                 "element %zu is not inside the chunk of %zu bytes", i,
			                 size);
		items[i] = (item){bytes + at + 4, own};
		at += 4 + own;
	}
	return LADE_OK;
}

/* Decodes an old chunk, whose size only its bytes say. */
static lade_status decode_old(const lade__coder *coder, lade__encoded old, lade__encoded *out,
                              lade_error *err)
{
	const lade_segment src = {.data = old.data, .size = old.size};
	lade_status status = LADE_E_NOSPACE;
	for (size_t cap = old.size * 4 + 65536; status == LADE_E_NOSPACE; cap *= 4) {
		uint8_t *data = cap <= (size_t)1 << 40 ? malloc(cap) : NULL;
		if (!data)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "no memory for %zu bytes of a chunk", cap);
		status = lade__steps_decode(coder, src, lade_host_span(data, cap), false,
		                            &out->size, err);
		if (status == LADE_OK)
			out->data = data;
		else
			free(data);
	}
	return status;
}

static lade_status join_items(const item *items, size_t count, lade__encoded *out, lade_error *err)
{
	size_t size = 4, at = 4;
	for (size_t i = 0; i < count; i++)
		size += 4 + items[i].size; /* spans of memory, and count < 2^32 */
	out->data = malloc(size);
	out->size = size;
	if (!out->data)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for %zu bytes of a chunk", size);
	lade__le_put(out->data, count, 4);
	for (size_t i = 0; i < count; at += 4 + items[i].size, i++) {
		lade__le_put(out->data + at, items[i].size, 4);
		if (items[i].size)
			memcpy(out->data + at + 4, items[i].bytes, items[i].size);
	}
	return LADE_OK;
}

static bool all_fill(const lade_zarr_array *array, const item *items, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (items[i].size != array->fill_size ||
		    (items[i].size && memcmp(items[i].bytes, array->fill, items[i].size) != 0))
			return false;
	return true;
}

lade_status lade__write_strings(lade__zwrite *w, const lade__target *t, lade__encoded old,
                                lade__encoded *out, lade_worker *worker, lade_error *err)
{
	const lade__coder coder = {w, &w->steps[t->level], worker};
	size_t count = lade__cut_count(w, t->cut);
	lade__encoded decoded = {0}, chunk = {0};
	lade_status status = LADE_OK;
	if (count > UINT32_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "a chunk of %zu strings, at most 2^32 - 1", count);
	item *items = calloc(count + 1, sizeof *items);
	taking take_ctx = {.w = w, .items = items, .err = err};
	if (!items)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu strings",
		                 count);
	if (old.data && !t->whole) {
		TRY(decode_old(&coder, old, &decoded, err));
		TRY(read_items(decoded.data, decoded.size, items, count, err));
	}
	for (size_t i = 0; i < count && !decoded.data; i++)
		items[i] = (item){w->array->fill, w->array->fill_size};
	lade__each_element(w, t, take, &take_ctx);
	TRY(take_ctx.status);
	if (w->options.flags & LADE_ZARR_SKIP_FILL && all_fill(w->array, items, count))
		goto out;
	TRY(join_items(items, count, &chunk, err));
	pthread_mutex_lock(&w->mutex);
	w->report.chunk_count++;
	w->report.partial_count += decoded.data != NULL;
	w->report.source_size += chunk.size;
	pthread_mutex_unlock(&w->mutex);
	const lade_segment src = {.data = chunk.data, .size = chunk.size};
	status = lade__steps_encode(&coder, src, NULL, out, err);
out:
	free(chunk.data);
	free(decoded.data);
	free(items);
	return status;
}
