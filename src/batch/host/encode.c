/*
 * encode.c: runs one item's pipeline from left to right.
 *
 * Checksum stages that follow another stage are written around its output where it stands, so that
 * they cost no copy.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/host/chain.h"

#include "engine/spec.h"

#include <string.h>

typedef struct encoder {
	lade__pipe pipe;
	uint8_t *dst;
	size_t cap;
	unsigned turn; /* which of the two blocks is free */
} encoder;

static const lade_implementation *impl_at(const encoder *e, size_t stage)
{
	return lade__route_at(e->pipe.worker->engine, e->pipe.route, stage);
}

/* The checksum stages from 'stage' on: their number, and the bytes that they put around. */
static size_t count_checksums(const encoder *e, size_t stage, size_t *before, size_t *after)
{
	const lade_spec *spec = e->pipe.route->spec;
	size_t i = stage;
	*before = *after = 0;
	for (; i < spec->count && spec->stage[i].algorithm->kind == LADE_STAGE_CHECKSUM; i++) {
		size_t size = spec->stage[i].algorithm->bound(&spec->stage[i], 0);
		*(lade__checksum_at_start(&spec->stage[i]) ? before : after) += size;
	}
	return i - stage;
}

/* Writes the checksums of stages [stage, stage + count) around '*at'; there is room for them. */
static lade_status put_checksums(encoder *e, size_t stage, size_t count, lade_span *at,
                                 lade_error *err)
{
	for (size_t i = stage; i < stage + count; i++) {
		const lade_stage *s = &e->pipe.route->spec->stage[i];
		size_t size = s->algorithm->bound(s, 0);
		uint64_t sum = 0;
		lade_run run;
		lade_status status = lade__pipe_run(&e->pipe, i, &run, err);
		if (status == LADE_OK)
			status = impl_at(e, i)->checksum->run(
				&run, lade_host_cspan(at->data, at->size), &sum, err);
		if (status != LADE_OK)
			return status;
		uint8_t *bytes = at->data;
		uint8_t *to = lade__checksum_at_start(s) ? bytes - size : bytes + at->size;
		for (size_t k = 0; k < size; k++)
			to[k] = (uint8_t)(sum >> (8 * k));
		if (to < bytes)
			at->data = to;
		at->size += size;
	}
	return LADE_OK;
}

/* What runs next: a codec, a chain of filters, or (checksums come first) a copy. */
typedef struct encode_step {
	size_t stages;
	size_t most; /* bytes that it can give at most */
	lade__chain chain;
} encode_step;

static lade_status step_make(const encoder *e, size_t stage, size_t in_size, encode_step *step,
                             lade_error *err)
{
	const lade_spec *spec = e->pipe.route->spec;
	const lade_stage *s = &spec->stage[stage];
	step->chain.count = 0;
	if (s->algorithm->kind == LADE_STAGE_CHECKSUM) {
		step->stages = 0;
		step->most = in_size;
		return LADE_OK;
	}
	if (impl_at(e, stage)->tile) {
		step->chain = (lade__chain){.first = stage, .step = 1, .in_size = in_size};
		lade_status status =
			lade__chain_make(&e->pipe, spec->count - stage, &step->chain, err);
		step->stages = step->chain.count;
		step->most = step->chain.out_size;
		return status;
	}
	step->stages = 1;
	step->most = s->algorithm->bound(s, in_size);
	if (step->most != SIZE_MAX)
		return LADE_OK;
	return lade__bound_fail(s, 1, in_size, err);
}

static lade_status step_run(encoder *e, const encode_step *step, size_t stage, lade_cspan at,
                            lade_span *to, lade_error *err)
{
	if (step->stages == 0 || step->chain.count) {
		if (step->most > to->size)
			return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
			                 "the encoded chunk has %zu bytes, the destination %zu",
			                 step->most, to->size);
		to->size = step->most;
		if (step->chain.count)
			return lade__chain_run(&e->pipe, &step->chain, at.data, to->data, NULL,
			                       err);
		if (at.size)
			memcpy(to->data, at.data, at.size);
		return LADE_OK;
	}
	lade_run run;
	lade_status status = lade__pipe_run(&e->pipe, stage, &run, err);
	size_t size = 0;
	if (status == LADE_OK)
		status = impl_at(e, stage)->codec->run(&run, at, *to, &size, err);
	to->size = size;
	return status;
}

static lade_status encode_chunk(encoder *e, lade_cspan at, size_t *size, lade_error *err)
{
	size_t count = e->pipe.route->spec->count;
	e->turn = 0;
	for (size_t stage = 0; stage < count;) {
		encode_step step;
		size_t before, after;
		lade_status status = step_make(e, stage, at.size, &step, err);
		if (status != LADE_OK)
			return status;
		size_t sums = count_checksums(e, stage + step.stages, &before, &after);
		size_t next = stage + step.stages + sums;
		lade_span to = {0};
		if (next == count) {
			if (before + after > e->cap)
				return lade_fail(
					err, LADE_E_NOSPACE, LADE_NO_OFFSET,
					"checksums of %zu bytes do not fit a destination of %zu",
					before + after, e->cap);
			to = lade_host_span(e->dst ? e->dst + before : NULL,
			                    e->cap - before - after);
		} else {
			uint8_t *block = step.most > SIZE_MAX / 2 ? NULL :
				lade__worker_block(e->pipe.worker, LADE__SCRATCH_STAGE + e->turn,
				                   before + step.most + after);
			e->turn ^= 1;
			if (!block)
				return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
				                 "no memory for %zu bytes between stages",
				                 step.most);
			to = lade_host_span(block + before, step.most);
		}
		status = step_run(e, &step, stage, at, &to, err);
		if (status == LADE_OK)
			status = put_checksums(e, stage + step.stages, sums, &to, err);
		if (status != LADE_OK)
			return status;
		at = lade_host_cspan(to.data, to.size);
		stage = next;
	}
	*size = at.size;
	return LADE_OK;
}

/*
 * Gathers a layout's chunk: into a block, or, '*done', straight into the destination where the spec
 * is a copy alone.
 */
static lade_status gather(encoder *e, const lade_item *item, lade_cspan *out, bool *done,
                          lade_error *err)
{
	lade__plan plan;
	const lade_spec *spec = e->pipe.route->spec;
	const lade_segment *from = item->src;
	lade_status status = lade__plan_make(item->layout, LADE_ENCODE, from->size, &plan, err);
	if (status != LADE_OK)
		return status;
	void *block = e->dst;
	*done = spec->count == 1 && lade__stage_is_copy(&spec->stage[0]);
	if (!*done)
		block = lade__worker_block(e->pipe.worker, LADE__SCRATCH_JOIN, plan.chunk_size);
	else if (plan.chunk_size > e->cap)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "copy: want %zu bytes, have %zu", plan.chunk_size, e->cap);
	if (!block && plan.chunk_size)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for a source of %zu bytes", plan.chunk_size);
	lade__plan_gather(&plan, e->pipe.worker->engine->cpu, from->data, block);
	*out = lade_host_cspan(block, plan.chunk_size);
	return LADE_OK;
}

/* Joins segments into one block. */
static lade_status join(lade_worker *worker, const lade_item *item, lade_cspan *out,
                        lade_error *err)
{
	size_t total = 0;
	for (size_t i = 0; i < item->src_count; i++) {
		if (item->src[i].size > SIZE_MAX - total)
			return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
			                 "the segments' sizes overflow");
		total += item->src[i].size;
	}
	uint8_t *block = lade__worker_block(worker, LADE__SCRATCH_JOIN, total);
	if (!block)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for a source of %zu bytes", total);
	*out = lade_host_cspan(block, total);
	for (size_t i = 0; i < item->src_count; i++) {
		if (item->src[i].size)
			memcpy(block, item->src[i].data, item->src[i].size);
		block += item->src[i].size;
	}
	return LADE_OK;
}

lade_status lade__item_encode(const lade__pipe *pipe, const lade_item *item, size_t *size,
                              lade_error *err)
{
	encoder e = {.pipe = *pipe, .dst = item->dst.data, .cap = item->dst.size};
	lade_cspan at;
	*size = 0;
	if (item->layout) {
		bool done;
		lade_status status = gather(&e, item, &at, &done, err);
		*size = status == LADE_OK && done ? at.size : 0;
		if (status != LADE_OK || done)
			return status;
	} else if (item->src_count == 1) {
		at = lade_host_cspan(item->src[0].data, item->src[0].size);
	} else {
		lade_status status = join(pipe->worker, item, &at, err);
		if (status != LADE_OK)
			return status;
	}
	return encode_chunk(&e, at, size, err);
}
