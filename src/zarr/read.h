/*
 * read.h: a read while it runs: its leaves, their bytes, and where they go.
 *
 *     selected --(walk.c)--> leaves --(read_bytes.c)--> encoded --(read_chunk.c)--> the target
 *
 * A leaf is a chunk that has no chunks in it.  Threads take leaves in turn from a feed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ZARR_READ_INTERNAL_H
#define LADE_ZARR_READ_INTERNAL_H

#include "base/cancel.h"
#include "batch/host/item.h"
#include "zarr/select.h"

/* The most numbers that have byte orders of their own in an element: fields of structs. */
#define LADE__PARTS_MAX 64

/* A chain of the leaves, ready to run; the last step first. */
typedef struct lade__coding {
	size_t count;             /* steps; a chain without any has the spec "copy" */
	const lade_zarr_step *step;
	const lade_spec *spec[LADE__LEVELS_MAX];
	lade__route route[LADE__LEVELS_MAX]; /* on the host */
	size_t bound[LADE__LEVELS_MAX]; /* bytes that a step's result has, or may have */
} lade__coding;

struct lade_zarr_plan {
	lade_zarr *node;
	const lade_zarr_array *array;
	lade__selected selected;
	lade__levels levels;
	lade_zarr_read_options options;
	lade_engine *engine, *given_engine;
	lade__job_options job;
	lade_zarr_target target;
	ptrdiff_t strides[LADE_DIMS_MAX]; /* by axis of the result */
	size_t part_count;
	lade__piece_of parts[LADE__PARTS_MAX];
	lade_spec *copy;   /* the spec "copy" */
	uint8_t *fill;     /* the fill value as it is in the result, elem_size bytes */
	bool fill_same;    /* all its bytes are equal */
	bool local;        /* small reads are cheap, and the target is on the host */
	size_t chunk_max;  /* bytes of the largest decoded leaf */
	lade__coding coding;
	size_t encoded_cap; /* bytes that an encoded leaf may have at first */
	/* While it runs. */
	lade__stop stop;
	pthread_mutex_t mutex; /* guards what follows */
	lade_status status;
	lade_error error;
	lade_zarr_report report;
};
typedef struct lade_zarr_plan lade__zread;

/* A chunk that holds no chunks. */
typedef struct lade__leaf {
	lade__cut cut[LADE_DIMS_MAX];
	uint64_t chunk[LADE_DIMS_MAX]; /* of the grid */
	char key[LADE_KEY_MAX + 1];
	/* Its bytes: all of the object's, or a range of a shard. */
	bool missing, ranged;
	uint64_t off, size;
	const lade_object_version *want;
	/* The result of reading. */
	const uint8_t *data;
	size_t data_size;
	lade_status status;
	lade_error error;
} lade__leaf;

/* Where a leaf goes. */
typedef struct lade__spot {
	lade__fit fit;
	lade_span span;
	bool direct; /* contiguous, as a whole, from fit.layout.offset on */
	size_t size; /* bytes that it gives to the result */
} lade__spot;

/* read_place.c: the box and the span of a leaf.  Fails: as the callback; LADE_E_RANGE */
lade_status lade__spot_make(lade__zread *r, const lade__leaf *leaf, lade__spot *spot,
                            lade_error *err);

/* Whether elements of a shape are inside a span.  Of 'shape' it takes ndim, shape and elem_size.
 * Fails: LADE_E_RANGE; LADE_E_ARG: a stride of 0 */
lade_status lade__place_fits(const lade_zarr_shape *shape, const ptrdiff_t *strides, lade_span span,
                             size_t offset, lade_error *err);

/* Fills a leaf's place in host memory with the fill value. */
void lade__spot_fill(const lade__zread *r, const lade__spot *spot);

/* read_chunk.c: decodes leaf->data into its place, or fills that. */
lade_status lade__leaf_decode(lade__zread *r, lade__leaf *leaf, lade_worker *worker,
                              lade_error *err);

/* Makes the specs and routes of a chain.  Fails: LADE_E_UNSUPPORTED, and as the router */
lade_status lade__coding_make(const lade__zread *r, const lade_zarr_chain *chain, size_t size,
                              lade__coding *out, lade_error *err);

/* The bytes of a chunk; SIZE_MAX: too many. */
size_t lade__cut_bytes(const lade__zread *r, const lade__cut *cut);

/* A failure of a leaf, which the call returns: the first one that is noted. */
void lade__zread_fail(lade__zread *r, const lade__leaf *leaf, lade_status status,
                      const lade_error *err);

#endif
