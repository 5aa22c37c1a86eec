/*
 * io.h: reads ranges of files and other objects into memory of any kind, and writes whole objects.
 *
 * This reads the first 16 and the last 64 bytes of a file:
 *
 *	lade_source source;
 *	lade_object_version version;
 *	char head[16], tail[64];
 *	lade_range ranges[2] = {
 *		{.dst = lade_host_span(head, sizeof head)},
 *		{.dst = lade_host_span(tail, sizeof tail), .kind = LADE_RANGE_LAST,
 *		 .version = &version},
 *	};
 *	lade_status status = lade_source_file_open("x.lade", NULL, &source, &err);
 *	if (status == LADE_OK) {
 *		status = lade_source_read(source, ranges, 2, NULL, &err);
 *		lade_source_close(source);
 *	}
 *
 * Afterwards 'tail' has ranges[1].size bytes, and ranges[1].object_size is the file's size.  A
 * later call that sets 'want' to &version fails with LADE_E_CHANGED if the file has changed.
 *
 * An object is a sequence of bytes with a size and usually a version: a file, memory, what a server
 * has under a URL.  To read objects of your own, write one function, read(), in a lade_source_ops
 * (docs/io.md).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_IO_H
#define LADE_IO_H

#include <lade/cancel.h>
#include <lade/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Identifies a state of an object: a server's ETag; or a file's device, inode, modification time
 * and size.  Equal bytes mean the same state, with one gap: two changes of a file in place, to the
 * same size, within one tick of the system's clock (usually 4 ms) give equal versions.
 */
typedef struct lade_object_version {
	uint8_t size; /* of 'bytes'; 0: unknown */
	uint8_t bytes[127];
} lade_object_version;

/* True if both are known and equal. */
LADE_API bool lade_object_version_equal(const lade_object_version *a, const lade_object_version *b);

/* ---- what all calls take ---------------------------------------------------------------- */

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_io_options {
	size_t struct_size;
	size_t request_size; /* sizeof(lade_range) or sizeof(lade_write); 0: as in 0.2.0 */
	unsigned threads;    /* the most that may work at once; 0: the source chooses */
	lade_error *errors;  /* one for each request, filled in for those that fail; or NULL */
	lade_cancel *cancel; /* requests that have not begun fail with LADE_E_CANCELLED; or NULL */
	/* Spans on devices are read and written after the work of this stream.  NULL: the default
	 * stream of each device. */
	lade_stream stream;
	const lade_allocator *pinned; /* for staging buffers; NULL: the default for LADE_PINNED */
	/* A write to a directory's store returns when its bytes and its name are on the disk, as
	 * with LADE_DIRECTORY_SYNC.  A file's sink always does that; stores without a disk ignore
	 * it; one of yours sees it in its write(). */
	uint64_t sync; /* 0 or 1 */
} lade_io_options;

/* ---- reading ------------------------------------------------------------------------------ */

typedef enum lade_range_kind {
	LADE_RANGE_AT = 0,   /* dst.size bytes at 'off'; LADE_E_RANGE if there are fewer */
	LADE_RANGE_REST = 1, /* from 'off' to the end; LADE_E_NOSPACE above dst.size bytes */
	LADE_RANGE_LAST = 2, /* the last dst.size bytes; the whole object if it has fewer */
} lade_range_kind;

/* A range to read, and its result. */
typedef struct lade_range {
	const char *key; /* which object; NULL: the source's only one */
	uint64_t off;
	lade_range_kind kind;
	lade_span dst; /* with 0 bytes, only the object's size and version are fetched */
	/* Fail with LADE_E_CHANGED unless the object has this version.  NULL: any version. */
	const lade_object_version *want;
	lade_object_version *version; /* gets the version; NULL: not needed */

	/* The result. */
	lade_status status;   /* LADE_E_NOT_FOUND: there is no such object */
	size_t size;          /* bytes stored, from the start of 'dst'; 0 on failure */
	uint64_t object_size; /* LADE_SIZE_UNKNOWN: the source does not know it */
} lade_range;

/* The ranges of one call while a source reads them. */
typedef struct lade_reading lade_reading;

enum {
	/* read() accepts spans on devices.  Without this flag the library passes a staging buffer
	 * and copies from it. */
	LADE_SOURCE_ANY_PLACE = 1,
	/* Small reads are cheap, and several threads may call read() at once: each thread of a
	 * reader then reads what it decodes.  Without this flag, as for servers, readers request
	 * many ranges at once. */
	LADE_SOURCE_LOCAL = 2,
};

/* The functions of a source.  Zero-initialise, set struct_size and read, then the others you
 * have. */
typedef struct lade_source_ops {
	size_t struct_size;
	uint32_t flags; /* LADE_SOURCE_... */

	/*
	 * Reads the 'count' ranges of a call.  lade_reading_range() returns each range, and
	 * lade_range_place() which bytes it means.  For each range set 'size', 'object_size' and
	 * '*version' (unless that is NULL), then call lade_reading_done() once: in any order, on
	 * any thread, also after read() has returned.  The range and its memory are valid until
	 * then.  A source with versions must check 'want'.
	 */
	void (*read)(void *ctx, lade_reading *reading, size_t count);

	/* Returns all bytes in place, for readers that need no copy, valid until close().  'data'
	 * NULL, or view NULL: the object is not in memory. */
	lade_cspan (*view)(void *ctx);

	void (*close)(void *ctx); /* NULL: nothing to do */
} lade_source_ops;

/* Copy it freely; close it once, with lade_source_close().  'ops' must outlive it. */
typedef struct lade_source {
	const lade_source_ops *ops;
	void *ctx;
} lade_source;

/*
 * Reads 'count' ranges and waits.  It tries every range: one that fails does not stop the others.
 * If a range fails, the contents of its 'dst' are unspecified.  Spans must not overlap.
 *
 * Returns: LADE_OK if all ranges are read; else the status of the first range (by index) that
 *          failed, and '*err' says which and why
 * Fails:   LADE_E_RANGE, LADE_E_NOSPACE, LADE_E_NOT_FOUND, LADE_E_CHANGED, LADE_E_CANCELLED,
 *          LADE_E_IO, LADE_E_TRUNCATED (the source gave fewer bytes than it has),
 *          LADE_E_UNSUPPORTED (a key), LADE_E_ARG, LADE_E_NO_DEVICE, LADE_E_DEVICE, LADE_E_NOMEM
 * Threads: any number of callers for sources of this library; for others, as their read()
 */
LADE_API lade_status lade_source_read(lade_source source, lade_range *ranges, size_t count,
                                      const lade_io_options *options, lade_error *err);

/* Closes a source, the library's or your own. */
LADE_API void lade_source_close(lade_source source);

/* ---- for sources ----------------------------------------------------------------------- */

/*
 * Stores which bytes [*off, *off + *size) a range means in an object of 'object_size' bytes.
 *
 * Fails: LADE_E_RANGE, LADE_E_NOSPACE; then '*size' is 0.  LADE_E_ARG
 */
LADE_API lade_status lade_range_place(const lade_range *range, uint64_t object_size, uint64_t *off,
                                      size_t *size, lade_error *err);

/* Range 'index' of a call, below the 'count' that read() got.  Do not use it after
 * lade_reading_done(). */
LADE_API lade_range *lade_reading_range(lade_reading *reading, size_t index);

/* Reports that range 'index' is done.  'err' may be NULL and is ignored if 'status' is LADE_OK.  A
 * second report for a range is ignored while other ranges are not done. */
LADE_API void lade_reading_done(lade_reading *reading, size_t index, lade_status status,
                                const lade_error *err);

/*
 * Where bytes of a range go.  A range of a plain source has one part, its 'dst'.  A store's planner
 * (store.h) may join several ranges of its caller into one, whose 'dst.data' is then NULL.  Parts
 * are in ascending order; nobody needs the bytes between them.
 */
typedef struct lade_part {
	size_t at; /* from the range's first byte */
	lade_span dst;
} lade_part;
LADE_API size_t lade_reading_part_count(const lade_reading *reading, size_t index);
LADE_API lade_part lade_reading_part(const lade_reading *reading, size_t index, size_t part);

/*
 * Copies bytes to the parts of range 'index' and waits.  'data' has the range's bytes from byte
 * 'at' on; bytes outside all parts are dropped.
 *
 * Fails: LADE_E_NO_DEVICE, LADE_E_DEVICE; never between places on the host
 */
LADE_API lade_status lade_reading_put(lade_reading *reading, size_t index, size_t at,
                                      lade_cspan data, lade_error *err);

/* The options of the call.  'threads' is 0 if the caller did not set it.  Valid until the last
 * range is done. */
LADE_API const lade_io_options *lade_reading_options(const lade_reading *reading);

/* True if the call is cancelled: report ranges that have not begun as LADE_E_CANCELLED. */
LADE_API bool lade_reading_cancelled(lade_reading *reading);

/* ---- sources of this library ---------------------------------------------------------------- */

enum {
	/* Map the file, so that readers use the bytes in place.  Do not use it for files that may
	 * shrink: the process would get SIGBUS. */
	LADE_FILE_MAP = 1,
};

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_file_options {
	size_t struct_size;
	uint64_t flags; /* LADE_FILE_... */
} lade_file_options;

/*
 * Opens a regular file, or another file that has a size and can be read at any offset.  Adjacent
 * ranges are read with one system call; large reads use several threads.
 *
 * Fails: LADE_E_NOT_FOUND, LADE_E_IO, LADE_E_NOMEM, LADE_E_ARG
 */
LADE_API lade_status lade_source_file_open(const char *path, const lade_file_options *options,
                                           lade_source *out, lade_error *err);

/*
 * Makes a source of memory of any kind, borrowed until the close.  Bytes go from device to device
 * without the host.  Memory has no version: a range with 'want' fails with LADE_E_CHANGED.
 *
 * Fails: LADE_E_NOMEM, LADE_E_ARG
 */
LADE_API lade_status lade_source_memory_open(lade_cspan memory, lade_source *out, lade_error *err);

/* ---- writing --------------------------------------------------------------------------------- */

typedef enum lade_write_kind {
	LADE_WRITE_ALWAYS = 0,     /* create or replace the object */
	LADE_WRITE_IF_ABSENT = 1,  /* LADE_E_CHANGED if the object exists */
	LADE_WRITE_IF_VERSION = 2, /* LADE_E_CHANGED unless the object has the version 'want' */
	LADE_DELETE_IF_VERSION = 3, /* the same; 'want' NULL: any version */
} lade_write_kind;

/* An object to write or delete, and the result. */
typedef struct lade_write {
	const char *key; /* which object; NULL: the sink's only one */
	lade_write_kind kind;
	lade_status status; /* the result */
	lade_cspan src;     /* all bytes of the object */
	const lade_object_version *want;
	lade_object_version *version; /* gets the new version; NULL: not needed */
} lade_write;

/* The functions of a sink.  Zero-initialise, set struct_size and write, then close. */
typedef struct lade_sink_ops {
	size_t struct_size;
	uint32_t flags; /* none yet */
	/* Writes or deletes one object and waits; 'src' is on the host. */
	lade_status (*write)(void *ctx, lade_write *write, const lade_io_options *options,
	                     lade_error *err);
	void (*close)(void *ctx); /* NULL: nothing to do */
} lade_sink_ops;

typedef struct lade_sink {
	const lade_sink_ops *ops;
	void *ctx;
} lade_sink;

/*
 * Does 'count' writes in order and waits.  An object is written whole or not at all: readers see
 * the old bytes or the new ones.
 *
 * Returns, Fails: as lade_source_read()
 */
LADE_API lade_status lade_sink_write(lade_sink sink, lade_write *writes, size_t count,
                                     const lade_io_options *options, lade_error *err);

/* Closes a sink. */
LADE_API void lade_sink_close(lade_sink sink);

/*
 * Makes a sink for the file 'path', which need not exist.  A write makes a temporary file next to
 * it, syncs it to the disk, renames it, and syncs the directory.  A new file has mode 0666 without
 * the umask's bits; a replaced file keeps its mode.  A symbolic link is followed, not replaced.  A
 * device or a pipe is written to, not replaced.
 *
 * LADE_WRITE_IF_ABSENT is safe against all other programs.  LADE_WRITE_IF_VERSION and
 * LADE_DELETE_IF_VERSION are safe only against programs that use this library, which locks the
 * directory: no system call compares a file's version and replaces the file.
 *
 * Fails: LADE_E_NOMEM, LADE_E_ARG
 */
LADE_API lade_status lade_sink_file_open(const char *path, lade_sink *out, lade_error *err);

/* ---- bytes in order ---------------------------------------------------------------------- */

/* Gives bytes in order.  read() stores up to 'cap' bytes, and their number in '*got': at least 1,
 * or 0 at the end. */
typedef struct lade_input {
	void *ctx;
	lade_status (*read)(void *ctx, void *dst, size_t cap, size_t *got, lade_error *err);
} lade_input;

/* Takes bytes in order.  write() takes all 'size' bytes or fails. */
typedef struct lade_output {
	void *ctx;
	lade_status (*write)(void *ctx, const void *src, size_t size, lade_error *err);
} lade_output;

#ifdef __cplusplus
}
#endif

#endif
