/*
 * fuzz_codec_bz2.c: the bz2 codec, decoder and encoder.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fuzz/fuzz_codec.h"

static const char *const specs[] = {"bz2(1)"};

FUZZ_CODEC(specs)
