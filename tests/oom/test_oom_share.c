/*
 * test_oom_share.c: every allocation of a client, and of a broker's index, fails in turn.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "share_kit.h"

#include "oom.h"
#include "share/area.h"
#include "share/store.h"

#include <fcntl.h>

#define DO(call) \
	do { \
		status = (call); \
		if (status != LADE_OK) \
			goto out; \
	} while (0)

#define LARGE 9000 /* values: above 64 KiB */

static int64_t values[LARGE];

static lade_status see(void *ctx, const lade_share_info *info)
{
	*(size_t *)ctx += info->rows;
	return LADE_OK;
}

static lade_status look(lade_share_version *v, lade_error *err)
{
	struct ArrowSchema schema = {.release = NULL};
	struct ArrowArray array = {.release = NULL};
	lade_status status;

	DO(lade_share_version_schema(v, &schema, err));
	DO(lade_share_version_array(v, 0, &array, err));
	assert_int_equal(((const int64_t *)array.buffers[1])[5], 5);
out:
	if (schema.release)
		schema.release(&schema);
	if (array.release)
		array.release(&array);
	return status;
}

/* A client's life: memory that is shared and copied, small and large versions, names, events. */
static lade_status client(void *ctx, lade_error *err)
{
	lade_share_options options = {.struct_size = sizeof options, .path = kit_path};
	lade_share *share = NULL;
	lade_array *array = NULL;
	lade_share_version *v = NULL;
	lade_share_events *events = NULL;
	kit_column c;
	size_t rows = 0;
	uint64_t version;
	lade_share_listing all = {.struct_size = sizeof all, .visit = see, .ctx = &rows};
	lade_status status;
	(void)ctx;

	DO(lade_share_connect(&options, &share, err));
	DO(lade_share_alloc(share, sizeof values, &array, err));
	memcpy(lade_array_span(array).data, values, sizeof values);
	kit_column_init(&c, lade_array_span(array).data, 0, LARGE);
	DO(lade_share_publish(share, "shared", &c.table, NULL, err));
	kit_column_init(&c, values, 0, LARGE);
	DO(lade_share_publish(share, "copied", &c.table, NULL, err));
	kit_column_init(&c, values, 0, 10);
	DO(lade_share_publish(share, "small", &c.table, NULL, err));
	for (int i = 0; i < 3; i++) {
		static const char *const names[] = {"shared", "copied", "small"};
		DO(lade_share_open(share, names[i], NULL, &v, err));
		DO(look(v, err));
		lade_share_version_unref(v);
		v = NULL;
	}
	DO(lade_share_list(share, &all, err));
	assert_int_equal(rows, 2 * LARGE + 10);
	DO(lade_share_wait(share, "small", 0, 1000, &version, err));
	DO(lade_share_subscribe(share, "", &events, err));
out:
	lade_share_events_close(events);
	lade_share_version_unref(v);
	lade_array_unref(array);
	lade_share_close(share);
	return status;
}

static void test_a_client(void **state)
{
	pid_t broker = kit_serve();
	(void)state;

	for (int64_t i = 0; i < LARGE; i++)
		values[i] = i;
	assert_true(oom_run("client", client, NULL) > 15);
	kit_serve_end(broker);
}

/* Lists, structs, views, dictionaries, unions: what is copied needs tables. */
static lade_status plans(void *ctx, lade_error *err)
{
	static const int32_t offsets[] = {0, 2, 4};
	static const char text[] = "abcdefghijklmnopqrstuvwxyz", ids[] = {0, 0};
	static uint8_t view[32] = {20, 0, 0, 0, 'a', 'b', 'c', 'd'};
	static const int64_t sizes[] = {26};
	const void *flat[] = {NULL, values}, *list[] = {NULL, offsets}, *top[] = {NULL};
	const void *views[] = {NULL, view, text, sizes}, *dense[] = {ids, offsets};
	struct ArrowArray number = {
		.length = 8, .n_buffers = 2, .buffers = flat, .release = kit_no_release};
	struct ArrowArray *one[] = {&number};
	struct ArrowArray lists = {.length = 2,
	                           .n_buffers = 2,
	                           .buffers = list,
	                           .n_children = 1,
	                           .children = one,
	                           .release = kit_no_release};
	struct ArrowArray texts = {
		.length = 2, .n_buffers = 4, .buffers = views, .release = kit_no_release};
	struct ArrowArray unions = {.length = 2,
	                            .n_buffers = 2,
	                            .buffers = dense,
	                            .n_children = 1,
	                            .children = one,
	                            .release = kit_no_release};
	struct ArrowArray *all[] = {&lists, &texts, &unions};
	struct ArrowArray table = {.length = 2,
	                           .n_buffers = 1,
	                           .buffers = top,
	                           .n_children = 3,
	                           .children = all,
	                           .release = kit_no_release};
	struct ArrowSchema n = {.format = "l", .release = kit_no_release_schema};
	struct ArrowSchema *of[] = {&n};
	struct ArrowSchema l = {
		.format = "+l", .n_children = 1, .children = of, .release = kit_no_release_schema};
	struct ArrowSchema t = {.format = "vu", .release = kit_no_release_schema};
	struct ArrowSchema u = {.format = "+ud:0",
	                        .n_children = 1,
	                        .children = of,
	                        .release = kit_no_release_schema};
	struct ArrowSchema *parts[] = {&l, &t, &u};
	struct ArrowSchema s = {.format = "+s",
	                        .n_children = 3,
	                        .children = parts,
	                        .release = kit_no_release_schema};
	const struct ArrowArray *batches[] = {&table};
	lade_share_table what = {
		.struct_size = sizeof what, .schema = &s, .batches = batches, .batch_count = 1};
	lade_share *share = NULL;
	lade_share_options options = {.struct_size = sizeof options, .path = kit_path};
	lade_share_open_options full = {.struct_size = sizeof full, .check = LADE_SHARE_CHECK_FULL};
	lade_share_version *v = NULL;
	struct ArrowArray array = {.release = NULL};
	lade_status status;
	(void)ctx;

	memcpy(view + 16, view, 16);
	DO(lade_share_connect(&options, &share, err));
	DO(lade_share_publish(share, "nested", &what, NULL, err));
	DO(lade_share_open(share, "nested", &full, &v, err));
	DO(lade_share_version_array(v, 0, &array, err));
out:
	if (array.release)
		array.release(&array);
	lade_share_version_unref(v);
	lade_share_close(share);
	return status;
}

static void test_nested_types(void **state)
{
	pid_t broker = kit_serve();
	(void)state;

	assert_true(oom_run("nested", plans, NULL) > 20);
	kit_serve_end(broker);
}

/* The index that broker and keeper have. */
static lade_status shelf(void *ctx, lade_error *err)
{
	lade__shelf s = {0};
	lade__kept *kept;
	lade_status status = LADE_OK;
	(void)ctx;

	for (uint64_t i = 1; i < 30; i++) {
		int fd = -1;
		DO(lade__memfd_new(4096, &fd, err));
		status = lade__memfd_seal(fd, err);
		if (status != LADE_OK)
			close(fd);
		DO(status);
		lade__block blocks[2] = {{.kind = LADE__BLOCK_HOST, .fd = fd, .size = 4096},
		                         {.kind = LADE__BLOCK_REF, .fd = -1, .version = i - 1}};
		lade__record r = {.version = i,
		                  .block_count = i > 1 ? 2 : 1,
		                  .blocks = blocks,
		                  .head = (const uint8_t *)"head",
		                  .head_size = 4};
		snprintf(r.name, sizeof r.name, "n%d", (int)(i % 20));
		DO(lade__shelf_add(&s, &r, 0, &kept, err));
	}
	assert_int_equal(s.memory_count, 29);
	assert_int_equal(s.name_count, 20);
	lade__shelf_drop(&s, lade__shelf_find(&s, 1));
	assert_int_equal(s.memory_count, 29); /* version 2 has it, too */
	lade__shelf_drop(&s, lade__shelf_find(&s, 2));
	assert_int_equal(s.memory_count, 28);
out:
	lade__shelf_reset(&s);
	assert_int_equal(s.bytes, 0);
	return status;
}

static void test_the_index(void **state)
{
	(void)state;
	int before = kit_descriptors(getpid());
	assert_true(oom_run("index", shelf, NULL) > 60);
	assert_int_equal(kit_descriptors(getpid()), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_client),
		cmocka_unit_test(test_nested_types),
		cmocka_unit_test(test_the_index),
	};
	return cmocka_run_group_tests(tests, kit_setup, kit_teardown);
}
