/*
 * copy.c: decodes the rest of a file to an output: one thread reads and decodes, while the caller's
 * writes.  And encodes all that an input gives.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "foreign/foreign.h"
#include "frame/ring.h"

/* Decoded bytes that are written, or read, at a time. */
#define PIECE ((size_t)1 << 20)

/* ---- decoding ------------------------------------------------------------------------------ */

typedef struct copy_slot {
	uint8_t *data; /* PIECE bytes, once used */
	size_t size;
	lade_status status; /* of what follows these */
	lade_error error;
} copy_slot;

typedef struct copy {
	lade_foreign_reader *reader;
	lade_output output;
	lade__ring ring;
	copy_slot slots[2]; /* one is filled, one is written */
	bool ended;
} copy;

static lade_status take(void *ctx, size_t at, bool *took, lade_error *err)
{
	const copy *c = ctx;
	(void)at, (void)err;
	*took = !c->ended;
	return LADE_OK;
}

/* The ring lets one thread work at a time, so that the slots get the bytes in order. */
static lade_status work(void *ctx, size_t at, lade_worker *worker, lade_error *err)
{
	copy *c = ctx;
	copy_slot *slot = &c->slots[at];
	size_t got = 1;
	(void)worker;
	if (!slot->data)
		slot->data = lade__host_alloc(c->reader->alloc, PIECE);
	if (!slot->data)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for a buffer of %zu bytes", PIECE);
	slot->status = LADE_OK;
	for (slot->size = 0; slot->size < PIECE && got; slot->size += got) {
		slot->status = lade__foreign_read(c->reader, slot->data + slot->size,
		                                  PIECE - slot->size, &got, &slot->error);
		if (slot->status != LADE_OK)
			break;
	}
	return LADE_OK;
}

static lade_status give(void *ctx, size_t at, bool *gave, lade_error *err)
{
	copy *c = ctx;
	const copy_slot *slot = &c->slots[at];
	lade_status status = LADE_OK;
	(void)gave;
	c->ended = slot->size < PIECE;
	if (slot->size)
		status = c->output.write(c->output.ctx, slot->data, slot->size, err);
	if (status == LADE_OK && slot->status != LADE_OK) {
		*err = slot->error;
		status = slot->status;
	}
	return status;
}

lade_status lade_foreign_reader_copy(lade_foreign_reader *reader, lade_output output,
                                     lade_error *err)
{
	copy c = {.reader = reader, .output = output};
	const lade__ring_calls calls = {
		.take = take, .work = work, .give = give, .ctx = &c, .take_first = true};
	lade_error error = {.offset = LADE_NO_OFFSET};
	lade_status status;
	if (!reader || !output.write)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 reader ? "output.write" : "reader");
	TRY(lade__ring_init(&c.ring, reader->engine, 1, true, reader->stop.cancel, &error));
	status = lade__ring_run(&c.ring, &calls, &error);
out:
	for (size_t i = 0; i < 2; i++)
		lade__host_free(reader->alloc, c.slots[i].data, PIECE);
	lade__ring_reset(&c.ring);
	/* What was decoded and not written is lost: a failure is final. */
	if (status != LADE_OK && reader->failed.status == LADE_OK) {
		reader->failed = error;
		reader->failed.status = status;
	}
	if (status != LADE_OK && err)
		*err = error;
	return status;
}

/* ---- encoding ------------------------------------------------------------------------------ */

lade_status lade_foreign_writer_copy(lade_foreign_writer *writer, lade_input input, lade_error *err)
{
	lade_error *error = writer ? &writer->failed : NULL;
	size_t got = 1;
	if (!writer || !input.read)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 writer ? "input.read" : "writer");
	/* A writer that has failed, or is finished, says so. */
	lade_status status = lade_foreign_writer_write(writer, NULL, 0, err);
	if (status != LADE_OK)
		return status;
	uint8_t *data = lade__host_alloc(writer->alloc, PIECE);
	if (!data)
		status = lade_fail(error, LADE_E_NOMEM, LADE_NO_OFFSET,
		                   "no memory for a buffer of %zu bytes", PIECE);
	while (status == LADE_OK && got) {
		got = 0;
		error->offset = LADE_NO_OFFSET;
		status = input.read(input.ctx, data, PIECE, &got, error);
		if (status == LADE_OK && got > PIECE)
			status = lade_fail(error, LADE_E_IO, LADE_NO_OFFSET,
			                   "the input returned %zu bytes, %zu were requested", got,
			                   PIECE);
		if (status == LADE_OK)
			status = lade_foreign_writer_write(writer, data, got, NULL);
	}
	lade__host_free(writer->alloc, data, PIECE);
	writer->failed.status = status;
	if (status != LADE_OK && err)
		*err = writer->failed;
	return status;
}
