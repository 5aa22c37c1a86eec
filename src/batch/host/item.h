/*
 * item.h: one item on the host: checked, decoded, encoded.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BATCH_HOST_ITEM_H
#define LADE_BATCH_HOST_ITEM_H

#include "array/plan.h"
#include "batch/plan/item.h"
#include "engine/route.h"

/* What a call lays down for all its items. */
typedef struct lade__job_options {
	const lade_dict *dict;
	uint32_t flags; /* LADE_BATCH_... */
	bool large;     /* as in lade_pieces */
} lade__job_options;

/* What an item runs on. */
typedef struct lade__pipe {
	lade_worker *worker;
	const lade__route *route;
	const lade__job_options *options;
} lade__pipe;

/* Run one item that lade__item_check() has passed. */
lade_status lade__item_decode(const lade__pipe *pipe, const lade_item *item, size_t *size,
                              lade_error *err);
/* Of an item with a tail, whose route is 'tail'. */
lade_status lade__item_decode_tail(const lade__pipe *pipe, const lade__route *tail,
                                   const lade_item *item, size_t *size, lade_error *err);
lade_status lade__item_encode(const lade__pipe *pipe, const lade_item *item, size_t *size,
                              lade_error *err);

/* Shells for one contiguous chunk in host memory. */
lade_status lade__pipe_decode(const lade__pipe *pipe, lade_cspan src, lade_span dst,
                              size_t *dst_size, lade_error *err);
lade_status lade__pipe_encode(const lade__pipe *pipe, lade_cspan src, lade_span dst,
                              size_t *dst_size, lade_error *err);

/* ---- runs of one stage, shared by the two directions ----------------------------------------- */

/* Fills '*run' for a stage; makes the worker's state when it is first wanted. */
lade_status lade__pipe_run(const lade__pipe *pipe, size_t stage, lade_run *run, lade_error *err);

/* Whether a checksum stage's bytes stand before what they protect: its option 'location'. */
static inline bool lade__checksum_at_start(const lade_stage *stage)
{
	return stage->option[0].i == 1;
}

/* Verifies a checksum stage's bytes; '*src' becomes what they protect. */
lade_status lade__pipe_verify(const lade__pipe *pipe, size_t stage, lade_cspan *src,
                              lade_error *err);

/* Whether a stage's decoded bytes are its encoded ones. */
static inline bool lade__stage_is_copy(const lade_stage *stage)
{
	return stage->algorithm->kind == LADE_STAGE_CODEC && stage->algorithm->id == 1;
}

/* A layout's plan and the span that it is for. */
typedef struct lade__outlet {
	lade__plan plan;
	void *span;
} lade__outlet;

/*
 * Where the window [off, off + size) of an item's decoded bytes goes: to outlets, which take what
 * they want of it, or, without any, to 'data'.  'base' is where the segment at hand begins among
 * those bytes.
 */
typedef struct lade__sink {
	uint8_t *data;
	size_t off, size;
	size_t base;
	const lade__outlet *outlet;
	size_t outlet_count;
	lade_cpu cpu;
} lade__sink;

/* Whether pieces of 'piece' bytes are as good for a sink as all at once. */
bool lade__sink_streams(const lade__sink *sink, size_t piece);

/* Writes bytes [off, off + size) of the segment, as far as they are in the window. */
void lade__sink_write(const lade__sink *sink, size_t off, const void *src, size_t size);

#endif
