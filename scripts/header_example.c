/*
 * header_example.c: the example at the head of a public header, with the variables that these
 * examples share (lade.h names them).  check_examples.sh extracts it to example.inc.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/lade.h>
#include <stdio.h>

static float field[16384], back[16384];
static unsigned char packed[80000];

static lade_status write_file(void *ctx, const void *src, size_t size, lade_error *err)
{
	if (fwrite(src, 1, size, ctx) != size)
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "cannot write %zu bytes", size);
	return LADE_OK;
}

/* An example returns what its last check gave, or falls through. */
static int example(lade_engine *engine, const lade_spec *spec, size_t size, FILE *file)
{
	lade_error err;
	/* For async.h, which is compiled and not run. */
	const void *const *src_dev = NULL;
	void *const *dst_dev = NULL;
	const uint64_t *sizes_dev = NULL, *caps_dev = NULL;
	uint32_t *statuses_dev = NULL;
	lade_stream stream = NULL;
#include "example.inc"
	return 0;
}

int main(int argc, char **argv)
{
	lade_engine *engine = lade_engine_default();
	lade_spec *spec;
	lade_error err;
	size_t size;
	FILE *file = argc > 1 ? fopen(argv[1], "wb") : NULL;
	for (size_t i = 0; i < 16384; i++)
		field[i] = (float)(i % 100);
	if (lade_spec_parse(NULL, "shuffle(4)|zstd", &spec, &err) ||
	    lade_encode(engine, spec, lade_host_cspan(field, sizeof field),
	                lade_host_span(packed, sizeof packed), &size, &err))
		return fprintf(stderr, "%s\n", err.message);
	int status = example(engine, spec, size, file);
	lade_spec_unref(spec);
	return status;
}
