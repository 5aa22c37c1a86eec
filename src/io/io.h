/*
 * io.h: what the sources and sinks of this library share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_IO_INTERNAL_H
#define LADE_IO_INTERNAL_H

#include "base/cancel.h"
#include "base/options.h"

#include <lade/io.h>

#include <pthread.h>

/* A range that has no answer yet. */
#define LADE__PENDING ((lade_status)-1)

/* The parts of a planner's ranges: those of range i begin at first[i] and end at first[i + 1]. */
typedef struct lade__parts {
	const lade_part *parts;
	const size_t *first;
} lade__parts;

struct lade_reading {
	const lade_io_options *options;
	lade_range *ranges;
	size_t count;
	lade__parts parts;     /* 'parts' NULL: each range is its own */
	void *note;            /* of who has begun the reading, for the source */
	void *later;           /* likewise: NULL, or read() may return early (store/store.h) */
	/* NULL, or called once, by the thread that gives the last answer, if nobody waits. */
	void (*answered_all)(void *ctx);
	void *all_ctx;
	pthread_mutex_t mutex; /* guards what follows, and the ranges' statuses */
	pthread_cond_t answered;
	size_t left;
	lade__stop stop; /* not guarded */
	size_t failed; /* the first range that failed; SIZE_MAX: none */
	lade_status status;
	lade_error error;
};

/* Has the source begin to read; 'options' and the ranges stay until lade__reading_end().  Spans are
 * where the source can write them. */
void lade__reading_begin(lade_reading *reading, lade_source source, lade_range *ranges,
                         size_t count, const lade_io_options *options);

/* The same in two steps: between them the parts and the note can be set. */
void lade__reading_init(lade_reading *reading, lade_range *ranges, size_t count,
                        const lade_io_options *options);
void lade__reading_start(lade_reading *reading, lade_source source);

/* Waits for all answers; as lade_source_read(), but '*err' does not name the range. */
lade_status lade__reading_end(lade_reading *reading, lade_error *err);

/* What a source and a sink need.  Fails: LADE_E_ARG */
lade_status lade__source_check(lade_source source, lade_error *err);

/* The functions of a program that was compiled for another version: at least 'first' bytes, and no
 * more than zeros behind this version's 'own'. */
lade_status lade__ops_check(const void *ops, size_t own, size_t first, const char *name,
                            lade_error *err);

/* 0.2.0's sizes of the structs that come in arrays. */
#define LADE__RANGE_0_2 LADE__SIZE_TO(lade_range, object_size)
#define LADE__WRITE_0_2 LADE__SIZE_TO(lade_write, version)

/* Reads a call's options, NULL being zeros; the size of a request, where it is 0, becomes 0.2.0's:
 * 'first'. */
lade_status lade__io_options_read(lade_io_options *options, const lade_io_options *given,
                                  size_t first, lade_error *err);

/* Whether there is such a place; 'what' and 'index' say whose. */
lade_status lade__io_place_check(lade_place place, const void *data, size_t size, const char *what,
                                 size_t index, lade_error *err);

/* Checks a call; '*devices': some spans are on devices.  Fails: LADE_E_ARG, LADE_E_NO_DEVICE */
lade_status lade__ranges_check(lade_source source, const lade_range *ranges, size_t count,
                               bool *devices, lade_error *err);

/* All ranges of a call fail, for one reason. */
void lade__ranges_fail(lade_range *ranges, size_t count, const lade_io_options *options,
                       lade_status status, const lade_error *err);

/* Reads ranges of which some are on devices, by a source that only writes host memory. */
lade_status lade__io_read_staged(lade_source source, lade_range *ranges, size_t count,
                                 const lade_io_options *options, lade_error *err);

/* A buffer between a device and a source or sink: pinned, where that can be had. */
typedef struct lade__staging {
	const lade_allocator *from;
	lade_place place;
	void *data;
	size_t size;
} lade__staging;
bool lade__staging_alloc(lade__staging *staging, const lade_io_options *options, int32_t device,
                         size_t size);
void lade__staging_free(lade__staging *staging);

/* Enqueues a copy of from.size bytes, of which one side at least is on a device, behind the work of
 * 'stream'; lade__io_copies_wait() waits for those on the devices whose bits are set. */
lade_status lade__io_copy(lade_span to, lade_cspan from, lade_stream stream, uint64_t *devices,
                          lade_error *err);
lade_status lade__io_copies_wait(uint64_t devices, lade_stream stream, lade_error *err);

#endif
