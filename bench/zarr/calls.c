/*
 * calls.c: the C calls that bench_zarr.py times beside zarrs and tensorstore: reads and
 * writes of liblade, and bare loops over the same chunk files, without anything of Zarr.  Further,
 * memory of devices for those who read into host memory and copy.
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
#include <stdbool.h>
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

/* ---- devices ---------------------------------------------------------------------------- */

/* Memory of a kind (of device 0), never freed; NULL: failed. */
void *calls_alloc(int kind, size_t size)
{
	lade_place place = {(lade_kind)kind, 0};
	const lade_allocator *a = lade_allocator_default(place.kind);

	return a->alloc(a->ctx, size, 4096, place, NULL);
}

int calls_read_device(const lade_zarr *array, void *dst, size_t size, unsigned threads)
{
	lade_zarr_target target = {.struct_size = sizeof(target),
	                           .span = {dst, size, {LADE_DEVICE, 0}}};
	lade_zarr_read_options options = {.struct_size = sizeof(options), .threads = threads};
	lade_error err;

	if (lade_zarr_read(array, NULL, &target, &options, NULL, &err))
		return failed("lade_zarr_read", &err);
	return 0;
}

/* Copies from 'kind' to 'to_kind'. */
int calls_copy(const void *src, int kind, void *dst, int to_kind, size_t size)
{
	lade_error err;

	if (lade_copy(NULL, (lade_cspan){src, size, {(lade_kind)kind, 0}},
	              (lade_span){dst, size, {(lade_kind)to_kind, 0}}, NULL, &err))
		return failed("lade_copy", &err);
	return 0;
}

/* ---- bare loops ------------------------------------------------------------------------- */

const char *calls_zstd_version(void)
{
	return ZSTD_versionString();
}

/* Chunks of Zstd in files: chunk i has bytes [off[i], off[i] + size[i]) of file path[i]. */
typedef struct bare {
	const char *const *path;
	const uint64_t *off, *size;
	size_t chunk_size;
	/* Group g is chunks list[first[g]] to list[first[g + 1]]: all threads do one group before
	 * the next begins.  Chunks go to consecutive places of 'dst'; NULL: to a place of the
	 * thread's own. */
	const size_t *list, *first;
	size_t group_count;
	char *dst;
	atomic_size_t *next; /* of each group */
	pthread_barrier_t barrier;
	atomic_bool bad;
} bare;

static bool bare_chunk(const bare *b, size_t i, ZSTD_DCtx *zstd, char *packed, size_t cap,
                       char *plain)
{
	int fd = open(b->path[i], O_RDONLY | O_CLOEXEC);
	ssize_t got = -1;

	if (fd >= 0) {
		got = b->size[i] > cap ? -1 : pread(fd, packed, b->size[i], (off_t)b->off[i]);
		close(fd);
	}
	return got == (ssize_t)b->size[i] &&
	       ZSTD_decompressDCtx(zstd, plain, b->chunk_size, packed, (size_t)got) ==
		       b->chunk_size;
}

static void *bare_worker(void *ctx)
{
	bare *b = ctx;
	size_t cap = b->chunk_size + b->chunk_size / 8 + 4096, at;
	char *packed = malloc(cap), *own = malloc(b->chunk_size);
	ZSTD_DCtx *zstd = ZSTD_createDCtx();
	bool ready = packed && own && zstd;

	for (size_t g = 0; g < b->group_count; g++) {
		while ((at = b->first[g] + atomic_fetch_add(&b->next[g], 1)) < b->first[g + 1])
			if (!ready || !bare_chunk(b, b->list[at], zstd, packed, cap,
			                          b->dst ? b->dst + b->list[at] * b->chunk_size
			                                 : own))
				atomic_store(&b->bad, true);
		if (b->group_count > 1)
			pthread_barrier_wait(&b->barrier);
	}
	free(packed);
	free(own);
	ZSTD_freeDCtx(zstd);
	return NULL;
}

/*
 * Reads and decodes groups of Zstd chunks, one group after the other: the least that a reader of
 * these chunks does.
 */
int calls_bare_zstd(const char *const *path, const uint64_t *off, const uint64_t *size,
                    size_t chunk_size, const size_t *list, const size_t *first,
                    size_t group_count, char *dst, unsigned threads)
{
	bare b = {.path = path, .off = off, .size = size, .chunk_size = chunk_size, .list = list,
	          .first = first, .group_count = group_count, .dst = dst};
	pthread_t workers[64];

	b.next = calloc(group_count, sizeof *b.next);
	if (!b.next || threads < 1 || threads > 64 ||
	    pthread_barrier_init(&b.barrier, NULL, threads))
		return -1;
	for (unsigned i = 1; i < threads; i++)
		if (pthread_create(&workers[i], NULL, bare_worker, &b))
			abort();
	bare_worker(&b);
	for (unsigned i = 1; i < threads; i++)
		pthread_join(workers[i], NULL);
	pthread_barrier_destroy(&b.barrier);
	free(b.next);
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
