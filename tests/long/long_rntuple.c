/*
 * long_rntuple.c: RNTuples for hours: mutated files by the million, and a file above 2 GB.
 *
 *     lade_long_rntuple mutate FOLDER COUNT [SEED [FIRST]] FILE...
 *     lade_long_rntuple far FOLDER
 *
 * mutate: file number i comes from the seed and i alone, so FIRST goes on, or tries one again.
 * After a failure the last line says which.  Beside the FILEs, files are made of every type of
 * column and codec, and with payloads in several keys.  One file in three keeps its checksums: it
 * gives what the file gave before the damage, or an error.  For the others those of metadata, the
 * anchor and, in a half, all others are made right behind the damage.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "rntuple_make.h"
#include "rntuple_use.h"

#include <lade/rntuple_write.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

/* ---- random numbers ---------------------------------------------------------------------- */

static uint64_t state;

static uint64_t next(void)
{
	uint64_t z = state += 0x9E3779B97F4A7C15u;
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return z ^ z >> 31;
}

static size_t below(size_t n)
{
	return n ? (size_t)(next() % n) : 0;
}

/* ---- files ------------------------------------------------------------------------------- */

enum { FILES_MAX = 256, FILE_MAX = 1 << 16, PARTS_MAX = 64 };

typedef struct part {
	size_t at, size;
} part;

typedef struct source_file {
	char name[64];
	uint8_t *data;
	size_t size;
	part metadata[PARTS_MAX]; /* envelopes that are stored, the anchor, the head */
	size_t part_count;
	bool sealed; /* every page has a checksum */
	bool keys;   /* payloads are in several */
	uint64_t sum; /* of all elements */
} source_file;

static source_file files[FILES_MAX];
static size_t file_count;

static void die(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

static void check(lade_status status, const lade_error *err, const char *what)
{
	if (status != LADE_OK)
		die(what, err->message);
}

static bool all_sealed(const lade_rntuple *t)
{
	lade_error err;
	bool sealed = true;
	for (uint64_t i = 0; i < lade_rntuple_about(t)->column_count; i++)
		for (uint64_t k = 0; k < lade_rntuple_about(t)->cluster_count; k++)
			for (uint64_t n = 0; n < lade_rntuple_page_count(t, i, k); n++) {
				lade_rntuple_page page = {.struct_size = sizeof page};
				check(lade_rntuple_page_at(t, i, k, n, &page, &err), &err, "page");
				sealed &= page.checksum != 0;
			}
	return sealed;
}

static void add_part(source_file *f, size_t at, size_t size)
{
	if (f->part_count < PARTS_MAX && at < f->size)
		f->metadata[f->part_count++] =
			(part){at, size < f->size - at ? size : f->size - at};
}

/* Takes 'data', which is malloc's. */
static void add_file(const char *name, uint8_t *data, size_t size)
{
	if (file_count == FILES_MAX)
		die(name, "too many files");
	source_file *f = &files[file_count++];
	lade_error err = {.status = LADE_OK};
	*f = (source_file){.data = data, .size = size, .keys = use_has_keys(data, size)};
	snprintf(f->name, sizeof f->name, "%s", name);
	lade_rntuple *t = use_open(data, size);
	if (!t)
		die(name, "is no RNTuple");
	check(kit_read_all(t, USE_RESULT_MAX, &f->sum, &err), &err, name);
	f->sealed = all_sealed(t);
	lade_rntuple_unref(t);
	size_t anchor = kit_anchor(data, size);
	add_part(f, anchor < 80 ? 0 : anchor - 80, 160);
	add_part(f, 0, 320);
	for (size_t at = 0; at + 32 < size; at++) {
		uint64_t head = lade__le64(data + at), own = head >> 16;
		if ((head & 0xFFFF) - 1 < 3 && own >= 32 && own <= size - at &&
		    lade_checksum_of(LADE_XXH3, data + at, (size_t)own - 8) ==
		            lade__le64(data + at + own - 8))
			add_part(f, at, (size_t)own);
	}
}

static void load_file(const char *path)
{
	FILE *in = fopen(path, "rb");
	uint8_t *data = malloc(FILE_MAX);
	if (!in || !data)
		die(path, "opening it");
	size_t size = fread(data, 1, FILE_MAX, in);
	fclose(in);
	const char *name = strrchr(path, '/');
	add_file(name ? name + 1 : path, data, size);
}

/* ---- files of our own -------------------------------------------------------------------- */

static const char *const plain[][2] = {
	{"bool", "Bit"},
	{"char", "Char"},
	{"std::int16_t", "SplitInt16"},
	{"std::uint16_t", "SplitUInt16"},
	{"std::int32_t", "Int32"},
	{"std::int32_t", "SplitInt32"},
	{"std::uint64_t", "SplitUInt64"},
	{"std::int64_t", "SplitInt64"},
	{"float", "Real16"},
	{"float", "SplitReal32"},
	{"double", "SplitReal64"},
	{"float", "Real32Trunc(11)"},
	{"float", "Real32Quant(7,-2,3)"},
};
enum { PLAIN = sizeof plain / sizeof plain[0], ENTRIES = 40 };

/* Behind the plain fields: vectors of vectors, text, a variant, a bitset. */
static const lade_rntuple_new_field nested[] = {
	{.name = "v", .type = "std::vector<std::vector<float>>", .role = LADE_RNTUPLE_COLLECTION},
	{.name = "_0", .type = "std::vector<float>", .role = LADE_RNTUPLE_COLLECTION},
	{.name = "_0", .type = "float"},
	{.name = "text", .type = "std::string", .stored = "SplitIndex32,Char"},
	{.name = "either", .type = "std::variant<float,bool>", .role = LADE_RNTUPLE_VARIANT},
	{.name = "_0", .type = "float"},
	{.name = "_1", .type = "bool"},
	{.name = "bits", .type = "std::bitset<11>", .array_size = 11},
};
static const int above[] = {-1, 0, 1, -1, -1, 4, 4, -1};
enum { NESTED = sizeof nested / sizeof nested[0] };

static void write_fields(lade_rntuple_writer *w)
{
	lade_rntuple_new_field table[PLAIN + NESTED];
	lade_error err;
	char name[PLAIN][8];
	for (size_t i = 0; i < PLAIN; i++) {
		snprintf(name[i], sizeof name[i], "f%zu", i);
		table[i] = (lade_rntuple_new_field){.name = name[i],
		                                    .type = plain[i][0],
		                                    .stored = plain[i][1],
		                                    .parent = LADE_RNTUPLE_TOP};
	}
	for (size_t i = 0; i < NESTED; i++) {
		table[PLAIN + i] = nested[i];
		table[PLAIN + i].parent =
			above[i] < 0 ? LADE_RNTUPLE_TOP : PLAIN + (uint64_t)above[i];
	}
	check(lade_rntuple_writer_add(w, table, PLAIN + NESTED, &err), &err, "fields");
}

/* Values of the width that the column wants, which shrink; each column has a seed. */
static void make_values(const lade_rntuple_column *c, size_t count, uint8_t *to)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t value = (i / 5 + c->field) % 7;
		float real = (float)(value % 5) - 2;
		double wide = real;
		if (c->dtype == LADE_B1)
			value &= 1;
		if (lade_dtype_class(c->dtype) == lade_dtype_class(LADE_F4) && c->elem_size > 2)
			memcpy(to + i * c->elem_size,
			       c->elem_size == 8 ? (void *)&wide : (void *)&real, c->elem_size);
		else
			lade__le_put(to + i * c->elem_size, value, c->elem_size);
	}
}

static void write_entries(lade_rntuple_writer *w)
{
	const lade_rntuple *schema = lade_rntuple_writer_schema(w);
	uint64_t count = lade_rntuple_about(schema)->column_count;
	static uint8_t room[64][ENTRIES * 16 * 8];
	lade_rntuple_fill fill[64] = {{0}};
	lade_error err;
	for (uint64_t i = 0; i < count; i++) {
		const lade_rntuple_column *c = lade_rntuple_column_at(schema, i);
		const lade_rntuple_field *f = lade_rntuple_field_at(schema, c->field);
		size_t n = f->array_size ? f->array_size * ENTRIES : ENTRIES;
		fill[i].column = i;
		if (c->kind == LADE_RNTUPLE_OFFSETS) {
			for (size_t k = 0; k <= ENTRIES; k++)
				lade__le_put(room[i] + 8 * k, k, 8);
			n++;
		} else if (c->kind == LADE_RNTUPLE_SWITCH) {
			for (size_t k = 0; k < ENTRIES; k++)
				room[i][k] = (uint8_t)(k % 3);
			fill[i].dtype = LADE_U1;
			fill[i].span = lade_host_cspan(room[i], n);
			continue;
		} else {
			make_values(c, n, room[i]);
		}
		fill[i].span = lade_host_cspan(room[i], n * c->elem_size);
	}
	check(lade_rntuple_writer_fill(w, ENTRIES, fill, count, NULL, &err), &err, "entries");
}

static void write_files(const char *folder)
{
	static const char *const codecs[] = {"zstd", "lz4", "zlib", "lzma", "none"};
	for (size_t k = 0; k < 10; k++) {
		char path[512];
		lade_error err;
		lade_rntuple_writer *w = NULL;
		lade_rntuple_writer_options options = {.struct_size = sizeof options,
		                                       .name = "t",
		                                       .codec = codecs[k / 2],
		                                       .mode = LADE_RNTUPLE_REPLACE,
		                                       .page_size = k % 2 ? 0 : 64,
		                                       .group_size = 1,
		                                       .field_size = sizeof *nested,
		                                       .fill_size = sizeof(lade_rntuple_fill)};
		snprintf(path, sizeof path, "%s/own-%s-%zu.root", folder, codecs[k / 2], k % 2);
		check(lade_rntuple_writer_open(path, &options, &w, &err), &err, path);
		write_fields(w);
		write_entries(w);
		if (k % 2)
			write_entries(w);
		check(lade_rntuple_writer_commit(w, &err), &err, path);
		lade_rntuple_writer_close(w);
		load_file(path);
	}
}

/* Payloads in several keys, large locators: no writer makes such files this small. */
static void make_files(void)
{
	for (unsigned k = 0; k < 4; k++) {
		make m = {.fd = -1, .big = k % 2, .key_max = k / 2 ? 104 : 0};
		uint32_t values[60], field = make_field(&m, "x", "std::uint32_t", MAKE_TOP, 0, 0);
		uint32_t column = make_column(&m, field, 0x08, 32);
		for (uint32_t i = 0; i < 60; i++)
			values[i] = 3 * i;
		make_page(&m, column, values, sizeof values, 60);
		make_cluster(&m, 60);
		make_page(&m, column, values + 7, 120, 30);
		make_cluster(&m, 30);
		make_finish(&m, "t");
		add_file(k / 2 ? "keys" : "places", make_flat(&m), (size_t)m.at);
		make_free(&m);
	}
}

/* ---- damage ------------------------------------------------------------------------------ */

static uint8_t work[FILE_MAX + 64];

/* A place: in the metadata two times of three. */
static size_t place(const source_file *f, size_t size)
{
	if (f->part_count == 0 || next() % 3 == 0)
		return below(size);
	const part *p = &f->metadata[below(f->part_count)];
	size_t at = p->at + below(p->size);
	return at < size ? at : below(size);
}

static uint64_t strange(void)
{
	static const uint64_t values[] = {
		0,          1,          2,          7,          0x7F,
		0x80,       0xFF,       0x7FFF,     0x8000,     0xFFFF,
		0x10000,    0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x100000000,
		INT64_MAX,  0xFFFFFFF4, 0xFFFFFFEC, 0xFEFFFFEC,
	};
	uint64_t value = values[below(sizeof values / sizeof values[0])];
	return next() % 4 ? value : 0 - value;
}

/* One change; returns the file's new size. */
static size_t damage(const source_file *f, size_t size)
{
	static const size_t widths[] = {1, 2, 2, 4, 4, 4, 8, 8};
	size_t at = place(f, size), width = widths[below(8)], n, from;
	width = width < size - at ? width : size - at;
	uint64_t value = 0;
	memcpy(&value, work + at, width);
	switch (next() % 10) {
	case 0:
	case 1:
		work[at] ^= (uint8_t)(1 << next() % 8);
		return size;
	case 2:
		work[at] = (uint8_t)next();
		return size;
	case 3:
	case 4:
		lade__le_put(work + at, strange(), width);
		return size;
	case 5:
	case 6:
		lade__le_put(work + at, value + next() % 33 - 16, width);
		return size;
	case 7: /* bytes of this file or of another */
		n = below(64) + 1;
		const source_file *other = next() % 2 ? f : &files[below(file_count)];
		from = place(other, other->size);
		n = n < size - at ? n : size - at;
		n = n < other->size - from ? n : other->size - from;
		memmove(work + at, other->data + from, n);
		return size;
	case 8:
		n = below(40) + 1;
		memset(work + at, next() % 2 ? 0 : 0xFF, n < size - at ? n : size - at);
		return size;
	default:
		return next() % 4 ? size : size - below(size / 2);
	}
}

static volatile uint64_t number;

static void caught(int which)
{
	char text[64];
	int n = snprintf(text, sizeof text, "signal %d in file %" PRIu64 "\n", which,
	                 (uint64_t)number);
	if (write(2, text, (size_t)n) < 0)
		_exit(3);
	signal(which, SIG_DFL);
	raise(which);
}

/* Mends and goes on with a damaged file: whatever they say, nothing breaks. */
static void write_to(const char *path, const uint8_t *data, size_t size)
{
	lade_error err = {.status = LADE_OK};
	lade_rntuple_writer *w = NULL;
	lade_rntuple_writer_options options = {.struct_size = sizeof options,
	                                       .mode = LADE_RNTUPLE_APPEND};
	bool mended;
	FILE *out = fopen(path, "wb");
	if (!out || fwrite(data, 1, size, out) != size || fclose(out) != 0)
		die(path, "writing it");
	use_good(lade_rntuple_repair(path, NULL, &mended, &err), &err);
	if (use_good(lade_rntuple_writer_open(path, &options, &w, &err), &err))
		use_good(lade_rntuple_writer_commit(w, &err), &err);
	lade_rntuple_writer_close(w);
}

static void mutate(const char *folder, uint64_t seed, uint64_t first, uint64_t count)
{
	uint64_t opened = 0, same = 0;
	char path[512];
	time_t began = time(NULL);
	snprintf(path, sizeof path, "%s/mutated.root", folder);
	for (number = first; number < first + count; number++) {
		state = seed + number * 0xD1342543DE82EF95u;
		next();
		const source_file *f = &files[below(file_count)];
		size_t size = f->size, changes = 1 + below(2) * below(4);
		unsigned how = (unsigned)below(6);
		memcpy(work, f->data, size);
		while (changes-- > 0 && size)
			size = damage(f, size);
		if (number % 1000 == 0)
			alarm(120);
		if (how >= 2)
			kit_reseal(work, size, kit_anchor(work, size));
		/* The library sees memory of just this size. */
		uint8_t *own = malloc(size + !size);
		use_expect(own);
		memcpy(own, work, size);
		lade_rntuple *t = use_open(own, size);
		opened += t != NULL;
		if (t && how < 2 && f->sealed) {
			uint64_t sum;
			lade_error err = {.status = LADE_OK};
			lade_status status = kit_read_all(t, USE_RESULT_MAX, &sum, &err);
			if (status == LADE_E_LIMIT)
				die("a file whose metadata are whole", "has too many elements");
			if (use_good(status, &err)) {
				use_expect(sum == f->sum);
				same++;
			}
		} else if (t) {
			use_tuple(t, own, size, f->keys || use_has_keys(own, size),
			          how % 2 ? LADE_RNTUPLE_IGNORE_CHECKSUMS : 0);
		}
		lade_rntuple_unref(t);
		if (number % 512 == 0)
			write_to(path, own, size);
		free(own);
		if ((number + 1 - first) % 100000 == 0) {
			printf("mutate: %" PRIu64 " files of seed %" PRIu64 ", %" PRIu64
			       " opened, %" PRIu64 " gave the same, %lld s\n",
			       number + 1 - first, seed, opened, same,
			       (long long)(time(NULL) - began));
			fflush(stdout);
		}
	}
	printf("mutate: %" PRIu64 " files of %zu, seed %" PRIu64 ", %" PRIu64 " opened, %" PRIu64
	       " gave the same elements, the others were refused; %lld s\n",
	       count, file_count, seed, opened, same, (long long)(time(NULL) - began));
}

static void run_mutate(int argc, char **argv)
{
	int at = 4;
	uint64_t seed = 1, first = 0;
	static const int signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM};
	if (at < argc && strspn(argv[at], "0123456789") == strlen(argv[at]))
		seed = strtoull(argv[at++], NULL, 10);
	if (at < argc && strspn(argv[at], "0123456789") == strlen(argv[at]))
		first = strtoull(argv[at++], NULL, 10);
	for (; at < argc; at++)
		load_file(argv[at]);
	write_files(argv[2]);
	make_files();
	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
		signal(signals[i], caught);
	mutate(argv[2], seed, first, strtoull(argv[3], NULL, 10));
}

/* ---- a file above 2 GB ------------------------------------------------------------------- */

/* Element i of a cluster of 2^24 numbers. */
static uint32_t far_value(uint32_t cluster, uint32_t i)
{
	return (i ^ cluster * 0x9E3779B9u) * 0x85EBCA6Bu;
}

/* 36 clusters of 64 MiB, stored: keys, directory and free list have 8 bytes at the end.  It is read
 * whole, in steps, and appended to. */
static void far(const char *folder)
{
	enum { COUNT = 1 << 24, CLUSTERS = 36 };
	static const lade_rntuple_new_field field = {
		.name = "x", .type = "std::uint32_t", .parent = LADE_RNTUPLE_TOP, .codec = "none"};
	lade_error err = {.status = LADE_OK};
	char path[512];
	uint32_t *x = make_need(malloc(COUNT * sizeof *x));
	lade_rntuple_writer *w = NULL;
	lade_rntuple_writer_options options = {
		.struct_size = sizeof options, .name = "t", .codec = "none"};
	lade_rntuple_fill fill = {.span = lade_host_cspan(x, COUNT * sizeof *x)};
	snprintf(path, sizeof path, "%s/far.root", folder);
	for (uint32_t k = 0; k < CLUSTERS; k++) {
		bool last = k == CLUSTERS - 1;
		if (k == 0 || last)
			check(lade_rntuple_writer_open(path, &options, &w, &err), &err, path);
		if (k == 0)
			check(lade_rntuple_writer_add(w, &field, 1, &err), &err, "field");
		for (uint32_t i = 0; i < COUNT; i++)
			x[i] = far_value(k, i);
		check(lade_rntuple_writer_fill(w, COUNT, &fill, 1, NULL, &err), &err, "fill");
		if (!last && k != CLUSTERS - 2)
			continue;
		check(lade_rntuple_writer_commit(w, &err), &err, "commit");
		lade_rntuple_writer_close(w);
		options.mode = LADE_RNTUPLE_APPEND;
	}
	free(x);
	lade_source source;
	lade_rntuple *t;
	lade_rntuple_steps *steps;
	lade_rntuple_step step = {.struct_size = sizeof step};
	lade_rntuple_steps_options ahead = {.struct_size = sizeof ahead, .ahead = 1};
	uint64_t column = 0, seen = 0;
	check(lade_source_file_open(path, NULL, &source, &err), &err, path);
	check(lade_rntuple_open(source, NULL, &t, &err), &err, path);
	check(lade_rntuple_steps_new(t, &column, 1, &ahead, &steps, &err), &err, "steps");
	for (uint32_t k = 0;; k++) {
		check(lade_rntuple_steps_next(steps, &step, &err), &err, "step");
		if (step.entries.count == 0)
			break;
		const uint32_t *got = step.targets[0].span.data;
		for (uint32_t i = 0; i < COUNT; i++)
			use_expect(got[i] == far_value(k, i));
		seen += step.entries.count;
	}
	lade_rntuple_steps_free(steps);
	lade_rntuple_unref(t);
	use_expect(seen == (uint64_t)COUNT * CLUSTERS);
	printf("far: %" PRIu64 " elements in %s\n", seen, path);
}

int main(int argc, char **argv)
{
	if (argc > 3 && strcmp(argv[1], "mutate") == 0)
		run_mutate(argc, argv);
	else if (argc == 3 && strcmp(argv[1], "far") == 0)
		far(argv[2]);
	else
		die("usage", "lade_long_rntuple far FOLDER | mutate FOLDER COUNT [SEED [FIRST]] "
		             "FILE...");
	return 0;
}
