/*
 * test_codec_formats.c: what the formats allow beyond one plain stream (concatenation, skippable
 * and legacy frames, unknown sizes, extra fields, dictionaries) and what exactly is said about bad
 * ones.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec_test.h"

#include <libdeflate.h>
#include <lz4.h>
#include <xxhash.h>
#include <zlib.h>
#include <zstd.h>

/* Bytes put together by a test. */
typedef struct buffer {
	uint8_t data[1 << 20];
	size_t size;
} buffer;

static buffer b; /* too large for a stack */
static uint8_t text[300000], out[400000];

static void put(const void *data, size_t size)
{
	assert_true(size <= sizeof b.data - b.size);
	memcpy(b.data + b.size, data, size);
	b.size += size;
}

static void put_le(uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++, value >>= 8)
		put(&(uint8_t){(uint8_t)value}, 1);
}

static void put_encoded(const char *spec, const void *data, size_t size)
{
	codec c = codec_open(spec);
	lade_error err = {0};
	size_t got;
	assert_status(
		codec_encode(&c, data, size, b.data + b.size, sizeof b.data - b.size, &got, &err),
		LADE_OK, err);
	b.size += got;
	codec_close(&c);
}

/* Decodes what was put together; 'want' of size 'size' must come out. */
static void expect(const char *spec, const void *want, size_t size)
{
	codec c = codec_open(spec);
	lade_error err = {0};
	guard in = guard_copy(b.data, b.size, 1), exact = guard_new(size, 1);
	size_t got;
	assert_status(codec_decode(&c, in.data, in.size, exact.data, size, &got, &err), LADE_OK,
	              err);
	assert_int_equal(got, size);
	assert_memory_equal(exact.data, want, size);
	guard_free(&in);
	guard_free(&exact);
	codec_close(&c);
}

/* Decoding must fail so, at that byte, with these words in the message. */
static void expect_failure(const char *spec, lade_status want, uint64_t offset, const char *words)
{
	codec c = codec_open(spec);
	lade_error err = {0};
	guard in = guard_copy(b.data, b.size, 1);
	size_t got;
	assert_status(codec_decode(&c, in.data, in.size, out, sizeof out, &got, &err), want, err);
	if (!strstr(err.message, words))
		fail_msg("'%s' does not have '%s'", err.message, words);
	if (err.offset != offset)
		fail_msg("offset %llu, want %llu: %s", (unsigned long long)err.offset,
		         (unsigned long long)offset, err.message);
	assert_int_equal(err.status, want);
	assert_int_equal(got, 0);
	guard_free(&in);
	codec_close(&c);
}

static void expect_size(const char *spec, lade_status want, uint64_t size)
{
	codec c = codec_open(spec);
	lade_error err = {0};
	uint64_t told = 0;
	assert_status(c.stage.algorithm->decoded_size(&c.stage, b.data, b.size, &told, &err), want,
	              err);
	if (want == LADE_OK)
		assert_int_equal(told, size);
	codec_close(&c);
}

static int setup(void **state)
{
	rng r = {0x1ade};
	data_fill(text, sizeof text, DATA_WORDS, &r);
	return codec_setup(state);
}

/* ---- zstd ------------------------------------------------------------------------------- */

static void put_skippable(uint32_t magic, uint32_t size)
{
	put_le(magic, 4);
	put_le(size, 4);
	for (uint32_t i = 0; i < size; i++)
		put("x", 1);
}

/* A frame whose header does not state the size, as a pipe's writer makes it. */
static void put_zstd_stream(const void *data, size_t size)
{
	ZSTD_CCtx *cctx = ZSTD_createCCtx();
	ZSTD_inBuffer in = {data, size, 0};
	ZSTD_outBuffer to = {b.data, sizeof b.data, b.size};
	ZSTD_CCtx_setParameter(cctx, ZSTD_c_checksumFlag, 1);
	assert_false(ZSTD_isError(ZSTD_compressStream2(cctx, &to, &in, ZSTD_e_flush)));
	assert_int_equal(ZSTD_compressStream2(cctx, &to, &in, ZSTD_e_end), 0);
	b.size = to.pos;
	ZSTD_freeCCtx(cctx);
}

static void test_zstd_frames(void **state)
{
	(void)state;
	b.size = 0;
	put_skippable(0x184D2A50, 0);
	put_encoded("zstd(3)", text, 1000);
	put_skippable(0x184D2A5F, 77);
	put_encoded("zstd(1,checksum=true)", text + 1000, 0);
	put_encoded("zstd(19)", text + 1000, 199000);
	expect_size("zstd", LADE_OK, 200000);
	expect("zstd", text, 200000);
	put_zstd_stream(text + 200000, 100000);
	put_skippable(0x184D2A51, 5);
	expect_size("zstd", LADE_E_UNKNOWN_SIZE, 0);
	expect("zstd", text, 300000);
	b.size = 0;
	put_skippable(0x184D2A50, 9);
	expect_size("zstd", LADE_OK, 0);
	expect("zstd", text, 0);
}

static void test_zstd_errors(void **state)
{
	(void)state;
	b.size = 0;
	put_encoded("zstd(3)", text, 1000);
	size_t first = b.size;
	put("nonsense", 8);
	expect_failure("zstd", LADE_E_CORRUPT, first, "0x736e6f6e");
	b.size = first;
	put_encoded("zstd(3)", text, 1000);
	b.size -= 3;
	expect_failure("zstd", LADE_E_TRUNCATED, b.size, "is longer than");
	b.size = first + 5;
	expect_failure("zstd", LADE_E_TRUNCATED, b.size, "header");
	b.size = 0;
	put_encoded("zstd(3,checksum=true)", text, 1000);
	b.data[b.size - 1] ^= 1;
	expect_failure("zstd", LADE_E_CHECKSUM, b.size - 4, "checksum");
	/* Version 0.7: known to libzstd, but no RFC 8878. */
	b.size = 0;
	put("\x27\xb5\x2f\xfd\x24\x01\x00\x00\x00\x00\x00", 11);
	expect_failure("zstd", LADE_E_CORRUPT, 0, "is not the start of a frame");
	/* A size that no destination has; nothing may be allocated for it. */
	b.size = 0;
	put("\x28\xb5\x2f\xfd\xe0\xff\xff\xff\xff\xff\xff\xff\x0f\x01\x00\x00", 16);
	expect_size("zstd", LADE_OK, 0x0FFFFFFFFFFFFFFF);
	codec c = codec_open("zstd");
	lade_error err = {0};
	size_t got;
	assert_int_equal(codec_decode(&c, b.data, b.size, out, sizeof out, &got, &err),
	                 LADE_E_NOSPACE);
	assert_non_null(strstr(err.message, "1152921504606846975"));
	assert_non_null(strstr(err.message, "400000"));
	codec_close(&c);
	/* Content sizes whose sum passes 64 bits. */
	uint8_t big[16];
	memcpy(big, b.data, 16);
	memset(big + 5, 0xEE, 8);
	b.size = 0;
	put(big, 16);
	put(big, 16);
	expect_size("zstd", LADE_E_CORRUPT, 0);
}

static void test_zstd_frame_that_gives_more_than_it_names(void **state)
{
	(void)state;
	b.size = 0;
	put_encoded("zstd(3)", text, 1000);
	/* The size stands in the two bytes after the descriptor, less 256 (RFC 8878, 3.1.1.1.4). */
	assert_int_equal(b.data[4] >> 6, 1);
	assert_int_equal(b.data[5] | b.data[6] << 8, 1000 - 256);
	b.data[5] = 100;
	b.data[6] = 0;
	expect_failure("zstd", LADE_E_CORRUPT, 0, "");
}

/* ---- gzip, zlib, deflate ------------------------------------------------------------------ */

static void put_member(unsigned flags, const uint8_t *data, size_t size)
{
	size_t begin = b.size;
	uint8_t header[10] = {0x1F, 0x8B, 8, (uint8_t)flags, 1, 2, 3, 4, 0, 3};
	put(header, 10);
	if (flags & 4) {
		put_le(6, 2);
		put("AB\2\0xy", 6);
	}
	if (flags & 8)
		put("a name.txt", 11);
	if (flags & 16)
		put("a comment", 10);
	if (flags & 2)
		put_le(crc32(0, b.data + begin, (uInt)(b.size - begin)) & 0xFFFF, 2);
	put_encoded("deflate(6)", data, size);
	put_le(crc32(0, data, (uInt)size), 4);
	put_le(size, 4);
}

static void test_gzip_members(void **state)
{
	(void)state;
	b.size = 0;
	size_t done = 0;
	for (unsigned flags = 0; flags < 32; flags++) {
		put_member(flags, text + done, flags * 100);
		done += flags * 100;
	}
	put_encoded("gzip(1)", text + done, 5000);
	done += 5000;
	expect("gzip", text, done);
	expect_size("gzip", LADE_E_UNKNOWN_SIZE, 0);
	for (int zeros = 1; zeros < 600; zeros += 511) {
		static const uint8_t nothing[600];
		put(nothing, (size_t)zeros);
		expect("gzip", text, done);
	}
	size_t end = b.size;
	put("\1", 1);
	/* Zeros with something behind them are no padding. */
	expect_failure("gzip", LADE_E_CORRUPT, end - 513, "0x00 at");
}

static void test_gzip_errors(void **state)
{
	(void)state;
	b.size = 0;
	put_member(2, text, 1000);
	size_t size = b.size;
	b.data[10] ^= 1;
	expect_failure("gzip", LADE_E_CHECKSUM, 10, "header's CRC-16");
	b.data[10] ^= 1;
	b.data[size - 8] ^= 1;
	expect_failure("gzip", LADE_E_CHECKSUM, size - 8, "CRC-32");
	b.data[size - 8] ^= 1;
	b.data[size - 4] ^= 1;
	expect_failure("gzip", LADE_E_CHECKSUM, size - 4, "1000 bytes");
	b.data[size - 4] ^= 1;
	b.size = size - 1;
	expect_failure("gzip", LADE_E_TRUNCATED, b.size, "trailer");
	b.size = 50;
	expect_failure("gzip", LADE_E_TRUNCATED, 50, "does not end");
	b.size = 11;
	expect_failure("gzip", LADE_E_TRUNCATED, 11, "header checksum");
	b.size = size;
	b.data[3] = 0x80;
	expect_failure("gzip", LADE_E_UNSUPPORTED, 3, "reserved");
	b.data[2] = 9;
	expect_failure("gzip", LADE_E_UNSUPPORTED, 2, "method 9");
	b.size = 0;
	put_member(8, text, 10);
	b.size = 15;
	expect_failure("gzip", LADE_E_TRUNCATED, 15, "name");
	b.size = 0;
	put_member(4, text, 10);
	b.data[11] = 0xFF;
	expect_failure("gzip", LADE_E_TRUNCATED, b.size, "extra");
}

static void test_zlib_errors(void **state)
{
	(void)state;
	b.size = 0;
	put_encoded("zlib(6)", text, 1000);
	size_t size = b.size;
	b.data[size - 1] ^= 1;
	expect_failure("zlib", LADE_E_CHECKSUM, size - 4, "Adler-32");
	b.data[size - 1] ^= 1;
	put("\0", 1);
	expect_failure("zlib", LADE_E_CORRUPT, size, "ends at");
	b.size = size - 2;
	expect_failure("zlib", LADE_E_TRUNCATED, b.size, "want a checksum of 4 bytes, have 2");
	b.size = 1;
	expect_failure("zlib", LADE_E_TRUNCATED, 1, "header");
	b.size = size;
	b.data[0] ^= 1;
	expect_failure("zlib", LADE_E_CORRUPT, 0, "multiple of 31");
	b.data[0] = 0x09;
	b.data[1] = (uint8_t)(31 - 0x0900 % 31);
	expect_failure("zlib", LADE_E_UNSUPPORTED, 0, "method 9");
}

static void test_deflate_errors(void **state)
{
	(void)state;
	b.size = 0;
	put_encoded("deflate(6)", text, 1000);
	size_t size = b.size;
	put("12", 2);
	expect_failure("deflate", LADE_E_CORRUPT, size, "ends at");
	b.size = size - 1;
	expect_failure("deflate", LADE_E_TRUNCATED, b.size, "does not end");
	b.size = 0;
	put("\x07", 1);
	expect_failure("deflate", LADE_E_CORRUPT, 1, "invalid block type");
	/* A thousand-fold bomb is named without decoding all of it. */
	b.size = 0;
	uint8_t *zeros = calloc(1, 100000000);
	put_encoded("deflate(9)", zeros, 100000000);
	free(zeros);
	codec c = codec_open("deflate");
	lade_error err = {0};
	size_t got;
	assert_int_equal(codec_decode(&c, b.data, b.size, out, 1000, &got, &err), LADE_E_NOSPACE);
	assert_non_null(strstr(err.message, "want more than"));
	assert_non_null(strstr(err.message, "have 1000"));
	codec_close(&c);
	b.size = 0;
	put_encoded("deflate(9)", text, 300000);
	c = codec_open("deflate");
	assert_int_equal(codec_decode(&c, b.data, b.size, out, 299999, &got, &err), LADE_E_NOSPACE);
	assert_non_null(strstr(err.message, "want 300000 bytes, have 299999"));
	codec_close(&c);
}

/* ---- lz4 -------------------------------------------------------------------------------- */

static void test_lz4_errors(void **state)
{
	(void)state;
	b.size = 0;
	/* A literal, a match of 4 that reaches back 2 bytes where 1 is there, 11 literals. */
	put("\x10"
	    "a\x02\x00"
	    "\xB0"
	    "bcdefghijkl",
	    16);
	expect_failure("lz4", LADE_E_CORRUPT, 2, "has offset 2, the output has 1");
	b.data[2] = 1;
	expect("lz4", "aaaaabcdefghijkl", 16);
	b.size = 15;
	expect_failure("lz4", LADE_E_TRUNCATED, 15, "need 11 bytes, 10 are left");
	b.size = 3;
	expect_failure("lz4", LADE_E_TRUNCATED, 3, "match offset");
	b.size = 0;
	put("\xF0\xFF\xFF", 3);
	expect_failure("lz4", LADE_E_TRUNCATED, 3, "literal length");
	b.size = 0;
	put_encoded("lz4(1)", text, 1000);
	codec c = codec_open("lz4");
	lade_error err = {0};
	size_t got;
	assert_int_equal(codec_decode(&c, b.data, b.size, out, 999, &got, &err), LADE_E_NOSPACE);
	assert_non_null(strstr(err.message, "want 1000 bytes, have 999"));
	codec_close(&c);
}

static void test_lz4_ranges(void **state)
{
	(void)state;
	b.size = 0;
	put_encoded("lz4(1)", text, 20000);
	codec c = codec_open("lz4");
	c.dec.stage = &c.stage;
	lade_error err = {0};
	rng r = {77};
	for (int i = 0; i < 2000; i++) {
		size_t off = rng_below(&r, i & 1 ? 20000 : 3), size = rng_below(&r, 20001 - off);
		guard to = guard_new(size, i & 2);
		assert_status(c.decoder->run_range(&c.dec, lade_host_cspan(b.data, b.size), off,
		                                   lade_host_span(to.data, size), &err),
		              LADE_OK, err);
		assert_memory_equal(to.data, text + off, size);
		guard_free(&to);
	}
	lade_cspan src = lade_host_cspan(b.data, b.size);
	assert_status(c.decoder->run_range(&c.dec, src, 19999, lade_host_span(out, 2), &err),
	              LADE_E_RANGE, err);
	assert_non_null(strstr(err.message, "20000"));
	assert_status(c.decoder->run_range(&c.dec, src, UINT64_MAX, lade_host_span(out, 2), &err),
	              LADE_E_RANGE, err);
	src.size = 30;
	assert_status(c.decoder->run_range(&c.dec, src, 5000, lade_host_span(out, 2), &err),
	              LADE_E_TRUNCATED, err);
	codec_close(&c);
}

static void put_lz4_legacy(const uint8_t *data, size_t size)
{
	put_le(0x184C2102, 4);
	int n = LZ4_compress_default((const char *)data, (char *)b.data + b.size + 4, (int)size,
	                             (int)(sizeof b.data - b.size - 4));
	put_le((uint64_t)n, 4);
	b.size += (size_t)n;
}

static void test_lz4_frames(void **state)
{
	(void)state;
	b.size = 0;
	put_skippable(0x184D2A53, 3);
	put_encoded("lz4f(1,checksum=true)", text, 100000);
	put_encoded("lz4f(1,linked=true,block_size=64k,block_checksum=true)", text + 100000,
	            150000);
	put_encoded("lz4f", text, 0);
	expect_size("lz4f", LADE_OK, 250000);
	expect("lz4f", text, 250000);
	put_encoded("lz4f(9,content_size=false,block_size=64k)", text + 250000, 10000);
	expect_size("lz4f", LADE_E_UNKNOWN_SIZE, 0);
	expect("lz4f", text, 260000);
	put_lz4_legacy(text + 260000, 20000);
	put_lz4_legacy(text + 280000, 10000);
	put_skippable(0x184D2A50, 10);
	put_lz4_legacy(text + 290000, 10000);
	expect("lz4f", text, 300000);
}

static void test_lz4_frame_errors(void **state)
{
	(void)state;
	b.size = 0;
	put_encoded("lz4f(1,checksum=true,block_checksum=true)", text, 1000);
	size_t size = b.size;
	static const struct {
		size_t at;
		lade_status status;
		const char *words;
	} flips[] = {
		{0, LADE_E_CORRUPT, "is not the start of a frame"},
		{14, LADE_E_CHECKSUM, "descriptor's checksum"},
	};
	for (size_t i = 0; i < 2; i++) {
		b.data[flips[i].at] ^= 1;
		expect_failure("lz4f", flips[i].status, flips[i].at, flips[i].words);
		b.data[flips[i].at] ^= 1;
	}
	b.data[4] ^= 0xC0;
	expect_failure("lz4f", LADE_E_VERSION, 4, "version 2");
	b.data[4] ^= 0xC0;
	b.data[4] ^= 2;
	expect_failure("lz4f", LADE_E_UNSUPPORTED, 4, "reserved");
	b.data[4] ^= 2;
	b.data[20] ^= 1;
	size_t block = 15;
	size_t length = b.data[block] | (size_t)b.data[block + 1] << 8;
	expect_failure("lz4f", LADE_E_CHECKSUM, block + 4 + length, "block's checksum");
	b.data[20] ^= 1;
	b.data[size - 1] ^= 1;
	expect_failure("lz4f", LADE_E_CHECKSUM, size - 4, "content's checksum");
	b.data[size - 1] ^= 1;
	b.size = size - 1;
	expect_failure("lz4f", LADE_E_TRUNCATED, b.size, "content checksum");
	b.size = size - 5;
	expect_failure("lz4f", LADE_E_TRUNCATED, b.size, "next block");
	b.size = 40;
	expect_failure("lz4f", LADE_E_TRUNCATED, b.size, "the block at 15 needs");
	b.size = 10;
	expect_failure("lz4f", LADE_E_TRUNCATED, b.size, "descriptor");
	b.size = size;
	b.data[block + 2] = 0x50;
	expect_failure("lz4f", LADE_E_CORRUPT, block, "at most");
	/* A content size that is not the content's. */
	b.size = 0;
	put_encoded("lz4f(1)", text, 1000);
	b.data[6] ^= 1;
	b.data[14] = (uint8_t)(XXH32(b.data + 4, 10, 0) >> 8);
	expect_failure("lz4f", LADE_E_CORRUPT, 6, "states 1001 bytes and decodes to 1000");
}

/* ---- dictionaries ------------------------------------------------------------------------- */

static void with_dict(codec *c, const lade_dict *dict)
{
	c->enc.dict = c->dec.dict = dict;
}

static void dict_round_trip(const char *spec, const lade_dict *dict, const uint8_t *data,
                            size_t size)
{
	codec c = codec_open(spec);
	lade_error err = {0};
	size_t plain, got, back;
	assert_status(codec_encode(&c, data, size, b.data, sizeof b.data, &plain, &err), LADE_OK,
	              err);
	with_dict(&c, dict);
	for (int turn = 0; turn < 2; turn++) {
		size_t bound = codec_bound(&c, size);
		guard packed = guard_new(bound, 1);
		assert_status(codec_encode(&c, data, size, packed.data, bound, &got, &err), LADE_OK,
		              err);
		if (size < 5000)
			assert_true(got < plain);
		guard to = guard_new(size, turn);
		assert_status(codec_decode(&c, packed.data, got, to.data, size, &back, &err),
		              LADE_OK, err);
		assert_int_equal(back, size);
		assert_memory_equal(to.data, data, size);
		guard_free(&to);
		if (size > 0) {
			to = guard_new(size - 1, 1);
			assert_status(
				codec_decode(&c, packed.data, got, to.data, size - 1, &back, &err),
				LADE_E_NOSPACE, err);
			guard_free(&to);
		}
		/* Without a dictionary between: the context must forget it. */
		with_dict(&c, NULL);
		size_t again;
		assert_status(codec_encode(&c, data, size, out, sizeof out, &again, &err), LADE_OK,
		              err);
		assert_int_equal(again, plain);
		assert_memory_equal(out, b.data, plain);
		/* What needs the dictionary must not decode to the same without it. */
		lade_status status =
			codec_decode(&c, packed.data, got, out, sizeof out, &back, &err);
		assert_true(status != LADE_OK || back != size || memcmp(out, data, size) != 0);
		with_dict(&c, dict);
		guard_free(&packed);
	}
	codec_close(&c);
}

static void test_dictionaries(void **state)
{
	(void)state;
	static const char *const specs[] = {"lz4",
	                                    "lz4(9)",
	                                    "lz4(-3)",
	                                    "zstd",
	                                    "zstd(12)",
	                                    "zstd(1,checksum=true)",
	                                    "deflate",
	                                    "deflate(1)",
	                                    "zlib",
	                                    "lz4f",
	                                    "lz4f(9,linked=true,block_size=64k)",
	                                    "lz4f(1,block_size=64k)"};
	lade_error err = {0};
	/* Noise, so that only the dictionary helps; longer than any window. */
	static uint8_t noise[200000];
	rng r = {0xd1c7};
	data_fill(noise, sizeof noise, DATA_NOISE, &r);
	static const size_t dict_sizes[] = {100000, 30000, 5000};
	for (size_t k = 0; k < 3; k++) {
		lade_dict *dict = NULL;
		uint8_t *own = malloc(dict_sizes[k]);
		memcpy(own, noise, dict_sizes[k]);
		assert_status(lade_dict_new(own, dict_sizes[k], &dict, &err), LADE_OK, err);
		free(own); /* it was copied */
		for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
			dict_round_trip(specs[i], dict, noise + dict_sizes[k] - 4000, 3000);
			/* Longer than a window, beginning in the dictionary. */
			dict_round_trip(specs[i], dict, noise + dict_sizes[k] - 4000, 90000);
		}
		lade_dict_free(dict);
	}
}

static void test_lz4_ranges_with_a_dictionary(void **state)
{
	(void)state;
	lade_dict *dict = NULL;
	lade_error err = {0};
	assert_status(lade_dict_new(text, 70000, &dict, &err), LADE_OK, err);
	codec c = codec_open("lz4");
	with_dict(&c, dict);
	size_t got;
	assert_status(codec_encode(&c, text + 60000, 20000, b.data, sizeof b.data, &got, &err),
	              LADE_OK, err);
	rng r = {78};
	for (int i = 0; i < 300; i++) {
		size_t off = rng_below(&r, i & 1 ? 20000 : 3), size = rng_below(&r, 20001 - off);
		guard to = guard_new(size, 1);
		assert_status(c.decoder->run_range(&c.dec, lade_host_cspan(b.data, got), off,
		                                   lade_host_span(to.data, size), &err),
		              LADE_OK, err);
		assert_memory_equal(to.data, text + 60000 + off, size);
		guard_free(&to);
	}
	codec_close(&c);
	lade_dict_free(dict);
}

/* Linked blocks of an LZ4 frame that are shorter than 64 KiB, with a dictionary: their history is
 * in two places. */
static void test_lz4_frame_short_linked_blocks_with_a_dictionary(void **state)
{
	(void)state;
	lade_error err = {0};
	lade_dict *dict = NULL;
	assert_status(lade_dict_new(text, 80000, &dict, &err), LADE_OK, err);
	b.size = 0;
	put_le(0x184D2204, 4);
	put("\x40\x40", 2);
	put_le(XXH32("\x40\x40", 2, 0) >> 8 & 0xFF, 1);
	LZ4_stream_t *stream = LZ4_createStream();
	LZ4_loadDict(stream, (const char *)text, 80000);
	size_t done = 0;
	for (int i = 0; i < 30; i++) {
		size_t piece = 500 + (size_t)i * 300;
		if (i % 7 == 3) { /* stored raw */
			put_le(piece | 0x80000000u, 4);
			put(text + 100000 + done, piece);
			/* The compressor sees it too, as history. */
			LZ4_compress_fast_continue(stream, (const char *)text + 100000 + done,
			                           (char *)out, (int)piece, sizeof out, 1);
		} else {
			int n = LZ4_compress_fast_continue(
				stream, (const char *)text + 100000 + done,
				(char *)b.data + b.size + 4, (int)piece, 100000, 1);
			assert_true(n > 0);
			put_le((uint64_t)n, 4);
			b.size += (size_t)n;
		}
		done += piece;
	}
	LZ4_freeStream(stream);
	put_le(0, 4);
	codec c = codec_open("lz4f");
	with_dict(&c, dict);
	guard to = guard_new(done, 1);
	size_t got;
	assert_status(codec_decode(&c, b.data, b.size, to.data, done, &got, &err), LADE_OK, err);
	assert_int_equal(got, done);
	assert_memory_equal(to.data, text + 100000, done);
	guard_free(&to);
	codec_close(&c);
	lade_dict_free(dict);
}

/* Many chunks at once: the prepared forms are made once and used by all threads. */
static void test_a_dictionary_shared_by_threads(void **state)
{
	(void)state;
	static const char *const specs[] = {"lz4", "lz4(5)", "lz4f(9)", "zstd", "zlib", "deflate"};
	enum { ITEMS = 64, SIZE = 2000, ROOM = 3000 };
	static uint8_t packed[ITEMS][ROOM], back[ITEMS][SIZE];
	lade_item items[ITEMS];
	lade_segment segments[ITEMS];
	lade_result results[ITEMS];
	lade_engine *engine = NULL;
	lade_engine_options wanted = {.struct_size = sizeof wanted, .threads = 4};
	lade_error err = {0};
	assert_status(lade_engine_new(&wanted, &engine, &err), LADE_OK, err);
	for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++) {
		lade_dict *dict = NULL;
		lade_spec *spec = NULL;
		assert_status(lade_dict_new(text, 50000, &dict, &err), LADE_OK, err);
		assert_status(lade_spec_parse(engine, specs[s], &spec, &err), LADE_OK, err);
		lade_batch_options options = {.struct_size = sizeof options, .dict = dict};
		for (size_t i = 0; i < ITEMS; i++) {
			segments[i] = (lade_segment){.data = text + i * 3000, .size = SIZE};
			items[i] = (lade_item){.src = &segments[i],
			                       .src_count = 1,
			                       .dst = lade_host_span(packed[i], ROOM)};
		}
		assert_status(lade_encode_into(engine, spec, items, ITEMS, results, &options, &err),
		              LADE_OK, err);
		for (size_t i = 0; i < ITEMS; i++) {
			segments[i] =
				(lade_segment){.data = packed[i], .size = results[i].size};
			items[i].dst = lade_host_span(back[i], SIZE);
		}
		assert_status(lade_decode_into(engine, spec, items, ITEMS, results, &options, &err),
		              LADE_OK, err);
		for (size_t i = 0; i < ITEMS; i++)
			assert_memory_equal(back[i], text + i * 3000, SIZE);
		lade_spec_unref(spec);
		lade_dict_free(dict);
	}
	lade_engine_free(engine);
}

static void test_wrong_dictionaries(void **state)
{
	(void)state;
	lade_error err = {0};
	lade_dict *right = NULL, *wrong = NULL, *broken = NULL;
	size_t got;
	assert_status(lade_dict_new(text, 5000, &right, &err), LADE_OK, err);
	assert_status(lade_dict_new(text + 1, 5000, &wrong, &err), LADE_OK, err);
	codec c = codec_open("zlib");
	with_dict(&c, right);
	size_t size;
	assert_status(codec_encode(&c, text, 900, b.data, sizeof b.data, &size, &err), LADE_OK,
	              err);
	with_dict(&c, wrong);
	assert_status(codec_decode(&c, b.data, size, out, sizeof out, &got, &err), LADE_E_DICT,
	              err);
	assert_int_equal(err.offset, 2);
	with_dict(&c, NULL);
	assert_status(codec_decode(&c, b.data, size, out, sizeof out, &got, &err), LADE_E_DICT,
	              err);
	/* A stream that names none is decoded without the one that is there. */
	assert_status(codec_encode(&c, text, 900, b.data, sizeof b.data, &size, &err), LADE_OK,
	              err);
	with_dict(&c, wrong);
	assert_status(codec_decode(&c, b.data, size, out, sizeof out, &got, &err), LADE_OK, err);
	codec_close(&c);

	/* A frame that names dictionary 0x01020304. */
	b.size = 0;
	put("\x28\xb5\x2f\xfd\x23\x04\x03\x02\x01\x01\x09\x00\x00"
	    "a",
	    14);
	expect_failure("zstd", LADE_E_DICT, 0, "needs dictionary 16909060, none is given");
	c = codec_open("zstd");
	with_dict(&c, right);
	assert_status(codec_decode(&c, b.data, b.size, out, sizeof out, &got, &err), LADE_E_DICT,
	              err);
	/* Zstd's own kind of dictionary, with broken tables. */
	assert_status(lade_dict_new("\x37\xa4\x30\xec\1\0\0\0\xff\xff\xff\xff\xff\xff", 14, &broken,
	                            &err),
	              LADE_OK, err);
	with_dict(&c, broken);
	assert_status(codec_decode(&c, b.data, b.size, out, sizeof out, &got, &err), LADE_E_DICT,
	              err);
	assert_status(codec_encode(&c, text, 900, out, sizeof out, &got, &err), LADE_E_DICT, err);
	codec_close(&c);
	lade_dict_free(broken);
	lade_dict_free(right);
	lade_dict_free(wrong);

	b.size = 0;
	put_le(0x184D2204, 4);
	put("\x61\x40\1\2\3\4", 6);
	put_le(XXH32("\x61\x40\1\2\3\4", 6, 0) >> 8 & 0xFF, 1);
	put_le(0, 4);
	expect_failure("lz4f", LADE_E_DICT, 0, "needs dictionary 67305985");
}

/* ---- snappy ------------------------------------------------------------------------------- */

static void test_snappy_errors(void **state)
{
	(void)state;
	b.size = 0;
	put("\xff\xff\xff\xff\x1f", 5);
	expect_failure("snappy", LADE_E_CORRUPT, 0, "32 bits");
	b.size = 2;
	expect_failure("snappy", LADE_E_TRUNCATED, 2, "is incomplete after 2");
	b.size = 0;
	put("\x0a\x00"
	    "a\x15\x02",
	    5); /* a literal of 1 byte, a copy of 9 from 2 back */
	expect_failure("snappy", LADE_E_CORRUPT, 3, "has offset 2, the output has 1");
	b.data[4] = 1;
	expect("snappy", "aaaaaaaaaa", 10);
	b.data[0] = 9;
	expect_failure("snappy", LADE_E_CORRUPT, 3, "room for 8");
	b.data[0] = 11;
	expect_failure("snappy", LADE_E_TRUNCATED, 5, "states 11 bytes and decodes to 10");
	b.size = 4;
	expect_failure("snappy", LADE_E_TRUNCATED, 4, "needs 1 more bytes, 0 are left");
	b.size = 2;
	expect_failure("snappy", LADE_E_TRUNCATED, 2, "the literal at 1 needs 1 bytes");
	b.size = 0;
	put("\xff\xff\xff\xff\x0f", 5);
	expect_size("snappy", LADE_OK, UINT32_MAX);
	codec c = codec_open("snappy");
	lade_error err = {0};
	size_t got;
	assert_int_equal(codec_decode(&c, b.data, b.size, out, 10, &got, &err), LADE_E_NOSPACE);
	assert_non_null(strstr(err.message, "want 4294967295 bytes, have 10"));
	codec_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_zstd_frames),
		cmocka_unit_test(test_zstd_errors),
		cmocka_unit_test(test_zstd_frame_that_gives_more_than_it_names),
		cmocka_unit_test(test_gzip_members),
		cmocka_unit_test(test_gzip_errors),
		cmocka_unit_test(test_zlib_errors),
		cmocka_unit_test(test_deflate_errors),
		cmocka_unit_test(test_lz4_errors),
		cmocka_unit_test(test_lz4_ranges),
		cmocka_unit_test(test_lz4_frames),
		cmocka_unit_test(test_lz4_frame_errors),
		cmocka_unit_test(test_dictionaries),
		cmocka_unit_test(test_lz4_ranges_with_a_dictionary),
		cmocka_unit_test(test_lz4_frame_short_linked_blocks_with_a_dictionary),
		cmocka_unit_test(test_a_dictionary_shared_by_threads),
		cmocka_unit_test(test_wrong_dictionaries),
		cmocka_unit_test(test_snappy_errors),
	};
	return cmocka_run_group_tests(tests, setup, codec_teardown);
}
