/*
 * gpu.c: the cascaded codec on devices: which kernel, with how many blocks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/gpu.h"
#include "base/try.h"
#include "codec/cascaded/cascaded.h"
#include "codec/codecs.h"

/* Of cuda/cascaded.cuh: the threads of a block, and the decoded bytes that it has at a time. */
#define THREADS 256u
#define BLOCK_BYTES (8 * LADE_CASCADED_BLOCK_BYTES)

/* The most parts of a chunk: their number fits 16 bits. */
#define PARTS_MAX 4096u

/* The words that a kernel wants to be 0: the counter that items are taken from; one a chunk. */
static size_t workspace(const lade_stage *stage, size_t count, uint64_t largest, uint64_t total)
{
	(void)stage, (void)largest, (void)total;
	return count < SIZE_MAX / 8 ? (count + 1) * sizeof(uint32_t) : SIZE_MAX;
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

/* Launches for items that blocks of threads take; 'words' of the workspace are 0 then. */
static lade_status launch(const lade__gpu_work *work, lade__kernel kernel, size_t items,
                          size_t words, size_t resident, lade__gpu_batch *batch, void **arguments,
                          lade_error *err)
{
	lade__launch l = {.threads = THREADS, .stream = work->stream};
	lade_status status;
	/* Without a counter block i takes the i-th item. */
	l.blocks = (unsigned)(items < resident ? items : resident);
	if (l.blocks < items)
		batch->next = work->workspace;
	if (batch->next || words > 1)
		TRY(LADE__CU(work->device, cuMemsetD32Async, work->workspace, 0, words,
		             work->stream));
	TRY(lade__kernel_launch(work->device, kernel, &l, arguments, err));
out:
	return status;
}

/* The blocks of a kernel that the device has at once, at least 1. */
static lade_status resident_of(const lade__gpu_work *work, lade__kernel kernel, size_t *resident,
                               lade_error *err)
{
	unsigned an_sm;
	lade_status status =
		lade__kernel_occupancy(work->device, kernel, THREADS, 0, &an_sm, err);
	*resident = status == LADE_OK ? (size_t)an_sm * work->device->info.multiprocessors : 0;
	*resident += *resident == 0;
	return status;
}

static lade_status decode(const lade__gpu_work *work, lade_error *err)
{
	lade__gpu_batch batch = lade__gpu_batch_of(work, 0);
	lade__address joined = work->workspace + sizeof(uint32_t);
	size_t resident;
	lade_status status;
	TRY(resident_of(work, LADE__KERNEL_CASCADED_DECODE, &resident, err));
	uint32_t parts = parts_of(work, resident);
	void *arguments[] = {&batch, &parts, &joined};
	TRY(launch(work, LADE__KERNEL_CASCADED_DECODE, work->count * parts,
	           parts > 1 ? work->count + 1 : 1, resident, &batch, arguments, err));
out:
	return status;
}

static lade_status encode(const lade__gpu_work *work, lade_error *err)
{
	lade__gpu_batch batch = lade__gpu_batch_of(work, 0);
	lade__cascaded_choice choice = lade__cascaded_choice_of(work->stage);
	size_t resident;
	lade_status status;
	TRY(resident_of(work, LADE__KERNEL_CASCADED_ENCODE, &resident, err));
	void *arguments[] = {&batch, &choice};
	TRY(launch(work, LADE__KERNEL_CASCADED_ENCODE, work->count, 1, resident, &batch, arguments,
	           err));
out:
	return status;
}

static lade_status sizes(const lade__gpu_work *work, lade_error *err)
{
	lade__gpu_batch batch = lade__gpu_batch_of(work, 0);
	void *arguments[] = {&batch};
	lade__launch l = {.blocks = (unsigned)((work->count + 127) / 128), .threads = 128,
	                  .stream = work->stream};
	return lade__kernel_launch(work->device, LADE__KERNEL_CASCADED_SIZE, &l, arguments, err);
}

/* Nanoseconds of the kernels, by the rates that they are made for on one H200: not timed yet.  A
 * chunk is encoded by one block of threads. */
static double decode_cost(void *ctx, const lade_workload *work)
{
	(void)ctx;
	return work->largest > LADE__GPU_LARGEST ? -1 : 8000 + (double)work->total / 1000;
}

static double encode_cost(void *ctx, const lade_workload *work)
{
	(void)ctx;
	double alone = (double)work->largest / 2, all = (double)work->total / 300;
	return work->largest > LADE__GPU_LARGEST ? -1 : 8000 + (alone > all ? alone : all);
}

static const lade__gpu_codec decode_codec = {workspace, decode, sizes};
static const lade__gpu_codec encode_codec = {workspace, encode, NULL};

#define RECORD(way, verb) \
	const lade_implementation lade__cascaded_##verb##_gpu = { \
		.struct_size = sizeof(lade_implementation), \
		.name = "cascaded/cuda", \
		.algorithm = "cascaded", \
		.direction = way, \
		.place = LADE_DEVICE, \
		.priority = LADE_PRIORITY_BUILTIN, \
		.ctx = (void *)(uintptr_t)&verb##_codec, \
		.cost = verb##_cost, \
	};
RECORD(LADE_ENCODE, encode)
RECORD(LADE_DECODE, decode)
