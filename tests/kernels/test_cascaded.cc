/*
 * test_cascaded.cc: the kernels of the cascaded codec on the emulated warp: what the host encodes
 * is decoded, what they encode is what the host does, damaged chunks get the plain decoder's
 * verdict and bytes; any length and alignment, buffers at guard pages or between guard zones.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "place.h"
#include "cascaded_host.h"
#include "cascaded_kit.h"

#include "codec/cascaded/kernels/cascaded_decode.cu"
#include "codec/cascaded/kernels/cascaded_encode.cu"

#include <vector>

typedef std::vector<uint8_t> bytes;

/* The last two are of 4 and 8 bytes, too. */
static const char *const types[] = {"|u1", "<i2", "<u4", "<i8", "<f4", "<f8"};

/* A batch in memory that the emulated device may touch. */
struct batch_kit {
	size_t n;
	std::vector<place> from, to;
	std::vector<const uint8_t *> src;
	std::vector<uint8_t *> dst;
	std::vector<uint64_t> sizes, caps, got;
	std::vector<uint32_t> status;
	uint32_t next;
	lade_gpu_batch batch;
};

static void kit_open(batch_kit *k, const std::vector<bytes> &in, const std::vector<size_t> &caps,
                     bool counted, rng *r)
{
	size_t n = k->n = in.size();
	k->caps.assign(caps.begin(), caps.end());
	k->got.assign(n, 77);
	k->status.assign(n, 77);
	k->next = 0;
	for (size_t i = 0; i < n; i++) {
		k->from.push_back(place_new(in[i].size(), rng_below(r, 2) * rng_below(r, 16),
		                            (int)rng_below(r, 2)));
		k->to.push_back(place_new(caps[i], rng_below(r, 2) * rng_below(r, 16),
		                          (int)rng_below(r, 2)));
		if (in[i].size())
			memcpy(k->from[i].data, in[i].data(), in[i].size());
		k->src.push_back(k->from[i].data);
		k->dst.push_back(k->to[i].data);
		k->sizes.push_back(in[i].size());
	}
	k->batch = {k->src.data(),    k->sizes.data(), k->dst.data(),
	            k->caps.data(),   k->got.data(),   k->status.data(),
	            nullptr,          counted ? &k->next : nullptr,
	            (uint32_t)n};
}

static void kit_close(batch_kit *k)
{
	for (size_t i = 0; i < k->n; i++) {
		place_free(&k->from[i]);
		place_free(&k->to[i]);
	}
}

template <typename F>
static void launch(const char *name, uint32_t grid, uint32_t threads, uint64_t seed, F body)
{
	emu_config config = {.kernel = name, .grid = grid, .block = threads};
	if (!strcmp(name, "cascaded_decode"))
		config.shared = LADE_CAS_WARPS * LADE_CAS_DECODE_SHARED;
	if (!strcmp(name, "cascaded_encode"))
		config.shared = LADE_CAS_ENCODE_SHARED(threads / 32);
	config.seed = seed;
	config.resident = 2;
	emu_result done = emu_launch(config, body);
	if (!done.ok)
		print_error("seed %llu: %s\n", (unsigned long long)seed, done.message);
	assert_true(done.ok);
}

/* Decodes by 'parts' warps' blocks a chunk, and wants what the plain decoder gives. */
static void decode(const std::vector<bytes> &in, const std::vector<size_t> &caps, uint32_t parts,
                   uint64_t seed, rng *r, unsigned *good)
{
	batch_kit k;
	kit_open(&k, in, caps, false, r);
	std::vector<uint32_t> joined(k.n, 0);
	uint32_t team_log = parts > 1 ? 3 : (uint32_t)seed % 4, teams = 8 >> team_log;
	launch("cascaded_decode", ((uint32_t)k.n * parts + teams - 1) / teams, 256, seed,
	       [&] { lade_cascaded_decode(k.batch, parts, joined.data(), team_log); });
	for (size_t i = 0; i < k.n; i++) {
		bytes want(caps[i] + 1);
		size_t made;
		lade_status verdict =
			kit_decode(in[i].data(), in[i].size(), want.data(), caps[i], &made);
		if (k.status[i] != (uint32_t)verdict || k.got[i] != made ||
		    (made && memcmp(k.dst[i], want.data(), made)))
			fail_msg(
				"chunk %zu of %zu bytes, %u parts: status %u, want %u; %llu bytes, "
				"want %zu",
				i, in[i].size(), parts, k.status[i], (unsigned)verdict,
				(unsigned long long)k.got[i], made);
		*good += verdict == LADE_OK;
	}
	kit_close(&k);
}

static bytes encode_by_host(const char *type, const char *options, const bytes &data)
{
	char text[100];
	snprintf(text, sizeof text, "cascaded(%s%s)", type, options);
	/* As many bytes as raw blocks, headers and the directory take, at most. */
	bytes out(data.size() + data.size() / 512 + 64);
	out.resize(cascaded_host_encode(text, data.data(), data.size(), out.data(), out.size()));
	return out;
}

/* 'kind' below KIT_KINDS, or stretches of all. */
static bytes data_of(size_t size, unsigned log2, int kind, rng *r)
{
	bytes data(size);
	if (kind < KIT_KINDS)
		kit_fill(data.data(), size, (size_t)1 << log2, kind, r);
	else
		kit_fill_mixed(data.data(), size, (size_t)1 << log2, r);
	return data;
}

static void whole(void **state)
{
	(void)state;
	static const size_t sizes[] = {0, 1, 9, 100, 511, 4096, 8191, 8192, 9000, 20011};
	rng r = {0xca5cade4};
	unsigned good = 0, all = 0;
	for (unsigned t = 0; t < 4; t++)
		for (int kind = 0; kind <= KIT_KINDS; kind++) {
			std::vector<bytes> in;
			std::vector<size_t> caps;
			for (unsigned s = 0; s < 3; s++) {
				size_t size = sizes[(t + 3 * (unsigned)kind + s) % 10];
				in.push_back(encode_by_host(types[t], s & 1 ? ",block=4096" : "",
				                            data_of(size, t, kind, &r)));
				caps.push_back(size + (s & 1 ? 10 : 0));
			}
			decode(in, caps, 1 + (kind % 3), (uint64_t)kind + t, &r, &good);
			all += 3;
		}
	assert_int_equal(good, all);
}

/* Whole widths, all layers forced, both halves of a block that is not staged at once. */
static void forms(void **state)
{
	(void)state;
	static const char *const options[] = {",level=0",
	                                      ",level=1",
	                                      ",rles=2,deltas=1",
	                                      ",rles=1,bitpack=false",
	                                      ",rles=2,deltas=1,bitpack=false"};
	rng r = {0xca5cade5};
	unsigned good = 0, all = 0;
	for (unsigned o = 0; o < 5; o++)
		for (unsigned t = 0; t < 4; t++) {
			std::vector<bytes> in;
			/* Elements of all widths below a whole one, the widest first. */
			bytes wide(8192 + 16 * t);
			for (size_t i = 0; i < wide.size() >> t; i++) {
				uint64_t v = rng_next(&r) >> (65 - (8u << t));
				memcpy(&wide[i << t], &v, (size_t)1 << t);
			}
			in.push_back(encode_by_host(types[t], options[o], wide));
			in.push_back(encode_by_host(types[t], options[o],
			                            data_of(9001, t, KIT_KEYS, &r)));
			decode(in, {wide.size(), 9001}, 1, o + t, &r, &good);
			all += 2;
		}
	assert_int_equal(good, all);
}

/* The options of 'options' as the kernel has them; 't' is the type's place in 'types'. */
static const struct {
	const char *options;
	uint32_t block, bitpack, tried, bitcomp; /* 2: of reals only */
} encodings[] = {
	{"", 13, 1, 0x104CF, 1},
	{",mode=fast,block=4096", 12, 1, 0x1040F, 2},
	{",level=1", 13, 1, 0x10405, 0},
	{",encodings=2", 13, 1, 0x10003, 0},
	{",rles=2,deltas=1", 13, 1, 0x81, 0},
	{",bitpack=false,block=4096", 12, 0, 0x104CF, 0},
	{",block=4096", 12, 1, 0x104CF, 1},
};
enum { FORMS = sizeof encodings / sizeof *encodings };

/* What the host encodes to, byte by byte; with less room by 1 to 16 bytes, nothing. */
static void encode(unsigned t, unsigned form, const std::vector<bytes> &data, bool counted,
                   uint64_t seed, rng *r)
{
	uint32_t real = t > 3, bitcomp = encodings[form].bitcomp;
	lade_cas_choice choice = {t - 2 * real,
	                          encodings[form].block,
	                          !real && t & 1,
	                          encodings[form].bitpack,
	                          encodings[form].tried,
	                          bitcomp == 1 || (bitcomp == 2 && real),
	                          real};
	std::vector<bytes> want;
	std::vector<size_t> caps;
	for (size_t i = 0; i < data.size(); i++) {
		want.push_back(encode_by_host(types[t], encodings[form].options, data[i]));
		size_t size = want[i].size();
		caps.push_back(i % 4 == 3 ? size - 1 - rng_below(r, 16) : size + rng_below(r, 20));
	}
	batch_kit k;
	kit_open(&k, data, caps, counted, r);
	launch("cascaded_encode", counted ? 2 : (uint32_t)k.n, 32u << seed % 4, seed,
	       [&] { lade_cascaded_encode(k.batch, choice); });
	for (size_t i = 0; i < k.n; i++) {
		bool fits = caps[i] >= want[i].size();
		if (k.status[i] != (fits ? LADE_GPU_OK : LADE_GPU_NOSPACE) ||
		    k.got[i] != (fits ? want[i].size() : 0) ||
		    (fits && memcmp(k.dst[i], want[i].data(), want[i].size())))
			fail_msg("%s%s, chunk %zu of %zu bytes: status %u, %llu bytes, want %zu",
			         types[t], encodings[form].options, i, data[i].size(), k.status[i],
			         (unsigned long long)k.got[i], want[i].size());
	}
	kit_close(&k);
}

static void like_the_host(void **state)
{
	(void)state;
	static const size_t sizes[] = {0, 1, 9, 100, 511, 4096, 8191, 8192, 9000, 20011};
	uint64_t seed = (uint64_t)getpid() * 2654435761u + 8;
	printf("seed %llu\n", (unsigned long long)seed);
	rng r = {seed};
	for (unsigned t = 0; t < 4; t++)
		for (int kind = 0; kind <= KIT_KINDS; kind++) {
			std::vector<bytes> data;
			for (unsigned s = 0; s < 4; s++)
				data.push_back(data_of(sizes[rng_below(&r, 10)], t, kind, &r));
			encode(t, (unsigned)rng_below(&r, FORMS), data, kind & 1,
			       (uint64_t)kind + t, &r);
		}
	/* Reals that are decimals. */
	for (unsigned t = 4; t < 6; t++) {
		bytes prices(9000);
		unsigned log = t - 2;
		for (size_t i = 0; i < prices.size() >> log; i++) {
			double d = (double)(int)rng_below(&r, 90000) / 100;
			float f = (float)d;
			memcpy(&prices[i << log], t == 4 ? (void *)&f : (void *)&d, 1u << log);
		}
		for (unsigned form = 0; form < 3; form++)
			encode(t, form, {prices, data_of(5000, log, KIT_KINDS, &r)}, form & 1, t,
			       &r);
	}
	for (unsigned form = 0; form < FORMS; form++)
		for (unsigned t = 0; t < 4; t++)
			encode(t, form,
			       {data_of(16400, t, KIT_KINDS, &r), data_of(700, t, KIT_KEYS, &r)},
			       false, form, &r);
}

static void damaged(void **state)
{
	(void)state;
	uint64_t seed = (uint64_t)getpid() * 2654435761u + 7;
	printf("seed %llu\n", (unsigned long long)seed);
	rng r = {seed};
	unsigned good = 0, all = 0;
	for (unsigned round = 0; round < 12; round++) {
		unsigned t = round % 4;
		std::vector<bytes> in;
		std::vector<size_t> caps;
		size_t size = 1 + rng_below(&r, 10000);
		bytes packed = encode_by_host(types[t], round & 1 ? ",block=4096" : "",
		                              data_of(size, t, KIT_KINDS, &r));
		for (unsigned i = 0; i < 12; i++) {
			bytes hurt = packed;
			if (i == 0)
				hurt.resize(rng_below(&r, hurt.size()));
			else if (i == 1)
				hurt.resize(hurt.size() + 16);
			for (uint64_t n = rng_below(&r, 3); n && hurt.size() > 0; n--) {
				size_t at = rng_below(&r, 2)
				                    ? rng_below(&r, hurt.size())
				                    : rng_below(&r, hurt.size()) / 16 * 16 +
				                              rng_below(&r, 8);
				if (at < hurt.size())
					hurt[at] ^= (uint8_t)(1 << rng_below(&r, 8));
			}
			in.push_back(hurt);
			caps.push_back(i == 2 ? size - 1 : size);
		}
		decode(in, caps, 1 + round % 2, round, &r, &good);
		all += 12;
	}
	assert_true(good > 20 && good < all - 20);
}

/* Differences with inner runs that are rotated, which no encoder writes: small ones become
 * large. */
static void turned(void **state)
{
	(void)state;
	uint8_t data[200];
	FILE *f = fopen(LADE_TESTS_DIR "/golden/cascaded/i8-turned", "rb");
	assert_non_null(f);
	bytes in(data, data + fread(data, 1, sizeof data, f));
	fclose(f);
	rng r = {2};
	unsigned good = 0;
	for (uint32_t parts = 1; parts < 4; parts++)
		decode({in, in}, {6647, 7000}, parts, parts, &r, &good);
	assert_int_equal(good, 6);
}

/* Items that are not to be done, sizes that do not fit; and what lade_cascaded_size() says. */
static void verdicts(void **state)
{
	(void)state;
	rng r = {1};
	bytes data = data_of(500, 2, KIT_NARROW, &r), in = encode_by_host("<u4", "", data);
	bytes out(600);
	for (uint64_t seed = 0; seed < 4; seed++) {
		const uint8_t *src[5] = {in.data(), in.data(), in.data(), nullptr, in.data()};
		uint64_t sizes[5] = {in.size(), in.size(), in.size(), 8, 1ull << 40};
		uint64_t caps[5] = {500, 499, 600, 8, 8}, got[5];
		uint8_t *dst[5] = {out.data(), out.data(), out.data(), out.data(), out.data()};
		/* One that has a status already is not looked at, whatever the status is. */
		bool limit = seed & 1;
		dst[0] = limit ? nullptr : dst[0];
		uint32_t status[5] = {limit ? LADE_GPU_LIMIT : LADE_GPU_CORRUPT}, joined[5] = {};
		lade_gpu_batch batch = {src, sizes, dst, caps, got, status, status, nullptr, 5};
		launch("cascaded_decode", 10, 256, seed,
		       [&] { lade_cascaded_decode(batch, 2, joined, 3); });
		const uint32_t want[5] = {limit ? LADE_GPU_LIMIT : LADE_GPU_CORRUPT,
		                          LADE_GPU_NOSPACE, LADE_GPU_OK, LADE_GPU_ARG,
		                          LADE_GPU_LIMIT};
		for (int i = 0; i < 5; i++) {
			assert_int_equal(status[i], want[i]);
			assert_int_equal(got[i], i == 2 ? 500 : 0);
		}
		assert_memory_equal(out.data(), data.data(), 500);
		memset(status, 0, sizeof status);
		sizes[0] = 15;
		batch.before = nullptr;
		launch("cascaded_size", 1, 32, seed, [&] { lade_cascaded_size(batch); });
		static const uint32_t told[5] = {LADE_GPU_TRUNCATED, LADE_GPU_OK, LADE_GPU_OK,
		                                 LADE_GPU_ARG, LADE_GPU_LIMIT};
		for (int i = 0; i < 5; i++) {
			assert_int_equal(status[i], told[i]);
			assert_int_equal(got[i], told[i] == LADE_GPU_OK ? 500 : 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole),
		cmocka_unit_test(forms),
		cmocka_unit_test(like_the_host),
		cmocka_unit_test(damaged),
		cmocka_unit_test(turned),
		cmocka_unit_test(verdicts),
	};
	return cmocka_run_group_tests(tests, nullptr, cascaded_host_close);
}
