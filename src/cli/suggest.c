/*
 * suggest.c: 'lade suggest', which pipeline suits a file's data: what lade_suggest() finds.
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

/* A file, and what was found. */
typedef struct search {
	const settings *s;
	const char *name;
	uint64_t file_size;
	const lade_suggestions *found;
	const lade_suggestion *best[3]; /* for each goal; NULL: nothing saves enough */
} search;

enum { GOALS = 3 };
static const char *const goal_names[GOALS] = {"speed", "between", "ratio"};
static const uint32_t goal_bits[GOALS] = {LADE_GOAL_SPEED, LADE_GOAL_BETWEEN, LADE_GOAL_RATIO};

static void show_progress(const char *text)
{
	if (cli_verbosity >= 2 && isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K%s", text);
}

static void on_progress(void *ctx, const char *pipeline, const lade_error *failed)
{
	const search *x = ctx;

	if (failed)
		cli_note("%s: %s: %s", x->name, pipeline, failed->message);
	else
		show_progress(pipeline);
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
static void set_trial(table *t, size_t at, const lade_suggestion *from)
{
	const measure *m = from->measured;

	table_row(t);
	table_set(t, at, "%s", lade_spec_text(from->spec));
	table_set(t, at + 1, "%.3f", measure_ratio(m));
	table_set(t, at + 2, "%.0f", measure_encode_rate(m) / 1e6);
	table_set(t, at + 3, "%.0f", measure_decode_rate(m) / 1e6);
}

static void print_text(const search *x)
{
	static const char *const titles[] = {"for", "pipeline", "ratio", "encode MB/s",
	                                     "decode MB/s"};
	char sampled[16], whole[16];
	table t;

	table_style(stdout, "1");
	printf("%s", x->name);
	table_style(stdout, "0");
	printf(": %s of %s tried, ", cli_format_size(x->found->sample_size, sampled),
	       cli_format_size(x->file_size, whole));
	if (x->found->guessed)
		printf("elements of %zu bytes (a guess)\n\n", lade_dtype_size(x->found->dtype));
	else
		printf("%s\n\n", x->found->dtype ? lade_dtype_text(x->found->dtype) : "bytes");
	if (x->s->all) {
		table_init(&t, "lrrr", titles + 1);
		for (size_t i = 0; i < x->found->count; i++)
			set_trial(&t, 0, x->found->items[i]);
		table_print(&t, stdout);
		table_free(&t);
		putchar('\n');
	}
	table_init(&t, "llrrr", titles);
	for (size_t g = 0; x->best[0] && g < GOALS; g++) {
		set_trial(&t, 1, x->best[g]);
		table_set(&t, 0, "%s", goal_names[g]);
	}
	if (t.rows > 0)
		table_print(&t, stdout);
	table_free(&t);
	if (!x->best[0]) {
		printf("Nothing makes this data 2 %% smaller; store it as it is:\n");
		char *command = command_text(x, "copy");
		printf("  %s\n", command);
		free(command);
		return;
	}
	putchar('\n');
	for (size_t g = 0; g < GOALS; g++) {
		char *command = command_text(x, lade_spec_text(x->best[g]->spec));
		table_style(stdout, "2");
		printf("%-8s", goal_names[g]);
		table_style(stdout, "0");
		printf("%s\n", command);
		free(command);
	}
}

static void json_trial(json *j, const search *x, const char *key, const lade_suggestion *t)
{
	json_open(j, key, '{');
	json_text(j, "pipeline", lade_spec_text(t->spec));
	json_number(j, "ratio", measure_ratio(t->measured), 4);
	json_number(j, "encode_MBs", measure_encode_rate(t->measured) / 1e6, 1);
	json_number(j, "decode_MBs", measure_decode_rate(t->measured) / 1e6, 1);
	char *command = command_text(x, lade_spec_text(t->spec));
	json_text(j, "command", command);
	free(command);
	json_close(j, '}');
}

static void print_json(json *j, const search *x)
{
	json_open(j, NULL, '{');
	json_text(j, "file", x->name);
	json_uint(j, "size", x->file_size);
	json_uint(j, "sample_size", x->found->sample_size);
	json_text(j, "dtype", lade_dtype_text(x->found->dtype));
	json_bool(j, "dtype_guessed", x->found->guessed);
	json_bool(j, "compressible", x->best[0] != NULL);
	json_open(j, "suggestions", '{');
	for (size_t g = 0; x->best[0] && g < GOALS; g++)
		json_trial(j, x, goal_names[g], x->best[g]);
	json_close(j, '}');
	if (x->s->all) {
		json_open(j, "all", '[');
		for (size_t i = 0; i < x->found->count; i++)
			json_trial(j, x, NULL, x->found->items[i]);
		json_close(j, ']');
	}
	json_close(j, '}');
}

/* ---- files and arguments ---- */

static int suggest_file(const settings *s, lade_engine *engine, const char *path, json *j)
{
	search x = {.s = s, .name = path};
	lade_suggestions *found = NULL;
	lade_error err;
	sample file;
	int code = sample_open(path, &file);

	if (code != CLI_OK)
		return code;
	x.file_size = file.size;
	lade_suggest_options o = {.struct_size = sizeof o,
	                          .dtype = s->has_dtype ? s->dtype : file.dtype,
	                          .guess = !s->has_dtype,
	                          .chunk_size = (size_t)s->chunk_size,
	                          .sample_size = (size_t)s->sample_size,
	                          .threads = s->threads ? (unsigned)s->threads : lade_cpu_count(),
	                          .bandwidth = (double)s->bandwidth * 1e6,
	                          .progress = on_progress,
	                          .progress_ctx = &x};
	lade_status status =
		lade_suggest(engine, lade_host_cspan(file.data, file.size), &o, &found, &err);
	show_progress("");
	if (status != LADE_OK) {
		code = cli_lade_error(path, &err);
		goto out;
	}
	x.found = found;
	for (size_t g = 0; g < GOALS; g++)
		for (size_t i = 0; i < found->count; i++)
			if (found->items[i]->goals & goal_bits[g])
				x.best[g] = found->items[i];
	if (s->json)
		print_json(j, &x);
	else
		print_text(&x);
	cli_flush();
out:
	lade_suggestions_free(found);
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
			if (!cli_parse_size(optarg, &s->chunk_size) ||
			    s->chunk_size < LADE_FRAME_CHUNK_MIN ||
			    s->chunk_size > LADE_FRAME_CHUNK_MAX)
				return cli_usage("%s: not a chunk size (16 to 2147483647)", optarg);
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
	return code;
}
