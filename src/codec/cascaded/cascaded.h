/*
 * cascaded.h: what the encoder and the decoder of the cascaded codec share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CODEC_CASCADED_H
#define LADE_CODEC_CASCADED_H

#include "base/support.h"
#include "codec/codecs.h"
#include "codec/cascaded/args.h"
#include "codec/cascaded/layout.h"

/* The options' places in a stage. */
enum {
	LADE__CASCADED_DTYPE,
	LADE__CASCADED_MODE,
	LADE__CASCADED_LEVEL,
	LADE__CASCADED_ENCODINGS,
	LADE__CASCADED_RLES,
	LADE__CASCADED_DELTAS,
	LADE__CASCADED_BITPACK,
	LADE__CASCADED_BLOCK,
	LADE__CASCADED_OPTIONS,
};

lade_cas_choice lade__cascaded_choice_of(const lade_stage *stage);

/*
 * Reads and checks the header and, with 'whole', also that the destination has 'cap' bytes, the
 * directory, and the chunk's length.
 * Fails: as the table in docs/format/cascaded.md, section 3
 */
lade_status lade__cascaded_open(lade_cspan src, size_t cap, bool whole, lade_cascaded_chunk *c,
                                lade_error *err);

LADE__RECORDS(cascaded)
LADE__GPU_RECORDS(cascaded)

#endif
