/*
 * share.h: columns and tables that are published once and opened by name from other processes.
 *
 *	lade_share *share;
 *	lade_share_version *version;
 *	if (lade_share_connect(NULL, &share, &err))
 *		return fprintf(stderr, "%s\n", err.message);
 *	lade_status status = lade_share_open(share, "trips", NULL, &version, &err);
 *	if (status == LADE_OK) {
 *		const lade_share_info *info = lade_share_version_info(version);
 *		printf("%llu rows\n", (unsigned long long)info->rows);
 *		lade_share_version_unref(version);
 *	}
 *	lade_share_close(share);
 *
 * Types are those of Arrow: columns come in and go out by the Arrow C data interface
 * (https://arrow.apache.org/docs/format/CDataInterface.html).  This header needs no header of
 * Arrow's: it only names the structs.
 *
 * A broker serves the names, by default one for each user ('lade share serve').  Readers map the
 * publisher's memory; nothing is copied.  What is published never changes: a write is a new
 * version.  A version lives on when its publisher ends.  docs/share.md has the rules.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_SHARE_H
#define LADE_SHARE_H

#include <lade/array.h>
#include <lade/dtype.h>
#include <lade/io.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ArrowSchema; /* of the Arrow C data interface */
struct ArrowArray;
struct ArrowDeviceArray; /* of the Arrow C device interface */

/* ---- connections ------------------------------------------------------------------------ */

/*
 * A connection to a broker.  It reconnects by itself after the broker was started anew.
 *
 * Threads: any number of callers; they take turns
 */
typedef struct lade_share lade_share;

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_share_options {
	size_t struct_size;
	const char *path;    /* the broker's socket; NULL: lade_share_path_default() */
	uint32_t timeout_ms; /* how long a call waits for an answer; 0: 10 seconds */
} lade_share_options;

/*
 * Writes the path of the user's own broker: /run/user/UID/lade-share if that folder is there, else
 * /tmp/lade-UID/share.
 * Fails: LADE_E_NOSPACE; LADE_E_IO: /tmp/lade-UID belongs to another user or is open to others
 */
LADE_API lade_status lade_share_path_default(char *path, size_t cap, lade_error *err);

/*
 * Connects.  Without options.path a broker of another user is refused.
 * lade_share_close() ends the connection.  Versions and arrays stay valid; NULL is fine.
 *
 * Fails: LADE_E_NOT_FOUND (no broker answers), LADE_E_IO, LADE_E_ARG, LADE_E_NOMEM
 * Owns:  the caller, until lade_share_close()
 */
LADE_API lade_status lade_share_connect(const lade_share_options *options, lade_share **out,
                                        lade_error *err);
LADE_API void lade_share_close(lade_share *share);

/* ---- publishing ------------------------------------------------------------------------- */

/*
 * Makes an array of 'size' bytes of zeros that can be published without a copy.  When it is
 * published its memory becomes read-only, at the same address: writing to it then faults (unless
 * lade_share_table.writable is set).
 *
 * Fails: LADE_E_NOMEM, LADE_E_IO (no descriptors are left), LADE_E_ARG
 * Owns:  the caller gets one reference
 */
LADE_API lade_status lade_share_alloc(lade_share *share, size_t size, lade_array **out,
                                      lade_error *err);

/*
 * The same in a place: host memory, or a device's.  Device memory takes whole pages of the device,
 * of 2 MiB on most.  The library's work on it may be recorded with lade_array_used(); publishing
 * waits for that.
 *
 * Fails: as above; LADE_E_NO_DEVICE, LADE_E_DEVICE; LADE_E_UNSUPPORTED (pinned or managed memory,
 *        or a device that cannot share its memory)
 */
LADE_API lade_status lade_share_alloc_in(lade_share *share, size_t size, lade_place place,
                                         lade_array **out, lade_error *err);

/* When to copy.  A copy has only the rows that a slice shows. */
typedef enum lade_share_copy {
	LADE_SHARE_COPY_IF_NEEDED = 0, /* share what can be shared */
	/* Refuse what cannot be shared.  Memory of others on a device, from cudaMalloc(), is
	 * lent: the version ends with this connection.  The caller keeps the memory as it is
	 * until then, also when the version is removed: readers may have it open. */
	LADE_SHARE_COPY_NEVER = 1,
	LADE_SHARE_COPY_ALWAYS = 2,    /* the rest of the memory stays private */
} lade_share_copy;

/* What to publish: arrays of one schema.  A struct at the top is a table, and each array a batch of
 * rows.  Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_share_table {
	size_t struct_size;
	const struct ArrowSchema *schema;
	const struct ArrowArray *const *batches;
	size_t batch_count;
	lade_share_copy copy;
	/* 0 or 1.  Memory of lade_share_alloc() stays writable: writing changes a private copy of
	 * the page, which is copied when it is published again. */
	uint64_t writable;
	uint32_t wait_ms; /* how long to wait for room, where all that is published is in use */
	/* In place of 'batches', which is NULL: arrays on one device, or on the host.  The call
	 * waits for their events; other work on them must be done. */
	const struct ArrowDeviceArray *const *device_batches;
} lade_share_table;

/* What was published.  Set struct_size before the call. */
typedef struct lade_share_published {
	size_t struct_size;
	uint64_t version;
	uint64_t shared; /* bytes that were not copied */
	uint64_t copied; /* bytes that were */
	char why[120];   /* why something was copied; "" if nothing was */
	/* Of a device's arrays: bytes that went through the host, such as offsets of a slice.  All
	 * else stays on the device. */
	uint64_t staged;
	uint64_t leased; /* bytes of 'shared' that were lent: see LADE_SHARE_COPY_NEVER */
} lade_share_published;

/*
 * Memory of devices becomes a block of the device, which outlives the process.  Copies go from
 * device to device.
 *
 * Publishes a new version of 'name' and returns when it is safe from the end of this process.
 * Memory can be shared if it is from lade_share_alloc() or from an opened version of the same
 * connection; slices of it, too.  The rest is copied, into one block.
 * Versions of less than 64 KiB are always copied: they travel in messages.
 *
 * A name has 1 to 255 bytes of UTF-8 without '@' and control characters.
 *
 * Fails: LADE_E_ARG (arrays that contradict their schema), LADE_E_UNSUPPORTED (a type that is not
 *        known; COPY_NEVER with memory that cannot be shared), LADE_E_LIMIT (the broker is full of
 *        what is in use, also after wait_ms: both numbers), LADE_E_IO, LADE_E_NOMEM,
 *        LADE_E_STATE (the name is another user's)
 * Owns:  nothing; the arrays stay the caller's
 */
LADE_API lade_status lade_share_publish(lade_share *share, const char *name,
                                        const lade_share_table *table, lade_share_published *out,
                                        lade_error *err);

#define LADE_SHARE_NDIM_MAX 32

/*
 * Numbers in C's order with a shape.  One dimension is a column of numbers.  With more the rows are
 * fixed-size lists of Arrow's extension type arrow.fixed_shape_tensor, which other libraries read,
 * too; none is one row.  Zero-initialise, set struct_size, then the fields you need.
 */
typedef struct lade_share_tensor {
	size_t struct_size;
	lade_dtype dtype; /* integers and floats of IEEE 754, little-endian */
	unsigned ndim;
	uint64_t shape[LADE_SHARE_NDIM_MAX];
	const void *data;
	lade_share_copy copy; /* when publishing, as in lade_share_table */
	uint32_t wait_ms;
} lade_share_tensor;

/*
 * Publishes numbers with a shape, as lade_share_publish() does.
 * Fails: as that; LADE_E_LIMIT (a row of more than 2^31 - 1 elements)
 */
LADE_API lade_status lade_share_publish_tensor(lade_share *share, const char *name,
                                               const lade_share_tensor *tensor,
                                               lade_share_published *out, lade_error *err);

/*
 * Removes a name, or one version of it.  Those who have opened it keep it.
 * Fails: LADE_E_NOT_FOUND, LADE_E_STATE (the name is another user's), LADE_E_IO
 */
LADE_API lade_status lade_share_remove(lade_share *share, const char *name, uint64_t version,
                                       lade_error *err);

/* ---- opening ---------------------------------------------------------------------------- */

/* An opened version.  Its memory stays mapped until the last reference and the last array of it are
 * gone. */
typedef struct lade_share_version lade_share_version;

/* Where a version's blocks are.  Opening brings them back to memory. */
typedef enum lade_share_place {
	LADE_SHARE_MEMORY = 0,
	LADE_SHARE_COMPRESSED = 1, /* some are in memory, compressed */
	LADE_SHARE_DISK = 2,       /* some are in files */
} lade_share_place;

/* What a broker knows of a version. */
typedef struct lade_share_info {
	const char *name;
	uint64_t version;
	uint64_t rows, bytes;
	uint64_t time; /* when it was published: nanoseconds since 1970 */
	uint32_t columns, batches;
	uint32_t uid, pid; /* who published it */
	lade_share_place place; /* in a listing; an opened version is in memory */
	bool on_device;    /* in a device's memory */
	bool copied;       /* an opened version: its device's memory was copied to the host */
	int32_t device;    /* an opened version: the device's number here; -1: the host */
	bool leased;       /* it is its publisher's memory, and ends with the connection */
} lade_share_info;

/* How much of a version to check.  Sizes and structure are always checked. */
typedef enum lade_share_check {
	LADE_SHARE_CHECK_DEFAULT = 0, /* FULL if another user published it, else LAYOUT */
	LADE_SHARE_CHECK_LAYOUT = 1,  /* sizes, structure, first and last offsets */
	LADE_SHARE_CHECK_FULL = 2,    /* each offset, index, type id, run end, null count; UTF-8 */
} lade_share_check;

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_share_open_options {
	size_t struct_size;
	uint64_t version; /* 0: the latest */
	lade_share_check check;
	bool writable; /* writing is allowed and changes a private copy of the page */
	/* A version on a device is wanted as a copy in host memory, which a process of the broker's
	 * makes: this process needs no device.  Other users always get one. */
	bool host;
} lade_share_open_options;

/*
 * Opens a version and maps its memory, without a copy.  Opening one that is open already gives the
 * same one (unless it shall be writable).  A version that had made room for others comes back
 * first.
 *
 * Fails: LADE_E_NOT_FOUND, LADE_E_CORRUPT (what was published is not valid, or its file is
 *        damaged), LADE_E_LIMIT (no room for it: both numbers), LADE_E_IO, LADE_E_NOMEM,
 *        LADE_E_VERSION; LADE_E_NO_DEVICE (it is on a device that this process does not have),
 *        LADE_E_DEVICE, LADE_E_UNSUPPORTED (a device's memory writable, or all its values checked)
 * Owns:  the caller gets one reference
 */
LADE_API lade_status lade_share_open(lade_share *share, const char *name,
                                     const lade_share_open_options *options,
                                     lade_share_version **out, lade_error *err);

/* Add or drop a reference; NULL is fine for both.  The last one releases the version. */
LADE_API lade_share_version *lade_share_version_ref(lade_share_version *version);
LADE_API void lade_share_version_unref(lade_share_version *version);

/* Valid as long as the version.  'batches' is the number of arrays. */
LADE_API const lade_share_info *lade_share_version_info(const lade_share_version *version);

/*
 * Write the schema, or array number 'index', to the caller's struct of the Arrow C data interface.
 * Its release callback may be called by any thread, also after lade_share_close(); until then the
 * version stays mapped.
 *
 * Fails: LADE_E_RANGE, LADE_E_NOMEM, LADE_E_ARG; LADE_E_STATE (an array on a device: take
 *        lade_share_version_device_array(), or open a copy on the host)
 * Owns:  the caller, who calls release
 */
LADE_API lade_status lade_share_version_schema(lade_share_version *version,
                                               struct ArrowSchema *out, lade_error *err);
LADE_API lade_status lade_share_version_array(lade_share_version *version, size_t index,
                                              struct ArrowArray *out, lade_error *err);

/*
 * The same by the Arrow C device interface, for versions on the host and on devices.  There is no
 * event: published memory is not written to.  Memory of a device can only be read; a kernel that
 * writes to it fails, and its process must start anew.  The last release waits for the device's
 * work.
 */
LADE_API lade_status lade_share_version_device_array(lade_share_version *version, size_t index,
                                                     struct ArrowDeviceArray *out,
                                                     lade_error *err);

/*
 * Array number 'index' of a column as numbers with a shape, in place.  Set out->struct_size before
 * the call.  'data' is valid as long as the version.  Fixed-size lists without the extension type
 * have two dimensions.
 *
 * Fails: LADE_E_UNSUPPORTED (nulls, other types, a tensor of permuted dimensions), LADE_E_RANGE,
 *        LADE_E_NOMEM, LADE_E_ARG
 */
LADE_API lade_status lade_share_version_tensor(lade_share_version *version, size_t index,
                                               lade_share_tensor *out, lade_error *err);

/* ---- Arrow's files ---------------------------------------------------------------------- */

/*
 * Publishes an Arrow IPC file or stream (.arrow, .arrows, Feather of version 2).  Buffers are read,
 * or decompressed (LZ4, Zstd), into memory that is published without a copy.  All values that lead
 * elsewhere are checked, as LADE_SHARE_CHECK_FULL does.  Deltas of dictionaries are read of flat
 * values and strings.
 *
 * Fails: as lade_share_publish(); LADE_E_CORRUPT, LADE_E_TRUNCATED, LADE_E_UNSUPPORTED (big-endian
 *        values, metadata before version 4, Feather of version 1), and what the source fails with
 * Owns:  nothing; the source stays the caller's
 */
LADE_API lade_status lade_share_publish_ipc(lade_share *share, const char *name,
                                            lade_source source, uint32_t wait_ms,
                                            lade_share_published *out, lade_error *err);

/*
 * Writes a version on the host as an Arrow IPC file, or stream, without compression.  A column that
 * was published without a table becomes a table of one column.
 *
 * Memory: a copy of one batch, and of the dictionaries
 * Fails:  LADE_E_UNSUPPORTED (a table with nulls of its own; a file of batches whose dictionaries
 *         differ: a stream can have them), LADE_E_STATE (it is on a device), LADE_E_NOMEM,
 *         LADE_E_ARG, and what the output fails with
 */
LADE_API lade_status lade_share_version_write_ipc(lade_share_version *version, lade_output output,
                                                  bool stream, lade_error *err);

/* ---- names ------------------------------------------------------------------------------ */

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_share_listing {
	size_t struct_size;
	const char *prefix; /* only names that begin so; NULL: all */
	/* Called for the latest version of each name, in the order of the names' bytes.  'info' is
	 * valid during the call.  Anything but LADE_OK ends the listing with that status. */
	lade_status (*visit)(void *ctx, const lade_share_info *info);
	void *ctx;
} lade_share_listing;

/* Lists the names.  Those that come or go meanwhile may be missing.
 * Fails: LADE_E_IO, LADE_E_ARG, what 'visit' returns */
LADE_API lade_status lade_share_list(lade_share *share, const lade_share_listing *listing,
                                     lade_error *err);

/*
 * Waits until 'name' has a version above 'after' (0: any), on a connection of its own, and stores
 * it.  'timeout_ms' UINT32_MAX: for ever.
 * Fails: LADE_E_NOT_FOUND (not within the timeout), LADE_E_IO, LADE_E_ARG
 */
LADE_API lade_status lade_share_wait(lade_share *share, const char *name, uint64_t after,
                                     uint32_t timeout_ms, uint64_t *version, lade_error *err);

typedef enum lade_share_what {
	LADE_SHARE_PUBLISHED = 1,
	LADE_SHARE_REMOVED = 2, /* all versions of the name */
	LADE_SHARE_LOST = 3,    /* the caller was too slow and events are missing: list again */
} lade_share_what;

/* What happened to a name.  Set struct_size before the call. */
typedef struct lade_share_event {
	size_t struct_size;
	lade_share_what what;
	uint64_t version;
	char name[256];
} lade_share_event;

/* A stream of events, on a connection of its own. */
typedef struct lade_share_events lade_share_events;

/*
 * Subscribes to names that begin with 'prefix' (NULL: all).
 * lade_share_events_fd() gives a descriptor to poll: readable means an event, or the broker's end.
 * lade_share_events_next() waits for the next event; 'timeout_ms' as above.
 *
 * Fails: LADE_E_NOT_FOUND (no broker; no event within the timeout), LADE_E_IO (the broker ended),
 *        LADE_E_ARG, LADE_E_NOMEM
 * Owns:  the caller, until lade_share_events_close(); NULL is fine
 */
LADE_API lade_status lade_share_subscribe(lade_share *share, const char *prefix,
                                          lade_share_events **out, lade_error *err);
LADE_API int lade_share_events_fd(const lade_share_events *events);
LADE_API lade_status lade_share_events_next(lade_share_events *events, uint32_t timeout_ms,
                                            lade_share_event *out, lade_error *err);
LADE_API void lade_share_events_close(lade_share_events *events);

/* What a broker holds and has done.  Set struct_size before the call. */
typedef struct lade_share_statistics {
	size_t struct_size;
	uint64_t names, versions;
	uint64_t bytes;         /* of blocks; a shared block counts once */
	uint64_t bytes_cap;     /* 0: no limit */
	uint64_t descriptors, descriptor_cap;
	uint64_t clients, client_cap;
	uint64_t held;          /* versions that clients have open */
	uint64_t published, opened, removed, refused; /* since the broker's start */
	uint64_t keeper_pid, keeper_starts;
	uint64_t compressed;     /* bytes of 'bytes' that are compressed blocks */
	uint64_t disk, disk_cap; /* of files; 0: no limit, or no folder */
	uint64_t evicted, stored, returned; /* blocks compressed, written to files, brought back */
	uint64_t waiting;        /* calls that wait for room, or for blocks to come back */
} lade_share_statistics;

/* Asks for the broker's numbers.  Fails: LADE_E_IO, LADE_E_ARG */
LADE_API lade_status lade_share_statistics_get(lade_share *share, lade_share_statistics *out,
                                               lade_error *err);

/* ---- the broker ------------------------------------------------------------------------- */

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_share_serve_options {
	size_t struct_size;
	const char *path;    /* of the socket; NULL: lade_share_path_default() */
	bool group;          /* the members of 'gid' may connect, too */
	uint32_t gid;
	uint64_t bytes_cap;  /* of all blocks in memory, compressed or not; 0: no limit */
	uint32_t client_cap; /* 0: 1024 */
	uint32_t name_cap;   /* names and versions that are held beside them; 0: 1,000,000 */
	const lade_cancel *stop; /* ends the call in order, within 100 ms; NULL: nothing does */
	void (*ready)(void *ctx, const char *path); /* called once clients can connect */
	void *ready_ctx;
	/* A folder for what has no room in memory, made if it is not there, of this broker alone;
	 * NULL: none.  It has the files of versions that a broker left when it was killed. */
	const char *spill;
	uint64_t disk_cap; /* bytes of its files; 0: no limit */
} lade_share_serve_options;

/*
 * Serves until 'stop' is set: then all versions go, and the call returns LADE_OK.  It raises the
 * process's soft limit of descriptors to the hard one.
 *
 * Where a publication has no room within bytes_cap, what nobody has open makes room, least recently
 * opened first: compressed, then in files.
 *
 * The call forks a second process, the keeper, which holds all that is published.  If this process
 * dies, the next call with the same path takes it over; if the keeper dies, this process starts
 * another.  Call it in a process with one thread, which has not used a device.
 *
 * Fails: LADE_E_STATE (a broker serves this path or has the folder), LADE_E_IO, LADE_E_NOMEM,
 *        LADE_E_ARG
 */
LADE_API lade_status lade_share_serve(const lade_share_serve_options *options, lade_error *err);

#ifdef __cplusplus
}
#endif

#endif
