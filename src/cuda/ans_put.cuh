/*
 * ans_put.cuh: how warps of the encoder of ANS (docs/format/ans.md, sections 5 and 7) take symbols to
 * bits, and write sub-blocks and what stands around them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_ANS_PUT_CUH
#define LADE_CUDA_ANS_PUT_CUH

#include "cuda/ans_count.cuh"

/* ---- lanes ------------------------------------------------------------------------------ */

/*
 * A lane: 'last' has the 32 newest bits of its string, the newest one highest; the low 6 bits of
 * 'at' are their number's.  'to' is where the next word goes.
 */
struct lade_ans_writer {
	lade_ans_at to;
	uint32_t state, last, at;

	/* Goes through a symbol; gives the bits taken, and multiples of 64. */
	__device__ __forceinline__ uint32_t step(uint32_t entry)
	{
		uint32_t t = entry + state, nb = t >> 12;
		last = __funnelshift_r(last, state, nb);
		state = __funnelshift_r(state, 0, nb) + (t >> 18);
		return nb;
	}

	/* After 'more' bits: puts the word that they fill up.  'before' is what 'last' was. */
	__device__ __forceinline__ void flush(uint32_t before, uint32_t more)
	{
		uint32_t now = at + more;
		uint32_t word = __funnelshift_l(__funnelshift_r(0, before, more), last, now);
		if ((now ^ at) & 32) {
			lade_ans_save(to, word);
			to += 128;
		}
		at = now;
	}

	/*
	 * The lane's last symbol only chooses the state, its first one.  The lowest state that the
	 * symbol takes all its bits from leads there, and the bits are 0: they are taken back.  So
	 * the first flush puts a word, in the row before the first.
	 */
	__device__ __forceinline__ void open(uint32_t entry, uint32_t states)
	{
		uint32_t v = entry << 14, most = ((v >> 14) + 2 * states - 1) >> 12 & 15;
		state = (most << 12) - (v >> 14);
		last = 0;
		at = 0 - most;
	}

	/* The state, and the last word; gives the halves, and two more where 'rows' do not hold them. */
	__device__ __forceinline__ uint32_t close(lade_ans_at begin, uint32_t bits, uint32_t rows)
	{
		uint32_t before = last;
		last = __funnelshift_r(last, state, bits + 1);
		flush(before, bits + 1);
		uint32_t full = (uint32_t)(to - begin) / 128, have = at & 31;
		if (have)
			lade_ans_save(to, last >> (32 - have));
		return 2 * full + (have + 15) / 16 + (full >= rows ? 2 : 0);
	}
};

/* The entries of a word's four symbols, from the last to the first. */
LADE_DEVICE void lade_ans_entries(lade_ans_at symbol, uint32_t word, uint32_t entry[4])
{
#pragma unroll
	for (int i = 0; i < 4; i++)
		entry[i] = lade_ans_load(symbol + 4 * (lade_ans_at)__byte_perm(word, 0, 0x4443 - i));
}

/* A plane's word of a unit, from its last symbol to its first: at most two words of bits, the first
 * one no later than at 'end'. */
LADE_DEVICE void lade_ans_put_one(lade_ans_writer *me, lade_ans_at symbol, lade_ans_at end,
                                  uint32_t word)
{
	uint32_t entry[4], before = me->last, more;
	lade_ans_entries(symbol, word, entry);
	more = me->step(entry[0]);
	more += me->step(entry[1]);
	me->flush(before, more);
	before = me->last;
	more = me->step(entry[2]);
	more += me->step(entry[3]);
	me->flush(before, more);
	me->to = me->to < end ? me->to : end;
}

/* The same of four units, for symbols that take at most 10 bits: three of these fit between flushes. */
LADE_DEVICE void lade_ans_put_sixteen(lade_ans_writer *me, lade_ans_at symbol, lade_ans_at end,
                                      const uint32_t word[4])
{
	uint32_t entry[16], before = me->last, more = 0;
	lade_ans_entries(symbol, word[0], entry);
#pragma unroll
	for (int i = 0; i < 16; i++) {
		/* The next word's, four symbols ahead. */
		if (i % 4 == 0 && i < 12)
			lade_ans_entries(symbol, word[i / 4 + 1], entry + i + 4);
		more += me->step(entry[i]);
		if (i % 3 == 2 || i == 15) {
			me->flush(before, more);
			before = me->last;
			more = 0;
		}
		if (i == 8)
			me->to = me->to < end ? me->to : end;
	}
	me->to = me->to < end ? me->to : end;
}

/* Where a warp works: tables and columns in shared memory. */
struct lade_ans_desk {
	lade_ans_at symbol, columns;
	uint32_t rows; /* of the columns, before which there is one more, and behind which 3 */
};

/* ---- sub-blocks ------------------------------------------------------------------------- */

/* From shared memory, aligned to 16, by a whole warp. */
LADE_DEVICE void lade_ans_put_shared(uint8_t *dst, const uint8_t *from, uint32_t size, uint32_t lane)
{
	if (!((uintptr_t)dst & 15)) {
		for (uint32_t i = lane; i < size / 16; i += 32)
			((uint4 *)dst)[i] = ((const uint4 *)from)[i];
		for (uint32_t i = (size & ~15u) + lane; i < size; i += 32)
			dst[i] = from[i];
	} else if (!((uintptr_t)dst & 3)) {
		for (uint32_t i = lane; i < size / 4; i += 32)
			((uint32_t *)dst)[i] = ((const uint32_t *)from)[i];
		for (uint32_t i = (size & ~3u) + lane; i < size; i += 32)
			dst[i] = from[i];
	} else {
		for (uint32_t i = lane; i < size; i += 32)
			dst[i] = from[i];
	}
}

/* What a warp has of its sub-block: a lane's halves in its column, and all lanes' numbers. */
struct lade_ans_made {
	uint32_t kind, size; /* in bytes, without raw planes */
	uint32_t halves, least, most;
};

/* What the lanes' halves come to, for a whole warp. */
LADE_DEVICE lade_ans_made lade_ans_measure(uint32_t halves)
{
	lade_ans_made made;
	made.halves = halves;
	made.least = __reduce_min_sync(LADE_FULL, halves) & ~1u;
	made.most = __reduce_max_sync(LADE_FULL, halves);
	made.kind = made.most - made.least < 16 ? ANS_NARROW : ANS_WIDE;
	made.size = 2 * lade_ans_sum(halves) + (made.kind == ANS_NARROW ? 16 : 32);
	return made;
}

/*
 * Writes lengths, full rows, and ragged rows, by a whole warp.  'columns' are the warp's.
 */
LADE_DEVICE void lade_ans_put_lanes(uint8_t *dst, const uint32_t *columns,
                                       const lade_ans_made made, uint32_t lane)
{
	dst = lade_global(dst);
	uint32_t d = made.halves - made.least, below = (1u << lane) - 1;
	uint32_t next = __shfl_down_sync(LADE_FULL, d, 1);
	if (made.kind == ANS_WIDE)
		dst[lane] = (uint8_t)d;
	else if (!(lane & 1))
		dst[lane / 2] = (uint8_t)(d | next << 4);
	dst += made.kind == ANS_WIDE ? 32 : 16;
	lade_ans_put_shared(dst, (const uint8_t *)columns, 64 * made.least, lane);
	dst += 64 * made.least;
	bool even = !((uintptr_t)dst & 1);
	for (uint32_t r = made.least; r < made.most; r += 2) {
		bool some = made.halves > r, both = made.halves > r + 1;
		uint32_t low = __ballot_sync(LADE_FULL, some), high = __ballot_sync(LADE_FULL, both);
		uint32_t at = (uint32_t)__popc(low & below) + (uint32_t)__popc(high & below);
		uint32_t word = some ? columns[16 * r + lane] : 0;
		uint8_t *to = dst + 2 * at;
		if (even) {
			if (some)
				*(uint16_t *)to = (uint16_t)word;
			if (both)
				*(uint16_t *)(to + 2) = (uint16_t)(word >> 16);
		} else {
			for (uint32_t b = 0; b < (both ? 4u : some ? 2u : 0u); b++)
				to[b] = (uint8_t)(word >> 8 * b);
		}
		dst += 2 * (__popc(low) + __popc(high));
	}
}

/* A word at any address. */
LADE_DEVICE void lade_ans_put_word(uint8_t *dst, uint32_t value)
{
	for (int b = 0; b < 4; b++)
		dst[b] = (uint8_t)(value >> 8 * b);
}

/* ---- chunks ----------------------------------------------------------------------------- */

/* Where things are in the encoded chunk, in bytes. */
template <int W> LADE_DEVICE uint32_t lade_ans_directory()
{
	return (ANS_AT_PLANES + 2 * W + 3) & ~3u;
}

template <int W> LADE_DEVICE uint32_t lade_ans_tables(const lade_ans_plan &p)
{
	return lade_ans_directory<W>() + 4 * (p.block_count + 1);
}

/* Where the first sub-block is, in 16 bytes. */
template <int W>
LADE_DEVICE uint32_t lade_ans_body(const lade_ans_memory &r, const lade_ans_plan &p, uint32_t lane)
{
	bool coded = r.facts->choice.coded >> lane & 1;
	return (lade_ans_tables<W>(p) + 4 * lade_ans_sum(coded ? r.facts->word[lane & 7] : 0) + 15) /
	       16;
}

/* Whether so much is less than the raw chunk, and fits. */
LADE_DEVICE bool lade_ans_fits(const lade_ans_plan &p, uint64_t at)
{
	return 16 * at + p.tail <= p.limit - (p.limit == ANS_HEADER + p.size);
}

/* Whether a sub-block is stored, which is its kind; gives its bytes.  For a whole warp. */
template <int W>
LADE_DEVICE uint32_t lade_ans_settle(const lade_ans_memory &r, const lade_ans_desk &desk,
                                     const lade_ans_choice &c, lade_ans_made *made, uint32_t units,
                                     uint32_t lane)
{
	uint32_t size = (uint32_t)__popc((int)c.raw) * 4 * units + made->size;
	if (made->most > 2 * desk.rows || size >= 4 * W * units) {
		made->kind = ANS_STORED;
		return 4 * W * units;
	}
	if (lane == 0)
		atomicMax(&r.facts->rows, (made->most + 1) / 2);
	return size;
}

/* The place of the warp's sub-block, in 16 bytes; the next one is at 'at' afterwards.  By a whole
 * block. */
LADE_DEVICE uint32_t lade_ans_place(const lade_ans_memory &r, uint32_t *at, uint32_t size)
{
	uint32_t warp = threadIdx.x / 32, lane = lade_lane();
	if (lane == 0)
		r.facts->size[warp] = (size + 15) / 16;
	__syncthreads();
	uint32_t mine = lane < blockDim.x / 32 ? r.facts->size[lane] : 0;
	uint32_t off = *at + lade_ans_sum(lane < warp ? mine : 0);
	*at += lade_ans_sum(mine);
	return off;
}

/* A sub-block's entry of the directory; gives where it goes. */
template <int W>
LADE_DEVICE uint8_t *lade_ans_put_entry(const lade_ans_plan &p, uint32_t i, uint32_t off,
                                        uint32_t kind, uint32_t lane)
{
	uint8_t *dst = lade_global(p.dst);
	if (lane == 0)
		lade_ans_put_word(dst + lade_ans_directory<W>() + 4 * i, off | kind << ANS_OFF_BITS);
	return dst + (size_t)16 * off;
}

/* Writes what stands before the sub-blocks, but for the directory, by at least 64 threads. */
template <int W>
LADE_DEVICE void lade_ans_put_head(const lade_ans_memory &r, const lade_ans_plan &p,
                                   uint32_t end)
{
	constexpr uint32_t width_log = W == 1 ? 0 : W == 2 ? 1 : W == 4 ? 2 : 3;
	const lade_ans_choice &c = r.facts->choice;
	uint32_t at = lade_ans_tables<W>(p), i = threadIdx.x;
	const uint32_t *text = lade_ans_text(r, (uint32_t)__popc((int)c.coded), 0);
	uint8_t *dst = lade_global(p.dst);
#pragma unroll
	for (uint32_t n = 0; n < W; n++) {
		if (!(c.coded >> n & 1))
			continue;
		if (i < r.facts->word[n])
			lade_ans_put_word(dst + at + 4 * i, text[i]);
		at += 4 * r.facts->word[n];
		text += 64;
	}
	if (i < (16 - (at & 15)) % 16)
		dst[at + i] = 0;
	if (i < p.tail)
		dst[16 * end + i] = p.src[p.size - p.tail + i];
	/* A byte each. */
	uint32_t n = (i - ANS_AT_PLANES) / 2, value = 0;
	if (i < 4)
		value = (ANS_VERSION | ANS_CODED << 8 | width_log << 16 |
		         (p.crossed ? ANS_CROSSED << 16 : 0) | p.block_log << 24) >> 8 * i;
	else if (i < ANS_AT_ROWS)
		value = p.size >> 8 * (i - ANS_AT_SIZE);
	else if (i < ANS_AT_PLANES)
		value = i == ANS_AT_ROWS ? r.facts->rows : c.bits;
	else if (n < W)
		value = i & 1 ? r.facts->word[n] : r.facts->mode[n];
	if (i < lade_ans_directory<W>())
		dst[i] = (uint8_t)value;
	if (i == 0)
		lade_ans_put_word(dst + lade_ans_tables<W>(p) - 4, end);
}

/* A chunk that repeats one element, whose bytes are the planes' values; 0: its tail does not, or it
 * would pass the limit. */
template <int W>
LADE_DEVICE uint32_t lade_ans_put_constant(const lade_ans_memory &r, const lade_ans_plan &p)
{
	constexpr uint32_t width_log = W == 1 ? 0 : W == 2 ? 1 : W == 4 ? 2 : 3;
	uint32_t at = p.size - p.tail + threadIdx.x;
	bool other = threadIdx.x < p.tail && p.src[at] != r.facts->word[at % W];
	if (__syncthreads_or(other) || p.limit < ANS_HEADER)
		return 0;
	if (threadIdx.x == 0) {
		lade_ans_put_word(p.dst, ANS_VERSION | ANS_CONSTANT << 8 | width_log << 16);
		lade_ans_put_word(p.dst + ANS_AT_SIZE, p.size);
		for (uint32_t n = 0; n < 8; n++)
			p.dst[ANS_AT_VALUE + n] = n < W ? (uint8_t)r.facts->word[n % W] : 0;
	}
	return ANS_HEADER;
}

/* The chunk as it is, by a whole block. */
template <int W> LADE_DEVICE void lade_ans_put_stored(const lade_ans_plan &p)
{
	constexpr uint32_t width_log = W == 1 ? 0 : W == 2 ? 1 : W == 4 ? 2 : 3;
	uint32_t warps = blockDim.x / 32;
	uint32_t share = ((p.size + warps - 1) / warps + 127) & ~127u;
	uint64_t begin = (uint64_t)share * (threadIdx.x / 32);
	if (begin < p.size)
		lade_ans_copy(p.dst + ANS_HEADER + begin, p.src + begin,
		              p.size - begin < share ? p.size - (uint32_t)begin : share, lade_lane());
	if (threadIdx.x == 0) {
		lade_ans_put_word(p.dst, ANS_VERSION | ANS_RAW << 8 | width_log << 16);
		lade_ans_put_word(p.dst + ANS_AT_SIZE, p.size);
		lade_ans_put_word(p.dst + ANS_AT_VALUE, 0);
		lade_ans_put_word(p.dst + ANS_AT_VALUE + 4, 0);
	}
}

/* What a chunk without a coded form gets, and its result, by a whole block, which then may go on. */
template <int W>
LADE_DEVICE void lade_ans_finish(const lade_gpu_batch &batch, const lade_ans_taken &t, uint32_t done)
{
	uint32_t status = t.status, most = ANS_HEADER + t.plan.size;
	if (status == LADE_GPU_OK && !done) {
		if (most <= t.plan.limit)
			lade_ans_put_stored<W>(t.plan);
		else
			status = LADE_GPU_NOSPACE;
		done = most;
	}
	__syncthreads();
	if (threadIdx.x == 0)
		lade_chunk_put(batch, t.i, status, done);
}

#endif
