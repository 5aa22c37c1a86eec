/*
 * write.h: an RNTuple while it is written.
 *
 *     write_bytes.c   bytes that grow, frames, envelopes                   little-endian
 *     write_schema.c  fields and columns: the header and its extension
 *     write_root.c    TFile: header, directory, keys, anchor, free list    big-endian
 *     write_file.c    where bytes go: a temporary file, or behind the end of one that is there
 *     write_fill.c    from a caller's columns to those of clusters
 *     write_pages.c   from columns to pages: one batch, and its place in the file
 *     write_commit.c  page lists, the footer, and the anchor
 *     write_append.c  goes on with a file;  write_repair.c: mends a torn anchor
 *     write.c         the calls
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_RNTUPLE_WRITER_H
#define LADE_RNTUPLE_WRITER_H

#include "io/file.h"
#include "rntuple/read.h"

#include <lade/rntuple_write.h>

/* ---- bytes -------------------------------------------------------------------------------- */

/* Bytes that grow.  'failed': there was no memory; what follows is dropped. */
typedef struct rnt_out {
	uint8_t *data;
	size_t size, cap;
	bool failed;
} rnt_out;

void lade__rnt_put(rnt_out *out, uint64_t value, size_t size);    /* little-endian */
void lade__rnt_put_be(rnt_out *out, uint64_t value, size_t size); /* big-endian */
void lade__rnt_put_bytes(rnt_out *out, const void *data, size_t size);
void lade__rnt_put_text(rnt_out *out, const char *text);
void lade__rnt_out_free(rnt_out *out);

/* A record or list that begins now; its end sets the size at 'begin'. */
size_t lade__rnt_put_begin(rnt_out *out);
void lade__rnt_put_end(rnt_out *out, size_t begin);
size_t lade__rnt_put_list(rnt_out *out);
void lade__rnt_put_list_end(rnt_out *out, size_t begin, uint32_t count);

/* An envelope begins with 8 bytes for its head, which the end fills in, and ends with a checksum,
 * which '*sum' gets. */
void lade__rnt_put_envelope(rnt_out *out);
void lade__rnt_put_envelope_end(rnt_out *out, rnt_envelope_kind kind, uint64_t *sum);
void lade__rnt_put_link(rnt_out *out, const rnt_link *link);

/* ---- the schema --------------------------------------------------------------------------- */

/* The items of the four lists of a schema: fields, columns, aliases, extra infos. */
enum { RNT_FIELDS, RNT_COLUMNS, RNT_LISTS = 4 };
typedef struct rnt_lists {
	rnt_out items[RNT_LISTS];
	uint32_t count[RNT_LISTS];
} rnt_lists;
void lade__rnt_put_lists(rnt_out *out, const rnt_lists *lists);

/* How the blocks of a column are compressed. */
typedef struct rnt_codec {
	lade_spec *spec; /* NULL: not at all */
	rnt_method method;
	uint32_t setting; /* algorithm * 100 + level, for people */
} rnt_codec;
/* Fails: LADE_E_UNSUPPORTED: ROOT has no such codec; and as lade_spec_parse() */
lade_status lade__rnt_codec(lade_engine *engine, const char *text, rnt_codec *out, lade_error *err);

/* A physical column while it is written. */
typedef struct rnt_sink {
	rnt_codec codec;
	uint32_t alternative; /* of the switch that counts it, from 1 on */
	uint64_t next;        /* elements so far, those that are not stored included */
	uint64_t mark;        /* the same, before the fill that runs */
	/* Specs for elements of type 'dtype': of the stored type, and with the codec. */
	lade_dtype dtype;
	lade_spec *coded, *fused; /* coded NULL: nothing is done */
	bool ready;
} rnt_sink;

/* Reads the header's and the footer's lists again, and checks them as a reader does. */
lade_status lade__rnt_schema(lade_rntuple_writer *w, const rnt_lists *extension, lade_rntuple **out,
                             lade_error *err);
/* The payload of the header's envelope. */
void lade__rnt_put_header(rnt_out *out, const lade_rntuple_writer *w);
void lade__rnt_sinks_free(rnt_sink *sinks, size_t count);
/* Makes sinks for the physical columns of 't' from 'from' on, by the codecs of their fields, the
 * first of which is number 'first_field'; NULL: the writer's. */
lade_status lade__rnt_add_sinks(lade_rntuple_writer *w, const lade_rntuple *t, size_t from,
                                const char *const *codecs, uint64_t first_field, lade_error *err);
lade_status lade__rnt_add_fields(lade_rntuple_writer *w, const lade_rntuple_new_field *fields,
                                 size_t count, lade_error *err);

/* ---- the file ----------------------------------------------------------------------------- */

/* What TFile's header says. */
typedef struct rnt_root {
	uint32_t version, begin, name_size, compress, info_size, free_size;
	uint64_t end, free_off, info_off;
	uint8_t uuid[18];
} rnt_root;

typedef struct rnt_sinkfile {
	lade__file_draft *draft; /* a new file, until it is closed; or NULL */
	int fd;
	uint64_t at; /* where the next record goes */
	rnt_root root;
	char *path, *name; /* 'name': what its own records call it */
	uint64_t anchor;   /* of the anchor's payload; 0: there is none yet */
	uint64_t synced;   /* bytes that were written since the last sync */
	bool named;        /* it has its name */
} rnt_sinkfile;

#define RNT_BIG 2000000000u /* larger offsets take 8 bytes */

#define LADE__RNT_KEY_MAX (1u << 30) /* the most bytes of an envelope and of a page */

/* Writes pieces behind each other; it changes them. */
lade_status lade__rnt_write_at(rnt_sinkfile *file, struct iovec *pieces, size_t count, uint64_t off,
                               lade_error *err);
lade_status lade__rnt_sync(const rnt_sinkfile *file, lade_error *err);
/* Writes a record without a name at file->at; 'pieces' has room for the key in front.  '*off' gets
 * where its payload begins. */
lade_status lade__rnt_write_record(rnt_sinkfile *file, struct iovec *pieces, size_t count,
                                   uint64_t decoded_size, uint64_t *off, lade_error *err);
void lade__rnt_put_blob_key(rnt_out *out, const rnt_sinkfile *file, uint64_t size,
                            uint64_t decoded_size);
lade_status lade__rnt_write_envelope(rnt_sinkfile *file, const rnt_out *out, rnt_link *link,
                                     lade_error *err);

/* The first record: the directory, which lade__rnt_root_finish() fills in with all that is behind
 * the footer. */
lade_status lade__rnt_root_begin(rnt_sinkfile *file, lade_error *err);
lade_status lade__rnt_root_finish(rnt_sinkfile *file, const char *name, const rnt_anchor *anchor,
                                  lade_error *err);
/* The record of what is free, at the end; then, with 'head', the header. */
lade_status lade__rnt_root_free(rnt_sinkfile *file, lade_error *err);
lade_status lade__rnt_root_head(rnt_sinkfile *file, lade_error *err);
bool lade__rnt_root_parse(const uint8_t bytes[80], rnt_root *out);
void lade__rnt_anchor_bytes(const rnt_anchor *anchor, uint8_t out[78]);

/* ---- pages -------------------------------------------------------------------------------- */

/* What a cluster has of a physical column. */
typedef struct rnt_part {
	bool stored;      /* not suppressed */
	const void *data; /* of its first element */
	lade_place place;
	lade_dtype dtype;
	size_t elem_size;
	uint64_t count;
} rnt_part;

/* Encodes and writes the pages of a cluster, and notes where they are.  There is a part for each
 * physical column. */
lade_status lade__rnt_write_cluster(lade_rntuple_writer *w, uint64_t entry_count,
                                    const rnt_part *parts, lade_error *err);
lade_status lade__rnt_fill(lade_rntuple_writer *w, uint64_t entry_count,
                           const lade_rntuple_fill *fills, size_t count, lade_error *err);

/* ---- the writer --------------------------------------------------------------------------- */

/* Clusters that have no page list yet. */
typedef struct rnt_group {
	rnt_out summaries, columns; /* items of both lists */
	uint32_t count;
	uint64_t first, entry_count;
} rnt_group;

struct lade_rntuple_writer {
	lade_rntuple_writer_options options;
	char *name, *description;
	lade_engine *engine;
	rnt_codec codec;
	rnt_sinkfile file;
	lade_rntuple *schema;
	rnt_sink *sink; /* by physical column */
	size_t sink_count;
	rnt_lists lists;     /* of the header, until it is written */
	rnt_lists extension; /* what came later */
	rnt_out header;      /* the payload of the header's envelope, when it is written */
	rnt_anchor anchor;
	uint64_t header_sum;
	rnt_group group;
	rnt_out groups; /* items of the footer's list */
	uint32_t group_count;
	rnt_out rest; /* what follows the groups in the footer of a file that was there */
	uint64_t entry_count;
	bool dirty, failed;
	lade_rntuple_write_report report;
};

lade_batch_options lade__rnt_batch(const lade_rntuple_writer *w);
/* Writes the header, if that has not been done. */
lade_status lade__rnt_write_header(lade_rntuple_writer *w, lade_error *err);
lade_status lade__rnt_write_group(lade_rntuple_writer *w, lade_error *err);
/* Opens the file of an append. */
lade_status lade__rnt_append_open(lade_rntuple_writer *w, lade_error *err);

/* A file that is there, for changing it, with a lock; and a source of its bytes.  Both are NONE
 * after a failure.  Fails: LADE_E_STATE: another writer has it */
lade_status lade__rnt_open_locked(const char *path, int *fd, lade_source *source, lade_error *err);
/* Where the anchor's payload is.  Fails: LADE_E_UNSUPPORTED: it is compressed */
lade_status lade__rnt_anchor_at(const rnt_file *file, uint64_t key_off, uint64_t *off,
                                lade_error *err);

#endif
