/*
 * blosc_host.c: Blosc1 containers, decoded by the host.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "blosc_host.h"

#include <lade/lade.h>

uint32_t blosc_host_decode(const uint8_t *src, size_t src_size, uint8_t *dst, size_t cap,
                           size_t *size)
{
	static lade_spec *spec; /* one for all calls of a program */
	lade_engine *engine = lade_engine_default();
	lade_status status = spec ? LADE_OK : lade_spec_parse(engine, "blosc", &spec, NULL);
	*size = 0;
	return (uint32_t)(status == LADE_OK
	                          ? lade_decode(engine, spec, lade_host_cspan(src, src_size),
	                                        lade_host_span(dst, cap), size, NULL)
	                          : status);
}
