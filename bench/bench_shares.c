/*
 * bench_shares.c: a spec's rates as shares of memcpy's over the same bytes, one thread, in one
 * process; the best of several rounds, as other work on the machine only ever slows.
 *
 *     bench_shares --data=DIR [--spec=ans({type})] [--mib=64] [--chunk=65536] [--rounds=5]
 *                  [--cpu=avx2] [--set=json.u1]
 *
 * All files of DIR are run, or the one that --set names; their suffix is the type, which stands in
 * for {type} in the spec.  A file that is smaller than --mib is repeated.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "common.h"

#include <dirent.h>
#include <math.h>

typedef struct job {
	const uint8_t *data;
	uint8_t *packed, *out;
	size_t size, chunk, stride, count;
	lade_engine *engine;
	lade_spec *spec;
	lade_segment *raw, *coded;
	lade_item *encode, *decode;
	lade_result *results;
	lade_batch_options options;
} job;

static void *zeroed(size_t count, size_t size)
{
	void *p = calloc(count, size);
	if (!p)
		bench_die("memory", "out of memory");
	return p;
}

static job job_new(const char *text, const uint8_t *data, size_t size, size_t chunk, lade_cpu cpu)
{
	lade_error err;
	job j = {.data = data, .size = size, .chunk = chunk, .count = (size + chunk - 1) / chunk};
	lade_engine_options engine = {.struct_size = sizeof engine, .cpu = cpu, .threads = 1};
	j.options = (lade_batch_options){.struct_size = sizeof j.options, .threads = 1};
	if (lade_engine_new(&engine, &j.engine, &err) || lade_spec_parse(NULL, text, &j.spec, &err))
		bench_die(text, err.message);
	j.stride = (lade_spec_bound(j.spec, chunk) + 63) / 64 * 64;
	j.packed = bench_alloc(j.count * j.stride);
	j.out = bench_alloc(size);
	j.raw = zeroed(j.count, sizeof *j.raw);
	j.coded = zeroed(j.count, sizeof *j.coded);
	j.encode = zeroed(j.count, sizeof *j.encode);
	j.decode = zeroed(j.count, sizeof *j.decode);
	j.results = zeroed(j.count, sizeof *j.results);
	for (size_t i = 0; i < j.count; i++) {
		size_t n = size - i * chunk < chunk ? size - i * chunk : chunk;
		j.raw[i] = (lade_segment){.data = data + i * chunk, .size = n};
		j.coded[i].data = j.packed + i * j.stride;
		j.encode[i] = (lade_item){.src = &j.raw[i],
		                          .src_count = 1,
		                          .dst = lade_host_span(j.packed + i * j.stride, j.stride)};
		j.decode[i] = (lade_item){.src = &j.coded[i],
		                          .src_count = 1,
		                          .dst = lade_host_span(j.out + i * chunk, n)};
	}
	return j;
}

static void job_free(job *j)
{
	lade_spec_unref(j->spec);
	lade_engine_free(j->engine);
	free(j->packed);
	free(j->out);
	free(j->raw);
	free(j->coded);
	free(j->encode);
	free(j->decode);
	free(j->results);
}

static double run_encode(job *j)
{
	lade_error err;
	double start = bench_now();
	if (lade_encode_into(j->engine, j->spec, j->encode, j->count, j->results, &j->options,
	                     &err))
		bench_die("encode", err.message);
	return bench_now() - start;
}

static double run_decode(job *j)
{
	lade_error err;
	double start = bench_now();
	if (lade_decode_into(j->engine, j->spec, j->decode, j->count, j->results, &j->options,
	                     &err))
		bench_die("decode", err.message);
	return bench_now() - start;
}

static double run_copy(job *j)
{
	double start = bench_now();
	memcpy(j->out, j->data, j->size);
	return bench_now() - start;
}

/* One file: its row, and its shares for the means. */
static void measure(const char *name, const char *text, const uint8_t *data, size_t size,
                    size_t chunk, lade_cpu cpu, size_t rounds, double shares[3])
{
	job j = job_new(text, data, size, chunk, cpu);
	double best[3] = {1e30, 1e30, 1e30};
	size_t packed = 0;
	run_copy(&j);
	run_encode(&j);
	for (size_t i = 0; i < j.count; i++)
		packed += j.coded[i].size = j.results[i].size;
	memset(j.out, 0xA5, size);
	run_decode(&j);
	if (!lade_spec_is_lossy(j.spec) && memcmp(j.out, data, size) != 0)
		bench_die(name, "the decoded bytes are not those that were encoded");
	for (size_t r = 0; r < rounds; r++) {
		double t[3] = {run_copy(&j), run_encode(&j), run_decode(&j)};
		for (int k = 0; k < 3; k++)
			best[k] = t[k] < best[k] ? t[k] : best[k];
	}
	shares[0] = (double)size / (double)packed;
	shares[1] = best[0] / best[1];
	shares[2] = best[0] / best[2];
	printf("%-20s %-24s %8.3f %10.0f %10.0f %7.3f %10.0f %7.3f\n", name, text, shares[0],
	       bench_mbs(size, best[0]), bench_mbs(size, best[1]), shares[1],
	       bench_mbs(size, best[2]), shares[2]);
	fflush(stdout);
	job_free(&j);
}

/* 'pattern' with the file's suffix for {type}. */
static void spec_of(const char *pattern, const char *file, char *text, size_t cap)
{
	const char *hole = strstr(pattern, "{type}"), *dot = strrchr(file, '.');
	if (!hole || !dot)
		snprintf(text, cap, "%s", pattern);
	else
		snprintf(text, cap, "%.*s%s%s", (int)(hole - pattern), pattern, dot + 1, hole + 6);
}

static int not_hidden(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

int main(int argc, char **argv)
{
	const char *dir = NULL, *set = NULL, *pattern = "ans({type})", *value;
	size_t mib = 64, chunk = 65536, rounds = 5, files = 0;
	lade_cpu cpu = LADE_CPU_AUTO;
	double sum[3] = {0};
	for (int i = 1; i < argc; i++) {
		if ((value = bench_option("--data", argv[i])))
			dir = value;
		else if ((value = bench_option("--spec", argv[i])))
			pattern = value;
		else if ((value = bench_option("--set", argv[i])))
			set = value;
		else if ((value = bench_option("--mib", argv[i])))
			mib = strtoul(value, NULL, 10);
		else if ((value = bench_option("--chunk", argv[i])))
			chunk = strtoul(value, NULL, 10);
		else if ((value = bench_option("--rounds", argv[i])))
			rounds = strtoul(value, NULL, 10);
		else if ((value = bench_option("--cpu", argv[i])))
			for (cpu = LADE_CPU_AVX512; cpu && strcmp(lade_cpu_name(cpu), value); cpu--)
				continue;
		else
			bench_die(argv[i], "no such option");
	}
	if (!dir || !mib || !chunk || !rounds)
		bench_die("--data", "say which folder; --mib, --chunk and --rounds are above 0");
	bench_print_machine(stdout);
	printf("%-20s %-24s %8s %10s %10s %7s %10s %7s\n", "data", "spec", "ratio", "copy MB/s",
	       "enc MB/s", "share", "dec MB/s", "share");
	struct dirent **names;
	int count = scandir(dir, &names, not_hidden, alphasort);
	for (int i = 0; i < count; i++) {
		char path[4096], text[256];
		double shares[3];
		size_t size = mib << 20, have;
		snprintf(path, sizeof path, "%s/%s", dir, names[i]->d_name);
		if (!set || strcmp(set, names[i]->d_name) == 0) {
			uint8_t *data = bench_load(path, size, &have);
			for (size_t at = have; at < size; at++)
				data[at] = data[at - have];
			spec_of(pattern, names[i]->d_name, text, sizeof text);
			measure(names[i]->d_name, text, data, size, chunk, cpu, rounds, shares);
			for (int k = 0; k < 3; k++)
				sum[k] += log(shares[k]);
			files++;
			free(data);
		}
		free(names[i]);
	}
	if (count >= 0)
		free(names);
	if (!files)
		bench_die(dir, "has no such file");
	printf("geometric mean of %zu: ratio %.3f, encode %.3f, decode %.3f of memcpy\n", files,
	       exp(sum[0] / (double)files), exp(sum[1] / (double)files),
	       exp(sum[2] / (double)files));
	return 0;
}
