/*
 * zarr_write.h: makes and changes Zarr arrays and groups.
 *
 * This makes an array of floats in chunks of 256 x 256, compressed by Zstd:
 *
 *	const uint64_t shape[2] = {4096, 4096}, chunk[2] = {256, 256};
 *	lade_zarr_description description = {
 *		.struct_size = sizeof description, .kind = LADE_ZARR_ARRAY, .type = "float32",
 *		.ndim = 2, .shape = shape, .chunk_shape = chunk,
 *		.codecs = "[{\"name\":\"zstd\",\"configuration\":{\"level\":3}}]",
 *	};
 *	lade_zarr *made = NULL;
 *	lade_store *store;
 *	lade_status status = lade_store_directory_open("data.zarr", NULL, &store, &err);
 *	if (status == LADE_OK) {
 *		status = lade_zarr_create(store, "field", &description, NULL, &made, &err);
 *		lade_store_unref(store);
 *	}
 *
 * This writes rows 10 to 19 of it:
 *
 *	static float rows[10][4096];
 *	lade_zarr_index index = {.kind = LADE_ZARR_SLICE, .start = 10, .stop = 20};
 *	lade_zarr_selection selection = {.struct_size = sizeof selection, .axis_count = 1,
 *	                                 .axes = &index, .index_size = sizeof index};
 *	lade_zarr_source source = {.struct_size = sizeof source,
 *	                           .span = lade_host_cspan(rows, sizeof rows)};
 *	if (status == LADE_OK)
 *		status = lade_zarr_write(made, &selection, &source, NULL, NULL, &err);
 *	lade_zarr_unref(made);
 *
 * Each document is written by one atomic write.  A document that is changed is written only if
 * nobody else has changed it meanwhile; else the change is made again, on the new document.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ZARR_WRITE_H
#define LADE_ZARR_WRITE_H

#include <lade/zarr_read.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- creating --------------------------------------------------------------------------- */

/* The sizes of the chunks along an axis. */
typedef struct lade_zarr_edges {
	const uint64_t *sizes; /* their sum must reach the axis' size */
	size_t count;          /* 0: all chunks of the axis have the size in 'chunk_shape' */
} lade_zarr_edges;

/* What to make.  Zero-initialise, set struct_size and kind, then the fields you need. */
typedef struct lade_zarr_description {
	size_t struct_size;
	lade_zarr_kind kind;    /* LADE_ZARR_ARRAY or LADE_ZARR_GROUP; the rest is for arrays */
	uint32_t format;        /* 2 or 3; 0: 3 */
	const char *attributes; /* a JSON object; NULL: none */

	size_t ndim;
	const uint64_t *shape;       /* 'ndim' entries, as the next ones */
	const uint64_t *chunk_shape; /* NULL: one chunk has all elements */
	const lade_zarr_edges *edges; /* chunks of several sizes, format 3 only; or NULL */
	/* "float32" or "<f4"; or JSON: a struct's fields "[[\"x\",\"<i4\"]]", or an object as
	 * format 3 has it.  Format 3 gets the byte order from the codec "bytes". */
	const char *type;
	const char *fill; /* JSON; NULL: zero, false, "" or "NaT" */

	/*
	 * The codecs, as a JSON list.  Format 3: of a chunk, or of the chunks in a shard; without a
	 * codec from arrays to bytes, the type's is added.  Format 2: the filters, and last the
	 * compressor.  NULL: 'spec' says it.
	 */
	const char *codecs;
	/* Or a spec of zstd, gzip, zlib, blosc, shuffle, crc32c.  NULL too: zstd of level 0. */
	const lade_spec *spec;

	/* Makes each chunk a shard of chunks of this shape, format 3 only; NULL: no shards. */
	const uint64_t *inner_shape;
	bool index_first;         /* the index is at the start of a shard, not at the end */
	const char *index_codecs; /* a JSON list; NULL: bytes, crc32c */

	const char *const *dimension_names; /* format 3 only; each may be NULL */
	bool fortran;   /* a chunk's first axis is contiguous; format 3: the codec "transpose" */
	bool v2_keys;   /* format 3: keys as in format 2 */
	char separator; /* of keys, '/' or '.'; 0: '/' in format 3, '.' in format 2 and v2_keys */
} lade_zarr_description;

typedef enum lade_zarr_exists {
	LADE_ZARR_KEEP = 0,    /* LADE_E_CHANGED if an array or group is there */
	LADE_ZARR_REPLACE = 1, /* deletes it first, with all that is below it */
} lade_zarr_exists;

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_zarr_create_options {
	size_t struct_size;
	lade_zarr_exists exists;
	bool no_parents;         /* do not make groups above the path that do not exist */
	const lade_zarr_options *open; /* for opening it: chunk_store, codecs of yours; or NULL */
} lade_zarr_create_options;

/*
 * Makes an array or group at 'path', and opens it.  The same description gives the same bytes
 * everywhere; they are those that zarr-python 3.4.2 writes for the same arguments.
 *
 * It is made as LADE_WRITE_IF_ABSENT, so only one of several callers makes it.  Groups above it
 * come first.  No chunk is written.
 *
 * Fails: LADE_E_CHANGED (it exists, or values that would become its chunks do, or an array is above
 *        it); LADE_E_ARG, LADE_E_LIMIT, LADE_E_UNSUPPORTED (as lade_zarr_open() would, whose
 *        LADE_E_CORRUPT is LADE_E_ARG; the message has the JSON pointer in the document);
 *        LADE_E_CORRUPT (a group above it); LADE_E_NOMEM, and as lade_store_write().  To
 *        replace, the store must be able to list
 * Owns:  the caller, until lade_zarr_unref()
 */
LADE_API lade_status lade_zarr_create(lade_store *store, const char *path,
                                      const lade_zarr_description *description,
                                      const lade_zarr_create_options *options, lade_zarr **out,
                                      lade_error *err);

/* ---- changing --------------------------------------------------------------------------- */

/*
 * Below, 'out' may be NULL; else it gets the changed node, opened as 'node' was.  'node' itself
 * does not change.  Each call reads the document again: it does not matter how old 'node' is.
 *
 * Consolidated metadata does not change with its members: lade_zarr_consolidate() makes it anew.
 *
 * Fail: LADE_E_CHANGED (others change the document all the time), LADE_E_ARG, LADE_E_CORRUPT,
 *       LADE_E_NOT_FOUND, LADE_E_NOMEM, and as lade_store_read() and lade_store_write()
 */

/* Replaces the attributes by those of a JSON object. */
LADE_API lade_status lade_zarr_set_attributes(lade_zarr *node, const char *attributes,
                                              lade_zarr **out, lade_error *err);

/*
 * Changes the shape.  Chunks that have no elements in the new shape are deleted after the document
 * is written, unless the store cannot list.  Chunks at the new edge keep the elements outside,
 * which come back if the array grows again.  After the array became smaller, writes through 'array'
 * fail: open it again.
 *
 * Also fails: LADE_E_CORRUPT: edges whose sum does not reach the shape
 */
LADE_API lade_status lade_zarr_resize(lade_zarr *array, const uint64_t *shape, lade_zarr **out,
                                      lade_error *err);

/*
 * Collects the metadata of all members of a group, at any depth, into the group: in its zarr.json,
 * or in .zmetadata.  The store must be able to list.
 */
LADE_API lade_status lade_zarr_consolidate(lade_zarr *group, lade_zarr **out, lade_error *err);

/*
 * Deletes an array or group, and all values below its path.  The node's own document goes first, so
 * that readers find the whole node or none, then the documents below, then chunks.  If the call is
 * interrupted, chunks may be left: lade_zarr_create() with LADE_ZARR_REPLACE removes them.
 * Temporary files of killed writers go too; those of living ones stay.
 *
 * Fails: LADE_E_NOT_FOUND (no node is there); LADE_E_UNSUPPORTED (the store cannot list), and as
 *        lade_store_write()
 */
LADE_API lade_status lade_zarr_delete(lade_store *store, const char *path, lade_error *err);

/* ---- elements --------------------------------------------------------------------------- */

/* What is written: the elements of a selection's result, little-endian.  Zero-initialise, set
 * struct_size, then the fields you need. */
typedef struct lade_zarr_source {
	size_t struct_size;
	lade_cspan span;          /* of any place */
	size_t offset;            /* of element (0, 0, ...) in the span */
	const ptrdiff_t *strides; /* for each axis of the result, of any sign; 0 repeats an element;
	                             NULL: C order */
	/* STRING and BYTES: element i, in C order, has bytes [offsets[i], offsets[i + 1]) of the
	 * span, which is on the host; one more entry than elements. */
	const int64_t *offsets;
} lade_zarr_source;

enum {
	/* Chunks whose elements all have the fill value, bit by bit, are not stored: their values
	 * are deleted, and those in shards left out. */
	LADE_ZARR_SKIP_FILL = 1,
	/* Each value, and the document that an append changes, is on the disk when the call
	 * returns: lade_io_options.sync.  docs/store.md has what it costs. */
	LADE_ZARR_SYNC = 2,
	/* Shards have their chunks in Morton order (Z-order), as zarr-python writes them, so that
	 * boxes are near each other.  Without it, in C order. */
	LADE_ZARR_MORTON = 4,
};

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_zarr_write_options {
	size_t struct_size;
	lade_engine *engine; /* NULL: lade_engine_default() */
	unsigned threads;    /* at most this many; 0: the engine's */
	uint32_t flags;      /* LADE_ZARR_SKIP_FILL, _SYNC, _MORTON */
	lade_cancel *cancel; /* ends the call early; or NULL */
	lade_where where;    /* as in lade_batch_options, for a source on a device */
	int32_t device;
	lade_stream stream;  /* a source on a device is read after its work */
	const lade_allocator *allocators[LADE_KIND_COUNT]; /* by kind; NULL: the engine's */
} lade_zarr_write_options;

/* What a write did.  Zero-initialise and set struct_size. */
typedef struct lade_zarr_write_report {
	size_t struct_size;
	uint64_t value_count;    /* chunks and shards that were written */
	uint64_t delete_count;   /* that were deleted, or not written, since all is fill */
	uint64_t chunk_count;    /* chunks that were encoded; inner ones of shards */
	uint64_t partial_count;  /* of them, those whose old elements were decoded first */
	uint64_t conflict_count; /* times that others had changed a value meanwhile */
	uint64_t source_size;    /* bytes of elements of the source, each time they were encoded */
	uint64_t written_size;   /* encoded bytes that went to the store */
	uint64_t kept_size;      /* of them, inner chunks that were copied as they were stored */
	uint64_t read_size;      /* encoded bytes that were read */
	uint64_t ns;
} lade_zarr_write_report;

/*
 * Writes elements of a selection, and waits.  'selection' NULL: the whole array.  'options' and
 * 'report' may be NULL.
 *
 * If all elements of a chunk are written, it is encoded straight from the source.  Of other chunks,
 * and of shards, the old value is read, changed and replaced, if it still has the same version;
 * else this begins again.  In a shard only the chunks that are touched are encoded.  So any number
 * of threads and processes may write parts of one chunk, and none is lost.  In a store without
 * versions this holds for the threads of one process.  Elements of an edge chunk that are outside
 * the array stay as they are; in a new chunk they are fill.
 *
 * Each value is written whole or not at all, as lade_store_write() says.  With LADE_ZARR_SYNC, or a
 * store opened with LADE_DIRECTORY_SYNC, it is on the disk when the call returns.  If the call
 * fails, some chunks may have been written.
 *
 * The call asks the store for the version of the array's document, before the first value and after
 * the last one.  If it is not the version that the handle has seen last, the call opens the array
 * again, and fails with LADE_E_CHANGED if another layout or a smaller shape is there.  The second
 * time it also deletes the chunks that are outside the new shape.  So no chunk stays outside the
 * grid, whoever changes the shape meanwhile.
 *
 * A call holds one chunk for each thread, decoded and encoded; of shards the encoded ones.
 *
 * Fails:   as lade_zarr_selection_shape(); LADE_E_RANGE (the source is too small); LADE_E_CHANGED
 *          (others change a value all the time; another array is there, or it is smaller);
 *          LADE_E_NOT_FOUND (the array is gone); LADE_E_UNSUPPORTED (a codec; the message says
 *          which); LADE_E_CORRUPT (an old value, or offsets), and as lade_store_read(),
 *          lade_store_write() and lade_encode_into().  The message has the key
 * Threads: any number of callers
 * Owns:    nothing
 */
LADE_API lade_status lade_zarr_write(const lade_zarr *array, const lade_zarr_selection *selection,
                                     const lade_zarr_source *source,
                                     const lade_zarr_write_options *options,
                                     lade_zarr_write_report *report, lade_error *err);

/*
 * Makes an array longer along 'axis' by 'count', and writes 'source' there: all elements of the
 * array with an index from the old size on.  The shape is changed first, so several callers that
 * append at once get ranges of their own, in some order; until its data are written, a range reads
 * as fill.  '*at', unless NULL, gets the first new index.  'out' as above.
 *
 * Fails: as lade_zarr_resize() and lade_zarr_write()
 */
typedef struct lade_zarr_append {
	size_t struct_size;
	size_t axis;
	uint64_t count;
	const lade_zarr_source *source;
	const lade_zarr_write_options *options; /* or NULL */
} lade_zarr_append;
LADE_API lade_status lade_zarr_append_to(lade_zarr *array, const lade_zarr_append *append,
                                         uint64_t *at, lade_zarr **out, lade_error *err);

#ifdef __cplusplus
}
#endif

#endif
