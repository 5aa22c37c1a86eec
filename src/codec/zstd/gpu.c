/*
 * gpu.c: Zstandard on devices: how many blocks decode a batch, their memory for literals, and
 * dictionaries.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "codec/zstd/args.h"
#include "codec/zstd/zstd.h"
#include "gpu/work.h"

#include <stdlib.h>

/* All blocks' memory for literals, at most; and the most blocks that any device holds at once. */
#define LITERALS_ALL ((size_t)256 << 20)
#define BLOCKS_MOST ((size_t)4096)
#define COUNTER_ROOM ((size_t)256)

static const lade__kernel decode_kernel = {"zstd_decode", "lade_zstd_decode", 0};
static const lade__kernel dict_kernel = {"zstd_dict", "lade_zstd_decode_dict", 0};
static const lade__kernel prepare_kernel = {"zstd_dict", "lade_zstd_prepare", 0};
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

static lade_status decode(const lade__gpu_work *work, lade_error *err)
{
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

/* Nanoseconds: a chunk's own time, or what the whole device does. */
static double cost(void *ctx, const lade_workload *w)
{
	(void)ctx;
	if (w->largest > LADE_CHUNK_MAX)
		return -1;
	double alone = 400e3 * ((double)w->largest / 65536 + 0.05), all = (double)w->total / 100;
	return 10000 + (alone > all ? alone : all);
}

static const lade__gpu_codec codec = {.workspace = workspace, .enqueue = decode, .sizes = sizes};

const lade__gpu_implementation lade__zstd_decode_gpu =
	LADE__GPU_RECORD("zstd", LADE_DECODE, codec, cost);
