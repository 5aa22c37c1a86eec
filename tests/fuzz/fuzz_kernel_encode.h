/*
 * fuzz_kernel_encode.h: an encoding kernel on the emulated warp: what it gives is what the host
 * gives, or decodes to the source; where the room is the bound, there is always room.
 *
 * The input's chunk (fuzz_kernel.h) is the source, once to eight times, changed a little each time,
 * by the highest bits of 'order'; 'room' is what is missing to the bound.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_FUZZ_KERNEL_ENCODE_H
#define LADE_TESTS_FUZZ_KERNEL_ENCODE_H

#include "fuzz/fuzz_kernel.h"

struct fuzz_encoder {
	const char *name;
	unsigned threads;
	size_t shared;
	bool turns; /* it may be given a counter */
	void (*run)(lade_gpu_batch batch);
};

/* What is right: the most bytes that the source takes, the host's bytes where the kernel must give
 * these, else how to decode what it gave. */
struct fuzz_encoded {
	size_t bound, size;
	const uint8_t *bytes; /* NULL: any that decode */
};

/* The source: copies of the chunk, of which each seventh byte differs. */
static inline uint8_t *fuzz_source(const fuzz_case &c, size_t *size)
{
	size_t times = 1 + c.seed / 32;
	*size = times * c.size;
	uint8_t *source = (uint8_t *)malloc(*size + 1);
	if (!source)
		FUZZ_FAIL("no memory");
	for (size_t i = 0; i < *size; i++)
		source[i] = (uint8_t)(c.chunk[i % c.size] ^ (i % 7 ? 0 : 37 * (i / c.size)));
	return source;
}

/* 'decode' gives true where its first argument, of a size, is decoded to 'plain'. */
template <class F>
static inline void fuzz_encode(const fuzz_case &c, const fuzz_encoder &k, const uint8_t *plain,
                               size_t size, const fuzz_encoded &right, F decode)
{
	size_t cap = c.room < right.bound ? right.bound - c.room : 0;
	fuzz_buffer from = fuzz_buffer_new(size, c.src_skew), to = fuzz_buffer_new(cap, c.dst_skew);
	if (size)
		memcpy(from.data, plain, size);
	const uint8_t *src = from.data;
	uint64_t src_size = size, dst_cap = cap, got = 77;
	uint32_t status = 77, next = 0;
	lade_gpu_batch batch = {&src, &src_size, &to.data, &dst_cap, &got, &status, nullptr,
	                        k.turns && c.count == 2 ? &next : nullptr, 1};
	emu_config config = {.kernel = k.name, .block = k.threads, .shared = k.shared,
	                     .seed = c.seed, .steps = FUZZ_STEPS};
	emu_result ran = emu_launch(config, [&] { k.run(batch); });
	if (!ran.ok)
		FUZZ_FAIL("%s", ran.message);
	if (size && memcmp(from.data, plain, size) != 0)
		FUZZ_FAIL("%s changed its source", k.name);
	bool fits = cap >= (right.bytes ? right.size : right.bound);
	bool good = status == LADE_GPU_OK ? fits || !right.bytes
	                                  : status == LADE_GPU_NOSPACE && !fits && got == 0;
	if (!good || got > cap)
		FUZZ_FAIL("%s: status %u, %llu of %zu bytes; the host has %zu", k.name, status,
		          (unsigned long long)got, cap, right.size);
	if (status == LADE_GPU_OK && right.bytes &&
	    (got != right.size || memcmp(to.data, right.bytes, right.size) != 0))
		FUZZ_FAIL("%s: other bytes than the host's", k.name);
	if (status == LADE_GPU_OK && !right.bytes && !decode(to.data, (size_t)got))
		FUZZ_FAIL("%s: does not decode to the source", k.name);
	fuzz_buffer_free(&from);
	fuzz_buffer_free(&to);
}

#endif
