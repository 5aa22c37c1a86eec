/*
 * test_codec_hostile.c: encoded bytes cut at every place and with bits flipped, next to guard
 * pages: each gives an error that names a place inside the source, or a result that fits.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec_test.h"

static const uint64_t seed = 0x1ade0bad;

static const char *const specs[] = {"lz4",
                                    "lz4(9)",
                                    "snappy",
                                    "ans",
                                    "ans(i4)",
                                    "zstd",
                                    "zstd(1,checksum=true)",
                                    "zstd(15)",
                                    "deflate",
                                    "deflate(0)",
                                    "zlib",
                                    "gzip",
                                    "lz4f",
                                    "lz4f(1,checksum=true,block_checksum=true)",
                                    "lz4f(1,linked=true,block_size=64k,content_size=false)",
                                    "bitcomp",
                                    "bitcomp(<i2)",
                                    "bitcomp(<u4)",
                                    "bz2",
                                    "lzma(0,dict=4096)",
                                    "lzma(0,format=raw1,dict=4096)"};
#define SPECS (sizeof specs / sizeof specs[0])

/* Whether the format's own checksum covers the content. */
static bool is_checked(const codec *c)
{
	const char *name = c->stage.algorithm->name;
	return !strcmp(name, "zlib") || !strcmp(name, "gzip") || !strcmp(name, "bz2") ||
	       (!strcmp(name, "lzma") && !c->stage.option[1].i) ||
	       ((!strcmp(name, "zstd") || !strcmp(name, "lz4f")) && c->stage.option[1].i);
}

static void check_failure(const lade_error *err, lade_status status, size_t src_size, size_t got)
{
	assert_int_equal(got, 0);
	assert_int_equal(err->status, status);
	assert_true(err->message[0] != 0);
	if (err->offset != LADE_NO_OFFSET && err->offset > src_size)
		fail_msg("offset %llu of %zu: %s", (unsigned long long)err->offset, src_size,
		         err->message);
	switch (status) {
	case LADE_E_NOSPACE:
	case LADE_E_CORRUPT:
	case LADE_E_TRUNCATED:
	case LADE_E_CHECKSUM:
	case LADE_E_UNSUPPORTED:
	case LADE_E_VERSION:
	case LADE_E_LIMIT:
	case LADE_E_DICT:
		break;
	default:
		fail_msg("%s: %s", lade_status_name(status), err->message);
	}
}

/* Decodes 'size' bytes of 'bad' at a guard page into 'cap' bytes at another. */
static lade_status decode_guarded(codec *c, const uint8_t *bad, size_t size, guard *dst,
                                  size_t *got)
{
	lade_error err = {0};
	guard in = guard_copy(bad, size, 1);
	*got = 1;
	lade_status status = codec_decode(c, in.data, size, dst->data, dst->size, got, &err);
	if (status != LADE_OK)
		check_failure(&err, status, size, *got);
	else
		assert_true(*got <= dst->size);
	uint64_t told;
	err = (lade_error){0};
	lade_status sized = c->stage.algorithm->decoded_size(&c->stage, in.data, size, &told, &err);
	if (sized == LADE_OK && status == LADE_OK)
		assert_int_equal(told, *got);
	if (sized != LADE_OK)
		assert_int_equal(err.status, sized);
	guard_free(&in);
	return status;
}

static void test_cut_everywhere(void **state)
{
	(void)state;
	rng r = {seed};
	uint8_t data[1500], packed[3000];
	for (size_t i = 0; i < SPECS; i++) {
		codec c = codec_open(specs[i]);
		for (int kind = 0; kind < DATA_KINDS; kind++) {
			size_t size, got;
			data_fill(data, sizeof data, kind, &r);
			assert_int_equal(codec_encode(&c, data, sizeof data, packed, sizeof packed,
			                              &size, NULL),
			                 LADE_OK);
			guard dst = guard_new(sizeof data, 1);
			for (size_t cut = 0; cut < size; cut++) {
				lade_status status = decode_guarded(&c, packed, cut, &dst, &got);
				/* Only a raw LZ4 block has no end of its own: cut behind literals
				 * it is a shorter block, or one that ends against the rules. */
				if (!strcmp(c.stage.algorithm->name, "lz4") &&
				    (status == LADE_OK || status == LADE_E_CORRUPT))
					assert_true(got < sizeof data);
				else if (status != LADE_E_TRUNCATED)
					fail_msg("%s cut to %zu of %zu: %s", specs[i], cut, size,
					         lade_status_name(status));
			}
			guard_free(&dst);
		}
		codec_close(&c);
	}
}

static void test_flipped_bits(void **state)
{
	(void)state;
	rng r = {seed + 1};
	printf("seed %llx\n", (unsigned long long)seed);
	enum { SIZE = 3000 };
	uint8_t data[SIZE], packed[2 * SIZE];
	for (size_t i = 0; i < SPECS; i++) {
		codec c = codec_open(specs[i]);
		for (int kind = 0; kind < DATA_KINDS; kind++) {
			size_t size, got;
			data_fill(data, SIZE, kind, &r);
			assert_int_equal(
				codec_encode(&c, data, SIZE, packed, sizeof packed, &size, NULL),
				LADE_OK);
			/* Exact room, and more than is wanted. */
			guard dsts[2] = {guard_new(SIZE, 1), guard_new(SIZE + 5000, 1)};
			for (int k = 0; k < 1500; k++) {
				size_t begin = k % 3 ? 0 : rng_below(&r, size);
				size_t span = k % 3 == 1 && size > 40 ? 40 : size - begin;
				size_t at[3];
				uint8_t mask[3];
				int flips = 1 + (int)rng_below(&r, 3);
				for (int f = 0; f < flips; f++) {
					at[f] = begin + rng_below(&r, span);
					mask[f] = (uint8_t)(k % 5 ? 1u << rng_below(&r, 8)
					                          : rng_next(&r));
					packed[at[f]] ^= mask[f];
				}
				lade_status status =
					decode_guarded(&c, packed, size, &dsts[k & 1], &got);
				if (status == LADE_OK && is_checked(&c) && got == SIZE)
					assert_memory_equal(dsts[k & 1].data, data, SIZE);
				for (int f = 0; f < flips; f++)
					packed[at[f]] ^= mask[f];
			}
			/* The context is as good as before. */
			assert_int_equal(decode_guarded(&c, packed, size, &dsts[0], &got), LADE_OK);
			assert_memory_equal(dsts[0].data, data, SIZE);
			guard_free(&dsts[0]);
			guard_free(&dsts[1]);
		}
		codec_close(&c);
	}
}

static void test_noise(void **state)
{
	(void)state;
	rng r = {seed + 2};
	uint8_t noise[300];
	static const uint8_t starts[][4] = {{0x28, 0xB5, 0x2F, 0xFD}, {0x04, 0x22, 0x4D, 0x18},
	                                    {0x02, 0x21, 0x4C, 0x18}, {0x1F, 0x8B, 8, 0},
	                                    {0x50, 0x2A, 0x4D, 0x18}, {0x78, 0x9C, 0x01, 0x00}};
	for (size_t i = 0; i < SPECS; i++) {
		codec c = codec_open(specs[i]);
		guard dst = guard_new(5000, 1);
		for (int k = 0; k < 3000; k++) {
			size_t size = rng_below(&r, sizeof noise), got;
			data_fill(noise, size, DATA_NOISE, &r);
			size_t start = rng_below(&r, 7);
			if (start < 6 && size >= 4)
				memcpy(noise, starts[start], 4);
			decode_guarded(&c, noise, size, &dst, &got);
		}
		guard_free(&dst);
		codec_close(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut_everywhere),
		cmocka_unit_test(test_flipped_bits),
		cmocka_unit_test(test_noise),
	};
	return cmocka_run_group_tests(tests, codec_setup, codec_teardown);
}
