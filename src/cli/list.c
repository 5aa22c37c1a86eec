/*
 * list.c: what compressed files hold, a line for each; with -v all that a frame's header says.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/table.h"
#include "cli/work.h"

enum { CHUNKS, COMPRESSED, DECOMPRESSED, RATIO, CHECK, TYPE, SPEC, NAME };
static const char *const titles[] = {"chunks", "compressed", "decompressed", "ratio",
                                     "check",  "type",       "pipeline",     "file"};

typedef struct totals {
	size_t files;
	uint64_t chunks, compressed, decompressed;
} totals;

/* "<f4 (3, 4)" */
static void type_text(const lade_frame_info *info, char *text, size_t cap)
{
	int n = snprintf(text, cap, "%s", info->dtype ? lade_dtype_text(info->dtype) : "-");

	if (!info->has_shape)
		return;
	for (unsigned i = 0; i < info->ndim && n > 0 && (size_t)n < cap; i++)
		n += snprintf(text + n, cap - (size_t)n, "%s%" PRIu64, i ? "," : " (",
		              info->shape[i]);
	if (n > 0 && (size_t)n < cap)
		snprintf(text + n, cap - (size_t)n, "%s%s", info->ndim ? ")" : " ()",
		         info->fortran_order ? " F" : "");
}

static void sizes(table *t, uint64_t compressed, uint64_t decompressed)
{
	char text[16];

	table_set(t, COMPRESSED, "%s", cli_format_size(compressed, text));
	table_set(t, DECOMPRESSED, "%s", cli_format_size(decompressed, text));
	if (compressed)
		table_set(t, RATIO, "%.3f", (double)decompressed / (double)compressed);
}

static void describe(const char *name, const lade_frame_info *info)
{
	char type[800], shown[PATH_MAX];

	type_text(info, type, sizeof type);
	printf("%s\n  format:       lade, version %u\n  pipeline:     %s\n",
	       cli_escape(name, shown, sizeof shown), info->version,
	       lade_spec_text(info->spec));
	printf("  chunks:       %" PRIu64 " of %zu bytes\n", info->chunk_count, info->chunk_size);
	printf("  compressed:   %" PRIu64 " bytes\n  decompressed: %" PRIu64 " bytes\n",
	       info->encoded_size, info->size);
	printf("  checksum:     %s\n  elements:     %s\n",
	       info->checksum ? lade_checksum_name(info->checksum) : "none", type);
}

static int list_frame(const cli_work *work, cli_in *in, table *t, totals *sum)
{
	lade_frame_read_options f = {.struct_size = sizeof f};
	lade_frame *frame = NULL;
	char type[800];
	lade_error err = {.offset = LADE_NO_OFFSET};

	if (lade_frame_open(work->engine, cli_in_source(in), &f, &frame, &err) != LADE_OK)
		return cli_lade_error(in->name, &err);
	const lade_frame_info *info = lade_frame_get_info(frame);
	if (cli_verbosity >= 3) {
		describe(in->name, info);
	} else {
		table_row(t);
		table_set(t, CHUNKS, "%" PRIu64, info->chunk_count);
		sizes(t, info->encoded_size, info->size);
		table_set(t, CHECK, "%s",
		          info->checksum ? lade_checksum_name(info->checksum) : "none");
		type_text(info, type, sizeof type);
		table_set(t, TYPE, "%s", type);
		table_set(t, SPEC, "%s", lade_spec_text(info->spec));
		table_set(t, NAME, "%s", in->name);
	}
	sum->files++;
	sum->chunks += info->chunk_count;
	sum->compressed += info->encoded_size;
	sum->decompressed += info->size;
	lade_frame_close(frame);
	return CLI_OK;
}

static const struct {
	const char *part, *check;
} foreign[] = {
	[LADE_FORMAT_ZST] = {"frame", "xxh64"},    [LADE_FORMAT_GZ] = {"member", "crc32"},
	[LADE_FORMAT_ZZ] = {"stream", "adler32"},  [LADE_FORMAT_LZ4] = {"frame", "xxh32"},
	[LADE_FORMAT_SZ] = {"stream", "crc32c"},
};

/* The checksum as the first header names it; "": it is a frame without such a header. */
static const char *foreign_check(lade_format format, const uint8_t *p, size_t have)
{
	if (format != LADE_FORMAT_ZST && format != LADE_FORMAT_LZ4)
		return foreign[format].check;
	if (have <= 4 || p[0] != (format == LADE_FORMAT_ZST ? 0x28 : 0x04))
		return "";
	return p[4] & 4 ? foreign[format].check : "none"; /* bit 2 of the flags, in both */
}

/* What no header says is counted: the file is decoded to nowhere. */
static int list_foreign(const cli_work *work, lade_format format, cli_in *in, table *t, totals *sum)
{
	const uint8_t *data;
	size_t have;
	uint64_t frames, size = (uint64_t)in->stat.st_size;
	lade_error err = {.offset = LADE_NO_OFFSET};
	cli_out out;

	cli_out_null(&out);
	lade_status status = cli_in_peek(in, LADE_FORMAT_PEEK, &data, &have, &err);
	const char *check = foreign_check(format, data, have);
	if (status == LADE_OK && !cli_walk(in, format, &out.written, &frames))
		status = cli_decompress_foreign(work, format, in, &out, &frames, &err);
	if (status != LADE_OK)
		return cli_lade_error(in->name, &err);
	table_row(t);
	sizes(t, size, out.written);
	table_set(t, CHECK, "%s", check);
	table_set(t, SPEC, "(.%s, %" PRIu64 " %s%s)", lade_format_name(format), frames,
	          foreign[format].part, frames == 1 ? "" : "s");
	table_set(t, NAME, "%s", in->name);
	sum->files++;
	sum->compressed += size;
	sum->decompressed += out.written;
	return CLI_OK;
}

static int list_one(const cli_work *work, const char *name, table *t, totals *sum)
{
	const uint8_t *data;
	size_t have;
	lade_error err = {.offset = LADE_NO_OFFSET};
	cli_in in;
	int rc = cli_in_open(&in, name);

	if (rc != CLI_OK)
		return rc;
	if (in.is_stdin || !S_ISREG(in.stat.st_mode)) {
		cli_error("%s: only files can be listed", in.name);
		rc = CLI_FAILED;
	} else if (cli_in_peek(&in, LADE_FORMAT_PEEK, &data, &have, &err) != LADE_OK) {
		rc = cli_lade_error(in.name, &err);
	} else {
		lade_format format = lade_format_detect(data, have);
		switch (format) {
		case LADE_FORMAT_LADE:
			rc = list_frame(work, &in, t, sum);
			break;
		case LADE_FORMAT_UNKNOWN:
			cli_error("%s: is in no format that lade knows", in.name);
			rc = CLI_FAILED;
			break;
		default:
			rc = list_foreign(work, format, &in, t, sum);
			break;
		}
	}
	cli_in_close(&in);
	return rc;
}

int cli_list(const cli_work *work, char **names, size_t count)
{
	table t;
	totals sum = {0};
	int rc = CLI_OK;

	table_init(&t, "rrrrllll", titles);
	for (size_t i = 0; i < count; i++) {
		if (list_one(work, names[i], &t, &sum) != CLI_OK)
			rc = CLI_FAILED;
	}
	if (sum.files > 1 && cli_verbosity < 3) {
		table_row(&t);
		table_set(&t, CHUNKS, "%" PRIu64, sum.chunks);
		sizes(&t, sum.compressed, sum.decompressed);
		table_set(&t, NAME, "(%zu files)", sum.files);
	}
	if (t.rows)
		table_print(&t, stdout);
	table_free(&t);
	return rc;
}
