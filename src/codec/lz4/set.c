/*
 * set.c: what lz4 is to the library (codec/codecs.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/lz4/lz4.h"

static const lade_algorithm *const algorithms[] = {&lade__lz4, &lade__lz4f, NULL};

static const lade_implementation *const implementations[] = {
	&lade__lz4_encode,
	&lade__lz4_decode,
	&lade__lz4_strict,
	&lade__lz4f_encode,
	&lade__lz4f_decode,
	NULL,
};

static const lade__gpu_implementation *const gpu[] = {
	&lade__lz4_encode_gpu,
	&lade__lz4_decode_gpu,
	NULL,
};

const lade__set lade__codec_lz4 = {algorithms, implementations, gpu};
