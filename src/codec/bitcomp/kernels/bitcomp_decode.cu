/*
 * bitcomp_decode.cu: chunks of bitcomp (docs/format/bitcomp.md), a warp a sub-block.
 *
 * A warp copies its sub-block to shared memory in one step, checks all of it, and decodes 512 bytes
 * at a time: a lane unpacks 16 bytes of elements from at most five adjacent words and stores them
 * together.  Where units have their own widths, the check builds a table of where each unit's bits
 * begin; with delta, a scan over the lanes gives the prefix sums.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/bitcomp/kernels/bitcomp_block.cuh"

/* Shared memory of a block: a sub-block for each warp and zeros behind it, because lanes load past
 * its end; or one whole chunk. */
#define LADE_BITCOMP_STAGE (LADE_BITCOMP_BLOCK / 16 + 2)
struct lade_bitcomp_decode_smem {
	uint4 units[LADE_BITCOMP_WARPS][LADE_BITCOMP_STAGE];
	lade_bitcomp_tables tables[LADE_BITCOMP_WARPS];
	unsigned long long barrier[LADE_BITCOMP_WARPS];
};
static_assert(sizeof(lade_bitcomp_decode_smem) == LADE_BITCOMP_DECODE_SHARED, "");

/* The largest chunk that is prefetched. */
#define LADE_BITCOMP_AHEAD (1u << 14)

/* The largest encoded size of a chunk of 8 sub-blocks. */
#define LADE_BITCOMP_WHOLE                                                                         \
	(LADE_BITCOMP_HEADER + 4 * LADE_BITCOMP_WARPS + LADE_BITCOMP_WARPS * LADE_BITCOMP_BLOCK)

/*
 * How a chunk of up to LADE_BITCOMP_WHOLE bytes is copied to shared memory before its header has
 * been read: in pieces of 2^log bytes after the header.  One warp copies each piece, with its own
 * barrier; the first piece includes the header, the last one the rest.  'apart': the copies are
 * asynchronous and must be waited for.
 */
struct lade_bitcomp_pieces {
	unsigned long long *barrier;
	uint32_t log;
	bool apart;
};

/* Starts to copy the warp's piece of a chunk of 'size' bytes; size and address are multiples of
 * 16. */
LADE_DEVICE void lade_bitcomp_bring(lade_bitcomp_pieces *pieces, lade_stager *stager, uint4 *window,
                                    const uint8_t *src, uint32_t size, uint32_t warp, uint32_t lane)
{
	/* A piece of a stored chunk is a sub-block. */
	uint32_t units = size / 16 - min(size / 16, 4u);
	pieces->log = 36 - (uint32_t)__clz((int)(units / LADE_BITCOMP_WARPS));
	uint32_t next = LADE_BITCOMP_HEADER + ((warp + 1) << pieces->log);
	uint32_t from = warp ? min(next - (1u << pieces->log), size) : 0;
	uint32_t to = warp + 1 < LADE_BITCOMP_WARPS ? min(next, size) : size;
	lade_stage_begin(stager, window + from / 16, src + from, to - from, lane);
	if (warp == 0 && lane < 2)
		window[size / 16 + lane] = make_uint4(0, 0, 0, 0);
	pieces->apart = LADE_STAGE_BULK;
	if (!pieces->apart) {
		lade_stage_wait<0>(stager);
		__syncthreads();
	}
}

/* Waits for the pieces with bytes from 'begin' to 'end', which is behind the header. */
LADE_DEVICE void lade_bitcomp_await(const lade_bitcomp_pieces &pieces, uint32_t begin, uint32_t end)
{
	if (!pieces.apart || begin >= end)
		return;
	begin -= min(begin, (uint32_t)LADE_BITCOMP_HEADER);
	uint32_t last = (end - 1 - LADE_BITCOMP_HEADER) >> pieces.log;
	last = min(last, LADE_BITCOMP_WARPS - 1u);
	for (uint32_t k = min(begin >> pieces.log, last); k <= last; k++) {
		lade_stager stager = {pieces.barrier + k, 0};
		lade_stage_wait<0>(&stager);
	}
}

/* Waits for the warp's own piece. */
LADE_DEVICE void lade_bitcomp_await_own(const lade_bitcomp_pieces &pieces, uint32_t warp)
{
	lade_stager stager = {pieces.barrier + warp, 0};
	if (pieces.apart)
		lade_stage_wait<0>(&stager);
}

/* ---- chunks ------------------------------------------------------------------------------ */

/* Checks the chunk's header and sizes: all of section 4 except its sub-blocks. */
LADE_DEVICE uint32_t lade_bitcomp_open(const lade_gpu_chunk &c, const lade_front &f,
                                       lade_bitcomp_head *h)
{
	if (c.src_size < LADE_BITCOMP_HEADER)
		return LADE_GPU_TRUNCATED;
	uint32_t status = lade_bitcomp_head_of(lade_front_word(f, 0), lade_front_word(f, 1),
	                                       lade_front_word(f, 2), lade_front_word(f, 3), h);
	if (status != LADE_GPU_OK)
		return status;
	if (h->size > c.dst_cap)
		return LADE_GPU_NOSPACE;
	uint64_t want = (uint64_t)LADE_BITCOMP_HEADER + h->size;
	if (!h->stored && h->size) {
		want = lade_bitcomp_first(h->blocks);
		if (c.src_size >= want)
			want = (uint64_t)16 * lade_front_word(f, h->blocks + 3);
	}
	return c.src_size < want   ? LADE_GPU_TRUNCATED
	       : c.src_size > want ? LADE_GPU_CORRUPT
	                           : LADE_GPU_OK;
}

/* Decodes sub-block k of a chunk; false: it is corrupt. */
LADE_DEVICE bool lade_bitcomp_one(lade_bitcomp_decode_smem *smem, lade_warp_report *report,
                                  const lade_bitcomp_pieces &pieces, bool whole,
                                  const lade_gpu_chunk &c, const lade_front &front,
                                  const lade_bitcomp_head &h, uint32_t k, uint32_t warp,
                                  uint32_t lane)
{
	uint32_t off = k * LADE_BITCOMP_BLOCK, first = lade_bitcomp_first(h.blocks);
	uint32_t len = min(h.size - off, (uint32_t)LADE_BITCOMP_BLOCK), part = lade_bitcomp_up(len);
	uint64_t begin = LADE_BITCOMP_HEADER + off;
	uint8_t *to = c.dst + off;
	if (!h.stored) {
		uint64_t end = (uint64_t)16 * lade_front_word(front, k + 4);
		begin = k ? (uint64_t)16 * lade_front_word(front, k + 3) : first;
		if (begin < first || begin >= end || end > c.src_size || end - begin > part)
			return false;
		part = (uint32_t)(end - begin);
	}
	const uint8_t *from = c.src + begin;
	bool raw = part == lade_bitcomp_up(len);
	if (raw && (h.quant || ((uintptr_t)to | (uintptr_t)from | len) & 15)) {
		lade_packed_copy(to, from, len, lane);
		return true;
	}
	uint4 *units = smem->units[warp];
	if (whole) {
		units = smem->units[0] + begin / 16;
		lade_bitcomp_await(pieces, (uint32_t)begin, (uint32_t)begin + part);
	} else {
		lade_stager stager = {&smem->barrier[warp], report->staged & 1};
		__syncwarp();
		if (lane == 0)
			report->staged++;
		lade_stage_begin(&stager, units, from, part, lane);
		if (lane < 2)
			units[part / 16 + lane] = make_uint4(0, 0, 0, 0);
		lade_stage_wait<0>(&stager);
	}
	if (raw) {
		lade_stage_out(to, units, len, lane);
		return true;
	}
#define LADE_ONE(LOG) lade_bitcomp_block<LOG>(units, &smem->tables[warp], to, part, len, lane)
	return h.log == 0   ? LADE_ONE(0)
	       : h.log == 1 ? LADE_ONE(1)
	       : h.log == 2 ? LADE_ONE(2)
	                    : LADE_ONE(3);
#undef LADE_ONE
}

/* Converts the integers at 'dst', which the warp has stored, to floats as the header at 'src' says.
 * Not inlined because it is rare. */
static __device__ __noinline__ void lade_bitcomp_restore(const uint8_t *src, uint8_t *dst,
                                                         uint32_t len, uint32_t lane)
{
	lade_bitcomp_head h;
	__syncwarp();
	if (lade_bitcomp_head_of(lade_le32(src), lade_le32(src + 4), lade_le32(src + 8),
	                         lade_le32(src + 12), &h) == LADE_GPU_OK)
		lade_bitcomp_rescale<false>(dst, h.quant, h.log, h.exponent, len >> h.log, lane);
}

/* A chunk's entry in the tables, read by one thread: the tables may change at any time, and all of
 * the chunk's warps must use the same values. */
struct lade_bitcomp_entry {
	lade_gpu_chunk c;
	uint32_t status;
};

/* Called by that thread.  'ahead' is not 0 where each block has one chunk and each chunk one block:
 * the number of blocks that run at once, so that chunk i + ahead is likely to run here next. */
LADE_DEVICE void lade_bitcomp_enter(const lade_gpu_batch &batch, uint32_t i, uint32_t ahead,
                                    lade_bitcomp_entry *entry)
{
	uint64_t later = 0, later_size = 0;
	uint32_t later_before = LADE_GPU_OK;
	/* The loads of both chunks' entries overlap. */
	if (ahead && batch.count - i > ahead) {
		later = lade_entry_get((const uint64_t *)batch.src + i + ahead);
		later_size = lade_entry_get(batch.src_size + i + ahead);
		later_before = lade_before_get(batch, i + ahead);
	}
	entry->status = lade_chunk_get_now(batch, i, &entry->c);
	/* Only as much as fits the L2 cache beside the output written meanwhile. */
	if (later && later_before == LADE_GPU_OK && later_size <= LADE_BITCOMP_AHEAD)
		lade_stage_ahead((const uint8_t *)(uintptr_t)later, (uint32_t)later_size);
}

/* Decodes the warp's next sub-block, if it has one; returns the chunk's status so far. */
LADE_DEVICE uint32_t lade_bitcomp_turn(lade_bitcomp_decode_smem *smem,
                                       const lade_bitcomp_entry &entry, const lade_thread_place &at,
                                       uint32_t ranks, uint32_t ahead, lade_warp_report *report)
{
	lade_bitcomp_head h = {};
	lade_bitcomp_pieces pieces = {smem->barrier, 0, false};
	lade_gpu_chunk c = entry.c;
	uint32_t k = at.k + report->turn * ranks, status = entry.status;
	if (status != LADE_GPU_OK)
		return status;
	bool whole = ahead && report->turn == 0 && c.src_size <= LADE_BITCOMP_WHOLE &&
	             c.src_size > LADE_BITCOMP_HEADER && !(((uintptr_t)c.src | c.src_size) & 15);
	lade_front front = {c.src, 0};
	if (whole) {
		lade_stager stager = {&smem->barrier[at.warp], 0};
		__syncwarp();
		if (at.lane == 0)
			report->staged++;
		lade_bitcomp_bring(&pieces, &stager, smem->units[0], c.src, c.src_size, at.warp,
		                   at.lane);
		lade_bitcomp_await(pieces, 0, min(c.src_size, 128u));
		if (4 * at.lane + 4 <= c.src_size)
			front.word = ((const uint32_t *)smem->units[0])[at.lane];
	} else {
		front = lade_front_get(c, at.lane);
	}
	status = lade_bitcomp_open(c, front, &h);
	/* No copy may be pending when the block ends. */
	lade_bitcomp_await_own(pieces, at.warp);
	/* All warps have read the header from shared memory; the rest is read again below. */
	if (whole && h.blocks > LADE_BITCOMP_WARPS) {
		whole = false;
		__syncthreads();
	}
	if (status != LADE_GPU_OK)
		return status;
	if (at.lane == 0) {
		report->size = h.size;
		report->more = k < h.blocks && h.blocks - k > ranks;
		report->quantised = k < h.blocks && h.quant;
	}
	if (k >= h.blocks)
		return LADE_GPU_OK;
	return lade_bitcomp_one(smem, report, pieces, whole, c, front, h, k, at.warp, at.lane)
	               ? LADE_GPU_OK
	               : LADE_GPU_CORRUPT;
}

/*
 * Map: a block is 256 threads, 8 warps; a chunk has 2^team_log warps of a block (1, 2, 4 or 8), or,
 * with 8, 'spans' blocks; a warp takes sub-blocks in turn; a lane decodes 16 bytes of 512.  Shared
 * memory: a lade_bitcomp_decode_smem, dynamic.  'state' has a word for each chunk, 0 at the start;
 * it is used where 'spans' is above 1.  'ahead' is 0, or, where a chunk has 8 warps, the number of
 * resident blocks.  'next' is not used: the grid has all teams.
 *
 * A team's warps do not wait for each other until the chunk is done: each reads the header.
 */
extern "C" __global__ void __launch_bounds__(32 * LADE_BITCOMP_WARPS, 3)
	lade_bitcomp_decode(lade_gpu_batch batch, uint32_t team_log, uint32_t spans,
                            uint32_t ahead, uint32_t *state)
{
	LADE_SHARED_DYNAMIC(lade_bitcomp_decode_smem, smem);
	LADE_SHARED(lade_warp_report, report, [LADE_BITCOMP_WARPS]);
	LADE_SHARED(lade_bitcomp_entry, entries, [LADE_BITCOMP_WARPS]);
	lade_thread_place at = lade_thread_place_of(team_log, spans);
	if (at.lane == 0) {
		report[at.warp] = {};
		if (!(at.warp & ((1u << team_log) - 1)) && at.i < batch.count)
			lade_bitcomp_enter(batch, at.i, ahead, &entries[at.warp >> team_log]);
	}
	lade_stager stager;
	lade_stage_open(&stager, &smem->barrier[at.warp], at.lane);
	__syncthreads();
	for (bool more = at.i < batch.count; more;) {
		uint32_t ranks = spans << team_log;
		uint32_t status = lade_bitcomp_turn(smem, entries[at.warp >> team_log], at, ranks,
		                                    ahead, &report[at.warp]);
		/* Recomputed rather than kept, to save registers. */
		at = lade_thread_place_of(team_log, spans);
		lade_warp_report *mine = &report[at.warp];
		__syncwarp();
		if (status == LADE_GPU_OK && mine->quantised) {
			uint32_t off =
				(at.k + mine->turn * (spans << team_log)) * LADE_BITCOMP_BLOCK;
			const lade_gpu_chunk &c = entries[at.warp >> team_log].c;
			lade_bitcomp_restore(c.src, c.dst + off,
			                     min(mine->size - off, (uint32_t)LADE_BITCOMP_BLOCK),
			                     at.lane);
			at = lade_thread_place_of(team_log, spans);
			mine = &report[at.warp];
		}
		more = status == LADE_GPU_OK && mine->more;
		__syncwarp();
		if (at.lane == 0) {
			mine->status = status;
			mine->turn++;
		}
		__syncwarp();
	}
	__syncthreads();
	at = lade_thread_place_of(team_log, spans);
	if (at.lane || at.warp & ((1u << team_log) - 1) || at.i >= batch.count)
		return;
	/* All warps of a chunk agree unless a sub-block is corrupt. */
	uint32_t status = report[at.warp].status;
	for (uint32_t j = 1; j < 1u << team_log; j++)
		if (status == LADE_GPU_OK)
			status = report[at.warp + j].status;
	if (spans > 1) {
		/* The last block to finish sees the status of all others. */
		uint32_t all = atomicAdd(&state[at.i], 1u | (status ? 1u << 16 : 0));
		if ((all & 0xFFFF) + 1 < spans)
			return;
		if (status == LADE_GPU_OK && all >> 16)
			status = LADE_GPU_CORRUPT;
	}
	lade_chunk_put(batch, at.i, status, status == LADE_GPU_OK ? report[at.warp].size : 0);
}

/* ---- few chunks -------------------------------------------------------------------------- */

/*
 * Where there are no more chunks than multiprocessors, a block has one chunk, which it copies to
 * shared memory before it reads the header.  Several warps decode each sub-block, each a part of
 * its groups.  With delta, each warp sums from 0; the sums of the parts before are added at the
 * end.
 */
#define LADE_BITCOMP_PARTS 2                                        /* warps of a sub-block */
#define LADE_BITCOMP_PART (LADE_BITCOMP_BLOCK / LADE_BITCOMP_PARTS) /* bytes */

/* Values that all warps of a block, or the two of a sub-block, must agree on even if memory changes
 * between their reads: the tables' entry, the chunk's status, and where the sub-block is, by
 * turns. */
struct lade_bitcomp_agreed {
	lade_bitcomp_entry entry;
	uint32_t status;
	uint2 places[LADE_BITCOMP_WARPS][2];
};

struct lade_bitcomp_few_smem {
	uint4 window[LADE_BITCOMP_WARPS * LADE_BITCOMP_STAGE];
	uint4 sums[LADE_BITCOMP_WARPS * LADE_BITCOMP_BLOCK / 16];
	lade_bitcomp_tables tables[LADE_BITCOMP_FEW_WARPS];
	unsigned long long barrier[LADE_BITCOMP_FEW_WARPS];
};

/* Adds the sums of the parts before 'part' to the elements of this part in 'sums', and stores
 * them. */
template <int LOG>
LADE_DEVICE void lade_bitcomp_add(const uint4 *sums, uint32_t part, uint8_t *to, uint32_t len,
                                  uint32_t lane)
{
	typedef lade_packed_word<LOG == 3 ? 2 : LOG> word;
	const uint8_t *bytes = (const uint8_t *)sums;
	uint64_t more = 0;
	for (uint32_t j = 1; j <= part; j++)
		more += lade_bitcomp_element(bytes + j * LADE_BITCOMP_PART - (1 << LOG), LOG);
	constexpr uint32_t MASK = LOG == 0 ? 0xFFu : LOG == 1 ? 0xFFFFu : LADE_FULL;
	uint32_t all = word::all((uint32_t)more & MASK);
	const uint4 *from = sums + part * (LADE_BITCOMP_PART / 16) + lane;
	bool fast = lade_packed_fast<2>(to, len);
#pragma unroll 2
	for (uint32_t off = 0; off < len; off += 2 * LADE_BITCOMP_GROUP) {
		uint32_t w[2][4];
#pragma unroll
		for (uint32_t g = 0; g < 2; g++) {
			uint4 v = {};
			if (off + g * LADE_BITCOMP_GROUP + 16 * lane < len)
				v = from[off / 16 + 32 * g];
			if (LOG == 3) {
				uint64_t a = ((uint64_t)v.y << 32 | v.x) + more;
				uint64_t b = ((uint64_t)v.w << 32 | v.z) + more;
				v = make_uint4((uint32_t)a, (uint32_t)(a >> 32), (uint32_t)b,
				               (uint32_t)(b >> 32));
			} else {
				v = make_uint4(word::add(v.x, all), word::add(v.y, all),
				               word::add(v.z, all), word::add(v.w, all));
			}
			w[g][0] = v.x;
			w[g][1] = v.y;
			w[g][2] = v.z;
			w[g][3] = v.w;
		}
		lade_packed_store_all<false, 2>(to + off, w, len - off, fast, lane);
	}
}

/* Decodes the warp's part of a sub-block of 'size' bytes, 'len' decoded; false: it is corrupt. */
template <int LOG>
LADE_DEVICE bool lade_bitcomp_part(lade_bitcomp_few_smem *smem, const uint4 *units, uint8_t *to,
                                   uint32_t size, uint32_t len, uint32_t warp, uint32_t lane)
{
	constexpr uint32_t EACH = lade_packed_place<LOG, 2>::EACH, PART = LADE_BITCOMP_PART;
	const uint32_t *s = (const uint32_t *)units;
	uint32_t part = warp % LADE_BITCOMP_PARTS, turn = warp / LADE_BITCOMP_PARTS;
	uint32_t left = len > part * PART ? min(len - part * PART, PART) : 0;
	lade_bitcomp_tables *tables = &smem->tables[warp];
	lade_packed p;
	uint8_t *mine = to + part * PART;
	if (s[0] & LADE_BITCOMP_MASK) {
		if (!lade_bitcomp_masked<LOG>(units, tables, to, size, len, part * PART,
		                              part * PART + left, lane))
			return false;
		lade_bitcomp_made_real<LOG>(s, mine, left, lane);
		return true;
	}
	if (!lade_bitcomp_check<LOG>((const uint8_t *)s, size, (len + EACH - 1) / EACH,
	                             part * PART / EACH, tables->places, lane, &p))
		return false;
	if (p.lag > 1)
		left = part ? 0 : len; /* the first warp makes all of it */
	if (p.mode & LADE_BITCOMP_DELTA && p.lag == 1) {
		uint4 *sums = smem->sums + turn * (LADE_BITCOMP_BLOCK / 16);
		uint8_t *own = (uint8_t *)(sums + part * PART / 16);
		p.base = part ? 0 : p.base;
		if (p.mode & LADE_BITCOMP_WIDTHS)
			lade_packed_get<LOG, LADE_PACKED_UNITS, true>(s, p, own, left, lane);
		else
			lade_packed_get<LOG, LADE_PACKED_ONE, true>(s, p, own, left, lane);
		lade_bar_sync(1 + turn, 32 * LADE_BITCOMP_PARTS);
		if (left)
			lade_bitcomp_add<LOG>(sums, part, mine, left, lane);
	} else if (p.mode & LADE_BITCOMP_WIDTHS) {
		lade_bitcomp_any<LOG, LADE_PACKED_UNITS>(s, tables->dict, p, mine, left, lane);
	} else {
		lade_bitcomp_any<LOG, LADE_PACKED_ONE>(s, tables->dict, p, mine, left, lane);
	}
	lade_bitcomp_made_real<LOG>(s, mine, left, lane);
	/* The other warp may make reals of its part (section 5). */
	if (p.lag > 1)
		lade_bar_sync(1 + turn, 32 * LADE_BITCOMP_PARTS);
	return true;
}

/* Decodes one warp's part of sub-block k of a chunk; false: it is corrupt.  'whole': the chunk is
 * in smem->window. */
LADE_DEVICE bool lade_bitcomp_share(lade_bitcomp_few_smem *smem, lade_bitcomp_agreed *agreed,
                                    lade_stager *stager, const lade_gpu_chunk &c,
                                    const lade_front &front, const lade_bitcomp_head &h, bool whole,
                                    uint32_t k, uint32_t warp, uint32_t lane)
{
	constexpr uint32_t PART = LADE_BITCOMP_PART;
	uint32_t off = k * LADE_BITCOMP_BLOCK, first = lade_bitcomp_first(h.blocks);
	uint32_t len = min(h.size - off, (uint32_t)LADE_BITCOMP_BLOCK), size = lade_bitcomp_up(len);
	uint32_t part = warp % LADE_BITCOMP_PARTS, turn = warp / LADE_BITCOMP_PARTS;
	uint64_t begin = LADE_BITCOMP_HEADER + off;
	uint8_t *to = c.dst + off;
	if (!h.stored) {
		uint32_t from = k ? lade_front_word(front, k + 3) : first / 16;
		uint32_t till = lade_front_word(front, k + 4);
		if (!whole) {
			uint2 *both = &agreed->places[turn][k / LADE_BITCOMP_WARPS & 1];
			if (part == 0 && lane == 0)
				*both = make_uint2(from, till);
			lade_bar_sync(1 + turn, 32 * LADE_BITCOMP_PARTS);
			from = both->x;
			till = both->y;
		}
		uint64_t end = (uint64_t)16 * till;
		begin = (uint64_t)16 * from;
		if (begin < first || begin >= end || end > c.src_size || end - begin > size)
			return false;
		size = (uint32_t)(end - begin);
	}
	if (size == lade_bitcomp_up(len)) {
		uint32_t left = len > part * PART ? min(len - part * PART, PART) : 0;
		to += part * PART;
		begin += part * PART;
		if (whole && !h.quant && !(((uintptr_t)to | left) & 15))
			lade_stage_out(to, smem->window + begin / 16, left, lane);
		else
			lade_packed_copy(to, c.src + begin, left, lane);
		return true;
	}
	const uint4 *units = smem->window + begin / 16;
	if (!whole) {
		uint4 *staged = smem->window + turn * LADE_BITCOMP_STAGE;
		if (part == 0) {
			lade_stage_begin(stager, staged, c.src + begin, size, lane);
			if (lane < 2)
				staged[size / 16 + lane] = make_uint4(0, 0, 0, 0);
			lade_stage_wait<0>(stager);
		}
		lade_bar_sync(1 + turn, 32 * LADE_BITCOMP_PARTS);
		units = staged;
	}
#define LADE_PART(LOG) lade_bitcomp_part<LOG>(smem, units, to, size, len, warp, lane)
	return h.log == 0   ? LADE_PART(0)
	       : h.log == 1 ? LADE_PART(1)
	       : h.log == 2 ? LADE_PART(2)
	                    : LADE_PART(3);
#undef LADE_PART
}

LADE_DEVICE void lade_bitcomp_chunk(lade_bitcomp_few_smem *smem, const lade_gpu_batch &batch)
{
	constexpr uint32_t WARPS = LADE_BITCOMP_FEW_WARPS, PART = LADE_BITCOMP_PART;
	LADE_SHARED(lade_bitcomp_agreed, agreed);
	uint32_t i = blockIdx.x, lane = lade_lane(), warp = threadIdx.x / 32, size = 0;
	lade_stager stager;
	if (threadIdx.x == 0)
		lade_bitcomp_enter(batch, i, 0, &agreed.entry);
	lade_stage_open(&stager, &smem->barrier[warp], lane);
	__syncthreads();
	lade_gpu_chunk c = agreed.entry.c;
	uint32_t status = agreed.entry.status;
	if (status == LADE_GPU_OK) {
		/* A share for each warp. */
		uint32_t all = min(c.src_size, (uint32_t)LADE_BITCOMP_WHOLE),
			 units = (all + 15) / 16;
		uint32_t each = (units + WARPS - 1) / WARPS, from = min(16 * warp * each, all);
		lade_stage_begin(&stager, smem->window + from / 16, c.src + from,
		                 min(16 * each, all - from), lane);
		if (warp == 0 && lane < 2)
			smem->window[units + lane] = make_uint4(0, 0, 0, 0);
		lade_stage_wait<0>(&stager);
		__syncthreads();
		lade_front front = {c.src, 0};
		if (4 * lane + 4 <= all)
			front.word = ((const uint32_t *)smem->window)[lane];
		lade_bitcomp_head h = {};
		status = lade_bitcomp_open(c, front, &h);
		/* If 'front' does not have the last entry, each warp has read it by itself. */
		if (h.blocks + 3 >= 32) {
			if (threadIdx.x == 0)
				agreed.status = status;
			__syncthreads();
			status = agreed.status;
		}
		bool good = true;
		if (status == LADE_GPU_OK) {
			bool whole = h.blocks <= LADE_BITCOMP_WARPS && c.src_size == all;
			if (!whole)
				__syncthreads();
			size = h.size;
			uint32_t turn = warp / LADE_BITCOMP_PARTS, part = warp % LADE_BITCOMP_PARTS;
			for (uint32_t k = turn; good && k < h.blocks; k += LADE_BITCOMP_WARPS) {
				good = lade_bitcomp_share(smem, &agreed, &stager, c, front, h,
				                          whole, k, warp, lane);
				uint32_t off = k * LADE_BITCOMP_BLOCK + part * PART;
				if (good && h.quant && off < size)
					lade_bitcomp_restore(c.src, c.dst + off,
					                     min(size - off, PART), lane);
			}
		}
		if (__syncthreads_or(!good))
			status = LADE_GPU_CORRUPT;
	}
	if (threadIdx.x == 0)
		lade_chunk_put(batch, i, status, status == LADE_GPU_OK ? size : 0);
}

static_assert(sizeof(lade_bitcomp_few_smem) == LADE_BITCOMP_FEW_SHARED, "");
static_assert(LADE_BITCOMP_FEW_WARPS == LADE_BITCOMP_WARPS * LADE_BITCOMP_PARTS, "");

/*
 * Map: a block is 512 threads, 16 warps, and has a chunk; two warps take a sub-block, then the next
 * in turn; a lane decodes 16 bytes of 512.  Shared memory: a lade_bitcomp_few_smem, dynamic. 'next'
 * is not used: the grid is the batch.
 */
extern "C" __global__ void __launch_bounds__(32 * LADE_BITCOMP_FEW_WARPS, 1)
	lade_bitcomp_decode_few(lade_gpu_batch batch)
{
	LADE_SHARED_DYNAMIC(lade_bitcomp_few_smem, smem);
	lade_bitcomp_chunk(smem, batch);
}

/* The decoded sizes.  Map: thread = chunk; blocks of any size. */
extern "C" __global__ void lade_bitcomp_size(lade_gpu_batch batch)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= batch.count)
		return;
	lade_gpu_chunk c;
	lade_bitcomp_head h;
	h.size = 0;
	uint32_t status = lade_source_get(batch, i, &c);
	if (status == LADE_GPU_OK && c.src_size < LADE_BITCOMP_HEADER)
		status = LADE_GPU_TRUNCATED;
	if (status == LADE_GPU_OK)
		status = lade_bitcomp_head_of(lade_le32(c.src), lade_le32(c.src + 4),
		                              lade_le32(c.src + 8), lade_le32(c.src + 12), &h);
	lade_chunk_put(batch, i, status, h.size);
}
