/*
 * ans_encode.cu: makes chunks of the ANS format (docs/format/ans.md, section 7).
 *
 * A block makes a chunk: it counts the bytes of each position, makes tables, and then each warp
 * encodes a sub-block into shared memory, from its last symbols to its first, until it is known
 * where the sub-blocks go.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/ans.cuh"

#define LADE_ANS_WARPS 8 /* of a block; at least as many as planes */

/* What a block encodes a chunk by, the same for all of its threads. */
struct lade_ans_plan {
	const uint8_t *src;
	uint8_t *dst;
	uint32_t size, limit; /* decoded bytes; the most encoded ones */
	uint32_t width_log, block_log, bits, block_count, tail;
	uint32_t modes; /* of the planes, 4 bits each */
	uint64_t value; /* of the constant planes, or words of the coded ones' tables */
	uint32_t coded, raw, slot;
};

/* ---- bytes ------------------------------------------------------------------------------ */

/* A word at any address. */
LADE_ANS_APART uint32_t lade_ans_word_at(const uint8_t *from)
{
	uint32_t value = 0;
	for (int b = 0; b < 4; b++)
		value |= (uint32_t)__ldg(from + b) << 8 * b;
	return value;
}

/* The planes of the unit at 'from': word p has byte p of the 4 elements. */
template <int W> LADE_DEVICE void lade_ans_planes_of(const uint8_t *from, uint32_t *plane)
{
	uint32_t word[W];
	if (!((uintptr_t)from & (W < 4 ? 4 * W - 1 : 15))) {
		if (W == 1)
			word[0] = __ldg((const uint32_t *)from);
		for (int k = 0; W > 1 && k < W; k += 2) {
			uint2 two = __ldg((const uint2 *)(from + 4 * k));
			word[k % W] = two.x;
			word[(k + 1) % W] = two.y;
		}
	} else {
		for (int k = 0; k < W; k++)
			word[k] = lade_ans_word_at(from + 4 * k);
	}
	if (W == 1)
		plane[0] = word[0];
	if (W == 2) {
		plane[0] = __byte_perm(word[0], word[1 % W], 0x6420);
		plane[1 % W] = __byte_perm(word[0], word[1 % W], 0x7531);
	}
	/* Four planes of 4 elements, whose words lie 'step' apart. */
	constexpr int step = W / 4 ? W / 4 : 1;
#pragma unroll
	for (int h = 0; h < W / 4; h++) {
		uint32_t a = __byte_perm(word[h], word[(h + step) % W], 0x5140);
		uint32_t b = __byte_perm(word[h], word[(h + step) % W], 0x7362);
		uint32_t c = __byte_perm(word[(h + 2 * step) % W], word[(h + 3 * step) % W], 0x5140);
		uint32_t d = __byte_perm(word[(h + 2 * step) % W], word[(h + 3 * step) % W], 0x7362);
		plane[(4 * h) % W] = __byte_perm(a, c, 0x5410);
		plane[(4 * h + 1) % W] = __byte_perm(a, c, 0x7632);
		plane[(4 * h + 2) % W] = __byte_perm(b, d, 0x5410);
		plane[(4 * h + 3) % W] = __byte_perm(b, d, 0x7632);
	}
}

/* Adds up the planes' bytes: 8 KiB of counts are 8 / W copies, of which each warp has one. */
template <int W> LADE_DEVICE void lade_ans_count(const lade_ans_plan &p, uint32_t *count)
{
	uint32_t units = (p.size - p.tail) / (4 * W);
	uint32_t *own = count + 256 * W * (threadIdx.x / 32 % (8 / W));
	for (uint32_t u = threadIdx.x; u < units; u += blockDim.x) {
		uint32_t plane[W];
		lade_ans_planes_of<W>(p.src + (size_t)4 * W * u, plane);
#pragma unroll
		for (int k = 0; k < W; k++)
			for (int b = 0; b < 32; b += 8)
				atomicAdd(&own[256 * k + (plane[k] >> b & 0xFF)], 1u);
	}
}

/* ---- frequencies ------------------------------------------------------------------------ */

/* log2 in 1/65536, to 0.001: a cubic between the powers of two. */
LADE_DEVICE uint32_t lade_ans_log2(uint32_t v)
{
	uint32_t q = 31 - (uint32_t)__clz((int)v);
	uint64_t m = (((uint64_t)v << 16) >> q) - 65536;
	return (q << 16) +
	       (uint32_t)(m + ((m * (65536 - m) >> 16) * (27584 - (m * 10191 >> 16)) >> 16));
}

/* Sums over the warp, of numbers whose sum fits. */
LADE_DEVICE uint32_t lade_ans_sum(uint32_t v)
{
	return __reduce_add_sync(LADE_FULL, v);
}

/* The bits that the warp's counts take, in 1/16, each with 'log' of its own in 1/65536 bits. */
LADE_DEVICE uint64_t lade_ans_bits_of(const uint32_t count[8], const uint32_t log[8])
{
	uint64_t sum = 0;
	for (int k = 0; k < 8; k++)
		sum += (uint64_t)count[k] * log[k] >> 12;
	for (uint32_t d = 16; d; d /= 2)
		sum += (uint64_t)__shfl_xor_sync(LADE_FULL, (uint32_t)sum, d) |
		       (uint64_t)__shfl_xor_sync(LADE_FULL, (uint32_t)(sum >> 32), d) << 32;
	return sum;
}

/*
 * Frequencies that sum to 1 << bits, as lade__ans_normalise() makes them: lane l has symbols 8l to
 * 8l + 7.  For a whole warp.
 */
LADE_ANS_APART void lade_ans_normalise(const uint32_t count[8], uint32_t total,
                                                         uint32_t bits, uint32_t freq[8],
                                                         uint32_t lane)
{
	uint32_t left = total, room = 1u << bits, small = 0;
	for (bool again = true; again;) {
		uint32_t lost = 0, mark = 0;
		for (int k = 0; k < 8; k++) {
			if (!count[k] || small >> k & 1 || (uint64_t)count[k] * room >= left)
				continue;
			mark |= 1u << k;
			lost += count[k];
		}
		small |= mark;
		left -= lade_ans_sum(lost);
		lost = lade_ans_sum((uint32_t)__popc(mark));
		room -= lost;
		again = lost > 0;
	}
	uint32_t sum = 0;
	for (int k = 0; k < 8; k++) {
		freq[k] = !count[k] ? 0
			  : small >> k & 1
				  ? 1
				  : (uint32_t)(((uint64_t)count[k] * room + left / 2) / left);
		sum += freq[k];
	}
	int32_t missing = (int32_t)(1u << bits) - (int32_t)lade_ans_sum(sum);
	/* Each missing part goes where it saves most; one too many is taken where it costs least. */
	for (; missing; missing += missing > 0 ? -1 : 1) {
		uint32_t best = 0, at = 0;
		for (uint32_t k = 0; k < 8; k++) {
			if (!count[k] || (missing < 0 && freq[k] == 1))
				continue;
			/* At most 2^30 / 1 counts a part, and never 0. */
			uint32_t slope = 2 * count[k] / (2 * freq[k] + (missing > 0 ? 1 : ~0u)) + 1;
			slope = missing > 0 ? slope : ~slope;
			if (slope > best) {
				best = slope;
				at = k;
			}
		}
		uint32_t most = __reduce_max_sync(LADE_FULL, best);
		uint32_t who = __ballot_sync(LADE_FULL, best == most);
		if (lane == 31 - (uint32_t)__clz((int)(who & (0 - who))))
			for (uint32_t k = 0; k < 8; k++)
				freq[k] += k != at ? 0 : missing > 0 ? 1 : ~0u;
	}
}

/* ---- tables ----------------------------------------------------------------------------- */

/* A symbol, packed: state X gives its low nb = (X + bits) >> 13 bits away, and goes to 'next' of
 * (X >> nb) + place - 2048.  | bits, signed 19 | place 13 | */
LADE_DEVICE uint32_t lade_ans_symbol(uint32_t freq, uint32_t first, uint32_t bits)
{
	uint32_t most = bits - 31 + (uint32_t)__clz((int)freq);
	return ((most << 13) - (freq << most)) << 13 | (first + 2048 - freq);
}

/* Puts the low 'size' <= 11 bits of 'value' at bit 'at' of zeroed words. */
LADE_DEVICE void lade_ans_put_bits(uint32_t *words, uint32_t at, uint32_t value, uint32_t size)
{
	if (!size)
		return;
	atomicOr(&words[at / 32], value << (at & 31));
	if ((at & 31) + size > 32)
		atomicOr(&words[at / 32 + 1], value >> (32 - (at & 31)));
}

/* A table's description (section 3), for a whole warp; gives its words. */
LADE_ANS_APART uint32_t lade_ans_describe(uint32_t *words, const uint32_t freq[8], uint32_t lane)
{
	uint32_t there = 0, taken = 0;
	words[lane] = 0;
	words[lane + 32] = 0;
	__syncwarp();
	for (uint32_t k = 0; k < 8; k++) {
		there |= (uint32_t)(freq[k] > 0) << k;
		taken += freq[k] ? 31 - (uint32_t)__clz((int)freq[k]) : 0;
	}
	uint32_t count = (uint32_t)__popc(there), upto = lade_warp_scan(count, lane);
	uint32_t end = lade_warp_scan(taken, lane);
	uint32_t begin = 8 * (32 + (__shfl_sync(LADE_FULL, upto, 31) + 1) / 2);
	uint32_t nth = upto - count, at = begin + end - taken;
	lade_ans_put_bits(words, 8 * lane, there, 8);
	for (uint32_t k = 0; k < 8; k++) {
		if (!freq[k])
			continue;
		uint32_t q = 31 - (uint32_t)__clz((int)freq[k]);
		lade_ans_put_bits(words, 256 + 4 * nth, q, 4);
		lade_ans_put_bits(words, at, freq[k] - (1u << q), q);
		nth++;
		at += q;
	}
	__syncwarp();
	return (begin + __shfl_sync(LADE_FULL, end, 31) + 31) / 32;
}

/* ---- lanes ------------------------------------------------------------------------------ */

/*
 * A lane: 'low' has 'have' bits, below 32 between flushes, that are not in its column yet; the high
 * 'bits' of 'taken' are what the symbols since the last flush gave.  'to' is where the next word goes;
 * 'end', the column's last row, takes what is too much.
 */
struct lade_ans_writer {
	lade_ans_at to, end;
	uint32_t state, low, have, taken, bits;

	/* Goes through a symbol, whose entry in its table is 'entry'; 'next' is 2048 states before the
	 * first. */
	__device__ __forceinline__ void step(uint32_t entry, lade_ans_at next)
	{
		uint32_t nb = (uint32_t)((int32_t)(state + (uint32_t)((int32_t)entry >> 13)) >> 13);
		taken = __funnelshift_r(taken, state, nb);
		bits += nb;
		uint32_t place = (state >> nb) + (entry & 0x1FFF);
		state = lade_ans_load_half(next + (lade_ans_at)(2 * place));
	}

	/* After two symbols. */
	__device__ __forceinline__ void flush()
	{
		put(__funnelshift_l(taken, 0, bits), bits);
		bits = 0;
	}

	__device__ __forceinline__ void put(uint32_t value, uint32_t size)
	{
		low |= value << have;
		uint32_t more = __funnelshift_l(value, 0, have);
		have += size;
		bool full = have >= 32;
		if (full)
			lade_ans_save(to, low);
		to += full ? 128 : 0;
		to = to < end ? to : end;
		low = full ? more : low;
		have &= 31;
	}

	/*
	 * The lane's last symbol only chooses the state, its first one.  The lowest state that the
	 * symbol takes all its bits from leads there, and the bits are 0: they are taken back.
	 */
	__device__ __forceinline__ void open(uint32_t entry, uint32_t states)
	{
		uint32_t v = (uint32_t)((int32_t)entry >> 13);
		uint32_t most = (v + 2 * states - 1) >> 13;
		state = (most << 13) - v;
		bits = 0 - most;
	}
};

/* The tables of the planes, in shared memory. */
struct lade_ans_tables {
	lade_ans_at symbol; /* 256 entries of each coded plane */
	lade_ans_at next;   /* 1 << bits states of each, 2048 of them later */
};

/* The unit at 'from', from its last symbol to its first. */
template <int W>
LADE_DEVICE void lade_ans_put_unit(const lade_ans_plan &p, const lade_ans_tables &t,
                                   lade_ans_writer *me, const uint8_t *from)
{
	uint32_t plane[W], k = p.coded;
	lade_ans_planes_of<W>(from, plane);
#pragma unroll
	for (int n = W - 1; n >= 0; n--) {
		if ((p.modes >> 4 * n & 15) != ANS_PLANE_CODED)
			continue;
		k--;
		lade_ans_at symbol = t.symbol + (lade_ans_at)(1024 * k);
		lade_ans_at next = t.next + (lade_ans_at)(2u << p.bits) * (lade_ans_at)k;
		uint32_t word = plane[n];
		uint32_t e3 = lade_ans_load(symbol + (lade_ans_at)(word >> 22 & 0x3FC));
		uint32_t e2 = lade_ans_load(symbol + (lade_ans_at)(word >> 14 & 0x3FC));
		uint32_t e1 = lade_ans_load(symbol + (lade_ans_at)(word >> 6 & 0x3FC));
		uint32_t e0 = lade_ans_load(symbol + (lade_ans_at)(word << 2 & 0x3FC));
		me->step(e3, next);
		me->step(e2, next);
		me->flush();
		me->step(e1, next);
		me->step(e0, next);
		me->flush();
	}
}

/*
 * Encodes a sub-block's 'units' into the columns, for a whole warp; gives the lane's halves.  A
 * lane for which the 'cap' rows are too few has more than they hold.
 */
template <int W>
LADE_DEVICE uint32_t lade_ans_put_units(const lade_ans_plan &p, const lade_ans_tables &t,
                                        const uint8_t *src, uint32_t units, uint32_t *columns,
                                        uint32_t cap, uint32_t lane)
{
	lade_ans_writer me = {};
	uint32_t rows = units / 32, last = 4 * W - 1;
	if (((lane + rows) & 31) < units % 32)
		rows++;
	if (!rows)
		return 0;
	me.to = lade_ans_at_of(columns + lane);
	me.end = me.to + (lade_ans_at)(128 * cap);
	/* The last coded plane's byte of the lane's last element. */
	for (int n = 0; n < W; n++)
		last = (p.modes >> 4 * n & 15) == ANS_PLANE_CODED ? (uint32_t)(3 * W + n) : last;
	uint32_t unit = 32 * (rows - 1) + ((lane + rows - 1) & 31);
	uint32_t symbol = __ldg(src + (size_t)4 * W * unit + last);
	me.open(lade_ans_load(t.symbol + (lade_ans_at)(1024 * (p.coded - 1) + 4 * symbol)),
	        1u << p.bits);
	for (uint32_t g = rows; g-- > 0;)
		lade_ans_put_unit<W>(p, t, &me,
		                     src + (size_t)4 * W * (32 * g + ((lane + g) & 31)));
	me.put(me.state, p.bits + 1);
	uint32_t row = (uint32_t)(me.to - lade_ans_at_of(columns + lane)) / 128;
	if (me.have)
		lade_ans_save(me.to, me.low);
	return 2 * row + (me.have + 15) / 16 + (row == cap ? 2 : 0);
}

/* ---- sub-blocks ------------------------------------------------------------------------- */

/* What a warp has of its sub-block in shared memory: 'size' bytes behind the raw planes, from
 * 'bytes' on. */
struct lade_ans_made {
	uint8_t *bytes;
	uint32_t size, kind;
};

/*
 * Packs the lanes' columns, which begin 32 bytes behind 'room': lengths before them, and ragged rows
 * behind the full ones.  In place, as a row goes at or before where it was.
 */
LADE_ANS_APART lade_ans_made lade_ans_pack(uint8_t *room, uint32_t halves, uint32_t lane)
{
	uint32_t *columns = (uint32_t *)(room + 32);
	uint32_t least = __reduce_min_sync(LADE_FULL, halves);
	uint32_t most = __reduce_max_sync(LADE_FULL, halves), full = least / 2;
	uint32_t d = halves - 2 * full, below = (1u << lane) - 1;
	uint16_t *to = (uint16_t *)(columns + 32 * full);
	lade_ans_made made = {room, 32, ANS_WIDE};
	if (most - 2 * full < 16)
		made = {room + 16, 16, ANS_NARROW};
	__syncwarp();
	for (uint32_t r = full; 2 * r < most; r++) {
		bool some = halves > 2 * r, both = halves > 2 * r + 1;
		uint32_t low = __ballot_sync(LADE_FULL, some), high = __ballot_sync(LADE_FULL, both);
		uint32_t at = (uint32_t)__popc(low & below) + (uint32_t)__popc(high & below);
		uint32_t word = some ? columns[32 * r + lane] : 0;
		__syncwarp();
		if (some)
			to[at] = (uint16_t)word;
		if (both)
			to[at + 1] = (uint16_t)(word >> 16);
		to += __popc(low) + __popc(high);
		__syncwarp();
	}
	uint32_t next = __shfl_down_sync(LADE_FULL, d, 1);
	if (made.kind == ANS_WIDE)
		made.bytes[lane] = (uint8_t)d;
	else if (!(lane & 1))
		made.bytes[lane / 2] = (uint8_t)(d | next << 4);
	made.size = (uint32_t)((uint8_t *)to - made.bytes);
	__syncwarp();
	return made;
}

/* Writes the raw planes of a sub-block, by a whole warp. */
template <int W>
LADE_DEVICE void lade_ans_put_raw(const lade_ans_plan &p, const uint8_t *src, uint32_t units,
                                  uint8_t *dst, uint32_t lane)
{
	for (uint32_t u = lane; u < units; u += 32) {
		uint32_t plane[W];
		uint8_t *to = dst + 4 * u;
		lade_ans_planes_of<W>(src + (size_t)4 * W * u, plane);
#pragma unroll
		for (int n = 0; n < W; n++) {
			if ((p.modes >> 4 * n & 15) != ANS_PLANE_RAW)
				continue;
			if (!((uintptr_t)to & 3))
				*(uint32_t *)to = plane[n];
			else
				for (int b = 0; b < 4; b++)
					to[b] = (uint8_t)(plane[n] >> 8 * b);
			to += 4 * units;
		}
	}
}

/* From shared memory, aligned to 16, by a whole warp. */
LADE_ANS_APART void lade_ans_put_shared(uint8_t *dst, const uint8_t *from, uint32_t size, uint32_t lane)
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

/* A word at any address. */
LADE_DEVICE void lade_ans_put_word(uint8_t *dst, uint32_t value)
{
	for (int b = 0; b < 4; b++)
		dst[b] = (uint8_t)(value >> 8 * b);
}

/* ---- a chunk's plan --------------------------------------------------------------------- */

/* The shared memory of a block. */
struct lade_ans_memory {
	uint8_t *dynamic;
	uint32_t bytes; /* of it */
	const uint32_t *below;
	uint32_t *mode, *word;     /* of the planes; values or words of tables */
	unsigned long long *least, *sum; /* of the coded planes, in 1/16 bits */
	uint32_t *size;            /* of the warps' sub-blocks, in 16 bytes */
	uint32_t *rows;
};

LADE_DEVICE uint32_t *lade_ans_counts(const lade_ans_memory &r)
{
	return (uint32_t *)(r.dynamic + r.bytes - 8192);
}

/* A plane's mode and frequencies, by a whole warp; 'freq' is of 1 << bits. */
LADE_ANS_APART void lade_ans_judge(const lade_ans_memory &r, uint32_t n, const uint32_t count[8],
                                uint32_t total, uint32_t bits, uint32_t freq[8], uint32_t lane)
{
	uint32_t present = 0, any = 0, log[8];
	for (uint32_t k = 0; k < 8; k++) {
		present += count[k] > 0;
		any = count[k] ? 8 * lane + k : any;
		log[k] = count[k] ? lade_ans_log2(total) - lade_ans_log2(count[k]) : 0;
	}
	present = lade_ans_sum(present);
	uint64_t least = lade_ans_bits_of(count, log), sum = least;
	/* A plane is coded where that saves 1/64 of it, and more, about its table's bits included. */
	uint64_t bits_16 = least + 16 * (256 + 7 * present);
	uint32_t mode = present == 1                        ? ANS_PLANE_CONSTANT
			: bits_16 < (uint64_t)total * 126 ? ANS_PLANE_CODED
							  : ANS_PLANE_RAW;
	any = __reduce_max_sync(LADE_FULL, any);
	if (mode == ANS_PLANE_CODED) {
		lade_ans_normalise(count, total, bits, freq, lane);
		for (uint32_t k = 0; k < 8; k++)
			log[k] = count[k] ? (bits << 16) - lade_ans_log2(freq[k]) : 0;
		sum = lade_ans_bits_of(count, log);
	}
	if (lane == 0) {
		r.mode[n] = mode;
		r.word[n] = mode == ANS_PLANE_CONSTANT ? any : 0;
		r.least[n] = mode == ANS_PLANE_CODED ? least : 0;
		r.sum[n] = mode == ANS_PLANE_CODED ? sum : 0;
	}
}

/* Where the parts of the dynamic memory are, for a plan: symbols, states, descriptions, and then
 * marks or columns. */
LADE_DEVICE uint32_t lade_ans_states_at(const lade_ans_plan &p)
{
	return 1024 * p.coded;
}

LADE_DEVICE uint32_t lade_ans_texts_at(const lade_ans_plan &p)
{
	return lade_ans_states_at(p) + 2 * (p.coded << p.bits);
}

LADE_DEVICE uint32_t lade_ans_columns_at(const lade_ans_plan &p)
{
	return lade_ans_texts_at(p) + 256 * p.coded;
}

/*
 * Counts, chooses the planes' modes and the states, and makes the tables, by a whole block.  The
 * n-th warp sees to the n-th plane.
 */
template <int W> LADE_DEVICE void lade_ans_prepare(const lade_ans_memory &r, lade_ans_plan *p)
{
	uint32_t warp = threadIdx.x / 32, lane = lade_lane(), count[8], freq[8];
	uint32_t *counts = lade_ans_counts(r);
	uint32_t total = (p->size - p->tail) / W, wanted = p->bits, bits = wanted ? wanted : 10;
	for (uint32_t i = threadIdx.x; i < 2048; i += blockDim.x)
		counts[i] = 0;
	__syncthreads();
	lade_ans_count<W>(*p, counts);
	__syncthreads();
	for (uint32_t k = 0; k < 8 && warp < W; k++) {
		count[k] = 0;
		for (uint32_t c = 0; c < 8 / W; c++)
			count[k] += counts[256 * (W * c + warp) + 8 * lane + k];
	}
	if (warp < W)
		lade_ans_judge(r, warp, count, total, bits, freq, lane);
	__syncthreads();
	uint64_t least = 0, sum = 0;
	uint32_t mine = 0; /* coded planes before this warp's */
	for (uint32_t n = 0; n < W; n++) {
		p->modes |= r.mode[n] << 4 * n;
		p->value |= (uint64_t)r.word[n] << 8 * n;
		mine += n < warp && r.mode[n] == ANS_PLANE_CODED;
		p->coded += r.mode[n] == ANS_PLANE_CODED;
		p->raw += r.mode[n] == ANS_PLANE_RAW;
		least += r.least[n];
		sum += r.sum[n];
	}
	p->bits = wanted ? wanted : sum - least > least / 200 ? 11 : 10;
	while (p->coded << p->bits > ANS_ENTRIES_MAX)
		p->bits--;
	__syncthreads();
	if (warp < W && (p->modes >> 4 * warp & 15) == ANS_PLANE_CODED) {
		lade_ans_marks *marks = (lade_ans_marks *)(r.dynamic + lade_ans_columns_at(*p));
		uint32_t *text = (uint32_t *)(r.dynamic + lade_ans_texts_at(*p)) + 64 * mine;
		uint32_t *symbol = (uint32_t *)r.dynamic + 256 * mine, first = 0;
		if (p->bits != bits)
			lade_ans_normalise(count, total, p->bits, freq, lane);
		lade_ans_mark(marks + mine, freq, p->bits, lane);
		uint32_t words = lade_ans_describe(text, freq, lane);
		for (uint32_t k = 0; k < 8; k++)
			first += freq[k];
		first = lade_warp_scan(first, lane) - first;
		for (uint32_t k = 0; k < 8; k++) {
			symbol[8 * lane + k] =
				freq[k] ? lade_ans_symbol(freq[k], first, p->bits) : 0;
			first += freq[k];
		}
		if (lane == 0)
			r.word[warp] = words;
	}
	__syncthreads();
	const lade_ans_marks *marks = (const lade_ans_marks *)(r.dynamic + lade_ans_columns_at(*p));
	uint16_t *next = (uint16_t *)(r.dynamic + lade_ans_states_at(*p));
	uint32_t states = 1u << p->bits;
	for (uint32_t e = threadIdx.x; e < p->coded << p->bits; e += blockDim.x) {
		uint32_t k = e >> p->bits;
		lade_ans_place at =
			lade_ans_place_of(marks + k, r.below, p->bits, e & (states - 1));
		next[(k << p->bits) + at.first + at.y - at.freq] = (uint16_t)(states + at.state);
	}
	__syncthreads();
}

/* ---- chunks ----------------------------------------------------------------------------- */

/* Writes what stands before the sub-blocks, but for the directory, by a whole block. */
LADE_DEVICE void lade_ans_put_head(const lade_ans_memory &r, const lade_ans_plan &p, uint32_t directory,
                                   uint32_t tables, uint32_t end)
{
	uint32_t width = 1u << p.width_log, at = tables, k = 0;
	for (uint32_t n = 0; n < width; n++) {
		if ((p.modes >> 4 * n & 15) != ANS_PLANE_CODED)
			continue;
		const uint32_t *text = (const uint32_t *)(r.dynamic + lade_ans_texts_at(p)) + 64 * k++;
		for (uint32_t i = threadIdx.x; i < r.word[n]; i += blockDim.x)
			lade_ans_put_word(p.dst + at + 4 * i, text[i]);
		at += 4 * r.word[n];
	}
	if (threadIdx.x < (16 - (at & 15)) % 16)
		p.dst[at + threadIdx.x] = 0;
	if (threadIdx.x < p.tail)
		p.dst[16 * end + threadIdx.x] = p.src[p.size - p.tail + threadIdx.x];
	if (threadIdx.x != 0)
		return;
	lade_ans_put_word(p.dst, ANS_VERSION | ANS_CODED << 8 | p.width_log << 16 |
					 p.block_log << 24);
	lade_ans_put_word(p.dst + ANS_AT_SIZE, p.size);
	p.dst[ANS_AT_ROWS] = (uint8_t)*r.rows;
	p.dst[ANS_AT_BITS] = (uint8_t)p.bits;
	for (uint32_t n = ANS_AT_PLANES; n < directory; n++)
		p.dst[n] = 0;
	for (uint32_t n = 0; n < width; n++) {
		p.dst[ANS_AT_PLANES + 2 * n] = (uint8_t)r.mode[n];
		p.dst[ANS_AT_PLANES + 2 * n + 1] = (uint8_t)r.word[n];
	}
	lade_ans_put_word(p.dst + tables - 4, end);
}

/* Encodes sub-block 'i' into the warp's columns; 'kind' ANS_STORED: that is no smaller. */
template <int W>
LADE_DEVICE lade_ans_made lade_ans_make(const lade_ans_memory &r, const lade_ans_plan &p, uint32_t i,
                                        uint32_t units, uint8_t *room, uint32_t lane)
{
	lade_ans_made made = {room, 0, ANS_NARROW};
	uint32_t bytes = 4 * W * units, cap = (p.slot - 48) / 128 - 1;
	if (p.coded) {
		lade_ans_tables t = {lade_ans_at_of(r.dynamic),
		                     lade_ans_at_of(r.dynamic + lade_ans_states_at(p)) - 4096};
		uint32_t halves = lade_ans_put_units<W>(p, t, p.src + ((size_t)i << p.block_log),
		                                        units, (uint32_t *)(room + 32), cap, lane);
		uint32_t most = (__reduce_max_sync(LADE_FULL, halves) + 1) / 2;
		made.kind = ANS_STORED;
		if (most > cap)
			return made;
		made = lade_ans_pack(room, halves, lane);
		if (lane == 0 && p.raw * 4 * units + made.size < bytes)
			atomicMax(r.rows, most);
	}
	if (p.raw * 4 * units + made.size >= bytes)
		made.kind = ANS_STORED;
	return made;
}

/* A chunk that repeats one element, whose bytes are the planes' values; 0: its tail does not, or it
 * would pass the limit. */
LADE_DEVICE uint32_t lade_ans_put_constant(const lade_ans_plan &p)
{
	uint32_t at = p.size - p.tail + threadIdx.x, mask = (1u << p.width_log) - 1;
	bool other = threadIdx.x < p.tail &&
		     p.src[at] != (uint8_t)(p.value >> 8 * (at & mask));
	if (__syncthreads_or(other) || p.limit < ANS_HEADER)
		return 0;
	if (threadIdx.x == 0) {
		lade_ans_put_word(p.dst, ANS_VERSION | ANS_CONSTANT << 8 | p.width_log << 16);
		lade_ans_put_word(p.dst + ANS_AT_SIZE, p.size);
		lade_ans_put_word(p.dst + ANS_AT_VALUE, (uint32_t)p.value);
		lade_ans_put_word(p.dst + ANS_AT_VALUE + 4, (uint32_t)(p.value >> 32));
	}
	return ANS_HEADER;
}

/* The chunk, coded; gives its size, 0: it would pass the limit.  By a whole block. */
template <int W> LADE_DEVICE uint32_t lade_ans_put_coded(const lade_ans_memory &r, lade_ans_plan p)
{
	uint32_t warp = threadIdx.x / 32, lane = lade_lane();
	lade_ans_prepare<W>(r, &p);
	if (!p.coded && !p.raw) {
		uint32_t size = lade_ans_put_constant(p);
		if (size)
			return size;
	}
	uint32_t directory = (ANS_AT_PLANES + 2 * W + 3) & ~3u, words = 0;
	uint32_t tables = directory + 4 * (p.block_count + 1);
	for (uint32_t n = 0; n < W; n++)
		words += (p.modes >> 4 * n & 15) == ANS_PLANE_CODED ? r.word[n] : 0;
	uint32_t at = (tables + 4 * words + 15) / 16, columns = lade_ans_columns_at(p);
	if (p.raw == W || p.limit < 16 * at + p.tail)
		return 0;
	/* Rows for symbols of 8 bits, and one more: what needs more of these is stored in the end.  Not
	 * so where other planes take less: a quarter more.  And a row that takes what is too much. */
	uint32_t rows = ((p.coded << p.block_log) / W) / 128;
	p.slot = 48 + 128 * (rows + (W > 1 ? rows / 4 + 2 : 1) + 1);
	uint32_t active = (r.bytes - columns) / p.slot;
	active = active < LADE_ANS_WARPS ? active : LADE_ANS_WARPS;
	uint8_t *room = r.dynamic + columns + warp * p.slot;
	for (uint32_t base = 0; base < p.block_count; base += active) {
		uint32_t i = base + warp, units = 0, size = 0;
		bool has = warp < active && i < p.block_count;
		lade_ans_made made = {nullptr, 0, ANS_STORED};
		if (has) {
			uint32_t left = p.size - p.tail - (i << p.block_log);
			units = (left < 1u << p.block_log ? left : 1u << p.block_log) / (4 * W);
			made = lade_ans_make<W>(r, p, i, units, room, lane);
			size = made.kind == ANS_STORED ? 4 * W * units
						       : p.raw * 4 * units + made.size;
		}
		if (lane == 0)
			r.size[warp] = (size + 15) / 16;
		__syncthreads();
		uint32_t off = at, end = at;
		for (uint32_t w = 0; w < LADE_ANS_WARPS; w++) {
			off += w < warp ? r.size[w] : 0;
			end += r.size[w];
		}
		if (16 * (uint64_t)end + p.tail > p.limit)
			return 0;
		if (has) {
			const uint8_t *src = p.src + ((size_t)i << p.block_log);
			uint8_t *dst = p.dst + (size_t)16 * off;
			uint32_t raw = p.raw * 4 * units;
			if (lane == 0)
				lade_ans_put_word(p.dst + directory + 4 * i,
				                  off | made.kind << ANS_OFF_BITS);
			if (made.kind == ANS_STORED) {
				lade_ans_copy(dst, src, size, lane);
			} else {
				if (raw)
					lade_ans_put_raw<W>(p, src, units, dst, lane);
				lade_ans_put_shared(dst + raw, made.bytes, made.size, lane);
			}
			if (lane < (16 - (size & 15)) % 16)
				dst[size + lane] = 0;
		}
		at = end;
		__syncthreads();
	}
	lade_ans_put_head(r, p, directory, tables, at);
	return 16 * at + p.tail;
}

/* The chunk as it is, by a whole block. */
LADE_DEVICE void lade_ans_put_stored(const lade_ans_plan &p)
{
	uint32_t share = ((p.size + LADE_ANS_WARPS - 1) / LADE_ANS_WARPS + 127) & ~127u;
	uint32_t begin = (uint64_t)share * (threadIdx.x / 32) < p.size
				 ? share * (threadIdx.x / 32)
				 : p.size;
	uint32_t end = p.size - begin < share ? p.size : begin + share;
	if (begin < end)
		lade_ans_copy(p.dst + ANS_HEADER + begin, p.src + begin, end - begin, lade_lane());
	if (threadIdx.x == 0) {
		lade_ans_put_word(p.dst, ANS_VERSION | ANS_RAW << 8 | p.width_log << 16);
		lade_ans_put_word(p.dst + ANS_AT_SIZE, p.size);
		lade_ans_put_word(p.dst + ANS_AT_VALUE, 0);
		lade_ans_put_word(p.dst + ANS_AT_VALUE + 4, 0);
	}
}

/*
 * map:    block = a chunk; warp = a sub-block in turn; lane = every 32nd unit of 4 elements
 * shared: 'bytes' of dynamic memory, at least 40,960: tables, and the sub-blocks' columns
 * block:  256 threads
 *
 * 'width_log' is log2 of the element's bytes, 'block_log' of a sub-block's, 'bits' of the states,
 * or 0.  With batch.next blocks take chunks from it; else block i takes the i-th.
 */
extern "C" __global__ void __launch_bounds__(256, 5)
	lade_ans_encode(lade_gpu_batch batch, uint32_t width_log, uint32_t block_log, uint32_t bits,
                        uint32_t bytes)
{
	LADE_SHARED(uint32_t, below, [32]);
	LADE_SHARED(uint32_t, mode, [8]);
	LADE_SHARED(uint32_t, word, [8]);
	LADE_SHARED(unsigned long long, least, [8]);
	LADE_SHARED(unsigned long long, sum, [8]);
	LADE_SHARED(uint32_t, size, [LADE_ANS_WARPS]);
	LADE_SHARED(uint32_t, rows);
	LADE_SHARED(uint32_t, turn);
	LADE_SHARED_DYNAMIC(uint4, dynamic);
	lade_ans_memory r = {(uint8_t *)dynamic, bytes, below, mode, word, least, sum, size, &rows};
	if (threadIdx.x < 32)
		lade_ans_spread_init(below, lade_lane());
	do {
		if (threadIdx.x == 0) {
			turn = batch.next ? atomicAdd(batch.next, 1u) : blockIdx.x;
			rows = 0;
		}
		__syncthreads();
		uint32_t i = turn, done = 0;
		if (i >= batch.count)
			return;
		lade_gpu_chunk c;
		uint32_t status = lade_chunk_get(batch, i, &c);
		if (status == LADE_GPU_OK && c.src_size > ANS_SIZE_MAX)
			status = LADE_GPU_LIMIT;
		if (status == LADE_GPU_OK) {
			lade_ans_plan p = {c.src, c.dst, c.src_size, 0, width_log, block_log, bits};
			uint32_t unit = ANS_UNIT << width_log, most = ANS_HEADER + c.src_size;
			p.tail = p.size & (unit - 1);
			p.block_count = (p.size - p.tail + (1u << block_log) - 1) >> block_log;
			p.limit = most - 1 < c.dst_cap ? most - 1 : c.dst_cap;
			if (p.block_count)
				done = width_log == 0   ? lade_ans_put_coded<1>(r, p)
				       : width_log == 1 ? lade_ans_put_coded<2>(r, p)
				       : width_log == 2 ? lade_ans_put_coded<4>(r, p)
							: lade_ans_put_coded<8>(r, p);
			if (!done && most <= c.dst_cap)
				lade_ans_put_stored(p);
			if (!done)
				status = most <= c.dst_cap ? LADE_GPU_OK : LADE_GPU_NOSPACE;
			done = done ? done : most;
		}
		__syncthreads();
		if (threadIdx.x == 0)
			lade_chunk_put(batch, i, status, done);
	} while (batch.next);
}
