/*
 * filter_host.h: the host's decoder of a spec, for tests that cannot include lade's headers beside
 * the kernels'.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_FILTER_HOST_H
#define LADE_TESTS_FILTER_HOST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Decodes; returns the status.  A spec that is none ends the program. */
uint32_t filter_host_decode(const char *spec, const void *src, size_t size, void *dst, size_t cap,
                            size_t *made);

#ifdef __cplusplus
}
#endif

#endif
