/*
 * main.c: uses its own codec in a pipeline with liblade's, and its own implementation in place of
 * one of liblade's.  docs/adding-a-codec.md explains it step by step.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "runs.h"

#include <stdio.h>
#include <string.h>

#define COUNT 10000

static int failed(const char *what, const lade_error *err)
{
	fprintf(stderr, "%s: %s: %s\n", what, lade_status_name(err->status), err->message);
	return 1;
}

/* Another way to decode "copy": it counts its calls. */
static lade_status counting_copy(const lade_run *run, lade_cspan src, lade_span dst,
                                 size_t *dst_size, lade_error *err)
{
	*dst_size = 0;
	if (src.size > dst.size)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "copy: want %zu bytes, have %zu", src.size, dst.size);
	if (src.size)
		memcpy(dst.data, src.data, src.size);
	*dst_size = src.size;
	++*(int *)run->ctx;
	return LADE_OK;
}

/* Encodes, decodes and compares; one stored byte less must be an error. */
static int round_trip(lade_engine *engine, const char *text)
{
	static int32_t data[COUNT], back[COUNT];
	static unsigned char stored[COUNT * 8];
	lade_error err;
	lade_spec *spec = NULL;
	size_t size = 0, back_size = 0;
	for (int i = 0; i < COUNT; i++)
		data[i] = i / 100;
	if (lade_spec_parse(engine, text, &spec, &err) != LADE_OK)
		return failed(text, &err);
	if (lade_encode(engine, spec, lade_host_cspan(data, sizeof data),
	                lade_host_span(stored, sizeof stored), &size, &err) !=
	            LADE_OK ||
	    lade_decode(engine, spec, lade_host_cspan(stored, size),
	                lade_host_span(back, sizeof back), &back_size, &err) != LADE_OK)
		return failed(text, &err);
	if (back_size != sizeof data || memcmp(data, back, sizeof data) != 0)
		return 1;
	printf("%s: %zu bytes stored as %zu\n", lade_spec_text(spec), sizeof data, size);
	if (lade_decode(engine, spec, lade_host_cspan(stored, size - 1),
	                lade_host_span(back, sizeof back), &back_size, &err) ==
	    LADE_OK)
		return 1;
	printf("  one byte less: %s: %s\n", lade_status_name(err.status), err.message);
	lade_spec_unref(spec);
	return 0;
}

static int preferred(lade_engine *engine, int *calls)
{
	unsigned char data[100] = {1, 2, 3}, back[100];
	lade_error err;
	lade_spec *spec = NULL;
	size_t size = 0;
	lade_codec_ops ops = {.struct_size = sizeof ops, .run = counting_copy};
	lade_implementation mine = {
		.struct_size = sizeof mine,
		.name = "copy/counting",
		.algorithm = "copy",
		.direction = LADE_DECODE,
		.priority = LADE_PRIORITY_BUILTIN + 1,
		.ctx = calls,
		.codec = &ops,
	};
	if (lade_engine_add_implementation(engine, &mine, &err) != LADE_OK)
		return failed("add", &err);
	if (lade_spec_parse(engine, "copy", &spec, &err) != LADE_OK ||
	    lade_decode(engine, spec, lade_host_cspan(data, sizeof data),
	                lade_host_span(back, sizeof back), &size, &err) != LADE_OK)
		return failed("copy", &err);
	lade_segment source = {.data = data, .size = sizeof data};
	lade_item item = {.src = &source, .src_count = 1, .dst = lade_host_span(back, sizeof back)};
	lade_call call = {.struct_size = sizeof call, .direction = LADE_DECODE, .spec = spec,
	                  .items = &item, .count = 1};
	lade_candidate candidates[8];
	size_t count = 0;
	if (lade_explain(engine, &call, candidates, 8, &count, &err) != LADE_OK)
		return failed("explain", &err);
	for (size_t i = 0; i < count; i++)
		printf("  %s, priority %d: %s%s\n", candidates[i].implementation,
		       candidates[i].priority, candidates[i].chosen ? "taken, " : "",
		       candidates[i].reason);
	lade_spec_unref(spec);
	return *calls == 1 ? 0 : 1;
}

int main(void)
{
	lade_error err;
	lade_engine *engine = NULL;
	int calls = 0;
	if (lade_engine_new(NULL, &engine, &err) != LADE_OK)
		return failed("engine", &err);
	if (lade_engine_add_algorithm(engine, &runs_algorithm, &err) != LADE_OK ||
	    lade_engine_add_implementation(engine, &runs_encode, &err) != LADE_OK ||
	    lade_engine_add_implementation(engine, &runs_decode, &err) != LADE_OK)
		return failed("add", &err);
	if (round_trip(engine, "runs(4)") ||
	    round_trip(engine, "zigzag(<i4)|runs(4)|zstd(3)|crc32c") || preferred(engine, &calls))
		return 1;
	lade_engine_free(engine);
	return 0;
}
