/* SPDX-License-Identifier: Apache-2.0 */
#include <lade/lade.h>
#include <stdio.h>

static float field[65536], back[65536];     /* your array; it is decoded to 'back' */
static unsigned char packed[sizeof field + 4096];

int main(void)
{
	lade_engine *engine = lade_engine_default();
	lade_spec *spec;
	lade_error err;
	size_t size;
	if (lade_spec_parse(NULL, "shuffle(4)|zstd(level=3)", &spec, &err) ||
	    lade_encode(engine, spec, lade_host_cspan(field, sizeof field),
	                lade_host_span(packed, sizeof packed), &size, &err))
		return fprintf(stderr, "%s\n", err.message);
	lade_segment chunk = {.data = packed, .size = size}; /* one of N */
	lade_item item = {.src = &chunk, .src_count = 1, .dst = lade_host_span(back, sizeof back)};
	if (lade_decode_into(engine, spec, &item, 1, NULL, NULL, &err))
		return fprintf(stderr, "%s\n", err.message);
	printf("%zu bytes of array in %zu\n", sizeof back, size);
	lade_spec_unref(spec);
	return 0;
}
