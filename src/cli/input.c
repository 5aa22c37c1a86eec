/*
 * input.c: reads files and pipes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "cli/io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/progress.h"

int cli_in_open(cli_in *in, const char *name)
{
	*in = (cli_in){.name = name, .fd = -1};
	if (strcmp(name, "-") == 0) {
		in->name = "standard input";
		in->fd = STDIN_FILENO;
		in->is_stdin = true;
		if (fstat(in->fd, &in->stat) != 0)
			goto failed;
		/* A file that was partly read before shows the wrong size. */
		in->has_size = S_ISREG(in->stat.st_mode) && in->stat.st_size > 0 &&
			       lseek(in->fd, 0, SEEK_CUR) == 0;
		return CLI_OK;
	}
	if (stat(name, &in->stat) != 0)
		goto failed;
	if (S_ISDIR(in->stat.st_mode)) {
		cli_error("%s: is a directory (-r takes the files in it)", name);
		return CLI_FAILED;
	}
	if (!S_ISREG(in->stat.st_mode) && !S_ISFIFO(in->stat.st_mode)) {
		cli_error("%s: is neither a file nor a pipe", name);
		return CLI_FAILED;
	}
	in->fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (in->fd < 0 || fstat(in->fd, &in->stat) != 0)
		goto failed;
	/* Files of /proc and /sys say 0 and have more. */
	in->has_size = S_ISREG(in->stat.st_mode) && in->stat.st_size > 0;
	if (in->has_size)
		posix_fadvise(in->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	return CLI_OK;

failed:
	cli_error("%s: %s", in->name, strerror(errno));
	cli_in_close(in);
	return CLI_FAILED;
}

void cli_in_close(cli_in *in)
{
	if (in->fd >= 0 && !in->is_stdin)
		close(in->fd);
	in->fd = -1;
	free(in->held);
	in->held = NULL;
}

/* One read() from the file, and whether the file is still what it was. */
static lade_status read_file(cli_in *in, void *dst, size_t cap, size_t *got, lade_error *err)
{
	ssize_t n;

	do
		n = read(in->fd, dst, cap);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "reading failed: %s",
		                 strerror(errno));
	in->taken += (size_t)n;
	*got = (size_t)n;
	progress_add((size_t)n, 0);
	uint64_t size = (uint64_t)in->stat.st_size;
	if (in->fixed && (in->taken > size || (n == 0 && in->taken < size)))
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET,
		                 "the file %s while it was read: it had %" PRIu64
		                 " bytes, %" PRIu64 " have come",
		                 n ? "grew" : "shrank", size, in->taken);
	return LADE_OK;
}

static lade_status hold(cli_in *in, size_t cap, lade_error *err)
{
	if (in->held_cap - in->held_pos >= cap)
		return LADE_OK;
	size_t have = in->held_end - in->held_pos;
	uint8_t *data = malloc(cap);
	if (!data)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu bytes", cap);
	if (have)
		memcpy(data, in->held + in->held_pos, have);
	free(in->held);
	in->held = data;
	in->held_cap = cap;
	in->held_pos = 0;
	in->held_end = have;
	return LADE_OK;
}

lade_status cli_in_peek(cli_in *in, size_t size, const uint8_t **data, size_t *have,
                        lade_error *err)
{
	lade_status status = hold(in, size, err);
	size_t got = 1;

	while (status == LADE_OK && got && in->held_end - in->held_pos < size) {
		status = read_file(in, in->held + in->held_end,
		                   size - (in->held_end - in->held_pos), &got, err);
		if (status == LADE_OK)
			in->held_end += got;
	}
	*data = in->held + in->held_pos;
	*have = in->held_end - in->held_pos;
	return status;
}

void cli_in_skip(cli_in *in, size_t size)
{
	in->held_pos += size;
}

lade_status cli_in_return(cli_in *in, const void *data, size_t size, lade_error *err)
{
	size_t have = in->held_end - in->held_pos;
	uint8_t *all = malloc(size + have + 1);

	if (!all)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu bytes",
		                 size);
	if (size)
		memcpy(all, data, size);
	if (have)
		memcpy(all + size, in->held + in->held_pos, have);
	free(in->held);
	in->held = all;
	in->held_cap = size + have + 1;
	in->held_pos = 0;
	in->held_end = size + have;
	return LADE_OK;
}

static lade_status read_next(void *ctx, void *dst, size_t cap, size_t *got, lade_error *err)
{
	cli_in *in = ctx;
	size_t held = in->held_end - in->held_pos;

	if (!held)
		return read_file(in, dst, cap, got, err);
	if (held > cap)
		held = cap;
	memcpy(dst, in->held + in->held_pos, held);
	in->held_pos += held;
	*got = held;
	return LADE_OK;
}

lade_input cli_in_input(cli_in *in)
{
	return (lade_input){in, read_next};
}

static lade_status read_at(const cli_in *in, uint64_t off, void *dst, size_t size,
                           lade_error *err)
{
	uint8_t *p = dst;

	while (size) {
		ssize_t n = pread(in->fd, p, size, (off_t)off);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return lade_fail(err, LADE_E_IO, off, "reading failed: %s",
			                 strerror(errno));
		if (n == 0)
			return lade_fail(err, LADE_E_IO, off, "the file shrank while it was read");
		p += n;
		size -= (size_t)n;
		off += (uint64_t)n;
		progress_add((size_t)n, 0);
	}
	return LADE_OK;
}

static void read_ranges(void *ctx, lade_reading *reading, size_t count)
{
	const cli_in *in = ctx;

	for (size_t i = 0; i < count; i++) {
		lade_range *range = lade_reading_range(reading, i);
		lade_error err;
		uint64_t off;

		range->object_size = (uint64_t)in->stat.st_size;
		lade_status status = lade_range_place(range, range->object_size, &off,
		                                      &range->size, &err);
		if (status == LADE_OK)
			status = read_at(in, off, range->dst.data, range->size, &err);
		lade_reading_done(reading, i, status, &err);
	}
}

lade_source cli_in_source(cli_in *in)
{
	static const lade_source_ops ops = {.struct_size = sizeof ops,
	                                    .flags = LADE_SOURCE_LOCAL,
	                                    .read = read_ranges};

	return (lade_source){&ops, in};
}
