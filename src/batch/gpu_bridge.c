/*
 * gpu_bridge.c: items that the host decodes or encodes and whose bytes lie on a device.
 *
 *     device sources --> pinned memory --> (threads) --> pinned memory --> device destinations
 *
 * Items go in waves of some megabytes; while the threads work on one, the sources of the next and
 * the results of the one before are on their way.  A slot's pinned memory: | sources | results |.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "batch/gpu.h"
#include "batch/spec.h"

#include <stdlib.h>
#include <string.h>

#define WAVE_BYTES ((size_t)16 << 20)
#define SLOTS 4 /* each with a stream of its own */
#define WAVE_ITEMS ((size_t)1 << 14)
/* Rows of a source that start closer than this come with what is between them: an entry of 64 bytes
 * for each would be too much. */
#define ROWS_APART ((size_t)256)

/* An item of a wave: with its spans replaced by those in pinned memory. */
typedef struct crossing {
	lade_item item;
	size_t in, out; /* bytes of pinned memory that it needs */
	lade_segment
		*segment; /* the replaced ones; the item's own table where none is on a device */
	lade_status status;
	size_t size;
	lade_error error;
} crossing;

typedef struct bridge {
	lade_engine *engine;
	const lade__route *route;
	lade__device *device;
	lade__gpu_lane *lane;
	const lade_item *items;
	const size_t *index;
	size_t count;
	lade__job_options job;
	unsigned threads;
	lade__outcome *outcome;
} bridge;

typedef struct wave {
	size_t first, count;
	crossing *item;
	lade_segment *segments;
	lade__gpu_copy *copies;
	size_t copy_count, copy_cap;
} wave;

static bool on_device(lade_place place)
{
	return place.kind == LADE_DEVICE;
}

/* ---- copies -------------------------------------------------------------------------------- */

/* One call of the driver for each run of bytes; where there are no kernels. */
static lade_status copies_by_driver(lade__device *device, lade_stream stream,
                                    const lade__gpu_copy *list, size_t count, lade_error *err)
{
	for (size_t i = 0; i < count; i++) {
		const lade__gpu_copy *c = &list[i];
		for (uint64_t at = 0; at < c->size;) {
			uint64_t n = c->row && c->row < c->size - at ? c->row : c->size - at;
			uint64_t to = c->row ? at / c->row * c->pitch : at;
			lade_status status = LADE__CU(device, cuMemcpyAsync, c->dst + to,
			                              c->src + at, n, stream);
			if (status != LADE_OK)
				return status;
			at += n;
		}
	}
	return LADE_OK;
}

/* Few and long runs are the driver's; else a kernel takes them all. */
static bool is_drivers(const lade__device *device, const lade__gpu_copy *list, size_t count)
{
	bool rows = false;
	for (size_t i = 0; i < count; i++)
		rows |= list[i].row && list[i].row < list[i].size;
	return !device->info.kernels || (count <= 4 && !rows);
}

lade_status lade__gpu_copies(lade_engine *engine, lade__device *device, lade_stream stream,
                             lade__gpu_copy *list, size_t count, lade_error *err)
{
	lade__gpu_copy_list copies = {.count = (uint32_t)count};
	size_t bytes = count * sizeof *list;
	uint64_t pieces = 0;
	lade_status status;
	if (is_drivers(device, list, count))
		return copies_by_driver(device, stream, list, count, err);
	for (size_t i = 0; i < count; i++) {
		list[i].first = (uint32_t)pieces;
		pieces += lade__gpu_pieces(list[i].size);
	}
	if (pieces == 0)
		return LADE_OK;
	if (pieces > UINT32_MAX / 2)
		return copies_by_driver(device, stream, list, count, err);
	copies.pieces = (uint32_t)pieces;
	status = lade__gpu_alloc(engine, device, stream, bytes, &copies.list, err);
	if (status == LADE_E_NOMEM) /* slower, and it needs none */
		return copies_by_driver(device, stream, list, count, err);
	if (status != LADE_OK)
		return status;
	TRY(lade__gpu_put(device, stream, copies.list, list, bytes, err));
	TRY(lade__gpu_copy_kernel(device, stream, copies, err));
out:
	lade__gpu_free(engine, device, stream, copies.list, bytes);
	return status;
}

lade_status lade__gpu_copy_now(lade_engine *engine, int32_t number, lade__gpu_copy *list,
                               size_t count, bool pageable, lade_error *err)
{
	lade__device *device;
	lade__gpu_lane *lane = NULL;
	bool begun = false;
	lade_status status = count ? lade__device_use(number, &device, err) : LADE_OK;
	if (status != LADE_OK || count == 0)
		return status;
	TRY(lade__gpu_lane_take(engine, device, &lane, err));
	TRY(lade__gpu_lane_follow(device, lane, lane->in, NULL, err));
	begun = true;
	if (pageable)
		TRY(copies_by_driver(device, lane->in, list, count, err));
	else
		TRY(lade__gpu_copies(engine, device, lane->in, list, count, err));
	TRY(LADE__CU(device, cuStreamSynchronize, lane->in));
out:
	if (status != LADE_OK && begun)
		lade__gpu_lane_wait(device, lane);
	if (lane)
		lade__gpu_lane_give(engine, lane);
	lade__device_leave(device);
	return status;
}

static lade_status add_copy(wave *w, lade__gpu_copy copy, lade_error *err)
{
	if (copy.size == 0)
		return LADE_OK;
	if (w->copy_count == w->copy_cap) {
		size_t cap = w->copy_cap ? 2 * w->copy_cap : 64;
		lade__gpu_copy *more = realloc(w->copies, cap * sizeof *more);
		if (!more)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "no memory for %zu copies", cap);
		w->copies = more;
		w->copy_cap = cap;
	}
	w->copies[w->copy_count++] = copy;
	return LADE_OK;
}

/* ---- what an item needs -------------------------------------------------------------------- */

static size_t round_up(size_t size)
{
	return (size + 63) / 64 * 64;
}

/* The most bytes of an item's result. */
static size_t result_most(const bridge *b, const lade_item *item)
{
	size_t room = item->dst.size;
	if (b->route->direction == LADE_ENCODE) {
		size_t in = 0;
		for (size_t i = 0; i < item->src_count; i++)
			in += item->src[i].size;
		size_t bound = lade_spec_bound(b->route->spec, in);
		return bound < room ? bound : room;
	}
	if (item->row_pitch)
		room = lade__rows_bytes(room, item->row_size, item->row_pitch);
	if (item->range_size && item->range_size < room)
		room = (size_t)item->range_size;
	return room;
}

static void measure(const bridge *b, const lade_item *item, size_t *in, size_t *out)
{
	*in = *out = 0;
	for (size_t i = 0; i < item->src_count; i++)
		if (on_device(item->src[i].place))
			*in += round_up(item->src[i].size);
	if (on_device(item->dst.place))
		*out = round_up(result_most(b, item));
}

/* Replaces the sources that lie on a device, and notes the copies that bring them.  What lies on
 * another than the bridge's is the driver's to bring; kernels do not reach it. */
static lade_status cross_in(const bridge *b, wave *w, crossing *c, uint8_t *pinned,
                            lade_stream stream, lade_error *err)
{
	bool rows = b->route->direction == LADE_ENCODE && c->item.row_pitch > c->item.row_size &&
	            c->item.row_pitch >= ROWS_APART;
	for (size_t i = 0; i < c->item.src_count; i++) {
		lade_segment *s = &c->segment[i];
		*s = c->item.src[i];
		if (!on_device(s->place))
			continue;
		lade__gpu_copy copy = {.src = lade__address_of(s->data),
		                       .dst = lade__address_of(pinned),
		                       .size = s->size};
		lade_status status = LADE_OK;
		if (s->place.device != b->device->number) {
			if (s->size)
				status = LADE__CU(b->device, cuMemcpyAsync, copy.dst, copy.src,
				                  copy.size, stream);
		} else if (rows) {
			/* Rows come one by one, to the places that they have. */
			for (size_t at = 0; at < s->size && status == LADE_OK;
			     at += c->item.row_pitch) {
				copy.src = lade__address_of(s->data) + at;
				copy.dst = lade__address_of(pinned) + at;
				copy.size = s->size - at < c->item.row_size ? s->size - at
				                                            : c->item.row_size;
				status = add_copy(w, copy, err);
			}
		} else {
			status = add_copy(w, copy, err);
		}
		if (status != LADE_OK)
			return status;
		s->data = pinned;
		s->place = (lade_place){LADE_PINNED, b->device->number};
		pinned += round_up(s->size);
	}
	c->item.src = c->segment;
	return LADE_OK;
}

/* ---- a wave -------------------------------------------------------------------------------- */

static void wave_reset(wave *w)
{
	free(w->item);
	free(w->segments);
	free(w->copies);
	*w = (wave){0};
}

/* Takes the items of the next wave, from 'first' on, and enqueues the copies of their sources. */
static lade_status wave_begin(bridge *b, wave *w, unsigned k, size_t first, lade_error *err)
{
	lade__gpu_slot *slot = &b->lane->slot[k];
	lade_stream stream;
	size_t in = 0, out = 0, segments = 0, n = 0;
	lade_status status = lade__gpu_lane_kernels(b->device, b->lane, k, &stream, err);
	if (status != LADE_OK)
		return status;
	for (; first + n < b->count; n++) {
		size_t more_in, more_out;
		measure(b, &b->items[first + n], &more_in, &more_out);
		if (n == WAVE_ITEMS ||
		    (n && (in + more_in > WAVE_BYTES || out + more_out > WAVE_BYTES)))
			break;
		in += more_in;
		out += more_out;
		segments += b->items[first + n].src_count;
	}
	*w = (wave){.first = first, .count = n};
	w->item = calloc(n, sizeof *w->item);
	w->segments = calloc(segments ? segments : 1, sizeof *w->segments);
	if (!w->item || !w->segments)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu items", n);
	status = lade__gpu_slot_pinned(b->engine, b->lane, k, in + out + 64, err);
	if (status != LADE_OK && n == 1) {
		/* An item too large for the memory does not spoil the others. */
		w->item->item = b->items[first];
		w->item->status = lade_fail(&w->item->error, status, LADE_NO_OFFSET,
		                            "no %zu bytes of pinned memory for it", in + out);
		return LADE__CU(b->device, cuEventRecord, slot->done, stream);
	}
	if (status != LADE_OK)
		return status;
	uint8_t *to = slot->pinned.data, *from = to + in;
	lade_segment *segment = w->segments;
	for (size_t i = 0; i < n; i++) {
		crossing *c = &w->item[i];
		c->item = b->items[first + i];
		c->segment = segment;
		segment += c->item.src_count;
		measure(b, &c->item, &c->in, &c->out);
		TRY(cross_in(b, w, c, to, stream, err));
		to += c->in;
		if (on_device(c->item.dst.place)) {
			c->item.dst = (lade_span){
				from, result_most(b, &c->item), {LADE_PINNED, b->device->number}};
			if (b->route->direction == LADE_DECODE)
				c->item.row_size = c->item.row_pitch = 0;
			from += c->out;
		}
	}
	TRY(lade__gpu_copies(b->engine, b->device, stream, w->copies, w->copy_count, err));
	TRY(LADE__CU(b->device, cuEventRecord, slot->done, stream));
	w->copy_count = 0;
out:
	return status;
}

typedef struct work {
	bridge *bridge;
	wave *wave;
} work;

static void work_item(void *ctx, size_t i, lade_worker *worker)
{
	work *x = ctx;
	crossing *c = &x->wave->item[i];
	bridge *b = x->bridge;
	if (c->status != LADE_OK)
		return;
	if (b->route->direction == LADE_DECODE)
		c->status =
			lade__item_decode(worker, b->route, &c->item, &b->job, &c->size, &c->error);
	else
		c->status =
			lade__item_encode(worker, b->route, &c->item, &b->job, &c->size, &c->error);
}

/* Runs the items and enqueues the copies of their results. */
static lade_status wave_work(bridge *b, wave *w, unsigned k, lade_error *err)
{
	lade__gpu_slot *slot = &b->lane->slot[k];
	lade_stream stream = b->lane->kernels[k];
	work x = {b, w};
	lade_status status;
	TRY(LADE__CU(b->device, cuEventSynchronize, slot->done));
	TRY(lade__engine_parallel(b->engine, b->threads, w->count, 0, NULL, work_item, &x, err));
	for (size_t i = 0; i < w->count; i++) {
		crossing *c = &w->item[i];
		const lade_item *item = &b->items[w->first + i];
		if (c->status != LADE_OK || !on_device(item->dst.place))
			continue;
		bool rows = item->row_pitch > item->row_size && b->route->direction == LADE_DECODE;
		TRY(add_copy(w,
		             (lade__gpu_copy){.src = lade__address_of(c->item.dst.data),
		                              .dst = lade__address_of(item->dst.data),
		                              .size = c->size,
		                              .row = rows ? item->row_size : 0,
		                              .pitch = rows ? item->row_pitch : 0},
		             err));
	}
	TRY(lade__gpu_copies(b->engine, b->device, stream, w->copies, w->copy_count, err));
	TRY(LADE__CU(b->device, cuEventRecord, slot->done, stream));
out:
	return status;
}

static lade_status wave_end(bridge *b, wave *w, unsigned k, lade_error *err)
{
	if (w->count == 0)
		return LADE_OK;
	lade_status status = LADE__CU(b->device, cuEventSynchronize, b->lane->slot[k].done);
	for (size_t i = 0; status == LADE_OK && i < w->count; i++) {
		const crossing *c = &w->item[i];
		if (c->status == LADE_OK)
			lade__outcome_done(b->outcome, b->index[w->first + i], c->size);
		else
			lade__outcome_failed(b->outcome, b->index[w->first + i], c->status,
			                     &c->error);
	}
	wave_reset(w);
	return status;
}

lade_status lade__gpu_bridge(lade_engine *engine, const lade__route *route, lade__device *device,
                             const lade_item *items, const size_t *index, size_t count,
                             const lade_batch_options *options, lade__outcome *outcome,
                             lade_error *err)
{
	bridge b = {.engine = engine,
	            .route = route,
	            .device = device,
	            .items = items,
	            .index = index,
	            .count = count,
	            .threads = options->threads,
	            .job = {options->dict, options->flags},
	            .outcome = outcome};
	wave waves[SLOTS] = {{0}};
	bool begun = false;
	lade_status status;
	TRY(lade__gpu_lane_take(engine, device, &b.lane, err));
	for (unsigned k = 0; k < SLOTS; k++) {
		lade_stream own;
		TRY(lade__gpu_lane_kernels(device, b.lane, k, &own, err));
		TRY(lade__gpu_lane_follow(device, b.lane, own, options->stream, err));
	}
	begun = true;
	size_t next = 0;
	unsigned k = 0; /* the wave that is worked on; the one behind it is on its way */
	TRY(wave_begin(&b, &waves[0], 0, 0, err));
	next = waves[0].count;
	while (waves[k].count) {
		unsigned behind = (k + 1) % SLOTS;
		TRY(wave_end(&b, &waves[behind], behind, err));
		if (next < count) {
			TRY(wave_begin(&b, &waves[behind], behind, next, err));
			next += waves[behind].count;
		}
		TRY(wave_work(&b, &waves[k], k, err));
		k = behind;
	}
	for (unsigned i = 1; i < SLOTS; i++)
		TRY(wave_end(&b, &waves[(k + i) % SLOTS], (k + i) % SLOTS, err));
out:
	if (b.lane) {
		/* Before the first wave nothing was enqueued, and a wait would spoil another
		 * stream's capture. */
		if (status != LADE_OK && begun)
			lade__gpu_lane_wait(device, b.lane);
		lade__gpu_lane_give(engine, b.lane);
	}
	for (int i = 0; i < SLOTS; i++)
		wave_reset(&waves[i]);
	return status;
}
