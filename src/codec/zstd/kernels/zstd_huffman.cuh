/*
 * zstd_huffman.cuh: literals (RFC 8878, 3.1.1.3.1 and 4.2), by a warp.
 *
 * Four streams, or one, are read from their ends.  Each is cut into parts of as many bits, one a
 * lane: 8 lanes a stream, or 32.  A lane begins to read LADE_ZSTD_AHEAD bits before its part, at
 * any bit: codes of a prefix code fall into step soon.  Then it counts the symbols of its part.
 * Where its first symbol is not where the lane before it ended, it begins again from there; that
 * is seldom, and ends after as many rounds as there are lanes.  When all agree, sums of counts say
 * where each lane's bytes go, and lanes decode their parts once more and store them.
 *
 * Bounds: words are read within the literals' section.  A symbol takes a bit at least.  Bytes
 * are stored when the counts add up to the stated size.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_ZSTD_HUFFMAN_CUH
#define LADE_CUDA_ZSTD_HUFFMAN_CUH

#include "codec/zstd/kernels/zstd_fse.cuh"

#define LADE_ZSTD_HUFFMAN_LOG 11u
#define LADE_ZSTD_AHEAD 512u

/* The warp that decodes literals. */
struct lade_zstd_huffman {
	lade_zstd_maker maker;
	uint32_t weights_table[64];
	uint16_t code[1u << LADE_ZSTD_HUFFMAN_LOG]; /* | bits 8 | symbol 8 | */
	uint8_t weight[256], sorted[256];
	uint32_t first[16], count[16]; /* of a weight: its place in 'sorted', its symbols */
	uint32_t stated, at, log;      /* stated weights, and where the streams begin */
};

/* ---- the table ----------------------------------------------------------------------------- */

/* Decodes the weights in bytes [at, end) of the words, by states in turn; one lane.  How many, or
 * 0: they are wrong. */
static __device__ __noinline__ uint32_t lade_zstd_weights_read(lade_zstd_huffman *h, uint32_t log,
                                                               uint32_t at, uint32_t end)
{
	const uint32_t *words = h->maker.words;
	if (at >= end)
		return 0;
	uint32_t top = ((const uint8_t *)words)[end - 1], n = 0;
	if (top == 0)
		return 0;
	/* Bits before 'at' are not the stream's. */
	int32_t low = 8 * (int32_t)at, p = 8 * (int32_t)(end - 1) + (int32_t)lade_zstd_log2(top);
	uint32_t state[2], size = 1u << log;
	for (uint32_t k = 0; k < 2; k++) {
		p -= (int32_t)log;
		if (p < low)
			return 0;
		state[k] = lade_zstd_peek(words, (uint32_t)p) & (size - 1);
	}
	for (uint32_t k = 0; n < 254; k ^= 1) {
		uint32_t e = h->weights_table[state[k]], bits = e & 31;
		h->weight[n++] = (uint8_t)(e >> 11 & 15);
		p -= (int32_t)bits;
		if (p < low) {
			h->weight[n++] = (uint8_t)(h->weights_table[state[k ^ 1]] >> 11 & 15);
			return n;
		}
		state[k] = (e >> 22 << bits) - size +
		           (lade_zstd_peek(words, (uint32_t)p) & ((1u << bits) - 1));
	}
	return 0;
}

/* Reads the table's description at [at, end): weights of all symbols but the last; one lane. */
static __device__ __forceinline__ void lade_zstd_tree_read(lade_zstd_huffman *h, uint32_t at,
                                                           uint32_t end, uint32_t lane)
{
	uint32_t left = end - at, first = left ? h->maker.words[0] & 255 : 0, log = 0, p = 1;
	uint32_t bytes = first < 128 ? first : (first - 127 + 1) / 2;
	if (left < 1 + bytes) {
		if (lane == 0)
			h->stated = 0;
		__syncwarp();
		return;
	}
	if (first >= 128) {
		for (uint32_t i = lane; i < first - 127; i += 32) {
			uint32_t two = ((const uint8_t *)h->maker.words)[1 + i / 2];
			h->weight[i] = (uint8_t)(i & 1 ? two & 15 : two >> 4);
		}
		if (lane == 0)
			h->stated = first - 127;
	} else {
		if (lane == 0) {
			log = lade_zstd_counts_read(&h->maker, &p, 1 + bytes, 256, 6);
			h->stated = 0;
		}
		log = __shfl_sync(LADE_FULL, log, 0);
		p = __shfl_sync(LADE_FULL, p, 0);
		if (log) {
			lade_zstd_table_make(&h->maker, h->weights_table, LADE_ZSTD_WEIGHTS, log,
			                     256, lane);
			if (lane == 0)
				h->stated = lade_zstd_weights_read(h, log, p, 1 + bytes);
		}
	}
	if (lane == 0)
		h->at = at + 1 + bytes;
	__syncwarp();
}

/*
 * The last symbol's weight fills the code up; then symbols stand by weight and number, and those
 * of weight w have 1 << (w - 1) places in the table, the lowest weight first.
 */
static __device__ __noinline__ bool lade_zstd_codes_make(lade_zstd_huffman *h, uint32_t lane)
{
	h = lade_shared(h);
	uint32_t stated = h->stated, sum = 0, most = 0, below = (1u << lane) - 1;
#pragma unroll 1
	for (uint32_t i = lane; i < stated; i += 32) {
		uint32_t w = h->weight[i];
		most = w > most ? w : most;
		sum += w && w < 12 ? 1u << (w - 1) : 0;
	}
	sum = __reduce_add_sync(LADE_FULL, sum);
	most = __reduce_max_sync(LADE_FULL, most);
	if (stated == 0 || sum == 0 || most > LADE_ZSTD_HUFFMAN_LOG)
		return false;
	uint32_t log = lade_zstd_log2(sum) + 1, rest = (1u << log) - sum;
	if (log > LADE_ZSTD_HUFFMAN_LOG || rest & (rest - 1))
		return false;
	if (lane == 0) {
		h->weight[stated] = (uint8_t)(lade_zstd_log2(rest) + 1);
		h->log = log;
	}
	if (lane < 16)
		h->count[lane] = 0;
	__syncwarp();
	uint32_t symbols = stated + 1;
#pragma unroll 1
	for (uint32_t g = 0; g < symbols; g += 32)
		if (g + lane < symbols)
			atomicAdd(&h->count[h->weight[g + lane]], 1u);
	__syncwarp();
	/* Lane w has weight w; places in 'sorted', and in the table. */
	uint32_t mine = lane && lane < 16 ? h->count[lane] : 0;
	uint32_t place = lade_warp_scan(mine, lane) - mine;
	uint32_t cells = mine << (lane ? (lane - 1) & 15 : 0);
	uint32_t cell = lade_warp_scan(cells, lane) - cells;
	uint32_t ones = __shfl_sync(LADE_FULL, mine, 1);
	if (ones < 2 || ones & 1)
		return false;
	if (lane < 16)
		h->first[lane] = place;
	__syncwarp();
#pragma unroll 1
	for (uint32_t g = 0; g < symbols; g += 32) {
		uint32_t w = g + lane < symbols ? h->weight[g + lane] : 0;
		uint32_t alike = __match_any_sync(LADE_FULL, w);
		uint32_t to = h->first[w] + __popc(alike & below);
		__syncwarp();
		if (w) {
			h->sorted[to & 255] = (uint8_t)(g + lane);
			if (alike >> lane == 1)
				h->first[w] = to + 1;
		}
		__syncwarp();
	}
#pragma unroll 1
	for (uint32_t w = 1; w <= log; w++) {
		uint32_t to = __shfl_sync(LADE_FULL, cell, w),
			 end = __shfl_sync(LADE_FULL, cells, w);
		uint32_t from = __shfl_sync(LADE_FULL, place, w);
		for (uint32_t i = lane; i < end; i += 32)
			h->code[to + i] = (uint16_t)(h->sorted[(from + (i >> (w - 1))) & 255] << 8 |
			                             (log + 1 - w));
	}
	__syncwarp();
	return true;
}

/* ---- streams ------------------------------------------------------------------------------- */

/* A lane's place in the source: words of memory, and the bit that it is at. */
struct lade_zstd_reader {
	const uint8_t *src;
	uint32_t n, over;    /* bytes of the source; of the first word before them */
	uint32_t hi, lo, on; /* the word that bit 'at' is in, and the two before */
	uint32_t at;         /* counted from the first word's begin */
};

/* The word, or what of it belongs to the source. */
static __device__ __forceinline__ uint32_t lade_zstd_reader_word(const lade_zstd_reader &r,
                                                                 uint32_t word)
{
	uint32_t at = 4 * word - r.over, value = 0;
	if (at < r.n && r.n - at >= 4)
		return *(const uint32_t *)lade_global(r.src + at);
	for (uint32_t k = 0; k < 4; k++)
		if (at + k < r.n)
			value |= (uint32_t)r.src[at + k] << (8 * k);
	return value;
}

static __device__ __forceinline__ void lade_zstd_reader_seek(lade_zstd_reader *r, uint32_t at)
{
	r->at = at;
	r->hi = lade_zstd_reader_word(*r, at / 32);
	r->lo = lade_zstd_reader_word(*r, at / 32 - 1);
	r->on = lade_zstd_reader_word(*r, at / 32 - 2);
}

/* Decodes the symbol before bit 'at'. */
static __device__ __forceinline__ uint32_t lade_zstd_symbol(lade_zstd_reader *r,
                                                            const uint16_t *code, uint32_t shift)
{
	uint32_t e = code[__funnelshift_r(r->lo, r->hi, r->at) >> shift];
	uint32_t word = r->at / 32;
	r->at -= e & 255;
	if (r->at / 32 != word) {
		r->hi = r->lo;
		r->lo = r->on;
		r->on = lade_zstd_reader_word(*r, word - 3);
	}
	return e >> 8;
}

/* Reads symbols until 'at' is not behind 'end'; how many. */
static __device__ __forceinline__ uint32_t lade_zstd_skip(lade_zstd_reader *r, const uint16_t *code,
                                                          uint32_t shift, uint32_t end)
{
	uint32_t count = 0;
	while ((int32_t)(r->at - end) > 0) {
		lade_zstd_symbol(r, code, shift);
		count++;
	}
	return count;
}

/* Stores 'count' symbols. */
static __device__ __forceinline__ void lade_zstd_store(lade_zstd_reader *r, const uint16_t *code,
                                                       uint32_t shift, uint8_t *to, uint32_t count)
{
	uint32_t head = (uint32_t)(0 - (uintptr_t)to) & 3;
	head = head < count ? head : count;
	count -= head;
	for (; head; head--)
		*to++ = (uint8_t)lade_zstd_symbol(r, code, shift);
	for (; count >= 4; count -= 4, to += 4) {
		uint32_t s[4];
#pragma unroll
		for (uint32_t k = 0; k < 4; k++)
			s[k] = lade_zstd_symbol(r, code, shift);
		*(uint32_t *)lade_global(to) =
			__byte_perm(__byte_perm(s[0], s[1], 0x40), __byte_perm(s[2], s[3], 0x40),
		                    0x5410);
	}
	for (; count; count--)
		*to++ = (uint8_t)lade_zstd_symbol(r, code, shift);
}

/* A stream: its bytes in the source, and where its symbols go. */
struct lade_zstd_stream {
	uint32_t at, size, out, count;
};

/* The lane's stream of those in [at, end); size = 0: there is none. */
static __device__ __forceinline__ lade_zstd_stream lade_zstd_stream_of(const uint8_t *src,
                                                                       uint32_t at, uint32_t end,
                                                                       uint32_t streams,
                                                                       uint32_t count,
                                                                       uint32_t lane)
{
	lade_zstd_stream s = {at, end - at, 0, count};
	if (streams == 1)
		return s;
	if (end - at < 6)
		return lade_zstd_stream{0, 0, 0, 0};
	uint32_t j = lane / 8, part = (count + 3) / 4;
	s.at += 6;
	for (uint32_t k = 0; k < j; k++) {
		uint32_t size = lade_zstd_le(src, at + 2 * k, 2);
		if (size > end - s.at)
			return lade_zstd_stream{0, 0, 0, 0};
		s.at += size;
	}
	s.size = end - s.at;
	s.out = j * part;
	s.count = count - s.out;
	if (j < 3) {
		uint32_t size = lade_zstd_le(src, at + 2 * j, 2);
		s.size = size <= s.size ? size : 0;
		s.count = part;
	}
	return s;
}

/* Decodes the literals of a block, whose streams begin at 'at', to 'to'; whether they are right. */
static __device__ __noinline__ bool lade_zstd_streams(const lade_zstd_huffman *h,
                                                      const uint8_t *src, const lade_zstd_block &b,
                                                      uint32_t at, uint8_t *to, uint32_t lane)
{
	const uint16_t *code = lade_shared(h->code);
	uint32_t lanes = b.streams == 1 ? 32 : 8, k = lane & (lanes - 1), shift = 32 - h->log;
	uint32_t end = b.lit_at + b.lit_coded;
	lade_zstd_stream s = lade_zstd_stream_of(src, at, end, b.streams, b.lit_size, lane);
	uint32_t top = s.size ? src[s.at + s.size - 1] : 0;
	if (__any_sync(LADE_FULL, top == 0))
		return false;
	/* Bits are counted from the word that the section begins in. */
	uint32_t over = (uint32_t)(uintptr_t)(src + at) & 3;
	lade_zstd_reader r = {src + at, end - at, over, 0, 0, 0, 0};
	uint32_t bits = 8 * (s.size - 1) + lade_zstd_log2(top), zero = 8 * (s.at - at + over);
	uint32_t first =
		zero + bits - bits * k / lanes; /* below 2^20 bits, so that nothing wraps */
	uint32_t last = zero + bits - bits * (k + 1) / lanes;
	uint32_t before = first - zero + LADE_ZSTD_AHEAD;
	lade_zstd_reader_seek(&r, k == 0 || before > bits ? zero + bits : zero + before);
	lade_zstd_skip(&r, code, shift, first);
	__syncwarp();
	uint32_t entry = r.at;
	uint32_t symbols = lade_zstd_skip(&r, code, shift, last);
	__syncwarp();
	for (uint32_t round = 0; round < lanes; round++) {
		uint32_t led = __shfl_up_sync(LADE_FULL, r.at, 1);
		bool wrong = k && led != entry;
		if (!__any_sync(LADE_FULL, wrong))
			break;
		if (wrong) {
			entry = led;
			lade_zstd_reader_seek(&r, entry);
			symbols = lade_zstd_skip(&r, code, shift, last);
		}
		__syncwarp();
	}
	uint32_t sum = lade_warp_scan(symbols, lane);
	uint32_t base = __shfl_sync(LADE_FULL, sum, lane ? (lane & ~(lanes - 1)) - 1 : 0);
	base = lane < lanes ? 0 : base;
	bool bad = k == lanes - 1 && (r.at != zero || sum - base != s.count);
	if (__any_sync(LADE_FULL, bad))
		return false;
	lade_zstd_reader_seek(&r, entry);
	lade_zstd_store(&r, code, shift, to + s.out + (sum - base - symbols), symbols);
	__syncwarp();
	return true;
}

/* Makes the table of literals that have one, and decodes them to 'to'; whether they are right.
 * h->log is that of the last table; 0: there is none. */
static __device__ __forceinline__ bool lade_zstd_literals(lade_zstd_huffman *h, const uint8_t *src,
                                                          const lade_zstd_block &b, uint8_t *to,
                                                          uint32_t lane)
{
	uint32_t at = b.lit_at, end = at + b.lit_coded;
	if (b.lit_kind == LADE_ZSTD_CODED) {
		lade_zstd_fetch(&h->maker, src, at, end, lane);
		lade_zstd_tree_read(h, at, end, lane);
		if (!lade_zstd_codes_make(h, lane))
			return false;
		at = h->at;
	}
	return h->log && lade_zstd_streams(h, src, b, at, to, lane);
}

#endif
