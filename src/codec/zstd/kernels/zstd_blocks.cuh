/*
 * zstd_blocks.cuh: blocks of Zstandard chunks side by side: what is noted of them, how they are
 * found, and how their literals and sequences are read (docs/performance/log/gpu-zstd.md).
 *
 *     find      a chunk's blocks are noted as units, with memory for what is read of each
 *     read      units' literals and sequences go to that memory, in any order
 *     execute   a chunk's units become its output, in their order (zstd_execute.cu)
 *
 * A block may repeat a table of an earlier one of its frame: find notes which, and the table is
 * made again.  The last three offsets before a block are not known while it is read.  So offsets
 * are kept as maps have them (zstd_sequences.cuh): a number, or a former one less some.
 *
 * A chunk of which anything is wrong, or unusual, is left to lade_zstd_decode, which begins it
 * anew: so verdicts are that kernel's.
 *
 * Bounds: find checks all places and sizes against the source, and keeps them.  What is read later
 * is bounded by these, whatever the bytes are by then.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_ZSTD_BLOCKS_CUH
#define LADE_CUDA_ZSTD_BLOCKS_CUH

#include "codec/zstd/kernels/zstd_huffman.cuh"
#include "codec/zstd/kernels/zstd_sequences.cuh"

#define LADE_ZSTD_NO_UNIT 0xFFFFFFFFu

/* Four streams of this number of literals in all, or more, have a warp each. */
#define LADE_ZSTD_APART 32768u

/* A chunk. */
struct lade_zstd_head {
	lade_gpu_chunk c;
	uint64_t at, size;     /* its memory in the pool */
	uint32_t first, count; /* units */
	uint32_t left;         /* not 0: it is left to lade_zstd_decode */
};
static_assert(sizeof(lade_zstd_head) == LADE_ZSTD_HEAD_SIZE, "");

/* A block.  Other units of the chunk are named by how many stand before them. */
struct lade_zstd_unit {
	lade_zstd_block b;
	uint64_t content;             /* of its frame; ~0: not stated */
	uint64_t literals, sequences; /* in the chunk's memory */
	uint32_t chunk, own, block_max; /* 'own': its name */
	uint32_t tree, table[3]; /* who describes them: this unit, or an earlier one */
	/* 2 * i or 2 * i + 1: the run or the match of sequence i has 65536 bytes more than is kept;
	 * ~0: none. */
	uint32_t longer;
	lade_zstd_map last; /* what its sequences make of the last three offsets */
	uint32_t sum_at;    /* where the frame's checksum is, behind its last unit; 0: none */
	uint32_t begins;    /* a frame */
};
static_assert(sizeof(lade_zstd_unit) == LADE_ZSTD_UNIT_SIZE, "");

static __device__ __forceinline__ lade_zstd_map lade_zstd_map_keep()
{
	constexpr uint32_t F = LADE_ZSTD_FORMER;
	return lade_zstd_map{{F, F | 1, F | 2}};
}

/* Copies 'size' bytes, whole words, by 'threads' threads. */
static __device__ __forceinline__ void lade_zstd_note_get(void *to, const void *from, uint32_t size,
                                                          uint32_t thread, uint32_t threads)
{
	for (uint32_t i = thread; i < size / 4; i += threads)
		((uint32_t *)to)[i] = ((const uint32_t *)from)[i];
}

/* ---- find ---------------------------------------------------------------------------------- */

/* Notes where a chunk's blocks are, in 'room' units at most, by one lane: how many; 0: something is
 * wrong, or unusual. */
static __device__ __noinline__ uint32_t lade_zstd_chain(const lade_gpu_chunk &c, uint32_t chunk,
                                                        lade_zstd_unit *unit, uint32_t room)
{
	uint32_t at = 0, count = 0;
	for (;;) {
		lade_zstd_frame f = {};
		if (lade_zstd_frame_read(c.src, c.src_size, &at, &f) != LADE_GPU_OK || f.id)
			return 0;
		if (!f.there)
			return count;
		lade_zstd_unit u = {};
		u.chunk = chunk;
		u.block_max = f.block_max;
		u.content = f.content;
		u.begins = 1;
		do {
			if (count == room ||
			    lade_zstd_block_skip(c.src, c.src_size, &at, &u.b) != LADE_GPU_OK ||
			    u.b.size > f.block_max)
				return 0;
			if (u.b.last && f.checksum) {
				if (c.src_size - at < 4)
					return 0;
				u.sum_at = at;
				at += 4;
			}
			u.own = count;
			unit[count++] = u;
			u.begins = 0;
		} while (!u.b.last);
	}
}

/* Of the units behind the last one that begins a frame, up to and with the lane's own, the newest
 * of 'who' before the lane's own; 'carry' is that before lane 0.  'lane' may be 32. */
static __device__ __forceinline__ uint32_t lade_zstd_newest(uint32_t who, uint32_t begins,
                                                            uint32_t carry, uint32_t group,
                                                            uint32_t lane)
{
	uint32_t below = lane < 32 ? (1u << lane) - 1 : LADE_FULL;
	uint32_t upto = begins & (lane < 32 ? 2 * below + 1 : LADE_FULL);
	if (upto) {
		who &= LADE_FULL << lade_zstd_log2(upto);
		carry = LADE_ZSTD_NO_UNIT;
	}
	who &= below;
	return who ? group + lade_zstd_log2(who) : carry;
}

/* Reads the headers of the sections of 'count' units, and gives them places; by a warp.  Whether
 * they are right. */
static __device__ __forceinline__ bool lade_zstd_sections(const lade_gpu_chunk &c,
                                                          const lade_zstd_plan &p,
                                                          lade_zstd_head *h, uint32_t lane)
{
	uint32_t newest[4] = {LADE_ZSTD_NO_UNIT, LADE_ZSTD_NO_UNIT, LADE_ZSTD_NO_UNIT,
	                      LADE_ZSTD_NO_UNIT};
	h->size = 0;
	for (uint32_t g = 0; g < h->count; g += 32) {
		bool have = g + lane < h->count;
		lade_zstd_unit *unit = p.unit + h->first + g + lane, u = {};
		if (have)
			u = *unit;
		bool coded = have && u.b.kind == LADE_ZSTD_CODED, right = true;
		uint32_t end = u.b.at + u.b.size;
		if (coded)
			right = lade_zstd_literals_read(c.src, end, u.block_max, &u.b) ==
			                LADE_GPU_OK &&
			        lade_zstd_sequences_read(c.src, end, &u.b) == LADE_GPU_OK;
		if (__any_sync(LADE_FULL, !right))
			return false;
		bool reads = coded && u.b.seq_count, codes = coded && u.b.lit_kind != LADE_ZSTD_RAW;
		uint32_t begins = __ballot_sync(LADE_FULL, u.begins);
#pragma unroll
		for (uint32_t k = 0; k < 4; k++) {
			bool uses = k < 3 ? reads : codes && u.b.lit_kind != LADE_ZSTD_RLE;
			bool again = (k < 3 ? u.b.modes >> (6 - 2 * k) & 3 : u.b.lit_kind) ==
			             LADE_ZSTD_REPEAT;
			uint32_t who = __ballot_sync(LADE_FULL, uses && !again);
			uint32_t from = lade_zstd_newest(who, begins, newest[k], g, lane);
			newest[k] = lade_zstd_newest(who, begins, newest[k], g, 32);
			from = again ? from : g + lane;
			right = right && !(uses && from == LADE_ZSTD_NO_UNIT);
			if (k < 3)
				u.table[k] = from;
			else
				u.tree = from;
		}
		uint32_t literals = codes ? (u.b.lit_size + 15) & ~15u : 0;
		uint32_t sequences =
			reads ? (LADE_ZSTD_SEQUENCE_SIZE * u.b.seq_count + 15) & ~15u : 0;
		uint32_t ends = lade_warp_scan(literals + sequences, lane);
		u.literals = h->size + ends - literals - sequences;
		u.sequences = u.literals + literals;
		u.longer = ~0u;
		u.last = lade_zstd_map_keep();
		h->size += __shfl_sync(LADE_FULL, ends, 31);
		if (__any_sync(LADE_FULL, !right))
			return false;
		if (have)
			*unit = u;
		if (reads)
			p.sequences[atomicAdd(&p.counts->sequences, 1u)] = h->first + g + lane;
		uint32_t parts = codes && u.b.streams == 4 && literals >= LADE_ZSTD_APART ? 4 : 1;
		uint32_t place = codes ? atomicAdd(&p.counts->literals, parts) : 0;
		for (uint32_t k = 0; codes && k < parts; k++)
			p.literals[place + k] = (h->first + g + lane) * 8 + (parts == 4 ? k : 4);
	}
	return true;
}

/* Whether one of the chunk's bytes in the pool, which begin at 'at' there, has an address that is
 * one of its output's but for the high half: see lade_lz_out_of(). */
static __device__ __forceinline__ bool lade_zstd_alike(const lade_zstd_plan &p,
                                                       const lade_zstd_head &h, uint64_t at)
{
	uint64_t begin = (uintptr_t)h.c.dst & ~(uintptr_t)(LADE_LZ_TILE - 1);
	uint64_t size = (uintptr_t)h.c.dst - begin + h.c.dst_cap;
	uint32_t apart = (uint32_t)((uintptr_t)(p.pool + at) - begin);
	return h.size && (h.size >> 31 || apart < size || 0 - apart < h.size);
}

/* Finds a place in the pool for the chunk, by one lane: one that is not like its output if it can
 * be, as the executor is slow where it is.  Whether there is room. */
static __device__ __forceinline__ bool lade_zstd_place(const lade_zstd_plan &p, lade_zstd_head *h)
{
	bool found = false;
	for (int i = 0; i < 4 && (i == 0 || lade_zstd_alike(p, *h, h->at)); i++) {
		uint64_t at = atomicAdd((unsigned long long *)&p.counts->pool,
		                        (unsigned long long)h->size);
		if (at > p.pool_size || h->size > p.pool_size - at)
			break;
		h->at = at;
		found = true;
	}
	return found;
}

/* Finds the blocks of chunk 'i', by a warp. */
static __device__ __forceinline__ void lade_zstd_find_chunk(const lade_gpu_batch &batch,
                                                            const lade_zstd_plan &p, uint32_t i,
                                                            lade_zstd_head *h, uint32_t lane)
{
	if (lane == 0) {
		*h = lade_zstd_head{};
		h->left = lade_chunk_get(batch, i, &h->c) != LADE_GPU_OK;
		uint32_t most = h->c.dst_cap < p.largest ? h->c.dst_cap : p.largest;
		uint32_t room = most / LADE_ZSTD_UNIT_BYTES + p.more;
		if (!h->left) {
			uint64_t first = atomicAdd((unsigned long long *)&p.counts->units,
			                           (unsigned long long)room);
			h->first = (uint32_t)first;
			if (first < p.units && room <= p.units - first)
				h->count = lade_zstd_chain(h->c, i, p.unit + first, room);
		}
		h->left |= h->count == 0;
	}
	__syncwarp();
	lade_zstd_head own = *h; /* its numbers are the same in all lanes */
	if (!own.left) {
		uint64_t most = own.c.dst_cap < p.largest ? own.c.dst_cap : p.largest;
		bool right = lade_zstd_sections(own.c, p, &own, lane) &&
		             own.size <= LADE_ZSTD_POOL(most, own.count);
		if (lane == 0 && right)
			own.left = !lade_zstd_place(p, &own);
		own.left |= !right;
	}
	if (lane == 0)
		p.head[i] = own;
	__syncwarp();
}

/* ---- read ---------------------------------------------------------------------------------- */

/* Makes the tables of unit 'u', by a warp; *at is then where its bits begin.  Earlier units' tables
 * are made first, in their order, so that the newest one stays. */
static __device__ __forceinline__ bool lade_zstd_unit_tables(lade_zstd_walker *w,
                                                             const lade_zstd_plan &p,
                                                             const lade_zstd_head &h,
                                                             const lade_zstd_unit &u, uint32_t *at,
                                                             uint32_t lane)
{
	uint32_t next = 0;
	__syncwarp();
	if (lane < 3)
		w->log[lane] = 0; /* none: but each will be made */
	__syncwarp();
#pragma unroll 1
	for (;;) {
		uint32_t from = u.own;
		for (uint32_t k = 0; k < 3; k++)
			if (u.table[k] >= next && u.table[k] < from)
				from = u.table[k];
		const lade_zstd_block &b = p.unit[h.first + from].b;
		*at = b.seq_at;
		if (!lade_zstd_tables_read(w, h.c.src, at, b.at + b.size, b.modes, lane))
			return false;
		if (from == u.own)
			return true;
		next = from + 1;
	}
}

/* Keeps the lane's sequence at 'to', its offset by 'last', the map of those before the round, and
 * then of those behind it.  False: there are two long ones, or more. */
static __device__ __forceinline__ bool lade_zstd_keep(uint8_t *to, const lade_zstd_taken &t,
                                                      lade_zstd_map *last, uint32_t *longer,
                                                      uint32_t i, uint32_t lane)
{
	uint32_t offset = lade_zstd_offset(last, t.offset, t.run != 0, t.have, lane);
	uint32_t match = t.match - 3, high = t.have ? t.run >> 16 | (match >> 16) << 1 : 0;
	uint32_t some = __ballot_sync(LADE_FULL, high != 0);
	if (t.have)
		((uint2 *)lade_global(to))[i] =
			make_uint2(offset, (t.run & 0xFFFF) | match << 16);
	if (!some)
		return true;
	uint32_t who = lade_zstd_log2(some), both = __shfl_sync(LADE_FULL, high, who);
	if (some & (some - 1) || both == 3 || *longer != ~0u)
		return false;
	*longer = 2 * (i - lane + who) + (both >> 1);
	return true;
}

/* What a warp reads the sequences of K units with. */
template <int K> struct lade_zstd_chains {
	lade_zstd_walker walker[K];
	lade_zstd_head head[K];
	lade_zstd_unit unit[K];
};

/* A unit whose sequences are read; all lanes know this. */
struct lade_zstd_chain_at {
	lade_zstd_walk walk; /* the states are those of the lane that walks */
	lade_zstd_map last;
	uint32_t longer, count; /* sequences */
	uint8_t *to;
	bool open, right;
};

/* Begins to read, as the k-th, the sequences of the unit named 'number'. */
template <int K>
static __device__ __forceinline__ void lade_zstd_chain_begin(lade_zstd_chain_at *c,
                                                             lade_zstd_chains<K> *s, uint32_t k,
                                                             const lade_zstd_plan &p,
                                                             uint32_t number, uint32_t lane)
{
	lade_zstd_head &h = s->head[k];
	lade_zstd_unit &u = s->unit[k];
	__syncwarp();
	lade_zstd_note_get(&u, p.unit + number, sizeof(u), lane, 32);
	__syncwarp();
	lade_zstd_note_get(&h, p.head + u.chunk, sizeof(h), lane, 32);
	__syncwarp();
	c->walk = lade_zstd_walk{h.c.src, h.c.src_size};
	c->last = lade_zstd_map_keep();
	c->longer = ~0u;
	c->count = u.b.seq_count;
	c->to = p.pool + h.at + u.sequences;
	c->right = h.left == 0 &&
	           lade_zstd_unit_tables(&s->walker[k], p, h, u, &c->walk.from, lane) &&
	           lade_zstd_walk_begin(&s->walker[k], &c->walk, u.b.at + u.b.size, lane);
	c->open = c->right;
}

/* Keeps the round of sequences from 'i' on, which ends before bit 'at'. */
static __device__ __forceinline__ void lade_zstd_chain_keep(lade_zstd_chain_at *c,
                                                            const lade_zstd_walker *w, uint32_t i,
                                                            uint32_t at, uint32_t lane)
{
	bool end = c->count - i <= 32;
	uint32_t begin = c->walk.begin;
	lade_zstd_taken t = {};
	c->walk.at = at;
	c->right = end ? at == begin : (int32_t)(at - begin) >= 0;
	if (c->right && lane < c->count - i)
		t = lade_zstd_extract(w, lane);
	c->right = c->right && lade_zstd_keep(c->to, t, &c->last, &c->longer, i + lane, lane);
	c->open = c->right && !end;
}

/*
 * Reads the sequences of up to K units, from the one that stands at 'next' on, by a warp.  Lane k
 * walks those of the k-th, all lanes at once; the rest is done by all lanes for one unit after the
 * other.
 */
template <int K>
static __device__ __forceinline__ void lade_zstd_read_chains(lade_zstd_chains<K> *s,
                                                             const lade_zstd_plan &p,
                                                             uint32_t next, uint32_t lane)
{
	lade_zstd_chain_at c[K];
	lade_zstd_walk own = {};
	uint32_t units = p.counts->sequences - next, count = 0, some = 0;
	units = units < K ? units : K;
#pragma unroll
	for (uint32_t k = 0; k < K; k++) {
		c[k] = lade_zstd_chain_at{};
		if (k < units)
			lade_zstd_chain_begin<K>(&c[k], s, k, p, p.sequences[next + k], lane);
		own = lane == k ? c[k].walk : own;
		count = lane == k ? c[k].count : count;
		some |= c[k].open << k;
	}
#pragma unroll 1
	for (uint32_t i = 0; some; i += 32) {
		lade_cp_async_wait<0>(); /* what the round before has asked for */
		__syncwarp();
#pragma unroll
		for (uint32_t k = 0; k < K; k++)
			if (c[k].open)
				lade_zstd_bring(&s->walker[k], &c[k].walk, lane);
		if (some >> lane & 1) {
			bool last = count - i <= 32;
			uint32_t n = last ? count - i : 32;
			if (K == 1 && p.few)
				lade_zstd_walk_round<true>(&s->walker[0], &own, n, last);
			else
				lade_zstd_walk_round<false>(&s->walker[lane % K], &own, n, last);
		}
		__syncwarp();
		some = 0;
#pragma unroll
		for (uint32_t k = 0; k < K; k++) {
			uint32_t at = __shfl_sync(LADE_FULL, own.at, k);
			if (c[k].open)
				lade_zstd_chain_keep(&c[k], &s->walker[k], i, at, lane);
			some |= c[k].open << k;
		}
	}
	lade_cp_async_wait<0>();
	__syncwarp();
#pragma unroll
	for (uint32_t k = 0; k < K; k++) {
		if (k >= units || lane)
			continue;
		lade_zstd_unit *u = p.unit + s->head[k].first + s->unit[k].own;
		if (c[k].right) {
			u->last = c[k].last;
			u->longer = c[k].longer;
		} else {
			p.head[s->unit[k].chunk].left = 1;
		}
	}
}

/* The same until there are no units left. */
template <int K>
static __device__ __forceinline__ void lade_zstd_read_sequences(lade_zstd_chains<K> *s,
                                                                const lade_zstd_plan &p,
                                                                uint32_t lane)
{
	for (;;) {
		uint32_t next = 0;
		if (lane == 0)
			next = atomicAdd(&p.counts->next_sequences, (uint32_t)K);
		next = __shfl_sync(LADE_FULL, next, 0);
		if (next >= p.counts->sequences)
			return;
		lade_zstd_read_chains<K>(s, p, next, lane);
	}
}

/* What a warp reads literals with. */
struct lade_zstd_spelling {
	lade_zstd_huffman huffman;
	lade_zstd_head head;
	lade_zstd_unit unit;
};

/* Reads a unit's literals, which are not in the source as they are, by a warp: whether they are
 * right.  'part' is the stream that it reads; 4: all. */
static __device__ __forceinline__ bool lade_zstd_unit_literals(lade_zstd_spelling *s,
                                                               const lade_zstd_plan &p,
                                                               uint32_t part, uint32_t lane)
{
	const lade_zstd_head &h = s->head;
	const lade_zstd_unit &u = s->unit;
	lade_zstd_huffman *t = &s->huffman;
	const uint8_t *src = h.c.src;
	uint8_t *to = p.pool + h.at + u.literals;
	uint32_t at;
	if (u.b.lit_kind == LADE_ZSTD_RLE) {
		uint8_t value = src[u.b.lit_at];
		for (uint32_t i = lane; i < u.b.lit_size; i += 32)
			to[i] = value;
		return true;
	}
	if (u.b.lit_kind == LADE_ZSTD_REPEAT) {
		const lade_zstd_block &b = p.unit[h.first + u.tree].b;
		uint32_t end = b.lit_at + b.lit_coded;
		lade_zstd_fetch(&t->maker, src, b.lit_at, end, lane);
		lade_zstd_tree_read(t, b.lit_at, end, lane);
		if (lane == 0)
			t->log = 1; /* there is one */
		__syncwarp();
	}
	if (!lade_zstd_codes(t, src, u.b, &at, lane))
		return false;
	return part < 4 ? lade_zstd_streams<true>(t, src, u.b, at, to, 32 * part + lane)
	                : lade_zstd_streams<false>(t, src, u.b, at, to, lane);
}

/* Reads units' literals until there are none left. */
static __device__ __forceinline__ void lade_zstd_read_literals(lade_zstd_spelling *s,
                                                               const lade_zstd_plan &p,
                                                               uint32_t lane)
{
	for (;;) {
		uint32_t next = 0;
		if (lane == 0)
			next = atomicAdd(&p.counts->next_literals, 1u);
		next = __shfl_sync(LADE_FULL, next, 0);
		if (next >= p.counts->literals)
			return;
		uint32_t which = p.literals[next];
		__syncwarp();
		lade_zstd_note_get(&s->unit, p.unit + which / 8, sizeof(s->unit), lane, 32);
		__syncwarp();
		lade_zstd_note_get(&s->head, p.head + s->unit.chunk, sizeof(s->head), lane, 32);
		__syncwarp();
		if (s->head.left == 0 &&
		    !lade_zstd_unit_literals(s, p, which % 8, lane) && lane == 0)
			p.head[s->unit.chunk].left = 1;
	}
}

/* What a warp reads both with, first sequences and then literals. */
union lade_zstd_reading {
	lade_zstd_chains<1> chains;
	lade_zstd_spelling spelling;
};

#endif
