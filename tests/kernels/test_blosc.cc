/*
 * test_blosc.cc: the kernels of Blosc1 containers on the emulated warp against the host's decoder:
 * what c-blosc writes with all its codecs, shuffles and sizes of elements and blocks, and damaged
 * containers, every buffer at a guard page.
 *
 *     test_kernel_blosc [ROUNDS]      of 40 damaged containers, 12 without
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernel_test.h"
#include "guard.h"

#include "codec/blosc/kernels/blosc_plan.cu"

#include "codec/blosc/kernels/blosc_lz4.cu"
#include "codec/blosc/kernels/blosc_snappy.cu"
#include "codec/blosc/kernels/blosc_zlib.cu"
#include "codec/blosc/kernels/blosc_zstd.cu"

#include <blosc.h>

#include "blosc_host.h"
#include "guarded_batch.h"

static const char *const cnames[] = {"blosclz", "lz4", "snappy", "zlib", "zstd"};

/* What the host's decoder says. */
struct host_verdict {
	uint32_t status;
	bytes out;
};

static host_verdict host(const bytes &in, uint64_t cap)
{
	host_verdict v = {0, bytes(cap + 1)};
	size_t size = 0;
	v.status = blosc_host_decode(in.data(), in.size(), v.out.data(), cap, &size);
	v.out.resize(v.status == LADE_GPU_OK ? size : 0);
	return v;
}

template <typename F>
static void launch(const char *name, unsigned grid, unsigned block, uint64_t seed, F body,
                   size_t shared = 0)
{
	emu_config config = {.kernel = name, .grid = grid, .block = block};
	config.shared = shared;
	config.seed = seed;
	config.resident = grid;
	emu_result r = emu_launch(config, body);
	if (!r.ok)
		print_error("seed %llu: %s\n", (unsigned long long)seed, r.message);
	assert_true(r.ok);
}

static uint32_t largest = LADE_CHUNK_MAX; /* what the caller says */

/* Blocks that the kernels have had, by list. */
static size_t blocks[LADE_BLOSC_LISTS];

/* The kernels that gpu.c launches, in shapes chosen by the seed; with too little scratch memory by
 * 'missing' bytes. */
static void run(guarded_batch &t, const std::vector<uint64_t> &caps, uint64_t seed,
                uint64_t missing)
{
	size_t n = t.src.size();
	uint64_t room = 0;
	for (uint64_t cap : caps)
		room += cap + LADE_BLOSC_ROOM;
	room -= missing < room ? missing : room;
	guard scratch = guard_new(room, 1), zlib = guard_new(2 * 64 * LADE_DEFLATE_LANE_MAX, 1);
	guard zstd = guard_new(2 * LADE_ZSTD_LITERALS_MAX, 1);
	std::vector<lade_blosc_chunk> chunks(n);
	std::vector<uint32_t> first(LADE_BLOSC_LISTS * n), units(LADE_BLOSC_LISTS, 77),
		next(LADE_BLOSC_LISTS, 77);
	/* Streams are units where there are counters: none, for some blocks, for all. */
	static const uint32_t counts[] = {0, 3, 4096};
	std::vector<uint32_t> counters(counts[seed % 3], 77);
	lade_blosc_plan p = {};
	p.chunk = chunks.data();
	p.first = first.data();
	p.units = units.data();
	p.next = next.data();
	p.counter = counters.data();
	p.counters = counts[seed % 3];
	p.scratch = scratch.data;
	p.scratch_size = room;
	p.dst_size = t.got.data();
	p.status = t.status.data();
	p.count = (uint32_t)n;
	p.largest = largest;
	lade_deflate_room d = {zlib.data, LADE_DEFLATE_LANE_MAX, LADE_DEFLATE_WORDS(2),
	                       LADE_DEFLATE_ZLIB, 0};
	lade_zstd_room z = {zstd.data, LADE_ZSTD_LITERALS_MAX, (uint32_t)seed & 1};
	t.batch.next = nullptr;
	launch("plan", 1, 1024, seed % 2, [&] { lade_blosc_find_blocks(t.batch, p); });
	launch("plain", 2, 128, seed, [&] { lade_blosc_plain(p); });
	if (seed % 4 == 0)
		launch("lz4", 2, 128, seed, [&] { lade_blosc_lz4_solo(p); });
	else if (seed % 4 == 1)
		launch("lz4", 2, 128, seed, [&] { lade_blosc_lz4_team4(p); });
	else if (seed % 4 == 2)
		launch("lz4", 2, 256, seed, [&] { lade_blosc_lz4_team8(p); });
	else
		launch(
			"lz4", 1, 512, seed, [&] { lade_blosc_lz4_team16(p); },
			LADE_LZ4_TEAM16_SHARED);
	if (seed % 2)
		launch("snappy", 2, 128, seed, [&] { lade_blosc_snappy_solo(p); });
	else
		launch("snappy", 2, 256, seed, [&] { lade_blosc_snappy_team8(p); });
	launch("zlib", 2, 64, seed, [&] { lade_blosc_zlib_team(p, d); });
	launch("zstd", 2, LADE_ZSTD_THREADS, seed, [&] { lade_blosc_zstd_team(p, z); });
	/* Fewer warps than chunks, or many for each. */
	unsigned grid = seed % 3 ? (unsigned)n : 1;
	launch("unshuffle", grid, 128, seed, [&] { lade_blosc_unshuffle_all(p); });
	for (uint32_t list = 0; list < LADE_BLOSC_LISTS; list++)
		blocks[list] += units[list];
	guard_free(&scratch);
	guard_free(&zlib);
	guard_free(&zstd);
}

/* Containers that the host takes and the kernels do not, and the other way; by codec. */
struct differences {
	size_t all, taken, stricter[8], laxer[8];
};

static void check_batch(const std::vector<bytes> &in, const std::vector<uint64_t> &caps,
                        uint64_t seed, differences *d)
{
	guarded_batch t(in, caps, seed);
	run(t, caps, seed, 0);
	std::vector<uint64_t> size(in.size(), 77);
	std::vector<uint32_t> said(in.size(), 77);
	lade_gpu_batch sizes = t.batch;
	sizes.dst_size = size.data();
	sizes.status = said.data();
	launch("size", (unsigned)(in.size() + 127) / 128, 128, seed,
	       [&] { lade_blosc_size(sizes); });
	for (size_t i = 0; i < in.size(); i++) {
		host_verdict want = host(in[i], caps[i]);
		bool ok = t.status[i] == LADE_GPU_OK, same = want.status == t.status[i];
		unsigned codec = in[i].size() > 2 ? in[i][2] >> 5 : 0;
		if (ok && same)
			same = t.got[i] == want.out.size() && size[i] == t.got[i] &&
			       (t.got[i] == 0 ||
			        memcmp(t.to[i].data, want.out.data(), t.got[i]) == 0);
		if (d) {
			d->all++;
			d->taken += ok;
			d->stricter[codec] += want.status == LADE_GPU_OK && !ok;
			d->laxer[codec] += ok && want.status != LADE_GPU_OK;
			same |= ok != (want.status == LADE_GPU_OK);
		}
		if (!same)
			print_error(
				"seed %llu, container %zu of %zu bytes, room for %llu, codec %u, "
				"flags %02x, elements of %u: status %u, %llu bytes; want %u, %zu\n",
				(unsigned long long)seed, i, in[i].size(),
				(unsigned long long)caps[i], codec, in[i][2], in[i][3], t.status[i],
				(unsigned long long)t.got[i], want.status, want.out.size());
		assert_true(same);
		assert_true(said[i] == t.status[i] || !ok);
		if (!ok)
			assert_int_equal(t.got[i], 0);
	}
}

/* Elements whose bytes differ in their regularity. */
static bytes make_elements(rng *r, size_t size, size_t typesize)
{
	bytes raw = make_data(r, size);
	if (rng_below(r, 3))
		for (size_t i = 0; i < size; i++)
			raw[i] = i % typesize == 0
			                 ? (uint8_t)rng_next(r)
			                 : (uint8_t)(i / typesize / (40 * (i % typesize)));
	return raw;
}

static bytes encode(const bytes &raw, const char *cname, int level, int shuffle, size_t typesize,
                    size_t blocksize)
{
	bytes out(raw.size() + BLOSC_MAX_OVERHEAD);
	int n = blosc_compress_ctx(level, shuffle, typesize, raw.size(), raw.data(), out.data(),
	                           out.size(), cname, blocksize, 1);
	assert_true(n > 0);
	out.resize((size_t)n);
	return out;
}

static void what_c_blosc_encodes(void **)
{
	static const size_t typesizes[] = {1, 2, 3, 4, 5, 8, 12, 16, 17, 33, 255};
	static const size_t sizes[] = {0, 1, 15, 127, 128, 600, 1024, 3001, 4096, 8232};
	static const size_t blocksizes[] = {0, 0, 200, 512, 1024, 2056, 4096};
	static const int levels[] = {0, 1, 3, 5, 9};
	rng r = {0x1234567};
	uint64_t seed = 0;
	for (size_t typesize : typesizes)
		for (int shuffle = 0; shuffle < 3; shuffle++) {
			std::vector<bytes> in;
			std::vector<uint64_t> caps;
			for (size_t size : sizes) {
				const char *cname = cnames[rng_below(&r, 5)];
				bytes raw = make_elements(&r, size, typesize);
				in.push_back(encode(raw, cname, levels[rng_below(&r, 5)], shuffle,
				                    typesize, blocksizes[rng_below(&r, 7)]));
				caps.push_back(size + rng_below(&r, 2) * rng_below(&r, 30));
				if (size % 2) { /* and where there is a byte too little */
					in.push_back(in.back());
					caps.push_back(size - 1);
				}
			}
			check_batch(in, caps, seed++, nullptr);
		}
	for (size_t count : blocks)
		assert_true(count > 50);
}

/* More chunks than the plan takes in one turn, most of them bad or empty. */
static void many_chunks(void **)
{
	rng r = {0x7777};
	std::vector<bytes> in;
	std::vector<uint64_t> caps;
	for (size_t i = 0; i < 5000; i++) {
		size_t size = i % 40 ? 0 : 300;
		in.push_back(encode(make_elements(&r, size, 4), cnames[i / 40 % 5], 5, 1, 4, 256));
		caps.push_back(size);
		if (i % 7 == 0)
			in.back().pop_back();
	}
	check_batch(in, caps, 3, nullptr);
}

/* Scratch memory that is too small fails the chunks that have none; and chunks are above the
 * largest that the caller names. */
static void little_scratch(void **)
{
	std::vector<bytes> in;
	std::vector<uint64_t> caps(3, 1000);
	for (int i = 0; i < 3; i++)
		in.push_back(encode(bytes(1000, (uint8_t)i), "lz4", 5, 1, 4, 0));
	guarded_batch t(in, caps, 0);
	run(t, caps, 0, 1000);
	assert_int_equal(t.status[0], LADE_GPU_OK);
	assert_int_equal(t.status[1], LADE_GPU_OK);
	assert_int_equal(t.status[2], LADE_GPU_NOSPACE);
	largest = 999;
	guarded_batch again(in, caps, 0);
	run(again, caps, 0, 0);
	assert_int_equal(again.status[0], LADE_GPU_LIMIT);
	largest = LADE_CHUNK_MAX;
}

static void put32(bytes *s, size_t at, uint32_t v)
{
	for (size_t k = 0; k < 4 && at + k < s->size(); k++)
		(*s)[at + k] = (uint8_t)(v >> (8 * k));
}

/* Damages a container: often in its header, its table of blocks, and the sizes of streams. */
static void damage(rng *r, bytes *s)
{
	for (uint64_t n = 1 + rng_below(r, 3); n > 0 && !s->empty(); n--) {
		uint64_t kind = rng_below(r, 8), at = rng_below(r, s->size());
		if (kind == 0) {
			s->resize(rng_below(r, s->size()) + rng_below(r, 2));
			if (rng_below(r, 2))
				put32(s, 12, (uint32_t)s->size());
		} else if (kind == 1) {
			put32(s, 16 + 4 * rng_below(r, 4), (uint32_t)rng_below(r, s->size() + 9));
		} else if (kind == 2) {
			static const uint32_t odd[] = {0, 1, 3, 16, 128, 1000, 0x7FFFFFFF, ~0u};
			put32(s, 4 * rng_below(r, 8), odd[rng_below(r, 8)]);
		} else if (kind == 3 && s->size() > 16) {
			(*s)[2 + rng_below(r, 2)] ^= (uint8_t)(1 << rng_below(r, 8));
		} else if (kind == 4) {
			(*s)[rng_below(r, s->size() < 40 ? s->size() : 40)] ^=
				(uint8_t)(1 << rng_below(r, 8));
		} else {
			(*s)[at] = kind == 5 ? (uint8_t)rng_next(r)
			                     : (uint8_t)((*s)[at] ^ 1 << rng_below(r, 8));
		}
	}
}

static size_t rounds = 12;

static void damaged_containers(void **)
{
	rng r = {0xDA3A6E};
	differences d = {};
	for (uint64_t seed = 0; seed < rounds; seed++) {
		std::vector<bytes> in;
		std::vector<uint64_t> caps;
		for (int k = 0; k < 40; k++) {
			size_t size = 1 + rng_below(&r, 3000), typesize = 1 + rng_below(&r, 9);
			bytes raw = make_elements(&r, size, typesize);
			in.push_back(encode(raw, cnames[k % 5], 1 + (int)rng_below(&r, 9),
			                    (int)rng_below(&r, 3), typesize,
			                    rng_below(&r, 2) * 512));
			caps.push_back(size);
			damage(&r, &in.back());
		}
		check_batch(in, caps, seed, &d);
	}
	print_message("%zu damaged containers, %zu taken;", d.all, d.taken);
	for (unsigned k = 0; k < 5; k++)
		print_message(" %s: %zu refused that the host takes, %zu the other way;", cnames[k],
		              d.stricter[k], d.laxer[k]);
	print_message("\n");
	/* docs/verdicts.md has the others. */
	assert_int_equal(d.stricter[0] + d.laxer[0] + d.stricter[2] + d.laxer[2], 0);
	assert_int_equal(d.laxer[3] + d.laxer[4], 0);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		rounds = (size_t)atol(argv[1]);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_c_blosc_encodes),
		cmocka_unit_test(many_chunks),
		cmocka_unit_test(little_scratch),
		cmocka_unit_test(damaged_containers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
