/*
 * test_share.c: names, versions, memory that becomes read-only, events, limits.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "share_kit.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define LARGE 20000 /* values: 160 KB, a block */

/* ---- versions --------------------------------------------------------------------------- */

static void test_versions_of_a_name(void **state)
{
	pid_t broker = kit_serve();
	lade_share *one = kit_connect(), *two = kit_connect();
	lade_share_version *old, *same;
	lade_share_open_options first = {.struct_size = sizeof first};
	lade_error err;
	(void)state;

	for (size_t count = 10; count <= LARGE; count += LARGE - 10) {
		first.version = kit_publish(one, "x", 100, count);
		kit_must(lade_share_open(two, "x", NULL, &old, &err), &err);
		uint64_t next = kit_publish(one, "x", 200, count);
		assert_true(next > first.version);
		kit_expect(two, "x", 200, count);
		kit_look(old, 100, count);
		/* The old one is there while someone has it open. */
		kit_must(lade_share_open(one, "x", &first, &same, &err), &err);
		kit_look(same, 100, count);
		assert_int_equal(lade_share_version_info(same)->version, first.version);
		lade_share_version_unref(same);
		kit_must(lade_share_open(two, "x", &first, &same, &err), &err);
		assert_ptr_equal(same, old);
		lade_share_version_unref(same);
		lade_share_version_unref(old);
		assert_int_equal(kit_numbers(two).versions, 1);
		assert_int_equal(lade_share_open(one, "x", &first, &same, &err), LADE_E_NOT_FOUND);
		assert_non_null(strstr(err.message, "of 'x'; the latest is"));
	}
	kit_must(lade_share_open(two, "x", NULL, &old, &err), &err);
	kit_must(lade_share_remove(one, "x", 0, &err), &err);
	assert_int_equal(lade_share_remove(one, "x", 0, &err), LADE_E_NOT_FOUND);
	assert_int_equal(lade_share_open(two, "x", NULL, &same, &err), LADE_E_NOT_FOUND);
	assert_null(same);
	kit_look(old, 200, LARGE);
	lade_share_close(two);
	kit_look(old, 200, LARGE); /* a version outlives its connection */
	lade_share_version_unref(old);
	assert_int_equal(kit_numbers(one).bytes, 0);
	lade_share_close(one);
	kit_serve_end(broker);
}

static void test_names(void **state)
{
	static const char *const bad[] = {"", "a@b", "a\nb", "\x7f"};
	char longest[257];
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	lade_share_version *v;
	lade_error err;
	(void)state;

	memset(longest, 'n', 256);
	longest[256] = 0;
	assert_int_equal(lade_share_open(share, longest, NULL, &v, &err), LADE_E_ARG);
	assert_non_null(strstr(err.message, "256 bytes"));
	longest[255] = 0;
	kit_publish(share, longest, 1, 3);
	kit_expect(share, longest, 1, 3);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(lade_share_open(share, bad[i], NULL, &v, &err), LADE_E_ARG);
	lade_share_close(share);
	kit_serve_end(broker);
}

typedef struct seen {
	size_t count;
	char last[256];
	uint64_t rows;
} seen;

static lade_status see(void *ctx, const lade_share_info *info)
{
	seen *s = ctx;
	assert_true(strcmp(s->last, info->name) < 0);
	assert_int_equal(info->uid, geteuid());
	snprintf(s->last, sizeof s->last, "%s", info->name);
	s->rows += info->rows;
	return ++s->count == 700 ? LADE_E_CANCELLED : LADE_OK;
}

static void test_a_listing_in_several_answers(void **state)
{
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	seen s = {0};
	lade_share_listing all = {.struct_size = sizeof all, .visit = see, .ctx = &s};
	lade_error err;
	(void)state;

	for (int i = 0; i < 600; i++) {
		char name[256];
		snprintf(name, sizeof name, "%c%0200d", i % 2 ? 'a' : 'b', i);
		kit_publish(share, name, 0, 2);
	}
	kit_must(lade_share_list(share, &all, &err), &err);
	assert_int_equal(s.count, 600);
	assert_int_equal(s.rows, 1200);
	s = (seen){0};
	all.prefix = "a";
	kit_must(lade_share_list(share, &all, &err), &err);
	assert_int_equal(s.count, 300);
	s = (seen){.count = 699};
	assert_int_equal(lade_share_list(share, &all, &err), LADE_E_CANCELLED);
	lade_share_close(share);
	kit_serve_end(broker);
}

/* ---- memory of lade_share_alloc() ------------------------------------------------------- */

/* Whether a byte at 'at' can be written, in a child. */
static bool can_write(void *at)
{
	pid_t pid = fork();
	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		*(volatile char *)at = 1;
		_exit(0);
	}
	return kit_wait(pid) == 0;
}

/* Memory of the library's with the values 0 to LARGE - 1. */
static int64_t *alloc_values(lade_share *share, lade_array **array)
{
	lade_error err;

	kit_must(lade_share_alloc(share, LARGE * 8, array, &err), &err);
	int64_t *values = lade_array_span(*array).data;
	for (int64_t i = 0; i < LARGE; i++)
		values[i] = i;
	return values;
}

static void test_memory_that_is_published_without_a_copy(void **state)
{
	pid_t broker = kit_serve();
	lade_share *share = kit_connect(), *other = kit_connect();
	lade_array *array, *slice;
	lade_share_published out = {.struct_size = sizeof out};
	kit_column c;
	lade_share_version *v;
	lade_error err;
	(void)state;

	int64_t *values = alloc_values(share, &array);
	kit_column_init(&c, values, 1000, LARGE - 1000);
	c.table.copy = LADE_SHARE_COPY_NEVER;
	kit_must(lade_share_publish(share, "x", &c.table, &out, &err), &err);
	assert_int_equal(out.copied, 0);
	assert_int_equal(out.shared, LARGE * 8);
	assert_string_equal(out.why, "");
	assert_ptr_equal(lade_array_span(array).data, values);
	assert_int_equal(values[LARGE - 1], LARGE - 1);
#ifndef __SANITIZE_ADDRESS__
	assert_false(can_write(values));
#endif
	kit_expect(other, "x", 1000, LARGE - 1000);
	/* Again, a part of it, as another name: the same memory. */
	kit_must(lade_array_slice(array, 8000, 80000, &slice, &err), &err);
	kit_column_init(&c, lade_array_span(slice).data, 0, 10000);
	kit_must(lade_share_publish(share, "y", &c.table, &out, &err), &err);
	assert_int_equal(out.copied, 0);
	kit_expect(other, "y", 1000, 10000);
	assert_int_equal(kit_numbers(other).bytes, kit_numbers(share).bytes);
	assert_true(kit_numbers(share).bytes < LARGE * 8 + 65536);
	lade_array_unref(array);
	lade_array_unref(slice);
	lade_share_close(share);
	kit_expect(other, "y", 1000, 10000);

	/* From hand to hand: what was opened is published again. */
	kit_must(lade_share_open(other, "y", NULL, &v, &err), &err);
	struct ArrowArray a;
	struct ArrowSchema s;
	kit_must(lade_share_version_array(v, 0, &a, &err), &err);
	kit_must(lade_share_version_schema(v, &s, &err), &err);
	const struct ArrowArray *list[] = {&a};
	lade_share_table table = {.struct_size = sizeof table,
	                          .schema = &s,
	                          .batches = list,
	                          .batch_count = 1,
	                          .copy = LADE_SHARE_COPY_NEVER};
	kit_must(lade_share_publish(other, "z", &table, &out, &err), &err);
	assert_int_equal(out.copied, 0);
	kit_must(lade_share_remove(other, "x", 0, &err), &err);
	kit_must(lade_share_remove(other, "y", 0, &err), &err);
	kit_expect(other, "z", 1000, 10000);
	a.release(&a);
	s.release(&s);
	lade_share_version_unref(v);
	lade_share_close(other);
	kit_serve_end(broker);
}

static void test_memory_that_stays_writable(void **state)
{
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	lade_array *array;
	lade_share_published out = {.struct_size = sizeof out};
	kit_column c;
	lade_error err;
	(void)state;

	int64_t *values = alloc_values(share, &array);
	kit_column_init(&c, values, 0, LARGE);
	c.table.copy = LADE_SHARE_COPY_NEVER;
	c.table.writable = 2;
	assert_int_equal(lade_share_publish(share, "x", &c.table, &out, &err), LADE_E_ARG);
	c.table.writable = 1;
	kit_must(lade_share_publish(share, "x", &c.table, &out, &err), &err);
	assert_int_equal(out.copied, 0);
	/* It is this process's own now: readers do not see it. */
	values[0] = -1;
	kit_expect(share, "x", 0, LARGE);
	assert_int_equal(values[0], -1);
	/* So it cannot be shared once more. */
	assert_int_equal(lade_share_publish(share, "y", &c.table, &out, &err), LADE_E_UNSUPPORTED);
	values[0] = 0;
	c.table.copy = LADE_SHARE_COPY_IF_NEEDED;
	kit_must(lade_share_publish(share, "y", &c.table, &out, &err), &err);
	assert_int_equal(out.copied, LARGE * 8);
	kit_expect(share, "y", 0, LARGE);
	lade_array_unref(array);
	lade_share_close(share);
	kit_serve_end(broker);
}

/* A child's writable map keeps the seal away: then the memory is copied and stays writable. */
static void test_memory_that_a_child_has_is_copied(void **state)
{
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	lade_array *array;
	lade_share_published out = {.struct_size = sizeof out};
	kit_column c;
	lade_error err;
	(void)state;

	int64_t *values = alloc_values(share, &array);
	pid_t child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	kit_column_init(&c, values, 0, LARGE);
	c.table.copy = LADE_SHARE_COPY_NEVER;
	assert_int_equal(lade_share_publish(share, "x", &c.table, &out, &err), LADE_E_STATE);
	c.table.copy = LADE_SHARE_COPY_IF_NEEDED;
	kit_must(lade_share_publish(share, "x", &c.table, &out, &err), &err);
	assert_int_equal(out.copied, LARGE * 8);
	assert_non_null(strstr(out.why, "seal"));
	kit_kill(child);
	values[0] = -1; /* as it was */
	kit_expect(share, "x", 0, LARGE);
	lade_array_unref(array);
	lade_share_close(share);
	kit_serve_end(broker);
}

static void test_wrong_arrays(void **state)
{
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	int64_t values[4] = {1, 2, 3, 4};
	kit_column c;
	lade_error err;
	(void)state;

	kit_column_init(&c, values, 0, 4);
	c.array.n_buffers = 3;
	assert_int_equal(lade_share_publish(share, "x", &c.table, NULL, &err), LADE_E_ARG);
	assert_non_null(strstr(err.message, "has 3 buffers, want 2"));
	kit_column_init(&c, NULL, 0, 4);
	assert_int_equal(lade_share_publish(share, "x", &c.table, NULL, &err), LADE_E_ARG);
	kit_column_init(&c, values, 0, -1);
	assert_int_equal(lade_share_publish(share, "x", &c.table, NULL, &err), LADE_E_ARG);
	kit_column_init(&c, values, 0, 4);
	c.array.null_count = 1;
	assert_int_equal(lade_share_publish(share, "x", &c.table, NULL, &err), LADE_E_ARG);
	kit_column_init(&c, values, 0, 4);
	c.schema.format = "tsq:";
	assert_int_equal(lade_share_publish(share, "x", &c.table, NULL, &err), LADE_E_UNSUPPORTED);
	c.schema.format = "+l";
	assert_int_equal(lade_share_publish(share, "x", &c.table, NULL, &err), LADE_E_ARG);
	c.schema.release = NULL;
	assert_int_equal(lade_share_publish(share, "x", &c.table, NULL, &err), LADE_E_ARG);
	assert_int_equal(kit_numbers(share).names, 0);
	lade_share_close(share);
	kit_serve_end(broker);
}

/* ---- waiting ---------------------------------------------------------------------------- */

/* One that was opened with fewer checks is checked when another call wants it so: by default, if
 * another user has published it. */
static void test_an_open_version_is_checked_later(void **state)
{
	static const int32_t offsets[] = {0, 1};
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	lade_share_open_options options = {.struct_size = sizeof options,
	                                   .check = LADE_SHARE_CHECK_LAYOUT};
	lade_share_version *v, *other;
	kit_column c;
	lade_error err;
	(void)state;

	kit_column_init(&c, NULL, 0, 1);
	const void *buffers[] = {NULL, offsets, "\xff"}; /* no UTF-8 */
	c.schema.format = "u";
	c.array.n_buffers = 3;
	c.array.buffers = buffers;
	kit_must(lade_share_publish(share, "x", &c.table, NULL, &err), &err);
	kit_must(lade_share_open(share, "x", &options, &v, &err), &err);
	kit_must(lade_share_open(share, "x", NULL, &other, &err), &err);
	lade_share_version_unref(other);
	if (geteuid() == 0) {
		assert_int_equal(seteuid(65534), 0);
		lade_status status = lade_share_open(share, "x", NULL, &other, &err);
		assert_int_equal(seteuid(0), 0);
		assert_int_equal(status, LADE_E_CORRUPT);
	}
	options.check = LADE_SHARE_CHECK_FULL;
	assert_int_equal(lade_share_open(share, "x", &options, &other, &err), LADE_E_CORRUPT);
	lade_share_version_unref(v);
	assert_int_equal(kit_numbers(share).held, 0);
	lade_share_close(share);
	kit_serve_end(broker);
}

static void *publish_soon(void *ctx)
{
	usleep(50000);
	kit_publish(ctx, "later", 7, 3);
	return NULL;
}

static void test_waiting_for_a_name(void **state)
{
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	pthread_t thread;
	uint64_t version, again;
	lade_error err;
	(void)state;

	assert_int_equal(lade_share_wait(share, "later", 0, 20, &version, &err), LADE_E_NOT_FOUND);
	assert_non_null(strstr(err.message, "after 20 ms"));
	assert_int_equal(pthread_create(&thread, NULL, publish_soon, share), 0);
	kit_must(lade_share_wait(share, "later", 0, UINT32_MAX, &version, &err), &err);
	pthread_join(thread, NULL);
	kit_must(lade_share_wait(share, "later", version - 1, 0, &again, &err), &err);
	assert_int_equal(version, again);
	assert_int_equal(lade_share_wait(share, "later", version, 0, &again, &err),
	                 LADE_E_NOT_FOUND);
	lade_share_close(share);
	kit_serve_end(broker);
}

static void test_events(void **state)
{
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	lade_share_events *events, *slow;
	lade_share_event e = {.struct_size = sizeof e};
	lade_error err;
	(void)state;

	kit_must(lade_share_subscribe(share, "ab", &events, &err), &err);
	assert_int_equal(lade_share_events_next(events, 0, &e, &err), LADE_E_NOT_FOUND);
	kit_publish(share, "aa", 1, 1);
	uint64_t version = kit_publish(share, "abc", 1, 1);
	kit_must(lade_share_remove(share, "abc", 0, &err), &err);
	struct pollfd ready = {lade_share_events_fd(events), POLLIN, 0};
	assert_int_equal(poll(&ready, 1, 5000), 1);
	kit_must(lade_share_events_next(events, 5000, &e, &err), &err);
	assert_int_equal(e.what, LADE_SHARE_PUBLISHED);
	assert_int_equal(e.version, version);
	assert_string_equal(e.name, "abc");
	kit_must(lade_share_events_next(events, 5000, &e, &err), &err);
	assert_int_equal(e.what, LADE_SHARE_REMOVED);
	/* Who does not read loses events, is told, and holds nobody up. */
	kit_must(lade_share_subscribe(share, "", &slow, &err), &err);
	bool lost = false;
	for (int i = 0; i < 3000; i++)
		kit_publish(share, "many", i, 1);
	for (int i = 0; i < 3001 && !lost; i++) {
		kit_must(lade_share_events_next(slow, 5000, &e, &err), &err);
		lost = e.what == LADE_SHARE_LOST;
	}
	assert_true(lost);
	kit_publish(share, "many", 0, 1);
	kit_must(lade_share_events_next(slow, 5000, &e, &err), &err);
	assert_int_equal(e.what, LADE_SHARE_PUBLISHED);
	kit_serve_end(broker);
	lade_share_events_close(slow);
	assert_int_equal(lade_share_events_next(events, 5000, &e, &err), LADE_E_IO);
	lade_share_events_close(events);
	lade_share_close(share);
}

/* ---- limits ----------------------------------------------------------------------------- */

static void test_limits(void **state)
{
	kit_options =
		(lade_share_serve_options){.bytes_cap = 400000, .client_cap = 2, .name_cap = 3};
	pid_t broker = kit_serve();
	lade_share *share = kit_connect(), *two = kit_connect(), *three;
	lade_share_options options = {.struct_size = sizeof options, .path = kit_path};
	int64_t *values = calloc(LARGE, 8);
	lade_share_version *held[2];
	kit_column c;
	lade_error err;
	(void)state;

	kit_column_init(&c, values, 0, LARGE);
	kit_must(lade_share_connect(&options, &three, &err), &err);
	lade_share_statistics n = {.struct_size = sizeof n};
	assert_int_equal(lade_share_statistics_get(three, &n, &err), LADE_E_LIMIT);
	assert_non_null(strstr(err.message, "2 clients, at most 2"));
	lade_share_close(three);
	kit_publish(share, "a", 1, LARGE);
	kit_publish(share, "b", 1, LARGE);
	kit_must(lade_share_open(two, "a", NULL, &held[0], &err), &err);
	kit_must(lade_share_open(two, "b", NULL, &held[1], &err), &err);
	assert_int_equal(lade_share_publish(share, "c", &c.table, NULL, &err), LADE_E_LIMIT);
	assert_non_null(strstr(err.message, " of 400000 are taken"));
	kit_must(lade_share_remove(share, "b", 0, &err), &err);
	kit_must(lade_share_publish(share, "c", &c.table, NULL, &err), &err);
	kit_publish(share, "d", 1, 1);
	kit_column_init(&c, values, 0, 1);
	assert_int_equal(lade_share_publish(share, "e", &c.table, NULL, &err), LADE_E_LIMIT);
	assert_non_null(strstr(err.message, "3 versions, at most 3"));
	assert_true(kit_numbers(two).refused >= 3);
	lade_share_version_unref(held[0]);
	lade_share_version_unref(held[1]);
	lade_share_close(share);
	lade_share_close(two);
	free(values);
	kit_options = (lade_share_serve_options){0};
	kit_serve_end(broker);
}

/* The broker refuses, with both numbers, before it has no descriptors. */
static void test_too_few_descriptors(void **state)
{
	struct rlimit had, few = {330, 330};
	int64_t *values = calloc(LARGE, 8);
	int made = 0;
	kit_column c;
	lade_error err;
	lade_status status;
	(void)state;

	/* The limit is the child's alone. */
	pid_t pid = fork();
	if (pid == 0) {
		setrlimit(RLIMIT_NOFILE, &few);
		lade_share_serve_options o = {.struct_size = sizeof o, .path = kit_path};
		_exit(lade_share_serve(&o, NULL));
	}
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &had), 0);
	lade_share *share = kit_connect();
	kit_column_init(&c, values, 0, LARGE);
	do {
		char name[16];
		snprintf(name, sizeof name, "n%d", made);
		status = lade_share_publish(share, name, &c.table, NULL, &err);
		made += status == LADE_OK;
	} while (status == LADE_OK && made < 400);
	assert_int_equal(status, LADE_E_LIMIT);
	assert_non_null(strstr(err.message, "of the broker's 330"));
	assert_true(made > 20);
	kit_publish(share, "small", 5, 5); /* needs none */
	kit_must(lade_share_remove(share, "n0", 0, &err), &err);
	kit_must(lade_share_publish(share, "again", &c.table, NULL, &err), &err);
	kit_expect(share, "small", 5, 5);
	pid_t keeper = (pid_t)kit_numbers(share).keeper_pid;
	lade_share_close(share);
	kit_kill(pid);
	kill(keeper, SIGKILL);
	free(values);
}

/* ---- brokers ---------------------------------------------------------------------------- */

/* What a client cannot take is not open. */
static void test_a_client_has_too_few_descriptors(void **state)
{
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	(void)state;

	kit_publish(share, "x", 1, LARGE);
	pid_t child = fork();
	if (child == 0) {
		lade_share *own = kit_connect();
		lade_share_version *v;
		struct rlimit limit, none;
		getrlimit(RLIMIT_NOFILE, &limit);
		none = (struct rlimit){3, limit.rlim_max}; /* those three are open */
		kit_numbers(own);
		setrlimit(RLIMIT_NOFILE, &none);
		lade_status status = lade_share_open(own, "x", NULL, &v, NULL);
		setrlimit(RLIMIT_NOFILE, &limit);
		assert_int_equal(status, LADE_E_LIMIT);
		for (int i = 0; i < 1000 && kit_numbers(own).held; i++)
			usleep(2000);
		assert_int_equal(kit_numbers(own).held, 0);
		kit_expect(own, "x", 1, LARGE);
		_exit(0);
	}
	assert_int_equal(kit_wait(child), 0);
	lade_share_close(share);
	kit_serve_end(broker);
}

static void test_two_brokers_for_a_path(void **state)
{
	pid_t broker = kit_serve();
	lade_share_serve_options o = {.struct_size = sizeof o, .path = kit_path};
	lade_error err;
	struct stat st;
	(void)state;

	assert_int_equal(lade_share_serve(&o, &err), LADE_E_STATE);
	assert_int_equal(stat(kit_path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	lade_share *share = kit_connect();
	pid_t keeper = (pid_t)kit_numbers(share).keeper_pid;
	kit_serve_end(broker);
	kit_gone(keeper);
	assert_int_equal(stat(kit_path, &st), -1);
	lade_share_statistics n = {.struct_size = sizeof n};
	assert_int_equal(lade_share_statistics_get(share, &n, &err), LADE_E_NOT_FOUND);
	/* The connection finds the next broker. */
	broker = kit_serve();
	assert_int_equal(kit_numbers(share).names, 0);
	lade_share_close(share);
	kit_serve_end(broker);
}

static void test_a_child_has_its_own_connection(void **state)
{
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	(void)state;

	kit_publish(share, "x", 1, 10);
	pid_t child = fork();
	if (child == 0) {
		kit_expect(share, "x", 1, 10);
		kit_publish(share, "y", 2, 10);
		_exit(0);
	}
	for (int i = 0; i < 200; i++)
		kit_expect(share, "x", 1, 10);
	assert_int_equal(kit_wait(child), 0);
	kit_expect(share, "y", 2, 10);
	lade_share_close(share);
	kit_serve_end(broker);
}

/* What the parent has open is not the child's to release, and goes there without a question. */
static void test_a_child_drops_what_its_parent_has_open(void **state)
{
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	lade_share_version *v;
	lade_error err;
	(void)state;

	kit_publish(share, "x", 1, LARGE);
	kit_must(lade_share_open(share, "x", NULL, &v, &err), &err);
	pid_t child = fork();
	if (child == 0) {
		alarm(10);
		kit_look(v, 1, LARGE);
		lade_share_version_unref(v);
		kit_expect(share, "x", 1, LARGE);
		_exit(0);
	}
	assert_int_equal(kit_wait(child), 0);
	assert_int_equal(kit_numbers(share).held, 1);
	kit_look(v, 1, LARGE);
	lade_share_version_unref(v);
	assert_int_equal(kit_numbers(share).held, 0);
	lade_share_close(share);
	kit_serve_end(broker);
}

static void *many(void *ctx)
{
	char name[16];
	snprintf(name, sizeof name, "t%p", (void *)&name);
	for (int i = 0; i < 100; i++) {
		kit_publish(ctx, name, i, i % 2 ? 10 : LARGE);
		kit_expect(ctx, name, i, i % 2 ? 10 : LARGE);
	}
	return NULL;
}

static void test_threads_share_a_connection(void **state)
{
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	pthread_t threads[4];
	(void)state;

	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, many, share), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(kit_numbers(share).held, 0);
	lade_share_close(share);
	kit_serve_end(broker);
}

/* ---- tensors ---------------------------------------------------------------------------- */

/* Publishes fixed-size lists whose metadata is this JSON, and opens them as a tensor. */
static lade_status open_as_tensor(lade_share *share, const char *json, lade_share_tensor *out,
                                  lade_error *err)
{
	static const char *const texts[] = {"ARROW:extension:name", "arrow.fixed_shape_tensor",
	                                    "ARROW:extension:metadata", NULL};
	float values[24] = {0};
	char metadata[600];
	int32_t number = 2;
	size_t at = sizeof number;
	kit_column c;

	memcpy(metadata, &number, sizeof number);
	for (int i = 0; i < 4; i++) {
		const char *text = texts[i] ? texts[i] : json;
		number = (int32_t)strlen(text);
		memcpy(metadata + at, &number, sizeof number);
		memcpy(metadata + at + sizeof number, text, strlen(text));
		at += sizeof number + strlen(text);
	}
	kit_column_init(&c, NULL, 0, 2);
	const void *buffers[] = {NULL, values};
	struct ArrowSchema item = {.format = "f", .release = kit_no_release_schema};
	struct ArrowArray items = {.length = 24,
	                           .n_buffers = 2,
	                           .buffers = buffers,
	                           .release = kit_no_release};
	struct ArrowSchema *schemas[] = {&item};
	struct ArrowArray *arrays[] = {&items};
	c.schema.format = "+w:12";
	c.schema.metadata = metadata;
	c.schema.n_children = c.array.n_children = 1;
	c.schema.children = schemas;
	c.array.children = arrays;
	c.array.n_buffers = 1;
	kit_must(lade_share_publish(share, "list", &c.table, NULL, err), err);
	lade_share_version *v;
	kit_must(lade_share_open(share, "list", NULL, &v, err), err);
	*out = (lade_share_tensor){.struct_size = sizeof *out};
	lade_status status = lade_share_version_tensor(v, 0, out, err);
	lade_share_version_unref(v);
	return status;
}

static void test_tensors(void **state)
{
	static const char *const bad[] = {
		"",
		"{}",
		"{\"shape\":[5,3]}",
		"{\"shape\":[4,3",
		"{\"shape\":[4,-3]}",
		"{\"shape\":[18446744073709551615,2,6]}",
		"{\"shape\":[4,3],\"permutation\":[1,0]}",
		"{\"shape\":[4,3],\"permutation\":[0]}",
		"{\"shape\":[4,3],\"permutation\":{}}",
		"{\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,12]}",
	};
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	int16_t values[2 * 3 * 4];
	lade_share_tensor t = {.struct_size = sizeof t, .dtype = LADE_I2, .data = values}, back;
	lade_share_version *v;
	lade_error err;
	(void)state;

	for (int i = 0; i < 24; i++)
		values[i] = (int16_t)i;
	for (t.ndim = 0; t.ndim <= 3; t.ndim++) {
		memcpy(t.shape, (uint64_t[]){2, 3, 4}, 3 * sizeof *t.shape);
		kit_must(lade_share_publish_tensor(share, "t", &t, NULL, &err), &err);
		kit_must(lade_share_open(share, "t", NULL, &v, &err), &err);
		back = (lade_share_tensor){.struct_size = sizeof back};
		kit_must(lade_share_version_tensor(v, 0, &back, &err), &err);
		assert_int_equal(back.ndim, t.ndim ? t.ndim : 1);
		assert_int_equal(back.dtype, LADE_I2);
		size_t count = t.ndim ? 1 : 0;
		for (unsigned d = 0; d < t.ndim; d++) {
			assert_int_equal(back.shape[d], t.shape[d]);
			count *= t.shape[d];
		}
		assert_memory_equal(back.data, values, 2 * (count ? count : 1));
		assert_int_equal(lade_share_version_tensor(v, 1, &back, &err), LADE_E_RANGE);
		lade_share_version_unref(v);
	}
	t.ndim = 3;
	t.shape[1] = (uint64_t)1 << 31;
	assert_int_equal(lade_share_publish_tensor(share, "t", &t, NULL, &err), LADE_E_LIMIT);
	t.shape[1] = 3;
	t.shape[0] = UINT64_MAX;
	assert_int_equal(lade_share_publish_tensor(share, "t", &t, NULL, &err), LADE_E_LIMIT);
	t.ndim = 33;
	assert_int_equal(lade_share_publish_tensor(share, "t", &t, NULL, &err), LADE_E_ARG);
	t.ndim = 1;
	t.shape[0] = 2;
	t.dtype = LADE_B1;
	assert_int_equal(lade_share_publish_tensor(share, "t", &t, NULL, &err),
	                 LADE_E_UNSUPPORTED);
	kit_must(open_as_tensor(share, "{\"shape\": [4, 3]}", &back, &err), &err);
	assert_int_equal(back.ndim, 3);
	kit_must(open_as_tensor(share, "{\"shape\":[3,4],\"permutation\":[0,1]}", &back, &err),
	         &err);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(open_as_tensor(share, bad[i], &back, &err), LADE_E_UNSUPPORTED);
	lade_share_close(share);
	kit_serve_end(broker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions_of_a_name),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_a_listing_in_several_answers),
		cmocka_unit_test(test_memory_that_is_published_without_a_copy),
		cmocka_unit_test(test_memory_that_stays_writable),
		cmocka_unit_test(test_memory_that_a_child_has_is_copied),
		cmocka_unit_test(test_wrong_arrays),
		cmocka_unit_test(test_an_open_version_is_checked_later),
		cmocka_unit_test(test_waiting_for_a_name),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_too_few_descriptors),
		cmocka_unit_test(test_a_client_has_too_few_descriptors),
		cmocka_unit_test(test_two_brokers_for_a_path),
		cmocka_unit_test(test_a_child_has_its_own_connection),
		cmocka_unit_test(test_a_child_drops_what_its_parent_has_open),
		cmocka_unit_test(test_threads_share_a_connection),
		cmocka_unit_test(test_tensors),
	};
	return cmocka_run_group_tests(tests, kit_setup, kit_teardown);
}
