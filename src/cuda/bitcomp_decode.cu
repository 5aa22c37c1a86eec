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

/* A sub-block in shared memory; places are in bytes from its begin. */
struct lade_bitcomp_parts {
	uint32_t mode, width, step, codes, payload, dict, words;
	uint64_t base, reference;
};

/* w(u) of section 2. */
LADE_DEVICE uint32_t lade_bitcomp_width(uint32_t width, uint32_t code, uint32_t step)
{
	int32_t w = (int32_t)width - (int32_t)(code << step);
	return code == 15 ? 0 : (uint32_t)max(w, 0);
}

/* Checks a sub-block of 'size' bytes with 'units' units (section 4); all lanes give the same. */
template <int LOG>
LADE_DEVICE bool lade_bitcomp_check(const uint8_t *s, uint32_t size, uint32_t units, uint32_t lane,
                                    lade_bitcomp_parts *p)
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
				uint32_t w = lade_bitcomp_width(p->width, word >> 4 * k & 15,
				                                p->step);
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

/* ---- a lane's elements ------------------------------------------------------------------- */

/* The lowest 'count' bits, of up to 32. */
LADE_DEVICE uint32_t lade_bitcomp_mask(uint32_t count)
{
	return __funnelshift_rc(LADE_FULL, 0, 32 - count);
}

/* 32 bits from bit 'at' on. */
LADE_DEVICE uint32_t lade_bitcomp_bits(const uint32_t *s, uint32_t at)
{
	return __funnelshift_r(s[at / 32], s[at / 32 + 1], at & 31);
}

/*
 * The lane's values, 'width' bits each from bit 'at' on, in their places in 16 bytes.
 */
template <int LOG>
LADE_DEVICE void lade_bitcomp_unpack(const uint32_t *s, uint32_t at, uint32_t width, uint32_t *w)
{
	if (LOG == 3) {
		uint32_t low = lade_bitcomp_mask(min(width, 32u));
		uint32_t high = lade_bitcomp_mask(width < 32 ? 0 : width - 32);
#pragma unroll
		for (uint32_t i = 0; i < 2; i++) {
			uint32_t bit = at + i * width;
			w[2 * i] = lade_bitcomp_bits(s, bit) & low;
			w[2 * i + 1] = lade_bitcomp_bits(s, bit + 32) & high;
		}
		return;
	}
	/* 4 >> LOG values are in a word's place: word k begins k * fields bits on. */
	constexpr uint32_t EACH = 4 >> LOG;
	uint32_t q[5], fields = width * EACH, mask = lade_bitcomp_mask(width);
#pragma unroll
	for (uint32_t k = 0; k < 5; k++)
		q[k] = s[at / 32 + k];
#pragma unroll
	for (uint32_t k = 0; k < 4; k++)
		q[k] = __funnelshift_r(q[k], q[k + 1], at & 31);
#pragma unroll
	for (uint32_t k = 0; k < 4; k++) {
		uint32_t v = q[0];
		if (LOG == 2) {
			w[k] = v & mask;
		} else if (LOG == 1) {
			w[k] = (v & mask) | (v << (16 - width) & mask << 16);
		} else {
			uint32_t two = lade_bitcomp_mask(2 * width);
			v = (v & two) | (v << (16 - 2 * width) & two << 16);
			mask = lade_bitcomp_mask(width) * 0x00010001u;
			w[k] = (v & mask) | (v << (8 - width) & mask << 8);
		}
#pragma unroll
		for (uint32_t j = 0; j < 3; j++)
			if (j + k < 3)
				q[j] = __funnelshift_rc(q[j], q[j + 1], fields);
	}
}

/* Steps 2 and 3 of section 3: what does not depend on the value. */
struct lade_bitcomp_undo {
	uint32_t flip;           /* all ones from above: reference - x = reference + 1 + ~x */
	uint32_t reference, low; /* in each place; of size 8 the low and the high half */
	uint32_t high;
	uint32_t fold, keep, keep_high; /* t = u >> 1 ^ (ones where u is odd & keep) */
};

template <int LOG> LADE_DEVICE lade_bitcomp_undo lade_bitcomp_undo_of(const lade_bitcomp_parts &p)
{
	lade_bitcomp_undo u;
	uint32_t above = p.mode & LADE_BITCOMP_ABOVE ? 1 : 0;
	uint64_t reference = p.reference + above;
	u.flip = 0 - above;
	uint32_t mask = LOG == 0 ? 0xFFu : LOG == 1 ? 0xFFFFu : LADE_FULL;
	u.reference = lade_bitcomp_word<LOG == 3 ? 2 : LOG>::all((uint32_t)reference & mask);
	u.low = (uint32_t)reference;
	u.high = (uint32_t)(reference >> 32);
	u.fold = p.mode >> LADE_BITCOMP_FOLD & 3;
	bool zigzag = u.fold == LADE_BITCOMP_ZIGZAG;
	u.keep = zigzag ? LADE_FULL : LOG == 3 ? 0 : lade_bitcomp_word<LOG == 3 ? 2 : LOG>::TOP;
	u.keep_high = zigzag ? LADE_FULL : 1u << 31;
	return u;
}

template <int LOG> LADE_DEVICE void lade_bitcomp_unfold(const lade_bitcomp_undo &u, uint32_t *w)
{
	typedef lade_bitcomp_word<LOG == 3 ? 2 : LOG> word;
	if (LOG == 3) {
#pragma unroll
		for (uint32_t k = 0; k < 4; k += 2) {
			uint64_t v = ((uint64_t)(w[k + 1] ^ u.flip) << 32 | (w[k] ^ u.flip)) +
			             ((uint64_t)u.high << 32 | u.low);
			w[k] = (uint32_t)v;
			w[k + 1] = (uint32_t)(v >> 32);
			if (u.fold) {
				uint32_t odd = 0 - (w[k] & 1);
				w[k] = __funnelshift_r(w[k], w[k + 1], 1) ^ (odd & u.keep);
				w[k + 1] = w[k + 1] >> 1 ^ (odd & u.keep_high);
			}
		}
	} else {
#pragma unroll
		for (uint32_t k = 0; k < 4; k++) {
			w[k] = word::add(w[k] ^ u.flip, u.reference);
			if (u.fold)
				w[k] = (w[k] >> 1 & ~word::TOP) ^ (word::ones(w[k]) & u.keep);
		}
	}
}

/* Inclusive sum over the lanes, and the sum of all. */
LADE_DEVICE uint64_t lade_bitcomp_scan64(uint64_t v, uint32_t lane)
{
#pragma unroll
	for (uint32_t d = 1; d < 32; d *= 2) {
		uint64_t before = __shfl_up_sync(LADE_FULL, (unsigned long long)v, d);
		v += lane >= d ? before : 0;
	}
	return v;
}

/* Step 4: sums up; 'sum' is what is before the group, and then what is before the next. */
template <int LOG> LADE_DEVICE void lade_bitcomp_sum(uint32_t *w, uint64_t *sum, uint32_t lane)
{
	typedef lade_bitcomp_word<LOG == 3 ? 2 : LOG> word;
	if (LOG == 3) {
		uint64_t a = (uint64_t)w[1] << 32 | w[0], b = ((uint64_t)w[3] << 32 | w[2]) + a;
		uint64_t all = lade_bitcomp_scan64(b, lane), before = all - b + *sum;
		a += before;
		b += before;
		w[0] = (uint32_t)a;
		w[1] = (uint32_t)(a >> 32);
		w[2] = (uint32_t)b;
		w[3] = (uint32_t)(b >> 32);
		*sum += __shfl_sync(LADE_FULL, (unsigned long long)all, 31);
		return;
	}
	/* Within each word first; the last element of a word then has its sum. */
	constexpr uint32_t LAST = LOG == 3 ? 0 : 32 - (8u << LOG);
	uint32_t total = 0, before[4];
#pragma unroll
	for (uint32_t k = 0; k < 4; k++) {
		if (LOG == 0)
			w[k] = word::add(w[k], w[k] << 8);
		if (LOG <= 1)
			w[k] = word::add(w[k], w[k] << 16);
		before[k] = total;
		total += w[k] >> LAST;
	}
	uint32_t all = lade_warp_scan(total, lane), base = all - total + (uint32_t)*sum;
	constexpr uint32_t MASK = LOG == 0 ? 0xFFu : LOG == 1 ? 0xFFFFu : LADE_FULL;
#pragma unroll
	for (uint32_t k = 0; k < 4; k++)
		w[k] = word::add(w[k], word::all((before[k] + base) & MASK));
	*sum += __shfl_sync(LADE_FULL, all, 31);
}

/* Step 1. */
LADE_DEVICE void lade_bitcomp_look_up(const uint8_t *dict, uint32_t *w)
{
#pragma unroll
	for (uint32_t k = 0; k < 4; k++) {
		uint32_t a = dict[w[k] & 0xFF], b = dict[w[k] >> 8 & 0xFF];
		uint32_t c = dict[w[k] >> 16 & 0xFF], d = dict[w[k] >> 24];
		w[k] = __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
	}
}

/* ---- a sub-block ------------------------------------------------------------------------- */

/* The 'len' bytes of a sub-block that was checked, to 'dst'. */
template <int LOG, bool DELTA>
LADE_DEVICE void lade_bitcomp_make(const lade_bitcomp_room *room, const lade_bitcomp_parts &p,
                                   uint8_t *dst, uint32_t len, uint32_t lane)
{
	const uint32_t *s = (const uint32_t *)room->units;
	const uint8_t *codes = (const uint8_t *)room->units + p.codes;
	constexpr uint32_t BITS_LOG = 4 - LOG;        /* log2 of a lane's values */
	constexpr uint32_t UNITS = LOG < 2 ? 32 : 64 >> LOG; /* of a group */
	constexpr uint32_t SHARE = LOG < 2 ? 0 : LOG - 1;    /* log2 of a unit's lanes */
	lade_bitcomp_undo undo = lade_bitcomp_undo_of<LOG>(p);
	bool widths = p.mode & LADE_BITCOMP_WIDTHS, dict = LOG == 0 && p.mode & LADE_BITCOMP_DICT;
	uint32_t at = 8 * p.payload, width = p.width, unit = lane >> SHARE;
	constexpr uint32_t EACH = LOG ? 8u << LOG : 16; /* bytes of a unit */
	uint32_t units = (len + EACH - 1) / EACH;
	uint64_t sum = p.base;
#pragma unroll 1
	for (uint32_t off = 0; off < len; off += LADE_BITCOMP_GROUP) {
		uint32_t begin, w[4];
		if (widths) {
			/* Behind the last unit there are none, and no bits. */
			uint32_t code = unit < units ? codes[unit / 2] >> 4 * (unit & 1) & 15 : 15;
			width = lade_bitcomp_width(p.width, code, p.step);
			uint32_t mine = width << BITS_LOG, end = lade_warp_scan(mine, lane);
			begin = at + end - mine;
			at += __shfl_sync(LADE_FULL, end, 31);
			unit += UNITS;
		} else {
			begin = at + ((width * lane) << BITS_LOG);
			at += width << (5 + BITS_LOG);
			/* The last group may have fewer units than lanes. */
			begin = off + 16 * lane < len ? begin : 8 * p.payload;
		}
		lade_bitcomp_unpack<LOG>(s, begin, width, w);
		if (dict) {
			lade_bitcomp_look_up((const uint8_t *)room->dict, w);
		} else {
			lade_bitcomp_unfold<LOG>(undo, w);
			if (DELTA)
				lade_bitcomp_sum<LOG>(w, &sum, lane);
		}
		lade_bitcomp_store(dst + off, w, len - off, lane);
	}
}

/* Sub-block i, if there is nothing wrong with it.  A function of its own, so that what the kernel
 * keeps from sub-block to sub-block takes no registers here. */
template <int LOG>
static __device__ __noinline__ bool
lade_bitcomp_block(lade_bitcomp_room *there, lade_stager *stager, const lade_gpu_chunk &c,
                   const lade_bitcomp_head &h, uint32_t i, uint32_t lane)
{
	lade_bitcomp_room *room = lade_shared(there);
	uint32_t first = lade_bitcomp_first(h.blocks);
	const uint8_t *ends = c.src + LADE_BITCOMP_HEADER + 4 * i;
	uint64_t begin = i ? (uint64_t)16 * lade_bitcomp_le32(ends - 4) : first;
	uint64_t end = (uint64_t)16 * lade_bitcomp_le32(ends);
	uint32_t off = i * LADE_BITCOMP_BLOCK;
	uint32_t len = min(h.size - off, (uint32_t)LADE_BITCOMP_BLOCK);
	if (begin < first || begin >= end || end > c.src_size || end - begin > lade_bitcomp_up(len))
		return false;
	uint32_t size = (uint32_t)(end - begin);
	const uint8_t *from = c.src + begin;
	if (size == lade_bitcomp_up(len)) {
		lade_bitcomp_copy(c.dst + off, from, len, lane);
		return true;
	}
	lade_stage_begin(stager, room->units, from, size, lane);
	if (lane < 2)
		room->units[size / 16 + lane] = make_uint4(0, 0, 0, 0);
	lade_stage_wait<0>(stager);
	lade_bitcomp_parts p;
	const uint8_t *s = (const uint8_t *)room->units;
	constexpr uint32_t EACH = LOG ? 8u << LOG : 16;
	if (!lade_bitcomp_check<LOG>(s, size, (len + EACH - 1) / EACH, lane, &p))
		return false;
	if (LOG == 0 && p.mode & LADE_BITCOMP_DICT) {
		/* What it has no word for is 0. */
		uint32_t *dict = room->dict;
#pragma unroll
		for (uint32_t k = 0; k < 2; k++) {
			uint32_t word = lane + 32 * k, v = 0;
			if (4 * word < p.words)
				v = ((const uint32_t *)(s + p.dict))[word];
			uint32_t left = 4 * word < p.words ? p.words - 4 * word : 0;
			dict[word] = v & lade_bitcomp_mask(min(8 * left, 32u));
		}
		__syncwarp();
	}
	if (p.mode & LADE_BITCOMP_DELTA)
		lade_bitcomp_make<LOG, true>(room, p, c.dst + off, len, lane);
	else
		lade_bitcomp_make<LOG, false>(room, p, c.dst + off, len, lane);
	return true;
}

/* ---- chunks ------------------------------------------------------------------------------ */

/* What holds for a chunk as a whole: all of section 4 but its sub-blocks. */
LADE_DEVICE uint32_t lade_bitcomp_open(const lade_gpu_chunk &c, lade_bitcomp_head *h)
{
	uint32_t status = lade_bitcomp_head_get(c.src, c.src_size, h);
	if (status != LADE_GPU_OK)
		return status;
	if (h->size > c.dst_cap)
		return LADE_GPU_NOSPACE;
	uint64_t want = (uint64_t)LADE_BITCOMP_HEADER + h->size;
	if (!h->stored && h->size) {
		want = lade_bitcomp_first(h->blocks);
		if (c.src_size >= want)
			want = (uint64_t)16 * lade_bitcomp_le32(c.src + LADE_BITCOMP_HEADER +
			                                        4 * (h->blocks - 1));
	}
	return c.src_size < want   ? LADE_GPU_TRUNCATED
	       : c.src_size > want ? LADE_GPU_CORRUPT
	                           : LADE_GPU_OK;
}

/* The share of warp 'rank' of 'ranks' of chunk 'i'; gives the chunk's status as far as it saw. */
LADE_DEVICE uint32_t lade_bitcomp_share(lade_bitcomp_room *room, lade_stager *stager,
                                        const lade_gpu_batch &batch, uint32_t i, uint32_t rank,
                                        uint32_t ranks, uint32_t lane, uint32_t *size)
{
	lade_gpu_chunk c;
	lade_bitcomp_head h;
	uint32_t status = lade_chunk_get(batch, i, &c);
	if (status == LADE_GPU_OK)
		status = lade_bitcomp_open(c, &h);
	if (status != LADE_GPU_OK)
		return status;
	*size = h.size;
	bool good = true;
#pragma unroll 1
	for (uint32_t k = rank; k < h.blocks; k += ranks) {
		if (h.stored) {
			uint32_t off = k * LADE_BITCOMP_BLOCK;
			lade_bitcomp_copy(c.dst + off, c.src + LADE_BITCOMP_HEADER + off,
			                  min(h.size - off, (uint32_t)LADE_BITCOMP_BLOCK), lane);
			continue;
		}
		bool fine;
		if (h.log == 0)
			fine = lade_bitcomp_block<0>(room, stager, c, h, k, lane);
		else if (h.log == 1)
			fine = lade_bitcomp_block<1>(room, stager, c, h, k, lane);
		else if (h.log == 2)
			fine = lade_bitcomp_block<2>(room, stager, c, h, k, lane);
		else
			fine = lade_bitcomp_block<3>(room, stager, c, h, k, lane);
		good &= fine;
	}
	/* Of what other lanes have stored, too. */
	__syncwarp();
#pragma unroll 1
	for (uint32_t k = rank; good && h.quant && k < h.blocks; k += ranks) {
		uint32_t off = k * LADE_BITCOMP_BLOCK;
		uint32_t len = min(h.size - off, (uint32_t)LADE_BITCOMP_BLOCK);
		lade_bitcomp_rescale<false>(c.dst + off, h.quant, h.log, h.exponent, len >> h.log,
		                            lane);
	}
	return good ? LADE_GPU_OK : LADE_GPU_CORRUPT;
}

/*
 * Map: a block is 256 threads, 8 warps; a chunk has 'team' warps of a block (1, 2, 4 or 8), or, with
 * 8, 'spans' blocks; a warp takes sub-blocks in turn; a lane makes 16 bytes of 512.  Shared memory:
 * 8 of lade_bitcomp_room, dynamic.  'state' has a word for each chunk that is 0 at the start, used
 * where 'spans' is above 1.  'next' is not used: the grid has all teams.
 */
extern "C" __global__ void __launch_bounds__(32 * LADE_BITCOMP_WARPS, 3)
	lade_bitcomp_decode(lade_gpu_batch batch, uint32_t team, uint32_t spans, uint32_t *state)
{
	LADE_SHARED_DYNAMIC(lade_bitcomp_room, rooms);
	LADE_SHARED(uint32_t, done, [LADE_BITCOMP_WARPS]);
	uint32_t lane = lade_lane(), warp = threadIdx.x / 32;
	uint32_t crew = warp / team, teams = LADE_BITCOMP_WARPS / team;
	uint32_t i = blockIdx.x / spans * teams + crew, span = blockIdx.x % spans;
	if (threadIdx.x < LADE_BITCOMP_WARPS)
		done[threadIdx.x] = 0;
	__syncthreads();
	if (i >= batch.count)
		return;
	lade_stager stager;
	lade_stage_open(&stager, &rooms[warp].barrier, lane);
	uint32_t size = 0;
	uint32_t status = lade_bitcomp_share(&rooms[warp], &stager, batch, i, span * team + warp % team,
	                                     spans * team, lane, &size);
	if (lane)
		return;
	/* The last warp of a chunk tells what became of it: all find the same, unless some sub-block
	 * is corrupt. */
	uint32_t told = atomicAdd(&done[crew], 1u | status << 16);
	if ((told & 0xFFFF) + 1 < team)
		return;
	if (status == LADE_GPU_OK && told >> 16)
		status = LADE_GPU_CORRUPT;
	if (spans > 1) {
		told = atomicAdd(&state[i], 1u | (status ? 1u << 16 : 0));
		if ((told & 0xFFFF) + 1 < spans)
			return;
		if (status == LADE_GPU_OK && told >> 16)
			status = LADE_GPU_CORRUPT;
	}
	lade_chunk_put(batch, i, status, size);
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
	if (status == LADE_GPU_OK)
		status = lade_bitcomp_head_get(c.src, c.src_size, &h);
	lade_chunk_put(batch, i, status, h.size);
}
