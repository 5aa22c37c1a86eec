/*
 * bench_layouts.c: chunks that are scattered and gathered by layouts, against memcpy of as many
 * bytes.
 *
 *     bench_layouts [--csv] [--rounds=9] [--mib=64] [--levels] [NAME...]
 *
 * One thread and one chunk of --mib megabytes, through lade_decode_into() and lade_encode_into()
 * with the codec "copy", so that the layout is all there is to do.  "ratio" is the rate over
 * memcpy's in the same round, of processor time: its median and quartiles.  --levels adds the lower
 * CPU levels.  A name selects the cases that begin with it.
 *
 *     runs-N           rows of N bytes at a pitch of N + 64 (destinations fill a part of lines)
 *     odd-N            rows of N bytes at a pitch of N + 24: no two begin alike in their lines
 *     dense-N          rows of N bytes that fill the destination in another order of two axes
 *     turn-2d-N        a transpose of elements of N bytes; turn-3d-abc: axes in the order a, b, c
 *     reversed, step, field, swap: what the words say
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "common.h"

#define DIMS 4

typedef struct shape {
	char name[40];
	size_t elem, ndim;
	size_t shape[DIMS], order[DIMS], step[DIMS];
	size_t part_off, part_size, swap;
	ptrdiff_t strides[DIMS];
	size_t offset, span; /* span 0: no strides, what the box needs */
	bool decode_only;
} shape;

typedef struct work {
	lade_engine *engine; /* NULL: memcpy */
	lade_spec *spec;
	lade_direction direction;
	lade_layout layout;
	const uint8_t *src;
	uint8_t *dst;
	size_t src_size, dst_size;
} work;

static void run_one(void *ctx)
{
	work *w = ctx;
	if (!w->engine) {
		memcpy(w->dst, w->src, w->dst_size);
		__asm__ volatile("" : : "r"(w->dst) : "memory");
		return;
	}
	lade_error err;
	lade_segment segment = {.data = w->src, .size = w->src_size};
	lade_item item = {.src = &segment, .src_count = 1, .layout = &w->layout,
	                  .dst = lade_host_span(w->dst, w->dst_size)};
	lade_batch_options options = {.struct_size = sizeof options, .threads = 1};
	lade_status status = w->direction == LADE_DECODE
		? lade_decode_into(w->engine, w->spec, &item, 1, NULL, &options, &err)
		: lade_encode_into(w->engine, w->spec, &item, 1, NULL, &options, &err);
	if (status != LADE_OK)
		bench_die("layout", err.message);
}

/* ---- cases -------------------------------------------------------------------------------- */

#define CASES_MAX 128
static shape cases[CASES_MAX];
static size_t case_count;

static shape *add(const char *name, size_t number, size_t elem, size_t ndim)
{
	shape *s = &cases[case_count++];
	snprintf(s->name, sizeof s->name, number ? "%s%zu" : "%s", name, number);
	s->elem = elem;
	s->ndim = ndim;
	for (size_t i = 0; i < DIMS; i++) {
		s->order[i] = i;
		s->step[i] = 1;
	}
	return s;
}

static size_t side(size_t elements)
{
	size_t n = 1;
	while ((n + 1) * (n + 1) <= elements)
		n++;
	return n;
}

static void add_turns(size_t total)
{
	static const size_t elems[] = {1, 2, 4, 8, 16, 32};
	static const size_t orders[][3] = {{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	for (size_t i = 0; i < sizeof elems / sizeof *elems; i++) {
		shape *s = add("turn-2d-", elems[i], elems[i], 2);
		s->shape[0] = s->shape[1] = side(total / elems[i]);
		s->order[0] = 1;
		s->order[1] = 0;
	}
	shape *odd = add("turn-2d-odd-4", 0, 4, 2);
	odd->shape[0] = odd->shape[1] = side(total / 4) - 3;
	odd->order[0] = 1;
	odd->order[1] = 0;
	shape *swap = add("turn-2d-swap-4", 0, 4, 2);
	swap->shape[0] = swap->shape[1] = side(total / 4);
	swap->order[0] = 1;
	swap->order[1] = 0;
	swap->swap = 4;
	for (size_t i = 0; i < 5; i++) {
		char name[40];
		snprintf(name, sizeof name, "turn-3d-4-%zu%zu%zu", orders[i][0], orders[i][1],
		         orders[i][2]);
		shape *s = add(name, 0, 4, 3);
		s->shape[0] = s->shape[1] = 256;
		s->shape[2] = total / 4 / 65536;
		memcpy(s->order, orders[i], sizeof orders[i]);
	}
	shape *planes = add("turn-to-rgb-1", 0, 1, 2);
	planes->shape[0] = 3;
	planes->shape[1] = total / 3;
	planes->order[0] = 1;
	planes->order[1] = 0;
	shape *pixels = add("turn-from-rgb-1", 0, 1, 2);
	pixels->shape[0] = total / 3;
	pixels->shape[1] = 3;
	pixels->order[0] = 1;
	pixels->order[1] = 0;
}

static void add_runs(size_t total)
{
	for (size_t gap = 24; gap <= 64; gap += 40) {
		for (size_t n = 8; n <= 4096; n *= 2) {
			shape *s = add(gap == 64 ? "runs-" : "odd-", n, 1, 2);
			s->shape[0] = total / n;
			s->shape[1] = n;
			s->strides[0] = (ptrdiff_t)(n + gap);
			s->strides[1] = 1;
			s->span = s->shape[0] * (n + gap);
		}
	}
	for (size_t n = 8; n <= 4096; n *= 2) {
		shape *s = add("dense-", n, 1, 3);
		s->shape[0] = side(total / n);
		s->shape[1] = s->shape[0];
		s->shape[2] = n;
		s->order[0] = 1;
		s->order[1] = 0;
	}
}

static void add_others(size_t total)
{
	for (size_t elem = 1; elem <= 16; elem *= 2) {
		shape *s = add("reversed-", elem, elem, 2);
		s->shape[0] = total / elem / 1024;
		s->shape[1] = 1024;
		s->strides[0] = (ptrdiff_t)(1024 * elem);
		s->strides[1] = -(ptrdiff_t)elem;
		s->offset = 1023 * elem;
		s->span = total;
	}
	for (size_t elem = 1; elem <= 16; elem *= 2) {
		shape *s = add("step-2-", elem, elem, 1);
		s->shape[0] = total / elem;
		s->step[0] = 2;
		s->decode_only = true;
	}
	for (size_t part = 1; part <= 16; part *= 2) {
		shape *s = add("field-of-24-", part, 24, 1);
		s->shape[0] = total / 24;
		s->part_off = 8;
		s->part_size = part;
		s->decode_only = true;
	}
	for (size_t swap = 2; swap <= 16; swap *= 2) {
		shape *s = add("swap-", swap, swap, 1);
		s->shape[0] = total / swap;
		s->swap = swap;
	}
	shape *s = add("swap-field-8", 0, 24, 1);
	s->shape[0] = total / 24;
	s->part_off = 8;
	s->part_size = s->swap = 8;
	s->decode_only = true;
}

static lade_layout layout_of(const shape *s)
{
	return (lade_layout){.struct_size = sizeof(lade_layout), .elem_size = s->elem,
	                     .ndim = s->ndim, .shape = s->shape,
	                     .step = s->decode_only ? s->step : NULL, .order = s->order,
	                     .strides = s->span ? s->strides : NULL, .offset = s->offset,
	                     .part_off = s->part_off, .part_size = s->part_size,
	                     .swap_size = s->swap};
}

typedef struct settings {
	bool csv, levels;
	size_t rounds;
} settings;

/* All levels and memcpy in the same rounds, for one case and direction. */
static void time_case(const settings *s, const shape *c, lade_direction direction,
                      lade_engine **engines, lade_spec *spec)
{
	static bench_arm arms[5];
	static work works[5];
	bench_arm *list[5];
	lade_error err;
	lade_layout layout = layout_of(c);
	lade_layout_sizes sizes;
	if (lade_layout_measure(&layout, direction, SIZE_MAX, &sizes, &err) != LADE_OK)
		bench_die(c->name, err.message);
	size_t span = c->span ? c->span : sizes.end, chunk = sizes.chunk_size;
	size_t src_size = direction == LADE_DECODE ? chunk : span;
	size_t dst_size = direction == LADE_DECODE ? span : chunk;
	uint8_t *src = bench_alloc(src_size), *dst = bench_alloc(dst_size);
	uint8_t *from = bench_alloc(sizes.size), *to = bench_alloc(sizes.size);
	works[0] = (work){.src = from, .dst = to, .dst_size = sizes.size};
	size_t top = (size_t)lade_cpu_detect(), count = 1;
	for (size_t level = s->levels ? 1 : top; level <= top; level++)
		works[count++] = (work){engines[level], spec, direction, layout, src,
		                        dst, src_size, dst_size};
	for (size_t k = 0; k < count; k++) {
		arms[k] = (bench_arm){.name = c->name, .run = run_one, .ctx = &works[k]};
		list[k] = &arms[k];
	}
	bench_rounds(list, count, (bench_plan){.rounds = s->rounds,
	                                       .clock = CLOCK_PROCESS_CPUTIME_ID});
	for (size_t k = 1; k < count; k++) {
		bench_stat seconds = bench_seconds(&arms[k]);
		bench_stat ratio = bench_ratio(&arms[0], &arms[k]);
		const char *format = s->csv ? "%s,%s,%s,%zu,%.0f,%.3f,%.3f,%.3f\n"
		                            : "%-20s %-7s %-7s %9zu %9.0f %7.2f  %5.2f..%.2f\n";
		printf(format, c->name, direction == LADE_DECODE ? "decode" : "encode",
		       lade_cpu_name(lade_engine_cpu(works[k].engine)), sizes.size,
		       bench_mbs(sizes.size, seconds.median), ratio.median, ratio.q1, ratio.q3);
		fflush(stdout);
	}
	free(src);
	free(dst);
	free(from);
	free(to);
}

static bool wanted(const char *name, char **names, int count)
{
	for (int i = 0; i < count; i++)
		if (names[i][0] != '-' && strncmp(name, names[i], strlen(names[i])) == 0)
			return true;
	for (int i = 0; i < count; i++)
		if (names[i][0] != '-')
			return false;
	return true;
}

int main(int argc, char **argv)
{
	settings s = {.rounds = 9};
	size_t mib = 64;
	for (int i = 1; i < argc; i++) {
		const char *value;
		if (!strcmp(argv[i], "--csv"))
			s.csv = true;
		else if (!strcmp(argv[i], "--levels"))
			s.levels = true;
		else if ((value = bench_option("--rounds", argv[i])))
			s.rounds = (size_t)strtoul(value, NULL, 10);
		else if ((value = bench_option("--mib", argv[i])))
			mib = (size_t)strtoul(value, NULL, 10);
		else if (argv[i][0] == '-')
			bench_die(argv[i], "no such option");
	}
	lade_engine *engines[5] = {0};
	lade_spec *spec;
	lade_error err;
	for (size_t level = 1; level <= (size_t)lade_cpu_detect(); level++) {
		lade_engine_options options = {.struct_size = sizeof options, .threads = 1,
		                               .cpu = (lade_cpu)level};
		if (lade_engine_new(&options, &engines[level], &err) != LADE_OK)
			bench_die("engine", err.message);
	}
	if (lade_spec_parse(lade_engine_default(), "copy", &spec, &err) != LADE_OK)
		bench_die("copy", err.message);
	add_runs(mib << 20);
	add_turns(mib << 20);
	add_others(mib << 20);
	bench_print_machine(stdout);
	printf(s.csv ? "case,direction,level,size,mb_per_s,ratio,q1,q3\n"
	             : "# case               way     level        size      MB/s   of memcpy's\n");
	for (size_t i = 0; i < case_count; i++) {
		if (!wanted(cases[i].name, argv + 1, argc - 1))
			continue;
		time_case(&s, &cases[i], LADE_DECODE, engines, spec);
		if (!cases[i].decode_only)
			time_case(&s, &cases[i], LADE_ENCODE, engines, spec);
	}
	for (size_t level = 1; level < 5; level++)
		lade_engine_free(engines[level]);
	lade_spec_unref(spec);
	return 0;
}
