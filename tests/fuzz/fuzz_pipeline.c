/*
 * fuzz_pipeline.c: any spec over any bytes.  What follows the spec's text is first decoded as
 * stored bytes, then encoded as plain ones, which must come back.
 *
 *     | flags 1 | spec as text, up to a line feed | bytes |
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/batch.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DECODED_CAP ((size_t)1 << 20)
#define TEXT_CAP 300

static lade_engine *engine;

#define expect(condition)                                                           \
	do {                                                                        \
		if (!(condition)) {                                                 \
			fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition); \
			abort();                                                    \
		}                                                                   \
	} while (0)

/* A block of just 'size' bytes, so that the sanitizer sees one too many. */
static uint8_t *block(size_t size)
{
	uint8_t *p = malloc(size ? size : 1);
	expect(p != NULL);
	return p;
}

/* Decodes in whole, then a part of it, which must be the same bytes. */
static void check_decode(const lade_spec *spec, const uint8_t *data, size_t size, uint8_t flags)
{
	lade_segment segment = {.data = data, .size = size};
	lade_item item = {.src = &segment, .src_count = 1};
	lade_result claim, result;
	bool told = lade_decoded_sizes(engine, spec, &item, 1, &claim, NULL, NULL) == LADE_OK;
	size_t cap = told && claim.size < DECODED_CAP ? claim.size : DECODED_CAP >> (flags & 15);
	uint8_t *dst = block(cap);
	lade_error err = {0};
	item.dst = lade_host_span(dst, cap);
	lade_status status = lade_decode_into(engine, spec, &item, 1, &result, NULL, &err);
	expect(status == result.status);
	if (status != LADE_OK) {
		expect(result.size == 0 && err.status == status && err.message[0]);
		free(dst);
		return;
	}
	expect(result.size <= cap);
	/* A format that tells its size tells the truth, or decoding fails. */
	expect(!told || claim.size == result.size);
	if (result.size > 2) {
		size_t off = result.size / 3, part = result.size / 3;
		uint8_t *piece = block(part);
		item.range_off = off;
		item.range_size = part;
		item.dst = lade_host_span(piece, part);
		if (lade_decode_into(engine, spec, &item, 1, &result, NULL, NULL) == LADE_OK)
			expect(result.size == part && memcmp(piece, dst + off, part) == 0);
		free(piece);
	}
	free(dst);
}

static bool is_integer(int64_t dtype)
{
	char class = lade_dtype_class((lade_dtype)dtype);
	return class == 'i' || class == 'u' || dtype == LADE_DTYPE_NONE;
}

/* Whether any bytes come back.  Of the filters these are the ones that move bytes or work on
 * integers; floats may be rounded, and packbits makes every byte but 0 a 1. */
static bool is_exact(const lade_spec *spec)
{
	static const char *const exact[] = {"shuffle", "bitshuffle", "split", "byteswap", "zigzag"};
	for (size_t i = 0; i < lade_spec_count(spec); i++) {
		const lade_stage *stage = lade_spec_stage(spec, i);
		bool ok = stage->algorithm->kind != LADE_STAGE_FILTER;
		for (size_t k = 0; k < sizeof exact / sizeof exact[0]; k++)
			ok = ok || strcmp(stage->algorithm->name, exact[k]) == 0;
		/* delta(dtype, astype) */
		if (strcmp(stage->algorithm->name, "delta") == 0)
			ok = is_integer(stage->option[0].i) && is_integer(stage->option[1].i);
		if (!ok)
			return false;
	}
	return true;
}

static void check_round_trip(const lade_spec *spec, const uint8_t *data, size_t size)
{
	size_t bound = lade_spec_bound(spec, size);
	if (bound > 8 * DECODED_CAP)
		return;
	uint8_t *stored = block(bound), *back = block(size);
	size_t stored_size = 0, back_size = 0;
	lade_error err = {0};
	lade_status status =
		lade_encode(engine, spec, lade_host_cspan(data, size),
		            lade_host_span(stored, bound), &stored_size, &err);
	/* The bound always suffices. */
	expect(status != LADE_E_NOSPACE);
	if (status == LADE_OK) {
		status = lade_decode(engine, spec, lade_host_cspan(stored, stored_size),
		                     lade_host_span(back, size), &back_size, &err);
		if (is_exact(spec))
			expect(status == LADE_OK && back_size == size &&
			       memcmp(back, data, size) == 0);
	}
	free(stored);
	free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!engine) {
		lade_engine_options options = {.struct_size = sizeof options, .threads = 1};
		expect(lade_engine_new(&options, &engine, NULL) == LADE_OK);
	}
	if (size < 2)
		return 0;
	uint8_t flags = data[0];
	data++;
	size--;
	const uint8_t *end = memchr(data, '\n', size);
	if (!end || end - data >= TEXT_CAP)
		return 0;
	char text[TEXT_CAP];
	size_t length = (size_t)(end - data);
	memcpy(text, data, length);
	text[length] = 0;
	lade_spec *spec = NULL;
	if (lade_spec_parse(engine, text, &spec, NULL) != LADE_OK)
		return 0;
	/* A copy that ends where the block ends. */
	size_t rest = size - length - 1;
	uint8_t *bytes = block(rest);
	memcpy(bytes, end + 1, rest);
	check_decode(spec, bytes, rest, flags);
	check_round_trip(spec, bytes, rest);
	free(bytes);
	lade_spec_unref(spec);
	return 0;
}
