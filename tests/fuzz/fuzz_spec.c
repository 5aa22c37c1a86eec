/*
 * fuzz_spec.c: the text and the binary form of a spec.  What is read can be written, reads back
 * equal, and its text and bytes are the same the second time.
 *
 * The input's first byte chooses the form: even for text, odd for bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/spec.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define expect(condition)                                                           \
	do {                                                                        \
		if (!(condition)) {                                                 \
			fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition); \
			abort();                                                    \
		}                                                                   \
	} while (0)

/* Both forms of 'spec' give it back. */
static void check_round_trip(const lade_spec *spec)
{
	size_t size = 0, size2 = 0;
	const void *bytes = lade_spec_bytes(spec, &size);
	lade_spec *again = NULL;
	expect(lade_spec_from_bytes(NULL, bytes, size, &again, NULL) == LADE_OK);
	expect(lade_spec_equal(spec, again));
	expect(strcmp(lade_spec_text(spec), lade_spec_text(again)) == 0);
	lade_spec_unref(again);
	again = NULL;
	expect(lade_spec_parse(NULL, lade_spec_text(spec), &again, NULL) == LADE_OK);
	expect(lade_spec_equal(spec, again));
	const void *bytes2 = lade_spec_bytes(again, &size2);
	expect(size == size2 && memcmp(bytes, bytes2, size) == 0);
	lade_spec_unref(again);
}

/* The bound never decreases. */
static void check_bound(const lade_spec *spec)
{
	static const size_t sizes[] = {0,     1,     2,       7,           8,
	                               4095,  65536, 1 << 24, (size_t)1 << 40, SIZE_MAX / 2,
	                               SIZE_MAX};
	size_t last = 0;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		size_t bound = lade_spec_bound(spec, sizes[i]);
		expect(bound >= last);
		last = bound;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	lade_spec *spec = NULL;
	lade_error err = {0};
	lade_status status;
	uint8_t form = data[0] & 1;
	data++;
	size--;
	if (form) {
		status = lade_spec_from_bytes(NULL, data, size, &spec, &err);
	} else {
		char *text = malloc(size + 1);
		expect(text != NULL);
		memcpy(text, data, size);
		text[size] = 0;
		status = lade_spec_parse(NULL, text, &spec, &err);
		free(text);
	}
	if (status != LADE_OK) {
		expect(spec == NULL && err.status == status && err.message[0]);
		expect(err.offset == LADE_NO_OFFSET || err.offset <= size);
		return 0;
	}
	if (form) {
		size_t canonical = 0;
		const void *bytes = lade_spec_bytes(spec, &canonical);
		expect(canonical == size && memcmp(bytes, data, size) == 0);
	}
	check_round_trip(spec);
	check_bound(spec);
	lade_spec_unref(spec);
	return 0;
}
