/*
 * gpu.c: Blosc1 containers on devices.  One kernel reads all headers and counts blocks; then a
 * kernel for each codec inside takes its blocks, if there are any, from its list; and one undoes
 * the shuffles that those of zlib and Zstandard leave.  The numbers of blocks stay on the device
 * (docs/performance/log/gpu-blosc.md).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "codec/blosc/args.h"
#include "codec/blosc/blosc.h"
#include "codec/deflate/args.h"
#include "codec/lz/gpu.h"
#include "codec/zstd/args.h"

/* About the bytes of a container's block; only the shape of launches depends on it. */
#define BLOCK_GUESS ((uint64_t)256 << 10)

/* The heads of the lists, units[] and next[]. */
#define HEADS_ROOM ((size_t)256)

/* Blocks whose streams are units, at most: more give all teams work as a whole. */
#define COUNTERS_MOST ((size_t)65536)

/* Chunks are decoded in waves: the most scratch memory of one, unless a chunk needs more. */
#define SCRATCH_ALL ((size_t)704 << 20)

static const lade__kernel plan_kernel = {"blosc_plan", "lade_blosc_find_blocks", 0};
static const lade__kernel plain_kernel = {"blosc_plan", "lade_blosc_plain", 0};
static const lade__kernel unshuffle_kernel = {"blosc_plan", "lade_blosc_unshuffle_all", 0};
static const lade__kernel size_kernel = {"blosc_plan", "lade_blosc_size", 0};

/* 'chunks' is of blocks of containers here. */
static const lade__lz_shape lz4_shapes[] = {
	{{"blosc_lz4", "lade_blosc_lz4_team16", LADE_LZ4_TEAM16_SHARED}, 512, 1, 2},
	{{"blosc_lz4", "lade_blosc_lz4_team8", 0}, 256, 1, 4},
	{{"blosc_lz4", "lade_blosc_lz4_team4", 0}, 128, 1, 12},
	{{"blosc_lz4", "lade_blosc_lz4_solo", 0}, 128, 4, 0},
};
static const lade__lz_shape snappy_shapes[] = {
	{{"blosc_snappy", "lade_blosc_snappy_team8", 0}, 256, 1, 4},
	{{"blosc_snappy", "lade_blosc_snappy_solo", 0}, 128, 4, 0},
};

static const lade__kernel zlib_kernel = {"blosc_zlib", "lade_blosc_zlib_team", 0};
static const lade__kernel zstd_kernel = {"blosc_zstd", "lade_blosc_zstd_team", 0};
enum { ZLIB_THREADS = 64 };

/* The memory of all blocks of zstd's kernel, at most; and of a block of zlib's. */
#define LITERALS_ALL ((size_t)256 << 20)
#define ZLIB_ROOM ((size_t)ZLIB_THREADS * LADE_DEFLATE_LANE_MAX)

/* The most blocks of these two that any device holds at once. */
#define BLOCKS_MOST ((size_t)2048)

/* ---- the workspace: | heads | counters | first | chunks | rooms of zlib or zstd | scratch | - */

typedef struct layout {
	size_t wave; /* chunks */
	size_t counter, first, chunk, rooms, scratch, scratch_size, end;
	size_t literals, zstd_blocks, zlib_blocks;
} layout;

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t round_up(size_t size)
{
	return (size + 255) & ~(size_t)255;
}

/* The decoded bytes of all chunks, at most; SIZE_MAX: not known. */
static size_t bytes_of(size_t count, uint64_t largest, uint64_t total)
{
	uint64_t most = largest && largest <= LADE_CHUNK_MAX ? largest * count : SIZE_MAX;
	return total && total < most ? total : most;
}

/* The blocks of all containers, about. */
static size_t units_of(size_t count, size_t bytes)
{
	size_t units = bytes / BLOCK_GUESS;
	return units > count ? units : count;
}

static size_t counters_of(size_t units)
{
	return round_up(least(16 * units, COUNTERS_MOST));
}

/* The streams of a block, if containers are as the stage says; only shapes depend on it. */
static size_t streams_of(const lade_stage *stage)
{
	int64_t typesize = stage->option[BLOSC_OPTION_TYPESIZE].i;
	return typesize > 0 && typesize <= 16 ? (size_t)typesize : 1;
}

static layout lay_out(const lade_stage *stage, size_t count, uint64_t largest, uint64_t total)
{
	layout l = {.wave = count, .counter = HEADS_ROOM, .end = SIZE_MAX};
	size_t bytes = bytes_of(count, largest, total);
	if (bytes > SIZE_MAX / 4)
		return l;
	size_t units = units_of(count, bytes);
	l.first = l.counter + counters_of(units) * sizeof(uint32_t);
	l.chunk = l.first + round_up(LADE_BLOSC_LISTS * count * sizeof(uint32_t));
	l.rooms = l.chunk + round_up(count * sizeof(lade_blosc_chunk));
	/* One kernel runs after the other, so that they have the same memory. */
	bool small = largest && largest < LADE_ZSTD_LITERALS_MAX;
	l.literals = small ? round_up((size_t)largest) : LADE_ZSTD_LITERALS_MAX;
	l.zstd_blocks = least(units, least(LITERALS_ALL / l.literals, BLOCKS_MOST));
	l.zlib_blocks = least(units * streams_of(stage), BLOCKS_MOST);
	size_t zstd = l.zstd_blocks * l.literals, zlib = l.zlib_blocks * ZLIB_ROOM;
	l.scratch = l.rooms + (zstd > zlib ? zstd : zlib);
	l.scratch_size = round_up(bytes + LADE_BLOSC_ROOM * count);
	if (l.scratch_size > SCRATCH_ALL && largest && largest <= LADE_CHUNK_MAX) {
		size_t each = round_up((size_t)largest + LADE_BLOSC_ROOM);
		l.wave = least(count, each < SCRATCH_ALL ? SCRATCH_ALL / each : 1);
		l.scratch_size = least(l.scratch_size, each < SCRATCH_ALL ? SCRATCH_ALL : each);
	}
	l.end = l.scratch + l.scratch_size;
	return l;
}

static size_t workspace(const lade_stage *stage, size_t count, uint64_t largest, uint64_t total)
{
	return lay_out(stage, count, largest, total).end;
}

/* ---- launches -------------------------------------------------------------------------------- */

/* Launches up to 'most' blocks, as many as the device holds: there may be any number of units. */
static lade_status fill(const lade__gpu_work *work, const lade__kernel *kernel, unsigned threads,
                        size_t most, void **arguments, lade_error *err)
{
	lade__launch launch = {
		.threads = threads, .shared = kernel->shared, .stream = work->stream};
	size_t blocks;
	lade_status status;
	TRY(lade__gpu_resident(work, kernel, threads, kernel->shared, &blocks, err));
	launch.blocks = (unsigned)least(blocks, most);
	launch.early = true;
	TRY(lade__kernel_launch(work->device, kernel, &launch, arguments, err));
out:
	return status;
}

/* Teams of several warps as long as blocks are few, even if streams are many. */
static const lade__lz_shape *shape_of(const lade__gpu_work *work, size_t blocks, size_t units,
                                      const lade__lz_shape *shapes)
{
	const lade__lz_shape *s = lade__lz_shape_of(work, units, shapes);
	return s->chunks > 1 && lade__lz_shape_of(work, blocks, shapes)->chunks == 1 ? s - 1 : s;
}

/* Decodes a wave of the batch. */
static lade_status decode_wave(const lade__gpu_work *work, const layout *l, lade_error *err)
{
	size_t bytes = bytes_of(work->count, work->largest, work->total);
	size_t blocks = units_of(work->count, bytes);
	size_t units = (blocks + work->in_flight) * streams_of(work->stage);
	lade_gpu_batch batch = lade__gpu_batch_of(work, 0);
	lade_blosc_plan plan = {.units = work->workspace,
	                        .next = work->workspace + LADE_BLOSC_LISTS * sizeof(uint32_t),
	                        .counter = work->workspace + l->counter,
	                        .first = work->workspace + l->first,
	                        .chunk = work->workspace + l->chunk,
	                        .scratch = work->workspace + l->scratch,
	                        .scratch_size = l->scratch_size,
	                        .dst_size = work->dst_size,
	                        .status = work->status,
	                        .count = (uint32_t)work->count,
	                        .largest = LADE_CHUNK_MAX,
	                        .counters = (uint32_t)counters_of(blocks)};
	lade_zstd_room zstd = {.literals = work->workspace + l->rooms,
	                       .cap = (uint32_t)l->literals};
	lade_deflate_room zlib = {.memory = work->workspace + l->rooms,
	                          .lane = LADE_DEFLATE_LANE_MAX,
	                          .words = LADE_DEFLATE_WORDS(ZLIB_THREADS / 32),
	                          .format = LADE_DEFLATE_ZLIB};
	if (work->largest && work->largest < plan.largest)
		plan.largest = (uint32_t)work->largest;
	void *both[] = {&batch, &plan}, *alone[] = {&plan}, *with_zstd[] = {&plan, &zstd};
	void *with_zlib[] = {&plan, &zlib};
	lade__launch one = {
		.blocks = 1, .threads = LADE_BLOSC_PLAN_THREADS, .stream = work->stream};
	size_t resident;
	const lade__lz_shape *lz4 = shape_of(work, blocks, units, lz4_shapes);
	const lade__lz_shape *snappy = shape_of(work, blocks, units, snappy_shapes);
	lade_status status;
	TRY(lade__kernel_launch(work->device, &plan_kernel, &one, both, err));
	TRY(fill(work, &plain_kernel, 128, SIZE_MAX, alone, err));
	TRY(fill(work, &lz4->kernel, lz4->threads, SIZE_MAX, alone, err));
	TRY(fill(work, &snappy->kernel, snappy->threads, SIZE_MAX, alone, err));
	TRY(fill(work, &zlib_kernel, ZLIB_THREADS, l->zlib_blocks, with_zlib, err));
	TRY(lade__gpu_resident(work, &zstd_kernel, LADE_ZSTD_THREADS, 0, &resident, err));
	zstd.few = blocks <= resident;
	TRY(fill(work, &zstd_kernel, LADE_ZSTD_THREADS, l->zstd_blocks, with_zstd, err));
	TRY(fill(work, &unshuffle_kernel, 128, SIZE_MAX, alone, err));
out:
	return status;
}

static lade_status decode(const lade__gpu_work *work, lade_error *err)
{
	layout l = lay_out(work->stage, work->count, work->largest, work->total);
	lade__gpu_work wave = *work;
	lade_status status = LADE_OK;
	for (size_t at = 0; at < work->count && status == LADE_OK; at += wave.count) {
		wave.count = least(l.wave, work->count - at);
		wave.src = work->src + 8 * at;
		wave.src_size = work->src_size + 8 * at;
		wave.dst = work->dst + 8 * at;
		wave.dst_cap = work->dst_cap + 8 * at;
		wave.dst_size = work->dst_size ? work->dst_size + 8 * at : 0;
		wave.status = work->status ? work->status + 4 * at : 0;
		wave.before = work->before ? work->before + 4 * at : 0;
		status = decode_wave(&wave, &l, err);
	}
	return status;
}

static lade_status sizes(const lade__gpu_work *work, lade_error *err)
{
	return lade__gpu_launch_sizes(work, &size_kernel, 128, err);
}

/* Nanoseconds: seven launches, and a chunk's own time, or what the whole device does, as an H200
 * was measured with LZ4 and Zstd (docs/performance/log/gpu-blosc.md); Snappy and zlib are
 * estimates.  The host decodes BloscLZ: the kernel for it is a slow one. */
static double cost(void *ctx, const lade_workload *w)
{
	(void)ctx;
	static const double alone_ns[] = {-1, 55e3, 55e3, 80e3, 200e3, 310e3};
	static const double rates[] = {-1, 500, 500, 340, 100, 184};
	int64_t inside = w->stage->option[BLOSC_OPTION_CNAME].i;
	if (alone_ns[inside] < 0 || w->has_dict || w->largest > LADE_CHUNK_MAX)
		return -1;
	double alone = alone_ns[inside] * ((double)w->largest / 65536 + 0.05);
	double all = (double)w->total / rates[inside];
	return 25000 + (alone > all ? alone : all);
}

static const lade__gpu_codec codec = {.workspace = workspace, .enqueue = decode, .sizes = sizes};

const lade__gpu_implementation lade__blosc_decode_gpu =
	LADE__GPU_RECORD("blosc", LADE_DECODE, codec, cost);
