/*
 * test_golden_zarr.c: arrays of golden/zarr/arrays.txt, as zarr-python and tensorstore stored them:
 * read whole and backwards, on one thread and on four; and with chunks that are cut or damaged, of
 * which also a part is written.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec_test.h"

#include <lade/zarr_read.h>
#include <lade/zarr_write.h>

#define FIELDS 5
#define BYTES_MAX 4096

typedef struct golden {
	char *field[FIELDS]; /* name, version, document, chunks, elements */
	lade_store *store;
	lade_zarr *node;
	uint8_t want[BYTES_MAX];
	size_t size;
} golden;

static size_t unhex(const char *hex, size_t digits, uint8_t *to)
{
	assert_true(digits % 2 == 0 && digits <= (size_t)2 * BYTES_MAX);
	for (size_t i = 0; i < digits / 2; i++) {
		char two[3] = {hex[2 * i], hex[2 * i + 1], 0};
		to[i] = (uint8_t)strtoul(two, NULL, 16);
	}
	return digits / 2;
}

static void put(lade_store *store, const char *key, const void *data, size_t size)
{
	lade_write write = {.key = key, .src = lade_host_cspan(data, size)};
	assert_int_equal(lade_store_write(store, &write, 1, NULL, NULL, NULL), LADE_OK);
}

/* Cuts a line into its fields, and puts its document and chunks into a store. */
static golden golden_open(char *line)
{
	golden g = {.size = 0};
	uint8_t bytes[BYTES_MAX];
	lade_error err = {0};
	line[strcspn(line, "\n")] = 0;
	for (size_t i = 0; i < FIELDS; i++) {
		g.field[i] = line;
		line += strcspn(line, "\t");
		line += *line ? (*line = 0, 1) : 0;
	}
	g.size = unhex(g.field[4], strlen(g.field[4]), g.want);
	assert_int_equal(lade_store_memory_new(LADE_PLACE_HOST, NULL, &g.store, NULL), LADE_OK);
	put(g.store, g.field[1][1] == '3' ? "zarr.json" : ".zarray", g.field[2],
	    strlen(g.field[2]));
	for (const char *at = g.field[3]; *at;) {
		char key[64];
		size_t name = strcspn(at, "="), digits = strcspn(at + name, " ") - 1;
		snprintf(key, sizeof key, "%.*s", (int)name, at);
		put(g.store, key, bytes, unhex(at + name + 1, digits, bytes));
		at += name + 1 + digits;
		at += *at == ' ';
	}
	if (lade_zarr_open(g.store, NULL, NULL, &g.node, &err))
		fail_msg("%s: %s", g.field[0], err.message);
	return g;
}

static void golden_close(golden *g)
{
	lade_zarr_unref(g->node);
	lade_store_unref(g->store);
}

/* Reads all of an array next to a guard page. */
static lade_status read_all(const golden *g, unsigned threads, uint8_t *to, lade_error *err)
{
	guard out = guard_new(g->size, 1);
	lade_zarr_target target = {.struct_size = sizeof target,
	                           .span = lade_host_span(out.data, g->size)};
	lade_zarr_read_options options = {.struct_size = sizeof options, .threads = threads};
	lade_status status = lade_zarr_read(g->node, NULL, &target, &options, NULL, err);
	memcpy(to, out.data, g->size);
	guard_free(&out);
	return status;
}

/* Each axis backwards, by strides of the target and not by the selection. */
static lade_status read_mirrored(const golden *g, uint8_t *to, lade_error *err)
{
	const lade_zarr_array *array = lade_zarr_as_array(g->node);
	ptrdiff_t strides[LADE_DIMS_MAX], stride = (ptrdiff_t)array->type.size;
	lade_zarr_target target = {.struct_size = sizeof target,
	                           .strides = strides,
	                           .span = lade_host_span(to, g->size),
	                           .offset = g->size - (size_t)stride};
	for (size_t a = array->ndim; a-- > 0; stride *= (ptrdiff_t)array->axes[a].size)
		strides[a] = -stride;
	return lade_zarr_read(g->node, NULL, &target, NULL, NULL, err);
}

static int each_array(void (*check)(golden *g))
{
	char line[8192];
	int count = 0;
	FILE *file = fopen(LADE_TESTS_DIR "/golden/zarr/arrays.txt", "r");
	assert_non_null(file);
	for (; fgets(line, sizeof line, file); count++) {
		golden g = golden_open(line);
		check(&g);
		golden_close(&g);
	}
	fclose(file);
	return count;
}

static void check_read(golden *g)
{
	uint8_t have[BYTES_MAX], mirrored[BYTES_MAX];
	size_t elem = (size_t)lade_zarr_as_array(g->node)->type.size;
	lade_error err = {0};
	for (unsigned threads = 1; threads <= 4; threads += 3) {
		if (read_all(g, threads, have, &err))
			fail_msg("%s: %s", g->field[0], err.message);
		for (size_t i = 0; i < g->size; i++)
			if (have[i] != g->want[i])
				fail_msg("%s: byte %zu is %u, want %u", g->field[0], i, have[i],
				         g->want[i]);
	}
	if (read_mirrored(g, mirrored, &err))
		fail_msg("%s, mirrored: %s", g->field[0], err.message);
	for (size_t i = 0; i < g->size; i += elem)
		assert_memory_equal(mirrored + g->size - elem - i, g->want + i, elem);
}

static void arrays(void **state)
{
	(void)state;
	assert_int_equal(each_array(check_read), 48);
}

/* Writes the first element: the rest of its chunk is read and changed. */
static lade_status write_first(const golden *g, lade_error *err)
{
	const lade_zarr_array *array = lade_zarr_as_array(g->node);
	lade_zarr_index axes[LADE_DIMS_MAX] = {{0}};
	lade_zarr_selection one = {.struct_size = sizeof one, .axes = axes,
	                           .axis_count = array->ndim, .index_size = sizeof axes[0]};
	lade_zarr_source source = {.struct_size = sizeof source,
	                           .span = lade_host_cspan(g->want, (size_t)array->type.size)};
	for (size_t a = 0; a < array->ndim; a++)
		axes[a].kind = LADE_ZARR_AT;
	return lade_zarr_write(g->node, &one, &source, NULL, NULL, err);
}

/* The first chunk cut at each length, and with each byte changed: an error that says where, or
 * elements, but never more; for reads, and for writes of a part. */
static void check_damage(golden *g)
{
	uint8_t bytes[BYTES_MAX], have[BYTES_MAX];
	char key[64];
	size_t name = strcspn(g->field[3], "=");
	size_t size = unhex(g->field[3] + name + 1, strcspn(g->field[3] + name + 1, " "), bytes);
	snprintf(key, sizeof key, "%.*s", (int)name, g->field[3]);
	for (size_t i = 0; i < 2 * size; i++) {
		lade_error err = {0};
		if (i < size)
			put(g->store, key, bytes, i);
		else
			bytes[i - size] ^= 0x55;
		if (i >= size)
			put(g->store, key, bytes, size);
		lade_status status = read_all(g, 1, have, &err);
		if (i >= size)
			bytes[i - size] ^= 0x55;
		if (i < size && status == LADE_OK)
			fail_msg("%s cut to %zu of %zu bytes was read", g->field[0], i, size);
		assert_int_equal(status, err.status);
		if (status != LADE_OK && (!strstr(err.message, key) || status == LADE_E_NOMEM))
			fail_msg("%s: %s: %s", g->field[0], lade_status_name(status), err.message);
		lade_status written = write_first(g, &err);
		if (written == LADE_OK ? status == LADE_OK && read_all(g, 1, have, &err) != LADE_OK
		                       : !strstr(err.message, key) || written == LADE_E_NOMEM)
			fail_msg("%s: written: %s: %s", g->field[0], lade_status_name(written),
			         err.message);
	}
}

static void damage(void **state)
{
	(void)state;
	assert_int_equal(each_array(check_damage), 48);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arrays),
		cmocka_unit_test(damage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
