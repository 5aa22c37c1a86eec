/*
 * test_frame_far.c: frames that lie in a device's memory, on the emulated one: what the device
 * writes every reader takes, and what it reads there has the bytes, the status and the words that
 * the host's readers come to.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/device.h"
#include "frame_kit.h"
#include "gpu/emulated.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "gpu/emulated_move.h"

static emulated_state *emu;
static lade_engine *engine;
static uint64_t seed;

/* ---- memory of a device -------------------------------------------------------------------- */

#define DEVICE ((lade_place){LADE_DEVICE, 1})
#define GUARD 64

/* 'size' bytes on the device at an address that is 'skew' more than a multiple of 256, with guards
 * on both sides. */
typedef struct room {
	uint8_t *block, *data;
	size_t size, skew;
} room;

static size_t room_size(const room *r)
{
	return r->size + r->skew + 256 + GUARD;
}

static room room_new(const void *data, size_t size, size_t skew)
{
	const lade_allocator *a = lade_allocator_default(LADE_DEVICE);
	room r = {.size = size, .skew = skew};
	int fail_at = emu->fail_at, calls = emu->calls;
	emu->fail_at = 0;
	uint8_t *image = malloc(room_size(&r));
	r.block = a->alloc(a->ctx, room_size(&r), 256, DEVICE, NULL);
	assert_non_null(r.block);
	r.data = r.block + 256 + skew;
	memset(image, 0xA5, room_size(&r));
	if (data && size)
		memcpy(image + 256 + skew, data, size);
	emulated_move(1, r.block, image, room_size(&r));
	free(image);
	emu->fail_at = fail_at;
	emu->calls = calls;
	return r;
}

/* The bytes, the caller's to free; the room goes. */
static uint8_t *room_end(room *r)
{
	const lade_allocator *a = lade_allocator_default(LADE_DEVICE);
	uint8_t *image = malloc(room_size(r));
	int fail_at = emu->fail_at;
	emu->fail_at = 0;
	emulated_move(1, image, r->block, room_size(r));
	for (size_t i = 0; i < 256 + r->skew; i++)
		assert_int_equal(image[i], 0xA5);
	for (size_t i = 256 + r->skew + r->size; i < room_size(r); i++)
		assert_int_equal(image[i], 0xA5);
	memmove(image, image + 256 + r->skew, r->size);
	a->free(a->ctx, r->block, room_size(r), 256, DEVICE, NULL);
	emu->fail_at = fail_at;
	return image;
}

static void fill(uint8_t *data, size_t chunk, size_t size, rng *r)
{
	for (size_t at = 0; at < size; at += chunk)
		kit_fill(data + at, size - at < chunk ? size - at : chunk,
		         (unsigned)rng_below(r, KIT_NATURES), r);
}

/* ---- writing ------------------------------------------------------------------------------- */

static lade_status encode(const lade_frame_options *options, const room *src, size_t size,
                          room *dst, size_t *got, lade_error *err)
{
	return lade_frame_encode_device(engine, options, (lade_cspan){src->data, size, DEVICE},
	                                (lade_span){dst->data, dst->size, DEVICE}, got, err);
}

static const char *const specs[] = {
	"ans",    "bitcomp(<i4)",   "cascaded(<i4)",           "lz4",
	"snappy", "shuffle(4)|lz4", "delta(<i4)|bitcomp(<i4)", "bitshuffle(2)|ans|crc32c",
	"crc32c",
};

/* One frame, made with just the room it needs and with one byte less, and read by everybody. */
static void round_trip(const char *text, lade_frame_options options, size_t size, rng *r)
{
	size_t chunk = options.chunk_size, bound, got = 0, skew = rng_below(r, 3) ? 0 : 4;
	lade_stream stream = NULL;
	if (rng_below(r, 2))
		assert_int_equal(lade_stream_new(DEVICE.device, &stream, NULL), LADE_OK);
	options.stream = stream;
	uint8_t *data = malloc(size + 1), *image;
	lade_spec *spec = kit_spec(text);
	lade_error err;
	options.spec = spec;
	fill(data, chunk, size, r);
	bound = lade_frame_bound(&options, size);
	room src = room_new(data, size, skew), dst = room_new(NULL, bound, skew ? 5 : 0), less;
	lade_status status = encode(&options, &src, size, &dst, &got, &err);
	if (status != LADE_OK)
		fprintf(stderr, "%s: %s\n", text, err.message);
	assert_int_equal(status, LADE_OK);
	assert_true(got <= bound);
	image = room_end(&dst);
	for (int reader = 0; reader < KIT_READERS; reader++) {
		kit_bytes back = {0};
		lade_verify verify =
			options.no_checksums ? LADE_VERIFY_IF_PRESENT : LADE_VERIFY_REQUIRED;
		status = kit_decode(engine, (enum kit_reader)reader, image, got,
		                    kit_read_options(verify), &back, r, &err);
		if (status != LADE_OK)
			fprintf(stderr, "%s, %s: %s\n", text, kit_reader_names[reader],
			        err.message);
		assert_int_equal(status, LADE_OK);
		assert_int_equal(back.size, size);
		assert_memory_equal(back.data, data, size);
		free(back.data);
	}
	/* Warps that look for matches race: those encoders' bytes are not the same each time. */
	if (!strstr(text, "lz4") && !strstr(text, "snappy")) {
		dst = room_new(NULL, got, skew);
		assert_int_equal(encode(&options, &src, size, &dst, &bound, &err), LADE_OK);
		assert_int_equal(bound, got);
		uint8_t *again = room_end(&dst);
		assert_memory_equal(again, image, got);
		free(again);
		less = room_new(NULL, got - 1, 0);
		assert_int_equal(encode(&options, &src, size, &less, &bound, &err), LADE_E_NOSPACE);
		assert_int_equal(bound, 0);
		free(room_end(&less));
	}
	free(room_end(&src));
	free(image);
	free(data);
	lade_spec_unref(spec);
	lade_stream_free(DEVICE.device, stream);
}

static void frames_are_everybodys(void **state)
{
	(void)state;
	for (int k = 0; k < 36; k++) {
		rng r = {seed + (uint64_t)k};
		size_t chunk = 64 + 64 * rng_below(&r, 60);
		size_t size = k % 12 == 5 ? 0 : 1 + rng_below(&r, 7 * chunk);
		lade_frame_options options = kit_options(NULL, chunk);
		options.no_checksums = k % 3 == 0;
		if (k % 4 == 0) {
			options.checksum = LADE_CRC32C;
			options.dtype = LADE_I4;
			size -= size % 4;
		}
		emu->seed = (uint64_t)k % 5;
		round_trip(specs[k % 9], options, size, &r);
	}
}

/* More chunks than a page has: several pages, and a list. */
static void several_pages(void **state)
{
	(void)state;
	rng r = {seed};
	lade_frame_options options = kit_options(NULL, 16);
	emu->seed = EMULATED_EAGER;
	options.no_checksums = true;
	round_trip("lz4", options, 16 * 4096, &r);
	round_trip("snappy", options, 16 * 4097 + 3, &r);
	round_trip("lz4", options, 16 * (2 * 4096 + 1023), &r);
}

/* ---- reading ------------------------------------------------------------------------------- */

/* Reads a frame where it lies, to its own device. */
static lade_status read_there(const kit_bytes *bytes, lade_verify verify, size_t skew,
                              kit_bytes *out, lade_error *err)
{
	lade_frame_read_options o = kit_read_options(verify);
	room src = room_new(bytes->data, bytes->size, skew);
	lade_frame *frame;
	o.flags = LADE_FRAME_STRICT;
	err->offset = LADE_NO_OFFSET;
	lade_status status = lade_frame_open_device(
		engine, (lade_cspan){src.data, bytes->size, DEVICE}, NULL, &o, &frame, err);
	*out = (kit_bytes){0};
	if (status == LADE_OK) {
		size_t size = (size_t)lade_frame_get_info(frame)->size;
		room dst = room_new(NULL, size, 3 * skew);
		lade_frame_range all = {0, {dst.data, size, DEVICE}};
		lade_result result;
		status = lade_frame_read(frame, &all, 1, &result, NULL, err);
		assert_int_equal(result.status, status);
		assert_int_equal(result.size, status == LADE_OK ? size : 0);
		out->data = room_end(&dst);
		out->size = status == LADE_OK ? size : 0;
		lade_frame_close(frame);
	}
	free(room_end(&src));
	return status;
}

static lade_status read_here(const kit_bytes *bytes, lade_verify verify, kit_bytes *out,
                             lade_error *err)
{
	lade_frame_read_options o = kit_read_options(verify);
	lade_frame *frame;
	o.flags = LADE_FRAME_STRICT;
	err->offset = LADE_NO_OFFSET;
	*out = (kit_bytes){0};
	lade_status status =
		lade_frame_open_memory(engine, bytes->data, bytes->size, &o, &frame, err);
	return status == LADE_OK ? kit_read_frame(frame, KIT_MEMORY, out, err) : status;
}

static lade_status compare(const kit_bytes *bytes, lade_verify verify, size_t skew)
{
	kit_bytes here, there;
	lade_error mine, theirs;
	lade_status status = read_here(bytes, verify, &here, &mine);
	lade_status other = read_there(bytes, verify, skew, &there, &theirs);
	if (status != other)
		fprintf(stderr, "here %s, there %s\n", status ? mine.message : "done",
		        other ? theirs.message : "done");
	assert_int_equal(other, status);
	if (status != LADE_OK) {
		assert_string_equal(theirs.message, mine.message);
		assert_int_equal(theirs.offset, mine.offset);
	}
	assert_int_equal(there.size, here.size);
	assert_memory_equal(there.data, here.data, here.size);
	free(here.data);
	free(there.data);
	return status;
}

static kit_bytes host_frame(const char *text, size_t chunk, size_t size, int k, rng *r)
{
	lade_spec *spec = kit_spec(text);
	lade_frame_options options = kit_options(spec, chunk);
	uint8_t *data = malloc(size + 1);
	options.no_checksums = k % 3 == 0;
	options.checksum = k % 2 ? LADE_CRC32C : LADE_XXH64;
	/* Without constant chunks the device does all. */
	if (k % 4)
		for (size_t at = 0; at < size; at += chunk)
			kit_fill(data + at, size - at < chunk ? size - at : chunk,
			         1 + (unsigned)rng_below(r, 2), r);
	else
		fill(data, chunk, size, r);
	kit_bytes bytes = kit_frame(engine, &options, data, size);
	lade_spec_unref(spec);
	free(data);
	return bytes;
}

static void frames_are_read_there(void **state)
{
	(void)state;
	int alone = 0;
	for (int k = 0; k < 36; k++) {
		rng r = {seed + 500 + (uint64_t)k};
		size_t chunk = 64 + 64 * rng_below(&r, 60), size = 1 + rng_below(&r, 7 * chunk);
		kit_bytes bytes = host_frame(specs[k % 9], chunk, size, k, &r);
		emu->seed = (uint64_t)k % 5;
		int syncs = emu->syncs;
		assert_int_equal(
			compare(&bytes, k % 3 ? LADE_VERIFY_REQUIRED : LADE_VERIFY_NEVER,
		                rng_below(&r, 3) ? 0 : 1 + rng_below(&r, 15)),
			LADE_OK);
		/* One for the header and the index, one for the chunks, four of this test. */
		alone += emu->syncs - syncs == 6;
		free(bytes.data);
	}
	assert_true(alone >= 24);
}

static void damage_is_told_as_on_the_host(void **state)
{
	(void)state;
	int failed = 0;
	for (int k = 0; k < 150; k++) {
		rng r = {seed + 1000 + (uint64_t)k};
		size_t chunk = 64 + 64 * rng_below(&r, 30), size = 1 + rng_below(&r, 4 * chunk);
		kit_bytes bytes = host_frame(k % 2 ? "lz4" : "ans", chunk, size, k, &r);
		size_t before = bytes.size;
		if (k % 10 == 9)
			bytes.size = rng_below(&r, bytes.size);
		else
			bytes.data[rng_below(&r, before)] ^= (uint8_t)(1 << rng_below(&r, 8));
		emu->seed = (uint64_t)k % 5;
		failed +=
			compare(&bytes, k % 3 ? LADE_VERIFY_REQUIRED : LADE_VERIFY_NEVER,
		                0) != LADE_OK;
		free(bytes.data);
	}
	assert_true(failed > 100);
}

/* Any byte of a frame on a device is another, and there are no options. */
static void damage_is_found_unasked(void **state)
{
	(void)state;
	rng r = {seed + 11};
	kit_bytes bytes = host_frame("lz4", 256, 900, 1, &r), good;
	lade_error err;
	uint8_t *got;
	assert_int_equal(read_here(&bytes, LADE_VERIFY_REQUIRED, &good, &err), LADE_OK);
	emu->seed = EMULATED_EAGER;
	for (size_t at = 0; at < bytes.size; at++) {
		bytes.data[at] ^= 0x20;
		room src = room_new(bytes.data, bytes.size, 0), dst = room_new(NULL, 900, 0);
		lade_frame_range all = {0, {dst.data, 900, DEVICE}};
		lade_frame *frame;
		lade_status status =
			lade_frame_open_device(engine, (lade_cspan){src.data, bytes.size, DEVICE},
		                               NULL, NULL, &frame, &err);
		if (status == LADE_OK) {
			status = lade_frame_read(frame, &all, 1, NULL, NULL, &err);
			lade_frame_close(frame);
		}
		got = room_end(&dst);
		if (status == LADE_OK && memcmp(got, good.data, 900) != 0)
			fail_msg("byte %zu: wrong, silently", at);
		free(got);
		free(room_end(&src));
		bytes.data[at] ^= 0x20;
	}
	free(good.data);
	free(bytes.data);
}

/* Parts of a frame, and what lies elsewhere, go the usual way. */
static void ranges_come_too(void **state)
{
	(void)state;
	rng r = {seed + 9};
	kit_bytes bytes = host_frame("lz4", 1024, 100000, 1, &r), whole;
	lade_frame_read_options o = kit_read_options(LADE_VERIFY_REQUIRED);
	lade_error err;
	lade_frame *frame;
	uint8_t back[3000];
	assert_int_equal(read_here(&bytes, LADE_VERIFY_REQUIRED, &whole, &err), LADE_OK);
	room src = room_new(bytes.data, bytes.size, 0), dst = room_new(NULL, 3000, 0);
	assert_int_equal(lade_frame_open_device(engine, (lade_cspan){src.data, bytes.size, DEVICE},
	                                        NULL, &o, &frame, &err),
	                 LADE_OK);
	lade_frame_range ranges[] = {{5000, lade_host_span(back, sizeof back)},
	                             {70001, {dst.data, 3000, DEVICE}}};
	assert_int_equal(lade_frame_read(frame, ranges, 2, NULL, NULL, &err), LADE_OK);
	assert_memory_equal(back, whole.data + 5000, sizeof back);
	uint8_t *image = room_end(&dst);
	assert_memory_equal(image, whole.data + 70001, 3000);
	lade_frame_close(frame);
	free(image);
	free(room_end(&src));
	free(bytes.data);
	free(whole.data);
}

/* ---- what fails ---------------------------------------------------------------------------- */

static void what_is_refused(void **state)
{
	(void)state;
	uint8_t data[100] = {1};
	size_t got = 7;
	lade_error err;
	lade_spec *ans = kit_spec("ans"), *zstd = kit_spec("zstd");
	lade_spec *lossy = kit_spec("bitround(<f4,keepbits=5)");
	lade_frame_options options = kit_options(ans, 1000);
	lade_frame *frame;
	room src = room_new(data, 100, 0), dst = room_new(NULL, 1000, 0);
	lade_span host = lade_host_span(data, sizeof data);
	assert_int_equal(lade_frame_encode_device(engine, &options,
	                                          (lade_cspan){src.data, 100, DEVICE}, host, &got,
	                                          &err),
	                 LADE_E_UNSUPPORTED);
	options.size = 99;
	options.has_size = true;
	assert_int_equal(encode(&options, &src, 100, &dst, &got, &err), LADE_E_ARG);
	assert_string_equal(err.message, "frame options: size is 99, the source has 100 bytes");
	options.has_size = false;
	options.chunk_size = 3;
	assert_int_equal(encode(&options, &src, 100, &dst, &got, &err), LADE_E_ARG);
	options.chunk_size = 0;
	options.spec = zstd;
	assert_int_equal(encode(&options, &src, 100, &dst, &got, &err), LADE_E_UNSUPPORTED);
	options.spec = lossy;
	options.dtype = LADE_F4;
	assert_int_equal(encode(&options, &src, 100, &dst, &got, &err), LADE_E_UNSUPPORTED);
	assert_int_equal(got, 0);
	assert_int_equal(lade_frame_open_device(engine, lade_host_cspan(data, 100), NULL, NULL,
	                                        &frame, &err),
	                 LADE_E_ARG);
	assert_null(frame);
	free(room_end(&src));
	free(room_end(&dst));
	lade_spec_unref(ans);
	lade_spec_unref(zstd);
	lade_spec_unref(lossy);
}

/* Every call of the driver fails in turn: the call fails with a device's status, or does what it
 * is to do, and all is given back. */
static void driver_calls_that_fail(void **state)
{
	(void)state;
	rng r = {seed};
	uint8_t data[5000];
	int failed = 0, blocks = emu->blocks;
	lade_spec *spec = kit_spec("lz4");
	lade_frame_options options = kit_options(spec, 1000);
	fill(data, 1000, sizeof data, &r);
	emu->seed = EMULATED_EAGER;
	for (int n = 1; n < 400; n++) {
		lade_engine *shared = engine;
		kit_bytes bytes = {0}, back;
		lade_error err;
		assert_int_equal(lade_engine_new(NULL, &engine, NULL), LADE_OK);
		room src = room_new(data, sizeof data, 0);
		room dst = room_new(NULL, lade_frame_bound(&options, sizeof data), 0);
		emu->calls = 0;
		emu->failed = NULL;
		emu->fail_at = n;
		emu->fail_code = 2; /* out of memory */
		lade_status status = encode(&options, &src, sizeof data, &dst, &bytes.size, &err);
		int fail_at = emu->fail_at;
		emu->fail_at = 0;
		free(room_end(&src));
		bytes.data = room_end(&dst);
		if (status == LADE_OK) {
			emu->fail_at = fail_at;
			status = read_there(&bytes, LADE_VERIFY_REQUIRED, 0, &back, &err);
			emu->fail_at = 0;
			if (status == LADE_OK)
				assert_memory_equal(back.data, data, sizeof data);
			free(back.data);
		}
		assert_true(status == LADE_OK || status == LADE_E_NOMEM || status == LADE_E_DEVICE);
		failed += status != LADE_OK;
		lade_engine_free(engine);
		engine = shared;
		free(bytes.data);
		if (!emu->failed)
			break;
	}
	assert_true(failed > 10);
	assert_int_equal(emu->blocks, blocks);
	lade_spec_unref(spec);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_are_everybodys),
		cmocka_unit_test(several_pages),
		cmocka_unit_test(frames_are_read_there),
		cmocka_unit_test(damage_is_told_as_on_the_host),
		cmocka_unit_test(damage_is_found_unasked),
		cmocka_unit_test(ranges_come_too),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(driver_calls_that_fail),
	};
	emu = emulated_open();
	if (!emu) {
		fprintf(stderr, "libcuda.so.1 is not the emulated one\n");
		return 1;
	}
	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 20261122;
	printf("seed %llu\n", (unsigned long long)seed);
	lade_engine_options options = {.struct_size = sizeof options, .threads = 2};
	if (lade_engine_new(&options, &engine, NULL) != LADE_OK)
		return 1;
	int rc = cmocka_run_group_tests(tests, NULL, NULL);
	lade_engine_free(engine);
	return rc;
}
