/*
 * zarr.h: Zarr arrays and groups in a store, formats 2 and 3: opens them and describes them.
 *
 * Opening reads the metadata, at most a few small documents, and touches no chunk.  The description
 * says everything that is needed to find and decode chunks: the grid, the keys, the element type,
 * the fill value, and the codecs as specs (spec.h):
 *
 *	lade_store *store;
 *	lade_zarr *node = NULL;
 *	char key[LADE_KEY_MAX + 1];
 *	uint64_t index[2] = {3, 0};
 *	lade_status status = lade_store_directory_open("data.zarr", NULL, &store, &err);
 *	if (status == LADE_OK) {
 *		status = lade_zarr_open(store, "temperature", NULL, &node, &err);
 *		lade_store_unref(store);
 *	}
 *	const lade_zarr_array *array = node ? lade_zarr_as_array(node) : NULL;
 *	if (array && array->ndim == 2 && !lade_zarr_chunk_key(node, index, key, &err))
 *		printf("%s elements, chunk (3, 0) is in %s\n", array->type.name, key);
 *	lade_zarr_unref(node);
 *
 * docs/zarr.md says which documents are accepted, and what the library does not do.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ZARR_H
#define LADE_ZARR_H

#include <lade/layout.h>
#include <lade/spec.h>
#include <lade/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- element types ------------------------------------------------------------------ */

typedef enum lade_zarr_class {
	LADE_ZARR_BOOL = 1,
	LADE_ZARR_INT,
	LADE_ZARR_UINT,
	LADE_ZARR_FLOAT,   /* IEEE 754: 2, 4 or 8 bytes */
	LADE_ZARR_FLOAT_X, /* other floats: bfloat16 and those of 8 bits; 'name' says which */
	LADE_ZARR_COMPLEX, /* two floats: real, imaginary */
	LADE_ZARR_RAW,     /* 'size' bytes without a meaning */
	LADE_ZARR_CHARS,   /* bytes, filled up with zeros at the end */
	LADE_ZARR_UTF32,   /* characters of 4 bytes, filled up with zeros at the end */
	LADE_ZARR_DATETIME, /* int64: a number of units since 1970; INT64_MIN: not a time */
	LADE_ZARR_TIMEDELTA, /* int64: a number of units; INT64_MIN: not a time */
	LADE_ZARR_STRUCT,  /* fields one after the other, without gaps */
	LADE_ZARR_STRING,  /* UTF-8 of any length */
	LADE_ZARR_BYTES,   /* bytes of any length */
} lade_zarr_class;

typedef struct lade_zarr_field lade_zarr_field;

/* An element type. */
typedef struct lade_zarr_type {
	lade_zarr_class cls;
	lade_dtype dtype;     /* the same type in dtype.h; LADE_DTYPE_NONE: not there */
	bool big;             /* stored big-endian; fields say it themselves */
	uint64_t size;        /* bytes of an element; 0: of any length */
	size_t swap_size;     /* bytes of a number in it, 4 for complex64; 0: no byte order */
	const char *name;     /* "float32": the name in format 3, also for format 2 */
	const char *unit;     /* times: "ns", or "generic" */
	uint32_t unit_count;  /* times: units in a step */
	size_t field_count;
	const lade_zarr_field *fields;
} lade_zarr_type;

struct lade_zarr_field {
	const char *name;
	uint64_t off; /* bytes from the start of the element */
	lade_zarr_type type;
};

/* ---- the grid ------------------------------------------------------------------------ */

/* Chunks of one length that follow each other along an axis. */
typedef struct lade_zarr_run {
	uint64_t length, count;
	uint64_t first; /* the index of the first chunk */
	uint64_t start; /* the index of its first element */
} lade_zarr_run;

typedef struct lade_zarr_axis {
	const char *name;     /* NULL: it has none */
	uint64_t size;        /* elements of the array */
	uint64_t chunk_size;  /* elements of each chunk; 0: see 'runs' */
	uint64_t chunk_count; /* chunks that have elements of the array */
	size_t run_count;
	const lade_zarr_run *runs; /* may go beyond 'size' */
} lade_zarr_axis;

/* ---- codecs -------------------------------------------------------------------------- */

/* What is in front of the bytes that a step's spec decodes. */
typedef enum lade_zarr_header {
	LADE_ZARR_HEADER_NONE = 0,
	LADE_ZARR_HEADER_SIZE = 1, /* numcodecs' LZ4: the decoded size, 4 bytes, little-endian */
	/* n5_default: a mode of 0 and the number of axes, 2 bytes each, then for each axis of the
	 * array 4 bytes, all big-endian: the shape of the chunk as it is stored, which may be
	 * smaller or larger than the grid's. */
	LADE_ZARR_HEADER_N5 = 2,
	/* conditional: bit i, the lowest first, says whether step i of the 'mask_count' before this
	 * one ran; others are 0.  This one only has the header: its spec is "copy". */
	LADE_ZARR_HEADER_MASK = 3,
} lade_zarr_header;

/*
 * A part of a chain that runs as a whole.  Most chains have one step.
 *
 * 'spec' NULL: this version cannot run the codec; the array can be opened and described.
 */
typedef struct lade_zarr_step {
	const lade_spec *spec;
	size_t header_size;        /* bytes in front of what 'spec' decodes */
	lade_zarr_header header;   /* what they are */
	uint32_t mask_count;       /* of LADE_ZARR_HEADER_MASK: at most 31 steps */
	const char *name;          /* without a spec: the codec */
	const char *configuration; /* without a spec: its configuration, JSON text */
	const char *why;           /* without a spec: why it cannot run */
} lade_zarr_step;

typedef struct lade_zarr_shard lade_zarr_shard;

/*
 * How a chunk is stored.  To encode: transpose by 'order', reverse bytes by 'swap_size', run the
 * steps from first to last.  A shard is written before its first step: filters that a document has
 * before a shard are steps of its chunks.  Order and swap_size are those of a lade_layout.
 */
typedef struct lade_zarr_chain {
	const size_t *order; /* for each axis of the array, the axis of the stored chunk that it
	                        is; NULL: the same */
	size_t swap_size;    /* 0: the bytes are little-endian, or have no order, or fields have */
	size_t step_count;
	const lade_zarr_step *steps;
	size_t array_step_count; /* always 0 */
	const lade_zarr_shard *shard; /* NULL: an ordinary chunk */
} lade_zarr_chain;

/* A chunk that holds smaller ones, and an index of them. */
struct lade_zarr_shard {
	const uint64_t *chunk_shape; /* of the inner chunks, in the axes of the stored shard */
	bool index_first;            /* the index is at the start, not at the end */
	size_t index_extra;          /* bytes of the index beside 16 for each inner chunk */
	lade_zarr_chain chunks, index;
};

/* What a codec turns into what. */
typedef enum lade_zarr_codec_kind {
	LADE_ZARR_ARRAY_ARRAY = 0,
	LADE_ZARR_ARRAY_BYTES = 1,
	LADE_ZARR_BYTES_BYTES = 2,
} lade_zarr_codec_kind;

/*
 * A codec that the library does not run, for the caller's function 'codec' (lade_zarr_options).
 * It fills in 'spec': the stages, of algorithms that options.engine knows (codec.h), as
 *
 *	snprintf(codec->spec, sizeof codec->spec, "pco(<f4,level=8)");
 *
 * Their decoded side is the elements of the chunk in C order, little-endian, behind a transposition
 * (ARRAY_ARRAY, ARRAY_BYTES), or the bytes of the codec before.
 */
typedef struct lade_zarr_codec {
	size_t struct_size;
	const char *name;            /* "zfp", "numcodecs.pcodec"; in format 2 its id: "pcodec" */
	const char *configuration;   /* JSON text; in format 2 the whole object, with "id" */
	const lade_zarr_type *type;  /* of the elements that it gets */
	size_t ndim;                 /* of the chunk that it gets */
	const uint64_t *chunk_shape; /* 0 for an axis whose chunks differ */
	lade_zarr_codec_kind
		kind;       /* format 3: set it, if it is not a codec that docs/zarr.md names */
	lade_dtype becomes; /* ARRAY_ARRAY: set it, if the elements get another type */
	char spec[512];
} lade_zarr_codec;

/* ---- arrays and groups ---------------------------------------------------------------- */

#define LADE_ZARR_NAME_MAX 255

/* An array's description.  It lives as long as its node. */
typedef struct lade_zarr_array {
	size_t struct_size;
	size_t ndim; /* at most LADE_DIMS_MAX */
	const lade_zarr_axis *axes;
	lade_zarr_type type;
	/* The fill value: an element as it is in memory, little-endian; of a STRING or BYTES its
	 * bytes.  'fill_given' false: format 2 has "null", and the value is zeros. */
	const void *fill;
	size_t fill_size;
	bool fill_given;
	lade_zarr_chain chain;
} lade_zarr_array;

typedef enum lade_zarr_kind {
	LADE_ZARR_ANY = 0,
	LADE_ZARR_ARRAY = 1,
	LADE_ZARR_GROUP = 2,
} lade_zarr_kind;

/* Zero-initialise, set struct_size, then what is wanted. */
typedef struct lade_zarr_options {
	size_t struct_size;
	lade_zarr_kind kind;     /* what it must be */
	uint32_t format;         /* 2 or 3; 0: 3 if both are there */
	lade_store *chunk_store; /* where the chunks are; NULL: with the metadata */
	uint64_t document_max;   /* the largest document, in bytes; 0: 64 MiB */
	bool no_consolidated;    /* reads each node's own document */
	/*
	 * For codecs of your own.  'codec' is called for each codec that the library does not run.
	 * LADE_E_NOT_FOUND: you do not run it either; other failures are those of the open.
	 * Reads and writes use 'engine' unless they are given another; it outlives the node.
	 */
	const lade_engine *engine;
	lade_status (*codec)(void *ctx, lade_zarr_codec *codec, lade_error *err);
	void *codec_ctx;
} lade_zarr_options;

/*
 * An open array or group.  Shared: it does not change, and any number of threads may use it.  It
 * holds references of its stores.  The last unref ends it.
 */
typedef struct lade_zarr lade_zarr;
LADE_API lade_zarr *lade_zarr_ref(lade_zarr *node);
LADE_API void lade_zarr_unref(lade_zarr *node); /* NULL is fine */

/*
 * Opens the array or group at 'path' ("a/b"; NULL or "": the store's root).
 *
 * Messages about a document have its key and the JSON pointer of the value: "a/zarr.json at
 * /chunk_grid/configuration/chunk_shape/1: ...".
 *
 * Fails: LADE_E_NOT_FOUND (nothing is there, or something of another kind); LADE_E_CORRUPT (the
 *        document is not valid; err->offset is the byte); LADE_E_VERSION; LADE_E_UNSUPPORTED
 *        (valid, but not known here: the message names it; pickles are refused so); LADE_E_LIMIT
 *        (a document above document_max, more than LADE_DIMS_MAX axes, deeper than 64 levels);
 *        LADE_E_ARG, LADE_E_NOMEM, and as lade_store_read()
 */
LADE_API lade_status lade_zarr_open(lade_store *store, const char *path,
                                    const lade_zarr_options *options, lade_zarr **out,
                                    lade_error *err);

/*
 * Opens a member of a group, with the options that the group was opened with.  If the group has
 * consolidated metadata, nothing is read, and what it does not list is LADE_E_NOT_FOUND.
 * Fails: as lade_zarr_open(); LADE_E_ARG: 'group' is an array
 */
LADE_API lade_status lade_zarr_member_open(lade_zarr *group, const char *path, lade_zarr **out,
                                           lade_error *err);

/* The description; NULL: the node is a group. */
LADE_API const lade_zarr_array *lade_zarr_as_array(const lade_zarr *node);

/* 2 or 3. */
LADE_API uint32_t lade_zarr_format(const lade_zarr *node);

/* Its path in the store, without '/' at the ends. */
LADE_API const char *lade_zarr_path(const lade_zarr *node);

/* Its attributes: the JSON object as the document has it, "{}" if there is none. */
LADE_API const char *lade_zarr_attributes(const lade_zarr *node);

/* The path of consolidated member number 'index', relative to the group, in the order of the paths'
 * bytes; NULL past the last one, and without consolidated metadata. */
LADE_API const char *lade_zarr_member(const lade_zarr *group, size_t index);

/* ---- chunks ---------------------------------------------------------------------------- */

/* A chunk along one axis. */
typedef struct lade_zarr_extent {
	uint64_t start; /* the index of its first element */
	uint64_t size;  /* the elements that are stored */
	uint64_t used;  /* of them, those that are in the array */
} lade_zarr_extent;

/* Where chunk 'chunk' of an axis is.  Fails: LADE_E_RANGE: there is no such chunk */
LADE_API lade_status lade_zarr_chunk_extent(const lade_zarr_axis *axis, uint64_t chunk,
                                            lade_zarr_extent *out, lade_error *err);

/* The chunk that has element 'at' of an axis.  Fails: LADE_E_RANGE: there is no such element */
LADE_API lade_status lade_zarr_chunk_find(const lade_zarr_axis *axis, uint64_t at, uint64_t *chunk,
                                          lade_error *err);

/*
 * The key of a chunk, or of a shard, in the chunk store.  'index' has 'ndim' entries.
 * Fails: LADE_E_RANGE: there is no such chunk; LADE_E_ARG: a group, or the key is too long
 */
LADE_API lade_status lade_zarr_chunk_key(const lade_zarr *array, const uint64_t *index,
                                         char key[LADE_KEY_MAX + 1], lade_error *err);

#ifdef __cplusplus
}
#endif

#endif
