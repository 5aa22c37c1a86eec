/*
 * read_text.c: elements of any length: strings and bytes.
 *
 *	a decoded chunk   | count 4 | length 4 | bytes | length 4 | bytes | ...
 *
 * A run keeps the decoded chunks, and for each element of the result where its bytes are.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "zarr/mask.h"
#include "zarr/read.h"

#include <lade/array.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The most bytes of a decoded chunk, unless the caller gives a limit: few encoded bytes that decode
 * to very many are more often an attack than a chunk. */
#define CHUNK_MAX ((uint64_t)4 << 30)
#define CHUNK_LEAST ((uint64_t)64 << 20)
#define CHUNK_RATIO 256

/* A decoded chunk that elements of the result are in. */
typedef struct kept {
	struct kept *next;
	lade_array *array;
	uint8_t *bytes; /* without an array */
} kept;

typedef struct text {
	const uint8_t *data;
	uint32_t size;
} text;

typedef struct lade__texts {
	text *texts; /* by element of the result */
	kept *kept;  /* guarded by the read's mutex */
	uint64_t size;
	bool done;
} lade__texts;

lade_status lade__texts_new(lade__zread *r, lade_error *err)
{
	const lade__selected *s = &r->selected;
	if (s->result.count > SIZE_MAX / 64)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET, "%" PRIu64 " elements",
		                 s->result.count);
	r->texts = calloc(1, sizeof *r->texts);
	if (r->texts)
		r->texts->texts = calloc((size_t)s->result.count + 1, sizeof(text));
	if (!r->texts || !r->texts->texts)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for %" PRIu64 " elements", s->result.count);
	return LADE_OK;
}

void lade__texts_clear(lade__zread *r)
{
	lade__texts *t = r->texts;
	for (kept *k = t->kept, *next; k; k = next) {
		next = k->next;
		lade_array_unref(k->array);
		free(k->bytes);
		free(k);
	}
	t->kept = NULL;
	t->done = false;
}

void lade__texts_done(lade__zread *r)
{
	lade__texts *t = r->texts;
	t->size = 0;
	for (uint64_t i = 0; i < r->selected.result.count; i++)
		t->size += t->texts[i].size;
	t->done = true;
}

void lade__texts_free(lade__zread *r)
{
	if (!r->texts)
		return;
	lade__texts_clear(r);
	free(r->texts->texts);
	free(r->texts);
}

/* ---- a chunk ------------------------------------------------------------------------------ */

uint64_t lade__texts_most(const lade__zread *r, uint64_t encoded)
{
	uint64_t most = encoded < CHUNK_MAX / CHUNK_RATIO ? encoded * CHUNK_RATIO : CHUNK_MAX;
	if (r->options.text_max)
		return r->options.text_max;
	return most > CHUNK_LEAST ? most : CHUNK_LEAST;
}

/* Undoes all steps; the bytes stay with the read. */
static lade_status decode(lade__zread *r, lade__leaf *leaf, lade_cspan *out, lade_error *err)
{
	const lade__coding *c = &r->coding;
	lade_cspan bytes = lade_host_cspan(leaf->data, leaf->data_size);
	const uint64_t encoded = leaf->data_size;
	lade_batch_options batch;
	lade_status status = LADE_OK;
	lade__mask mask = {0};
	kept *k = calloc(1, sizeof *k);
	if (!k)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a chunk");
	lade_batch_options_init(&batch);
	batch.threads = 1;
	batch.flags = r->job.flags;
	for (size_t i = c->count; i-- > 0 && status == LADE_OK && c->step;) {
		const lade_decode_new_options options = {.struct_size = sizeof options,
		                                         .spec = c->spec[i],
		                                         .batch = &batch,
		                                         .largest = lade__texts_most(r, encoded)};
		lade_array *next = NULL;
		lade_segment src = {.data = bytes.data, .size = bytes.size};
		lade_item item = {.src = &src, .src_count = 1};
		if (!lade__mask_next(&mask))
			continue;
		status = lade__step_header(&c->step[i], &mask, &src, err);
		if (status != LADE_OK)
			break;
		status = lade_decode_new(r->engine, &item, 1, &next, &options, err);
		lade_array_unref(k->array);
		k->array = next;
		if (status == LADE_OK)
			bytes = lade_host_cspan(lade_array_span(next).data,
			                        lade_array_span(next).size);
	}
	if (status == LADE_OK && !c->step) {
		k->bytes = malloc(bytes.size + 1);
		if (!k->bytes)
			status = lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                   "no memory for %zu bytes", bytes.size);
		else if (bytes.size)
			memcpy(k->bytes, bytes.data, bytes.size);
		bytes.data = k->bytes;
	}
	pthread_mutex_lock(&r->mutex);
	k->next = r->texts->kept;
	r->texts->kept = k;
	pthread_mutex_unlock(&r->mutex);
	*out = bytes;
	return status;
}

/* Finds each element of a chunk: 'texts' gets 'count' of them.  Strings must be UTF-8. */
static lade_status parse(lade_cspan chunk, bool strings, text *texts, uint64_t count,
                         lade_error *err)
{
	const uint8_t *bytes = chunk.data;
	size_t at = 4, good;
	if (chunk.size < 4 || lade__le32(bytes) != count)
		return lade_fail(err, LADE_E_CORRUPT, 0,
		                 "the chunk has %lld elements, want %" PRIu64,
		                 chunk.size < 4 ? -1LL : (long long)lade__le32(bytes), count);
	for (uint64_t i = 0; i < count; i++) {
		size_t left = chunk.size - at;
		if (left < 4 || lade__le32(bytes + at) > left - 4)
			return lade_fail(err, LADE_E_CORRUPT, at,
			                 "element %" PRIu64 " at byte %zu of %zu passes the end", i,
			                 at, chunk.size);
		texts[i] = (text){bytes + at + 4, lade__le32(bytes + at)};
		good = strings ? lade__utf8_prefix(texts[i].data, texts[i].size) : texts[i].size;
		if (good < texts[i].size)
			return lade_fail(err, LADE_E_CORRUPT, at + 4 + good,
			                 "element %" PRIu64 " is not UTF-8 at its byte %zu of "
			                 "%" PRIu32, i, good, texts[i].size);
		at += 4 + (size_t)texts[i].size;
	}
	return LADE_OK;
}

/* ---- from the chunk to the result --------------------------------------------------------- */

typedef struct placing {
	const lade__zread *r;
	const lade__leaf *leaf;
	const text *chunk; /* its elements; NULL: all are 'fill' */
	text fill;
	size_t from[LADE_DIMS_MAX]; /* elements between neighbours in the chunk, by axis */
	size_t to[LADE_DIMS_MAX];   /* and in the result */
	size_t count;
	uint64_t bytes;
} placing;

static void set(placing *p, size_t from, size_t to)
{
	p->r->texts->texts[to] = p->chunk ? p->chunk[from] : p->fill;
	p->bytes += p->r->texts->texts[to].size;
	p->count++;
}

static void place_axes(placing *p, size_t a, size_t from, size_t to)
{
	const lade__selected *s = &p->r->selected;
	const lade__cut *cut = &p->leaf->cut[a];
	const lade__pick *pick = &s->pick[a];
	if (a == s->ndim) {
		set(p, from, to);
		return;
	}
	for (uint64_t k = cut->from; k < cut->from + cut->count; k++) {
		uint64_t at = lade__pick_at(pick, k) - cut->start;
		uint64_t into = pick->to ? pick->to[k] : pick->reversed ? pick->count - 1 - k : k;
		place_axes(p, a + 1, from + (size_t)at * p->from[a],
		           to + (size_t)into * p->to[a]);
	}
}

static void place_points(placing *p)
{
	const lade__selected *s = &p->r->selected;
	for (uint64_t i = 0; i < p->leaf->points.count; i++) {
		uint64_t id = s->order[p->leaf->points.from + i];
		size_t from = 0;
		for (size_t a = 0; a < s->ndim; a++)
			from += (size_t)(s->at[id * s->ndim + a] - p->leaf->cut[a].start) *
			        p->from[a];
		set(p, from, (size_t)id);
	}
}

static void place_all(placing *p)
{
	const lade__selected *s = &p->r->selected;
	const lade__level *level = &p->r->levels.level[p->r->levels.count - 1];
	size_t axis_at[LADE_DIMS_MAX], step = 1;
	for (size_t a = 0; a < s->ndim; a++)
		axis_at[level->stored[a]] = a;
	for (size_t j = s->ndim; j-- > 0; step *= (size_t)p->leaf->cut[axis_at[j]].size)
		p->from[axis_at[j]] = step;
	step = 1;
	for (size_t a = s->ndim; a-- > 0;) {
		p->to[a] = s->pick[a].dropped ? 0 : step;
		step *= s->pick[a].dropped ? 1 : (size_t)s->pick[a].count;
	}
	if (s->points)
		place_points(p);
	else
		place_axes(p, 0, 0, 0);
}

lade_status lade__leaf_texts(lade__zread *r, lade__leaf *leaf, lade_error *err)
{
	placing p = {.r = r, .leaf = leaf,
	             .fill = {r->array->fill, (uint32_t)r->array->fill_size}};
	uint64_t count = 1;
	text *texts = NULL;
	lade_cspan chunk;
	lade_status status = LADE_OK;
	for (size_t a = 0; a < r->selected.ndim; a++)
		if (__builtin_mul_overflow(count, leaf->cut[a].size, &count))
			count = UINT64_MAX;
	if (!leaf->missing) {
		TRY(decode(r, leaf, &chunk, err));
		/* Each has 4 bytes: no more memory is taken than the chunk vouches for. */
		if (count > chunk.size / 4)
			TRY(lade_fail(err, LADE_E_CORRUPT, 0,
			              "the chunk has %zu bytes, want %" PRIu64 " elements",
			              chunk.size, count));
		texts = malloc(((size_t)count + 1) * sizeof *texts);
		if (!texts)
			TRY(lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			              "no memory for %" PRIu64 " elements", count));
		TRY(parse(chunk, r->array->type.cls == LADE_ZARR_STRING, texts, count, err));
		p.chunk = texts;
	}
	place_all(&p);
	lade__spot spot = {.size = (size_t)p.bytes};
	lade__zread_note(r, leaf, &spot, false);
out:
	free(texts);
	return status;
}

/* ---- calls --------------------------------------------------------------------------------- */

lade_status lade_zarr_plan_texts(const lade_zarr_plan *plan, uint64_t *count, uint64_t *size,
                                 lade_error *err)
{
	if (!plan || !plan->texts)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 plan ? "the elements have a fixed size" : "plan is NULL");
	if (!plan->texts->done)
		return lade_fail(err, LADE_E_STATE, LADE_NO_OFFSET,
		                 "the plan was not run, or its run failed");
	if (count)
		*count = plan->selected.result.count;
	if (size)
		*size = plan->texts->size;
	return LADE_OK;
}

static void fill_host(const lade__texts *t, uint64_t count, uint8_t *offsets, uint8_t *data)
{
	uint64_t at = 0;
	for (uint64_t i = 0; i < count; i++) {
		lade__le_put(offsets + 8 * i, at, 8);
		if (t->texts[i].size)
			memcpy(data + at, t->texts[i].data, t->texts[i].size);
		at += t->texts[i].size;
	}
	lade__le_put(offsets + 8 * count, at, 8);
}

lade_status lade_zarr_plan_fill(const lade_zarr_plan *plan, lade_span offsets, lade_span data,
                                lade_error *err)
{
	uint64_t count, size;
	lade_status status = lade_zarr_plan_texts(plan, &count, &size, err);
	if (status != LADE_OK)
		return status;
	size_t table = ((size_t)count + 1) * 8;
	if (offsets.size < table || data.size < size)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "want %zu bytes of offsets and %" PRIu64
		                 " of data, have %zu and %zu",
		                 table, size, offsets.size, data.size);
	if (lade_kind_is_host(offsets.place.kind) && lade_kind_is_host(data.place.kind)) {
		fill_host(plan->texts, count, offsets.data, data.data);
		return LADE_OK;
	}
	uint8_t *memory = malloc(table + (size_t)size);
	if (!memory)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for %" PRIu64 " bytes of data", size);
	fill_host(plan->texts, count, memory, memory + table);
	status = lade_copy(plan->engine, lade_host_cspan(memory, table), offsets,
	                   plan->options.stream, err);
	if (status == LADE_OK && size)
		status = lade_copy(plan->engine, lade_host_cspan(memory + table, (size_t)size),
		                   data, plan->options.stream, err);
	free(memory);
	return status;
}
