/*
 * gpu.c: Snappy on devices.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/lz/gpu.h"
#include "codec/snappy/snappy.h"

static const lade__lz_shape decoders[] = {
	{{"snappy_decode", "lade_snappy_decode_team16", LADE_SNAPPY_TEAM16_SHARED}, 512, 1, 2},
	{{"snappy_decode", "lade_snappy_decode_team8", 0}, 256, 1, 4},
	{{"snappy_decode", "lade_snappy_decode_team4", 0}, 128, 1, 12},
	{{"snappy_decode", "lade_snappy_decode_solo", 0}, 128, 4, 0},
};
static const lade__lz_shape unshufflers[] = {
	{{"snappy_unshuffle", "lade_snappy_unshuffle_team16", LADE_SNAPPY_TEAM16_SHARED},
	 512, 1, 2},
	{{"snappy_unshuffle", "lade_snappy_unshuffle_team8", 0}, 256, 1, 4},
	{{"snappy_unshuffle", "lade_snappy_unshuffle_team4", 0}, 128, 1, 12},
	{{"snappy_unshuffle", "lade_snappy_unshuffle_solo", 0}, 128, 4, 0},
};
static const lade__lz_shape encoders[] = {
	{{"snappy_encode", "lade_snappy_encode_team16", LADE_LZ_ENCODE_SHARED(16)}, 512, 1, 1},
	{{"snappy_encode", "lade_snappy_encode_team8", LADE_LZ_ENCODE_SHARED(8)}, 256, 1, 12},
	{{"snappy_encode", "lade_snappy_encode", 0}, 160, 5, 0},
};
static const lade__kernel size_kernel = {"snappy_decode", "lade_snappy_size", 0};

static lade_status decode(const lade__gpu_work *work, lade_error *err)
{
	return lade__lz_decode(work, decoders, unshufflers, err);
}

static lade_status sizes(const lade__gpu_work *work, lade_error *err)
{
	return lade__gpu_launch_sizes(work, &size_kernel, 128, err);
}

static lade_status encode(const lade__gpu_work *work, lade_error *err)
{
	return lade__lz_encode(work, encoders, err);
}

static const lade__gpu_codec decode_codec = {.workspace = lade__lz_workspace,
                                             .enqueue = decode,
                                             .sizes = sizes,
                                             .unshuffles = true};
static const lade__gpu_codec encode_codec = {.workspace = lade__lz_workspace, .enqueue = encode};

const lade__gpu_implementation lade__snappy_encode_gpu =
	LADE__GPU_RECORD("snappy", LADE_ENCODE, encode_codec, lade__lz_encode_cost);
const lade__gpu_implementation lade__snappy_decode_gpu =
	LADE__GPU_RECORD("snappy", LADE_DECODE, decode_codec, lade__lz_decode_cost);
