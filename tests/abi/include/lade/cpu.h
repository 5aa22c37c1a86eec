/*
 * cpu.h: which instruction sets the host has, as levels that tests can force.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CPU_H
#define LADE_CPU_H

#include <lade/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Each level includes the ones below it.  LADE_CPU_AVX2 means AVX2, BMI1 and BMI2;
 * LADE_CPU_AVX512 means AVX-512 F, BW, CD, DQ, VL, VBMI, VBMI2 and VPOPCNTDQ; LADE_CPU_SSE42
 * includes PCLMULQDQ.
 * Machines of other architectures have LADE_CPU_PLAIN.
 */
typedef enum lade_cpu {
	LADE_CPU_AUTO = 0, /* what the machine has */
	LADE_CPU_PLAIN = 1,
	LADE_CPU_SSE42 = 2,
	LADE_CPU_AVX2 = 3,
	LADE_CPU_AVX512 = 4,
} lade_cpu;

/* The highest level that this machine and its operating system support.  Never AUTO. */
LADE_API lade_cpu lade_cpu_detect(void);

/* "auto", "plain", "sse4.2", "avx2", "avx512"; "?" for a number that is no level. */
LADE_API const char *lade_cpu_name(lade_cpu level);

/*
 * The number of threads that this process may run at once: the CPU affinity mask, lowered to
 * the control group's CPU quota (rounded up).  At least 1.
 */
LADE_API unsigned lade_cpu_count(void);

#ifdef __cplusplus
}
#endif

#endif
