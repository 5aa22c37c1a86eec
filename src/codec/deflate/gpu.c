/*
 * gpu.c: Deflate, zlib and gzip on devices: how many warps decode a chunk, how many blocks a batch,
 * and the memory for what their lanes keep.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "codec/deflate/args.h"
#include "codec/deflate/deflate.h"
#include "gpu/work.h"

#define COUNTER_ROOM ((size_t)256)
#define LANE_LEAST 32u

/*
 * A kernel: 'warps' have a chunk.  It is for batches of up to 'most' chunks a multiprocessor, or 0:
 * any number, whose largest has 'least' bytes at least; 'blocks' is the most that any device holds
 * at once.  These numbers are estimates: docs/performance/log/gpu-deflate.md.
 */
typedef struct shape {
	lade__kernel kernel;
	unsigned warps, most;
	size_t least, blocks;
} shape;

static const shape shapes[] = {
	{{"deflate_decode", "lade_deflate_decode_team8", 0}, 8, 2, 32768, 512},
	{{"deflate_decode", "lade_deflate_decode_team4", 0}, 4, 5, 16384, 1024},
	{{"deflate_decode", "lade_deflate_decode_team2", 0}, 2, 10, 8192, 2048},
	{{"deflate_decode", "lade_deflate_decode_solo", 0}, 1, 0, 0, 4096},
};
static const lade__kernel size_kernel = {"deflate_decode", "lade_deflate_size", 0};

/* What lanes keep where chunks have 'largest' bytes, or 0: any number; half as much as that again,
 * if that is not too little.  A byte is kept of 5 bits of literals or 3.5 bits of matches, most
 * often. */
static lade_deflate_room room_of(const shape *s, uint64_t largest)
{
	lade_deflate_room room = {.lane = LADE_DEFLATE_LANE_MAX};
	uint64_t lane = (largest + largest / 2) / (32 * s->warps);
	if (largest && lane < room.lane)
		room.lane = lane < LANE_LEAST ? LANE_LEAST : (uint32_t)lane & ~7U;
	room.words = (room.lane / 10) | 1;
	if (room.words > LADE_DEFLATE_WORDS(s->warps))
		room.words = LADE_DEFLATE_WORDS(s->warps);
	return room;
}

/* The bytes of a block. */
static size_t block_of(const shape *s, uint64_t largest)
{
	return (size_t)32 * s->warps * room_of(s, largest).lane;
}

static bool takes(const shape *s, uint64_t largest)
{
	return largest == 0 || largest >= s->least;
}

/* The most that any kernel wants, as fewer chunks get another one. */
static size_t workspace(const lade_stage *stage, size_t count, uint64_t largest, uint64_t total)
{
	(void)stage, (void)total;
	size_t most = 0;
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		const shape *s = &shapes[i];
		size_t size = (count < s->blocks ? count : s->blocks) * block_of(s, largest);
		if (takes(s, largest) && size > most)
			most = size;
	}
	return COUNTER_ROOM + most;
}

static uint32_t format_of(const lade_stage *stage)
{
	return stage->algorithm->id - lade__deflate.id;
}

static lade_status decode(const lade__gpu_work *work, lade_error *err)
{
	size_t count = work->count + work->in_flight, blocks;
	const shape *s = shapes;
	lade_status status;
	while (s->most && (count > (size_t)s->most * work->device->info.multiprocessors ||
	                   !takes(s, work->largest)))
		s++;
	lade_gpu_batch batch = lade__gpu_batch_of(work, work->workspace);
	lade_deflate_room room = room_of(s, work->largest);
	size_t most = (work->workspace_size - COUNTER_ROOM) / block_of(s, work->largest);
	room.memory = work->workspace + COUNTER_ROOM;
	room.format = format_of(work->stage);
	void *arguments[] = {&batch, &room};
	TRY(lade__gpu_resident(work, &s->kernel, 32 * s->warps, 0, &blocks, err));
	blocks = blocks < work->count ? blocks : work->count;
	lade__launch launch = {.blocks = (unsigned)(blocks < most ? blocks : most),
	                       .threads = 32 * s->warps,
	                       .stream = work->stream};
	TRY(LADE__CU(work->device, cuMemsetD32Async, batch.next, 0, 1, work->stream));
	TRY(lade__kernel_launch(work->device, &s->kernel, &launch, arguments, err));
out:
	return status;
}

static lade_status sizes(const lade__gpu_work *work, lade_error *err)
{
	lade_gpu_batch batch = lade__gpu_batch_of(work, 0);
	lade_deflate_room room = {.words = LADE_DEFLATE_WORDS(1), .format = format_of(work->stage)};
	void *arguments[] = {&batch, &room};
	lade__launch launch = {
		.blocks = (unsigned)work->count, .threads = 32, .stream = work->stream};
	return lade__kernel_launch(work->device, &size_kernel, &launch, arguments, err);
}

/* Nanoseconds: a chunk's own time, or what the whole device does.  H200, means of 12 sets, November
 * 2026: 129 us for a chunk of 64 KiB, 211 GB/s for 10,000 (docs/performance/log/gpu-deflate.md). */
static double cost(void *ctx, const lade_workload *w)
{
	(void)ctx;
	if (w->has_dict || w->largest > LADE_CHUNK_MAX)
		return -1;
	double alone = 120e3 * ((double)w->largest / 65536 + 0.05), all = (double)w->total / 200;
	return 5000 + (alone > all ? alone : all);
}

static const lade__gpu_codec codec = {.workspace = workspace, .enqueue = decode, .sizes = sizes};

const lade__gpu_implementation lade__deflate_decode_gpu =
	LADE__GPU_RECORD("deflate", LADE_DECODE, codec, cost);
const lade__gpu_implementation lade__zlib_decode_gpu =
	LADE__GPU_RECORD("zlib", LADE_DECODE, codec, cost);
const lade__gpu_implementation lade__gzip_decode_gpu =
	LADE__GPU_RECORD("gzip", LADE_DECODE, codec, cost);
