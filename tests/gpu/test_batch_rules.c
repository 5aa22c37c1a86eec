/*
 * test_batch_rules.c: what lade_decode_into() and its neighbours promise of memory on devices, case
 * by case: waves, sizes no memory has, streams, dictionaries, threads, forks, what is explained.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/batch_kit.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static lade_engine *engine;
static lade_spec *lz4, *snappy, *zstd, *lz4f, *filtered;
static const lade_place near = {LADE_DEVICE, 0}, pinned = {LADE_PINNED, 0};

static int begin(void **state)
{
	(void)state;
	lade_engine_options o = {.struct_size = sizeof o, .threads = 3};
	OK(lade_engine_new(&o, &engine, err));
	lz4 = spec_of(engine, "lz4");
	snappy = spec_of(engine, "snappy");
	zstd = spec_of(engine, "zstd(level=1)");
	lz4f = spec_of(engine, "lz4f");
	filtered = spec_of(engine, "shuffle(4)|lz4|crc32c");
	if (emu)
		emu->seed = EMULATED_LAZY;
	return 0;
}

static int end(void **state)
{
	(void)state;
	lade_spec_unref(lz4);
	lade_spec_unref(snappy);
	lade_spec_unref(zstd);
	lade_spec_unref(lz4f);
	lade_spec_unref(filtered);
	lade_engine_free(engine);
	kit_clean();
	return 0;
}

/* ---- a list of items ------------------------------------------ */

#define MOST 64

/* Chunks of one spec, from one place to another. */
typedef struct list {
	size_t count;
	chunk chunk[MOST];
	buffer src[MOST], dst[MOST];
	lade_segment segment[MOST];
	lade_item item[MOST];
	lade_result result[MOST];
	lade_error error[MOST];
} list;

static list *list_new(const lade_spec *spec, size_t count, size_t size, lade_place from,
                      lade_place to, size_t room)
{
	list *l = calloc(1, sizeof *l);
	rng r = {.s = 7 + size};
	l->count = count;
	for (size_t i = 0; i < count; i++) {
		l->chunk[i] = chunk_of(engine, spec, NULL, &r, size);
		const chunk *c = &l->chunk[i];
		l->src[i] = buffer_new(from, c->encoded_size, i % 9);
		buffer_put(&l->src[i], c->encoded, c->encoded_size);
		l->dst[i] = buffer_new(to, room, i % 7);
		l->segment[i] = (lade_segment){
			.data = l->src[i].data, .size = c->encoded_size, .place = from};
		l->item[i] = (lade_item){.spec = spec,
		                         .src = &l->segment[i],
		                         .src_count = 1,
		                         .dst = buffer_span(&l->dst[i])};
		l->result[i] = (lade_result){(lade_status)-1, 12345};
	}
	return l;
}

static void list_free(list *l)
{
	for (size_t i = 0; i < l->count; i++) {
		chunk_free(&l->chunk[i]);
		buffer_free(&l->src[i]);
		buffer_free(&l->dst[i]);
	}
	free(l);
}

static void list_right(const list *l, size_t i)
{
	if (l->result[i].status != LADE_OK)
		print_error("item %zu: %s: %s\n", i, lade_status_name(l->result[i].status),
		            l->error[i].message);
	assert_int_equal(l->result[i].status, LADE_OK);
	assert_int_equal(l->result[i].size, l->chunk[i].plain_size);
	uint8_t *bytes = malloc(l->dst[i].size + 1);
	buffer_get(&l->dst[i], bytes, l->dst[i].size);
	assert_memory_equal(bytes, l->chunk[i].plain, l->chunk[i].plain_size);
	free(bytes);
}

static lade_status list_run(list *l, lade_where where, lade_stream stream, lade_error *err)
{
	lade_batch_options o = {
		.struct_size = sizeof o, .where = where, .stream = stream, .item_errors = l->error};
	return lade_decode_into(engine, NULL, l->item, l->count, l->result, &o, err);
}

/* ---- waves ------------------------------------------ */

/* Rooms of 3 MiB each are staged in whole: some 70 MiB in several waves. */
static void waves(const lade_spec *spec, lade_place from, lade_place to, lade_where where)
{
	list *l = list_new(spec, 24, 4000, from, to, (size_t)3 << 20);
	/* Two of them are bad. */
	for (size_t i = 5; i < 24; i += 13)
		l->segment[i].size -= 3;
	lade_error err = {.message = ""};
	lade_status status = list_run(l, where, NULL, &err);
	assert_int_not_equal(status, LADE_OK);
	assert_int_equal(status, l->result[5].status);
	assert_non_null(strstr(err.message, "item 5: "));
	for (size_t i = 0; i < 24; i++) {
		if (i % 13 != 5) {
			list_right(l, i);
			continue;
		}
		assert_int_not_equal(l->result[i].status, LADE_OK);
		assert_int_equal(l->result[i].size, 0);
		assert_int_equal(l->error[i].status, l->result[i].status);
		free(buffer_image(&l->dst[i]));
	}
	list_free(l);
}

static void many_waves(void **state)
{
	(void)state;
	waves(lz4, pinned, LADE_PLACE_HOST, LADE_WHERE_DEVICE);
	waves(snappy, LADE_PLACE_HOST, LADE_PLACE_HOST, LADE_WHERE_DEVICE);
	waves(lz4, near, pinned, LADE_WHERE_DEVICE);
	waves(lz4, LADE_PLACE_HOST, near, LADE_WHERE_DEVICE);
	waves(lz4f, near, near, LADE_WHERE_AUTO);
	waves(lz4f, LADE_PLACE_HOST, near, LADE_WHERE_AUTO);
	waves(zstd, pinned, near, LADE_WHERE_DEVICE);
	waves(filtered, pinned, near, LADE_WHERE_HOST);
	if (emu)
		emu->seed = 12345;
	waves(lz4, pinned, LADE_PLACE_HOST, LADE_WHERE_DEVICE);
	waves(lz4f, near, near, LADE_WHERE_AUTO);
}

/* Sources of 1 MiB and more in several waves: gathered by the host, and by the device. */
static void many_waves_in(void **state)
{
	(void)state;
	for (int k = 0; k < 2; k++) {
		list *l = list_new(lz4, 12, 3000, k ? pinned : LADE_PLACE_HOST, near, 3000);
		/* What stands behind a chunk makes it bad, and long. */
		buffer tail = buffer_new(k ? pinned : LADE_PLACE_HOST, (size_t)1 << 20, 3);
		lade_error err;
		for (size_t i = 1; i < 12; i += 2) {
			l->segment[i].data = tail.data;
			l->segment[i].size = tail.size - i;
		}
		assert_int_not_equal(list_run(l, LADE_WHERE_DEVICE, NULL, &err), LADE_OK);
		assert_non_null(strstr(err.message, "item 1: "));
		for (size_t i = 0; i < 12; i++)
			if (i % 2)
				assert_int_not_equal(l->result[i].status, LADE_OK);
			else
				list_right(l, i);
		buffer_free(&tail);
		list_free(l);
	}
}

/* Room for the largest of 40, for each of them between two stages, is more than the emulated device
 * has. */
static void one_large_item_among_many(void **state)
{
	(void)state;
	lade_spec *spec = spec_of(engine, "bitshuffle(4)|lz4");
	for (size_t at = 0; at < 40; at += 13) {
		list *l = list_new(spec, 40, 800, near, near, 800);
		buffer large = buffer_new(near, (size_t)40 << 20, 0);
		buffer_free(&l->dst[at]);
		l->dst[at] = large;
		l->item[at].dst = buffer_span(&large);
		OK(list_run(l, LADE_WHERE_DEVICE, NULL, err));
		for (size_t i = 0; i < 40; i++)
			list_right(l, i);
		list_free(l);
	}
	lade_spec_unref(spec);
}

static size_t threads_now(void)
{
	size_t count = 0;
	DIR *tasks = opendir("/proc/self/task");
	while (tasks && readdir(tasks))
		count++;
	if (tasks)
		closedir(tasks);
	return count;
}

/* Pageable bytes, too, are moved by no more threads than the call may use. */
static void threads_are_no_more_than_asked(void **state)
{
	(void)state;
	list *l = list_new(lz4, 4, 3000, LADE_PLACE_HOST, LADE_PLACE_HOST, (size_t)3 << 20);
	lade_batch_options o = {
		.struct_size = sizeof o, .where = LADE_WHERE_DEVICE, .threads = 1};
	/* The driver may start threads of its own at the first call. */
	l->item[0].dst.size = 3000;
	OK(lade_decode_into(engine, NULL, l->item, 1, l->result, &o, err));
	l->item[0].dst.size = l->dst[0].size;
	size_t before = threads_now();
	OK(lade_decode_into(engine, NULL, l->item, l->count, l->result, &o, err));
	assert_int_equal(threads_now(), before);
	for (size_t i = 0; i < l->count; i++)
		list_right(l, i);
	list_free(l);
}

/* Each of the items has a spec of its own, and every third a source that only the host takes. */
static void each_item_a_spec(void **state)
{
	(void)state;
	list *l = list_new(lz4, MOST, 500, pinned, pinned, 1000);
	lade_segment twice[MOST][2];
	lade_spec *own[MOST];
	for (size_t i = 0; i < MOST; i++) {
		own[i] = spec_of(engine, "lz4");
		l->item[i].spec = own[i];
		twice[i][0] = twice[i][1] = l->segment[i];
		if (i % 3 == 0) {
			l->item[i].src = twice[i];
			l->item[i].src_count = 2;
		}
		if (i % 4 == 0) {
			buffer_free(&l->dst[i]);
			l->dst[i] = buffer_new(near, 1000, 0);
			l->item[i].dst = buffer_span(&l->dst[i]);
		}
	}
	lade_batch_options o = {.struct_size = sizeof o, .item_errors = l->error};
	OK(lade_decode_into(engine, NULL, l->item, l->count, l->result, &o, err));
	for (size_t i = 0; i < MOST; i++) {
		uint8_t bytes[1000];
		assert_int_equal(l->result[i].size, i % 3 ? 500 : 1000);
		buffer_get(&l->dst[i], bytes, 1000);
		assert_memory_equal(bytes, l->chunk[i].plain, 500);
		if (i % 3 == 0)
			assert_memory_equal(bytes + 500, l->chunk[i].plain, 500);
		lade_spec_unref(own[i]);
	}
	list_free(l);
}

/* Bytes in a row are copied at once, but the driver does not copy from one allocation into the
 * next: what it refuses so goes one by one. */
static void neighbours_of_two_allocations(void **state)
{
	(void)state;
	enum { COUNT = 3, SIZE = 102400 };
	if (!emu)
		skip();
	buffer src = buffer_new(pinned, COUNT * (SIZE + 500), 0);
	buffer dst = buffer_new(pinned, (size_t)COUNT * SIZE, 0);
	lade_segment segment[COUNT];
	lade_item item[COUNT];
	lade_result result[COUNT];
	rng r = {.s = 3};
	size_t at = 0, in = 0, out = 0;
	uint8_t *plain = malloc((size_t)COUNT * SIZE);
	for (size_t i = 0; i < (size_t)COUNT * SIZE; i++)
		plain[i] = (uint8_t)rng_next(&r);
	for (size_t i = 0; i < COUNT; i++) {
		size_t size;
		OK(lade_encode(engine, lz4, lade_host_cspan(plain + i * SIZE, SIZE),
		               lade_host_span(src.data + at, SIZE + 500), &size, err));
		segment[i] = (lade_segment){src.data + at, size, pinned, 0};
		at += size;
		item[i] = (lade_item){.src = &segment[i],
		                      .src_count = 1,
		                      .dst = {dst.data + i * SIZE, SIZE, pinned}};
	}
	lade_batch_options o = {.struct_size = sizeof o, .where = LADE_WHERE_DEVICE};
	OK(lade_decode_into(engine, lz4, item, COUNT, result, &o, err));
	for (int k = 1;; k++) {
		memset(dst.data, 0, dst.size);
		emu->failed = NULL;
		emu->fail_code = 1; /* CUDA_ERROR_INVALID_VALUE */
		emu->fail_at = emu->calls + k;
		lade_status status = lade_decode_into(engine, lz4, item, COUNT, result, &o, NULL);
		emu->fail_at = 0;
		if (status == LADE_OK)
			assert_memory_equal(dst.data, plain, dst.size);
		if (!emu->failed)
			break;
		in += status == LADE_OK && strncmp(emu->failed, "cuMemcpyAsync", 13) == 0;
		out += status == LADE_OK && strncmp(emu->failed, "cuMemcpyDtoHAsync", 17) == 0;
	}
	assert_int_equal(in, 1);
	assert_int_equal(out, 1);
	free(plain);
	buffer_free(&src);
	buffer_free(&dst);
}

/* A gap between two sources that a page ends in does not make two copies of them, the short one a
 * kernel's. */
static void a_gap_across_pages(void **state)
{
	(void)state;
	enum { LONG = 300000, SHORT = 100 };
	if (!emu)
		skip();
	const lade_allocator *a = lade_allocator_default(LADE_PINNED);
	size_t room = LONG + 20000;
	uint8_t *block = a->alloc(a->ctx, room, 4096, pinned, NULL), *plain = malloc(LONG);
	buffer dst = buffer_new(near, LONG + SHORT, 0);
	lade_segment segment[2];
	lade_item item[2];
	lade_result result[2];
	uint8_t *encoded[2], *at;
	size_t size[2], n[2] = {LONG, SHORT};
	rng r = {.s = 3};
	for (size_t i = 0; i < LONG; i++)
		plain[i] = (uint8_t)rng_next(&r);
	for (size_t i = 0; i < 2; i++) {
		lade_span to = lade_host_span(encoded[i] = malloc(n[i] + 5000), n[i] + 5000);
		OK(lade_encode(engine, lz4, lade_host_cspan(plain, n[i]), to, &size[i], err));
	}
	/* The first ends 3 bytes before a page's end. */
	at = (uint8_t *)(((uintptr_t)block + size[0] + 8191) / 4096 * 4096) - 3;
	for (size_t i = 0; i < 2; i++) {
		uint8_t *from = i ? at + 11 : at - size[0];
		memcpy(from, encoded[i], size[i]);
		segment[i] = (lade_segment){from, size[i], pinned, 0};
		item[i] = (lade_item){.src = &segment[i],
		                      .src_count = 1,
		                      .dst = {dst.data + i * LONG, n[i], near}};
		free(encoded[i]);
	}
	lade_batch_options o = {.struct_size = sizeof o, .where = LADE_WHERE_DEVICE};
	int launches = emu->launches;
	OK(lade_decode_into(engine, lz4, item, 2, result, &o, err));
	assert_int_equal(emu->launches - launches, 1);
	uint8_t *image = malloc(dst.size);
	buffer_get(&dst, image, dst.size);
	assert_memory_equal(image, plain, LONG);
	assert_memory_equal(image + LONG, plain, SHORT);
	free(image);
	free(plain);
	a->free(a->ctx, block, room, 4096, pinned, NULL);
	buffer_free(&dst);
}

/* ---- many, and none ------------------------------------------ */

static void none_and_empty(void **state)
{
	(void)state;
	lade_batch_options o = {.struct_size = sizeof o, .where = LADE_WHERE_DEVICE};
	OK(lade_decode_into(engine, lz4, NULL, 0, NULL, &o, err));
	OK(lade_encode_into(engine, lz4, NULL, 0, NULL, &o, err));
	static const uint8_t nothing_lz4[1] = {0}, nothing_snappy[1] = {0};
	for (int where = 0; where < 3; where++)
		for (int kind = 0; kind < LADE_KIND_COUNT; kind++)
			for (int null = 0; null < 2; null++) {
				lade_place place = {(lade_kind)kind, 0};
				buffer from = buffer_new(place, 1, 0), to = buffer_new(place, 8, 1);
				buffer_put(&from, where ? nothing_lz4 : nothing_snappy, 1);
				lade_segment s = {.data = from.data, .size = 1, .place = place};
				lade_item item = {.src = &s,
				                  .src_count = 1,
				                  .dst = {null ? NULL : to.data, 0, place}};
				lade_result result = {(lade_status)-1, 9};
				o.where = (lade_where)where;
				OK(lade_decode_into(engine, where ? lz4 : snappy, &item, 1, &result,
				                    &o, err));
				assert_int_equal(result.status, LADE_OK);
				assert_int_equal(result.size, 0);
				/* And back: of nothing at all. */
				s.size = 0;
				s.data = null ? NULL : from.data;
				item.dst = buffer_span(&to);
				result.status = (lade_status)-1;
				OK(lade_encode_into(engine, lz4, &item, 1, &result, &o, err));
				assert_int_equal(result.size, 1);
				/* An empty source is no chunk. */
				result.status = (lade_status)-1;
				assert_int_not_equal(
					lade_decode_into(engine, lz4, &item, 1, &result, &o, NULL),
					LADE_OK);
				assert_int_equal(result.status, LADE_E_TRUNCATED);
				free(buffer_image(&to));
				free(buffer_image(&from));
				buffer_free(&from);
				buffer_free(&to);
			}
}

/* Thousands of small items in one block each way; some have specs of their own. */
static void thousands(void **state)
{
	(void)state;
	size_t count = emu ? 3000 : 200000, each = 40;
	for (int way = 0; way < 3; way++) {
		lade_place from = way == 1 ? LADE_PLACE_HOST : near;
		lade_place to = way == 2 ? LADE_PLACE_HOST : near;
		uint8_t *plain = malloc(count * each), *host = malloc(count * each);
		buffer src = buffer_new(from, count * (each + 2), 5);
		buffer dst = buffer_new(to, count * each, 3);
		uint8_t *encoded = malloc(count * (each + 2));
		lade_segment *segment = calloc(count, sizeof *segment);
		lade_item *item = calloc(count, sizeof *item);
		lade_result *result = calloc(count, sizeof *result);
		lade_spec *own[8];
		rng r = {.s = 99};
		fill(&r, plain, count * each);
		for (int i = 0; i < 8; i++)
			own[i] = spec_of(engine, i % 2 ? "lz4" : "copy");
		for (size_t i = 0; i < count; i++) {
			bool copy = i % 5 == 0 && i / 5 % 8 % 2 == 0;
			uint8_t *e = encoded + i * (each + 2);
			size_t size = each;
			if (!copy) {
				/* One run of literals. */
				e[0] = 0xF0;
				e[1] = (uint8_t)(each - 15);
				memcpy(e + 2, plain + i * each, each);
				size = each + 2;
			} else {
				memcpy(e, plain + i * each, each);
			}
			segment[i] = (lade_segment){
				.data = src.data + i * (each + 2), .size = size, .place = from};
			item[i] = (lade_item){.spec = i % 5 == 0 ? own[i / 5 % 8] : NULL,
			                      .src = &segment[i],
			                      .src_count = 1,
			                      .dst = {dst.data + i * each, each, to}};
			result[i] = (lade_result){(lade_status)-1, 1};
		}
		buffer_put(&src, encoded, count * (each + 2));
		OK(lade_decode_into(engine, lz4, item, count, result, NULL, err));
		for (size_t i = 0; i < count; i++)
			assert_true(result[i].status == LADE_OK && result[i].size == each);
		buffer_get(&dst, host, count * each);
		assert_memory_equal(host, plain, count * each);
		for (int i = 0; i < 8; i++)
			lade_spec_unref(own[i]);
		buffer_free(&src);
		buffer_free(&dst);
		free(plain);
		free(host);
		free(encoded);
		free(segment);
		free(item);
		free(result);
	}
}

/* ---- sizes and places that are not there ------------------------------------------ */

static void one_item_does_not_spoil_the_others(void **state)
{
	(void)state;
	static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 63, SIZE_MAX / 8 + 1, SIZE_MAX / 8,
	                               (size_t)1 << 46};
	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
		for (int where = 0; where < 3; where++)
			for (int what = 0; what < 2; what++) {
				list *l = list_new(what ? lz4 : lz4f, 4, 1000, near, near, 1000);
				lade_error err = {.message = ""};
				/* The span is a lie: nobody has so much memory. */
				l->item[2].dst.size = sizes[k];
				lade_status status = list_run(l, (lade_where)where, NULL, &err);
				if (where == LADE_WHERE_DEVICE && !what) {
					assert_int_equal(status, LADE_E_UNSUPPORTED);
					list_free(l);
					continue;
				}
				if (status != LADE_E_LIMIT && status != LADE_E_NOMEM)
					print_error("%zu, where %d: %s: %s\n", sizes[k], where,
					            lade_status_name(status), err.message);
				assert_true(status == LADE_E_LIMIT || status == LADE_E_NOMEM);
				assert_non_null(strstr(err.message, "item 2: "));
				for (size_t i = 0; i < 4; i++)
					if (i != 2)
						list_right(l, i);
				list_free(l);
			}
	static const int32_t numbers[] = {-1, 63, 1000, INT32_MIN};
	for (size_t k = 0; k < 4; k++)
		for (int side = 0; side < 2; side++) {
			list *l = list_new(lz4, 3, 1000, near, near, 1000);
			lade_error err = {.message = ""};
			if (side)
				l->item[1].dst.place.device = numbers[k];
			else
				l->segment[1].place.device = numbers[k];
			if (!side && k % 2)
				l->item[1].dst.place = LADE_PLACE_HOST;
			assert_int_equal(list_run(l, LADE_WHERE_AUTO, NULL, &err),
			                 LADE_E_NO_DEVICE);
			assert_non_null(strstr(err.message, "item 1: "));
			list_right(l, 0);
			list_right(l, 2);
			list_free(l);
		}
}

static void arguments_are_checked(void **state)
{
	(void)state;
	list *l = list_new(lz4, 3, 100, near, near, 100);
	lade_batch_options o = {.struct_size = sizeof o, .where = (lade_where)3};
	FAILS(LADE_E_ARG, "where 3", lade_decode_into(engine, lz4, l->item, 3, NULL, &o, err));
	o.where = LADE_WHERE_DEVICE;
	o.flags = 4;
	FAILS(LADE_E_ARG, "flags 0x4", lade_decode_into(engine, lz4, l->item, 3, NULL, &o, err));
	o.flags = 0;
	o.device = 77;
	l->item[0].dst.place = LADE_PLACE_HOST;
	l->segment[0].place = LADE_PLACE_HOST;
	FAILS(LADE_E_NO_DEVICE,
	      "item 0: ", lade_decode_into(engine, lz4, l->item, 1, NULL, &o, err));
	l->item[1].spec = NULL;
	FAILS(LADE_E_ARG, "item 1: neither",
	      lade_decode_into(engine, NULL, l->item + 1, 1, NULL, NULL, err) == LADE_E_ARG
	              ? lade_fail(err, LADE_E_ARG, 0, "item 1: neither")
	              : LADE_OK);
	l->item[1].dst.place.kind = (lade_kind)17;
	FAILS(LADE_E_ARG, "kind 17",
	      lade_decode_into(engine, lz4, l->item + 1, 1, NULL, NULL, err));
	l->segment[2].data = NULL;
	FAILS(LADE_E_ARG, "NULL", lade_decode_into(engine, lz4, l->item + 2, 1, NULL, NULL, err));
	FAILS(LADE_E_UNSUPPORTED, "lz4f",
	      lade_decode_into(
		      engine, lz4f,
		      (l->item[2].spec = NULL, l->segment[2].data = l->src[2].data, l->item + 2), 1,
		      NULL,
		      &(lade_batch_options){.struct_size = sizeof o, .where = LADE_WHERE_DEVICE},
		      err));
	list_free(l);
}

/* Item, place and both numbers. */
static void messages_tell(void **state)
{
	(void)state;
	list *l = list_new(lz4, 4, 5000, near, near, 5000);
	lade_error err = {.message = ""};
	l->segment[1].decoded_size = 4999;
	l->item[2].dst.size = 4990;
	l->segment[3].size -= 1;
	assert_int_equal(list_run(l, LADE_WHERE_DEVICE, NULL, &err), LADE_E_CORRUPT);
	list_right(l, 0);
	for (size_t i = 1; i < 4; i++)
		print_message("%s\n", l->error[i].message);
	assert_non_null(strstr(err.message, "item 1: "));
	assert_non_null(strstr(l->error[1].message, "5000"));
	assert_non_null(strstr(l->error[1].message, "4999"));
	assert_int_equal(l->result[2].status, LADE_E_NOSPACE);
	assert_non_null(strstr(l->error[2].message, "4990"));
	assert_true(l->result[3].status == LADE_E_TRUNCATED ||
	            l->result[3].status == LADE_E_CORRUPT);
	/* A ranged one: the message is not of the room that the range has. */
	l->segment[1].decoded_size = 5008;
	l->item[1].range_off = 10;
	l->item[1].range_size = 100;
	l->item[1].dst.size = 100;
	assert_int_equal(list_run(l, LADE_WHERE_DEVICE, NULL, &err), LADE_E_CORRUPT);
	print_message("%s\n", l->error[1].message);
	assert_null(strstr(l->error[1].message, " 0 bytes"));
	list_free(l);
}

/* ---- streams ------------------------------------------ */

static void streams_are_followed(void **state)
{
	(void)state;
	const lade_spec *all[] = {lz4, zstd, lz4f, filtered};
	for (int k = 0; k < 4; k++)
		for (uint64_t seed = 0; seed < (emu ? 6 : 2); seed++) {
			list *l = list_new(all[k], 3, 2000, near, near, 2000);
			lade_stream s;
			lade__device *d;
			if (emu)
				emu->seed = seed ? seed * 7919 : EMULATED_LAZY;
			OK(lade_stream_new(0, &s, err));
			OK(lade__device_use(0, &d, err));
			for (size_t i = 0; i < 3; i++) {
				uint8_t zeros[8] = {0};
				void *p = NULL;
				/* The source comes late, from pinned memory. */
				const lade_allocator *a = lade_allocator_default(LADE_PINNED);
				size_t size = l->chunk[i].encoded_size;
				p = a->alloc(a->ctx, size, 64, pinned, NULL);
				memcpy(p, l->chunk[i].encoded, size);
				buffer_put(&l->src[i], zeros, size < 8 ? size : 8);
				OK(LADE__CU(d, cuMemcpyHtoDAsync, lade__address_of(l->src[i].data),
				            p, size, s));
				l->chunk[i].encoded = (free(l->chunk[i].encoded), p);
			}
			OK(list_run(l, LADE_WHERE_AUTO, s, err));
			for (size_t i = 0; i < 3; i++) {
				const lade_allocator *a = lade_allocator_default(LADE_PINNED);
				list_right(l, i);
				a->free(a->ctx, l->chunk[i].encoded, l->chunk[i].encoded_size, 64,
				        pinned, NULL);
				l->chunk[i].encoded = NULL;
			}
			lade__device_leave(d);
			lade_stream_free(0, s);
			list_free(l);
		}
}

static void streams_of_others(void **state)
{
	(void)state;
	if (device_count < 2)
		skip();
	lade_stream s;
	OK(lade_stream_new(1, &s, err));
	list *l = list_new(lz4, 3, 2000, near, near, 2000);
	FAILS(LADE_E_ARG, "device 0", list_run(l, LADE_WHERE_AUTO, s, err));
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(l->result[i].status, LADE_E_ARG);
	list_free(l);
	/* What is pinned lies on no device, and may go where the stream is not. */
	list *p = list_new(lz4, 60, 100000, pinned, pinned, 100000);
	OK(list_run(p, LADE_WHERE_AUTO, s, err));
	for (size_t i = 0; i < p->count; i++)
		list_right(p, i);
	list_free(p);
	lade_stream_free(1, s);
}

/* ---- dictionaries ------------------------------------------ */

static void dictionaries_cross(void **state)
{
	(void)state;
	uint8_t words[2000], got[3000];
	rng r = {.s = 3};
	lade_dict *dict;
	fill(&r, words, sizeof words);
	OK(lade_dict_new(words, sizeof words, &dict, err));
	const lade_spec *all[] = {lz4, zstd, zstd};
	for (int k = 0; k < 3; k++) {
		chunk c = chunk_of(engine, all[k], dict, &r, 3000);
		buffer src = buffer_new(near, c.encoded_size, 1), dst = buffer_new(near, 3000, 2);
		buffer_put(&src, c.encoded, c.encoded_size);
		lade_segment s = {.data = src.data, .size = c.encoded_size, .place = near};
		lade_item item = {.src = &s, .src_count = 1, .dst = buffer_span(&dst)};
		lade_where where = k == 2 ? LADE_WHERE_DEVICE : LADE_WHERE_AUTO;
		lade_batch_options o = {.struct_size = sizeof o, .dict = dict, .where = where};
		lade_result result;
		OK(lade_decode_into(engine, all[k], &item, 1, &result, &o, err));
		assert_int_equal(result.size, 3000);
		buffer_get(&dst, got, 3000);
		assert_memory_equal(got, c.plain, 3000);
		o.where = LADE_WHERE_DEVICE;
		if (k == 0)
			FAILS(LADE_E_UNSUPPORTED, "dictionary",
			      lade_decode_into(engine, lz4, &item, 1, &result, &o, err));
		buffer_free(&src);
		buffer_free(&dst);
		chunk_free(&c);
	}
	lade_dict_free(dict);
}

/* ---- what is explained, and sizes ------------------------------------------ */

static void explain(const lade_spec *spec, list *l, lade_where where, lade_kind chosen)
{
	lade_candidate all[32];
	size_t count = 0, taken = 0, stages = lade_spec_count(spec);
	lade_batch_options o = {.struct_size = sizeof o, .where = where};
	lade_call call = {.struct_size = sizeof call, .direction = LADE_DECODE, .spec = spec,
	                  .items = l->item, .count = l->count, .options = &o};
	OK(lade_explain(engine, &call, all, 32, &count, err));
	for (size_t i = 0; i < count; i++) {
		print_message("  %s%s: %s\n", all[i].chosen ? "* " : "  ", all[i].implementation,
		              all[i].reason);
		assert_true(strlen(all[i].reason) > 0);
		assert_null(strstr(all[i].reason, "nan"));
		taken += all[i].chosen;
		if (all[i].chosen)
			assert_int_equal(all[i].place, chosen);
		if (all[i].chosen)
			assert_ptr_equal(strstr(all[i].reason, "chosen"), all[i].reason);
		else
			assert_ptr_not_equal(strstr(all[i].reason, "chosen"), all[i].reason);
	}
	assert_int_equal(taken, stages);
	FAILS(LADE_E_NOSPACE, "room for 0", lade_explain(engine, &call, all, 0, &count, err));
}

static void what_is_explained(void **state)
{
	(void)state;
	list *l = list_new(lz4, 60, 2000, near, near, 2000);
	explain(lz4, l, LADE_WHERE_HOST, LADE_HOST);
	explain(lz4, l, LADE_WHERE_DEVICE, LADE_DEVICE);
	explain(lz4f, l, LADE_WHERE_AUTO, LADE_HOST);
	explain(filtered, l, LADE_WHERE_HOST, LADE_HOST);
	explain(filtered, l, LADE_WHERE_DEVICE, LADE_DEVICE);
	lade_candidate all[32];
	size_t count;
	lade_batch_options o = {.struct_size = sizeof o, .where = LADE_WHERE_DEVICE};
	lade_call call = {.struct_size = sizeof call, .direction = LADE_DECODE, .spec = lz4f,
	                  .items = l->item, .count = l->count, .options = &o};
	FAILS(LADE_E_UNSUPPORTED, "lz4f", lade_explain(engine, &call, all, 32, &count, err));
	list_free(l);
	l = list_new(lz4, 3, 2000, LADE_PLACE_HOST, LADE_PLACE_HOST, 2000);
	explain(lz4, l, LADE_WHERE_AUTO, LADE_HOST);
	explain(lz4, l, LADE_WHERE_DEVICE, LADE_DEVICE);
	o.where = LADE_WHERE_AUTO;
	call.spec = lz4;
	call.items = NULL;
	call.count = 0;
	OK(lade_explain(engine, &call, all, 32, &count, err));
	call.items = l->item;
	call.count = l->count;
	o.device = 99;
	o.where = LADE_WHERE_DEVICE;
	FAILS(LADE_E_NO_DEVICE, "99", lade_explain(engine, &call, all, 32, &count, err));
	list_free(l);
	/* Large ones on a device go to its kernels. */
	l = list_new(lz4, 60, 100000, near, near, 100000);
	explain(lz4, l, LADE_WHERE_AUTO, LADE_DEVICE);
	list_free(l);
}

static void sizes_of_segments_on_devices(void **state)
{
	(void)state;
	list *l =
		list_new(snappy, 6, 3000, (lade_place){LADE_DEVICE, device_count - 1}, near, 3000);
	lade_result results[6];
	l->segment[1].decoded_size = 77;
	l->segment[2].size = 0;
	l->segment[3].place.device = 50;
	lade_error err = {.message = ""};
	assert_int_equal(lade_decoded_sizes(engine, NULL, l->item, 6, results, NULL, &err),
	                 LADE_E_TRUNCATED);
	assert_non_null(strstr(err.message, "item 2: "));
	static const lade_result want[6] = {
		{LADE_OK, 3000}, {LADE_OK, 77}, {LADE_E_TRUNCATED, 0}, {LADE_E_NO_DEVICE, 0},
		{LADE_OK, 3000}, {LADE_OK, 3000}};
	for (int i = 0; i < 6; i++) {
		assert_int_equal(results[i].status, want[i].status);
		assert_int_equal(results[i].size, want[i].size);
	}
	for (int i = 0; i < 6; i++)
		l->item[i].spec = NULL;
	assert_int_equal(lade_decoded_sizes(engine, lz4, l->item, 1, results, NULL, &err),
	                 LADE_E_UNKNOWN_SIZE);
	list_free(l);
}

/* Only headers are brought: what lies behind is not even there. */
static void sizes_need_headers_only(void **state)
{
	(void)state;
	enum { COUNT = 40 };
	static const char *const texts[] = {"snappy", "crc32c(location=start)|snappy",
	                                    "shuffle(4)|blosc(cname=lz4,typesize=4)"};
	lade_segment segment[COUNT];
	lade_item item[COUNT];
	lade_result results[COUNT];
	for (size_t k = 0; k < 3; k++) {
		lade_spec *spec = spec_of(engine, texts[k]);
		rng r = {.s = 5};
		buffer head[COUNT];
		for (size_t i = 0; i < COUNT; i++) {
			chunk c = chunk_of(engine, spec, NULL, &r, 400 + 4 * i);
			size_t has = c.encoded_size < 20 ? c.encoded_size : 20;
			lade_place place = {LADE_DEVICE, i / 7 % 2 ? device_count - 1 : 0};
			/* In a block of its own, at its end. */
			head[i] = buffer_new(place, has, 3);
			buffer_put(&head[i], c.encoded, has);
			segment[i] = (lade_segment){head[i].data, c.encoded_size, place, 0};
			if (k < 2) /* blosc's header says how much there is */
				segment[i].size = (size_t)1 << 40;
			item[i] = (lade_item){.spec = spec, .src = &segment[i], .src_count = 1};
			chunk_free(&c);
		}
		if (emu)
			emu->seed = k;
		OK(lade_decoded_sizes(engine, NULL, item, COUNT, results, NULL, err));
		for (size_t i = 0; i < COUNT; i++) {
			assert_int_equal(results[i].size, 400 + 4 * i);
			buffer_free(&head[i]);
		}
		lade_spec_unref(spec);
	}
	/* Segments of a host and of a device in one item, more than are brought at once. */
	list *l = list_new(snappy, 2, 700, near, near, 700);
	enum { MANY = 3000 };
	lade_segment *many = calloc(MANY, sizeof *many);
	for (size_t i = 0; i < MANY; i++)
		many[i] = i % 3 ? l->segment[i % 2]
		                : (lade_segment){l->chunk[0].encoded, l->chunk[0].encoded_size,
		                                 LADE_PLACE_HOST, 0};
	lade_item one = {.src = many, .src_count = MANY};
	OK(lade_decoded_sizes(engine, snappy, &one, 1, results, NULL, err));
	assert_int_equal(results[0].size, 700 * MANY);
	many[MANY - 1].size = 0;
	FAILS(LADE_E_TRUNCATED,
	      "item 0: ", lade_decoded_sizes(engine, snappy, &one, 1, results, NULL, err));
	assert_int_equal(results[0].size, 0);
	free(many);
	list_free(l);
}

/* ---- ranges ------------------------------------------ */

/*
 * docs/verdicts.md, "Ranges": a fault behind the range may be told or not, by who decodes; the
 * bytes are the same.  Here the last literals of a segment are cut off.
 */
static void faults_behind_a_range(void **state)
{
	(void)state;
	enum { SIZE = 3000, OFF = 100, WANT = 500 };
	static const struct {
		lade_place from, to;
		uint32_t flags;
		lade_where where;
		lade_status status;
	} cases[] = {
		/* liblz4 stops where the range does */
		{{LADE_HOST, 0}, {LADE_HOST, 0}, 0, LADE_WHERE_HOST, LADE_OK},
		{{LADE_HOST, 0},
	         {LADE_HOST, 0},
	         LADE_BATCH_STRICT,
	         LADE_WHERE_HOST,
	         LADE_E_TRUNCATED},
		{{LADE_DEVICE, 0}, {LADE_DEVICE, 0}, 0, LADE_WHERE_HOST, LADE_OK},
		/* kernels decode the segment */
		{{LADE_DEVICE, 0}, {LADE_DEVICE, 0}, 0, LADE_WHERE_DEVICE, LADE_E_TRUNCATED},
	};
	rng r = {.s = 99};
	chunk c = chunk_of(engine, lz4, NULL, &r, SIZE);
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		buffer src = buffer_new(cases[k].from, c.encoded_size, 1);
		buffer dst = buffer_new(cases[k].to, WANT, 1);
		buffer_put(&src, c.encoded, c.encoded_size);
		lade_segment segment = {src.data, c.encoded_size - 1, cases[k].from, SIZE};
		lade_item item = {.src = &segment,
		                  .src_count = 1,
		                  .dst = buffer_span(&dst),
		                  .range_off = OFF,
		                  .range_size = WANT};
		lade_batch_options o = {
			.struct_size = sizeof o, .where = cases[k].where, .flags = cases[k].flags};
		lade_result result;
		lade_status status = lade_decode_into(engine, lz4, &item, 1, &result, &o, NULL);
		if (status != cases[k].status)
			print_error("case %zu: %s\n", k, lade_status_name(status));
		assert_int_equal(status, cases[k].status);
		uint8_t image[WANT];
		buffer_get(&dst, image, WANT);
		if (status == LADE_OK)
			assert_memory_equal(image, c.plain + OFF, WANT);
		buffer_free(&src);
		buffer_free(&dst);
	}
	chunk_free(&c);
}

/* ---- threads and processes ------------------------------------------ */

static void *thread(void *arg)
{
	const lade_spec *all[] = {lz4, zstd, snappy, filtered};
	size_t k = (size_t)(uintptr_t)arg;
	for (int i = 0; i < 4; i++) {
		list *l = list_new(all[(k + (size_t)i) % 4], 6, 1500, i % 2 ? near : pinned, near,
		                   1500);
		lade_error err = {.message = ""};
		if (list_run(l, LADE_WHERE_AUTO, NULL, &err) != LADE_OK)
			return "a call failed";
		for (size_t n = 0; n < l->count; n++) {
			uint8_t bytes[1500];
			buffer_get(&l->dst[n], bytes, 1500);
			if (l->result[n].size != 1500 || memcmp(bytes, l->chunk[n].plain, 1500))
				return "wrong bytes";
		}
		list_free(l);
	}
	return NULL;
}

static void threads_share_an_engine(void **state)
{
	(void)state;
	pthread_t threads[4];
	if (emu)
		emu->seed = 4242;
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, thread, (void *)(uintptr_t)i),
		                 0);
	for (int i = 0; i < 4; i++) {
		void *why = NULL;
		assert_int_equal(pthread_join(threads[i], &why), 0);
		if (why)
			print_error("%s\n", (const char *)why);
		assert_null(why);
	}
}

static int child(list *l, list *host)
{
	lade_error err = {.message = ""};
	lade_result *r = l->result;
	if (list_run(l, LADE_WHERE_AUTO, NULL, &err) != LADE_E_NO_DEVICE ||
	    r[0].status != LADE_E_NO_DEVICE || r[2].status != LADE_E_NO_DEVICE)
		return 1;
	if (!strstr(err.message, "fork"))
		return 2;
	if (list_run(host, LADE_WHERE_AUTO, NULL, &err) != LADE_OK)
		return 3;
	if (list_run(host, LADE_WHERE_DEVICE, NULL, &err) != LADE_E_NO_DEVICE)
		return 4;
	/* Mixed: those on the host are done. */
	l->item[1] = host->item[1];
	if (list_run(l, LADE_WHERE_AUTO, NULL, &err) != LADE_E_NO_DEVICE || r[1].status != LADE_OK)
		return 5;
	lade_engine_free(engine);
	return 0;
}

static void a_forked_child_works_on_the_host(void **state)
{
	(void)state;
	list *l = list_new(lz4, 3, 2000, near, near, 2000);
	list *host = list_new(lz4, 3, 2000, LADE_PLACE_HOST, LADE_PLACE_HOST, 2000);
	OK(list_run(l, LADE_WHERE_DEVICE, NULL, err));
	fflush(NULL);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(child(l, host));
	int code;
	assert_int_equal(waitpid(pid, &code, 0), pid);
	assert_true(WIFEXITED(code));
	assert_int_equal(WEXITSTATUS(code), 0);
	OK(list_run(l, LADE_WHERE_DEVICE, NULL, err));
	list_right(l, 2);
	list_free(l);
	list_free(host);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(many_waves, begin, end),
		cmocka_unit_test_setup_teardown(many_waves_in, begin, end),
		cmocka_unit_test_setup_teardown(one_large_item_among_many, begin, end),
		cmocka_unit_test_setup_teardown(threads_are_no_more_than_asked, begin, end),
		cmocka_unit_test_setup_teardown(each_item_a_spec, begin, end),
		cmocka_unit_test_setup_teardown(neighbours_of_two_allocations, begin, end),
		cmocka_unit_test_setup_teardown(a_gap_across_pages, begin, end),
		cmocka_unit_test_setup_teardown(none_and_empty, begin, end),
		cmocka_unit_test_setup_teardown(thousands, begin, end),
		cmocka_unit_test_setup_teardown(one_item_does_not_spoil_the_others, begin, end),
		cmocka_unit_test_setup_teardown(arguments_are_checked, begin, end),
		cmocka_unit_test_setup_teardown(messages_tell, begin, end),
		cmocka_unit_test_setup_teardown(streams_are_followed, begin, end),
		cmocka_unit_test_setup_teardown(streams_of_others, begin, end),
		cmocka_unit_test_setup_teardown(dictionaries_cross, begin, end),
		cmocka_unit_test_setup_teardown(what_is_explained, begin, end),
		cmocka_unit_test_setup_teardown(sizes_of_segments_on_devices, begin, end),
		cmocka_unit_test_setup_teardown(sizes_need_headers_only, begin, end),
		cmocka_unit_test_setup_teardown(faults_behind_a_range, begin, end),
		cmocka_unit_test_setup_teardown(threads_share_an_engine, begin, end),
		cmocka_unit_test_setup_teardown(a_forked_child_works_on_the_host, begin, end),
	};
	int rc;
	if (!kit_begin(argc, argv, &rc))
		return rc;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
