/*
 * measure.h: what suggest.c wants of measure.c beside lade_measure().
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BATCH_MEASURE_H
#define LADE_BATCH_MEASURE_H

#include <lade/suggest.h>

/* An engine, and bytes that the host can read; else LADE_E_ARG or LADE_E_UNSUPPORTED. */
lade_status lade__measure_check(const lade_engine *engine, lade_cspan data, lade_error *err);

/* The encoded size alone, by one pass; the data have been checked. */
lade_status lade__measure_size(lade_engine *engine, const lade_spec *spec, lade_cspan data,
                               const lade_measure_options *options, uint64_t *encoded_size,
                               lade_error *err);

#endif
