/*
 * filters.c: the table of the library's own filters.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter/filters.h"

#include "base/builtin.h"

#define LADE_X(name) &lade__filter_##name,
static const lade_algorithm *const algorithms[] = {LADE__FILTERS(LADE_X) NULL};
#undef LADE_X

#define LADE_X(name) &lade__filter_##name##_encode, &lade__filter_##name##_decode,
static const lade_implementation *const implementations[] = {
	LADE__FILTERS(LADE_X) &lade__filter_bitshuffle_encode_gpu,
	&lade__filter_bitshuffle_decode_gpu, NULL};
#undef LADE_X

const lade__set lade__filters = {algorithms, implementations};
