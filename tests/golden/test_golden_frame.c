/*
 * test_golden_frame.c: stored frames, good and bad (tests/golden/frame/README.md), and what is
 * written today read by a second reader in Python.
 *
 * With LADE_GOLDEN_MAKE set to a folder it writes the good frames there and does nothing else.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame_kit.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static lade_engine *engine;

static int setup(void **state)
{
	(void)state;
	lade_engine_options options = {.struct_size = sizeof options, .threads = 2};
	return lade_engine_new(&options, &engine, NULL) != LADE_OK;
}

static int teardown(void **state)
{
	(void)state;
	lade_engine_free(engine);
	return 0;
}

static kit_bytes load(const char *dir, const char *name)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = fopen(path, "rb");
	if (!f)
		fail_msg("%s cannot be read", path);
	kit_bytes b = {0};
	uint8_t piece[4096];
	for (size_t n; (n = fread(piece, 1, sizeof piece, f)) > 0;)
		kit_write(&b, piece, n, NULL);
	fclose(f);
	return b;
}

static void save(const char *dir, const char *name, const char *end, const void *data, size_t size)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s%s", dir, name, end);
	FILE *f = fopen(path, "wb");
	if (!f || (size && fwrite(data, 1, size, f) != size) || fclose(f))
		fail_msg("%s cannot be written", path);
}

/* Calls 'test' with each *.lade of a folder; at least 'least' of them. */
static void each(const char *dir, int least, void (*test)(const char *dir, const char *name))
{
	DIR *d = opendir(dir);
	assert_non_null(d);
	int count = 0;
	for (struct dirent *e; (e = readdir(d));)
		if (strstr(e->d_name, ".lade")) {
			test(dir, e->d_name);
			count++;
		}
	closedir(d);
	assert_true(count >= least);
}

static void read_good(const char *dir, const char *name)
{
	kit_bytes frame = load(dir, name);
	char bin[512];
	snprintf(bin, sizeof bin, "%.*s.bin", (int)(strlen(name) - 5), name);
	kit_bytes want = load(dir, bin);
	for (int reader = 0; reader < KIT_READERS; reader++) {
		kit_bytes out = {0};
		lade_error err = {0};
		lade_status status = kit_decode(
			engine, (enum kit_reader)reader, frame.data, frame.size,
			kit_read_options(LADE_VERIFY_IF_PRESENT), &out, NULL, &err);
		if (status != LADE_OK || out.size != want.size ||
		    (want.size && memcmp(out.data, want.data, want.size)))
			fail_msg("%s, %s: %s: %s", name, kit_reader_names[reader],
			         lade_status_name(status), err.message);
		free(out.data);
	}
	free(frame.data);
	free(want.data);
}

/* The name begins with the status: LADE_E_CORRUPT.what-is-wrong.lade. */
static void read_bad(const char *dir, const char *name)
{
	kit_bytes frame = load(dir, name);
	guard bytes = guard_copy(frame.data, frame.size, 1);
	for (int reader = 0; reader < KIT_READERS; reader++) {
		kit_bytes out = {0};
		lade_error err = {0};
		lade_status status =
			kit_decode(engine, (enum kit_reader)reader, bytes.data, bytes.size,
		                   kit_read_options(LADE_VERIFY_REQUIRED), &out, NULL, &err);
		const char *want = lade_status_name(status);
		if (strncmp(name, want, strlen(want)) || name[strlen(want)] != '.')
			fail_msg("%s, %s: %s: %s", name, kit_reader_names[reader], want,
			         err.message);
		free(out.data);
	}
	guard_free(&bytes);
	free(frame.data);
}

static void test_good(void **state)
{
	(void)state;
	each(LADE_TESTS_DIR "/golden/frame/good", 12, read_good);
}

static void test_bad(void **state)
{
	(void)state;
	each(LADE_TESTS_DIR "/golden/frame/bad", 8, read_bad);
}

/* ---- what is written today ------------------------------------------------------------------ */

typedef struct recipe {
	const char *name, *spec;
	size_t size, chunk_size;
	unsigned nature;
	lade_checksum checksum; /* NONE: without */
	lade_dtype dtype;
	bool unknown; /* total size */
	const char *own; /* spec of every second chunk */
} recipe;

static const recipe recipes[] = {
	{"empty", "copy", 0, 64, 0, LADE_XXH64, 0, false, NULL},
	{"empty-unknown", "copy", 0, 64, 0, LADE_XXH64, 0, true, NULL},
	{"one-byte", "lz4", 1, 64, 1, LADE_XXH64, 0, false, NULL},
	{"stored", "zlib", 300, 64, 1, LADE_XXH64, 0, false, NULL},
	{"constant", "lz4", 300, 64, 0, LADE_XXH64, LADE_U4, false, NULL},
	{"lz4-runs", "lz4", 3000, 1024, 3, LADE_XXH64, LADE_U4, false, NULL},
	{"shuffle-zlib", "shuffle(4)|zlib", 3000, 1024, 2, LADE_XXH64, LADE_I4, false, NULL},
	{"shuffle-lz4-crc32c", "shuffle(4)|lz4|crc32c", 3000, 1000, 2, LADE_XXH64, 0, true, NULL},
	{"gzip-sums-crc32c", "gzip", 2000, 512, 2, LADE_CRC32C, 0, false, NULL},
	{"deflate-no-sums", "deflate", 2000, 512, 2, LADE_CHECKSUM_NONE, 0, true, NULL},
	{"own-spec", "copy", 2000, 400, 2, LADE_XXH64, 0, true, "shuffle(4)|zlib"},
	{"big-endian", "lz4", 800, 512, 3, LADE_XXH64, LADE_F8 | LADE_DTYPE_BIG, false, NULL},
};

/* Frames of these are written anew and not kept: they are larger. */
static const recipe large[] = {
	{"one-page", "lz4", 4096 * 16, 16, 4, LADE_XXH64, 0, true, NULL},
	{"a-page-and-a-chunk", "lz4", 4096 * 16 + 1, 16, 4, LADE_CRC32C, 0, true, NULL},
	{"three-pages", "zlib", 8200 * 16 + 3, 16, 3, LADE_CHECKSUM_NONE, LADE_U2, false, NULL},
	{"tens-of-kilobytes", "shuffle(8)|lz4", 50000, 16384, 4, LADE_XXH64, 0, true, NULL},
};

static void make(const recipe *p, const char *dir)
{
	rng r = {12345};
	uint8_t *data = malloc(p->size + 1);
	assert_non_null(data);
	kit_fill(data, p->size, p->nature, &r);
	lade_spec *spec = kit_spec(p->spec), *own = p->own ? kit_spec(p->own) : NULL;
	lade_frame_options options = kit_options(spec, p->chunk_size);
	uint64_t shape[2] = {2, 0};
	options.checksum = p->checksum;
	options.no_checksums = !p->checksum;
	options.dtype = p->dtype;
	options.has_size = !p->unknown;
	options.size = p->size;
	if (p->dtype && !p->unknown && p->size % (2 * lade_dtype_size(p->dtype)) == 0) {
		shape[1] = p->size / 2 / lade_dtype_size(p->dtype);
		options.shape = shape;
		options.ndim = 2;
		options.fortran_order = true;
	}
	kit_bytes frame = {0};
	lade_frame_writer *w;
	assert_int_equal(lade_frame_writer_new(engine, kit_output(&frame), &options, &w, NULL),
	                 LADE_OK);
	for (size_t at = 0, i = 0; at < p->size; at += p->chunk_size, i++) {
		size_t n = p->size - at < p->chunk_size ? p->size - at : p->chunk_size;
		lade_status status = own && i % 2
		                             ? lade_frame_writer_chunk(w, own, data + at, n, NULL)
		                             : lade_frame_writer_write(w, data + at, n, NULL);
		assert_int_equal(status, LADE_OK);
	}
	assert_int_equal(lade_frame_writer_finish(w, NULL), LADE_OK);
	lade_frame_writer_free(w);
	save(dir, p->name, ".lade", frame.data, frame.size);
	save(dir, p->name, ".bin", data, p->size);
	free(frame.data);
	free(data);
	lade_spec_unref(spec);
	lade_spec_unref(own);
}

static int python(const char *dir)
{
	char command[8192];
	snprintf(command, sizeof command, "python3 '%s/golden/frame_reader.py' --check '%s'",
	         LADE_TESTS_DIR, dir);
	return system(command);
}

static void test_second_reader(void **state)
{
	(void)state;
	assert_int_equal(python(LADE_TESTS_DIR "/golden/frame/good"), 0);
	const char *tmp = getenv("TMPDIR");
	char dir[2048], command[4096];
	snprintf(dir, sizeof dir, "%s/lade-golden-XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(dir));
	for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
		make(&recipes[i], dir);
	for (size_t i = 0; i < sizeof large / sizeof *large; i++)
		make(&large[i], dir);
	int rc = python(dir);
	each(dir, 16, read_good);
	snprintf(command, sizeof command, "rm -r '%s'", dir);
	assert_int_equal(system(command), 0);
	assert_int_equal(rc, 0);
}

int main(void)
{
	const char *dir = getenv("LADE_GOLDEN_MAKE");
	if (dir) {
		setup(NULL);
		for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
			make(&recipes[i], dir);
		return teardown(NULL);
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_second_reader),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
