/*
 * test_lz.cc: the LZ4 and Snappy decoding kernels on the emulated warp: against the libraries that
 * encode, and against a strict scalar decoder on damaged streams, every buffer at a guard page.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernel_test.h"
#include "guard.h"

#include "codec/lz4/kernels/lz4_decode.cu"
#include "codec/snappy/kernels/snappy_decode.cu"

#include <lz4.h>
#include <lz4hc.h>
#include <snappy-c.h>
#include <sys/mman.h>

#include "guarded_batch.h"

/* ---- batches ------------------------------------------------------------------------------------
 */

struct kernel {
	const char *name;
	bool snappy;
	unsigned threads;
	size_t shared;
	void (*run)(lade_gpu_batch batch);
};

static const kernel kernels[] = {
	{"lz4 solo", false, 128, 0, lade_lz4_decode_solo},
	{"lz4 team4", false, 128, 0, lade_lz4_decode_team4},
	{"lz4 team8", false, 256, 0, lade_lz4_decode_team8},
	{"lz4 team16", false, 512, LADE_LZ4_TEAM16_SHARED, lade_lz4_decode_team16},
	{"snappy solo", true, 128, 0, lade_snappy_decode_solo},
	{"snappy team4", true, 128, 0, lade_snappy_decode_team4},
	{"snappy team8", true, 256, 0, lade_snappy_decode_team8},
	{"snappy team16", true, 512, LADE_SNAPPY_TEAM16_SHARED, lade_snappy_decode_team16},
};

/* Decodes the streams in one launch, into destinations of 'caps'; wants the scalar's verdicts. */
static void check_batch(const kernel &k, const std::vector<bytes> &in,
                        const std::vector<uint64_t> &caps, uint64_t seed)
{
	size_t n = in.size();
	guarded_batch t(in, caps, seed);
	emu_config config = {.kernel = k.name, .grid = n > 4 ? 2u : 1u, .block = k.threads};
	config.shared = k.shared;
	if (seed % 3 == 2) { /* no counter: a warp or a block for each */
		t.batch.next = nullptr;
		config.grid =
			(unsigned)(k.run == lade_lz4_decode_solo || k.run == lade_snappy_decode_solo
		                           ? (n + 3) / 4
		                           : n);
	}
	config.seed = seed;
	emu_result r = emu_launch(config, [&] { k.run(t.batch); });
	if (!r.ok)
		print_error("%s, seed %llu: %s\n", k.name, (unsigned long long)seed, r.message);
	assert_true(r.ok);
	for (size_t i = 0; i < n; i++) {
		verdict want =
			k.snappy ? snappy_scalar(in[i], caps[i]) : lz4_scalar(in[i], caps[i]);
		bool same =
			want.ok == (t.status[i] == LADE_GPU_OK) &&
			(!want.ok ||
		         (t.got[i] == want.out.size() &&
		          (t.got[i] == 0 || memcmp(t.to[i].data, want.out.data(), t.got[i]) == 0)));
		if (!same) {
			print_error("%s, seed %llu, stream %zu of %zu bytes, room for %llu: status "
			            "%u, %llu bytes; "
			            "want %s, %zu\n",
			            k.name, (unsigned long long)seed, i, in[i].size(),
			            (unsigned long long)caps[i], t.status[i],
			            (unsigned long long)t.got[i], want.ok ? "ok" : "an error",
			            want.out.size());
			for (size_t b = 0; b < in[i].size() && b < 400; b++)
				print_error("%02x", in[i][b]);
			print_error("\n");
		}
		assert_true(same);
		if (!want.ok)
			assert_int_equal(t.got[i], 0);
	}
}

/* Asks for the streams' sizes in one launch. */
static void check_sizes(const std::vector<bytes> &in, uint64_t seed)
{
	size_t n = in.size();
	std::vector<guard> from(n);
	std::vector<const uint8_t *> src(n);
	std::vector<uint64_t> sizes(n), got(n, 77);
	std::vector<uint32_t> status(n, 77);
	uint32_t next = 0;
	for (size_t i = 0; i < n; i++) {
		from[i] = guard_copy(in[i].data(), in[i].size(), (int)(i + seed) & 1);
		src[i] = from[i].data;
		sizes[i] = in[i].size();
	}
	lade_gpu_batch batch = {src.data(),    sizes.data(), nullptr, nullptr,    got.data(),
	                        status.data(), nullptr,      &next,   (uint32_t)n};
	emu_config config = {.kernel = "lz4 size", .grid = 2, .block = 128};
	config.seed = seed;
	emu_result r = emu_launch(config, [&] { lade_lz4_size(batch); });
	if (!r.ok)
		print_error("lz4 size, seed %llu: %s\n", (unsigned long long)seed, r.message);
	assert_true(r.ok);
	for (size_t i = 0; i < n; i++) {
		verdict want = lz4_scalar(in[i], LADE_CHUNK_MAX);
		assert_int_equal(status[i] == LADE_GPU_OK, want.ok);
		assert_int_equal(got[i], want.ok ? want.out.size() : 0);
		guard_free(&from[i]);
	}
}

static bytes encode(rng *r, bool snappy, const bytes &raw)
{
	size_t n = raw.size() + raw.size() / 6 + 64;
	bytes out(n);
	const char *src = raw.empty() ? "" : (const char *)raw.data();
	if (snappy)
		assert_int_equal(snappy_compress(src, raw.size(), (char *)out.data(), &n),
		                 SNAPPY_OK);
	else if (rng_below(r, 2))
		n = (size_t)LZ4_compress_default(src, (char *)out.data(), (int)raw.size(), (int)n);
	else
		n = (size_t)LZ4_compress_HC(src, (char *)out.data(), (int)raw.size(), (int)n, 9);
	out.resize(n);
	return out;
}

/* ---- tests
 * --------------------------------------------------------------------------------------------- */

static void what_the_libraries_encode(void **)
{
	rng r = {0x1234567};
	for (const kernel &k : kernels) {
		for (uint64_t seed = 1; seed <= 4; seed++) {
			std::vector<bytes> in;
			std::vector<uint64_t> caps;
			static const size_t sizes[] = {0,   1,    2,    12,   13,   63,   128,
			                               129, 1000, 1024, 1025, 4000, 20000};
			for (size_t size : sizes) {
				bytes raw = make_data(&r, size);
				in.push_back(encode(&r, k.snappy, raw));
				caps.push_back(size + rng_below(&r, 2) * rng_below(&r, 30));
				if (size) { /* and where there is a byte too little */
					in.push_back(in.back());
					caps.push_back(size - 1);
				}
			}
			check_batch(k, in, caps, seed);
			if (k.run == lade_lz4_decode_solo)
				check_sizes(in, seed);
		}
	}
}

static void long_runs(void **)
{
	rng r = {0x7654321};
	for (const kernel &k : kernels) {
		std::vector<bytes> in;
		std::vector<uint64_t> caps;
		for (size_t period = 1; period < 700; period += 1 + period / 2) {
			bytes raw = make_data(&r, 9000 + rng_below(&r, 5000));
			for (size_t i = 1000; i < raw.size() - 2000; i++)
				raw[i] = raw[i - period];
			in.push_back(encode(&r, k.snappy, raw));
			caps.push_back(raw.size());
		}
		/* And such as pass what a team's rings reach. */
		for (size_t period : {0, 1, 3, 2500}) {
			bytes raw(40000 + rng_below(&r, 5000));
			for (size_t i = 0; i < raw.size(); i++)
				raw[i] = period && i > 3000 && i < 37000 ? raw[i - period]
				                                         : (uint8_t)rng_next(&r);
			in.push_back(encode(&r, k.snappy, raw));
			caps.push_back(raw.size());
		}
		check_batch(k, in, caps, 5);
	}
}

static void damaged_streams(void **)
{
	rng r = {0xbad5eed};
	size_t ok = 0, all = 0;
	for (const kernel &k : kernels) {
		for (uint64_t round = 0; round < 12; round++) {
			std::vector<bytes> in;
			std::vector<uint64_t> caps;
			for (int i = 0; i < 24; i++) {
				bytes raw = make_data(&r, 1 + rng_below(&r, 1500));
				bytes s = encode(&r, k.snappy, raw);
				uint64_t how = rng_below(&r, 6);
				if (how == 0)
					s.resize(rng_below(&r, s.size() + 1));
				else if (how == 1)
					for (uint8_t &b : s)
						b = (uint8_t)rng_next(&r);
				else if (how == 2)
					for (size_t at = rng_below(&r, s.size()),
					            n = rng_below(&r, 40);
					     n-- && at < s.size();)
						s[at++] = 0xFF;
				else
					for (uint64_t n = 1 + rng_below(&r, 4); n; n--)
						s[rng_below(&r, s.size())] ^=
							(uint8_t)(1u << rng_below(&r, 8));
				uint64_t cap =
					raw.size() + (rng_below(&r, 3) ? 0 : rng_below(&r, 3000));
				ok += (k.snappy ? snappy_scalar(s, cap) : lz4_scalar(s, cap)).ok;
				all++;
				in.push_back(s);
				caps.push_back(cap);
			}
			check_batch(k, in, caps, round);
			if (k.run == lade_lz4_decode_solo)
				check_sizes(in, round);
		}
	}
	print_message("%zu of %zu damaged streams are valid all the same\n", ok, all);
	assert_true(ok > all / 20 && ok < all);
}

/* Null pointers with sizes, sizes past the limit: a status, and nothing touched. */
static void bad_arguments(void **)
{
	uint8_t in[4] = {0x10, 'a', 0, 0}, out[4] = {9, 9, 9, 9};
	const uint8_t *src[] = {nullptr, in, in, nullptr};
	uint8_t *dst[] = {out, nullptr, out, out};
	uint64_t sizes[] = {4, 2, 1ull << 40, 0}, caps[] = {4, 4, 4, 4}, got[4];
	uint32_t status[4], next = 0;
	lade_gpu_batch batch = {src, sizes, dst, caps, got, status, nullptr, &next, 4};
	emu_result r =
		emu_launch({.kernel = "lz4", .block = 128}, [&] { lade_lz4_decode_solo(batch); });
	assert_true(r.ok);
	assert_int_equal(status[0], LADE_GPU_ARG);
	assert_int_equal(status[1], LADE_GPU_ARG);
	assert_int_equal(status[2], LADE_GPU_LIMIT);
	assert_int_equal(status[3], LADE_GPU_TRUNCATED);
	assert_int_equal(out[0], 9);
}

/* Kernel 'k' makes 'raw' at 'dst' of 's' at 'src', and leaves that as it is. */
static void expect_decoded(const kernel &k, const uint8_t *src, const bytes &s, uint8_t *dst,
                           const bytes &raw, uint32_t seed)
{
	uint64_t size = s.size(), cap = raw.size(), got = 77;
	uint32_t status = 77, next = 0;
	lade_gpu_batch batch = {&src, &size, &dst, &cap, &got, &status, nullptr, &next, 1};
	emu_config config = {.kernel = k.name, .block = k.threads, .shared = k.shared};
	config.seed = seed;
	emu_result e = emu_launch(config, [&] { k.run(batch); });
	if (!e.ok)
		print_error("%s: %s\n", k.name, e.message);
	assert_true(e.ok);
	assert_int_equal(status, LADE_GPU_OK);
	assert_int_equal(got, raw.size());
	assert_memory_equal(dst, raw.data(), raw.size());
	assert_memory_equal(src, s.data(), s.size());
}

/* A source may lie as near to its destination as it likes, on either side, within what a window
 * covers: its bytes are not those of the output. */
static void sources_beside_destinations(void **)
{
	rng r = {0x5eed};
	for (const kernel &k : kernels) {
		for (uint32_t round = 0; round < 24; round++) {
			bytes raw = make_data(&r, 1 + rng_below(&r, round % 3 ? 40 : 2500));
			bytes s = encode(&r, k.snappy, raw);
			size_t gap = round % 4 ? rng_below(&r, 300) : 0, lead = rng_below(&r, 128);
			size_t first = round % 2 ? s.size() : raw.size();
			alignas(128) static uint8_t memory[8192];
			uint8_t *one = memory + 128 + lead, *other = one + first + gap;
			memset(memory, 0xA5, sizeof memory);
			const uint8_t *src = round % 2 ? one : other;
			uint8_t *dst = round % 2 ? other : one;
			memcpy((uint8_t *)src, s.data(), s.size());
			expect_decoded(k, src, s, dst, raw, round);
		}
	}
}

/* A source may lie 4 GiB from the output, so that addresses are alike but for their high halves. */
static void sources_far_from_destinations(void **)
{
	constexpr size_t FAR = (size_t)1 << 32, ROOM = 32768;
	void *all = mmap(nullptr, FAR + ROOM, PROT_NONE,
	                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(all != MAP_FAILED);
	uint8_t *low = (uint8_t *)all, *high = low + FAR;
	assert_int_equal(mprotect(low, ROOM, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(mprotect(high, ROOM, PROT_READ | PROT_WRITE), 0);
	rng r = {0xfa4};
	for (const kernel &k : kernels) {
		for (uint32_t round = 0; round < 8; round++) {
			bytes raw = make_data(&r, 5000 + rng_below(&r, 3000));
			bytes s = encode(&r, k.snappy, raw);
			assert_true(s.size() <= ROOM / 2);
			size_t lead = rng_below(&r, 4096), other = lead + rng_below(&r, 4096);
			uint8_t *dst = (round % 2 ? low : high) + lead;
			uint8_t *to = (round % 2 ? high : low) + (round % 4 < 2 ? lead : other);
			memcpy(to, s.data(), s.size());
			expect_decoded(k, to, s, dst, raw, round);
		}
	}
	munmap(all, FAR + ROOM);
}

/* A chunk that failed before is not touched, and keeps its status. */
static void failed_before(void **)
{
	uint8_t in[3] = {0x20, 'a', 'b'}, out[8] = {9, 9, 9, 9, 9, 9, 9, 9};
	const uint8_t *src[] = {in, in};
	uint8_t *dst[] = {out, out + 4};
	uint64_t sizes[] = {3, 3}, caps[] = {4, 4};
	for (const kernel &k : kernels) {
		if (k.snappy)
			continue;
		uint64_t got[2] = {7, 7};
		uint32_t status[2] = {LADE_GPU_CORRUPT, 0}, next = 0;
		lade_gpu_batch batch = {src, sizes, dst, caps, got, status, status, &next, 2};
		emu_config config = {.kernel = k.name, .block = k.threads, .shared = k.shared};
		emu_result r = emu_launch(config, [&] { k.run(batch); });
		assert_true(r.ok);
		assert_int_equal(status[0], LADE_GPU_CORRUPT);
		assert_int_equal(got[0], 0);
		assert_int_equal(out[0], 9);
		assert_int_equal(status[1], LADE_GPU_OK);
		assert_int_equal(got[1], 2);
		assert_memory_equal(out + 4, "ab\x09\x09", 4);
		out[4] = out[5] = 9;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_libraries_encode),
		cmocka_unit_test(long_runs),
		cmocka_unit_test(damaged_streams),
		cmocka_unit_test(bad_arguments),
		cmocka_unit_test(sources_beside_destinations),
		cmocka_unit_test(sources_far_from_destinations),
		cmocka_unit_test(failed_before),
	};
	return cmocka_run_group_tests_name("kernel_lz", tests, NULL, NULL);
}
