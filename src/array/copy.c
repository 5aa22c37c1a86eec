/*
 * copy.c: runs a plan in host memory.
 *
 * A piece of the chunk is cut into boxes of whole runs and, at its ends, parts of runs.  A box is
 * loops around units that are contiguous on both sides: the two innermost are a kernel's, chosen so
 * that the destination is written in order.  Where source and destination each have an axis of
 * their own along which units follow one another, the kernel turns squares that stay in registers;
 * other boxes of short units go by bands, so that a cache line is used up before it goes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "array/plan.h"

#include <string.h>

/* A band of units along the source: what is read at once of lines, or of pages where units fill
 * lines. */
#define BAND_BYTES 256
#define BAND_LONG 4096

/* Copies of less stay in the caches, where they may be wanted. */
#define LARGE ((size_t)16 << 20)

/* Units that are shorter than a cache line share it with their neighbours. */
#define LINE 64

typedef struct box {
	const lade__plan_kernels *kernels;
	lade__plan_unit unit;
	size_t count;
	lade__plan_loop loop[LADE_DIMS_MAX];
} box;

static const lade__plan_kernels *kernels_of(lade_cpu cpu)
{
#if defined(__x86_64__)
	switch (cpu) {
	case LADE_CPU_AVX512:
		return &lade__plan_avx512;
	case LADE_CPU_AVX2:
		return &lade__plan_avx2;
	case LADE_CPU_SSE42:
		return &lade__plan_sse42;
	default:
		break;
	}
#else
	(void)cpu;
#endif
	return &lade__plan_plain;
}

static size_t magnitude(ptrdiff_t stride)
{
	return stride < 0 ? (size_t)0 - (size_t)stride : (size_t)stride;
}

/* ---- boxes -------------------------------------------------------------------------------- */

static const lade__plan_loop once = {1, 0, 0};

/* Takes a loop out; the others keep their order. */
static lade__plan_loop take(box *b, size_t index)
{
	lade__plan_loop taken = b->loop[index];
	b->count--;
	memmove(&b->loop[index], &b->loop[index + 1], (b->count - index) * sizeof taken);
	return taken;
}

/* The loops that stay outside, the widest stride of the destination first. */
static void order_loops(box *b)
{
	for (size_t i = 1; i < b->count; i++) {
		lade__plan_loop one = b->loop[i];
		size_t at = i;
		for (; at && magnitude(b->loop[at - 1].dst) < magnitude(one.dst); at--)
			b->loop[at] = b->loop[at - 1];
		b->loop[at] = one;
	}
}

/* The loop along which units follow one another in the source, or in the destination; 'count' where
 * there is none. */
static size_t find_next(const box *b, bool dst)
{
	for (size_t i = 0; i < b->count; i++)
		if ((dst ? b->loop[i].dst : b->loop[i].src) == (ptrdiff_t)b->unit.size)
			return i;
	return b->count;
}

/* Two loops by bands of the second. */
static void run_bands(const box *b, const lade__plan_loop *along, lade__plan_loop across,
                      const uint8_t *src, uint8_t *dst)
{
	size_t unit = b->unit.size, bytes = unit < LINE ? BAND_BYTES : BAND_LONG;
	size_t band = bytes / unit ? bytes / unit : 1;
	lade__plan_loop part = across;
	for (size_t i = 0; i < across.count; i += band) {
		part.count = across.count - i < band ? across.count - i : band;
		b->kernels->rows(src + (ptrdiff_t)i * across.src, dst + (ptrdiff_t)i * across.dst,
		                 &b->unit, along, &part);
	}
}

/* What stands inside the outer loops. */
typedef struct inside {
	enum { ROWS, BANDS, TURN } how;
	lade__plan_loop outer, inner; /* bands: along, across */
	lade__plan_turn turn;
} inside;

static void run_inside(const box *b, const inside *in, const uint8_t *src, uint8_t *dst)
{
	if (in->how == TURN)
		b->kernels->turn(src, dst, &b->unit, &in->turn);
	else if (in->how == BANDS)
		run_bands(b, &in->outer, in->inner, src, dst);
	else
		b->kernels->rows(src, dst, &b->unit, &in->outer, &in->inner);
}

static bool can_turn(const box *b, const lade__plan_loop *from, const lade__plan_loop *to)
{
	size_t least = b->kernels->turn_least, unit = b->unit.size;
	return unit <= 16 && (unit & (unit - 1)) == 0 && b->unit.swap <= unit &&
	       from->count >= least / unit && to->count >= least / unit;
}

/* Takes the loops of the kernel out of the box. */
static void choose_inside(box *b, inside *in)
{
	in->outer = in->inner = once;
	in->how = ROWS;
	size_t from = find_next(b, false), to = find_next(b, true);
	size_t unit = b->unit.size;
	if (unit < LINE && from < b->count && to < b->count && from != to) {
		lade__plan_loop f = b->loop[from], t = b->loop[to];
		if (can_turn(b, &f, &t)) {
			in->how = TURN;
			in->turn = (lade__plan_turn){f.count, t.count, t.src, f.dst};
		} else if (f.count * unit >= LINE && t.count * unit >= LINE) {
			in->how = BANDS;
			in->outer = t;
			in->inner = f;
		}
	}
	if (in->how != ROWS) {
		take(b, from > to ? from : to);
		take(b, from > to ? to : from);
		order_loops(b);
		return;
	}
	order_loops(b);
	if (b->count)
		in->inner = take(b, b->count - 1);
	from = find_next(b, false);
	if (unit >= LINE && from < b->count && magnitude(in->inner.src) >= BAND_LONG) {
		in->how = BANDS;
		in->outer = in->inner;
		in->inner = take(b, from);
	} else if (b->count) {
		in->outer = take(b, b->count - 1);
	}
}

static void run_box(box *b, const uint8_t *src, uint8_t *dst)
{
	size_t at[LADE_DIMS_MAX] = {0};
	inside in;
	size_t bytes = b->unit.size;
	for (size_t i = 0; i < b->count; i++)
		bytes *= b->loop[i].count;
	b->unit.large = bytes >= LARGE;
	choose_inside(b, &in);
	for (;;) {
		run_inside(b, &in, src, dst);
		size_t i = b->count;
		for (; i-- > 0;) {
			const lade__plan_loop *l = &b->loop[i];
			src += l->src;
			dst += l->dst;
			if (++at[i] < l->count)
				break;
			src -= (ptrdiff_t)l->count * l->src;
			dst -= (ptrdiff_t)l->count * l->dst;
			at[i] = 0;
		}
		if (i == SIZE_MAX)
			return;
	}
}

/* ---- pieces ------------------------------------------------------------------------------- */

/* Bytes [from, end) of the chunk, which are at 'bytes'. */
typedef struct piece {
	const lade__plan *plan;
	const lade__plan_kernels *kernels;
	size_t from, end;
	const uint8_t *bytes;
	uint8_t *span;
} piece;

/* A part of one run. */
static void scatter_cut(const piece *p, size_t base, ptrdiff_t span)
{
	const lade__plan *plan = p->plan;
	size_t from = p->from > base ? p->from - base : 0;
	size_t end = p->end - base < plan->run ? p->end - base : plan->run;
	if (!plan->swap) {
		memcpy(p->span + span + from, p->bytes + (base + from - p->from), end - from);
		return;
	}
	for (size_t i = from; i < end; i++) {
		size_t in_unit = i % plan->swap;
		p->span[span + (ptrdiff_t)(i - in_unit + (plan->swap - 1 - in_unit))] =
			p->bytes[base + i - p->from];
	}
}

/* Indices of axis 'k' that are whole in the piece: boxes of the axes from there on. */
static void scatter_whole(const piece *p, size_t k, size_t count, size_t base, ptrdiff_t span)
{
	const lade__plan *plan = p->plan;
	box b;
	b.kernels = p->kernels;
	b.unit = (lade__plan_unit){.size = plan->run, .swap = plan->swap};
	b.count = 0;
	for (size_t i = k; i < plan->ndim; i++) {
		const lade__plan_axis *a = &plan->axis[i];
		size_t n = i == k ? count : a->count;
		if (n > 1)
			b.loop[b.count++] = (lade__plan_loop){n, a->chunk, a->span};
	}
	run_box(&b, p->bytes + (base - p->from), p->span + span);
}

/* The bytes of the chunk from an index of the axes before 'k' to the end of its last run. */
static size_t extent(const lade__plan *plan, size_t k)
{
	size_t bytes = plan->run;
	for (; k < plan->ndim; k++)
		bytes += (plan->axis[k].count - 1) * (size_t)plan->axis[k].chunk;
	return bytes;
}

/*
 * What the piece has of axis 'k' and those inside it; their index 0 is byte 'base' of the chunk and
 * 'span' of the span.  Of the axis' indices at most the one before the first whole one and the one
 * behind the last are cut.
 */
static void scatter_axis(const piece *p, size_t k, size_t base, ptrdiff_t span)
{
	const lade__plan *plan = p->plan;
	if (p->from >= base + extent(plan, k) || p->end <= base)
		return;
	if (k == plan->ndim) {
		scatter_cut(p, base, span);
		return;
	}
	const lade__plan_axis *a = &plan->axis[k];
	size_t step = (size_t)a->chunk, inner = extent(plan, k + 1);
	size_t first = p->from > base ? (p->from - base + step - 1) / step : 0; /* begins inside */
	size_t end = p->end - base >= inner ? (p->end - base - inner) / step + 1 : 0;
	end = end < a->count ? end : a->count;
	if (first)
		scatter_axis(p, k + 1, base + (first - 1) * step,
		             span + (ptrdiff_t)(first - 1) * a->span);
	if (first < end)
		scatter_whole(p, k, end - first, base + first * step,
		              span + (ptrdiff_t)first * a->span);
	if (first > end)
		end = first;
	if (end < a->count)
		scatter_axis(p, k + 1, base + end * step, span + (ptrdiff_t)end * a->span);
}

void lade__plan_scatter(const lade__plan *plan, lade_cpu cpu, size_t off, const void *bytes,
                        size_t size, void *span)
{
	if (plan->size == 0 || size == 0 || off >= plan->end || off + size <= plan->first)
		return;
	piece p = {plan, kernels_of(cpu), off, off + size, bytes, span};
	if (off <= plan->first && p.end >= plan->end)
		scatter_whole(&p, 0, plan->ndim ? plan->axis[0].count : 1, plan->chunk_off,
		              (ptrdiff_t)plan->span_off);
	else
		scatter_axis(&p, 0, plan->chunk_off, (ptrdiff_t)plan->span_off);
}

void lade__plan_gather(const lade__plan *plan, lade_cpu cpu, const void *span, void *chunk)
{
	box b;
	if (plan->size == 0)
		return;
	b.kernels = kernels_of(cpu);
	b.unit = (lade__plan_unit){.size = plan->run, .swap = plan->swap};
	b.count = plan->ndim;
	for (size_t i = 0; i < plan->ndim; i++)
		b.loop[i] = (lade__plan_loop){plan->axis[i].count, plan->axis[i].span,
		                              plan->axis[i].chunk};
	run_box(&b, (const uint8_t *)span + plan->span_off, (uint8_t *)chunk + plan->chunk_off);
}

void *lade__plan_at(const lade__plan *plan, void *span, size_t off, size_t *size)
{
	size_t rel = off - plan->chunk_off, to = plan->span_off;
	*size = plan->chunk_off - off;
	if (off < plan->chunk_off)
		return NULL;
	*size = SIZE_MAX; /* behind the last index of the first axis */
	for (size_t i = 0; i < plan->ndim; i++) {
		const lade__plan_axis *axis = &plan->axis[i];
		size_t step = (size_t)axis->chunk, at = rel / step;
		if (at >= axis->count)
			return NULL;
		rel -= at * step;
		to += at * (size_t)axis->span;
		*size = step - rel; /* to the next index of this axis */
	}
	if (rel >= plan->run)
		return NULL;
	*size = plan->run - rel;
	return (uint8_t *)span + to + rel;
}

bool lade__plan_streams(const lade__plan *plan, size_t piece_size)
{
	/* Where no axis lets units follow one another in the span, their order there is no worse by
	 * pieces; where one does, a piece must have enough of its indices to fill lines. */
	if (plan->run >= LINE)
		return true;
	for (size_t k = 0; k < plan->ndim; k++)
		if (magnitude(plan->axis[k].span) == plan->run)
			return (size_t)plan->axis[k].chunk <= piece_size / (LINE / plan->run + 1);
	return true;
}
