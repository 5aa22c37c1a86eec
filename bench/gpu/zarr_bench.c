/*
 * zarr_bench.c: times reads of whole Zarr arrays from a directory, page cache warm, into the memory
 * of a device, beside the same chunks fed from pinned memory.
 *
 *     zarr_bench --work=DIR [--data=DIR] [--sets=json.u1,...] [--codecs=lz4,copy]
 *                [--layouts=flat,grid,shard] [--chunks=65536,1048576] [--total=655360000]
 *                [--threads=0] [--memory=0] [--repeats=7] [--device=0] [--out=FILE] [--info=FILE]
 *
 * DIR of --work gets the arrays, one at a time, and is empty again at the end.  The sets are files
 * of bench/make_data.py; without --data there is one, "waves.f4", made here.  Layouts:
 *
 *     flat       format 2, one axis: each chunk is contiguous in the result
 *     grid       format 2, two axes: each chunk is a part of 64 rows of the result
 *     shard      format 3, as flat, in shards of 64 chunks
 *
 * All ways run in turn, the order turns from round to round, and medians are of the rounds:
 *
 *     read       lade_zarr_read() into device memory: the library chooses where it decodes
 *     device     the same, with the device chosen by the caller
 *     fed        lade_decode_into() of the same chunks, which are packed in pinned memory
 *     fed_device the same, with the device chosen by the caller
 *     host       lade_zarr_read() into pinned memory, decoded by the host, and one copy
 *     pread      opens and reads all files into pinned memory, and does nothing else
 *     copy       one copy of all encoded chunks from pinned memory to the device
 *
 * `percent` is the better of the two fed ways' time as a share of the way's, the median of the
 * rounds.  Each way's result is compared with the array first, byte by byte.  The status is 1 if
 * one is wrong, or if a way fails that leaves the choice to the library.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "gpu.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#define GRID_ROWS 64
#define GRID_WIDE 8
#define SHARD_CHUNKS 64

/* A codec as format 2 has it, and as format 3 does behind the codec "bytes". */
typedef struct coding {
	const char *name, *codecs2, *codecs3;
} coding;

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define BLOSC(cname, level, shuffle2, shuffle3) \
	"[{\"id\":\"blosc\",\"cname\":\"" cname "\",\"clevel\":" level \
	",\"shuffle\":" shuffle2 ",\"blocksize\":0}]", \
		"[" LITTLE ",{\"name\":\"blosc\",\"configuration\":{\"cname\":\"" cname \
		"\",\"clevel\":" level ",\"shuffle\":\"" shuffle3 \
		"\",\"typesize\":%d,\"blocksize\":0}}]" /* %d: the element's size */

static const coding codings[] = {
	{"lz4", "[{\"id\":\"lz4\",\"acceleration\":1}]",
         "[" LITTLE ",{\"name\":\"numcodecs.lz4\",\"configuration\":{\"acceleration\":1}}]"},
	{"copy", "[]", "[" LITTLE "]"},
	{"zstd", "[{\"id\":\"zstd\",\"level\":3}]",
         "[" LITTLE
         ",{\"name\":\"zstd\",\"configuration\":{\"level\":3,\"checksum\":false}}]"},
	{"zlib", "[{\"id\":\"zlib\",\"level\":6}]",
         "[" LITTLE ",{\"name\":\"numcodecs.zlib\",\"configuration\":{\"level\":6}}]"},
	{"gzip", "[{\"id\":\"gzip\",\"level\":6}]",
         "[" LITTLE ",{\"name\":\"gzip\",\"configuration\":{\"level\":6}}]"},
	{"blosc-lz4", BLOSC("lz4", "5", "1", "shuffle")},
	{"blosc-zstd-bit", BLOSC("zstd", "3", "2", "bitshuffle")},
};
#define CODING_COUNT (sizeof codings / sizeof *codings)

typedef struct options {
	const char *work, *data, *sets, *codecs, *layouts, *out, *info;
	size_t chunks[LIST_MOST + 1];
	size_t total, repeats;
	uint64_t memory;
	unsigned threads;
	int32_t device;
} options;

typedef struct state {
	options options;
	gpu gpu;
	lade_engine *engine;
	FILE *out, *info;
	bool bad; /* a way failed that must not */

	const char *set, *layout;
	char type[4]; /* of Zarr: "<f4" */
	size_t elem;
	unsigned char *set_data, *plain; /* the set; the whole array */
	size_t set_size;
	const coding *coding;

	size_t chunk, count, wide; /* 'wide': chunks beside each other */
	lade_zarr *array;
	lade_spec *own_spec;
	const lade_spec *spec;
	char (*paths)[LADE_KEY_MAX + 1]; /* of the files, below --work */
	size_t file_count;
	size_t *file_at, *file_size; /* in 'coded' */

	/* 'coded' has the files, one after the other; the result is in one of the others. */
	unsigned char *coded, *result, *result_dev, *coded_dev;
	size_t coded_cap, coded_size;
	lade_item *items;
	lade_segment *segments;
	lade_layout *item_layouts;
	size_t box[2];
	ptrdiff_t strides[2];
} state;

typedef struct way {
	const char *name;
	lade_status (*run)(state *s, lade_where where, lade_error *err);
	lade_where where;
	bool plain; /* there is a result: on the device */
	char failed[200];
	double us[BENCH_ROUNDS_MAX];
} way;

/* ---- the ways ---------------------------------------------------------------------------- */

static size_t total_of(const state *s)
{
	return s->count * s->chunk;
}

static lade_status read_to(state *s, lade_span span, lade_where where, lade_error *err)
{
	lade_zarr_target target = {.struct_size = sizeof target, .span = span};
	lade_zarr_read_options o = {.struct_size = sizeof o,
	                            .engine = s->engine,
	                            .threads = s->options.threads,
	                            .memory = s->options.memory,
	                            .where = where,
	                            .device = s->options.device,
	                            .stream = s->gpu.stream};
	return lade_zarr_read(s->array, NULL, &target, &o, NULL, err);
}

static lade_span device_span(const state *s)
{
	return (lade_span){s->result_dev, total_of(s), {LADE_DEVICE, s->options.device}};
}

static lade_status run_read(state *s, lade_where where, lade_error *err)
{
	return read_to(s, device_span(s), where, err);
}

static lade_status run_fed(state *s, lade_where where, lade_error *err)
{
	lade_batch_options o;
	lade_batch_options_init(&o);
	o.threads = s->options.threads;
	o.where = where;
	o.device = s->options.device;
	o.stream = s->gpu.stream;
	return lade_decode_into(s->engine, s->spec, s->items, s->count, NULL, &o, err);
}

static lade_status run_host(state *s, lade_where where, lade_error *err)
{
	lade_span pinned = {s->result, total_of(s), {LADE_PINNED, 0}};
	lade_status status = read_to(s, pinned, where, err);
	if (status == LADE_OK)
		gpu_up(&s->gpu, s->result_dev, s->result, total_of(s));
	return status;
}

static lade_status read_file(void *ctx, size_t i, lade_error *err)
{
	state *s = ctx;
	int fd = open(s->paths[i], O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : pread(fd, s->coded + s->file_at[i], s->file_size[i], 0);
	if (fd >= 0)
		close(fd);
	if (got == (ssize_t)s->file_size[i])
		return LADE_OK;
	snprintf(err->message, sizeof err->message, "%s cannot be read", s->paths[i]);
	return LADE_E_IO;
}

static lade_status run_pread(state *s, lade_where where, lade_error *err)
{
	lade_batch_options o;
	lade_batch_options_init(&o);
	o.threads = s->options.threads;
	(void)where;
	return lade_engine_each(s->engine, s->file_count, read_file, s, &o, err);
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
	size_t total = total_of(s);
	memset(s->result, 0xA5, total);
	gpu_fill(&s->gpu, s->result_dev, 0xA5, total);
	gpu_wait(&s->gpu);
	run_way(s, w);
	if (w->failed[0] || !w->plain)
		return;
	gpu_down(&s->gpu, s->result, s->result_dev, total);
	if (memcmp(s->result, s->plain, total) != 0) {
		snprintf(w->failed, sizeof w->failed, "NO: wrong bytes");
		s->bad = true;
	}
}

/* ---- rows -------------------------------------------------------------------------------- */

static void print_way(state *s, const way *ways, const way *w)
{
	const way *fed = NULL; /* the better one */
	double share[BENCH_ROUNDS_MAX], total = (double)total_of(s);
	size_t n = s->options.repeats;
	for (const way *f = ways; f->name; f++)
		if (strncmp(f->name, "fed", 3) == 0 && !f->failed[0] &&
		    (!fed || bench_stat_of(f->us, n).median < bench_stat_of(fed->us, n).median))
			fed = f;
	for (size_t i = 0; i < n; i++)
		share[i] = fed && !w->failed[0] ? 100 * fed->us[i] / w->us[i] : 0;
	bench_stat us = {0};
	if (!w->failed[0])
		us = bench_stat_of(w->us, n);
	double coded = (double)s->coded_size, per = us.median > 0 ? 1 / us.median / 1e3 : 0;
	fprintf(s->out, "%s,%s,%s,%s,%zu,%zu,%.4f,%.1f,%.1f,%.1f,%.2f,%.2f,%.1f,%s\n", w->name,
	        s->coding->name, s->layout, s->set, s->chunk, s->count, total / coded, us.median,
	        us.q1, us.q3, coded * per, total * per, bench_stat_of(share, n).median,
	        w->failed[0] ? w->failed : "yes");
	fflush(s->out);
}

/* What the plan and the router say of it. */
static void print_plan(state *s)
{
	lade_error err;
	lade_zarr_plan *plan = NULL;
	lade_zarr_target target = {.struct_size = sizeof target, .span = device_span(s)};
	lade_zarr_read_options o = {.struct_size = sizeof o, .engine = s->engine,
	                            .threads = s->options.threads};
	lade_zarr_plan_info info = {.struct_size = sizeof info};
	bench_ok(lade_zarr_plan_new(s->array, NULL, &target, &o, &plan, &err), &err, "plan");
	bench_ok(lade_zarr_plan_get_info(plan, &info, &err), &err, "plan");
	lade_zarr_plan_free(plan);
	fprintf(s->info, "%s %s %s %zu: %s\n", s->coding->name, s->layout, s->set, s->chunk,
	        info.text);

	lade_candidate candidates[32];
	lade_call call = {.struct_size = sizeof call, .direction = LADE_DECODE, .spec = s->spec,
	                  .items = s->items, .count = s->count};
	lade_batch_options b;
	lade_batch_options_init(&b);
	call.options = &b;
	size_t count = 0;
	lade_status status = lade_explain(s->engine, &call, candidates, 32, &count, &err);
	for (size_t i = 0; status == LADE_OK && i < count; i++)
		fprintf(s->info, "    %s %s: %s\n", candidates[i].chosen ? "chosen" : "      ",
		        candidates[i].implementation, candidates[i].reason);
	fflush(s->info);
}

static void bench_array(state *s)
{
	static way ways[] = {
		{.name = "read", .run = run_read, .plain = true},
		{.name = "device", .run = run_read, .where = LADE_WHERE_DEVICE, .plain = true},
		{.name = "fed", .run = run_fed, .plain = true},
		{.name = "fed_device", .run = run_fed, .where = LADE_WHERE_DEVICE, .plain = true},
		{.name = "host", .run = run_host, .where = LADE_WHERE_HOST, .plain = true},
		{.name = "pread", .run = run_pread},
		{.name = "copy", .run = run_copy},
		{.name = NULL},
	};
	enum { COUNT = sizeof ways / sizeof *ways - 1 };
	print_plan(s);
	for (size_t k = 0; k < COUNT; k++) {
		ways[k].failed[0] = 0;
		check_way(s, &ways[k]);
	}
	for (size_t r = 0; r < s->options.repeats; r++) {
		for (size_t k = 0; k < COUNT; k++) {
			way *w = &ways[(k + r) % COUNT];
			double start = bench_now();
			if (!w->failed[0])
				run_way(s, w);
			w->us[r] = 1e6 * (bench_now() - start);
		}
	}
	for (size_t k = 0; k < COUNT; k++)
		print_way(s, ways, &ways[k]);
}

/* ---- arrays ------------------------------------------------------------------------------ */

static lade_store *work_open(const state *s)
{
	lade_error err;
	lade_store *store;
	lade_directory_options d = {.struct_size = sizeof d, .flags = LADE_DIRECTORY_CREATE};
	bench_ok(lade_store_directory_open(s->options.work, &d, &store, &err), &err, "--work");
	return store;
}

/* Makes the array and writes it. */
static void make_array(state *s)
{
	lade_error err;
	bool grid = s->wide > 1, shards = s->layout[0] == 's';
	uint64_t elements = s->chunk / s->elem, per = grid ? elements / GRID_ROWS : elements;
	uint64_t shape[2] = {s->count * elements, 0}, chunk[2] = {per, 0}, inner[1] = {per};
	char codecs[400];
	if (grid) {
		shape[0] = s->count / s->wide * GRID_ROWS;
		shape[1] = s->wide * per;
		chunk[0] = GRID_ROWS;
		chunk[1] = per;
	}
	if (shards)
		chunk[0] *= SHARD_CHUNKS;
	snprintf(codecs, sizeof codecs, shards ? s->coding->codecs3 : s->coding->codecs2,
	         (int)s->elem);
	lade_zarr_description description = {.struct_size = sizeof description,
	                                     .kind = LADE_ZARR_ARRAY,
	                                     .format = shards ? 3 : 2,
	                                     .ndim = grid ? 2 : 1,
	                                     .shape = shape,
	                                     .chunk_shape = chunk,
	                                     .type = s->type,
	                                     .codecs = codecs,
	                                     .inner_shape = shards ? inner : NULL};
	lade_zarr_create_options create = {.struct_size = sizeof create,
	                                   .exists = LADE_ZARR_REPLACE, .no_parents = true};
	lade_zarr_source source = {.struct_size = sizeof source,
	                           .span = lade_host_cspan(s->plain, total_of(s))};
	lade_store *store = work_open(s);
	bench_ok(lade_zarr_create(store, "array", &description, &create, &s->array, &err), &err,
	         s->coding->name);
	bench_ok(lade_zarr_write(s->array, NULL, &source, NULL, NULL, &err), &err, "writing");
	lade_store_unref(store);
	sync(); /* else the writing of dirty pages goes on beside the rounds */
}

static void delete_array(state *s)
{
	lade_error err;
	lade_store *store = work_open(s);
	lade_zarr_unref(s->array);
	lade_spec_unref(s->own_spec);
	s->own_spec = NULL;
	bench_ok(lade_zarr_delete(store, "array", &err), &err, "deleting");
	lade_store_unref(store);
}

/* Loads all files of chunks into 'coded'. */
static void load_files(state *s)
{
	lade_error err;
	const lade_zarr_array *array = lade_zarr_as_array(s->array);
	size_t at = 0, n = 0;
	for (uint64_t i = 0; i < array->axes[0].chunk_count; i++) {
		for (uint64_t j = 0; j < (array->ndim > 1 ? s->wide : 1); j++, n++) {
			char key[LADE_KEY_MAX + 1];
			struct stat found;
			bench_ok(lade_zarr_chunk_key(s->array, (uint64_t[]){i, j}, key, &err), &err,
			         "key");
			if ((size_t)snprintf(s->paths[n], sizeof s->paths[n], "%s/%s",
			                     s->options.work, key) >= sizeof s->paths[n] ||
			    stat(s->paths[n], &found))
				bench_die(key, "is not there");
			s->file_at[n] = at;
			s->file_size[n] = (size_t)found.st_size;
			at += (s->file_size[n] + 15) / 16 * 16;
			if (at > s->coded_cap)
				bench_die(key, "more encoded bytes than expected");
			bench_ok(read_file(s, n, &err), &err, "file");
		}
	}
	s->file_count = n;
	s->coded_size = at;
}

/* Where chunk 'i' is in 'coded', with its header. */
static const unsigned char *find_chunk(const state *s, size_t i, size_t extra, size_t *size)
{
	size_t file = s->layout[0] == 's' ? i / SHARD_CHUNKS : i;
	const unsigned char *data = s->coded + s->file_at[file];
	*size = s->file_size[file];
	if (s->layout[0] != 's')
		return data;
	uint64_t part[2]; /* offset and size: the index is at the end of the shard */
	memcpy(part, data + *size - extra - 16 * (SHARD_CHUNKS - i % SHARD_CHUNKS), sizeof part);
	if (part[0] > *size || part[1] > *size - part[0])
		bench_die("shard", "an index that is beyond its end");
	*size = (size_t)part[1];
	return data + part[0];
}

/* The items that decode the same chunks from 'coded'. */
static void set_items(state *s)
{
	const lade_zarr_chain *chain = &lade_zarr_as_array(s->array)->chain;
	size_t extra = chain->shard ? chain->shard->index_extra : 0;
	size_t row = s->chunk / GRID_ROWS;
	lade_error err;
	if (chain->shard)
		chain = &chain->shard->chunks;
	size_t header = chain->step_count ? chain->steps[0].header_size : 0;
	if (chain->step_count > 1)
		bench_die(s->coding->name, "one step is wanted");
	if (chain->step_count == 0)
		bench_ok(lade_spec_parse(NULL, "copy", &s->own_spec, &err), &err, "copy");
	s->spec = chain->step_count ? chain->steps[0].spec : s->own_spec;
	s->box[0] = GRID_ROWS;
	s->box[1] = row / s->elem;
	s->strides[0] = (ptrdiff_t)(s->wide * row);
	s->strides[1] = (ptrdiff_t)s->elem;
	for (size_t i = 0; i < s->count; i++) {
		size_t size;
		const unsigned char *data = find_chunk(s, i, extra, &size);
		s->segments[i] = (lade_segment){.data = data + header, .size = size - header,
		                                .place = {LADE_PINNED, 0},
		                                .decoded_size = s->chunk};
		s->items[i] = (lade_item){.src = &s->segments[i], .src_count = 1};
		s->items[i].dst = device_span(s);
		if (s->wide == 1) {
			s->items[i].dst.data = s->result_dev + i * s->chunk;
			s->items[i].dst.size = s->chunk;
			continue;
		}
		s->item_layouts[i] = (lade_layout){
			.struct_size = sizeof(lade_layout), .elem_size = s->elem, .ndim = 2,
			.shape = s->box, .strides = s->strides,
			.offset = i / s->wide * GRID_ROWS * s->wide * row + i % s->wide * row};
		s->items[i].layout = &s->item_layouts[i];
	}
}

static void bench_set(state *s)
{
	static const char *const layouts[] = {"flat", "grid", "shard"};
	for (const size_t *chunk = s->options.chunks; *chunk; chunk++)
		for (size_t c = 0; c < CODING_COUNT; c++)
			for (size_t l = 0; l < 3; l++) {
				s->chunk = *chunk;
				s->coding = &codings[c];
				s->layout = layouts[l];
				s->wide = l == 1 ? GRID_WIDE : 1;
				/* Whole shards and whole rows of chunks. */
				s->count = s->options.total / *chunk / SHARD_CHUNKS * SHARD_CHUNKS;
				if (!list_has(s->options.codecs, s->coding->name) ||
				    !list_has(s->options.layouts, s->layout) || s->count == 0)
					continue;
				make_array(s);
				load_files(s);
				set_items(s);
				bench_array(s);
				delete_array(s);
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
	const char *dot = strrchr(name, '.');
	s->set = name;
	s->elem = (size_t)(dot[2] - '0');
	snprintf(s->type, sizeof s->type, "%c%c%c", s->elem == 1 ? '|' : '<', dot[1], dot[2]);
	if (s->options.data) {
		char path[4096];
		snprintf(path, sizeof path, "%s/%s", s->options.data, name);
		s->set_data = bench_load(path, 64 * MIB, &s->set_size);
		s->set_size -= s->set_size % s->elem;
	} else {
		s->set_size = 16 * MIB;
		s->set_data = make_waves(s->set_size);
	}
	for (size_t at = 0; at < s->options.total; at += s->set_size) {
		size_t left = s->options.total - at;
		memcpy(s->plain + at, s->set_data, left < s->set_size ? left : s->set_size);
	}
	free(s->set_data);
}

/* ---- the program ------------------------------------------------------------------------- */

static options parse(int argc, char **argv)
{
	options o = {.total = 655360000, .repeats = 7, .codecs = "lz4,copy", .layouts = "flat"};
	const char *v, *chunks = "65536,1048576";
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
		else if ((v = bench_option("--layouts", a)))
			o.layouts = v;
		else if ((v = bench_option("--chunks", a)))
			chunks = v;
		else if ((v = bench_option("--total", a)))
			o.total = strtoull(v, NULL, 10);
		else if ((v = bench_option("--memory", a)))
			o.memory = strtoull(v, NULL, 10);
		else if ((v = bench_option("--threads", a)))
			o.threads = (unsigned)strtoul(v, NULL, 10);
		else if ((v = bench_option("--repeats", a)))
			o.repeats = strtoull(v, NULL, 10);
		else if ((v = bench_option("--device", a)))
			o.device = (int32_t)strtol(v, NULL, 10);
		else if ((v = bench_option("--out", a)))
			o.out = v;
		else if ((v = bench_option("--info", a)))
			o.info = v;
		else
			bench_die(a, "is no option (they are listed at the head of zarr_bench.c)");
	}
	list_numbers(chunks, o.chunks);
	if (!o.work)
		bench_die("--work", "a folder for the arrays is wanted");
	if (o.repeats == 0 || o.repeats > BENCH_ROUNDS_MAX)
		bench_die("--repeats", "1 to 1001");
	for (const size_t *n = o.chunks; *n; n++)
		if (MIB % *n || *n < 4 * KIB || o.total < SHARD_CHUNKS * *n)
			bench_die("--chunks",
			          "powers of two from 4096 to 1048576, 64 of them in --total");
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
	s.info = open_out(s.options.info, stderr);
	gpu_print_machine(&s.gpu, s.info, argc, argv);

	size_t total = s.options.total, most = 0;
	for (const size_t *chunk = s.options.chunks; *chunk; chunk++)
		most = total / *chunk > most ? total / *chunk : most;
	s.coded_cap = total / 8 * 9 + most * 16; /* no codec here grows a chunk by more */
	s.coded = gpu_pinned(&s.gpu, s.coded_cap);
	s.result = gpu_pinned(&s.gpu, total);
	s.coded_dev = gpu_alloc(&s.gpu, s.coded_cap);
	s.result_dev = gpu_alloc(&s.gpu, total);
	s.plain = bench_alloc(total);
	s.paths = bench_alloc(most * sizeof *s.paths);
	s.file_at = bench_alloc(most * sizeof *s.file_at);
	s.file_size = bench_alloc(most * sizeof *s.file_size);
	s.items = bench_alloc(most * sizeof *s.items);
	s.segments = bench_alloc(most * sizeof *s.segments);
	s.item_layouts = bench_alloc(most * sizeof *s.item_layouts);
	s.out = open_out(s.options.out, stdout);
	fprintf(s.out, "way,codec,layout,data,chunk,batch,ratio,us,q1,q3,coded_gbps,decoded_gbps,"
	               "percent,ok\n");
	char set[64] = "waves.f4";
	for (size_t i = 0; s.options.data ? set_name(s.options.sets, i, set) : i == 0; i++) {
		load_set(&s, set);
		bench_set(&s);
	}
	return s.bad;
}
