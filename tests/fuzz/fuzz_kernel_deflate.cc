/*
 * fuzz_kernel_deflate.cc: the decoding kernels of Deflate, zlib and gzip, all shapes, and the one
 * that finds sizes, against the host's strict decoders, which are zlib's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
extern "C" {
#include "codec/deflate/deflate.h"
}

#include "codec/deflate/kernels/deflate_decode.cu"

#include "fuzz/fuzz_kernel.h"

static const struct {
	const char *name;
	unsigned warps;
	void (*run)(lade_gpu_batch batch, lade_deflate_room room);
} kernels[] = {
	{"deflate solo", 1, lade_deflate_decode_solo},
	{"deflate team2", 2, lade_deflate_decode_team2},
	{"deflate team4", 4, lade_deflate_decode_team4},
	{"deflate team8", 8, lade_deflate_decode_team8},
	{"deflate size", 1, lade_deflate_size},
};
#define KERNELS (sizeof kernels / sizeof *kernels)

/* What lanes may keep: much, and little. */
static const lade_deflate_room rooms[] = {{nullptr, 512, 21, 0, 0}, {nullptr, 64, 5, 0, 0}};

static fuzz_want host_says(const fuzz_case &c, uint32_t format, bool size)
{
	static const lade_implementation *const strict[] = {&lade__deflate_strict,
	                                                    &lade__zlib_strict, &lade__gzip_strict};
	static const lade_algorithm *const algorithms[] = {&lade__deflate, &lade__zlib,
	                                                   &lade__gzip};
	fuzz_want want = {};
	lade_stage stage = {};
	stage.algorithm = algorithms[format];
	lade_run run = {};
	run.stage = &stage;
	run.state = strict[format]->state_new(nullptr, lade_allocator_default(LADE_HOST));
	/* A bit gives 129 bytes at most. */
	size_t room = size ? 1032 * c.size : c.room;
	want.bytes = (uint8_t *)malloc(room + 1);
	if (!want.bytes || !run.state)
		FUZZ_FAIL("no memory");
	want.status = (uint32_t)strict[format]->codec->run(&run, lade_host_cspan(c.chunk, c.size),
	                                                   lade_host_span(want.bytes, room),
	                                                   &want.size, nullptr);
	want.any = want.status != LADE_OK;
	strict[format]->state_free(nullptr, run.state);
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
	const auto &k = kernels[c.kernel % KERNELS];
	lade_deflate_room room = rooms[c.kernel / KERNELS / 3 % 2];
	room.format = (uint32_t)(c.kernel / KERNELS % 3);
	bool only_size = k.run == lade_deflate_size;
	fuzz_want want = host_says(c, room.format, only_size);
	if (only_size && want.status == LADE_E_CHECKSUM) {
		return 0; /* the kernel has no output to check */
	}
	emu_config config = {.kernel = k.name, .grid = c.count, .block = 32 * k.warps};
	size_t lane = room.lane;
	room.memory = (uint8_t *)malloc(config.grid.x * config.block.x * lane);
	if (!room.memory)
		FUZZ_FAIL("no memory");
	fuzz_launch(c, config, want, [&](lade_gpu_batch batch) { k.run(batch, room); });
	free(room.memory);
	return 0;
}
