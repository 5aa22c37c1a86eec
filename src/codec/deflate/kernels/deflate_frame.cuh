/*
 * deflate_frame.cuh: what stands around Deflate streams: headers and checksums of zlib (RFC 1950)
 * and gzip (RFC 1952), by a team of W warps.
 *
 * Bounds: each read is of bytes below 'n', the source's size, or of the output so far.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_DEFLATE_FRAME_CUH
#define LADE_CUDA_DEFLATE_FRAME_CUH

#include "codec/deflate/kernels/deflate_codes.cuh"

#define LADE_DEFLATE_ADLER 65521u
#define LADE_DEFLATE_CRC 0xEDB88320u /* CRC-32's polynomial; bit 31 is x^0 */

static __device__ __forceinline__ uint32_t lade_deflate_le(const uint8_t *src, uint32_t at,
                                                           uint32_t bytes)
{
	uint32_t value = 0;
	for (uint32_t k = 0; k < bytes; k++)
		value |= (uint32_t)src[at + k] << (8 * k);
	return value;
}

/* ---- Adler-32 ------------------------------------------------------------------------------ */

/* The word of memory at 'base' + 4 i, of which only bytes in [from, end) are read; 0 for others. */
static __device__ __forceinline__ uint32_t lade_deflate_word(const uint8_t *base, uint32_t i,
                                                             uint32_t from, uint32_t end)
{
	uint32_t at = 4 * i, value = 0;
	if (at >= from && end - at >= 4)
		return *(const uint32_t *)lade_global(base + at);
	for (uint32_t k = 0; k < 4; k++)
		if (at + k - from < end - from)
			value |= (uint32_t)base[at + k] << (8 * k);
	return value;
}

/* Adler-32 of 'size' bytes; all threads.  team.total and team.pieces are free. */
template <int W>
static __device__ __noinline__ uint32_t lade_deflate_adler(lade_deflate_team<W> *t,
                                                           const uint8_t *p, uint32_t size,
                                                           uint32_t thread)
{
	uint32_t over = (uint32_t)(uintptr_t)p & 3, end = over + size, count = (end + 3) / 4;
	uint32_t warp = thread / 32, plain;
	uint64_t bytes = 0, far = 0; /* times their distance from the end: 2^23 words of 2^40 */
	for (uint32_t i = thread; i < count; i += t->LANES) {
		uint32_t v = lade_deflate_word(p - over, i, over, end);
		uint32_t sum = __dp4a(v, 0x01010101u, 0u);
		bytes += sum;
		far += (uint64_t)(end - 4 * i) * sum - __dp4a(v, 0x03020100u, 0u);
	}
	plain = (uint32_t)(bytes % LADE_DEFLATE_ADLER);
	plain = __reduce_add_sync(LADE_FULL, plain) % LADE_DEFLATE_ADLER;
	uint32_t by = (uint32_t)(far % LADE_DEFLATE_ADLER);
	by = __reduce_add_sync(LADE_FULL, by) % LADE_DEFLATE_ADLER;
	if (W > 1) {
		if ((thread & 31) == 0) {
			t->total[warp] = plain;
			t->pieces[warp] = by;
		}
		__syncthreads();
		plain = by = 0;
		for (uint32_t w = 0; w < W; w++) {
			plain += t->total[w];
			by += t->pieces[w];
		}
	}
	plain = (plain + 1) % LADE_DEFLATE_ADLER;
	by = (by + size % LADE_DEFLATE_ADLER) % LADE_DEFLATE_ADLER;
	return by << 16 | plain;
}

/* ---- CRC-32 -------------------------------------------------------------------------------- */

static __device__ __forceinline__ uint32_t lade_deflate_times(uint32_t a, uint32_t b)
{
	uint32_t r = 0;
#pragma unroll 4
	for (uint32_t k = 0; k < 32; k++) {
		r ^= (uint32_t)((int32_t)a >> 31) & b;
		a <<= 1;
		b = b >> 1 ^ ((0 - (b & 1)) & LADE_DEFLATE_CRC);
	}
	return r;
}

static __device__ __forceinline__ uint32_t lade_deflate_crc_bytes(uint32_t s, const uint8_t *p,
                                                                  uint32_t size)
{
	for (uint32_t i = 0; i < size; i++) {
		s ^= p[i];
		for (uint32_t k = 0; k < 8; k++)
			s = s >> 1 ^ ((0 - (s & 1)) & LADE_DEFLATE_CRC);
	}
	return s;
}

/*
 * CRC-32 of 'size' bytes; all threads.  Lanes have words in turn, so that the last word is the last
 * lane's: each multiplies what it has by x^(32 lanes) for a word more, by a table of four parts,
 * and at the end by what its words are away from the end.  The stage, team.total are free.
 */
template <int W>
static __device__ __noinline__ uint32_t lade_deflate_crc(lade_deflate_team<W> *t, const uint8_t *p,
                                                         uint32_t size, uint32_t thread)
{
	uint32_t head = (0 - (uint32_t)(uintptr_t)p) & 3, s = ~0u;
	head = head < size ? head : size;
	s = lade_deflate_crc_bytes(s, p, head);
	p += head;
	uint32_t words = (size - head) / 4, tail = (size - head) & 3;
	const uint32_t *word = (const uint32_t *)lade_global(p);
	if (words) {
		/* x^32 to the power of the lane's place from the end, and of the lanes. */
		uint32_t place = t->LANES - thread, mine = 0x80000000u, power = LADE_DEFLATE_CRC;
		for (uint32_t n = 1; n < t->LANES; n *= 2) {
			if (place & n)
				mine = lade_deflate_times(mine, power);
			power = lade_deflate_times(power, power);
		}
		if (place & t->LANES)
			mine = lade_deflate_times(mine, power);
		lade_team_sync<W>();
		/* Bit k of a word, times that. */
		uint32_t basis = lade_deflate_times(1u << (thread & 31), power);
		for (uint32_t e = 0; e < 1024; e += t->LANES) {
			uint32_t entry = e + thread, value = 0;
#pragma unroll
			for (uint32_t k = 0; k < 8; k++) {
				uint32_t bit =
					__shfl_sync(LADE_FULL, basis, (e + thread) / 256 * 8 + k);
				value ^= entry >> k & 1 ? bit : 0;
			}
			t->crc[entry] = value;
		}
		lade_team_sync<W>();
		uint32_t state = 0, rows = (words + t->LANES - 1) / t->LANES;
		uint32_t i = thread - (rows * t->LANES - words); /* wraps below 0 */
#pragma unroll 2
		for (uint32_t k = 0; k < rows; k++, i += t->LANES) {
			uint32_t v = i < words ? word[i] : 0;
			v ^= i == 0 ? s : 0;
			state = t->crc[state & 255] ^ t->crc[256 + (state >> 8 & 255)] ^
			        t->crc[512 + (state >> 16 & 255)] ^ t->crc[768 + (state >> 24)] ^ v;
		}
		s = __reduce_xor_sync(LADE_FULL, lade_deflate_times(state, mine));
		if (W > 1) {
			if ((thread & 31) == 0)
				t->total[thread / 32] = s;
			__syncthreads();
			s = 0;
			for (uint32_t w = 0; w < W; w++)
				s ^= t->total[w];
		}
		lade_team_sync<W>();
	}
	return ~lade_deflate_crc_bytes(s, p + 4 * (size_t)words, tail);
}

/* ---- headers ------------------------------------------------------------------------------- */

/* The place of the first byte from 'at' on that is 0 (with 'other': that is not); 'n': there is
 * none.  A warp. */
static __device__ __forceinline__ uint32_t lade_deflate_find(const uint8_t *src, uint32_t at,
                                                             uint32_t n, bool other, uint32_t lane)
{
	for (;; at += 32) {
		bool in = at + lane < n;
		uint32_t found = __ballot_sync(LADE_FULL, !in || (src[at + lane] == 0) != other);
		if (found) {
			at += __ffs(found) - 1;
			return at < n ? at : n;
		}
	}
}

/* Reads zlib's header; *at is then where the stream begins. */
static __device__ __forceinline__ uint32_t lade_deflate_zlib(const lade_gpu_chunk &c, uint32_t *at)
{
	if (c.src_size < 2)
		return LADE_GPU_TRUNCATED;
	uint32_t cmf = c.src[0], flg = c.src[1];
	if ((cmf << 8 | flg) % 31)
		return LADE_GPU_CORRUPT;
	if ((cmf & 15) != 8 || cmf >> 4 > 7)
		return (uint32_t)LADE_E_UNSUPPORTED;
	if (flg & 0x20)
		return c.src_size < 6 ? LADE_GPU_TRUNCATED : (uint32_t)LADE_E_DICT;
	*at = 2;
	return LADE_GPU_OK;
}

/* Reads the gzip header at *at, by a warp; *at is then where the stream begins.  *sum: there is a
 * checksum of it. */
static __device__ __forceinline__ uint32_t lade_deflate_gzip(const lade_gpu_chunk &c, uint32_t *at,
                                                             bool *sum, uint32_t lane)
{
	const uint8_t *src = c.src;
	uint32_t n = c.src_size, p = *at, left = n - p;
	*sum = false;
	if ((left > 0 && src[p] != 0x1F) || (left > 1 && src[p + 1] != 0x8B))
		return LADE_GPU_CORRUPT;
	if (left < 10)
		return LADE_GPU_TRUNCATED;
	uint32_t flags = src[p + 3];
	if (src[p + 2] != 8 || flags & 0xE0)
		return (uint32_t)LADE_E_UNSUPPORTED;
	p += 10;
	if (flags & 4) {
		if (n - p < 2 || n - p - 2 < lade_deflate_le(src, p, 2))
			return LADE_GPU_TRUNCATED;
		p += 2 + lade_deflate_le(src, p, 2);
	}
	for (uint32_t text = 8; text <= 16; text *= 2)
		if (flags & text) {
			p = lade_deflate_find(src, p, n, false, lane);
			if (p == n)
				return LADE_GPU_TRUNCATED;
			p++;
		}
	if (flags & 2 && n - p < 2)
		return LADE_GPU_TRUNCATED;
	*sum = flags & 2;
	*at = p;
	return LADE_GPU_OK;
}

/* Reads the header of the member at byte *at of the source; all threads, which all have the same
 * status and *at then. */
template <int W>
static __device__ __forceinline__ uint32_t lade_deflate_open(lade_deflate_team<W> *t,
                                                             uint32_t format, uint32_t *at,
                                                             lade_deflate_me me)
{
	const lade_gpu_chunk &c = t->job.c;
	uint32_t begin = *at;
	bool sum = false;
	if (format == LADE_DEFLATE_RAW)
		return LADE_GPU_OK;
	uint32_t status = format == LADE_DEFLATE_ZLIB ? lade_deflate_zlib(c, at)
	                                              : lade_deflate_gzip(c, at, &sum, me.lane);
	if (status != LADE_GPU_OK || !sum)
		return status;
	uint32_t have = lade_deflate_crc(t, c.src + begin, *at - begin, me.thread);
	lade_team_sync<W>();
	if ((have & 0xFFFF) != lade_deflate_le(c.src, *at, 2))
		return LADE_GPU_CHECKSUM;
	*at += 2;
	return LADE_GPU_OK;
}

/*
 * Reads what is behind the stream of the member that made the output from job.begin to 'done', at
 * byte *at; all threads.  *more: there is a member behind it.  KEEP: there is output to check.
 */
template <bool KEEP, int W>
static __device__ __forceinline__ uint32_t lade_deflate_close(lade_deflate_team<W> *t,
                                                              uint32_t format, uint32_t *at,
                                                              uint32_t done, bool *more,
                                                              lade_deflate_me me)
{
	const lade_gpu_chunk &c = t->job.c;
	uint32_t n = c.src_size, p = *at, begin = t->job.begin;
	uint32_t trailer = format == LADE_DEFLATE_RAW ? 0 : format == LADE_DEFLATE_ZLIB ? 4 : 8;
	*more = false;
	if (n - p < trailer)
		return LADE_GPU_TRUNCATED;
	if (format != LADE_DEFLATE_GZIP && n - p > trailer)
		return LADE_GPU_CORRUPT;
	if (format == LADE_DEFLATE_RAW)
		return LADE_GPU_OK;
	if (KEEP) {
		uint32_t have, want = lade_deflate_le(c.src, p, 4);
		if (format == LADE_DEFLATE_ZLIB) {
			want = __byte_perm(want, 0, 0x0123);
			have = lade_deflate_adler(t, c.dst + begin, done - begin, me.thread);
		} else {
			have = lade_deflate_crc(t, c.dst + begin, done - begin, me.thread);
		}
		lade_team_sync<W>();
		if (have != want)
			return LADE_GPU_CHECKSUM;
	}
	if (format == LADE_DEFLATE_ZLIB)
		return LADE_GPU_OK;
	if (lade_deflate_le(c.src, p + 4, 4) != done - begin)
		return LADE_GPU_CHECKSUM;
	p += 8;
	*at = p;
	*more = p < n && (c.src[p] != 0 || lade_deflate_find(c.src, p, n, true, me.lane) < n);
	return LADE_GPU_OK;
}

#endif
