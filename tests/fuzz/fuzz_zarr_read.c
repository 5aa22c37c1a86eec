/*
 * fuzz_zarr_read.c: an array's document and its chunks: opens it and reads all of it, and some of
 * it.  What is read has all its bytes written.
 *
 *     | flags 1 | document size 2 | document | size 2, bytes of chunk 0 | size 2, ... |
 *
 * Flags: 1 the document is format 2's, 2 checksums are ignored, 4 a single element, 8 every second
 * element backwards.  Chunks are those of the grid in C order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/zarr_read.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define expect(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition); \
			abort(); \
		} \
	} while (0)

#define RESULT_MAX ((uint64_t)1 << 20)

typedef struct input {
	const uint8_t *data;
	size_t size;
} input;

/* A piece with its size of 2 bytes in front, which may say too much. */
static input take(input *from)
{
	input piece = {from->data, 0};
	if (from->size < 2)
		return piece;
	size_t size = (size_t)from->data[0] | (size_t)from->data[1] << 8;
	piece.data += 2;
	piece.size = size < from->size - 2 ? size : from->size - 2;
	from->data = piece.data + piece.size;
	from->size -= 2 + piece.size;
	return piece;
}

static void put(lade_store *store, const char *key, input piece)
{
	lade_write write = {.key = key, .src = lade_host_cspan(piece.data, piece.size)};
	expect(lade_store_write(store, &write, 1, NULL, NULL, NULL) == LADE_OK);
}

static void put_chunks(lade_store *store, const lade_zarr *node, input *rest)
{
	const lade_zarr_array *array = lade_zarr_as_array(node);
	uint64_t index[LADE_DIMS_MAX] = {0};
	char key[LADE_KEY_MAX + 1];
	for (size_t a = 0; a < array->ndim; a++)
		if (array->axes[a].chunk_count == 0)
			return;
	while (rest->size) {
		size_t a = array->ndim;
		input piece = take(rest);
		if (lade_zarr_chunk_key(node, index, key, NULL) == LADE_OK && piece.size)
			put(store, key, piece);
		while (a > 0 && ++index[a - 1] == array->axes[a - 1].chunk_count)
			index[--a] = 0;
		if (a == 0)
			return;
	}
}

static void read_array(const lade_zarr *node, unsigned flags)
{
	const lade_zarr_array *array = lade_zarr_as_array(node);
	lade_zarr_index axes[LADE_DIMS_MAX];
	lade_zarr_selection selection = {.struct_size = sizeof selection,
	                                 .axes = axes,
	                                 .axis_count = flags & 12 ? array->ndim : 0};
	lade_zarr_read_options options = {.struct_size = sizeof options, .threads = 1};
	lade_zarr_shape shape = {.struct_size = sizeof shape};
	lade_error err = {0};
	options.flags = flags & 2 ? LADE_ZARR_IGNORE_CHECKSUMS : 0;
	for (size_t a = 0; a < array->ndim; a++)
		axes[a] = flags & 4 ? (lade_zarr_index){.kind = LADE_ZARR_AT, .start = -1}
		                    : (lade_zarr_index){.kind = LADE_ZARR_SLICE,
		                                        .step = -2,
		                                        .start = LADE_ZARR_OPEN,
		                                        .stop = LADE_ZARR_OPEN};
	lade_status status = lade_zarr_selection_shape(node, &selection, &shape, &err);
	if (status != LADE_OK || shape.size > RESULT_MAX || shape.elem_size == 0)
		return;
	uint8_t *to = malloc((size_t)shape.size + 1);
	expect(to);
	lade_zarr_target target = {.struct_size = sizeof target,
	                           .span = lade_host_span(to, (size_t)shape.size)};
	memset(to, 0xA5, (size_t)shape.size + 1);
	status = lade_zarr_read(node, &selection, &target, &options, NULL, &err);
	expect(to[shape.size] == 0xA5);
	expect(status == LADE_OK || (err.status == status && err.message[0]));
	free(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	lade_store *store;
	lade_zarr *node;
	if (size < 3)
		return 0;
	input rest = {data + 1, size - 1};
	expect(lade_store_memory_new(LADE_PLACE_HOST, NULL, &store, NULL) == LADE_OK);
	put(store, data[0] & 1 ? ".zarray" : "zarr.json", take(&rest));
	if (lade_zarr_open(store, NULL, NULL, &node, NULL) == LADE_OK) {
		if (lade_zarr_as_array(node)) {
			put_chunks(store, node, &rest);
			read_array(node, data[0]);
		}
		lade_zarr_unref(node);
	}
	lade_store_unref(store);
	return 0;
}
