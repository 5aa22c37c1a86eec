/*
 * long_share.c: rounds of publish, open and release, with nothing left on any side.
 *
 *     lade_long_share [ROUNDS]: a million without it
 *
 * After a third of the rounds, and at the end, it counts descriptors, maps and bytes of memory of
 * this process, the broker and the keeper.  The first part is within its budget of memory; in the
 * second, of a hundredth of the rounds, each publication makes room and each opening brings
 * something back.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "share_kit.h"

#include <inttypes.h>
#include <time.h>

#define LARGE 20000                 /* values: a block of 160 KB */
/* Bytes that a process may have more at the end.  Sanitizers keep what was freed. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLACK ((long)1 << 40)
#else
#define SLACK ((long)4 << 20)
#endif

static int64_t values[LARGE];

typedef struct usage {
	long descriptors, maps, bytes;
} usage;

/* A line of a process's file in /proc that begins so: its number.  Without a name, the lines. */
static long proc_number(pid_t pid, const char *file, const char *name)
{
	char path[64], line[512];
	long value = 0;

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		if (!name)
			value++;
		else if (!strncmp(line, name, strlen(name)))
			value = strtol(line + strlen(name), NULL, 10);
	}
	fclose(f);
	return value;
}

static usage usage_of(pid_t pid)
{
	return (usage){kit_descriptors(pid), proc_number(pid, "maps", NULL),
	               proc_number(pid, "status", "VmRSS:") * 1024};
}

static void compare(const char *who, usage before, usage now)
{
	printf("  %-8s descriptors %ld to %ld, maps %ld to %ld, bytes %ld to %ld\n", who,
	       before.descriptors, now.descriptors, before.maps, now.maps, before.bytes, now.bytes);
	assert_true(now.descriptors <= before.descriptors);
	assert_true(now.maps <= before.maps + (SLACK >> 20 > 4 ? 10000 : 8));
	assert_true(now.bytes <= before.bytes + SLACK);
}

/* One round: a version of 'name', copied, shared or small, that another connection opens. */
static void round_of(lade_share *share, lade_share *other, const char *name, uint64_t i)
{
	size_t count = i % 4 ? 10 : LARGE;
	lade_array *array = NULL;
	int64_t *data = values;
	kit_column c;
	lade_share_version *v;
	struct ArrowArray a;
	lade_error err;

	if (i % 8 == 4) {
		kit_must(lade_share_alloc(share, sizeof values, &array, &err), &err);
		data = lade_array_span(array).data;
		memcpy(data, values, sizeof values);
	}
	data[0] = (int64_t)i;
	kit_column_init(&c, data, 0, (int64_t)count);
	kit_must(lade_share_publish(share, name, &c.table, NULL, &err), &err);
	lade_array_unref(array);
	kit_must(lade_share_open(other, name, NULL, &v, &err), &err);
	kit_must(lade_share_version_array(v, 0, &a, &err), &err);
	assert_int_equal(((const int64_t *)a.buffers[1])[0], i);
	assert_int_equal(a.length, count);
	a.release(&a);
	lade_share_version_unref(v);
	if (i % 100 == 0)
		kit_must(lade_share_remove(other, name, 0, &err), &err);
}

/* Opens the oldest large one, if it is there. */
static void bring_back(lade_share *share, uint64_t i, uint64_t names)
{
	lade_share_version *v = NULL;
	char name[32];
	lade_error err;

	snprintf(name, sizeof name, "n%" PRIu64, (i / 4 * 4 + 4) % names);
	lade_status status = lade_share_open(share, name, NULL, &v, &err);
	if (status != LADE_E_NOT_FOUND)
		kit_must(status, &err);
	lade_share_version_unref(v);
}

static void soak(uint64_t rounds, uint64_t names, bool back)
{
	pid_t broker = kit_serve();
	lade_share *share = kit_connect(), *other = kit_connect();
	pid_t all[3] = {getpid(), broker, (pid_t)kit_numbers(share).keeper_pid};
	static const char *const who[] = {"client", "broker", "keeper"};
	usage before[3] = {{0}};
	struct timespec begin, end;
	lade_error err;
	char name[32];

	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (uint64_t i = 0; i <= rounds; i++) {
		if (i == rounds / 3 || i == rounds) {
			for (uint64_t n = 0; n < names; n++) {
				snprintf(name, sizeof name, "n%" PRIu64, n);
				lade_share_remove(share, name, 0, &err);
			}
			/* The worker may just be ending with a block. */
			lade_share_statistics n = {0};
			for (int wait = 0; wait < 1000; wait++) {
				n = kit_numbers(share);
				if (!(n.versions + n.bytes + n.held + n.disk))
					break;
				usleep(5000);
			}
			assert_int_equal(n.versions + n.bytes + n.held + n.disk, 0);
			for (int p = 0; p < 3 && i == rounds; p++)
				for (int wait = 0; wait < 1000 && kit_descriptors(all[p]) >
				                                          before[p].descriptors;
				     wait++)
					usleep(5000);
			for (int p = 0; p < 3; p++) {
				if (i == rounds)
					compare(who[p], before[p], usage_of(all[p]));
				else
					before[p] = usage_of(all[p]);
			}
		}
		snprintf(name, sizeof name, "n%" PRIu64, i % names);
		if (i < rounds)
			round_of(share, other, name, i);
		if (i < rounds && back)
			bring_back(other, i, names);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	double seconds = (double)(end.tv_sec - begin.tv_sec) +
	                 (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
	lade_share_statistics n = kit_numbers(share);
	printf("  %" PRIu64 " rounds in %.0f s: %.0f us each; compressed %" PRIu64
	       ", to files %" PRIu64 ", back %" PRIu64 "\n",
	       rounds, seconds, seconds * 1e6 / (double)rounds, n.evicted, n.stored, n.returned);
	lade_share_close(share);
	lade_share_close(other);
	kit_serve_end(broker);
}

static uint64_t rounds = 1000000;

static void test_within_the_budget(void **state)
{
	(void)state;
	soak(rounds, 7, false);
}

static void test_above_the_budget(void **state)
{
	char spill[80];
	uint64_t x = 88172645463325252u;
	(void)state;

	/* Values that cannot be compressed, so that files are needed. */
	for (size_t i = 0; i < LARGE; i++) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		values[i] = (int64_t)x;
	}
	snprintf(spill, sizeof spill, "%s/files", kit_folder);
	kit_options = (lade_share_serve_options){.bytes_cap = 400000, .spill = spill};
	soak(rounds / 100 < 100 ? 100 : rounds / 100, 32, true);
	kit_options = (lade_share_serve_options){0};
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_within_the_budget),
		cmocka_unit_test(test_above_the_budget),
	};
	if (argc > 1)
		rounds = strtoull(argv[1], NULL, 10);
	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests(tests, kit_setup, kit_teardown);
}
