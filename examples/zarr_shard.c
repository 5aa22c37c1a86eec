/* SPDX-License-Identifier: Apache-2.0 */
#include <lade/lade.h>
#include <stdio.h>

static float days[31][180][360]; /* a field for each day */

/* Makes a Zarr array in shards, writes 31 days, then one row of one day again. */
static lade_status write_days(lade_store *store, lade_error *err)
{
	/* A shard has all days of a quarter of the map, in chunks of one day. */
	const uint64_t shape[3] = {31, 180, 360}, shard[3] = {31, 90, 180}, chunk[3] = {1, 90, 180};
	static const char *const names[3] = {"day", "lat", "lon"};
	lade_zarr_description description = {
		.struct_size = sizeof description, .kind = LADE_ZARR_ARRAY, .type = "float32",
		.ndim = 3, .shape = shape, .chunk_shape = shard, .inner_shape = chunk,
		.codecs = "[{\"name\":\"zstd\",\"configuration\":{\"level\":3}},\"crc32c\"]",
		.dimension_names = names, .fill = "\"NaN\"",
	};
	lade_zarr_create_options options = {.struct_size = sizeof options,
	                                    .exists = LADE_ZARR_REPLACE};
	lade_zarr *array;
	lade_status status =
		lade_zarr_create(store, "temperature", &description, &options, &array, err);
	if (status != LADE_OK)
		return status;

	lade_zarr_source all = {.struct_size = sizeof all,
	                        .span = lade_host_cspan(days, sizeof days)};
	status = lade_zarr_write(array, NULL, &all, NULL, NULL, err);

	/* Only the two chunks with this row are decoded and encoded again. */
	lade_zarr_index row[2] = {{.kind = LADE_ZARR_AT, .start = 3},
	                          {.kind = LADE_ZARR_AT, .start = 60}};
	lade_zarr_selection selection = {.struct_size = sizeof selection, .axis_count = 2,
	                                 .axes = row, .index_size = sizeof row[0]};
	lade_zarr_source one = {.struct_size = sizeof one,
	                        .span = lade_host_cspan(days[4][60], sizeof days[4][60])};
	lade_zarr_write_report report = {.struct_size = sizeof report};
	if (status == LADE_OK)
		status = lade_zarr_write(array, &selection, &one, NULL, &report, err);
	if (status == LADE_OK)
		printf("%d chunks encoded in %d shards, %d bytes kept as they were\n",
		       (int)report.chunk_count, (int)report.value_count, (int)report.kept_size);
	lade_zarr_unref(array);
	return status;
}

int main(void)
{
	lade_directory_options options = {.struct_size = sizeof options,
	                                  .flags = LADE_DIRECTORY_CREATE};
	lade_store *store;
	lade_error err;
	for (int day = 0; day < 31; day++)
		for (int lat = 0; lat < 180; lat++)
			for (int lon = 0; lon < 360; lon++)
				days[day][lat][lon] = (float)(20 - lat / 9 + day % 7);
	if (lade_store_directory_open("year.zarr", &options, &store, &err))
		return fprintf(stderr, "%s\n", err.message);
	lade_status status = write_days(store, &err);
	if (status != LADE_OK)
		fprintf(stderr, "%s\n", err.message);
	lade_store_unref(store);
	return status;
}
