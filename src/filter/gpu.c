/*
 * gpu.c: filters on devices: the shuffles, zigzag, byteswap, and delta of integers; with how many
 * warps, and what the kernels cannot do.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/gpu.h"
#include "base/try.h"
#include "filter/filters.h"
#include "filter/stream.h"

/* Of cuda/tile.cuh: bytes of a warp's tile, and the warps of a block. */
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

/* A kernel whose warps take tiles; 'arguments' has the batch first. */
static lade_status launch(const lade__gpu_work *work, lade__kernel kernel, void **arguments,
                          lade_error *err)
{
	size_t warps = work->count * parts_of(work);
	if (warps > WARPS_MAX)
		warps = WARPS_MAX;
	lade__launch l = {.blocks = (unsigned)((warps + WARPS - 1) / WARPS),
	                  .threads = 32 * WARPS,
	                  .stream = work->stream};
	return lade__kernel_launch(work->device, kernel, &l, arguments, err);
}

/* ---- shuffles ------------------------------------------------------------------------------- */

static lade_status bits(const lade__gpu_work *work, lade__kernel kernel, lade_error *err)
{
	lade__gpu_batch batch = lade__gpu_batch_of(work, 0);
	const lade_value *option = work->stage->option;
	uint32_t size = (uint32_t)option[0].i, order = (uint32_t)option[1].i;
	uint32_t block = (uint32_t)option[2].i;
	void *arguments[] = {&batch, &size, &order, &block};
	return launch(work, kernel, arguments, err);
}

static lade_status bitshuffle_encode(const lade__gpu_work *work, lade_error *err)
{
	return bits(work, LADE__KERNEL_BITSHUFFLE_ENCODE, err);
}

static lade_status bitshuffle_decode(const lade__gpu_work *work, lade_error *err)
{
	return bits(work, LADE__KERNEL_BITSHUFFLE_DECODE, err);
}

/* 'partial' is what becomes of chunks that end with a part of an element. */
static lade_status bytes(const lade__gpu_work *work, lade__kernel kernel, lade_status partial,
                         lade_error *err)
{
	lade__gpu_batch batch = lade__gpu_batch_of(work, 0);
	uint32_t size = (uint32_t)work->stage->option[0].i, verdict = (uint32_t)partial;
	void *arguments[] = {&batch, &size, &verdict};
	return launch(work, kernel, arguments, err);
}

static lade_status shuffle_encode(const lade__gpu_work *work, lade_error *err)
{
	return bytes(work, LADE__KERNEL_SHUFFLE_ENCODE, LADE_OK, err);
}

static lade_status shuffle_decode(const lade__gpu_work *work, lade_error *err)
{
	return bytes(work, LADE__KERNEL_SHUFFLE_DECODE, LADE_OK, err);
}

static lade_status split_encode(const lade__gpu_work *work, lade_error *err)
{
	return bytes(work, LADE__KERNEL_SHUFFLE_ENCODE, LADE_E_DTYPE, err);
}

static lade_status split_decode(const lade__gpu_work *work, lade_error *err)
{
	return bytes(work, LADE__KERNEL_SHUFFLE_DECODE, LADE_E_CORRUPT, err);
}

/* ---- from element to element ---------------------------------------------------------------- */

/* LADE_STREAM_... of cuda/stream.cu. */
enum { ZIG, ZAG, SWAP, DIFF };

static lade_status stream(const lade__gpu_work *work, uint32_t op, size_t size, lade_status partial,
                          lade_error *err)
{
	lade__gpu_batch batch = lade__gpu_batch_of(work, 0);
	uint32_t log2 = lade__log2(size), verdict = (uint32_t)partial;
	void *arguments[] = {&batch, &op, &log2, &verdict};
	return launch(work, LADE__KERNEL_STREAM, arguments, err);
}

static size_t dtype_size(const lade__gpu_work *work)
{
	return lade_dtype_size(lade__filter_dtype(work->stage, 0));
}

static lade_status zigzag_encode(const lade__gpu_work *work, lade_error *err)
{
	return stream(work, ZIG, dtype_size(work), LADE_E_DTYPE, err);
}

static lade_status zigzag_decode(const lade__gpu_work *work, lade_error *err)
{
	return stream(work, ZAG, dtype_size(work), LADE_E_CORRUPT, err);
}

static lade_status byteswap_encode(const lade__gpu_work *work, lade_error *err)
{
	return stream(work, SWAP, (size_t)work->stage->option[0].i, LADE_E_DTYPE, err);
}

static lade_status byteswap_decode(const lade__gpu_work *work, lade_error *err)
{
	return stream(work, SWAP, (size_t)work->stage->option[0].i, LADE_E_CORRUPT, err);
}

static lade_status delta_encode(const lade__gpu_work *work, lade_error *err)
{
	return stream(work, DIFF, dtype_size(work), LADE_E_DTYPE, err);
}

/* ---- sums ----------------------------------------------------------------------------------- */

#define SLAB (WARPS * TILE) /* bytes that a block works on at once */

/* The most blocks that share a chunk: their sums are read by each of them. */
#define RANGES_MAX 1024u

/* The most bytes that the sums of all ranges take: where more would be wanted chunks are many. */
#define RANGES_ROOM ((size_t)64 << 10)

/* Ranges of the largest chunk, as far as there is room. */
static uint32_t ranges_of(size_t count, uint64_t largest)
{
	uint64_t slabs = largest ? largest / SLAB + (largest % SLAB != 0) : 4;
	size_t room = RANGES_ROOM / sizeof(uint64_t) / count;
	uint64_t most = room < RANGES_MAX ? room : RANGES_MAX;
	slabs = slabs < most ? slabs : most;
	return slabs ? (uint32_t)slabs : 1;
}

static size_t delta_workspace(const lade_stage *stage, size_t count, uint64_t largest,
                              uint64_t total)
{
	(void)stage, (void)total;
	return sizeof(uint64_t) * count * (ranges_of(count, largest) - 1);
}

static lade_status delta_decode(const lade__gpu_work *work, lade_error *err)
{
	lade__gpu_batch batch = lade__gpu_batch_of(work, 0);
	lade__address partial = work->workspace;
	uint32_t log2 = lade__log2(dtype_size(work)), corrupt = LADE_E_CORRUPT;
	uint32_t parts = ranges_of(work->count, work->largest);
	size_t resident;
	lade_status status;
	TRY(lade__gpu_resident(work, LADE__KERNEL_DELTA_DECODE, 32 * WARPS, 0, &resident, err));
	/* A chunk that is one block's needs no sums beforehand. */
	if (work->count >= resident)
		parts = 1;
	lade__launch l = {.threads = 32 * WARPS, .stream = work->stream};
	uint64_t blocks = (uint64_t)work->count * (parts - 1);
	if (parts > 1) {
		void *arguments[] = {&batch, &log2, &parts, &partial};
		l.blocks = (unsigned)blocks; /* of RANGES_ROOM / 8 sums at most */
		TRY(lade__kernel_launch(work->device, LADE__KERNEL_DELTA_RANGES, &l, arguments,
		                        err));
	}
	blocks += work->count;
	void *arguments[] = {&batch, &log2, &parts, &partial, &corrupt};
	l.blocks = (unsigned)(blocks < WARPS_MAX ? blocks : WARPS_MAX);
	TRY(lade__kernel_launch(work->device, LADE__KERNEL_DELTA_DECODE, &l, arguments, err));
out:
	return status;
}

/* ---- costs ---------------------------------------------------------------------------------- */

/* Bytes a nanosecond, read and written again, as one H200 does. */
#define RATE 1700.0

static double cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	return workload->largest > (size_t)1 << 30 ? -1 : 4000 + (double)workload->total / RATE;
}

static double bitshuffle_cost(void *ctx, const lade_workload *workload)
{
	int64_t size = workload->stage->option[0].i;
	return size > 8 || (size & (size - 1)) ? -1 : cost(ctx, workload);
}

/* Integers whose differences are of their own type. */
static double delta_cost(void *ctx, const lade_workload *workload)
{
	lade_dtype dtype = lade__filter_dtype(workload->stage, 0);
	return lade_dtype_class(dtype) == 'f' || lade__filter_dtype(workload->stage, 1) != dtype
	               ? -1
	               : cost(ctx, workload);
}

/* ---- records -------------------------------------------------------------------------------- */

#define RECORD(filter, DIRECTION, way, workspace_fn, cost_fn) \
	static const lade__gpu_codec filter##_##way##_codec = {workspace_fn, filter##_##way, \
	                                                       NULL}; \
	const lade_implementation lade__filter_##filter##_##way##_gpu = \
		LADE__GPU_RECORD(#filter, DIRECTION, filter##_##way##_codec, cost_fn);
#define RECORDS(filter, workspace_fn, cost_fn) \
	RECORD(filter, LADE_ENCODE, encode, workspace, cost_fn) \
	RECORD(filter, LADE_DECODE, decode, workspace_fn, cost_fn)
RECORDS(bitshuffle, workspace, bitshuffle_cost)
RECORDS(shuffle, workspace, cost)
RECORDS(split, workspace, cost)
RECORDS(zigzag, workspace, cost)
RECORDS(byteswap, workspace, cost)
RECORDS(delta, delta_workspace, delta_cost)
