/*
 * held.c: bytes that are read ahead while a file is opened, since a server takes as long for one
 * range as for a few.  ROOT writes the footer, page lists and the anchor at the end of a file, and
 * the header near its start.
 *
 *     | head | header | pages ...                    | page lists, footer, anchor, keys |
 *     |- 1 -|-- 2 ---|                            |----------------- 1 ----------------|
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple/rntuple.h"

#include <stdlib.h>

enum {
	HEAD_SIZE = 1024,      /* has the directory, unless the file's name is very long */
	TAIL_SIZE = 32 << 10,  /* reading it takes a local file some microseconds */
	HELD_BYTES = 16 << 20, /* of one call */
};

const uint8_t *lade__rnt_held(const rnt_file *file, uint64_t off, uint64_t size)
{
	for (size_t i = 0; i < file->held_count; i++) {
		const rnt_held *h = &file->held[i];
		if (off >= h->off && size <= h->size && off - h->off <= h->size - size)
			return h->data + (off - h->off);
	}
	return NULL;
}

void lade__rnt_hold_none(rnt_file *file)
{
	for (size_t i = 0; i < file->held_count; i++)
		free(file->held[i].data);
	free(file->held);
	file->held = NULL;
	file->held_count = 0;
}

static lade_io_options options_of(const rnt_file *file)
{
	return (lade_io_options){.struct_size = sizeof(lade_io_options),
	                         .request_size = sizeof(lade_range),
	                         .cancel = file->cancel};
}

lade_status lade__rnt_hold_ends(rnt_file *file, lade_error *err)
{
	lade_object_version versions[2] = {{0}, {0}};
	lade_error errors[2] = {{.status = LADE_OK}, {.status = LADE_OK}};
	lade_io_options options = options_of(file);
	uint8_t *data[2] = {malloc(HEAD_SIZE), malloc(TAIL_SIZE)};
	lade_status status = LADE_OK;
	file->version.size = 0;
	file->held = calloc(RNT_HELD_MAX, sizeof *file->held);
	if (!data[0] || !data[1] || !file->held) {
		status = lade__rnt_nomem(err);
		goto out;
	}
	lade_range ranges[2] = {
		{.dst = lade_host_span(data[0], HEAD_SIZE), .version = &versions[0]},
		{.dst = lade_host_span(data[1], TAIL_SIZE),
		 .kind = LADE_RANGE_LAST,
		 .version = &versions[1]},
	};
	options.errors = errors;
	(void)lade_source_read(file->source, ranges, 2, &options, NULL);
	/* A file below 1 KiB has no such head, but its tail is all of it. */
	size_t known = ranges[1].status == LADE_OK || ranges[0].status != LADE_OK;
	status = ranges[known].status;
	if (status != LADE_OK) {
		if (err)
			*err = errors[known];
		goto out;
	}
	file->size = ranges[known].object_size;
	file->version = versions[known];
	for (size_t i = 0; i < 2; i++) {
		bool same = memcmp(&versions[i], &file->version, sizeof file->version) == 0;
		if (ranges[i].status != LADE_OK || !same || (i && file->size == LADE_SIZE_UNKNOWN))
			continue;
		file->held[file->held_count++] = (rnt_held){
			i ? file->size - ranges[i].size : 0, ranges[i].size, data[i]};
		data[i] = NULL;
	}
out:
	free(data[0]);
	free(data[1]);
	return status;
}

void lade__rnt_hold(rnt_file *file, const rnt_locator *at, size_t count)
{
	lade_range ranges[RNT_HELD_MAX];
	lade_io_options options = options_of(file);
	size_t n = 0, total = 0;
	if (!file->held)
		return;
	for (size_t i = 0; i < count && file->held_count + n < RNT_HELD_MAX; i++) {
		if (at[i].size == 0 || at[i].size > HELD_BYTES - total ||
		    (file->key_max && at[i].size > file->key_max) ||
		    lade__rnt_held(file, at[i].off, at[i].size))
			continue;
		if (file->size != LADE_SIZE_UNKNOWN &&
		    (at[i].size > file->size || at[i].off > file->size - at[i].size))
			continue;
		void *data = malloc((size_t)at[i].size);
		if (!data)
			break;
		total += (size_t)at[i].size;
		ranges[n++] = (lade_range){.off = at[i].off,
		                           .want = file->version.size ? &file->version : NULL,
		                           .dst = lade_host_span(data, (size_t)at[i].size)};
	}
	/* One range is as fast when it is fetched. */
	if (n > 1)
		(void)lade_source_read(file->source, ranges, n, &options, NULL);
	for (size_t i = 0; i < n; i++) {
		if (n > 1 && ranges[i].status == LADE_OK)
			file->held[file->held_count++] = (rnt_held){
				ranges[i].off, ranges[i].dst.size, ranges[i].dst.data};
		else
			free(ranges[i].dst.data);
	}
}
