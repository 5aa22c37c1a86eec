/*
 * test_lz_strict.cc: the decoding kernels on the emulated warp against the strict decoders of the
 * host: the same streams are taken and refused, with the same bytes.  How many are refused with
 * another status is printed.
 *
 *     test_kernel_lz_strict [ROUNDS [SEED]]
 *
 * SPDX-License-Identifier: Apache-2.0
 */
/* Before the kernels' headers, whose LADE_DEVICE is a macro. */
extern "C" {
#include "codec/codecs.h"
}

#include "kernel_test.h"

#include "cuda/lz4_decode.cu"
#include "cuda/snappy_decode.cu"

#include "lz_plain.h"
#include "lz_streams.h"
#include "lz_scalar.h"

static uint64_t seed = 0x57121c7, rounds = 5;
static size_t refused, other_status;

struct kernel {
	const char *name;
	bool snappy;
	unsigned threads;
	void (*run)(lade_gpu_batch batch);
};

static const kernel kernels[] = {
	{"lz4 solo", false, 128, lade_lz4_decode_solo},
	{"lz4 team4", false, 128, lade_lz4_decode_team4},
	{"lz4 team8", false, 256, lade_lz4_decode_team8},
	{"snappy solo", true, 128, lade_snappy_decode_solo},
	{"snappy team4", true, 128, lade_snappy_decode_team4},
	{"snappy team8", true, 256, lade_snappy_decode_team8},
};

/* What the host says to a stream; lz_scalar.h and lz_plain.h must say so too. */
static lade_status host_says(bool snappy, const stream &s, bytes *out)
{
	const lade_implementation *by = snappy ? &lade__snappy_strict : &lade__lz4_strict;
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
	emu_config config = {.kernel = k.name, .grid = 2, .block = k.threads};
	config.seed = order;
	emu_result r = emu_launch(config, [&] { k.run(batch); });
	if (!r.ok)
		print_error("%s, order %llu: %s\n", k.name, (unsigned long long)order, r.message);
	assert_true(r.ok);
	for (size_t i = 0; i < n; i++) {
		lade_status host = host_says(k.snappy, all[i], &want[i]);
		refused += host != LADE_OK;
		other_status += status[i] != (uint32_t)host;
		bool same = (status[i] == LADE_GPU_OK) == (host == LADE_OK) &&
		            got[i] == want[i].size() &&
		            (got[i] == 0 || memcmp(dst[i], want[i].data(), got[i]) == 0);
		if (same)
			continue;
		print_error("%s, order %llu, stream %zu of %zu bytes, room %zu: status %u, %llu "
		            "bytes; want %d, %zu\n",
		            k.name, (unsigned long long)order, i, all[i].size, all[i].room,
		            status[i], (unsigned long long)got[i], (int)host, want[i].size());
		for (size_t b = 0; b < all[i].size && b < 300; b++)
			print_error("%02x", all[i].bytes[b]);
		print_error("\n");
		fail();
	}
}

static void the_same_verdicts(void **)
{
	rng r = {seed};
	refused = other_status = 0;
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
	print_message("%zu streams are refused, %zu with another status\n", refused, other_status);
}

/* A block with a match of more than 1 GiB, and sizes that streams tell up to 32 bits and beyond: the
 * status of each, by the host and by the kernel. */
static void sizes_above_a_gibibyte(void **)
{
	static const uint8_t told[][7] = {
		{0x81, 0x80, 0x80, 0x80, 0x04, 0, 'a'},
		{0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 0, 'a'},
		{0x80, 0x80, 0x80, 0x80, 0x10, 0, 'a'},
	};
	bytes block = {0x1F, 'a', 1, 0}, room(64);
	other_status = 0;
	block.insert(block.end(), (1u << 30) / 255 + 100, 255);
	block.insert(block.end(), {0, 0x50, 1, 2, 3, 4, 5});
	for (int i = 0; i < 4; i++) {
		const kernel &k = i ? kernels[3] : kernels[0];
		bytes in = i ? bytes(told[i - 1], told[i - 1] + 7) : block;
		const lade_implementation *by = i ? &lade__snappy_strict : &lade__lz4_strict;
		const uint8_t *src = in.data();
		uint8_t *dst = room.data();
		uint64_t size = in.size(), cap = room.size(), made = 7;
		uint32_t status = 77, next = 0;
		size_t got;
		lade_run run = {};
		lade_status host = by->run(&run, lade_host_cspan(src, size),
		                           lade_host_span(dst, cap), &got, NULL);
		lade_gpu_batch batch = {};
		batch.src = &src;
		batch.src_size = &size;
		batch.dst = &dst;
		batch.dst_cap = &cap;
		batch.dst_size = &made;
		batch.status = &status;
		batch.next = &next;
		batch.count = 1;
		emu_config config = {.kernel = k.name, .grid = 1, .block = k.threads};
		assert_true(emu_launch(config, [&] { k.run(batch); }).ok);
		assert_true(host != LADE_OK && status != LADE_GPU_OK && made == 0);
		other_status += status != (uint32_t)host;
	}
	print_message("%zu of 4 streams are refused with another status\n", other_status);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		rounds = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 0);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_verdicts),
		cmocka_unit_test(sizes_above_a_gibibyte),
	};
	return cmocka_run_group_tests_name("kernel_lz_strict", tests, NULL, NULL);
}
