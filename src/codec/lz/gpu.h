/*
 * gpu.h: LZ formats on devices: which kernel, with how many blocks, and what that costs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CODEC_LZ_GPU_H
#define LADE_CODEC_LZ_GPU_H

#include "codec/lz/args.h"
#include "gpu/work.h"

/*
 * A kernel's shape: a block of 'threads' takes 'chunks' of a batch at once.  It is for batches of
 * up to 'most' chunks a multiprocessor: the fewer there are, the more warps work on each
 * (docs/performance/gpu-lz.md).  The last shape of a list, with 0, takes any
 * number.
 */
typedef struct lade__lz_shape {
	lade__kernel kernel;
	unsigned threads, chunks, most;
} lade__lz_shape;

/* The one of 'shapes' for 'count' chunks. */
const lade__lz_shape *lade__lz_shape_of(const lade__gpu_work *work, size_t count,
                                        const lade__lz_shape *shapes);

/* Of all of these kernels. */
size_t lade__lz_workspace(const lade_stage *stage, size_t count, uint64_t largest, uint64_t total);

/* Launches one of 'shapes', or of 'shuffled', where a byte shuffle is to be undone. */
lade_status lade__lz_decode(const lade__gpu_work *work, const lade__lz_shape *shapes,
                            const lade__lz_shape *shuffled, lade_error *err);
/* The kernels' second argument is the stage's last option, LADE__ELEM_OPTION. */
lade_status lade__lz_encode(const lade__gpu_work *work, const lade__lz_shape *shapes,
                            lade_error *err);

double lade__lz_decode_cost(void *ctx, const lade_workload *workload);
double lade__lz_encode_cost(void *ctx, const lade_workload *workload);

/* The option that encoders on devices look at, an algorithm's last one; and its check. */
#define LADE__ELEM_OPTION                                                                      \
	{                                                                                      \
		.name = "elem", .type = LADE_OPTION_INT, .fallback = {.i = 1}, .min = 1,       \
		.max = 8, .doc = "bytes of an element, 1, 2, 4 or 8: a hint to device encoders", \
	}
lade_status lade__elem_check(const lade_stage *stage, lade_error *err);

#endif
