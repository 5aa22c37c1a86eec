/*
 * zstd_dict.cu: Zstandard frames with a dictionary.  Functions that are called are compiled for all
 * kernels of a file: apart from zstd_decode.cu, these do not take registers from that kernel.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/zstd/kernels/zstd_chunks.cuh"

/* Map: one warp makes a dictionary's tables.  Shared: a walker, and a warp for literals. */
extern "C" __global__ void __launch_bounds__(32) lade_zstd_prepare(lade_zstd_dict dict)
{
	LADE_SHARED(lade_zstd_walker, walker);
	LADE_SHARED(lade_zstd_huffman, huffman);
	lade_zstd_dict_make(&walker, &huffman, dict.bytes, dict.size, dict.prepared, lade_lane());
}

/* Map: block = one chunk at a time, warps by what they do.  Shared: a team. */
extern "C" __global__ void __launch_bounds__(LADE_ZSTD_THREADS, 14)
	lade_zstd_decode_dict(lade_gpu_batch batch, lade_zstd_room room, lade_zstd_dict dict)
{
	lade_zstd_chunks<true>(batch, room, dict);
}
