/*
 * via_host.c: items that the host decodes or encodes and whose bytes are on a device.
 *
 *     device sources --> pinned memory --> (threads) --> pinned memory --> device destinations
 *
 * Outputs may be on several devices: each brings its own from the pinned memory.
 *
 * Items go in waves of some megabytes; while the threads work on one, the sources of the next and
 * the results of the one before are on their way.  A wave's pinned memory: | sources | results |.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "batch/gpu/via_host.h"

#include <stdlib.h>

#define WAVE_BYTES ((size_t)16 << 20)
#define WAVES 4 /* each with a stream of its own */
#define WAVE_ITEMS ((size_t)1 << 14)

static void wave_reset(lade__via_wave *w)
{
	for (size_t i = 0; w->item && i < w->count; i++) {
		free(w->item[i].outputs);
		free(w->item[i].layouts);
	}
	free(w->item);
	free(w->segments);
	free(w->copies);
	free(w->boxes);
	*w = (lade__via_wave){0};
}

/* Takes the items of the next wave, from 'first' on, and enqueues the copies of their sources. */
static lade_status wave_begin(lade__via_host *h, lade__via_wave *w, unsigned k, size_t first,
                              lade_error *err)
{
	lade__gpu_flight *flight = &h->streams->flight[k];
	lade_stream stream;
	size_t in = 0, out = 0, segments = 0, n = 0;
	lade_status status = lade__gpu_streams_kernels(h->device, h->streams, k, &stream, err);
	if (status != LADE_OK)
		return status;
	for (; first + n < h->count; n++) {
		size_t more_in, more_out;
		lade__via_measure(h, lade__via_at(h, first + n), &more_in, &more_out);
		if (n == WAVE_ITEMS ||
		    (n && (in + more_in > WAVE_BYTES || out + more_out > WAVE_BYTES)))
			break;
		in += more_in;
		out += more_out;
		segments += lade__via_at(h, first + n)->src_count;
	}
	*w = (lade__via_wave){.first = first, .count = n};
	w->item = calloc(n, sizeof *w->item);
	w->segments = calloc(segments ? segments : 1, sizeof *w->segments);
	if (!w->item || !w->segments)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu items", n);
	status = lade__gpu_flight_pinned(h->engine, h->streams, k, in + out + 64, err);
	if (status != LADE_OK && n == 1) {
		/* An item too large for the memory does not spoil the others. */
		w->item->item = *lade__via_at(h, first);
		w->item->status = lade_fail(&w->item->error, status, LADE_NO_OFFSET,
		                            "no %zu bytes of pinned memory for it", in + out);
		return LADE__CU(h->device, cuEventRecord, flight->done, stream);
	}
	if (status != LADE_OK)
		return status;
	uint8_t *to = flight->pinned.data, *from = to + in;
	lade_segment *segment = w->segments;
	for (size_t i = 0; i < n; i++) {
		lade__via_item *c = &w->item[i];
		c->item = *lade__via_at(h, first + i);
		c->segment = segment;
		segment += c->item.src_count;
		lade__via_measure(h, &c->item, &c->in, &c->out);
		TRY(lade__via_in(h, w, c, to, stream, err));
		TRY(lade__via_out(h, c, from, err));
		to += c->in;
		from += c->out;
	}
	TRY(lade__gpu_copies(h->engine, h->device, stream, w->copies, w->copy_count, err));
	TRY(lade__gpu_boxes(h->engine, h->device, stream, w->boxes, w->box_count, err));
	TRY(LADE__CU(h->device, cuEventRecord, flight->done, stream));
	w->copy_count = w->box_count = 0;
out:
	return status;
}

typedef struct work {
	lade__via_host *lade__via_host;
	lade__via_wave *wave;
} work;

static void work_item(void *ctx, size_t i, lade_worker *worker)
{
	work *x = ctx;
	lade__via_item *c = &x->wave->item[i];
	lade__via_host *h = x->lade__via_host;
	if (c->status == LADE_OK && lade__stopped(&h->outcome->stop))
		c->status = lade__stop_fail(&c->error);
	if (c->status != LADE_OK)
		return;
	lade__pipe pipe = {worker, h->route, &h->job};
	if (c->item.tail)
		c->status = lade__item_decode_tail(&pipe, h->tail, &c->item, &c->size, &c->error);
	else if (h->route->direction == LADE_DECODE)
		c->status = lade__item_decode(&pipe, &c->item, &c->size, &c->error);
	else
		c->status = lade__item_encode(&pipe, &c->item, &c->size, &c->error);
}

/* Runs the items and enqueues the copies of their results. */
static lade_status wave_work(lade__via_host *h, lade__via_wave *w, unsigned k, lade_error *err)
{
	lade__gpu_flight *flight = &h->streams->flight[k];
	lade_stream stream = h->streams->kernels[k];
	work x = {h, w};
	lade_status status;
	TRY(LADE__CU(h->device, cuEventSynchronize, flight->done));
	lade__calls calls = {work_item, &x, .count = w->count, .threads = h->threads};
	TRY(lade__engine_parallel(h->engine, &calls, err));
	for (size_t i = 0; i < w->count; i++) {
		lade__via_item *c = &w->item[i];
		const lade_item *item = lade__via_at(h, w->first + i);
		if (c->status != LADE_OK)
			continue;
		TRY(lade__via_results(h, w, c, item, err));
	}
	size_t own = lade__gpu_boxes_of(w->boxes, w->box_count, h->device->number);
	TRY(lade__gpu_boxes(h->engine, h->device, stream, w->boxes, own, err));
	TRY(lade__gpu_copies(h->engine, h->device, stream, w->copies, w->copy_count, err));
	TRY(LADE__CU(h->device, cuEventRecord, flight->done, stream));
	TRY(lade__gpu_boxes_now(h->engine, w->boxes + own, w->box_count - own, err));
out:
	return status;
}

static lade_status wave_end(lade__via_host *h, lade__via_wave *w, unsigned k, lade_error *err)
{
	if (w->count == 0)
		return LADE_OK;
	lade_status status = LADE__CU(h->device, cuEventSynchronize, h->streams->flight[k].done);
	for (size_t i = 0; status == LADE_OK && i < w->count; i++) {
		const lade__via_item *c = &w->item[i];
		if (c->status == LADE_OK)
			lade__outcome_done(h->outcome, h->index[w->first + i], c->size);
		else
			lade__outcome_failed(h->outcome, h->index[w->first + i], c->status,
			                     &c->error);
	}
	wave_reset(w);
	return status;
}

lade_status lade__gpu_via_host(lade__planner *p, lade__group *g, const size_t *index, size_t count,
                               lade__device *device, lade_error *err)
{
	const lade_batch_options *options = p->call->options;
	lade__outcome *outcome = p->outcome;
	lade__via_host h = {.engine = p->call->engine,
	                    .route = &g->where.host,
	                    .tail = &g->where.tail,
	                    .device = device,
	                    .items = p->call->items,
	                    .index = index,
	                    .count = count,
	                    .threads = p->threads,
	                    .job = {.dict = options->dict, .flags = options->flags},
	                    .outcome = outcome};
	lade__via_wave waves[WAVES] = {{0}};
	bool begun = false;
	lade_status status;
	TRY(lade__gpu_streams_take(h.engine, device, &h.streams, err));
	for (unsigned k = 0; k < WAVES; k++) {
		lade_stream own;
		TRY(lade__gpu_streams_kernels(device, h.streams, k, &own, err));
		TRY(lade__gpu_streams_follow(device, h.streams, own, options->stream, err));
	}
	begun = true;
	size_t next = 0;
	unsigned k = 0; /* the wave that is worked on; the one behind it is on its way */
	TRY(wave_begin(&h, &waves[0], 0, 0, err));
	next = waves[0].count;
	while (waves[k].count) {
		unsigned behind = (k + 1) % WAVES;
		TRY(wave_end(&h, &waves[behind], behind, err));
		if (next < h.count && !lade__stopped(&outcome->stop)) {
			TRY(wave_begin(&h, &waves[behind], behind, next, err));
			next += waves[behind].count;
		}
		TRY(wave_work(&h, &waves[k], k, err));
		k = behind;
	}
	for (unsigned i = 1; i < WAVES; i++)
		TRY(wave_end(&h, &waves[(k + i) % WAVES], (k + i) % WAVES, err));
	for (; next < h.count; next++)
		lade__outcome_cancelled(outcome, h.index[next]);
out:
	if (h.streams) {
		/* Before the first wave nothing was enqueued, and a wait would spoil another
		 * stream's capture. */
		if (status != LADE_OK && begun)
			lade__gpu_streams_wait(device, h.streams);
		lade__gpu_streams_give(h.engine, h.streams);
	}
	for (int i = 0; i < WAVES; i++)
		wave_reset(&waves[i]);
	return status;
}
