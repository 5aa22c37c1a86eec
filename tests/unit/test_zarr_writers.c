/*
 * test_zarr_writers.c: several writers of one value, writers that are killed, handles of changed
 * arrays, and what stays in a directory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "zarr_write_kit.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- several writers ------------------------------------------------------------------------ */

enum { WRITERS = 4, ELEMENTS = 64 };

/* Writes elements number, number + WRITERS, ... one by one. */
static void write_own(lade_zarr *node, unsigned number)
{
	for (unsigned i = number; i < ELEMENTS; i += WRITERS) {
		uint32_t value = 1000 + i;
		lade_zarr_index axis = {.kind = LADE_ZARR_AT, .start = i};
		lade_zarr_selection selection = {.struct_size = sizeof selection, .axes = &axis,
		                                 .axis_count = 1, .index_size = sizeof axis};
		lade_zarr_source source = {.struct_size = sizeof source,
		                           .span = lade_host_cspan(&value, 4)};
		lade_zarr_write_options one = {.struct_size = sizeof one, .threads = 1};
		lade_error err;
		if (lade_zarr_write(node, &selection, &source, &one, NULL, &err) != LADE_OK) {
			fprintf(stderr, "%s\n", err.message);
			abort();
		}
	}
}

typedef struct writer {
	lade_zarr *node;
	unsigned number;
} writer;

static void *run_writer(void *ctx)
{
	writer *w = ctx;
	write_own(w->node, w->number);
	return NULL;
}

static void all_written(lade_zarr *node)
{
	uint32_t got[ELEMENTS];
	read_all(node, got, sizeof got);
	for (unsigned i = 0; i < ELEMENTS; i++)
		assert_int_equal(got[i], 1000 + i);
}

static lade_zarr *one_value(lade_store *store, bool shards)
{
	static const uint64_t shape[1] = {ELEMENTS}, inner[1] = {8};
	return create(store, (lade_zarr_description){.ndim = 1, .shape = shape, .type = "uint32",
	                                             .inner_shape = shards ? inner : NULL});
}

/* A store of a program's own that passes on, and forgets versions. */
static void forget_read(void *ctx, lade_reading *reading, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		lade_range *range = lade_reading_range(reading, i), inner = *range;
		lade_error err = {0};
		inner.version = NULL;
		lade_status status = lade_store_read(ctx, &inner, 1, NULL, NULL, &err);
		range->size = inner.size;
		range->object_size = inner.object_size;
		if (range->version)
			range->version->size = 0;
		lade_reading_done(reading, i, status, &err);
	}
}

static lade_status forget_write(void *ctx, lade_write *write, const lade_io_options *options,
                                lade_error *err)
{
	lade_write inner = *write;
	inner.version = NULL;
	return lade_store_write(ctx, &inner, 1, options, NULL, err);
}

static lade_store *forgetful(lade_store *below)
{
	const lade_store_ops ops = {.struct_size = sizeof ops, .read = forget_read,
	                            .write = forget_write};
	lade_store *store;
	KIT_CHECK(lade_store_new(&ops, below, "forgetful", &store, &kit_err));
	return store;
}

static void threads_share_a_value(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		lade_store *below = memory();
		lade_store *store = i / 2 ? forgetful(below) : lade_store_ref(below);
		lade_zarr *node = one_value(store, i % 2);
		pthread_t threads[WRITERS];
		writer writers[WRITERS];
		for (unsigned n = 0; n < WRITERS; n++) {
			writers[n] = (writer){node, n};
			assert_int_equal(pthread_create(&threads[n], NULL, run_writer,
			                                &writers[n]), 0);
		}
		for (unsigned n = 0; n < WRITERS; n++)
			pthread_join(threads[n], NULL);
		all_written(node);
		lade_zarr_unref(node);
		lade_store_unref(store);
		lade_store_unref(below);
	}
}

static lade_store *directory(char path[64])
{
	lade_store *store;
	strcpy(path, "/tmp/lade-zarr-XXXXXX");
	assert_non_null(mkdtemp(path));
	KIT_CHECK(lade_store_directory_open(path, NULL, &store, &kit_err));
	return store;
}

static void remove_all(lade_store *store, const char *path)
{
	KIT_CHECK(lade_zarr_delete(store, "", &kit_err));
	lade_store_unref(store);
	if (rmdir(path) != 0)
		fail_msg("%s is not empty", path);
}

/* ---- waiting for the disk ------------------------------------------------------------------ */

/* The library calls these functions instead of libc's: what is synced and named, in order. */
static char steps[256];
static atomic_size_t step_count; /* other tests have threads */

static void note(char step)
{
	size_t at = atomic_fetch_add(&step_count, 1);
	if (at < sizeof steps - 1)
		steps[at] = step;
}

int fsync(int fd)
{
	struct stat st;
	note(fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) ? 'd' : 'f');
	return (int)syscall(SYS_fsync, fd);
}

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	note('r');
	return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, 0);
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	note('n');
	return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags);
}

static void expect_steps(const char *want)
{
	steps[step_count] = 0;
	assert_string_equal(steps, want);
	step_count = 0;
}

/* The bytes are on the disk before the name, and the name is before the call returns; so are the
 * directories that are made.  Nothing is synced that nobody asks for. */
static void synced_writes(void **state)
{
	(void)state;
	static const uint64_t shape[1] = {4}, chunk[1] = {2};
	static const uint8_t data[4] = {0, 0, 1, 2};
	lade_zarr_write_options options = {.struct_size = sizeof options, .threads = 1};
	lade_zarr_source source = {.struct_size = sizeof source,
	                           .span = lade_host_cspan(data, sizeof data)};
	lade_zarr_append append = {.struct_size = sizeof append, .count = 2, .source = &source,
	                           .options = &options};
	lade_io_options io = {.struct_size = sizeof io, .request_size = sizeof(lade_write),
	                      .sync = true};
	for (int i = 0; i < 3; i++) {
		char path[64];
		lade_store *store = directory(path), *below = store;
		const lade_store_route route = {"", below};
		if (i == 2)
			KIT_CHECK(lade_store_composite_new(&route, 1, &store, &kit_err));
		lade_zarr *node = create(store, (lade_zarr_description){
			.ndim = 1, .shape = shape, .chunk_shape = chunk, .type = "uint8"});
		options.flags = i ? LADE_ZARR_SYNC : 0;
		step_count = 0;
		KIT_CHECK(lade_zarr_write(node, NULL, &source, &options, NULL, &kit_err));
		expect_steps(i ? "dfrdfrd" : "rr");
		options.flags |= LADE_ZARR_SKIP_FILL;
		KIT_CHECK(lade_zarr_write(node, NULL, &source, &options, NULL, &kit_err));
		expect_steps(i ? "dfrd" : "r"); /* one is deleted */
		assert_false(is_there(store, "a/c/0"));
		KIT_CHECK(lade_zarr_append_to(node, &append, NULL, NULL, &kit_err));
		expect_steps(i ? "frd" : "r"); /* zarr.json; the new chunk is fill */
		lade_write write = {.key = "x/y/z", .kind = LADE_WRITE_IF_ABSENT,
		                    .src = lade_host_cspan("v", 1)};
		KIT_CHECK(lade_store_write(store, &write, 1, i ? &io : NULL, NULL, &kit_err));
		expect_steps(i ? "ddfnd" : "n");
		write.kind = LADE_DELETE_IF_VERSION;
		KIT_CHECK(lade_store_write(store, &write, 1, i ? &io : NULL, NULL, &kit_err));
		expect_steps(i ? "d" : "");
		lade_zarr_unref(node);
		if (i == 2)
			lade_store_unref(store);
		remove_all(below, path);
	}
}

/* ---- handles of arrays that have changed -------------------------------------------------- */

/* A store that passes on, and makes the array smaller before the first chunk is written. */
typedef struct meddling {
	lade_store *below;
	bool done;
} meddling;

static void meddling_read(void *ctx, lade_reading *reading, size_t count)
{
	kit_far_read(((meddling *)ctx)->below, reading, count);
}

static lade_status meddling_write(void *ctx, lade_write *write, const lade_io_options *options,
                                  lade_error *err)
{
	static const uint64_t smaller[1] = {4};
	meddling *m = ctx;
	lade_zarr *node;
	if (strncmp(write->key, "a/c/", 4) == 0 && !m->done) {
		m->done = true;
		KIT_CHECK(lade_zarr_open(m->below, "a", NULL, &node, &kit_err));
		KIT_CHECK(lade_zarr_resize(node, smaller, NULL, &kit_err));
		lade_zarr_unref(node);
	}
	return lade_store_write(m->below, write, 1, options, NULL, err);
}

static lade_status meddling_list(void *ctx, const lade_store_listing *listing, lade_error *err)
{
	return lade_store_list(((meddling *)ctx)->below, listing, err);
}

static lade_status write_byte(lade_zarr *node, int64_t at, lade_error *err)
{
	lade_zarr_index axis = {.kind = LADE_ZARR_AT, .start = at};
	lade_zarr_selection selection = {.struct_size = sizeof selection, .axes = &axis,
	                                 .axis_count = 1, .index_size = sizeof axis};
	lade_zarr_source source = {.struct_size = sizeof source, .span = lade_host_cspan("x", 1)};
	return lade_zarr_write(node, &selection, &source, NULL, NULL, err);
}

/* No chunk is stored outside the array, and none in another one, by a handle from before. */
static void old_handles(void **state)
{
	(void)state;
	static const uint64_t shape[1] = {8}, smaller[1] = {4}, larger[1] = {12}, chunk[1] = {2};
	static const lade_zarr_create_options again = {.struct_size = sizeof again,
	                                               .exists = LADE_ZARR_REPLACE};
	lade_zarr_description d = {.struct_size = sizeof d, .kind = LADE_ZARR_ARRAY, .ndim = 1,
	                           .shape = shape, .chunk_shape = chunk, .type = "uint8"};
	for (int i = 0; i < 2; i++) {
		lade_store *below = memory(), *store = i ? forgetful(below) : lade_store_ref(below);
		lade_error err = {0};
		lade_zarr *node = create(store, d), *other;
		KIT_CHECK(lade_zarr_open(store, "a", NULL, &other, &kit_err));
		KIT_CHECK(write_byte(node, 1, &kit_err));
		KIT_CHECK(lade_zarr_set_attributes(other, "{\"x\":1}", NULL, &kit_err));
		KIT_CHECK(write_byte(node, 7, &kit_err));
		KIT_CHECK(lade_zarr_resize(other, larger, NULL, &kit_err));
		KIT_CHECK(write_byte(node, 6, &kit_err));
		KIT_CHECK(lade_zarr_resize(other, smaller, NULL, &kit_err));
		lade_write gone = {.key = "a/c/3", .kind = LADE_DELETE_IF_VERSION};
		lade_store_write(below, &gone, 1, NULL, NULL, NULL); /* which cannot list */
		assert_int_equal(write_byte(node, 6, &err), LADE_E_CHANGED);
		assert_non_null(strstr(err.message, "axis 0 had 8 elements, now it has 4"));
		assert_false(is_there(below, "a/c/3"));
		/* Another array takes its place. */
		KIT_CHECK(lade_zarr_create(below, "a", &d, &again, NULL, &kit_err));
		KIT_CHECK(write_byte(node, 6, &kit_err));
		d.type = "int8";
		KIT_CHECK(lade_zarr_create(below, "a", &d, &again, NULL, &kit_err));
		d.type = "uint8";
		assert_int_equal(write_byte(node, 1, &err), LADE_E_CHANGED);
		assert_non_null(strstr(err.message, "another array"));
		assert_false(is_there(below, "a/c/0"));
		KIT_CHECK(lade_zarr_delete(below, "a", &kit_err));
		assert_int_equal(write_byte(node, 1, &err), LADE_E_NOT_FOUND);
		lade_zarr_unref(other);
		lade_zarr_unref(node);
		lade_store_unref(store);
		lade_store_unref(below);
	}
}

/* The array becomes smaller between the first check and the chunk.  It is a whole chunk: then the
 * write holds no lock of a key.  The change of the document takes one, perhaps the same. */
static void smaller_meanwhile(void **state)
{
	(void)state;
	static const uint64_t shape[1] = {8}, chunk[1] = {2};
	const lade_store_ops ops = {.struct_size = sizeof ops, .read = meddling_read,
	                            .write = meddling_write, .list = meddling_list};
	meddling m = {.below = memory()};
	lade_store *store;
	lade_error err = {0};
	KIT_CHECK(lade_store_new(&ops, &m, "meddling", &store, &kit_err));
	lade_zarr *node = create(store, (lade_zarr_description){
		.ndim = 1, .shape = shape, .chunk_shape = chunk, .type = "uint8"});
	lade_zarr_index axis = {.kind = LADE_ZARR_SLICE, .start = 6, .stop = 8};
	lade_zarr_selection selection = {.struct_size = sizeof selection, .axes = &axis,
	                                 .axis_count = 1, .index_size = sizeof axis};
	lade_zarr_source source = {.struct_size = sizeof source, .span = lade_host_cspan("xy", 2)};
	assert_int_equal(lade_zarr_write(node, &selection, &source, NULL, NULL, &err),
	                 LADE_E_CHANGED);
	assert_true(m.done);
	assert_false(is_there(m.below, "a/c/3"));
	lade_zarr_unref(node);
	lade_store_unref(store);
	lade_store_unref(m.below);
}

/* ---- processes ----------------------------------------------------------------------------- */

static pid_t fork_writer(const char *path, unsigned number)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	lade_store *store;
	lade_zarr *node;
	if (lade_store_directory_open(path, NULL, &store, NULL) != LADE_OK ||
	    lade_zarr_open(store, "a", NULL, &node, NULL) != LADE_OK)
		_exit(1);
	write_own(node, number);
	_exit(0);
}

/* The thread sanitizer has no threads in a forked child.  The address sanitizer's allocator stays
 * locked in one, if another thread allocates during the fork, as a starting thread does. */
#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__
#define NO_FORK() skip()
#else
#define NO_FORK() ((void)0)
#endif

static void processes_share_a_value(void **state)
{
	(void)state;
	NO_FORK();
	for (int shards = 0; shards < 2; shards++) {
		char path[64];
		lade_store *store = directory(path);
		lade_zarr *node = one_value(store, shards);
		pid_t pids[WRITERS];
		for (unsigned n = 0; n < WRITERS; n++)
			pids[n] = fork_writer(path, n);
		for (unsigned n = 0; n < WRITERS; n++) {
			int status;
			assert_int_equal(waitpid(pids[n], &status, 0), pids[n]);
			assert_int_equal(status, 0);
		}
		all_written(node);
		lade_zarr_unref(node);
		remove_all(store, path);
	}
}

/* Writes equal elements again and again: each value is whole, whenever the writer dies. */
static void write_for_ever(const char *path)
{
	lade_store *store;
	lade_zarr *node;
	if (lade_store_directory_open(path, NULL, &store, NULL) != LADE_OK ||
	    lade_zarr_open(store, "a", NULL, &node, NULL) != LADE_OK)
		_exit(1);
	for (uint32_t round = 1;; round++) {
		uint32_t data[ELEMENTS];
		for (unsigned i = 0; i < ELEMENTS; i++)
			data[i] = round;
		/* Not the last element: the old value is read and replaced. */
		lade_zarr_index axis = {.kind = LADE_ZARR_SLICE, .start = 0, .stop = ELEMENTS - 1};
		lade_zarr_selection selection = {.struct_size = sizeof selection, .axes = &axis,
		                                 .axis_count = 1, .index_size = sizeof axis};
		lade_zarr_source source = {.struct_size = sizeof source,
		                           .span = lade_host_cspan(data, sizeof data)};
		lade_zarr_write_options one = {.struct_size = sizeof one, .threads = 1};
		if (lade_zarr_write(node, &selection, &source, &one, NULL, NULL) != LADE_OK)
			_exit(1);
	}
}

static void killed_writers(void **state)
{
	(void)state;
	NO_FORK();
	char path[64];
	lade_store *store = directory(path);
	lade_zarr *node = one_value(store, true);
	uint32_t got[ELEMENTS] = {0}, last = 7;
	lade_zarr_index axis = {.kind = LADE_ZARR_AT, .start = ELEMENTS - 1};
	lade_zarr_selection selection = {.struct_size = sizeof selection, .axes = &axis,
	                                 .axis_count = 1, .index_size = sizeof axis};
	lade_zarr_source source = {.struct_size = sizeof source,
	                           .span = lade_host_cspan(&last, 4)};
	KIT_CHECK(lade_zarr_write(node, &selection, &source, NULL, NULL, &kit_err));
	rng random = {99};
	for (int i = 0; i < 60; i++) {
		pid_t pid = fork();
		int status;
		if (pid == 0)
			write_for_ever(path);
		usleep(500 + (useconds_t)(rng_next(&random) % 4000));
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		assert_true(WIFSIGNALED(status));
		read_all(node, got, sizeof got);
		for (unsigned n = 1; n + 1 < ELEMENTS; n++)
			assert_int_equal(got[n], got[0]);
		assert_int_equal(got[ELEMENTS - 1], 7);
	}
	assert_true(got[0] > 0);
	/* What is left of killed writers does not stop the next, and no listing has it. */
	last = 8;
	KIT_CHECK(lade_zarr_write(node, &selection, &source, NULL, NULL, &kit_err));
	lade_zarr_unref(node);
	remove_all(store, path);
}

/* A temporary file as a killed write leaves it. */
static void leave(const char *path, const char *below, bool locked)
{
	char name[128];
	snprintf(name, sizeof name, "%s/%s/.lade-0123456789abcdef", path, below);
	int fd = open(name, O_WRONLY | O_CREAT, 0666);
	assert_true(fd >= 0);
	if (locked)
		assert_int_equal(flock(fd, LOCK_EX), 0); /* until the process ends */
	else
		close(fd);
}

static bool is_file(const char *path, const char *below)
{
	char name[128];
	snprintf(name, sizeof name, "%s/%s", path, below);
	return access(name, F_OK) == 0;
}

/* Deletions remove what killed writers left where nothing else is, and not what living ones have;
 * through a composite store, too. */
static void nothing_stays_behind(void **state)
{
	(void)state;
	static const uint64_t shape[2] = {4, 4}, small[2] = {2, 4}, chunk[2] = {1, 1};
	static const uint8_t data[16] = {1};
	static const lade_zarr_create_options again = {.struct_size = sizeof again,
	                                               .exists = LADE_ZARR_REPLACE};
	for (int i = 0; i < 3; i++) {
		char path[64];
		lade_store *below = directory(path), *store = below;
		const lade_store_route routes[2] = {{"a/c/", below}, {"", below}};
		if (i == 2)
			KIT_CHECK(lade_store_composite_new(routes, 2, &store, &kit_err));
		lade_zarr_description d = {.struct_size = sizeof d, .kind = LADE_ZARR_ARRAY,
		                           .ndim = 2, .shape = shape, .chunk_shape = chunk,
		                           .type = "uint8"};
		lade_zarr *node = create(store, d);
		write_text(node, "", data, sizeof data);
		leave(path, "a/c/0", false);
		leave(path, "a/c/2", false);
		KIT_CHECK(lade_zarr_resize(node, small, NULL, &kit_err));
		assert_true(is_file(path, "a/c/0/0"));
		assert_true(is_file(path, "a/c/0/.lade-0123456789abcdef"));
		assert_false(is_file(path, "a/c/2") || is_file(path, "a/c/3"));
		leave(path, "a", false);
		leave(path, "a/c/1", false);
		if (i == 0)
			KIT_CHECK(lade_zarr_create(store, "a", &d, &again, NULL, &kit_err));
		assert_int_equal(is_file(path, "a/c"), i != 0);
		assert_int_equal(is_file(path, "a/.lade-0123456789abcdef"), i != 0);
		if (i == 1)
			leave(path, "a/c/0", true);
		lade_zarr_unref(node);
		KIT_CHECK(lade_zarr_delete(store, "", &kit_err));
		assert_int_equal(is_file(path, "a/c/0/.lade-0123456789abcdef"), i == 1);
		assert_false(is_file(path, "a/c/1"));
		lade_store_unref(i == 2 ? store : NULL);
		lade_store_unref(below);
		if (i == 1) {
			char command[96];
			snprintf(command, sizeof command, "rm -r %s/a", path);
			assert_int_equal(system(command), 0);
		}
		if (rmdir(path) != 0)
			fail_msg("%s is not empty", path);
	}
}

/* Writes chunks of rows 0 to 3 again and again, and opens the array again if it became smaller. */
static void write_beside(const char *path, unsigned number)
{
	static uint8_t data[16];
	lade_store *store;
	lade_zarr *node = NULL;
	lade_error err = {.message = "opening"};
	lade_status status = lade_store_directory_open(path, NULL, &store, NULL);
	memset(data, (int)number + 1, sizeof data);
	lade_zarr_source source = {.struct_size = sizeof source,
	                           .span = lade_host_cspan(data, sizeof data)};
	lade_zarr_write_options one = {.struct_size = sizeof one, .threads = 1};
	for (unsigned round = 0; round < 60 && status == LADE_OK; round++) {
		if (!node)
			status = lade_zarr_open(store, "a", NULL, &node, &err);
		if (status == LADE_OK)
			status = lade_zarr_write(node, NULL, &source, &one, NULL, &err);
		if (status != LADE_E_CHANGED)
			continue;
		lade_zarr_unref(node);
		node = NULL;
		status = LADE_OK;
	}
	if (status != LADE_OK)
		fprintf(stderr, "writer %u: %s\n", number, err.message);
	_exit(status != LADE_OK);
}

/* Resizes remove directories while writers make them: no writer fails, but for arrays that became
 * smaller; no chunk stays outside, and a deletion leaves nothing. */
static void writers_beside_resizes(void **state)
{
	(void)state;
	NO_FORK();
	static const uint64_t shapes[2][2] = {{4, 4}, {2, 4}}, chunk[2] = {1, 1};
	char path[64], key[16];
	lade_store *store = directory(path);
	lade_zarr *node = create(store, (lade_zarr_description){
		.ndim = 2, .shape = shapes[0], .chunk_shape = chunk, .type = "uint8"});
	pid_t pids[WRITERS];
	for (unsigned n = 0; n < WRITERS; n++) {
		pids[n] = fork();
		if (pids[n] == 0)
			write_beside(path, n);
	}
	unsigned left = WRITERS, i = 0;
	while (left) {
		KIT_CHECK(lade_zarr_resize(node, shapes[++i % 2], NULL, &kit_err));
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);
		assert_true(pid <= 0 || status == 0);
		left -= pid > 0;
	}
	if (i % 2 == 0)
		KIT_CHECK(lade_zarr_resize(node, shapes[1], NULL, &kit_err));
	for (int k = 0; k < 8; k++) {
		snprintf(key, sizeof key, "a/c/%d/%d", 2 + k / 4, k % 4);
		assert_false(is_there(store, key));
	}
	lade_zarr_unref(node);
	remove_all(store, path);
}

/* Each caller gets a range of its own. */
static void *append_own(void *ctx)
{
	writer *w = ctx;
	for (uint32_t i = 0; i < 8; i++) {
		uint32_t data[3] = {w->number * 100 + i, w->number * 100 + i, w->number * 100 + i};
		lade_zarr_source source = {.struct_size = sizeof source,
		                           .span = lade_host_cspan(data, sizeof data)};
		lade_zarr_append append = {.struct_size = sizeof append, .axis = 0, .count = 3,
		                           .source = &source};
		uint64_t at;
		lade_error err;
		if (lade_zarr_append_to(w->node, &append, &at, NULL, &err) != LADE_OK) {
			fprintf(stderr, "%s\n", err.message);
			abort();
		}
	}
	return NULL;
}

static void appending(void **state)
{
	(void)state;
	const uint64_t shape[1] = {0}, chunk[1] = {7};
	lade_store *store = memory();
	lade_zarr *node = create(store, (lade_zarr_description){
		.ndim = 1, .shape = shape, .chunk_shape = chunk, .type = "uint32"}), *now;
	pthread_t threads[WRITERS];
	writer writers[WRITERS];
	for (unsigned n = 0; n < WRITERS; n++) {
		writers[n] = (writer){node, n + 1};
		assert_int_equal(pthread_create(&threads[n], NULL, append_own, &writers[n]), 0);
	}
	for (unsigned n = 0; n < WRITERS; n++)
		pthread_join(threads[n], NULL);
	KIT_CHECK(lade_zarr_open(store, "a", NULL, &now, &kit_err));
	enum { COUNT = WRITERS * 8 * 3 };
	assert_int_equal(lade_zarr_as_array(now)->axes[0].size, COUNT);
	uint32_t got[COUNT], next[WRITERS + 1] = {0};
	read_all(now, got, sizeof got);
	for (size_t i = 0; i < COUNT; i += 3) {
		assert_true(got[i] == got[i + 1] && got[i] == got[i + 2]);
		uint32_t number = got[i] / 100;
		assert_in_range(number, 1, WRITERS);
		assert_int_equal(got[i] % 100, next[number]++); /* each in its order */
	}
	lade_zarr_unref(now);
	lade_zarr_unref(node);
	lade_store_unref(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_share_a_value), cmocka_unit_test(processes_share_a_value),
		cmocka_unit_test(killed_writers), cmocka_unit_test(nothing_stays_behind),
		cmocka_unit_test(writers_beside_resizes), cmocka_unit_test(appending),
		cmocka_unit_test(old_handles), cmocka_unit_test(smaller_meanwhile),
		cmocka_unit_test(synced_writes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
