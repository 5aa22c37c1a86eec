/*
 * zstd.h: what the directions of the Zstandard codec share, and what others need of its contexts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CODEC_ZSTD_ZSTD_H
#define LADE_CODEC_ZSTD_ZSTD_H

#include "codec/codecs.h"

/* The contexts take their memory from an allocator of ours: functions that zstd.h keeps apart, but
 * that the shared library exports. */
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>
#include <zstd_errors.h>

/* The options of a stage, by index. */
enum {
	LADE__ZSTD_LEVEL = 0,
	LADE__ZSTD_CHECKSUM = 1,
	LADE__ZSTD_WINDOW_LOG = 2,
	LADE__ZSTD_LONG = 3,
};

/* zstd's memory from 'host', which outlives the context. */
ZSTD_customMem lade__zstd_memory(const lade_allocator *host);

/* A stage's decoded size: the sum over the frames of 'src'. */
lade_status lade__zstd_decoded_size(const lade_stage *stage, const void *src, size_t size,
                                    uint64_t *decoded, lade_error *err);

LADE__RECORDS(zstd)
extern const lade__gpu_implementation lade__zstd_decode_gpu;

#endif
