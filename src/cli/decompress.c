/*
 * decompress.c: one file back to bytes: .lade frames and other tools' formats, told apart by
 * their first bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/work.h"

#include "cli/commands.h"
#include "cli/gpu.h"
#include "cli/npy.h"
#include "cli/pump.h"

#define COPY_SIZE ((size_t)1 << 20)

static lade_status read_foreign(void *ctx, void *dst, size_t cap, size_t *got, lade_error *err)
{
	return lade_foreign_reader_read(ctx, dst, cap, got, err);
}

static lade_status decompress_foreign(const cli_work *work, lade_format format, cli_in *in,
                                      cli_out *out, lade_error *err)
{
	const cli_options *o = work->options;
	lade_foreign_options f = {.struct_size = sizeof f,
	                          .threads = o->threads,
	                          .max_window = o->max_window,
	                          .ignore_checksum = o->checksum == LADE_CHECKSUM_NONE,
	                          .strict = o->strict,
	                          .dict = work->dict};
	lade_foreign_reader *reader = NULL;

	lade_status status =
		lade_foreign_reader_new(work->engine, format, cli_in_input(in), &f, &reader, err);
	if (status == LADE_OK)
		status = cli_pump((lade_input){reader, read_foreign}, COPY_SIZE, CLI_NO_GPU,
		                  out, err);
	lade_foreign_reader_free(reader);
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

static lade_frame_read_options read_options(const cli_work *work)
{
	const cli_options *o = work->options;
	return (lade_frame_read_options){.struct_size = sizeof(lade_frame_read_options),
	                                 .verify = o->checksum ? LADE_VERIFY_IF_PRESENT
	                                                       : LADE_VERIFY_NEVER,
	                                 .flags = o->strict ? LADE_FRAME_STRICT : 0,
	                                 .threads = o->threads,
	                                 .max_chunk_size = (size_t)o->max_window,
	                                 .dict = work->dict};
}

static lade_status read_pipe(void *ctx, void *dst, size_t cap, size_t *got, lade_error *err)
{
	return lade_frame_pipe_read(ctx, dst, cap, got, err);
}

/* A frame as it comes. */
static lade_status decompress_pipe(const cli_work *work, cli_in *in, cli_out *out,
                                   lade_error *err)
{
	const cli_options *o = work->options;
	lade_frame_read_options f = read_options(work);
	lade_frame_pipe *pipe = NULL;

	lade_status status =
		lade_frame_pipe_new(work->engine, cli_in_input(in), &f, &pipe, err);
	if (status != LADE_OK)
		return status;
	const lade_frame_info *info = lade_frame_pipe_get_info(pipe);
	if (info->has_shape && !o->raw)
		status = write_npy_header(info, out, err);
	/* The library decodes and writes on as many threads as there are; with one, writing is
	 * worth a second one. */
	size_t size = info->chunk_size > COPY_SIZE ? info->chunk_size : COPY_SIZE;
	if (status == LADE_OK && lade_engine_threads(work->engine) == 1)
		status = cli_pump((lade_input){pipe, read_pipe}, size, CLI_NO_GPU, out,
		                  err);
	else if (status == LADE_OK)
		status = lade_frame_pipe_copy(pipe, cli_out_output(out), err);
	if (status == LADE_OK) {
		lade_cspan rest = lade_frame_pipe_rest(pipe);
		status = cli_in_return(in, rest.data, rest.size, err);
	}
	lade_frame_pipe_free(pipe);
	return status;
}

/*
 * A file that is one frame, to a file.  '*done' is false when it is anything else: then nothing has
 * been read or written.
 */
static lade_status decompress_file(const cli_work *work, cli_in *in, cli_out *out, bool *done,
                                   lade_error *err)
{
	unsigned threads = lade_engine_threads(work->engine);
	lade_frame_read_options f = read_options(work);
	lade_frame *frame = NULL;

	*done = false;
	f.threads = 1;
	if (threads == 1 || !in->has_size || in->is_stdin || !out->temp ||
	    lade_frame_open(work->engine, cli_in_source(in), &f, &frame, NULL) != LADE_OK)
		return LADE_OK;
	const lade_frame_info *info = lade_frame_get_info(frame);
	lade_status status = LADE_OK;
	/* Few chunks are better shared: the library spreads one over threads where it can. */
	if (info->chunk_count >= threads) {
		*done = true;
		if (info->has_shape && !work->options->raw)
			status = write_npy_header(info, out, err);
		if (status == LADE_OK)
			status = cli_scatter(frame, threads, out, err);
		in->taken = info->encoded_size;
	}
	lade_frame_close(frame);
	return status;
}

/*
 * The same with a device, to anywhere.  Where the device cannot, a warning says why, and '*done'
 * is false.
 */
static lade_status decompress_gpu(const cli_work *work, cli_in *in, cli_out *out, bool *done,
                                  lade_error *err)
{
	const cli_options *o = work->options;
	lade_frame_read_options f = read_options(work);
	lade_frame *frame = NULL;
	lade_error why;

	*done = false;
	f.where = LADE_WHERE_DEVICE;
	f.device = o->gpu;
	if (!in->has_size) {
		cli_warn("%s: decoded on the host: --gpu is for files, not for pipes", in->name);
		return LADE_OK;
	}
	if (lade_frame_open(work->engine, cli_in_source(in), &f, &frame, &why) != LADE_OK) {
		cli_warn("%s: decoded on the host: --gpu is for files of one whole frame: %s",
		         in->name, why.message);
		return LADE_OK;
	}
	const lade_frame_info *info = lade_frame_get_info(frame);
	lade_status status = cli_gpu_takes(work->engine, info->spec, LADE_DECODE, info->chunk_size,
	                                   work->dict != NULL, o->gpu, &why);
	if (status != LADE_OK) {
		cli_warn("%s: decoded on the host: %s", in->name, why.message);
		status = LADE_OK;
	} else {
		*done = true;
		if (info->has_shape && !o->raw)
			status = write_npy_header(info, out, err);
		if (status == LADE_OK)
			status = cli_gpu_frame(frame, o->gpu, out, err);
		in->taken = info->encoded_size;
	}
	lade_frame_close(frame);
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
		bool gpu = work->options->gpu != CLI_NO_GPU && first, done = false;
		if (gpu && format != LADE_FORMAT_LADE)
			cli_warn("%s: decoded on the host: --gpu is for .lade files", in->name);
		if (format != LADE_FORMAT_LADE)
			return decompress_foreign(work, format, in, out, err);
		if (gpu)
			status = decompress_gpu(work, in, out, &done, err);
		if (first && !done && status == LADE_OK)
			status = decompress_file(work, in, out, &done, err);
		if (done || status != LADE_OK)
			return status;
		status = decompress_pipe(work, in, out, err);
		if (status != LADE_OK)
			return status;
	}
}
