/*
 * apart.c: whether the destinations of one call are apart from each other and from the sources.
 *
 * Contiguous destinations that do not overlap end in the order in which they begin.  So all of them
 * are put in order, and each is compared with its neighbours: O(n) for the usual lists, without a
 * table when each destination begins behind the one before.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "array/given.h"
#include "array/plan.h"
#include "base/support.h"
#include "base/try.h"

#include <lade/array.h>

#include <stdlib.h>

/* A strided destination is compared with this many that begin behind it. */
#define NEIGHBOURS 8
/* Slots of the table for each destination. */
#define SLOTS_EACH 8
/* Steps of the search for a byte that two strided regions share. */
#define STEPS_MAX 4096
/* Sums of two extents stay below 2^63. */
#define EXTENT_MAX (INT64_MAX / 4)
#define ALIGN 64
/* The loops over sources and destinations get code of their own each. */
#define INLINE static inline __attribute__((always_inline))

/* What a call was given. */
typedef struct call {
	const lade_item *items;    /* NULL: 'arrays' */
	const lade_arrays *arrays;
	const lade_region *dsts;   /* in place of some items' own, or NULL */
	size_t count;
	lade_direction direction;
	const lade_allocator *scratch;
} call;

/* The bytes [at, end), maybe with gaps, of item 'item': its output or segment 'part'. */
typedef struct piece {
	uintptr_t at, end;
	size_t item;
	uint32_t part;
	bool strided;
} piece;

/* ---- reading ---------------------------------------------------------------------------- */

INLINE void set_piece(piece *out, const void *data, uint64_t size)
{
	out->at = (uintptr_t)data;
	out->end = size > UINTPTR_MAX - out->at ? UINTPTR_MAX : out->at + size;
}

/* Lowest byte and end of a region.  Fails: LADE_E_ARG */
static lade_status region_hull(const lade_region *region, piece *out, lade_error *err)
{
	uint64_t below = 0, extent = region->size;
	bool empty = !region->size;

	if (region->ndim > LADE_DIMS_MAX || (region->ndim && (!region->count || !region->strides)))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "a region has %zu dimensions, at most %d, or NULL tables",
		                 region->ndim, LADE_DIMS_MAX);
	for (size_t i = 0; i < region->ndim; i++)
		empty |= !region->count[i];
	for (size_t i = 0; !empty && i < region->ndim; i++) {
		ptrdiff_t stride = region->strides[i];
		uint64_t step = stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride, all;
		if (__builtin_mul_overflow(step, (uint64_t)region->count[i] - 1, &all) ||
		    all > EXTENT_MAX || extent + all > EXTENT_MAX)
			return lade_fail(
				err, LADE_E_ARG, LADE_NO_OFFSET,
				"a region of %zu elements with a stride of %td bytes overflows",
				region->count[i], stride);
		extent += all;
		below += stride < 0 ? all : 0;
	}
	if (below > (uintptr_t)region->data || extent > EXTENT_MAX)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "a region of %llu bytes overflows", (unsigned long long)extent);
	out->strided = region->ndim != 0;
	set_piece(out, (const char *)region->data - below, empty ? 0 : extent);
	return LADE_OK;
}

/* The part of a span that a layout reaches.  What is no valid layout touches nothing: the batch
 * refuses the item. */
static void layout_hull(const lade_layout *layout, lade_direction direction, const void *data,
                        size_t size, piece *out)
{
	lade__plan plan;
	bool valid = lade__plan_make(layout, direction, size, &plan, NULL) == LADE_OK;

	out->strided = true;
	set_piece(out, valid ? (const char *)data + plan.span_first : NULL,
	          valid ? plan.span_end - plan.span_first : 0);
}

INLINE size_t dst_count(const call *c, size_t i)
{
	return c->items && c->items[i].output_count ? c->items[i].output_count : 1;
}

/* Output 'k' of destination 'i'.  False: it is empty. */
INLINE bool read_dst(const call *c, size_t i, size_t k, piece *out)
{
	out->item = i;
	out->part = (uint32_t)k;
	out->strided = false;
	if (!c->items) {
		set_piece(out, c->arrays->dst[i], c->arrays->dst_cap[i]);
	} else if (c->dsts && c->dsts[i].data) {
		region_hull(&c->dsts[i], out, NULL); /* it was checked */
	} else {
		const lade_item *item = &c->items[i];
		const lade_item_output *output = item->output_count ? &item->outputs[k] : NULL;
		const lade_span *dst = output ? &output->dst : &item->dst;
		const lade_layout *layout = output ? output->layout : item->layout;
		if (layout && c->direction == LADE_DECODE) {
			layout_hull(layout, LADE_DECODE, dst->data, dst->size, out);
		} else {
			set_piece(out, dst->data, dst->size);
		}
	}
	return out->at != out->end;
}

INLINE size_t src_count(const call *c, size_t i)
{
	return c->items ? c->items[i].src_count : 1;
}

/* Segment 'k' of source 'i'.  False: it is empty. */
INLINE bool read_src(const call *c, size_t i, size_t k, piece *out)
{
	out->item = i;
	out->part = (uint32_t)k;
	out->strided = false;
	if (!c->items) {
		set_piece(out, c->arrays->src[i], c->arrays->src_size[i]);
	} else {
		const lade_item *item = &c->items[i];
		if (item->layout && c->direction == LADE_ENCODE) {
			layout_hull(item->layout, LADE_ENCODE, item->src[k].data, item->src[k].size,
			            out);
		} else {
			set_piece(out, item->src[k].data, item->src[k].size);
		}
	}
	return out->at != out->end;
}

/* ---- two of them ------------------------------------------------------------------------ */

/* An axis: multiples 0 to count - 1 of 'step'. */
typedef struct axis {
	int64_t step, count;
} axis;

/* Where the runs of a piece are: each 'run' bytes, axes with the widest step first. */
typedef struct grid {
	int64_t run;
	size_t ndim;
	axis axes[2 * LADE_DIMS_MAX];
} grid;

static void add_axis(grid *g, int64_t step, int64_t count)
{
	size_t at = g->ndim;

	if (count < 2 || !step)
		return;
	g->ndim++;
	for (; at && g->axes[at - 1].step < step; at--)
		g->axes[at] = g->axes[at - 1];
	g->axes[at] = (axis){step, count};
}

static void add_region(grid *g, const lade_region *region)
{
	g->run = (int64_t)region->size;
	for (size_t i = 0; i < region->ndim; i++)
		if (region->count[i] > 1)
			add_axis(g, llabs(region->strides[i]), (int64_t)region->count[i]);
}

static void add_layout(grid *g, const lade_layout *layout, lade_direction direction, size_t size)
{
	lade__plan plan;

	if (lade__plan_make(layout, direction, size, &plan, NULL) != LADE_OK)
		return;
	g->run = (int64_t)plan.run;
	for (size_t i = 0; i < plan.ndim; i++)
		add_axis(g, llabs(plan.axis[i].span), (int64_t)plan.axis[i].count);
}

static void grid_of(const call *c, bool src, const piece *p, grid *g)
{
	const lade_region *region = c->dsts && !src ? &c->dsts[p->item] : NULL;
	const lade_item *item = c->items ? &c->items[p->item] : NULL;
	const lade_item_output *output = !src && item && item->output_count
	                                         ? &item->outputs[p->part]
	                                         : NULL;
	const lade_layout *layout = output ? output->layout : item ? item->layout : NULL;

	g->run = (int64_t)(p->end - p->at);
	g->ndim = 0;
	if (!p->strided || p->end - p->at > EXTENT_MAX)
		return;
	if (region && region->data)
		add_region(g, region);
	else if (layout)
		add_layout(g, layout, c->direction,
		           src      ? item->src[p->part].size
		           : output ? output->dst.size
		                    : item->dst.size);
	/* Elements that follow one another are one run. */
	while (g->ndim && g->axes[g->ndim - 1].step <= g->run) {
		g->ndim--;
		g->run += g->axes[g->ndim].step * (g->axes[g->ndim].count - 1);
	}
}

/* Whether a sum of one multiple of each axis is in [lo, hi]; rest[i]: the largest sum of those from
 * axis i on. */
static bool find_sum(const axis *axes, const int64_t *rest, size_t n, int64_t lo, int64_t hi,
                     unsigned *steps)
{
	int64_t first, last;

	if (lo <= 0 && hi >= 0)
		return true;
	if (hi < 0 || lo > rest[0] || !*steps)
		return false;
	--*steps;
	/* n is not 0: rest[0] >= lo > 0. */
	last = hi / axes->step;
	last = last < axes->count ? last : axes->count - 1;
	if (n == 1)
		return last * axes->step >= lo;
	first = lo > rest[1] ? (lo - rest[1] + axes->step - 1) / axes->step : 0;
	for (int64_t z = last; z >= first; z--)
		if (find_sum(axes + 1, rest + 1, n - 1, lo - z * axes->step, hi - z * axes->step,
		             steps))
			return true;
	return false;
}

/*
 * Whether two pieces, whose extents overlap, share a byte.  Runs of a and b begin at
 *     a.at + (sums of a's axes)    b.at + (sums of b's axes)
 * and share a byte if the second is less than a.run behind the first, or the first less than b.run
 * behind the second.  a's sums counted from their end: S = (largest sum of a) - (a's) + (b's) is
 * again a sum of multiples, and must be in (hi - a.run - b.run + 1, hi].  Equal steps are one axis.
 */
static bool share(const call *c, const piece *a, bool a_src, const piece *b, bool b_src)
{
	int64_t rest[2 * LADE_DIMS_MAX + 1], hi, of_a = 0;
	unsigned steps = STEPS_MAX;
	grid ga, gb;

	if (!a->strided && !b->strided)
		return true;
	if (a->end - a->at > EXTENT_MAX || b->end - b->at > EXTENT_MAX)
		return true;
	grid_of(c, a_src, a, &ga);
	grid_of(c, b_src, b, &gb);
	for (size_t i = 0; i < ga.ndim; i++)
		of_a += ga.axes[i].step * (ga.axes[i].count - 1);
	hi = (int64_t)(a->at - b->at) + of_a + ga.run - 1;
	for (size_t i = 0; i < gb.ndim; i++) {
		size_t k = 0;
		while (k < ga.ndim && ga.axes[k].step != gb.axes[i].step)
			k++;
		if (k < ga.ndim)
			ga.axes[k].count += gb.axes[i].count - 1;
		else
			add_axis(&ga, gb.axes[i].step, gb.axes[i].count);
	}
	rest[ga.ndim] = 0;
	for (size_t i = ga.ndim; i-- > 0;)
		rest[i] = rest[i + 1] + ga.axes[i].step * (ga.axes[i].count - 1);
	return find_sum(ga.axes, rest, ga.ndim, hi - ga.run - gb.run + 2, hi, &steps);
}

static lade_status refuse(size_t a, size_t b, lade_error *err)
{
	if (a == b)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "two outputs of item %zu overlap", a);
	return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
	                 "the destinations of items %zu and %zu overlap", a < b ? a : b,
	                 a < b ? b : a);
}

static lade_status refuse_source(const call *c, size_t dst, size_t src, lade_error *err)
{
	if (dst != src)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "the destination of item %zu overlaps the source of item %zu", dst,
		                 src);
	if (c->count > 1)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "the destination of item %zu overlaps its source", dst);
	return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "the destination overlaps the source");
}

/* ---- all destinations in order ---------------------------------------------------------- */

/* What is known of all sources, or all destinations. */
typedef struct hull {
	uintptr_t first, last, end; /* of the lowest, of the highest, and of the furthest */
	size_t least;               /* bytes of the smallest */
	size_t count;
	bool flat;                  /* all are contiguous, and one an item */
	bool ascending;             /* each begins behind the one before */
} hull;

INLINE void hull_add(hull *h, const piece *p)
{
	h->ascending &= p->at >= h->end;
	h->flat &= !p->strided && !p->part;
	h->count++;
	h->first = p->at < h->first ? p->at : h->first;
	h->last = p->at > h->last ? p->at : h->last;
	h->end = p->end > h->end ? p->end : h->end;
	h->least = p->end - p->at < h->least ? p->end - p->at : h->least;
}

INLINE hull hull_of(const call *c, bool src)
{
	hull h = {UINTPTR_MAX, 0, 0, SIZE_MAX, 0, true, true};
	piece p;

	for (size_t i = 0; i < c->count; i++)
		for (size_t k = 0, n = src ? src_count(c, i) : dst_count(c, i); k < n; k++)
			if (src ? read_src(c, i, k, &p) : read_dst(c, i, k, &p))
				hull_add(&h, &p);
	return h;
}

static void *take(const call *c, size_t size)
{
	return c->scratch->alloc(c->scratch->ctx, size, ALIGN, LADE_PLACE_HOST, NULL);
}

static void give(const call *c, void *ptr, size_t size)
{
	if (ptr)
		c->scratch->free(c->scratch->ctx, ptr, size, ALIGN, LADE_PLACE_HOST, NULL);
}

/* Destinations that are not empty, in the order of their beginnings. */
typedef struct order {
	piece *list;
	size_t count;
} order;

/*
 * Contiguous ones by a table of slots, each as wide as the largest power of two that all sizes
 * reach: two in one slot overlap, and else the table has them in order.  Sorting 10,000 takes ten
 * times as long.  '*done' is false where the table would be too large.
 */
static lade_status sort_by_slots(const call *c, const hull *h, order *o, bool *done,
                                 lade_error *err)
{
	unsigned shift = 0;
	size_t slots, size;
	uint32_t *table;
	lade_status status = LADE_OK;
	piece p;

	*done = false;
	while (h->least >> shift > 1)
		shift++;
	slots = ((h->last - h->first) >> shift) + 1;
	if (!h->flat || c->count > UINT32_MAX - 1 || slots / SLOTS_EACH > c->count)
		return LADE_OK;
	size = slots * sizeof(*table);
	table = take(c, size);
	if (!table)
		return LADE_OK;
	memset(table, 0, size);
	for (size_t i = 0; i < c->count; i++) {
		if (!read_dst(c, i, 0, &p))
			continue;
		uint32_t *slot = &table[(p.at - h->first) >> shift];
		if (*slot) {
			status = refuse(*slot - 1, i, err);
			goto out;
		}
		*slot = (uint32_t)i + 1;
	}
	for (size_t s = 0; s < slots; s++)
		if (table[s])
			read_dst(c, table[s] - 1, 0, &o->list[o->count++]);
	*done = true;
out:
	give(c, table, size);
	return status;
}

static int compare(const void *a, const void *b)
{
	const piece *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	if (x->item != y->item)
		return x->item < y->item ? -1 : 1;
	return x->part < y->part ? -1 : x->part > y->part;
}

/* Fails also where two of them are found to overlap on the way. */
static lade_status sort(const call *c, const hull *h, order *o, lade_error *err)
{
	bool done = false;
	lade_status status = h->ascending ? LADE_OK : sort_by_slots(c, h, o, &done, err);

	if (status != LADE_OK || done)
		return status;
	for (size_t i = 0; i < c->count; i++)
		for (size_t k = 0; k < dst_count(c, i) && o->count < h->count; k++)
			o->count += read_dst(c, i, k, &o->list[o->count]);
	if (!h->ascending)
		qsort(o->list, o->count, sizeof(*o->list), compare);
	return LADE_OK;
}

static lade_status dsts_apart(const call *c, const order *o, lade_error *err)
{
	const piece *list = o->list;

	for (size_t i = 0; i < o->count; i++)
		for (size_t k = i + 1; k < o->count && k <= i + NEIGHBOURS; k++) {
			if (list[k].at >= list[i].end)
				break;
			if (share(c, &list[i], false, &list[k], false))
				return refuse(list[i].item, list[k].item, err);
		}
	return LADE_OK;
}

/* ---- sources ---------------------------------------------------------------------------- */

/* Where in the list what begins in each of some equal parts of its memory is found. */
typedef struct parts {
	uint32_t *from; /* one more than there are parts; NULL: no memory */
	size_t count;
	unsigned shift;
} parts;

static parts parts_new(const call *c, const order *o)
{
	uintptr_t range = o->list[o->count - 1].at - o->list[0].at;
	parts p = {.count = 1};
	size_t i = 0;

	while (range >> p.shift > 4 * o->count)
		p.shift++;
	p.count = (range >> p.shift) + 1;
	p.from = o->count > UINT32_MAX ? NULL : take(c, (p.count + 1) * sizeof(*p.from));
	for (size_t part = 0; p.from && part <= p.count; part++) {
		while (i < o->count && (o->list[i].at - o->list[0].at) >> p.shift < part)
			i++;
		p.from[part] = (uint32_t)i;
	}
	return p;
}

/* The last of the list that begins before 'end', as the first one does. */
static size_t last_before(const order *o, const parts *p, uintptr_t end)
{
	size_t low = 0, high = o->count, part = (end - 1 - o->list[0].at) >> p->shift;

	if (p->from && part < p->count) {
		low = p->from[part] ? p->from[part] - 1 : 0;
		high = p->from[part + 1];
	} else if (p->from) {
		low = o->count - 1;
	}
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		if (o->list[middle].at < end)
			low = middle;
		else
			high = middle;
	}
	return low;
}

INLINE bool overlap(const call *c, const piece *dst, const piece *src)
{
	return src->at < dst->end && dst->at < src->end && share(c, dst, false, src, true);
}

/* Contiguous destinations, which do not overlap, end in the order in which they begin; the last
 * one that a source reaches may be its own. */
static lade_status sources_apart(const call *c, const order *o, bool flat, lade_error *err)
{
	size_t looks = flat ? 2 : NEIGHBOURS;
	parts p = parts_new(c, o);
	lade_status status = LADE_OK;
	piece src;

	for (size_t i = 0; i < c->count; i++)
		for (size_t s = 0; s < src_count(c, i); s++) {
			if (!read_src(c, i, s, &src) || o->list[0].at >= src.end)
				continue;
			size_t k = last_before(o, &p, src.end);
			for (size_t j = 0; j < looks && j <= k; j++) {
				const piece *dst = &o->list[k - j];
				if (dst->item != i && overlap(c, dst, &src)) {
					status = refuse_source(c, dst->item, i, err);
					goto out;
				}
			}
		}
out:
	give(c, p.from, (p.count + 1) * sizeof(*p.from));
	return status;
}

/* Decoders may read twice what they check once: nobody is to write there meanwhile. */
static lade_status own_apart(const call *c, lade_error *err)
{
	piece src, dst;

	for (size_t i = 0; i < c->count; i++) {
		if (c->dsts && c->dsts[i].data)
			continue;
		for (size_t k = 0; k < dst_count(c, i); k++)
			for (size_t s = 0; read_dst(c, i, k, &dst) && s < src_count(c, i); s++)
				if (read_src(c, i, s, &src) && overlap(c, &dst, &src))
					return refuse_source(c, i, i, err);
	}
	return LADE_OK;
}

/* ---- the calls -------------------------------------------------------------------------- */

INLINE lade_status run(call *c, const lade_apart_options *options, lade_error *err)
{
	bool fixed = options->fixed_sources, near = false;
	hull dsts, srcs;
	order o = {NULL, 0};
	lade_status status = LADE_OK;

	c->dsts = options->dsts;
	for (size_t i = 0; c->dsts && i < c->count; i++)
		if (c->dsts[i].data)
			TRY(region_hull(&c->dsts[i], &(piece){0}, err));
	if (c->count == 1 && dst_count(c, 0) == 1)
		return fixed ? LADE_OK : own_apart(c, err);
	dsts = hull_of(c, false);
	if (!fixed) {
		srcs = hull_of(c, true);
		near = srcs.first < dsts.end && dsts.first < srcs.end;
	}
	if (near)
		TRY(own_apart(c, err));
	/* Mostly each begins behind the one before, and all sources are elsewhere. */
	if (dsts.ascending && !near)
		return LADE_OK;
	o.list = take(c, dsts.count * sizeof(*o.list));
	if (!o.list)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for a table of %zu destinations", dsts.count);
	TRY(sort(c, &dsts, &o, err));
	TRY(dsts_apart(c, &o, err));
	if (near)
		status = sources_apart(c, &o, dsts.flat, err);
out:
	give(c, o.list, dsts.count * sizeof(*o.list));
	return status;
}

lade_status lade_items_apart(lade_direction direction, const lade_item *items, size_t count,
                             const lade_apart_options *caller, lade_error *err)
{
	call c = {.count = count, .direction = direction};
	lade_apart_options options;
	lade__given given = {.items = items, .count = count};
	lade_status status =
		lade__options_read(&options, sizeof options, caller, "apart options", err);

	if (status != LADE_OK)
		return status;
	if (!items && count)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "items is NULL for %zu items",
		                 count);
	if ((unsigned)direction > LADE_DECODE)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "direction %d is unknown",
		                 (int)direction);
	c.scratch = options.scratch ? options.scratch : lade_allocator_default(LADE_HOST);
	lade__sizes sizes = {options.item_size, options.segment_size, options.output_size, 0};
	given.host = c.scratch;
	status = lade__given_open(&given, &sizes, err);
	if (status != LADE_OK || count == 0)
		return status;
	c.items = given.items;
	status = run(&c, &options, err);
	lade__given_close(&given);
	return status;
}

lade_status lade_arrays_apart(const lade_arrays *given, const lade_apart_options *caller,
                              lade_error *err)
{
	lade_apart_options options;
	lade_arrays arrays;
	lade_status status =
		lade__options_read(&options, sizeof options, caller, "apart options", err);

	if (status == LADE_OK)
		status = lade__arrays_read(given, &arrays, err);
	if (status != LADE_OK || arrays.count == 0)
		return status;
	call c = {.arrays = &arrays, .count = arrays.count};
	c.scratch = options.scratch ? options.scratch : lade_allocator_default(LADE_HOST);
	if (!arrays.src || !arrays.src_size || !arrays.dst || !arrays.dst_cap)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "a table is NULL for %zu chunks",
		                 c.count);
	return run(&c, &options, err);
}
