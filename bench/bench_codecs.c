/*
 * bench_codecs.c: each codec through the engine against a plain loop over its library, in the
 * same process, on the same bytes.
 *
 *     bench_codecs [--data=DIR] [--set=json.u1] [--mib=64] [--chunk=65536] [--batch=0]
 *                  [--rounds=15] [--codec=TEXT] [--part=loop|threads|call|memcpy] [--csv]
 *
 * Four parts.  loop: one thread, all chunks, lade's time over the library's time.  threads: two
 * threads against one, where one thread runs below 40 % of memcpy's rate.  call: what one call
 * with one 4 KiB chunk adds to the library's own time.  memcpy: the rate of copying.
 * --batch is the number of chunks in one call of the engine; 0 means all of them in one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "common.h"

#include <blosc.h>
#include <libdeflate.h>
#include <lz4.h>
#include <lz4hc.h>
#include <pthread.h>
#include <snappy-c.h>
#include <zstd.h>

/* ---- the libraries, each with what a careful caller keeps between chunks ------------------ */

typedef struct library {
	const char *spec; /* lade's name of the same thing */
	int level;
	const char *inner; /* blosc's inner codec */
	size_t (*bound)(size_t size);
	size_t (*encode)(const struct library *lib, const void *src, size_t size, void *dst,
	                 size_t cap);
	size_t (*decode)(const struct library *lib, const void *src, size_t size, void *dst,
	                 size_t cap);
} library;

static ZSTD_CCtx *zstd_cctx;
static ZSTD_DCtx *zstd_dctx;
static struct libdeflate_compressor *deflater;
static struct libdeflate_decompressor *inflater;
static void *lz4_state, *lz4hc_state;

static size_t lz4_bound(size_t size)
{
	return (size_t)LZ4_compressBound((int)size);
}

static size_t lz4_encode(const library *lib, const void *src, size_t size, void *dst, size_t cap)
{
	(void)lib;
	return (size_t)LZ4_compress_fast_extState(lz4_state, src, dst, (int)size, (int)cap, 1);
}

static size_t lz4hc_encode(const library *lib, const void *src, size_t size, void *dst, size_t cap)
{
	return (size_t)LZ4_compress_HC_extStateHC(lz4hc_state, src, dst, (int)size, (int)cap,
	                                          lib->level);
}

static size_t lz4_decode(const library *lib, const void *src, size_t size, void *dst, size_t cap)
{
	(void)lib;
	return (size_t)LZ4_decompress_safe(src, dst, (int)size, (int)cap);
}

static size_t snappy_encode(const library *lib, const void *src, size_t size, void *dst, size_t cap)
{
	(void)lib;
	return snappy_compress(src, size, dst, &cap) == SNAPPY_OK ? cap : 0;
}

static size_t snappy_decode(const library *lib, const void *src, size_t size, void *dst, size_t cap)
{
	(void)lib;
	return snappy_uncompress(src, size, dst, &cap) == SNAPPY_OK ? cap : 0;
}

static size_t zstd_encode(const library *lib, const void *src, size_t size, void *dst, size_t cap)
{
	return ZSTD_compressCCtx(zstd_cctx, dst, cap, src, size, lib->level);
}

static size_t zstd_decode(const library *lib, const void *src, size_t size, void *dst, size_t cap)
{
	(void)lib;
	return ZSTD_decompressDCtx(zstd_dctx, dst, cap, src, size);
}

static size_t deflate_bound(size_t size)
{
	return libdeflate_gzip_compress_bound(deflater, size);
}

static size_t deflate_encode(const library *lib, const void *src, size_t size, void *dst,
                             size_t cap)
{
	(void)lib;
	return libdeflate_deflate_compress(deflater, src, size, dst, cap);
}

static size_t deflate_decode(const library *lib, const void *src, size_t size, void *dst,
                             size_t cap)
{
	size_t got = 0;
	(void)lib;
	return libdeflate_deflate_decompress(inflater, src, size, dst, cap, &got) ? 0 : got;
}

static size_t zlib_encode(const library *lib, const void *src, size_t size, void *dst, size_t cap)
{
	(void)lib;
	return libdeflate_zlib_compress(deflater, src, size, dst, cap);
}

static size_t zlib_decode(const library *lib, const void *src, size_t size, void *dst, size_t cap)
{
	size_t got = 0;
	(void)lib;
	return libdeflate_zlib_decompress(inflater, src, size, dst, cap, &got) ? 0 : got;
}

static size_t gzip_encode(const library *lib, const void *src, size_t size, void *dst, size_t cap)
{
	(void)lib;
	return libdeflate_gzip_compress(deflater, src, size, dst, cap);
}

static size_t gzip_decode(const library *lib, const void *src, size_t size, void *dst, size_t cap)
{
	size_t got = 0;
	(void)lib;
	return libdeflate_gzip_decompress(inflater, src, size, dst, cap, &got) ? 0 : got;
}

static size_t blosc_bound(size_t size)
{
	return size + BLOSC_MAX_OVERHEAD;
}

static size_t blosc_encode(const library *lib, const void *src, size_t size, void *dst, size_t cap)
{
	int n = blosc_compress_ctx(lib->level, BLOSC_SHUFFLE, 4, size, src, dst, cap, lib->inner, 0,
	                           1);
	return n > 0 ? (size_t)n : 0;
}

static size_t blosc_decode(const library *lib, const void *src, size_t size, void *dst, size_t cap)
{
	(void)lib;
	(void)size;
	int n = blosc_decompress_ctx(src, dst, cap, 1);
	return n > 0 ? (size_t)n : 0;
}

static const library libraries[] = {
	{"lz4", 0, NULL, lz4_bound, lz4_encode, lz4_decode},
	{"lz4(level=9)", 9, NULL, lz4_bound, lz4hc_encode, lz4_decode},
	{"snappy", 0, NULL, snappy_max_compressed_length, snappy_encode, snappy_decode},
	{"zstd(level=1)", 1, NULL, ZSTD_compressBound, zstd_encode, zstd_decode},
	{"zstd(level=3)", 3, NULL, ZSTD_compressBound, zstd_encode, zstd_decode},
	{"deflate(level=6)", 6, NULL, deflate_bound, deflate_encode, deflate_decode},
	{"zlib(level=6)", 6, NULL, deflate_bound, zlib_encode, zlib_decode},
	{"gzip(level=6)", 6, NULL, deflate_bound, gzip_encode, gzip_decode},
	{"blosc(lz4,level=5,typesize=4)", 5, "lz4", blosc_bound, blosc_encode, blosc_decode},
	{"blosc(zstd,level=5,typesize=4)", 5, "zstd", blosc_bound, blosc_encode, blosc_decode},
};
#define LIBRARY_COUNT (sizeof libraries / sizeof *libraries)

static void libraries_init(void)
{
	zstd_cctx = ZSTD_createCCtx();
	zstd_dctx = ZSTD_createDCtx();
	deflater = libdeflate_alloc_compressor(6);
	inflater = libdeflate_alloc_decompressor();
	lz4_state = bench_alloc((size_t)LZ4_sizeofState());
	lz4hc_state = bench_alloc((size_t)LZ4_sizeofStateHC());
	if (!zstd_cctx || !zstd_dctx || !deflater || !inflater)
		bench_die("codecs", "out of memory");
}

static void libraries_free(void)
{
	ZSTD_freeCCtx(zstd_cctx);
	ZSTD_freeDCtx(zstd_dctx);
	libdeflate_free_compressor(deflater);
	libdeflate_free_decompressor(inflater);
	free(lz4_state);
	free(lz4hc_state);
}

/* ---- one job: chunks, and both ways of doing them ------------------------------------------ */

typedef struct job {
	const library *lib;
	const uint8_t *data;
	size_t size, chunk, count, stride; /* 'stride': bytes kept for an encoded chunk */
	size_t batch;                      /* chunks a call */
	uint8_t *packed, *out;             /* count * stride, and size bytes */
	size_t *packed_size;
	lade_engine *engine;
	lade_spec *spec;
	unsigned threads;
	lade_segment *raw_segments, *packed_segments;
	lade_item *encode_items, *decode_items;
	lade_result *results;
	lade_direction halves; /* of split_run() */
} job;

static size_t chunk_size(const job *j, size_t i)
{
	size_t off = i * j->chunk;
	return j->size - off < j->chunk ? j->size - off : j->chunk;
}

static void library_encode(void *ctx)
{
	job *j = ctx;
	for (size_t i = 0; i < j->count; i++) {
		j->packed_size[i] = j->lib->encode(j->lib, j->data + i * j->chunk, chunk_size(j, i),
		                                   j->packed + i * j->stride, j->stride);
		if (j->packed_size[i] == 0 || j->packed_size[i] > j->stride)
			bench_die(j->lib->spec, "the library failed to encode");
	}
}

static void library_decode(void *ctx)
{
	job *j = ctx;
	for (size_t i = 0; i < j->count; i++) {
		size_t want = chunk_size(j, i);
		if (j->lib->decode(j->lib, j->packed + i * j->stride, j->packed_size[i],
		                   j->out + i * j->chunk, want) != want)
			bench_die(j->lib->spec, "the library failed to decode");
	}
}

static void engine_run(job *j, lade_direction direction)
{
	lade_error err;
	lade_batch_options options = {.struct_size = sizeof options, .threads = j->threads};
	for (size_t i = 0; i < j->count; i += j->batch) {
		size_t n = j->count - i < j->batch ? j->count - i : j->batch;
		lade_status status =
			direction == LADE_ENCODE
				? lade_encode_into(j->engine, j->spec, j->encode_items + i, n,
		                                   j->results + i, &options, &err)
				: lade_decode_into(j->engine, j->spec, j->decode_items + i, n,
		                                   j->results + i, &options, &err);
		if (status != LADE_OK)
			bench_die(j->lib->spec, err.message);
	}
}

static void engine_encode(void *ctx)
{
	engine_run(ctx, LADE_ENCODE);
}

static void engine_decode(void *ctx)
{
	engine_run(ctx, LADE_DECODE);
}

static void copy_all(void *ctx)
{
	job *j = ctx;
	memcpy(j->out, j->data, j->size);
}

static void *zeroed(size_t count, size_t size)
{
	void *p = calloc(count, size);
	if (!p)
		bench_die("memory", "out of memory");
	return p;
}

static job job_new(const library *lib, lade_engine *engine, const void *data, size_t size,
                   size_t chunk, size_t batch)
{
	lade_error err;
	job j = {.lib = lib, .data = data, .size = size, .chunk = chunk, .engine = engine};
	if (lade_spec_parse(NULL, lib->spec, &j.spec, &err))
		bench_die(lib->spec, err.message);
	size_t ours = lade_spec_bound(j.spec, chunk), theirs = lib->bound(chunk);
	j.count = (size + chunk - 1) / chunk;
	j.batch = batch ? batch : j.count;
	j.threads = 1;
	j.stride = ((ours > theirs ? ours : theirs) + 63) / 64 * 64;
	j.packed = bench_alloc(j.count * j.stride);
	j.out = bench_alloc(size);
	j.packed_size = zeroed(j.count, sizeof *j.packed_size);
	j.raw_segments = zeroed(j.count, sizeof *j.raw_segments);
	j.packed_segments = zeroed(j.count, sizeof *j.packed_segments);
	j.encode_items = zeroed(j.count, sizeof *j.encode_items);
	j.decode_items = zeroed(j.count, sizeof *j.decode_items);
	j.results = zeroed(j.count, sizeof *j.results);
	for (size_t i = 0; i < j.count; i++) {
		j.raw_segments[i].data = j.data + i * chunk;
		j.raw_segments[i].size = chunk_size(&j, i);
		j.encode_items[i].src = &j.raw_segments[i];
		j.encode_items[i].src_count = 1;
		j.encode_items[i].dst = lade_host_span(j.packed + i * j.stride, j.stride);
		j.packed_segments[i].data = j.packed + i * j.stride;
		j.decode_items[i].src = &j.packed_segments[i];
		j.decode_items[i].src_count = 1;
		j.decode_items[i].dst = lade_host_span(j.out + i * chunk, chunk_size(&j, i));
	}
	return j;
}

/*
 * Makes the encoded chunks that the decoding arms read: with the library, so that both arms
 * decode the same bytes.  And sees that lade's own come back right too.
 */
static void job_prepare_decoding(job *j)
{
	for (int by_lade = 1; by_lade >= 0; by_lade--) {
		if (by_lade)
			engine_encode(j);
		else
			library_encode(j);
		for (size_t i = 0; i < j->count; i++)
			j->packed_segments[i].size =
				by_lade ? j->results[i].size : j->packed_size[i];
		memset(j->out, 0xA5, j->size);
		engine_decode(j);
		if (memcmp(j->out, j->data, j->size) != 0)
			bench_die(j->lib->spec,
			          "the decoded bytes are not those that were encoded");
	}
}

static void job_free(job *j)
{
	lade_spec_unref(j->spec);
	free(j->packed);
	free(j->out);
	free(j->packed_size);
	free(j->raw_segments);
	free(j->packed_segments);
	free(j->encode_items);
	free(j->decode_items);
	free(j->results);
}

/* ---- the parts ---------------------------------------------------------------------------- */

typedef struct settings {
	const char *dir, *set, *codec, *part;
	size_t mib, chunk, batch;
	bench_plan plan;
	bool csv;
	double memcpy_mbs;
} settings;

static bench_arm arm_a, arm_b;

static void two_arms(void (*a)(void *), void *a_ctx, void (*b)(void *), void *b_ctx,
                     bench_plan plan)
{
	bench_arm *arms[2] = {&arm_a, &arm_b};
	arm_a.run = a;
	arm_a.ctx = a_ctx;
	arm_b.run = b;
	arm_b.ctx = b_ctx;
	bench_rounds(arms, 2, plan);
}

static double packed_ratio(const job *j)
{
	size_t total = 0;
	for (size_t i = 0; i < j->count; i++)
		total += j->packed_size[i];
	return total ? (double)j->size / (double)total : 1;
}

static void print_title(const settings *s, const char *title, const char *base, const char *ours,
                        const char *result)
{
	if (!s->csv)
		printf("\n%s\n%-30s %-6s %8s %12s %12s %9s  quartiles\n", title, "codec", "dir",
		       "ratio", base, ours, result);
}

/* One line: what is compared with ('base'), lade's figure, and what becomes of the two. */
static void print_row(const settings *s, const char *part, const job *j, const char *codec,
                      const char *direction, double base, double ours, const char *unit,
                      bench_stat r)
{
	if (s->csv)
		printf("%s,\"%s\",%s,%zu,%zu,%.3f,%.3f,%.3f,%s,%.4f,%.4f,%.4f\n", part, codec,
		       direction, j->chunk, j->batch, packed_ratio(j), base, ours, unit, r.median,
		       r.q1, r.q3);
	else
		printf("%-30s %-6s %8.3f %12.2f %12.2f %9.3f  %.3f..%.3f\n", codec, direction,
		       packed_ratio(j), base, ours, r.median, r.q1, r.q3);
	fflush(stdout);
}

/* lade's time over the library's: one thread, both directions.  Processor time, which a busy
 * neighbour disturbs least. */
static void part_loop(settings *s, job *j)
{
	bench_plan plan = s->plan;
	plan.clock = CLOCK_PROCESS_CPUTIME_ID;
	for (int decode = 0; decode < 2; decode++) {
		if (decode)
			job_prepare_decoding(j);
		two_arms(decode ? engine_decode : engine_encode, j,
		         decode ? library_decode : library_encode, j, plan);
		print_row(s, "loop", j, j->lib->spec, decode ? "decode" : "encode",
		          bench_mbs(j->size, bench_seconds(&arm_b).median),
		          bench_mbs(j->size, bench_seconds(&arm_a).median), "MB/s",
		          bench_ratio(&arm_a, &arm_b));
	}
}

/* Half of a job's items, on a thread of its own, which asks the engine for one thread. */
static void *half_run(void *ctx)
{
	job *j = ctx;
	engine_run(j, j->halves);
	return NULL;
}

/*
 * What two threads of this machine can do at best: each takes half of the chunks and neither knows
 * of the other.  The job's 'halves' says which direction.
 */
static void split_run(void *ctx)
{
	job first = *(job *)ctx, second = first;
	pthread_t thread;
	first.count /= 2;
	second.count -= first.count;
	second.encode_items += first.count;
	second.decode_items += first.count;
	second.results += first.count;
	if (first.count == 0)
		bench_die("--part=threads", "wants two chunks or more");
	first.batch = first.count;
	second.batch = second.count;
	if (pthread_create(&thread, NULL, half_run, &second))
		bench_die("threads", "cannot be started");
	half_run(&first);
	pthread_join(thread, NULL);
}

/*
 * Two threads against one; the result is how many times as fast two are.  A second row, "split",
 * says how many times as fast two unconnected threads are: what is missing there is not lade's.
 */
static void part_threads(settings *s, job *j)
{
	static bench_arm arm_split;
	bench_arm *arms[3] = {&arm_a, &arm_b, &arm_split};
	job one = *j;
	j->threads = 2;
	for (int decode = 0; decode < 2; decode++) {
		if (decode)
			job_prepare_decoding(j);
		one.halves = decode ? LADE_DECODE : LADE_ENCODE;
		arm_a.run = arm_b.run = decode ? engine_decode : engine_encode;
		arm_split.run = split_run;
		arm_a.ctx = arm_split.ctx = &one;
		arm_b.ctx = j;
		bench_rounds(arms, 3, s->plan);
		double single = bench_mbs(j->size, bench_seconds(&arm_a).median);
		char name[64];
		snprintf(name, sizeof name, "%s%s", j->lib->spec,
		         single < 0.4 * s->memcpy_mbs ? "" : " (fast)");
		print_row(s, "threads", j, name, decode ? "decode" : "encode", single,
		          bench_mbs(j->size, bench_seconds(&arm_b).median), "MB/s",
		          bench_ratio(&arm_a, &arm_b));
		print_row(s, "split", j, "  split", decode ? "decode" : "encode", single,
		          bench_mbs(j->size, bench_seconds(&arm_split).median), "MB/s",
		          bench_ratio(&arm_a, &arm_split));
	}
	j->threads = 1;
}

/* Microseconds that one call adds to the library's own time for the same chunk. */
static void part_call(settings *s, job *j)
{
	bench_plan plan = s->plan;
	plan.clock = CLOCK_PROCESS_CPUTIME_ID;
	/* A small difference of two times: more rounds, and shorter ones. */
	plan.rounds = 5 * (plan.rounds ? plan.rounds : 15);
	plan.sample = 0.005;
	for (int decode = 0; decode < 2; decode++) {
		if (decode)
			job_prepare_decoding(j);
		two_arms(decode ? engine_decode : engine_encode, j,
		         decode ? library_decode : library_encode, j, plan);
		static double added[BENCH_ROUNDS_MAX];
		for (size_t r = 0; r < arm_a.rounds; r++)
			added[r] = 1e6 * (arm_a.seconds[r] - arm_b.seconds[r]);
		print_row(s, "call", j, j->lib->spec, decode ? "decode" : "encode",
		          1e6 * bench_seconds(&arm_b).median, 1e6 * bench_seconds(&arm_a).median,
		          "us", bench_stat_of(added, arm_a.rounds));
	}
}

/* Copying the same bytes, in the same buffers; the result is GB/s. */
static void part_memcpy(settings *s, job *j, bool print)
{
	static double rate[BENCH_ROUNDS_MAX];
	bench_arm *arms[1] = {&arm_a};
	arm_a.run = copy_all;
	arm_a.ctx = j;
	bench_rounds(arms, 1, s->plan);
	for (size_t r = 0; r < arm_a.rounds; r++)
		rate[r] = bench_mbs(j->size, arm_a.seconds[r]) / 1e3;
	bench_stat stat = bench_stat_of(rate, arm_a.rounds);
	s->memcpy_mbs = 1e3 * stat.median;
	if (print)
		print_row(s, "memcpy", j, "memcpy", "copy", s->memcpy_mbs, s->memcpy_mbs, "MB/s",
		          stat);
}

static bool wanted(const settings *s, const char *part)
{
	return !s->part || strcmp(s->part, part) == 0;
}

/* Runs one part for every codec that is asked for. */
static void each_codec(settings *s, void (*part)(settings *, job *), lade_engine *engine,
                       const void *data, size_t size, size_t chunk, size_t batch)
{
	for (size_t c = 0; c < LIBRARY_COUNT; c++) {
		if (s->codec && strcmp(s->codec, libraries[c].spec) != 0)
			continue;
		job j = job_new(&libraries[c], engine, data, size, chunk, batch);
		part(s, &j);
		job_free(&j);
	}
}

static void settings_parse(settings *s, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *v;
		if ((v = bench_option("--data", argv[i])))
			s->dir = v;
		else if ((v = bench_option("--set", argv[i])))
			s->set = v;
		else if ((v = bench_option("--codec", argv[i])))
			s->codec = v;
		else if ((v = bench_option("--part", argv[i])))
			s->part = v;
		else if ((v = bench_option("--mib", argv[i])))
			s->mib = strtoul(v, NULL, 10);
		else if ((v = bench_option("--chunk", argv[i])))
			s->chunk = strtoul(v, NULL, 10);
		else if ((v = bench_option("--batch", argv[i])))
			s->batch = strtoul(v, NULL, 10);
		else if ((v = bench_option("--rounds", argv[i])))
			s->plan.rounds = strtoul(v, NULL, 10);
		else if (strcmp(argv[i], "--csv") == 0)
			s->csv = true;
		else
			bench_die(argv[i], "no such option; the head of bench_codecs.c lists them");
	}
	if (s->chunk == 0 || s->mib == 0)
		bench_die("--chunk, --mib", "must be at least 1");
}

int main(int argc, char **argv)
{
	settings s = {.dir = "build/bench-data", .set = "json.u1", .mib = 64, .chunk = 65536};
	settings_parse(&s, argc, argv);
	char path[4096];
	size_t size;
	snprintf(path, sizeof path, "%s/%s", s.dir, s.set);
	void *data = bench_load(path, s.mib << 20, &size);
	lade_engine *engine;
	lade_error err;
	if (lade_engine_new(NULL, &engine, &err))
		bench_die("engine", err.message);
	libraries_init();
	bench_print_machine(stdout);
	printf("# %s, %.1f MiB, chunks of %zu bytes; MB = 10^6 decoded bytes\n", s.set,
	       (double)size / 1048576, s.chunk);
	if (s.csv)
		puts("part,codec,direction,chunk,batch,size_ratio,base,lade,unit,result,q1,q3");

	job copy = job_new(&libraries[0], engine, data, size, s.chunk, 0);
	if (wanted(&s, "memcpy"))
		print_title(&s, "Copying (GB/s)", "MB/s", "MB/s", "GB/s");
	part_memcpy(&s, &copy, wanted(&s, "memcpy"));
	job_free(&copy);
	if (wanted(&s, "loop")) {
		print_title(&s, "One thread: lade's time over the library's", "library MB/s",
		            "lade MB/s", "time");
		each_codec(&s, part_loop, engine, data, size, s.chunk, s.batch);
	}
	if (wanted(&s, "threads") && lade_cpu_count() >= 2) {
		print_title(&s, "Two threads over one ((fast): at 40 % of memcpy or more)",
		            "1 thr. MB/s", "2 thr. MB/s", "speed-up");
		each_codec(&s, part_threads, engine, data, size, s.chunk, s.batch);
	}
	if (wanted(&s, "call")) {
		print_title(&s, "One call, one chunk of 4 KiB: microseconds added", "library us",
		            "lade us", "added us");
		each_codec(&s, part_call, engine, data, size < 4096 ? size : 4096, 4096, 0);
	}
	lade_engine_free(engine);
	libraries_free();
	free(data);
	return 0;
}
