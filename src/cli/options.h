/*
 * options.h: what the command line of compressing and decompressing says.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CLI_OPTIONS_H
#define LADE_CLI_OPTIONS_H

#include <lade/lade.h>

typedef enum cli_mode {
	CLI_COMPRESS,
	CLI_DECOMPRESS,
	CLI_TEST,
	CLI_LIST,
} cli_mode;

/* Whether zero blocks become holes: by default in files that are made, not in standard output. */
typedef enum cli_sparse {
	CLI_SPARSE_FILES,
	CLI_SPARSE_NEVER,
	CLI_SPARSE_ALWAYS,
} cli_sparse;

#define CLI_FILTERS_MAX 15

/* The strings are argv's. */
typedef struct cli_options {
	cli_mode mode;
	bool to_stdout, remove, force, recursive;
	cli_sparse sparse;
	bool strict; /* LZ4 and Snappy are decoded to the formats' letter */
	bool raw; /* .npy files are bytes like others; no .npy header is put back */
	const char *output;
	unsigned threads; /* 0: all cores */
	int32_t gpu;      /* the device that decodes, or CLI_NO_GPU */

	lade_format format; /* to write */
	bool has_level;
	int64_t level;
	const char *algorithm;
	const char *filters[CLI_FILTERS_MAX];
	size_t filter_count;
	const char *spec;
	lade_dtype dtype;
	uint64_t chunk_size; /* 0: the library's */
	lade_checksum checksum; /* LADE_CHECKSUM_NONE: neither made nor verified */

	bool ultra;          /* levels 20 to 22 are allowed */
	unsigned window_log; /* of .zst files, to write and to accept; 0: the level's, the limit */
	uint64_t max_window; /* and a .lade chunk; 0: the library's limits */
	const char *dict;

	char **files;
	size_t file_count;
} cli_options;

/*
 * Reads the command line.  Gives CLI_OK with '*done' false; or, when it has said all there is to
 * say (--help, --version, a mistake), '*done' true and the exit code.
 */
int cli_options_read(int argc, char **argv, cli_options *options, bool *done);

/*
 * The whole pipeline's text: --spec, or filters and algorithm in a row.  To be freed.  NULL when
 * the options contradict each other, which has been said then.
 */
char *cli_options_pipeline(const cli_options *options);

#endif
