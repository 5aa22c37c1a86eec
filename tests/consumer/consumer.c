/*
 * consumer.c: what a program outside the tree does first; C11 and C++17 alike.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/lade.h>

#include <stdio.h>
#include <string.h>

static int failed(const char *what, const lade_error *err)
{
	fprintf(stderr, "%s: %s: %s\n", what, lade_status_name(err->status), err->message);
	return 1;
}

int main(void)
{
	static const char *const specs[] = {"lz4", "snappy", "zstd(level=3)", "gzip",
	                                    "shuffle(4)|blosc|crc32c"};
	static unsigned char data[40000], stored[90000], back[40000];
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (unsigned char)(i / 100);
	if (lade_version() != LADE_VERSION)
		return 1;
	lade_error err;
	lade_engine *engine = NULL;
	if (lade_engine_new(NULL, &engine, &err) != LADE_OK)
		return failed("engine", &err);
	for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
		lade_spec *spec = NULL;
		size_t size = 0, back_size = 0;
		if (lade_spec_parse(NULL, specs[i], &spec, &err) != LADE_OK)
			return failed(specs[i], &err);
		if (lade_encode(engine, spec, lade_host_cspan(data, sizeof data),
		                lade_host_span(stored, sizeof stored), &size, &err) != LADE_OK)
			return failed(specs[i], &err);
		if (lade_decode(engine, spec, lade_host_cspan(stored, size),
		                lade_host_span(back, sizeof back), &back_size, &err) !=
		    LADE_OK)
			return failed(specs[i], &err);
		if (back_size != sizeof data || memcmp(back, data, sizeof data) != 0)
			return 1;
		printf("%s: %zu bytes stored as %zu\n", specs[i], sizeof data, size);
		lade_spec_unref(spec);
	}
	lade_engine_free(engine);
	return 0;
}
