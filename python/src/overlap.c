/*
 * overlap.c: whether the destinations of one call lie apart from each other and from the sources.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec.h"

#include <stdlib.h>
#include <string.h>

/* Of strided ones so many that begin behind one are compared with it. */
#define NEIGHBOURS 8
/* Slots of the table for each destination. */
#define SLOTS_EACH 8
/* Of sources and of destinations each gets code of its own. */
#define INLINE static inline __attribute__((always_inline))
/* The pitch of what is no rows of one pitch. */
#define UNEVEN SIZE_MAX

typedef struct region {
	uintptr_t at, end;
	size_t row, pitch; /* 'pitch' 0: contiguous */
	size_t item;
} region;

/* The array that a destination's bytes come to at the end. */
static region array_region(const py_array *array, size_t i)
{
	region out = {.item = i};
	char *first;
	size_t extent;

	/* All of it may be one row, backwards or with its dimensions in another order. */
	if (!py_memory_rows(array, &first, &extent, &out.row, &out.pitch))
		out.pitch = out.row == extent ? 0 : UNEVEN;
	out.at = (uintptr_t)first;
	out.end = out.at + extent;
	return out;
}

/* A destination, or a source.  False: it is empty. */
INLINE bool read_region(const py_regions *r, bool src, size_t i, region *out)
{
	const lade_item *item = r->items ? &r->items[i] : NULL;

	*out = (region){.item = i};
	if (!item) {
		out->at = src ? r->src[i] : r->dst[i];
		out->end = out->at + (src ? r->src_size[i] : r->dst_cap[i]);
	} else if (!src && r->outs && r->outs[i].scratch) {
		*out = array_region(r->outs[i].array, i);
	} else {
		out->at = (uintptr_t)(src ? item->src->data : item->dst.data);
		out->end = out->at + (src ? item->src->size : item->dst.size);
		out->row = item->row_size;
		out->pitch = src == r->encode ? item->row_pitch : 0; /* the decoded side's */
	}
	return out->at != out->end;
}

/* Whether two share a byte, where 'b' does not begin before 'a', but before its end. */
static bool share(const region *a, const region *b)
{
	size_t pitch = a->pitch, width = b->pitch ? b->row : b->end - b->at, gap;

	/* What is contiguous has the first byte of all that begins within it. */
	if (!pitch || a->at == b->at)
		return true;
	/* Rows at other distances are not looked at. */
	if (pitch == UNEVEN || (b->pitch && b->pitch != pitch))
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

static bool refuse_source(const py_regions *r, size_t dst, size_t src)
{
	if (dst != src)
		PyErr_Format(PyExc_ValueError,
		             "out: the destination of item %zu overlaps the source of item %zu",
		             dst, src);
	else if (r->batch)
		PyErr_Format(PyExc_ValueError, "out %zu: the destination overlaps the source", dst);
	else
		PyErr_SetString(PyExc_ValueError, "out: the destination overlaps the source");
	return false;
}

/* ---- all destinations in order ---------------------------------------------------------- */

/* What is known of all of them. */
typedef struct hull {
	uintptr_t first, last, end; /* of the lowest, of the highest, and of the furthest */
	size_t least;               /* bytes of the smallest */
	bool flat;                  /* all are contiguous */
	bool ascending;             /* each begins behind the one before */
} hull;

INLINE hull hull_of(const py_regions *r, bool src, size_t count)
{
	hull h = {UINTPTR_MAX, 0, 0, SIZE_MAX, true, true};
	region one;

	for (size_t i = 0; i < count; i++) {
		if (!read_region(r, src, i, &one))
			continue;
		h.ascending &= one.at >= h.end;
		h.flat &= !one.pitch;
		h.first = one.at < h.first ? one.at : h.first;
		h.last = one.at > h.last ? one.at : h.last;
		h.end = one.end > h.end ? one.end : h.end;
		h.least = one.end - one.at < h.least ? one.end - one.at : h.least;
	}
	return h;
}

/*
 * Contiguous ones by a table of slots, each as wide as the largest power of two that all sizes
 * reach: two in one slot overlap, and else the table has them in order.  Sorting 10,000 takes ten
 * times as long.  'list' gets as many as '*n' says.
 */
typedef enum sorted { SORTED, NOT_SORTED, OVERLAP } sorted;

static sorted sort_by_slots(py_state *st, const py_regions *r, size_t count, const hull *h,
                            region *list, size_t *n)
{
	unsigned shift = 0;
	size_t slots;
	uint32_t *table;
	sorted result = SORTED;
	region one;

	while (h->least >> shift > 1)
		shift++;
	slots = ((h->last - h->first) >> shift) + 1;
	if (!h->flat || count > UINT32_MAX - 1 || slots / SLOTS_EACH > count)
		return NOT_SORTED;
	table = py_room_take(st, slots * sizeof(*table));
	if (!table)
		return NOT_SORTED;
	memset(table, 0, slots * sizeof(*table));
	for (size_t i = 0; result == SORTED && i < count; i++) {
		if (!read_region(r, false, i, &one))
			continue;
		uint32_t *slot = &table[(one.at - h->first) >> shift];
		if (*slot) {
			refuse(*slot - 1, i);
			result = OVERLAP;
		}
		*slot = (uint32_t)i + 1;
	}
	for (size_t s = 0; result == SORTED && s < slots; s++)
		if (table[s])
			read_region(r, false, table[s] - 1, &list[(*n)++]);
	py_room_give(st, table);
	return result;
}

static int order(const void *a, const void *b)
{
	uintptr_t x = ((const region *)a)->at, y = ((const region *)b)->at;

	return (x > y) - (x < y);
}

/* False with an exception set where two of them were found to overlap by the way. */
static bool sort(py_state *st, const py_regions *r, size_t count, const hull *h, region *list,
                 size_t *n)
{
	sorted by_slots = h->ascending ? NOT_SORTED : sort_by_slots(st, r, count, h, list, n);

	if (by_slots != NOT_SORTED)
		return by_slots == SORTED;
	for (size_t i = 0; i < count; i++)
		*n += read_region(r, false, i, &list[*n]);
	if (!h->ascending)
		qsort(list, *n, sizeof(*list), order);
	return true;
}

/* ---- comparing -------------------------------------------------------------------------- */

static bool dsts_apart(const region *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; k < n && k <= i + NEIGHBOURS; k++) {
			if (list[k].at >= list[i].end)
				break;
			if (share(&list[i], &list[k]))
				return refuse(list[i].item, list[k].item);
		}
	return true;
}

/* Where in a list what begins in each of some equal parts of its memory is found. */
typedef struct parts {
	uint32_t *from; /* one more than there are parts; NULL: no memory */
	size_t count;
	unsigned shift;
} parts;

static parts parts_of(py_state *st, const region *list, size_t n)
{
	uintptr_t range = list[n - 1].at - list[0].at;
	parts p = {.count = 1};
	size_t i = 0;

	while (range >> p.shift > 4 * n)
		p.shift++;
	p.count = (range >> p.shift) + 1;
	p.from = n > UINT32_MAX ? NULL : py_room_take(st, (p.count + 1) * sizeof(*p.from));
	for (size_t part = 0; p.from && part <= p.count; part++) {
		while (i < n && (list[i].at - list[0].at) >> p.shift < part)
			i++;
		p.from[part] = (uint32_t)i;
	}
	return p;
}

/* The last of a list that begins before 'end', which the first one does. */
static size_t last_before(const region *list, size_t n, const parts *p, uintptr_t end)
{
	size_t low = 0, high = n, part = (end - 1 - list[0].at) >> p->shift;

	if (p->from && part < p->count) {
		low = p->from[part] ? p->from[part] - 1 : 0;
		high = p->from[part + 1];
	} else if (p->from) {
		low = n - 1;
	}
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		if (list[middle].at < end)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Contiguous destinations, which lie apart, end in the order in which they begin; the last may be
 * the source's own. */
static bool sources_apart(py_state *st, const py_regions *r, size_t count, const region *list,
                          size_t n, bool flat)
{
	size_t looks = flat ? 2 : NEIGHBOURS;
	parts p = parts_of(st, list, n);
	bool apart = true;
	region s;

	for (size_t i = 0; apart && i < count; i++) {
		if (!read_region(r, true, i, &s) || list[0].at >= s.end)
			continue;
		size_t k = last_before(list, n, &p, s.end);
		for (size_t j = 0; apart && j < looks && j <= k; j++) {
			const region *d = &list[k - j];
			if (d->item != i && d->end > s.at &&
			    (d->at <= s.at ? share(d, &s) : share(&s, d)))
				apart = refuse_source(r, d->item, i);
		}
	}
	py_room_give(st, p.from);
	return apart;
}

/* Decoders may read twice what they check once: nobody is to write there meanwhile. */
static bool own_apart(const py_regions *r, size_t count)
{
	region src, dst;

	for (size_t i = 0; i < count; i++) {
		if (r->outs && r->outs[i].scratch)
			continue;
		if (read_region(r, true, i, &src) && read_region(r, false, i, &dst) &&
		    src.at < dst.end && dst.at < src.end &&
		    (dst.at <= src.at ? share(&dst, &src) : share(&src, &dst)))
			return refuse_source(r, i, i);
	}
	return true;
}

bool py_regions_apart(py_state *st, const py_regions *r, size_t count)
{
	hull dsts, srcs;
	region *list;
	size_t n = 0;
	bool near = false, apart;

	if (count == 1)
		return own_apart(r, count);
	dsts = hull_of(r, false, count);
	if (!r->fixed) {
		srcs = hull_of(r, true, count);
		near = srcs.first < dsts.end && dsts.first < srcs.end;
	}
	if (near && !own_apart(r, count))
		return false;
	/* Mostly each begins behind the one before, and all sources are elsewhere. */
	if (dsts.ascending && !near)
		return true;
	list = py_room_take(st, count * sizeof(*list));
	if (!list)
		return PyErr_NoMemory() != NULL;
	apart = sort(st, r, count, &dsts, list, &n) && dsts_apart(list, n) &&
	        (!near || sources_apart(st, r, count, list, n, dsts.flat));
	py_room_give(st, list);
	return apart;
}
