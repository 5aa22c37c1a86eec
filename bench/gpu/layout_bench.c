/*
 * layout_bench.c: what a layout adds to a batch of device arrays, against copies on the device.
 *
 *     layout_bench [--chunks=4096] [--kib=64] [--reps=20] [--device=0]
 *
 * Chunks are decoded from "shuffle(4)" by lade_decode_arrays_async(): to contiguous destinations,
 * and by layouts to rows that lie side by side and fill one array.  The difference is the pass over
 * the chunks.  "ratio" is its rate over that of a copy of as many bytes by the driver.  CSV:
 * case,run,bytes,plain_us,layout_us,pass_gb_s,copy_gb_s,ratio
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "../common.h"

#include "gpu/device.h"

typedef struct bench {
	lade_engine *engine;
	lade_spec *spec;
	int32_t device;
	size_t chunks, size, reps;
	uint8_t *src, *dst; /* chunks * size bytes of device memory each */
	uint64_t *tables;   /* four of them */
	void *workspace;
	size_t workspace_size;
} bench;

static void ok(lade_status status, const lade_error *err, const char *what)
{
	if (status != LADE_OK)
		bench_die(what, err->message);
}

static void *device_alloc(const bench *b, size_t size)
{
	const lade_allocator *a = lade_allocator_default(LADE_DEVICE);
	void *p = a->alloc(a->ctx, size, 256, (lade_place){LADE_DEVICE, b->device}, NULL);
	if (!p)
		bench_die("device", "no memory");
	return p;
}

/* Between any two places; waits. */
static void move(const bench *b, void *to, const void *from, size_t size)
{
	lade__device *d;
	lade_error why, *err = &why;
	ok(lade__device_use(b->device, &d, err), err, "device");
	ok(LADE__CU(d, cuMemcpyAsync, lade__address_of(to), lade__address_of(from), size, NULL),
	   err, "copy");
	ok(LADE__CU(d, cuStreamSynchronize, NULL), err, "wait");
	lade__device_leave(d);
}

static double copy_seconds(const bench *b)
{
	lade__device *d;
	lade_error why, *err = &why;
	double best = 1e9;
	ok(lade__device_use(b->device, &d, err), err, "device");
	for (int round = 0; round < 3; round++) {
		ok(LADE__CU(d, cuStreamSynchronize, NULL), err, "wait");
		double start = bench_now();
		for (size_t i = 0; i < b->reps; i++)
			ok(LADE__CU(d, cuMemcpyAsync, lade__address_of(b->dst),
			            lade__address_of(b->src), b->chunks * b->size, NULL),
			   err, "copy");
		ok(LADE__CU(d, cuStreamSynchronize, NULL), err, "wait");
		double took = (bench_now() - start) / (double)b->reps;
		best = took < best ? took : best;
	}
	lade__device_leave(d);
	return best;
}

/* Seconds of a decode of all chunks; 'dst' are their destinations. */
static double decode_seconds(const bench *b, const uint64_t *dst, const lade_layout *layout)
{
	size_t n = b->chunks, all = n * b->size;
	uint64_t *host = malloc(32 * n);
	lade_error why, *err = &why;
	double best = 1e9;
	for (size_t i = 0; i < n; i++) {
		host[i] = (uint64_t)(uintptr_t)(b->src + i * b->size);
		host[n + i] = b->size;
		host[2 * n + i] = dst[i];
		host[3 * n + i] = (uint64_t)(uintptr_t)(b->dst + all) - dst[i];
		if (!layout)
			host[3 * n + i] = b->size;
	}
	move(b, b->tables, host, 32 * n);
	lade_arrays arrays = {.struct_size = sizeof(lade_arrays),
	                      .src = (const void *const *)(void *)b->tables,
	                      .src_size = b->tables + n,
	                      .dst = (void *const *)(void *)(b->tables + 2 * n),
	                      .dst_cap = b->tables + 3 * n,
	                      .count = n,
	                      .largest = b->size,
	                      .layout = layout};
	lade_async_options o = {.struct_size = sizeof o, .device = b->device,
	                        .workspace = b->workspace, .workspace_size = b->workspace_size};
	for (int round = 0; round < 4; round++) {
		ok(lade_stream_wait(b->device, NULL, err), err, "wait");
		double start = bench_now();
		for (size_t i = 0; i < b->reps; i++)
			ok(lade_decode_arrays_async(b->engine, b->spec, &arrays, &o, err), err,
			   "decode");
		ok(lade_stream_wait(b->device, NULL, err), err, "wait");
		double took = (bench_now() - start) / (double)b->reps;
		if (round) /* the first loads kernels */
			best = took < best ? took : best;
	}
	free(host);
	return best;
}

static void report(const bench *b, const char *name, size_t run, double plain, double laid,
                   double copy)
{
	double bytes = (double)(b->chunks * b->size), pass = laid - plain;
	printf("%s,%zu,%.0f,%.1f,%.1f,%.0f,%.0f,%.2f\n", name, run, bytes, plain * 1e6, laid * 1e6,
	       bytes / pass * 1e-9, bytes / copy * 1e-9, copy / pass);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	bench b = {.chunks = 4096, .size = 65536, .reps = 20};
	lade_error why, *err = &why;
	for (int i = 1; i < argc; i++) {
		const char *value;
		if ((value = bench_option("--chunks", argv[i])))
			b.chunks = (size_t)strtoul(value, NULL, 10);
		else if ((value = bench_option("--kib", argv[i])))
			b.size = (size_t)strtoul(value, NULL, 10) << 10;
		else if ((value = bench_option("--reps", argv[i])))
			b.reps = (size_t)strtoul(value, NULL, 10);
		else if ((value = bench_option("--device", argv[i])))
			b.device = (int32_t)strtol(value, NULL, 10);
		else
			bench_die(argv[i], "no such option");
	}
	b.engine = lade_engine_default();
	ok(lade_spec_parse(b.engine, "shuffle(4)", &b.spec, err), err, "spec");
	size_t all = b.chunks * b.size, side = 4; /* chunks side by side */
	b.src = device_alloc(&b, all);
	b.dst = device_alloc(&b, all);
	b.tables = device_alloc(&b, 32 * b.chunks);
	lade_arrays shape_of_all = {
		.struct_size = sizeof(lade_arrays), .count = b.chunks, .largest = b.size};
	ok(lade_workspace_size(b.engine, b.spec, LADE_DECODE, &shape_of_all, &b.workspace_size,
	                       err),
	   err, "workspace");
	b.workspace_size += all + b.chunks * (256 + 32 * 3) + 8192;
	b.workspace = device_alloc(&b, b.workspace_size);
	uint8_t *bytes = bench_alloc(all);
	for (size_t i = 0; i < all; i++)
		bytes[i] = (uint8_t)(i * 2654435761u >> 21);
	move(&b, b.src, bytes, all);
	uint64_t *dst = malloc(8 * b.chunks);
	for (size_t i = 0; i < b.chunks; i++)
		dst[i] = (uint64_t)(uintptr_t)(b.dst + i * b.size);
	printf("case,run,bytes,plain_us,layout_us,pass_gb_s,copy_gb_s,ratio\n");
	double copy = copy_seconds(&b), plain = decode_seconds(&b, dst, NULL);
	for (size_t run = 4; run <= 4096; run *= 2) {
		size_t shape[2] = {b.size / run, run};
		ptrdiff_t strides[2] = {(ptrdiff_t)(side * run), 1};
		lade_layout rows = {.struct_size = sizeof rows, .elem_size = 1, .ndim = 2,
		                    .shape = shape, .strides = strides};
		for (size_t i = 0; i < b.chunks; i++)
			dst[i] = (uint64_t)(uintptr_t)(b.dst + i / side * side * b.size +
			                               i % side * run);
		report(&b, "rows", run, plain, decode_seconds(&b, dst, &rows), copy);
	}
	for (size_t elem = 2; elem <= 16; elem *= 2) {
		size_t n = 1;
		while ((2 * n) * (2 * n) * elem <= b.size)
			n *= 2;
		size_t shape[2] = {b.size / elem / n, n}, order[2] = {1, 0};
		lade_layout turn = {.struct_size = sizeof turn, .elem_size = elem, .ndim = 2,
		                    .shape = shape, .order = order};
		for (size_t i = 0; i < b.chunks; i++)
			dst[i] = (uint64_t)(uintptr_t)(b.dst + i * b.size);
		report(&b, "turn", elem, plain, decode_seconds(&b, dst, &turn), copy);
	}
	free(dst);
	free(bytes);
	lade_spec_unref(b.spec);
	return 0;
}
