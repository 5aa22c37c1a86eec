/*
 * ints_sum.h: running sums with vectors, written once.  Included after ints_simple.h by files
 * that define:
 *
 * vec, VEC_BYTES, LOAD(p), STORE(p, v), ADD(bits, a, b)
 * UP(v, n)            in each lane of 16 bytes, the bytes n places higher, 0 below
 * ADD_LANES(bits, v)  the last elements of a vector's lower lanes added to each lane
 * TOTAL(bits, v)      the last element in all places
 * ALL(bits, x)        x in all places
 *
 * Each step sums inside the vector first, which does not wait for the step before; only one
 * addition does.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

#define SUM(bits) \
	static TARGET uint64_t sum##bits(const void *src, void *dst, size_t count, \
	                                 uint64_t before) \
	{ \
		const any##bits *from = src; \
		any##bits *to = dst; \
		size_t i = 0, step = VEC_BYTES / (bits / 8); \
		vec carry = ALL(bits, before); \
		for (; i + step <= count; i += step) { \
			vec v = LOAD(from + i); \
			if (bits == 8) \
				v = ADD(bits, v, UP(v, 1)); \
			if (bits <= 16) \
				v = ADD(bits, v, UP(v, 2)); \
			if (bits <= 32) \
				v = ADD(bits, v, UP(v, 4)); \
			v = ADD(bits, v, UP(v, 8)); \
			v = ADD_LANES(bits, v); \
			STORE(to + i, ADD(bits, v, carry)); \
			carry = ADD(bits, carry, TOTAL(bits, v)); \
		} \
		before = i ? to[i - 1] : before; \
		return sum_loop##bits(from + i, to + i, count - i, before); \
	}

SUM(8)
SUM(16)
SUM(32)
SUM(64)
