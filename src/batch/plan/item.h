/*
 * item.h: what an item is: whether it may be run, how large it is, where it is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BATCH_PLAN_ITEM_H
#define LADE_BATCH_PLAN_ITEM_H

#include "gpu/work.h"

#include <lade/batch.h>

static inline size_t lade__output_count(const lade_item *item)
{
	return item->output_count ? item->output_count : 1;
}

static inline lade_item_output lade__output_at(const lade_item *item, size_t index)
{
	return item->output_count ? item->outputs[index]
	                          : (lade_item_output){item->dst, item->layout};
}

/* Whether an item has more than one plain destination. */
static inline bool lade__item_is_placed(const lade_item *item)
{
	return item->layout || item->output_count;
}

/*
 * The bytes of an item's decoded side, for planning: what its layout's shape has, else its
 * destination's or its source's.
 */
size_t lade__item_bytes(const lade_item *item, lade_direction direction);

/* The largest item as implementations are asked about it: kernels themselves report those that are
 * too large. */
static inline size_t lade__gpu_largest(uint64_t largest)
{
	return largest < LADE_CHUNK_MAX ? (size_t)largest : LADE_CHUNK_MAX;
}

/* Whether an item may be run: pointers, places, what goes together. */
lade_status lade__item_check(const lade_item *item, lade_direction direction, lade_error *err);

/* Of one segment, without layout, range or tail. */
static inline bool lade__item_is_segment(const lade_item *item)
{
	return item->src_count == 1 && !lade__item_is_placed(item) && !item->tail &&
	       !item->range_off && !item->range_size;
}

/* Whether an item equals the one before it, which is plain and checked, in all that decides where
 * it runs: most do. */
static inline bool lade__item_same_key(const lade_item *item, const lade_item *before)
{
	const lade_segment *s = item->src;
	return item->spec == before->spec && lade__item_is_segment(item) && s && s->data &&
	       item->dst.data && s->place.kind == before->src->place.kind &&
	       s->place.device == before->src->place.device &&
	       item->dst.place.kind == before->dst.place.kind &&
	       item->dst.place.device == before->dst.place.device && s->size <= LADE_CHUNK_MAX &&
	       s->decoded_size <= LADE_CHUNK_MAX && item->dst.size <= LADE_CHUNK_MAX;
}

/* ---- where an item is ------------------------------------------------------------------------ */

/* The memory of one side; that of LADE_MANAGED counts as the device's. */
typedef enum lade__side { LADE__SIDE_HOST, LADE__SIDE_PINNED, LADE__SIDE_DEVICE } lade__side;

static inline lade__side lade__side_of(lade_place place)
{
	return place.kind == LADE_HOST     ? LADE__SIDE_HOST
	       : place.kind == LADE_PINNED ? LADE__SIDE_PINNED
	                                   : LADE__SIDE_DEVICE;
}

/* What the planner asks about a checked item. */
typedef struct lade__item_facts {
	int32_t device; /* the one that has a side of it, the result's first */
	lade__side in, out;
	/* Bytes of the source (when encoding: as many as a layout gathers), of the decoded side,
	 * and of the larger one, which a segment's decoded_size may state. */
	uint64_t source, decoded, largest;
} lade__item_facts;

/* 'otherwise' is the device of an item that has no side on one. */
void lade__item_measure(const lade_item *item, lade_direction direction, int32_t otherwise,
                        lade__item_facts *f);

#endif
