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
 * the next one is being filled.
 */
lade_status cli_pump(lade_input from, size_t size, cli_out *out, lade_error *err);

/*
 * Decodes a whole frame behind what was written to 'out', a regular file, so far: each of 'threads'
 * threads decodes chunks and writes them to their places, while they are in its cache.
 */
lade_status cli_scatter(lade_frame *frame, unsigned threads, cli_out *out, lade_error *err);

#endif
