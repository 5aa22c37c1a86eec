/*
 * encode_avx2.h: the encoder's steps for AVX2: what units need, the bits of units of elements of 2
 * bytes and more, the ranks of bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/bitcomp/bitcomp.h"

#include <string.h>

#define LOAD_32(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define STORE_32(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)

/* ---- what units need ------------------------------------------------------------------------- */

/* The two inputs' even elements OR their odd ones, of 8 and 4 bytes, within 16 bytes, of which the
 * first input's come first; of 16 bytes, within all. */
INLINE_AVX2 __m256i or_8(__m256i a, __m256i b)
{
	return _mm256_or_si256(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
}

INLINE_AVX2 __m256i even_4(__m256i a, __m256i b)
{
	__m256 x = _mm256_castsi256_ps(a), y = _mm256_castsi256_ps(b);
	return _mm256_castps_si256(_mm256_shuffle_ps(x, y, 0x88));
}

INLINE_AVX2 __m256i odd_4(__m256i a, __m256i b)
{
	__m256 x = _mm256_castsi256_ps(a), y = _mm256_castsi256_ps(b);
	return _mm256_castps_si256(_mm256_shuffle_ps(x, y, 0xDD));
}

INLINE_AVX2 __m256i or_16(__m256i a, __m256i b)
{
	return _mm256_or_si256(_mm256_permute2x128_si256(a, b, 0x20),
	                       _mm256_permute2x128_si256(a, b, 0x31));
}

/* The bits that words need, and 'above' more for words that are not 0; a float has them as its
 * exponent.  The bit below the highest one is cleared, so that nothing is rounded up to more bits;
 * words with all 32 are negative ones then. */
INLINE_AVX2 __m256i bits_4(__m256i v, unsigned above)
{
	v = _mm256_andnot_si256(_mm256_srli_epi32(v, 1), v);
	v = _mm256_srli_epi32(_mm256_castps_si256(_mm256_cvtepi32_ps(v)), 23);
	v = _mm256_subs_epu16(v, _mm256_set1_epi32((int)(126 - above)));
	return _mm256_min_epi16(v, _mm256_set1_epi32((int)(32 + above)));
}

/* The bits of eight units from their ORs in 16 bytes, two in a vector. */
INLINE_AVX2 void needs_8(unsigned log, const __m256i a[4], uint8_t *need)
{
	__m256i b = or_8(a[0], a[1]), c = or_8(a[2], a[3]);
	__m256i low = even_4(b, c), high = odd_4(b, c), bits;
	if (log == 3) {
		bits = _mm256_max_epi16(bits_4(low, 0), bits_4(high, 32));
	} else {
		low = _mm256_or_si256(low, high);
		if (log < 2)
			low = _mm256_or_si256(low, _mm256_srli_epi32(low, 16));
		if (log < 1)
			low = _mm256_or_si256(low, _mm256_srli_epi32(low, 8));
		if (log < 2)
			low = _mm256_and_si256(low, _mm256_set1_epi32(log ? 0xFFFF : 0xFF));
		bits = bits_4(low, 0);
	}
	/* Units 0, 2, 4, 6 are in the first half. */
	__m128i words = _mm_or_si128(_mm256_castsi256_si128(bits),
	                             _mm_slli_epi32(_mm256_extracti128_si256(bits, 1), 8));
	_mm_storel_epi64((__m128i *)(void *)need, _mm_packus_epi32(words, words));
}

INLINE_AVX2 __m256i difference(unsigned log, __m256i a, __m256i b)
{
	return log == 0   ? _mm256_sub_epi8(a, b)
	       : log == 1 ? _mm256_sub_epi16(a, b)
	       : log == 2 ? _mm256_sub_epi32(a, b)
	                  : _mm256_sub_epi64(a, b);
}

/* As NAME(refer)() of block_encode.h, which calls it with a constant 'how'. */
INLINE_AVX2 void refer_as(lade__bitcomp_refer how, uint8_t *t, size_t groups, uint64_t reference,
                          uint8_t *need, const uint8_t *next)
{
	const unsigned log = how.log;
	__m256i ref = log == 0   ? _mm256_set1_epi8((char)reference)
	              : log == 1 ? _mm256_set1_epi16((short)reference)
	              : log == 2 ? _mm256_set1_epi32((int)reference)
	                         : _mm256_set1_epi64x((long long)reference);
	/* Eight units, two, four or eight vectors of each two. */
	const size_t size = groups * LADE_BITCOMP_GROUP, step = log < 2 ? 128 : 64u << log;
	for (size_t i = 0; i < size; i += step, need += 8) {
		__m256i a[4], v[4];
#pragma GCC unroll 4
		for (unsigned k = 0; k < 4; k++) {
#pragma GCC unroll 4
			for (unsigned j = 0; j < step / 128; j++) {
				uint8_t *at = t + i + step / 4 * k + 32 * j;
				v[j] = LOAD_32(at);
				v[j] = how.above ? difference(log, ref, v[j])
				                 : difference(log, v[j], ref);
				if (how.keep)
					STORE_32(at, v[j]);
			}
			if (log == 3)
				v[0] = _mm256_or_si256(v[0], v[1]);
			if (log == 3)
				v[1] = _mm256_or_si256(v[2], v[3]);
			a[k] = log < 2 ? v[0] : or_16(v[0], v[1]);
			if (next)
				PREFETCH_NEXT(next, i + step / 4 * k, 1);
		}
		needs_8(log, a, need);
	}
}

#define REFER_AS refer_as

/* ---- bits of eight values at once ------------------------------------------------------------ */

/*
 * By width w.  Values become pairs of 2 w bits, these become halves of 4 w bits.  The second half
 * begins within the first's last byte where w is odd: 4 bits behind its begin, so that its pairs
 * are moved by 4 more.  Up to 30 a half's first pair is within 8 bytes then, too.
 */
#define PACKED_MOST 30
#define OVER(w) ((w) % 2 * 4u)
typedef struct way {
	/* What moves a first pair up, and clears the second one. */
	uint64_t first[4];
	/* What moves a second pair up from where a first one is, and what is left of it. */
	uint64_t second[4], rest[4];
	uint64_t apart, unused;
	uint8_t last[16]; /* what moves the first half's last byte, where it is not whole */
} way;
#define WAY(w) \
	{ \
		{0, 64, OVER(w), 64}, {2u * (w), 64, 2u * (w) + OVER(w), 64}, \
			{64, 64 - 2u * (w), 64, 64 - 2u * (w)-OVER(w)}, 32 - (w), 0, \
		{ \
			(w) % 2 ? (w) / 2 : 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, \
				0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80 \
		} \
	}
#define WAYS(w) WAY(w), WAY((w) + 1), WAY((w) + 2), WAY((w) + 3)
static const _Alignas(64) way ways[PACKED_MOST + 1] = {
	WAYS(0),  WAYS(4),  WAYS(8), WAYS(12), WAYS(16),
	WAYS(20), WAYS(24), WAY(28), WAY(29),  WAY(30)};

/* 'narrow': at most 16 bits, so that a half is within 8 bytes. */
INLINE_AVX2 void pack_words(__m256i v, unsigned width, bool narrow, uint8_t *to)
{
	const way *by = &ways[width];
	/* Of two values the first is moved up to the second, then both down. */
	__m256i apart = _mm256_set1_epi64x((long long)by->apart);
	v = _mm256_srlv_epi64(_mm256_sllv_epi32(v, apart), apart);
	__m256i second = _mm256_unpackhi_epi64(v, v);
	v = _mm256_or_si256(_mm256_sllv_epi64(v, LOAD_32(by->first)),
	                    _mm256_sllv_epi64(second, LOAD_32(by->second)));
	if (!narrow)
		v = _mm256_or_si256(v, _mm256_srlv_epi64(second, LOAD_32(by->rest)));
	__m128i half = _mm256_castsi256_si128(v), next = _mm256_extracti128_si256(v, 1);
	next = _mm_or_si128(next, _mm_shuffle_epi8(half, LOAD_16(by->last)));
	_mm_storeu_si128((__m128i *)(void *)to, half);
	_mm_storeu_si128((__m128i *)(void *)(to + width / 2), next);
}

/* Eight values of at most PACKED_MOST bits; writes up to 16 bytes behind them. */
INLINE_AVX2 void pack_unit(unsigned log, const uint8_t *x, unsigned width, uint8_t *to)
{
	__m256i v;
	if (log == 1)
		v = _mm256_cvtepu16_epi32(LOAD_16(x));
	else if (log == 2)
		v = LOAD_32(x);
	else
		v = _mm256_permute4x64_epi64(even_4(LOAD_32(x), LOAD_32(x + 32)), 0xD8);
	pack_words(v, width, log == 1, to);
}
#define PACK_WORDS pack_unit

/* ---- the dictionary -------------------------------------------------------------------------- */

/* As lade__bitcomp_ranks().  Bytes that are not in the sample, most of 256, are ranked apart. */
INLINE_AVX2 void ranks(const uint16_t count[256], uint8_t rank[256])
{
	uint8_t bucket[256];
	uint64_t some[4];
	unsigned first[2 * 16 + 2] = {0}, before = 0;
	for (unsigned i = 0; i < 256; i += 8) {
		/* A float's exponent and the bit behind it are the highest two bits. */
		__m256i n = _mm256_cvtepu16_epi32(LOAD_16(count + i));
		__m256i b = _mm256_castps_si256(_mm256_cvtepi32_ps(n));
		b = _mm256_subs_epu16(_mm256_srli_epi32(b, 22), _mm256_set1_epi32(2 * 127));
		b = _mm256_max_epi16(b, _mm256_min_epu16(n, _mm256_set1_epi32(1)));
		__m128i words = _mm_packus_epi32(_mm256_castsi256_si128(b),
		                                 _mm256_extracti128_si256(b, 1));
		_mm_storel_epi64((__m128i *)(void *)(bucket + i), _mm_packus_epi16(words, words));
	}
	for (unsigned k = 0; k < 8; k++) {
		__m256i none = _mm256_cmpeq_epi8(LOAD_32(bucket + 32 * k), _mm256_setzero_si256());
		uint64_t bits = ~(uint32_t)_mm256_movemask_epi8(none);
		some[k / 2] = k % 2 ? some[k / 2] | bits << 32 : bits & UINT32_MAX;
	}
	for (unsigned k = 0; k < 4; k++)
		for (uint64_t m = some[k]; m; m &= m - 1)
			first[bucket[64 * k + (unsigned)__builtin_ctzll(m)]]++;
	for (unsigned b = sizeof first / sizeof *first; b-- > 0;) {
		unsigned n = first[b];
		first[b] = before;
		before += n;
	}
	for (unsigned k = 0; k < 4; k++) {
		for (uint64_t m = some[k]; m; m &= m - 1) {
			unsigned i = 64 * k + (unsigned)__builtin_ctzll(m);
			rank[i] = (uint8_t)first[bucket[i]]++;
		}
		for (uint64_t m = ~some[k]; m; m &= m - 1)
			rank[64 * k + (unsigned)__builtin_ctzll(m)] = (uint8_t)before++;
	}
}
#define RANKS ranks
