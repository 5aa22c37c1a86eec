/*
 * dict_bench.c: Zstandard frames with one dictionary, decoded on a device, beside the same chunks
 * without it.
 *
 *     dict_bench --data=DIR --sets=json.u1,... [--chunk=4096] [--count=10000] [--dict=16384]
 *                [--level=3] [--repeats=9] [--device=0]
 *
 * libzstd trains the dictionary on every 16th chunk of the set, and liblade encodes the chunks on
 * the host.  Chunks and results lie on the device.  What is timed is lade_decode_into() of all
 * chunks as its caller sees it, which plans the batch and waits for it; the number is the median.
 * All bytes are compared.  CSV: set,chunk,count,dict,ratio,us,gbps
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu.h"

#include <lade/batch.h>
#include <zdict.h>

typedef struct bench {
	gpu gpu;
	lade_engine *engine;
	lade_spec *spec;
	size_t chunk, count, dict_size, repeats;
	int32_t device;
	const char *set;
	unsigned char *data; /* 'count' chunks */
} bench;

/* The set's first bytes, again and again. */
static void load(bench *b, const char *folder)
{
	char path[512];
	size_t size, all = b->count * b->chunk;
	snprintf(path, sizeof path, "%s/%s", folder, b->set);
	unsigned char *set = bench_load(path, 64 * MIB, &size);
	size -= size % b->chunk;
	if (size == 0)
		bench_die(b->set, "is smaller than a chunk");
	b->data = bench_alloc(all);
	for (size_t i = 0; i < all; i += size)
		memcpy(b->data + i, set, all - i < size ? all - i : size);
	free(set);
}

static lade_dict *train(const bench *b)
{
	size_t samples = 0, *sizes = bench_alloc(b->count * sizeof *sizes);
	unsigned char *some = bench_alloc(b->count / 16 * b->chunk + b->chunk);
	unsigned char *bytes = bench_alloc(b->dict_size);
	for (size_t i = 0; i < b->count; i += 16) {
		memcpy(some + samples * b->chunk, b->data + i * b->chunk, b->chunk);
		sizes[samples++] = b->chunk;
	}
	size_t size =
		ZDICT_trainFromBuffer(bytes, b->dict_size, some, sizes, (unsigned)samples);
	if (ZDICT_isError(size))
		bench_die(b->set, ZDICT_getErrorName(size));
	lade_dict *dict;
	lade_error err;
	bench_ok(lade_dict_new(bytes, size, &dict, &err), &err, "dictionary");
	free(bytes);
	free(some);
	free(sizes);
	return dict;
}

/* Encodes all chunks to 'slots', of 'slot' bytes each; returns the sum of the sizes. */
static uint64_t encode(const bench *b, const lade_dict *dict, unsigned char *slots, size_t slot,
                       lade_segment *segments)
{
	lade_item *items = bench_alloc(b->count * sizeof *items);
	lade_result *results = bench_alloc(b->count * sizeof *results);
	lade_batch_options o;
	lade_error err;
	uint64_t sum = 0;
	lade_batch_options_init(&o);
	o.dict = dict;
	for (size_t i = 0; i < b->count; i++) {
		segments[i] = (lade_segment){.data = b->data + i * b->chunk, .size = b->chunk};
		items[i] = (lade_item){.src = &segments[i],
		                       .src_count = 1,
		                       .dst = lade_host_span(slots + i * slot, slot)};
	}
	bench_ok(lade_encode_into(b->engine, b->spec, items, b->count, results, &o, &err), &err,
	         "encode");
	for (size_t i = 0; i < b->count; i++) {
		segments[i].size = results[i].size;
		sum += results[i].size;
	}
	free(items);
	free(results);
	return sum;
}

static void row(bench *b, const lade_dict *dict)
{
	size_t slot = lade_spec_bound(b->spec, b->chunk), all = b->count * b->chunk;
	lade_place place = {LADE_DEVICE, b->device};
	unsigned char *slots = bench_alloc(b->count * slot), *back = bench_alloc(all);
	lade_segment *segments = bench_alloc(b->count * sizeof *segments);
	lade_item *items = bench_alloc(b->count * sizeof *items);
	double us[BENCH_ROUNDS_MAX];
	lade_batch_options o;
	lade_error err;
	uint64_t sum = encode(b, dict, slots, slot, segments);
	unsigned char *coded = gpu_alloc(&b->gpu, b->count * slot), *to = gpu_alloc(&b->gpu, all);
	gpu_up(&b->gpu, coded, slots, b->count * slot);
	lade_batch_options_init(&o);
	o.dict = dict;
	o.where = LADE_WHERE_DEVICE;
	o.device = b->device;
	for (size_t i = 0; i < b->count; i++) {
		segments[i].data = coded + i * slot;
		segments[i].place = place;
		items[i] = (lade_item){.src = &segments[i],
		                       .src_count = 1,
		                       .dst = {to + i * b->chunk, b->chunk, place}};
	}
	for (size_t k = 0; k <= b->repeats; k++) { /* the first is not counted */
		gpu_fill(&b->gpu, b->gpu.flush, (unsigned char)k, b->gpu.flush_size);
		gpu_wait(&b->gpu);
		double begin = bench_now();
		bench_ok(lade_decode_into(b->engine, b->spec, items, b->count, NULL, &o, &err),
		         &err, "decode");
		us[k ? k - 1 : 0] = 1e6 * (bench_now() - begin);
	}
	gpu_down(&b->gpu, back, to, all);
	if (memcmp(back, b->data, all) != 0)
		bench_die(b->set, "wrong bytes");
	double median = bench_stat_of(us, b->repeats).median;
	printf("%s,%zu,%zu,%zu,%.3f,%.1f,%.2f\n", b->set, b->chunk, b->count,
	       dict ? lade_dict_data(dict).size : 0, (double)all / (double)sum, median,
	       (double)all / median / 1e3);
	fflush(stdout);
	gpu_free(&b->gpu, coded);
	gpu_free(&b->gpu, to);
	free(slots);
	free(back);
	free(segments);
	free(items);
}

int main(int argc, char **argv)
{
	bench b = {.chunk = 4096, .count = 10000, .dict_size = 16384, .repeats = 9};
	const char *folder = ".", *sets = "json.u1", *level = "3";
	char text[64];
	lade_error err;
	for (int i = 1; i < argc; i++) {
		const char *v;
		if ((v = bench_option("--data", argv[i])))
			folder = v;
		else if ((v = bench_option("--sets", argv[i])))
			sets = v;
		else if ((v = bench_option("--level", argv[i])))
			level = v;
		else if ((v = bench_option("--chunk", argv[i])))
			b.chunk = strtoull(v, NULL, 0);
		else if ((v = bench_option("--count", argv[i])))
			b.count = strtoull(v, NULL, 0);
		else if ((v = bench_option("--dict", argv[i])))
			b.dict_size = strtoull(v, NULL, 0);
		else if ((v = bench_option("--repeats", argv[i])))
			b.repeats = strtoull(v, NULL, 0);
		else if ((v = bench_option("--device", argv[i])))
			b.device = atoi(v);
		else
			bench_die(argv[i], "is no option (the file lists them at its head)");
	}
	if (!b.chunk || !b.count || !b.repeats || b.repeats > BENCH_ROUNDS_MAX)
		bench_die("options", "chunk, count and repeats are 1 at least");
	b.gpu = gpu_open(b.device);
	bench_ok(lade_engine_new(NULL, &b.engine, &err), &err, "engine");
	snprintf(text, sizeof text, "zstd(level=%s)", level);
	bench_ok(lade_spec_parse(b.engine, text, &b.spec, &err), &err, text);
	printf("set,chunk,count,dict,ratio,us,gbps\n");
	while (*sets) {
		char set[128];
		size_t n = strcspn(sets, ",");
		snprintf(set, sizeof set, "%.*s", (int)n, sets);
		sets += n + (sets[n] == ',');
		b.set = set;
		load(&b, folder);
		lade_dict *dict = train(&b);
		row(&b, dict);
		row(&b, NULL);
		lade_dict_free(dict);
		free(b.data);
	}
	lade_spec_unref(b.spec);
	lade_engine_free(b.engine);
	return 0;
}
