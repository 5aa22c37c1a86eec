/*
 * walk.c: the decoded sizes of .zst files (RFC 8878) and .lz4 files (LZ4 frame format 1.6), as
 * their frames' headers state them: from one block's header to the next, and nothing is decoded.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>
#include <unistd.h>

#include "cli/work.h"

typedef struct walk {
	int fd;
	uint64_t size, at; /* of the file; where the next header begins */
	uint64_t held_off; /* held[0] of the file */
	size_t held_size;
	uint8_t held[4096];
} walk;

/* Takes a number of 'count' bytes; '*ok' becomes false where they are not there. */
static uint64_t take(walk *w, unsigned count, bool *ok)
{
	uint64_t value = 0;

	if (!*ok || w->at > w->size || w->size - w->at < count) {
		*ok = false;
		return 0;
	}
	if (w->at < w->held_off || w->at + count > w->held_off + w->held_size) {
		ssize_t got = pread(w->fd, w->held, sizeof w->held, (off_t)w->at);
		w->held_off = w->at;
		w->held_size = got > 0 ? (size_t)got : 0;
		*ok = w->held_size >= count;
	}
	for (unsigned i = 0; i < count && *ok; i++)
		value |= (uint64_t)w->held[w->at - w->held_off + i] << 8 * i;
	w->at += count;
	return value;
}

/* 3.1.1: | descriptor 1 | window 1 | dictionary's id 4 | content size 8 | blocks | sum 4 | */
static bool zst_frame(walk *w, uint64_t *content)
{
	static const unsigned id_sizes[] = {0, 1, 2, 4};
	bool ok = true, last = false;
	unsigned flags = (unsigned)take(w, 1, &ok);
	bool single = flags & 0x20;
	unsigned size_size = flags >> 6 ? 1u << (flags >> 6) : single;

	take(w, (single ? 0 : 1) + id_sizes[flags & 3], &ok);
	*content = take(w, size_size, &ok) + (size_size == 2 ? 256 : 0);
	/* | last 1 bit | kind 2 bits | size 21 bits | */
	while (ok && !last) {
		unsigned block = (unsigned)take(w, 3, &ok), kind = block >> 1 & 3;
		last = block & 1;
		w->at += kind == 1 ? 1 : block >> 3;
		ok = ok && kind != 3;
	}
	w->at += flags & 4 ? 4 : 0;
	return ok && size_size && !(flags & 8);
}

/* | flags 1 | blocks 1 | content size 8 | dictionary's id 4 | header's sum 1 | blocks | sum 4 | */
static bool lz4_frame(walk *w, uint64_t *content)
{
	bool ok = true;
	unsigned flags = (unsigned)take(w, 1, &ok);
	uint64_t block;

	take(w, 1, &ok);
	*content = take(w, flags & 8 ? 8 : 0, &ok);
	take(w, (flags & 1 ? 4 : 0) + 1, &ok);
	while ((block = take(w, 4, &ok)) != 0)
		w->at += (block & 0x7FFFFFFF) + (flags & 16 ? 4 : 0);
	w->at += flags & 4 ? 4 : 0;
	return ok && flags & 8 && flags >> 6 == 1;
}

bool cli_walk(const cli_in *in, lade_format format, uint64_t *decoded, uint64_t *frames)
{
	walk w = {.fd = in->fd, .size = (uint64_t)in->stat.st_size};
	bool zst = format == LADE_FORMAT_ZST, ok = zst || format == LADE_FORMAT_LZ4;

	*decoded = *frames = 0;
	while (ok && w.at < w.size) {
		uint64_t magic = take(&w, 4, &ok), content = 0;
		if (magic >> 4 == 0x184D2A5) {
			w.at += take(&w, 4, &ok);
			continue;
		}
		ok = ok && magic == (zst ? 0xFD2FB528 : 0x184D2204) &&
		     (zst ? zst_frame : lz4_frame)(&w, &content) &&
		     !__builtin_add_overflow(*decoded, content, decoded);
		*frames += ok;
	}
	return ok && w.at == w.size && *frames;
}
