/*
 * gpu.c: Zstandard on devices: which kernels decode a batch, with how many blocks and how much
 * memory, and dictionaries.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "codec/zstd/args.h"
#include "codec/zstd/zstd.h"
#include "gpu/work.h"

#include <stddef.h>
#include <stdlib.h>

/* All blocks' memory for literals, at most; and the most blocks that any device holds at once. */
#define LITERALS_ALL ((size_t)256 << 20)
#define BLOCKS_MOST ((size_t)4096)
#define COUNTER_ROOM ((size_t)256)

/* What is decoded at once by blocks side by side has so much memory at most, unless one chunk needs
 * more. */
#define WAVE_ALL ((uint64_t)1 << 30)

static const lade__kernel decode_kernel = {"zstd_decode", "lade_zstd_decode", 0};
static const lade__kernel dict_kernel = {"zstd_dict", "lade_zstd_decode_dict", 0};
static const lade__kernel prepare_kernel = {"zstd_dict", "lade_zstd_prepare", 0};
static const lade__kernel size_kernel = {"zstd_decode", "lade_zstd_size", 0};
static const lade__kernel find_kernel = {"zstd_blocks", "lade_zstd_find", 0};
static const lade__kernel read_kernel = {"zstd_blocks", "lade_zstd_read_blocks", 0};
static const lade__kernel sequences_kernel = {"zstd_blocks", "lade_zstd_read_block_sequences", 0};
static const lade__kernel literals_kernel = {"zstd_blocks", "lade_zstd_read_block_literals", 0};
static const lade__kernel execute4_kernel = {"zstd_execute", "lade_zstd_execute4", 0};
static const lade__kernel execute8_kernel = {"zstd_execute", "lade_zstd_execute8", 0};
static const lade__kernel execute16_kernel = {"zstd_execute", "lade_zstd_execute16",
                                              LADE_ZSTD_TEAM16_SHARED};

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

/* ---- blocks side by side: their memory ------------------------------------------------------ */

/* Whether it is for chunks of 'largest' bytes: these have several blocks. */
static bool side_by_side(uint64_t largest)
{
	return largest > LADE_ZSTD_BLOCK_MAX;
}

static uint64_t round256(uint64_t size)
{
	return (size + 255) & ~(uint64_t)255;
}

/* The memory of 'chunks' chunks of 'bytes' bytes in all, p->largest at most each, from 'to' on;
 * returns its size. */
static uint64_t wave_of(lade_zstd_plan *p, lade__address to, uint64_t bytes, uint64_t chunks)
{
	uint64_t units = bytes / LADE_ZSTD_UNIT_BYTES + LADE_ZSTD_UNITS_MORE * chunks;
	lade__address begin = to;
	p->counts = to;
	to += round256(sizeof(lade_zstd_counts));
	p->head = to;
	to += round256(LADE_ZSTD_HEAD_SIZE * chunks);
	p->unit = to;
	to += round256(LADE_ZSTD_UNIT_SIZE * units);
	p->list = to;
	to += round256(sizeof(uint32_t) * chunks);
	p->sequences = to;
	to += round256(sizeof(uint32_t) * units);
	p->literals = to;
	to += round256(4 * sizeof(uint32_t) * units);
	p->pool = to;
	p->pool_size = round256(LADE_ZSTD_POOL(bytes, units) - (bytes - p->largest) / 2);
	p->units = units < LADE_ZSTD_UNITS_MAX ? (uint32_t)units : LADE_ZSTD_UNITS_MAX;
	return to + p->pool_size - begin;
}

static uint64_t wave_size(uint64_t largest, uint64_t bytes, uint64_t chunks)
{
	lade_zstd_plan p = {.largest = (uint32_t)largest};
	return wave_of(&p, 0, bytes, chunks);
}

/* The chunks of 'largest' bytes that 'size' bytes hold, at least one. */
static uint64_t wave_chunks(uint64_t largest, uint64_t size)
{
	uint64_t one = wave_size(largest, largest, 1), two = wave_size(largest, 2 * largest, 2);
	/* What a chunk adds, and rounding. */
	return size < two ? 1 : 1 + (size - one) / (two - one + 3072);
}

/* The decoded bytes of all; where they are not known, the most that they can be. */
static uint64_t bytes_of(uint64_t count, uint64_t largest, uint64_t total)
{
	return total >= largest ? total : count * largest;
}

static size_t workspace(const lade_stage *stage, size_t count, uint64_t largest, uint64_t total)
{
	(void)stage;
	size_t literals = literals_of(largest);
	size_t one_by_one = COUNTER_ROOM + blocks_of(count, literals) * literals;
	if (!side_by_side(largest))
		return one_by_one;
	uint64_t size = wave_size(largest, bytes_of(count, largest, total), count);
	if (size > WAVE_ALL) {
		uint64_t chunks = wave_chunks(largest, WAVE_ALL);
		chunks = chunks < count ? chunks : count;
		size = wave_size(largest, chunks * largest, chunks);
	}
	return size > one_by_one ? (size_t)size : one_by_one;
}

/* ---- dictionaries -------------------------------------------------------------------------- */

/* A dictionary on a device, whose memory is | tables | bytes |. */
typedef struct device_dict {
	int32_t device;
	lade_zstd_dict on;
} device_dict;

static const char dict_key;

static void dict_free(void *prepared)
{
	device_dict *d = prepared;
	lade__device *device;
	if (d->on.prepared && lade__device_use(d->device, &device, NULL) == LADE_OK) {
		device->driver->cuMemFree(d->on.prepared);
		lade__device_leave(device);
	}
	free(d);
}

/* Brings the bytes there, and makes the tables, on an entered device. */
static lade_status dict_bring(lade__device *device, device_dict *d, lade_cspan data,
                              lade_error *err)
{
	size_t tables = (sizeof(lade_zstd_prepared) + 255) & ~(size_t)255;
	lade__launch launch = {.blocks = 1, .threads = 32};
	void *arguments[] = {&d->on};
	lade_status status;
	TRY(lade_stream_new(device->number, &launch.stream, err));
	TRY(LADE__CU(device, cuMemAlloc, &d->on.prepared, tables + data.size));
	d->on.bytes = d->on.prepared + tables;
	d->on.size = (uint32_t)data.size;
	TRY(LADE__CU(device, cuMemcpyHtoDAsync, d->on.bytes, data.data, data.size, launch.stream));
	TRY(lade__kernel_launch(device, &prepare_kernel, &launch, arguments, err));
	TRY(lade_stream_wait(device->number, launch.stream, err));
out:
	lade_stream_free(device->number, launch.stream);
	return status;
}

static void *dict_make(lade_cspan data, int number)
{
	lade__device *device;
	device_dict *d = data.size > LADE_CHUNK_MAX ? NULL : calloc(1, sizeof *d);
	if (!d)
		return NULL;
	d->device = number;
	lade_status status = lade__device_use(number, &device, NULL);
	if (status == LADE_OK) {
		status = dict_bring(device, d, data, NULL);
		lade__device_leave(device);
	}
	if (status == LADE_OK)
		return d;
	dict_free(d);
	return NULL;
}

static lade_status dict_of(const lade__gpu_work *work, const lade_zstd_dict **out, lade_error *err)
{
	int number = work->device->number;
	const device_dict *d =
		lade_dict_prepared(work->dict, &dict_key, number, dict_make, dict_free);
	*out = d ? &d->on : NULL;
	return d ? LADE_OK
	         : lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
	                     "zstd: the dictionary of %zu bytes cannot be brought to device %d",
	                     lade_dict_data(work->dict).size, number);
}

/* ---- decoding ------------------------------------------------------------------------------ */

/* The warps that execute a chunk where there are 'count'. */
static unsigned executors(const lade__gpu_work *work, size_t count, const lade__kernel **kernel)
{
	const lade_device_info *info = &work->device->info;
	size_t each = count / info->multiprocessors;
	if (each < 1 && info->block_shared_max >= LADE_ZSTD_TEAM16_SHARED) {
		*kernel = &execute16_kernel;
		return 16;
	}
	*kernel = each < 3 ? &execute8_kernel : &execute4_kernel;
	return each < 3 ? 8 : 4;
}

/* Decodes the batch's chunks, by blocks side by side; 'p' has their memory. */
static lade_status decode_wave(const lade__gpu_work *work, lade_gpu_batch batch, lade_zstd_plan *p,
                               uint64_t bytes, lade_error *err)
{
	size_t readers, blocks;
	lade_status status;
	TRY(lade__gpu_resident(work, &read_kernel, 32, 0, &readers, err));
	TRY(lade__gpu_resident(work, &decode_kernel, LADE_ZSTD_THREADS, 0, &blocks, err));
	p->few = bytes / LADE_ZSTD_BLOCK_MAX <= readers / 2;
	TRY(LADE__CU(work->device, cuMemsetD32Async, p->counts, 0, sizeof(lade_zstd_counts) / 4,
	             work->stream));
	void *arguments[] = {&batch, p};
	lade__launch launch = {.blocks = (batch.count + 3) / 4, .threads = 128,
	                       .stream = work->stream};
	TRY(lade__kernel_launch(work->device, &find_kernel, &launch, arguments, err));

	/* No more warps than most batches have units, so that these spread over the device. */
	uint64_t most = 2 * (bytes / LADE_ZSTD_BLOCK_MAX + batch.count);
	launch.threads = 32;
	for (int k = 0; k < 2; k++) {
		const lade__kernel *read = p->few ? &read_kernel
		                           : k    ? &literals_kernel
		                                  : &sequences_kernel;
		if (p->few && k)
			break;
		TRY(lade__gpu_resident(work, read, 32, 0, &readers, err));
		launch.blocks = (unsigned)(readers < most ? readers : most);
		TRY(lade__kernel_launch(work->device, read, &launch, &arguments[1], err));
	}

	const lade__kernel *execute;
	launch.threads = 32 * executors(work, batch.count, &execute);
	launch.blocks = batch.count;
	launch.shared = execute->shared;
	TRY(lade__kernel_launch(work->device, execute, &launch, arguments, err));

	/* What is left: literals have the pool, which nobody needs any more. */
	lade_zstd_room room = {.literals = p->pool, .cap = LADE_ZSTD_LITERALS_MAX,
	                       .few = batch.count <= blocks, .list = p->list,
	                       .listed = p->counts + offsetof(lade_zstd_counts, listed)};
	most = p->pool_size / LADE_ZSTD_LITERALS_MAX;
	most = most < batch.count ? most : batch.count;
	arguments[1] = &room;
	batch.next = p->counts + offsetof(lade_zstd_counts, turn);
	launch = (lade__launch){.blocks = (unsigned)(blocks < most ? blocks : most),
	                        .threads = LADE_ZSTD_THREADS,
	                        .stream = work->stream};
	TRY(lade__kernel_launch(work->device, &decode_kernel, &launch, arguments, err));
out:
	return status;
}

/* Decodes by blocks side by side, as many chunks at once as there is memory for. */
static lade_status decode_side_by_side(const lade__gpu_work *work, lade_error *err)
{
	uint64_t largest = work->largest, bytes = bytes_of(work->count, largest, work->total);
	size_t wave = work->count;
	lade_status status = LADE_OK;
	if (wave_size(largest, bytes, wave) > work->workspace_size) {
		wave = (size_t)wave_chunks(largest, work->workspace_size);
		bytes = wave * largest;
	}
	for (size_t i = 0; i < work->count && status == LADE_OK; i += wave) {
		size_t count = work->count - i < wave ? work->count - i : wave;
		lade_gpu_batch batch = lade__gpu_batch_of(work, 0);
		lade_zstd_plan plan = {.largest = (uint32_t)largest, .more = LADE_ZSTD_UNITS_MORE};
		wave_of(&plan, work->workspace, bytes, wave);
		batch.src += i * sizeof(uint64_t);
		batch.src_size += i * sizeof(uint64_t);
		batch.dst += i * sizeof(uint64_t);
		batch.dst_cap += i * sizeof(uint64_t);
		batch.dst_size += i * sizeof(uint64_t);
		batch.status += i * sizeof(uint32_t);
		batch.before += batch.before ? i * sizeof(uint32_t) : 0;
		batch.count = (uint32_t)count;
		status = decode_wave(work, batch, &plan, bytes, err);
	}
	return status;
}

static lade_status decode(const lade__gpu_work *work, lade_error *err)
{
	if (side_by_side(work->largest) && work->largest <= LADE_CHUNK_MAX && !work->dict)
		return decode_side_by_side(work, err);
	lade_gpu_batch batch = lade__gpu_batch_of(work, work->workspace);
	size_t literals = literals_of(work->largest), blocks = blocks_of(work->count, literals);
	lade_zstd_room room = {.literals = work->workspace + COUNTER_ROOM,
	                       .cap = (uint32_t)literals};
	lade_zstd_dict dict = {0};
	const lade_zstd_dict *given;
	void *arguments[] = {&batch, &room, &dict}; /* decode_kernel takes two */
	const lade__kernel *kernel = work->dict ? &dict_kernel : &decode_kernel;
	size_t resident;
	lade_status status;
	if (work->dict) {
		TRY(dict_of(work, &given, err));
		dict = *given;
	}
	TRY(lade__gpu_resident(work, kernel, LADE_ZSTD_THREADS, 0, &resident, err));
	room.few = work->count <= resident;
	lade__launch launch = {.blocks = (unsigned)(blocks < resident ? blocks : resident),
	                       .threads = LADE_ZSTD_THREADS,
	                       .stream = work->stream};
	TRY(LADE__CU(work->device, cuMemsetD32Async, batch.next, 0, 1, work->stream));
	TRY(lade__kernel_launch(work->device, kernel, &launch, arguments, err));
out:
	return status;
}

static lade_status sizes(const lade__gpu_work *work, lade_error *err)
{
	return lade__gpu_launch_sizes(work, &size_kernel, 128, err);
}

/* Nanoseconds: a chunk's own time, or what the whole device does.  H200, means of 12 sets, November
 * 2026: 315 us for a chunk of 64 KiB, 900 us for one of 1 MiB. */
static double cost(void *ctx, const lade_workload *w)
{
	(void)ctx;
	if (w->largest > LADE_CHUNK_MAX)
		return -1;
	bool side = side_by_side(w->largest) && !w->has_dict;
	double parts = (double)w->largest / 65536, all = (double)w->total / 100;
	double alone = side ? 350e3 + 35e3 * parts : 400e3 * (parts + 0.05);
	return 10000 + (alone > all ? alone : all);
}

static const lade__gpu_codec codec = {.workspace = workspace, .enqueue = decode, .sizes = sizes};

const lade__gpu_implementation lade__zstd_decode_gpu =
	LADE__GPU_RECORD("zstd", LADE_DECODE, codec, cost);
