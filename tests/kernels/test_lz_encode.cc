/*
 * test_lz_encode.cc: the LZ4 and Snappy encoding kernels on the emulated warp: what they write is
 * decoded by the libraries and by the strict scalar decoder, every buffer at a guard page.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernel_test.h"
#include "guard.h"

#include "codec/lz4/kernels/lz4_encode.cu"
#include "codec/snappy/kernels/snappy_encode.cu"

#include <lz4.h>
#include <snappy-c.h>

#include "guarded_batch.h"

struct kernel {
	const char *name;
	bool snappy;
	unsigned chunks, threads; /* of a block */
	size_t shared;            /* dynamic */
	void (*run)(lade_gpu_batch batch, uint32_t elem);
};

static const kernel kernels[] = {
	{"lz4", false, 5, 160, 0, lade_lz4_encode},
	{"snappy", true, 5, 160, 0, lade_snappy_encode},
	{"lz4 team8", false, 1, 256, LADE_LZ_ENCODE_SHARED(8), lade_lz4_encode_team8},
	{"lz4 team16", false, 1, 512, LADE_LZ_ENCODE_SHARED(16), lade_lz4_encode_team16},
	{"snappy team8", true, 1, 256, LADE_LZ_ENCODE_SHARED(8), lade_snappy_encode_team8},
	{"snappy team16", true, 1, 512, LADE_LZ_ENCODE_SHARED(16), lade_snappy_encode_team16},
};

/* ---- batches ------------------------------------------------------------------------------------
 */

/* What encoding fits into, always. */
static uint64_t bound(bool snappy, uint64_t size)
{
	return snappy ? 32 + size + size / 6 : size + size / 255 + 16;
}

/* The rules for the end of an LZ4 block that decoding alone does not show. */
static bool lz4_end_is_right(const bytes &in, size_t size)
{
	size_t at = 0, out = 0, begin = 0, end = 0;
	while (at < in.size()) {
		uint64_t literals = in[at] >> 4, match = in[at] & 15;
		at++;
		if (literals == 15 && !lz4_length(in, at, literals))
			return false;
		at += literals;
		out += literals;
		if (at >= in.size())
			break;
		at += 2;
		if (match == 15 && !lz4_length(in, at, match))
			return false;
		begin = out;
		end = out += match + 4;
	}
	return end == 0 || (end + 5 <= size && begin + 12 <= size);
}

static bool decodes(bool snappy, const bytes &in, const bytes &raw)
{
	bytes out(raw.size() + 1);
	size_t n = out.size();
	verdict v = snappy ? snappy_scalar(in, raw.size()) : lz4_scalar(in, raw.size());
	if (!v.ok || v.out != raw)
		return false;
	if (snappy) {
		if (snappy_uncompress((const char *)in.data(), in.size(), (char *)out.data(), &n) !=
		    SNAPPY_OK)
			return false;
	} else {
		int got = LZ4_decompress_safe((const char *)in.data(), (char *)out.data(),
		                              (int)in.size(), (int)raw.size());
		if (got < 0 || !lz4_end_is_right(in, raw.size()))
			return false;
		n = (size_t)got;
	}
	out.resize(n);
	return out == raw;
}

/*
 * Encodes the chunks in one launch into destinations of 'caps', and wants each to decode, or to
 * have no room where the bound is larger.  Returns the sizes.
 */
static std::vector<uint64_t> check_batch(const kernel &k, const std::vector<bytes> &raw,
                                         const std::vector<uint64_t> &caps, uint32_t elem,
                                         uint64_t seed, bool queue)
{
	size_t n = raw.size();
	guarded_batch t(raw, caps, seed);
	if (!queue)
		t.batch.next = nullptr;
	unsigned blocks = (unsigned)((n + k.chunks - 1) / k.chunks);
	emu_config config = {.kernel = k.name, .grid = queue ? 1u : blocks, .block = k.threads};
	config.seed = seed;
	config.shared = k.shared;
	config.steps = 1ull << 40;
	emu_result r = emu_launch(config, [&] { k.run(t.batch, elem); });
	if (!r.ok)
		print_error("%s, seed %llu: %s\n", k.name, (unsigned long long)seed, r.message);
	assert_true(r.ok);
	for (size_t i = 0; i < n; i++) {
		bytes out(t.to[i].data, t.to[i].data + (t.status[i] == LADE_GPU_OK ? t.got[i] : 0));
		bool right = t.status[i] == LADE_GPU_OK
		                     ? decodes(k.snappy, out, raw[i])
		                     : t.status[i] == LADE_GPU_NOSPACE && t.got[i] == 0 &&
		                               caps[i] < bound(k.snappy, t.sizes[i]);
		if (!right)
			print_error("%s, elements of %u, seed %llu, chunk %zu of %zu bytes, room "
			            "for %llu: status %u, %llu bytes\n",
			            k.name, elem, (unsigned long long)seed, i, raw[i].size(),
			            (unsigned long long)caps[i], t.status[i],
			            (unsigned long long)t.got[i]);
		assert_true(right);
	}
	return t.got;
}

/* ---- tests -------------------------------------------------------------------------------------
 */

static void every_length(void **)
{
	rng r = {0x11e};
	for (const kernel &k : kernels) {
		for (uint32_t elem = 1; elem <= 8; elem *= 2) {
			std::vector<bytes> raw;
			std::vector<uint64_t> caps;
			for (size_t size = 0; size < 80; size++) {
				raw.push_back(make_data(&r, size));
				caps.push_back(bound(k.snappy, size));
			}
			check_batch(k, raw, caps, elem, elem, elem & 1);
		}
	}
}

static void all_kinds(void **)
{
	rng r = {0xa11};
	for (const kernel &k : kernels) {
		for (uint64_t seed = 1; seed <= 4; seed++) {
			std::vector<bytes> raw;
			std::vector<uint64_t> caps;
			for (int i = 0; i < 20; i++) {
				raw.push_back(make_data(&r, rng_below(&r, i % 4 ? 6000 : 20000)));
				caps.push_back(bound(k.snappy, raw.back().size()));
			}
			check_batch(k, raw, caps, 1u << (seed - 1), seed, seed & 1);
		}
	}
}

/* What a stream takes is enough room, a byte less or much less is not, or gives another stream. */
static void little_room(void **)
{
	rng r = {0x1177};
	for (const kernel &k : kernels) {
		std::vector<bytes> raw;
		std::vector<uint64_t> caps;
		for (int i = 0; i < 24; i++) {
			raw.push_back(make_data(&r, rng_below(&r, 1500)));
			caps.push_back(bound(k.snappy, raw.back().size()));
		}
		std::vector<uint64_t> size = check_batch(k, raw, caps, 1, 0, false);
		for (size_t i = 0; i < raw.size(); i++)
			caps[i] = size[i];
		check_batch(k, raw, caps, 1, 0, false);
		for (size_t i = 0; i < raw.size(); i++)
			caps[i] = size[i] - 1;
		check_batch(k, raw, caps, 1, 0, false);
		for (size_t i = 0; i < raw.size(); i++)
			caps[i] = rng_below(&r, size[i]);
		check_batch(k, raw, caps, 1, 0, false);
	}
}

/* Past 64 KiB positions wrap in the table, and matches may not reach as far as the data repeat. */
static void long_chunks(void **)
{
	rng r = {0x10e6};
	for (const kernel &k : kernels) {
		std::vector<bytes> raw(3);
		raw[0] = make_data(&r, 70000);
		raw[1].resize(200000, 5);
		raw[2].resize(140000);
		for (size_t i = 0; i < raw[2].size(); i++)
			raw[2][i] = i < 3000               ? (uint8_t)rng_next(&r)
			            : i > 66000 && i < 69000 ? raw[2][i - 65536 - 2]
			            : i > 69000              ? (uint8_t)(i / 1000)
			                                     : (uint8_t)(i >> 3);
		std::vector<uint64_t> caps;
		for (bytes &b : raw)
			caps.push_back(bound(k.snappy, b.size()));
		check_batch(k, raw, caps, 1, 3, true);
	}
}

/* How small typical data become: a ledger against what finds fewer matches one day. */
static void ratios(void **)
{
	rng r = {0x5a7e};
	bytes text, keys(16384), noise(16384);
	static const char *words[] = {"lines ", "of ",    "the ",  "ship ",  "are ", "drawn ",
	                              "to ",    "carry ", "load ", "board ", "and ", "water "};
	while (text.size() < 16384) {
		const char *w = words[rng_below(&r, 12)];
		text.insert(text.end(), w, w + strlen(w));
	}
	text.resize(16384);
	for (size_t i = 0; i < keys.size(); i++) {
		keys[i] = (uint8_t)((i / 24 * 3) >> (8 * (i % 8)));
		noise[i] = (uint8_t)rng_next(&r);
	}
	for (const kernel &k : kernels) {
		std::vector<bytes> raw = {text, keys, keys, noise};
		std::vector<uint64_t> caps(4, bound(k.snappy, 16384));
		std::vector<uint64_t> one = check_batch(k, raw, caps, 1, 0, false);
		std::vector<uint64_t> eight = check_batch(k, raw, caps, 8, 0, false);
		print_message("%s: text %llu, keys %llu and %llu, noise %llu of 16384\n", k.name,
		              (unsigned long long)one[0], (unsigned long long)one[1],
		              (unsigned long long)eight[1], (unsigned long long)one[3]);
		assert_true(one[0] < 7600);
		assert_true(one[1] < 5000 && eight[1] < 5000);
		assert_true(one[3] < 16384 + 16384 / 255 + 16);
	}
}

static void bad_arguments(void **)
{
	uint8_t in[4] = {1, 2, 3, 4}, out[16] = {9};
	const uint8_t *src[] = {nullptr, in, in, nullptr, in};
	uint8_t *dst[] = {out, nullptr, out, out + 8, nullptr};
	uint64_t sizes[] = {4, 4, 1ull << 40, 0, 4}, caps[] = {4, 4, 4, 4, 0}, got[5];
	uint32_t status[5], before[5] = {0, 0, 0, 0, 4}, next = 0;
	lade_gpu_batch batch = {src, sizes, dst, caps, got, status, before, &next, 5};
	for (const kernel &k : kernels) {
		next = 0;
		emu_result r = emu_launch(
			{.kernel = k.name, .block = k.threads, .shared = k.shared},
			[&] { k.run(batch, 1); });
		assert_true(r.ok);
		assert_int_equal(status[0], LADE_GPU_ARG);
		assert_int_equal(status[1], LADE_GPU_ARG);
		assert_int_equal(status[2], LADE_GPU_LIMIT);
		assert_int_equal(status[3], LADE_GPU_OK);
		assert_int_equal(got[3], 1);
		assert_int_equal(out[8], 0);
		assert_int_equal(status[4], 4);
		assert_int_equal(out[0], 9);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_length), cmocka_unit_test(all_kinds),
		cmocka_unit_test(little_room),  cmocka_unit_test(long_chunks),
		cmocka_unit_test(ratios),       cmocka_unit_test(bad_arguments),
	};
	return cmocka_run_group_tests_name("kernel_lz_encode", tests, NULL, NULL);
}
