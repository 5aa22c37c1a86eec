/*
 * test_oom_zarr_fed.c: every allocation, and every thread that is started, of a Zarr read to a
 * device fails in turn, on the emulated device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/batch_kit.h"
#include "oom/oom.h"

#include <lade/zarr_read.h>
#include <lade/zarr_write.h>

enum { CHUNK = 48, COUNT = 24 };

typedef struct scenario {
	lade_store *store;
	lade_span there;
} scenario;

static lade_zarr *create(lade_store *store, bool shards, const uint8_t *plain)
{
	uint64_t shape[] = {COUNT, CHUNK}, chunks[] = {shards ? 12 : 1, CHUNK};
	uint64_t inner[] = {1, CHUNK};
	lade_zarr_description d = {.struct_size = sizeof d, .kind = LADE_ZARR_ARRAY,
	                           .format = shards ? 3 : 2, .ndim = 2, .shape = shape,
	                           .chunk_shape = chunks, .type = "|u1",
	                           .codecs = shards ? "[{\"name\":\"bytes\"}]" : "[]",
	                           .inner_shape = shards ? inner : NULL};
	lade_zarr_create_options o = {.struct_size = sizeof o, .no_parents = true};
	lade_zarr_source source = {.struct_size = sizeof source,
	                           .span = lade_host_cspan(plain, COUNT * CHUNK)};
	lade_zarr *node;
	OK(lade_zarr_create(store, "a", &d, &o, &node, err));
	OK(lade_zarr_write(node, NULL, &source, NULL, NULL, err));
	return node;
}

/* With an engine of its own, which keeps nothing for the next. */
static lade_status use(void *ctx, lade_error *err)
{
	const scenario *s = ctx;
	const lade_engine_options engine = {.struct_size = sizeof engine, .threads = 2};
	lade_zarr_read_options options = {.struct_size = sizeof options};
	lade_zarr_target target = {.struct_size = sizeof target, .span = s->there};
	lade_zarr *node = NULL;
	lade_status status = lade_engine_new(&engine, &options.engine, err);
	if (status != LADE_OK)
		return status;
	status = lade_zarr_open(s->store, "a", NULL, &node, err);
	if (status == LADE_OK)
		status = lade_zarr_read(node, NULL, &target, &options, NULL, err);
	lade_zarr_unref(node);
	lade_engine_free(options.engine);
	return status;
}

static void reads(void **state)
{
	(void)state;
	uint8_t plain[COUNT * CHUNK], have[COUNT * CHUNK];
	rng r = {.s = 3};
	fill(&r, plain, sizeof plain);
	emu->seed = EMULATED_EAGER;
	emu->protect = 0;
	for (int shards = 0; shards < 2; shards++) {
		scenario s = {.there = {NULL, 0, LADE_PLACE_HOST}};
		buffer to = buffer_new((lade_place){LADE_DEVICE, 0}, sizeof plain, 0);
		OK(lade_store_memory_new(LADE_PLACE_HOST, NULL, &s.store, err));
		lade_zarr *node = create(s.store, shards, plain);
		/* A chunk that is missing. */
		if (!shards)
			OK(lade_store_write(s.store,
			                    &(lade_write){.key = "a/7.0",
			                                  .kind = LADE_DELETE_IF_VERSION},
			                    1, NULL, NULL, err));
		if (!shards)
			memset(plain + 7 * CHUNK, 0, CHUNK);
		s.there = buffer_span(&to);
		OK(use(&s, err)); /* loads kernels, which stay */
		assert_true(oom_run("zarr read to a device", use, &s) > 20);
		buffer_get(&to, have, sizeof have);
		assert_memory_equal(have, plain, sizeof plain);
		lade_zarr_unref(node);
		lade_store_unref(s.store);
		buffer_free(&to);
	}
	kit_clean();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(reads)};
	int rc;
	if (!kit_begin(argc, argv, &rc))
		return rc;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
