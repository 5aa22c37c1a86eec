/*
 * test_batch_cancel.c: calls on devices that are cancelled between waves, and calls with allocators
 * of their own for device and pinned memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/batch_kit.h"

enum { COUNT = 240, SIZE = 65536 };

typedef struct counter {
	lade_kind kind;
	size_t allocs, bytes; /* bytes that are out */
} counter;

static void *counting_alloc(void *ctx, size_t size, size_t align, lade_place place,
                            lade_stream stream)
{
	counter *c = ctx;
	const lade_allocator *a = lade_allocator_default(c->kind);
	void *p = a->alloc(a->ctx, size, align, place, stream);
	c->allocs++;
	c->bytes += p ? size : 0;
	return p;
}

static void counting_free(void *ctx, void *ptr, size_t size, size_t align, lade_place place,
                          lade_stream stream)
{
	counter *c = ctx;
	const lade_allocator *a = lade_allocator_default(c->kind);
	c->bytes -= size;
	a->free(a->ctx, ptr, size, align, place, stream);
}

static counter of_engine = {.kind = LADE_DEVICE}, of_engine_pinned = {.kind = LADE_PINNED};
static lade_engine *engine;
static lade_spec *spec;
static chunk one;
static lade_segment segment;
static lade_item item[COUNT];
static lade_result results[COUNT];
static uint8_t *out;

static int begin(void **state)
{
	(void)state;
	static lade_allocator device = {&of_engine, counting_alloc, counting_free};
	static lade_allocator pinned = {&of_engine_pinned, counting_alloc, counting_free};
	lade_engine_options o = {.struct_size = sizeof o, .threads = 2};
	rng r = {.s = 5};
	o.allocators[LADE_DEVICE] = &device;
	o.allocators[LADE_PINNED] = &pinned;
	OK(lade_engine_new(&o, &engine, err));
	spec = spec_of(engine, "lz4");
	one = chunk_of(engine, spec, NULL, &r, SIZE);
	segment = (lade_segment){.data = one.encoded, .size = one.encoded_size};
	out = malloc((size_t)COUNT * SIZE);
	for (size_t i = 0; i < COUNT; i++)
		item[i] = (lade_item){.src = &segment, .src_count = 1,
		                      .dst = lade_host_span(out + i * SIZE, SIZE)};
	return 0;
}

static int end(void **state)
{
	(void)state;
	free(out);
	chunk_free(&one);
	lade_spec_unref(spec);
	lade_engine_free(engine);
	kit_clean();
	return 0;
}

static lade_status run(const lade_batch_options *options, size_t *done)
{
	lade_error e = {.message = ""};
	memset(out, 0, (size_t)COUNT * SIZE);
	lade_status status =
		lade_decode_into(engine, spec, item, COUNT, results, options, &e);
	*done = 0;
	for (size_t i = 0; i < COUNT; i++) {
		bool ok = results[i].status == LADE_OK;
		assert_int_equal(results[i].status, ok ? LADE_OK : LADE_E_CANCELLED);
		if (ok)
			assert_memory_equal(out + i * SIZE, one.plain, SIZE);
		*done += ok;
	}
	return status;
}

static bool yes(void *ctx)
{
	++*(int *)ctx;
	return true;
}

static void between_waves(void **state)
{
	(void)state;
	lade_batch_options o = {.struct_size = sizeof o, .where = LADE_WHERE_DEVICE};
	int asked = 0;
	size_t done;
	OK(lade_cancel_new(yes, &asked, &o.cancel, err));
	/* A real device may be done before it is asked. */
	lade_status status = run(&o, &done);
	assert_int_equal(status, asked ? LADE_E_CANCELLED : LADE_OK);
	assert_true(asked <= 1 && (!emu || asked == 1));
	assert_true(asked ? done < COUNT : done == COUNT);
	assert_int_equal(of_engine.bytes, 0);
	/* Nothing of it is left over. */
	lade_cancel_clear(o.cancel);
	lade_cancel_set(o.cancel);
	assert_int_equal(run(&o, &done), LADE_E_CANCELLED);
	assert_int_equal(done, 0);
	lade_cancel_free(o.cancel);
	o.cancel = NULL;
	assert_int_equal(run(&o, &done), LADE_OK);
	assert_int_equal(done, COUNT);
}

static void own_allocators(void **state)
{
	(void)state;
	counter device = {.kind = LADE_DEVICE}, pinned = {.kind = LADE_PINNED};
	lade_allocator of_device = {&device, counting_alloc, counting_free};
	lade_allocator of_pinned = {&pinned, counting_alloc, counting_free};
	lade_batch_options o = {.struct_size = sizeof o, .where = LADE_WHERE_DEVICE};
	size_t before = of_engine.allocs, before_pinned = of_engine_pinned.allocs, done;
	int asked = 0;
	o.allocators[LADE_DEVICE] = &of_device;
	o.allocators[LADE_PINNED] = &of_pinned;
	assert_int_equal(run(&o, &done), LADE_OK);
	assert_int_equal(done, COUNT);
	assert_true(device.allocs > 0 && pinned.allocs > 0);
	assert_true(device.bytes == 0 && pinned.bytes == 0);
	OK(lade_cancel_new(yes, &asked, &o.cancel, err));
	run(&o, &done);
	assert_true(device.bytes == 0 && pinned.bytes == 0);
	assert_int_equal(of_engine.allocs, before);
	assert_int_equal(of_engine_pinned.allocs, before_pinned);
	lade_cancel_free(o.cancel);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(between_waves, begin, end),
		cmocka_unit_test_setup_teardown(own_allocators, begin, end),
	};
	int rc;
	if (!kit_begin(argc, argv, &rc))
		return rc;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
