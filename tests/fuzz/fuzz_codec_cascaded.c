/*
 * fuzz_codec_cascaded.c: the cascaded codec, decoder and encoder.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fuzz/fuzz_codec.h"

static const char *const specs[] = {"cascaded",      "cascaded(<u2)",
                                    "cascaded(<i4)", "cascaded(<i8,block=4096)",
                                    "cascaded(<u4,rles=2,deltas=1)", "cascaded(<f8,bitpack=false)"};

FUZZ_CODEC(specs)
