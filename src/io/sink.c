/*
 * sink.c: a call that writes objects.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io/io.h"

#include "base/try.h"

static lade_status check_write(const lade_write *w, size_t index, lade_error *err)
{
	lade_status status =
		lade__io_place_check(w->src.place, w->src.data, w->src.size, "write", index, err);
	if (status == LADE_OK && (unsigned)w->kind > LADE_DELETE_IF_VERSION)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "write %zu: kind %d is unknown",
		                 index, (int)w->kind);
	if (status == LADE_OK && w->kind == LADE_WRITE_IF_VERSION && !w->want)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "write %zu: it depends on a version, and 'want' is NULL", index);
	return status;
}

/* Writes what is on a device, through a staging buffer. */
static lade_status write_staged(lade_sink sink, lade_write *w, const lade_io_options *options,
                                lade_error *err)
{
	lade__staging staging;
	lade_write here = *w;
	uint64_t devices = 0;
	if (!lade__staging_alloc(&staging, options, w->src.place.device, w->src.size))
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for a staging buffer of %zu bytes", w->src.size);
	lade_status status;
	TRY(lade__io_copy((lade_span){staging.data, w->src.size, staging.place}, w->src,
	                  options->stream, &devices, err));
	TRY(lade__io_copies_wait(devices, options->stream, err));
	here.src = (lade_cspan){staging.data, w->src.size, staging.place};
	status = sink.ops->write(sink.ctx, &here, options, err);
out:
	lade__staging_free(&staging);
	return status;
}

/* Does one write, and notes what became of it. */
static void write_one(lade_sink sink, lade_write *w, const lade_io_options *options,
                      lade__stop *stop, lade_error *error)
{
	*error = (lade_error){.offset = LADE_NO_OFFSET};
	if (w->version)
		w->version->size = 0;
	if (lade__stopped(stop))
		w->status = LADE_E_CANCELLED;
	else if (w->src.size && !lade_kind_is_host(w->src.place.kind))
		w->status = write_staged(sink, w, options, error);
	else
		w->status = sink.ops->write(sink.ctx, w, options, error);
	if (w->status != LADE_OK && !error->message[0])
		lade_fail(error, w->status, LADE_NO_OFFSET, "%s", lade_status_text(w->status));
}

static lade_status write_all(lade_sink sink, lade_write *writes, size_t count,
                             const lade_io_options *options, lade_error *err)
{
	lade_status first =
		lade__ops_check(sink.ops, sizeof *sink.ops, LADE__SIZE_TO(lade_sink_ops, close),
	                        "sink.ops", err);
	if (first == LADE_OK && (!sink.ops->write || (!writes && count)))
		first = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                  sink.ops->write ? "writes" : "sink.ops->write");
	for (size_t i = 0; i < count && first == LADE_OK; i++)
		first = check_write(&writes[i], i, err);
	for (size_t i = 0; writes && i < count; i++) {
		writes[i].status = first;
		if (first != LADE_OK && options->errors)
			options->errors[i] = *err;
	}
	if (first != LADE_OK)
		return first;
	lade__stop stop = lade__stop_of(options->cancel);
	for (size_t i = 0; i < count; i++) {
		lade_error error;
		write_one(sink, &writes[i], options, &stop, &error);
		lade_status status = writes[i].status;
		if (status == LADE_OK)
			continue;
		if (options->errors)
			options->errors[i] = error;
		if (first == LADE_OK)
			first = lade_fail(err, status, error.offset, "write %zu: %s", i,
			                  error.message);
	}
	return first;
}

lade_status lade_sink_write(lade_sink sink, lade_write *writes, size_t count,
                            const lade_io_options *given, lade_error *err)
{
	lade_io_options options;
	lade_error unwanted;
	lade__array array = {.own = writes, .count = count, .own_size = sizeof *writes};
	lade_status status = lade__io_options_read(&options, given, LADE__WRITE_0_2, err);
	if (status == LADE_OK)
		status = lade__array_open(&array, options.request_size, "write", err);
	if (status != LADE_OK)
		return status;
	status = write_all(sink, array.own, count, &options, err ? err : &unwanted);
	lade__array_close(&array, true);
	return status;
}

void lade_sink_close(lade_sink sink)
{
	if (sink.ops && sink.ops->close)
		sink.ops->close(sink.ctx);
}
