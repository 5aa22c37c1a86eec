/*
 * fuzz_zarr.c: metadata documents.  What is opened has a description in which every number can be
 * used: chunks have keys and extents, the fill value its bytes, each step a spec or a reason.
 *
 * The input's first byte chooses the document: an array or group of format 3, an array of format 2,
 * or consolidated metadata of format 2.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/zarr.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define expect(condition)                                                           \
	do {                                                                        \
		if (!(condition)) {                                                 \
			fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition); \
			abort();                                                    \
		}                                                                   \
	} while (0)

static volatile size_t used;

static void check_chain(const lade_zarr_chain *chain, size_t ndim)
{
	for (size_t i = 0; i < chain->step_count; i++) {
		const lade_zarr_step *step = &chain->steps[i];
		expect(step->spec || (step->name && step->configuration && step->why));
	}
	for (size_t i = 0; chain->order && i < ndim; i++)
		expect(chain->order[i] < ndim);
	expect(chain->array_step_count <= chain->step_count);
	if (chain->shard) {
		for (size_t i = 0; i < ndim; i++)
			expect(chain->shard->chunk_shape[i] > 0);
		check_chain(&chain->shard->chunks, ndim);
		check_chain(&chain->shard->index, ndim + 1);
	}
}

static void check_axis(const lade_zarr_axis *axis)
{
	uint64_t chunks[2] = {0, axis->chunk_count - 1}, chunk;
	expect((axis->size == 0) == (axis->chunk_count == 0));
	for (size_t i = 0; axis->chunk_count && i < 2; i++) {
		lade_zarr_extent e;
		expect(lade_zarr_chunk_extent(axis, chunks[i], &e, NULL) == LADE_OK);
		expect(e.used > 0 && e.used <= e.size && e.start + e.used <= axis->size);
		expect(lade_zarr_chunk_find(axis, e.start + e.used - 1, &chunk, NULL) == LADE_OK);
		expect(chunk == chunks[i]);
	}
	expect(lade_zarr_chunk_find(axis, axis->size, &chunk, NULL) == LADE_E_RANGE);
}

static void check_array(lade_zarr *node)
{
	const lade_zarr_array *array = lade_zarr_as_array(node);
	uint64_t index[LADE_DIMS_MAX];
	char key[LADE_KEY_MAX + 1];
	bool empty = false;
	expect(array->ndim <= LADE_DIMS_MAX && array->type.name);
	expect(array->type.size == 0 || array->fill_size == array->type.size);
	for (size_t i = 0; i < array->fill_size; i++)
		used += ((const unsigned char *)array->fill)[i];
	for (size_t i = 0; i < array->ndim; i++) {
		check_axis(&array->axes[i]);
		empty |= array->axes[i].chunk_count == 0;
		index[i] = array->axes[i].chunk_count - 1;
	}
	if (!empty)
		expect(lade_zarr_chunk_key(node, index, key, NULL) == LADE_OK &&
		       lade_key_check(key, NULL) == LADE_OK);
	check_chain(&array->chain, array->ndim);
}

static void check(lade_zarr *node)
{
	used += strlen(lade_zarr_attributes(node));
	if (lade_zarr_as_array(node)) {
		check_array(node);
		return;
	}
	for (size_t i = 0; i < 20 && lade_zarr_member(node, i); i++) {
		lade_zarr *member;
		if (lade_zarr_member_open(node, lade_zarr_member(node, i), &member, NULL))
			continue;
		if (lade_zarr_as_array(member))
			check_array(member);
		lade_zarr_unref(member);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const keys[] = {"zarr.json", ".zarray", ".zmetadata"};
	static const char group[] = "{\"zarr_format\":2}";
	lade_store *store;
	lade_zarr *node;
	lade_error err = {0};
	if (size == 0)
		return 0;
	expect(lade_store_memory_new(LADE_PLACE_HOST, NULL, &store, NULL) == LADE_OK);
	expect(lade_store_memory_lend(store, keys[data[0] % 3],
	                              lade_host_cspan(data + 1, size - 1), NULL) == LADE_OK);
	if (data[0] % 3 == 2)
		expect(lade_store_memory_lend(store, ".zgroup",
		                              lade_host_cspan(group, strlen(group)), NULL) ==
		       LADE_OK);
	lade_status status = lade_zarr_open(store, NULL, NULL, &node, &err);
	if (status == LADE_OK) {
		check(node);
		lade_zarr_unref(node);
	} else {
		expect(err.status == status && err.message[0]);
		expect(err.offset == LADE_NO_OFFSET || err.offset <= size);
	}
	lade_store_unref(store);
	return 0;
}
