/*
 * tuning.c: the numbers that plans are made by.  "Entry N" is one of the log in
 * docs/performance/log/gpu-batch.md, measured on an H200; "chosen" says that nobody has varied the
 * number.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/plan/tuning.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* clang-format off */
#define ALL_CLASSES \
	.gather_rate = 8.0,      /* bytes a nanosecond; chosen */ \
	.call_cost = 30e3,       /* ns; "The two numbers": ten calls of the driver are 20 us */ \
	.detour = 1.25,          /* entry 13: pinned to pinned */ \
	                         /* most, growth, flights */ \
	.in = {32 * MIB, 4, 8},       /* entries 16, 17, 20 */ \
	.slow = {8 * MIB, 2, 8},      /* entries 10, 18, 20 */ \
	.pageable = {16 * MIB, 4, 4}, /* flights: entry 20 */ \
	.out = {8 * MIB, 2, 16},      /* entries 2, 8, 20 */ \
	.wave_out = 24 * MIB,    /* bytes; chosen */ \
	.wave_first = 1 * MIB,   /* bytes; "Lost": 0.25, 0.5 and 2 MiB are no better */ \
	.wave_least = 2 * MIB,   /* bytes; entries 17, 20 */ \
	.wave_few = 40,          /* units; entries 19, 20 */ \
	.wave_large = 8 * MIB,   /* bytes; entries 19, 20 */ \
	.wave_last = 3,          /* parts of what is left; entries 17, 20 */ \
	.units_first = 256,      /* units; entry 10: the sweep of entry 20 has no such calls */ \
	.units_most = 2048,      /* units; chosen: four of these fill a device */ \
	.concurrent = 4,         /* waves; entries 5, 20 */ \
	.run_least = 128 * KIB,  /* bytes; entry 6: 2.4 us of a link of 55 GB/s */ \
	.gather_grain = 1 * MIB, /* bytes; chosen */ \
	.memory_part = 8         /* parts of the memory; chosen */

static const lade__tuning class_9 = {
	.link_rate = 50.0, /* bytes a nanosecond; entry 13: PCIe 5 */
	ALL_CLASSES,
};

static const lade__tuning class_8 = {
	.link_rate = 24.0, /* bytes a nanosecond; chosen: PCIe 4 */
	ALL_CLASSES,
};
/* clang-format on */

const lade__host_tuning lade__host_tuning_default = {
	.thread_cost = 40e3,      /* ns; chosen: waking a thread takes 5 to 50 us */
	.parts_least = 256 * KIB, /* bytes; chosen */
};

const lade__tuning *lade__tuning_of(const lade__device *device)
{
	return device && device->info.major < 9 ? &class_8 : &class_9;
}
