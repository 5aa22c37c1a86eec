/*
 * cpu.h: the host's instruction sets, as levels that can be forced, and its number of threads.
 *
 *	lade_engine *plain;
 *	lade_engine_options options = {.struct_size = sizeof options, .cpu = LADE_CPU_PLAIN};
 *	printf("%s, %u threads\n", lade_cpu_name(lade_cpu_detect()), lade_cpu_count());
 *	if (lade_engine_new(&options, &plain, &err))             // without vector instructions
 *		return fprintf(stderr, "%s\n", err.message);
 *	lade_engine_free(plain);
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
 * Each level includes those below it.  LADE_CPU_SSE42 includes PCLMULQDQ.  LADE_CPU_AVX2 includes
 * BMI1 and BMI2.  LADE_CPU_AVX512 means F, BW, CD, DQ, VL, VBMI, VBMI2 and VPOPCNTDQ.  Other
 * architectures than x86 have LADE_CPU_PLAIN.
 */
typedef enum lade_cpu {
	LADE_CPU_AUTO = 0, /* what the machine has */
	LADE_CPU_PLAIN = 1,
	LADE_CPU_SSE42 = 2,
	LADE_CPU_AVX2 = 3,
	LADE_CPU_AVX512 = 4,
} lade_cpu;

/* The highest level that the machine and its operating system support.  Never LADE_CPU_AUTO. */
LADE_API lade_cpu lade_cpu_detect(void);

/* "auto", "plain", "sse4.2", "avx2" or "avx512"; "?" for an unknown number. */
LADE_API const char *lade_cpu_name(lade_cpu level);

/*
 * The number of threads that this process can run at once: the processors of its affinity mask, but
 * no more than its control group's CPU quota, rounded up.  At least 1.
 */
LADE_API unsigned lade_cpu_count(void);

#ifdef __cplusplus
}
#endif

#endif
