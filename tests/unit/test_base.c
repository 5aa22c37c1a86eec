/*
 * test_base.c: status texts and messages, memory kinds, data types, CPU levels and counts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "base/cpu.h"
#include "guard.h"

#include <lade/lade.h>

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

/* ---- status ------------------------------------------------------------------------- */

static void every_status_has_a_name_and_a_text(void **state)
{
	(void)state;
#define LADE_X(name, value, text)                                   \
	assert_int_equal(name, value);                              \
	assert_string_equal(lade_status_name(name), #name);         \
	assert_string_equal(lade_status_text(name), text);
	LADE_STATUS_LIST(LADE_X)
#undef LADE_X
	assert_string_equal(lade_status_name((lade_status)9999), "LADE_E_?");
	assert_string_equal(lade_status_text((lade_status)9999), "an unknown status");
	assert_string_equal(lade_status_name((lade_status)-1), "LADE_E_?");
}

static void fail_fills_the_error_and_takes_null(void **state)
{
	(void)state;
	lade_error err;
	memset(&err, 0x55, sizeof err);
	lade_status s = lade_fail(&err, LADE_E_CORRUPT, 17, "want %d bytes, have %d", 4096, 4091);
	assert_int_equal(s, LADE_E_CORRUPT);
	assert_int_equal(err.status, LADE_E_CORRUPT);
	assert_int_equal(err.offset, 17);
	assert_string_equal(err.message, "want 4096 bytes, have 4091");
	assert_int_equal(lade_fail(NULL, LADE_E_IO, 0, "nobody reads this"), LADE_E_IO);
}

/* A message of 'lead_bytes' letters and then copies of one character is cut after whole ones. */
static void assert_cut(const char *unit, size_t lead_bytes)
{
	char text[LADE_MESSAGE_CAP * 3];
	size_t n = 0, width = strlen(unit);
	while (n < lead_bytes)
		text[n++] = 'x';
	while (n + width < sizeof text) {
		memcpy(text + n, unit, width);
		n += width;
	}
	text[n] = 0;
	lade_error err;
	lade_fail(&err, LADE_E_ARG, 0, "%s", text);
	size_t room = LADE_MESSAGE_CAP - 1 - lead_bytes;
	size_t want = lead_bytes + room / width * width;
	assert_int_equal(strlen(err.message), want);
	assert_memory_equal(err.message, text, want);
}

static void long_messages_are_cut_at_a_whole_character(void **state)
{
	(void)state;
	static const char *const units[] = {"y", "\xC3\xA4", "\xE2\x82\xAC", "\xF0\x9F\x9A\xA2"};
	for (size_t u = 0; u < 4; u++)
		for (size_t lead = 0; lead < 8; lead++)
			assert_cut(units[u], lead);
	/* One byte less than the room: nothing is cut. */
	char text[LADE_MESSAGE_CAP];
	memset(text, 'z', sizeof text);
	text[sizeof text - 1] = 0;
	lade_error err;
	lade_fail(&err, LADE_E_ARG, 0, "%s", text);
	assert_string_equal(err.message, text);
}

static void version_text_and_number_agree(void **state)
{
	(void)state;
	int major, minor, patch;
	assert_int_equal(lade_version(), LADE_VERSION);
	assert_int_equal(sscanf(lade_version_text(), "%d.%d.%d", &major, &minor, &patch), 3);
	assert_int_equal(major * 10000 + minor * 100 + patch, lade_version());
}

/* ---- memory ------------------------------------------------------------------------- */

static void kinds_have_names(void **state)
{
	(void)state;
	assert_string_equal(lade_kind_name(LADE_HOST), "host");
	assert_string_equal(lade_kind_name(LADE_PINNED), "pinned");
	assert_string_equal(lade_kind_name(LADE_MANAGED), "managed");
	assert_string_equal(lade_kind_name(LADE_DEVICE), "device");
	assert_string_equal(lade_kind_name((lade_kind)LADE_KIND_COUNT), "?");
	assert_true(lade_kind_is_host(LADE_PINNED));
	assert_false(lade_kind_is_host(LADE_DEVICE));
}

static void the_host_allocator_aligns(void **state)
{
	(void)state;
	const lade_allocator *a = lade_allocator_default(LADE_HOST);
	static const size_t sizes[] = {1, 7, 64, 4097, 1 << 20};
	for (size_t align = 1; align <= 65536; align *= 2) {
		for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
			void *p = a->alloc(a->ctx, sizes[i], align, LADE_PLACE_HOST, NULL);
			assert_non_null(p);
			assert_int_equal((uintptr_t)p % align, 0);
			memset(p, 1, sizes[i]);
			a->free(a->ctx, p, sizes[i], align, LADE_PLACE_HOST, NULL);
		}
	}
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they stop at such a size */
	size_t huge = PTRDIFF_MAX;
	assert_null(a->alloc(a->ctx, huge, 64, LADE_PLACE_HOST, NULL));
#endif
}

static void every_kind_has_an_allocator(void **state)
{
	(void)state;
	/* Those that need a driver open it when they are asked for memory (tests/gpu). */
	for (int kind = LADE_HOST; kind < LADE_KIND_COUNT; kind++) {
		const lade_allocator *a = lade_allocator_default((lade_kind)kind);
		assert_non_null(a);
		assert_true(a->alloc && a->free);
		assert_ptr_equal(a, lade_allocator_default((lade_kind)kind));
	}
	assert_null(lade_allocator_default((lade_kind)LADE_KIND_COUNT)->alloc);
}

/* ---- data types --------------------------------------------------------------------- */

static void assert_dtype(const char *text, lade_dtype want)
{
	lade_dtype got = 0xEE;
	lade_error err;
	if (lade_dtype_parse(text, &got, &err) != LADE_OK)
		fail_msg("%s: %s", text, err.message);
	if (got != want)
		fail_msg("%s: got type %u, want %u", text, got, want);
}

static void every_spelling_is_read(void **state)
{
	(void)state;
	static const struct {
		const char *bare, *name;
		lade_dtype type;
	} t[] = {
		{"b1", "bool", LADE_B1},    {"i1", "int8", LADE_I1},     {"u1", "uint8", LADE_U1},
		{"i2", "int16", LADE_I2},   {"u2", "uint16", LADE_U2},   {"i4", "int32", LADE_I4},
		{"u4", "uint32", LADE_U4},  {"i8", "int64", LADE_I8},    {"u8", "uint64", LADE_U8},
		{"f2", "float16", LADE_F2}, {"f4", "float32", LADE_F4},  {"f8", "float64", LADE_F8},
		{"bfloat16", "bfloat16", LADE_BF16},
		{"float8_e4m3", "float8_e4m3fn", LADE_F8_E4M3},
	};
	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		assert_dtype(t[i].bare, t[i].type);
		assert_dtype(t[i].name, t[i].type);
		for (const char *order = "<=|>"; *order; order++) {
			char text[32];
			snprintf(text, sizeof text, "%c%s", *order, t[i].bare);
			lade_dtype want = t[i].type;
			if (*order == '>' && lade_dtype_size(want) > 1)
				want |= LADE_DTYPE_BIG;
			assert_dtype(text, want);
		}
	}
}

static void texts_sizes_and_classes_follow_the_list(void **state)
{
	(void)state;
#define LADE_X(name, value, text, size, cls)                              \
	assert_string_equal(lade_dtype_text(name), text);                 \
	assert_int_equal(lade_dtype_size(name), size);                    \
	assert_int_equal(lade_dtype_class(name), cls);                    \
	assert_dtype(text, name);
	LADE_DTYPE_LIST(LADE_X)
#undef LADE_X
	assert_string_equal(lade_dtype_text(LADE_F4 | LADE_DTYPE_BIG), ">f4");
	assert_int_equal(lade_dtype_size(LADE_F4 | LADE_DTYPE_BIG), 4);
	assert_int_equal(lade_dtype_class(LADE_U8 | LADE_DTYPE_BIG), 'u');
	assert_string_equal(lade_dtype_text(LADE_DTYPE_NONE), "none");
	assert_int_equal(lade_dtype_size(LADE_DTYPE_NONE), 0);
	assert_int_equal(lade_dtype_class(LADE_DTYPE_NONE), 0);
}

static void every_type_number_has_a_text_that_reads_back(void **state)
{
	(void)state;
	unsigned types = 0;
	for (unsigned n = 1; n < 256; n++) {
		const char *text = lade_dtype_text((lade_dtype)n);
		if (lade_dtype_size((lade_dtype)n) == 0) {
			assert_string_equal(text, "?");
			assert_int_equal(lade_dtype_class((lade_dtype)n), 0);
			continue;
		}
		types++;
		assert_dtype(text, (lade_dtype)n);
	}
	/* 14 types, of which four have one byte and no order. */
	assert_int_equal(types, 14 + 10);
}

static void wrong_type_strings_are_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",     "<",      ">",       "f",     "4",      "f3",        "<f16",   "f4 ",
		" f4",  "F4",     "<<f4",    "<>f4",  "c8",     "<c16",      "|S5",    "<U3",
		"|V8",  "|O8",    "<M8[ns]", "none",  "?",      "float",     "Float32", "int",
		"<int32", ">float32", "|uint8", "f4\n", "bfloat", "float8_e5m2", "u1u1", "b8",
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		lade_dtype got = 0xEE;
		lade_error err;
		if (lade_dtype_parse(bad[i], &got, &err) != LADE_E_DTYPE)
			fail_msg("\"%s\" was taken as type %u", bad[i], got);
		assert_int_equal(got, LADE_DTYPE_NONE);
		assert_int_equal(lade_dtype_parse(bad[i], &got, NULL), LADE_E_DTYPE);
		if (bad[i][0])
			assert_non_null(strstr(err.message, bad[i]));
	}
	lade_dtype got;
	assert_int_equal(lade_dtype_parse(NULL, &got, NULL), LADE_E_ARG);
	assert_int_equal(lade_dtype_parse("f4", NULL, NULL), LADE_E_ARG);
}

static void type_strings_are_read_to_their_end_only(void **state)
{
	(void)state;
	static const char *const texts[] = {"",    "<",      "f",        "f4",
	                                    "<f4", "float3", "bfloat16", "xxxxxxxxx"};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		guard g = guard_copy(texts[i], strlen(texts[i]) + 1, 1);
		lade_dtype got;
		lade_dtype_parse((const char *)g.data, &got, NULL);
		guard_free(&g);
	}
}

static void check_swap(size_t count, size_t size, int at_end, int in_place)
{
	guard src = guard_new(count * size, at_end);
	guard dst = guard_new(count * size, at_end);
	for (size_t i = 0; i < count * size; i++)
		src.data[i] = (uint8_t)(i * 7 + 3);
	uint8_t *out = in_place ? src.data : dst.data;
	lade_byteswap(src.data, out, count, size);
	for (size_t i = 0; i < count; i++)
		for (size_t b = 0; b < size; b++)
			assert_int_equal(out[i * size + b],
			                 (uint8_t)((i * size + size - 1 - b) * 7 + 3));
	guard_free(&src);
	guard_free(&dst);
}

static void byteswap_reverses_each_element_and_no_more(void **state)
{
	(void)state;
	static const size_t counts[] = {0, 1, 2, 3, 7, 15, 16, 17, 31, 33, 100, 1025};
	for (size_t size = 1; size <= 8; size *= 2)
		for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
			for (int how = 0; how < 4; how++)
				check_swap(counts[i], size, how & 1, how >> 1);
	/* Odd addresses: 5 elements of 4 bytes, one byte before the guard's end. */
	guard g = guard_new(21, 1);
	for (int i = 0; i < 21; i++)
		g.data[i] = (uint8_t)i;
	lade_byteswap(g.data + 1, g.data + 1, 5, 4);
	assert_int_equal(g.data[0], 0);
	assert_int_equal(g.data[1], 4);
	assert_int_equal(g.data[20], 17);
	guard_free(&g);
	lade_byteswap(NULL, NULL, 0, 4);
}

/* ---- CPU ---------------------------------------------------------------------------- */

static void levels_have_names(void **state)
{
	(void)state;
	static const char *const names[] = {"auto", "plain", "sse4.2", "avx2", "avx512"};
	for (int level = LADE_CPU_AUTO; level <= LADE_CPU_AVX512; level++)
		assert_string_equal(lade_cpu_name((lade_cpu)level), names[level]);
	assert_string_equal(lade_cpu_name((lade_cpu)5), "?");
}

/* The kernel's own list, which is about the same registers and instructions. */
static int kernel_has(const char *flag)
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	char line[16384], word[32];
	int found = 0;
	snprintf(word, sizeof word, " %s ", flag);
	while (file && fgets(line, sizeof line, file)) {
		if (strncmp(line, "flags", 5) != 0)
			continue;
		line[strcspn(line, "\n")] = ' ';
		found = strstr(line, word) != NULL;
		break;
	}
	if (file)
		fclose(file);
	return found;
}

static void the_level_is_what_the_kernel_says(void **state)
{
	(void)state;
	lade_cpu want = LADE_CPU_PLAIN;
	if (kernel_has("sse4_2") && kernel_has("pclmulqdq"))
		want = LADE_CPU_SSE42;
	if (want == LADE_CPU_SSE42 && kernel_has("avx2") && kernel_has("bmi1") &&
	    kernel_has("bmi2"))
		want = LADE_CPU_AVX2;
	if (want == LADE_CPU_AVX2 && kernel_has("avx512f") && kernel_has("avx512bw") &&
	    kernel_has("avx512dq") && kernel_has("avx512vl") && kernel_has("avx512vbmi"))
		want = LADE_CPU_AVX512;
	assert_int_equal(lade_cpu_detect(), want);
}

static void the_count_follows_the_affinity_mask(void **state)
{
	(void)state;
	cpu_set_t old, one;
	assert_int_equal(sched_getaffinity(0, sizeof old, &old), 0);
	assert_true(lade_cpu_count() >= 1);
	assert_true(lade_cpu_count() <= (unsigned)CPU_COUNT(&old));
	size_t cpu = 0;
	while (!CPU_ISSET(cpu, &old))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
	assert_int_equal(lade_cpu_count(), 1);
	assert_int_equal(sched_setaffinity(0, sizeof old, &old), 0);
}

static char folder[64];

static void put(const char *name, const char *text)
{
	char path[256];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	for (char *p = path + strlen(folder) + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		mkdir(path, 0700);
		*p = '/';
	}
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static unsigned quota(const char *groups)
{
	char list[128];
	put("groups", groups);
	snprintf(list, sizeof list, "%s/groups", folder);
	return lade__cpu_quota(list, folder);
}

static void the_quota_is_the_lowest_of_the_groups(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/lade-test-XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(lade__cpu_quota("/nowhere/at/all", folder), 0);
	/* Version 2: the group itself, a parent, none, rounding up, and a group that is not
	 * here. */
	put("a/b/cpu.max", "250000 100000\n");
	put("a/cpu.max", "max 100000\n");
	put("c/cpu.max", "100000 100000\n");
	put("c/d/cpu.max", "800000 100000\n");
	assert_int_equal(quota("0::/a/b\n"), 3);
	assert_int_equal(quota("0::/a\n"), 0);
	assert_int_equal(quota("0::/c/d\n"), 1);
	assert_int_equal(quota("0::/not/here\n"), 0);
	put("cpu.max", "1 100000\n");
	assert_int_equal(quota("0::/not/here\n"), 1);
	put("cpu.max", "1600000 100000\n");
	assert_int_equal(quota("0::/\n"), 16);
	/* Version 1, alone and beside version 2. */
	put("cpu,cpuacct/x/cpu.cfs_quota_us", "150000\n");
	put("cpu,cpuacct/x/cpu.cfs_period_us", "50000\n");
	put("cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
	put("cpu,cpuacct/cpu.cfs_period_us", "50000\n");
	assert_int_equal(quota("4:memory:/x\n3:cpu,cpuacct:/x\n"), 3);
	assert_int_equal(quota("3:cpu,cpuacct:/\n"), 0);
	assert_int_equal(quota("3:cpuset:/x\n"), 0);
	assert_int_equal(quota("3:cpu,cpuacct:/x\n0::/\n"), 3);
	/* Nonsense is no limit. */
	put("cpu.max", "-5 0\n");
	assert_int_equal(quota("0::/\n"), 0);
	put("cpu.max", "9223372036854775807 1\n");
	assert_int_equal(quota("0::/\n"), 0);
	assert_int_equal(quota("no colons\n:\n\n"), 0);
	char command[96];
	snprintf(command, sizeof command, "rm -r '%s'", folder);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_status_has_a_name_and_a_text),
		cmocka_unit_test(fail_fills_the_error_and_takes_null),
		cmocka_unit_test(long_messages_are_cut_at_a_whole_character),
		cmocka_unit_test(version_text_and_number_agree),
		cmocka_unit_test(kinds_have_names),
		cmocka_unit_test(the_host_allocator_aligns),
		cmocka_unit_test(every_kind_has_an_allocator),
		cmocka_unit_test(every_spelling_is_read),
		cmocka_unit_test(texts_sizes_and_classes_follow_the_list),
		cmocka_unit_test(every_type_number_has_a_text_that_reads_back),
		cmocka_unit_test(wrong_type_strings_are_refused),
		cmocka_unit_test(type_strings_are_read_to_their_end_only),
		cmocka_unit_test(byteswap_reverses_each_element_and_no_more),
		cmocka_unit_test(levels_have_names),
		cmocka_unit_test(the_level_is_what_the_kernel_says),
		cmocka_unit_test(the_count_follows_the_affinity_mask),
		cmocka_unit_test(the_quota_is_the_lowest_of_the_groups),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
