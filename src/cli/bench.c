/*
 * bench.c: 'lade bench', algorithms against each other on the caller's own data.
 *
 * Every combination of filter, algorithm, level, chunk size and number of threads is a row.  Each
 * is first checked by a round trip, then timed through the same calls that a program would
 * use, in memory, chunk by chunk.  With --gpu a device has three rows more of each pipeline that
 * it decodes: from its own memory, and fed from pinned and from pageable memory of the host.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/gpu.h"
#include "cli/json.h"
#include "cli/measure.h"
#include "cli/pipeline.h"
#include "cli/table.h"

#define LIST_MAX 64

static const char help[] =
	"Usage: lade bench [OPTION]... FILE...\n"
	"Time algorithms on the data of each FILE (.npy arrays are read with their type).\n"
	"Every combination of the lists is a row; every row's round trip is verified.\n"
	"\n"
	"  -a, --algorithm=LIST   names or whole pipelines, \"zstd,shuffle(4)|lz4\"\n"
	"                         (default lz4,snappy,zstd,deflate,blosc)\n"
	"  -f, --filter=LIST      filters before each algorithm, \"none,shuffle,delta|shuffle\"\n"
	"                         (default none; for elements of 2 bytes and more, none,shuffle)\n"
	"  -l, --level=LIST       levels for algorithms that have them, \"1,3,6-9\"\n"
	"  -s, --chunk-size=LIST  \"64K,1M\" (default 1M)\n"
	"  -T, --threads=LIST     \"1,2\"; 0 is all cores (default 1)\n"
	"  -d, --dtype=TYPE       type of the elements, \"f4\", \"<i8\"; --dtype=none for bytes\n"
	"  -t, --time=SECONDS     for each row and direction, at least (default 0.5)\n"
	"  -n, --size=SIZE        use at most the first SIZE bytes of a file (default 256M)\n"
	"      --gpu[=N]          rows for GPU N (0), too: of bytes in its memory, and of bytes\n"
	"                         that come to it from pinned and pageable memory of the host\n"
	"      --csv, --json      print that instead of a table\n"
	"  -h, --help             print this\n"
	"\n"
	"Rates are in MB/s (10^6 bytes a second) of decoded bytes, medians; the best of each\n"
	"column is marked with a star.  The row memcpy is a plain copy by one thread.\n";

typedef struct settings {
	const char *algorithms, *filters;
	int64_t levels[LIST_MAX];
	uint64_t chunk_sizes[LIST_MAX], threads[LIST_MAX];
	size_t level_count, chunk_count, thread_count;
	bool has_dtype, csv, json;
	int32_t gpu; /* or CLI_NO_GPU */
	lade_dtype dtype;
	double seconds;
	uint64_t limit;
} settings;

typedef struct row {
	char *pipeline; /* the spec's text, or what was asked for when that is no spec */
	size_t chunk_size;
	unsigned threads; /* 0: the memcpy row, and a device's */
	bool on_device;
	unsigned way; /* of a device: MEASURE_RESIDENT, ... */
	measure m;
	lade_status status;
	lade_error err;
} row;

typedef struct rows {
	row *list;
	size_t count, cap;
} rows;

static row *rows_add(rows *r, const char *pipeline)
{
	if (r->count == r->cap) {
		r->cap = r->cap ? 2 * r->cap : 64;
		r->list = cli_need(realloc(r->list, r->cap * sizeof *r->list));
	}
	row *new = &r->list[r->count++];
	*new = (row){.pipeline = cli_need(strdup(pipeline))};
	return new;
}

static void rows_free(rows *r)
{
	for (size_t i = 0; i < r->count; i++)
		free(r->list[i].pipeline);
	free(r->list);
}

/* ---- arguments ---- */

/* Reads "1,3,6-9"; false when it is no such list or a longer one. */
static bool parse_levels(const char *text, settings *s)
{
	s->level_count = 0;
	while (*text) {
		char *end;
		long first = strtol(text, &end, 10), last = first;
		if (end == text || first < -131072 || first > 1000)
			return false;
		if (*end == '-' && end[1] >= '0' && end[1] <= '9')
			last = strtol(end + 1, &end, 10);
		if ((*end && *end != ',') || last < first || last - first >= LIST_MAX)
			return false;
		for (long level = first; level <= last; level++) {
			if (s->level_count == LIST_MAX)
				return false;
			s->levels[s->level_count++] = level;
		}
		text = *end ? end + 1 : end;
	}
	return s->level_count > 0;
}

/* Reads a list of sizes or counts from 'min' to 'max'. */
static bool parse_sizes(const char *text, uint64_t min, uint64_t max, uint64_t *list, size_t *count)
{
	bool good = true;

	*count = 0;
	for (char *item; good && (item = pipeline_next(&text, ','));) {
		uint64_t value;
		good = *count < LIST_MAX && cli_parse_size(item, &value) && value >= min &&
		       value <= max;
		if (good)
			list[(*count)++] = value;
		free(item);
	}
	return good && *count > 0;
}

/* Gives CLI_OK, or an exit code after a message; '*done' when --help was answered. */
static int parse_arguments(int argc, char **argv, settings *s, bool *done)
{
	enum { OPT_CSV = 256, OPT_JSON, OPT_GPU };
	static const struct option options[] = {
		{"algorithm", required_argument, NULL, 'a'},
		{"filter", required_argument, NULL, 'f'},
		{"level", required_argument, NULL, 'l'},
		{"chunk-size", required_argument, NULL, 's'},
		{"threads", required_argument, NULL, 'T'},
		{"dtype", required_argument, NULL, 'd'},
		{"time", required_argument, NULL, 't'},
		{"size", required_argument, NULL, 'n'},
		{"gpu", optional_argument, NULL, OPT_GPU},
		{"csv", no_argument, NULL, OPT_CSV},
		{"json", no_argument, NULL, OPT_JSON},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	lade_error err;
	char *end;
	int c;

	optind = 0;
	opterr = 0;
	while ((c = getopt_long(argc, argv, "a:f:l:s:T:d:t:n:h", options, NULL)) != -1) {
		switch (c) {
		case 'a':
			s->algorithms = optarg;
			break;
		case 'f':
			s->filters = optarg;
			break;
		case 'l':
			if (!parse_levels(optarg, s))
				return cli_usage("%s: not a list of levels", optarg);
			break;
		case 's':
			if (!parse_sizes(optarg, LADE_FRAME_CHUNK_MIN, LADE_FRAME_CHUNK_MAX,
			                 s->chunk_sizes, &s->chunk_count))
				return cli_usage("%s: not a list of chunk sizes (16 to 2147483647)",
						 optarg);
			break;
		case 'T':
			if (!parse_sizes(optarg, 0, 1024, s->threads, &s->thread_count))
				return cli_usage("%s: not a list of threads (0 to 1024)", optarg);
			break;
		case 'd':
			s->has_dtype = true;
			s->dtype = LADE_DTYPE_NONE;
			if (strcmp(optarg, "none") != 0 &&
			    lade_dtype_parse(optarg, &s->dtype, &err))
				return cli_usage("--dtype: %s", err.message);
			break;
		case 't':
			s->seconds = strtod(optarg, &end);
			if (end == optarg || *end || !(s->seconds >= 0 && s->seconds <= 3600))
				return cli_usage("%s: not a time in seconds (0 to 3600)", optarg);
			break;
		case 'n':
			if (!cli_parse_size(optarg, &s->limit) || s->limit == 0)
				return cli_usage("%s: not a size", optarg);
			break;
		case OPT_GPU:
			if (cli_gpu_parse(optarg, &s->gpu) != CLI_OK)
				return CLI_USAGE;
			break;
		case OPT_CSV:
			s->csv = true;
			break;
		case OPT_JSON:
			s->json = true;
			break;
		case 'h':
			fputs(help, stdout);
			*done = true;
			return CLI_OK;
		default:
			return cli_usage(
				"bench: there is no such option, or it lacks its value: %s",
				argv[optind - 1]);
		}
	}
	if (s->csv && s->json)
		return cli_usage("--csv and --json exclude each other");
	if (optind == argc)
		return cli_usage("bench: no file given");
	return CLI_OK;
}

/* ---- measuring ---- */

/* Says on a terminal what is being measured. */
static void show_progress(const char *pipeline)
{
	if (cli_verbosity >= 2 && isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K%s", pipeline ? pipeline : "");
}

/* The rows of a device, or one that says why there are none.  Nothing for pipelines that it does
 * not decode. */
static void measure_device(const settings *s, lade_engine *engine, const lade_spec *spec,
			   const measure_plan *plan, rows *out)
{
	measure m[MEASURE_GPU_WAYS];
	lade_error err;
	const lade_workload work = {.direction = LADE_DECODE, .largest = plan->chunk_size};

	if (lade_device_takes(engine, spec, &work, s->gpu, &err))
		return;
	show_progress(lade_spec_text(spec));
	lade_status status = measure_gpu(engine, spec, plan, s->gpu, m, &err);
	for (unsigned way = 0; way < (status ? 1 : MEASURE_GPU_WAYS); way++) {
		row *r = rows_add(out, lade_spec_text(spec));
		r->chunk_size = plan->chunk_size;
		r->on_device = true;
		r->way = way;
		r->m = m[way];
		r->status = status;
		if (status)
			r->err = err;
	}
}

/* Measures one combination for each chunk size and number of threads. */
static void measure_pipeline(const settings *s, lade_engine *engine, const sample *file,
			     const char *text, int64_t level, rows *out)
{
	lade_spec *spec = NULL;
	lade_error err;
	lade_status status = pipeline_parse(text, file->dtype, level, &spec, &err);

	if (status != LADE_OK) {
		row *r = rows_add(out, text);
		r->status = status;
		r->err = err;
		return;
	}
	for (size_t c = 0; c < s->chunk_count; c++) {
		measure_plan plan = {.data = file->data, .size = file->size};
		plan.chunk_size = (size_t)s->chunk_sizes[c];
		plan.seconds = s->seconds;
		for (size_t t = 0; t < s->thread_count; t++) {
			row *r = rows_add(out, lade_spec_text(spec));
			plan.threads = (unsigned)s->threads[t];
			if (plan.threads == 0)
				plan.threads = lade_cpu_count();
			r->chunk_size = plan.chunk_size;
			r->threads = plan.threads;
			show_progress(r->pipeline);
			r->status = measure_spec(engine, spec, &plan, &r->m, &r->err);
		}
		if (s->gpu != CLI_NO_GPU)
			measure_device(s, engine, spec, &plan, out);
	}
	lade_spec_unref(spec);
}

/* All rows of one file. */
static void measure_file(const settings *s, lade_engine *engine, const sample *file, rows *out)
{
	const char *filters = s->filters;
	measure_plan plan = {.data = file->data, .size = file->size, .seconds = s->seconds};

	if (!filters)
		filters = lade_dtype_size(file->dtype) > 1 ? "none,shuffle" : "none";
	show_progress("memcpy");
	measure_memcpy(&plan, &rows_add(out, "memcpy")->m);
	for (char *filter; (filter = pipeline_next(&filters, ','));) {
		const char *algorithms = s->algorithms;
		for (char *algorithm; (algorithm = pipeline_next(&algorithms, ','));) {
			char *text = NULL;
			bool levels = false;
			int n = strcmp(filter, "none") == 0
					? asprintf(&text, "%s", algorithm)
					: asprintf(&text, "%s|%s", filter, algorithm);
			cli_need(n < 0 ? NULL : text);
			for (size_t i = 0; i < s->level_count; i++) {
				if (!pipeline_takes_level(text, s->levels[i]))
					continue;
				levels = true;
				measure_pipeline(s, engine, file, text, s->levels[i], out);
			}
			if (!levels)
				measure_pipeline(s, engine, file, text, PIPELINE_NO_LEVEL, out);
			free(text);
			free(algorithm);
		}
		free(filter);
	}
	show_progress(NULL);
}

/* ---- printing ---- */

enum { COL_PIPELINE, COL_CHUNK, COL_THREADS, COL_SIZE, COL_RATIO, COL_ENCODE, COL_DECODE, COLS };

static void set_rate(table *t, size_t column, double rate)
{
	table_set(t, column, rate >= 100e6 ? "%.0f" : "%.1f", rate / 1e6);
}

/* Marks the best rows of the columns in which they differ.  A copy is not a candidate. */
static void mark_best(table *t, const rows *all)
{
	size_t best[COLS];
	double most[COLS] = {0};

	for (size_t i = 0; i < all->count; i++) {
		const row *r = &all->list[i];
		bool copy = r->threads == 0 && !r->on_device;
		if (copy || r->status != LADE_OK || strcmp(r->pipeline, "copy") == 0)
			continue;
		const double value[COLS] = {[COL_RATIO] = measure_ratio(&r->m),
					    [COL_ENCODE] = measure_encode_rate(&r->m),
					    [COL_DECODE] = measure_decode_rate(&r->m)};
		for (size_t c = COL_RATIO; c < COLS; c++) {
			if (value[c] > most[c]) {
				most[c] = value[c];
				best[c] = i;
			}
		}
	}
	for (size_t c = COL_RATIO; c < COLS; c++)
		if (most[c] > 0)
			table_mark(t, best[c], c);
}

/* Where the bytes are that a row encodes and decodes. */
static const char *place_of(const row *r)
{
	static const char *const names[] = {"device", "pinned", "pageable"};

	return r->on_device ? names[r->way] : "host";
}

static void print_table(const sample *file, const rows *all)
{
	static const char *const titles[COLS] = {"pipeline", "chunk",       "threads",    "size",
						 "ratio",    "encode MB/s", "decode MB/s"};
	char text[16];
	table t;

	table_init(&t, "lrrrrrr", titles);
	table_style(stdout, "1");
	printf("%s", file->name);
	table_style(stdout, "0");
	printf(": %s", cli_format_size(file->size, text));
	printf(" of %s%s\n",
	       file->dtype == LADE_DTYPE_NONE ? "bytes" : lade_dtype_text(file->dtype),
	       file->cut ? " (the file's beginning)" : "");
	for (size_t i = 0; i < all->count; i++) {
		const row *r = &all->list[i];
		table_row(&t);
		table_set(&t, COL_PIPELINE, "%s%s", r->pipeline, r->m.lossy ? " (lossy)" : "");
		if (r->on_device && r->way == MEASURE_RESIDENT)
			table_set(&t, COL_THREADS, "gpu");
		else if (r->on_device)
			table_set(&t, COL_THREADS, "gpu, %s", place_of(r));
		if (r->status != LADE_OK) {
			table_set(&t, COL_SIZE, "failed");
			continue;
		}
		if (r->chunk_size)
			table_set(&t, COL_CHUNK, "%s", cli_format_size(r->chunk_size, text));
		if (r->threads)
			table_set(&t, COL_THREADS, "%u", r->threads);
		table_set(&t, COL_SIZE, "%s", cli_format_size(r->m.encoded_size, text));
		table_set(&t, COL_RATIO, "%.3f", measure_ratio(&r->m));
		if (r->m.encode_seconds > 0)
			set_rate(&t, COL_ENCODE, measure_encode_rate(&r->m));
		set_rate(&t, COL_DECODE, measure_decode_rate(&r->m));
	}
	mark_best(&t, all);
	table_print(&t, stdout);
	table_free(&t);
}

static void print_csv(const sample *file, const rows *all)
{
	for (size_t i = 0; i < all->count; i++) {
		const row *r = &all->list[i];
		csv_text(stdout, file->name);
		printf(",%s,", lade_dtype_text(file->dtype));
		csv_text(stdout, r->pipeline);
		printf(",%zu,%u,%zu,", r->chunk_size, r->threads, file->size);
		if (r->status == LADE_OK) {
			printf("%zu,%.4f,", (size_t)r->m.encoded_size, measure_ratio(&r->m));
			if (r->m.encode_seconds > 0)
				printf("%.1f", measure_encode_rate(&r->m) / 1e6);
			printf(",%.1f,%s,%s\n", measure_decode_rate(&r->m) / 1e6,
			       r->m.lossy ? "lossy" : "exact", place_of(r));
		} else {
			printf(",,,,%s,%s\n", lade_status_name(r->status), place_of(r));
		}
	}
}

static void print_json(json *j, const sample *file, const rows *all)
{
	json_open(j, NULL, '{');
	json_text(j, "file", file->name);
	json_text(j, "dtype", lade_dtype_text(file->dtype));
	json_uint(j, "size", file->size);
	json_open(j, "rows", '[');
	for (size_t i = 0; i < all->count; i++) {
		const row *r = &all->list[i];
		json_open(j, NULL, '{');
		json_text(j, "pipeline", r->pipeline);
		json_text(j, "status", lade_status_name(r->status));
		json_text(j, "place", place_of(r));
		if (r->chunk_size)
			json_uint(j, "chunk_size", r->chunk_size);
		if (r->threads)
			json_uint(j, "threads", r->threads);
		if (r->status == LADE_OK) {
			json_uint(j, "encoded_size", r->m.encoded_size);
			json_number(j, "ratio", measure_ratio(&r->m), 4);
			if (r->m.encode_seconds > 0)
				json_number(j, "encode_MBs", measure_encode_rate(&r->m) / 1e6, 3);
			json_number(j, "decode_MBs", measure_decode_rate(&r->m) / 1e6, 3);
			json_bool(j, "lossy", r->m.lossy);
		} else {
			json_text(j, "message", r->err.message);
		}
		json_close(j, '}');
	}
	json_close(j, ']');
	json_close(j, '}');
}

/* One file, from opening it to its table.  Gives an exit code. */
static int bench_file(const settings *s, lade_engine *engine, const char *path, json *j)
{
	sample file;
	rows all = {0};
	int code = sample_open(path, &file);

	if (code != CLI_OK)
		return code;
	if (file.size > s->limit) {
		file.size = (size_t)s->limit;
		file.cut = true;
	}
	if (s->has_dtype)
		file.dtype = s->dtype;
	measure_file(s, engine, &file, &all);
	if (s->json)
		print_json(j, &file, &all);
	else if (s->csv)
		print_csv(&file, &all);
	else
		print_table(&file, &all);
	cli_flush();
	bool any = s->gpu == CLI_NO_GPU;
	for (size_t i = 0; i < all.count; i++)
		any |= all.list[i].on_device;
	if (!any)
		cli_warn("%s: no row for GPU %d: it has kernels for none of these pipelines", path,
			 (int)s->gpu);
	for (size_t i = 0; i < all.count; i++) {
		if (all.list[i].status != LADE_OK) {
			cli_error("%s: %s: %s", path, all.list[i].pipeline,
				  all.list[i].err.message);
			code = CLI_FAILED;
		}
	}
	rows_free(&all);
	sample_close(&file);
	return code;
}

/* What does the work: the libraries that are linked, in JSON or as a line. */
static void print_libraries(const settings *s, json *j)
{
	const char *name, *version;
	bool compiled;
	if (s->json) {
		json_text(j, "liblade", lade_version_text());
		json_open(j, "libraries", '{');
	} else {
		printf("liblade %s", lade_version_text());
	}
	for (size_t i = 0; (name = lade_linked(i, &version, &compiled)); i++)
		if (s->json)
			json_text(j, name, version);
		else
			printf(", %s %s", name, version);
	if (s->json)
		json_close(j, '}');
	else
		printf("\n\n");
}

int lade_cmd_bench(int argc, char **argv)
{
	settings s = {.algorithms = "lz4,snappy,zstd,deflate,blosc",
		      .chunk_sizes = {1 << 20},
		      .chunk_count = 1,
		      .threads = {1},
		      .thread_count = 1,
		      .seconds = 0.5,
		      .limit = 256 << 20,
		      .gpu = CLI_NO_GPU};
	json j = {.out = stdout};
	lade_engine *engine = NULL;
	lade_error err;
	bool done = false;
	int code = parse_arguments(argc, argv, &s, &done);

	if (code == CLI_OK && !done && s.gpu != CLI_NO_GPU)
		code = cli_gpu_check(s.gpu);
	if (code != CLI_OK || done)
		return code;
	lade_engine_options options = {.struct_size = sizeof options};
	for (size_t i = 0; i < s.thread_count; i++) {
		unsigned n = s.threads[i] ? (unsigned)s.threads[i] : lade_cpu_count();
		options.threads = n > options.threads ? n : options.threads;
	}
	if (lade_engine_new(&options, &engine, &err))
		return cli_lade_error("bench", &err);
	if (s.csv)
		puts("file,dtype,pipeline,chunk_size,threads,size,encoded_size,ratio,encode_MBs,"
		     "decode_MBs,result,place");
	if (s.json) {
		json_open(&j, NULL, '{');
		print_libraries(&s, &j);
		json_text(&j, "cpu", lade_cpu_name(lade_engine_cpu(engine)));
		const lade_device_info *info;
		if (s.gpu != CLI_NO_GPU && lade_device_get_info(s.gpu, &info, &err) == LADE_OK)
			json_text(&j, "gpu", info->name);
		json_open(&j, "files", '[');
	}
	if (!s.csv && !s.json)
		print_libraries(&s, NULL);
	for (int i = optind; i < argc; i++) {
		int one = bench_file(&s, engine, argv[i], &j);
		code = one != CLI_OK ? one : code;
		if (!s.csv && !s.json && i + 1 < argc)
			putchar('\n');
	}
	if (s.json) {
		json_close(&j, ']');
		json_close(&j, '}');
	}
	lade_engine_free(engine);
	return code;
}
