/*
 * read.h: what the ways of reading a frame share: a window of it on the host (chunks.c), many
 * chunks at once on a device (gpu/read.c), all of it in pieces (copy.c).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_FRAME_READ_H
#define LADE_FRAME_READ_H

#include "frame/reader.h"

/* A chunk that ranges touch. */
typedef struct lade__read_task {
	lade__located at;
	size_t first, count; /* pieces */
} lade__read_task;

/* The chunks of a round: what is requested at once from remote sources. */
#define LADE__ROUND_CHUNKS 1024
typedef struct lade__round_table {
	lade_range *ranges;
	lade_error *errors;
	size_t *range_of; /* by chunk */
} lade__round_table;

typedef struct lade__read_batch {
	lade_frame *frame;
	const lade_frame_range *ranges;
	lade__stop stop;
	uint64_t devices; /* that some of the destinations are on, a bit each */
	/* Of a window, but for the first; one block for all windows. */
	lade_status *statuses; /* of the ranges */
	size_t *counts;        /* pieces by chunk */
	lade__read_task *tasks;
	size_t *pieces; /* ranges, by task */
	size_t *groups; /* their first tasks */
	lade__round_table rounds[2];
	pthread_mutex_t mutex; /* guards what follows, and 'statuses' while tasks run */
	size_t failed;         /* the first range that failed; SIZE_MAX: none */
	uint64_t failed_chunk; /* and the first of its chunks that did */
	lade_status status;
	lade_error error;
} lade__read_batch;

/* The i-th piece of a task: where it goes, and which of the chunk's decoded bytes it has. */
typedef struct lade__read_piece {
	lade_span dst;
	size_t from; /* in the chunk */
} lade__read_piece;
lade__read_piece lade__read_piece_at(const lade__read_batch *batch, const lade__read_task *task,
                                     size_t i);

/* Copies to each piece on the host its part of the decoded bytes, but for those that are there
 * already. */
void lade__read_copy(const lade__read_batch *batch, const lade__read_task *task,
                     const uint8_t *decoded);

/* Where a range on the host, or on a device, wants all of the chunk, and what memory that is; NULL
 * when none does. */
uint8_t *lade__read_whole(const lade__read_batch *batch, const lade__read_task *task,
                          bool on_device, lade_place *place);

/* The index's claims about a chunk; what is wrong stands in its entry. */
lade_status lade__read_check(const lade_frame *frame, const lade__located *at, lade_error *err);

/* LADE_E_CANCELLED if the call has been. */
lade_status lade__read_cancelled(lade__read_batch *batch, const lade__read_task *task,
                                 lade_error *err);

/* Notes that the ranges of a task have failed. */
void lade__read_fail(lade__read_batch *batch, const lade__read_task *task, lade_status status,
                     const lade_error *err);

/* Does one task on the host; 'ctx' is the batch. */
void lade__read_task_run(void *ctx, size_t index, lade_worker *worker);

/* Does all tasks of the window on the host.  Fails: when nothing could be tried, LADE_E_NOMEM */
lade_status lade__read_on_host(lade__read_batch *batch, size_t task_count, lade_error *err);

/* Does all tasks of the window with the device that the frame's options name.
 * Fails: when nothing could be tried */
lade_status lade__read_on_device(lade__read_batch *batch, size_t task_count, lade_error *err);

/* Does all tasks of the window on the calling thread. */
void lade__read_here(lade__read_batch *batch, size_t task_count, lade_worker *worker);

/* lade_frame_read() of this version's structs, for a call that 'stop' looks at. */
lade_status lade__read_ranges(lade_frame *frame, const lade_frame_range *ranges, size_t count,
                              lade_result *results, const lade__stop *stop, lade_error *err);

/* Gives back what such reads keep with the frame. */
void lade__read_buffers_free(lade_frame *frame);

#endif
