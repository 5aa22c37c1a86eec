/*
 * gpu.h: what the GPU benchmark programs share: the device, its memory, events, threads of the
 * host, the data sets, and the formats with their encoders and decoders of the host.
 *
 * The driver is the one that liblade opens; nothing of CUDA is needed to build these programs.
 * Whatever fails ends the program: a benchmark has nothing to rescue.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BENCH_GPU_H
#define LADE_BENCH_GPU_H

#include "../common.h"
#include "gpu/device.h"

#include <lz4.h>
#include <pthread.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

static inline void bench_ok(lade_status status, const lade_error *err, const char *what)
{
	if (status != LADE_OK)
		bench_die(what, err->message);
}

/* ---- the device -------------------------------------------------------------------------- */

typedef struct gpu {
	lade__device *device; /* entered, until the program ends */
	const lade__driver *cu;
	lade_stream stream;
	void *begin, *end; /* events */
	void *flush;       /* what is written to push everything else out of the L2 cache */
	size_t flush_size;
} gpu;

static inline void gpu_check(const gpu *g, int result, const char *call)
{
	lade_error err;
	if (result != 0) {
		lade__driver_fail(g->cu, result, g->device->number, call, &err);
		bench_die("device", err.message);
	}
}

/* Calls a function of the driver. */
#define GPU(g, function, ...) gpu_check(g, (g)->cu->function(__VA_ARGS__), #function)

static inline void *gpu_alloc(const gpu *g, size_t size)
{
	lade__address p = 0;
	GPU(g, cuMemAlloc, &p, size ? size : 1);
	return (void *)(uintptr_t)p;
}

static inline void gpu_free(const gpu *g, void *p)
{
	if (p)
		GPU(g, cuMemFree, lade__address_of(p));
}

/* Page-locked memory of the host, which copies run at the link's rate from and to. */
static inline void *gpu_pinned(const gpu *g, size_t size)
{
	void *p = NULL;
	GPU(g, cuMemHostAlloc, &p, size ? size : 1, 0);
	return p;
}

static inline void gpu_pinned_free(const gpu *g, void *p)
{
	if (p)
		GPU(g, cuMemFreeHost, p);
}

static inline void gpu_wait(const gpu *g)
{
	GPU(g, cuStreamSynchronize, g->stream);
}

static inline void gpu_up(const gpu *g, void *dst, const void *src, size_t size)
{
	GPU(g, cuMemcpyHtoDAsync, lade__address_of(dst), src, size, g->stream);
	gpu_wait(g);
}

static inline void gpu_down(const gpu *g, void *dst, const void *src, size_t size)
{
	GPU(g, cuMemcpyDtoHAsync, dst, lade__address_of(src), size, g->stream);
	gpu_wait(g);
}

static inline void gpu_fill(const gpu *g, void *dst, unsigned char value, size_t size)
{
	GPU(g, cuMemsetD8Async, lade__address_of(dst), value, size, g->stream);
}

static inline gpu gpu_open(int32_t number)
{
	gpu g = {0};
	lade_error err;
	bench_ok(lade__device_use(number, &g.device, &err), &err, "device");
	g.cu = g.device->driver;
	bench_ok(lade_stream_new(number, &g.stream, &err), &err, "stream");
	GPU(&g, cuEventCreate, &g.begin, 0);
	GPU(&g, cuEventCreate, &g.end, 0);
	/* Four times the cache; writing it takes longer than the host takes to enqueue a call, so
	 * that the events measure the device alone. */
	g.flush_size = 4 * (size_t)g.device->info.l2_size;
	if (g.flush_size < 512 * MIB)
		g.flush_size = 512 * MIB;
	g.flush = gpu_alloc(&g, g.flush_size);
	return g;
}

/* One call's time on the device in microseconds, the L2 cache flushed before. */
static inline double gpu_once(const gpu *g, void (*call)(void *ctx), void *ctx, int turn)
{
	float ms = 0;
	gpu_fill(g, g->flush, (unsigned char)turn, g->flush_size);
	GPU(g, cuEventRecord, g->begin, g->stream);
	call(ctx);
	GPU(g, cuEventRecord, g->end, g->stream);
	gpu_wait(g);
	GPU(g, cuEventElapsedTime, &ms, g->begin, g->end);
	return 1e3 * (double)ms;
}

/* The median of 'repeats' such times; the caller has run the call once before. */
static inline double gpu_time(const gpu *g, size_t repeats, void (*call)(void *ctx), void *ctx)
{
	double us[BENCH_ROUNDS_MAX];
	for (size_t i = 0; i < repeats; i++)
		us[i] = gpu_once(g, call, ctx, (int)i);
	return bench_stat_of(us, repeats).median;
}

typedef struct gpu_copy {
	const gpu *gpu;
	void *dst;
	const void *src;
	size_t size;
} gpu_copy;

static inline void gpu_copy_run(void *ctx)
{
	const gpu_copy *c = ctx;
	GPU(c->gpu, cuMemcpyAsync, lade__address_of(c->dst), lade__address_of(c->src), c->size,
	    c->gpu->stream);
}

/* Bytes a second that copies within the device read and write together: the copy roofline. */
static inline double gpu_copy_rate(const gpu *g)
{
	size_t size = 4 * GIB, have = 0, total = 0;
	GPU(g, cuMemGetInfo, &have, &total);
	while (size > have / 4)
		size /= 2;
	gpu_copy copy = {g, gpu_alloc(g, size), gpu_alloc(g, size), size};
	gpu_copy_run(&copy);
	double us = gpu_time(g, 9, gpu_copy_run, &copy);
	gpu_free(g, copy.dst);
	gpu_free(g, (void *)(uintptr_t)copy.src);
	return 2.0 * (double)size / (1e-6 * us);
}

/* Bytes a second between pinned and device memory, in one direction. */
static inline double gpu_link_rate(const gpu *g, bool up)
{
	size_t size = 256 * MIB;
	void *host = gpu_pinned(g, size), *device = gpu_alloc(g, size);
	memset(host, 1, size);
	gpu_copy copy = {g, up ? device : host, up ? host : device, size};
	gpu_copy_run(&copy);
	double us = gpu_time(g, 9, gpu_copy_run, &copy);
	gpu_free(g, device);
	gpu_pinned_free(g, host);
	return (double)size / (1e-6 * us);
}

/* Output bytes a second that a perfect codec of this ratio reaches where copies reach 'copy': it
 * moves 1 + 1/ratio bytes for each byte of the decoded side. */
static inline double gpu_roofline(double copy, double ratio)
{
	return copy / (1 + 1 / ratio);
}

/* A table of 'count' entries on the device: first, first + step, ... */
static inline void *gpu_table(const gpu *g, size_t count, uint64_t first, uint64_t step)
{
	uint64_t *host = bench_alloc(count * sizeof *host);
	void *device = gpu_alloc(g, count * sizeof *host);
	for (size_t i = 0; i < count; i++)
		host[i] = first + i * step;
	gpu_up(g, device, host, count * sizeof *host);
	free(host);
	return device;
}

/* size_t and uint64_t may be different types of the same size. */
static inline size_t *as_sizes(uint64_t *sizes)
{
	_Static_assert(sizeof(size_t) == sizeof(uint64_t), "devices have addresses of 64 bits");
	return (size_t *)(void *)sizes;
}

/* ---- threads of the host ----------------------------------------------------------------- */

/* Runs body(ctx, i) for all i below 'count' on the machine's processors. */
typedef struct parallel {
	void (*body)(void *ctx, size_t i);
	void *ctx;
	size_t count, first, step;
} parallel;

static inline void *parallel_thread(void *arg)
{
	const parallel *p = arg;
	for (size_t i = p->first; i < p->count; i += p->step)
		p->body(p->ctx, i);
	return NULL;
}

static inline void parallel_run(size_t count, void (*body)(void *ctx, size_t i), void *ctx)
{
	enum { MOST = 32 };
	pthread_t thread[MOST];
	parallel part[MOST];
	size_t threads = lade_cpu_count();
	threads = threads > MOST ? MOST : threads > count ? count : threads;
	for (size_t t = 0; t < threads; t++) {
		part[t] = (parallel){body, ctx, count, t, threads};
		if (pthread_create(&thread[t], NULL, parallel_thread, &part[t]))
			bench_die("threads", "none can be started");
	}
	for (size_t t = 0; t < threads; t++)
		pthread_join(thread[t], NULL);
}

/* ---- formats ----------------------------------------------------------------------------- */

/* A format, and who reads and writes it on the host. */
typedef struct format {
	const char *name;   /* as specs and rows have it */
	const char *nvcomp; /* as the names of nvCOMP's functions have it; NULL: it has none */
	size_t (*bound)(size_t size);
	size_t (*encode)(const void *src, size_t size, void *dst, size_t cap); /* 0: failed */
	/* True when 'src' is all well and gives just 'size' bytes. */
	bool (*decode)(const void *src, size_t src_size, void *dst, size_t size);
	bool encodes; /* liblade has kernels that encode it */
} format;

static inline size_t format_lz4_bound(size_t size)
{
	return (size_t)LZ4_compressBound((int)size);
}

static inline size_t format_lz4_encode(const void *src, size_t size, void *dst, size_t cap)
{
	return (size_t)LZ4_compress_default(src, dst, (int)size, (int)cap);
}

static inline bool format_lz4_decode(const void *src, size_t src_size, void *dst, size_t size)
{
	return LZ4_decompress_safe(src, dst, (int)src_size, (int)size) == (int)size;
}

static inline size_t format_snappy_encode(const void *src, size_t size, void *dst, size_t cap)
{
	return snappy_compress(src, size, dst, &cap) == SNAPPY_OK ? cap : 0;
}

static inline bool format_snappy_decode(const void *src, size_t src_size, void *dst, size_t size)
{
	size_t got = size;
	return snappy_uncompress(src, src_size, dst, &got) == SNAPPY_OK && got == size;
}

static inline size_t format_zstd_encode(const void *src, size_t size, void *dst, size_t cap)
{
	size_t made = ZSTD_compress(dst, cap, src, size, 3);
	return ZSTD_isError(made) ? 0 : made;
}

static inline bool format_zstd_decode(const void *src, size_t src_size, void *dst, size_t size)
{
	return ZSTD_decompress(dst, size, src, src_size) == size;
}

/* zlib at level 6; 'bits' says the container. */
static inline size_t format_z_encode(const void *src, size_t size, void *dst, size_t cap, int bits)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)src,
	              .avail_in = (uInt)size,
	              .next_out = dst,
	              .avail_out = (uInt)cap};
	if (deflateInit2(&z, 6, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return 0;
	size_t made = deflate(&z, Z_FINISH) == Z_STREAM_END ? z.total_out : 0;
	deflateEnd(&z);
	return made;
}

static inline bool format_z_decode(const void *src, size_t src_size, void *dst, size_t size,
                                   int bits)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)src,
	              .avail_in = (uInt)src_size,
	              .next_out = dst,
	              .avail_out = (uInt)size};
	if (inflateInit2(&z, bits) != Z_OK)
		return false;
	int result = inflate(&z, Z_FINISH);
	bool right = result == Z_STREAM_END && z.total_out == size && z.avail_in == 0;
	inflateEnd(&z);
	return right;
}

/* What deflateBound() says of any stream, and the largest container. */
static inline size_t format_z_bound(size_t size)
{
	return size + (size >> 12) + (size >> 14) + (size >> 25) + 13 + 18;
}

#define FORMAT_Z(name, bits) \
	static inline size_t format_##name##_encode(const void *src, size_t size, void *dst, \
	                                            size_t cap) \
	{ \
		return format_z_encode(src, size, dst, cap, bits); \
	} \
	static inline bool format_##name##_decode(const void *src, size_t src_size, void *dst, \
	                                          size_t size) \
	{ \
		return format_z_decode(src, src_size, dst, size, bits); \
	}
FORMAT_Z(deflate, -15)
FORMAT_Z(zlib, 15)
FORMAT_Z(gzip, 31)

static const format formats[] = {
	{"lz4", "LZ4", format_lz4_bound, format_lz4_encode, format_lz4_decode, true},
	{"snappy", "Snappy", snappy_max_compressed_length, format_snappy_encode,
         format_snappy_decode, true},
	{"zstd", "Zstd", ZSTD_compressBound, format_zstd_encode, format_zstd_decode, false},
	{"deflate", "Deflate", format_z_bound, format_deflate_encode, format_deflate_decode, false},
	{"zlib", NULL, format_z_bound, format_zlib_encode, format_zlib_decode, false},
	{"gzip", "Gzip", format_z_bound, format_gzip_encode, format_gzip_decode, false},
};
#define FORMAT_COUNT (sizeof formats / sizeof *formats)

/* The sets of bench/make_data.py. */
static const char *const data_sets[] = {
	"tpch_orderkey.i8", "tpch_price.i8",   "tpch_shipdate.i4", "tpch_quantity.i8",
	"timestamps.i8",    "json.u1",         "source.u1",        "float_smooth.f4",
	"float_noisy.f4",   "bf16_weights.u2", "sparse.i4",        "random.u1",
};
#define SET_COUNT (sizeof data_sets / sizeof *data_sets)

/* ---- command line ------------------------------------------------------------------------ */

/* A file to write; NULL and "-" are what is given. */
static inline FILE *open_out(const char *path, FILE *otherwise)
{
	if (!path || strcmp(path, "-") == 0)
		return otherwise;
	FILE *f = fopen(path, "w");
	if (!f)
		bench_die(path, "cannot be written");
	return f;
}

/* True when 'name' is one of the words of a list with commas, or the list is NULL. */
static inline bool list_has(const char *list, const char *name)
{
	size_t n = strlen(name);
	for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (strncmp(at, name, n) == 0 && (at[n] == 0 || at[n] == ','))
			return true;
	return list == NULL;
}

/* The 'i'th of the sets that --sets names, which are files of --data; without it, of data_sets.
 * False behind the last one. */
static inline bool set_name(const char *list, size_t i, char name[64])
{
	if (!list) {
		snprintf(name, 64, "%s", i < SET_COUNT ? data_sets[i] : "");
		return i < SET_COUNT;
	}
	for (; i && list; i--)
		list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL;
	if (!list || !*list)
		return false;
	int size = (int)strcspn(list, ",");
	const char *dot = memchr(list, '.', (size_t)size);
	if (size > 63 || !dot || list + size - dot != 3 || !strchr("iuf", dot[1]) ||
	    !strchr("1248", dot[2]))
		bench_die(list, "a set's name ends in its elements' type: .u1, .i2, .f8");
	snprintf(name, 64, "%.*s", size, list);
	return true;
}

#define LIST_MOST 16

/* Numbers above 0 with commas between them; the list ends with 0. */
static inline void list_numbers(const char *text, size_t out[LIST_MOST + 1])
{
	size_t count = 0;
	for (char *end; count < LIST_MOST && *text; text = *end == ',' ? end + 1 : end) {
		out[count] = strtoull(text, &end, 10);
		if (out[count++] == 0 || (*end && *end != ','))
			bench_die(text, "numbers with commas between them are wanted");
	}
	out[count] = 0;
}

/* The file's name without its folders. */
static inline const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* Where and by what command the numbers were taken, one fact a line. */
static inline void gpu_print_machine(const gpu *g, FILE *out, int argc, char **argv)
{
	const lade_device_info *d = &g->device->info;
	char line[256];
	fprintf(out, "card: %s, %u multiprocessors, %u MHz, %.0f GiB\n", d->name,
	        d->multiprocessors, d->clock_khz / 1000, (double)d->memory_size / (double)GIB);
	/* "NVRM version: NVIDIA ... Kernel Module for x86_64  580.159.04  Release Build ..." */
	FILE *f = fopen("/proc/driver/nvidia/version", "r");
	if (f && fgets(line, sizeof line, f))
		for (char *word = strtok(line, " "); word; word = strtok(NULL, " "))
			if (word[0] >= '0' && word[0] <= '9' && strchr(word, '.')) {
				fprintf(out, "driver: %s\n", word);
				break;
			}
	if (f)
		fclose(f);
	fprintf(out, "cuda: driver %d.%d\n", d->driver_version / 1000,
	        d->driver_version % 1000 / 10);
	fprintf(out, "host: %s, %u processors\n", bench_cpu_name(), lade_cpu_count());
	fprintf(out, "liblade: %s\n", lade_version_text());
	fprintf(out, "command:");
	for (int i = 0; i < argc; i++)
		if (!bench_option("--out", argv[i]) && !bench_option("--host", argv[i]) &&
		    !bench_option("--info", argv[i]))
			fprintf(out, " %s", i ? argv[i] : base_name(argv[i]));
	fputc('\n', out);
}

#endif
