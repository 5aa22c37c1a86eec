/*
 * lz_decode.cuh: decodes one chunk of an LZ format, by one warp (solo) or by several (team).
 *
 * Where the next token stands is known only from the one before.  So every byte of a block of 128
 * is read as if a token stood there, which gives a jump.  Tables in shared memory then say where
 * one stands 2, 4 and 8 tokens on; from the true entry a few look-ups find every eighth token, and
 * each lane its own by three more.  That needs no luck: it takes as long on any data.
 *
 * A format is a struct of functions (lz4_parse.cuh, snappy_parse.cuh):
 *   SPAN          bytes that hold 32 tokens at most: a team's blocks
 *   TOKEN_AT_END  a chain that arrives at the source's end is an error
 *   begin         what stands before the first token: where it stands, and the decoded size if told
 *   jump          a position read as a token: where the next one stands, or LADE_LZ_STOP where this
 *                 is the last, bad or slow one; and the token, packed
 *   take          a lane's sequence from its packed token
 *   slow          the whole warp reads a token whose lengths take long to read
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_LZ_DECODE_CUH
#define LADE_CUDA_LZ_DECODE_CUH

#include "cuda/lz_exec.cuh"

#define LADE_LZ_STOP 0xFFFFFFFFu
#define LADE_LZ_SLOW 1u /* in a packed token */

#define LADE_LZ_BLOCK 128u
#define LADE_LZ_STAGE 160u /* bytes at hand from the block's first on: look-ahead for lengths */

/*
 * A block's tables.  A position within it is one byte, 128 and more is outside; the upper halves of
 * 'on' are all 255, so that what is outside stays outside.
 */
struct lade_lz_block {
	uint32_t stage[(LADE_LZ_STAGE + 8) / 4]; /* the source's words that hold the block */
	uint32_t exit[LADE_LZ_BLOCK];            /* the jump, as a position of the source */
	uint32_t token[LADE_LZ_BLOCK];
	uint8_t on[4][256]; /* 1, 2, 4, 8 tokens on */
};

/* What a warp has in shared memory. */
struct lade_lz_warp {
	lade_lz_shared exec;
	lade_lz_block block;
};

static __device__ __forceinline__ void lade_lz_block_init(lade_lz_block *b, uint32_t lane)
{
#pragma unroll
	for (uint32_t t = 0; t < 4; t++)
		((uint32_t *)b->on[t])[32 + lane] = LADE_FULL;
	__syncwarp();
}

/*
 * Brings the block's bytes to shared memory; returns where in 'stage' its first one lies.  Whole
 * words are read where all of them lie in the source; at its ends it goes byte by byte, and what
 * lies outside is 0.
 */
static __device__ __forceinline__ uint32_t lade_lz_stage(lade_lz_block *b, const uint8_t *src,
                                                         uint32_t n, uint32_t begin, uint32_t lane)
{
	uint32_t shift = (uint32_t)(uintptr_t)(src + begin) & 3;
	if (begin >= shift && begin + LADE_LZ_STAGE + 4 <= n) {
		const uint32_t *from = (const uint32_t *)(src + begin - shift);
		b->stage[lane] = from[lane];
		if (lane < 9)
			b->stage[32 + lane] = from[32 + lane];
	} else {
		for (uint32_t i = lane; i < sizeof b->stage / 4; i += 32)
			b->stage[i] = 0;
		__syncwarp();
		uint8_t *to = (uint8_t *)b->stage + shift;
		for (uint32_t i = lane; i < LADE_LZ_STAGE && begin + i < n; i += 32)
			to[i] = src[begin + i];
	}
	__syncwarp();
	return shift;
}

/* Makes the tables of the block at 'begin', which ends after SPAN bytes. */
template <class F, int SPAN>
static __device__ __forceinline__ void lade_lz_tables(lade_lz_block *b, const uint8_t *src,
                                                      uint32_t n, uint32_t begin, uint32_t lane)
{
	uint32_t shift = lade_lz_stage(b, src, n, begin, lane);
	const uint8_t *stage = (const uint8_t *)b->stage + shift;
	uint32_t low = b->stage[lane], high = b->stage[lane + 1], next = b->stage[lane + 2];
	uint32_t bytes = __funnelshift_r(low, high, 8 * shift),
		 more = __funnelshift_r(high, next, 8 * shift);
	uint32_t to = 0;
#pragma unroll
	for (uint32_t k = 0; k < 4; k++) {
		uint32_t token, at = begin + 4 * lane + k;
		/* The byte at 'at' and the three behind it. */
		uint32_t exit = F::jump(src, n, begin, stage, at,
		                        __funnelshift_r(bytes, more, 8 * k), &token);
		b->exit[4 * lane + k] = exit;
		b->token[4 * lane + k] = token;
		uint32_t on = exit - begin < SPAN ? exit - begin : 255;
		to |= on << (8 * k);
	}
	((uint32_t *)b->on[0])[lane] = to;
	__syncwarp();
#pragma unroll
	for (uint32_t t = 1; t < 4; t++) {
		uint32_t far = 0;
#pragma unroll
		for (uint32_t k = 0; k < 4; k++)
			far |= (uint32_t)b->on[t - 1][to >> (8 * k) & 255] << (8 * k);
		((uint32_t *)b->on[t])[lane] = to = far;
		__syncwarp();
	}
}

/* The lane's token among the first 32 of the chain that enters the block at 'entry' (below 128):
 * where it stands in the block; 128 or more: there are fewer. */
static __device__ __forceinline__ uint32_t lade_lz_find(const lade_lz_block *b, uint32_t entry,
                                                        uint32_t lane)
{
	uint32_t p = entry, mine = entry;
#pragma unroll
	for (uint32_t g = 1; g < 4; g++) {
		p = b->on[3][p];
		if (lane >= 8 * g)
			mine = p;
	}
	if (lane & 4)
		mine = b->on[2][mine];
	if (lane & 2)
		mine = b->on[1][mine];
	if (lane & 1)
		mine = b->on[0][mine];
	return mine;
}

/*
 * Reads the sequences of the lanes' tokens.  '*exit' is where the token behind the last of them
 * stands, or LADE_LZ_STOP; it is exact also where the last one is slow.  'position' is from
 * lade_lz_find().
 */
template <class F>
static __device__ __forceinline__ uint32_t lade_lz_read(const lade_lz_block *b, const uint8_t *src,
                                                        uint32_t n, uint32_t begin,
                                                        uint32_t position, uint32_t lane,
                                                        lade_lz_sequence *q, uint32_t *exit)
{
	/* A chain that arrives at the end of the source has no token there, or (LZ4) a missing one.
	 */
	bool have = position < LADE_LZ_BLOCK && (F::TOKEN_AT_END || begin + position < n);
	uint32_t token = have ? b->token[position] : 0, status = LADE_GPU_OK;
	uint32_t count = __popc(__ballot_sync(LADE_FULL, have));
	*q = lade_lz_sequence{0, 0, 0, 0};
	uint32_t last = __shfl_sync(LADE_FULL, position, count - 1);
	uint32_t last_token = __shfl_sync(LADE_FULL, token, count - 1);
	*exit = b->exit[last & (LADE_LZ_BLOCK - 1)];
	/* A slow token ends its chain, so that only the last one can be. */
	if (last_token & LADE_LZ_SLOW) {
		lade_lz_sequence long_one = {0, 0, 0, 0};
		uint32_t bad = F::slow(src, n, begin + last, lane, &long_one, exit);
		if (lane == count - 1) {
			*q = long_one;
			status = bad;
		}
	}
	if (have && !(token & LADE_LZ_SLOW))
		status = F::take(src, n, begin + position, token, q);
	uint32_t bad = __ballot_sync(LADE_FULL, status != LADE_GPU_OK);
	return bad ? __shfl_sync(LADE_FULL, status, __ffs(bad) - 1) : LADE_GPU_OK;
}

/* Where each lane's sequence begins, counted from the batch's first byte; '*total' is the bytes of
 * all. Two lengths are at most 2^30 and some each, and only the last lane's are above 1,000. */
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

/* ---- one warp
 * ------------------------------------------------------------------------------------------ */

template <class F>
static __device__ __forceinline__ uint32_t lade_lz_solo(lade_lz_warp *w, const lade_gpu_chunk &c,
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
		lade_lz_sequence q;
		uint32_t exit, start, total, begin = at;
		lade_lz_tables<F, LADE_LZ_BLOCK>(&w->block, c.src, c.src_size, begin, lane);
		uint32_t position = lade_lz_find(&w->block, 0, lane);
		status = lade_lz_read<F>(&w->block, c.src, c.src_size, begin, position, lane, &q,
		                         &exit);
		start = op + lade_lz_place(q, lane, &total);
		if (status == LADE_GPU_OK)
			status = lade_lz_check(q, start, op, total, cap);
		if (status != LADE_GPU_OK)
			break;
		lade_lz_pieces(&w->exec, q, start, lane);
		lade_lz_marked m =
			lade_lz_mark(&w->exec, q, start, lade_lz_window(c.dst, op), op, 0, lane);
		lade_lz_open gate = {op};
		lade_lz_make(&w->exec, c.src, c.dst, q, start, op + total, m, gate, lane);
		op += total;
		at = exit;
	}
	if (status == LADE_GPU_OK && told != LADE_LZ_STOP && op != told)
		status = LADE_GPU_CORRUPT;
	*size = op;
	return status;
}

/* Map: block = WARPS warps, warp = one chunk at a time.  Shared: sizeof(lade_lz_warp) a warp. */
template <class F, int WARPS>
static __device__ __forceinline__ void lade_lz_solo_batch(const lade_gpu_batch &batch)
{
	LADE_SHARED(lade_lz_warp, shared, [WARPS]);
	lade_lz_warp *w = &shared[threadIdx.x / 32];
	uint32_t lane = lade_lane();
	lade_lz_block_init(&w->block, lane);
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
			status = lade_lz_solo<F>(w, c, lane, &size);
		if (lane == 0)
			lade_chunk_put(batch, i, status, size);
	}
}

/* ---- several warps
 * --------------------------------------------------------------------------------- */

/*
 * Warps take the blocks of a chunk in turn.  Three things go from block to block in order, each
 * with a ticket that counts the blocks which tokens begin in: where the chain enters (handed on as
 * soon as the block's tables and the entry give the exit), where the output continues, and how much
 * of it is complete.  A warp does all it can before it waits; a tile waits for just the output that
 * it reads.
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

/* Waits for the ticket's place in the output; false when the chunk has failed. */
static __device__ __forceinline__ bool lade_lz_turn(const lade_lz_team *team, uint32_t ticket,
                                                    uint32_t *op)
{
	for (;;) {
		uint64_t place = __shfl_sync(LADE_FULL, lade_ld_volatile(&team->place), 0);
		*op = (uint32_t)place;
		if ((uint32_t)(place >> 32) == ticket)
			return true;
		if (lade_lz_failed(team))
			return false;
	}
}

/* A block that the chain enters at 'at'; false when there is no more to do. */
template <class F>
static __device__ __forceinline__ bool
lade_lz_part(lade_lz_warp *w, lade_lz_team *team, const lade_gpu_chunk &c, uint32_t cap,
             uint32_t begin, uint32_t at, uint32_t ticket, uint32_t lane)
{
	/* Where the chain leaves the block is what the next warp waits for; a slow token's end is
	 * known when it is read. */
	uint32_t position = lade_lz_find(&w->block, at - begin, lane), exit, total, op;
	bool have = position < LADE_LZ_BLOCK;
	uint32_t last = __popc(__ballot_sync(LADE_FULL, have)) - 1;
	last = __shfl_sync(LADE_FULL, position, last);
	bool slow = (w->block.token[last] & LADE_LZ_SLOW) != 0;
	if (!slow)
		lade_lz_post(&team->chain, ticket + 1, w->block.exit[last], lane);
	lade_lz_sequence q;
	uint32_t status =
		lade_lz_read<F>(&w->block, c.src, c.src_size, begin, position, lane, &q, &exit);
	if (slow)
		lade_lz_post(&team->chain, ticket + 1, status == LADE_GPU_OK ? exit : LADE_LZ_STOP,
		             lane);
	uint32_t start = lade_lz_place(q, lane, &total);
	if (!lade_lz_turn(team, ticket, &op))
		return false;
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
	lade_lz_pieces(&w->exec, q, start, lane);
	lade_lz_marked m = lade_lz_mark(&w->exec, q, start, lade_lz_window(c.dst, op), op, 0, lane);
	lade_lz_gate gate = {op, 0, team};
	/* The output is complete up to here when it was before and this batch is made. */
	if (!lade_lz_make(&w->exec, c.src, c.dst, q, start, op + total, m, gate, lane) ||
	    !gate.open(op))
		return false;
	if (lane == 0)
		lade_st_release_cta(&team->made, op + total);
	return exit != LADE_LZ_STOP;
}

template <class F, int WARPS>
static __device__ __forceinline__ void lade_lz_share(lade_lz_warp *w, lade_lz_team *team,
                                                     const lade_gpu_chunk &c, uint32_t cap,
                                                     uint32_t first, uint32_t warp, uint32_t lane)
{
	uint32_t block = warp;
	for (;;) {
		uint64_t chain = __shfl_sync(LADE_FULL, lade_ld_volatile(&team->chain), 0);
		uint32_t at = (uint32_t)chain;
		if (at == LADE_LZ_STOP || lade_lz_failed(team))
			return;
		/* Blocks that the chain has passed hold nothing of it. */
		uint32_t here = (at - first) / F::SPAN;
		if (block < here)
			block += (here - block + WARPS - 1) / WARPS * WARPS;
		uint32_t begin = first + block * F::SPAN;
		lade_lz_tables<F, F::SPAN>(&w->block, c.src, c.src_size, begin, lane);
		while (at < begin) {
			chain = __shfl_sync(LADE_FULL, lade_ld_volatile(&team->chain), 0);
			at = (uint32_t)chain;
			if (lade_lz_failed(team))
				return;
		}
		if (at == LADE_LZ_STOP)
			return;
		if (at - begin < F::SPAN &&
		    !lade_lz_part<F>(w, team, c, cap, begin, at, (uint32_t)(chain >> 32), lane))
			return;
	}
}

/* Map: block = one chunk at a time, warp = every WARPS-th block of its source.  Shared: the
 * warps' parts and the team's. */
template <class F, int WARPS>
static __device__ __forceinline__ void lade_lz_team_batch(const lade_gpu_batch &batch)
{
	LADE_SHARED(lade_lz_warp, shared, [WARPS]);
	LADE_SHARED(lade_lz_team, team);
	uint32_t lane = lade_lane(), warp = threadIdx.x / 32;
	lade_lz_block_init(&shared[warp].block, lane);
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
			lade_lz_share<F, WARPS>(&shared[warp], &team, c,
			                        told < c.dst_cap ? told : c.dst_cap, first, warp,
			                        lane);
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
