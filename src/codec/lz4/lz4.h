/*
 * lz4.h: what the raw LZ4 codec and the LZ4 frame codec share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CODEC_LZ4_LZ4_H
#define LADE_CODEC_LZ4_LZ4_H

#include "codec/codecs.h"

#include <lade/codec.h>

/* Bytes before a block that its matches can reach; more of a dictionary is never used. */
#define LADE__LZ4_HISTORY ((size_t)64 * 1024)

/* An encoded block where it was found. */
typedef struct lade__lz4_block {
	const uint8_t *src;
	size_t size;
	size_t history; /* bytes of dictionary and earlier output that its matches can reach */
	uint64_t off;   /* of 'src' in the chunk */
} lade__lz4_block;

/*
 * Says what is wrong with a block that LZ4_decompress_safe() refused for a destination of 'cap'
 * bytes.  'done' are the decoded bytes before it, for the message.
 */
lade_status lade__lz4_diagnose(const lade__lz4_block *block, size_t cap, size_t done,
                               lade_error *err);

/* The last 64 KiB of a dictionary. */
static inline lade_cspan lade__lz4_tail(lade_cspan dict)
{
	if (dict.size > LADE__LZ4_HISTORY) {
		dict.data = (const uint8_t *)dict.data + (dict.size - LADE__LZ4_HISTORY);
		dict.size = LADE__LZ4_HISTORY;
	}
	return dict;
}

/* Levels from here on are LZ4-HC's, as in lz4(1); those below are the fast compressor's. */
#define LADE__LZ4_HC_LEVEL 3
#define LADE__LZ4_LEVEL_MIN (-65535)
#define LADE__LZ4_LEVEL_MAX 12

/* The fast compressor's acceleration: 1 for levels 0 to 2, 1 + n for -n. */
static inline int lade__lz4_acceleration(int level)
{
	return level < 0 ? 1 - level : 1;
}

double lade__lz4_encode_cost(void *ctx, const lade_workload *workload);
double lade__lz4_decode_cost(void *ctx, const lade_workload *workload);

LADE__RECORDS(lz4)
LADE__RECORDS(lz4f)
LADE__GPU_RECORDS(lz4)
/* The library's own decoder, for LADE_BATCH_STRICT. */
extern const lade_implementation lade__lz4_strict;

#endif
