/*
 * fuzz_codec_zstd.c: the Zstandard codec, decoder and encoder.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fuzz/fuzz_codec.h"

static const char *const specs[] = {"zstd(3)", "zstd(-5)", "zstd(19,checksum=true)",
                                    "zstd(1,window_log=10)"};

FUZZ_CODEC(specs)
