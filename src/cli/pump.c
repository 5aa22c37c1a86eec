/*
 * pump.c: decoding and writing at once, in two ways: a thread that writes behind one that decodes,
 * for what comes in order; and threads that do both, for frames in files.  A device decodes in
 * either way.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pump.h"

#include "cli/gpu.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* ---- one decodes, one writes ---------------------------------------------------------------- */

#define BUFFERS 2

/* Buffers are filled and written in turn: written <= filled <= written + BUFFERS. */
typedef struct pump {
	cli_out *out;
	lade_span data[BUFFERS];
	size_t size[BUFFERS];
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	uint64_t filled, written;
	bool ended; /* nothing more will be filled */
	lade_error failed;
} pump;

static void *write_loop(void *arg)
{
	pump *p = arg;
	lade_output output = cli_out_output(p->out);

	pthread_mutex_lock(&p->mutex);
	for (;;) {
		while (p->written == p->filled && !p->ended)
			pthread_cond_wait(&p->changed, &p->mutex);
		if (p->written == p->filled)
			break;
		size_t at = (size_t)(p->written % BUFFERS);
		bool going = p->failed.status == LADE_OK;
		pthread_mutex_unlock(&p->mutex);
		lade_error err;
		lade_status status = LADE_OK;
		if (going)
			status = output.write(output.ctx, p->data[at].data, p->size[at], &err);
		pthread_mutex_lock(&p->mutex);
		if (status != LADE_OK)
			p->failed = err;
		p->written++;
		pthread_cond_signal(&p->changed);
	}
	pthread_mutex_unlock(&p->mutex);
	return NULL;
}

/* Fills a buffer as far as it goes; '*size' is below 'cap' at the end or when reading fails. */
static lade_status fill(lade_input from, uint8_t *data, size_t cap, size_t *size, lade_error *err)
{
	lade_status status = LADE_OK;
	size_t got = 1;

	*size = 0;
	while (status == LADE_OK && got && *size < cap) {
		got = 0;
		status = from.read(from.ctx, data + *size, cap - *size, &got, err);
		*size += got;
	}
	return status;
}

static lade_status fill_loop(pump *p, lade_input from, size_t cap, lade_error *err)
{
	lade_status status = LADE_OK;
	bool more = true;

	while (status == LADE_OK && more) {
		pthread_mutex_lock(&p->mutex);
		while (p->filled - p->written == BUFFERS)
			pthread_cond_wait(&p->changed, &p->mutex);
		bool going = p->failed.status == LADE_OK;
		pthread_mutex_unlock(&p->mutex);
		if (!going)
			break;
		size_t at = (size_t)(p->filled % BUFFERS), size;
		status = fill(from, p->data[at].data, cap, &size, err);
		more = size == cap;
		if (size == 0)
			break;
		pthread_mutex_lock(&p->mutex);
		p->size[at] = size;
		p->filled++;
		pthread_cond_signal(&p->changed);
		pthread_mutex_unlock(&p->mutex);
	}
	return status;
}

/* Without a thread: one after the other. */
static lade_status copy(lade_input from, uint8_t *data, size_t cap, cli_out *out, lade_error *err)
{
	lade_output output = cli_out_output(out);
	lade_status status, written = LADE_OK;
	lade_error error;
	size_t size;

	do {
		status = fill(from, data, cap, &size, err);
		if (size)
			written = output.write(output.ctx, data, size, &error);
	} while (status == LADE_OK && written == LADE_OK && size == cap);
	if (status == LADE_OK && written != LADE_OK) {
		*err = error;
		status = written;
	}
	return status;
}

lade_status cli_pump(lade_input from, size_t size, int32_t device, cli_out *out, lade_error *err)
{
	pump p = {.out = out,
	          .mutex = PTHREAD_MUTEX_INITIALIZER,
	          .changed = PTHREAD_COND_INITIALIZER};
	lade_status status = LADE_OK;
	pthread_t writer;

	for (size_t i = 0; i < BUFFERS && status == LADE_OK; i++)
		status = cli_buffer_new(size, device, &p.data[i], err);
	if (status != LADE_OK) {
		/* Nothing has been started. */
	} else if (out->fd < 0 || pthread_create(&writer, NULL, write_loop, &p) != 0) {
		status = copy(from, p.data[0].data, size, out, err);
	} else {
		status = fill_loop(&p, from, size, err);
		pthread_mutex_lock(&p.mutex);
		p.ended = true;
		pthread_cond_signal(&p.changed);
		pthread_mutex_unlock(&p.mutex);
		pthread_join(writer, NULL);
		if (status == LADE_OK && p.failed.status != LADE_OK) {
			*err = p.failed;
			status = p.failed.status;
		}
	}
	for (size_t i = 0; i < BUFFERS; i++)
		cli_buffer_free(&p.data[i]);
	return status;
}

/* ---- all decode and write -------------------------------------------------------------------- */

/* Chunks smaller than this are taken several at a time. */
#define PIECE_MIN ((size_t)256 << 10)
#define THREADS_MAX 256u

typedef struct scatter {
	lade_frame *frame;
	cli_out *out;
	uint64_t size;  /* decoded bytes */
	uint64_t start; /* where they begin in the file */
	size_t piece;   /* bytes taken at a time, whole chunks */
	int32_t device; /* CLI_NO_GPU: the pieces are pageable */
	_Atomic uint64_t next;
	_Atomic bool stop;
	pthread_mutex_t mutex;
	lade_error failed; /* of the failure that comes first in the frame */
	uint64_t failed_at;
} scatter;

static void note_failure(scatter *s, uint64_t at, const lade_error *err)
{
	pthread_mutex_lock(&s->mutex);
	if (s->failed.status == LADE_OK || at < s->failed_at) {
		s->failed = *err;
		s->failed_at = at;
	}
	pthread_mutex_unlock(&s->mutex);
	atomic_store(&s->stop, true);
}

static void *scatter_loop(void *arg)
{
	scatter *s = arg;
	lade_error err = {.offset = LADE_NO_OFFSET};
	lade_span buffer;

	if (cli_buffer_new(s->piece, s->device, &buffer, &err) != LADE_OK) {
		note_failure(s, 0, &err);
		return NULL;
	}
	while (!atomic_load(&s->stop)) {
		uint64_t off = atomic_fetch_add(&s->next, s->piece);
		if (off >= s->size)
			break;
		size_t size = s->size - off < s->piece ? (size_t)(s->size - off) : s->piece;
		lade_frame_range range = {off, {buffer.data, size, buffer.place}};
		lade_status status = lade_frame_read(s->frame, &range, 1, NULL, NULL, &err);
		if (status == LADE_OK)
			status = cli_out_write_at(s->out, s->start + off, buffer.data, size,
			                          &err);
		if (status != LADE_OK)
			note_failure(s, off, &err);
	}
	cli_buffer_free(&buffer);
	return NULL;
}

/* 'size' bytes, rounded down to whole chunks, but at least one. */
static size_t whole_chunks(const lade_frame_info *info, size_t size)
{
	return info->chunk_size < size ? size / info->chunk_size * info->chunk_size
	                               : info->chunk_size;
}

static lade_status scatter_all(lade_frame *frame, unsigned threads, size_t piece, int32_t device,
                               cli_out *out, lade_error *err)
{
	scatter s = {.frame = frame,
	             .out = out,
	             .size = lade_frame_get_info(frame)->size,
	             .start = out->written,
	             .piece = piece,
	             .device = device,
	             .mutex = PTHREAD_MUTEX_INITIALIZER};
	pthread_t ids[THREADS_MAX];
	unsigned started = 0;

	if (s.size < s.piece && s.size)
		s.piece = (size_t)s.size;
	uint64_t pieces = s.size / s.piece + 1;
	if (threads > pieces)
		threads = (unsigned)pieces;
	if (threads > THREADS_MAX)
		threads = THREADS_MAX;
	/* The caller's thread is one of them; those that cannot be had are done without. */
	while (started + 1 < threads &&
	       pthread_create(&ids[started], NULL, scatter_loop, &s) == 0)
		started++;
	scatter_loop(&s);
	while (started)
		pthread_join(ids[--started], NULL);
	out->written += s.size;
	if (s.failed.status != LADE_OK)
		*err = s.failed;
	return s.failed.status;
}

lade_status cli_scatter(lade_frame *frame, unsigned threads, cli_out *out, lade_error *err)
{
	size_t piece = whole_chunks(lade_frame_get_info(frame), PIECE_MIN);

	return scatter_all(frame, threads, piece, CLI_NO_GPU, out, err);
}

/* ---- a device decodes ---------------------------------------------------------------------- */

/* Enough for some waves of the device; and the least, where the frame is small. */
#define GPU_PIECE ((size_t)32 << 20)
#define GPU_PIECE_LEAST ((size_t)2 << 20)
/* One piece is decoded while one is written and one read or verified. */
#define GPU_THREADS 3u

/* Gives a frame's bytes in order. */
typedef struct in_order {
	lade_frame *frame;
	int32_t device;
	uint64_t at;
	bool careful; /* a piece has failed: chunk by chunk up to the one that is bad */
} in_order;

static lade_status read_in_order(void *ctx, void *dst, size_t cap, size_t *got, lade_error *err)
{
	in_order *in = ctx;
	const lade_frame_info *info = lade_frame_get_info(in->frame);
	uint64_t left = info->size - in->at;
	lade_status status;

	for (;; in->careful = true) {
		size_t most = in->careful ? info->chunk_size : cap;
		most = most < cap ? most : cap;
		size_t size = left < most ? (size_t)left : most;
		lade_frame_range range = {in->at, {dst, size, {LADE_PINNED, in->device}}};
		status = lade_frame_read(in->frame, &range, 1, NULL, NULL, err);
		*got = status == LADE_OK ? size : 0;
		if (status == LADE_OK || in->careful)
			break;
	}
	in->at += *got;
	return status;
}

lade_status cli_gpu_frame(lade_frame *frame, int32_t device, cli_out *out, lade_error *err)
{
	const lade_frame_info *info = lade_frame_get_info(frame);
	uint64_t share = info->size / (2 * GPU_THREADS);
	size_t piece = share > GPU_PIECE ? GPU_PIECE
	               : share < GPU_PIECE_LEAST ? GPU_PIECE_LEAST : (size_t)share;
	in_order in = {.frame = frame, .device = device};

	piece = whole_chunks(info, piece);
	if (out->fd < 0 || out->temp)
		return scatter_all(frame, GPU_THREADS, piece, device, out, err);
	return cli_pump((lade_input){&in, read_in_order}, piece, device, out, err);
}
