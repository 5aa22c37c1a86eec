/*
 * set.c: what blosc is to the library (codec/codecs.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/blosc/blosc.h"

static const lade_algorithm *const algorithms[] = {&lade__blosc, NULL};

static const lade_implementation *const implementations[] = {
	&lade__blosc_encode,
	&lade__blosc_decode,
	NULL,
};

static const lade__gpu_implementation *const gpu[] = {&lade__blosc_decode_gpu, NULL};

const lade__set lade__codec_blosc = {algorithms, implementations, gpu};
