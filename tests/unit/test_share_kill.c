/*
 * test_share_kill.c: each process is killed at each step, and clients that keep to no rule.
 *
 * SIGSTOP holds a process at a step: a keeper that is stopped leaves a publication between KEEP and
 * KEPT.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "share_kit.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>

#define LARGE 20000 /* values: 160 KB, a block */
#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static lade__packet packet;

/* Sends that shall fail with ENOBUFS, in whatever process: those of a message of this kind. */
static struct refused {
	int kind, count;
} *refused;

/* In the place of the C library's, also for the broker. */
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	const uint8_t *bytes = message->msg_iov->iov_base;

	if (refused && refused->count && bytes[4] == refused->kind) {
		refused->count--;
		errno = ENOBUFS;
		return -1;
	}
	return syscall(SYS_sendmsg, fd, message, flags);
}

/* ---- messages by hand ------------------------------------------------------------------- */

static int dial(void)
{
	int fd;
	lade_error err;

	kit_must(lade__socket_connect(kit_path, &fd, &err), &err);
	lade__socket_timeout(fd, 10000);
	return fd;
}

static int block_of(size_t size, unsigned seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	if (seals)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* A PUBLISH of one block, which says that it has 'size' bytes. */
static void put_publish(const char *name, int fd, uint64_t size)
{
	lade__block block = {.kind = LADE__BLOCK_HOST, .fd = fd, .size = size};
	lade__record r = {.block_count = 1,
	                  .blocks = &block,
	                  .head = (const uint8_t *)"head",
	                  .head_size = 4};

	snprintf(r.name, sizeof r.name, "%s", name);
	lade__wire_begin(&packet, LADE__PUBLISH, 7);
	lade__wire_record(&packet, &r);
}

/* The kind of the answer; 0: the connection has ended. */
static int answer(int fd)
{
	lade_error err;

	kit_must(lade__wire_receive(fd, &packet, &err), &err);
	lade__packet_close(&packet);
	return packet.size ? (int)lade__packet_kind(&packet) : 0;
}

static int refusal(int fd)
{
	lade_error err;

	assert_int_equal(answer(fd), LADE__FAILED);
	return (int)lade__read_failed(&packet, &err);
}

/* Another client is served, and nothing of the strange one is left. */
static void still_well(lade_share *share, lade_share_statistics had)
{
	lade_share_statistics n = {0};

	kit_expect(share, "good", 1, LARGE);
	for (int i = 0; i < 1000; i++) {
		n = kit_numbers(share);
		if (n.clients == had.clients)
			break;
		usleep(2000);
	}
	assert_int_equal(n.clients, had.clients);
	assert_int_equal(n.versions, had.versions);
	assert_int_equal(n.bytes, had.bytes);
	assert_int_equal(n.held, had.held);
}

/* ---- kills ------------------------------------------------------------------------------ */

/* What a producer or a consumer has done when it is killed. */
enum { CONNECTED, ALLOCATED, SENT, PUBLISHED, OPENED, MAPPED, WAITING, SUBSCRIBED, STEPS };

static void do_step(int step, int ready)
{
	lade_share *share = kit_connect();
	lade_share_version *v;
	lade_share_events *events;
	lade_array *array;
	struct ArrowArray a;
	uint64_t version;
	char done = 1;
	int fd;

	switch (step) {
	case ALLOCATED:
		lade_share_alloc(share, LARGE * 8, &array, NULL);
		break;
	case SENT:
		fd = block_of(4096, SEALS);
		put_publish("sent", fd, 4096);
		lade__wire_send(dial(), &packet);
		break;
	case PUBLISHED:
		kit_publish(share, "published", 5, LARGE);
		break;
	case OPENED:
	case MAPPED:
		lade_share_open(share, "good", NULL, &v, NULL);
		if (step == MAPPED)
			lade_share_version_array(v, 0, &a, NULL);
		break;
	case WAITING:
		lade__wire_begin(&packet, LADE__WAIT, 1);
		lade__wire_put(&packet, 0, 8);
		lade__wire_bytes(&packet, "never", 5);
		lade__wire_send(dial(), &packet);
		break;
	case SUBSCRIBED:
		lade_share_subscribe(share, "", &events, NULL);
		break;
	default:
		break;
	}
	(void)!write(ready, &done, 1);
	lade_share_wait(share, "never", 0, UINT32_MAX, &version, NULL);
}

static void test_a_client_is_killed_at_each_step(void **state)
{
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	(void)state;

	kit_publish(share, "good", 1, LARGE);
	lade_share_statistics had = kit_numbers(share);
	int descriptors = kit_descriptors(broker);
	for (int step = 0; step < STEPS; step++) {
		int ready[2];
		char done;
		assert_int_equal(pipe(ready), 0);
		pid_t client = fork();
		if (client == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			do_step(step, ready[1]);
			_exit(1);
		}
		assert_int_equal(read(ready[0], &done, 1), 1);
		close(ready[0]);
		close(ready[1]);
		kit_kill(client);
		if (step == PUBLISHED)
			kit_expect(share, "published", 5, LARGE);
		if (step == SENT || step == PUBLISHED) {
			uint64_t version;
			lade_error err;
			const char *name = step == SENT ? "sent" : "published";
			kit_must(lade_share_wait(share, name, 0, 10000, &version, &err), &err);
			kit_must(lade_share_remove(share, name, 0, &err), &err);
		}
		still_well(share, had);
		assert_int_equal(kit_descriptors(broker), descriptors);
	}
	lade_share_close(share);
	kit_serve_end(broker);
}

/* A replaced version goes with the last who has it open, in the keeper, too. */
static void test_a_reader_of_an_old_version_is_killed(void **state)
{
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	(void)state;

	kit_publish(share, "x", 1, LARGE);
	pid_t keeper = (pid_t)kit_numbers(share).keeper_pid;
	int had = kit_descriptors(keeper);
	pid_t child = fork();
	if (child == 0) {
		lade_share_version *v;
		if (lade_share_open(kit_connect(), "x", NULL, &v, NULL) != LADE_OK)
			_exit(1);
		pause();
	}
	for (int i = 0; i < 2000 && !kit_numbers(share).held; i++)
		usleep(2000);
	kit_publish(share, "x", 2, LARGE);
	assert_int_equal(kit_descriptors(keeper), had + 1);
	kit_kill(child);
	for (int i = 0; i < 1000 && kit_descriptors(keeper) != had; i++)
		usleep(2000);
	assert_int_equal(kit_descriptors(keeper), had);
	lade_share_close(share);
	kit_serve_end(broker);
}

static void test_the_broker_is_killed(void **state)
{
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	lade_share_version *small, *large;
	lade_error err;
	(void)state;

	kit_publish(share, "good", 1, LARGE);
	kit_publish(share, "small", 2, 10);
	uint64_t old = kit_publish(share, "two", 3, LARGE);
	kit_must(lade_share_open(share, "small", NULL, &small, &err), &err);
	kit_must(lade_share_open(share, "two", NULL, &large, &err), &err);
	uint64_t version = kit_publish(share, "two", 4, LARGE);
	lade_share_statistics had = kit_numbers(share);
	assert_int_equal(had.versions, 4);
	for (int round = 0; round < 3; round++) {
		kit_kill(broker);
		kit_look(large, 3, LARGE); /* what is open stays, without a broker */
		broker = kit_serve();
		kit_expect(share, "good", 1, LARGE);
		kit_expect(share, "small", 2, 10);
		kit_expect(share, "two", 4, LARGE);
		kit_look(small, 2, 10);
		lade_share_statistics n = kit_numbers(share);
		/* Nobody is known to have the replaced version open. */
		assert_int_equal(n.versions, 3);
		assert_int_equal(n.keeper_pid, had.keeper_pid);
	}
	assert_true(kit_publish(share, "two", 5, 10) > version && version > old);
	/* Slices of what an earlier broker gave are copied. */
	struct ArrowArray a;
	struct ArrowSchema s;
	kit_must(lade_share_version_array(large, 0, &a, &err), &err);
	kit_must(lade_share_version_schema(large, &s, &err), &err);
	const struct ArrowArray *list[] = {&a};
	lade_share_table table = {
		.struct_size = sizeof table, .schema = &s, .batches = list, .batch_count = 1};
	lade_share_published out = {.struct_size = sizeof out};
	kit_must(lade_share_publish(share, "again", &table, &out, &err), &err);
	assert_int_equal(out.copied, LARGE * 8);
	kit_expect(share, "again", 3, LARGE);
	a.release(&a);
	s.release(&s);
	lade_share_version_unref(small);
	lade_share_version_unref(large);
	lade_share_close(share);
	kit_serve_end(broker);
}

/* Publishes in a child, which tells by its end how it went. */
static pid_t publish_apart(const char *name, int64_t first)
{
	pid_t pid = fork();

	if (pid == 0) {
		int64_t values[3] = {first, first + 1, first + 2};
		kit_column c;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		lade_share *share = kit_connect();
		kit_column_init(&c, values, 0, 3);
		_exit((int)lade_share_publish(share, name, &c.table, NULL, NULL));
	}
	return pid;
}

/* Until the broker has 'versions', also those that nobody can see yet. */
static void until_versions(lade_share *share, uint64_t versions)
{
	for (int i = 0; i < 2000 && kit_numbers(share).versions != versions; i++)
		usleep(2000);
	assert_int_equal(kit_numbers(share).versions, versions);
}

static void test_the_keeper_is_killed(void **state)
{
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	lade_error err;
	(void)state;

	kit_publish(share, "good", 1, LARGE);
	kit_publish(share, "small", 2, 10);
	for (uint64_t round = 1; round < 4; round++) {
		pid_t keeper = (pid_t)kit_numbers(share).keeper_pid;
		/* Between KEEP and KEPT: the next keeper gets it, and then it is done. */
		kill(keeper, SIGSTOP);
		pid_t publisher = publish_apart("late", (int64_t)round);
		until_versions(share, round == 1 ? 3 : 4);
		assert_int_equal(kill(keeper, SIGKILL), 0);
		assert_int_equal(kit_wait(publisher), LADE_OK);
		kit_expect(share, "late", (int64_t)round, 3);
		kit_gone(keeper);
		assert_int_equal(kit_numbers(share).keeper_starts, round + 1);
		/* And the new one has all. */
		kit_kill(broker);
		broker = kit_serve();
		kit_expect(share, "good", 1, LARGE);
		kit_expect(share, "small", 2, 10);
		kit_expect(share, "late", (int64_t)round, 3);
		kit_kill(broker);
		broker = kit_serve();
		for (uint64_t i = 0; i < round; i++) {
			keeper = (pid_t)kit_numbers(share).keeper_pid;
			kill(keeper, SIGKILL);
			kit_gone(keeper);
			kit_publish(share, "next", 1, 1); /* the new keeper is there */
			kit_must(lade_share_remove(share, "next", 0, &err), &err);
		}
	}
	lade_share_close(share);
	kit_serve_end(broker);
}

static void test_the_broker_is_killed_before_the_keeper_has_it(void **state)
{
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	lade_share_version *v;
	(void)state;

	kit_publish(share, "good", 1, LARGE);
	pid_t keeper = (pid_t)kit_numbers(share).keeper_pid;
	kill(keeper, SIGSTOP);
	pid_t publisher = publish_apart("late", 9);
	until_versions(share, 2);
	assert_int_equal(lade_share_open(share, "late", NULL, &v, NULL), LADE_E_NOT_FOUND);
	kit_kill(broker);
	/* It was never acknowledged. */
	assert_int_equal(kit_wait(publisher), LADE_E_IO);
	kill(keeper, SIGCONT);
	broker = kit_serve();
	kit_expect(share, "good", 1, LARGE);
	assert_int_equal(kit_numbers(share).keeper_pid, keeper);
	lade_share_close(share);
	kit_serve_end(broker);
}

/* Both are gone: what they held, too, as docs/share.md says.  What is open stays. */
static void test_both_are_killed(void **state)
{
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	lade_share_version *v, *other;
	lade_error err;
	(void)state;

	kit_publish(share, "good", 1, LARGE);
	kit_must(lade_share_open(share, "good", NULL, &v, &err), &err);
	pid_t keeper = (pid_t)kit_numbers(share).keeper_pid;
	kill(broker, SIGSTOP);
	kill(keeper, SIGKILL);
	kit_gone(keeper);
	kit_kill(broker);
	broker = kit_serve();
	assert_int_equal(lade_share_open(share, "good", NULL, &other, &err), LADE_E_NOT_FOUND);
	kit_look(v, 1, LARGE);
	/* A version of the same number is another one. */
	kit_publish(share, "good", 50, LARGE);
	kit_expect(share, "good", 50, LARGE);
	lade_share_version_unref(v);
	kit_expect(share, "good", 50, LARGE);
	lade_share_close(share);
	kit_serve_end(broker);
}

/* A publication that names a version of a broker that has ended: the next one has another version
 * of that number, whose memory is not meant. */
static void test_what_another_broker_had_is_not_shared(void **state)
{
	pid_t broker;
	lade_share *share, *other;
	lade_share_version *v;
	struct ArrowArray array;
	struct ArrowSchema schema;
	const struct ArrowArray *list[] = {&array};
	lade_share_table table = {.struct_size = sizeof table,
	                          .schema = &schema,
	                          .batches = list,
	                          .batch_count = 1,
	                          .copy = LADE_SHARE_COPY_NEVER};
	lade_share_published out = {.struct_size = sizeof out};
	char lock[80];
	lade_error err;
	(void)state;

	snprintf(lock, sizeof lock, "%s.lock", kit_path);
	unlink(lock);
	broker = kit_serve();
	share = kit_connect();
	for (int round = 0; round < 2; round++) {
		assert_int_equal(kit_publish(share, "mine", 1, LARGE), 1);
		kit_must(lade_share_open(share, "mine", NULL, &v, &err), &err);
		kit_must(lade_share_version_array(v, 0, &array, &err), &err);
		kit_must(lade_share_version_schema(v, &schema, &err), &err);
		kit_serve_end(broker);
		/* Without this file the next broker begins with 1 again. */
		assert_int_equal(unlink(lock), 0);
		broker = kit_serve();
		other = kit_connect();
		assert_int_equal(kit_publish(other, "theirs", 77, LARGE),
		                 lade_share_version_info(v)->version);
		table.copy = round ? LADE_SHARE_COPY_IF_NEEDED : LADE_SHARE_COPY_NEVER;
		lade_status status = lade_share_publish(share, "again", &table, &out, &err);
		assert_int_equal(status, round ? LADE_OK : LADE_E_STATE);
		if (round)
			kit_expect(other, "again", 1, LARGE);
		array.release(&array);
		schema.release(&schema);
		lade_share_version_unref(v);
		lade_share_close(other);
		kit_serve_end(broker);
		assert_int_equal(unlink(lock), 0);
		broker = kit_serve();
	}
	lade_share_close(share);
	kit_serve_end(broker);
}

/* A ticket of what is gone must not open something else. */
static void test_versions_never_come_again(void **state)
{
	uint64_t last = 0;
	lade_error err;
	(void)state;

	for (int round = 0; round < 4; round++) {
		pid_t broker = kit_serve();
		lade_share *share = kit_connect();
		uint64_t version = kit_publish(share, "x", 1, LARGE);
		assert_true(version > last);
		last = version;
		kit_must(lade_share_remove(share, "x", 0, &err), &err);
		pid_t keeper = (pid_t)kit_numbers(share).keeper_pid;
		lade_share_close(share);
		if (round == 2) {
			kit_serve_end(broker);
			continue;
		}
		kit_kill(broker);
		if (round == 1) {
			kill(keeper, SIGKILL);
			kit_gone(keeper);
		}
	}
	kit_serve_end(kit_serve());
}

/* The keeper gets what the system had no room for a little later. */
static void test_no_room_for_a_message_to_the_keeper(void **state)
{
	lade_error err;
	(void)state;

	refused = mmap(NULL, sizeof *refused, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
	               -1, 0);
	assert_ptr_not_equal(refused, MAP_FAILED);
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	for (int round = 0; round < 3; round++) {
		*refused = (struct refused){LADE__KEEP, round};
		kit_publish(share, "x", round, LARGE);
		kit_expect(share, "x", round, LARGE);
		*refused = (struct refused){LADE__DROP, round};
		kit_must(lade_share_remove(share, "x", 0, &err), &err);
		assert_int_equal(refused->count, 0);
	}
	lade_share_close(share);
	kit_serve_end(broker);
	munmap(refused, sizeof *refused);
	refused = NULL;
}

/* Ticks of a process, 100 a second. */
static long processor_time(pid_t pid)
{
	char path[64];
	long user = -1, system = -1;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld",
	                        &user, &system),
	                 2);
	fclose(f);
	return user + system;
}

/* A broker that can have no more descriptors leaves new clients waiting, at rest. */
static void test_no_descriptor_for_a_client(void **state)
{
	struct rlimit few = {330, 330};
	lade_share *clients[16];
	(void)state;

	pid_t broker = fork();
	if (broker == 0) {
		/* Descriptors that it does not know of. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setrlimit(RLIMIT_NOFILE, &few);
		while (dup(0) < 312)
			;
		lade_share_serve_options o = {.struct_size = sizeof o, .path = kit_path};
		_exit(lade_share_serve(&o, NULL));
	}
	clients[0] = kit_connect();
	pid_t keeper = (pid_t)kit_numbers(clients[0]).keeper_pid;
	for (int i = 1; i < 16; i++)
		clients[i] = kit_connect();
	int waiting = dial(); /* and this one */
	lade__wire_begin(&packet, LADE__STATS, 7);
	assert_int_equal(lade__wire_send(waiting, &packet), 0);
	assert_true(kit_numbers(clients[0]).clients < 16);
	long before = processor_time(broker);
	usleep(400000);
	assert_true(processor_time(broker) - before < 8);
	for (int i = 1; i < 16; i++)
		lade_share_close(clients[i]);
	assert_int_equal(answer(waiting), LADE__NUMBERS);
	close(waiting);
	lade_share_close(clients[0]);
	kit_kill(broker);
	kill(keeper, SIGKILL);
	kit_gone(keeper);
}

static volatile sig_atomic_t signals;

static void count_signals(int signal)
{
	(void)signal;
	if (++signals > 1000)
		_exit(9); /* the time never ends */
}

/* Signals do not make a timeout longer. */
static void test_a_timeout_among_signals(void **state)
{
	pid_t broker = kit_serve();
	(void)state;

	pid_t child = fork();
	if (child == 0) {
		struct sigaction action = {.sa_handler = count_signals};
		struct itimerval often = {{0, 10000}, {0, 10000}};
		lade_share *share = kit_connect();
		lade_share_events *events;
		lade_share_event e = {.struct_size = sizeof e};
		uint64_t version;
		lade_error err;
		kit_must(lade_share_subscribe(share, "", &events, &err), &err);
		sigaction(SIGALRM, &action, NULL);
		setitimer(ITIMER_REAL, &often, NULL);
		lade_status waited = lade_share_wait(share, "never", 0, 100, &version, &err);
		lade_status heard = lade_share_events_next(events, 100, &e, &err);
		_exit(waited != LADE_E_NOT_FOUND || heard != LADE_E_NOT_FOUND);
	}
	assert_int_equal(kit_wait(child), 0);
	kit_serve_end(broker);
}

/* ---- clients that keep to no rule ------------------------------------------------------- */

static void test_blocks_that_are_none(void **state)
{
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	int pipes[2], null = open("/dev/null", O_RDONLY);
	(void)state;

	uint64_t good = kit_publish(share, "good", 1, LARGE);
	lade_share_statistics had = kit_numbers(share);
	int descriptors = kit_descriptors(broker);
	assert_int_equal(pipe(pipes), 0);
	const struct {
		int fd;
		uint64_t size;
	} blocks[] = {
		{null, 0},
		{pipes[0], 1},
		{block_of(4096, 0), 4096},
		{block_of(4096, SEALS & ~(unsigned)F_SEAL_SHRINK), 4096},
		{block_of(4096, SEALS & ~(unsigned)F_SEAL_WRITE), 4096},
		{block_of(4096, SEALS), 4097},
		{block_of(4096, SEALS), UINT64_MAX},
	};
	for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
		int fd = dial();
		put_publish("bad", blocks[i].fd, blocks[i].size);
		assert_int_equal(lade__wire_send(fd, &packet), 0);
		assert_int_equal(refusal(fd), LADE_E_CORRUPT);
		close(fd);
		close(blocks[i].fd);
		still_well(share, had);
	}
	close(pipes[1]);
	/* A block of a version that is not there, one that is not open, and one that it has not. */
	lade__block ref = {.kind = LADE__BLOCK_REF, .fd = -1, .version = 99, .size = 1};
	lade__record r = {.name = "bad", .block_count = 1, .blocks = &ref};
	for (int i = 0; i < 3; i++) {
		int fd = dial();
		if (i == 2) {
			ref.index = 7;
			lade__wire_begin(&packet, LADE__OPEN, 7);
			lade__wire_put(&packet, ref.version, 8);
			lade__wire_bytes(&packet, "good", 4);
			assert_int_equal(lade__wire_send(fd, &packet), 0);
			assert_int_equal(answer(fd), LADE__RECORD);
		}
		lade__wire_begin(&packet, LADE__PUBLISH, 7);
		lade__wire_record(&packet, &r);
		assert_int_equal(lade__wire_send(fd, &packet), 0);
		assert_int_equal(refusal(fd), LADE_E_NOT_FOUND);
		ref.version = good;
		close(fd);
	}
	/* A head that no reader can read is the reader's to refuse. */
	int fd = dial();
	lade_share_version *v;
	lade_error err;
	put_publish("bad", block_of(4096, SEALS), 4096);
	assert_int_equal(lade__wire_send(fd, &packet), 0);
	close(packet.fds[0]);
	assert_int_equal(answer(fd), LADE__DONE);
	close(fd);
	assert_int_equal(lade_share_open(share, "bad", NULL, &v, &err), LADE_E_CORRUPT);
	kit_must(lade_share_remove(share, "bad", 0, &err), &err);
	still_well(share, had);
	assert_int_equal(kit_descriptors(broker), descriptors);
	lade_share_close(share);
	kit_serve_end(broker);
}

/* Holes take no memory, and the sum of their sizes is 2^64. */
static void test_blocks_that_pass_the_cap_together(void **state)
{
	kit_options = (lade_share_serve_options){.bytes_cap = 400000};
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	lade__block blocks[4];
	lade__record r = {.name = "x",
	                  .block_count = 4,
	                  .blocks = blocks,
	                  .head = (const uint8_t *)"head",
	                  .head_size = 4};
	int fd = dial();
	(void)state;

	kit_publish(share, "good", 1, LARGE);
	lade_share_statistics had = kit_numbers(share);
	for (size_t i = 0; i < 4; i++)
		blocks[i] = (lade__block){.kind = LADE__BLOCK_HOST,
		                          .fd = block_of((size_t)1 << 62, SEALS),
		                          .size = 8};
	lade__wire_begin(&packet, LADE__PUBLISH, 7);
	lade__wire_record(&packet, &r);
	assert_int_equal(lade__wire_send(fd, &packet), 0);
	assert_int_equal(refusal(fd), LADE_E_LIMIT);
	for (size_t i = 0; i < 4; i++)
		close(blocks[i].fd);
	still_well(share, had);
	close(fd);
	lade_share_close(share);
	kit_options = (lade_share_serve_options){0};
	kit_serve_end(broker);
}

static void test_messages_that_are_none(void **state)
{
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	static uint8_t bytes[LADE__WIRE_MAX + 100];
	int many[LADE__WIRE_FDS];
	uint64_t random = 88172645463325252u;
	(void)state;

	kit_publish(share, "good", 1, LARGE);
	lade_share_statistics had = kit_numbers(share);
	int descriptors = kit_descriptors(broker), fd;
	for (int round = 0; round < 400; round++) {
		fd = dial();
		size_t size = (size_t)(random % 200);
		for (size_t i = 0; i < size; i++) {
			random ^= random << 13, random ^= random >> 7, random ^= random << 17;
			bytes[i] = (uint8_t)random;
		}
		/* Most have a good beginning. */
		if (round % 4 && size >= LADE__WIRE_HEAD) {
			memcpy(bytes, &(uint32_t){(uint32_t)size}, 4);
			memcpy(bytes + 4, &(uint16_t){(uint16_t)(round % 10)}, 2);
			memcpy(bytes + 6, &(uint16_t){LADE__WIRE_PROTOCOL}, 2);
		}
		/* Names of a REMOVE, by chance "good", need a name of its length. */
		if (size)
			assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
		close(fd);
	}
	/* Longer than any message. */
	fd = dial();
	memcpy(bytes, &(uint32_t){sizeof bytes}, 4);
	assert_int_equal(send(fd, bytes, sizeof bytes, MSG_NOSIGNAL), (ssize_t)sizeof bytes);
	assert_int_equal(refusal(fd), LADE_E_CORRUPT);
	/* More descriptors than blocks, as many as go. */
	put_publish("bad", -1, 0);
	for (size_t i = 0; i < LADE__WIRE_FDS; i++)
		many[i] = 0;
	memcpy(packet.fds, many, sizeof many);
	packet.fd_count = LADE__WIRE_FDS;
	assert_int_equal(lade__wire_send(fd, &packet), 0);
	assert_int_equal(refusal(fd), LADE_E_CORRUPT);
	lade__wire_begin(&packet, LADE__STATS, 7);
	memcpy(packet.fds, many, sizeof many);
	packet.fd_count = LADE__WIRE_FDS;
	assert_int_equal(lade__wire_send(fd, &packet), 0);
	assert_int_equal(answer(fd), LADE__NUMBERS);
	lade__wire_begin(&packet, LADE__KEEP, 7); /* is for keepers */
	lade__wire_bytes(&packet, "\0\0\0\0\0\0\0\0x", 9);
	assert_int_equal(lade__wire_send(fd, &packet), 0);
	assert_int_equal(refusal(fd), LADE_E_UNSUPPORTED);
	packet.bytes[6] = 2;
	lade__wire_begin(&packet, LADE__STATS, 7);
	packet.bytes[6] = 2;
	assert_int_equal(lade__wire_send(fd, &packet), 0);
	assert_int_equal(refusal(fd), LADE_E_VERSION);
	close(fd);
	still_well(share, had);
	assert_int_equal(kit_descriptors(broker), descriptors);
	lade_share_close(share);
	kit_serve_end(broker);
}

/* Who asks and does not read is disconnected; others do not notice. */
static void test_a_flood_of_questions(void **state)
{
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	(void)state;

	kit_publish(share, "good", 1, LARGE);
	lade_share_statistics had = kit_numbers(share);
	int descriptors = kit_descriptors(broker);
	for (int kind = 0; kind < 2; kind++) {
		int fd = dial(), rc = 0;
		for (int i = 0; i < 100000 && !rc; i++) {
			lade__wire_begin(&packet, kind ? LADE__LIST : LADE__OPEN, 7);
			if (!kind) {
				lade__wire_put(&packet, 0, 8);
				lade__wire_bytes(&packet, "good", 4);
			}
			rc = lade__wire_send(fd, &packet);
		}
		assert_true(rc == EPIPE || rc == ECONNRESET);
		close(fd);
		still_well(share, had);
	}
	/* One question while the last is not answered. */
	int fd = dial();
	for (int i = 0; i < 2; i++) {
		lade__wire_begin(&packet, LADE__WAIT, 7);
		lade__wire_put(&packet, 0, 8);
		lade__wire_bytes(&packet, "never", 5);
		assert_int_equal(lade__wire_send(fd, &packet), 0);
	}
	assert_int_equal(answer(fd), 0);
	close(fd);
	still_well(share, had);
	assert_int_equal(kit_descriptors(broker), descriptors);
	lade_share_close(share);
	kit_serve_end(broker);
}

/* ---- soak ------------------------------------------------------------------------------- */

static size_t maps_of_this_process(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	size_t count = 0;

	assert_non_null(f);
	while (fgets(line, sizeof line, f))
		count += strstr(line, "lade-share") != NULL;
	fclose(f);
	return count;
}

static void test_rounds_leave_nothing(void **state)
{
	pid_t broker = kit_serve();
	lade_share *share = kit_connect(), *other = kit_connect();
	lade_error err;
	(void)state;

	kit_publish(share, "good", 1, LARGE);
	lade_share_statistics had = kit_numbers(share);
	pid_t keeper = (pid_t)had.keeper_pid;
	int own = kit_descriptors(getpid()), its = kit_descriptors(broker);
	int keepers = kit_descriptors(keeper);
	size_t maps = maps_of_this_process();
	for (int i = 0; i < 1000; i++) {
		size_t count = i % 3 ? 10 : LARGE;
		kit_publish(share, "x", i, count);
		kit_expect(other, "x", i, count);
		if (i % 10 == 0)
			kit_must(lade_share_remove(other, "x", 0, &err), &err);
	}
	kit_must(lade_share_remove(other, "x", 0, &err), &err);
	still_well(share, had);
	assert_int_equal(kit_descriptors(getpid()), own);
	assert_int_equal(kit_descriptors(broker), its);
	assert_int_equal(kit_descriptors(keeper), keepers);
	assert_int_equal(maps_of_this_process(), maps);
	lade_share_close(share);
	lade_share_close(other);
	kit_serve_end(broker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_client_is_killed_at_each_step),
		cmocka_unit_test(test_a_reader_of_an_old_version_is_killed),
		cmocka_unit_test(test_the_broker_is_killed),
		cmocka_unit_test(test_the_keeper_is_killed),
		cmocka_unit_test(test_the_broker_is_killed_before_the_keeper_has_it),
		cmocka_unit_test(test_both_are_killed),
		cmocka_unit_test(test_what_another_broker_had_is_not_shared),
		cmocka_unit_test(test_versions_never_come_again),
		cmocka_unit_test(test_no_room_for_a_message_to_the_keeper),
		cmocka_unit_test(test_no_descriptor_for_a_client),
		cmocka_unit_test(test_a_timeout_among_signals),
		cmocka_unit_test(test_blocks_that_are_none),
		cmocka_unit_test(test_blocks_that_pass_the_cap_together),
		cmocka_unit_test(test_messages_that_are_none),
		cmocka_unit_test(test_a_flood_of_questions),
		cmocka_unit_test(test_rounds_leave_nothing),
	};
	return cmocka_run_group_tests(tests, kit_setup, kit_teardown);
}
