/*
 * avx2.c: sub-blocks of bitcomp with vectors of 32 bytes, and bits moved by PEXT and PDEP.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,bmi,bmi2,lzcnt")))
#define VEC 32
#define BZHI _bzhi_u64
#define LZCNT _lzcnt_u64
#define MIN_OF(log, a, b) MIN_OF_(log, (__m256i)(a), (__m256i)(b))
#define MIN_OF_(log, a, b) \
	((log) == 0   ? _mm256_min_epu8(a, b) \
	 : (log) == 1 ? _mm256_min_epu16(a, b) \
	 : (log) == 2 ? _mm256_min_epu32(a, b) \
	              : least_8(a, b))
/* To the nearest integer, whatever the caller's mode. */
#define ROUND(log, v) \
	((log) == 3 ? (__m256i)_mm256_round_pd((__m256d)(v), NEAREST) \
	            : (__m256i)_mm256_round_ps((__m256)(v), NEAREST))
#define NEAREST (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define PEXT _pext_u64
#define PDEP _pdep_u64

#include "codec/bitcomp/block_avx2.h"

/* The least of elements of 8 bytes, for which there is no instruction. */
INLINE_AVX2 __m256i least_8(__m256i a, __m256i b)
{
	const __m256i top = _mm256_set1_epi64x(INT64_MIN);
	__m256i more = _mm256_cmpgt_epi64(_mm256_xor_si256(a, top), _mm256_xor_si256(b, top));
	return _mm256_blendv_epi8(a, b, more);
}
#define LEAST_IN(log, v) least_in_32(log, (__m256i)(v))
#include "codec/bitcomp/encode_avx2.h"

/* to[i] = table[from[i]] for 'bytes' bytes, rounded up to 32; all of them are below 16 'parts', a
 * power of two. */
INLINE_AVX2 void look_up_in(unsigned parts, const uint8_t table[256], const uint8_t *from,
                            size_t bytes, uint8_t *to)
{
	for (size_t i = 0; i < bytes; i += 32) {
		__m256i x = LOAD_32(from + i), low = _mm256_and_si256(x, _mm256_set1_epi8(15));
		__m256i out[16];
#pragma GCC unroll 16
		for (unsigned k = 0; k < parts; k++)
			out[k] = _mm256_shuffle_epi8(
				_mm256_broadcastsi128_si256(LOAD_16(table + 16 * k)), low);
		/* Of each two the one that bit 4, 5, ... says, moved to the byte's highest. */
#pragma GCC unroll 4
		for (unsigned left = parts / 2, by = 3; left; left /= 2, by--) {
			__m256i odd = by < 4 ? _mm256_slli_epi16(x, (int)by) : x;
#pragma GCC unroll 8
			for (unsigned k = 0; k < left; k++)
				out[k] = _mm256_blendv_epi8(out[2 * k], out[2 * k + 1], odd);
		}
		STORE_32(to + i, out[0]);
	}
}

/* The same; all of them are below 'words'. */
static TARGET void look_up(const uint8_t table[256], unsigned words, const uint8_t *from,
                           size_t bytes, uint8_t *to)
{
	if (words <= 32)
		look_up_in(2, table, from, bytes, to);
	else if (words <= 64)
		look_up_in(4, table, from, bytes, to);
	else if (words <= 128)
		look_up_in(8, table, from, bytes, to);
	else
		look_up_in(16, table, from, bytes, to);
}
#define LOOK_UP look_up

#include "codec/bitcomp/block.h"

const lade__bitcomp_kernels lade__bitcomp_avx2 = BITCOMP_KERNELS(LADE_CPU_AVX2);
#endif
