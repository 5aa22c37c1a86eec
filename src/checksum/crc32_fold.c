/*
 * crc32_fold.c: any 32-bit CRC by carry-less multiplication (PCLMULQDQ, and VPCLMULQDQ on 64-byte
 * registers), and CRC32C by its own instruction.
 *
 * A block of 16 bytes that stands D bits before another one may be multiplied by x^D modulo the
 * polynomial and added to it: the remainder stays the same.  A block is two halves of 64 bits,
 * A x^64 + B; its multiple is A (x^(D+64) mod P) + B (x^D mod P), two products of at most
 * 64 + 32 bits.  What is left in the end, 16 bytes and a tail, goes through the tables.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "checksum/checksum.h"

/* x^n modulo the polynomial (x^32 is implied in 'poly'), the bit of x^i at place i. */
static uint32_t power_of_x(uint32_t poly, unsigned n)
{
	uint32_t r = 1;
	for (; n > 0; n--)
		r = (r << 1) ^ (r >> 31 ? poly : 0);
	return r;
}

static void factors(uint64_t k[2], uint32_t poly, bool reflected, unsigned distance)
{
	if (!reflected) {
		/* After its bytes are reversed, a block's first half is its high one. */
		k[1] = power_of_x(poly, distance + 64);
		k[0] = power_of_x(poly, distance);
		return;
	}
	/*
	 * The first half is the low one, and bit i is x^(63-i).  A product of two such has bit i
	 * for x^(126-i), but a block's is x^(127-i): the product counts x times as much, so that
	 * the factors are made for one less.
	 */
	k[0] = (uint64_t)lade__reverse_bits(power_of_x(poly, distance + 63)) << 32;
	k[1] = (uint64_t)lade__reverse_bits(power_of_x(poly, distance - 1)) << 32;
}

void lade__crc32_fold_init(lade__crc32_fold *fold, uint32_t poly, bool reflected)
{
	fold->reflected = reflected;
	factors(fold->k2048, poly, reflected, 2048);
	factors(fold->k512, poly, reflected, 512);
	factors(fold->k128, poly, reflected, 128);
}

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET_SSE __attribute__((target("sse4.2,ssse3,pclmul")))
#define TARGET_512 __attribute__((target("avx512f,avx512bw,avx512vl,vpclmulqdq,pclmul")))

/* Reverses the 16 bytes of a block whose CRC is not reflected, so that bit i is x^i. */
#define REVERSE_BYTES _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define KEEP_BYTES _mm_set_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)

TARGET_SSE static inline __m128i fold_128(__m128i x, __m128i k, __m128i next)
{
	__m128i low = _mm_clmulepi64_si128(x, k, 0x00);
	__m128i high = _mm_clmulepi64_si128(x, k, 0x11);
	return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

TARGET_SSE static inline __m128i load_128(const uint8_t *p, __m128i order)
{
	return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)p), order);
}

/* size >= 64 */
TARGET_SSE static size_t run_sse(const lade__crc32_fold *fold, uint32_t reg, const uint8_t *data,
                                 size_t size, uint8_t rest[16])
{
	__m128i order = fold->reflected ? KEEP_BYTES : REVERSE_BYTES;
	__m128i k512 = _mm_loadu_si128((const __m128i *)fold->k512);
	__m128i k128 = _mm_loadu_si128((const __m128i *)fold->k128);
	const uint8_t *p = data;
	const uint8_t *end = data + size / 16 * 16;

	__m128i first = _mm_loadu_si128((const __m128i *)p);
	first = _mm_xor_si128(first, _mm_cvtsi32_si128((int)reg));
	__m128i x0 = _mm_shuffle_epi8(first, order);
	__m128i x1 = load_128(p + 16, order);
	__m128i x2 = load_128(p + 32, order);
	__m128i x3 = load_128(p + 48, order);
	p += 64;
	for (; end - p >= 64; p += 64) {
		x0 = fold_128(x0, k512, load_128(p, order));
		x1 = fold_128(x1, k512, load_128(p + 16, order));
		x2 = fold_128(x2, k512, load_128(p + 32, order));
		x3 = fold_128(x3, k512, load_128(p + 48, order));
	}
	x1 = fold_128(x0, k128, x1);
	x2 = fold_128(x1, k128, x2);
	x3 = fold_128(x2, k128, x3);
	for (; p < end; p += 16)
		x3 = fold_128(x3, k128, load_128(p, order));
	_mm_storeu_si128((__m128i *)rest, _mm_shuffle_epi8(x3, order));
	return (size_t)(end - data);
}

TARGET_512 static inline __m512i fold_512(__m512i x, __m512i k, __m512i next)
{
	__m512i low = _mm512_clmulepi64_epi128(x, k, 0x00);
	__m512i high = _mm512_clmulepi64_epi128(x, k, 0x11);
	return _mm512_ternarylogic_epi64(low, high, next, 0x96);
}

TARGET_512 static inline __m512i load_512(const uint8_t *p, __m512i order)
{
	return _mm512_shuffle_epi8(_mm512_loadu_si512(p), order);
}

/* size >= 256 */
TARGET_512 static size_t run_512(const lade__crc32_fold *fold, uint32_t reg, const uint8_t *data,
                                 size_t size, uint8_t rest[16])
{
	__m128i order_128 = fold->reflected ? KEEP_BYTES : REVERSE_BYTES;
	__m512i order = _mm512_broadcast_i32x4(order_128);
	__m512i k2048 = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)fold->k2048));
	__m512i k512 = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)fold->k512));
	__m128i k128 = _mm_loadu_si128((const __m128i *)fold->k128);
	const uint8_t *p = data;
	const uint8_t *end = data + size / 16 * 16;

	__m512i first = _mm512_loadu_si512(p);
	first = _mm512_xor_si512(first, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)reg)));
	__m512i z0 = _mm512_shuffle_epi8(first, order);
	__m512i z1 = load_512(p + 64, order);
	__m512i z2 = load_512(p + 128, order);
	__m512i z3 = load_512(p + 192, order);
	p += 256;
	for (; end - p >= 256; p += 256) {
		z0 = fold_512(z0, k2048, load_512(p, order));
		z1 = fold_512(z1, k2048, load_512(p + 64, order));
		z2 = fold_512(z2, k2048, load_512(p + 128, order));
		z3 = fold_512(z3, k2048, load_512(p + 192, order));
	}
	z1 = fold_512(z0, k512, z1);
	z2 = fold_512(z1, k512, z2);
	z3 = fold_512(z2, k512, z3);
	for (; end - p >= 64; p += 64)
		z3 = fold_512(z3, k512, load_512(p, order));

	__m128i x = _mm512_castsi512_si128(z3);
	x = fold_128(x, k128, _mm512_extracti32x4_epi32(z3, 1));
	x = fold_128(x, k128, _mm512_extracti32x4_epi32(z3, 2));
	x = fold_128(x, k128, _mm512_extracti32x4_epi32(z3, 3));
	for (; p < end; p += 16)
		x = fold_128(x, k128, load_128(p, order_128));
	_mm_storeu_si128((__m128i *)rest, _mm_shuffle_epi8(x, order_128));
	return (size_t)(end - data);
}

size_t lade__crc32_fold_run(const lade__crc32_fold *fold, lade_cpu cpu, uint32_t reg,
                            const uint8_t *data, size_t size, uint8_t rest[16])
{
	if (cpu < LADE_CPU_SSE42 || size < LADE__CRC32_FOLD_MIN)
		return 0;
	/* LADE_CPU_AVX512 does not promise VPCLMULQDQ. */
	if (cpu >= LADE_CPU_AVX512 && size >= 256 && __builtin_cpu_supports("vpclmulqdq"))
		return run_512(fold, reg, data, size, rest);
	return run_sse(fold, reg, data, size, rest);
}

__attribute__((target("sse4.2"))) uint32_t lade__crc32c_sse42(uint32_t reg, const uint8_t *data,
                                                              size_t size)
{
	uint64_t r = reg;
	for (; size >= 8; data += 8, size -= 8) {
		uint64_t v;
		__builtin_memcpy(&v, data, 8);
		r = _mm_crc32_u64(r, v);
	}
	reg = (uint32_t)r;
	if (size & 4) {
		uint32_t v;
		__builtin_memcpy(&v, data, 4);
		reg = _mm_crc32_u32(reg, v);
		data += 4;
	}
	if (size & 2) {
		uint16_t v;
		__builtin_memcpy(&v, data, 2);
		reg = _mm_crc32_u16(reg, v);
		data += 2;
	}
	if (size & 1)
		reg = _mm_crc32_u8(reg, *data);
	return reg;
}

#else

size_t lade__crc32_fold_run(const lade__crc32_fold *fold, lade_cpu cpu, uint32_t reg,
                            const uint8_t *data, size_t size, uint8_t rest[16])
{
	(void)fold, (void)cpu, (void)reg, (void)data, (void)size, (void)rest;
	return 0;
}

uint32_t lade__crc32c_sse42(uint32_t reg, const uint8_t *data, size_t size)
{
	(void)data, (void)size;
	return reg;
}

#endif
