/*
 * bench_blosc.c: decoding Blosc1 containers through the engine against c-blosc with the same
 * number of threads, in the same process, on the same bytes.
 *
 *     bench_blosc [--mib=32] [--chunk-kib=0] [--level=5] [--typesize=4] [--rounds=15]
 *
 * One container of --mib by default (its blocks are shared among the threads); with --chunk-kib
 * many containers.  A row is an inner codec and a shuffle; c-blosc's arm is blosc_decompress()
 * with its global pool, the faster of its two calls: blosc_decompress_ctx() starts its threads
 * anew each time.  Ratios are lade's time over c-blosc's: below 1, lade is the faster.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "common.h"

#include <blosc.h>

typedef struct job {
	size_t size, chunk, count, stride;
	uint8_t *data, *packed, *out;
	size_t *packed_size;
	lade_engine *engine[3]; /* by threads */
	lade_spec *spec;
	lade_segment *segments;
	lade_item *items;
	int threads;
} job;

static size_t chunk_size(const job *j, size_t i)
{
	size_t left = j->size - i * j->chunk;
	return left < j->chunk ? left : j->chunk;
}

/* Smooth 32-bit numbers with some noise in the low bits, as measurements are. */
static void fill(uint8_t *p, size_t size)
{
	uint64_t s = 88172645463325252u;
	uint32_t walk = 1000000;
	for (size_t i = 0; i + 4 <= size; i += 4) {
		s ^= s << 13, s ^= s >> 7, s ^= s << 17;
		walk += (uint32_t)(s % 33) - 16;
		memcpy(p + i, &walk, 4);
	}
}

static void run_lade(void *ctx)
{
	const job *j = ctx;
	lade_error err;
	if (lade_decode_into(j->engine[j->threads], j->spec, j->items, j->count, NULL, NULL, &err))
		bench_die("lade", err.message);
}

static void run_cblosc(void *ctx)
{
	const job *j = ctx;
	blosc_set_nthreads(j->threads);
	for (size_t i = 0; i < j->count; i++)
		if (blosc_decompress(j->packed + i * j->stride, j->out + i * j->chunk,
		                     chunk_size(j, i)) < 0)
			bench_die("c-blosc", "failed");
}

static void run_cblosc_ctx(void *ctx)
{
	const job *j = ctx;
	for (size_t i = 0; i < j->count; i++)
		if (blosc_decompress_ctx(j->packed + i * j->stride, j->out + i * j->chunk,
		                         chunk_size(j, i), j->threads) < 0)
			bench_die("c-blosc", "failed");
}

static void pack(job *j, const char *cname, int level, int shuffle, size_t typesize, size_t *total)
{
	*total = 0;
	for (size_t i = 0; i < j->count; i++) {
		int n = blosc_compress_ctx(level, shuffle, typesize, chunk_size(j, i),
		                           j->data + i * j->chunk, j->packed + i * j->stride,
		                           j->stride, cname, 0, 1);
		if (n <= 0)
			bench_die("c-blosc", "cannot compress");
		j->packed_size[i] = (size_t)n;
		*total += (size_t)n;
		j->segments[i] =
			(lade_segment){.data = j->packed + i * j->stride, .size = (size_t)n};
		j->items[i] =
			(lade_item){.src = &j->segments[i],
		                    .src_count = 1,
		                    .dst = lade_host_span(j->out + i * j->chunk, chunk_size(j, i))};
	}
}

static void row(job *j, const char *cname, const char *shuffle_name, size_t total, size_t rounds)
{
	static bench_arm lade = {.name = "lade", .run = run_lade};
	static bench_arm pool = {.name = "c-blosc", .run = run_cblosc};
	static bench_arm ctx = {.name = "c-blosc ctx", .run = run_cblosc_ctx};
	bench_arm *arms[] = {&lade, &pool, &ctx};

	lade.ctx = pool.ctx = ctx.ctx = j;
	printf("%-8s %-10s %6.2f", cname, shuffle_name, (double)j->size / (double)total);
	for (j->threads = 1; j->threads <= 2; j->threads++) {
		memset(j->out, 0, j->size);
		run_lade(j);
		if (memcmp(j->out, j->data, j->size))
			bench_die("lade", "wrong bytes");
		bench_rounds(arms, 3, (bench_plan){.rounds = rounds});
		bench_stat a = bench_ratio(&lade, &pool), b = bench_ratio(&lade, &ctx);
		printf("  %7.0f %6.3f [%.3f %.3f] %6.3f",
		       bench_mbs(j->size, bench_seconds(&lade).median), a.median, a.q1, a.q3,
		       b.median);
	}
	printf("\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	size_t mib = 32, chunk_kib = 0, rounds = 15, typesize = 4;
	int level = 5;
	for (int i = 1; i < argc; i++) {
		const char *v;
		if ((v = bench_option("--mib", argv[i])))
			mib = strtoul(v, NULL, 10);
		else if ((v = bench_option("--chunk-kib", argv[i])))
			chunk_kib = strtoul(v, NULL, 10);
		else if ((v = bench_option("--level", argv[i])))
			level = atoi(v);
		else if ((v = bench_option("--typesize", argv[i])))
			typesize = strtoul(v, NULL, 10);
		else if ((v = bench_option("--rounds", argv[i])))
			rounds = strtoul(v, NULL, 10);
		else
			bench_die(argv[i], "unknown option");
	}
	job j = {.size = mib << 20, .chunk = chunk_kib ? chunk_kib << 10 : mib << 20};
	if (j.size == 0)
		bench_die("--mib", "must be at least 1");
	j.count = (j.size + j.chunk - 1) / j.chunk;
	j.stride = j.chunk + BLOSC_MAX_OVERHEAD;
	j.data = bench_alloc(j.size);
	j.out = bench_alloc(j.size);
	j.packed = bench_alloc(j.count * j.stride);
	j.packed_size = bench_alloc(j.count * sizeof *j.packed_size);
	j.segments = bench_alloc(j.count * sizeof *j.segments);
	j.items = bench_alloc(j.count * sizeof *j.items);
	fill(j.data, j.size);
	lade_error err;
	for (unsigned t = 1; t <= 2; t++) {
		lade_engine_options o = {.struct_size = sizeof o, .threads = t};
		if (lade_engine_new(&o, &j.engine[t], &err))
			bench_die("engine", err.message);
	}
	if (lade_spec_parse(NULL, "blosc", &j.spec, &err))
		bench_die("spec", err.message);
	blosc_init();

	bench_print_machine(stdout);
	printf("# %zu containers of %zu KiB, level %d, typesize %zu; c-blosc %s\n", j.count,
	       j.chunk >> 10, level, typesize, BLOSC_VERSION_STRING);
	printf("# inner shuffle, ratio; for 1 and 2 threads: lade MB/s, lade/c-blosc [quartiles], "
	       "lade/blosc_decompress_ctx\n");
	static const char *const cnames[] = {"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"};
	static const char *const shuffles[] = {"noshuffle", "shuffle", "bitshuffle"};
	for (size_t c = 0; c < 6; c++) {
		for (int s = 0; s < 3; s++) {
			size_t total;
			if (blosc_compname_to_compcode(cnames[c]) < 0)
				continue;
			pack(&j, cnames[c], level, s, typesize, &total);
			row(&j, cnames[c], shuffles[s], total, rounds);
		}
	}

	blosc_destroy();
	lade_spec_unref(j.spec);
	lade_engine_free(j.engine[1]);
	lade_engine_free(j.engine[2]);
	free(j.data), free(j.out), free(j.packed), free(j.packed_size), free(j.segments),
		free(j.items);
	return 0;
}
