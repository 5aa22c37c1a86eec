/*
 * fuzz_kernel_encode_own.cc: the encoding kernels of ANS, bitcomp and cascaded, with the host's
 * codecs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/lade.h> /* before the kernels' LADE_DEVICE, which is no kind of memory */

#include "codec/ans/kernels/ans_encode.cu"
#include "codec/bitcomp/kernels/bitcomp_encode.cu"
#include "codec/cascaded/kernels/cascaded_encode.cu"

#include "fuzz/fuzz_kernel_encode.h"

template <int LOG, int SIGNED, int SPARSE, int QUANT, int TEAM>
static void bitcomp(lade_gpu_batch batch)
{
	lade_bitcomp_encode(batch, {LOG, SIGNED, SPARSE, QUANT, QUANT ? -3 : 0, 0}, TEAM);
}

template <int LOG, int BLOCK, int BITPACK> static void cascaded(lade_gpu_batch batch)
{
	/* Without packed bits there are no sub-blocks of bitcomp. */
	lade_cascaded_encode(batch, {LOG, BLOCK, LOG & 1, BITPACK, 0x104CF, BITPACK, 0});
}

/* Dynamic shared memory for bytes, and for others what holds the chunk. */
enum { ANS_SHARED = 77824, ANS_HOLD = 32768 };
#define ANS_WIDE(log) LADE_ANS_WIDE_SHARED(ANS_HOLD, 1u << (log))

template <int LOG, int BLOCK, int BITS, int SIGNS> static void ans(lade_gpu_batch batch)
{
	if (LOG == 0)
		lade_ans_encode_1(batch, BLOCK, BITS, ANS_SHARED, ANS_HOLD);
	else if (LOG == 1)
		lade_ans_encode_2(batch, BLOCK, BITS, ANS_WIDE(1), ANS_HOLD, SIGNS);
	else if (LOG == 2)
		lade_ans_encode_4(batch, BLOCK, BITS, ANS_WIDE(2), ANS_HOLD);
	else
		lade_ans_encode_8(batch, BLOCK, BITS, ANS_WIDE(3), ANS_HOLD);
}

static void ans_small(lade_gpu_batch batch)
{
	lade_ans_encode_small_4(batch, 12, 0, ANS_WIDE(2), ANS_HOLD);
}

#define BITCOMP_SHARED LADE_BITCOMP_ENCODE_SHARED

/* By the spec that says the same. */
static const fuzz_encoder kernels[] = {
	{"bitcomp(|u1)", 256, BITCOMP_SHARED, false, bitcomp<0, 0, 0, 0, 0>},
	{"bitcomp(<i2)", 256, BITCOMP_SHARED, false, bitcomp<1, 1, 0, 0, 1>},
	{"bitcomp(<u4)", 256, BITCOMP_SHARED, false, bitcomp<2, 0, 0, 0, 2>},
	{"bitcomp(<i8)", 256, BITCOMP_SHARED, false, bitcomp<3, 1, 0, 0, 3>},
	{"bitcomp(<i4,algorithm=sparse)", 256, BITCOMP_SHARED, false, bitcomp<2, 1, 1, 0, 3>},
	{"bitcomp(<f4,mode=lossy_signed,delta=0.125)", 256, BITCOMP_SHARED, false,
         bitcomp<2, 1, 0, 1, 1>},
	{"cascaded(|u1)", 256, LADE_CAS_ENCODE_SHARED(8), true, cascaded<0, 13, 1>},
	{"cascaded(<i2,block=4096)", 128, LADE_CAS_ENCODE_SHARED(4), true, cascaded<1, 12, 1>},
	{"cascaded(<u4)", 64, LADE_CAS_ENCODE_SHARED(2), true, cascaded<2, 13, 1>},
	{"cascaded(<i8,bitpack=false)", 32, LADE_CAS_ENCODE_SHARED(1), true, cascaded<3, 13, 0>},
	{"ans", 256, ANS_SHARED, true, ans<0, 12, 0, 0>},
	{"ans(bfloat16)", 256, ANS_WIDE(1), true, ans<1, 12, 0, 1>},
	{"ans(<i4,bits=9)", 256, ANS_WIDE(2), true, ans<2, 12, 9, 0>},
	{"ans(<f8,bits=11,block=16384)", 256, ANS_WIDE(3), true, ans<3, 14, 11, 0>},
	{"ans(<f4)", 128, ANS_WIDE(2), true, ans_small},
};
#define KERNELS (sizeof kernels / sizeof *kernels)

static lade_engine *engine;

static lade_spec *spec_of(size_t i)
{
	static lade_spec *specs[KERNELS];
	lade_engine_options options = {};
	options.struct_size = sizeof options;
	options.threads = 1;
	if (!engine && lade_engine_new(&options, &engine, nullptr) != LADE_OK)
		FUZZ_FAIL("no engine");
	if (!specs[i] && lade_spec_parse(engine, kernels[i].name, &specs[i], nullptr) != LADE_OK)
		FUZZ_FAIL("%s: no spec", kernels[i].name);
	return specs[i];
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t input)
{
	fuzz_case c;
	if (!fuzz_read(data, input, &c))
		return 0;
	size_t which = c.kernel % KERNELS, size;
	lade_spec *spec = spec_of(which);
	uint8_t *plain = fuzz_source(c, &size);
	fuzz_encoded right = {lade_spec_bound(spec, size), 0, nullptr};
	uint8_t *host = (uint8_t *)malloc(right.bound + 1), *back = (uint8_t *)malloc(size + 1);
	if (!host || !back ||
	    lade_encode(engine, spec, lade_host_cspan(plain, size),
	                lade_host_span(host, right.bound), &right.size, nullptr))
		FUZZ_FAIL("%s: the host does not encode", kernels[which].name);
	/* ANS looks at a part of what the host counts. */
	right.bytes = kernels[which].name[0] == 'a' ? nullptr : host;
	fuzz_encode(c, kernels[which], plain, size, right, [&](const uint8_t *made, size_t n) {
		size_t got;
		return lade_decode(engine, spec, lade_host_cspan(made, n),
		                   lade_host_span(back, size), &got, nullptr) == LADE_OK &&
		       got == size && (size == 0 || memcmp(back, plain, size) == 0);
	});
	free(plain);
	free(host);
	free(back);
	return 0;
}
