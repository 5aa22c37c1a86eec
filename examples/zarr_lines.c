/* SPDX-License-Identifier: Apache-2.0 */
#include <lade/lade.h>
#include <stdio.h>

static float map[180][360], box[10][20]; /* your array, and a part of it */

int main(void)
{
	const uint64_t shape[2] = {180, 360}, chunk[2] = {90, 90};
	lade_zarr_description description = {
		.struct_size = sizeof description, .kind = LADE_ZARR_ARRAY, .type = "float32",
		.ndim = 2, .shape = shape, .chunk_shape = chunk,
		.codecs = "[{\"name\":\"zstd\",\"configuration\":{\"level\":3}}]",
	};
	lade_directory_options make = {.struct_size = sizeof make, .flags = LADE_DIRECTORY_CREATE};
	lade_zarr_source from = {.struct_size = sizeof from,
	                         .span = lade_host_cspan(map, sizeof map)};
	lade_zarr_target to = {.struct_size = sizeof to, .span = lade_host_span(box, sizeof box)};
	lade_store *store;
	lade_zarr *array;
	lade_zarr_selection *part;
	lade_error err;
	map[100][180] = 21.5f;

	/* Makes an array; lade_zarr_open(store, "temperature", NULL, &array, &err) opens one. */
	if (lade_store_directory_open("world.zarr", &make, &store, &err) ||
	    lade_zarr_create(store, "temperature", &description, NULL, &array, &err) ||
	    lade_zarr_write(array, NULL, &from, NULL, NULL, &err))
		return fprintf(stderr, "%s\n", err.message);

	/* Of eight chunks, this decodes the two that it needs. */
	if (lade_zarr_selection_parse(array, "[95:105, 170:190]", &part, &err) ||
	    lade_zarr_read(array, part, &to, NULL, NULL, &err))
		return fprintf(stderr, "%s\n", err.message);
	printf("%g\n", box[5][10]);
	lade_zarr_selection_free(part);
	lade_zarr_unref(array);
	lade_store_unref(store);
	return 0;
}
