/*
 * given.h: what a call was given, in this version's structs, whatever version its caller was
 * compiled for.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ARRAY_GIVEN_H
#define LADE_ARRAY_GIVEN_H

#include "base/options.h"

#include <lade/async.h>

/* 0.2.0's sizes of the structs that come in arrays, for which 0 stands in a call's options. */
#define LADE__ITEM_0_2      LADE__SIZE_TO(lade_item, tail)
#define LADE__SEGMENT_0_2   LADE__SIZE_TO(lade_segment, decoded_size)
#define LADE__OUTPUT_0_2    LADE__SIZE_TO(lade_item_output, layout)
#define LADE__RESULT_0_2    LADE__SIZE_TO(lade_result, size)
#define LADE__CANDIDATE_0_2 LADE__SIZE_TO(lade_candidate, reason)

/* The sizes of a caller's structs, 0 where they are 0.2.0's. */
typedef struct lade__sizes {
	size_t item, segment, output, result;
} lade__sizes;

/* A call's arrays.  They are the caller's own where the sizes are this version's, as nearly always;
 * else they are copies, which lade__given_close() frees. */
typedef struct lade__given {
	const lade_item *items;
	lade_result *results; /* NULL: not wanted */
	size_t count;
	/* Of copies: */
	const lade_allocator *host;
	void *block; /* NULL: there are none */
	size_t block_size;
	unsigned char *caller_results;
	size_t result_size;
} lade__given;

/*
 * Takes the arrays of a call.  'given' has them as the caller gives them, items, count and results,
 * and 'host'; all else is zero.  Their sizes may be longer than this version's if the surplus is
 * zero.
 * Fails: LADE_E_ARG, naming what is not zero, or a size that is shorter than 0.2.0's; LADE_E_NOMEM
 */
lade_status lade__given_open(lade__given *given, const lade__sizes *sizes, lade_error *err);

/* Brings copied results to the caller; of longer ones, what this version lacks becomes zero. */
void lade__given_close(lade__given *given);

/* Reads the arrays of a call over chunks.
 * Fails: LADE_E_ARG */
lade_status lade__arrays_read(const lade_arrays *given, lade_arrays *arrays, lade_error *err);

#endif
