/*
 * quantise.c: floats to integers of one size and back (docs/format/bitcomp.md, section 5).  In
 * integers throughout, so that all machines give the same bits.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/bitcomp/bitcomp.h"

#include <string.h>

/* A type's bits, and the quantisation's numbers, named as in the format. */
typedef struct scale {
	unsigned bits, m;
	int b, E, L;
	uint64_t sign, limit; /* the sign's bit; bits(L) */
	bool is_signed;
} scale;

static int bias_of(unsigned log)
{
	return log == 1 ? 15 : log == 2 ? 127 : 1023;
}

static unsigned mantissa_of(unsigned log)
{
	return log == 1 ? 10 : log == 2 ? 23 : 52;
}

lade__bitcomp_exponents lade__bitcomp_exponents_of(unsigned log)
{
	int b = bias_of(log);
	return (lade__bitcomp_exponents){2 - b - (int)mantissa_of(log), b};
}

static inline scale scale_of(unsigned quant, unsigned log, int exponent)
{
	scale s = {.bits = 8u << log, .m = mantissa_of(log), .b = bias_of(log), .E = exponent};
	s.L = s.E + (int)s.m < s.b ? s.E + (int)s.m : s.b;
	s.sign = (uint64_t)1 << (s.bits - 1);
	s.limit = (uint64_t)(s.L + s.b) << s.m;
	s.is_signed = quant == 1;
	return s;
}

static inline uint64_t quantised(const scale *s, uint64_t v)
{
	uint64_t M = v & (s->sign - 1), q, one = (uint64_t)1 << s->m;
	bool negative = v & s->sign;
	if (M >= s->limit) {
		q = M - s->limit + one + 1;
	} else {
		int exponent = (int)(M >> s->m);
		uint64_t fraction = exponent ? (M & (one - 1)) | one : M;
		/* The fraction's last bit is 2^(exponent - b - m); M < bits(L) makes it less than
		 * the step. */
		int shift = s->E - ((exponent ? exponent : 1) - s->b - (int)s->m);
		if (shift > (int)s->m + 1) {
			q = 0;
		} else {
			uint64_t half = ((uint64_t)1 << (shift - 1)) - 1;
			q = (fraction + half + (fraction >> shift & 1)) >> shift;
		}
	}
	if (s->is_signed)
		return (negative ? 0 - q : q) & (s->sign | (s->sign - 1));
	return negative ? q | s->sign : q;
}

static inline uint64_t restored(const scale *s, uint64_t c)
{
	uint64_t q = c & (s->sign - 1), one = (uint64_t)1 << s->m, M;
	bool negative = c & s->sign;
	if (s->is_signed && negative)
		q = (0 - c) & (s->sign | (s->sign - 1));
	if (q > one) {
		M = q - one - 1 + s->limit;
	} else if (q == 0) {
		M = 0;
		negative = negative && !s->is_signed;
	} else {
		int high = 63 - __builtin_clzll(q), exponent = high + s->E + s->b;
		if (exponent > 0)
			M = ((uint64_t)exponent << s->m) + ((q << ((int)s->m - high)) & (one - 1));
		else
			M = q << (s->E + s->b + (int)s->m - 1);
	}
	return (M & (s->sign - 1)) | (negative ? s->sign : 0);
}

#define EACH(function) \
	scale s = scale_of(quant, log, exponent); \
	size_t size = (size_t)1 << log; \
	for (size_t i = 0; i < count; i++) { \
		uint64_t v = 0; \
		memcpy(&v, data + i * size, size); \
		v = function(&s, v); \
		memcpy(data + i * size, &v, size); \
	}

void lade__bitcomp_quantise(unsigned quant, unsigned log, int exponent, uint8_t *data, size_t count)
{
	EACH(quantised)
}

void lade__bitcomp_restore(unsigned quant, unsigned log, int exponent, uint8_t *data, size_t count)
{
	EACH(restored)
}
