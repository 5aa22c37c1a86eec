/*
 * intrinsics.h: CUDA's vector types and the intrinsics of one thread, on the CPU.  Each gives the
 * result that the CUDA manual states, edge cases included (__clz(0) is 32, shifts wrap or clamp).
 * Included by emu.h only.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_EMU_INTRINSICS_H
#define LADE_EMU_INTRINSICS_H

#include <math.h> /* rint() */
#include <stdint.h>
#include <string.h>

/* ---- Vector types, aligned as on the device, so that UBSan sees a misaligned vector access. -- */
#define EMU_VECTOR2(T, name, bytes)                                                                \
	struct alignas(bytes) name {                                                               \
		T x, y;                                                                            \
	};                                                                                         \
	static inline name make_##name(T x, T y)                                                   \
	{                                                                                          \
		return {x, y};                                                                     \
	}
#define EMU_VECTOR3(T, name)                                                                       \
	struct name {                                                                              \
		T x, y, z;                                                                         \
	};                                                                                         \
	static inline name make_##name(T x, T y, T z)                                              \
	{                                                                                          \
		return {x, y, z};                                                                  \
	}
#define EMU_VECTOR4(T, name, bytes)                                                                \
	struct alignas(bytes) name {                                                               \
		T x, y, z, w;                                                                      \
	};                                                                                         \
	static inline name make_##name(T x, T y, T z, T w)                                         \
	{                                                                                          \
		return {x, y, z, w};                                                               \
	}
EMU_VECTOR2(unsigned char, uchar2, 2)
EMU_VECTOR2(unsigned short, ushort2, 4)
EMU_VECTOR2(int, int2, 8)
EMU_VECTOR2(unsigned, uint2, 8)
EMU_VECTOR2(float, float2, 8)
EMU_VECTOR2(long long, longlong2, 16)
EMU_VECTOR2(unsigned long long, ulonglong2, 16)
EMU_VECTOR2(double, double2, 16)
EMU_VECTOR3(int, int3)
EMU_VECTOR3(unsigned, uint3)
EMU_VECTOR4(unsigned char, uchar4, 4)
EMU_VECTOR4(unsigned short, ushort4, 8)
EMU_VECTOR4(int, int4, 16)
EMU_VECTOR4(unsigned, uint4, 16)
EMU_VECTOR4(float, float4, 16)

/* ---- Bits ------------------------------------------------------------------------------------ */
static inline int __popc(unsigned x)
{
	return __builtin_popcount(x);
}

static inline int __popcll(unsigned long long x)
{
	return __builtin_popcountll(x);
}

static inline int __clz(int x)
{
	return x ? __builtin_clz((unsigned)x) : 32;
}

static inline int __clzll(long long x)
{
	return x ? __builtin_clzll((unsigned long long)x) : 64;
}

/* The lowest set bit, counted from 1; 0 when there is none. */
static inline int __ffs(int x)
{
	return __builtin_ffs(x);
}

static inline int __ffsll(long long x)
{
	return __builtin_ffsll(x);
}

static inline unsigned long long __brevll(unsigned long long x)
{
	x = (x & 0x5555555555555555) << 1 | (x >> 1 & 0x5555555555555555);
	x = (x & 0x3333333333333333) << 2 | (x >> 2 & 0x3333333333333333);
	x = (x & 0x0F0F0F0F0F0F0F0F) << 4 | (x >> 4 & 0x0F0F0F0F0F0F0F0F);
	return __builtin_bswap64(x);
}

static inline unsigned __brev(unsigned x)
{
	return (unsigned)(__brevll(x) >> 32);
}

/* The position of the n-th set bit of 'value' from 'base'; 32 bits of ones when there is none. */
static inline unsigned __fns(unsigned value, unsigned base, int n)
{
	int step = n < 0 ? -1 : 1, left = n < 0 ? -n : n;
	if (n == 0)
		return base < 32 && (value >> base & 1) ? base : 0xFFFFFFFF;
	for (int at = (int)base; at >= 0 && at < 32; at += step)
		if ((value >> at & 1) && --left == 0)
			return (unsigned)at;
	return 0xFFFFFFFF;
}

static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector)
{
	uint64_t bytes = (uint64_t)y << 32 | x;
	unsigned out = 0;
	for (unsigned i = 0; i < 4; i++) {
		unsigned pick = selector >> 4 * i & 15;
		unsigned byte = (unsigned)(bytes >> 8 * (pick & 7)) & 0xFF;
		/* The selector's fourth bit spreads the byte's sign. */
		if (pick & 8)
			byte = byte & 0x80 ? 0xFF : 0;
		out |= byte << 8 * i;
	}
	return out;
}

/* The high word of high:low << (shift & 31), and the low word of high:low >> (shift & 31). */
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift)
{
	return (unsigned)(((uint64_t)high << 32 | low) << (shift & 31) >> 32);
}

static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift)
{
	return (unsigned)(((uint64_t)high << 32 | low) >> (shift & 31));
}

/* The same with the shift clamped to 32. */
static inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift)
{
	return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}

static inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift)
{
	return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}

/* ---- Arithmetic ------------------------------------------------------------------------------ */
static inline unsigned __umulhi(unsigned x, unsigned y)
{
	return (unsigned)((uint64_t)x * y >> 32);
}

static inline int __mulhi(int x, int y)
{
	return (int)((int64_t)x * y >> 32);
}

static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y)
{
	return (unsigned long long)((unsigned __int128)x * y >> 64);
}

static inline unsigned __umul24(unsigned x, unsigned y)
{
	return (x & 0xFFFFFF) * (y & 0xFFFFFF);
}

static inline unsigned __usad(unsigned x, unsigned y, unsigned z)
{
	return (x > y ? x - y : y - x) + z;
}

/* Four unsigned bytes times four bytes, and the sum. */
static inline unsigned __dp4a(unsigned x, unsigned y, unsigned sum)
{
	for (unsigned i = 0; i < 32; i += 8)
		sum += (x >> i & 0xFF) * (y >> i & 0xFF);
	return sum;
}

/* Each byte (two bytes): all ones where equal, else 0. */
static inline unsigned __vcmpeq4(unsigned x, unsigned y)
{
	unsigned out = 0;
	for (unsigned i = 0; i < 32; i += 8)
		out |= (x >> i & 0xFF) == (y >> i & 0xFF) ? 0xFFu << i : 0;
	return out;
}

static inline unsigned __vcmpeq2(unsigned x, unsigned y)
{
	return ((x & 0xFFFF) == (y & 0xFFFF) ? 0xFFFFu : 0) | (x >> 16 == y >> 16 ? 0xFFFF0000 : 0);
}

/* Bytewise sum and difference, each byte modulo 256. */
static inline unsigned __vadd4(unsigned x, unsigned y)
{
	return ((x & 0x7F7F7F7F) + (y & 0x7F7F7F7F)) ^ ((x ^ y) & 0x80808080);
}

static inline unsigned __vsub4(unsigned x, unsigned y)
{
	return ((x | 0x80808080) - (y & 0x7F7F7F7F)) ^ ((x ^ ~y) & 0x80808080);
}

#define EMU_MINMAX(R, A, B)                                                                        \
	static constexpr inline R min(A a, B b)                                                    \
	{                                                                                          \
		return (R)a < (R)b ? (R)a : (R)b;                                                  \
	}                                                                                          \
	static constexpr inline R max(A a, B b)                                                    \
	{                                                                                          \
		return (R)a > (R)b ? (R)a : (R)b;                                                  \
	}
/* The overloads of CUDA's math_functions: a mixed pair is compared as unsigned. */
EMU_MINMAX(int, int, int)
EMU_MINMAX(unsigned, unsigned, unsigned)
EMU_MINMAX(unsigned, int, unsigned)
EMU_MINMAX(unsigned, unsigned, int)
EMU_MINMAX(long, long, long)
EMU_MINMAX(unsigned long, unsigned long, unsigned long)
EMU_MINMAX(unsigned long, long, unsigned long)
EMU_MINMAX(unsigned long, unsigned long, long)
EMU_MINMAX(long long, long long, long long)
EMU_MINMAX(unsigned long long, unsigned long long, unsigned long long)
EMU_MINMAX(unsigned long long, long long, unsigned long long)
EMU_MINMAX(unsigned long long, unsigned long long, long long)
EMU_MINMAX(float, float, float)
EMU_MINMAX(double, double, double)

/* ---- Bits of one type as another, and conversions -------------------------------------------- */
#define EMU_BITCAST(name, To, From) \
	static inline To name(From from) \
	{ \
		To to; \
		static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size"); \
		__builtin_memcpy(&to, &from, sizeof(to)); \
		return to; \
	}
EMU_BITCAST(__float_as_int, int, float)
EMU_BITCAST(__float_as_uint, unsigned, float)
EMU_BITCAST(__int_as_float, float, int)
EMU_BITCAST(__uint_as_float, float, unsigned)
EMU_BITCAST(__double_as_longlong, long long, double)
EMU_BITCAST(__longlong_as_double, double, long long)

static inline float __uint2float_rn(unsigned x)
{
	return (float)x;
}

/* Toward zero, and clamped to the type's range; a NaN gives 0. */
static inline unsigned __float2uint_rz(float x)
{
	return !(x > 0) ? 0 : x >= 4294967296.0f ? 0xFFFFFFFF : (unsigned)x;
}

static inline float __frcp_rn(float x)
{
	return 1.0f / x;
}

static inline float __fdividef(float x, float y)
{
	return x / y;
}

#if defined(__GNUC__) && !defined(__clang__)
#define __builtin_assume(condition) ((void)0)
#endif

#endif
