/*
 * fuzz_codec_lz4f.c: the LZ4 frame codec, decoder and encoder.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fuzz/fuzz_codec.h"

static const char *const specs[] = {"lz4f(1)", "lz4f(1,checksum=true,block_checksum=true)",
                                    "lz4f(4,linked=true,block_size=64k,content_size=false)"};

FUZZ_CODEC(specs)
