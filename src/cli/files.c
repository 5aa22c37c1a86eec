/*
 * files.c: which files the arguments stand for, and what their results are called.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE /* asprintf */
#include "cli/files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "cli/commands.h"
#include "cli/table.h"

#define DEPTH_MAX 256

static void add(cli_files *files, const char *name)
{
	if (files->count == files->cap) {
		files->cap = files->cap ? 2 * files->cap : 16;
		files->names = cli_need(realloc(files->names, files->cap * sizeof *files->names));
	}
	files->names[files->count++] = cli_need(strdup(name));
}

static int no_dots(const struct dirent *e)
{
	return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* Adds the regular files below a directory; links in it are never followed into directories. */
static int walk(const char *dir, bool follow, unsigned depth, cli_files *files)
{
	struct dirent **entries;
	int count = depth < DEPTH_MAX ? scandir(dir, &entries, no_dots, by_name) : -1;
	int rc = CLI_OK;

	if (count < 0) {
		cli_error("%s: %s", dir, depth < DEPTH_MAX ? strerror(errno) : "is too deep");
		return CLI_FAILED;
	}
	size_t size = strlen(dir);
	for (int i = 0; i < count; i++) {
		struct stat st;
		char *path;
		if (asprintf(&path, size && dir[size - 1] == '/' ? "%s%s" : "%s/%s", dir,
		             entries[i]->d_name) < 0)
			cli_need(NULL);
		if (lstat(path, &st) != 0) {
			cli_error("%s: %s", path, strerror(errno));
			rc = CLI_FAILED;
		} else if (S_ISDIR(st.st_mode)) {
			if (walk(path, follow, depth + 1, files) != CLI_OK)
				rc = CLI_FAILED;
		} else if (S_ISREG(st.st_mode) ||
		           (follow && S_ISLNK(st.st_mode) && stat(path, &st) == 0 &&
		            S_ISREG(st.st_mode))) {
			add(files, path);
		} else {
			cli_note("%s: is no regular file, left out", path);
		}
		free(path);
		free(entries[i]);
	}
	free(entries);
	return rc;
}

int cli_files_expand(char **arguments, size_t count, bool recursive, bool follow,
                     cli_files *files)
{
	int rc = CLI_OK;

	for (size_t i = 0; i < count; i++) {
		const char *name = arguments[i];
		struct stat link, target;
		bool found = strcmp(name, "-") != 0 && lstat(name, &link) == 0;
		if (found && S_ISLNK(link.st_mode) && !follow && stat(name, &target) == 0 &&
		    !S_ISFIFO(target.st_mode)) {
			cli_warn("%s: is a symbolic link, left out (-f follows it)", name);
			continue;
		}
		if (found && recursive && stat(name, &target) == 0 && S_ISDIR(target.st_mode)) {
			if (walk(name, follow, 0, files) != CLI_OK)
				rc = CLI_FAILED;
			continue;
		}
		add(files, name);
	}
	/* Nothing but links: as zstd(1), this has not worked. */
	if (files->count == 0 && !recursive)
		rc = CLI_FAILED;
	return rc;
}

void cli_files_reset(cli_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		free(files->names[i]);
	free(files->names);
	*files = (cli_files){0};
}

char *cli_files_compressed(const char *name, lade_format format)
{
	char *out;

	return asprintf(&out, "%s.%s", name, lade_format_name(format)) < 0 ? cli_need(NULL) : out;
}

char *cli_files_decompressed(const char *name)
{
	static const struct {
		const char *suffix, *instead;
	} suffixes[] = {
		{".lade", ""}, {".zst", ""},      {".zstd", ""},     {".gz", ""},
		{".zz", ""},   {".lz4", ""},      {".sz", ""},       {".tgz", ".tar"},
		{".z", ""},    {".tzst", ".tar"}, {".tlz4", ".tar"},
	};
	size_t size = strlen(name);

	for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
		size_t n = strlen(suffixes[i].suffix);
		/* Something must be left of the name, in front of the suffix. */
		if (size <= n || strcmp(name + size - n, suffixes[i].suffix) != 0 ||
		    name[size - n - 1] == '/')
			continue;
		char *out;
		if (asprintf(&out, "%.*s%s", (int)(size - n), name, suffixes[i].instead) < 0)
			cli_need(NULL);
		return out;
	}
	return NULL;
}

bool cli_is_url(const char *name)
{
	return strncasecmp(name, "http://", 7) == 0 || strncasecmp(name, "https://", 8) == 0;
}

lade_status cli_url_open(const char *url, const lade_http_options *options, lade_source *out,
                         lade_error *err)
{
	char *server = cli_need(strdup(url)), *slash = strrchr(server, '/');
	lade_store *store = NULL;

	if (slash < server + 8) {
		free(server);
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "a URL without a file");
	}
	*slash = 0;
	lade_status status = lade_store_http_open(server, options, &store, err);
	if (status == LADE_OK)
		status = lade_store_object_open(store, slash + 1, out, err);
	lade_store_unref(store);
	free(server);
	return status;
}
