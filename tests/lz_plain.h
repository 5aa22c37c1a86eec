/*
 * lz_plain.h: LZ4 blocks and raw Snappy decoded a byte at a time, in the plainest way, with the
 * status that the strict decoders and the kernels give (docs/verdicts.md).
 *
 * It shares nothing with the library, so that the one checks the other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_LZ_PLAIN_H
#define LADE_TESTS_LZ_PLAIN_H

#include <lade/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A source that is read byte by byte, and its output. */
typedef struct plain {
	const uint8_t *in;
	size_t in_size, at;
	uint8_t *out;
	uint64_t cap, made;
	bool cut; /* a byte was wanted behind the end */
} plain;

static inline uint32_t plain_byte(plain *p)
{
	if (p->at < p->in_size)
		return p->in[p->at++];
	p->cut = true;
	return 0;
}

static inline uint64_t plain_number(plain *p, unsigned bytes)
{
	uint64_t v = 0;
	for (unsigned i = 0; i < bytes; i++)
		v |= (uint64_t)plain_byte(p) << (8 * i);
	return v;
}

static inline uint64_t plain_length(plain *p, uint64_t length)
{
	uint32_t byte = length == 15 ? 255 : 0;
	while (byte == 255) {
		byte = plain_byte(p);
		length += byte;
	}
	return length;
}

/*
 * Checks and makes a literal run (the bytes from 'from' on) and then a match; 'full' is the status
 * where they do not fit.
 */
static inline lade_status plain_make(plain *p, size_t from, uint64_t literals, uint64_t match,
                                     uint64_t offset, lade_status full)
{
	if (match && (offset == 0 || offset > p->made + literals))
		return LADE_E_CORRUPT;
	if (literals + match > p->cap - p->made)
		return full;
	for (; literals; literals--)
		p->out[p->made++] = p->in[from++];
	for (; match; match--, p->made++)
		p->out[p->made] = p->out[p->made - offset];
	return LADE_OK;
}

static inline lade_status plain_lz4(const uint8_t *in, size_t size, uint8_t *out, size_t cap,
                                    size_t *made)
{
	plain p = {.in = in, .in_size = size, .out = out, .cap = cap};
	lade_status status = LADE_OK;
	bool last = false;
	*made = 0;
	while (status == LADE_OK && !last) {
		uint32_t token = plain_byte(&p);
		uint64_t literals = plain_length(&p, token >> 4), match = 0, offset = 0;
		size_t from = p.at;
		if (p.cut || literals > size - from)
			return LADE_E_TRUNCATED;
		p.at += literals;
		last = p.at == size;
		if (!last) {
			offset = plain_number(&p, 2);
			match = plain_length(&p, token & 15) + 4;
		}
		status = p.cut ? LADE_E_TRUNCATED
		               : plain_make(&p, from, literals, match, offset, LADE_E_NOSPACE);
	}
	if (status == LADE_OK)
		*made = p.made;
	return status;
}

/* The decoded size before the elements: at most 5 bytes, 32 bits, 2 GiB - 1 and 'cap'. */
static inline lade_status plain_snappy_size(plain *p)
{
	uint64_t size = 0;
	uint32_t byte = 128;
	for (unsigned i = 0; i < 5 && byte >= 128; i++) {
		byte = plain_byte(p);
		size |= (uint64_t)(byte & 127) << (7 * i);
	}
	if (p->cut)
		return LADE_E_TRUNCATED;
	if (byte >= 128 || size >> 32)
		return LADE_E_CORRUPT;
	if (size >> 31)
		return LADE_E_LIMIT;
	if (size > p->cap)
		return LADE_E_NOSPACE;
	p->cap = size;
	return LADE_OK;
}

static inline lade_status plain_snappy(const uint8_t *in, size_t size, uint8_t *out, size_t cap,
                                       size_t *made)
{
	plain p = {.in = in, .in_size = size, .out = out, .cap = cap};
	*made = 0;
	lade_status status = plain_snappy_size(&p);
	while (status == LADE_OK && p.at < size) {
		uint32_t tag = plain_byte(&p), kind = tag & 3, high = tag >> 2;
		uint64_t literals = 0, copy = 0, offset = 0;
		if (kind == 0)
			literals = (high < 60 ? high : plain_number(&p, high - 59)) + 1;
		else
			offset = plain_number(&p, kind == 3 ? 4 : kind);
		if (kind == 1)
			offset |= (uint64_t)(high >> 3) << 8;
		if (kind)
			copy = kind == 1 ? (high & 7) + 4 : high + 1;
		size_t from = p.at;
		if (p.cut || literals > size - from)
			return LADE_E_TRUNCATED;
		p.at += literals;
		status = plain_make(&p, from, literals, copy, offset, LADE_E_CORRUPT);
	}
	if (status == LADE_OK && p.made < p.cap)
		status = LADE_E_TRUNCATED;
	if (status == LADE_OK)
		*made = p.made;
	return status;
}

#endif
