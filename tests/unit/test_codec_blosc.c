/*
 * test_codec_blosc.c: Blosc1 containers: round trips over all options, c-blosc in the other
 * direction, ranges and parts, and hostile containers of every kind next to guard pages.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <blosc.h>
#include <cmocka.h>
#include <libdeflate.h>
#include <lz4.h>
#include <snappy-c.h>
#include <zstd.h>

#include "batch/host/item.h"
#include "codec/blosc/blosc.h"
#include "filter/shuffle.h"
#include "guard.h"

static const uint64_t seed = 0x1ade0b105c;

enum { CNAMES = 6, SHUFFLES = 3 };
enum { BLOSCLZ, LZ4, LZ4HC, SNAPPY, ZLIB, ZSTD };

static lade_engine *engine;
static lade_worker *worker;
static void *codec_state, *encode_state;

static int setup(void **state)
{
	(void)state;
	printf("seed %llx\n", (unsigned long long)seed);
	if (lade_engine_new(NULL, &engine, NULL) != LADE_OK)
		return -1;
	worker = lade__worker_take(engine);
	codec_state = lade__blosc_decode.state_new(NULL, lade_allocator_default(LADE_HOST));
	encode_state = lade__blosc_encode.state_new(NULL, lade_allocator_default(LADE_HOST));
	return worker && codec_state && encode_state ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	lade__blosc_decode.state_free(NULL, codec_state);
	lade__blosc_encode.state_free(NULL, encode_state);
	lade__worker_give(worker);
	lade_engine_free(engine);
	return 0;
}

static lade_stage stage_of(int cname, int level, int shuffle, int typesize, int blocksize)
{
	lade_stage stage = {.algorithm = &lade__blosc};
	stage.option[BLOSC_OPTION_CNAME].i = cname;
	stage.option[BLOSC_OPTION_LEVEL].i = level;
	stage.option[BLOSC_OPTION_SHUFFLE].i = shuffle;
	stage.option[BLOSC_OPTION_TYPESIZE].i = typesize;
	stage.option[BLOSC_OPTION_BLOCKSIZE].i = blocksize;
	return stage;
}

static lade_run run_of(const lade_stage *stage, lade_cpu cpu)
{
	return (lade_run){.stage = stage, .state = codec_state, .worker = worker, .cpu = cpu};
}

/* Three kinds of data: smooth numbers, noise, and long runs. */
static void fill(uint8_t *p, size_t size, int kind, rng *r)
{
	uint64_t walk = rng_next(r);
	for (size_t i = 0; i < size; i++) {
		if (kind == 0) {
			walk += rng_below(r, 3);
			p[i] = (uint8_t)(walk >> 8 * (i % 4));
		} else if (kind == 1) {
			p[i] = (uint8_t)rng_next(r);
		} else {
			if (rng_below(r, 100) == 0)
				walk = rng_next(r);
			p[i] = (uint8_t)walk;
		}
	}
}

static size_t encode(const lade_stage *stage, const void *src, size_t size, void *dst, size_t cap)
{
	lade_run run = run_of(stage, LADE_CPU_PLAIN);
	run.state = encode_state;
	size_t n = 99;
	lade_error err;
	lade_status status = lade__blosc_encode.codec->run(&run, lade_host_cspan(src, size),
	                                                   lade_host_span(dst, cap), &n, &err);
	if (status != LADE_OK)
		fail_msg("encode: %s", err.message);
	return n;
}

/* Takes pieces: bytes are wanted where their number divided by 'step' is even. */
typedef struct taker {
	uint8_t *out;
	size_t size, first, end, step;
	uint8_t *seen; /* how often each byte came; or NULL */
} taker;

static void *taker_place(void *ctx, size_t off, size_t *size)
{
	const taker *t = ctx;
	assert_true(off < t->size);
	*size = t->step - off % t->step;
	if (off / t->step % 2)
		return NULL;
	*size = *size < t->size - off ? *size : t->size - off;
	for (size_t i = 0; t->seen && i < *size; i++)
		t->seen[off + i] |= 2;
	return t->out + off;
}

static void taker_take(void *ctx, size_t off, const void *data, size_t size)
{
	const taker *t = ctx;
	assert_true(off <= t->size && size <= t->size - off);
	memcpy(t->out + off, data, size);
	for (size_t i = 0; t->seen && i < size; i++)
		t->seen[off + i] |= 1;
}

/* Pieces of a window, some to their places and some not at all. */
static void check_pieces(const lade_run *run, lade_cspan src, const uint8_t *want, size_t size,
                         rng *r)
{
	lade_error err;
	for (int i = 0; i < 4 && size; i++) {
		guard out = guard_new(size, 1);
		taker t = {.out = out.data, .size = size, .seen = calloc(1, size)};
		t.first = (size_t)rng_below(r, size);
		t.end = t.first + 1 + (size_t)rng_below(r, size - t.first);
		t.step = 1 + (size_t)rng_below(r, i == 3 ? 40 : 3000);
		const lade_pieces to = {&t, t.first, t.end, i ? taker_place : NULL, taker_take,
		                        .large = i == 2};
		if (lade__blosc_decode.codec->run_pieces(run, src, &to, &err) != LADE_OK)
			fail_msg("pieces: %s", err.message);
		for (size_t k = t.first; k < t.end; k++) {
			if (t.seen[k])
				assert_int_equal(out.data[k], want[k]);
			else
				assert_true(i && k / t.step % 2);
		}
		free(t.seen);
		guard_free(&out);
	}
}

/* Every way of decoding gives the same bytes and touches nothing outside. */
static void check_decodes(const uint8_t *stored, size_t stored_size, const uint8_t *want,
                          size_t size, lade_cpu cpu, rng *r)
{
	const lade_codec_ops *d = lade__blosc_decode.codec;
	lade_stage stage = stage_of(LZ4, 5, 1, 1, 0);
	lade_run run = run_of(&stage, cpu);
	lade_error err;
	guard in = guard_copy(stored, stored_size, 1);
	lade_cspan src = lade_host_cspan(in.data, stored_size);

	uint64_t claimed = 0;
	assert_int_equal(lade__blosc.decoded_size(&stage, in.data, stored_size, &claimed, &err),
	                 LADE_OK);
	assert_int_equal(claimed, size);

	guard out = guard_new(size, 1);
	size_t n = 0;
	if (d->run(&run, src, lade_host_span(out.data, size), &n, &err) != LADE_OK)
		fail_msg("decode: %s", err.message);
	assert_int_equal(n, size);
	assert_memory_equal(out.data, want, size);
	guard_free(&out);
	if (size > 0) {
		out = guard_new(size, 1);
		assert_int_equal(
			d->run(&run, src, lade_host_span(out.data + 1, size - 1), &n, &err),
			LADE_E_NOSPACE);
		assert_int_equal(n, 0);
		guard_free(&out);
	}

	/* Parts, the last one first, into the beginning of a larger place. */
	size_t parts = 0, part_size = 0;
	assert_int_equal(d->parts(&run, src, &parts, &part_size, &err), LADE_OK);
	assert_int_equal(part_size, size);
	out = guard_new(size, 0);
	for (size_t p = parts; p-- > 0;)
		assert_int_equal(d->run_part(&run, src, p, lade_host_span(out.data, size), &err),
		                 LADE_OK);
	assert_memory_equal(out.data, want, size);
	guard_free(&out);

	for (int i = 0; i < 6; i++) {
		size_t off = (size_t)rng_below(r, size + 1);
		size_t len = (size_t)rng_below(r, size - off + 1);
		if (i == 0)
			off = 0, len = size;
		out = guard_new(len, 1);
		if (d->run_range(&run, src, off, lade_host_span(out.data, len), &err) != LADE_OK)
			fail_msg("range: %s", err.message);
		assert_memory_equal(out.data, want + off, len);
		guard_free(&out);
	}
	check_pieces(&run, src, want, size, r);
	uint8_t byte;
	assert_int_equal(d->run_range(&run, src, size, lade_host_span(&byte, 1), &err),
	                 LADE_E_RANGE);
	assert_int_equal(d->run_range(&run, src, size + 1, lade_host_span(&byte, 0), &err),
	                 LADE_E_RANGE);
	guard_free(&in);
}

static void round_trip(const lade_stage *stage, size_t size, int kind, lade_cpu cpu, rng *r)
{
	uint8_t *data = malloc(size + 1);
	fill(data, size, kind, r);
	size_t cap = lade__blosc.bound(stage, size);
	guard stored = guard_new(cap, 1);
	guard in = guard_copy(data, size, 1);
	size_t n = encode(stage, in.data, size, stored.data, cap);
	assert_true(n <= cap);
	check_decodes(stored.data, n, data, size, cpu, r);
	if (size > 0) {
		uint8_t *back = malloc(size);
		assert_int_equal(blosc_decompress_ctx(stored.data, back, size, 1), size);
		assert_memory_equal(back, data, size);
		free(back);
	}
	guard_free(&in);
	guard_free(&stored);
	free(data);
}

static const int typesizes[] = {1, 2, 3, 4, 7, 8, 12, 16, 17, 32, 255};
enum { TYPESIZES = sizeof typesizes / sizeof typesizes[0] };

/* Small sizes, all combinations; the edges are those of storing, 128, and of splitting,
 * 128 * typesize. */
static void test_round_trips(void **state)
{
	(void)state;
	rng r = {seed};
	static const size_t sizes[] = {0, 1, 7, 127, 128, 129, 511, 1024, 2048, 2049, 5000};
	static const int levels[] = {0, 1, 5, 9};
	for (int cname = 0; cname < CNAMES; cname++)
		for (int shuffle = 0; shuffle < SHUFFLES; shuffle++)
			for (int t = 0; t < TYPESIZES; t++)
				for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
					int level = levels[rng_below(&r, 4)];
					lade_stage stage =
						stage_of(cname, level, shuffle, typesizes[t], 0);
					round_trip(&stage, sizes[s], (int)rng_below(&r, 3),
					           LADE_CPU_PLAIN, &r);
				}
}

/* Several blocks, forced sizes of them, short tails, each CPU level. */
static void test_many_blocks(void **state)
{
	(void)state;
	rng r = {seed + 1};
	lade_cpu top = lade_cpu_detect();
	for (int i = 0; i < 150; i++) {
		int cname = i % CNAMES;
		int blocksize = (int)rng_below(&r, 2) ? (int)(128 + rng_below(&r, 20000)) : 0;
		size_t size = (size_t)rng_below(&r, blocksize ? 100000 : 600000);
		lade_stage stage = stage_of(cname, cname == LZ4HC || cname >= ZLIB ? 1 : 5,
		                            (int)rng_below(&r, 3),
		                            typesizes[rng_below(&r, TYPESIZES)], blocksize);
		lade_cpu cpu = (lade_cpu)(1 + i % (int)top);
		round_trip(&stage, size, (int)rng_below(&r, 3), cpu, &r);
	}
}

/* Every room that is too small is refused or gives a good container; nothing is written outside. */
static void test_encode_small_room(void **state)
{
	(void)state;
	rng r = {seed + 2};
	enum { SIZE = 700 };
	uint8_t data[SIZE], back[SIZE];
	for (int kind = 0; kind < 3; kind++) {
		fill(data, SIZE, kind, &r);
		for (int cname = 0; cname < CNAMES; cname++) {
			lade_stage stage = stage_of(cname, 5, 1, 4, 256);
			lade_run run = run_of(&stage, LADE_CPU_PLAIN);
			lade_run encoding = run;
			size_t failures = 0;
			encoding.state = encode_state;
			for (size_t cap = 0; cap <= SIZE + BLOSC_HEADER_SIZE; cap++) {
				guard out = guard_new(cap, 1);
				size_t n = 99;
				lade_status status = lade__blosc_encode.codec->run(
					&encoding, lade_host_cspan(data, SIZE),
					lade_host_span(out.data, cap), &n, NULL);
				failures += status != LADE_OK;
				if (status != LADE_OK) {
					assert_int_equal(status, LADE_E_NOSPACE);
					assert_int_equal(n, 0);
				} else {
					size_t m = 0;
					assert_true(n <= cap);
					assert_int_equal(lade__blosc_decode.codec->run(
								 &run, lade_host_cspan(out.data, n),
								 lade_host_span(back, SIZE), &m,
								 NULL),
					                 LADE_OK);
					assert_memory_equal(back, data, SIZE);
				}
				guard_free(&out);
			}
			assert_true(failures >= BLOSC_HEADER_SIZE &&
			            failures <= SIZE + BLOSC_HEADER_SIZE);
		}
	}
}

/* Decodes what may be anything, in each way, and says whether 'run' took it. */
static bool decode_hostile(const uint8_t *stored, size_t stored_size, size_t room)
{
	const lade_codec_ops *d = lade__blosc_decode.codec;
	lade_stage stage = stage_of(LZ4, 5, 1, 1, 0);
	lade_run run = run_of(&stage, lade_cpu_detect());
	guard in = guard_copy(stored, stored_size, 1);
	guard out = guard_new(room, 1);
	lade_cspan src = lade_host_cspan(in.data, stored_size);
	lade_span dst = lade_host_span(out.data, room);
	lade_error err = {.status = LADE_OK};
	size_t n = 99;
	lade_status status = d->run(&run, src, dst, &n, &err);
	if (status != LADE_OK) {
		assert_int_equal(err.status, status);
		assert_int_equal(n, 0);
		assert_true(err.offset <= stored_size || err.offset == LADE_NO_OFFSET);
		assert_true(status == LADE_E_CORRUPT || status == LADE_E_TRUNCATED ||
		            status == LADE_E_VERSION || status == LADE_E_UNSUPPORTED ||
		            status == LADE_E_NOSPACE);
	} else {
		assert_true(n <= room);
	}
	size_t parts = 0, size = 0;
	if (d->parts(&run, src, &parts, &size, &err) == LADE_OK && size <= room) {
		lade_status first = LADE_OK;
		for (size_t p = 0; p < parts && first == LADE_OK; p++)
			first = d->run_part(&run, src, p, dst, &err);
		assert_int_equal(first, status);
	}
	size_t half = room / 2;
	lade_status range =
		d->run_range(&run, src, half, lade_host_span(out.data, room - half), &err);
	if (status == LADE_OK && n == room)
		assert_int_equal(range, LADE_OK);
	for (int i = 0; i < 2 && size && size <= room; i++) {
		taker t = {.out = out.data, .size = size, .step = 64};
		const lade_pieces to = {&t, size / 3, size - size / 4, i ? taker_place : NULL,
		                        taker_take, .large = size % 2};
		lade_status pieces = d->run_pieces(&run, src, &to, &err);
		assert_true(pieces == LADE_OK || pieces == LADE_E_CORRUPT);
	}
	guard_free(&in);
	guard_free(&out);
	return status == LADE_OK;
}

static void put32(uint8_t *p, size_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

/* One stream by the codec's library; 'size' bytes as they are where it does not shrink them. */
static size_t put_stream(int cname, const uint8_t *src, size_t size, uint8_t *out)
{
	uint8_t packed[8192];
	size_t n = 0;
	if (cname == LZ4 || cname == LZ4HC) {
		n = (size_t)LZ4_compress_default((const char *)src, (char *)packed, (int)size,
		                                 8192);
	} else if (cname == SNAPPY) {
		n = sizeof packed;
		assert_int_equal(snappy_compress((const char *)src, size, (char *)packed, &n),
		                 SNAPPY_OK);
	} else if (cname == ZLIB) {
		struct libdeflate_compressor *c = libdeflate_alloc_compressor(6);
		n = libdeflate_zlib_compress(c, src, size, packed, sizeof packed);
		libdeflate_free_compressor(c);
	} else if (cname == ZSTD) {
		n = ZSTD_compress(packed, sizeof packed, src, size, 3);
	} else {
		/* The only stream of a container of one block. */
		int all = blosc_compress_ctx(5, 0, 1, size, src, packed, sizeof packed, "blosclz",
		                             0, 1);
		n = (size_t)all - 24;
		if (all <= 24 || packed[2] & BLOSC_FLAG_STORED)
			n = 0;
		memmove(packed, packed + 24, n);
	}
	if (n == 0 || n >= size)
		memcpy(packed, src, n = size);
	put32(out, n);
	memcpy(out + 4, packed, n);
	return 4 + n;
}

enum { SAMPLE = 3000, SAMPLE_BLOCK = 1024, SAMPLE_CAP = 16 + 3 * 4 + 9 * 4 + SAMPLE };

/*
 * A container of two blocks of four streams and a short one of one, the second block first, as
 * several threads might write it.  c-blosc itself makes no split blocks so small.
 */
static size_t sample(int cname, int shuffle, uint8_t *stored, uint8_t *data, rng *r)
{
	static const uint8_t codec_of[CNAMES] = {0, 1, 1, 2, 3, 4};
	static const size_t order[] = {1, 0, 2};
	uint8_t shuffled[SAMPLE_BLOCK];
	fill(data, SAMPLE, 0, r);
	size_t n = 16 + 3 * 4;
	for (size_t i = 0; i < 3; i++) {
		size_t b = order[i];
		const uint8_t *block = data + b * SAMPLE_BLOCK;
		size_t size = b == 2 ? SAMPLE - 2 * SAMPLE_BLOCK : SAMPLE_BLOCK;
		memcpy(shuffled, block, size);
		if (shuffle == 1)
			lade__shuffle(4, size, block, shuffled, LADE_CPU_PLAIN);
		if (shuffle == 2 && size / 4 % 8 == 0)
			lade__bitshuffle(4, size, block, shuffled, LADE_CPU_PLAIN);
		put32(stored + 16 + 4 * b, n);
		size_t streams = b == 2 ? 1 : 4;
		for (size_t s = 0; s < streams; s++)
			n += put_stream(cname, shuffled + s * size / streams, size / streams,
			                stored + n);
	}
	stored[0] = 2, stored[1] = 1, stored[3] = 4;
	stored[2] = (uint8_t)(codec_of[cname] << 5 | (shuffle == 1) | (shuffle == 2) << 2);
	put32(stored + 4, SAMPLE);
	put32(stored + 8, SAMPLE_BLOCK);
	put32(stored + 12, n);
	return n;
}

static void test_blocks_in_any_order(void **state)
{
	(void)state;
	rng r = {seed + 10};
	uint8_t stored[SAMPLE_CAP], data[SAMPLE], back[SAMPLE];
	for (int i = 0; i < CNAMES * SHUFFLES; i++) {
		size_t n = sample(i % CNAMES, i / CNAMES, stored, data, &r);
		check_decodes(stored, n, data, SAMPLE, lade_cpu_detect(), &r);
		assert_int_equal(blosc_decompress_ctx(stored, back, SAMPLE, 1), SAMPLE);
		assert_memory_equal(back, data, SAMPLE);
	}
}

static void test_truncated_everywhere(void **state)
{
	(void)state;
	rng r = {seed + 3};
	uint8_t stored[SAMPLE_CAP + 1], data[SAMPLE];
	for (int cname = 0; cname < CNAMES; cname++) {
		size_t n = sample(cname, 1, stored, data, &r);
		for (size_t cut = 0; cut < n; cut++)
			assert_false(decode_hostile(stored, cut, SAMPLE));
		/* The header tells the shorter size too: then it is the streams that are cut. */
		for (size_t cut = BLOSC_HEADER_SIZE; cut < n; cut++) {
			uint8_t copy[sizeof stored];
			memcpy(copy, stored, cut);
			put32(copy + 12, cut);
			assert_false(decode_hostile(copy, cut, SAMPLE));
		}
		/* Bytes left over. */
		stored[n] = 0;
		assert_false(decode_hostile(stored, n + 1, SAMPLE));
	}
}

static void test_bit_flips(void **state)
{
	(void)state;
	rng r = {seed + 4};
	uint8_t stored[SAMPLE_CAP + 1], data[SAMPLE], copy[sizeof stored];
	size_t refused = 0;
	for (int i = 0; i < 12000; i++) {
		static size_t n;
		if (i % 500 == 0)
			n = sample(i / 500 % CNAMES, (int)rng_below(&r, 3), stored, data, &r);
		memcpy(copy, stored, n);
		size_t flips = 1 + (size_t)rng_below(&r, 4);
		/* Half of them near the front, where the sizes are. */
		size_t reach = rng_below(&r, 2) ? 40 : n;
		for (size_t f = 0; f < flips; f++)
			copy[rng_below(&r, reach)] ^= (uint8_t)(1u << rng_below(&r, 8));
		refused += !decode_hostile(copy, n, SAMPLE);
	}
	assert_true(refused > 1000);
}

/* Whole bytes and sizes replaced by values that lie at the edges. */
static void test_hostile_numbers(void **state)
{
	(void)state;
	rng r = {seed + 5};
	static const uint32_t edges[] = {
		0,          1,          2,          3,          4,          127,       128,
		1023,       1024,       1025,       2999,       3000,       3001,      0x7FFFFFEF,
		0x7FFFFFF0, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFC, 0x40000000};
	uint8_t stored[SAMPLE_CAP + 1], data[SAMPLE], copy[sizeof stored];
	for (int cname = 0; cname < CNAMES; cname++) {
		size_t n = sample(cname, 1, stored, data, &r);
		for (size_t at = 0; at + 4 <= n; at += at < 64 ? 1 : 13)
			for (size_t e = 0; e < sizeof edges / sizeof edges[0]; e++) {
				memcpy(copy, stored, n);
				put32(copy + at, edges[e]);
				decode_hostile(copy, n, SAMPLE);
			}
		/* Each block starts at each byte: header, table, other blocks, outside. */
		for (size_t block = 0; block < 3; block++)
			for (size_t start = 0; start < n + 8; start++) {
				memcpy(copy, stored, n);
				put32(copy + 16 + 4 * block, start);
				bool good = decode_hostile(copy, n, SAMPLE);
				if (start < 16 + 4 * 3 || start > n)
					assert_false(good);
			}
		/* Two whole blocks from the same streams are unusual, but whole. */
		memcpy(copy, stored, n);
		memcpy(copy + 16, copy + 20, 4);
		assert_true(decode_hostile(copy, n, SAMPLE));
	}
}

static lade_status status_of(const uint8_t *stored, size_t size, uint8_t *out, size_t room,
                             lade_error *err)
{
	lade_stage stage = stage_of(LZ4, 5, 1, 1, 0);
	lade_run run = run_of(&stage, LADE_CPU_PLAIN);
	size_t n;
	return lade__blosc_decode.codec->run(&run, lade_host_cspan(stored, size),
	                                     lade_host_span(out, room), &n, err);
}

static void test_header_rules(void **state)
{
	(void)state;
	rng r = {seed + 6};
	lade_error err;
	uint8_t stored[SAMPLE_CAP + 1], data[SAMPLE], out[SAMPLE], copy[sizeof stored];
	size_t n = sample(LZ4, 1, stored, data, &r);
	const struct {
		size_t at;
		uint8_t value;
		lade_status want;
	} rules[] = {
		{0, 0, LADE_E_VERSION},
		{0, 1, LADE_E_VERSION},
		{0, 3, LADE_E_UNSUPPORTED},
		{0, 5, LADE_E_UNSUPPORTED},
		{0, 7, LADE_E_VERSION},
		{1, 0, LADE_E_VERSION},
		{1, 2, LADE_E_VERSION},
		{2, stored[2] | 8, LADE_E_UNSUPPORTED},
		{2, 0xA0, LADE_E_UNSUPPORTED},
		{2, 0xE1, LADE_E_UNSUPPORTED},
		{2, stored[2] | 2, LADE_E_CORRUPT},
		{3, 0, LADE_E_CORRUPT},
		{7, 0x80, LADE_E_CORRUPT},
		{11, 0x80, LADE_E_CORRUPT},
		{12, stored[12] + 1, LADE_E_TRUNCATED},
		{12, stored[12] - 1, LADE_E_CORRUPT},
	};
	assert_int_equal(status_of(stored, n, out, SAMPLE, &err), LADE_OK);
	for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
		memcpy(copy, stored, n);
		copy[rules[i].at] = rules[i].value;
		if (status_of(copy, n, out, SAMPLE, &err) != rules[i].want)
			fail_msg("rule %zu: %s", i, err.message);
	}
	/* A Blosc2 chunk is told apart even when it is shorter than a header. */
	assert_int_equal(status_of((const uint8_t *)"\5\1\5\4", 4, out, SAMPLE, &err),
	                 LADE_E_UNSUPPORTED);
	assert_non_null(strstr(err.message, "Blosc2"));
	/* Split blocks whose size is no multiple of the element's. */
	memcpy(copy, stored, n);
	copy[2] = 0x21;
	copy[3] = 3;
	assert_int_equal(status_of(copy, n, out, SAMPLE, &err), LADE_E_CORRUPT);
	assert_int_equal(err.offset, 8);
}

/* Stored containers carry flags of shuffles that were not done. */
static void test_stored_with_odd_flags(void **state)
{
	(void)state;
	rng r = {seed + 7};
	uint8_t stored[16 + 500], data[500], out[500];
	fill(data, sizeof data, 1, &r);
	memcpy(stored + 16, data, sizeof data);
	for (int flags = 0; flags < 256; flags++) {
		stored[0] = 2, stored[1] = (uint8_t)(flags >> 4), stored[2] = (uint8_t)flags,
		stored[3] = 4;
		put32(stored + 4, 500);
		put32(stored + 8, 100);
		put32(stored + 12, sizeof stored);
		if ((flags & 2) && !(flags & 8)) {
			check_decodes(stored, sizeof stored, data, sizeof data, LADE_CPU_PLAIN, &r);
			assert_int_equal(blosc_decompress_ctx(stored, out, sizeof out, 1), 500);
			assert_memory_equal(out, data, sizeof data);
		} else {
			decode_hostile(stored, sizeof stored, sizeof data);
		}
	}
}

static void test_empty(void **state)
{
	(void)state;
	rng r = {seed + 8};
	uint8_t stored[17] = {0}, none;
	for (int cname = 0; cname < CNAMES; cname++) {
		lade_stage stage = stage_of(cname, 5, 1, 4, 0);
		assert_int_equal(lade__blosc.bound(&stage, 0), 16);
		assert_int_equal(encode(&stage, NULL, 0, stored, 16), 16);
		check_decodes(stored, 16, &none, 0, LADE_CPU_PLAIN, &r);
	}
	put32(stored + 12, 17);
	assert_int_equal(status_of(stored, 17, &none, 0, NULL), LADE_E_CORRUPT);
}

static void test_sizes(void **state)
{
	(void)state;
	lade_stage stage = stage_of(LZ4, 5, 1, 4, 0);
	uint64_t decoded;
	lade_error err;
	assert_int_equal(lade__blosc.decoded_size(&stage, NULL, 100, &decoded, &err),
	                 LADE_E_UNKNOWN_SIZE);
	assert_true(lade__blosc.bound(&stage, BLOSC_NBYTES_MAX) == INT32_MAX);
	assert_true(lade__blosc.bound(&stage, BLOSC_NBYTES_MAX + 1) == SIZE_MAX);
	lade_run run = run_of(&stage, LADE_CPU_PLAIN);
	run.state = encode_state;
	uint8_t out[64];
	size_t n;
	/* The size is refused before a byte is read. */
	lade_cspan src = lade_host_cspan(out, BLOSC_NBYTES_MAX + 1);
	lade_span dst = lade_host_span(out, 64);
	assert_int_equal(lade__blosc_encode.codec->run(&run, src, dst, &n, &err), LADE_E_LIMIT);
}

/* BloscLZ by the letter of docs/format/blosc.md, one byte at a time. */
static bool blosclz_reference(const uint8_t *src, size_t size, uint8_t *dst, size_t cap)
{
	size_t i = 0, o = 0;
	if (size == 0)
		return false;
	size_t c = src[i++] & 31;
	for (;;) {
		if (c < 32) {
			for (size_t k = 0; k <= c; k++) {
				if (i == size || o == cap)
					return false;
				dst[o++] = src[i++];
			}
			if (i == size)
				return o == cap;
			c = src[i++];
			continue;
		}
		size_t len = (c >> 5) + 2, distance = (c & 31) * 256 + 1;
		if (c >> 5 == 7) {
			uint8_t more;
			do {
				if (i == size)
					return false;
				more = src[i++];
				len += more;
			} while (more == 255);
		}
		if (i == size)
			return false;
		distance += src[i++];
		if (distance == 8192) {
			if (size - i < 2)
				return false;
			distance += (size_t)src[i] * 256 + src[i + 1];
			i += 2;
		}
		if (i == size || distance > o)
			return false;
		for (; len > 0; len--, o++) {
			if (o == cap)
				return false;
			dst[o] = dst[o - distance];
		}
		c = src[i++];
	}
}

/* Writes random instructions, mostly possible ones; '*decoded' is what they give. */
static size_t blosclz_make(uint8_t *p, size_t cap, size_t *decoded, rng *r)
{
	size_t n = 0, o = 0;
	while (n + 80 < cap) {
		size_t literals = 1 + (size_t)rng_below(r, 32);
		p[n++] = (uint8_t)(literals - 1);
		for (size_t k = 0; k < literals; k++)
			p[n++] = (uint8_t)rng_next(r);
		o += literals;
		for (uint64_t matches = rng_below(r, 4); matches > 0; matches--) {
			size_t near[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 40, 8191, 8192, 9000};
			size_t distance = near[rng_below(r, 13)];
			if (distance > o)
				distance = 1 + (size_t)rng_below(r, o);
			size_t len = 3 + (size_t)rng_below(r, rng_below(r, 4) ? 12 : 700);
			size_t low = distance - 1 < 8191 ? distance - 1 : 8191;
			size_t code = len - 2 < 7 ? len - 2 : 7;
			p[n++] = (uint8_t)(code << 5 | low >> 8);
			if (code == 7) {
				size_t more = len - 9;
				for (; more >= 255; more -= 255)
					p[n++] = 255;
				p[n++] = (uint8_t)more;
			}
			p[n++] = (uint8_t)low;
			if (low == 8191) {
				p[n++] = (uint8_t)((distance - 8192) >> 8);
				p[n++] = (uint8_t)(distance - 8192);
			}
			o += len;
		}
	}
	p[n++] = 0;
	p[n++] = 'z';
	*decoded = o + 1;
	return n;
}

static void test_blosclz_streams(void **state)
{
	(void)state;
	rng r = {seed + 9};
	enum { CAP = 2000, OUT = 100000 };
	uint8_t *want = malloc(OUT);
	size_t good = 0;
	for (int i = 0; i < 6000; i++) {
		uint8_t stream[CAP];
		size_t size, decoded;
		if (i % 8) {
			size = blosclz_make(stream, 100 + (size_t)rng_below(&r, CAP - 100),
			                    &decoded, &r);
			if (i % 2)
				stream[rng_below(&r, size)] ^= (uint8_t)(1u << rng_below(&r, 8));
			if (i % 5 == 0)
				decoded += (size_t)rng_below(&r, 3) - 1;
		} else {
			size = (size_t)rng_below(&r, 60);
			decoded = (size_t)rng_below(&r, 60);
			for (size_t k = 0; k < size; k++)
				stream[k] = (uint8_t)rng_next(&r);
		}
		if (decoded > OUT)
			continue;
		guard in = guard_copy(stream, size, 1);
		guard out = guard_new(decoded, 1);
		size_t bad = 0;
		bool ours = lade__blosclz_decode(in.data, size, out.data, decoded, &bad);
		assert_int_equal(ours, blosclz_reference(stream, size, want, decoded));
		if (ours)
			assert_memory_equal(out.data, want, decoded);
		else
			assert_true(bad <= size);
		good += ours;
		guard_free(&in);
		guard_free(&out);
	}
	assert_true(good > 1000);
	free(want);
}

/* What is written without c-blosc has c-blosc's bytes, where it is not noise. */
static void test_same_bytes(void **state)
{
	(void)state;
	static const int elements[] = {1, 2, 3, 4, 7, 8, 16, 17, 32, 255};
	static const int codecs[] = {LZ4, ZSTD};
	rng r = {seed + 77};
	size_t most = (size_t)3 << 20, stored = 0;
	uint8_t *src = malloc(most), *ours = malloc(most + 16), *theirs = malloc(most + 16);
	for (int i = 0; i < 400; i++) {
		int cname = codecs[i % 2], typesize = elements[rng_below(&r, 10)];
		/* Each level of each codec, and then the quick ones. */
		int level = i < 18 ? 1 + i / 2 : 1 + (int)rng_below(&r, i % 8 ? 4 : 9);
		int shuffle = (int)rng_below(&r, 3), kind = i < 18 ? 0 : (int)rng_below(&r, 3);
		size_t size = 128 + rng_below(&r, i % 10 ? 20000 : i % 50 ? 300000 : most - 128);
		size = i < 18 ? 100000 : size;
		size_t got = 0, cap = size + 16 - (rng_below(&r, 4) ? 0 : rng_below(&r, size / 2));
		lade_stage stage = stage_of(cname, level, shuffle, typesize, 0);
		lade_run run = run_of(&stage, i % 3 ? lade_cpu_detect() : LADE_CPU_PLAIN);
		run.state = encode_state;
		fill(src, size, kind, &r);
		int want = blosc_compress_ctx(level, shuffle, (size_t)typesize, size, src, theirs,
		                              cap, cname == LZ4 ? "lz4" : "zstd", 0, 1);
		lade_status status =
			lade__blosc_encode.codec->run(&run, lade_host_cspan(src, size),
			                              lade_host_span(ours, cap), &got, NULL);
		if (got != (size_t)want || memcmp(ours, theirs, got))
			fprintf(stderr, "%d: codec %d, level %d, shuffle %d, elements of %d, %zu "
			        "bytes to %zu: %zu, want %d\n", i, cname, level, shuffle, typesize,
			        size, cap, got, want);
		assert_int_equal(status, want > 0 ? LADE_OK : LADE_E_NOSPACE);
		assert_int_equal(got, want);
		assert_memory_equal(ours, theirs, got);
		stored += got == size + 16;
	}
	assert_true(stored > 5);
	free(src);
	free(ours);
	free(theirs);
}

/*
 * Shuffled bits with much noise: the middle levels do not search in it, which costs 3 % of the
 * bytes at most; the others, and streams with less noise, have c-blosc's bytes.
 */
static void test_noisy_bits(void **state)
{
	(void)state;
	enum { SIZE = 1 << 18 };
	uint32_t *src = malloc(SIZE);
	uint8_t *ours = malloc(SIZE + 16), *theirs = malloc(SIZE + 16), *back = malloc(SIZE);
	for (int noise = 0; noise <= 16; noise += 4) { /* low bits of noise, of 32 */
		rng r = {seed + 5};
		for (uint32_t i = 0; i < SIZE / 4; i++)
			src[i] = (i / 7) << 16 | (uint32_t)rng_below(&r, UINT64_C(1) << noise);
		for (int level = 2; level <= 6; level++) {
			lade_stage stage = stage_of(ZSTD, level, 2, 4, 0);
			lade_run run = run_of(&stage, lade_cpu_detect());
			run.state = encode_state;
			size_t got = 0;
			assert_int_equal(lade__blosc_encode.codec->run(
						 &run, lade_host_cspan(src, SIZE),
						 lade_host_span(ours, SIZE + 16), &got, NULL),
			                 LADE_OK);
			int want = blosc_compress_ctx(level, 2, 4, SIZE, src, theirs, SIZE + 16,
			                              "zstd", 0, 1);
			bool same = got == (size_t)want && memcmp(ours, theirs, got) == 0;
			assert_int_equal(same, noise < 8 || level < 3 || level > 5);
			assert_true(got <= (size_t)want + (size_t)want * 3 / 100);
			assert_int_equal(blosc_decompress_ctx(ours, back, SIZE, 1), SIZE);
			assert_memory_equal(back, src, SIZE);
		}
	}
	free(src);
	free(ours);
	free(theirs);
	free(back);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trips),
		cmocka_unit_test(test_many_blocks),
		cmocka_unit_test(test_same_bytes),
		cmocka_unit_test(test_noisy_bits),
		cmocka_unit_test(test_encode_small_room),
		cmocka_unit_test(test_blocks_in_any_order),
		cmocka_unit_test(test_truncated_everywhere),
		cmocka_unit_test(test_bit_flips),
		cmocka_unit_test(test_hostile_numbers),
		cmocka_unit_test(test_header_rules),
		cmocka_unit_test(test_stored_with_odd_flags),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_blosclz_streams),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
