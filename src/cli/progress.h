/*
 * progress.h: the line on standard error that says how far a file is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CLI_PROGRESS_H
#define LADE_CLI_PROGRESS_H

#include <stdint.h>

/* Starts a line for a file: drawn only when standard error is a terminal and the verbosity is
 * 2 or more.  'total' bytes are expected (0: not known). */
void progress_start(const char *name, const char *verb, uint64_t total);

/* Says that 'in' bytes were read and 'out' bytes written since the last call; draws at most ten
 * times a second.  Any thread may call it. */
void progress_add(uint64_t in, uint64_t out);

/* Takes the line away, until the next progress_add(). */
void progress_clear(void);

/* Takes the line away for good. */
void progress_end(void);

#endif
