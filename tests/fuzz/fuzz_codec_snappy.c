/*
 * fuzz_codec_snappy.c: the raw Snappy codec, decoder and encoder.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fuzz/fuzz_codec.h"

static const char *const specs[] = {"snappy"};

FUZZ_CODEC(specs)
