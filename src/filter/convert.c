/*
 * convert.c: conversions between all pairs of element types.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter/reals.h"

#include <math.h>
#include <string.h>

/* ---- small reals -------------------------------------------------------------------- */

/* Below, a small real has 'mant' bits of mantissa and the exponents 1 - bias to bias; bits are
 * without the sign's. */

/* The nearest small real of a finite double, with ties to even; the exponent may go past 'bias'. */
static inline uint32_t narrow_finite(uint64_t x, unsigned mant, int bias)
{
	int exponent = (int)(x >> 52) - 1023;
	uint64_t bits, drop = 52 - mant;
	if (exponent >= 1 - bias) {
		bits = x - ((uint64_t)(1023 - bias) << 52);
	} else {
		/* Below the normal range: the exponent is that of 1 - bias, without a hidden
		 * bit. */
		drop += (uint64_t)(1 - bias - exponent);
		if (drop > 53)
			return 0;
		bits = (x & ((1ULL << 52) - 1)) | 1ULL << 52;
	}
	/* A carry out of the mantissa goes into the exponent, as it should. */
	bits += (1ULL << (drop - 1)) - 1 + (bits >> drop & 1);
	return (uint32_t)(bits >> drop);
}

/* The same for all doubles, of a type with infinity, which what is too large becomes. */
static inline uint32_t narrow(uint64_t x, unsigned mant, int bias)
{
	uint64_t infinity = (2 * (uint64_t)bias + 1) << mant;
	int exponent = (int)(x >> 52) - 1023;
	uint64_t fraction = x & ((1ULL << 52) - 1);
	if (exponent == 1024 && fraction) {
		uint64_t nan = infinity | fraction >> (52 - mant);
		return (uint32_t)(nan == infinity ? nan + 1 : nan);
	}
	return exponent > bias ? (uint32_t)infinity : narrow_finite(x, mant, bias);
}

static inline uint64_t bits_of(double x, uint32_t *sign)
{
	uint64_t bits;
	memcpy(&bits, &x, sizeof bits);
	*sign = (uint32_t)(bits >> 63);
	return bits & ~(1ULL << 63);
}

static inline uint16_t half_of(double x)
{
	uint32_t sign;
	uint64_t bits = bits_of(x, &sign);
	return (uint16_t)(sign << 15 | narrow(bits, 10, 15));
}

static inline uint16_t bfloat_of(double x)
{
	uint32_t sign;
	uint64_t bits = bits_of(x, &sign);
	return (uint16_t)(sign << 15 | narrow(bits, 7, 127));
}

/* The exponent past 'bias' has numbers too; the highest bits are NaN, which what is too large
 * becomes. */
static inline uint8_t e4m3_of(double x)
{
	uint32_t sign;
	uint64_t bits = bits_of(x, &sign);
	uint32_t small = bits >> 52 > 1023 + 8 ? 0x7F : narrow_finite(bits, 3, 7);
	return (uint8_t)(sign << 7 | (small > 0x7F ? 0x7F : small));
}

/* The float of a small real. */
static inline float widen(uint32_t sign, uint32_t bits, unsigned mant, int bias)
{
	uint32_t exponent = bits >> mant, fraction = bits & ((1u << mant) - 1), wide;
	float x;
	if (exponent == 0) {
		/* Exact: the fraction is an integer, the factor a power of two. */
		x = (float)fraction * ldexpf(1.0f, 1 - bias - (int)mant);
		return sign ? -x : x;
	}
	if (exponent == 2 * (uint32_t)bias + 1)
		wide = 255u << 23 | fraction << (23 - mant);
	else
		wide = (exponent + 127 - (uint32_t)bias) << 23 | fraction << (23 - mant);
	wide |= sign << 31;
	memcpy(&x, &wide, sizeof x);
	return x;
}

static inline float from_half(uint16_t x)
{
	return widen(x >> 15, x & 0x7FFFu, 10, 15);
}

static inline float from_bfloat(uint16_t x)
{
	uint32_t wide = (uint32_t)x << 16;
	float y;
	memcpy(&y, &wide, sizeof y);
	return y;
}

static inline float from_e4m3(uint8_t x)
{
	uint32_t bits = x & 0x7Fu;
	if (bits == 0x7F)
		return x >> 7 ? -NAN : NAN;
	/* The highest exponent is an ordinary one. */
	float y = bits >= 0x78 ? 2 * widen(0, bits - 8, 3, 7) : widen(0, bits, 3, 7);
	return x >> 7 ? -y : y;
}

float lade__round_half(float x)
{
	return from_half(half_of(x));
}

/* ---- loads and stores --------------------------------------------------------------- */

/*
 * Types, how they are stored in memory, and what they are carried in: I int64_t, U uint64_t,
 * F float, D double.  A load gives the carrier's type, a store takes any of the four.
 */
#define TYPES(X)                 \
	X(b1, uint8_t, I)        \
	X(i1, int8_t, I)         \
	X(u1, uint8_t, I)        \
	X(i2, int16_t, I)        \
	X(u2, uint16_t, I)       \
	X(i4, int32_t, I)        \
	X(u4, uint32_t, I)       \
	X(i8, int64_t, I)        \
	X(u8, uint64_t, U)       \
	X(f2, uint16_t, F)       \
	X(f4, float, F)          \
	X(f8, double, D)         \
	X(bf16, uint16_t, F)     \
	X(e4m3, uint8_t, F)

typedef int64_t carrier_I;
typedef uint64_t carrier_U;
typedef float carrier_F;
typedef double carrier_D;

#define LOAD_b1(v) ((v) != 0)
#define LOAD_i1(v) (v)
#define LOAD_u1(v) (v)
#define LOAD_i2(v) (v)
#define LOAD_u2(v) (v)
#define LOAD_i4(v) (v)
#define LOAD_u4(v) (v)
#define LOAD_i8(v) (v)
#define LOAD_u8(v) (v)
#define LOAD_f2(v) from_half(v)
#define LOAD_f4(v) (v)
#define LOAD_f8(v) (v)
#define LOAD_bf16(v) from_bfloat(v)
#define LOAD_e4m3(v) from_e4m3(v)

#define STORE_FN(name, memory, carrier, ok, value)                                 \
	static inline bool store_##name##_##carrier(memory *to, carrier_##carrier v) \
	{                                                                          \
		bool good = (ok);                                                  \
		*to = (memory)(value);                                             \
		return good;                                                       \
	}

/* Reals to integers: 'low' and 'high' are the nearest doubles outside the range, before the
 * fraction is dropped. */
#define STORE_INTEGER(name, memory, wide, low, high)                                             \
	STORE_FN(name, memory, I, true, v)                                                       \
	STORE_FN(name, memory, U, true, v)                                                       \
	STORE_FN(name, memory, F, (double)v > (low) && (double)v < (high), good ? (wide)v : 0)   \
	STORE_FN(name, memory, D, v > (low) && v < (high), good ? (wide)v : 0)

STORE_INTEGER(i1, int8_t, int64_t, -129.0, 128.0)
STORE_INTEGER(u1, uint8_t, int64_t, -1.0, 256.0)
STORE_INTEGER(i2, int16_t, int64_t, -32769.0, 32768.0)
STORE_INTEGER(u2, uint16_t, int64_t, -1.0, 65536.0)
STORE_INTEGER(i4, int32_t, int64_t, -2147483649.0, 2147483648.0)
STORE_INTEGER(u4, uint32_t, int64_t, -1.0, 4294967296.0)
STORE_INTEGER(i8, int64_t, int64_t, -0x1.0000000000001p63, 0x1p63)
STORE_INTEGER(u8, uint64_t, uint64_t, -1.0, 0x1p64)

#define STORE_ALL(name, memory, from_integer, from_real) \
	STORE_FN(name, memory, I, true, from_integer)    \
	STORE_FN(name, memory, U, true, from_integer)    \
	STORE_FN(name, memory, F, true, from_real)       \
	STORE_FN(name, memory, D, true, from_real)

/* Integers go to small reals through float, as NumPy has it. */
STORE_ALL(b1, uint8_t, v != 0, v != 0)
STORE_ALL(f4, float, v, v)
STORE_ALL(f8, double, v, v)
STORE_ALL(f2, uint16_t, half_of((double)(float)v), half_of((double)v))
STORE_ALL(bf16, uint16_t, bfloat_of((double)(float)v), bfloat_of((double)v))
STORE_ALL(e4m3, uint8_t, e4m3_of((double)(float)v), e4m3_of((double)v))

/* ---- the loops ---------------------------------------------------------------------- */

#define CONVERT(from, from_memory, carrier, to, to_memory)                                     \
	static size_t from##_to_##to(const void *src, void *dst, size_t count)                 \
	{                                                                                      \
		const uint8_t *in = src;                                                       \
		uint8_t *out = dst;                                                            \
		size_t bad = count;                                                            \
		for (size_t i = 0; i < count; i++) {                                           \
			from_memory x;                                                         \
			to_memory y;                                                           \
			memcpy(&x, in + i * sizeof x, sizeof x);                               \
			if (!store_##to##_##carrier(&y, (carrier_##carrier)LOAD_##from(x)) &&  \
			    bad == count)                                                      \
				bad = i;                                                       \
			memcpy(out + i * sizeof y, &y, sizeof y);                              \
		}                                                                              \
		return bad;                                                                    \
	}

/* One list of targets a source: a macro cannot use itself. */
#define TO_ALL(from, memory, carrier)                  \
	CONVERT(from, memory, carrier, b1, uint8_t)    \
	CONVERT(from, memory, carrier, i1, int8_t)     \
	CONVERT(from, memory, carrier, u1, uint8_t)    \
	CONVERT(from, memory, carrier, i2, int16_t)    \
	CONVERT(from, memory, carrier, u2, uint16_t)   \
	CONVERT(from, memory, carrier, i4, int32_t)    \
	CONVERT(from, memory, carrier, u4, uint32_t)   \
	CONVERT(from, memory, carrier, i8, int64_t)    \
	CONVERT(from, memory, carrier, u8, uint64_t)   \
	CONVERT(from, memory, carrier, f2, uint16_t)   \
	CONVERT(from, memory, carrier, f4, float)      \
	CONVERT(from, memory, carrier, f8, double)     \
	CONVERT(from, memory, carrier, bf16, uint16_t) \
	CONVERT(from, memory, carrier, e4m3, uint8_t)

TYPES(TO_ALL)

/* Rows and columns in the order of the types' numbers, from 1. */
#define ROW(from, memory, carrier)                                                          \
	{from##_to_b1, from##_to_i1,   from##_to_u1,  from##_to_i2, from##_to_u2,           \
	 from##_to_i4, from##_to_u4,   from##_to_i8,  from##_to_u8, from##_to_f2,           \
	 from##_to_f4, from##_to_f8, from##_to_bf16, from##_to_e4m3},

static lade__convert_fn *const table[LADE_F8_E4M3][LADE_F8_E4M3] = {TYPES(ROW)};

#define COPY(bytes)                                                                  \
	static size_t copy_##bytes(const void *src, void *dst, size_t count)         \
	{                                                                            \
		if (src != dst && count)                                             \
			memcpy(dst, src, count * bytes);                             \
		return count;                                                        \
	}

COPY(1)
COPY(2)
COPY(4)
COPY(8)

lade__convert_fn *lade__convert(lade_dtype from, lade_dtype to)
{
	if (from != to)
		return table[from - 1][to - 1];
	switch (lade_dtype_size(from)) {
	case 1:
		return copy_1;
	case 2:
		return copy_2;
	case 4:
		return copy_4;
	default:
		return copy_8;
	}
}
