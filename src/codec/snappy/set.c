/*
 * set.c: what snappy is to the library (codec/codecs.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/snappy/snappy.h"

static const lade_algorithm *const algorithms[] = {&lade__snappy, NULL};

static const lade_implementation *const implementations[] = {
	&lade__snappy_encode,
	&lade__snappy_decode,
	&lade__snappy_strict,
	NULL,
};

static const lade__gpu_implementation *const gpu[] = {
	&lade__snappy_encode_gpu,
	&lade__snappy_decode_gpu,
	NULL,
};

const lade__set lade__codec_snappy = {algorithms, implementations, gpu};
