/*
 * replay.c: runs a fuzz target over files and folders of files, without a fuzzer.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t file_count;

static void die(const char *what, const char *path)
{
	fprintf(stderr, "replay: cannot %s %s\n", what, path);
	exit(1);
}

/* The block has just the file's size, so that a sanitizer sees a read past the end. */
static void run_file(const char *path, size_t size)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = malloc(size ? size : 1);
	if (!file || !data || fread(data, 1, size, file) != size)
		die("read", path);
	fclose(file);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	file_count++;
}

static void run_path(const char *path)
{
	struct stat st;
	if (stat(path, &st))
		die("find", path);
	if (!S_ISDIR(st.st_mode)) {
		run_file(path, (size_t)st.st_size);
		return;
	}
	DIR *dir = opendir(path);
	if (!dir)
		die("open", path);
	for (struct dirent *e; (e = readdir(dir));) {
		char inner[4096];
		if (e->d_name[0] == '.')
			continue;
		if ((size_t)snprintf(inner, sizeof inner, "%s/%s", path, e->d_name) >= sizeof inner)
			die("name a file in", path);
		run_path(inner);
	}
	closedir(dir);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (argv[i][0] != '-') /* a fuzzer's options mean nothing here */
			run_path(argv[i]);
	printf("replayed %zu files\n", file_count);
	return 0;
}
