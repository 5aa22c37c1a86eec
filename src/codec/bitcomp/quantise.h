/*
 * quantise.h: floats of one size to integers and back (docs/format/bitcomp.md, section 5);
 * block_size.h includes it for elements of more than a byte.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * WIDE is what an element is reckoned in, FLOAT the float of that size, with F bits of mantissa and
 * BIAS_F; M and BIAS are the element's.  The same bits come out whatever a caller has set up for
 * floats: additions are of whole numbers, and exact, or put right; and no lane has a NaN, or a
 * denormal that matters.
 */
#if LOG == 3
#define WIDE uint64_t
#define SIGNED int64_t
#define FLOAT double
#define F 52
#else
#define WIDE uint32_t
#define SIGNED int32_t
#define FLOAT float
#define F 23
#endif
#define M (LOG == 1 ? 10 : F)
#define BIAS (LOG == 1 ? 15 : BIAS_F)
#define BIAS_F (LOG == 3 ? 1023 : 127)
#define ONE ((WIDE)1 << M)
#define SIGN ((WIDE)1 << (BITS - 1))
#define FAR ((WIDE)(F + BIAS_F) << F) /* the float 2^F: its last bit says 1 */
#define wide NAME(wide)
#define swide NAME(swide)
#define floats NAME(floats)

typedef WIDE wide __attribute__((vector_size(VEC)));
typedef SIGNED swide __attribute__((vector_size(VEC)));
typedef FLOAT floats __attribute__((vector_size(VEC)));

/* A step, and what follows from it: from 'limit' on, the bits of 2^L, bits are kept, as 'kept'
 * less. */
typedef struct NAME(scale) {
	bool is_signed;
	int exponent;
	WIDE limit, kept;
} NAME(scale);

INLINE NAME(scale) NAME(scale_of)(bool is_signed, int exponent)
{
	int least = exponent + M < BIAS ? exponent + M : BIAS;
	WIDE limit = (WIDE)(least + BIAS) << M;
	return (NAME(scale)){is_signed, exponent, limit, limit - ONE - 1};
}

/* 'a' where 'mask' has ones, 'b' where it has none. */
INLINE wide NAME(select)(wide mask, wide a, wide b)
{
	return b ^ ((a ^ b) & mask);
}

/* All ones where 'v' is below 0 as a signed number. */
INLINE wide NAME(below_0)(wide v)
{
	return (wide)((swide)v >> (8 * sizeof(WIDE) - 1));
}

INLINE wide NAME(negated)(wide v, wide negative)
{
	return (v ^ negative) - negative;
}

/* The floats that say 'q', at most 2^F; 0 may have a sign. */
INLINE wide NAME(float_of)(wide q)
{
	return (wide)((floats)(q + FAR) - (FLOAT)((WIDE)1 << F));
}

/* The integers next to floats that are from 0 to 2^F; even ones where two are as near. */
INLINE wide NAME(nearest)(wide a)
{
	const FLOAT far = (FLOAT)((WIDE)1 << F);
#ifdef ROUND
	return (wide)((floats)ROUND(LOG, a) + far) - FAR;
#else
	/* The sum is rounded to one of the two. */
	floats sum = (floats)a + far, more = (floats)a - (sum - far);
	wide q = (wide)sum - FAR, odd = 0 - (q & 1);
	q -= (wide)(more > (FLOAT)0.5) | ((wide)(more == (FLOAT)0.5) & odd);
	return q + ((wide)(more < (FLOAT)-0.5) | ((wide)(more == (FLOAT)-0.5) & odd));
#endif
}

/* 'deep': denormals may be half a step or more. */
INLINE wide NAME(quantised)(NAME(scale) s, bool deep, wide v)
{
	wide sign = v & SIGN, bits = v ^ sign;
	wide small = NAME(below_0)(bits - s.limit);
	/* The float |value| / 2^E, less than 1/2 or negative where it would be a denormal. */
	wide a = (bits << (F - M)) + ((WIDE)(BIAS_F - BIAS - s.exponent) << F);
	if (deep) {
		wide denormal = NAME(below_0)(bits - ONE);
		wide b = NAME(float_of)(bits & denormal) & (~(WIDE)0 >> 1);
		b += (WIDE)(1 - BIAS - M - s.exponent) << F;
		a = NAME(select)(denormal, b, a);
	}
	wide q = NAME(nearest)(a & small & ~NAME(below_0)(a));
	q = NAME(select)(small, q, bits - s.kept);
	return s.is_signed ? NAME(negated)(q, 0 - (sign >> (BITS - 1))) : q | sign;
}

INLINE wide NAME(restored)(NAME(scale) s, wide v)
{
	/* Below 'whole' the float has exponent 0; where that is 1, for 0 alone. */
	const int least = s.exponent + BIAS;
	const WIDE whole = least > 0 ? 1 : (WIDE)1 << (1 - least);
	const int up = least > 0 ? 0 : least + M - 1;
	wide sign = v & SIGN, q = v ^ sign;
	if (s.is_signed)
		q = NAME(negated)(v, 0 - (sign >> (BITS - 1))) & (SIGN | (SIGN - 1));
	/* Of all that is above 2^m; signed, 2^(bits - 1) is as well. */
	wide kept = NAME(below_0)(ONE - q);
	wide bits = NAME(float_of)(q & ~kept);
	bits = (bits >> (F - M)) + ((WIDE)(least - BIAS_F) << M);
	bits = NAME(select)(NAME(below_0)(q - whole), q << up, bits);
	bits = NAME(select)(kept, q + s.kept, bits);
	return (bits & (SIGN - 1)) | sign;
}

/* What a loop does. */
enum { NAME(TO), NAME(TO_DEEP), NAME(BACK) };

INLINE wide NAME(one_wide)(NAME(scale) s, unsigned what, wide v)
{
	return what == NAME(BACK) ? NAME(restored)(s, v)
	                          : NAME(quantised)(s, what == NAME(TO_DEEP), v);
}

INLINE void NAME(one_vector)(NAME(scale) s, unsigned what, const uint8_t *src, uint8_t *dst)
{
	const WIDE low = SIGN | (SIGN - 1);
	wide v;
	memcpy(&v, src, VEC);
	if (LOG == 1)
		v = (NAME(one_wide)(s, what, v & low) & low) |
		    NAME(one_wide)(s, what, v >> 8 * sizeof(WIDE) / 2) << 8 * sizeof(WIDE) / 2;
	else
		v = NAME(one_wide)(s, what, v);
	memcpy(dst, &v, VEC);
}

INLINE void NAME(all_vectors)(NAME(scale) s, unsigned what, const uint8_t *src, uint8_t *dst,
                              size_t size)
{
	uint8_t last[VEC] = {0};
	size_t i = 0;
	for (; size - i >= VEC; i += VEC)
		NAME(one_vector)(s, what, src + i, dst + i);
	if (size > i) {
		memcpy(last, src + i, size - i);
		NAME(one_vector)(s, what, last, last);
		memcpy(dst + i, last, size - i);
	}
}

static TARGET void NAME(quantise)(unsigned quant, int exponent, const uint8_t *src, uint8_t *dst,
                                  size_t count)
{
	NAME(scale) s = NAME(scale_of)(quant == 1, exponent);
	if (exponent < 2 - BIAS)
		NAME(all_vectors)(s, NAME(TO_DEEP), src, dst, count * SIZE);
	else
		NAME(all_vectors)(s, NAME(TO), src, dst, count * SIZE);
}

static TARGET void NAME(restore)(unsigned quant, int exponent, uint8_t *data, size_t count)
{
	NAME(scale) s = NAME(scale_of)(quant == 1, exponent);
	NAME(all_vectors)(s, NAME(BACK), data, data, count * SIZE);
}

#undef WIDE
#undef SIGNED
#undef FLOAT
#undef F
#undef M
#undef BIAS
#undef BIAS_F
#undef ONE
#undef SIGN
#undef wide
#undef swide
#undef floats
#undef FAR
