/*
 * zstd_huffman.cuh: literals (RFC 8878, 3.1.1.3.1 and 4.2), by a warp.
 *
 * Four streams, or one, are read from their ends.  Each is cut into parts of as many bits, one a
 * lane: 8 lanes a stream, or 32.  A lane begins to read LADE_ZSTD_AHEAD bits before its part, at
 * any bit: codes of a prefix code fall into step soon.  Then it counts the symbols of its part.
 * Where its first symbol is not where the lane before it ended, it begins again from there; that
 * is seldom, and ends after as many rounds as there are lanes.  When all agree, sums of counts say
 * where each lane's bytes go, and lanes decode their parts once more and store them.
 *
 * A lane's words are in a ring of its own in shared memory, four units of 16 bytes.  Lanes go on in
 * rounds of 8 symbols, 88 bits at most, and begin to fetch a unit two rounds before they need it.
 *
 * Bounds: units are read within the block; what they have outside of it is 0.  A symbol takes a bit
 * at least.  Bytes are stored when the counts add up to the stated size.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_ZSTD_HUFFMAN_CUH
#define LADE_CUDA_ZSTD_HUFFMAN_CUH

#include "codec/zstd/kernels/zstd_fse.cuh"

#define LADE_ZSTD_AHEAD 512u

#define LADE_ZSTD_ROUND_SYMBOLS 8u
#define LADE_ZSTD_ROUND_BITS (LADE_ZSTD_ROUND_SYMBOLS * LADE_ZSTD_HUFFMAN_LOG)
/* Words of a lane's ring: 16, the first two once more, and two, so that each ring is aligned. */
#define LADE_ZSTD_RING 20u
/* Bits of a stream count from this number of bits before the 16 bytes that it begins in: units that
 * are fetched and not needed have numbers, too. */
#define LADE_ZSTD_BEFORE 1024u

/* Symbols by weight and number. */
struct lade_zstd_sorter {
	uint32_t first[16], count[16]; /* of a weight: its place in 'sorted', its symbols */
	uint8_t sorted[256];
};

/* The warp's memory while it decodes literals.  A union's parts are used one after the other.
 * Weights stay from block to block, as a block may use the table of the one before: it is made
 * again. */
struct lade_zstd_huffman {
	union {
		lade_zstd_maker maker;
		lade_zstd_sorter sort;
		alignas(16) uint32_t ring[32][LADE_ZSTD_RING];
	};
	union {
		uint32_t weights_table[64];
		uint16_t code[1u << LADE_ZSTD_HUFFMAN_LOG]; /* | bits 8 | symbol 8 | */
	};
	uint8_t weight[256];
	uint32_t stated, at, log; /* stated weights, and where the streams begin */
};

/* ---- the table ----------------------------------------------------------------------------- */

/* Decodes the weights in bytes [at, end) of the words, by states in turn; one lane.  How many, or
 * 0: they are wrong. */
static __device__ __noinline__ uint32_t lade_zstd_weights_read(lade_zstd_huffman *h, uint32_t log,
                                                               uint32_t at, uint32_t end)
{
	const uint32_t *words = h->maker.words;
	if (at >= end)
		return 0;
	uint32_t top = ((const uint8_t *)words)[end - 1], n = 0;
	if (top == 0)
		return 0;
	/* Bits before 'at' are not the stream's. */
	int32_t low = 8 * (int32_t)at, p = 8 * (int32_t)(end - 1) + (int32_t)lade_zstd_log2(top);
	uint32_t state[2], size = 1u << log;
	for (uint32_t k = 0; k < 2; k++) {
		p -= (int32_t)log;
		if (p < low)
			return 0;
		state[k] = lade_zstd_peek(words, (uint32_t)p) & (size - 1);
	}
	for (uint32_t k = 0; n < 254; k ^= 1) {
		uint32_t e = h->weights_table[state[k]], bits = e & 31;
		h->weight[n++] = (uint8_t)(e >> 11 & 15);
		p -= (int32_t)bits;
		if (p < low) {
			h->weight[n++] = (uint8_t)(h->weights_table[state[k ^ 1]] >> 11 & 15);
			return n;
		}
		state[k] = (e >> 22 << bits) - size +
		           (lade_zstd_peek(words, (uint32_t)p) & ((1u << bits) - 1));
	}
	return 0;
}

/* Reads the table's description at [at, end): weights of all symbols but the last; one lane. */
static __device__ __forceinline__ void lade_zstd_tree_read(lade_zstd_huffman *h, uint32_t at,
                                                           uint32_t end, uint32_t lane)
{
	uint32_t left = end - at, first = left ? h->maker.words[0] & 255 : 0, log = 0, p = 1;
	uint32_t bytes = first < 128 ? first : (first - 127 + 1) / 2;
	if (left < 1 + bytes) {
		if (lane == 0)
			h->stated = 0;
		__syncwarp();
		return;
	}
	if (first >= 128) {
		for (uint32_t i = lane; i < first - 127; i += 32) {
			uint32_t two = ((const uint8_t *)h->maker.words)[1 + i / 2];
			h->weight[i] = (uint8_t)(i & 1 ? two & 15 : two >> 4);
		}
		if (lane == 0)
			h->stated = first - 127;
	} else {
		if (lane == 0) {
			log = lade_zstd_counts_read(&h->maker, &p, 1 + bytes, 256, 6);
			h->stated = 0;
		}
		log = __shfl_sync(LADE_FULL, log, 0);
		p = __shfl_sync(LADE_FULL, p, 0);
		if (log) {
			lade_zstd_table_make(&h->maker, h->weights_table, LADE_ZSTD_WEIGHTS, log,
			                     256, lane);
			if (lane == 0)
				h->stated = lade_zstd_weights_read(h, log, p, 1 + bytes);
		}
	}
	if (lane == 0)
		h->at = at + 1 + bytes;
	__syncwarp();
}

/*
 * The last symbol's weight fills the code up; then symbols stand by weight and number, and those
 * of weight w have 1 << (w - 1) places in the table, the lowest weight first.
 */
static __device__ __noinline__ bool lade_zstd_codes_make(lade_zstd_huffman *h, uint32_t lane)
{
	h = lade_shared(h);
	uint32_t stated = h->stated, sum = 0, most = 0, below = (1u << lane) - 1;
#pragma unroll 1
	for (uint32_t i = lane; i < stated; i += 32) {
		uint32_t w = h->weight[i];
		most = w > most ? w : most;
		sum += w && w < 12 ? 1u << (w - 1) : 0;
	}
	sum = __reduce_add_sync(LADE_FULL, sum);
	most = __reduce_max_sync(LADE_FULL, most);
	if (stated == 0 || sum == 0 || most > LADE_ZSTD_HUFFMAN_LOG)
		return false;
	uint32_t log = lade_zstd_log2(sum) + 1, rest = (1u << log) - sum;
	if (log > LADE_ZSTD_HUFFMAN_LOG || rest & (rest - 1))
		return false;
	if (lane == 0) {
		h->weight[stated] = (uint8_t)(lade_zstd_log2(rest) + 1);
		h->log = log;
	}
	if (lane < 16)
		h->sort.count[lane] = 0;
	__syncwarp();
	uint32_t symbols = stated + 1;
#pragma unroll 1
	for (uint32_t g = 0; g < symbols; g += 32)
		if (g + lane < symbols)
			atomicAdd(&h->sort.count[h->weight[g + lane]], 1u);
	__syncwarp();
	/* Lane w has weight w; places in 'sorted', and in the table. */
	uint32_t mine = lane && lane < 16 ? h->sort.count[lane] : 0;
	uint32_t place = lade_warp_scan(mine, lane) - mine;
	uint32_t cells = mine << (lane ? (lane - 1) & 15 : 0);
	uint32_t cell = lade_warp_scan(cells, lane) - cells;
	uint32_t ones = __shfl_sync(LADE_FULL, mine, 1);
	if (ones < 2 || ones & 1)
		return false;
	if (lane < 16)
		h->sort.first[lane] = place;
	__syncwarp();
#pragma unroll 1
	for (uint32_t g = 0; g < symbols; g += 32) {
		uint32_t w = g + lane < symbols ? h->weight[g + lane] : 0;
		uint32_t alike = __match_any_sync(LADE_FULL, w);
		uint32_t to = h->sort.first[w] + __popc(alike & below);
		__syncwarp();
		if (w) {
			h->sort.sorted[to & 255] = (uint8_t)(g + lane);
			if (alike >> lane == 1)
				h->sort.first[w] = to + 1;
		}
		__syncwarp();
	}
#pragma unroll 1
	for (uint32_t w = 1; w <= log; w++) {
		uint32_t to = __shfl_sync(LADE_FULL, cell, w),
			 end = __shfl_sync(LADE_FULL, cells, w);
		uint32_t from = __shfl_sync(LADE_FULL, place, w);
		for (uint32_t i = lane; i < end; i += 32)
			h->code[to + i] =
				(uint16_t)(h->sort.sorted[(from + (i >> (w - 1))) & 255] << 8 |
			                   (log + 1 - w));
	}
	__syncwarp();
	return true;
}

/* ---- streams ------------------------------------------------------------------------------- */

/* A lane's place in its stream. */
struct lade_zstd_reader {
	const uint8_t *src;
	uint32_t n, first; /* bytes that may be read; where unit 0 begins, modulo 2^32 */
	uint32_t *ring;    /* word w is at w % 16; those at 0 and 1 also at 16 and 17 */
	uint32_t at;       /* the bit behind what is left, from unit 0 on */
	uint32_t have;     /* units from this one on are in the ring, or on their way */
};

/* Stores the unit at 'at', of which only bytes below 'n' are read; the others are 0.  'again': its
 * first two words go there, too. */
static __device__ __forceinline__ void
lade_zstd_reader_edge(const uint8_t *src, uint32_t n, uint32_t at, uint32_t *to, uint32_t *again)
{
#pragma unroll 1
	for (uint32_t k = 0; k < 4; k++, at += 4) {
		uint32_t value = 0;
#pragma unroll 1
		for (uint32_t i = 0; i < 4; i++)
			if (at + i < n)
				value |= (uint32_t)src[at + i] << (8 * i);
		to[k] = value;
		if (again && k < 2)
			again[k] = value;
	}
}

/* Begins to bring the unit below those that the lane has. */
static __device__ __forceinline__ void lade_zstd_reader_fetch(lade_zstd_reader *r)
{
	uint32_t unit = --r->have, at = r->first + 16 * unit;
	uint32_t *to = r->ring + 4 * (unit % 4), *again = r->ring + 16;
	bool twice = unit % 4 == 0;
	if (at < r->n && r->n - at >= 16) {
		lade_cp_async_16(to, r->src + at);
		if (twice)
			lade_cp_async_8(again, r->src + at);
	} else {
		lade_zstd_reader_edge(r->src, r->n, at, to, twice ? again : NULL);
	}
}

static __device__ __forceinline__ void lade_zstd_reader_seek(lade_zstd_reader *r, uint32_t at)
{
	lade_cp_async_wait<0>(); /* nothing older comes to the ring any more */
	r->at = at;
	r->have = at / 128 + 1;
#pragma unroll 1
	for (uint32_t k = 0; k < 4; k++)
		lade_zstd_reader_fetch(r);
	lade_cp_async_commit();
	lade_cp_async_wait<0>();
}

/*
 * Begins a round.  It needs the unit of bit 'at' and the one below.  A round takes less than a
 * unit: so it is enough to fetch one a round, two more are on their way, and the second of these is
 * needed two rounds later.
 */
static __device__ __forceinline__ void lade_zstd_reader_round(lade_zstd_reader *r)
{
	if (r->have + 3 > r->at / 128)
		lade_zstd_reader_fetch(r);
	lade_cp_async_commit();
	lade_cp_async_wait<2>();
}

/* The 64 bits that end before bit 'at', in two words. */
static __device__ __forceinline__ uint2 lade_zstd_window(const lade_zstd_reader &r)
{
	const uint32_t *word = r.ring + (r.at - 64) / 32 % 16;
	return make_uint2(__funnelshift_r(word[0], word[1], r.at),
	                  __funnelshift_r(word[1], word[2], r.at));
}

/* Decodes the symbol before bit 'at'. */
static __device__ __forceinline__ uint32_t lade_zstd_symbol(lade_zstd_reader *r,
                                                            const uint16_t *code, uint32_t shift)
{
	uint32_t e = code[lade_zstd_window(*r).y >> shift];
	r->at -= e & 255;
	return e >> 8;
}

/* Decodes four of them: 44 bits at most. */
static __device__ __forceinline__ uint32_t lade_zstd_symbols(lade_zstd_reader *r,
                                                             const uint16_t *code, uint32_t shift)
{
	uint2 v = lade_zstd_window(*r);
	uint32_t e[4];
#pragma unroll
	for (uint32_t k = 0; k < 4; k++) {
		e[k] = code[v.y >> shift];
		v.y = __funnelshift_l(v.x, v.y, e[k]); /* by the low five bits */
		v.x = __funnelshift_l(0, v.x, e[k]);
	}
	r->at -= (e[0] + e[1] + e[2] + e[3]) & 255;
	return __byte_perm(__byte_perm(e[0], e[1], 0x51), __byte_perm(e[2], e[3], 0x51), 0x5410);
}

/* Reads symbols until 'at' is not behind 'end'; how many.  All lanes. */
static __device__ __forceinline__ uint32_t lade_zstd_skip(lade_zstd_reader *r, const uint16_t *code,
                                                          uint32_t shift, uint32_t end)
{
	uint32_t count = 0;
	for (;;) {
		bool far = (int32_t)(r->at - end) >= (int32_t)LADE_ZSTD_ROUND_BITS;
		if (!__any_sync(LADE_FULL, far))
			break;
		lade_zstd_reader_round(r);
		if (far) {
			lade_zstd_symbols(r, code, shift);
			lade_zstd_symbols(r, code, shift);
			count += LADE_ZSTD_ROUND_SYMBOLS;
		}
	}
	while (__any_sync(LADE_FULL, (int32_t)(r->at - end) > 0)) {
		lade_zstd_reader_round(r);
#pragma unroll 1
		for (uint32_t k = 0; k < LADE_ZSTD_ROUND_SYMBOLS && (int32_t)(r->at - end) > 0;
		     k++) {
			lade_zstd_symbol(r, code, shift);
			count++;
		}
	}
	return count;
}

/* Stores 'count' symbols.  All lanes. */
static __device__ __forceinline__ void lade_zstd_store(lade_zstd_reader *r, const uint16_t *code,
                                                       uint32_t shift, uint8_t *to, uint32_t count)
{
	uint32_t head = (uint32_t)(0 - (uintptr_t)to) & 7;
	head = head < count ? head : count;
	count -= head;
#pragma unroll 1
	for (; head; head--)
		*to++ = (uint8_t)lade_zstd_symbol(r, code, shift);
	while (__any_sync(LADE_FULL, count >= LADE_ZSTD_ROUND_SYMBOLS)) {
		lade_zstd_reader_round(r);
		if (count >= LADE_ZSTD_ROUND_SYMBOLS) {
			uint64_t low = lade_zstd_symbols(r, code, shift);
			uint64_t high = lade_zstd_symbols(r, code, shift);
			*(uint64_t *)lade_global(to) = high << 32 | low;
			to += LADE_ZSTD_ROUND_SYMBOLS;
			count -= LADE_ZSTD_ROUND_SYMBOLS;
		}
	}
	lade_zstd_reader_round(r);
#pragma unroll 1
	for (; count; count--)
		*to++ = (uint8_t)lade_zstd_symbol(r, code, shift);
}

/* A stream: its bytes in the source, and where its symbols go. */
struct lade_zstd_stream {
	uint32_t at, size, out, count;
};

/* The lane's stream of those in [at, end); size = 0: there is none. */
static __device__ __forceinline__ lade_zstd_stream lade_zstd_stream_of(const uint8_t *src,
                                                                       uint32_t at, uint32_t end,
                                                                       uint32_t streams,
                                                                       uint32_t count,
                                                                       uint32_t lane)
{
	lade_zstd_stream s = {at, end - at, 0, count};
	if (streams == 1)
		return s;
	if (end - at < 6)
		return lade_zstd_stream{0, 0, 0, 0};
	uint32_t j = lane / 8, part = (count + 3) / 4;
	s.at += 6;
	for (uint32_t k = 0; k < j; k++) {
		uint32_t size = lade_zstd_le(src, at + 2 * k, 2);
		if (size > end - s.at)
			return lade_zstd_stream{0, 0, 0, 0};
		s.at += size;
	}
	s.size = end - s.at;
	s.out = j * part;
	s.count = count - s.out;
	if (j < 3) {
		uint32_t size = lade_zstd_le(src, at + 2 * j, 2);
		s.size = size <= s.size ? size : 0;
		s.count = part;
	}
	return s;
}

/* Decodes the literals of a block, whose streams begin at 'at', to 'to'; whether they are right.
 * PART: only the stream of four that 'lane' says, 32 * stream + lane, by all lanes. */
template <bool PART>
static __device__ __noinline__ bool lade_zstd_streams(lade_zstd_huffman *h, const uint8_t *src,
                                                      const lade_zstd_block &b, uint32_t at,
                                                      uint8_t *to, uint32_t lane)
{
	const uint16_t *code = lade_shared(h->code);
	uint32_t lanes = PART || b.streams == 1 ? 32 : 8, shift = 32 - h->log;
	uint32_t end = b.lit_at + b.lit_coded;
	lade_zstd_stream s = lade_zstd_stream_of(src, at, end, b.streams, b.lit_size,
	                                         PART ? lane / 4 : lane);
	lane = PART ? lane & 31 : lane;
	uint32_t k = lane & (lanes - 1);
	uint32_t top = s.size ? src[s.at + s.size - 1] : 0;
	if (__any_sync(LADE_FULL, top == 0))
		return false;
	uint32_t over = (uint32_t)(uintptr_t)(src + at) & 15;
	lade_zstd_reader r = {
		src, b.at + b.size, at - over - LADE_ZSTD_BEFORE / 8, lade_shared(h->ring[lane]), 0,
		0};
	uint32_t bits = 8 * (s.size - 1) + lade_zstd_log2(top);
	uint32_t zero = LADE_ZSTD_BEFORE + 8 * (s.at - at + over);
	uint32_t first =
		zero + bits - bits * k / lanes; /* below 2^20 bits, so that nothing wraps */
	uint32_t last = zero + bits - bits * (k + 1) / lanes;
	uint32_t before = first - zero + LADE_ZSTD_AHEAD;
	lade_zstd_reader_seek(&r, k == 0 || before > bits ? zero + bits : zero + before);
	lade_zstd_skip(&r, code, shift, first);
	uint32_t entry = r.at;
	uint32_t symbols = lade_zstd_skip(&r, code, shift, last);
	for (uint32_t round = 0; round < lanes; round++) {
		uint32_t led = __shfl_up_sync(LADE_FULL, r.at, 1);
		bool wrong = k && led != entry;
		if (!__any_sync(LADE_FULL, wrong))
			break;
		entry = wrong ? led : entry;
		lade_zstd_reader_seek(&r, wrong ? led : r.at);
		uint32_t more = lade_zstd_skip(&r, code, shift, wrong ? last : r.at);
		symbols = wrong ? more : symbols;
	}
	uint32_t sum = lade_warp_scan(symbols, lane);
	uint32_t base = __shfl_sync(LADE_FULL, sum, lane ? (lane & ~(lanes - 1)) - 1 : 0);
	base = lane < lanes ? 0 : base;
	bool bad = k == lanes - 1 && (r.at != zero || sum - base != s.count);
	bool right = !__any_sync(LADE_FULL, bad);
	lade_zstd_reader_seek(&r, entry);
	if (right)
		lade_zstd_store(&r, code, shift, to + s.out + (sum - base - symbols), symbols);
	/* Units that nobody needs may be on their way still, to memory that serves again. */
	lade_cp_async_wait<0>();
	__syncwarp();
	return right;
}

/* Makes the table of literals, also where it is that of the block before; '*at' is then where the
 * streams begin.  Whether it is right.  h->log is that of the last table; 0: there is none. */
static __device__ __forceinline__ bool lade_zstd_codes(lade_zstd_huffman *h, const uint8_t *src,
                                                       const lade_zstd_block &b, uint32_t *at,
                                                       uint32_t lane)
{
	uint32_t end = b.lit_at + b.lit_coded;
	*at = b.lit_at;
	if (b.lit_kind == LADE_ZSTD_CODED) {
		lade_zstd_fetch(&h->maker, src, *at, end, lane);
		lade_zstd_tree_read(h, *at, end, lane);
		*at = h->at;
	} else if (h->log == 0) {
		return false;
	}
	return lade_zstd_codes_make(h, lane);
}

/* The same, and decodes the literals to 'to'; whether they are right. */
static __device__ __forceinline__ bool lade_zstd_literals(lade_zstd_huffman *h, const uint8_t *src,
                                                          const lade_zstd_block &b, uint8_t *to,
                                                          uint32_t lane)
{
	uint32_t at;
	return lade_zstd_codes(h, src, b, &at, lane) &&
	       lade_zstd_streams<false>(h, src, b, at, to, lane);
}

#endif
