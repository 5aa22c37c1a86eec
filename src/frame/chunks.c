/*
 * chunks.c: a window's chunks on the host: read, decoded, and copied to their ranges.
 *
 *	in memory   a chunk is decoded where it is
 *	local       a worker reads a chunk, or a group of small ones, and decodes what is in its
 *	            cache then
 *	else        a round of chunks is asked for at once; while it comes, the workers decode the
 *	            round before it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/read.h"

#include "base/support.h"
#include "base/try.h"

#include <inttypes.h>

typedef lade__read_task task;
typedef lade__read_batch batch;

/* ---- pieces --------------------------------------------------------------------------------- */

lade__read_piece lade__read_piece_at(const batch *b, const task *t, size_t i)
{
	const lade_frame_range *range = &b->ranges[b->pieces[t->first + i]];
	uint64_t begin = t->at.index * b->frame->info.chunk_size;
	uint64_t end = begin + t->at.chunk.decoded_size;
	uint64_t from = range->off > begin ? range->off : begin;
	uint64_t to = range->off + range->dst.size < end ? range->off + range->dst.size : end;
	return (lade__read_piece){.dst = {(uint8_t *)range->dst.data + (size_t)(from - range->off),
	                                  (size_t)(to - from), range->dst.place},
	                          .from = (size_t)(from - begin)};
}

void lade__read_copy(const batch *b, const task *t, const uint8_t *decoded)
{
	for (size_t i = 0; i < t->count; i++) {
		lade__read_piece p = lade__read_piece_at(b, t, i);
		if (lade_kind_is_host(p.dst.place.kind) && p.dst.data != decoded + p.from)
			memcpy(p.dst.data, decoded + p.from, p.dst.size);
	}
}

uint8_t *lade__read_whole(const batch *b, const task *t, bool on_device, lade_place *place)
{
	for (size_t i = 0; i < t->count; i++) {
		lade__read_piece p = lade__read_piece_at(b, t, i);
		if (p.dst.size == t->at.chunk.decoded_size &&
		    lade_kind_is_host(p.dst.place.kind) != on_device) {
			*place = p.dst.place;
			return p.dst.data;
		}
	}
	return NULL;
}

/* ---- one chunk ------------------------------------------------------------------------------ */

lade_status lade__read_check(const lade_frame *frame, const lade__located *at, lade_error *err)
{
	lade_error inner = {.offset = LADE_NO_OFFSET};
	lade_status status = lade__chunk_check(&at->chunk, at->index, LADE_NO_OFFSET, &inner);
	if (status == LADE_OK)
		return status;
	uint64_t page = frame->page_off[at->index / LADE__PAGE_CHUNKS];
	return lade_fail(err, status,
	                 page + LADE__PART_HEADER +
	                         at->index % LADE__PAGE_CHUNKS * LADE__ENTRY_SIZE,
	                 "index page at %" PRIu64 ": %s", page, inner.message);
}

/* A stored chunk that has no padding and is wanted whole: from the source to its place. */
static lade_status read_stored(const batch *b, const task *t, uint8_t *dst, lade_error *err)
{
	const lade_frame *frame = b->frame;
	uint64_t off = t->at.off;
	uint8_t head[LADE__PART_HEADER];
	lade__chunk chunk;
	lade_status status;
	lade_range ranges[2] = {lade__source_range(&frame->source, off, sizeof head, head),
	                        lade__source_range(&frame->source, off + sizeof head,
	                                           t->at.chunk.size, dst)};
	TRY(lade__source_read(&frame->source, ranges, 2, err));
	TRY(lade__frame_check(frame, &t->at, head, &chunk, err));
	TRY(lade__block_verify(&frame->coder, t->at.index, &chunk, t->at.off, dst, err));
	lade__read_copy(b, t, dst);
out:
	return status;
}

static bool is_stored(const task *t)
{
	return t->at.chunk.flags == LADE_CHUNK_STORED;
}

/* Decodes the block at 'src' to 'dst', NULL for a stored one, and copies the pieces. */
static lade_status decode_block(const batch *b, const task *t, lade_worker *worker,
                                const uint8_t *src, uint8_t *dst, lade_error *err)
{
	const lade_frame *frame = b->frame;
	uint64_t index = t->at.index, off = t->at.off;
	lade__chunk chunk;
	lade_status status;
	TRY(lade__frame_check(frame, &t->at, src, &chunk, err));
	src += LADE__PART_HEADER;
	lade__found block = {index, &chunk, src, off};
	if (is_stored(t)) {
		TRY(lade__block_padding(&block, err));
		TRY(lade__block_verify(&frame->coder, index, &chunk, off, src, err));
		dst = NULL;
	} else {
		TRY(lade__block_decode(&frame->coder, worker, &block, dst, err));
	}
	lade__read_copy(b, t, dst ? dst : src);
out:
	return status;
}

/* Scratch memory for 'encoded' bytes, and 'decoded' behind them. */
static lade_status scratch(lade_worker *worker, uint64_t encoded, size_t decoded, uint8_t **buffer,
                           uint8_t **behind, lade_error *err)
{
	size_t at = ((size_t)encoded + 63) & ~(size_t)63;
	*buffer = *behind = NULL;
	if (encoded + decoded == 0)
		return LADE_OK;
	*buffer = lade__worker_block(worker, LADE__SCRATCH_FRAME, at + decoded);
	if (!*buffer)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for %zu bytes of chunk", at + decoded);
	*behind = *buffer + at;
	return LADE_OK;
}

/* Reads and decodes one chunk; 'src' is its block, or NULL where that has to be read. */
static lade_status read_chunk(const batch *b, const task *t, lade_worker *worker,
                              const uint8_t *src, lade_error *err)
{
	const lade__source *source = &b->frame->source;
	const lade__chunk *want = &t->at.chunk;
	uint64_t block = lade__chunk_block_size(want);
	lade_place place;
	uint8_t *dst = lade__read_whole(b, t, false, &place), *buffer, *behind;
	lade_status status;
	/* Before memory is asked for what the index claims. */
	TRY(lade__read_check(b->frame, &t->at, err));
	if (!src)
		src = lade__source_at(source, t->at.off, (size_t)block);
	if (!src && is_stored(t) && dst && want->size % LADE__ALIGN == 0)
		return read_stored(b, t, dst, err);
	TRY(scratch(worker, src ? 0 : block, is_stored(t) || dst ? 0 : want->decoded_size, &buffer,
	            &behind, err));
	if (!src)
		TRY(lade__source_get(source, t->at.off, (size_t)block, buffer, &src, err));
	status = decode_block(b, t, worker, src, dst ? dst : behind, err);
out:
	return status;
}

lade_status lade__read_cancelled(batch *b, const task *t, lade_error *err)
{
	if (!lade__stopped(&b->stop))
		return LADE_OK;
	return lade_fail(err, LADE_E_CANCELLED, LADE_NO_OFFSET,
	                 "chunk %" PRIu64 ": the read was cancelled", t->at.index);
}

/* Does one task, whose block is at 'src' or has to be read. */
static void task_run(batch *b, const task *t, lade_worker *worker, const uint8_t *src)
{
	lade_error err = {.offset = LADE_NO_OFFSET};
	lade_status status = lade__read_cancelled(b, t, &err);
	if (status == LADE_OK)
		status = read_chunk(b, t, worker, src, &err);
	if (status != LADE_OK)
		lade__read_fail(b, t, status, &err);
}

void lade__read_task_run(void *ctx, size_t index, lade_worker *worker)
{
	batch *b = ctx;
	task_run(b, &b->tasks[index], worker, NULL);
}

/* ---- groups ------------------------------------------------------------------------------- */

/* Blocks of one group, all together, and how many: enough that the call of the system does not
 * count, and few enough that they stay in the cache. */
#define GROUP_BYTES ((uint64_t)64 << 10)
#define GROUP_CHUNKS 32

static size_t make_groups(batch *b, size_t task_count)
{
	size_t count = 0;
	uint64_t bytes = 0;
	for (size_t i = 0; i < task_count; i++) {
		uint64_t block = lade__chunk_block_size(&b->tasks[i].at.chunk);
		if (count == 0 || bytes + block > GROUP_BYTES ||
		    i - b->groups[count - 1] == GROUP_CHUNKS) {
			b->groups[count++] = i;
			bytes = 0;
		}
		bytes += block;
	}
	b->groups[count] = task_count;
	return count;
}

/* Reads the blocks of a group, one behind the other.  False: one by one they may do better, or say
 * why not. */
static bool read_group(const batch *b, const task *tasks, size_t count, lade_worker *worker,
                       uint8_t **blocks)
{
	lade_range ranges[GROUP_CHUNKS];
	uint64_t size = 0;
	uint8_t *behind;
	for (size_t i = 0; i < count; i++) {
		if (lade__read_check(b->frame, &tasks[i].at, NULL) != LADE_OK)
			return false;
		size += lade__chunk_block_size(&tasks[i].at.chunk);
	}
	/* Not the memory for one chunk: decoding it takes that. */
	*blocks = lade__worker_block(worker, LADE__SCRATCH_GROUP, (size_t)size);
	if (!*blocks)
		return false;
	behind = *blocks;
	for (size_t i = 0; i < count; i++) {
		size_t block = (size_t)lade__chunk_block_size(&tasks[i].at.chunk);
		ranges[i] = lade__source_range(&b->frame->source, tasks[i].at.off, block, behind);
		behind += block;
	}
	return lade__source_read(&b->frame->source, ranges, count, NULL) == LADE_OK;
}

static void group_run(void *ctx, size_t index, lade_worker *worker)
{
	batch *b = ctx;
	size_t first = b->groups[index], count = b->groups[index + 1] - first;
	uint8_t *blocks = NULL;
	if (count == 1 || !read_group(b, &b->tasks[first], count, worker, &blocks))
		blocks = NULL;
	for (size_t i = 0; i < count; i++) {
		const task *t = &b->tasks[first + i];
		task_run(b, t, worker, blocks);
		if (blocks)
			blocks += lade__chunk_block_size(&t->at.chunk);
	}
}

void lade__read_here(batch *b, size_t task_count, lade_worker *worker)
{
	bool groups = !b->frame->source.base;
	for (size_t i = 0, n = groups ? make_groups(b, task_count) : task_count; i < n; i++)
		if (groups)
			group_run(b, i, worker);
		else
			lade__read_task_run(b, i, worker);
}

/* ---- rounds ------------------------------------------------------------------------------- */

/* Encoded bytes of a round, about: enough for a server's many connections. */
#define ROUND_BYTES ((uint64_t)32 << 20)

/* A round: [first, first + count) of the tasks, read one behind the other. */
typedef struct round {
	batch *batch;
	size_t first, count;
	lade__round_table *table;
	size_t asked; /* ranges of the table: a task whose entry is wrong has none */
	uint8_t *buffer;
	size_t buffer_cap;
	lade_io_options options;
	lade_reading reading;
} round;

static lade_status round_buffer(round *r, size_t size, lade_error *err)
{
	const lade_allocator *host = lade__engine_host(r->batch->frame->engine);
	if (size <= r->buffer_cap)
		return LADE_OK;
	lade__host_free(host, r->buffer, r->buffer_cap);
	r->buffer = lade__host_alloc(host, size);
	r->buffer_cap = r->buffer ? size : 0;
	return r->buffer ? LADE_OK
	                 : lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
	                             "no memory for %zu bytes of chunks", size);
}

/* Asks for the tasks from 'first' on; 'count' is 0 behind the last one. */
static lade_status round_begin(round *r, size_t first, size_t task_count, lade_error *err)
{
	batch *b = r->batch;
	lade__round_table *table = r->table;
	uint64_t bytes = 0;
	size_t at = 0;
	r->first = first;
	r->count = r->asked = 0;
	while (first + r->count < task_count && r->count < LADE__ROUND_CHUNKS) {
		const task *t = &b->tasks[first + r->count];
		lade_error wrong;
		lade_status status = lade__read_check(b->frame, &t->at, &wrong);
		uint64_t block = lade__chunk_block_size(&t->at.chunk);
		table->range_of[r->count] = SIZE_MAX;
		if (status != LADE_OK) {
			lade__read_fail(b, t, status, &wrong);
		} else {
			if (r->asked && bytes + block > ROUND_BYTES)
				break;
			table->range_of[r->count] = r->asked;
			table->ranges[r->asked++] = lade__source_range(
				&b->frame->source, t->at.off, (size_t)block, NULL);
			bytes += block;
		}
		r->count++;
	}
	lade_status status = round_buffer(r, (size_t)bytes, err);
	if (status != LADE_OK) {
		r->count = 0;
		return status;
	}
	for (size_t i = 0; i < r->asked; i++) {
		table->ranges[i].dst.data = r->buffer + at;
		at += table->ranges[i].dst.size;
	}
	r->options = (lade_io_options){.struct_size = sizeof r->options,
	                               .threads = b->frame->options.threads,
	                               .errors = table->errors,
	                               .cancel = b->stop.cancel};
	if (r->asked)
		lade__reading_begin(&r->reading, b->frame->source.from, table->ranges, r->asked,
		                    &r->options);
	return LADE_OK;
}

static void round_task(void *ctx, size_t index, lade_worker *worker)
{
	round *r = ctx;
	const task *t = &r->batch->tasks[r->first + index];
	size_t i = r->table->range_of[index];
	if (i == SIZE_MAX)
		return;
	const lade_range *range = &r->table->ranges[i];
	if (range->status != LADE_OK)
		lade__read_fail(r->batch, t, range->status, &r->table->errors[i]);
	else
		task_run(r->batch, t, worker, range->dst.data);
}

static lade_status read_rounds(batch *b, size_t task_count, lade_error *err)
{
	round rounds[2] = {{.batch = b, .table = &b->rounds[0]},
	                   {.batch = b, .table = &b->rounds[1]}};
	const lade_allocator *host = lade__engine_host(b->frame->engine);
	lade_error late;
	lade_status status = round_begin(&rounds[0], 0, task_count, err), next = status;
	for (size_t k = 0; rounds[k].count; k ^= 1) {
		round *now = &rounds[k];
		/* What has been asked for has to come, whatever fails meanwhile. */
		next = round_begin(&rounds[k ^ 1], now->first + now->count,
		                   status == LADE_OK ? task_count : 0, &late);
		if (now->asked)
			lade__reading_end(&now->reading, NULL);
		lade__calls calls = {round_task, now, .count = now->count,
		                     .threads = b->frame->options.threads};
		if (status == LADE_OK)
			status = lade__engine_parallel(b->frame->engine, &calls, err);
		if (status == LADE_OK && next != LADE_OK)
			status = lade_fail(err, next, late.offset, "%s", late.message);
	}
	for (size_t k = 0; k < 2; k++)
		lade__host_free(host, rounds[k].buffer, rounds[k].buffer_cap);
	return status;
}

lade_status lade__read_on_host(batch *b, size_t task_count, lade_error *err)
{
	const lade__source *source = &b->frame->source;
	lade__calls calls = {lade__read_task_run, b, .count = task_count,
	                     .threads = b->frame->options.threads};
	if (!source->base && !source->local)
		return read_rounds(b, task_count, err);
	if (!source->base) {
		calls.fn = group_run;
		calls.count = make_groups(b, task_count);
	}
	return lade__engine_parallel(b->frame->engine, &calls, err);
}
