/*
 * ans_bytes.cuh: encodes chunks of bytes to the ANS format (docs/format/ans.md, section 7): a block
 * reads its chunk twice, to count it and to encode it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_ANS_BYTES_CUH
#define LADE_CUDA_ANS_BYTES_CUH

#include "codec/ans/kernels/ans_put.cuh"

/* ---- counts ----------------------------------------------------------------------------- */

/* 16 KiB of counts: symbol s has words 16 s to 16 s + 15; two lanes share each. */
#define LADE_ANS_SPREAD 16384

LADE_DEVICE void lade_ans_count_word(uint32_t word, lade_ans_address own)
{
#pragma unroll
	for (uint32_t k = 0; k < 4; k++)
		lade_ans_increment(own + 64 * (lade_ans_address)__byte_perm(word, 0, 0x4440 + k));
}

/* Counts the bytes of the chunk's units.  A thread takes pieces of 16 bytes, or words. */
template <bool WHOLE>
LADE_DEVICE void lade_ans_count_bytes(const lade_ans_chunk &p, uint32_t *counts)
{
	constexpr uint32_t DEEP = WHOLE ? 8 : 1;
	const uint8_t *src = p.src;
	uint32_t bytes = p.size - p.tail, pieces = bytes / 16, rest = bytes % 16 / 4,
		 at = threadIdx.x;
	lade_ans_address own = lade_ans_address_of(counts + (threadIdx.x & 15));
	for (; at + (DEEP - 1) * blockDim.x < pieces; at += DEEP * blockDim.x) {
		uint32_t word[DEEP][4];
#pragma unroll
		for (uint32_t j = 0; j < DEEP; j++) {
			const uint8_t *from = src + (size_t)16 * (at + j * blockDim.x);
			if (WHOLE) {
				uint4 four = __ldg((const uint4 *)from);
				word[j][0] = four.x;
				word[j][1] = four.y;
				word[j][2] = four.z;
				word[j][3] = four.w;
			}
#pragma unroll
			for (uint32_t k = WHOLE ? 4 : 0; k < 4; k++)
				word[j][k] = lade_ans_word_at<WHOLE>(from + 4 * k);
		}
#pragma unroll
		for (uint32_t j = 0; j < DEEP; j++)
#pragma unroll
			for (uint32_t k = 0; k < 4; k++)
				lade_ans_count_word(word[j][k], own);
	}
	for (; at < pieces; at += blockDim.x)
		for (uint32_t k = 0; k < 4; k++)
			lade_ans_count_word(lade_ans_word_at<WHOLE>(src + (size_t)16 * at + 4 * k),
			                    own);
	if (threadIdx.x < rest)
		lade_ans_count_word(
			lade_ans_word_at<WHOLE>(src + (size_t)16 * pieces + 4 * threadIdx.x), own);
}

/* Adds up each symbol's 16 counts, into the first KiB, by a whole block. */
LADE_DEVICE void lade_ans_fold_counts(uint32_t *counts)
{
	uint32_t some[2] = {0, 0};
#pragma unroll
	for (uint32_t k = 0; k < 2; k++) {
		uint32_t s = threadIdx.x + 128 * k;
		if (s >= 256 || threadIdx.x >= 128)
			continue;
#pragma unroll
		for (uint32_t j = 0; j < 16; j++)
			some[k] += counts[16 * s + ((j + s / 2) & 15)];
	}
	__syncthreads();
#pragma unroll
	for (uint32_t k = 0; k < 2; k++)
		if (threadIdx.x < 128)
			counts[threadIdx.x + 128 * k] = some[k];
}

/* ---- a chunk ---------------------------------------------------------------------------- */

/*
 * Encodes a sub-block's 'units' into the columns, by a whole warp; returns the lane's halves.  If a
 * lane needs more rows than there are, it returns more halves than the columns can hold.
 */
template <bool WHOLE>
LADE_DEVICE uint32_t lade_ans_put_units(uint32_t bits, const lade_ans_columns &columns,
                                        const uint8_t *src, uint32_t units, uint32_t lane)
{
	constexpr uint32_t AHEAD = WHOLE ? 4 : 1;
	lade_ans_writer me;
	uint32_t rows = units / 32;
	if (((lane + rows) & 31) < units % 32)
		rows++;
	if (!rows)
		return 0;
	lade_ans_address begin = lade_ans_address_of(columns.top + lane);
	lade_ans_address end = begin - (lade_ans_address)(128 * columns.rows);
	const lade_ans_address symbols[4] = {columns.symbol, columns.symbol, columns.symbol,
	                                     columns.symbol};
	me.to = begin;
	/* In row g the lane has unit (turn + g) % 32. */
	const uint8_t *row = src + (size_t)128 * (rows - 1);
	uint32_t turn = lane + rows - 1, next[AHEAD];
	const uint8_t *late = row - 128 * (rows % AHEAD);
	uint32_t later = turn - rows % AHEAD, byte = __ldg(row + 4 * (turn & 31) + 3);
	if (rows >= AHEAD) {
#pragma unroll
		for (uint32_t j = 0; j < AHEAD; j++)
			next[j] = lade_ans_word_at<WHOLE>(late - 128 * j + 4 * ((later - j) & 31));
	}
	me.open(lade_ans_load(columns.symbol + (lade_ans_address)(4 * byte)), 1u << bits);
	for (; rows % AHEAD; rows--, turn--, row -= 128)
		lade_ans_put_one(&me, columns.symbol, end,
		                 lade_ans_word_at<WHOLE>(row + 4 * (turn & 31)));
	for (; rows; rows -= AHEAD, turn -= AHEAD, row -= 128 * AHEAD) {
		uint32_t all[4];
#pragma unroll
		for (uint32_t j = 0; j < AHEAD; j++) {
			all[j] = next[j];
			if (rows > AHEAD)
				next[j] = lade_ans_word_at<WHOLE>(row - 128 * (j + AHEAD) +
				                                  4 * ((turn - j - AHEAD) & 31));
		}
		if (WHOLE && bits <= 10) {
			lade_ans_put_sixteen(&me, symbols, end, all);
			continue;
		}
#pragma unroll
		for (uint32_t j = 0; j < AHEAD; j++)
			lade_ans_put_one(&me, columns.symbol, end, all[j]);
	}
	return me.close(begin, bits, columns.rows);
}

/* Counts, and builds the table, by a whole block: one warp writes it, another its description. */
LADE_DEVICE void lade_ans_prepare_bytes(const lade_ans_memory &r, const lade_ans_chunk &p,
                                        uint32_t wanted)
{
	uint32_t warp = threadIdx.x / 32, lane = lade_lane(), count[8];
	uint32_t *counts = (uint32_t *)(r.dynamic + r.bytes - LADE_ANS_SPREAD);
	for (uint32_t i = threadIdx.x; i < LADE_ANS_SPREAD / 16; i += blockDim.x)
		((uint4 *)counts)[i] = {0, 0, 0, 0};
	__syncthreads();
	if (!((uintptr_t)p.src & 15))
		lade_ans_count_bytes<true>(p, counts);
	else
		lade_ans_count_bytes<false>(p, counts);
	__syncthreads();
	lade_ans_fold_counts(counts);
	__syncthreads();
	/* Two warps compute the same cost, so that neither waits for the other. */
	if (warp < 2) {
		uint32_t total = lade_ans_gather<8>(counts, count, lane);
		lade_ans_cost v = lade_ans_cost_of(count, total, lane);
		bool coded = v.mode == ANS_PLANE_CODED;
		lade_ans_choice c = {coded, v.mode == ANS_PLANE_RAW,
		                     lade_ans_bits_of(wanted, 1, v.least, v.extra)};
		if (lane == 0 && warp == 0) {
			r.state->mode[0] = v.mode;
			r.state->choice = c;
		}
		/* The table's warp leaves the words of a coded plane to the description's. */
		if (lane == 0 && warp == 0 && !coded)
			r.state->word[0] = v.value;
		if (coded)
			lade_ans_table(r, count, total, 0, c, warp ? &r.state->word[0] : nullptr,
			               lane);
	}
	__syncthreads();
}

/* Writes the coded chunk, by a whole block; returns its size, 0: it would exceed the limit. */
LADE_DEVICE uint32_t lade_ans_put_coded_bytes(const lade_ans_memory &r, const lade_ans_chunk &p,
                                              uint32_t bits)
{
	uint32_t warp = threadIdx.x / 32, warps = blockDim.x / 32, lane = lade_lane();
	lade_ans_prepare_bytes(r, p, bits);
	const lade_ans_choice &c = r.state->choice;
	if (!c.coded && !c.raw) {
		uint32_t size = lade_ans_put_constant<1>(r, p);
		if (size)
			return size;
	}
	uint32_t at = lade_ans_body<1>(r, p, lane);
	if (c.raw || !lade_ans_fits(p, at))
		return 0;
	/* Rows for symbols of 8 bits, and one more: a sub-block that needs more is stored. */
	uint32_t rows = (c.coded << p.block_log >> 7) + 1, column_bytes = 128 * (rows + 3);
	uint32_t active = (r.bytes - 1280 * c.coded) / column_bytes;
	active = active < warps ? active : warps;
	const uint8_t *own = r.dynamic + 1280 * c.coded + warp * column_bytes;
	lade_ans_columns columns = {lade_ans_address_of(r.dynamic),
	                            (const uint32_t *)(own + column_bytes) - 32, rows};
	uint32_t high = 0;
	for (uint32_t base = 0; base < p.block_count; base += active) {
		uint32_t i = base + warp, units = 0, size = 0;
		bool has = warp < active && i < p.block_count;
		const uint8_t *src = p.src + ((size_t)i << p.block_log);
		lade_ans_encoded encoded = {ANS_NARROW, 0, 0, 0, 0};
		if (has) {
			units = lade_ans_units<1>(p, i, p.block_log);
			if (c.coded && !((uintptr_t)src & 3))
				encoded = lade_ans_measure(lade_ans_put_units<true>(
					c.bits, columns, src, units, lane));
			else if (c.coded)
				encoded = lade_ans_measure(lade_ans_put_units<false>(
					c.bits, columns, src, units, lane));
			size = lade_ans_size_or_store<1>(columns, c, &encoded, units);
			high = high < encoded.most ? encoded.most : high;
		}
		high = (high + 1) / 2;
		uint32_t off = lade_ans_place(r, &at, &high, (size + 15) / 16);
		high *= 2;
		if (!lade_ans_fits(p, at))
			return 0;
		if (has) {
			uint8_t *dst = lade_ans_put_entry<1>(p, i, off, encoded.kind, lane);
			if (encoded.kind == ANS_STORED) {
				lade_ans_copy(dst, src, size, lane);
			} else if (c.coded) {
				__syncwarp();
				lade_ans_put_lanes<false>(dst, columns.top, encoded, lane);
			}
			if (lane < (16 - (size & 15)) % 16)
				dst[size + lane] = 0;
		}
		__syncthreads();
	}
	if (threadIdx.x < 64)
		lade_ans_put_head<1>(r, p, high / 2, at);
	return 16 * at + p.tail;
}

/* The kernel's body. */
LADE_DEVICE void lade_ans_encode_bytes(const lade_gpu_batch &batch, uint32_t block_log,
                                       uint32_t bits, uint32_t bytes)
{
	LADE_SHARED(lade_ans_current, taken);
	LADE_SHARED(lade_ans_chunk_state, state);
	LADE_SHARED_DYNAMIC(uint4, dynamic);
	lade_ans_memory r = {(uint8_t *)dynamic, bytes, &state};
	if (threadIdx.x == 0)
		taken.i = ~0u;
	do {
		if (threadIdx.x == 0) {
			taken.i = batch.next ? lade_turn_next(batch, taken.i) : blockIdx.x;
			lade_ans_take<1>(batch, block_log, &taken);
		}
		__syncthreads();
		if (taken.i >= batch.count)
			return;
		uint32_t done = 0;
		if (taken.status == LADE_GPU_OK && taken.chunk.block_count)
			done = lade_ans_put_coded_bytes(r, taken.chunk, bits);
		lade_ans_finish<1>(batch, taken, done);
		__syncthreads();
	} while (batch.next);
}

#endif
