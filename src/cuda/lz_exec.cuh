/*
 * lz_exec.cuh: the executor that LZ formats share: it turns pieces into bytes.
 *
 * A warp hands in up to 32 sequences, lane by lane: a literal run (bytes of the source) and a match
 * (bytes of the output so far), either of which may be empty.  Each non-empty one is a *piece*:
 * one number 'delta' such that output byte 'pos' is byte pos + delta of the source, or of the
 * output. A bitmap marks where pieces begin, so that the piece of any output byte is a count of
 * bits away, and a lane makes four bytes at a time, whatever the pieces' lengths:
 *
 *     rank of the byte = starts before the window + starts in words before its own
 *                        + popc(its word up to and with it)
 *
 * Output is made in tiles of 128 bytes, a word of it a lane, whose loads are all in flight
 * together.  A source inside the tile itself is resolved first: a table of 128 indices is followed
 * until none points into the tile (pointer doubling, at most 7 rounds), which also resolves matches
 * that overlap themselves.
 *
 * Bounds: the source has a byte at least; the caller has checked that every literal lies in the
 * source, that every match begins in the output, and that the output ends within its capacity.
 * Every load and store here is at one of those bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_LZ_EXEC_CUH
#define LADE_CUDA_LZ_EXEC_CUH

#include "cuda/batch.cuh"

#define LADE_LZ_WINDOW 1024u /* output bytes that a bitmap covers: one word a lane */
#define LADE_LZ_TILE 128u
#define LADE_LZ_STRIDE 512u /* of a long match; a window is at least twice as long */

/* A warp's part of shared memory. */
struct lade_lz_shared {
	uint32_t bits[32];  /* bit i of word w: a piece begins at byte 32 w + i */
	int32_t delta[66];  /* by piece; bit 0: of the source; 64 at most and 2 unused */
	uint32_t index[32]; /* by byte of a tile: where in the tile its value comes from */
	uint32_t value[32]; /* by byte: the value, of those from outside */
};

/* What a lane hands in. */
struct lade_lz_sequence {
	uint32_t literals, from; /* a run of source bytes from 'from' on */
	uint32_t match, offset;  /* then bytes from 'offset' before, 1 to the output so far */
};

/* ---- long runs ----------------------------------------------------------------------------- */

/*
 * Copies 'size' bytes from 'src' to 'dst'; 'src' may lie before 'dst' in one output, at least 512
 * bytes off.  Stores are whole words; a word of the source is read only where all four
 * bytes belong to the run.
 */
static __device__ __forceinline__ void lade_lz_run(uint8_t *dst, const uint8_t *src, uint32_t size,
                                                   uint32_t lane)
{
	uint32_t head = (uint32_t)(0 - (uintptr_t)dst) & 3;
	if (head > size)
		head = size;
	if (lane < head)
		dst[lane] = src[lane];
	dst += head;
	src += head;
	size -= head;
	/* Output word i is made of source words i and i + 1, counted from the one that holds
	 * src[0]; that one may begin before the run, so with a shift the first four bytes go one by
	 * one. */
	uint32_t before = (uint32_t)(uintptr_t)src & 3, shift = 8 * before;
	const uint32_t *from = (const uint32_t *)(src - before);
	uint32_t *to = (uint32_t *)dst;
	uint32_t begin = before ? 1 : 0;
	uint32_t whole = (size + before) / 4; /* source words that end within the run */
	uint32_t end = before ? (whole ? whole - 1 : 0) : whole;
	if (end < begin)
		end = begin = 0;
	if (begin && lane < 4)
		dst[lane] = src[lane];
	uint32_t i = begin + lane;
	for (; i + 96 < end; i += 128) {
		uint32_t w[4];
#pragma unroll
		for (uint32_t k = 0; k < 4; k++)
			w[k] = before ? __funnelshift_r(from[i + 32 * k], from[i + 32 * k + 1],
			                                shift)
			              : from[i + 32 * k];
#pragma unroll
		for (uint32_t k = 0; k < 4; k++)
			to[i + 32 * k] = w[k];
	}
	for (; i < end; i += 32)
		to[i] = before ? __funnelshift_r(from[i], from[i + 1], shift) : from[i];
	for (uint32_t k = 4 * end + lane; k < size; k += 32)
		dst[k] = src[k];
}

/* ---- a window ----------------------------------------------------------------------------------
 */

/*
 * Marks where pieces begin within [from, w0 + 1024) and ranks the words: 'word' and 'rank' of a
 * lane are those of bytes w0 + 32 lane and on; 'rank' counts the pieces that begin before them.
 * 'before' begin before 'from', which is at most 3 bytes behind w0; 'start' is the lane's first
 * output byte.
 */
struct lade_lz_marked {
	uint32_t word, rank, begun; /* begun: pieces that begin before the window's end */
};

static __device__ __forceinline__ lade_lz_marked lade_lz_mark(lade_lz_shared *s,
                                                              const lade_lz_sequence &q,
                                                              uint32_t start, uint32_t w0,
                                                              uint32_t from, uint32_t before,
                                                              uint32_t lane)
{
	lade_lz_marked m;
	s->bits[lane] = 0;
	__syncwarp();
	uint32_t at = start - w0; /* wraps for what begins before the window */
	if (q.literals && start >= from && at < LADE_LZ_WINDOW)
		atomicOr(&s->bits[at >> 5], 1u << (at & 31));
	at += q.literals;
	if (q.match && start + q.literals >= from && at < LADE_LZ_WINDOW)
		atomicOr(&s->bits[at >> 5], 1u << (at & 31));
	__syncwarp();
	m.word = s->bits[lane];
	uint32_t count = __popc(m.word);
	uint32_t sum = lade_warp_scan(count, lane);
	m.rank = before + sum - count;
	m.begun = before + __shfl_sync(LADE_FULL, sum, 31);
	return m;
}

/* The value of a tile's bytes where some come from the tile itself: 'source' is where in the tile,
 * or the byte's own place where it comes from outside, and then 'value' is it. */
static __device__ __forceinline__ void lade_lz_resolve(lade_lz_shared *s, uint32_t lane,
                                                       uint32_t *source, uint32_t *value)
{
	const uint8_t *index = (const uint8_t *)s->index;
	s->index[lane] = source[0] | source[1] << 8 | source[2] << 16 | source[3] << 24;
	s->value[lane] = value[0] | value[1] << 8 | value[2] << 16 | value[3] << 24;
	__syncwarp();
	/* After round r an index is 2^r sources away, or at a byte from outside: 7 rounds for 128
	 * bytes. */
	for (uint32_t round = 0; round < 7; round++) {
		uint32_t next[4];
		bool moved = false;
#pragma unroll
		for (uint32_t k = 0; k < 4; k++) {
			next[k] = index[source[k]];
			moved |= next[k] != source[k];
		}
		if (!__any_sync(LADE_FULL, moved))
			break;
#pragma unroll
		for (uint32_t k = 0; k < 4; k++)
			source[k] = next[k];
		s->index[lane] = source[0] | source[1] << 8 | source[2] << 16 | source[3] << 24;
		__syncwarp();
	}
#pragma unroll
	for (uint32_t k = 0; k < 4; k++)
		value[k] = ((const uint8_t *)s->value)[source[k]];
	__syncwarp();
}

/*
 * A gate says how much of the output is there: open(need) waits until the bytes before 'need' are
 * complete and visible to the warp, and returns false when they will never be.  'o0' is where the
 * warp's own sequences begin: what lies behind it is the warp's own.
 */
struct lade_lz_open { /* one warp makes all */
	static constexpr bool ALWAYS = true;
	uint32_t o0;
	__device__ __forceinline__ bool open(uint32_t)
	{
		return true;
	}
};

/*
 * Makes output bytes [from, end) of the tile at t0, which is at a word of the output and in the
 * window of w0; false when the gate stays shut.
 */
template <class G>
static __device__ __forceinline__ bool
lade_lz_tile(lade_lz_shared *s, const uint8_t *src, uint8_t *dst, uint32_t w0, uint32_t t0,
             uint32_t from, uint32_t end, const lade_lz_marked &m, G &gate, uint32_t lane)
{
	uint32_t value[4], source[4], where[4], need = 0;
	bool inside = false;
	uint32_t pos = t0 + 4 * lane, shift = 4 * (lane & 7), w = (t0 - w0) / 32 + lane / 8;
	uint32_t bits = __shfl_sync(LADE_FULL, m.word, w);
	/* The piece of the lane's first byte; a byte that begins one is of the next. */
	uint32_t piece = __shfl_sync(LADE_FULL, m.rank, w) + __popc(bits & ((2u << shift) - 1)) - 1;
	bits >>= shift;
#pragma unroll
	for (uint32_t k = 0; k < 4; k++) {
		if (k)
			piece += bits >> k & 1;
		bool active = pos + k - from < end - from;
		int32_t delta = active ? s->delta[piece] : 1;
		uint32_t at = pos + k + (uint32_t)(delta >> 1);
		bool own = active && !(delta & 1) && at >= from;
		source[k] = own ? at - t0 : 4 * lane + k;
		inside |= own;
		/* Of the source (bit 0) or of the output.  What is not wanted is the source's first
		 * byte, so that all loads are unconditional and in flight together. */
		where[k] = !active || own ? 1 : at << 1 | (delta & 1);
		if (!G::ALWAYS && active && !(delta & 1) && at < gate.o0 && at >= need)
			need = at + 1;
	}
	if (!G::ALWAYS && !gate.open(__reduce_max_sync(LADE_FULL, need)))
		return false;
#pragma unroll
	for (uint32_t k = 0; k < 4; k++)
		value[k] =
			lade_ld_global_byte(((where[k] & 1) ? src : (const uint8_t *)dst) + (where[k] >> 1));
	if (__any_sync(LADE_FULL, inside))
		lade_lz_resolve(s, lane, source, value);
	if (pos - from < end - from && pos + 3 - from < end - from) {
		*(uint32_t *)(dst + pos) =
			value[0] | value[1] << 8 | value[2] << 16 | value[3] << 24;
	} else {
#pragma unroll
		for (uint32_t k = 0; k < 4; k++)
			if (pos + k - from < end - from)
				dst[pos + k] = (uint8_t)value[k];
	}
	__syncwarp();
	return true;
}

/*
 * No piece begins in the window of 'from': the one that covers it goes on until the next one
 * begins, or until o1.  Copies it so far and returns where it ends.  A match may be read at any
 * multiple of its offset as far back as its run goes, so that what is copied in one stride does not
 * overlap itself.
 */
static __device__ __forceinline__ uint32_t lade_lz_long(const uint8_t *src, uint8_t *dst,
                                                        const lade_lz_sequence &q, uint32_t start,
                                                        uint32_t from, uint32_t o1, int32_t delta,
                                                        uint32_t back, uint32_t lane)
{
	uint32_t mine = q.literals && start >= from             ? start
	                : q.match && start + q.literals >= from ? start + q.literals
	                                                        : o1;
	uint32_t end = __reduce_min_sync(LADE_FULL, mine);
	if (delta & 1) {
		lade_lz_run(dst + from, src + (from + (uint32_t)(delta >> 1)), end - from, lane);
		__syncwarp();
		return end;
	}
	uint32_t wide = (LADE_LZ_STRIDE + back - 1) / back * back;
	for (uint32_t at = from; at < end; at += LADE_LZ_STRIDE) {
		uint32_t n = end - at < LADE_LZ_STRIDE ? end - at : LADE_LZ_STRIDE;
		lade_lz_run(dst + at, dst + (at - wide), n, lane);
		__syncwarp();
	}
	return end;
}

/* ---- a batch of sequences
 * ------------------------------------------------------------------------ */

/* Puts the pieces of the warp's sequences into the table. 'start' is the lane's first output byte.
 */
static __device__ __forceinline__ void lade_lz_pieces(lade_lz_shared *s, const lade_lz_sequence &q,
                                                      uint32_t start, uint32_t lane)
{
	uint32_t below = (1u << lane) - 1;
	uint32_t literals = __ballot_sync(LADE_FULL, q.literals != 0);
	uint32_t matches = __ballot_sync(LADE_FULL, q.match != 0);
	uint32_t piece = __popc(literals & below) + __popc(matches & below);
	if (q.literals)
		s->delta[piece] = (int32_t)((q.from - start) << 1 | 1);
	if (q.match)
		s->delta[piece + (q.literals != 0)] = (int32_t)((0u - q.offset) << 1);
	__syncwarp();
}

/* Where the window that holds output byte 'from' begins: at a word of the output. */
static __device__ __forceinline__ uint32_t lade_lz_window(const uint8_t *dst, uint32_t from)
{
	/* Output that begins in the middle of a word has no byte before it: the window then begins
	 * at a negative place, and positions in it wrap, as they do when compared. */
	return from - ((uint32_t)(uintptr_t)(dst + from) & 3);
}

/*
 * Makes the output bytes [gate.o0, o1) of the sequences handed in, of which the window of o0 is
 * marked; 'start' is the lane's first one.  False when the gate stays shut.
 */
template <class G>
static __device__ __forceinline__ bool
lade_lz_make(lade_lz_shared *s, const uint8_t *src, uint8_t *dst, const lade_lz_sequence &q,
             uint32_t start, uint32_t o1, lade_lz_marked m, G &gate, uint32_t lane)
{
	uint32_t before = 0, from = gate.o0;
	bool alone = false; /* the window before this one lay within one piece */
	while (from < o1) {
		uint32_t w0 = lade_lz_window(dst, from);
		uint32_t end = o1 - w0 < LADE_LZ_WINDOW ? o1 : w0 + LADE_LZ_WINDOW;
		if (from != gate.o0)
			m = lade_lz_mark(s, q, start, w0, from, before, lane);
		if (m.begun == before) {
			int32_t delta = s->delta[before - 1];
			uint32_t back = (delta & 1) ? 0 : (uint32_t)(0 - (delta >> 1));
			/* A short offset needs a window of the run before it can be widened. */
			if ((delta & 1) || back >= LADE_LZ_STRIDE || alone) {
				if (!(delta & 1) && !gate.open(gate.o0))
					return false;
				from = lade_lz_long(src, dst, q, start, from, o1, delta, back,
				                    lane);
				continue;
			}
			alone = true;
		} else {
			alone = false;
		}
		for (uint32_t t0 = w0; from < end; t0 += LADE_LZ_TILE) {
			uint32_t stop = end - t0 < LADE_LZ_TILE ? end : t0 + LADE_LZ_TILE;
			if (!lade_lz_tile(s, src, dst, w0, t0, from, stop, m, gate, lane))
				return false;
			from = stop;
		}
		before = m.begun;
	}
	return true;
}

#endif
