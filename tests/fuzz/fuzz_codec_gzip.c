/*
 * fuzz_codec_gzip.c: the gzip codec, decoder and encoder.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fuzz/fuzz_codec.h"

static const char *const specs[] = {"gzip(6)", "gzip(0)"};

FUZZ_CODEC(specs)
