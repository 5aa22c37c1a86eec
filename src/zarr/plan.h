/*
 * plan.h: the life of a read.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ZARR_PLAN_H
#define LADE_ZARR_PLAN_H

#include "zarr/read.h"

/* Fails: as lade_zarr_read() before it reads; then nothing is kept. */
lade_status lade__zread_init(lade__zread *r, const lade_zarr *array,
                             const lade_zarr_selection *selection, const lade_zarr_target *target,
                             const lade_zarr_read_options *options, lade_error *err);
void lade__zread_reset(lade__zread *r);

/* plan_info.c: counts the leaves and shards. */
void lade__zread_count(lade__zread *r);

/* read.c: reads all of it, once. */
lade_status lade__zread_run(lade__zread *r, lade_error *err);

#endif
