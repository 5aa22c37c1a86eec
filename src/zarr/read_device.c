/*
 * read_device.c: gives leaves that are in pinned memory to a device: one batch a wave.
 *
 * Missing chunks are a batch of their own, of one small chunk of LZ4 that decodes to fill values:
 * few bytes go over the link, and the device fills its own memory.
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

/* An item of a wave, and the leaf that it is of. */
typedef struct unit {
	lade__leaf *leaf;
	const lade__spot *spot;
	lade__spot own;
	lade_segment src;
	lade_layout *layouts;       /* one for each part of an element */
	lade_item_output *outputs;
} unit;

static lade_batch_options options_of(const lade__zread *r, lade_error *errors)
{
	lade_batch_options o;
	lade_batch_options_init(&o);
	o.threads = r->options.threads;
	o.flags = r->job.flags;
	o.item_errors = errors;
	o.stream = r->options.stream;
	o.where = r->options.where;
	o.device = r->options.device;
	o.cancel = r->options.cancel;
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

/* An item that fills a leaf's place. */
static lade_status fill_item(lade__zread *r, unit *u, lade_item *item, lade_error *err)
{
	size_t size = r->selected.result.elem_size;
	for (size_t j = 0; j < r->selected.ndim; j++)
		size *= u->spot->fit.shape[j];
	lade_status status = LADE_OK;
	pthread_mutex_lock(&r->mutex);
	lade__blank *blank = r->blanks;
	while (blank && blank->decoded != size)
		blank = blank->next;
	if (!blank) {
		status = make_blank(r, size, err);
		blank = r->blanks;
	}
	pthread_mutex_unlock(&r->mutex);
	if (status != LADE_OK)
		return status;
	u->layouts[0] = u->spot->fit.layout;
	u->layouts[0].elem_size = r->selected.result.elem_size;
	u->src = (lade_segment){.data = blank->bytes, .size = blank->size, .decoded_size = size};
	*item = (lade_item){.spec = blank->spec, .src = &u->src, .src_count = 1,
	                    .dst = u->spot->span, .layout = &u->layouts[0]};
	return LADE_OK;
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
		u->leaf = leaf;
		u->layouts = layouts + n * parts;
		u->outputs = outputs + n * parts;
		u->spot = leaf->spot ? leaf->spot : &u->own;
		if (leaf->status == LADE_OK && !leaf->spot)
			leaf->status = lade__spot_make(r, leaf, &u->own, &leaf->error);
		if (leaf->status == LADE_OK && leaf->missing)
			leaf->status = fill_item(r, u, &items[n], &leaf->error);
		else if (leaf->status == LADE_OK)
			leaf->status = decode_item(r, u, &items[n], &leaf->error);
		if (leaf->status == LADE_OK && leaf->staged && !leaf->missing)
			u->src.place = from;
		if (leaf->status == LADE_OK)
			n++;
		else
			lade__leaf_failed(r, leaf);
	}
	lade_batch_options options = options_of(r, errors);
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
