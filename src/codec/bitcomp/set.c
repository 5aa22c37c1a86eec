/*
 * set.c: what bitcomp is to the library (codec/codecs.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/bitcomp/bitcomp.h"

static const lade_algorithm *const algorithms[] = {&lade__bitcomp, NULL};

static const lade_implementation *const implementations[] = {
	&lade__bitcomp_encode,
	&lade__bitcomp_decode,
	NULL,
};

static const lade__gpu_implementation *const gpu[] = {
	&lade__bitcomp_encode_gpu,
	&lade__bitcomp_decode_gpu,
	NULL,
};

const lade__set lade__codec_bitcomp = {algorithms, implementations, gpu};
