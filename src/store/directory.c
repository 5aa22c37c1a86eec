/*
 * directory.c: the store of the files below a directory.
 *
 * A reading's requests become units: some neighbouring requests of one key.  Threads take units in
 * turn; each opens the key's file, looks at its version, reads, and looks again.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE /* preadv() */
#include "base/options.h"
#include "base/pool.h"
#include "base/try.h"
#include "io/file.h"
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* Threads that read at once, the caller's among them. */
#define THREADS 4

/* A unit ends with this many requests or bytes. */
#define UNIT_REQUESTS 16
#define UNIT_BYTES ((size_t)4 << 20)

/* The spans and the bytes of one preadv(): a cancelled read ends after one.  Bytes that nobody
 * wants go to a buffer of the last size. */
#define SPANS 64
#define STEP_BYTES ((size_t)4 << 20)
#define UNWANTED_BYTES 16384

typedef struct directory {
	int fd;
	uint64_t flags;
	lade__pool pool;
	pthread_t helpers[THREADS - 1];
	char path[]; /* absolute */
} directory;

/* ---- reading ------------------------------------------------------------------------------- */

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

static lade_status read_bytes(call *c, int fd, size_t r, uint64_t off, lade_error *err)
{
	size_t size = lade_reading_range(c->reading, r)->size;
	struct iovec spans[SPANS];
	uint8_t unwanted[UNWANTED_BYTES];
	for (size_t at = 0; at < size;) {
		if (lade_reading_cancelled(c->reading))
			return lade_fail(err, LADE_E_CANCELLED, LADE_NO_OFFSET,
			                 "the read was cancelled");
		int n = spans_of(c->reading, r, size, at, spans, unwanted);
		ssize_t got = preadv(fd, spans, n, (off_t)(off + at));
		if (got < 0 && errno != EINTR)
			return lade_fail(err, LADE_E_IO, off + at, "reading at %" PRIu64 ": %s",
			                 off + at, strerror(errno));
		if (got == 0)
			return lade_fail(err, LADE_E_TRUNCATED, off + at,
			                 "the file ends at %" PRIu64 ", before %" PRIu64, off + at,
			                 off + size);
		at += got > 0 ? (size_t)got : 0;
	}
	return LADE_OK;
}

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
	do
		*fd = openat(dir->fd, key, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	while (*fd < 0 && errno == EINTR);
	if (*fd >= 0)
		return LADE_OK;
	if (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG)
		return lade__key_absent(err);
	return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "opening the file: %s", strerror(errno));
}

/* Requests from 'first' on, of one key. */
static void read_unit(call *c, size_t first, size_t count)
{
	lade_reading *reading = c->reading;
	lade_error errors[UNIT_REQUESTS], err = {0};
	lade_status statuses[UNIT_REQUESTS];
	lade_object_version before, after;
	uint64_t size, now, off;
	int fd = -1;
	bool cancelled = lade_reading_cancelled(reading);
	lade_status all =
		cancelled ? LADE_E_CANCELLED
			  : open_key(c->dir, lade_reading_range(reading, first)->key, &fd, &err);
	if (all == LADE_OK)
		all = look(fd, &size, &before, &err);
	for (size_t i = 0; i < count && all == LADE_OK; i++) {
		lade_range *range = lade_reading_range(reading, first + i);
		statuses[i] = lade__range_answer(range, size, &before, &off, &errors[i]);
		if (statuses[i] == LADE_OK)
			statuses[i] = read_bytes(c, fd, first + i, off, &errors[i]);
	}
	bool changed = all == LADE_OK && look(fd, &now, &after, NULL) == LADE_OK &&
	               !lade_object_version_equal(&before, &after);
	for (size_t i = 0; i < count; i++) {
		lade_status status = all == LADE_OK ? statuses[i] : all;
		if (changed && (status == LADE_OK || status == LADE_E_TRUNCATED))
			status = lade_fail(&errors[i], LADE_E_CHANGED, LADE_NO_OFFSET,
			                   "the file changed while it was read");
		lade_reading_done(reading, first + i, status, all == LADE_OK ? &errors[i] : &err);
	}
	if (fd >= 0)
		close(fd);
}

/* The requests of the next unit; 0: there are no more. */
static size_t take_unit(call *c, size_t *first)
{
	size_t n = 0, bytes = 0;
	pthread_mutex_lock(&c->mutex);
	*first = c->next;
	while (c->next + n < c->count && n < UNIT_REQUESTS && bytes < UNIT_BYTES) {
		const lade_range *range = lade_reading_range(c->reading, c->next + n);
		const lade_range *head = lade_reading_range(c->reading, c->next);
		if (range->key != head->key && strcmp(range->key, head->key) != 0)
			break;
		bytes += range->dst.size < UNIT_BYTES ? range->dst.size : UNIT_BYTES;
		n++;
	}
	c->next += n;
	pthread_mutex_unlock(&c->mutex);
	return n;
}

static void read_units(void *ctx)
{
	call *c = ctx;
	size_t first, n;
	while ((n = take_unit(c, &first)) > 0)
		read_unit(c, first, n);
}

static void directory_read(void *ctx, lade_reading *reading, size_t count)
{
	directory *dir = ctx;
	call c = {.dir = dir, .reading = reading, .count = count};
	unsigned threads = lade_reading_options(reading)->threads;
	threads = threads && threads < THREADS ? threads : THREADS;
	pthread_mutex_init(&c.mutex, NULL);
	if (threads > count)
		threads = (unsigned)count;
	if (threads > 1)
		lade__pool_run(&dir->pool, threads - 1, read_units, &c);
	else
		read_units(&c);
	pthread_mutex_destroy(&c.mutex);
}

/* ---- writing ------------------------------------------------------------------------------- */

/* The path of a key, to be freed.  NULL: no memory. */
static char *path_of(const directory *dir, const char *key)
{
	size_t base = strlen(dir->path), size = strlen(key) + 1;
	char *path = malloc(base + 1 + size);
	if (!path)
		return NULL;
	memcpy(path, dir->path, base);
	path[base] = '/';
	memcpy(path + base + 1, key, size);
	return path;
}

/* Makes the directories above a file. */
static lade_status make_parents(const directory *dir, char *path, lade_error *err)
{
	for (char *at = path + strlen(dir->path) + 1; (at = strchr(at, '/')); at++) {
		*at = 0;
		int rc = mkdir(path, 0777);
		if (rc != 0 && errno != EEXIST) {
			lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "making the directory %s: %s",
			          path, strerror(errno));
			*at = '/';
			return LADE_E_IO;
		}
		*at = '/';
	}
	return LADE_OK;
}

/* Removes the directories above a file that are empty. */
static void remove_parents(const directory *dir, char *path)
{
	size_t base = strlen(dir->path) + 1;
	for (char *at; (at = strrchr(path + base, '/'));) {
		*at = 0;
		if (rmdir(path) != 0)
			return;
	}
}

static lade_status directory_write(void *ctx, lade_write *write, const lade_io_options *options,
                                   lade_error *err)
{
	directory *dir = ctx;
	bool sync = dir->flags & LADE_DIRECTORY_SYNC;
	bool delete = write->kind == LADE_DELETE_IF_VERSION;
	lade_status status = LADE_OK;
	char *path = path_of(dir, write->key);
	if (!path)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a path");
	/* Who deletes a neighbour may remove the directory that was just made. */
	for (int i = 0; i < 8; i++) {
		status = lade__file_write(path, write, sync, options, err);
		if (status != LADE_E_NOT_FOUND || delete || write->kind == LADE_WRITE_IF_VERSION)
			break;
		TRY(make_parents(dir, path, err));
	}
	if (status == LADE_OK && delete)
		remove_parents(dir, path);
out:
	free(path);
	return status;
}

/* ---- listing ------------------------------------------------------------------------------- */

typedef struct walk {
	const directory *dir;
	const lade_store_listing *listing;
	lade__stop stop;
	lade_error *err;
	char key[LADE_KEY_MAX + 2];
} walk;

static lade_status no_memory(lade_error *err)
{
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a listing");
}

/* Adds what an entry of a directory stands for: a file, or a directory with a '/' at its end. */
static lade_status add_entry(walk *w, int fd, const struct dirent *entry, lade__names *names)
{
	struct stat st = {.st_mode = 0};
	uint64_t size = LADE_SIZE_UNKNOWN;
	bool file = entry->d_type == DT_REG, sub = entry->d_type == DT_DIR;
	if (lade_key_check(entry->d_name, NULL) != LADE_OK)
		return LADE_OK; /* "." and "..", and what no key can name */
	if ((!file && !sub) || (file && w->listing->sizes)) {
		if (fstatat(fd, entry->d_name, &st, 0) != 0)
			return LADE_OK; /* gone meanwhile */
		file = S_ISREG(st.st_mode);
		sub = S_ISDIR(st.st_mode);
		if (file && w->listing->sizes)
			size = (uint64_t)st.st_size;
	}
	if ((!file && !sub) ||
	    lade__names_add(names, entry->d_name, strlen(entry->d_name), sub, size))
		return LADE_OK;
	return no_memory(w->err);
}

/* Reads the names of the directory that the walk is at. */
static lade_status read_names(walk *w, lade__names *names)
{
	const char *at = w->key[0] ? w->key : ".";
	int fd = openat(w->dir->fd, at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	lade_status status = LADE_OK;
	if (!dir) {
		int why = errno;
		if (fd >= 0)
			close(fd);
		if (why == ENOENT || why == ENOTDIR)
			return LADE_OK;
		return lade_fail(w->err, why == ENOMEM ? LADE_E_NOMEM : LADE_E_IO, LADE_NO_OFFSET,
		                 "%s/%s: listing it: %s", w->dir->path, w->key, strerror(why));
	}
	const struct dirent *entry;
	while (errno = 0, status == LADE_OK && (entry = readdir(dir)))
		status = add_entry(w, fd, entry, names);
	if (status == LADE_OK && errno)
		status = lade_fail(w->err, LADE_E_IO, LADE_NO_OFFSET, "%s/%s: listing it: %s",
		                   w->dir->path, w->key, strerror(errno));
	closedir(dir);
	if (status == LADE_OK && !lade__names_sort(names))
		status = no_memory(w->err);
	return status;
}

/* Visits what is below w->key, "" or with a '/' at its end.  Symbolic links may form circles: keys
 * end at LADE_KEY_MAX bytes. */
static lade_status walk_directory(walk *w)
{
	lade__names names = {0};
	size_t base = strlen(w->key);
	lade_status status;
	TRY(read_names(w, &names));
	for (size_t i = 0; i < names.count; i++) {
		const char *name = names.text + names.names[i].at;
		size_t size = strlen(name);
		if (lade__stopped(&w->stop))
			TRY(lade__stop_fail(w->err));
		if (size > LADE_KEY_MAX - base)
			continue;
		memcpy(w->key + base, name, size + 1);
		lade_store_entry entry = {sizeof entry, w->key, names.names[i].size};
		if (name[size - 1] == '/' && !w->listing->level)
			TRY(walk_directory(w));
		else
			TRY(w->listing->visit(w->listing->ctx, &entry));
		w->key[base] = 0;
	}
out:
	lade__names_free(&names);
	return status;
}

static lade_status directory_list(void *ctx, const lade_store_listing *listing, lade_error *err)
{
	walk w = {
		.dir = ctx, .listing = listing, .stop = lade__stop_of(listing->cancel), .err = err};
	memcpy(w.key, listing->prefix, strlen(listing->prefix) + 1);
	return walk_directory(&w);
}

/* ---- life ---------------------------------------------------------------------------------- */

static void directory_close(void *ctx)
{
	directory *dir = ctx;
	lade__pool_reset(&dir->pool);
	close(dir->fd);
	free(dir);
}

/* The directory's absolute path, which is made if that is wanted. */
static lade_status find(const char *path, uint64_t flags, char **absolute, lade_error *err)
{
	if (flags & LADE_DIRECTORY_CREATE && mkdir(path, 0777) != 0 && errno != EEXIST)
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "%s: making it: %s", path,
		                 strerror(errno));
	*absolute = realpath(path, NULL);
	if (*absolute)
		return LADE_OK;
	return lade_fail(err,
	                 errno == ENOENT   ? LADE_E_NOT_FOUND
	                 : errno == ENOMEM ? LADE_E_NOMEM
	                                   : LADE_E_IO,
	                 LADE_NO_OFFSET, "%s: %s", path, strerror(errno));
}

lade_status lade_store_directory_open(const char *path, const lade_directory_options *given,
                                      lade_store **out, lade_error *err)
{
	static const lade_store_ops ops = {.struct_size = sizeof ops,
	                                   .flags = LADE_STORE_LOCAL | LADE_STORE_PARTS,
	                                   .parallel = THREADS,
	                                   .request_ns = 10000,
	                                   .request_rate = 3000000000,
	                                   .read = directory_read,
	                                   .write = directory_write,
	                                   .list = directory_list,
	                                   .close = directory_close};
	const uint64_t known =
		LADE_DIRECTORY_SYNC | LADE_DIRECTORY_CREATE | LADE_DIRECTORY_READ_ONLY;
	lade_directory_options options;
	char name[128], *absolute = NULL;
	directory *dir = NULL;
	if (!path || !out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 path ? "out" : "path");
	*out = NULL;
	lade_status status;
	TRY(lade__options_read(&options, sizeof options, given, "directory options", err));
	if (options.flags & ~known)
		TRY(lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		              "directory options: flags 0x%" PRIx64 ", known are 0x%" PRIx64,
		              options.flags, known));
	TRY(find(path, options.flags, &absolute, err));
	size_t size = strlen(absolute) + 1;
	dir = malloc(sizeof *dir + size);
	if (!dir)
		TRY(lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a store"));
	*dir = (directory){.flags = options.flags};
	memcpy(dir->path, absolute, size);
	if (absolute[1] == 0)
		dir->path[0] = 0; /* the root: keys follow a '/' */
	TRY(lade__pool_init(&dir->pool, dir->helpers, THREADS - 1, err));
	dir->fd = open(absolute, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	lade_store_ops own = ops;
	if (options.flags & LADE_DIRECTORY_READ_ONLY)
		own.write = NULL;
	snprintf(name, sizeof name, "directory %s", absolute);
	if (dir->fd < 0)
		status = lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "%s: %s", path, strerror(errno));
	else
		status = lade__store_new(&own, dir, name, out, err);
	if (status != LADE_OK && dir->fd >= 0)
		close(dir->fd);
	if (status != LADE_OK)
		lade__pool_reset(&dir->pool);
out:
	if (status != LADE_OK)
		free(dir);
	free(absolute);
	return status;
}
