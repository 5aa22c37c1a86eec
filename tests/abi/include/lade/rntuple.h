/*
 * rntuple.h: reads columns of ROOT's RNTuples, in one batch, into memory that the caller chose.
 *
 * This reads all elements of one column of floats:
 *
 *	lade_source source;
 *	lade_rntuple *tuple = NULL;
 *	uint64_t column;
 *	lade_rntuple_target target = {.span = lade_host_span(field, sizeof field)};
 *	if (lade_source_file_open("data.root", NULL, &source, &err))
 *		return fprintf(stderr, "%s\n", err.message);
 *	if (lade_rntuple_open(source, NULL, &tuple, &err)) {
 *		lade_source_close(source);
 *		return fprintf(stderr, "%s\n", err.message);
 *	}
 *	if (lade_rntuple_find(tuple, "two_floats", &column, &err) == LADE_OK) {
 *		target.column = column;
 *		target.count = lade_rntuple_column_at(tuple, column)->element_count;
 *		lade_rntuple_read(tuple, &target, 1, NULL, NULL, &err);
 *	}
 *	lade_rntuple_unref(tuple);
 *
 * A field is a node of the schema's tree; a column holds the elements of a field, one after the
 * other, over all entries.  docs/rntuple.md says which columns each type has.
 *
 * Files are hostile input: every number in them is checked before it is used.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_RNTUPLE_H
#define LADE_RNTUPLE_H

#include <lade/batch.h>
#include <lade/io.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- opening --------------------------------------------------------------------------- */

/* An open RNTuple: its schema and where its pages are.  It never changes, and has a reference
 * count.  Any number of threads may use it at once. */
typedef struct lade_rntuple lade_rntuple;
LADE_API lade_rntuple *lade_rntuple_ref(lade_rntuple *tuple);
LADE_API void lade_rntuple_unref(lade_rntuple *tuple); /* NULL is fine */

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_rntuple_options {
	size_t struct_size;
	const char *name;      /* "events", or "folder/events"; NULL: the file's only RNTuple */
	lade_engine *engine;   /* NULL: lade_engine_default() */
	/* The most decoded bytes of an envelope, of all page lists, and of all paths; 0: 1 GiB */
	uint64_t metadata_max;
	lade_cancel *cancel;   /* ends the call early; or NULL */
} lade_rntuple_options;

/*
 * Opens an RNTuple of a ROOT file: reads its header, footer and page lists, and verifies their
 * checksums.  No page is read.  The source may be of any kind; lade_store_object_open() makes one
 * of a store's value, for example on a web server.
 *
 * Fails: LADE_E_CORRUPT, LADE_E_TRUNCATED, LADE_E_CHECKSUM; LADE_E_NOT_FOUND (no RNTuple of that
 *        name, or several and no name: the message lists them); LADE_E_VERSION (written before
 *        version 1 of the format); LADE_E_UNSUPPORTED (a feature flag, a locator); LADE_E_LIMIT,
 *        LADE_E_NOMEM, LADE_E_ARG, LADE_E_CANCELLED, and as lade_source_read()
 * Owns:  takes 'source' on success: the last lade_rntuple_unref() closes it
 */
LADE_API lade_status lade_rntuple_open(lade_source source, const lade_rntuple_options *options,
                                       lade_rntuple **out, lade_error *err);

/*
 * Calls 'visit' with the name of each RNTuple in a ROOT file, in the order of the file's
 * directories.  Any status but LADE_OK ends the listing, which returns that status.
 *
 * Fails: as lade_rntuple_open(), for the file's own structure
 * Owns:  nothing; the source stays the caller's
 */
LADE_API lade_status lade_rntuple_list(lade_source source,
                                       lade_status (*visit)(void *ctx, const char *name),
                                       void *ctx, lade_error *err);

/* ---- what it has ------------------------------------------------------------------------ */

/* Texts are as in the file, which need not be UTF-8.  All structs here live as long as the
 * RNTuple. */
typedef struct lade_rntuple_info {
	const char *name, *description, *writer;
	uint16_t epoch, major, minor, patch; /* of the format */
	uint64_t entry_count;
	uint64_t field_count, column_count, cluster_count;
	uint64_t page_count;
	uint64_t stored_size;  /* bytes of all pages in the file */
	uint64_t decoded_size; /* bytes of all pages when decompressed, in their stored types */
} lade_rntuple_info;
LADE_API const lade_rntuple_info *lade_rntuple_about(const lade_rntuple *tuple);

/* What a field is made of. */
typedef enum lade_rntuple_role {
	LADE_RNTUPLE_PLAIN = 0,      /* columns of its own, or one child (array, enum, atomic) */
	LADE_RNTUPLE_COLLECTION = 1, /* offsets, and one child with the elements */
	LADE_RNTUPLE_RECORD = 2,     /* children that have one element each */
	LADE_RNTUPLE_VARIANT = 3,    /* a switch, and a child for each alternative */
	LADE_RNTUPLE_STREAMER = 4,   /* offsets, and bytes that ROOT's streamers made */
} lade_rntuple_role;

typedef struct lade_rntuple_field {
	const char *path; /* names from the top field on, with '.' between them */
	const char *name, *type, *type_alias, *description;
	uint64_t parent;       /* its own number: a top field */
	lade_rntuple_role role;
	uint64_t array_size;   /* elements of each parent's element; 0: no array */
	uint64_t column;       /* number of its first column; the others follow */
	uint64_t column_count;
	bool projected; /* its columns are those of another field */
	/* Why it cannot be read, such as an unknown type of column; NULL: it can.  Its columns are
	 * left out. */
	const char *hidden;
} lade_rntuple_field;

/* Field number 'index'; NULL past the last one.  Children come after their parent. */
LADE_API const lade_rntuple_field *lade_rntuple_field_at(const lade_rntuple *tuple, uint64_t index);

/* What the elements of a column mean. */
typedef enum lade_rntuple_kind {
	LADE_RNTUPLE_VALUES = 0,
	/* Collection i has the elements [offset i, offset i + 1) of the columns below it. */
	LADE_RNTUPLE_OFFSETS = 1,
	/* 12 bytes: the index within the alternative's elements (8), and the alternative (4); 0:
	 * none.  The index counts within the cluster. */
	LADE_RNTUPLE_SWITCH = 2,
} lade_rntuple_kind;

typedef struct lade_rntuple_column {
	uint64_t field;
	uint32_t position;  /* among the field's columns: a string has offsets (0) and bytes (1) */
	lade_rntuple_kind kind;
	lade_dtype dtype;   /* of what reading gives; LADE_DTYPE_NONE for switches */
	size_t elem_size;   /* its bytes */
	const char *stored; /* the type in the file, such as "SplitReal32", of most pages */
	uint32_t bits;      /* of a stored element */
	uint64_t element_count; /* over all clusters; elements that are not stored are zeros */
	uint64_t first_stored;  /* the elements before it are zeros that the file does not store */
	uint64_t page_count;
	uint64_t stored_size, decoded_size;
} lade_rntuple_column;

/* Column number 'index', in the order of fields; NULL past the last one. */
LADE_API const lade_rntuple_column *lade_rntuple_column_at(const lade_rntuple *tuple,
                                                           uint64_t index);

/*
 * Finds a column by the path of its field.  Fields without a column of their own, but with one
 * child, stand for that child.  A string's path gives its offsets; its bytes are the next column.
 *
 * Fails: LADE_E_NOT_FOUND, LADE_E_UNSUPPORTED (a hidden field: the message says why), LADE_E_ARG
 */
LADE_API lade_status lade_rntuple_find(const lade_rntuple *tuple, const char *path,
                                       uint64_t *column, lade_error *err);

/* Finds a field by its path; takes the time of a hash.  Fails: LADE_E_NOT_FOUND, LADE_E_ARG */
LADE_API lade_status lade_rntuple_find_field(const lade_rntuple *tuple, const char *path,
                                             uint64_t *field, lade_error *err);

/* Entries or elements [first, first + count). */
typedef struct lade_rntuple_part {
	uint64_t first, count;
} lade_rntuple_part;

/*
 * The entries of a cluster, and the elements of a column in a cluster.
 *
 * Fails: LADE_E_RANGE (no such column or cluster)
 */
LADE_API lade_status lade_rntuple_cluster(const lade_rntuple *tuple, uint64_t cluster,
                                          lade_rntuple_part *entries, lade_error *err);
LADE_API lade_status lade_rntuple_cluster_elements(const lade_rntuple *tuple, uint64_t column,
                                                   uint64_t cluster, lade_rntuple_part *elements,
                                                   lade_error *err);

/* A page: elements [first, first + count) of a column.  Zero-initialise and set struct_size. */
typedef struct lade_rntuple_page {
	size_t struct_size;
	uint64_t first, count;
	uint64_t off, stored_size; /* in the file, without its checksum */
	uint64_t decoded_size;     /* in the stored type */
	const char *stored;        /* the type in this cluster, such as "SplitReal32" */
	bool checksum;             /* it has one */
	uint32_t bits;             /* of a stored element */
	/* What the writer says of the compression: 100 * algorithm + level, with 1 zlib, 2 lzma,
	 * 4 lz4, 5 zstd; 0: none.  A page with stored_size == decoded_size is not compressed. */
	uint64_t setting;
} lade_rntuple_page;

/* The pages of a column in a cluster.  Fails: LADE_E_RANGE, LADE_E_ARG */
LADE_API uint64_t lade_rntuple_page_count(const lade_rntuple *tuple, uint64_t column,
                                          uint64_t cluster);
LADE_API lade_status lade_rntuple_page_at(const lade_rntuple *tuple, uint64_t column,
                                          uint64_t cluster, uint64_t index, lade_rntuple_page *out,
                                          lade_error *err);

/* ---- reading ----------------------------------------------------------------------------- */

/* Elements [first, first + count) of a column, and where they go.  Zero-initialise, then set the
 * fields you need. */
typedef struct lade_rntuple_target {
	uint64_t column, first, count;
	/* elem_size bytes for each element, little-endian.  For offsets: count + 1 numbers of type
	 * int64, which begin with 0; the call adds up over pages and clusters. */
	lade_span span;
} lade_rntuple_target;

enum {
	/* Do not verify checksums of pages. */
	LADE_RNTUPLE_IGNORE_CHECKSUMS = 1,
	/* Offsets as they are stored: 'count' ends, from the cluster's start on, of type int64. */
	LADE_RNTUPLE_ENDS = 2,
};

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_rntuple_read_options {
	size_t struct_size;
	size_t target_size;  /* sizeof(lade_rntuple_target); 0: as first released */
	lade_engine *engine; /* NULL: the one of lade_rntuple_open() */
	unsigned threads;    /* at most this many; 0: the engine's */
	uint32_t flags;      /* LADE_RNTUPLE_... */
	lade_cancel *cancel; /* ends the call early; or NULL */
	lade_where where;    /* as in lade_batch_options */
	int32_t device;
	lade_stream stream;  /* spans on devices are written after its work */
	const lade_allocator *allocators[LADE_KIND_COUNT]; /* by kind; NULL: the engine's */
	uint64_t memory;     /* bytes of stored pages in memory at once; 0: 64 MiB, to a device
	                      * 128 MiB.  One page is always allowed */
} lade_rntuple_read_options;

/* What a read did, or would do.  Zero-initialise and set struct_size. */
typedef struct lade_rntuple_report {
	size_t struct_size;
	uint64_t page_count;     /* pages with elements of the targets */
	uint64_t distinct_count; /* of them, pages that are decoded; the others have equal places */
	uint64_t range_count;   /* ranges of the file */
	uint64_t stored_size;   /* bytes of these ranges */
	uint64_t decoded_size;  /* bytes of all distinct pages, decompressed */
	uint64_t written_size;  /* bytes of all targets */
	uint64_t host_memory;   /* bytes beside the targets, at most, without the engine's */
	uint64_t wave_count;    /* batches */
	uint64_t ns;
	/* If targets are on devices, bytes there beside them, at most: the stored pages of a wave,
	 * and what they decode to where more is done to it. */
	uint64_t device_memory;
} lade_rntuple_report;

/*
 * Reads elements of any number of columns, and waits.  'options' and 'report' may be NULL.
 *
 * All pages of one wave are one batch.  Pages are decoded straight into their target; equal places
 * in the file are read and decoded once.  Targets may be in different places.  Offsets add up where
 * they are.
 *
 * Fails:   LADE_E_RANGE (elements beyond the column's end, or too small a span; the message has
 *          both numbers), LADE_E_CORRUPT, LADE_E_CHECKSUM, LADE_E_UNSUPPORTED,
 *          LADE_E_ARG, LADE_E_NOMEM, LADE_E_CANCELLED, and as lade_source_read() and
 *          lade_decode_into().  The message has the column and the byte of the page.  Some targets
 *          may then have been written
 * Threads: any number of callers
 * Owns:    nothing
 */
LADE_API lade_status lade_rntuple_read(lade_rntuple *tuple, const lade_rntuple_target *targets,
                                       size_t count, const lade_rntuple_read_options *options,
                                       lade_rntuple_report *report, lade_error *err);

/* Says what lade_rntuple_read() would do, and reads nothing.  Only the sizes and places of the
 * spans are used.  Fails: as lade_rntuple_read() */
LADE_API lade_status lade_rntuple_explain(lade_rntuple *tuple, const lade_rntuple_target *targets,
                                          size_t count, const lade_rntuple_read_options *options,
                                          lade_rntuple_report *report, lade_error *err);

/*
 * The elements of a column that belong to some entries.  For columns below collections the call
 * reads the offsets at both ends, unless they are at the ends of clusters.
 *
 * Fails: LADE_E_RANGE (entries beyond the last one), LADE_E_UNSUPPORTED (below a variant, unless
 *        the entries are whole clusters), and as lade_rntuple_read()
 */
LADE_API lade_status lade_rntuple_elements(lade_rntuple *tuple, uint64_t column,
                                           lade_rntuple_part entries,
                                           const lade_rntuple_read_options *options,
                                           lade_rntuple_part *elements, lade_error *err);

/* ---- step by step ------------------------------------------------------------------------ */

/* Reads entries step by step in bounded memory, and steps ahead while the caller works. */
typedef struct lade_rntuple_steps lade_rntuple_steps;

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_rntuple_steps_options {
	size_t struct_size;
	lade_rntuple_part entries; /* count 0: up to the last one */
	uint64_t step;             /* entries; 0: those of a cluster, which reads no page twice */
	/* Steps that a thread reads ahead, at most 64; 0: the caller's thread reads each when it is
	 * asked for.  Memory is that of ahead + 1 steps, and of a read. */
	uint64_t ahead;
	const lade_rntuple_read_options *read; /* NULL: all defaults; used until the end */
	lade_place place;                      /* of the elements */
} lade_rntuple_steps_options;

/* Zero-initialise and set struct_size. */
typedef struct lade_rntuple_step {
	size_t struct_size;
	lade_rntuple_part entries; /* count 0: there are no more */
	/* The elements of each column, in the order of the columns that were asked for: which, how
	 * many, and where.  They are the library's, and valid until the next call. */
	const lade_rntuple_target *targets;
	uint64_t count;
} lade_rntuple_step;

/*
 * Begins; the first steps are read at once if options->ahead is not 0.
 *
 * Fails:   LADE_E_RANGE (no such column or entries), LADE_E_ARG, LADE_E_NOMEM
 * Threads: one caller for each lade_rntuple_steps
 * Owns:    keeps a reference of the RNTuple.  lade_rntuple_steps_free() waits for the step that is
 *          being read; NULL is fine
 */
LADE_API lade_status lade_rntuple_steps_new(lade_rntuple *tuple, const uint64_t *columns,
                                            size_t count, const lade_rntuple_steps_options *options,
                                            lade_rntuple_steps **out, lade_error *err);
LADE_API void lade_rntuple_steps_free(lade_rntuple_steps *steps);

/* Waits for the next step.  Fails: as lade_rntuple_elements() and lade_rntuple_read(); then no step
 * follows */
LADE_API lade_status lade_rntuple_steps_next(lade_rntuple_steps *steps, lade_rntuple_step *step,
                                             lade_error *err);

#ifdef __cplusplus
}
#endif

#endif
