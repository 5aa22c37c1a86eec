/*
 * blosc_header.cuh: the checked header of a Blosc1 container (docs/format/blosc.md), with the
 * statuses of the host's decoder (codec/blosc/header.c).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_BLOSC_HEADER_CUH
#define LADE_CUDA_BLOSC_HEADER_CUH

#include "codec/blosc/args.h"
#include "gpu/kernels/batch.cuh"

#define LADE_BLOSC_HEADER 16u
#define LADE_BLOSC_NBYTES_MAX (0x7FFFFFFFu - LADE_BLOSC_HEADER)
#define LADE_BLOSC_BLOCK_MAX ((0x7FFFFFFFu - 255 * 4) / 3)
#define LADE_BLOSC_STREAMS_MAX 16u
#define LADE_BLOSC_STREAM_MIN 128u

#define LADE_BLOSC_SHUFFLE 0x01u
#define LADE_BLOSC_IS_STORED 0x02u
#define LADE_BLOSC_BITSHUFFLE 0x04u
#define LADE_BLOSC_RESERVED 0x08u
#define LADE_BLOSC_UNSPLIT 0x10u

#define LADE_GPU_UNSUPPORTED ((uint32_t)LADE_E_UNSUPPORTED)
#define LADE_GPU_VERSION ((uint32_t)LADE_E_VERSION)

static __device__ __forceinline__ uint32_t lade_blosc_le(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* The sizes of a chunk whose 'nbytes' is not 0. */
static __device__ __forceinline__ uint32_t lade_blosc_blocks(lade_blosc_chunk *b)
{
	if (b->blocksize == 0 || b->blocksize > b->nbytes || b->blocksize > LADE_BLOSC_BLOCK_MAX ||
	    b->typesize == 0)
		return LADE_GPU_CORRUPT;
	if (b->flags & LADE_BLOSC_IS_STORED) {
		b->blocksize = LADE_BLOSC_STORED;
		b->blocks = (b->nbytes + LADE_BLOSC_STORED - 1) / LADE_BLOSC_STORED;
		return b->cbytes == b->nbytes + LADE_BLOSC_HEADER ? LADE_GPU_OK : LADE_GPU_CORRUPT;
	}
	b->blocks = b->nbytes / b->blocksize + (b->nbytes % b->blocksize != 0);
	if (b->blocks > (b->cbytes - LADE_BLOSC_HEADER) / 4)
		return LADE_GPU_CORRUPT;
	if (!(b->flags & LADE_BLOSC_UNSPLIT) && b->typesize <= LADE_BLOSC_STREAMS_MAX &&
	    b->blocksize / b->typesize >= LADE_BLOSC_STREAM_MIN) {
		if (b->blocksize % b->typesize)
			return LADE_GPU_CORRUPT;
		b->streams = b->typesize;
	}
	return LADE_GPU_OK;
}

/* Reads the header of 'size' bytes at 'p', each byte once.  With LADE_GPU_OK the table of blocks is
 * within 'cbytes', which is 'size'. */
static __device__ __forceinline__ uint32_t lade_blosc_header(const uint8_t *p, uint32_t size,
                                                             lade_blosc_chunk *b)
{
	*b = lade_blosc_chunk{};
	if (size == 0)
		return LADE_GPU_TRUNCATED;
	uint32_t version = p[0];
	if (version != 2)
		return version > 2 && version <= 6 ? LADE_GPU_UNSUPPORTED : LADE_GPU_VERSION;
	if (size < LADE_BLOSC_HEADER)
		return LADE_GPU_TRUNCATED;
	uint32_t inner = p[1];
	b->src = p;
	b->flags = p[2];
	b->typesize = p[3];
	b->nbytes = lade_blosc_le(p + 4);
	b->blocksize = lade_blosc_le(p + 8);
	b->cbytes = lade_blosc_le(p + 12);
	b->streams = 1;
	b->counter = LADE_BLOSC_WHOLE;
	if (b->flags & LADE_BLOSC_RESERVED)
		return LADE_GPU_UNSUPPORTED;
	if (b->nbytes > LADE_BLOSC_NBYTES_MAX || b->cbytes < LADE_BLOSC_HEADER)
		return LADE_GPU_CORRUPT;
	if (b->cbytes != size)
		return b->cbytes > size ? LADE_GPU_TRUNCATED : LADE_GPU_CORRUPT;
	if (b->nbytes == 0)
		return b->cbytes == LADE_BLOSC_HEADER ? LADE_GPU_OK : LADE_GPU_CORRUPT;
	bool stored = b->flags & LADE_BLOSC_IS_STORED;
	b->list = stored ? LADE_BLOSC_PLAIN : b->flags >> 5;
	if (b->list >= LADE_BLOSC_LISTS)
		return LADE_GPU_UNSUPPORTED;
	if (!stored && inner != 1)
		return LADE_GPU_VERSION;
	return lade_blosc_blocks(b);
}

/* How a block of 'size' bytes was shuffled: LADE_BLOSC_SHUFFLE, LADE_BLOSC_BITSHUFFLE, or 0. */
static __device__ __forceinline__ uint32_t lade_blosc_filter(uint32_t flags, uint32_t typesize,
                                                             uint32_t size)
{
	uint32_t elements = size / typesize;
	if (flags & LADE_BLOSC_IS_STORED || elements == 0)
		return 0;
	if (flags & LADE_BLOSC_SHUFFLE && typesize > 1)
		return LADE_BLOSC_SHUFFLE;
	return flags & LADE_BLOSC_BITSHUFFLE && elements % 8 == 0 ? LADE_BLOSC_BITSHUFFLE : 0;
}

#endif
