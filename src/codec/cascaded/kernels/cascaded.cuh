/*
 * cascaded.cuh: what the kernels of the cascaded codec share (docs/format/cascaded.md).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_CASCADED_CUH
#define LADE_CUDA_CASCADED_CUH

#include "codec/cascaded/args.h"
#include "gpu/kernels/batch.cuh"

#define LADE_LAYOUT static __device__ __forceinline__
#include "codec/cascaded/layout.h"

/* A lane's step: 16 bytes of elements of type T. */
template <typename T> struct lade_cas {
	static constexpr uint32_t LOG2 = sizeof(T) == 8 ? 3 : sizeof(T) == 4 ? 2 : sizeof(T) == 2;
	static constexpr uint32_t STEP = 16 / sizeof(T); /* elements of a lane */
	static constexpr uint32_t GROUP = 32 * STEP;     /* and of a warp */
};

/* A word at any address. */
static __device__ __forceinline__ uint32_t lade_cas_word(const uint8_t *p)
{
	if (!((uintptr_t)p & 3))
		return __ldg((const uint32_t *)p);
	return (uint32_t)__ldg(p) | (uint32_t)__ldg(p + 1) << 8 | (uint32_t)__ldg(p + 2) << 16 |
	       (uint32_t)__ldg(p + 3) << 24;
}

/* The low 'width' bits, 0 to 64. */
static __device__ __forceinline__ unsigned long long lade_cas_mask(uint32_t width)
{
	return width < 64 ? (1ull << width) - 1 : ~0ull;
}

/* Inclusive sum over the warp's lanes. */
static __device__ __forceinline__ uint32_t lade_cas_scan(uint32_t v, uint32_t lane)
{
	return lade_warp_scan(v, lane);
}

static __device__ __forceinline__ unsigned long long lade_cas_scan(unsigned long long v,
                                                                   uint32_t lane)
{
#pragma unroll
	for (uint32_t d = 1; d < 32; d *= 2) {
		unsigned long long before = __shfl_up_sync(LADE_FULL, v, d);
		v += lane >= d ? before : 0;
	}
	return v;
}

/* What is summed up: T itself where it is 8 bytes, else 32 bits of which the low ones count. */
template <typename T> struct lade_cas_sum_of {
	typedef uint32_t type;
};
template <> struct lade_cas_sum_of<unsigned long long> {
	typedef unsigned long long type;
};

/* The four words of a lane's elements. */
template <typename T>
static __device__ __forceinline__ uint4 lade_cas_join(const T *v)
{
	uint32_t w[4];
#pragma unroll
	for (uint32_t k = 0; k < 4; k++) {
		if (sizeof(T) == 8) {
			w[k] = (uint32_t)((unsigned long long)v[k / 2] >> (32 * (k & 1)));
		} else if (sizeof(T) == 4) {
			w[k] = (uint32_t)v[k];
		} else if (sizeof(T) == 2) {
			w[k] = (uint32_t)v[2 * k] | (uint32_t)v[2 * k + 1] << 16;
		} else {
			w[k] = (uint32_t)v[4 * k] | (uint32_t)v[4 * k + 1] << 8 |
			       (uint32_t)v[4 * k + 2] << 16 | (uint32_t)v[4 * k + 3] << 24;
		}
	}
	return make_uint4(w[0], w[1], w[2], w[3]);
}

/* Writes the first 'bytes' of 16 to global memory of any alignment. */
static __device__ __forceinline__ void lade_cas_store(uint8_t *to, uint4 v, uint32_t bytes)
{
	uint32_t w[4] = {v.x, v.y, v.z, v.w};
	if (bytes >= 16 && !((uintptr_t)to & 15)) {
		*(uint4 *)to = v;
	} else if (bytes >= 16 && !((uintptr_t)to & 3)) {
#pragma unroll
		for (uint32_t k = 0; k < 4; k++)
			((uint32_t *)to)[k] = w[k];
	} else {
		uint32_t most = bytes < 16 ? bytes : 16;
#pragma unroll 1
		for (uint32_t k = 0; k < most; k++) {
			to[k] = (uint8_t)w[0];
			w[0] = __funnelshift_r(w[0], w[1], 8);
			w[1] = __funnelshift_r(w[1], w[2], 8);
			w[2] = __funnelshift_r(w[2], w[3], 8);
			w[3] >>= 8;
		}
	}
}

#endif
