/*
 * lz_encode.cuh: the encoder that LZ formats share: it finds matches; the format's functions write
 * them.
 *
 * A warp looks at 64 positions of the source in one step, two a lane and 'unit' bytes apart (the
 * element's size, or 2 for elements of 8 bytes, whose low half may differ where the rest repeats):
 *
 *     load 8 bytes -> hash of 4 -> table of positions -> 8 bytes there -> equal bytes, 4 to 8
 *                             and the same with the 8 bytes before, which are another lane's
 *     a position whose right neighbour's match is longer by two or more gives its own up
 *     matches of 8 bytes are followed for 8 more, each by its lane
 *     walk: the first position with a match, on to the first at or behind its end, and so on;
 *           matches of 16 bytes are followed to their end by the whole warp as the walk meets them
 *
 * So a step finds all sequences (a literal run, then a match) of at least 64 units.  A ring
 * collects them; as soon as it has 32 they are written, a lane a sequence: sizes by a prefix sum,
 * then headers, literals and matches.  After two steps without a match the steps grow by a unit
 * each, up to 64 bytes between positions; the next match takes the warp back by one such distance,
 * and to steps of units.
 *
 * The table holds 4,096 positions, modulo 65,536: an entry gives a distance of 1 to 65,535.  The
 * bytes there are always compared, so that entries of an earlier 64 KiB do no harm.  Of the
 * positions inside a match only the first three are entered, and not every literal is.  Where two
 * lanes write one slot either may win; the stream is valid with both.
 *
 * Solo, a warp encodes a chunk.  In a team each warp encodes a part of it.  All warps first build
 * the tables that the parts begin with, so that matches reach back into earlier parts; at the end
 * the parts' outputs are joined.  One H200, chunks of 64 KiB, 2026-11-21: a team of 16 is
 * fastest up to one chunk a multiprocessor (100 chunks: 53 GB/s, solo 9), of 8 up to some 12
 * (1,000 chunks: 102, solo 74), and then solo (10,000 chunks: 148).  Shared memory is the limit: a
 * multiprocessor holds three teams of 8, one of 16, or 20 solo warps.
 *
 * Bounds: words are read from the first word boundary of the source on, and up to 12 bytes from a
 * position, which is at least 12 bytes before the end.  Nothing is written before its size is
 * known to fit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_LZ_ENCODE_CUH
#define LADE_CUDA_LZ_ENCODE_CUH

#include "codec/lz/args.h"
#include "gpu/kernels/batch.cuh"

#define LADE_LZ_SLOT_BITS 12u
#define LADE_LZ_SLOTS (1u << LADE_LZ_SLOT_BITS)
#define LADE_LZ_ROWS 2u     /* positions of a step that a lane looks at */
#define LADE_LZ_RING 96u    /* sequences to be written: 31 at most before a step, 64 more of it */
#define LADE_LZ_EDGE 12u    /* the last position looked at is this far from the end */
#define LADE_LZ_NEAR 8u     /* a distance that is tried besides the table's */
#define LADE_LZ_SEEN 8u     /* equal bytes that a lane counts by itself */
#define LADE_LZ_LONG 20u    /* bytes read from a position on when these are all equal */
#define LADE_LZ_PATIENCE 2u /* steps without a match before steps grow */
#define LADE_LZ_WIDEST 64u  /* bytes between lanes, at most */
#define LADE_LZ_SHORT 16u   /* literals that a lane copies by itself */
#define LADE_LZ_SOLO_WARPS 5    /* of a block; four blocks leave room for a first-level cache */
#define LADE_LZ_TEAM_MOST 16    /* warps of a team, at most */
#define LADE_LZ_PART 2048u      /* a team's parts are at least this long */
#define LADE_LZ_GAP 8u

/* A warp's part of shared memory. */
struct lade_lz_encode_warp {
	uint16_t table[LADE_LZ_SLOTS]; /* by hash: the last position entered, modulo 65,536 */
	uint32_t pos[LADE_LZ_RING];    /* the ring: where a match begins, */
	uint32_t end[LADE_LZ_RING];    /* ends, */
	uint16_t dist[LADE_LZ_RING];   /* and how far back its bytes stand */
};

/* What a warp knows of its chunk; the same in all lanes. */
struct lade_lz_encoder {
	const uint8_t *src;
	const uint32_t *words; /* the word that holds src[0] */
	uint8_t *dst;
	uint32_t skew;        /* src[0] is that byte of it */
	uint32_t size, limit; /* of the source; where its last match may end */
	uint32_t first;       /* words are read from here on: src + first is aligned */
	uint32_t cap, out;    /* the destination's size, bytes written */
	uint32_t anchor;      /* source bytes whose encoding is written */
	uint32_t head, count; /* the ring's oldest sequence; how many it holds */
};

/* ---- bytes ------------------------------------------------------------------------------------
 */

/* Four bytes from 'pos' on; reads up to 7 bytes behind 'pos'. */
LADE_DEVICE uint32_t lade_lz_word(const lade_lz_encoder &e, uint32_t pos)
{
	uint32_t at = pos + e.skew;
	const uint32_t *w = e.words + (at >> 2);
	return __funnelshift_r(w[0], w[1], at * 8);
}

LADE_DEVICE uint32_t lade_lz_slot(uint32_t word)
{
	return (word * 2654435761u) >> (32 - LADE_LZ_SLOT_BITS);
}

/* Eight bytes at 'at', which counts from e.words on; reads up to 11 bytes behind it. */
LADE_DEVICE uint2 lade_lz_eight(const lade_lz_encoder &e, uint32_t at)
{
	const uint32_t *w = e.words + (at >> 2);
	uint32_t w0 = w[0], w1 = w[1], w2 = w[2];
	return make_uint2(__funnelshift_r(w0, w1, at * 8), __funnelshift_r(w1, w2, at * 8));
}

/* How many of the four bytes of 'diff' are zero before the first one that is not. */
LADE_DEVICE uint32_t lade_lz_same(uint32_t diff)
{
	uint32_t n = (uint32_t)(__ffs((int)diff) - 1) >> 3;
	return n < 4 ? n : 4;
}

/* Copies by 'lanes' threads, of which the caller is 'lane': words to word boundaries of 'dst'. */
LADE_DEVICE void lade_lz_literals(uint8_t *dst, const uint8_t *src, uint32_t size, uint32_t lane,
                                  uint32_t lanes)
{
	uint32_t head = (uint32_t)(0 - (uintptr_t)dst) & 3;
	head = head < size ? head : size;
	uint32_t before = (uint32_t)(uintptr_t)(src + head) & 3;
	/* A word is made of the one that holds its first byte and the next, which is read only
	 * while all of its bytes belong to the source; the first may begin before it, so with a
	 * shift the first four bytes go one by one. */
	uint32_t begin = before && size >= head + 4 ? head + 4 : head;
	uint32_t words = size - begin < 8 ? 0 : (size - begin - 4) / 4;
	const uint32_t *from = (const uint32_t *)(src + begin - before);
	uint32_t *to = (uint32_t *)(dst + begin);
	for (uint32_t i = lane; i < begin; i += lanes)
		dst[i] = src[i];
	uint32_t i = lane;
	for (; i + 7 * lanes < words; i += 8 * lanes) {
		uint32_t w[8];
#pragma unroll
		for (uint32_t k = 0; k < 8; k++)
			w[k] = __funnelshift_r(from[i + k * lanes], from[i + k * lanes + 1],
			                       8 * before);
#pragma unroll
		for (uint32_t k = 0; k < 8; k++)
			to[i + k * lanes] = w[k];
	}
	for (; i < words; i += lanes)
		to[i] = __funnelshift_r(from[i], from[i + 1], 8 * before);
	for (i = begin + 4 * words + lane; i < size; i += lanes)
		dst[i] = src[i];
}

/* Copies up to LADE_LZ_SHORT literals by one lane; 8 bytes of the source stand behind them. */
LADE_DEVICE void lade_lz_few(const lade_lz_encoder &e, uint8_t *dst, uint32_t pos, uint32_t size)
{
	for (uint32_t i = 0; i < size; i += 4) {
		uint32_t at = pos + i, w;
		if (at >= e.first) {
			w = lade_lz_word(e, at);
		} else {
			w = (uint32_t)e.src[at] | (uint32_t)e.src[at + 1] << 8 |
			    (uint32_t)e.src[at + 2] << 16 | (uint32_t)e.src[at + 3] << 24;
		}
		dst[i] = (uint8_t)w;
		if (i + 1 < size)
			dst[i + 1] = (uint8_t)(w >> 8);
		if (i + 2 < size)
			dst[i + 2] = (uint8_t)(w >> 16);
		if (i + 3 < size)
			dst[i + 3] = (uint8_t)(w >> 24);
	}
}

/*
 * Where the equality of the bytes at 'end' and 'dist' before it ends, at e.limit at the latest.
 * 'end' is at least 4 bytes behind e.first + dist.
 */
LADE_DEVICE uint32_t lade_lz_follow(const lade_lz_encoder &e, uint32_t end, uint32_t dist,
                                    uint32_t lane)
{
	for (;;) {
		uint32_t at = end + lane;
		bool same = at < e.limit && e.src[at] == e.src[at - dist];
		uint32_t other = ~__ballot_sync(LADE_FULL, same);
		if (other)
			return end + (uint32_t)__ffs((int)other) - 1;
		end += 32;
		/* A lane reads 7 bytes behind its first, and e.limit is within the source. */
		while (e.limit >= 32 * 4 + 4 && end <= e.limit - (32 * 4 + 4)) {
			at = end + 4 * lane;
			uint32_t diff = lade_lz_word(e, at) ^ lade_lz_word(e, at - dist);
			other = __ballot_sync(LADE_FULL, diff != 0);
			if (other) {
				uint32_t l = (uint32_t)__ffs((int)other) - 1;
				diff = __shfl_sync(LADE_FULL, diff, (int)l);
				return end + 4 * l + lade_lz_same(diff);
			}
			end += 32 * 4;
		}
	}
}

/* ---- writing ----------------------------------------------------------------------------------
 */

/* The ring's index for a number below 2 * LADE_LZ_RING. */
LADE_DEVICE uint32_t lade_lz_ring(uint32_t i)
{
	return i < LADE_LZ_RING ? i : i - LADE_LZ_RING;
}

/* How many bytes a match can be extended backwards: equal bytes before it, 4 at most, all of them
 * literals. */
LADE_DEVICE uint32_t lade_lz_back(const lade_lz_encoder &e, uint32_t pos, uint32_t dist,
                                  uint32_t literals)
{
	if (literals == 0 || pos - dist < e.first + 4)
		return 0;
	uint32_t diff = lade_lz_word(e, pos - 4) ^ lade_lz_word(e, pos - dist - 4);
	uint32_t n = (uint32_t)__clz((int)diff) / 8;
	return n < literals ? n : literals;
}

/*
 * Writes the oldest 'n' sequences of the ring, 1 to 32, a lane a sequence; false: the destination
 * is full.  The whole warp then writes the long literals and matches, one after the other.
 */
template <class F>
static __device__ __forceinline__ bool lade_lz_write(lade_lz_encode_warp *warp_smem,
                                                     lade_lz_encoder *e, uint32_t n, uint32_t lane)
{
	uint32_t slot = lade_lz_ring(e->head + lane), pos = 0, end = 0, dist = 0;
	bool mine = lane < n;
	if (mine) {
		pos = warp_smem->pos[slot];
		end = warp_smem->end[slot];
		dist = warp_smem->dist[slot];
	}
	uint32_t from = __shfl_up_sync(LADE_FULL, end, 1);
	if (lane == 0)
		from = e->anchor;
	uint32_t literals = 0, bytes = 0;
	if (mine) {
		literals = pos - from;
		uint32_t back = lade_lz_back(*e, pos, dist, literals);
		literals -= back;
		pos -= back;
		bytes = F::head_size(literals) + literals + F::match_size(end - pos, dist);
	}
	uint32_t sum = lade_warp_scan(bytes, lane);
	uint32_t total = __shfl_sync(LADE_FULL, sum, 31);
	if (total > e->cap - e->out)
		return false;
	uint8_t *to = e->dst + e->out + sum - bytes;
	bool wide = mine && (literals > LADE_LZ_SHORT || F::match_is_long(end - pos));
	if (mine && !wide) {
		to = F::head(to, literals, end - pos, 0, 1);
		lade_lz_few(*e, to, from, literals);
		F::match(to + literals, end - pos, dist, 0, 1);
	}
	for (uint32_t rest = __ballot_sync(LADE_FULL, wide); rest; rest &= rest - 1) {
		int l = __ffs((int)rest) - 1;
		uint32_t many = __shfl_sync(LADE_FULL, literals, l);
		uint32_t begin = __shfl_sync(LADE_FULL, from, l);
		uint32_t length = __shfl_sync(LADE_FULL, end - pos, l);
		uint32_t offset = __shfl_sync(LADE_FULL, dist, l);
		uint8_t *at = e->dst + e->out + __shfl_sync(LADE_FULL, sum - bytes, l);
		at = F::head(at, many, length, lane, 32);
		lade_lz_literals(at, e->src + begin, many, lane, 32);
		F::match(at + many, length, offset, lane, 32);
	}
	e->anchor = __shfl_sync(LADE_FULL, end, (int)n - 1);
	e->out += total;
	e->head = lade_lz_ring(e->head + n);
	e->count -= n;
	__syncwarp();
	return true;
}

/* ---- finding ----------------------------------------------------------------------------------
 */

/* A lane's results of a step's look-up, by row: row r is position 32 * r + lane of the step. */
struct lade_lz_look {
	uint32_t slot[LADE_LZ_ROWS];
	uint32_t length[LADE_LZ_ROWS]; /* of the match; 0 or 4 to 8 */
	uint32_t dist[LADE_LZ_ROWS];
	bool in[LADE_LZ_ROWS]; /* the position takes part */
	uint64_t repeats; /* a bit a position: it has the same four bytes as the one 8 before */
};

/* Eight bytes at each of a step's positions, up to 'last'. */
struct lade_lz_bytes {
	uint2 row[LADE_LZ_ROWS];
};

LADE_DEVICE lade_lz_bytes lade_lz_load(const lade_lz_encoder &e, uint32_t at, uint32_t stride,
                                       uint32_t last, uint32_t lane)
{
	lade_lz_bytes v;
#pragma unroll
	for (uint32_t r = 0; r < LADE_LZ_ROWS; r++) {
		uint32_t pos = at + (32 * r + lane) * stride;
		v.row[r] = lade_lz_eight(e, (pos < last ? pos : last) + e.skew);
	}
	return v;
}

/*
 * Looks at positions at + stride * (0 to 63), up to 'last', where 'v' stands.  'near' positions
 * before is LADE_LZ_NEAR bytes before; 32 when no position is.
 */
LADE_DEVICE lade_lz_look lade_lz_step(const lade_lz_encode_warp *warp_smem,
                                      const lade_lz_encoder &e, const lade_lz_bytes &v, uint32_t at,
                                      uint32_t stride, uint32_t last, uint32_t near, uint32_t lane)
{
	lade_lz_look k;
#pragma unroll
	for (uint32_t r = 0; r < LADE_LZ_ROWS; r++) {
		k.slot[r] = lade_lz_slot(v.row[r].x);
		k.dist[r] = (at + (32 * r + lane) * stride - warp_smem->table[k.slot[r]]) & 0xFFFF;
	}
#pragma unroll
	for (uint32_t r = 0; r < LADE_LZ_ROWS; r++) {
		uint32_t pos = at + (32 * r + lane) * stride;
		k.in[r] = pos <= last;
		bool valid = k.in[r] && k.dist[r] - 1 < pos - e.first;
		uint2 there = lade_lz_eight(e, (valid ? pos - k.dist[r] : at) + e.skew);
		k.length[r] = !valid || v.row[r].x != there.x
		                      ? 0
		                      : 4 + lade_lz_same(v.row[r].y ^ there.y);
	}
	/* The first lanes of a row look at the last of the row before; of the step before in
	 * row 0. */
	bool over = near < 32 && lane >= 32 - near, begun = at >= e.first + LADE_LZ_NEAR;
	uint2 row = make_uint2(0, 0);
	if (over && begun)
		row = lade_lz_eight(e, at - (32 - lane) * stride + e.skew);
	k.repeats = 0;
#pragma unroll
	for (uint32_t r = 0; r < LADE_LZ_ROWS; r++) {
		uint2 mine = v.row[r];
		int from = (int)((lane - near) & 31);
		uint32_t n0 = __shfl_sync(LADE_FULL, over ? row.x : mine.x, from);
		uint32_t n1 = __shfl_sync(LADE_FULL, over ? row.y : mine.y, from);
		row = mine;
		bool same = k.in[r] && near < 32 && (r || lane >= near || begun) && mine.x == n0;
		uint32_t length = 4 + lade_lz_same(mine.y ^ n1);
		if (same && length >= k.length[r]) {
			k.length[r] = length;
			k.dist[r] = LADE_LZ_NEAR;
		}
		k.repeats |= (uint64_t)__ballot_sync(LADE_FULL, same) << (32 * r);
	}
	return k;
}

/* Follows those of 8 bytes for another 8, each by its lane. */
LADE_DEVICE uint32_t lade_lz_longer(const lade_lz_encoder &e, uint32_t pos, uint32_t dist)
{
	uint32_t at = pos + LADE_LZ_SEEN + e.skew;
	uint2 a = lade_lz_eight(e, at), b = lade_lz_eight(e, at - dist);
	uint32_t x = a.x ^ b.x, y = a.y ^ b.y;
	return LADE_LZ_SEEN + (x ? lade_lz_same(x) : 4 + lade_lz_same(y));
}

/* The matches of a step, by row. */
struct lade_lz_walked {
	uint32_t picked[LADE_LZ_ROWS]; /* a bit a lane: its match is one of the output */
	uint32_t end[LADE_LZ_ROWS];    /* of the lane's match */
	uint32_t cover[LADE_LZ_ROWS];  /* where the last match of this row and those before ends */
	uint32_t stop;                 /* where the next step begins */
};

/* Picks matches of a step that do not overlap. */
LADE_DEVICE lade_lz_walked lade_lz_walk(const lade_lz_encoder &e, const lade_lz_look &k,
                                        uint32_t at, uint32_t shift, uint32_t lane)
{
	lade_lz_walked w;
	uint32_t open[LADE_LZ_ROWS], more[LADE_LZ_ROWS]; /* a bit a lane: it may be longer */
#pragma unroll
	for (uint32_t r = 0; r < LADE_LZ_ROWS; r++) {
		/* The last lane of a row sees the first of the next. */
		bool last = r + 1 == LADE_LZ_ROWS;
		uint32_t length = k.length[r], pos = at + ((32 * r + lane) << shift);
		uint32_t after = __shfl_sync(LADE_FULL,
		                             !last && lane == 0 ? k.length[r + !last] : length,
		                             (int)((lane + 1) & 31));
		bool yields = after > length + 1 && !(last && lane == 31);
		open[r] = __ballot_sync(LADE_FULL, length && !yields);
		bool longer = length == LADE_LZ_SEEN;
		if (longer && !yields && pos + LADE_LZ_LONG <= e.limit) {
			length = lade_lz_longer(e, pos, k.dist[r]);
			longer = length == 2 * LADE_LZ_SEEN;
		}
		more[r] = __ballot_sync(LADE_FULL, longer);
		w.end[r] = pos + length;
	}
	uint32_t cover = at, next = 0; /* where the last match ends, in bytes and in positions */
#pragma unroll
	for (uint32_t r = 0; r < LADE_LZ_ROWS; r++) {
		w.picked[r] = 0;
		uint32_t to = next - 32 * r;
		open[r] &= next <= 32 * r ? LADE_FULL : to < 32 ? LADE_FULL << to : 0;
		/* The lanes of the row that a lane's match leaves. */
		to = ((w.end[r] - at + (1u << shift) - 1) >> shift) - 32 * r;
		uint32_t leaves = to < 32 ? LADE_FULL << to : 0;
		while (open[r]) {
			uint32_t bit = open[r] & (0 - open[r]), l = 31 - (uint32_t)__clz((int)bit);
			w.picked[r] |= bit;
			if (more[r] & bit) {
				cover = lade_lz_follow(
					e, __shfl_sync(LADE_FULL, w.end[r], (int)l),
					__shfl_sync(LADE_FULL, k.dist[r], (int)l), lane);
				to = ((cover - at + (1u << shift) - 1) >> shift) - 32 * r;
				if (lane == l) {
					w.end[r] = cover;
					leaves = to < 32 ? LADE_FULL << to : 0;
				}
			}
			open[r] &= __shfl_sync(LADE_FULL, leaves, (int)l);
		}
		if (w.picked[r]) {
			cover = __shfl_sync(LADE_FULL, w.end[r], 31 - __clz((int)w.picked[r]));
			next = (cover - at + (1u << shift) - 1) >> shift;
		}
		w.cover[r] = cover;
	}
	w.stop = at + ((next > 32 * LADE_LZ_ROWS ? next : 32 * LADE_LZ_ROWS) << shift);
	return w;
}

/* Adds the picked matches to the ring, and positions to the table. */
LADE_DEVICE void lade_lz_enter(lade_lz_encode_warp *warp_smem, lade_lz_encoder *e,
                               const lade_lz_look &k, const lade_lz_walked &w, uint32_t at,
                               uint32_t shift, uint32_t near, uint32_t lane)
{
	uint32_t before[LADE_LZ_ROWS];
	uint64_t entered = 0; /* a bit a position: all but those inside of a match */
#pragma unroll
	for (uint32_t r = 0; r < LADE_LZ_ROWS; r++) {
		uint32_t pos = at + ((32 * r + lane) << shift);
		before[r] = w.picked[r] & (LADE_FULL >> (31 - lane));
		uint32_t l = before[r] ? 31 - (uint32_t)__clz((int)before[r]) : 31;
		uint32_t until = __shfl_sync(LADE_FULL, w.end[r], (int)l);
		/* The first three bytes of a match are entered. */
		bool inside = before[r] ? pos < until && ((lane - l) << shift) > 2
		                        : r && pos < w.cover[r - (r > 0)];
		entered |= (uint64_t)__ballot_sync(LADE_FULL, k.in[r] && !inside) << (32 * r);
	}
	/* Of positions that repeat each other only the last is entered. */
	entered &= ~((k.repeats & entered) >> near);
	/* Where elements are bytes, only the second of two literals before a match is entered: the
	 * table then reaches twice as far, and a match found there is extended backwards. */
	uint64_t picked = w.picked[0];
	for (uint32_t r = 1; r < LADE_LZ_ROWS; r++)
		picked |= (uint64_t)w.picked[r] << (32 * r);
	if (shift == 0)
		entered &= ~(picked >> 2) | picked;
#pragma unroll
	for (uint32_t r = 0; r < LADE_LZ_ROWS; r++) {
		uint32_t pos = at + ((32 * r + lane) << shift);
		if ((uint32_t)(entered >> (32 * r)) >> lane & 1)
			warp_smem->table[k.slot[r]] = (uint16_t)pos;
		if (w.picked[r] >> lane & 1) {
			uint32_t rank = (uint32_t)__popc(before[r]) - 1;
			uint32_t slot = lade_lz_ring(e->head + e->count + rank);
			warp_smem->pos[slot] = pos;
			warp_smem->end[slot] = w.end[r];
			warp_smem->dist[slot] = (uint16_t)k.dist[r];
		}
		e->count += (uint32_t)__popc(w.picked[r]);
		__syncwarp();
	}
}

/* The first sequence of a team's part, which is written last, and where the rest was written. */
struct lade_lz_part {
	uint32_t pos, end, dist; /* of the match; end is 0 when the part has none */
	uint32_t at, size;       /* the rest's place in the destination */
	uint32_t anchor;         /* the end of the part's last match */
};

/* Takes a part's first sequence out of the ring.  The rest is written far enough back that earlier
 * parts cannot overwrite it (lade_lz_join()). */
template <class F>
LADE_DEVICE void lade_lz_lead(const lade_lz_encode_warp *warp_smem, lade_lz_encoder *e,
                              lade_lz_part *part, uint32_t lane)
{
	uint32_t pos = warp_smem->pos[e->head], end = warp_smem->end[e->head],
		 dist = warp_smem->dist[e->head];
	e->anchor = end;
	e->out = F::bound(e->size) - F::bound(e->size - end) + LADE_LZ_GAP;
	if (lane == 0) {
		part->pos = pos;
		part->end = end;
		part->dist = dist;
		part->at = e->out;
	}
	e->head = lade_lz_ring(e->head + 1);
	e->count--;
}

LADE_DEVICE void lade_lz_empty(lade_lz_encode_warp *warp_smem, uint32_t lane)
{
	for (uint32_t i = lane; i < LADE_LZ_SLOTS / 8; i += 32)
		((uint4 *)warp_smem->table)[i] = make_uint4(0, 0, 0, 0);
	__syncwarp();
}

/*
 * Encodes the source from 'from' to e->limit, except the literals behind the last match and, with a
 * 'part', the first sequence; false: the destination is full.  The table has the bytes before
 * 'from'.
 */
template <class F>
static __device__ __forceinline__ bool
lade_lz_run_part(lade_lz_encode_warp *warp_smem, lade_lz_encoder *e, uint32_t from, uint32_t shift,
                 lade_lz_part *part, uint32_t lane)
{
	if (e->size < LADE_LZ_EDGE || e->limit < LADE_LZ_SEEN)
		return true;
	uint32_t unit = 1u << shift, near = LADE_LZ_NEAR >> shift;
	uint32_t last = e->size - LADE_LZ_EDGE;
	if (last > e->limit - LADE_LZ_SEEN)
		last = e->limit - LADE_LZ_SEEN;
	uint32_t at = ((from > e->first ? from : e->first) + unit - 1) >> shift << shift;
	uint32_t stride = unit, misses = 0, resume = 0;
	if (at > last)
		return true;
	lade_lz_bytes v = lade_lz_load(*e, at, stride, last, lane);
	while (at <= last) {
		lade_lz_look k = lade_lz_step(warp_smem, *e, v, at, stride, last,
		                              stride == unit ? near : 32, lane);
		uint32_t found = LADE_LZ_ROWS * 32; /* the first position with a match */
#pragma unroll
		for (uint32_t r = 0; r < LADE_LZ_ROWS; r++) {
			uint32_t row = __ballot_sync(LADE_FULL, k.length[r] != 0);
			if (row && found == LADE_LZ_ROWS * 32)
				found = 32 * r + (uint32_t)__ffs((int)row) - 1;
		}
		if (found < LADE_LZ_ROWS * 32 && stride == unit) {
			misses = 0;
			resume = resume / 2;
			lade_lz_walked w = lade_lz_walk(*e, k, at, shift, lane);
			/* These loads overlap with the ring's and the table's update. */
			v = lade_lz_load(*e, w.stop, unit, last, lane);
			lade_lz_enter(warp_smem, e, k, w, at, shift, near, lane);
			at = w.stop;
			if (part && e->out == 0)
				lade_lz_lead<F>(warp_smem, e, part, lane);
			while (e->count >= 32)
				if (!lade_lz_write<F>(warp_smem, e, 32, lane))
					return false;
			continue;
		}
		/* In a wide step a match is found again, so its position is not entered yet. */
#pragma unroll
		for (uint32_t r = 0; r < LADE_LZ_ROWS; r++) {
			if (k.in[r] && 32 * r + lane < found)
				warp_smem->table[k.slot[r]] =
					(uint16_t)(at + (32 * r + lane) * stride);
			__syncwarp();
		}
		if (found < LADE_LZ_ROWS * 32) {
			/* It may begin up to one wide step before. */
			at += found * stride - (stride - unit);
			resume = stride / 2;
			stride = unit;
			misses = 0;
		} else {
			at += 32 * LADE_LZ_ROWS * stride;
			if (++misses >= LADE_LZ_PATIENCE && stride < LADE_LZ_WIDEST)
				stride += unit;
			if (stride < resume) {
				stride = resume & ~(unit - 1);
				resume = 0;
			}
		}
		v = lade_lz_load(*e, at, stride, last, lane);
	}
	return e->count == 0 || lade_lz_write<F>(warp_smem, e, e->count, lane);
}

/* ---- chunks -----------------------------------------------------------------------------------
 */

/* log2 of the distance between positions, from the element's size. */
LADE_DEVICE uint32_t lade_lz_shift(uint32_t elem)
{
	return elem == 4 ? 2 : elem == 2 || elem == 8 ? 1 : 0;
}

/* The destination's size, below 2^32.  It may pass LADE_CHUNK_MAX: a team's parts stand apart, as
 * F::bound() says, before they are joined.  No sequences of a chunk add up to more than that. */
LADE_DEVICE uint32_t lade_lz_dst_cap(const lade_gpu_batch &batch, uint32_t i)
{
	uint64_t cap = batch.dst_cap[i];
	return cap < 0xFFFFFFFF ? (uint32_t)cap : 0xFFFFFFFF;
}

/* lade_chunk_get() of a chunk that may have F::MOST bytes. */
template <class F>
LADE_DEVICE uint32_t lade_lz_chunk_get(const lade_gpu_batch &batch, uint32_t i, lade_gpu_chunk *c)
{
	uint32_t status = lade_chunk_get(batch, i, c);
	return status == LADE_GPU_OK && c->src_size > F::MOST ? LADE_GPU_LIMIT : status;
}

/* Called by one lane when a chunk is encoded. */
LADE_DEVICE void lade_lz_encoded(const lade_gpu_batch &batch, uint32_t i, uint32_t status,
                                 uint32_t size)
{
	if (size > LADE_CHUNK_MAX)
		status = LADE_GPU_LIMIT;
	lade_chunk_put(batch, i, status, size);
}

/* Before any of the source is encoded; 'margin' bytes at its end are literals. */
LADE_DEVICE lade_lz_encoder lade_lz_begin(const lade_gpu_chunk &c, uint32_t cap, uint32_t margin)
{
	lade_lz_encoder e;
	e.src = c.src;
	e.skew = (uint32_t)(uintptr_t)c.src & 3;
	e.words = (const uint32_t *)(c.src - e.skew);
	e.first = (4 - e.skew) & 3;
	e.dst = c.dst;
	e.size = c.src_size;
	e.limit = c.src_size - (c.src_size < margin ? c.src_size : margin);
	e.cap = cap;
	e.out = e.anchor = e.head = e.count = 0;
	return e;
}

/* Writes the literals from 'anchor' on at 'out', by 'lanes' threads; false: they do not fit. */
template <class F>
LADE_DEVICE bool lade_lz_rest(const lade_gpu_chunk &c, uint32_t cap, uint32_t anchor, uint32_t *out,
                              uint32_t lane, uint32_t lanes)
{
	uint32_t rest = c.src_size - anchor;
	if (rest == 0 && !F::TOKEN_AT_END)
		return true;
	uint32_t head = F::head_size(rest);
	if (head > cap - *out || rest > cap - *out - head)
		return false;
	uint8_t *to = F::head(c.dst + *out, rest, 0, lane, lanes);
	lade_lz_literals(to, c.src + anchor, rest, lane, lanes);
	*out += head + rest;
	return true;
}

/* Encodes a chunk by one warp; '*size' is set on success. */
template <class F>
static __device__ __forceinline__ uint32_t lade_lz_encode_solo(lade_lz_encode_warp *warp_smem,
                                                               const lade_gpu_chunk &c,
                                                               uint32_t cap, uint32_t elem,
                                                               uint32_t *size, uint32_t lane)
{
	lade_lz_encoder e = lade_lz_begin(c, cap, F::END);
	e.out = F::prefix_size(e.size);
	if (cap < e.out)
		return LADE_GPU_NOSPACE;
	if (lane == 0)
		F::prefix(c.dst, e.size);
	lade_lz_empty(warp_smem, lane);
	if (!lade_lz_run_part<F>(warp_smem, &e, 0, lade_lz_shift(elem), nullptr, lane) ||
	    !lade_lz_rest<F>(c, cap, e.anchor, &e.out, lane, 32))
		return LADE_GPU_NOSPACE;
	*size = e.out;
	return LADE_GPU_OK;
}

/* Map: warp = one chunk at a time, lane = a position, or a sequence.  Block: 5 warps. */
template <class F>
static __device__ __forceinline__ void lade_lz_encode_solo_batch(const lade_gpu_batch &batch,
                                                                 uint32_t elem)
{
	LADE_SHARED(lade_lz_encode_warp, shared, [LADE_LZ_SOLO_WARPS]);
	uint32_t lane = lade_lane(), warp = threadIdx.x / 32;
	uint32_t i = batch.next ? ~0u : blockIdx.x * LADE_LZ_SOLO_WARPS + warp;
	for (;; __syncwarp()) {
		if (batch.next) {
			if (lane == 0)
				i = lade_turn_next(batch, i);
			i = __shfl_sync(LADE_FULL, i, 0);
		}
		if (i >= batch.count)
			return;
		lade_gpu_chunk c;
		uint32_t size = 0, status = lade_lz_chunk_get<F>(batch, i, &c);
		if (status == LADE_GPU_OK)
			status = lade_lz_encode_solo<F>(&shared[warp], c, lade_lz_dst_cap(batch, i),
			                                elem, &size, lane);
		if (lane == 0)
			lade_lz_encoded(batch, i, status, size);
		if (!batch.next)
			return;
	}
}

/* ---- teams ------------------------------------------------------------------------------------
 */

/* A block's shared memory; behind it a lade_lz_encode_warp a warp. */
struct __align__(16) lade_lz_encode_team
{
	lade_lz_part part[LADE_LZ_TEAM_MOST];
	/* Read by one thread: the tables may change at any time, and warps that read different
	 * sizes would not stay in step. */
	lade_gpu_chunk chunk;
	uint32_t i, status, cap;
	uint32_t failed; /* a part did not fit: cannot happen */
};

static_assert(sizeof(lade_lz_encode_team) == LADE_LZ_ENCODE_TEAM_SIZE, "");
static_assert(sizeof(lade_lz_encode_warp) == LADE_LZ_ENCODE_WARP_SIZE, "");

/*
 * Moves 'size' bytes to the front, from 'from' to 'to' < 'from', by all threads of the block.  Up
 * to 7 bytes behind the source are read with it.
 */
LADE_DEVICE void lade_lz_move(uint8_t *to, const uint8_t *from, uint32_t size)
{
	uint32_t head = (uint32_t)(0 - (uintptr_t)to) & 3;
	head = head < size ? head : size;
	uint32_t before = (uint32_t)(uintptr_t)(from + head) & 3, words = (size - head) / 4;
	const uint32_t *w = (const uint32_t *)(from + head - before);
	uint8_t first = threadIdx.x < head ? from[threadIdx.x] : 0;
	/* A round's bytes were read before the barrier, and are stored before all that is read
	 * later. */
	for (uint32_t i = threadIdx.x, begin = 0; begin < words || begin == 0;
	     begin += blockDim.x, i += blockDim.x) {
		uint32_t word = i < words ? __funnelshift_r(w[i], w[i + 1], 8 * before) : 0;
		__syncthreads();
		if (begin == 0 && threadIdx.x < head)
			to[threadIdx.x] = first;
		if (i < words)
			((uint32_t *)(to + head))[i] = word;
	}
	uint32_t i = head + 4 * words + threadIdx.x;
	uint8_t last = i < size ? from[i] : 0;
	__syncthreads();
	if (i < size)
		to[i] = last;
}

/*
 * Joins a chunk's parts.  For each part in order, its first sequence is appended to the output,
 * with all literals since the last match, and then its rest is moved there.
 *
 * The rest of a part is at bound(size) - bound(size - x) + LADE_LZ_GAP, where x is the end of its
 * first match.  For n bytes of the source it takes at most n plus what bound() adds for n: so it
 * ends before the next part's, and the output for the bytes before x ends before it.
 */
template <class F>
static __device__ __forceinline__ uint32_t lade_lz_join(const lade_lz_encode_team *team,
                                                        const lade_gpu_chunk &c, uint32_t parts,
                                                        uint32_t cap, uint32_t *size)
{
	uint32_t out = F::prefix_size(c.src_size), anchor = 0;
	if (threadIdx.x == 0)
		F::prefix(c.dst, c.src_size);
	for (uint32_t i = 0; i < parts; i++) {
		lade_lz_part p = team->part[i];
		if (p.end == 0)
			continue;
		uint32_t literals = p.pos - anchor, length = p.end - p.pos;
		uint8_t *to = F::head(c.dst + out, literals, length, threadIdx.x, blockDim.x);
		lade_lz_literals(to, c.src + anchor, literals, threadIdx.x, blockDim.x);
		F::match(to + literals, length, p.dist, threadIdx.x, blockDim.x);
		out += F::head_size(literals) + literals + F::match_size(length, p.dist);
		if (out < p.at)
			lade_lz_move(c.dst + out, c.dst + p.at, p.size);
		out += p.size;
		anchor = p.anchor;
	}
	__syncthreads();
	if (team->failed || !lade_lz_rest<F>(c, cap, anchor, &out, threadIdx.x, blockDim.x))
		return LADE_GPU_NOSPACE;
	*size = out;
	return LADE_GPU_OK;
}

/*
 * Builds the tables of all parts.  First each warp enters the positions of its own part (the last
 * 64 KiB of it), except those inside a match at distance LADE_LZ_NEAR.  Then each slot is passed on
 * from part to part, so that a part begins with the positions before it.
 */
LADE_DEVICE void lade_lz_tables(lade_lz_encode_warp *warps_smem, const lade_lz_encoder &e,
                                uint32_t parts, uint32_t each, uint32_t shift)
{
	uint32_t lane = lade_lane(), warp = threadIdx.x / 32;
	uint32_t at = each * warp, to = at + each;
	if (warp < parts) {
		lade_lz_encode_warp *warp_smem = &warps_smem[warp];
		lade_lz_empty(warp_smem, lane);
		at = to - at > 65536 ? to - 65536 : at;
		at = ((at < e.first ? e.first : at) + (1u << shift) - 1) >> shift << shift;
		uint32_t near = LADE_LZ_NEAR >> shift;
		uint32_t begun = lane >= near; /* there are words before it to compare with */
		uint32_t before = 0, repeats = 0; /* the row before: words; which repeat others */
		/* No part follows the last one: its own positions are not needed. */
		for (; at < to && warp + 1 < parts; at += 128 << shift) {
			uint32_t word[4];
			bool in[4];
#pragma unroll
			for (uint32_t k = 0; k < 4; k++) {
				uint32_t pos = at + ((32 * k + lane) << shift);
				word[k] = lade_lz_word(e, pos < to ? pos : at);
			}
#pragma unroll
			for (uint32_t k = 0; k < 4; k++) {
				uint32_t pos = at + ((32 * k + lane) << shift);
				uint32_t other = lane >= 32 - near ? before : word[k];
				other = __shfl_sync(LADE_FULL, other, (int)((lane - near) & 31));
				bool again = begun && other == word[k];
				uint32_t row = __ballot_sync(LADE_FULL, again);
				/* Behind a word that repeats the one 8 before, there is a match. */
				uint32_t inside = shift < 2 ? __funnelshift_l(repeats, row, 1) : 0;
				if (shift == 0)
					inside |= __funnelshift_l(repeats, row, 2) |
					          __funnelshift_l(repeats, row, 3);
				in[k] = pos < to && (again || !(inside >> lane & 1));
				before = word[k];
				repeats = row;
				begun = 1;
			}
#pragma unroll
			for (uint32_t k = 0; k < 4; k++) {
				uint32_t pos = at + ((32 * k + lane) << shift);
				if (in[k])
					warp_smem->table[lade_lz_slot(word[k])] = (uint16_t)pos;
				__syncwarp();
			}
		}
	}
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < LADE_LZ_SLOTS; i += blockDim.x) {
		uint32_t before = 0;
		for (uint32_t k = 0; k < parts; k++) {
			uint32_t mine = warps_smem[k].table[i];
			warps_smem[k].table[i] = (uint16_t)before;
			before = mine ? mine : before;
		}
	}
	__syncthreads();
}

/* Encodes a warp's part of a chunk: source bytes from 'from' to 'to'. */
template <class F>
static __device__ __forceinline__ void
lade_lz_encode_part(lade_lz_encode_warp *warp_smem, lade_lz_encode_team *team,
                    const lade_gpu_chunk &c, uint32_t from, uint32_t to, uint32_t elem,
                    uint32_t lane)
{
	lade_lz_part *part = &team->part[threadIdx.x / 32];
	lade_lz_encoder e = lade_lz_begin(c, F::bound(c.src_size), F::END);
	e.limit = e.limit < to ? e.limit : to;
	if (lane == 0)
		part->end = 0;
	__syncwarp();
	bool room = lade_lz_run_part<F>(warp_smem, &e, from, lade_lz_shift(elem), part, lane);
	__syncwarp();
	if (lane == 0 && !room)
		team->failed = 1;
	if (lane == 0 && part->end) {
		part->size = e.out - part->at;
		part->anchor = e.anchor;
	}
}

/*
 * Map: block = one chunk at a time, warp = a part of it, lane = a position, or a sequence.
 * Block: 1 to 16 warps.  Shared: dynamic, LADE_LZ_ENCODE_SHARED() of the warps: 73,616 bytes for 8,
 * 146,832 for 16.
 */
template <class F>
static __device__ __forceinline__ void lade_lz_encode_team_batch(const lade_gpu_batch &batch,
                                                                 uint32_t elem)
{
	LADE_SHARED_DYNAMIC(lade_lz_encode_team, team);
	uint32_t lane = lade_lane(), warp = threadIdx.x / 32, warps = blockDim.x / 32;
	lade_lz_encode_warp *warps_smem = (lade_lz_encode_warp *)(team + 1),
			    *warp_smem = warps_smem + warp;
	uint32_t i = batch.next ? ~0u : blockIdx.x;
	for (;; __syncthreads()) {
		if (threadIdx.x == 0) {
			i = batch.next ? lade_turn_next(batch, i) : i;
			team->i = i;
			team->failed = 0;
			team->chunk = lade_gpu_chunk{};
			if (i < batch.count) {
				team->cap = lade_lz_dst_cap(batch, i);
				team->status = lade_lz_chunk_get<F>(batch, i, &team->chunk);
			}
		}
		__syncthreads();
		i = team->i;
		if (i >= batch.count)
			return;
		lade_gpu_chunk c = team->chunk;
		uint32_t size = 0, cap = team->cap, status = team->status;
		uint32_t parts = c.src_size / LADE_LZ_PART;
		parts = parts < warps ? parts : warps;
		if (status == LADE_GPU_OK && parts > 1 && cap >= F::bound(c.src_size)) {
			uint32_t each = (c.src_size / parts + 8) & ~7u;
			lade_lz_tables(warps_smem, lade_lz_begin(c, 0, F::END), parts, each,
			               lade_lz_shift(elem));
			if (warp < parts)
				lade_lz_encode_part<F>(warp_smem, team, c, each * warp,
				                       each * (warp + 1), elem, lane);
			__syncthreads();
			status = lade_lz_join<F>(team, c, parts, cap, &size);
		} else if (status == LADE_GPU_OK && warp == 0) {
			status = lade_lz_encode_solo<F>(warp_smem, c, cap, elem, &size, lane);
		}
		if (threadIdx.x == 0)
			lade_lz_encoded(batch, i, status, size);
		if (!batch.next)
			return;
	}
}

#endif
