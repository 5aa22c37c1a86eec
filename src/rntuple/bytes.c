/*
 * bytes.c: cursors over envelopes, which never read past their end, and memory of an RNTuple.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple/rntuple.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCK_SIZE ((size_t)64 << 10)

/* ---- memory ------------------------------------------------------------------------------- */

typedef struct rnt_memory_block {
	struct rnt_memory_block *next;
	size_t used, size;
	_Alignas(16) uint8_t bytes[];
} block;

void *lade__rnt_keep(rnt_memory *memory, size_t count, size_t size)
{
	size_t want;
	if (__builtin_mul_overflow(count, size, &want) || want > SIZE_MAX / 2)
		return NULL;
	want = (want + 15) & ~(size_t)15;
	block *b = memory->blocks;
	if (!b || want > b->size - b->used) {
		size_t room = want > BLOCK_SIZE ? want : BLOCK_SIZE;
		b = calloc(1, sizeof *b + room);
		if (!b)
			return NULL;
		b->size = room;
		b->next = memory->blocks;
		memory->blocks = b;
	}
	void *at = b->bytes + b->used;
	b->used += want;
	return at;
}

void lade__rnt_memory_free(rnt_memory *memory)
{
	while (memory->blocks) {
		block *next = memory->blocks->next;
		free(memory->blocks);
		memory->blocks = next;
	}
}

bool lade__rnt_grow(void *table, size_t *cap, size_t count, size_t size)
{
	void **at = table;
	if (count < *cap)
		return true;
	size_t room = *cap ? *cap + *cap / 2 : 16;
	void *new = room > SIZE_MAX / size ? NULL : realloc(*at, room * size);
	if (!new)
		return false;
	*at = new;
	*cap = room;
	return true;
}

/* ---- cursors ------------------------------------------------------------------------------ */

lade_status lade__rnt_bad(const rnt_in *in, lade_status status, const char *format, ...)
{
	rnt_fault *fault = in->fault;
	char text[160];
	va_list args;
	if (fault->status != LADE_OK)
		return fault->status;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	fault->status = status;
	return lade_fail(fault->err, status, in->at, "rntuple: the %s, byte %zu: %s", fault->what,
	                 in->at, text);
}

/* Whether 'size' more bytes are there; else sets the fault. */
static bool has(rnt_in *in, uint64_t size)
{
	if (!lade__rnt_ok(in))
		return false;
	if (size <= in->end - in->at)
		return true;
	lade__rnt_bad(in, LADE_E_CORRUPT, "want %" PRIu64 " bytes, have %zu", size,
	              in->end - in->at);
	return false;
}

uint64_t lade__rnt_int(rnt_in *in, size_t size)
{
	uint64_t value = 0;
	if (!has(in, size))
		return 0;
	for (size_t i = 0; i < size; i++)
		value |= (uint64_t)in->data[in->at + i] << 8 * i;
	in->at += size;
	return value;
}

const char *lade__rnt_text(rnt_in *in, rnt_memory *memory)
{
	size_t size = (size_t)lade__rnt_int(in, 4);
	if (!has(in, size) || size == 0)
		return "";
	if (memchr(in->data + in->at, 0, size)) {
		lade__rnt_bad(in, LADE_E_CORRUPT, "a text has a NUL");
		return "";
	}
	char *text = lade__rnt_keep(memory, 1, size + 1);
	if (!text) {
		lade__rnt_bad(in, LADE_E_NOMEM, "no memory for a text of %zu bytes", size);
		return "";
	}
	memcpy(text, in->data + in->at, size);
	in->at += size;
	return text;
}

/* The content of 'size' bytes that began at 'begin', 'in' being behind its head. */
static rnt_in content(rnt_in *in, size_t begin, uint64_t size)
{
	rnt_in sub = *in;
	if (lade__rnt_ok(in) && (size < in->at - begin || size > in->end - begin))
		lade__rnt_bad(in, LADE_E_CORRUPT, "a frame of %" PRIu64 " bytes, room is %zu", size,
		              in->end - begin);
	if (!lade__rnt_ok(in)) {
		sub.end = sub.at;
		return sub;
	}
	sub.end = begin + (size_t)size;
	in->at = sub.end;
	return sub;
}

rnt_in lade__rnt_record(rnt_in *in)
{
	size_t begin = in->at;
	int64_t size = (int64_t)lade__rnt_int(in, 8);
	if (lade__rnt_ok(in) && size <= 0)
		lade__rnt_bad(in, LADE_E_CORRUPT, "want a record, have a list");
	return content(in, begin, (uint64_t)size);
}

rnt_in lade__rnt_list(rnt_in *in, size_t item_min, uint32_t *count)
{
	size_t begin = in->at;
	uint64_t size = 0 - lade__rnt_int(in, 8);
	*count = (uint32_t)lade__rnt_int(in, 4);
	if (lade__rnt_ok(in) && size > INT64_MAX)
		lade__rnt_bad(in, LADE_E_CORRUPT, "want a list, have a record");
	rnt_in sub = content(in, begin, size);
	if (lade__rnt_ok(in) && *count > (sub.end - sub.at) / item_min)
		lade__rnt_bad(in, LADE_E_CORRUPT, "%" PRIu32 " items in %zu bytes", *count,
		              sub.end - sub.at);
	if (!lade__rnt_ok(in))
		*count = 0;
	return sub;
}
