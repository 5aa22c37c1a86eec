/*
 * batch.h: decodes and encodes many chunks in one call, into memory that the caller chose.
 *
 *	lade_segment chunk = {.data = packed, .size = size};     // one of N
 *	lade_item item = {.src = &chunk, .src_count = 1,
 *	                  .dst = lade_host_span(back, sizeof back)};
 *	lade_result result;
 *	if (lade_decode_into(engine, spec, &item, 1, &result, NULL, &err))
 *		return fprintf(stderr, "%s\n", err.message);
 *	printf("%zu bytes\n", result.size);
 *
 * One chunk alone is shorter with lade_decode() and lade_encode().  Sources and destinations may be
 * in any mix of places, on the host and on GPUs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BATCH_H
#define LADE_BATCH_H

#include <lade/cancel.h>
#include <lade/layout.h>
#include <lade/memory.h>
#include <lade/spec.h>

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the engine --------------------------------------------------------------------- */

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_engine_options {
	size_t struct_size; /* sizeof(lade_engine_options) */
	unsigned threads;   /* threads of one call, with the caller's; 0: lade_cpu_count() */
	lade_cpu cpu;       /* LADE_CPU_AUTO, or a lower level to force */
	const lade_allocator *allocators[LADE_KIND_COUNT]; /* by kind; NULL: the default */
} lade_engine_options;

/*
 * Makes an engine, which owns threads, scratch memory and codec contexts.  NULL options are all
 * defaults.  Threads start at the first call that has work for them and end in lade_engine_free().
 * A forked child gets new threads.
 *
 * Fails:   LADE_E_ARG, LADE_E_NOMEM
 * Threads: any number of threads may call one engine at once
 * Owns:    the caller; do not free it while a call runs
 */
LADE_API lade_status lade_engine_new(const lade_engine_options *options, lade_engine **out,
                                     lade_error *err);
LADE_API void lade_engine_free(lade_engine *engine); /* NULL is fine */

/*
 * Frees what an engine keeps for its next calls: scratch memory and, for devices, pinned memory (up
 * to 256 MiB for each call that ran at the same time, and for reads of Zarr arrays together),
 * streams and events.  It waits for enqueued calls whose tables are in such memory.
 * lade_device_trim() frees the reserve of a device's pool.
 * NULL is fine.
 */
LADE_API void lade_engine_trim(lade_engine *engine);

/* The process's shared engine, which the first call makes with the defaults.  NULL: out of memory.
 * Do not free it. */
LADE_API lade_engine *lade_engine_default(void);

/* The threads of a call, and the highest instruction set that the engine uses. */
LADE_API unsigned lade_engine_threads(const lade_engine *engine);
LADE_API lade_cpu lade_engine_cpu(const lade_engine *engine);

/* ---- items -------------------------------------------------------------------------- */

/*
 * Later versions add fields at the end of structs; zero turns them off.  So a program compiled for
 * one version runs with another.  Options begin with their size: a shorter struct is filled up with
 * zeros, and a longer one is accepted if the unknown fields are zero.  For structs in arrays the
 * call's options have the size (item_size and others); 0 means the size in version 0.2.0.
 */

/* A piece of an item's source. */
typedef struct lade_segment {
	const void *data;
	size_t size; /* bytes */
	lade_place place;
	size_t decoded_size; /* the bytes it decodes to, if the caller knows; 0: unknown */
} lade_segment;

/* One of several destinations of a chunk. */
typedef struct lade_item_output {
	lade_span dst;
	const lade_layout *layout; /* NULL: contiguous from the span's start */
} lade_item_output;

/*
 * One chunk to decode or encode.  Zero-initialise, then set the fields you need: most items set
 * 'src', 'src_count' and 'dst' only.
 *
 * Segments: decoding decodes each segment of 'src' on its own and joins the results in 'dst'.
 * Encoding joins the segments and encodes them as one chunk.
 *
 * Layout: where the elements go in 'dst' when decoding, or where they are in the one segment of
 * 'src' when encoding (layout.h).  NULL: contiguous.  The chunk must have exactly the bytes of the
 * layout's shape.  An item with a box of no elements has no bytes, and its source is not read.
 *
 * Outputs (decoding only): if 'output_count' > 0, the chunk is decoded once and written to each of
 * 'outputs'; leave 'dst' and 'layout' unset.  The item's size is the sum over the outputs.
 *
 * Tail (decoding only): a spec that is decoded once, after the segments are decoded and joined.
 * When encoding, its stages came before those of 'spec'.  The range, layout and outputs apply to
 * its result.
 *
 * Range (decoding only): only bytes [range_off, range_off + range_size) of the result go to 'dst',
 * without a layout.  range_size 0: all bytes from range_off on.  A codec that cannot decode a range
 * alone needs scratch memory for the whole segment.  If only the data states its size, scratch is
 * limited to 1 GiB or four times the range's end, whichever is larger (else LADE_E_LIMIT).  Set the
 * segment's 'decoded_size' to allow that much.
 */
typedef struct lade_item {
	const lade_spec *spec; /* NULL: the call's */
	const lade_segment *src;
	size_t src_count;
	lade_span dst;
	uint64_t range_off, range_size;
	const lade_layout *layout;
	const lade_item_output *outputs;
	size_t output_count;
	const lade_spec *tail;
} lade_item;

typedef struct lade_result {
	lade_status status;
	/* Bytes written to 'dst', without gaps; for lade_decoded_sizes(), the decoded size.  0 on
	 * failure. */
	size_t size;
} lade_result;

enum {
	/* Decoding removes checksums without verifying them. */
	LADE_BATCH_IGNORE_CHECKSUMS = 1,
	/*
	 * Decode on the host with strict decoders, which accept only what the formats allow.  LZ4
	 * and Snappy use the library's own decoders, which agree with the GPU kernels on every
	 * stream; liblz4 and libsnappy accept some invalid ones (docs/verdicts.md).  Deflate, zlib
	 * and gzip use zlib, at half the speed of libdeflate.  LZ4 frames and Blosc do not change.
	 */
	LADE_BATCH_STRICT = 2,
};

/* Which processor does the work. */
typedef enum lade_where {
	LADE_WHERE_AUTO = 0,   /* the one expected to finish first; lade_explain() shows it */
	LADE_WHERE_HOST = 1,   /* the host; bytes on a device are copied to it and back */
	LADE_WHERE_DEVICE = 2, /* the device; items that it cannot process fail */
} lade_where;

/* What lade_explain() says about an implementation. */
typedef struct lade_candidate {
	size_t stage; /* of the spec */
	const char *implementation;
	lade_kind place;
	int priority;
	double cost; /* nanoseconds for the whole call; negative if it refuses */
	bool chosen;
	char reason[96]; /* why, or why not */
} lade_candidate;

/* Zero-initialise, set struct_size, then the fields you need; or lade_batch_options_init(). */
typedef struct lade_batch_options {
	size_t struct_size;
	unsigned threads;        /* at most this many; 0: the engine's */
	uint32_t flags;          /* LADE_BATCH_... */
	const lade_dict *dict;   /* for the codec stages that take one */
	lade_error *item_errors; /* one for each item, filled in for those that fail; or NULL */
	/*
	 * Spans on devices are read and written after the work that was enqueued on this stream
	 * before.  The call waits for its own work.  NULL: the default stream.
	 */
	lade_stream stream;
	lade_where where;
	/* The device for items on the host: always with LADE_WHERE_DEVICE; with LADE_WHERE_AUTO for
	 * items that are in pinned memory on both sides. */
	int32_t device;
	/* sizeof of the structs in the call's arrays; 0: as in 0.2.0. */
	size_t item_size, segment_size, output_size, result_size, candidate_size;
	lade_cancel *cancel; /* ends the call early; or NULL */
	/*
	 * Allocators for what this call allocates and frees again, by kind; NULL: the engine's.
	 * With one, the call keeps nothing for the next: it makes and frees its codec contexts.
	 */
	const lade_allocator *allocators[LADE_KIND_COUNT];
} lade_batch_options;

/* Zeroes the options and sets all struct sizes to those of these headers. */
static inline void lade_batch_options_init(lade_batch_options *options)
{
	memset(options, 0, sizeof *options);
	options->struct_size = sizeof *options;
	options->item_size = sizeof(lade_item);
	options->segment_size = sizeof(lade_segment);
	options->output_size = sizeof(lade_item_output);
	options->result_size = sizeof(lade_result);
	options->candidate_size = sizeof(lade_candidate);
}

/*
 * Decodes or encodes 'count' items.
 *
 * The call tries every item: one that fails does not stop the others.  'results' has 'count'
 * entries or is NULL.  If an item fails, the contents of its destination are unspecified, and
 * nothing outside it is written.  Destinations must not overlap each other or any source;
 * the call does not check this.  A destination may be larger than the result.  For encoding,
 * lade_spec_bound() bytes always suffice.
 *
 * Returns: LADE_OK if all items are done; LADE_E_CANCELLED if the call was cancelled before that;
 *          else the status of the first item (by index) that failed, and '*err' says which and why
 * Fails:   LADE_E_ARG, LADE_E_NOSPACE, LADE_E_CORRUPT, LADE_E_TRUNCATED, LADE_E_CHECKSUM,
 *          LADE_E_RANGE, LADE_E_LIMIT, LADE_E_DICT, LADE_E_VALUE, LADE_E_UNSUPPORTED,
 *          LADE_E_NO_DEVICE, LADE_E_NOMEM
 * Threads: any number of callers per engine
 * Owns:    nothing; all spans stay the caller's
 */
LADE_API lade_status lade_decode_into(lade_engine *engine, const lade_spec *spec,
                                      const lade_item *items, size_t count,
                                      lade_result *results, const lade_batch_options *options,
                                      lade_error *err);
LADE_API lade_status lade_encode_into(lade_engine *engine, const lade_spec *spec,
                                      const lade_item *items, size_t count,
                                      lade_result *results, const lade_batch_options *options,
                                      lade_error *err);

/*
 * Stores the decoded size of item i in 'results[i].size' and decodes nothing.  The size comes from
 * the segments' 'decoded_size', or else from the format's header.  The status is
 * LADE_E_UNKNOWN_SIZE if the format does not store it (raw LZ4, raw Deflate).  Destinations and
 * ranges are ignored.
 *
 * For segments on a device the call first copies their headers to the host, after the work of the
 * options' stream.  Zstd and LZ4 frames are copied whole, since their headers have no fixed size.
 * lade_decoded_sizes_arrays_async() (async.h) reads sizes on the device instead.
 *
 * The call uses 'stream', 'item_errors' and the struct sizes of the options only.
 *
 * Returns: as lade_decode_into(); LADE_E_UNKNOWN_SIZE is a failure too
 */
LADE_API lade_status lade_decoded_sizes(lade_engine *engine, const lade_spec *spec,
                                        const lade_item *items, size_t count,
                                        lade_result *results,
                                        const lade_batch_options *options, lade_error *err);

/*
 * Calls fn(ctx, i, &error) once for every i below 'count', on the engine's threads and the
 * caller's.  Use it to run calls that take one thing each, such as opening files, in parallel.
 *
 * Every i is tried, even if others fail; lower ones start first.  'fn' may call the same engine,
 * and this function too: such calls use the threads that are free.  The call uses 'threads',
 * 'item_errors' ('count' entries) and 'cancel' of the options only.
 *
 * Returns: as lade_decode_into()
 * Fails:   LADE_E_ARG: engine or fn is NULL
 * Threads: any number of callers per engine; 'fn' runs on several threads at once
 */
LADE_API lade_status lade_engine_each(lade_engine *engine, size_t count,
                                      lade_status (*fn)(void *ctx, size_t index, lade_error *err),
                                      void *ctx, const lade_batch_options *options,
                                      lade_error *err);

/* ---- one chunk ----------------------------------------------------------------------- */

/*
 * Decode or encode one contiguous chunk.  '*dst_size' gets the bytes written, 0 on failure.  For
 * host memory pass lade_host_cspan(data, size) and lade_host_span(data, size).
 *
 * Fails, Threads, Owns: as lade_decode_into()
 */
LADE_API lade_status lade_decode(lade_engine *engine, const lade_spec *spec, lade_cspan src,
                                 lade_span dst, size_t *dst_size, lade_error *err);
LADE_API lade_status lade_encode(lade_engine *engine, const lade_spec *spec, lade_cspan src,
                                 lade_span dst, size_t *dst_size, lade_error *err);

/* ---- what the router would do -------------------------------------------------------- */

/* A call of lade_encode_into() or lade_decode_into(), to be explained.  Zero-initialise, set
 * struct_size, then the other fields. */
typedef struct lade_call {
	size_t struct_size;
	lade_direction direction;
	const lade_spec *spec; /* the items' own specs are ignored */
	const lade_item *items;
	size_t count;
	const lade_batch_options *options; /* NULL: all defaults */
} lade_call;

/*
 * Lists which implementations could run each stage of a call, their expected costs, and which one
 * the router picks.  Runs nothing.  'candidates' has room for 'cap' entries; '*count' gets their
 * number.  The strings live as long as the engine.
 *
 * Fails: LADE_E_ARG, LADE_E_NOSPACE ('*count' is the number needed), LADE_E_NO_DEVICE;
 *        LADE_E_UNSUPPORTED if no implementation can run a stage: the candidates up to that stage
 *        are listed, with the reasons
 */
LADE_API lade_status lade_explain(lade_engine *engine, const lade_call *call,
                                  lade_candidate *candidates, size_t cap, size_t *count,
                                  lade_error *err);

/*
 * Checks whether a device has kernels for such work, wherever its bytes are.  Runs nothing.  The
 * call uses direction, count, total, largest, has_dict and strict of 'work'; zeros mean small
 * chunks.
 *
 * Returns: LADE_OK if it has
 * Fails:   LADE_E_NO_DEVICE; LADE_E_UNSUPPORTED (the message names the stage without kernels);
 *          LADE_E_LIMIT (chunks are too large for kernels); LADE_E_NOT_FOUND, LADE_E_ARG
 */
LADE_API lade_status lade_device_takes(const lade_engine *engine, const lade_spec *spec,
                                       const lade_workload *work, int32_t device,
                                       lade_error *err);

#ifdef __cplusplus
}
#endif

#endif
