/*
 * work.h: what a stage's implementation for devices is, and how the engine calls it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_GPU_WORK_H
#define LADE_GPU_WORK_H

#include "base/set.h"
#include "gpu/args.h"
#include "gpu/device.h"
#include "gpu/module.h"

/*
 * A batch for one stage.  Tables are device memory of 'count' entries: addresses and sizes of 64
 * bits, statuses of 32.  src_size[i] bytes at src[i] become at most dst_cap[i] bytes at dst[i];
 * dst_size[i] and status[i] are written for each i.
 *
 * 'before' is 0, or a table of statuses: an item whose status there is not LADE_OK is not touched,
 * and gets that status.  It may be the table 'status'.
 */
typedef struct lade__gpu_work {
	lade__device *device; /* entered */
	lade_stream stream;
	const lade_stage *stage;
	size_t stages; /* from 'stage' on, in the order of encoding, that are done at once: 1, or
	                * what the codec's join() said */
	lade__address src, src_size, dst, dst_cap, dst_size, status, before;
	size_t count;     /* 1 to 2^31 - 1 */
	size_t in_flight; /* items of other batches that the device has at the same time, about */
	uint64_t largest; /* decoded bytes of the largest item; 0: not known */
	uint64_t total;   /* and of all; 0: not known */
	lade__address workspace; /* aligned to 256 bytes */
	size_t workspace_size;   /* at least what workspace() said */
	/* Of a checksum: its chunks stand where the results want them, 'src' in 'dst' when encoding
	 * and 'dst' in 'src' when decoding, where 'dst' and 'dst_cap' are not looked at. */
	bool in_place;
	bool ignore_checksums; /* they are taken off, and not compared */
	const lade_dict *dict; /* what a decoder may use that said so of has_dict; NULL: none */
	/* Of a decoder that unshuffles (lade__gpu_codec): 'dst' is scratch memory, from where what
	 * was decoded goes to the addresses in 'to', elements of 'unshuffle' bytes, 2, 4 or 8, put
	 * together again.  'partial' is the status of chunks that end with a part of an element;
	 * LADE_OK: that stays.  unshuffle = 0: it is not wanted. */
	uint32_t unshuffle;
	lade_status partial;
	lade__address to;
} lade__gpu_work;

typedef struct lade__gpu_codec {
	/*
	 * The bytes of workspace that enqueue() needs for such a batch; SIZE_MAX: it cannot be
	 * done.  'largest' and 'total' are 0 where they are not known.  What suffices for a batch
	 * does for fewer and smaller chunks, too: some of a frame's may be stored.
	 */
	size_t (*workspace)(const lade_stage *stage, size_t count, uint64_t largest,
	                    uint64_t total);

	/*
	 * Enqueues the kernels.  Does not allocate, wait, or copy to the host, so that a graph can
	 * capture it.  A dictionary is brought to the device at its first use there: that waits.
	 * Fails: LADE_E_DEVICE, LADE_E_UNSUPPORTED
	 */
	lade_status (*enqueue)(const lade__gpu_work *work, lade_error *err);

	/*
	 * Of a decoder: enqueues the kernel that writes to dst_size[i] and status[i] what chunk i
	 * decodes to, without decoding it; 'dst' and 'dst_cap' are 0.  No workspace.  NULL: there
	 * is none.
	 */
	lade_status (*sizes)(const lade__gpu_work *work, lade_error *err);

	/*
	 * How many of 'count' stages, the first of them this codec's and the others of codecs with
	 * the same join(), one enqueue() can do at once, at least 1; 'stage' is in the order of
	 * encoding, whatever the direction.  The workspace is the most that any of them wants.
	 * NULL: 1.
	 */
	size_t (*join)(const lade_stage *stage, size_t count);

	/* Of a decoder: it does what lade__gpu_work has of 'unshuffle'. */
	bool unshuffles;

	/* Of a filter's decoder: whether a codec's decoder can do for it what such 'count' stages
	 * do, and if so, what 'work' must say.  NULL: no. */
	bool (*unshuffle)(const lade_stage *stage, size_t count, lade__gpu_work *work);
} lade__gpu_codec;

/* The first argument of batched kernels. */
static inline lade_gpu_batch lade__gpu_batch_of(const lade__gpu_work *work, lade__address next)
{
	return (lade_gpu_batch){.src = work->src, .src_size = work->src_size, .dst = work->dst,
	                         .dst_cap = work->dst_cap, .dst_size = work->dst_size,
	                         .status = work->status, .before = work->before, .next = next,
	                         .count = (uint32_t)work->count};
}

/* The blocks of a kernel that the device holds at once, at least 1. */
lade_status lade__gpu_resident(const lade__gpu_work *work, const lade__kernel *kernel,
                               unsigned threads, size_t shared, size_t *blocks, lade_error *err);

/*
 * Launches launch.blocks blocks, or as many as the device holds at once.  Where these are fewer,
 * blocks take chunks in turn by a counter, LADE__GPU_COUNTER bytes of workspace, which the kernel's
 * first argument, a lade_gpu_batch, then names; without it block i takes the i-th chunks.
 */
#define LADE__GPU_COUNTER sizeof(uint32_t)
lade_status lade__gpu_launch_turns(const lade__gpu_work *work, const lade__kernel *kernel,
                                   lade__launch launch, void **arguments, lade_error *err);

/* Launches a kernel that reports sizes, for all chunks at once: 'chunks' a block of 128 threads. */
lade_status lade__gpu_launch_sizes(const lade__gpu_work *work, const lade__kernel *kernel,
                                   unsigned chunks, lade_error *err);

/* A lade__gpu_implementation; 'kernels' is its lade__gpu_codec. */
#define LADE__GPU_RECORD(text, way, kernels, cost_of) \
	{ \
		.record = {.struct_size = sizeof(lade_implementation), .name = text "/cuda", \
		           .algorithm = text, .direction = way, \
		           .priority = LADE_PRIORITY_BUILTIN, .cost = cost_of}, \
		.codec = &(kernels), \
	}

#endif
