/*
 * device.c: frames that are made, and read, in a device's memory: the host sees header and index,
 * and waits once (docs/format/frame.md; the kernels are those of frame/gpu/kernels/frame.cu).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/gpu/device.h"

#include "base/options.h"
#include "base/try.h"
#include "batch/gpu/gpu.h"
#include "checksum/gpu.h"
#include "frame/gpu/args.h"
#include "frame/read.h"

#include <stdlib.h>

static const lade__kernel place_kernel = {"frame", "lade_frame_place", 0};
static const lade__kernel pack_kernel = {"frame", "lade_frame_pack", 0};
static const lade__kernel look_kernel = {"frame", "lade_frame_look", 0};

#define LOOK_THREADS 128u

/* More chunks than these go another way: the tables are pinned memory. */
#define COUNT_MOST ((uint64_t)1 << 20)

/* Tables of up to this many bytes go in kernels' arguments, which is quicker than a copy. */
#define PUT_MAX ((size_t)3 * 8 * LADE_PUT_WORDS)

/* What is fetched of a frame when it is opened, with a head: an index page, list and footer of a
 * frame that has shrunk to a fourth fit the end. */
#define HEAD_SIZE ((size_t)512)
#define TAIL_LEAST ((size_t)4096)
#define TAIL_MOST ((size_t)36 << 10)
#define TAIL_SHARE 256

/* And then at a time. */
#define FETCH_SIZE ((size_t)1 << 20)

/* ---- what all calls share ------------------------------------------------------------------- */

/* A call on an entered device. */
typedef struct call {
	lade_engine *engine;
	lade__device *device;
	lade_stream stream;
	int mode; /* of captures, the thread's own */
	lade__gpu_staging *staging;
	lade__address block;
	size_t block_size;
} call;

static void call_end(call *c)
{
	if (!c->device)
		return;
	if (c->staging)
		lade__gpu_staging_give(c->engine, c->device, c->stream, c->staging, NULL);
	lade__gpu_free(c->engine, c->device, c->stream, c->block, c->block_size);
	c->device->driver->cuThreadExchangeStreamCaptureMode(&c->mode);
	lade__device_leave(c->device);
}

static lade_status call_begin(call *c, lade_engine *engine, int32_t device, lade_stream stream,
                              lade_error *err)
{
	int capturing = 0;
	lade_status status;
	*c = (call){.engine = engine, .stream = stream, .mode = LADE__CAPTURE_RELAXED};
	TRY(lade__device_use(device, &c->device, err));
	/* What others capture is not concerned. */
	status = LADE__CU(c->device, cuThreadExchangeStreamCaptureMode, &c->mode);
	if (status != LADE_OK) {
		lade__device_leave(c->device);
		c->device = NULL;
		return status;
	}
	TRY(LADE__CU(c->device, cuStreamIsCapturing, stream, &capturing));
	if (capturing)
		status = lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                   "the stream is being captured, but this call waits");
out:
	return status;
}

/* Pinned memory and a block on the device. */
static lade_status call_memory(call *c, size_t pinned, size_t block, lade_error *err)
{
	lade_status status;
	TRY(lade__gpu_staging_take(c->engine, c->device, pinned, &c->staging, err));
	if (block == 0)
		return LADE_OK;
	status = lade__gpu_alloc(c->engine, c->device, c->stream, block, &c->block, err);
	c->block_size = status == LADE_OK ? block : 0;
out:
	return status;
}

/* Brings the first 'size' bytes of the staging buffer to the block's start. */
static lade_status call_send(const call *c, size_t size, lade_error *err)
{
	const void *from = c->staging->pinned.data;
	if (size <= PUT_MAX)
		return lade__gpu_put(c->device, c->stream, c->block, from, size, err);
	return LADE__CU(c->device, cuMemcpyHtoDAsync, c->block, from, size, c->stream);
}

/* A route for work whose count, largest and total are set.  lade_device_takes() would make the same
 * route and drop it. */
static lade_status call_route(const call *c, lade_workload work, lade__route *route,
                              lade_error *err)
{
	work.threads = 1;
	work.src = work.dst = (lade_place){LADE_DEVICE, c->device->number};
	if (!c->device->info.kernels || work.largest > LADE_CHUNK_MAX)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "device %d has no kernels for chunks of %llu bytes",
		                 (int)c->device->number, (unsigned long long)work.largest);
	return lade__route_make(c->engine, &work, route, NULL, err);
}

/* The next part of a block: 'size' bytes.  No sum comes near the end of the type: there are at most
 * COUNT_MOST parts of at most 2^31 bytes. */
static size_t part(size_t *end, size_t size)
{
	size_t at = *end;
	*end += lade__gpu_round(size);
	return at;
}

/* The tables of 'count' chunks, in columns of 'n': source, size, destination and capacity at 'at',
 * sizes and statuses at 'results'. */
static lade__gpu_tables tables_of(lade__address at, lade__address results, size_t n, size_t count,
                                  uint64_t largest, uint64_t total)
{
	return (lade__gpu_tables){.src = at,
	                          .src_size = at + 8 * n,
	                          .dst = at + 16 * n,
	                          .dst_cap = at + 24 * n,
	                          .dst_size = results,
	                          .status = results + 8 * n,
	                          .count = count,
	                          .largest = largest,
	                          .total = total};
}

/* ---- making --------------------------------------------------------------------------------- */

/* Where the parts of an encoding's block are; of n chunks:
 *
 *	tables   src u64[n], size u64[n], dst u64[n], cap u64[n], header
 *	results  sizes u64[n], statuses u32[n]
 */
typedef struct encoding {
	lade__header header;
	lade__route route;
	size_t count, pages, slot, pipe_size, sums_size;
	uint64_t largest;
	size_t tables, results, sums, off, entry, report, sums_work, pipe, slots, size;
} encoding;

static lade_status encoding_plan(const call *c, encoding *e, const lade_frame_options *options,
                                 lade_error *err)
{
	const lade_frame_info *info = &e->header.info;
	uint64_t count = lade__div_up(info->size, info->chunk_size);
	lade_status status;
	e->largest = info->size < info->chunk_size ? info->size : info->chunk_size;
	e->largest = e->largest ? e->largest : 1;
	uint64_t pieces = lade__div_up(e->largest, LADE_FRAME_PIECE);
	if (options->dict || lade_spec_is_lossy(info->spec) || count > COUNT_MOST ||
	    count * pieces > INT32_MAX)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "a device does not write frames of %llu chunks, with a "
		                 "dictionary, or that lose anything",
		                 (unsigned long long)count);
	lade_workload work = {.count = count ? (size_t)count : 1,
	                      .largest = (size_t)e->largest,
	                      .total = info->size};
	e->route = lade__route_of(info->spec, LADE_ENCODE, LADE_DEVICE);
	TRY(call_route(c, work, &e->route, err));
	size_t n = e->count = (size_t)count,
	       bound = lade_spec_bound(info->spec, (size_t)e->largest);
	e->pages = (size_t)lade__div_up(count, LADE__PAGE_CHUNKS);
	e->pipe_size =
		n ? lade__gpu_pipe_workspace(c->engine, &e->route, n, e->largest, info->size) : 0;
	if (info->checksum != LADE_CHECKSUM_NONE)
		e->sums_size = lade__gpu_checksum_workspace(info->checksum, n, e->largest);
	if (bound > SIZE_MAX / 2 / COUNT_MOST || e->pipe_size > SIZE_MAX / 4 ||
	    e->sums_size > SIZE_MAX / 4)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "a device's workspace for %zu chunks is too large", n);
	e->slot = lade__gpu_round(bound);
	e->tables = part(&e->size, 32 * n + e->header.size);
	e->results = part(&e->size, 12 * n);
	e->sums = part(&e->size, 8 * n);
	e->off = part(&e->size, 8 * (n + e->pages + 1));
	e->entry = part(&e->size, 8 * n);
	e->report = part(&e->size, 16);
	e->sums_work = part(&e->size, e->sums_size);
	e->pipe = part(&e->size, e->pipe_size);
	e->slots = part(&e->size, n * e->slot);
out:
	return status;
}

static void encoding_tables(const call *c, encoding *e, lade_cspan src, void *to)
{
	uint64_t *table = to, chunk = e->header.info.chunk_size;
	size_t n = e->count;
	for (size_t i = 0; i < n; i++) {
		uint64_t left = src.size - i * chunk;
		table[i] = lade__address_of(src.data) + i * chunk;
		table[n + i] = left < chunk ? left : chunk;
		table[2 * n + i] = c->block + e->slots + i * e->slot;
		table[3 * n + i] = e->slot;
	}
	lade__header_pack(&e->header, (uint8_t *)(table + 4 * n));
}

static lade_status encoding_run(const call *c, const encoding *e, lade_cspan src, lade_span dst,
                                lade__address answer, lade_error *err)
{
	const lade_frame_info *info = &e->header.info;
	lade__address at = c->block + e->tables;
	size_t n = e->count;
	bool sums = n && info->checksum != LADE_CHECKSUM_NONE;
	lade_status status;
	lade__gpu_tables tables =
		tables_of(at, c->block + e->results, n, n, e->largest, info->size);
	tables.workspace = c->block + e->pipe;
	tables.workspace_size = e->pipe_size;
	if (n)
		TRY(lade__gpu_pipe_enqueue(c->engine, &e->route, c->device, c->stream, &tables,
		                           err));
	if (sums)
		TRY(lade__gpu_checksum_tell(&(lade__gpu_work){.device = c->device,
		                                              .stream = c->stream,
		                                              .src = tables.src,
		                                              .src_size = tables.src_size,
		                                              .count = n,
		                                              .largest = e->largest,
		                                              .total = info->size,
		                                              .workspace = c->block + e->sums_work,
		                                              .workspace_size = e->sums_size},
		                            info->checksum, c->block + e->sums, err));
	lade_gpu_frame f = {.src = lade__address_of(src.data),
	                     .slots = c->block + e->slots,
	                     .sizes = tables.dst_size,
	                     .statuses = tables.status,
	                     .sums = sums ? c->block + e->sums : 0,
	                     .header = at + 32 * n,
	                     .dst = lade__address_of(dst.data),
	                     .off = c->block + e->off,
	                     .entry = c->block + e->entry,
	                     .report = c->block + e->report,
	                     .answer = answer,
	                     .size = info->size,
	                     .cap = dst.size,
	                     .slot = e->slot,
	                     .header_check = e->header.check,
	                     .count = (uint32_t)n,
	                     .chunk_size = (uint32_t)info->chunk_size,
	                     .header_size = (uint32_t)e->header.size};
	uint32_t pages = (uint32_t)e->pages;
	uint32_t pieces = (uint32_t)lade__div_up(e->largest, LADE_FRAME_PIECE);
	void *place[] = {&f}, *pack[] = {&f, &pages, &pieces};
	lade__launch one = {.blocks = 1, .threads = LADE_FRAME_PLACE_THREADS, .stream = c->stream};
	uint64_t packs = lade__div_up((uint64_t)n * pieces, LADE_FRAME_PACK_THREADS / 32);
	lade__launch all = {.blocks = 1 + pages + (unsigned)packs,
	                    .threads = LADE_FRAME_PACK_THREADS,
	                    .stream = c->stream};
	TRY(lade__kernel_launch(c->device, &place_kernel, &one, place, err));
	TRY(lade__kernel_launch(c->device, &pack_kernel, &all, pack, err));
out:
	return status;
}

static lade_status encode(call *c, encoding *e, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	size_t n = e->count, sent = 32 * n + e->header.size;
	lade_status status;
	TRY(call_memory(c, sent + 16, e->size, err));
	uint8_t *pinned = c->staging->pinned.data;
	uint64_t *answer = (uint64_t *)(void *)(pinned + sent);
	answer[0] = answer[1] = 0;
	encoding_tables(c, e, src, pinned);
	TRY(call_send(c, sent, err));
	TRY(encoding_run(c, e, src, dst, lade__address_of(answer), err));
	TRY(LADE__CU(c->device, cuStreamSynchronize, c->stream));
	*dst_size = (size_t)answer[0];
	if (answer[1] == LADE_E_NOSPACE)
		status = lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                   "the frame exceeds the destination's %zu bytes", dst.size);
	else if (answer[1] != LADE_OK)
		status = lade_fail(err, (lade_status)answer[1], LADE_NO_OFFSET,
		                   "a chunk could not be encoded: %s",
		                   lade_status_text((lade_status)answer[1]));
	return status;
out:
	/* What has been enqueued may still write to the staging buffer. */
	c->device->driver->cuStreamSynchronize(c->stream);
	return status;
}

/* What lade_frame_encode_device() says of its arguments. */
static lade_status check_spans(const lade_engine *engine, lade_cspan src, lade_span dst,
                               const size_t *dst_size, lade_error *err)
{
	if (!engine || !dst_size || (!src.data && src.size) || (!dst.data && dst.size))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 !engine     ? "engine"
		                 : !dst_size ? "dst_size"
		                             : "a span's data");
	if (src.place.kind != LADE_DEVICE || dst.place.kind != LADE_DEVICE ||
	    src.place.device != dst.place.device)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "source and destination are not on the same device");
	return LADE_OK;
}

lade_status lade_frame_encode_device(lade_engine *engine, const lade_frame_options *given,
                                     lade_cspan src, lade_span dst, size_t *dst_size,
                                     lade_error *err)
{
	lade_frame_options options;
	encoding e = {.size = 0};
	call c = {.device = NULL};
	lade_status status = check_spans(engine, src, dst, dst_size, err);
	if (status != LADE_OK)
		return status;
	*dst_size = 0;
	TRY(lade__options_read(&options, sizeof options, given, "frame options", err));
	if (options.has_size && options.size != src.size)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "frame options: size is %llu, the source has %zu bytes",
		                 (unsigned long long)options.size, src.size);
	options.has_size = true;
	options.size = src.size;
	TRY(lade__header_make(&options, &e.header, err));
	TRY(call_begin(&c, engine, src.place.device, options.stream, err));
	TRY(encoding_plan(&c, &e, &options, err));
	TRY(encode(&c, &e, src, dst, dst_size, err));
out:
	call_end(&c);
	return status;
}

/* ---- fetching ------------------------------------------------------------------------------- */

void lade__device_frame_free(struct lade__device_frame *df)
{
	free(df);
}

lade_status lade__device_frame_new(lade_engine *engine, lade_cspan frame, lade_stream stream,
                                   struct lade__device_frame **out, lade_error *err)
{
	*out = malloc(sizeof **out);
	if (!*out)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a frame");
	**out = (struct lade__device_frame){engine, frame, stream};
	return LADE_OK;
}

size_t lade__device_frame_tail(const struct lade__device_frame *df)
{
	if (!df)
		return 0;
	size_t size = df->frame.size, tail = TAIL_LEAST + size / TAIL_SHARE;
	tail = tail < TAIL_MOST ? tail : TAIL_MOST;
	return size <= HEAD_SIZE + tail ? size : tail;
}

/* Where ranges are read: at byte 'at' of range 'range'. */
typedef struct place {
	size_t range, at;
} place;

/* The next piece of the ranges that fits the buffer, and where it goes; 0: there is none. */
static size_t next_piece(const lade_reading *reading, place *p, size_t cap, uint8_t **to,
                         uint64_t *from)
{
	for (; p->range < reading->count; p->range++, p->at = 0) {
		const lade_range *range = &reading->ranges[p->range];
		size_t n = range->size - p->at;
		if (n == 0)
			continue;
		n = n < cap ? n : cap;
		*to = (uint8_t *)range->dst.data + p->at;
		*from = range->off + p->at;
		p->at += n;
		return n;
	}
	return 0;
}

/* Brings the bytes of all ranges, whose places are in 'off' and 'size', a buffer at a time. */
static lade_status fetch(const struct lade__device_frame *df, lade_reading *reading, size_t total,
                         lade_error *err)
{
	lade__address base = lade__address_of(df->frame.data);
	size_t most = total < FETCH_SIZE ? total : FETCH_SIZE;
	place next = {0, 0};
	lade_status status;
	call c;
	TRY(call_begin(&c, df->engine, df->frame.place.device, df->stream, err));
	TRY(call_memory(&c, most, 0, err));
	uint8_t *pinned = c.staging->pinned.data, *to;
	while (total) {
		place first = next;
		uint64_t from;
		size_t used = 0, n;
		while (used < most && (n = next_piece(reading, &next, most - used, &to, &from))) {
			TRY(LADE__CU(c.device, cuMemcpyDtoHAsync, pinned + used, base + from, n,
			             c.stream));
			used += n;
		}
		TRY(LADE__CU(c.device, cuStreamSynchronize, c.stream));
		for (size_t at = 0; at < used; at += n) {
			n = next_piece(reading, &first, used - at, &to, &from);
			memcpy(to, pinned + at, n);
		}
		total -= used;
	}
out:
	if (status != LADE_OK && c.staging)
		c.device->driver->cuStreamSynchronize(c.stream);
	call_end(&c);
	return status;
}

static void device_frame_read(void *ctx, lade_reading *reading, size_t count)
{
	const struct lade__device_frame *df = ctx;
	lade_range *ranges = reading->ranges;
	lade_status status = LADE_OK;
	lade_error err;
	size_t total = 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t off;
		ranges[i].object_size = df->frame.size;
		lade_status one =
			lade_range_place(&ranges[i], df->frame.size, &off, &ranges[i].size, &err);
		if (one == LADE_OK)
			ranges[i].off = off;
		else
			lade_reading_done(reading, i, one, &err);
		total += ranges[i].size; /* they are the reader's own, and fit its memory */
	}
	if (total)
		status = fetch(df, reading, total, &err);
	for (size_t i = 0; i < count; i++)
		if (ranges[i].status == LADE__PENDING)
			lade_reading_done(reading, i, status, &err);
}

lade_source lade__device_frame_source(struct lade__device_frame *df)
{
	static const lade_source_ops ops = {
		.struct_size = sizeof ops, .flags = LADE_SOURCE_LOCAL, .read = device_frame_read};
	return (lade_source){&ops, df};
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Where the parts of a decoding's block are.  Of n chunks, of which 'coded' are items of a batch:
 *
 *	tables   src u64[n], size u64[n], dst u64[n], cap u64[n], off u64[n], entry u64[n],
 *	         item u64[n]; with checksums the decoded chunks, begin u64[n], size u64[n]
 *	results  sizes u64[n], statuses u32[n]
 */
typedef struct decoding {
	lade_frame *frame;
	lade_span dst;
	lade__route route;
	lade_gpu_copy *copies; /* of stored chunks */
	size_t count, coded, copy_count, pipe_size, sums_size, columns;
	uint64_t largest;
	bool verify;
	size_t tables, results, sums, sums_work, pipe, size;
} decoding;

static lade_status decoding_plan(const call *c, decoding *d, lade_error *err)
{
	const lade_frame_info *info = &d->frame->info;
	size_t n = d->count = (size_t)info->chunk_count;
	lade_status status;
	d->verify = d->frame->coder.verify;
	d->largest = info->size < info->chunk_size ? info->size : info->chunk_size;
	lade_workload work = {
		.count = n, .largest = (size_t)d->largest, .total = info->size};
	d->route = lade__route_of(info->spec, LADE_DECODE, LADE_DEVICE);
	TRY(call_route(c, work, &d->route, err));
	d->pipe_size = lade__gpu_pipe_workspace(c->engine, &d->route, n, d->largest, info->size);
	if (d->verify)
		d->sums_size = lade__gpu_checksum_workspace(info->checksum, n, d->largest);
	if (d->pipe_size > SIZE_MAX / 4 || d->sums_size > SIZE_MAX / 4)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "a device's workspace for %zu chunks is too large", n);
	d->columns = d->verify ? 9 : 7;
	d->tables = part(&d->size, 8 * d->columns * n);
	d->results = part(&d->size, 12 * n);
	d->sums = part(&d->size, 8 * n);
	d->sums_work = part(&d->size, d->sums_size);
	d->pipe = part(&d->size, d->pipe_size);
	d->copies = malloc(n * sizeof *d->copies);
	if (!d->copies)
		status =
			lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu chunks", n);
out:
	return status;
}

/* One chunk's entries. */
static lade_status decoding_chunk(decoding *d, const lade__located *at, uint64_t *table,
                                  lade_error *err)
{
	const struct lade__device_frame *df = d->frame->on_device;
	const lade__chunk *chunk = &at->chunk;
	size_t n = d->count, i = (size_t)at->index, k = d->coded;
	lade__address payload = lade__address_of(df->frame.data) + at->off + LADE__PART_HEADER;
	lade__address dst = lade__address_of(d->dst.data) + i * d->frame->info.chunk_size;
	lade_status status = lade__read_check(d->frame, at, err);
	if (status != LADE_OK)
		return status;
	if (chunk->flags & ~(unsigned)LADE_CHUNK_STORED)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "chunk %zu is constant, or has a spec of its own", i);
	table[4 * n + i] = at->off;
	table[5 * n + i] = chunk->size | (uint64_t)chunk->flags << 32;
	table[6 * n + i] = k;
	if (d->verify) {
		table[7 * n + i] = dst;
		table[8 * n + i] = chunk->decoded_size;
	}
	if (chunk->flags) {
		d->copies[d->copy_count++] =
			(lade_gpu_copy){.src = payload, .dst = dst, .size = chunk->size};
		return LADE_OK;
	}
	table[k] = payload;
	table[n + k] = chunk->size;
	table[2 * n + k] = dst;
	table[3 * n + k] = chunk->decoded_size;
	d->coded++;
	return LADE_OK;
}

static lade_status decoding_tables(decoding *d, uint64_t *table, lade_error *err)
{
	lade_status status = LADE_OK;
	lade__located at;
	for (uint64_t i = 0; i < d->count && status == LADE_OK;) {
		const lade__page *page;
		pthread_mutex_lock(&d->frame->mutex);
		status = lade__frame_page(d->frame, i / LADE__PAGE_CHUNKS, &page, err);
		uint64_t end = i + lade__page_entries(i / LADE__PAGE_CHUNKS, d->count);
		for (; i < end && status == LADE_OK; i++) {
			lade__frame_locate(d->frame, page, i, &at);
			status = decoding_chunk(d, &at, table, err);
		}
		pthread_mutex_unlock(&d->frame->mutex);
	}
	return status;
}

static lade_status decoding_run(const call *c, decoding *d, lade__address answer, lade_error *err)
{
	const lade_frame_info *info = &d->frame->info;
	lade__address at = c->block + d->tables;
	size_t n = d->count;
	lade_status status;
	lade__gpu_tables tables =
		tables_of(at, c->block + d->results, n, d->coded, d->largest, info->size);
	tables.workspace = c->block + d->pipe;
	tables.workspace_size = d->pipe_size;
	if (d->coded)
		TRY(lade__gpu_pipe_enqueue(c->engine, &d->route, c->device, c->stream, &tables,
		                           err));
	if (d->copy_count)
		TRY(lade__gpu_copies(c->engine, c->device, c->stream, d->copies, d->copy_count,
		                     err));
	if (d->verify)
		TRY(lade__gpu_checksum_tell(&(lade__gpu_work){.device = c->device,
		                                              .stream = c->stream,
		                                              .src = at + 56 * n,
		                                              .src_size = at + 64 * n,
		                                              .count = n,
		                                              .largest = d->largest,
		                                              .total = info->size,
		                                              .workspace = c->block + d->sums_work,
		                                              .workspace_size = d->sums_size},
		                            info->checksum, c->block + d->sums, err));
	lade_gpu_look look = {.frame = lade__address_of(d->frame->on_device->frame.data),
	                      .off = at + 32 * n,
	                      .entry = at + 40 * n,
	                      .item = at + 48 * n,
	                      .sizes = tables.dst_size,
	                      .statuses = tables.status,
	                      .sums = d->verify ? c->block + d->sums : 0,
	                      .answer = answer,
	                      .size = info->size,
	                      .sum_most = info->checksum == LADE_CHECKSUM_NONE ? 0
	                                  : info->checksum == LADE_CRC32C      ? UINT32_MAX
	                                                                       : UINT64_MAX,
	                      .count = (uint32_t)n,
	                      .chunk_size = (uint32_t)info->chunk_size};
	lade__launch launch = {.blocks = (unsigned)lade__div_up(n, LOOK_THREADS),
	                       .threads = LOOK_THREADS,
	                       .stream = c->stream};
	void *arguments[] = {&look};
	TRY(lade__kernel_launch(c->device, &look_kernel, &launch, arguments, err));
out:
	return status;
}

static lade_status decode(call *c, decoding *d, lade_error *err)
{
	size_t sent = 8 * d->columns * d->count;
	lade_status status;
	TRY(call_memory(c, sent + 8, d->size, err));
	uint64_t *table = c->staging->pinned.data, *answer = table + sent / 8;
	*answer = 0;
	TRY(decoding_tables(d, table, err));
	TRY(call_send(c, sent, err));
	TRY(decoding_run(c, d, lade__address_of(answer), err));
	TRY(LADE__CU(c->device, cuStreamSynchronize, c->stream));
	if (*answer)
		status = lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                   "a chunk is not what the index says");
	return status;
out:
	c->device->driver->cuStreamSynchronize(c->stream);
	return status;
}

lade_status lade__device_frame_decode(lade_frame *frame, lade_span dst, lade_error *err)
{
	const struct lade__device_frame *df = frame->on_device;
	decoding d = {.frame = frame, .dst = dst};
	call c = {.device = NULL};
	lade_status status;
	if (dst.place.kind != LADE_DEVICE || dst.place.device != df->frame.place.device ||
	    frame->options.dict || frame->info.chunk_count > COUNT_MOST || !frame->info.size)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "the device cannot decode this frame by itself");
	TRY(call_begin(&c, df->engine, dst.place.device, df->stream, err));
	TRY(decoding_plan(&c, &d, err));
	TRY(decode(&c, &d, err));
out:
	call_end(&c);
	free(d.copies);
	return status;
}
