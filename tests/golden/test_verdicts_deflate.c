/*
 * test_verdicts_deflate.c: on which Deflate streams libdeflate and zlib differ (docs/verdicts.md),
 * cause by cause; that all readers say what libdeflate says, and with LADE_BATCH_STRICT what zlib
 * says; and that no stream of thousands differs for another cause.
 *
 *     test_verdicts_deflate [STREAMS [SEED]]
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <lade/lade.h>

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "guard.h"

#define ROOM ((size_t)3 << 19) /* bytes that a stream here decodes to, at most */

static uint64_t seed = 0x51f15eed, streams = 30000;
static lade_engine *engine;

/* ---- bits of a stream ------------------------------------------------------------------------ */

typedef struct bits {
	uint8_t data[16384];
	size_t count;
} bits;

static void put(bits *b, unsigned value, unsigned count)
{
	for (unsigned i = 0; i < count && b->count < 8 * sizeof b->data; i++, b->count++)
		b->data[b->count / 8] |= (uint8_t)((value >> i & 1) << b->count % 8);
}

/* A codeword, first bit first. */
static void code(bits *b, unsigned word, unsigned count)
{
	while (count--)
		put(b, word >> count, 1);
}

static size_t bytes_of(const bits *b)
{
	return (b->count + 7) / 8;
}

/* A literal or length of the fixed code (RFC 1951, 3.2.6). */
static void fixed(bits *b, unsigned symbol)
{
	if (symbol < 144)
		code(b, 0x30 + symbol, 8);
	else if (symbol < 256)
		code(b, 0x190 + symbol - 144, 9);
	else if (symbol < 280)
		code(b, symbol - 256, 7);
	else
		code(b, 0xC0 + symbol - 280, 8);
}

/* A last block with the lengths of two codes, each of which is stored in 4 bits. */
static void dynamic(bits *b, const uint8_t *lengths, unsigned literals, unsigned distances)
{
	put(b, 1, 1);
	put(b, 2, 2);
	put(b, literals - 257, 5);
	put(b, distances - 1, 5);
	put(b, 19 - 4, 4);
	for (unsigned i = 0; i < 19; i++) /* the first three are of repeats */
		put(b, i < 3 ? 0 : 4, 3);
	for (unsigned i = 0; i < literals + distances; i++)
		code(b, lengths[i], 4);
}

/* ---- the streams ------------------------------------------------------------------------ */

typedef enum cause { VALID, OVERRUN, MANY_LITERALS, MANY_DISTANCES, RESERVED_LENGTH,
	RESERVED_DISTANCE, UNUSED_LITERAL, UNUSED_DISTANCE, NO_DISTANCE, CAUSES } cause;

/* What zlib says of each. */
static const char *const messages[CAUSES] = {
	NULL,
	"invalid bit length repeat",
	"too many length or distance symbols",
	"too many length or distance symbols",
	"invalid literal/length code",
	"invalid distance code",
	"invalid literal/length code",
	"invalid distance code",
	"invalid distance code",
};

/* "aa" by a code of two literals, a length of 3 and the end, as far as the cause lets it. */
static void make(cause why, bits *b)
{
	static const uint8_t overrun[] = {0x05, 0xc0, 0x81, 0,    0, 0, 0,
					  0,    0x90, 0xf5, 0x74, 0xd6, 3};
	uint8_t lengths[288 + 32] = {0};
	unsigned literals = why == MANY_LITERALS ? 287 : 258;
	unsigned distances = why == MANY_DISTANCES ? 31 : 1;

	*b = (bits){0};
	if (why == OVERRUN) {
		memcpy(b->data, overrun, sizeof overrun);
		b->count = 8 * sizeof overrun;
		return;
	}
	if (why == RESERVED_LENGTH || why == RESERVED_DISTANCE) {
		put(b, 1, 1);
		put(b, 1, 2);
		fixed(b, 'a');
		/* Symbol 286; and symbol 30 behind as many bytes as it reaches over here. */
		for (unsigned i = 0; why == RESERVED_DISTANCE && i < 96; i++) {
			fixed(b, 285);
			code(b, 0, 5);
		}
		fixed(b, why == RESERVED_LENGTH ? 286 : 257);
		code(b, why == RESERVED_LENGTH ? 0 : 30, 5);
		put(b, 0, why == RESERVED_LENGTH ? 0 : 13);
		fixed(b, 256);
		return;
	}
	lengths['a'] = why == UNUSED_LITERAL ? 0 : 2;
	lengths[256] = 1;
	lengths[257] = why == UNUSED_LITERAL ? 0 : 2;
	lengths[literals] = why == NO_DISTANCE ? 0 : 1;
	dynamic(b, lengths, literals, distances);
	if (why == UNUSED_LITERAL) {
		code(b, 1, 1); /* the one code is 0 */
		return;
	}
	code(b, 2, 2);
	code(b, 3, 2);
	code(b, why == UNUSED_DISTANCE, 1);
	code(b, 0, 1);
}

/* ---- what readers say ------------------------------------------------------------------- */

static uint8_t expected[ROOM];
static size_t expected_size;

/* What the libraries say; the bytes go to 'expected' where libdeflate takes the stream. */
static bool ask_libdeflate(const uint8_t *src, size_t size)
{
	static struct libdeflate_decompressor *d;
	if (!d)
		d = libdeflate_alloc_decompressor();
	size_t used = 0;
	return libdeflate_deflate_decompress_ex(d, src, size, expected, ROOM, &used,
	                                        &expected_size) == LIBDEFLATE_SUCCESS &&
	       used == size;
}

static bool ask_zlib(const uint8_t *src, size_t size, char message[64])
{
	static uint8_t out[ROOM];
	z_stream z = {0};
	assert_int_equal(inflateInit2(&z, -15), Z_OK);
	z.next_in = (Bytef *)(uintptr_t)src;
	z.avail_in = (uInt)size;
	z.next_out = out;
	z.avail_out = ROOM;
	int rc = inflate(&z, Z_FINISH);
	snprintf(message, 64, "%s", z.msg ? z.msg : "");
	bool good = rc == Z_STREAM_END && z.avail_in == 0;
	if (good) {
		assert_int_equal(z.total_out, expected_size);
		assert_memory_equal(out, expected, expected_size);
	}
	inflateEnd(&z);
	return good;
}

/* The stream in a container, whose checksum is that of 'expected'. */
static size_t wrap(const char *name, const uint8_t *src, size_t size, uint8_t *to)
{
	static const uint8_t gzip[10] = {0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3};
	size_t head = *name == 'g' ? 10 : *name == 'z' ? 2 : 0, at = head + size;
	uint32_t crc = libdeflate_crc32(0, expected, expected_size);
	uint32_t adler = libdeflate_adler32(1, expected, expected_size);
	memcpy(to, *name == 'g' ? gzip : (const uint8_t[2]){0x78, 0x9C}, head);
	memcpy(to + head, src, size);
	for (unsigned i = 0; i < 4 && *name == 'z'; i++)
		to[at++] = (uint8_t)(adler >> (24 - 8 * i));
	for (unsigned i = 0; i < 8 && *name == 'g'; i++)
		to[at++] = (uint8_t)((i < 4 ? crc : (uint32_t)expected_size) >> 8 * (i % 4));
	return at;
}

/* Three items of a call: the second one is a range of the result. */
static void ask_items(const char *name, const uint8_t *src, size_t size, uint32_t flags,
                      bool takes)
{
	lade_batch_options options = {.struct_size = sizeof options, .flags = flags};
	lade_segment segment = {.data = src, .size = size};
	lade_item items[3] = {{0}};
	lade_result results[3];
	static uint8_t out[3][ROOM];
	lade_spec *spec;
	assert_int_equal(lade_spec_parse(NULL, name, &spec, NULL), LADE_OK);
	for (unsigned i = 0; i < 3; i++) {
		items[i].src = &segment;
		items[i].src_count = 1;
		items[i].dst = lade_host_span(out[i], ROOM);
	}
	size_t off = expected_size / 2, part = expected_size - off;
	items[1].range_off = off;
	items[1].range_size = part;
	items[1].dst.size = part ? part : ROOM;
	lade_error err = {.message = ""};
	lade_status status =
		lade_decode_into(engine, spec, items, 3, results, &options, &err);
	if (status != (takes ? LADE_OK : LADE_E_CORRUPT))
		fail_msg("%s, flags %u: '%s'", name, (unsigned)flags, err.message);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(results[i].status, status);
		assert_int_equal(results[i].size, !takes ? 0 : i == 1 ? part : expected_size);
		if (takes)
			assert_memory_equal(out[i], expected + (i == 1 ? off : 0),
			                    results[i].size);
	}
	lade_spec_unref(spec);
}

typedef struct memory {
	const uint8_t *data;
	size_t size;
} memory;

static lade_status read_memory(void *ctx, void *dst, size_t cap, size_t *got, lade_error *err)
{
	memory *m = ctx;
	(void)err;
	*got = m->size < cap ? m->size : cap;
	memcpy(dst, m->data, *got);
	m->data += *got;
	m->size -= *got;
	return LADE_OK;
}

/* The file readers, with a destination that takes all, and with one that takes little. */
static void ask_file(lade_format format, const uint8_t *src, size_t size, bool strict, bool takes)
{
	static const size_t caps[] = {ROOM, 1000};
	for (unsigned k = 0; k < 2; k++) {
		lade_foreign_options options = {.struct_size = sizeof options, .strict = strict};
		memory m = {src, size};
		lade_foreign_reader *reader;
		static uint8_t out[ROOM + 1];
		size_t have = 0, got = 1;
		assert_int_equal(lade_foreign_reader_new(engine, format,
		                                         (lade_input){&m, read_memory}, &options,
		                                         &reader, NULL),
		                 LADE_OK);
		lade_status status = LADE_OK;
		while (status == LADE_OK && got) {
			size_t cap = sizeof out - have < caps[k] ? sizeof out - have : caps[k];
			status = lade_foreign_reader_read(reader, out + have, cap, &got, NULL);
			have += status == LADE_OK ? got : 0;
		}
		lade_foreign_reader_free(reader);
		assert_int_equal(status, takes ? LADE_OK : LADE_E_CORRUPT);
		if (takes) {
			assert_int_equal(have, expected_size);
			assert_memory_equal(out, expected, have);
		}
	}
}

/* All readers of a stream, in all containers. */
static void ask_all(const uint8_t *src, size_t size, bool library, bool strict)
{
	static const char *const names[] = {"deflate", "zlib", "gzip"};
	static uint8_t whole[16384 + 32];
	for (unsigned i = 0; i < 3; i++) {
		size_t n = wrap(names[i], src, size, whole);
		ask_items(names[i], whole, n, 0, library);
		ask_items(names[i], whole, n, LADE_BATCH_STRICT, strict);
		if (i == 0)
			continue;
		lade_format format = i == 1 ? LADE_FORMAT_ZZ : LADE_FORMAT_GZ;
		ask_file(format, whole, n, false, library);
		ask_file(format, whole, n, true, strict);
	}
}

/* ---- tests -------------------------------------------------------------------------- */

static void known_differences(void **state)
{
	(void)state;
	for (cause why = VALID; why < CAUSES; why++) {
		bits b;
		char message[64];
		make(why, &b);
		bool library = ask_libdeflate(b.data, bytes_of(&b));
		/* libdeflate refuses this one from 1.16 on; it takes all others. */
		if (why != OVERRUN && !library)
			fail_msg("libdeflate refuses stream %d", (int)why);
		bool valid = ask_zlib(b.data, bytes_of(&b), message);
		assert_int_equal(valid, why == VALID);
		if (!valid)
			assert_string_equal(message, messages[why]);
		ask_all(b.data, bytes_of(&b), library, valid);
	}
}

/* Files are decoded as they come: what is longer than 1 MiB is zlib's, in pieces. */
static void long_streams_in_files_are_zlibs(void **state)
{
	(void)state;
	bits b = {0};
	static uint8_t whole[16384 + 32];
	put(&b, 1, 1);
	put(&b, 1, 2);
	fixed(&b, 'a');
	for (unsigned i = 0; i < 5000; i++) {
		fixed(&b, 285);
		code(&b, 0, 5);
	}
	fixed(&b, 286);
	code(&b, 0, 5);
	fixed(&b, 256);
	assert_true(ask_libdeflate(b.data, bytes_of(&b)));
	assert_true(expected_size > (size_t)1 << 20 && expected_size <= ROOM);
	size_t n = wrap("gzip", b.data, bytes_of(&b), whole);
	ask_items("gzip", whole, n, 0, true);
	ask_items("gzip", whole, n, LADE_BATCH_STRICT, false);
	ask_file(LADE_FORMAT_GZ, whole, n, true, false);
}

/* Blocks that are nearly valid: one in some hundred is taken by one of the libraries. */
static void random_block(rng *r, bits *b)
{
	static const uint8_t order[19] = {16, 17, 18, 0,  8, 7,  9, 6,  10, 5,
	                                  11, 4,  12, 3, 13, 2, 14, 1, 15};
	uint8_t lengths[19] = {0};
	*b = (bits){0};
	put(b, 1, 1);
	if (rng_below(r, 4) == 0) {
		put(b, 1, 2);
	} else {
		put(b, 2, 2);
		put(b, rng_below(r, 3) ? 0 : (unsigned)rng_below(r, 32), 5);
		put(b, rng_below(r, 2) ? 0 : (unsigned)rng_below(r, 32), 5);
		put(b, 15, 4);
		if (rng_below(r, 2)) {
			lengths[18] = lengths[1] = 1;
		} else {
			lengths[18] = 1;
			lengths[1] = 2;
			lengths[rng_below(r, 2) ? 16 : 2] = lengths[0] = 3;
		}
		for (unsigned i = 0; i < 19; i++)
			put(b, lengths[order[i]], 3);
	}
	for (uint64_t k = 40 + rng_below(r, 200); k; k--)
		put(b, (unsigned)(rng_below(r, 3) ? rng_below(r, 2) : 1), 1);
	for (unsigned k = 0; k < 64; k++)
		put(b, rng_below(r, 4) ? 0xFF : (unsigned)rng_below(r, 256), 8);
}

static void no_other_difference(void **state)
{
	(void)state;
	rng r = {.s = seed};
	uint64_t taken = 0, differ = 0;
	for (uint64_t i = 0; i < streams; i++) {
		bits b;
		char message[64];
		random_block(&r, &b);
		size_t size = bytes_of(&b), used;
		static struct libdeflate_decompressor *d;
		if (!d)
			d = libdeflate_alloc_decompressor();
		/* What follows the block is left out. */
		if (libdeflate_deflate_decompress_ex(d, b.data, size, expected, ROOM, &used,
		                                     &expected_size) == LIBDEFLATE_SUCCESS)
			size = used;
		bool library = ask_libdeflate(b.data, size);
		bool valid = ask_zlib(b.data, size, message);
		taken += valid;
		if (library == valid)
			continue;
		bool listed = library && !valid;
		for (cause why = OVERRUN; listed && why < CAUSES; why++) {
			if (strcmp(message, messages[why]) == 0)
				break;
			listed = why + 1 < CAUSES;
		}
		if (!listed)
			fail_msg("seed %llu, stream %llu: libdeflate %s it, zlib: '%s'",
			         (unsigned long long)seed, (unsigned long long)i,
			         library ? "takes" : "refuses", message);
		if (differ++ < 100)
			ask_all(b.data, size, library, valid);
	}
	printf("%llu streams: zlib takes %llu, libdeflate %llu more\n", (unsigned long long)streams,
	       (unsigned long long)taken, (unsigned long long)differ);
	assert_true(taken > streams / 1000 && differ > 0);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		streams = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 0);
	lade_engine_options options = {.struct_size = sizeof options, .threads = 2};
	if (lade_engine_new(&options, &engine, NULL) != LADE_OK)
		return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_differences),
		cmocka_unit_test(long_streams_in_files_are_zlibs),
		cmocka_unit_test(no_other_difference),
	};
	int rc = cmocka_run_group_tests_name("deflate verdicts", tests, NULL, NULL);
	lade_engine_free(engine);
	return rc;
}
