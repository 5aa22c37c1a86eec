/*
 * zstd_execute.cu: the output of Zstandard chunks whose blocks have been read (zstd_blocks.cuh).
 *
 * A team of W warps has a chunk, and takes its units in their order, 32 W sequences at once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/zstd/kernels/zstd_blocks.cuh"
#include "codec/zstd/kernels/zstd_hash.cuh"

/* What a warp's sequences come to. */
struct lade_zstd_sum {
	uint32_t runs, ends, pieces;
};

template <int W> struct lade_zstd_makers {
	lade_lz_exec<W> lz;
	lade_lz_place place[32 * W];
	lade_zstd_head head;
	lade_zstd_unit unit;
	lade_zstd_sum sum[W];
	uint32_t hash;
	/* The frame: its first v, bytes that it may have, the last three offsets before a unit. */
	uint32_t begin, room;
	lade_zstd_map last;
};
static_assert(sizeof(lade_zstd_makers<16>) == LADE_ZSTD_TEAM16_SHARED, "");

/* Begins the frame that begins 'done' bytes into the chunk's output: whether there is room. */
template <int W>
static __device__ __forceinline__ bool lade_zstd_make_begin(lade_zstd_makers<W> *t,
                                                            const lade_zstd_plan &p, lade_lz_out *o,
                                                            uint32_t done, uint32_t warp,
                                                            uint32_t lane)
{
	const lade_zstd_head &h = t->head;
	uint32_t room = h.c.dst_cap - done;
	if (t->unit.content != ~(uint64_t)0) {
		if (t->unit.content > room)
			return false;
		room = (uint32_t)t->unit.content;
	}
	*o = lade_lz_begin<W>(&t->lz, h.c.src, h.c.src_size, h.c.dst + done, room, warp, lane);
	if (lade_zstd_alike(p, h, h.at))
		o->full = LADE_FULL;
	if (warp == 0 && lane == 0) {
		t->begin = o->end;
		t->room = room;
		t->last = lade_zstd_map{{1, 4, 8}};
	}
	lade_team_sync<W>();
	return true;
}

/* Bytes that the frame may still have. */
template <int W>
static __device__ __forceinline__ uint32_t lade_zstd_room_left(const lade_zstd_makers<W> *t,
                                                               const lade_lz_out &o)
{
	return t->room - (o.end - t->begin);
}

/* Makes a unit that is not coded: whether there is room. */
template <int W>
static __device__ __forceinline__ bool lade_zstd_make_plain(lade_zstd_makers<W> *t,
                                                            lade_lz_out *o, uint32_t warp,
                                                            uint32_t lane)
{
	const lade_zstd_block &b = t->unit.b;
	uint32_t thread = 32 * warp + lane, size = b.size;
	if (size > lade_zstd_room_left(t, *o))
		return false;
	uint32_t run = b.kind == LADE_ZSTD_RAW ? size : size ? 1 : 0, match = size - run;
	bool own = thread == 0;
	lade_lz_sequence q = {{own ? run : 0, own ? match : 0}, {0, 1}, {false, true}};
	lade_lz_group g = {own ? o->end : o->end + size, o->pieces, o->end + size,
	                   (uint32_t)(run != 0) + (match != 0), b.last};
	lade_lz_make<W>(&t->lz, o, t->head.c.src + b.at, q, g, &t->place[thread], warp, lane);
	return true;
}

/* The sums of all warps, and of those before the thread's own. */
template <int W>
static __device__ __forceinline__ lade_zstd_sum lade_zstd_sums(const lade_zstd_makers<W> *t,
                                                               lade_zstd_sum *before,
                                                               uint32_t warp, uint32_t lane)
{
	lade_zstd_sum s = lane < W ? t->sum[lane] : lade_zstd_sum{}, all;
	uint32_t runs = lade_warp_scan(s.runs, lane), ends = lade_warp_scan(s.ends, lane);
	uint32_t pieces = lade_warp_scan(s.pieces, lane);
	before->runs = __shfl_sync(LADE_FULL, runs - s.runs, warp);
	before->ends = __shfl_sync(LADE_FULL, ends - s.ends, warp);
	before->pieces = __shfl_sync(LADE_FULL, pieces - s.pieces, warp);
	all.runs = __shfl_sync(LADE_FULL, runs, 31);
	all.ends = __shfl_sync(LADE_FULL, ends, 31);
	all.pieces = __shfl_sync(LADE_FULL, pieces, 31);
	return all;
}

/*
 * Makes a coded unit: whether it is right.  Behind the last sequence come what literals are left,
 * as a sequence of no match.
 *
 * Sums do not wrap: a run and a match have 2^18 bytes at most, and 512 are added up; a block's sums
 * are checked after each group.
 */
template <int W>
static __device__ __forceinline__ bool lade_zstd_make_coded(lade_zstd_makers<W> *t,
                                                            const lade_zstd_plan &p,
                                                            lade_lz_out *o, uint32_t warp,
                                                            uint32_t lane)
{
	const lade_zstd_unit &u = t->unit;
	const lade_zstd_block &b = u.b;
	const uint8_t *memory = p.pool + t->head.at;
	const uint8_t *literals = b.lit_kind == LADE_ZSTD_RAW ? t->head.c.src + b.lit_at
	                                                      : memory + u.literals;
	const uint2 *from = (const uint2 *)lade_global(memory + u.sequences);
	uint32_t thread = 32 * warp + lane, used = 0, made = 0, below = (1u << lane) - 1;
	uint2 next = thread < b.seq_count ? from[thread] : make_uint2(0, 0);
#pragma unroll 1
	for (uint32_t g = 0; g <= b.seq_count; g += 32 * W) {
		uint32_t i = g + thread;
		bool have = i < b.seq_count, last = b.seq_count - g < 32 * W;
		uint2 now = next;
		next = make_uint2(0, 0);
		if (!last && i + 32 * W < b.seq_count)
			next = from[i + 32 * W];
		uint32_t run = now.y & 0xFFFF, match = have ? (now.y >> 16) + 3 : 0;
		if (have && i == u.longer / 2) {
			run += u.longer & 1 ? 0 : 65536;
			match += u.longer & 1 ? 65536 : 0;
		}
		uint32_t offset = lade_zstd_map_look(t->last, now.x);
		uint32_t runs = lade_warp_scan(run, lane), ends = lade_warp_scan(run + match, lane);
		uint32_t first = __ballot_sync(LADE_FULL, run != 0);
		uint32_t second = __ballot_sync(LADE_FULL, match != 0);
		lade_zstd_sum before = {}, all = {__shfl_sync(LADE_FULL, runs, 31),
		                                  __shfl_sync(LADE_FULL, ends, 31),
		                                  (uint32_t)(__popc(first) + __popc(second))};
		if (W > 1) {
			if (lane == 0)
				t->sum[warp] = all;
			lade_team_sync<W>();
			all = lade_zstd_sums(t, &before, warp, lane);
		}
		uint32_t start = before.ends + ends - run - match;
		uint32_t at = used + before.runs + runs - run;
		uint32_t piece = before.pieces + __popc(first & below) + __popc(second & below);
		used += all.runs;
		uint32_t rest = last && used <= b.lit_size ? b.lit_size - used : 0;
		if (i == b.seq_count)
			run = rest;
		all.ends += rest;
		all.pieces += rest != 0;
		made += all.ends;
		uint32_t before_match = o->end - t->begin + start + run;
		bool bad = (have && offset - 1 >= before_match) | (used > b.lit_size) |
		           (made > u.block_max) |
		           (all.ends > lade_zstd_room_left(t, *o));
		if (lade_team_any<W>(bad))
			return false;
		lade_lz_sequence q = {{run, match}, {at, offset}, {false, true}};
		lade_lz_group group = {o->end + start, o->pieces + piece,
		                       o->end + all.ends, all.pieces, last && b.last};
		lade_lz_make<W>(&t->lz, o, literals, q, group, &t->place[thread], warp, lane);
	}
	/* Who reads it is behind a barrier. */
	lade_zstd_map then = lade_zstd_map_then(t->last, u.last);
	lade_team_sync<W>();
	if (thread == 0)
		t->last = then;
	return true;
}

/* Ends a frame of 'size' bytes: whether they are right. */
template <int W>
static __device__ __forceinline__ bool lade_zstd_make_end(lade_zstd_makers<W> *t, uint32_t done,
                                                          uint32_t size, uint32_t warp,
                                                          uint32_t lane)
{
	const lade_zstd_unit &u = t->unit;
	const lade_gpu_chunk &c = t->head.c;
	if (u.content != ~(uint64_t)0 && u.content != size)
		return false;
	if (u.sum_at == 0)
		return true;
	lade_team_sync<W>(); /* all of it is there */
	if (warp == 0) {
		uint32_t hash = lade_zstd_hash(c.dst + done, size, lane);
		if (lane == 0)
			t->hash = hash ^ lade_zstd_le(c.src, u.sum_at, 4);
	}
	lade_team_sync<W>();
	return t->hash == 0;
}

/* Makes the chunk whose head is t->head: whether it is right. */
template <int W>
static __device__ __forceinline__ bool lade_zstd_make_chunk(lade_zstd_makers<W> *t,
                                                            const lade_zstd_plan &p,
                                                            uint32_t warp, uint32_t lane,
                                                            uint32_t *done)
{
	uint32_t first = t->head.first, count = t->head.count;
	lade_lz_out o = {};
	*done = 0;
#pragma unroll 1
	for (uint32_t i = 0; i < count; i++) {
		lade_team_sync<W>();
		lade_zstd_note_get(&t->unit, p.unit + first + i, sizeof(t->unit), 32 * warp + lane,
		                   32 * W);
		lade_team_sync<W>();
		if (t->unit.begins && !lade_zstd_make_begin<W>(t, p, &o, *done, warp, lane))
			return false;
		bool right = t->unit.b.kind == LADE_ZSTD_CODED
		                     ? lade_zstd_make_coded<W>(t, p, &o, warp, lane)
		                     : lade_zstd_make_plain<W>(t, &o, warp, lane);
		if (!right)
			return false;
		if (!t->unit.b.last)
			continue;
		uint32_t size = o.end - t->begin;
		if (!lade_zstd_make_end<W>(t, *done, size, warp, lane))
			return false;
		*done += size;
	}
	return true;
}

/* The block's chunk. */
template <int W>
static __device__ __forceinline__ void lade_zstd_execute_chunk(lade_zstd_makers<W> *t,
                                                               const lade_gpu_batch &batch,
                                                               const lade_zstd_plan &p)
{
	uint32_t lane = lade_lane(), warp = __shfl_sync(LADE_FULL, threadIdx.x / 32, 0), done = 0;
	lade_zstd_note_get(&t->head, p.head + blockIdx.x, sizeof(t->head), threadIdx.x, 32 * W);
	__syncthreads();
	bool right = t->head.left == 0 && lade_zstd_make_chunk<W>(t, p, warp, lane, &done);
	if (threadIdx.x)
		return;
	if (right)
		lade_chunk_put(batch, blockIdx.x, LADE_GPU_OK, done);
	else
		p.list[atomicAdd(&p.counts->listed, 1u)] = blockIdx.x;
}

/* Map: block = a chunk, by 4, 8 or 16 warps.  A team of 16 has its shared memory as dynamic memory
 * (codec/zstd/args.h has its size). */
extern "C" __global__ void __launch_bounds__(128, 6)
	lade_zstd_execute4(lade_gpu_batch batch, lade_zstd_plan plan)
{
	LADE_SHARED(lade_zstd_makers<4>, t);
	lade_zstd_execute_chunk<4>(&t, batch, plan);
}

extern "C" __global__ void __launch_bounds__(256, 3)
	lade_zstd_execute8(lade_gpu_batch batch, lade_zstd_plan plan)
{
	LADE_SHARED(lade_zstd_makers<8>, t);
	lade_zstd_execute_chunk<8>(&t, batch, plan);
}

extern "C" __global__ void __launch_bounds__(512, 1)
	lade_zstd_execute16(lade_gpu_batch batch, lade_zstd_plan plan)
{
	LADE_SHARED_DYNAMIC(lade_zstd_makers<16>, t);
	lade_zstd_execute_chunk<16>(t, batch, plan);
}
