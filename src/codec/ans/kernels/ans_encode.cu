/*
 * ans_encode.cu: makes chunks of the ANS format (docs/format/ans.md, section 7).
 *
 * A block makes a chunk: it counts the bytes of each position, makes tables, and then each warp
 * encodes a sub-block into shared memory, from its last symbols to its first, until it is known
 * where the sub-blocks go.  Bytes are coded for the most part, and look-ups bound that: small
 * blocks that read a chunk twice keep all parts of a multiprocessor busy (ans_bytes.cuh).  Of wide
 * elements it is a plane or two, and the steps around it bound that: large blocks that read a chunk
 * once (ans_wide.cuh).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/ans/kernels/ans_bytes.cuh"
#include "codec/ans/kernels/ans_wide.cuh"

/*
 * For elements of 1, 2, 4 and 8 bytes.
 *
 * map:    block = a chunk; warp = a sub-block in turn; lane = every 32nd unit of 4 elements
 * shared: 'bytes' of dynamic memory.  For bytes at least 27,136, or 32,768 for sub-blocks of 16
 * KiB.
 *         For others 'hold' for the chunk, whole sub-blocks of 4 KiB for each warp, and 2,304 times
 *         a width more
 * block:  128 to 512 threads; for wide elements 256, or 128 in the small ones
 *
 * 'block_log' is log2 of a sub-block's bytes, or, for bytes, 0: by the chunk's size; 'bits' that of
 * the states, or 0; 'signs' is 1 where elements are bfloat16.  With batch.next blocks take chunks
 * from it; else block i takes the i-th.
 */
extern "C" __global__ void __launch_bounds__(512, 2)
	lade_ans_encode_1(lade_gpu_batch batch, uint32_t block_log, uint32_t bits, uint32_t bytes,
	                  uint32_t hold)
{
	(void)hold;
	lade_ans_encode_bytes(batch, block_log, bits, bytes);
}

extern "C" __global__ void __launch_bounds__(256, 3)
	lade_ans_encode_2(lade_gpu_batch batch, uint32_t block_log, uint32_t bits, uint32_t bytes,
	                  uint32_t hold, uint32_t signs)
{
	lade_ans_encode_wide<2, 8>(batch, block_log, bits, bytes, hold, signs != 0);
}

extern "C" __global__ void __launch_bounds__(256, 3)
	lade_ans_encode_4(lade_gpu_batch batch, uint32_t block_log, uint32_t bits, uint32_t bytes,
	                  uint32_t hold)
{
	lade_ans_encode_wide<4, 8>(batch, block_log, bits, bytes, hold, false);
}

extern "C" __global__ void __launch_bounds__(256, 2)
	lade_ans_encode_8(lade_gpu_batch batch, uint32_t block_log, uint32_t bits, uint32_t bytes,
	                  uint32_t hold)
{
	lade_ans_encode_wide<8, 8>(batch, block_log, bits, bytes, hold, false);
}

/* The same with less memory, so that more blocks hide each other's waits. */
extern "C" __global__ void __launch_bounds__(128, 6)
	lade_ans_encode_small_2(lade_gpu_batch batch, uint32_t block_log, uint32_t bits,
                                uint32_t bytes, uint32_t hold, uint32_t signs)
{
	lade_ans_encode_wide<2, 4>(batch, block_log, bits, bytes, hold, signs != 0);
}

extern "C" __global__ void __launch_bounds__(128, 6)
	lade_ans_encode_small_4(lade_gpu_batch batch, uint32_t block_log, uint32_t bits,
                                uint32_t bytes, uint32_t hold)
{
	lade_ans_encode_wide<4, 4>(batch, block_log, bits, bytes, hold, false);
}

extern "C" __global__ void __launch_bounds__(128, 4)
	lade_ans_encode_small_8(lade_gpu_batch batch, uint32_t block_log, uint32_t bits,
                                uint32_t bytes, uint32_t hold)
{
	lade_ans_encode_wide<8, 4>(batch, block_log, bits, bytes, hold, false);
}
