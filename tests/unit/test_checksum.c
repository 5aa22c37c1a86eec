/*
 * test_checksum.c: every checksum against its check value, and against a reference that works bit
 * by bit, at every length and alignment, at every CPU level, next to guard pages.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <xxhash.h>

#include "checksum/checksum.h"
#include "guard.h"

/* The check values of the catalogue of CRC algorithms (reveng), for "123456789". */
static const struct {
	lade_checksum kind;
	uint64_t check;
} checks[] = {
	{LADE_CRC32, 0xCBF43926},
	{LADE_CRC32C, 0xE3069283},
	{LADE_CRC32D, 0x87315576},
	{LADE_CRC32Q, 0x3010BF7F},
	{LADE_CRC32_MEF, 0xD2C22F51},
	{LADE_CRC32_XFER, 0xBD0BE338},
	{LADE_CRC32_BZIP2, 0xFC891918},
	{LADE_CRC32_POSIX, 0x765E7680},
	{LADE_CRC32_JAMCRC, 0x340BC6D9},
	{LADE_CRC32_MPEG2, 0x0376E6E7},
	{LADE_CRC32_AUTOSAR, 0x1697D06A},
	{LADE_CRC32_CDROM, 0x6EC2EDC4},
	{LADE_ADLER32, 0x091E01DE},
	{LADE_XXH64, 0x8CB841DB40E6AE83},
	/* As numcodecs 0.16 stores it. */
	{LADE_FLETCHER32, 0x09DF09D5},
};

static uint32_t reverse(uint32_t v)
{
	uint32_t r = 0;
	for (int i = 0; i < 32; i++)
		r |= (v >> i & 1) << (31 - i);
	return r;
}

/* The Rocksoft model, word for word. */
static uint32_t crc_bitwise(const lade_crc32_spec *s, const uint8_t *p, size_t size)
{
	uint32_t crc = s->init;
	for (size_t i = 0; i < size; i++) {
		uint32_t b = s->reflect_in ? reverse(p[i]) : (uint32_t)p[i] << 24;
		crc ^= b;
		for (int k = 0; k < 8; k++)
			crc = (crc << 1) ^ (crc >> 31 ? s->poly : 0);
	}
	return (s->reflect_out ? reverse(crc) : crc) ^ s->xor_out;
}

/* HDF5's definition: folded every 360 words, and twice in the end. */
static uint32_t fletcher_reference(const uint8_t *p, size_t size)
{
	uint32_t sum1 = 0, sum2 = 0;
	size_t words = size / 2;
	for (size_t i = 0; i < words; i++) {
		sum1 += (uint32_t)p[2 * i] << 8 | p[2 * i + 1];
		sum2 += sum1;
		if (i % 360 == 359 || i + 1 == words) {
			sum1 = (sum1 & 0xFFFF) + (sum1 >> 16);
			sum2 = (sum2 & 0xFFFF) + (sum2 >> 16);
		}
	}
	if (size % 2) {
		sum1 += (uint32_t)p[size - 1] << 8;
		sum2 += sum1;
		sum1 = (sum1 & 0xFFFF) + (sum1 >> 16);
		sum2 = (sum2 & 0xFFFF) + (sum2 >> 16);
	}
	sum1 = (sum1 & 0xFFFF) + (sum1 >> 16);
	sum2 = (sum2 & 0xFFFF) + (sum2 >> 16);
	return sum2 << 16 | sum1;
}

static uint32_t adler_reference(const uint8_t *p, size_t size)
{
	uint32_t a = 1, b = 0;
	for (size_t i = 0; i < size; i++) {
		a = (a + p[i]) % 65521;
		b = (b + a) % 65521;
	}
	return b << 16 | a;
}

static const uint8_t nine[] = "123456789";

static void test_check_values(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
		uint64_t want = checks[i].check;
		for (lade_cpu cpu = LADE_CPU_PLAIN; cpu <= lade_cpu_detect(); cpu++)
			assert_int_equal(lade__checksum(checks[i].kind, cpu, nine, 9), want);
		assert_int_equal(lade_checksum_of(checks[i].kind, nine, 9), want);
	}
	/* The published values of the hashes of nothing; Fletcher-32 of two words, by hand. */
	assert_int_equal(lade_checksum_of(LADE_XXH64, NULL, 0), 0xEF46DB3751D8E999);
	assert_int_equal(lade_checksum_of(LADE_XXH3, NULL, 0), 0x2D06800538D394C2);
	assert_int_equal(lade_checksum_of(LADE_ADLER32, NULL, 0), 1);
	assert_int_equal(lade_checksum_of(LADE_FLETCHER32, NULL, 0), 0);
	assert_int_equal(lade_checksum_of(LADE_FLETCHER32, "\x12\x34\x56\x78", 4), 0x7AE068AC);
	assert_int_equal(lade_checksum_of(LADE_CHECKSUM_NONE, nine, 9), 0);
	assert_int_equal(lade_checksum_of((lade_checksum)99, nine, 9), 0);
}

static void test_names(void **state)
{
	(void)state;
	for (int k = LADE_CRC32; k <= LADE_FLETCHER32; k++) {
		const char *name = lade_checksum_name((lade_checksum)k);
		assert_int_equal(lade_checksum_find(name), k);
		assert_int_equal(lade_checksum_size((lade_checksum)k),
		                 k == LADE_XXH64 || k == LADE_XXH3 ? 8 : 4);
	}
	assert_int_equal(lade_checksum_find("CRC32C"), LADE_CRC32C);
	assert_int_equal(lade_checksum_find("crc"), LADE_CHECKSUM_NONE);
	assert_int_equal(lade_checksum_find(""), LADE_CHECKSUM_NONE);
	assert_int_equal(lade_checksum_find(NULL), LADE_CHECKSUM_NONE);
	assert_string_equal(lade_checksum_name(LADE_CHECKSUM_NONE), "?");
	assert_string_equal(lade_checksum_name((lade_checksum)17), "?");
	assert_string_equal(lade_checksum_name((lade_checksum)-1), "?");
	assert_int_equal(lade_checksum_size(LADE_CHECKSUM_NONE), 0);
	assert_int_equal(lade_checksum_size((lade_checksum)17), 0);
}

static void test_spec_of(void **state)
{
	(void)state;
	lade_crc32_spec spec;
	lade_error err;
	for (int k = LADE_CRC32; k <= LADE_CRC32_CDROM; k++) {
		assert_int_equal(lade_crc32_spec_of((lade_checksum)k, &spec, &err), LADE_OK);
		assert_int_equal(crc_bitwise(&spec, nine, 9), checks[k - 1].check);
	}
	assert_int_equal(lade_crc32_spec_of(LADE_ADLER32, &spec, &err), LADE_E_ARG);
	assert_int_equal(lade_crc32_spec_of(LADE_CHECKSUM_NONE, &spec, NULL), LADE_E_ARG);
	assert_int_equal(lade_crc32_spec_of(LADE_CRC32, NULL, NULL), LADE_E_ARG);
}

static void check_crc(lade_checksum kind, lade_cpu cpu, const uint8_t *p, size_t size)
{
	lade_crc32_spec spec;
	assert_int_equal(lade_crc32_spec_of(kind, &spec, NULL), LADE_OK);
	uint32_t want = crc_bitwise(&spec, p, size);
	if (lade__checksum(kind, cpu, p, size) != want || lade__crc32(kind, cpu, p, size) != want ||
	    lade__crc32_any(&spec, cpu, p, size) != want)
		fail_msg("%s, %s, %zu bytes", lade_checksum_name(kind), lade_cpu_name(cpu), size);
}

static void check_all(lade_cpu cpu, const uint8_t *p, size_t size)
{
	for (int k = LADE_CRC32; k <= LADE_CRC32_CDROM; k++)
		check_crc((lade_checksum)k, cpu, p, size);
	if (lade__checksum(LADE_FLETCHER32, cpu, p, size) != fletcher_reference(p, size))
		fail_msg("fletcher32, %s, %zu bytes", lade_cpu_name(cpu), size);
	assert_int_equal(lade__checksum(LADE_ADLER32, cpu, p, size), adler_reference(p, size));
	assert_int_equal(lade__checksum(LADE_XXH3, cpu, p, size), XXH3_64bits(p, size));
}

static void fill(uint8_t *p, size_t size, rng *r)
{
	for (size_t i = 0; i < size; i++)
		p[i] = (uint8_t)rng_next(r);
}

/* Every length from 0 on, ending at a guard page and beginning at one: no byte outside is read. */
static void test_every_length(void **state)
{
	(void)state;
	rng r = {20260731};
	enum { LONGEST = 600 };
	guard end = guard_new(LONGEST, 1);
	guard begin = guard_new(LONGEST, 0);
	fill(end.data, LONGEST, &r);
	fill(begin.data, LONGEST, &r);
	for (lade_cpu cpu = LADE_CPU_PLAIN; cpu <= lade_cpu_detect(); cpu++) {
		for (size_t size = 0; size <= LONGEST; size++) {
			check_all(cpu, end.data + LONGEST - size, size);
			check_all(cpu, begin.data, size);
		}
	}
	guard_free(&end);
	guard_free(&begin);
}

/* Two blocks of XXH3 and more. */
static void test_blocks_of_xxh3(void **state)
{
	(void)state;
	rng r = {20261124};
	enum { LONGEST = 2200 };
	guard end = guard_new(LONGEST, 1);
	fill(end.data, LONGEST, &r);
	for (lade_cpu cpu = LADE_CPU_PLAIN; cpu <= lade_cpu_detect(); cpu++)
		for (size_t size = 0; size <= LONGEST; size++) {
			const uint8_t *p = end.data + LONGEST - size;
			assert_int_equal(lade__checksum(LADE_XXH3, cpu, p, size),
			                 XXH3_64bits(p, size));
		}
	guard_free(&end);
}

static void test_alignments_and_long(void **state)
{
	(void)state;
	rng r = {77};
	enum { SIZE = 70000 };
	uint8_t *p = malloc(SIZE);
	fill(p, SIZE, &r);
	static const size_t sizes[] = {63,   64,   65,    255,   256,   257,  511,
	                               1023, 2049, 23039, 23040, 23041, 65536};
	for (lade_cpu cpu = LADE_CPU_PLAIN; cpu <= lade_cpu_detect(); cpu++) {
		for (size_t shift = 0; shift < 17; shift++)
			for (size_t i = 0; i < 9; i++)
				check_all(cpu, p + shift, sizes[i]);
		for (size_t i = 9; i < sizeof sizes / sizeof sizes[0]; i++)
			check_all(cpu, p + i, sizes[i]);
	}
	free(p);
}

/* The sums that end-around carries make: 0xFFFF stays, and only zeros give 0. */
static void test_fletcher_extremes(void **state)
{
	(void)state;
	enum { SIZE = 200001 };
	uint8_t *p = malloc(SIZE);
	for (int value = 0; value < 2; value++) {
		memset(p, value ? 0xFF : 0, SIZE);
		for (lade_cpu cpu = LADE_CPU_PLAIN; cpu <= lade_cpu_detect(); cpu++)
			for (size_t size = 0; size <= SIZE; size += size < 2000 ? 1 : 19801)
				assert_int_equal(lade__fletcher32(cpu, p, size),
				                 fletcher_reference(p, size));
	}
	memset(p, 0, SIZE);
	p[777] = 1;
	for (lade_cpu cpu = LADE_CPU_PLAIN; cpu <= lade_cpu_detect(); cpu++)
		assert_int_equal(lade__fletcher32(cpu, p, SIZE), fletcher_reference(p, SIZE));
	free(p);
}

/* Random models, with every mix of reflections: polynomials that no preset has. */
static void test_any_model(void **state)
{
	(void)state;
	rng r = {0xC0FFEE};
	enum { SIZE = 10000 };
	uint8_t *p = malloc(SIZE);
	fill(p, SIZE, &r);
	for (int i = 0; i < 200; i++) {
		uint64_t flags = rng_next(&r);
		lade_crc32_spec spec = {
			.poly = (uint32_t)rng_next(&r),
			.init = (uint32_t)rng_next(&r),
			.reflect_in = flags & 1,
			.reflect_out = flags >> 1 & 1,
			.xor_out = (uint32_t)rng_next(&r),
		};
		if (flags >> 2 & 1)
			spec.poly = 0x04C11DB7;
		size_t size = i % 10 ? (size_t)rng_below(&r, 700) : 8192 + (size_t)i;
		uint32_t want = crc_bitwise(&spec, p, size);
		for (lade_cpu cpu = LADE_CPU_PLAIN; cpu <= lade_cpu_detect(); cpu++)
			assert_int_equal(lade__crc32_any(&spec, cpu, p, size), want);
		assert_int_equal(lade_crc32_any(&spec, p, size), want);
	}
	free(p);
}

static void test_stage_records(void **state)
{
	(void)state;
	size_t count = 0;
	for (; lade__checksums.algorithms[count]; count++) {
		const lade_algorithm *a = lade__checksums.algorithms[count];
		lade_checksum kind = lade_checksum_find(a->name);
		bool numbered = strcmp(a->name, "lookup3") != 0;
		assert_int_equal(a->id, numbered ? 64 + kind : 16);
		assert_int_equal(a->kind, LADE_STAGE_CHECKSUM);
		lade_stage stage = {.algorithm = a};
		size_t extra = numbered ? lade_checksum_size(kind) : 4;
		assert_int_equal(a->bound(&stage, 0), extra);
		assert_int_equal(a->bound(&stage, 1000), 1000 + extra);
		assert_true(a->bound(&stage, SIZE_MAX - extra - 1) == SIZE_MAX - 1);
		assert_true(a->bound(&stage, SIZE_MAX - extra) == SIZE_MAX);
		assert_true(a->bound(&stage, SIZE_MAX) == SIZE_MAX);
		uint64_t decoded;
		lade_error err;
		assert_int_equal(a->decoded_size(&stage, NULL, extra, &decoded, &err), LADE_OK);
		assert_int_equal(decoded, 0);
		assert_int_equal(a->decoded_size(&stage, NULL, extra + 9, &decoded, &err), LADE_OK);
		assert_int_equal(decoded, 9);
		assert_int_equal(a->decoded_size(&stage, NULL, extra - 1, &decoded, &err),
		                 LADE_E_TRUNCATED);
		for (int d = 0; d < 2; d++) {
			const lade_implementation *im =
				lade__checksums.implementations[2 * count + (size_t)d];
			assert_string_equal(im->algorithm, a->name);
			assert_int_equal(im->direction, d);
			lade_run run = {.stage = &stage, .cpu = lade_cpu_detect()};
			uint64_t sum = 0;
			lade_cspan src = lade_host_cspan(nine, 9);
			assert_int_equal(im->checksum->run(&run, src, &sum, NULL), LADE_OK);
			assert_int_equal(sum, numbered ? lade_checksum_of(kind, nine, 9)
			                               : lade_lookup3(nine, 9, 0));
		}
	}
	assert_int_equal(count, 17);
	assert_null(lade__checksums.implementations[34]);
	for (size_t i = 0; i < 32; i++) {
		const lade__gpu_implementation *im = lade__checksums.gpu[i];
		assert_string_equal(im->record.algorithm,
		                    lade__checksums.implementations[i]->algorithm);
		assert_int_equal(im->record.direction, i % 2);
		assert_non_null(im->codec);
	}
	assert_null(lade__checksums.gpu[32]);
}

/* The values that lookup3.c itself prints. */
static void test_lookup3(void **state)
{
	(void)state;
	static const char text[] = "Four score and seven years ago";
	assert_int_equal(lade_lookup3(text, 30, 0), 0x17770551);
	assert_int_equal(lade_lookup3(text, 30, 1), 0xCD628161);
	assert_int_equal(lade_lookup3(NULL, 0, 0), 0xDEADBEEF);
	assert_int_equal(lade_lookup3("", 0, 0xDEADBEEF), 0xBD5B7DDE);
	/* Every count of last bytes, next to a guard page: zeros behind them change nothing but the
	 * size, which 'init' makes up for. */
	for (uint32_t size = 1; size <= 12; size++) {
		guard g = guard_copy(text, size, 1);
		uint8_t filled[12] = {0};
		memcpy(filled, text, size);
		assert_int_equal(lade_lookup3(g.data, size, 12 - size),
		                 lade_lookup3(filled, 12, 0));
		guard_free(&g);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_check_values),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_spec_of),
		cmocka_unit_test(test_every_length),
		cmocka_unit_test(test_blocks_of_xxh3),
		cmocka_unit_test(test_alignments_and_long),
		cmocka_unit_test(test_fletcher_extremes),
		cmocka_unit_test(test_any_model),
		cmocka_unit_test(test_stage_records),
		cmocka_unit_test(test_lookup3),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
