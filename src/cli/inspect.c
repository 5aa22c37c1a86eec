/*
 * inspect.c: 'lade inspect', what a file holds, without decoding it.
 *
 * A .lade file says everything: header and index are read and checked.  Of other formats the
 * first header is read (and the end of a .gz), which is all that they say without decoding.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/json.h"
#include "cli/table.h"

static const char help[] = "Usage: lade inspect [OPTION]... FILE...\n"
			   "Say what each FILE (-: standard input) holds, without decoding it.\n"
			   "\n"
			   "  -c, --chunks           list every chunk of a .lade file\n"
			   "      --json             print JSON instead of text\n"
			   "  -h, --help             print this\n";

typedef struct settings {
	bool chunks, json;
} settings;

/* ---- .lade ---- */

/* The steps of the histogram: chunks of at least this ratio. */
static const double steps[] = {0, 1,  1.1, 1.25, 1.5, 2,  3,   4,   6,
			       8, 12, 16,  24,   32,  64, 128, 256, 1024};
#define STEP_COUNT (sizeof steps / sizeof *steps)

typedef struct tally {
	uint64_t stored, constant, own_spec, encoded; /* 'encoded': bytes of all payloads */
	uint64_t step[STEP_COUNT];
} tally;

static double chunk_ratio(const lade_frame_chunk *chunk)
{
	return (double)chunk->decoded_size / (double)(chunk->size ? chunk->size : 1);
}

static lade_status tally_chunks(lade_frame *frame, tally *t, lade_error *err)
{
	uint64_t count = lade_frame_get_info(frame)->chunk_count;

	*t = (tally){0};
	for (uint64_t i = 0; i < count; i++) {
		lade_frame_chunk chunk;
		lade_status status = lade_frame_get_chunk(frame, i, &chunk, err);
		if (status != LADE_OK)
			return status;
		t->stored += (chunk.flags & LADE_CHUNK_STORED) != 0;
		t->constant += (chunk.flags & LADE_CHUNK_CONSTANT) != 0;
		t->own_spec += (chunk.flags & LADE_CHUNK_OWN_SPEC) != 0;
		t->encoded += chunk.size;
		size_t s = STEP_COUNT - 1;
		while (s > 0 && chunk_ratio(&chunk) < steps[s])
			s--;
		t->step[s]++;
	}
	return LADE_OK;
}

/* "stored, own spec"; "-" for none.  Gives 'text', of at least 40 bytes. */
static const char *flags_text(uint32_t flags, char *text)
{
	snprintf(text, 40, "%s%s%s", flags & LADE_CHUNK_STORED ? "stored" : "",
		 flags & LADE_CHUNK_CONSTANT ? "constant" : "",
		 flags & LADE_CHUNK_OWN_SPEC ? "own spec" : "");
	return *text ? text : "-";
}

static void print_shape(FILE *out, const lade_frame_info *info)
{
	fputc('(', out);
	for (unsigned i = 0; i < info->ndim; i++)
		fprintf(out, "%s%" PRIu64, i ? ", " : "", info->shape[i]);
	fprintf(out, "%s)", info->ndim == 1 ? "," : "");
}

static void label(const char *text)
{
	table_style(stdout, "1");
	printf("  %-12s", text);
	table_style(stdout, "0");
}

static void print_histogram(const tally *t)
{
	size_t first = STEP_COUNT, last = 0;
	uint64_t most = 0;

	for (size_t i = 0; i < STEP_COUNT; i++) {
		if (t->step[i] == 0)
			continue;
		first = i < first ? i : first;
		last = i;
		most = t->step[i] > most ? t->step[i] : most;
	}
	if (first == STEP_COUNT)
		return;
	label("ratios");
	printf("of the chunks\n");
	for (size_t i = first; i <= last; i++) {
		if (i + 1 < STEP_COUNT)
			printf("  %7.5g to %-6.5g %10" PRIu64 "  ", steps[i], steps[i + 1],
			       t->step[i]);
		else
			printf("  %7.5g and more  %10" PRIu64 "  ", steps[i], t->step[i]);
		table_style(stdout, "32");
		table_bar(stdout, (double)t->step[i] / (double)most, 40);
		table_style(stdout, "0");
		putchar('\n');
	}
}

static lade_status print_chunks(lade_frame *frame, lade_error *err)
{
	static const char *const titles[] = {"chunk", "offset", "size",    "decoded",
					     "ratio", "flags",  "checksum"};
	const lade_frame_info *info = lade_frame_get_info(frame);
	lade_status status = LADE_OK;
	char text[40];
	table t;

	table_init(&t, "rrrrrll", titles);
	for (uint64_t i = 0; i < info->chunk_count && status == LADE_OK; i++) {
		lade_frame_chunk chunk;
		status = lade_frame_get_chunk(frame, i, &chunk, err);
		if (status != LADE_OK)
			break;
		table_row(&t);
		table_set(&t, 0, "%" PRIu64, i);
		table_set(&t, 1, "%" PRIu64, chunk.off);
		table_set(&t, 2, "%zu", chunk.size);
		table_set(&t, 3, "%zu", chunk.decoded_size);
		table_set(&t, 4, "%.3f", chunk_ratio(&chunk));
		table_set(&t, 5, "%s", flags_text(chunk.flags, text));
		if (info->checksum != LADE_CHECKSUM_NONE)
			table_set(&t, 6, "%0*" PRIx64, 2 * (int)lade_checksum_size(info->checksum),
				  chunk.checksum);
	}
	table_print(&t, stdout);
	table_free(&t);
	return status;
}

static void print_frame(const char *name, const lade_frame_info *info, const tally *t)
{
	char text[16], shown[PATH_MAX];

	table_style(stdout, "1");
	printf("%s", cli_escape(name, shown, sizeof shown));
	table_style(stdout, "0");
	printf(": .lade, version %u\n", info->version);
	label("pipeline");
	printf("%s%s\n", lade_spec_text(info->spec),
	       lade_spec_is_lossy(info->spec) ? " (lossy)" : "");
	if (info->dtype != LADE_DTYPE_NONE) {
		label("array");
		printf("%s ", lade_dtype_text(info->dtype));
		print_shape(stdout, info);
		printf("%s\n", info->fortran_order ? ", Fortran order" : "");
	}
	label("decoded");
	printf("%s (%" PRIu64 " bytes)\n", cli_format_size(info->size, text), info->size);
	label("encoded");
	printf("%s (%" PRIu64 " bytes)", cli_format_size(info->encoded_size, text),
	       info->encoded_size);
	if (info->encoded_size)
		printf(", ratio %.3f", (double)info->size / (double)info->encoded_size);
	/* What is neither payload nor decoded bytes: headers, index, gaps for the alignment. */
	printf(", %s of it not payload\n", cli_format_size(info->encoded_size - t->encoded, text));
	label("chunks");
	printf("%" PRIu64 " of %s", info->chunk_count, cli_format_size(info->chunk_size, text));
	if (t->stored)
		printf(", %" PRIu64 " stored", t->stored);
	if (t->constant)
		printf(", %" PRIu64 " constant", t->constant);
	if (t->own_spec)
		printf(", %" PRIu64 " with a spec of their own", t->own_spec);
	putchar('\n');
	label("checksums");
	puts(info->checksum == LADE_CHECKSUM_NONE ? "none" : lade_checksum_name(info->checksum));
	print_histogram(t);
}

static lade_status json_chunks(json *j, lade_frame *frame, lade_error *err)
{
	const lade_frame_info *info = lade_frame_get_info(frame);
	lade_status status = LADE_OK;

	json_open(j, "chunks", '[');
	for (uint64_t i = 0; i < info->chunk_count && status == LADE_OK; i++) {
		lade_frame_chunk chunk;
		char text[24];
		status = lade_frame_get_chunk(frame, i, &chunk, err);
		if (status != LADE_OK)
			break;
		json_open(j, NULL, '{');
		json_uint(j, "offset", chunk.off);
		json_uint(j, "size", chunk.size);
		json_uint(j, "decoded_size", chunk.decoded_size);
		json_bool(j, "stored", chunk.flags & LADE_CHUNK_STORED);
		json_bool(j, "constant", chunk.flags & LADE_CHUNK_CONSTANT);
		json_bool(j, "own_spec", chunk.flags & LADE_CHUNK_OWN_SPEC);
		if (info->checksum != LADE_CHECKSUM_NONE) {
			/* As text: many readers of JSON keep numbers to 53 bits only. */
			snprintf(text, sizeof text, "%0*" PRIx64,
				 2 * (int)lade_checksum_size(info->checksum), chunk.checksum);
			json_text(j, "checksum", text);
		}
		json_close(j, '}');
	}
	json_close(j, ']');
	return status;
}

static void json_frame(json *j, const lade_frame_info *info, const tally *t)
{
	json_uint(j, "version", info->version);
	json_text(j, "pipeline", lade_spec_text(info->spec));
	json_bool(j, "lossy", lade_spec_is_lossy(info->spec));
	if (info->dtype != LADE_DTYPE_NONE) {
		json_text(j, "dtype", lade_dtype_text(info->dtype));
		json_open(j, "shape", '[');
		for (unsigned i = 0; i < info->ndim; i++)
			json_uint(j, NULL, info->shape[i]);
		json_close(j, ']');
		json_bool(j, "fortran_order", info->fortran_order);
	}
	json_uint(j, "size", info->size);
	json_uint(j, "encoded_size", info->encoded_size);
	json_uint(j, "payload_size", t->encoded);
	json_uint(j, "chunk_size", info->chunk_size);
	json_uint(j, "chunk_count", info->chunk_count);
	json_uint(j, "stored", t->stored);
	json_uint(j, "constant", t->constant);
	json_uint(j, "own_spec", t->own_spec);
	json_text(j, "checksum",
		  info->checksum == LADE_CHECKSUM_NONE ? "none"
						       : lade_checksum_name(info->checksum));
	json_open(j, "ratios", '[');
	for (size_t i = 0; i < STEP_COUNT; i++) {
		if (t->step[i] == 0)
			continue;
		json_open(j, NULL, '{');
		json_number(j, "from", steps[i], 2);
		json_uint(j, "chunks", t->step[i]);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static int inspect_frame(const settings *s, const char *name, const char *path, json *j)
{
	lade_frame_read_options options = {.struct_size = sizeof options};
	lade_frame *frame = NULL;
	lade_error err;
	tally t;

	options.verify = LADE_VERIFY_NEVER;
	lade_status status =
		lade_frame_open_path(lade_engine_default(), path, &options, &frame, &err);
	if (status == LADE_OK)
		status = tally_chunks(frame, &t, &err);
	if (status == LADE_OK && s->json) {
		json_open(j, NULL, '{');
		json_text(j, "file", name);
		json_text(j, "format", "lade");
		json_frame(j, lade_frame_get_info(frame), &t);
		if (s->chunks)
			status = json_chunks(j, frame, &err);
		json_close(j, '}');
	} else if (status == LADE_OK) {
		print_frame(name, lade_frame_get_info(frame), &t);
		if (s->chunks)
			status = print_chunks(frame, &err);
	}
	lade_frame_close(frame);
	return status == LADE_OK ? CLI_OK : cli_lade_error(name, &err);
}

/* ---- other formats: what their first header says ---- */

#define HEAD_MAX 4096

/* A file's first and last bytes. */
typedef struct head {
	uint8_t bytes[HEAD_MAX];
	size_t size;        /* how many of them there are */
	uint8_t tail[4];    /* the last four, when the file has as many */
	uint64_t file_size; /* 0 where it is not known (a pipe) */
} head;

/* What was found; texts are empty where nothing is stated. */
typedef struct facts {
	const char *title;
	char content[64], window[32], checksum[32], block[32], name[256], extra[128];
} facts;

static uint64_t little(const uint8_t *p, size_t size)
{
	uint64_t value = 0;

	for (size_t i = size; i > 0; i--)
		value = value << 8 | p[i - 1];
	return value;
}

static void size_fact(char *text, uint64_t size)
{
	char human[16];
	snprintf(text, 32, "%.12s", cli_format_size(size, human));
}

/* RFC 8878, section 3.1.1.1. */
static void zst_facts(const head *h, facts *f)
{
	static const uint8_t dict_sizes[4] = {0, 1, 2, 4};
	const uint8_t *p = h->bytes;

	f->title = "Zstandard (.zst)";
	if (h->size >= 8 && (p[0] & 0xF0) == 0x50 && little(p + 1, 3) == 0x184D2A) {
		snprintf(f->extra, sizeof f->extra,
			 "begins with a skippable frame of %" PRIu64 " bytes", little(p + 4, 4));
		return;
	}
	if (h->size < 6)
		return;
	uint8_t descriptor = p[4];
	bool single = descriptor & 0x20;
	size_t dict = dict_sizes[descriptor & 3], at = 5 + !single;
	size_t field = (size_t)1 << (descriptor >> 6);
	if (field == 1 && !single)
		field = 0;
	uint64_t content = little(p + at + dict, field) + (field == 2 ? 256 : 0);
	if (field)
		size_fact(f->content, content);
	if (!single) {
		unsigned exponent = p[5] >> 3, mantissa = p[5] & 7;
		uint64_t base = (uint64_t)1 << (10 + exponent);
		size_fact(f->window, base + base / 8 * mantissa);
	}
	snprintf(f->checksum, sizeof f->checksum, "%s",
		 descriptor & 4 ? "xxh64 (32 bits)" : "none");
	if (dict)
		snprintf(f->extra, sizeof f->extra, "needs dictionary %" PRIu64,
			 little(p + at, dict));
}

/* RFC 1952, section 2.3. */
static void gz_facts(const head *h, facts *f)
{
	const uint8_t *p = h->bytes;
	size_t at = 10;

	f->title = "Gzip (.gz)";
	snprintf(f->checksum, sizeof f->checksum, "crc32");
	if (h->size < 18)
		return;
	if (h->file_size)
		snprintf(f->content, sizeof f->content,
			 "%" PRIu64 " bytes in the last member, mod 2^32", little(h->tail, 4));
	if (p[3] & 4)
		at += 2 + little(p + 10, 2);
	if (p[3] & 8 && at < h->size) {
		size_t n = strnlen((const char *)p + at, h->size - at);
		snprintf(f->name, sizeof f->name, "%.*s", (int)(n < 255 ? n : 255), p + at);
		/* The name is whatever the file says: nothing of it may drive a terminal. */
		for (char *c = f->name; *c; c++)
			if ((unsigned char)*c < 0x20 || *c == 0x7F)
				*c = '?';
	}
}

/* RFC 1950, section 2.2. */
static void zz_facts(const head *h, facts *f)
{
	f->title = "zlib (.zz)";
	snprintf(f->checksum, sizeof f->checksum, "adler32");
	if (h->size < 2)
		return;
	size_fact(f->window, (uint64_t)1 << (8 + (h->bytes[0] >> 4)));
	if (h->bytes[1] & 0x20)
		snprintf(f->extra, sizeof f->extra, "needs a dictionary");
}

/* LZ4 frame format 1.6.2, "Frame Descriptor". */
static void lz4_facts(const head *h, facts *f)
{
	const uint8_t *p = h->bytes;

	f->title = "LZ4 frame (.lz4)";
	if (h->size < 15)
		return;
	if (little(p, 4) == 0x184C2102) {
		f->title = "LZ4 legacy frame (.lz4)";
		size_fact(f->block, 8 << 20);
		snprintf(f->checksum, sizeof f->checksum, "none");
		return;
	}
	if (p[4] & 0x08)
		size_fact(f->content, little(p + 6, 8));
	if ((p[5] >> 4 & 7) >= 4)
		size_fact(f->block, (uint64_t)1 << (8 + 2 * (p[5] >> 4 & 7)));
	snprintf(f->checksum, sizeof f->checksum, "%s%s%s",
		 p[4] & 0x04 ? "xxh32 of the content" : "", (p[4] & 0x14) == 0x14 ? ", " : "",
		 p[4] & 0x10 ? "of blocks" : "");
	if (!*f->checksum)
		snprintf(f->checksum, sizeof f->checksum, "none");
	snprintf(f->extra, sizeof f->extra, "blocks are %s%s",
		 p[4] & 0x20 ? "independent" : "linked", p[4] & 1 ? ", needs a dictionary" : "");
}

static void print_fact(const char *name, const char *value)
{
	if (!*value)
		return;
	label(name);
	puts(value);
}

static void print_foreign(const settings *s, const char *path, const head *h, lade_format format,
			  json *j)
{
	facts f = {.title = "?"};
	char text[16], shown[PATH_MAX];

	if (format == LADE_FORMAT_ZST)
		zst_facts(h, &f);
	else if (format == LADE_FORMAT_GZ)
		gz_facts(h, &f);
	else if (format == LADE_FORMAT_ZZ)
		zz_facts(h, &f);
	else if (format == LADE_FORMAT_LZ4)
		lz4_facts(h, &f);
	else
		f = (facts){.title = "framed Snappy (.sz)",
			    .block = "64.00 KiB",
			    .checksum = "crc32c, masked"};
	const char *const names[] = {"decoded", "window", "block", "checksums", "name", "note"};
	const char *const values[] = {f.content, f.window, f.block, f.checksum, f.name, f.extra};
	if (s->json) {
		json_open(j, NULL, '{');
		json_text(j, "file", path);
		json_text(j, "format", lade_format_name(format));
		json_uint(j, "encoded_size", h->file_size);
		for (size_t i = 0; i < sizeof names / sizeof *names; i++)
			if (*values[i])
				json_text(j, names[i], values[i]);
		json_close(j, '}');
		return;
	}
	table_style(stdout, "1");
	printf("%s", cli_escape(path, shown, sizeof shown));
	table_style(stdout, "0");
	printf(": %s\n", f.title);
	label("encoded");
	printf("%s (%" PRIu64 " bytes)\n", cli_format_size(h->file_size, text), h->file_size);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		print_fact(names[i], values[i]);
	label("");
	puts("'lade -t' decodes and checks all of it, 'lade -l' counts its bytes");
}

/* ---- files ---- */

static int read_head(const char *name, const char *path, head *h)
{
	FILE *file = fopen(path, "rb");

	*h = (head){0};
	if (!file) {
		cli_error("%s: %s", name, strerror(errno));
		return CLI_FAILED;
	}
	h->size = fread(h->bytes, 1, sizeof h->bytes, file);
	int failed = ferror(file) ? errno : 0;
	if (!failed && fseeko(file, 0, SEEK_END) == 0 && ftello(file) > 0)
		h->file_size = (uint64_t)ftello(file);
	if (!failed && h->file_size >= 4 && fseeko(file, -4, SEEK_END) == 0 &&
	    fread(h->tail, 1, 4, file) != 4)
		failed = EIO;
	fclose(file);
	if (failed) {
		cli_error("%s: %s", name, strerror(failed));
		return CLI_FAILED;
	}
	return CLI_OK;
}

/* Copies standard input to a file without a name, since a frame is read from its end.  NULL: said
 * why not. */
static FILE *spool(void)
{
	char data[1 << 16];
	size_t size;
	FILE *file = tmpfile();

	while (file && (size = fread(data, 1, sizeof data, stdin)) > 0 &&
	       fwrite(data, 1, size, file) == size)
		;
	if (!file || ferror(stdin) || ferror(file) || fflush(file) != 0) {
		cli_error("standard input: %s", strerror(errno));
		if (file)
			fclose(file);
		return NULL;
	}
	return file;
}

/* 'name' is what the user calls the file at 'path'. */
static int inspect_path(const settings *s, const char *name, const char *path, json *j)
{
	head h;
	int code = read_head(name, path, &h);

	if (code != CLI_OK)
		return code;
	lade_format format =
		lade_format_detect(h.bytes, h.size < LADE_FORMAT_PEEK ? h.size : LADE_FORMAT_PEEK);
	if (format == LADE_FORMAT_UNKNOWN) {
		cli_error("%s: %s", name,
			  h.size ? "not a format that lade knows" : "the file is empty");
		return CLI_FAILED;
	}
	if (format == LADE_FORMAT_LADE)
		return inspect_frame(s, name, path, j);
	print_foreign(s, name, &h, format, j);
	return CLI_OK;
}

static int inspect_file(const settings *s, const char *name, json *j)
{
	char path[32];

	if (strcmp(name, "-") != 0)
		return inspect_path(s, name, name, j);
	FILE *file = spool();
	if (!file)
		return CLI_FAILED;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(file));
	int code = inspect_path(s, "standard input", path, j);
	fclose(file);
	return code;
}

int lade_cmd_inspect(int argc, char **argv)
{
	static const struct option options[] = {
		{"chunks", no_argument, NULL, 'c'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	settings s = {0};
	json j = {.out = stdout};
	int c, code = CLI_OK;

	optind = 0;
	opterr = 0;
	while ((c = getopt_long(argc, argv, "ch", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			s.chunks = true;
			break;
		case 'j':
			s.json = true;
			break;
		case 'h':
			fputs(help, stdout);
			return CLI_OK;
		default:
			return cli_usage(
				"inspect: there is no such option, or it lacks its value: %s",
				argv[optind - 1]);
		}
	}
	if (optind == argc)
		return cli_usage("inspect: no file given");
	if (!lade_engine_default())
		cli_need(NULL);
	if (s.json)
		json_open(&j, NULL, '[');
	for (int i = optind; i < argc; i++) {
		int one = inspect_file(&s, argv[i], &j);
		code = one != CLI_OK ? one : code;
		if (!s.json && i + 1 < argc)
			putchar('\n');
	}
	if (s.json)
		json_close(&j, ']');
	return code;
}
