/*
 * test_frames.c: lists of frames, short and long, whole and broken, from and to every place.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/batch_kit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { COUNT = 10, LARGEST = 40000 };

static lade_engine *engine;
static const char *const texts[] = {"lz4", "zstd", "shuffle(4)|lz4", "ans", "gzip", "copy"};
#define TEXTS (sizeof texts / sizeof *texts)
static lade_spec *specs[TEXTS];

static int begin(void **state)
{
	lade_engine_options options = {.struct_size = sizeof options, .threads = 3};
	(void)state;
	OK(lade_engine_new(&options, &engine, err));
	for (size_t i = 0; i < TEXTS; i++)
		specs[i] = spec_of(engine, texts[i]);
	return 0;
}

static int end(void **state)
{
	(void)state;
	for (size_t i = 0; i < TEXTS; i++)
		lade_spec_unref(specs[i]);
	lade_engine_free(engine);
	kit_clean();
	return 0;
}

typedef struct one {
	uint8_t plain[LARGEST];
	size_t size, off, count; /* off, count: what is asked for */
	lade_status want;
	buffer src, bytes, dst;
} one;

static one all[COUNT];

static void make_one(one *o, const lade_frame_options *write, rng *r)
{
	o->size = rng_below(r, rng_below(r, 3) ? 3000 : LARGEST + 1);
	fill(r, o->plain, o->size);
	o->src = buffer_new(any_place(r), o->size, 0);
	buffer_put(&o->src, o->plain, o->size);
	o->bytes = buffer_new(any_place(r), lade_frame_bound(write, o->size), 0);
	o->want = LADE_OK;
}

/* A part is asked for, or more than there is, or room is missing. */
static void make_range(one *o, lade_item *item, rng *r)
{
	item->range_off = o->off = rng_below(r, 3) ? 0 : rng_below(r, o->size + 1);
	o->count = o->size - o->off;
	if (o->count > 1 && rng_below(r, 3) == 0)
		item->range_size = o->count = 1 + rng_below(r, o->count - 1);
	size_t room = o->count;
	if (o->want == LADE_OK && rng_below(r, 12) == 0) {
		item->range_size = o->size - o->off + 1;
		o->want = LADE_E_RANGE;
	} else if (o->want == LADE_OK && room && rng_below(r, 12) == 0) {
		room--;
		o->want = LADE_E_NOSPACE;
	}
	o->dst = buffer_new(any_place(r), room, 0);
	item->dst = buffer_span(&o->dst);
}

static void check_first(lade_status status, size_t bad, const lade_error *first,
                        const lade_error *errors)
{
	char name[32];
	assert_int_equal(status, bad == SIZE_MAX ? LADE_OK : all[bad].want);
	if (bad == SIZE_MAX)
		return;
	snprintf(name, sizeof name, "item %zu: ", bad);
	assert_memory_equal(first->message, name, strlen(name));
	if (errors)
		assert_string_equal(first->message + strlen(name), errors[bad].message);
}

static void write_all(const lade_frames_options *options, lade_item *items, lade_segment *segments,
                      size_t count, rng *r)
{
	lade_result results[COUNT];
	lade_error first;
	for (size_t i = 0; i < count; i++) {
		make_one(&all[i], options->write, r);
		segments[i] = (lade_segment){.data = all[i].src.data, .size = all[i].size,
		                             .place = all[i].src.place};
		items[i] = (lade_item){.src = &segments[i], .src_count = 1,
		                       .dst = buffer_span(&all[i].bytes)};
	}
	OK(lade_frames_write(engine, items, count, results, options, &first));
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(results[i].status, LADE_OK);
		segments[i] = (lade_segment){.data = all[i].bytes.data, .size = results[i].size,
		                             .place = all[i].bytes.place};
	}
}

static void rounds(void **state)
{
	(void)state;
	static const size_t chunks[] = {64, 1024, 65536};
	rng r = {.s = 77};
	for (uint64_t turn = 0; turn < (emu ? 40u : 100u); turn++) {
		lade_error errors[COUNT], first;
		lade_batch_options batch = {.struct_size = sizeof batch,
		                            .item_errors = turn % 3 ? errors : NULL,
		                            .threads = (unsigned)(turn % 4),
		                            .where = (lade_where)rng_below(&r, 3)};
		lade_frame_options write = {.struct_size = sizeof write,
		                            .spec = specs[rng_below(&r, TEXTS)],
		                            .chunk_size = chunks[rng_below(&r, 3)]};
		lade_frames_options options = {.struct_size = sizeof options, .write = &write,
		                               .batch = &batch};
		size_t count = rng_below(&r, 4) ? 1 + rng_below(&r, COUNT) : 1, bad = SIZE_MAX;
		lade_segment segments[COUNT];
		lade_item items[COUNT];
		lade_frame *frames[COUNT];
		lade_result results[COUNT];
		kit_round(turn, rng_next(&r));
		write_all(&options, items, segments, count, &r);
		for (size_t i = count; i-- > 0;) {
			/* What ends early is no frame, and an empty one neither. */
			if (rng_below(&r, 8) == 0) {
				segments[i].size = rng_below(&r, segments[i].size);
				all[i].want = LADE_E_TRUNCATED;
				bad = i;
			}
		}
		lade_status status =
			lade_frames_open(engine, items, count, frames, &options, &first);
		assert_int_equal(status != LADE_OK, bad != SIZE_MAX);
		for (size_t i = 0; i < count; i++)
			assert_int_equal(frames[i] == NULL, all[i].want != LADE_OK);
		if (bad != SIZE_MAX && batch.item_errors)
			assert_int_not_equal(errors[bad].status, LADE_OK);
		bad = SIZE_MAX;
		for (size_t i = count; i-- > 0;) {
			results[i] = (lade_result){LADE_E_INTERNAL, 9};
			make_range(&all[i], &items[i], &r);
			bad = frames[i] && all[i].want ? i : bad;
		}
		status = lade_frames_read(frames, items, count, results, &options, &first);
		check_first(status, bad, &first, batch.item_errors);
		for (size_t i = 0; i < count; i++) {
			static uint8_t image[LARGEST];
			one *o = &all[i];
			assert_int_equal(results[i].status, frames[i] ? o->want : LADE_E_INTERNAL);
			assert_int_equal(results[i].size, !frames[i] ? 9 : o->want ? 0 : o->count);
			buffer_get(&o->dst, image, o->dst.size);
			if (o->want == LADE_OK)
				assert_memory_equal(image, o->plain + o->off, o->count);
			lade_frame_close(frames[i]);
			buffer_free(&o->src);
			buffer_free(&o->bytes);
			buffer_free(&o->dst);
		}
	}
}

/* ---- cancelling --------------------------------------------------------------------------- */

static pthread_t caller;
static atomic_int asked, asked_elsewhere;

static bool ask(void *ctx)
{
	(void)ctx;
	atomic_fetch_add(&asked, 1);
	if (!pthread_equal(pthread_self(), caller))
		atomic_fetch_add(&asked_elsewhere, 1);
	return true;
}

/* The call's own thread is asked, and no other, though others work on frames for longer than it
 * takes until a call asks; what was not begun says so. */
static void only_the_caller_is_asked(void **state)
{
	(void)state;
	enum { MANY = 100, CHUNK = 65536, SIZE = 4 * CHUNK };
	static uint8_t plain[SIZE];
	static lade_segment segments[MANY];
	static lade_item items[MANY];
	static lade_result results[MANY];
	lade_spec *slow = spec_of(engine, "zstd(level=19)");
	lade_frame_options write = {.struct_size = sizeof write, .spec = slow,
	                            .chunk_size = CHUNK};
	size_t bound = lade_frame_bound(&write, SIZE), done = 0;
	uint8_t *room = malloc(MANY * bound);
	lade_batch_options batch = {.struct_size = sizeof batch};
	lade_frames_options options = {.struct_size = sizeof options, .write = &write,
	                               .batch = &batch};
	lade_error first;
	for (size_t i = 0; i < SIZE; i++)
		plain[i] = (uint8_t)((i * i >> 7) * (i % 31));
	for (size_t i = 0; i < MANY; i++) {
		segments[i] = (lade_segment){.data = plain, .size = SIZE};
		items[i] = (lade_item){.src = &segments[i], .src_count = 1,
		                       .dst = lade_host_span(room + i * bound, bound)};
	}
	caller = pthread_self();
	OK(lade_cancel_new(ask, NULL, &batch.cancel, err));
	assert_int_equal(lade_frames_write(engine, items, MANY, results, &options, &first),
	                 LADE_E_CANCELLED);
	assert_int_equal(atomic_load(&asked), 1);
	assert_int_equal(atomic_load(&asked_elsewhere), 0);
	for (size_t i = 0; i < MANY; i++) {
		done += results[i].status == LADE_OK;
		if (results[i].status)
			assert_int_equal(results[i].status, LADE_E_CANCELLED);
	}
	assert_true(done < MANY);
	lade_cancel_free(batch.cancel);
	lade_spec_unref(slow);
	free(room);
}

/* ---- a dictionary ------------------------------------------------------------------------ */

/* The host writes a frame with a dictionary, and a device decodes it; without it, it does not. */
static void with_a_dictionary(void **state)
{
	(void)state;
	enum { SIZE = 30000, WORDS = 3000 };
	static uint8_t plain[SIZE], got[SIZE], bytes[2 * SIZE], words[WORDS];
	rng r = {.s = 5};
	lade_dict *dict;
	for (size_t i = 0; i < WORDS; i++)
		words[i] = (uint8_t)rng_next(&r);
	for (size_t i = 0; i < SIZE; i++)
		plain[i] = words[i % 97 ? (i * i / 97) % WORDS : i % WORDS];
	for (size_t i = 0; i + 400 < SIZE; i += 500)
		memcpy(plain + i, words + rng_below(&r, WORDS - 400), 400);
	OK(lade_dict_new(words, WORDS, &dict, err));
	lade_frame_options write = {.struct_size = sizeof write, .spec = specs[1],
	                            .chunk_size = 2048, .dict = dict};
	lade_frames_options options = {.struct_size = sizeof options, .write = &write};
	lade_segment segment = {.data = plain, .size = SIZE};
	lade_item item = {.src = &segment, .src_count = 1,
	                  .dst = lade_host_span(bytes, sizeof bytes)};
	lade_result result;
	OK(lade_frames_write(engine, &item, 1, &result, &options, err));
	for (int with = 1; with >= 0; with--) {
		lade_frame *frame;
		lade_frame_read_options read = {.struct_size = sizeof read,
		                                .where = LADE_WHERE_DEVICE,
		                                .dict = with ? dict : NULL};
		lade_frame_range range = {.dst = lade_host_span(got, SIZE)};
		OK(lade_frame_open_memory(engine, bytes, result.size, &read, &frame, err));
		lade_status status = lade_frame_read(frame, &range, 1, NULL, NULL, NULL);
		assert_int_equal(status, with ? LADE_OK : LADE_E_CORRUPT);
		if (with)
			assert_memory_equal(got, plain, SIZE);
		lade_frame_close(frame);
	}
	lade_dict_free(dict);
}

/* ---- misuse ------------------------------------------------------------------------------ */

static void misuse(void **state)
{
	(void)state;
	uint8_t bytes[512];
	lade_frame_options write = {.struct_size = sizeof write, .spec = specs[0]};
	lade_batch_options batch = {.struct_size = sizeof batch, .where = LADE_WHERE_DEVICE,
	                            .device = 99};
	lade_frames_options options = {.struct_size = sizeof options, .write = &write};
	lade_segment segments[2] = {{.data = "abc", .size = 3}, {.data = "d", .size = 1}};
	lade_item item = {.src = segments, .src_count = 1, .dst = lade_host_span(bytes, 512)};
	lade_frame *frame = (lade_frame *)bytes;
	lade_result result;
	FAILS(LADE_E_ARG, "engine is NULL", lade_frames_write(NULL, &item, 1, NULL, &options, err));
	FAILS(LADE_E_ARG, "items is NULL", lade_frames_open(engine, NULL, 1, &frame, NULL, err));
	FAILS(LADE_E_ARG, "frames is NULL", lade_frames_open(engine, &item, 1, NULL, NULL, err));
	FAILS(LADE_E_ARG, "frames is NULL", lade_frames_read(NULL, &item, 1, NULL, NULL, err));
	OK(lade_frames_write(engine, NULL, 0, NULL, NULL, err));
	OK(lade_frames_open(engine, NULL, 0, NULL, NULL, err));
	OK(lade_frames_read(NULL, NULL, 0, NULL, NULL, err));
	item.src_count = 2;
	FAILS(LADE_E_ARG, "item 0: 2 segments",
	      lade_frames_write(engine, &item, 1, NULL, &options, err));
	FAILS(LADE_E_ARG, "item 0: 2 segments",
	      lade_frames_open(engine, &item, 1, &frame, NULL, err));
	assert_null(frame);
	item.src_count = 1;
	item.spec = specs[0];
	FAILS(LADE_E_ARG, "specs", lade_frames_write(engine, &item, 1, NULL, &options, err));
	item.spec = NULL;
	item.dst.size = 60;
	FAILS(LADE_E_NOSPACE, "60 bytes", lade_frames_write(engine, &item, 1, NULL, &options, err));
	item.dst.size = 512;
	options.batch = &batch;
	FAILS(LADE_E_NO_DEVICE, "99", lade_frames_write(engine, &item, 1, NULL, &options, err));
	options.batch = NULL;
	OK(lade_frames_write(engine, &item, 1, &result, &options, err));
	segments[0] = (lade_segment){.data = bytes, .size = result.size};
	OK(lade_frames_open(engine, &item, 1, &frame, NULL, err));
	item.tail = specs[0];
	FAILS(LADE_E_ARG, "tails", lade_frames_read(&frame, &item, 1, NULL, NULL, err));
	lade_frame_close(frame);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rounds, begin, end),
		cmocka_unit_test_setup_teardown(only_the_caller_is_asked, begin, end),
		cmocka_unit_test_setup_teardown(with_a_dictionary, begin, end),
		cmocka_unit_test_setup_teardown(misuse, begin, end),
	};
	int rc;
	if (!kit_begin(argc, argv, &rc))
		return rc;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
