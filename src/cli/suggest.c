/*
 * suggest.c: 'lade suggest', which pipeline suits a file's data.
 *
 * Pieces spread over the file make the sample.  Filters are first sorted out by one quick pass
 * with LZ4 and one with Zstandard each; those that are left are timed with every codec.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/json.h"
#include "cli/measure.h"
#include "cli/pipeline.h"
#include "cli/table.h"

static const char help[] =
	"Usage: lade suggest [OPTION]... FILE...\n"
	"Try pipelines on a sample of each FILE and recommend three: the fastest, the smallest,\n"
	"and the one with which writing and reading back takes least time in all.\n"
	"\n"
	"  -d, --dtype=TYPE       type of the elements, \"f4\", \"<i8\", or none (default: that of "
	"a\n"
	"                         .npy file; else their size is guessed by trying)\n"
	"  -s, --chunk-size=SIZE  (default 1M)\n"
	"  -T, --threads=N        0 is all cores (default 1)\n"
	"  -n, --sample=SIZE      bytes to try on (default 4M)\n"
	"  -b, --bandwidth=MBS    of the disk or network, for \"between\" (default 500)\n"
	"  -a, --all              print all pipelines that were timed\n"
	"      --json             print JSON instead of text\n"
	"  -h, --help             print this\n"
	"\n"
	"speed:   least time to encode and decode, of those that save at least a third of what\n"
	"         the smallest saves\n"
	"between: least time to encode, store, load and decode at the given bandwidth\n"
	"ratio:   the smallest; of those within half a percent, the fastest\n";

typedef struct settings {
	bool has_dtype, all, json;
	lade_dtype dtype;
	uint64_t chunk_size, sample_size, threads, bandwidth;
} settings;

#define TRIALS_MAX 128

typedef struct trial {
	lade_spec *spec;
	measure m;
} trial;

/* What a file's search works with. */
typedef struct search {
	const settings *s;
	lade_engine *engine;
	const char *name;
	measure_plan plan; /* over the sample */
	uint64_t file_size;
	lade_dtype dtype;
	bool guessed; /* the dtype stands for an element size that was found by trying */
	trial trials[TRIALS_MAX];
	size_t count;
} search;

enum { SPEED, BETWEEN, RATIO, GOALS };
static const char *const goal_names[GOALS] = {"speed", "between", "ratio"};

/* ---- the sample ---- */

/*
 * Copies pieces of the file, spread evenly, one behind the other.  A piece is a chunk, or an eighth
 * of the sample where that is less, so that there are at least eight places; it starts at a
 * multiple of 64 bytes, where an element starts whatever its size.
 */
static uint8_t *take_sample(const sample *file, const settings *s, measure_plan *plan)
{
	size_t want = file->size < s->sample_size ? file->size : (size_t)s->sample_size;
	size_t piece = want < file->size ? want / 8 : want;

	piece = piece < s->chunk_size ? piece : (size_t)s->chunk_size;
	if (piece > 64)
		piece &= ~(size_t)63;
	if (piece == 0)
		piece = want;
	size_t count = want / piece;
	uint8_t *data = cli_need(malloc(want));
	if (want == file->size) {
		memcpy(data, file->data, want);
	} else {
		for (size_t i = 0; i < count; i++) {
			/* i < count and piece * count <= size, so that a piece ends inside. */
			size_t off = count > 1 ? (file->size - piece) / (count - 1) * i : 0;
			memcpy(data + i * piece, file->data + (off & ~(size_t)63), piece);
		}
		want = count * piece;
	}
	*plan = (measure_plan){.data = data, .size = want, .chunk_size = piece};
	return data;
}

/* ---- trying ---- */

/* One pass, untimed rounds left out: the encoded size, or UINT64_MAX when it does not work. */
static uint64_t try_size(search *x, const char *text)
{
	lade_spec *spec = NULL;
	measure m;
	measure_plan plan = x->plan;

	plan.seconds = 0;
	if (lade_spec_parse(NULL, text, &spec, NULL))
		return UINT64_MAX;
	lade_status status = measure_spec(x->engine, spec, &plan, &m, NULL);
	lade_spec_unref(spec);
	return status == LADE_OK ? m.encoded_size : UINT64_MAX;
}

/*
 * Finds the size of the elements of plain bytes: the one whose byte shuffle makes the data at
 * least 3 % smaller than none, and smallest.
 */
static void guess_dtype(search *x)
{
	static const struct {
		const char *text;
		lade_dtype dtype;
	} tries[] = {{"shuffle(2)|lz4", LADE_U2},
	             {"shuffle(4)|lz4", LADE_U4},
	             {"shuffle(8)|lz4", LADE_U8}};
	uint64_t best = try_size(x, "lz4");

	best -= best / 33;
	for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
		uint64_t size = try_size(x, tries[i].text);
		if (size < best) {
			best = size;
			x->dtype = tries[i].dtype;
			x->guessed = true;
		}
	}
}

#define FILTERS_MAX 16

/*
 * Chains of filters that may suit elements of a size.  Differences are taken of the bits as
 * whole numbers, whatever the type, so that nothing is lost.
 */
static size_t make_filters(lade_dtype dtype, char (*out)[96])
{
	size_t n = lade_dtype_size(dtype), count = 0;

	snprintf(out[count++], 96, "%s", "");
	if (n <= 1) {
		snprintf(out[count++], 96, "delta(u1)|");
		return count;
	}
	snprintf(out[count++], 96, "shuffle(%zu)|", n);
	snprintf(out[count++], 96, "bitshuffle(%zu)|", n);
	snprintf(out[count++], 96, "delta(<u%zu)|", n);
	snprintf(out[count++], 96, "delta(<u%zu)|shuffle(%zu)|", n, n);
	snprintf(out[count++], 96, "delta(<u%zu)|bitshuffle(%zu)|", n, n);
	snprintf(out[count++], 96, "delta(<i%zu)|zigzag(<i%zu)|shuffle(%zu)|", n, n, n);
	snprintf(out[count++], 96, "delta(<i%zu)|zigzag(<i%zu)|bitshuffle(%zu)|", n, n, n);
	return count;
}

static void show_progress(const char *text)
{
	if (cli_verbosity >= 2 && isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K%s", text);
}

/* Times one pipeline and keeps it; one that does not work on this data is left out. */
static void try_pipeline(search *x, const char *text)
{
	trial *t = &x->trials[x->count];
	lade_error err;

	if (x->count == TRIALS_MAX)
		return;
	t->spec = NULL;
	lade_status status = lade_spec_parse(NULL, text, &t->spec, &err);
	if (status == LADE_OK) {
		show_progress(lade_spec_text(t->spec));
		status = measure_spec(x->engine, t->spec, &x->plan, &t->m, &err);
	}
	if (status == LADE_OK) {
		x->count++;
		return;
	}
	cli_note("%s: %s: %s", x->name, text, err.message);
	lade_spec_unref(t->spec);
}

/* The index of the smallest of 'count' sizes that is not taken yet; it is taken then. */
static size_t take_smallest(const uint64_t *sizes, bool *taken, size_t count)
{
	size_t best = count;

	for (size_t i = 0; i < count; i++)
		if (!taken[i] && (best == count || sizes[i] < sizes[best]))
			best = i;
	if (best < count)
		taken[best] = true;
	return best;
}

static void search_run(search *x)
{
	static const char *const codecs[] = {
		"lz4",          "snappy",        "zstd(level=1)",   "zstd(level=3)",
		"lz4(level=9)", "zstd(level=9)", "deflate(level=6)"};
	char filters[FILTERS_MAX][96], text[160];
	uint64_t by_lz4[FILTERS_MAX], by_zstd[FILTERS_MAX];
	bool taken[FILTERS_MAX] = {true};

	if (x->dtype == LADE_DTYPE_NONE && !x->s->has_dtype)
		guess_dtype(x);
	size_t count = make_filters(x->dtype, filters);
	for (size_t i = 0; i < count; i++) {
		show_progress(filters[i]);
		snprintf(text, sizeof text, "%.95slz4", filters[i]);
		by_lz4[i] = try_size(x, text);
		snprintf(text, sizeof text, "%.95szstd(level=1)", filters[i]);
		by_zstd[i] = try_size(x, text);
	}
	/* No filter at all is always timed; then the best two by either codec. */
	take_smallest(by_zstd, taken, count);
	take_smallest(by_zstd, taken, count);
	take_smallest(by_lz4, taken, count);
	take_smallest(by_lz4, taken, count);
	for (size_t i = 0; i < count; i++) {
		for (size_t c = 0; taken[i] && c < sizeof codecs / sizeof *codecs; c++) {
			snprintf(text, sizeof text, "%.95s%s", filters[i], codecs[c]);
			try_pipeline(x, text);
		}
	}
	show_progress("");
}

/* ---- choosing ---- */

static double codec_seconds(const measure *m)
{
	return m->encode_seconds + m->decode_seconds;
}

static double total_seconds(const measure *m, double bandwidth)
{
	return codec_seconds(m) + 2 * (double)m->encoded_size / bandwidth;
}

/*
 * The best trial for each goal (x->count is at least 1).  False when nothing saves 2 % of the
 * bytes: then storing the data as it is is best.
 */
static bool choose(const search *x, size_t chosen[GOALS])
{
	double bandwidth = (double)x->s->bandwidth * 1e6;
	uint64_t smallest = UINT64_MAX;

	for (size_t i = 0; i < x->count; i++)
		if (x->trials[i].m.encoded_size < smallest)
			smallest = x->trials[i].m.encoded_size;
	if ((double)smallest > 0.98 * (double)x->plan.size)
		return false;
	chosen[SPEED] = chosen[BETWEEN] = chosen[RATIO] = SIZE_MAX;
	for (size_t i = 0; i < x->count; i++) {
		const measure *m = &x->trials[i].m;
		const measure *best[GOALS] = {0};
		for (size_t g = 0; g < GOALS; g++)
			best[g] = chosen[g] < x->count ? &x->trials[chosen[g]].m : NULL;
		bool saves = m->encoded_size <= x->plan.size - (x->plan.size - smallest) / 3;
		if (saves && (!best[SPEED] || codec_seconds(m) < codec_seconds(best[SPEED])))
			chosen[SPEED] = i;
		bool worth = (double)m->encoded_size <= 0.98 * (double)x->plan.size;
		if (worth && (!best[BETWEEN] || total_seconds(m, bandwidth) <
		                                        total_seconds(best[BETWEEN], bandwidth)))
			chosen[BETWEEN] = i;
		if ((double)m->encoded_size <= 1.005 * (double)smallest &&
		    (!best[RATIO] || codec_seconds(m) < codec_seconds(best[RATIO])))
			chosen[RATIO] = i;
	}
	return true;
}

/* ---- printing ---- */

/* A file name in quotes for a shell, where it needs them. */
static void print_quoted(FILE *out, const char *name)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-+=.,/:@%";

	if (*name && *name != '-' && name[strspn(name, plain)] == 0) {
		fputs(name, out);
		return;
	}
	fputs(*name == '-' ? "'./" : "'", out);
	for (; *name; name++) {
		if (*name == '\'')
			fputs("'\\''", out);
		else
			fputc(*name, out);
	}
	fputc('\'', out);
}

/* The command that compresses the file so; to be freed. */
static char *command_text(const search *x, const char *pipeline)
{
	char *text = NULL;
	size_t size;
	FILE *f = cli_need(open_memstream(&text, &size));

	fprintf(f, "lade --spec='%s'", pipeline);
	if (x->s->chunk_size != 1 << 20)
		fprintf(f, " --chunk-size=%zu", (size_t)x->s->chunk_size);
	fputc(' ', f);
	print_quoted(f, x->name);
	if (fclose(f) != 0)
		cli_need(NULL);
	return text;
}

/* Adds a row; the trial's cells stand from column 'at' on. */
static void set_trial(table *t, size_t at, const trial *from)
{
	const measure *m = &from->m;

	table_row(t);
	table_set(t, at, "%s", lade_spec_text(from->spec));
	table_set(t, at + 1, "%.3f", measure_ratio(m));
	table_set(t, at + 2, "%.0f", measure_encode_rate(m) / 1e6);
	table_set(t, at + 3, "%.0f", measure_decode_rate(m) / 1e6);
}

static void print_text(const search *x, bool worth, const size_t chosen[GOALS])
{
	static const char *const titles[] = {"for", "pipeline", "ratio", "encode MB/s",
	                                     "decode MB/s"};
	char sampled[16], whole[16];
	table t;

	table_style(stdout, "1");
	printf("%s", x->name);
	table_style(stdout, "0");
	printf(": %s of %s tried, ", cli_format_size(x->plan.size, sampled),
	       cli_format_size(x->file_size, whole));
	if (x->guessed)
		printf("elements of %zu bytes (a guess)\n\n", lade_dtype_size(x->dtype));
	else
		printf("%s\n\n", x->dtype ? lade_dtype_text(x->dtype) : "bytes");
	if (x->s->all) {
		table_init(&t, "lrrr", titles + 1);
		for (size_t i = 0; i < x->count; i++)
			set_trial(&t, 0, &x->trials[i]);
		table_print(&t, stdout);
		table_free(&t);
		putchar('\n');
	}
	table_init(&t, "llrrr", titles);
	for (size_t g = 0; worth && g < GOALS; g++) {
		set_trial(&t, 1, &x->trials[chosen[g]]);
		table_set(&t, 0, "%s", goal_names[g]);
	}
	if (t.rows > 0)
		table_print(&t, stdout);
	table_free(&t);
	if (!worth) {
		printf("Nothing makes this data 2 %% smaller; store it as it is:\n");
		char *command = command_text(x, "copy");
		printf("  %s\n", command);
		free(command);
		return;
	}
	putchar('\n');
	for (size_t g = 0; g < GOALS; g++) {
		char *command = command_text(x, lade_spec_text(x->trials[chosen[g]].spec));
		table_style(stdout, "2");
		printf("%-8s", goal_names[g]);
		table_style(stdout, "0");
		printf("%s\n", command);
		free(command);
	}
}

static void json_trial(json *j, const search *x, const char *key, const trial *t)
{
	json_open(j, key, '{');
	json_text(j, "pipeline", lade_spec_text(t->spec));
	json_number(j, "ratio", measure_ratio(&t->m), 4);
	json_number(j, "encode_MBs", measure_encode_rate(&t->m) / 1e6, 1);
	json_number(j, "decode_MBs", measure_decode_rate(&t->m) / 1e6, 1);
	char *command = command_text(x, lade_spec_text(t->spec));
	json_text(j, "command", command);
	free(command);
	json_close(j, '}');
}

static void print_json(json *j, const search *x, bool worth, const size_t chosen[GOALS])
{
	json_open(j, NULL, '{');
	json_text(j, "file", x->name);
	json_uint(j, "size", x->file_size);
	json_uint(j, "sample_size", x->plan.size);
	json_text(j, "dtype", lade_dtype_text(x->dtype));
	json_bool(j, "dtype_guessed", x->guessed);
	json_bool(j, "compressible", worth);
	json_open(j, "suggestions", '{');
	for (size_t g = 0; worth && g < GOALS; g++)
		json_trial(j, x, goal_names[g], &x->trials[chosen[g]]);
	json_close(j, '}');
	if (x->s->all) {
		json_open(j, "all", '[');
		for (size_t i = 0; i < x->count; i++)
			json_trial(j, x, NULL, &x->trials[i]);
		json_close(j, ']');
	}
	json_close(j, '}');
}

/* ---- files and arguments ---- */

static int suggest_file(const settings *s, lade_engine *engine, const char *path, json *j)
{
	sample file;
	size_t chosen[GOALS] = {0};
	int code = sample_open(path, &file);

	if (code != CLI_OK)
		return code;
	search *x = cli_need(calloc(1, sizeof *x));
	*x = (search){.s = s, .engine = engine, .name = path, .file_size = file.size};
	x->dtype = s->has_dtype ? s->dtype : file.dtype;
	uint8_t *data = take_sample(&file, s, &x->plan);
	x->plan.threads = s->threads ? (unsigned)s->threads : lade_cpu_count();
	x->plan.seconds = 0.05;
	search_run(x);
	if (x->count == 0) {
		cli_error("%s: no pipeline could be tried", path);
		code = CLI_FAILED;
	} else {
		bool worth = choose(x, chosen);
		if (s->json)
			print_json(j, x, worth, chosen);
		else
			print_text(x, worth, chosen);
	}
	fflush(stdout);
	for (size_t i = 0; i < x->count; i++)
		lade_spec_unref(x->trials[i].spec);
	free(x);
	free(data);
	sample_close(&file);
	return code;
}

static int parse_arguments(int argc, char **argv, settings *s, bool *done)
{
	enum { OPT_JSON = 256 };
	static const struct option options[] = {
		{"dtype", required_argument, NULL, 'd'},
		{"chunk-size", required_argument, NULL, 's'},
		{"threads", required_argument, NULL, 'T'},
		{"sample", required_argument, NULL, 'n'},
		{"bandwidth", required_argument, NULL, 'b'},
		{"all", no_argument, NULL, 'a'},
		{"json", no_argument, NULL, OPT_JSON},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	lade_error err;
	int c;

	optind = 0;
	opterr = 0;
	while ((c = getopt_long(argc, argv, "d:s:T:n:b:ah", options, NULL)) != -1) {
		switch (c) {
		case 'd':
			s->has_dtype = true;
			s->dtype = LADE_DTYPE_NONE;
			if (strcmp(optarg, "none") != 0 &&
			    lade_dtype_parse(optarg, &s->dtype, &err))
				return cli_usage("--dtype: %s", err.message);
			break;
		case 's':
			if (!cli_parse_size(optarg, &s->chunk_size) || s->chunk_size < 16 ||
			    s->chunk_size > 1 << 30)
				return cli_usage("%s: not a chunk size (16 to 1G)", optarg);
			break;
		case 'T':
			if (!cli_parse_uint(optarg, 0, 1024, &s->threads))
				return cli_usage("%s: not a number of threads (0 to 1024)", optarg);
			break;
		case 'n':
			if (!cli_parse_size(optarg, &s->sample_size) || s->sample_size < 4096)
				return cli_usage("%s: not a sample size (4K or more)", optarg);
			break;
		case 'b':
			if (!cli_parse_uint(optarg, 1, 1000000, &s->bandwidth))
				return cli_usage("%s: not a bandwidth in MB/s", optarg);
			break;
		case 'a':
			s->all = true;
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
				"suggest: there is no such option, or it lacks its value: %s",
				argv[optind - 1]);
		}
	}
	if (optind == argc)
		return cli_usage("suggest: no file given");
	return CLI_OK;
}

int lade_cmd_suggest(int argc, char **argv)
{
	settings s = {
		.chunk_size = 1 << 20, .sample_size = 4 << 20, .threads = 1, .bandwidth = 500};
	json j = {.out = stdout};
	lade_engine *engine = NULL;
	lade_error err;
	bool done = false;
	int code = parse_arguments(argc, argv, &s, &done);

	if (code != CLI_OK || done)
		return code;
	lade_engine_options options = {.struct_size = sizeof options,
	                               .threads = (unsigned)s.threads};
	if (lade_engine_new(&options, &engine, &err))
		return cli_lade_error("suggest", &err);
	if (s.json)
		json_open(&j, NULL, '[');
	for (int i = optind; i < argc; i++) {
		int one = suggest_file(&s, engine, argv[i], &j);
		code = one != CLI_OK ? one : code;
		if (!s.json && i + 1 < argc)
			putchar('\n');
	}
	if (s.json)
		json_close(&j, ']');
	lade_engine_free(engine);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		cli_error("standard output cannot be written");
		code = CLI_FAILED;
	}
	return code;
}
