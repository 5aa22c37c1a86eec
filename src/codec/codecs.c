/*
 * codecs.c: the table of the library's own codecs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/codecs.h"

#include "base/builtin.h"

static const lade_algorithm *const algorithms[] = {
	&lade__copy,    &lade__lz4,  &lade__snappy, &lade__zstd,
	&lade__deflate, &lade__zlib, &lade__gzip,   &lade__lz4f,
	&lade__blosc,   &lade__bitcomp, &lade__cascaded, &lade__ans,
	NULL,
};

static const lade_implementation *const implementations[] = {
	&lade__copy_encode,    &lade__copy_decode,
	&lade__lz4_encode,     &lade__lz4_decode,
	&lade__lz4_strict,
	&lade__snappy_encode,  &lade__snappy_decode,
	&lade__snappy_strict,
	&lade__zstd_encode,    &lade__zstd_decode,
	&lade__deflate_encode, &lade__deflate_decode,
	&lade__zlib_encode,    &lade__zlib_decode,
	&lade__gzip_encode,    &lade__gzip_decode,
	&lade__lz4f_encode,    &lade__lz4f_decode,
	&lade__blosc_encode,   &lade__blosc_decode,
	&lade__bitcomp_encode, &lade__bitcomp_decode,
	&lade__cascaded_encode, &lade__cascaded_decode,
	&lade__ans_encode,     &lade__ans_decode,
	&lade__lz4_encode_gpu, &lade__lz4_decode_gpu,
	&lade__snappy_encode_gpu, &lade__snappy_decode_gpu,
	&lade__ans_encode_gpu, &lade__ans_decode_gpu,
	&lade__cascaded_encode_gpu, &lade__cascaded_decode_gpu,
	&lade__bitcomp_encode_gpu, &lade__bitcomp_decode_gpu,
	NULL,
};

const lade__set lade__codecs = {algorithms, implementations};
