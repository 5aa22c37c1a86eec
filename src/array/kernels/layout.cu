/*
 * layout.cu: copies boxes between chunks and larger arrays, and makes their tables from boxes that
 * lie on the device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/kernels/batch.cuh"

#include "array/args.h"

/* Vectors of a lane that are on their way at the same time. */
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

/* The axes that run fastest, in registers: the last three; those that are not there have one
 * index. */
#define LADE_BOX_HELD 3
struct lade_box_axes {
	lade_box_axis held[LADE_BOX_HELD]; /* the fastest first */
	const lade_box_axis *rest;
	uint32_t rest_count;
};

static __device__ __forceinline__ void lade_box_axes_get(const lade_box &box,
                                                         lade_box_axes *axes)
{
	const lade_box_axis *all = box.axes;
#pragma unroll
	for (uint32_t k = 0; k < LADE_BOX_HELD; k++) {
		axes->held[k].count.number = 1;
		axes->held[k].count.magic = 1;
		axes->held[k].count.shift = 0;
		axes->held[k].src = axes->held[k].dst = 0;
		if (k < box.ndim)
			axes->held[k] = all[box.ndim - 1 - k];
	}
	axes->rest = all;
	axes->rest_count = box.ndim > LADE_BOX_HELD ? box.ndim - LADE_BOX_HELD : 0;
}

/* The place of selected byte 'at' on both sides. */
static __device__ __forceinline__ void lade_box_place(const lade_box &box,
                                                      const lade_box_axes &axes, uint32_t at,
                                                      int64_t *src, int64_t *dst)
{
	uint32_t run = lade_divide(at, box.run), column = at - run * box.run.number;
	int64_t s = box.src_off + column, d = box.dst_off + column;
#pragma unroll
	for (uint32_t k = 0; k < LADE_BOX_HELD; k++) {
		uint32_t next = lade_divide(run, axes.held[k].count);
		uint32_t i = run - next * axes.held[k].count.number;
		s += (int64_t)i * axes.held[k].src;
		d += (int64_t)i * axes.held[k].dst;
		run = next;
	}
	for (uint32_t k = axes.rest_count; k-- > 0;) {
		uint32_t next = lade_divide(run, axes.rest[k].count);
		uint32_t i = run - next * axes.rest[k].count.number;
		s += (int64_t)i * axes.rest[k].src;
		d += (int64_t)i * axes.rest[k].dst;
		run = next;
	}
	*src = s;
	*dst = d;
}

/* ---- copies ------------------------------------------------------------------------------- */

/* Selected bytes [at, end) by vectors T, which both sides are aligned to. */
template <typename T>
static __device__ __forceinline__ void
lade_box_vectors(const lade_box &box, const lade_box_axes &axes, uint32_t at, uint32_t end,
                 uint32_t lane)
{
	for (at += lane * (uint32_t)sizeof(T); at < end;
	     at += LADE_BOX_AHEAD * 32 * (uint32_t)sizeof(T)) {
		T v[LADE_BOX_AHEAD];
		int64_t src, dst[LADE_BOX_AHEAD];
		bool there[LADE_BOX_AHEAD];
#pragma unroll
		for (uint32_t k = 0; k < LADE_BOX_AHEAD; k++) {
			uint32_t own = at + k * 32 * (uint32_t)sizeof(T);
			there[k] = false;
			if (own < end) {
				lade_box_place(box, axes, own, &src, &dst[k]);
				there[k] = (uint64_t)src >= box.from && (uint64_t)src < box.end;
			}
			if (there[k])
				v[k] = *(const T *)(box.src + src);
		}
#pragma unroll
		for (uint32_t k = 0; k < LADE_BOX_AHEAD; k++)
			if (there[k])
				*(T *)(box.dst + dst[k]) =
					box.swap ? lade_box_swap(v[k], box.swap) : v[k];
	}
}

/* Byte by byte; those of a swapped unit go to where the last one's place counts back to. */
static __device__ __forceinline__ void lade_box_bytes(const lade_box &box,
                                                      const lade_box_axes &axes, uint32_t at,
                                                      uint32_t end, uint32_t lane)
{
	uint32_t swap = box.swap ? box.swap : 1;
	for (at += lane; at < end; at += 32) {
		int64_t src, dst;
		lade_box_place(box, axes, at, &src, &dst);
		uint32_t in_unit = at % swap; /* runs are whole units */
		dst += (int64_t)(swap - 1) - 2 * (int64_t)in_unit;
		if ((uint64_t)src >= box.from && (uint64_t)src < box.end)
			box.dst[dst] = box.src[src];
	}
}

/* The box that piece 'piece' belongs to: the last whose first piece is not behind it. */
static __device__ __forceinline__ uint32_t lade_box_find(const lade_boxes &c, uint32_t piece)
{
	uint32_t low = 0, high = c.count;
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

/* Map: warp = pieces of 16 KiB of selected bytes in turn, lane = vectors of it.  No shared memory;
 * blocks of any number of whole warps. */
extern "C" __global__ void __launch_bounds__(LADE_BOX_THREADS) lade_box_copy(lade_boxes c)
{
	uint32_t lane = lade_lane(), warps = gridDim.x * (blockDim.x / 32);
	uint32_t first = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
	for (uint32_t piece = first; piece < c.pieces; piece += warps) {
		const lade_box box = c.list[lade_box_find(c, piece)];
		if (!lade_box_ready(c, box))
			continue;
		lade_box_axes axes;
		lade_box_axes_get(box, &axes);
		uint32_t at = (piece - box.first) * LADE_BOX_PIECE;
		if (at >= box.size)
			continue;
		uint32_t end = box.size - at < LADE_BOX_PIECE ? box.size
		                                                   : at + LADE_BOX_PIECE;
		uint32_t odd = box.align | (uint32_t)(uintptr_t)(box.src + box.src_off) |
		               (uint32_t)(uintptr_t)(box.dst + box.dst_off);
		uint32_t width = odd & 15 ? odd & (0 - odd) & 15 : 16;
		if (box.swap > width || (box.swap & (box.swap - 1)) || width == 1)
			lade_box_bytes(box, axes, at, end, lane);
		else if (width == 16)
			lade_box_vectors<uint4>(box, axes, at, end, lane);
		else if (width == 8)
			lade_box_vectors<uint2>(box, axes, at, end, lane);
		else if (width == 4)
			lade_box_vectors<uint32_t>(box, axes, at, end, lane);
		else
			lade_box_vectors<uint16_t>(box, axes, at, end, lane);
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

/* Map: thread = chunk. */
extern "C" __global__ void lade_grid_list(lade_grid g)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= g.count)
		return;
	uint64_t slot = g.slots + i * g.stride, span = g.span[i], cap = g.span_size[i];
	lade_box_axis *axes = g.box_axes + (uint64_t)i * g.ndim;
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
	else if (f.size && !span)
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
