/*
 * fuzz_kernel.h: a decoding kernel on the emulated warp (docs/emulated-warp.md) against the host:
 * status, size and bytes.
 *
 *     | kernel 1 | order 1 | source 1 | destination 1 | room 2 | chunk |
 *
 * 'kernel' picks the kernel and its shape, its highest bit that the chunk is there twice; 'order'
 * is the emulator's seed; 'source' and 'destination' are where these lie between two multiples of
 * 128.  The including file includes the kernels, and the library's headers before them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_FUZZ_KERNEL_H
#define LADE_TESTS_FUZZ_KERNEL_H

#include <cstdio>
#include <cstdlib>

#define FUZZ_HEAD ((size_t)6)
/* The emulator takes milliseconds a kilobyte. */
#define FUZZ_CHUNK_MOST ((size_t)4096)
/* Of these kernels, with room for 64 KiB, none takes a tenth. */
#define FUZZ_STEPS ((uint64_t)200000000)
#define FUZZ_ZONE 0xC3
#define FUZZ_LINE ((size_t)128)

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An input, taken apart. */
struct fuzz_case {
	unsigned kernel;
	uint32_t count;
	uint64_t seed;
	size_t src_skew, dst_skew, room;
	const uint8_t *chunk;
	size_t size;
	size_t slack; /* bytes behind destinations that may be read, 0 unless it is set */
};

static inline bool fuzz_read(const uint8_t *data, size_t size, fuzz_case *c)
{
	if (size < FUZZ_HEAD || size > FUZZ_HEAD + FUZZ_CHUNK_MOST)
		return false;
	*c = {data[0] & 127u, 1u + (data[0] >> 7), data[1], data[2] % FUZZ_LINE,
	      data[3] % FUZZ_LINE, (size_t)data[4] | (size_t)data[5] << 8, data + FUZZ_HEAD,
	      size - FUZZ_HEAD, 0};
	return true;
}

#define FUZZ_FAIL(...) (fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), abort())

/* A buffer that ends where its block of memory does, so that ASan sees what passes it; before it is
 * a zone of a byte at least. */
struct fuzz_buffer {
	uint8_t *block, *data;
	size_t zone;
};

static inline fuzz_buffer fuzz_buffer_new(size_t size, size_t skew)
{
	fuzz_buffer b = {nullptr, nullptr, skew ? skew : FUZZ_LINE};
	void *block;
	if (posix_memalign(&block, FUZZ_LINE, b.zone + size))
		FUZZ_FAIL("no memory");
	b.block = (uint8_t *)block;
	b.data = b.block + b.zone;
	memset(b.block, FUZZ_ZONE, b.zone + size);
	return b;
}

static inline void fuzz_buffer_free(fuzz_buffer *b)
{
	for (size_t i = 0; i < b->zone; i++)
		if (b->block[i] != FUZZ_ZONE)
			FUZZ_FAIL("byte %zu before a buffer was changed", b->zone - i);
	free(b->block);
}

/* What the host says of the chunk: its status, and its size and bytes in 'room'. */
struct fuzz_want {
	uint32_t status;
	size_t size;
	uint8_t *bytes; /* malloc; NULL where only the size counts */
	bool any;       /* a kernel may refuse it for another reason */
};

/*
 * Runs 'kernel' over the chunk, 'count' times in one batch, and wants 'want' of each; 'config' has
 * the kernel's name, the grid of one chunk, and the block.  Takes want.bytes.
 */
template <class F>
static inline void fuzz_launch(const fuzz_case &c, emu_config config, fuzz_want want, F kernel)
{
	enum { MOST = 2 };
	fuzz_buffer src = fuzz_buffer_new(c.size, c.src_skew), dst[MOST];
	const uint8_t *from[MOST];
	uint8_t *to[MOST];
	uint64_t size[MOST], cap[MOST], got[MOST];
	uint32_t status[MOST];
	if (c.size)
		memcpy(src.data, c.chunk, c.size);
	for (uint32_t i = 0; i < c.count; i++) {
		dst[i] = fuzz_buffer_new(want.bytes ? c.room + c.slack : 0, c.dst_skew);
		from[i] = src.data;
		to[i] = dst[i].data;
		size[i] = c.size;
		cap[i] = c.room;
		got[i] = status[i] = 77;
	}
	lade_gpu_batch batch = {from, size, to, cap, got, status, nullptr, nullptr, c.count};
	config.seed = c.seed;
	config.steps = FUZZ_STEPS;
	config.resident = 2;
	emu_result ran = emu_launch(config, [&] { kernel(batch); });
	if (!ran.ok)
		FUZZ_FAIL("%s", ran.message);
	if (c.size && memcmp(src.data, c.chunk, c.size) != 0)
		FUZZ_FAIL("%s changed its source", config.kernel);
	for (uint32_t i = 0; i < c.count; i++) {
		bool other = want.any && status[i] != LADE_OK;
		if ((status[i] != want.status && !other) || got[i] != want.size)
			FUZZ_FAIL("%s: status %u, %llu bytes; the host has %u, %zu", config.kernel,
			          status[i], (unsigned long long)got[i], want.status, want.size);
		if (want.bytes && want.size && memcmp(to[i], want.bytes, want.size) != 0)
			FUZZ_FAIL("%s: other bytes than the host's", config.kernel);
		for (size_t k = c.room; want.bytes && k < c.room + c.slack; k++)
			if (to[i][k] != FUZZ_ZONE)
				FUZZ_FAIL("%s wrote behind its room", config.kernel);
		fuzz_buffer_free(&dst[i]);
	}
	fuzz_buffer_free(&src);
	free(want.bytes);
}

#endif
