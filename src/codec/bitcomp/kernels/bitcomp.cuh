/*
 * bitcomp.cuh: what the kernels of bitcomp share (docs/format/bitcomp.md): the header, a lane's 16
 * bytes of elements, quantisation.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_BITCOMP_CUH
#define LADE_CUDA_BITCOMP_CUH

#include "codec/bitcomp/args.h"
#include "codec/bitcomp/layout.h"
#include "codec/bitcomp/kernels/packed.cuh"
#include "gpu/kernels/stage.cuh"

/* ---- the header (section 1) -------------------------------------------------------------- */

struct lade_bitcomp_head {
	uint32_t log, quant, stored;
	int32_t exponent;
	uint32_t size; /* decoded */
	uint32_t blocks;
};

/* A float type of the quantisation, by log2 of its size. */
LADE_DEVICE int32_t lade_bitcomp_bias(uint32_t log)
{
	return log == 1 ? 15 : log == 2 ? 127 : 1023;
}

LADE_DEVICE int32_t lade_bitcomp_mantissa(uint32_t log)
{
	return log == 1 ? 10 : log == 2 ? 23 : 52;
}

/* Reads the header's four words, and checks them as section 4 requires. */
LADE_DEVICE uint32_t lade_bitcomp_head_of(uint32_t a, uint32_t b, uint32_t low, uint32_t high,
                                          lade_bitcomp_head *h)
{
	uint32_t kind = a >> 16;
	h->log = kind & LADE_BITCOMP_SIZE_LOG;
	h->stored = kind & LADE_BITCOMP_STORED;
	h->quant = kind >> LADE_BITCOMP_QUANT & 3;
	h->exponent = (int16_t)b;
	int32_t bias = lade_bitcomp_bias(h->log);
	bool fits = h->quant == 0
	                    ? h->exponent == 0
	                    : h->quant < 3 && h->log > 0 && !h->stored && h->exponent <= bias &&
	                              h->exponent >= 2 - bias - lade_bitcomp_mantissa(h->log);
	if ((a & 0xFFFF) != (LADE_BITCOMP_MAGIC | LADE_BITCOMP_VERSION << 8) ||
	    kind & ~(uint32_t)LADE_BITCOMP_KIND || b >> 16 || !fits || high > 4 ||
	    (high == 4 && low))
		return LADE_GPU_CORRUPT;
	/* No destination of a batch has room for more than that. */
	if (high || low > LADE_CHUNK_MAX)
		return LADE_GPU_NOSPACE;
	h->size = low;
	h->blocks = (low + LADE_BITCOMP_BLOCK - 1) / LADE_BITCOMP_BLOCK;
	return LADE_GPU_OK;
}

LADE_DEVICE uint32_t lade_bitcomp_up(uint32_t size)
{
	return (size + LADE_BITCOMP_UNIT - 1) & ~(uint32_t)(LADE_BITCOMP_UNIT - 1);
}

/* Where the first sub-block begins. */
LADE_DEVICE uint32_t lade_bitcomp_first(uint32_t blocks)
{
	return LADE_BITCOMP_HEADER + lade_bitcomp_up(4 * blocks);
}

/* ---- quantisation (section 5) ------------------------------------------------------------ */

struct lade_bitcomp_scale {
	int32_t E, b, m;
	uint64_t top, limit; /* the sign's bit; bits(L) */
	bool is_signed;
};

LADE_DEVICE lade_bitcomp_scale lade_bitcomp_scale_of(uint32_t quant, uint32_t log, int32_t exponent)
{
	lade_bitcomp_scale s;
	s.E = exponent;
	s.b = lade_bitcomp_bias(log);
	s.m = lade_bitcomp_mantissa(log);
	s.top = (uint64_t)1 << ((8 << log) - 1);
	int32_t L = s.E + s.m < s.b ? s.E + s.m : s.b;
	s.limit = (uint64_t)(uint32_t)(L + s.b) << s.m;
	s.is_signed = quant == 1;
	return s;
}

LADE_DEVICE uint64_t lade_bitcomp_quantised(const lade_bitcomp_scale &s, uint64_t v)
{
	uint64_t M = v & (s.top - 1), one = (uint64_t)1 << s.m, q = M - s.limit + one + 1;
	if (M < s.limit) {
		int32_t exponent = (int32_t)(M >> s.m);
		uint64_t fraction = exponent ? (M & (one - 1)) | one : M;
		int32_t shift = s.E - ((exponent ? exponent : 1) - s.b - s.m);
		q = 0;
		if (shift <= s.m + 1) {
			uint64_t half = ((uint64_t)1 << (shift - 1)) - 1;
			q = (fraction + half + (fraction >> shift & 1)) >> shift;
		}
	}
	if (s.is_signed)
		return (v & s.top ? 0 - q : q) & (s.top | (s.top - 1));
	return v & s.top ? q | s.top : q;
}

LADE_DEVICE uint64_t lade_bitcomp_restored(const lade_bitcomp_scale &s, uint64_t c)
{
	uint64_t q = c & (s.top - 1), one = (uint64_t)1 << s.m, M = 0, sign = c & s.top;
	if (s.is_signed && sign)
		q = (0 - c) & (s.top | (s.top - 1));
	if (q > one) {
		M = q - one - 1 + s.limit;
	} else if (q == 0) {
		sign = s.is_signed ? 0 : sign;
	} else {
		int32_t high = 63 - __clzll((long long)q), exponent = high + s.E + s.b;
		M = exponent > 0 ? ((uint64_t)(uint32_t)exponent << s.m) +
		                           ((q << (s.m - high)) & (one - 1))
		                 : q << (s.E + s.b + s.m - 1);
	}
	return (M & (s.top - 1)) | sign;
}

/* Element 'i' at any address, and back. */
LADE_DEVICE uint64_t lade_bitcomp_element(const uint8_t *p, uint32_t log)
{
	uint64_t v = 0;
	if (log == 3 && !((uintptr_t)p & 7))
		return *(const uint64_t *)p;
	if (log == 2 && !((uintptr_t)p & 3))
		return *(const uint32_t *)p;
	if (log == 1 && !((uintptr_t)p & 1))
		return *(const uint16_t *)p;
	for (uint32_t k = 0; k < 1u << log; k++)
		v |= (uint64_t)p[k] << 8 * k;
	return v;
}

LADE_DEVICE void lade_bitcomp_element_put(uint8_t *p, uint32_t log, uint64_t v)
{
	if (log == 3 && !((uintptr_t)p & 7))
		*(uint64_t *)p = v;
	else if (log == 2 && !((uintptr_t)p & 3))
		*(uint32_t *)p = (uint32_t)v;
	else if (log == 1 && !((uintptr_t)p & 1))
		*(uint16_t *)p = (uint16_t)v;
	else
		for (uint32_t k = 0; k < 1u << log; k++)
			p[k] = (uint8_t)(v >> 8 * k);
}

/* Converts 'count' integers at any address to floats in place, or with TO floats to integers; by a
 * warp. */
template <bool TO>
LADE_DEVICE void lade_bitcomp_rescale(uint8_t *p, uint32_t quant, uint32_t log, int32_t exponent,
                                      uint32_t count, uint32_t lane)
{
	lade_bitcomp_scale s = lade_bitcomp_scale_of(quant, log, exponent);
#pragma unroll 1
	for (uint32_t i = lane; i < count; i += 32) {
		uint64_t v = lade_bitcomp_element(p + (i << log), log);
		v = TO ? lade_bitcomp_quantised(s, v) : lade_bitcomp_restored(s, v);
		lade_bitcomp_element_put(p + (i << log), log, v);
	}
}

#endif
