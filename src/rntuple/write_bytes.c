/*
 * write_bytes.c: bytes that grow, frames and envelopes: what bytes.c reads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple/write.h"

#include <lade/checksum.h>

#include <stdlib.h>

/* Room for 'size' more bytes; NULL: there is none. */
static uint8_t *room(rnt_out *out, size_t size)
{
	if (out->failed || size > SIZE_MAX / 2 - out->size) {
		out->failed = true;
		return NULL;
	}
	if (size > out->cap - out->size) {
		size_t cap = out->cap + out->cap / 2;
		cap = cap < out->size + size ? out->size + size : cap;
		cap = cap < 256 ? 256 : cap;
		uint8_t *data = realloc(out->data, cap);
		if (!data) {
			out->failed = true;
			return NULL;
		}
		out->data = data;
		out->cap = cap;
	}
	uint8_t *at = out->data + out->size;
	out->size += size;
	return at;
}

void lade__rnt_put(rnt_out *out, uint64_t value, size_t size)
{
	uint8_t *at = room(out, size);
	if (at)
		lade__le_put(at, value, size);
}

void lade__rnt_put_be(rnt_out *out, uint64_t value, size_t size)
{
	uint8_t *at = room(out, size);
	for (size_t i = 0; at && i < size; i++)
		at[i] = (uint8_t)(value >> 8 * (size - 1 - i));
}

void lade__rnt_put_bytes(rnt_out *out, const void *data, size_t size)
{
	uint8_t *at = room(out, size);
	if (at && size)
		memcpy(at, data, size);
}

void lade__rnt_put_text(rnt_out *out, const char *text)
{
	size_t size = text ? strlen(text) : 0;
	lade__rnt_put(out, size, 4);
	lade__rnt_put_bytes(out, text, size);
}

void lade__rnt_out_free(rnt_out *out)
{
	free(out->data);
	*out = (rnt_out){0};
}

/* ---- frames: | size 8 | content |, | -size 8 | items 4 | content | -------------------------- */

size_t lade__rnt_put_begin(rnt_out *out)
{
	lade__rnt_put(out, 0, 8);
	return out->size - 8;
}

void lade__rnt_put_end(rnt_out *out, size_t begin)
{
	if (!out->failed)
		lade__le_put(out->data + begin, out->size - begin, 8);
}

size_t lade__rnt_put_list(rnt_out *out)
{
	lade__rnt_put(out, 0, 8);
	lade__rnt_put(out, 0, 4);
	return out->size - 12;
}

void lade__rnt_put_list_end(rnt_out *out, size_t begin, uint32_t count)
{
	if (out->failed)
		return;
	lade__le_put(out->data + begin, 0 - (uint64_t)(out->size - begin), 8);
	lade__le_put(out->data + begin + 8, count, 4);
}

/* ---- envelopes ------------------------------------------------------------------------------ */

void lade__rnt_put_envelope(rnt_out *out)
{
	lade__rnt_put(out, 0, 8);
}

void lade__rnt_put_envelope_end(rnt_out *out, rnt_envelope_kind kind, uint64_t *sum)
{
	*sum = 0;
	if (out->failed)
		return;
	lade__le_put(out->data, (uint64_t)kind | (uint64_t)(out->size + 8) << 16, 8);
	*sum = lade_checksum_of(LADE_XXH3, out->data, out->size);
	lade__rnt_put(out, *sum, 8);
}

/* Nothing that is written has 2^31 bytes, so locators are of the standard type. */
void lade__rnt_put_link(rnt_out *out, const rnt_link *link)
{
	lade__rnt_put(out, link->decoded_size, 8);
	lade__rnt_put(out, link->at.size, 4);
	lade__rnt_put(out, link->at.off, 8);
}
