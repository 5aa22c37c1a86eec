/*
 * read_device.c: gives leaves that are in pinned memory to a device: one batch a wave.
 *
 * Missing chunks are small chunks of LZ4 that decode to fill values: few bytes go over the link,
 * and the device fills its own memory.  Large ones are filled piece by piece.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "zarr/elements.h"
#include "zarr/read.h"

#include <stdlib.h>
#include <string.h>

/* Encoded fill values, 'decoded' bytes of them. */
typedef struct lade__blank {
	struct lade__blank *next;
	lade_spec *spec;
	size_t decoded, size;
	uint8_t bytes[];
} lade__blank;

/* A piece of a leaf's place: 'shape' elements from 'first' on, along each stored axis of a box. */
typedef struct piece {
	size_t first[LADE_DIMS_MAX], shape[LADE_DIMS_MAX];
	lade_layout layout;
	lade_segment src;
} piece;

/* An item of a wave, and the leaf that it is of. */
typedef struct unit {
	lade__leaf *leaf;
	const lade__spot *spot;
	lade__spot own;
	lade_segment src;
	lade_layout *layouts;       /* one for each part of an element */
	lade_item_output *outputs;
	piece piece;                /* of a missing leaf */
} unit;

lade_batch_options lade__zread_batch(const lade__zread *r, lade_error *errors)
{
	lade_batch_options o;
	lade_batch_options_init(&o);
	o.threads = r->options.threads;
	o.flags = r->job.flags;
	o.item_errors = errors;
	o.stream = r->options.stream;
	o.where = r->options.where;
	o.device = r->options.device;
	/* On other threads than the run's nobody is asked. */
	if (r->stop.cancel)
		o.cancel = pthread_equal(pthread_self(), r->stop.caller)
		                   ? r->stop.cancel
		                   : (lade_cancel *)(uintptr_t)&r->quiet;
	return o;
}

/* What became of a batch. */
static void finish(lade__zread *r, const unit *units, size_t count, const lade_result *results,
                   const lade_error *errors)
{
	for (size_t i = 0; i < count; i++) {
		if (results[i].status != LADE_OK)
			lade__zread_fail(r, units[i].leaf, results[i].status, &errors[i]);
		else
			lade__zread_note(r, units[i].leaf, units[i].spot, false);
	}
}

/* An item that decodes a leaf. */
static lade_status decode_item(lade__zread *r, unit *u, lade_item *item, lade_error *err)
{
	lade__leaf *leaf = u->leaf;
	lade_status status = lade__leaf_segment(r, leaf, &u->src, err);
	if (status != LADE_OK)
		return status;
	*item = (lade_item){.spec = r->coding.spec[0], .src = &u->src, .src_count = 1};
	lade__spot_outputs(r, u->spot, u->layouts, u->outputs, item);
	return LADE_OK;
}

void lade__blanks_free(lade__zread *r)
{
	for (lade__blank *blank = r->blanks, *next; blank; blank = next) {
		next = blank->next;
		lade_spec_unref(blank->spec);
		free(blank);
	}
	r->blanks = NULL;
}

/* Encodes 'size' bytes of fill values. */
static lade_status make_blank(lade__zread *r, size_t size, lade_error *err)
{
	lade_spec *spec = NULL;
	size_t elem = r->selected.result.elem_size, cap = 0;
	lade_status status = lade_spec_parse(NULL, "lz4", &spec, err);
	if (status != LADE_OK)
		return status;
	cap = lade_spec_bound(spec, size);
	uint8_t *plain = malloc(size + 1);
	lade__blank *blank = malloc(sizeof *blank + cap);
	if (!plain || !blank)
		TRY(lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu fill bytes",
		              size));
	lade__repeat(plain, size, r->fill, elem);
	TRY(lade_encode(r->engine, spec, lade_host_cspan(plain, size),
	                lade_host_span(blank->bytes, cap), &cap, err));
	*blank = (lade__blank){.next = r->blanks, .spec = spec, .decoded = size, .size = cap};
	r->blanks = blank;
	blank = NULL;
	spec = NULL;
out:
	free(plain);
	free(blank);
	lade_spec_unref(spec);
	return status;
}

/* The blank of some bytes, which is made if there is none. */
static lade_status take_blank(lade__zread *r, size_t size, const lade__blank **out, lade_error *err)
{
	lade_status status = LADE_OK;
	pthread_mutex_lock(&r->mutex);
	*out = r->blanks;
	while (*out && (*out)->decoded != size)
		*out = (*out)->next;
	if (!*out) {
		status = make_blank(r, size, err);
		*out = r->blanks;
	}
	pthread_mutex_unlock(&r->mutex);
	return status;
}

/* An item that fills a piece. */
static lade_status fill_item(lade__zread *r, const lade__spot *spot, piece *p, lade_item *item,
                             lade_error *err)
{
	const lade__blank *blank;
	size_t size = r->selected.result.elem_size;
	for (size_t j = 0; j < r->selected.ndim; j++)
		size *= p->shape[j];
	lade_status status = take_blank(r, size, &blank, err);
	if (status != LADE_OK)
		return status;
	p->layout = spot->fit.layout;
	p->layout.elem_size = r->selected.result.elem_size;
	p->layout.shape = p->shape;
	p->layout.start = p->layout.step = p->layout.count = NULL;
	for (size_t a = 0; a < r->selected.ndim; a++) /* modulo 2^64 */
		p->layout.offset += p->first[spot->fit.order[a]] * (size_t)spot->fit.strides[a];
	p->src = (lade_segment){.data = blank->bytes, .size = blank->size, .decoded_size = size};
	*item = (lade_item){.spec = blank->spec, .src = &p->src, .src_count = 1,
	                    .dst = spot->span, .layout = &p->layout};
	return LADE_OK;
}

/* The most bytes of a piece, and how many of them are one batch. */
#define PIECE_MOST ((size_t)1 << 20)
#define PIECES 64

/* Halves a box along its first axes until it is a piece.  False: it was one */
static bool cut_box(const lade__zread *r, const lade__spot *spot, size_t *shape)
{
	size_t size = r->selected.result.elem_size;
	bool cut = false;
	for (size_t j = 0; j < r->selected.ndim; j++)
		size *= shape[j] = spot->fit.count[j];
	for (size_t j = 0; j < r->selected.ndim; j++)
		while (size > PIECE_MOST && shape[j] > 1) {
			size = size / shape[j] * ((shape[j] + 1) / 2);
			shape[j] = (shape[j] + 1) / 2;
			cut = true;
		}
	return cut;
}

/* Fills a large place, in pieces of 'most' elements along each axis. */
static lade_status fill_pieces(lade__zread *r, const lade__spot *spot, const size_t *most,
                               lade_error *err)
{
	const size_t *count = spot->fit.count, ndim = r->selected.ndim;
	const lade_batch_options options = lade__zread_batch(r, NULL);
	size_t at[LADE_DIMS_MAX] = {0}, n = 0, j = ndim;
	lade_item items[PIECES];
	piece *pieces = malloc(PIECES * sizeof *pieces);
	lade_status status = LADE_OK;
	if (!pieces)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %d pieces",
		                 PIECES);
	do {
		piece *p = &pieces[n];
		for (j = 0; j < ndim; j++) {
			p->first[j] = at[j];
			p->shape[j] = count[j] - at[j] < most[j] ? count[j] - at[j] : most[j];
		}
		TRY(fill_item(r, spot, p, &items[n++], err));
		for (j = ndim; j > 0; at[--j] = 0)
			if ((at[j - 1] += most[j - 1]) < count[j - 1])
				break;
		if (n == PIECES || j == 0) {
			TRY(lade_decode_into(r->engine, NULL, items, n, NULL, &options, err));
			n = 0;
		}
	} while (j > 0);
out:
	free(pieces);
	return status;
}

/* Fills a missing leaf's place: by 'item'; or at once if that is large, '*filled'. */
static lade_status fill(lade__zread *r, unit *u, lade_item *item, bool *filled, lade_error *err)
{
	memset(u->piece.first, 0, sizeof u->piece.first);
	*filled = cut_box(r, u->spot, u->piece.shape);
	if (!*filled)
		return fill_item(r, u->spot, &u->piece, item, err);
	lade_status status = fill_pieces(r, u->spot, u->piece.shape, err);
	if (status == LADE_OK)
		lade__zread_note(r, u->leaf, u->spot, false);
	return status;
}

lade_status lade__leaves_to_device(lade__zread *r, lade__leaf *leaves, size_t count,
                                   lade_place from, lade_error *err)
{
	unit *units = malloc(count * sizeof *units);
	lade_item *items = malloc(count * sizeof *items);
	lade_result *results = calloc(count, sizeof *results);
	lade_error *errors = malloc(count * sizeof *errors);
	size_t n = 0, parts = r->part_count;
	lade_layout *layouts = malloc(count * parts * sizeof *layouts);
	lade_item_output *outputs = malloc(count * parts * sizeof *outputs);
	lade_status status = LADE_OK;
	if (!units || !items || !results || !errors || !layouts || !outputs)
		TRY(lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu items", count));
	for (size_t i = 0; i < count; i++) {
		lade__leaf *leaf = &leaves[i];
		unit *u = &units[n];
		bool filled = false;
		u->leaf = leaf;
		u->layouts = layouts + n * parts;
		u->outputs = outputs + n * parts;
		u->spot = leaf->spot ? leaf->spot : &u->own;
		if (leaf->status == LADE_OK && !leaf->spot)
			leaf->status = lade__spot_make(r, leaf, &u->own, &leaf->error);
		if (leaf->status == LADE_OK && leaf->missing)
			leaf->status = fill(r, u, &items[n], &filled, &leaf->error);
		else if (leaf->status == LADE_OK)
			leaf->status = decode_item(r, u, &items[n], &leaf->error);
		if (leaf->status == LADE_OK && leaf->staged && !leaf->missing)
			u->src.place = from;
		if (leaf->status != LADE_OK)
			lade__leaf_failed(r, leaf);
		else if (!filled)
			n++;
	}
	lade_batch_options options = lade__zread_batch(r, errors);
	if (n)
		lade_decode_into(r->engine, NULL, items, n, results, &options, err);
	finish(r, units, n, results, errors);
out:
	free(layouts);
	free(outputs);
	free(units);
	free(items);
	free(results);
	free(errors);
	return status;
}
