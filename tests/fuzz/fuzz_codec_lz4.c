/*
 * fuzz_codec_lz4.c: the raw LZ4 codec, decoder and encoder.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fuzz/fuzz_codec.h"

static const char *const specs[] = {"lz4(1)", "lz4(-9)", "lz4(3)", "lz4(10)"};

FUZZ_CODEC(specs)
