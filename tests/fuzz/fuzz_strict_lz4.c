/*
 * fuzz_strict_lz4.c: the library's own decoder of LZ4.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fuzz/fuzz_strict.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_strict(lade__lz4_strict.codec, plain_lz4, data, size);
	return 0;
}
