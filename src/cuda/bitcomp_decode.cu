/*
 * bitcomp_decode.cu: chunks of bitcomp (docs/format/bitcomp.md), a warp a sub-block.
 *
 * A warp brings its sub-block to shared memory with one copy, checks it as a whole, and makes 512
 * bytes a step: a lane takes 16 bytes of elements from at most five words of bits that lie
 * together, and stores them at once.  Where units have widths of their own, a scan over the lanes
 * says where a lane's bits begin; with delta another one gives the sums so far.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/bitcomp.cuh"

/* Shared memory of a warp: a sub-block, zeros that lanes load behind it, the dictionary. */
#define LADE_BITCOMP_STAGE (LADE_BITCOMP_BLOCK / 16 + 2)
struct lade_bitcomp_room {
	uint4 units[LADE_BITCOMP_STAGE];
	uint32_t dict[64];
	unsigned long long barrier;
	uint64_t unused;
};
static_assert(sizeof(lade_bitcomp_room) == 8496, "bitcomp/gpu.c and kernels.h have this number");

/* Checks a sub-block of 'size' bytes with 'units' units (section 4); all lanes give the same. */
template <int LOG>
LADE_DEVICE bool lade_bitcomp_check(const uint8_t *s, uint32_t size, uint32_t units, uint32_t lane,
                                    lade_packed *p)
{
	if (size < LADE_BITCOMP_HEADER)
		return false;
	uint4 a = *(const uint4 *)s;
	uint32_t at = LADE_BITCOMP_HEADER, sum = 0;
	p->mode = a.x & 0xFF;
	p->width = a.x >> 8 & 0xFF;
	p->words = (a.x >> 16 & 0xFF) + 1;
	p->step = a.x >> 24;
	p->base = a.y;
	p->reference = (uint64_t)a.w << 32 | a.z;
	if (p->mode & ~(uint32_t)LADE_BITCOMP_MODE || (p->mode >> LADE_BITCOMP_FOLD & 3) == 3 ||
	    p->step > 2 || p->width > 8u << LOG)
		return false;
	if (p->mode & LADE_BITCOMP_DICT && (LOG || p->mode & 15))
		return false;
	/* Of other sizes masks are lade_bitcomp_masked()'s. */
	if (p->mode & LADE_BITCOMP_MASK)
		return false;
	if (LOG == 3 && p->mode & LADE_BITCOMP_DELTA) {
		if (size < LADE_BITCOMP_HEADER + 16)
			return false;
		p->base = *(const uint64_t *)(s + at);
		at += 16;
	}
	p->dict = at;
	if (p->mode & LADE_BITCOMP_DICT)
		at += lade_bitcomp_up(p->words);
	p->codes = at;
	if (p->mode & LADE_BITCOMP_WIDTHS) {
		at += lade_bitcomp_up((units + 1) / 2);
		if (size < at)
			return false;
		const uint32_t *codes = (const uint32_t *)(s + p->codes);
		for (uint32_t i = lane; 8 * i < units; i += 32) {
			uint32_t word = codes[i];
#pragma unroll
			for (uint32_t k = 0; k < 8; k++) {
				uint32_t w =
					lade_packed_width(p->width, word >> 4 * k & 15, p->step);
				sum += 8 * i + k < units ? w : 0;
			}
		}
		sum = __reduce_add_sync(LADE_FULL, sum);
	} else {
		sum = p->width * units;
	}
	p->payload = at;
	return at + lade_bitcomp_up(LOG == 0 ? 2 * sum : sum) == size;
}

/* The dictionary of a sub-block that was checked; what it has no word for is 0. */
LADE_DEVICE void lade_bitcomp_dict(lade_bitcomp_room *room, const lade_packed &p, uint32_t lane)
{
	const uint32_t *words = (const uint32_t *)((const uint8_t *)room->units + p.dict);
#pragma unroll
	for (uint32_t k = 0; k < 2; k++) {
		uint32_t word = lane + 32 * k, v = 4 * word < p.words ? words[word] : 0;
		uint32_t left = 4 * word < p.words ? p.words - 4 * word : 0;
		room->dict[word] = v & lade_packed_mask(min(8 * left, 32u));
	}
	__syncwarp();
}

template <int LOG, int WIDTHS>
LADE_DEVICE void lade_bitcomp_any(lade_bitcomp_room *room, const lade_packed &p, uint8_t *dst,
                                  uint32_t len, uint32_t lane)
{
	const uint32_t *s = (const uint32_t *)room->units;
	if (LOG == 0 && p.mode & LADE_BITCOMP_DICT) {
		lade_bitcomp_dict(room, p, lane);
		lade_packed_get_words<WIDTHS>(s, (const uint8_t *)room->dict, p, dst, len, lane);
	} else {
		lade_packed_get<LOG, WIDTHS, false>(s, p, dst, len, lane);
	}
}

/* The lane's elements that lie together in 'w', the first ones, to where 'bits' are set; 0 elsewhere. */
template <int LOG> LADE_DEVICE void lade_bitcomp_spread_out(uint32_t bits, uint32_t *w)
{
	constexpr uint32_t VALUES = 16 >> LOG;
	uint32_t q[4] = {w[0], w[1], w[2], w[3]};
#pragma unroll
	for (uint32_t k = 0; k < VALUES; k++) {
		bool has = bits >> k & 1;
		if (LOG == 3) {
			w[2 * (k & 1)] = has ? q[0] : 0;
			w[2 * (k & 1) + 1] = has ? q[1] : 0;
			q[0] = has ? q[2] : q[0];
			q[1] = has ? q[3] : q[1];
		} else if (LOG == 2) {
			w[k & 3] = has ? q[0] : 0;
#pragma unroll
			for (uint32_t j = 0; j < 3; j++)
				if (j + k < 3)
					q[j] = has ? q[j + 1] : q[j];
		} else {
			uint32_t by = has ? 16 : 0, one = has ? q[0] & 0xFFFF : 0;
			w[k / 2 & 3] = k & 1 ? w[k / 2 & 3] | one << 16 : one;
#pragma unroll
			for (uint32_t j = 0; j < 3; j++)
				q[j] = __funnelshift_r(q[j], q[j + 1], by);
			q[3] >>= by;
		}
	}
}

/*
 * A sub-block with a mask, if there is nothing wrong with it.  What is set before each word of the
 * mask is counted first, so that a lane finds its elements' bits alone.  A function of its own, for
 * the registers' sake.
 */
template <int LOG>
static __device__ __noinline__ bool lade_bitcomp_masked(lade_bitcomp_room *there,
                                                        uint8_t *dst, uint32_t size, uint32_t len,
                                                        uint32_t lane)
{
	constexpr uint32_t SIZE = 1u << LOG, VALUES = 16 >> LOG, GROUP = 512 >> LOG;
	lade_bitcomp_room *room = lade_shared(there);
	const uint32_t *s = (const uint32_t *)room->units;
	uint32_t n = (len + SIZE - 1) >> LOG, width = s[0] >> 8 & 0xFF, set = 0;
	uint32_t at = LADE_BITCOMP_HEADER + lade_bitcomp_up((n + 7) / 8);
	lade_packed p = {};
	p.mode = s[0] & 0xFF;
	p.reference = (uint64_t)s[3] << 32 | s[2];
	lade_packed_undo undo = lade_packed_undo_of<LOG>(p);
	if (size < at || s[0] & 0xFF & ~LADE_BITCOMP_MASKED || width > 8 * SIZE || s[0] >> 24 > 2)
		return false;
	const uint32_t *mask = s + LADE_BITCOMP_HEADER / 4;
	uint16_t *before = (uint16_t *)room->dict; /* of at most 128 words */
	for (uint32_t i = lane; 32 * (i - lane) < n; i += 32) {
		uint32_t own = 0;
		if (32 * i < n)
			own = __popc(mask[i] & lade_packed_mask(min(n - 32 * i, 32u)));
		uint32_t all = lade_warp_scan(own, lane);
		if (32 * i < n)
			before[i] = (uint16_t)(set + all - own);
		set += __shfl_sync(LADE_FULL, all, 31);
	}
	__syncwarp();
	if (at + lade_bitcomp_up((set * width + 7) / 8) != size)
		return false;
	bool fast = lade_packed_fast<2>(dst, len);
	at *= 8;
#pragma unroll 1
	for (uint32_t off = 0; off < len; off += 2 * LADE_BITCOMP_GROUP) {
		uint32_t w[2][4], bits[2];
#pragma unroll
		for (uint32_t g = 0; g < 2; g++) {
			/* Lanes behind the last element take the first ones, for nothing. */
			uint32_t i = (off >> LOG) + g * GROUP + lane * VALUES;
			i = i < n ? i : 0;
			uint32_t word = mask[i / 32], rank = before[i / 32];
			rank += __popc(word & ((1u << (i & 31)) - 1));
			bits[g] = word >> (i & 31);
			lade_packed_unpack<LOG>(s, at + rank * width, width, w[g]);
		}
		lade_packed_unfold<LOG, 2>(undo, w);
#pragma unroll
		for (uint32_t g = 0; g < 2; g++)
			lade_bitcomp_spread_out<LOG>(bits[g], w[g]);
		lade_packed_store_all<false, 2>(dst + off, w, len - off, fast, lane);
	}
	return true;
}

/* A sub-block of 'size' bytes in shared memory, if there is nothing wrong with it.  A function of its
 * own, so that what the kernel keeps from sub-block to sub-block takes no registers here. */
template <int LOG>
static __device__ __noinline__ bool lade_bitcomp_block(lade_bitcomp_room *there, uint8_t *dst,
                                                       uint32_t size, uint32_t len, uint32_t lane)
{
	lade_bitcomp_room *room = lade_shared(there);
	constexpr uint32_t EACH = lade_packed_place<LOG, 2>::EACH;
	lade_packed p;
	if (LOG && room->units[0].x & LADE_BITCOMP_MASK)
		return lade_bitcomp_masked<LOG ? LOG : 1>(room, dst, size, len, lane);
	if (!lade_bitcomp_check<LOG>((const uint8_t *)room->units, size, (len + EACH - 1) / EACH,
	                             lane, &p))
		return false;
	if (p.mode & LADE_BITCOMP_WIDTHS)
		lade_bitcomp_any<LOG, LADE_PACKED_UNITS>(room, p, dst, len, lane);
	else
		lade_bitcomp_any<LOG, LADE_PACKED_ONE>(room, p, dst, len, lane);
	return true;
}

/* ---- chunks ------------------------------------------------------------------------------ */

/* What holds for a chunk as a whole: all of section 4 but its sub-blocks. */
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

/* Sub-block k of a chunk: false: it is corrupt. */
LADE_DEVICE bool lade_bitcomp_one(lade_bitcomp_room *room, lade_told *told, const lade_gpu_chunk &c,
                                  const lade_front &front, const lade_bitcomp_head &h, uint32_t k,
                                  uint32_t lane)
{
	uint32_t off = k * LADE_BITCOMP_BLOCK, first = lade_bitcomp_first(h.blocks);
	uint32_t len = min(h.size - off, (uint32_t)LADE_BITCOMP_BLOCK), part = lade_bitcomp_up(len);
	const uint8_t *from = c.src + LADE_BITCOMP_HEADER + off;
	uint8_t *to = c.dst + off;
	if (!h.stored) {
		uint64_t begin = first, end = (uint64_t)16 * lade_front_word(front, k + 4);
		if (k)
			begin = (uint64_t)16 * lade_front_word(front, k + 3);
		if (begin < first || begin >= end || end > c.src_size || end - begin > part)
			return false;
		from = c.src + begin;
		part = (uint32_t)(end - begin);
	}
	bool raw = part == lade_bitcomp_up(len);
	if (raw && (h.quant || ((uintptr_t)to | (uintptr_t)from | len) & 15)) {
		lade_packed_copy(to, from, len, lane);
		return true;
	}
	lade_stager stager = {&room->barrier, told->staged & 1};
	__syncwarp();
	if (lane == 0)
		told->staged++;
	lade_stage_begin(&stager, room->units, from, part, lane);
	if (lane < 2)
		room->units[part / 16 + lane] = make_uint4(0, 0, 0, 0);
	lade_stage_wait<0>(&stager);
	if (raw) {
		lade_stage_out(to, room->units, len, lane);
		return true;
	}
	return h.log == 0   ? lade_bitcomp_block<0>(room, to, part, len, lane)
	       : h.log == 1 ? lade_bitcomp_block<1>(room, to, part, len, lane)
	       : h.log == 2 ? lade_bitcomp_block<2>(room, to, part, len, lane)
	                    : lade_bitcomp_block<3>(room, to, part, len, lane);
}

/* Makes floats of the integers at 'dst', which the warp has stored, as the header at 'src' says.
 * Rare, and so a function. */
static __device__ __noinline__ void lade_bitcomp_restore(const uint8_t *src, uint8_t *dst,
                                                         uint32_t len, uint32_t lane)
{
	lade_bitcomp_head h;
	__syncwarp();
	if (lade_bitcomp_head_of(lade_le32(src), lade_le32(src + 4), lade_le32(src + 8),
	                         lade_le32(src + 12), &h) == LADE_GPU_OK)
		lade_bitcomp_rescale<false>(dst, h.quant, h.log, h.exponent, len >> h.log, lane);
}

/* Finds the chunk, and makes the warp's sub-block whose turn it is, if there is one; gives the chunk's
 * status as far as it is known then. */
LADE_DEVICE uint32_t lade_bitcomp_turn(lade_bitcomp_room *room, const lade_gpu_batch &batch,
                                       const lade_spot &at, uint32_t ranks, lade_told *told)
{
	lade_gpu_chunk c;
	lade_bitcomp_head h;
	uint32_t k = at.k + told->turn * ranks, status = lade_chunk_get(batch, at.i, &c);
	if (status != LADE_GPU_OK)
		return status;
	lade_front front = lade_front_get(c, at.lane);
	status = lade_bitcomp_open(c, front, &h);
	if (status != LADE_GPU_OK)
		return status;
	if (at.lane == 0) {
		told->size = h.size;
		told->more = k < h.blocks && h.blocks - k > ranks;
		told->quantised = k < h.blocks && h.quant;
	}
	if (k >= h.blocks)
		return LADE_GPU_OK;
	return lade_bitcomp_one(room, told, c, front, h, k, at.lane) ? LADE_GPU_OK
	                                                             : LADE_GPU_CORRUPT;
}

/*
 * Map: a block is 256 threads, 8 warps; a chunk has 2^team_log warps of a block (1, 2, 4 or 8), or,
 * with 8, 'spans' blocks; a warp takes sub-blocks in turn; a lane makes 16 bytes of 512.  Shared
 * memory: 8 of lade_bitcomp_room, dynamic.  'state' has a word for each chunk that is 0 at the start,
 * used where 'spans' is above 1.  'next' is not used: the grid has all teams.
 *
 * Warps do not wait for one another before the chunk is done: all of a team read its header.
 */
extern "C" __global__ void __launch_bounds__(32 * LADE_BITCOMP_WARPS, 3)
	lade_bitcomp_decode(lade_gpu_batch batch, uint32_t team_log, uint32_t spans,
                            uint32_t *state)
{
	LADE_SHARED_DYNAMIC(lade_bitcomp_room, rooms);
	LADE_SHARED(lade_told, told, [LADE_BITCOMP_WARPS]);
	lade_spot at = lade_spot_of(team_log, spans);
	if (at.lane == 0)
		told[at.warp] = {};
	lade_stager stager;
	lade_stage_open(&stager, &rooms[at.warp].barrier, at.lane);
	__syncwarp();
	for (bool more = at.i < batch.count; more;) {
		uint32_t ranks = spans << team_log;
		uint32_t status =
			lade_bitcomp_turn(&rooms[at.warp], batch, at, ranks, &told[at.warp]);
		/* What was known before is found again, for the registers' sake. */
		at = lade_spot_of(team_log, spans);
		lade_told *mine = &told[at.warp];
		__syncwarp();
		if (status == LADE_GPU_OK && mine->quantised) {
			uint32_t off =
				(at.k + mine->turn * (spans << team_log)) * LADE_BITCOMP_BLOCK;
			lade_bitcomp_restore(batch.src[at.i], batch.dst[at.i] + off,
			                     min(mine->size - off, (uint32_t)LADE_BITCOMP_BLOCK),
			                     at.lane);
			at = lade_spot_of(team_log, spans);
			mine = &told[at.warp];
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
	at = lade_spot_of(team_log, spans);
	if (at.lane || at.warp & ((1u << team_log) - 1) || at.i >= batch.count)
		return;
	/* All warps of a chunk find the same, unless some sub-block is corrupt. */
	uint32_t status = told[at.warp].status;
	for (uint32_t j = 1; j < 1u << team_log; j++)
		if (status == LADE_GPU_OK)
			status = told[at.warp + j].status;
	if (spans > 1) {
		/* The last block to come knows of all others. */
		uint32_t all = atomicAdd(&state[at.i], 1u | (status ? 1u << 16 : 0));
		if ((all & 0xFFFF) + 1 < spans)
			return;
		if (status == LADE_GPU_OK && all >> 16)
			status = LADE_GPU_CORRUPT;
	}
	lade_chunk_put(batch, at.i, status, status == LADE_GPU_OK ? told[at.warp].size : 0);
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
