/*
 * options.c: reads the command line of compressing and decompressing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/options.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/gpu.h"
#include "cli/pipeline.h"
#include "cli/table.h"

#define THREADS_MAX 1024

/* As in zstd(1). */
#define LEVEL_MAX 19
#define LEVEL_ULTRA 22
#define WINDOW_LOG_MIN 10
#define WINDOW_LOG_MAX 31
#define WINDOW_LOG_LONG 27

enum {
	OPT_RM = 256,
	OPT_LEVEL,
	OPT_ALGORITHM,
	OPT_ALGORITHMS,
	OPT_DTYPE,
	OPT_FILTER,
	OPT_SPEC,
	OPT_CHUNK_SIZE,
	OPT_CHECKSUM,
	OPT_NO_CHECK,
	OPT_FORMAT,
	OPT_RAW,
	OPT_STRICT,
	OPT_GPU,
	OPT_LONG,
	OPT_FAST,
	OPT_ULTRA,
	OPT_SPARSE,
	OPT_NO_SPARSE,
};

static const char short_options[] = "0123456789zdtlckfo:T:rqvVhM:D:";

static const struct option long_options[] = {
	{"compress", no_argument, NULL, 'z'},
	{"decompress", no_argument, NULL, 'd'},
	{"uncompress", no_argument, NULL, 'd'},
	{"test", no_argument, NULL, 't'},
	{"list", no_argument, NULL, 'l'},
	{"stdout", no_argument, NULL, 'c'},
	{"keep", no_argument, NULL, 'k'},
	{"rm", no_argument, NULL, OPT_RM},
	{"force", no_argument, NULL, 'f'},
	{"output", required_argument, NULL, 'o'},
	{"threads", required_argument, NULL, 'T'},
	{"recursive", no_argument, NULL, 'r'},
	{"quiet", no_argument, NULL, 'q'},
	{"verbose", no_argument, NULL, 'v'},
	{"version", no_argument, NULL, 'V'},
	{"algorithms", no_argument, NULL, OPT_ALGORITHMS},
	{"help", no_argument, NULL, 'h'},
	{"level", required_argument, NULL, OPT_LEVEL},
	{"algorithm", required_argument, NULL, OPT_ALGORITHM},
	{"dtype", required_argument, NULL, OPT_DTYPE},
	{"filter", required_argument, NULL, OPT_FILTER},
	{"spec", required_argument, NULL, OPT_SPEC},
	{"chunk-size", required_argument, NULL, OPT_CHUNK_SIZE},
	{"checksum", optional_argument, NULL, OPT_CHECKSUM},
	{"check", no_argument, NULL, OPT_CHECKSUM},
	{"no-check", no_argument, NULL, OPT_NO_CHECK},
	{"format", required_argument, NULL, OPT_FORMAT},
	{"raw", no_argument, NULL, OPT_RAW},
	{"strict", no_argument, NULL, OPT_STRICT},
	{"gpu", optional_argument, NULL, OPT_GPU},
	{"long", optional_argument, NULL, OPT_LONG},
	{"fast", optional_argument, NULL, OPT_FAST},
	{"sparse", no_argument, NULL, OPT_SPARSE},
	{"no-sparse", no_argument, NULL, OPT_NO_SPARSE},
	{"ultra", no_argument, NULL, OPT_ULTRA},
	{"memory", required_argument, NULL, 'M'},
	{"dict", required_argument, NULL, 'D'},
	{NULL, 0, NULL, 0},
};

static const char help[] =
	"Usage: lade [OPTION]... [FILE]...\n"
	"       lade bench|inspect|suggest [OPTION]... FILE...\n"
	"       lade rntuple info|ls|schema|dump|verify [OPTION]... FILE...\n"
	"       lade share serve|ls|rm|top [OPTION]... [NAME]...\n"
	"       lade zarr info|ls|tree|cat|verify|create [OPTION]... NODE...\n"
	"       lade devices [OPTION]...\n"
	"Compress FILEs to FILE.lade; without FILE, or with -, standard input to standard output.\n"
	"\n"
	"What to do; the last one counts:\n"
	"  -z, --compress        compress (the default)\n"
	"  -d, --decompress      decompress .lade, .zst, .gz, .zz, .lz4 and .sz, recognised by "
	"content\n"
	"  -t, --test            decompress to nowhere\n"
	"  -l, --list            say what compressed files hold\n"
	"\n"
	"Files:\n"
	"  -c, --stdout          write to standard output\n"
	"  -o, --output=FILE     write to FILE\n"
	"  -k, --keep            keep the input files (the default)\n"
	"      --rm              remove each input file after success\n"
	"  -f, --force           overwrite; follow symbolic links; write binary to a terminal;\n"
	"                        with -dc copy files that are not compressed\n"
	"  -r, --recursive       take the files in directories\n"
	"      --[no-]sparse     -d: (do not) make holes of zero blocks; in files by default,\n"
	"                        not in standard output\n"
	"      --raw             treat .npy files as bytes; do not put a .npy header back\n"
	"\n"
	"Compression:\n"
	"  -1 ... -19            level (3 for zstd); --level=N for others\n"
	"      --ultra           allow -20 to -22\n"
	"      --fast[=N]        level -N (1): faster than -1\n"
	"      --long[=N]        with --format=zst and -d: windows of 2^N bytes (27)\n"
	"      --algorithm=NAME  zstd, ..., or \"NAME(OPTION=VALUE)\"; --algorithms lists them\n"
	"      --filter=NAME     shuffle, bitshuffle, delta, ...; may be given several times\n"
	"      --spec=TEXT       the whole pipeline, \"shuffle(4)|zstd(level=3)\"\n"
	"      --dtype=TYPE      what the elements are: <f4, uint16, ... (.npy files say it "
	"themselves)\n"
	"      --chunk-size=SIZE decoded bytes a chunk (1M)\n"
	"      --checksum[=KIND] of the chunks: xxh64 (the default), crc32c or none\n"
	"      --format=FORMAT   lade (the default), zst, gz or lz4\n"
	"\n"
	"Other:\n"
	"      --no-check        neither make nor verify checksums\n"
	"      --strict          LZ4, Snappy and Deflate: refuse what their texts forbid\n"
	"      --gpu[=N]         with -d and -t: .lade files are decoded by GPU N (0);\n"
	"                        large ones by the host, if it is faster\n"
	"  -T, --threads=N       threads (0, the default: all cores)\n"
	"  -M, --memory=SIZE     largest window of .zst files (128M), largest chunk of .lade (2G)\n"
	"  -D, --dict=FILE       dictionary, for reading and for writing\n"
	"  -q, --quiet           no warnings and no progress; twice: no errors either\n"
	"  -v, --verbose         say more\n"
	"      --algorithms      list the algorithms and filters\n"
	"  -h, --help            this text\n"
	"  -V, --version         the version\n"
	"\n"
	"SIZE is a number of bytes or has K, M, G, T behind it (powers of 1024).\n"
	"Exit code: 0 done, 1 a file or an operation failed, 2 wrong usage.\n";

/* A line for each: name, kind, what it is. */
static void list_algorithms(void)
{
	static const char *const kinds[] = {"codec", "filter", "checksum"};
	const lade_algorithm *a;

	for (size_t i = 0; (a = lade_engine_algorithm(NULL, i)); i++)
		printf("%-20s %-8s %s\n", a->name, kinds[a->kind], a->doc);
}

static int read_number(cli_options *o, int opt, const char *text)
{
	uint64_t value = 0;

	switch (opt) {
	case 'T':
		if (!cli_parse_uint(text, 0, THREADS_MAX, &value))
			return cli_usage("-T %s: want a number of threads, 0 to %d", text,
			                 THREADS_MAX);
		o->threads = (unsigned)value;
		break;
	case 'M':
		if (!cli_parse_size(text, &value) || value == 0)
			return cli_usage("--memory=%s: want a size such as 256M", text);
		o->max_window = value;
		break;
	case OPT_CHUNK_SIZE:
		if (!cli_parse_size(text, &value) || value < LADE_FRAME_CHUNK_MIN ||
		    value > LADE_FRAME_CHUNK_MAX)
			return cli_usage("--chunk-size=%s: want 16 to 2147483647 bytes", text);
		o->chunk_size = value;
		break;
	case OPT_LONG:
		if (text && !cli_parse_uint(text, WINDOW_LOG_MIN, WINDOW_LOG_MAX, &value))
			return cli_usage("--long=%s: want %d to %d: a window has 2 to the power of "
			                 "that bytes", text, WINDOW_LOG_MIN, WINDOW_LOG_MAX);
		o->window_log = text ? (unsigned)value : WINDOW_LOG_LONG;
		break;
	case OPT_FAST:
		value = 1;
		if (text && !cli_parse_uint(text, 1, INT32_MAX, &value))
			return cli_usage("--fast=%s: want a whole number from 1 on", text);
		o->level = -(int64_t)value;
		o->has_level = true;
		break;
	case OPT_LEVEL: {
		bool negative = *text == '-';
		if (!cli_parse_uint(text + negative, 0, INT32_MAX, &value))
			return cli_usage("--level=%s: want a whole number", text);
		o->level = negative ? -(int64_t)value : (int64_t)value;
		o->has_level = true;
		break;
	}
	default:
		break;
	}
	return CLI_OK;
}

static int read_name(cli_options *o, int opt, const char *text)
{
	lade_error err;

	switch (opt) {
	case OPT_FORMAT:
		o->format = lade_format_find(text);
		if (o->format == LADE_FORMAT_UNKNOWN || o->format == LADE_FORMAT_ZZ ||
		    o->format == LADE_FORMAT_SZ)
			return cli_usage("--format=%s: want lade, zst, gz or lz4", text);
		break;
	case OPT_CHECKSUM:
		if (!text)
			o->checksum = LADE_XXH64;
		else if (strcmp(text, "none") == 0)
			o->checksum = LADE_CHECKSUM_NONE;
		else if (strcmp(text, "xxh64") == 0 || strcmp(text, "crc32c") == 0)
			o->checksum = lade_checksum_find(text);
		else
			return cli_usage("--checksum=%s: want xxh64, crc32c or none", text);
		break;
	case OPT_GPU:
		return cli_gpu_parse(text, &o->gpu);
	case OPT_DTYPE:
		if (lade_dtype_parse(text, &o->dtype, &err) != LADE_OK)
			return cli_usage("--dtype=%s: %s", text, err.message);
		break;
	case OPT_FILTER:
		if (o->filter_count == CLI_FILTERS_MAX)
			return cli_usage("more than %d filters", CLI_FILTERS_MAX);
		o->filters[o->filter_count++] = text;
		break;
	default:
		break;
	}
	return CLI_OK;
}

/* Options that only set a thing. */
static bool read_flag(cli_options *o, int opt)
{
	switch (opt) {
	case 'z':
		o->mode = CLI_COMPRESS;
		return true;
	case 'd':
		o->mode = CLI_DECOMPRESS;
		return true;
	case 't':
		o->mode = CLI_TEST;
		return true;
	case 'l':
		o->mode = CLI_LIST;
		return true;
	case 'c':
		o->to_stdout = true;
		return true;
	case 'k':
		o->remove = false;
		return true;
	case OPT_RM:
		o->remove = true;
		return true;
	case 'f':
		o->force = true;
		return true;
	case 'r':
		o->recursive = true;
		return true;
	case 'q':
		cli_verbosity--;
		return true;
	case 'v':
		cli_verbosity++;
		return true;
	case OPT_NO_CHECK:
		o->checksum = LADE_CHECKSUM_NONE;
		return true;
	case OPT_RAW:
		o->raw = true;
		return true;
	case OPT_STRICT:
		o->strict = true;
		return true;
	case OPT_SPARSE:
		o->sparse = CLI_SPARSE_ALWAYS;
		return true;
	case OPT_NO_SPARSE:
		o->sparse = CLI_SPARSE_NEVER;
		return true;
	case OPT_ULTRA:
		o->ultra = true;
		return true;
	default:
		return false;
	}
}

static int wrong_digits(int64_t level)
{
	return cli_usage("-%" PRId64 ": levels go from -1 to -%d, with --ultra to -%d "
	                 "(--level=N for others)", level, LEVEL_MAX, LEVEL_ULTRA);
}

/* How a level below 0 may have been given, for messages. */
static const char *fast_text(int64_t level)
{
	return level < 0 ? " (--fast)" : "";
}

static int check(const cli_options *o)
{
	if (o->output && o->file_count > 1)
		return cli_usage("-o takes one input file, there are %zu", o->file_count);
	if (o->output && o->recursive)
		return cli_usage("-o and -r do not go together");
	if (o->output && o->to_stdout)
		return cli_usage("-o and -c do not go together");
	if (o->spec && (o->algorithm || o->filter_count || o->has_level || o->ultra))
		return cli_usage("--spec is the whole pipeline: no --algorithm, --filter or level "
		                 "beside it");
	if (o->format != LADE_FORMAT_LADE &&
	    (o->spec || o->algorithm || o->filter_count || o->chunk_size))
		return cli_usage("--format=%s has no pipelines and no chunks: only .lade files do",
		                 lade_format_name(o->format));
	bool gz = o->format == LADE_FORMAT_GZ;
	if (o->mode == CLI_COMPRESS && o->ultra && (gz || o->format == LADE_FORMAT_LZ4))
		return cli_usage("--ultra is for zstd: --format=%s has no levels from 20 to 22",
		                 lade_format_name(o->format));
	if (o->mode == CLI_COMPRESS && gz && o->has_level && o->level < 0)
		return cli_usage("--format=gz has no level %" PRId64 "%s: want 1 to 12", o->level,
		                 fast_text(o->level));
	if (o->mode == CLI_COMPRESS && o->window_log && o->format != LADE_FORMAT_ZST)
		return cli_usage("--long is for --format=zst and for -d: matches in a .lade file "
		                 "stay within a chunk (--chunk-size=16M makes chunks longer)");
	if (o->gpu != CLI_NO_GPU && o->mode != CLI_DECOMPRESS && o->mode != CLI_TEST)
		return cli_usage("--gpu is for decompressing: with -d or -t");
	if (o->dict && o->mode == CLI_COMPRESS &&
	    (o->format == LADE_FORMAT_GZ || o->format == LADE_FORMAT_LZ4))
		return cli_usage("--format=%s is written without dictionary",
		                 lade_format_name(o->format));
	return CLI_OK;
}

/* Also of the libraries, whose faults are ours. */
static void print_version(void)
{
	const char *name, *version;
	bool compiled;

	printf("lade %s\n", lade_version_text());
	for (size_t i = 0; (name = lade_linked(i, &version, &compiled)); i++)
		printf("%s %s%s\n", name, version, compiled ? " (its headers)" : "");
}

int cli_options_read(int argc, char **argv, cli_options *o, bool *done)
{
	int64_t digits = 0; /* the last level that was given in digits */
	int digits_at = -1; /* the argument whose digits make up the level so far */
	int rc = CLI_OK;

	*o = (cli_options){.format = LADE_FORMAT_LADE, .checksum = LADE_XXH64, .gpu = CLI_NO_GPU};
	*done = true;
	opterr = 0;
	for (;;) {
		int at = optind ? optind : 1;
		int index = -1;
		int opt = getopt_long(argc, argv, short_options, long_options, &index);
		if (opt == -1)
			break;
		if (opt >= '0' && opt <= '9') {
			o->level = digits_at == at ? o->level * 10 + (opt - '0') : opt - '0';
			o->has_level = true;
			digits_at = at;
			if (o->level > LEVEL_ULTRA)
				return wrong_digits(o->level);
			digits = o->level;
			continue;
		}
		digits_at = -1;
		if (read_flag(o, opt))
			continue;
		switch (opt) {
		case 'h':
			fputs(help, stdout);
			return CLI_OK;
		case OPT_ALGORITHMS:
			list_algorithms();
			return CLI_OK;
		case 'V':
			print_version();
			return CLI_OK;
		case 'o':
			o->output = optarg;
			break;
		case 'D':
			o->dict = optarg;
			break;
		case OPT_ALGORITHM:
			o->algorithm = optarg;
			break;
		case OPT_SPEC:
			o->spec = optarg;
			break;
		case 'T':
		case 'M':
		case OPT_LEVEL:
		case OPT_LONG:
		case OPT_FAST:
		case OPT_CHUNK_SIZE:
			rc = read_number(o, opt, optarg);
			break;
		case OPT_FORMAT:
		case OPT_CHECKSUM:
		case OPT_GPU:
		case OPT_DTYPE:
		case OPT_FILTER:
			rc = read_name(o, opt, optarg);
			break;
		default:
			if (optopt && optopt < 256 && strchr(short_options, optopt))
				return cli_usage("-%c wants a value", optopt);
			if (optopt && optopt < 256)
				return cli_usage("there is no option -%c", optopt);
			return cli_usage("there is no such option, or it lacks its value: %s",
			                 argv[optind - 1]);
		}
		if (rc != CLI_OK)
			return rc;
	}
	o->files = argv + optind;
	o->file_count = (size_t)(argc - optind);
	rc = digits > LEVEL_MAX && !o->ultra ? wrong_digits(digits) : check(o);
	*done = rc != CLI_OK;
	return rc;
}

char *cli_options_pipeline(const cli_options *o)
{
	const char *algorithm = o->algorithm ? o->algorithm : "zstd";
	size_t size = strlen(algorithm) + 1;

	if (o->spec)
		return cli_need(strdup(o->spec));
	for (size_t i = 0; i < o->filter_count; i++)
		size += strlen(o->filters[i]) + 1;
	char *text = cli_need(malloc(size));
	char *end = text;
	for (size_t i = 0; i < o->filter_count; i++) {
		end = stpcpy(end, o->filters[i]);
		*end++ = '|';
	}
	strcpy(end, algorithm);
	if (o->has_level && !pipeline_takes_level(algorithm, o->level)) {
		cli_usage("%s has no level %" PRId64 "%s to choose", algorithm, o->level,
		          fast_text(o->level));
		free(text);
		return NULL;
	}
	if (o->ultra && !pipeline_takes_level(algorithm, LEVEL_ULTRA)) {
		cli_usage("--ultra is for zstd: %s has no levels from 20 to 22 to choose",
		          algorithm);
		free(text);
		return NULL;
	}
	return text;
}
