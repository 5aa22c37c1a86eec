/* SPDX-License-Identifier: Apache-2.0 */
#include <lade/lade.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A store of your own.  This one keeps values in a table; yours may ask a database or a server. */
typedef struct table {
	pthread_mutex_t mutex; /* calls come from several threads at once */
	struct value {
		char key[32];
		size_t size;
		void *data; /* NULL: no value */
	} values[16];
	int reads;
} table;

static struct value *find(table *t, const char *key)
{
	for (size_t i = 0; i < 16; i++)
		if (t->values[i].data && strcmp(t->values[i].key, key) == 0)
			return &t->values[i];
	return NULL;
}

/* Reads 'count' ranges.  lade_reading_done() may also be called later, by another thread. */
static void table_read(void *ctx, lade_reading *reading, size_t count)
{
	table *t = ctx;
	for (size_t i = 0; i < count; i++) {
		lade_range *range = lade_reading_range(reading, i);
		lade_error err = {.message = "there is no such value"};
		lade_status status = LADE_E_NOT_FOUND;
		uint64_t off;
		pthread_mutex_lock(&t->mutex);
		const struct value *v = find(t, range->key);
		t->reads++;
		if (v) {
			range->object_size = v->size;
			status = lade_range_place(range, v->size, &off, &range->size, &err);
		}
		if (status == LADE_OK && range->size)
			memcpy(range->dst.data, (char *)v->data + off, range->size);
		pthread_mutex_unlock(&t->mutex);
		lade_reading_done(reading, i, status, &err);
	}
}

/* Writes a value.  This store has no versions and deletes nothing. */
static lade_status table_write(void *ctx, lade_write *write, const lade_io_options *options,
                               lade_error *err)
{
	table *t = ctx;
	(void)options;
	if (write->kind != LADE_WRITE_ALWAYS && write->kind != LADE_WRITE_IF_ABSENT)
		return LADE_E_UNSUPPORTED;
	void *data = malloc(write->src.size + 1);
	lade_status status = LADE_OK;
	pthread_mutex_lock(&t->mutex);
	struct value *v = find(t, write->key);
	if (v && write->kind == LADE_WRITE_IF_ABSENT)
		status = LADE_E_CHANGED;
	for (size_t i = 0; i < 16 && !v; i++)
		v = t->values[i].data ? NULL : &t->values[i];
	if (status == LADE_OK && (!data || !v || strlen(write->key) >= sizeof v->key))
		status = LADE_E_NOSPACE;
	if (status == LADE_OK) {
		memcpy(data, write->src.data, write->src.size);
		strcpy(v->key, write->key);
		free(v->data);
		v->data = data;
		v->size = write->src.size;
		data = NULL;
	} else {
		snprintf(err->message, sizeof err->message, "%s",
		         status == LADE_E_CHANGED ? "it exists" : "16 values with short keys fit");
	}
	pthread_mutex_unlock(&t->mutex);
	free(data);
	return status;
}

/* The last lade_store_unref() calls it. */
static void table_close(void *ctx)
{
	table *t = ctx;
	for (size_t i = 0; i < 16; i++)
		free(t->values[i].data);
}

/* Writes an array of 4 chunks to the store, and reads a part of one chunk. */
static lade_status use(lade_store *store, lade_error *err)
{
	const uint64_t shape[2] = {64, 64}, chunk[2] = {32, 32};
	static int32_t numbers[64][64], part[8][8];
	lade_zarr_description description = {
		.struct_size = sizeof description, .kind = LADE_ZARR_ARRAY, .type = "int32",
		.ndim = 2, .shape = shape, .chunk_shape = chunk,
	};
	lade_zarr_source all = {.struct_size = sizeof all,
	                        .span = lade_host_cspan(numbers, sizeof numbers)};
	lade_zarr_target target = {.struct_size = sizeof target,
	                           .span = lade_host_span(part, sizeof part)};
	lade_zarr_selection *selection = NULL;
	lade_zarr *array = NULL;
	for (int i = 0; i < 64; i++)
		for (int j = 0; j < 64; j++)
			numbers[i][j] = 64 * i + j;
	lade_status status = lade_zarr_create(store, "", &description, NULL, &array, err);
	if (status == LADE_OK)
		status = lade_zarr_write(array, NULL, &all, NULL, NULL, err);
	if (status == LADE_OK)
		status = lade_zarr_selection_parse(array, "[40:48, 8:16]", &selection, err);
	if (status == LADE_OK)
		status = lade_zarr_read(array, selection, &target, NULL, NULL, err);
	if (status == LADE_OK && part[7][7] != numbers[47][15])
		status = LADE_E_CORRUPT;
	lade_zarr_selection_free(selection);
	lade_zarr_unref(array);
	return status;
}

int main(void)
{
	static table values = {.mutex = PTHREAD_MUTEX_INITIALIZER};
	lade_store_ops ops = {.struct_size = sizeof ops, .flags = LADE_STORE_LOCAL,
	                      .read = table_read, .write = table_write, .close = table_close};
	lade_store *store;
	lade_error err = {.message = ""};
	if (lade_store_new(&ops, &values, "table", &store, &err))
		return fprintf(stderr, "%s\n", err.message);
	lade_status status = use(store, &err);
	if (status != LADE_OK)
		fprintf(stderr, "%s\n", err.message);
	else
		printf("the keys are %s, %s, ...; %d ranges were read\n", values.values[0].key,
		       values.values[1].key, values.reads);
	lade_store_unref(store);
	return status;
}
