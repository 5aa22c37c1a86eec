/*
 * gpu.c: LZ4 blocks on devices.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/lz/gpu.h"
#include "codec/lz4/lz4.h"

static const lade__lz_shape decoders[] = {
	{{"lz4_decode", "lade_lz4_decode_team16", LADE_LZ4_TEAM16_SHARED}, 512, 1, 2},
	{{"lz4_decode", "lade_lz4_decode_team8", 0}, 256, 1, 4},
	{{"lz4_decode", "lade_lz4_decode_team4", 0}, 128, 1, 12},
	{{"lz4_decode", "lade_lz4_decode_solo", 0}, 128, 4, 0},
};
static const lade__lz_shape unshufflers[] = {
	{{"lz4_unshuffle", "lade_lz4_unshuffle_team16", LADE_LZ4_TEAM16_SHARED},
	 512, 1, 2},
	{{"lz4_unshuffle", "lade_lz4_unshuffle_team8", 0}, 256, 1, 4},
	{{"lz4_unshuffle", "lade_lz4_unshuffle_team4", 0}, 128, 1, 12},
	{{"lz4_unshuffle", "lade_lz4_unshuffle_solo", 0}, 128, 4, 0},
};
static const lade__lz_shape encoders[] = {
	{{"lz4_encode", "lade_lz4_encode_team16", LADE_LZ_ENCODE_SHARED(16)}, 512, 1, 1},
	{{"lz4_encode", "lade_lz4_encode_team8", LADE_LZ_ENCODE_SHARED(8)}, 256, 1, 12},
	{{"lz4_encode", "lade_lz4_encode", 0}, 160, 5, 0},
};
static const lade__kernel size_kernel = {"lz4_decode", "lade_lz4_size", 0};

static lade_status decode(const lade__gpu_work *work, lade_error *err)
{
	return lade__lz_decode(work, decoders, unshufflers, err);
}

static lade_status sizes(const lade__gpu_work *work, lade_error *err)
{
	return lade__gpu_launch_sizes(work, &size_kernel, 4, err);
}

static lade_status encode(const lade__gpu_work *work, lade_error *err)
{
	return lade__lz_encode(work, encoders, err);
}

/* The kernels are fast encoders: they do not stand in for the slow levels. */
static double encode_cost(void *ctx, const lade_workload *workload)
{
	bool slow = workload->stage->option[0].i >= LADE__LZ4_HC_LEVEL;
	return slow ? -1 : lade__lz_encode_cost(ctx, workload);
}

static const lade__gpu_codec decode_codec = {.workspace = lade__lz_workspace,
                                             .enqueue = decode,
                                             .sizes = sizes,
                                             .unshuffles = true};
static const lade__gpu_codec encode_codec = {.workspace = lade__lz_workspace, .enqueue = encode};

const lade__gpu_implementation lade__lz4_encode_gpu =
	LADE__GPU_RECORD("lz4", LADE_ENCODE, encode_codec, encode_cost);
const lade__gpu_implementation lade__lz4_decode_gpu =
	LADE__GPU_RECORD("lz4", LADE_DECODE, decode_codec, lade__lz_decode_cost);
