/*
 * zarr_read.h: reads selections of Zarr arrays into memory that the caller chose.
 *
 * This reads rows 10 to 19, every second column, of an array of floats:
 *
 *	static float to[10][50];
 *	lade_store *store = NULL;
 *	lade_zarr *array = NULL;
 *	lade_zarr_selection *rows = NULL;
 *	lade_zarr_target target = {.struct_size = sizeof target,
 *	                           .span = lade_host_span(to, sizeof to)};
 *	if (lade_store_directory_open("data.zarr", NULL, &store, &err) ||
 *	    lade_zarr_open(store, "temperature", NULL, &array, &err) ||
 *	    lade_zarr_selection_parse(array, "10:20, :100:2", &rows, &err) ||
 *	    lade_zarr_read(array, rows, &target, NULL, NULL, &err))
 *		fprintf(stderr, "%s\n", err.message);
 *	lade_zarr_selection_free(rows);
 *	lade_zarr_unref(array);
 *	lade_store_unref(store);
 *
 * Elements land little-endian, whatever byte order the array is stored in.  docs/zarr.md describes
 * what is read and decoded for a selection.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ZARR_READ_H
#define LADE_ZARR_READ_H

#include <lade/batch.h>
#include <lade/zarr.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- selections ----------------------------------------------------------------------- */

typedef enum lade_zarr_index_kind {
	LADE_ZARR_ALL = 0,   /* the whole axis */
	LADE_ZARR_SLICE = 1, /* start, stop and step, by numpy's rules */
	LADE_ZARR_AT = 2,    /* the one index 'start'; the result lacks the axis */
	LADE_ZARR_LIST = 3,  /* the indices of 'list', in their order, also repeated */
	LADE_ZARR_MASK = 4,  /* the indices whose byte of 'mask' is not 0 */
} lade_zarr_index_kind;

/* A start or stop that is left out, as in "[:5]". */
#define LADE_ZARR_OPEN INT64_MIN

/* What is selected along one axis.  Negative indices count from the axis' end. */
typedef struct lade_zarr_index {
	lade_zarr_index_kind kind;
	int64_t start, stop, step; /* step 0: 1 */
	const int64_t *list;
	const uint8_t *mask; /* one byte for each element of the axis */
	size_t count;        /* entries of 'list' or 'mask' */
	/* LADE_ZARR_POINTS only: the shape of 'list'.  shape_ndim 0: 'count' in a row. */
	size_t shape_ndim;
	const uint64_t *shape;
} lade_zarr_index;

typedef enum lade_zarr_mode {
	/* Each axis is selected by itself: basic slices, and numpy's ix_(). */
	LADE_ZARR_ORTHOGONAL = 0,
	/* Each axis has a LIST or AT, and the lists are broadcast to one shape, as numpy does: the
	 * result has that shape. */
	LADE_ZARR_POINTS = 1,
	/* Indices count chunks instead of elements; an axis is kept by AT. */
	LADE_ZARR_BLOCKS = 2,
	/* 'mask' has one byte for each element of the array, in C order; the result has one
	 * axis. */
	LADE_ZARR_WHERE = 3,
} lade_zarr_mode;

/* Zero-initialise, set struct_size, then the fields you need; zeros select the whole array. */
typedef struct lade_zarr_selection {
	size_t struct_size;
	lade_zarr_mode mode;
	size_t axis_count;           /* at most the array's; the other axes are selected whole */
	const lade_zarr_index *axes;
	size_t index_size;           /* sizeof(lade_zarr_index); 0: as first released */
	const uint8_t *mask;         /* LADE_ZARR_WHERE */
	size_t mask_size;
	const char *field;           /* of a struct: "a", or "a.b" for a struct in a struct */
} lade_zarr_selection;

/*
 * Reads a selection of text, such as "[0:10, :, 5]", "[..., ::-1]" or "[[1, 3, 3], 2:]"; brackets
 * around all of it may be left out.  The result is one block of memory.
 *
 * Fails: LADE_E_ARG (err->offset is the character), LADE_E_NOMEM
 * Owns:  the caller, until lade_zarr_selection_free(), for which NULL is fine
 */
LADE_API lade_status lade_zarr_selection_parse(const lade_zarr *array, const char *text,
                                               lade_zarr_selection **out, lade_error *err);
LADE_API void lade_zarr_selection_free(lade_zarr_selection *selection);

/* The result of a selection.  Zero-initialise and set struct_size. */
typedef struct lade_zarr_shape {
	size_t struct_size;
	size_t ndim;
	uint64_t shape[LADE_DIMS_MAX];
	uint64_t count;       /* elements */
	size_t elem_size;     /* bytes of an element; 0: of any length */
	uint64_t size;        /* bytes of all elements */
	lade_zarr_type type;  /* of the elements, or of the field */
} lade_zarr_shape;

/*
 * The shape of what a selection reads.  'selection' NULL: the whole array.
 *
 * Fails: LADE_E_ARG (a selection that cannot be, or a group), LADE_E_RANGE (an index beyond its
 *        axis; the message has both numbers), LADE_E_NOT_FOUND (the field), LADE_E_LIMIT (more than
 *        2^62 bytes), LADE_E_NOMEM
 */
LADE_API lade_status lade_zarr_selection_shape(const lade_zarr *array,
                                               const lade_zarr_selection *selection,
                                               lade_zarr_shape *out, lade_error *err);

/* ---- where the result goes ------------------------------------------------------------- */

/* A chunk whose place the caller chooses. */
typedef struct lade_zarr_box {
	size_t struct_size;
	size_t ndim;           /* of the result */
	const uint64_t *start; /* its first element along each axis of the result */
	const uint64_t *count; /* its elements along each axis */
	const char *key;       /* of the chunk or its shard */
} lade_zarr_box;

/* Where a box goes: element (0, 0, ...) of it is at 'offset' of the span. */
typedef struct lade_zarr_place {
	size_t struct_size;
	lade_span span;
	size_t offset;
	ptrdiff_t strides[LADE_DIMS_MAX]; /* bytes from one index to the next, of any sign */
} lade_zarr_place;

/*
 * Where the result goes: one span for all of it, or a callback that is asked for each chunk.
 * Zero-initialise, set struct_size, then the fields you need.
 */
typedef struct lade_zarr_target {
	size_t struct_size;
	lade_span span;
	size_t offset;            /* of element (0, 0, ...) in the span */
	const ptrdiff_t *strides; /* for each axis of the result, of any sign; NULL: C order */
	/*
	 * Or a callback, for selections without lists, masks and points.  It is called for each
	 * chunk that is decoded or filled, from several threads at once.  'out' comes with
	 * struct_size set and the box in C order: most callbacks set out->span only.
	 */
	lade_status (*place)(void *ctx, const lade_zarr_box *box, lade_zarr_place *out,
	                     lade_error *err);
	void *ctx;
} lade_zarr_target;

/* ---- reading ----------------------------------------------------------------------------- */

enum {
	/* Removes checksums of chunks and shard indexes without verifying them. */
	LADE_ZARR_IGNORE_CHECKSUMS = 1,
	/* A missing chunk fails with LADE_E_NOT_FOUND instead of giving the fill value. */
	LADE_ZARR_NEED_CHUNKS = 2,
};

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_zarr_read_options {
	size_t struct_size;
	lade_engine *engine; /* NULL: lade_engine_default() */
	unsigned threads;    /* at most this many; 0: the engine's */
	uint32_t flags;      /* LADE_ZARR_... */
	lade_cancel *cancel; /* ends the call early; or NULL */
	lade_where where;    /* as in lade_batch_options */
	int32_t device;
	lade_stream stream;  /* spans on devices are written after its work */
	const lade_allocator *allocators[LADE_KIND_COUNT]; /* by kind; NULL: the engine's */
	/* Bytes of encoded chunks that are on their way, for stores that are not local and for
	 * spans on devices; 0: 64 MiB, to devices 128 or 256.  The engine keeps it
	 * for the next call (lade_engine_trim()).  One chunk for each thread is always allowed. */
	uint64_t memory;
	uint64_t device_budget; /* of lade_zarr_read_new(); 0: no limit */
	/* The most bytes that a chunk of strings or bytes, or its shard, may decode to, else
	 * LADE_E_LIMIT.  0: 256 times its encoded bytes, at least 64 MiB and at most 4 GiB. */
	uint64_t text_max;
} lade_zarr_read_options;

/* What a read did.  Zero-initialise and set struct_size. */
typedef struct lade_zarr_report {
	size_t struct_size;
	uint64_t chunk_count;   /* chunks that were decoded; inner ones of shards */
	uint64_t missing_count; /* chunks that were filled */
	uint64_t index_count;   /* shard indexes that were read */
	uint64_t direct_count;  /* chunks that were decoded straight to their place, as a whole */
	uint64_t decoded_size;  /* bytes of the chunks that were decoded, or of the parts read */
	uint64_t written_size;  /* bytes that chunks gave to the result */
	uint64_t filled_size;   /* bytes that the fill value gave to it */
	uint64_t copied_size;   /* of written_size: bytes that were decoded elsewhere first */
	/* As in lade_store_report, of all calls to the store. */
	uint64_t request_count, retry_count, wanted_size, moved_size;
	uint64_t ns;
} lade_zarr_report;

/*
 * Reads a selection into a target, and waits.  'selection' NULL: the whole array.  'options' and
 * 'report' may be NULL.
 *
 * Each thread reads and decodes a chunk at a time.  Chunks that are whole and contiguous in the
 * target are decoded straight into it; for others the elements are placed while they are decoded.
 * Missing chunks are filled in place.  No chunk is decoded twice.  Of chunks without codecs the
 * call reads only the bytes that it needs, straight to their places if the target has their order.
 *
 * All ranges of a chunk or a shard are of one version.  If it changes meanwhile, it is read once
 * more; if it changes again, the call fails.
 *
 * Fails:   as lade_zarr_selection_shape(); LADE_E_RANGE (the target is too small),
 *          LADE_E_UNSUPPORTED (a codec: the message has its name and why),
 *          LADE_E_CHANGED, LADE_E_NOT_FOUND (only with LADE_ZARR_NEED_CHUNKS), and as
 *          lade_store_read() and lade_decode_into().  The message has the key and the chunk's
 *          coordinates.  Other chunks may have been written
 * Threads: any number of callers
 * Owns:    nothing
 */
LADE_API lade_status lade_zarr_read(const lade_zarr *array, const lade_zarr_selection *selection,
                                    const lade_zarr_target *target,
                                    const lade_zarr_read_options *options,
                                    lade_zarr_report *report, lade_error *err);

/* ---- plans ------------------------------------------------------------------------------- */

/*
 * A read that is checked and ready to run; it can be asked first what it will do.  A plan is for
 * one thread at a time.  It references the array.
 */
typedef struct lade_zarr_plan lade_zarr_plan;

/* What running a plan does, as far as the metadata says.  Zero-initialise and set struct_size. */
typedef struct lade_zarr_plan_info {
	size_t struct_size;
	uint64_t chunk_count;  /* that have elements of the selection; inner ones of shards */
	uint64_t shard_count;  /* shards that have these: their indexes are read first */
	/* Ranges of the store, at most: one a chunk, one an index; more of chunks in parts. */
	uint64_t range_count;
	uint64_t direct_count; /* chunks that are decoded straight to their place, if they exist */
	uint64_t result_size;  /* bytes of the result: each is written once */
	uint64_t decoded_size; /* bytes of all those chunks */
	/* Bytes that come to a device, at most: encoded or decoded, where the router decodes. */
	uint64_t device_size;
	uint64_t host_memory;   /* bytes in use at once beside the result, at most: on the host */
	uint64_t pinned_memory; /* of them, pinned */
	bool local;             /* each thread reads a chunk and decodes it; else waves are read */
	char text[400];         /* the same in words */
	/* Chunks have no codecs: only the bytes that the selection wants are read of them, and
	 * gaps of up to 8 KiB between these. */
	bool in_parts;
} lade_zarr_plan_info;

/*
 * lade_zarr_plan_new() is lade_zarr_read() up to the first chunk.  The target's memory, and what
 * the options point to, must live as long as the plan; the selection need not.
 * lade_zarr_plan_run() reads.  It may be called again, for bytes that have changed since.
 *
 * Fails: as lade_zarr_read()
 */
LADE_API lade_status lade_zarr_plan_new(const lade_zarr *array,
                                        const lade_zarr_selection *selection,
                                        const lade_zarr_target *target,
                                        const lade_zarr_read_options *options,
                                        lade_zarr_plan **out, lade_error *err);
LADE_API lade_status lade_zarr_plan_get_info(const lade_zarr_plan *plan,
                                             lade_zarr_plan_info *info, lade_error *err);
LADE_API lade_status lade_zarr_plan_run(lade_zarr_plan *plan, lade_zarr_report *report,
                                        lade_error *err);
LADE_API void lade_zarr_plan_free(lade_zarr_plan *plan); /* NULL is fine */

/*
 * Runs a plan on a thread of its own and returns at once.  'done' is called once, by that thread,
 * as the last thing: it may free the plan.  Nobody else uses the plan until then.  The poll
 * function of options.cancel is not called: set the token instead.
 *
 * Work on devices is ordered by options.stream and done when 'done' is called.
 *
 * Fails: LADE_E_NOMEM, LADE_E_ARG; then 'done' is not called
 */
typedef void lade_zarr_done(void *ctx, lade_status status, const lade_zarr_report *report,
                            const lade_error *err);
LADE_API lade_status lade_zarr_plan_start(lade_zarr_plan *plan, lade_zarr_done *done, void *ctx,
                                          lade_error *err);

/* ---- memory of the library's --------------------------------------------------------------- */

typedef struct lade_array lade_array; /* array.h */

/*
 * Reads into memory that the call allocates on 'place', in C order without gaps.  A result for a
 * device goes to pinned memory if it has more than options.device_budget bytes, or if the device
 * has no room: lade_array_span(*out).place says where it is.
 *
 * Fails: as lade_zarr_read() and lade_array_new()
 * Owns:  the caller gets one reference
 */
LADE_API lade_status lade_zarr_read_new(const lade_zarr *array,
                                        const lade_zarr_selection *selection, lade_place place,
                                        const lade_zarr_read_options *options, lade_array **out,
                                        lade_error *err);

/* ---- elements of any length ---------------------------------------------------------------- */

/*
 * Types LADE_ZARR_STRING and LADE_ZARR_BYTES.  Make a plan, without a target; run it; then ask for
 * the sizes and fill two spans.  The result is as Arrow's: element i has the bytes
 * [offsets[i], offsets[i + 1]) of the data; elements are in C order of the result's shape.
 *
 * lade_zarr_plan_texts() stores the number of elements and of their bytes.
 * lade_zarr_plan_fill() stores count + 1 offsets of 8 bytes, int64 and little-endian, and the data.
 * Nothing is read again.
 *
 * Fails: LADE_E_STATE (the plan was not run, or it failed), LADE_E_ARG (elements of a fixed size),
 *        LADE_E_NOSPACE, LADE_E_NOMEM, and as lade_copy().  Running fails with LADE_E_CORRUPT if a
 *        chunk's lengths pass its end
 */
LADE_API lade_status lade_zarr_plan_texts(const lade_zarr_plan *plan, uint64_t *count,
                                          uint64_t *size, lade_error *err);
LADE_API lade_status lade_zarr_plan_fill(const lade_zarr_plan *plan, lade_span offsets,
                                         lade_span data, lade_error *err);

#ifdef __cplusplus
}
#endif

#endif
