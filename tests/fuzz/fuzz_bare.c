/*
 * fuzz_bare.c: encoded bytes behind a size (docs/format/bare.md), and raw ones.  The decoder keeps
 * to its destination, agrees with lade_bare_decoded_size(), and what it gives can be encoded
 * and decoded again.
 *
 *     | which 1: spec and kind | room 1: the destination, in steps of 64 bytes | bytes |
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/lade.h>

#include <stdlib.h>
#include <string.h>

static const char *const texts[] = {"lz4", "zstd", "deflate", "copy", "shuffle(4)|lz4|crc32c"};
#define TEXTS (sizeof texts / sizeof texts[0])

static void expect(bool good)
{
	if (!good)
		abort();
}

static void again(lade_engine *engine, const lade_bare_options *options, lade_cspan decoded)
{
	size_t cap = lade_spec_bound(options->spec, decoded.size) + 16, size = 0, got = 0;
	lade_span mid = lade_host_span(malloc(cap), cap);
	lade_span back = lade_host_span(malloc(decoded.size + 1), decoded.size);
	expect(mid.data && back.data);
	expect(lade_bare_encode(engine, decoded, mid, &size, options, NULL) == LADE_OK);
	expect(lade_bare_decode(engine, lade_host_cspan(mid.data, size), back, &got, options,
	                        NULL) == LADE_OK);
	expect(got == decoded.size && (got == 0 || !memcmp(back.data, decoded.data, got)));
	free(mid.data);
	free(back.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static lade_engine *engine;
	static lade_spec *specs[TEXTS];
	if (!engine) {
		lade_engine_options options = {.struct_size = sizeof options, .threads = 1};
		expect(lade_engine_new(&options, &engine, NULL) == LADE_OK);
		for (size_t i = 0; i < TEXTS; i++)
			expect(lade_spec_parse(NULL, texts[i], &specs[i], NULL) == LADE_OK);
	}
	if (size < 2)
		return 0;
	lade_bare_options options = {.struct_size = sizeof options,
	                             .spec = specs[data[0] % TEXTS],
	                             .kind = (lade_bare)(1 + data[0] / TEXTS % 3)};
	size_t room = (size_t)data[1] * 64, got = 1;
	size -= 2;
	/* Blocks of their own sizes, so that a byte too far is seen. */
	uint8_t *src = malloc(size + !size), *dst = malloc(room + !room);
	expect(src && dst);
	memcpy(src, data + 2, size);
	lade_cspan from = lade_host_cspan(src, size);
	lade_error err = {0};
	size_t claimed = 0;
	lade_status sized = lade_bare_decoded_size(engine, from, &claimed, &options, NULL);
	lade_status status =
		lade_bare_decode(engine, from, lade_host_span(dst, room), &got, &options, &err);
	if (status == LADE_OK) {
		expect(got <= room && (sized == LADE_OK ? claimed == got
		                                        : sized == LADE_E_UNKNOWN_SIZE));
		again(engine, &options, lade_host_cspan(dst, got));
	} else {
		expect(got == 0 && err.status == status && err.message[0]);
		expect(status != LADE_E_INTERNAL && status != LADE_E_ARG);
		expect(err.offset == LADE_NO_OFFSET || err.offset <= size);
	}
	free(src);
	free(dst);
	return 0;
}
