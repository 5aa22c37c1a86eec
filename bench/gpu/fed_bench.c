/*
 * fed_bench.c: times work that is fed from the host, and work that the host is fed from.
 *
 *     fed_bench --data=DIR [--sets=json.u1,...] [--chunks=65536,1048576] [--total=655360000]
 *               [--formats=lz4,snappy] [--nvcomp=PATH] [--align=16] [--repeats=5] [--device=0]
 *               [--out=FILE] [--info=FILE]
 *
 * Each set is encoded by liblz4 and libsnappy, and its chunks are repeated to --total decoded
 * bytes: packed one after the other, or scattered in an order of chance over a buffer with gaps;
 * in pinned and in pageable memory.  One call of lade_decode_into() or lade_encode_into() is timed
 * by the host's clock, from before it to after it; the number is the median.  Ways:
 *
 *     into       lade_decode_into(), lade_encode_into(): the library chooses where the work is done
 *     device     the same, with the device chosen by the caller
 *     copy       what one does without: one copy of all compressed bytes (of scattered ones, a copy
 *                a chunk), then the kernels, liblade's and nvCOMP's
 *
 * No way can be faster than the slowest of the links, each measured in the same run with 256 MiB of
 * pinned memory, and the kernels, measured on the same batch on the device: `bound_us`, and
 * `percent` is its share of the time.  Results are compared byte by byte.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu.h"
#include "nvcomp.h"

typedef struct options {
	const char *data, *sets, *formats, *nvcomp, *out, *info;
	size_t chunks[LIST_MOST + 1];
	size_t total, repeats, align;
	int32_t device;
} options;

typedef struct fed {
	options options;
	gpu gpu;
	double link_up, link_down; /* bytes a second */
	FILE *out;
	lade_engine *engine;
	nvcomp_library library;

	const char *set;
	unsigned char *set_data;
	size_t set_size;

	const format *format;
	lade_spec *spec;
	nvcomp_codec codec;

	/* The chunks at hand: their sizes, and where in a buffer each begins. */
	size_t chunk, count, distinct, slot;
	unsigned char *unique; /* the encoded chunks of the set, 'slot' bytes apart */
	uint64_t *sizes, *at;
	uint64_t coded_size, extent; /* of all encoded chunks; of what they are spread over */
	bool scattered;

	/* Buffers: for encoded bytes 'cap' each, for decoded ones 'total'. */
	size_t cap;
	unsigned char *pinned, *pageable, *coded_dev, *decoded_dev, *plain_dev, *decoded_pinned;

	/* Tables on the device. */
	void **coded_at, **decoded_at;
	uint64_t *coded_sizes, *chunk_sizes, *got_sizes;
	uint32_t *statuses;

	double kernel_us; /* of the batch at hand, decoded by liblade on the device */
	lade_item *items;
	lade_segment *segments;
	lade_result *results;
} fed;

/* One way of doing the work, and what a row says of it. */
typedef struct way {
	fed *f;
	const char *peer, *name, *direction, *source, *dest;
	lade_where where;
	const unsigned char *host; /* where the source's chunks lie, for copies */
	void *workspace;
	size_t workspace_size;
	double bound_us, kernel_us;
	bool timed_into; /* a call of lade_..._into(): results are in f->results */
	char failed[160];
} way;

/* ---- the ways ---------------------------------------------------------------------------- */

static void run_into(way *w)
{
	fed *f = w->f;
	lade_error err;
	lade_batch_options o = {.struct_size = sizeof o,
	                        .stream = f->gpu.stream,
	                        .where = w->where,
	                        .device = f->options.device};
	bool encode = w->direction[0] == 'e';
	lade_status status = (encode ? lade_encode_into : lade_decode_into)(
		f->engine, f->spec, f->items, f->count, f->results, &o, &err);
	if (status != LADE_OK)
		snprintf(w->failed, sizeof w->failed, "%.150s", err.message);
}

static void enqueue_copies(way *w)
{
	fed *f = w->f;
	if (!f->scattered) {
		GPU(&f->gpu, cuMemcpyHtoDAsync, lade__address_of(f->coded_dev), w->host, f->extent,
		    f->gpu.stream);
		return;
	}
	for (size_t i = 0; i < f->count; i++)
		GPU(&f->gpu, cuMemcpyHtoDAsync, lade__address_of(f->coded_dev + f->at[i]),
		    w->host + f->at[i], f->sizes[i], f->gpu.stream);
}

/* The decoding of what lies in 'coded_dev', by the peer's kernels. */
static void enqueue_kernels(void *ctx)
{
	way *w = ctx;
	fed *f = w->f;
	lade_error err;
	if (w->peer[0] == 'n') {
		nvcomp_options none = {{0}};
		int result = f->codec.decompress(
			(const void *const *)f->coded_at, as_sizes(f->coded_sizes),
			as_sizes(f->chunk_sizes), as_sizes(f->got_sizes), f->count, w->workspace,
			w->workspace_size, f->decoded_at, none, (int *)f->statuses, f->gpu.stream);
		if (result != 0)
			snprintf(w->failed, sizeof w->failed, "nvCOMP's status %d", result);
		return;
	}
	lade_async_options o = {.struct_size = sizeof o,
	                        .device = f->options.device,
	                        .stream = f->gpu.stream,
	                        .workspace = w->workspace,
	                        .workspace_size = w->workspace_size,
	                        .sizes = f->got_sizes,
	                        .statuses = f->statuses};
	lade_arrays a = {.struct_size = sizeof(lade_arrays),
	                 .src = (const void *const *)f->coded_at,
	                 .src_size = f->coded_sizes,
	                 .dst = f->decoded_at,
	                 .dst_cap = f->chunk_sizes,
	                 .count = f->count,
	                 .largest = f->chunk,
	                 .total = f->count * f->chunk};
	if (lade_decode_arrays_async(f->engine, f->spec, &a, &o, &err) != LADE_OK)
		snprintf(w->failed, sizeof w->failed, "%.150s", err.message);
}

/* The workspace of enqueue_kernels(). */
static void workspace_new(way *w)
{
	fed *f = w->f;
	size_t total = f->count * f->chunk;
	lade_error err;
	if (w->peer[0] == 'n') {
		nvcomp_options none = {{0}};
		int result = f->codec.decompress_temp(f->count, f->chunk, none, &w->workspace_size,
		                                      total, f->gpu.stream);
		if (result != 0)
			snprintf(w->failed, sizeof w->failed, "nvCOMP's status %d", result);
	} else if (lade_workspace_size(f->engine, f->spec, LADE_DECODE,
	                               &(lade_arrays){.struct_size = sizeof(lade_arrays),
	                                              .count = f->count,
	                                              .largest = f->chunk,
	                                              .total = total},
	                               &w->workspace_size, &err) != LADE_OK) {
		snprintf(w->failed, sizeof w->failed, "%.150s", err.message);
	}
	if (!w->failed[0] && w->workspace_size)
		w->workspace = gpu_alloc(&f->gpu, w->workspace_size);
}

static void run_way(way *w)
{
	if (w->timed_into) {
		run_into(w);
		return;
	}
	enqueue_copies(w);
	enqueue_kernels(w);
	gpu_wait(&w->f->gpu);
}

/* The median of microseconds on the host's clock; 0 when it failed.  The caller has run it once. */
static double time_way(way *w)
{
	fed *f = w->f;
	double us[BENCH_ROUNDS_MAX];
	for (size_t i = 0; i < f->options.repeats && !w->failed[0]; i++) {
		gpu_fill(&f->gpu, f->gpu.flush, (unsigned char)i, f->gpu.flush_size);
		gpu_wait(&f->gpu);
		double start = bench_now();
		run_way(w);
		us[i] = 1e6 * (bench_now() - start);
	}
	return w->failed[0] ? 0 : bench_stat_of(us, f->options.repeats).median;
}

/* ---- checks ------------------------------------------------------------------------------ */

typedef struct check {
	fed *f;
	const unsigned char *bytes; /* of the host */
	size_t bad;
	pthread_mutex_t mutex;
} check;

static void note(check *c, size_t i)
{
	pthread_mutex_lock(&c->mutex);
	if (i < c->bad)
		c->bad = i;
	pthread_mutex_unlock(&c->mutex);
}

static void compare_chunk(void *ctx, size_t i)
{
	check *c = ctx;
	fed *f = c->f;
	if (memcmp(c->bytes + i * f->chunk, f->set_data + i % f->distinct * f->chunk, f->chunk) !=
	    0)
		note(c, i);
}

static void decode_chunk(void *ctx, size_t i)
{
	check *c = ctx;
	fed *f = c->f;
	void *got = malloc(f->chunk);
	if (!got || !f->format->decode(c->bytes + i * f->slot, f->results[i].size, got, f->chunk) ||
	    memcmp(got, f->set_data + i % f->distinct * f->chunk, f->chunk) != 0)
		note(c, i);
	free(got);
}

static void check_statuses(way *w)
{
	fed *f = w->f;
	uint32_t *statuses = bench_alloc(f->count * sizeof *statuses);
	if (!w->timed_into)
		gpu_down(&f->gpu, statuses, f->statuses, f->count * sizeof *statuses);
	for (size_t i = 0; i < f->count && !w->failed[0]; i++) {
		uint32_t status = w->timed_into ? (uint32_t)f->results[i].status : statuses[i];
		if (status != 0)
			snprintf(w->failed, sizeof w->failed, "chunk %zu: status %u", i, status);
	}
	free(statuses);
}

static void poison_mebibyte(void *ctx, size_t i)
{
	memset((unsigned char *)ctx + i * MIB, 0xA5, MIB);
}

/* Runs the way once on a destination that was poisoned, and looks at all that came of it. */
static void run_checked(way *w)
{
	fed *f = w->f;
	size_t total = f->count * f->chunk;
	bool encode = w->direction[0] == 'e', pinned = strcmp(w->dest, "pinned") == 0;
	check c = {.f = f,
	           .bytes = encode ? f->pinned : f->decoded_pinned,
	           .bad = SIZE_MAX,
	           .mutex = PTHREAD_MUTEX_INITIALIZER};
	if (pinned) {
		size_t size = encode ? f->count * f->slot : total;
		parallel_run(size / MIB, poison_mebibyte, encode ? f->pinned : f->decoded_pinned);
	}
	if (!pinned)
		gpu_fill(&f->gpu, f->decoded_dev, 0xA5, total);
	gpu_wait(&f->gpu);
	run_way(w);
	if (!w->failed[0])
		check_statuses(w);
	if (w->failed[0])
		return;
	if (!pinned)
		gpu_down(&f->gpu, f->decoded_pinned, f->decoded_dev, total);
	parallel_run(f->count, encode ? decode_chunk : compare_chunk, &c);
	if (c.bad != SIZE_MAX)
		snprintf(w->failed, sizeof w->failed, "chunk %zu: wrong bytes", c.bad);
}

static void bench_way(way *w)
{
	fed *f = w->f;
	char ok[200] = "yes";
	double us = 0, total = (double)(f->count * f->chunk), coded = (double)f->coded_size;
	if (!w->failed[0])
		run_checked(w);
	if (w->direction[0] == 'e' && !w->failed[0]) {
		coded = 0;
		for (size_t i = 0; i < f->count; i++)
			coded += (double)f->results[i].size;
		if (w->bound_us < 1e6 * coded / f->link_down)
			w->bound_us = 1e6 * coded / f->link_down;
	}
	if (!w->failed[0])
		us = time_way(w);
	if (w->failed[0]) {
		snprintf(ok, sizeof ok, "NO: %s", w->failed);
		for (char *p = ok; *p; p++)
			*p = *p == ',' || *p == '\n' ? ';' : *p;
		fprintf(stderr, "%s %s %s %s, %s to %s: %s\n", w->peer, w->name, f->format->name,
		        f->set, w->source, w->dest, ok);
	}
	fprintf(f->out, "%s,%s,%s,%s,%s,%zu,%zu,%.4f,%s,%s,%s,%.1f,%.2f,%.2f,%.2f,%.1f,%.1f,%s\n",
	        w->peer, w->name, f->format->name, w->direction, f->set, f->chunk, f->count,
	        total / coded, w->source, f->scattered ? "scattered" : "packed", w->dest, us,
	        us > 0 ? coded / us / 1e3 : 0, us > 0 ? total / us / 1e3 : 0,
	        w->kernel_us > 0 ? total / w->kernel_us / 1e3 : 0, w->bound_us,
	        us > 0 ? 100 * w->bound_us / us : 0, ok);
	fflush(f->out);
	gpu_free(&f->gpu, w->workspace);
}

/* ---- chunks ------------------------------------------------------------------------------ */

static void encode_chunk(void *ctx, size_t i)
{
	fed *f = ctx;
	f->sizes[i] = f->format->encode(f->set_data + i * f->chunk, f->chunk,
	                                f->unique + i * f->slot, f->slot);
}

static void place_chunk(void *ctx, size_t i)
{
	fed *f = ctx;
	const unsigned char *src = f->unique + i % f->distinct * f->slot;
	memcpy(f->pinned + f->at[i], src, f->sizes[i]);
	memcpy(f->pageable + f->at[i], src, f->sizes[i]);
}

/* Decides where each chunk begins, and puts it there. */
static void place_all(fed *f, bool scattered)
{
	uint64_t at = 0, seed = 20260101;
	f->scattered = scattered;
	f->coded_size = 0;
	for (size_t i = 0; i < f->count; i++) {
		f->at[i] = scattered ? i * f->slot : at;
		at += (f->sizes[i] + f->options.align - 1) / f->options.align * f->options.align;
		f->coded_size += f->sizes[i];
	}
	f->extent = scattered ? f->count * f->slot : at;
	for (size_t i = f->count - 1; i > 0 && scattered; i--) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		size_t j = (size_t)((seed >> 33) % (i + 1));
		uint64_t other = f->at[i];
		f->at[i] = f->at[j];
		f->at[j] = other;
	}
	parallel_run(f->count, place_chunk, f);
	uint64_t *table = bench_alloc(f->count * sizeof *table);
	for (size_t i = 0; i < f->count; i++)
		table[i] = lade__address_of(f->coded_dev + f->at[i]);
	gpu_up(&f->gpu, f->coded_at, table, f->count * sizeof *table);
	gpu_up(&f->gpu, f->coded_sizes, f->sizes, f->count * sizeof *f->sizes);
	free(table);
}

/* One source and one destination for each chunk. */
static void set_items(fed *f, const unsigned char *src, lade_place src_place, unsigned char *dst,
                      lade_place dst_place, bool encode)
{
	for (size_t i = 0; i < f->count; i++) {
		f->segments[i] = (lade_segment){
			.data = src + (encode ? i * f->chunk : f->at[i]),
			.size = encode ? f->chunk : f->sizes[i],
			.place = src_place,
			.decoded_size = encode ? 0 : f->chunk,
		};
		f->items[i] = (lade_item){
			.src = &f->segments[i],
			.src_count = 1,
			.dst = {dst + i * (encode ? f->slot : f->chunk),
		                encode ? f->slot : f->chunk, dst_place},
		};
	}
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static void bench_into(fed *f, way w)
{
	w.f = f;
	w.peer = "liblade";
	w.timed_into = true;
	w.name = "into";
	bench_way(&w);
	w.name = "device";
	w.where = LADE_WHERE_DEVICE;
	w.failed[0] = 0;
	bench_way(&w);
}

/* Decoding from the host to the device. */
static void bench_up(fed *f, bool pinned)
{
	lade_place host = {pinned ? LADE_PINNED : LADE_HOST, 0};
	lade_place device = {LADE_DEVICE, f->options.device};
	const char *source = pinned ? "pinned" : "pageable";
	double link_us = 1e6 * (double)f->coded_size / f->link_up;
	way w = {.f = f,
	         .direction = "decode",
	         .source = source,
	         .dest = "device",
	         .host = pinned ? f->pinned : f->pageable,
	         .kernel_us = f->kernel_us,
	         .bound_us = larger(link_us, f->kernel_us)};
	set_items(f, w.host, host, f->decoded_dev, device, false);
	bench_into(f, w);
	w.name = "copy";
	w.peer = "liblade";
	workspace_new(&w);
	bench_way(&w);
	if (!f->library.handle)
		return;
	w = (way){.f = f,
	          .peer = "nvcomp",
	          .name = "copy",
	          .direction = "decode",
	          .source = source,
	          .dest = "device",
	          .host = pinned ? f->pinned : f->pageable};
	workspace_new(&w);
	if (!w.failed[0])
		w.kernel_us = gpu_time(&f->gpu, f->options.repeats, enqueue_kernels, &w);
	w.bound_us = larger(link_us, w.kernel_us);
	bench_way(&w);
}

/* To pinned memory: decoding from pinned and from device memory, and encoding. */
static void bench_down(fed *f)
{
	lade_place pinned = {LADE_PINNED, 0}, device = {LADE_DEVICE, f->options.device};
	double total = (double)(f->count * f->chunk);
	double up_us = 1e6 * (double)f->coded_size / f->link_up;
	double down_us = 1e6 * total / f->link_down;
	way w = {.direction = "decode",
	         .source = "pinned",
	         .dest = "pinned",
	         .kernel_us = f->kernel_us,
	         .bound_us = larger(larger(up_us, down_us), f->kernel_us)};
	set_items(f, f->pinned, pinned, f->decoded_pinned, pinned, false);
	bench_into(f, w);

	gpu_up(&f->gpu, f->coded_dev, f->pinned, f->extent);
	w = (way){.direction = "decode",
	          .source = "device",
	          .dest = "pinned",
	          .kernel_us = f->kernel_us,
	          .bound_us = larger(down_us, f->kernel_us)};
	set_items(f, f->coded_dev, device, f->decoded_pinned, pinned, false);
	bench_into(f, w);

	/* The kernels' time in encoding is that of the same call to the device. */
	w = (way){.f = f,
	          .peer = "liblade",
	          .name = "device",
	          .direction = "encode",
	          .where = LADE_WHERE_DEVICE,
	          .source = "device",
	          .dest = "pinned",
	          .timed_into = true};
	set_items(f, f->plain_dev, device, f->coded_dev, device, true);
	run_way(&w);
	w.kernel_us = time_way(&w);
	w.bound_us = w.kernel_us;
	set_items(f, f->plain_dev, device, f->pinned, pinned, true);
	bench_into(f, w);
}

/* What the kernels take for the batch at hand, on the device. */
static void time_kernels(fed *f)
{
	way w = {.f = f, .peer = "liblade", .name = "kernels"};
	gpu_up(&f->gpu, f->coded_dev, f->pinned, f->extent);
	workspace_new(&w);
	f->kernel_us = 0;
	if (!w.failed[0])
		enqueue_kernels(&w);
	if (!w.failed[0])
		f->kernel_us = gpu_time(&f->gpu, f->options.repeats, enqueue_kernels, &w);
	gpu_free(&f->gpu, w.workspace);
}

static void bench_chunks(fed *f, size_t chunk)
{
	f->chunk = chunk;
	f->count = f->options.total / chunk;
	f->distinct = f->set_size / chunk;
	size_t bounds[] = {f->format->bound(chunk), lade_spec_bound(f->spec, chunk)};
	f->slot = ((bounds[0] > bounds[1] ? bounds[0] : bounds[1]) + 255) / 256 * 256;
	if (f->set_size % chunk || f->count < f->distinct || f->count * f->slot > f->cap)
		bench_die(f->set, "does not go with such chunks");
	parallel_run(f->distinct, encode_chunk, f);
	for (size_t i = 0; i < f->count; i++) {
		f->sizes[i] = f->sizes[i % f->distinct];
		if (f->sizes[i] == 0)
			bench_die(f->format->name, "the host's encoder failed");
	}
	f->decoded_at = gpu_table(&f->gpu, f->count, lade__address_of(f->decoded_dev), chunk);
	f->coded_at = gpu_table(&f->gpu, f->count, 0, 0);
	f->coded_sizes = gpu_table(&f->gpu, f->count, 0, 0);
	f->chunk_sizes = gpu_table(&f->gpu, f->count, chunk, 0);
	f->got_sizes = gpu_table(&f->gpu, f->count, 0, 0);
	f->statuses = gpu_table(&f->gpu, f->count, 0, 0);
	for (int scattered = 0; scattered < 2; scattered++) {
		place_all(f, scattered);
		time_kernels(f);
		bench_up(f, true);
		bench_up(f, false);
		if (!scattered)
			bench_down(f);
	}
	void *tables[] = {f->decoded_at,  f->coded_at,  f->coded_sizes,
	                  f->chunk_sizes, f->got_sizes, f->statuses};
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		gpu_free(&f->gpu, tables[i]);
}

static void bench_set(fed *f, const char *name)
{
	char path[4096];
	lade_error err;
	snprintf(path, sizeof path, "%s/%s", f->options.data, name);
	f->set = name;
	f->set_data = bench_load(path, 64 * MIB, &f->set_size);
	f->set_size -= f->set_size % MIB;
	for (size_t at = 0; at < f->options.total && f->set_size; at += f->set_size) {
		size_t left = f->options.total - at;
		gpu_up(&f->gpu, f->plain_dev + at, f->set_data,
		       left < f->set_size ? left : f->set_size);
	}
	for (size_t i = 0; i < FORMAT_COUNT; i++) {
		f->format = &formats[i];
		if (!list_has(f->options.formats, f->format->name) || !f->format->nvcomp)
			continue;
		if (f->library.handle && !nvcomp_find(&f->library, f->format->nvcomp, &f->codec))
			bench_die(f->format->name, "nvCOMP lacks its calls");
		bench_ok(lade_spec_parse(f->engine, f->format->name, &f->spec, &err), &err,
		         f->format->name);
		for (const size_t *chunk = f->options.chunks; *chunk; chunk++)
			bench_chunks(f, *chunk);
		lade_spec_unref(f->spec);
	}
	free(f->set_data);
}

/* ---- the program ------------------------------------------------------------------------- */

static options parse(int argc, char **argv)
{
	options o = {.total = 655360000, .repeats = 5, .align = 16};
	const char *v, *chunks = "65536,1048576";
	for (int i = 1; i < argc; i++) {
		const char *a = argv[i];
		if ((v = bench_option("--data", a)))
			o.data = v;
		else if ((v = bench_option("--sets", a)))
			o.sets = v;
		else if ((v = bench_option("--chunks", a)))
			chunks = v;
		else if ((v = bench_option("--total", a)))
			o.total = strtoull(v, NULL, 10);
		else if ((v = bench_option("--formats", a)))
			o.formats = v;
		else if ((v = bench_option("--nvcomp", a)))
			o.nvcomp = v;
		else if ((v = bench_option("--align", a)))
			o.align = strtoull(v, NULL, 10);
		else if ((v = bench_option("--repeats", a)))
			o.repeats = strtoull(v, NULL, 10);
		else if ((v = bench_option("--device", a)))
			o.device = (int32_t)strtol(v, NULL, 10);
		else if ((v = bench_option("--out", a)))
			o.out = v;
		else if ((v = bench_option("--info", a)))
			o.info = v;
		else
			bench_die(a, "is no option (they are listed at the head of fed_bench.c)");
	}
	list_numbers(chunks, o.chunks);
	if (!o.data)
		bench_die("--data", "the folder of the sets is wanted (bench/make_data.py)");
	if (o.repeats == 0 || o.repeats > BENCH_ROUNDS_MAX || o.align == 0 || o.align > 256)
		bench_die("--repeats, --align", "1 to 1001 and 1 to 256");
	for (const size_t *n = o.chunks; *n; n++)
		if (MIB % *n || *n < 4 * KIB)
			bench_die("--chunks", "powers of two from 4096 to 1048576");
	return o;
}

int main(int argc, char **argv)
{
	static fed f;
	f.options = parse(argc, argv);
	f.gpu = gpu_open(f.options.device);
	f.engine = lade_engine_default();
	if (!f.engine)
		bench_die("engine", "out of memory");
	f.library = nvcomp_open(f.options.nvcomp);
	if (!f.library.handle)
		fprintf(stderr, "without nvCOMP: %s\n", f.library.why);
	f.link_up = gpu_link_rate(&f.gpu, true);
	f.link_down = gpu_link_rate(&f.gpu, false);
	FILE *info = open_out(f.options.info, stderr);
	gpu_print_machine(&f.gpu, info, argc, argv);
	fprintf(info, "link: %.1f GB/s to the device, %.1f GB/s from it (256 MiB, pinned)\n",
	        f.link_up / 1e9, f.link_down / 1e9);
	if (info != stderr)
		fclose(info);

	/* No format grows its chunks, of 4 KiB and more, by more than a quarter, gaps included. */
	size_t total = f.options.total, most = 0;
	for (const size_t *chunk = f.options.chunks; *chunk; chunk++)
		most = total / *chunk > most ? total / *chunk : most;
	f.cap = total / 4 * 5;
	f.pinned = gpu_pinned(&f.gpu, f.cap);
	f.pageable = bench_alloc(f.cap);
	f.unique = bench_alloc(64 * MIB / 4 * 5);
	f.coded_dev = gpu_alloc(&f.gpu, f.cap);
	f.decoded_dev = gpu_alloc(&f.gpu, total);
	f.plain_dev = gpu_alloc(&f.gpu, total);
	f.decoded_pinned = gpu_pinned(&f.gpu, total);
	f.sizes = bench_alloc(most * sizeof *f.sizes);
	f.at = bench_alloc(most * sizeof *f.at);
	f.items = bench_alloc(most * sizeof *f.items);
	f.segments = bench_alloc(most * sizeof *f.segments);
	f.results = bench_alloc(most * sizeof *f.results);
	f.out = open_out(f.options.out, stdout);
	fprintf(f.out, "peer,way,codec,direction,data,chunk,batch,ratio,source,layout,dest,us,"
	               "coded_gbps,decoded_gbps,kernel_gbps,bound_us,percent,ok\n");
	char set[64];
	for (size_t i = 0; set_name(f.options.sets, i, set); i++)
		bench_set(&f, set);
	return 0;
}
