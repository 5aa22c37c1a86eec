/*
 * deflate_codes.cuh: the source of a Deflate chunk in words of shared memory, block headers, and
 * the tables of a block's codes (RFC 1951, 3.2), by a team of W warps.
 *
 * A code is noted by its lengths: codewords of 15 bits, first bit highest and zeros behind, are in
 * the order of their lengths, so that the length of the next codeword is the first one whose limit
 * is above the next 15 bits.  Tables of 1,024 and 256 entries, by the next bits, first bit lowest,
 * give short codewords at once:
 *
 *     entry = | bits 5, with those of the number | kind 2 | bits of the number 5 |
 *             | bits of the codeword 5 | base 15 |, from the highest
 *
 * Bounds: words of the source hold only its own bytes, and zeros behind; positions are compared
 * with its end.  Tables are full, and a codeword that a code does not have has an entry as well.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_DEFLATE_CODES_CUH
#define LADE_CUDA_DEFLATE_CODES_CUH

#include "codec/deflate/args.h"
#include "codec/lz/kernels/lz_exec.cuh"

#define LADE_DEFLATE_LOOK 10u /* bits that the table of literals and lengths looks at */
#define LADE_DEFLATE_FAR 8u   /* and that of distances */
#define LADE_DEFLATE_CODES (1u << LADE_DEFLATE_LOOK)
#define LADE_DEFLATE_HEADER 168u /* words that hold any block's header */

/* Kinds of entries, in place; the base of a rare one says which it is.  'LONG': the codeword has
 * more bits than the table looks at. */
#define LADE_DEFLATE_LITERAL 0u
#define LADE_DEFLATE_LENGTH (1u << 25)
#define LADE_DEFLATE_DISTANCE (2u << 25)
#define LADE_DEFLATE_RARE (3u << 25)
enum { LADE_DEFLATE_END, LADE_DEFLATE_BAD, LADE_DEFLATE_LONG };

/* Kinds of blocks. */
enum { LADE_DEFLATE_STORED, LADE_DEFLATE_FIXED, LADE_DEFLATE_DYNAMIC, LADE_DEFLATE_EMPTY };

/* A code of up to N symbols: 'bias' + the first bits of a codeword is its place in 'sorted'. */
template <int N> struct lade_deflate_code {
	uint32_t limit[16], bias[16]; /* by length */
	uint16_t sorted[N];
};

/* A thread of a team. */
struct lade_deflate_me {
	uint32_t warp, lane, thread;
};

/* What a team knows of its chunk; written by thread 0. */
struct lade_deflate_job {
	lade_gpu_chunk c;
	uint32_t i, status;
	uint64_t at;    /* bits read, from the word of memory that the source begins in */
	uint32_t begin; /* output before this member */
	uint32_t kind, last, size;    /* the block */
	uint32_t literals, distances; /* lengths that a dynamic block gives */
};

/* What a thread asked for: the token of its next sequence, and the one before it. */
struct lade_deflate_asked {
	uint32_t token, before;
	uint32_t place; /* 1 << 31 | the token's number in its lane << 8 | lane; 0: no sequence */
};

/* A team's part of shared memory. */
template <int W> struct lade_deflate_team {
	static constexpr uint32_t LANES = 32 * W;
	static constexpr uint32_t WORDS = LANES * LADE_DEFLATE_WORDS(W) + 8;
	uint32_t table[LADE_DEFLATE_CODES + (1u << LADE_DEFLATE_FAR)];
	lade_deflate_code<288> literal;
	lade_deflate_code<32> distance; /* before it is known, the code of lengths */
	union {
		struct { /* of a block's header */
			uint32_t histogram[2][16];
			uint8_t length[320];
		} head;
		lade_deflate_asked asked[LANES]; /* of rounds: deflate_tile.cuh */
	};
	union {
		struct {
			lade_lz_exec<W> lz;
			lade_lz_place place[LANES];
		} x;
		uint32_t stage[WORDS];
	};
	uint32_t said[LANES], base[LANES], count[LANES]; /* by lane: deflate_tile.cuh */
	uint32_t first[2][W], total[W], pieces[W];       /* by warp */
	lade_deflate_job job;
};

/* ---- the source ---------------------------------------------------------------------------- */

/* Bits of the chunk's source before its end, counted as job.at is. */
static __device__ __forceinline__ uint64_t lade_deflate_end(const lade_gpu_chunk &c)
{
	return 8 * (((uint64_t)(uintptr_t)c.src & 3) + c.src_size);
}

/* The same from the word that bit 'at' is in. */
static __device__ __forceinline__ uint32_t lade_deflate_left(const lade_gpu_chunk &c, uint64_t at)
{
	uint64_t left = lade_deflate_end(c) - (at & ~(uint64_t)31);
	return left < 0x40000000u ? (uint32_t)left : 0x40000000u;
}

/* Brings 'count' words from the one of bit 'at' on to the stage; zeros stand for bytes that are not
 * the source's.  The stage is free, and the words are there for all. */
template <int W>
static __device__ __forceinline__ void lade_deflate_fetch(lade_deflate_team<W> *t,
                                                          const lade_gpu_chunk &c, uint64_t at,
                                                          uint32_t count, uint32_t thread)
{
	const uint8_t *src = c.src;
	/* Below 0 it wraps, and 'n' is below 2^31: such bytes are not below that. */
	uint32_t n = c.src_size, first = 4 * (uint32_t)(at / 32) - ((uint32_t)(uintptr_t)src & 3);
	for (uint32_t i = thread; i < count; i += t->LANES) {
		uint32_t b = first + 4 * i;
		if (b < n && n - b >= 4) {
			lade_cp_async_4(&t->stage[i], src + b);
			continue;
		}
		uint32_t value = 0;
		for (uint32_t k = 0; k < 4; k++)
			if (b + k < n)
				value |= (uint32_t)src[b + k] << (8 * k);
		t->stage[i] = value;
	}
	lade_cp_async_commit();
	lade_cp_async_wait<0>();
	lade_team_sync<W>();
}

/* The 32 bits from 'p' on. */
static __device__ __forceinline__ uint32_t lade_deflate_peek(const uint32_t *stage, uint32_t p)
{
	return __funnelshift_r(stage[p / 32], stage[p / 32 + 1], p);
}

static __device__ __forceinline__ uint32_t lade_deflate_take(const uint32_t *stage, uint32_t *p,
                                                             uint32_t bits)
{
	uint32_t v = lade_deflate_peek(stage, *p) & ((1u << bits) - 1);
	*p += bits;
	return v;
}

/* ---- codes --------------------------------------------------------------------------------- */

/*
 * Makes the code of 'count' symbols, of which each has a length of 0 to 15 bits; a warp.  Whether
 * it is complete; with loose = 1 it may also be a single codeword of one bit, and with 2 have no
 * codeword as well.
 */
template <int N>
static __device__ __noinline__ bool
lade_deflate_code_make(lade_deflate_code<N> *code, uint32_t *histogram, const uint8_t *length,
                       uint32_t count, uint32_t loose, uint32_t lane)
{
	code = lade_shared(code);
	histogram = lade_shared(histogram);
	length = lade_shared(length);
	uint32_t below = (1u << lane) - 1;
	if (lane < 16)
		histogram[lane] = 0;
	__syncwarp();
#pragma unroll 1
	for (uint32_t g = lane; g < count; g += 32)
		atomicAdd(&histogram[length[g]], 1u);
	__syncwarp();
	/* Lane n has the codewords of n bits. */
	uint32_t mine = lane && lane < 16 ? histogram[lane] : 0;
	uint32_t cells = lane < 16 ? mine << (15 - lane) : 0;
	uint32_t place = lade_warp_scan(mine, lane), limit = lade_warp_scan(cells, lane);
	uint32_t all = __shfl_sync(LADE_FULL, place, 31), sum = __shfl_sync(LADE_FULL, limit, 31);
	place -= mine;
	__syncwarp();
	if (lane < 16) {
		code->limit[lane] = limit;
		code->bias[lane] = place - ((limit - cells) >> (15 - lane));
		histogram[lane] = place;
	}
	__syncwarp();
#pragma unroll 1
	for (uint32_t g = 0; g < count; g += 32) {
		uint32_t n = g + lane < count ? length[g + lane] : 0;
		uint32_t alike = __match_any_sync(LADE_FULL, n);
		uint32_t to = histogram[n] + __popc(alike & below);
		__syncwarp();
		if (n) {
			code->sorted[to % N] = (uint16_t)(g + lane);
			if (alike >> lane == 1)
				histogram[n] = to + 1;
		}
		__syncwarp();
	}
	return sum == 32768 || (loose && all == 1 && sum == 16384) || (loose == 2 && all == 0);
}

/* An entry: of a codeword of 'n' bits and a number of 'extra' bits. */
static __device__ __forceinline__ uint32_t lade_deflate_pack(uint32_t kind, uint32_t n,
                                                             uint32_t extra, uint32_t base)
{
	return (n + extra) << 27 | kind | extra << 20 | n << 15 | base;
}

/* The entry of a symbol of literals and lengths (RFC 1951, 3.2.5) whose codeword has 'n' bits. */
static __device__ __forceinline__ uint32_t lade_deflate_entry(uint32_t symbol, uint32_t n)
{
	uint32_t k = symbol - 257, extra = k < 8 || k >= 28 ? 0 : k / 4 - 1;
	uint32_t base = k < 8 ? 3 + k : k == 28 ? 258 : 3 + ((4 + (k & 3)) << extra);
	if (symbol < 256)
		return lade_deflate_pack(LADE_DEFLATE_LITERAL, n, 0, symbol);
	if (symbol == 256 || k > 28)
		return lade_deflate_pack(LADE_DEFLATE_RARE, n, 0,
		                         symbol == 256 ? LADE_DEFLATE_END : LADE_DEFLATE_BAD);
	return lade_deflate_pack(LADE_DEFLATE_LENGTH, n, extra, base);
}

/* The same of a distance. */
static __device__ __forceinline__ uint32_t lade_deflate_entry_far(uint32_t symbol, uint32_t n)
{
	uint32_t extra = symbol < 4 ? 0 : symbol / 2 - 1;
	uint32_t base = symbol < 4 ? 1 + symbol : 1 + ((2 + (symbol & 1)) << extra);
	if (symbol > 29)
		return lade_deflate_pack(LADE_DEFLATE_RARE, n, 0, LADE_DEFLATE_BAD);
	return lade_deflate_pack(LADE_DEFLATE_DISTANCE, n, extra, base);
}

/* The entry of the codeword at 'v', of more than 'look' bits. */
template <int N>
static __device__ __forceinline__ uint32_t lade_deflate_seek(const lade_deflate_code<N> *code,
                                                             uint32_t v, uint32_t look)
{
	uint32_t word = __brev(v) >> 17, n = look + 1;
	while (n < 16 && word >= code->limit[n])
		n++;
	if (n == 16)
		return lade_deflate_pack(LADE_DEFLATE_RARE, 1, 0, LADE_DEFLATE_BAD);
	uint32_t symbol = code->sorted[((word >> (15 - n)) + code->bias[n]) % N];
	return N == 32 ? lade_deflate_entry_far(symbol, n) : lade_deflate_entry(symbol, n);
}

/* Fills a table of 1 << look entries, by a team of W warps.  A thread's codewords ascend. */
template <int W, int N>
static __device__ __forceinline__ void
lade_deflate_fill(const lade_deflate_code<N> *code, uint32_t *table, uint32_t look, uint32_t thread)
{
	uint32_t word = __brev(thread) >> 17, n = 1, step = 1u << (15 - look);
#pragma unroll 1
	for (uint32_t i = thread; i < 1u << look; i += 32 * W, word += step) {
		while (n <= look && word >= code->limit[n])
			n++;
		uint32_t entry = lade_deflate_pack(LADE_DEFLATE_RARE, 1, 0, LADE_DEFLATE_LONG);
		if (n <= look) {
			uint32_t at = (word >> (15 - n)) + code->bias[n];
			uint32_t symbol = code->sorted[at % N];
			entry = N == 32 ? lade_deflate_entry_far(symbol, n)
			                : lade_deflate_entry(symbol, n);
		}
		table[__brev(word) >> 17] = entry;
	}
}

/* ---- a block's header ---------------------------------------------------------------------- */

/* The order of the lengths of the code of lengths, 5 bits each. */
static __device__ __forceinline__ uint32_t lade_deflate_order(uint32_t i)
{
	/* 16 17 18 0 8 7 9 6 10 5 11 4 12 | 3 13 2 14 1 15 */
	const uint64_t low = 16ull | 17ull << 5 | 18ull << 10 | 0ull << 15 | 8ull << 20 |
	                     7ull << 25 | 9ull << 30 | 6ull << 35 | 10ull << 40 | 5ull << 45 |
	                     11ull << 50 | 4ull << 55;
	const uint64_t high = 12ull | 3ull << 5 | 13ull << 10 | 2ull << 15 | 14ull << 20 |
	                      1ull << 25 | 15ull << 30;
	return (uint32_t)(i < 12 ? low >> (5 * i) : high >> (5 * (i - 12))) & 31;
}

/*
 * Reads what is before a block's codes or bytes, from bit *p of the stage on; one thread.  Blocks
 * that hold nothing are passed at once: a source may be made of them.
 */
static __device__ __forceinline__ uint32_t lade_deflate_begin(lade_deflate_job *j,
                                                              const uint32_t *stage, uint32_t *at,
                                                              uint32_t left)
{
	uint32_t p = *at, kind;
	j->kind = LADE_DEFLATE_EMPTY;
	do {
		j->last = lade_deflate_take(stage, &p, 1);
		kind = lade_deflate_take(stage, &p, 2);
		if (kind == LADE_DEFLATE_FIXED && (lade_deflate_peek(stage, p) & 127) == 0) {
			p += 7;
			kind = LADE_DEFLATE_EMPTY;
		} else if (kind == LADE_DEFLATE_STORED) {
			p = (p + 7) & ~7u;
			j->size = lade_deflate_take(stage, &p, 16);
			uint32_t again = lade_deflate_take(stage, &p, 16);
			if (p <= left && (j->size ^ again) != 0xFFFF)
				return LADE_GPU_CORRUPT;
			kind = j->size ? kind : (uint32_t)LADE_DEFLATE_EMPTY;
		} else if (kind == LADE_DEFLATE_DYNAMIC) {
			j->literals = 257 + lade_deflate_take(stage, &p, 5);
			j->distances = 1 + lade_deflate_take(stage, &p, 5);
			if (p <= left && (j->literals > 286 || j->distances > 30))
				return LADE_GPU_CORRUPT;
		} else if (kind == 3 && p <= left) {
			return LADE_GPU_CORRUPT;
		}
	} while (kind == LADE_DEFLATE_EMPTY && !j->last && p <= left &&
	         p < 32 * (LADE_DEFLATE_HEADER - 150));
	j->kind = kind;
	*at = p;
	return p > left ? LADE_GPU_TRUNCATED : LADE_GPU_OK;
}

/* Reads the code of lengths, by a warp, and makes its table: | symbol 8 | bits 8 |. */
template <int W>
static __device__ __forceinline__ bool lade_deflate_lengths_begin(lade_deflate_team<W> *t,
                                                                  uint32_t *p, uint32_t lane)
{
	uint32_t count = 4 + lade_deflate_take(t->stage, p, 4);
	uint32_t mine = lane < count ? lade_deflate_peek(t->stage, *p + 3 * lane) & 7 : 0;
	if (lane < 19)
		t->head.length[lade_deflate_order(lane)] = (uint8_t)mine;
	__syncwarp();
	*p += 3 * count;
	if (!lade_deflate_code_make(&t->distance, t->head.histogram[0], t->head.length, 19, 0,
	                            lane))
		return false;
	for (uint32_t i = lane; i < 128; i += 32) {
		uint32_t word = __brev(i) >> 17, n = 1;
		while (n < 7 && word >= t->distance.limit[n])
			n++;
		t->table[i] =
			n | (uint32_t)t->distance
					    .sorted[((word >> (15 - n)) + t->distance.bias[n]) % 32]
				    << 8;
	}
	__syncwarp();
	return true;
}

/*
 * Reads the lengths of both codes from bit *at of the stage on, by a warp: 32 bits at a time.  Each
 * lane looks at the symbol that would begin at its bit; lanes follow the chain of symbols from bit
 * to bit, twice as far each round.  Those on the chain that begins at the first bit are symbols.
 */
template <int W>
static __device__ __forceinline__ uint32_t lade_deflate_lengths_read(lade_deflate_team<W> *t,
                                                                     uint32_t *at, uint32_t left,
                                                                     uint32_t lane)
{
	uint32_t p = *at, n = 0, last = 0, count = t->job.literals + t->job.distances;
	for (uint32_t i = lane; i < sizeof t->head.length; i += 32)
		t->head.length[i] = 0;
	__syncwarp();
#pragma unroll 1
	while (n < count) {
		uint32_t v = lade_deflate_peek(t->stage, p + lane), e = t->table[v & 127];
		uint32_t bits = e & 255, symbol = e >> 8, again = 1;
		uint32_t extra = symbol < 16 ? 0 : symbol == 16 ? 2 : symbol == 17 ? 3 : 7;
		if (symbol >= 16)
			again = (symbol == 18 ? 11 : 3) + (v >> bits & ((1u << extra) - 1));
		uint32_t after = lane + bits + extra, next = after, chain = 1u << lane;
#pragma unroll
		for (uint32_t k = 0; k < 5; k++) {
			uint32_t more = __shfl_sync(LADE_FULL, chain, next & 31);
			uint32_t then = __shfl_sync(LADE_FULL, next, next & 31);
			chain |= next < 32 ? more : 0;
			next = next < 32 ? then : next;
		}
		chain = __shfl_sync(LADE_FULL, chain, 0);
		bool mine = chain >> lane & 1;
		uint32_t start = n + lade_warp_scan(mine ? again : 0, lane) - again;
		mine = mine && start < count;
		bool cut = mine && p + after > left;
		bool bad = mine && ((symbol == 16 && start == 0) || again > count - start);
		uint32_t wrong = __ballot_sync(LADE_FULL, cut || bad);
		uint32_t first = __ballot_sync(LADE_FULL, cut);
		if (wrong)
			return first >> (__ffs(wrong) - 1) & 1 ? LADE_GPU_TRUNCATED
			                                       : LADE_GPU_CORRUPT;
		/* A repeat takes the length of the last symbol before it that is none. */
		uint32_t before =
			__ballot_sync(LADE_FULL, mine && symbol != 16) & ((1u << lane) - 1);
		uint32_t value = symbol < 16 ? symbol : 0;
		uint32_t former =
			__shfl_sync(LADE_FULL, value, before ? 31 - __clz((int)before) : 0);
		if (symbol == 16)
			value = before ? former : last;
		for (uint32_t k = 0; k < again && mine && value; k++)
			t->head.length[start + k] = (uint8_t)value;
		__syncwarp();
		uint32_t top = 31 - __clz((int)__ballot_sync(LADE_FULL, mine));
		last = __shfl_sync(LADE_FULL, value, top);
		n = __shfl_sync(LADE_FULL, start + again, top);
		p += __shfl_sync(LADE_FULL, after, top);
	}
	*at = p;
	return LADE_GPU_OK;
}

/* The lengths of a dynamic block, by a warp. */
template <int W>
static __device__ __forceinline__ uint32_t lade_deflate_dynamic(lade_deflate_team<W> *t,
                                                                uint32_t *at, uint32_t left,
                                                                uint32_t lane)
{
	uint32_t p = *at, status = LADE_GPU_OK;
	bool right = lade_deflate_lengths_begin(t, &p, lane);
	if (!right)
		return p > left ? LADE_GPU_TRUNCATED : LADE_GPU_CORRUPT;
	status = lade_deflate_lengths_read(t, &p, left, lane);
	*at = p;
	if (status == LADE_GPU_OK && t->head.length[256] == 0)
		status = LADE_GPU_CORRUPT;
	return status;
}

/* And of the fixed codes (3.2.6). */
template <int W>
static __device__ __forceinline__ void lade_deflate_fixed(lade_deflate_team<W> *t, uint32_t lane)
{
	for (uint32_t i = lane; i < 320; i += 32)
		t->head.length[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : i < 288 ? 8 : 5;
	if (lane == 0) {
		t->job.literals = 288;
		t->job.distances = 32;
	}
	__syncwarp();
}

/* Reads the header of the block at job.at and makes its tables; all threads.  A status. */
template <int W>
static __device__ __forceinline__ uint32_t lade_deflate_block(lade_deflate_team<W> *t,
                                                              lade_deflate_me me)
{
	uint32_t lane = me.lane;
	uint64_t at = t->job.at;
	uint32_t left = lade_deflate_left(t->job.c, at), p = (uint32_t)at & 31;
	lade_deflate_fetch(t, t->job.c, at, LADE_DEFLATE_HEADER, me.thread);
	if (me.warp == 0) {
		uint32_t status = LADE_GPU_OK;
		if (lane == 0)
			status = lade_deflate_begin(&t->job, t->stage, &p, left);
		__syncwarp();
		p = __shfl_sync(LADE_FULL, p, 0);
		status = __shfl_sync(LADE_FULL, status, 0);
		uint32_t kind = t->job.kind;
		if (status == LADE_GPU_OK && kind == LADE_DEFLATE_DYNAMIC)
			status = lade_deflate_dynamic(t, &p, left, lane);
		if (status == LADE_GPU_OK && kind == LADE_DEFLATE_FIXED)
			lade_deflate_fixed(t, lane);
		if (status == LADE_GPU_OK &&
		    (kind == LADE_DEFLATE_DYNAMIC || kind == LADE_DEFLATE_FIXED)) {
			bool right =
				lade_deflate_code_make(&t->literal, t->head.histogram[0],
			                               t->head.length, t->job.literals, 1, lane);
			right &= lade_deflate_code_make(&t->distance, t->head.histogram[1],
			                                t->head.length + t->job.literals,
			                                t->job.distances, 2, lane);
			status = right ? LADE_GPU_OK : LADE_GPU_CORRUPT;
		}
		if (lane == 0) {
			t->job.status = status;
			t->job.at = (at & ~(uint64_t)31) + p;
		}
	}
	lade_team_sync<W>();
	uint32_t status = t->job.status, kind = t->job.kind;
	if (status == LADE_GPU_OK && (kind == LADE_DEFLATE_DYNAMIC || kind == LADE_DEFLATE_FIXED)) {
		lade_deflate_fill<W>(&t->literal, t->table, LADE_DEFLATE_LOOK, me.thread);
		lade_deflate_fill<W>(&t->distance, t->table + LADE_DEFLATE_CODES, LADE_DEFLATE_FAR,
		                     me.thread);
	}
	lade_team_sync<W>();
	return status;
}

#endif
