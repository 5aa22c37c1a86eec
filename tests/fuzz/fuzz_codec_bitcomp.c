/*
 * fuzz_codec_bitcomp.c: bitcomp, decoder and encoder.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fuzz/fuzz_codec.h"

static const char *const specs[] = {
	"bitcomp",
	"bitcomp(<i2)",
	"bitcomp(<u4)",
	"bitcomp(<i8)",
	"bitcomp(<i4,algorithm=sparse)",
	"bitcomp(<f2,mode=lossy_signed,delta=0.25)",
	"bitcomp(<f4,mode=lossy_unsigned,delta=1e-3)",
	"bitcomp(<f8,mode=lossy_signed,delta=1e-9)",
};

FUZZ_CODEC(specs)
