/*
 * fuzz_codec_ans.c: the ANS codec, decoder and encoder.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fuzz/fuzz_codec.h"

static const char *const specs[] = {"ans", "ans(<f2,bits=9)", "ans(<i4,bits=11)", "ans(<f8)",
                                    "ans(bfloat16)"};

FUZZ_CODEC(specs)
