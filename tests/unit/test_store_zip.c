/*
 * test_store_zip.c: zip files: written and read, Python's and ours; damaged and hostile ones; and
 * the store that routes keys to others.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "base/support.h"
#include "guard.h"
#include "store/zip.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/lade-zip-XXXXXX";

static int setup(void **state)
{
	(void)state;
	return mkdtemp(dir) == NULL || chdir(dir) != 0;
}

static int teardown(void **state)
{
	(void)state;
	char command[64];
	snprintf(command, sizeof command, "rm -rf %s", dir);
	return chdir("/") != 0 || system(command) != 0;
}

static void must(lade_status status, const lade_error *err)
{
	if (status != LADE_OK)
		fail_msg("%s: %s", lade_status_name(status), err->message);
}

static void put(lade_store *store, const char *key, const void *data, size_t size)
{
	lade_write write = {.key = key, .src = lade_host_cspan(data, size)};
	lade_error err;
	must(lade_store_write(store, &write, 1, NULL, NULL, &err), &err);
}

static lade_store *open_zip(const char *path)
{
	lade_source source;
	lade_store *store;
	lade_error err;
	must(lade_source_file_open(path, NULL, &source, &err), &err);
	must(lade_store_zip_open(source, NULL, &store, &err), &err);
	return store;
}

static lade_store *create_zip(const char *path, int level)
{
	lade_zip_write_options options = {.struct_size = sizeof options, .level = level};
	lade_store *store;
	lade_error err;
	must(lade_store_zip_create(path, &options, &store, &err), &err);
	return store;
}

static void finish(lade_store *store)
{
	lade_error err;
	must(lade_store_zip_finish(store, NULL, &err), &err);
	lade_store_unref(store);
}

/* Text, which Deflate makes smaller, and then noise, which it does not. */
static void fill(uint8_t *to, size_t size)
{
	rng r = {42};
	for (size_t i = 0; i < size; i++)
		to[i] = i % 100000 < 50000 ? (uint8_t)("abcdefgh"[i / 7 % 8])
		                           : (uint8_t)rng_next(&r);
}

enum { SIZE = 300000 };

/* Ranges of a value of 'size' bytes, each before a guard page. */
static void check_value(lade_store *store, const char *key, const uint8_t *value, size_t size)
{
	guard whole = guard_new(size, 1), some = guard_new(size / 3, 1),
	      last = guard_new(size / 2, 0);
	lade_error err;
	lade_range ranges[4] = {
		{.key = key, .kind = LADE_RANGE_REST, .dst = lade_host_span(whole.data, size)},
		{.key = key, .off = size / 4, .dst = lade_host_span(some.data, size / 3)},
		{.key = key, .kind = LADE_RANGE_LAST, .dst = lade_host_span(last.data, size / 2)},
		{.key = key},
	};
	must(lade_store_read(store, ranges, 4, NULL, NULL, &err), &err);
	assert_memory_equal(whole.data, value, size);
	assert_memory_equal(some.data, value + size / 4, size / 3);
	assert_memory_equal(last.data, value + size - size / 2, size / 2);
	assert_int_equal(ranges[3].object_size, size);
	ranges[1].off = size;
	ranges[1].dst.size = 1;
	assert_int_equal(lade_store_read(store, &ranges[1], 1, NULL, NULL, NULL), LADE_E_RANGE);
	guard_free(&whole);
	guard_free(&some);
	guard_free(&last);
}

static void what_is_written_is_read(void **state)
{
	(void)state;
	static uint8_t value[SIZE];
	lade_error err;
	fill(value, SIZE);
	for (int level = 0; level <= 12; level += 6) {
		lade_store *store = create_zip("a.zip", level);
		put(store, "zarr.json", "{}", 2);
		put(store, "c/0/0", value, SIZE);
		put(store, "c/0/1", value + 50000, 30000);
		put(store, "empty", NULL, 0);
		put(store, "again", "old", 3);
		put(store, "again", value, 1000);
		put(store, "gone", "x", 1);
		lade_write write = {.key = "gone", .kind = LADE_DELETE_IF_VERSION};
		must(lade_store_write(store, &write, 1, NULL, NULL, &err), &err);
		write = (lade_write){.key = "again", .kind = LADE_WRITE_IF_ABSENT};
		assert_int_equal(lade_store_write(store, &write, 1, NULL, NULL, &err),
		                 LADE_E_CHANGED);
		lade_range range = {.key = "again", .kind = LADE_RANGE_REST};
		assert_int_equal(lade_store_read(store, &range, 1, NULL, NULL, &err),
		                 LADE_E_UNSUPPORTED);
		finish(store);
		store = open_zip("a.zip");
		check_value(store, "zarr.json", (const uint8_t *)"{}", 2);
		check_value(store, "c/0/0", value, SIZE);
		check_value(store, "c/0/1", value + 50000, 30000);
		check_value(store, "again", value, 1000);
		assert_int_equal(lade_store_look(store, "gone", NULL, NULL, NULL),
		                 LADE_E_NOT_FOUND);
		uint64_t size;
		must(lade_store_look(store, "empty", &size, NULL, &err), &err);
		assert_int_equal(size, 0);
		lade_store_unref(store);
		assert_int_equal(
			system("python3 -c \"import zipfile; z = zipfile.ZipFile('a.zip'); "
		               "assert z.testzip() is None; "
		               "assert sorted(z.namelist()) == ['again', 'c/0/0', 'c/0/1', "
		               "'empty', 'zarr.json'], z.namelist()\""),
			0);
	}
}

/* More entries than one wave has, some read twice, one of them damaged: its neighbours are good. */
static void deflated_entries_are_read_at_once(void **state)
{
	(void)state;
	enum { COUNT = 100, EACH = 20000 };
	static uint8_t values[COUNT][EACH], back[2 * COUNT][EACH];
	lade_error err, errors[2 * COUNT];
	char keys[COUNT][8];
	lade_range ranges[2 * COUNT];
	lade_io_options options = {.struct_size = sizeof options, .errors = errors};
	for (unsigned threads = 0; threads < 3; threads++) {
		lade_store *store = create_zip("many.zip", 6);
		for (size_t i = 0; i < COUNT; i++) {
			for (size_t k = 0; k < EACH; k++)
				values[i][k] = (uint8_t)(k / (i + 3) * 7 + i);
			snprintf(keys[i], sizeof keys[i], "k%zu", i);
			put(store, keys[i], values[i], EACH);
		}
		finish(store);
		assert_int_equal(system("python3 -c \"import zipfile; "
		                        "i = zipfile.ZipFile('many.zip').getinfo('k50'); "
		                        "f = open('many.zip', 'r+b'); "
		                        "f.seek(i.header_offset + 30 + 3 + 5); "
		                        "f.write(b'\\xff' * 20)\""),
		                 0);
		store = open_zip("many.zip");
		for (size_t i = 0; i < 2 * COUNT; i++)
			ranges[i] = (lade_range){.key = keys[i % COUNT],
			                         .off = i / COUNT * 100,
			                         .kind = LADE_RANGE_REST,
			                         .dst = lade_host_span(back[i], EACH)};
		options.threads = threads;
		assert_true(lade_store_read(store, ranges, 2 * COUNT, &options, NULL, &err) !=
		            LADE_OK);
		for (size_t i = 0; i < 2 * COUNT; i++) {
			if (i % COUNT == 50) {
				assert_true(ranges[i].status == LADE_E_CORRUPT ||
				            ranges[i].status == LADE_E_CHECKSUM);
				assert_non_null(strstr(errors[i].message, "k50"));
				continue;
			}
			must(ranges[i].status, &errors[i]);
			assert_int_equal(ranges[i].size, EACH - i / COUNT * 100);
			assert_memory_equal(back[i], values[i % COUNT] + i / COUNT * 100,
			                    ranges[i].size);
		}
		lade_store_unref(store);
	}
}

static lade_status count_entry(void *ctx, const lade_store_entry *entry)
{
	(void)entry;
	++*(size_t *)ctx;
	return LADE_OK;
}

static size_t entries(lade_store *store, const char *prefix, bool level)
{
	size_t count = 0;
	lade_error err;
	lade_store_listing listing = {.struct_size = sizeof listing,
	                              .prefix = prefix,
	                              .level = level,
	                              .visit = count_entry,
	                              .ctx = &count};
	must(lade_store_list(store, &listing, &err), &err);
	return count;
}

static void pythons_files_are_read(void **state)
{
	(void)state;
	static uint8_t value[SIZE];
	for (size_t i = 0; i < SIZE; i++)
		value[i] = (uint8_t)(i * 7 + i / 300);
	static const char script[] =
		"import zipfile, io\n"
		"v = bytes((i * 7 + i // 300) & 255 for i in range(300000))\n"
		"z = zipfile.ZipFile('p.zip', 'w')\n"
		"z.comment = b'PK\\x05\\x06 is no end' * 9\n"
		"z.mkdir('d') if hasattr(z, 'mkdir') else z.writestr('d/', b'')\n"
		"z.writestr('../evil', b'x'); z.writestr('/abs', b'x'); z.writestr('a//b', b'x')\n"
		"z.writestr('d/stored', v); z.writestr('d/deflated', v, zipfile.ZIP_DEFLATED)\n"
		"z.writestr('bz', v, zipfile.ZIP_BZIP2)\n"
		"with z.open('d/large', 'w', force_zip64=True) as f: f.write(v)\n"
		"z.close()\n"
		"class Pipe(io.RawIOBase):\n"
		"  def __init__(s): s.f = open('s.zip', 'wb')\n"
		"  def writable(s): return True\n"
		"  def write(s, b): return s.f.write(b)\n"
		"p = Pipe(); z = zipfile.ZipFile(p, 'w')\n" /* sizes behind the data */
		"z.writestr('k', v, zipfile.ZIP_DEFLATED); z.writestr('l', v); z.close(); "
		"p.f.close()\n"
		"z = zipfile.ZipFile('m.zip', 'w')\n"
		"for i in range(70000): z.writestr(f'c/{i // 1000}/{i}', b'%d' % i)\n"
		"z.close()\n";
	FILE *f = fopen("make.py", "w");
	fputs(script, f);
	fclose(f);
	assert_int_equal(system("python3 make.py"), 0);
	lade_store *store = open_zip("p.zip");
	check_value(store, "d/stored", value, SIZE);
	check_value(store, "d/deflated", value, SIZE);
	check_value(store, "d/large", value, SIZE);
	assert_int_equal(entries(store, NULL, false), 4); /* hostile names are not there */
	lade_error err;
	lade_range range = {.key = "bz", .dst = lade_host_span(value, 1)};
	assert_int_equal(lade_store_read(store, &range, 1, NULL, NULL, &err), LADE_E_UNSUPPORTED);
	assert_non_null(strstr(err.message, "'bz'"));
	assert_non_null(strstr(err.message, "12"));
	lade_store_unref(store);
	store = open_zip("s.zip");
	check_value(store, "k", value, SIZE);
	check_value(store, "l", value, SIZE);
	lade_store_unref(store);
	/* More than 65,535 entries: zip64. */
	store = open_zip("m.zip");
	assert_int_equal(entries(store, NULL, false), 70000);
	assert_int_equal(entries(store, "c/", true), 70);
	check_value(store, "c/69/69123", (const uint8_t *)"69123", 5);
	lade_store_unref(store);
}

static void many_entries_are_written(void **state)
{
	(void)state;
	lade_store *store = create_zip("n.zip", 0);
	for (int i = 0; i < 66000; i++) {
		char key[32];
		snprintf(key, sizeof key, "c/%d", i);
		put(store, key, &i, sizeof i);
	}
	finish(store);
	store = open_zip("n.zip");
	assert_int_equal(entries(store, NULL, false), 66000);
	int last = 65999;
	check_value(store, "c/65999", (const uint8_t *)&last, sizeof last);
	lade_store_unref(store);
	assert_int_equal(system("python3 -c \"import zipfile; z = zipfile.ZipFile('n.zip'); "
	                        "assert len(z.namelist()) == 66000\""),
	                 0);
}

/* ---- damage --------------------------------------------------------------------------------- */

static uint8_t *load(const char *path, size_t *size)
{
	struct stat st;
	int fd = open(path, O_RDONLY);
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	*size = (size_t)st.st_size;
	uint8_t *data = malloc(*size);
	assert_int_equal(read(fd, data, *size), st.st_size);
	close(fd);
	return data;
}

/* Opens bytes as a zip file, and reads all its values. */
static lade_status open_bytes(const uint8_t *data, size_t size, lade_error *err)
{
	static const char *const keys[] = {"stored", "deflated"};
	static uint8_t back[2000];
	guard g = guard_copy(data, size, 1);
	lade_source source;
	lade_store *store;
	assert_int_equal(lade_source_memory_open(lade_host_cspan(g.data, size), &source, NULL),
	                 LADE_OK);
	lade_status status = lade_store_zip_open(source, NULL, &store, err);
	if (status == LADE_OK) {
		for (size_t i = 0; i < 2 && status == LADE_OK; i++) {
			lade_range range = {.key = keys[i],
			                    .kind = LADE_RANGE_REST,
			                    .dst = lade_host_span(back, sizeof back)};
			status = lade_store_read(store, &range, 1, NULL, NULL, err);
			size_t want = i ? 1000 : 6;
			if (status == LADE_OK &&
			    (range.size != want || back[0] != "sx"[i] || back[want - 1] != "dx"[i]))
				fail_msg("key %s: %zu bytes, other ones", keys[i], range.size);
		}
		lade_store_unref(store);
	} else {
		lade_source_close(source);
	}
	guard_free(&g);
	return status;
}

static void damage_is_found(void **state)
{
	(void)state;
	uint8_t value[1000];
	size_t size, tried = 0, taken = 0;
	memset(value, 'x', sizeof value);
	lade_store *store = create_zip("d.zip", 6);
	put(store, "deflated", value, sizeof value);
	put(store, "stored", "stored", 6);
	finish(store);
	uint8_t *data = load("d.zip", &size);
	lade_error err;
	must(open_bytes(data, size, &err), &err);
	for (size_t cut = 0; cut < size; cut++)
		assert_int_not_equal(open_bytes(data, cut, &err), LADE_OK);
	/* Each byte in turn gets each of some values.  Versions, dates, attributes, and what local
	 * headers repeat are not looked at; whatever is read is right. */
	for (size_t i = 0; i < size; i++) {
		static const uint8_t others[] = {0, 1, 0x7f, 0x80, 0xff};
		uint8_t old = data[i];
		for (size_t k = 0; k < sizeof others; k++) {
			if (others[k] == old)
				continue;
			data[i] = others[k];
			lade_status status = open_bytes(data, size, &err);
			assert_true(status == LADE_OK || err.message[0]);
			assert_true(status != LADE_E_INTERNAL && status != LADE_E_ARG);
			tried++;
			taken += status == LADE_OK;
		}
		data[i] = old;
	}
	assert_true(tried > 800 && taken < tried * 3 / 4);
	free(data);
}

/* Claims that would cost memory, if they were believed. */
static void bombs_cost_nothing(void **state)
{
	(void)state;
	uint8_t value[1000];
	size_t size;
	memset(value, 'x', sizeof value);
	lade_store *store = create_zip("b.zip", 6);
	put(store, "deflated", value, sizeof value);
	put(store, "stored", "stored", 6);
	finish(store);
	uint8_t *data = load("b.zip", &size);
	uint8_t *end = data + size - ZIP_END_SIZE;
	uint8_t *entry = data + lade__le32(end + 16);
	lade_error err;
	lade__le_put(entry + 24, 4000000000u, 4); /* the deflated value's size */
	assert_int_equal(open_bytes(data, size, &err), LADE_E_NOSPACE);
	lade_source source;
	assert_int_equal(lade_source_memory_open(lade_host_cspan(data, size), &source, NULL),
	                 LADE_OK);
	must(lade_store_zip_open(source, NULL, &store, &err), &err);
	lade_range range = {.key = "deflated", .dst = lade_host_span(value, 1)};
	assert_int_equal(lade_store_read(store, &range, 1, NULL, NULL, &err), LADE_E_LIMIT);
	lade_store_unref(store);
	lade__le_put(entry + 24, 1000000000u, 4);
	assert_int_equal(lade_source_memory_open(lade_host_cspan(data, size), &source, NULL),
	                 LADE_OK);
	must(lade_store_zip_open(source, NULL, &store, &err), &err);
	assert_int_equal(lade_store_read(store, &range, 1, NULL, NULL, &err), LADE_E_CORRUPT);
	lade_store_unref(store);
	lade__le_put(entry + 24, 1000, 4);
	lade_zip_options options = {.struct_size = sizeof options, .directory_max = 10};
	assert_int_equal(lade_source_memory_open(lade_host_cspan(data, size), &source, NULL),
	                 LADE_OK);
	assert_int_equal(lade_store_zip_open(source, &options, &store, &err), LADE_E_LIMIT);
	lade_source_close(source);
	lade__le_put(end + 12, 0xfffffff0u, 4); /* the directory's size */
	assert_int_equal(open_bytes(data, size, &err), LADE_E_CORRUPT);
	free(data);
}

static void a_wrong_checksum_is_found(void **state)
{
	(void)state;
	uint8_t byte;
	lade_error err;
	lade_store *store = create_zip("c.zip", 0);
	put(store, "k", "value", 5);
	finish(store);
	int fd = open("c.zip", O_WRONLY);
	assert_int_equal(pwrite(fd, "V", 1, ZIP_LOCAL_SIZE + 1), 1);
	close(fd);
	char back[5];
	lade_source source;
	store = open_zip("c.zip");
	lade_range range = {.key = "k", .dst = lade_host_span(back, 5)};
	assert_int_equal(lade_store_read(store, &range, 1, NULL, NULL, &err), LADE_E_CHECKSUM);
	range.dst = lade_host_span(&byte, 1); /* a part has none */
	must(lade_store_read(store, &range, 1, NULL, NULL, &err), &err);
	lade_store_unref(store);
	lade_zip_options options = {.struct_size = sizeof options,
	                            .flags = LADE_ZIP_IGNORE_CHECKSUMS};
	must(lade_source_file_open("c.zip", NULL, &source, &err), &err);
	must(lade_store_zip_open(source, &options, &store, &err), &err);
	range.dst = lade_host_span(back, 5);
	must(lade_store_read(store, &range, 1, NULL, NULL, &err), &err);
	lade_store_unref(store);
}

static void files_are_new_or_old(void **state)
{
	(void)state;
	lade_error err;
	uint64_t size;
	lade_store *store = create_zip("w.zip", 0);
	put(store, "k", "old", 3);
	finish(store);
	lade_store *reader = open_zip("w.zip");
	/* Not finished, by us or by a kill: the old file stays. */
	store = create_zip("w.zip", 0);
	put(store, "k", "newer", 5);
	lade_store_unref(store);
	pid_t child = fork();
	if (child == 0) {
		store = create_zip("w.zip", 0);
		for (;;)
			put(store, "k", "newer", 5);
	}
	usleep(20000);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(system("rm .lade-*"), 0); /* the child's */
	must(lade_store_look(reader, "k", &size, NULL, &err), &err);
	lade_store *again = open_zip("w.zip");
	must(lade_store_look(again, "k", &size, NULL, &err), &err);
	assert_int_equal(size, 3);
	lade_store_unref(again);
	/* Finished: the new one.  Who has the old one open reads that. */
	store = create_zip("w.zip", 0);
	put(store, "k", "newer", 5);
	must(lade_store_zip_finish(store, NULL, &err), &err);
	assert_int_equal(lade_store_zip_finish(store, NULL, &err), LADE_E_STATE);
	lade_write write = {.key = "l"};
	assert_int_equal(lade_store_write(store, &write, 1, NULL, NULL, &err), LADE_E_STATE);
	lade_store_unref(store);
	char back[3];
	lade_range range = {.key = "k", .dst = lade_host_span(back, 3)};
	must(lade_store_read(reader, &range, 1, NULL, NULL, &err), &err);
	assert_memory_equal(back, "old", 3);
	lade_store_unref(reader);
	/* A file that changes in place does so under its reader's eyes. */
	reader = open_zip("w.zip");
	usleep(10000);
	assert_int_equal(system("printf x >>w.zip"), 0);
	assert_int_equal(lade_store_read(reader, &range, 1, NULL, NULL, &err), LADE_E_CHANGED);
	lade_store_unref(reader);
	assert_int_equal(system("ls .lade-* 2>/dev/null"), 512);
}

/* ---- routes ---------------------------------------------------------------------------------- */

static void keys_are_routed(void **state)
{
	(void)state;
	lade_store *meta, *chunks, *inner, *store;
	lade_error err;
	uint64_t size;
	char back[3][8];
	must(lade_store_memory_new(LADE_PLACE_HOST, NULL, &meta, &err), &err);
	must(lade_store_memory_new(LADE_PLACE_HOST, NULL, &chunks, &err), &err);
	lade_store_route bad[2] = {{"a/c", chunks}, {NULL, meta}};
	assert_int_equal(lade_store_composite_new(bad, 2, &store, &err), LADE_E_ARG);
	bad[0].prefix = "";
	assert_int_equal(lade_store_composite_new(bad, 2, &store, &err), LADE_E_ARG);
	assert_int_equal(lade_store_composite_new(bad, 0, &store, &err), LADE_E_ARG);
	lade_store_route routes[2] = {{NULL, meta}, {"a/c/", chunks}};
	must(lade_store_composite_new(routes, 2, &inner, &err), &err);
	/* A composite store can be in another. */
	lade_store_route outer[2] = {{"a/", inner}, {"b/", meta}};
	must(lade_store_composite_new(outer, 2, &store, &err), &err);
	put(store, "a/zarr.json", "{}", 2);
	put(store, "a/c/0", "chunk", 5);
	put(store, "b/x", "x", 1);
	put(meta, "a/c/hidden", "h", 1);
	lade_write write = {.key = "elsewhere"};
	assert_int_equal(lade_store_write(store, &write, 1, NULL, NULL, &err), LADE_E_UNSUPPORTED);
	must(lade_store_look(chunks, "a/c/0", &size, NULL, &err), &err);
	assert_int_equal(lade_store_look(meta, "a/c/0", &size, NULL, &err), LADE_E_NOT_FOUND);
	assert_int_equal(lade_store_look(store, "a/c/hidden", &size, NULL, &err), LADE_E_NOT_FOUND);
	assert_int_equal(lade_store_look(store, "elsewhere", &size, NULL, &err), LADE_E_NOT_FOUND);
	lade_range ranges[3] = {{.key = "a/c/0", .off = 1, .dst = lade_host_span(back[0], 4)},
	                        {.key = "elsewhere", .dst = lade_host_span(back[1], 1)},
	                        {.key = "a/zarr.json", .dst = lade_host_span(back[2], 2)}};
	lade_store_report report = {.struct_size = sizeof report};
	assert_int_equal(lade_store_read(store, ranges, 3, NULL, &report, &err), LADE_E_NOT_FOUND);
	assert_int_equal(ranges[1].status, LADE_E_NOT_FOUND);
	assert_memory_equal(back[0], "hunk", 4);
	assert_memory_equal(back[2], "{}", 2);
	assert_true(report.request_count == 2 && report.wanted_size == 6 && report.moved_size == 6);
	assert_int_equal(entries(store, NULL, false), 3);
	assert_int_equal(entries(store, NULL, true), 2);
	assert_int_equal(entries(store, "a/", true), 2);
	assert_int_equal(entries(store, "a/c/", false), 1);
	lade_store_plan plan = {.struct_size = sizeof plan};
	must(lade_store_explain(store, ranges, 3, NULL, &plan, &err), &err);
	lade_store_unref(meta);
	lade_store_unref(chunks);
	lade_store_unref(inner);
	ranges[0].off = 100;
	assert_int_equal(lade_store_read(store, ranges, 1, NULL, NULL, &err), LADE_E_RANGE);
	assert_non_null(strstr(err.message, "'a/c/0'"));
	lade_store_unref(store);
}

/* A zip file in a store, and a store in that: one planner after the other. */
static void a_zip_file_in_a_store(void **state)
{
	(void)state;
	static uint8_t value[SIZE];
	lade_store *here, *zip;
	lade_source source;
	lade_error err;
	fill(value, SIZE);
	zip = create_zip("in.zip", 6);
	put(zip, "c/0", value, SIZE);
	put(zip, "c/1", value + 60000, 20000);
	finish(zip);
	must(lade_store_directory_open(".", NULL, &here, &err), &err);
	must(lade_store_object_open(here, "in.zip", &source, &err), &err);
	must(lade_store_zip_open(source, NULL, &zip, &err), &err);
	lade_store_unref(here);
	check_value(zip, "c/0", value, SIZE);
	check_value(zip, "c/1", value + 60000, 20000);
	lade_store_unref(zip);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(deflated_entries_are_read_at_once),
		cmocka_unit_test(pythons_files_are_read),
		cmocka_unit_test(many_entries_are_written),
		cmocka_unit_test(damage_is_found),
		cmocka_unit_test(bombs_cost_nothing),
		cmocka_unit_test(a_wrong_checksum_is_found),
		cmocka_unit_test(files_are_new_or_old),
		cmocka_unit_test(keys_are_routed),
		cmocka_unit_test(a_zip_file_in_a_store),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
