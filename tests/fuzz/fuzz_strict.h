/*
 * fuzz_strict.h: the strict decoders against a plain one (lz_plain.h): status, size and bytes.
 *
 *     | room 2 | bytes |
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_FUZZ_STRICT_H
#define LADE_TESTS_FUZZ_STRICT_H

#include "codec/lz4/lz4.h"
#include "codec/snappy/snappy.h"
#include "lz_plain.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void fuzz_expect(bool ok)
{
	if (!ok)
		abort();
}

/* The blocks have just the sizes that are told, so that a sanitizer sees what passes them. */
static inline void fuzz_strict(const lade_codec_ops *decoder,
                               lade_status (*plain)(const uint8_t *in, size_t size, uint8_t *out,
                                                    size_t cap, size_t *made),
                               const uint8_t *data, size_t size)
{
	if (size < 2)
		return;
	size_t room = (size_t)data[0] | (size_t)data[1] << 8, got = 1, want_got;
	uint8_t *src = malloc(size - 2 + 1), *dst = malloc(room + 1), *want = malloc(room + 1);
	fuzz_expect(src && dst && want);
	/* At odd addresses, and at the blocks' ends. */
	memcpy(src + 1, data + 2, size - 2);
	lade_error err = {0};
	lade_run run = {0};
	lade_status status = decoder->run(&run, lade_host_cspan(src + 1, size - 2),
	                                  lade_host_span(dst + 1, room), &got, &err);
	lade_status wanted = plain(data + 2, size - 2, want, room, &want_got);
	fuzz_expect(status == wanted && got == want_got);
	fuzz_expect(status == LADE_OK
	                    ? memcmp(dst + 1, want, got) == 0
	                    : err.status == status && err.message[0] &&
	                              (err.offset <= size - 2 || err.offset == LADE_NO_OFFSET));
	free(src);
	free(dst);
	free(want);
}

#endif
