/*
 * zip_write.c: a store that writes a new zip file, which gets its name when it is complete.
 *
 *	temporary file <--(local header, data)-- values      then: directory, fsync, rename
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE /* pwrite() */
#include "base/options.h"
#include "base/support.h"
#include "base/try.h"
#include "store/zip.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libdeflate.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* 1980-01-01 00:00: the first day of the format, so that equal values make equal files. */
#define DAY_ONE 0x00210000u

/* Bytes that are written at once: a cancelled write ends after one. */
#define WRITE_BYTES ((size_t)4 << 20)

typedef struct zip_writer {
	pthread_mutex_t mutex; /* guards what follows */
	lade__zip zip;
	uint64_t end;       /* of what is written */
	bool finished;      /* the file has its name */
	lade_status broken; /* of a write that failed: nothing more is written */
	int fd;
	lade_zip_write_options options;
	char *path, *temp;
} zip_writer;

static lade_status fail(const zip_writer *w, const char *what, lade_error *err)
{
	return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "%s: %s: %s", w->path, what,
	                 strerror(errno));
}

/* Puts bytes at the end of the file; the mutex is held. */
static lade_status append(zip_writer *w, const void *data, size_t size, lade__stop *stop,
                          lade_error *err)
{
	const uint8_t *from = data;
	while (size) {
		if (lade__stopped(stop))
			return lade__stop_fail(err);
		ssize_t n =
			pwrite(w->fd, from, size < WRITE_BYTES ? size : WRITE_BYTES, (off_t)w->end);
		if (n < 0 && errno != EINTR)
			return fail(w, "writing it", err);
		if (n > 0) {
			from += n;
			size -= (size_t)n;
			w->end += (uint64_t)n;
		}
	}
	return LADE_OK;
}

/* ---- headers ------------------------------------------------------------------------------- */

/* A number's 32 bits, or 0xffffffff: then it stands in the zip64 field. */
static uint64_t short_of(uint64_t n)
{
	return n < UINT32_MAX ? n : UINT32_MAX;
}

/* The zip64 field of an entry: | id 2 = 1 | size 2 | those numbers that are too large |.
 * Returns its size. */
static size_t put_zip64(uint8_t *to, const uint64_t *numbers, size_t count)
{
	size_t size = 4;
	for (size_t i = 0; i < count; i++)
		if (numbers[i] >= UINT32_MAX) {
			lade__le_put(to + size, numbers[i], 8);
			size += 8;
		}
	lade__le_put(to, 1, 2);
	lade__le_put(to + 2, size - 4, 2);
	return size > 4 ? size : 0;
}

/* Fields that both headers have, from the version that is needed to the name's size. */
static void put_fields(uint8_t *to, const lade__zip_entry *e)
{
	lade__le_put(to, 45, 2);
	/* Bit 11: names are UTF-8. */
	lade__le_put(to + 2, 1u << 11, 2);
	lade__le_put(to + 4, e->method, 2);
	lade__le_put(to + 6, DAY_ONE, 4);
	lade__le_put(to + 10, e->crc, 4);
	lade__le_put(to + 14, short_of(e->stored_size), 4);
	lade__le_put(to + 18, short_of(e->size), 4);
	lade__le_put(to + 22, e->key_size, 2);
}

static lade_status append_local(zip_writer *w, const lade__zip_entry *e, const char *key,
                                lade__stop *stop, lade_error *err)
{
	/* A local header has both sizes in its zip64 field, or none. */
	uint8_t header[ZIP_LOCAL_SIZE + LADE_KEY_MAX + 20];
	bool large = e->size >= UINT32_MAX || e->stored_size >= UINT32_MAX;
	size_t extra = large ? 20 : 0, at = ZIP_LOCAL_SIZE + e->key_size;
	lade__le_put(header, ZIP_LOCAL, 4);
	put_fields(header + 4, e);
	lade__le_put(header + 28, extra, 2);
	memcpy(header + ZIP_LOCAL_SIZE, key, e->key_size);
	if (large) {
		lade__le_put(header + 18, UINT32_MAX, 4);
		lade__le_put(header + 22, UINT32_MAX, 4);
		lade__le_put(header + at, 1, 2);
		lade__le_put(header + at + 2, 16, 2);
		lade__le_put(header + at + 4, e->size, 8);
		lade__le_put(header + at + 12, e->stored_size, 8);
	}
	return append(w, header, at + extra, stop, err);
}

static lade_status append_entry(zip_writer *w, const lade__zip_entry *e, lade__stop *stop,
                                lade_error *err)
{
	uint8_t header[ZIP_ENTRY_SIZE + LADE_KEY_MAX + 28] = {0};
	size_t at = ZIP_ENTRY_SIZE + e->key_size;
	lade__le_put(header, ZIP_ENTRY, 4);
	lade__le_put(header + 4, 45 | 3u << 8, 2); /* made on Unix */
	put_fields(header + 6, e);
	lade__le_put(header + 38, 0100644u << 16, 4);
	lade__le_put(header + 42, short_of(e->local_off), 4);
	memcpy(header + ZIP_ENTRY_SIZE, w->zip.text + e->name, e->key_size);
	size_t extra =
		put_zip64(header + at, (uint64_t[]){e->size, e->stored_size, e->local_off}, 3);
	lade__le_put(header + 30, extra, 2);
	return append(w, header, at + extra, stop, err);
}

static lade_status append_end(zip_writer *w, uint64_t count, uint64_t off, lade__stop *stop,
                              lade_error *err)
{
	uint8_t large[ZIP64_END_SIZE + ZIP64_LOCATOR_SIZE] = {0}, end[ZIP_END_SIZE] = {0};
	uint64_t size = w->end - off, at = w->end;
	lade__le_put(large, ZIP64_END, 4);
	lade__le_put(large + 4, ZIP64_END_SIZE - 12, 8);
	lade__le_put(large + 12, 45 | 3u << 8, 2);
	lade__le_put(large + 14, 45, 2);
	lade__le_put(large + 24, count, 8);
	lade__le_put(large + 32, count, 8);
	lade__le_put(large + 40, size, 8);
	lade__le_put(large + 48, off, 8);
	lade__le_put(large + 56, ZIP64_LOCATOR, 4);
	lade__le_put(large + 64, at, 8);
	lade__le_put(large + 72, 1, 4);
	lade__le_put(end, ZIP_END, 4);
	lade__le_put(end + 8, count < UINT16_MAX ? count : UINT16_MAX, 2);
	lade__le_put(end + 10, count < UINT16_MAX ? count : UINT16_MAX, 2);
	lade__le_put(end + 12, short_of(size), 4);
	lade__le_put(end + 16, short_of(off), 4);
	lade_status status = LADE_OK;
	if (count >= UINT16_MAX || size >= UINT32_MAX || off >= UINT32_MAX)
		status = append(w, large, sizeof large, stop, err);
	return status == LADE_OK ? append(w, end, sizeof end, stop, err) : status;
}

/* ---- values -------------------------------------------------------------------------------- */

/* Deflates a value if that makes it smaller; '*data' is to be freed, or NULL: '*size' stays. */
static lade_status deflate(const zip_writer *w, lade_cspan src, uint8_t **data, size_t *size,
                           lade_error *err)
{
	struct libdeflate_compressor *c;
	*data = NULL;
	if (!w->options.level || src.size < 2)
		return LADE_OK;
	c = libdeflate_alloc_compressor(w->options.level);
	*data = malloc(src.size - 1);
	if (!c || !*data) {
		libdeflate_free_compressor(c);
		free(*data);
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory to deflate %zu bytes", src.size);
	}
	size_t got = libdeflate_deflate_compress(c, src.data, src.size, *data, src.size - 1);
	libdeflate_free_compressor(c);
	if (got) {
		*size = got;
	} else {
		free(*data);
		*data = NULL;
	}
	return LADE_OK;
}

/* The conditions; the mutex is held. */
static lade_status check(const zip_writer *w, const lade_write *write, const lade__zip_entry *now,
                         lade_error *err)
{
	if (w->finished)
		return lade_fail(err, LADE_E_STATE, LADE_NO_OFFSET, "the zip file is finished");
	if (w->broken != LADE_OK)
		return lade_fail(err, LADE_E_STATE, LADE_NO_OFFSET, "a write before it failed: %s",
		                 lade_status_text(w->broken));
	if (write->want)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "a zip file that is being written has no versions");
	if (write->kind == LADE_WRITE_IF_ABSENT && now)
		return lade_fail(err, LADE_E_CHANGED, LADE_NO_OFFSET, "it has a value already");
	return write->kind == LADE_DELETE_IF_VERSION && !now ? lade__key_absent(err) : LADE_OK;
}

/* Appends a value, 'next', of which 'data' is what is stored. */
static lade_status write_locked(zip_writer *w, const lade_write *write, lade__zip_entry next,
                                const void *data, lade__stop *stop, lade_error *err)
{
	lade__zip_entry *old = lade__zip_find(&w->zip, write->key), *e;
	uint64_t began = w->end;
	lade_status status = check(w, write, old, err);
	if (status != LADE_OK)
		return status;
	if (write->kind == LADE_DELETE_IF_VERSION) {
		old->gone = true;
		return LADE_OK;
	}
	TRY(append_local(w, &next, write->key, stop, err));
	TRY(append(w, data, (size_t)next.stored_size, stop, err));
	TRY(lade__zip_add(&w->zip, write->key, next.key_size, &e, err));
	e->local_off = began;
	e->stored_size = next.stored_size;
	e->size = next.size;
	e->crc = next.crc;
	e->method = next.method;
	return LADE_OK;
out:
	/* The next value takes the place of this one's bytes. */
	w->end = began;
	if (status == LADE_E_IO)
		w->broken = status;
	return status;
}

static lade_status writer_write(void *ctx, lade_write *write, const lade_io_options *options,
                                lade_error *err)
{
	zip_writer *w = ctx;
	lade__stop stop = lade__stop_of(options->cancel);
	lade__zip_entry next = {.key_size = strlen(write->key), .size = write->src.size};
	uint8_t *deflated = NULL;
	size_t size = next.size;
	lade_status status = LADE_OK;
	if (write->kind != LADE_DELETE_IF_VERSION) {
		next.crc = libdeflate_crc32(0, lade__bytes(write->src), next.size);
		status = deflate(w, write->src, &deflated, &size, err);
	}
	if (status != LADE_OK)
		return status;
	next.stored_size = size;
	next.method = deflated ? ZIP_DEFLATED : ZIP_STORED;
	pthread_mutex_lock(&w->mutex);
	status = write_locked(w, write, next, deflated ? deflated : write->src.data, &stop, err);
	pthread_mutex_unlock(&w->mutex);
	free(deflated);
	return status;
}

/* Keys can be read when the file is finished, by lade_store_zip_open(). */
static void writer_read(void *ctx, lade_reading *reading, size_t count)
{
	lade_error err;
	(void)ctx;
	lade_fail(&err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
	          "a zip file that is being written cannot be read");
	for (size_t i = 0; i < count; i++)
		lade_reading_done(reading, i, LADE_E_UNSUPPORTED, &err);
}

static lade_status writer_list(void *ctx, const lade_store_listing *listing, lade_error *err)
{
	zip_writer *w = ctx;
	lade__names names = {0};
	pthread_mutex_lock(&w->mutex);
	bool good = lade__zip_gather(&w->zip, listing, &names);
	pthread_mutex_unlock(&w->mutex);
	lade_status status =
		good ? lade__names_visit(&names, listing, err)
		     : lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a listing");
	lade__names_free(&names);
	return status;
}

/* ---- life ---------------------------------------------------------------------------------- */

static lade_status finish(zip_writer *w, lade_cancel *cancel, lade_error *err)
{
	lade__stop stop = lade__stop_of(cancel);
	uint64_t off = w->end, count = 0;
	lade_status status;
	if (w->finished || w->broken != LADE_OK)
		return lade_fail(err, LADE_E_STATE, LADE_NO_OFFSET, "%s: %s", w->path,
		                 w->finished ? "it is finished" : "a write failed");
	for (size_t i = 0; i < w->zip.count; i++) {
		if (w->zip.entries[i].gone)
			continue;
		TRY(append_entry(w, &w->zip.entries[i], &stop, err));
		count++;
	}
	TRY(append_end(w, count, off, &stop, err));
	/* A failed or cancelled try may have left more. */
	if (ftruncate(w->fd, (off_t)w->end) != 0 || fsync(w->fd) != 0)
		TRY(fail(w, "syncing it", err));
	if (rename(w->temp, w->path) != 0)
		TRY(fail(w, "naming it", err));
	w->finished = true;
	return LADE_OK;
out:
	w->end = off;
	return status;
}

lade_status lade_store_zip_finish(lade_store *store, lade_cancel *cancel, lade_error *err)
{
	zip_writer *w = lade__store_context(store, writer_read);
	if (!w)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "store is not a zip file that is being written");
	pthread_mutex_lock(&w->mutex);
	lade_status status = finish(w, cancel, err);
	pthread_mutex_unlock(&w->mutex);
	return status;
}

static void writer_close(void *ctx)
{
	zip_writer *w = ctx;
	if (w->fd >= 0)
		close(w->fd);
	if (w->temp && !w->finished)
		unlink(w->temp);
	pthread_mutex_destroy(&w->mutex);
	lade__zip_reset(&w->zip);
	free(w->temp);
	free(w->path);
	free(w);
}

/* A file beside 'path' whose name begins with ".lade-". */
static lade_status open_temporary(zip_writer *w, const char *path, lade_error *err)
{
	const char *slash = strrchr(path, '/');
	int dir_size = slash ? (int)(slash - path) + 1 : 0;
	size_t size = (size_t)dir_size + 32;
	w->path = strdup(path);
	w->temp = malloc(size);
	if (!w->path || !w->temp)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a path");
	for (unsigned i = 0; i < 100 && w->fd < 0; i++) {
		snprintf(w->temp, size, "%.*s.lade-%08x%08x", dir_size, path, (unsigned)getpid(),
		         (unsigned)lade__now_ns() + i);
		w->fd = open(w->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
		if (w->fd < 0 && errno != EEXIST)
			break;
	}
	if (w->fd >= 0) {
		flock(w->fd, LOCK_EX | LOCK_NB); /* for a sweep: somebody lives */
		return LADE_OK;
	}
	lade_status status =
		lade_fail(err, errno == ENOENT ? LADE_E_NOT_FOUND : LADE_E_IO, LADE_NO_OFFSET,
	                  "%s: making a temporary file beside it: %s", path, strerror(errno));
	free(w->temp);
	w->temp = NULL;
	return status;
}

lade_status lade_store_zip_create(const char *path, const lade_zip_write_options *given,
                                  lade_store **out, lade_error *err)
{
	static const lade_store_ops ops = {.struct_size = sizeof ops,
	                                   .flags = LADE_STORE_LOCAL,
	                                   .read = writer_read,
	                                   .write = writer_write,
	                                   .list = writer_list,
	                                   .close = writer_close};
	if (!path || !out || strlen(path) > INT_MAX - 64)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL or too long",
		                 path ? "out" : "path");
	*out = NULL;
	zip_writer *w = calloc(1, sizeof *w);
	if (!w)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a store");
	lade_status status;
	w->fd = -1;
	pthread_mutex_init(&w->mutex, NULL);
	TRY(lade__options_read(&w->options, sizeof w->options, given, "zip options", err));
	if (w->options.level < 0 || w->options.level > 12)
		TRY(lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		              "zip options: level is %d, from 0 to 12 are possible",
		              w->options.level));
	TRY(open_temporary(w, path, err));
	TRY(lade__store_new(&ops, w, "zip file that is being written", out, err));
	return LADE_OK;
out:
	writer_close(w);
	return status;
}
