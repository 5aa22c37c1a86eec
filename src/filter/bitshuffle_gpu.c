/*
 * bitshuffle_gpu.c: the bit shuffle on devices: with how many warps.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/gpu.h"
#include "filter/filters.h"

/* Of cuda/bitshuffle.cu: bytes of a warp's tile, and the warps of a block. */
#define TILE 4096u
#define WARPS 4u

/* Warps of a multiprocessor that are at work at once. */
#define RESIDENT 28u

/* The most warps of a launch; more tiles than that are taken in turns. */
#define WARPS_MAX ((size_t)1 << 24)

static size_t workspace(const lade_stage *stage, size_t count, uint64_t largest, uint64_t total)
{
	(void)stage, (void)count, (void)largest, (void)total;
	return 0;
}

static uint64_t tiles_of(uint64_t size)
{
	return size / TILE + (size % TILE != 0);
}

/*
 * Warps of a chunk: one for each tile of the largest.  Where the others are much smaller, most of
 * these would find nothing to do: then four times as many as an average chunk wants, or as fill the
 * device.
 */
static size_t parts_of(const lade__gpu_work *work)
{
	uint64_t parts = work->largest ? tiles_of(work->largest) : 16;
	if (work->total) {
		uint64_t average = 4 * (tiles_of(work->total / work->count) + 1);
		uint64_t resident = (uint64_t)RESIDENT * work->device->info.multiprocessors;
		uint64_t fill = resident / work->count;
		uint64_t enough = average > fill ? average : fill;
		parts = parts < enough ? parts : enough;
	}
	uint64_t most = work->count < WARPS_MAX ? WARPS_MAX / work->count : 1;
	parts = parts < most ? parts : most;
	return parts ? (size_t)parts : 1;
}

static lade_status enqueue(const lade__gpu_work *work, lade__kernel kernel, lade_error *err)
{
	lade__gpu_batch batch = lade__gpu_batch_of(work, 0);
	const lade_value *option = work->stage->option;
	uint32_t size = (uint32_t)option[0].i, order = (uint32_t)option[1].i;
	uint32_t block = (uint32_t)option[2].i;
	void *arguments[] = {&batch, &size, &order, &block};
	size_t warps = work->count * parts_of(work);
	if (warps > WARPS_MAX)
		warps = WARPS_MAX;
	lade__launch launch = {.blocks = (unsigned)((warps + WARPS - 1) / WARPS),
	                       .threads = 32 * WARPS, .stream = work->stream};
	return lade__kernel_launch(work->device, kernel, &launch, arguments, err);
}

static lade_status encode(const lade__gpu_work *work, lade_error *err)
{
	return enqueue(work, LADE__KERNEL_BITSHUFFLE_ENCODE, err);
}

static lade_status decode(const lade__gpu_work *work, lade_error *err)
{
	return enqueue(work, LADE__KERNEL_BITSHUFFLE_DECODE, err);
}

/* Bytes a nanosecond, read and written again, as one H200 does. */
#define RATE 1700.0

static double cost(void *ctx, const lade_workload *workload)
{
	int64_t size = workload->stage->option[0].i;
	(void)ctx;
	if (size > 8 || (size & (size - 1)) || workload->largest > (size_t)1 << 30)
		return -1;
	return 4000 + (double)workload->total / RATE;
}

static const lade__gpu_codec encode_codec = {workspace, encode, NULL};
static const lade__gpu_codec decode_codec = {workspace, decode, NULL};

#define RECORD(DIRECTION, way)                                                                 \
	const lade_implementation lade__filter_bitshuffle_##way##_gpu = {                      \
		.struct_size = sizeof(lade_implementation),                                    \
		.name = "bitshuffle/cuda",                                                     \
		.algorithm = "bitshuffle",                                                     \
		.direction = DIRECTION,                                                        \
		.place = LADE_DEVICE,                                                          \
		.priority = LADE_PRIORITY_BUILTIN,                                             \
		.ctx = (void *)(uintptr_t)&way##_codec,                                        \
		.cost = cost,                                                                  \
	};
RECORD(LADE_ENCODE, encode)
RECORD(LADE_DECODE, decode)
