/*
 * avx2.c: sub-blocks of bitcomp with vectors of 32 bytes, and bits moved by PEXT and PDEP.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,bmi,bmi2,lzcnt")))
#define VEC 32
#define PEXT _pext_u64
#define PDEP _pdep_u64

#include "codec/bitcomp/block.h"

const lade__bitcomp_kernels lade__bitcomp_avx2 = BITCOMP_KERNELS(LADE_CPU_AVX2);
#endif
