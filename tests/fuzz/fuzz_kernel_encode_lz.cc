/*
 * fuzz_kernel_encode_lz.cc: the encoding kernels of LZ4 and Snappy, with plain decoders
 * (lz_plain.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lz_plain.h"

#include "codec/lz4/kernels/lz4_encode.cu"
#include "codec/snappy/kernels/snappy_encode.cu"

#include "fuzz/fuzz_kernel_encode.h"

template <int ELEM, void (*RUN)(lade_gpu_batch, uint32_t)> static void lz(lade_gpu_batch batch)
{
	RUN(batch, ELEM);
}

static const fuzz_encoder kernels[] = {
	{"lz4", 160, 0, true, lz<1, lade_lz4_encode>},
	{"lz4 team8", 256, LADE_LZ_ENCODE_SHARED(8), true, lz<4, lade_lz4_encode_team8>},
	{"lz4 team16", 512, LADE_LZ_ENCODE_SHARED(16), true, lz<1, lade_lz4_encode_team16>},
	{"snappy", 160, 0, true, lz<2, lade_snappy_encode>},
	{"snappy team8", 256, LADE_LZ_ENCODE_SHARED(8), true, lz<1, lade_snappy_encode_team8>},
	{"snappy team16", 512, LADE_LZ_ENCODE_SHARED(16), true, lz<8, lade_snappy_encode_team16>},
};

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t input)
{
	fuzz_case c;
	if (!fuzz_read(data, input, &c))
		return 0;
	const fuzz_encoder &k = kernels[c.kernel % (sizeof kernels / sizeof *kernels)];
	bool snappy = k.name[0] == 's';
	size_t size;
	uint8_t *plain = fuzz_source(c, &size), *back = (uint8_t *)malloc(size + 1);
	fuzz_encoded right = {snappy ? 32 + size + size / 6 : size + size / 255 + 16, 0, nullptr};
	fuzz_encode(c, k, plain, size, right, [&](const uint8_t *made, size_t n) {
		size_t got;
		return (snappy ? plain_snappy : plain_lz4)(made, n, back, size, &got) == LADE_OK &&
		       got == size && (size == 0 || memcmp(back, plain, size) == 0);
	});
	free(plain);
	free(back);
	return 0;
}
