/*
 * set.c: what cascaded is to the library (codec/codecs.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/cascaded/cascaded.h"

static const lade_algorithm *const algorithms[] = {&lade__cascaded, NULL};

static const lade_implementation *const implementations[] = {
	&lade__cascaded_encode,
	&lade__cascaded_decode,
	NULL,
};

static const lade__gpu_implementation *const gpu[] = {
	&lade__cascaded_encode_gpu,
	&lade__cascaded_decode_gpu,
	NULL,
};

const lade__set lade__codec_cascaded = {algorithms, implementations, gpu};
