/*
 * set.c: what zstd is to the library (codec/codecs.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/zstd/zstd.h"

static const lade_algorithm *const algorithms[] = {&lade__zstd, NULL};

static const lade_implementation *const implementations[] = {
	&lade__zstd_encode,
	&lade__zstd_decode,
	NULL,
};

static const lade__gpu_implementation *const gpu[] = {&lade__zstd_decode_gpu, NULL};

const lade__set lade__codec_zstd = {algorithms, implementations, gpu};
