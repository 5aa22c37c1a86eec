/*
 * blosc_units.cuh: blocks of Blosc1 containers, by teams of W warps: a team takes a block, decodes
 * its streams one after the other, and takes it from scratch memory to its place, unshuffled.  Or
 * it takes a stream of a block, and unshuffles the block if it is the last one to end there.
 *
 * A decoder is a struct:
 *   W         warps of a team
 *   stream    decodes a stream, by all threads of the team, which all return the same status and
 *             size; it writes no more than c.dst_cap bytes
 *   SHUFFLES  whether the team unshuffles; else lade_blosc_unshuffle_all() does so at the end, as
 *             this code and a long decoder's do not fit in the cache of instructions together
 *   tile      if so: LADE_TILE_SHARED words of shared memory for each warp, between streams
 *   again     if so: makes the team's memory ready for a stream after that
 *
 * Bounds: a stream is within 'cbytes' of the source, its bytes within the block, a block within the
 * chunk, each checked here by one thread, which reads each number once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_BLOSC_UNITS_CUH
#define LADE_CUDA_BLOSC_UNITS_CUH

#include "codec/blosc/kernels/blosc_header.cuh"
#include "codec/lz/kernels/unshuffle.cuh"

#define LADE_BLOSC_END 0xFFFFFFFFu

/* The block that a team is at, in shared memory. */
struct lade_blosc_job {
	lade_gpu_chunk c; /* the stream */
	const uint8_t *src;
	uint8_t *dst, *scratch; /* of the block */
	uint8_t *out;           /* of the next stream */
	uint32_t i, unit;       /* LADE_BLOSC_END: there is no block any more */
	uint32_t status;
	uint32_t at, end;    /* of the source: the next stream, and what is behind all */
	uint32_t size, each; /* bytes of the block, and of its streams */
	uint32_t left;       /* streams that the team decodes */
	uint32_t *counter;   /* of the block's streams that are done, or NULL */
	uint32_t streams;    /* of the block */
	uint32_t filter, typesize;
	bool stored;
};

/* The chunk that 'unit' of the list 'first' is of: the last one that does not begin behind it.
 * Chunks are often alike: then the guess is right. */
static __device__ __forceinline__ uint32_t lade_blosc_find(const uint32_t *first, uint32_t count,
                                                           uint32_t unit, uint32_t units)
{
	uint32_t low = 0, high = count; /* it is in [low, high) */
	uint32_t i = (uint32_t)((uint64_t)unit * count / units);
	while (high - low > 1) {
		if (first[i] > unit)
			high = i;
		else if (i + 1 == high || first[i + 1] > unit)
			return i;
		else
			low = i + 1;
		i = low + (high - low) / 2;
	}
	return low;
}

/* Finds the block's next stream, | size 4 | bytes |, by one thread. */
static __device__ __forceinline__ void lade_blosc_stream(lade_blosc_job *j)
{
	uint32_t size = j->each, have = j->end - j->at;
	if (!j->stored) {
		if (have < 4) {
			j->status = LADE_GPU_CORRUPT;
			return;
		}
		size = lade_blosc_le(j->src + j->at);
		j->at += 4;
		have -= 4;
	}
	if (size > have) {
		j->status = LADE_GPU_CORRUPT;
		return;
	}
	j->c = lade_gpu_chunk{j->src + j->at, j->out, size, j->each};
	j->at += size;
	j->out += j->each;
}

/* Leaves the team one of the block's streams, if there is such a one; by one thread. */
static __device__ __forceinline__ void lade_blosc_open_stream(lade_blosc_job *j, uint32_t stream,
                                                              uint32_t *counter)
{
	if (stream >= j->left) {
		j->left = j->filter = 0;
		j->status = LADE_GPU_OK;
		return;
	}
	j->streams = j->left;
	j->counter = j->filter && j->left > 1 ? counter : nullptr;
	j->left = 1;
	for (uint32_t k = 0; k < stream && j->status == LADE_GPU_OK; k++)
		lade_blosc_stream(j);
}

/* Finds the team's next block, by one thread.  The counter is only trusted to grow. */
static __device__ __forceinline__ void lade_blosc_open(const lade_blosc_plan &p, uint32_t list,
                                                    lade_blosc_job *j)
{
	uint32_t before = j->unit, unit = atomicAdd(p.next + list, 1u), units = p.units[list];
	bool more = unit < units && (before == LADE_BLOSC_END || unit > before);
	j->unit = more ? unit : LADE_BLOSC_END;
	if (!more)
		return;
	const uint32_t *first = p.first + (uint64_t)list * p.count;
	uint32_t i = lade_blosc_find(first, p.count, unit, units);
	lade_blosc_chunk b = p.chunk[i];
	bool whole = b.counter == LADE_BLOSC_WHOLE;
	uint32_t block = (unit - first[i]) / (whole ? 1 : b.streams);
	uint32_t stream = (unit - first[i]) - block * (whole ? 1 : b.streams);
	j->i = i;
	j->status = LADE_GPU_OK;
	j->counter = nullptr;
	j->left = j->filter = 0;
	if (b.list != list || block >= b.blocks)
		return; /* a bad chunk */
	uint32_t off = block * b.blocksize, rest = b.nbytes - off;
	uint32_t table = LADE_BLOSC_HEADER + 4 * block,
		 table_end = LADE_BLOSC_HEADER + 4 * b.blocks;
	j->size = rest < b.blocksize ? rest : b.blocksize;
	j->stored = b.flags & LADE_BLOSC_IS_STORED;
	j->src = b.src;
	j->end = b.cbytes;
	j->at = j->stored ? LADE_BLOSC_HEADER + off : lade_blosc_le(b.src + table);
	j->left = j->size == b.blocksize ? b.streams : 1;
	j->each = j->size / j->left;
	j->typesize = b.typesize;
	j->filter = lade_blosc_filter(b.flags, b.typesize, j->size);
	j->dst = b.dst + off;
	j->scratch = b.scratch + off;
	j->out = j->filter ? j->scratch : j->dst;
	if (!j->stored && (j->at < table_end || j->at > j->end))
		j->status = LADE_GPU_CORRUPT;
	if (!whole)
		lade_blosc_open_stream(j, stream, p.counter + b.counter + block);
}

/* ---- shuffles ------------------------------------------------------------------------------ */

/* Which thread of its team it is. */
struct lade_blosc_me {
	uint32_t thread, threads;
};

/* Elements of any size. */
static __device__ __forceinline__ void lade_blosc_bytes(const uint8_t *src, uint8_t *dst,
                                                        uint32_t size, uint32_t typesize,
                                                        lade_blosc_me me)
{
	uint32_t n = size / typesize, whole = n * typesize;
	for (uint32_t k = me.thread; k < size; k += me.threads)
		dst[k] = __ldcg(src + (k < whole ? k % typesize * n + k / typesize : k));
}

/* The transposed 8 x 8 bits: bit k of byte i becomes bit i of byte k. */
static __device__ __forceinline__ uint64_t lade_blosc_turn(uint64_t x)
{
	uint64_t t = (x ^ (x >> 7)) & 0x00AA00AA00AA00AAull;
	x ^= t ^ (t << 7);
	t = (x ^ (x >> 14)) & 0x0000CCCC0000CCCCull;
	x ^= t ^ (t << 14);
	t = (x ^ (x >> 28)) & 0x00000000F0F0F0F0ull;
	return x ^ t ^ (t << 28);
}

/* Elements from 8 * 'from' on, of rows of 'n' bytes: a byte of 8 rows is one of 8 elements. */
static __device__ __forceinline__ void lade_blosc_bits_any(const uint8_t *src, uint8_t *dst,
                                                           uint32_t n, uint32_t typesize,
                                                           uint32_t from, lade_blosc_me me)
{
	for (uint32_t b = 0; b < typesize; b++)
		for (uint32_t g = from + me.thread; g < n; g += me.threads) {
			const uint8_t *row = src + 8 * b * n + g;
			uint64_t x = 0;
#pragma unroll
			for (uint32_t k = 0; k < 8; k++)
				x |= (uint64_t)__ldcg(row + k * n) << (8 * k);
			x = lade_blosc_turn(x);
			uint8_t *to = dst + 8 * g * typesize + b;
#pragma unroll
			for (uint32_t k = 0; k < 8; k++)
				to[k * typesize] = (uint8_t)(x >> (8 * k));
		}
}

/* A tile of elements from a warp's shared memory to any address; once, as its code is long. */
static __device__ __noinline__ void lade_blosc_tile_put(const uint32_t *tile, uint8_t *dst,
                                                        uint32_t bytes, uint32_t lane)
{
	__syncwarp();
	lade_tile_put_plain<32>(tile, dst, bytes, lane);
	__syncwarp();
}

/* Elements of SIZE bytes, 1, 2, 4 or 8, in rows of 'n' bytes: a warp takes tiles of 4 KiB of
 * elements (rows.cuh).  What is behind the last whole word of the rows is left. */
template <uint32_t SIZE, bool EVEN>
static __device__ __forceinline__ void lade_blosc_bits(uint32_t *tile, const uint8_t *src,
                                                       uint8_t *dst, uint32_t n,
                                                       lade_blosc_me me)
{
	typedef lade_bits<SIZE> shape;
	uint32_t lane = me.thread % 32, whole = n & ~3u;
#pragma unroll 1
	for (uint32_t at = me.thread / 32 * shape::GROUPS; at < whole;
	     at += me.threads / 32 * shape::GROUPS) {
		uint32_t w[32], most = whole - at < shape::GROUPS ? whole - at : shape::GROUPS;
		uint32_t pitch = n;
#if LADE_ON_GPU
		asm volatile("" : "+r"(pitch)); /* else 32 addresses would be kept */
#endif
#pragma unroll
		for (uint32_t k = 0; k < 32; k++) {
			uint32_t g = 128 * (k / shape::WORDS) + 4 * (lane / shape::STEP);
			uint32_t row = shape::row(k % shape::WORDS, lane);
			w[k] = g < most
			               ? lade_unshuffle_word<EVEN>(src + row * pitch + at + g)
			               : 0;
		}
#pragma unroll
		for (uint32_t set = 0; set < shape::SETS; set++)
			shape::from_rows(w + set * shape::WORDS);
#pragma unroll
		for (uint32_t k = 0; k < 32; k++)
			tile[shape::slot(k, lane)] = w[k];
		lade_blosc_tile_put(tile, dst + shape::PLAIN * at, shape::PLAIN * most, lane);
	}
}

template <uint32_t SIZE>
static __device__ __forceinline__ void lade_blosc_bits_put(uint32_t *tile, const uint8_t *src,
                                                           uint8_t *dst, uint32_t n,
                                                           lade_blosc_me me)
{
	if (((uintptr_t)src | n) & 3)
		lade_blosc_bits<SIZE, false>(tile, src, dst, n, me);
	else
		lade_blosc_bits<SIZE, true>(tile, src, dst, n, me);
	lade_blosc_bits_any(src, dst, n, SIZE, n & ~3u, me);
}

/* A block whose elements have a multiple of 8; bytes behind them stay as they are.  'tile' is
 * LADE_TILE_SHARED words of shared memory, the warp's own. */
[[maybe_unused]] static __device__ __noinline__ void
lade_blosc_unshuffle_bits(const lade_blosc_job *j, uint32_t *tile, lade_blosc_me me)
{
	const uint8_t *src = lade_global((const uint8_t *)j->scratch);
	uint8_t *dst = lade_global(j->dst);
	uint32_t n = j->size / j->typesize / 8;
	if (j->typesize == 1)
		lade_blosc_bits_put<1>(tile, src, dst, n, me);
	else if (j->typesize == 2)
		lade_blosc_bits_put<2>(tile, src, dst, n, me);
	else if (j->typesize == 4)
		lade_blosc_bits_put<4>(tile, src, dst, n, me);
	else if (j->typesize == 8)
		lade_blosc_bits_put<8>(tile, src, dst, n, me);
	else
		lade_blosc_bits_any(src, dst, n, j->typesize, 0, me);
	for (uint32_t k = 8 * n * j->typesize + me.thread; k < j->size; k += me.threads)
		dst[k] = __ldcg(src + k);
}

template <uint32_t SIZE>
static __device__ __forceinline__ void lade_blosc_bytes_put(const lade_blosc_job *j, uint32_t warp,
                                                            uint32_t warps, uint32_t lane)
{
	const uint8_t *src = lade_global((const uint8_t *)j->scratch);
	uint8_t *dst = lade_global(j->dst);
	if (((uintptr_t)src | j->size / SIZE) & 3)
		lade_unshuffle<SIZE, false>(src, dst, j->size, warp, warps, lane);
	else
		lade_unshuffle<SIZE, true>(src, dst, j->size, warp, warps, lane);
}

[[maybe_unused]] static __device__ __noinline__ void
lade_blosc_unshuffle(const lade_blosc_job *j, uint32_t warp, uint32_t warps, uint32_t lane)
{
	if (j->typesize == 2)
		lade_blosc_bytes_put<2>(j, warp, warps, lane);
	else if (j->typesize == 4)
		lade_blosc_bytes_put<4>(j, warp, warps, lane);
	else if (j->typesize == 8)
		lade_blosc_bytes_put<8>(j, warp, warps, lane);
	else
		lade_blosc_bytes(j->scratch, j->dst, j->size, j->typesize,
		                 {32 * warp + lane, 32 * warps});
}

/* ---- blocks -------------------------------------------------------------------------------- */

/* Decodes the streams of the job's block; all threads of the team. */
template <class D>
static __device__ __forceinline__ uint32_t lade_blosc_streams(D &d, lade_blosc_job *j,
                                                              uint32_t warp, uint32_t lane)
{
	uint32_t status = j->status;
	for (uint32_t left = j->left; left && status == LADE_GPU_OK; left--) {
		lade_team_sync<D::W>();
		if (warp == 0 && lane == 0)
			lade_blosc_stream(j);
		lade_team_sync<D::W>();
		status = j->status;
		if (status != LADE_GPU_OK)
			break;
		lade_gpu_chunk c = j->c;
		if (c.src_size == c.dst_cap) {
			lade_lz_copy_any<D::W>(c.dst, c.src, c.src_size, 32 * warp + lane);
			continue;
		}
		uint32_t size = 0;
		status = d.stream(c, &size, warp, lane);
		if (status != LADE_GPU_OK || size != c.dst_cap)
			status = LADE_GPU_CORRUPT;
	}
	return status;
}

/* Says that a stream is done, by all threads of the team; the block is unshuffled by the team that
 * says so last.  Behind a fault it may never be. */
template <int W>
static __device__ __forceinline__ void lade_blosc_done(lade_blosc_job *j, bool first)
{
	if (first) {
		if (lade_add_release_gpu(j->counter, 1) + 1 == j->streams)
			__threadfence();
		else
			j->filter = 0;
	}
	lade_team_sync<W>();
}

/* Unshuffles the job's block, by the team that has ended with it. */
template <class D>
static __device__ __forceinline__ void lade_blosc_end(D &d, lade_blosc_job *j, bool first,
                                                      uint32_t warp, uint32_t lane)
{
	lade_team_sync<D::W>();
	if (j->counter)
		lade_blosc_done<D::W>(j, first);
	uint32_t filter = j->filter;
	if (filter == LADE_BLOSC_SHUFFLE) {
		lade_blosc_unshuffle(j, warp, D::W, lane);
	} else if (filter) {
		lade_blosc_unshuffle_bits(j, d.tile() + warp * LADE_TILE_SHARED,
		                          {32 * warp + lane, 32 * D::W});
		lade_team_sync<D::W>();
		d.again(warp, lane);
	}
}

/* Decodes block after block of a list; all threads of the team. */
template <class D>
static __device__ __forceinline__ void lade_blosc_units(D &d, const lade_blosc_plan &p,
                                                        uint32_t list, lade_blosc_job *j,
                                                        uint32_t warp, uint32_t lane)
{
	bool first = warp == 0 && lane == 0;
	lade_begin_early();
	if (p.units[list] == 0) /* most often only one list has units */
		return;
	if (first)
		j->unit = LADE_BLOSC_END;
	for (;;) {
		if (first)
			lade_blosc_open(p, list, j);
		lade_team_sync<D::W>();
		if (j->unit == LADE_BLOSC_END)
			break;
		uint32_t status = lade_blosc_streams(d, j, warp, lane);
		if constexpr (D::SHUFFLES)
			if (status == LADE_GPU_OK && j->filter)
				lade_blosc_end(d, j, first, warp, lane);
		/* The plan said LADE_GPU_OK; who finds a fault says so, once or more often. */
		if (first && status != LADE_GPU_OK) {
			if (p.dst_size)
				p.dst_size[j->i] = 0;
			if (p.status)
				p.status[j->i] = status;
		}
		lade_team_sync<D::W>();
	}
}

#endif
