/*
 * fuzz_codec_copy.c: the copying codec, decoder and encoder.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fuzz/fuzz_codec.h"

static const char *const specs[] = {"copy"};

FUZZ_CODEC(specs)
