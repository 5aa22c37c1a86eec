/*
 * gpu.c: bitcomp on devices: how many warps a chunk gets.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/work.h"
#include "base/try.h"
#include "codec/bitcomp/bitcomp.h"

#define WARPS LADE_BITCOMP_WARPS

static const lade__kernel decode_kernel = {"bitcomp_decode", "lade_bitcomp_decode",
                                           LADE_BITCOMP_DECODE_SHARED};
static const lade__kernel few_kernel = {"bitcomp_decode", "lade_bitcomp_decode_few",
                                        LADE_BITCOMP_FEW_SHARED};
static const lade__kernel size_kernel = {"bitcomp_decode", "lade_bitcomp_size", 0};
static const lade__kernel encode_kernel = {"bitcomp_encode", "lade_bitcomp_encode",
                                           LADE_BITCOMP_ENCODE_SHARED};

/* Blocks that a multiprocessor holds, and the most of a launch. */
#define RESIDENT 3u
#define BLOCKS_MAX ((size_t)1 << 24)

static uint64_t blocks_of(uint64_t size)
{
	return size / BLOCK + (size % BLOCK != 0);
}

/* Warps of a chunk: one for each sub-block of the largest, as far as a block has them. */
static unsigned team_of(const lade__gpu_work *work)
{
	uint64_t blocks = work->largest ? blocks_of(work->largest) : WARPS;
	return blocks > 4 ? 8 : blocks > 2 ? 4 : blocks > 1 ? 2 : 1;
}

static uint32_t log_of(unsigned team)
{
	return team == 8 ? 3 : team / 2;
}

/*
 * Blocks of a chunk that has more sub-blocks than a team has warps.  Where others are much
 * smaller, most of these would find nothing to do: then four times as many as an average chunk
 * wants, or as fill the device.
 */
static unsigned spans_of(const lade__gpu_work *work)
{
	uint64_t spans = (blocks_of(work->largest) + WARPS - 1) / WARPS;
	if (work->total) {
		uint64_t average = 4 * (blocks_of(work->total / work->count) / WARPS + 1);
		uint64_t fill =
			(uint64_t)RESIDENT * work->device->info.multiprocessors / work->count;
		uint64_t enough = average > fill ? average : fill;
		spans = spans < enough ? spans : enough;
	}
	uint64_t most = work->count < BLOCKS_MAX ? BLOCKS_MAX / work->count : 1;
	/* The count of a chunk's blocks stands in 16 bits. */
	most = most < 0x7FFF ? most : 0x7FFF;
	spans = spans < most ? spans : most;
	return spans ? (unsigned)spans : 1;
}

/* A word for each chunk that several blocks may share. */
static size_t decode_workspace(const lade_stage *stage, size_t count, uint64_t largest,
                               uint64_t total)
{
	(void)stage, (void)total;
	return largest > WARPS * BLOCK ? count * sizeof(uint32_t) : 0;
}

static size_t encode_workspace(const lade_stage *stage, size_t count, uint64_t largest,
                               uint64_t total)
{
	(void)stage, (void)count, (void)largest, (void)total;
	return 0;
}

/* Where each block can have a multiprocessor of its own, which has no room for two of these. */
static lade_status decode_few(const lade__gpu_work *work, lade_error *err)
{
	lade_gpu_batch batch = lade__gpu_batch_of(work, 0);
	void *arguments[] = {&batch};
	lade__launch launch = {.blocks = (unsigned)work->count,
	                       .threads = 32 * LADE_BITCOMP_FEW_WARPS,
	                       .shared = LADE_BITCOMP_FEW_SHARED,
	                       .stream = work->stream};
	return lade__kernel_launch(work->device, &few_kernel, &launch,
	                           arguments, err);
}

static lade_status decode(const lade__gpu_work *work, lade_error *err)
{
	lade_gpu_batch batch = lade__gpu_batch_of(work, 0);
	uint32_t team = team_of(work), spans = team == WARPS ? spans_of(work) : 1;
	const lade_device_info *info = &work->device->info;
	if (team == WARPS && spans == 1 && work->count <= info->multiprocessors &&
	    info->block_shared_max >= LADE_BITCOMP_FEW_SHARED)
		return decode_few(work, err);
	uint32_t team_log = log_of(team);
	uint32_t ahead = team == WARPS && spans == 1 ? RESIDENT * info->multiprocessors : 0;
	lade__address state = work->workspace;
	void *arguments[] = {&batch, &team_log, &spans, &ahead, &state};
	size_t teams = WARPS / team;
	lade__launch launch = {.blocks = (unsigned)((work->count + teams - 1) / teams * spans),
	                       .threads = 32 * WARPS,
	                       .shared = LADE_BITCOMP_DECODE_SHARED,
	                       .stream = work->stream};
	lade_status status;
	if (spans > 1)
		TRY(LADE__CU(work->device, cuMemsetD32Async, state, 0, work->count, work->stream));
	TRY(lade__kernel_launch(work->device, &decode_kernel, &launch, arguments,
	                        err));
out:
	return status;
}

static lade_status sizes(const lade__gpu_work *work, lade_error *err)
{
	return lade__gpu_launch_sizes(work, &size_kernel, 128, err);
}

static lade_status encode(const lade__gpu_work *work, lade_error *err)
{
	lade_gpu_batch batch = lade__gpu_batch_of(work, 0);
	lade_bitcomp_how how = lade__bitcomp_how_of(work->stage);
	uint32_t team = team_of(work), team_log = log_of(team);
	void *arguments[] = {&batch, &how, &team_log};
	size_t teams = WARPS / team;
	lade__launch launch = {.blocks = (unsigned)((work->count + teams - 1) / teams),
	                       .threads = 32 * WARPS,
	                       .shared = LADE_BITCOMP_ENCODE_SHARED,
	                       .stream = work->stream};
	return lade__kernel_launch(work->device, &encode_kernel, &launch, arguments,
	                           err);
}

/* Nanoseconds of the kernels on one H200, as timed: docs/performance/bitcomp.md. */
static double decode_cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	return workload->largest > LADE_CHUNK_MAX ? -1 : 8000 + (double)workload->total / 2400;
}

static double encode_cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	return workload->largest > LADE_CHUNK_MAX ? -1 : 12000 + (double)workload->total / 1900;
}

static const lade__gpu_codec encode_codec = {encode_workspace, encode, NULL, NULL, false, NULL};
static const lade__gpu_codec decode_codec = {decode_workspace, decode, sizes, NULL, false, NULL};

#define RECORD(DIRECTION, way) \
	const lade__gpu_implementation lade__bitcomp_##way##_gpu = \
		LADE__GPU_RECORD("bitcomp", DIRECTION, way##_codec, way##_cost);
RECORD(LADE_ENCODE, encode)
RECORD(LADE_DECODE, decode)
