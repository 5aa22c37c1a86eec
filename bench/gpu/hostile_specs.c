/*
 * hostile_specs.c: not a benchmark: damaged chunks, bad tables and little room through pipelines of
 * stages that have kernels, with guard zones around destinations; what the host makes of the same
 * bytes is right.
 *
 *     hostile_specs [--specs='ans;lz4|crc32c'] [--chunks=1000000] [--batch=8192] [--seed=1]
 *                   [--size=16384] [--seconds=N] [--device=0] [--out=FILE] [FILE...]
 *
 * Chunks of up to SIZE bytes are cut from the FILEs (4 MiB of each; without any, from words of
 * chance); a batch has 128 MiB at most.
 *
 *     decode  lade_decode_arrays_async() of what the host encoded and damage.h damaged, against the
 *             host's strict decoders: whether it decodes, to which size and bytes.  A chunk that
 *             both refuse may have two reasons; such are counted, and not wrong.  Nor is a
 *             damaged chunk wrong that libzstd takes, or what reads Blosc's streams, and a kernel
 *             refuses; or the other way, of Blosc's LZ4 (docs/verdicts.md)
 *     encode  lade_encode_arrays_async(): what it gives decodes on the host to the source, or with
 *             a lossy stage to what the host's encoding decodes to; where the room is less than the
 *             bound, LADE_E_NOSPACE will do
 *
 * In both, rooms of any size from 0, any alignment, pointers that are NULL and sizes of 2 GiB and
 * more.  Destinations lie close together, so that a byte outside is a neighbour's guard.  One row
 * of CSV a spec and direction; a spec without kernels has a line on stderr.  1 is returned if
 * anything was wrong.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "damage.h"
#include "gpu.h"

#include <lade/async.h>

/* All chunks of a batch, before they are encoded, at most. */
#define RAW_ALL ((size_t)128 << 20)
#define GUARD ((size_t)64)
#define FILL 0xA5

static const char every_spec[] =
	"deflate;deflate(level=1);zlib;gzip;zstd;zstd(level=12);delta(<i4)|zstd(level=1)|xxh64;"
	"ans;ans(dtype=<f4);ans(dtype=bfloat16);ans(dtype=<i8);"
	"bitcomp(dtype=<i4);bitcomp(dtype=<i8);bitcomp(dtype=<u2);bitcomp(dtype=u1,algorithm="
	"sparse);"
	"bitcomp(dtype=<f4,mode=lossy_signed,delta=0.01);bitcomp(dtype=<f2,mode=lossy_unsigned,"
	"delta=0.25);bitcomp(dtype=<f8,mode=lossy_signed,delta=1e-3);"
	"cascaded(dtype=<i4);cascaded(dtype=<i8,mode=fast);cascaded(dtype=u1);cascaded(dtype=<u2);"
	"shuffle(4);shuffle(5);shuffle(12);split(2);zigzag(<i4);byteswap(8);delta(<i8);delta(u1);"
	"delta(<i4)|zigzag(<i4)|shuffle(4);byteswap(8)|delta(<i8)|bitshuffle(8);"
	"shuffle(4)|lz4;split(2)|snappy;zigzag(<i2)|split(2);delta(<i4)|zigzag(<i4)|shuffle(4)|lz4;"
	"crc32c;crc32-bzip2;adler32(start);xxh64;lz4|crc32;delta(<i4)|bitshuffle(4)|lz4|xxh64("
	"start);"
	"shuffle(2)|ans|crc32c;"
	"packints(|b1);packints(<f4,first=13)|lz4;packints(<i2,last=9,padding=first);"
	"levels(bits=9,min=-1,max=3)|packints(<u4,last=8);cast(<f8,astype=<f4);"
	"cast(<i8,astype=<u4,range=wrap)|delta(<u4)|split(4)|lz4;"
	"blosc(cname=lz4,typesize=4);blosc(cname=lz4,shuffle=bitshuffle,typesize=8,blocksize=1024);"
	"blosc(cname=snappy,typesize=3,blocksize=2048);blosc(cname=zlib,typesize=2);"
	"blosc(cname=zstd,shuffle=bitshuffle,typesize=4,blocksize=4096)|crc32c";

/* A chunk, and what is known of it beforehand. */
typedef struct one {
	size_t size, from;  /* of the source, and its place among all */
	size_t cap, at;     /* of the destination */
	uint64_t size_told; /* what the table says: the size, or too much */
	bool no_src, no_dst, hurt; /* the source is not what the encoder made */
	uint32_t status; /* LADE_OK, or what the tables alone bring about */
} one;

typedef struct counts {
	size_t chunks, valid, verdicts, reasons, stricter, wrong, outside;
} counts;

typedef struct hostile {
	gpu gpu;
	int32_t device;
	lade_engine *engine;
	const lade_spec *spec;
	const char *text;
	lade_direction direction;
	size_t n, slot, data_size;
	size_t most; /* the largest chunk, before it is encoded */
	uint64_t seed;
	unsigned char *data, *in, *image;
	one *ones;
	size_t src_all, dst_all, largest;
	uint64_t *got, *table;
	uint32_t *status;
	unsigned char *src_dev, *dst_dev;
	uint64_t *tables_dev[5]; /* src, src_size, dst, dst_cap, sizes */
	uint32_t *status_dev;
	counts *counts;
	pthread_mutex_t mutex;
} hostile;

/* ---- chunks ------------------------------------------------------------------------------ */

/* Encodes or decodes one chunk on the host. */
static lade_status on_host(const hostile *h, lade_direction direction, const void *src, size_t size,
                           void *dst, size_t cap, size_t *made)
{
	lade_segment segment = {.data = src, .size = size};
	lade_item item = {.src = &segment, .src_count = 1, .dst = lade_host_span(dst, cap)};
	lade_batch_options o = {.struct_size = sizeof o,
	                        .threads = 1,
	                        .flags = LADE_BATCH_STRICT,
	                        .where = LADE_WHERE_HOST};
	lade_result result = {LADE_OK, 0};
	if (direction == LADE_ENCODE)
		lade_encode_into(h->engine, h->spec, &item, 1, &result, &o, NULL);
	else
		lade_decode_into(h->engine, h->spec, &item, 1, &result, &o, NULL);
	*made = result.size;
	return result.status;
}

/* As lade_chunk_get() of gpu/kernels/batch.cuh judges tables. */
static void spoil(chance *g, one *c)
{
	c->size_told = c->size;
	c->no_src = below(g, 64) == 0;
	c->no_dst = below(g, 64) == 0;
	if (below(g, 64) == 0)
		c->size_told = below(g, 2) ? (uint64_t)1 << 31 : next(g) | (uint64_t)1 << 40;
	if ((c->no_src && c->size_told) || (c->no_dst && c->cap))
		c->status = LADE_E_ARG;
	else
		c->status = c->size_told >> 31 ? LADE_E_LIMIT : LADE_OK;
}

static void make_one(void *ctx, size_t i)
{
	hostile *h = ctx;
	one *c = &h->ones[i];
	chance g = chance_of(h->seed + i);
	unsigned char *in = h->in + i * h->slot;
	size_t most = below(&g, 4) ? (h->most + 3) / 4 : h->most;
	size_t raw_size = below(&g, 50) ? 1 + below(&g, most) : 0;
	/* Most stages refuse parts of elements. */
	raw_size -= below(&g, 16) ? raw_size % 8 : 0;
	const unsigned char *raw = h->data + below(&g, h->data_size - raw_size);
	size_t room = raw_size;
	*c = (one){.size = raw_size};
	if (h->direction == LADE_ENCODE) {
		memcpy(in, raw, raw_size);
		room = lade_spec_bound(h->spec, raw_size);
	} else if (on_host(h, LADE_ENCODE, raw, raw_size, in, h->slot, &c->size) != LADE_OK) {
		c->size = raw_size;
		memcpy(in, raw, raw_size);
	}
	unsigned char *whole = bench_alloc(c->size + 1);
	size_t size = c->size;
	memcpy(whole, in, size);
	c->size = damage(&g, in, size);
	c->hurt = c->size != size || memcmp(whole, in, size) != 0;
	free(whole);
	c->cap = below(&g, 8) ? room + (below(&g, 4) ? 0 : below(&g, 600)) : below(&g, room + 1);
	c->from = below(&g, 16);
	c->at = GUARD + below(&g, 16);
	spoil(&g, c);
}

static void make_batch(hostile *h, uint64_t seed)
{
	const gpu *g = &h->gpu;
	h->seed = seed;
	parallel_run(h->n, make_one, h);
	size_t src = 0, dst = 0;
	h->largest = 1;
	for (size_t i = 0; i < h->n; i++) {
		one *c = &h->ones[i];
		c->from += src;
		src = c->from + c->size;
		c->at += dst;
		dst = c->at + c->cap;
		size_t decoded = h->direction == LADE_ENCODE ? c->size : c->cap;
		h->largest = decoded > h->largest ? decoded : h->largest;
		memcpy(h->image + c->from, h->in + i * h->slot, c->size);
	}
	h->src_all = src;
	h->dst_all = dst + GUARD;
	gpu_up(g, h->src_dev, h->image, src);
	for (int k = 0; k < 4; k++) {
		for (size_t i = 0; i < h->n; i++) {
			const one *c = &h->ones[i];
			h->table[i] = k == 0   ? (c->no_src ? 0 : (uintptr_t)h->src_dev + c->from)
			              : k == 1 ? c->size_told
			              : k == 2 ? (c->no_dst ? 0 : (uintptr_t)h->dst_dev + c->at)
			                       : c->cap;
		}
		gpu_up(g, h->tables_dev[k], h->table, 8 * h->n);
	}
}

/* ---- what is right ----------------------------------------------------------------------- */

/* A lossy stage's: puts what a source becomes on the host in its place. */
static bool lose(const hostile *h, unsigned char *in, size_t size)
{
	unsigned char *coded = bench_alloc(h->slot + 1);
	size_t made;
	bool lost = on_host(h, LADE_ENCODE, in, size, coded, h->slot, &made) == LADE_OK &&
	            on_host(h, LADE_DECODE, coded, made, in, size, &made) == LADE_OK;
	free(coded);
	return lost && made == size;
}

static void check_one(void *ctx, size_t i)
{
	hostile *h = ctx;
	const one *c = &h->ones[i];
	const unsigned char *out = h->image + c->at;
	unsigned char *in = h->in + i * h->slot;
	uint32_t got = h->status[i], want = c->status;
	unsigned char *room = bench_alloc(h->slot + c->cap + 1);
	bool wrong = false, outside = false;
	size_t made = 0;
	if (want == LADE_OK && h->direction == LADE_DECODE) {
		want = (uint32_t)on_host(h, LADE_DECODE, in, c->size, room, c->cap, &made);
		if (want == LADE_OK && got == LADE_OK)
			wrong = h->got[i] != made || (made && memcmp(out, room, made) != 0);
	} else if (want == LADE_OK && got == LADE_OK) {
		size_t size = (size_t)h->got[i];
		wrong = size > c->cap || on_host(h, LADE_DECODE, out, size, room, c->size, &made) ||
		        made != c->size ||
		        (lade_spec_is_lossy(h->spec) && !lose(h, in, c->size)) ||
		        memcmp(room, in, made) != 0;
	} else if (want == LADE_OK) {
		/* What the host refuses too: parts of elements. */
		want = (uint32_t)on_host(h, LADE_ENCODE, in, c->size, room, c->cap, &made);
		if (got == LADE_E_NOSPACE && c->cap < lade_spec_bound(h->spec, c->size))
			want = got;
	}
	if (got != LADE_OK)
		wrong = h->got[i] != 0;
	free(room);
	/* What lies between the destinations is as it was, and so is one that must not be
	 * touched. */
	size_t end = c->at + c->cap, begin = i ? h->ones[i - 1].at + h->ones[i - 1].cap : 0;
	for (size_t k = begin; k < c->at; k++)
		outside |= h->image[k] != FILL;
	for (size_t k = end; i + 1 == h->n && k < h->dst_all; k++)
		outside |= h->image[k] != FILL;
	for (size_t k = c->at; c->status != LADE_OK && k < end; k++)
		outside |= h->image[k] != FILL;
	bool damaged = h->direction == LADE_DECODE && c->hurt, blosc = strstr(h->text, "blosc");
	bool stricter = damaged && got == LADE_E_CORRUPT && want == LADE_OK &&
	                (blosc || strstr(h->text, "zstd"));
	stricter |= damaged && got == LADE_OK && want == LADE_E_CORRUPT &&
	            strstr(h->text, "blosc(cname=lz4");
	bool verdict = (got == LADE_OK) != (want == LADE_OK) && !stricter;
	pthread_mutex_lock(&h->mutex);
	if ((verdict || wrong || outside) &&
	    h->counts->verdicts + h->counts->wrong + h->counts->outside < 5)
		fprintf(stderr, "%s, seed %llu, chunk %zu: status %u, want %u; %llu bytes%s%s\n",
		        h->text, (unsigned long long)h->seed, i, got, want,
		        (unsigned long long)h->got[i], wrong ? ", wrong" : "",
		        outside ? ", outside" : "");
	h->counts->valid += got == LADE_OK && want == LADE_OK && !wrong;
	h->counts->verdicts += verdict;
	h->counts->reasons += !verdict && !stricter && got != want;
	h->counts->stricter += stricter;
	h->counts->wrong += wrong;
	h->counts->outside += outside;
	pthread_mutex_unlock(&h->mutex);
}

static void run_batch(hostile *h)
{
	const gpu *g = &h->gpu;
	lade_error err;
	size_t size;
	bench_ok(lade_workspace_size(h->engine, h->spec, h->direction,
	                             &(lade_arrays){.struct_size = sizeof(lade_arrays),
	                                            .count = h->n,
	                                            .largest = h->largest},
	                             &size, &err),
	         &err, h->text);
	void *workspace = gpu_alloc(g, size + 1);
	lade_async_options o = {.struct_size = sizeof o,
	                        .device = h->device,
	                        .stream = g->stream,
	                        .workspace = workspace,
	                        .workspace_size = size,
	                        .sizes = h->tables_dev[4],
	                        .statuses = h->status_dev};
	lade_arrays a = {.struct_size = sizeof(lade_arrays),
	                 .src = (const void *const *)h->tables_dev[0],
	                 .src_size = h->tables_dev[1],
	                 .dst = (void *const *)h->tables_dev[2],
	                 .dst_cap = h->tables_dev[3],
	                 .count = h->n,
	                 .largest = h->largest};
	gpu_fill(g, h->dst_dev, FILL, h->dst_all);
	gpu_fill(g, h->status_dev, 0x77, 4 * h->n);
	bench_ok((h->direction == LADE_ENCODE
	                  ? lade_encode_arrays_async
	                  : lade_decode_arrays_async)(h->engine, h->spec, &a, &o, &err),
	         &err, h->text);
	gpu_wait(g);
	gpu_down(g, h->image, h->dst_dev, h->dst_all);
	gpu_down(g, h->got, h->tables_dev[4], 8 * h->n);
	gpu_down(g, h->status, h->status_dev, 4 * h->n);
	gpu_free(g, workspace);
	parallel_run(h->n, check_one, h);
	h->counts->chunks += h->n;
}

/* ---- all --------------------------------------------------------------------------------- */

static void read_data(hostile *h, const char *path)
{
	enum { MOST = 4 << 20 };
	FILE *f = fopen(path, "rb");
	if (!f)
		bench_die(path, "cannot be read");
	h->data = realloc(h->data, h->data_size + MOST);
	if (!h->data)
		bench_die(path, "no memory");
	h->data_size += fread(h->data + h->data_size, 1, MOST, f);
	fclose(f);
}

static void make_data(hostile *h)
{
	h->data_size = (size_t)4 << 20;
	while (h->data_size <= h->most)
		h->data_size *= 2;
	free(h->data);
	h->data = bench_alloc(h->data_size);
	words(h->data, h->data_size);
}

static void hostile_new(hostile *h)
{
	/* No stage doubles its bytes, nor do pipelines of a few. */
	h->slot = 2 * h->most + 1024;
	size_t n = h->n, all = n * (2 * h->slot + GUARD);
	pthread_mutex_init(&h->mutex, NULL);
	h->ones = bench_alloc(n * sizeof *h->ones);
	h->in = bench_alloc(n * h->slot);
	h->image = bench_alloc(all);
	h->got = bench_alloc(8 * n);
	h->table = bench_alloc(8 * n);
	h->status = bench_alloc(4 * n);
	h->src_dev = gpu_alloc(&h->gpu, all);
	h->dst_dev = gpu_alloc(&h->gpu, all);
	for (int k = 0; k < 5; k++)
		h->tables_dev[k] = gpu_alloc(&h->gpu, 8 * n);
	h->status_dev = gpu_alloc(&h->gpu, 4 * n);
}

static void hostile_free(hostile *h)
{
	gpu_free(&h->gpu, h->status_dev);
	for (int k = 0; k < 5; k++)
		gpu_free(&h->gpu, h->tables_dev[k]);
	gpu_free(&h->gpu, h->dst_dev);
	gpu_free(&h->gpu, h->src_dev);
	free(h->status);
	free(h->table);
	free(h->got);
	free(h->image);
	free(h->in);
	free(h->ones);
	free(h->data);
	pthread_mutex_destroy(&h->mutex);
}

/* One spec in one direction; true when nothing was wrong. */
static bool run_spec(hostile *h, size_t chunks, uint64_t seed, double until, FILE *out)
{
	counts c = {0};
	lade_error err;
	size_t size;
	const char *way = h->direction == LADE_ENCODE ? "encode" : "decode";
	if (lade_workspace_size(h->engine, h->spec, h->direction,
	                        &(lade_arrays){.struct_size = sizeof(lade_arrays),
	                                       .count = 1,
	                                       .largest = h->most},
	                        &size, &err) != LADE_OK) {
		fprintf(stderr, "%s, %s: no row: %s\n", h->text, way, err.message);
		return true;
	}
	h->counts = &c;
	for (size_t done = 0; done < chunks && bench_now() < until; done += h->n) {
		make_batch(h, seed * 1000003 + done);
		run_batch(h);
	}
	fprintf(out, "\"%s\",%s,%zu,%zu,%zu,%zu,%zu,%zu,%zu\n", h->text, way, c.chunks, c.valid,
	        c.verdicts, c.wrong, c.outside, c.reasons, c.stricter);
	fflush(out);
	return c.chunks && !c.verdicts && !c.wrong && !c.outside;
}

int main(int argc, char **argv)
{
	hostile h = {.n = 8192, .most = 16384};
	const char *specs = every_spec, *out_path = NULL, *value;
	uint64_t seed = 1;
	size_t chunks = 1000000;
	double seconds = 1e9;
	for (int i = 1; i < argc; i++) {
		if ((value = bench_option("--specs", argv[i])))
			specs = value;
		else if ((value = bench_option("--chunks", argv[i])))
			chunks = strtoull(value, NULL, 0);
		else if ((value = bench_option("--batch", argv[i])))
			h.n = strtoull(value, NULL, 0);
		else if ((value = bench_option("--size", argv[i])))
			h.most = strtoull(value, NULL, 0);
		else if ((value = bench_option("--seed", argv[i])))
			seed = strtoull(value, NULL, 0);
		else if ((value = bench_option("--seconds", argv[i])))
			seconds = strtod(value, NULL);
		else if ((value = bench_option("--device", argv[i])))
			h.device = (int32_t)strtol(value, NULL, 0);
		else if ((value = bench_option("--out", argv[i])))
			out_path = value;
		else if (argv[i][0] == '-')
			bench_die(argv[i], "no such option");
		else
			read_data(&h, argv[i]);
	}
	if (h.most == 0 || h.most > RAW_ALL)
		bench_die("--size", "1 byte to 128 MiB are wanted");
	if (h.data_size <= h.most)
		make_data(&h);
	h.n = h.n > chunks ? chunks : h.n;
	h.n = h.n > RAW_ALL / h.most ? RAW_ALL / h.most : h.n;
	if (h.n == 0)
		bench_die("--chunks", "at least 1 is wanted");
	h.gpu = gpu_open(h.device);
	h.engine = lade_engine_default();
	if (!h.engine)
		bench_die("engine", "out of memory");
	hostile_new(&h);
	FILE *out = open_out(out_path, stdout);
	fputs("spec,direction,chunks,valid,wrong_verdict,wrong_bytes,outside,other_reason,"
	      "stricter\n",
	      out);
	bool good = true;
	double until = bench_now() + seconds;
	while (*specs) {
		char text[256];
		size_t size = strcspn(specs, ";");
		snprintf(text, sizeof text, "%.*s", (int)size, specs);
		specs += size + (specs[size] == ';');
		lade_spec *spec;
		lade_error err;
		if (lade_spec_parse(h.engine, text, &spec, &err) != LADE_OK) {
			fprintf(stderr, "%s: no row: %s\n", text, err.message);
			continue;
		}
		h.spec = spec;
		h.text = text;
		for (int d = LADE_ENCODE; d <= LADE_DECODE; d++) {
			h.direction = (lade_direction)d;
			good &= run_spec(&h, chunks, seed, until, out);
		}
		lade_spec_unref(spec);
	}
	hostile_free(&h);
	if (fclose(out) != 0)
		bench_die(out_path ? out_path : "standard output", "writing failed");
	return !good;
}
