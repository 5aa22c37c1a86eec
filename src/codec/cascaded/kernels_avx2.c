/*
 * kernels_avx2.c: the kernels of kernels.h for vectors of 32 bytes.
 *
 * Entries come out of two loads of 16 bytes, one a half: a shuffle brings to each lane of 32 or 64
 * bits the bytes that its entry is in, and a shift by the lane's own number of bits brings it to
 * the lowest bits.  As 8 entries of w bits are w bytes, neither changes from step to step.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,bmi,bmi2")))
#include "codec/cascaded/kernels_simple.h"

/* How to take one entry a lane. */
typedef struct steps {
	__m256i bytes, shift, mask;
	size_t low, high; /* where the two loads are */
} steps;

/* Lanes of 'lane' bits, 32 or 64; entries from the 'first' on. */
static TARGET steps steps_of(unsigned lane, unsigned first, unsigned width)
{
	uint8_t bytes[32];
	uint32_t shift32[8];
	uint64_t shift64[4];
	unsigned lanes = 128 / lane;
	size_t low = first * width / 8, high = (first + lanes) * width / 8;
	for (unsigned l = 0; l < 2 * lanes; l++) {
		size_t bit = (first + l) * width - 8 * (l < lanes ? low : high);
		for (unsigned k = 0; k < lane / 8; k++)
			bytes[lane / 8 * l + k] = (uint8_t)(bit / 8 + k);
		if (lane == 64)
			shift64[l] = bit % 8;
		else
			shift32[l] = bit % 8;
	}
	const void *shift = lane == 64 ? (const void *)shift64 : (const void *)shift32;
	return (steps){_mm256_loadu_si256((const __m256i *)(const void *)bytes),
	               _mm256_loadu_si256((const __m256i *)shift),
	               lane == 64 ? _mm256_set1_epi64x((long long)mask_of(width))
	                          : _mm256_set1_epi32((int)mask_of(width)),
	               low, high};
}

static inline TARGET __m256i load(const uint8_t *src, const steps *s)
{
	__m128i low = _mm_loadu_si128((const __m128i *)(const void *)(src + s->low));
	__m128i high = _mm_loadu_si128((const __m128i *)(const void *)(src + s->high));
	return _mm256_shuffle_epi8(_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1),
	                           s->bytes);
}

/* 8 entries of at most 25 bits (7 before them). */
static inline TARGET __m256i take8(const uint8_t *src, const steps *s)
{
	return _mm256_and_si256(_mm256_srlv_epi32(load(src, s), s->shift), s->mask);
}

/* 4 entries of at most 57 bits. */
static inline TARGET __m256i take4(const uint8_t *src, const steps *s)
{
	return _mm256_and_si256(_mm256_srlv_epi64(load(src, s), s->shift), s->mask);
}

/* How many entries whole steps of 8 * 'takes' entries give.  No load of theirs reaches further than
 * 16 bytes behind the last 8 entries' begin and as many bytes as these have. */
static inline TARGET size_t whole(const uint8_t *src, const uint8_t *end, size_t takes,
                                  unsigned width, size_t count)
{
	size_t have = (size_t)(end - src), want = takes * width + 16;
	if (have < want)
		return 0;
	size_t by_bytes = (have - want) / (takes * width) + 1, by_count = count / (takes * 8);
	return (by_bytes < by_count ? by_bytes : by_count) * takes * 8;
}

#define STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), (v))

static TARGET void unpack8(const uint8_t *src, const uint8_t *end, void *dst, size_t count,
                           unsigned width, uint64_t base)
{
	any8 *to = dst;
	size_t i = 0;
	if (!width) {
		fill8(to, count, base);
		return;
	}
	steps s = steps_of(32, 0, width);
	__m256i add = _mm256_set1_epi8((char)base);
	__m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
	const uint8_t *p = src;
	for (size_t n = whole(src, end, 4, width, count); i < n; i += 32, p += 4 * width) {
		__m256i a = _mm256_packus_epi32(take8(p, &s), take8(p + width, &s));
		__m256i b = _mm256_packus_epi32(take8(p + 2 * width, &s), take8(p + 3 * width, &s));
		__m256i v = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(a, b), order);
		STORE(to + i, _mm256_add_epi8(v, add));
	}
	unpack_from8((packed){src, end, width, base}, to, i, count);
}

static TARGET void unpack16(const uint8_t *src, const uint8_t *end, void *dst, size_t count,
                            unsigned width, uint64_t base)
{
	any16 *to = dst;
	size_t i = 0;
	if (!width) {
		fill16(to, count, base);
		return;
	}
	steps s = steps_of(32, 0, width);
	__m256i add = _mm256_set1_epi16((short)base);
	const uint8_t *p = src;
	for (size_t n = whole(src, end, 2, width, count); i < n; i += 16, p += 2 * width) {
		__m256i v = _mm256_packus_epi32(take8(p, &s), take8(p + width, &s));
		v = _mm256_permute4x64_epi64(v, 0xD8);
		STORE(to + i, _mm256_add_epi16(v, add));
	}
	unpack_from16((packed){src, end, width, base}, to, i, count);
}

static TARGET void unpack32(const uint8_t *src, const uint8_t *end, void *dst, size_t count,
                            unsigned width, uint64_t base)
{
	any32 *to = dst;
	size_t i = 0;
	if (!width) {
		fill32(to, count, base);
		return;
	}
	__m256i add = _mm256_set1_epi32((int)base);
	const uint8_t *p = src;
	if (width <= 25) {
		steps s = steps_of(32, 0, width);
		for (size_t n = whole(src, end, 1, width, count); i < n; i += 8, p += width)
			STORE(to + i, _mm256_add_epi32(take8(p, &s), add));
	} else {
		steps s = steps_of(64, 0, width), t = steps_of(64, 4, width);
		__m256i even = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
		for (size_t n = whole(src, end, 1, width, count); i < n; i += 8, p += width) {
			__m256i a = _mm256_permutevar8x32_epi32(take4(p, &s), even);
			__m256i b = _mm256_permutevar8x32_epi32(take4(p, &t), even);
			STORE(to + i, _mm256_add_epi32(_mm256_blend_epi32(a, b, 0xF0), add));
		}
	}
	unpack_from32((packed){src, end, width, base}, to, i, count);
}
static TARGET void unpack64(const uint8_t *src, const uint8_t *end, void *dst, size_t count,
                            unsigned width, uint64_t base)
{
	any64 *to = dst;
	size_t i = 0;
	if (!width) {
		fill64(to, count, base);
		return;
	}
	if (width <= 57) {
		__m256i add = _mm256_set1_epi64x((long long)base);
		steps s = steps_of(64, 0, width), t = steps_of(64, 4, width);
		const uint8_t *p = src;
		for (size_t n = whole(src, end, 1, width, count); i < n; i += 8, p += width) {
			STORE(to + i, _mm256_add_epi64(take4(p, &s), add));
			STORE(to + i + 4, _mm256_add_epi64(take4(p, &t), add));
		}
	}
	unpack_from64((packed){src, end, width, base}, to, i, count);
}

const lade__cascaded_kernels lade__cascaded_avx2 = CASCADED_KERNELS;
#endif
