/*
 * test_oom_zarr_read.c: every allocation of Zarr reads fails in turn.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "oom.h"
#include "zarr_kit.h"

enum { KINDS = 5 };

typedef struct scenario {
	const zarr_kit *k;
	int kind;
	uint8_t *to;
	size_t size;
} scenario;

/* All of it, lists, points, a store far away, and a result that the call allocates; with an engine
 * of its own, which keeps nothing for the next. */
static lade_status use(void *ctx, lade_error *err)
{
	static const int64_t list[3] = {0, 0, 0};
	const scenario *s = ctx;
	const zarr_kit *k = s->k;
	const lade_engine_options engine_options = {.struct_size = sizeof engine_options,
	                                            .threads = 2};
	lade_zarr_index axes[4];
	lade_zarr_selection selection = {.struct_size = sizeof selection,
	                                 .axes = axes,
	                                 .axis_count = k->array->ndim,
	                                 .index_size = sizeof axes[0]};
	lade_zarr_target target = {.struct_size = sizeof target,
	                           .span = lade_host_span(s->to, s->size)};
	lade_zarr_read_options options = {.struct_size = sizeof options};
	lade_array *array = NULL;
	lade_status status = lade_engine_new(&engine_options, &options.engine, err);
	if (status != LADE_OK)
		return status;
	for (size_t a = 0; a < 4; a++)
		axes[a] = (lade_zarr_index){.kind = LADE_ZARR_LIST, .list = list, .count = 3};
	selection.mode = s->kind == 2 ? LADE_ZARR_POINTS : LADE_ZARR_ORTHOGONAL;
	if (s->kind == 4)
		status = lade_zarr_read_new(k->node, NULL, LADE_PLACE_HOST, &options, &array, err);
	else
		status = lade_zarr_read(s->kind == 3 ? k->far_node : k->node,
		                        s->kind % 3 ? &selection : NULL, &target, &options, NULL,
		                        err);
	lade_array_unref(array);
	lade_engine_free(options.engine);
	return status;
}

static void reads(void **state)
{
	(void)state;
	unsigned arrays = 0;
	for (uint64_t seed = 1; arrays < 6; seed++) {
		rng random = {seed * 15485863};
		zarr_kit k;
		if (seed == 2)
			kit_make_plain(&k, &random);
		else
			kit_make(&k, &random, 2);
		arrays += k.count > 0;
		scenario s = {.k = &k, .size = (k.count + 81) * k.elem};
		s.to = malloc(s.size);
		for (s.kind = 0; s.kind < KINDS && k.count; s.kind++)
			assert_true(oom_run("zarr read", use, &s) > 5);
		free(s.to);
		kit_free(&k);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(reads)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
