/*
 * fuzz_kernel_unshuffle.cc: the decoding kernels of LZ4 and Snappy that also undo a byte shuffle,
 * all shapes, against a plain decoder (lz_plain.h).
 *
 * They decode to scratch memory, whose aligned words they may read, and from there to destinations
 * of their own.  'order' also picks the elements' size, and whether a part of an element is
 * refused.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lz_plain.h"

#include "codec/lz4/kernels/lz4_unshuffle.cu"
#include "codec/snappy/kernels/snappy_unshuffle.cu"

#include "fuzz/fuzz_kernel.h"

struct kernel {
	const char *name;
	bool snappy;
	unsigned threads;
	size_t shared;
	void (*run)(lade_gpu_batch batch, lade_lz_unshuffle u);
};

static const kernel kernels[] = {
	{"lz4 solo", false, 128, 0, lade_lz4_unshuffle_solo},
	{"lz4 team4", false, 128, 0, lade_lz4_unshuffle_team4},
	{"lz4 team8", false, 256, 0, lade_lz4_unshuffle_team8},
	{"lz4 team16", false, 512, LADE_LZ4_TEAM16_SHARED, lade_lz4_unshuffle_team16},
	{"snappy solo", true, 128, 0, lade_snappy_unshuffle_solo},
	{"snappy team4", true, 128, 0, lade_snappy_unshuffle_team4},
	{"snappy team8", true, 256, 0, lade_snappy_unshuffle_team8},
	{"snappy team16", true, 512, LADE_SNAPPY_TEAM16_SHARED, lade_snappy_unshuffle_team16},
};

enum { PARTIAL = 9, MOST = 2 };

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t input)
{
	fuzz_case c;
	if (!fuzz_read(data, input, &c))
		return 0;
	const kernel &k = kernels[c.kernel % (sizeof kernels / sizeof *kernels)];
	uint32_t size = 2u << c.seed % 3, partial = c.seed / 3 % 2 ? (uint32_t)PARTIAL : 0;
	fuzz_want want = {0, 0, (uint8_t *)malloc(c.room + 1)};
	uint8_t *elements = (uint8_t *)malloc(c.room + 1), *to[MOST];
	if (!want.bytes || !elements)
		FUZZ_FAIL("no memory");
	want.status = (uint32_t)(k.snappy ? plain_snappy : plain_lz4)(c.chunk, c.size, want.bytes,
	                                                              c.room, &want.size);
	if (want.status == LADE_GPU_OK && partial && want.size % size) {
		want.status = partial;
		want.size = 0;
	}
	size_t n = want.size, rows = n / size;
	for (size_t i = 0; i < n; i++)
		elements[i] = want.bytes[i < rows * size ? i % size * rows + i / size : i];
	fuzz_buffer out[MOST];
	for (uint32_t i = 0; i < c.count; i++) {
		out[i] = fuzz_buffer_new(c.room, c.src_skew);
		to[i] = out[i].data;
	}
	emu_config config = {.kernel = k.name, .grid = 1, .block = k.threads, .shared = k.shared};
	uint32_t next = 0;
	c.slack = 8;
	fuzz_launch(c, config, want, [&](lade_gpu_batch batch) {
		batch.next = &next;
		k.run(batch, {to, size, partial});
	});
	for (uint32_t i = 0; i < c.count; i++) {
		if (n && memcmp(to[i], elements, n) != 0)
			FUZZ_FAIL("%s: other elements than the host's", k.name);
		fuzz_buffer_free(&out[i]);
	}
	free(elements);
	return 0;
}
