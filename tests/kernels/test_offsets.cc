/*
 * test_offsets.cc: the kernels that add up offsets, on the emulated warp, against a loop: any
 * numbers of columns, runs and ends, faults anywhere, every column at a guard page.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "place.h"

#include <vector>

#include "rntuple/kernels/offsets.cu"

static rng r;

struct column {
	std::vector<uint64_t> runs; /* their first ends */
	int64_t most;               /* that each last one may be */
	std::vector<int64_t> ends;  /* with the end before */
};

/* In place; the first fault, or none. */
static uint64_t add_up(column &c)
{
	std::vector<int64_t> out(c.ends.size(), 0);
	int64_t before = c.ends[0], base = (int64_t)(0 - (uint64_t)before), sum = 0;
	size_t run = 0;
	if (before < 0)
		return 0;
	for (size_t i = 0; i + 1 < c.ends.size(); i++) {
		if (i && run + 1 < c.runs.size() && c.runs[run + 1] == i) {
			run++;
			before = 0;
			base = sum;
		}
		if (c.ends[i + 1] < before || __builtin_add_overflow(base, c.ends[i + 1], &sum))
			return 2 * i;
		before = c.ends[i + 1];
		out[i + 1] = sum;
		bool last = i + 2 == c.ends.size() ||
		            (run + 1 < c.runs.size() && c.runs[run + 1] == i + 1);
		if (last && before > c.most)
			return 2 * i + 1;
	}
	c.ends = out;
	return LADE_ENDS_NO_FAULT;
}

static column column_new(size_t count, size_t run_most, unsigned faults)
{
	column c;
	int64_t end = rng_below(&r, 2) ? (int64_t)rng_below(&r, 1000) : 0;
	c.most = faults == 1 ? (int64_t)rng_below(&r, 10000000) : INT64_MAX;
	c.ends.push_back(end);
	c.runs.push_back(0);
	for (size_t i = 0; i < count; i++) {
		if (i && rng_below(&r, run_most) == 0) {
			c.runs.push_back(i);
			end = 0;
		}
		end += (int64_t)rng_below(&r, rng_below(&r, 3) ? 4 : 100000);
		c.ends.push_back(end);
	}
	for (unsigned k = 0; k < faults; k++)
		c.ends[rng_below(&r, count + 1)] =
			(int64_t)(rng_below(&r, 2) ? rng_next(&r) : INT64_MAX - rng_below(&r, 9));
	return c;
}

static void check(std::vector<column> columns, uint32_t grid, uint64_t seed)
{
	size_t n = columns.size();
	std::vector<place> places;
	std::vector<lade_ends_column> table(n);
	std::vector<lade_ends_run> runs;
	uint64_t slabs = 0;
	for (size_t k = 0; k < n; k++) {
		column &c = columns[k];
		uint64_t count = c.ends.size() - 1;
		places.push_back(place_new(8 * c.ends.size(), 8 * rng_below(&r, 3),
		                           (int)rng_below(&r, 2)));
		memcpy(places[k].data, c.ends.data(), 8 * c.ends.size());
		table[k] = {(int64_t *)places[k].data, count, slabs, LADE_ENDS_NO_FAULT,
		            (uint32_t)runs.size(), (uint32_t)c.runs.size()};
		for (uint64_t first : c.runs)
			runs.push_back({first, 77, c.most});
		slabs += (count + LADE_ENDS_SLAB - 1) / LADE_ENDS_SLAB;
	}
	lade_ends e = {table.data(), runs.data(), slabs, (uint32_t)n, 0};
	emu_config config = {.kernel = "offsets", .grid = grid, .block = LADE_ENDS_BASE_THREADS};
	config.seed = seed;
	emu_result done = emu_launch(config, [&] { lade_ends_bases(e); });
	config.block = LADE_ENDS_THREADS;
	if (done.ok)
		done = emu_launch(config, [&] { lade_ends_check(e); });
	if (done.ok)
		done = emu_launch(config, [&] { lade_ends_add(e); });
	if (!done.ok)
		fail_msg("seed %llu: %s", (unsigned long long)seed, done.message);
	for (size_t k = 0; k < n; k++) {
		column &c = columns[k];
		uint64_t fault = add_up(c); /* with a fault the ends stay */
		if (table[k].fault != fault ||
		    memcmp(places[k].data, c.ends.data(), 8 * c.ends.size()))
			fail_msg("column %zu of %zu ends, %zu runs: fault %llu, want %llu", k,
			         c.ends.size() - 1, c.runs.size(),
			         (unsigned long long)table[k].fault, (unsigned long long)fault);
		place_free(&places[k]);
	}
}

/* About a warp, a block and a slab; one run, a few, one for each end. */
static void sizes(void **state)
{
	(void)state;
	for (size_t run_most : {1000000, 50, 1})
		check({column_new(1, run_most, 0), column_new(31, run_most, 0),
		       column_new(33, run_most, 0), column_new(1024, run_most, 0),
		       column_new(1025, run_most, 0), column_new(4096, run_most, 0),
		       column_new(4097, run_most, 0), column_new(9000, run_most, 0)},
		      3, run_most);
}

static void faults(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 20; round++) {
		std::vector<column> columns;
		for (unsigned k = 0; k < 5; k++)
			columns.push_back(column_new(1 + rng_below(&r, 700),
			                             1 + rng_below(&r, 60),
			                             (unsigned)rng_below(&r, 4)));
		check(columns, 1 + (uint32_t)rng_below(&r, 4), round % 4);
	}
}

/* Sums that reach 2^63 - 1, and those that pass it. */
static void overflow(void **state)
{
	(void)state;
	for (int64_t more : {0, 1}) {
		column c;
		c.runs = {0, 2, 4};
		c.most = INT64_MAX;
		c.ends = {5, 5, 6, 0, INT64_MAX - 2, 1, 1 + more, 1 + more};
		check({c, column_new(40, 7, 0)}, 2, (uint64_t)more);
	}
}

int main(void)
{
	r.s = 20261124;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(faults),
		cmocka_unit_test(overflow),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
