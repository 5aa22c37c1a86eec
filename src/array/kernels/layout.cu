/*
 * layout.cu: copies boxes between chunks and larger arrays, and makes their tables from boxes that
 * are on the device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/kernels/batch.cuh"

#include "array/args.h"

/* Vectors of a thread that are on their way at the same time. */
#define LADE_BOX_AHEAD 4

/* ---- vectors ------------------------------------------------------------------------------ */

/* Each reverses the bytes of units of 'swap' bytes: a power of two, its own size at most. */

static __device__ __forceinline__ uint32_t lade_box_swap(uint32_t v, uint32_t swap)
{
	return swap == 2 ? __byte_perm(v, 0, 0x2301) : __byte_perm(v, 0, 0x0123);
}

static __device__ __forceinline__ uint16_t lade_box_swap(uint16_t v, uint32_t)
{
	return (uint16_t)(v >> 8 | v << 8);
}

static __device__ __forceinline__ uint2 lade_box_swap(uint2 v, uint32_t swap)
{
	uint32_t x = lade_box_swap(v.x, swap), y = lade_box_swap(v.y, swap);
	return swap > 4 ? make_uint2(y, x) : make_uint2(x, y);
}

static __device__ __forceinline__ uint4 lade_box_swap(uint4 v, uint32_t swap)
{
	uint2 low = lade_box_swap(make_uint2(v.x, v.y), swap);
	uint2 high = lade_box_swap(make_uint2(v.z, v.w), swap);
	return swap > 8 ? make_uint4(high.x, high.y, low.x, low.y)
	                : make_uint4(low.x, low.y, high.x, high.y);
}

/* ---- places ------------------------------------------------------------------------------- */

static __device__ __forceinline__ uint32_t lade_divide(uint32_t n, const lade_divisor &d)
{
	return (__umulhi(n, d.magic) + n) >> d.shift;
}

/* What a block copies, in shared memory: a box and its axes that run fastest, of which those that
 * are not there have one index. */
#define LADE_BOX_HELD 3
struct lade_box_task {
	lade_box box;
	lade_box_axis held[LADE_BOX_HELD]; /* the fastest first */
	uint32_t at, end;                  /* of the selected bytes */
	uint32_t width;                    /* of vectors that both sides are aligned to; 1: none */
	bool all;                          /* of the source is there */
};

/* The place of selected byte 'at' on both sides, of a box with HELD axes at most or, where that is
 * LADE_BOX_HELD, of any. */
template <uint32_t HELD>
static __device__ __forceinline__ void lade_box_place(const lade_box_task &t, uint32_t at,
                                                      int64_t *src, int64_t *dst)
{
	uint32_t run = lade_divide(at, t.box.run), column = at - run * t.box.run.number;
	int64_t s = t.box.src_off + column, d = t.box.dst_off + column;
#pragma unroll
	for (uint32_t k = 0; k < HELD; k++) {
		uint32_t i = run;
		if (HELD > 1) {
			run = lade_divide(i, t.held[k].count);
			i -= run * t.held[k].count.number;
		}
		s += (int64_t)i * t.held[k].src;
		d += (int64_t)i * t.held[k].dst;
	}
	for (uint32_t k = t.box.ndim; HELD == LADE_BOX_HELD && k-- > HELD;) {
		const lade_box_axis &axis = t.box.axes[k - HELD];
		uint32_t next = lade_divide(run, axis.count);
		uint32_t i = run - next * axis.count.number;
		s += (int64_t)i * axis.src;
		d += (int64_t)i * axis.dst;
		run = next;
	}
	*src = s;
	*dst = d;
}

/* ---- copies ------------------------------------------------------------------------------- */

static __device__ __forceinline__ bool lade_box_there(const lade_box_task &t, int64_t src)
{
	return t.all || ((uint64_t)src >= t.box.from && (uint64_t)src < t.box.end);
}

/* By vectors T. */
template <typename T, uint32_t HELD>
static __device__ __forceinline__ void lade_box_vectors(const lade_box_task &t)
{
	constexpr uint32_t round = LADE_BOX_THREADS * (uint32_t)sizeof(T);
	for (uint32_t at = t.at + threadIdx.x * (uint32_t)sizeof(T); at < t.end;
	     at += LADE_BOX_AHEAD * round) {
		T v[LADE_BOX_AHEAD];
		int64_t src, dst[LADE_BOX_AHEAD];
		bool there[LADE_BOX_AHEAD];
#pragma unroll
		for (uint32_t k = 0; k < LADE_BOX_AHEAD; k++) {
			there[k] = false;
			if (at + k * round < t.end) {
				lade_box_place<HELD>(t, at + k * round, &src, &dst[k]);
				there[k] = lade_box_there(t, src);
			}
			if (there[k])
				v[k] = *(const T *)(t.box.src + src);
		}
#pragma unroll
		for (uint32_t k = 0; k < LADE_BOX_AHEAD; k++)
			if (there[k])
				*(T *)(t.box.dst + dst[k]) =
					t.box.swap ? lade_box_swap(v[k], t.box.swap) : v[k];
	}
}

/* Byte by byte; those of a swapped unit go to where the last one's place counts back to. */
static __device__ __forceinline__ void lade_box_bytes(const lade_box_task &t)
{
	uint32_t swap = t.box.swap ? t.box.swap : 1;
	for (uint32_t at = t.at + threadIdx.x; at < t.end; at += LADE_BOX_THREADS) {
		int64_t src, dst;
		lade_box_place<LADE_BOX_HELD>(t, at, &src, &dst);
		uint32_t in_unit = at % swap; /* runs are whole units */
		dst += (int64_t)(swap - 1) - 2 * (int64_t)in_unit;
		if (lade_box_there(t, src))
			t.box.dst[dst] = t.box.src[src];
	}
}

template <uint32_t HELD>
static __device__ __forceinline__ void lade_box_vectors_of(const lade_box_task &t)
{
	if (t.width == 16)
		lade_box_vectors<uint4, HELD>(t);
	else if (t.width == 8)
		lade_box_vectors<uint2, HELD>(t);
	else if (t.width == 4)
		lade_box_vectors<uint32_t, HELD>(t);
	else
		lade_box_vectors<uint16_t, HELD>(t);
}

/* The box that piece 'piece' belongs to: the last whose first piece is not behind it.  Where all
 * have as many pieces it is where it would be. */
static __device__ __forceinline__ uint32_t lade_box_find(const lade_boxes &c, uint32_t piece)
{
	uint32_t low = 0, high = c.count;
	uint32_t guess = (uint32_t)((uint64_t)piece * c.count / c.pieces);
	if (c.list[guess].first <= piece &&
	    (guess + 1 == c.count || c.list[guess + 1].first > piece))
		return guess;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (c.list[middle].first <= piece)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Whether what a box is copied from has been made. */
static __device__ __forceinline__ bool lade_box_ready(const lade_boxes &c,
                                                      const lade_box &box)
{
	if (c.statuses && c.statuses[box.unit] != LADE_GPU_OK)
		return false;
	return !c.sizes || !box.wanted || c.sizes[box.unit] == box.wanted;
}

/* Finds what is copied as piece 'piece'; by one thread. */
static __device__ __forceinline__ void lade_box_begin(const lade_boxes &c, uint32_t piece,
                                                      lade_box_task *t)
{
	lade_box box = c.list[lade_box_find(c, piece)];
	uint32_t at = (piece - box.first) * LADE_BOX_PIECE;
	bool some = at < box.size && lade_box_ready(c, box);
	t->at = at;
	t->end = !some ? at : box.size - at < LADE_BOX_PIECE ? box.size : at + LADE_BOX_PIECE;
	t->all = box.from == 0 && box.end == UINT64_MAX;
	uint32_t odd = box.align | (uint32_t)(uintptr_t)(box.src + box.src_off) |
	               (uint32_t)(uintptr_t)(box.dst + box.dst_off);
	uint32_t width = odd & 15 ? odd & (0 - odd) & 15 : 16;
	t->width = box.swap > width || (box.swap & (box.swap - 1)) ? 1 : width;
	for (uint32_t k = 0; k < LADE_BOX_HELD; k++) {
		lade_box_axis none = {{1, 1, 0, 0}, 0, 0};
		t->held[k] = k < box.ndim ? box.axes[box.ndim - 1 - k] : none;
	}
	t->box = box;
}

/* Map: block = pieces of selected bytes in turn, so that neighbours are copied at the same time;
 * thread = vectors of it.  The last warp finds what is copied next meanwhile.  Shared: both. */
extern "C" __global__ void __launch_bounds__(LADE_BOX_THREADS + 32, LADE_BOX_BLOCKS)
	lade_box_copy(lade_boxes c)
{
	LADE_SHARED(lade_box_task, task, [2]);
	bool look_ahead = threadIdx.x == LADE_BOX_THREADS;
	uint32_t turn = 0;
	if (look_ahead && blockIdx.x < c.pieces)
		lade_box_begin(c, blockIdx.x, &task[0]);
	for (uint32_t piece = blockIdx.x; piece < c.pieces; piece += gridDim.x, turn ^= 1) {
		const lade_box_task &t = task[turn];
		__syncthreads();
		if (look_ahead && c.pieces - piece > gridDim.x)
			lade_box_begin(c, piece + gridDim.x, &task[turn ^ 1]);
		if (threadIdx.x >= LADE_BOX_THREADS)
			continue;
		if (t.width == 1)
			lade_box_bytes(t);
		else if (t.box.ndim < 2)
			lade_box_vectors_of<1>(t);
		else
			lade_box_vectors_of<LADE_BOX_HELD>(t);
	}
}

/* ---- batches of arrays -------------------------------------------------------------------- */

static __device__ __forceinline__ lade_divisor lade_divisor_of(uint32_t number)
{
	lade_divisor d;
	d.number = number;
	d.shift = d.zero = 0;
	while ((uint64_t)1 << d.shift < number)
		d.shift++;
	uint64_t more = ((uint64_t)1 << d.shift) - number;
	d.magic = (uint32_t)(((uint64_t)1 << 32) * more / number + 1);
	return d;
}

/* What a chunk's box comes to. */
struct lade_grid_found {
	uint64_t size, chunk_off, below, above;
	uint32_t axes;
	bool outside; /* of the shape */
	bool beyond;  /* of the span */
	bool repeats; /* a destination's axis of several indices at one place */
};

/* Adds an axis of 'count' indices from 'start' on, with checks; 'cap' is the span's bytes. */
static __device__ __forceinline__ void lade_grid_add(const lade_grid &g, const lade_grid_axis &a,
                                                     uint64_t start, uint64_t count, uint64_t cap,
                                                     lade_box_axis *axes, lade_grid_found *f)
{
	f->outside |= start > a.shape || (count && (start == a.shape ||
	                                            count - 1 > (a.shape - 1 - start) / a.step));
	if (f->outside)
		return;
	f->size *= count;
	f->chunk_off += start * (uint64_t)a.chunk;
	if (count < 2)
		return;
	f->repeats |= a.span == 0 && !g.encode;
	/* Only of a chunk without bytes; and numbers for divisors have 31 bits. */
	if (count >> 31) {
		f->beyond = true;
		return;
	}
	uint64_t stride = a.span < 0 ? 0 - (uint64_t)a.span : (uint64_t)a.span;
	if (stride > cap / (count - 1) || f->beyond) {
		f->beyond = true;
		return;
	}
	if (a.span < 0)
		f->below += stride * (count - 1);
	else
		f->above += stride * (count - 1);
	f->beyond = f->below > g.offset || f->above > cap;
	lade_box_axis out;
	int64_t chunk = a.chunk * (int64_t)a.step;
	out.count = lade_divisor_of((uint32_t)count);
	out.src = g.encode ? a.span : chunk;
	out.dst = g.encode ? chunk : a.span;
	axes[f->axes++] = out;
}

/* No span is as long, and sums of two such numbers fit. */
#define LADE_SPAN_MOST ((uint64_t)1 << 62)

/* Map: thread = chunk. */
extern "C" __global__ void lade_grid_list(lade_grid g)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= g.count)
		return;
	uint64_t slot = g.slots + i * g.stride, span = g.span[i], cap = g.span_size[i];
	lade_box_axis *axes = g.box_axes + (uint64_t)i * g.ndim;
	cap = cap < LADE_SPAN_MOST ? cap : LADE_SPAN_MOST;
	lade_grid_found f = {};
	f.size = g.part;
	f.chunk_off = g.part_off;
	f.above = g.offset + g.part;
	f.beyond = f.above < g.offset || f.above > cap;
	for (uint32_t k = 0; k < g.ndim; k++) {
		const lade_grid_axis a = g.axes[k];
		const uint64_t *own = g.boxes + (uint64_t)i * 2 * g.ndim + a.source;
		lade_grid_add(g, a, g.boxes ? own[0] : a.start, g.boxes ? own[g.ndim] : a.count,
		              cap, axes, &f);
	}
	uint32_t wrong = LADE_GPU_OK;
	if (f.outside || (f.size && f.beyond))
		wrong = LADE_GPU_RANGE;
	else if (f.size && (!span || f.repeats))
		wrong = LADE_GPU_ARG;
	uint32_t run = g.part, align = 0;
	while (wrong == LADE_GPU_OK && f.size && f.axes && axes[f.axes - 1].src == run &&
	       axes[f.axes - 1].dst == run)
		run *= axes[--f.axes].count.number;
	for (uint32_t k = 0; wrong == LADE_GPU_OK && f.size && k < f.axes; k++)
		align |= (uint32_t)axes[k].src | (uint32_t)axes[k].dst;
	lade_box box = {};
	box.src = (const uint8_t *)(g.encode ? span : slot);
	box.dst = (uint8_t *)(g.encode ? slot : span);
	box.src_off = (int64_t)(g.encode ? g.offset : f.chunk_off);
	box.dst_off = (int64_t)(g.encode ? f.chunk_off : g.offset);
	box.end = UINT64_MAX;
	box.axes = axes;
	box.wanted = g.encode ? 0 : g.chunk;
	box.run = lade_divisor_of(run);
	box.size = wrong == LADE_GPU_OK ? (uint32_t)f.size : 0;
	box.swap = g.swap;
	box.align = align | run;
	box.ndim = f.axes;
	box.unit = i;
	box.first = i * g.pieces;
	g.list[i] = box;
	g.wrong[i] = wrong;
	g.slot[i] = slot;
	g.slot_size[i] = g.chunk;
}

/* An item whose box has no elements is done, whatever its chunk is.  Map: thread = chunk. */
extern "C" __global__ void lade_grid_finish(lade_grid_results r)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= r.count)
		return;
	uint32_t status = r.wrong[i];
	bool empty = status == LADE_GPU_OK && !r.encode && r.list[i].size == 0;
	if (status == LADE_GPU_OK && !empty)
		status = r.made_status[i];
	if (status == LADE_GPU_OK && !empty && !r.encode && r.made_size[i] != r.chunk)
		status = LADE_GPU_CORRUPT;
	if (r.status)
		r.status[i] = status;
	if (r.size)
		r.size[i] = status != LADE_GPU_OK ? 0 : r.encode ? r.made_size[i] : r.list[i].size;
}
