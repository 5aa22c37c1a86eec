/*
 * lz_encode.cuh: the encoder that LZ formats share: it finds matches and has the format write them.
 *
 * A warp looks at 32 positions of the source in one step, 'unit' bytes apart (the element's size, or
 * 2 for elements of 8 bytes, whose low half may differ where the rest repeats):
 *
 *     load 8 bytes -> hash of 4 -> table of positions -> 8 bytes there -> equal bytes, 4 to 8
 *                             and the same with the 8 bytes before, which are another lane's
 *     a lane whose right neighbour's match is longer by two or more gives its own up
 *     walk: first lane with a match, on to the first lane at or behind its end, and so on; matches
 *           of 8 bytes are followed further by the whole warp as the walk meets them
 *
 * So a step yields all sequences (a literal run, then a match) of at least 32 units.  They gather
 * in a ring, and each time 32 are there they are written, a lane a sequence: sizes by a prefix sum,
 * then heads, literals and matches.  After four steps without any match steps grow wider, by a
 * unit each, up to 64 bytes between lanes; the next match found takes the warp back by one such
 * distance, and to units.
 *
 * The table holds 4,096 positions, modulo 65,536: what it gives is a distance of 1 to 65,535, and
 * whatever it says is compared with the bytes, so that entries of an earlier 64 KiB do no harm.
 * Positions inside of a match, but for its first three bytes, are not entered.  Where two lanes
 * enter one slot, the device says which wins; the stream is right with either.
 *
 * Bounds: words are read from the first word boundary of the source on, and up to 12 bytes from a
 * position, which is at least 12 bytes before the end.  Nothing is written before its size is known to
 * fit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_LZ_ENCODE_CUH
#define LADE_CUDA_LZ_ENCODE_CUH

#include "cuda/batch.cuh"

#define LADE_LZ_SLOT_BITS 12u
#define LADE_LZ_SLOTS (1u << LADE_LZ_SLOT_BITS)
#define LADE_LZ_RING 64u    /* sequences that wait: 31 at most before a step, 32 more of it */
#define LADE_LZ_EDGE 12u    /* the last position looked at is this far from the end */
#define LADE_LZ_NEAR 8u     /* the distance that is looked at beside the table's */
#define LADE_LZ_SEEN 8u     /* equal bytes that a lane counts by itself */
#define LADE_LZ_PATIENCE 4u /* steps without a match before steps grow */
#define LADE_LZ_WIDEST 64u  /* bytes between lanes, at most */
#define LADE_LZ_SHORT 16u   /* literals that a lane copies by itself */

/* A warp's part of shared memory. */
struct lade_lz_finder {
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
	uint32_t cap, out;    /* room, bytes written */
	uint32_t anchor;      /* source bytes that are written */
	uint32_t head, count; /* the ring's oldest sequence; how many wait */
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

/* How many bytes a match may grow at its front: equal ones before it, 4 at most, all literals. */
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
 * Writes the oldest 'n' sequences of the ring, 1 to 32, a lane a sequence; false: there is no room.
 * Long literals and matches are then written by the warp, one after the other.
 */
template <class F>
static __device__ __forceinline__ bool lade_lz_write(lade_lz_finder *f, lade_lz_encoder *e,
                                                     uint32_t n, uint32_t lane)
{
	uint32_t slot = (e->head + lane) & (LADE_LZ_RING - 1), pos = 0, end = 0, dist = 0;
	bool mine = lane < n;
	if (mine) {
		pos = f->pos[slot];
		end = f->end[slot];
		dist = f->dist[slot];
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
	e->head += n;
	e->count -= n;
	__syncwarp();
	return true;
}

/* ---- finding ----------------------------------------------------------------------------------
 */

/* What a lane knows after the look-up of a step. */
struct lade_lz_look {
	uint32_t pos;
	uint32_t slot;
	uint32_t length, dist; /* of the match; a length of 0 or 4 to 8 */
	bool in;               /* the position is to be looked at */
};

/* Looks at pos = at + lane * stride; 'near' lanes before is LADE_LZ_NEAR bytes before, or 32. */
LADE_DEVICE lade_lz_look lade_lz_step(const lade_lz_finder *f, const lade_lz_encoder &e,
                                      uint32_t at, uint32_t stride, uint32_t last, uint32_t near,
                                      uint32_t lane)
{
	lade_lz_look k;
	k.pos = at + lane * stride;
	k.in = k.pos <= last;
	uint32_t own = (k.in ? k.pos : at) + e.skew;
	const uint32_t *w = e.words + (own >> 2);
	uint32_t w1 = w[1];
	uint32_t v0 = __funnelshift_r(w[0], w1, own * 8), v1 = __funnelshift_r(w1, w[2], own * 8);
	k.slot = (v0 * 2654435761u) >> (32 - LADE_LZ_SLOT_BITS);
	k.dist = (k.pos - f->table[k.slot]) & 0xFFFF;
	k.length = 0;
	if (k.in && k.dist - 1 < k.pos - e.first) {
		uint32_t there = own - k.dist;
		w = e.words + (there >> 2);
		w1 = w[1];
		if (v0 == __funnelshift_r(w[0], w1, there * 8))
			k.length = 4 + lade_lz_same(v1 ^ __funnelshift_r(w1, w[2], there * 8));
	}
	/* No lane has this distance when strides are wide. */
	uint32_t n0 = __shfl_up_sync(LADE_FULL, v0, near & 31);
	uint32_t n1 = __shfl_up_sync(LADE_FULL, v1, near & 31);
	if (k.in && lane >= near && v0 == n0) {
		uint32_t length = 4 + lade_lz_same(v1 ^ n1);
		if (length >= k.length) {
			k.length = length;
			k.dist = LADE_LZ_NEAR;
		}
	}
	return k;
}

/*
 * Picks matches of a step that do not overlap, puts them into the ring, and enters the positions.
 * Returns the first position behind what the step has settled.
 */
LADE_DEVICE uint32_t lade_lz_pick(lade_lz_finder *f, lade_lz_encoder *e, const lade_lz_look &k,
                                  uint32_t at, uint32_t shift, uint32_t lane)
{
	uint32_t after = __shfl_down_sync(LADE_FULL, k.length, 1);
	bool yields = lane < 31 && after > k.length + 1;
	uint32_t open = __ballot_sync(LADE_FULL, k.length && !yields), picked = 0;
	uint32_t packed = k.dist << 16 | k.length, end = 0, stop = at + (32u << shift);
	while (open) {
		uint32_t l = (uint32_t)__ffs((int)open) - 1;
		uint32_t match = __shfl_sync(LADE_FULL, packed, (int)l);
		uint32_t to = at + (l << shift) + (match & 0xFFFF);
		if ((match & 0xFFFF) == LADE_LZ_SEEN)
			to = lade_lz_follow(*e, to, match >> 16, lane);
		if (lane == l)
			end = to;
		picked |= 1u << l;
		uint32_t next = (to - at + (1u << shift) - 1) >> shift;
		if (next >= 32) {
			stop = at + (next << shift);
			break;
		}
		open &= LADE_FULL << next;
	}
	/* Where the last match that begins at or before this lane ends. */
	uint32_t before = picked & (LADE_FULL >> (31 - lane));
	uint32_t l = before ? 31 - (uint32_t)__clz((int)before) : lane;
	uint32_t cover = __shfl_sync(LADE_FULL, end, (int)l);
	bool inside = before && k.pos < cover && ((lane - l) << shift) > 2;
	if (k.in && !inside)
		f->table[k.slot] = (uint16_t)k.pos;
	if (picked >> lane & 1) {
		uint32_t rank = (uint32_t)__popc(before) - 1;
		uint32_t slot = (e->head + e->count + rank) & (LADE_LZ_RING - 1);
		f->pos[slot] = k.pos;
		f->end[slot] = end;
		f->dist[slot] = (uint16_t)k.dist;
	}
	e->count += (uint32_t)__popc(picked);
	__syncwarp();
	return stop;
}

/* Encodes all sequences of the source, but for the literals behind the last; false: no room. */
template <class F>
static __device__ __forceinline__ bool lade_lz_run_chunk(lade_lz_finder *f, lade_lz_encoder *e,
                                                         uint32_t shift, uint32_t lane)
{
	if (e->size < LADE_LZ_EDGE || e->limit < LADE_LZ_SEEN)
		return true;
	for (uint32_t i = lane; i < LADE_LZ_SLOTS / 8; i += 32)
		((uint4 *)f->table)[i] = make_uint4(0, 0, 0, 0);
	__syncwarp();
	uint32_t unit = 1u << shift, near = LADE_LZ_NEAR >> shift;
	uint32_t last = e->size - LADE_LZ_EDGE;
	if (last > e->limit - LADE_LZ_SEEN)
		last = e->limit - LADE_LZ_SEEN;
	uint32_t at = (e->first + unit - 1) >> shift << shift, stride = unit, misses = 0;
	while (at <= last) {
		lade_lz_look k =
			lade_lz_step(f, *e, at, stride, last, stride == unit ? near : 32, lane);
		uint32_t found = __ballot_sync(LADE_FULL, k.length != 0);
		if (found && stride == unit) {
			misses = 0;
			at = lade_lz_pick(f, e, k, at, shift, lane);
			if (e->count >= 32 && !lade_lz_write<F>(f, e, 32, lane))
				return false;
			continue;
		}
		/* A match is found again, so its position is not entered yet. */
		uint32_t l = found ? (uint32_t)__ffs((int)found) - 1 : 32;
		if (k.in && lane < l)
			f->table[k.slot] = (uint16_t)k.pos;
		__syncwarp();
		if (found) {
			/* It may begin up to one wide step before. */
			at += l * stride - (stride - unit);
			stride = unit;
			misses = 0;
			continue;
		}
		at += 32 * stride;
		if (++misses >= LADE_LZ_PATIENCE && stride < LADE_LZ_WIDEST)
			stride += unit;
	}
	return e->count == 0 || lade_lz_write<F>(f, e, e->count, lane);
}

/* ---- chunks -----------------------------------------------------------------------------------
 */

/* Elements' sizes to the distance of positions looked at, as a power of two. */
LADE_DEVICE uint32_t lade_lz_shift(uint32_t elem)
{
	return elem == 4 ? 2 : elem == 2 || elem == 8 ? 1 : 0;
}

template <class F>
static __device__ __forceinline__ uint32_t lade_lz_encode_chunk(lade_lz_finder *f,
                                                                const lade_gpu_chunk &c,
                                                                uint32_t cap, uint32_t elem,
                                                                uint32_t *size, uint32_t lane)
{
	lade_lz_encoder e;
	e.src = c.src;
	e.skew = (uint32_t)(uintptr_t)c.src & 3;
	e.words = (const uint32_t *)(c.src - e.skew);
	e.first = (4 - e.skew) & 3;
	e.dst = c.dst;
	e.size = c.src_size;
	e.limit = c.src_size < F::END ? 0 : c.src_size - F::END;
	e.cap = cap;
	e.out = F::prefix_size(e.size);
	e.anchor = e.head = e.count = 0;
	if (cap < e.out)
		return LADE_GPU_NOSPACE;
	if (lane == 0)
		F::prefix(c.dst, e.size);
	if (!lade_lz_run_chunk<F>(f, &e, lade_lz_shift(elem), lane))
		return LADE_GPU_NOSPACE;
	uint32_t rest = e.size - e.anchor;
	if (rest || F::TOKEN_AT_END) {
		uint32_t head = F::head_size(rest);
		if (head > cap - e.out || rest > cap - e.out - head)
			return LADE_GPU_NOSPACE;
		uint8_t *to = F::head(c.dst + e.out, rest, 0, lane, 32);
		lade_lz_literals(to, c.src + e.anchor, rest, lane, 32);
		e.out += head + rest;
	}
	*size = e.out;
	return LADE_GPU_OK;
}

/* Room is not bounded by the largest chunk's size, as output can be longer than the source. */
LADE_DEVICE uint32_t lade_lz_room(const lade_gpu_batch &batch, uint32_t i)
{
	uint64_t cap = batch.dst_cap[i];
	return cap < 0x7FFFFFFF ? (uint32_t)cap : 0x7FFFFFFF;
}

#define LADE_LZ_ENCODE_WARPS 4

/* Map: warp = one chunk at a time, lane = a position, or a sequence.  Block: 4 warps. */
template <class F>
static __device__ __forceinline__ void lade_lz_encode_batch(const lade_gpu_batch &batch,
                                                            uint32_t elem)
{
	LADE_SHARED(lade_lz_finder, shared, [LADE_LZ_ENCODE_WARPS]);
	uint32_t lane = lade_lane(), warp = threadIdx.x / 32;
	uint32_t i = blockIdx.x * LADE_LZ_ENCODE_WARPS + warp;
	for (;; __syncwarp()) {
		if (batch.next) {
			if (lane == 0)
				i = atomicAdd(batch.next, 1u);
			i = __shfl_sync(LADE_FULL, i, 0);
		}
		if (i >= batch.count)
			return;
		lade_gpu_chunk c;
		uint32_t size = 0, status = lade_chunk_get(batch, i, &c);
		if (status == LADE_GPU_OK)
			status = lade_lz_encode_chunk<F>(&shared[warp], c, lade_lz_room(batch, i),
			                                 elem, &size, lane);
		if (lane == 0)
			lade_chunk_put(batch, i, status, size);
		if (!batch.next)
			return;
	}
}

#endif
