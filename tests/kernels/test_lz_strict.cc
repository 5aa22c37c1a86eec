/*
 * test_lz_strict.cc: the decoding kernels on the emulated warp against the strict decoders of the
 * host: the same streams are taken, with the same bytes, and refused with the same status.
 *
 *     test_kernel_lz_strict [ROUNDS [SEED]]
 *
 * SPDX-License-Identifier: Apache-2.0
 */
/* Before the kernels' headers, whose LADE_DEVICE is a macro. */
extern "C" {
#include "codec/lz4/lz4.h"
#include "codec/snappy/snappy.h"
}

#include "kernel_test.h"

#include "codec/lz4/kernels/lz4_decode.cu"
#include "codec/snappy/kernels/snappy_decode.cu"

#include "lz_plain.h"
#include "lz_streams.h"
#include "lz_scalar.h"

static uint64_t seed = 0x57121c7, rounds = 4;

struct kernel {
	const char *name;
	bool snappy;
	unsigned threads;
	size_t shared;
	void (*run)(lade_gpu_batch batch);
};

template <class F> static constexpr size_t team16 = sizeof(lade_lz_team<F, 16>);

static const kernel kernels[] = {
	{"lz4 solo", false, 128, 0, lade_lz4_decode_solo},
	{"lz4 team4", false, 128, 0, lade_lz4_decode_team4},
	{"lz4 team8", false, 256, 0, lade_lz4_decode_team8},
	{"lz4 team16", false, 512, team16<lade_lz4>, lade_lz4_decode_team16},
	{"lz4 size", false, 128, 0, lade_lz4_size},
	{"snappy solo", true, 128, 0, lade_snappy_decode_solo},
	{"snappy team4", true, 128, 0, lade_snappy_decode_team4},
	{"snappy team8", true, 256, 0, lade_snappy_decode_team8},
	{"snappy team16", true, 512, team16<lade_snappy>, lade_snappy_decode_team16},
};

/* What the host says to a stream; lz_scalar.h and lz_plain.h must say so too. */
static lade_status host_says(bool snappy, const stream &s, bytes *out)
{
	const lade_codec_ops *by = (snappy ? lade__snappy_strict : lade__lz4_strict).codec;
	lade_run run = {};
	lade_error err;
	size_t got, plain_got;
	out->resize(s.room);
	bytes in(s.bytes, s.bytes + s.size), byte_by_byte(s.room + 1);
	lade_status status = by->run(&run, lade_host_cspan(s.bytes, s.size),
	                             lade_host_span(out->data(), s.room), &got, &err);
	lade_status want =
		snappy ? plain_snappy(in.data(), s.size, byte_by_byte.data(), s.room, &plain_got)
		       : plain_lz4(in.data(), s.size, byte_by_byte.data(), s.room, &plain_got);
	verdict scalar = snappy ? snappy_scalar(in, s.room) : lz4_scalar(in, s.room);
	out->resize(got);
	assert_int_equal(status, want);
	assert_int_equal(got, plain_got);
	assert_true(scalar.ok == (status == LADE_OK));
	assert_true(!scalar.ok || scalar.out == *out);
	return status;
}

/* What the host says where there is room for all that a stream can give: a byte of it gives 255 at
 * most. */
static lade_status size_says(const stream &s, size_t *size)
{
	static uint8_t room[STREAM_CAP * 255];
	lade_run run = {};
	return lade__lz4_strict.codec->run(&run, lade_host_cspan(s.bytes, s.size),
	                                   lade_host_span(room, sizeof room), size, NULL);
}

/* One launch over 'all'. */
static void check_batch(const kernel &k, const std::vector<stream> &all, uint64_t order)
{
	size_t n = all.size();
	std::vector<bytes> out(n), want(n);
	std::vector<const uint8_t *> src(n);
	std::vector<uint8_t *> dst(n);
	std::vector<uint64_t> sizes(n), caps(n), got(n);
	std::vector<uint32_t> status(n);
	uint32_t next = 0;
	for (size_t i = 0; i < n; i++) {
		out[i].resize(all[i].room + 1);
		src[i] = all[i].bytes;
		dst[i] = out[i].data();
		sizes[i] = all[i].size;
		caps[i] = all[i].room;
	}
	lade_gpu_batch batch = {};
	batch.src = src.data();
	batch.src_size = sizes.data();
	batch.dst = dst.data();
	batch.dst_cap = caps.data();
	batch.dst_size = got.data();
	batch.status = status.data();
	batch.next = &next;
	batch.count = (uint32_t)n;
	emu_config config = {.kernel = k.name, .grid = 2, .block = k.threads, .shared = k.shared};
	config.seed = order;
	bool only_size = k.run == lade_lz4_size;
	emu_result r = emu_launch(config, [&] { k.run(batch); });
	if (!r.ok)
		print_error("%s, order %llu: %s\n", k.name, (unsigned long long)order, r.message);
	assert_true(r.ok);
	for (size_t i = 0; i < n; i++) {
		size_t size;
		lade_status host = only_size ? size_says(all[i], &size)
		                             : host_says(k.snappy, all[i], &want[i]);
		if (!only_size)
			size = want[i].size();
		bool same = status[i] == (uint32_t)host && got[i] == size &&
		            (only_size || size == 0 || memcmp(dst[i], want[i].data(), size) == 0);
		if (same)
			continue;
		print_error("%s, order %llu, stream %zu of %zu bytes, room %zu: status %u, %llu "
		            "bytes; want %d, %zu\n",
		            k.name, (unsigned long long)order, i, all[i].size, all[i].room,
		            status[i], (unsigned long long)got[i], (int)host, size);
		for (size_t b = 0; b < all[i].size && b < 300; b++)
			print_error("%02x", all[i].bytes[b]);
		print_error("\n");
		fail();
	}
}

static void the_same_verdicts(void **)
{
	rng r = {seed};
	std::vector<stream> all(64);
	print_message("seed %llx\n", (unsigned long long)seed);
	for (const kernel &k : kernels)
		for (uint64_t round = 0; round < rounds; round++) {
			for (stream &s : all) {
				if (rng_below(&r, 2))
					stream_damaged(&r, k.snappy, &s);
				else
					stream_made(&r, k.snappy, &s);
			}
			check_batch(k, all, round);
		}
}

/* The kernel's status of one stream that the host refuses must be the host's. */
static void refused_alike(const kernel &k, const bytes &in)
{
	bytes room(64);
	const lade_codec_ops *by = (k.snappy ? lade__snappy_strict : lade__lz4_strict).codec;
	const uint8_t *src = in.data();
	uint8_t *dst = room.data();
	uint64_t size = in.size(), cap = room.size(), made = 7;
	uint32_t status = 77, next = 0;
	size_t got;
	lade_run run = {};
	lade_status host =
		by->run(&run, lade_host_cspan(src, size), lade_host_span(dst, cap), &got, NULL);
	lade_gpu_batch batch = {};
	batch.src = &src;
	batch.src_size = &size;
	batch.dst = &dst;
	batch.dst_cap = &cap;
	batch.dst_size = &made;
	batch.status = &status;
	batch.next = &next;
	batch.count = 1;
	emu_config config = {.kernel = k.name, .grid = 1, .block = k.threads, .shared = k.shared};
	assert_true(emu_launch(config, [&] { k.run(batch); }).ok);
	/* A size needs no room: what is refused is above the limit. */
	if (k.run == lade_lz4_size && host == LADE_E_NOSPACE)
		host = LADE_E_LIMIT;
	assert_int_not_equal(host, LADE_OK);
	assert_int_equal(status, host);
	assert_int_equal(made, 0);
}

/* Lengths of 2 GiB and more in LZ4, and sizes that Snappy streams tell up to 32 bits and beyond. */
static void sizes_above_the_limit(void **)
{
	const bytes told[] = {
		{0x80, 0x80, 0x80, 0x80, 0x08, 0, 'a'},
		{0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 0, 'a'},
		{0x80, 0x80, 0x80, 0x80, 0x10, 0, 'a'},
	};
	bytes match = {0x1F, 'a', 1, 0}, literals = {0xF0}, behind = {0, 0x50, 1, 2, 3, 4, 5};
	for (bytes *b : {&match, &literals}) {
		b->insert(b->end(), LADE_CHUNK_MAX / 255 + 100, 255);
		b->insert(b->end(), behind.begin(), behind.end());
	}
	/* Whatever the shape, one warp reads such lengths. */
	refused_alike(kernels[0], match);
	refused_alike(kernels[0], literals);
	for (const kernel &k : kernels) {
		if (k.run == lade_lz4_size)
			refused_alike(k, match);
		for (const bytes &in : told)
			if (k.snappy)
				refused_alike(k, in);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1)
		rounds = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 0);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_verdicts),
		cmocka_unit_test(sizes_above_the_limit),
	};
	return cmocka_run_group_tests_name("kernel_lz_strict", tests, NULL, NULL);
}
