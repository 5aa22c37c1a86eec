/*
 * zarr.c: 'lade zarr', what it can do with arrays and groups, and its options.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "cli/zarr.h"

#include <getopt.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"Usage: lade zarr COMMAND [OPTION]... NODE...\n"
	"Look at Zarr arrays and groups, formats 2 and 3; read, verify and create them.\n"
	"\n"
	"  info   what a node is: shape, type, codecs, sizes, and a map of the chunks\n"
	"  ls     the members of a group\n"
	"  tree   all members below a group, drawn\n"
	"  cat    NODE [SELECTION]: a part of an array, \"[0:10, :, 5]\", as a .npy file\n"
	"  verify read every chunk, of all arrays below a group; name the bad ones\n"
	"  create an array or a group, in a directory or a new .zip file\n"
	"\n"
	"NODE is a directory, a .zip file, a node in it (data.zip/a/b), or a URL.\n"
	"\n"
	"      --json             print JSON instead of text\n"
	"      --depth=N          ls, tree: this many levels (1 for ls, all for tree)\n"
	"      --stored           ls, tree: stored bytes too, which looks at all keys;\n"
	"                         info: also of arrays with many chunks on a web server\n"
	"  -o, --output=FILE      cat: write to FILE\n"
	"  -f, --force            replace what exists; cat: write to a terminal\n"
	"      --field=NAME       cat: one field of a struct\n"
	"      --complete         verify: missing chunks are failures too\n"
	"  -M, --memory=SIZE      memory for decoded elements (256M)\n"
	"  -T, --threads=N        threads (0, the default: all cores)\n"
	"      --shape=N,N,...    create: the array's shape\n"
	"      --from=FILE.npy    create: shape, type and elements of a .npy file\n"
	"      --chunks=N,N,...   create: of a chunk (about 1 MiB)\n"
	"      --shards=N,N,...   create: of a shard of chunks, format 3 (no shards)\n"
	"      --dtype=TYPE       create: float32, <i2, ..., or JSON\n"
	"      --codec=SPEC       create: \"shuffle(4)|zstd(level=3)\", or JSON (zstd)\n"
	"      --fill=JSON        create: the fill value (0)\n"
	"      --names=A,B,...    create: the axes' names\n"
	"      --attributes=JSON  create: an object of attributes\n"
	"      --fortran          create: a chunk's first axis is contiguous\n"
	"      --group            create: a group instead of an array\n"
	"      --format=N         Zarr format, 2 or 3; create: 3\n"
	"      --no-consolidated  read each node's own metadata\n"
	"      --header=TEXT      URLs: a header of each request, \"Authorization: ...\"\n"
	"  -q, --quiet            no warnings and no progress; twice: no errors either\n"
	"  -v, --verbose          say more\n"
	"  -h, --help             print this\n"
	"\n"
	"Exit code: 0 done, 1 a node or an operation failed, 2 wrong usage.\n";

enum {
	OPT_JSON = 'j',
	OPT_DEPTH = 'd',
	OPT_STORED = 's',
	OPT_FORMAT = 'F',
	OPT_OWN = 'n',
	OPT_HEADER = 'H',
	OPT_FIELD = 'e',
	OPT_COMPLETE = 'c',
	/* Of create. */
	OPT_SHAPE = 256,
	OPT_CHUNKS,
	OPT_SHARDS,
	OPT_DTYPE,
	OPT_CODEC,
	OPT_FILL,
	OPT_ATTRIBUTES,
	OPT_NAMES,
	OPT_GROUP,
	OPT_FROM,
	OPT_FORTRAN,
};
#define CREATE_ONLY(c) ((c) >= OPT_SHAPE)

#define MEMORY_DEFAULT ((uint64_t)256 << 20)
#define THREADS_MAX 1024

static const struct option options[] = {
	{"json", no_argument, NULL, OPT_JSON},
	{"depth", required_argument, NULL, OPT_DEPTH},
	{"stored", no_argument, NULL, OPT_STORED},
	{"format", required_argument, NULL, OPT_FORMAT},
	{"no-consolidated", no_argument, NULL, OPT_OWN},
	{"header", required_argument, NULL, OPT_HEADER},
	{"output", required_argument, NULL, 'o'},
	{"force", no_argument, NULL, 'f'},
	{"field", required_argument, NULL, OPT_FIELD},
	{"complete", no_argument, NULL, OPT_COMPLETE},
	{"memory", required_argument, NULL, 'M'},
	{"threads", required_argument, NULL, 'T'},
	{"shape", required_argument, NULL, OPT_SHAPE},
	{"chunks", required_argument, NULL, OPT_CHUNKS},
	{"shards", required_argument, NULL, OPT_SHARDS},
	{"dtype", required_argument, NULL, OPT_DTYPE},
	{"codec", required_argument, NULL, OPT_CODEC},
	{"fill", required_argument, NULL, OPT_FILL},
	{"attributes", required_argument, NULL, OPT_ATTRIBUTES},
	{"names", required_argument, NULL, OPT_NAMES},
	{"group", no_argument, NULL, OPT_GROUP},
	{"from", required_argument, NULL, OPT_FROM},
	{"fortran", no_argument, NULL, OPT_FORTRAN},
	{"quiet", no_argument, NULL, 'q'},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static const struct {
	const char *name;
	const char *options; /* the options it takes, beside those that all take */
	int (*run)(const zarr_settings *s, zarr_node *node, json *j); /* NULL: create */
} commands[] = {
	{"info", "jsFnH", zarr_info},
	{"ls", "jdsFnH", zarr_list},
	{"tree", "jdsFnH", zarr_tree},
	{"cat", "FnHofeMT", zarr_cat},
	{"verify", "jFnHcMT", zarr_verify},
	{"create", "FfMT", NULL},
};
#define COMMAND_COUNT (sizeof commands / sizeof *commands)

static void read_new(zarr_new *n, int c, const char *text)
{
	switch (c) {
	case OPT_SHAPE:
		n->shape = text;
		break;
	case OPT_CHUNKS:
		n->chunks = text;
		break;
	case OPT_SHARDS:
		n->shards = text;
		break;
	case OPT_DTYPE:
		n->dtype = text;
		break;
	case OPT_CODEC:
		n->codec = text;
		break;
	case OPT_FILL:
		n->fill = text;
		break;
	case OPT_ATTRIBUTES:
		n->attributes = text;
		break;
	case OPT_NAMES:
		n->names = text;
		break;
	case OPT_GROUP:
		n->group = true;
		break;
	case OPT_FROM:
		n->from = text;
		break;
	case OPT_FORTRAN:
		n->fortran = true;
		break;
	default:
		break;
	}
}

static int read_option(zarr_settings *s, int c, const char *text)
{
	uint64_t value = 0;

	switch (c) {
	case OPT_JSON:
		s->json = true;
		break;
	case OPT_STORED:
		s->stored = true;
		break;
	case OPT_OWN:
		s->no_consolidated = true;
		break;
	case OPT_DEPTH:
		if (!cli_parse_uint(text, 1, ZARR_DEPTH_MAX, &value))
			return cli_usage("--depth=%s: want 1 to %d", text, ZARR_DEPTH_MAX);
		s->depth = (unsigned)value;
		break;
	case OPT_FORMAT:
		if (!cli_parse_uint(text, 2, 3, &value))
			return cli_usage("--format=%s: want 2 or 3", text);
		s->format = (uint32_t)value;
		break;
	case OPT_COMPLETE:
		s->complete = true;
		break;
	case OPT_FIELD:
		s->field = text;
		break;
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
		s->threads = (unsigned)value;
		break;
	case OPT_HEADER:
		if (s->header_count == ZARR_HEADERS_MAX)
			return cli_usage("more than %d headers", ZARR_HEADERS_MAX);
		s->headers[s->header_count++] = text;
		break;
	case 'q':
		cli_verbosity--;
		break;
	case 'v':
		cli_verbosity++;
		break;
	default:
		read_new(&s->new, c, text);
		break;
	}
	return CLI_OK;
}

/* Whether a command has an option. */
static bool takes(size_t command, int c)
{
	if (CREATE_ONLY(c))
		return !commands[command].run;
	return strchr("qv", c) || strchr(commands[command].options, c);
}

/* How an option is written. */
static const char *option_text(int c)
{
	static char text[32];

	for (const struct option *o = options; o->name; o++)
		if (o->val == c)
			snprintf(text, sizeof text, "--%s", o->name);
	return text;
}

/* cat: the file goes somewhere, and a selection may stand behind the node. */
static int check_cat(zarr_settings *s)
{
	bool to_stdout = !s->output || strcmp(s->output, "-") == 0;

	if (s->count > 2)
		return cli_usage("zarr cat takes a node and a selection, not %s", s->names[2]);
	if (s->count == 2)
		s->selection = s->names[1];
	s->count = 1;
	if (to_stdout && !s->force && isatty(STDOUT_FILENO))
		return cli_usage("a .npy file is not written to a terminal (-o FILE, or -f)");
	return CLI_OK;
}

/* True when the command goes on; otherwise '*rc' is its exit code. */
static bool read_options(int argc, char **argv, size_t command, zarr_settings *s, int *rc)
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
			*rc = cli_usage("zarr %s: there is no such option, or it lacks its value: "
			                "%s", commands[command].name, argv[optind - 1]);
		else if (!takes(command, c))
			*rc = cli_usage("zarr %s has no option %s", commands[command].name,
			                option_text(c));
		else
			*rc = read_option(s, c, optarg);
		if (*rc != CLI_OK)
			return false;
	}
	s->names = argv + optind;
	s->count = (size_t)(argc - optind);
	if (s->count == 0)
		*rc = cli_usage("zarr %s: no directory, .zip file or URL given",
		                commands[command].name);
	else if (commands[command].run == zarr_cat)
		*rc = check_cat(s);
	return *rc == CLI_OK;
}

static int run(const zarr_settings *s, size_t command)
{
	json j = {.out = stdout};
	int rc = CLI_OK;
	bool first = true;

	if (s->json)
		json_open(&j, NULL, '[');
	for (size_t i = 0; i < s->count; i++) {
		zarr_node node = {0};
		int one = commands[command].run ? zarr_open(s, s->names[i], &node)
		                                : zarr_create(s, s->names[i]);
		if (one == CLI_OK && commands[command].run) {
			if (!s->json && !first && commands[command].run != zarr_verify)
				putchar('\n');
			first = false;
			one = commands[command].run(s, &node, s->json ? &j : NULL);
			zarr_close(&node);
		}
		rc = one != CLI_OK ? one : rc;
	}
	if (s->json)
		json_close(&j, ']');
	return rc;
}

int lade_cmd_zarr(int argc, char **argv)
{
	zarr_settings s = {.memory = MEMORY_DEFAULT};
	int rc;

	if (argc < 2)
		return cli_usage("zarr: want a command: info, ls, tree, cat, verify or create");
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		fputs(help, stdout);
		return CLI_OK;
	}
	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		if (strcmp(argv[1], commands[i].name) == 0)
			return read_options(argc - 1, argv + 1, i, &s, &rc) ? run(&s, i) : rc;
	}
	return cli_usage("zarr: there is no command %s; want info, ls, tree, cat, verify or "
	                 "create",
	                 argv[1]);
}
