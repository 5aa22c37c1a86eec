/*
 * rntuple_write.h: writes RNTuples of ROOT: new files, and more entries for those that are there.
 *
 * This makes a file with two columns, and fills in three entries:
 *
 *	lade_rntuple_writer *writer = NULL;
 *	lade_rntuple_writer_options options = {.struct_size = sizeof options, .name = "events"};
 *	lade_rntuple_new_field fields[] = {
 *		{.name = "id", .type = "std::int32_t", .parent = LADE_RNTUPLE_TOP},
 *		{.name = "pt", .type = "std::vector<float>", .parent = LADE_RNTUPLE_TOP,
 *		 .role = LADE_RNTUPLE_COLLECTION},
 *		{.name = "_0", .type = "float", .parent = 1},
 *	};
 *	int32_t id[3] = {7, 8, 9};
 *	int64_t ends[4] = {0, 2, 2, 3};      // collection i has elements [ends[i], ends[i + 1])
 *	float pt[3] = {1.5f, 2, 3};
 *	lade_rntuple_fill fill[] = {
 *		{.column = 0, .span = lade_host_cspan(id, sizeof id)},
 *		{.column = 1, .span = lade_host_cspan(ends, sizeof ends)},
 *		{.column = 2, .span = lade_host_cspan(pt, sizeof pt)},
 *	};
 *	lade_status status = lade_rntuple_writer_open("new.root", &options, &writer, &err);
 *	if (status == LADE_OK)
 *		status = lade_rntuple_writer_add(writer, fields, 3, &err);
 *	if (status == LADE_OK)
 *		status = lade_rntuple_writer_fill(writer, 3, fill, 3, NULL, &err);
 *	if (status == LADE_OK)
 *		status = lade_rntuple_writer_commit(writer, &err);
 *	lade_rntuple_writer_close(writer);
 *
 * docs/rntuple.md says which fields and columns each type has, and what is in the file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_RNTUPLE_WRITE_H
#define LADE_RNTUPLE_WRITE_H

#include <lade/rntuple.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- opening ---------------------------------------------------------------------------- */

/* An RNTuple that is being written.  One thread at a time may use it. */
typedef struct lade_rntuple_writer lade_rntuple_writer;

typedef enum lade_rntuple_mode {
	LADE_RNTUPLE_NEW = 0,     /* a new file; LADE_E_CHANGED if a file is there */
	LADE_RNTUPLE_REPLACE = 1, /* a new file, which replaces one that is there */
	LADE_RNTUPLE_APPEND = 2,  /* more entries for an RNTuple of a file */
} lade_rntuple_mode;

enum {
	LADE_RNTUPLE_NO_CHECKSUMS = 1, /* pages have none */
	/* A commit returns when the file and its name are on the disk.  Without it a new file may
	 * be lost with the power; appending always has the bytes on the disk before the anchor. */
	LADE_RNTUPLE_SYNC = 2,
	/* Elements as they are, where a field does not say how they are stored: Real32, not
	 * SplitReal32.  This is the default for columns without a codec. */
	LADE_RNTUPLE_NO_SPLIT = 4,
};

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_rntuple_writer_options {
	size_t struct_size;
	const char *name;        /* of the RNTuple; to append: as in lade_rntuple_options */
	const char *description; /* NULL: "" */
	lade_rntuple_mode mode;
	uint32_t flags; /* LADE_RNTUPLE_NO_CHECKSUMS, ... */
	/* Of columns whose field names none: "zstd(level=5)", "lz4", "zlib(level=1)", "lzma", or
	 * "none".  NULL: zstd of level 5. */
	const char *codec;
	uint64_t page_size;    /* bytes of a page's elements, at most; 0: 1 MiB */
	uint64_t cluster_size; /* the same of a cluster, which has one entry at least; 0: 128 MiB */
	uint64_t memory;       /* bytes of encoded pages in memory at once, but for one page; 0:
	                          * 64 MiB */
	size_t field_size;     /* sizeof(lade_rntuple_new_field); 0: as first released */
	size_t fill_size;      /* sizeof(lade_rntuple_fill); 0: as first released */
	lade_engine *engine;   /* NULL: lade_engine_default() */
	lade_cancel *cancel;   /* ends a call early; or NULL */
	lade_stream stream;    /* spans on devices are read after its work */
	unsigned threads;      /* at most this many; 0: the engine's */
	lade_where where;      /* as in lade_batch_options, for spans on devices */
	int32_t device;
	uint32_t group_size; /* a page list is written behind this many clusters; 0: 1000 */
} lade_rntuple_writer_options;

/*
 * Begins to write.  A new file has a temporary name beside 'path' until the first commit.  The file
 * of an append stays as it is until the commit, and readers keep what they have opened; another
 * append of it fails meanwhile.
 *
 * Fails: LADE_E_ARG; LADE_E_CHANGED (a file is there); LADE_E_STATE (another append is under way);
 *        LADE_E_SPEC, LADE_E_NOT_FOUND, LADE_E_UNSUPPORTED (a codec that ROOT does not have; to
 *        append, a hidden field), LADE_E_IO, LADE_E_NOMEM; to append, as lade_rntuple_open().  A
 *        torn anchor is LADE_E_CHECKSUM: see lade_rntuple_repair()
 * Owns:  the caller, until lade_rntuple_writer_close()
 */
LADE_API lade_status lade_rntuple_writer_open(const char *path,
                                              const lade_rntuple_writer_options *options,
                                              lade_rntuple_writer **out, lade_error *err);

/* Frees a writer.  What was not committed is lost: a new file is removed, and one that was there is
 * as it was.  NULL is fine. */
LADE_API void lade_rntuple_writer_close(lade_rntuple_writer *writer);

/* ---- fields ----------------------------------------------------------------------------- */

/* The parent of fields that have none. */
#define LADE_RNTUPLE_TOP UINT64_MAX

/* Zero-initialise, then set the fields you need. */
typedef struct lade_rntuple_new_field {
	const char *name;
	const char *type;                     /* in C++: "float", "std::vector<float>"; NULL: "" */
	const char *type_alias, *description; /* NULL: "" */
	uint64_t parent;                      /* number of a field before it, or LADE_RNTUPLE_TOP */
	uint64_t array_size;                  /* elements of each parent's element; 0: no array */
	/*
	 * The types of its columns in the file, with ',' between them: "Real32",
	 * "Real32Trunc(16)" (bits), "Real32Quant(8,-2,3)" (bits, least and largest value),
	 * "Index64,Char"; "" for none.  NULL: those that ROOT gives to the role and type.
	 */
	const char *stored;
	const char *codec; /* of its columns; NULL: the writer's */
	uint32_t role;     /* lade_rntuple_role */
	uint32_t type_version;
} lade_rntuple_new_field;

/*
 * Adds fields.  Fields and columns are numbered in the order in which they were added.  Fields may
 * be added between fills: the entries before have zeros and empty collections in them.  These are
 * top fields, and fields below them.
 *
 * Fails: LADE_E_ARG (no name, no such parent); LADE_E_NOT_FOUND (a stored type; the message has
 *        it); LADE_E_UNSUPPORTED (a type whose columns are not known and not given; fields below an
 *        older one after a fill), LADE_E_STATE (an earlier call failed), LADE_E_NOMEM, and as
 *        lade_rntuple_writer_open() for codecs.  Then no field is added
 */
LADE_API lade_status lade_rntuple_writer_add(lade_rntuple_writer *writer,
                                             const lade_rntuple_new_field *fields, size_t count,
                                             lade_error *err);

/* The fields and columns so far: for lade_rntuple_find(), lade_rntuple_field_at(),
 * lade_rntuple_column_at() and lade_rntuple_about(); it has no entries and cannot be read.  Valid
 * until the next lade_rntuple_writer_add() or the close. */
LADE_API const lade_rntuple *lade_rntuple_writer_schema(const lade_rntuple_writer *writer);

/* ---- entries ---------------------------------------------------------------------------- */

/*
 * The elements of a column.  Zero-initialise, then set the fields you need.
 *
 * Values: of the column's type, little-endian; or of another size of its class, which is converted.
 * Offsets: one number more than there are collections: collection i has the elements [i, i + 1) of
 * the columns below.  They need not begin with 0.
 * Switches: the number of the alternative of each element, from 1 on; 0: none.  The elements of
 * each alternative are in that order.  Or 12 bytes, as reading gives them for a cluster.
 */
typedef struct lade_rntuple_fill {
	uint64_t column;
	lade_cspan span;  /* of any place; offsets and switches on the host */
	lade_dtype dtype; /* of its elements; NONE: the column's.  Offsets: int64, int32, uint32;
	                   * switches: uint8, int8, uint32, or NONE for 12 bytes */
	uint8_t reserved[7];
} lade_rntuple_fill;

/* What fills and commits did since the writer was opened.  Zero-initialise and set struct_size. */
typedef struct lade_rntuple_write_report {
	size_t struct_size;
	uint64_t entry_count, cluster_count, page_count;
	uint64_t raw_count;    /* pages that are stored, since they did not shrink */
	uint64_t source_size;  /* bytes of elements */
	uint64_t decoded_size; /* the same in their stored types */
	uint64_t stored_size;  /* bytes of pages in the file */
	uint64_t file_size;    /* bytes written to the file */
	uint64_t ns;
} lade_rntuple_write_report;

/*
 * Writes 'entry_count' entries: the elements of each column once, except those of projected fields.
 * They become one cluster, or several where the cluster size asks for it.  The pages of a cluster
 * are encoded in one batch.  'report' may be NULL.
 *
 * Columns without collections or variants above them have exactly the elements of the entries;
 * others may have more than the offsets use.
 *
 * Fails:   LADE_E_ARG (a column twice or not at all), LADE_E_RANGE (too few or too many elements),
 *          LADE_E_CORRUPT (offsets that decrease, alternatives that are not there), LADE_E_DTYPE,
 *          LADE_E_NO_DEVICE: nothing is written.  LADE_E_VALUE (a value that the stored type does
 *          not hold), LADE_E_IO, LADE_E_NOMEM, LADE_E_CANCELLED, and as lade_encode_into(): the
 *          entries are not in the file.  The message has the column
 * Threads: the engine's
 * Owns:    nothing
 */
LADE_API lade_status lade_rntuple_writer_fill(lade_rntuple_writer *writer, uint64_t entry_count,
                                              const lade_rntuple_fill *columns, size_t count,
                                              lade_rntuple_write_report *report, lade_error *err);

/*
 * Makes all entries so far part of the file: writes page lists and a footer, and then the name of a
 * new file, or the anchor of one that is there.  Readers see all of it or nothing.  More fills and
 * commits may follow.
 *
 * Fails: LADE_E_CHANGED (somebody else made the file meanwhile), LADE_E_IO, LADE_E_LIMIT,
 *        LADE_E_NOMEM
 */
LADE_API lade_status lade_rntuple_writer_commit(lade_rntuple_writer *writer, lade_error *err);

/* ---- mending ------------------------------------------------------------------------------ */

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_rntuple_repair_options {
	size_t struct_size;
	const char *name; /* as in lade_rntuple_options */
	uint64_t dry;     /* 1: look only, and write nothing */
} lade_rntuple_repair_options;

/*
 * Mends an anchor that was torn when the machine stopped during an append: finds the newest footer
 * that is complete, with its page lists, and writes the anchor for it.  '*mended' says whether the
 * anchor needed it; a file whose anchor is valid stays as it is.  Nobody else may use the file
 * meanwhile.
 *
 * Fails: LADE_E_NOT_FOUND (no RNTuple of that name), LADE_E_CHECKSUM (no complete footer is there),
 *        LADE_E_STATE (an append is under way), LADE_E_IO, and as lade_rntuple_open()
 */
LADE_API lade_status lade_rntuple_repair(const char *path,
                                         const lade_rntuple_repair_options *options, bool *mended,
                                         lade_error *err);

#ifdef __cplusplus
}
#endif

#endif
