/*
 * fuzz_codec_lzma.c: the lzma codec, decoder and encoder.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fuzz/fuzz_codec.h"

static const char *const specs[] = {"lzma(0)", "lzma(0,format=alone)", "lzma(0,format=raw,delta=4)",
                                    "lzma(0,format=raw1,lc=0,lp=2,pb=0)"};

FUZZ_CODEC(specs)
