/*
 * fuzz_rntuple.c: a ROOT file: its schema, its columns whole, and the elements of some entries.
 * The checksums of metadata are made right first; those of pages are verified or not by the size.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple_use.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *own = malloc(size + !size);
	use_expect(own);
	if (size)
		memcpy(own, data, size);
	kit_reseal(own, size, kit_anchor(own, size));
	lade_rntuple *tuple = use_open(own, size);
	if (tuple)
		use_tuple(tuple, own, size, use_has_keys(own, size),
		          size % 2 ? LADE_RNTUPLE_IGNORE_CHECKSUMS : 0);
	lade_rntuple_unref(tuple);
	free(own);
	return 0;
}
