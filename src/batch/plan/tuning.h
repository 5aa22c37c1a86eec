/*
 * tuning.h: the numbers that plans are made by: one record for each class of devices, one for the
 * host.  docs/performance/gpu-batch.md has the measurements.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BATCH_PLAN_TUNING_H
#define LADE_BATCH_PLAN_TUNING_H

#include "gpu/device.h"

/*
 * How a call's work is cut into waves.  A wave has at most 'most' bytes.  The first waves are
 * small, so that kernels begin early: each is 'growth' times as large as the one before.  'flights'
 * waves are in flight: the link is slower the more streams wait.
 */
typedef struct lade__cut {
	size_t most;
	unsigned growth, flights;
} lade__cut;

typedef struct lade__tuning {
	/* What a way is expected to take. */
	double link_rate;   /* bytes a nanosecond of waves over the link */
	double gather_rate; /* bytes a nanosecond that one thread copies to pinned memory */
	double call_cost;   /* nanoseconds of a call on a device, beside kernels and copies */
	double detour;      /* host memory goes to a device that is this many times as fast */

	/* How waves are cut. */
	lade__cut in;       /* sources are brought */
	lade__cut slow;     /* likewise, and kernels are slower than the link */
	lade__cut pageable; /* the host gathers sources or spreads results */
	lade__cut out;      /* results are brought out */
	size_t wave_out;    /* bytes of results of a wave, at most */
	size_t wave_first;  /* bytes of the first wave */
	size_t wave_least;  /* bytes of a later wave, at least */
	size_t wave_few;    /* units of a wave, at least: it takes some to fill a device */
	size_t wave_large;  /* bytes of 'wave_few' units from which all waves are alike */
	size_t wave_last;   /* a last wave is 1/wave_last of what is left to bring */
	size_t units_first; /* units of the first wave where nothing is brought, */
	size_t units_most;  /* and of later ones */

	size_t concurrent; /* waves whose kernels run at the same time; kernels are chosen by it */
	size_t run_least;  /* bytes on average of runs of results that the driver copies */

	size_t gather_grain; /* bytes that a thread gathers at a time */
	size_t memory_part;  /* waves in flight take 1/memory_part of a device's memory */
} lade__tuning;

/* The tuning of a device; NULL: of the latest class. */
const lade__tuning *lade__tuning_of(const lade__device *device);

typedef struct lade__host_tuning {
	double thread_cost; /* nanoseconds of work that a further thread is woken for */
	size_t parts_least; /* decoded bytes of an item that is cut into parts */
} lade__host_tuning;

extern const lade__host_tuning lade__host_tuning_default;

#endif
