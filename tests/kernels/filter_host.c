/*
 * filter_host.c: see filter_host.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter_host.h"

#include <lade/lade.h>

#include <stdio.h>
#include <stdlib.h>

uint32_t filter_host_decode(const char *text, const void *src, size_t size, void *dst, size_t cap,
                            size_t *made)
{
	lade_spec *spec;
	lade_error err;
	if (lade_spec_parse(NULL, text, &spec, &err) != LADE_OK) {
		fprintf(stderr, "%s\n", err.message);
		abort();
	}
	lade_status status =
		lade_decode(lade_engine_default(), spec, lade_host_cspan(src, size),
	                    lade_host_span(dst, cap), made, NULL);
	lade_spec_unref(spec);
	return status;
}
