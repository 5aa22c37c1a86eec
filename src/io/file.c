/*
 * file.c: a source that is a file.
 *
 * Ranges become runs: one behind the other in the file, they are read by one preadv().  Several
 * threads take runs in turn where there are many bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE /* preadv() */
#include "io/file.h"

#include "base/options.h"
#include "base/pool.h"
#include "base/try.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

/* Helpers of a call, and those that it takes when nobody says: pread() of cached bytes is a copy,
 * and a few threads copy as fast as memory goes. */
#define HELPERS_MAX 31
#define THREADS_USUAL 4

/* Bytes that are worth a thread, and the most of a run: several threads share a large range. */
#define THREAD_BYTES ((size_t)1 << 20)
#define RUN_BYTES ((size_t)4 << 20)

/* The most spans of one preadv(). */
#define RUN_SPANS 64

/* The tables of calls of up to this many ranges, of up to RUN_BYTES each, are on the stack. */
#define FEW 8

typedef struct file {
	int fd;
	bool regular;
	uint64_t size; /* of what is no regular file */
	void *map;     /* NULL: not mapped */
	size_t map_size;
	lade__pool pool;
	pthread_t helpers[HELPERS_MAX];
} file;

/* ---- versions ------------------------------------------------------------------------------ */

/* | device 8 | inode 8 | seconds 8 | nanoseconds 8 | size 8 | */
void lade__file_version(const struct stat *st, lade_object_version *version)
{
	uint64_t words[] = {(uint64_t)st->st_dev, (uint64_t)st->st_ino,
	                    (uint64_t)st->st_mtim.tv_sec, (uint64_t)st->st_mtim.tv_nsec,
	                    (uint64_t)st->st_size};
	version->size = sizeof words;
	memcpy(version->bytes, words, sizeof words);
}

/* Size and version of now. */
static lade_status file_look(const file *f, uint64_t *size, lade_object_version *version,
                             lade_error *err)
{
	struct stat st;
	if (fstat(f->fd, &st) != 0)
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "asking for the file's size: %s",
		                 strerror(errno));
	*size = f->regular ? (uint64_t)st.st_size : f->size;
	version->size = 0;
	if (f->regular)
		lade__file_version(&st, version);
	return LADE_OK;
}

/* ---- reading ------------------------------------------------------------------------------- */

/* A part of a range, or all of it. */
typedef struct part {
	size_t range;
	size_t at, size; /* within the range's bytes */
} part;

/* Parts that adjoin in the file. */
typedef struct run {
	uint64_t off;
	size_t first, count; /* parts */
	size_t size;
} run;

typedef struct call {
	file *file;
	lade_range *ranges;
	lade_reading *reading;
	part *parts;
	run *runs;
	size_t run_count;
	atomic_size_t next;
	/* By range: the first failure of a part. */
	_Atomic int *failed;  /* errno; -1: the file ends; -2: cancelled */
} call;

/* The kernel copies at a third of its speed if a place is 1 to 31 bytes ahead of the file's bytes
 * within their pages: docs/performance/log/zarr.md.  NumPy's large arrays are 16 bytes behind the
 * start of a page.  Such bytes go through a buffer with another alignment. */
#define BESIDE_BYTES ((size_t)32 << 10)
#define BESIDE_LEAST 4096

static bool is_slow(const struct iovec *span, uint64_t off)
{
	size_t ahead = ((uintptr_t)span->iov_base - (uintptr_t)off) % 4096;
	return span->iov_len >= BESIDE_LEAST && ahead > 0 && ahead < 32;
}

ssize_t lade__file_read(int fd, const struct iovec *spans, int count, uint64_t off)
{
	char buffer[BESIDE_BYTES + 4096];
	uint64_t at = off;
	int n = 0;
	for (; n < count && !is_slow(&spans[n], at); n++)
		at += spans[n].iov_len;
	if (n > 0)
		return preadv(fd, spans, n, (off_t)off);
	/* 1024 bytes ahead of the file's bytes within their pages. */
	char *to = buffer + ((uintptr_t)off + 1024 - (uintptr_t)buffer) % 4096;
	size_t size = spans[0].iov_len < BESIDE_BYTES ? spans[0].iov_len : BESIDE_BYTES;
	ssize_t got = pread(fd, to, size, (off_t)off);
	if (got > 0)
		memcpy(spans[0].iov_base, to, (size_t)got);
	return got;
}

enum { FILE_ENDS = -1, CANCELLED = -2 };

/* Reads a run.  '*done' gets the bytes that were; returns errno, or one of the above. */
static int read_run(const call *c, const run *r, size_t *done)
{
	struct iovec iov[RUN_SPANS];
	size_t n = 0;
	for (size_t i = 0; i < r->count; i++) {
		const part *p = &c->parts[r->first + i];
		iov[n++] = (struct iovec){(uint8_t *)c->ranges[p->range].dst.data + p->at, p->size};
	}
	struct iovec *at = iov;
	*done = 0;
	while (*done < r->size) {
		ssize_t got = lade__file_read(c->file->fd, at, (int)n, r->off + *done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno;
		if (got == 0)
			return FILE_ENDS;
		*done += (size_t)got;
		for (size_t left = (size_t)got; left;) {
			size_t step = left < at->iov_len ? left : at->iov_len;
			at->iov_base = (uint8_t *)at->iov_base + step;
			at->iov_len -= step;
			left -= step;
			if (at->iov_len == 0)
				at++, n--;
		}
	}
	return 0;
}

static void read_runs(void *ctx)
{
	call *c = ctx;
	for (;;) {
		size_t k = atomic_fetch_add_explicit(&c->next, 1, memory_order_relaxed);
		if (k >= c->run_count)
			return;
		const run *r = &c->runs[k];
		size_t done = 0, end = 0;
		int why = lade_reading_cancelled(c->reading) ? CANCELLED : read_run(c, r, &done);
		for (size_t i = 0; why && i < r->count; i++) {
			const part *p = &c->parts[r->first + i];
			end += p->size;
			if (end > done)
				atomic_store_explicit(&c->failed[p->range], why,
				                      memory_order_relaxed);
		}
	}
}

/* Cuts the bytes at 'off' that a range wants into parts, and adds them to runs. */
static void add_range(call *c, size_t range, uint64_t off, size_t size, size_t *part_count)
{
	for (size_t at = 0; at < size;) {
		run *r = c->run_count ? &c->runs[c->run_count - 1] : NULL;
		size_t n = size - at;
		if (!r || r->off + r->size != off + at || r->count == RUN_SPANS ||
		    r->size >= RUN_BYTES) {
			r = &c->runs[c->run_count++];
			*r = (run){.off = off + at, .first = *part_count};
		}
		n = n < RUN_BYTES - r->size ? n : RUN_BYTES - r->size;
		c->parts[(*part_count)++] = (part){range, at, n};
		r->count++;
		r->size += n;
		at += n;
	}
}

/* The parts that ranges may have, at most: each is cut where a run is full. */
static bool parts_most(const lade_range *ranges, size_t count, size_t *parts)
{
	*parts = 0;
	for (size_t i = 0; i < count; i++)
		if (__builtin_add_overflow(*parts, ranges[i].size / RUN_BYTES + 2, parts))
			return false;
	return *parts <= SIZE_MAX / (sizeof(part) + sizeof(run));
}

/* Reads what the ranges' 'size' and the table of offsets say.  Fails: LADE_E_NOMEM */
static lade_status read_all(call *c, const uint64_t *offs, size_t count, lade_error *err)
{
	size_t most, parts = 0, total = 0;
	part few_parts[2 * FEW];
	run few_runs[2 * FEW];
	bool fits = parts_most(c->ranges, count, &most);
	bool few = fits && most <= 2 * FEW;
	c->parts = few ? few_parts : fits ? malloc(most * (sizeof(part) + sizeof(run))) : NULL;
	if (!c->parts)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory to read %zu ranges", count);
	c->runs = few ? few_runs : (run *)(void *)(c->parts + most);
	for (size_t i = 0; i < count; i++) {
		if (c->ranges[i].status == LADE__PENDING)
			add_range(c, i, offs[i], c->ranges[i].size, &parts);
		total += c->ranges[i].status == LADE__PENDING ? c->ranges[i].size : 0;
	}
	unsigned threads = lade_reading_options(c->reading)->threads;
	size_t worth = total / THREAD_BYTES;
	threads = threads ? threads : THREADS_USUAL;
	if (threads > c->run_count)
		threads = (unsigned)c->run_count;
	if (threads > worth)
		threads = (unsigned)worth;
	if (threads > 1)
		lade__pool_run(&c->file->pool, threads - 1, read_runs, c);
	else
		read_runs(c);
	if (!few)
		free(c->parts);
	return LADE_OK;
}

/* What has to hold before a range is read: its bytes' place, in 'size' and '*off'. */
static lade_status range_begin(lade_range *range, uint64_t size, const lade_object_version *now,
                               uint64_t *off, lade_error *err)
{
	if (range->key)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "a file has no keys: key must be NULL");
	range->object_size = size;
	if (range->want && !lade_object_version_equal(range->want, now))
		return lade_fail(err, LADE_E_CHANGED, LADE_NO_OFFSET,
		                 "the file has changed: it is not the requested version");
	if (range->version)
		*range->version = *now;
	return lade_range_place(range, size, off, &range->size, err);
}

static lade_status range_end(const lade_range *range, uint64_t off, int failed, lade_error *err)
{
	if (failed == CANCELLED)
		return lade_fail(err, LADE_E_CANCELLED, LADE_NO_OFFSET, "the read was cancelled");
	if (failed == FILE_ENDS)
		return lade_fail(err, LADE_E_TRUNCATED, off,
		                 "the file ends before byte %" PRIu64 ", it had %" PRIu64 " bytes",
		                 off + range->size, range->object_size);
	return lade_fail(err, LADE_E_IO, off, "reading %zu bytes at %" PRIu64 ": %s", range->size,
	                 off, strerror(failed));
}

static void file_read(void *ctx, lade_reading *reading, size_t count)
{
	lade_range *ranges = reading->ranges;
	file *f = ctx;
	call c = {.file = f, .ranges = ranges, .reading = reading};
	lade_object_version before, after;
	lade_error look_err, err;
	uint64_t size = 0, now, few_offs[FEW], *offs = few_offs;
	_Atomic int few_failed[FEW] = {0};
	bool versioned = false; /* a range asks for the version */
	c.failed = few_failed;
	lade_status look = file_look(f, &size, &before, &look_err);
	if (look == LADE_OK && count > FEW) {
		offs = calloc(count, sizeof *offs + sizeof *c.failed);
		if (offs)
			c.failed = (_Atomic int *)(void *)(offs + count);
		else
			look = lade_fail(&look_err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "no memory to read %zu ranges", count);
	}
	for (size_t i = 0; i < count; i++) {
		lade_status status = look;
		versioned |= ranges[i].want || ranges[i].version;
		if (look == LADE_OK)
			status = range_begin(&ranges[i], size, &before, &offs[i], &err);
		if (status != LADE_OK)
			lade_reading_done(reading, i, status, look == LADE_OK ? &err : &look_err);
	}
	if (look == LADE_OK)
		look = read_all(&c, offs, count, &look_err);
	/* What was read is of one version only if that is still the file's. */
	bool changed = versioned && look == LADE_OK &&
	               file_look(f, &now, &after, NULL) == LADE_OK &&
	               memcmp(&before, &after, 1 + (size_t)before.size) != 0;
	for (size_t i = 0; i < count; i++) {
		lade_range *range = &ranges[i];
		lade_status status = look;
		if (range->status != LADE__PENDING)
			continue;
		err = look_err;
		if (look == LADE_OK && changed && (range->want || range->version))
			status = lade_fail(&err, LADE_E_CHANGED, LADE_NO_OFFSET,
			                   "the file changed while it was read");
		else if (look == LADE_OK && c.failed[i])
			status = range_end(range, offs[i], c.failed[i], &err);
		lade_reading_done(reading, i, status, &err);
	}
	if (offs != few_offs)
		free(offs);
}

static lade_cspan file_view(void *ctx)
{
	const file *f = ctx;
	return lade_host_cspan(f->map, f->map_size);
}

/* ---- life ---------------------------------------------------------------------------------- */

static void file_close(void *ctx)
{
	file *f = ctx;
	lade__pool_reset(&f->pool);
	if (f->map_size)
		munmap(f->map, f->map_size);
	if (f->fd >= 0)
		close(f->fd);
	free(f);
}

static lade_status file_map(file *f, const char *path, lade_error *err)
{
	static char nothing[1];
	if (f->size == 0) {
		f->map = nothing;
		return LADE_OK;
	}
	void *p = f->size > SIZE_MAX ? MAP_FAILED
	                             : mmap(NULL, (size_t)f->size, PROT_READ, MAP_SHARED, f->fd, 0);
	if (p == MAP_FAILED)
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET,
		                 "%s: mapping %" PRIu64 " bytes: %s", path, f->size,
		                 strerror(errno));
	f->map = p;
	f->map_size = (size_t)f->size;
	return LADE_OK;
}

static lade_status file_open(file *f, const char *path, uint64_t flags, lade_error *err)
{
	struct stat st;
	off_t end = -1;
	/* A FIFO that nobody writes is refused below, not waited for. */
	f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (f->fd < 0)
		return lade_fail(err, errno == ENOENT ? LADE_E_NOT_FOUND : LADE_E_IO,
		                 LADE_NO_OFFSET, "%s: %s", path, strerror(errno));
	if (fstat(f->fd, &st) == 0 && !S_ISDIR(st.st_mode))
		end = S_ISREG(st.st_mode) ? st.st_size : lseek(f->fd, 0, SEEK_END);
	if (end < 0)
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET,
		                 "%s: not a file that can be read anywhere", path);
	f->regular = S_ISREG(st.st_mode);
	f->size = (uint64_t)end;
	return flags & LADE_FILE_MAP ? file_map(f, path, err) : LADE_OK;
}

lade_status lade_source_file_open(const char *path, const lade_file_options *given,
                                  lade_source *out, lade_error *err)
{
	static const lade_source_ops ops = {
		.struct_size = sizeof ops,
		.flags = LADE_SOURCE_LOCAL,
		.read = file_read,
		.view = file_view,
		.close = file_close,
	};
	if (!path || !out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 path ? "out" : "path");
	*out = (lade_source){0};
	lade_file_options options;
	lade_status status =
		lade__options_read(&options, sizeof options, given, "file options", err);
	if (status != LADE_OK)
		return status;
	if (options.flags & ~(uint64_t)LADE_FILE_MAP)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "file options: flags 0x%" PRIx64 ", known are 0x%x", options.flags,
		                 LADE_FILE_MAP);
	file *f = calloc(1, sizeof *f);
	if (!f)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a source");
	status = lade__pool_init(&f->pool, f->helpers, HELPERS_MAX, err);
	if (status != LADE_OK) {
		free(f);
		return status;
	}
	status = file_open(f, path, options.flags, err);
	if (status != LADE_OK) {
		file_close(f);
		return status;
	}
	*out = (lade_source){&ops, f};
	return LADE_OK;
}
