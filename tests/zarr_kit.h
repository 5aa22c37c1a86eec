/*
 * zarr_kit.h: random Zarr arrays of known elements, written chunk by chunk as their description
 * says, and what numpy would read of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_ZARR_KIT_H
#define LADE_TESTS_ZARR_KIT_H

#include "guard.h"

#include <lade/lade.h>

#include <inttypes.h>
#include <stdio.h>

/* An open array, and its elements as they are in memory: little-endian, in C order. */
typedef struct zarr_kit {
	lade_store *store, *far; /* 'far' is the same, but small reads are not cheap there */
	lade_zarr *node, *far_node;
	const lade_zarr_array *array;
	uint8_t *model;
	size_t count, elem;
	char json[8192];
} zarr_kit;

#define KIT_CHECK(call)                                                        \
	do {                                                                   \
		lade_error kit_err = {0};                                      \
		if ((call) != LADE_OK)                                         \
			fail_msg("%s:%d: %s", __func__, __LINE__, kit_err.message); \
	} while (0)

static inline void kit_put(lade_store *store, const char *key, const void *data, size_t size)
{
	lade_write write = {.key = key, .src = lade_host_cspan(data, size)};
	KIT_CHECK(lade_store_write(store, &write, 1, NULL, NULL, &kit_err));
}

/* A store that gives what another one has. */
static inline void kit_far_read(void *ctx, lade_reading *reading, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		lade_range *range = lade_reading_range(reading, i), own = *range;
		lade_error err = {0};
		lade_io_options options = {.struct_size = sizeof options,
		                           .request_size = sizeof own};
		lade_status status = lade_store_read(ctx, &own, 1, &options, NULL, &err);
		range->size = own.size;
		range->object_size = own.object_size;
		lade_reading_done(reading, i, status, &err);
	}
}

/* ---- writing ---------------------------------------------------------------------------- */

/* The bytes of an encoded chunk, from malloc(); the steps [first, count) of a chain are run. */
static inline uint8_t *kit_steps(const lade_zarr_chain *chain, size_t first, uint8_t *bytes,
                                 size_t *size)
{
	for (size_t i = first; i < chain->step_count; i++) {
		const lade_zarr_step *step = &chain->steps[i];
		size_t cap = lade_spec_bound(step->spec, *size) + step->header_size, got;
		uint8_t *to = malloc(cap + 1);
		for (size_t b = 0; b < step->header_size; b++)
			to[b] = (uint8_t)(*size >> 8 * b);
		KIT_CHECK(lade_encode(lade_engine_default(), step->spec,
		                      lade_host_cspan(bytes, *size),
		                      lade_host_span(to + step->header_size,
		                                     cap - step->header_size), &got, &kit_err));
		free(bytes);
		bytes = to;
		*size = got + step->header_size;
	}
	return bytes;
}

/* One element of the model, or the fill value beyond the array's end. */
static inline void kit_element(const zarr_kit *k, const uint64_t *at, uint8_t *to, size_t swap)
{
	const uint8_t *from = NULL;
	uint64_t linear = 0;
	bool inside = true;
	for (size_t a = 0; a < k->array->ndim; a++) {
		inside = inside && at[a] < k->array->axes[a].size;
		linear = linear * k->array->axes[a].size + at[a];
	}
	from = inside ? k->model + linear * k->elem : k->array->fill;
	for (size_t b = 0; b < k->elem; b++)
		to[b] = from[swap > 1 ? b / swap * swap + swap - 1 - b % swap : b];
}

/* Encodes the chunk at 'start' of 'size' elements, both by axis of the array; 'stored' is the
 * stored axis of each at the level above. */
static inline uint8_t *kit_chunk(const zarr_kit *k, const lade_zarr_chain *chain, rng *random,
                                 const uint64_t *start, const uint64_t *size,
                                 const size_t *stored_above, size_t *out_size)
{
	size_t ndim = k->array->ndim, stored[LADE_DIMS_MAX], axis_at[LADE_DIMS_MAX], count = 1;
	uint64_t at[LADE_DIMS_MAX], step[LADE_DIMS_MAX], grid[LADE_DIMS_MAX];
	for (size_t a = 0; a < ndim; a++) {
		stored[a] = chain->order ? chain->order[stored_above[a]] : stored_above[a];
		axis_at[stored[a]] = a;
		step[a] = chain->shard ? chain->shard->chunk_shape[stored[a]] : 1;
		grid[stored[a]] = size[a] / step[a];
		count *= (size_t)(size[a] / step[a]);
	}
	size_t head = chain->shard && chain->shard->index_first
		? count * 16 + chain->shard->index_extra : 0;
	uint8_t *bytes = calloc(1, chain->shard ? head + 1 : count * k->elem + 1);
	uint8_t *index = calloc(1, count * 16 + 1);
	size_t used = chain->shard ? head : count * k->elem;
	for (size_t i = 0; i < count; i++) {
		size_t left = i, inner_size = 0;
		for (size_t j = ndim; j-- > 0; left /= grid[j])
			at[axis_at[j]] = start[axis_at[j]] + left % grid[j] * step[axis_at[j]];
		if (!chain->shard) {
			kit_element(k, at, bytes + i * k->elem, chain->swap_size);
			continue;
		}
		bool outside = false, fill = true;
		for (size_t a = 0; a < ndim; a++)
			outside = outside || at[a] >= k->array->axes[a].size;
		uint8_t *inner = kit_chunk(k, &chain->shard->chunks, random, at, step, stored,
		                           &inner_size);
		/* What the model has as fill values is left out; see kit_make(). */
		if (!outside) {
			uint8_t *one = malloc(k->elem);
			uint64_t e[LADE_DIMS_MAX];
			size_t total = 1;
			for (size_t a = 0; a < ndim; a++)
				total *= (size_t)step[a];
			for (size_t n = 0; n < total && fill; n++) {
				size_t rest = n;
				for (size_t a = ndim; a-- > 0; rest /= step[a])
					e[a] = at[a] + rest % step[a];
				kit_element(k, e, one, 0);
				fill = memcmp(one, k->array->fill, k->elem) == 0;
			}
			free(one);
		}
		uint64_t entry[2] = {UINT64_MAX, UINT64_MAX};
		if (!outside && !fill) {
			size_t gap = rng_next(random) % 4;
			bytes = realloc(bytes, used + gap + inner_size + 1);
			memset(bytes + used, 0xEE, gap);
			memcpy(bytes + used + gap, inner, inner_size);
			entry[0] = used + gap;
			entry[1] = inner_size;
			used += gap + inner_size;
		}
		memcpy(index + i * 16, entry, 16);
		free(inner);
	}
	if (chain->shard) {
		size_t index_size = count * 16;
		index = kit_steps(&chain->shard->index, 0, index, &index_size);
		if (!chain->shard->index_first) {
			bytes = realloc(bytes, used + index_size + 1);
			memcpy(bytes + used, index, index_size);
			used += index_size;
		} else {
			memcpy(bytes, index, index_size);
		}
	}
	free(index);
	*out_size = used;
	return kit_steps(chain, chain->shard ? chain->array_step_count : 0, bytes, out_size);
}

/* Goes to the next index of a shape; false: that was the last one. */
static inline bool kit_next(uint64_t *at, const uint64_t *shape, size_t ndim)
{
	for (size_t a = ndim; a-- > 0; at[a] = 0)
		if (++at[a] < shape[a])
			return true;
	return false;
}

/* Writes all chunks; those of fill values only are left out. */
static inline void kit_write(zarr_kit *k, rng *random)
{
	size_t identity[LADE_DIMS_MAX];
	uint64_t chunk[LADE_DIMS_MAX] = {0}, counts[LADE_DIMS_MAX];
	uint64_t start[LADE_DIMS_MAX], size[LADE_DIMS_MAX], used[LADE_DIMS_MAX];
	char key[LADE_KEY_MAX + 1];
	for (size_t a = 0; a < k->array->ndim; a++) {
		identity[a] = a;
		counts[a] = k->array->axes[a].chunk_count;
		if (counts[a] == 0)
			return;
	}
	do {
		uint64_t at[LADE_DIMS_MAX] = {0};
		uint8_t one[64];
		bool fill = true;
		for (size_t a = 0; a < k->array->ndim; a++) {
			lade_zarr_extent extent;
			KIT_CHECK(lade_zarr_chunk_extent(&k->array->axes[a], chunk[a], &extent,
			                                 &kit_err));
			start[a] = extent.start;
			size[a] = extent.size;
			used[a] = extent.used;
		}
		do {
			uint64_t e[LADE_DIMS_MAX];
			for (size_t a = 0; a < k->array->ndim; a++)
				e[a] = start[a] + at[a];
			kit_element(k, e, one, 0);
			fill = fill && memcmp(one, k->array->fill, k->elem) == 0;
		} while (kit_next(at, used, k->array->ndim));
		if (fill)
			continue;
		size_t bytes_size;
		uint8_t *bytes = kit_chunk(k, &k->array->chain, random, start, size, identity,
		                           &bytes_size);
		KIT_CHECK(lade_zarr_chunk_key(k->node, chunk, key, &kit_err));
		kit_put(k->store, key, bytes, bytes_size);
		free(bytes);
	} while (kit_next(chunk, counts, k->array->ndim));
}

/* ---- random arrays ------------------------------------------------------------------------- */

static inline size_t kit_list(char *to, const uint64_t *numbers, size_t count)
{
	size_t n = (size_t)sprintf(to, "[");
	for (size_t i = 0; i < count; i++)
		n += (size_t)sprintf(to + n, "%s%" PRIu64, i ? "," : "", numbers[i]);
	return n + (size_t)sprintf(to + n, "]");
}

/* Codecs of a chunk of 'size'; 'axis' permutes nothing, as transposed sizes are the caller's. */
static inline size_t kit_codecs(char *to, rng *random, const uint64_t *size, size_t ndim,
                                size_t elem, int depth)
{
	static const char *const bytes[] = {
		"", ",{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}",
		",{\"name\":\"gzip\",\"configuration\":{\"level\":1}},{\"name\":\"crc32c\"}",
		",{\"name\":\"numcodecs.lz4\",\"configuration\":{}}",
		",{\"name\":\"numcodecs.lz4\",\"configuration\":{}},{\"name\":\"crc32c\"}",
	};
	uint64_t order[LADE_DIMS_MAX], inner[LADE_DIMS_MAX], turned[LADE_DIMS_MAX];
	size_t n = (size_t)sprintf(to, "[");
	memcpy(turned, size, ndim * sizeof *size);
	if (ndim > 1 && rng_next(random) % 3 == 0) {
		for (size_t i = 0; i < ndim; i++)
			order[i] = i;
		for (size_t i = ndim; i-- > 1;) {
			size_t other = rng_next(random) % (i + 1);
			uint64_t kept = order[i];
			order[i] = order[other];
			order[other] = kept;
		}
		for (size_t i = 0; i < ndim; i++)
			turned[i] = size[order[i]];
		n += (size_t)sprintf(to + n, "{\"name\":\"transpose\",\"configuration\":{"
		                             "\"order\":");
		n += kit_list(to + n, order, ndim);
		n += (size_t)sprintf(to + n, "}},");
	}
	if (depth > 0 && rng_next(random) % 2) {
		for (size_t i = 0; i < ndim; i++)
			for (inner[i] = 1 + rng_next(random) % turned[i]; turned[i] % inner[i];)
				inner[i]--;
		n += (size_t)sprintf(to + n, "{\"name\":\"sharding_indexed\",\"configuration\":{"
		                             "\"chunk_shape\":");
		n += kit_list(to + n, inner, ndim);
		n += (size_t)sprintf(to + n, ",\"codecs\":");
		n += kit_codecs(to + n, random, inner, ndim, elem, depth - 1);
		n += (size_t)sprintf(to + n,
		                     ",\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":{"
		                     "\"endian\":\"little\"}}%s],\"index_location\":\"%s\"}}",
		                     rng_next(random) % 2 ? ",{\"name\":\"crc32c\"}" : "",
		                     rng_next(random) % 2 ? "start" : "end");
		if (rng_next(random) % 6 == 0)
			n += (size_t)sprintf(to + n, "%s", bytes[1]);
	} else {
		n += (size_t)sprintf(to + n,
		                     "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"%s\"}}",
		                     rng_next(random) % 3 ? "little" : "big");
		if (rng_next(random) % 3 == 0)
			n += (size_t)sprintf(to + n,
			                     ",{\"name\":\"blosc\",\"configuration\":{\"cname\":"
			                     "\"lz4\",\"clevel\":5,\"shuffle\":\"shuffle\","
			                     "\"typesize\":%zu,\"blocksize\":0}}", elem);
		else
			n += (size_t)sprintf(to + n, "%s", bytes[rng_next(random) % 5]);
	}
	return n + (size_t)sprintf(to + n, "]");
}

/* Fills the model: numbers that differ, with holes of fill values. */
static inline void kit_fill_model(zarr_kit *k, rng *random)
{
	k->elem = (size_t)k->array->type.size;
	k->count = 1;
	for (size_t a = 0; a < k->array->ndim; a++)
		k->count *= (size_t)k->array->axes[a].size;
	k->model = malloc(k->count * k->elem + 1);
	uint64_t low = rng_next(random) % 8, high = low + rng_next(random) % 6;
	for (size_t i = 0; i < k->count; i++) {
		uint64_t value = i * 0x9E3779B97F4A7C15u, lead = i;
		for (size_t a = k->array->ndim; a-- > 1; lead /= k->array->axes[a].size)
			;
		for (size_t b = 0; b < k->elem; b++)
			k->model[i * k->elem + b] = (uint8_t)(value >> 8 * (b % 8));
		if (lead >= low && lead < high)
			memcpy(k->model + i * k->elem, k->array->fill, k->elem);
	}
}

/* Opens the array of k->json, of 'size' bytes, in new stores and writes its chunks. */
static inline void kit_store(zarr_kit *k, rng *random, size_t size)
{
	KIT_CHECK(lade_store_memory_new(LADE_PLACE_HOST, NULL, &k->store, &kit_err));
	kit_put(k->store, "zarr.json", k->json, size);
	KIT_CHECK(lade_zarr_open(k->store, "", NULL, &k->node, &kit_err));
	k->array = lade_zarr_as_array(k->node);
	const lade_store_ops ops = {.struct_size = sizeof ops, .read = kit_far_read};
	KIT_CHECK(lade_store_new(&ops, k->store, "far", &k->far, &kit_err));
	KIT_CHECK(lade_zarr_open(k->far, "", NULL, &k->far_node, &kit_err));
	kit_fill_model(k, random);
	kit_write(k, random);
}

/* An array without codecs, of 16 bytes an element and of chunks that are large enough to be read in
 * parts: of any byte order and order of axes, in shards or not. */
static inline void kit_make_plain(zarr_kit *k, rng *random)
{
	static const char *const orders[] = {"0,1,2", "2,1,0", "1,2,0"};
	const uint64_t which = rng_next(random) % 3, shards = rng_next(random) % 2;
	const uint64_t shape[3] = {24, 60, 62}, chunk[3] = {16, 60, 40}, inner[3] = {8, 60, 40};
	uint64_t turned[3], axis[3] = {0, 1, 2};
	size_t n = (size_t)sprintf(k->json, "{\"zarr_format\":3,\"node_type\":\"array\","
	                                    "\"data_type\":\"complex128\",\"fill_value\":[1,2],"
	                                    "\"chunk_key_encoding\":{\"name\":\"default\"},"
	                                    "\"shape\":");
	n += kit_list(k->json + n, shape, 3);
	n += (size_t)sprintf(k->json + n, ",\"chunk_grid\":{\"name\":\"regular\","
	                                  "\"configuration\":{\"chunk_shape\":");
	n += kit_list(k->json + n, chunk, 3);
	n += (size_t)sprintf(k->json + n, "}},\"codecs\":[{\"name\":\"transpose\","
	                                  "\"configuration\":{\"order\":[%s]}}", orders[which]);
	sscanf(orders[which], "%" SCNu64 ",%" SCNu64 ",%" SCNu64, &axis[0], &axis[1], &axis[2]);
	for (size_t a = 0; a < 3; a++)
		turned[a] = inner[axis[a]];
	if (shards) {
		n += (size_t)sprintf(k->json + n, ",{\"name\":\"sharding_indexed\","
		                                  "\"configuration\":{\"index_codecs\":[{\"name\":"
		                                  "\"bytes\",\"configuration\":{\"endian\":"
		                                  "\"little\"}}],\"chunk_shape\":");
		n += kit_list(k->json + n, turned, 3);
		n += (size_t)sprintf(k->json + n, ",\"codecs\":[");
	}
	n += (size_t)sprintf(k->json + n, "%s{\"name\":\"bytes\",\"configuration\":{"
	                                  "\"endian\":\"%s\"}}%s]}", shards ? "" : ",",
	                     rng_next(random) % 3 ? "little" : "big", shards ? "]}}" : "");
	kit_store(k, random, n);
}

/* A random array of format 3; 'depth': how deep shards may be nested. */
static inline void kit_make(zarr_kit *k, rng *random, int depth)
{
	static const struct {
		const char *name;
		size_t size;
	} types[] = {{"uint8", 1}, {"int16", 2}, {"float32", 4}, {"uint64", 8}, {"complex64", 8},
	             {"complex128", 16}};
	uint64_t shape[LADE_DIMS_MAX], chunk[LADE_DIMS_MAX];
	size_t ndim = rng_next(random) % 5, type = rng_next(random) % 6, n;
	for (size_t a = 0; a < ndim; a++) {
		shape[a] = rng_next(random) % (ndim > 2 ? 9 : 40);
		chunk[a] = 1 + rng_next(random) % (ndim > 2 ? 6 : 24);
	}
	n = (size_t)sprintf(k->json, "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":");
	n += kit_list(k->json + n, shape, ndim);
	n += (size_t)sprintf(k->json + n, ",\"data_type\":\"%s\",\"fill_value\":%s,\"chunk_grid\":"
	                                  "{\"name\":\"regular\",\"configuration\":{"
	                                  "\"chunk_shape\":", types[type].name,
	                     type > 3 ? "[1.5,-2]" : "7");
	n += kit_list(k->json + n, chunk, ndim);
	n += (size_t)sprintf(k->json + n, "}},\"chunk_key_encoding\":{\"name\":\"default\"},"
	                                  "\"codecs\":");
	n += kit_codecs(k->json + n, random, chunk, ndim, types[type].size, depth);
	n += (size_t)sprintf(k->json + n, "}");
	kit_store(k, random, n);
}

static inline void kit_free(zarr_kit *k)
{
	lade_zarr_unref(k->node);
	lade_zarr_unref(k->far_node);
	lade_store_unref(k->far);
	lade_store_unref(k->store);
	free(k->model);
}

#endif
