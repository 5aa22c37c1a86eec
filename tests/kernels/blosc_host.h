/*
 * blosc_host.h: what the host's decoder says of a Blosc1 container.  The headers of kernels and of
 * the library have names in common.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_BLOSC_HOST_H
#define LADE_TESTS_BLOSC_HOST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A lade_status; with LADE_OK '*size' of the 'cap' bytes at 'dst' are what 'src' decodes to. */
uint32_t blosc_host_decode(const uint8_t *src, size_t src_size, uint8_t *dst, size_t cap,
                           size_t *size);

#ifdef __cplusplus
}
#endif

#endif
