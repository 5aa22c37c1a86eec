/*
 * owner.c: lade_array: counted owners of memory, and the order in which it is given back.
 *
 * A caller's stream may end while its work still runs, and then its handle must not be used, not
 * even to free memory.  So no handle is kept.  An array has marks instead: places in streams that
 * must be passed before the block is given back.  Device memory goes back on a stream of the
 * library's own that follows them.
 *
 *     caller's stream:   alloc  work  mark -----.
 *     library's stream:                         follow  free
 *
 * The default stream, NULL, cannot end: where nothing else uses a block it needs no mark.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/device.h"

#include "base/options.h"
#include "base/try.h"

#include <lade/array.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Enough for every vector instruction. */
#define ALIGN_DEFAULT 64
/* Of a block those that have been passed are dropped when a table is full. */
#define MARKS_FIRST 4
/* A block's end below a page or an eighth is not worth a realloc(). */
#define SHRINK_LEAST 4096
#define SHRINK_SHARE 8

struct lade_array {
	atomic_size_t refs;
	lade_array *whole; /* of a slice; NULL: the block is this array's, and so is what follows */
	lade_span span;

	bool foreign;
	lade_allocator allocator;
	size_t block_size, align;
	void (*gone)(void *ctx);
	void *gone_ctx;
	pthread_mutex_t mutex; /* guards what follows */
	bool on_default;       /* device memory: the default stream may use it, without a mark */
	lade_mark **marks;
	size_t mark_count, mark_cap;
};

static lade_array *whole_of(lade_array *array)
{
	return array->whole ? array->whole : array;
}

/* ---- marks ------------------------------------------------------------------------------ */

/* Drops those that have been passed; the lock is held. */
static void sweep(lade_array *whole)
{
	size_t left = 0;

	for (size_t i = 0; i < whole->mark_count; i++) {
		if (lade_mark_passed(whole->marks[i]))
			lade_mark_free(whole->marks[i]);
		else
			whole->marks[left++] = whole->marks[i];
	}
	whole->mark_count = left;
}

/* Adds a mark, which is the array's from now on.  Without room it is waited for. */
static lade_status add_mark(lade_array *whole, lade_mark *mark, lade_error *err)
{
	lade_status status = LADE_OK;

	pthread_mutex_lock(&whole->mutex);
	if (whole->mark_count == whole->mark_cap)
		sweep(whole);
	if (whole->mark_count == whole->mark_cap) {
		size_t cap = whole->mark_cap ? whole->mark_cap * 2 : MARKS_FIRST;
		lade_mark **larger = realloc(whole->marks, cap * sizeof *larger);
		if (larger) {
			whole->marks = larger;
			whole->mark_cap = cap;
		}
	}
	if (whole->mark_count < whole->mark_cap)
		whole->marks[whole->mark_count++] = mark;
	else
		status = lade_mark_wait(mark, err);
	if (!whole->mark_count || whole->marks[whole->mark_count - 1] != mark)
		lade_mark_free(mark);
	pthread_mutex_unlock(&whole->mutex);
	return status;
}

static bool is_device(const lade_array *array)
{
	return array->span.place.kind == LADE_DEVICE;
}

lade_status lade_array_used(lade_array *array, int32_t device, lade_stream stream, lade_error *err)
{
	lade_array *whole;
	lade_mark *mark;

	if (!array)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "array is NULL");
	whole = whole_of(array);
	if (!stream && is_device(whole) && device == whole->span.place.device && !whole->foreign) {
		pthread_mutex_lock(&whole->mutex);
		whole->on_default = true;
		pthread_mutex_unlock(&whole->mutex);
		return LADE_OK;
	}
	lade_status status = lade_mark_new(device, stream, &mark, err);
	if (status == LADE_OK)
		return add_mark(whole, mark, err);
	return status == LADE_E_NOMEM ? lade_stream_wait(device, stream, err) : status;
}

lade_status lade_array_used_until(lade_array *array, lade_mark *mark, lade_error *err)
{
	if (!array || !mark)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 array ? "mark" : "array");
	return add_mark(whole_of(array), lade__mark_ref(mark), err);
}

lade_status lade_array_follow(lade_array *array, int32_t device, lade_stream stream,
                              lade_error *err)
{
	lade_mark *mark = NULL;
	lade_array *whole;
	lade_status status = LADE_OK;

	if (!array)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "array is NULL");
	whole = whole_of(array);
	pthread_mutex_lock(&whole->mutex);
	if (whole->on_default && (stream || device != whole->span.place.device)) {
		TRY(lade_mark_new(whole->span.place.device, NULL, &mark, err));
		TRY(lade__mark_follow(mark, device, stream, err));
	}
	for (size_t i = 0; i < whole->mark_count; i++)
		TRY(lade__mark_follow(whole->marks[i], device, stream, err));
out:
	pthread_mutex_unlock(&whole->mutex);
	lade_mark_free(mark);
	return status;
}

lade_status lade_array_wait(lade_array *array, lade_error *err)
{
	lade_mark **marks = NULL;
	lade_array *whole;
	size_t count;
	bool on_default;
	lade_status status = LADE_OK, one;

	if (!array)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "array is NULL");
	/* Others may add marks meanwhile, which are not waited for. */
	whole = whole_of(array);
	pthread_mutex_lock(&whole->mutex);
	count = whole->mark_count;
	on_default = whole->on_default;
	marks = count ? malloc(count * sizeof *marks) : NULL;
	for (size_t i = 0; i < count && marks; i++)
		marks[i] = lade__mark_ref(whole->marks[i]);
	pthread_mutex_unlock(&whole->mutex);
	if (count && !marks)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu marks",
		                 count);
	if (on_default)
		status = lade_stream_wait(whole->span.place.device, NULL, err);
	for (size_t i = 0; i < count; i++) {
		one = lade_mark_wait(marks[i], status == LADE_OK ? err : NULL);
		status = status == LADE_OK ? one : status;
		lade_mark_free(marks[i]);
	}
	free(marks);
	return status;
}

/* ---- life ------------------------------------------------------------------------------- */

static lade_status read_options(const lade_array_options *given, lade_array_options *options,
                                lade_error *err)
{
	lade_status status =
		lade__options_read(options, sizeof *options, given, "array options", err);
	if (status != LADE_OK)
		return status;
	if (!options->align)
		options->align = ALIGN_DEFAULT;
	if (options->align & (options->align - 1))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "array options: align %zu is not a power of two", options->align);
	return LADE_OK;
}

static lade_status make(const lade_array_options *given, lade_array_options *options,
                        lade_place place, lade_array **out, lade_error *err)
{
	if (!out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "out is NULL");
	*out = NULL;
	lade_status status = read_options(given, options, err);
	if (status == LADE_OK && (unsigned)place.kind >= LADE_KIND_COUNT)
		status = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "memory of kind %d is unknown",
		                   (int)place.kind);
	if (status != LADE_OK)
		return status;
	lade_array *array = calloc(1, sizeof *array);
	if (!array)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for an array");
	atomic_init(&array->refs, 1);
	array->span.place = place;
	array->gone = options->gone;
	array->gone_ctx = options->gone_ctx;
	pthread_mutex_init(&array->mutex, NULL);
	*out = array;
	return LADE_OK;
}

/* The block of a new array, which the options' stream may use. */
static lade_status take_block(lade_array *array, size_t size, const lade_array_options *options,
                              lade_error *err)
{
	lade_place place = array->span.place;
	lade_stream stream = place.kind == LADE_DEVICE ? options->stream : NULL;
	int32_t count;

	array->allocator = options->allocator ? *options->allocator
	                                      : *lade_allocator_default(place.kind);
	array->align = options->align;
	if (!size)
		return LADE_OK;
	array->span.data = array->allocator.alloc(array->allocator.ctx, size, array->align, place,
	                                          stream);
	if (!array->span.data) {
		lade_status status = LADE_OK;
		if (place.kind != LADE_HOST && !options->allocator)
			status = lade_device_count(&count, err);
		return status != LADE_OK
		               ? status
		               : lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                           "%zu bytes of %s memory could not be allocated", size,
		                           lade_kind_name(place.kind));
	}
	array->span.size = array->block_size = size;
	return place.kind == LADE_DEVICE ? lade_array_used(array, place.device, stream, err)
	                                 : LADE_OK;
}

lade_status lade_array_new(size_t size, lade_place place, const lade_array_options *given,
                           lade_array **out, lade_error *err)
{
	lade_array_options options;
	lade_status status = make(given, &options, place, out, err);

	if (status != LADE_OK)
		return status;
	status = take_block(*out, size, &options, err);
	if (status != LADE_OK) {
		lade_array *array = *out;
		array->gone = NULL;
		/* Its stream has no mark of it, but is alive still. */
		if (array->block_size)
			array->allocator.free(array->allocator.ctx, array->span.data, size,
			                      array->align, place, options.stream);
		array->block_size = 0;
		lade_array_unref(array);
		*out = NULL;
	}
	return status;
}

lade_status lade_array_wrap(lade_span span, const lade_array_options *given, lade_array **out,
                            lade_error *err)
{
	lade_array_options options;
	lade_status status = make(given, &options, span.place, out, err);

	if (status != LADE_OK)
		return status;
	if (!span.data && span.size) {
		(*out)->gone = NULL;
		lade_array_unref(*out);
		*out = NULL;
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "the span is NULL and has %zu bytes", span.size);
	}
	(*out)->span = span;
	(*out)->foreign = true;
	return LADE_OK;
}

lade_status lade_array_slice(lade_array *array, size_t off, size_t size, lade_array **out,
                             lade_error *err)
{
	lade_array_options options;

	if (!array || !out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 array ? "out" : "array");
	*out = NULL;
	if (off > array->span.size || size > array->span.size - off)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "a slice of %zu bytes from %zu on, the array has %zu", size, off,
		                 array->span.size);
	lade_status status = make(NULL, &options, array->span.place, out, err);
	if (status != LADE_OK)
		return status;
	(*out)->whole = lade_array_ref(whole_of(array));
	(*out)->span.data = array->span.data ? (char *)array->span.data + off : NULL;
	(*out)->span.size = size;
	return LADE_OK;
}

lade_array *lade_array_ref(lade_array *array)
{
	if (array)
		atomic_fetch_add_explicit(&array->refs, 1, memory_order_relaxed);
	return array;
}

/* Lets a stream of the library's own follow all that uses the block; NULL: it has been waited
 * for, or nothing but the default stream uses it. */
static lade_stream order_behind(lade_array *array)
{
	lade_place place = array->span.place;
	lade_stream stream = NULL;
	lade_mark *mark = NULL;
	bool ordered = false;

	if (!array->mark_count)
		return NULL;
	if (lade__device_order(place.device, &stream, NULL) == LADE_OK)
		ordered = !array->on_default ||
		          (lade_mark_new(place.device, NULL, &mark, NULL) == LADE_OK &&
		           lade_stream_follow(mark, stream, NULL) == LADE_OK);
	for (size_t i = 0; ordered && i < array->mark_count; i++)
		ordered = lade__mark_follow(array->marks[i], place.device, stream, NULL) == LADE_OK;
	lade_mark_free(mark);
	if (ordered)
		return stream;
	for (size_t i = 0; i < array->mark_count; i++)
		lade_mark_wait(array->marks[i], NULL);
	return NULL;
}

void lade_array_unref(lade_array *array)
{
	lade_array *whole;

	if (!array || atomic_fetch_sub_explicit(&array->refs, 1, memory_order_acq_rel) != 1)
		return;
	whole = array->whole;
	if (array->block_size && is_device(array)) {
		lade_stream stream = order_behind(array);
		array->allocator.free(array->allocator.ctx, array->span.data, array->block_size,
		                      array->align, array->span.place, stream);
	} else if (!whole) {
		for (size_t i = 0; i < array->mark_count; i++)
			lade_mark_wait(array->marks[i], NULL);
		if (array->block_size)
			array->allocator.free(array->allocator.ctx, array->span.data,
			                      array->block_size, array->align, array->span.place,
			                      NULL);
	}
	for (size_t i = 0; i < array->mark_count; i++)
		lade_mark_free(array->marks[i]);
	free(array->marks);
	if (array->gone)
		array->gone(array->gone_ctx);
	pthread_mutex_destroy(&array->mutex);
	free(array);
	lade_array_unref(whole);
}

/* ---- what there is ---------------------------------------------------------------------- */

lade_span lade_array_span(const lade_array *array)
{
	return array ? array->span : lade_host_span(NULL, 0);
}

lade_array *lade_array_whole(lade_array *array)
{
	return array ? whole_of(array) : NULL;
}

bool lade_array_is_sole(const lade_array *array)
{
	if (atomic_load_explicit(&array->refs, memory_order_acquire) != 1)
		return false;
	return !array->whole || lade_array_is_sole(array->whole);
}

lade_status lade_array_shrink(lade_array *array, size_t size, lade_error *err)
{
	size_t have;
	void *moved;

	if (!array || size > array->span.size)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%zu bytes, the array has %zu",
		                 size, array ? array->span.size : 0);
	array->span.size = size;
	have = array->block_size;
	/* posix_memalign()'s blocks are realloc()'s, too. */
	if (array->span.place.kind != LADE_HOST || !size || have < size + SHRINK_LEAST ||
	    have - size < have / SHRINK_SHARE ||
	    array->allocator.alloc != lade_allocator_default(LADE_HOST)->alloc ||
	    array->mark_count || !lade_array_is_sole(array))
		return LADE_OK;
	moved = realloc(array->span.data, size);
	if (!moved)
		return LADE_OK;
	array->span.data = moved;
	array->block_size = size;
	return LADE_OK;
}
