/*
 * read_chunk.c: decodes the bytes of a leaf on the host, and gives its elements their places.
 *
 *	a slice of each axis   the last step decodes through a layout, or straight to the place
 *	lists                  the chunk is decoded to scratch memory, and elements are copied by
 *	                       tables of offsets
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "zarr/elements.h"
#include "zarr/mask.h"
#include "zarr/n5.h"
#include "zarr/read.h"

#include <string.h>

#define ULL(x) ((unsigned long long)(x))

size_t lade__cut_bytes(const lade__zread *r, const lade__cut *cut)
{
	size_t bytes = (size_t)r->array->type.size;
	for (size_t a = 0; a < r->selected.ndim; a++)
		if (__builtin_mul_overflow(bytes, cut[a].size, &bytes) || bytes > SIZE_MAX / 4)
			return SIZE_MAX;
	return bytes;
}

/* ---- chains ------------------------------------------------------------------------------ */

lade_status lade__coding_make(const lade__zread *r, const lade_zarr_chain *chain, size_t size,
                              lade__coding *out, lade_error *err)
{
	lade_workload work = {.direction = LADE_DECODE, .count = 1};
	out->count = chain->step_count ? chain->step_count : 1;
	out->step = chain->step_count ? chain->steps : NULL;
	if (out->count > LADE__LEVELS_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "the chain has %zu steps, at most %d can run", out->count,
		                 LADE__LEVELS_MAX);
	for (size_t i = 0; i < out->count; i++) {
		const lade_zarr_step *step = chain->step_count ? &chain->steps[i] : NULL;
		if (step && !step->spec)
			return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
			                 "codec '%.80s': %.200s", step->name, step->why);
		out->spec[i] = step ? step->spec : r->copy;
		out->bound[i] = size;
		work.largest = work.total = size;
		lade_status status = lade__route_host(r->engine, out->spec[i], work, &out->route[i],
		                                      err);
		if (status != LADE_OK)
			return status;
		/* Other encoders than ours may need a little more. */
		size = lade_spec_bound(out->spec[i], size) + (step ? step->header_size : 0);
		size += out->count > 1 ? size / 4 + 4096 : 0;
	}
	return LADE_OK;
}

/* What a step's header says; numcodecs' LZ4 has the decoded size. */
static lade_status take_header(const lade__coding *c, size_t i, lade_segment *src, lade_error *err)
{
	size_t header = c->step ? c->step[i].header_size : 0;
	if (header == 0 || c->step[i].header == LADE_ZARR_HEADER_N5) /* taken before */
		return LADE_OK;
	if (src->size < header)
		return lade_fail(err, LADE_E_TRUNCATED, src->size,
		                 "the header of a block: want %zu bytes, have %zu", header,
		                 src->size);
	uint32_t says = lade__le32(src->data);
	if (i == 0 ? says != c->bound[0] : says > c->bound[i])
		return lade_fail(err, LADE_E_CORRUPT, 0,
		                 "the header says %lu decoded bytes, want %s%zu",
		                 (unsigned long)says, i ? "at most " : "", c->bound[i]);
	src->data = (const uint8_t *)src->data + header;
	src->size -= header;
	src->decoded_size = says;
	return LADE_OK;
}

/* A leaf while a thread decodes it. */
typedef struct job {
	lade__zread *r;
	const lade__coding *c;
	lade_worker *worker;
	const lade__leaf *leaf;
	lade_segment src;
	uint8_t *scratch; /* two halves for steps; then room for a chunk, if lists need it */
	size_t half;
} job;

/* Undoes the steps behind the first; j->src becomes their result, in one of the halves. */
static lade_status undo_steps(job *j, lade_error *err)
{
	const lade__coding *c = j->c;
	lade__mask mask = {0};
	bool second = false; /* the half that is free */
	for (size_t i = c->count; i-- > 1;) {
		const lade__pipe pipe = {j->worker, &c->route[i], &j->r->job};
		uint8_t *to = j->scratch + second * j->half;
		bool has_mask = c->step[i].header == LADE_ZARR_HEADER_MASK;
		if (!lade__mask_next(&mask))
			continue;
		lade_item item = {.spec = c->spec[i], .src = &j->src, .src_count = 1,
		                  .dst = lade_host_span(to, c->bound[i])};
		size_t size;
		lade_status status = has_mask ? lade__mask_take(&mask, &c->step[i], &j->src, err)
		                              : take_header(c, i, &j->src, err);
		if (status == LADE_OK)
			status = lade__item_decode(&pipe, &item, &size, err);
		if (status != LADE_OK)
			return status;
		j->src = (lade_segment){.data = to, .size = size};
		second = !second;
	}
	return take_header(c, 0, &j->src, err);
}

/* ---- lists ------------------------------------------------------------------------------- */

typedef struct copy_axis {
	const lade__pick *pick;
	const lade__cut *cut;
	size_t from;    /* bytes from one element to the next in the chunk */
	ptrdiff_t to;   /* and in the result */
} copy_axis;

static void copy_element(const lade__zread *r, const uint8_t *from, uint8_t *to)
{
	for (size_t i = 0; i < r->part_count; i++) {
		const lade__piece_of *part = &r->parts[i];
		lade__piece_copy(part, to + part->to, from + part->off);
	}
}

/* Copies the elements of axes [a, ndim) that lists and slices have in a chunk; or the fill value to
 * each of their places. */
static void copy_axes(const lade__zread *r, const copy_axis *axes, size_t a, const uint8_t *from,
                      uint8_t *to)
{
	const copy_axis *x = &axes[a];
	if (a == r->selected.ndim) {
		if (from == r->fill)
			memcpy(to, from, r->selected.result.elem_size);
		else
			copy_element(r, from, to);
		return;
	}
	for (uint64_t k = x->cut->from; k < x->cut->from + x->cut->count; k++) {
		uint64_t at = lade__pick_at(x->pick, k) - x->cut->start;
		uint64_t into = x->pick->to         ? x->pick->to[k]
		                : x->pick->reversed ? x->pick->count - 1 - k
		                                    : k;
		copy_axes(r, axes, a + 1, from + (size_t)at * x->from,
		          to + (ptrdiff_t)into * x->to);
	}
}

/* Bytes between neighbours of each axis of the array in a decoded chunk. */
static void chunk_strides(const lade__zread *r, const lade__cut *cut, size_t *strides)
{
	const lade__level *level = &r->levels.level[r->levels.count - 1];
	size_t ndim = r->selected.ndim, axis_at[LADE_DIMS_MAX], bytes = (size_t)r->array->type.size;
	for (size_t a = 0; a < ndim; a++)
		axis_at[level->stored[a]] = a;
	for (size_t j = ndim; j-- > 0; bytes *= (size_t)cut[axis_at[j]].size)
		strides[axis_at[j]] = bytes;
}

/* Where point 'id' is in the result. */
static ptrdiff_t point_place(const lade__zread *r, uint64_t id)
{
	const lade_zarr_shape *result = &r->selected.result;
	ptrdiff_t at = 0;
	for (size_t i = result->ndim; i-- > 0; id /= result->shape[i])
		at += (ptrdiff_t)(id % result->shape[i]) * r->strides[i];
	return at;
}

/* 'chunk' is r->fill for a missing one. */
static size_t copy_points(const lade__zread *r, const lade__leaf *leaf, const uint8_t *chunk)
{
	const lade__selected *s = &r->selected;
	uint8_t *to = (uint8_t *)r->target.span.data + r->target.offset;
	size_t strides[LADE_DIMS_MAX];
	chunk_strides(r, leaf->cut, strides);
	for (uint64_t i = 0; i < leaf->points.count; i++) {
		uint64_t id = s->order[leaf->points.from + i];
		const uint64_t *at = s->at + id * s->ndim;
		size_t from = 0;
		bool beyond = false; /* a smaller chunk of N5 */
		for (size_t a = 0; a < s->ndim; a++) {
			beyond |= at[a] - leaf->cut[a].start >= leaf->cut[a].size;
			from += (size_t)(at[a] - leaf->cut[a].start) * strides[a];
		}
		if (chunk == r->fill)
			memcpy(to + point_place(r, id), chunk, s->result.elem_size);
		else if (!beyond)
			copy_element(r, chunk + from, to + point_place(r, id));
	}
	return (size_t)leaf->points.count * s->result.elem_size;
}

/* Likewise for lists; or points. */
static size_t copy_listed(const lade__zread *r, const lade__leaf *leaf, const uint8_t *chunk)
{
	copy_axis axes[LADE_DIMS_MAX + 1];
	size_t strides[LADE_DIMS_MAX], size = r->selected.result.elem_size;
	const lade__selected *s = &r->selected;
	if (s->points)
		return copy_points(r, leaf, chunk);
	chunk_strides(r, leaf->cut, strides);
	for (size_t a = 0; a < s->ndim; a++) {
		ptrdiff_t to = s->pick[a].dropped ? 0 : r->strides[s->axis_of[a]];
		size_t from = chunk == r->fill ? 0 : strides[a];
		axes[a] = (copy_axis){&s->pick[a], &leaf->cut[a], from, to};
		size *= (size_t)leaf->cut[a].count;
	}
	copy_axes(r, axes, 0, chunk, (uint8_t *)r->target.span.data + r->target.offset);
	return size;
}

/* ---- one leaf ---------------------------------------------------------------------------- */

void lade__report_add(lade_zarr_report *report, const lade__zread *r, const lade__leaf *leaf,
                      const lade__spot *spot, bool copied)
{
	if (leaf->missing) {
		report->missing_count++;
		report->filled_size += spot->size;
		return;
	}
	report->chunk_count++;
	report->decoded_size += leaf->runs.count ? leaf->runs.count * leaf->runs.size
	                                         : lade__cut_bytes(r, leaf->cut);
	report->written_size += spot->size;
	report->direct_count += spot->direct;
	report->copied_size += copied ? spot->size : 0;
}

void lade__zread_note(lade__zread *r, const lade__leaf *leaf, const lade__spot *spot, bool copied)
{
	pthread_mutex_lock(&r->mutex);
	lade__report_add(&r->report, r, leaf, spot, copied);
	pthread_mutex_unlock(&r->mutex);
}

void lade__spot_outputs(const lade__zread *r, const lade__spot *spot, lade_layout *layouts,
                        lade_item_output *outputs, lade_item *item)
{
	item->dst = spot->span;
	if (spot->direct) {
		item->dst.data = (uint8_t *)spot->span.data + spot->fit.layout.offset;
		item->dst.size = spot->size;
		return;
	}
	for (size_t i = 0; i < r->part_count; i++) {
		layouts[i] = spot->fit.layout;
		layouts[i].part_off = r->parts[i].off;
		layouts[i].part_size = r->parts[i].size;
		layouts[i].swap_size = r->parts[i].swap;
		layouts[i].offset += r->parts[i].to;
		outputs[i] = (lade_item_output){spot->span, &layouts[i]};
	}
	if (r->part_count == 1) {
		item->layout = &layouts[0];
	} else {
		item->dst = (lade_span){0};
		item->outputs = outputs;
		item->output_count = r->part_count;
	}
}

/* The only chunk of a read: all threads share it, if its codec has parts. */
static lade_status decode_alone(const job *j, const lade_item *item, size_t *got, lade_error *err)
{
	lade_result result;
	lade_batch_options options;
	lade_batch_options_init(&options);
	options.flags = j->r->job.flags;
	options.threads = j->r->options.threads;
	options.where = LADE_WHERE_HOST;
	lade_status status = lade_decode_into(j->r->engine, NULL, item, 1, &result, &options, err);
	*got = result.size;
	return status;
}

/* Decodes the last step to a place. */
static lade_status decode_spot(const job *j, const lade__spot *spot, lade_error *err)
{
	const lade__pipe pipe = {j->worker, &j->c->route[0], &j->r->job};
	lade_layout layouts[LADE__PARTS_MAX];
	lade_item_output outputs[LADE__PARTS_MAX];
	lade_item item = {.spec = j->c->spec[0], .src = &j->src, .src_count = 1};
	size_t got = 0;
	lade__spot_outputs(j->r, spot, layouts, outputs, &item);
	lade_status status = spot->direct && j->r->leaf_count == 1
	                             ? decode_alone(j, &item, &got, err)
	                             : lade__item_decode(&pipe, &item, &got, err);
	if (status == LADE_OK && got != spot->size)
		status = lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                   "it decodes to %zu bytes, want %zu", got, spot->size);
	return status;
}

/* The bytes [*first, *end) of a chunk hold all elements that lists and points want of it. */
static void listed_window(const lade__zread *r, const lade__leaf *leaf, size_t *first, size_t *end)
{
	const lade__selected *s = &r->selected;
	size_t strides[LADE_DIMS_MAX], last = 0;
	chunk_strides(r, leaf->cut, strides);
	*first = 0;
	for (size_t a = 0; a < s->ndim; a++) {
		const lade__cut *cut = &leaf->cut[a];
		uint64_t low = UINT64_MAX, high = 0;
		for (uint64_t i = 0; i < leaf->points.count && s->points; i++) {
			uint64_t id = s->order[leaf->points.from + i];
			uint64_t at = s->at[id * s->ndim + a];
			low = at < low ? at : low;
			high = at > high ? at : high;
		}
		if (!s->points) {
			low = lade__pick_at(&s->pick[a], cut->from);
			high = lade__pick_at(&s->pick[a], cut->from + cut->count - 1);
		}
		*first += (size_t)(low - cut->start) * strides[a];
		last += (size_t)(high - cut->start) * strides[a];
	}
	*end = last + (size_t)r->array->type.size;
}

void lade__leaf_window(const lade__zread *r, const lade__leaf *leaf, lade__runs *out)
{
	size_t first, end, whole = lade__cut_bytes(r, leaf->cut);
	listed_window(r, leaf, &first, &end);
	*out = (lade__runs){.count = end - first < whole, .size = end - first, .off = first};
	if (leaf->shard && leaf->size != whole)
		out->count = 0;
}

/* Decodes the last step to scratch memory, from where lists take elements: all of it, or a window
 * that is much smaller. */
static lade_status decode_listed(const job *j, lade_error *err)
{
	const lade__pipe pipe = {j->worker, &j->c->route[0], &j->r->job};
	uint8_t *chunk = j->scratch + 2 * j->half;
	size_t first, end, got = 0, want = j->c->bound[0];
	lade_item item = {.spec = j->c->spec[0], .src = &j->src, .src_count = 1,
	                  .dst = lade_host_span(chunk, want)};
	lade_status status = LADE_OK;
	listed_window(j->r, j->leaf, &first, &end);
	if (j->leaf->runs.count || end - first <= want / 4) {
		want = end - first;
		item.range_off = first;
		item.range_size = want;
		item.dst.data = chunk + first;
		item.dst.size = want;
	}
	if (j->leaf->runs.count)
		memcpy(chunk + first, j->src.data, got = want); /* nothing else was read */
	else
		status = lade__item_decode(&pipe, &item, &got, err);
	if (status == LADE_OK && got != want)
		status = lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                   "it decodes to %zu bytes, want %zu", got, want);
	if (status != LADE_OK)
		return status;
	lade__spot spot = {.size = copy_listed(j->r, j->leaf, chunk)};
	lade__zread_note(j->r, j->leaf, &spot, true);
	return LADE_OK;
}

/* The chain for a chunk; '*own' is used in rectilinear grids. */
static lade_status coding_of(lade__zread *r, const lade__leaf *leaf, lade__coding *own,
                             const lade__coding **out, lade_error *err)
{
	size_t size = lade__cut_bytes(r, leaf->cut);
	*out = &r->coding;
	if (size == r->coding.bound[0])
		return LADE_OK;
	*out = own;
	return lade__coding_make(r, r->levels.level[r->levels.count - 1].chain, size, own, err);
}

/* The memory of the two halves. */
static void take_half(job *j)
{
	for (size_t i = 1; i < j->c->count; i++)
		j->half = j->c->bound[i] > j->half ? j->c->bound[i] : j->half;
	j->half = (j->half + 63) & ~(size_t)63;
}

/* Memory for what is neither the encoded chunk nor its place. */
static lade_status take_scratch(job *j, lade_error *err)
{
	take_half(j);
	size_t want = 2 * j->half + (j->r->selected.listed ? j->c->bound[0] : 0);
	if (want)
		j->scratch = lade__worker_block(j->worker, LADE__SCRATCH_FRAME, want);
	if (want && !j->scratch)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for %zu bytes of a chunk", want);
	return LADE_OK;
}

/* ---- N5's chunks ------------------------------------------------------------------------- */

static bool is_n5(const lade__zread *r)
{
	return r->coding.step && r->coding.step[0].header == LADE_ZARR_HEADER_N5;
}

/* Takes the header off, and makes the leaf's cut that of the shape that it has: parts of the
 * selection that are beyond it are left out.  '*less': there are some; '*none': all are. */
static lade_status n5_cut(const lade__zread *r, lade__leaf *leaf, bool *less, bool *none,
                          lade_error *err)
{
	const lade__level *level = &r->levels.level[r->levels.count - 1];
	size_t ndim = r->selected.ndim, size = lade__n5_size(ndim);
	uint64_t shape[LADE_DIMS_MAX];
	lade_status status = lade__n5_read(leaf->data, leaf->data_size, ndim, shape, err);
	if (status != LADE_OK)
		return status;
	*less = *none = false;
	for (size_t a = 0; a < ndim; a++) {
		lade__cut *cut = &leaf->cut[a];
		const lade__pick *pick = &r->selected.pick[a];
		uint64_t had = cut->count, first = cut->from, grid = cut->size;
		cut->size = shape[ndim - 1 - level->stored[a]];
		*less |= r->selected.points && cut->size < grid;
		while (!r->selected.points && cut->count &&
		       lade__pick_at(pick, first + cut->count - 1) >= cut->start + cut->size)
			cut->count--;
		*less |= cut->count < had;
		*none |= cut->count == 0 && had;
	}
	if (lade__cut_bytes(r, leaf->cut) > r->chunk_max)
		return lade_fail(err, LADE_E_CORRUPT, 4,
		                 "N5 block of %zu bytes, chunks have at most %zu",
		                 lade__cut_bytes(r, leaf->cut), r->chunk_max);
	leaf->data += size;
	leaf->data_size -= size;
	return LADE_OK;
}

/* ---- any leaf ---------------------------------------------------------------------------- */

lade_status lade__leaf_decode(lade__zread *r, lade__leaf *leaf, lade_worker *worker,
                              lade_error *err)
{
	const bool listed = r->selected.listed;
	job j = {.r = r, .worker = worker, .leaf = leaf,
	         .src = {.data = leaf->data, .size = leaf->data_size}};
	bool less = false, none = false;
	lade__spot spot = {.size = 0};
	lade__coding own;
	lade_status status;
	lade__leaf block;
	if (r->texts)
		return lade__leaf_texts(r, leaf, err);
	if (leaf->spot)
		spot = *leaf->spot; /* the tables of its layout stay where they are */
	else if (!listed)
		TRY(lade__spot_make(r, leaf, &spot, err));
	if (!lade_kind_is_host(spot.span.place.kind)) {
		leaf->spot = &spot;
		return lade__leaves_to_device(r, leaf, 1, LADE_PLACE_HOST, err);
	}
	if (leaf->missing) {
		if (!listed)
			lade__spot_fill(r, &spot);
		else
			spot.size = copy_listed(r, leaf, r->fill);
		lade__zread_note(r, leaf, &spot, false);
		return LADE_OK;
	}
	if (leaf->runs.straight) {
		if (leaf->data_size != spot.size)
			return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
			                 "it decodes to %zu bytes, want %zu", leaf->data_size,
			                 spot.size);
		lade__zread_note(r, leaf, &spot, false);
		return LADE_OK;
	}
	if (is_n5(r)) {
		block = *leaf;
		TRY(n5_cut(r, &block, &less, &none, err));
		if (less && listed)
			copy_listed(r, leaf, r->fill);
		else if (less)
			lade__spot_fill(r, &spot);
		if (none)
			return LADE_OK;
		if (!listed)
			lade__spot_part(r, &block, &spot);
		j.leaf = &block;
		j.src = (lade_segment){.data = block.data, .size = block.data_size};
	}
	TRY(coding_of(r, j.leaf, &own, &j.c, err));
	TRY(take_scratch(&j, err));
	TRY(undo_steps(&j, err));
	if (listed)
		return decode_listed(&j, err);
	TRY(decode_spot(&j, &spot, err));
	lade__zread_note(r, leaf, &spot, false);
out:
	return status;
}

lade_status lade__leaf_segment(lade__zread *r, lade__leaf *leaf, lade_segment *src,
                               lade_error *err)
{
	job j = {.r = r, .leaf = leaf, .src = {.data = leaf->data, .size = leaf->data_size}};
	const lade_allocator *host = lade__engine_host(r->engine);
	lade__coding own;
	lade_status status;
	if (is_n5(r))
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "chunks of N5 are read into host memory only");
	TRY(coding_of(r, leaf, &own, &j.c, err));
	take_half(&j);
	if (j.half) {
		j.worker = lade__worker_take(r->engine);
		j.scratch = lade__host_alloc(host, 2 * j.half);
		if (!j.worker || !j.scratch)
			status = lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                   "no memory for %zu bytes of a chunk", 2 * j.half);
		else
			status = undo_steps(&j, err);
		if (j.worker)
			lade__worker_give(j.worker);
		lade__leaf_reset(r, leaf);
		leaf->large = j.scratch;
		leaf->large_size = 2 * j.half;
		leaf->staged = false;
		if (status != LADE_OK)
			return status;
	} else {
		TRY(undo_steps(&j, err));
	}
	*src = j.src;
	src->decoded_size = leaf->runs.count ? leaf->runs.count * leaf->runs.size : j.c->bound[0];
out:
	return status;
}
