/*
 * engine.h: the inside of an engine: registry, workers, routes, and running one item.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BATCH_ENGINE_H
#define LADE_BATCH_ENGINE_H

#include "base/pool.h"

#include <lade/batch.h>

/* ---- registry ------------------------------------------------------------------------- */

/* An algorithm's place in an engine: the library's own come first, in the same order always. */
typedef struct lade__slot {
	const lade_algorithm *algorithm;
	lade_algorithm *owned; /* the copy of a caller's record */
	uint16_t first[2];     /* by direction: index + 1 of its first implementation; 0: none */
} lade__slot;

typedef struct lade__entry {
	lade_implementation record;
	uint16_t next; /* index + 1 of the algorithm's next one in this direction; 0: the last */
} lade__entry;

/* Slots and entries are tables that grow by being replaced. */
typedef struct lade__registry {
	lade__slot *slots;
	size_t slot_count, slot_cap;
	lade__entry *entries;
	size_t entry_count, entry_cap;
} lade__registry;

lade_status lade__registry_init(lade__registry *registry, lade_error *err);
void lade__registry_reset(lade__registry *registry);

/* The slot of an algorithm; 'hint' is tried first.  NULL when the engine does not have it. */
const lade__slot *lade__registry_slot(const lade__registry *registry, unsigned hint,
                                      const lade_algorithm *algorithm);

/* ---- the engine ------------------------------------------------------------------------- */

struct lade_engine {
	lade_allocator allocators[LADE_KIND_COUNT];
	unsigned threads;
	lade_cpu cpu;
	lade__registry registry;
	lade__pool pool;
	pthread_mutex_t workers_mutex;
	lade_worker *workers_free, *workers_all;
	struct lade__gpu_lane *lanes;   /* of devices, not in use; under the same mutex */
	struct lade__gpu_sheet *sheets; /* likewise */
	unsigned generation; /* of the workers' lists, as in lade__pool */
	pthread_t thread_ids[];
};

static inline const lade_allocator *lade__engine_host(const lade_engine *engine)
{
	return &engine->allocators[LADE_HOST];
}

/*
 * Scratch blocks of a worker, by use.  A worker serves one thread at a time and keeps its blocks
 * and its codec contexts between calls.
 */
enum {
	LADE__SCRATCH_IMPL = 0,  /* and 1: lade_worker_scratch() */
	LADE__SCRATCH_STAGE = 2, /* and 3: between stages */
	LADE__SCRATCH_TILE = 4,  /* and 5: between the filters of a tile */
	LADE__SCRATCH_JOIN =
		6, /* an encoder's source, gathered; a decoder's result, to be spread */
	LADE__SCRATCH_FRAME = 7, /* for the layer above */
	LADE__SCRATCH_COUNT = 8,
};

typedef struct lade__block {
	void *data;
	size_t size;
} lade__block;

struct lade_worker {
	lade_engine *engine;
	lade_worker *next_free, *next_all;
	lade__block scratch[LADE__SCRATCH_COUNT];
	void **states; /* by implementation; NULL: not made yet */
	size_t state_count;
};

/*
 * Before the engine's mutex is locked in a call that may be the first in a forked child: the lists
 * may have been caught there in the middle of a change, by a thread that is no more, and workers in
 * the middle of a call.  They begin anew; what they held is lost, once.
 */
void lade__engine_after_fork(lade_engine *engine);

/* NULL: out of memory.  Every worker taken is given back. */
lade_worker *lade__worker_take(lade_engine *engine);
void lade__worker_give(lade_worker *worker);

/* A scratch block of at least 'size' bytes, 64-byte aligned; NULL: out of memory.  The block of a
 * slot stays until the slot is asked for more than it has. */
void *lade__worker_block(lade_worker *worker, unsigned slot, size_t size);

/* The worker's state of an implementation, made when it is first wanted. */
lade_status lade__worker_state(lade_worker *worker, size_t index, void **state, lade_error *err);

/*
 * Calls fn(ctx, i, worker) for each i below 'count', on up to 'threads' threads (0: the
 * engine's), the caller's included; 'grain' consecutive ones are taken at a time (0: chosen).
 * 'order', if not NULL, says which i comes first.
 * Fails: LADE_E_NOMEM when not even one worker could be had; then nothing was called
 */
lade_status lade__engine_parallel(lade_engine *engine, unsigned threads, size_t count,
                                  size_t grain, const uint32_t *order,
                                  void (*fn)(void *ctx, size_t index, lade_worker *worker),
                                  void *ctx, lade_error *err);

/* ---- routes ------------------------------------------------------------------------------- */

/* What the router picked for each stage of a spec: indices into the registry's entries. */
typedef struct lade__route {
	const lade_spec *spec;
	lade_direction direction;
	lade_kind place; /* LADE_HOST, or LADE_DEVICE */
	double cost; /* nanoseconds expected for the whole workload */
	bool ignore_checksums; /* false, unless who made it says so: devices heed it */
	uint16_t entry[LADE_STAGES_MAX];
} lade__route;

/* The route over implementations of one place.  'workload' has all but the stage filled in.  With
 * 'candidates' (room for 'cap') all that were looked at are listed, and '*candidate_count' says
 * how many there are. */
lade_status lade__route_make(const lade_engine *engine, const lade_spec *spec,
                             lade_direction direction, lade_kind place,
                             lade_workload *workload, lade__route *route,
                             lade_candidate *candidates, size_t cap,
                             size_t *candidate_count, lade_error *err);

static inline const lade_implementation *lade__route_at(const lade_engine *engine,
                                                        const lade__route *route, size_t stage)
{
	return &engine->registry.entries[route->entry[stage]].record;
}

/* A route for chunks of about 'size' decoded bytes in host memory: for layers that run items on
 * their own workers. */
lade_status lade__route_host(const lade_engine *engine, const lade_spec *spec,
                             lade_direction direction, size_t count, size_t size, bool has_dict,
                             bool strict, lade__route *route, lade_error *err);

/* The arguments that calls over items share; 'options' NULL: the defaults.  Fails: LADE_E_ARG */
lade_status lade__call_check(const lade_engine *engine, const lade_item *items, size_t count,
                             const lade_batch_options *options, lade_error *err);

/* ---- what became of a call's items -------------------------------------------------------- */

/* Where a call tells what became of its items; several threads may tell at once. */
typedef struct lade__outcome {
	lade_result *results;    /* NULL: not wanted */
	lade_error *item_errors; /* likewise */
	pthread_mutex_t mutex;   /* guards what follows */
	size_t first_bad;        /* SIZE_MAX: none */
	lade_status bad_status;
	lade_error *err;
} lade__outcome;

/* 'options' may be NULL. */
void lade__outcome_init(lade__outcome *outcome, lade_result *results,
                        const lade_batch_options *options, lade_error *err);
void lade__outcome_failed(lade__outcome *outcome, size_t index, lade_status status,
                          const lade_error *error);

static inline void lade__outcome_done(lade__outcome *outcome, size_t index, size_t size)
{
	if (outcome->results)
		outcome->results[index] = (lade_result){LADE_OK, size};
}

/* Ends it; the status of the first item that failed. */
lade_status lade__outcome_reset(lade__outcome *outcome);

/*
 * The items of a call that lie on the host and are done there; 'index', if not NULL, says which
 * they are in the caller's list.  Fails: when nothing could be tried
 */
lade_status lade__host_call(lade_engine *engine, lade_direction direction, const lade_spec *spec,
                            const lade_item *items, size_t count, const size_t *index,
                            const lade_batch_options *options, lade__outcome *outcome,
                            lade_error *err);

/* ---- one item -------------------------------------------------------------------------------- */

/* What a call lays down for all its items. */
typedef struct lade__job_options {
	const lade_dict *dict;
	uint32_t flags; /* LADE_BATCH_... */
} lade__job_options;

/*
 * Runs one checked item on 'worker'.  lade__item_check() says whether it may be run: pointers,
 * rows, places.
 */
lade_status lade__item_check(const lade_item *item, lade_direction direction, lade_error *err);
lade_status lade__item_decode(lade_worker *worker, const lade__route *route,
                              const lade_item *item, const lade__job_options *options,
                              size_t *size, lade_error *err);
lade_status lade__item_encode(lade_worker *worker, const lade__route *route,
                              const lade_item *item, const lade__job_options *options,
                              size_t *size, lade_error *err);

/* Shells for one contiguous chunk in host memory. */
lade_status lade__worker_decode(lade_worker *worker, const lade__route *route,
                                const lade__job_options *options, const void *src,
                                size_t src_size, void *dst, size_t dst_cap, size_t *dst_size,
                                lade_error *err);
lade_status lade__worker_encode(lade_worker *worker, const lade__route *route,
                                const lade__job_options *options, const void *src,
                                size_t src_size, void *dst, size_t dst_cap, size_t *dst_size,
                                lade_error *err);

/* The decoded size of one encoded segment; LADE_E_UNKNOWN_SIZE when the format does not tell. */
lade_status lade__spec_decoded_size(const lade_spec *spec, const void *src, size_t size,
                                    uint64_t *decoded, lade_error *err);

/* ---- runs of one stage, shared by the two directions -------------------------------- */

typedef struct lade__pipe {
	lade_worker *worker;
	const lade__route *route;
	const lade__job_options *options;
} lade__pipe;

/* Fills '*run' for a stage; makes the worker's state when it is first wanted. */
lade_status lade__pipe_run(const lade__pipe *pipe, size_t stage, lade_run *run, lade_error *err);

/* Whether a checksum stage's bytes stand before what they protect: its option 'location'. */
static inline bool lade__checksum_at_start(const lade_stage *stage)
{
	return stage->option[0].i == 1;
}

/* The bytes that rows hold within an extent. */
size_t lade__rows_bytes(size_t extent, size_t row_size, size_t pitch);

/* Verifies a checksum stage's bytes; '*src' becomes what they protect. */
lade_status lade__pipe_verify(const lade__pipe *pipe, size_t stage, lade_cspan *src,
                              lade_error *err);

/*
 * Where the window [off, off + size) of an item's decoded bytes goes: rows that start 'pitch'
 * apart, or one run of bytes.  'base' is where the segment at hand begins among those bytes.
 */
typedef struct lade__sink {
	uint8_t *data;
	size_t row_size, pitch; /* equal when there are no gaps */
	size_t off, size;
	size_t base;
} lade__sink;

/* Writes bytes [off, off + size) of the segment, as far as they lie in the window. */
void lade__sink_write(const lade__sink *sink, size_t off, const void *src, size_t size);

/*
 * A group of stages whose filters pass over the data in tiles.  'step' is +1 when encoding and -1
 * when decoding; stages first, first + step, ... 'count' of them.
 */
typedef struct lade__group {
	size_t first, count;
	int step;
	size_t in_size, out_size; /* of the whole group */
	size_t tile;              /* the first stage's elements a tile; 0: everything in one */
} lade__group;

/* The longest group that begins at 'first' and may use 'left' stages.  '*group' has count 0 when
 * the stage has no tiles.  Fails when 'in_size' does not fit a stage. */
lade_status lade__group_make(const lade__pipe *pipe, size_t first, size_t left, int step,
                             size_t in_size, lade__group *group, lade_error *err);

/* Runs it from 'src' to 'dst' (out_size bytes), or, when 'sink' is not NULL, there. */
lade_status lade__group_run(const lade__pipe *pipe, const lade__group *group, const void *src,
                            void *dst, const lade__sink *sink, lade_error *err);

#endif
