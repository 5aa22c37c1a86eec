/*
 * fuzz_kernel_bitcomp.cc: the decoding kernels of bitcomp, all teams and chunks that blocks share,
 * and the one that tells sizes, against the host's decoder.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/lade.h> /* before the kernels' LADE_DEVICE, which is no kind of memory */

#include "codec/bitcomp/kernels/bitcomp_decode.cu"

#include "fuzz/fuzz_kernel.h"
#include "fuzz/fuzz_kernel_host.h"

enum { SIZE, TEAM, FEW };

/* Teams of 2^log warps; 'ahead' as src/codec/bitcomp/gpu.c has it on a device of one
 * multiprocessor. */
static const struct {
	const char *name;
	int what;
	uint32_t log, spans, ahead;
} kernels[] = {
	{"bitcomp, 1 warp", TEAM, 0, 1, 0},   {"bitcomp, 2 warps", TEAM, 1, 1, 0},
	{"bitcomp, 4 warps", TEAM, 2, 1, 0},  {"bitcomp, 8 warps", TEAM, 3, 1, 1},
	{"bitcomp, 2 blocks", TEAM, 3, 2, 0}, {"bitcomp, 16 warps", FEW, 0, 1, 0},
	{"bitcomp, size", SIZE, 0, 1, 0},
};

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_case c;
	if (!fuzz_read(data, size, &c))
		return 0;
	const auto &k = kernels[c.kernel % (sizeof kernels / sizeof *kernels)];
	emu_config config = {.kernel = k.name, .grid = 1, .block = 32 * LADE_BITCOMP_WARPS,
	                     .shared = LADE_BITCOMP_DECODE_SHARED};
	if (k.what == SIZE) {
		config.block = 32;
		config.shared = 0;
		fuzz_launch(c, config, fuzz_host_size("bitcomp", c, LADE_GPU_NOSPACE),
		            lade_bitcomp_size);
		return 0;
	}
	if (k.what == FEW) {
		config.grid = c.count;
		config.block = 2 * 32 * LADE_BITCOMP_WARPS;
		config.shared = LADE_BITCOMP_FEW_SHARED;
		fuzz_launch(c, config, fuzz_host_decode("bitcomp", c), lade_bitcomp_decode_few);
		return 0;
	}
	uint32_t state[2] = {};
	config.grid = k.log == 3 ? c.count * k.spans : 1;
	fuzz_launch(c, config, fuzz_host_decode("bitcomp", c), [&](lade_gpu_batch batch) {
		lade_bitcomp_decode(batch, k.log, k.spans, k.ahead, state);
	});
	return 0;
}
