/*
 * bench_share.c: how long publishing and opening take, with a broker of its own in a folder of
 * /tmp.
 *
 *     bench_share [NAMES [CLIENTS]]: 10,000 names and 100 clients without arguments
 *
 * "p50" and "p99" are microseconds of one call.  "copy" rows copy with memcpy() what the row
 * before publishes, for comparison.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "common.h"
#include "share/arrow.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/lade-bench-XXXXXX", path[64];

static void must(lade_status status, const lade_error *err)
{
	if (status == LADE_OK)
		return;
	fprintf(stderr, "bench_share: %s\n", err->message);
	exit(1);
}

/* Microseconds. */
static double now(void)
{
	return bench_now() * 1e6;
}

static void report(const char *what, double *us, size_t count, size_t bytes)
{
	qsort(us, count, sizeof *us, bench_order);
	printf("%-44s %10.1f %10.1f", what, us[count / 2], us[count * 99 / 100]);
	if (bytes)
		printf(" %8.2f GB/s", (double)bytes / us[count / 2] / 1e3);
	putchar('\n');
	fflush(stdout);
}

static lade_share *connect_one(void)
{
	lade_share_options o = {.struct_size = sizeof o, .path = path};
	lade_share *share;
	lade_error err;
	lade_status status;

	for (int i = 0; i < 1000; i++) {
		status = lade_share_connect(&o, &share, &err);
		if (status != LADE_E_NOT_FOUND)
			break;
		usleep(5000);
	}
	must(status, &err);
	return share;
}

static void keep_schema(struct ArrowSchema *s)
{
	s->release = NULL;
}

static void keep_array(struct ArrowArray *a)
{
	a->release = NULL;
}

static void publish(lade_share *share, const char *name, const void *values, size_t bytes)
{
	const void *buffers[] = {NULL, values};
	struct ArrowSchema s = {.format = "l", .release = keep_schema};
	struct ArrowArray a = {.length = (int64_t)bytes / 8,
	                       .n_buffers = 2,
	                       .buffers = buffers,
	                       .release = keep_array};
	const struct ArrowArray *list[] = {&a};
	lade_share_table table = {
		.struct_size = sizeof table, .schema = &s, .batches = list, .batch_count = 1};
	lade_error err;

	must(lade_share_publish(share, name, &table, NULL, &err), &err);
}

static double open_one(lade_share *share, const char *name)
{
	lade_share_version *v;
	lade_error err;
	double start = now();

	must(lade_share_open(share, name, NULL, &v, &err), &err);
	double us = now() - start;
	lade_share_version_unref(v);
	return us;
}

static void sizes(lade_share *share)
{
	static const size_t all[] = {80, 1 << 20, 64 << 20};
	static double us[1000];

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		size_t rounds = all[i] > 1 << 22 ? 20 : 1000, bytes = all[i];
		char *values = malloc(bytes), *copy = malloc(bytes), text[64];
		memset(values, 1, bytes);
		memset(copy, 1, bytes);
		for (size_t r = 0; r < rounds; r++) {
			double start = now();
			publish(share, "x", values, bytes);
			us[r] = now() - start;
		}
		snprintf(text, sizeof text, "publish %zu bytes of any memory", bytes);
		report(text, us, rounds, bytes > 80 ? bytes : 0);
		for (size_t r = 0; r < rounds; r++) {
			double start = now();
			memcpy(copy, values, bytes);
			us[r] = now() - start;
		}
		if (bytes > 80)
			report("    copy", us, rounds, bytes);
		for (size_t r = 0; r < rounds; r++)
			us[r] = open_one(share, "x");
		snprintf(text, sizeof text, "open %zu bytes", bytes);
		report(text, us, rounds, 0);
		free(values);
		free(copy);
	}
	for (size_t r = 0; r < 20; r++) {
		lade_array *array;
		lade_error err;
		must(lade_share_alloc(share, 64 << 20, &array, &err), &err);
		memset(lade_array_span(array).data, 1, 64 << 20);
		double start = now();
		publish(share, "x", lade_array_span(array).data, 64 << 20);
		us[r] = now() - start;
		lade_array_unref(array);
	}
	report("publish 67108864 bytes of lade_share_alloc()", us, 20, 0);
}

/* Opens by one client while the others of its process group do the same. */
static void many(size_t names, size_t clients)
{
	enum { OPENS = 200 };
	static double us[OPENS];
	lade_share *share = connect_one();
	char text[64];

	for (size_t i = 0; i < names; i++) {
		static int64_t value[10];
		snprintf(text, sizeof text, "name %zu", i);
		publish(share, text, value, sizeof value);
	}
	for (size_t c = 0; c + 1 < clients; c++) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		lade_share *own = connect_one();
		for (size_t i = c;; i += 7919) {
			snprintf(text, sizeof text, "name %zu", i % names);
			open_one(own, text);
			usleep(2000); /* 500 a second each */
		}
	}
	usleep(300000);
	for (size_t i = 0; i < OPENS; i++) {
		snprintf(text, sizeof text, "name %zu", i * 6007 % names);
		us[i] = open_one(share, text);
		usleep(2000);
	}
	snprintf(text, sizeof text, "open, %zu names, %zu clients", names, clients);
	report(text, us, OPENS, 0);
	lade_share_close(share);
}

int main(int argc, char **argv)
{
	size_t names = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000;
	size_t clients = argc > 2 ? strtoul(argv[2], NULL, 10) : 100;
	char command[80];

	if (!names || !clients || !mkdtemp(folder))
		return 2;
	snprintf(path, sizeof path, "%s/s", folder);
	pid_t broker = fork();
	if (broker == 0) {
		lade_share_serve_options o = {.struct_size = sizeof o, .path = path};
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(lade_share_serve(&o, NULL) != LADE_OK);
	}
	lade_share *share = connect_one();
	printf("%-44s %10s %10s\n", "", "p50 us", "p99 us");
	sizes(share);
	lade_share_close(share);
	many(names, clients);
	/* The keeper ends when its socket is gone. */
	snprintf(command, sizeof command, "rm -rf %s", folder);
	int rc = system(command);
	kill(broker, SIGKILL);
	return rc;
}
