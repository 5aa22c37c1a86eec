/*
 * fuzz_kernel_lz.cc: the decoding kernels of LZ4 and Snappy, all shapes, and those that tell sizes,
 * against the host's strict decoders.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
extern "C" {
#include "codec/lz4/lz4.h"
#include "codec/snappy/snappy.h"
}

#include "codec/lz4/kernels/lz4_decode.cu"
#include "codec/snappy/kernels/snappy_decode.cu"

#include "fuzz/fuzz_kernel.h"

static const struct {
	const char *name;
	bool snappy, size;
	unsigned threads;
	size_t shared;
	void (*run)(lade_gpu_batch batch);
} kernels[] = {
	{"lz4 solo", false, false, 128, 0, lade_lz4_decode_solo},
	{"lz4 team4", false, false, 128, 0, lade_lz4_decode_team4},
	{"lz4 team8", false, false, 256, 0, lade_lz4_decode_team8},
	{"lz4 team16", false, false, 512, LADE_LZ4_TEAM16_SHARED, lade_lz4_decode_team16},
	{"lz4 size", false, true, 128, 0, lade_lz4_size},
	{"snappy solo", true, false, 128, 0, lade_snappy_decode_solo},
	{"snappy team4", true, false, 128, 0, lade_snappy_decode_team4},
	{"snappy team8", true, false, 256, 0, lade_snappy_decode_team8},
	{"snappy team16", true, false, 512, LADE_SNAPPY_TEAM16_SHARED,
	 lade_snappy_decode_team16},
	{"snappy size", true, true, 128, 0, lade_snappy_size},
};

/* What the host's decoder says, or what it would say with room for all. */
static fuzz_want host_says(const fuzz_case &c, bool snappy, bool size)
{
	fuzz_want want = {};
	if (snappy && size) {
		uint64_t told = 0;
		want.status = (uint32_t)lade__snappy.decoded_size(nullptr, c.chunk, c.size, &told,
		                                                  nullptr);
		/* The host may also be told of more than kernels take. */
		if (want.status == LADE_OK && told > LADE_CHUNK_MAX)
			want.status = LADE_E_LIMIT;
		want.size = want.status == LADE_OK ? (size_t)told : 0;
		return want;
	}
	/* A byte of an LZ4 block gives 255 at most. */
	size_t room = size ? 255 * c.size : c.room;
	lade_run run = {};
	const lade_codec_ops *by = (snappy ? lade__snappy_strict : lade__lz4_strict).codec;
	want.bytes = (uint8_t *)malloc(room + 1);
	if (!want.bytes)
		FUZZ_FAIL("no memory");
	want.status = (uint32_t)by->run(&run, lade_host_cspan(c.chunk, c.size),
	                                lade_host_span(want.bytes, room), &want.size, nullptr);
	if (size) {
		free(want.bytes);
		want.bytes = nullptr;
	}
	return want;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_case c;
	if (!fuzz_read(data, size, &c))
		return 0;
	const auto &k = kernels[c.kernel % (sizeof kernels / sizeof *kernels)];
	emu_config config = {.kernel = k.name, .grid = 1, .block = k.threads, .shared = k.shared};
	uint32_t next = 0;
	fuzz_launch(c, config, host_says(c, k.snappy, k.size), [&](lade_gpu_batch batch) {
		batch.next = &next;
		k.run(batch);
	});
	return 0;
}
