/*
 * filters.c: the table of the library's own filters.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter/filters.h"

#define LADE_X(name) &lade__filter_##name,
static const lade_algorithm *const algorithms[] = {LADE__FILTERS(LADE_X) NULL};
#undef LADE_X

#define LADE_X(name) &lade__filter_##name##_encode, &lade__filter_##name##_decode,
static const lade_implementation *const implementations[] = {LADE__FILTERS(LADE_X) NULL};
#undef LADE_X

#define LADE_X(name) &lade__filter_##name##_encode_gpu, &lade__filter_##name##_decode_gpu,
#define LADE_Y(name) &lade__filter_##name##_decode_gpu,
static const lade__gpu_implementation *const gpu[] = {
	LADE__FILTERS_GPU(LADE_X) LADE__FILTERS_GPU_DECODE(LADE_Y) NULL};
#undef LADE_X
#undef LADE_Y

const lade__set lade__filters = {algorithms, implementations, gpu};
