/*
 * source.c: where a frame's bytes come from.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void lade__source_memory(lade__source *source, const void *data, size_t size)
{
	*source = (lade__source){.from.size = size, .base = data, .fd = -1};
	if (!data)
		source->base = (const uint8_t *)""; /* of 0 bytes, none is looked at */
}

void lade__source_calls(lade__source *source, lade_source from)
{
	*source = (lade__source){.from = from, .fd = -1};
}

static lade_status file_read_at(void *ctx, uint64_t off, void *dst, size_t size, lade_error *err)
{
	const lade__source *source = ctx;
	uint8_t *to = dst;
	while (size) {
		/* pread() takes at most SSIZE_MAX; Linux gives less than 2^31 a call. */
		ssize_t n = pread(source->fd, to, size < (1u << 30) ? size : 1u << 30, (off_t)off);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return lade_fail(err, LADE_E_IO, off,
			                 "reading %zu bytes at %" PRIu64 ": %s", size, off,
			                 strerror(errno));
		if (n == 0)
			return lade_fail(err, LADE_E_TRUNCATED, off,
			                 "the file ends at %" PRIu64 ", it had %" PRIu64
			                 " bytes when it was opened",
			                 off, source->from.size);
		to += n;
		off += (uint64_t)n;
		size -= (size_t)n;
	}
	return LADE_OK;
}

lade_status lade__source_path(lade__source *source, const char *path, bool map, lade_error *err)
{
	*source = (lade__source){.fd = -1};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "%s: %s", path, strerror(errno));
	source->fd = fd;
	struct stat st;
	off_t end = -1;
	if (fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode))
		end = S_ISREG(st.st_mode) ? st.st_size : lseek(fd, 0, SEEK_END);
	if (end < 0)
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET,
		                 "%s: not a file that can be read anywhere", path);
	source->from = (lade_source){.ctx = source, .size = (uint64_t)end, .read_at = file_read_at};
	if (!map || end == 0)
		return LADE_OK;
	void *p = (uint64_t)end > SIZE_MAX ? MAP_FAILED :
		mmap(NULL, (size_t)end, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "%s: mapping %lld bytes: %s", path,
		                 (long long)end, strerror(errno));
	source->base = source->map = p;
	source->map_size = (size_t)end;
	return LADE_OK;
}

void lade__source_close(lade__source *source)
{
	if (source->map)
		munmap(source->map, source->map_size);
	if (source->fd >= 0)
		close(source->fd);
	source->map = NULL;
	source->fd = -1;
}

lade_status lade__source_get(const lade__source *source, uint64_t off, size_t size,
                             uint8_t *buffer, const uint8_t **out, lade_error *err)
{
	if (source->base) {
		*out = source->base + off;
		return LADE_OK;
	}
	*out = buffer;
	return source->from.read_at(source->from.ctx, off, buffer, size, err);
}

/* ---- a pipe --------------------------------------------------------------------------------- */

static lade_status input_read(lade__ahead *ahead, void *dst, size_t cap, size_t *got,
                              lade_error *err)
{
	*got = 0;
	lade_status status = ahead->input.read(ahead->input.ctx, dst, cap, got, err);
	if (status != LADE_OK)
		return status;
	if (*got > cap)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "the input gave %zu bytes, asked for were %zu", *got, cap);
	ahead->eof = *got == 0;
	return LADE_OK;
}

lade_status lade__ahead_peek(lade__ahead *ahead, size_t size, const uint8_t **out, size_t *have,
                             lade_error *err)
{
	if (ahead->end - ahead->at < size && ahead->at) {
		memmove(ahead->buffer, ahead->buffer + ahead->at, ahead->end - ahead->at);
		ahead->end -= ahead->at;
		ahead->at = 0;
	}
	while (ahead->end - ahead->at < size && !ahead->eof) {
		size_t got;
		lade_status status = input_read(ahead, ahead->buffer + ahead->end,
		                                LADE__AHEAD - ahead->end, &got, err);
		if (status != LADE_OK)
			return status;
		ahead->end += got;
	}
	*out = ahead->buffer + ahead->at;
	*have = ahead->end - ahead->at < size ? ahead->end - ahead->at : size;
	return LADE_OK;
}

lade_status lade__ahead_read(lade__ahead *ahead, void *dst, size_t size, size_t *got,
                             lade_error *err)
{
	uint8_t *to = dst;
	size_t have = ahead->end - ahead->at, n = have < size ? have : size;
	memcpy(to, ahead->buffer + ahead->at, n);
	lade__ahead_skip(ahead, n);
	while (n < size && !ahead->eof) {
		size_t more;
		lade_status status = input_read(ahead, to + n, size - n, &more, err);
		if (status != LADE_OK)
			return status;
		n += more;
		ahead->off += more;
	}
	*got = n;
	return LADE_OK;
}
