/*
 * index.c: the words of a shard's index, from and to the order in which they are stored.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/support.h"
#include "zarr/select.h"

/* An index has one axis more than its shard: offset and size. */
#define AXES_MAX (LADE_DIMS_MAX + 1)

/* Goes through the words in C order of the index's axes; 'off' is a word's place where it is
 * stored. */
typedef struct tour {
	size_t axes, size[AXES_MAX], at[AXES_MAX];
	size_t step[AXES_MAX]; /* words between neighbours along an axis */
	size_t off, count;
} tour;

static void begin(tour *t, const lade_zarr_chain *index, size_t ndim, const size_t *grid)
{
	size_t axis_at[AXES_MAX];
	*t = (tour){.axes = ndim + 1, .count = 1};
	for (size_t i = 0; i <= ndim; i++) {
		t->size[i] = i < ndim ? grid[i] : 2;
		axis_at[index->order ? index->order[i] : i] = i;
	}
	for (size_t j = ndim + 1; j-- > 0; t->count *= t->size[axis_at[j]])
		t->step[axis_at[j]] = t->count;
}

static void next(tour *t)
{
	for (size_t i = t->axes; i-- > 0;) {
		t->off += t->step[i];
		if (++t->at[i] < t->size[i])
			return;
		t->off -= t->step[i] * t->size[i];
		t->at[i] = 0;
	}
}

void lade__index_load(const lade_zarr_chain *index, size_t ndim, const size_t *grid,
                      const uint8_t *bytes, uint64_t *words)
{
	tour t;
	begin(&t, index, ndim, grid);
	for (size_t i = 0; i < t.count; i++, next(&t)) {
		uint64_t word = lade__le64(bytes + 8 * t.off);
		words[i] = index->swap_size ? __builtin_bswap64(word) : word;
	}
}

void lade__index_store(const lade_zarr_chain *index, size_t ndim, const size_t *grid,
                       const uint64_t *words, uint8_t *bytes)
{
	tour t;
	begin(&t, index, ndim, grid);
	for (size_t i = 0; i < t.count; i++, next(&t))
		lade__le_put(bytes + 8 * t.off,
		             index->swap_size ? __builtin_bswap64(words[i]) : words[i], 8);
}
