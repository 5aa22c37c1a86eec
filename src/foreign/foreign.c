/*
 * foreign.c: other tools' formats: what a file is, and the life of its readers and writers.
 * The formats themselves stand in the foreign_*.c files beside this one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/options.h"
#include "base/try.h"
#include "engine/engine.h"
#include "foreign/foreign.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#define INPUT_CAP ((size_t)1 << 20)
/* Bytes that a reader gives at most before it looks whether it is to stop. */
#define STEP ((size_t)1 << 20)

#define MAX_WINDOW_DEFAULT ((uint64_t)128 << 20)

/* ---- what a file is --------------------------------------------------------------------- */

typedef struct signature {
	lade_format format;
	uint8_t size;
	uint8_t bytes[10];
} signature;

static const signature signatures[] = {
	{LADE_FORMAT_LADE, 8, {0x89, 'L', 'A', 'D', 'E', '\r', '\n', 0x1A}},
	{LADE_FORMAT_ZST, 4, {0x28, 0xB5, 0x2F, 0xFD}},
	{LADE_FORMAT_LZ4, 4, {0x04, 0x22, 0x4D, 0x18}},
	{LADE_FORMAT_LZ4, 4, {0x02, 0x21, 0x4C, 0x18}}, /* legacy */
	{LADE_FORMAT_GZ, 2, {0x1F, 0x8B}},
	{LADE_FORMAT_SZ, 10, {0xFF, 0x06, 0x00, 0x00, 's', 'N', 'a', 'P', 'p', 'Y'}},
};

lade_format lade_format_detect(const void *data, size_t size)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < sizeof signatures / sizeof signatures[0]; i++) {
		const signature *s = &signatures[i];
		if (size >= s->size && memcmp(p, s->bytes, s->size) == 0)
			return s->format;
	}
	if (size >= 4 && (p[0] & 0xF0) == 0x50 && p[1] == 0x2A && p[2] == 0x4D && p[3] == 0x18)
		return LADE_FORMAT_ZST;
	/* RFC 1950, 2.2: method 8, a window of at most 32 KiB, and a check over both bytes. */
	if (size >= 2 && (p[0] & 0x0F) == 8 && p[0] >> 4 <= 7 && (p[0] * 256 + p[1]) % 31 == 0)
		return LADE_FORMAT_ZZ;
	return LADE_FORMAT_UNKNOWN;
}

static const char *const names[] = {
	[LADE_FORMAT_LADE] = "lade", [LADE_FORMAT_ZST] = "zst", [LADE_FORMAT_GZ] = "gz",
	[LADE_FORMAT_ZZ] = "zz",     [LADE_FORMAT_LZ4] = "lz4", [LADE_FORMAT_SZ] = "sz",
};

#define NAME_COUNT (sizeof names / sizeof names[0])

const char *lade_format_name(lade_format format)
{
	return (size_t)format < NAME_COUNT && names[format] ? names[format] : "?";
}

lade_format lade_format_find(const char *name)
{
	for (size_t i = 0; name && i < NAME_COUNT; i++) {
		if (names[i] && strcasecmp(names[i], name) == 0)
			return (lade_format)i;
	}
	return LADE_FORMAT_UNKNOWN;
}

/* ---- encoded bytes ------------------------------------------------------------------------- */

static lade_status in_grow(lade__in *in, size_t cap, lade_error *err)
{
	uint8_t *data = lade__host_alloc(in->alloc, cap);
	if (!data)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for %zu bytes of input", cap);
	size_t have = lade__in_have(in);
	if (have)
		memcpy(data, lade__in_at(in), have);
	lade__host_free(in->alloc, in->data, in->cap);
	in->data = data;
	in->cap = cap;
	in->pos = 0;
	in->end = have;
	return LADE_OK;
}

lade_status lade__in_want(lade__in *in, size_t size, lade_error *err)
{
	lade_status status = LADE_OK;

	if (lade__in_have(in) >= size)
		return LADE_OK;
	if (size > in->cap || !in->data)
		TRY(in_grow(in, size > INPUT_CAP ? size : INPUT_CAP, err));
	if (in->cap - in->pos < size) {
		memmove(in->data, lade__in_at(in), lade__in_have(in));
		in->end -= in->pos;
		in->pos = 0;
	}
	if (in->pos == in->end)
		in->pos = in->end = 0;
	while (!in->eof && lade__in_have(in) < size) {
		size_t got = 0;
		TRY(in->input.read(in->input.ctx, in->data + in->end, in->cap - in->end, &got,
		                   err));
		if (got > in->cap - in->end)
			return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET,
			                 "the input returned %zu bytes, %zu were requested", got,
			                 in->cap - in->end);
		in->eof = got == 0;
		in->end += got;
	}
out:
	return status;
}

/* ---- readers ------------------------------------------------------------------------------- */

static const lade__foreign_decoder *decoder_of(lade_format format)
{
	switch (format) {
	case LADE_FORMAT_ZST:
	case LADE_FORMAT_LZ4:
		return &lade__frames_decoder;
	case LADE_FORMAT_GZ:
	case LADE_FORMAT_ZZ:
		return &lade__gzip_decoder;
	case LADE_FORMAT_SZ:
		return &lade__snappy_decoder;
	default:
		return NULL;
	}
}

lade_status lade_foreign_reader_new(lade_engine *engine, lade_format format, lade_input input,
                                    const lade_foreign_options *options,
                                    lade_foreign_reader **out, lade_error *err)
{
	const lade__foreign_decoder *decoder = decoder_of(format);
	lade_foreign_options o;
	lade_status status;

	if (!engine || !out || !input.read)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "engine, input and out are needed");
	*out = NULL;
	status = lade__options_read(&o, sizeof o, options, "foreign options", err);
	if (status != LADE_OK)
		return status;
	if (!decoder)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "format %d cannot be read",
		                 (int)format);

	const lade_allocator *alloc = lade__engine_host(engine);
	lade_foreign_reader *r = lade__host_alloc(alloc, sizeof *r);
	if (!r)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a reader");
	memset(r, 0, sizeof *r);
	r->engine = engine;
	r->alloc = alloc;
	r->format = format;
	r->max_window = o.max_window ? o.max_window : MAX_WINDOW_DEFAULT;
	r->ignore_checksum = o.ignore_checksum;
	r->strict = o.strict;
	r->dict = o.dict;
	r->stop = lade__stop_of(o.cancel);
	r->in.input = input;
	r->in.alloc = alloc;
	r->decoder = decoder;
	r->state = lade__host_alloc(alloc, decoder->state_size);
	if (!r->state) {
		status = lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a reader");
		goto out;
	}
	memset(r->state, 0, decoder->state_size);
	TRY(decoder->start(r, err));
out:
	if (status != LADE_OK) {
		lade_foreign_reader_free(r);
		return status;
	}
	*out = r;
	return LADE_OK;
}

lade_status lade__foreign_read(lade_foreign_reader *r, void *dst, size_t cap, size_t *got,
                               lade_error *err)
{
	*got = 0;
	if (r->failed.status == LADE_OK && !r->done) {
		r->failed.offset = LADE_NO_OFFSET;
		r->failed.status = r->decoder->read(r, dst, cap, got, &r->failed);
		r->done = r->failed.status == LADE_OK && *got == 0;
	}
	if (r->failed.status != LADE_OK) {
		*got = 0;
		if (err)
			*err = r->failed;
	}
	return r->failed.status;
}

lade_status lade_foreign_reader_read(lade_foreign_reader *r, void *dst, size_t cap, size_t *got,
                                     lade_error *err)
{
	if (!got)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "got is needed");
	*got = 0;
	if (!r || (!dst && cap))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "reader and dst are needed");
	if (cap == 0)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "cap is 0, want at least 1");
	r->stop.caller = pthread_self();
	if (lade__stopped(&r->stop))
		return lade__stop_fail(err);
	if (r->stop.cancel && cap > STEP)
		cap = STEP;
	return lade__foreign_read(r, dst, cap, got, err);
}

uint64_t lade_foreign_reader_frames(const lade_foreign_reader *r)
{
	return r ? r->frames : 0;
}

void lade_foreign_reader_free(lade_foreign_reader *r)
{
	if (!r)
		return;
	if (r->state) {
		r->decoder->stop(r);
		lade__host_free(r->alloc, r->state, r->decoder->state_size);
	}
	lade__host_free(r->alloc, r->in.data, r->in.cap);
	lade__host_free(r->alloc, r, sizeof *r);
}

/* ---- writers ------------------------------------------------------------------------------- */

static const lade__foreign_encoder *encoder_of(lade_format format)
{
	switch (format) {
	case LADE_FORMAT_ZST:
		return &lade__zstd_encoder;
	case LADE_FORMAT_GZ:
	case LADE_FORMAT_LZ4:
		return &lade__blocks_encoder;
	default:
		return NULL;
	}
}

lade_status lade_foreign_writer_new(lade_engine *engine, lade_format format, lade_output output,
                                    const lade_foreign_options *options,
                                    lade_foreign_writer **out, lade_error *err)
{
	const lade__foreign_encoder *encoder = encoder_of(format);
	lade_foreign_options o;
	lade_status status;

	if (!engine || !out || !output.write)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "engine, output and out are needed");
	*out = NULL;
	status = lade__options_read(&o, sizeof o, options, "foreign options", err);
	if (status != LADE_OK)
		return status;
	if (!encoder)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "format %d cannot be written",
		                 (int)format);

	const lade_allocator *alloc = lade__engine_host(engine);
	lade_foreign_writer *w = lade__host_alloc(alloc, sizeof *w);
	if (!w)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a writer");
	memset(w, 0, sizeof *w);
	w->engine = engine;
	w->alloc = alloc;
	w->format = format;
	w->output = output;
	w->threads = o.threads ? o.threads : lade_engine_threads(engine);
	w->level = o.level;
	w->window = o.max_window;
	w->checksum = o.checksum;
	w->size = o.size;
	w->dict = o.dict;
	w->stop = lade__stop_of(o.cancel);
	w->encoder = encoder;
	w->state = lade__host_alloc(alloc, encoder->state_size);
	if (!w->state) {
		status = lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a writer");
		goto out;
	}
	memset(w->state, 0, encoder->state_size);
	TRY(encoder->start(w, err));
out:
	if (status != LADE_OK) {
		lade_foreign_writer_free(w);
		return status;
	}
	*out = w;
	return LADE_OK;
}

static lade_status wrong_size(lade_foreign_writer *w, uint64_t came)
{
	return lade_fail(&w->failed, LADE_E_STATE, LADE_NO_OFFSET,
	                 "%" PRIu64 " bytes were written, options.size is %" PRIu64, came, w->size);
}

lade_status lade_foreign_writer_write(lade_foreign_writer *w, const void *data, size_t size,
                                      lade_error *err)
{
	if (!w || (!data && size))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "writer and data are needed");
	if (w->failed.status == LADE_OK && w->finished)
		return lade_fail(err, LADE_E_STATE, LADE_NO_OFFSET, "the writer is finished");
	if (w->failed.status == LADE_OK && w->size && size > w->size - w->taken)
		w->failed.status = wrong_size(w, w->taken + size);
	w->stop.caller = pthread_self();
	if (w->failed.status == LADE_OK && size) {
		w->failed.status = w->encoder->write(w, data, size, &w->failed);
		w->taken += size;
	}
	if (w->failed.status != LADE_OK && err)
		*err = w->failed;
	return w->failed.status;
}

lade_status lade_foreign_writer_finish(lade_foreign_writer *w, lade_error *err)
{
	if (!w)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "writer is needed");
	if (w->failed.status == LADE_OK && w->finished)
		return lade_fail(err, LADE_E_STATE, LADE_NO_OFFSET, "the writer is finished");
	if (w->failed.status == LADE_OK && w->size && w->size != w->taken)
		w->failed.status = wrong_size(w, w->taken);
	if (w->failed.status == LADE_OK) {
		w->failed.status = w->encoder->finish(w, &w->failed);
		w->finished = true;
	}
	if (w->failed.status != LADE_OK && err)
		*err = w->failed;
	return w->failed.status;
}

void lade_foreign_writer_free(lade_foreign_writer *w)
{
	if (!w)
		return;
	if (w->state) {
		w->encoder->stop(w);
		lade__host_free(w->alloc, w->state, w->encoder->state_size);
	}
	lade__host_free(w->alloc, w, sizeof *w);
}
