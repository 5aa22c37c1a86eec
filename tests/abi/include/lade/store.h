/*
 * store.h: keys and their values: a directory, memory, a zip file, a web server, a store of the
 * caller's.  Reads any number of ranges of any number of values, straight into spans.
 *
 * A key is a name such as "a/b/zarr.json"; a value is a sequence of bytes with a version.  One call
 * reads ranges (io.h), each with its key:
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
 * A planner decides which ranges share a request, and which range becomes several requests.
 *
 * If the store has versions, all ranges of one value in one call have the same version.  If the
 * value changes meanwhile, the call reads it once more; if it changes again, its ranges fail with
 * LADE_E_CHANGED.
 *
 * docs/store.md describes each store and the planner.
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
 * Checks a key: names with '/' between them.  A name is not empty, not "." or "..", has no byte
 * below 0x20 and no 0x7f, and does not begin with ".lade-" (the temporary files of writes).
 *
 * Fails: LADE_E_ARG; err->offset is the first bad byte
 */
LADE_API lade_status lade_key_check(const char *key, lade_error *err);

/* ---- what all stores do --------------------------------------------------------------- */

/* A store, with a reference count: the caller of an open or new function gets one reference, and
 * the last unref closes the store.  Any number of threads may use a store at once. */
typedef struct lade_store lade_store;
LADE_API lade_store *lade_store_ref(lade_store *store);
LADE_API void lade_store_unref(lade_store *store); /* NULL is fine */

/* What a call did.  Zero-initialise and set struct_size. */
typedef struct lade_store_report {
	size_t struct_size;
	uint64_t request_count;
	uint64_t retry_count; /* requests that repeat a failed or outdated one */
	uint64_t wanted_size; /* bytes that the ranges got */
	uint64_t moved_size;  /* bytes that the requests read, gaps included */
	uint64_t ns;
} lade_store_report;

/*
 * Reads 'count' ranges, each with a key, and waits.  'report' may be NULL.
 *
 * Returns, Fails: as lade_source_read(); LADE_E_ARG for an invalid key.  The message names the key
 *                 and the range
 */
LADE_API lade_status lade_store_read(lade_store *store, lade_range *ranges, size_t count,
                                     const lade_io_options *options, lade_store_report *report,
                                     lade_error *err);

/* How a call ends that returns at once.  Zero-initialise, set struct_size and done, then the fields
 * you need. */
typedef struct lade_store_async {
	size_t struct_size;
	void (*done)(void *ctx, lade_status status, const lade_error *err);
	void *ctx;
	lade_store_report *report; /* or NULL */
} lade_store_async;

/*
 * Like lade_store_read(), but returns at once; done(ctx, status, err) is called when all ranges
 * have their results, with what lade_store_read() would return.
 *
 * 'ranges', what they point to, options->errors and async->report must be valid until done() is
 * called.  The call copies 'async' and 'options'; the token and allocator in them are used until
 * then.  A poll() of the token is not called.  The call references the store, so
 * lade_store_unref() may come first.
 *
 * A thread of the store calls done(), perhaps before this call returns, once if the call returns
 * LADE_OK and never if it fails.  A store has up to four such threads, for any number of calls.
 * done() may make further calls, but must not wait for a call of lade_store_read_async().
 *
 * Fails: LADE_E_ARG, LADE_E_NO_DEVICE, LADE_E_NOMEM.  A child of fork() gets no results of calls
 *        that its parent made
 */
LADE_API lade_status lade_store_read_async(lade_store *store, lade_range *ranges, size_t count,
                                           const lade_io_options *options,
                                           const lade_store_async *async, lade_error *err);

/* Gets the size and version of a key's value; both may be NULL.
 * Fails: LADE_E_NOT_FOUND, and as lade_store_read() */
LADE_API lade_status lade_store_look(lade_store *store, const char *key, uint64_t *size,
                                     lade_object_version *version, lade_error *err);

/*
 * Writes or deletes values, each with a key, in order, and waits.  A value is written whole or not
 * at all: readers see the old bytes or the new ones.
 *
 * Fails: as lade_sink_write(); LADE_E_UNSUPPORTED if the store is read-only
 */
LADE_API lade_status lade_store_write(lade_store *store, lade_write *writes, size_t count,
                                      const lade_io_options *options, lade_store_report *report,
                                      lade_error *err);

/* An entry of a listing, valid during the call of 'visit'. */
typedef struct lade_store_entry {
	size_t struct_size;
	const char *key; /* a key; or, ending with '/', the start of the keys of the next level */
	uint64_t size;   /* LADE_SIZE_UNKNOWN: not requested, unknown, or not a key */
} lade_store_entry;

/* Zero-initialise, set struct_size and visit, then the fields you need. */
typedef struct lade_store_listing {
	size_t struct_size;
	const char *prefix; /* "a/b/": keys that begin with it; NULL or "": all keys */
	bool level;         /* list one level: "a/b/c/" once for all keys "a/b/c/..." */
	bool sizes;         /* visit() gets sizes, which may cost a look at each value */
	/* Any status but LADE_OK ends the listing, which returns that status. */
	lade_status (*visit)(void *ctx, const lade_store_entry *entry);
	void *ctx;
	lade_cancel *cancel; /* or NULL */
} lade_store_listing;

/*
 * Calls 'visit' for each entry, in byte order.  Keys that are written or deleted meanwhile may be
 * listed or not.  It is no failure if no key has the prefix.
 *
 * Fails: LADE_E_UNSUPPORTED (the store cannot list), LADE_E_ARG, LADE_E_IO, LADE_E_NOMEM,
 *        LADE_E_CANCELLED, and what 'visit' returns
 */
LADE_API lade_status lade_store_list(lade_store *store, const lade_store_listing *listing,
                                     lade_error *err);

/*
 * Makes a source of one key's value, for example of a frame: lade_frame_open().  The source
 * references the store until its lade_source_close().
 *
 * Fails: LADE_E_ARG, LADE_E_NOMEM.  A missing key fails only when it is read
 */
LADE_API lade_status lade_store_object_open(lade_store *store, const char *key, lade_source *out,
                                            lade_error *err);

/* ---- what the planner would do --------------------------------------------------------- */

/* How a call would read its ranges.  Zero-initialise and set struct_size. */
typedef struct lade_store_plan {
	size_t struct_size;
	size_t range_count, request_count;
	size_t merged_count; /* ranges that share a request with the previous range */
	size_t split_count;  /* ranges and merged ranges that became several requests */
	uint64_t wanted_size, moved_size; /* of the ranges whose sizes are known beforehand */
	uint64_t gap_size; /* the largest gap between two ranges that the planner reads */
	/* The planner's estimates for the store, and the result for this call. */
	uint64_t request_ns;     /* until the first byte of a request arrives */
	uint64_t request_rate;   /* bytes a second of one request alone */
	uint64_t store_rate;     /* bytes a second of many requests at once */
	uint32_t parallel;       /* requests at once */
	uint64_t measured_count; /* measured calls; 0: these are first guesses */
	uint64_t expected_ns;
	char text[400]; /* the same in words */
} lade_store_plan;

/* Says how lade_store_read() would read these ranges, and reads nothing.  It uses only 'dst.size'
 * and 'dst.place' of the destinations.
 * Fails: LADE_E_ARG, LADE_E_NOMEM */
LADE_API lade_status lade_store_explain(lade_store *store, const lade_range *ranges, size_t count,
                                        const lade_io_options *options, lade_store_plan *plan,
                                        lade_error *err);

/* ---- stores of this library -------------------------------------------------------------- */

enum {
	/* All writes return when their bytes are on the disk, so they survive a loss of power.
	 * Without this flag, and without lade_io_options.sync, a write survives only the end of the
	 * process. */
	LADE_DIRECTORY_SYNC = 1,
	LADE_DIRECTORY_CREATE = 2,    /* make the directory if it does not exist */
	LADE_DIRECTORY_READ_ONLY = 4, /* writes fail with LADE_E_UNSUPPORTED */
	/* Read without the page cache (O_DIRECT), if the file system can: for files that are read
	 * once, from a fast disk.  Only for ranges that begin at a multiple of 4096, to an address
	 * that is one too; their last bytes, and other ranges, are read as usual. */
	LADE_DIRECTORY_DIRECT = 8,
	/* Read to spans on devices by libcufile (GPUDirect Storage), without a staging buffer.  A
	 * file that libcufile refuses is read through the host. */
	LADE_DIRECTORY_CUFILE = 16,
};

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_directory_options {
	size_t struct_size;
	uint64_t flags;     /* LADE_DIRECTORY_... */
	const char *cufile; /* the file of libcufile; NULL: the system's */
} lade_directory_options;

/*
 * Opens the files below a directory; keys are their paths.  Symbolic links are followed, also those
 * that lead out of the directory.
 *
 * Fails: LADE_E_NOT_FOUND, LADE_E_IO, LADE_E_NOMEM, LADE_E_ARG; LADE_E_UNSUPPORTED
 *        (LADE_DIRECTORY_CUFILE without a libcufile that works)
 */
LADE_API lade_status lade_store_directory_open(const char *path,
                                               const lade_directory_options *options,
                                               lade_store **out, lade_error *err);

/*
 * Removes the temporary files (".lade-" and 16 hexadecimal digits) that killed writes have left
 * below a directory: those that were last changed at least 'age_s' seconds ago and that no writer
 * has locked.  '*removed' gets their number; 'cancel' and 'removed' may be NULL.  It follows no
 * symbolic links.
 *
 * Writers of this library hold a lock on their files, also across hosts if the file system has such
 * locks, as NFS.  The age protects other writers: a day (86400) is safe.  Use 0 only if the file
 * system's locks work for all writers and none is older than this version.
 *
 * Fails: LADE_E_ARG (not a directory's store), LADE_E_UNSUPPORTED (read-only), LADE_E_IO,
 *        LADE_E_CANCELLED; some files may then be removed
 */
LADE_API lade_status lade_store_directory_sweep(lade_store *store, uint64_t age_s,
                                                lade_cancel *cancel, uint64_t *removed,
                                                lade_error *err);

/*
 * Makes a store of values in memory.  Written values are kept in 'place', in memory of 'allocator'
 * (NULL: the place's default), which must outlive the store.
 *
 * Fails: LADE_E_NO_DEVICE, LADE_E_NOMEM, LADE_E_ARG
 */
LADE_API lade_status lade_store_memory_new(lade_place place, const lade_allocator *allocator,
                                           lade_store **out, lade_error *err);

/*
 * Adds a value to a memory store without a copy, in memory of any place.  The memory must not
 * change until the key is written or deleted and all earlier reads are done, or until the store is
 * closed.
 *
 * Fails: LADE_E_ARG (also if it is not a memory store), LADE_E_NO_DEVICE, LADE_E_NOMEM
 */
LADE_API lade_status lade_store_memory_lend(lade_store *store, const char *key, lade_cspan value,
                                            lade_error *err);

enum {
	/* Do not verify checksums of values. */
	LADE_ZIP_IGNORE_CHECKSUMS = 1,
};

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_zip_options {
	size_t struct_size;
	uint64_t flags;         /* LADE_ZIP_... */
	uint64_t directory_max; /* the most bytes of the file's directory; 0: 1 GiB */
	uint64_t value_max;     /* the most bytes of a deflated value; 0: 1 GiB */
} lade_zip_options;

/*
 * Opens the entries of a zip file for reading; keys are their names.  Entries whose names are not
 * valid keys are left out.  If several have one name, the last one counts.
 *
 * Ranges of stored entries go straight from the source to their spans.  A deflated entry is read
 * and decoded whole, once in each call.  Checksums are verified for entries that are decoded or are
 * read whole on the host.  If the file's version changes, reads fail with LADE_E_CHANGED.
 *
 * Fails: LADE_E_CORRUPT, LADE_E_TRUNCATED, LADE_E_UNSUPPORTED (several disks), LADE_E_LIMIT,
 *        LADE_E_NOMEM, LADE_E_ARG, and as lade_source_read().  Reads also fail with
 *        LADE_E_CHECKSUM, LADE_E_UNSUPPORTED (encrypted, or another method), LADE_E_LIMIT
 * Owns:  takes 'source': its last lade_store_unref() closes it
 */
LADE_API lade_status lade_store_zip_open(lade_source source, const lade_zip_options *options,
                                         lade_store **out, lade_error *err);

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_zip_write_options {
	size_t struct_size;
	int level; /* of Deflate, 1 to 12, for values that it makes smaller; 0: store all values */
} lade_zip_write_options;

/*
 * Makes a new zip file for writing, as a temporary file next to 'path'.  lade_store_zip_finish()
 * writes the directory, waits for the disk and renames the file: readers see the old file or the
 * whole new one.  Without it, the last lade_store_unref() removes the temporary file.
 *
 * A value that is written again leaves its old bytes in the file.  Equal writes in the same order
 * make equal files.
 *
 * Fails: LADE_E_ARG, LADE_E_NOT_FOUND (the directory), LADE_E_IO, LADE_E_NOMEM.  Reads fail with
 *        LADE_E_UNSUPPORTED, and so do writes with a version
 */
LADE_API lade_status lade_store_zip_create(const char *path, const lade_zip_write_options *options,
                                           lade_store **out, lade_error *err);

/* Finishes a new zip file.  'cancel' may be NULL.  After LADE_E_IO or LADE_E_CANCELLED try again.
 * Fails: LADE_E_ARG (not such a store), LADE_E_STATE (finished, or a write failed), LADE_E_IO,
 *        LADE_E_CANCELLED */
LADE_API lade_status lade_store_zip_finish(lade_store *store, lade_cancel *cancel, lade_error *err);

enum {
	LADE_HTTP_NO_RETRIES = 1, /* do not repeat failed requests */
};

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_http_options {
	size_t struct_size;
	uint64_t flags;             /* LADE_HTTP_... */
	const char *const *headers; /* "Authorization: Bearer ...", sent with each request */
	size_t header_count;
	unsigned parallel;   /* requests at once, up to 256; 0: 16 */
	unsigned retries;    /* for each request, up to 100; 0: 4 */
	unsigned connect_ms; /* the most time to connect; 0: 10,000 */
	unsigned idle_ms;    /* a request without bytes for this long fails; 0: 30,000 */
	const char *ca_file; /* certificates that https trusts; NULL: the system's */
	const char *libcurl; /* the file of libcurl; NULL: the system's */
} lade_http_options;

/*
 * Opens what a web server has below a URL, for reading; a key is a path after it.  The version is
 * the ETag, or else the date and the size.  The call opens libcurl at run time and sends nothing to
 * the server.  One thread of the store does all transfers and reuses connections.
 *
 * The store retries if there is no connection, a body ends early, no bytes arrive for idle_ms, or
 * the code is 408, 425, 429, 500, 502, 503 or 504.  Pauses double from 0.1 s to 10 s; a Retry-After
 * of the server counts up to 10 s.  Redirections are followed only without headers, which may be
 * credentials.  Servers that return whole values for ranges work, and the planner adapts.
 *
 * Fails:   LADE_E_UNSUPPORTED (no libcurl of 7.68 or later), LADE_E_ARG, LADE_E_NOMEM.
 *          lade_store_list() and lade_store_write() fail with LADE_E_UNSUPPORTED; reads with
 *          LADE_E_IO, whose message has the code
 * Owns:    the call copies the options
 */
LADE_API lade_status lade_store_http_open(const char *url, const lade_http_options *options,
                                          lade_store **out, lade_error *err);

/* Keys that begin with 'prefix' are in 'store', under the same names. */
typedef struct lade_store_route {
	const char *prefix; /* "a/b/c/"; NULL or "": all */
	lade_store *store;
} lade_store_route;

/*
 * Makes one store of several: each key belongs to the store with the longest matching prefix.  For
 * example, metadata is in one store and chunks are in another.  A key without a matching prefix has
 * no value.  Each store plans its requests; the requests of all stores run at the same time.
 *
 * Fails: LADE_E_ARG (no store, a prefix twice), LADE_E_NOMEM
 * Owns:  the new store references each store
 */
LADE_API lade_status lade_store_composite_new(const lade_store_route *routes, size_t count,
                                              lade_store **out, lade_error *err);

/* ---- a store of the caller's ------------------------------------------------------------- */

enum {
	/* read() accepts spans on devices.  Without this flag the library passes a staging buffer
	 * and copies from it. */
	LADE_STORE_ANY_PLACE = 1,
	/* Small reads are cheap. */
	LADE_STORE_LOCAL = 2,
	/* read() uses lade_reading_put() or lade_reading_part(), so ranges can share a request.
	 * Without this flag each range is at least one request. */
	LADE_STORE_PARTS = 4,
};

/* The functions of a store.  Zero-initialise, set struct_size and read, then the others you
 * have. */
typedef struct lade_store_ops {
	size_t struct_size;
	uint32_t flags;    /* LADE_STORE_... */
	uint32_t parallel; /* how many requests at once still make it faster; 0: 1 */
	/* First estimates, which measurements replace; 0: those of a disk. */
	uint64_t request_ns;   /* until the first byte of a request arrives */
	uint64_t request_rate; /* bytes a second of one request */

	/* Like lade_source_ops.read(); each range has a valid key.  Requests of one key are
	 * consecutive; those with known offsets are in ascending order. */
	void (*read)(void *ctx, lade_reading *reading, size_t count);

	/* Like lade_sink_ops.write().  NULL: the store is read-only. */
	lade_status (*write)(void *ctx, lade_write *write, const lade_io_options *options,
	                     lade_error *err);

	/* Lists keys; the prefix is "" or ends with '/'.  NULL: the store cannot list. */
	lade_status (*list)(void *ctx, const lade_store_listing *listing, lade_error *err);

	void (*close)(void *ctx); /* NULL: nothing to do */
} lade_store_ops;

/*
 * Makes a store of your own functions.  They are called from any thread, several at once; close()
 * is called by the last lade_store_unref() only.  The call copies the ops, and 'name', which is for
 * messages.
 *
 * Fails: LADE_E_ARG, LADE_E_NOMEM
 */
LADE_API lade_status lade_store_new(const lade_store_ops *ops, void *ctx, const char *name,
                                    lade_store **out, lade_error *err);

#ifdef __cplusplus
}
#endif

#endif
