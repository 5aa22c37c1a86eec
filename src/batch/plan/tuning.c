/*
 * tuning.c: the numbers that plans are made by.  "Entry N" is one of the log in
 * docs/performance/gpu-batch.md, measured on an H200; "not measured" says that nobody has varied
 * the number.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/plan/tuning.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* clang-format off */
#define ALL_CLASSES \
	.gather_rate = 8.0,       /* entry 6: pageable sources; not varied since */ \
	.call_cost = 30e3,        /* entry 2: about ten driver calls and a wait */ \
	.detour = 1.25,           /* entry 13: pinned to pinned */ \
	                          /* most, least, few, growth, shrink, flights */ \
	.in = {32 * MIB, 2 * MIB, 40, 4, 3, 8},        /* entries 16, 17; few: entry 19 */ \
	.slow = {8 * MIB, 2 * MIB, 40, 2, 1, 8},       /* entries 10, 18 */ \
	.pageable = {16 * MIB, 2 * MIB, 40, 4, 3, 4},  /* entry 17, "pageable" */ \
	.out = {8 * MIB, 1 * MIB, 48, 2, 4, 16},       /* entries 6, 12 */ \
	.wave_out = 24 * MIB,     /* bytes; entry 3 */ \
	.wave_first = 1 * MIB,    /* bytes; entry 17: 0.25, 0.5 and 2 MiB are no better */ \
	.wave_large = 8 * MIB,    /* bytes; entry 19 */ \
	.wave_part = 3,           /* entry 17: half of what is left is 2 % slower */ \
	.units_first = 256,       /* entry 10 */ \
	.units_most = 2048,       /* entry 10: four of these fill a device */ \
	.concurrent = 4,             /* entry 5 */ \
	.beside_least = 200,     /* entry 17 */ \
	.runs_most = 32,          /* entry 6 */ \
	.run_least = 128 * KIB,   /* bytes; entry 6: 2.4 us of the link at 55 GB/s */ \
	.gather_grain = 1 * MIB,  /* bytes; not measured */ \
	.memory_part = 8          /* not measured */

static const lade__tuning class_9 = {
	.link_rate = 50.0,        /* entry 13: PCIe 5 */
	ALL_CLASSES,
};

static const lade__tuning class_8 = {
	.link_rate = 24.0,        /* half of it: PCIe 4; not measured */
	ALL_CLASSES,
};
/* clang-format on */

const lade__host_tuning lade__host_tuning_default = {
	.thread_cost = 40e3, /* waking a thread takes 5 to 50 us */
	.parts_least = 256 * KIB,
};

const lade__tuning *lade__tuning_of(const lade__device *device)
{
	return device && device->info.major < 9 ? &class_8 : &class_9;
}
