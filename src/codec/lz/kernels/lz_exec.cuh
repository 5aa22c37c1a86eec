/*
 * lz_exec.cuh: the executor that LZ formats share: it turns pieces into bytes.
 *
 * A team is W warps that work on one chunk in step: one warp, or all warps of a block.  Its warps
 * hand in sequences, lane by lane, of two *pieces* each: a run of source bytes, or a match (bytes
 * of the output so far), or nothing.  A piece is noted as an address such that output byte v of it
 * is the byte at address + v.  Pieces stand in a ring; a bitmap, a ring as well, marks at which
 * bytes of the output they begin; and for each word of 32 bytes it is noted which piece began last
 * before it.  So the piece of any output byte is a count of bits away:
 *
 *     piece = last before the word + starts from the word's first byte up to and with this one
 *
 * Output is made in windows: for each warp a tile of 128 bytes, four neighbouring ones a lane,
 * whose loads are all in flight together.  What does not fill a window is left for the next
 * sequences.  A source inside the window is resolved first: each byte has the index of its source,
 * and indices are followed at once by all lanes, twice as far each round (pointer doubling), until
 * each ends at a byte from outside; that also resolves matches that overlap themselves.  A window
 * that is in one piece is copied 16 bytes a lane, with those after it that do as well.
 *
 * Positions: v = output position + the low 7 bits of the destination's address, so that tiles are
 * aligned lines of memory, and only the first window and the last one are not full.
 *
 * Bounds: the caller has checked that every literal is in the source, that every match begins in
 * the output, and that the output ends within its capacity.  Every load and store here is at one of
 * those bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_LZ_EXEC_CUH
#define LADE_CUDA_LZ_EXEC_CUH

#include "gpu/kernels/batch.cuh"

#define LADE_LZ_TILE 128u
#define LADE_LZ_COPIES 2 /* units of 16 bytes that a lane has on the way: more would be spilled */
#define LADE_LZ_COPIES_ALONE 4 /* the same in a function that does nothing else */

/* Of 32 bytes of the output: which of them begin a piece, and the piece that began last before
 * them, counted in bytes of the ring. */
struct alignas(8) lade_lz_word {
	uint32_t bits, last;
};

/* Where a lane's sequence is in the output: its first v, its first piece, its pieces' sizes. */
struct alignas(16) lade_lz_place {
	uint32_t start, piece, size[2];
};

struct alignas(8) lade_lz_four {
	uint16_t of[4];
};

/* A team's part of shared memory.  'piece' holds what a window leaves over, at most a piece a byte,
 * and two pieces for each lane's sequence. */
template <int W> struct lade_lz_exec {
	static constexpr uint32_t WINDOW = W * LADE_LZ_TILE;
	static constexpr uint32_t TILES = W <= 4 ? 32 : 8 * W; /* that the rings cover */
	static constexpr uint32_t REACH = (TILES - 1) * LADE_LZ_TILE;
	static constexpr uint32_t PIECES = 256 * W;
	/* In an index: this byte comes from outside. */
	static constexpr uint32_t ROOT = WINDOW;
	lade_lz_word word[4 * TILES];
	uint64_t piece[PIECES];            /* the address of output byte v is piece + v */
	/* By byte: where in the window it is from, in two tables by turns; then the values of those
	 * from outside.  (A team of one has one table, of bytes, roots behind it, which lead to
	 * themselves; then values.) */
	lade_lz_four source[W == 1 ? 2 : 3][WINDOW / 4];
	uint32_t alone;                    /* the piece that a window lay in, as in lade_lz_word */
	uint32_t since;                    /* v: .. from here on, and those behind it */
	uint32_t next;                     /* v: where the next piece begins */
	uint32_t longs; /* v: where sequences ended of which one had a piece of a window or more */
};

/* Where a team stands in its output; all its lanes have the same. */
struct lade_lz_out {
	uint8_t *base;   /* of v = 0 */
	uint32_t done;   /* v: the output before it is made */
	uint32_t end;    /* v: what was handed in ends here */
	uint32_t pieces; /* pieces handed in */
	uint32_t full;   /* windows from this v on may be full */
};

/* What a lane hands in: two pieces, each of 'size' bytes, or empty. */
struct lade_lz_sequence {
	uint32_t size[2];
	uint32_t from[2]; /* of a run of source bytes: where it begins; or a match's offset */
	bool match[2];
};

/* ---- a team -------------------------------------------------------------------------------- */

template <int W> static __device__ __forceinline__ void lade_team_sync()
{
	if (W == 1)
		__syncwarp();
	else
		__syncthreads();
}

/* Whether it is so for any lane of the team; a barrier, too. */
template <int W> static __device__ __forceinline__ bool lade_team_any(bool what)
{
	return W == 1 ? __any_sync(LADE_FULL, what) : __syncthreads_or(what);
}

/* ---- marks --------------------------------------------------------------------------------- */

/* Makes a team's memory one without pieces. */
template <int W>
static __device__ __forceinline__ void lade_lz_clear(lade_lz_exec<W> *x, uint32_t warp,
                                                     uint32_t lane)
{
#pragma unroll 1
	for (uint32_t i = 32 * warp + lane; i < 4 * x->TILES; i += 32 * W)
		x->word[i] = lade_lz_word{0, (uint32_t)-8};
	/* Roots lead to themselves. */
	if (W == 1)
		((uint32_t *)x->source[0])[32 + lane] = 0x83828180 + 0x04040404 * lane;
	if (warp == 0 && lane == 0) {
		x->alone = (uint32_t)-16;
		x->longs = 0;
	}
}

/* The output of a chunk of 'n' bytes at 'src', of at most 'cap' bytes. */
static __device__ __forceinline__ lade_lz_out lade_lz_out_of(const uint8_t *src, uint32_t n,
                                                             uint8_t *dst, uint32_t cap)
{
	uint32_t shift = (uint32_t)(uintptr_t)dst & (LADE_LZ_TILE - 1);
	uint32_t apart = (uint32_t)(uintptr_t)src - (uint32_t)(uintptr_t)(dst - shift);
	/* A source byte's address may be one's of the output but for its high half. */
	bool alike = apart < shift + cap || 0 - apart < n;
	uint32_t full = alike ? LADE_FULL : shift ? LADE_LZ_TILE : 0;
#if LADE_ON_GPU
	asm volatile("" : "+r"(full)); /* else it would be computed anew for each window */
#endif
	return lade_lz_out{dst - shift, shift, shift, 0, full};
}

/* Begins it. */
template <int W>
static __device__ __forceinline__ lade_lz_out
lade_lz_begin(lade_lz_exec<W> *x, const uint8_t *src, uint32_t n, uint8_t *dst, uint32_t cap,
              uint32_t warp, uint32_t lane)
{
	lade_lz_clear<W>(x, warp, lane);
	return lade_lz_out_of(src, n, dst, cap);
}

/* Notes the pieces that cover the words' beginnings in [first, end], of the sequence whose second
 * piece begins at 'mid'. */
template <int W>
static __device__ __forceinline__ void lade_lz_cover(lade_lz_exec<W> *x, uint32_t first,
                                                     uint32_t step, uint32_t end, uint32_t mid,
                                                     uint32_t piece, uint32_t then)
{
#pragma unroll 1
	for (uint32_t t = first; t <= end; t += step)
		x->word[t % (4 * x->TILES)].last = t * 32 > mid ? then : piece;
}

/* Marks what of the lane's sequence is in [lo, hi); 'start' is its first v, 'piece' its first
 * piece. */
template <int W>
static __device__ __forceinline__ void lade_lz_mark(lade_lz_exec<W> *x, const lade_lz_place &q,
                                                    uint32_t lo, uint32_t hi, uint32_t lane)
{
	uint32_t start = q.start, piece = q.piece;
	uint32_t mid = start + q.size[0], end = mid + q.size[1];
	if (q.size[0] && start - lo < hi - lo)
		atomicOr(&x->word[start / 32 % (4 * x->TILES)].bits, 1u << (start & 31));
	if (q.size[1] && mid - lo < hi - lo)
		atomicOr(&x->word[mid / 32 % (4 * x->TILES)].bits, 1u << (mid & 31));
	uint32_t first = (start > lo ? start : lo) / 32 + 1, last = (end < hi ? end : hi) / 32;
	piece *= 8;
	uint32_t then = piece + (q.size[0] ? 8 : 0);
	if (W > 1) {
		if (first <= last)
			x->word[first % (4 * x->TILES)].last = first * 32 > mid ? then : piece;
		if (!__any_sync(LADE_FULL, last > first))
			return;
		first++;
	}
	/* Long ones by all lanes. */
	bool wide = last >= first + 8;
	uint32_t many = __ballot_sync(LADE_FULL, wide);
	if (!wide)
		lade_lz_cover<W>(x, first, 1, last, mid, piece, then);
	while (many) {
		uint32_t l = __ffs(many) - 1;
		many &= many - 1;
		lade_lz_cover<W>(x, __shfl_sync(LADE_FULL, first, l) + lane, 32,
		                 __shfl_sync(LADE_FULL, last, l), __shfl_sync(LADE_FULL, mid, l),
		                 __shfl_sync(LADE_FULL, piece, l), __shfl_sync(LADE_FULL, then, l));
	}
}

/* ---- windows ------------------------------------------------------------------------------- */

static __device__ __forceinline__ uint32_t lade_lz_join(const uint32_t *value)
{
	return __byte_perm(__byte_perm(value[0], value[1], 0x40),
	                   __byte_perm(value[2], value[3], 0x40), 0x5410);
}

/* Bytes of a table, at the places that the four of 'at' are, come into 'at'. */
static __device__ __forceinline__ void lade_lz_look(const void *table, uint32_t *at)
{
#pragma unroll
	for (uint32_t k = 0; k < 4; k++)
		at[k] = ((const uint8_t *)table)[at[k]];
}

/*
 * The values of a tile's bytes, four a lane, where some come from the tile itself: 'at' says where
 * in the tile, or is the byte's own place | ROOT where it is from outside, and then 'value' is it.
 */
static __device__ __forceinline__ uint32_t lade_lz_resolve_tile(lade_lz_exec<1> *x, uint32_t lane,
                                                                uint32_t *at,
                                                                const uint32_t *value)
{
	/* After round r an index is 2^r sources away, or at a byte from outside, whose value stands
	 * at its index with ROOT.  All that can be is done before the values are waited for. */
	constexpr uint32_t ROOT = lade_lz_exec<1>::ROOT;
	uint32_t *index = (uint32_t *)x->source[0], *values = (uint32_t *)x->source[1];
	do {
		index[lane] = lade_lz_join(at);
		__syncwarp();
		lade_lz_look(index, at);
	} while (__any_sync(LADE_FULL, !(at[0] & at[1] & at[2] & at[3] & ROOT)));
	values[32 + lane] = lade_lz_join(value);
	__syncwarp();
	lade_lz_look(values, at);
	return lade_lz_join(at);
}

/* Those of 'at' that are no roots are looked up in one table, all four go into the other; whether
 * some of the team's are no roots still. */
template <int W>
static __device__ __forceinline__ bool lade_lz_round(lade_lz_exec<W> *x, uint32_t word,
                                                     uint32_t *at, uint32_t table)
{
	constexpr uint32_t ROOT = 2 * lade_lz_exec<W>::ROOT;
#pragma unroll
	for (uint32_t k = 0; k < 4; k++)
		if (!(at[k] & ROOT))
			at[k] = *(const uint16_t *)((const uint8_t *)x->source[table] + at[k]);
	x->source[1 - table][word] = lade_lz_four{{(uint16_t)at[0], (uint16_t)at[1],
	                                           (uint16_t)at[2], (uint16_t)at[3]}};
	return lade_team_any<W>(!(at[0] & at[1] & at[2] & at[3] & ROOT));
}

/*
 * The same for a team's window, where 'near' says whether some of the lane's bytes come from it;
 * indices are of 16 bits, and doubled, so that they are offsets.  They stand in two tables in turn,
 * so that the vote whether some are to be followed is the barrier before they are.
 */
template <int W>
static __device__ __forceinline__ uint32_t lade_lz_resolve(lade_lz_exec<W> *x, uint32_t word,
                                                           bool near, uint32_t *at,
                                                           const uint32_t *value)
{
	constexpr uint32_t WINDOW = lade_lz_exec<W>::WINDOW;
	x->source[0][word] = lade_lz_four{{(uint16_t)at[0], (uint16_t)at[1], (uint16_t)at[2],
	                                   (uint16_t)at[3]}};
	bool more = lade_team_any<W>(near);
	uint32_t joined = lade_lz_join(value);
	if (!more)
		return joined;
	((uint32_t *)x->source[2])[word] = joined;
	while (lade_lz_round<W>(x, word, at, 0) && lade_lz_round<W>(x, word, at, 1)) {
	}
	/* Half of a root's offset is WINDOW and its place. */
#pragma unroll
	for (uint32_t k = 0; k < 4; k++)
		at[k] = ((const uint8_t *)x->source)[3 * WINDOW + at[k] / 2];
	return lade_lz_join(at);
}

/* A byte of global memory unless it is 'not_wanted': then it is any value. */
static __device__ __forceinline__ uint32_t lade_lz_byte_unless(const uint8_t *from, bool not_wanted)
{
#if LADE_ON_GPU
	/* No move, which would wait for the load, follows it. */
	uint32_t value;
	asm volatile("{ .reg .pred p; setp.eq.u32 p, %2, 0; @p ld.global.u8 %0, [%1]; }"
	             : "=&r"(value)
	             : "l"(from), "r"((uint32_t)not_wanted)
	             : "memory");
	return value;
#else
	return not_wanted ? 0xA5 : *from;
#endif
}

/* Makes the bytes of the window at 'w0' that are in [from, end); FULL: all of them do, and no
 * source byte's address is like one of theirs but for its high half.  The caller sees to a barrier
 * before and behind. */
template <int W, bool FULL>
static __device__ __forceinline__ void lade_lz_window(lade_lz_exec<W> *x, uint8_t *base,
                                                      uint32_t w0, uint32_t from, uint32_t end,
                                                      uint32_t warp, uint32_t lane)
{
	constexpr uint32_t WINDOW = lade_lz_exec<W>::WINDOW, PIECES = lade_lz_exec<W>::PIECES;
	uint32_t word = 32 * warp + lane, pos = w0 + 4 * word, shift = 4 * (lane & 7);
	lade_lz_word *here = &x->word[pos / 32 % (4 * x->TILES)];
	lade_lz_word mark = *here;
	/* Starts up to and with the lane's first byte; then those of the other three. */
	uint32_t piece = mark.last + 8 * __popc(mark.bits & ((2u << shift) - 1));
	uint32_t own = mark.bits >> shift;
	uint64_t at[4];
	uint32_t value[4], low = (uint32_t)(uintptr_t)(base + w0);
	bool near = false;
#pragma unroll
	for (uint32_t k = 0; k < 4; k++) {
		if (k)
			piece += own & (1u << k) ? 8 : 0;
		bool active = FULL || pos + k - from < end - from;
		at[k] = active ? *(const uint64_t *)((const uint8_t *)x->piece +
		                                     piece % (8 * PIECES)) +
		                         pos
		               : 0;
		/* Perhaps of the window; what is 2^32 off or just before it is found below. */
		near |= active && (uint32_t)at[k] + k - low < WINDOW;
	}
#pragma unroll
	for (uint32_t k = 0; k < 4; k++) {
		const uint8_t *byte = (const uint8_t *)(uintptr_t)(at[k] + k);
		if (FULL && W > 1) /* what is of the window is not made yet */
			value[k] = lade_lz_byte_unless(byte,
			                               (uint32_t)at[k] + k - low < WINDOW);
		else
			value[k] = FULL || pos + k - from < end - from ? lade_ld_global_byte(byte)
			                                               : 0;
	}
	uint32_t made, source[4];
	if (W > 1 || __any_sync(LADE_FULL, near)) {
#pragma unroll
		for (uint32_t k = 0; k < 4; k++) {
			/* A window that is not full may reach over other memory, the chunk's source
			 * even: only what is in [from, end) is its own.  Where a source overlaps
			 * its destination a literal may come from there as well: followed is what
			 * is before the byte, so that there is an end. */
			uint64_t in = FULL ? (uint32_t)at[k] + k - low
			                   : at[k] + k - (uint64_t)(uintptr_t)(base + w0);
			bool inside = FULL ? (uint32_t)in < WINDOW
			                   : in - (from - w0) < pos + k - from;
			source[k] = (inside ? (uint32_t)in : 4 * word + k + x->ROOT) *
			            (W == 1 ? 1 : 2);
		}
		if constexpr (W == 1)
			made = lade_lz_resolve_tile(x, lane, source, value);
		else
			made = lade_lz_resolve<W>(x, word, near, source, value);
	} else {
		made = lade_lz_join(value);
	}
	if (shift == 0)
		here->bits = 0;
	if (FULL || (pos - from < end - from && pos + 3 - from < end - from)) {
		*(uint32_t *)lade_global(base + pos) = made;
	} else {
#pragma unroll
		for (uint32_t k = 0; k < 4; k++)
			if (pos + k - from < end - from)
				base[pos + k] = (uint8_t)(made >> (8 * k));
	}
}

template <int W>
static __device__ __noinline__ void lade_lz_window_called(lade_lz_exec<W> *x, uint8_t *base,
                                                          uint32_t w0, uint32_t from, uint32_t end,
                                                          uint32_t warp, uint32_t lane)
{
	lade_lz_window<W, false>(x, base, w0, from, end, warp, lane);
}

/* One that is not full.  A chunk has two of them, so that a team's are called: that leaves it
 * registers (a warp alone would spill more). */
template <int W>
static __device__ __forceinline__ void lade_lz_window_part(lade_lz_exec<W> *x, uint8_t *base,
                                                           uint32_t w0, uint32_t from, uint32_t end,
                                                           uint32_t warp, uint32_t lane)
{
	if constexpr (W == 1)
		lade_lz_window<W, false>(x, base, w0, from, end, warp, lane);
	else
		lade_lz_window_called<W>(x, base, w0, from, end, warp, lane);
}

/* The 16 bytes that begin 'before' bytes, below 16, into 'a' and go on in 'b'. */
static __device__ __forceinline__ uint4 lade_lz_unit(uint4 a, uint4 b, uint32_t before)
{
	uint32_t w[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
#pragma unroll
	for (uint32_t k = 0; k < 6; k++)
		w[k] = before & 8 ? w[k + 2] : w[k];
#pragma unroll
	for (uint32_t k = 0; k < 5; k++)
		w[k] = before & 4 ? w[k + 1] : w[k];
	uint32_t shift = 8 * (before & 3);
	return make_uint4(__funnelshift_r(w[0], w[1], shift), __funnelshift_r(w[1], w[2], shift),
	                  __funnelshift_r(w[2], w[3], shift), __funnelshift_r(w[3], w[4], shift));
}

/* 'unit', or the nearest of 1 to 'last'. */
static __device__ __forceinline__ uint32_t lade_lz_unit_of(uint32_t unit, uint32_t last)
{
	return unit < 1 ? 1 : unit < last ? unit : last;
}

/*
 * Copies 'size' bytes, a multiple of 16 from 32 on, by W warps: 'thread' is below 32 W.  'dst' is
 * aligned to 16; 'src' may be before it in one output, at least 'size' bytes off.  An output unit
 * of 16 bytes is made of two aligned ones of the source; of the first and the last one these may
 * reach outside the run, so that their bytes go one by one.
 */
template <int W, uint32_t COPIES = LADE_LZ_COPIES>
static __device__ __forceinline__ void lade_lz_copy(uint8_t *dst, const uint8_t *src, uint32_t size,
                                                    uint32_t thread)
{
	uint32_t edge = thread < 16 ? thread : size - 32 + thread, value = 0;
	if (thread < 32)
		value = lade_ld_global_byte(src + edge);
	uint32_t before = (uint32_t)(uintptr_t)src & 15, last = size / 16 - 2;
	const uint4 *from = (const uint4 *)lade_global(src - before);
	uint4 *to = (uint4 *)lade_global(dst);
	uint32_t i = thread;
	if (last < 32 * W) {
		if (i && i <= last)
			to[i] = lade_lz_unit(from[i], from[i + 1], before);
		i = last + 1;
	}
	/* All loads are unconditional: what passes the end makes the last unit once more, and who
	 * has unit 0 the one behind it.  So a warp's stores are whole lines where 'dst' begins
	 * one. */
#pragma unroll 1
	for (; i <= last; i += 32 * W * COPIES) {
		uint4 a[COPIES], b[COPIES];
#pragma unroll
		for (uint32_t k = 0; k < COPIES; k++) {
			uint32_t unit = lade_lz_unit_of(i + 32 * W * k, last);
			a[k] = from[unit];
			b[k] = from[unit + 1];
		}
#pragma unroll
		for (uint32_t k = 0; k < COPIES; k++)
			to[lade_lz_unit_of(i + 32 * W * k, last)] =
				lade_lz_unit(a[k], b[k], before);
	}
	if (thread < 32)
		dst[edge] = (uint8_t)value;
}

/* Copies 'size' bytes from and to any address, by W warps; the two do not overlap. */
template <int W>
static __device__ __noinline__ void lade_lz_copy_any(uint8_t *dst, const uint8_t *src,
                                                     uint32_t size, uint32_t thread)
{
	uint32_t head = (0 - (uint32_t)(uintptr_t)dst) & 15, value = 0;
	uint32_t body = size < head + 32 ? 0 : (size - head) & ~15u, rest = size - body;
	head = body ? head : size;
	/* At most 30 bytes are not of the body; without one, 46. */
	uint32_t at = thread < head ? thread : thread + body;
	if (thread < rest)
		value = lade_ld_global_byte(src + at);
	if (body)
		lade_lz_copy<W, LADE_LZ_COPIES_ALONE>(dst + head, src + head, body, thread);
	if (thread < rest)
		dst[at] = (uint8_t)value;
	if (thread + 32 * W < rest)
		dst[thread + 32 * W] = src[thread + 32 * W];
}

/*
 * The full window at 'w0' begins within a piece, and no other begins in it: copies it, and the
 * tiles behind it that are in the piece as well; returns the bytes copied, or 0 where too much of
 * it would be read from what is not made yet.  'marked': pieces before it are marked.
 */
template <int W>
static __device__ __forceinline__ uint32_t lade_lz_long(lade_lz_exec<W> *x, const lade_lz_out &o,
                                                        const lade_lz_place *place,
                                                        uint32_t piece, uint32_t w0,
                                                        uint32_t marked, uint32_t warp,
                                                        uint32_t lane)
{
	constexpr uint32_t WINDOW = lade_lz_exec<W>::WINDOW;
	/* Where the next piece begins: it may not be marked yet, and is of these sequences then. */
	uint32_t tiles = 0, next;
	for (uint32_t k = 0; k < x->TILES; k += 32) {
		uint32_t t = k + lane + 1;
		bool in = t * LADE_LZ_TILE <= marked - w0 &&
		          x->word[(w0 / 32 + 4 * t) % (4 * x->TILES)].last == piece;
		uint32_t out = ~__ballot_sync(LADE_FULL, in);
		tiles += out ? __ffs(out) - 1 : 32;
		if (out)
			break;
	}
	next = w0 + tiles * LADE_LZ_TILE;
	bool all = marked - next < LADE_LZ_TILE && marked != o.end;
	if (warp == 0 && lane == 0) {
		/* The byte before the window is of the piece, too. */
		if (x->alone != piece) {
			x->alone = piece;
			x->since = w0 - 1;
		}
		x->next = o.end;
	}
	lade_team_sync<W>();
	if (all) {
		lade_lz_place q = *place;
		uint32_t mid = q.start + q.size[0];
		uint32_t mine = q.size[0] && q.start >= marked ? q.start
		                : q.size[1] && mid >= marked ? mid
		                                             : o.end;
		mine = __reduce_min_sync(LADE_FULL, mine);
		if (lane == 0)
			atomicMin(&x->next, mine);
		lade_team_sync<W>();
		/* What is marked may hold a last one. */
		if (x->word[marked / 32 % (4 * x->TILES)].last == piece &&
		    x->word[marked / 32 % (4 * x->TILES)].bits == 0)
			next = x->next;
	}
	uint32_t n = (next - w0) / LADE_LZ_TILE * LADE_LZ_TILE, made = w0 - x->since;
	uint64_t from = x->piece[piece / 8 % x->PIECES] + w0;
	uint64_t back = (uint64_t)(uintptr_t)(o.base + w0) - from;
	if (back <= w0) {
		/* A match may be read at any multiple of its offset as far back as it goes, so that
		 * what is copied at once does not overlap itself. */
		uint32_t wide = (uint32_t)back;
		if (back < n) {
			uint32_t most = back >= WINDOW ? wide : made > wide ? made - wide : 0;
			n = most < n ? most / LADE_LZ_TILE * LADE_LZ_TILE : n;
			wide = (n + wide - 1) / wide * wide;
		}
		from -= wide - back;
	}
	if (n < WINDOW)
		return 0;
	lade_lz_copy<W>(o.base + w0, (const uint8_t *)(uintptr_t)from, n, 32 * warp + lane);
	/* Behind what is marked, the piece is the last one still. */
	if (w0 + n > marked && warp == 0 && lane == 0)
		x->word[(w0 + n) / 32 % (4 * x->TILES)] = lade_lz_word{0, piece};
	return n;
}

/* Sequences that all lanes hand in at once; they go on where the output so far ends. */
struct lade_lz_group {
	uint32_t start,
		piece; /* the lane's first v and first piece, in the order of warps and lanes */
	uint32_t end, count; /* of all: the v where they end, and their pieces */
	bool finish;         /* there are no more: makes what is left over, too */
};

/*
 * Hands in the sequences of all lanes: 'q' are the lane's own.  'place' is room for the lane, so
 * that it need not hold in registers what is seldom read again.
 */
template <int W>
static __device__ __forceinline__ void
lade_lz_make(lade_lz_exec<W> *x, lade_lz_out *o, const uint8_t *src, const lade_lz_sequence &q,
             lade_lz_group r, lade_lz_place *place, uint32_t warp, uint32_t lane)
{
	constexpr uint32_t WINDOW = lade_lz_exec<W>::WINDOW;
#pragma unroll
	for (uint32_t k = 0; k < 2; k++) {
		uint32_t at = k ? r.start + q.size[0] : r.start;
		if (q.size[k]) {
			uint64_t from = q.match[k] ? (uint64_t)(uintptr_t)o->base - q.from[k]
			                           : (uint64_t)(uintptr_t)src + q.from[k] - at;
			x->piece[(r.piece + (k && q.size[0] ? 1 : 0)) % x->PIECES] = from;
			/* It will be read when it is marked and a window is full. */
			if (q.match[k])
				lade_prefetch((const void *)(uintptr_t)(from + at));
		}
	}
	o->pieces += r.count;
	uint32_t marked = o->end; /* pieces that begin before it are marked */
	o->end = r.end;
	uint32_t w0 = o->done / LADE_LZ_TILE * LADE_LZ_TILE;
	lade_lz_place own = {r.start, r.piece, {q.size[0], q.size[1]}};
	*place = own;
	if (W > 1 && (q.size[0] >= WINDOW || q.size[1] >= WINDOW))
		x->longs = r.end;
	for (;;) {
		uint32_t hi = r.end - w0 < x->REACH ? r.end : w0 + x->REACH;
		lade_lz_mark<W>(x, own, marked, hi, lane);
		marked = hi;
		lade_team_sync<W>();
		while (marked - w0 >= WINDOW) {
			uint32_t n = WINDOW, first = w0 / 32;
			if (w0 < o->full) {
				lade_lz_window_part<W>(x, o->base, w0, o->done, w0 + n, warp, lane);
			} else {
				n = 0;
				if (W == 1 || x->longs == r.end) {
					uint32_t one = x->word[first % (4 * x->TILES)].last;
					if (one == x->word[(first + 4 * W) % (4 * x->TILES)].last)
						n = lade_lz_long<W>(x, *o, place, one, w0, marked,
						                    warp, lane);
				}
				if (n == 0) {
					n = WINDOW;
					lade_lz_window<W, true>(x, o->base, w0, w0, w0 + n, warp,
					                        lane);
				}
			}
			w0 += n;
			o->done = w0;
			if (w0 > marked)
				marked = w0;
			lade_team_sync<W>();
		}
		if (marked == r.end)
			break;
		own = *place;
	}
	if (r.finish && o->done != r.end)
		lade_lz_window_part<W>(x, o->base, w0, o->done, r.end, warp, lane);
}

#endif
