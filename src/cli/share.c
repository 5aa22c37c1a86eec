/*
 * share.c: 'lade share': serves names to processes, lists and removes them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "cli/commands.h"

#include <getopt.h>
#include <grp.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/json.h"
#include "cli/share_files.h"
#include "cli/table.h"

static const char help[] =
	"Usage: lade share COMMAND [OPTION]... [NAME]...\n"
	"Columns and tables that processes publish once and open by name.\n"
	"\n"
	"  serve  serve the names of this user, until it is ended\n"
	"  ls     [PREFIX]: the names, their latest versions, rows and sizes\n"
	"  put    NAME FILE: publish what is in a .npy, .lade, .arrow or .arrows file\n"
	"  get    NAME FILE: write such a file, of NAME@VERSION or the latest\n"
	"  rm     NAME...: remove names, or versions: NAME@VERSION\n"
	"  top    what the broker holds and does, every second; once if this is no terminal\n"
	"\n"
	"      --socket=PATH     the broker's socket (/run/user/UID/lade-share, else\n"
	"                        /tmp/lade-UID/share)\n"
	"      --group=GROUP     serve: the members of GROUP may connect, too\n"
	"  -M, --memory=SIZE     serve: at most that much for all versions (half of the\n"
	"                        machine's); what nobody has open makes room\n"
	"      --spill=FOLDER    serve: for what has no room in memory, compressed\n"
	"      --disk=SIZE       serve: at most that much in FOLDER\n"
	"      --json            ls, top: print JSON instead of text\n"
	"  -q, --quiet           no warnings; twice: no errors either\n"
	"  -v, --verbose         say more\n"
	"  -h, --help            print this\n"
	"\n"
	"Exit code: 0 done, 1 an operation failed, 2 wrong usage.\n";

enum { OPT_SOCKET = 's', OPT_GROUP = 'g', OPT_JSON = 'j', OPT_SPILL = 'f', OPT_DISK = 'd' };

static const struct option options[] = {
	{"socket", required_argument, NULL, OPT_SOCKET},
	{"group", required_argument, NULL, OPT_GROUP},
	{"memory", required_argument, NULL, 'M'},
	{"spill", required_argument, NULL, OPT_SPILL},
	{"disk", required_argument, NULL, OPT_DISK},
	{"json", no_argument, NULL, OPT_JSON},
	{"quiet", no_argument, NULL, 'q'},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

typedef struct settings {
	const char *socket;
	bool json, group;
	uint32_t gid;
	uint64_t memory; /* 0: half of the machine's */
	const char *spill;
	uint64_t disk;
	char **names;
	size_t count;
} settings;

static int failed(const lade_error *err)
{
	return cli_lade_error("share", err);
}

static int connect_to(const settings *s, lade_share **out)
{
	lade_share_options o = {.struct_size = sizeof o, .path = s->socket};
	lade_error err = {.offset = LADE_NO_OFFSET};

	return lade_share_connect(&o, out, &err) == LADE_OK ? CLI_OK : failed(&err);
}

/* ---- serve ------------------------------------------------------------------------------ */

static lade_cancel *stop;

static void end(int signal)
{
	(void)signal;
	lade_cancel_set(stop);
}

static void say_ready(void *ctx, const char *path)
{
	(void)ctx;
	cli_note("serving %s", path);
}

static int serve(const settings *s)
{
	uint64_t pages = (uint64_t)sysconf(_SC_PHYS_PAGES), page = (uint64_t)sysconf(_SC_PAGESIZE);
	lade_share_serve_options o = {.struct_size = sizeof o,
	                              .path = s->socket,
	                              .group = s->group,
	                              .gid = s->gid,
	                              .ready = say_ready,
	                              .spill = s->spill,
	                              .disk_cap = s->disk,
	                              .bytes_cap = s->memory ? s->memory : pages / 2 * page};
	lade_error err = {.offset = LADE_NO_OFFSET};
	struct sigaction action = {.sa_handler = end};

	if (s->count)
		return cli_usage("share serve takes no names");
	if (s->disk && !s->spill)
		return cli_usage("share serve: --disk wants --spill");
	if (lade_cancel_new(NULL, NULL, &stop, &err) != LADE_OK)
		return failed(&err);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	o.stop = stop;
	int rc = lade_share_serve(&o, &err) == LADE_OK ? CLI_OK : failed(&err);
	lade_cancel_free(stop);
	return rc;
}

/* ---- ls --------------------------------------------------------------------------------- */

typedef struct listing {
	json *j; /* NULL: a table */
	table t;
} listing;

static lade_status show(void *ctx, const lade_share_info *info)
{
	static const char *const places[] = {"memory", "compressed", "disk"};
	listing *l = ctx;
	char size[64], when[32];
	time_t seconds = (time_t)(info->time / 1000000000u);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &tm);
	if (l->j) {
		json_open(l->j, NULL, '{');
		json_text(l->j, "name", info->name);
		json_uint(l->j, "version", info->version);
		json_uint(l->j, "rows", info->rows);
		json_uint(l->j, "columns", info->columns);
		json_uint(l->j, "batches", info->batches);
		json_uint(l->j, "bytes", info->bytes);
		json_text(l->j, "place", places[info->place]);
		json_text(l->j, "time", when);
		json_uint(l->j, "uid", info->uid);
		json_uint(l->j, "pid", info->pid);
		json_close(l->j, '}');
		return LADE_OK;
	}
	table_row(&l->t);
	table_set(&l->t, 0, "%s", info->name);
	table_set(&l->t, 1, "%" PRIu64, info->version);
	table_set(&l->t, 2, "%" PRIu64, info->rows);
	table_set(&l->t, 3, "%u", info->columns);
	table_set(&l->t, 4, "%.*s", (int)strcspn(cli_size_text(info->bytes, size), "("), size);
	table_set(&l->t, 5, "%s", places[info->place]);
	table_set(&l->t, 6, "%s", when);
	table_set(&l->t, 7, "%u", info->pid);
	return LADE_OK;
}

static int list(const settings *s)
{
	static const char *const titles[] = {"name", "version", "rows",      "columns",
	                                     "size", "in",      "published", "by process"};
	json j = {.out = stdout};
	listing l = {.j = s->json ? &j : NULL};
	lade_share_listing all = {.struct_size = sizeof all,
	                          .visit = show,
	                          .ctx = &l,
	                          .prefix = s->count ? s->names[0] : NULL};
	lade_error err = {.offset = LADE_NO_OFFSET};
	lade_share *share;
	int rc;

	if (s->count > 1)
		return cli_usage("share ls: want one prefix at most");
	rc = connect_to(s, &share);
	if (rc != CLI_OK)
		return rc;
	table_init(&l.t, "lrrrrllr", titles);
	if (s->json)
		json_open(&j, NULL, '[');
	if (lade_share_list(share, &all, &err) != LADE_OK)
		rc = failed(&err);
	if (s->json)
		json_close(&j, ']');
	else if (l.t.rows)
		table_print(&l.t, stdout);
	table_free(&l.t);
	lade_share_close(share);
	return rc;
}

/* ---- rm --------------------------------------------------------------------------------- */

/* "NAME" or "NAME@VERSION": a copy of the name, to be freed. */
static int split_name(const char *text, char **name, uint64_t *version)
{
	char *at;

	*name = cli_need(strdup(text));
	*version = 0;
	at = strchr(*name, '@');
	if (at)
		*at++ = 0;
	return !at || cli_parse_uint(at, 1, UINT64_MAX, version)
	               ? CLI_OK
	               : cli_usage("share: %s: want NAME or NAME@VERSION", text);
}

static int remove_one(lade_share *share, const char *text)
{
	char *name;
	uint64_t version;
	lade_error err = {.offset = LADE_NO_OFFSET};
	int rc = split_name(text, &name, &version);

	if (rc == CLI_OK && lade_share_remove(share, name, version, &err) != LADE_OK)
		rc = cli_lade_error(text, &err);
	free(name);
	return rc;
}

static int remove_names(const settings *s)
{
	lade_share *share;
	int rc;

	if (!s->count)
		return cli_usage("share rm: no name given");
	rc = connect_to(s, &share);
	if (rc != CLI_OK)
		return rc;
	for (size_t i = 0; i < s->count; i++) {
		int one = remove_one(share, s->names[i]);
		rc = one != CLI_OK ? one : rc;
	}
	lade_share_close(share);
	return rc;
}

/* ---- put, get --------------------------------------------------------------------------- */

static int move(const settings *s, bool put)
{
	lade_share *share = NULL;
	char *name = NULL;
	uint64_t version;
	int rc;

	if (s->count != 2)
		return cli_usage("share %s: want NAME FILE", put ? "put" : "get");
	rc = split_name(s->names[0], &name, &version);
	if (rc == CLI_OK && put && version)
		rc = cli_usage("share put: want NAME, without a version");
	if (rc == CLI_OK)
		rc = connect_to(s, &share);
	if (rc == CLI_OK)
		rc = put ? cli_share_put(share, name, s->names[1])
		         : cli_share_get(share, name, version, s->names[1]);
	free(name);
	lade_share_close(share);
	return rc;
}

static int put(const settings *s)
{
	return move(s, true);
}

static int get(const settings *s)
{
	return move(s, false);
}

/* ---- top -------------------------------------------------------------------------------- */

static void print_json(const lade_share_statistics *n)
{
	const struct {
		const char *name;
		uint64_t value;
	} all[] = {
		{"names", n->names},
		{"versions", n->versions},
		{"bytes", n->bytes},
		{"bytes_cap", n->bytes_cap},
		{"descriptors", n->descriptors},
		{"descriptor_cap", n->descriptor_cap},
		{"clients", n->clients},
		{"client_cap", n->client_cap},
		{"held", n->held},
		{"published", n->published},
		{"opened", n->opened},
		{"removed", n->removed},
		{"refused", n->refused},
		{"keeper_pid", n->keeper_pid},
		{"keeper_starts", n->keeper_starts},
		{"compressed", n->compressed},
		{"disk", n->disk},
		{"disk_cap", n->disk_cap},
		{"evicted", n->evicted},
		{"stored", n->stored},
		{"returned", n->returned},
		{"waiting", n->waiting},
	};
	json j = {.out = stdout};

	json_open(&j, NULL, '{');
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		json_uint(&j, all[i].name, all[i].value);
	json_close(&j, '}');
}

static void print_share(const char *label, uint64_t used, uint64_t cap, bool bytes)
{
	char one[16], two[64];

	table_label(label);
	table_bar(stdout, cap ? (double)used / (double)cap : 0, 20);
	if (bytes)
		printf(" %s of %s\n", cli_format_size(used, one),
		       cap ? cli_size_text(cap, two) : "any number");
	else
		printf(" %" PRIu64 " of %" PRIu64 "\n", used, cap);
}

/* 'before' NULL: there are no rates. */
static void print_text(const lade_share_statistics *n, const lade_share_statistics *before)
{
	table_label("names");
	printf("%" PRIu64 ", versions %" PRIu64 ", held by clients %" PRIu64 "\n", n->names,
	       n->versions, n->held);
	print_share("memory", n->bytes, n->bytes_cap, true);
	if (n->disk || n->disk_cap)
		print_share("disk", n->disk, n->disk_cap, true);
	print_share("descriptors", n->descriptors, n->descriptor_cap, false);
	print_share("clients", n->clients, n->client_cap, false);
	table_label("published");
	printf("%" PRIu64 ", opened %" PRIu64 ", removed %" PRIu64 ", refused %" PRIu64 "\n",
	       n->published, n->opened, n->removed, n->refused);
	if (n->evicted || n->stored) {
		char size[16];
		table_label("made room");
		printf("compressed %" PRIu64 " (%s now), to disk %" PRIu64 ", back %" PRIu64
		       ", calls waiting %" PRIu64 "\n",
		       n->evicted, cli_format_size(n->compressed, size), n->stored, n->returned,
		       n->waiting);
	}
	if (before) {
		table_label("a second");
		printf("published %" PRIu64 ", opened %" PRIu64 "\n",
		       n->published - before->published, n->opened - before->opened);
	}
	table_label("keeper");
	printf("process %" PRIu64 ", starts %" PRIu64 "\n", n->keeper_pid, n->keeper_starts);
}

static int top(const settings *s)
{
	bool live = !s->json && isatty(STDOUT_FILENO), first = true;
	lade_share_statistics n = {.struct_size = sizeof n}, before = n;
	lade_error err = {.offset = LADE_NO_OFFSET};
	lade_share *share;
	int rc;

	if (s->count)
		return cli_usage("share top takes no names");
	rc = connect_to(s, &share);
	if (rc != CLI_OK)
		return rc;
	do {
		before = n;
		if (lade_share_statistics_get(share, &n, &err) != LADE_OK) {
			rc = failed(&err);
			break;
		}
		if (live)
			fputs("\033[H\033[J", stdout);
		if (s->json)
			print_json(&n);
		else
			print_text(&n, first ? NULL : &before);
		fflush(stdout);
		first = false;
	} while (live && sleep(1) == 0);
	lade_share_close(share);
	return rc;
}

/* ---- the command ------------------------------------------------------------------------ */

static const struct {
	const char *name;
	const char *options; /* the options it takes, beside those that all take */
	int (*run)(const settings *s);
} commands[] = {
	{"serve", "gMfd", serve},
	{"ls", "j", list},
	{"put", "", put},
	{"get", "", get},
	{"rm", "", remove_names},
	{"top", "j", top},
};
#define COMMAND_COUNT (sizeof commands / sizeof *commands)

static int read_group(settings *s, const char *text)
{
	const struct group *group = getgrnam(text);
	uint64_t gid;

	s->group = true;
	if (group)
		s->gid = group->gr_gid;
	else if (cli_parse_uint(text, 0, UINT32_MAX - 1, &gid))
		s->gid = (uint32_t)gid;
	else
		return cli_usage("--group=%s: there is no such group", text);
	return CLI_OK;
}

static int read_option(settings *s, int c, const char *text)
{
	switch (c) {
	case OPT_SOCKET:
		s->socket = text;
		break;
	case OPT_GROUP:
		return read_group(s, text);
	case 'M':
		if (!cli_parse_size(text, &s->memory) || !s->memory)
			return cli_usage("--memory=%s: want a size", text);
		break;
	case OPT_SPILL:
		s->spill = text;
		break;
	case OPT_DISK:
		if (!cli_parse_size(text, &s->disk) || !s->disk)
			return cli_usage("--disk=%s: want a size", text);
		break;
	case OPT_JSON:
		s->json = true;
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

int lade_cmd_share(int argc, char **argv)
{
	settings s = {0};
	size_t i = 0;
	int c, rc = CLI_OK;

	if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		fputs(help, stdout);
		return CLI_OK;
	}
	while (argc >= 2 && i < COMMAND_COUNT && strcmp(argv[1], commands[i].name) != 0)
		i++;
	if (argc < 2 || i == COMMAND_COUNT)
		return cli_usage("share: want a command: serve, ls, put, get, rm or top");
	argc--;
	argv++;
	optind = 0;
	opterr = 0;
	while (rc == CLI_OK && (c = getopt_long(argc, argv, "hqvM:", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(help, stdout);
			return CLI_OK;
		}
		if (c == '?')
			rc = cli_usage("share %s: there is no such option, or it lacks its value: "
			               "%s",
			               commands[i].name, argv[optind - 1]);
		else if (!strchr("qvs", c) && !strchr(commands[i].options, c))
			rc = cli_usage("share %s has no option %s", commands[i].name,
			               argv[optind - 1]);
		else
			rc = read_option(&s, c, optarg);
	}
	s.names = argv + optind;
	s.count = (size_t)(argc - optind);
	return rc == CLI_OK ? commands[i].run(&s) : rc;
}
