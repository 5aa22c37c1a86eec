/*
 * test_codec_cascaded.c: the cascaded codec on the host: every type, cascade, instruction set and
 * kind of data, against a decoder written from the format's page; ranges, parts, damage.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec_test.h"
#include "cascaded_kit.h"

#include "base/support.h"
#include "codec/cascaded/cascaded.h"

static const char *const types[] = {"|u1", "|i1", "<u2", "<i2", "<f4", "<i4", "<u8", "<i8"};
static const size_t elems[] = {1, 1, 2, 2, 4, 4, 8, 8};
static const lade_cpu levels[] = {LADE_CPU_PLAIN, LADE_CPU_SSE42, LADE_CPU_AVX2, LADE_CPU_AVX512};
#define LEVELS (sizeof levels / sizeof *levels)

static codec open_as(const char *type, const char *options)
{
	char text[100];
	snprintf(text, sizeof text, "cascaded(%s%s)", type, options);
	return codec_open(text);
}

/* Wants the plain decoder's verdict and bytes of 'in', at each level, between guard pages. */
static lade_status decode_like_plain(codec *c, const uint8_t *in, size_t size, size_t cap)
{
	guard src = guard_copy(in, size, 1);
	uint8_t *want = malloc(cap + 1);
	size_t made;
	lade_status verdict = kit_decode(in, size, want, cap, &made);
	for (size_t l = 0; l < LEVELS && levels[l] <= lade_cpu_detect(); l++) {
		guard dst = guard_new(cap, (int)(l & 1) ^ (size % 32 == 0));
		lade_error err = {0};
		size_t got;
		c->dec.cpu = levels[l];
		assert_status(codec_decode(c, src.data, size, dst.data, cap, &got, &err), verdict,
		              err);
		assert_int_equal(got, made);
		if (made)
			assert_memory_equal(dst.data, want, made);
		bool placed = err.offset == LADE_NO_OFFSET || err.offset <= size;
		assert_true(verdict == LADE_OK || (err.message[0] && placed));
		guard_free(&dst);
	}
	free(want);
	guard_free(&src);
	return verdict;
}

/* Encodes at each level, to the same bytes; gives them, in 'bound' bytes. */
static uint8_t *encode_all(codec *c, const uint8_t *data, size_t size, size_t *packed_size)
{
	size_t bound = codec_bound(c, size);
	uint8_t *packed = malloc(bound);
	guard src = guard_copy(data, size, 1);
	for (size_t l = 0; l < LEVELS && levels[l] <= lade_cpu_detect(); l++) {
		guard dst = guard_new(bound, 1);
		lade_error err = {0};
		size_t got;
		c->enc.cpu = levels[l];
		assert_status(codec_encode(c, src.data, size, dst.data, bound, &got, &err), LADE_OK,
		              err);
		assert_true(got <= bound && got % 16 == 0);
		if (l == 0)
			memcpy(packed, dst.data, *packed_size = got);
		assert_int_equal(got, *packed_size);
		assert_memory_equal(dst.data, packed, got);
		guard_free(&dst);
	}
	guard_free(&src);
	return packed;
}

static void round_trip(codec *c, const uint8_t *data, size_t size)
{
	size_t packed_size;
	uint64_t told;
	lade_error err = {0};
	uint8_t *packed = encode_all(c, data, size, &packed_size), *back = malloc(size + 1);
	assert_status(decode_like_plain(c, packed, packed_size, size), LADE_OK, err);
	size_t made;
	kit_decode(packed, packed_size, back, size, &made);
	assert_int_equal(made, size);
	assert_true(!size || !memcmp(back, data, size));
	assert_status(c->stage.algorithm->decoded_size(&c->stage, packed, packed_size, &told, &err),
	              LADE_OK, err);
	assert_int_equal(told, size);
	if (size > 0)
		assert_status(decode_like_plain(c, packed, packed_size, size - 1), LADE_E_NOSPACE,
		              err);
	guard less = guard_new(packed_size - 1, 1);
	assert_status(codec_encode(c, data, size, less.data, packed_size - 1, &made, &err),
	              LADE_E_NOSPACE, err);
	guard_free(&less);
	free(packed);
	free(back);
}

/* Which cascades the blocks of an encoded chunk have: bit 'layers', the highest for raw ones, and
 * one for those of bitcomp. */
#define RAW (1u << 31)
#define OF_BITCOMP (1u << 30)
static unsigned cascades_of(const uint8_t *p)
{
	unsigned seen = 0;
	lade_cascaded_chunk c;
	assert_true(lade_cascaded_chunk_read(lade__le32(p), lade__le32(p + 4), &c));
	uint32_t begin = c.first;
	for (uint32_t i = 0; i < c.blocks; i++) {
		uint32_t end = lade__le32(p + 16 + 4 * i);
		bool raw = end - begin == lade_cascaded_units(lade_cascaded_block_bytes(&c, i));
		unsigned first = p[16 * (size_t)begin];
		seen |= raw                             ? RAW
		        : first & LADE_CASCADED_BITCOMP ? OF_BITCOMP
		                                        : 1u << first;
		begin = end;
	}
	return seen;
}

static void sizes_and_types(void **state)
{
	(void)state;
	static const size_t sizes[] = {0,    1,    2,    7,     8,     9,     15,   16,   17,
	                               31,   100,  511,  4095,  4096,  4097,  8191, 8192, 8193,
	                               8200, 8255, 9000, 16384, 20011, 65536, 70001};
	rng r = {0xca5cade1};
	uint8_t data[70001];
	for (size_t t = 0; t < 8; t++) {
		codec c = open_as(types[t], t & 1 ? ",block=4096" : "");
		for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
			kit_fill(data, sizes[s], elems[t], (int)((s + t) % KIT_KINDS), &r);
			round_trip(&c, data, sizes[s]);
		}
		codec_close(&c);
	}
}

/* Every kind of data, by every set of options; all cascades are met. */
static void kinds_and_options(void **state)
{
	(void)state;
	static const char *const options[] = {"",
	                                      ",mode=fast",
	                                      ",level=0",
	                                      ",level=1",
	                                      ",encodings=1",
	                                      ",encodings=2",
	                                      ",rles=2,deltas=1",
	                                      ",rles=1,deltas=1",
	                                      ",rles=1",
	                                      ",deltas=1",
	                                      ",rles=7,deltas=3,bitpack=false",
	                                      ",bitpack=false",
	                                      ",block=4096"};
	enum { ALL = 0x104CF };
	static const unsigned allowed[] = {ALL, 0x1040F, 0x1,   0x10405, 0x10405, 0x10003, 0x81,
	                                   0x9, 0x3,     0x405, 0x81,    0xCF,    ALL};
	uint64_t seed = (uint64_t)getpid() * 2654435761u + 5;
	print_message("seed %llu\n", (unsigned long long)seed);
	rng r = {seed};
	uint8_t data[30000];
	unsigned seen = 0;
	for (size_t o = 0; o < sizeof options / sizeof *options; o++)
		for (size_t t = 0; t < 8; t++) {
			codec c = open_as(types[t], options[o]);
			for (int kind = 0; kind <= KIT_KINDS; kind++) {
				size_t size = 1 + rng_below(&r, sizeof data), packed_size;
				if (kind < KIT_KINDS)
					kit_fill(data, size, elems[t], kind, &r);
				else
					kit_fill_mixed(data, size, elems[t], &r);
				round_trip(&c, data, size);
				uint8_t *packed = encode_all(&c, data, size, &packed_size);
				unsigned now = cascades_of(packed);
				unsigned other = lade__cascaded_choice_of(&c.stage).bitcomp
				                         ? OF_BITCOMP
				                         : 0;
				assert_int_equal(now & ~(allowed[o] | other | RAW), 0);
				seen |= now;
				free(packed);
			}
			codec_close(&c);
		}
	assert_int_equal(seen, ALL | RAW | OF_BITCOMP);
}

/* Every width of every type, with every number of entries about the vectors' steps. */
static void widths(void **state)
{
	(void)state;
	rng r = {0xca5cade2};
	uint8_t data[8192];
	for (size_t t = 0; t < 8; t += 2) {
		codec c = open_as(types[t], ",level=0");
		for (unsigned width = 0; width <= 8 * elems[t]; width++)
			for (unsigned round = 0; round < 3; round++) {
				size_t n = 16 + rng_below(&r, 200);
				uint64_t base = rng_next(&r), v;
				for (size_t i = 0; i < n; i++) {
					v = i == 1 || width == 0 ? 0 : rng_next(&r) >> (64 - width);
					v += width < 8 * elems[t] ? base : 0;
					memcpy(data + i * elems[t], &v, elems[t]);
				}
				round_trip(&c, data, n * elems[t]);
			}
		codec_close(&c);
	}
}

static void ranges_and_parts(void **state)
{
	(void)state;
	rng r = {0xca5cade3};
	static uint8_t data[700003], back[700003];
	for (size_t t = 0; t < 8; t += 2) {
		codec c = open_as(types[t], "");
		size_t packed_size, count, told;
		lade_error err = {0};
		kit_fill_mixed(data, sizeof data, elems[t], &r);
		uint8_t *packed = encode_all(&c, data, sizeof data, &packed_size);
		guard in = guard_copy(packed, packed_size, 1);
		lade_cspan src = lade_host_cspan(in.data, packed_size);
		c.dec.stage = &c.stage;
		c.dec.cpu = lade_cpu_detect();
		for (int k = 0; k < 200; k++) {
			size_t off = rng_below(&r, sizeof data + 1), size;
			if (k % 10 == 0)
				off = sizeof data - rng_below(&r, 10);
			size = rng_below(&r, k % 3 ? 20000 : 100);
			size = size < sizeof data - off ? size : sizeof data - off;
			guard out = guard_new(size, k & 1);
			assert_status(c.decoder->run_range(&c.dec, src, off,
			                                   lade_host_span(out.data, size), &err),
			              LADE_OK, err);
			assert_true(!size || !memcmp(out.data, data + off, size));
			guard_free(&out);
		}
		lade_span beyond = lade_host_span(back, 10);
		assert_status(c.decoder->run_range(&c.dec, src, sizeof data - 9, beyond, &err),
		              LADE_E_RANGE, err);
		assert_status(c.decoder->parts(&c.dec, src, &count, &told, &err), LADE_OK, err);
		assert_int_equal(told, sizeof data);
		assert_true(count > 1);
		memset(back, 0, sizeof back);
		for (size_t part = count; part-- > 0;)
			assert_status(c.decoder->run_part(&c.dec, src, part,
			                                  lade_host_span(back, sizeof back), &err),
			              LADE_OK, err);
		assert_memory_equal(back, data, sizeof data);
		guard_free(&in);
		free(packed);
		codec_close(&c);
	}
}

/* Changes a byte, most often one of the headers or of the directory. */
static void damage(uint8_t *p, size_t size, rng *r)
{
	size_t first = 16 * (size_t)(1 + (size / 4096 + 3) / 4), at = rng_below(r, size);
	if (rng_below(r, 3) == 0)
		at = rng_below(r, first < size ? first : size);
	else if (rng_below(r, 2) && size > 16)
		at = 16 * rng_below(r, size / 16) + rng_below(r, 8);
	p[at] ^= (uint8_t)(rng_below(r, 2) ? 1u << rng_below(r, 8) : rng_next(r));
}

static void damaged(void **state)
{
	(void)state;
	uint64_t seed = (uint64_t)getpid() * 2654435761u + 6;
	print_message("seed %llu\n", (unsigned long long)seed);
	rng r = {seed};
	uint8_t data[20000];
	unsigned bad = 0, good = 0;
	for (int round = 0; round < 60; round++) {
		size_t t = rng_below(&r, 8), size = rng_below(&r, sizeof data), packed_size;
		codec c = open_as(types[t], round & 1 ? "" : ",block=4096");
		kit_fill_mixed(data, size, elems[t], &r);
		uint8_t *packed = encode_all(&c, data, size, &packed_size);
		uint8_t *hurt = malloc(packed_size + 16);
		for (int k = 0; k < 60; k++) {
			size_t now = packed_size;
			memcpy(hurt, packed, packed_size);
			memset(hurt + packed_size, 0, 16);
			if (k % 8 == 0)
				now = rng_below(&r, 4) ? rng_below(&r, packed_size) : now + 16;
			for (uint64_t n = 1 + rng_below(&r, 3); n && now && k % 8; n--)
				damage(hurt, now, &r);
			size_t cap = size + rng_below(&r, 2) * 8;
			bool ok = decode_like_plain(&c, hurt, now, cap) == LADE_OK;
			good += ok;
			bad += !ok;
		}
		free(hurt);
		free(packed);
		codec_close(&c);
	}
	assert_true(good > 100 && bad > 100);
}

/* The example of the format's page, section 4. */
static void example(void **state)
{
	(void)state;
	static const uint8_t bytes[96] = {
		0x01, 0x01, 0x0d, 0x00, 0x01, 0x02, 0x00, 0x00, 0xab, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x06, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x07, 0x05, 0x02, 0x03, 0x40, 0x00, 0x0f, 0x00, 0x01, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x63, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 0x87, 0x61, 0x18, 0x86, 0x61, 0x18, 0x00, 0x00, 0x00, 0x03, 0x0c, 0x30,
		0xc0, 0x00, 0x03, 0x0c, 0x30, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
	uint8_t data[513];
	for (unsigned i = 0; i < 256; i++) {
		unsigned key = 100 + 32 * (i / 32) + i / 4 % 8;
		data[2 * i] = (uint8_t)key;
		data[2 * i + 1] = (uint8_t)(key >> 8);
	}
	data[512] = 0xab;
	codec c = open_as("<u2", "");
	size_t packed_size;
	uint8_t *packed = encode_all(&c, data, sizeof data, &packed_size);
	assert_int_equal(packed_size, sizeof bytes);
	assert_memory_equal(packed, bytes, sizeof bytes);
	round_trip(&c, data, sizeof data);
	free(packed);
	codec_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_and_types), cmocka_unit_test(kinds_and_options),
		cmocka_unit_test(widths),          cmocka_unit_test(ranges_and_parts),
		cmocka_unit_test(damaged),         cmocka_unit_test(example),
	};
	return cmocka_run_group_tests(tests, codec_setup, codec_teardown);
}
