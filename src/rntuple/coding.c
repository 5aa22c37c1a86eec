/*
 * coding.c: what the elements of a page go through, as specs of the engine.
 *
 *     what the caller gets --cast--> the stored type --zigzag or delta--> --split or bits--> page
 *
 * Encodings restart at each page, so a page is a chunk of its own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple/read.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { BIT = 0x00, BYTE = 0x01, TRUNC = 0x1C, QUANT = 0x1D };

/* Adds a stage to a text that has room for all of them. */
static void add(char *text, const char *format, ...) LADE_PRINTF(2, 3);

static void add(char *text, const char *format, ...)
{
	size_t size = strlen(text);
	va_list args;
	if (size)
		text[size++] = '|';
	va_start(args, format);
	vsnprintf(text + size, RNT_CODING_TEXT - size, format, args);
	va_end(args);
}

void lade__rnt_coding_text(char text[RNT_CODING_TEXT], const rnt_coding *k)
{
	const rnt_type *type = lade__rnt_type(k->type);
	const char *name = lade_dtype_text(type->dtype);
	size_t size = lade_dtype_size(type->dtype);
	text[0] = 0;
	/* Offsets of 8 bytes have the same bytes in both types. */
	if (k->dtype != type->dtype && size != lade_dtype_size(k->dtype))
		add(text, "cast(%s,astype=%s)", lade_dtype_text(k->dtype), name);
	if (type->zigzag)
		add(text, "zigzag(%s)", name);
	if (type->delta)
		add(text, "delta(%s)", name);
	if (type->split)
		add(text, "split(%zu)", size);
	if (k->type == BIT)
		add(text, "packints(|b1)");
	if (k->type == TRUNC)
		add(text, "packints(<f4,first=%u)", 32u - k->bits);
	if (k->type == QUANT) {
		add(text, "levels(bits=%u,min=%.17g,max=%.17g)", k->bits, k->min, k->max);
		add(text, "packints(<u4,last=%u)", k->bits - 1u);
	}
	if (k->method != RNT_METHODS && (k->method != RNT_STORED || !text[0]))
		add(text, "%s", lade__rnt_method_specs[k->method]);
}

static bool same(const rnt_coding *a, const rnt_coding *b)
{
	return a->type == b->type && a->bits == b->bits && a->dtype == b->dtype &&
	       a->method == b->method && memcmp(&a->min, &b->min, sizeof a->min) == 0 &&
	       memcmp(&a->max, &b->max, sizeof a->max) == 0;
}

/* The spec of 'want', made if there is none yet. */
static lade_status find(rnt_read *r, rnt_coding want, const lade_spec **out, lade_error *err)
{
	char text[RNT_CODING_TEXT];
	for (size_t i = r->coding_count; i-- > 0;)
		if (same(&r->coding[i], &want)) {
			*out = r->coding[i].spec;
			return LADE_OK;
		}
	if (!lade__rnt_grow(&r->coding, &r->coding_cap, r->coding_count, sizeof *r->coding))
		return lade__rnt_nomem(err);
	lade__rnt_coding_text(text, &want);
	if (text[0]) {
		lade_status status = lade_spec_parse(r->engine, text, &want.spec, err);
		if (status != LADE_OK)
			return status;
	}
	r->coding[r->coding_count++] = want;
	*out = want.spec;
	return LADE_OK;
}

static lade_status get(rnt_read *r, rnt_coding want, const lade_spec **out, lade_error *err)
{
	*out = NULL;
	pthread_mutex_lock(&r->mutex);
	lade_status status = find(r, want, out, err);
	pthread_mutex_unlock(&r->mutex);
	return status;
}

lade_status lade__rnt_coding(rnt_read *r, const rnt_piece *piece, rnt_method method,
                             const lade_spec **out, lade_error *err)
{
	const rnt_physical *p = &r->tuple->physical[piece->physical];
	const lade_rntuple_column *c = &r->tuple->column[r->goal[piece->target].target.column];
	rnt_coding want = {.type = p->type, .bits = p->bits, .dtype = c->dtype, .method = method};
	if (p->type == QUANT) {
		want.min = p->min;
		want.max = p->max;
	}
	return get(r, want, out, err);
}

/* Bytes are what nothing is done to. */
lade_status lade__rnt_method(rnt_read *r, rnt_method method, const lade_spec **out, lade_error *err)
{
	rnt_coding want = {.type = BYTE, .bits = 8, .dtype = LADE_U1, .method = method};
	return get(r, want, out, err);
}
