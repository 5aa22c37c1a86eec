/*
 * bitcomp_decimals.cuh: bitcomp's encoder: floats to the integers that they are over a power of
 * ten, as block_encode.h makes them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_BITCOMP_DECIMALS_CUH
#define LADE_CUDA_BITCOMP_DECIMALS_CUH

#include "codec/bitcomp/kernels/bitcomp_choose.cuh"

/* Fills up the last group with the last value. */
template <int LOG>
LADE_DEVICE void lade_bitcomp_fill_up(lade_bitcomp_warp_smem *own_smem, uint32_t lane)
{
	uint8_t *bytes = (uint8_t *)own_smem->units;
	uint32_t len = own_smem->len, whole = (len + 511) & ~511u;
	if (len % 512) {
		/* Bytes from 'len' to the next multiple of 16 are 0: so is the rest of its element.
		 * */
		constexpr uint32_t SIZE = 1u << LOG;
		uint32_t end = (len + SIZE - 1) & ~(SIZE - 1);
		__syncwarp();
		for (uint32_t i = end + lane; i < whole; i += 32)
			bytes[i] = bytes[end - SIZE + (i & (SIZE - 1))];
	}
	__syncwarp();
}

/* A float type, by log2 of its size. */
template <int LOG> struct lade_bitcomp_real {
	typedef float type;
	static __device__ __forceinline__ float of(uint64_t v)
	{
		return __uint_as_float((uint32_t)v);
	}
	static __device__ __forceinline__ uint64_t bits(float v)
	{
		return __float_as_uint(v);
	}
};
template <> struct lade_bitcomp_real<3> {
	typedef double type;
	static __device__ __forceinline__ double of(uint64_t v)
	{
		return __longlong_as_double((long long)v);
	}
	static __device__ __forceinline__ uint64_t bits(double v)
	{
		return (uint64_t)__double_as_longlong(v);
	}
};

/* The power of ten, exactly. */
template <int LOG>
LADE_DEVICE typename lade_bitcomp_real<LOG>::type lade_bitcomp_ten(uint32_t power)
{
	typename lade_bitcomp_real<LOG>::type ten = 1;
	for (uint32_t i = 0; i < LADE_BITCOMP_TEN_TRIED(LOG); i++)
		ten *= i < power ? 10 : 1;
	return ten;
}

/* Whether a float's bits are those of an integer over 'ten', and that; or itself. */
template <int LOG>
LADE_DEVICE bool lade_bitcomp_decimal_of(uint64_t v, typename lade_bitcomp_real<LOG>::type ten,
                                         uint64_t *integer)
{
	typedef lade_bitcomp_real<LOG> real;
	const double most = (double)LADE_BITCOMP_DECIMALS(LOG);
	typename real::type scaled = real::of(v) * ten;
	double d = (double)scaled;
	*integer = v;
	if (!(d > -most && d < most))
		return false;
	/* An integer has no negative zero, as a float has. */
	long long i = (long long)rint(d), limit = LADE_BITCOMP_DECIMALS(LOG);
	typename real::type back = (typename real::type)i / ten;
	if (real::bits(back) != v || i <= -limit || i >= limit)
		return false;
	*integer = LOG == 3 ? (uint64_t)i : (uint32_t)(int32_t)i;
	return true;
}

/* The power of ten, and 1, with which most of the sample's values are decimals, as in
 * block_encode.h. */
template <int LOG>
LADE_DEVICE uint32_t lade_bitcomp_decimal_try(const lade_bitcomp_warp_smem *own_smem,
                                              uint32_t groups, uint32_t lane)
{
	const uint8_t *bytes = (const uint8_t *)own_smem->units;
	uint32_t first[2] = {512 * lade_bitcomp_sample(groups, 0),
	                     512 * lade_bitcomp_sample(groups, 1)};
	uint64_t integer, v[2];
#pragma unroll
	for (uint32_t k = 0; k < 2; k++) {
		uint64_t mine = lade_bitcomp_element(bytes + first[k] + 16 * lane, LOG);
		uint32_t some = __ballot_sync(LADE_FULL, mine != 0);
		if (!some)
			return 0;
		uint32_t from = (uint32_t)__ffs((int)some) - 1;
		v[k] = lade_bitcomp_element(bytes + first[k] + 16 * from, LOG);
	}
	/* A lane has a power. */
	auto own = lade_bitcomp_ten<LOG>(lane);
	bool is = lane <= LADE_BITCOMP_TEN_TRIED(LOG) &&
	          lade_bitcomp_decimal_of<LOG>(v[0], own, &integer) &&
	          lade_bitcomp_decimal_of<LOG>(v[1], own, &integer);
	uint32_t can = __ballot_sync(LADE_FULL, is);
	if (!can)
		return 0;
#pragma unroll 1
	for (uint32_t power = (uint32_t)__ffs((int)can) - 1; power <= LADE_BITCOMP_TEN_TRIED(LOG);
	     power++) {
		auto ten = lade_bitcomp_ten<LOG>(power);
		uint32_t count = 0; /* none, and some */
#pragma unroll 1
		for (uint32_t i = lane; i < 1024u >> LOG; i += 32) {
			uint32_t at = (i << LOG & 511) + (i >> (9 - LOG) ? first[1] : first[0]);
			bool good = lade_bitcomp_decimal_of<LOG>(
				lade_bitcomp_element(bytes + at, LOG), ten, &integer);
			count += good ? (integer ? 1u << 16 : 0) : 1;
		}
		count = __reduce_add_sync(LADE_FULL, count);
		uint32_t some = count >> 16;
		if (some && LADE_BITCOMP_DECIMAL_MOST * (count & 0xFFFF) <= some)
			return power + 1;
	}
	return 0;
}

/* Makes integers of the elements, as own_smem->ten says; false: one is taken for a decimal that it
 * is not. */
template <int LOG>
LADE_DEVICE bool lade_bitcomp_decimals_to(lade_bitcomp_warp_smem *own_smem, uint32_t lane)
{
	const long long most = LADE_BITCOMP_DECIMALS(LOG);
	uint8_t *bytes = (uint8_t *)own_smem->units;
	uint32_t count = own_smem->len >> LOG;
	auto ten = lade_bitcomp_ten<LOG>(own_smem->ten - 1);
	bool good = true;
#pragma unroll 1
	for (uint32_t i = lane; i < count; i += 32) {
		uint64_t v = lade_bitcomp_element(bytes + (i << LOG), LOG), integer;
		long long as = LOG == 3 ? (long long)v : (long long)(int32_t)(uint32_t)v;
		if (!lade_bitcomp_decimal_of<LOG>(v, ten, &integer))
			good = good && (as <= -most || as >= most);
		lade_bitcomp_element_put(bytes + (i << LOG), LOG, integer);
	}
	__syncwarp();
	lade_bitcomp_fill_up<LOG>(own_smem, lane);
	return __all_sync(LADE_FULL, good);
}

#endif
