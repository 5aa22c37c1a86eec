/*
 * test_codec_ans.c: the ANS codec at every instruction set: the same bytes, ranges, all element
 * types, what the header says, and damaged chunks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/ans/ans.h"

#include "codec_test.h"

static const uint64_t seed = 0x1ade0a25;

/* Elements of 'width' bytes, whose position p is constant, noise, or skewed, by two bits of
 * 'kinds'. */
static void fill(uint8_t *data, size_t size, size_t width, unsigned kinds, rng *r)
{
	for (size_t i = 0; i < size; i++) {
		unsigned kind = kinds >> 2 * (i % width) & 3;
		uint64_t v = rng_next(r);
		unsigned steps = (unsigned)__builtin_ctzll(v | 1ULL << 40);
		data[i] = kind == 0   ? 0x5A
		          : kind == 1 ? (uint8_t)(v >> 48)
		          : kind == 2 ? (uint8_t)(steps * 3)
		                      : (uint8_t)((v >> 20 & 1) * steps + steps);
	}
}

static lade_status decode_at(codec *c, lade_cpu cpu, const guard *in, guard *out, size_t *got,
                             lade_error *err)
{
	c->dec.cpu = cpu;
	return codec_decode(c, in->data, in->size, out->data, out->size, got, err);
}

/* All levels make the same bytes, and give the data back from them, whole and in part. */
static void check_levels(const char *spec, const uint8_t *data, size_t size, rng *r)
{
	codec c = codec_open(spec);
	size_t bound = codec_bound(&c, size), packed_size = 0, got;
	uint8_t *packed = malloc(bound), *again = malloc(bound);
	lade_cpu most = lade_cpu_detect();
	lade_error err = {0};
	for (lade_cpu cpu = LADE_CPU_PLAIN; cpu <= most; cpu++) {
		guard in = guard_copy(data, size, cpu & 1);
		c.enc.cpu = cpu;
		assert_status(codec_encode(&c, in.data, size,
		                           cpu == LADE_CPU_PLAIN ? packed : again, bound, &got,
		                           &err),
		              LADE_OK, err);
		if (cpu == LADE_CPU_PLAIN)
			packed_size = got;
		assert_int_equal(got, packed_size);
		if (cpu != LADE_CPU_PLAIN)
			assert_memory_equal(packed, again, got);
		guard_free(&in);
	}
	guard in = guard_copy(packed, packed_size, 1);
	for (lade_cpu cpu = LADE_CPU_PLAIN; cpu <= most; cpu++) {
		guard out = guard_new(size, 1);
		assert_status(decode_at(&c, cpu, &in, &out, &got, &err), LADE_OK, err);
		assert_int_equal(got, size);
		if (size)
			assert_memory_equal(out.data, data, size);
		guard_free(&out);
		for (int k = 0; k < 4 && size; k++) {
			size_t off = rng_below(r, size), part = rng_below(r, size - off) + 1;
			out = guard_new(part, k & 1);
			c.dec.stage = &c.stage;
			assert_status(c.decoder->run_range(&c.dec,
			                                   lade_host_cspan(in.data, in.size), off,
			                                   lade_host_span(out.data, part), &err),
			              LADE_OK, err);
			assert_memory_equal(out.data, data + off, part);
			guard_free(&out);
		}
	}
	guard_free(&in);
	free(again);
	free(packed);
	codec_close(&c);
}

static void test_levels(void **state)
{
	(void)state;
	static const char *const specs[] = {
		"ans",
		"ans(float8_e4m3,block=16384)",
		"ans(<f2)",
		"ans(bfloat16,block=8192,bits=11)",
		"ans(<f4,bits=9)",
		"ans(<i4)",
		"ans(<i8)",
		"ans(<f8,block=16384)",
	};
	static const size_t sizes[] = {0,   1,    3,    4,    31,    32,    127,   128,
	                               129, 1000, 4096, 4100, 12321, 65536, 100007};
	rng r = {seed};
	printf("seed %llx\n", (unsigned long long)seed);
	uint8_t *data = malloc(1 << 17);
	for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
		codec c = codec_open(specs[i]);
		size_t width = lade_dtype_size((lade_dtype)c.stage.option[0].i);
		codec_close(&c);
		for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
			fill(data, sizes[k], width, (unsigned)rng_next(&r), &r);
			check_levels(specs[i], data, sizes[k], &r);
		}
		fill(data, 70000, width, 0xAAAA, &r); /* all positions coded */
		check_levels(specs[i], data, 70000, &r);
		fill(data, 70000, width, 0x4444, &r); /* constant and noise only */
		check_levels(specs[i], data, 70000, &r);
	}
	free(data);
}

/* One sub-block is noise among others that are not; one lane gets all the noise; or many some. */
static void test_mixed(void **state)
{
	(void)state;
	rng r = {seed + 1};
	enum { SIZE = 65536 };
	uint8_t *data = malloc(SIZE);
	fill(data, SIZE, 1, 2, &r);
	fill(data + 8192, 4096, 1, 1, &r);
	check_levels("ans", data, SIZE, &r);
	memset(data, 7, SIZE);
	for (size_t row = 0; row < SIZE / 128; row++)
		fill(data + row * 128 + 4 * ((5 + row) % 32), 4, 1, 1, &r);
	check_levels("ans", data, SIZE, &r);
	/* Noise in a quarter: lanes get theirs at different times, up to 20 halves apart. */
	memset(data, 0, SIZE);
	for (size_t at = 0; at < SIZE; at += 256)
		fill(data + at, 64, 1, 1, &r);
	check_levels("ans", data, SIZE, &r);
	free(data);
}

/* A lane of a large sub-block takes 256 halves more than others, and a few less: lengths have 8
 * bits. */
static void test_long_lanes(void **state)
{
	(void)state;
	static const char *const specs[] = {"ans(block=16384,bits=11)", "ans(block=16384)",
	                                    "ans(bits=9,block=16384)",
	                                    "ans(<i2,block=16384,bits=11)"};
	rng r = {seed + 9};
	enum { SIZE = 1 << 20 };
	uint8_t *data = malloc(SIZE);
	for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
		for (unsigned rare = 360; rare <= 512; rare += rare < 380 ? 2 : 44) {
			memset(data, 0, SIZE);
			for (unsigned k = 0; k < rare; k++)
				data[128 * (k / 4) + 4 * ((5 + k / 4) % 32) + k % 4] =
					(uint8_t)(i % 2 ? 1 + k % 255 : 1);
			check_levels(specs[i], data, SIZE, &r);
		}
	free(data);
}

static void test_kinds(void **state)
{
	(void)state;
	rng r = {seed + 2};
	enum { SIZE = 40000 };
	uint8_t *data = malloc(SIZE), *packed = malloc(SIZE + ANS_HEADER);
	codec c = codec_open("ans(<f4)");
	lade_error err = {0};
	size_t got;
	fill(data, SIZE, 4, 1 << 0 | 2 << 4, &r); /* noise, constant, skewed, constant */
	assert_status(codec_encode(&c, data, SIZE, packed, SIZE + ANS_HEADER, &got, &err), LADE_OK,
	              err);
	assert_int_equal(packed[ANS_AT_KIND], ANS_CODED);
	assert_int_equal(packed[ANS_AT_PLANES], ANS_PLANE_RAW);
	assert_int_equal(packed[ANS_AT_PLANES + 2], ANS_PLANE_CONSTANT);
	assert_int_equal(packed[ANS_AT_PLANES + 3], 0x5A);
	assert_int_equal(packed[ANS_AT_PLANES + 4], ANS_PLANE_CODED);
	assert_int_equal(packed[ANS_AT_PLANES + 6], ANS_PLANE_CONSTANT);
	assert_true(got < SIZE / 2);
	fill(data, SIZE, 4, 0x55, &r);
	assert_status(codec_encode(&c, data, SIZE, packed, SIZE + ANS_HEADER, &got, &err), LADE_OK,
	              err);
	assert_int_equal(packed[ANS_AT_KIND], ANS_RAW);
	assert_int_equal(got, SIZE + ANS_HEADER);
	for (size_t i = 0; i < SIZE; i++)
		data[i] = (uint8_t)(i % 4);
	assert_status(codec_encode(&c, data, SIZE, packed, SIZE + ANS_HEADER, &got, &err), LADE_OK,
	              err);
	assert_int_equal(packed[ANS_AT_KIND], ANS_CONSTANT);
	assert_int_equal(got, ANS_HEADER);
	check_levels("ans(<f4)", data, SIZE, &r);
	codec_close(&c);
	free(packed);
	free(data);
}

/* bfloat16 of both signs, noise around 1, is crossed; with signs that are alike, or as another one,
 * it is not. */
static void test_signs(void **state)
{
	(void)state;
	rng r = {seed + 8};
	enum { COUNT = 40001, SIZE = 2 * COUNT + 1 };
	static const struct {
		const char *spec;
		unsigned signs, form;
	} rows[] = {
		{"ans(bfloat16)", 2, 1 | ANS_CROSSED}, {"ans(bfloat16)", 1, 1},
		{"ans(bfloat16)", 40, 1},           {"ans(<u2)", 2, 1},
		{"ans(<f2)", 2, 1},                 {"ans(bfloat16,bits=9)", 3, 1 | ANS_CROSSED},
	};
	uint8_t *data = malloc(SIZE), *packed = malloc(SIZE + ANS_HEADER);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		size_t size[2];
		for (size_t k = 0; k < COUNT; k++) {
			uint64_t v = rng_next(&r), sign = rng_below(&r, rows[i].signs) == 1;
			unsigned steps = (unsigned)__builtin_ctzll(v | 1ULL << 40);
			lade__le_put(data + 2 * k, sign << 15 | (127 - steps) << 7 | v >> 57, 2);
		}
		data[SIZE - 1] = 0x80;
		codec c = codec_open(rows[i].spec);
		lade_error err = {0};
		for (unsigned k = 0; k < 2; k++) {
			assert_status(codec_encode(&c, data, k ? SIZE : 40, packed,
			                           SIZE + ANS_HEADER, &size[k], &err),
			              LADE_OK, err);
		}
		assert_int_equal(packed[ANS_AT_FORM], rows[i].form);
		/* The exponents take 2 bits, and beside the signs 2.5. */
		if (rows[i].form & ANS_CROSSED)
			assert_true(size[1] < SIZE * 85 / 128);
		codec_close(&c);
		check_levels(rows[i].spec, data, SIZE, &r);
		check_levels(rows[i].spec, data, 9, &r);
		check_levels(rows[i].spec, data, 4096 + 40, &r);
	}
	free(packed);
	free(data);
}

/* A large chunk in parts, each on its own; small, raw and damaged ones have none. */
static void test_parts(void **state)
{
	(void)state;
	rng r = {seed + 6};
	enum { SIZE = 700003 };
	uint8_t *data = malloc(SIZE), *packed = malloc(SIZE + ANS_HEADER), *out = malloc(SIZE);
	codec c = codec_open("ans(<i2)");
	lade_error err = {0};
	size_t size, count, told;
	fill(data, SIZE, 2, 6, &r);
	assert_status(codec_encode(&c, data, SIZE, packed, SIZE + ANS_HEADER, &size, &err), LADE_OK,
	              err);
	lade_cspan src = lade_host_cspan(packed, size);
	c.dec.stage = &c.stage;
	assert_status(c.decoder->parts(&c.dec, src, &count, &told, &err), LADE_OK, err);
	assert_int_equal(count, 3);
	assert_int_equal(told, SIZE);
	memset(out, 0, SIZE);
	for (size_t part = count; part-- > 0;)
		assert_status(
			c.decoder->run_part(&c.dec, src, part, lade_host_span(out, SIZE), &err),
			LADE_OK, err);
	assert_memory_equal(out, data, SIZE);
	packed[0] = 9;
	assert_int_equal(c.decoder->parts(&c.dec, src, &count, &told, &err), LADE_E_CORRUPT);
	assert_int_equal(count, 0);
	fill(data, SIZE, 2, 5, &r);
	assert_status(codec_encode(&c, data, SIZE, packed, SIZE + ANS_HEADER, &size, &err), LADE_OK,
	              err);
	assert_status(c.decoder->parts(&c.dec, lade_host_cspan(packed, size), &count, &told, &err),
	              LADE_OK, err);
	assert_int_equal(count, 0);
	codec_close(&c);
	free(out);
	free(packed);
	free(data);
}

/* One plane of single bytes that is not coded: the tail alone is no constant's, or it is raw. */
static void test_one_plane_not_coded(void **state)
{
	(void)state;
	rng r = {seed + 7};
	uint8_t data[67] = {0}, out[4096];
	uint8_t raw[32 + 4096] = {1, 2, 0, 12, 0, 16, 0, 0, 0, 9, ANS_PLANE_RAW};
	lade_error err = {0};
	size_t got;
	data[66] = 15;
	check_levels("ans", data, sizeof data, &r);
	raw[12] = 2; /* the sub-block begins at 32, */
	raw[16] = 2; /* and ends 4096 bytes later */
	raw[17] = 1;
	fill(raw + 32, 4096, 1, 1, &r);
	codec c = codec_open("ans");
	assert_status(codec_decode(&c, raw, sizeof raw, out, sizeof out, &got, &err), LADE_OK, err);
	assert_int_equal(got, 4096);
	assert_memory_equal(out, raw + 32, 4096);
	codec_close(&c);
}

/* Damaged chunks of several sub-blocks: all levels agree; nothing beside the room is touched. */
static void test_damaged(void **state)
{
	(void)state;
	static const char *const specs[] = {"ans", "ans(<f2)", "ans(bfloat16)", "ans(<i8)"};
	static const size_t widths[] = {1, 2, 2, 8};
	rng r = {seed + 3};
	enum { SIZE = 12000 };
	uint8_t data[SIZE], packed[SIZE + ANS_HEADER], bad[SIZE + ANS_HEADER], plain[SIZE];
	unsigned fine = 0;
	for (size_t i = 0; i < 4; i++) {
		codec c = codec_open(specs[i]);
		lade_error err = {0};
		size_t size, got;
		/* Positions are skewed and noise in turn; the signs of bfloat16 are noise. */
		fill(data, SIZE, widths[i], i == 2 ? 6 : 0x1B6E, &r);
		assert_status(codec_encode(&c, data, SIZE, packed, sizeof packed, &size, &err),
		              LADE_OK, err);
		for (int k = 0; k < 1500; k++) {
			lade_status want = LADE_OK;
			lade_error told = {0};
			memcpy(bad, packed, size);
			for (size_t f = 0; f < 1 + (size_t)k % 3; f++)
				bad[rng_below(&r, k % 4 ? size : 200)] ^=
					(uint8_t)(1U << rng_below(&r, 8));
			guard in = guard_copy(bad, size, k & 1);
			for (lade_cpu cpu = LADE_CPU_PLAIN; cpu <= lade_cpu_detect(); cpu++) {
				guard out = guard_new(SIZE, 1);
				memset(out.data, 0, SIZE);
				err = (lade_error){0};
				lade_status status = decode_at(&c, cpu, &in, &out, &got, &err);
				if (status != LADE_OK)
					assert_true(err.message[0] && got == 0);
				if (cpu == LADE_CPU_PLAIN) {
					want = status;
					told = err;
					memcpy(plain, out.data, SIZE);
				}
				assert_int_equal(status, want);
				assert_string_equal(err.message, told.message);
				if (status == LADE_OK)
					assert_memory_equal(out.data, plain, SIZE);
				guard_free(&out);
			}
			fine += want == LADE_OK;
			guard_free(&in);
		}
		codec_close(&c);
	}
	print_message("%u of 6000 are still chunks\n", fine);
}

/* Strings to words, and back without reading too far, where the words' room ends with them: rows
 * that all lanes have, and up to 255 halves a lane behind these. */
static void test_rows(void **state)
{
	(void)state;
	rng r = {seed + 10};
	size_t size = ANS_LANES * ANS_PITCH + 64;
	uint8_t *room = aligned_alloc(64, ANS_STRINGS_SIZE + 64), *words = malloc(size);
	uint8_t *aside = aligned_alloc(64, ANS_STRINGS_SIZE + 64), *strings = room + ANS_SLACK;
	for (int k = 0; k < 400; k++) {
		unsigned full = (unsigned)rng_below(&r, k % 2 ? 49 : 3), halves[ANS_LANES], sum = 0;
		uint32_t length[ANS_LANES];
		for (size_t i = 0; i < ANS_STRINGS_SIZE; i++)
			room[i] = (uint8_t)rng_next(&r);
		for (unsigned l = 0; l < ANS_LANES; l++) {
			/* Lane 0 has none of the words that not all have. */
			halves[l] =
				l ? (unsigned)rng_below(&r, k % 4 ? 1 + (unsigned)k % 20 : 256) : 0;
			halves[l] += 2 * full;
			length[l] = 16 * halves[l];
			sum += halves[l];
		}
		lade__ans_plain.scatter(strings, words, length, full);
		for (lade_cpu cpu = LADE_CPU_PLAIN; cpu <= lade_cpu_detect(); cpu++) {
			const lade__ans_kernels *kernels = lade__ans_kernels_of(cpu);
			guard to = guard_new(2 * sum, 1);
			kernels->scatter(strings, to.data, length, full);
			assert_memory_equal(to.data, words, 2 * sum);
			kernels->gather(aside + ANS_SLACK, to.data, halves, full);
			guard_free(&to);
		}
	}
	free(aside);
	free(words);
	free(room);
}

/* A sub-block of any strings, of which few are right, as words that not all lanes have: short ones
 * of a few units, ones that begin with too many zeros, or long ones.  Some lanes have a string
 * though they have no symbols, or none. */
static void any_strings(int k, lade__ans_lanes *lanes, unsigned halves[ANS_LANES], uint8_t *words,
                        rng *r)
{
	unsigned kind = (unsigned)k % 8, most = kind > 1 ? 3 : kind ? 4 : 2 * ANS_ROWS_MAX;
	lanes->units = kind > 1 ? 1 + (uint32_t)rng_below(r, 3)
	               : kind   ? 1
	                        : (uint32_t)rng_below(r, 4097);
	for (unsigned l = 0; l < ANS_LANES; l++) {
		bool has = lanes->units >= ANS_LANES || l < lanes->units;
		halves[l] = (kind == 1 ? 9 : 1) + (unsigned)rng_below(r, most);
		if (has == !rng_below(r, 512))
			halves[l] = 0;
		lanes->length[l] = 16 * halves[l];
	}
	for (unsigned h = 0; h < 2 * ANS_ROWS_MAX; h += 2) {
		for (unsigned l = 0; l < ANS_LANES; l++) {
			uint32_t word = (uint32_t)rng_next(r);
			unsigned size = halves[l] > h + 1 ? 4 : halves[l] > h ? 2 : 0;
			word = kind > 1 ? word >> rng_below(r, 20) : word | 0x80008000;
			if (kind == 1 && halves[l] <= h + 2)
				word = size == 4 ? word & 0xFFFF : 0;
			lade__le_put(words, word, size);
			words += size;
		}
	}
}

/* What the decoders of all levels say of them is the same.  Beside the strings' room nothing is
 * read. */
static void test_strings(void **state)
{
	(void)state;
	rng r = {seed + 11};
	static lade__ans_look_ups look_ups;
	static uint8_t plane[2][16384 + 64], words[ANS_LANES * ANS_PITCH];
	uint32_t table[1 << ANS_BITS_MAX], count[256];
	uint16_t freq[256];
	unsigned fine = 0;
	for (int k = 0; k < 12000; k++) {
		lade__ans_lanes lanes = {.bits = ANS_BITS_MIN + (unsigned)k % 3,
		                         .coded = 1,
		                         .table = {table},
		                         .look_ups = {&look_ups}};
		unsigned halves[ANS_LANES], damaged = 0;
		for (unsigned s = 0; s < 256; s++)
			count[s] = rng_below(&r, 8) ? 0 : (uint32_t)rng_below(&r, 1 << k % 12);
		count[7] = 1;
		lade__ans_normalise(count, lanes.bits, freq);
		lade__ans_decoder_of(freq, lanes.bits, table);
		lade__ans_look_ups_of(freq, lanes.bits, &look_ups);
		any_strings(k, &lanes, halves, words, &r);
		for (lade_cpu cpu = LADE_CPU_PLAIN; cpu <= lade_cpu_detect(); cpu++) {
			const lade__ans_kernels *kernels = lade__ans_kernels_of(cpu);
			guard room = guard_new(ANS_STRINGS_SIZE, k / 8 & 1);
			uint8_t *out = plane[cpu != LADE_CPU_PLAIN];
			lanes.strings = room.data + ANS_SLACK;
			lanes.plane[0] = out;
			memset(out + 4 * lanes.units, 0x5A, 64);
			kernels->gather(lanes.strings, words, halves, 0);
			unsigned bad = kernels->decode(&lanes, 1);
			for (size_t i = 0; i < 64; i++)
				assert_int_equal(out[4 * lanes.units + i], 0x5A);
			if (cpu == LADE_CPU_PLAIN)
				damaged = bad;
			assert_int_equal(bad, damaged);
			if (!bad)
				assert_memory_equal(out, plane[0], 4 * lanes.units);
			guard_free(&room);
		}
		fine += !damaged;
	}
	print_message("%u of 12000 are right\n", fine);
	assert_true(fine > 20);
}

/* Any frequencies that sum up come back from their description; the tables undo one another. */
static void test_tables(void **state)
{
	(void)state;
	rng r = {seed + 4};
	static lade__ans_encoder encoder;
	uint32_t table[1 << ANS_BITS_MAX], count[256];
	uint16_t freq[256], back[256];
	uint8_t text[ANS_TABLE_WORDS_MAX * 4];
	for (int k = 0; k < 300; k++) {
		unsigned bits = ANS_BITS_MIN + (unsigned)k % 3, sum = 0;
		uint64_t any = 0;
		for (unsigned s = 0; s < 256; s++) {
			count[s] = rng_below(&r, 4) ? 0 : (uint32_t)rng_below(&r, 1 << k % 24) + 1;
			if (k == 3)
				count[s] = s == 99;
			if (k == 5)
				count[s] = s ? 1 : ANS_SIZE_MAX - 255;
			any += count[s];
		}
		if (!any)
			continue;
		lade__ans_normalise(count, bits, freq);
		for (unsigned s = 0; s < 256; s++) {
			sum += freq[s];
			assert_int_equal(!freq[s], !count[s]);
		}
		assert_int_equal(sum, 1 << bits);
		unsigned words = lade__ans_describe(freq, text);
		assert_true(words <= ANS_TABLE_WORDS_MAX);
		assert_true(lade__ans_read(text, words, bits, back));
		assert_memory_equal(freq, back, sizeof freq);
		assert_false(lade__ans_read(text, words - 1, bits, back));
		assert_false(lade__ans_read(text, words, bits ^ 1, back));
		lade__ans_decoder_of(freq, bits, table);
		lade__ans_encoder_of(freq, bits, &encoder);
		for (uint32_t x = 0; x < 1U << bits; x++) {
			uint32_t s = table[x] >> 8 & 0xFF, size = table[x] & 0xFF,
				 low = table[x] >> 16;
			uint32_t next = low + (1U << bits);
			lade__ans_symbol e = encoder.symbol[s];
			for (uint32_t v = 0; v < 1U << size; v += (1U << size) / 2 + 1) {
				assert_int_equal((next + v + e.bits) >> 16, size);
				assert_int_equal((encoder.number[s] + ((next + v) << 16)) >> 28,
				                 size);
				assert_int_equal(encoder.number[s] & 0xFFFF, e.first);
				assert_int_equal(((next + v) >> size) + e.first, x + (1U << bits));
			}
			assert_true(low + (1U << size) <= 1U << bits);
		}
	}
}

static void expect_bad(codec *c, const uint8_t *bad, size_t size, lade_status want, uint64_t off,
                       const char *words)
{
	uint8_t out[8192];
	lade_error err = {0};
	size_t got;
	assert_status(codec_decode(c, bad, size, out, sizeof out, &got, &err), want, err);
	assert_true(strstr(err.message, words) != NULL);
	assert_true(err.offset == off);
}

static void test_messages(void **state)
{
	(void)state;
	rng r = {seed + 5};
	codec c = codec_open("ans");
	uint8_t data[8192], packed[8192 + ANS_HEADER], bad[8192 + ANS_HEADER];
	lade_error err = {0};
	size_t size;
	static const struct {
		size_t at;
		uint8_t value;
		const char *words;
	} rows[] = {
		{0, 2, "version 2, want 1"},
		{ANS_AT_KIND, 3, "kind is 3"},
		{ANS_AT_FORM, 4, "width"},
		{ANS_AT_FORM, ANS_CROSSED, "width"},
		{ANS_AT_BLOCK, 15, "2^15"},
		{ANS_AT_SIZE + 3, 0x81, "decoded size"},
		{ANS_AT_ROWS, 178, "words of a lane is 178"},
		{ANS_AT_BITS, 8, "2^8"},
		{ANS_AT_PLANES, 3, "mode is 3"},
		{ANS_AT_PLANES + 1, 65, "size in words is 65"},
		{12, 1, "sub-block 0 begins at"},
	};
	fill(data, sizeof data, 1, 2, &r);
	assert_status(codec_encode(&c, data, sizeof data, packed, sizeof packed, &size, &err),
	              LADE_OK, err);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		memcpy(bad, packed, size);
		bad[rows[i].at] = rows[i].value;
		size_t at = rows[i].at == ANS_AT_SIZE + 3 ? ANS_AT_SIZE : rows[i].at;
		expect_bad(&c, bad, size, LADE_E_CORRUPT, at, rows[i].words);
	}
	memcpy(bad, packed, size);
	bad[24] ^= 1; /* the table's bitmap */
	expect_bad(&c, bad, size, LADE_E_CORRUPT, 24, "is not one of 2^");
	expect_bad(&c, packed, 15, LADE_E_TRUNCATED, 15, "header needs 16 bytes, have 15");
	expect_bad(&c, packed, size - 16, LADE_E_TRUNCATED, size - 16, "the chunk needs");
	codec_close(&c);
	lade_spec *spec = NULL;
	assert_int_equal(lade_spec_parse(NULL, "ans(block=5000)", &spec, &err), LADE_E_ARG);
	assert_int_equal(lade_spec_parse(NULL, "ans(block=2048)", &spec, &err), LADE_E_ARG);
	assert_int_equal(lade_spec_parse(NULL, "ans(bits=5)", &spec, &err), LADE_E_ARG);
}

/* Sub-blocks whose size nobody gives are 8 KiB where chunks of bytes have 64 KiB and more. */
static void test_blocks(void **state)
{
	(void)state;
	static const struct {
		const char *spec;
		size_t size;
		unsigned log;
	} cases[] = {{"ans", 65535, 12},     {"ans", 65536, 13},
	             {"ans(i1)", 200000, 13}, {"ans(<i2)", 200000, 12},
	             {"ans(block=4096)", 65536, 12}, {"ans(block=0)", 65536, 13}};
	rng r = {seed};
	uint8_t *data = malloc(200000);
	fill(data, 200000, 2, 0xA, &r);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		codec c = codec_open(cases[i].spec);
		size_t bound = codec_bound(&c, cases[i].size), got;
		uint8_t *packed = malloc(bound);
		lade_error err = {0};
		assert_status(codec_encode(&c, data, cases[i].size, packed, bound, &got, &err),
		              LADE_OK, err);
		assert_int_equal(packed[ANS_AT_KIND], ANS_CODED);
		assert_int_equal(packed[ANS_AT_BLOCK], cases[i].log);
		free(packed);
		codec_close(&c);
	}
	free(data);
}

/* The page's example, byte by byte. */
static void test_example(void **state)
{
	(void)state;
	static const uint8_t page[] = {
		0x01, 0x02, 0x00, 0x0c, 0x02, 0x01, 0x00, 0x00, 0x01, 0x09, 0x02, 0x0a, 0x04, 0x00,
		0x00, 0x00, 0x0d, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x0e, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x68, 0x06, 0x5e, 0x98,
		0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x22, 0x22, 0x21, 0x21, 0x22, 0x12,
		0x22, 0x22, 0x22, 0x22, 0x21, 0x22, 0x12, 0x22, 0x22, 0x22, 0xe2, 0x8c, 0x07, 0x00,
		0x88, 0x3c, 0x01, 0x00, 0x44, 0x8c, 0x01, 0x00, 0xca, 0xd0, 0x0c, 0x00, 0xf8, 0x54,
		0x7e, 0xf7, 0x1b, 0x00, 0xf4, 0x4c, 0x82, 0x44, 0x77, 0x00, 0xca, 0x32, 0x02, 0x00,
		0x28, 0xd4, 0x02, 0x00, 0x4e, 0xa7, 0x03, 0x00, 0xf4, 0x4c, 0x00, 0x24, 0x29, 0x00,
		0x8a, 0x16, 0x01, 0x00, 0x98, 0x1e, 0x0f, 0x00, 0xae, 0x6d, 0x03, 0x00, 0xe4, 0x57,
		0x02, 0x00, 0xde, 0x3e, 0x06, 0x00, 0x8a, 0x16, 0x01, 0x00, 0x10, 0x86, 0x02, 0x00,
		0xd6, 0x75, 0x82, 0x79, 0x0f, 0x00, 0x74, 0x12, 0x0c, 0x00, 0x3a, 0x92, 0x08, 0x00,
		0x66, 0x3e, 0x03, 0x00, 0xd6, 0x75, 0x10, 0x86, 0x02, 0x00, 0x14, 0x89, 0x01, 0x00,
		0xa2, 0x3b, 0x0f, 0x00, 0x38, 0x37, 0x02, 0x00, 0xa6, 0x93, 0x03, 0x00, 0x58, 0x91,
		0x09, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x61, 0x61,
	};
	uint8_t data[258], out[sizeof page + 64];
	lade_error err = {0};
	size_t got;
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = i % 7 == 0 ? 'c' : i % 5 == 0 ? 'b' : 'a';
	codec c = codec_open("ans(bits=9)");
	assert_status(codec_encode(&c, data, sizeof data, out, sizeof out, &got, &err), LADE_OK,
	              err);
	assert_int_equal(got, sizeof page);
	assert_memory_equal(out, page, got);
	uint8_t back[sizeof data];
	assert_status(codec_decode(&c, page, sizeof page, back, sizeof back, &got, &err), LADE_OK,
	              err);
	assert_memory_equal(back, data, sizeof data);
	codec_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_mixed),
		cmocka_unit_test(test_long_lanes),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_signs),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_example),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_one_plane_not_coded),
	};
	return cmocka_run_group_tests(tests, codec_setup, codec_teardown);
}
