/*
 * fuzz_zarr_select.c: shards, strings and selections that may be anything.  Reads stay in their
 * target, whose size the selection's shape says.
 *
 * The input: | kind 1 | size of the selection's text 1 | text | a shard or a chunk |
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/lade.h>

#include <stdlib.h>
#include <string.h>

#define HEAD "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[7,9],\"fill_value\":"
#define GRID                                                                           \
	",\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[8,12]}}," \
	"\"chunk_key_encoding\":{\"name\":\"default\"},\"codecs\":["
#define SHARD(shape, codecs, index, where)                                                   \
	"{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":" shape           \
	",\"codecs\":[" codecs "],\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":{" \
	"\"endian\":\"little\"}}" index "],\"index_location\":\"" where "\"}}"
#define BYTES "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#define U16 "\"data_type\":\"uint16\""

static const char *const documents[] = {
	HEAD "5," U16 GRID SHARD("[2,3]", BYTES, "", "end") "]}",
	HEAD "5," U16 GRID SHARD("[2,3]", BYTES ",{\"name\":\"crc32c\"}", "", "start") "]}",
	HEAD "5," U16 GRID SHARD("[4,6]", SHARD("[2,3]", BYTES, "", "end"), "", "end") "]}",
	HEAD "5," U16 GRID SHARD("[2,3]", BYTES, ",{\"name\":\"crc32c\"}", "end")
		",{\"name\":\"gzip\",\"configuration\":{\"level\":1}}]}",
	HEAD "\"x\",\"data_type\":\"string\"" GRID "{\"name\":\"vlen-utf8\"}]}",
	HEAD "\"x\",\"data_type\":\"string\"" GRID SHARD("[4,4]", "{\"name\":\"vlen-utf8\"}", "",
                                                         "end") "]}",
	HEAD "5," U16 GRID BYTES ",{\"name\":\"numcodecs.lz4\",\"configuration\":{}},"
		"{\"name\":\"numcodecs.lz4\",\"configuration\":{}}]}",
};

static void read_texts(const lade_zarr *node, const lade_zarr_selection *selection)
{
	lade_zarr_plan *plan;
	uint64_t count, size;
	if (lade_zarr_plan_new(node, selection, NULL, NULL, &plan, NULL) != LADE_OK)
		return;
	if (lade_zarr_plan_run(plan, NULL, NULL) == LADE_OK) {
		if (lade_zarr_plan_texts(plan, &count, &size, NULL) != LADE_OK)
			abort();
		void *offsets = malloc((size_t)(count + 1) * 8), *data = malloc((size_t)size + 1);
		if (offsets && data &&
		    lade_zarr_plan_fill(plan, lade_host_span(offsets, (size_t)(count + 1) * 8),
		                        lade_host_span(data, (size_t)size), NULL) != LADE_OK)
			abort();
		free(offsets);
		free(data);
	}
	lade_zarr_plan_free(plan);
}

static void read_array(const lade_zarr *node, const lade_zarr_selection *selection)
{
	lade_zarr_shape shape = {.struct_size = sizeof shape};
	lade_zarr_read_options options = {.struct_size = sizeof options, .threads = 1};
	if (lade_zarr_selection_shape(node, selection, &shape, NULL) != LADE_OK)
		return;
	if (shape.elem_size == 0) {
		read_texts(node, selection);
		return;
	}
	void *to = malloc((size_t)shape.size + 1);
	lade_zarr_target target = {.struct_size = sizeof target,
	                           .span = lade_host_span(to, (size_t)shape.size)};
	if (to)
		lade_zarr_read(node, selection, &target, &options, NULL, NULL);
	free(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	lade_zarr_selection *selection = NULL;
	lade_store *store;
	lade_zarr *node = NULL;
	char text[256];
	if (size < 2 || size - 2 < data[1] ||
	    lade_store_memory_new(LADE_PLACE_HOST, NULL, &store, NULL) != LADE_OK)
		return 0;
	const char *document = documents[data[0] % (sizeof documents / sizeof documents[0])];
	memcpy(text, data + 2, data[1]);
	text[data[1]] = 0;
	lade_write writes[2] = {
		{.key = "zarr.json", .src = lade_host_cspan(document, strlen(document))},
		{.key = "c/0/0", .src = lade_host_cspan(data + 2 + data[1], size - 2 - data[1])}};
	if (lade_store_write(store, writes, 2, NULL, NULL, NULL) != LADE_OK ||
	    lade_zarr_open(store, "", NULL, &node, NULL) != LADE_OK)
		abort();
	if (text[0] == 0 ||
	    lade_zarr_selection_parse(node, text, &selection, NULL) == LADE_OK)
		read_array(node, selection);
	lade_zarr_selection_free(selection);
	lade_zarr_unref(node);
	lade_store_unref(store);
	return 0;
}
