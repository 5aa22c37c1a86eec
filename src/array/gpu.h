/*
 * gpu.h: copies of boxes by a device's kernel.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ARRAY_GPU_H
#define LADE_ARRAY_GPU_H

#include "array/args.h"
#include "array/plan.h"
#include "gpu/device.h"
#include "gpu/module.h"

/* The pieces of a box, for lade_boxes. */
static inline uint32_t lade__box_pieces(const lade__plan *plan)
{
	return (uint32_t)((plan->size + (LADE_BOX_PIECE - 1)) / LADE_BOX_PIECE);
}

/*
 * Fills a box and its plan->ndim axes, without addresses, pieces and unit, for a plan of at most
 * LADE_CHUNK_MAX bytes.  Decoding copies from the chunk to the span, encoding the other way.
 */
void lade__box_make(const lade__plan *plan, lade_direction direction, lade_box *box,
                    lade_box_axis *axes);

/*
 * Fills what a layout says of a batch of arrays, and its axes.  'boxes': each chunk has one of its
 * own.  Fails: as lade__plan_make(), for spans of any size
 */
lade_status lade__grid_make(const lade_layout *layout, lade_direction direction, bool boxes,
                            lade_grid *grid, lade_grid_axis *axis, lade_error *err);

/* Enqueue the kernels that make the tables of a batch of arrays, and those of its results. */
lade_status lade__grid_list(lade__device *device, lade_stream stream, lade_grid grid,
                            lade_error *err);
lade_status lade__grid_finish(lade__device *device, lade_stream stream, lade_grid_results results,
                              lade_error *err);

/* Enqueues the copies on an entered device; nothing for no pieces. */
lade_status lade__boxes_copy(lade__device *device, lade_stream stream, lade_boxes boxes,
                             lade_error *err);

#endif
