/*
 * deflate_frame.cuh: what stands around Deflate streams: headers and trailers of zlib (RFC 1950)
 * and gzip (RFC 1952), by a team of W warps.
 *
 * Bounds: each read is of bytes below 'n', the source's size.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_DEFLATE_FRAME_CUH
#define LADE_CUDA_DEFLATE_FRAME_CUH

#include "codec/deflate/kernels/deflate_sums.cuh"

static __device__ __forceinline__ uint32_t lade_deflate_le(const uint8_t *src, uint32_t at,
                                                           uint32_t bytes)
{
	uint32_t value = 0;
	for (uint32_t k = 0; k < bytes; k++)
		value |= (uint32_t)src[at + k] << (8 * k);
	return value;
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
                                                             lade_deflate_sum *total, uint32_t *at,
                                                             lade_deflate_me me)
{
	const lade_gpu_chunk &c = t->job.c;
	uint32_t begin = *at, format = total->format;
	bool sum = false;
	if (format == LADE_DEFLATE_RAW)
		return LADE_GPU_OK;
	uint32_t status = format == LADE_DEFLATE_ZLIB ? lade_deflate_zlib(c, at)
	                                              : lade_deflate_gzip(c, at, &sum, me.lane);
	if (status != LADE_GPU_OK || !sum)
		return status;
	lade_deflate_sum_begin(total);
	lade_deflate_crc_end(t, total, c.src + begin, *at - begin, me.thread);
	if ((~total->value & 0xFFFF) != lade_deflate_le(c.src, *at, 2))
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
                                                              lade_deflate_sum *total, uint32_t *at,
                                                              uint32_t done, bool *more,
                                                              lade_deflate_me me)
{
	const lade_gpu_chunk &c = t->job.c;
	uint32_t n = c.src_size, p = *at, begin = t->job.begin, format = total->format;
	uint32_t trailer = format == LADE_DEFLATE_RAW ? 0 : format == LADE_DEFLATE_ZLIB ? 4 : 8;
	*more = false;
	if (n - p < trailer)
		return LADE_GPU_TRUNCATED;
	if (format != LADE_DEFLATE_GZIP && n - p > trailer)
		return LADE_GPU_CORRUPT;
	if (format == LADE_DEFLATE_RAW)
		return LADE_GPU_OK;
	if (KEEP) {
		uint32_t want = lade_deflate_le(c.src, p, 4);
		lade_deflate_sum_end(t, total, done, me);
		want = format == LADE_DEFLATE_ZLIB ? __byte_perm(want, 0, 0x0123) : ~want;
		if (total->value != want)
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
