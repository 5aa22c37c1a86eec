/*
 * test_io_device.c: sources that read to devices and from them, and sinks that write what is there,
 * on the emulated device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/device.h"
#include "gpu/emulated.h"
#include "guard.h"

#include <lade/io.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "gpu/emulated_move.h"

static emulated_state *emu;

enum { PLACES = 5, SIZE = 200000 };
static const lade_place places[PLACES] = {
	{LADE_HOST, 0}, {LADE_PINNED, 0}, {LADE_MANAGED, 0}, {LADE_DEVICE, 0}, {LADE_DEVICE, 1}};

static uint8_t data[SIZE], back[SIZE];

static void *place_alloc(lade_place place, size_t size)
{
	const lade_allocator *a = lade_allocator_default(place.kind);
	void *p = a->alloc(a->ctx, size, 64, place, NULL);
	assert_non_null(p);
	return p;
}

static void place_free(lade_place place, void *p, size_t size)
{
	const lade_allocator *a = lade_allocator_default(place.kind);
	a->free(a->ctx, p, size, 64, place, NULL);
}

/* A source that writes host memory only; it may be wrong about the second half. */
typedef struct half {
	bool fails, hides;
} half;

static void half_read(void *ctx, lade_reading *reading, size_t count)
{
	const half *h = ctx;
	for (size_t i = 0; i < count; i++) {
		lade_error err;
		uint64_t off;
		lade_range *range = lade_reading_range(reading, i);
		assert_true(lade_kind_is_host(range->dst.place.kind));
		range->object_size = h->hides ? LADE_SIZE_UNKNOWN : SIZE;
		lade_status status = lade_range_place(range, SIZE, &off, &range->size, &err);
		if (status == LADE_OK && h->fails && off + range->size > SIZE / 2)
			status = lade_fail(&err, LADE_E_IO, off, "the second half is lost");
		if (status == LADE_OK && range->size)
			memcpy(range->dst.data, data + off, range->size);
		lade_reading_done(reading, i, status, &err);
	}
}

static const lade_source_ops half_ops = {.struct_size = sizeof half_ops, .read = half_read};

enum { RANGES = 6 };

static size_t make_ranges(lade_range *ranges, size_t first)
{
	static const struct {
		uint64_t off;
		size_t size;
		lade_range_kind kind;
	} all[RANGES] = {{0, 1000, LADE_RANGE_AT},    {SIZE - 5, 64, LADE_RANGE_REST},
	                 {7, 90000, LADE_RANGE_AT},   {0, 33, LADE_RANGE_LAST},
	                 {SIZE, 9, LADE_RANGE_REST},  {SIZE - 8, 9, LADE_RANGE_AT}};
	for (size_t i = 0; i < RANGES; i++) {
		lade_place place = places[(i + first) % PLACES];
		size_t n = all[i].size;
		ranges[i] = (lade_range){.off = all[i].off,
		                         .kind = all[i].kind,
		                         .dst = {place_alloc(place, n + 1), n, place}};
		memset(back, 0xA5, n + 1);
		emulated_move(place.device, ranges[i].dst.data, back, n + 1);
	}
	return RANGES;
}

/* Compares and frees; the byte behind each span has to be as it was. */
static void end_ranges(lade_range *ranges, bool compare)
{
	for (size_t i = 0; i < RANGES; i++) {
		const lade_span *dst = &ranges[i].dst;
		emulated_move(dst->place.device, back, dst->data, dst->size + 1);
		assert_int_equal(back[dst->size], 0xA5);
		size_t from = ranges[i].kind == LADE_RANGE_LAST ? SIZE - 33 : (size_t)ranges[i].off;
		if (compare && ranges[i].status == LADE_OK)
			assert_memory_equal(back, data + from, ranges[i].size);
		place_free(dst->place, dst->data, dst->size + 1);
	}
}

static void every_place(void **state)
{
	(void)state;
	char path[] = "/tmp/lade-io-XXXXXX";
	int fd = mkstemp(path);
	assert_int_equal(write(fd, data, SIZE), SIZE);
	close(fd);
	for (int kind = 0; kind < 2 + PLACES; kind++)
		for (size_t first = 0; first < PLACES; first++) {
			half h = {false, false};
			lade_range ranges[RANGES];
			lade_source source = {&half_ops, &h};
			lade_place at = places[kind < 2 ? 0 : kind - 2];
			void *there = NULL;
			emu->seed = first;
			if (kind == 1) {
				assert_int_equal(lade_source_file_open(path, NULL, &source, NULL),
				                 LADE_OK);
			} else if (kind > 1) {
				there = place_alloc(at, SIZE);
				emulated_move(at.device, there, data, SIZE);
				assert_int_equal(
					lade_source_memory_open((lade_cspan){there, SIZE, at},
				                                &source, NULL),
					LADE_OK);
			}
			size_t count = make_ranges(ranges, first);
			lade_error err;
			assert_int_equal(lade_source_read(source, ranges, count, NULL, &err),
			                 LADE_E_RANGE);
			assert_non_null(strstr(err.message, "range 5: "));
			for (size_t i = 0; i < count; i++) {
				static const size_t sizes[] = {1000, 5, 90000, 33, 0, 0};
				assert_int_equal(ranges[i].status,
				                 i == 5 ? LADE_E_RANGE : LADE_OK);
				assert_int_equal(ranges[i].size, sizes[i]);
				assert_int_equal(ranges[i].object_size, SIZE);
			}
			end_ranges(ranges, true);
			lade_source_close(source);
			if (there)
				place_free(at, there, SIZE);
		}
	unlink(path);
}

/* More than a staging buffer holds, in ranges that it cuts. */
static void many_bytes(void **state)
{
	(void)state;
	char path[] = "/tmp/lade-io-XXXXXX";
	size_t size = (size_t)70 << 20;
	uint8_t *all = malloc(size), *got = malloc(size);
	for (size_t i = 0; i < size; i += 8)
		memcpy(all + i, &i, 8);
	int fd = mkstemp(path);
	assert_int_equal(write(fd, all, size), (ssize_t)size);
	close(fd);
	lade_source source;
	lade_object_version version;
	uint8_t *there = place_alloc(places[3], size);
	assert_int_equal(lade_source_file_open(path, NULL, &source, NULL), LADE_OK);
	lade_range ranges[2] = {{.dst = {there, 1000, places[3]}},
	                        {.off = 1000,
	                         .kind = LADE_RANGE_REST,
	                         .dst = {there + 1000, size - 1000, places[3]},
	                         .version = &version}};
	assert_int_equal(lade_source_read(source, ranges, 2, NULL, NULL), LADE_OK);
	assert_int_equal(ranges[1].size, size - 1000);
	assert_true(version.size > 0);
	emulated_move(places[3].device, got, there, size);
	assert_memory_equal(got, all, size);
	lade_source_close(source);
	place_free(places[3], there, size);
	unlink(path);
	free(all);
	free(got);
}

static void sources_that_fail(void **state)
{
	(void)state;
	for (int hides = 0; hides < 2; hides++) {
		half h = {true, hides};
		lade_error errors[RANGES];
		lade_io_options options = {.struct_size = sizeof options, .errors = errors};
		lade_range ranges[RANGES];
		/* All on devices: a source that hides its size cannot tell its end. */
		size_t count = make_ranges(ranges, 0);
		static const lade_status want[2][RANGES] = {
			{LADE_OK, LADE_E_IO, LADE_OK, LADE_E_IO, LADE_E_IO, LADE_E_RANGE},
			{LADE_OK, LADE_E_UNSUPPORTED, LADE_OK, LADE_E_UNSUPPORTED,
		         LADE_E_UNSUPPORTED, LADE_E_RANGE}};
		assert_true(lade_source_read((lade_source){&half_ops, &h}, ranges, count, &options,
		                             NULL) != LADE_OK);
		for (size_t i = 0; i < count; i++) {
			lade_status right = want[hides][i];
			if (i == 4 && !hides) /* of no bytes nothing is lost */
				right = LADE_OK;
			assert_int_equal(ranges[i].status, right);
			if (right != LADE_OK)
				assert_int_equal(errors[i].status, right);
		}
		end_ranges(ranges, true);
	}
}

/* Each call of the driver fails in turn: an error, or all is there. */
static void driver_calls_fail(void **state)
{
	(void)state;
	half h = {false, false};
	int failed = 0, blocks = emu->blocks;
	emu->seed = EMULATED_EAGER;
	for (int n = 1; n < 100; n++) {
		lade_range ranges[RANGES];
		size_t count = make_ranges(ranges, 3) - 1; /* without the one past the end */
		emu->calls = 0;
		emu->fail_at = n;
		emu->fail_code = 2;
		emu->failed = NULL;
		lade_status status =
			lade_source_read((lade_source){&half_ops, &h}, ranges, count, NULL, NULL);
		bool done = !emu->failed;
		emu->fail_at = 0;
		failed += status != LADE_OK;
		assert_true(status == LADE_OK || status == LADE_E_NOMEM || status == LADE_E_DEVICE);
		end_ranges(ranges, true);
		if (done) {
			assert_int_equal(status, LADE_OK);
			break;
		}
	}
	assert_true(failed > 2);
	assert_int_equal(emu->blocks, blocks);
}

static void sinks_take_what_is_there(void **state)
{
	(void)state;
	char path[] = "/tmp/lade-io-XXXXXX";
	int fd = mkstemp(path);
	lade_sink sink;
	assert_int_equal(lade_sink_file_open(path, &sink, NULL), LADE_OK);
	for (int k = 0; k < PLACES; k++) {
		void *there = place_alloc(places[k], SIZE);
		emulated_move(places[k].device, there, data, SIZE);
		lade_write write = {.src = {there, SIZE - (size_t)k, places[k]}};
		assert_int_equal(lade_sink_write(sink, &write, 1, NULL, NULL), LADE_OK);
		lade_source source;
		lade_range range = {.kind = LADE_RANGE_REST, .dst = lade_host_span(back, SIZE)};
		assert_int_equal(lade_source_file_open(path, NULL, &source, NULL), LADE_OK);
		assert_int_equal(lade_source_read(source, &range, 1, NULL, NULL), LADE_OK);
		assert_int_equal(range.size, SIZE - (size_t)k);
		assert_memory_equal(back, data, range.size);
		lade_source_close(source);
		place_free(places[k], there, SIZE);
	}
	lade_sink_close(sink);
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_place),
		cmocka_unit_test(many_bytes),
		cmocka_unit_test(sources_that_fail),
		cmocka_unit_test(driver_calls_fail),
		cmocka_unit_test(sinks_take_what_is_there),
	};
	emu = emulated_open();
	if (!emu) {
		fprintf(stderr, "libcuda.so.1 is not the emulated one\n");
		return 1;
	}
	for (size_t i = 0; i < SIZE; i++)
		data[i] = (uint8_t)(i * 11 + i / 300);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
