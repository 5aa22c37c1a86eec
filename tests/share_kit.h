/*
 * share_kit.h: a broker of a test's own, columns to publish, and the processes that are killed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_SHARE_KIT_H
#define LADE_TESTS_SHARE_KIT_H

#include "share/arrow.h"
#include "share/socket.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char kit_folder[] = "/tmp/lade-share-XXXXXX";
static char kit_path[64];
static lade_share_serve_options kit_options;
static lade_cancel *kit_stop;

static inline void kit_must(lade_status status, const lade_error *err)
{
	if (status != LADE_OK)
		fail_msg("%s: %s", lade_status_name(status), err->message);
}

static inline int kit_setup(void **state)
{
	(void)state;
	if (!mkdtemp(kit_folder))
		return -1;
	snprintf(kit_path, sizeof kit_path, "%s/s", kit_folder);
	return 0;
}

/* The keeper of a broker that was killed sees that its socket is gone, and ends. */
static inline int kit_teardown(void **state)
{
	char command[80];
	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", kit_folder);
	return system(command);
}

static inline void kit_end(int signal)
{
	(void)signal;
	lade_cancel_set(kit_stop);
}

static inline lade_share *kit_connect(void)
{
	lade_share_options options = {.struct_size = sizeof options, .path = kit_path};
	lade_share *share = NULL;
	lade_error err;

	for (int i = 0; i < 2000; i++) {
		lade_status status = lade_share_connect(&options, &share, &err);
		if (status != LADE_E_NOT_FOUND) {
			kit_must(status, &err);
			return share;
		}
		usleep(5000);
	}
	fail_msg("no broker: %s", err.message);
	return NULL;
}

/* Until a broker answers.  A process that one was just starting when it was killed has its socket
 * for a moment. */
static inline void kit_answered(void)
{
	lade_share_statistics n = {.struct_size = sizeof n};
	lade_status status = LADE_E_IO;
	lade_error err;

	for (int i = 0; i < 2000 && status != LADE_OK; i++) {
		lade_share *share = kit_connect();
		status = lade_share_statistics_get(share, &n, &err);
		lade_share_close(share);
		if (status != LADE_OK)
			usleep(5000);
	}
	kit_must(status, &err);
}

/* A broker, in a process that ends in order at SIGTERM. */
static inline pid_t kit_serve(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		lade_error err;
		lade_share_serve_options o = kit_options;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		o.struct_size = sizeof o;
		o.path = kit_path;
		if (lade_cancel_new(NULL, NULL, &kit_stop, NULL) != LADE_OK)
			_exit(3);
		signal(SIGTERM, kit_end);
		o.stop = kit_stop;
		lade_status status = lade_share_serve(&o, &err);
		if (status != LADE_OK)
			fprintf(stderr, "the broker: %s\n", err.message);
		lade_cancel_free(kit_stop);
		_exit(status != LADE_OK);
	}
	assert_true(pid > 0);
	kit_answered();
	return pid;
}

static inline int kit_wait(pid_t pid)
{
	int state;

	assert_int_equal(waitpid(pid, &state, 0), pid);
	return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

static inline void kit_kill(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(kit_wait(pid), 128 + SIGKILL);
}

static inline void kit_serve_end(pid_t pid)
{
	assert_int_equal(kill(pid, SIGTERM), 0);
	assert_int_equal(kit_wait(pid), 0);
}

static inline lade_share_statistics kit_numbers(lade_share *share)
{
	lade_share_statistics n = {.struct_size = sizeof n};
	lade_error err;

	kit_must(lade_share_statistics_get(share, &n, &err), &err);
	return n;
}

/* Descriptors that a process has. */
static inline int kit_descriptors(pid_t pid)
{
	char path[64];
	int count = 0;

	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	DIR *dir = opendir(path);
	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* Until the process is gone, which is not a child. */
static inline void kit_gone(pid_t pid)
{
	char path[64], text[256] = "";

	for (int i = 0; i < 4000; i++) {
		snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
		FILE *f = fopen(path, "r");
		if (!f)
			return;
		bool zombie = fgets(text, sizeof text, f) && strstr(text, ") Z ");
		fclose(f);
		if (zombie)
			return;
		usleep(5000);
	}
	fail_msg("process %d is still there", (int)pid);
}

/* ---- columns ---------------------------------------------------------------------------- */

static inline void kit_no_release_schema(struct ArrowSchema *schema)
{
	schema->release = NULL;
}

static inline void kit_no_release(struct ArrowArray *array)
{
	array->release = NULL;
}

/* A column of int64 in memory of the caller's. */
typedef struct kit_column {
	struct ArrowSchema schema;
	struct ArrowArray array;
	const struct ArrowArray *list[1];
	const void *buffers[2];
	lade_share_table table;
} kit_column;

static inline void kit_column_init(kit_column *c, const int64_t *values, int64_t off,
                                   int64_t length)
{
	*c = (kit_column){
		.schema = {.format = "l", .name = "v", .release = kit_no_release_schema},
		.array = {.length = length,
		          .offset = off,
		          .n_buffers = 2,
		          .release = kit_no_release},
		.buffers = {NULL, values},
	};
	c->array.buffers = c->buffers;
	c->list[0] = &c->array;
	c->table = (lade_share_table){.struct_size = sizeof c->table,
	                              .schema = &c->schema,
	                              .batches = c->list,
	                              .batch_count = 1};
}

/* Publishes 'count' values that begin with 'first'; returns the version. */
static inline uint64_t kit_publish(lade_share *share, const char *name, int64_t first, size_t count)
{
	int64_t *values = malloc(count * sizeof *values);
	lade_share_published out = {.struct_size = sizeof out};
	kit_column c;
	lade_error err;

	assert_non_null(values);
	for (size_t i = 0; i < count; i++)
		values[i] = first + (int64_t)i;
	kit_column_init(&c, values, 0, (int64_t)count);
	kit_must(lade_share_publish(share, name, &c.table, &out, &err), &err);
	free(values);
	return out.version;
}

/* Looks at an opened version of kit_publish(). */
static inline void kit_look(lade_share_version *v, int64_t first, size_t count)
{
	struct ArrowArray a;
	lade_error err;

	kit_must(lade_share_version_array(v, 0, &a, &err), &err);
	assert_int_equal(a.length, count);
	const int64_t *values = a.buffers[1];
	for (size_t i = 0; i < count; i++)
		if (values[(size_t)a.offset + i] != first + (int64_t)i)
			fail_msg("value %zu is %lld", i, (long long)values[(size_t)a.offset + i]);
	a.release(&a);
}

static inline void kit_expect(lade_share *share, const char *name, int64_t first, size_t count)
{
	lade_share_version *v;
	lade_error err;

	kit_must(lade_share_open(share, name, NULL, &v, &err), &err);
	kit_look(v, first, count);
	lade_share_version_unref(v);
}

#endif
