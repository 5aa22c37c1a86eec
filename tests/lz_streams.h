/*
 * lz_streams.h: LZ4 blocks and raw Snappy streams to try decoders with: what the libraries encode,
 * whole and damaged, and what is put together from the formats' grammar, right and wrong.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_LZ_STREAMS_H
#define LADE_TESTS_LZ_STREAMS_H

#include "guard.h"

#include <lz4.h>
#include <lz4hc.h>
#include <snappy-c.h>

#define STREAM_RAW 4096    /* decoded bytes of one that a library encodes, at most */
#define STREAM_CAP 16384   /* encoded bytes of any stream, at most */
#define STREAM_ROOM 100000 /* a capacity that 'room' of a stream never passes */

typedef struct stream {
	size_t size, room; /* bytes, and a capacity to decode them with */
	uint8_t bytes[STREAM_CAP];
} stream;

/* ---- data ----------------------------------------------------------------------------------- */

/* Noise, periods, numbers, words, sparse data, and repeats with faults. */
static inline void stream_data(rng *r, uint8_t *p, size_t size)
{
	static const char words[] = "the quick brown fox jumps";
	uint64_t kind = rng_below(r, 6), period = 1 + rng_below(r, 300);
	for (size_t i = 0; i < size; i++) {
		if (kind == 0)
			p[i] = (uint8_t)rng_next(r);
		else if (kind == 1)
			p[i] = (uint8_t)(i % period);
		else if (kind == 2)
			p[i] = (uint8_t)((i / 8 * 40 + rng_below(r, 3)) >> (8 * (i % 8)));
		else if (kind == 3)
			p[i] = (uint8_t)words[rng_below(r, 25) % (1 + i % 25)];
		else if (kind == 4)
			p[i] = rng_below(r, 40) ? 0 : (uint8_t)rng_next(r);
		else
			p[i] = i < period || rng_below(r, 20) == 0 ? (uint8_t)rng_next(r)
			                                           : p[i - period];
	}
}

/* Data of 'size' bytes, at most STREAM_RAW, as a library encodes them; 'room' is 'size'. */
static inline void stream_encode(rng *r, bool snappy, const uint8_t *raw, size_t size, stream *s)
{
	size_t n = STREAM_CAP;
	const char *src = (const char *)raw;
	char *dst = (char *)s->bytes;
	if (snappy)
		n = snappy_compress(src, size, dst, &n) == SNAPPY_OK ? n : 0;
	else if (rng_below(r, 4))
		n = (size_t)LZ4_compress_fast(src, dst, (int)size, (int)n, 1);
	else
		n = (size_t)LZ4_compress_HC(src, dst, (int)size, (int)n, 9);
	s->size = n;
	s->room = size;
}

/* ---- damage --------------------------------------------------------------------------------- */

static inline void stream_damage(rng *r, stream *s)
{
	uint64_t how = rng_below(r, 8);
	size_t at = rng_below(r, s->size), n = 1 + rng_below(r, 4);
	if (how == 0) {
		s->size = at;
	} else if (how == 1) {
		for (n = rng_below(r, 40); n && at < s->size; n--)
			s->bytes[at++] = rng_below(r, 2) ? 0xFF : 0;
	} else if (how == 2) { /* a piece of it at another place */
		size_t to = rng_below(r, s->size), len = 1 + rng_below(r, 30);
		if (at + len <= s->size && to + len <= s->size)
			memmove(s->bytes + to, s->bytes + at, len);
	} else if (how == 3) { /* bytes too many */
		for (; n && s->size < STREAM_CAP; n--)
			s->bytes[s->size++] = (uint8_t)(rng_below(r, 2) ? 0 : rng_next(r));
	} else if (how == 4) { /* near the end, where rules of their own hold */
		at = s->size - 1 - rng_below(r, s->size < 20 ? s->size : 20);
		s->bytes[at] = (uint8_t)rng_next(r);
	} else {
		for (; n; n--)
			s->bytes[rng_below(r, s->size)] ^= (uint8_t)(1u << rng_below(r, 8));
	}
	uint64_t room = rng_below(r, 6);
	if (room == 0)
		s->room += rng_below(r, 40);
	else if (room == 1)
		s->room -= rng_below(r, s->room + 1 < 40 ? s->room + 1 : 40);
	else if (room == 2)
		s->room += rng_below(r, 4000);
}

/* A damaged stream. */
static inline void stream_damaged(rng *r, bool snappy, stream *s)
{
	static uint8_t raw[STREAM_RAW];
	size_t size = 1 + rng_below(r, rng_below(r, 4) ? 300 : STREAM_RAW);
	stream_data(r, raw, size);
	stream_encode(r, snappy, raw, size, s);
	stream_damage(r, s);
}

/* ---- grammar -------------------------------------------------------------------------------- */

static inline void stream_put(stream *s, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes && s->size < STREAM_CAP; i++)
		s->bytes[s->size++] = (uint8_t)(value >> (8 * i));
}

static inline void stream_noise(rng *r, stream *s, uint64_t bytes)
{
	for (; bytes && s->size < STREAM_CAP; bytes--)
		s->bytes[s->size++] = (uint8_t)rng_next(r);
}

/* Lengths: mostly short, sometimes at the edges of what a field or a byte holds. */
static inline uint64_t stream_length(rng *r)
{
	static const uint16_t edges[] = {0,   1,   3,   4,   8,   11,  12,  14,  15,  16,
	                                 17,  18,  19,  59,  60,  61,  64,  65,  255, 269,
	                                 270, 271, 273, 274, 500, 524, 525, 600, 1023};
	uint64_t kind = rng_below(r, 8);
	if (kind == 0)
		return edges[rng_below(r, sizeof edges / sizeof edges[0])];
	return rng_below(r, kind == 1 ? 300 : 20);
}

/* An offset into 'made' bytes; one in 'odds' is wrong, or at an edge. */
static inline uint64_t stream_offset(rng *r, uint64_t made, uint64_t odds)
{
	if (made == 0 || rng_below(r, odds) == 0) {
		uint64_t kind = rng_below(r, 4);
		return kind == 0 ? 0 : kind == 1 ? made + 1 : kind == 2 ? made : 65535;
	}
	return 1 + rng_below(r, rng_below(r, 3) && made > 20 ? 20 : made);
}

/* A capacity near what the stream gives, or far from it. */
static inline uint64_t stream_room(rng *r, uint64_t made)
{
	uint64_t kind = rng_below(r, 6);
	if (kind == 0)
		made += rng_below(r, 20);
	else if (kind == 1)
		made -= rng_below(r, made + 1 < 20 ? made + 1 : 20);
	else if (kind == 2)
		made += rng_below(r, 3000);
	return made < STREAM_ROOM ? made : STREAM_ROOM;
}

static inline void stream_lz4_length(stream *s, uint64_t length)
{
	if (length < 15)
		return;
	for (length -= 15; length >= 255; length -= 255)
		stream_put(s, 255, 1);
	stream_put(s, length, 1);
}

static inline void stream_made_lz4(rng *r, stream *s)
{
	uint64_t odds = rng_below(r, 3) ? 1000 : 30, made = 0;
	s->size = 0;
	for (uint64_t n = rng_below(r, 25); n; n--) {
		uint64_t literals = stream_length(r), match = stream_length(r);
		unsigned high = literals < 15 ? (unsigned)literals : 15;
		unsigned low = match < 15 ? (unsigned)match : 15;
		stream_put(s, high << 4 | low, 1);
		stream_lz4_length(s, literals);
		stream_noise(r, s, literals);
		made += literals;
		stream_put(s, stream_offset(r, made, odds), 2);
		stream_lz4_length(s, match);
		made += match + 4;
	}
	if (rng_below(r, 16)) {
		uint64_t literals = rng_below(r, 3) ? rng_below(r, 14) : stream_length(r);
		unsigned low = rng_below(r, 4) ? 0 : (unsigned)rng_below(r, 16);
		stream_put(s, (literals < 15 ? literals : 15) << 4 | low, 1);
		stream_lz4_length(s, literals);
		stream_noise(r, s, literals);
		made += literals;
	}
	if (rng_below(r, odds) == 0)
		s->size -= rng_below(r, s->size < 8 ? s->size : 8);
	s->room = stream_room(r, made);
}

/* One literal or copy; returns the bytes that it gives. */
static inline uint64_t stream_snappy_element(rng *r, stream *s, uint64_t made, uint64_t odds)
{
	unsigned kind = (unsigned)rng_below(r, 4);
	uint64_t length = stream_length(r), offset = stream_offset(r, made, odds);
	if (kind == 0 || made == 0) {
		unsigned extra = (unsigned)rng_below(r, 5); /* also where fewer would do */
		length += length == 0;
		extra = extra < 1 && length > 60 ? 1 : extra;
		extra = extra < 2 && length > 256 ? 2 : extra;
		/* A literal that claims more than there is, up to 2^32 bytes. */
		uint64_t claim = length - 1;
		if (extra == 4 && rng_below(r, odds) == 0)
			claim = rng_below(r, 2) ? 0xFFFFFFFF : rng_next(r);
		stream_put(s, extra ? (59 + extra) << 2 : (unsigned)claim << 2, 1);
		stream_put(s, claim, extra);
		if (claim == 0xFFFFFFFF)
			return 0;
		stream_noise(r, s, length);
		return length;
	}
	if (kind == 1) {
		length = 4 + length % 8;
		offset = offset < 2048 ? offset : made < 2047 ? made : 2047;
		stream_put(s, (offset >> 8) << 5 | (length - 4) << 2 | 1, 1);
		stream_put(s, offset, 1);
		return length;
	}
	length = 1 + length % 64;
	if (kind == 3 && rng_below(r, odds) == 0)
		offset |= rng_next(r) << 16 & 0xFFFFFFFF;
	offset = kind == 2 && offset > 65535 ? 65535 : offset;
	stream_put(s, (length - 1) << 2 | kind, 1);
	stream_put(s, offset, kind == 2 ? 2 : 4);
	return length;
}

/* The decoded size: in as few bytes as it takes, or more; sometimes wrong. */
static inline void stream_snappy_size(rng *r, stream *s, uint64_t size, uint64_t odds)
{
	uint64_t told = size;
	unsigned bytes = 1;
	if (rng_below(r, odds) == 0)
		told = rng_below(r, 2) ? size - 1 + 2 * rng_below(r, 2) : rng_next(r) >> 24;
	while (told >> (7 * bytes) && bytes < 6)
		bytes++;
	if (rng_below(r, 20) == 0)
		bytes += (unsigned)rng_below(r, 6 - bytes + 1);
	for (unsigned i = 0; i < bytes; i++)
		stream_put(s, (told >> (7 * i) & 127) | (i + 1 < bytes ? 128 : 0), 1);
}

static inline void stream_made_snappy(rng *r, stream *s)
{
	static stream body;
	uint64_t odds = rng_below(r, 3) ? 1000 : 30, made = 0;
	/* One in 32 is long, so that offsets pass 64 KiB. */
	uint64_t n = rng_below(r, 32) ? rng_below(r, 25) : 2800;
	body.size = 0;
	for (; n && body.size < STREAM_CAP - 1200; n--)
		made += stream_snappy_element(r, &body, made, odds);
	if (rng_below(r, odds) == 0)
		body.size -= rng_below(r, body.size < 8 ? body.size : 8);
	s->size = 0;
	stream_snappy_size(r, s, made, odds);
	for (size_t i = 0; i < body.size; i++)
		stream_put(s, body.bytes[i], 1);
	s->room = stream_room(r, made);
}

static inline void stream_made(rng *r, bool snappy, stream *s)
{
	if (snappy)
		stream_made_snappy(r, s);
	else
		stream_made_lz4(r, s);
}

#endif
