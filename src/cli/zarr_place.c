/*
 * zarr_place.c: from what the user writes to an open node: directories, zip files, URLs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/files.h"
#include "cli/table.h"
#include "cli/zarr.h"

/* The name without '/' at its end, to be freed.  "/" stays. */
static char *trimmed(const char *name)
{
	char *text = cli_need(strdup(name));
	size_t size = strlen(text);

	while (size > 1 && text[size - 1] == '/')
		text[--size] = 0;
	return text;
}

/*
 * The directory or file that is meant: 'whole', or a file that it begins with, as in "x.zip/a/b".
 * Cuts 'whole' behind that file and returns the rest; NULL: there is none, and errno says why.
 */
static char *split_path(char *whole, struct stat *st)
{
	char *cut = whole + strlen(whole);

	if (stat(whole, st) == 0)
		return cut;
	int why = errno == ENOTDIR ? ENOENT : errno;
	for (;;) {
		do
			cut--;
		while (cut > whole && *cut != '/');
		if (cut <= whole)
			break;
		*cut = 0;
		if (stat(whole, st) == 0) {
			if (S_ISREG(st->st_mode))
				return cut + 1;
			break;
		}
		*cut = '/';
	}
	errno = why;
	return NULL;
}

static lade_status open_zip(lade_source source, lade_store **store, lade_error *err)
{
	lade_status status = lade_store_zip_open(source, NULL, store, err);

	if (status != LADE_OK)
		lade_source_close(source);
	return status;
}

/* A URL that ends with ".zip" is a file of that server. */
static lade_status open_url(const zarr_settings *s, char *url, lade_store **store, lade_error *err)
{
	lade_http_options http = {.struct_size = sizeof http,
	                          .headers = s->headers,
	                          .header_count = s->header_count};
	size_t size = strlen(url);
	lade_source source;

	if (size <= 4 || strcasecmp(url + size - 4, ".zip") != 0 || strrchr(url, '/') <= url + 8)
		return lade_store_http_open(url, &http, store, err);
	lade_status status = cli_url_open(url, &http, &source, err);
	return status == LADE_OK ? open_zip(source, store, err) : status;
}

int zarr_store(const zarr_settings *s, const char *name, lade_store **store, char **path)
{
	lade_error err = {.offset = LADE_NO_OFFSET};
	lade_status status;
	lade_source source;
	struct stat st;
	char *whole = trimmed(name);

	*store = NULL;
	*path = NULL;
	if (cli_is_url(name)) {
		status = open_url(s, whole, store, &err);
		*path = cli_need(strdup(""));
	} else {
		char *rest = split_path(whole, &st);
		if (!rest) {
			cli_error("%s: %s", name, strerror(errno));
			free(whole);
			return CLI_FAILED;
		}
		*path = cli_need(strdup(rest));
		if (S_ISDIR(st.st_mode))
			status = lade_store_directory_open(whole, NULL, store, &err);
		else if ((status = lade_source_file_open(whole, NULL, &source, &err)) == LADE_OK)
			status = open_zip(source, store, &err);
	}
	free(whole);
	if (status == LADE_OK)
		return CLI_OK;
	free(*path);
	*path = NULL;
	return cli_lade_error(name, &err);
}

int zarr_open(const zarr_settings *s, const char *name, zarr_node *node)
{
	lade_zarr_options options = {.struct_size = sizeof options,
	                             .format = s->format,
	                             .no_consolidated = s->no_consolidated};
	lade_error err = {.offset = LADE_NO_OFFSET};
	char *path;

	*node = (zarr_node){.name = name};
	int rc = zarr_store(s, name, &node->store, &path);
	if (rc != CLI_OK)
		return rc;
	if (lade_zarr_open(node->store, path, &options, &node->zarr, &err) == LADE_OK)
		node->array = lade_zarr_as_array(node->zarr);
	else
		rc = cli_lade_error(name, &err);
	free(path);
	if (rc != CLI_OK)
		zarr_close(node);
	return rc;
}

void zarr_close(zarr_node *node)
{
	lade_zarr_unref(node->zarr);
	lade_store_unref(node->store);
	*node = (zarr_node){0};
}

lade_status zarr_read(const lade_zarr *array, const lade_zarr_selection *selection,
                      const lade_zarr_target *target, unsigned threads, lade_zarr_report *report,
                      lade_error *err)
{
	lade_zarr_read_options options = {.struct_size = sizeof options, .threads = threads};

	if (lade_zarr_as_array(array)->type.size)
		return lade_zarr_read(array, selection, target, &options, report, err);
	/* Elements of any length stay in the plan. */
	lade_zarr_plan *plan = NULL;
	lade_status status = lade_zarr_plan_new(array, selection, NULL, &options, &plan, err);
	if (status == LADE_OK)
		status = lade_zarr_plan_run(plan, report, err);
	lade_zarr_plan_free(plan);
	return status;
}
