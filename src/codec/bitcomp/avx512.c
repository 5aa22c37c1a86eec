/*
 * avx512.c: sub-blocks of bitcomp with vectors of 64 bytes, and bits moved by PEXT and PDEP.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET \
	__attribute__(( \
		target("avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2," \
	               "bmi,bmi2,lzcnt,popcnt")))
#define VEC 64
#define BZHI _bzhi_u64
#define LZCNT _lzcnt_u64
#define MIN_OF(log, a, b) MIN_OF_(log, (__m512i)(a), (__m512i)(b))
#define MIN_OF_(log, a, b) \
	((log) == 0   ? _mm512_min_epu8(a, b) \
	 : (log) == 1 ? _mm512_min_epu16(a, b) \
	 : (log) == 2 ? _mm512_min_epu32(a, b) \
	              : _mm512_min_epu64(a, b))
/* To the nearest integer, whatever the caller's mode. */
#define ROUND(log, v) \
	((log) == 3 ? (__m512i)_mm512_roundscale_pd((__m512d)(v), NEAREST) \
	            : (__m512i)_mm512_roundscale_ps((__m512)(v), NEAREST))
#define NEAREST (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define PEXT _pext_u64
#define PDEP _pdep_u64

#include "codec/bitcomp/block_avx2.h"
#define LEAST_IN(log, v) least_in_64(log, (__m512i)(v))

INLINE_AVX2 uint64_t least_in_64(unsigned log, __m512i v)
{
	__m256i a = _mm512_castsi512_si256(v), b = _mm512_extracti64x4_epi64(v, 1);
	return least_in_32(log, log == 3 ? _mm256_min_epu64(a, b) : least_of(log, a, b));
}

#include "codec/bitcomp/block_avx512.h"

/* As in avx2.c, rounded up to 64. */
static TARGET void look_up(const uint8_t table[256], unsigned words, const uint8_t *from,
                           size_t bytes, uint8_t *to)
{
	__m512i part[4];
	for (unsigned k = 0; k < 4; k++)
		part[k] = _mm512_loadu_si512(table + 64 * k);
	for (size_t i = 0; i < bytes; i += 64) {
		__m512i x = _mm512_loadu_si512(from + i);
		__m512i out = _mm512_permutex2var_epi8(part[0], x, part[1]);
		if (words > 128)
			out = _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), out,
			                             _mm512_permutex2var_epi8(part[2], x, part[3]));
		_mm512_storeu_si512(to + i, out);
	}
}
#define LOOK_UP look_up

#include "codec/bitcomp/block.h"

const lade__bitcomp_kernels lade__bitcomp_avx512 = BITCOMP_KERNELS(LADE_CPU_AVX512);
#endif
