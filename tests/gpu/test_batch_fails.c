/*
 * test_batch_fails.c: batches on devices when a caller's allocator gives nothing, and when the
 * driver's calls fail, each in turn: the call says so, nothing is left behind, and the engine goes
 * on.  The allocators are tested on real devices too.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/batch_kit.h"

#include <pthread.h>

static lade_spec *lz4, *zstd;
static const lade_place near = {LADE_DEVICE, 0}, pinned = {LADE_PINNED, 0};

/* ---- a caller's allocators ------------------------------------------ */

static pthread_mutex_t count_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
	long blocks, bytes, calls;
	long most;      /* bytes at a time */
	long fail_at;   /* by calls; 0: none */
	long fail_from; /* that one and all behind it */
} counted[LADE_KIND_COUNT];

static void *count_alloc(void *ctx, size_t size, size_t align, lade_place place, lade_stream stream)
{
	lade_kind kind = (lade_kind)(uintptr_t)ctx;
	const lade_allocator *a = lade_allocator_default(kind);
	assert_int_equal(place.kind, kind);
	assert_true(size > 0 && align && !(align & (align - 1)));
	if (kind == LADE_HOST)
		assert_null(stream);
	pthread_mutex_lock(&count_mutex);
	long call = ++counted[kind].calls;
	bool fails = call == counted[kind].fail_at ||
	             (counted[kind].fail_from && call >= counted[kind].fail_from);
	pthread_mutex_unlock(&count_mutex);
	void *p = fails ? NULL : a->alloc(a->ctx, size, align, place, stream);
	if (p) {
		pthread_mutex_lock(&count_mutex);
		counted[kind].blocks++;
		counted[kind].bytes += (long)size;
		if (counted[kind].bytes > counted[kind].most)
			counted[kind].most = counted[kind].bytes;
		pthread_mutex_unlock(&count_mutex);
	}
	return p;
}

static void count_free(void *ctx, void *p, size_t size, size_t align, lade_place place,
                       lade_stream stream)
{
	lade_kind kind = (lade_kind)(uintptr_t)ctx;
	const lade_allocator *a = lade_allocator_default(kind);
	assert_int_equal(place.kind, kind);
	assert_non_null(p);
	pthread_mutex_lock(&count_mutex);
	counted[kind].blocks--;
	counted[kind].bytes -= (long)size;
	pthread_mutex_unlock(&count_mutex);
	a->free(a->ctx, p, size, align, place, stream);
}

static const lade_allocator counting[LADE_KIND_COUNT] = {
	{(void *)0, count_alloc, count_free},
	{(void *)1, count_alloc, count_free},
	{(void *)2, count_alloc, count_free},
	{(void *)3, count_alloc, count_free},
};

static lade_engine *engine_new(void)
{
	lade_engine *engine;
	lade_engine_options o = {.struct_size = sizeof o, .threads = 1};
	for (int i = 0; i < LADE_KIND_COUNT; i++)
		o.allocators[i] = &counting[i];
	OK(lade_engine_new(&o, &engine, err));
	return engine;
}

static void all_given_back(void)
{
	for (int i = 0; i < LADE_KIND_COUNT; i++) {
		if (counted[i].blocks || counted[i].bytes)
			print_error("%s: %ld blocks, %ld bytes\n", lade_kind_name((lade_kind)i),
			            counted[i].blocks, counted[i].bytes);
		assert_int_equal(counted[i].blocks, 0);
		assert_int_equal(counted[i].bytes, 0);
	}
}

/* ---- calls of each kind ------------------------------------------ */

enum { DEVICE_CALL, VIA_HOST_CALL, ASYNC_CALL, ENCODE_CALL, CALLS };
static const char *const call_names[] = {"on the device", "via the host", "enqueued", "encoded"};

#define ITEMS 5
#define SIZE ((size_t)240)

static chunk chunks[2][ITEMS];
static buffer src[2][ITEMS], dst[ITEMS], sizes, statuses;

static int begin(void **state)
{
	(void)state;
	lade_engine *engine;
	rng r = {.s = 11};
	/* Not between the taking of a block and its giving back. */
	if (emu) {
		emu->seed = EMULATED_LAZY;
		emu->protect = 0;
	}
	OK(lade_engine_new(NULL, &engine, err));
	lz4 = spec_of(engine, "lz4");
	zstd = spec_of(engine, "zstd(level=1)");
	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < ITEMS; i++) {
			chunks[k][i] = chunk_of(engine, k ? zstd : lz4, NULL, &r, SIZE);
			const chunk *c = &chunks[k][i];
			src[k][i] = buffer_new(i % 3 == 1 ? pinned : near, c->encoded_size, i);
			buffer_put(&src[k][i], c->encoded, c->encoded_size);
		}
	for (size_t i = 0; i < ITEMS; i++)
		dst[i] = buffer_new(i % 4 == 3 ? pinned : near, 2 * SIZE, i);
	sizes = buffer_new(near, 8 * ITEMS, 0);
	statuses = buffer_new(near, 4 * ITEMS, 0);
	lade_engine_free(engine);
	return 0;
}

static int end(void **state)
{
	(void)state;
	for (size_t i = 0; i < ITEMS; i++) {
		for (size_t k = 0; k < 2; k++) {
			chunk_free(&chunks[k][i]);
			buffer_free(&src[k][i]);
		}
		buffer_free(&dst[i]);
	}
	buffer_free(&sizes);
	buffer_free(&statuses);
	lade_spec_unref(lz4);
	lade_spec_unref(zstd);
	if (emu)
		*emu->message = 0;
	kit_clean();
	return 0;
}

static lade_error errors[ITEMS];

static lade_status call(lade_engine *engine, int which, lade_result *results, lade_error *err)
{
	memset(errors, 0, sizeof errors);
	lade_segment segment[ITEMS];
	lade_item item[ITEMS];
	static const size_t shape[2] = {3, SIZE / 3};
	static const ptrdiff_t strides[2] = {110, 1};
	static const lade_layout layout = {.struct_size = sizeof layout, .elem_size = 1,
	                                   .ndim = 2, .shape = shape, .strides = strides};
	for (size_t i = 0; i < ITEMS; i++) {
		const buffer *b = &src[which == VIA_HOST_CALL][i];
		segment[i] = (lade_segment){b->data, b->size, b->place,
		                            which != ENCODE_CALL && i % 2 ? SIZE : 0};
		item[i] = (lade_item){
			.src = &segment[i], .src_count = 1, .dst = buffer_span(&dst[i])};
		if (which == DEVICE_CALL && i == 2)
			item[i].layout = &layout;
	}
	lade_batch_options o = {.struct_size = sizeof o,
	                        .item_errors = errors,
	                        .where = which == VIA_HOST_CALL ? LADE_WHERE_AUTO
	                                                        : LADE_WHERE_DEVICE};
	if (which == VIA_HOST_CALL)
		return lade_decode_into(engine, zstd, item, ITEMS, results, &o, err);
	if (which == DEVICE_CALL)
		return lade_decode_into(engine, lz4, item, ITEMS, results, &o, err);
	if (which == ENCODE_CALL)
		return lade_encode_into(engine, lz4, item, ITEMS, results, &o, err);
	lade_async_options a = {.struct_size = sizeof a,
	                        .sizes = (uint64_t *)(void *)sizes.data,
	                        .statuses = (uint32_t *)(void *)statuses.data};
	lade_status status = lade_decode_async(engine, lz4, item, ITEMS, &a, err);
	return status == LADE_OK
	               ? lade_results_get(&a, ITEMS, results, err)
	               : status;
}

/* Works, and gives the right bytes. */
static void works(lade_engine *engine, int which)
{
	lade_result results[ITEMS];
	OK(call(engine, which, results, err));
	for (size_t i = 0; i < ITEMS; i++) {
		uint8_t bytes[2 * SIZE];
		const chunk *c = &chunks[which == VIA_HOST_CALL][i];
		assert_int_equal(results[i].status, LADE_OK);
		buffer_get(&dst[i], bytes, 2 * SIZE);
		if (which == ENCODE_CALL || (which == DEVICE_CALL && i == 2))
			continue;
		assert_int_equal(results[i].size, SIZE);
		assert_memory_equal(bytes, c->plain, SIZE);
	}
}

/* Each item that failed in a call that waits says why, also when the call as a whole did. */
static void items_tell(int which, const lade_result *results)
{
	size_t failed = 0;
	for (size_t i = 0; which != ASYNC_CALL && i < ITEMS; i++)
		if (results[i].status != LADE_OK) {
			failed++;
			assert_int_equal(errors[i].status, results[i].status);
			assert_true(strlen(errors[i].message) > 10);
		}
	assert_true(failed || which == ASYNC_CALL);
}

/* ---- allocators ------------------------------------------ */

static void allocators_are_asked_and_paid_back(void **state)
{
	(void)state;
	long most[LADE_KIND_COUNT] = {0};
	for (int which = 0; which < CALLS; which++) {
		memset(counted, 0, sizeof counted);
		lade_engine *engine = engine_new();
		works(engine, which);
		works(engine, which);
		for (int i = 0; i < LADE_KIND_COUNT; i++)
			most[i] += counted[i].calls;
		if (which == DEVICE_CALL || which == VIA_HOST_CALL)
			assert_true(counted[LADE_PINNED].calls > 0);
		if (which != VIA_HOST_CALL)
			assert_true(counted[LADE_DEVICE].calls > 0);
		lade_engine_free(engine);
		all_given_back();
	}
	assert_true(most[LADE_PINNED] > 0 && most[LADE_DEVICE] > 0);
	/* The kernels' own need no memory of a kind that nobody asked for. */
	assert_int_equal(most[LADE_MANAGED], 0);
}

static void each_allocation_fails_in_turn(void **state)
{
	(void)state;
	static const lade_kind kinds[] = {LADE_HOST, LADE_PINNED, LADE_DEVICE};
	for (int which = 0; which < CALLS; which++)
		for (int k = 0; k < 3; k++) {
			lade_kind kind = kinds[k];
			long at = 1;
			for (;; at++) {
				memset(counted, 0, sizeof counted);
				counted[kind].fail_at = at;
				lade_engine *engine = engine_new();
				lade_error err = {.message = ""};
				lade_result results[ITEMS];
				lade_status status = call(engine, which, results, &err);
				bool failed = counted[kind].calls >= at;
				if (failed && status != LADE_OK) {
					assert_int_equal(status, LADE_E_NOMEM);
					assert_true(strlen(err.message) > 10);
					items_tell(which, results);
				}
				assert_true(failed || status == LADE_OK);
				counted[kind].fail_at = 0;
				works(engine, which);
				lade_engine_free(engine);
				all_given_back();
				if (!failed)
					break;
			}
			print_message("%s: %ld of %s memory\n", call_names[which], at - 1,
			              lade_kind_name(kind));
		}
}

/* ---- too little memory ------------------------------------------ */

/* Items of LZ4 that a device is to decode, by AUTO. */
#define MANY 8
#define EACH ((size_t)30000)

typedef struct many {
	chunk chunk[MANY];
	buffer src[MANY], dst[MANY];
	lade_segment segment[MANY];
	lade_item item[MANY];
	lade_result result[MANY];
} many;

static many *many_new(lade_engine *engine, size_t count, size_t size, lade_place from,
                      lade_place to, size_t room)
{
	many *m = calloc(1, sizeof *m);
	rng r = {.s = 77};
	for (size_t i = 0; i < count; i++) {
		m->chunk[i] = chunk_of(engine, lz4, NULL, &r, size);
		const chunk *c = &m->chunk[i];
		m->src[i] = buffer_new(from, c->encoded_size, i % 16);
		buffer_put(&m->src[i], c->encoded, c->encoded_size);
		m->dst[i] = buffer_new(to, room, i % 16);
		m->segment[i] = (lade_segment){m->src[i].data, c->encoded_size, from, 0};
		m->item[i] = (lade_item){
			.src = &m->segment[i], .src_count = 1, .dst = buffer_span(&m->dst[i])};
	}
	return m;
}

static void many_free(many *m, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		chunk_free(&m->chunk[i]);
		buffer_free(&m->src[i]);
		buffer_free(&m->dst[i]);
	}
	free(m);
}

static lade_status many_run(lade_engine *engine, many *m, size_t count, lade_where where,
                            lade_error *err)
{
	lade_batch_options o = {.struct_size = sizeof o, .where = where};
	return lade_decode_into(engine, lz4, m->item, count, m->result, &o, err);
}

static void many_right(const many *m, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint8_t *bytes = malloc(m->dst[i].size);
		assert_int_equal(m->result[i].status, LADE_OK);
		assert_int_equal(m->result[i].size, m->chunk[i].plain_size);
		buffer_get(&m->dst[i], bytes, m->dst[i].size);
		assert_memory_equal(bytes, m->chunk[i].plain, m->chunk[i].plain_size);
		free(bytes);
	}
}

/* Whether AUTO takes the device, where that has memory. */
static bool taken(lade_engine *engine, const many *m)
{
	lade_candidate all[16];
	size_t count;
	bool device = false;
	lade_call call = {.struct_size = sizeof call, .direction = LADE_DECODE, .spec = lz4,
	                  .items = m->item, .count = MANY};
	OK(lade_explain(engine, &call, all, 16, &count, err));
	for (size_t i = 0; i < count; i++)
		device |= all[i].chosen && all[i].place == LADE_DEVICE;
	return device;
}

static void without_device_memory_the_host_decodes(void **state)
{
	(void)state;
	static const lade_place from[] = {{LADE_DEVICE, 0}, {LADE_PINNED, 0}, {LADE_PINNED, 0}};
	static const lade_place to[] = {{LADE_DEVICE, 0}, {LADE_DEVICE, 0}, {LADE_PINNED, 0}};
	for (int k = 0; k < 3; k++) {
		memset(counted, 0, sizeof counted);
		lade_engine *engine = engine_new();
		lade_error why = {.message = ""};
		many *m = many_new(engine, MANY, EACH, from[k], to[k], EACH);
		counted[LADE_DEVICE].fail_from = 1;
		/* On the host's own, two crossings of the link are seldom worth it. */
		assert_true(taken(engine, m) || k == 2);
		OK(many_run(engine, m, MANY, LADE_WHERE_AUTO, err));
		many_right(m, MANY);
		assert_true(counted[LADE_DEVICE].calls > 0 || k == 2);
		/* Where only the device is asked, that it has no memory is the answer. */
		assert_int_equal(many_run(engine, m, MANY, LADE_WHERE_DEVICE, &why), LADE_E_NOMEM);
		assert_non_null(strstr(why.message, "bytes of device memory"));
		/* Nor is there pinned memory: then nothing is left to do. */
		lade_engine_trim(engine);
		counted[LADE_PINNED].fail_from = 1;
		counted[LADE_PINNED].calls = 0;
		lade_status status = many_run(engine, m, MANY, LADE_WHERE_AUTO, &why);
		assert_int_equal(status, k == 2 ? LADE_OK : LADE_E_NOMEM);
		counted[LADE_DEVICE].fail_from = counted[LADE_PINNED].fail_from = 0;
		OK(many_run(engine, m, MANY, LADE_WHERE_AUTO, err));
		many_right(m, MANY);
		many_free(m, MANY);
		lade_engine_free(engine);
		all_given_back();
	}
}

/* ---- the host in a device's place ------------------------------------------ */

#define LETTERS ((size_t)8)
static const uint8_t letters[LETTERS] = {'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a'};
static long host_decodes;

/* A decoder of the host that devices are much cheaper than; of 'letters' alone. */
static lade_status decode_letters(const lade_run *run, lade_cspan from, lade_span to, size_t *size,
                                  lade_error *err)
{
	(void)run, (void)from;
	__atomic_fetch_add(&host_decodes, 1, __ATOMIC_RELAXED);
	if (to.size < LETTERS)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET, "no room for letters");
	memcpy(to.data, letters, LETTERS);
	*size = LETTERS;
	return LADE_OK;
}

static double dear(void *ctx, const lade_workload *workload)
{
	(void)ctx, (void)workload;
	return 1e12;
}

static lade_engine *engine_with_letters(void)
{
	lade_engine *engine = engine_new();
	lade_codec_ops ops = {.struct_size = sizeof ops, .run = decode_letters};
	lade_implementation own = {.struct_size = sizeof own,
	                           .name = "lz4/letters",
	                           .algorithm = "lz4",
	                           .direction = LADE_DECODE,
	                           .priority = 10,
	                           .cost = dear,
	                           .codec = &ops};
	OK(lade_engine_add_implementation(engine, &own, err));
	host_decodes = 0;
	return engine;
}

/* Fewer waves are in flight where there is no memory for all. */
static void with_little_device_memory_it_goes_on(void **state)
{
	(void)state;
	enum { COUNT = 200 }; /* so many that they are several waves on any device */
	size_t room = (size_t)64 << 10;
	memset(counted, 0, sizeof counted);
	lade_engine *engine = engine_new();
	uint8_t encoded[64];
	size_t size;
	OK(lade_encode(engine, lz4, lade_host_cspan(letters, LETTERS),
	               lade_host_span(encoded, sizeof encoded), &size, err));
	buffer from = buffer_new(pinned, size, 0), to = buffer_new(pinned, COUNT * room, 0);
	buffer_put(&from, encoded, size);
	lade_segment segment = {.data = from.data, .size = size, .place = pinned};
	lade_item *item = calloc(COUNT, sizeof *item);
	lade_result *result = calloc(COUNT, sizeof *result);
	for (size_t i = 0; i < COUNT; i++)
		item[i] = (lade_item){
			.src = &segment, .src_count = 1, .dst = {to.data + room * i, room, pinned}};
	lade_batch_options o = {.struct_size = sizeof o, .where = LADE_WHERE_DEVICE};
	int calls = emu ? emu->launches : 0;
	counted[LADE_DEVICE].fail_at = 1;
	counted[LADE_DEVICE].calls = 0;
	OK(lade_decode_into(engine, lz4, item, COUNT, result, &o, err));
	assert_int_equal(counted[LADE_DEVICE].calls, 2);
	assert_true(!emu || emu->launches > calls);
	uint8_t got[LETTERS];
	for (size_t i = 0; i < COUNT; i++) {
		assert_int_equal(result[i].status, LADE_OK);
		assert_int_equal(result[i].size, LETTERS);
		memcpy(got, to.data + room * i, LETTERS);
		assert_memory_equal(got, letters, LETTERS);
	}
	free(item);
	free(result);
	buffer_free(&from);
	buffer_free(&to);
	lade_engine_free(engine);
	all_given_back();
}

/* The last item wants a larger block, for which there is no memory: those before it are done by
 * then, and stay so; the host does that one alone. */
static void what_was_told_is_not_done_again(void **state)
{
	(void)state;
	enum { COUNT = 256 + 512 + 1024 + 1 }; /* three waves, and one item more */
	size_t large = (size_t)4 << 20;
	memset(counted, 0, sizeof counted);
	lade_engine *engine = engine_with_letters();
	lade_spec *spec = spec_of(engine, "shuffle(4)|lz4");
	uint8_t encoded[64];
	size_t size;
	OK(lade_encode(engine, spec, lade_host_cspan(letters, LETTERS),
	               lade_host_span(encoded, sizeof encoded), &size, err));
	buffer from = buffer_new(near, size, 0);
	buffer to = buffer_new(near, LETTERS * (COUNT - 1) + large, 0);
	buffer_put(&from, encoded, size);
	lade_segment segment = {.data = from.data, .size = size, .place = near};
	lade_item *item = calloc(COUNT, sizeof *item);
	lade_result *result = calloc(COUNT, sizeof *result);
	for (size_t i = 0; i < COUNT; i++)
		item[i] = (lade_item){
			.src = &segment,
			.src_count = 1,
			.dst = {to.data + LETTERS * i, i + 1 < COUNT ? LETTERS : large, near}};
	/* Whatever comes behind the first block. */
	counted[LADE_DEVICE].fail_from = 2;
	counted[LADE_DEVICE].calls = 0;
	OK(lade_decode_into(engine, spec, item, COUNT, result, NULL, err));
	assert_true(counted[LADE_DEVICE].calls > 1);
	assert_int_equal(host_decodes, 1);
	uint8_t *got = malloc(to.size);
	buffer_get(&to, got, to.size);
	for (size_t i = 0; i < COUNT; i++) {
		assert_int_equal(result[i].status, LADE_OK);
		assert_int_equal(result[i].size, LETTERS);
		assert_memory_equal(got + LETTERS * i, letters, LETTERS);
	}
	/* Where only the device is asked, those are done as well. */
	lade_batch_options o = {.struct_size = sizeof o, .where = LADE_WHERE_DEVICE};
	counted[LADE_DEVICE].calls = 0;
	FAILS(LADE_E_NOMEM,
	      "item 1792: ", lade_decode_into(engine, spec, item, COUNT, result, &o, err));
	for (size_t i = 0; i < COUNT; i++)
		assert_int_equal(result[i].status, i + 1 < COUNT ? LADE_OK : LADE_E_NOMEM);
	counted[LADE_DEVICE].fail_from = 0;
	free(got);
	free(item);
	free(result);
	buffer_free(&from);
	buffer_free(&to);
	lade_spec_unref(spec);
	lade_engine_free(engine);
	all_given_back();
}

/* What lies in pinned memory on both sides is the host's where its device does not open. */
static void a_device_that_does_not_open(void **state)
{
	(void)state;
	if (!emu)
		skip();
	memset(counted, 0, sizeof counted);
	lade_engine *engine = engine_with_letters();
	uint8_t encoded[64];
	lade_result result;
	size_t size;
	OK(lade_encode(engine, lz4, lade_host_cspan(letters, LETTERS),
	               lade_host_span(encoded, sizeof encoded), &size, err));
	buffer from = buffer_new(pinned, size, 0), to = buffer_new(pinned, LETTERS, 0);
	buffer_put(&from, encoded, size);
	lade_segment segment = {.data = from.data, .size = size, .place = pinned};
	lade_item item = {.src = &segment, .src_count = 1, .dst = buffer_span(&to)};
	for (int turn = 0; turn < 2; turn++) {
		lade_batch_options o = {.struct_size = sizeof o,
		                        .where = turn ? LADE_WHERE_DEVICE : LADE_WHERE_AUTO};
		lade_error why = {.message = ""};
		host_decodes = 0;
		emu->failed = NULL;
		emu->fail_code = 999;
		emu->fail_at = emu->calls + 1;
		lade_status status = lade_decode_into(engine, lz4, &item, 1, &result, &o, &why);
		emu->fail_at = 0;
		assert_non_null(emu->failed);
		assert_non_null(strstr(emu->failed, "cuCtxPushCurrent"));
		assert_int_equal(status, turn ? LADE_E_DEVICE : LADE_OK);
		assert_int_equal(result.status, status);
		assert_int_equal(host_decodes, turn ? 0 : 1);
	}
	/* And the device's, where it does. */
	host_decodes = 0;
	OK(lade_decode_into(engine, lz4, &item, 1, &result, NULL, err));
	assert_int_equal(host_decodes, 0);
	buffer_free(&from);
	buffer_free(&to);
	lade_engine_free(engine);
	all_given_back();
}

/* ---- what is kept ------------------------------------------ */

static void what_an_engine_keeps_is_bounded(void **state)
{
	(void)state;
	memset(counted, 0, sizeof counted);
	lade_engine *engine = engine_new();
	many *m = many_new(engine, 2, 1000, LADE_PLACE_HOST, LADE_PLACE_HOST, 1000);
	/* The room of one item is large; what it decodes to is not. */
	size_t large = (size_t)300 << 20;
	uint8_t *room = malloc(large);
	lade_span own = m->item[1].dst;
	m->item[1].dst = lade_host_span(room, large);
	OK(many_run(engine, m, 2, LADE_WHERE_DEVICE, err));
	m->item[1].dst = own;
	assert_memory_equal(room, m->chunk[1].plain, 1000);
	free(room);
	assert_true(counted[LADE_PINNED].most > (long)large);
	assert_in_range(counted[LADE_PINNED].bytes, 0, 256 << 20);
	/* The next call finds what was kept. */
	long calls = counted[LADE_PINNED].calls;
	OK(many_run(engine, m, 1, LADE_WHERE_DEVICE, err));
	OK(many_run(engine, m, 1, LADE_WHERE_DEVICE, err));
	assert_true(counted[LADE_PINNED].calls <= calls + 1);
	assert_true(counted[LADE_PINNED].bytes > 0 && counted[LADE_HOST].bytes > 0);
	lade_engine_trim(engine);
	assert_int_equal(counted[LADE_PINNED].blocks, 0);
	if (emu)
		assert_int_equal(emu->events, 0);
	OK(many_run(engine, m, 2, LADE_WHERE_DEVICE, err));
	many_right(m, 2);
	works(engine, ASYNC_CALL);
	lade_engine_trim(engine);
	lade_engine_trim(NULL);
	assert_int_equal(counted[LADE_PINNED].blocks + counted[LADE_DEVICE].blocks, 0);
	many_free(m, 2);
	lade_engine_free(engine);
	all_given_back();
}

/* ---- the driver ------------------------------------------ */

static void check_failure(lade_status status, const lade_error *err)
{
	char name[64];
	snprintf(name, sizeof name, "%s", emu->failed);
	if (strstr(name, "_v2"))
		*strstr(name, "_v2") = 0;
	assert_true(status == LADE_E_DEVICE || status == LADE_E_NOMEM);
	if (!strstr(err->message, name) && !strstr(err->message, "bytes of"))
		print_error("%s: %s\n", name, err->message);
	assert_true(strstr(err->message, name) || strstr(err->message, "bytes of"));
}

static void each_driver_call_fails(int which, int code, bool warm)
{
	int at = 1, survived = 0;
	for (;; at++) {
		memset(counted, 0, sizeof counted);
		lade_engine *engine = engine_new();
		lade_error err = {.message = ""};
		lade_result results[ITEMS];
		if (warm)
			works(engine, which);
		emu->failed = NULL;
		emu->fail_code = code;
		emu->fail_at = emu->calls + at;
		lade_status status = call(engine, which, results, &err);
		emu->fail_at = 0;
		bool failed = emu->failed != NULL;
		assert_string_equal(emu->message, "");
		assert_int_equal(emu->pushed, 0);
		if (status != LADE_OK) {
			assert_true(failed);
			check_failure(status, &err);
			items_tell(which, results);
		}
		survived += failed && status == LADE_OK;
		works(engine, which);
		lade_engine_free(engine);
		all_given_back();
		if (!failed)
			break;
	}
	print_message("%s, code %d, %s: %d calls failed, %d of them did not matter\n",
	              call_names[which], code, warm ? "warm" : "cold", at - 1, survived);
	assert_true(at > 10);
}

static void each_call_of_the_driver_fails_in_turn(void **state)
{
	(void)state;
	if (!emu)
		skip();
	for (int which = 0; which < CALLS; which++) {
		each_driver_call_fails(which, 999, false);
		each_driver_call_fails(which, 2, true);
	}
}

/* Every item is tried: one on the host is done whatever becomes of the device. */
static void a_device_does_not_spoil_the_host(void **state)
{
	(void)state;
	if (!emu)
		skip();
	const chunk *c = &chunks[1][0];
	uint8_t back[SIZE];
	lade_segment s[2] = {{c->encoded, c->encoded_size, LADE_PLACE_HOST, 0},
	                     {src[1][0].data, src[1][0].size, src[1][0].place, 0}};
	lade_item items[2] = {{.src = &s[0], .src_count = 1, .dst = lade_host_span(back, SIZE)},
	                      {.src = &s[1], .src_count = 1, .dst = buffer_span(&dst[0])}};
	for (int at = 1;; at++) {
		lade_engine *engine = engine_new();
		lade_result results[2];
		lade_error why = {.message = ""};
		memset(back, 0, SIZE);
		emu->failed = NULL;
		emu->fail_code = 999;
		emu->fail_at = emu->calls + at;
		lade_status status = lade_decode_into(engine, zstd, items, 2, results, NULL, &why);
		emu->fail_at = 0;
		assert_int_equal(results[0].status, LADE_OK);
		assert_memory_equal(back, c->plain, SIZE);
		assert_int_equal(results[1].status, status);
		if (status != LADE_OK)
			assert_non_null(strstr(why.message, "item 1: "));
		lade_engine_free(engine);
		if (!emu->failed)
			break;
	}
}

/* A failure while kernels run comes later, by whichever call meets it. */
static void a_device_that_is_lost(void **state)
{
	(void)state;
	if (!emu || !emu->checked)
		skip();
	for (int which = 0; which < CALLS; which++) {
		memset(counted, 0, sizeof counted);
		lade_engine *engine = engine_new();
		lade_error why = {.message = ""};
		lade_result results[ITEMS];
		works(engine, which);
		/* An entry of the arrays that points nowhere. */
		uint64_t word[4] = {0x10, 100, lade__address_of(dst[0].data), 100};
		buffer b = buffer_new(near, sizeof word, 0);
		buffer_put(&b, word, sizeof word);
		const uint64_t *w = (const uint64_t *)(void *)b.data;
		lade_arrays arrays = {sizeof(lade_arrays),
		                      (const void *const *)(const void *)w,
		                      w + 1,
		                      (void *const *)(const void *)(w + 2),
		                      w + 3,
		                      1,
		                      0,
		                      0,
		                      NULL,
		                      NULL};
		lade_async_options a = {.struct_size = sizeof a};
		OK(lade_decode_arrays_async(engine, lz4, &arrays, &a, err));
		lade_status status = call(engine, which, results, &why);
		assert_int_equal(status, LADE_E_DEVICE);
		assert_non_null(strstr(why.message, "ILLEGAL_ADDRESS"));
		emu->recover();
		*emu->message = 0;
		works(engine, which);
		buffer_free(&b);
		lade_engine_free(engine);
		all_given_back();
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(allocators_are_asked_and_paid_back, begin, end),
		cmocka_unit_test_setup_teardown(each_allocation_fails_in_turn, begin, end),
		cmocka_unit_test_setup_teardown(without_device_memory_the_host_decodes, begin, end),
		cmocka_unit_test_setup_teardown(with_little_device_memory_it_goes_on, begin, end),
		cmocka_unit_test_setup_teardown(what_was_told_is_not_done_again, begin, end),
		cmocka_unit_test_setup_teardown(a_device_that_does_not_open, begin, end),
		cmocka_unit_test_setup_teardown(what_an_engine_keeps_is_bounded, begin, end),
		cmocka_unit_test_setup_teardown(each_call_of_the_driver_fails_in_turn, begin, end),
		cmocka_unit_test_setup_teardown(a_device_does_not_spoil_the_host, begin, end),
		cmocka_unit_test_setup_teardown(a_device_that_is_lost, begin, end),
	};
	int rc;
	if (!kit_begin(argc, argv, &rc))
		return rc;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
