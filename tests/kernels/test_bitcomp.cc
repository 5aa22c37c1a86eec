/*
 * test_bitcomp.cc: the kernels of bitcomp on the emulated warp against the host's codec and a
 * decoder that follows the format value by value: chunks of any modes and lengths, damaged ones, at
 * any address, each buffer at a guard page.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/lade.h>

#include "kernel_test.h"
#include "bitcomp_kit.h"

#include "codec/bitcomp/kernels/bitcomp_decode.cu"
#include "codec/bitcomp/kernels/bitcomp_encode.cu"

#include <vector>

typedef std::vector<uint8_t> bytes;

/* A buffer of 'size' bytes, 'skew' bytes behind a guard page or right before one. */
struct place {
	guard g;
	uint8_t *data;
};

static place place_new(size_t size, size_t skew, int at_end)
{
	place p = {guard_new(size + skew, at_end), nullptr};
	p.data = p.g.data + (at_end ? 0 : skew);
	return p;
}

/* ---- decoding -------------------------------------------------------------------------------- */

/* Decodes on the emulated warp, and wants what the reference gives, verdicts included. */
static void decode(const std::vector<bytes> &chunks, const std::vector<size_t> &room, uint32_t team,
                   uint32_t spans, uint64_t seed, rng *r)
{
	size_t n = chunks.size();
	std::vector<place> from(n), to(n);
	std::vector<const uint8_t *> src(n);
	std::vector<uint8_t *> dst(n);
	std::vector<uint64_t> sizes(n), caps(n), got(n, 77), told(n, 77);
	std::vector<uint32_t> status(n, 77), told_status(n, 77), state(n, 0);
	for (size_t i = 0; i < n; i++) {
		int at_end = (int)rng_below(r, 2);
		from[i] = place_new(chunks[i].size(), rng_below(r, 2) * rng_below(r, 32), at_end);
		to[i] = place_new(room[i], rng_below(r, 2) * rng_below(r, 32), !at_end);
		if (chunks[i].size())
			memcpy(from[i].data, chunks[i].data(), chunks[i].size());
		src[i] = from[i].data;
		dst[i] = to[i].data;
		sizes[i] = chunks[i].size();
		caps[i] = room[i];
	}
	lade_gpu_batch batch = {src.data(),    sizes.data(), dst.data(), caps.data(), got.data(),
	                        status.data(), nullptr,      nullptr,    (uint32_t)n};
	uint32_t teams = team < LADE_BITCOMP_WARPS ? LADE_BITCOMP_WARPS / team : 1;
	emu_config config = {.kernel = "lade_bitcomp_decode",
	                     .grid = (unsigned)((n + teams - 1) / teams) * spans,
	                     .block = 32 * LADE_BITCOMP_WARPS,
	                     .shared = LADE_BITCOMP_DECODE_SHARED};
	if (team > LADE_BITCOMP_WARPS) {
		config.kernel = "lade_bitcomp_decode_few";
		config.grid = (unsigned)n;
		config.block = 32 * team;
		config.shared = LADE_BITCOMP_FEW_SHARED;
	}
	config.seed = seed;
	emu_result done = emu_launch(config, [&] {
		if (team > LADE_BITCOMP_WARPS)
			lade_bitcomp_decode_few(batch);
		else
			lade_bitcomp_decode(batch, team == 8 ? 3 : team / 2, spans,
			                    team == 8 && spans == 1 ? 2 : 0, state.data());
	});
	if (!done.ok)
		print_error("seed %llu: %s\n", (unsigned long long)seed, done.message);
	assert_true(done.ok);
	batch.dst_size = told.data();
	batch.status = told_status.data();
	config = {.kernel = "lade_bitcomp_size", .block = 32};
	config.grid = (unsigned)(n + 31) / 32;
	assert_true(emu_launch(config, [&] { lade_bitcomp_size(batch); }).ok);
	for (size_t i = 0; i < n; i++) {
		bytes want(room[i] + 1);
		size_t expected;
		lade_status verdict = kit_decode(chunks[i].data(), chunks[i].size(), want.data(),
		                                 room[i], &expected);
		if (status[i] != (uint32_t)verdict || got[i] != expected)
			fail_msg("chunk %zu of %zu bytes into %zu: status %u and %llu bytes, want "
			         "%d and %zu",
			         i, chunks[i].size(), room[i], status[i],
			         (unsigned long long)got[i], (int)verdict, expected);
		if (verdict == LADE_OK && expected && memcmp(dst[i], want.data(), expected)) {
			size_t at = 0;
			while (dst[i][at] == want[at])
				at++;
			fail_msg("chunk %zu of %zu bytes into %zu (kind %02x): byte %zu is %02x, "
			         "want %02x",
			         i, chunks[i].size(), expected, chunks[i][2], at, dst[i][at],
			         want[at]);
		}
		if (verdict == LADE_OK) {
			assert_int_equal(told_status[i], LADE_GPU_OK);
			assert_int_equal(told[i], expected);
		}
		guard_free(&from[i].g);
		guard_free(&to[i].g);
	}
}

static bytes any_chunk(unsigned log, unsigned quant, size_t size, rng *r)
{
	bytes chunk(size + 4096);
	chunk.resize(kit_any_chunk(log, quant, size, chunk.data(), r));
	return chunk;
}

static size_t any_size(rng *r, size_t most)
{
	static const size_t near[] = {0, 16, 512, 1024, 8192};
	return rng_below(r, 2) ? rng_below(r, most) : near[rng_below(r, 5)] + rng_below(r, 9);
}

static void any_chunks(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 6; seed++) {
		rng r = {20261200 + seed};
		std::vector<bytes> chunks;
		std::vector<size_t> room;
		for (unsigned i = 0; i < 24; i++) {
			size_t size = any_size(&r, i % 8 == 0 ? 20000 : 3000);
			unsigned log = i % 4;
			chunks.push_back(any_chunk(log, log && i % 3 == 0 ? 1 + i / 3 % 2 : 0, size,
			                           &r));
			room.push_back(size + rng_below(&r, 2) * 10);
		}
		uint32_t team = 1u << seed % 4;
		decode(chunks, room, team, team == 8 ? 1 + (uint32_t)(seed / 4) : 1, seed, &r);
		decode(chunks, room, 16, 1, seed, &r);
	}
}

static void damaged_chunks(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 3; seed++) {
		rng r = {20261300 + seed};
		std::vector<bytes> chunks;
		std::vector<size_t> room;
		for (unsigned i = 0; i < 150; i++) {
			size_t size = i % 10 ? rng_below(&r, 700) : 8000 + rng_below(&r, 2000);
			unsigned log = i % 4;
			bytes chunk =
				any_chunk(log, log && i % 5 == 0 ? 1 + i / 5 % 2 : 0, size, &r);
			chunk.resize(kit_damage(chunk.data(), chunk.size(), &r));
			chunks.push_back(chunk);
			room.push_back(i % 9 ? size : rng_below(&r, size + 1));
		}
		decode(chunks, room, 4, 1, seed, &r);
		decode(chunks, room, 8, 1, seed, &r);
		decode(chunks, room, 16, 1, seed, &r);
	}
}

/* Values of the bytes that a chunk's and a sub-block's headers begin with. */
static void header_values(void **state)
{
	(void)state;
	rng r = {20261350};
	/* With one width, with unit widths, with a dictionary, with a mask. */
	for (unsigned i = 0; i < 10; i++) {
		unsigned log = i % 4, with = i < 4 ? 0 : i < 8 ? 16 : i == 8 ? 32 : 64;
		std::vector<bytes> chunks;
		bytes chunk;
		do
			chunk = any_chunk(log, 0, 700, &r);
		while (chunk.size() == 32 + kit_up(700) || (chunk[32] & (with | 80)) != with);
		for (size_t at = 0; at < 36; at += at == 7 ? 25 : 1)
			for (unsigned value : {0u, 1u, 2u, 3u, 4u, 7u, 8u, 9u, 16u, 17u, 32u, 33u,
			                       64u, 65u, 128u, 255u}) {
				chunks.push_back(chunk);
				chunks.back()[at] = (uint8_t)value;
			}
		decode(chunks, std::vector<size_t>(chunks.size(), 700), 1, 1, log, &r);
	}
}

/* A chunk that several blocks share, with something wrong in one sub-block or nowhere. */
static void shared_chunks(void **state)
{
	(void)state;
	rng r = {20261400};
	std::vector<bytes> chunks;
	for (unsigned i = 0; i < 3; i++) {
		chunks.push_back(any_chunk(i + 1, 0, 100000 + i, &r));
		if (i == 1)
			chunks[i][16 + 4 * 11] ^= 1;
	}
	decode(chunks, {100000, 100001, 100002}, 8, 2, 3, &r);
	decode(chunks, {100000, 100001, 100002}, 8, 1, 3, &r);
	decode(chunks, {100000, 100001, 100002}, 16, 1, 3, &r);
}

/* Chunks that a block has in shared memory as a whole, lossy ones too: stored sub-blocks of these
 * are made reals again, so that they must not go out by stores that come later. */
static void whole_chunks(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 3; seed++) {
		rng r = {20261450 + seed};
		std::vector<bytes> chunks;
		std::vector<size_t> room;
		for (unsigned i = 0; i < 8; i++) {
			size_t size = i % 2 ? 40960 + 16 * rng_below(&r, 1536)
			                    : 32769 + rng_below(&r, 32768);
			chunks.push_back(any_chunk(1 + i % 3, i / 3, size, &r));
			room.push_back(size);
		}
		decode(chunks, room, 16, 1, seed, &r);
	}
}

/* ---- encoding -------------------------------------------------------------------------------- */

struct form {
	const char *spec;
	lade_bitcomp_how how;
};

static const form forms[] = {
	{"bitcomp", {0, 0, 0, 0, 0, 0}},
	{"bitcomp(|i1)", {0, 1, 0, 0, 0, 0}},
	{"bitcomp(<u2)", {1, 0, 0, 0, 0, 0}},
	{"bitcomp(<i2)", {1, 1, 0, 0, 0, 0}},
	{"bitcomp(<f4)", {2, 0, 0, 0, 0, 1}},
	{"bitcomp(<i4)", {2, 1, 0, 0, 0, 0}},
	{"bitcomp(<u8)", {3, 0, 0, 0, 0, 0}},
	{"bitcomp(<i8)", {3, 1, 0, 0, 0, 0}},
	{"bitcomp(<f8)", {3, 0, 0, 0, 0, 1}},
	{"bitcomp(|u1,algorithm=sparse)", {0, 0, 1, 0, 0, 0}},
	{"bitcomp(<i4,algorithm=sparse)", {2, 1, 1, 0, 0, 0}},
	{"bitcomp(<f2,mode=lossy_signed,delta=0.25)", {1, 1, 0, 1, -2, 0}},
	{"bitcomp(<f4,mode=lossy_unsigned,delta=0.001)", {2, 0, 0, 2, -10, 0}},
	{"bitcomp(<f8,mode=lossy_signed,delta=3)", {3, 1, 0, 1, 1, 0}},
};

/* What the host makes of it. */
static bytes host_encode(const char *text, const bytes &data)
{
	lade_spec *spec;
	lade_error err;
	bytes out(data.size() + data.size() / 1000 + 64);
	size_t size;
	assert_int_equal(lade_spec_parse(nullptr, text, &spec, &err), LADE_OK);
	if (lade_encode(lade_engine_default(), spec, lade_host_cspan(data.data(), data.size()),
	                lade_host_span(out.data(), out.size()), &size, &err) != LADE_OK)
		fail_msg("%s: %s", text, err.message);
	out.resize(size);
	lade_spec_unref(spec);
	return out;
}

/*
 * Encodes on the emulated warp into exactly the room that is needed, now and then one byte less,
 * and wants the host's bytes.
 */
static void encode(const form &f, const std::vector<bytes> &data, uint32_t team, uint64_t seed,
                   rng *r)
{
	size_t n = data.size();
	std::vector<bytes> want;
	std::vector<place> from(n), to(n);
	std::vector<const uint8_t *> src(n);
	std::vector<uint8_t *> dst(n);
	std::vector<uint64_t> sizes(n), caps(n), got(n, 77);
	std::vector<uint32_t> status(n, 77);
	for (size_t i = 0; i < n; i++) {
		int at_end = (int)rng_below(r, 2);
		want.push_back(host_encode(f.spec, data[i]));
		sizes[i] = data[i].size();
		caps[i] = want[i].size() - (rng_below(r, 8) == 0);
		from[i] = place_new(sizes[i], rng_below(r, 2) * rng_below(r, 32), at_end);
		to[i] = place_new(caps[i], rng_below(r, 2) * rng_below(r, 32), !at_end);
		if (sizes[i])
			memcpy(from[i].data, data[i].data(), sizes[i]);
		src[i] = from[i].data;
		dst[i] = to[i].data;
	}
	lade_gpu_batch batch = {src.data(),    sizes.data(), dst.data(), caps.data(), got.data(),
	                        status.data(), nullptr,      nullptr,    (uint32_t)n};
	uint32_t teams = LADE_BITCOMP_WARPS / team;
	emu_config config = {.kernel = "lade_bitcomp_encode",
	                     .grid = (unsigned)((n + teams - 1) / teams),
	                     .block = 32 * LADE_BITCOMP_WARPS,
	                     .shared = LADE_BITCOMP_ENCODE_SHARED};
	config.seed = seed;
	emu_result done = emu_launch(
		config, [&] { lade_bitcomp_encode(batch, f.how, team == 8 ? 3 : team / 2); });
	if (!done.ok)
		print_error("%s, seed %llu: %s\n", f.spec, (unsigned long long)seed, done.message);
	assert_true(done.ok);
	for (size_t i = 0; i < n; i++) {
		bool fits = caps[i] == want[i].size();
		if (status[i] != (fits ? LADE_GPU_OK : LADE_GPU_NOSPACE) ||
		    got[i] != (fits ? want[i].size() : 0))
			fail_msg("%s: chunk %zu of %zu bytes: status %u and %llu bytes, want %zu",
			         f.spec, i, data[i].size(), status[i], (unsigned long long)got[i],
			         want[i].size());
		if (fits && memcmp(dst[i], want[i].data(), want[i].size())) {
			size_t at = 0;
			while (dst[i][at] == want[i][at])
				at++;
			fail_msg("%s: chunk %zu of %zu bytes: byte %zu of %zu is %02x, want %02x",
			         f.spec, i, data[i].size(), at, want[i].size(), dst[i][at],
			         want[i][at]);
		}
		guard_free(&from[i].g);
		guard_free(&to[i].g);
	}
}

static void encoders_agree(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
		rng r = {20261500 + k};
		std::vector<bytes> data;
		for (unsigned i = 0; i < 2 * KIT_KINDS; i++) {
			data.emplace_back(any_size(&r, i < KIT_KINDS ? 2000 : 9000));
			kit_fill(forms[k].how.log, i % KIT_KINDS, data[i].data(), data[i].size(),
			         &r);
		}
		encode(forms[k], data, 2u << k % 3, k, &r);
	}
}

/* More sub-blocks than a team has warps, coded; values that are in no sample; nothing at all. */
static void encoders_take_turns(void **state)
{
	(void)state;
	rng r = {20261600};
	std::vector<bytes> data;
	for (unsigned kind : {0u, 2u, 5u, 8u}) {
		data.emplace_back(8192 * 3 + 100 * kind);
		kit_fill(2, kind, data.back().data(), data.back().size(), &r);
		data.back()[2000] ^= 0x5A;
		data.back()[8192 + 3] = 0x77;
	}
	data.emplace_back(0);
	encode(forms[5], data, 1, 5, &r);
	encode(forms[5], data, 2, 6, &r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_chunks),
		cmocka_unit_test(damaged_chunks),
		cmocka_unit_test(header_values),
		cmocka_unit_test(shared_chunks),
		cmocka_unit_test(whole_chunks),
		cmocka_unit_test(encoders_agree),
		cmocka_unit_test(encoders_take_turns),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
