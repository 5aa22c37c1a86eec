/*
 * adler32.cuh: what a lane adds up for Adler-32 (RFC 1950) of the vectors of 16 bytes that it has.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_ADLER32_CUH
#define LADE_CUDA_ADLER32_CUH

#include "gpu/kernels/device.cuh"

#define LADE_ADLER 65521u

/* Of up to 512 vectors 'a' stays below 2^21, the others below 2^30. */
struct lade_adler_lane {
	uint32_t a;    /* bytes */
	uint32_t rows; /* bytes by the vectors behind theirs */
	uint32_t near; /* bytes by their distance from their vector's end, 16 to 1 */

	__device__ __forceinline__ void begin()
	{
		a = rows = near = 0;
	}

	__device__ __forceinline__ void row(uint4 v)
	{
		rows += a;
		a = __dp4a(v.x, 0x01010101u, a);
		a = __dp4a(v.y, 0x01010101u, a);
		a = __dp4a(v.z, 0x01010101u, a);
		a = __dp4a(v.w, 0x01010101u, a);
		near = __dp4a(v.x, 0x0D0E0F10u, near);
		near = __dp4a(v.y, 0x090A0B0Cu, near);
		near = __dp4a(v.z, 0x05060708u, near);
		near = __dp4a(v.w, 0x01020304u, near);
	}

	/* Bytes by their distance from a place that is 'far' behind the last vector's end, where
	 * vectors are 'step' apart. */
	__device__ __forceinline__ uint64_t by(uint32_t step, uint32_t far) const
	{
		return (uint64_t)rows * step + (uint64_t)a * far + near;
	}
};

#endif
