/*
 * fuzz_codec_zlib.c: the zlib codec, decoder and encoder.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fuzz/fuzz_codec.h"

static const char *const specs[] = {"zlib(6)", "zlib(1)"};

FUZZ_CODEC(specs)
