/*
 * test_rntuple_write.c: what is written is read back; what is refused changes nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <lade/rntuple_write.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OK(call) assert_int_equal_or(call, LADE_OK)
#define assert_int_equal_or(call, want) \
	do { \
		lade_error err_ = {.message = ""}; \
		lade_error *err = &err_; \
		lade_status status_ = (call); \
		if (status_ != (want)) \
			fail_msg("%s: %s", lade_status_name(status_), err->message); \
	} while (0)
#define FAILS(call, want) assert_int_equal_or(call, want)

static char path[64];

static int make_path(void **state)
{
	(void)state;
	snprintf(path, sizeof path, "/tmp/lade-rntuple-%d.root", (int)getpid());
	unlink(path);
	return 0;
}

static int remove_path(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

static lade_rntuple_writer *writer_of(const char *codec, uint64_t page_size)
{
	lade_rntuple_writer *writer = NULL;
	lade_rntuple_writer_options options = {.struct_size = sizeof options,
	                                       .name = "t",
	                                       .codec = codec,
	                                       .page_size = page_size,
	                                       .field_size = sizeof(lade_rntuple_new_field),
	                                       .fill_size = sizeof(lade_rntuple_fill)};
	OK(lade_rntuple_writer_open(path, &options, &writer, err));
	return writer;
}

static lade_rntuple *open_path(void)
{
	lade_rntuple *tuple = NULL;
	lade_source source;
	OK(lade_source_file_open(path, NULL, &source, err));
	OK(lade_rntuple_open(source, NULL, &tuple, err));
	return tuple;
}

/* All elements of a column. */
static void read_column(lade_rntuple *tuple, uint64_t column, void *to, size_t size)
{
	lade_rntuple_target target = {.column = column,
	                              .count = lade_rntuple_column_at(tuple, column)->element_count,
	                              .span = lade_host_span(to, size)};
	OK(lade_rntuple_read(tuple, &target, 1, NULL, NULL, err));
}

enum { ENTRIES = 1000 };

static const lade_rntuple_new_field lists[] = {
	{.name = "id", .type = "std::int32_t", .parent = LADE_RNTUPLE_TOP},
	{.name = "pt",
         .type = "std::vector<float>",
         .parent = LADE_RNTUPLE_TOP,
         .role = LADE_RNTUPLE_COLLECTION},
	{.name = "_0", .type = "float", .parent = 1},
	{.name = "text", .type = "std::string", .parent = LADE_RNTUPLE_TOP},
};

/* Offsets that begin with 5: the first 5 floats belong to nobody. */
static void test_lists(void **state)
{
	(void)state;
	static int32_t id[ENTRIES], ends[ENTRIES + 1], back[ENTRIES];
	static float pt[3 * ENTRIES], pt_back[3 * ENTRIES];
	static int64_t offsets[ENTRIES + 1], text[ENTRIES + 1];
	static char bytes[ENTRIES];
	ends[0] = 5;
	for (int i = 0; i < ENTRIES; i++) {
		id[i] = i * i - 7;
		ends[i + 1] = ends[i] + i % 4;
		text[i + 1] = text[i] + (i % 2);
		bytes[i] = (char)('a' + i % 26);
	}
	for (int i = 0; i < 3 * ENTRIES; i++)
		pt[i] = (float)i / 3;
	lade_rntuple_fill fill[] = {
		{.column = 0, .span = lade_host_cspan(id, sizeof id)},
		{.column = 1, .span = lade_host_cspan(ends, sizeof ends), .dtype = LADE_I4},
		{.column = 2, .span = lade_host_cspan(pt, sizeof pt)},
		{.column = 3, .span = lade_host_cspan(text, sizeof text)},
		{.column = 4, .span = lade_host_cspan(bytes, sizeof bytes)},
	};
	lade_rntuple_writer *w = writer_of("lz4", 100);
	OK(lade_rntuple_writer_add(w, lists, 4, err));
	OK(lade_rntuple_writer_fill(w, ENTRIES, fill, 5, NULL, err));
	assert_int_not_equal(access(path, F_OK), 0);
	OK(lade_rntuple_writer_commit(w, err));
	lade_rntuple_writer_close(w);
	lade_rntuple *t = open_path();
	assert_int_equal(lade_rntuple_about(t)->entry_count, ENTRIES);
	read_column(t, 0, back, sizeof back);
	assert_memory_equal(back, id, sizeof id);
	read_column(t, 1, offsets, sizeof offsets);
	for (int i = 0; i <= ENTRIES; i++)
		assert_int_equal(offsets[i], ends[i] - 5);
	read_column(t, 2, pt_back, sizeof pt_back);
	assert_memory_equal(pt_back, pt + 5, (size_t)offsets[ENTRIES] * sizeof *pt);
	read_column(t, 3, offsets, sizeof offsets);
	assert_memory_equal(offsets, text, sizeof text);
	lade_rntuple_unref(t);
}

/* A fill that is refused changes nothing: the next one is all that is in the file. */
static void test_refused(void **state)
{
	(void)state;
	int32_t id[2] = {1, 2};
	int64_t ends[3] = {0, 1, 3}, falls[3] = {0, 2, 1};
	float pt[3] = {1, 2, 3};
	char bytes[3] = "ab";
	lade_rntuple_fill good[] =
		{
			{.column = 0, .span = lade_host_cspan(id, sizeof id)},
			{.column = 1, .span = lade_host_cspan(ends, sizeof ends)},
			{.column = 2, .span = lade_host_cspan(pt, sizeof pt)},
			{.column = 3, .span = lade_host_cspan(ends, sizeof ends)},
			{.column = 4, .span = lade_host_cspan(bytes, sizeof bytes)},
		},
			  bad[5];
	lade_rntuple_writer *w = writer_of(NULL, 0);
	OK(lade_rntuple_writer_add(w, lists, 4, err));
	FAILS(lade_rntuple_writer_fill(w, 2, good, 4, NULL, err), LADE_E_ARG);
	FAILS(lade_rntuple_writer_fill(w, 3, good, 5, NULL, err), LADE_E_RANGE);
	memcpy(bad, good, sizeof bad);
	bad[1].span.data = falls;
	FAILS(lade_rntuple_writer_fill(w, 2, bad, 5, NULL, err), LADE_E_CORRUPT);
	bad[1] = good[1];
	bad[2].span.size = 8; /* two floats of three */
	FAILS(lade_rntuple_writer_fill(w, 2, bad, 5, NULL, err), LADE_E_RANGE);
	bad[2].span.size = 7;
	FAILS(lade_rntuple_writer_fill(w, 2, bad, 5, NULL, err), LADE_E_RANGE);
	bad[2] = good[0];
	FAILS(lade_rntuple_writer_fill(w, 2, bad, 5, NULL, err), LADE_E_ARG);
	bad[2] = good[2];
	bad[2].dtype = LADE_I4;
	FAILS(lade_rntuple_writer_fill(w, 2, bad, 5, NULL, err), LADE_E_DTYPE);
	OK(lade_rntuple_writer_fill(w, 2, good, 5, NULL, err));
	OK(lade_rntuple_writer_commit(w, err));
	lade_rntuple_writer_close(w);
	lade_rntuple *t = open_path();
	assert_int_equal(lade_rntuple_about(t)->entry_count, 2);
	read_column(t, 2, pt, sizeof pt);
	assert_true(pt[0] == 1 && pt[2] == 3);
	lade_rntuple_unref(t);
	/* A file is there. */
	lade_rntuple_writer_options options = {.struct_size = sizeof options, .name = "t"};
	FAILS(lade_rntuple_writer_open(path, &options, &w, err), LADE_E_CHANGED);
	options.codec = "snappy";
	options.mode = LADE_RNTUPLE_REPLACE;
	FAILS(lade_rntuple_writer_open(path, &options, &w, err), LADE_E_UNSUPPORTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lists, make_path, remove_path),
		cmocka_unit_test_setup_teardown(test_refused, make_path, remove_path),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
