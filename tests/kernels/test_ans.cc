/*
 * test_ans.cc: the ANS kernels on the emulated warp: what the host encodes they decode, what they
 * encode the host decodes; all element types, sizes and alignments, chunks in parts; and damaged
 * chunks, of which both say the same.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/lade.h> /* before the kernels' LADE_DEVICE, which is no kind of memory */

#include "kernel_test.h"
#include "guard.h"

#include "codec/ans/kernels/ans_decode.cu"
#include "codec/ans/kernels/ans_encode.cu"

#include <vector>

typedef std::vector<uint8_t> bytes;

/* ---- the host's side -------------------------------------------------------------------- */

static lade_engine *engine;

static int setup(void **state)
{
	(void)state;
	lade_engine_options options = {};
	options.struct_size = sizeof options;
	options.threads = 1;
	return lade_engine_new(&options, &engine, nullptr) == LADE_OK ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	lade_engine_free(engine);
	return 0;
}

/* Encodes or decodes by the host; the status. */
static lade_status host_run(const char *text, bool encode, const bytes &in, bytes *out)
{
	lade_error err = {};
	lade_spec *spec = nullptr;
	lade_segment segment = {};
	lade_item item = {};
	lade_result result = {};
	segment.data = in.data();
	segment.size = in.size();
	item.src = &segment;
	item.src_count = 1;
	item.dst = lade_host_span(out->data(), out->size());
	if (lade_spec_parse(nullptr, text, &spec, &err) != LADE_OK)
		fail_msg("%s: %s", text, err.message);
	if (encode)
		lade_encode_into(engine, spec, &item, 1, &result, nullptr, &err);
	else
		lade_decode_into(engine, spec, &item, 1, &result, nullptr, &err);
	lade_spec_unref(spec);
	if (result.status == LADE_OK)
		out->resize(result.size);
	return result.status;
}

static bytes host_encode(const char *text, const bytes &data)
{
	bytes out(data.size() + 16);
	assert_int_equal(host_run(text, true, data, &out), LADE_OK);
	return out;
}

/* As fill() of test_codec_ans.c: position p is constant, noise or skewed, by two bits of
 * 'kinds'. */
static bytes make(size_t size, size_t width, unsigned kinds, rng *r)
{
	bytes data(size);
	for (size_t i = 0; i < size; i++) {
		unsigned kind = kinds >> 2 * (i % width) & 3;
		uint64_t v = rng_next(r);
		unsigned steps = (unsigned)__builtin_ctzll(v | 1ull << 40);
		data[i] = kind == 0   ? 0x5A
			  : kind == 1 ? (uint8_t)(v >> 48)
			  : kind == 2 ? (uint8_t)(steps * 3)
				      : (uint8_t)((v >> 20 & 1) * steps + steps);
	}
	return data;
}

/* bfloat16 around 1, of which as many are negative as not: they are crossed. */
static bytes make_floats(size_t size, rng *r)
{
	bytes data(size);
	for (size_t i = 0; i + 1 < size; i += 2) {
		uint64_t v = rng_next(r);
		unsigned bits = (127 - (unsigned)__builtin_ctzll(v | 1ull << 40)) << 7;
		bits |= (unsigned)(v >> 57) | (unsigned)(v >> 48 & 1) << 15;
		data[i] = (uint8_t)bits;
		data[i + 1] = (uint8_t)(bits >> 8);
	}
	return data;
}

/* ---- launches --------------------------------------------------------------------------- */

/* Buffers of a batch, each against a guard page, at odd addresses if 'odd'. */
struct buffers {
	std::vector<guard> g;
	std::vector<uint8_t *> at;
	std::vector<uint64_t> size;
};

static void add(buffers *b, size_t size, bool odd, rng *r)
{
	size_t skew = odd ? rng_below(r, 16) : 0;
	/* The end is at the page; odd sizes make odd addresses. */
	bool at_end = odd && rng_below(r, 2);
	guard g = guard_new(size + skew, at_end);
	if (size + skew)
		memset(g.data, 0xC3, size + skew);
	b->g.push_back(g);
	b->at.push_back(g.data + skew);
	b->size.push_back(size);
}

static void drop(buffers *b)
{
	for (auto &g : b->g)
		guard_free(&g);
}

struct shape {
	uint32_t room, parts;
	bool odd, wide;
};

/* Dynamic shared memory: what the library gives, and the least. */
static const uint32_t usual = LADE_ANS_DECODE_SHARED, least = LADE_ANS_DECODE_LEAST;

static void decode(const std::vector<bytes> &in, const std::vector<size_t> &caps, const shape &s,
                   uint64_t seed, rng *r, std::vector<bytes> *out, std::vector<uint32_t> *status)
{
	size_t n = in.size();
	buffers src, dst;
	std::vector<uint64_t> got(n, 77);
	std::vector<lade_ans_parts> done(n);
	status->assign(n, 77);
	for (size_t i = 0; i < n; i++) {
		add(&src, in[i].size(), s.odd, r);
		add(&dst, caps[i], s.odd, r);
		if (in[i].size())
			memcpy(src.at[i], in[i].data(), in[i].size());
	}
	lade_gpu_batch batch = {src.at.data(), src.size.data(), dst.at.data(), dst.size.data(),
	                        got.data(), status->data(), nullptr, nullptr, (uint32_t)n};
	emu_config config = {.kernel = "ans_decode"};
	config.grid = (uint32_t)n * s.parts;
	config.block = s.wide ? 512 : 256;
	config.shared = s.room;
	config.resident = 2;
	config.seed = seed;
	emu_result ran = emu_launch(config, [&] {
		if (s.wide)
			lade_ans_decode_wide(batch, done.data(), s.parts, s.room);
		else
			lade_ans_decode(batch, done.data(), s.parts, s.room);
	});
	if (!ran.ok)
		print_error("seed %llu: %s\n", (unsigned long long)seed, ran.message);
	assert_true(ran.ok);
	out->clear();
	for (size_t i = 0; i < n; i++) {
		assert_true(got[i] <= caps[i] && ((*status)[i] == 0 || got[i] == 0));
		out->push_back(bytes(dst.at[i], dst.at[i] + got[i]));
	}
	drop(&src);
	drop(&dst);
}

static void expect(const char *text, const std::vector<bytes> &plain, const shape &s,
                   uint64_t seed, rng *r)
{
	std::vector<bytes> packed, out;
	std::vector<size_t> caps;
	std::vector<uint32_t> status;
	for (auto &p : plain) {
		packed.push_back(host_encode(text, p));
		caps.push_back(p.size() + rng_below(r, 2) * 50);
	}
	decode(packed, caps, s, seed, r, &out, &status);
	for (size_t i = 0; i < plain.size(); i++)
		if (status[i] || out[i] != plain[i])
			fail_msg("%s: chunk %zu of %zu bytes, seed %llu: status %u", text, i,
			         plain[i].size(), (unsigned long long)seed, status[i]);
}

/* Encodes by the kernel, with 'caps' for the results. */
static void encode(uint32_t width, uint32_t block_log, uint32_t bits, bool signs,
                   const std::vector<bytes> &in, const std::vector<size_t> &caps, uint32_t grid,
                   bool odd, uint64_t seed, rng *r, std::vector<bytes> *out,
                   std::vector<uint32_t> *status)
{
	size_t n = in.size();
	buffers src, dst;
	std::vector<uint64_t> got(n, 77);
	uint32_t next = 0;
	status->assign(n, 77);
	for (size_t i = 0; i < n; i++) {
		add(&src, in[i].size(), odd, r);
		add(&dst, caps[i], odd, r);
		if (in[i].size())
			memcpy(src.at[i], in[i].data(), in[i].size());
	}
	lade_gpu_batch batch = {src.at.data(), src.size.data(), dst.at.data(), dst.size.data(),
	                        got.data(), status->data(), nullptr, grid ? &next : nullptr,
	                        (uint32_t)n};
	emu_config config = {.kernel = "ans_encode"};
	config.grid = grid ? grid : (uint32_t)n;
	/* Four warps or eight, which staging small chunks, and parts of large ones. */
	bool small = width > 1 && block_log == 12 && seed / 2 % 2 == 0;
	uint32_t staging = (small ? 16384 : 32768) << seed % 2,
		 shared = width > 1 ? LADE_ANS_WIDE_SHARED(staging, width) : 77824;
	config.block = small ? 128 : width > 1 || block_log > 13 ? 256 : 128u << seed % 3;
	config.shared = shared;
	config.resident = 2;
	config.seed = seed;
	emu_result ran = emu_launch(config, [&] {
		auto kernel = width == 1   ? lade_ans_encode_1
		              : width == 4 ? small ? lade_ans_encode_small_4 : lade_ans_encode_4
		              : small      ? lade_ans_encode_small_8
		                           : lade_ans_encode_8;
		if (width == 2)
			(small ? lade_ans_encode_small_2
			       : lade_ans_encode_2)(batch, block_log, bits, shared, staging, signs);
		else
			kernel(batch, block_log, bits, shared, staging);
	});
	if (!ran.ok)
		print_error("seed %llu: %s\n", (unsigned long long)seed, ran.message);
	assert_true(ran.ok);
	out->clear();
	for (size_t i = 0; i < n; i++) {
		assert_true(got[i] <= caps[i] && ((*status)[i] == 0 || got[i] == 0));
		out->push_back(bytes(dst.at[i], dst.at[i] + got[i]));
	}
	drop(&src);
	drop(&dst);
}

/* What the kernel makes is about as small as what the host does, and decodes there. */
static void expect_encoded(const char *text, uint32_t width, uint32_t block_log, uint32_t bits,
                           const std::vector<bytes> &plain, uint32_t grid, bool odd, uint64_t seed,
                           rng *r, unsigned share = 50)
{
	std::vector<bytes> out;
	std::vector<size_t> caps;
	std::vector<uint32_t> status;
	for (auto &p : plain)
		caps.push_back(p.size() + 16 + rng_below(r, 2) * 100);
	bool signs = strstr(text, "bfloat16") != nullptr;
	encode(width, block_log, bits, signs, plain, caps, grid, odd, seed, r, &out, &status);
	for (size_t i = 0; i < plain.size(); i++) {
		bytes back(plain[i].size());
		bytes by_host = host_encode(text, plain[i]);
		size_t host = by_host.size();
		if (status[i] || host_run(text, false, out[i], &back) != LADE_OK ||
		    back != plain[i])
			fail_msg("%s: chunk %zu of %zu bytes, seed %llu: status %u", text, i,
			         plain[i].size(), (unsigned long long)seed, status[i]);
		if (out[i].size() > 16 && host > 16 && out[i][1] == by_host[1])
			assert_int_equal(out[i][3], by_host[3]); /* log2 of sub-blocks */
		if (out[i].size() > host + host / share + 64)
			fail_msg("%s: chunk %zu of %zu bytes: %zu, by the host %zu", text, i,
			         plain[i].size(), out[i].size(), host);
	}
}

/* ---- tests ------------------------------------------------------------------------------ */

static const struct {
	const char *text;
	uint32_t width, block_log, bits;
} specs[] = {
	{"ans", 1, 0, 0},
	{"ans(bits=11,block=16384)", 1, 14, 11},
	{"ans(<f2)", 2, 12, 0},
	{"ans(<i4,bits=9)", 4, 12, 9},
	{"ans(<f8,block=8192)", 8, 13, 0},
	{"ans(bfloat16)", 2, 12, 0},
};

static void all_sizes(void **state)
{
	(void)state;
	static const size_t sizes[] = {0, 1, 31, 127, 128, 1000, 4096, 4100, 5003, 12000};
	rng r = {20261121};
	for (uint64_t i = 0; i < sizeof specs / sizeof *specs; i++) {
		std::vector<bytes> plain;
		for (size_t size : sizes)
			plain.push_back(make(size, specs[i].width, (unsigned)rng_next(&r), &r));
		plain.push_back(make(9000, specs[i].width, 0xAAAA, &r));
		plain.push_back(make(9000, specs[i].width, 0x4444, &r));
		plain.push_back(make_floats(9003, &r));
		plain.push_back(make_floats(60, &r));
		plain.push_back(make(3000, specs[i].width, 0, &r));
		/* Constant, but for the tail. */
		plain.push_back(make(3001, specs[i].width, 0, &r));
		plain.back().back() = 1;
		expect(specs[i].text, plain, {usual, 1, (i & 1) != 0, i == 2}, i, &r);
		expect_encoded(specs[i].text, specs[i].width, specs[i].block_log, specs[i].bits,
		               plain, 3 * (uint32_t)(i & 1), (i & 1) != 0, i, &r);
	}
}

/* Chunks of many rows, with symbols that occur once or twice, and with a plane that is noise. */
static void large(void **state)
{
	(void)state;
	rng r = {11};
	for (uint64_t seed = 0; seed < 2; seed++) {
		std::vector<bytes> plain = {make(66001, 1, 2, &r), make(90000, 2, 0x6, &r)};
		for (bytes &b : plain)
			for (unsigned s = 60; s < 100; s++)
				b[rng_below(&r, b.size())] = (uint8_t)s;
		expect_encoded("ans", 1, 0, 0, {plain[0]}, 0, seed != 0, seed, &r);
		expect_encoded("ans(<f2)", 2, 12, 0, {plain[1]}, 0, seed != 0, seed, &r);
		expect_encoded("ans(bfloat16)", 2, 12, 0, {make_floats(90000, &r), plain[1]}, 0,
		               seed != 0, seed, &r);
	}
	/* Parts of chunks, by blocks of 4 and 8 warps that staging 16 to 64 KiB. */
	for (uint64_t seed = 0; seed < 8; seed++) {
		bool odd = seed >= 4;
		bytes four = make(150003, 4, 0x96, &r), eight = make(140008, 8, 0x9999, &r);
		expect_encoded("ans(<i4)", 4, 12, 0, {four, four}, 1, odd, seed, &r);
		expect_encoded("ans(<i8)", 8, 12, 0, {eight, four}, 1, odd, seed, &r);
		expect_encoded("ans(bfloat16)", 2, 12, 0, {make_floats(140000, &r)}, 0, odd, seed,
		               &r);
	}
}

/* Zeros, save three elements; their number is no multiple of what counts are taken in, so that the
 * zeros' count is rounded up above the sum of all. */
static void nearly_constant(void **state)
{
	(void)state;
	rng r = {23};
	for (size_t width = 2; width <= 4; width *= 2) {
		bytes data(300004 * width);
		for (unsigned i = 1; i < 4; i++)
			memset(&data[50000 * i * width], (int)i, width);
		expect_encoded(width == 2 ? "ans(<f2)" : "ans(<i4)", (uint32_t)width, 12, 0, {data},
		               0, false, 0, &r);
	}
}

/* Zeros, but for lane 5 of the first sub-block, of which 'rare' symbols are ones: no length of a
 * lane passes 8 bits, whatever it takes beside the others. */
static void long_lanes(void **state)
{
	(void)state;
	rng r = {29};
	for (unsigned rare = 364; rare <= 376; rare += 2) {
		bytes data(1 << 20);
		for (unsigned k = 0; k < rare; k++)
			data[128 * (k / 4) + 4 * ((5 + k / 4) % 32) + k % 4] = 1;
		expect_encoded("ans(bits=11,block=16384)", 1, 14, 11, {data}, 0, false, 0, &r, 1);
	}
}

/* Records, and rows, of which a part is noise: where is looked for noise must not fall in step. */
static void periods(void **state)
{
	(void)state;
	static const struct {
		size_t size, period, noise;
		uint64_t seed;
	} cases[] = {{131072, 32, 16, 0},   {131072, 32, 16, 1}, {131072, 64, 32, 2},
	             {131072, 32, 16, 3},   {100000, 32, 16, 0}, {32768, 8192, 4096, 1},
	             {65536, 8192, 4096, 3}};
	rng r = {31};
	for (auto &c : cases)
		for (uint32_t width = 2; width <= 8; width *= 2) {
			bytes data(c.size);
			for (size_t i = 0; i < c.size; i++)
				data[i] = i % c.period < c.noise ? (uint8_t)rng_next(&r)
				          : i % 8 == 0           ? (uint8_t)rng_below(&r, 7)
				                                 : 0;
			const char *text = width == 2   ? "ans(<i2)"
			                   : width == 4 ? "ans(<i4)"
			                                : "ans(<i8)";
			expect_encoded(text, width, 12, 0, {data}, 0, false, c.seed, &r);
		}
}

/* One byte position of eight saves so little that the chunk is larger when it is coded, which is
 * known behind its first parts: it is stored over them. */
static void hardly_worth(void **state)
{
	(void)state;
	rng r = {29};
	unsigned raw = 0;
	for (uint64_t seed = 0; seed < 12; seed++) {
		bytes data = make(160000, 8, 0x5555, &r);
		for (size_t i = 7; i < data.size(); i += 8)
			data[i] = rng_below(&r, 100) < 10 + 5 * seed ? data[i] & 7 : data[i];
		std::vector<bytes> out;
		std::vector<uint32_t> status;
		encode(8, 12, 0, false, {data}, {data.size() + 16}, 0, false, seed, &r, &out,
		       &status);
		bytes back(data.size());
		if (status[0] || host_run("ans(<i8)", false, out[0], &back) != LADE_OK ||
		    back != data)
			fail_msg("seed %llu: status %u", (unsigned long long)seed, status[0]);
		raw += out[0][1] == ANS_RAW;
	}
	print_message("%u of 12 are raw\n", raw);
	assert_true(raw > 0 && raw < 12);
}

/*
 * Stretches of noise and of what is not, so that some lanes take more bits than their bytes had,
 * and planes that are noise in some of the places that are looked at first.
 */
static void mixed(void **state)
{
	(void)state;
	rng r = {17};
	for (uint64_t seed = 0; seed < 12; seed++) {
		uint64_t spec = seed % 4;
		size_t size = 30000 + rng_below(&r, 40000), width = specs[spec].width;
		bytes data = make(size, width, (unsigned)rng_next(&r), &r);
		for (size_t at = 0; at < size; at += 1 + rng_below(&r, 6000)) {
			size_t n = rng_below(&r, 1 + rng_below(&r, 5000));
			bytes some = make(n, width, seed & 1 ? 0x5555 : (unsigned)rng_next(&r), &r);
			for (size_t i = 0; i < n && at + i < size; i++)
				data[at + i] = some[i];
			at += n;
		}
		expect_encoded(specs[spec].text, (uint32_t)width, specs[spec].block_log,
		               specs[spec].bits, {data}, 0, seed % 3 == 0, seed, &r, 25);
	}
}

/* The largest tables and sub-blocks, which leave room for one warp, or two. */
static void tight(void **state)
{
	(void)state;
	rng r = {5};
	expect("ans(<i2,bits=11,block=16384)", {make(33000, 2, 0xFFFF, &r)},
	       {least, 1, false, false}, 1, &r);
	expect("ans(bits=11,block=16384)", {make(33000, 1, 1, &r)}, {least, 1, true, true}, 3, &r);
	expect("ans(<i8,bits=9,block=16384)", {make(20000, 8, 0xAAAA, &r)},
	       {least, 1, true, false}, 2, &r);
}

static void parts(void **state)
{
	(void)state;
	rng r = {7};
	for (uint64_t seed = 0; seed < 3; seed++)
		expect("ans", {make(20001, 1, 2, &r), make(9000, 1, 1, &r), make(5000, 1, 0, &r),
		               make(1, 1, 1, &r)},
		       {seed == 1 ? least : usual, 3, seed != 0, seed != 1}, seed, &r);
}

/* What is too small, cut, or flipped: the same verdict as the host's, and the same bytes. */
static void damaged(void **state)
{
	(void)state;
	rng r = {20261122};
	unsigned fine = 0, all = 0;
	for (uint64_t i = 0; i < 24; i++) {
		const char *text = specs[i % 6].text;
		size_t size = 4096 + rng_below(&r, 3000);
		bytes data = i % 6 == 5 ? make_floats(size, &r)
		                        : make(size, specs[i % 6].width, 0x2E6B, &r);
		bytes good = host_encode(text, data);
		std::vector<bytes> bad, out;
		std::vector<size_t> caps;
		std::vector<uint32_t> status;
		for (int k = 0; k < 8; k++) {
			bytes b = good;
			size_t span = k % 2 ? b.size() : b.size() < 100 ? b.size() : 100;
			for (size_t f = rng_below(&r, 3) + 1; f-- > 0;)
				b[rng_below(&r, span)] ^= (uint8_t)(1u << rng_below(&r, 8));
			if (k == 5)
				b.resize(rng_below(&r, b.size()));
			if (k == 6)
				b.resize(b.size() + 16);
			bad.push_back(b);
			caps.push_back(data.size() - (k == 7));
		}
		decode(bad, caps,
		       {i % 4 ? usual : least, 1 + (uint32_t)(i % 2), i % 3 == 0, i % 5 == 0}, i,
		       &r, &out, &status);
		for (size_t k = 0; k < bad.size(); k++, all++) {
			bytes want(caps[k]);
			lade_status host = host_run(text, false, bad[k], &want);
			if ((uint32_t)host != status[k])
				fail_msg("%s, try %llu, chunk %zu: the host says %u, the kernel %u",
				         text, (unsigned long long)i, k, (unsigned)host, status[k]);
			if (host == LADE_OK)
				assert_true(out[k] == want);
			fine += host == LADE_OK;
		}
	}
	print_message("%u of %u are still chunks\n", fine, all);
}

/* Destinations of all sizes: a chunk that fits and decodes, or none. */
static void small_room(void **state)
{
	(void)state;
	rng r = {13};
	for (uint64_t seed = 0; seed < 4; seed++) {
		std::vector<bytes> plain, out;
		std::vector<size_t> caps;
		std::vector<uint32_t> status;
		for (int k = 0; k < 6; k++) {
			plain.push_back(make(6000, 2, (unsigned)rng_next(&r), &r));
			caps.push_back(k == 0 ? 6016 : k == 1 ? 15 : rng_below(&r, 6016));
		}
		encode(2, 12, 0, false, plain, caps, 0, seed & 1, seed, &r, &out, &status);
		for (size_t i = 0; i < plain.size(); i++) {
			bytes back(6000);
			size_t host = host_encode("ans(<f2)", plain[i]).size();
			assert_true(status[i] == 0 || status[i] == LADE_GPU_NOSPACE);
			if (status[i] == 0)
				assert_true(host_run("ans(<f2)", false, out[i], &back) == LADE_OK &&
				            back == plain[i]);
			else
				assert_true(caps[i] < host + host / 50 + 64);
		}
	}
}

/* Both cross elements whose signs vary; floats of which all bytes but the last are noise. */
static void signs(void **state)
{
	(void)state;
	rng r = {19};
	std::vector<bytes> plain = {make_floats(40000, &r), make_floats(40000, &r)}, out;
	std::vector<uint32_t> status;
	for (size_t i = 0; i < plain[1].size(); i += 2)
		plain[1][i + 1] &= 0x7F;
	encode(2, 12, 0, true, plain, {40016, 40016}, 0, false, 3, &r, &out, &status);
	for (size_t i = 0; i < 2; i++) {
		uint8_t form = i ? 1 : 1 | ANS_CROSSED;
		assert_int_equal(out[i][ANS_AT_FORM], form);
		assert_int_equal(host_encode("ans(bfloat16)", plain[i])[ANS_AT_FORM], form);
	}
	for (uint64_t seed = 0; seed < 4; seed++) {
		shape s = {usual, 1, seed == 3, seed == 2};
		expect("ans(bfloat16)", plain, s, seed, &r);
		expect("ans(bfloat16,bits=11)", plain, s, seed, &r);
		expect("ans(<f4)", {make(40000, 4, 0x95, &r)}, s, seed, &r);
	}
}

static void sizes(void **state)
{
	(void)state;
	rng r = {11};
	bytes a = host_encode("ans", make(5000, 1, 2, &r)),
	      b = host_encode("ans", make(77, 1, 1, &r));
	bytes c = {2, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, d(15, 1);
	const uint8_t *src[] = {a.data(), b.data(), c.data(), d.data()};
	uint64_t size[] = {a.size(), b.size(), c.size(), d.size()}, got[4];
	uint32_t status[4];
	lade_gpu_batch batch = {src, size, nullptr, nullptr, got, status, nullptr, nullptr, 4};
	emu_config config = {.kernel = "ans_size", .grid = 1, .block = 128};
	assert_true(emu_launch(config, [&] { lade_ans_size(batch); }).ok);
	assert_int_equal(got[0], 5000);
	assert_int_equal(got[1], 77);
	assert_int_equal(status[2], LADE_GPU_CORRUPT);
	assert_int_equal(status[3], LADE_GPU_TRUNCATED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_sizes),    cmocka_unit_test(large),
		cmocka_unit_test(mixed),        cmocka_unit_test(tight),
		cmocka_unit_test(parts),        cmocka_unit_test(damaged),
		cmocka_unit_test(signs),        cmocka_unit_test(small_room),
		cmocka_unit_test(sizes),        cmocka_unit_test(nearly_constant),
		cmocka_unit_test(hardly_worth), cmocka_unit_test(periods),
		cmocka_unit_test(long_lanes),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
