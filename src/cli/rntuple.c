/*
 * rntuple.c: 'lade rntuple', what it can do with ROOT's RNTuples, and its options.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "cli/rntuple.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/files.h"
#include "cli/io.h"
#include "cli/table.h"

static const char help[] =
	"Usage: lade rntuple COMMAND [OPTION]... FILE...\n"
	"Look at ROOT's RNTuples, verify them, and read entries.\n"
	"\n"
	"  info   sizes, encodings, columns, and a map of the pages\n"
	"  ls     the fields at the top, with their types and sizes\n"
	"  schema all fields and columns, drawn as a tree\n"
	"  dump   FILE [FIELD]...: entries as lines of JSON or text, a column as .npy\n"
	"  verify read every page; name the bad ones\n"
	"\n"
	"FILE is a file or a URL; FILE:NAME is one of its RNTuples, else all of them.\n"
	"\n"
	"      --json             print JSON instead of text\n"
	"      --entries=A:B      dump: entries A to before B (0: to the last)\n"
	"      --format=FORMAT    dump: json (the default), text or npy\n"
	"  -o, --output=FILE      dump: write to FILE; \"x.npy\" is a .npy file\n"
	"  -f, --force            dump: replace FILE; write .npy to a terminal\n"
	"  -M, --memory=SIZE      memory for decoded elements (256M)\n"
	"  -T, --threads=N        threads (0, the default: all cores)\n"
	"      --repair           verify: mend an anchor that a stopped append has torn\n"
	"      --header=TEXT      URLs: a header of each request, \"Authorization: ...\"\n"
	"  -q, --quiet            no warnings and no progress; twice: no errors either\n"
	"  -v, --verbose          say more\n"
	"  -h, --help             print this\n"
	"\n"
	"Exit code: 0 done, 1 an RNTuple or an operation failed, 2 wrong usage.\n";

enum { OPT_JSON = 'j', OPT_ENTRIES = 'e', OPT_FORMAT = 'F', OPT_HEADER = 'H', OPT_REPAIR = 'R' };

#define MEMORY_DEFAULT ((uint64_t)256 << 20)
#define THREADS_MAX 1024

static const struct option options[] = {
	{"json", no_argument, NULL, OPT_JSON},
	{"entries", required_argument, NULL, OPT_ENTRIES},
	{"format", required_argument, NULL, OPT_FORMAT},
	{"output", required_argument, NULL, 'o'},
	{"force", no_argument, NULL, 'f'},
	{"memory", required_argument, NULL, 'M'},
	{"threads", required_argument, NULL, 'T'},
	{"repair", no_argument, NULL, OPT_REPAIR},
	{"header", required_argument, NULL, OPT_HEADER},
	{"quiet", no_argument, NULL, 'q'},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static const struct {
	const char *name;
	const char *options; /* the options it takes, beside those that all take */
	int (*run)(const rntuple_settings *s, const rntuple_node *node, json *j);
} commands[] = {
	{"info", "jH", rntuple_info},       {"ls", "jH", rntuple_list},
	{"schema", "jH", rntuple_schema},   {"dump", "eFofMTH", rntuple_dump},
	{"verify", "jMTRH", rntuple_verify},
};
#define COMMAND_COUNT (sizeof commands / sizeof *commands)

/* ---- options -------------------------------------------------------------------------------- */

static int read_entries(rntuple_settings *s, const char *text)
{
	const char *colon = strchr(text, ':');
	char first[24] = "0";

	if (!colon || (size_t)(colon - text) >= sizeof first)
		return cli_usage("--entries=%s: want A:B", text);
	if (colon > text)
		snprintf(first, sizeof first, "%.*s", (int)(colon - text), text);
	if (!cli_parse_uint(first, 0, UINT64_MAX, &s->first) ||
	    (colon[1] && !cli_parse_uint(colon + 1, s->first, UINT64_MAX, &s->end)))
		return cli_usage("--entries=%s: want A:B, with A not above B", text);
	return CLI_OK;
}

static int read_option(rntuple_settings *s, int c, const char *text, unsigned *threads)
{
	static const char *const formats[] = {"", "json", "text", "npy"};
	uint64_t value = 0;

	switch (c) {
	case OPT_JSON:
		s->json = true;
		break;
	case OPT_ENTRIES:
		return read_entries(s, text);
	case OPT_FORMAT:
		for (s->format = RNTUPLE_NPY; s->format > RNTUPLE_BY_NAME; s->format--)
			if (strcmp(text, formats[s->format]) == 0)
				return CLI_OK;
		return cli_usage("--format=%s: want json, text or npy", text);
	case 'o':
		s->output = text;
		break;
	case 'f':
		s->force = true;
		break;
	case 'M':
		if (!cli_parse_size(text, &s->memory) || s->memory < 1 << 20)
			return cli_usage("--memory=%s: want a size from 1M on", text);
		break;
	case 'T':
		if (!cli_parse_uint(text, 0, THREADS_MAX, &value))
			return cli_usage("-T %s: want a number of threads, 0 to %d", text,
			                 THREADS_MAX);
		*threads = (unsigned)value;
		break;
	case OPT_REPAIR:
		s->repair = true;
		break;
	case OPT_HEADER:
		if (s->header_count == RNTUPLE_HEADERS_MAX)
			return cli_usage("more than %d headers", RNTUPLE_HEADERS_MAX);
		s->headers[s->header_count++] = text;
		break;
	case 'q':
		cli_verbosity--;
		break;
	default:
		cli_verbosity++;
		break;
	}
	return CLI_OK;
}

/* True when the command goes on; otherwise '*rc' is its exit code. */
static bool read_options(int argc, char **argv, size_t command, rntuple_settings *s,
                         unsigned *threads, int *rc)
{
	int c;

	*rc = CLI_OK;
	optind = 0;
	opterr = 0;
	while ((c = getopt_long(argc, argv, "hqvfo:M:T:", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(help, stdout);
			return false;
		}
		if (c == '?')
			*rc = cli_usage("rntuple %s: there is no such option, or it lacks its "
			                "value: %s",
			                commands[command].name, argv[optind - 1]);
		else if (!strchr("qv", c) && !strchr(commands[command].options, c))
			*rc = cli_usage("rntuple %s has no option %s", commands[command].name,
			                argv[optind - 1]);
		else
			*rc = read_option(s, c, optarg, threads);
		if (*rc != CLI_OK)
			return false;
	}
	s->names = argv + optind;
	s->count = (size_t)(argc - optind);
	if (s->count == 0)
		*rc = cli_usage("rntuple %s: no file or URL given", commands[command].name);
	for (size_t i = 0; i < s->count && s->repair && *rc == CLI_OK; i++)
		if (cli_is_url(s->names[i]))
			*rc = cli_usage("--repair: %s is not a local file", s->names[i]);
	return *rc == CLI_OK;
}

/* ---- files ---------------------------------------------------------------------------------- */

/* Cuts "FILE:NAME" behind the file and returns the name; NULL: there is none. */
static char *split_name(char *text)
{
	struct stat st;
	char *cut = strstr(text, ".root:");

	if (cli_is_url(text)) {
		cut = cut ? cut + 5 : NULL;
	} else if (stat(text, &st) == 0) {
		return NULL;
	} else {
		for (cut = strrchr(text, ':'); cut;
		     cut = memrchr(text, ':', (size_t)(cut - text))) {
			*cut = 0;
			bool found = stat(text, &st) == 0;
			*cut = ':';
			if (found)
				break;
		}
	}
	if (!cut)
		return NULL;
	*cut = 0;
	return cut + 1;
}

static lade_status open_source(const rntuple_settings *s, const char *name, lade_source *source,
                               lade_error *err)
{
	const lade_http_options http = {
		.struct_size = sizeof http, .headers = s->headers, .header_count = s->header_count};

	return cli_is_url(name) ? cli_url_open(name, &http, source, err)
	                        : lade_source_file_open(name, NULL, source, err);
}

typedef struct found {
	char **names;
	size_t count;
} found;

static lade_status visit(void *ctx, const char *name)
{
	found *f = ctx;

	f->names = cli_need(realloc(f->names, (f->count + 1) * sizeof *f->names));
	f->names[f->count++] = cli_need(strdup(name));
	return LADE_OK;
}

static lade_status list(const rntuple_settings *s, const char *file, found *f, lade_error *err)
{
	lade_source source;
	lade_status status = open_source(s, file, &source, err);

	if (status != LADE_OK)
		return status;
	status = lade_rntuple_list(source, visit, f, err);
	lade_source_close(source);
	return status;
}

/* Mends the anchor of a file's RNTuple, if it is torn. */
static int repair(const char *file, const char *tuple, rntuple_node *node)
{
	lade_rntuple_repair_options o = {.struct_size = sizeof o, .name = tuple};
	lade_error err = {.offset = LADE_NO_OFFSET};

	if (lade_rntuple_repair(file, &o, &node->mended, &err) != LADE_OK)
		return cli_lade_error(node->name, &err);
	return CLI_OK;
}

static int open_one(const rntuple_settings *s, const char *file, const char *tuple,
                    rntuple_node *node)
{
	lade_rntuple_options o = {.struct_size = sizeof o, .name = tuple, .engine = s->engine};
	lade_error err = {.offset = LADE_NO_OFFSET};
	lade_source source;
	lade_status status = open_source(s, file, &source, &err);

	if (status == LADE_OK) {
		status = lade_rntuple_open(source, &o, &node->tuple, &err);
		if (status != LADE_OK)
			lade_source_close(source);
	}
	if (status != LADE_OK)
		return cli_lade_error(node->name, &err);
	node->info = lade_rntuple_about(node->tuple);
	return CLI_OK;
}

int rntuple_each(const rntuple_settings *s, const char *name, bool one,
                 int (*fn)(const rntuple_settings *s, const rntuple_node *node, json *j), json *j)
{
	char *file = cli_need(strdup(name)), *tuple = split_name(file);
	found f = {0};
	lade_error err = {.offset = LADE_NO_OFFSET};
	int rc = CLI_OK;

	if (tuple || one) {
		f.names = cli_need(calloc(1, sizeof *f.names));
		f.names[f.count++] = tuple ? cli_need(strdup(tuple)) : NULL;
	} else if (list(s, file, &f, &err) != LADE_OK) {
		rc = cli_lade_error(name, &err);
	} else if (f.count == 0) {
		visit(&f, ""); /* opening says what is wrong */
	}
	for (size_t i = 0; i < f.count; i++) {
		const char *own = f.names[i] && *f.names[i] ? f.names[i] : NULL;
		rntuple_node node = {.name = name};
		int this = s->repair ? repair(file, own, &node) : CLI_OK;
		if (this == CLI_OK)
			this = open_one(s, file, own, &node);
		if (this == CLI_OK) {
			if (i && !j && fn != rntuple_verify)
				putchar('\n');
			this = fn(s, &node, j);
		}
		rc = this != CLI_OK ? this : rc;
		lade_rntuple_unref(node.tuple);
		free(f.names[i]);
	}
	free(f.names);
	free(file);
	return rc;
}

/* ---- the command ---------------------------------------------------------------------------- */

static int run(const rntuple_settings *s, size_t command)
{
	bool dump = commands[command].run == rntuple_dump;
	json j = {.out = stdout};
	int rc = CLI_OK;

	if (s->json)
		json_open(&j, NULL, '[');
	for (size_t i = 0; i < (dump ? 1 : s->count); i++) {
		if (i && !s->json && commands[command].run != rntuple_verify)
			putchar('\n');
		int one = rntuple_each(s, s->names[i], dump, commands[command].run,
		                       s->json ? &j : NULL);
		rc = one != CLI_OK ? one : rc;
	}
	if (s->json)
		json_close(&j, ']');
	return rc;
}

int lade_cmd_rntuple(int argc, char **argv)
{
	rntuple_settings s = {.memory = MEMORY_DEFAULT, .end = UINT64_MAX};
	lade_engine_options e = {.struct_size = sizeof e};
	lade_error err = {.offset = LADE_NO_OFFSET};
	size_t i = 0;
	int rc;

	if (argc < 2)
		return cli_usage("rntuple: want a command: info, ls, schema, dump or verify");
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		fputs(help, stdout);
		return CLI_OK;
	}
	while (i < COMMAND_COUNT && strcmp(argv[1], commands[i].name) != 0)
		i++;
	if (i == COMMAND_COUNT)
		return cli_usage("rntuple: there is no command %s; want info, ls, schema, dump or "
		                 "verify",
		                 argv[1]);
	if (!read_options(argc - 1, argv + 1, i, &s, &e.threads, &rc))
		return rc;
	if (e.threads == 0)
		e.threads = lade_cpu_count();
	if (lade_engine_new(&e, &s.engine, &err) != LADE_OK)
		return cli_lade_error("threads", &err);
	rc = run(&s, i);
	lade_engine_free(s.engine);
	return rc;
}
