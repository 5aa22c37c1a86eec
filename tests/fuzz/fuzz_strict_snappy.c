/*
 * fuzz_strict_snappy.c: the library's own decoder of Snappy.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fuzz/fuzz_strict.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_strict(lade__snappy_strict.codec, plain_snappy, data, size);
	return 0;
}
