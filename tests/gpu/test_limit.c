/*
 * test_limit.c: chunks of the largest size, 2 GiB - 1, through every codec and filter that has
 * kernels, both ways; and those that are larger.  The emulated device takes small ones instead.
 *
 *     test_limit [--must] [--only TEXT]
 *
 * The host encodes; what a device makes of it, and what it encodes itself, is compared by its
 * CRC-32C, which the device computes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/batch_kit.h"

#include "base/limits.h"

#include <lade/async.h>
#include <lade/frame.h>

#include <time.h>

#define FILL 0xA5A5A5A5u
#define LZ4_MOST ((size_t)0x7E000000) /* that liblz4 encodes */

static const lade_place near = {LADE_DEVICE, 0};
static lade_engine *engine;
static const char *only = "";
static size_t most;               /* bytes of a chunk */
static uint8_t *plain, *noise;    /* on the host */
static uint8_t *mixed;            /* noise, and at its end what 'plain' has */
static uint8_t *in, *coded, *out; /* on the device, with bytes around */
static size_t coded_room;

/* What is tried: 'size' 0 is the largest; ENCODES: the device, too, and SAME: to the host's bytes;
 * TELLS: a kernel finds the decoded size; LOSSY: what the host decodes is compared; MIXED:
 * of 'mixed', which has compressed blocks far in the source. */
enum { ENCODES = 1, SAME = 2, TELLS = 4, LOSSY = 8, MIXED = 16 };
typedef struct trial {
	const char *spec;
	size_t size;
	unsigned flags;
	uint8_t *encoded; /* by the host */
	size_t encoded_size;
	uint32_t sum, encoded_sum; /* CRC-32C */
} trial;

static trial trials[] = {
	{"lz4", LZ4_MOST, ENCODES | TELLS, 0, 0, 0, 0},
	{"snappy", 0, ENCODES | TELLS, 0, 0, 0, 0},
	{"zstd(level=1)", 0, TELLS, 0, 0, 0, 0},
	{"deflate(level=1)", 0, 0, 0, 0, 0, 0},
	{"zlib(level=1)", 0, 0, 0, 0, 0, 0},
	{"gzip(level=1)", 0, 0, 0, 0, 0, 0},
	{"ans", 0, ENCODES | TELLS, 0, 0, 0, 0},
	{"ans(<f4)", 0, ENCODES | TELLS, 0, 0, 0, 0},
	{"bitcomp(<i4)", 0, ENCODES | TELLS, 0, 0, 0, 0},
	{"cascaded(<i4)", 0, ENCODES | SAME | TELLS, 0, 0, 0, 0},
	{"blosc(cname=lz4,typesize=4)", LADE_CHUNK_MAX - 16, TELLS, 0, 0, 0, 0},
	{"blosc(cname=zstd,level=1,shuffle=bitshuffle,typesize=4)", LADE_CHUNK_MAX - 16, TELLS, 0,
         0, 0, 0},
	{"copy", 0, ENCODES | SAME, 0, 0, 0, 0},
	{"shuffle(4)", 0, ENCODES | SAME, 0, 0, 0, 0},
	{"shuffle(7)", 0, ENCODES | SAME, 0, 0, 0, 0},
	{"bitshuffle(4)", 0, ENCODES | SAME, 0, 0, 0, 0},
	{"bitshuffle(8)", 0, ENCODES | SAME, 0, 0, 0, 0},
	{"delta(<i4)", LADE_CHUNK_MAX - 15, ENCODES | SAME, 0, 0, 0, 0},
	{"byteswap(4)|delta(<i4)|zigzag(<i4)|shuffle(4)", LADE_CHUNK_MAX - 15, ENCODES | SAME, 0,
         0, 0, 0},
	{"packints(<u4,first=3,last=21)", LADE_CHUNK_MAX - 15, LOSSY, 0, 0, 0, 0},
	{"cast(<i8,astype=<i4,range=wrap)", LADE_CHUNK_MAX - 15, LOSSY, 0, 0, 0, 0},
	{"crc32c", LADE_CHUNK_MAX - 4, ENCODES | SAME, 0, 0, 0, 0},
	{"adler32(start)", LADE_CHUNK_MAX - 4, ENCODES | SAME, 0, 0, 0, 0},
	{"shuffle(4)|lz4", LZ4_MOST, 0, 0, 0, 0, 0},
	{"lz4", LZ4_MOST, MIXED | TELLS, 0, 0, 0, 0},
	{"snappy", 0, MIXED | TELLS, 0, 0, 0, 0},
	{"zstd(level=1)", 0, MIXED | TELLS, 0, 0, 0, 0},
	{"deflate(level=1)", 0, MIXED, 0, 0, 0, 0},
	{"gzip(level=1)", 0, MIXED, 0, 0, 0, 0},
	{"blosc(cname=lz4,typesize=4)", LADE_CHUNK_MAX - 16, MIXED, 0, 0, 0, 0},
};
#define TRIALS (sizeof trials / sizeof *trials)

/* One that fails does not keep the others from being tried: that takes a device's time. */
static unsigned failed;
#define EXPECT(what) \
	do { \
		if (!(what)) { \
			print_error("line %d: not so: %s\n", __LINE__, #what); \
			failed++; \
		} \
	} while (0)

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static uint8_t *device_new(size_t size)
{
	const lade_allocator *a = lade_allocator_default(LADE_DEVICE);
	uint8_t *p = a->alloc(a->ctx, size + 2 * AROUND, 64, near, NULL);
	if (!p)
		print_error("no device memory for %zu bytes\n", size);
	assert_non_null(p);
	return p;
}

static void device_free(uint8_t *p, size_t size)
{
	const lade_allocator *a = lade_allocator_default(LADE_DEVICE);
	a->free(a->ctx, p, size + 2 * AROUND, 64, near, NULL);
}

/* 'room' bytes and those around become FILL. */
static void device_fill(uint8_t *block, size_t room)
{
	lade__device *d;
	OK(lade__device_use(0, &d, err));
	OK(LADE__CU(d, cuMemsetD32Async, lade__address_of(block), FILL, (room + 2 * AROUND) / 4,
	            NULL));
	OK(LADE__CU(d, cuStreamSynchronize, NULL));
	lade__device_leave(d);
}

/* What is around 'size' bytes has stayed. */
static void around_stays(uint8_t *block, size_t size)
{
	uint8_t edge[2][AROUND];
	move(0, edge[0], block, AROUND);
	move(0, edge[1], block + AROUND + size, AROUND / 2); /* at least so much was filled */
	for (size_t i = 0; i < AROUND; i++) {
		EXPECT(edge[0][i] == (FILL & 0xFF));
		EXPECT(i >= AROUND / 2 || edge[1][i] == (FILL & 0xFF));
	}
}

static uint32_t sum_of(const void *data, size_t size, lade_place place)
{
	uint64_t sum = 0;
	lade_cspan span = {data, size, place};
	OK(lade_checksums(engine, LADE_CRC32C, &span, 1, &sum, err));
	return (uint32_t)sum;
}

/* ---- data ------------------------------------------------------------------------------------ */

/* Records of 32 bytes: a number that grows, text, noise and zeros.  Most parts say the same over
 * and over, so that they take little time; every eighth, and so both before 1 GiB and at the end,
 * does not. */
static void make_record(uint8_t *to, uint64_t number, uint64_t random)
{
	memcpy(to, "a record of ", 12);
	memcpy(to + 12, &number, 4);
	memcpy(to + 16, &random, 3);
	to[19] = (uint8_t)(random >> 24 & 3);
	memset(to + 20, 0, 12);
}

#define PART ((size_t)16 << 20)
#define REPEATED ((size_t)16 << 10)

static void make_part(size_t begin, size_t end)
{
	rng r = {.s = begin + 1};
	for (size_t at = begin; at < end; at += 32) {
		uint8_t record[32];
		if (at - begin >= REPEATED && begin / PART % 8 != 7) {
			memcpy(plain + at, plain + at - REPEATED,
			       end - at < 32 ? end - at : 32);
			continue;
		}
		make_record(record, at / 32, rng_next(&r));
		memcpy(plain + at, record, end - at < 32 ? end - at : 32);
	}
}

static lade_status make_parts(void *ctx, size_t i, lade_error *err)
{
	(void)ctx, (void)err;
	make_part(i * PART, (i + 1) * PART < most ? (i + 1) * PART : most);
	rng r = {.s = ~i};
	for (size_t at = i * PART; at < (i + 1) * PART && at < most; at += 8) {
		uint64_t random = rng_next(&r);
		memcpy(noise + at, &random, most - at < 8 ? most - at : 8);
	}
	size_t end = (i + 1) * PART < most ? (i + 1) * PART : most;
	size_t tail = most - most / 16;
	tail = tail < i * PART ? i * PART : tail > end ? end : tail;
	memcpy(mixed + i * PART, noise + i * PART, tail - i * PART);
	memcpy(mixed + tail, plain + tail, end - tail);
	return LADE_OK;
}

static const uint8_t *source_of(const trial *t)
{
	return t->flags & MIXED ? mixed : plain;
}

static lade_status encode_one(void *ctx, size_t i, lade_error *err)
{
	trial *t = &trials[i];
	lade_spec *spec;
	(void)ctx;
	if (!strstr(t->spec, only))
		return LADE_OK;
	t->size = t->size && t->size < most ? t->size : most - most % (t->size ? 8 : 1);
	lade_status status = lade_spec_parse(engine, t->spec, &spec, err);
	if (status != LADE_OK)
		return status;
	size_t bound = lade_spec_bound(spec, t->size);
	t->encoded = malloc(bound);
	assert_non_null(t->encoded);
	status = lade_encode(engine, spec, lade_host_cspan(source_of(t), t->size),
	                     lade_host_span(t->encoded, bound), &t->encoded_size, err);
	lade_spec_unref(spec);
	return status;
}

static int begin(void **state)
{
	(void)state;
	double from = now();
	most = emu ? 300007 : LADE_CHUNK_MAX;
	OK(lade_engine_new(NULL, &engine, err));
	plain = malloc(most);
	noise = malloc(most);
	mixed = malloc(most);
	assert_true(plain && noise && mixed);
	OK(lade_engine_each(engine, (most + PART - 1) / PART, make_parts, NULL, NULL, err));
	print_message("%zu bytes made in %.1f s\n", most, now() - from);
	from = now();
	OK(lade_engine_each(engine, TRIALS, encode_one, NULL, NULL, err));
	print_message("encoded by the host in %.1f s\n", now() - from);
	for (size_t i = 0; i < TRIALS; i++)
		coded_room = trials[i].encoded_size > coded_room ? trials[i].encoded_size
		                                                 : coded_room;
	/* Encoders want room for noise. */
	coded_room = coded_room > most + most / 5 + 64 ? coded_room : most + most / 5 + 64;
	in = device_new(most);
	coded = device_new(coded_room);
	out = device_new(most);
	device_fill(in, most);
	move(0, in + AROUND, plain, most);
	return 0;
}

static int end(void **state)
{
	(void)state;
	device_free(in, most);
	device_free(coded, coded_room);
	device_free(out, most);
	for (size_t i = 0; i < TRIALS; i++)
		free(trials[i].encoded);
	free(plain);
	free(noise);
	free(mixed);
	lade_engine_free(engine);
	kit_clean();
	return 0;
}

/* ---- a chunk --------------------------------------------------------------------------------- */

/* One chunk by tables: 'word' are its source and destination.  lade_decoded_sizes_arrays_async()
 * without a destination. */
static lade_result by_tables(const lade_spec *spec, lade_direction way, const uint8_t *src,
                             uint64_t src_size, uint8_t *dst, uint64_t room)
{
	uint64_t word[4] = {lade__address_of(src), src_size, lade__address_of(dst), room};
	buffer tables = buffer_new(near, sizeof word, 0), results = buffer_new(near, 12, 0);
	lade_result result = {0};
	buffer_put(&tables, word, sizeof word);
	lade_arrays a = {.struct_size = sizeof a,
	                 .src = (const void *const *)(void *)tables.data,
	                 .src_size = (uint64_t *)(void *)tables.data + 1,
	                 .count = 1};
	lade_async_options o = {.struct_size = sizeof o,
	                        .sizes = (uint64_t *)(void *)results.data,
	                        .statuses = (uint32_t *)(void *)(results.data + 8)};
	if (dst) {
		a.dst = (void *const *)(void *)tables.data + 2;
		a.dst_cap = (uint64_t *)(void *)tables.data + 3;
		a.largest = way == LADE_DECODE ? room : src_size;
		a.largest = a.largest < LADE_CHUNK_MAX ? a.largest : LADE_CHUNK_MAX;
		OK((way == LADE_DECODE ? lade_decode_arrays_async : lade_encode_arrays_async)(
			engine, spec, &a, &o, err));
	} else {
		OK(lade_decoded_sizes_arrays_async(engine, spec, &a, &o, err));
	}
	lade_results_get(&o, 1, &result, NULL);
	buffer_free(&tables);
	buffer_free(&results);
	return result;
}

/* Decodes 'size' bytes at 'coded' to those of the trial. */
static void decode(const trial *t, const lade_spec *spec, size_t size, const char *whose)
{
	device_fill(out, t->size);
	double from = now();
	lade_result got = by_tables(spec, LADE_DECODE, coded + AROUND, size, out + AROUND, t->size);
	double took = now() - from;
	print_message("%-46s decode %-7s %10zu -> %10zu bytes, %7.3f s, %7.2f GB/s: %s\n", t->spec,
	              whose, size, got.size, took, (double)t->size / took / 1e9,
	              lade_status_name(got.status));
	EXPECT(got.status == LADE_OK && got.size == t->size);
	around_stays(out, t->size);
	EXPECT(sum_of(out + AROUND, t->size, near) == t->sum);
}

static void run(trial *t)
{
	lade_spec *spec = spec_of(engine, t->spec);
	const uint8_t *want = source_of(t);
	uint8_t *back = NULL;
	if (t->flags & LOSSY) {
		size_t size;
		want = back = malloc(t->size);
		OK(lade_decode(engine, spec, lade_host_cspan(t->encoded, t->encoded_size),
		               lade_host_span(back, t->size), &size, err));
	}
	t->sum = sum_of(want, t->size, LADE_PLACE_HOST);
	free(back);
	t->encoded_sum = sum_of(t->encoded, t->encoded_size, LADE_PLACE_HOST);
	move(0, coded + AROUND, t->encoded, t->encoded_size);
	if (t->flags & TELLS) {
		double from = now();
		lade_result told = by_tables(spec, LADE_DECODE, coded + AROUND, t->encoded_size,
		                             NULL, 0);
		print_message("%-46s size   %10zu bytes, %7.3f s\n", t->spec, told.size,
		              now() - from);
		EXPECT(told.status == LADE_OK && told.size == t->size);
	}
	decode(t, spec, t->encoded_size, t->flags & MIXED ? "mixed" : "host's");
	if (t->flags & ENCODES) {
		size_t room = lade_spec_bound(spec, t->size);
		device_fill(coded, coded_room);
		double from = now();
		lade_result got = by_tables(spec, LADE_ENCODE, in + AROUND, t->size,
		                            coded + AROUND, room);
		double took = now() - from;
		print_message("%-46s encode %-7s %10zu -> %10zu bytes, %7.3f s, %7.2f GB/s: %s\n",
		              t->spec, "", t->size, got.size, took, (double)t->size / took / 1e9,
		              lade_status_name(got.status));
		EXPECT(got.status == LADE_OK);
		around_stays(coded, room);
		if (t->flags & SAME)
			EXPECT(got.size == t->encoded_size &&
			       sum_of(coded + AROUND, got.size, near) == t->encoded_sum);
		if (got.status == LADE_OK)
			decode(t, spec, got.size, "own");
	}
	lade_spec_unref(spec);
	free(t->encoded);
	t->encoded = NULL;
}

static void the_largest_chunk(void **state)
{
	(void)state;
	for (size_t i = 0; i < TRIALS; i++)
		if (strstr(trials[i].spec, only))
			run(&trials[i]);
	assert_int_equal(failed, 0);
}

/* The whole of a frame: 'to' gets the bytes that 'in' has. */
static void read_frame(lade_frame *frame, lade_span to, uint32_t sum, const char *what)
{
	lade_frame_range range = {.dst = to};
	double from = now();
	OK(lade_frame_read(frame, &range, 1, NULL, NULL, err));
	print_message("  read, %s: %.3f s\n", what, now() - from);
	EXPECT(sum_of(to.data, to.size, to.place) == sum);
	lade_frame_close(frame);
}

/* Frames of one chunk of the largest size, and of two above 1 GiB: the device writes them, and
 * device and host read them. */
static void frames(void **state)
{
	static const char *const specs[] = {"ans", "shuffle(4)|lz4"};
	(void)state;
	uint8_t *back = malloc(most);
	assert_non_null(back);
	uint32_t sum = sum_of(plain, most, LADE_PLACE_HOST);
	for (size_t i = 0; i < 2; i++) {
		if (!strstr(specs[i], only))
			continue;
		lade_spec *spec = spec_of(engine, specs[i]);
		lade_frame_options o = {.struct_size = sizeof o,
		                        .spec = spec,
		                        .chunk_size = i ? most / 2 + 16 : most};
		lade_frame_read_options f = {.struct_size = sizeof f};
		lade_frame *frame;
		size_t room = lade_frame_bound(&o, most), size;
		assert_true(room <= coded_room);
		double from = now();
		OK(lade_frame_encode_device(engine, &o, (lade_cspan){in + AROUND, most, near},
		                            (lade_span){coded + AROUND, room, near}, &size, err));
		print_message("a frame of %s, chunks of %zu: %zu bytes, %.3f s\n", specs[i],
		              o.chunk_size, size, now() - from);
		OK(lade_frame_open_device(engine, (lade_cspan){coded + AROUND, size, near}, NULL,
		                          &f, &frame, err));
		device_fill(out, most);
		read_frame(frame, (lade_span){out + AROUND, most, near}, sum, "all on the device");
		around_stays(out, most);
		uint8_t *bytes = malloc(size);
		assert_non_null(bytes);
		move(0, bytes, coded + AROUND, size);
		for (int device = 0; device < 2; device++) {
			f.where = device ? LADE_WHERE_DEVICE : LADE_WHERE_HOST;
			memset(back, 0, most);
			OK(lade_frame_open_memory(engine, bytes, size, &f, &frame, err));
			assert_true(lade_frame_get_info(frame)->chunk_count == i + 1);
			read_frame(frame, lade_host_span(back, most), sum,
			           device ? "decoded by the device" : "decoded by the host");
		}
		free(bytes);
		lade_spec_unref(spec);
	}
	free(back);
	assert_int_equal(failed, 0);
}

/* ---- what is larger -------------------------------------------------------------------------- */

/* Noise whose encoding would be larger than a chunk; or, on the emulated device, is not. */
static void encoders_say_what_does_not_fit(void **state)
{
	static const char *const specs[] = {"snappy", "ans", "ans(<f4)", "bitcomp(<i4)",
	                                    "cascaded(<i4)", "crc32c"};
	(void)state;
	move(0, in + AROUND, noise, most);
	for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
		if (!strstr(specs[i], only))
			continue;
		lade_spec *spec = spec_of(engine, specs[i]);
		size_t room = lade_spec_bound(spec, most);
		double from = now();
		lade_result got = by_tables(spec, LADE_ENCODE, in + AROUND, most, coded + AROUND,
		                            room < coded_room ? room : coded_room);
		print_message("%-46s noise %zu bytes, %.3f s: %s\n", specs[i], got.size,
		              now() - from, lade_status_name(got.status));
		EXPECT(got.status == (emu ? LADE_OK : LADE_E_LIMIT));
		lade_spec_unref(spec);
	}
	/* And LZ4's, which does: its limit is lower. */
	trial t = {.spec = "lz4", .size = LZ4_MOST < most ? LZ4_MOST : most};
	lade_spec *spec = spec_of(engine, "lz4");
	size_t room = lade_spec_bound(spec, t.size);
	t.sum = sum_of(noise, t.size, LADE_PLACE_HOST);
	lade_result got = by_tables(spec, LADE_ENCODE, in + AROUND, t.size, coded + AROUND, room);
	EXPECT(got.status == LADE_OK && got.size > t.size);
	decode(&t, spec, got.size, "noise");
	if (!emu)
		got = by_tables(spec, LADE_ENCODE, in + AROUND, t.size + 1, coded + AROUND, room);
	EXPECT(emu || got.status == LADE_E_LIMIT);
	lade_spec_unref(spec);
	assert_int_equal(failed, 0);
}

/* Nothing of a larger one is read. */
static void larger_ones_are_refused(void **state)
{
	static const char *const specs[] = {"lz4", "snappy", "zstd", "deflate", "zlib", "gzip",
	                                    "ans", "bitcomp", "cascaded", "blosc", "shuffle(4)",
	                                    "bitshuffle(4)", "delta(<i4)", "crc32c"};
	(void)state;
	for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
		lade_spec *spec = spec_of(engine, specs[i]);
		uint64_t size = (uint64_t)LADE_CHUNK_MAX + 1;
		lade_segment s = {coded + AROUND, (size_t)size, near, 0};
		lade_item item = {.src = &s, .src_count = 1, .dst = {out + AROUND, 16, near}};
		lade_batch_options o = {.struct_size = sizeof o, .where = LADE_WHERE_DEVICE};
		assert_int_equal(by_tables(spec, LADE_DECODE, coded + AROUND, size, out + AROUND,
		                           16)
		                         .status,
		                 LADE_E_LIMIT);
		FAILS(LADE_E_LIMIT, "2147483648 bytes, kernels take 2147483647",
		      lade_decode_into(engine, spec, &item, 1, NULL, &o, err));
		lade_spec_unref(spec);
	}
}

/* Workspaces grow with the largest chunk, and do not overflow. */
static void workspaces(void **state)
{
	static const char *const specs[] = {
		"lz4", "snappy", "zstd", "deflate", "gzip", "ans(<f4)", "bitcomp(<i4)",
		"cascaded(<i4)", "blosc", "delta(<i4)", "crc32c", "shuffle(4)|lz4",
		"lz4|crc32c", "delta(<i4)|bitshuffle(4)|ans|crc32c"};
	static const uint64_t largests[] = {4096, 1 << 20, 1 << 30, LADE_CHUNK_MAX};
	(void)state;
	for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
		for (size_t count = 1; count <= 1000000; count *= 100) {
			lade_spec *spec = spec_of(engine, specs[i]);
			size_t size, before = 0;
			for (size_t k = 0; k < sizeof largests / sizeof *largests; k++) {
				lade_arrays a = {.struct_size = sizeof a,
				                 .count = count,
				                 .largest = largests[k]};
				OK(lade_workspace_size(engine, spec, LADE_DECODE, &a, &size, err));
				assert_true(size >= before);
				/* All that is between stages, and zstd's two, at most. */
				assert_true(size / 8 <= count * largests[k] + (64 << 20));
				if (strstr(specs[i], "|ans|"))
					assert_true(size >= count * largests[k]);
				before = size;
			}
			lade_spec_unref(spec);
		}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(larger_ones_are_refused),
		cmocka_unit_test(workspaces),
		cmocka_unit_test(frames),
		cmocka_unit_test(the_largest_chunk),
		cmocka_unit_test(encoders_say_what_does_not_fit),
	};
	int rc;
	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], "--only") == 0)
			only = argv[i + 1];
	if (!kit_begin(argc, argv, &rc))
		return rc;
	return cmocka_run_group_tests(tests, begin, end);
}
