/*
 * decompress.c: one file back to bytes: .lade frames and other tools' formats, told apart by
 * their first bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/work.h"

#include <stdlib.h>

#include "cli/commands.h"
#include "cli/npy.h"

#define COPY_SIZE ((size_t)1 << 20)

static lade_status decompress_foreign(const cli_work *work, lade_format format, cli_in *in,
                                      cli_out *out, lade_error *err)
{
	const cli_options *o = work->options;
	lade_foreign_options f = {.struct_size = sizeof f,
	                          .threads = o->threads,
	                          .max_window = o->max_window,
	                          .ignore_checksum = o->checksum == LADE_CHECKSUM_NONE,
	                          .dict = work->dict};
	lade_foreign_reader *reader = NULL;
	lade_output output = cli_out_output(out);
	uint8_t *buffer = malloc(COPY_SIZE);
	size_t got = 1;

	if (!buffer)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a buffer");
	lade_status status =
		lade_foreign_reader_new(work->engine, format, cli_in_input(in), &f, &reader, err);
	while (status == LADE_OK && got) {
		status = lade_foreign_reader_read(reader, buffer, COPY_SIZE, &got, err);
		if (status == LADE_OK && got)
			status = output.write(output.ctx, buffer, got, err);
	}
	lade_foreign_reader_free(reader);
	free(buffer);
	return status;
}

/* An array goes back behind the header that NumPy gave it. */
static lade_status write_npy_header(const lade_frame_info *info, cli_out *out, lade_error *err)
{
	char text[NPY_HEADER_MAX];
	npy header = {
		.dtype = info->dtype, .fortran_order = info->fortran_order, .ndim = info->ndim};
	lade_output output = cli_out_output(out);

	for (unsigned i = 0; i < info->ndim; i++)
		header.shape[i] = info->shape[i];
	return output.write(output.ctx, text, npy_write(&header, text), err);
}

static lade_status decompress_lade(const cli_work *work, cli_in *in, cli_out *out,
                                   lade_error *err)
{
	const cli_options *o = work->options;
	lade_frame_read_options f = {.struct_size = sizeof f,
	                             .policy = o->checksum ? LADE_NO_COMPUTE_AND_VERIFY_IF_PRESENT
	                                                   : LADE_NO_COMPUTE_NO_VERIFY,
	                             .threads = o->threads,
	                             .dict = work->dict};
	lade_frame_stream *stream = NULL;

	lade_status status =
		lade_frame_stream_new(work->engine, cli_in_input(in), &f, &stream, err);
	if (status != LADE_OK)
		return status;
	const lade_frame_info *info = lade_frame_stream_get_info(stream);
	if (info->has_shape && !o->raw)
		status = write_npy_header(info, out, err);
	if (status == LADE_OK)
		status = lade_frame_stream_copy(stream, cli_out_output(out), err);
	if (status == LADE_OK) {
		lade_cspan rest = lade_frame_stream_rest(stream);
		status = cli_in_return(in, rest.data, rest.size, err);
	}
	lade_frame_stream_free(stream);
	return status;
}

lade_status cli_decompress(const cli_work *work, cli_in *in, cli_out *out, lade_error *err)
{
	/* Frames may stand in a row; the other formats read to the end by themselves. */
	for (bool first = true;; first = false) {
		const uint8_t *data;
		size_t have;
		lade_status status = cli_in_peek(in, LADE_FORMAT_PEEK, &data, &have, err);
		if (status != LADE_OK || (have == 0 && !first))
			return status;
		lade_format format = lade_format_detect(data, have);
		if (have == 0)
			return lade_fail(err, LADE_E_TRUNCATED, 0, "the file is empty");
		if (format != LADE_FORMAT_LADE && !first)
			return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
			                 "bytes that are no frame follow the last one");
		if (format == LADE_FORMAT_UNKNOWN)
			return lade_fail(err, LADE_E_CORRUPT, 0, "is in no format that lade knows");
		if (format != LADE_FORMAT_LADE)
			return decompress_foreign(work, format, in, out, err);
		status = decompress_lade(work, in, out, err);
		if (status != LADE_OK)
			return status;
	}
}
