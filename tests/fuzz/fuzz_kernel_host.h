/*
 * fuzz_kernel_host.h: what the host's codec says of a chunk, through the library's calls.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_FUZZ_KERNEL_HOST_H
#define LADE_TESTS_FUZZ_KERNEL_HOST_H

#include "fuzz/fuzz_kernel.h"

/* One thread, and a spec, for all inputs of a program. */
static inline lade_spec *fuzz_host_spec(const char *text, lade_engine **engine)
{
	static lade_engine *made;
	static lade_spec *spec;
	lade_engine_options options = {};
	options.struct_size = sizeof options;
	options.threads = 1;
	if (!made && lade_engine_new(&options, &made, nullptr) != LADE_OK)
		FUZZ_FAIL("no engine");
	if (!spec && lade_spec_parse(made, text, &spec, nullptr) != LADE_OK)
		FUZZ_FAIL("%s: no spec", text);
	*engine = made;
	return spec;
}

static inline fuzz_want fuzz_host_decode(const char *text, const fuzz_case &c)
{
	lade_engine *engine;
	lade_spec *spec = fuzz_host_spec(text, &engine);
	fuzz_want want = {0, 0, (uint8_t *)malloc(c.room + 1)};
	if (!want.bytes)
		FUZZ_FAIL("no memory");
	want.status = (uint32_t)lade_decode(engine, spec, lade_host_cspan(c.chunk, c.size),
	                                    lade_host_span(want.bytes, c.room), &want.size,
	                                    nullptr);
	return want;
}

/* The size that the chunk tells of itself; 'over' is the kernels' status of one that no destination
 * can have room for. */
static inline fuzz_want fuzz_host_size(const char *text, const fuzz_case &c, uint32_t over)
{
	lade_engine *engine;
	const lade_stage *stage = lade_spec_stage(fuzz_host_spec(text, &engine), 0);
	uint64_t told = 0;
	lade_status status = stage->algorithm->decoded_size(stage, c.chunk, c.size, &told, nullptr);
	if (status == LADE_OK && told > LADE_CHUNK_MAX && over)
		return {over, 0, nullptr};
	return {(uint32_t)status, status == LADE_OK ? (size_t)told : 0, nullptr};
}

#endif
