/*
 * test_deflate_last.c: the last block of a Deflate stream is found where zlib finds it; damaged
 * streams are refused or give some place inside, and nothing behind them is read.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "foreign/foreign.h"
#include "guard.h"

#include <libdeflate.h>
#include <zlib.h>

enum { MOST = 300000 };

static uint8_t plain[MOST], packed[2 * MOST];

/* Bytes of some kind: zeros, noise, text, numbers, and all of them in turn. */
static void fill(size_t size, unsigned kind, rng *r)
{
	static const char words[] = "some words, and again ";
	for (size_t i = 0; i < size; i++) {
		switch (kind < 4 ? kind : i / 20000 % 4) {
		case 0:
			plain[i] = 0;
			break;
		case 1:
			plain[i] = (uint8_t)rng_next(r);
			break;
		case 2:
			plain[i] = (uint8_t)words[rng_below(r, sizeof words - 1)];
			break;
		default:
			plain[i] = (uint8_t)(i / 4 >> 8 * (i % 4));
		}
	}
}

/* zlib's word for where the last block begins and ends. */
static void want(size_t size, size_t *begin, size_t *end)
{
	static uint8_t out[1 << 15];
	z_stream z = {.next_in = packed, .avail_in = (uInt)size};

	assert_int_equal(inflateInit2(&z, -15), Z_OK);
	*begin = *end = 0;
	do {
		z.next_out = out;
		z.avail_out = sizeof out;
		assert_int_equal(inflate(&z, Z_BLOCK), Z_OK);
		if (z.data_type & 128) {
			*begin = *end;
			*end = 8 * (size - z.avail_in) - (size_t)(z.data_type & 7);
		}
	} while (!(z.data_type & 128) || !(z.data_type & 64));
	inflateEnd(&z);
}

static void check(size_t size)
{
	size_t begin, end, want_begin, want_end;
	guard in = guard_copy(packed, size, 1);

	want(size, &want_begin, &want_end);
	assert_true(lade__deflate_last(in.data, size, &begin, &end));
	assert_int_equal(begin, want_begin);
	assert_int_equal(end, want_end);
	guard_free(&in);
}

static void test_libdeflate(void **state)
{
	(void)state;
	static const size_t sizes[] = {0, 1, 2, 100, 20000, MOST};
	rng r = {0x5151};
	for (int level = 0; level <= 12; level++) {
		struct libdeflate_compressor *c = libdeflate_alloc_compressor(level);
		for (unsigned k = 0; k < 5 * 6; k++) {
			fill(sizes[k / 5], k % 5, &r);
			check(libdeflate_deflate_compress(c, plain, sizes[k / 5], packed,
			                                  sizeof packed));
		}
		libdeflate_free_compressor(c);
	}
}

/* zlib's streams have fixed codes, Huffman codes without matches, and flushes. */
static size_t by_zlib(size_t size, int strategy, bool flush)
{
	z_stream z = {.next_in = plain, .avail_in = (uInt)(flush ? size / 2 : size),
	              .next_out = packed, .avail_out = sizeof packed};

	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, -15, 8, strategy), Z_OK);
	if (flush) {
		assert_int_equal(deflate(&z, Z_SYNC_FLUSH), Z_OK);
		z.avail_in = (uInt)(size - size / 2);
	}
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	size_t got = sizeof packed - z.avail_out;
	deflateEnd(&z);
	return got;
}

static void test_zlib(void **state)
{
	(void)state;
	static const int strategies[] = {Z_DEFAULT_STRATEGY, Z_FIXED, Z_HUFFMAN_ONLY, Z_RLE};
	rng r = {0x5252};
	for (unsigned k = 0; k < 4 * 5 * 2; k++) {
		fill(60000, k % 5, &r);
		check(by_zlib(60000, strategies[k / 5 % 4], k / 20));
	}
}

static void test_damaged(void **state)
{
	(void)state;
	rng r = {0x5353};
	size_t begin, end, refused = 0;
	for (unsigned k = 0; k < 30; k++) {
		fill(3000, k % 5, &r);
		size_t size = by_zlib(3000, k % 2 ? Z_FIXED : Z_DEFAULT_STRATEGY, k % 3 == 0);
		for (size_t cut = 0; cut < size; cut += 1 + cut / 64) {
			guard in = guard_copy(packed, cut, 1);
			assert_false(lade__deflate_last(in.data, cut, &begin, &end));
			guard_free(&in);
		}
		for (unsigned i = 0; i < 300; i++) {
			size_t at = rng_below(&r, size);
			uint8_t was = packed[at];
			packed[at] ^= (uint8_t)(1u << rng_below(&r, 8));
			guard in = guard_copy(packed, size, 1);
			if (lade__deflate_last(in.data, size, &begin, &end))
				assert_true(begin < end && end <= 8 * size);
			else
				refused++;
			guard_free(&in);
			packed[at] = was;
		}
	}
	assert_true(refused > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_libdeflate),
		cmocka_unit_test(test_zlib),
		cmocka_unit_test(test_damaged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
