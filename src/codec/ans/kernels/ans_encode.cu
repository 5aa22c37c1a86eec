/*
 * ans_encode.cu: encodes chunks to the ANS format (docs/format/ans.md, section 7).
 *
 * A block encodes a chunk: it counts the bytes of each position and builds tables.  Then each warp
 * encodes a sub-block into shared memory, from its last symbols to its first, and stores it when
 * the sizes of all sub-blocks are known.  Most bytes of 1-byte elements are coded, and look-ups are
 * the limit: small blocks that read a chunk twice keep a multiprocessor busy (ans_bytes.cuh).  Of
 * wider elements only a plane or two are coded, and the steps around that are the limit: large
 * blocks that read a chunk once (ans_wide.cuh).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/ans/kernels/ans_bytes.cuh"
#include "codec/ans/kernels/ans_wide.cuh"

/*
 * For elements of 1, 2, 4 and 8 bytes.
 *
 * map: block = a chunk; warp = a sub-block in turn; lane = every 32nd unit of 4 elements shared:
 * 'bytes' of dynamic memory.  For bytes at least 27,136, or 32,768 for sub-blocks of 16 KiB.  For
 * others 'staging' for the chunk, whole sub-blocks of 4 KiB for each warp, and 2,304 times
 *         a width more
 * block:  128 to 512 threads; for wide elements 256, or 128 in the small kernels
 *
 * 'block_log' is log2 of a sub-block's bytes, or, for bytes, 0: by the chunk's size; 'bits' that of
 * the states, or 0; 'signs' is 1 where elements are bfloat16.  With batch.next blocks take chunks
 * from it; else block i takes the i-th.
 */
extern "C" __global__ void __launch_bounds__(512, 2)
	lade_ans_encode_1(lade_gpu_batch batch, uint32_t block_log, uint32_t bits, uint32_t bytes,
                          uint32_t staging)
{
	(void)staging;
	lade_ans_encode_bytes(batch, block_log, bits, bytes);
}

extern "C" __global__ void __launch_bounds__(256, 3)
	lade_ans_encode_2(lade_gpu_batch batch, uint32_t block_log, uint32_t bits, uint32_t bytes,
                          uint32_t staging, uint32_t signs)
{
	lade_ans_encode_wide<2, 8>(batch, block_log, bits, bytes, staging, signs != 0);
}

extern "C" __global__ void __launch_bounds__(256, 3)
	lade_ans_encode_4(lade_gpu_batch batch, uint32_t block_log, uint32_t bits, uint32_t bytes,
                          uint32_t staging)
{
	lade_ans_encode_wide<4, 8>(batch, block_log, bits, bytes, staging, false);
}

extern "C" __global__ void __launch_bounds__(256, 2)
	lade_ans_encode_8(lade_gpu_batch batch, uint32_t block_log, uint32_t bits, uint32_t bytes,
                          uint32_t staging)
{
	lade_ans_encode_wide<8, 8>(batch, block_log, bits, bytes, staging, false);
}

/* The same with less shared memory, so that more blocks are resident and hide latencies. */
extern "C" __global__ void __launch_bounds__(128, 6)
	lade_ans_encode_small_2(lade_gpu_batch batch, uint32_t block_log, uint32_t bits,
                                uint32_t bytes, uint32_t staging, uint32_t signs)
{
	lade_ans_encode_wide<2, 4>(batch, block_log, bits, bytes, staging, signs != 0);
}

extern "C" __global__ void __launch_bounds__(128, 6)
	lade_ans_encode_small_4(lade_gpu_batch batch, uint32_t block_log, uint32_t bits,
                                uint32_t bytes, uint32_t staging)
{
	lade_ans_encode_wide<4, 4>(batch, block_log, bits, bytes, staging, false);
}

extern "C" __global__ void __launch_bounds__(128, 4)
	lade_ans_encode_small_8(lade_gpu_batch batch, uint32_t block_log, uint32_t bits,
                                uint32_t bytes, uint32_t staging)
{
	lade_ans_encode_wide<8, 4>(batch, block_log, bits, bytes, staging, false);
}
