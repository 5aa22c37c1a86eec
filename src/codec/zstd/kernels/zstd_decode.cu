/*
 * zstd_decode.cu: Zstandard frames, in batches (docs/performance/log/gpu-zstd.md).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/zstd/kernels/zstd_chunks.cuh"

/* Map: block = one chunk at a time, warps by what they do.  Shared: a team. */
extern "C" __global__ void __launch_bounds__(LADE_ZSTD_THREADS, 15)
	lade_zstd_decode(lade_gpu_batch batch, lade_zstd_room room)
{
	lade_zstd_chunks<false>(batch, room, lade_zstd_dict{});
}

/* Map: thread = a chunk.  Writes sizes and statuses; 'dst' and 'dst_cap' are not read. */
extern "C" __global__ void __launch_bounds__(128) lade_zstd_size(lade_gpu_batch batch)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, at = 0;
	if (i >= batch.count)
		return;
	lade_gpu_chunk c;
	uint32_t status = lade_source_get(batch, i, &c);
	uint64_t sum = 0;
	if (status == LADE_GPU_OK && c.src_size == 0)
		status = LADE_GPU_TRUNCATED;
	while (status == LADE_GPU_OK) {
		lade_zstd_frame f;
		status = lade_zstd_frame_read(c.src, c.src_size, &at, &f);
		if (status != LADE_GPU_OK || !f.there)
			break;
		if (f.content == ~(uint64_t)0)
			status = LADE_GPU_UNKNOWN_SIZE;
		lade_zstd_block b = {};
		while (status == LADE_GPU_OK && !b.last)
			status = lade_zstd_block_skip(c.src, c.src_size, &at, &b);
		if (status == LADE_GPU_OK && f.checksum) {
			status = c.src_size - at < 4 ? LADE_GPU_TRUNCATED : LADE_GPU_OK;
			at += 4;
		}
		if (status == LADE_GPU_OK && f.content > LADE_CHUNK_MAX - sum)
			status = LADE_GPU_LIMIT;
		sum += f.content;
	}
	lade_chunk_put(batch, i, status, (uint32_t)sum);
}
