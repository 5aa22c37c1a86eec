/*
 * calls.c: the C calls that bench_zarr.py times beside zarrs and tensorstore: reads and
 * writes of liblade, and bare loops over the same chunk files, without anything of Zarr.
 *
 * Every function returns 0, or -1 after it has printed why.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <lade/lade.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>

static int failed(const char *what, const lade_error *err)
{
	fprintf(stderr, "%s: %s\n", what, err->message);
	return -1;
}

/* ---- Zarr ------------------------------------------------------------------------------ */

/* Opens an array of a directory; NULL: failed. */
lade_zarr *calls_open(const char *path)
{
	lade_error err;
	lade_store *store;
	lade_zarr *array = NULL;

	if (lade_store_directory_open(path, NULL, &store, &err) ||
	    lade_zarr_open(store, "", NULL, &array, &err))
		failed(path, &err);
	else
		lade_store_unref(store);
	return array;
}

void calls_close(lade_zarr *array)
{
	lade_zarr_unref(array);
}

/* Boxes to read: box i goes to 'dst' + i * 'size'. */
typedef struct boxes {
	const lade_zarr *array;
	const int64_t *start, *stop; /* 'ndim' entries a box */
	size_t ndim;
	char *dst;
	size_t size;
	unsigned threads;
} boxes;

static lade_status read_box(void *ctx, size_t index, lade_error *err)
{
	const boxes *b = ctx;
	lade_zarr_index axes[LADE_DIMS_MAX];
	lade_zarr_selection selection = {.struct_size = sizeof(selection), .axis_count = b->ndim,
	                                 .axes = axes, .index_size = sizeof(axes[0])};
	lade_zarr_target target = {.struct_size = sizeof(target)};
	lade_zarr_read_options options = {.struct_size = sizeof(options), .threads = b->threads};

	for (size_t k = 0; k < b->ndim; k++)
		axes[k] = (lade_zarr_index){.kind = LADE_ZARR_SLICE,
		                            .start = b->start[index * b->ndim + k],
		                            .stop = b->stop[index * b->ndim + k]};
	target.span = lade_host_span(b->dst + index * b->size, b->size);
	return lade_zarr_read(b->array, &selection, &target, &options, NULL, err);
}

/* Reads boxes one after the other, a call each. */
int calls_read(const lade_zarr *array, const int64_t *start, const int64_t *stop, size_t ndim,
               size_t count, char *dst, size_t size, unsigned threads)
{
	boxes b = {array, start, stop, ndim, dst, size, threads};
	lade_error err;

	for (size_t i = 0; i < count; i++)
		if (read_box(&b, i, &err))
			return failed("lade_zarr_read", &err);
	return 0;
}

/* Reads boxes side by side, a call each, each on one thread. */
int calls_read_all(const lade_zarr *array, const int64_t *start, const int64_t *stop, size_t ndim,
                   size_t count, char *dst, size_t size, unsigned threads)
{
	boxes b = {array, start, stop, ndim, dst, size, 1};
	lade_batch_options options = {.struct_size = sizeof(options), .threads = threads};
	lade_error err;

	if (lade_engine_each(lade_engine_default(), count, read_box, &b, &options, &err))
		return failed("lade_zarr_read", &err);
	return 0;
}

/* Makes an array of float32 in a new directory and writes all of it.  'inner' NULL: no shards. */
int calls_write(const char *path, uint32_t format, const uint64_t *shape, const uint64_t *chunk,
                const uint64_t *inner, const char *codecs, const char *src, size_t size,
                unsigned threads)
{
	lade_directory_options d = {.struct_size = sizeof(d), .flags = LADE_DIRECTORY_CREATE};
	lade_zarr_description description = {.struct_size = sizeof(description),
	                                     .kind = LADE_ZARR_ARRAY, .format = format, .ndim = 3,
	                                     .shape = shape, .chunk_shape = chunk,
	                                     .type = "float32", .codecs = codecs,
	                                     .inner_shape = inner};
	lade_zarr_source source = {.struct_size = sizeof(source),
	                           .span = lade_host_cspan(src, size)};
	lade_zarr_write_options options = {.struct_size = sizeof(options), .threads = threads};
	lade_zarr *array = NULL;
	lade_store *store;
	lade_error err;
	lade_status status = lade_store_directory_open(path, &d, &store, &err);

	if (status == LADE_OK) {
		status = lade_zarr_create(store, "", &description, NULL, &array, &err);
		lade_store_unref(store);
	}
	if (status == LADE_OK)
		status = lade_zarr_write(array, NULL, &source, &options, NULL, &err);
	lade_zarr_unref(array);
	return status == LADE_OK ? 0 : failed(path, &err);
}

/* ---- bare loops ------------------------------------------------------------------------- */

typedef struct bare {
	const char *const *paths;
	size_t count, chunk_size, parts; /* a file has 'parts' frames of 'chunk_size' bytes */
	const uint64_t *part_off, *part_size;
	char *dst;
	atomic_size_t next;
	atomic_bool bad;
} bare;

static void *bare_worker(void *ctx)
{
	bare *b = ctx;
	size_t cap = b->chunk_size + b->chunk_size / 8 + 4096, i;
	char *packed = malloc(cap);
	ZSTD_DCtx *zstd = ZSTD_createDCtx();

	while (packed && zstd && (i = atomic_fetch_add(&b->next, 1)) < b->count * b->parts) {
		uint64_t off = b->part_off ? b->part_off[i] : 0;
		uint64_t size = b->part_size ? b->part_size[i] : cap;
		int fd = open(b->paths[i / b->parts], O_RDONLY | O_CLOEXEC);
		ssize_t got = fd < 0 ? -1 : pread(fd, packed, size < cap ? size : cap, (off_t)off);
		if (fd >= 0)
			close(fd);
		if (got < 0 || ZSTD_decompressDCtx(zstd, b->dst + i * b->chunk_size, b->chunk_size,
		                                   packed, (size_t)got) != b->chunk_size)
			atomic_store(&b->bad, true);
	}
	if (!packed || !zstd)
		atomic_store(&b->bad, true);
	free(packed);
	ZSTD_freeDCtx(zstd);
	return NULL;
}

/*
 * Reads and decodes Zstd chunks into consecutive places of 'dst': the least that a reader of these
 * files does.  'part_off' and 'part_size' are those of the chunks in shards, or NULL.
 */
int calls_bare_zstd(const char *const *paths, size_t count, size_t parts, const uint64_t *part_off,
                    const uint64_t *part_size, size_t chunk_size, char *dst, unsigned threads)
{
	bare b = {.paths = paths, .count = count, .parts = parts, .part_off = part_off,
	          .part_size = part_size, .chunk_size = chunk_size, .dst = dst};
	pthread_t workers[64];
	unsigned started = 0;

	while (started + 1 < threads && started < 64 &&
	       !pthread_create(&workers[started], NULL, bare_worker, &b))
		started++;
	bare_worker(&b);
	for (unsigned i = 0; i < started; i++)
		pthread_join(workers[i], NULL);
	return b.bad ? -1 : 0;
}

/* Drops files from the page cache. */
int calls_cold(const char *const *paths, size_t count)
{
	int status = 0;

	for (size_t i = 0; i < count; i++) {
		int fd = open(paths[i], O_RDONLY | O_CLOEXEC);
		if (fd < 0 || fdatasync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
			status = -1;
		if (fd >= 0)
			close(fd);
	}
	return status;
}
