/*
 * gpu.h: the option --gpu[=N], and memory that a device reads and writes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CLI_GPU_H
#define LADE_CLI_GPU_H

#include <lade/lade.h>

/* The device's number where --gpu was not given. */
#define CLI_NO_GPU (-1)

/* Reads the option's value; NULL is device 0.  Gives CLI_OK, or CLI_USAGE when it has said what is
 * wrong. */
int cli_gpu_parse(const char *text, int32_t *device);

/* Whether there is such a device, and kernels for it.  Gives CLI_OK, or CLI_FAILED when it has said
 * why not. */
int cli_gpu_check(int32_t device);

/* Pageable memory for CLI_NO_GPU, else pinned memory. */
lade_status cli_buffer_new(size_t size, int32_t device, lade_span *out, lade_error *err);
void cli_buffer_free(lade_span *buffer); /* {NULL} is fine */

#endif
