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

/* Where each lane's sequence begins in the output, from 'op' on, and '*total', the bytes of all; checks
 * the matches' offsets and the output's end. */
static __device__ __forceinline__ uint32_t lade_lz_place(const lade_lz_sequence &q, uint32_t op,
                                                         uint32_t cap, uint32_t lane,
                                                         uint32_t *start, uint32_t *total)
{
	/* Two lengths are at most 2^30 + some each, and only the last lane's are above 1,000. */
	uint32_t length = q.literals + q.match;
	uint32_t end = lade_warp_scan(length, lane);
	*total = __shfl_sync(LADE_FULL, end, 31);
	*start = op + end - length;
	bool bad = q.match && (q.offset == 0 || q.offset > *start + q.literals);
	if (__any_sync(LADE_FULL, bad))
		return LADE_GPU_CORRUPT;
	return *total > cap - op ? LADE_GPU_NOSPACE : LADE_GPU_OK;
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
		if (status == LADE_GPU_OK)
			status = lade_lz_place(q, op, cap, lane, &start, &total);
		if (status != LADE_GPU_OK)
			break;
		lade_lz_pieces(s, q, start, lane);
		lade_lz_make(s, c.src, c.dst, q, start, op, op + total, lane);
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
	LADE_SHARED(lade_lz_shared, shared, WARPS);
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

#endif
