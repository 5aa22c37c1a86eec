/*
 * test_oom_rntuple_write.c: every allocation of writing, appending to and mending an RNTuple fails
 * in turn: nothing leaks, and no temporary file is left.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "oom.h"

#include <lade/rntuple_write.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64], path[96];

static const lade_rntuple_new_field first[] =
	{
		{.name = "id", .type = "std::int32_t", .parent = LADE_RNTUPLE_TOP},
		{.name = "pt", .type = "std::vector<float>", .parent = LADE_RNTUPLE_TOP, .role = 1},
		{.name = "_0", .type = "float", .parent = 1},
		{.name = "v",
                 .type = "std::variant<float,bool>",
                 .parent = LADE_RNTUPLE_TOP,
                 .role = 3},
		{.name = "_0", .type = "float", .parent = 3},
		{.name = "_1", .type = "bool", .parent = 3, .codec = "none"},
		{.name = "t",
                 .type = "float",
                 .parent = LADE_RNTUPLE_TOP,
                 .stored = "Real32Quant(8,0,9)"},
},
				    late[] = {{.name = "late",
                                               .type = "double",
                                               .parent = LADE_RNTUPLE_TOP}};

static const int32_t id[3] = {1, 2, 3};
static const int64_t ends[4] = {0, 2, 2, 3};
static const float pt[3] = {1, 2, 3};
static const double more[3] = {1, 2, 3};
static const uint8_t tags[3] = {1, 2, 0};

#define SPAN(array) .span = {.data = array, .size = sizeof array}
static const lade_rntuple_fill fills[] = {
	{.column = 0, SPAN(id)},
	{.column = 1, SPAN(ends)},
	{.column = 2, SPAN(pt)},
	{.column = 3, SPAN(tags), .dtype = LADE_U1},
	{.column = 4, .span = {.data = pt, .size = 4}},
	{.column = 5, .span = {.data = tags, .size = 1}},
	{.column = 6, SPAN(pt)},
	{.column = 7, SPAN(more)},
};

/* Opens, adds fields if that is to be, fills with 'columns' columns, commits. */
static lade_status write_some(lade_rntuple_mode mode, const lade_rntuple_new_field *fields,
                              size_t field_count, size_t columns, lade_error *err)
{
	const lade_engine_options engine_options = {.struct_size = sizeof engine_options,
	                                            .threads = 2};
	lade_rntuple_writer_options options = {.struct_size = sizeof options,
	                                       .name = "t",
	                                       .mode = mode,
	                                       .page_size = 4,
	                                       .cluster_size = 20,
	                                       .fill_size = sizeof *fills,
	                                       .field_size = sizeof *fields};
	lade_rntuple_writer *w = NULL;
	lade_status status = lade_engine_new(&engine_options, &options.engine, err);
	if (status != LADE_OK)
		return status;
	status = lade_rntuple_writer_open(path, &options, &w, err);
	if (status == LADE_OK)
		status = lade_rntuple_writer_add(w, fields, field_count, err);
	if (status == LADE_OK)
		status = lade_rntuple_writer_fill(w, 3, fills, columns, NULL, err);
	if (status == LADE_OK)
		status = lade_rntuple_writer_commit(w, err);
	lade_rntuple_writer_close(w);
	lade_engine_free(options.engine);
	return status;
}

static lade_status write_new(void *ctx, lade_error *err)
{
	(void)ctx;
	return write_some(LADE_RNTUPLE_REPLACE, first, 7, 7, err);
}

/* The file that is appended to, without allocations. */
static char file[1 << 16];
static ssize_t file_size;

static void put_file(void)
{
	int fd = open(path, O_WRONLY | O_TRUNC);
	if (write(fd, file, (size_t)file_size) != file_size)
		abort();
	close(fd);
}

static lade_status append(void *ctx, lade_error *err)
{
	(void)ctx;
	put_file();
	return write_some(LADE_RNTUPLE_APPEND, late, 1, 8, err);
}

/* A byte of what the anchor says of the footer is wrong. */
static lade_status mend(void *ctx, lade_error *err)
{
	const off_t *at = ctx;
	bool mended;
	int fd = open(path, O_WRONLY);
	if (pwrite(fd, "x", 1, *at) != 1)
		abort();
	close(fd);
	lade_status status = lade_rntuple_repair(path, NULL, &mended, err);
	return status != LADE_OK || mended ? status : LADE_E_INTERNAL;
}

static off_t anchor_at(void)
{
	int fd = open(path, O_RDONLY);
	file_size = read(fd, file, sizeof file);
	close(fd);
	for (ssize_t i = 0; i + 78 < file_size; i++)
		if (memcmp(file + i, "\x40\0\0\x42\0\2\0\1", 8) == 0)
			return i;
	fail_msg("no anchor in %zd bytes", file_size);
	return 0;
}

static void writes_appends_and_mends(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/lade-oom-%d", (int)getpid());
	snprintf(path, sizeof path, "%s/t.root", folder);
	assert_int_equal(mkdir(folder, 0700), 0);
	assert_non_null(lade_engine_default());
	assert_true(oom_run("write", write_new, NULL) > 50);
	off_t at = anchor_at() + 42;
	assert_true(oom_run("append", append, NULL) > 50);
	assert_true(oom_run("repair", mend, &at) > 10);
	unlink(path);
	assert_int_equal(rmdir(folder), 0); /* it is empty */
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(writes_appends_and_mends)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
