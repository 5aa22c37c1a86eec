/*
 * set.c: what ans is to the library (codec/codecs.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/ans/ans.h"

static const lade_algorithm *const algorithms[] = {&lade__ans, NULL};

static const lade_implementation *const implementations[] = {
	&lade__ans_encode,
	&lade__ans_decode,
	NULL,
};

static const lade__gpu_implementation *const gpu[] = {
	&lade__ans_encode_gpu,
	&lade__ans_decode_gpu,
	NULL,
};

const lade__set lade__codec_ans = {algorithms, implementations, gpu};
