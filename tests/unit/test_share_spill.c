/*
 * test_share_spill.c: what was used least recently makes room, in memory and in files, and comes
 * back; whoever is killed meanwhile.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "share_kit.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define LARGE 20000          /* values: 160 KB, a block */
#define ROOM (uint64_t)400000 /* two of them */

static char spill[80];

static pid_t serve(uint64_t bytes, uint64_t disk, bool files)
{
	snprintf(spill, sizeof spill, "%s/files", kit_folder);
	kit_options = (lade_share_serve_options){
		.bytes_cap = bytes, .disk_cap = disk, .spill = files ? spill : NULL};
	return kit_serve();
}

/* Values of a version: those of 'hard' ones cannot be compressed. */
static int64_t value_of(int64_t first, size_t i, bool hard)
{
	uint64_t x = ((uint64_t)first << 32) + i + 1;

	if (!hard)
		return first + (int64_t)i;
	x *= 0x9E3779B97F4A7C15u;
	x ^= x >> 29;
	x *= 0xBF58476D1CE4E5B9u;
	return (int64_t)(x ^ x >> 32);
}

static lade_status publish(lade_share *share, const char *name, int64_t first, bool hard,
                           uint32_t wait_ms, lade_error *err)
{
	int64_t *values = malloc(LARGE * sizeof *values);
	kit_column c;

	assert_non_null(values);
	for (size_t i = 0; i < LARGE; i++)
		values[i] = value_of(first, i, hard);
	kit_column_init(&c, values, 0, LARGE);
	c.table.wait_ms = wait_ms;
	lade_status status = lade_share_publish(share, name, &c.table, NULL, err);
	free(values);
	return status;
}

static void must_publish(lade_share *share, const char *name, int64_t first, bool hard)
{
	lade_error err;

	kit_must(publish(share, name, first, hard, 0, &err), &err);
}

static lade_status open_values(lade_share *share, const char *name, int64_t first, bool hard,
                               lade_error *err)
{
	lade_share_version *v;
	struct ArrowArray a;
	lade_status status = lade_share_open(share, name, NULL, &v, err);

	if (status != LADE_OK)
		return status;
	kit_must(lade_share_version_array(v, 0, &a, err), err);
	assert_int_equal(a.length, LARGE);
	const int64_t *values = a.buffers[1];
	for (size_t i = 0; i < LARGE; i++)
		if (values[i] != value_of(first, i, hard))
			fail_msg("'%s': value %zu is %lld", name, i, (long long)values[i]);
	a.release(&a);
	lade_share_version_unref(v);
	return LADE_OK;
}

static void expect(lade_share *share, const char *name, int64_t first, bool hard)
{
	lade_error err;

	kit_must(open_values(share, name, first, hard, &err), &err);
}

/* Files of the folder whose names end so. */
static int files(const char *suffix)
{
	DIR *dir = opendir(spill);
	int count = 0;

	for (struct dirent *e; dir && (e = readdir(dir));)
		count += strlen(e->d_name) > 16 && !strcmp(e->d_name + 16, suffix);
	if (dir)
		closedir(dir);
	return count;
}

static void until_files(const char *suffix, int count)
{
	for (int i = 0; i < 2000 && files(suffix) != count; i++)
		usleep(5000);
	assert_int_equal(files(suffix), count);
}

static lade_status place_of(void *ctx, const lade_share_info *info)
{
	((char *)ctx)[info->name[0] - 'a'] = (char)('0' + info->place);
	return LADE_OK;
}

/* Where "a", "b", ... are. */
static void places(lade_share *share, char text[27])
{
	lade_share_listing all = {.struct_size = sizeof all, .visit = place_of, .ctx = text};
	lade_error err;

	memset(text, 0, 27);
	kit_must(lade_share_list(share, &all, &err), &err);
}

/* ---- room ------------------------------------------------------------------------------- */

static void test_the_least_recently_used_is_compressed(void **state)
{
	pid_t broker = serve(ROOM, 0, false);
	lade_share *share = kit_connect();
	lade_share_version *held;
	char where[27];
	lade_error err;
	(void)state;

	must_publish(share, "a", 1, false);
	must_publish(share, "b", 2, false);
	expect(share, "a", 1, false); /* "b" is the oldest now */
	must_publish(share, "c", 3, false);
	places(share, where);
	assert_string_equal(where, "010");
	lade_share_statistics n = kit_numbers(share);
	assert_int_equal(n.evicted, 1);
	assert_int_equal(n.stored, 0);
	assert_true(n.compressed > 0 && n.compressed < 60000 && n.bytes <= ROOM);
	/* It comes back, and others go. */
	expect(share, "b", 2, false);
	places(share, where);
	assert_string_equal(where, "100");
	/* What is open stays as it is, also if it was used least recently. */
	kit_must(lade_share_open(share, "c", NULL, &held, &err), &err);
	expect(share, "b", 2, false);
	must_publish(share, "d", 4, false);
	places(share, where);
	assert_string_equal(where, "1100");
	for (int64_t i = 5; i < 20; i++)
		must_publish(share, (const char[]){(char)('a' + i - 1), 0}, i, false);
	places(share, where);
	assert_int_equal(where[2], '0');
	kit_look(held, 3, LARGE);
	for (int64_t i = 1; i < 20; i++)
		expect(share, (const char[]){(char)('a' + i - 1), 0}, i, false);
	lade_share_version_unref(held);
	assert_true(kit_numbers(share).bytes <= ROOM);
	lade_share_close(share);
	kit_serve_end(broker);
}

static void test_files(void **state)
{
	pid_t broker = serve(ROOM, 0, true);
	lade_share *share = kit_connect();
	char where[27];
	struct stat st;
	lade_error err;
	(void)state;

	uint64_t descriptors = kit_numbers(share).descriptors;
	for (int64_t i = 0; i < 10; i++)
		must_publish(share, (const char[]){(char)('a' + i), 0}, i, i % 2);
	places(share, where);
	assert_string_equal(where + 8, "00");
	assert_int_equal(where[1], '2'); /* what cannot be compressed goes to files at once */
	lade_share_statistics n = kit_numbers(share);
	assert_int_equal(n.descriptors, descriptors + 10 - (uint64_t)files(".lade"));
	assert_true(n.stored >= 4 && n.disk >= 4 * LARGE * 8 && n.bytes <= ROOM);
	assert_int_equal(stat(spill, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	for (int round = 0; round < 2; round++)
		for (int64_t i = 0; i < 10; i++)
			expect(share, (const char[]){(char)('a' + i), 0}, i, i % 2);
	assert_true(kit_numbers(share).returned >= 10);
	/* A removed version's file goes, too. */
	for (int64_t i = 0; i < 10; i++)
		kit_must(lade_share_remove(share, (const char[]){(char)('a' + i), 0}, 0, &err),
		         &err);
	until_files(".lade", 0);
	until_files(".version", 0);
	n = kit_numbers(share);
	assert_int_equal(n.bytes + n.disk + n.compressed, 0);
	for (int64_t i = 0; i < 6; i++)
		must_publish(share, (const char[]){(char)('a' + i), 0}, i, true);
	assert_true(files(".lade") > 0);
	lade_share_close(share);
	kit_serve_end(broker); /* in order: nothing is left */
	assert_int_equal(files(".lade") + files(".version") + files(".part"), 0);
}

/* Two versions of one block. */
static void test_blocks_that_versions_share(void **state)
{
	pid_t broker = serve(ROOM, 0, true);
	lade_share *share = kit_connect();
	lade_array *array;
	kit_column c;
	lade_error err;
	(void)state;

	kit_must(lade_share_alloc(share, LARGE * 8, &array, &err), &err);
	int64_t *values = lade_array_span(array).data;
	for (size_t i = 0; i < LARGE; i++)
		values[i] = value_of(7, i, true);
	kit_column_init(&c, values, 0, LARGE);
	kit_must(lade_share_publish(share, "a", &c.table, NULL, &err), &err);
	kit_column_init(&c, values, 100, 10000);
	kit_must(lade_share_publish(share, "b", &c.table, NULL, &err), &err);
	lade_array_unref(array);
	for (int64_t i = 2; i < 6; i++)
		must_publish(share, (const char[]){(char)('a' + i), 0}, i, true);
	char where[27];
	places(share, where);
	assert_memory_equal(where, "22", 2);
	expect(share, "a", 7, true);
	places(share, where);
	assert_memory_equal(where, "00", 2); /* it is one block still */
	lade_share_version *v;
	struct ArrowArray a;
	kit_must(lade_share_open(share, "b", NULL, &v, &err), &err);
	kit_must(lade_share_version_array(v, 0, &a, &err), &err);
	assert_int_equal(((const int64_t *)a.buffers[1])[a.offset], value_of(7, 100, true));
	a.release(&a);
	lade_share_version_unref(v);
	lade_share_close(share);
	kit_serve_end(broker);
}

static void *release_soon(void *ctx)
{
	usleep(100000);
	lade_share_version_unref(ctx);
	return NULL;
}

static void test_all_is_in_use(void **state)
{
	pid_t broker = serve(ROOM, 0, true);
	lade_share *share = kit_connect(), *other = kit_connect();
	lade_share_version *a, *b;
	pthread_t thread;
	lade_error err;
	(void)state;

	must_publish(share, "a", 1, false);
	must_publish(share, "b", 2, false);
	kit_must(lade_share_open(other, "a", NULL, &a, &err), &err);
	kit_must(lade_share_open(other, "b", NULL, &b, &err), &err);
	for (uint32_t wait_ms = 0; wait_ms < 200; wait_ms += 150) {
		assert_int_equal(publish(share, "c", 3, false, wait_ms, &err), LADE_E_LIMIT);
		assert_non_null(strstr(err.message, "bytes for 'c', and 3"));
		assert_non_null(strstr(err.message, " of 400000 are taken"));
	}
	assert_int_equal(kit_numbers(share).versions, 2);
	/* One that waits gets the room of one that is released. */
	assert_int_equal(pthread_create(&thread, NULL, release_soon, a), 0);
	kit_must(publish(share, "c", 3, false, 60000, &err), &err);
	pthread_join(thread, NULL);
	kit_look(b, 2, LARGE);
	/* Nor is there room to come back. */
	lade_share_version *c;
	kit_must(lade_share_open(other, "c", NULL, &c, &err), &err);
	assert_int_equal(open_values(share, "a", 1, false, &err), LADE_E_LIMIT);
	assert_non_null(strstr(err.message, "for 'a'"));
	/* A publisher that goes while it waits leaves nothing. */
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit((int)publish(kit_connect(), "d", 4, false, 600000, &err));
	}
	for (int i = 0; i < 2000 && !kit_numbers(share).waiting; i++)
		usleep(2000);
	assert_int_equal(kit_numbers(share).waiting, 1);
	/* Nor does one that does not wait wait for the one before it. */
	assert_int_equal(publish(share, "e", 5, false, 0, &err), LADE_E_LIMIT);
	kit_kill(child);
	for (int i = 0; i < 2000 && kit_numbers(share).waiting; i++)
		usleep(2000);
	assert_int_equal(kit_numbers(share).versions, 3);
	lade_share_version_unref(b);
	lade_share_version_unref(c);
	expect(share, "a", 1, false);
	lade_share_close(share);
	lade_share_close(other);
	kit_serve_end(broker);
}

/* ---- disks ------------------------------------------------------------------------------ */

static void test_a_full_folder(void **state)
{
	pid_t broker = serve(ROOM, 200000, true);
	lade_share *share = kit_connect();
	lade_error err;
	(void)state;

	for (int64_t i = 0; i < 3; i++)
		must_publish(share, (const char[]){(char)('a' + i), 0}, i, true);
	assert_int_equal(publish(share, "x", 9, true, 0, &err), LADE_E_LIMIT);
	assert_non_null(strstr(err.message, "of 400000 are taken"));
	assert_true(kit_numbers(share).disk <= 200000);
	expect(share, "b", 1, true);
	expect(share, "c", 2, true);
	/* To change places one of two needs room. */
	assert_int_equal(open_values(share, "a", 0, true, &err), LADE_E_LIMIT);
	kit_must(lade_share_remove(share, "b", 0, &err), &err);
	expect(share, "a", 0, true);
	lade_share_close(share);
	kit_serve_end(broker);
}

static void test_a_full_disk(void **state)
{
	lade_error err;
	(void)state;

	snprintf(spill, sizeof spill, "%s/files", kit_folder);
	mkdir(spill, 0700);
	if (mount("none", spill, "tmpfs", 0, "size=100k,mode=0700")) {
		print_message("skipped: a small disk cannot be mounted: %s\n", strerror(errno));
		skip();
	}
	pid_t broker = serve(ROOM, 0, true);
	lade_share *share = kit_connect();
	must_publish(share, "a", 1, true);
	must_publish(share, "b", 2, true);
	lade_status status = publish(share, "c", 3, true, 0, &err);
	expect(share, "a", 1, true);
	expect(share, "b", 2, true);
	int left = files(".part") + files(".lade");
	lade_share_close(share);
	kit_serve_end(broker);
	assert_int_equal(umount2(spill, MNT_DETACH), 0);
	assert_int_equal(status, LADE_E_LIMIT);
	assert_non_null(strstr(err.message, "of 400000 are taken"));
	assert_non_null(strstr(err.message, "No space left on device"));
	assert_int_equal(left, 0);
}

/* Changes a byte of a file, or removes it; tells its name's end. */
static void damage(const char *suffix, int how)
{
	DIR *dir = opendir(spill);
	char path[400], byte;

	assert_non_null(dir);
	for (struct dirent *e; (e = readdir(dir));) {
		if (strlen(e->d_name) < 17 || strcmp(e->d_name + 16, suffix))
			continue;
		snprintf(path, sizeof path, "%s/%s", spill, e->d_name);
		if (how == 0) {
			assert_int_equal(unlink(path), 0);
			continue;
		}
		int fd = open(path, O_RDWR);
		off_t at = how == 1 ? 50 : lseek(fd, 0, SEEK_END) / 2;
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= 1;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		close(fd);
	}
	closedir(dir);
}

static void test_damaged_files(void **state)
{
	lade_error err;
	(void)state;

	for (int how = 0; how < 3; how++) {
		pid_t broker = serve(ROOM, 0, true);
		lade_share *share = kit_connect();
		for (int64_t i = 0; i < 3; i++)
			must_publish(share, (const char[]){(char)('a' + i), 0}, i, true);
		until_files(".version", 1);
		damage(".lade", how);
		lade_status status = open_values(share, "a", 0, true, &err);
		if (how == 0)
			assert_int_equal(status, LADE_E_IO);
		else
			assert_true(status == LADE_E_CORRUPT || status == LADE_E_CHECKSUM);
		assert_non_null(strstr(err.message, how ? "a" : ".lade: No such file"));
		assert_int_equal(kit_numbers(share).held, 0);
		expect(share, "b", 1, true);
		expect(share, "c", 2, true);
		must_publish(share, "a", 5, true);
		expect(share, "a", 5, true);
		lade_share_close(share);
		kit_serve_end(broker);
		assert_int_equal(files(".lade") + files(".version"), 0);
	}
}

static void test_folders_that_are_refused(void **state)
{
	lade_share_serve_options o = {.struct_size = sizeof o, .path = kit_path, .spill = spill};
	lade_error err;
	char other[100];
	(void)state;

	pid_t broker = serve(ROOM, 0, true);
	snprintf(other, sizeof other, "%s2", kit_path);
	o.path = other;
	assert_int_equal(lade_share_serve(&o, &err), LADE_E_STATE);
	assert_non_null(strstr(err.message, "a broker has it"));
	kit_serve_end(broker);
	assert_int_equal(chmod(spill, 0777), 0);
	assert_int_equal(lade_share_serve(&o, &err), LADE_E_IO);
	assert_non_null(strstr(err.message, "others may write to it"));
	assert_int_equal(chmod(spill, 0700), 0);
	o.spill = "/nowhere/at/all";
	assert_int_equal(lade_share_serve(&o, &err), LADE_E_IO);
}

/* ---- kills ------------------------------------------------------------------------------ */

static pid_t worker_of(pid_t broker)
{
	char path[80];
	int pid = 0;

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)broker, (int)broker);
	for (int i = 0; i < 2000 && !pid; i++) {
		FILE *f = fopen(path, "r");
		if (f) {
			if (fscanf(f, "%d", &pid) != 1)
				pid = 0;
			fclose(f);
		}
		usleep(2000);
	}
	assert_true(pid > 0);
	return pid;
}

/* What the worker cannot do now it does later. */
static void test_a_worker_that_cannot_start(void **state)
{
	static int64_t values[6000]; /* such a version needs no descriptor */
	pid_t broker = serve(ROOM, 0, false);
	lade_share *share = kit_connect();
	struct rlimit had, few;
	kit_column c;
	lade_error err;
	(void)state;

	must_publish(share, "a", 1, false);
	must_publish(share, "b", 2, false);
	kit_column_init(&c, values, 0, 6000);
	kit_must(lade_share_publish(share, "c", &c.table, NULL, &err), &err);
	assert_int_equal(prlimit(broker, RLIMIT_NOFILE, NULL, &had), 0);
	few = (struct rlimit){3, had.rlim_max};
	assert_int_equal(prlimit(broker, RLIMIT_NOFILE, &few, NULL), 0);
	assert_int_equal(lade_share_publish(share, "d", &c.table, NULL, &err), LADE_E_LIMIT);
	assert_non_null(strstr(err.message, "Too many open files"));
	assert_int_equal(prlimit(broker, RLIMIT_NOFILE, &had, NULL), 0);
	c.table.wait_ms = 60000;
	kit_must(lade_share_publish(share, "d", &c.table, NULL, &err), &err);
	expect(share, "a", 1, false);
	expect(share, "b", 2, false);
	lade_share_close(share);
	kit_serve_end(broker);
}

/* A call that needs room, or brings a version back, while a process is stopped. */
static pid_t call_apart(bool returns, bool hard)
{
	pid_t pid = fork();

	if (pid == 0) {
		lade_error err;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		lade_share *share = kit_connect();
		_exit((int)(returns ? open_values(share, "a", 0, hard, &err)
		                    : publish(share, "late", 9, hard, 0, &err)));
	}
	return pid;
}

static void until_waiting(lade_share *share)
{
	for (int i = 0; i < 2000 && !kit_numbers(share).waiting; i++)
		usleep(1000);
	assert_int_equal(kit_numbers(share).waiting, 1);
}

/* A block that is opened while it is compressed, or written, stays where it is. */
static void test_what_is_opened_while_it_makes_room(void **state)
{
	(void)state;
	for (int hard = 0; hard < 2; hard++) {
		pid_t broker = serve(ROOM, 0, true);
		lade_share *share = kit_connect();
		lade_share_version *v;
		char where[27];
		lade_error err;

		for (int64_t i = 0; i < 3; i++)
			must_publish(share, (const char[]){(char)('a' + i), 0}, i, hard);
		pid_t worker = worker_of(broker);
		kill(worker, SIGSTOP);
		pid_t call = call_apart(false, hard);
		until_waiting(share);
		kit_must(lade_share_open(share, "b", NULL, &v, &err), &err);
		kill(worker, SIGCONT);
		assert_int_equal(kit_wait(call), LADE_OK);
		places(share, where);
		assert_string_equal(where, hard ? "202" : "101");
		assert_int_equal(files(".lade"), hard ? 2 : 0);
		assert_true(kit_numbers(share).bytes <= ROOM);
		lade_share *other = kit_connect();
		expect(other, "b", 1, hard);
		lade_share_close(other);
		lade_share_version_unref(v);
		lade_share_close(share);
		kit_serve_end(broker);
	}
}

/* A file stays until the keeper knows that its version has gone. */
static void test_a_file_goes_after_its_version(void **state)
{
	pid_t broker = serve(ROOM, 0, true);
	lade_share *share = kit_connect();
	lade_error err;
	(void)state;

	for (int64_t i = 0; i < 3; i++)
		must_publish(share, (const char[]){(char)('a' + i), 0}, i, true);
	until_files(".version", 1);
	pid_t keeper = (pid_t)kit_numbers(share).keeper_pid;
	kill(keeper, SIGSTOP);
	pid_t call = fork();
	if (call == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit((int)lade_share_remove(kit_connect(), "a", 0, &err));
	}
	for (int i = 0; i < 2000 && kit_numbers(share).versions == 3; i++)
		usleep(1000);
	assert_int_equal(kit_numbers(share).versions, 2);
	assert_int_equal(files(".lade") + files(".version"), 2);
	kill(keeper, SIGCONT);
	assert_int_equal(kit_wait(call), LADE_OK);
	assert_int_equal(files(".lade") + files(".version"), 0);
	lade_share_close(share);
	kit_serve_end(broker);
}

/* A version's own file, which the broker had not written, or not removed, when it was killed. */
static void test_files_of_versions_after_a_kill(void **state)
{
	pid_t broker = serve(ROOM, 0, true);
	lade_share *share = kit_connect();
	char path[120], kept[120];
	lade_error err;
	(void)state;

	for (int64_t i = 0; i < 3; i++)
		must_publish(share, (const char[]){(char)('a' + i), 0}, i, true);
	until_files(".version", 1);
	kit_kill(broker);
	damage(".version", 0);
	broker = serve(ROOM, 0, true);
	until_files(".version", 1);
	/* The keeper has it back in memory, and the file is there still. */
	lade_share_version *v;
	kit_must(lade_share_open(share, "b", NULL, &v, &err), &err);
	lade_share_version_unref(v);
	DIR *dir = opendir(spill);
	assert_non_null(dir);
	path[0] = 0;
	for (struct dirent *e; (e = readdir(dir));)
		if (strstr(e->d_name, ".version"))
			snprintf(path, sizeof path, "%s/%.30s", spill, e->d_name);
	closedir(dir);
	snprintf(kept, sizeof kept, "%s/kept", kit_folder);
	assert_int_equal(link(path, kept), 0);
	expect(share, "a", 0, true);
	until_files(".version", 1); /* of the one that made room */
	assert_int_equal(access(path, F_OK), -1);
	kit_kill(broker);
	assert_int_equal(rename(kept, path), 0);
	broker = serve(ROOM, 0, true);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(files(".version"), 1);
	for (int64_t i = 0; i < 3; i++)
		expect(share, (const char[]){(char)('a' + i), 0}, i, true);
	lade_share_close(share);
	kit_serve_end(broker);
}

enum { KILL_BROKER, KILL_WORKER, KILL_KEEPER, KILL_BOTH, KILLS };

/* 'stops': the worker is held before its answer, or else the keeper before it has heard of it. */
static void kill_at(int who, bool returns, bool hard, bool stops)
{
	pid_t broker = serve(ROOM, 0, true);
	lade_share *share = kit_connect();

	/* "a" is compressed, or in a file; a worker is there. */
	for (int64_t i = 0; i < 3; i++)
		must_publish(share, (const char[]){(char)('a' + i), 0}, i, hard);
	if (hard)
		until_files(".version", 1);
	pid_t worker = worker_of(broker), keeper = (pid_t)kit_numbers(share).keeper_pid;
	kill(stops ? worker : keeper, SIGSTOP);
	pid_t call = call_apart(returns, hard);
	until_waiting(share);
	if (!stops)
		usleep(20000); /* most times the worker is done by then */
	if (who == KILL_BROKER || who == KILL_BOTH)
		kit_kill(broker);
	if (who == KILL_WORKER)
		kill(worker, SIGKILL);
	if (who == KILL_KEEPER || who == KILL_BOTH) {
		kill(keeper, SIGKILL);
		kit_gone(keeper);
	}
	kill(keeper, SIGCONT);
	if (who == KILL_BROKER || who == KILL_BOTH) {
		broker = serve(ROOM, 0, true);
		int rc = kit_wait(call);
		/* A question is asked again, if there is a broker by then; a publication is not. */
		if (rc != LADE_E_IO && !(returns && (rc == LADE_OK || rc == LADE_E_NOT_FOUND)))
			fail_msg("the call: %s", lade_status_name((lade_status)rc));
	} else {
		kill(worker, SIGCONT);
		assert_int_equal(kit_wait(call), LADE_OK);
	}
	if (who != KILL_BOTH) {
		for (int64_t i = 0; i < 3; i++)
			expect(share, (const char[]){(char)('a' + i), 0}, i, hard);
	} else if (hard) {
		/* What was on disk. */
		expect(share, "a", 0, hard);
	}
	for (int64_t i = 0; i < 4; i++)
		must_publish(share, (const char[]){(char)('p' + i), 0}, i, hard);
	for (int64_t i = 0; i < 4; i++)
		expect(share, (const char[]){(char)('p' + i), 0}, i, hard);
	lade_share_close(share);
	kit_serve_end(broker);
	assert_int_equal(files(".lade") + files(".version") + files(".part"), 0);
}

static void test_each_is_killed_at_each_step(void **state)
{
	(void)state;
	for (int i = 0; i < KILLS * 8; i++)
		kill_at(i / 8, i & 1, i & 2, i & 4);
}

/* Broker and keeper gone: the next broker finds what was on disk, and removes the rest. */
static void test_files_of_a_broker_that_was_killed(void **state)
{
	pid_t broker = serve(ROOM, 0, true);
	lade_share *share = kit_connect();
	char path[120];
	lade_share_version *v;
	lade_error err;
	(void)state;

	for (int64_t i = 0; i < 6; i++)
		must_publish(share, (const char[]){(char)('a' + i), 0}, i, true);
	until_files(".version", 4);
	pid_t keeper = (pid_t)kit_numbers(share).keeper_pid;
	kit_kill(broker);
	kill(keeper, SIGKILL);
	kit_gone(keeper);
	/* Strange files stay, or are refused. */
	snprintf(path, sizeof path, "%s/notes.txt", spill);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	snprintf(path, sizeof path, "%s/00000000000000ff.lade", spill);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	snprintf(path, sizeof path, "%s/00000000000000ff.version", spill);
	int fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_int_equal(write(fd, spill, sizeof spill), (ssize_t)sizeof spill);
	close(fd);
	broker = serve(ROOM, 0, true);
	assert_int_equal(files(".version"), 4);
	for (int64_t i = 0; i < 4; i++)
		expect(share, (const char[]){(char)('a' + i), 0}, i, true);
	assert_int_equal(lade_share_open(share, "f", NULL, &v, &err), LADE_E_NOT_FOUND);
	/* And once more: by the keeper, and by files with a damaged version. */
	kit_kill(broker);
	broker = serve(ROOM, 0, true);
	expect(share, "a", 0, true);
	expect(share, "d", 3, true);
	must_publish(share, "g", 6, true);
	until_files(".version", files(".lade"));
	int left = files(".version");
	keeper = (pid_t)kit_numbers(share).keeper_pid;
	kit_kill(broker);
	kill(keeper, SIGKILL);
	kit_gone(keeper);
	damage(".version", 1);
	broker = serve(ROOM, 0, true);
	assert_true(left > 0);
	assert_int_equal(files(".version"), 0);
	assert_int_equal(kit_numbers(share).names, 0);
	must_publish(share, "a", 1, true);
	lade_share_close(share);
	kit_serve_end(broker);
	snprintf(path, sizeof path, "%s/notes.txt", spill);
	assert_int_equal(unlink(path), 0);
}

/* A folder is the broker's next time, too: else what is there cannot be opened. */
static void test_a_broker_without_the_folder(void **state)
{
	pid_t broker = serve(ROOM, 0, true);
	lade_share *share = kit_connect();
	lade_error err;
	(void)state;

	for (int64_t i = 0; i < 3; i++)
		must_publish(share, (const char[]){(char)('a' + i), 0}, i, true);
	kit_kill(broker);
	broker = serve(2 * ROOM, 0, false);
	assert_int_equal(open_values(share, "a", 0, true, &err), LADE_E_IO);
	assert_non_null(strstr(err.message, "no folder was given"));
	expect(share, "b", 1, true);
	kit_kill(broker);
	broker = serve(ROOM, 0, true);
	expect(share, "a", 0, true);
	lade_share_close(share);
	kit_serve_end(broker);
}

/* Forms of blocks that only the keeper may name, flags that only the broker sets. */
static void test_forms_that_clients_may_not_name(void **state)
{
	static lade__packet packet;
	static const struct {
		uint8_t kind;
		uint32_t flags;
	} all[] = {
		{LADE__BLOCK_PACKED, 0},
		{LADE__BLOCK_FILE, 0},
		{LADE__BLOCK_HOST, LADE__RECORD_DEVICE},
		{LADE__BLOCK_HOST, LADE__RECORD_COPIED},
		{LADE__BLOCK_HOST, LADE__RECORD_LEASE},
		{LADE__BLOCK_HOST, LADE__RECORD_PACKED},
		{LADE__BLOCK_HOST, LADE__RECORD_FILE},
	};
	pid_t broker = serve(ROOM, 0, true);
	lade_error err;
	int fd;
	(void)state;

	lade_share_close(kit_connect());
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		int memory = memfd_create("test", MFD_ALLOW_SEALING);
		assert_int_equal(ftruncate(memory, 100), 0);
		assert_int_equal(fcntl(memory, F_ADD_SEALS,
		                       F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE),
		                 0);
		lade__block block = {.kind = all[i].kind,
		                     .fd = memory,
		                     .version = all[i].kind == LADE__BLOCK_FILE,
		                     .size = 100};
		lade__record r = {.name = "x",
		                  .flags = all[i].flags,
		                  .block_count = 1,
		                  .blocks = &block};
		kit_must(lade__socket_connect(kit_path, &fd, &err), &err);
		lade__wire_begin(&packet, LADE__PUBLISH, 7);
		lade__wire_record(&packet, &r);
		assert_int_equal(lade__wire_send(fd, &packet), 0);
		close(memory);
		kit_must(lade__socket_await(fd, 10000, &err), &err);
		kit_must(lade__wire_receive(fd, &packet, &err), &err);
		assert_int_equal(lade__packet_kind(&packet), LADE__FAILED);
		assert_int_equal(lade__read_failed(&packet, &err), LADE_E_CORRUPT);
		close(fd);
	}
	kit_serve_end(broker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_least_recently_used_is_compressed),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_blocks_that_versions_share),
		cmocka_unit_test(test_all_is_in_use),
		cmocka_unit_test(test_a_full_folder),
		cmocka_unit_test(test_a_full_disk),
		cmocka_unit_test(test_damaged_files),
		cmocka_unit_test(test_folders_that_are_refused),
		cmocka_unit_test(test_a_worker_that_cannot_start),
		cmocka_unit_test(test_what_is_opened_while_it_makes_room),
		cmocka_unit_test(test_a_file_goes_after_its_version),
		cmocka_unit_test(test_files_of_versions_after_a_kill),
		cmocka_unit_test(test_each_is_killed_at_each_step),
		cmocka_unit_test(test_files_of_a_broker_that_was_killed),
		cmocka_unit_test(test_a_broker_without_the_folder),
		cmocka_unit_test(test_forms_that_clients_may_not_name),
	};
	return cmocka_run_group_tests(tests, kit_setup, kit_teardown);
}
