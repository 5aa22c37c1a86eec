/*
 * gpu.h: how batches run on devices, inside the engine.
 *
 *     items --(units)--> waves --(tables)--> stages' kernels --> sizes, statuses
 *
 * An item becomes units, one a segment.  A wave is the units that go through the device together:
 * their sources are where the device reads them fast, or are brought there first; their results go
 * where they are wanted, or there from scratch memory.  An asynchronous call is one wave on the
 * caller's stream; a waiting call takes as many as it needs, on streams of its own, so that copies
 * and kernels overlap.
 *
 *	group.c         a group of the plan, by kernels or by the host
 *	run.c           a group by kernels, wave by wave
 *	cut.c           how large waves are
 *	feed.c          a group's items as units, and what became of them
 *	units.c         one item as units; boxes.c: with layouts
 *	wave.c          the tables of a wave: laid out, filled, enqueued
 *	pipe.c          a route's stages, one kernel behind the other, over tables in device memory
 *	via_host.c      a group by the host, through pinned memory; via_item.c: one item of it
 *	copies.c        copies outside of waves
 *	streams.c       streams, events and memory that an engine keeps or takes
 *	checksums.c     checksums of bytes on devices
 *	async*.c        the calls of lade/async.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BATCH_GPU_H
#define LADE_BATCH_GPU_H

#include "array/gpu.h"
#include "gpu/work.h"
#include "batch/gpu/args.h"
#include "batch/gpu/kept.h"
#include "batch/host/item.h"
#include "batch/plan/plan.h"

#include <lade/async.h>
#include <lade/checksum.h>

/* Blocks of device memory, and what is in them, begin at multiples of this. */
#define LADE__GPU_ALIGN 256u

static inline size_t lade__gpu_round(size_t size)
{
	return (size + (LADE__GPU_ALIGN - 1)) / LADE__GPU_ALIGN * LADE__GPU_ALIGN;
}

/* ---- a route's stages ------------------------------------------------------------------------ */

/* As lade__gpu_work has them; 'dst_size' and 'status' may be 0. */
typedef struct lade__gpu_tables {
	lade__address src, src_size, dst, dst_cap, dst_size, status;
	size_t count, in_flight;
	uint64_t largest, total; /* of the decoded side; 0: not known */
	/* As large as lade__gpu_pipe_workspace() says of this batch, or of one of more chunks. */
	lade__address workspace;
	size_t workspace_size;
} lade__gpu_tables;

/* The workspace of a route over such a batch.  SIZE_MAX: it is too large, or 'largest' is not known
 * and has to be. */
size_t lade__gpu_pipe_workspace(const lade_engine *engine, const lade__route *route, size_t count,
                                uint64_t largest, uint64_t total);

/* Enqueues the stages on an entered device. */
lade_status lade__gpu_pipe_enqueue(const lade_engine *engine, const lade__route *route,
                                   lade__device *device, lade_stream stream,
                                   const lade__gpu_tables *tables, lade_error *err);

/* Whether what stands between a route's stages is as long as what is decoded. */
bool lade__gpu_pipe_keeps_sizes(const lade__route *route);

/* ---- units ----------------------------------------------------------------------------------- */

typedef struct lade__gpu_unit {
	size_t item;
	const void *src;
	size_t src_size;
	void *dst;       /* NULL with stage_out: scratch */
	size_t cap;      /* the most decoded (or encoded) bytes */
	uint64_t wanted; /* what it must decode to; 0: not known */
	bool stage_in;   /* the source is copied to the device first */
	bool pageable;   /* and the host has to do that */
	bool foreign;    /* or the driver: it is on another device, which kernels do not reach */
	bool stage_out;  /* what follows says where the result goes */
	bool to_host;    /* some of it to pageable memory: through pinned */
	bool part, last; /* one of several of its item; the last of these, or the only one */
	void *to;
	size_t skip, size, at; /* as in lade_gpu_copy; 'at' of a placed unit is in its chunk */
	/* Of a layout or several outputs, when decoding, and of a layout when encoding; else NULL.
	 * Kernels copy 'boxes' of it, with these numbers of axes and pieces. */
	const lade_item *placed, *gathered;
	size_t chunk; /* bytes of the item's whole chunk */
	uint64_t give; /* by the last unit of a placed item: the bytes of its result */
	uint32_t boxes, axes, pieces;
	/* By lade__gpu_wave_plan(): where the staged source and the scratch for the result stand in
	 * a wave, counted from its in_off and out_off; and the sources that one copy brings from
	 * this one on: how many, and their bytes with what is between them.  run_size 0: this one
	 * comes with another, or is not copied by the device. */
	size_t in_at, out_at, run_count, run_size;
} lade__gpu_unit;

/* Units in a row, in memory that grows. */
typedef struct lade__gpu_list {
	lade__gpu_unit *unit;
	size_t count, cap;
} lade__gpu_list;

/* Sees to room for 'more' units behind those that are there.  Fails: LADE_E_NOMEM */
lade_status lade__gpu_list_room(lade__gpu_list *list, size_t more, lade_error *err);

/*
 * Adds the units of one item, at most item->src_count (1 when encoding) of them, for a device's
 * number, to a list that has room for them.  Of the route spec and direction are read.
 * Fails: LADE_E_UNSUPPORTED for what only the host can do: segments that do not state their
 *        decoded size where that is needed, rows or several segments to encode; LADE_E_RANGE,
 *        LADE_E_NOSPACE as lade_decode_into()
 */
lade_status lade__gpu_units(const lade__route *route, int32_t device, const lade_item *item,
                            size_t index, lade__gpu_list *list, lade_error *err);

/* Whether the driver or lade_copy() brings a unit's result to where it goes, as it is. */
static inline bool lade__gpu_unit_copies(const lade__gpu_unit *unit)
{
	return unit->stage_out && (!unit->placed || unit->to_host);
}

/* A box to copy, of memory that a device's kernels reach, outside of waves; LADE_CHUNK_MAX bytes at
 * most. */
typedef struct lade__gpu_box {
	int32_t device; /* for the caller: which copies it */
	lade__plan plan;
	lade_direction direction;
	lade__address src, dst;
} lade__gpu_box;

/* Enqueues the copies of boxes; where the device has no kernels, run by run, and then without
 * swaps.  'list' is not needed any more when the call returns.
 * Fails: LADE_E_NOMEM, LADE_E_DEVICE */
lade_status lade__gpu_boxes(lade_engine *engine, lade__device *device, lade_stream stream,
                            const lade__gpu_box *list, size_t count, lade_error *err);

/* Moves the boxes of a device to the front of a list; how many they are. */
size_t lade__gpu_boxes_of(lade__gpu_box *list, size_t count, int32_t device);

/* Copies boxes by their devices, one after the other, behind the work of their default streams, and
 * waits.  Fails: as lade__gpu_boxes() */
lade_status lade__gpu_boxes_now(lade_engine *engine, lade__gpu_box *list, size_t count,
                                lade_error *err);

/* Plans output 'index' of an item whose chunk has 'chunk' bytes.  Fails: as lade_decode_into() */
lade_status lade__output_plan(const lade_item *item, size_t index, size_t chunk, lade__plan *plan,
                              lade_error *err);

/* Has a unit's bytes, from 'at' of the chunk on, go to the item's outputs, which were checked. */
void lade__gpu_unit_place(lade__gpu_unit *unit, const lade_item *item, size_t chunk);

/* Has a unit's source gathered.  Fails: as lade_encode_into() */
lade_status lade__gpu_unit_gather(lade__gpu_unit *unit, const lade_item *item, lade_error *err);

/* The host's part: from a unit's result to outputs in pageable memory, and from a source there to
 * where the unit's is staged. */
void lade__gpu_unit_spread(const lade__gpu_unit *unit, lade_cpu cpu, const uint8_t *from);
void lade__gpu_unit_collect(const lade__gpu_unit *unit, lade_cpu cpu, uint8_t *to);

/* The bytes of an item's source as encoders take it: what its layout gathers, or its segment. */
static inline size_t lade__item_source_size(const lade_item *item)
{
	return item->layout ? lade__item_bytes(item, LADE_ENCODE)
	                    : item->src_count ? item->src[0].size : 0;
}

/* The unit of an item that lade__item_same_key() the one before: that of 'before', with its own
 * bytes.  False: it is for lade__gpu_units(). */
static inline bool lade__gpu_unit_same(const lade_item *item, size_t index,
                                       lade_direction direction, size_t bound,
                                       const lade__gpu_unit *before, lade__gpu_unit *unit)
{
	size_t cap = direction == LADE_ENCODE && bound < item->dst.size ? bound : item->dst.size;
	if (!before->src_size || !before->cap || !item->src->size || !cap)
		return false;
	*unit = *before;
	unit->item = index;
	unit->src = item->src->data;
	unit->src_size = item->src->size;
	if (unit->stage_out) {
		unit->to = item->dst.data;
		unit->size = cap;
	} else {
		unit->dst = item->dst.data;
	}
	unit->cap = cap;
	unit->wanted = direction == LADE_DECODE ? item->src->decoded_size : 0;
	return true;
}

/* ---- waves ----------------------------------------------------------------------------------- */

static inline uint64_t lade__gpu_pieces(uint64_t size)
{
	return (size + (LADE_COPY_PIECE - 1)) / LADE_COPY_PIECE;
}

/* Enqueues the copying kernel on an entered device; nothing for a list of no pieces. */
lade_status lade__gpu_copy_kernel(lade__device *device, lade_stream stream,
                                  lade_gpu_copies copies, lade_error *err);

/*
 * A wave: units [first, first + count) of a list, and where its parts are in one block of device
 * memory.  Offsets are multiples of LADE__GPU_ALIGN.
 */
typedef struct lade__gpu_wave {
	lade__gpu_unit *units;
	size_t count;
	/* By lade__gpu_wave_put(): the block, and the tables of results, which may be others. */
	lade__address base, dst_size, status;
	/* Pinned memory in which a single stage finds what the host has filled, where no kernel
	 * copies either; 0: that is in the block. */
	lade__address host_tables;
	size_t in_flight; /* units that waves beside this one have, about */
	uint64_t largest, total; /* of the decoded side */
	bool pageable_in, pageable_out; /* the host gathers or spreads some */
	bool few_runs;                  /* of sources: the driver copies them all */
	size_t copies_in, copies_out;
	uint64_t pieces_in, pieces_out;
	size_t boxes, axes, boxes_off; /* boxes to copy, their axes; where they stand */
	uint64_t box_pieces;
	size_t in_size, out_size; /* staged sources and results, each rounded up */
	size_t tables_size;       /* what the host fills: at the block's start */
	size_t result_off;        /* u64 size[count], u32 status[count] */
	size_t result_size;
	size_t in_off, out_off, pipe_off, pipe_size, size; /* the block's */
} lade__gpu_wave;

/* The most bytes of a wave: of staged sources, of staged results, and between its stages, where
 * each unit takes as much as the largest. */
typedef struct lade__gpu_most {
	size_t in, out, between;
} lade__gpu_most;

/*
 * Lays out a wave of its units, or of the first of them that are within 'most'; of one at least.
 * 'units' and 'count' are set before; 'count' then says how many are taken.
 * Fails: LADE_E_LIMIT, LADE_E_ARG
 */
lade_status lade__gpu_wave_plan(const lade_engine *engine, const lade__route *route,
                                const lade__gpu_most *most, lade__gpu_wave *wave, lade_error *err);

/* Gives a wave the block at 'base', with its tables of results. */
static inline void lade__gpu_wave_put(lade__gpu_wave *wave, lade__address base)
{
	wave->base = base;
	wave->dst_size = base + wave->result_off;
	wave->status = wave->dst_size + 8 * wave->count;
}

/*
 * Fills 'tables' (tables_size bytes of host memory) of a wave that has its block.  'pinned_out' is
 * where the host finds the results that go to pageable memory, each at its out_at.
 */
void lade__gpu_wave_fill(const lade__gpu_wave *wave, void *pinned_out, void *tables);

/*
 * Enqueue, in this order and behind the tables and pageable sources: the copies of other sources,
 * the stages, the copies of results.
 */
lade_status lade__gpu_wave_in(lade__device *device, lade_stream stream, const lade__gpu_wave *wave,
                              lade_error *err);
lade_status lade__gpu_wave_stages(const lade_engine *engine, const lade__route *route,
                                  lade__device *device, lade_stream stream,
                                  const lade__gpu_wave *wave, lade_error *err);
/* The copies of boxes: before the stages when encoding, behind them, for what they have made, when
 * decoding.  Nothing where there are none. */
lade_status lade__gpu_wave_boxes(lade__device *device, lade_stream stream, const lade__gpu_wave *w,
                                 lade_direction direction, lade_error *err);
/* Their part of lade__gpu_wave_fill(). */
void lade__gpu_wave_fill_boxes(const lade__gpu_wave *wave, void *tables);
lade_status lade__gpu_wave_out(lade__device *device, lade_stream stream, const lade__gpu_wave *wave,
                               lade_error *err);

/* Copies 'size' bytes (a multiple of 8) to the device by the arguments of kernels: at once, without
 * memory that has to stay. */
lade_status lade__gpu_put(lade__device *device, lade_stream stream, lade__address to,
                          const void *from, size_t size, lade_error *err);

/* ---- stream sets ----------------------------------------------------------------------------- */

#define LADE__GPU_FLIGHTS 16
/* With more, the link is slower, and waves wait for others that share a queue of the device's. */
#define LADE__GPU_KERNEL_STREAMS 8

/* What one wave in flight has of its own. */
typedef struct lade__gpu_flight {
	/* Events: its sources are there; its results are made; their sizes are on the host; all
	 * is done. */
	void *copied, *made, *sized, *done;
	lade__block pinned;
	lade__gpu_list units;
} lade__gpu_flight;

/*
 * What one call at a time uses of a device; the engine keeps these sets between calls.  Copies in
 * and copies out have a stream each, of the higher priority, so that kernels which fill the device
 * do not keep them waiting; the waves' kernels take turns on a few, each behind those of the wave
 * that had its stream before.
 */
typedef struct lade__gpu_streams {
	struct lade__gpu_streams *next;
	int32_t device;
	void *begin; /* an event, for lade__gpu_streams_follow() */
	lade_stream in, out;
	lade_stream kernels[LADE__GPU_KERNEL_STREAMS]; /* those that were wanted so far */
	int least;                              /* the priority of these */
	lade__gpu_flight flight[LADE__GPU_FLIGHTS];
	lade__gpu_list pending; /* units that are in no wave yet */
} lade__gpu_streams;

/* A stream set on an entered device; give takes it back, and frees what it has of pinned memory
 * beyond what sets keep. */
lade_status lade__gpu_streams_take(lade_engine *engine, lade__device *device,
                                   lade__gpu_streams **set, lade_error *err);
void lade__gpu_streams_give(lade_engine *engine, lade__gpu_streams *set);

/* A set's stream 'own' goes on when 'stream' has come so far.  Fails: LADE_E_UNSUPPORTED while
 * that is captured */
lade_status lade__gpu_streams_follow(lade__device *device, lade__gpu_streams *set, lade_stream own,
                                     lade_stream stream, lade_error *err);

/* The stream of a wave's kernels, by the wave's number in the call. */
lade_status lade__gpu_streams_kernels(lade__device *device, lade__gpu_streams *set, size_t wave,
                                      lade_stream *out, lade_error *err);

/* Waits for all of a set's work, whatever came of it. */
void lade__gpu_streams_wait(lade__device *device, lade__gpu_streams *set);

/* A flight's pinned memory, of at least 'size' bytes; nothing uses it any more. */
lade_status lade__gpu_flight_pinned(lade_engine *engine, lade__gpu_streams *set, unsigned flight,
                                    size_t size, lade_error *err);

/* Memory of the engine's allocator for LADE_DEVICE, in a stream's order. */
lade_status lade__gpu_alloc(const lade_engine *engine, lade__device *device, lade_stream stream,
                            size_t size, lade__address *out, lade_error *err);
void lade__gpu_free(const lade_engine *engine, lade__device *device, lade_stream stream,
                    lade__address block, size_t size);

/*
 * Pinned memory for the tables of a call that does not wait: free again when 'event' has come.
 * The engine keeps staging buffers between calls.
 */
typedef struct lade__gpu_staging {
	struct lade__gpu_staging *next;
	int32_t device;
	void *event;
	lade__block pinned;
} lade__gpu_staging;

/* One that nothing uses, with at least 'size' bytes; give records its event on 'stream'. */
lade_status lade__gpu_staging_take(lade_engine *engine, lade__device *device, size_t size,
                                   lade__gpu_staging **staging, lade_error *err);
lade_status lade__gpu_staging_give(lade_engine *engine, lade__device *device, lade_stream stream,
                                   lade__gpu_staging *staging, lade_error *err);

/* ---- calls that wait ---------------------------------------------------------------------- */

/*
 * A group's items as units.  What it says of all of them need not be exact: waves are cut by it.
 */
typedef struct lade__gpu_feed {
	lade__planner *planner;
	lade__group *group;
	size_t count;     /* units */
	uint64_t in, out; /* bytes of sources and results that are staged */
	bool pageable;    /* some may be in pageable memory */
	bool refused;     /* the device has refused some */
	struct lade__gpu_done *done; /* by item; NULL until one needs it */
} lade__gpu_feed;

lade__gpu_feed lade__gpu_feed_of(lade__planner *p, lade__group *g);

/* Adds the units of the next items to a list until it has 'want', or sets '*end': there are no
 * more.  What the device does not take is left to the host, or fails.  Fails: LADE_E_NOMEM */
lade_status lade__gpu_feed_units(lade__gpu_feed *feed, size_t want, lade__gpu_list *list, bool *end,
                                 lade_error *err);

/* Likewise with all that are left; their units are dropped. */
lade_status lade__gpu_feed_rest(lade__gpu_feed *feed, lade_error *err);

/* Units are done, in the order in which they were made; statuses and sizes are as the kernels left
 * them.  Fails: LADE_E_NOMEM */
lade_status lade__gpu_feed_results(lade__gpu_feed *feed, const lade__gpu_unit *units, size_t count,
                                   const uint32_t *statuses, const uint64_t *sizes,
                                   lade_error *err);

/* Reports the items that the device has refused, and frees what the feed has. */
void lade__gpu_feed_end(lade__gpu_feed *feed);

/* How a call is cut into waves: by what is known of its units, and what waves have taken so far. */
typedef struct lade__gpu_cut {
	const lade__tuning *tuning;
	const lade__cut *cut;
	size_t count;           /* units, about */
	uint64_t in, out;       /* bytes that are staged, about */
	bool slow;              /* kernels are expected to take longer than the link */
	bool single;            /* one wave is all */
	bool arrive;            /* items do: 'in' is a guess at first */
	lade__gpu_most most;    /* of any wave */
	size_t few_in, few_out; /* the bytes of a small wave */
	size_t waves, units;    /* taken so far */
	uint64_t in_done, out_done;
} lade__gpu_cut;

lade__gpu_cut lade__gpu_cut_of(const lade__gpu_feed *feed, const lade__device *device);

/* The most of the next wave: bytes, and units.  About how many units that number of bytes is. */
lade__gpu_most lade__gpu_cut_next(const lade__gpu_cut *c);
size_t lade__gpu_cut_units(const lade__gpu_cut *c);
size_t lade__gpu_cut_guess(const lade__gpu_cut *c, const lade__gpu_most *most);

/* How many times larger than the first wave others may be. */
double lade__gpu_cut_growth(const lade__gpu_cut *c, const lade__gpu_most *first);

/* Counts a wave that is launched. */
void lade__gpu_cut_take(lade__gpu_cut *c, const lade__gpu_wave *w);

/* About how many units the device has beside those of wave 'w', which was counted: 'pending' more
 * have been made, and others may come unless it is the feed's 'end'. */
size_t lade__gpu_cut_beside(const lade__gpu_cut *c, const lade__gpu_wave *w, size_t pending,
                            bool end);

/* The most of a device's memory that waves in flight take. */
size_t lade__gpu_cut_memory(const lade__device *device);

/*
 * Runs a feed's units on an entered device, behind the work of the call's stream, and waits.
 * Fails: when the device does, and with LADE_E_NOMEM; what then became of items without a result is
 *        not known, and the feed may not have come to its end
 */
lade_status lade__gpu_run(lade__gpu_feed *feed, lade__device *device, lade_error *err);

/*
 * Runs 'count' of a group's items on the host whose bytes are on an entered device: brings the
 * sources to pinned memory, and takes the results from there.
 */
lade_status lade__gpu_via_host(lade__planner *p, lade__group *g, const size_t *index, size_t count,
                               lade__device *device, lade_error *err);

/* Runs a group that is a device's, or has bytes on one.  Fails: when the call as a whole does */
lade_status lade__gpu_group_run(lade__planner *p, lade__group *g, lade_error *err);

/* Enqueues copies on an entered device; 'list' is read at once, and its entries get their pieces'
 * numbers. */
lade_status lade__gpu_copies(lade_engine *engine, lade__device *device, lade_stream stream,
                             lade_gpu_copy *list, size_t count, lade_error *err);

/* Runs copies on a device, behind the work of its default stream, and waits.  'pageable': some of
 * the memory is. */
lade_status lade__gpu_copy_now(lade_engine *engine, int32_t device, lade_gpu_copy *list,
                               size_t count, bool pageable, lade_error *err);

/* ---- other calls -------------------------------------------------------------------------- */

/*
 * The checksums of those of 'spans' that are on devices; others are left alone.  Sizes and pointers
 * have been looked at.
 * Fails: LADE_E_NO_DEVICE, LADE_E_DEVICE, LADE_E_NOMEM, LADE_E_UNSUPPORTED while the default
 *        stream of the device is captured
 */
lade_status lade__gpu_checksums(lade_engine *engine, lade_checksum kind, const lade_cspan *spans,
                                size_t count, uint64_t *sums, lade_error *err);

/* Copies bytes on a device to 'to'; waits. */
lade_status lade__gpu_fetch(int32_t device, const void *from, size_t size, void *to,
                            lade_error *err);

#endif
