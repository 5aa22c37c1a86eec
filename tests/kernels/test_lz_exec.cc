/*
 * test_lz_exec.cc: the executor alone, on the emulated warp: pieces that no parser of ours hands in
 * (two runs, two matches, a match before a run, empty lanes, several long ones in a round), in all
 * team sizes, against a plain loop, every buffer at a guard page.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernel_test.h"
#include "guard.h"

#include "codec/lz/kernels/lz_exec.cuh"

#include <vector>

struct lane_work {
	lade_lz_sequence q;
	uint32_t start, piece; /* 'start' from the output's first byte */
};

struct round_work {
	uint32_t end, count; /* 'end' from the output's first byte */
};

struct program {
	const uint8_t *src;
	uint32_t n;
	uint8_t *dst;
	uint32_t size;
	const lane_work *lanes; /* 32 W a round */
	const round_work *rounds;
	uint32_t count;
};

/* Map: block = W warps, a team.  Shared: the executor, dynamic, and a place for each lane. */
template <int W> static void execute(const program &p)
{
	typedef lade_lz_exec<W> exec;
	LADE_SHARED_DYNAMIC(exec, x);
	LADE_SHARED(lade_lz_place, place, [32 * W]);
	uint32_t lane = lade_lane(), warp = threadIdx.x / 32;
	lade_lz_out o = lade_lz_begin<W>(x, p.src, p.n, p.dst, p.size, warp, lane);
	uint32_t shift = o.done;
	lade_team_sync<W>();
	for (uint32_t r = 0; r < p.count; r++) {
		const lane_work &l = p.lanes[(size_t)r * 32 * W + threadIdx.x];
		lade_lz_group group = {shift + l.start, l.piece, shift + p.rounds[r].end,
		                       p.rounds[r].count, r + 1 == p.count};
		lade_lz_make<W>(x, &o, p.src, l.q, group, &place[threadIdx.x], warp, lane);
		lade_team_sync<W>();
	}
}

static uint32_t some_size(rng *r, bool may_be_long)
{
	switch (rng_below(r, may_be_long ? 10 : 6)) {
	case 0: return 0;
	case 1: case 2: return (uint32_t)rng_below(r, 4);
	case 3: case 4: return (uint32_t)rng_below(r, 20);
	case 5: return (uint32_t)rng_below(r, 200);
	case 6: case 7: return (uint32_t)rng_below(r, 1000);
	case 8: return (uint32_t)rng_below(r, 5000);
	default: return (uint32_t)rng_below(r, 30000);
	}
}

static uint32_t some_offset(rng *r, uint32_t most)
{
	uint32_t limit[] = {3, 9, 130, 3000, most};
	uint32_t k = limit[rng_below(r, 5)];
	return 1 + (uint32_t)rng_below(r, k < most ? k : most);
}

template <int W> static void check(uint64_t seed, unsigned rounds, bool long_ones)
{
	rng r = {seed};
	uint32_t n = 1 + (uint32_t)rng_below(&r, 40000);
	std::vector<uint8_t> plain, source(n);
	std::vector<lane_work> lanes(rounds * 32 * W);
	std::vector<round_work> all(rounds);
	for (auto &b : source)
		b = (uint8_t)rng_below(&r, 256);
	uint32_t pieces = 0;
	for (unsigned i = 0; i < rounds; i++) {
		uint32_t before = pieces;
		unsigned used = (unsigned)rng_below(&r, 4) ? 32 * W
		                                           : (unsigned)rng_below(&r, 32 * W + 1);
		for (unsigned t = 0; t < 32 * W; t++) {
			lane_work &l = lanes[(size_t)i * 32 * W + t];
			l = {};
			l.start = (uint32_t)plain.size();
			l.piece = pieces;
			for (int k = 0; k < 2 && t < used; k++) {
				uint32_t have = (uint32_t)plain.size();
				uint32_t size = some_size(&r, long_ones && rng_below(&r, 16) == 0);
				bool match = have && rng_below(&r, 2);
				if (!match && size > n)
					size = n;
				l.q.size[k] = size;
				l.q.match[k] = match;
				l.q.from[k] = match ? some_offset(&r, have)
				                    : (uint32_t)rng_below(&r, n - size + 1);
				for (uint32_t b = 0; b < size; b++)
					plain.push_back(match ? plain[plain.size() - l.q.from[k]]
					                      : source[l.q.from[k] + b]);
				pieces += size != 0;
			}
		}
		all[i] = {(uint32_t)plain.size(), pieces - before};
	}
	guard from = guard_copy(source.data(), n, (int)rng_below(&r, 2));
	guard to = guard_new(plain.size(), (int)rng_below(&r, 2));
	program p = {from.data,    n,          to.data, (uint32_t)plain.size(),
	             lanes.data(), all.data(), rounds};
	emu_config config = {.kernel = "lz_exec", .grid = 1, .block = 32 * W};
	config.shared = sizeof(lade_lz_exec<W>);
	config.seed = seed % KERNEL_SEEDS;
	emu_result e = emu_launch(config, [&] { execute<W>(p); });
	if (!e.ok)
		print_error("team of %d, seed %llu: %s\n", W, (unsigned long long)seed, e.message);
	assert_true(e.ok);
	size_t bad = 0;
	while (bad < plain.size() && to.data[bad] == plain[bad])
		bad++;
	if (bad < plain.size())
		print_error("team of %d, seed %llu: byte %zu of %zu\n", W, (unsigned long long)seed,
		            bad, plain.size());
	assert_int_equal(bad, plain.size());
	guard_free(&from);
	guard_free(&to);
}

template <int W> static void pieces(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 24; seed++) {
		check<W>(seed, 1 + (unsigned)(seed % 5), false);
		check<W>(100 + seed, 1 + (unsigned)(seed % 5), true);
	}
}

int main(void)
{
	const CMUnitTest tests[] = {
		cmocka_unit_test(pieces<1>),
		cmocka_unit_test(pieces<4>),
		cmocka_unit_test(pieces<8>),
		cmocka_unit_test(pieces<16>),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
