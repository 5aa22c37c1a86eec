/*
 * test_directory.c: the directory store reads many files by io_uring.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "store/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { COUNT = 40, SIZE = 5000 };

static char dir[] = "/tmp/lade-directory-XXXXXX";
static char keys[COUNT][16];
static uint8_t values[COUNT][SIZE], back[COUNT][SIZE];

static void must(lade_status status, const lade_error *err)
{
	if (status != LADE_OK)
		fail_msg("%s: %s", lade_status_name(status), err->message);
}

/* The store, which reads two keys and more of a call by a ring, on any machine. */
static lade_store *open_store(lade__directory **inner)
{
	lade_store *store;
	lade_error err;
	must(lade_store_directory_open(dir, NULL, &store, &err), &err);
	*inner = lade__store_context(store, lade__directory_read);
	(*inner)->ring_least = 2;
	return store;
}

static int setup(void **state)
{
	lade_store *store;
	lade__directory *inner;
	lade_error err;
	(void)state;
	if (!mkdtemp(dir))
		return 1;
	store = open_store(&inner);
	for (int i = 0; i < COUNT; i++) {
		snprintf(keys[i], sizeof keys[i], "c/%d", i);
		for (int k = 0; k < SIZE; k++)
			values[i][k] = (uint8_t)(i * 31 + k * 7);
		lade_write write = {.key = keys[i], .src = lade_host_cspan(values[i], SIZE)};
		must(lade_store_write(store, &write, 1, NULL, NULL, &err), &err);
	}
	lade_store_unref(store);
	return 0;
}

static int teardown(void **state)
{
	char command[64];
	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", dir);
	return system(command);
}

/* Also on threads that are not the test's. */
static bool reads_all(lade_store *store, unsigned threads)
{
	lade_range ranges[COUNT];
	lade_error err;
	lade_io_options options = {.struct_size = sizeof options,
	                           .request_size = sizeof *ranges,
	                           .threads = threads};
	memset(back, 0, sizeof back);
	for (int i = 0; i < COUNT; i++)
		ranges[i] = (lade_range){.key = keys[i], .dst = lade_host_span(back[i], SIZE)};
	return lade_store_read(store, ranges, COUNT, &options, NULL, &err) == LADE_OK &&
	       memcmp(back, values, sizeof values) == 0;
}

static size_t files_open(void)
{
	DIR *folder = opendir("/proc/self/fd");
	size_t count = 0;
	for (const struct dirent *e; folder && (e = readdir(folder));)
		count += e->d_name[0] != '.';
	if (folder)
		closedir(folder);
	return count;
}

static void need_ring(const lade__directory *inner)
{
	if (!inner->rings.refused)
		return;
	print_message("io_uring is not allowed here\n");
	skip();
}

static void a_ring_reads_files(void **state)
{
	(void)state;
	lade__directory *inner;
	size_t before = files_open();
	lade_store *store = open_store(&inner);
	size_t files = files_open();
	for (int i = 0; i < 3; i++)
		assert_true(reads_all(store, 1));
	need_ring(inner);
	assert_non_null(inner->rings.free);
	assert_int_equal(files_open(), files + 1); /* the ring itself */
	assert_true(reads_all(store, 4));
	lade_store_unref(store);
	assert_int_equal(files_open(), before);
}

/* What the page cache has not is read the other way. */
static void bytes_may_be_on_the_disk(void **state)
{
	(void)state;
	lade__directory *inner;
	lade_store *store = open_store(&inner);
	for (int i = 0; i < COUNT; i += 3) {
		char path[64];
		snprintf(path, sizeof path, "%s/c/%d", dir, i);
		int fd = open(path, O_RDONLY);
		assert_true(fd >= 0);
		fsync(fd);
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		close(fd);
	}
	assert_true(reads_all(store, 1));
	lade_store_unref(store);
}

/* Names that are no files, files that end early, and more than one range of a file. */
static void others_are_answered_as_ever(void **state)
{
	(void)state;
	lade__directory *inner;
	lade_store *store = open_store(&inner);
	lade_error errors[8], err;
	lade_io_options options = {.struct_size = sizeof options,
	                           .request_size = sizeof(lade_range),
	                           .threads = 1,
	                           .errors = errors};
	lade_object_version version = {.size = 0}, other = {.size = 40};
	char path[64];
	snprintf(path, sizeof path, "%s/c/pipe", dir);
	assert_int_equal(mkfifo(path, 0666), 0);
	snprintf(path, sizeof path, "%s/c/empty", dir);
	close(open(path, O_CREAT | O_WRONLY, 0666));
	lade_range ranges[] = {
		{.key = "c/3", .dst = lade_host_span(back[0], SIZE), .version = &version},
		{.key = "c/none", .dst = lade_host_span(back[1], SIZE)},
		{.key = "c", .dst = lade_host_span(back[2], SIZE)},
		{.key = "c/pipe", .dst = lade_host_span(back[3], SIZE)},
		{.key = "c/empty", .kind = LADE_RANGE_REST, .dst = lade_host_span(back[4], SIZE)},
		{.key = "c/4", .dst = lade_host_span(back[5], SIZE), .want = &other},
		{.key = "c/5", .kind = LADE_RANGE_REST, .off = 10,
	         .dst = lade_host_span(back[6], SIZE)},
		{.key = "c/6", .off = SIZE - 1, .dst = lade_host_span(back[7], 2)}};
	static const lade_status want[] = {LADE_OK, LADE_E_NOT_FOUND, LADE_E_NOT_FOUND,
	                                   LADE_E_NOT_FOUND, LADE_OK, LADE_E_CHANGED,
	                                   LADE_OK, LADE_E_RANGE};
	assert_int_equal(lade_store_read(store, ranges, 8, &options, NULL, &err),
	                 LADE_E_NOT_FOUND);
	for (int i = 0; i < 8; i++)
		assert_int_equal(ranges[i].status, want[i]);
	assert_memory_equal(back[0], values[3], SIZE);
	assert_int_equal(version.size, 40);
	assert_int_equal(ranges[4].size, 0);
	assert_int_equal(ranges[6].size, SIZE - 10);
	assert_memory_equal(back[6], values[5] + 10, SIZE - 10);
	lade_store_unref(store);
}

#ifndef __SANITIZE_THREAD__
static void a_child_has_rings_of_its_own(void **state)
{
	(void)state;
	lade__directory *inner;
	lade_store *store = open_store(&inner);
	int status;
	assert_true(reads_all(store, 1));
	need_ring(inner);
	pid_t child = fork();
	if (child == 0)
		_exit(!reads_all(store, 1));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(reads_all(store, 1));
	lade_store_unref(store);
}
#endif

typedef struct refused {
	bool filtered, good, seen; /* the filter is there; all was read; the store knows */
} refused;

/* Threads that it starts have the filter, too. */
static void *read_refused(void *ctx)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof code / sizeof *code, code};
	lade__directory *inner;
	refused *r = ctx;
	r->filtered = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	              prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
	lade_store *store = r->filtered ? open_store(&inner) : NULL;
	if (!store)
		return NULL;
	r->good = reads_all(store, 1);
	r->seen = inner->rings.refused;
	r->good &= reads_all(store, 1) && reads_all(store, 4);
	lade_store_unref(store);
	return NULL;
}

static void a_kernel_may_refuse(void **state)
{
	pthread_t thread;
	refused r = {.filtered = false};
	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, read_refused, &r), 0);
	pthread_join(thread, NULL);
	if (!r.filtered)
		skip();
	assert_true(r.good);
	assert_true(r.seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ring_reads_files),
		cmocka_unit_test(bytes_may_be_on_the_disk),
		cmocka_unit_test(others_are_answered_as_ever),
#ifndef __SANITIZE_THREAD__
		cmocka_unit_test(a_child_has_rings_of_its_own),
#endif
		cmocka_unit_test(a_kernel_may_refuse),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
