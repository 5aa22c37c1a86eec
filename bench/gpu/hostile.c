/*
 * hostile.c: not a benchmark: damaged chunks, bad tables and too little room through each kernel of
 * LZ4, Snappy, cascaded and the bit shuffle, in every launch shape, with guard zones around
 * destinations.
 *
 *     hostile [--kernels=lz4_decode_solo,...] [--chunks=1000000] [--batch=16384] [--seed=1]
 *             [--size=16384] [--seconds=N] [--device=0] [--out=FILE] [FILE...]
 *
 * Chunks of up to SIZE bytes are cut from the FILEs (4 MiB of each; without any, from words of
 * chance); a batch has 256 MiB at most.
 *
 *     decoders    status, size and bytes against plain decoders (tests/lz_plain.h, cascaded_kit.h).
 *                 Encoded by liblz4, libsnappy and, for cascaded, liblade; bits flipped, bytes
 *                 replaced, runs of 0x00 and 0xFF, cut short, all random, or as they are
 *     encoders    what they give decodes to the source; where the room is less than the bound,
 *                 LADE_E_NOSPACE will do.  Elements of 1, 2, 4 and 8 bytes
 *     bitshuffle  bytes against a plain shuffle: both ways, elements of 1 to 8 bytes, both orders,
 *                 several blocks
 *
 * In all, rooms of any size from 0, any alignment, pointers that are NULL, sizes of 2 GiB and more,
 * and statuses of a stage before.  Destinations lie close together, so that a byte outside is a
 * neighbour's guard.  One row of CSV a kernel; 1 is returned if anything was wrong.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "damage.h"
#include "gpu.h"

#include "gpu/work.h"
#include "cascaded_kit.h"
#include "codec/cascaded/cascaded.h"
#include "codec/lz/args.h"
#include "filter/args.h"
#include "lz_plain.h"

/* All chunks of a batch, before they are encoded, at most. */
#define RAW_ALL ((size_t)256 << 20)
#define GUARD ((size_t)64)
#define FILL 0xA5
#define STATUS_FILL 0x77777777u

/* ---- kernels ----------------------------------------------------------------------------- */

/* What a batch is made of. */
enum { LZ4_STREAMS, SNAPPY_STREAMS, CASCADED_STREAMS, PLAIN, BITS, FAMILIES };

enum { DECODE, SIZE, ENCODE_LZ4, ENCODE_SNAPPY, ENCODE_CASCADED, SHUFFLE, UNSHUFFLE };

typedef struct target {
	const char *name;
	lade__kernel kernel;
	int family, what;
	unsigned threads, chunks; /* a block's; chunks 0: each block takes some of all */
} target;

#define KERNEL(image, name, shared) #name, {#image, "lade_" #name, shared}
static const target targets[] = {
	{KERNEL(lz4_decode, lz4_decode_solo, 0), LZ4_STREAMS, DECODE, 128, 4},
	{KERNEL(lz4_decode, lz4_decode_team4, 0), LZ4_STREAMS, DECODE, 128, 1},
	{KERNEL(lz4_decode, lz4_decode_team8, 0), LZ4_STREAMS, DECODE, 256, 1},
	{KERNEL(lz4_decode, lz4_decode_team16, LADE_LZ4_TEAM16_SHARED), LZ4_STREAMS, DECODE, 512,
         1},
	{KERNEL(lz4_decode, lz4_size, 0), LZ4_STREAMS, SIZE, 128, 4},
	{KERNEL(snappy_decode, snappy_decode_solo, 0), SNAPPY_STREAMS, DECODE, 128, 4},
	{KERNEL(snappy_decode, snappy_decode_team4, 0), SNAPPY_STREAMS, DECODE, 128, 1},
	{KERNEL(snappy_decode, snappy_decode_team8, 0), SNAPPY_STREAMS, DECODE, 256, 1},
	{KERNEL(snappy_decode, snappy_decode_team16, LADE_SNAPPY_TEAM16_SHARED), SNAPPY_STREAMS,
         DECODE, 512, 1},
	{KERNEL(snappy_decode, snappy_size, 0), SNAPPY_STREAMS, SIZE, 128, 128},
	{KERNEL(lz4_encode, lz4_encode, 0), PLAIN, ENCODE_LZ4, 160, 5},
	{KERNEL(lz4_encode, lz4_encode_team8, LADE_LZ_ENCODE_SHARED(8)), PLAIN, ENCODE_LZ4, 256, 1},
	{KERNEL(lz4_encode, lz4_encode_team16, LADE_LZ_ENCODE_SHARED(16)), PLAIN, ENCODE_LZ4, 512,
         1},
	{KERNEL(snappy_encode, snappy_encode, 0), PLAIN, ENCODE_SNAPPY, 160, 5},
	{KERNEL(snappy_encode, snappy_encode_team8, LADE_LZ_ENCODE_SHARED(8)), PLAIN, ENCODE_SNAPPY,
         256, 1},
	{KERNEL(snappy_encode, snappy_encode_team16, LADE_LZ_ENCODE_SHARED(16)), PLAIN,
         ENCODE_SNAPPY, 512, 1},
	{KERNEL(cascaded_decode, cascaded_decode, LADE_CAS_WARPS *LADE_CAS_DECODE_SHARED),
         CASCADED_STREAMS, DECODE, 256, 1},
	{KERNEL(cascaded_decode, cascaded_size, 0), CASCADED_STREAMS, SIZE, 128, 128},
	{KERNEL(cascaded_encode, cascaded_encode, LADE_CAS_ENCODE_SHARED(LADE_CAS_WARPS)), PLAIN,
         ENCODE_CASCADED, 256, 1},
	{KERNEL(bitshuffle, bitshuffle_encode, 0), BITS, SHUFFLE, 128, 0},
	{KERNEL(bitshuffle, bitshuffle_decode, 0), BITS, UNSHUFFLE, 128, 0},
};
#define TARGETS (sizeof targets / sizeof *targets)

/* ---- a batch ----------------------------------------------------------------------------- */

/* A chunk, and what is known of it beforehand. */
typedef struct one {
	size_t raw;              /* the plain side's bytes, before damage */
	size_t size, from;       /* of the source, and its place among all */
	size_t cap, at;          /* of the destination */
	uint64_t size_told;      /* what the table says: the size, or too much */
	bool no_src, no_dst;     /* the pointer is NULL */
	uint32_t before, status; /* LADE_OK, or what the table alone brings about */
} one;

typedef struct counts {
	size_t chunks, valid, verdicts, wrong, outside;
	double longest_us;
} counts;

typedef struct hostile {
	gpu gpu;
	size_t n, data_size;
	size_t most; /* the largest chunk, before it is encoded */
	size_t slot; /* a chunk's bytes on either side: encoded at most, and room to spare */
	unsigned char *data;
	uint64_t seed;
	int family;
	one *ones;
	unsigned char *in;    /* 'slot' bytes a chunk */
	unsigned char *image; /* what the destinations have; before that, the sources */
	size_t src_all, dst_all;
	uint32_t elem, msb, block; /* of encoders and the bit shuffle */
	uint32_t parts;            /* of a chunk of cascaded's decoder */
	lade__address joined;      /* its words, one a chunk */
	lade_engine *engine;
	lade_spec *cascaded[4]; /* by the logarithm of the elements' size */
	uint64_t *got, *table;
	uint32_t *status;
	unsigned char *src_dev, *dst_dev;
	lade_gpu_batch batch; /* 'before' and 'next' too are memory of the device */
	const target *target;
	counts *counts;
	pthread_mutex_t mutex;
} hostile;

/* ---- chunks ------------------------------------------------------------------------------ */

static bool streams(int family)
{
	return family == LZ4_STREAMS || family == SNAPPY_STREAMS || family == CASCADED_STREAMS;
}

/* What is wrong with a chunk's entries in the tables, if anything is; as lade_chunk_get() of
 * gpu/kernels/batch.cuh judges it. */
static void spoil(chance *g, one *c)
{
	c->size_told = c->size;
	c->no_src = below(g, 64) == 0;
	c->no_dst = below(g, 64) == 0;
	if (below(g, 64) == 0)
		c->size_told = below(g, 2) ? (uint64_t)1 << 31 : next(g) | (uint64_t)1 << 40;
	c->before = below(g, 32) ? LADE_OK : 1 + (uint32_t)below(g, 10);
	if (c->before)
		c->status = c->before;
	else if ((c->no_src && c->size_told) || (c->no_dst && c->cap))
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
	*c = (one){.raw = below(&g, 50) ? 1 + below(&g, most) : 0};
	const unsigned char *raw = h->data + below(&g, h->data_size - c->raw);
	size_t room = c->raw;
	if (h->family == CASCADED_STREAMS) {
		/* Noise as it is read gives raw blocks: half of the chunks are made for runs. */
		unsigned log2 = (unsigned)below(&g, 4);
		unsigned char *made = bench_alloc(c->raw + 1);
		lade_error err;
		rng r = {next(&g)};
		if (below(&g, 2)) {
			kit_fill_mixed(made, c->raw, (size_t)1 << log2, &r);
			raw = made;
		}
		bench_ok(lade_encode(h->engine, h->cascaded[log2], lade_host_cspan(raw, c->raw),
		                     lade_host_span(in, h->slot), &c->size, &err),
		         &err, "cascaded");
		free(made);
		c->size = damage(&g, in, c->size);
	} else if (streams(h->family)) {
		const format *f = &formats[h->family == SNAPPY_STREAMS];
		c->size = f->encode(raw, c->raw, in, h->slot);
		c->size = damage(&g, in, c->size);
	} else {
		memcpy(in, raw, c->raw);
		c->size = c->raw;
		damage(&g, in, c->raw);
		if (h->family == PLAIN)
			room = snappy_max_compressed_length(c->raw);
	}
	c->cap = below(&g, 8) ? room + (below(&g, 4) ? 0 : below(&g, 600)) : below(&g, room + 1);
	c->from = below(&g, 16);
	c->at = GUARD + below(&g, 16);
	spoil(&g, c);
}

static void pack_one(void *ctx, size_t i)
{
	hostile *h = ctx;
	memcpy(h->image + h->ones[i].from, h->in + i * h->slot, h->ones[i].size);
}

static void make_tables(hostile *h)
{
	const gpu *g = &h->gpu;
	for (int k = 0; k < 4; k++) {
		lade__address to[] = {h->batch.src, h->batch.src_size, h->batch.dst,
		                      h->batch.dst_cap};
		for (size_t i = 0; i < h->n; i++) {
			const one *c = &h->ones[i];
			h->table[i] = k == 0   ? (c->no_src ? 0 : (uintptr_t)h->src_dev + c->from)
			              : k == 1 ? c->size_told
			              : k == 2 ? (c->no_dst ? 0 : (uintptr_t)h->dst_dev + c->at)
			                       : c->cap;
		}
		gpu_up(g, (void *)(uintptr_t)to[k], h->table, 8 * h->n);
	}
	for (size_t i = 0; i < h->n; i++)
		h->status[i] = h->ones[i].before;
	gpu_up(g, (void *)(uintptr_t)h->batch.before, h->status, 4 * h->n);
}

/* Makes a batch of one family and brings it to the device. */
static void make_batch(hostile *h, int family, uint64_t seed)
{
	static const uint32_t blocks[] = {0, 8192, 4096, 65536};
	chance g = chance_of(seed * 77);
	h->family = family;
	h->seed = seed;
	h->elem = 1u << below(&g, 4);
	h->msb = (uint32_t)below(&g, 2);
	h->block = blocks[below(&g, 4)];
	h->parts = 1 + (uint32_t)below(&g, 3);
	parallel_run(h->n, make_one, h);
	size_t src = 0, dst = 0;
	for (size_t i = 0; i < h->n; i++) {
		one *c = &h->ones[i];
		c->from += src;
		src = c->from + c->size;
		c->at += dst;
		dst = c->at + c->cap;
	}
	h->src_all = src;
	h->dst_all = dst + GUARD;
	parallel_run(h->n, pack_one, h);
	gpu_up(&h->gpu, h->src_dev, h->image, src);
	make_tables(h);
}

/* ---- what is right ----------------------------------------------------------------------- */

/* Where bit 'b' of element 'e' stands in a block of rows of 'pitch' bytes. */
static size_t row_of(const hostile *h, size_t b)
{
	size_t bits = 8 * (size_t)h->elem;
	return h->msb ? bits - 1 - b : b;
}

/* The plain shuffle (docs/format/filters.md, section 2): element by element, bit by bit. */
static void plain_bits(const hostile *h, bool back, size_t size, const unsigned char *from,
                       unsigned char *to)
{
	size_t elem = h->elem, bits = 8 * elem,
	       each = h->block && h->block < size ? h->block : size;
	for (size_t at = 0, m; at < size; at += m, from += m, to += m) {
		m = size - at < each ? size - at : each;
		size_t pitch = m / bits;
		memcpy(to, from, m);
		memset(to, 0, pitch * bits);
		for (size_t e = 0; e < 8 * pitch; e++)
			for (size_t b = 0; b < bits; b++) {
				size_t byte = e * elem + b / 8, row = row_of(h, b) * pitch + e / 8;
				if (back)
					to[byte] |= (unsigned char)((from[row] >> (e % 8) & 1)
					                            << (b % 8));
				else
					to[row] |= (unsigned char)((from[byte] >> (b % 8) & 1)
					                           << (e % 8));
			}
	}
}

/* What a chunk must come to: its status, and its bytes in 'room' (enough for all). */
static uint32_t judge(const hostile *h, const one *c, const unsigned char *in, unsigned char *room,
                      size_t room_size, size_t *made)
{
	const target *t = h->target;
	bool snappy = t->family == SNAPPY_STREAMS;
	size_t cap = t->what == SIZE && !snappy ? room_size : c->cap;
	*made = 0;
	if (t->what == SHUFFLE || t->what == UNSHUFFLE) {
		if (c->cap < c->size)
			return LADE_E_NOSPACE;
		plain_bits(h, t->what == UNSHUFFLE, c->size, in, room);
		*made = c->size;
		return LADE_OK;
	}
	if (t->family == CASCADED_STREAMS)
		return (uint32_t)(t->what == SIZE ? kit_size(in, c->size, made)
		                                  : kit_decode(in, c->size, room, cap, made));
	if (t->what == SIZE && snappy) {
		plain p = {.in = in, .in_size = c->size, .cap = UINT64_MAX};
		lade_status status = plain_snappy_size(&p);
		*made = status == LADE_OK ? (size_t)p.cap : 0;
		return (uint32_t)status;
	}
	return (uint32_t)(snappy ? plain_snappy(in, c->size, room, cap, made)
	                         : plain_lz4(in, c->size, room, cap, made));
}

/* Whether an encoder's result is one. */
static bool encoded_right(const hostile *h, const one *c, const unsigned char *in,
                          const unsigned char *out, size_t size, unsigned char *room)
{
	size_t made = 0;
	int what = h->target->what;
	lade_status status = what == ENCODE_CASCADED ? kit_decode(out, size, room, c->size, &made)
	                     : what == ENCODE_SNAPPY ? plain_snappy(out, size, room, c->size, &made)
	                                             : plain_lz4(out, size, room, c->size, &made);
	return status == LADE_OK && made == c->size && memcmp(room, in, made) == 0;
}

static void check_one(void *ctx, size_t i)
{
	hostile *h = ctx;
	const target *t = h->target;
	const one *c = &h->ones[i];
	const unsigned char *in = h->in + i * h->slot, *out = h->image + c->at;
	uint32_t got = h->status[i], want = c->status;
	bool encodes = t->family == PLAIN, wrong = false;
	/* A byte of a block of LZ4 gives at most 255. */
	size_t room_size = t->what == SIZE ? 255 * c->size + 1 : h->slot + c->cap, made = 0;
	unsigned char *room = bench_alloc(room_size);
	/* Nobody looks at destinations for sizes. */
	if (t->what == SIZE && want != c->before)
		want = c->no_src && c->size_told ? LADE_E_ARG
		       : c->size_told >> 31      ? LADE_E_LIMIT
		                                 : LADE_OK;
	if (want == LADE_OK && encodes) {
		size_t bound = t->what == ENCODE_LZ4 ? (size_t)LZ4_compressBound((int)c->size)
		               : t->what == ENCODE_CASCADED
		                       ? lade_spec_bound(h->cascaded[0], c->size)
		                       : snappy_max_compressed_length(c->size);
		if (got == LADE_E_NOSPACE && c->cap < bound)
			want = got;
		else if (got == LADE_OK)
			wrong = h->got[i] > c->cap ||
			        !encoded_right(h, c, in, out, (size_t)h->got[i], room);
	} else if (want == LADE_OK) {
		want = judge(h, c, in, room, room_size, &made);
		if (want == LADE_OK && got == LADE_OK)
			wrong = h->got[i] != made ||
			        (t->what != SIZE && made && memcmp(out, room, made) != 0);
	}
	if (got != LADE_OK)
		wrong = h->got[i] != 0;
	free(room);
	/* What lies between the destinations is as it was. */
	size_t end = c->at + c->cap, begin = i ? h->ones[i - 1].at + h->ones[i - 1].cap : 0;
	bool outside = false;
	for (size_t k = begin; k < c->at; k++)
		outside |= h->image[k] != FILL;
	for (size_t k = end; i + 1 == h->n && k < h->dst_all; k++)
		outside |= h->image[k] != FILL;
	/* Nor is the destination of one that must not be touched. */
	for (size_t k = c->at; c->status != LADE_OK && k < end; k++)
		outside |= h->image[k] != FILL;
	if (got == LADE_OK && want == LADE_OK && !wrong && !outside) {
		__atomic_add_fetch(&h->counts->valid, 1, __ATOMIC_RELAXED);
		return;
	}
	if (got == want && !wrong && !outside)
		return;
	pthread_mutex_lock(&h->mutex);
	if (h->counts->verdicts + h->counts->wrong + h->counts->outside < 5)
		fprintf(stderr, "%s, seed %llu, chunk %zu: status %u, want %u; %llu bytes%s%s\n",
		        t->name, (unsigned long long)h->seed, i, got, want,
		        (unsigned long long)h->got[i], wrong ? ", wrong" : "",
		        outside ? ", outside" : "");
	h->counts->verdicts += got != want;
	h->counts->wrong += got == want && wrong;
	h->counts->outside += outside;
	pthread_mutex_unlock(&h->mutex);
}

/* ---- running ----------------------------------------------------------------------------- */

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static void run_target(hostile *h, const target *t, counts *c)
{
	const gpu *g = &h->gpu;
	lade_gpu_batch batch = h->batch;
	lade_cas_choice choice = {.log2 = (uint32_t)__builtin_ctz(h->elem),
	                                .block = LADE_CASCADED_BLOCK_MIN + h->msb,
	                                .is_signed = h->block != 0,
	                                .bitpack = h->block != 4096,
	                                .tried = 0x104CF};
	bool cascaded = t->family == CASCADED_STREAMS && t->what == DECODE;
	lade_filters bits = {
		.size = h->elem, .rows = LADE_ROWS_BITS, .msb = h->msb, .block = h->block};
	uint32_t team_log = 3;
	void *arguments[] = {&batch, &bits, NULL, NULL};
	if (cascaded) {
		arguments[1] = &h->parts;
		arguments[2] = &h->joined;
		arguments[3] = &team_log;
	} else if (t->what == ENCODE_CASCADED) {
		arguments[1] = &choice;
	}
	/* The bit shuffle has three warps a chunk, which take its tiles in turns. */
	size_t want = t->chunks ? (h->n + t->chunks - 1) / t->chunks : (h->n * 3 + 3) / 4;
	if (cascaded)
		want *= h->parts;
	size_t most = 4 * (size_t)g->device->info.multiprocessors;
	bool turns = t->chunks && t->what != SIZE && !cascaded && want > most;
	size_t blocks = turns ? most : want;
	lade_error err;
	if (t->what == SIZE)
		batch.dst = batch.dst_cap = 0;
	if (!turns)
		batch.next = 0;
	lade__launch launch = {.blocks = (unsigned)blocks,
	                       .threads = t->threads,
	                       .shared = t->kernel.shared,
	                       .stream = g->stream};
	gpu_fill(g, h->dst_dev, FILL, h->dst_all);
	GPU(g, cuMemsetD32Async, h->batch.next, 0, 1, g->stream);
	GPU(g, cuMemsetD32Async, h->joined, 0, h->n, g->stream);
	GPU(g, cuMemsetD32Async, h->batch.status, STATUS_FILL, h->n, g->stream);
	gpu_wait(g);
	double begin = now_us();
	bench_ok(lade__kernel_launch(g->device, &t->kernel, &launch, arguments, &err), &err,
	         t->name);
	gpu_wait(g);
	double us = now_us() - begin;
	c->longest_us = us > c->longest_us ? us : c->longest_us;
	gpu_down(g, h->image, h->dst_dev, h->dst_all);
	gpu_down(g, h->got, (void *)(uintptr_t)h->batch.dst_size, 8 * h->n);
	gpu_down(g, h->status, (void *)(uintptr_t)h->batch.status, 4 * h->n);
	h->target = t;
	h->counts = c;
	parallel_run(h->n, check_one, h);
	c->chunks += h->n;
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
	h->data = bench_alloc(h->data_size);
	words(h->data, h->data_size);
}

static lade__address device_table(const hostile *h, size_t size)
{
	return lade__address_of(gpu_alloc(&h->gpu, h->n * size));
}

static void hostile_new(hostile *h)
{
	size_t n = h->n, all = n * (h->slot + GUARD + 1024);
	pthread_mutex_init(&h->mutex, NULL);
	h->ones = bench_alloc(n * sizeof *h->ones);
	h->in = bench_alloc(n * h->slot);
	h->image = bench_alloc(all);
	h->got = bench_alloc(8 * n);
	h->table = bench_alloc(8 * n);
	h->status = bench_alloc(4 * n);
	h->src_dev = gpu_alloc(&h->gpu, all);
	h->dst_dev = gpu_alloc(&h->gpu, all);
	h->batch = (lade_gpu_batch){.src = device_table(h, 8),
	                             .src_size = device_table(h, 8),
	                             .dst = device_table(h, 8),
	                             .dst_cap = device_table(h, 8),
	                             .dst_size = device_table(h, 8),
	                             .status = device_table(h, 4),
	                             .before = device_table(h, 4),
	                             .next = device_table(h, 4),
	                             .count = (uint32_t)n};
	h->joined = device_table(h, 4);
	static const char *const specs[] = {"cascaded", "cascaded(<i2,block=4096)", "cascaded(<u4)",
	                                    "cascaded(<i8)"};
	lade_engine_options options = {.struct_size = sizeof options, .threads = 1};
	lade_error err;
	bench_ok(lade_engine_new(&options, &h->engine, &err), &err, "an engine");
	for (int k = 0; k < 4; k++)
		bench_ok(lade_spec_parse(h->engine, specs[k], &h->cascaded[k], &err), &err,
		         specs[k]);
}

int main(int argc, char **argv)
{
	hostile h = {.n = 16384, .most = 16384};
	const char *kernels = NULL, *out_path = NULL, *value;
	uint64_t seed = 1;
	size_t chunks = 1000000;
	double seconds = 1e9;
	int32_t device = 0;
	counts all[TARGETS] = {{0}};
	for (int i = 1; i < argc; i++) {
		if ((value = bench_option("--kernels", argv[i])))
			kernels = value;
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
			device = (int32_t)strtol(value, NULL, 0);
		else if ((value = bench_option("--out", argv[i])))
			out_path = value;
		else if (argv[i][0] == '-')
			bench_die(argv[i], "no such option");
		else
			read_data(&h, argv[i]);
	}
	if (h.most == 0 || h.most > RAW_ALL)
		bench_die("--size", "1 byte to 256 MiB are wanted");
	if (h.data_size <= h.most)
		make_data(&h);
	h.slot = h.most + h.most / 6 + 1024;
	h.n = h.n > chunks ? chunks : h.n;
	h.n = h.n > RAW_ALL / h.most ? RAW_ALL / h.most : h.n;
	if (h.n == 0)
		bench_die("--chunks", "at least 1 is wanted");
	h.gpu = gpu_open(device);
	hostile_new(&h);
	FILE *out = open_out(out_path, stdout);
	double begin = now_us();
	for (size_t done = 0; done < chunks; done += h.n) {
		if (now_us() - begin > 1e6 * seconds)
			break;
		for (int family = 0; family < FAMILIES; family++) {
			bool made = false;
			for (size_t k = 0; k < TARGETS; k++) {
				if (targets[k].family != family ||
				    !list_has(kernels, targets[k].name))
					continue;
				if (!made)
					make_batch(&h, family, seed * 1000003 + done);
				made = true;
				run_target(&h, &targets[k], &all[k]);
			}
		}
	}
	int bad = 0;
	fputs("kernel,chunks,valid,wrong_verdict,wrong_bytes,outside,longest_batch_us\n", out);
	for (size_t k = 0; k < TARGETS; k++) {
		const counts *c = &all[k];
		if (c->chunks == 0)
			continue;
		fprintf(out, "%s,%zu,%zu,%zu,%zu,%zu,%.0f\n", targets[k].name, c->chunks, c->valid,
		        c->verdicts, c->wrong, c->outside, c->longest_us);
		bad |= c->verdicts || c->wrong || c->outside;
	}
	if (fclose(out) != 0)
		bench_die(out_path ? out_path : "standard output", "writing failed");
	return bad;
}
