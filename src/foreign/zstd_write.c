/*
 * foreign_zstd_write.c: writes a .zst file, one frame, with libzstd's own threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <zstd.h>
#include <zstd_errors.h>

#include "foreign/foreign.h"

#include <inttypes.h>

typedef struct zstd_writer {
	ZSTD_CCtx *ctx;
	uint8_t *out;
	size_t out_cap;
} zstd_writer;

static lade_status zstd_failed(size_t rc, lade_error *err)
{
	lade_status status = ZSTD_getErrorCode(rc) == ZSTD_error_memory_allocation
	                             ? LADE_E_NOMEM
	                             : LADE_E_INTERNAL;
	return lade_fail(err, status, LADE_NO_OFFSET, "libzstd: %s", ZSTD_getErrorName(rc));
}

/* The window that was asked for, and the search for far matches in it. */
static lade_status set_window(lade_foreign_writer *w, lade_error *err)
{
	const zstd_writer *s = w->state;
	ZSTD_bounds logs = ZSTD_cParam_getBounds(ZSTD_c_windowLog);
	int log = logs.lowerBound;

	while (log < logs.upperBound && (uint64_t)1 << log < w->window)
		log++;
	if (w->window != (uint64_t)1 << log)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "max_window is %" PRIu64 ", want a power of two from %" PRIu64
		                 " to %" PRIu64,
		                 w->window, (uint64_t)1 << logs.lowerBound,
		                 (uint64_t)1 << logs.upperBound);
	size_t rc = ZSTD_CCtx_setParameter(s->ctx, ZSTD_c_windowLog, log);
	if (!ZSTD_isError(rc))
		rc = ZSTD_CCtx_setParameter(s->ctx, ZSTD_c_enableLongDistanceMatching, 1);
	return ZSTD_isError(rc) ? zstd_failed(rc, err) : LADE_OK;
}

static lade_status start(lade_foreign_writer *w, lade_error *err)
{
	zstd_writer *s = w->state;
	ZSTD_bounds levels = ZSTD_cParam_getBounds(ZSTD_c_compressionLevel);
	int level = w->level ? w->level : ZSTD_CLEVEL_DEFAULT;

	if (level < levels.lowerBound || level > levels.upperBound)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "zstd level %d, want %d to %d",
		                 level, levels.lowerBound, levels.upperBound);
	s->ctx = ZSTD_createCCtx();
	s->out_cap = ZSTD_CStreamOutSize();
	s->out = lade__host_alloc(w->alloc, s->out_cap);
	if (!s->ctx || !s->out)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a zstd encoder");
	size_t rc = ZSTD_CCtx_setParameter(s->ctx, ZSTD_c_compressionLevel, level);
	if (!ZSTD_isError(rc))
		rc = ZSTD_CCtx_setParameter(s->ctx, ZSTD_c_checksumFlag, w->checksum);
	if (ZSTD_isError(rc))
		return zstd_failed(rc, err);
	if (w->window) {
		lade_status status = set_window(w, err);
		if (status != LADE_OK)
			return status;
	}
	/* A library built without threads refuses this, and then works without. */
	if (w->threads > 1) {
		ZSTD_bounds workers = ZSTD_cParam_getBounds(ZSTD_c_nbWorkers);
		int count = w->threads > 256 ? 256 : (int)w->threads;
		if (count > workers.upperBound)
			count = workers.upperBound;
		ZSTD_CCtx_setParameter(s->ctx, ZSTD_c_nbWorkers, count);
	}
	if (w->size) {
		rc = ZSTD_CCtx_setPledgedSrcSize(s->ctx, w->size);
		if (ZSTD_isError(rc))
			return zstd_failed(rc, err);
	}
	if (w->dict) {
		lade_cspan d = lade_dict_data(w->dict);
		rc = ZSTD_CCtx_loadDictionary(s->ctx, d.data, d.size);
		if (ZSTD_isError(rc))
			return lade_fail(err, LADE_E_DICT, LADE_NO_OFFSET,
			                 "the dictionary was refused: %s", ZSTD_getErrorName(rc));
	}
	return LADE_OK;
}

static void stop(lade_foreign_writer *w)
{
	zstd_writer *s = w->state;

	ZSTD_freeCCtx(s->ctx);
	lade__host_free(w->alloc, s->out, s->out_cap);
}

/* Bytes that are fed before the writer looks whether it is to stop. */
#define STEP ((size_t)256 << 10)

/* Feeds 'size' bytes; with ZSTD_e_end goes on until the frame is complete. */
static lade_status feed(lade_foreign_writer *w, const void *data, size_t size,
                        ZSTD_EndDirective how, lade_error *err)
{
	zstd_writer *s = w->state;
	ZSTD_inBuffer from = {data, size, 0};

	for (;;) {
		ZSTD_outBuffer to = {s->out, s->out_cap, 0};
		if (lade__stopped(&w->stop))
			return lade__stop_fail(err);
		if (w->stop.cancel)
			from.size = size - from.pos < STEP ? size : from.pos + STEP;
		size_t left = ZSTD_compressStream2(s->ctx, &to, &from, how);
		if (ZSTD_isError(left))
			return zstd_failed(left, err);
		if (to.pos) {
			lade_status status = w->output.write(w->output.ctx, s->out, to.pos, err);
			if (status != LADE_OK)
				return status;
		}
		if (how == ZSTD_e_end ? left == 0 : from.pos == size)
			return LADE_OK;
	}
}

static lade_status write_bytes(lade_foreign_writer *w, const uint8_t *data, size_t size,
                               lade_error *err)
{
	return feed(w, data, size, ZSTD_e_continue, err);
}

static lade_status finish(lade_foreign_writer *w, lade_error *err)
{
	return feed(w, NULL, 0, ZSTD_e_end, err);
}

const lade__foreign_encoder lade__zstd_encoder = {
	.state_size = sizeof(zstd_writer),
	.start = start,
	.write = write_bytes,
	.finish = finish,
	.stop = stop,
};
