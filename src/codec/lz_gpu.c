/*
 * lz_gpu.c: LZ4 and Snappy on devices: which kernel, with how many blocks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/gpu.h"
#include "base/try.h"
#include "codec/codecs.h"
#include "codec/lz4/lz4.h"

/*
 * A kernel's shape: a block of 'threads' takes 'chunks' of a batch at once and has 'shared' bytes
 * of dynamic shared memory.  It is for batches of up to 'most' chunks a multiprocessor: the fewer
 * there are, the more warps work on each (docs/performance/gpu-lz.md, gpu-lz-encode.md).  The last
 * shape of a list, with 0, takes any number.
 */
typedef struct shape {
	lade__kernel kernel;
	unsigned threads, chunks;
	size_t shared;
	unsigned most;
} shape;

#define DECODER(codec, what, crew)                                                             \
	{                                                                                      \
		{LADE__KERNEL_##codec##_##what##_TEAM16, 512, 1, crew, 2},                     \
		{LADE__KERNEL_##codec##_##what##_TEAM8, 256, 1, 0, 4},                         \
		{LADE__KERNEL_##codec##_##what##_TEAM4, 128, 1, 0, 12},                        \
		{LADE__KERNEL_##codec##_##what##_SOLO, 128, 4, 0, 0},                          \
	}
static const shape lz4_decoder[] = DECODER(LZ4, DECODE, 76256);
static const shape snappy_decoder[] = DECODER(SNAPPY, DECODE, 80352);
static const shape lz4_unshuffle[] = DECODER(LZ4, UNSHUFFLE, 76256);
static const shape snappy_unshuffle[] = DECODER(SNAPPY, UNSHUFFLE, 80352);

#define ENCODER(codec)                                                                         \
	{                                                                                      \
		{LADE__KERNEL_##codec##_ENCODE_TEAM16, 512, 1, 146832, 1},                     \
		{LADE__KERNEL_##codec##_ENCODE_TEAM8, 256, 1, 73616, 12},                      \
		{LADE__KERNEL_##codec##_ENCODE, 160, 5, 0, 0},                                 \
	}
static const shape lz4_encoder[] = ENCODER(LZ4);
static const shape snappy_encoder[] = ENCODER(SNAPPY);

/* ---- launches -------------------------------------------------------------------------------- */

static size_t workspace(const lade_stage *stage, size_t count, uint64_t largest, uint64_t total)
{
	(void)stage, (void)count, (void)largest, (void)total;
	return LADE__GPU_COUNTER;
}

static const shape *choose(const lade__gpu_work *work, const shape *s)
{
	const lade_device_info *info = &work->device->info;
	size_t count = work->count + work->in_flight;
	while (s->most && (s->shared > info->block_shared_max ||
	                   count > (size_t)s->most * info->multiprocessors))
		s++;
	return s;
}

/* 'option' is the kernel's second argument; NULL: it has none. */
static lade_status launch(const lade__gpu_work *work, const shape *shapes, const void *option,
                          lade_error *err)
{
	const shape *s = choose(work, shapes);
	lade__gpu_batch batch = lade__gpu_batch_of(work, 0);
	void *arguments[] = {&batch, (void *)(uintptr_t)option};
	lade__launch l = {.threads = s->threads, .shared = s->shared, .stream = work->stream};
	return lade__gpu_launch_turns(work, s->kernel, l,
	                              (work->count + s->chunks - 1) / s->chunks, &batch, arguments,
	                              err);
}

/* struct lade_lz_unshuffle of cuda/unshuffle.cuh. */
typedef struct unshuffle {
	lade__address dst;
	uint32_t size, partial;
} unshuffle;

static lade_status decode(const lade__gpu_work *work, const shape *plain, const shape *shuffled,
                          lade_error *err)
{
	unshuffle u = {work->to, work->unshuffle, (uint32_t)work->partial};
	return u.size ? launch(work, shuffled, &u, err) : launch(work, plain, NULL, err);
}

static lade_status lz4_decode(const lade__gpu_work *work, lade_error *err)
{
	return decode(work, lz4_decoder, lz4_unshuffle, err);
}

static lade_status snappy_decode(const lade__gpu_work *work, lade_error *err)
{
	return decode(work, snappy_decoder, snappy_unshuffle, err);
}

static lade_status lz4_sizes(const lade__gpu_work *work, lade_error *err)
{
	return lade__gpu_launch_sizes(work, LADE__KERNEL_LZ4_SIZE, 4, err);
}

static lade_status snappy_sizes(const lade__gpu_work *work, lade_error *err)
{
	return lade__gpu_launch_sizes(work, LADE__KERNEL_SNAPPY_SIZE, 128, err);
}

/* ---- encoding -------------------------------------------------------------------------------- */

static uint32_t elem_of(const lade_stage *stage)
{
	return (uint32_t)stage->option[stage->algorithm->option_count - 1].i;
}

lade_status lade__elem_check(const lade_stage *stage, lade_error *err)
{
	uint32_t elem = elem_of(stage);
	if (elem && !(elem & (elem - 1)))
		return LADE_OK;
	return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s: elem is %u, want 1, 2, 4 or 8",
	                 stage->algorithm->name, elem);
}

static lade_status lz4_encode(const lade__gpu_work *work, lade_error *err)
{
	uint32_t elem = elem_of(work->stage);
	return launch(work, lz4_encoder, &elem, err);
}

static lade_status snappy_encode(const lade__gpu_work *work, lade_error *err)
{
	uint32_t elem = elem_of(work->stage);
	return launch(work, snappy_encoder, &elem, err);
}

/* ---- costs ----------------------------------------------------------------------------------- */

/* Nanoseconds of the kernels: a chunk's own time, at 64 KiB 'chunk_ns', or what the whole device
 * does at 'rate' bytes a nanosecond. */
static double kernel_cost(const lade_workload *w, double chunk_ns, double rate)
{
	if (w->has_dict || w->largest > (size_t)1 << 30)
		return -1;
	double alone = chunk_ns * ((double)w->largest / 65536 + 0.05);
	double all = (double)w->total / rate;
	return 5000 + (alone > all ? alone : all);
}

static double decode_cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	return kernel_cost(workload, 80e3, 400);
}

static double encode_cost(void *ctx, const lade_workload *workload)
{
	/* The kernels are fast encoders: they do not stand in for the slow levels of LZ4. */
	bool slow = workload->stage->algorithm->option_count > 1 &&
	            workload->stage->option[0].i >= LADE__LZ4_HC_LEVEL;
	(void)ctx;
	return slow ? -1 : kernel_cost(workload, 120e3, 140);
}

/* ---- records --------------------------------------------------------------------------------- */

static const lade__gpu_codec lz4_decode_codec = {.workspace = workspace,
                                                  .enqueue = lz4_decode,
                                                  .sizes = lz4_sizes,
                                                  .unshuffles = true};
static const lade__gpu_codec snappy_decode_codec = {.workspace = workspace,
                                                  .enqueue = snappy_decode,
                                                  .sizes = snappy_sizes,
                                                  .unshuffles = true};
static const lade__gpu_codec lz4_encode_codec = {.workspace = workspace,
                                                  .enqueue = lz4_encode};
static const lade__gpu_codec snappy_encode_codec = {.workspace = workspace,
                                                  .enqueue = snappy_encode};

#define RECORD(codec, way, verb) \
	const lade_implementation lade__##codec##_##verb##_gpu = \
		LADE__GPU_RECORD(#codec, way, codec##_##verb##_codec, verb##_cost);
RECORD(lz4, LADE_ENCODE, encode)
RECORD(lz4, LADE_DECODE, decode)
RECORD(snappy, LADE_ENCODE, encode)
RECORD(snappy, LADE_DECODE, decode)
