/*
 * gpu.c: which kernel of an LZ format a batch gets, with how many blocks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/lz/gpu.h"

size_t lade__lz_workspace(const lade_stage *stage, size_t count, uint64_t largest, uint64_t total)
{
	(void)stage, (void)count, (void)largest, (void)total;
	return LADE__GPU_COUNTER;
}

const lade__lz_shape *lade__lz_shape_of(const lade__gpu_work *work, size_t count,
                                        const lade__lz_shape *s)
{
	const lade_device_info *info = &work->device->info;
	while (s->most && (s->kernel.shared > info->block_shared_max ||
	                   count > (size_t)s->most * info->multiprocessors))
		s++;
	return s;
}

/* 'option' is the kernel's second argument; NULL: it has none. */
static lade_status launch(const lade__gpu_work *work, const lade__lz_shape *shapes,
                          const void *option, lade_error *err)
{
	size_t count = work->count + work->in_flight;
	const lade__lz_shape *s = lade__lz_shape_of(work, count, shapes);
	lade_gpu_batch batch = lade__gpu_batch_of(work, 0);
	void *arguments[] = {&batch, (void *)(uintptr_t)option};
	lade__launch l = {.blocks = (unsigned)((work->count + s->chunks - 1) / s->chunks),
	                  .threads = s->threads,
	                  .shared = s->kernel.shared,
	                  .stream = work->stream};
	return lade__gpu_launch_turns(work, &s->kernel, l, arguments, err);
}

lade_status lade__lz_decode(const lade__gpu_work *work, const lade__lz_shape *shapes,
                            const lade__lz_shape *shuffled, lade_error *err)
{
	lade_lz_unshuffle u = {work->to, work->unshuffle, (uint32_t)work->partial};
	return u.size ? launch(work, shuffled, &u, err) : launch(work, shapes, NULL, err);
}

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

lade_status lade__lz_encode(const lade__gpu_work *work, const lade__lz_shape *shapes,
                            lade_error *err)
{
	uint32_t elem = elem_of(work->stage);
	return launch(work, shapes, &elem, err);
}

/* ---- costs ----------------------------------------------------------------------------------- */

/* Nanoseconds of the kernels: a chunk's own time, at 64 KiB 'chunk_ns', or what the whole device
 * does at 'rate' bytes a nanosecond. */
static double kernel_cost(const lade_workload *w, double chunk_ns, double rate)
{
	if (w->has_dict || w->largest > LADE_CHUNK_MAX)
		return -1;
	double alone = chunk_ns * ((double)w->largest / 65536 + 0.05);
	double all = (double)w->total / rate;
	return 5000 + (alone > all ? alone : all);
}

double lade__lz_decode_cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	return kernel_cost(workload, 80e3, 400);
}

double lade__lz_encode_cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	return kernel_cost(workload, 120e3, 140);
}
