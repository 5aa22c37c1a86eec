/*
 * test_frame_device.c: frames that are read with a device, on the emulated one: every range gets
 * the bytes, the status and the words that the host's strict decoders come to.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/device.h"
#include "frame_kit.h"
#include "gpu/emulated.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "gpu/emulated_move.h"

#include <xxhash.h>

static emulated_state *emu;
static lade_engine *engine;
static uint64_t seed;

static lade_frame_read_options read_options(bool device, lade_verify verify)
{
	lade_frame_read_options o = kit_read_options(verify);
	o.flags = LADE_FRAME_STRICT;
	o.where = device ? LADE_WHERE_DEVICE : LADE_WHERE_HOST;
	o.device = 1;
	return o;
}

/* A frame of chunks of all kinds: the frame's spec, specs of their own, stored, constant. */
static kit_bytes mixed_frame(const char *text, size_t chunk, size_t size, uint8_t *data, rng *r)
{
	static const char *const own[] = {"snappy", "lz4", "zstd", "shuffle(4)|lz4", "lz4|crc32c"};
	lade_spec *spec = kit_spec(text), *others[5];
	lade_frame_options options = kit_options(spec, chunk);
	kit_bytes out = {0};
	lade_frame_writer *writer;
	assert_int_equal(lade_frame_writer_new(engine, kit_output(&out), &options, &writer, NULL),
	                 LADE_OK);
	for (size_t i = 0; i < 5; i++)
		others[i] = kit_spec(own[i]);
	for (size_t at = 0; at < size; at += chunk) {
		size_t n = size - at < chunk ? size - at : chunk;
		kit_fill(data + at, n, (unsigned)rng_below(r, KIT_NATURES), r);
		uint64_t pick = rng_below(r, 15);
		assert_int_equal(lade_frame_writer_chunk(writer, pick < 5 ? others[pick] : NULL,
		                                         data + at, n, NULL), LADE_OK);
	}
	assert_int_equal(lade_frame_writer_finish(writer, NULL), LADE_OK);
	lade_frame_writer_free(writer);
	for (size_t i = 0; i < 5; i++)
		lade_spec_unref(others[i]);
	lade_spec_unref(spec);
	return out;
}

/* ---- one read, both ways -------------------------------------------------------------------- */

#define RANGES 24

typedef struct reading {
	lade_status status;
	lade_error error;
	lade_result results[RANGES];
	uint8_t *data;
} reading;

/* Where ranges lie: all alike, or each elsewhere. */
enum { ON_HOST, PINNED, DEVICE_0, DEVICE_1, PLACES, ANYWHERE = PLACES, MEMORIES };

static const lade_place places[PLACES] = {
	{LADE_HOST, 0}, {LADE_PINNED, 0}, {LADE_DEVICE, 0}, {LADE_DEVICE, 1}};

/* A block of each place that is used, with a byte behind it that must stay. */
static void blocks_new(uint8_t **block, size_t size, int memory)
{
	for (int k = 0; k < PLACES; k++) {
		const lade_allocator *a = lade_allocator_default(places[k].kind);
		uint8_t *fill = malloc(size);
		block[k] = NULL;
		if (memory == k || memory == ANYWHERE) {
			block[k] = a->alloc(a->ctx, size, 64, places[k], NULL);
			assert_non_null(block[k]);
			memset(fill, 0xA5, size);
			emulated_move(places[k].device, block[k], fill, size);
		}
		free(fill);
	}
}

/* The ranges' bytes stand one behind the other in 'data', and so they do where they are read to. */
static reading read_ranges(const kit_bytes *bytes, bool source, lade_frame_read_options o,
                           const lade_frame_range *ranges, size_t count, int memory)
{
	lade_frame_range mine[RANGES];
	kit_input in = {.data = bytes->data, .size = bytes->size};
	reading r = {.error.offset = LADE_NO_OFFSET};
	uint8_t *block[PLACES];
	lade_frame *frame;
	size_t total = 0, at = 0;
	for (size_t i = 0; i < count; i++)
		total += ranges[i].dst.size;
	/* Only the calls of what is tested are made to fail. */
	int fail_at = emu->fail_at;
	emu->fail_at = 0;
	blocks_new(block, total + 1, memory);
	emu->calls = 0;
	emu->fail_at = fail_at;
	for (size_t i = 0; i < count; i++) {
		size_t k = memory == ANYWHERE ? i % PLACES : (size_t)memory;
		mine[i] = (lade_frame_range){ranges[i].off,
		                             {block[k] + at, ranges[i].dst.size, places[k]}};
		at += ranges[i].dst.size;
	}
	r.status = source ? lade_frame_open(engine, in.size & 1 ? kit_far_source(&in)
	                                                  : kit_source(&in), &o,
	                                    &frame, &r.error)
	                  : lade_frame_open_memory(engine, bytes->data, bytes->size, &o, &frame,
	                                           &r.error);
	if (r.status == LADE_OK) {
		r.status = lade_frame_read(frame, mine, count, r.results, NULL, &r.error);
		lade_frame_close(frame);
	}
	emu->fail_at = 0;
	r.data = malloc(total + 1);
	assert_non_null(r.data);
	for (size_t k = 0; k < PLACES; k++) {
		const lade_allocator *a = lade_allocator_default(places[k].kind);
		if (!block[k])
			continue;
		uint8_t *image = malloc(total + 1);
		emulated_move(places[k].device, image, block[k], total + 1);
		assert_int_equal(image[total], 0xA5);
		at = 0;
		for (size_t i = 0; i < count; i++) {
			bool here = memory != ANYWHERE || i % PLACES == k;
			for (size_t j = at; !here && j < at + ranges[i].dst.size; j++)
				assert_int_equal(image[j], 0xA5);
			if (here && ranges[i].dst.size)
				memcpy(r.data + at, image + at, ranges[i].dst.size);
			at += ranges[i].dst.size;
		}
		free(image);
		a->free(a->ctx, block[k], total + 1, 64, places[k], NULL);
	}
	emu->fail_at = fail_at;
	return r;
}

/* Reads on the host and with the device, and compares: of ranges that failed no bytes. */
static lade_status compare(const kit_bytes *bytes, const lade_frame_range *ranges, size_t count,
                           lade_verify verify, rng *r)
{
	lade_frame_read_options o = read_options(true, verify);
	int memory = (int)rng_below(r, MEMORIES);
	reading host = read_ranges(bytes, rng_below(r, 2), read_options(false, verify), ranges,
	                           count, ON_HOST);
	/* What lies on a device also comes there without being asked to. */
	if (memory > PINNED && rng_below(r, 2))
		o.where = rng_below(r, 2) ? LADE_WHERE_AUTO : LADE_WHERE_HOST;
	reading device = read_ranges(bytes, rng_below(r, 2), o, ranges, count, memory);
	if (host.status != device.status || strcmp(host.error.message, device.error.message) != 0)
		fprintf(stderr, "seed %llu, memory %d, where %d: host: %s: %s, device: %s: %s\n",
		        (unsigned long long)seed, memory, (int)o.where,
		        lade_status_name(host.status), host.error.message,
		        lade_status_name(device.status), device.error.message);
	assert_int_equal(device.status, host.status);
	if (host.status != LADE_OK) {
		assert_string_equal(device.error.message, host.error.message);
		assert_int_equal(device.error.offset, host.error.offset);
	}
	size_t at = 0;
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(device.results[i].status, host.results[i].status);
		assert_int_equal(device.results[i].size, host.results[i].size);
		assert_memory_equal(device.data + at, host.data + at, host.results[i].size);
		at += ranges[i].dst.size;
	}
	lade_status status = host.status;
	free(host.data);
	free(device.data);
	return status;
}

static size_t random_ranges(lade_frame_range *ranges, size_t chunk, size_t size, rng *r)
{
	size_t count = 1 + rng_below(r, RANGES);
	for (size_t i = 0; i < count; i++) {
		uint64_t off = rng_below(r, size + 1), most = rng_below(r, 3) ? 3 * chunk : size;
		if (rng_below(r, 3) == 0)
			off -= off % chunk;
		uint64_t left = size - off < most ? size - off : most;
		ranges[i] = (lade_frame_range){off, {.size = rng_below(r, left + 1)}};
		if (rng_below(r, 40) == 0)
			ranges[i].off = size + 1; /* past the end */
	}
	return count;
}

/* ---- tests ---------------------------------------------------------------------------------- */

static const char *const specs[] = {"lz4", "snappy", "shuffle(4)|lz4", "lz4|crc32c"};

static void ranges_are_the_hosts(void **state)
{
	(void)state;
	int launched = 0;
	for (int k = 0; k < 16; k++) {
		rng r = {seed + (uint64_t)k};
		size_t chunk = 64 + 64 * rng_below(&r, 100);
		size_t size = 1 + rng_below(&r, 12 * chunk);
		uint8_t *data = malloc(size);
		kit_bytes bytes = mixed_frame(specs[k % 4], chunk, size, data, &r);
		lade_frame_range ranges[RANGES];
		emu->seed = (uint64_t)k;
		int launches = emu->launches;
		lade_frame_range all = {0, {.size = size}};
		assert_int_equal(compare(&bytes, &all, 1, LADE_VERIFY_REQUIRED, &r), LADE_OK);
		if (k % 4 < 2 && size > 8 * chunk)
			launched += emu->launches > launches;
		for (int i = 0; i < 3; i++) {
			size_t count = random_ranges(ranges, chunk, size, &r);
			compare(&bytes, ranges, count,
			        i ? LADE_VERIFY_REQUIRED : LADE_VERIFY_NEVER, &r);
		}
		free(bytes.data);
		free(data);
	}
	assert_true(launched > 1);
}

static void damage_is_told_as_on_the_host(void **state)
{
	(void)state;
	int failed = 0;
	for (int k = 0; k < 150; k++) {
		rng r = {seed + 1000 + (uint64_t)k};
		size_t chunk = 64 + 64 * rng_below(&r, 30);
		size_t size = 1 + rng_below(&r, 4 * chunk);
		uint8_t *data = malloc(size);
		kit_bytes bytes = mixed_frame(specs[k % 2], chunk, size, data, &r);
		/* One bit: more could spoil two chunks, and which of them is told first is open. */
		bytes.data[rng_below(&r, bytes.size)] ^= (uint8_t)(1 << rng_below(&r, 8));
		lade_verify verify = k % 3 ? LADE_VERIFY_REQUIRED : LADE_VERIFY_NEVER;
		lade_frame_range ranges[2] = {{0, {.size = size}}, {size / 2, {.size = size / 3}}};
		emu->seed = (uint64_t)k % 5;
		failed += compare(&bytes, ranges, 2, verify, &r) != LADE_OK;
		free(bytes.data);
		free(data);
	}
	assert_true(failed > 30);
}

/* ---- checksums ------------------------------------------------------------------------------ */

/* A frame whose chunks all have something to decode. */
static kit_bytes coded_frame(uint8_t *data, size_t chunk, size_t size)
{
	lade_spec *lz4 = kit_spec("lz4");
	lade_frame_options options = kit_options(lz4, chunk);
	for (size_t i = 0; i < size; i++)
		data[i] = (uint8_t)(i % chunk % 50 + i / chunk);
	kit_bytes bytes = kit_frame(engine, &options, data, size);
	lade_spec_unref(lz4);
	return bytes;
}

static size_t chunk_at(const kit_bytes *bytes, uint64_t index)
{
	lade_frame_chunk chunk;
	lade_frame *frame;
	assert_int_equal(lade_frame_open_memory(engine, bytes->data, bytes->size, NULL, &frame,
	                                        NULL), LADE_OK);
	assert_int_equal(lade_frame_get_chunk(frame, index, &chunk, NULL), LADE_OK);
	assert_int_equal(chunk.flags, 0);
	lade_frame_close(frame);
	return (size_t)chunk.off;
}

/* Every byte of a frame in turn is another, and the options are NULL or zero: what comes back is
 * right or an error.  A checksum that is wrong is told wherever the chunk goes. */
static void damage_is_found_unasked(void **state)
{
	(void)state;
	enum { CHUNK = 200, SIZE = 500 };
	uint8_t data[SIZE], back[SIZE];
	kit_bytes bytes = coded_frame(data, CHUNK, SIZE);
	const lade_allocator *a = lade_allocator_default(LADE_DEVICE);
	uint8_t *there = a->alloc(a->ctx, SIZE, 64, places[DEVICE_0], NULL);
	lade_frame_read_options zero[] = {
		{.struct_size = sizeof *zero},
		{.struct_size = sizeof *zero, .where = LADE_WHERE_HOST},
		{.struct_size = sizeof *zero, .where = LADE_WHERE_DEVICE}};
	lade_frame_range all = {0, {there, SIZE, places[DEVICE_0]}};
	emu->seed = EMULATED_EAGER;
	for (size_t at = 0; at < bytes.size; at++) {
		bytes.data[at] ^= 0x10;
		for (int k = 0; k < 4; k++) {
			lade_frame *frame;
			lade_error err = {.message = ""};
			lade_status status =
				lade_frame_open_memory(engine, bytes.data, bytes.size,
			                               k < 3 ? &zero[k] : NULL, &frame, &err);
			if (status == LADE_OK) {
				status = lade_frame_read(frame, &all, 1, NULL, NULL, &err);
				lade_frame_close(frame);
			}
			if (status == LADE_OK) {
				emulated_move(0, back, there, SIZE);
				if (memcmp(back, data, SIZE) != 0)
					fail_msg("byte %zu, options %d: wrong, silently", at, k);
			} else {
				assert_int_equal(err.status, status);
			}
		}
		bytes.data[at] ^= 0x10;
	}
	a->free(a->ctx, there, SIZE, 64, places[DEVICE_0], NULL);
	free(bytes.data);
}

/* Reads all to device 0, which holds 0xA5 before, and what it holds then to 'back'. */
static lade_status read_to_device(const kit_bytes *bytes, lade_frame_read_options o, uint8_t *back,
                                  size_t size, int *copies)
{
	const lade_allocator *a = lade_allocator_default(LADE_DEVICE);
	uint8_t *there = a->alloc(a->ctx, size, 64, places[DEVICE_0], NULL);
	lade_frame_range all = {0, {there, size, places[DEVICE_0]}};
	lade_frame *frame;
	lade_error err;
	memset(back, 0xA5, size);
	emulated_move(0, there, back, size);
	assert_int_equal(lade_frame_open_memory(engine, bytes->data, bytes->size, &o, &frame,
	                                        NULL), LADE_OK);
	*copies = emu->copies;
	lade_status status = lade_frame_read(frame, &all, 1, NULL, NULL, &err);
	*copies = emu->copies - *copies;
	if (status != LADE_OK)
		assert_non_null(strstr(err.message, "chunk 2 at"));
	lade_frame_close(frame);
	emulated_move(0, back, there, size);
	a->free(a->ctx, there, size, 64, places[DEVICE_0], NULL);
	return status;
}

/* The device that decodes verifies: two copies more, of a table and of the checksums.  What the
 * host decodes does not reach the device before it has been verified. */
static void checksums_are_verified_where_the_bytes_are(void **state)
{
	(void)state;
	enum { CHUNK = 1000, SIZE = 20000 };
	uint8_t *data = malloc(SIZE), *back = malloc(SIZE);
	kit_bytes bytes = coded_frame(data, CHUNK, SIZE);
	size_t sum = chunk_at(&bytes, 2) - 16;
	lade_frame_read_options o = read_options(true, LADE_VERIFY_IF_PRESENT), never = o;
	int copies, fewer;
	emu->seed = EMULATED_EAGER;
	never.verify = LADE_VERIFY_NEVER;
	assert_int_equal(read_to_device(&bytes, o, back, SIZE, &copies), LADE_OK);
	assert_memory_equal(back, data, SIZE);
	assert_int_equal(read_to_device(&bytes, never, back, SIZE, &fewer), LADE_OK);
	assert_int_equal(copies - fewer, 2);

	bytes.data[sum] ^= 1;
	/* The chunk's header has a check of its own, which has to be right. */
	uint8_t *head = bytes.data + sum - 16;
	uint64_t check = XXH64("", 0, XXH64(head, 24, 2));
	for (int i = 0; i < 8; i++)
		head[24 + i] = (uint8_t)(check >> 8 * i);
	assert_int_equal(read_to_device(&bytes, never, back, SIZE, &fewer), LADE_OK);
	assert_int_equal(read_to_device(&bytes, o, back, SIZE, &fewer), LADE_E_CHECKSUM);
	o.where = LADE_WHERE_HOST;
	assert_int_equal(read_to_device(&bytes, o, back, SIZE, &fewer), LADE_E_CHECKSUM);
	for (size_t i = 2 * CHUNK; i < 3 * CHUNK; i++)
		assert_int_equal(back[i], 0xA5);
	assert_memory_equal(back + 3 * CHUNK, data + 3 * CHUNK, SIZE - 3 * CHUNK);
	free(bytes.data);
	free(data);
	free(back);
}

/* ---- what else ------------------------------------------------------------------------------ */

/* Devices and kinds of memory that are not there. */
static void what_is_refused(void **state)
{
	(void)state;
	rng r = {seed};
	uint8_t data[3000], back[3000];
	kit_bytes bytes = mixed_frame("lz4", 1000, sizeof data, data, &r);
	lade_frame_read_options o = read_options(true, LADE_VERIFY_REQUIRED);
	lade_frame *frame;
	lade_error err;
	lade_frame_range range = {0, {back, sizeof back, {LADE_DEVICE, 7}}};
	assert_int_equal(lade_frame_open_memory(engine, bytes.data, bytes.size, &o, &frame, &err),
	                 LADE_OK);
	assert_int_equal(lade_frame_read(frame, &range, 1, NULL, NULL, &err), LADE_E_NO_DEVICE);
	assert_string_equal(err.message, "range 0: no device 7: there are 2, counted from 0");
	range.dst.place.kind = (lade_kind)9;
	assert_int_equal(lade_frame_read(frame, &range, 1, NULL, NULL, &err), LADE_E_ARG);
	lade_frame_close(frame);

	o.device = 7;
	lade_spec *lz4 = kit_spec("lz4");
	lade_frame_options options = kit_options(lz4, 1000);
	memset(data, 'x', sizeof data);
	for (size_t i = 0; i < sizeof data; i += 10)
		data[i] = (uint8_t)i;
	free(bytes.data);
	bytes = kit_frame(engine, &options, data, sizeof data);
	range.dst = lade_host_span(back, sizeof back);
	assert_int_equal(lade_frame_open_memory(engine, bytes.data, bytes.size, &o, &frame, &err),
	                 LADE_OK);
	assert_int_equal(lade_frame_read(frame, &range, 1, NULL, NULL, &err), LADE_E_NO_DEVICE);
	assert_non_null(strstr(err.message, "no device 7"));
	lade_frame_close(frame);
	o.where = (lade_where)3;
	assert_int_equal(lade_frame_open_memory(engine, bytes.data, bytes.size, &o, &frame, &err),
	                 LADE_E_ARG);
	lade_spec_unref(lz4);
	free(bytes.data);
}

/* Every call of the driver fails in turn: the read fails with a device's status and all is given
 * back, or the bytes are right. */
static void driver_calls_fail(int memory)
{
	rng r = {seed};
	uint8_t data[8000];
	kit_bytes bytes = mixed_frame("lz4", 1000, sizeof data, data, &r);
	lade_frame_range all = {0, {.size = sizeof data}};
	int failed = 0, blocks = emu->blocks;
	emu->seed = EMULATED_EAGER;
	for (int n = 1; n < 400; n++) {
		lade_engine *shared = engine;
		assert_int_equal(lade_engine_new(NULL, &engine, NULL), LADE_OK);
		emu->fail_at = n;
		emu->fail_code = 2; /* out of memory */
		emu->failed = NULL;
		reading one = read_ranges(&bytes, true, read_options(true, LADE_VERIFY_REQUIRED),
		                          &all, 1, memory);
		emu->fail_at = 0;
		lade_engine_free(engine);
		engine = shared;
		bool done = !emu->failed;
		if (one.status == LADE_OK)
			assert_memory_equal(one.data, data, sizeof data);
		else
			assert_true(one.status == LADE_E_NOMEM || one.status == LADE_E_DEVICE);
		failed += one.status != LADE_OK;
		free(one.data);
		if (done)
			break;
	}
	assert_true(failed > 5);
	assert_int_equal(emu->blocks, blocks);
	free(bytes.data);
}

static void driver_calls_that_fail(void **state)
{
	(void)state;
	driver_calls_fail(ON_HOST);
	driver_calls_fail(DEVICE_1);
}

/* Rooms are kept with the frame, one for each that reads at once. */
typedef struct reader {
	lade_frame *frame;
	const uint8_t *data;
	size_t size;
	uint64_t seed;
	int bad;
} reader;

static void *reader_run(void *ctx)
{
	reader *me = ctx;
	rng r = {me->seed};
	uint8_t *back = malloc(me->size);
	for (int i = 0; i < 12; i++) {
		size_t off = rng_below(&r, me->size), size = 1 + rng_below(&r, me->size - off);
		lade_frame_range range = {off, lade_host_span(back, size)};
		me->bad += lade_frame_read(me->frame, &range, 1, NULL, NULL, NULL) != LADE_OK ||
		           memcmp(back, me->data + off, size) != 0;
	}
	free(back);
	return NULL;
}

static void several_threads_read(void **state)
{
	(void)state;
	rng r = {seed + 7};
	enum { SIZE = 40000 };
	uint8_t *data = malloc(SIZE);
	kit_bytes bytes = mixed_frame("snappy", 1000, SIZE, data, &r);
	kit_input in = {.data = bytes.data, .size = bytes.size};
	lade_frame_read_options o = read_options(true, LADE_VERIFY_REQUIRED);
	pthread_t ids[3];
	reader readers[3];
	lade_frame *frame;
	emu->seed = EMULATED_EAGER;
	assert_int_equal(lade_frame_open(engine, kit_source(&in), &o,
	                                 &frame, NULL), LADE_OK);
	for (int i = 0; i < 3; i++) {
		readers[i] = (reader){frame, data, SIZE, seed + (uint64_t)i, 0};
		assert_int_equal(pthread_create(&ids[i], NULL, reader_run, &readers[i]), 0);
	}
	for (int i = 0; i < 3; i++) {
		pthread_join(ids[i], NULL);
		assert_int_equal(readers[i].bad, 0);
	}
	lade_frame_close(frame);
	free(bytes.data);
	free(data);
}

/* The engine's own pinned memory is none: the read says so. */
static void no_pinned_memory(void **state)
{
	(void)state;
	static const lade_allocator none;
	lade_engine_options options = {.struct_size = sizeof options, .threads = 1};
	options.allocators[LADE_PINNED] = &none;
	lade_engine *own;
	assert_int_equal(lade_engine_new(&options, &own, NULL), LADE_OK);
	uint8_t data[3000], back[2000];
	memset(data, 'x', sizeof data);
	for (size_t i = 0; i < sizeof data; i += 10)
		data[i] = (uint8_t)i;
	lade_spec *lz4 = kit_spec("lz4");
	lade_frame_options frame_options = kit_options(lz4, 1000);
	kit_bytes bytes = kit_frame(engine, &frame_options, data, sizeof data);
	lade_frame_read_options o = read_options(true, LADE_VERIFY_REQUIRED);
	lade_frame_range range = {100, lade_host_span(back, sizeof back)};
	lade_frame *frame;
	lade_error err = {.message = ""};
	assert_int_equal(lade_frame_open_memory(own, bytes.data, bytes.size, &o, &frame, &err),
	                 LADE_OK);
	assert_int_equal(lade_frame_read(frame, &range, 1, NULL, NULL, &err), LADE_E_NOMEM);
	assert_non_null(strstr(err.message, "pinned memory"));
	lade_frame_close(frame);
	lade_engine_free(own);
	lade_spec_unref(lz4);
	free(bytes.data);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_are_the_hosts),
		cmocka_unit_test(damage_is_told_as_on_the_host),
		cmocka_unit_test(damage_is_found_unasked),
		cmocka_unit_test(checksums_are_verified_where_the_bytes_are),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(no_pinned_memory),
		cmocka_unit_test(several_threads_read),
		cmocka_unit_test(driver_calls_that_fail),
	};
	emu = emulated_open();
	if (!emu) {
		fprintf(stderr, "libcuda.so.1 is not the emulated one\n");
		return 1;
	}
	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 20261121;
	printf("seed %llu\n", (unsigned long long)seed);
	lade_engine_options options = {.struct_size = sizeof options, .threads = 2};
	if (lade_engine_new(&options, &engine, NULL) != LADE_OK)
		return 1;
	int rc = cmocka_run_group_tests(tests, NULL, NULL);
	lade_engine_free(engine);
	return rc;
}
