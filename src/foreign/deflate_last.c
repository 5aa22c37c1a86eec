/*
 * deflate_last.c: finds the last block of a Deflate stream (RFC 1951), so that another can follow.
 * libdeflate, which made the stream, does not say where its blocks begin.  Words are passed over,
 * and nothing is decoded: six tenths of the time of zlib's inflate() (docs/performance/log/cpu.md).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/support.h"
#include "foreign/foreign.h"

#include <string.h>

enum {
	TABLE_BITS = 11,
	MASK = (1 << TABLE_BITS) - 1,
	CODE_MAX = 15,
	LITLENS = 288,
	OFFSETS = 32,
	END_OF_BLOCK = 256
};

/* What a code word stands for; 0 in a table's entry: a word longer than TABLE_BITS, or none. */
enum { WORD_LITERAL = 1, WORD_MATCH = 2, WORD_END = 3 };

/* An entry: | kind 2 | bits of the words 4 | these and their extra bits 6 |. */
#define ENTRY(kind, bits, all) ((uint16_t)((unsigned)(kind) << 10 | (unsigned)(bits) << 6 | (all)))
#define ENTRY_KIND(e) ((unsigned)(e) >> 10)
#define ENTRY_BITS(e) ((unsigned)(e) >> 6 & 15)
#define ENTRY_ALL(e) ((unsigned)(e) & 63)

typedef struct reader {
	const uint8_t *data;
	size_t size, at; /* 'at': bits */
} reader;

typedef struct code {
	uint16_t table[1 << TABLE_BITS];
	uint16_t counts[CODE_MAX + 1], symbols[LITLENS]; /* in the order of their words */
} code;

/* 57 bits or more from here; zeros behind the end. */
static uint64_t peek(const reader *r)
{
	size_t byte = r->at / 8;
	uint64_t bits = 0;

	if (byte + 8 <= r->size)
		bits = lade__le64(r->data + byte);
	else
		for (size_t i = byte; i < r->size; i++)
			bits |= (uint64_t)r->data[i] << 8 * (i - byte);
	return bits >> r->at % 8;
}

static unsigned take(reader *r, unsigned count)
{
	unsigned value = (unsigned)(peek(r) & ((1u << count) - 1));

	r->at += count;
	return value;
}

/* Extra bits of lengths (symbols 257 to 285) and of offsets: 3.2.5. */
static unsigned extra_bits(bool offsets, unsigned symbol)
{
	if (offsets)
		return symbol < 4 ? 0 : symbol / 2 - 1;
	return symbol < 265 || symbol >= 285 ? 0 : (symbol - 261) / 4;
}

static uint16_t entry_of(bool offsets, unsigned symbol, unsigned bits)
{
	unsigned kind = offsets || symbol > END_OF_BLOCK ? WORD_MATCH
	                : symbol == END_OF_BLOCK         ? WORD_END
	                                                 : WORD_LITERAL;
	return ENTRY(kind, bits, bits + extra_bits(offsets, symbol));
}

/* The lowest bits of a word in the other order: streams begin with the highest. */
static unsigned turn(unsigned word, unsigned bits)
{
	word = (word & 0x5555) << 1 | (word >> 1 & 0x5555);
	word = (word & 0x3333) << 2 | (word >> 2 & 0x3333);
	word = (word & 0x0F0F) << 4 | (word >> 4 & 0x0F0F);
	return ((word & 0x00FF) << 8 | (word >> 8 & 0x00FF)) >> (16 - bits);
}

/* Builds a code of the lengths of its words (3.2.2). */
static void code_make(code *c, const uint8_t *lengths, unsigned count, bool offsets)
{
	unsigned next[CODE_MAX + 2] = {0}, word = 0, first[CODE_MAX + 2] = {0};

	memset(c->counts, 0, sizeof c->counts);
	memset(c->table, 0, sizeof c->table);
	for (unsigned s = 0; s < count; s++)
		c->counts[lengths[s]]++;
	c->counts[0] = 0;
	for (unsigned bits = 1; bits <= CODE_MAX; bits++) {
		word = (word + c->counts[bits - 1]) << 1;
		next[bits] = word;
		first[bits + 1] = first[bits] + c->counts[bits];
	}
	for (unsigned s = 0; s < count; s++) {
		unsigned bits = lengths[s];
		if (!bits)
			continue;
		c->symbols[first[bits]++] = (uint16_t)s;
		unsigned turned = turn(next[bits]++, bits);
		for (; bits <= TABLE_BITS && turned <= MASK; turned += 1u << bits)
			c->table[turned] = entry_of(offsets, s, bits);
	}
}

/* The symbol of the word that 'bits' begin with, and the word's bits; 0 bits: there is none. */
static unsigned symbol_at(const code *c, uint64_t bits, unsigned *size)
{
	unsigned word = 0, first = 0, index = 0;

	for (unsigned n = 1; n <= CODE_MAX; n++, bits >>= 1) {
		word |= (unsigned)(bits & 1);
		if (word - first < c->counts[n]) {
			*size = n;
			return c->symbols[index + word - first];
		}
		index += c->counts[n];
		first = (first + c->counts[n]) << 1;
		word <<= 1;
	}
	*size = 0;
	return 0;
}

/* What the word at 'bits' stands for; 0: there is none. */
static uint16_t word_at(const code *c, uint64_t bits, bool offsets)
{
	uint16_t e = c->table[bits & MASK];
	unsigned size;

	if (e)
		return e;
	unsigned symbol = symbol_at(c, bits, &size);
	return size ? entry_of(offsets, symbol, size) : 0;
}

/* Reads both codes of a block (3.2.7); false: they are none. */
static bool read_codes(reader *r, code *litlen, code *offset)
{
	static const uint8_t order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
	                                  11, 4,  12, 3, 13, 2, 14, 1, 15};
	uint8_t lengths[LITLENS + OFFSETS] = {0};
	unsigned litlens = take(r, 5) + 257, count = litlens + take(r, 5) + 1;

	for (unsigned i = 0, n = take(r, 4) + 4; i < n; i++)
		lengths[order[i]] = (uint8_t)take(r, 3);
	code_make(offset, lengths, 19, true);
	memset(lengths, 0, 19);
	for (unsigned i = 0, n; i < count;) {
		unsigned symbol = symbol_at(offset, peek(r), &n), repeat = 1;
		r->at += n;
		if (n == 0 || r->at > 8 * r->size || (symbol == 16 && i == 0))
			return false;
		uint8_t length = (uint8_t)(symbol < 16 ? symbol : 0);
		if (symbol == 16) {
			length = lengths[i - 1];
			repeat = 3 + take(r, 2);
		} else if (symbol > 16) {
			repeat = symbol == 17 ? 3 + take(r, 3) : 11 + take(r, 7);
		}
		if (repeat > count - i)
			return false;
		memset(lengths + i, length, repeat);
		i += repeat;
	}
	code_make(litlen, lengths, litlens, false);
	code_make(offset, lengths + litlens, count - litlens, true);
	return true;
}

/* The codes of 3.2.6. */
static void fixed_codes(code *litlen, code *offset)
{
	uint8_t lengths[LITLENS];

	memset(lengths, 8, sizeof lengths);
	memset(lengths + 144, 9, 256 - 144);
	memset(lengths + 256, 7, 280 - 256);
	code_make(litlen, lengths, LITLENS, false);
	memset(lengths, 5, OFFSETS);
	code_make(offset, lengths, OFFSETS, true);
}

/* Passes over the words of a block; false: some are none. */
static bool pass_words(reader *r, const code *litlen, const code *offset)
{
	size_t end = 8 * r->size;

	while (r->at < end) {
		uint64_t bits = peek(r);
		unsigned used = 0;
		/* 57 bits: literals of at most TABLE_BITS while there are two entries more. */
		uint16_t e = litlen->table[bits & MASK];
		for (; ENTRY_KIND(e) == WORD_LITERAL && used <= 57 - 2 * TABLE_BITS;
		     e = litlen->table[bits & MASK]) {
			used += ENTRY_ALL(e);
			bits >>= ENTRY_ALL(e);
		}
		r->at += used;
		if (used)
			continue;
		/* A word of 15 with 5 more, and one of 15 with 13 more. */
		e = word_at(litlen, bits, false);
		if (!e)
			return false;
		r->at += ENTRY_ALL(e);
		if (ENTRY_KIND(e) == WORD_END)
			return r->at <= end;
		if (ENTRY_KIND(e) == WORD_MATCH) {
			e = word_at(offset, bits >> ENTRY_ALL(e), true);
			if (!e)
				return false;
			r->at += ENTRY_ALL(e);
		}
	}
	return false;
}

bool lade__deflate_last(const uint8_t *data, size_t size, size_t *begin, size_t *end)
{
	reader r = {data, size, 0};
	code litlen, offset;

	for (;;) {
		*begin = r.at;
		bool last = take(&r, 1);
		unsigned kind = take(&r, 2);
		if (kind == 0) {
			r.at = (r.at + 7) / 8 * 8;
			unsigned length = take(&r, 16);
			r.at += 16 + 8 * (size_t)length;
			if (r.at > 8 * size)
				return false;
		} else {
			if (kind == 1)
				fixed_codes(&litlen, &offset);
			else if (kind == 3 || !read_codes(&r, &litlen, &offset))
				return false;
			if (!pass_words(&r, &litlen, &offset))
				return false;
		}
		*end = r.at;
		if (last)
			return true;
	}
}
