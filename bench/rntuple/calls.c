/*
 * calls.c: the C calls that bench_rntuple.py times beside uproot: reads of liblade, and a bare loop
 * over the same pages: pread() and the library of the codec, on as many threads, without checksums
 * and without anything of RNTuple but the table of pages.
 *
 * Every function returns 0, or -1 after it has printed why.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <lade/lade.h>

#include <fcntl.h>
#include <libdeflate.h>
#include <lz4.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

static int failed(const char *what, const lade_error *err)
{
	fprintf(stderr, "%s: %s\n", what, err->message);
	return -1;
}

/* ---- liblade --------------------------------------------------------------------------- */

/* Opens a file's only RNTuple; NULL: failed. */
lade_rntuple *calls_open(const char *path)
{
	lade_error err;
	lade_source source;
	lade_rntuple *tuple = NULL;

	if (lade_source_file_open(path, NULL, &source, &err)) {
		failed(path, &err);
	} else if (lade_rntuple_open(source, NULL, &tuple, &err)) {
		lade_source_close(source);
		failed(path, &err);
	}
	return tuple;
}

void calls_close(lade_rntuple *tuple)
{
	lade_rntuple_unref(tuple);
}

/* The number of columns; and the bytes of each as it is read. */
size_t calls_sizes(const lade_rntuple *tuple, uint64_t *sizes)
{
	const lade_rntuple_column *c;
	size_t i = 0;

	for (; (c = lade_rntuple_column_at(tuple, i)); i++)
		if (sizes)
			sizes[i] = (c->element_count + (c->kind == LADE_RNTUPLE_OFFSETS)) *
			           c->elem_size;
	return i;
}

/* Reads columns [first, first + count), column i to to[i]; 'flags': lade_rntuple_read_options. */
int calls_read(lade_rntuple *tuple, size_t first, size_t count, void **to, unsigned threads,
               uint32_t flags)
{
	lade_rntuple_target *targets = calloc(count + 1, sizeof *targets);
	lade_rntuple_read_options options = {
		.struct_size = sizeof options,
		.target_size = sizeof *targets,
		.threads = threads,
		.flags = flags};
	lade_error err;
	int rc = 0;

	for (size_t i = 0; i < count; i++) {
		const lade_rntuple_column *c = lade_rntuple_column_at(tuple, first + i);
		size_t n = (size_t)c->element_count + (c->kind == LADE_RNTUPLE_OFFSETS);
		targets[i] = (lade_rntuple_target){first + i, 0, c->element_count,
		                                   lade_host_span(to[i], n * c->elem_size)};
	}
	if (lade_rntuple_read(tuple, targets, count, &options, NULL, &err))
		rc = failed("read", &err);
	free(targets);
	return rc;
}

/* ---- the bare loop ----------------------------------------------------------------------- */

typedef struct page {
	uint64_t off;
	size_t stored, decoded;
	size_t column, at; /* where it goes: byte 'at' of that column */
} page;

typedef struct bare {
	int fd;
	page *pages;
	size_t count, largest;
	char **to; /* of columns */
	atomic_size_t next;
	atomic_int bad;
} bare;

/* Decodes the blocks of a page: | magic 2 | method 1 | compressed 3 | decoded 3 | bytes |. */
static int decode(const unsigned char *p, const page *at, char *to, ZSTD_DCtx *zstd,
                  struct libdeflate_decompressor *z)
{
	if (at->stored == at->decoded) {
		memcpy(to, p, at->stored);
		return 0;
	}
	for (const unsigned char *end = p + at->stored; p < end;) {
		size_t size = p[3] | (size_t)p[4] << 8 | (size_t)p[5] << 16;
		size_t want = p[6] | (size_t)p[7] << 8 | (size_t)p[8] << 16;
		const char *from = (const char *)p + 9;
		if (p[0] == 'Z' && p[1] == 'S' &&
		    ZSTD_decompressDCtx(zstd, to, want, from, size) != want)
			return -1;
		if (p[0] == 'L' &&
		    LZ4_decompress_safe(from + 8, to, (int)size - 8, (int)want) != (int)want)
			return -1;
		if (p[0] == 'Z' && p[1] == 'L' &&
		    libdeflate_zlib_decompress(z, from, size, to, want, NULL))
			return -1;
		p += 9 + size;
		to += want;
	}
	return 0;
}

static void *loop(void *ctx)
{
	bare *b = ctx;
	unsigned char *buffer = malloc(b->largest);
	ZSTD_DCtx *zstd = ZSTD_createDCtx();
	struct libdeflate_decompressor *z = libdeflate_alloc_decompressor();

	for (size_t i; (i = atomic_fetch_add(&b->next, 1)) < b->count;) {
		const page *p = &b->pages[i];
		if (pread(b->fd, buffer, p->stored, (off_t)p->off) != (ssize_t)p->stored ||
		    decode(buffer, p, b->to[p->column] + p->at, zstd, z))
			b->bad = 1;
	}
	libdeflate_free_decompressor(z);
	ZSTD_freeDCtx(zstd);
	free(buffer);
	return NULL;
}

/* Makes the table for the first 'count' columns, which are of plain types.  Offsets go behind their
 * leading 0.  NULL: failed. */
bare *calls_bare_new(const char *path, const lade_rntuple *tuple, size_t count)
{
	bare *b = calloc(1, sizeof *b);
	lade_error err;

	b->fd = open(path, O_RDONLY | O_CLOEXEC);
	for (size_t i = 0; i < count; i++) {
		const lade_rntuple_column *c = lade_rntuple_column_at(tuple, i);
		size_t lead = c->kind == LADE_RNTUPLE_OFFSETS ? c->elem_size : 0;
		for (uint64_t k = 0; k < lade_rntuple_about(tuple)->cluster_count; k++) {
			uint64_t pages = lade_rntuple_page_count(tuple, i, k);
			for (uint64_t n = 0; n < pages; n++) {
				lade_rntuple_page p = {.struct_size = sizeof p};
				if (lade_rntuple_page_at(tuple, i, k, n, &p, &err)) {
					failed("page", &err);
					return NULL;
				}
				b->pages = realloc(b->pages, (b->count + 1) * sizeof *b->pages);
				b->pages[b->count++] =
					(page){p.off, (size_t)p.stored_size, (size_t)p.decoded_size,
				               i, lead + (size_t)p.first * c->elem_size};
				if (p.stored_size > b->largest)
					b->largest = (size_t)p.stored_size;
			}
		}
	}
	return b;
}

/* Column i goes to to[i]. */
int calls_bare_read(bare *b, void **to, unsigned threads)
{
	pthread_t thread[64];

	b->to = (char **)to;
	b->next = 0;
	for (unsigned i = 1; i < threads && i < 64; i++)
		pthread_create(&thread[i], NULL, loop, b);
	loop(b);
	for (unsigned i = 1; i < threads && i < 64; i++)
		pthread_join(thread[i], NULL);
	return b->bad ? -1 : 0;
}
