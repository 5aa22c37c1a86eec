/*
 * io.h: reads ranges of objects into memory of any kind, and writes objects.
 *
 * An object is a sequence of bytes with a size and, mostly, a version: a file, memory, what a
 * server has under a URL.  One call reads any number of ranges, each into a span on the host or on
 * a device, and gives each a status.  The last 64 bytes and the first 16 of a file:
 *
 *	lade_source file;
 *	lade_object_version version;
 *	char head[16], tail[64];
 *	lade_range ranges[2] = {
 *		{.dst = lade_host_span(tail, sizeof tail), .kind = LADE_RANGE_LAST,
 *		 .version = &version},
 *		{.dst = lade_host_span(head, sizeof head)},
 *	};
 *	lade_status status = lade_source_file_open("data.bin", NULL, &file, &err);
 *	if (status == LADE_OK) {
 *		status = lade_source_read(file, ranges, 2, NULL, &err);
 *		lade_source_close(file);
 *	}
 *
 * Then ranges[0].size bytes stand in 'tail', and ranges[0].object_size is the file's size.  A later
 * call that sets 'want' to '&version' fails with LADE_E_CHANGED if the file is another by then.
 *
 * A source of your own is one function, read(), in a lade_source_ops (docs/io.md).
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
 * Tells two states of an object apart: a server's ETag; a file's device, inode, modification time
 * and size.  Equal bytes mean the same state, as far as the object's keeper can tell: a file that
 * is changed in place, without a new size, twice within a tick of the system's clock (4 ms on
 * most) looks the same.
 */
typedef struct lade_object_version {
	uint8_t size; /* of 'bytes'; 0: not known */
	uint8_t bytes[127];
} lade_object_version;

/* True if both are known and equal. */
LADE_API bool lade_object_version_equal(const lade_object_version *a, const lade_object_version *b);

/* ---- what all calls take ---------------------------------------------------------------- */

/* Zero-initialise, set struct_size, then what is wanted. */
typedef struct lade_io_options {
	size_t struct_size;
	size_t request_size; /* sizeof(lade_range) or sizeof(lade_write); 0: as in 0.2.0 */
	unsigned threads;    /* that may work at once; 0: the source chooses */
	lade_error *errors;  /* one for each request, filled for those that fail; or NULL */
	lade_cancel *cancel; /* requests that have not begun fail with LADE_E_CANCELLED; or NULL */
	/* Spans on devices are read and written behind the work of this stream.  NULL: the default
	 * stream of each device. */
	lade_stream stream;
	const lade_allocator *pinned; /* for staging buffers; NULL: the default for LADE_PINNED */
} lade_io_options;

/* ---- reading ------------------------------------------------------------------------------ */

typedef enum lade_range_kind {
	LADE_RANGE_AT = 0,   /* dst.size bytes at 'off': all of them, or LADE_E_RANGE */
	LADE_RANGE_REST = 1, /* from 'off' to the end; more than dst.size: LADE_E_NOSPACE */
	LADE_RANGE_LAST = 2, /* the last dst.size bytes; all of an object that has fewer */
} lade_range_kind;

/* A request, and its answer. */
typedef struct lade_range {
	const char *key; /* which object; NULL: the one that the source stands for */
	uint64_t off;
	lade_range_kind kind;
	lade_span dst; /* a range of 0 bytes only asks for the size and the version */
	/* Fails with LADE_E_CHANGED unless the object has this version.  NULL: any. */
	const lade_object_version *want;
	lade_object_version *version; /* gets the version; NULL: not asked for */

	/* The answer. */
	lade_status status;   /* LADE_E_NOT_FOUND: there is no such object */
	size_t size;          /* bytes filled, from the start of 'dst'; 0 on failure */
	uint64_t object_size; /* LADE_SIZE_UNKNOWN: not told */
} lade_range;

/* One call's ranges, while a source reads them. */
typedef struct lade_reading lade_reading;

enum {
	/* Spans may be on devices.  Without it the library has the source read into a staging
	 * buffer, and copies. */
	LADE_SOURCE_ANY_PLACE = 1,
	/* A read costs little more than its bytes, and read() may be called from several threads
	 * at once: readers then have each thread read what it works on.  Without it, as for
	 * servers, they ask for all at once. */
	LADE_SOURCE_LOCAL = 2,
};

/* What a source does.  Zero-initialise, set struct_size and read, then what is wanted. */
typedef struct lade_source_ops {
	size_t struct_size;
	uint32_t flags; /* LADE_SOURCE_... */

	/*
	 * Reads the 'count' ranges of a call, lade_reading_range(), and calls lade_reading_done()
	 * once for each: in any order, on any thread, also after read() has returned.  Before that
	 * it sets 'size' and 'object_size' of the range, and '*version' unless that is NULL.  The
	 * range and its memory stay until then.  lade_range_place() says which bytes of an object
	 * a range means.  A source that has versions honours 'want'.
	 */
	void (*read)(void *ctx, lade_reading *reading, size_t count);

	/* All bytes where they are, for readers that need no copy; 'data' NULL: not in memory.
	 * They stay until close().  NULL: never in memory. */
	lade_cspan (*view)(void *ctx);

	void (*close)(void *ctx); /* NULL: nothing to do */
} lade_source_ops;

/* Copied freely; one lade_source_close() ends it.  'ops' outlive it. */
typedef struct lade_source {
	const lade_source_ops *ops;
	void *ctx;
} lade_source;

/*
 * Reads 'count' ranges, and waits.  Every range is tried, whatever becomes of the others; the
 * contents of 'dst' are unspecified where it fails.  Spans must not overlap.
 *
 * Returns: LADE_OK when all ranges are read; else the status of the first (by index) that failed,
 *          with '*err' saying which and why
 * Fails:   LADE_E_RANGE, LADE_E_NOSPACE, LADE_E_NOT_FOUND, LADE_E_CHANGED, LADE_E_CANCELLED,
 *          LADE_E_IO, LADE_E_TRUNCATED (the source gave fewer bytes than it has),
 *          LADE_E_UNSUPPORTED (a key), LADE_E_ARG, LADE_E_NO_DEVICE, LADE_E_DEVICE, LADE_E_NOMEM
 * Threads: as the source's read(); those of this library: any number of callers
 */
LADE_API lade_status lade_source_read(lade_source source, lade_range *ranges, size_t count,
                                      const lade_io_options *options, lade_error *err);

/* Ends a source that one of the calls below has opened, or a caller's. */
LADE_API void lade_source_close(lade_source source);

/* ---- for sources ----------------------------------------------------------------------- */

/*
 * The bytes [*off, *off + *size) that a range means in an object of 'object_size' bytes.
 * Fails: LADE_E_RANGE, LADE_E_NOSPACE; with '*size' 0
 */
LADE_API lade_status lade_range_place(const lade_range *range, uint64_t object_size, uint64_t *off,
                                      size_t *size, lade_error *err);

/* A range of a call, below read()'s 'count'.  Not to be used once it has been answered. */
LADE_API lade_range *lade_reading_range(lade_reading *reading, size_t index);

/* Answers range 'index' of a reading; 'err' is looked at unless 'status' is LADE_OK, and may be
 * NULL.  A second answer to a range is ignored while the others are not all answered. */
LADE_API void lade_reading_done(lade_reading *reading, size_t index, lade_status status,
                                const lade_error *err);

/* The call's options; 'threads' is at least 1 if the caller set it.  Valid until the last range is
 * answered. */
LADE_API const lade_io_options *lade_reading_options(const lade_reading *reading);

/* True if what has not begun should be answered with LADE_E_CANCELLED. */
LADE_API bool lade_reading_cancelled(lade_reading *reading);

/* ---- sources of this library ---------------------------------------------------------------- */

enum {
	/* Maps the file: readers use the bytes in place.  For files that nobody makes shorter
	 * meanwhile: touching bytes that are gone ends the process with SIGBUS. */
	LADE_FILE_MAP = 1,
};

/* Zero-initialise, set struct_size, then what is wanted. */
typedef struct lade_file_options {
	size_t struct_size;
	uint64_t flags; /* LADE_FILE_... */
} lade_file_options;

/*
 * A regular file, or whatever else has a size and can be read anywhere.  Ranges that adjoin are
 * read by one call of the system; many bytes by several threads at once.
 * Fails: LADE_E_NOT_FOUND, LADE_E_IO, LADE_E_NOMEM, LADE_E_ARG
 */
LADE_API lade_status lade_source_file_open(const char *path, const lade_file_options *options,
                                           lade_source *out, lade_error *err);

/*
 * Memory of any kind, borrowed until the close.  From a device to the same or another one the bytes
 * do not pass the host.  It has no version: a range that wants one fails with LADE_E_CHANGED.
 * Fails: LADE_E_NOMEM, LADE_E_ARG
 */
LADE_API lade_status lade_source_memory_open(lade_cspan memory, lade_source *out, lade_error *err);

/* ---- writing --------------------------------------------------------------------------------- */

typedef enum lade_write_kind {
	LADE_WRITE_ALWAYS = 0,     /* makes the object, or replaces it */
	LADE_WRITE_IF_ABSENT = 1,  /* LADE_E_CHANGED: there is one */
	LADE_WRITE_IF_VERSION = 2, /* LADE_E_CHANGED unless it has the version 'want' */
	LADE_DELETE_IF_VERSION = 3, /* likewise; 'want' NULL: whatever version it has */
} lade_write_kind;

/* A request, and its answer. */
typedef struct lade_write {
	const char *key; /* which object; NULL: the one that the sink stands for */
	lade_write_kind kind;
	lade_status status; /* the answer */
	lade_cspan src;     /* all of the object's bytes */
	const lade_object_version *want;
	lade_object_version *version; /* gets that of what was written; NULL: not asked for */
} lade_write;

/* What a sink does.  Zero-initialise, set struct_size and write, then what is wanted. */
typedef struct lade_sink_ops {
	size_t struct_size;
	uint32_t flags; /* none yet */
	/* Writes or deletes one object; 'src' is on the host.  Waits. */
	lade_status (*write)(void *ctx, lade_write *write, const lade_io_options *options,
	                     lade_error *err);
	void (*close)(void *ctx); /* NULL: nothing to do */
} lade_sink_ops;

typedef struct lade_sink {
	const lade_sink_ops *ops;
	void *ctx;
} lade_sink;

/*
 * Does 'count' writes in their order, and waits.  An object is written whole or not at all: readers
 * see the old bytes or the new ones.
 *
 * Returns and fails: as lade_source_read()
 */
LADE_API lade_status lade_sink_write(lade_sink sink, lade_write *writes, size_t count,
                                     const lade_io_options *options, lade_error *err);

/* Ends a sink. */
LADE_API void lade_sink_close(lade_sink sink);

/*
 * The file 'path', which need not be there.  A write makes a temporary file beside it, syncs it to
 * the disk, and gives it the name; the directory is synced after that.  A new file has mode 0666
 * less the umask, a replaced one keeps its mode.  A symbolic link is followed, not replaced.
 *
 * LADE_WRITE_IF_ABSENT holds against all other programs.  LADE_WRITE_IF_VERSION and
 * LADE_DELETE_IF_VERSION hold against programs that use this library, by a lock on the directory:
 * no system call compares a file's version and replaces it.  Other programs may get between.
 * A device or a pipe is written to, not replaced.
 *
 * Fails: LADE_E_NOMEM, LADE_E_ARG
 */
LADE_API lade_status lade_sink_file_open(const char *path, lade_sink *out, lade_error *err);

/* ---- bytes in order ---------------------------------------------------------------------- */

/* Bytes that come once, in order: '*got' from 1 to 'cap', or 0 at the end. */
typedef struct lade_input {
	void *ctx;
	lade_status (*read)(void *ctx, void *dst, size_t cap, size_t *got, lade_error *err);
} lade_input;

/* Takes bytes in order; all of them, or fails. */
typedef struct lade_output {
	void *ctx;
	lade_status (*write)(void *ctx, const void *src, size_t size, lade_error *err);
} lade_output;

#ifdef __cplusplus
}
#endif

#endif
