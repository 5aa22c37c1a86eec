/*
 * rntuple_bench.c: times reads of RNTuple columns from a file, page cache warm, into the memory of
 * a device, beside the same pages fed from pinned memory, and beside a reader that does one page
 * after the other.
 *
 *     rntuple_bench --work=DIR [--data=DIR] [--sets=json.u1,...] [--codecs=lz4,stored,zstd,zlib]
 *                   [--types=plain,split] [--pages=65536,1048576] [--total=268435456]
 *                   [--columns=4] [--threads=0] [--memory=0] [--repeats=7] [--device=0]
 *                   [--ways=read,fed,...] [--out=FILE]
 *
 * DIR of --work gets the file, one at a time, and is empty again at the end.  The sets are files of
 * bench/make_data.py; without --data there is one, "waves.f4", made here.  Each column has the same
 * share of the bytes; a cluster has 16 pages of each, as ROOT writes them.  All ways run in turn,
 * the order turns from round to round, and medians are of the rounds:
 *
 *     read       lade_rntuple_read() of all columns into device memory
 *     device     the same, with the device chosen by the caller
 *     unsure     read, without verifying checksums
 *     fed        lade_decode_into() of the same pages, which are packed in pinned memory
 *     fed_device the same, with the device chosen by the caller
 *     host       lade_rntuple_read() into pinned memory, decoded by the host, and one copy
 *     pages      for each page: a read into pinned memory, an allocation, a copy to the device, an
 *                allocation, a decode there of one item, and a copy to its place
 *     pread      reads the file into pinned memory, and does nothing else
 *     preads     the same by all processors
 *     copy       one copy of all stored pages from pinned memory to the device
 *
 * `percent` is the better of the two fed ways' time as a share of the way's.  Each way's result is
 * compared first, byte by byte.  The status is 1 if one is wrong, or if a way fails that leaves the
 * choice to the library.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "gpu.h"
#include "rntuple_make.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COLUMNS_MAX = 64, PAGES_OF_CLUSTER = 16, BLOCK_HEAD = 9, SUM_SIZE = 8 };

/* A codec, and the blocks around it: | magic 2 | method 1 | compressed 3 | decoded 3 |. */
typedef struct coding {
	const char *name, *spec;
	char magic[3];
} coding;

static const coding codings[] = {
	{"lz4", "lz4", {'L', '4', 1}},
	{"stored", "copy", {0, 0, 0}},
	{"zstd", "zstd(level=3)", {'Z', 'S', 1}},
	{"zlib", "zlib(level=6)", {'Z', 'L', 8}},
};
#define CODING_COUNT (sizeof codings / sizeof *codings)

typedef struct options {
	const char *work, *data, *sets, *codecs, *types, *ways, *out;
	size_t pages[LIST_MOST + 1];
	size_t total, repeats, columns, memory;
	unsigned threads;
	int32_t device;
} options;

/* A page: where it is in the file and in 'coded', and where it goes. */
typedef struct page {
	uint64_t off;
	size_t size, at; /* stored, and its place in 'coded'; without the head of a block */
	size_t skip;     /* that head */
	size_t to;
} page;

typedef struct state {
	options options;
	gpu gpu;
	lade_engine *engine;
	FILE *out;
	bool bad; /* a way failed that must not */

	const char *set, *type;
	size_t elem;
	unsigned char *plain; /* of all columns, one after the other */
	const coding *coding;
	bool split;

	size_t page_size, total, column_size;
	char path[4096];
	int fd;
	uint64_t file_size;
	lade_rntuple *tuple;
	lade_spec *spec;
	page *pages;
	size_t page_count;

	unsigned char *coded, *result, *result_dev, *coded_dev;
	size_t coded_cap, coded_size;
	lade_item *items;
	lade_segment *segments;
} state;

typedef struct way {
	const char *name;
	lade_status (*run)(state *s, lade_where where, lade_error *err);
	lade_where where;
	bool plain; /* there is a result: on the device */
	bool skip;
	char failed[200];
	double us[BENCH_ROUNDS_MAX];
} way;

/* ---- the ways ---------------------------------------------------------------------------- */

static lade_status read_to(state *s, lade_span span, lade_where where, uint32_t flags,
                           lade_error *err)
{
	lade_rntuple_target targets[COLUMNS_MAX];
	lade_rntuple_read_options o = {.struct_size = sizeof o,
	                               .target_size = sizeof *targets,
	                               .engine = s->engine,
	                               .threads = s->options.threads,
	                               .memory = s->options.memory,
	                               .flags = flags,
	                               .where = where,
	                               .device = s->options.device,
	                               .stream = s->gpu.stream};
	for (size_t i = 0; i < s->options.columns; i++) {
		unsigned char *to = (unsigned char *)span.data + i * s->column_size;
		targets[i] = (lade_rntuple_target){
			i, 0, s->column_size / s->elem, {to, s->column_size, span.place}};
	}
	return lade_rntuple_read(s->tuple, targets, s->options.columns, &o, NULL, err);
}

static lade_span device_span(const state *s)
{
	return (lade_span){s->result_dev, s->total, {LADE_DEVICE, s->options.device}};
}

static lade_status run_read(state *s, lade_where where, lade_error *err)
{
	return read_to(s, device_span(s), where, 0, err);
}

static lade_status run_unsure(state *s, lade_where where, lade_error *err)
{
	return read_to(s, device_span(s), where, LADE_RNTUPLE_IGNORE_CHECKSUMS, err);
}

static lade_status run_host(state *s, lade_where where, lade_error *err)
{
	lade_span pinned = {s->result, s->total, {LADE_PINNED, 0}};
	lade_status status = read_to(s, pinned, where, 0, err);
	if (status == LADE_OK)
		gpu_up(&s->gpu, s->result_dev, s->result, s->total);
	return status;
}

static lade_batch_options batch_options(const state *s, lade_where where)
{
	lade_batch_options o;
	lade_batch_options_init(&o);
	o.threads = s->options.threads;
	o.where = where;
	o.device = s->options.device;
	o.stream = s->gpu.stream;
	return o;
}

static lade_status run_fed(state *s, lade_where where, lade_error *err)
{
	lade_batch_options o = batch_options(s, where);
	return lade_decode_into(s->engine, s->spec, s->items, s->page_count, NULL, &o, err);
}

static void read_file(state *s, uint64_t off, size_t at, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t got = pread(s->fd, s->coded + at + done, size - done, (off_t)(off + done));
		if (got <= 0)
			bench_die(s->path, "cannot be read");
		done += (size_t)got;
	}
}

/* As readers do that know one page at a time. */
static lade_status run_pages(state *s, lade_where where, lade_error *err)
{
	lade_batch_options o = batch_options(s, where);
	lade_status status = LADE_OK;
	for (size_t i = 0; i < s->page_count && status == LADE_OK; i++) {
		const page *p = &s->pages[i];
		size_t size = p->size - p->skip;
		read_file(s, p->off, p->at, p->size);
		unsigned char *stored = gpu_alloc(&s->gpu, size), *decoded = NULL;
		gpu_up(&s->gpu, stored, s->coded + p->at + p->skip, size);
		if (s->coding->magic[0] || s->split) {
			lade_segment segment = {.data = stored,
			                        .size = size,
			                        .place = {LADE_DEVICE, s->options.device},
			                        .decoded_size = s->page_size};
			decoded = gpu_alloc(&s->gpu, s->page_size);
			lade_item item = {.src = &segment, .src_count = 1};
			item.dst = (lade_span){decoded, s->page_size,
			                       {LADE_DEVICE, s->options.device}};
			status = lade_decode_into(s->engine, s->spec, &item, 1, NULL, &o, err);
		}
		GPU(&s->gpu, cuMemcpyAsync, lade__address_of(s->result_dev + p->to),
		    lade__address_of(decoded ? decoded : stored), s->page_size, s->gpu.stream);
		gpu_wait(&s->gpu);
		gpu_free(&s->gpu, decoded);
		gpu_free(&s->gpu, stored);
	}
	return status;
}

static lade_status run_pread(state *s, lade_where where, lade_error *err)
{
	(void)where;
	(void)err;
	for (size_t i = 0; i < s->page_count; i++)
		read_file(s, s->pages[i].off, s->pages[i].at, s->pages[i].size);
	return LADE_OK;
}

static void read_page(void *ctx, size_t i)
{
	state *s = ctx;
	read_file(s, s->pages[i].off, s->pages[i].at, s->pages[i].size);
}

static lade_status run_preads(state *s, lade_where where, lade_error *err)
{
	(void)where;
	(void)err;
	parallel_run(s->page_count, read_page, s);
	return LADE_OK;
}

static lade_status run_copy(state *s, lade_where where, lade_error *err)
{
	(void)where;
	(void)err;
	gpu_up(&s->gpu, s->coded_dev, s->coded, s->coded_size);
	return LADE_OK;
}

static void run_way(state *s, way *w)
{
	lade_error err;
	if (w->run(s, w->where, &err) == LADE_OK)
		return;
	snprintf(w->failed, sizeof w->failed, "NO: %.180s", err.message);
	for (char *p = w->failed; *p; p++)
		*p = *p == ',' || *p == '\n' ? ';' : *p;
	if (w->where != LADE_WHERE_DEVICE) /* there may be no kernels */
		s->bad = true;
}

/* Runs the way once on a destination that was overwritten, and compares. */
static void check_way(state *s, way *w)
{
	w->failed[0] = 0;
	memset(s->result, 0xA5, s->total);
	gpu_fill(&s->gpu, s->result_dev, 0xA5, s->total);
	gpu_wait(&s->gpu);
	run_way(s, w);
	if (w->failed[0] || !w->plain)
		return;
	gpu_down(&s->gpu, s->result, s->result_dev, s->total);
	if (memcmp(s->result, s->plain, s->total) != 0) {
		snprintf(w->failed, sizeof w->failed, "NO: wrong bytes");
		s->bad = true;
	}
}

/* ---- rows -------------------------------------------------------------------------------- */

static void print_way(state *s, const way *ways, const way *w)
{
	const way *fed = NULL; /* the better one */
	double share[BENCH_ROUNDS_MAX], total = (double)s->total;
	size_t n = s->options.repeats;
	for (const way *f = ways; f->name; f++)
		if (strncmp(f->name, "fed", 3) == 0 && !f->failed[0] && !f->skip &&
		    (!fed || bench_stat_of(f->us, n).median < bench_stat_of(fed->us, n).median))
			fed = f;
	for (size_t i = 0; i < n; i++)
		share[i] = fed && !w->failed[0] ? 100 * fed->us[i] / w->us[i] : 0;
	bench_stat us = {0};
	if (!w->failed[0])
		us = bench_stat_of(w->us, n);
	double coded = (double)s->coded_size, per = us.median > 0 ? 1 / us.median / 1e3 : 0;
	fprintf(s->out, "%s,%s,%s,%s,%zu,%zu,%.4f,%.1f,%.1f,%.1f,%.2f,%.2f,%.1f,%s\n", w->name,
	        s->coding->name, s->split ? "split" : "plain", s->set, s->page_size, s->page_count,
	        total / coded, us.median, us.q1, us.q3, coded * per, total * per,
	        bench_stat_of(share, n).median, w->failed[0] ? w->failed : "yes");
	fflush(s->out);
}

static void bench_file(state *s)
{
	static way ways[] = {
		{.name = "read", .run = run_read, .plain = true},
		{.name = "device", .run = run_read, .where = LADE_WHERE_DEVICE, .plain = true},
		{.name = "unsure", .run = run_unsure, .plain = true},
		{.name = "fed", .run = run_fed, .plain = true},
		{.name = "fed_device", .run = run_fed, .where = LADE_WHERE_DEVICE, .plain = true},
		{.name = "host", .run = run_host, .where = LADE_WHERE_HOST, .plain = true},
		{.name = "pages", .run = run_pages, .where = LADE_WHERE_DEVICE, .plain = true},
		{.name = "pread", .run = run_pread},
		{.name = "preads", .run = run_preads},
		{.name = "copy", .run = run_copy},
		{.name = NULL},
	};
	enum { COUNT = sizeof ways / sizeof *ways - 1 };
	for (size_t k = 0; k < COUNT; k++) {
		ways[k].skip = !list_has(s->options.ways, ways[k].name);
		if (!ways[k].skip)
			check_way(s, &ways[k]);
	}
	for (size_t r = 0; r < s->options.repeats; r++) {
		for (size_t k = 0; k < COUNT; k++) {
			way *w = &ways[(k + r) % COUNT];
			double start = bench_now();
			if (!w->failed[0] && !w->skip)
				run_way(s, w);
			w->us[r] = 1e6 * (bench_now() - start);
		}
	}
	for (size_t k = 0; k < COUNT; k++)
		if (!ways[k].skip)
			print_way(s, ways, &ways[k]);
}

/* ---- files ------------------------------------------------------------------------------- */

/* Of a plain and of a split column: the numbers of the format. */
static unsigned type_number(const state *s)
{
	static const unsigned plain[] = {[1] = 0x04, [2] = 0x06, [4] = 0x08, [8] = 0x0A};
	static const unsigned split[] = {[1] = 0x04, [2] = 0x12, [4] = 0x14, [8] = 0x16};
	return (s->split ? split : plain)[s->elem];
}

/* Encodes a page to 'to', with the head of its block; returns the stored size. */
static size_t encode_page(state *s, const unsigned char *from, unsigned char *to, size_t cap)
{
	lade_error err;
	size_t size = 0, sum = s->coding->magic[0] == 'L' ? SUM_SIZE : 0;
	size_t head = s->coding->magic[0] ? BLOCK_HEAD + sum : 0;
	lade_result result = {.status = LADE_OK};
	lade_item item = {.src = &(lade_segment){.data = from, .size = s->page_size},
	                  .src_count = 1,
	                  .dst = lade_host_span(to + head, cap - head)};
	bench_ok(lade_encode_into(s->engine, s->spec, &item, 1, &result, NULL, &err), &err,
	         "encoding");
	size = result.size;
	if (head == 0)
		return size;
	if (size + head >= s->page_size)
		bench_die(s->set, "a page does not shrink: take another set");
	memcpy(to, s->coding->magic, 3);
	for (int i = 0; i < 3; i++) {
		to[3 + i] = (unsigned char)((size + sum) >> 8 * i);
		to[6 + i] = (unsigned char)(s->page_size >> 8 * i);
	}
	uint64_t hash = sum ? lade_checksum_of(LADE_XXH64, to + head, size) : 0;
	for (size_t i = 0; i < sum; i++)
		to[BLOCK_HEAD + i] = (unsigned char)(hash >> 8 * (7 - i));
	return size + head;
}

/* Makes the spec, the file, and the table of its pages. */
static void make_pages(state *s, make *m)
{
	lade_error err;
	char spec[64], name[24];
	size_t cap = s->page_size / 8 * 9 + 4096, at = 0;
	size_t of_column = s->column_size / s->page_size;
	unsigned char *to = bench_alloc(cap);
	snprintf(spec, sizeof spec, s->coding->magic[0] ? "split(%zu)|%s" : "split(%zu)", s->elem,
	         s->coding->spec);
	const char *text = s->split ? spec : s->coding->spec;
	bench_ok(lade_spec_parse(s->engine, text, &s->spec, &err), &err, text);
	for (size_t c = 0; c < s->options.columns; c++) {
		snprintf(name, sizeof name, "c%zu", c);
		make_column(m, make_field(m, name, "number", MAKE_TOP, 0, 0), type_number(s),
		            (unsigned)(8 * s->elem));
	}
	s->page_count = 0;
	for (size_t first = 0; first < of_column; first += PAGES_OF_CLUSTER) {
		for (size_t c = 0; c < s->options.columns; c++) {
			for (size_t i = first; i < first + PAGES_OF_CLUSTER; i++) {
				page *p = &s->pages[s->page_count++];
				p->to = c * s->column_size + i * s->page_size;
				p->size = encode_page(s, s->plain + p->to, to, cap);
				p->skip = s->coding->magic[0] == 'L' ? BLOCK_HEAD + SUM_SIZE
				          : s->coding->magic[0]      ? BLOCK_HEAD
				                                     : 0;
				make_page(m, (uint32_t)c, to, p->size,
				          (uint32_t)(s->page_size / s->elem));
				p->off = m->pages[m->page_count - 1].off;
				p->at = at;
				at += (p->size + SUM_SIZE + 15) / 16 * 16;
				if (at > s->coded_cap)
					bench_die(s->set, "more stored bytes than expected");
			}
		}
		make_cluster(m, PAGES_OF_CLUSTER * s->page_size / s->elem);
	}
	s->coded_size = at;
	free(to);
}

static void open_file(state *s)
{
	lade_error err;
	lade_source source;
	make m = {.fd = -1};
	mkdir(s->options.work, 0777); /* it may be there */
	snprintf(s->path, sizeof s->path, "%s/bench.root", s->options.work);
	s->fd = open(s->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (s->fd < 0)
		bench_die(s->path, "cannot be made");
	m.fd = s->fd;
	make_pages(s, &m);
	make_finish(&m, "bench");
	make_free(&m);
	fsync(s->fd); /* else the writing of dirty pages goes on beside the rounds */
	bench_ok(lade_source_file_open(s->path, NULL, &source, &err), &err, s->path);
	bench_ok(lade_rntuple_open(source, NULL, &s->tuple, &err), &err, s->path);
	run_pread(s, LADE_WHERE_AUTO, &err);
	for (size_t i = 0; i < s->page_count; i++) {
		const page *p = &s->pages[i];
		s->segments[i] = (lade_segment){.data = s->coded + p->at + p->skip,
		                                .size = p->size - p->skip,
		                                .place = {LADE_PINNED, 0},
		                                .decoded_size = s->page_size};
		s->items[i] = (lade_item){.src = &s->segments[i], .src_count = 1};
		s->items[i].dst = device_span(s);
		s->items[i].dst.data = s->result_dev + p->to;
		s->items[i].dst.size = s->page_size;
	}
}

static void close_file(state *s)
{
	lade_rntuple_unref(s->tuple);
	lade_spec_unref(s->spec);
	close(s->fd);
	unlink(s->path);
}

static void bench_set(state *s)
{
	static const char *const types[] = {"plain", "split"};
	for (const size_t *size = s->options.pages; *size; size++)
		for (size_t c = 0; c < CODING_COUNT; c++)
			for (size_t t = 0; t < (s->elem > 1 ? 2 : 1); t++) {
				s->page_size = *size;
				s->coding = &codings[c];
				s->split = t;
				/* Whole clusters of each column. */
				s->column_size = s->options.total / s->options.columns /
				                 (PAGES_OF_CLUSTER * *size) *
				                 (PAGES_OF_CLUSTER * *size);
				s->total = s->column_size * s->options.columns;
				if (!list_has(s->options.codecs, s->coding->name) ||
				    !list_has(s->options.types, types[t]) || s->total == 0)
					continue;
				open_file(s);
				bench_file(s);
				close_file(s);
			}
}

/* ---- data -------------------------------------------------------------------------------- */

/* A smooth field in steps of 1/64, as an instrument gives it. */
static unsigned char *make_waves(size_t size)
{
	float *out = bench_alloc(size);
	uint64_t seed = 20260101;
	for (size_t i = 0; i < size / sizeof *out; i++) {
		double x = (double)i, noise;
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		noise = (double)(seed >> 60) / 256;
		out[i] = (float)(floor((280 + 15 * sin(x / 3000) + 4 * sin(x / 170) + noise) * 64) /
		                 64);
	}
	return (unsigned char *)out;
}

static void load_set(state *s, const char *name)
{
	size_t size = 16 * MIB;
	unsigned char *data;
	s->set = name;
	s->elem = (size_t)(strrchr(name, '.')[2] - '0');
	if (s->options.data) {
		char path[4096];
		snprintf(path, sizeof path, "%s/%s", s->options.data, name);
		data = bench_load(path, 64 * MIB, &size);
		size -= size % s->elem;
	} else {
		data = make_waves(size);
	}
	for (size_t at = 0; at < s->options.total; at += size) {
		size_t left = s->options.total - at;
		memcpy(s->plain + at, data, left < size ? left : size);
	}
	free(data);
}

/* ---- the program ------------------------------------------------------------------------- */

static options parse(int argc, char **argv)
{
	options o = {.total = 268435456, .repeats = 7, .columns = 4};
	const char *v, *pages = "65536,1048576";
	for (int i = 1; i < argc; i++) {
		const char *a = argv[i];
		if ((v = bench_option("--work", a)))
			o.work = v;
		else if ((v = bench_option("--data", a)))
			o.data = v;
		else if ((v = bench_option("--sets", a)))
			o.sets = v;
		else if ((v = bench_option("--codecs", a)))
			o.codecs = v;
		else if ((v = bench_option("--types", a)))
			o.types = v;
		else if ((v = bench_option("--pages", a)))
			pages = v;
		else if ((v = bench_option("--total", a)))
			o.total = strtoull(v, NULL, 10);
		else if ((v = bench_option("--columns", a)))
			o.columns = strtoull(v, NULL, 10);
		else if ((v = bench_option("--threads", a)))
			o.threads = (unsigned)strtoul(v, NULL, 10);
		else if ((v = bench_option("--ways", a)))
			o.ways = v;
		else if ((v = bench_option("--memory", a)))
			o.memory = strtoull(v, NULL, 10);
		else if ((v = bench_option("--repeats", a)))
			o.repeats = strtoull(v, NULL, 10);
		else if ((v = bench_option("--device", a)))
			o.device = (int32_t)strtol(v, NULL, 10);
		else if ((v = bench_option("--out", a)))
			o.out = v;
		else
			bench_die(a, "is no option (they are at the head of rntuple_bench.c)");
	}
	list_numbers(pages, o.pages);
	if (!o.work)
		bench_die("--work", "a folder for the file is wanted");
	if (o.repeats == 0 || o.repeats > BENCH_ROUNDS_MAX)
		bench_die("--repeats", "1 to 1001");
	if (o.columns == 0 || o.columns > COLUMNS_MAX)
		bench_die("--columns", "1 to 64");
	for (const size_t *n = o.pages; *n; n++)
		if (*n % 64 || *n < 4 * KIB || *n > 16 * MIB - 64 ||
		    o.total / o.columns / *n / PAGES_OF_CLUSTER == 0)
			bench_die("--pages", "4096 to 16777152, 16 of each column in --total");
	return o;
}

int main(int argc, char **argv)
{
	static state s;
	s.options = parse(argc, argv);
	s.gpu = gpu_open(s.options.device);
	s.engine = lade_engine_default();
	if (!s.engine)
		bench_die("engine", "out of memory");
	gpu_print_machine(&s.gpu, stderr, argc, argv);

	size_t total = s.options.total, most = 0;
	for (const size_t *n = s.options.pages; *n; n++)
		most = total / *n > most ? total / *n : most;
	s.coded_cap = total / 8 * 9 + most * 64;
	s.coded = gpu_pinned(&s.gpu, s.coded_cap);
	s.result = gpu_pinned(&s.gpu, total);
	s.coded_dev = gpu_alloc(&s.gpu, s.coded_cap);
	s.result_dev = gpu_alloc(&s.gpu, total);
	s.plain = bench_alloc(total);
	s.pages = bench_alloc(most * sizeof *s.pages);
	s.items = bench_alloc(most * sizeof *s.items);
	s.segments = bench_alloc(most * sizeof *s.segments);
	s.out = open_out(s.options.out, stdout);
	fprintf(s.out, "way,codec,type,data,page,batch,ratio,us,q1,q3,coded_gbps,decoded_gbps,"
	               "percent,ok\n");
	char set[64] = "waves.f4";
	for (size_t i = 0; s.options.data ? set_name(s.options.sets, i, set) : i == 0; i++) {
		load_set(&s, set);
		bench_set(&s);
	}
	return s.bad;
}
