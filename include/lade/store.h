/*
 * store.h: keys and their values: a directory, memory, a zip file, a web server, a store of the
 * caller's.  Reads any number of ranges of any number of values, straight into spans.
 *
 * A key is a name such as "a/b/zarr.json", a value a sequence of bytes with a version.  One call
 * reads ranges as io.h describes them, each with its key; a planner decides which of them become
 * one request, and which request becomes several:
 *
 *	lade_store *store;
 *	char meta[4096], chunk[4096];
 *	lade_range ranges[2] = {
 *		{.key = "zarr.json", .kind = LADE_RANGE_REST,
 *		 .dst = lade_host_span(meta, sizeof meta)},
 *		{.key = "c/0/0", .off = 100, .dst = lade_host_span(chunk, sizeof chunk)},
 *	};
 *	lade_status status = lade_store_directory_open("data.zarr", NULL, &store, &err);
 *	if (status == LADE_OK) {
 *		status = lade_store_read(store, ranges, 2, NULL, NULL, &err);
 *		lade_store_unref(store);
 *	}
 *
 * All ranges of one value in one call are of one version, as far as the store has versions: if the
 * value changes meanwhile, the call reads it once more; if it changes again, its ranges fail with
 * LADE_E_CHANGED.
 *
 * docs/store.md says what each store does, and how the planner decides.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_STORE_H
#define LADE_STORE_H

#include <lade/io.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The longest key, in bytes. */
#define LADE_KEY_MAX 1024

/*
 * A key is names with '/' between them.  A name is not empty, not "." or "..", has no byte below
 * 0x20 and no 0x7f, and does not begin with ".lade-" (the temporary files of writes).
 * Fails: LADE_E_ARG, err->offset is the first bad byte
 */
LADE_API lade_status lade_key_check(const char *key, lade_error *err);

/* ---- what all stores do --------------------------------------------------------------- */

/* Shared: what is opened or made has one reference; the last unref ends it.  Any number of threads
 * may use a store at once. */
typedef struct lade_store lade_store;
LADE_API lade_store *lade_store_ref(lade_store *store);
LADE_API void lade_store_unref(lade_store *store); /* NULL is fine */

/* What a call has done.  Zero-initialise, and set struct_size. */
typedef struct lade_store_report {
	size_t struct_size;
	uint64_t request_count;
	uint64_t retry_count; /* of these, those that repeat one that failed or was outdated */
	uint64_t wanted_size; /* bytes that the ranges got */
	uint64_t moved_size;  /* bytes that the requests brought, unwanted ones included */
	uint64_t ns;
} lade_store_report;

/*
 * Reads 'count' ranges, each with a key, and waits.  'options' and failures are those of
 * lade_source_read(), and a message names the key and the range; a key that is none fails with
 * LADE_E_ARG.  'report' may be NULL.
 */
LADE_API lade_status lade_store_read(lade_store *store, lade_range *ranges, size_t count,
                                     const lade_io_options *options, lade_store_report *report,
                                     lade_error *err);

/* The size and version of a key's value; both may be NULL.  Fails: LADE_E_NOT_FOUND, and as
 * lade_store_read() */
LADE_API lade_status lade_store_look(lade_store *store, const char *key, uint64_t *size,
                                     lade_object_version *version, lade_error *err);

/*
 * Writes and deletes values, each with a key, in their order, and waits: lade_sink_write().  A
 * value is written whole or not at all: readers see the old bytes or the new ones.
 * Fails: as lade_sink_write(), and LADE_E_UNSUPPORTED: the store is for reading only
 */
LADE_API lade_status lade_store_write(lade_store *store, lade_write *writes, size_t count,
                                      const lade_io_options *options, lade_store_report *report,
                                      lade_error *err);

/* What a listing gives, valid during the call of 'visit'. */
typedef struct lade_store_entry {
	const char *key; /* a key; or what keys of the next level begin with: it ends with '/' */
	uint64_t size;   /* LADE_SIZE_UNKNOWN: not asked for, not known, or no key */
} lade_store_entry;

/* Zero-initialise, set struct_size and visit, then what is wanted. */
typedef struct lade_store_listing {
	size_t struct_size;
	const char *prefix; /* "a/b/": the keys that begin so; NULL or "": all */
	bool level;         /* one level: of "a/b/c/0" comes "a/b/c/", once */
	bool sizes;         /* visit() gets sizes, which may cost a look at each value */
	/* What is not LADE_OK ends the listing, which returns it. */
	lade_status (*visit)(void *ctx, const lade_store_entry *entry);
	void *ctx;
	lade_cancel *cancel; /* or NULL */
} lade_store_listing;

/*
 * Calls 'visit' for each entry, in the order of their bytes.  Keys that are written or deleted
 * meanwhile may be among them or not.  A prefix that no key has is no failure.
 * Fails: LADE_E_UNSUPPORTED (the store cannot list), LADE_E_ARG, LADE_E_IO, LADE_E_NOMEM,
 *        LADE_E_CANCELLED, and what 'visit' returns
 */
LADE_API lade_status lade_store_list(lade_store *store, const lade_store_listing *listing,
                                     lade_error *err);

/*
 * A source that is one key's value, such as a frame in a store: lade_frame_open().  It holds a
 * reference of the store until its lade_source_close().
 * Fails: LADE_E_ARG, LADE_E_NOMEM; the key is looked for only when it is read
 */
LADE_API lade_status lade_store_object_open(lade_store *store, const char *key, lade_source *out,
                                            lade_error *err);

/* ---- what the planner would do --------------------------------------------------------- */

/* Zero-initialise, and set struct_size. */
typedef struct lade_store_plan {
	size_t struct_size;
	size_t range_count, request_count;
	size_t merged_count; /* ranges that share a request with the one before */
	size_t split_count;  /* ranges and merged ranges that became several requests */
	uint64_t wanted_size, moved_size; /* where the ranges' sizes are known beforehand */
	uint64_t gap_size; /* unwanted bytes between two ranges that the planner reads, at most */
	/* What it believes of the store, and what follows for this call. */
	uint64_t request_ns;     /* before the first byte of a request comes */
	uint64_t request_rate;   /* bytes a second of one request alone */
	uint64_t store_rate;     /* bytes a second of many at once */
	uint32_t parallel;       /* requests at once */
	uint64_t measured_count; /* calls that were measured; 0: these are first guesses */
	uint64_t expected_ns;
	char text[400]; /* the same in words */
} lade_store_plan;

/* How lade_store_read() would read these ranges.  Reads nothing: only 'dst.size' and 'dst.place' of
 * the destinations matter.  Fails: LADE_E_ARG, LADE_E_NOMEM */
LADE_API lade_status lade_store_explain(lade_store *store, const lade_range *ranges, size_t count,
                                        const lade_io_options *options, lade_store_plan *plan,
                                        lade_error *err);

/* ---- stores of this library -------------------------------------------------------------- */

enum {
	/* A write returns when its bytes are on the disk: it survives a loss of power.  Without it,
	 * a write survives the end of the process only. */
	LADE_DIRECTORY_SYNC = 1,
	LADE_DIRECTORY_CREATE = 2,    /* makes the directory, if it is not there */
	LADE_DIRECTORY_READ_ONLY = 4, /* writes fail with LADE_E_UNSUPPORTED */
};

/* Zero-initialise, set struct_size, then what is wanted. */
typedef struct lade_directory_options {
	size_t struct_size;
	uint64_t flags; /* LADE_DIRECTORY_... */
} lade_directory_options;

/*
 * The files below a directory; keys are their paths.  Symbolic links are followed, also those that
 * lead out of it.
 * Fails: LADE_E_NOT_FOUND, LADE_E_IO, LADE_E_NOMEM, LADE_E_ARG
 */
LADE_API lade_status lade_store_directory_open(const char *path,
                                               const lade_directory_options *options,
                                               lade_store **out, lade_error *err);

/*
 * Values in memory.  'place' is where written values are kept, in memory of 'allocator' (NULL: the
 * place's default).  The allocator outlives the store.
 * Fails: LADE_E_NO_DEVICE, LADE_E_NOMEM, LADE_E_ARG
 */
LADE_API lade_status lade_store_memory_new(lade_place place, const lade_allocator *allocator,
                                           lade_store **out, lade_error *err);

/*
 * Gives a memory store a value without a copy: memory on any place, which stays and is not changed
 * until the key is written or deleted and all reads that began before are done, or the store ends.
 * Fails: LADE_E_ARG (also: not a memory store), LADE_E_NO_DEVICE, LADE_E_NOMEM
 */
LADE_API lade_status lade_store_memory_lend(lade_store *store, const char *key, lade_cspan value,
                                            lade_error *err);

enum {
	/* Does not compare values with their checksums. */
	LADE_ZIP_IGNORE_CHECKSUMS = 1,
};

/* Zero-initialise, set struct_size, then what is wanted. */
typedef struct lade_zip_options {
	size_t struct_size;
	uint64_t flags;         /* LADE_ZIP_... */
	uint64_t directory_max; /* bytes of the file's directory; 0: 1 GiB */
	uint64_t value_max;     /* bytes of a value that is deflated; 0: 1 GiB */
} lade_zip_options;

/*
 * The entries of a zip file, for reading; keys are their names.  Entries whose names are no keys
 * are left out, and of several with one name all but the last.  Ranges of stored entries go
 * straight from the source to their spans.  A deflated entry is read and decoded whole, once a
 * call.  What is read whole on the host, or decoded, is compared with its checksum.
 *
 * If the file's version changes, reads fail with LADE_E_CHANGED.
 * Fails: LADE_E_CORRUPT, LADE_E_TRUNCATED, LADE_E_UNSUPPORTED (several disks), LADE_E_LIMIT,
 *        LADE_E_NOMEM, LADE_E_ARG, and as lade_source_read().  Reads also fail with
 *        LADE_E_CHECKSUM, LADE_E_UNSUPPORTED (encrypted, or another method), LADE_E_LIMIT
 * Owns:  takes 'source': its last lade_store_unref() closes it
 */
LADE_API lade_status lade_store_zip_open(lade_source source, const lade_zip_options *options,
                                         lade_store **out, lade_error *err);

/* Zero-initialise, set struct_size, then what is wanted. */
typedef struct lade_zip_write_options {
	size_t struct_size;
	int level; /* of Deflate, 1 to 12, for values that it makes smaller; 0: all are stored */
} lade_zip_write_options;

/*
 * A new zip file, for writing.  Its bytes go to a temporary file beside 'path'.
 * lade_store_zip_finish() writes the directory, waits for the disk, and gives the file its name:
 * readers see the old file or the whole new one.  Without it the last lade_store_unref() removes
 * what was written.  A value that is written again leaves the old one's bytes in the file.  Equal
 * writes in the same order make equal files.
 * Fails: LADE_E_ARG, LADE_E_NOT_FOUND (the directory), LADE_E_IO, LADE_E_NOMEM; reads, and writes
 *        that want a version, with LADE_E_UNSUPPORTED
 */
LADE_API lade_status lade_store_zip_create(const char *path, const lade_zip_write_options *options,
                                           lade_store **out, lade_error *err);

/* 'cancel' may be NULL.  After LADE_E_IO or LADE_E_CANCELLED it can be tried again.
 * Fails: LADE_E_ARG (not such a store), LADE_E_STATE (finished, or a write failed), LADE_E_IO,
 *        LADE_E_CANCELLED */
LADE_API lade_status lade_store_zip_finish(lade_store *store, lade_cancel *cancel, lade_error *err);

enum {
	LADE_HTTP_NO_RETRIES = 1, /* a request that fails is not repeated */
};

/* Zero-initialise, set struct_size, then what is wanted. */
typedef struct lade_http_options {
	size_t struct_size;
	uint64_t flags;             /* LADE_HTTP_... */
	const char *const *headers; /* "Authorization: Bearer ...", sent with each request */
	size_t header_count;
	unsigned parallel;   /* requests at once, up to 256; 0: 16 */
	unsigned retries;    /* of a request, up to 100; 0: 4 */
	unsigned connect_ms; /* to connect, at most; 0: 10,000 */
	unsigned idle_ms;    /* a request that brings no bytes for so long has failed; 0: 30,000 */
	const char *ca_file; /* certificates that https trusts; NULL: the system's */
	const char *libcurl; /* the library's file; NULL: the system's */
} lade_http_options;

/*
 * What a server has below a URL, for reading: a key is a path behind it.  The version is the ETag,
 * or else the date and the size.  libcurl is opened at run time; a thread of the store does all
 * transfers, and uses connections again.
 *
 * No connection, a body that ends early, no bytes for idle_ms, and the codes 408, 425, 429, 500,
 * 502, 503 and 504 are tried again, after pauses that double from 0.1 s to 10 s; a Retry-After of
 * the server is kept within that.  Redirections are followed if there are no headers, which may
 * hold credentials.  A server that gives whole values for ranges works, and the planner takes note.
 *
 * Fails:   LADE_E_UNSUPPORTED (no libcurl of 7.68 or later), LADE_E_ARG, LADE_E_NOMEM.  Nothing is
 *          asked of the server yet.  lade_store_list() and lade_store_write() fail with
 *          LADE_E_UNSUPPORTED, reads with LADE_E_IO, which tells the code
 * Owns:    the caller keeps the options; all of them are copied
 */
LADE_API lade_status lade_store_http_open(const char *url, const lade_http_options *options,
                                          lade_store **out, lade_error *err);

/* Keys that begin with 'prefix' are in 'store', with the same names. */
typedef struct lade_store_route {
	const char *prefix; /* "a/b/c/"; NULL or "": all */
	lade_store *store;
} lade_store_route;

/*
 * A store that hands each key on to the store of the longest prefix that it begins with: metadata
 * here, chunks there.  A key that begins with none has no value.  Each store plans its requests;
 * those of several stores are under way at once.
 * Fails: LADE_E_ARG (no store, a prefix twice), LADE_E_NOMEM
 * Owns:  a reference of each store
 */
LADE_API lade_status lade_store_composite_new(const lade_store_route *routes, size_t count,
                                              lade_store **out, lade_error *err);

/* ---- a store of the caller's ------------------------------------------------------------- */

enum {
	/* Spans may be on devices.  Without it the library has the store read into a staging
	 * buffer, and copies. */
	LADE_STORE_ANY_PLACE = 1,
	/* A read costs little more than its bytes. */
	LADE_STORE_LOCAL = 2,
	/* read() gives bytes by lade_reading_put(), or looks at lade_reading_part(): then ranges
	 * can share a request.  Without it each range is at least one request. */
	LADE_STORE_PARTS = 4,
};

/* What a store does.  Zero-initialise, set struct_size and read, then what is wanted. */
typedef struct lade_store_ops {
	size_t struct_size;
	uint32_t flags;    /* LADE_STORE_... */
	uint32_t parallel; /* requests at once that make it faster; 0: 1 */
	/* First guesses, which measurements replace; 0: those of a disk. */
	uint64_t request_ns;   /* before the first byte of a request comes */
	uint64_t request_rate; /* bytes a second of one request */

	/* Reads as lade_source_ops.read() does; each range has a key that was checked.  Requests of
	 * one key stand together, those of known offsets in their order. */
	void (*read)(void *ctx, lade_reading *reading, size_t count);

	/* Writes as lade_sink_ops.write() does.  NULL: for reading only. */
	lade_status (*write)(void *ctx, lade_write *write, const lade_io_options *options,
	                     lade_error *err);

	/* The listing's prefix is "" or ends with '/'.  NULL: cannot list. */
	lade_status (*list)(void *ctx, const lade_store_listing *listing, lade_error *err);

	void (*close)(void *ctx); /* NULL: nothing to do */
} lade_store_ops;

/*
 * A store by functions, which are called from any thread, several at once.  The ops are copied;
 * 'name' is for messages, and copied, too.  close() is called by the last lade_store_unref() only.
 * Fails: LADE_E_ARG, LADE_E_NOMEM
 */
LADE_API lade_status lade_store_new(const lade_store_ops *ops, void *ctx, const char *name,
                                    lade_store **out, lade_error *err);

#ifdef __cplusplus
}
#endif

#endif
