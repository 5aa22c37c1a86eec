/*
 * gpu.c: plans as the kernels of layout.cu take them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "array/gpu.h"

static lade_divisor divisor_of(size_t number)
{
	uint32_t n = (uint32_t)number, shift = 0;
	while ((uint64_t)1 << shift < n)
		shift++;
	uint64_t magic = ((uint64_t)1 << 32) * (((uint64_t)1 << shift) - n) / n + 1;
	return (lade_divisor){.number = n, .magic = (uint32_t)magic, .shift = shift};
}

static size_t magnitude(int64_t stride)
{
	return stride < 0 ? (size_t)0 - (size_t)stride : (size_t)stride;
}

void lade__box_make(const lade__plan *plan, lade_direction direction, lade_box *box,
                    lade_box_axis *axes)
{
	bool decode = direction == LADE_DECODE;
	int64_t chunk = (int64_t)plan->chunk_off, span = (int64_t)plan->span_off;
	*box = (lade_box){.src_off = decode ? chunk : span,
	                       .dst_off = decode ? span : chunk,
	                       .end = UINT64_MAX,
	                       .size = (uint32_t)plan->size,
	                       .run = divisor_of(plan->run),
	                       .swap = (uint32_t)plan->swap,
	                       .align = (uint32_t)plan->run,
	                       .ndim = (uint32_t)plan->ndim};
	/* The destination is written in its order, so that lanes write neighbours. */
	for (size_t i = 0; i < plan->ndim; i++) {
		const lade__plan_axis *a = &plan->axis[i];
		lade_box_axis one = {.count = divisor_of(a->count),
		                      .src = decode ? a->chunk : a->span,
		                      .dst = decode ? a->span : a->chunk};
		size_t at = i;
		for (; at && magnitude(axes[at - 1].dst) < magnitude(one.dst); at--)
			axes[at] = axes[at - 1];
		axes[at] = one;
		box->align |= (uint32_t)a->chunk | (uint32_t)a->span;
	}
}

static const lade__kernel boxes_kernel = {"layout", "lade_box_copy", 0};

lade_status lade__boxes_copy(lade__device *device, lade_stream stream, lade_boxes boxes,
                             lade_error *err)
{
	if (boxes.pieces == 0)
		return LADE_OK;
	unsigned most = (unsigned)device->info.multiprocessors * LADE_BOX_BLOCKS;
	lade__launch launch = {.blocks = boxes.pieces < most ? boxes.pieces : most,
	                       .threads = LADE_BOX_THREADS + 32,
	                       .stream = stream};
	void *arguments[] = {&boxes};
	return lade__kernel_launch(device, &boxes_kernel, &launch, arguments, err);
}

static const lade__kernel list_kernel = {"layout", "lade_grid_list", 0};
static const lade__kernel finish_kernel = {"layout", "lade_grid_finish", 0};

static lade_status launch_items(lade__device *device, lade_stream stream,
                                const lade__kernel *kernel, uint32_t count, void *argument,
                                lade_error *err)
{
	lade__launch launch = {.blocks = (count + LADE_BOX_THREADS - 1) / LADE_BOX_THREADS,
	                       .threads = LADE_BOX_THREADS,
	                       .stream = stream};
	void *arguments[] = {argument};
	return lade__kernel_launch(device, kernel, &launch, arguments, err);
}

lade_status lade__grid_list(lade__device *device, lade_stream stream, lade_grid grid,
                            lade_error *err)
{
	return launch_items(device, stream, &list_kernel, grid.count, &grid, err);
}

lade_status lade__grid_finish(lade__device *device, lade_stream stream, lade_grid_results results,
                              lade_error *err)
{
	return launch_items(device, stream, &finish_kernel, results.count, &results, err);
}
