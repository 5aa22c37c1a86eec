/*
 * share_bench.c: columns on a device, from one process to another: what publishing and opening
 * take, beside the driver's own calls.
 *
 *     share_bench [BYTES [ROUNDS]]: 2 GiB, 10 versions of each kind, without arguments
 *
 * Times are microseconds: median, least and most.  "driver" imports, maps and gives access, with
 * the descriptor in hand; "open" is lade_share_open() of another version of the same size, in the
 * same process, which has its context; each block is mapped for the first time.  What is read
 * through the maps is checked first.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "../common.h"
#include "share/arrow.h"
#include "share/client.h"

#include <lade/dlpack.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS_MAX 64
#define PROBE 4096

static char path[64];

static void must(lade_status status, const lade_error *err)
{
	if (status == LADE_OK)
		return;
	fprintf(stderr, "share_bench: %s\n", err->message);
	exit(1);
}

static void check(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "share_bench: %s: %d\n", what, rc);
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
	printf("%-36s %10.1f %10.1f %10.1f", what, us[count / 2], us[0], us[count - 1]);
	if (bytes)
		printf(" %9.1f GB/s", (double)bytes / us[count / 2] / 1e3);
	putchar('\n');
	fflush(stdout);
}

static lade_share *connect_one(void)
{
	lade_share_options o = {.struct_size = sizeof o, .path = path, .timeout_ms = 60000};
	lade_share *share = NULL;
	lade_error err;
	lade_status status = LADE_E_NOT_FOUND;

	for (int i = 0; i < 1000 && status == LADE_E_NOT_FOUND; i++) {
		status = lade_share_connect(&o, &share, &err);
		if (status != LADE_OK)
			usleep(10000);
	}
	must(status, &err);
	return share;
}

/* ---- the publisher ---------------------------------------------------------------------- */

static void keep_schema(struct ArrowSchema *s)
{
	s->release = NULL;
}

static void keep_array(struct ArrowArray *a)
{
	a->release = NULL;
}

static void publish(lade_share *share, const char *name, lade_array *array)
{
	const void *buffers[2] = {NULL, lade_array_span(array).data};
	struct ArrowSchema s = {.format = "l", .name = "v", .release = keep_schema};
	struct ArrowDeviceArray d = {
		.array = {.length = (int64_t)(lade_array_span(array).size / 8),
		          .n_buffers = 2,
		          .buffers = buffers,
		          .release = keep_array},
		.device_type = 2};
	const struct ArrowDeviceArray *list[] = {&d};
	lade_share_table table = {.struct_size = sizeof table,
	                          .schema = &s,
	                          .batch_count = 1,
	                          .device_batches = list};
	lade_error err;

	must(lade_share_publish(share, name, &table, NULL, &err), &err);
}

/* The first and the last bytes say which version it is. */
static void mark(lade_array *array, uint64_t number)
{
	uint64_t probe[PROBE / 8];
	lade_span all = lade_array_span(array);
	lade_error err;

	for (size_t i = 0; i < PROBE / 8; i++)
		probe[i] = number * 1000003 + i;
	for (int end = 0; end < 2; end++) {
		lade_span to = {(char *)all.data + (end ? all.size - PROBE : 0), PROBE, all.place};
		must(lade_copy(NULL, lade_host_cspan(probe, PROBE), to, NULL, &err), &err);
	}
}

static void look(const void *data, size_t size, uint64_t number)
{
	uint64_t probe[PROBE / 8];
	lade_error err;

	for (int end = 0; end < 2; end++) {
		lade_cspan from = {(const char *)data + (end ? size - PROBE : 0), PROBE,
		                   {LADE_DEVICE, 0}};
		must(lade_copy(NULL, from, lade_host_span(probe, PROBE), NULL, &err), &err);
		for (size_t i = 0; i < PROBE / 8; i++)
			if (probe[i] != number * 1000003 + i) {
				fprintf(stderr, "share_bench: version %llu: wrong bytes\n",
				        (unsigned long long)number);
				exit(1);
			}
	}
}

static void produce(size_t bytes, size_t rounds)
{
	lade_share *share = connect_one();
	double made[ROUNDS_MAX * 2], shared[ROUNDS_MAX * 2], copied[ROUNDS_MAX];
	lade_array *array, *own;
	char name[16];
	lade_error err;

	for (size_t i = 0; i < 2 * rounds; i++) {
		double start = now();
		must(lade_share_alloc_in(share, bytes, (lade_place){LADE_DEVICE, 0}, &array, &err),
		     &err);
		made[i] = now() - start;
		mark(array, i);
		snprintf(name, sizeof name, "x%zu", i);
		start = now();
		publish(share, name, array);
		shared[i] = now() - start;
		lade_array_unref(array);
	}
	must(lade_array_new(bytes, (lade_place){LADE_DEVICE, 0}, NULL, &own, &err), &err);
	mark(own, 0);
	for (size_t i = 0; i < rounds; i++) {
		double start = now();
		publish(share, "copy", own);
		copied[i] = now() - start;
	}
	lade_array_unref(own);
	report("alloc_in", made, 2 * rounds, 0);
	report("publish, without a copy", shared, 2 * rounds, 0);
	report("publish, a copy", copied, rounds, bytes);
	lade_share_close(share);
}

/* ---- the reader ------------------------------------------------------------------------- */

/* The answer of the broker: its descriptors are the packet's. */
static double ask(int fd, const char *name, lade__packet *p)
{
	lade_error err;
	double start = now();

	lade__wire_begin(p, LADE__OPEN, 1);
	lade__wire_put(p, 0, 8);
	lade__wire_bytes(p, name, strlen(name));
	check(lade__wire_send(fd, p), "sending");
	must(lade__wire_receive(fd, p, &err), &err);
	if (lade__packet_kind(p) != LADE__RECORD)
		must(lade__read_failed(p, &err), &err);
	return now() - start;
}

static double map_alone(const lade__driver *d, int fd, size_t size, lade__address *at)
{
	lade__block_handle handle;
	lade__pool_access access = {1, 0, 1};
	double start = now();

	check(d->cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd, 1), "import");
	check(d->cuMemAddressReserve(at, size, 0, 0, 0), "reserve");
	check(d->cuMemMap(*at, size, 0, handle, 0), "map");
	check(d->cuMemSetAccess(*at, size, &access, 1), "access");
	check(d->cuMemRelease(handle), "release");
	return now() - start;
}

static void consume(size_t bytes, size_t rounds)
{
	static lade__packet packet;
	lade_share *share = connect_one();
	double asked[ROUNDS_MAX], driver[ROUNDS_MAX], open[ROUNDS_MAX], again[ROUNDS_MAX],
		release[ROUNDS_MAX];
	const lade__driver *d;
	void *context;
	int fd;
	lade_error err;

	must(lade__driver_get(&d, &err), &err);
	check(d->cuDevicePrimaryCtxRetain(&context, 0), "context");
	check(d->cuCtxPushCurrent(context), "context");
	must(lade__socket_connect(path, &fd, &err), &err);
	for (size_t i = 0; i < rounds; i++) {
		struct ArrowDeviceArray a;
		lade_share_version *v, *same;
		lade__record record;
		lade__block room[LADE__WIRE_FDS];
		lade__address at;
		char name[16];

		snprintf(name, sizeof name, "x%zu", 2 * i);
		asked[i] = ask(fd, name, &packet);
		must(lade__read_record(&packet, &record, room, &err), &err);
		size_t size = (size_t)room[0].size;
		driver[i] = map_alone(d, room[0].fd, size, &at);
		look((const void *)(uintptr_t)at, bytes, 2 * i);
		lade__record_close(&record);

		snprintf(name, sizeof name, "x%zu", 2 * i + 1);
		double start = now();
		must(lade_share_open(share, name, NULL, &v, &err), &err);
		open[i] = now() - start;
		must(lade_share_version_device_array(v, 0, &a, &err), &err);
		look(a.array.buffers[1], bytes, 2 * i + 1);
		a.array.release(&a.array);
		start = now();
		must(lade_share_open(share, name, NULL, &same, &err), &err);
		again[i] = now() - start;
		lade_share_version_unref(same);
		start = now();
		lade_share_version_unref(v);
		release[i] = now() - start;
		check(d->cuMemUnmap(at, size), "unmap");
		check(d->cuMemAddressFree(at, size), "free");
	}
	report("the broker's answer alone", asked, rounds, 0);
	report("driver: import and map", driver, rounds, 0);
	report("open", open, rounds, 0);
	report("open, while it is open", again, rounds, 0);
	report("release", release, rounds, 0);
	printf("%-36s %10.1f\n", "open beyond driver (medians)",
	       open[rounds / 2] - driver[rounds / 2]);
	lade_share_close(share);
}

/* ---- main ------------------------------------------------------------------------------- */

static lade_cancel *stop;

static void end(int signal)
{
	(void)signal;
	lade_cancel_set(stop);
}

static void serve(void)
{
	lade_share_serve_options options = {.struct_size = sizeof options, .path = path};
	lade_error err;

	must(lade_cancel_new(NULL, NULL, &stop, &err), &err);
	options.stop = stop;
	signal(SIGTERM, end);
	must(lade_share_serve(&options, &err), &err);
	lade_cancel_free(stop);
}

static pid_t run(char *program, const char *role, const char *bytes, const char *rounds)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/proc/self/exe", program, role, bytes, rounds, path, NULL);
		_exit(127);
	}
	return pid;
}

static int end_of(pid_t pid)
{
	int state;

	return waitpid(pid, &state, 0) == pid && WIFEXITED(state) ? WEXITSTATUS(state) : 1;
}

int main(int argc, char **argv)
{
	char folder[] = "/tmp/lade-bench-XXXXXX", command[64];
	bool inner = argc == 5;
	const char *bytes = argc > 1 + inner ? argv[1 + inner] : "2147483648";
	const char *rounds = argc > 2 + inner ? argv[2 + inner] : "10";
	size_t size = strtoull(bytes, NULL, 0), count = strtoull(rounds, NULL, 0);

	if (size < PROBE || size % 8 || !count || count > ROUNDS_MAX) {
		fprintf(stderr, "usage: share_bench [BYTES [ROUNDS]]\n");
		return 2;
	}
	if (inner) {
		snprintf(path, sizeof path, "%s", argv[4]);
		if (!strcmp(argv[1], "produce"))
			produce(size, count);
		else if (!strcmp(argv[1], "consume"))
			consume(size, count);
		else
			serve();
		return 0;
	}
	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof path, "%s/s", folder);
	printf("%s bytes, %s rounds; microseconds: %-12s %10s %10s\n", bytes, rounds, "median",
	       "least", "most");
	pid_t broker = run(argv[0], "serve", bytes, rounds);
	int rc = end_of(run(argv[0], "produce", bytes, rounds));
	rc = rc ? rc : end_of(run(argv[0], "consume", bytes, rounds));
	kill(broker, SIGTERM); /* also the keeper, which holds the device's memory */
	end_of(broker);
	snprintf(command, sizeof command, "rm -rf %s", folder);
	return system(command) ? 1 : rc;
}
