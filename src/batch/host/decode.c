/*
 * decode.c: decodes one segment: runs the stages from right to left.
 *
 * A segment passes the stages with 'at' pointing at what the next one reads: the source, or one of
 * two scratch blocks in turn.  The last stage writes to the destination itself, unless a layout or
 * a range wants the bytes elsewhere (a sink).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/host/decode.h"

#include "batch/host/chain.h"
#include "engine/spec.h"

#include <string.h>

/* Pieces that codecs give have about this many bytes. */
#define PIECE_SIZE ((size_t)128 << 10)

static const lade_implementation *impl_at(const lade__decoder *d, size_t stage)
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
static size_t room_before(const lade__decoder *d, size_t stage)
{
	size_t size = d->cap;
	for (size_t i = 0; i < stage && size != SIZE_MAX; i++) {
		const lade_stage *s = &d->pipe.route->spec->stage[i];
		size = s->algorithm->bound(s, size);
	}
	return size;
}

static void *next_block(lade__decoder *d, size_t size)
{
	void *block = lade__worker_block(d->pipe.worker, LADE__SCRATCH_STAGE + d->turn, size);
	d->turn ^= 1;
	return block;
}

static lade_status beyond_belief(const lade__decoder *d, const lade_algorithm *algorithm,
                                 uint64_t wants, lade_error *err)
{
	return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
	                 "%s: the data wants at least %llu bytes of scratch for a part of them, "
	                 "%zu are given unless the segment's decoded_size is set",
	                 algorithm->name, (unsigned long long)wants, d->believed);
}

/* Decodes 'at' with the codec of 'stage' into a scratch block; '*at' becomes its result. */
static lade_status run_to_scratch(lade__decoder *d, size_t stage, const lade_run *run,
                                  lade_cspan *at, lade_error *err)
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
		room = at->size < LADE__GROW_MAX / 8 ? at->size * 8 + ((size_t)64 << 10)
		                                     : LADE__GROW_MAX;
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

static lade_status no_room(const lade__decoder *d, size_t want, lade_error *err)
{
	return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
	                 "the result has %zu bytes, the destination %zu", want, d->cap);
}

/* Runs shorter than this are scattered by the kernels of layouts. */
#define PLACE_LEAST ((size_t)512)

static void *place_piece(void *ctx, size_t off, size_t *size)
{
	const lade__sink *sink = ctx;
	return lade__plan_at(&sink->outlet[0].plan, sink->outlet[0].span, sink->base + off, size);
}

static void take_piece(void *ctx, size_t off, const void *data, size_t size)
{
	lade__sink_write(ctx, off, data, size);
}

/* Has the codec decode what the outlets want, piece by piece. */
static lade_status run_pieces(const lade__decoder *d, const lade_codec_ops *codec,
                              const lade_run *run, lade_cspan at, lade_error *err)
{
	const lade__sink *sink = d->sink;
	const lade__plan *plan = &sink->outlet[0].plan;
	size_t end = sink->off + sink->size;
	bool place = sink->outlet_count == 1 && plan->swap <= 1 && plan->run >= PLACE_LEAST;
	const lade_pieces to = {.ctx = (void *)(uintptr_t)sink,
	                        .first = sink->off > sink->base ? sink->off - sink->base : 0,
	                        .end = end > sink->base ? end - sink->base : 0,
	                        .place = place ? place_piece : NULL,
	                        .take = take_piece,
	                        .large = d->pipe.options->large};
	return codec->run_pieces(run, at, &to, err);
}

/* Runs the last codec where its result is wanted.  '*size' is the segment's decoded size. */
static lade_status run_last(lade__decoder *d, size_t stage, const lade_run *run, lade_cspan at,
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
	if (sink->outlet_count && codec->run_pieces && d->known &&
	    lade__sink_streams(sink, PIECE_SIZE)) {
		*size = (size_t)d->known;
		return run_pieces(d, codec, run, at, err);
	}
	/* Boxes within a part of it. */
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
	 * known the codec finds out whether the window passes the end. */
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

/* Runs a chain of filters; the last one writes to the destination. */
static lade_status run_chain(lade__decoder *d, const lade__chain *chain, lade_cspan *at, bool last,
                             lade_error *err)
{
	if (last && chain->out_size > d->cap)
		return no_room(d, chain->out_size, err);
	bool scatter =
		impl_at(d, chain->first - (chain->count - 1))->tile->kind == LADE_TILE_SCATTER;
	if (d->sink && !lade__sink_streams(d->sink, LADE__TILE_BYTES))
		scatter = true; /* all at once */
	if (last && !d->sink)
		return lade__chain_run(&d->pipe, chain, at->data, d->dst, NULL, err);
	if (last && !scatter)
		return lade__chain_run(&d->pipe, chain, at->data, NULL, d->sink, err);
	void *block = next_block(d, chain->out_size);
	if (!block)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for %zu bytes between stages", chain->out_size);
	lade_status status = lade__chain_run(&d->pipe, chain, at->data, block, NULL, err);
	if (status == LADE_OK && last)
		lade__sink_write(d->sink, 0, block, chain->out_size);
	*at = lade_host_cspan(block, chain->out_size);
	return status;
}

lade_status lade__decode_segment(lade__decoder *d, lade_cspan at, size_t *size, lade_error *err)
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
			lade__chain chain = {.first = stage, .step = -1, .in_size = at.size};
			status = lade__chain_make(&d->pipe, left, &chain, err);
			if (status != LADE_OK)
				return status;
			left -= chain.count;
			placed = left == 0;
			status = run_chain(d, &chain, &at, placed, err);
			*size = chain.out_size;
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
				"%s states its decoded size, but its bytes are not there yet",
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
