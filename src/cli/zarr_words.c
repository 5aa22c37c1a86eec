/*
 * zarr_words.c: strings of any length, for .npy files, whose strings have one length.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "cli/table.h"
#include "cli/zarr.h"

/* Bytes that are written at once, about. */
#define BUFFER ((uint64_t)1 << 16)

/* What stands for bytes that are not UTF-8. */
#define REPLACEMENT 0xFFFD

lade_status zarr_words_read(const lade_zarr *array, const lade_zarr_selection *selection,
                            unsigned threads, zarr_words *out, lade_error *err)
{
	lade_zarr_read_options options = {.struct_size = sizeof options, .threads = threads};
	lade_zarr_plan *plan = NULL;
	uint64_t count = 0, size = 0;

	*out = (zarr_words){0};
	lade_status status = lade_zarr_plan_new(array, selection, NULL, &options, &plan, err);
	if (status == LADE_OK)
		status = lade_zarr_plan_run(plan, NULL, err);
	if (status == LADE_OK)
		status = lade_zarr_plan_texts(plan, &count, &size, err);
	if (status == LADE_OK) {
		out->count = (size_t)count;
		out->offsets = cli_need(calloc((size_t)count + 1, sizeof *out->offsets));
		/* Zeros behind the last byte end a character that is cut off. */
		out->data = cli_need(calloc((size_t)size + 4, 1));
		status = lade_zarr_plan_fill(
			plan, lade_host_span(out->offsets, ((size_t)count + 1) * 8),
			lade_host_span(out->data, (size_t)size), err);
	}
	lade_zarr_plan_free(plan);
	return status;
}

void zarr_words_free(zarr_words *words)
{
	free(words->offsets);
	free(words->data);
	*words = (zarr_words){0};
}

/* The character at 's' (RFC 3629), and its bytes, of which 'most' are there. */
static unsigned character(const char *s, size_t most, uint32_t *out)
{
	static const unsigned char masks[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
	unsigned n = cli_utf8_length(s);

	if (n == 0 || n > most) {
		*out = REPLACEMENT;
		return 1;
	}
	*out = (unsigned char)s[0] & masks[n];
	for (unsigned i = 1; i < n; i++)
		*out = *out << 6 | ((unsigned char)s[i] & 0x3F);
	return n;
}

/* Stores the characters of element 'i' and returns their number; 'out' may be NULL. */
static uint64_t characters(const zarr_words *words, size_t i, uint32_t *out)
{
	const char *at = words->data + words->offsets[i];
	size_t size = (size_t)(words->offsets[i + 1] - words->offsets[i]);
	uint64_t count = 0;
	uint32_t c;

	while (size > 0) {
		unsigned n = character(at, size, &c);
		if (out)
			out[count] = c;
		count++;
		at += n;
		size -= n;
	}
	return count;
}

uint64_t zarr_words_longest(const zarr_words *words)
{
	uint64_t longest = 0;

	for (size_t i = 0; i < words->count; i++) {
		uint64_t count = characters(words, i, NULL);
		longest = count > longest ? count : longest;
	}
	return longest;
}

lade_status zarr_words_write(const zarr_words *words, uint64_t width, lade_output to,
                             lade_error *err)
{
	size_t size = 4 * (size_t)width, rows = size < BUFFER ? (size_t)BUFFER / size : 1;
	uint32_t *buffer = cli_need(malloc(rows * size));
	lade_status status = LADE_OK;

	for (size_t first = 0; first < words->count && status == LADE_OK; first += rows) {
		size_t here = words->count - first < rows ? words->count - first : rows;
		memset(buffer, 0, here * size);
		for (size_t i = 0; i < here && status == LADE_OK; i++) {
			if (characters(words, first + i, NULL) > width)
				status = lade_fail(err, LADE_E_CHANGED, LADE_NO_OFFSET,
				                   "the strings have become longer meanwhile");
			else
				characters(words, first + i, buffer + i * width);
		}
		if (status == LADE_OK)
			status = to.write(to.ctx, buffer, here * size, err);
	}
	free(buffer);
	return status;
}
