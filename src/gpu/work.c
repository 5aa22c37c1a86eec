/*
 * gpu.c: launches that kernels of several stages have alike.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/work.h"

#include "base/try.h"

lade_status lade__gpu_resident(const lade__gpu_work *work, const lade__kernel *kernel,
                               unsigned threads, size_t shared, size_t *blocks, lade_error *err)
{
	unsigned an_sm;
	lade_status status =
		lade__kernel_occupancy(work->device, kernel, threads, shared, &an_sm, err);
	*blocks = status == LADE_OK ? (size_t)an_sm * work->device->info.multiprocessors : 0;
	*blocks += *blocks == 0;
	return status;
}

lade_status lade__gpu_launch_turns(const lade__gpu_work *work, const lade__kernel *kernel,
                                   lade__launch launch, void **arguments, lade_error *err)
{
	lade_gpu_batch *batch = arguments[0];
	size_t most;
	lade_status status;
	TRY(lade__gpu_resident(work, kernel, launch.threads, launch.shared, &most, err));
	if (most < launch.blocks) {
		launch.blocks = (unsigned)most;
		batch->next = work->workspace;
		TRY(LADE__CU(work->device, cuMemsetD32Async, batch->next, 0, 1, work->stream));
	}
	TRY(lade__kernel_launch(work->device, kernel, &launch, arguments, err));
out:
	return status;
}

lade_status lade__gpu_launch_sizes(const lade__gpu_work *work, const lade__kernel *kernel,
                                   unsigned chunks, lade_error *err)
{
	lade_gpu_batch batch = lade__gpu_batch_of(work, 0);
	void *arguments[] = {&batch};
	lade__launch launch = {.blocks = (unsigned)((work->count + chunks - 1) / chunks),
	                       .threads = 128,
	                       .stream = work->stream};
	return lade__kernel_launch(work->device, kernel, &launch, arguments, err);
}
