/*
 * bench_filters.c: each filter alone against memcpy over the same buffers.
 *
 *     bench_filters [--csv] [--rounds=15] [--mib=64] [NAME...]
 *
 * One thread, tile functions called with one big tile as the engine does, at each CPU level
 * that the machine has, 64 KiB and 64 MiB (--mib) of elements of 4 and 8 bytes.  "ratio" is the
 * filter's rate over memcpy's in the same round; its median and quartiles.  A name selects the
 * filters whose spec begins with it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "common.h"

#include "filter/filters.h"

typedef struct work {
	const lade_implementation *impl; /* NULL: memcpy */
	lade_run run;
	const uint8_t *src;
	uint8_t *dst;
	size_t count, total;
} work;

static void run_one(void *ctx)
{
	work *w = ctx;
	lade_carry carry = {{0}};
	lade_error err;
	if (!w->impl) {
		memcpy(w->dst, w->src, w->total);
		__asm__ volatile("" : : "r"(w->dst) : "memory");
		return;
	}
	lade_elements tile = {w->src, w->dst, 0, w->count, w->total, &carry};
	if (w->impl->tile->run(&w->run, &tile, &err) != LADE_OK)
		bench_die(w->impl->name, err.message);
}

static const lade_implementation *record(const char *name, lade_direction direction)
{
	for (const lade_implementation *const *i = lade__filters.implementations; *i; i++)
		if (!strcmp((*i)->algorithm, name) && (*i)->direction == direction)
			return *i;
	bench_die(name, "no such filter");
	return NULL;
}

typedef struct settings {
	bool csv;
	size_t rounds;
} settings;

static void print_row(const settings *s, const char *text, const char *direction, lade_cpu level,
                      size_t total, const bench_arm *arm, const bench_arm *copy)
{
	bench_stat seconds = bench_seconds(arm), ratio = bench_ratio(copy, arm);
	const char *format = s->csv ? "%s,%s,%s,%zu,%.0f,%.3f,%.3f,%.3f\n"
	                            : "%-34s %-7s %-7s %9zu %9.0f %7.2f  %5.2f..%.2f\n";
	printf(format, text, direction, lade_cpu_name(level), total,
	       bench_mbs(total, seconds.median), ratio.median, ratio.q1, ratio.q3);
	fflush(stdout);
}

/* All levels and memcpy in the same rounds, for one filter and direction. */
static void time_direction(const settings *s, const char *text, const lade_spec *spec,
                           lade_direction direction, const uint8_t *src, uint8_t *dst,
                           size_t total)
{
	static bench_arm arms[5];
	static work works[5];
	bench_arm *list[5];
	const lade_stage *stage = lade_spec_stage(spec, 0);
	const lade_implementation *impl = record(stage->algorithm->name, direction);
	size_t decoded, encoded, levels = (size_t)lade_cpu_detect();
	impl->tile->sizes(stage, &decoded, &encoded);
	for (size_t k = 0; k <= levels; k++) {
		works[k] = (work){.impl = k ? impl : NULL, .src = src, .dst = dst,
		                  .count = total / decoded, .total = total};
		works[k].run = (lade_run){.stage = stage, .cpu = (lade_cpu)k};
		arms[k] = (bench_arm){.name = text, .run = run_one, .ctx = &works[k]};
		list[k] = &arms[k];
	}
	bench_rounds(list, levels + 1, (bench_plan){.rounds = s->rounds});
	for (size_t k = 1; k <= levels; k++)
		print_row(s, text, direction == LADE_ENCODE ? "encode" : "decode", (lade_cpu)k,
		          total, list[k], list[0]);
}

/* Elements that all the filters below take: numbers from 0 to 999, as <i4, <i8, <f4 or <f8. */
static void fill(const char *text, uint8_t *data, size_t total)
{
	bool real = strstr(text, "(f") != NULL;
	uint32_t x = 1;
	size_t size = strchr(text, '8') ? 8 : 4;
	for (size_t i = 0; i < total / size; i++) {
		x = x * 1664525 + 1013904223;
		int64_t v = (x >> 16) % 1000;
		float f4 = (float)v;
		double f8 = (double)v;
		const void *from = !real ? (const void *)&v : size == 8 ? (const void *)&f8 : &f4;
		memcpy(data + i * size, from, size);
	}
}

static void time_filter(const settings *s, const char *text, size_t total)
{
	lade_spec *spec;
	lade_error err;
	if (lade_spec_parse(NULL, text, &spec, &err) != LADE_OK)
		bench_die(text, err.message);
	/* memcpy moves the decoded size, whichever side is larger. */
	size_t bound = lade_spec_bound(spec, total), room = bound > total ? bound : total;
	uint8_t *plain = bench_alloc(total), *there = bench_alloc(room),
		*back = bench_alloc(total);
	const lade_stage *stage = lade_spec_stage(spec, 0);
	fill(text, plain, total);
	time_direction(s, text, spec, LADE_ENCODE, plain, there, total);
	work w = {.impl = record(stage->algorithm->name, LADE_ENCODE), .src = plain, .dst = there,
	          .total = total};
	size_t decoded, encoded;
	w.impl->tile->sizes(stage, &decoded, &encoded);
	w.run = (lade_run){.stage = stage, .cpu = LADE_CPU_PLAIN};
	w.count = total / decoded;
	run_one(&w);
	time_direction(s, text, spec, LADE_DECODE, there, back, total);
	free(plain);
	free(there);
	free(back);
	lade_spec_unref(spec);
}

int main(int argc, char **argv)
{
	static const char *const texts[] = {
		"shuffle(4)",
		"shuffle(8)",
		"bitshuffle(4)",
		"bitshuffle(8)",
		"delta(i4)",
		"delta(i8)",
		"zigzag(i4)",
		"zigzag(i8)",
		"split(4)",
		"split(8)",
		"byteswap(4)",
		"byteswap(8)",
		"scaleoffset(i4,offset=7)",
		"scaleoffset(i8,offset=7)",
		"delta(f4)",
		"delta(f8)",
		"bitround(f4,keepbits=10)",
		"bitround(f8,keepbits=20)",
		"quantize(f4,digits=2)",
		"quantize(f8,digits=2)",
		"fixedscaleoffset(f4,astype=i4)",
		"fixedscaleoffset(f8,astype=i8)",
		"astype(f4,astype=i4)",
		"astype(i8,astype=i4)",
	};
	settings s = {.rounds = 15};
	size_t mib = 64;
	int names = argc;
	for (int i = 1; i < argc; i++) {
		const char *value;
		if (!strcmp(argv[i], "--csv"))
			s.csv = true;
		else if ((value = bench_option("--rounds", argv[i])))
			s.rounds = strtoul(value, NULL, 10);
		else if ((value = bench_option("--mib", argv[i])))
			mib = strtoul(value, NULL, 10);
		else if (argv[i][0] == '-')
			bench_die(argv[i], "unknown option");
		else if (names == argc)
			names = i;
	}
	bench_print_machine(stdout);
	printf(s.csv ? "filter,direction,cpu,bytes,MB/s,ratio,q1,q3\n"
	             : "%-34s %-7s %-7s %9s %9s %7s  %s\n",
	       "filter", "", "cpu", "bytes", "MB/s", "ratio", "quartiles");
	const size_t sizes[] = {65536, mib << 20};
	for (size_t k = 0; k < 2; k++) {
		for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
			bool wanted = names == argc;
			for (int i = names; i < argc; i++)
				wanted |= !strncmp(texts[t], argv[i], strlen(argv[i]));
			if (wanted)
				time_filter(&s, texts[t], sizes[k]);
		}
	}
	return 0;
}
