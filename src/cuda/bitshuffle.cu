/*
 * bitshuffle.cu: the bit shuffle of chunks and back (docs/format/filters.md, section 2), in all its
 * forms, for elements of 1, 2, 4 and 8 bytes.
 *
 * A block of the form, or a whole chunk, is cut into tiles of 4 KiB of elements, which are 512 /
 * size bytes of each row.  A warp makes a tile, and a lane transposes 32 words of it, in sets of
 * 32 elements:
 *
 *     size   sets a lane   words a set   which are
 *     1      4             8             32 elements that lie together
 *     2      2             16            likewise
 *     4      1             32            likewise
 *     8      1             32            the lower halves of 32 elements (even lanes), or their
 *                                        upper ones (odd lanes)
 *
 * A set becomes a word of each of its rows, and the lanes' words of a row lie together.  So rows
 * are read and written in lines of 128 bytes (64 for size 8) with no further ado; elements, whose
 * lines belong to few lanes each, go by way of shared memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/batch.cuh"

#define LADE_BITS_TILE 4096 /* bytes */
#define LADE_BITS_WARPS 4   /* of a block */

/* Word x of a tile is at x + x / 32, so that neither a line's words nor the lanes' n-th ones share
 * a bank. */
#define LADE_BITS_SHARED (LADE_BITS_TILE / 4 / 32 * 33)

/* ---- words in memory -------------------------------------------------------------------- */

static __device__ __forceinline__ uint32_t lade_bits_load(const uint8_t *from)
{
	return __ldg((const uint32_t *)from);
}

static __device__ __forceinline__ void lade_bits_store(uint8_t *to, uint32_t word)
{
	__stwb((uint32_t *)to, word);
}

/* The word at any address of which 'left' bytes are there, at most 4 of them wanted; others are
 * 0. */
static __device__ __forceinline__ uint32_t lade_bits_load_some(const uint8_t *from, int32_t left)
{
	uint32_t word = 0;
	if (left >= 4 && !((uintptr_t)from & 3))
		return lade_bits_load(from);
#pragma unroll
	for (int32_t k = 0; k < 4; k++)
		if (k < left)
			word |= (uint32_t)__ldg(from + k) << (8 * k);
	return word;
}

/*
 * Stores the words of a line at any address: the lane's word at 'to', of which 'left' bytes belong
 * to the line.  The word before it in the line is that of the lane 'step' below; lanes below 'step'
 * begin a line.  A lane writes the aligned word that holds the first byte of its own, if all of
 * that lies in the line, and else bytes.  For all lanes.
 */
static __device__ __forceinline__ void
lade_bits_store_line(uint8_t *to, uint32_t word, int32_t left, uint32_t step, uint32_t lane)
{
	int32_t over = (int32_t)((uintptr_t)to & 3);
	uint32_t before = __shfl_up_sync(LADE_FULL, word, step);
	bool first = lane < step;
	uint32_t shifted = __funnelshift_l(before, word, 8 * (uint32_t)over);
	if (left >= 4 - over && (!first || !over)) {
		lade_bits_store(to - over, shifted);
	} else {
#pragma unroll
		for (int32_t k = 0; k < 4; k++)
			if (k - over < left && (k >= over || !first))
				to[k - over] = (uint8_t)(shifted >> (8 * k));
	}
	/* The last word's bytes that no lane follows to write. */
	if (lane + step >= 32)
		for (int32_t k = 4 - over; k < 4; k++)
			if (k < left)
				to[k] = (uint8_t)(word >> (8 * k));
}

/* ---- transposing ------------------------------------------------------------------------ */

/* Exchanges a bit of the words' numbers for a bit of the place in a word: bits whose place has the
 * bit 'PLACE', of words without the bit 'WORD', for those of words with it whose place lacks it. */
template <uint32_t COUNT, uint32_t WORD, uint32_t PLACE>
static __device__ __forceinline__ void lade_bits_exchange(uint32_t *words)
{
	constexpr uint32_t mask = PLACE == 4 ? 0x0F0F0F0Fu : PLACE == 2 ? 0x33333333u : 0x55555555u;
#pragma unroll
	for (uint32_t i = 0; i < COUNT; i++) {
		if (i & WORD)
			continue;
		uint32_t a = words[i], b = words[i + WORD];
		if (PLACE == 16) {
			words[i] = __byte_perm(a, b, 0x5410);
			words[i + WORD] = __byte_perm(a, b, 0x7632);
		} else if (PLACE == 8) {
			words[i] = __byte_perm(a, b, 0x6240);
			words[i + WORD] = __byte_perm(a, b, 0x7351);
		} else {
			words[i] = (a & mask) | ((b & mask) << PLACE);
			words[i + WORD] = (a >> PLACE & mask) | (b & ~mask);
		}
	}
}

/*
 * The shape of a size of elements.  A set's words hold elements e4 e3 e2 e1 e0 with bits b(n) ..
 * b0; transposed, the place in a word is e4 .. e0 and the word's number has the b.  Sizes 1 and 2
 * hold e0 (and e1) in the place, and exchange it twice; the b end up in another order, which row()
 * tells.
 */
template <uint32_t SIZE> struct lade_bits {
	static constexpr uint32_t SETS = SIZE < 4 ? 4 / SIZE : 1;
	static constexpr uint32_t WORDS = 32 / SETS;
	static constexpr uint32_t STEP = SIZE == 8 ? 2 : 1; /* lanes from word to word of a row */
	static constexpr uint32_t ROWS = 8 * SIZE;
	/* Bytes of a row in a tile. */
	static constexpr uint32_t GROUPS = LADE_BITS_TILE / (8 * SIZE);

	static __device__ __forceinline__ uint32_t row(uint32_t i, uint32_t lane)
	{
		return SIZE == 1   ? (i & 1) << 2 | i >> 1
		       : SIZE == 2 ? (i & 7) << 1 | i >> 3
		       : SIZE == 4 ? i
		                   : 32 * (lane & 1) + i;
	}

	static __device__ __forceinline__ void to_rows(uint32_t *w)
	{
		if (SIZE >= 4) {
			lade_bits_exchange<WORDS, 16, 16>(w);
			lade_bits_exchange<WORDS, 8, 8>(w);
			lade_bits_exchange<WORDS, 4, 4>(w);
			lade_bits_exchange<WORDS, 2, 2>(w);
			lade_bits_exchange<WORDS, 1, 1>(w);
		} else if (SIZE == 2) {
			lade_bits_exchange<WORDS, 8, 16>(w);
			lade_bits_exchange<WORDS, 4, 8>(w);
			lade_bits_exchange<WORDS, 2, 4>(w);
			lade_bits_exchange<WORDS, 1, 2>(w);
			lade_bits_exchange<WORDS, 8, 1>(w);
		} else {
			lade_bits_exchange<WORDS, 4, 16>(w);
			lade_bits_exchange<WORDS, 2, 8>(w);
			lade_bits_exchange<WORDS, 1, 4>(w);
			lade_bits_exchange<WORDS, 4, 2>(w);
			lade_bits_exchange<WORDS, 2, 1>(w);
		}
	}

	static __device__ __forceinline__ void from_rows(uint32_t *w)
	{
		if (SIZE >= 4) {
			to_rows(w); /* the exchanges commute */
		} else if (SIZE == 2) {
			lade_bits_exchange<WORDS, 8, 1>(w);
			lade_bits_exchange<WORDS, 1, 2>(w);
			lade_bits_exchange<WORDS, 2, 4>(w);
			lade_bits_exchange<WORDS, 4, 8>(w);
			lade_bits_exchange<WORDS, 8, 16>(w);
		} else {
			lade_bits_exchange<WORDS, 2, 1>(w);
			lade_bits_exchange<WORDS, 4, 2>(w);
			lade_bits_exchange<WORDS, 1, 4>(w);
			lade_bits_exchange<WORDS, 2, 8>(w);
			lade_bits_exchange<WORDS, 4, 16>(w);
		}
	}

	/* Where in shared memory word k of the lane is, words of all its sets counted. */
	static __device__ __forceinline__ uint32_t slot(uint32_t k, uint32_t lane)
	{
		if (SIZE == 8)
			return 66 * (lane >> 1) + (lane & 1) + 2 * k + k / 16;
		return WORDS * lane + WORDS * lane / 32 + 33 * WORDS * (k / WORDS) + k % WORDS;
	}
};

/* ---- a tile ----------------------------------------------------------------------------- */

/* A tile of a block: its elements, and its part of row 0.  'groups' bytes of each row are there. */
struct lade_bits_tile {
	uint32_t groups;
	uint32_t pitch; /* bytes of a row of the block */
	int32_t first;  /* bytes from the row that stands first to row 0 */
	int32_t next;   /* and from a row to the next */
};

/* Where word k of the lane lies, from the tile's part of the row that stands first; and how many
 * bytes of the tile's part of its row there are from it on. */
template <uint32_t SIZE>
static __device__ __forceinline__ int32_t lade_bits_place(const lade_bits_tile &t, uint32_t k,
                                                          uint32_t lane, int32_t *left)
{
	typedef lade_bits<SIZE> shape;
	int32_t at = (int32_t)(128 * (k / shape::WORDS) + 4 * (lane / shape::STEP));
	*left = (int32_t)t.groups - at;
	return t.first + (int32_t)shape::row(k % shape::WORDS, lane) * t.next + at;
}

/*
 * The four ways to and from memory.  By a whole warp; 's' is its shared memory, which after
 * __syncwarp() holds nothing that is still wanted.  Each has a way for whole tiles at addresses
 * that are multiples of 4, one for whole tiles at any, which moves aligned words and shifts, and
 * one for blocks that are smaller than a tile, which takes lines one by one.
 */

/* Elements to the lines in shared memory. */
template <uint32_t SIZE>
static __device__ __forceinline__ void lade_bits_get_plain(uint32_t *s, const uint8_t *src,
                                                           const lade_bits_tile &t, uint32_t lane)
{
	uint32_t over = (uint32_t)(uintptr_t)src & 3, w[32];
	const uint8_t *mine = src + 4 * lane;
	if (t.groups < lade_bits<SIZE>::GROUPS) {
		int32_t left = (int32_t)(8 * SIZE * t.groups) - (int32_t)(4 * lane);
#pragma unroll 4
		for (int32_t k = 0; k < 32; k++)
			s[33 * k + (int32_t)lane] =
				lade_bits_load_some(mine + 128 * k, left - 128 * k);
		return;
	}
	/* The first word begins before the tile: its bytes are taken one by one, and so are those
	 * behind the last one. */
#pragma unroll
	for (uint32_t k = 0; k < 32; k++)
		w[k] = k || lane || !over
		               ? lade_bits_load(mine - over + 128 * k)
		               : lade_bits_load_some(src, 4 - (int32_t)over) << (8 * over);
	if (over) {
		uint32_t end =
			lane == 31 ? lade_bits_load_some(src + LADE_BITS_TILE - over, (int32_t)over)
				   : 0;
#pragma unroll
		for (uint32_t k = 0; k < 32; k++) {
			uint32_t after = lane || k == 31 ? w[k] : w[k < 31 ? k + 1 : k];
			after = __shfl_sync(LADE_FULL, after, (lane + 1) & 31);
			if (k == 31 && lane == 31)
				after = end;
			s[33 * k + lane] = __funnelshift_r(w[k], after, 8 * over);
		}
		return;
	}
#pragma unroll
	for (uint32_t k = 0; k < 32; k++)
		s[33 * k + lane] = w[k];
}

/* The lines in shared memory to elements. */
template <uint32_t SIZE>
static __device__ __forceinline__ void lade_bits_put_plain(const uint32_t *s, uint8_t *dst,
                                                           const lade_bits_tile &t, uint32_t lane)
{
	uint32_t over = (uint32_t)(uintptr_t)dst & 3, w[32];
	uint8_t *mine = dst + 4 * lane;
	if (t.groups < lade_bits<SIZE>::GROUPS) {
		int32_t left = (int32_t)(8 * SIZE * t.groups) - (int32_t)(4 * lane);
		for (int32_t k = 0; k < 32; k++)
			lade_bits_store_line(mine + 128 * k, s[33 * k + (int32_t)lane],
			                     left - 128 * k, 1, lane);
		return;
	}
#pragma unroll
	for (uint32_t k = 0; k < 32; k++)
		w[k] = s[33 * k + lane];
	if (over) {
		if (lane == 31)
			for (uint32_t b = 4 - over; b < 4; b++)
				mine[128 * 31 + b] = (uint8_t)(w[31] >> (8 * b));
		if (lane == 0)
			for (uint32_t b = 0; b < 4 - over; b++)
				dst[b] = (uint8_t)(w[0] >> (8 * b));
				/* The word before a line's first is the last of the line before. */
#pragma unroll
		for (uint32_t k = 0; k < 32; k++)
			if (k || lane) {
				uint32_t before = s[33 * k + lane - (lane ? 1 : 2)];
				w[k] = __funnelshift_l(before, w[k], 8 * over);
			}
	}
#pragma unroll
	for (uint32_t k = 0; k < 32; k++)
		if (k || lane || !over)
			lade_bits_store(mine - over + 128 * k, w[k]);
}

/* Rows to the lanes' words. */
template <uint32_t SIZE>
static __device__ __forceinline__ void lade_bits_get_rows(uint32_t *s, const uint8_t *src,
                                                          const lade_bits_tile &t, uint32_t *w,
                                                          uint32_t lane)
{
	constexpr uint32_t STEP = lade_bits<SIZE>::STEP, LINE = 128 / STEP;
	int32_t left;
	if (t.groups < lade_bits<SIZE>::GROUPS) {
#pragma unroll 4
		for (uint32_t k = 0; k < 32; k++) {
			const uint8_t *from = src + lade_bits_place<SIZE>(t, k, lane, &left);
			s[33 * k + lane] = lade_bits_load_some(from, left);
		}
#pragma unroll
		for (uint32_t k = 0; k < 32; k++)
			w[k] = s[33 * k + lane];
		__syncwarp();
		return;
	}
	if (!(((uintptr_t)src | t.pitch) & 3)) {
#pragma unroll
		for (uint32_t k = 0; k < 32; k++)
			w[k] = lade_bits_load(src + lade_bits_place<SIZE>(t, k, lane, &left));
		return;
	}
	/* A lane takes the ends of one line of each parity: the bytes before its first whole word,
	 * and those behind its last. */
#pragma unroll
	for (uint32_t parity = 0; parity < STEP; parity++) {
		const uint8_t *from = src + lade_bits_place<SIZE>(t, lane, parity, &left);
		uint32_t over = (uint32_t)(uintptr_t)from & 3, first = 0, last = 0;
		if (over) {
			first = lade_bits_load_some(from, 4 - (int32_t)over) << (8 * over);
			last = lade_bits_load_some(from + LINE - over, (int32_t)over);
		}
		s[64 * parity + lane] = first;
		s[64 * parity + 32 + lane] = last;
	}
	__syncwarp();
	const uint32_t *ends = s + 64 * (lane & (STEP - 1));
#pragma unroll
	for (uint32_t k = 0; k < 32; k++) {
		const uint8_t *from = src + lade_bits_place<SIZE>(t, k, lane, &left);
		uint32_t over = (uint32_t)(uintptr_t)from & 3;
		w[k] = lane >= STEP || !over ? lade_bits_load(from - over) : ends[k];
	}
#pragma unroll
	for (uint32_t k = 0; k < 32; k++) {
		const uint8_t *from = src + lade_bits_place<SIZE>(t, k, lane, &left);
		uint32_t after = __shfl_down_sync(LADE_FULL, w[k], STEP);
		if (lane >= 32 - STEP)
			after = ends[32 + k];
		w[k] = __funnelshift_r(w[k], after, 8 * ((uint32_t)(uintptr_t)from & 3));
	}
	__syncwarp();
}

/* The lanes' words to rows. */
template <uint32_t SIZE>
static __device__ __forceinline__ void lade_bits_put_rows(uint32_t *s, uint8_t *dst,
                                                          const lade_bits_tile &t,
                                                          const uint32_t *w, uint32_t lane)
{
	constexpr uint32_t STEP = lade_bits<SIZE>::STEP, LINE = 128 / STEP;
	bool whole = t.groups == lade_bits<SIZE>::GROUPS;
	int32_t left;
	if (whole && !(((uintptr_t)dst | t.pitch) & 3)) {
#pragma unroll
		for (uint32_t k = 0; k < 32; k++)
			lade_bits_store(dst + lade_bits_place<SIZE>(t, k, lane, &left), w[k]);
		return;
	}
#pragma unroll
	for (uint32_t k = 0; k < 32; k++)
		s[33 * k + lane] = w[k];
	if (!whole) {
		for (uint32_t k = 0; k < 32; k++) {
			uint8_t *to = dst + lade_bits_place<SIZE>(t, k, lane, &left);
			lade_bits_store_line(to, s[33 * k + lane], left, STEP, lane);
		}
		__syncwarp();
		return;
	}
	__syncwarp();
#pragma unroll
	for (uint32_t k = 0; k < 32; k++) {
		uint8_t *to = dst + lade_bits_place<SIZE>(t, k, lane, &left);
		uint32_t over = (uint32_t)(uintptr_t)to & 3;
		uint32_t before = __shfl_up_sync(LADE_FULL, w[k], STEP);
		if (lane >= STEP || !over)
			lade_bits_store(to - over, __funnelshift_l(before, w[k], 8 * over));
	}
	/* A lane stores the ends of one line of each parity. */
#pragma unroll
	for (uint32_t parity = 0; parity < STEP; parity++) {
		uint8_t *to = dst + lade_bits_place<SIZE>(t, lane, parity, &left);
		uint32_t over = (uint32_t)(uintptr_t)to & 3;
		uint32_t first = s[33 * lane + parity], last = s[33 * lane + 32 - STEP + parity];
#pragma unroll
		for (uint32_t b = 0; b < 4; b++) {
			if (over && b < 4 - over)
				to[b] = (uint8_t)(first >> (8 * b));
			if (b >= 4 - over)
				to[LINE - 4 + b] = (uint8_t)(last >> (8 * b));
		}
	}
	__syncwarp();
}

/* Elements to rows.  Reads 8 * SIZE * groups bytes of 'src', writes 'groups' bytes of each row. */
template <uint32_t SIZE>
static __device__ __forceinline__ void lade_bits_encode(uint32_t *s, const uint8_t *src,
                                                        uint8_t *dst, const lade_bits_tile &t,
                                                        uint32_t lane)
{
	typedef lade_bits<SIZE> shape;
	uint32_t w[32];
	lade_bits_get_plain<SIZE>(s, src, t, lane);
	__syncwarp();
#pragma unroll
	for (uint32_t k = 0; k < 32; k++)
		w[k] = s[shape::slot(k, lane)];
	__syncwarp();
#pragma unroll
	for (uint32_t set = 0; set < shape::SETS; set++)
		shape::to_rows(w + set * shape::WORDS);
	lade_bits_put_rows<SIZE>(s, dst, t, w, lane);
}

/* Rows to elements, likewise. */
template <uint32_t SIZE>
static __device__ __forceinline__ void lade_bits_decode(uint32_t *s, const uint8_t *src,
                                                        uint8_t *dst, const lade_bits_tile &t,
                                                        uint32_t lane)
{
	typedef lade_bits<SIZE> shape;
	uint32_t w[32];
	lade_bits_get_rows<SIZE>(s, src, t, w, lane);
#pragma unroll
	for (uint32_t set = 0; set < shape::SETS; set++)
		shape::from_rows(w + set * shape::WORDS);
#pragma unroll
	for (uint32_t k = 0; k < 32; k++)
		s[shape::slot(k, lane)] = w[k];
	__syncwarp();
	lade_bits_put_plain<SIZE>(s, dst, t, lane);
	__syncwarp();
}

/* ---- chunks ----------------------------------------------------------------------------- */

/* Every 'parts'-th tile of a chunk, from 'part' on.  'block' is not 0. */
template <uint32_t SIZE, bool ENCODE>
static __device__ __forceinline__ void lade_bits_chunk(uint32_t *s, const lade_gpu_chunk &c,
                                                       bool msb, uint32_t block, uint32_t part,
                                                       uint32_t parts, uint32_t lane)
{
	typedef lade_bits<SIZE> shape;
	uint32_t each = (block + LADE_BITS_TILE - 1) / LADE_BITS_TILE;
	uint32_t whole = c.src_size / block, rest = c.src_size % block;
	uint32_t tiles = whole * each + (rest + LADE_BITS_TILE - 1) / LADE_BITS_TILE;
	for (uint32_t at = part; at < tiles; at += parts) {
		uint32_t number = at / each, k = at - number * each;
		uint32_t begin = number * block, size = number < whole ? block : rest;
		lade_bits_tile t;
		t.pitch = size / (8 * SIZE);
		t.first = msb ? (int32_t)((shape::ROWS - 1) * t.pitch) : 0;
		t.next = msb ? -(int32_t)t.pitch : (int32_t)t.pitch;
		/* The last tile reaches back over groups that another warp does too, with the same
		 * result, rather than have fewer. */
		uint32_t group = k * shape::GROUPS;
		t.groups = group >= t.pitch           ? 0
		           : t.pitch >= shape::GROUPS ? shape::GROUPS
		                                      : t.pitch;
		if (t.groups && t.pitch - group < t.groups)
			group = t.pitch - t.groups;
		uint32_t plain = begin + 8 * SIZE * group, rows = begin + group;
		if (t.groups && ENCODE)
			lade_bits_encode<SIZE>(s, c.src + plain, c.dst + rows, t, lane);
		else if (t.groups)
			lade_bits_decode<SIZE>(s, c.src + rows, c.dst + plain, t, lane);
		/* With the block's last tile go the bytes behind its groups. */
		if ((k + 1) * LADE_BITS_TILE >= size)
			for (uint32_t i = 8 * SIZE * t.pitch + lane; i < size; i += 32)
				c.dst[begin + i] = __ldg(c.src + begin + i);
	}
}

template <bool ENCODE>
static __device__ __forceinline__ void
lade_bits_item(uint32_t *s, const lade_gpu_batch &batch, uint32_t size, bool msb, uint32_t block,
               uint32_t i, uint32_t part, uint32_t parts, uint32_t lane)
{
	lade_gpu_chunk c;
	uint32_t status = lade_chunk_get(batch, i, &c);
	if (status == LADE_GPU_OK && c.dst_cap < c.src_size)
		status = LADE_GPU_NOSPACE;
	if (status == LADE_GPU_OK && c.src_size) {
		/* One block that holds all is the same as none. */
		if (!block || block > c.src_size)
			block = c.src_size;
		if (size == 1)
			lade_bits_chunk<1, ENCODE>(s, c, msb, block, part, parts, lane);
		else if (size == 2)
			lade_bits_chunk<2, ENCODE>(s, c, msb, block, part, parts, lane);
		else if (size == 4)
			lade_bits_chunk<4, ENCODE>(s, c, msb, block, part, parts, lane);
		else if (size == 8)
			lade_bits_chunk<8, ENCODE>(s, c, msb, block, part, parts, lane);
		else
			status = LADE_GPU_ARG;
	}
	/* All warps of a chunk come to the same verdict, and one tells it.  Where 'before' and
	 * 'status' are one table, the others may find it already, and agree. */
	if (part == 0 && lane == 0)
		lade_chunk_put(batch, i, status, status == LADE_GPU_OK ? c.src_size : 0);
}

/*
 * Each chunk has as many warps as the grid has for it, 'parts', at least one, and they take its
 * tiles in turn.
 */
template <bool ENCODE>
static __device__ __forceinline__ void lade_bits_batch(const lade_gpu_batch &batch, uint32_t size,
                                                       uint32_t order, uint32_t block)
{
	LADE_SHARED(uint32_t, words, [LADE_BITS_WARPS][LADE_BITS_SHARED]);
	uint32_t lane = lade_lane(), warp = threadIdx.x / 32;
	uint32_t warps = gridDim.x * LADE_BITS_WARPS;
	uint32_t parts = warps < batch.count ? 1 : warps / batch.count;
	uint64_t all = (uint64_t)batch.count * parts;
	for (uint64_t at = (uint64_t)blockIdx.x * LADE_BITS_WARPS + warp; at < all; at += warps) {
		uint32_t unit = (uint32_t)at; /* below the warps or below the count */
		lade_bits_item<ENCODE>(words[warp], batch, size, order != 0, block, unit / parts,
		                       unit % parts, parts, lane);
	}
}

/*
 * Map: a block is 128 threads, each warp of it on its own; the grid has less than 2^28 blocks, best
 * a warp for each tile.  'size' is 1, 2, 4 or 8; 'order' is 1 where the highest bit's row comes
 * first, else 0; 'block' is 0 or a multiple of 8 * size.  Sources and destinations have any
 * alignment and do not overlap.  'next' is not used.  Shared memory: 16.5 KiB, a tile a warp.
 */
extern "C" __global__ void __launch_bounds__(32 * LADE_BITS_WARPS)
	lade_bitshuffle_encode(lade_gpu_batch batch, uint32_t size, uint32_t order, uint32_t block)
{
	lade_bits_batch<true>(batch, size, order, block);
}

/* Likewise. */
extern "C" __global__ void __launch_bounds__(32 * LADE_BITS_WARPS)
	lade_bitshuffle_decode(lade_gpu_batch batch, uint32_t size, uint32_t order, uint32_t block)
{
	lade_bits_batch<false>(batch, size, order, block);
}
