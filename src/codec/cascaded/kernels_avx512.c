/*
 * kernels_avx512.c: the kernels of kernels.h for vectors of 64 bytes (F, BW, DQ, VL, VBMI).
 *
 * Entries come out of a vector of bytes in two steps: a permutation brings to each lane of 32 or
 * 64 bits the bytes that its entries are in, and shifts by the lane's own number of bits bring them
 * to its lowest bits; multishift does this for several entries of a lane.  As 8 entries of w bits
 * are w bytes, neither permutation nor shifts change from step to step.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi,bmi2")))
#include "codec/cascaded/kernels_simple.h"

/* Up to 64 bytes from 'p' on; zeros for those at or behind 'end'. */
static inline TARGET __m512i load(const uint8_t *p, const uint8_t *end)
{
	size_t left = (size_t)(end - p);
	if (p >= end)
		return _mm512_setzero_si512();
	return left >= 64 ? _mm512_loadu_si512(p)
	                  : _mm512_maskz_loadu_epi8(((uint64_t)1 << left) - 1, p);
}

/* The steps of a width: the bytes of each lane, and its shifts. */
typedef struct steps {
	__m512i bytes, shift, mask;
} steps;

/* 'lane' bits a lane, which begins at the bit 'first' * its number. */
static TARGET steps steps_of(unsigned lane, unsigned first, uint64_t mask)
{
	uint8_t bytes[64];
	uint64_t shift[8];
	uint32_t shift32[16];
	for (unsigned l = 0; l < 512 / lane; l++) {
		for (unsigned k = 0; k < lane / 8; k++)
			bytes[lane / 8 * l + k] = (uint8_t)(l * first / 8 + k);
		if (lane == 64)
			shift[l] = l * first % 8;
		else
			shift32[l] = l * first % 8;
	}
	return (steps){_mm512_loadu_si512(bytes),
	               lane == 64 ? _mm512_loadu_si512(shift) : _mm512_loadu_si512(shift32),
	               lane == 64 ? _mm512_set1_epi64((long long)mask)
	                          : _mm512_set1_epi32((int)mask)};
}

/* The bits of a lane of 64 from which multishift takes bytes: entries of 'each' bytes, lanes that
 * begin every 'first' bits. */
static TARGET __m512i places_of(unsigned each, unsigned width, unsigned first)
{
	uint8_t place[64];
	for (unsigned k = 0; k < 64; k++) {
		unsigned l = k / 8, at = k % 8;
		unsigned bit = l * first % 8 + at / each * width + at % each * 8;
		place[k] = (uint8_t)(bit & 63);
	}
	return _mm512_loadu_si512(place);
}

/* 64 entries in a step, 8 a lane: 'width' bytes. */
static TARGET void unpack8(const uint8_t *src, const uint8_t *end, void *dst, size_t count,
                           unsigned width, uint64_t base)
{
	steps s = steps_of(64, 8 * width, 0);
	__m512i place = places_of(1, width, 8 * width);
	__m512i mask = _mm512_set1_epi8((char)mask_of(width)), add = _mm512_set1_epi8((char)base);
	any8 *to = dst;
	for (size_t i = 0; i < count; i += 64, src += 8 * width) {
		__m512i v = _mm512_permutexvar_epi8(s.bytes, load(src, end));
		v = _mm512_and_si512(_mm512_multishift_epi64_epi8(place, v), mask);
		v = _mm512_add_epi8(v, add);
		size_t left = count - i;
		if (left >= 64)
			_mm512_storeu_si512(to + i, v);
		else
			_mm512_mask_storeu_epi8(to + i, ((uint64_t)1 << left) - 1, v);
	}
}

/* 32 entries in a step, 4 a lane: 4 * 'width' bytes.  A lane of them begins at bit 0 or 4. */
static TARGET void unpack16(const uint8_t *src, const uint8_t *end, void *dst, size_t count,
                            unsigned width, uint64_t base)
{
	steps s = steps_of(64, 4 * width, 0);
	__m512i place = places_of(2, width, 4 * width);
	__m512i mask = _mm512_set1_epi16((short)mask_of(width));
	__m512i add = _mm512_set1_epi16((short)base);
	any16 *to = dst;
	for (size_t i = 0; i < count; i += 32, src += 4 * width) {
		__m512i v = _mm512_permutexvar_epi8(s.bytes, load(src, end));
		v = _mm512_and_si512(_mm512_multishift_epi64_epi8(place, v), mask);
		v = _mm512_add_epi16(v, add);
		size_t left = count - i;
		if (left >= 32)
			_mm512_storeu_si512(to + i, v);
		else
			_mm512_mask_storeu_epi16(to + i, (__mmask32)(((uint64_t)1 << left) - 1), v);
	}
}

/* 16 entries in a step, one a lane of 32 bits, of at most 25 bits (7 before them). */
static TARGET void unpack32_short(const uint8_t *src, const uint8_t *end, any32 *to, size_t count,
                                  unsigned width, uint64_t base)
{
	steps s = steps_of(32, width, mask_of(width));
	__m512i add = _mm512_set1_epi32((int)base);
	for (size_t i = 0; i < count; i += 16, src += 2 * width) {
		__m512i v = _mm512_permutexvar_epi8(s.bytes, load(src, end));
		v = _mm512_and_si512(_mm512_srlv_epi32(v, s.shift), s.mask);
		v = _mm512_add_epi32(v, add);
		size_t left = count - i;
		if (left >= 16)
			_mm512_storeu_si512(to + i, v);
		else
			_mm512_mask_storeu_epi32(to + i, (__mmask16)((1u << left) - 1), v);
	}
}

/* 8 entries in a step, one a lane of 64 bits, of at most 57 bits. */
static TARGET void unpack32(const uint8_t *src, const uint8_t *end, void *dst, size_t count,
                            unsigned width, uint64_t base)
{
	any32 *to = dst;
	if (width <= 25) {
		unpack32_short(src, end, to, count, width, base);
		return;
	}
	steps s = steps_of(64, width, mask_of(width));
	__m256i add = _mm256_set1_epi32((int)base);
	for (size_t i = 0; i < count; i += 8, src += width) {
		__m512i v = _mm512_permutexvar_epi8(s.bytes, load(src, end));
		v = _mm512_and_si512(_mm512_srlv_epi64(v, s.shift), s.mask);
		__m256i w = _mm256_add_epi32(_mm512_cvtepi64_epi32(v), add);
		size_t left = count - i;
		if (left >= 8)
			_mm256_storeu_si256((__m256i *)(void *)(to + i), w);
		else
			_mm256_mask_storeu_epi32(to + i, (__mmask8)((1u << left) - 1), w);
	}
}

/* 8 entries in a step.  Those of more than 57 bits reach into a ninth byte, which a second
 * permutation brings. */
static TARGET void unpack64(const uint8_t *src, const uint8_t *end, void *dst, size_t count,
                            unsigned width, uint64_t base)
{
	steps s = steps_of(64, width, mask_of(width));
	__m512i add = _mm512_set1_epi64((long long)base);
	__m512i ninth = _mm512_add_epi8(s.bytes, _mm512_set1_epi8(8));
	__m512i up = _mm512_sub_epi64(_mm512_set1_epi64(64), s.shift);
	any64 *to = dst;
	for (size_t i = 0; i < count; i += 8, src += width) {
		__m512i bytes = load(src, end);
		__m512i v = _mm512_permutexvar_epi8(s.bytes, bytes);
		v = _mm512_srlv_epi64(v, s.shift);
		if (width > 57) {
			__m512i high = _mm512_permutexvar_epi8(ninth, bytes);
			v = _mm512_or_si512(v, _mm512_sllv_epi64(high, up));
		}
		v = _mm512_add_epi64(_mm512_and_si512(v, s.mask), add);
		size_t left = count - i;
		if (left >= 8)
			_mm512_storeu_si512(to + i, v);
		else
			_mm512_mask_storeu_epi64(to + i, (__mmask8)((1u << left) - 1), v);
	}
}

const lade__cascaded_kernels lade__cascaded_avx512 = CASCADED_KERNELS;
#endif
