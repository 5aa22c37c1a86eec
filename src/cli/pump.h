/*
 * pump.h: decoding and writing at once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CLI_PUMP_H
#define LADE_CLI_PUMP_H

#include "cli/work.h"

/*
 * Writes all that 'from' gives, to its end: a thread writes one buffer of 'size' bytes while
 * the next one is being filled.  The buffers are pinned for a device, which may be CLI_NO_GPU.
 */
lade_status cli_pump(lade_input from, size_t size, int32_t device, cli_out *out, lade_error *err);

/*
 * Decodes a whole frame behind what was written to 'out' so far, a regular file or nowhere: each of
 * 'threads' threads decodes chunks and writes them to their places, while they are in its cache.
 */
lade_status cli_scatter(lade_frame *frame, unsigned threads, cli_out *out, lade_error *err);

/*
 * The same for a frame that was opened with where = LADE_WHERE_DEVICE: in large pieces, of which
 * some are decoded while others are written.  'out' may be anything; where it is no file the pieces
 * are written in order.
 */
lade_status cli_gpu_frame(lade_frame *frame, int32_t device, cli_out *out, lade_error *err);

#endif
