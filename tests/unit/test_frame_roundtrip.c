/*
 * test_frame_roundtrip.c: frames of many shapes through every writer and every reader.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame_kit.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <time.h>
#include <cmocka.h>

static lade_engine *engine; /* of three threads */
static uint64_t seed;

static int setup(void **state)
{
	(void)state;
	lade_engine_options options = {.struct_size = sizeof options, .threads = 3};
	const char *given = getenv("LADE_SEED");
	seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
	printf("seed %llu (LADE_SEED repeats it)\n", (unsigned long long)seed);
	return lade_engine_new(&options, &engine, NULL) != LADE_OK;
}

static int teardown(void **state)
{
	(void)state;
	lade_engine_free(engine);
	return 0;
}

static rng new_rng(uint64_t salt)
{
	return (rng){seed * 0x9E3779B97F4A7C15u + salt * 2 + 1};
}

/* All readers give 'size' bytes of 'data' back. */
static void check_readers(const kit_bytes *frame, const uint8_t *data, size_t size, rng *r,
                          const char *what)
{
	guard encoded = guard_copy(frame->data, frame->size, 1);
	for (int reader = 0; reader < KIT_READERS; reader++) {
		kit_bytes out = {0};
		lade_error err = {0};
		lade_status status =
			kit_decode(engine, (enum kit_reader)reader, encoded.data, encoded.size,
		                   kit_read_options(LADE_VERIFY_IF_PRESENT), &out,
		                   rng_below(r, 2) ? r : NULL, &err);
		if (status != LADE_OK || out.size != size || (size && memcmp(out.data, data, size)))
			fail_msg("%s, %s: %s %s: %zu bytes, want %zu", what,
			         kit_reader_names[reader], lade_status_name(status), err.message,
			         out.size, size);
		free(out.data);
	}
	guard_free(&encoded);
}

/* Random ranges, some overlapping, some empty, in one call. */
static void check_ranges(const kit_bytes *frame, const uint8_t *data, size_t size, rng *r)
{
	lade_frame *f;
	lade_frame_read_options options = kit_read_options(LADE_VERIFY_IF_PRESENT);
	assert_int_equal(
		lade_frame_open_memory(engine, frame->data, frame->size, &options, &f, NULL),
		LADE_OK);
	enum { N = 40 };
	lade_frame_range ranges[N];
	lade_result results[N];
	guard room[N];
	for (int i = 0; i < N; i++) {
		size_t off = rng_below(r, size + 1), n = rng_below(r, size - off + 1);
		if (rng_below(r, 2))
			n = n > 100 ? rng_below(r, 100) : n;
		room[i] = guard_new(n, rng_below(r, 2) != 0);
		ranges[i] = (lade_frame_range){off, lade_host_span(room[i].data, n)};
	}
	lade_error err;
	lade_status status = lade_frame_read(f, ranges, N, results, NULL, &err);
	if (status != LADE_OK)
		fail_msg("ranges: %s", err.message);
	for (int i = 0; i < N; i++) {
		assert_int_equal(results[i].size, ranges[i].dst.size);
		assert_memory_equal(room[i].data, data + ranges[i].off, room[i].size);
		guard_free(&room[i]);
	}
	lade_frame_close(f);
}

/* Writes with pieces of random sizes, or from an input, the size announced or not. */
static kit_bytes write_somehow(lade_frame_options options, const uint8_t *data, size_t size, rng *r)
{
	kit_bytes out = {0};
	lade_frame_writer *writer;
	lade_error err = {0};
	options.has_size = options.has_size || rng_below(r, 2);
	options.size = size;
	options.threads = (unsigned)rng_below(r, 4);
	lade_status status =
		lade_frame_writer_new(engine, kit_output(&out), &options, &writer, &err);
	if (status != LADE_OK)
		fail_msg("writer: %s", err.message);
	size_t at = 0;
	while (status == LADE_OK && at < size) {
		size_t n = rng_below(r, 3) ? rng_below(r, size - at + 1) : rng_below(r, 100);
		n = n < size - at ? n : size - at;
		if (rng_below(r, 3)) {
			status = lade_frame_writer_write(writer, data + at, n, &err);
		} else {
			kit_input in = {
				.data = data + at, .size = n, .random = rng_below(r, 2) ? r : NULL};
			status = lade_frame_writer_copy(writer, (lade_input){&in, kit_read}, &err);
		}
		at += n;
	}
	if (status == LADE_OK)
		status = lade_frame_writer_finish(writer, &err);
	if (status != LADE_OK)
		fail_msg("writing: %s", err.message);
	lade_frame_writer_free(writer);
	return out;
}

/* A pipeline of up to three filters, a codec and up to two checksums. */
static void random_spec(char *text, size_t cap, rng *r)
{
	static const char *const filters[] = {"shuffle(4)",    "shuffle(8)", "shuffle(3)",
	                                      "bitshuffle(4)", "delta(<i4)", "zigzag(<i4)",
	                                      "split(4)"};
	static const char *const codecs[] = {
		"copy", "lz4",  "lz4(level=5)",     "snappy", "zstd(level=1)",
		"zlib", "gzip", "deflate(level=2)", "zstd",   "blosc(typesize=4)"};
	static const char *const sums[] = {"crc32", "crc32c", "adler32", "xxh64"};
	size_t n = 0;
	for (uint64_t i = rng_below(r, 4); i > 0; i--)
		n += (size_t)snprintf(text + n, cap - n, "%s|",
		                      filters[rng_below(r, sizeof filters / sizeof *filters)]);
	n += (size_t)snprintf(text + n, cap - n, "%s",
	                      codecs[rng_below(r, sizeof codecs / sizeof *codecs)]);
	for (uint64_t i = rng_below(r, 3); i > 0; i--)
		n += (size_t)snprintf(text + n, cap - n, "|%s", sums[rng_below(r, 4)]);
}

static void test_edges(void **state)
{
	(void)state;
	rng r = new_rng(1);
	static const size_t sizes[] = {0,  1,   15,  16,  17,   31,   32,
	                               33, 255, 256, 257, 1000, 4096, 5000};
	lade_spec *spec = kit_spec("lz4");
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (unsigned nature = 0; nature < KIT_NATURES; nature++)
			for (size_t chunk = 16; chunk <= 4096; chunk *= 16) {
				uint8_t data[5000];
				kit_fill(data, sizes[i], nature, &r);
				lade_frame_options options = kit_options(spec, chunk);
				kit_bytes f = write_somehow(options, data, sizes[i], &r);
				assert_int_equal(f.size % 16, 0);
				assert_true(f.size <= lade_frame_bound(&options, sizes[i]));
				check_readers(&f, data, sizes[i], &r, "edges");
				check_ranges(&f, data, sizes[i], &r);
				free(f.data);
			}
	lade_spec_unref(spec);
}

static void test_random(void **state)
{
	(void)state;
	rng r = new_rng(2);
	size_t cap = 600000;
	uint8_t *data = malloc(cap);
	for (int round = 0; round < 60; round++) {
		char text[256];
		random_spec(text, sizeof text, &r);
		lade_spec *spec = kit_spec(text);
		size_t size = rng_below(&r, (size_t)1 << rng_below(&r, 20));
		size = size < cap ? size : cap;
		size_t chunk = 16 + rng_below(&r, (size_t)1 << rng_below(&r, 20));
		kit_fill(data, size, (unsigned)rng_below(&r, KIT_NATURES), &r);
		lade_frame_options options = kit_options(spec, chunk);
		options.no_checksums = rng_below(&r, 5) < 2;
		options.checksum = rng_below(&r, 2) ? LADE_XXH64 : LADE_CRC32C;
		if (rng_below(&r, 2) || strstr(text, "<i4") || strstr(text, "split")) {
			options.dtype = LADE_U4;
			options.chunk_size = (chunk + 3) / 4 * 4;
		}
		kit_bytes f = write_somehow(options, data, size, &r);
		assert_true(f.size <= lade_frame_bound(&options, size));
		check_readers(&f, data, size, &r, text);
		check_ranges(&f, data, size, &r);
		free(f.data);
		lade_spec_unref(spec);
	}
	free(data);
}

/* Flags: noise is stored, one value is constant, the rest is coded. */
static void test_flags(void **state)
{
	(void)state;
	rng r = new_rng(3);
	enum { CHUNK = 4096 };
	uint8_t data[3 * CHUNK];
	kit_fill(data, CHUNK, 1, &r);
	for (size_t i = CHUNK; i < 2 * CHUNK; i++)
		data[i] = (uint8_t)('a' + i % 4);
	kit_fill(data + 2 * CHUNK, CHUNK, 2, &r);
	lade_spec *spec = kit_spec("lz4");
	lade_frame_options options = kit_options(spec, CHUNK);
	options.dtype = LADE_U4;
	uint64_t shape[] = {3, 1024};
	options.ndim = 2;
	options.shape = shape;
	options.fortran_order = true;
	kit_bytes f = kit_frame(engine, &options, data, sizeof data);
	lade_frame *frame;
	assert_int_equal(lade_frame_open_memory(engine, f.data, f.size, NULL, &frame, NULL),
	                 LADE_OK);
	const lade_frame_info *info = lade_frame_get_info(frame);
	assert_int_equal(info->size, sizeof data);
	assert_int_equal(info->encoded_size, f.size);
	assert_int_equal(info->chunk_count, 3);
	assert_int_equal(info->checksum, LADE_XXH64);
	assert_int_equal(info->dtype, LADE_U4);
	assert_true(info->has_shape && info->fortran_order);
	assert_int_equal(info->ndim, 2);
	assert_int_equal(info->shape[0], 3);
	assert_int_equal(info->shape[1], 1024);
	assert_string_equal(lade_spec_text(info->spec), lade_spec_text(spec));
	static const uint32_t flags[] = {LADE_CHUNK_STORED, LADE_CHUNK_CONSTANT, 0};
	for (uint64_t i = 0; i < 3; i++) {
		lade_frame_chunk c;
		assert_int_equal(lade_frame_get_chunk(frame, i, &c, NULL), LADE_OK);
		assert_int_equal(c.flags, flags[i]);
		assert_int_equal(c.decoded_size, CHUNK);
		assert_int_equal(c.off % 16, 0);
		assert_true(c.checksum == lade_checksum_of(LADE_XXH64, data + i * CHUNK, CHUNK));
		if (i == 1)
			assert_int_equal(c.size, 4);
	}
	lade_frame_chunk none;
	assert_int_equal(lade_frame_get_chunk(frame, 3, &none, NULL), LADE_E_RANGE);
	lade_frame_close(frame);
	check_readers(&f, data, sizeof data, &r, "flags");
	free(f.data);
	lade_spec_unref(spec);
}

static void test_own_spec(void **state)
{
	(void)state;
	rng r = new_rng(4);
	enum { CHUNK = 1000, N = 7 };
	uint8_t data[N * CHUNK - 300];
	kit_fill(data, sizeof data, 2, &r);
	lade_spec *spec = kit_spec("lz4"), *own = kit_spec("zstd(level=5)|crc32c");
	lade_frame_options options = kit_options(spec, CHUNK);
	kit_bytes out = {0};
	lade_frame_writer *w;
	lade_error err = {0};
	assert_int_equal(lade_frame_writer_new(engine, kit_output(&out), &options, &w, &err),
	                 LADE_OK);
	assert_int_equal(lade_frame_writer_write(w, data, CHUNK + 10, &err), LADE_OK);
	assert_int_equal(lade_frame_writer_write(w, data + CHUNK + 10, CHUNK - 10, &err), LADE_OK);
	for (size_t i = 2; i < N; i++) {
		size_t size = i == N - 1 ? CHUNK - 300 : CHUNK;
		lade_status status = lade_frame_writer_chunk(w, i % 2 ? own : NULL,
		                                             data + i * CHUNK, size, &err);
		if (status != LADE_OK)
			fail_msg("%s", err.message);
	}
	assert_int_equal(lade_frame_writer_finish(w, &err), LADE_OK);
	assert_int_equal(lade_frame_writer_write(w, data, 1, &err), LADE_E_STATE);
	lade_frame_writer_free(w);
	lade_frame *frame;
	assert_int_equal(lade_frame_open_memory(engine, out.data, out.size, NULL, &frame, NULL),
	                 LADE_OK);
	for (uint64_t i = 0; i < N; i++) {
		lade_frame_chunk c;
		assert_int_equal(lade_frame_get_chunk(frame, i, &c, NULL), LADE_OK);
		assert_int_equal(c.flags, i >= 2 && i % 2 ? LADE_CHUNK_OWN_SPEC : 0);
	}
	lade_frame_close(frame);
	check_readers(&out, data, sizeof data, &r, "own spec");
	check_ranges(&out, data, sizeof data, &r);
	free(out.data);
	lade_spec_unref(spec);
	lade_spec_unref(own);
}

/* Whatever the filter and its options, a frame of any bytes reads back with its checksums good: to
 * the bit where the spec is not lossy. */
static void test_every_filter(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		bool lossy;
	} specs[] = {
		{"shuffle(4)", false},
		{"bitshuffle(2)", false},
		{"split(8)", false},
		{"byteswap(4)", false},
		{"zigzag(<i4)", false},
		{"delta(<i4)", false},
		{"delta(<u8)", false},
		{"delta(<i2,astype=<i4)", false},
		{"delta(<i4,astype=<u4)", false},
		{"delta(<f4)", true},
		{"delta(<f8,astype=<f4)", true},
		{"delta(<i4,astype=<f4)", true},
		{"scaleoffset(<i4)", false},
		{"scaleoffset(<f4,scale=3.7,offset=0.3)", true},
		{"scaleoffset(<f8)", true},
		{"packbits", true},
		{"bitround(<f4,keepbits=3)", true},
		{"quantize(<f8,digits=2)", true},
		{"shuffle(4)|bitround(<f4,keepbits=3)|shuffle(4)", true},
	};
	rng r = new_rng(6);
	uint8_t data[8192];
	for (size_t i = 0; i < sizeof data; i += 4) {
		/* Reals with all digits, from 2^-7 to 2^8. */
		uint32_t x = (uint32_t)((120 + rng_below(&r, 16)) << 23 | rng_below(&r, 1 << 23));
		memcpy(data + i, &x, 4);
	}
	for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
		char text[128];
		snprintf(text, sizeof text, "%s|zstd", specs[i].text);
		lade_spec *spec = kit_spec(text);
		assert_true(lade_spec_is_lossy(spec) == specs[i].lossy);
		lade_frame_options options = kit_options(spec, 1024);
		kit_bytes f = kit_frame(engine, &options, data, sizeof data), out = {0};
		lade_error err = {0};
		if (kit_decode(engine, KIT_MEMORY, f.data, f.size,
		               kit_read_options(LADE_VERIFY_REQUIRED), &out, NULL, &err))
			fail_msg("%s: %s", text, err.message);
		assert_int_equal(out.size, sizeof data);
		if (!specs[i].lossy)
			assert_memory_equal(out.data, data, sizeof data);
		free(out.data);
		free(f.data);
		lade_spec_unref(spec);
	}
}

/* What a lossy spec gives is what its checksum is of, and the same by every reader. */
static void test_lossy(void **state)
{
	(void)state;
	rng r = new_rng(5);
	enum { COUNT = 5000 };
	float data[COUNT], once[COUNT];
	for (size_t i = 0; i < COUNT; i++)
		data[i] = (float)rng_below(&r, 1 << 24) / 977.0f;
	memset(data, 0, 512 * sizeof *data);
	lade_spec *spec = kit_spec("bitround(<f4,keepbits=7)|shuffle(4)|lz4");
	lade_frame_options options = kit_options(spec, 1024);
	options.dtype = LADE_F4;
	kit_bytes f = kit_frame(engine, &options, data, sizeof data);
	kit_bytes out = {0};
	lade_error err = {0};
	lade_status status =
		kit_decode(engine, KIT_MEMORY, f.data, f.size,
	                   kit_read_options(LADE_VERIFY_REQUIRED), &out, NULL, &err);
	if (status != LADE_OK)
		fail_msg("%s", err.message);
	assert_int_equal(out.size, sizeof data);
	memcpy(once, out.data, sizeof once);
	for (size_t i = 0; i < COUNT; i++)
		assert_true(once[i] >= data[i] * 0.99f && once[i] <= data[i] * 1.01f);
	assert_true(memcmp(once, data, sizeof data) != 0);
	check_readers(&f, (const uint8_t *)once, sizeof once, &r, "lossy");
	free(out.data);
	free(f.data);
	/* Three bytes that are no element are kept as they are. */
	options.chunk_size = 400;
	f = kit_frame(engine, &options, data + 1000, 403);
	out = (kit_bytes){0};
	assert_int_equal(kit_decode(engine, KIT_STREAM_COPY, f.data, f.size,
	                            kit_read_options(LADE_VERIFY_REQUIRED), &out, NULL, NULL),
	                 LADE_OK);
	assert_int_equal(out.size, 403);
	assert_memory_equal(out.data + 400, (const uint8_t *)(data + 1000) + 400, 3);
	free(out.data);
	free(f.data);
	lade_spec_unref(spec);
}

/* More than 24 index pages. */
static void test_tiny_chunks(void **state)
{
	(void)state;
	rng r = new_rng(6);
	size_t size = 100000 * 16 - 5;
	uint8_t *data = malloc(size);
	kit_fill(data, size, 4, &r);
	lade_spec *spec = kit_spec("lz4");
	lade_frame_options options = kit_options(spec, 16);
	for (int known = 0; known < 2; known++) {
		options.has_size = known;
		options.size = size;
		kit_bytes f = write_somehow(options, data, size, &r);
		check_readers(&f, data, size, &r, "tiny chunks");
		check_ranges(&f, data, size, &r);
		free(f.data);
	}
	/* Exactly one full page, and one chunk more. */
	for (size_t n = 4096; n <= 4097; n++) {
		options.has_size = false;
		kit_bytes f = write_somehow(options, data, n * 16, &r);
		check_readers(&f, data, n * 16, &r, "one page");
		free(f.data);
	}
	lade_spec_unref(spec);
	free(data);
}

/* Frames behind one another in a pipe: the rest of one is the beginning of the next. */
static void test_rest(void **state)
{
	(void)state;
	lade_frame_options options = kit_options(NULL, 16);
	kit_bytes one = kit_frame(engine, &options, "the first frame of two", 22);
	kit_bytes two = kit_frame(engine, &options, "second", 6);
	kit_write(&one, two.data, two.size, NULL);
	kit_input in = {.data = one.data, .size = one.size};
	lade_frame_pipe *s;
	kit_bytes out = {0};
	assert_int_equal(lade_frame_pipe_new(engine, (lade_input){&in, kit_read}, NULL, &s, NULL),
	                 LADE_OK);
	assert_int_equal(lade_frame_pipe_get_info(s)->size, LADE_SIZE_UNKNOWN);
	assert_int_equal(lade_frame_pipe_copy(s, kit_output(&out), NULL), LADE_OK);
	assert_int_equal(out.size, 22);
	assert_int_equal(lade_frame_pipe_get_info(s)->size, 22);
	assert_int_equal(lade_frame_pipe_get_info(s)->chunk_count, 2);
	assert_int_equal(lade_frame_pipe_get_info(s)->encoded_size, one.size - two.size);
	lade_cspan rest = lade_frame_pipe_rest(s);
	assert_int_equal(rest.size, two.size);
	assert_memory_equal(rest.data, two.data, two.size);
	lade_frame_pipe_free(s);
	/* By index there is one frame or none. */
	lade_frame *f;
	lade_error err;
	assert_int_equal(lade_frame_open_memory(engine, one.data, one.size, NULL, &f, &err),
	                 LADE_E_CORRUPT);
	free(out.data);
	free(one.data);
	free(two.data);
}

/* One frame, read by several threads at once. */
typedef struct shared {
	lade_frame *frame;
	const uint8_t *data;
	size_t size;
	uint64_t seed;
	size_t wrong;
} shared;

static void *read_shared(void *arg)
{
	shared *s = arg;
	rng r = {s->seed};
	uint8_t room[3][3000];
	for (int i = 0; i < 50; i++) {
		lade_frame_range ranges[3];
		for (int j = 0; j < 3; j++) {
			size_t n = rng_below(&r, sizeof room[j]);
			ranges[j] = (lade_frame_range){rng_below(&r, s->size - n),
			                               lade_host_span(room[j], n)};
		}
		lade_frame_chunk chunk;
		s->wrong += lade_frame_read(s->frame, ranges, 3, NULL, NULL, NULL) != LADE_OK;
		s->wrong += lade_frame_get_chunk(s->frame, rng_below(&r, s->size / 16), &chunk,
		                                 NULL) != LADE_OK;
		for (int j = 0; j < 3; j++)
			s->wrong +=
				memcmp(room[j], s->data + ranges[j].off, ranges[j].dst.size) != 0;
	}
	return NULL;
}

static void test_shared_frame(void **state)
{
	(void)state;
	rng r = new_rng(8);
	enum { THREADS = 4 };
	size_t size = 300000 * 16; /* more pages than are kept */
	uint8_t *data = malloc(size);
	kit_fill(data, size, 4, &r);
	lade_frame_options options = kit_options(NULL, 16);
	kit_bytes f = kit_frame(engine, &options, data, size);
	kit_input in = {.data = f.data, .size = f.size};
	lade_frame *frame;
	assert_int_equal(lade_frame_open(engine, kit_source(&in), NULL,
	                                 &frame, NULL),
	                 LADE_OK);
	pthread_t threads[THREADS];
	shared each[THREADS];
	for (uint64_t i = 0; i < THREADS; i++) {
		each[i] = (shared){frame, data, size, rng_next(&r) | 1, 0};
		assert_int_equal(pthread_create(&threads[i], NULL, read_shared, &each[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(each[i].wrong, 0);
	}
	lade_frame_close(frame);
	free(f.data);
	free(data);
}

/* Blocks of so many bytes that were taken. */
#define GATHERED ((size_t)1 << 20)
static atomic_uint gathered;

static void *count_alloc(void *ctx, size_t size, size_t align, lade_place place, lade_stream stream)
{
	const lade_allocator *host = lade_allocator_default(LADE_HOST);
	if (size == GATHERED)
		atomic_fetch_add(&gathered, 1);
	return host->alloc(ctx, size, align, place, stream);
}

/* Writes 'before' bytes, and then the others at once; gives how many chunks were gathered. */
static unsigned write_in_two(lade_engine *counted, const lade_frame_options *options,
                             const uint8_t *data, size_t size, size_t before, kit_bytes *out)
{
	lade_frame_writer *writer;
	size_t rest = size - before;
	atomic_store(&gathered, 0);
	assert_int_equal(
		lade_frame_writer_new(counted, kit_output(out), options, &writer, NULL), LADE_OK);
	assert_int_equal(lade_frame_writer_write(writer, data, before, NULL), LADE_OK);
	assert_int_equal(lade_frame_writer_write(writer, data + before, rest, NULL), LADE_OK);
	assert_int_equal(lade_frame_writer_finish(writer, NULL), LADE_OK);
	lade_frame_writer_free(writer);
	return atomic_load(&gathered);
}

/* The rest of a frame whose size is known is encoded where it lies. */
static void test_rest_at_once(void **state)
{
	(void)state;
	lade_allocator host = *lade_allocator_default(LADE_HOST);
	host.alloc = count_alloc;
	lade_engine_options own = {
		.struct_size = sizeof own, .threads = 4, .allocators = {&host}};
	lade_engine *counted;
	assert_int_equal(lade_engine_new(&own, &counted, NULL), LADE_OK);
	rng r = new_rng(9);
	lade_spec *spec = kit_spec("lz4");
	size_t size = 3 * GATHERED + 77;
	uint8_t *data = malloc(size);
	kit_fill(data, size, 4, &r);
	/* Nothing, a part of a chunk, a chunk, and one and a part come before; all but the rest. */
	const size_t before[] = {0, 999, GATHERED, GATHERED + 5, size - 7};
	const unsigned most[] = {0, 1, 1, 2, 4};
	for (size_t i = 0; i < 5; i++) {
		lade_frame_options options = kit_options(spec, GATHERED);
		for (unsigned known = 0; known < 2; known++) {
			kit_bytes out = {0};
			options.has_size = known;
			options.size = size;
			unsigned count =
				write_in_two(counted, &options, data, size, before[i], &out);
			assert_true(known ? count <= most[i] : count > 2);
			check_readers(&out, data, size, &r, "the rest at once");
			free(out.data);
		}
	}
	free(data);
	lade_spec_unref(spec);
	lade_engine_free(counted);
}

static void test_dictionary(void **state)
{
	(void)state;
	static const char words[] =
		"a dictionary knows most of what these chunks say, word by word";
	lade_dict *dict;
	lade_spec *spec = kit_spec("zstd");
	assert_int_equal(lade_dict_new(words, sizeof words, &dict, NULL), LADE_OK);
	lade_frame_options options = kit_options(spec, 1000);
	kit_bytes without = kit_frame(engine, &options, words, sizeof words);
	options.dict = dict;
	kit_bytes with = kit_frame(engine, &options, words, sizeof words);
	assert_true(with.size < without.size);
	lade_frame_read_options read = kit_read_options(LADE_VERIFY_REQUIRED);
	for (int reader = 0; reader < KIT_READERS; reader++)
		for (int known = 0; known < 2; known++) {
			kit_bytes out = {0};
			read.dict = known ? dict : NULL;
			lade_status status = kit_decode(engine, (enum kit_reader)reader, with.data,
			                                with.size, read, &out, NULL, NULL);
			assert_int_equal(status == LADE_OK, known);
			if (known)
				assert_memory_equal(out.data, words, sizeof words);
			free(out.data);
		}
	free(with.data);
	free(without.data);
	lade_spec_unref(spec);
	lade_dict_free(dict);
}

static void test_writer_failures(void **state)
{
	(void)state;
	uint8_t data[5000];
	rng r = new_rng(7);
	kit_fill(data, sizeof data, 1, &r);
	lade_frame_options options = kit_options(NULL, 64);
	lade_error err, again;
	lade_frame_writer *w;
	kit_bytes whole = kit_frame(engine, &options, data, sizeof data);
	/* A full disk at every place: an error that stays, and no crash. */
	for (size_t at = 1; at < whole.size; at += 97) {
		kit_bytes out = {.fail_at = at};
		lade_status status =
			lade_frame_writer_new(engine, kit_output(&out), &options, &w, &err);
		if (status == LADE_OK) {
			status = lade_frame_writer_write(w, data, sizeof data, &err);
			if (status == LADE_OK)
				status = lade_frame_writer_finish(w, &err);
			assert_int_equal(lade_frame_writer_finish(w, &again), LADE_E_IO);
			assert_string_equal(err.message, again.message);
			lade_frame_writer_free(w);
		}
		assert_int_equal(status, LADE_E_IO);
		assert_string_equal(err.message, "the disk is full");
		free(out.data);
	}
	free(whole.data);
	/* Another size than announced. */
	kit_bytes out = {0};
	options.has_size = true;
	options.size = 100;
	assert_int_equal(lade_frame_writer_new(engine, kit_output(&out), &options, &w, &err),
	                 LADE_OK);
	assert_int_equal(lade_frame_writer_write(w, data, 99, &err), LADE_OK);
	assert_int_equal(lade_frame_writer_finish(w, &err), LADE_E_STATE);
	lade_frame_writer_free(w);
	assert_int_equal(lade_frame_writer_new(engine, kit_output(&out), &options, &w, &err),
	                 LADE_OK);
	assert_int_equal(lade_frame_writer_write(w, data, 101, &err), LADE_E_STATE);
	lade_frame_writer_free(w);
	free(out.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edges),     cmocka_unit_test(test_random),
		cmocka_unit_test(test_flags),     cmocka_unit_test(test_own_spec),
		cmocka_unit_test(test_lossy),     cmocka_unit_test(test_tiny_chunks),
		cmocka_unit_test(test_every_filter),
		cmocka_unit_test(test_rest),      cmocka_unit_test(test_writer_failures),
		cmocka_unit_test(test_shared_frame), cmocka_unit_test(test_rest_at_once),
		cmocka_unit_test(test_dictionary),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
