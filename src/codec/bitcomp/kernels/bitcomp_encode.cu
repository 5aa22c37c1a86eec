/*
 * bitcomp_encode.cu: chunks to bitcomp (docs/format/bitcomp.md), a warp a sub-block.
 *
 * A warp copies its 8 KiB to shared memory and chooses the mode in which a sample, two groups of
 * 512 bytes, costs least.  The host's encoder uses the same modes, sample and estimates, so both
 * write the same bytes.  Two passes find the minimum of the transformed elements and the bits that
 * each unit needs, which stay in registers; they give the size.  A third pass packs in place: lanes
 * set their bits in words that were cleared.  A scan of the sub-blocks' sizes gives each one's
 * position in the chunk, and bulk copies store it there.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/bitcomp/kernels/bitcomp_make.cuh"

/* ---- chunks ------------------------------------------------------------------------------ */

/* Whether a chunk is stored: its sub-blocks, which end at 'end', are not smaller than its bytes.
 * Only chunks of one turn of a team are. */
LADE_DEVICE bool lade_bitcomp_is_stored(const lade_bitcomp_how &how, const lade_gpu_chunk &c,
                                        uint64_t end, uint32_t team)
{
	return !how.quant && c.src_size && c.src_size <= team * LADE_BITCOMP_BLOCK &&
	       end >= (uint64_t)LADE_BITCOMP_HEADER + c.src_size;
}

/* Clears the padding behind a raw sub-block. */
LADE_DEVICE void lade_bitcomp_raw(lade_bitcomp_warp_smem *own_smem, uint32_t len, uint32_t lane)
{
	uint32_t at = len + lane;
	if (at < lade_bitcomp_up(len))
		((uint8_t *)own_smem->units)[at] = 0;
	__syncwarp();
}

/*
 * One turn of a team of 2^team_log warps that share a chunk: each warp encodes a sub-block.
 * Returns whether there is another turn.  Registers are short while a sub-block is encoded: a
 * warp's state is in own_smem, or computed again.
 */
LADE_DEVICE bool lade_bitcomp_round(lade_bitcomp_warp_smem *warps, const lade_bitcomp_how &how,
                                    uint32_t team_log)
{
	lade_thread_place at = lade_thread_place_of(team_log, 1);
	lade_bitcomp_warp_smem *own_smem = warps + at.warp;
	uint32_t turn = own_smem->turn, i = (turn << team_log) + at.k, off = i * LADE_BITCOMP_BLOCK;
	uint32_t made = 0;
	if (off < own_smem->chunk.src_size) {
		uint32_t len = min(own_smem->chunk.src_size - off, (uint32_t)LADE_BITCOMP_BLOCK);
		uint32_t flags =
			(how.is_signed ? 1 : 0) | (how.sparse ? 2 : 0) | (how.real ? 4 : 0);
		const uint8_t *from = own_smem->chunk.src + off;
		lade_stager stager = {&own_smem->barrier, turn & 1};
		lade_stage_begin(&stager, own_smem->units, from, len, at.lane);
		lade_stage_wait<0>(&stager);
		if (at.lane == 0) {
			own_smem->from = from;
			own_smem->len = len;
			own_smem->quant = how.quant;
			own_smem->exponent = how.exponent;
		}
		__syncwarp();
#define LADE_MADE(LOG) lade_bitcomp_made<LOG>(own_smem, flags, at.lane)
		made = how.log == 0   ? LADE_MADE(0)
		       : how.log == 1 ? LADE_MADE(1)
		       : how.log == 2 ? LADE_MADE(2)
		                      : LADE_MADE(3);
#undef LADE_MADE
	}
	at = lade_thread_place_of(team_log, 1);
	own_smem = warps + at.warp;
	lade_gpu_chunk c = own_smem->chunk;
	uint32_t team = 1u << team_log, lane = at.lane;
	uint32_t blocks = (c.src_size + LADE_BITCOMP_BLOCK - 1) / LADE_BITCOMP_BLOCK;
	turn = own_smem->turn;
	i = (turn << team_log) + at.k;
	off = i * LADE_BITCOMP_BLOCK;
	uint32_t len = i < blocks ? min(c.src_size - off, (uint32_t)LADE_BITCOMP_BLOCK) : 0;
	uint32_t size = made ? made & 0xFFFF : lade_bitcomp_up(len), fixed = made >> 16;
	if (lane == 0)
		own_smem->size[turn & 1] = size;
	if (team > 1)
		lade_bar_sync(1 + (at.warp >> team_log), 32 * team);
	else
		__syncwarp();
	uint64_t end = own_smem->end, mine = end;
	for (uint32_t k = 0; k < team; k++) {
		uint32_t one = (own_smem - at.k)[k].size[turn & 1];
		mine += k < at.k ? one : 0;
		end += one;
	}
	__syncwarp();
	if (lane == 0) {
		own_smem->turn = turn + 1;
		own_smem->end = end;
	}
	const uint8_t *from = c.src + off;
	if (lade_bitcomp_is_stored(how, c, end, team)) {
		if (LADE_BITCOMP_HEADER + (uint64_t)c.src_size <= c.dst_cap && len) {
			uint8_t *to = c.dst + LADE_BITCOMP_HEADER + off;
			if (made || ((uintptr_t)to | len) & 15)
				lade_packed_copy(to, from, len, lane);
			else
				lade_stage_out(to, own_smem->units, len, lane);
		}
	} else if (end <= c.dst_cap && len) {
		uint8_t *to = c.dst + mine;
		if (!made)
			lade_bitcomp_raw(own_smem, len, lane);
		lade_bitcomp_out(to, own_smem->fixed, fixed, lane);
		lade_bitcomp_out(to + fixed, own_smem->units, size - fixed, lane);
		uint8_t *word = c.dst + LADE_BITCOMP_HEADER + 4 * i;
		if (lane < 4)
			word[lane] = (uint8_t)((mine + size) / 16 >> 8 * lane);
	}
	__syncwarp();
	return (turn + 1) << team_log < blocks;
}

/* Writes the chunk's header after all sub-blocks are encoded; called by the team's first warp. */
LADE_DEVICE uint32_t lade_bitcomp_finish(const lade_bitcomp_warp_smem *own_smem,
                                         const lade_bitcomp_how &how, uint32_t team, uint32_t lane,
                                         uint32_t *done)
{
	lade_gpu_chunk c = own_smem->chunk;
	uint64_t end = own_smem->end;
	uint32_t blocks = (c.src_size + LADE_BITCOMP_BLOCK - 1) / LADE_BITCOMP_BLOCK;
	bool stored = lade_bitcomp_is_stored(how, c, end, team);
	if (stored)
		end = (uint64_t)LADE_BITCOMP_HEADER + c.src_size;
	if (end > c.dst_cap)
		return LADE_GPU_NOSPACE;
	uint32_t kind = how.log | (stored ? LADE_BITCOMP_STORED : 0) |
	                how.quant << LADE_BITCOMP_QUANT;
	uint32_t word = lane == 0   ? LADE_BITCOMP_MAGIC | LADE_BITCOMP_VERSION << 8 | kind << 16
	                : lane == 1 ? (uint32_t)how.exponent & 0xFFFF
	                : lane == 2 ? c.src_size
	                            : 0;
	for (uint32_t k = 0; lane < 4 && k < 4; k++)
		c.dst[4 * lane + k] = (uint8_t)(word >> 8 * k);
	uint32_t first = stored ? 0 : lade_bitcomp_first(blocks);
	for (uint32_t k = LADE_BITCOMP_HEADER + 4 * blocks + lane; k < first; k += 32)
		c.dst[k] = 0;
	*done = (uint32_t)end;
	return LADE_GPU_OK;
}

/*
 * Map: a block is 256 threads, 8 warps; a chunk has 2^team_log warps of a block (1, 2, 4 or 8),
 * which take its sub-blocks in turns; a lane works on 16 bytes of 512.  Shared memory: a
 * lade_bitcomp_encode_smem, dynamic.  'next' is not used: the grid has all teams.
 */
extern "C" __global__ void __launch_bounds__(32 * LADE_BITCOMP_WARPS, 3)
	lade_bitcomp_encode(lade_gpu_batch batch, lade_bitcomp_how how, uint32_t team_log)
{
	LADE_SHARED_DYNAMIC_AT(256, lade_bitcomp_encode_smem, smem);
	lade_bitcomp_warp_smem *warps = smem->warps;
	lade_thread_place at = lade_thread_place_of(team_log, 1);
	if (at.i >= batch.count)
		return;
	lade_bitcomp_warp_smem *own_smem = warps + at.warp;
	lade_stager stager;
	lade_stage_open(&stager, &own_smem->barrier, at.lane);
	/* The tables may change at any time: one warp of the team reads them. */
	uint32_t lead = at.warp >> team_log, size = 0;
	if (at.k == 0 && at.lane == 0)
		own_smem->status = lade_chunk_get(batch, at.i, &own_smem->chunk);
	if (team_log)
		lade_bar_sync(1 + lead, 32 << team_log);
	__syncwarp();
	uint32_t status = warps[lead << team_log].status;
	if (status == LADE_GPU_OK) {
		lade_gpu_chunk c = warps[lead << team_log].chunk;
		uint32_t blocks = (c.src_size + LADE_BITCOMP_BLOCK - 1) / LADE_BITCOMP_BLOCK;
		if (at.lane == 0) {
			if (at.k)
				own_smem->chunk = c;
			own_smem->turn = 0;
			own_smem->end = lade_bitcomp_first(blocks);
		}
		__syncwarp();
		if (blocks)
			while (lade_bitcomp_round(warps, how, team_log))
				;
		at = lade_thread_place_of(team_log, 1);
		__syncwarp();
		if (at.k)
			return;
		status = lade_bitcomp_finish(warps + at.warp, how, 1u << team_log, at.lane, &size);
	}
	/* All warps of a chunk have the same status. */
	if (at.k == 0 && at.lane == 0)
		lade_encoded_put(batch, at.i, status, size);
}
