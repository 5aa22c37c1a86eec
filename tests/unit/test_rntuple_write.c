/*
 * test_rntuple_write.c: what is written is read back; what is refused changes nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "rntuple_kit.h"

#include <lade/rntuple_write.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
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

/* ---- appends that do not end -------------------------------------------------------------- */

enum { ANCHOR = 78, CAP = 1 << 16 };

static const lade_rntuple_new_field one[] = {
	{.name = "x", .type = "std::int64_t", .parent = LADE_RNTUPLE_TOP, .codec = "none"}};

/* Adds entries first, first + 1, ... to the file, which is made if 'mode' says so. */
static lade_status add_entries(lade_rntuple_mode mode, int64_t from, uint64_t count,
                               lade_error *err)
{
	static int64_t x[1000];
	lade_rntuple_writer_options options = {
		.struct_size = sizeof options, .name = "t", .mode = mode, .page_size = 80};
	lade_rntuple_writer *w = NULL;
	lade_rntuple_fill fill = {.span = lade_host_cspan(x, count * sizeof *x)};
	lade_status status = lade_rntuple_writer_open(path, &options, &w, err);
	for (uint64_t i = 0; i < count; i++)
		x[i] = from + (int64_t)i;
	if (status == LADE_OK && mode != LADE_RNTUPLE_APPEND)
		status = lade_rntuple_writer_add(w, one, 1, err);
	if (status == LADE_OK)
		status = lade_rntuple_writer_fill(w, count, &fill, 1, NULL, err);
	if (status == LADE_OK)
		status = lade_rntuple_writer_commit(w, err);
	lade_rntuple_writer_close(w);
	return status;
}

/* The file has entries 0, 1, 2, ...; their number. */
static uint64_t count_entries(void)
{
	static int64_t x[1 << 16];
	lade_rntuple *t = open_path();
	uint64_t count = lade_rntuple_about(t)->entry_count;
	assert_true(count * 8 <= sizeof x);
	read_column(t, 0, x, (size_t)count * 8);
	for (uint64_t i = 0; i < count; i++)
		assert_int_equal(x[i], i);
	lade_rntuple_unref(t);
	return count;
}

static size_t read_file(uint8_t data[CAP])
{
	FILE *f = fopen(path, "rb");
	size_t size = fread(data, 1, CAP, f);
	fclose(f);
	return size;
}

static void write_file(const uint8_t *data, size_t size)
{
	FILE *f = fopen(path, "wb");
	assert_int_equal(fwrite(data, 1, size, f), size);
	fclose(f);
}

static lade_status open_status(void)
{
	lade_rntuple *tuple = NULL;
	lade_source source;
	OK(lade_source_file_open(path, NULL, &source, err));
	lade_status status = lade_rntuple_open(source, NULL, &tuple, NULL);
	if (status != LADE_OK)
		lade_source_close(source);
	lade_rntuple_unref(tuple);
	return status;
}

/* The anchor, torn at every byte, both ways: never opens with wrong entries, and is mended. */
static void test_torn_anchor(void **state)
{
	(void)state;
	static uint8_t old[CAP], new[CAP], torn[CAP];
	lade_rntuple_repair_options dry = {.struct_size = sizeof dry, .dry = 1};
	bool mended = true;
	OK(add_entries(LADE_RNTUPLE_NEW, 0, 100, err));
	read_file(old);
	OK(add_entries(LADE_RNTUPLE_APPEND, 100, 50, err));
	OK(lade_rntuple_repair(path, NULL, &mended, err));
	assert_false(mended);
	size_t size = read_file(new), at = kit_anchor(new, size), differ = 0;
	assert_int_equal(at, kit_anchor(old, size));
	for (size_t k = 0; k < 2 * ANCHOR; k++) {
		const uint8_t *a = k < ANCHOR ? new : old, *b = k < ANCHOR ? old : new;
		memcpy(torn, new, size);
		memcpy(torn + at, a + at, k % ANCHOR);
		memcpy(torn + at + k % ANCHOR, b + at + k % ANCHOR, ANCHOR - k % ANCHOR);
		bool whole = memcmp(torn + at, new + at, ANCHOR) == 0 ||
		             memcmp(torn + at, old + at, ANCHOR) == 0;
		write_file(torn, size);
		assert_int_equal(open_status(), whole ? LADE_OK : LADE_E_CHECKSUM);
		OK(lade_rntuple_repair(path, &dry, &mended, err));
		assert_int_equal(mended, !whole);
		assert_int_equal(open_status(), whole ? LADE_OK : LADE_E_CHECKSUM);
		OK(lade_rntuple_repair(path, NULL, &mended, err));
		assert_int_equal(mended, !whole);
		differ += !whole;
		if (!whole)
			assert_int_equal(count_entries(), 150);
	}
	assert_true(differ > 20);
	/* The newest footer is damaged, too: the one before is found. */
	torn[at + 45] ^= 1;
	uint64_t footer = kit_be(new + at + 38, 8);
	torn[footer + 40] ^= 1;
	write_file(torn, size);
	OK(lade_rntuple_repair(path, NULL, &mended, err));
	assert_int_equal(count_entries(), 100);
}

/* A writer that is killed at any time leaves whole commits. */
static void test_killed(void **state)
{
	(void)state;
	OK(add_entries(LADE_RNTUPLE_NEW, 0, 10, err));
	uint64_t count = 10, grew = 0;
	for (unsigned round = 0; round < 30; round++) {
		int done[2], code;
		char byte;
		assert_int_equal(pipe(done), 0);
		pid_t child = fork();
		if (child == 0)
			for (int64_t n = (int64_t)count;; n += 10)
				if (add_entries(LADE_RNTUPLE_APPEND, n, 10, NULL) != LADE_OK ||
				    write(done[1], "", 1) != 1)
					_exit(1);
		close(done[1]);
		/* It is killed a while after its first or second commit, or before. */
		for (unsigned i = 0; i < round % 3; i++)
			assert_int_equal(read(done[0], &byte, 1), 1);
		usleep(round * 317 % 7000);
		kill(child, SIGKILL);
		waitpid(child, &code, 0);
		close(done[0]);
		assert_true(WIFSIGNALED(code));
		uint64_t now = count_entries();
		assert_true(now >= count && now % 10 == 0);
		grew += now > count;
		count = now;
	}
	assert_true(grew >= 20);
	/* A new file that is killed before its commit is not there, whatever it left. */
	OK(add_entries(LADE_RNTUPLE_APPEND, (int64_t)count, 5, err));
	assert_int_equal(count_entries(), count + 5);
}

/* The disk is full after any number of bytes: old entries stay, and later appends work. */
static void test_full_disk(void **state)
{
	(void)state;
	struct rlimit all, few;
	static uint8_t data[CAP], now[CAP];
	OK(add_entries(LADE_RNTUPLE_NEW, 0, 100, err));
	size_t size = read_file(data);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &all);
	for (few = all, few.rlim_cur = size; few.rlim_cur < size + 1600; few.rlim_cur += 37) {
		write_file(data, size);
		setrlimit(RLIMIT_FSIZE, &few);
		lade_status status = add_entries(LADE_RNTUPLE_APPEND, 100, 50, NULL);
		setrlimit(RLIMIT_FSIZE, &all);
		assert_true(status == LADE_OK || status == LADE_E_IO);
		assert_int_equal(count_entries(), status == LADE_OK ? 150 : 100);
		assert_true(read_file(now) >= size);
		assert_true(status == LADE_OK || memcmp(now, data, size) == 0);
		OK(add_entries(LADE_RNTUPLE_APPEND, status == LADE_OK ? 150 : 100, 7, err));
	}
	unlink(path);
	few.rlim_cur = size - 1;
	setrlimit(RLIMIT_FSIZE, &few);
	FAILS(add_entries(LADE_RNTUPLE_NEW, 0, 100, err), LADE_E_IO);
	setrlimit(RLIMIT_FSIZE, &all);
	assert_int_not_equal(access(path, F_OK), 0);
}

/* Alternatives as numbers, cut into clusters of one entry: each counts from 0 on. */
static void test_variants(void **state)
{
	(void)state;
	const lade_rntuple_new_field fields[] = {
		{.name = "v",
	         .type = "std::variant<float,bool>",
	         .parent = LADE_RNTUPLE_TOP,
	         .role = LADE_RNTUPLE_VARIANT},
		{.name = "_0", .type = "float", .parent = 0},
		{.name = "_1", .type = "bool", .parent = 0},
	};
	uint8_t tags[6] = {2, 1, 0, 1, 2, 1}, bad[6] = {2, 1, 0, 3, 2, 1}, b[2] = {1, 0}, back[72];
	float x[3] = {1, 2, 3};
	lade_rntuple_fill fill[] = {
		{.column = 0, .span = lade_host_cspan(bad, 6), .dtype = LADE_U1},
		{.column = 1, .span = lade_host_cspan(x, sizeof x)},
		{.column = 2, .span = lade_host_cspan(b, sizeof b)},
	};
	for (uint64_t size = 1; size < 1000; size += 900) {
		lade_rntuple_writer_options options = {.struct_size = sizeof options,
		                                       .name = "t",
		                                       .mode = LADE_RNTUPLE_REPLACE,
		                                       .cluster_size = size};
		lade_rntuple_writer *w;
		fill[0].span.data = bad;
		OK(lade_rntuple_writer_open(path, &options, &w, err));
		OK(lade_rntuple_writer_add(w, fields, 3, err));
		FAILS(lade_rntuple_writer_fill(w, 6, fill, 3, NULL, err), LADE_E_CORRUPT);
		fill[0].span.data = tags;
		OK(lade_rntuple_writer_fill(w, 6, fill, 3, NULL, err));
		OK(lade_rntuple_writer_commit(w, err));
		lade_rntuple_writer_close(w);
		lade_rntuple *t = open_path();
		assert_int_equal(lade_rntuple_about(t)->cluster_count, size == 1 ? 6 : 1);
		read_column(t, 0, back, sizeof back);
		for (int i = 0, n[3] = {0}; i < 6; i++) {
			assert_int_equal(back[12 * i + 8], tags[i]);
			assert_int_equal(back[12 * i], tags[i] && size > 1 ? n[tags[i]]++ : 0);
		}
		memset(x, 0, sizeof x);
		read_column(t, 1, x, sizeof x);
		assert_true(x[0] == 1 && x[1] == 2 && x[2] == 3);
		lade_rntuple_unref(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lists, make_path, remove_path),
		cmocka_unit_test_setup_teardown(test_refused, make_path, remove_path),
		cmocka_unit_test_setup_teardown(test_torn_anchor, make_path, remove_path),
		cmocka_unit_test_setup_teardown(test_killed, make_path, remove_path),
		cmocka_unit_test_setup_teardown(test_full_disk, make_path, remove_path),
		cmocka_unit_test_setup_teardown(test_variants, make_path, remove_path),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
