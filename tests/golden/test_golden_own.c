/*
 * test_golden_own.c: stored chunks of ANS and bitcomp decode to what is stored beside them; their
 * origin is in ans/ORIGIN.md and bitcomp/ORIGIN.md.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec_test.h"

static const char *const of_ans[] = {
	"doubles-f8", "lane-u1", "one-u2", "planes-u4", "raw-u1",
	"signs-bf16", "stored-u1", NULL,
};

static const char *const of_bitcomp[] = {
	"any-1",    "any-2",    "any-4",    "any-8",    "floats-i2", "floats-i4", "jumps-i4",
	"lossy-f2", "lossy-f4", "lossy-f8", "noise-i4", "one-i2",    "range-u8",  "sparse-i4",
	"steps-u1", "steps-u8", "words-u1", "zero-i2",  "zero-u8",   "mask-i2",   "mask-i4",
	"mask-u8",  "runs-u1",  "runs-u4",  "apart-u1", "apart-u2",  "decimal-f4", "decimal-f8",
	NULL,
};

static guard read_file(const char *folder, const char *name, const char *ending)
{
	static uint8_t data[1 << 16];
	char path[512];
	snprintf(path, sizeof path, "%s/golden/%s/%s.%s", LADE_TESTS_DIR, folder, name, ending);
	FILE *f = fopen(path, "rb");
	if (!f)
		fail_msg("%s: cannot be opened", path);
	size_t size = fread(data, 1, sizeof data, f);
	assert_true(size > 0 && size < sizeof data);
	fclose(f);
	return guard_copy(data, size, 1);
}

static void decode_all(const char *name, const char *const *names)
{
	codec c = codec_open(name);
	for (size_t i = 0; names[i]; i++) {
		guard chunk = read_file(name, names[i], "chunk");
		guard data = read_file(name, names[i], "data");
		for (lade_cpu cpu = LADE_CPU_PLAIN; cpu <= lade_cpu_detect(); cpu++) {
			guard out = guard_new(data.size, 1);
			lade_error err = {0};
			size_t got = 0;
			c.dec.cpu = cpu;
			assert_status(codec_decode(&c, chunk.data, chunk.size, out.data, out.size,
			                           &got, &err),
			              LADE_OK, err);
			assert_int_equal(got, data.size);
			assert_memory_equal(out.data, data.data, data.size);
			guard_free(&out);
		}
		guard_free(&chunk);
		guard_free(&data);
	}
	codec_close(&c);
}

static void test_stored_chunks(void **state)
{
	(void)state;
	decode_all("ans", of_ans);
	decode_all("bitcomp", of_bitcomp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stored_chunks),
	};
	return cmocka_run_group_tests(tests, codec_setup, codec_teardown);
}
