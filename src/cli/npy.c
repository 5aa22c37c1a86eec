/*
 * npy.c: the header of NumPy's .npy files (numpy/lib/format.py describes versions 1 to 3).
 *
 *     | 93 'NUMPY' | major 1 | minor 1 | size 2 (version 1) or 4 | text, spaces, line end |
 *
 * The text is a Python dict: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* NumPy leaves room so that the first dimension can grow to 21 digits in place. */
#define GROWTH_DIGITS 21
#define ALIGN 64

/* ---- reading ----------------------------------------------------------------------------- */

typedef struct text {
	const char *at, *end;
} text;

static void blanks(text *t)
{
	while (t->at < t->end && (*t->at == ' ' || *t->at == '\n' || *t->at == '\t'))
		t->at++;
}

/* Takes 'word' off, with blanks before it. */
static bool take(text *t, const char *word)
{
	size_t size = strlen(word);

	blanks(t);
	if ((size_t)(t->end - t->at) < size || memcmp(t->at, word, size) != 0)
		return false;
	t->at += size;
	return true;
}

/* 'abc' or "abc", without escapes. */
static bool take_string(text *t, char *out, size_t cap)
{
	blanks(t);
	if (t->at == t->end || (*t->at != '\'' && *t->at != '"'))
		return false;
	char quote = *t->at++;
	size_t size = 0;
	while (t->at < t->end && *t->at != quote && *t->at != '\\' && size + 1 < cap)
		out[size++] = *t->at++;
	out[size] = 0;
	if (t->at == t->end || *t->at != quote)
		return false;
	t->at++;
	return true;
}

static bool take_number(text *t, uint64_t *out)
{
	uint64_t v = 0;

	blanks(t);
	if (t->at == t->end || *t->at < '0' || *t->at > '9')
		return false;
	for (; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++) {
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*t->at - '0'), &v))
			return false;
	}
	*out = v;
	return true;
}

static const char *take_shape(text *t, npy *out)
{
	if (!take(t, "("))
		return "its shape is no tuple";
	while (!take(t, ")")) {
		if (out->ndim == LADE_NDIM_MAX)
			return "it has more than 32 dimensions";
		if (!take_number(t, &out->shape[out->ndim++]))
			return "its shape is not understood";
		if (!take(t, ","))
			return take(t, ")") ? NULL : "its shape is not understood";
	}
	return NULL;
}

static const char unknown_type[] = "its elements are of a type that lade does not know";

static const char *take_dict(text *t, npy *out)
{
	bool descr = false, order = false, shape = false;
	char key[32];

	if (!take(t, "{"))
		return "its header is no dict";
	while (!take(t, "}")) {
		if (!take_string(t, key, sizeof key) || !take(t, ":"))
			return "its header is not understood";
		if (strcmp(key, "descr") == 0 && !descr) {
			if (!take_string(t, out->descr, sizeof out->descr))
				return unknown_type;
			if (lade_dtype_parse(out->descr, &out->dtype, NULL) != LADE_OK)
				out->dtype = LADE_DTYPE_NONE;
			descr = true;
		} else if (strcmp(key, "fortran_order") == 0 && !order) {
			out->fortran_order = take(t, "True");
			if (!out->fortran_order && !take(t, "False"))
				return "its order is not understood";
			order = true;
		} else if (strcmp(key, "shape") == 0 && !shape) {
			const char *why = take_shape(t, out);
			if (why)
				return why;
			shape = true;
		} else {
			return "its header has keys that lade does not know";
		}
		take(t, ",");
	}
	return descr && order && shape ? NULL : "its header lacks a key";
}

const char *npy_read_any(const void *data, size_t size, npy *out)
{
	const uint8_t *p = data;

	memset(out, 0, sizeof *out);
	if (size < 12 || memcmp(p, "\x93NUMPY", 6) != 0)
		return "it does not begin as .npy files do";
	if (p[6] < 1 || p[6] > 3)
		return "its version is unknown";
	size_t start = p[6] == 1 ? 10 : 12;
	size_t length = (size_t)p[8] | (size_t)p[9] << 8;
	if (p[6] > 1)
		length |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
	if (length > size - start)
		return "its header is longer than NumPy's are";
	text t = {(const char *)p + start, (const char *)p + start + length};
	const char *why = take_dict(&t, out);
	if (!why)
		out->header_size = start + length;
	return why;
}

const char *npy_read(const void *data, size_t size, npy *out)
{
	const char *why = npy_read_any(data, size, out);

	if (why)
		return why;
	if (out->dtype == LADE_DTYPE_NONE)
		return unknown_type;
	out->data_size = lade_dtype_size(out->dtype);
	for (unsigned i = 0; i < out->ndim; i++) {
		if (__builtin_mul_overflow(out->data_size, out->shape[i], &out->data_size))
			return "its shape is too large";
	}
	/* Only a header that comes out the same is taken off: the file shall come back as it
	 * was. */
	char again[NPY_HEADER_MAX];
	if (npy_write(out, again) != out->header_size || memcmp(again, data, out->header_size) != 0)
		return "its header is not as NumPy writes it";
	return NULL;
}

/* ---- writing ------------------------------------------------------------------------------ */

static int digits(uint64_t v)
{
	int n = 1;
	while (v >= 10) {
		v /= 10;
		n++;
	}
	return n;
}

size_t npy_write_descr(const npy *h, const char *descr, char *out)
{
	char *p = out + 12;
	bool plain = true;

	p += sprintf(p, "{'descr': %s, 'fortran_order': %s, 'shape': (", descr,
	             h->fortran_order ? "True" : "False");
	for (unsigned i = 0; i < h->ndim; i++)
		p += sprintf(p, i ? ", %" PRIu64 : "%" PRIu64, h->shape[i]);
	p += sprintf(p, h->ndim == 1 ? ",), }" : "), }");
	if (h->ndim) {
		int used = digits(h->shape[h->fortran_order ? h->ndim - 1 : 0]);
		memset(p, ' ', (size_t)(GROWTH_DIGITS - used));
		p += GROWTH_DIGITS - used;
	}
	size_t length = (size_t)(p - out) - 12;
	for (const char *c = descr; *c; c++)
		plain = plain && (unsigned char)*c < 0x80;
	size_t start = plain && length < 65536 - 2 * ALIGN ? 10 : 12;
	memmove(out + start, out + 12, length);
	size_t size = (start + length + 1 + ALIGN - 1) / ALIGN * ALIGN;
	memset(out + start + length, ' ', size - start - length);
	out[size - 1] = '\n';
	memcpy(out, "\x93NUMPY\x01\x00", 8);
	out[6] = start == 10 ? 1 : plain ? 2 : 3;
	for (size_t i = 8; i < start; i++)
		out[i] = (char)((size - start) >> 8 * (i - 8) & 0xFF);
	return size;
}

/*
 * The longest text: 32 dimensions of at most 20 digits, ", " between them, and below 100 bytes
 * around: below 32 * 22 + 100 + GROWTH_DIGITS + ALIGN + 12 < NPY_HEADER_MAX.
 */
size_t npy_write(const npy *h, char *out)
{
	char descr[32];

	snprintf(descr, sizeof descr, "'%s'", lade_dtype_text(h->dtype));
	return npy_write_descr(h, descr, out);
}
