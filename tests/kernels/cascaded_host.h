/*
 * cascaded_host.h: the host's encoder for test_cascaded.cc.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_CASCADED_HOST_H
#define LADE_TESTS_CASCADED_HOST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Encodes 'size' bytes by the spec 'text' into 'cap' bytes, which suffice; gives their number. */
size_t cascaded_host_encode(const char *text, const uint8_t *data, size_t size, uint8_t *to,
                            size_t cap);

/* Gives back what the encoder kept; a group's teardown. */
int cascaded_host_close(void **state);

#ifdef __cplusplus
}
#endif

#endif
