/*
 * decode.c: runs one item's pipeline from right to left.
 *
 * A segment passes the stages with 'at' pointing at what the next one reads: the source, or one of
 * two scratch blocks in turn.  The last stage writes to the destination itself, unless a layout or
 * a range wants the bytes elsewhere (a sink).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/host/tile_group.h"

#include "engine/spec.h"

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
		status = lade__route_at(pipe->worker->engine, pipe->route, stage)->checksum->run(
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
	const lade_codec_ops *codec = impl_at(d, stage)->codec;
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
		status = codec->run(run, *at, lade_host_span(block, room), &size, err);
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

static lade_status no_room(const decoder *d, size_t want, lade_error *err)
{
	return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
	                 "the result has %zu bytes, the destination %zu", want, d->cap);
}

/* Runs the last codec where its result is wanted.  '*size' is the segment's decoded size. */
static lade_status run_last(decoder *d, size_t stage, const lade_run *run, lade_cspan at,
                            size_t *size, lade_error *err)
{
	const lade_codec_ops *codec = impl_at(d, stage)->codec;
	if (!d->sink)
		return codec->run(run, at, lade_host_span(d->dst, d->cap), size, err);
	const lade__sink *sink = d->sink;
	if (sink->outlet_count && lade__stage_is_copy(run->stage)) {
		*size = at.size;
		if (at.size > d->cap)
			return no_room(d, at.size, err);
		lade__sink_write(sink, 0, at.data, at.size);
		return LADE_OK;
	}
	/* Boxes that lie within a part of it. */
	if (sink->outlet_count && codec->run_range && d->known && sink->size <= d->known / 2) {
		size_t from = sink->off > sink->base ? sink->off - sink->base : 0;
		size_t end = sink->off + sink->size - sink->base;
		size_t n = (end < d->known ? end : (size_t)d->known) - from;
		void *block = next_block(d, n);
		if (!block)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "%s: no memory for %zu bytes",
			                 run->stage->algorithm->name, n);
		*size = (size_t)d->known;
		lade_status status = codec->run_range(run, at, from, lade_host_span(block, n), err);
		if (status == LADE_OK)
			lade__sink_write(sink, from, block, n);
		return status;
	}
	/* A window in the middle, of a format that can decode it alone.  Where the size is not
	 * told the codec finds out whether the window passes the end. */
	if (codec->run_range && (d->known || d->ends) &&
	    !sink->outlet_count) {
		size_t want_end = sink->off + sink->size;
		size_t end = d->known ? sink->base + (size_t)d->known : want_end;
		size_t from = sink->base > sink->off ? sink->base : sink->off;
		size_t to = end < want_end ? end : want_end;
		*size = end - sink->base;
		if (to <= from)
			return LADE_OK;
		return codec->run_range(run, at, from - sink->base,
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

/* Runs a group of filters; the last one writes to the destination. */
static lade_status run_group(decoder *d, const lade__group *group, lade_cspan *at, bool last,
                             lade_error *err)
{
	if (last && group->out_size > d->cap)
		return no_room(d, group->out_size, err);
	bool scatter =
		impl_at(d, group->first - (group->count - 1))->tile->kind == LADE_TILE_SCATTER;
	if (d->sink && !lade__sink_streams(d->sink, LADE__TILE_BYTES))
		scatter = true; /* all at once */
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
		lade_status status;
		if (spec->stage[stage].algorithm->kind == LADE_STAGE_CHECKSUM) {
			status = lade__pipe_verify(&d->pipe, stage, &at, err);
			left--;
		} else if (impl_at(d, stage)->tile) {
			lade__group group = {.first = stage, .step = -1, .in_size = at.size};
			status = lade__group_make(&d->pipe, left, &group, err);
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

/* A range: each segment that touches the window is decoded through the sink. */
static lade_status decode_windowed(decoder *d, const lade_item *item, size_t *size, lade_error *err)
{
	bool open_end = item->range_size == 0;
	size_t cap = item->dst.size;
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
	*sink = (lade__sink){.data = item->dst.data, .off = (size_t)item->range_off,
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

/* ---- layouts --------------------------------------------------------------------------------- */

/* The plans of an item's layouts, in the worker's memory or in '*own'.  '*plain' is the first
 * output without one, which has no outlet; SIZE_MAX: there is none. */
static lade_status make_outlets(decoder *d, const lade_item *item, lade__outlet *own,
                                lade__outlet **outlets, size_t *plain, lade_error *err)
{
	size_t count = lade__output_count(item), chunk = SIZE_MAX;
	*plain = SIZE_MAX;
	*outlets = own;
	if (count > 1) {
		*outlets = count > SIZE_MAX / sizeof *own ? NULL :
			lade__worker_block(d->pipe.worker, LADE__SCRATCH_OUTLETS,
			                   count * sizeof *own);
		if (!*outlets)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "no memory for the layouts of %zu outputs", count);
	}
	d->window.outlet = *outlets;
	d->window.outlet_count = 0;
	for (size_t i = 0; i < count; i++) {
		lade_item_output output = lade__output_at(item, i);
		lade__outlet *outlet = &(*outlets)[d->window.outlet_count];
		if (!output.layout) {
			*plain = *plain < i ? *plain : i;
			continue;
		}
		lade_status status = lade__plan_make(output.layout, LADE_DECODE, output.dst.size,
		                                     &outlet->plan, err);
		if (status != LADE_OK)
			return status;
		if (chunk != SIZE_MAX && outlet->plan.chunk_size != chunk)
			return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
			                 "output %zu: its layout is of a chunk of %zu bytes, one "
			                 "before of %zu",
			                 i, outlet->plan.chunk_size, chunk);
		chunk = outlet->plan.chunk_size;
		outlet->span = output.dst.data;
		d->window.outlet_count++;
	}
	return LADE_OK;
}

/* What the chunk must have, by its layouts. */
static lade_status check_chunk(size_t got, size_t want, lade_error *err)
{
	if (got == want)
		return LADE_OK;
	return lade_fail(err, got > want ? LADE_E_NOSPACE : LADE_E_CORRUPT, LADE_NO_OFFSET,
	                 "the chunk decodes to %zu bytes, the layout's shape has %zu", got, want);
}

/* Decodes to the output without a layout, and from there to the others. */
static lade_status decode_to_many(decoder *d, const lade_item *item, size_t plain, size_t *size,
                                  lade_error *err)
{
	lade_item first = *item;
	size_t got = 0, total = 0;
	first.output_count = 0;
	first.dst = item->outputs[plain].dst;
	lade_status status = decode_plain(d, &first, &got, err);
	if (status == LADE_OK && d->window.outlet_count)
		status = check_chunk(got, d->window.outlet[0].plan.chunk_size, err);
	for (size_t i = 0; status == LADE_OK && i < item->output_count; i++) {
		lade_span dst = item->outputs[i].dst;
		if (item->outputs[i].layout)
			continue;
		if (got > dst.size)
			return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
			                 "the result has %zu bytes, output %zu %zu", got, i,
			                 dst.size);
		if (i != plain && got)
			memcpy(dst.data, first.dst.data, got);
		total += got;
	}
	for (size_t i = 0; status == LADE_OK && i < d->window.outlet_count; i++) {
		const lade__outlet *outlet = &d->window.outlet[i];
		lade__plan_scatter(&outlet->plan, d->pipe.worker->engine->cpu, 0, first.dst.data,
		                   got, outlet->span);
		total += outlet->plan.size;
	}
	*size = total;
	return status;
}

/* Decodes the segments that the boxes have a part of, through the sink. */
static lade_status decode_to_outlets(decoder *d, const lade_item *item, size_t chunk,
                                     lade_error *err)
{
	lade__sink *sink = &d->window;
	size_t total = 0, first = SIZE_MAX, end = 0;
	for (size_t i = 0; i < sink->outlet_count; i++) {
		const lade__plan *plan = &sink->outlet[i].plan;
		if (plan->size && plan->first < first)
			first = plan->first;
		if (plan->size && plan->end > end)
			end = plan->end;
	}
	sink->off = first;
	sink->size = end - first;
	sink->cpu = d->pipe.worker->engine->cpu;
	d->sink = sink;
	for (size_t i = 0; i < item->src_count; i++) {
		const lade_segment *segment = &item->src[i];
		uint64_t said = segment->decoded_size;
		size_t got = 0;
		if (said == 0 && lade__spec_decoded_size(d->pipe.route->spec, segment->data,
		                                         segment->size, &said, NULL) != LADE_OK)
			said = 0;
		if (said > chunk - total)
			return check_chunk(said < SIZE_MAX / 4 ? total + (size_t)said : SIZE_MAX,
			                   chunk, err);
		if (said && (total + said <= first || total >= end)) {
			total += (size_t)said;
			continue;
		}
		sink->base = total;
		d->known = said;
		d->cap = chunk - total;
		lade_status status =
			decode_segment(d, lade_host_cspan(segment->data, segment->size), &got, err);
		if (status == LADE_OK && segment->decoded_size && segment->decoded_size != got)
			status = size_differs(i, got, segment->decoded_size, err);
		if (status != LADE_OK)
			return status;
		total += got;
	}
	return check_chunk(total, chunk, err);
}

/* What the layouts take of the chunk, all together. */
static size_t outlets_size(const decoder *d)
{
	size_t total = 0;
	for (size_t i = 0; i < d->window.outlet_count; i++)
		total += d->window.outlet[i].plan.size;
	return total;
}

static lade_status decode_placed(decoder *d, const lade_item *item, size_t *size, lade_error *err)
{
	lade__outlet own, *outlets;
	size_t plain, total;
	lade_status status = make_outlets(d, item, &own, &outlets, &plain, err);
	if (status != LADE_OK)
		return status;
	if (plain != SIZE_MAX)
		return decode_to_many(d, item, plain, size, err);
	total = outlets_size(d);
	if (total)
		status = decode_to_outlets(d, item, outlets[0].plan.chunk_size, err);
	*size = status == LADE_OK ? total : 0;
	return status;
}

/* ---- tails ----------------------------------------------------------------------------------- */

/* The most bytes that the tail has use for: what encoding all of the destination with it gives. */
static size_t tail_most(const lade_item *item, const lade_spec *tail)
{
	size_t most = lade__item_bytes(item, LADE_DECODE);
	if (item->range_off || item->range_size)
		return SIZE_MAX;
	for (size_t i = 0; i < tail->count && most != SIZE_MAX; i++)
		most = tail->stage[i].algorithm->bound(&tail->stage[i], most);
	return most;
}

/* The joined bytes of the segments, by what they tell. */
static lade_status joined_size(const decoder *d, const lade_item *item, size_t *total,
                               lade_error *err)
{
	*total = 0;
	for (size_t i = 0; i < item->src_count; i++) {
		uint64_t said = item->src[i].decoded_size;
		lade_status status = LADE_OK;
		if (said == 0)
			status = lade__spec_decoded_size(d->pipe.route->spec, item->src[i].data,
			                                 item->src[i].size, &said, err);
		if (status != LADE_OK)
			return status;
		if (said > GROW_MAX - *total && !item->src[i].decoded_size)
			return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
			                 "segment %zu says that it decodes to %llu bytes", i,
			                 (unsigned long long)said);
		if (said > SIZE_MAX / 4 - *total)
			return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
			                 "the segments' decoded sizes overflow");
		*total += (size_t)said;
	}
	return LADE_OK;
}

/* Checks the outputs before the segments are decoded; '*none': all are boxes without elements. */
static lade_status check_placed(const lade__pipe *pipe, const lade_item *item, bool *none,
                                lade_error *err)
{
	decoder d = {.pipe = *pipe};
	lade__outlet own, *outlets;
	size_t plain;
	lade_status status = make_outlets(&d, item, &own, &outlets, &plain, err);
	*none = status == LADE_OK && plain == SIZE_MAX && outlets_size(&d) == 0;
	return status;
}

lade_status lade__item_decode_tail(const lade__pipe *pipe, const lade__route *tail,
                                   const lade_item *item, size_t *size, lade_error *err)
{
	const lade__pipe after = {pipe->worker, tail, pipe->options};
	decoder d = {.pipe = *pipe};
	lade_item head = {.src = item->src, .src_count = item->src_count}, rest = *item;
	size_t most = tail_most(item, tail->spec), room = 0;
	lade_status status = LADE_OK;
	bool none = false;
	*size = 0;
	if (lade__item_is_placed(item))
		status = check_placed(pipe, item, &none, err);
	if (status != LADE_OK || none)
		return status;
	status = joined_size(&d, item, &room, err);
	if (status == LADE_E_UNKNOWN_SIZE) {
		room = most < GROW_MAX ? most : GROW_MAX;
		status = LADE_OK;
	}
	if (status != LADE_OK)
		return status;
	if (room > most)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "the segments join to %zu bytes, the tail has use for %zu", room,
		                 most);
	void *block = lade__worker_block(pipe->worker, LADE__SCRATCH_JOIN, room);
	if (!block && room)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for %zu joined bytes", room);
	head.dst = lade_host_span(block, room);
	size_t joined = 0;
	status = decode_plain(&d, &head, &joined, err);
	if (status != LADE_OK)
		return status;
	lade_segment segment = {.data = block, .size = joined};
	rest.src = &segment;
	rest.src_count = 1;
	rest.tail = NULL;
	return lade__item_decode(&after, &rest, size, err);
}

lade_status lade__item_decode(const lade__pipe *pipe, const lade_item *item, size_t *size,
                              lade_error *err)
{
	decoder d = {.pipe = *pipe};
	*size = 0;
	if (lade__item_is_placed(item))
		return decode_placed(&d, item, size, err);
	if (item->range_off || item->range_size)
		return decode_windowed(&d, item, size, err);
	return decode_plain(&d, item, size, err);
}
