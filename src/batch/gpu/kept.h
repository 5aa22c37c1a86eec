/*
 * kept.h: pinned memory that an engine keeps between calls.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BATCH_GPU_KEPT_H
#define LADE_BATCH_GPU_KEPT_H

#include <lade/batch.h>

/*
 * An allocator of pinned memory, of which the engine keeps some when it is freed, for the next who
 * asks: to pin memory takes a millisecond for a few megabytes.  What is freed, the device has done
 * with.  lade_engine_trim() gives it back.
 */
lade_allocator lade__gpu_pinned_kept(lade_engine *engine);

#endif
