/*
 * fuzz_npy.c: the headers of .npy files.  What is understood is written again as it was.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/npy.c"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char again[NPY_HEADER_MAX];
	/* A block of its own size, so that a byte read too far is seen. */
	uint8_t *copy = malloc(size + !size);
	npy header;
	if (!copy)
		abort();
	memcpy(copy, data, size);
	const char *why = npy_read(copy, size, &header);
	if (why ? !*why
	        : header.header_size > size || npy_write(&header, again) != header.header_size ||
	                  memcmp(again, data, header.header_size) != 0)
		abort();
	free(copy);
	return 0;
}
