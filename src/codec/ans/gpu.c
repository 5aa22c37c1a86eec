/*
 * gpu.c: ANS on devices: which kernel, with how many blocks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/work.h"
#include "base/try.h"
#include "codec/ans/ans.h"
#include "codec/ans/args.h"

/*
 * Blocks of ans_encode.cu for elements of 1 byte, by sub-block size (4, 8, 16 KiB), then for many,
 * some and few chunks.  Small blocks, with memory for a sub-block a warp, hide latencies.  16 warps
 * are fastest for a single chunk; every device with kernels has that much shared memory.
 */
static const struct shape {
	unsigned threads, shared;
} encode_shape[][3] = {
	{{128, 27136}, {256, 55296}, {512, LADE_ANS_BYTES_SHARED}},
	{{128, 36096}, {256, 70912}, {512, LADE_ANS_BYTES_SHARED}},
	{{128, 68864}, {128, 68864}, {512, LADE_ANS_BYTES_SHARED}},
};

/* For wide elements, three blocks of 8 warps with 64 KiB of staging fill an H200's multiprocessor,
 * or two for elements of 8 bytes; as do six or five blocks of 4 warps with 16 or 32 KiB. */
#define STAGING_LEAST 16384u

static const lade__kernel decode_kernel = {"ans_decode", "lade_ans_decode", LADE_ANS_DECODE_FOUR};
static const lade__kernel wide_kernel = {"ans_decode", "lade_ans_decode_wide",
                                         LADE_ANS_DECODE_WIDE};
static const lade__kernel size_kernel = {"ans_decode", "lade_ans_size", 0};
/* By log2 of an element's width; the second of each stages less of a chunk. */
static const lade__kernel encode_kernels[][2] = {
	{{"ans_encode", "lade_ans_encode_1", LADE_ANS_BYTES_SHARED}},
	{{"ans_encode", "lade_ans_encode_2", LADE_ANS_WIDE_SHARED(LADE_ANS_STAGING, 2)},
         {"ans_encode", "lade_ans_encode_small_2",
          LADE_ANS_WIDE_SHARED(LADE_ANS_STAGING_SMALL, 2)}},
	{{"ans_encode", "lade_ans_encode_4", LADE_ANS_WIDE_SHARED(LADE_ANS_STAGING, 4)},
         {"ans_encode", "lade_ans_encode_small_4",
          LADE_ANS_WIDE_SHARED(LADE_ANS_STAGING_SMALL, 4)}},
	{{"ans_encode", "lade_ans_encode_8", LADE_ANS_WIDE_SHARED(LADE_ANS_STAGING, 8)},
         {"ans_encode", "lade_ans_encode_small_8",
          LADE_ANS_WIDE_SHARED(LADE_ANS_STAGING_SMALL, 8)}},
};

/* Up to this many parts a multiprocessor, each part gets 16 warps. */
#define WIDE_AN_SM 2

/* The least bytes of a part: 16 sub-blocks of the default size. */
#define PART ((uint64_t)65536)

static size_t decode_workspace(const lade_stage *stage, size_t count, uint64_t largest,
                               uint64_t total)
{
	(void)stage, (void)largest, (void)total;
	return count * sizeof(lade_ans_parts);
}

/*
 * How many blocks share a chunk.  With few chunks, three blocks a multiprocessor.  Elements that
 * are wider than bytes have few symbols to build tables for: there, many blocks, so that all finish
 * at about the same time.
 */
static size_t parts_of(const lade__gpu_work *work)
{
	int64_t dtype = work->stage->option[ANS_OPTION_DTYPE].i;
	size_t an_sm = lade_dtype_size((lade_dtype)dtype) > 1 ? 120 : 3;
	size_t most = an_sm * (size_t)work->device->info.multiprocessors / work->count;
	uint64_t want = work->largest ? (work->largest + PART - 1) / PART : 8;
	want = want < most ? want : most;
	return want > 1 ? (size_t)want : 1;
}

static lade_status decode(const lade__gpu_work *work, lade_error *err)
{
	const lade_device_info *info = &work->device->info;
	lade_gpu_batch batch = lade__gpu_batch_of(work, 0);
	size_t parts = parts_of(work), tasks = work->count * parts;
	size_t an_sm = (tasks + info->multiprocessors - 1) / info->multiprocessors;
	bool wide = tasks + work->in_flight <= (size_t)info->multiprocessors * WIDE_AN_SM &&
	            info->block_shared_max >= LADE_ANS_DECODE_WIDE;
	const lade__kernel *kernel = wide ? &wide_kernel : &decode_kernel;
	/* Six to eight blocks a multiprocessor are shared evenly by two rounds of four. */
	lade__launch launch = {.blocks = (unsigned)tasks,
	                       .threads = wide ? 512 : 256,
	                       .shared = wide                     ? LADE_ANS_DECODE_WIDE
	                                 : an_sm > 5 && an_sm < 9 ? LADE_ANS_DECODE_FOUR
	                                                          : LADE_ANS_DECODE_SHARED,
	                       .stream = work->stream};
	lade__address done = work->workspace;
	uint32_t part_count = (uint32_t)parts, bytes = (uint32_t)launch.shared;
	void *arguments[] = {&batch, &done, &part_count, &bytes};
	lade_status status;
	if (parts > 1)
		TRY(LADE__CU(work->device, cuMemsetD32Async, done, 0,
		             work->count * sizeof(lade_ans_parts) / sizeof(uint32_t),
		             work->stream));
	TRY(lade__kernel_launch(work->device, kernel, &launch, arguments, err));
out:
	return status;
}

static size_t encode_workspace(const lade_stage *stage, size_t count, uint64_t largest,
                               uint64_t total)
{
	(void)stage, (void)count, (void)largest, (void)total;
	return LADE__GPU_COUNTER;
}

/* How much of a chunk of wide elements a block stages; below LADE_ANS_STAGING it has 4 warps.
 * Small blocks hide latencies, so they are better if there are enough of them and the chunk fits.
 * The encoded bytes depend on this (by where a chunk is sampled), so it must not depend on other
 * work in flight. */
static uint32_t staging_of(const lade__gpu_work *work, uint32_t block_log)
{
	size_t sms = work->device->info.multiprocessors;
	if (!work->largest || block_log != ANS_BLOCK_LOG_MIN)
		return LADE_ANS_STAGING;
	if (work->largest <= STAGING_LEAST ||
	    (work->largest > LADE_ANS_STAGING && work->count > 3 * sms))
		return STAGING_LEAST;
	bool small = work->largest <= LADE_ANS_STAGING_SMALL && work->count > 2 * sms;
	return small ? LADE_ANS_STAGING_SMALL : LADE_ANS_STAGING;
}

static lade_status encode(const lade__gpu_work *work, lade_error *err)
{
	const lade_device_info *info = &work->device->info;
	const lade_value *option = work->stage->option;
	lade_gpu_batch batch = lade__gpu_batch_of(work, 0);
	size_t width = lade_dtype_size((lade_dtype)option[ANS_OPTION_DTYPE].i);
	const lade__kernel *kernel = encode_kernels[__builtin_ctzll(width)];
	uint32_t bits = (uint32_t)option[ANS_OPTION_BITS].i;
	uint64_t block = (uint64_t)option[ANS_OPTION_BLOCK].i;
	uint64_t largest = work->largest ? work->largest : ANS_SIZE_MAX;
	size_t items = work->count + work->in_flight, sms = info->multiprocessors;
	/* For elements of 1 byte each chunk's size sets its sub-blocks, except with few chunks:
	 * small sub-blocks then keep the device busy when they are decoded.  The block's memory is
	 * set by the largest chunk. */
	bool small = width > 1 || work->count <= 2 * sms;
	uint32_t log = block   ? (uint32_t)__builtin_ctzll(block)
	               : small ? ANS_BLOCK_LOG_MIN
	                       : ANS_BLOCK_LOG_OF(largest, width);
	uint32_t block_log = block || small ? log : 0;
	unsigned form = items <= 2 * sms ? 2 : items > 8 * sms ? 0 : 1;
	struct shape shape = encode_shape[log - ANS_BLOCK_LOG_MIN][form];
	uint32_t staging = staging_of(work, log);
	if (width > 1) {
		unsigned threads = staging < LADE_ANS_STAGING ? 128 : 256;
		if (staging < LADE_ANS_STAGING)
			kernel++;
		shape = (struct shape){threads, LADE_ANS_WIDE_SHARED(staging, (uint32_t)width)};
	}
	uint32_t bytes = shape.shared, signs = option[ANS_OPTION_DTYPE].i == LADE_BF16;
	/* Only the kernel for halves takes the last one. */
	void *arguments[] = {&batch, &block_log, &bits, &bytes, &staging, &signs};
	lade__launch launch = {.blocks = (unsigned)work->count, .threads = shape.threads,
	                       .shared = shape.shared, .stream = work->stream};
	return lade__gpu_launch_turns(work, kernel, launch, arguments, err);
}

static lade_status sizes(const lade__gpu_work *work, lade_error *err)
{
	return lade__gpu_launch_sizes(work, &size_kernel, 128, err);
}

/* Nanoseconds of the kernels: the fixed time of a sub-block, and the device's time a byte. */
static double decode_cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	if (workload->largest > LADE_CHUNK_MAX)
		return -1;
	return 10e3 + (double)workload->total / 1000;
}

/* A block encodes a chunk. */
static double encode_cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	if (workload->largest > LADE_CHUNK_MAX)
		return -1;
	double alone = 20e3 * ((double)workload->largest / 65536 + 0.5);
	double all = (double)workload->total / 600;
	return 5e3 + (alone > all ? alone : all);
}

static const lade__gpu_codec encode_codec = {encode_workspace, encode, NULL, NULL, false, NULL};
static const lade__gpu_codec decode_codec = {decode_workspace, decode, sizes, NULL, false, NULL};

#define RECORD(way, verb) \
	const lade__gpu_implementation lade__ans_##verb##_gpu = \
		LADE__GPU_RECORD("ans", way, verb##_codec, verb##_cost);
RECORD(LADE_ENCODE, encode)
RECORD(LADE_DECODE, decode)
