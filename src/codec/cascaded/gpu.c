/*
 * gpu.c: the cascaded codec on devices: which kernel, with how many blocks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/work.h"
#include "base/try.h"
#include "codec/cascaded/cascaded.h"

#define TEAM_LOG LADE_CAS_WARPS_LOG
#define THREADS (32 * LADE_CAS_WARPS)
#define SHARED (LADE_CAS_WARPS * LADE_CAS_DECODE_SHARED)
/* The decoded bytes that a block has at a time. */
#define BLOCK_BYTES (LADE_CAS_WARPS * LADE_CASCADED_BLOCK_BYTES)

static const lade__kernel decode_kernel = {"cascaded_decode", "lade_cascaded_decode", SHARED};
static const lade__kernel size_kernel = {"cascaded_decode", "lade_cascaded_size", 0};
static const lade__kernel encode_kernel = {"cascaded_encode", "lade_cascaded_encode",
                                           LADE_CAS_ENCODE_SHARED(LADE_CAS_WARPS)};

/* The most parts of a chunk: their number fits 16 bits. */
#define PARTS_MAX 4096u

/* A word for each chunk that several blocks may share. */
static size_t decode_workspace(const lade_stage *stage, size_t count, uint64_t largest,
                               uint64_t total)
{
	(void)stage, (void)total;
	return largest == 0 || largest > BLOCK_BYTES ? count * sizeof(uint32_t) : 0;
}

/* The counter that chunks are taken from. */
static size_t encode_workspace(const lade_stage *stage, size_t count, uint64_t largest,
                               uint64_t total)
{
	(void)stage, (void)count, (void)largest, (void)total;
	return LADE__GPU_COUNTER;
}

/*
 * Parts of a chunk, each for a block of threads: one for each 64 KiB of the largest, but not more
 * than fill the device twice; a part takes what is left in turns.
 */
static uint32_t parts_of(const lade__gpu_work *work, size_t resident)
{
	uint64_t parts = work->largest ? work->largest / BLOCK_BYTES : 16;
	uint64_t enough = 2 * (uint64_t)resident / work->count + 1;
	parts = parts < enough ? parts : enough;
	parts = parts < PARTS_MAX ? parts : PARTS_MAX;
	return parts ? (uint32_t)parts : 1;
}

/* Warps, log2, that have something to do in the largest chunk.  Where there are few chunks, and
 * they are on multiprocessors of their own, all that there may be. */
static uint32_t team_log_of(const lade__gpu_work *work)
{
	uint32_t log = 0;
	if (!work->largest || work->count <= 2 * (size_t)work->device->info.multiprocessors)
		return TEAM_LOG;
	while (log < TEAM_LOG && (uint64_t)LADE_CASCADED_BLOCK_BYTES << log < work->largest)
		log++;
	return log;
}

static lade_status decode(const lade__gpu_work *work, lade_error *err)
{
	lade_gpu_batch batch = lade__gpu_batch_of(work, 0);
	lade__address joined = work->workspace;
	uint32_t parts = 1, team_log = team_log_of(work), teams = 1u << (TEAM_LOG - team_log);
	lade__launch l = {.threads = THREADS, .shared = SHARED, .stream = work->stream};
	lade_status status;
	if (work->largest == 0 || work->largest > BLOCK_BYTES) {
		size_t resident;
		TRY(lade__gpu_resident(work, &decode_kernel, THREADS, SHARED,
		                       &resident, err));
		parts = parts_of(work, resident);
	}
	void *arguments[] = {&batch, &parts, &joined, &team_log};
	l.blocks = (unsigned)((work->count * parts + teams - 1) / teams);
	if (parts > 1)
		TRY(LADE__CU(work->device, cuMemsetD32Async, joined, 0, work->count, work->stream));
	TRY(lade__kernel_launch(work->device, &decode_kernel, &l, arguments, err));
out:
	return status;
}

static lade_status encode(const lade__gpu_work *work, lade_error *err)
{
	lade_gpu_batch batch = lade__gpu_batch_of(work, 0);
	lade_cas_choice choice = lade__cascaded_choice_of(work->stage);
	uint32_t team_log = team_log_of(work);
	lade__launch l = {.blocks = (unsigned)work->count, .threads = 32u << team_log,
	                  .shared = LADE_CAS_ENCODE_SHARED(1u << team_log), .stream = work->stream};
	void *arguments[] = {&batch, &choice};
	return lade__gpu_launch_turns(work, &encode_kernel, l, arguments, err);
}

static lade_status sizes(const lade__gpu_work *work, lade_error *err)
{
	return lade__gpu_launch_sizes(work, &size_kernel, 128, err);
}

/* Nanoseconds of the kernels on one H200, by what they were timed at: docs/performance/cascaded.md.
 * A chunk is encoded by one block of threads. */
static double decode_cost(void *ctx, const lade_workload *work)
{
	(void)ctx;
	return work->largest > LADE_CHUNK_MAX ? -1 : 7500 + (double)work->total / 2400;
}

static double encode_cost(void *ctx, const lade_workload *work)
{
	(void)ctx;
	double alone = (double)work->largest / 2, all = (double)work->total / 740;
	return work->largest > LADE_CHUNK_MAX ? -1 : 8000 + (alone > all ? alone : all);
}

static const lade__gpu_codec decode_codec = {decode_workspace, decode, sizes, NULL, false, NULL};
static const lade__gpu_codec encode_codec = {encode_workspace, encode, NULL, NULL, false, NULL};

#define RECORD(way, verb) \
	const lade__gpu_implementation lade__cascaded_##verb##_gpu = \
		LADE__GPU_RECORD("cascaded", way, verb##_codec, verb##_cost);
RECORD(LADE_ENCODE, encode)
RECORD(LADE_DECODE, decode)
