/*
 * zstd_dict.cuh: dictionaries (RFC 8878, section 5): their tables are made once, and copied to each
 * frame.
 *
 *     | magic 4 | id 4 | Huffman table | offsets | matches | lengths | repeat 3 x 4 | content |
 *
 * Bounds: words behind the dictionary's end are 0, and each part must end within it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_ZSTD_DICT_CUH
#define LADE_CUDA_ZSTD_DICT_CUH

#include "codec/zstd/kernels/zstd_huffman.cuh"
#include "codec/zstd/kernels/zstd_sequences.cuh"

#define LADE_ZSTD_DICT_MAGIC 0xEC30A437u

/* Reads what stands before the content, by a warp: whether it is right. */
static __device__ __forceinline__ bool lade_zstd_dict_read(lade_zstd_walker *w,
                                                           lade_zstd_huffman *h,
                                                           const uint8_t *dict, uint32_t n,
                                                           lade_zstd_prepared *p, uint32_t lane)
{
	lade_zstd_fetch(&h->maker, dict, 8, n, lane);
	lade_zstd_tree_read(h, 8, n, lane);
	if (!lade_zstd_codes_make(h, lane))
		return false;
	uint32_t at = h->at;
#pragma unroll 1
	for (int k = 0; k < 3; k++) {
		int kind = k == 0   ? LADE_ZSTD_OFFSETS
		           : k == 1 ? LADE_ZSTD_MATCHES
		                    : LADE_ZSTD_LENGTHS;
		uint32_t most = n - at < LADE_ZSTD_MOST ? n - at : LADE_ZSTD_MOST, read = 0;
		lade_zstd_fetch(&w->maker, dict, at, n, lane);
		if (!lade_zstd_table_read(w, kind, LADE_ZSTD_CODED, &read, most, lane))
			return false;
		at += read;
	}
	if (n - at < 12)
		return false;
	uint32_t size = n - at - 12, repeat = lade_zstd_le(dict, at + 4 * (lane % 3), 4);
	if (lane < 3)
		p->repeat[lane] = repeat;
	p->at = at + 12;
	p->size = size;
	return __all_sync(LADE_FULL, repeat - 1 < size);
}

static __device__ __forceinline__ void lade_zstd_dict_copy(uint32_t *to, const uint32_t *from,
                                                           uint32_t words, uint32_t lane)
{
#pragma unroll 4
	for (uint32_t i = lane; i < words; i += 32)
		to[i] = from[i];
}

/* Makes *p from the dictionary of 'n' bytes, by a warp. */
static __device__ __forceinline__ void lade_zstd_dict_make(lade_zstd_walker *w,
                                                           lade_zstd_huffman *h,
                                                           const uint8_t *dict, uint32_t n,
                                                           lade_zstd_prepared *p, uint32_t lane)
{
	bool formatted = n >= 8 && lade_zstd_le(dict, 0, 4) == LADE_ZSTD_DICT_MAGIC;
	bool tables = formatted && lade_zstd_dict_read(w, h, dict, n, p, lane);
	if (lane == 0) {
		p->status = tables || !formatted ? LADE_GPU_OK : LADE_GPU_DICT;
		p->id = formatted ? lade_zstd_le(dict, 4, 4) : 0;
		p->huffman_log = tables ? h->log : 0;
		p->stated = tables ? h->stated : 0;
		if (!formatted) {
			p->at = 0;
			p->size = n;
			p->repeat[0] = 1;
			p->repeat[1] = 4;
			p->repeat[2] = 8;
		}
	}
	if (lane < 3)
		p->log[lane] = tables ? w->log[lane] : LADE_ZSTD_NO_TABLE;
	if (!tables)
		return;
	lade_zstd_dict_copy(p->lengths, w->lengths, 1u << w->log[LADE_ZSTD_LENGTHS], lane);
	lade_zstd_dict_copy(p->matches, w->matches, 1u << w->log[LADE_ZSTD_MATCHES], lane);
	lade_zstd_dict_copy(p->offsets, w->offsets, 1u << w->log[LADE_ZSTD_OFFSETS], lane);
	for (uint32_t i = lane; i < 256; i += 32)
		p->weight[i] = h->weight[i];
}

/* Gives the tables of sequences to a frame, by a warp. */
static __device__ __forceinline__ void lade_zstd_dict_tables(const lade_zstd_prepared &p,
                                                             lade_zstd_walker *w, uint32_t lane)
{
	__syncwarp();
	if (lane < 3)
		w->log[lane] = p.log[lane];
	if (p.huffman_log == 0)
		return;
	lade_zstd_dict_copy(w->lengths, p.lengths, 1u << p.log[LADE_ZSTD_LENGTHS], lane);
	lade_zstd_dict_copy(w->matches, p.matches, 1u << p.log[LADE_ZSTD_MATCHES], lane);
	lade_zstd_dict_copy(w->offsets, p.offsets, 1u << p.log[LADE_ZSTD_OFFSETS], lane);
}

/* The same of the weights of literals. */
static __device__ __forceinline__ void lade_zstd_dict_weights(const lade_zstd_prepared &p,
                                                           lade_zstd_huffman *h, uint32_t lane)
{
	__syncwarp();
	if (lane == 0) {
		h->log = p.huffman_log;
		h->stated = p.stated;
	}
	for (uint32_t i = lane; i < p.stated; i += 32)
		h->weight[i] = p.weight[i];
}

#endif
