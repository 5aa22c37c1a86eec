/*
 * rntuple.h (internal): an open RNTuple, and what the readers of its parts share.
 *
 *     held.c   bytes that are read ahead while a file is opened
 *     file.c   TFile: directories, keys, the anchor        big-endian
 *     blocks.c compressed blocks and envelopes
 *     schema.c header and footer: fields, columns          little-endian
 *     pages.c  page lists: clusters and where pages are
 *     resolve.c  columns as callers see them: representations, elements that are not stored
 *     plan.c, read.c  from elements to pages, ranges, items, and one batch a wave
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_RNTUPLE_INTERNAL_H
#define LADE_RNTUPLE_INTERNAL_H

#include "base/support.h"

#include <lade/rntuple.h>

#include <stdatomic.h>

#define RNT_NONE UINT32_MAX

/* ---- memory ------------------------------------------------------------------------------- */

/* Memory that an RNTuple keeps until its end. */
typedef struct rnt_memory {
	struct rnt_memory_block *blocks;
} rnt_memory;

/* Zeroed; NULL: there is none. */
void *lade__rnt_keep(rnt_memory *memory, size_t count, size_t size);
void lade__rnt_memory_free(rnt_memory *memory);

/* Makes room for one more element of 'size' bytes behind 'count'.  False: no memory. */
bool lade__rnt_grow(void *table, size_t *cap, size_t count, size_t size);

/* ---- bytes -------------------------------------------------------------------------------- */

/* The first thing wrong with an envelope; all cursors into it share one. */
typedef struct rnt_fault {
	const char *what; /* "header", ... */
	lade_status status;
	lade_error *err;
} rnt_fault;

/* A cursor.  Reading past the end gives zeros and sets the fault. */
typedef struct rnt_in {
	const uint8_t *data;
	size_t at, end;
	rnt_fault *fault;
} rnt_in;

uint64_t lade__rnt_int(rnt_in *in, size_t size); /* little-endian */
/* A text with a NUL behind it, in 'memory'; never NULL. */
const char *lade__rnt_text(rnt_in *in, rnt_memory *memory);
/* A cursor over a record's or list's content; 'in' goes behind it.  '*count' gets a list's items;
 * each has at least 'item_min' bytes. */
rnt_in lade__rnt_record(rnt_in *in);
rnt_in lade__rnt_list(rnt_in *in, size_t item_min, uint32_t *count);
lade_status lade__rnt_bad(const rnt_in *in, lade_status status, const char *format, ...)
	LADE_PRINTF(3, 4);
static inline bool lade__rnt_ok(const rnt_in *in)
{
	return in->fault->status == LADE_OK;
}

/* ---- the file ----------------------------------------------------------------------------- */

/* Bytes [off, off + size) of the file, while it is opened. */
typedef struct rnt_held {
	uint64_t off;
	size_t size;
	uint8_t *data;
} rnt_held;

enum { RNT_HELD_MAX = 64 };

typedef struct rnt_file {
	lade_source source;
	rnt_held *held; /* RNT_HELD_MAX of them; NULL: none */
	size_t held_count;
	lade_object_version version; /* size 0: the source has none */
	uint64_t size;               /* or LADE_SIZE_UNKNOWN */
	uint64_t key_max;            /* larger payloads are in several keys; 0: never */
	uint64_t metadata_max;       /* the most decoded bytes of an envelope, of all page lists */
	lade_cancel *cancel;
	lade_engine *engine;
} rnt_file;

/* Reads bytes [off, off + size).  Fails: LADE_E_TRUNCATED beyond the file's end */
lade_status lade__rnt_fetch(const rnt_file *file, uint64_t off, void *to, size_t size,
                            lade_error *err);

/* Where bytes are; 'size' is the stored size. */
typedef struct rnt_locator {
	uint64_t off, size;
} rnt_locator;

/* Reads the file's first and last bytes with one call.  Much of what follows is there then.  Sets
 * size and version. */
lade_status lade__rnt_hold_ends(rnt_file *file, lade_error *err);
/* Reads what is not there yet with one call.  What fails is left out: the fetch says why. */
void lade__rnt_hold(rnt_file *file, const rnt_locator *at, size_t count);
/* The bytes, if all are there; or NULL. */
const uint8_t *lade__rnt_held(const rnt_file *file, uint64_t off, uint64_t size);
void lade__rnt_hold_none(rnt_file *file);

typedef struct rnt_link {
	rnt_locator at;
	uint64_t decoded_size;
} rnt_link;

typedef struct rnt_anchor {
	uint16_t version[4];
	rnt_link header, footer;
	uint64_t key_max; /* larger payloads are in several keys; 0: never */
} rnt_anchor;

/* Looks at the file's first bytes; sets size and version. */
lade_status lade__rnt_file_begin(rnt_file *file, lade_error *err);
/* Calls 'visit' with each RNTuple of the file, and where its key is. */
typedef lade_status rnt_visit(void *ctx, const char *name, uint64_t key_off, uint32_t key_size,
                              lade_error *err);
lade_status lade__rnt_file_walk(const rnt_file *file, rnt_visit *visit, void *ctx, lade_error *err);
/* The only RNTuple, or the one of that name.  Fails: LADE_E_NOT_FOUND, LADE_E_VERSION */
lade_status lade__rnt_file_find(const rnt_file *file, const char *name, uint64_t *key_off,
                                uint32_t *key_size, lade_error *err);
lade_status lade__rnt_anchor_read(const rnt_file *file, uint64_t key_off, uint32_t key_size,
                                  rnt_anchor *out, lade_error *err);

/* ---- blocks and envelopes ------------------------------------------------------------------ */

typedef enum rnt_method {
	RNT_STORED,
	RNT_ZLIB,
	RNT_LZMA,
	RNT_LZ4,
	RNT_ZSTD,
	RNT_DEFLATE,
	RNT_METHODS,
} rnt_method;
extern const char *const lade__rnt_method_specs[RNT_METHODS];

/* 'size' stored bytes that give 'want', and the blocks that they are. */
typedef struct rnt_blocks {
	const uint8_t *data;
	uint64_t size, want;
	bool sums;              /* verify those of LZ4 at once */
	lade_segment *segments; /* room for 'count' of them; NULL: they are counted only */
	size_t count;
	rnt_method method;
} rnt_blocks;

enum { RNT_BLOCK_HEAD = 9 };
/* The sizes of the block that begins so, its head among the stored bytes; false: no block does. */
bool lade__rnt_block(const uint8_t head[RNT_BLOCK_HEAD], uint64_t *stored, uint64_t *decoded);

/* Walks the blocks; sets count, method and the segments.
 * Fails: LADE_E_CORRUPT, LADE_E_CHECKSUM; the offset is that in 'data' */
lade_status lade__rnt_blocks(rnt_blocks *b, lade_error *err);

/* Compares the checksum in front of an LZ4 block's data with what they have. */
lade_status lade__rnt_lz4_compare(const uint8_t *data, uint64_t have, uint64_t off,
                                  lade_error *err);

/* Reads a payload, which may be in several keys. */
lade_status lade__rnt_payload(const rnt_file *file, rnt_locator at, uint8_t *to, lade_error *err);
/* Decodes a payload into 'want' bytes. */
lade_status lade__rnt_inflate(const rnt_file *file, const uint8_t *data, uint64_t size, uint8_t *to,
                              uint64_t want, lade_error *err);

typedef enum rnt_envelope_kind { RNT_HEADER = 1, RNT_FOOTER = 2, RNT_PAGES = 3 } rnt_envelope_kind;
/* Reads an envelope; '*out' gets its payload, with 8 bytes before and 8 behind, to be freed as
 * out->data.  '*sum': its checksum. */
lade_status lade__rnt_envelope(const rnt_file *file, const rnt_link *link, rnt_envelope_kind kind,
                               rnt_in *out, uint64_t *sum, lade_error *err);

/* Reads a locator, and a link. */
rnt_locator lade__rnt_locator(rnt_in *in);
rnt_link lade__rnt_link(rnt_in *in);
lade_status lade__rnt_features(rnt_in *in);

/* ---- the schema ---------------------------------------------------------------------------- */

/* A column as the file has it. */
typedef struct rnt_physical {
	uint16_t type, bits, flags, representation;
	uint32_t field;
	uint32_t position; /* among those of its field and representation */
	uint32_t column;   /* of the public ones; RNT_NONE: hidden */
	int64_t first;     /* elements before it are not stored; negative: suppressed too */
	double min, max;
} rnt_physical;

typedef struct rnt_field {
	uint32_t flags, source;
	uint32_t top; /* the field without a parent that it is below, or is */
	uint32_t depth;
	uint32_t counted; /* the nearest collection or variant above it; RNT_NONE: none */
	uint64_t factor;  /* elements for each of its elements, or for each entry */
	uint32_t child, child_count; /* the last one */
	uint32_t same; /* the next field whose path has the same hash; RNT_NONE: none */
	/* While columns are counted: of the representation that was last seen. */
	uint32_t representation, position;
} rnt_field;

typedef struct rnt_alias {
	uint32_t physical, field;
} rnt_alias;

typedef struct rnt_page {
	uint64_t off, size; /* stored, without the checksum */
	uint64_t first;     /* element of the column */
	uint32_t count;
	bool sum; /* 8 bytes of XXH3 follow */
} rnt_page;

/* A physical column in a cluster. */
typedef struct rnt_run {
	uint64_t first, count;
	size_t page, page_count;
	uint32_t setting; /* of compression: 100 * algorithm + level */
	bool stored;      /* not suppressed */
} rnt_run;

typedef struct rnt_cluster {
	uint64_t first, count; /* entries */
	size_t run, run_count; /* of physical columns 0, 1, ... */
} rnt_cluster;

/* A column's elements in a cluster: [first, first + count), of which those from 'stored' on are in
 * the file. */
typedef struct rnt_extent {
	uint64_t first, count, stored;
	size_t page, page_count;
	uint32_t physical, setting;
} rnt_extent;

/* What resolve.c knows of a public column. */
typedef struct rnt_column {
	rnt_extent *extents; /* by cluster; an alias shares them */
	uint32_t parent;     /* the offsets or switch that count it; RNT_NONE: entries do */
	uint64_t factor;     /* elements for each of what counts it */
	int64_t deferred;    /* elements before it need not be stored */
	uint32_t counts;     /* the last column that it counts; RNT_NONE: none */
	uint32_t counts_too; /* the one before, of the same parent */
} rnt_column;

/* Memory for stored pages.  A tuple keeps one between reads: new memory costs page faults. */
typedef struct rnt_buffer {
	size_t size;
	uint8_t data[];
} rnt_buffer;

struct lade_rntuple {
	atomic_size_t refs;
	rnt_file file;
	rnt_memory memory;
	lade_cspan view; /* the whole file in memory; or data NULL */
	_Atomic(rnt_buffer *) spare;
	lade_rntuple_info info;
	lade_rntuple_field *field;
	rnt_field *field_more;
	size_t field_count, field_cap, more_cap;
	uint32_t *by_path; /* hash % path_slots: a field, or RNT_NONE */
	size_t path_slots; /* a power of two */
	uint64_t path_size; /* bytes of all paths */
	rnt_physical *physical;
	size_t physical_count, physical_cap;
	rnt_alias *alias;
	size_t alias_count, alias_cap;
	rnt_link *group; /* page lists */
	uint64_t *group_clusters;
	size_t group_count, group_cap, clusters_cap;
	rnt_cluster *cluster;
	size_t cluster_count, cluster_cap;
	rnt_run *run;
	size_t run_count, run_cap;
	rnt_page *page;
	size_t page_count, page_cap;
	lade_rntuple_column *column;
	rnt_column *column_more;
	size_t column_count;
};

/* What each type of column is (notes of the format: docs/rntuple.md). */
typedef struct rnt_type {
	const char *name;
	uint16_t bits_min, bits_max;
	char cls;         /* of what it decodes to: 'b', 'i', 'u', 'f', 'o' offsets, 's' switch */
	lade_dtype dtype; /* as it is decoded */
	bool split, zigzag, delta;
} rnt_type;
const rnt_type *lade__rnt_type(uint16_t type); /* NULL: unknown */

/* Frees an RNTuple, but not its source. */
void lade__rnt_free(lade_rntuple *tuple);
/* Reads what the anchor names: header, footer, page lists. */
lade_status lade__rnt_envelopes(lade_rntuple *tuple, const rnt_anchor *anchor, lade_error *err);

/* Parse the header's and footer's payload. */
lade_status lade__rnt_header(lade_rntuple *tuple, rnt_in *in);
lade_status lade__rnt_footer(lade_rntuple *tuple, rnt_in *in, uint64_t header_sum);
/* Reads and parses all page lists. */
lade_status lade__rnt_pages(lade_rntuple *tuple, uint64_t header_sum, lade_error *err);
uint64_t lade__rnt_path_hash(const char *path);
/* Makes the public fields and columns. */
lade_status lade__rnt_resolve(lade_rntuple *tuple, lade_error *err);

static inline uint64_t lade__rnt_page_size(const rnt_physical *p, uint64_t count)
{
	return (count * p->bits + 7) / 8;
}

static inline lade_status lade__rnt_nomem(lade_error *err)
{
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "rntuple: no memory for its tables");
}

#endif
