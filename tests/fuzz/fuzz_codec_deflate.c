/*
 * fuzz_codec_deflate.c: the raw Deflate codec, decoder and encoder.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fuzz/fuzz_codec.h"

static const char *const specs[] = {"deflate(6)", "deflate(0)", "deflate(12)"};

FUZZ_CODEC(specs)
