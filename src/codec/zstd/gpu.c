/*
 * gpu.c: Zstandard on devices: how many blocks decode a batch, and their memory for literals.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "codec/zstd/args.h"
#include "codec/zstd/zstd.h"
#include "gpu/work.h"

/* All blocks' memory for literals, at most; and the most blocks that any device holds at once. */
#define LITERALS_ALL ((size_t)256 << 20)
#define BLOCKS_MOST ((size_t)4096)
#define COUNTER_ROOM ((size_t)256)

static const lade__kernel decode_kernel = {"zstd_decode", "lade_zstd_decode", 0};
static const lade__kernel size_kernel = {"zstd_decode", "lade_zstd_size", 0};

/* Bytes for a block's literals, where chunks have 'largest' bytes, or 0: any number. */
static size_t literals_of(uint64_t largest)
{
	if (largest == 0 || largest > LADE_ZSTD_LITERALS_MAX)
		return LADE_ZSTD_LITERALS_MAX;
	return ((size_t)largest + 255) & ~(size_t)255;
}

static size_t blocks_of(size_t count, size_t literals)
{
	size_t most = LITERALS_ALL / literals;
	most = most < BLOCKS_MOST ? most : BLOCKS_MOST;
	return count < most ? count : most;
}

static size_t workspace(const lade_stage *stage, size_t count, uint64_t largest, uint64_t total)
{
	(void)stage, (void)total;
	size_t literals = literals_of(largest);
	return COUNTER_ROOM + blocks_of(count, literals) * literals;
}

static lade_status decode(const lade__gpu_work *work, lade_error *err)
{
	lade_gpu_batch batch = lade__gpu_batch_of(work, work->workspace);
	size_t literals = literals_of(work->largest), blocks = blocks_of(work->count, literals);
	lade_zstd_room room = {.literals = work->workspace + COUNTER_ROOM,
	                       .cap = (uint32_t)literals};
	void *arguments[] = {&batch, &room};
	size_t resident;
	lade_status status;
	TRY(lade__gpu_resident(work, &decode_kernel, LADE_ZSTD_THREADS, 0, &resident, err));
	lade__launch launch = {.blocks = (unsigned)(blocks < resident ? blocks : resident),
	                       .threads = LADE_ZSTD_THREADS,
	                       .stream = work->stream};
	TRY(LADE__CU(work->device, cuMemsetD32Async, batch.next, 0, 1, work->stream));
	TRY(lade__kernel_launch(work->device, &decode_kernel, &launch, arguments, err));
out:
	return status;
}

static lade_status sizes(const lade__gpu_work *work, lade_error *err)
{
	return lade__gpu_launch_sizes(work, &size_kernel, 128, err);
}

/* Nanoseconds: a chunk's own time, or what the whole device does. */
static double cost(void *ctx, const lade_workload *w)
{
	(void)ctx;
	if (w->has_dict || w->largest > LADE_CHUNK_MAX)
		return -1;
	double alone = 400e3 * ((double)w->largest / 65536 + 0.05), all = (double)w->total / 100;
	return 10000 + (alone > all ? alone : all);
}

static const lade__gpu_codec codec = {.workspace = workspace, .enqueue = decode, .sizes = sizes};

const lade__gpu_implementation lade__zstd_decode_gpu =
	LADE__GPU_RECORD("zstd", LADE_DECODE, codec, cost);
