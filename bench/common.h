/*
 * common.h: what the benchmark programs share: buffers, data files, clocks, interleaved rounds,
 * medians with quartiles, and the line that says on what machine a number was taken.
 *
 * The programs compare arms (lade's way, the library's own way) in one process.  A round times
 * every arm once, and the order turns from round to round, so that a machine that slows down
 * slows all arms alike; what is reported is the median of the rounds' ratios.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BENCH_COMMON_H
#define LADE_BENCH_COMMON_H

#include <lade/lade.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BENCH_ROUNDS_MAX 1001
#define BENCH_ARMS_MAX 16

static inline void bench_die(const char *what, const char *why)
{
	fprintf(stderr, "bench: %s: %s\n", what, why);
	exit(1);
}

/* ---- buffers and data ------------------------------------------------------------------- */

/* 64-byte aligned and written once, so that no timed loop takes page faults.  Never NULL. */
static inline void *bench_alloc(size_t size)
{
	size_t rounded = (size + 4095) / 4096 * 4096;
	void *p = aligned_alloc(4096, rounded ? rounded : 4096);
	if (!p)
		bench_die("memory", "out of memory");
	memset(p, 1, rounded ? rounded : 4096);
	return p;
}

/* The first 'cap' bytes of a file (all of them, if fewer); free() gives them back. */
static inline void *bench_load(const char *path, size_t cap, size_t *size)
{
	FILE *f = fopen(path, "rb");
	if (!f)
		bench_die(path, "cannot be opened (make the data with bench/make_data.py)");
	void *p = bench_alloc(cap);
	*size = fread(p, 1, cap, f);
	fclose(f);
	if (*size == 0)
		bench_die(path, "is empty");
	return p;
}

/* ---- clocks ------------------------------------------------------------------------------- */

static inline double bench_clock(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of wall time. */
static inline double bench_now(void)
{
	return bench_clock(CLOCK_MONOTONIC);
}

/* ---- statistics -------------------------------------------------------------------------- */

typedef struct bench_stat {
	double median, q1, q3; /* the middle, and the quartiles around it */
	size_t count;
} bench_stat;

static inline int bench_order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* The value at share 'q' of sorted values, between neighbours by proportion. */
static inline double bench_quantile(const double *sorted, size_t count, double q)
{
	double at = q * (double)(count - 1);
	size_t i = (size_t)at;
	if (i + 1 >= count)
		return sorted[count - 1];
	return sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]);
}

static inline bench_stat bench_stat_of(const double *values, size_t count)
{
	static double sorted[BENCH_ROUNDS_MAX];
	bench_stat s = {0};
	if (count == 0)
		return s;
	memcpy(sorted, values, count * sizeof *sorted);
	qsort(sorted, count, sizeof *sorted, bench_order);
	s.median = bench_quantile(sorted, count, 0.5);
	s.q1 = bench_quantile(sorted, count, 0.25);
	s.q3 = bench_quantile(sorted, count, 0.75);
	s.count = count;
	return s;
}

/* ---- rounds ------------------------------------------------------------------------------ */

/* One way of doing the work.  'run' does all of it once and exits the program if it fails. */
typedef struct bench_arm {
	const char *name;
	void (*run)(void *ctx);
	void *ctx;
	double seconds[BENCH_ROUNDS_MAX]; /* for one run, in each round */
	size_t rounds;
} bench_arm;

typedef struct bench_plan {
	size_t rounds;   /* 0: 15 */
	double sample;   /* seconds that one arm's turn in a round takes at least; 0: 0.02 */
	clockid_t clock; /* CLOCK_MONOTONIC (0 is CLOCK_REALTIME and is taken for it), or
			  * CLOCK_PROCESS_CPUTIME_ID, which a busy neighbour disturbs less */
} bench_plan;

/* Times every arm in every round.  Each arm runs twice before anything is timed. */
static inline void bench_rounds(bench_arm **arms, size_t count, bench_plan plan)
{
	size_t reps[BENCH_ARMS_MAX] = {0};
	clockid_t clock = plan.clock == 0 ? CLOCK_MONOTONIC : plan.clock;
	size_t rounds = plan.rounds ? plan.rounds : 15;
	double sample = plan.sample > 0 ? plan.sample : 0.02;
	if (rounds > BENCH_ROUNDS_MAX || count > BENCH_ARMS_MAX)
		bench_die("rounds", "too many");
	for (size_t a = 0; a < count; a++) {
		arms[a]->run(arms[a]->ctx);
		double start = bench_now();
		arms[a]->run(arms[a]->ctx);
		double took = bench_now() - start;
		reps[a] = took >= sample ? 1 : (size_t)(sample / (took > 1e-9 ? took : 1e-9)) + 1;
		arms[a]->rounds = rounds;
	}
	for (size_t r = 0; r < rounds; r++) {
		for (size_t k = 0; k < count; k++) {
			size_t a = (k + r) % count;
			double start = bench_clock(clock);
			for (size_t i = 0; i < reps[a]; i++)
				arms[a]->run(arms[a]->ctx);
			arms[a]->seconds[r] = (bench_clock(clock) - start) / (double)reps[a];
		}
	}
}

/* Seconds for one run. */
static inline bench_stat bench_seconds(const bench_arm *arm)
{
	return bench_stat_of(arm->seconds, arm->rounds);
}

/* How many times as long 'a' takes as 'b': the ratio in each round, its median and spread. */
static inline bench_stat bench_ratio(const bench_arm *a, const bench_arm *b)
{
	static double ratio[BENCH_ROUNDS_MAX];
	for (size_t r = 0; r < a->rounds; r++)
		ratio[r] = a->seconds[r] / b->seconds[r];
	return bench_stat_of(ratio, a->rounds);
}

/* Decoded megabytes (10^6) a second. */
static inline double bench_mbs(size_t bytes, double seconds)
{
	return (double)bytes / 1e6 / seconds;
}

/* ---- the machine ------------------------------------------------------------------------ */

/* The processor's name; "unknown" where /proc/cpuinfo does not tell. */
static inline const char *bench_cpu_name(void)
{
	static char name[128] = "unknown";
	char line[256];
	FILE *f = fopen("/proc/cpuinfo", "r");
	while (f && fgets(line, sizeof line, f)) {
		char *colon = strchr(line, ':');
		if (strncmp(line, "model name", 10) == 0 && colon) {
			colon[strcspn(colon, "\n")] = 0;
			snprintf(name, sizeof name, "%.127s", colon + 2);
			break;
		}
	}
	if (f)
		fclose(f);
	return name;
}

/* One comment line for the head of a result: "# liblade 0.1.0, <cpu>, 2 threads, avx512". */
static inline void bench_print_machine(FILE *out)
{
	fprintf(out, "# liblade %s, %s, %u threads, %s\n", lade_version_text(), bench_cpu_name(),
		lade_cpu_count(), lade_cpu_name(lade_cpu_detect()));
}

/* ---- command line ----------------------------------------------------------------------- */

/* The value of "--name=value" in 'arg', or NULL: bench_option("--mib", argv[i]). */
static inline const char *bench_option(const char *name, const char *arg)
{
	size_t n = strlen(name);
	return strncmp(arg, name, n) == 0 && arg[n] == '=' ? arg + n + 1 : NULL;
}

#endif
