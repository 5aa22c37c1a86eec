/*
 * long.c: what takes minutes or gigabytes: a soak of one engine by several threads, a frame of
 * 5 GiB, a million tiny chunks, and chunks of the largest size.
 *
 *     lade_long soak SECONDS [SEED] | big FOLDER [GIB] | tiny FOLDER | limit [TEXT]
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "guard.h"

#include <lade/lade.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static void die(const char *what, const lade_error *err)
{
	if (err)
		fprintf(stderr, "%s: %s: %s\n", what, lade_status_name(err->status), err->message);
	else
		fprintf(stderr, "%s\n", what);
	exit(1);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double peak_mib(void)
{
	struct rusage use;
	getrusage(RUSAGE_SELF, &use);
	return (double)use.ru_maxrss / 1024;
}

/* ---- soak ------------------------------------------------------------------------------- */

static const char *const soak_specs[] = {
	"copy",
	"lz4",
	"lz4(level=4)|crc32c",
	"snappy",
	"zstd(level=1)",
	"deflate",
	"zlib",
	"gzip",
	"blosc(typesize=4)",
	"shuffle(4)|zstd(level=3)|crc32c",
	"delta(dtype=<i4)|zigzag(dtype=<i4)|bitshuffle(4)|lz4|xxh64",
	"bitshuffle(8)|zstd(level=1)",
	"split(4)|lz4",
};
#define SOAK_SPECS (sizeof soak_specs / sizeof soak_specs[0])
#define SOAK_ITEMS 24
#define SOAK_BYTES 40000

typedef struct soak {
	lade_engine *engine;
	lade_spec *specs[SOAK_SPECS];
	double until;
	uint64_t seed;
	atomic_uint_fast64_t batches, spoiled;
} soak;

typedef struct soak_room {
	uint8_t plain[SOAK_ITEMS][SOAK_BYTES], stored[SOAK_ITEMS][SOAK_BYTES * 2 + 4096];
	uint8_t back[SOAK_ITEMS][SOAK_BYTES];
} soak_room;

/* Data between constant and random. */
static void soak_fill(uint8_t *data, size_t size, rng *r)
{
	uint64_t noise = rng_below(r, 256), walk = rng_next(r);
	for (size_t i = 0; i < size; i++) {
		if (rng_below(r, 256) < noise)
			walk += rng_below(r, 5);
		data[i] = (uint8_t)(walk >> (i % 4 * 8));
	}
}

/* A batch of random specs and sizes; some sources are spoiled before they are decoded, and only
 * these may fail. */
static void soak_batch(soak *s, soak_room *room, rng *r)
{
	lade_item items[SOAK_ITEMS] = {0};
	lade_segment plain[SOAK_ITEMS] = {0}, stored[SOAK_ITEMS] = {0};
	lade_result results[SOAK_ITEMS];
	bool spoiled[SOAK_ITEMS] = {0};
	lade_error err = {0};
	size_t count = 1 + rng_below(r, SOAK_ITEMS);
	for (size_t i = 0; i < count; i++) {
		size_t size = rng_below(r, SOAK_BYTES / 8 + 1) * 8;
		soak_fill(room->plain[i], size, r);
		plain[i] = (lade_segment){.data = room->plain[i], .size = size};
		items[i].spec = s->specs[rng_below(r, SOAK_SPECS)];
		items[i].src = &plain[i];
		items[i].src_count = 1;
		items[i].dst = lade_host_span(room->stored[i], sizeof room->stored[i]);
	}
	if (lade_encode_into(s->engine, NULL, items, count, results, NULL, &err) != LADE_OK)
		die("soak: encode", &err);
	for (size_t i = 0; i < count; i++) {
		stored[i] = (lade_segment){.data = room->stored[i],
		                           .size = results[i].size,
		                           .decoded_size = plain[i].size};
		items[i].src = &stored[i];
		items[i].dst = lade_host_span(room->back[i], plain[i].size);
		spoiled[i] = results[i].size && rng_below(r, 20) == 0;
		if (spoiled[i])
			room->stored[i][rng_below(r, results[i].size)] ^=
				(uint8_t)(1 + rng_below(r, 255));
	}
	lade_decode_into(s->engine, NULL, items, count, results, NULL, NULL);
	for (size_t i = 0; i < count; i++) {
		if (spoiled[i]) {
			atomic_fetch_add(&s->spoiled, 1);
			continue;
		}
		if (results[i].status != LADE_OK || results[i].size != plain[i].size ||
		    memcmp(room->back[i], room->plain[i], plain[i].size) != 0)
			die(lade_spec_text(items[i].spec), NULL);
	}
	atomic_fetch_add(&s->batches, 1);
}

static void *soak_thread(void *arg)
{
	soak *s = arg;
	static atomic_uint_fast64_t number;
	rng r = {s->seed + atomic_fetch_add(&number, 1) * 7919};
	soak_room *room = malloc(sizeof *room);
	if (!room)
		die("no memory", NULL);
	while (now() < s->until)
		soak_batch(s, room, &r);
	free(room);
	return NULL;
}

static int cmd_soak(double seconds, uint64_t seed)
{
	static soak s;
	lade_error err;
	pthread_t threads[4];
	printf("soak: %.0f s, four callers, seed %" PRIu64 "\n", seconds, seed);
	s.seed = seed;
	s.until = now() + seconds;
	if (lade_engine_new(NULL, &s.engine, &err) != LADE_OK)
		die("engine", &err);
	for (size_t i = 0; i < SOAK_SPECS; i++)
		if (lade_spec_parse(NULL, soak_specs[i], &s.specs[i], &err) != LADE_OK)
			die(soak_specs[i], &err);
	for (size_t i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, soak_thread, &s))
			die("no thread", NULL);
	double early = 0;
	while (now() < s.until) {
		struct timespec tenth = {.tv_nsec = 100000000};
		nanosleep(&tenth, NULL);
		if (early == 0 && now() > s.until - seconds * 0.75)
			early = peak_mib();
	}
	for (size_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (size_t i = 0; i < SOAK_SPECS; i++)
		lade_spec_unref(s.specs[i]);
	lade_engine_free(s.engine);
	printf("soak: %" PRIuFAST64 " batches, %" PRIuFAST64
	       " spoiled items, peak %.1f MiB after a "
	       "quarter, %.1f MiB at the end\n",
	       s.batches, s.spoiled, early, peak_mib());
	/* A leak would grow with the batches. */
	if (peak_mib() > early * 1.25 + 16)
		die("soak: memory grew", NULL);
	return 0;
}

/* ---- files ------------------------------------------------------------------------------ */

static lade_status file_write(void *ctx, const void *src, size_t size, lade_error *err)
{
	if (fwrite(src, 1, size, ctx) != size)
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "cannot write %zu bytes", size);
	return LADE_OK;
}

static lade_status file_read(void *ctx, void *dst, size_t cap, size_t *got, lade_error *err)
{
	*got = fread(dst, 1, cap, ctx);
	if (*got == 0 && ferror(ctx))
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "cannot read");
	return LADE_OK;
}

/* The number at 8-byte word 'i': a slow walk with a little noise. */
static uint64_t word_at(uint64_t i)
{
	return (i >> 3) * 1000 + ((i * 0x9E3779B97F4A7C15ULL) >> 60);
}

static void fill_words(uint64_t *words, uint64_t first, size_t count)
{
	for (size_t i = 0; i < count; i++)
		words[i] = word_at(first + i);
}

static bool words_are(const uint8_t *data, uint64_t off, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (data[i] != (uint8_t)(word_at((off + i) / 8) >> ((off + i) % 8 * 8)))
			return false;
	return true;
}

typedef struct frame_case {
	const char *path;
	const char *spec;
	uint64_t size;
	size_t chunk_size;
} frame_case;

static void frame_write(lade_engine *engine, const frame_case *c)
{
	static uint64_t block[1 << 17];
	lade_error err;
	lade_spec *spec = NULL;
	lade_frame_writer *writer = NULL;
	FILE *file = fopen(c->path, "wb");
	if (!file)
		die(c->path, NULL);
	if (lade_spec_parse(NULL, c->spec, &spec, &err) != LADE_OK)
		die(c->spec, &err);
	uint64_t shape[1] = {c->size / 8};
	lade_frame_options options = {.struct_size = sizeof options,
	                              .spec = spec,
	                              .chunk_size = c->chunk_size,
	                              .dtype = LADE_U8,
	                              .ndim = 1,
	                              .shape = shape};
	lade_output output = {.ctx = file, .write = file_write};
	if (lade_frame_writer_new(engine, output, &options, &writer, &err) != LADE_OK)
		die("writer", &err);
	for (uint64_t off = 0; off < c->size;) {
		size_t size = sizeof block;
		if (size > c->size - off)
			size = (size_t)(c->size - off);
		fill_words(block, off / 8, size / 8);
		if (lade_frame_writer_write(writer, block, size, &err) != LADE_OK)
			die("write", &err);
		off += size;
	}
	if (lade_frame_writer_finish(writer, &err) != LADE_OK)
		die("finish", &err);
	lade_frame_writer_free(writer);
	lade_spec_unref(spec);
	if (fclose(file))
		die("close", NULL);
}

static void frame_pipe(lade_engine *engine, const frame_case *c)
{
	static uint8_t block[1 << 20];
	lade_error err;
	lade_frame_pipe *pipe = NULL;
	FILE *file = fopen(c->path, "rb");
	lade_input input = {.ctx = file, .read = file_read};
	if (!file || lade_frame_pipe_new(engine, input, NULL, &pipe, &err) != LADE_OK)
		die("pipe", file ? &err : NULL);
	uint64_t off = 0;
	for (size_t got;; off += got) {
		if (lade_frame_pipe_read(pipe, block, sizeof block, &got, &err) != LADE_OK)
			die("pipe read", &err);
		if (got == 0)
			break;
		if (!words_are(block, off, got))
			die("pipe: wrong bytes", NULL);
	}
	if (off != c->size)
		die("pipe: wrong size", NULL);
	lade_frame_pipe_free(pipe);
	fclose(file);
}

/* Ranges at the start, the end, over 4 GiB, and at random. */
static void frame_ranges(lade_engine *engine, const frame_case *c, size_t count, rng *r)
{
	lade_error err;
	lade_frame *frame = NULL;
	if (lade_frame_open_path(engine, c->path, NULL, &frame, &err) != LADE_OK)
		die("open", &err);
	const lade_frame_info *info = lade_frame_get_info(frame);
	if (info->size != c->size || info->shape[0] != c->size / 8)
		die("open: wrong size", NULL);
	printf("  %" PRIu64 " chunks, %.1f MiB stored\n", info->chunk_count,
	       (double)info->encoded_size / 1048576);
	enum { SIZE = 5000, BATCH = 64 };
	static uint8_t room[BATCH][SIZE];
	for (size_t done = 0; done < count; done += BATCH) {
		lade_frame_range ranges[BATCH];
		for (size_t i = 0; i < BATCH; i++) {
			uint64_t off = rng_below(r, c->size - SIZE);
			if (done == 0 && i == 0)
				off = 0;
			if (done == 0 && i == 1)
				off = c->size - SIZE;
			if (done == 0 && i == 2 && c->size > UINT32_MAX)
				off = (uint64_t)UINT32_MAX - SIZE / 2;
			ranges[i] = (lade_frame_range){off, lade_host_span(room[i], SIZE)};
		}
		if (lade_frame_read(frame, ranges, BATCH, NULL, NULL, &err) != LADE_OK)
			die("read", &err);
		for (size_t i = 0; i < BATCH; i++)
			if (!words_are(room[i], ranges[i].off, SIZE))
				die("read: wrong bytes", NULL);
	}
	lade_frame_close(frame);
}

static void frame_all(const frame_case *c, size_t ranges)
{
	lade_engine *engine = lade_engine_default();
	rng r = {20240607};
	double t0 = now();
	frame_write(engine, c);
	double t1 = now();
	printf("  written in %.1f s, peak %.1f MiB\n", t1 - t0, peak_mib());
	frame_pipe(engine, c);
	double t2 = now();
	printf("  read as a pipe in %.1f s, peak %.1f MiB\n", t2 - t1, peak_mib());
	frame_ranges(engine, c, ranges, &r);
	printf("  %zu ranges in %.1f s\n", ranges, now() - t2);
	remove(c->path);
}

static int cmd_big(const char *folder, uint64_t gib)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/big.lade", folder);
	printf("big: a frame of %" PRIu64 " GiB\n", gib);
	frame_case c = {.path = path, .spec = "shuffle(8)|zstd(level=1)", .size = (gib << 30) + 8};
	frame_all(&c, 640);
	return 0;
}

/* ---- a million tiny chunks -------------------------------------------------------------- */

static void tiny_batch(void)
{
	enum { COUNT = 1000000, SIZE = 24, ROOM = 64 };
	lade_engine *engine = lade_engine_default();
	lade_error err;
	lade_spec *spec = NULL;
	lade_item *items = calloc(COUNT, sizeof *items);
	lade_segment *segments = calloc(COUNT, sizeof *segments);
	lade_result *results = calloc(COUNT, sizeof *results);
	uint8_t *plain = malloc((size_t)COUNT * SIZE), *stored = malloc((size_t)COUNT * ROOM);
	uint8_t *back = calloc(COUNT, SIZE);
	if (!items || !segments || !results || !plain || !stored || !back)
		die("no memory", NULL);
	if (lade_spec_parse(NULL, "lz4|crc32c", &spec, &err) != LADE_OK)
		die("spec", &err);
	fill_words((uint64_t *)plain, 0, COUNT * SIZE / 8);
	double t0 = now();
	for (size_t i = 0; i < COUNT; i++) {
		segments[i] = (lade_segment){.data = plain + i * SIZE, .size = SIZE};
		items[i] = (lade_item){.src = &segments[i], .src_count = 1};
		items[i].dst = lade_host_span(stored + i * ROOM, ROOM);
	}
	if (lade_encode_into(engine, spec, items, COUNT, results, NULL, &err) != LADE_OK)
		die("encode", &err);
	double t1 = now();
	for (size_t i = 0; i < COUNT; i++) {
		segments[i] = (lade_segment){.data = stored + i * ROOM, .size = results[i].size};
		items[i].dst = lade_host_span(back + i * SIZE, SIZE);
	}
	if (lade_decode_into(engine, spec, items, COUNT, results, NULL, &err) != LADE_OK)
		die("decode", &err);
	printf("tiny: a batch of a million items encoded in %.2f s, decoded in %.2f s\n", t1 - t0,
	       now() - t1);
	if (memcmp(plain, back, (size_t)COUNT * SIZE) != 0)
		die("wrong bytes", NULL);
	lade_spec_unref(spec);
	free(items), free(segments), free(results), free(plain), free(stored), free(back);
}

static int cmd_tiny(const char *folder)
{
	char path[4096];
	tiny_batch();
	snprintf(path, sizeof path, "%s/tiny.lade", folder);
	printf("tiny: a frame of a million chunks\n");
	frame_case c = {.path = path, .spec = "lz4", .size = 24000000, .chunk_size = 24};
	frame_all(&c, 640);
	return 0;
}

/* ---- the largest chunks ----------------------------------------------------------------- */

/* Those that take fewer bytes say so; 'most' 0: they take all. */
static const struct largest {
	const char *spec;
	size_t most;
} largest_specs[] = {
	{"copy", 0},
	{"lz4", 0x7E000000},
	{"snappy", 0},
	{"zstd(level=1)", 0},
	{"deflate(level=1)", 0},
	{"zlib(level=1)", 0},
	{"gzip(level=1)", 0},
	{"blosc(cname=lz4,typesize=8)", LADE_FRAME_CHUNK_MAX - 16},
	{"blosc(cname=zstd,level=1,typesize=8,shuffle=bitshuffle)", LADE_FRAME_CHUNK_MAX - 16},
	{"ans", LADE_FRAME_CHUNK_MAX},
	{"ans(<f4)", LADE_FRAME_CHUNK_MAX},
	{"bitcomp(<u8)", 0},
	{"cascaded(<u8)", LADE_FRAME_CHUNK_MAX},
	{"shuffle(8)|crc32c", 0},
	{"bitshuffle(8)|adler32(start)", 0},
	{"delta(<u8)|byteswap(8)|zigzag(<i8)|split(8)|xxh64", 0},
	{"packints(<u8,last=40)", 0},
};

/* Encodes and decodes 'size' bytes, and compares. */
static void limit_chunk(const lade_spec *spec, const char *text, const uint8_t *plain, size_t size)
{
	lade_error err;
	size_t bound = lade_spec_bound(spec, size), encoded = 0, decoded = 0;
	uint8_t *stored = malloc(bound), *back = malloc(size);
	if (!stored || !back)
		die("no memory", NULL);
	double t0 = now();
	if (lade_encode(lade_engine_default(), spec, lade_host_cspan(plain, size),
	                lade_host_span(stored, bound), &encoded, &err) != LADE_OK)
		die(text, &err);
	double t1 = now();
	if (lade_decode(lade_engine_default(), spec, lade_host_cspan(stored, encoded),
	                lade_host_span(back, size), &decoded, &err) != LADE_OK)
		die(text, &err);
	printf("  %-56s %10zu -> %10zu bytes, encoded in %.1f s, decoded in %.1f s\n", text, size,
	       encoded, t1 - t0, now() - t1);
	if (decoded != size || memcmp(plain, back, size) != 0)
		die("wrong bytes", NULL);
	free(stored);
	free(back);
}

static int cmd_limit(const char *only)
{
	const size_t most = LADE_FRAME_CHUNK_MAX, first = (size_t)1 << 30;
	uint64_t *words = malloc(most + 1);
	if (!words)
		die("no memory", NULL);
	printf("limit: chunks above 1 GiB and of 2 GiB - 1\n");
	fill_words(words, 0, (most + 1) / 8);
	for (size_t i = 0; i < sizeof largest_specs / sizeof *largest_specs; i++) {
		const struct largest *c = &largest_specs[i];
		lade_spec *spec = NULL;
		lade_error err;
		if (!strstr(c->spec, only))
			continue;
		if (lade_spec_parse(NULL, c->spec, &spec, &err) != LADE_OK)
			die(c->spec, &err);
		/* Not all filters take a part of an element. */
		size_t rest = strchr(c->spec, '|') || strchr(c->spec, '8') ? 0 : 7;
		limit_chunk(spec, c->spec, (const uint8_t *)words, first + 8 + rest);
		size_t size = c->most && c->most < most ? c->most : most - 7 + rest;
		limit_chunk(spec, c->spec, (const uint8_t *)words, size);
		lade_spec_unref(spec);
	}
	free(words);
	return 0;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc >= 3 && strcmp(argv[1], "soak") == 0)
		return cmd_soak(atof(argv[2]), argc > 3 ? strtoull(argv[3], NULL, 10) : 1);
	if (argc >= 3 && strcmp(argv[1], "big") == 0)
		return cmd_big(argv[2], argc > 3 ? strtoull(argv[3], NULL, 10) : 5);
	if (argc >= 3 && strcmp(argv[1], "tiny") == 0)
		return cmd_tiny(argv[2]);
	if (argc >= 2 && strcmp(argv[1], "limit") == 0)
		return cmd_limit(argc > 2 ? argv[2] : "");
	fprintf(stderr, "usage: lade_long soak SECONDS [SEED] | big FOLDER [GIB] | tiny FOLDER | "
	                "limit [TEXT]\n");
	return 2;
}
