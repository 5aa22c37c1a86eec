/*
 * test_share_device.c: columns in a device's memory, from process to process, on the emulated
 * device and on a real one (--must).  The program starts itself again as each other process: one
 * that was forked could not use the device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "share_kit.h"

#include "gpu/driver.h"
#include "gpu/emulated.h"
#include "share/device.h"
#include "share/wire.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cmocka.h>

#define ROWS 20000 /* of int64: 160 KB */
#define DEVICE ((lade_place){LADE_DEVICE, 0})

static emulated_state *emu; /* NULL: a real device */

/* ---- arrays on a device ----------------------------------------------------------------- */

/* A column of int64 with a bitmap, or none, in device memory of the library's. */
typedef struct far_column {
	lade_array *values, *bits;
	kit_column c;
	struct ArrowDeviceArray device;
	const struct ArrowDeviceArray *list[1];
} far_column;

static void put(lade_array *to, const void *from, size_t size)
{
	lade_error err;

	kit_must(lade_array_wait(to, &err), &err);
	kit_must(lade_copy(NULL, lade_host_cspan(from, size), lade_array_span(to), NULL, &err),
	         &err);
}

static void get(const void *from, size_t size, void *to)
{
	lade_error err;
	lade_cspan src = {from, size, DEVICE};

	kit_must(lade_copy(NULL, src, lade_host_span(to, size), NULL, &err), &err);
}

/* Rows [off, off + length) of the values first, first + 1...; each third of all is null if 'nulls'.
 * 'share' NULL: not in memory that can be shared. */
static void far_init(far_column *f, lade_share *share, int64_t first, int64_t off, int64_t length,
                     bool nulls)
{
	size_t all = (size_t)(off + length);
	int64_t *values = malloc(all * 8);
	uint8_t *bits = calloc(1, all / 8 + 1);
	lade_error err;

	memset(f, 0, sizeof *f);
	for (size_t i = 0; i < all; i++) {
		values[i] = first + (int64_t)i;
		if (i % 3)
			bits[i / 8] |= (uint8_t)(1u << i % 8);
	}
	if (share) {
		kit_must(lade_share_alloc_in(share, all * 8, DEVICE, &f->values, &err), &err);
		kit_must(lade_share_alloc_in(share, all / 8 + 1, DEVICE, &f->bits, &err), &err);
	} else {
		kit_must(lade_array_new(all * 8, DEVICE, NULL, &f->values, &err), &err);
		kit_must(lade_array_new(all / 8 + 1, DEVICE, NULL, &f->bits, &err), &err);
	}
	put(f->values, values, all * 8);
	put(f->bits, bits, all / 8 + 1);
	kit_column_init(&f->c, lade_array_span(f->values).data, off, length);
	if (nulls) {
		f->c.buffers[0] = lade_array_span(f->bits).data;
		f->c.array.null_count = -1;
	}
	f->device.array = f->c.array;
	f->device.device_type = 2;
	f->list[0] = &f->device;
	f->c.table.batches = NULL;
	f->c.table.device_batches = f->list;
	free(values);
	free(bits);
}

static void far_free(far_column *f)
{
	lade_array_unref(f->values);
	lade_array_unref(f->bits);
}

static lade_share_published far_publish(lade_share *share, const char *name, far_column *f)
{
	lade_share_published out = {.struct_size = sizeof out};
	lade_error err;

	kit_must(lade_share_publish(share, name, &f->c.table, &out, &err), &err);
	return out;
}

/* What far_init() made, in an opened version. */
static void far_look(lade_share_version *v, int64_t first, int64_t off, int64_t length, bool nulls)
{
	struct ArrowDeviceArray a;
	lade_error err;
	int64_t *values = malloc((size_t)length * 8);
	const lade_share_info *info = lade_share_version_info(v);

	assert_true(info->on_device);
	assert_int_equal(info->device, 0);
	kit_must(lade_share_version_device_array(v, 0, &a, &err), &err);
	assert_int_equal(a.device_type, 2);
	assert_int_equal(a.device_id, 0);
	assert_int_equal(a.array.length, length);
	assert_int_equal(info->rows, length);
	const int64_t *from = a.array.buffers[1];
	get(from + a.array.offset, (size_t)length * 8, values);
	for (int64_t i = 0; i < length; i++)
		if (values[i] != first + off + i)
			fail_msg("value %lld is %lld", (long long)i, (long long)values[i]);
	size_t size = (size_t)(a.array.offset + length) / 8 + 1;
	uint8_t *bits = calloc(1, size);
	if (nulls)
		get(a.array.buffers[0], (size_t)(a.array.offset + length + 7) / 8, bits);
	else
		assert_null(a.array.buffers[0]);
	for (int64_t i = 0; nulls && i < length; i++) {
		int64_t at = a.array.offset + i;
		if ((bits[at / 8] >> at % 8 & 1) != ((off + i) % 3 != 0))
			fail_msg("the bit of row %lld", (long long)i);
	}
	a.array.release(&a.array);
	free(values);
	free(bits);
}

static void far_expect(lade_share *share, const char *name, int64_t first, int64_t off,
                       int64_t length, bool nulls)
{
	lade_share_version *v;
	lade_error err;

	kit_must(lade_share_open(share, name, NULL, &v, &err), &err);
	far_look(v, first, off, length, nulls);
	lade_share_version_unref(v);
}

/* Publishes an opened version under another name, without a copy. */
static lade_share_published pass_on(lade_share *share, const char *from, const char *to)
{
	lade_share_published out = {.struct_size = sizeof out};
	struct ArrowDeviceArray a;
	const struct ArrowDeviceArray *list[] = {&a};
	struct ArrowSchema s;
	lade_share_table table = {.struct_size = sizeof table,
	                          .schema = &s,
	                          .batch_count = 1,
	                          .copy = LADE_SHARE_COPY_NEVER,
	                          .device_batches = list};
	lade_share_version *v;
	lade_error err;

	kit_must(lade_share_open(share, from, NULL, &v, &err), &err);
	kit_must(lade_share_version_device_array(v, 0, &a, &err), &err);
	kit_must(lade_share_version_schema(v, &s, &err), &err);
	lade_share_version_unref(v);
	kit_must(lade_share_publish(share, to, &table, &out, &err), &err);
	a.array.release(&a.array);
	s.release(&s);
	return out;
}

/* The broker's numbers, once it has seen that all others have gone. */
static lade_share_statistics settled(lade_share *share)
{
	lade_share_statistics n = kit_numbers(share);

	for (int i = 0; i < 5000 && n.clients > 1; i++) {
		usleep(1000);
		n = kit_numbers(share);
	}
	assert_int_equal(n.clients, 1);
	return n;
}

/* Nothing is left on the emulated device of this process. */
static void nothing_left(void)
{
	if (!emu)
		return;
	assert_int_equal(emu->maps, 0);
	assert_int_equal(emu->reserved, 0);
	assert_int_equal(emu->handles, 0);
}

/* ---- other processes -------------------------------------------------------------------- */

static pid_t start(const char *role)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* Those have no driver. */
		if (emu && strstr(role, "bare"))
			unsetenv("LD_LIBRARY_PATH");
		execl("/proc/self/exe", "test_share_device", "--as", role, kit_path, NULL);
		_exit(127);
	}
	assert_true(pid > 0);
	return pid;
}

static void in_process(const char *role)
{
	assert_int_equal(kit_wait(start(role)), 0);
}

static void as_reader(lade_share *share)
{
	far_expect(share, "x", 5, 1000, ROWS - 1000, true);
}

static void as_relay(lade_share *share)
{
	lade_share_published out = pass_on(share, "x", "y");
	assert_int_equal(out.copied, 0);
	assert_true(out.shared >= (ROWS - 1000) * 8);
}

static void as_reader_of_y(lade_share *share)
{
	far_expect(share, "y", 5, 1000, ROWS - 1000, true);
}

static void as_publisher(lade_share *share)
{
	far_column f;

	far_init(&f, share, 5, 1000, ROWS - 1000, true);
	far_publish(share, "x", &f);
	far_free(&f);
}

/* Until it is killed. */
static void as_holder(lade_share *share)
{
	lade_share_version *v;
	lade_error err;
	uint64_t version;

	kit_must(lade_share_open(share, "x", NULL, &v, &err), &err);
	kit_publish(share, "held", 0, 1);
	lade_share_wait(share, "never", 0, UINT32_MAX, &version, &err);
}

/* Likewise, when it has published: nothing of it ends in order. */
static void as_publisher_killed(lade_share *share)
{
	as_publisher(share);
	kill(getpid(), SIGKILL);
}

static void look_at_copy(lade_share *share, const lade_share_open_options *options)
{
	lade_share_version *v;
	struct ArrowArray a;
	lade_error err;

	kit_must(lade_share_open(share, "x", options, &v, &err), &err);
	const lade_share_info *info = lade_share_version_info(v);
	assert_true(info->copied);
	assert_false(info->on_device);
	assert_int_equal(info->device, -1);
	kit_look(v, 5 + 1000, ROWS - 1000);
	kit_must(lade_share_version_array(v, 0, &a, &err), &err);
	const uint8_t *bits = a.buffers[0];
	for (int64_t i = 0; i < a.length; i++)
		assert_int_equal(bits[(a.offset + i) / 8] >> (a.offset + i) % 8 & 1,
		                 (1000 + i) % 3 != 0);
	a.release(&a);
	assert_true(kit_numbers(share).bytes >= ROWS * 8);
	lade_share_version_unref(v);
}

/* Without a device: only a copy can be had. */
static void as_bare_reader(lade_share *share)
{
	lade_share_open_options host = {.struct_size = sizeof host,
	                                .host = true,
	                                .check = LADE_SHARE_CHECK_FULL};
	lade_share_version *v;
	lade_error err;

	if (emu) {
		assert_int_equal(lade_share_open(share, "x", NULL, &v, &err), LADE_E_NO_DEVICE);
		assert_null(v);
	}
	look_at_copy(share, &host);
}

static void as_other_user(lade_share *share)
{
	lade_share *other;
	(void)share;

	assert_int_equal(setgid(65534), 0);
	assert_int_equal(setuid(65534), 0);
	other = kit_connect();
	look_at_copy(other, NULL);
	lade_share_close(other);
}

/* Lends memory of cuMemAlloc(), until it is killed. */
static void as_lender(lade_share *share)
{
	lade_share_published out = {.struct_size = sizeof out};
	const lade__driver *driver;
	lade__address values = 0, bits = 0;
	void *context;
	uint64_t version;
	far_column f;
	lade_error err;

	far_init(&f, NULL, 5, 1000, ROWS - 1000, true);
	kit_must(lade__driver_get(&driver, &err), &err);
	assert_int_equal(driver->cuDevicePrimaryCtxRetain(&context, 0), 0);
	assert_int_equal(driver->cuCtxPushCurrent(context), 0);
	assert_int_equal(driver->cuMemAlloc(&values, ROWS * 8), 0);
	assert_int_equal(driver->cuMemAlloc(&bits, ROWS / 8 + 1), 0);
	lade_span from[] = {lade_array_span(f.values), lade_array_span(f.bits)};
	lade_span to[] = {{(void *)(uintptr_t)values, ROWS * 8, DEVICE},
	                  {(void *)(uintptr_t)bits, ROWS / 8 + 1, DEVICE}};
	for (int i = 0; i < 2; i++)
		kit_must(lade_copy(NULL, (lade_cspan){from[i].data, from[i].size, DEVICE}, to[i],
		                   NULL, &err),
		         &err);
	f.c.buffers[0] = to[1].data;
	f.c.buffers[1] = to[0].data;
	f.c.table.copy = LADE_SHARE_COPY_NEVER;
	for (int i = 0; i < 2; i++) {
		kit_must(lade_share_publish(share, "x", &f.c.table, &out, &err), &err);
		assert_int_equal(out.copied, 0);
		assert_int_equal(out.leased, out.shared);
		far_expect(share, "x", 5, 1000, ROWS - 1000, true); /* here, too */
	}
	/* Other copies are as before. */
	f.c.table.copy = LADE_SHARE_COPY_IF_NEEDED;
	kit_must(lade_share_publish(share, "copy", &f.c.table, &out, &err), &err);
	assert_int_equal(out.shared + out.leased, 0);
	kit_publish(share, "lent", 0, 1);
	lade_share_wait(share, "never", 0, UINT32_MAX, &version, &err);
}

/* Of a lease: it is opened, and only a copy of it can be published. */
static void as_borrower(lade_share *share)
{
	lade_share_version *v;
	lade_error err;

	kit_must(lade_share_open(share, "x", NULL, &v, &err), &err);
	assert_true(lade_share_version_info(v)->leased);
	far_look(v, 5, 1000, ROWS - 1000, true);
	lade_share_version_unref(v);
}

/* A broker that has never had a device. */
static void as_broker(lade_share *share)
{
	lade_share_serve_options o = {.struct_size = sizeof o, .path = kit_path};
	lade_error err;
	(void)share;

	kit_must(lade_cancel_new(NULL, NULL, &kit_stop, &err), &err);
	signal(SIGTERM, kit_end);
	o.stop = kit_stop;
	o.group = geteuid() == 0;
	o.gid = 65534;
	kit_must(lade_share_serve(&o, &err), &err);
	lade_cancel_free(kit_stop);
}

static const struct role {
	const char *name;
	void (*run)(lade_share *share);
} roles[] = {
	{"reader", as_reader},       {"relay", as_relay},   {"reader of y", as_reader_of_y},
	{"publisher", as_publisher}, {"holder", as_holder}, {"bare reader", as_bare_reader},
	{"killed publisher", as_publisher_killed},          {"other user", as_other_user},
	{"broker", as_broker},       {"lender", as_lender}, {"borrower", as_borrower},
};

static const struct role *role_now;

static void test_role(void **state)
{
	lade_share *share = role_now->run == as_broker ? NULL : kit_connect();
	(void)state;

	role_now->run(share);
	lade_share_close(share);
	nothing_left();
}

/* ---- tests ------------------------------------------------------------------------------ */

static void test_memory_that_is_published_without_a_copy(void **state)
{
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	far_column f;
	(void)state;

	far_init(&f, share, 5, 1000, ROWS - 1000, true);
	f.c.table.copy = LADE_SHARE_COPY_NEVER;
	lade_share_published out = far_publish(share, "x", &f);
	assert_int_equal(out.copied, 0);
	assert_int_equal(out.staged, 0);
	assert_string_equal(out.why, "");
	/* In the same process: the same memory, and no other map. */
	int maps = emu ? emu->maps : 0;
	far_expect(share, "x", 5, 1000, ROWS - 1000, true);
	if (emu)
		assert_int_equal(emu->maps, maps);
	/* Again: the same blocks. */
	uint64_t used = kit_numbers(share).descriptors;
	far_publish(share, "again", &f);
	assert_int_equal(kit_numbers(share).descriptors, used);
	far_free(&f);
	lade_share_close(share);
	in_process("reader");
	in_process("relay");
	share = kit_connect();
	lade_error err;
	kit_must(lade_share_remove(share, "x", 0, &err), &err);
	in_process("reader of y");
	lade_share_close(share);
	nothing_left();
	kit_serve_end(broker);
}

static void test_memory_that_is_copied(void **state)
{
	static const struct {
		int64_t off, length;
		bool nulls;
	} cuts[] = {{0, ROWS, false}, {0, ROWS, true},  {8, 800, true},
	            {3, 801, true},   {16, 803, false}, {ROWS - 2, 1, true}};
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	far_column f;
	lade_error err;
	(void)state;

	for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
		far_init(&f, NULL, 7, cuts[i].off, cuts[i].length, cuts[i].nulls);
		f.c.table.copy = LADE_SHARE_COPY_NEVER;
		assert_int_equal(lade_share_publish(share, "z", &f.c.table, NULL, &err),
		                 LADE_E_UNSUPPORTED);
		f.c.table.copy = LADE_SHARE_COPY_IF_NEEDED;
		lade_share_published out = far_publish(share, "z", &f);
		assert_int_equal(out.shared, 0);
		assert_true(out.copied >= (uint64_t)cuts[i].length * 8);
		assert_true(out.staged <= (uint64_t)cuts[i].length / 4 + 2);
		assert_true(out.why[0]);
		far_free(&f);
		far_expect(share, "z", 7, cuts[i].off, cuts[i].length, cuts[i].nulls);
	}
	/* Those of 'always' show nothing else. */
	far_init(&f, share, 7, 3, 801, true);
	f.c.table.copy = LADE_SHARE_COPY_ALWAYS;
	assert_int_equal(far_publish(share, "z", &f).shared, 0);
	far_free(&f);
	far_expect(share, "z", 7, 3, 801, true);
	lade_share_close(share);
	nothing_left();
	kit_serve_end(broker);
}

/* Publishing waits for what the publisher has enqueued, and recorded. */
static void test_publishing_waits(void **state)
{
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	const lade__driver *driver;
	lade_stream stream;
	lade_array *pinned;
	far_column f;
	lade_error err;
	(void)state;

	kit_must(lade__driver_get(&driver, &err), &err);
	kit_must(lade_stream_new(0, &stream, &err), &err);
	kit_must(lade_array_new(ROWS * 8, (lade_place){LADE_PINNED, 0}, NULL, &pinned, &err), &err);
	int64_t *values = lade_array_span(pinned).data;
	for (int64_t i = 0; i < ROWS; i++)
		values[i] = 77 + i;
	for (int by_event = 0; by_event < 2; by_event++) {
		void *event = NULL, *context;
		far_init(&f, by_event ? NULL : share, 0, 0, ROWS, false);
		assert_int_equal(driver->cuDevicePrimaryCtxRetain(&context, 0), 0);
		assert_int_equal(driver->cuCtxPushCurrent(context), 0);
		assert_int_equal(driver->cuMemcpyAsync(lade__address_of(f.c.buffers[1]),
		                                       lade__address_of(values), ROWS * 8, stream),
		                 0);
		assert_int_equal(driver->cuEventCreate(&event, 2), 0);
		assert_int_equal(driver->cuEventRecord(event, stream), 0);
		assert_int_equal(driver->cuCtxPopCurrent(&context), 0);
		if (by_event)
			f.device.sync_event = &event;
		else
			kit_must(lade_array_used(f.values, 0, stream, &err), &err);
		far_publish(share, "x", &f);
		far_expect(share, "x", 77, 0, ROWS, false);
		assert_int_equal(driver->cuEventDestroy(event), 0);
		far_free(&f);
	}
	lade_array_unref(pinned);
	lade_stream_free(0, stream);
	lade_share_close(share);
	nothing_left();
	kit_serve_end(broker);
}

static void test_what_cannot_be_had(void **state)
{
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	lade_share_open_options options = {.struct_size = sizeof options, .writable = true};
	lade_share_version *v;
	struct ArrowArray a;
	lade_array *array;
	far_column f;
	lade_error err;
	(void)state;

	far_init(&f, share, 0, 0, ROWS, true);
	far_publish(share, "x", &f);
	assert_int_equal(lade_share_open(share, "x", &options, &v, &err), LADE_E_UNSUPPORTED);
	options.writable = false;
	options.check = LADE_SHARE_CHECK_FULL;
	assert_int_equal(lade_share_open(share, "x", &options, &v, &err), LADE_E_UNSUPPORTED);
	kit_must(lade_share_open(share, "x", NULL, &v, &err), &err);
	assert_int_equal(lade_share_version_array(v, 0, &a, &err), LADE_E_STATE);
	assert_non_null(strstr(err.message, "memory of device 0"));
	lade_share_version_unref(v);
	f.device.device_id = 99;
	assert_int_equal(lade_share_publish(share, "x", &f.c.table, NULL, &err), LADE_E_NO_DEVICE);
	f.device.device_type = 10;
	assert_int_equal(lade_share_publish(share, "x", &f.c.table, NULL, &err),
	                 LADE_E_UNSUPPORTED);
	far_free(&f);
	assert_int_equal(lade_share_alloc_in(share, 1, (lade_place){LADE_PINNED, 0}, &array, &err),
	                 LADE_E_UNSUPPORTED);
	assert_int_equal(lade_share_alloc_in(share, (size_t)1 << 50, DEVICE, &array, &err),
	                 LADE_E_NOMEM);
	lade_share_close(share);
	nothing_left();
	kit_serve_end(broker);
}

/* ---- copies on the host ----------------------------------------------------------------- */

static pid_t start_broker(void)
{
	pid_t pid = start("broker");

	lade_share_close(kit_connect());
	return pid;
}

/* The process of that name which is not ours but a broker's; 0: there is none. */
static pid_t find_process(const char *name)
{
	char path[300], text[64];
	pid_t found = 0;
	DIR *dir = opendir("/proc");
	struct dirent *e;

	assert_non_null(dir);
	while ((e = readdir(dir))) {
		snprintf(path, sizeof path, "/proc/%s/comm", e->d_name);
		FILE *f = atoi(e->d_name) > 0 ? fopen(path, "r") : NULL;
		if (f && fgets(text, sizeof text, f) && !strncmp(text, name, strlen(name)) &&
		    atoi(e->d_name) > found)
			found = (pid_t)atoi(e->d_name);
		if (f)
			fclose(f);
	}
	closedir(dir);
	return found;
}

static void test_copies_on_the_host(void **state)
{
	pid_t broker = start_broker();
	lade_share *share = kit_connect();
	(void)state;

	in_process("publisher");
	uint64_t bytes = settled(share).bytes;
	pid_t two[] = {start("bare reader"), start("bare reader")};
	assert_int_equal(kit_wait(two[0]) | kit_wait(two[1]), 0);
	in_process("bare reader");
	in_process("reader");
	/* A copy goes when nobody has it open. */
	assert_int_equal(settled(share).bytes, bytes);
	assert_int_equal(kit_numbers(share).held, 0);
	if (geteuid() == 0) {
		assert_int_equal(chmod(kit_folder, 0711), 0);
		in_process("other user");
	}
	settled(share);
	int descriptors = kit_descriptors(broker);
	pid_t copier = find_process("lade-copier");
	assert_true(copier > 0);
	assert_int_equal(kill(copier, SIGKILL), 0);
	/* Threads of a driver may live on a little. */
	while (kit_descriptors(broker) == descriptors)
		usleep(1000);
	in_process("bare reader");
	assert_int_equal(settled(share).bytes, bytes);
	lade_share_close(share);
	kit_serve_end(broker);
}

/* ---- leases ----------------------------------------------------------------------------- */

static void test_leases(void **state)
{
	pid_t broker = start_broker(), lender = start("lender");
	lade_share *share = kit_connect();
	lade_share_version *v;
	uint64_t version;
	lade_error err;
	(void)state;

	kit_must(lade_share_wait(share, "lent", 0, 30000, &version, &err), &err);
	in_process("borrower");
	in_process("bare reader");
	/* The next keeper does not get it either. */
	lade_share_statistics n = kit_numbers(share);
	assert_int_equal(kill((pid_t)n.keeper_pid, SIGKILL), 0);
	while (kit_numbers(share).keeper_starts == n.keeper_starts)
		usleep(1000);
	in_process("borrower");
	kit_kill(lender);
	for (int i = 0; i < 2000; i++) {
		lade_status status = lade_share_wait(share, "x", 0, 0, &version, &err);
		if (status == LADE_E_NOT_FOUND)
			break;
		usleep(5000);
	}
	assert_int_equal(lade_share_open(share, "x", NULL, &v, &err), LADE_E_NOT_FOUND);
	kit_must(lade_share_wait(share, "copy", 0, 0, &version, &err), &err);
	assert_int_equal(settled(share).held, 0);
	lade_share_close(share);
	nothing_left();
	kit_serve_end(broker);
}

/* ---- kills ------------------------------------------------------------------------------ */

static void test_kills(void **state)
{
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	uint64_t version;
	lade_error err;
	(void)state;

	assert_int_equal(kit_wait(start("killed publisher")), 128 + SIGKILL);
	in_process("reader");
	pid_t holder = start("holder");
	kit_must(lade_share_wait(share, "held", 0, 30000, &version, &err), &err);
	assert_int_equal(kit_numbers(share).held, 1);
	kit_kill(holder);
	assert_int_equal(settled(share).held, 0);
	in_process("reader");
	/* The next broker takes it from the keeper. */
	kit_kill(broker);
	broker = kit_serve();
	in_process("reader");
	in_process("relay");
	lade_share_close(share);
	share = kit_connect();
	lade_share_statistics n = kit_numbers(share);
	/* And the next keeper from the broker. */
	assert_int_equal(kill((pid_t)n.keeper_pid, SIGKILL), 0);
	while (kit_numbers(share).keeper_starts == n.keeper_starts)
		usleep(1000);
	kit_kill(broker);
	broker = kit_serve();
	in_process("reader");
	in_process("reader of y");
	lade_share_close(share);
	share = kit_connect();
	settled(share);
	int descriptors = kit_descriptors(broker);
	kit_must(lade_share_remove(share, "x", 0, &err), &err);
	kit_must(lade_share_remove(share, "y", 0, &err), &err);
	/* Of the two blocks, which both versions had. */
	assert_int_equal(kit_descriptors(broker), descriptors - 2);
	lade_share_close(share);
	kit_serve_end(broker);
}

/* ---- what is no device memory ----------------------------------------------------------- */

static void put_block(int fd, lade__block block)
{
	static lade__packet packet;
	lade__record r = {.name = "bad",
	                  .block_count = 1,
	                  .blocks = &block,
	                  .head = (const uint8_t *)"head",
	                  .head_size = 4};
	lade_error err;

	lade__wire_begin(&packet, LADE__PUBLISH, 7);
	lade__wire_record(&packet, &r);
	assert_int_equal(lade__wire_send(fd, &packet), 0);
	kit_must(lade__wire_receive(fd, &packet, &err), &err);
	assert_int_equal(lade__packet_kind(&packet), LADE__DONE);
	lade__packet_close(&packet);
}

static void test_blocks_that_are_none(void **state)
{
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	const lade_device_info *info;
	lade_share_version *v;
	lade__vmm *real;
	int fd, pipes[2];
	lade_error err;
	(void)state;

	kit_must(lade_device_get_info(0, &info, &err), &err);
	kit_must(lade__vmm_new(0, 1, &real, &err), &err);
	kit_must(lade__vmm_publish(real, &err), &err);
	uint64_t key = lade__vmm_key(real->device), size = real->size;
	assert_int_equal(pipe(pipes), 0);
	int memfd = memfd_create("none", MFD_CLOEXEC);
	assert_int_equal(ftruncate(memfd, (off_t)size), 0);
	const struct {
		lade__block block;
		lade_status want;
	} bad[] = {
		{{.fd = memfd, .id = 11, .size = size, .device = key}, LADE_E_CORRUPT},
		{{.fd = pipes[0], .id = 12, .size = size, .device = key}, LADE_E_CORRUPT},
		{{.fd = real->fd, .id = 13, .size = size / 2, .device = key}, LADE_E_CORRUPT},
		{{.fd = real->fd, .id = 14, .size = 2 * size, .device = key}, LADE_E_CORRUPT},
		{{.fd = real->fd, .id = 15, .size = 1, .device = key}, LADE_E_CORRUPT},
		{{.fd = real->fd, .id = 16, .size = 0, .device = key}, LADE_E_CORRUPT},
		{{.fd = real->fd, .id = 17, .size = (uint64_t)1 << 48, .device = key},
	         LADE_E_CORRUPT},
		{{.fd = real->fd, .id = 18, .size = size, .device = ~key}, LADE_E_NO_DEVICE},
		/* The number of another block, which this process has. */
		{{.fd = memfd, .id = real->id, .size = 2 * size, .device = key}, LADE_E_CORRUPT},
		/* All is well but the head. */
		{{.fd = real->fd, .id = 19, .size = size, .device = key}, LADE_E_CORRUPT},
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		lade__block b = bad[i].block;
		b.kind = LADE__BLOCK_DEVICE;
		kit_must(lade__socket_connect(kit_path, &fd, &err), &err);
		put_block(fd, b);
		close(fd);
		lade_status status = lade_share_open(share, "bad", NULL, &v, &err);
		if (status != bad[i].want)
			fail_msg("block %zu: %s: %s", i, lade_status_name(status), err.message);
	}
	lade__vmm_unref(real);
	close(pipes[0]);
	close(pipes[1]);
	close(memfd);
	assert_int_equal(kit_numbers(share).held, 0);
	lade_share_close(share);
	nothing_left();
	kit_serve_end(broker);
}

/* ---- failures --------------------------------------------------------------------------- */

/* Publishing and opening, in one process: the first that fails. */
static lade_status round_of(lade_share *share, bool own, lade_error *err)
{
	lade_share_version *v = NULL;
	lade_array *array = NULL;
	kit_column c;
	lade_status status;

	status = own ? lade_share_alloc_in(share, ROWS * 8, DEVICE, &array, err)
	             : lade_array_new(ROWS * 8, DEVICE, NULL, &array, err);
	if (status != LADE_OK)
		return status;
	/* The library gives memory in stream order. */
	status = lade_array_wait(array, err);
	if (status != LADE_OK) {
		lade_array_unref(array);
		return status;
	}
	kit_column_init(&c, lade_array_span(array).data, 3, ROWS - 3);
	struct ArrowDeviceArray d = {.array = c.array, .device_type = 2};
	const struct ArrowDeviceArray *list[] = {&d};
	c.table.batches = NULL;
	c.table.device_batches = list;
	status = lade_share_publish(share, "x", &c.table, NULL, err);
	if (own)
		lade_array_unref(array);
	if (status == LADE_OK)
		status = lade_share_open(share, "x", NULL, &v, err);
	lade_share_version_unref(v);
	if (!own)
		lade_array_unref(array);
	return status;
}

static void test_each_call_of_the_driver_fails(void **state)
{
	pid_t broker;
	lade_share *share;
	lade_error err;
	(void)state;

	if (!emu)
		skip();
	broker = kit_serve();
	share = kit_connect();
	for (int own = 0; own < 2; own++) {
		kit_must(round_of(share, own, &err), &err);
		int calls = emu->calls;
		kit_must(round_of(share, own, &err), &err);
		calls = emu->calls - calls;
		assert_true(calls > 10);
		for (int at = 1; at <= calls; at++) {
			emu->fail_at = emu->calls + at;
			emu->fail_code = 2 + 997 * (at % 2);
			lade_status status = round_of(share, own, &err);
			emu->fail_at = 0;
			if (status != LADE_OK && !err.message[0])
				fail_msg("call %d: %s has no text", at, lade_status_name(status));
			nothing_left();
		}
	}
	lade_share_close(share);
	kit_serve_end(broker);
}

static void test_rounds_leave_nothing(void **state)
{
	pid_t broker = kit_serve();
	lade_share *share = kit_connect();
	int own = 0, theirs = 0;
	lade_error err;
	(void)state;

	for (int i = 0; i < 200; i++) {
		kit_must(round_of(share, i % 2, &err), &err);
		if (i == 20) {
			own = kit_descriptors(getpid());
			theirs = kit_descriptors(broker);
		}
	}
	assert_int_equal(kit_descriptors(getpid()), own);
	assert_int_equal(kit_descriptors(broker), theirs);
	nothing_left();
	lade_share_close(share);
	kit_serve_end(broker);
}

/* ---- main ------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
	const struct CMUnitTest as_role[] = {cmocka_unit_test(test_role)};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_that_is_published_without_a_copy),
		cmocka_unit_test(test_memory_that_is_copied),
		cmocka_unit_test(test_publishing_waits),
		cmocka_unit_test(test_what_cannot_be_had),
		cmocka_unit_test(test_copies_on_the_host),
		cmocka_unit_test(test_leases),
		cmocka_unit_test(test_kills),
		cmocka_unit_test(test_blocks_that_are_none),
		cmocka_unit_test(test_each_call_of_the_driver_fails),
		cmocka_unit_test(test_rounds_leave_nothing),
	};
	bool must = argc > 1 && !strcmp(argv[1], "--must");
	int32_t count;
	lade_error err;

	emu = emulated_open();
	if (argc == 4 && !strcmp(argv[1], "--as")) {
		snprintf(kit_path, sizeof kit_path, "%s", argv[3]);
		for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
			if (!strcmp(roles[i].name, argv[2]))
				role_now = &roles[i];
		cmocka_set_message_output(CM_OUTPUT_STDOUT);
		return cmocka_run_group_tests(as_role, NULL, NULL);
	}
	pid_t pid = fork();
	if (pid == 0)
		_exit(lade_device_count(&count, &err) != LADE_OK);
	int state;
	if (waitpid(pid, &state, 0) != pid || state) {
		printf("%s: no device\n", must ? "failed" : "skipped");
		return must;
	}
	return cmocka_run_group_tests(tests, kit_setup, kit_teardown);
}
