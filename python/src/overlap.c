/*
 * overlap.c: whether the destinations of one call lie apart from each other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec.h"

#include <stdlib.h>
#include <string.h>

/* Of strided destinations so many that begin behind one are compared with it. */
#define NEIGHBOURS 8
/* Slots of the table for each destination. */
#define SLOTS_EACH 8

typedef struct region {
	uintptr_t at, end;
	size_t row, pitch; /* 'pitch' 0: contiguous */
	size_t item;
} region;

static bool read_region(const py_regions *r, size_t i, region *out)
{
	const char *from = (const char *)r->first + i * r->step;
	uintptr_t at;
	size_t size, rows[2] = {0, 0};

	memcpy(&at, from, sizeof(at));
	memcpy(&size, from + r->size_at, sizeof(size));
	if (r->rows_at)
		memcpy(rows, from + r->rows_at, sizeof(rows));
	*out = (region){at, at + size, rows[0], rows[1], i};
	return size != 0;
}

/* Whether two share a byte, where 'b' does not begin before 'a', but before its end. */
static bool share(const region *a, const region *b)
{
	size_t pitch = a->pitch, width = b->pitch ? b->row : b->end - b->at, gap;

	/* What is contiguous has the first byte of all that begins within it. */
	if (!pitch)
		return true;
	/* Rows at other distances are not looked at. */
	if (b->pitch && b->pitch != pitch)
		return false;
	gap = (b->at - a->at) % pitch;
	/* In a row, or from behind it into the next one, if there is one. */
	return gap < a->row || (gap + width > pitch && b->at + (pitch - gap) < a->end);
}

static bool refuse(size_t a, size_t b)
{
	PyErr_Format(PyExc_ValueError, "out: the destinations of items %zu and %zu overlap",
	             a < b ? a : b, a < b ? b : a);
	return false;
}

/*
 * Contiguous ones by a table of slots, each as wide as the largest power of two that all sizes
 * reach: two in one slot overlap, and else the table has them in order.  Sorting 10,000 takes ten
 * times as long.  False where such a table would be too large; '*apart' is the answer.
 */
static bool slots_apart(py_state *st, const py_regions *r, size_t count, bool *apart)
{
	uintptr_t first = UINTPTR_MAX, last = 0, end = 0;
	size_t least = SIZE_MAX, slots, before = 0;
	unsigned shift = 0;
	uint32_t *table;
	region one;

	for (size_t i = 0; i < count; i++) {
		if (!read_region(r, i, &one))
			continue;
		if (one.pitch)
			return false;
		first = one.at < first ? one.at : first;
		last = one.at > last ? one.at : last;
		least = one.end - one.at < least ? one.end - one.at : least;
	}
	while (least >> shift > 1)
		shift++;
	slots = ((last - first) >> shift) + 1;
	if (count > UINT32_MAX - 1 || slots / SLOTS_EACH > count)
		return false;
	table = py_room_take(st, slots * sizeof(*table));
	if (!table)
		return false;
	memset(table, 0, slots * sizeof(*table));
	*apart = true;
	for (size_t i = 0; *apart && i < count; i++) {
		if (!read_region(r, i, &one))
			continue;
		uint32_t *slot = &table[(one.at - first) >> shift];
		if (*slot)
			*apart = refuse(*slot - 1, i);
		*slot = (uint32_t)i + 1;
	}
	for (size_t s = 0; *apart && s < slots; s++) {
		if (!table[s])
			continue;
		read_region(r, table[s] - 1, &one);
		if (one.at < end)
			*apart = refuse(before, one.item);
		end = one.end;
		before = one.item;
	}
	py_room_give(st, table);
	return true;
}

static int order(const void *a, const void *b)
{
	uintptr_t x = ((const region *)a)->at, y = ((const region *)b)->at;

	return (x > y) - (x < y);
}

/* All of them in order, each with those that begin behind it. */
static bool sorted_apart(py_state *st, const py_regions *r, size_t count)
{
	region *list = py_room_take(st, count * sizeof(*list));
	size_t n = 0;
	bool apart = true;

	if (!list)
		return PyErr_NoMemory() != NULL;
	for (size_t i = 0; i < count; i++)
		n += read_region(r, i, &list[n]);
	qsort(list, n, sizeof(*list), order);
	for (size_t i = 0; apart && i < n; i++)
		for (size_t k = i + 1; apart && k < n && k <= i + NEIGHBOURS; k++) {
			if (list[k].at >= list[i].end)
				break;
			if (share(&list[i], &list[k]))
				apart = refuse(list[i].item, list[k].item);
		}
	py_room_give(st, list);
	return apart;
}

bool py_regions_apart(py_state *st, const py_regions *r, size_t count)
{
	uintptr_t end = 0;
	region one;
	size_t i = 0;
	bool apart;

	/* Mostly each begins behind the one before. */
	for (; i < count; i++) {
		if (!read_region(r, i, &one))
			continue;
		if (one.at < end)
			break;
		end = one.end;
	}
	if (i == count)
		return true;
	return slots_apart(st, r, count, &apart) ? apart : sorted_apart(st, r, count);
}
