/*
 * main.c: the command: its subcommands, and files one after the other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/files.h"
#include "cli/gpu.h"
#include "cli/pipeline.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/work.h"

#define DICT_MAX ((size_t)64 << 20)

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} subcommands[] = {
	{"bench", lade_cmd_bench},
	{"devices", lade_cmd_devices},
	{"inspect", lade_cmd_inspect},
	{"rntuple", lade_cmd_rntuple},
	{"share", lade_cmd_share},
	{"suggest", lade_cmd_suggest},
	{"zarr", lade_cmd_zarr},
};

/* ---- one file -------------------------------------------------------------------------------- */

/* Where the result of 'name' goes.  NULL: standard output.  To be freed. */
static char *output_path(const cli_options *o, const char *name, bool *known)
{
	*known = true;
	if (o->output)
		return strcmp(o->output, "-") == 0 ? NULL : cli_need(strdup(o->output));
	if (o->to_stdout || strcmp(name, "-") == 0)
		return NULL;
	char *path = o->mode == CLI_COMPRESS ? cli_files_compressed(name, o->format)
	                                     : cli_files_decompressed(name);
	*known = path != NULL;
	return path;
}

static int open_output(const cli_options *o, const cli_in *in, cli_out *out)
{
	bool known;
	struct stat st;

	if (o->mode == CLI_TEST) {
		cli_out_null(out);
		return CLI_OK;
	}
	char *path = output_path(o, in->is_stdin ? "-" : in->name, &known);
	if (!known) {
		cli_error("%s: its suffix is unknown; say with -o or -c where to write", in->name);
		return CLI_FAILED;
	}
	if (!path) {
		cli_out_stdout(out);
		return CLI_OK;
	}
	if (S_ISFIFO(in->stat.st_mode) && !in->is_stdin && !o->output) {
		cli_error("%s: is a pipe; say with -o or -c where to write", in->name);
		free(path);
		return CLI_FAILED;
	}
	if (stat(path, &st) == 0 && st.st_ino == in->stat.st_ino && st.st_dev == in->stat.st_dev) {
		cli_error("%s: is the input and the output", path);
		free(path);
		return CLI_FAILED;
	}
	int rc = cli_out_open(out, path, o->force, !in->is_stdin);
	free(path);
	/* The name for messages must live as long as 'out'. */
	if (rc == CLI_OK)
		out->name = out->path;
	return rc;
}

static void report(const cli_options *o, const cli_in *in, const cli_out *out)
{
	char from[16], to[16], name[PATH_MAX];
	bool wanted = cli_verbosity >= 3 || (cli_verbosity == 2 && isatty(STDERR_FILENO));

	if (!wanted)
		return;
	cli_escape(in->name, name, sizeof name);
	cli_format_size(in->taken, from);
	cli_format_size(out->written, to);
	if (o->mode == CLI_COMPRESS)
		fprintf(stderr, "%s: %s -> %s (%.2f%%)\n", name, from, to,
		        in->taken ? 100.0 * (double)out->written / (double)in->taken : 0.0);
	else
		fprintf(stderr, "%s: %s -> %s%s\n", name, from, to,
		        o->mode == CLI_TEST ? ", good" : "");
}

static int one_file(const cli_work *work, const char *name)
{
	const cli_options *o = work->options;
	static const char *const verbs[] = {"compressing", "decompressing", "testing", ""};
	lade_error err = {.offset = LADE_NO_OFFSET};
	cli_in in;
	cli_out out;
	int rc = cli_in_open(&in, name);

	if (rc != CLI_OK)
		return rc;
	rc = open_output(o, &in, &out);
	if (rc != CLI_OK) {
		cli_in_close(&in);
		return rc;
	}
	if (o->mode == CLI_DECOMPRESS && o->sparse != CLI_SPARSE_NEVER &&
	    (out.temp || o->sparse == CLI_SPARSE_ALWAYS))
		cli_out_sparse(&out);
	progress_start(in.name, verbs[o->mode], in.has_size ? (uint64_t)in.stat.st_size : 0);
	lade_status status = o->mode == CLI_COMPRESS ? cli_compress(work, &in, &out, &err)
	                                             : cli_decompress(work, &in, &out, &err);
	progress_end();
	bool remove = o->remove && out.owned && !in.is_stdin;
	if (status == LADE_OK && remove && !out.temp) {
		cli_warn("%s: not removed, since %s is no regular file of its own", in.name,
		         out.name);
		remove = false;
	}
	if (status == LADE_OK && remove && out.lossy && !o->force) {
		cli_warn("%s: not removed, since what was written is lossy (-f removes it)",
		         in.name);
		remove = false;
	}
	if (status != LADE_OK)
		rc = cli_lade_error(in.name, &err);
	else
		rc = cli_out_commit(&out, &in, remove);
	cli_out_abandon(&out);
	if (rc == CLI_OK)
		report(o, &in, &out);
	if (rc == CLI_OK && remove && unlink(name) != 0) {
		cli_error("%s: could not be removed: %s", name, strerror(errno));
		rc = CLI_FAILED;
	}
	cli_in_close(&in);
	return rc;
}

/* ---- all files ---------------------------------------------------------------------- */

/* Neither are compressed bytes read from a terminal nor written to one. */
static int check_terminals(const cli_options *o, const cli_files *files)
{
	bool reads = false, writes = false;

	for (size_t i = 0; i < files->count; i++) {
		bool known;
		char *path = output_path(o, files->names[i], &known);
		reads = reads || strcmp(files->names[i], "-") == 0;
		writes = writes || (known && !path);
		free(path);
	}
	if (o->mode == CLI_LIST)
		return CLI_OK;
	if (reads && isatty(STDIN_FILENO) && o->mode != CLI_COMPRESS)
		return cli_usage("standard input is a terminal: compressed bytes are not typed");
	if (reads && isatty(STDIN_FILENO) && o->file_count == 0)
		return cli_usage("no FILE, and standard input is a terminal");
	if (writes && o->mode == CLI_COMPRESS && isatty(STDOUT_FILENO) && !o->force)
		return cli_usage("compressed bytes are not written to a terminal (-f does it)");
	return CLI_OK;
}

static int load_dict(const char *path, lade_dict **dict)
{
	const uint8_t *data;
	size_t have;
	lade_error err = {.offset = LADE_NO_OFFSET};
	cli_in in;
	int rc = cli_in_open(&in, path);

	if (rc != CLI_OK)
		return rc;
	size_t size = in.has_size && (uint64_t)in.stat.st_size < DICT_MAX
	                      ? (size_t)in.stat.st_size + 1 : DICT_MAX + 1;
	if (cli_in_peek(&in, size, &data, &have, &err) != LADE_OK ||
	    (have > DICT_MAX && lade_fail(&err, LADE_E_LIMIT, LADE_NO_OFFSET,
	                                  "a dictionary has at most %zu bytes", DICT_MAX)) ||
	    lade_dict_new(data, have, dict, &err) != LADE_OK)
		rc = cli_lade_error(path, &err);
	cli_in_close(&in);
	return rc;
}

/* Contradictions in the pipeline are found before any file is touched. */
static int check_pipeline(cli_work *work, char **pipeline)
{
	const cli_options *o = work->options;

	*pipeline = NULL;
	if (o->mode != CLI_COMPRESS || o->format != LADE_FORMAT_LADE)
		return CLI_OK;
	*pipeline = cli_options_pipeline(o);
	if (!*pipeline)
		return CLI_USAGE;
	work->pipeline = *pipeline;
	/* What .npy files will say of their elements is not known yet: any type stands in for
	 * it. */
	lade_spec *spec = NULL;
	lade_error err;
	if (pipeline_parse(*pipeline, o->dtype ? o->dtype : LADE_U4,
	                   o->has_level ? o->level : PIPELINE_NO_LEVEL, &spec, &err) != LADE_OK)
		return cli_usage("%s: %s", *pipeline, err.message);
	lade_spec_unref(spec);
	return CLI_OK;
}

static int run(const cli_options *o, const cli_files *files)
{
	cli_work work = {.options = o, .threads = o->threads ? o->threads : lade_cpu_count()};
	/* Where one thread decodes, another one reads and writes. */
	lade_engine_options e = {.struct_size = sizeof e,
	                         .threads = work.threads > 1 ? work.threads : 2};
	lade_error err = {.offset = LADE_NO_OFFSET};
	char *pipeline;
	int rc = check_pipeline(&work, &pipeline);

	if (rc == CLI_OK && o->gpu != CLI_NO_GPU)
		rc = cli_gpu_check(o->gpu);
	if (rc == CLI_OK && o->dict)
		rc = load_dict(o->dict, &work.dict);
	if (rc == CLI_OK && lade_engine_new(&e, &work.engine, &err) != LADE_OK)
		rc = cli_lade_error("threads", &err);
	if (rc == CLI_OK) {
		cli_out_catch_signals();
		if (o->mode == CLI_LIST) {
			rc = cli_list(&work, files->names, files->count);
		} else {
			for (size_t i = 0; i < files->count; i++) {
				if (one_file(&work, files->names[i]) != CLI_OK)
					rc = CLI_FAILED;
			}
		}
	}
	lade_engine_free(work.engine);
	lade_dict_free(work.dict);
	free(pipeline);
	return rc;
}

static int command(int argc, char **argv)
{
	cli_options options;
	cli_files files = {0};
	bool done;

	for (size_t i = 0; argc > 1 && i < sizeof subcommands / sizeof subcommands[0]; i++) {
		if (strcmp(argv[1], subcommands[i].name) == 0)
			return subcommands[i].run(argc - 1, argv + 1);
	}
	int rc = cli_options_read(argc, argv, &options, &done);
	if (done)
		return rc;
	char *standard_input[] = {"-"};
	bool none = options.file_count == 0;
	if (none && options.recursive)
		return cli_usage("-r wants directories");
	int found = cli_files_expand(none ? standard_input : options.files,
	                             none ? 1 : options.file_count, options.recursive,
	                             options.force, &files);
	rc = check_terminals(&options, &files);
	if (rc == CLI_OK) {
		rc = run(&options, &files);
		if (rc == CLI_OK)
			rc = found;
	}
	cli_files_reset(&files);
	return rc;
}

int main(int argc, char **argv)
{
	int rc = command(argc, argv);

	return cli_flush() ? rc : CLI_FAILED;
}
