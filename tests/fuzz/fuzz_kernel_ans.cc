/*
 * fuzz_kernel_ans.cc: the decoding kernels of ANS, with the shared memory that they have and with
 * the least, chunks whole and in parts, and the one that tells sizes, against the host's decoder.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/lade.h> /* before the kernels' LADE_DEVICE, which is no kind of memory */

#include "codec/ans/kernels/ans_decode.cu"

#include "fuzz/fuzz_kernel.h"
#include "fuzz/fuzz_kernel_host.h"

/* Dynamic shared memory: what src/codec/ans/gpu.c gives, and the least that there is room in. */
static const struct {
	const char *name;
	uint32_t threads, shared, parts;
} kernels[] = {
	{"ans", 256, LADE_ANS_DECODE_SHARED, 1},
	{"ans, least room", 256, LADE_ANS_DECODE_LEAST, 1},
	{"ans in parts", 256, LADE_ANS_DECODE_FOUR, 3},
	{"ans wide", 512, LADE_ANS_DECODE_WIDE, 1},
	{"ans wide in parts", 512, LADE_ANS_DECODE_WIDE, 2},
	{"ans size", 128, 0, 1},
};

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_case c;
	if (!fuzz_read(data, size, &c))
		return 0;
	const auto &k = kernels[c.kernel % (sizeof kernels / sizeof *kernels)];
	emu_config config = {.kernel = k.name, .grid = c.count * k.parts, .block = k.threads,
	                     .shared = k.shared};
	if (k.shared == 0) {
		config.grid = 1;
		fuzz_launch(c, config, fuzz_host_size("ans", c, 0), lade_ans_size);
		return 0;
	}
	lade_ans_parts done[2] = {};
	fuzz_launch(c, config, fuzz_host_decode("ans", c), [&](lade_gpu_batch batch) {
		if (k.threads == 512)
			lade_ans_decode_wide(batch, done, k.parts, k.shared);
		else
			lade_ans_decode(batch, done, k.parts, k.shared);
	});
	return 0;
}
