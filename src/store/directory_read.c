/*
 * directory_read.c: how the directory store reads.
 *
 * A reading's requests become units: some neighbouring requests of one key.  Threads take units in
 * turn; each opens the key's file, looks at its version, reads, and looks again.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE /* preadv(), O_DIRECT */
#include "io/file.h"
#include "store/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* A unit ends with this many requests or bytes. */
#define UNIT_REQUESTS 16
#define UNIT_BYTES ((size_t)4 << 20)

/* The spans and the bytes of one preadv(): a cancelled read ends after one.  Bytes that nobody
 * wants go to a buffer of the last size. */
#define SPANS 64
#define STEP_BYTES ((size_t)4 << 20)
#define UNWANTED_BYTES 16384

/* What O_DIRECT wants of offsets, sizes and addresses: the largest block of usual disks. */
#define DIRECT_ALIGN 4096

/* Bytes of one cuFileRead(). */
#define FAR_BYTES ((size_t)16 << 20)

typedef lade__directory directory;

typedef struct call {
	directory *dir;
	lade_reading *reading;
	size_t count;
	pthread_mutex_t mutex; /* guards 'next' */
	size_t next;
} call;

/* Where the bytes of a request from 'at' on go: spans of up to STEP_BYTES. */
static int spans_of(const lade_reading *reading, size_t r, size_t size, size_t at,
                    struct iovec *spans, uint8_t *unwanted)
{
	size_t parts = lade_reading_part_count(reading, r), k = 0, end = at + STEP_BYTES;
	int n = 0;
	end = end < size ? end : size;
	for (; k < parts; k++) {
		lade_part part = lade_reading_part(reading, r, k);
		if (part.at + part.dst.size > at)
			break;
	}
	while (at < end && n < SPANS) {
		lade_part part = {.at = size};
		if (k < parts)
			part = lade_reading_part(reading, r, k);
		if (part.at > at) {
			size_t gap = part.at - at < UNWANTED_BYTES ? part.at - at : UNWANTED_BYTES;
			gap = gap < end - at ? gap : end - at;
			spans[n++] = (struct iovec){unwanted, gap};
			at += gap;
			continue;
		}
		size_t into = at - part.at, left = part.dst.size - into;
		left = left < end - at ? left : end - at;
		if (left)
			spans[n++] = (struct iovec){(uint8_t *)part.dst.data + into, left};
		at += left;
		k += into + left == part.dst.size;
	}
	return n;
}

/* A key's file, opened up to two times: O_DIRECT has a descriptor of its own. */
typedef struct open_file {
	int fd, direct;
	bool no_direct; /* it was tried */
	void *handle;   /* libcufile's */
	bool no_handle;
} open_file;

static int open_at(const directory *dir, const char *key, int flags)
{
	int fd;
	do
		fd = openat(dir->fd, key, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
	while (fd < 0 && errno == EINTR);
	return fd;
}

/* The file's descriptor for O_DIRECT; -1: its file system has none. */
static int direct_of(const call *c, open_file *f, const char *key)
{
	struct stat a, b;
	if (f->direct >= 0 || f->no_direct)
		return f->direct;
	f->no_direct = true;
	int fd = open_at(c->dir, key, O_DIRECT);
	/* The key may have got another file. */
	bool same = fd >= 0 && fstat(fd, &a) == 0 && fstat(f->fd, &b) == 0 &&
	            a.st_dev == b.st_dev && a.st_ino == b.st_ino;
	if (fd >= 0 && !same)
		close(fd);
	f->direct = same ? fd : -1;
	return f->direct;
}

/* Reads the aligned bytes of an aligned request past the page cache.  Returns how many: the rest is
 * read the other way, where also all failures show. */
static size_t read_direct(call *c, open_file *f, size_t r, uint64_t off)
{
	const lade_range *range = lade_reading_range(c->reading, r);
	size_t size = range->size - range->size % DIRECT_ALIGN, at = 0;
	if (!(c->dir->flags & LADE_DIRECTORY_DIRECT) || off % DIRECT_ALIGN || size == 0 ||
	    lade_reading_part_count(c->reading, r) != 1 || !range->dst.data ||
	    !lade_kind_is_host(range->dst.place.kind) || (uintptr_t)range->dst.data % DIRECT_ALIGN)
		return 0;
	int fd = direct_of(c, f, range->key);
	while (fd >= 0 && at < size && !lade_reading_cancelled(c->reading)) {
		size_t n = size - at < STEP_BYTES ? size - at : STEP_BYTES;
		ssize_t got = pread(fd, (uint8_t *)range->dst.data + at, n, (off_t)(off + at));
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0 || (size_t)got % DIRECT_ALIGN)
			break;
		at += (size_t)got;
	}
	return at;
}

static lade_status cancelled(lade_error *err)
{
	return lade_fail(err, LADE_E_CANCELLED, LADE_NO_OFFSET, "the read was cancelled");
}

static lade_status too_short(uint64_t off, uint64_t end, lade_error *err)
{
	return lade_fail(err, LADE_E_TRUNCATED, off,
	                 "the file ends at %" PRIu64 ", before %" PRIu64, off, end);
}

static lade_status read_host(call *c, open_file *f, size_t r, uint64_t off, lade_error *err)
{
	size_t size = lade_reading_range(c->reading, r)->size;
	struct iovec spans[SPANS];
	uint8_t unwanted[UNWANTED_BYTES];
	for (size_t at = read_direct(c, f, r, off); at < size;) {
		if (lade_reading_cancelled(c->reading))
			return cancelled(err);
		int n = spans_of(c->reading, r, size, at, spans, unwanted);
		ssize_t got = lade__file_read(f->fd, spans, n, off + at);
		if (got < 0 && errno != EINTR)
			return lade_fail(err, LADE_E_IO, off + at, "reading at %" PRIu64 ": %s",
			                 off + at, strerror(errno));
		if (got == 0)
			return too_short(off + at, off + size, err);
		at += got > 0 ? (size_t)got : 0;
	}
	return LADE_OK;
}

/* ---- spans on devices, by libcufile ---------------------------------------------------------- */

static void *handle_of(const call *c, open_file *f, const char *key)
{
	if (f->handle || f->no_handle)
		return f->handle;
	f->no_handle = true;
	int fd = direct_of(c, f, key);
	f->handle = lade__cufile_handle(&c->dir->cufile, fd >= 0 ? fd : f->fd);
	return f->handle;
}

/* Bytes of a file that libcufile does not read: through memory of the host. */
static lade_status read_bounced(call *c, const open_file *f, size_t r, lade_part part, uint64_t off,
                                lade_error *err)
{
	size_t size = part.dst.size, step = size < STEP_BYTES ? size : STEP_BYTES;
	uint8_t *bytes = malloc(step ? step : 1);
	lade_status status = LADE_OK;
	if (!bytes)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu bytes",
		                 step);
	for (size_t done = 0; done < size && status == LADE_OK;) {
		size_t n = size - done < step ? size - done : step;
		ssize_t got = pread(f->fd, bytes, n, (off_t)(off + done));
		if (lade_reading_cancelled(c->reading))
			status = cancelled(err);
		else if (got < 0 && errno != EINTR)
			status = lade_fail(err, LADE_E_IO, off + done, "reading at %" PRIu64 ": %s",
			                   off + done, strerror(errno));
		else if (got == 0)
			status = too_short(off + done, off + size, err);
		else if (got > 0)
			status = lade_reading_put(c->reading, r, part.at + done,
			                          lade_host_cspan(bytes, (size_t)got), err);
		done += got > 0 ? (size_t)got : 0;
	}
	free(bytes);
	return status;
}

/* A part on a device. */
static lade_status read_far(call *c, open_file *f, size_t r, lade_part part, uint64_t off,
                            lade_error *err)
{
	lade_stream stream = lade_reading_options(c->reading)->stream;
	void *handle = handle_of(c, f, lade_reading_range(c->reading, r)->key);
	lade_status status = LADE_OK;
	size_t done = 0;
	if (!handle)
		return read_bounced(c, f, r, part, off, err);
	while (done < part.dst.size && status == LADE_OK) {
		size_t n = part.dst.size - done;
		lade_span to = {(uint8_t *)part.dst.data + done, n < FAR_BYTES ? n : FAR_BYTES,
		                part.dst.place};
		if (lade_reading_cancelled(c->reading))
			return cancelled(err);
		status = lade__cufile_read(&c->dir->cufile, handle, &to, off + done, stream, err);
		if (status == LADE_OK && to.size == 0)
			return too_short(off + done, off + part.dst.size, err);
		done += to.size;
	}
	return status;
}

static lade_status read_bytes(call *c, open_file *f, size_t r, uint64_t off, lade_error *err)
{
	size_t parts = lade_reading_part_count(c->reading, r), size;
	bool far = false;
	for (size_t k = 0; k < parts && c->dir->cufile.library; k++)
		far |= !lade_kind_is_host(lade_reading_part(c->reading, r, k).dst.place.kind);
	if (!far)
		return read_host(c, f, r, off, err);
	size = lade_reading_range(c->reading, r)->size;
	lade_status status = LADE_OK;
	for (size_t k = 0; k < parts && status == LADE_OK; k++) {
		lade_part part = lade_reading_part(c->reading, r, k);
		/* A range to the end may have a longer span. */
		if (part.at >= size)
			break;
		part.dst.size = part.dst.size < size - part.at ? part.dst.size : size - part.at;
		if (lade_kind_is_host(part.dst.place.kind))
			status = read_bounced(c, f, r, part, off + part.at, err);
		else
			status = read_far(c, f, r, part, off + part.at, err);
	}
	return status;
}

/* ---- requests ------------------------------------------------------------------------------ */

/* Looks at an open file.  Fails: LADE_E_IO; LADE_E_NOT_FOUND: it is no regular one */
static lade_status look(int fd, uint64_t *size, lade_object_version *version, lade_error *err)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "looking at the file: %s",
		                 strerror(errno));
	if (!S_ISREG(st.st_mode))
		return lade__key_absent(err);
	*size = (uint64_t)st.st_size;
	lade__file_version(&st, version);
	return LADE_OK;
}

static lade_status open_key(const directory *dir, const char *key, int *fd, lade_error *err)
{
	*fd = open_at(dir, key, 0);
	if (*fd >= 0)
		return LADE_OK;
	if (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG)
		return lade__key_absent(err);
	return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "opening the file: %s", strerror(errno));
}

static void close_file(const call *c, const open_file *f)
{
	if (f->handle)
		c->dir->cufile.handle_deregister(f->handle);
	if (f->direct >= 0)
		close(f->direct);
	if (f->fd >= 0)
		close(f->fd);
}

/* Requests from 'first' on, of one key. */
static void read_unit(call *c, size_t first, size_t count)
{
	lade_reading *reading = c->reading;
	lade_error errors[UNIT_REQUESTS], err = {0};
	lade_status statuses[UNIT_REQUESTS];
	lade_object_version before, after;
	uint64_t size, now, off;
	open_file f = {.fd = -1, .direct = -1};
	bool read = false;
	bool stopped = lade_reading_cancelled(reading);
	lade_status all =
		stopped ? LADE_E_CANCELLED
			: open_key(c->dir, lade_reading_range(reading, first)->key, &f.fd, &err);
	if (all == LADE_OK)
		all = look(f.fd, &size, &before, &err);
	for (size_t i = 0; i < count && all == LADE_OK; i++) {
		lade_range *range = lade_reading_range(reading, first + i);
		statuses[i] = lade__range_answer(range, size, &before, &off, &errors[i]);
		if (statuses[i] == LADE_OK)
			statuses[i] = read_bytes(c, &f, first + i, off, &errors[i]);
		read = read || range->size;
	}
	bool changed = all == LADE_OK && read && look(f.fd, &now, &after, NULL) == LADE_OK &&
	               !lade_object_version_equal(&before, &after);
	for (size_t i = 0; i < count; i++) {
		lade_status status = all == LADE_OK ? statuses[i] : all;
		if (changed && (status == LADE_OK || status == LADE_E_TRUNCATED))
			status = lade_fail(&errors[i], LADE_E_CHANGED, LADE_NO_OFFSET,
			                   "the file changed while it was read");
		lade_reading_done(reading, first + i, status, all == LADE_OK ? &errors[i] : &err);
	}
	close_file(c, &f);
}

/* The requests of a unit, from 'first' on. */
static size_t unit_of(const call *c, size_t first)
{
	const lade_range *head = lade_reading_range(c->reading, first);
	size_t n = 0, bytes = 0;
	while (first + n < c->count && n < UNIT_REQUESTS && bytes < UNIT_BYTES) {
		const lade_range *range = lade_reading_range(c->reading, first + n);
		if (range->key != head->key && strcmp(range->key, head->key) != 0)
			break;
		bytes += range->dst.size < UNIT_BYTES ? range->dst.size : UNIT_BYTES;
		n++;
	}
	return n;
}

static void read_units(void *ctx)
{
	call *c = ctx;
	for (;;) {
		pthread_mutex_lock(&c->mutex);
		size_t first = c->next, n = first < c->count ? unit_of(c, first) : 0;
		c->next += n;
		pthread_mutex_unlock(&c->mutex);
		if (n == 0)
			return;
		read_unit(c, first, n);
	}
}

/* ---- many files by one thread -------------------------------------------------------------- */

/* Looks at a key by its name: a file of a ring has no number.  False: it is for read_unit(). */
static bool look_by_name(const call *c, const char *name, uint64_t *size,
                         lade_object_version *version)
{
	struct stat st;
	if (fstatat(c->dir->fd, name, &st, 0) != 0 || !S_ISREG(st.st_mode))
		return false;
	*size = (uint64_t)st.st_size;
	lade__file_version(&st, version);
	return true;
}

/* Whether a ring can read a request: a small one, in one piece. */
static bool is_small(const call *c, size_t r, lade__ring_file *file, lade_object_version *version)
{
	lade_range *range = lade_reading_range(c->reading, r);
	uint64_t size;
	*file = (lade__ring_file){.name = range->key, .to = range->dst.data};
	if (unit_of(c, r) != 1 || lade_reading_part_count(c->reading, r) != 1 || !file->to ||
	    range->dst.size > STEP_BYTES || !look_by_name(c, range->key, &size, version) ||
	    lade__range_answer(range, size, version, &file->off, NULL) != LADE_OK)
		return false;
	file->size = range->size;
	return file->size > 0;
}

/* Reads requests from 'first' on, those of a ring at most.  Returns how many: one fails, or is
 * larger than that, as read_unit() says.  What the ring had not read is read again. */
static size_t read_by_ring(call *c, lade__ring *ring, size_t first)
{
	lade__ring_file files[LADE__RING_FILES];
	lade_object_version before[LADE__RING_FILES];
	size_t count = 0, r = first;
	for (; r < c->count && count < LADE__RING_FILES; r++, count++)
		if (lade_reading_cancelled(c->reading) ||
		    !is_small(c, r, &files[count], &before[count]))
			break;
	if (count)
		lade__ring_read(ring, c->dir->fd, files, count);
	for (size_t i = 0; i < count; i++) {
		lade_object_version after;
		uint64_t size;
		/* The same file stood there before and behind: so it is the one that was read. */
		if (files[i].whole && look_by_name(c, files[i].name, &size, &after) &&
		    lade_object_version_equal(&before[i], &after))
			lade_reading_done(c->reading, first + i, LADE_OK, NULL);
		else
			read_unit(c, first + i, 1);
	}
	if (count == LADE__RING_FILES || r == c->count)
		return count;
	size_t n = unit_of(c, r);
	read_unit(c, r, n);
	return count + n;
}

/* False: there is no ring. */
static bool read_by_rings(call *c)
{
	lade__ring *ring = lade__ring_take(&c->dir->rings);
	if (!ring)
		return false;
	for (size_t i = 0; i < c->count;)
		i += read_by_ring(c, ring, i);
	lade__ring_give(&c->dir->rings, ring);
	return true;
}

void lade__directory_read(void *ctx, lade_reading *reading, size_t count)
{
	directory *dir = ctx;
	call c = {.dir = dir, .reading = reading, .count = count};
	unsigned most = lade_reading_options(reading)->threads, threads = 0;
	most = most && most < LADE__DIRECTORY_THREADS ? most : LADE__DIRECTORY_THREADS;
	for (size_t i = 0; i < count && threads < most; i += unit_of(&c, i))
		threads++;
	pthread_mutex_init(&c.mutex, NULL);
	if (threads > 1)
		lade__pool_run(&dir->pool, threads - 1, read_units, &c);
	else if (count < dir->ring_least || !read_by_rings(&c))
		read_units(&c);
	pthread_mutex_destroy(&c.mutex);
}
