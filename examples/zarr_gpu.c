/* SPDX-License-Identifier: Apache-2.0 */
#include <lade/lade.h>
#include <stdio.h>

static float field[1024][1024];

/* Makes an array of 16 chunks for main() to read. */
static lade_status make(lade_store *store, lade_zarr **array, lade_error *err)
{
	const uint64_t shape[2] = {1024, 1024}, chunk[2] = {256, 256};
	lade_zarr_description description = {
		.struct_size = sizeof description, .kind = LADE_ZARR_ARRAY, .format = 2, .ndim = 2,
		.type = "float32", .shape = shape, .chunk_shape = chunk,
		.codecs = "[{\"id\":\"lz4\",\"acceleration\":1}]",
	};
	lade_zarr_create_options replace = {.struct_size = sizeof replace,
	                                    .exists = LADE_ZARR_REPLACE};
	lade_zarr_source all = {.struct_size = sizeof all,
	                        .span = lade_host_cspan(field, sizeof field)};
	lade_status status = lade_zarr_create(store, "field", &description, &replace, array, err);
	if (status == LADE_OK)
		status = lade_zarr_write(*array, NULL, &all, NULL, NULL, err);
	return status;
}

/* Reads rows 100 to 899 into memory of 'place', which the call allocates. */
static lade_status read_rows(lade_zarr *array, lade_place place, lade_error *err)
{
	lade_zarr_index rows = {.kind = LADE_ZARR_SLICE, .start = 100, .stop = 900};
	lade_zarr_selection selection = {.struct_size = sizeof selection, .axis_count = 1,
	                                 .axes = &rows, .index_size = sizeof rows};
	lade_array *result = NULL;
	lade_status status = lade_zarr_read_new(array, &selection, place, NULL, &result, err);
	if (status != LADE_OK)
		return status;

	/* On a GPU, span.data is a device address for your kernels; here one element is copied. */
	lade_span span = lade_array_span(result);
	lade_cspan element = {(const char *)span.data + (800 - 100) * sizeof field[0],
	                      sizeof(float), span.place};
	float value = 0;
	status = lade_copy(NULL, element, lade_host_span(&value, sizeof value), NULL, err);
	if (status == LADE_OK)
		printf("%zu bytes in %s memory; row 800 begins with %g\n", span.size,
		       span.place.kind == LADE_HOST ? "host" :
		       span.place.kind == LADE_DEVICE ? "device" : "pinned", value);
	lade_array_unref(result);
	return status == LADE_OK && value != field[800][0] ? LADE_E_CORRUPT : status;
}

int main(void)
{
	lade_directory_options create = {.struct_size = sizeof create,
	                                 .flags = LADE_DIRECTORY_CREATE};
	lade_place place = {LADE_DEVICE, 0};
	lade_store *store;
	lade_zarr *array = NULL;
	lade_error err;
	int32_t count;
	for (int i = 0; i < 1024; i++)
		for (int j = 0; j < 1024; j++)
			field[i][j] = (float)(i + j / 16);
	if (lade_device_count(&count, &err) != LADE_OK) {
		printf("no GPU, so this reads into host memory (%s)\n", err.message);
		place = (lade_place){LADE_HOST, 0};
	}
	if (lade_store_directory_open("gpu.zarr", &create, &store, &err))
		return fprintf(stderr, "%s\n", err.message);
	lade_status status = make(store, &array, &err);
	if (status == LADE_OK)
		status = read_rows(array, place, &err);
	if (status != LADE_OK)
		fprintf(stderr, "%s\n", err.message);
	lade_zarr_unref(array);
	lade_store_unref(store);
	return status;
}
