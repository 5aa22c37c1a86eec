/*
 * snappy.h: the records of Snappy.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CODEC_SNAPPY_H
#define LADE_CODEC_SNAPPY_H

#include "codec/codecs.h"

LADE__RECORDS(snappy)
LADE__GPU_RECORDS(snappy)
/* The library's own decoder, for LADE_BATCH_STRICT. */
extern const lade_implementation lade__snappy_strict;

#endif
