/*
 * fuzz_kernel_cascaded.cc: the decoding kernel of cascaded, with one block a chunk and with
 * several, and the one that tells sizes, against the host's decoder.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/lade.h> /* before the kernels' LADE_DEVICE, which is no kind of memory */

#include "codec/cascaded/kernels/cascaded_decode.cu"

#include "fuzz/fuzz_kernel.h"
#include "fuzz/fuzz_kernel_host.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_case c;
	if (!fuzz_read(data, size, &c))
		return 0;
	/* The number of blocks; 0: the size is asked for. */
	uint32_t parts = c.kernel % 4, joined[2] = {};
	emu_config config = {.kernel = "cascaded", .grid = c.count * parts,
	                     .block = 32 * LADE_CAS_WARPS,
	                     .shared = LADE_CAS_WARPS * LADE_CAS_DECODE_SHARED};
	if (parts == 0) {
		config = {.kernel = "cascaded size"};
		fuzz_launch(c, config, fuzz_host_size("cascaded", c, 0), lade_cascaded_size);
		return 0;
	}
	fuzz_launch(c, config, fuzz_host_decode("cascaded", c), [&](lade_gpu_batch batch) {
		lade_cascaded_decode(batch, parts, joined, parts > 1 ? 3 : c.kernel / 4 % 4);
	});
	return 0;
}
