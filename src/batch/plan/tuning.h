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
 * How a call's work is cut into waves.  A wave has at most 'most' bytes, at least 'least', and at
 * least 'few' units of large items, since it takes some to fill a device.  The first waves are
 * small, so that kernels begin early: each is 'growth' times as large as the one before.  So are
 * the last, so that little is left to do when the last copy has come: each is the part 'shrink' of
 * what is left.  'flights' waves are in flight: the link is slower the more streams wait.
 */
typedef struct lade__cut {
	size_t most, least, few;
	unsigned growth, shrink, flights;
} lade__cut;

typedef struct lade__tuning {
	/* What a way is expected to take. */
	double link_rate;   /* bytes a nanosecond of waves over the link */
	double gather_rate; /* bytes a nanosecond that one thread copies to pinned memory */
	double call_cost;   /* nanoseconds of a call on a device, beside kernels and copies */
	double detour;      /* host memory goes to a device that is so many times as fast */

	/* How waves are cut. */
	lade__cut in;       /* sources are brought */
	lade__cut slow;     /* likewise, and kernels are slower than the link */
	lade__cut pageable; /* the host gathers sources or spreads results */
	lade__cut out;      /* results are brought out */
	size_t wave_out;    /* bytes of results of a wave, at most */
	size_t wave_first;  /* bytes of the first wave */
	size_t wave_large;  /* bytes of 'few' units from which all waves are alike */
	size_t wave_part;   /* a wave has at most one part of so many of a call's bytes */
	size_t units_first; /* units of the first wave where nothing is brought, */
	size_t units_most;  /* and of later ones */

	/* What a wave's kernels are chosen for. */
	size_t concurrent;   /* waves whose kernels run at the same time */
	size_t beside_least; /* units beside a wave's own where another wave is in flight */

	/* How results go out. */
	size_t runs_most; /* runs of results that the driver copies, each by a call, */
	size_t run_least; /* or more of them if they have so many bytes on average */

	size_t gather_grain; /* bytes that a thread gathers at a time */
	size_t memory_part;  /* waves in flight take one part of so many of a device's memory */
} lade__tuning;

/* The tuning of a device; NULL: of the latest class. */
const lade__tuning *lade__tuning_of(const lade__device *device);

typedef struct lade__host_tuning {
	double thread_cost; /* nanoseconds of work that a further thread is woken for */
	size_t parts_least; /* decoded bytes of an item that is cut into parts */
} lade__host_tuning;

extern const lade__host_tuning lade__host_tuning_default;

#endif
