/*
 * guarded_batch.h: the tables of a launch over chunks, each source and destination against a guard
 * page, at its start or at its end by the seed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_GUARDED_BATCH_H
#define LADE_TESTS_GUARDED_BATCH_H

#include "guard.h"
#include "lz_data.h"

struct guarded_batch {
	std::vector<guard> from, to;
	std::vector<const uint8_t *> src;
	std::vector<uint8_t *> dst;
	std::vector<uint64_t> sizes, got; /* 77 in what kernels write */
	std::vector<uint32_t> status;
	uint32_t next;
	lade_gpu_batch batch;

	/* Destinations have 'caps' bytes; the caller keeps 'caps' while kernels run. */
	guarded_batch(const std::vector<bytes> &in, const std::vector<uint64_t> &caps,
	              uint64_t seed)
	    : from(in.size()), to(in.size()), src(in.size()), dst(in.size()), sizes(in.size()),
	      got(in.size(), 77), status(in.size(), 77), next(0)
	{
		for (size_t i = 0; i < in.size(); i++) {
			from[i] = guard_copy(in[i].data(), in[i].size(), (int)(i + seed) & 1);
			to[i] = guard_new(caps[i], (int)(i + seed) >> 1 & 1);
			src[i] = from[i].data;
			dst[i] = to[i].data;
			sizes[i] = in[i].size();
		}
		batch = {src.data(),    sizes.data(), dst.data(), caps.data(),        got.data(),
		         status.data(), nullptr,      &next,      (uint32_t)in.size()};
	}
	guarded_batch(const guarded_batch &) = delete;
	~guarded_batch()
	{
		for (size_t i = 0; i < from.size(); i++) {
			guard_free(&from[i]);
			guard_free(&to[i]);
		}
	}
};

#endif
