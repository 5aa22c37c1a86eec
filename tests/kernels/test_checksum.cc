/*
 * test_checksum.cc: the checksums' kernels on the emulated warp, against the host's: all kinds, any
 * length and alignment, units of any number, every buffer at a guard page; told, put around chunks
 * and verified, in place and copied.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/checksum.h> /* before the kernels, to which LADE_DEVICE is another word */

#include "kernel_test.h"
#include "guard.h"

#include "checksum/kernels/checksum.cu"

#include <algorithm>
#include <vector>

typedef std::vector<uint8_t> bytes;

/* ---- a CRC's constants, from the polynomial, bit by bit -------------------------------- */

static uint32_t times_x(uint32_t a, uint32_t poly)
{
	return (a << 1) ^ (a >> 31 ? poly : 0);
}

static uint32_t times(uint32_t a, uint32_t b, uint32_t poly)
{
	uint32_t r = 0;
	for (uint32_t i = 0; i < 32; i++) {
		r ^= a >> i & 1 ? b : 0;
		b = times_x(b, poly);
	}
	return r;
}

/* x^n */
static uint32_t power(uint64_t n, uint32_t poly)
{
	uint32_t r = 1, a = 2;
	for (; n; n >>= 1) {
		r = n & 1 ? times(r, a, poly) : r;
		a = times(a, a, poly);
	}
	return r;
}

static lade_gpu_crc crc_of(lade_checksum kind, uint32_t unit, uint32_t parts)
{
	lade_gpu_crc c;
	lade_crc32_spec spec;
	memset(&c, 0, sizeof c);
	if (lade_crc32_spec_of(kind, &spec, NULL) != LADE_OK)
		return c;
	c.poly = spec.poly;
	c.init = spec.init;
	c.reflected = spec.reflect_in;
	c.mirrored = spec.reflect_out;
	c.xor_out = spec.xor_out;
	c.first = lade_crc_turn(spec.init, c.reflected);
	for (uint32_t b = 0; b < 32; b++)
		c.basis[b] = lade_crc_turn(times(lade_crc_turn(1u << b, c.reflected),
		                                 power(4096, c.poly), c.poly),
		                           c.reflected);
	for (uint32_t i = 0; i < 128; i++)
		c.weight[i] = power(32 * (128 - i), c.poly);
	for (uint32_t i = 0; i < 32; i++)
		c.step[i] = power(8ull * unit * i, c.poly);
	for (uint32_t i = 0; i < 8; i++)
		c.leap[i] = power(8ull * unit * 32 * i, c.poly);
	c.stride = power(8ull * unit * 256, c.poly);
	c.hop = power(8ull * unit * parts, c.poly);
	/* x has the order 2^32 - 1 at most, and all orders divide the product of 2^i - 1. */
	uint32_t back = 1, a = c.poly >> 1 | 0x80000000u;
	assert_int_equal(times(a, 2, c.poly), 1);
	for (uint32_t i = 0; i < 16; i++) {
		c.undo[i] = back;
		for (uint32_t k = 0; k < 8; k++)
			back = times(back, a, c.poly);
	}
	return c;
}

/* ---- running ----------------------------------------------------------------------------- */

static rng r;

/* 'size' bytes at an address of that remainder by 16, at a guard page where that is possible. */
struct place {
	guard g;
	uint8_t *data;
};

static place place_new(size_t size, size_t skew, bool at_end)
{
	place p;
	size_t pad = at_end ? (0 - size - skew) & 15 : 0; /* behind */
	p.g = guard_new(skew + size + pad, at_end);
	p.data = p.g.data + skew;
	if (at_end)
		p.data = p.g.data + p.g.size - pad - size;
	return p;
}

struct batch_kit {
	std::vector<place> from, to;
	std::vector<const uint8_t *> src;
	std::vector<uint8_t *> dst;
	std::vector<uint64_t> src_size, cap, got, sums, partial;
	std::vector<uint32_t> status;

	void add(size_t size, const uint8_t *data, size_t room, int skew = -1)
	{
		from.push_back(skew < 0 ? place_new(size, rng_below(&r, 16), rng_below(&r, 2))
					: place_new(size, (size_t)skew, false));
		to.push_back(place_new(room, rng_below(&r, 16), rng_below(&r, 2)));
		src.push_back(from.back().data);
		dst.push_back(to.back().data);
		if (size)
			memcpy(from.back().data, data, size);
		src_size.push_back(size);
		cap.push_back(room);
	}

	lade_gpu_sums prepare(lade_checksum kind, uint32_t use, uint32_t unit, uint32_t parts)
	{
		size_t n = src.size();
		got.assign(n, 77);
		sums.assign(n, 77);
		status.assign(n, 77);
		partial.assign(n * parts, 0xDEADull << 40);
		lade_gpu_sums s = {};
		s.batch = {src.data(),    src_size.data(), dst.data(), cap.data(), got.data(),
		           status.data(), nullptr,         nullptr,    (uint32_t)n};
		s.sums = sums.data();
		s.partial = partial.data();
		s.use = use;
		s.kind = kind == LADE_XXH64     ? LADE_SUM_XXH64
		         : kind == LADE_ADLER32 ? LADE_SUM_ADLER
						: LADE_SUM_CRC;
		s.extra = (uint32_t)lade_checksum_size(kind);
		s.parts = parts;
		s.unit = unit;
		return s;
	}

	~batch_kit()
	{
		for (auto &p : from)
			guard_free(&p.g);
		for (auto &p : to)
			guard_free(&p.g);
	}
};

template <typename F>
static void launch(const char *name, uint32_t grid, uint32_t block, size_t shared, uint64_t seed,
                   F body)
{
	emu_config config = {.kernel = name, .grid = grid, .block = block, .shared = shared};
	config.seed = seed;
	emu_result done = emu_launch(config, body);
	if (!done.ok)
		print_error("seed %llu: %s\n", (unsigned long long)seed, done.message);
	assert_true(done.ok);
}

static void run(lade_checksum kind, const lade_gpu_sums &s, uint32_t grid, uint64_t seed)
{
	lade_gpu_crc crc = crc_of(kind, s.unit, s.parts);
	if (s.use == LADE_SUM_STRIP)
		;
	else if (s.kind == LADE_SUM_CRC)
		launch("crc32", grid, 512, LADE_CRC_SHARED, seed,
		       [&] { lade_crc32_units(s, crc); });
	else if (s.kind == LADE_SUM_ADLER)
		launch("adler32", grid, 64, 0, seed, [&] { lade_adler32_units(s); });
	else
		launch("xxh64", grid, 64, 0, seed, [&] { lade_xxh64_units(s); });
	if (s.copy)
		launch("copy", grid, 64, 0, seed, [&] { lade_checksum_copy(s); });
	launch("finish", grid, s.parts > 32 ? 256 : 32, 0, seed,
	       [&] { lade_checksum_finish(s, crc); });
}

static bytes random_bytes(size_t size)
{
	bytes out(size + 1); /* so that there is a pointer */
	for (auto &b : out)
		b = (uint8_t)(rng_next(&r) >> 40);
	return out;
}

/* ---- tests ------------------------------------------------------------------------------- */

static const size_t edges[] = {0,  1,   3,   4,   5,    15,   16,   17,   31,   32,
                               33, 511, 512, 513, 2047, 2048, 2065, 4096, 6000, 9000};

static void check(lade_checksum kind, uint32_t unit, uint32_t parts, uint32_t grid, uint64_t seed,
                  const std::vector<size_t> &sizes)
{
	batch_kit kit;
	for (size_t size : sizes) {
		bytes data = random_bytes(size);
		if (rng_below(&r, 4) == 0)
			std::fill(data.begin(), data.end(), 0xFF);
		kit.add(size, data.data(), 0);
	}
	run(kind, kit.prepare(kind, LADE_SUM_TELL, unit, parts), grid, seed);
	for (size_t i = 0; i < sizes.size(); i++) {
		uint64_t want = lade_checksum_of(kind, kit.src[i], sizes[i]);
		if (kit.status[i] || kit.sums[i] != want || kit.got[i] != sizes[i])
			fail_msg("%s of %zu bytes at %p, units of %u, %u parts: status %u, %llx, "
			         "want %llx",
			         lade_checksum_name(kind), sizes[i], (const void *)kit.src[i], unit,
			         parts, kit.status[i], (unsigned long long)kit.sums[i],
			         (unsigned long long)want);
	}
}

static void all_kinds(void **state)
{
	(void)state;
	for (int kind = LADE_CRC32; kind <= LADE_XXH64; kind++)
		for (uint32_t unit : {1024u, 4096u})
			check((lade_checksum)kind, unit, 7168 / unit, 2, (uint64_t)kind % 5,
			      std::vector<size_t>(edges, edges + sizeof edges / sizeof *edges));
}

/* More units than parts, more parts than a warp has lanes and than a block has threads; as many
 * blocks as fit no chunk in particular. */
static void units_and_parts(void **state)
{
	(void)state;
	static const lade_checksum kinds[] = {LADE_CRC32C, LADE_CRC32_BZIP2, LADE_ADLER32};
	static const uint32_t parts[] = {1, 2, 5, 40, 300};
	for (lade_checksum kind : kinds)
		for (uint32_t p : parts)
			check(kind, 512, p, p % 3 + 1, p,
			      {0, 100, 512, 513, 3000, p > 200 ? 150000u : 20000u});
}

/* A CRC's first four bytes, to which the register is added, in two vectors, two rows, two units. */
static void first_bytes_apart(void **state)
{
	(void)state;
	static const size_t ends[] = {16, 32, 2064, 2576, 4112, 6672};
	for (lade_checksum kind : {LADE_CRC32C, LADE_CRC32_BZIP2}) {
		batch_kit kit;
		for (int skew = 12; skew < 16; skew++)
			for (size_t end : ends)
				for (size_t pad = 0; pad < 16; pad += 5)
					if (end > (size_t)skew + pad) {
						size_t size = end - (size_t)skew - pad;
						bytes data = random_bytes(size);
						kit.add(size, data.data(), 0, skew);
					}
		run(kind, kit.prepare(kind, LADE_SUM_TELL, 4096, 2), 2, 1);
		for (size_t i = 0; i < kit.src.size(); i++)
			assert_int_equal(kit.sums[i], lade_checksum_of(kind, kit.src[i],
			                                               (size_t)kit.src_size[i]));
	}
}

/* The largest sums that a unit can have. */
static void adler_of_full_units(void **state)
{
	(void)state;
	batch_kit kit;
	size_t size = 2 * 262144 + 5;
	bytes data(size, 0xFF);
	kit.add(size, data.data(), 0);
	run(LADE_ADLER32, kit.prepare(LADE_ADLER32, LADE_SUM_TELL, 262144, 3), 1, 0);
	assert_int_equal(kit.sums[0], lade_checksum_of(LADE_ADLER32, data.data(), size));
}

static void any_chunk(void **state)
{
	(void)state;
	uint64_t seed = (uint64_t)getpid() * 2654435761u + 1;
	printf("seed %llu\n", (unsigned long long)seed);
	r.s = seed;
	for (unsigned round = 0; round < 12; round++) {
		std::vector<size_t> sizes;
		for (unsigned i = 0; i < 6; i++)
			sizes.push_back(rng_below(&r, round % 2 ? 200 : 9000));
		check((lade_checksum)(1 + rng_below(&r, 14)), 512u << rng_below(&r, 4),
		      1 + (uint32_t)rng_below(&r, 5), 1 + (uint32_t)rng_below(&r, 4), round, sizes);
	}
}

/* Around chunks, and back. */
static void around(lade_checksum kind, bool at_start, bool copy, uint64_t seed)
{
	size_t extra = lade_checksum_size(kind);
	uint32_t first = at_start ? (uint32_t)extra : 0;
	batch_kit kit;
	std::vector<bytes> plain;
	for (size_t size : {0u, 3u, 100u, 1500u}) {
		plain.push_back(random_bytes(size));
		kit.add(size, plain.back().data(), size + extra);
		if (!copy) {
			kit.src.back() = kit.dst.back() + first;
			if (size)
				memcpy(kit.dst.back() + first, plain.back().data(), size);
		}
	}
	lade_gpu_sums s = kit.prepare(kind, LADE_SUM_ENCODE, 1024, 2);
	s.first = first;
	s.copy = copy;
	run(kind, s, 3, seed);
	batch_kit back;
	for (size_t i = 0; i < plain.size(); i++) {
		size_t size = plain[i].size() - 1;
		assert_int_equal(kit.status[i], 0);
		assert_int_equal(kit.got[i], size + extra);
		if (size)
			assert_memory_equal(kit.dst[i] + first, plain[i].data(), size);
		uint64_t want = lade_checksum_of(kind, plain[i].data(), size), have = 0;
		memcpy(&have, kit.dst[i] + (at_start ? 0 : size), extra);
		assert_int_equal(have, want);
		back.add(size + extra, kit.dst[i], size);
	}
	/* One whose checksum is wrong, one whose bytes are, one that is too short. */
	back.from[1].data[at_start ? 3 : 6] ^= 0x10;
	back.from[2].data[50] ^= 1;
	back.src_size[0] = extra - 1;
	for (int strip = 0; strip < 2; strip++) {
		s = back.prepare(kind, strip ? LADE_SUM_STRIP : LADE_SUM_DECODE, 1024, 2);
		s.first = first;
		s.copy = copy;
		if (!copy)
			s.batch.dst = nullptr, s.batch.dst_cap = nullptr;
		run(kind, s, 3, seed);
		uint32_t wrong = strip ? LADE_GPU_OK : LADE_GPU_CHECKSUM;
		const uint32_t want[4] = {LADE_GPU_TRUNCATED, wrong, wrong, LADE_GPU_OK};
		for (size_t i = 0; i < 4; i++) {
			size_t size = plain[i].size() - 1;
			assert_int_equal(back.status[i], want[i]);
			assert_int_equal(back.got[i], want[i] ? 0 : size);
			if (copy && i == 3)
				assert_memory_equal(back.dst[i], plain[i].data(), size);
		}
	}
}

static void stages(void **state)
{
	(void)state;
	static const lade_checksum kinds[] = {LADE_CRC32, LADE_CRC32_MPEG2, LADE_ADLER32,
	                                      LADE_XXH64};
	for (lade_checksum kind : kinds)
		for (unsigned form = 0; form < 4; form++)
			around(kind, form & 1, form >> 1, form);
}

/* What cannot be done has its verdict, and its neighbours theirs. */
static void verdicts(void **state)
{
	(void)state;
	bytes data = random_bytes(600);
	for (uint64_t seed = 0; seed < 4; seed++) {
		batch_kit kit;
		for (unsigned i = 0; i < 5; i++)
			kit.add(600, data.data(), i == 1 ? 603 : 604);
		lade_gpu_sums s = kit.prepare(LADE_CRC32, LADE_SUM_ENCODE, 512, 3);
		s.copy = 1;
		kit.src[2] = nullptr;
		kit.src_size[3] = 1ull << 40;
		kit.status.assign(5, 0);
		kit.status[4] = LADE_GPU_CORRUPT;
		s.batch.before = kit.status.data();
		run(LADE_CRC32, s, 2, seed);
		static const uint32_t want[5] = {LADE_GPU_OK, LADE_GPU_NOSPACE, LADE_GPU_ARG,
		                                 LADE_GPU_LIMIT, LADE_GPU_CORRUPT};
		for (size_t i = 0; i < 5; i++) {
			assert_int_equal(kit.status[i], want[i]);
			assert_int_equal(kit.got[i], i ? 0 : 604);
		}
	}
}

int main(void)
{
	r.s = 20261121;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_kinds),         cmocka_unit_test(units_and_parts),
		cmocka_unit_test(first_bytes_apart), cmocka_unit_test(adler_of_full_units),
		cmocka_unit_test(any_chunk),         cmocka_unit_test(stages),
		cmocka_unit_test(verdicts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
