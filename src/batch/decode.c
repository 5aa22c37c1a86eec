/*
 * decode.c: runs one item's pipeline from right to left.
 *
 * A segment passes the stages with 'at' pointing at what the next one reads: the source, or one of
 * two scratch blocks in turn.  The last stage writes to the destination itself, unless rows or a
 * range want the bytes elsewhere (a sink).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/engine.h"
#include "batch/spec.h"

#include <string.h>

/*
 * Scratch memory for a window's segment, on the word of the data alone or where its format does
 * not tell the size, is at most this or four times what the window reaches to: a few hundred
 * kilobytes of zstd may decode to many gigabytes.
 */
#define GROW_MAX ((size_t)1 << 30)

typedef struct decoder {
	lade__pipe pipe;
	lade__sink window;
	const lade__sink *sink; /* &window; NULL: plain */
	uint8_t *dst;           /* plain: where the segment goes */
	size_t cap;             /* the most bytes that the segment may decode to */
	size_t believed;        /* the most scratch for a stage; 0: 'cap' is the caller's word */
	uint64_t known;         /* what it decodes to, where that is told; 0: not told */
	bool ends;              /* nothing is wanted behind this segment's part of the window */
	unsigned turn;          /* which of the two blocks is free */
} decoder;

static const lade_implementation *impl_at(const decoder *d, size_t stage)
{
	return lade__route_at(d->pipe.worker->engine, d->pipe.route, stage);
}

lade_status lade__pipe_verify(const lade__pipe *pipe, size_t stage, lade_cspan *src,
                              lade_error *err)
{
	const lade_stage *s = &pipe->route->spec->stage[stage];
	size_t sum_size = s->algorithm->bound(s, 0);
	if (src->size < sum_size)
		return lade_fail(err, LADE_E_TRUNCATED, src->size,
		                 "%s: %zu bytes cannot hold a checksum of %zu", s->algorithm->name,
		                 src->size, sum_size);
	const uint8_t *bytes = src->data;
	bool at_start = lade__checksum_at_start(s);
	const uint8_t *sum_at = at_start ? bytes : bytes + (src->size - sum_size);
	src->data = at_start ? bytes + sum_size : bytes;
	src->size -= sum_size;
	if (pipe->options->flags & LADE_BATCH_IGNORE_CHECKSUMS)
		return LADE_OK;
	uint64_t stored = 0, sum = 0;
	for (size_t i = 0; i < sum_size; i++)
		stored |= (uint64_t)sum_at[i] << (8 * i);
	lade_run run;
	lade_status status = lade__pipe_run(pipe, stage, &run, err);
	if (status == LADE_OK)
		status = lade__route_at(pipe->worker->engine, pipe->route, stage)->checksum(
			&run, *src, &sum, err);
	if (status == LADE_OK && sum != stored)
		status =
			lade_fail(err, LADE_E_CHECKSUM, (uint64_t)(sum_at - bytes),
		                  "%s: stored %0*llx, the %zu bytes give %0*llx",
		                  s->algorithm->name, (int)sum_size * 2, (unsigned long long)stored,
		                  src->size, (int)sum_size * 2, (unsigned long long)sum);
	return status;
}

/* The most bytes that can be of use before stages [0, stage): what encoding 'cap' bytes can
 * give. */
static size_t room_before(const decoder *d, size_t stage)
{
	size_t size = d->cap;
	for (size_t i = 0; i < stage && size != SIZE_MAX; i++) {
		const lade_stage *s = &d->pipe.route->spec->stage[i];
		size = s->algorithm->bound(s, size);
	}
	return size;
}

static void *next_block(decoder *d, size_t size)
{
	void *block = lade__worker_block(d->pipe.worker, LADE__SCRATCH_STAGE + d->turn, size);
	d->turn ^= 1;
	return block;
}

static lade_status beyond_belief(const decoder *d, const lade_algorithm *algorithm, uint64_t wants,
                                 lade_error *err)
{
	return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
	                 "%s: the data wants at least %llu bytes of scratch for a part of them, "
	                 "%zu are given unless the segment's decoded_size is set",
	                 algorithm->name, (unsigned long long)wants, d->believed);
}

/* Decodes 'at' with the codec of 'stage' into a scratch block; '*at' becomes its result. */
static lade_status run_to_scratch(decoder *d, size_t stage, const lade_run *run, lade_cspan *at,
                                  lade_error *err)
{
	const lade_implementation *impl = impl_at(d, stage);
	const lade_algorithm *algorithm = run->stage->algorithm;
	size_t most = room_before(d, stage);
	size_t room;
	uint64_t claimed;
	lade_status status = algorithm->decoded_size(run->stage, at->data, at->size, &claimed, err);
	bool known = status == LADE_OK;
	if (known) {
		if (claimed > most)
			return lade_fail(
				err, LADE_E_NOSPACE, LADE_NO_OFFSET,
				"%s: the data says %llu bytes, the destination has use for %zu",
				algorithm->name, (unsigned long long)claimed, most);
		if (d->believed && claimed > d->believed)
			return beyond_belief(d, algorithm, claimed, err);
		room = (size_t)claimed;
	} else if (status == LADE_E_UNKNOWN_SIZE) {
		room = at->size < GROW_MAX / 8 ? at->size * 8 + ((size_t)64 << 10) : GROW_MAX;
		if (room > most)
			room = most;
	} else {
		return status;
	}
	unsigned turn = d->turn;
	for (;;) {
		d->turn = turn;
		void *block = next_block(d, room);
		if (!block)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "%s: no memory for %zu bytes", algorithm->name, room);
		size_t size = 0;
		status = impl->run(run, *at, lade_host_span(block, room), &size, err);
		if (status == LADE_OK) {
			*at = lade_host_cspan(block, size);
			return LADE_OK;
		}
		if (status != LADE_E_NOSPACE || known)
			return status;
		if (room >= most)
			return d->believed ? beyond_belief(d, algorithm, (uint64_t)most + 1, err) :
				status;
		room = room > most / 4 ? most : room * 4;
	}
}

/* Runs the last codec where its result is wanted.  '*size' is the segment's decoded size. */
static lade_status run_last(decoder *d, size_t stage, const lade_run *run, lade_cspan at,
                            size_t *size, lade_error *err)
{
	const lade_implementation *impl = impl_at(d, stage);
	if (!d->sink)
		return impl->run(run, at, lade_host_span(d->dst, d->cap), size, err);
	const lade__sink *sink = d->sink;
	/* A window in the middle, of a format that can decode it alone.  Where the size is not
	 * told the codec finds out whether the window passes the end. */
	if (impl->run_range && sink->row_size == sink->pitch && (d->known || d->ends)) {
		size_t want_end = sink->off + sink->size;
		size_t end = d->known ? sink->base + (size_t)d->known : want_end;
		size_t from = sink->base > sink->off ? sink->base : sink->off;
		size_t to = end < want_end ? end : want_end;
		*size = end - sink->base;
		if (to <= from)
			return LADE_OK;
		return impl->run_range(run, at, from - sink->base,
		                       lade_host_span(sink->data + (from - sink->off), to - from),
		                       err);
	}
	lade_status status = run_to_scratch(d, stage, run, &at, err);
	if (status != LADE_OK)
		return status;
	lade__sink_write(sink, 0, at.data, at.size);
	*size = at.size;
	return LADE_OK;
}

static lade_status no_room(const decoder *d, size_t want, lade_error *err)
{
	return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
	                 "the result has %zu bytes, the destination %zu", want, d->cap);
}

/* Runs a group of filters; the last one writes to the destination. */
static lade_status run_group(decoder *d, const lade__group *group, lade_cspan *at, bool last,
                             lade_error *err)
{
	if (last && group->out_size > d->cap)
		return no_room(d, group->out_size, err);
	bool scatter =
		impl_at(d, group->first - (group->count - 1))->tile_kind == LADE_TILE_SCATTER;
	if (last && !d->sink)
		return lade__group_run(&d->pipe, group, at->data, d->dst, NULL, err);
	if (last && !scatter)
		return lade__group_run(&d->pipe, group, at->data, NULL, d->sink, err);
	void *block = next_block(d, group->out_size);
	if (!block)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for %zu bytes between stages", group->out_size);
	lade_status status = lade__group_run(&d->pipe, group, at->data, block, NULL, err);
	if (status == LADE_OK && last)
		lade__sink_write(d->sink, 0, block, group->out_size);
	*at = lade_host_cspan(block, group->out_size);
	return status;
}

static lade_status decode_segment(decoder *d, lade_cspan at, size_t *size, lade_error *err)
{
	const lade_spec *spec = d->pipe.route->spec;
	bool placed = false; /* the result is where it is wanted */
	d->turn = 0;
	for (size_t left = spec->count; left;) {
		size_t stage = left - 1;
		const lade_implementation *impl = impl_at(d, stage);
		lade_status status;
		if (spec->stage[stage].algorithm->kind == LADE_STAGE_CHECKSUM) {
			status = lade__pipe_verify(&d->pipe, stage, &at, err);
			left--;
		} else if (impl->tile_kind != LADE_TILE_NONE) {
			lade__group group;
			status = lade__group_make(&d->pipe, stage, left, -1, at.size, &group, err);
			if (status != LADE_OK)
				return status;
			left -= group.count;
			placed = left == 0;
			status = run_group(d, &group, &at, placed, err);
			*size = group.out_size;
		} else {
			lade_run run;
			status = lade__pipe_run(&d->pipe, stage, &run, err);
			if (status != LADE_OK)
				return status;
			left--;
			placed = left == 0;
			status = placed ? run_last(d, stage, &run, at, size, err) :
				run_to_scratch(d, stage, &run, &at, err);
		}
		if (status != LADE_OK)
			return status;
	}
	if (placed)
		return LADE_OK;
	/* The leftmost stages are checksums: the result still has to be copied. */
	if (at.size > d->cap)
		return no_room(d, at.size, err);
	if (d->sink)
		lade__sink_write(d->sink, 0, at.data, at.size);
	else if (at.size)
		memcpy(d->dst, at.data, at.size);
	*size = at.size;
	return LADE_OK;
}

lade_status lade__spec_decoded_size(const lade_spec *spec, const void *src, size_t size,
                                    uint64_t *decoded, lade_error *err)
{
	const uint8_t *at = src;
	uint64_t now = size;
	bool have = true; /* 'at' holds the bytes, not only their number */
	for (size_t i = spec->count; i-- > 0;) {
		const lade_stage *stage = &spec->stage[i];
		bool fixed = (stage->algorithm->flags & LADE_ALGORITHM_FIXED_SIZE) != 0;
		if (!have && !fixed)
			return lade_fail(
				err, LADE_E_UNKNOWN_SIZE, LADE_NO_OFFSET,
				"%s tells its decoded size, but its bytes are not there yet",
				stage->algorithm->name);
		if (now > SIZE_MAX)
			return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
			                 "%s: %llu bytes are too many", stage->algorithm->name,
			                 (unsigned long long)now);
		uint64_t before = now;
		lade_status status = stage->algorithm->decoded_size(stage, have ? at : NULL,
		                                                    (size_t)before, &now, err);
		if (status != LADE_OK)
			return status;
		if (stage->algorithm->kind == LADE_STAGE_CHECKSUM)
			at += have && lade__checksum_at_start(stage) ? before - now : 0;
		else
			have = false;
	}
	*decoded = now;
	return LADE_OK;
}

/* ---- items ------------------------------------------------------------------------------- */

static lade_status size_differs(size_t index, size_t size, size_t said, lade_error *err)
{
	return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
	                 "segment %zu decodes to %zu bytes, its decoded_size says %zu", index, size,
	                 said);
}

static lade_status decode_plain(decoder *d, const lade_item *item, size_t *size, lade_error *err)
{
	uint8_t *dst = item->dst.data;
	size_t done = 0;
	for (size_t i = 0; i < item->src_count; i++) {
		const lade_segment *segment = &item->src[i];
		size_t got = 0;
		d->dst = dst ? dst + done : NULL;
		d->cap = item->dst.size - done;
		lade_status status =
			decode_segment(d, lade_host_cspan(segment->data, segment->size), &got, err);
		if (status == LADE_OK && segment->decoded_size && segment->decoded_size != got)
			status = size_differs(i, got, segment->decoded_size, err);
		if (status != LADE_OK)
			return status;
		done += got;
	}
	*size = done;
	return LADE_OK;
}

/* Rows, a range, or both: each segment that touches the window is decoded through the sink. */
static lade_status decode_windowed(decoder *d, const lade_item *item, size_t *size, lade_error *err)
{
	bool rows = item->row_pitch != 0;
	bool open_end = item->range_size == 0;
	size_t cap = rows ? lade__rows_bytes(item->dst.size, item->row_size, item->row_pitch) :
		item->dst.size;
	lade__sink *sink = &d->window;
	if (item->range_off > SIZE_MAX / 4 || item->range_size > SIZE_MAX / 4)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "the range from %llu of %llu bytes is too large",
		                 (unsigned long long)item->range_off,
		                 (unsigned long long)item->range_size);
	if (!open_end && item->range_size > cap)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "the range has %llu bytes, the destination %zu",
		                 (unsigned long long)item->range_size, cap);
	*sink = (lade__sink){.data = item->dst.data, .row_size = rows ? item->row_size : 1,
	                     .pitch = rows ? item->row_pitch : 1, .off = (size_t)item->range_off,
	                     .size = open_end ? cap : (size_t)item->range_size};
	d->sink = sink;
	size_t end = sink->off + sink->size; /* no overflow: see above, and cap is a real size */
	size_t believed = end < GROW_MAX / 4 ? GROW_MAX : end < SIZE_MAX / 4 ? 4 * end : end;
	size_t total = 0;
	for (size_t i = 0; i < item->src_count; i++) {
		if (open_end ? total > sink->off && total - sink->off > cap : total >= end)
			break;
		const lade_segment *segment = &item->src[i];
		uint64_t said = segment->decoded_size;
		size_t got = 0;
		if (said == 0 && lade__spec_decoded_size(d->pipe.route->spec, segment->data,
		                                         segment->size, &said, NULL) != LADE_OK)
			said = 0;
		if (said > SIZE_MAX / 4)
			return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
			                 "segment %zu says that it decodes to %llu bytes", i,
			                 (unsigned long long)said);
		if (said && said <= sink->off && total <= sink->off - said) {
			total += (size_t)said;
			continue;
		}
		sink->base = total;
		d->known = said;
		d->ends = !open_end && i + 1 == item->src_count;
		/* A whole result must fit; of a ranged one more may have to be decoded than is
		 * kept. */
		d->cap = segment->decoded_size;
		if (d->cap == 0 && item->range_off == 0 && open_end)
			d->cap = cap - total;
		d->believed = d->cap ? 0 : believed;
		if (d->cap == 0)
			d->cap = said ? (size_t)said : believed;
		lade_status status =
			decode_segment(d, lade_host_cspan(segment->data, segment->size), &got, err);
		if (status == LADE_OK && segment->decoded_size && segment->decoded_size != got)
			status = size_differs(i, got, segment->decoded_size, err);
		if (status != LADE_OK)
			return status;
		total += got;
	}
	if (open_end && total >= sink->off && total - sink->off > cap)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "the result has %zu bytes from %zu on, the destination %zu",
		                 total - sink->off, sink->off, cap);
	if (total < (open_end ? sink->off : end))
		return lade_fail(err, LADE_E_RANGE, total,
		                 "the range ends at %zu, the result has %zu bytes",
		                 open_end ? sink->off : end, total);
	*size = open_end ? total - sink->off : sink->size;
	return LADE_OK;
}

lade_status lade__item_decode(lade_worker *worker, const lade__route *route, const lade_item *item,
                              const lade__job_options *options, size_t *size, lade_error *err)
{
	decoder d = {.pipe = {worker, route, options}};
	*size = 0;
	if (item->row_pitch || item->range_off || item->range_size)
		return decode_windowed(&d, item, size, err);
	return decode_plain(&d, item, size, err);
}
