/*
 * bench_own.c: the codecs of liblade's own formats against memcpy over the same buffers.
 *
 *     bench_own [--data=build/bench-data] [--mib=64] [--chunk=65536] [--rounds=7] [--csv]
 *               [--codec=NAME] [SET...]
 *
 * One thread; the sets of make_data.py, repeated up to --mib; chunk by chunk, at each CPU level
 * that the machine has.  "share" is memcpy's time for all chunks over the codec's in the same
 * round, in processor time; its median and quartiles.  "%s" of a codec's spec becomes the set's
 * type.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "common.h"

#include "codec/codecs.h"
#include "batch/host/item.h"

static const char *const specs[] = {"ans", "ans(dtype=%s)", "bitcomp(dtype=%s)",
                                    "cascaded(dtype=%s)", "cascaded(dtype=%s,mode=fast)"};
static const char *const sets[] = {
	"bf16_weights.u2", "float_noisy.f4",  "float_smooth.f4",  "json.u1",
	"source.u1",       "sparse.i4",       "timestamps.i8",    "tpch_orderkey.i8",
	"tpch_price.i8",   "tpch_quantity.i8", "tpch_shipdate.i4", "random.u1"};

typedef struct settings {
	const char *data, *codec;
	size_t size, chunk, rounds;
	bool csv;
} settings;

/* The set at hand, encoded in chunks. */
typedef struct job {
	settings *s;
	lade_worker *worker;
	const lade_stage *stage;
	const lade_implementation *encoder, *decoder;
	uint8_t *plain, *coded, *back;
	size_t *sizes, slot, all; /* 'slot' bytes a coded chunk; 'all' encoded bytes */
	char text[64];
} job;

/* One arm: a direction at a level; 'job' alone: memcpy. */
typedef struct work {
	job *j;
	int direction; /* -1: memcpy */
	lade_cpu cpu;
	void *state;
} work;

static void run_all(void *ctx)
{
	work *w = ctx;
	job *j = w->j;
	lade_run run = {.stage = j->stage, .worker = j->worker, .state = w->state, .cpu = w->cpu};
	for (size_t i = 0, at = 0; at < j->s->size; i++, at += j->s->chunk) {
		size_t chunk = j->s->size - at < j->s->chunk ? j->s->size - at : j->s->chunk, got;
		lade_error err;
		lade_status status = LADE_OK;
		if (w->direction < 0) {
			memcpy(j->back + at, j->plain + at, chunk);
		} else if (w->direction == LADE_ENCODE) {
			status = j->encoder->codec->run(
				&run, lade_host_cspan(j->plain + at, chunk),
				lade_host_span(j->coded + i * j->slot, j->slot), &j->sizes[i],
				&err);
		} else {
			status = j->decoder->codec->run(
				&run, lade_host_cspan(j->coded + i * j->slot, j->sizes[i]),
				lade_host_span(j->back + at, chunk), &got, &err);
		}
		if (status != LADE_OK)
			bench_die(j->encoder->name, err.message);
	}
	if (w->direction == LADE_ENCODE) {
		j->all = 0;
		for (size_t i = 0; i * j->s->chunk < j->s->size; i++)
			j->all += j->sizes[i];
	}
	__asm__ volatile("" : : "r"(j->back) : "memory");
}

static const lade_implementation *record(const char *name, lade_direction direction)
{
	return lade__codec_find(name, direction);
}

static void print_row(const settings *s, const char *set, const job *j, const work *w,
                      const bench_arm *arm, const bench_arm *copy)
{
	bench_stat share = bench_ratio(copy, arm);
	const char *format = s->csv ? "%s,\"%s\",%s,%s,%.3f,%.0f,%.3f,%.3f,%.3f\n"
	                            : "%-17s %-34s %-7s %-7s %7.3f %8.0f %6.2f  %5.2f..%.2f\n";
	printf(format, set, j->text, w->direction == LADE_ENCODE ? "encode" : "decode",
	       lade_cpu_name(w->cpu), (double)s->size / (double)j->all,
	       bench_mbs(s->size, bench_seconds(arm).median), share.median, share.q1, share.q3);
	fflush(stdout);
}

/* Encodes, checks, times and prints one codec on the set at hand. */
static void run_codec(job *j, const char *set, const char *spec_text)
{
	enum { MOST = 2 * (LADE_CPU_AVX512 + 1) };
	settings *s = j->s;
	lade_spec *spec;
	lade_error err;
	static bench_arm all[MOST];
	work works[MOST];
	bench_arm *arms[MOST];
	size_t count = 0;
	bool bf16 = strncmp(set, "bf16", 4) == 0;
	snprintf(j->text, sizeof j->text, spec_text, bf16 ? "bfloat16" : strrchr(set, '.') + 1);
	if (lade_spec_parse(NULL, j->text, &spec, &err))
		bench_die(j->text, err.message);
	j->stage = lade_spec_stage(spec, 0);
	j->encoder = record(j->stage->algorithm->name, LADE_ENCODE);
	j->decoder = record(j->stage->algorithm->name, LADE_DECODE);
	j->slot = lade_spec_bound(spec, s->chunk);
	j->coded = bench_alloc(j->slot * ((s->size + s->chunk - 1) / s->chunk));
	works[count++] = (work){.j = j, .direction = -1};
	for (int direction = LADE_ENCODE; direction <= LADE_DECODE; direction++)
		for (lade_cpu cpu = LADE_CPU_PLAIN; cpu <= lade_cpu_detect(); cpu++)
			if (cpu != LADE_CPU_SSE42)
				works[count++] = (work){.j = j, .direction = direction, .cpu = cpu};
	for (size_t i = 0; i < count; i++) {
		const lade_implementation *impl =
			works[i].direction == LADE_ENCODE ? j->encoder : j->decoder;
		if (impl->state_new)
			works[i].state = impl->state_new(impl->ctx,
			                                 lade_allocator_default(LADE_HOST));
		all[i] = (bench_arm){.name = j->text, .run = run_all, .ctx = &works[i]};
		arms[i] = &all[i];
		run_all(&works[i]);
		if (works[i].direction == LADE_DECODE && memcmp(j->back, j->plain, s->size))
			bench_die(j->text, "does not give back what went in");
		memset(j->back, 1, s->size);
	}
	bench_rounds(arms, count,
	             (bench_plan){.rounds = s->rounds, .clock = CLOCK_PROCESS_CPUTIME_ID});
	for (size_t i = 1; i < count; i++)
		print_row(s, set, j, &works[i], arms[i], arms[0]);
	for (size_t i = 0; i < count; i++) {
		const lade_implementation *impl =
			works[i].direction == LADE_ENCODE ? j->encoder : j->decoder;
		if (impl->state_free)
			impl->state_free(impl->ctx, works[i].state);
	}
	free(j->coded);
	lade_spec_unref(spec);
}

static void run_set(job *j, const char *set)
{
	settings *s = j->s;
	char path[1024];
	size_t have;
	snprintf(path, sizeof path, "%s/%s", s->data, set);
	j->plain = bench_load(path, s->size, &have);
	for (size_t at = have; at < s->size; at += have)
		memcpy(j->plain + at, j->plain, s->size - at < have ? s->size - at : have);
	for (size_t c = 0; c < sizeof specs / sizeof *specs; c++)
		if (!s->codec || !strncmp(specs[c], s->codec, strlen(s->codec)))
			run_codec(j, set, specs[c]);
	free(j->plain);
}

int main(int argc, char **argv)
{
	settings s = {.data = "build/bench-data", .size = 64 << 20, .chunk = 65536, .rounds = 7};
	lade_engine_options options = {.struct_size = sizeof options, .threads = 1};
	lade_engine *engine;
	lade_error err;
	job j = {.s = &s};
	bool named = false;
	const char *value;
	for (int i = 1; i < argc; i++) {
		if ((value = bench_option("--data", argv[i])))
			s.data = value;
		else if ((value = bench_option("--mib", argv[i])))
			s.size = strtoull(value, NULL, 0) << 20;
		else if ((value = bench_option("--chunk", argv[i])))
			s.chunk = strtoull(value, NULL, 0);
		else if ((value = bench_option("--rounds", argv[i])))
			s.rounds = strtoull(value, NULL, 0);
		else if ((value = bench_option("--codec", argv[i])))
			s.codec = value;
		else if (!strcmp(argv[i], "--csv"))
			s.csv = true;
		else if (argv[i][0] == '-')
			bench_die(argv[i], "no such option; the head of bench_own.c lists them");
		else
			named = true;
	}
	if (s.size == 0 || s.chunk == 0)
		bench_die("--mib, --chunk", "at least 1 is wanted");
	if (lade_engine_new(&options, &engine, &err))
		bench_die("an engine", err.message);
	j.worker = lade__worker_take(engine);
	j.back = bench_alloc(s.size);
	j.sizes = bench_alloc((s.size / s.chunk + 1) * sizeof *j.sizes);
	if (s.csv)
		puts("set,codec,direction,level,ratio,mbs,share,q1,q3");
	else
		bench_print_machine(stdout);
	for (size_t k = 0; k < sizeof sets / sizeof *sets; k++) {
		bool wanted = !named;
		for (int i = 1; i < argc; i++)
			wanted |= !strcmp(argv[i], sets[k]);
		if (wanted)
			run_set(&j, sets[k]);
	}
	lade__worker_give(j.worker);
	lade_engine_free(engine);
	free(j.back);
	free(j.sizes);
	return 0;
}
