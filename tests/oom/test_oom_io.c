/*
 * test_oom_io.c: every allocation of sources and sinks fails in turn.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE /* mkstemp() */
#include "oom.h"

#include <lade/io.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define DO(call)                                  \
	do {                                      \
		status = (call);                  \
		if (status != LADE_OK)            \
			goto out;                 \
	} while (0)

#define SIZE ((size_t)12 << 20)
#define COUNT 300

static uint8_t plain[SIZE], back[SIZE];
static char path[] = "/tmp/lade-oom-XXXXXX";

static lade_status read_file(void *ctx, lade_error *err)
{
	static lade_range ranges[COUNT];
	const unsigned *threads = ctx;
	lade_io_options options = {.struct_size = sizeof options, .threads = *threads};
	lade_object_version version;
	lade_source file = {0};
	lade_status status;
	memset(back, 0, sizeof back);
	for (size_t i = 0; i < COUNT; i++) {
		size_t at = SIZE / COUNT * i, end = i == COUNT - 1 ? SIZE : SIZE / COUNT * (i + 1);
		ranges[i] = (lade_range){.off = at,
		                         .dst = lade_host_span(back + at, end - at),
		                         .version = i % 2 ? &version : NULL};
	}
	DO(lade_source_file_open(path, NULL, &file, err));
	DO(lade_source_read(file, ranges, 2, &options, err));
	DO(lade_source_read(file, ranges, COUNT, &options, err));
	assert_memory_equal(back, plain, SIZE);
out:
	if (status != LADE_OK)
		for (size_t i = 0; i < COUNT; i++)
			assert_true(ranges[i].status == LADE_OK ||
			            ranges[i].status == LADE_E_NOMEM);
	lade_source_close(file);
	return status;
}

static lade_status read_memory(void *ctx, lade_error *err)
{
	lade_source memory = {0};
	lade_range range = {.off = 5, .dst = lade_host_span(back, 1000)};
	lade_status status;
	(void)ctx;
	DO(lade_source_memory_open(lade_host_cspan(plain, SIZE), &memory, err));
	DO(lade_source_read(memory, &range, 1, NULL, err));
	assert_memory_equal(back, plain + 5, 1000);
out:
	lade_source_close(memory);
	return status;
}

static lade_status write_file(void *ctx, lade_error *err)
{
	lade_sink sink = {0};
	lade_object_version version;
	lade_write write = {.src = lade_host_cspan(plain, 70000), .version = &version};
	lade_status status;
	(void)ctx;
	DO(lade_sink_file_open(path, &sink, err));
	DO(lade_sink_write(sink, &write, 1, NULL, err));
	write = (lade_write){.kind = LADE_WRITE_IF_VERSION,
	                     .src = lade_host_cspan(plain, SIZE),
	                     .want = &version};
	DO(lade_sink_write(sink, &write, 1, NULL, err));
out:
	lade_sink_close(sink);
	return status;
}

static void sources_and_sinks(void **state)
{
	(void)state;
	for (size_t i = 0; i < SIZE; i++)
		plain[i] = (uint8_t)(i * 31 + i / 999);
	assert_true(mkstemp(path) >= 0);
	assert_true(oom_run("writing a file", write_file, NULL) > 3);
	assert_int_equal(write_file(NULL, &(lade_error){0}), LADE_OK);
	for (unsigned threads = 1; threads < 5; threads += 3)
		assert_true(oom_run("reading a file", read_file, &threads) > 2);
	assert_int_equal(oom_run("reading memory", read_memory, NULL), 1);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(sources_and_sinks)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
