/*
 * set.c: what deflate is to the library (codec/codecs.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/deflate/deflate.h"

static const lade_algorithm *const algorithms[] = {&lade__deflate, &lade__zlib, &lade__gzip, NULL};

static const lade_implementation *const implementations[] = {
	&lade__deflate_encode,
	&lade__deflate_decode,
	&lade__zlib_encode,
	&lade__zlib_decode,
	&lade__gzip_encode,
	&lade__gzip_decode,
	&lade__deflate_strict, &lade__zlib_strict, &lade__gzip_strict,
	NULL,
};

static const lade__gpu_implementation *const gpu[] = {
	&lade__deflate_decode_gpu, &lade__zlib_decode_gpu, &lade__gzip_decode_gpu, NULL};

const lade__set lade__codec_deflate = {algorithms, implementations, gpu};
