/*
 * zarr_map.c: which chunks of an array are in its store, how large they are, and a map of them.
 *
 * The map shows the chunks along the last two axes.  A sign stands for the chunks of a rectangle,
 * and of all other axes.  The more bytes are stored for an element, the darker it is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/map.h"
#include "cli/table.h"
#include "cli/zarr.h"


/* ---- keys ---------------------------------------------------------------------------------- */

bool zarr_chunk_parse(const zarr_node *node, const char *key, uint64_t index[LADE_DIMS_MAX])
{
	const char *at = key, *path = lade_zarr_path(node->zarr);
	char again[LADE_KEY_MAX + 1];
	size_t size = strlen(path);

	if (size > 0) {
		if (strncmp(key, path, size) != 0 || key[size] != '/')
			return false;
		at += size + 1;
	}
	if (at[0] == 'c' && (at[1] == '/' || at[1] == '.'))
		at += 2;
	for (size_t i = 0; i < node->array->ndim; i++) {
		uint64_t value = 0;
		if (*at < '0' || *at > '9')
			return false;
		for (; *at >= '0' && *at <= '9'; at++)
			if (__builtin_mul_overflow(value, 10, &value) ||
			    __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
				return false;
		index[i] = value;
		at += *at == '/' || *at == '.';
	}
	/* That it reads like a chunk's key is not enough: it must be the chunk's key. */
	return lade_zarr_chunk_key(node->zarr, index, again, NULL) == LADE_OK &&
	       strcmp(again, key) == 0;
}

/* ---- listing ------------------------------------------------------------------------------- */

typedef struct listing {
	const zarr_node *node;
	zarr_chunks *out;
} listing;

static bool is_document(const char *key)
{
	static const char *const names[] = {"zarr.json", ".zarray", ".zattrs", ".zgroup",
	                                    ".zmetadata"};
	const char *slash = strrchr(key, '/');

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(slash ? slash + 1 : key, names[i]) == 0)
			return true;
	return false;
}

/* The bytes of a chunk when it is decoded; 0: they are not known. */
static uint64_t chunk_size(const lade_zarr_array *array, const uint64_t *index)
{
	uint64_t size = array->type.size;
	lade_zarr_extent extent;

	for (size_t i = 0; i < array->ndim; i++)
		if (lade_zarr_chunk_extent(&array->axes[i], index[i], &extent, NULL) == LADE_OK)
			size = zarr_times(size, extent.size);
	return size;
}

static cli_sign *sign_of(const zarr_chunks *c, size_t ndim, const uint64_t *index)
{
	uint64_t row = ndim > 1 ? index[ndim - 2] / c->row_chunks : 0;
	uint64_t column = ndim > 0 ? index[ndim - 1] / c->column_chunks : 0;

	return &c->signs[row * c->columns + column];
}

static lade_status visit(void *ctx, const lade_store_entry *entry)
{
	listing *l = ctx;
	zarr_chunks *c = l->out;
	uint64_t index[LADE_DIMS_MAX];
	uint64_t stored = entry->size == LADE_SIZE_UNKNOWN ? 0 : entry->size;

	if (!zarr_chunk_parse(l->node, entry->key, index)) {
		bool document = is_document(entry->key);
		c->other += !document;
		c->other_size += document ? 0 : stored;
		return LADE_OK;
	}
	const lade_zarr_array *array = l->node->array;
	uint64_t decoded = chunk_size(array, index);
	cli_sign *sign = sign_of(c, array->ndim, index);
	c->present++;
	c->stored += stored;
	c->decoded += decoded;
	sign->present++;
	sign->stored += stored;
	sign->decoded += decoded;
	return LADE_OK;
}

/* Moves on to the next chunk of the grid. */
static void next_chunk(const lade_zarr_array *array, uint64_t *index)
{
	for (size_t i = array->ndim; i > 0; i--) {
		if (++index[i - 1] < array->axes[i - 1].chunk_count)
			return;
		index[i - 1] = 0;
	}
}

/* Asks for the sizes of 'count' chunks at once; those that are missing have none. */
static lade_status ask_some(listing *l, uint64_t *index, size_t count, lade_error *err)
{
	lade_range *ranges = cli_need(calloc(count, sizeof *ranges));
	lade_error *errors = cli_need(calloc(count, sizeof *errors));
	char(*keys)[LADE_KEY_MAX + 1] = cli_need(malloc(count * sizeof *keys));
	lade_io_options options = {.struct_size = sizeof options,
	                           .request_size = sizeof *ranges,
	                           .errors = errors};
	lade_status status = LADE_OK;

	for (size_t i = 0; i < count && status == LADE_OK; i++) {
		status = lade_zarr_chunk_key(l->node->zarr, index, keys[i], err);
		ranges[i].key = keys[i]; /* no bytes of it */
		next_chunk(l->node->array, index);
	}
	if (status == LADE_OK)
		lade_store_read(l->node->store, ranges, count, &options, NULL, err);
	for (size_t i = 0; i < count && status == LADE_OK; i++) {
		lade_store_entry entry = {sizeof entry, keys[i], ranges[i].object_size};
		if (ranges[i].status == LADE_OK) {
			status = visit(l, &entry);
		} else if (ranges[i].status != LADE_E_NOT_FOUND) {
			status = ranges[i].status;
			*err = errors[i];
		}
	}
	free(ranges);
	free(errors);
	free(keys);
	return status;
}

static lade_status ask_all(listing *l, lade_error *err)
{
	const size_t batch = 512;
	uint64_t index[LADE_DIMS_MAX] = {0}, left = zarr_chunk_count(l->node->array);
	lade_status status = LADE_OK;

	for (size_t n; left && status == LADE_OK; left -= n) {
		n = left < batch ? (size_t)left : batch;
		status = ask_some(l, index, n, err);
	}
	return status;
}

lade_status zarr_chunks_list(const zarr_node *node, size_t width, uint64_t ask, zarr_chunks *out,
                             lade_error *err)
{
	const lade_zarr_array *array = node->array;
	const char *path = lade_zarr_path(node->zarr);
	char prefix[LADE_KEY_MAX + 2];
	listing l = {.node = node, .out = out};
	lade_store_listing options = {.struct_size = sizeof options,
	                              .prefix = prefix,
	                              .sizes = true,
	                              .visit = visit,
	                              .ctx = &l};

	*out = (zarr_chunks){0};
	uint64_t rows = array->ndim > 1 ? array->axes[array->ndim - 2].chunk_count : 1;
	uint64_t columns = array->ndim > 0 ? array->axes[array->ndim - 1].chunk_count : 1;
	out->rows = cli_map_divide(rows, CLI_MAP_ROWS, &out->row_chunks);
	out->columns = cli_map_divide(columns, width - CLI_MAP_MARGIN, &out->column_chunks);
	out->signs = cli_need(calloc(out->rows * out->columns, sizeof *out->signs));
	snprintf(prefix, sizeof prefix, "%s%s", path, *path ? "/" : "");
	lade_status status = lade_store_list(node->store, &options, err);
	if (status != LADE_E_UNSUPPORTED || zarr_chunk_count(array) > ask)
		return status;
	out->asked = true;
	return ask_all(&l, err);
}

void zarr_chunks_free(zarr_chunks *chunks)
{
	free(chunks->signs);
	*chunks = (zarr_chunks){0};
}

/* ---- drawing --------------------------------------------------------------------------- */

static void axis_name(const lade_zarr_array *array, size_t axis, char *text, size_t cap)
{
	char shown[64];

	if (array->axes[axis].name)
		snprintf(text, cap, "%s", cli_escape(array->axes[axis].name, shown, sizeof shown));
	else
		snprintf(text, cap, "axis %zu", axis);
}

void zarr_map_print(const zarr_node *node, const zarr_chunks *c, size_t width)
{
	const lade_zarr_array *array = node->array;
	char down[64], across[64];
	cli_map map = {.rows = c->rows, .columns = c->columns, .signs = c->signs, .what = "chunk",
	               .missing = c->present < zarr_chunk_count(array)};

	if (array->ndim == 0 || c->present == 0 || zarr_chunk_count(array) <= 1)
		return;
	axis_name(array, array->ndim - 1, across, sizeof across);
	table_label("map");
	if (array->ndim > 1) {
		axis_name(array, array->ndim - 2, down, sizeof down);
		printf("of the chunks: %s down, %s across\n", down, across);
	} else {
		printf("of the chunks along %s\n", across);
	}
	if (array->ndim == 1 && c->column_chunks > 1)
		printf("%*sa sign is %" PRIu64 " chunks\n", CLI_MAP_MARGIN, "", c->column_chunks);
	else if (c->row_chunks > 1 || c->column_chunks > 1)
		printf("%*sa sign is %" PRIu64 " x %" PRIu64 " chunks\n", CLI_MAP_MARGIN, "",
		       c->row_chunks, c->column_chunks);
	if (array->ndim > 2)
		printf("%*sof all chunks along the other axes\n", CLI_MAP_MARGIN, "");
	cli_map_draw(&map, width);
}
