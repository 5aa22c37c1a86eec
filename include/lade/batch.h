/*
 * batch.h: the engine; it decodes and encodes N items at a time into memory that the caller
 * chose.
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

/* Zero-initialise, set struct_size, then what is wanted. */
typedef struct lade_engine_options {
	size_t struct_size; /* sizeof(lade_engine_options) */
	unsigned threads;   /* threads a call may use, the caller's included; 0: lade_cpu_count() */
	lade_cpu cpu;       /* LADE_CPU_AUTO, or a lower level to force */
	const lade_allocator *allocators[LADE_KIND_COUNT]; /* NULL: the default of the kind */
} lade_engine_options;

/*
 * An engine owns threads, scratch memory and codec contexts.  Threads start at the first call
 * that has work for them and end in lade_engine_free(); a forked child gets fresh ones.
 * Threads: any number of threads may call one engine at once.
 * Owns:    the caller; not to be freed while a call runs.  NULL options: all defaults.
 */
LADE_API lade_status lade_engine_new(const lade_engine_options *options, lade_engine **out,
                                     lade_error *err);
LADE_API void lade_engine_free(lade_engine *engine); /* NULL is fine */

/*
 * Gives back what an engine keeps for its next calls and no call uses: scratch memory, and of
 * devices pinned memory (up to 256 MiB for each call that ran at the same time), streams and
 * events.  It waits for enqueued calls whose tables are in such memory.  What a device's pool holds
 * in reserve is lade_device_trim()'s.  NULL is fine.
 */
LADE_API void lade_engine_trim(lade_engine *engine);

/* The process's shared engine, made with the defaults at the first call; NULL: out of memory.
 * Not to be freed. */
LADE_API lade_engine *lade_engine_default(void);

/* What it was made with: the threads of a call, and the instruction set it uses at most. */
LADE_API unsigned lade_engine_threads(const lade_engine *engine);
LADE_API lade_cpu lade_engine_cpu(const lade_engine *engine);

/* ---- items -------------------------------------------------------------------------- */

/*
 * A program compiled for one version may run with another.  Options begin with their size: fields
 * that an older program lacks count as zero, and a newer program's are taken where they are zero.
 * The structs of arrays have their size in the call's options; 0 stands for that of 0.2.0.  Later
 * versions add fields at the ends of structs, which are off where they are zero.
 */

/* A piece of a source.  Encoded pieces are decoded one after the other, each on its own. */
typedef struct lade_segment {
	const void *data;
	size_t size; /* bytes */
	lade_place place;
	size_t decoded_size; /* what it decodes to, if the caller knows; 0: not known */
} lade_segment;

/* One of several destinations of a chunk. */
typedef struct lade_item_output {
	lade_span dst;
	const lade_layout *layout; /* NULL: contiguous from the span's start */
} lade_item_output;

/*
 * One chunk's work.  Zero-initialise, then set what is wanted.
 *
 * Decoding: each segment of 'src' is decoded with the spec, and the results follow one
 * another in 'dst'.  Encoding: the segments are joined and encoded as one chunk.
 *
 * Layout: 'layout' says where the elements go in 'dst' when decoding, or where they are in the one
 * segment of 'src' when encoding (layout.h).  NULL: contiguous.  The chunk must have exactly the
 * bytes of the layout's shape.  A box of no elements is an item without bytes: its source is not
 * looked at.
 *
 * Outputs, decoding only: with 'output_count' > 0 the chunk is decoded once and goes to each of
 * 'outputs'; 'dst' and 'layout' are not set then.  The item has one status, and its size is the
 * sum over the outputs.
 *
 * Tail, decoding only: 'tail' is applied once to the joined results of the segments, as the last
 * step of decoding; its stages stand before those of the spec.  A range, the layout and the outputs
 * are those of its result.
 *
 * Range, decoding only: bytes [range_off, range_off + range_size) of the result go to 'dst', which
 * has no layout; range_size 0 means all from range_off on.  A codec that cannot decode just the
 * range wants scratch for the whole segment: on the data's own word no more than 1 GiB or four
 * times what the range reaches to (else LADE_E_LIMIT); with the segment's 'decoded_size', that
 * much.
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
	/* Bytes of the result in 'dst', gaps not counted; what lade_decoded_sizes() found.  0 on
	 * failure. */
	size_t size;
} lade_result;

enum {
	/* Checksum stages are not verified when decoding (their bytes are still taken off). */
	LADE_BATCH_IGNORE_CHECKSUMS = 1,
	/*
	 * LZ4 and Snappy are decoded on the host by the library's own decoders, which take just
	 * what the formats' texts allow and agree with the kernels on every verdict; without it
	 * by liblz4 and libsnappy, which differ on some invalid streams (docs/verdicts.md lists
	 * how).  Deflate, zlib and gzip are decoded by zlib, which refuses some invalid streams
	 * that libdeflate takes, at half its speed.  LZ4 frames and Blosc are the libraries' with
	 * it, too.
	 */
	LADE_BATCH_STRICT = 2,
};

/* Which processor does the work. */
typedef enum lade_where {
	LADE_WHERE_AUTO = 0,   /* whichever is expected to be done first; lade_explain() tells */
	LADE_WHERE_HOST = 1,   /* the host's; what lies on a device is copied to it and back */
	LADE_WHERE_DEVICE = 2, /* the device's; items that it cannot do fail */
} lade_where;

/* What lade_explain() says of an implementation. */
typedef struct lade_candidate {
	size_t stage; /* of the spec */
	const char *implementation;
	lade_kind place;
	int priority;
	double cost; /* nanoseconds for the whole call; negative when it refuses */
	bool chosen;
	char reason[96]; /* why, or why not */
} lade_candidate;

/* Zero-initialise, set struct_size, then what is wanted. */
typedef struct lade_batch_options {
	size_t struct_size;
	unsigned threads;        /* at most this many; 0: the engine's */
	uint32_t flags;          /* LADE_BATCH_... */
	const lade_dict *dict;   /* for the codec stages that take one */
	lade_error *item_errors; /* one for each item, filled for those that fail; or NULL */
	/*
	 * Orders the work with a device's: what was enqueued on it before is done before a span
	 * on the device is touched.  The call waits for its own part of it.  NULL: the default
	 * stream.
	 */
	lade_stream stream;
	lade_where where;
	/* That works for items which lie on the host: with LADE_WHERE_DEVICE, and with
	 * LADE_WHERE_AUTO for those in pinned memory on both sides. */
	int32_t device;
	/* sizeof of the structs in the call's arrays; 0: as in 0.2.0. */
	size_t item_size, segment_size, output_size, result_size, candidate_size;
	lade_cancel *cancel; /* ends the call early; or NULL */
	/*
	 * For what this call allocates and gives back before it returns, by kind; NULL: the
	 * engine's.  The call then keeps nothing for the next one: codecs' contexts are made and
	 * freed in each.
	 */
	const lade_allocator *allocators[LADE_KIND_COUNT];
} lade_batch_options;

/* Zeroes options and sets all sizes to those of these headers. */
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
 * lade_decode_into() decodes 'count' items, lade_encode_into() encodes them.
 *
 * Every item is tried, whatever becomes of the others.  'results', if not NULL, has 'count'
 * entries.  A failed item's destination is unspecified; nothing outside it is written.
 * Destinations of different items must not overlap, nor a destination and any source.  A
 * destination may be larger than its result.  For encoding, lade_spec_bound() bytes always suffice.
 *
 * Returns: LADE_OK when all items are done; LADE_E_CANCELLED when the call was cancelled before
 *          that; else the status of the first item (by index) that failed, with '*err' saying
 *          which and why
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
 * As lade_decode_into(), but decodes nothing: 'results[i].size' is what item i decodes to, by its
 * format's header, or by its segments' 'decoded_size' where given.  The status is
 * LADE_E_UNKNOWN_SIZE where the format does not tell (raw LZ4, raw Deflate).  The items'
 * destinations and ranges are not looked at.  Of a segment on a device the header is brought to
 * the host first (all of it where that has no bound: Zstd, LZ4 frames), behind the work of the
 * options' stream: lade_decoded_sizes_arrays_async() (async.h) reads there what lies there.
 * Of the options, the stream, 'item_errors' and the sizes are looked at; NULL: all defaults.
 * Returns: as lade_decode_into(); LADE_E_UNKNOWN_SIZE is a failure too
 */
LADE_API lade_status lade_decoded_sizes(lade_engine *engine, const lade_spec *spec,
                                        const lade_item *items, size_t count,
                                        lade_result *results,
                                        const lade_batch_options *options, lade_error *err);

/*
 * Calls fn(ctx, i, &error) once for every i below 'count', on the engine's threads, the caller's
 * included: for calls that take one thing at a time, as those of a list of frames.  Every i is
 * tried, whatever becomes of the others; lower ones begin earlier.  'fn' may call the same engine,
 * this function too; what it spreads goes to threads that are free.  Of the options 'threads',
 * 'item_errors' ('count' of them, filled for those that fail) and 'cancel' are looked at.
 * Returns: as lade_decode_into()
 * Fails:   LADE_E_ARG: engine or fn is NULL
 * Threads: any number of callers per engine; 'fn' runs on several at once
 */
LADE_API lade_status lade_engine_each(lade_engine *engine, size_t count,
                                      lade_status (*fn)(void *ctx, size_t index, lade_error *err),
                                      void *ctx, const lade_batch_options *options,
                                      lade_error *err);

/* ---- one chunk ----------------------------------------------------------------------- */

/* Shells over the calls above for one contiguous item; '*dst_size' is what was written.  In host
 * memory: lade_host_cspan(data, size), lade_host_span(data, size). */
LADE_API lade_status lade_decode(lade_engine *engine, const lade_spec *spec, lade_cspan src,
                                 lade_span dst, size_t *dst_size, lade_error *err);
LADE_API lade_status lade_encode(lade_engine *engine, const lade_spec *spec, lade_cspan src,
                                 lade_span dst, size_t *dst_size, lade_error *err);

/* ---- what the router would do -------------------------------------------------------- */

/* A call of lade_encode_into() or lade_decode_into().  Zero-initialise, set struct_size, then what
 * is wanted. */
typedef struct lade_call {
	size_t struct_size;
	lade_direction direction;
	const lade_spec *spec; /* the items' own are not looked at */
	const lade_item *items;
	size_t count;
	const lade_batch_options *options; /* NULL: all defaults */
} lade_call;

/*
 * Which implementations could run each stage of a call, what they would cost, and which the router
 * takes.  Runs nothing.  'candidates' has room for 'cap'; '*count' gets how many there are.  The
 * candidates' strings live as long as the engine.
 * Fails: LADE_E_ARG, LADE_E_NOSPACE ('*count' says how many), LADE_E_NO_DEVICE;
 *        LADE_E_UNSUPPORTED when a stage has no implementation that can: the candidates up to that
 *        stage are listed, with the reasons why they were refused
 */
LADE_API lade_status lade_explain(lade_engine *engine, const lade_call *call,
                                  lade_candidate *candidates, size_t cap, size_t *count,
                                  lade_error *err);

#ifdef __cplusplus
}
#endif

#endif
