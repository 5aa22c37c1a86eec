/*
 * test_unpack.cc: the kernel of packints, levels and cast, alone and at once, on the emulated warp,
 * against the host's decoders: any bytes, lengths, rooms and alignments, every buffer at a guard
 * page or between guard zones.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter_host.h"
#include "place.h"

#include <vector>

#include "filter/kernels/unpack.cu"

static rng r;

struct form {
	const char *spec;
	lade_unpack u;
};

/* size bits first extend front back whole ops real rooms, then min scale max. */
static const form forms[] = {
	{"packints(|b1)", {1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
	{"packints(|b1,padding=first)", {1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}},
	{"packints(<f4,first=1)", {4, 31, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
	{"packints(<f4,first=13)", {4, 19, 13, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
	{"packints(<f4,first=22)", {4, 10, 22, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
	{"packints(<u4,last=0)", {4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
	{"packints(<u4)", {4, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
	{"packints(<i2,first=2,last=12,padding=last)", {2, 11, 2, 51, 0, 1, 0, 0, 0, 0, 0, 0, 0}},
	{"packints(i1,last=4)", {1, 5, 0, 59, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
	{"packints(<i4,last=20)", {4, 21, 0, 43, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
	{"packints(<u8,first=3,last=59)", {8, 57, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
	{"packints(<i8,last=40,padding=first)", {8, 41, 0, 23, 1, 0, 0, 0, 0, 0, 0, 0, 0}},
	{"packints(<i8)", {8, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
	{"levels(bits=32,min=-1,max=3)",
         {4, 32, 0, 0, 0, 0, 4, LADE_UNPACK_LEVELS, 0, 0, -1, 4.0 / 4294967295.0, 3}},
	{"levels(bits=7,min=0.1,max=0.7)|packints(<u4,last=6)",
         {4, 7, 0, 0, 0, 0, 0, LADE_UNPACK_LEVELS, 0, 1, 0.1, (0.7 - 0.1) / 127, 0.7}},
	{"levels(bits=20,min=-1e-3,max=1e30)|packints(<u4,last=19)",
         {4, 20, 0, 0, 0, 0, 0, LADE_UNPACK_LEVELS, 0, 1, -1e-3, (1e30 - -1e-3) / 1048575, 1e30}},
	{"cast(<i8,astype=<u4)", {8, 32, 0, 0, 0, 0, 4, 0, 4, 0, 0, 0, 0}},
	{"cast(<i8,astype=<i2)", {8, 16, 0, 48, 0, 0, 2, 0, 2, 0, 0, 0, 0}},
	{"cast(<u2,astype=u1)", {2, 8, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0}},
	{"cast(<i4,astype=i1)", {4, 8, 0, 56, 0, 0, 1, 0, 1, 0, 0, 0, 0}},
	{"cast(<f4,astype=<f2)", {4, 16, 0, 0, 0, 0, 2, LADE_UNPACK_REALS, 2, 0, 0, 0, 0}},
	{"cast(<f8,astype=<f2)", {8, 16, 0, 0, 0, 0, 2, LADE_UNPACK_REALS, 2, 0, 0, 0, 0}},
	{"cast(<f8,astype=<f4)", {8, 32, 0, 0, 0, 0, 4, LADE_UNPACK_REALS, 4, 0, 0, 0, 0}},
	{"cast(<f8,astype=<f4)|packints(<f4,first=9)",
         {8, 23, 9, 0, 0, 0, 0, LADE_UNPACK_REALS, 4, 1, 0, 0, 0}},
	{"cast(<f8,astype=<f4)|levels(bits=3,min=-5,max=5)|packints(<u4,last=2)",
         {8, 3, 0, 0, 0, 0, 0, LADE_UNPACK_LEVELS | LADE_UNPACK_REALS, 4, 1, -5, 10.0 / 7, 5}},
};

struct item {
	place from, to, want;
	size_t size; /* that the host makes */
	uint32_t status;
};

/* A chunk and a room for what it gives, or for a little more or less. */
static item item_new(const form *f, size_t size)
{
	item it = {};
	size_t skew = rng_below(&r, 2) ? 4 * rng_below(&r, 4) : rng_below(&r, 16);
	size_t room = size * 8 / f->u.bits * f->u.size, align = rng_below(&r, 3);
	if (rng_below(&r, 3) == 0)
		room = rng_below(&r, room + 20);
	else if (rng_below(&r, 2))
		room += rng_below(&r, 9);
	it.from = place_new(size, skew, (int)rng_below(&r, 2));
	it.to = place_new(room, align ? f->u.size * rng_below(&r, 16) : rng_below(&r, 16),
	                  (int)rng_below(&r, 2));
	it.want = place_new(room, 0, 1);
	for (size_t i = 0; i < size; i++)
		it.from.data[i] = (uint8_t)(rng_next(&r) >> 40);
	/* The number of unused bits, sometimes a right one; special reals. */
	if (size && (f->u.front || f->u.back) && rng_below(&r, 4))
		it.from.data[f->u.front ? 0 : size - 1] =
			(uint8_t)((size - 1) * 8 % f->u.bits % 8);
	for (size_t i = 0; f->u.ops && i + 4 <= size; i += 4 * (1 + rng_below(&r, 8)))
		memset(it.from.data + i, rng_below(&r, 2) ? 0xFF : 0, rng_below(&r, 5));
	it.status = filter_host_decode(f->spec, it.from.data, size, it.want.data, room, &it.size);
	return it;
}

static void check(const form *f, std::vector<size_t> sizes, uint32_t grid, uint64_t seed)
{
	size_t n = sizes.size();
	std::vector<item> items;
	std::vector<const uint8_t *> src(n);
	std::vector<uint8_t *> dst(n);
	std::vector<uint64_t> caps(n), got(n, 77), told(n);
	std::vector<uint32_t> status(n, 77);
	for (size_t i = 0; i < n; i++) {
		items.push_back(item_new(f, sizes[i]));
		src[i] = items[i].from.data;
		dst[i] = items[i].to.data;
		told[i] = sizes[i];
		caps[i] = items[i].to.size;
	}
	lade_gpu_batch batch = {src.data(),    told.data(), dst.data(), caps.data(), got.data(),
	                        status.data(), nullptr,     nullptr,    (uint32_t)n};
	emu_config config = {.kernel = "unpack", .grid = grid, .block = 128};
	config.seed = seed;
	emu_result done = emu_launch(config, [&] { lade_unpack_decode(batch, f->u); });
	if (!done.ok)
		fail_msg("%s, seed %llu: %s", f->spec, (unsigned long long)seed, done.message);
	for (size_t i = 0; i < n; i++) {
		item &it = items[i];
		if (status[i] != it.status || got[i] != it.size ||
		    (it.size && memcmp(dst[i], it.want.data, it.size)))
			fail_msg("%s: %zu bytes at %p to %p, room %zu: status %u and %zu bytes, "
			         "the host has %u and %zu",
			         f->spec, sizes[i], (const void *)src[i], (void *)dst[i],
			         it.to.size, status[i], (size_t)got[i], it.status, it.size);
		place_free(&it.from);
		place_free(&it.to);
		place_free(&it.want);
	}
}

/* ---- tests --------------------------------------------------------------------------------- */

static void every_size(void **state)
{
	(void)state;
	for (const form &f : forms) {
		std::vector<size_t> sizes;
		for (size_t n = 0; n < 40; n++)
			sizes.push_back(n);
		check(&f, sizes, 3, 0);
		check(&f, {511, 512, 513, 2048, 4100}, 2, 1);
	}
}

static void any_chunk(void **state)
{
	(void)state;
	r.s = (uint64_t)getpid() * 2654435761u + 1;
	printf("seed %llu\n", (unsigned long long)r.s);
	for (unsigned round = 0; round < 30; round++)
		for (const form &f : forms) {
			std::vector<size_t> sizes;
			for (unsigned i = 0; i < 6; i++)
				sizes.push_back(rng_below(&r, round ? 300 : 3000));
			check(&f, sizes, 1 + (uint32_t)rng_below(&r, 4), round);
		}
}

/* What cannot be done has its verdict; nothing is written. */
static void verdicts(void **state)
{
	(void)state;
	std::vector<uint8_t> in(400, 0x5A), out(400, 0xEE);
	const uint8_t *src[5] = {in.data(), in.data(), nullptr, in.data(), in.data()};
	uint64_t sizes[5] = {16, 1ull << 40, 8, 16, 10}, caps[5] = {32, 32, 32, 31, 400};
	uint8_t *dst[5] = {out.data(), out.data(), out.data(), out.data(), out.data()};
	uint64_t got[5];
	uint32_t status[5] = {LADE_GPU_CORRUPT, 0, 0, 0, 0};
	const uint32_t want[5] = {LADE_GPU_CORRUPT, LADE_GPU_LIMIT, LADE_GPU_ARG, LADE_GPU_NOSPACE,
	                          LADE_GPU_CORRUPT};
	lade_gpu_batch batch = {src, sizes, dst, caps, got, status, status, nullptr, 5};
	emu_config config = {.kernel = "verdicts", .grid = 2, .block = 128};
	lade_unpack u = {8, 32, 0, 0, 0, 0, 4, 0, 4, 0, 0, 0, 0};
	assert_true(emu_launch(config, [&] { lade_unpack_decode(batch, u); }).ok);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(status[i], want[i]);
		assert_int_equal(got[i], 0);
	}
	for (uint8_t b : out)
		assert_int_equal(b, 0xEE);
}

int main(void)
{
	r.s = 20261124;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_size),
		cmocka_unit_test(any_chunk),
		cmocka_unit_test(verdicts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
