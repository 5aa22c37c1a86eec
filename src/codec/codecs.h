/*
 * codecs.h: the records of the library's own codecs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CODEC_CODECS_H
#define LADE_CODEC_CODECS_H

#include "base/support.h"

#include <lade/codec.h>

#define LADE__CODEC(name) \
	extern const lade_algorithm lade__##name; \
	extern const lade_implementation lade__##name##_encode; \
	extern const lade_implementation lade__##name##_decode;
LADE__CODEC(copy)
LADE__CODEC(lz4)
LADE__CODEC(lz4f)
LADE__CODEC(snappy)
LADE__CODEC(zstd)
LADE__CODEC(deflate)
LADE__CODEC(zlib)
LADE__CODEC(gzip)
LADE__CODEC(blosc)
LADE__CODEC(bitcomp)
LADE__CODEC(cascaded)
LADE__CODEC(ans)
#undef LADE__CODEC

/* The library's own decoders, for LADE_BATCH_STRICT. */
extern const lade_implementation lade__lz4_strict;
extern const lade_implementation lade__snappy_strict;

/* Those for devices, in lz_gpu.c. */
extern const lade_implementation lade__lz4_encode_gpu, lade__lz4_decode_gpu;
extern const lade_implementation lade__snappy_encode_gpu, lade__snappy_decode_gpu;
/* In ans/gpu.c. */
extern const lade_implementation lade__ans_encode_gpu, lade__ans_decode_gpu;

/* In cascaded/gpu.c. */
extern const lade_implementation lade__cascaded_encode_gpu, lade__cascaded_decode_gpu;

/* In bitcomp/gpu.c. */
extern const lade_implementation lade__bitcomp_encode_gpu, lade__bitcomp_decode_gpu;

/* The option of LZ4 and Snappy that their encoders on devices look at; the last one of each. */
#define LADE__ELEM_OPTION                                                                      \
	{                                                                                      \
		.name = "elem", .type = LADE_OPTION_INT, .fallback = {.i = 1}, .min = 1,       \
		.max = 8, .doc = "bytes of an element, 1, 2, 4 or 8: a hint to device encoders", \
	}
lade_status lade__elem_check(const lade_stage *stage, lade_error *err);

#endif
