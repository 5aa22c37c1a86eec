/*
 * ans_put.cuh: how warps of the encoder of ANS (docs/format/ans.md, sections 5 and 7) encode
 * symbols, and write sub-blocks, headers and directories.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_ANS_PUT_CUH
#define LADE_CUDA_ANS_PUT_CUH

#include "codec/ans/kernels/ans_count.cuh"

/* ---- lanes ------------------------------------------------------------------------------ */

/*
 * A lane: 'last' has the 32 newest bits of its string, the newest one highest; 'at' counts bits, of
 * which the low 6 bits matter. 'to' is where the next word goes: words go down, a row each, so that
 * a column can overwrite the symbols that it encodes.
 */
struct lade_ans_writer {
	lade_ans_address to;
	uint32_t state, last, at, mask;

	/* Encodes a symbol; returns the number of bits, plus multiples of 64. */
	__device__ __forceinline__ uint32_t step(uint32_t entry)
	{
		uint32_t t = entry + state, nb = t >> 12;
		last = __funnelshift_r(last, state, nb);
		state = __funnelshift_r(state, 0, nb) + (t >> 18);
		return nb;
	}

	/* After 'more' bits: stores the word if they fill it.  'before' is 'last' before them. */
	__device__ __forceinline__ void flush(uint32_t before, uint32_t more)
	{
		uint32_t now = at + more;
		uint32_t word = __funnelshift_l(__funnelshift_r(0, before, more), last, now);
		if ((now ^ at) & 32) {
			lade_ans_store_shared(to, word);
			to -= 128;
		}
		at = now;
	}

	/*
	 * The lane's last symbol only sets the initial state: the one that a step from the symbol's
	 * frequency leads to without bits.  'mask' removes the bits from its entry.
	 */
	__device__ __forceinline__ void open(uint32_t entry, uint32_t states)
	{
		uint32_t low = entry << 14 >> 14, most = (low + 2 * states - 1) >> 12;
		state = ((most << 12) - low) >> most;
		last = 0;
		at = 0;
		mask = ~0x3FFFFu;
	}

	/* The state, and the last word; gives the halves, and two more where 'rows' do not hold
	 * them. */
	__device__ __forceinline__ uint32_t close(lade_ans_address begin, uint32_t bits,
	                                          uint32_t rows)
	{
		uint32_t before = last;
		last = __funnelshift_r(last, state, bits + 1);
		flush(before, bits + 1);
		uint32_t full = (uint32_t)(begin - to) / 128, have = at & 31;
		if (have)
			lade_ans_store_shared(to, last >> (32 - have));
		return 2 * full + (have + 15) / 16 + (full >= rows ? 2 : 0);
	}
};

/* The entries of a word's four symbols, from the last to the first. */
LADE_DEVICE void lade_ans_entries(lade_ans_address symbol, uint32_t word, uint32_t entry[4])
{
#pragma unroll
	for (int i = 0; i < 4; i++)
		entry[i] = lade_ans_load(symbol +
		                         4 * (lade_ans_address)__byte_perm(word, 0, 0x4443 - i));
}

/* Encodes a plane's word of a unit, from its last symbol to its first: at most two words of bits.
 * 'to' never goes below 'end'. */
LADE_DEVICE void lade_ans_put_one(lade_ans_writer *me, lade_ans_address symbol,
                                  lade_ans_address end, uint32_t word)
{
	uint32_t entry[4], before = me->last, more;
	lade_ans_entries(symbol, word, entry);
	more = me->step(entry[0] & me->mask);
	me->mask = ~0u;
	more += me->step(entry[1]);
	me->flush(before, more);
	before = me->last;
	more = me->step(entry[2]);
	more += me->step(entry[3]);
	me->flush(before, more);
	me->to = me->to > end ? me->to : end;
}

/* The same of four units, for symbols that take at most 10 bits: three of these fit between
 * flushes. */
LADE_DEVICE void lade_ans_put_sixteen(lade_ans_writer *me, const lade_ans_address symbol[4],
                                      lade_ans_address end, const uint32_t word[4])
{
	uint32_t entry[16], before = me->last, more = 0;
	lade_ans_entries(symbol[0], word[0], entry);
	entry[0] &= me->mask;
	me->mask = ~0u;
#pragma unroll
	for (int i = 0; i < 16; i++) {
		/* The next word's, four symbols ahead. */
		if (i % 4 == 0 && i < 12)
			lade_ans_entries(symbol[i / 4 + 1], word[i / 4 + 1], entry + i + 4);
		more += me->step(entry[i]);
		if (i % 3 == 2 || i == 15) {
			me->flush(before, more);
			before = me->last;
			more = 0;
		}
		if (i == 8)
			me->to = me->to > end ? me->to : end;
	}
	me->to = me->to > end ? me->to : end;
}

/*
 * A warp's tables, and the first row of its columns, in shared memory.  The columns have 'rows',
 * and three more below, whose words are not used.
 */
struct lade_ans_columns {
	lade_ans_address symbol;
	const uint32_t *top;
	uint32_t rows;
};

/* ---- sub-blocks ------------------------------------------------------------------------- */

/* A word at any address. */
LADE_DEVICE void lade_ans_put_word(uint8_t *dst, uint32_t value)
{
	for (int b = 0; b < 4; b++)
		dst[b] = (uint8_t)(value >> 8 * b);
}

/* Writes rows of 32 words that are 'step' words apart in shared memory, up to 'size' bytes, which
 * are a multiple of 4, by a whole warp.  WORDS: 'dst' is aligned to 4. */
template <bool WORDS>
LADE_DEVICE void lade_ans_put_rows(uint8_t *dst, const uint32_t *from, int32_t step, uint32_t size,
                                   uint32_t lane)
{
	dst = lade_global(dst);
	if (((uintptr_t)dst | size) & 15) {
		from += lane;
#pragma unroll 1
		for (uint32_t at = 4 * lane; at < size; at += 128, from += step) {
			if (WORDS || !((uintptr_t)dst & 3))
				*(uint32_t *)(dst + at) = *from;
			else
				lade_ans_put_word(dst + at, *from);
		}
		return;
	}
	from += step * (int32_t)(lane / 8) + 4 * (int32_t)(lane & 7);
	dst += 16 * lane;
	uint32_t at = 16 * lane;
#pragma unroll 1
	for (; at + 512 < size; at += 1024, dst += 1024, from += 8 * step) {
		uint4 one = *(const uint4 *)from, two = *(const uint4 *)(from + 4 * step);
		*(uint4 *)dst = one;
		*(uint4 *)(dst + 512) = two;
	}
	if (at < size)
		*(uint4 *)dst = *(const uint4 *)from;
}

/* An encoded sub-block: the halves in the lane's column, and the least and most of all lanes. */
struct lade_ans_encoded {
	uint32_t kind, size; /* in bytes, without raw planes */
	uint32_t halves, least, most;
};

/* The sub-block's size from the lanes' halves, by a whole warp. */
LADE_DEVICE lade_ans_encoded lade_ans_measure(uint32_t halves)
{
	lade_ans_encoded encoded;
	encoded.halves = halves;
	encoded.least = __reduce_min_sync(LADE_FULL, halves) & ~1u;
	encoded.most = __reduce_max_sync(LADE_FULL, halves);
	encoded.kind = encoded.most - encoded.least < 16 ? ANS_NARROW : ANS_WIDE;
	encoded.size = 2 * lade_ans_sum(halves) + (encoded.kind == ANS_NARROW ? 16 : 32);
	return encoded;
}

/* Writes lengths, full rows, and ragged rows, by a whole warp, from columns below 'top'.  WORDS:
 * 'dst' is aligned to 4. */
template <bool WORDS>
LADE_DEVICE void lade_ans_put_lanes(uint8_t *dst, const uint32_t *top,
                                    const lade_ans_encoded encoded, uint32_t lane)
{
	dst = lade_global(dst);
	uint32_t d = encoded.halves - encoded.least, below = (1u << lane) - 1;
	uint32_t next = __shfl_down_sync(LADE_FULL, d, 1);
	if (encoded.kind == ANS_WIDE)
		dst[lane] = (uint8_t)d;
	else if (!(lane & 1))
		dst[lane / 2] = (uint8_t)(d | next << 4);
	dst += encoded.kind == ANS_WIDE ? 32 : 16;
	lade_ans_put_rows<WORDS>(dst, top, -32, 64 * encoded.least, lane);
	dst += 64 * encoded.least;
	top += lane;
	top -= 16 * encoded.least;
	bool even = WORDS || !((uintptr_t)dst & 1);
	for (uint32_t r = encoded.least; r < encoded.most; r += 2, top -= 32) {
		bool some = encoded.halves > r, both = encoded.halves > r + 1;
		uint32_t low = __ballot_sync(LADE_FULL, some),
			 high = __ballot_sync(LADE_FULL, both);
		uint32_t at = (uint32_t)__popc(low & below) + (uint32_t)__popc(high & below);
		uint32_t word = some ? *top : 0;
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

/* ---- chunks ----------------------------------------------------------------------------- */

/* Where things are in the encoded chunk, in bytes. */
template <int W> LADE_DEVICE uint32_t lade_ans_directory()
{
	return (ANS_AT_PLANES + 2 * W + 3) & ~3u;
}

template <int W> LADE_DEVICE uint32_t lade_ans_tables(const lade_ans_chunk &p)
{
	return lade_ans_directory<W>() + 4 * (p.block_count + 1);
}

/* Where the first sub-block is, in 16 bytes. */
template <int W>
LADE_DEVICE uint32_t lade_ans_body(const lade_ans_memory &r, const lade_ans_chunk &p, uint32_t lane)
{
	bool coded = r.state->choice.coded >> lane & 1;
	return (lade_ans_tables<W>(p) + 4 * lade_ans_sum(coded ? r.state->word[lane & 7] : 0) +
	        15) /
	       16;
}

/* Whether a chunk that ends at 'at', in 16 bytes, is smaller than the raw one and within the
 * limit. */
LADE_DEVICE bool lade_ans_fits(const lade_ans_chunk &p, uint64_t at)
{
	return 16 * at + p.tail <= p.limit - (p.limit == ANS_HEADER + p.size);
}

/* Sets the sub-block's kind to ANS_STORED if coding does not make it smaller; returns its bytes. */
template <int W>
LADE_DEVICE uint32_t lade_ans_size_or_store(const lade_ans_columns &columns,
                                            const lade_ans_choice &c, lade_ans_encoded *encoded,
                                            uint32_t units)
{
	uint32_t size = (uint32_t)__popc((int)c.raw) * 4 * units + encoded->size;
	/* A length has 8 bits beside the full rows. */
	if (encoded->most > 2 * columns.rows || encoded->most - encoded->least > 255 ||
	    size >= 4 * W * units) {
		encoded->kind = ANS_STORED;
		encoded->most = 0;
		return 4 * W * units;
	}
	return size;
}

/* Where the warp's sub-blocks go, in 16 bytes like their 'size', by a whole block.  '*at' moves
 * behind those of all warps, and '*rows' becomes the maximum of all warps. */
LADE_DEVICE uint32_t lade_ans_place(const lade_ans_memory &r, uint32_t *at, uint32_t *rows,
                                    uint32_t size)
{
	uint32_t thread = lade_ans_thread(), warp = thread / 32, lane = thread & 31;
	if (lane == 0)
		r.state->size[warp] = *rows << 16 | size;
	__syncthreads();
	uint32_t mine = lane < blockDim.x / 32 ? r.state->size[lane] : 0;
	*rows = __reduce_max_sync(LADE_FULL, mine) >> 16;
	mine &= 0xFFFF;
	uint32_t off = *at + lade_ans_sum(lane < warp ? mine : 0);
	*at += lade_ans_sum(mine);
	return off;
}

/* Writes a sub-block's entry of the directory; returns where the sub-block goes. */
template <int W>
LADE_DEVICE uint8_t *lade_ans_put_entry(const lade_ans_chunk &p, uint32_t i, uint32_t off,
                                        uint32_t kind, uint32_t lane)
{
	uint8_t *dst = lade_global(p.dst), *to = dst + (size_t)16 * off;
	off |= kind << ANS_OFF_BITS;
	if (lane < 4)
		dst[lade_ans_directory<W>() + 4 * i + lane] = (uint8_t)(off >> 8 * lane);
	return to;
}

/* Writes the header, the tables' descriptions and the tail, by at least 64 threads. */
template <int W>
LADE_DEVICE void lade_ans_put_head(const lade_ans_memory &r, const lade_ans_chunk &p, uint32_t rows,
                                   uint32_t end)
{
	constexpr uint32_t width_log = W == 1 ? 0 : W == 2 ? 1 : W == 4 ? 2 : 3;
	const lade_ans_choice &c = r.state->choice;
	uint32_t at = lade_ans_tables<W>(p), i = lade_ans_thread();
	const uint32_t *text = lade_ans_description(r, (uint32_t)__popc((int)c.coded), 0);
	uint8_t *dst = lade_global(p.dst);
#pragma unroll
	for (uint32_t n = 0; n < W; n++) {
		if (!(c.coded >> n & 1))
			continue;
		if (i < r.state->word[n])
			lade_ans_put_word(dst + at + 4 * i, text[i]);
		at += 4 * r.state->word[n];
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
		value = i == ANS_AT_ROWS ? rows : c.bits;
	else if (n < W)
		value = i & 1 ? r.state->word[n] : r.state->mode[n];
	if (i < lade_ans_directory<W>())
		dst[i] = (uint8_t)value;
	if (i == 0)
		lade_ans_put_word(dst + lade_ans_tables<W>(p) - 4, end);
}

/* Writes a chunk that repeats one element, whose bytes are the planes' values; 0: its tail differs,
 * or it would exceed the limit. */
template <int W>
LADE_DEVICE uint32_t lade_ans_put_constant(const lade_ans_memory &r, const lade_ans_chunk &p)
{
	constexpr uint32_t width_log = W == 1 ? 0 : W == 2 ? 1 : W == 4 ? 2 : 3;
	uint32_t at = p.size - p.tail + threadIdx.x;
	bool other = threadIdx.x < p.tail && p.src[at] != r.state->word[at % W];
	if (__syncthreads_or(other) || p.limit < ANS_HEADER)
		return 0;
	if (threadIdx.x == 0) {
		lade_ans_put_word(p.dst, ANS_VERSION | ANS_CONSTANT << 8 | width_log << 16);
		lade_ans_put_word(p.dst + ANS_AT_SIZE, p.size);
		for (uint32_t n = 0; n < 8; n++)
			p.dst[ANS_AT_VALUE + n] = n < W ? (uint8_t)r.state->word[n % W] : 0;
	}
	return ANS_HEADER;
}

/* Writes the chunk as it is, by a whole block. */
template <int W> LADE_DEVICE void lade_ans_put_stored(const lade_ans_chunk &p)
{
	constexpr uint32_t width_log = W == 1 ? 0 : W == 2 ? 1 : W == 4 ? 2 : 3;
	uint32_t warps = blockDim.x / 32;
	uint32_t share = ((p.size + warps - 1) / warps + 127) & ~127u;
	uint64_t begin = (uint64_t)share * (threadIdx.x / 32);
	if (begin < p.size)
		lade_ans_copy(p.dst + ANS_HEADER + begin, p.src + begin,
		              p.size - begin < share ? p.size - (uint32_t)begin : share,
		              lade_lane());
	if (threadIdx.x == 0) {
		lade_ans_put_word(p.dst, ANS_VERSION | ANS_RAW << 8 | width_log << 16);
		lade_ans_put_word(p.dst + ANS_AT_SIZE, p.size);
		lade_ans_put_word(p.dst + ANS_AT_VALUE, 0);
		lade_ans_put_word(p.dst + ANS_AT_VALUE + 4, 0);
	}
}

/* Stores the chunk if it was not coded, and reports the result, by a whole block. */
template <int W>
LADE_DEVICE void lade_ans_finish(const lade_gpu_batch &batch, const lade_ans_current &t,
                                 uint32_t done)
{
	uint32_t status = t.status, most = ANS_HEADER + t.chunk.size;
	if (status == LADE_GPU_OK && !done) {
		if (most <= t.chunk.limit)
			lade_ans_put_stored<W>(t.chunk);
		else
			status = LADE_GPU_NOSPACE;
		done = most;
	}
	if (threadIdx.x == 0)
		lade_encoded_put(batch, t.i, status, done);
}

#endif
