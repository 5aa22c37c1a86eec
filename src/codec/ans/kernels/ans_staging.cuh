/*
 * ans_staging.cuh: copies chunks of elements of 2, 4 and 8 bytes, or parts of them, to shared
 * memory for the encoder of ANS (ans_wide.cuh), and counts their byte positions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_ANS_STAGING_CUH
#define LADE_CUDA_ANS_STAGING_CUH

#include "codec/ans/kernels/ans_count.cuh"
#include "gpu/kernels/stage.cuh"

#define LADE_ANS_TILE 4096 /* bytes of the usual sub-block */

/* ---- the chunk in shared memory --------------------------------------------------------- */

/* A block's part of a chunk: each of its G warps has 'own' bytes of shared memory for whole
 * tiles. */
template <int G> struct lade_ans_staging {
	uint8_t *bytes;   /* the warp's */
	uint32_t own;
	lade_stager stager; /* the warp's */
	lade_ans_current
		*taken; /* the block's chunk and the next, in turn as the barrier's phases */
};

/* The chunk that the block works on, after its copy has been waited for; and the next. */
template <int G>
LADE_DEVICE const lade_ans_current &lade_ans_staged_now(const lade_ans_staging<G> &h)
{
	return h.taken[lade_ans_opaque(h.stager.phase) ^ 1];
}

template <int G> LADE_DEVICE lade_ans_current *lade_ans_staged_next(const lade_ans_staging<G> &h)
{
	return &h.taken[lade_ans_opaque(h.stager.phase)];
}

/* Tiles of the q-th part of a chunk that each warp gets: an even share, at most what fits. */
template <int G>
LADE_DEVICE uint32_t lade_ans_staged_tiles(const lade_ans_staging<G> &h, const lade_ans_chunk &p,
                                           uint32_t q)
{
	uint32_t all = h.own * G, left = p.size - p.tail - q * all;
	left = left < all ? left : all;
	return (left + G * LADE_ANS_TILE - 1) / (G * LADE_ANS_TILE);
}

/* The warp's share of the q-th part: '*at' is where it begins in the chunk; returns its bytes,
 * which may be 0. */
template <int G>
LADE_DEVICE uint32_t lade_ans_staged_share(const lade_ans_staging<G> &h, const lade_ans_chunk &p,
                                           uint32_t q, uint32_t *at)
{
	uint32_t share = LADE_ANS_TILE * lade_ans_staged_tiles(h, p, q), end = p.size - p.tail;
	*at = q * G * h.own + share * (lade_ans_thread() / 32);
	uint32_t left = *at < end ? end - *at : 0;
	return left < share ? left : share;
}

/* Not inlined: few sources are not aligned. */
LADE_ANS_NOINLINE void lade_ans_stage_shifted(uint8_t *to, const uint8_t *from, uint32_t size,
                                              uint32_t lane)
{
	lade_stage_shifted((uint4 *)lade_shared(to), from, size, lane);
}

/* Starts to copy the warp's share of the chunk's q-th part, over the one before. */
template <int G>
LADE_DEVICE void lade_ans_stage_begin(lade_ans_staging<G> &h, const lade_ans_chunk &p, uint32_t q,
                                      uint32_t lane)
{
	uint32_t at, size = lade_ans_staged_share(h, p, q, &at);
	const uint8_t *from = p.src + at;
	uint32_t whole = (uintptr_t)from & 15 ? 0 : size & ~15u;
	lade_stage_begin(&h.stager, (uint4 *)h.bytes,
	                 (const uint8_t *)((uintptr_t)from & ~(uintptr_t)15), whole & ~15u, lane);
	if (whole != size)
		lade_ans_stage_shifted(h.bytes + whole, from + whole, size - whole, lane);
}

/* Prefetches it to the L2 cache; a hint. */
template <int G>
LADE_DEVICE void lade_ans_stage_prefetch(const lade_ans_staging<G> &h, const lade_ans_chunk &p,
                                         uint32_t q, uint32_t lane)
{
	uint32_t at, size = lade_ans_staged_share(h, p, q, &at);
	if (lane == 0)
		lade_stage_ahead(p.src + at, size);
}

/* Waits for the barrier and flips its phase, on sm_80 as well. */
template <int G> LADE_DEVICE void lade_ans_stage_turn(lade_ans_staging<G> &h)
{
	lade_stage_wait<0>(&h.stager);
#if !LADE_STAGE_BULK
	h.stager.phase ^= 1;
#endif
}

/* Waits for the copy, and returns its bytes.  Clears the rest of the last tile. */
template <int G>
LADE_DEVICE uint32_t lade_ans_stage_wait(lade_ans_staging<G> &h, const lade_ans_chunk &p,
                                         uint32_t q, uint32_t lane)
{
	uint32_t at, size = lade_ans_staged_share(h, p, q, &at);
	lade_ans_stage_turn(h);
	for (at = ((size + 15) & ~15u) + 16 * lane;
	     at < ((size + LADE_ANS_TILE - 1) & ~(LADE_ANS_TILE - 1u)); at += 512)
		*(uint4 *)(h.bytes + at) = {0, 0, 0, 0};
	__syncwarp();
	return size;
}

/* Flips the barrier's phase to 'phase': the kernel expects one flip a chunk. */
template <int G>
LADE_DEVICE void lade_ans_stage_phase(lade_ans_staging<G> &h, uint32_t phase, uint32_t lane)
{
	if (h.stager.phase == phase)
		return;
	lade_stage_begin(&h.stager, (uint4 *)h.bytes, nullptr, 0, lane);
	lade_ans_stage_turn(h);
}

#define LADE_ANS_SIGNS 0x80808080u /* the highest bits of 4 bytes */

/*
 * Whether the lane's sample is negative.  Elements of 2 bytes are crossed if at least a quarter of
 * 32 samples, spread over the chunk's first part, are negative and at least a quarter are not.  All
 * warps read the same samples, from global memory.
 */
template <int G>
LADE_DEVICE bool lade_ans_sign_sample(const lade_ans_staging<G> &h, const lade_ans_chunk &p,
                                      uint32_t lane)
{
	uint32_t part = G * h.own, bytes = p.size - p.tail;
	uint32_t element = ((bytes < part ? bytes : part) / 2 - 1) * lane / 31;
	return bytes && __ldg(p.src + 2 * element + 1) >> 7;
}

/* A unit. */
template <int W> LADE_DEVICE void lade_ans_unit_get(const uint8_t *from, uint32_t *word)
{
	if (W == 2) {
		uint2 two = *(const uint2 *)from;
		word[0] = two.x;
		word[1] = two.y;
	}
#pragma unroll
	for (int k = 0; k < W / 4 * 4; k += 4) {
		uint4 four = ((const uint4 *)from)[k / 4];
		word[k % W] = four.x;
		word[(k + 1) % W] = four.y;
		word[(k + 2) % W] = four.z;
		word[(k + 3) % W] = four.w;
	}
}

/* 'a', with the bits of 'mask' from 'b'. */
LADE_DEVICE uint32_t lade_ans_select(uint32_t a, uint32_t b, uint32_t mask)
{
	return (a & ~mask) | (b & mask);
}

/* Splits a unit into its planes.  'cross' has the bits that the planes of 2-byte elements
 * exchange. */
template <int W>
LADE_DEVICE void lade_ans_planes_of(const uint32_t *word, uint32_t *plane, uint32_t cross)
{
	if (W == 2) {
		uint32_t low = __byte_perm(word[0], word[1 % W], 0x6420);
		uint32_t high = __byte_perm(word[0], word[1 % W], 0x7531);
		plane[0] = lade_ans_select(low, high, cross);
		plane[1 % W] = lade_ans_select(high, low, cross);
	}
	/* Four planes of 4 elements, whose words are 'step' apart. */
	constexpr int step = W / 4 ? W / 4 : 1;
#pragma unroll
	for (int h = 0; h < W / 4; h++) {
		uint32_t a = __byte_perm(word[h], word[(h + step) % W], 0x5140);
		uint32_t b = __byte_perm(word[h], word[(h + step) % W], 0x7362);
		uint32_t c =
			__byte_perm(word[(h + 2 * step) % W], word[(h + 3 * step) % W], 0x5140);
		uint32_t d =
			__byte_perm(word[(h + 2 * step) % W], word[(h + 3 * step) % W], 0x7362);
		plane[(4 * h) % W] = __byte_perm(a, c, 0x5410);
		plane[(4 * h + 1) % W] = __byte_perm(a, c, 0x7632);
		plane[(4 * h + 2) % W] = __byte_perm(b, d, 0x5410);
		plane[(4 * h + 3) % W] = __byte_perm(b, d, 0x7632);
	}
}

/* ---- counts ----------------------------------------------------------------------------- */

/* Counts plane n in four words. */
template <int W>
LADE_DEVICE void lade_ans_count_words(const uint32_t four[4], uint32_t n, uint32_t cross,
                                      lade_ans_address count)
{
	uint32_t byte = 0x4440 + (n & 3);
#pragma unroll
	for (int j = 0; j < (W == 8 ? 2 : 4); j++) {
		uint32_t w = W < 8 ? four[j] : n & 4 ? four[(2 * j + 1) % 4] : four[2 * j % 4];
		if (W == 2)
			w = lade_ans_select(w, __byte_perm(w, 0, 0x2301), cross);
		lade_ans_increment(count + 4 * (lade_ans_address)__byte_perm(w, 0, byte));
		if (W == 2)
			lade_ans_increment(count +
			                   4 * (lade_ans_address)__byte_perm(w, 0, byte + 2));
	}
}

/* And in 16 bytes. */
template <int W>
LADE_DEVICE void lade_ans_count_piece(const uint8_t *from, uint32_t n, uint32_t cross,
                                      lade_ans_address count)
{
	uint32_t four[4];
	lade_ans_unit_get<4>(from, four);
	lade_ans_count_words<W>(four, n, cross, count);
}

/* The same in four elements of 2 bytes, by a whole warp. */
LADE_DEVICE void lade_ans_count_half(const uint8_t *from, uint32_t n, uint32_t cross,
                                     lade_ans_address count, uint32_t lane)
{
	from += 2 * lane;
	if (lane < 4)
		lade_ans_increment(count + 4 * (lade_ans_address)lade_ans_select(
						       from[n], from[1 - n], cross & 0xFF));
}

/* Counts plane n of 'bytes' of whole units, by a whole warp. */
template <int W>
LADE_DEVICE void lade_ans_count_share(const uint8_t *from, uint32_t bytes, uint32_t n,
                                      uint32_t cross, lade_ans_address count, uint32_t lane)
{
	uint32_t pieces = bytes / 16, at = lane;
	if (W == 2 && bytes % 16)
		lade_ans_count_half(from + 16 * pieces, n, cross, count, lane);
	from += 16 * lane;
#pragma unroll 1
	for (; at + 96 < pieces; at += 128, from += 2048) {
#pragma unroll
		for (int j = 0; j < 4; j++)
			lade_ans_count_piece<W>(from + 512 * j, n, cross, count);
	}
#pragma unroll 1
	for (; at < pieces; at += 32, from += 512)
		lade_ans_count_piece<W>(from, n, cross, count);
}

/* Counts planes of the warp's share of a part. */
template <int W>
LADE_DEVICE void lade_ans_count_planes(const uint8_t *held, uint32_t have, uint32_t planes,
                                       uint32_t cross, lade_ans_address count, uint32_t lane)
{
#pragma unroll 1
	for (uint32_t m = planes; m; m &= m - 1) {
		uint32_t n = (uint32_t)__ffs((int)m) - 1;
		lade_ans_count_share<W>(held, have, n, cross, count + (lade_ans_address)(1024 * n),
		                        lane);
	}
}

/* Counts planes in DEEP pieces of a thread from global memory, a block's width apart. */
template <int W, int G, int DEEP>
LADE_DEVICE void lade_ans_count_global(const uint8_t *src, uint32_t at, uint32_t planes,
                                       uint32_t cross, lade_ans_address count)
{
	uint32_t four[DEEP][4];
#pragma unroll
	for (int j = 0; j < DEEP; j++) {
		const uint8_t *from = src + at + 512 * G * j;
		if ((uintptr_t)src & 15) {
#pragma unroll
			for (int k = 0; k < 4; k++)
				four[j][k] = lade_ans_word_at<false>(from + 4 * k);
		} else {
			lade_ans_unit_get<4>(from, four[j]);
		}
	}
#pragma unroll 1
	for (uint32_t m = planes; m; m &= m - 1) {
		uint32_t n = (uint32_t)__ffs((int)m) - 1;
#pragma unroll
		for (int j = 0; j < DEEP; j++)
			lade_ans_count_words<W>(four[j], n, cross,
			                        count + (lade_ans_address)(1024 * n));
	}
}

/* Counts planes of a chunk that does not fit shared memory, by a whole block.  Not inlined, because
 * few chunks need it. */
template <int W, int G>
LADE_ANS_NOINLINE void lade_ans_count_chunk(const lade_ans_chunk *p, uint32_t planes,
                                            uint32_t cross, lade_ans_address count)
{
	constexpr uint32_t STEP = 512 * G, DEEP = 6;
	const uint8_t *src = lade_global(lade_shared(p)->src);
	uint32_t bytes = lade_shared(p)->size - lade_shared(p)->tail;
	uint32_t pieces = bytes & ~15u, at = 16 * lade_ans_thread();
#pragma unroll 1
	for (; at + (DEEP - 1) * STEP < pieces; at += DEEP * STEP)
		lade_ans_count_global<W, G, DEEP>(src, at, planes, cross, count);
#pragma unroll 1
	for (; at < pieces; at += STEP)
		lade_ans_count_global<W, G, 1>(src, at, planes, cross, count);
	/* Half a piece. */
	if (W == 2 && pieces < bytes && lade_ans_thread() < 32)
		for (uint32_t n = 0; n < W; n++)
			if (planes >> n & 1)
				lade_ans_count_half(src + pieces, n, cross,
				                    count + (lade_ans_address)(1024 * n),
				                    lade_ans_thread());
}

/* Bytes that a warp samples, and elements that a block samples: 512 to 2,048. */
template <int W, int G> struct lade_ans_sample_of {
	static constexpr uint32_t BYTES = W == 8 ? 1024 : 512, ALL = G * BYTES / W;
	/* The sum of c (c - 1) would be ALL (ALL - 1) / 256 for even chances, and is below 1.15 of
	 * that where the entropy is above 7.8 bits. */
	static constexpr uint32_t NOISE = ALL + ALL / 16 * (ALL / 16) / 1024 * 1175;
};

/* Counts all planes but the last one in 16 bytes. */
template <int W>
LADE_DEVICE void lade_ans_sample_piece(const uint8_t *from, uint32_t cross, lade_ans_address count)
{
#pragma unroll
	for (uint32_t n = 0; n < W - 1; n++)
		lade_ans_count_piece<W>(from, n, cross, count + (lade_ans_address)(1024 * n));
}

/* Samples a chunk in shared memory: warps take their first and their last tile in turn, so that
 * rows of two tiles are sampled whole. */
template <int W, int G>
LADE_DEVICE void lade_ans_sample(const lade_ans_staging<G> &h, const lade_ans_chunk &p,
                                 uint32_t cross, lade_ans_address count, uint32_t lane)
{
	constexpr uint32_t BYTES = lade_ans_sample_of<W, G>::BYTES;
	uint32_t warp = lade_ans_thread() / 32;
	uint32_t tile = warp & 1 ? 0 : lade_ans_staged_tiles(h, p, 0) - 1;
	const uint8_t *from = h.bytes + LADE_ANS_TILE * tile + 3 * BYTES * warp % LADE_ANS_TILE;
#pragma unroll
	for (uint32_t at = 0; at < BYTES; at += 512)
		lade_ans_sample_piece<W>(from + at + 16 * lane, cross, count);
}

/* Samples a chunk that does not fit shared memory and is aligned to 16: each thread at
 * pseudo-random places of its own ranges, because data may be periodic. */
template <int W, int G>
LADE_ANS_NOINLINE void lade_ans_sample_global(const lade_ans_chunk *p, uint32_t cross,
                                              lade_ans_address count)
{
	constexpr uint32_t THREADS = 32 * G, BYTES = lade_ans_sample_of<W, G>::BYTES;
	const uint8_t *src = lade_global(lade_shared(p)->src);
	uint32_t bytes = lade_shared(p)->size - lade_shared(p)->tail;
	uint32_t range = bytes / (THREADS * BYTES / 512), i = lade_ans_thread();
#pragma unroll
	for (uint32_t k = 0; k < BYTES / 512; k++, i += THREADS) {
		uint32_t at = range * i + __umulhi(i * 2654435769u, range - 15);
		lade_ans_sample_piece<W>(src + (at & ~15u), cross, count);
	}
}

#endif
