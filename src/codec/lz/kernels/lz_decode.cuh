/*
 * lz_decode.cuh: decodes one chunk of an LZ format, by one warp (solo) or by several (team).
 *
 * Only a token says where the next one begins.  So every byte of a segment of the source is read as
 * if a token began there, which gives a jump.  Tables in shared memory then say where the token 2,
 * 4, 8, .. tokens later begins, and where the chain leaves the segment.  This takes the same time
 * on any data.  A round of a team:
 *
 *     1. each warp makes the tables of its segment, one behind the other from the round's first
 *        token on
 *     2. each walks from segment to segment by the last table, to its own entry; lanes find their
 *        tokens, one or two each, and read their sequences
 *     3. the warps' totals give each its place in the output, and the sequences go to the
 *        executor (lz_exec.cuh)
 *
 * A jump is a byte: one that is too long, or needs more bytes to be read, leads to 255, and the
 * round ends there.  Where a length has bytes of 255, the jump is wrong; the lane that reads the
 * sequence sees that, the sequences behind it are dropped, and the next round begins at the right
 * token.
 *
 * The number of chunks a multiprocessor decides (measured with 64 KiB chunks on 132 of them,
 * docs/performance/gpu-lz.md): teams of 16 up to 2, of 8 up to 4, of 4 up to 12, solo above.
 *
 * A format is a struct of functions (lz4_parse.cuh, snappy_parse.cuh):
 *   TOKENS  how many a lane takes: 1 or 2
 *   SPAN    bytes that hold 32 times as many at most: a team's segments
 *   begin   reads the header: where the first token begins, and the decoded size if it is stated;
 *           STATES_SIZE: it is
 *   jumps   four positions read as tokens: where the next ones stand, in the segment
 *   take    a lane's sequence, and where the next token begins: the source's end where it is
 *           missing, LADE_LZ_STOP where none has to follow.  Lanes without a token call it as if
 *           one began at the segment's start, which stays in bounds
 *   slow    the whole warp reads a token whose lengths take long to read; SLOW: there are some
 *   end     the status of a chunk whose last token was right, by where 'take' led
 *   FULL    the status of a sequence that passes the output's end
 *
 * If a chunk has several faults, the first one in the source is reported (docs/verdicts.md).  Lanes
 * look for it only when there is one, and the first lane's counts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_LZ_DECODE_CUH
#define LADE_CUDA_LZ_DECODE_CUH

#include "codec/lz/args.h"
#include "codec/lz/kernels/lz_exec.cuh"

#define LADE_LZ_STOP 0xFFFFFFFFu
#define LADE_LZ_BYTES 0x01010101u
#define LADE_LZ_NONE 255u

/* A segment's tables: the position 1, 2, 4, .. tokens after each position.  Positions outside the
 * segment lead to themselves. */
template <int LEVELS> struct alignas(16) lade_lz_tables {
	uint8_t on[LEVELS < 4 ? 4 : LEVELS][256]; /* room for lade_lz_spare(), too */
	uint32_t words[34]; /* of the source, that hold the segment and some bytes more */
};

template <class F, int W> struct lade_lz_team {
	/* A small team does not need the last table: its walk looks twice in the one before. */
	static constexpr int LEVELS = (W == 1 ? 2 : W <= 4 ? 4 : 5) + F::TOKENS;
	static constexpr uint32_t SPAN = W == 1 ? 128 : F::SPAN;
	lade_lz_exec<W> exec;
	lade_lz_tables<LEVELS> tables[W];
	uint32_t total[W], pieces[W], exit[W]; /* of a segment */
};

/* The team's current chunk.  One thread reads its table entries and header: these may change at any
 * time, and warps that read different sizes would not stay in step. */
struct lade_lz_job {
	lade_gpu_chunk c;
	uint32_t i, status, at, stated;
};
#define LADE_LZ_CUT 0x80000000u /* in 'pieces': the segments behind this one are dropped */
#define LADE_LZ_COUNT 0xFFFFu

template <int LEVELS>
static __device__ __forceinline__ void lade_lz_tables_init(lade_lz_tables<LEVELS> *t, uint32_t lane)
{
	for (int k = 0; k < LEVELS; k++)
		((uint32_t *)t->on[k])[32 + lane] = 0x83828180 + 4 * lane * LADE_LZ_BYTES;
	__syncwarp();
}

/* Starts to copy the words that hold the segment at 'begin'.  Whole words are copied where all of
 * them are in the source; bytes outside are 0. */
template <int LEVELS>
static __device__ __forceinline__ void lade_lz_fetch(lade_lz_tables<LEVELS> *t, const uint8_t *src,
                                                     uint32_t n, uint32_t begin, uint32_t lane)
{
	uint32_t shift = (uint32_t)(uintptr_t)(src + begin) & 3;
	if (begin >= shift && begin <= n && n - begin >= 136) {
		const uint32_t *from = (const uint32_t *)(src + begin - shift);
		lade_cp_async_4(&t->words[lane], from + lane);
		if (lane < 2)
			lade_cp_async_4(&t->words[32 + lane], from + 32 + lane);
		lade_cp_async_commit();
		return;
	}
#pragma unroll 1
	for (uint32_t i = lane; i < 34; i += 32) {
		uint32_t at = begin - shift + 4 * i, word = 0;
#pragma unroll
		for (uint32_t k = 0; k < 4; k++)
			word |= at + k < n ? (uint32_t)src[at + k] << (8 * k) : 0;
		t->words[i] = word;
	}
}

/* Makes the tables of the segment at 'begin', whose words have been fetched. */
template <class F, bool TEAM, uint32_t SPAN, int LEVELS>
static __device__ __forceinline__ void
lade_lz_tables_make(lade_lz_tables<LEVELS> *t, const uint8_t *src, uint32_t begin, uint32_t lane)
{
	uint32_t shift = 8 * ((uint32_t)(uintptr_t)(src + begin) & 3);
	lade_cp_async_wait<0>();
	__syncwarp();
	uint32_t low = t->words[lane], high = t->words[lane + 1];
	uint32_t bytes = __funnelshift_r(low, high, shift);
	uint32_t nexts = __funnelshift_r(bytes, high >> shift, 8);
	uint32_t places = 0x03020100 + 4 * lane * LADE_LZ_BYTES;
	uint32_t to = F::template jumps<TEAM>(bytes, nexts, places);
	if (4 * lane >= SPAN)
		to = places;
	((uint32_t *)t->on[0])[lane] = to;
	uint32_t at[4] = {to & 255, to >> 8 & 255, to >> 16 & 255, to >> 24};
	__syncwarp();
#pragma unroll
	for (int k = 1; k < LEVELS; k++) {
		lade_lz_look(t->on[k - 1], at);
		((uint32_t *)t->on[k])[lane] = lade_lz_join(at);
		__syncwarp();
	}
}

/* The position in the segment of the lane's first token, in the chain that enters the segment at
 * 'entry'; SPAN or more: the lane has none. */
template <class F, bool TEAM, int LEVELS>
static __device__ __forceinline__ uint32_t lade_lz_find(const lade_lz_tables<LEVELS> *t,
                                                        uint32_t entry, uint32_t lane)
{
	constexpr int ONE = F::TOKENS - 1; /* the table that leads to the next lane's */
	uint32_t mine = entry;
	if (TEAM) {
#pragma unroll
		for (int k = 4; k > 2; k--)
			if (lane >> k & 1)
				mine = t->on[TEAM ? ONE + k : 0][mine];
	} else {
		uint32_t p = entry;
#pragma unroll
		for (uint32_t g = 1; g < 4; g++) {
			/* A table that leads twice as far would cost more than three look-ups. */
			p = t->on[ONE + 2][t->on[ONE + 2][p]];
			if (lane >= 8 * g)
				mine = p;
		}
	}
#pragma unroll
	for (int k = 2; k >= 0; k--)
		if (lane >> k & 1)
			mine = t->on[ONE + k][mine];
	return mine;
}

/* Where the chain that begins in the first segment enters the warp's own; LADE_LZ_NONE: it does
 * not, or the tables cannot say. */
template <class F, int W>
static __device__ __forceinline__ uint32_t lade_lz_walk(const lade_lz_team<F, W> *t, uint32_t warp)
{
	constexpr uint32_t SPAN = lade_lz_team<F, W>::SPAN;
	constexpr int LAST = lade_lz_team<F, W>::LEVELS - 1;
	uint32_t at = 0, mine = LADE_LZ_NONE;
#pragma unroll 8
	for (uint32_t s = 0; s < W; s++) {
		if (s == warp) {
			mine = at < SPAN ? at : mine;
			break;
		}
		if (at < SPAN) {
			at = t->tables[s].on[LAST][at];
			if (W <= 4)
				at = t->tables[s].on[LAST][at];
			at = at == LADE_LZ_NONE ? LADE_LZ_STOP : at;
		}
		at -= SPAN;
	}
	return mine;
}

/* Four bytes of the segment from 'at' on, below its SPAN; those past the source's end are 0. */
static __device__ __forceinline__ uint32_t lade_lz_segment_word(const uint32_t *words,
                                                                uint32_t shift, uint32_t at)
{
	at += shift;
	return __funnelshift_r(words[at / 4], words[at / 4 + 1], 8 * at);
}

/* What the warp's lanes have read. */
struct lade_lz_read {
	uint32_t count;  /* lanes that have a token */
	uint32_t exit;   /* where the next token begins, or LADE_LZ_STOP; 0: no lane has a token */
	uint32_t status; /* the lane's own */
	bool cut;        /* the tables are wrong behind the last one */
};

/* Reads the sequences of the lanes' tokens; 'position' is from lade_lz_find(). */
template <class F, uint32_t SPAN, int LEVELS>
static __device__ __forceinline__ lade_lz_read lade_lz_take(const lade_lz_tables<LEVELS> *t,
                                                            const uint8_t *src, uint32_t n,
                                                            uint32_t begin, uint32_t position,
                                                            uint32_t lane, lade_lz_sequence *q)
{
	/* Positions ascend, so that the first lanes have a token and the others none. */
	bool have = position < SPAN && begin + position < n, slow = false;
	uint32_t next = LADE_LZ_STOP, second = LADE_LZ_STOP;
	lade_lz_read r = {0, LADE_LZ_STOP, LADE_GPU_OK, false};
	r.count = __popc(__ballot_sync(LADE_FULL, have));
	position = have ? position : 0;
	if (F::TOKENS == 2) {
		second = t->on[0][position];
		second = second < SPAN && begin + second < n ? second : LADE_LZ_STOP;
	}
	uint32_t shift = (uint32_t)(uintptr_t)(src + begin) & 3;
	r.status = F::take(lade_global(src), n, begin, position, second, t->words, shift, q, &next,
	                   &slow);
	r.status = have ? r.status : LADE_GPU_OK;
	q->size[0] = have ? q->size[0] : 0;
	q->size[1] = have ? q->size[1] : 0;
	slow = have && slow;
	uint32_t slows = F::SLOW ? __ballot_sync(LADE_FULL, slow) : 0;
	if (slows) {
		uint32_t first = __ffs(slows) - 1;
		uint32_t p = begin + __shfl_sync(LADE_FULL, position, first);
		lade_lz_sequence one = {{0, 0}, {0, 0}, {false, false}};
		uint32_t after = LADE_LZ_STOP, bad = F::slow(src, n, p, lane, &one, &after);
		if (lane >= first) {
			*q = lade_lz_sequence{{0, 0}, {0, 0}, {false, false}};
			r.status = LADE_GPU_OK;
		}
		if (lane == first) {
			*q = one;
			next = after;
			r.status = bad;
		}
		r.count = first + 1;
		r.cut = true;
	}
	next = __shfl_sync(LADE_FULL, next, r.count - 1);
	r.exit = r.count ? next : 0;
	return r;
}

/* Whether the matches' offsets are right. */
static __device__ __forceinline__ bool lade_lz_right(const lade_lz_sequence &q, uint32_t start)
{
	/* Without branches. */
	bool first = (q.size[0] != 0) & q.match[0] & (q.from[0] - 1 >= start);
	bool second = (q.size[1] != 0) & q.match[1] & (q.from[1] - 1 >= start + q.size[0]);
	return !(first | second);
}

/*
 * The status of the lane's sequence at its place in the output: 'status' is that of reading it,
 * 'start' its first output byte, 'cap' the destination's size.  Only valid up to the first bad
 * sequence: behind it 'start' may be wrong.
 */
template <class F>
static __device__ __forceinline__ uint32_t lade_lz_check(uint32_t status, lade_lz_sequence q,
                                                         uint32_t start, uint32_t cap)
{
	if (status != LADE_GPU_OK) {
		if (F::TOKENS == 1 || q.size[1] == 0)
			return status;
		q.size[1] = 0; /* The second token is bad; the first one may be, too. */
	}
	if (!lade_lz_right(q, start))
		return LADE_GPU_CORRUPT;
	return q.size[0] + q.size[1] > cap - start ? F::FULL : status;
}

/* The status of the first lane that has one. */
template <class F, int W>
static __device__ __forceinline__ uint32_t lade_lz_failed(lade_lz_team<F, W> *t, uint32_t status,
                                                          uint32_t warp, uint32_t lane)
{
	uint32_t bad = __ballot_sync(LADE_FULL, status != LADE_GPU_OK);
	status = __shfl_sync(LADE_FULL, status, bad ? __ffs(bad) - 1 : 0);
	if (W == 1)
		return status;
	if (lane == 0)
		t->total[warp] = status;
	lade_team_sync<W>();
	for (uint32_t i = 0; i < W; i++)
		if (t->total[i] != LADE_GPU_OK)
			return t->total[i];
	return LADE_GPU_CORRUPT; /* cannot be */
}

/* The sums over a round's segments, up to the first one behind which the tables are wrong. */
struct lade_lz_sum {
	uint32_t before, total; /* output bytes of the segments before the warp's, and of all */
	uint32_t pieces_before, pieces;
	uint32_t exit; /* where the round's last token leads */
	bool kept;     /* the warp's own segment counts */
};

template <class F, int W>
static __device__ __forceinline__ lade_lz_sum lade_lz_gather(const lade_lz_team<F, W> *t,
                                                             uint32_t warp, uint32_t lane)
{
	/* Exits ascend, so that the last one is the largest. */
	lade_lz_sum s = {0, 0, 0, 0, 0, true};
	if (W <= 8) {
		bool open = true;
#pragma unroll
		for (uint32_t i = 0; i < W; i++) {
			uint32_t flags = t->pieces[i],
				 pieces = F::SLOW ? flags & LADE_LZ_COUNT : flags;
			uint32_t total = t->total[i], exit = t->exit[i];
			if (i == warp) {
				s.before = s.total;
				s.pieces_before = s.pieces;
				s.kept = open;
			}
			if (open) {
				s.total += total;
				s.pieces += pieces;
				s.exit = exit > s.exit ? exit : s.exit;
			}
			open = open && !(F::SLOW && flags & LADE_LZ_CUT);
		}
		return s;
	}
	/* Lane i has segment i. */
	uint32_t its = lane < W ? t->total[lane] : 0, flags = lane < W ? t->pieces[lane] : 0;
	uint32_t exit = lane < W ? t->exit[lane] : 0, kept = LADE_FULL;
	if (F::SLOW) {
		uint32_t cut = __ballot_sync(LADE_FULL, (flags & LADE_LZ_CUT) != 0);
		kept = cut ? cut ^ (cut - 1) : LADE_FULL;
		its = kept >> lane & 1 ? its : 0;
		exit = kept >> lane & 1 ? exit : 0;
		flags = kept >> lane & 1 ? flags & LADE_LZ_COUNT : 0;
	}
	uint32_t ends = lade_warp_scan(its, lane), counts = lade_warp_scan(flags, lane);
	s.exit = __reduce_max_sync(LADE_FULL, exit);
	s.before = __shfl_sync(LADE_FULL, ends - its, warp);
	s.pieces_before = __shfl_sync(LADE_FULL, counts - flags, warp);
	s.total = __shfl_sync(LADE_FULL, ends, 31);
	s.pieces = __shfl_sync(LADE_FULL, counts, 31);
	s.kept = kept >> warp & 1;
	return s;
}

/* Scratch for the lane in the tables, whose lower halves are free once its sequence is read. */
template <int LEVELS>
static __device__ __forceinline__ lade_lz_place *lade_lz_spare(lade_lz_tables<LEVELS> *t,
                                                               uint32_t lane)
{
	return (lade_lz_place *)t->on[lane / 8] + (lane & 7);
}

/*
 * Sums do not wrap: a sequence, which F::take and F::slow cut, has at most 2^31 bytes, and in a
 * round, or in what is kept of it, only the last one has more than 1,000.  One of 2^31 bytes passes
 * every output's end.  Up to the first bad sequence 'start - shift' is at most 'cap', so that it
 * and a run of the source, both below 2^31, fit 32 bits.
 */
template <class F, int W>
static __device__ __forceinline__ uint32_t lade_lz_chunk(lade_lz_team<F, W> *t,
                                                         const lade_gpu_chunk &c, uint32_t at,
                                                         uint32_t stated, uint32_t warp,
                                                         uint32_t lane, uint32_t *size)
{
	constexpr uint32_t SPAN = lade_lz_team<F, W>::SPAN;
	uint32_t n = c.src_size, cap = c.dst_cap;
	*size = 0;
	if (!F::STATES_SIZE) {
		at = 0;
	} else {
		if (stated > cap)
			return LADE_GPU_NOSPACE;
		cap = stated;
	}
	lade_lz_out o = lade_lz_begin<W>(&t->exec, c.src, n, c.dst, cap, warp, lane);
	uint32_t shift = o.done;
	uint32_t begin = at + warp * SPAN;
	if (at < n)
		lade_lz_fetch(&t->tables[warp], c.src, n, begin, lane);
	/* Every round reads a token at least, and 'at' grows, whatever the bytes are by then. */
	while (at < n) {
		uint32_t entry = 0;
		lade_lz_tables_make<F, (W > 1), SPAN>(&t->tables[warp], c.src, begin, lane);
		if (W > 1) {
			lade_team_sync<W>();
			entry = lade_lz_walk<F, W>(t, warp);
		}
		uint32_t position = lade_lz_find<F, (W > 1)>(&t->tables[warp], entry, lane);
		lade_lz_sequence q;
		lade_lz_read r = lade_lz_take<F, SPAN>(&t->tables[warp], c.src, n, begin, position,
		                                       lane, &q);
		uint32_t length = q.size[0] + q.size[1];
		uint32_t end = lade_warp_scan(length, lane),
			 total = __shfl_sync(LADE_FULL, end, 31);
		uint32_t first = __ballot_sync(LADE_FULL, q.size[0] != 0);
		uint32_t second = __ballot_sync(LADE_FULL, q.size[1] != 0);
		uint32_t below = (1u << lane) - 1;
		uint32_t piece = o.pieces + __popc(first & below) + __popc(second & below);
		uint32_t pieces = __popc(first) + __popc(second);
		uint32_t start = o.end + end - length;
		at = r.exit;
		if (W > 1) {
			if (lane == 0) {
				t->total[warp] = total;
				t->pieces[warp] = pieces | (r.cut ? LADE_LZ_CUT : 0);
				t->exit[warp] = r.exit;
			}
			lade_team_sync<W>();
			lade_lz_sum all = lade_lz_gather<F, W>(t, warp, lane);
			start += all.before;
			piece += all.pieces_before;
			total = all.total;
			pieces = all.pieces;
			at = all.exit;
			if (!all.kept) {
				q.size[0] = q.size[1] = 0;
				r.status = LADE_GPU_OK;
				start = o.end;
			}
		}
		bool bad = (r.status != LADE_GPU_OK) | !lade_lz_right(q, start - shift) |
		           (total > cap + shift - o.end);
		if (lade_team_any<W>(bad)) {
			r.status = lade_lz_check<F>(r.status, q, start - shift, cap);
			return lade_lz_failed<F, W>(t, r.status, warp, lane);
		}
		if (at < n) {
			begin = at + warp * SPAN;
			lade_lz_fetch(&t->tables[warp], c.src, n, begin, lane);
		}
		lade_lz_make<W>(&t->exec, &o, c.src, q,
		                {start, piece, o.end + total, pieces, at >= n},
		                lade_lz_spare(&t->tables[warp], lane), warp, lane);
	}
	*size = o.end - shift;
	return F::end(at, *size, cap); /* a stated size is 'cap' */
}

/* The decoded size of a chunk: as above, without output. */
template <class F>
static __device__ __forceinline__ uint32_t lade_lz_size(lade_lz_tables<3> *t,
                                                        const lade_gpu_chunk &c, uint32_t lane,
                                                        uint32_t *size)
{
	uint32_t at, stated, n = c.src_size, op = 0;
	uint32_t status = F::begin(c.src, n, &at, &stated);
	if (status != LADE_GPU_OK)
		return status;
	while (at < n) {
		lade_lz_fetch(t, c.src, n, at, lane);
		lade_lz_tables_make<F, false, 128>(t, c.src, at, lane);
		lade_lz_sequence q;
		uint32_t position = lade_lz_find<F, false>(t, 0, lane);
		lade_lz_read r = lade_lz_take<F, 128>(t, c.src, n, at, position, lane, &q);
		uint32_t length = q.size[0] + q.size[1], end = lade_warp_scan(length, lane);
		r.status = lade_lz_check<F>(r.status, q, op + end - length, LADE_CHUNK_MAX);
		uint32_t bad = __ballot_sync(LADE_FULL, r.status != LADE_GPU_OK);
		if (bad) {
			status = __shfl_sync(LADE_FULL, r.status, __ffs(bad) - 1);
			return status == LADE_GPU_NOSPACE ? LADE_GPU_LIMIT : status;
		}
		op += __shfl_sync(LADE_FULL, end, 31);
		at = r.exit;
	}
	*size = op;
	return F::end(at, op, stated);
}

/* ---- kernels ------------------------------------------------------------------------------- */

/* The thread's warp in its block.  All lanes take it from lane 0, so that the compiler knows that
 * it and the addresses computed from it are uniform. */
static __device__ __forceinline__ uint32_t lade_lz_warp()
{
	return __shfl_sync(LADE_FULL, threadIdx.x / 32, 0);
}

/* The same of an address in shared memory. */
template <typename T> static __device__ __forceinline__ T *lade_lz_uniform(T *t)
{
#if LADE_ON_GPU
	uint32_t at = (uint32_t)__cvta_generic_to_shared(t);
	asm volatile("" : "+r"(at));
	at = __shfl_sync(LADE_FULL, at, 0);
	return (T *)__cvta_shared_to_generic(at);
#else
	return t;
#endif
}

/* After a chunk is decoded, nothing more is done. */
struct lade_lz_decode_only {
};

template <int W>
static __device__ __forceinline__ uint32_t lade_lz_after_decode(const lade_lz_decode_only &,
                                                                const lade_gpu_chunk &, uint32_t,
                                                                uint32_t, uint32_t, uint32_t)
{
	return LADE_GPU_OK;
}

/* Map: block = WARPS warps, warp = one chunk at a time.  Shared: a team of one for each. */
template <class F, int WARPS, class D = lade_lz_decode_only>
static __device__ __forceinline__ void lade_lz_solo_batch(const lade_gpu_batch &batch, D then = D())
{
	typedef lade_lz_team<F, 1> team_of_one;
	LADE_SHARED(team_of_one, shared, [WARPS]);
	uint32_t lane = lade_lane(), warp = lade_lz_warp();
	team_of_one *t = &shared[warp];
	lade_lz_tables_init(&t->tables[0], lane);
	uint32_t i = batch.next ? ~0u : blockIdx.x * WARPS + warp;
	for (;;) {
		if (batch.next) {
			if (lane == 0)
				i = lade_turn_next(batch, i);
			i = __shfl_sync(LADE_FULL, i, 0);
		}
		if (i >= batch.count)
			break;
		lade_gpu_chunk c;
		uint32_t size = 0, at = 0, stated = 0, status = lade_chunk_get(batch, i, &c);
		if (status == LADE_GPU_OK)
			status = F::begin(c.src, c.src_size, &at, &stated);
		if (status == LADE_GPU_OK)
			status = lade_lz_chunk<F, 1>(t, c, at, stated, 0, lane, &size);
		if (status == LADE_GPU_OK)
			status = lade_lz_after_decode<1>(then, c, i, size, 0, lane);
		if (lane == 0)
			lade_chunk_put(batch, i, status, size);
		__syncwarp();
		if (!batch.next)
			break;
	}
}

/* Finds the next chunk, by one thread. */
template <class F>
static __device__ __forceinline__ void lade_lz_open(const lade_gpu_batch &batch, lade_lz_job *job)
{
	lade_lz_job j = {};
	j.i = batch.next ? lade_turn_next(batch, job->i) : blockIdx.x;
	if (j.i < batch.count)
		j.status = lade_chunk_get_now(batch, j.i, &j.c);
	if (j.i < batch.count && j.status == LADE_GPU_OK)
		j.status = F::begin(j.c.src, j.c.src_size, &j.at, &j.stated);
	*job = j;
}

/* The same, not inlined: for formats with a header, teams of fewer than 16 warps would spill. */
template <class F>
static __device__ __noinline__ void lade_lz_open_called(const lade_gpu_batch &batch,
                                                        lade_lz_job *job)
{
	lade_lz_open<F>(batch, job);
}

/* Map: block = one chunk at a time, warp = every WARPS-th segment of its source.  Shared: the
 * team's, at 't', and a job. */
template <class F, int WARPS, class D = lade_lz_decode_only>
static __device__ __forceinline__ void lade_lz_team_batch(lade_lz_team<F, WARPS> *t,
                                                          const lade_gpu_batch &batch, D then = D())
{
	LADE_SHARED(lade_lz_job, job);
	uint32_t lane = lade_lane(), warp = lade_lz_warp();
	t = lade_lz_uniform(t);
	lade_lz_tables_init(&t->tables[warp], lane);
	if (threadIdx.x == 0)
		job.i = ~0u;
	for (;;) {
		if (threadIdx.x == 0 && F::STATES_SIZE && WARPS < 16)
			lade_lz_open_called<F>(batch, &job);
		else if (threadIdx.x == 0)
			lade_lz_open<F>(batch, &job);
		__syncthreads();
		/* Values needed after the chunk are read again there, to save registers. */
		if (job.i >= batch.count)
			break;
		uint32_t size = 0, status = job.status;
		if (status == LADE_GPU_OK) {
			lade_gpu_chunk c = job.c;
			status = lade_lz_chunk<F, WARPS>(t, c, job.at, job.stated, warp, lane,
			                                 &size);
		}
		if (status == LADE_GPU_OK)
			status = lade_lz_after_decode<WARPS>(then, job.c, job.i, size, warp, lane);
		if (threadIdx.x == 0)
			lade_chunk_put(batch, job.i, status, size);
		if (!batch.next)
			break;
		__syncthreads();
	}
}

/* Map: block = WARPS warps, warp = one chunk at a time: its decoded size, and whether it can be
 * decoded to that.  Shared: tables for each warp. */
template <class F, int WARPS>
static __device__ __forceinline__ void lade_lz_size_batch(const lade_gpu_batch &batch)
{
	LADE_SHARED(lade_lz_tables<3>, shared, [WARPS]);
	uint32_t lane = lade_lane(), warp = lade_lz_warp();
	lade_lz_tables<3> *t = &shared[warp];
	lade_lz_tables_init(t, lane);
	uint32_t i = batch.next ? ~0u : blockIdx.x * WARPS + warp;
	for (;;) {
		if (batch.next) {
			if (lane == 0)
				i = lade_turn_next(batch, i);
			i = __shfl_sync(LADE_FULL, i, 0);
		}
		if (i >= batch.count)
			break;
		lade_gpu_chunk c;
		uint32_t size = 0, status = lade_source_get(batch, i, &c);
		if (status == LADE_GPU_OK)
			status = lade_lz_size<F>(t, c, lane, &size);
		if (lane == 0)
			lade_chunk_put(batch, i, status, size);
		__syncwarp();
		if (!batch.next)
			break;
	}
}

#endif
