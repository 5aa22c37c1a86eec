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
#define MIN_OF_LOGS 3 /* elements of 8 bytes have no such instruction */
#define MIN_OF(log, a, b) MIN_OF_(log, (__m256i)(a), (__m256i)(b))
#define MIN_OF_(log, a, b) \
	((log) == 0   ? _mm256_min_epu8(a, b) \
	 : (log) == 1 ? _mm256_min_epu16(a, b) \
	              : _mm256_min_epu32(a, b))
/* To the nearest integer, whatever the caller's mode. */
#define ROUND(log, v) \
	((log) == 3 ? (__m256i)_mm256_round_pd((__m256d)(v), NEAREST) \
	            : (__m256i)_mm256_round_ps((__m256)(v), NEAREST))
#define NEAREST (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define PEXT _pext_u64
#define PDEP _pdep_u64

#include "codec/bitcomp/block_avx2.h"
#define LEAST_IN(log, v) least_in_32(log, (__m256i)(v))

/* to[i] = table[from[i]] for 'bytes' bytes, rounded up to 32; all of them are below 'words'. */
static TARGET void look_up(const uint8_t table[256], unsigned words, const uint8_t *from,
                           size_t bytes, uint8_t *to)
{
	__m256i part[16];
	unsigned parts = (words + 15) / 16;
	for (unsigned k = 0; k < parts; k++)
		part[k] = _mm256_broadcastsi128_si256(LOAD_16(table + 16 * k));
	for (size_t i = 0; i < bytes; i += 32) {
		__m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(from + i));
		__m256i out = _mm256_setzero_si256();
		for (unsigned k = 0; k < parts; k++) {
			/* What is not of this part gets its highest bit set, and gives 0. */
			__m256i at = _mm256_adds_epu8(x, _mm256_set1_epi8(0x70));
			out = _mm256_or_si256(out, _mm256_shuffle_epi8(part[k], at));
			x = _mm256_sub_epi8(x, _mm256_set1_epi8(16));
		}
		_mm256_storeu_si256((__m256i *)(void *)(to + i), out);
	}
}
#define LOOK_UP look_up

#include "codec/bitcomp/block.h"

const lade__bitcomp_kernels lade__bitcomp_avx2 = BITCOMP_KERNELS(LADE_CPU_AVX2);
#endif
