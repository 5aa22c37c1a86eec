/*
 * lz_decode.cuh: decodes one chunk of an LZ format, by one warp (solo) or by several (team).
 *
 * Where the next token stands is known only from the one before.  So every position of a segment of 32
 * bytes is read as if a token stood there, which gives a jump; four rounds of doubling then give, for
 * every position, where a chain that enters there leaves the segment and which tokens it passes.  With
 * the true entry that is one look-up a segment, and needs no luck: it takes as long on any data.
 *
 * A format is a struct of functions (lz4_parse.cuh, snappy_parse.cuh):
 *   SEGMENTS      segments of 32 bytes that hold 32 tokens at most
 *   TOKEN_AT_END  a chain that arrives at the source's end is an error
 *   begin         what stands before the first token: where it stands, and the decoded size if told
 *   jump          a position read as a token: where the next one stands, or LADE_LZ_STOP where this is the
 *                 last, bad or slow one; and the token, packed, its low 8 bits 0 but for LADE_LZ_SLOW
 *   take          a lane's sequence from its packed token
 *   slow          the whole warp reads a token whose lengths take long to read
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_LZ_DECODE_CUH
#define LADE_CUDA_LZ_DECODE_CUH

#include "cuda/lz_exec.cuh"

#define LADE_LZ_STOP 0xFFFFFFFFu
#define LADE_LZ_SLOW 128u

/* ---- chains ------------------------------------------------------------------------------------ */

/* A segment's chains: by entry position, where they leave it and which tokens they pass. */
struct lade_lz_segment {
	uint32_t exit, tokens, token;
};

template <class F>
static __device__ __forceinline__ lade_lz_segment lade_lz_chain(const uint8_t *src, uint32_t n,
                                                                uint32_t begin, uint32_t lane)
{
	lade_lz_segment s;
	s.exit = F::jump(src, n, begin + lane, &s.token);
	s.tokens = F::TOKEN_AT_END || begin + lane < n ? 1u << lane : 0;
	/* 16 tokens at most in 32 bytes: four doublings reach past them. */
#pragma unroll
	for (int round = 0; round < 4; round++) {
		uint32_t to = s.exit - begin;
		uint32_t exit = __shfl_sync(LADE_FULL, s.exit, to & 31);
		uint32_t tokens = __shfl_sync(LADE_FULL, s.tokens, to & 31);
		if (to < 32) {
			s.exit = exit;
			s.tokens |= tokens;
		}
	}
	return s;
}

/* Follows the chain that enters the block at 'entry' and writes its tokens to the list, in order;
 * returns their number.  '*exit' is where the next block's chain enters, or LADE_LZ_STOP. */
template <class F>
static __device__ __forceinline__ uint32_t lade_lz_list(lade_lz_shared *s,
                                                        const lade_lz_segment *segment,
                                                        uint32_t begin, uint32_t entry,
                                                        uint32_t lane, uint32_t *exit)
{
	uint32_t count = 0;
#pragma unroll
	for (uint32_t k = 0; k < F::SEGMENTS; k++) {
		uint32_t from = entry - (begin + 32 * k);
		if (from < 32) {
			uint32_t tokens = __shfl_sync(LADE_FULL, segment[k].tokens, from);
			entry = __shfl_sync(LADE_FULL, segment[k].exit, from);
			if (tokens >> lane & 1)
				s->tokens[count + __popc(tokens & ((1u << lane) - 1))] =
					segment[k].token | (32 * k + lane);
			count += __popc(tokens);
		}
	}
	__syncwarp();
	*exit = entry;
	return count;
}

/* ---- the sequences of a block ----------------------------------------------------------------------- */

/*
 * Reads the block's listed tokens, one a lane.  '*exit' is made exact where the last one was slow: it is then
 * where the next token stands, or LADE_LZ_STOP.
 */
template <class F>
static __device__ __forceinline__ uint32_t lade_lz_read(lade_lz_shared *s, const uint8_t *src,
                                                        uint32_t n, uint32_t begin, uint32_t count,
                                                        uint32_t lane, lade_lz_sequence *q,
                                                        uint32_t *exit)
{
	uint32_t token = lane < count ? s->tokens[lane] : 0, status = LADE_GPU_OK;
	*q = lade_lz_sequence{0, 0, 0, 0};
	/* A slow token ends its chain, so that only the last one can be. */
	uint32_t last = count ? __shfl_sync(LADE_FULL, token, count - 1) : 0;
	if (last & LADE_LZ_SLOW) {
		lade_lz_sequence long_one = {0, 0, 0, 0};
		uint32_t bad = F::slow(src, n, begin + (last & 127), lane, &long_one, exit);
		if (lane == count - 1) {
			*q = long_one;
			status = bad;
		}
	}
	if (lane < count && !(token & LADE_LZ_SLOW))
		status = F::take(src, n, begin + (token & 127), token, q, exit);
	uint32_t bad = __ballot_sync(LADE_FULL, status != LADE_GPU_OK);
	return bad ? __shfl_sync(LADE_FULL, status, __ffs(bad) - 1) : LADE_GPU_OK;
}

/* Where each lane's sequence begins, counted from the batch's first byte; '*total' is the bytes of all.
 * Two lengths are at most 2^30 and some each, and only the last lane's are above 1,000. */
static __device__ __forceinline__ uint32_t lade_lz_place(const lade_lz_sequence &q, uint32_t lane,
                                                         uint32_t *total)
{
	uint32_t end = lade_warp_scan(q.literals + q.match, lane);
	*total = __shfl_sync(LADE_FULL, end, 31);
	return end - q.literals - q.match;
}

/* Checks the matches' offsets and the output's end; 'start' is the lane's first output byte. */
static __device__ __forceinline__ uint32_t lade_lz_check(const lade_lz_sequence &q, uint32_t start,
                                                         uint32_t op, uint32_t total, uint32_t cap)
{
	bool bad = q.match && (q.offset == 0 || q.offset > start + q.literals);
	if (__any_sync(LADE_FULL, bad))
		return LADE_GPU_CORRUPT;
	return total > cap - op ? LADE_GPU_NOSPACE : LADE_GPU_OK;
}

/* ---- one warp ------------------------------------------------------------------------------------------ */

template <class F>
static __device__ __forceinline__ uint32_t lade_lz_solo(lade_lz_shared *s, const lade_gpu_chunk &c,
                                                        uint32_t lane, uint32_t *size)
{
	uint32_t at, told, op = 0;
	uint32_t status = F::begin(c.src, c.src_size, &at, &told);
	if (status == LADE_GPU_OK && told != LADE_LZ_STOP && told > c.dst_cap)
		status = LADE_GPU_NOSPACE;
	uint32_t cap = told < c.dst_cap ? told : c.dst_cap;
	if (!F::TOKEN_AT_END && at == c.src_size)
		at = LADE_LZ_STOP;
	/* Every round reads a token at least, so that there are no more than source bytes. */
	while (status == LADE_GPU_OK && at != LADE_LZ_STOP) {
		lade_lz_segment segment[F::SEGMENTS];
		lade_lz_sequence q;
		uint32_t exit, start, total, begin = at;
#pragma unroll
		for (uint32_t k = 0; k < F::SEGMENTS; k++)
			segment[k] = lade_lz_chain<F>(c.src, c.src_size, begin + 32 * k, lane);
		uint32_t count = lade_lz_list<F>(s, segment, begin, begin, lane, &exit);
		status = lade_lz_read<F>(s, c.src, c.src_size, begin, count, lane, &q, &exit);
		start = op + lade_lz_place(q, lane, &total);
		if (status == LADE_GPU_OK)
			status = lade_lz_check(q, start, op, total, cap);
		if (status != LADE_GPU_OK)
			break;
		lade_lz_pieces(s, q, start, lane);
		lade_lz_marked m;
		m.begun = lade_lz_mark(s, q, start, op, 0, lane, &m.word, &m.rank);
		lade_lz_open gate = {op};
		lade_lz_make(s, c.src, c.dst, q, start, op + total, m, gate, lane);
		op += total;
		at = exit;
	}
	if (status == LADE_GPU_OK && told != LADE_LZ_STOP && op != told)
		status = LADE_GPU_CORRUPT;
	*size = op;
	return status;
}

/* Map: block = WARPS warps, warp = one chunk at a time.  Shared: sizeof(lade_lz_shared) a warp. */
template <class F, int WARPS>
static __device__ __forceinline__ void lade_lz_solo_batch(const lade_gpu_batch &batch)
{
	LADE_SHARED(lade_lz_shared, shared, [WARPS]);
	lade_lz_shared *s = &shared[threadIdx.x / 32];
	uint32_t lane = lade_lane();
	for (;;) {
		uint32_t i = 0;
		if (lane == 0)
			i = atomicAdd(batch.next, 1u);
		i = __shfl_sync(LADE_FULL, i, 0);
		if (i >= batch.count)
			break;
		lade_gpu_chunk c;
		uint32_t size = 0, status = lade_chunk_get(batch, i, &c);
		if (status == LADE_GPU_OK)
			status = lade_lz_solo<F>(s, c, lane, &size);
		if (lane == 0)
			lade_chunk_put(batch, i, status, size);
	}
}

/* ---- several warps --------------------------------------------------------------------------------- */

/*
 * Warps take the blocks of a chunk in turn.  Three things go from block to block in order, each with
 * a ticket that counts the blocks which tokens begin in: where the chain enters (handed on as soon as the
 * block's tables and the entry give the exit), where the output continues, and how much of
 * it is complete.  A warp does all it can before it waits; a tile waits for just the output that it reads.
 */
struct lade_lz_team {
	uint64_t chain;  /* | ticket 32 | position 32 |; LADE_LZ_STOP: no more tokens */
	uint64_t place;  /* | ticket 32 | output position 32 | */
	uint32_t made;   /* the output before this position is complete */
	uint32_t status; /* of the first ticket that failed */
	uint32_t size, chunk;
};

static __device__ __forceinline__ bool lade_lz_failed(const lade_lz_team *team)
{
	return __shfl_sync(LADE_FULL, lade_ld_volatile(&team->status), 0) != LADE_GPU_OK;
}

static __device__ __forceinline__ void lade_lz_post(uint64_t *word, uint32_t ticket, uint32_t value,
                                                    uint32_t lane)
{
	if (lane == 0)
		lade_st_volatile(word, (uint64_t)ticket << 32 | value);
}

/* The gate of a warp that makes the output behind o0, with others at work before it. */
struct lade_lz_gate {
	static constexpr bool ALWAYS = false;
	uint32_t o0;
	uint32_t seen; /* what of the output was complete when last looked */
	const lade_lz_team *team;
	__device__ __forceinline__ bool open(uint32_t need)
	{
		while (seen < need) {
			seen = __shfl_sync(LADE_FULL, lade_ld_acquire_cta(&team->made), 0);
			if (seen >= need)
				break;
			if (lade_lz_failed(team))
				return false;
		}
		__syncwarp();
		return true;
	}
};

/* One block, whose tokens the chain enters at 'at'; false when there is no more to do. */
template <class F>
static __device__ __forceinline__ bool lade_lz_block(lade_lz_shared *s, lade_lz_team *team,
                                                     const lade_gpu_chunk &c, uint32_t cap,
                                                     const lade_lz_segment *segment,
                                                     uint32_t begin, uint32_t at, uint32_t ticket,
                                                     uint32_t lane)
{
	uint32_t exit, total;
	uint32_t count = lade_lz_list<F>(s, segment, begin, at, lane, &exit);
	/* A slow token's end is known when it is read; any other's at once. */
	bool slow = (s->tokens[count - 1] & LADE_LZ_SLOW) != 0;
	if (!slow)
		lade_lz_post(&team->chain, ticket + 1, exit, lane);
	lade_lz_sequence q;
	uint32_t status = lade_lz_read<F>(s, c.src, c.src_size, begin, count, lane, &q, &exit);
	if (slow)
		lade_lz_post(&team->chain, ticket + 1, status == LADE_GPU_OK ? exit : LADE_LZ_STOP, lane);
	uint32_t start = lade_lz_place(q, lane, &total);
	uint64_t place;
	for (;;) {
		place = __shfl_sync(LADE_FULL, lade_ld_volatile(&team->place), 0);
		if ((uint32_t)(place >> 32) == ticket)
			break;
		if (lade_lz_failed(team))
			return false;
	}
	uint32_t op = (uint32_t)place;
	start += op;
	if (status == LADE_GPU_OK)
		status = lade_lz_check(q, start, op, total, cap);
	if (status != LADE_GPU_OK) {
		if (lane == 0)
			lade_st_volatile(&team->status, status);
		return false;
	}
	lade_lz_post(&team->place, ticket + 1, op + total, lane);
	if (exit == LADE_LZ_STOP && lane == 0)
		team->size = op + total;
	lade_lz_pieces(s, q, start, lane);
	lade_lz_marked m;
	m.begun = lade_lz_mark(s, q, start, op, 0, lane, &m.word, &m.rank);
	lade_lz_gate gate = {op, 0, team};
	/* The output is complete up to here when it was before and this batch is made. */
	if (!lade_lz_make(s, c.src, c.dst, q, start, op + total, m, gate, lane) || !gate.open(op))
		return false;
	if (lane == 0)
		lade_st_release_cta(&team->made, op + total);
	return exit != LADE_LZ_STOP;
}

template <class F, int WARPS>
static __device__ __forceinline__ void lade_lz_share(lade_lz_shared *s, lade_lz_team *team,
                                                     const lade_gpu_chunk &c, uint32_t cap,
                                                     uint32_t first, uint32_t warp, uint32_t lane)
{
	const uint32_t size = 32 * F::SEGMENTS;
	uint32_t block = warp;
	for (;;) {
		uint64_t chain = __shfl_sync(LADE_FULL, lade_ld_volatile(&team->chain), 0);
		uint32_t at = (uint32_t)chain;
		if (at == LADE_LZ_STOP ||
		    __shfl_sync(LADE_FULL, lade_ld_volatile(&team->status), 0) != LADE_GPU_OK)
			return;
		/* Blocks that the chain has passed hold nothing of it. */
		uint32_t here = (at - first) / size;
		if (block < here)
			block += (here - block + WARPS - 1) / WARPS * WARPS;
		uint32_t begin = first + block * size;
		lade_lz_segment segment[F::SEGMENTS];
#pragma unroll
		for (uint32_t k = 0; k < F::SEGMENTS; k++)
			segment[k] = lade_lz_chain<F>(c.src, c.src_size, begin + 32 * k, lane);
		while (at < begin) {
			chain = __shfl_sync(LADE_FULL, lade_ld_volatile(&team->chain), 0);
			at = (uint32_t)chain;
			if (__shfl_sync(LADE_FULL, lade_ld_volatile(&team->status), 0) != LADE_GPU_OK)
				return;
		}
		if (at == LADE_LZ_STOP)
			return;
		if (at - begin < size &&
		    !lade_lz_block<F>(s, team, c, cap, segment, begin, at, (uint32_t)(chain >> 32), lane))
			return;
	}
}

/* Map: block = one chunk at a time, warp = every WARPS-th block of its source.  Shared: the
 * warps' parts and the team's. */
template <class F, int WARPS>
static __device__ __forceinline__ void lade_lz_team_batch(const lade_gpu_batch &batch)
{
	LADE_SHARED(lade_lz_shared, shared, [WARPS]);
	LADE_SHARED(lade_lz_team, team);
	uint32_t lane = lade_lane(), warp = threadIdx.x / 32;
	for (;;) {
		if (threadIdx.x == 0)
			team.chunk = atomicAdd(batch.next, 1u);
		__syncthreads();
		uint32_t i = team.chunk;
		if (i >= batch.count)
			break;
		lade_gpu_chunk c;
		uint32_t first = 0, told = LADE_LZ_STOP;
		uint32_t status = lade_chunk_get(batch, i, &c);
		if (status == LADE_GPU_OK)
			status = F::begin(c.src, c.src_size, &first, &told);
		if (status == LADE_GPU_OK && told != LADE_LZ_STOP && told > c.dst_cap)
			status = LADE_GPU_NOSPACE;
		bool any = status == LADE_GPU_OK && (F::TOKEN_AT_END || first < c.src_size);
		if (threadIdx.x == 0) {
			team.chain = first;
			team.place = 0;
			team.made = 0;
			team.status = status;
			team.size = 0;
		}
		__syncthreads();
		if (any)
			lade_lz_share<F, WARPS>(&shared[warp], &team, c, told < c.dst_cap ? told : c.dst_cap, first,
			                        warp, lane);
		__syncthreads();
		if (threadIdx.x == 0) {
			status = team.status;
			if (status == LADE_GPU_OK && told != LADE_LZ_STOP && team.size != told)
				status = LADE_GPU_CORRUPT;
			lade_chunk_put(batch, i, status, team.size);
		}
		__syncthreads();
	}
}

#endif
