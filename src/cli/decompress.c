/*
 * decompress.c: one file back to bytes: .lade frames and other tools' formats, recognised by
 * their first bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/work.h"

#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/gpu.h"
#include "cli/npy.h"

/* Windows up to 128 MiB are always accepted, larger ones with --long or -M. */
#define WINDOW_LOG 27

/* Names the option that raises a limit. */
static lade_status name_option(lade_status status, lade_error *err)
{
	size_t size = strlen(err->message);

	if (status == LADE_E_LIMIT)
		snprintf(err->message + size, sizeof err->message - size,
		         "; -M (--memory=SIZE) allows more");
	return status;
}

lade_status cli_decompress_foreign(const cli_work *work, lade_format format, cli_in *in,
                                   cli_out *out, uint64_t *frames, lade_error *err)
{
	const cli_options *o = work->options;
	uint64_t window = UINT64_C(1) << (o->window_log > WINDOW_LOG ? o->window_log : WINDOW_LOG);
	lade_foreign_options f = {.struct_size = sizeof f,
	                          .threads = work->threads,
	                          .max_window = o->max_window ? o->max_window : window,
	                          .ignore_checksum = o->checksum == LADE_CHECKSUM_NONE,
	                          .strict = o->strict,
	                          .dict = work->dict};
	lade_foreign_reader *reader = NULL;

	lade_status status =
		lade_foreign_reader_new(work->engine, format, cli_in_input(in), &f, &reader, err);
	if (status == LADE_OK)
		status = lade_foreign_reader_copy(reader, cli_out_output(out), err);
	*frames = lade_foreign_reader_frames(reader);
	lade_foreign_reader_free(reader);
	return name_option(status, err);
}

/* An array goes back behind the header that NumPy gave it. */
static lade_status write_npy_header(const cli_work *work, const lade_frame_info *info, cli_out *out,
                                    lade_error *err)
{
	if (!info->has_shape || work->options->raw)
		return LADE_OK;
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
	return (lade_frame_read_options){
		.struct_size = sizeof(lade_frame_read_options),
		.verify = o->checksum ? LADE_VERIFY_IF_PRESENT : LADE_VERIFY_NEVER,
		.flags = (o->strict ? LADE_FRAME_STRICT : 0) |
		         (work->threads == 1 ? LADE_FRAME_APART : 0),
		.threads = work->threads,
		.max_chunk_size = (size_t)o->max_window,
		.dict = work->dict};
}

/* A frame as it comes. */
static lade_status decompress_pipe(const cli_work *work, cli_in *in, cli_out *out,
                                   lade_error *err)
{
	lade_frame_read_options f = read_options(work);
	lade_frame_pipe *pipe = NULL;

	lade_status status =
		lade_frame_pipe_new(work->engine, cli_in_input(in), &f, &pipe, err);
	if (status != LADE_OK)
		return status;
	status = write_npy_header(work, lade_frame_pipe_get_info(pipe), out, err);
	if (status == LADE_OK)
		status = lade_frame_pipe_copy(pipe, cli_out_output(out), err);
	if (status == LADE_OK) {
		lade_cspan rest = lade_frame_pipe_rest(pipe);
		status = cli_in_return(in, rest.data, rest.size, err);
	}
	lade_frame_pipe_free(pipe);
	return status;
}

/* A file that is one frame: chunks go to their places in a file, else in order. */
static lade_status copy_frame(const cli_work *work, lade_frame *frame, cli_in *in, cli_out *out,
                              lade_error *err)
{
	const lade_frame_info *info = lade_frame_get_info(frame);
	lade_frame_copy_options f = {.struct_size = sizeof f};

	lade_status status = write_npy_header(work, info, out, err);
	if (out->fd < 0 || out->temp)
		f.write_at = cli_out_write_at;
	if (status == LADE_OK)
		status = lade_frame_copy(frame, cli_out_output(out), &f, err);
	if (f.write_at)
		out->written += info->size;
	in->taken = info->encoded_size;
	return status;
}

/*
 * A file that is one frame, to a file.  '*done' is false when it is anything else: then nothing has
 * been read or written.
 */
static lade_status decompress_file(const cli_work *work, cli_in *in, cli_out *out, bool *done,
                                   lade_error *err)
{
	lade_frame_read_options f = read_options(work);
	lade_frame *frame = NULL;

	*done = in->has_size && !in->is_stdin && out->temp &&
	        lade_frame_open(work->engine, cli_in_source(in), &f, &frame, NULL) == LADE_OK;
	if (!*done)
		return LADE_OK;
	lade_status status = copy_frame(work, frame, in, out, err);
	lade_frame_close(frame);
	return status;
}

/* Files of this size and more are decoded where a part of them is decoded faster. */
#define COMPARE_FROM ((uint64_t)64 << 20)
#define COMPARE_PART ((size_t)32 << 20) /* at most, and an eighth of the file */

/* Seconds that the first bytes of a frame take, the better of two times; below 0: they fail. */
static double part_seconds(lade_frame *frame, lade_span part)
{
	double best = -1;

	for (int i = 0; i < 2; i++) {
		const lade_frame_range range = {.dst = part};
		double start = cli_now();
		if (lade_frame_read(frame, &range, 1, NULL, NULL, NULL) != LADE_OK)
			return -1;
		double took = cli_now() - start;
		best = i && best < took ? best : took;
	}
	return best;
}

/*
 * Whether the host decodes a large frame faster than its device does.  Both decode a part of it and
 * are timed: lade_device_takes() says only what a device can do.  Which side is faster
 * depends on the file, the processor and the bus: only a measurement shows it.
 */
static bool host_is_faster(const cli_work *work, cli_in *in, lade_frame *frame)
{
	const lade_frame_info *info = lade_frame_get_info(frame);
	const lade_frame_read_options f = read_options(work);
	int gpu = (int)work->options->gpu;
	size_t size = info->size / 8 < COMPARE_PART ? (size_t)(info->size / 8) : COMPARE_PART;
	lade_frame *host_frame = NULL;
	lade_span part = {0};
	double device = -1, host = -1;

	if (info->size < COMPARE_FROM)
		return false;
	if (lade_frame_open(work->engine, cli_in_source(in), &f, &host_frame, NULL) == LADE_OK &&
	    cli_buffer_new(size, gpu, &part, NULL) == LADE_OK) {
		device = part_seconds(frame, part);
		host = part_seconds(host_frame, part);
	}
	if (part.data)
		cli_buffer_free(&part);
	lade_frame_close(host_frame);
	if (device <= 0 || host <= 0)
		return false;
	double device_rate = (double)size / device / 1e6, host_rate = (double)size / host / 1e6;
	if (host < device)
		cli_warn("%s: decoded on the host, which is faster: its beginning at %.0f MB/s, by "
		         "GPU %d at %.0f", in->name, host_rate, gpu, device_rate);
	else
		cli_note("%s: decoded by GPU %d, its beginning at %.0f MB/s, on the host at %.0f",
		         in->name, gpu, device_rate, host_rate);
	return host < device;
}

/*
 * The same with a device, to anywhere.  Where the device cannot, or the host is faster, a warning
 * says why, and '*done' is false.
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
	const lade_workload load = {.direction = LADE_DECODE,
	                            .largest = info->chunk_size,
	                            .has_dict = work->dict != NULL};
	lade_status status = lade_device_takes(work->engine, info->spec, &load, o->gpu, &why);
	*done = status == LADE_OK && !host_is_faster(work, in, frame);
	if (*done)
		status = copy_frame(work, frame, in, out, err);
	else if (status != LADE_OK)
		cli_warn("%s: decoded on the host: %s", in->name, why.message);
	lade_frame_close(frame);
	return *done ? status : LADE_OK;
}

/* ---- what is no compressed file ------------------------------------------------------------ */

/* Bytes that must decode before a file passes as .zz. */
#define ZZ_PEEK ((size_t)64 << 10)

typedef struct held {
	const uint8_t *data;
	size_t left;
} held;

static lade_status read_held(void *ctx, void *dst, size_t cap, size_t *got, lade_error *err)
{
	held *h = ctx;

	(void)err;
	*got = h->left < cap ? h->left : cap;
	memcpy(dst, h->data, *got);
	h->data += *got;
	h->left -= *got;
	return LADE_OK;
}

/* Two bytes mark a .zz file, and texts have them, too ("x^2"): what follows must decode. */
static bool is_zz(const cli_work *work, cli_in *in)
{
	const lade_foreign_options f = {.struct_size = sizeof f, .dict = work->dict};
	uint8_t out[4096];
	held h;
	size_t got = 1;
	lade_foreign_reader *reader = NULL;
	lade_status status = cli_in_peek(in, ZZ_PEEK, &h.data, &h.left, NULL);

	if (status == LADE_OK)
		status = lade_foreign_reader_new(work->engine, LADE_FORMAT_ZZ,
		                                 (lade_input){&h, read_held}, &f, &reader, NULL);
	while (status == LADE_OK && got)
		status = lade_foreign_reader_read(reader, out, sizeof out, &got, NULL);
	lade_foreign_reader_free(reader);
	return status == LADE_OK || status == LADE_E_TRUNCATED;
}

static lade_status pass_through(cli_in *in, cli_out *out, lade_error *err)
{
	uint8_t data[1 << 16];
	lade_input input = cli_in_input(in);
	lade_output output = cli_out_output(out);
	size_t got = 1;
	lade_status status = LADE_OK;

	while (status == LADE_OK && got) {
		status = input.read(input.ctx, data, sizeof data, &got, err);
		if (status == LADE_OK && got)
			status = output.write(output.ctx, data, got, err);
	}
	return status;
}

/* ---- any file ------------------------------------------------------------------------------ */

lade_status cli_decompress(const cli_work *work, cli_in *in, cli_out *out, lade_error *err)
{
	/* As zstd(1) and gzip(1) do: -dcf gives all that is no compressed file as it is. */
	bool pass = work->options->force && out->fd == STDOUT_FILENO;
	/* Frames may stand in a row; the other formats read to the end by themselves. */
	for (bool first = true;; first = false) {
		const uint8_t *data;
		size_t have;
		lade_status status = cli_in_peek(in, LADE_FORMAT_PEEK, &data, &have, err);
		if (status != LADE_OK || (have == 0 && !first))
			return status;
		lade_format format = lade_format_detect(data, have);
		if (pass && first && (format == LADE_FORMAT_UNKNOWN ||
		                      (format == LADE_FORMAT_ZZ && !is_zz(work, in))))
			return pass_through(in, out, err);
		if (have == 0)
			return lade_fail(err, LADE_E_TRUNCATED, LADE_NO_OFFSET,
			                 "the file is empty");
		if (format != LADE_FORMAT_LADE && !first)
			return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
			                 "bytes that are no frame follow the last one");
		if (format == LADE_FORMAT_UNKNOWN)
			return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
			                 "is in no format that lade knows");
		bool gpu = work->options->gpu != CLI_NO_GPU && first, done = false;
		if (gpu && format != LADE_FORMAT_LADE)
			cli_warn("%s: decoded on the host: --gpu is for .lade files", in->name);
		uint64_t frames;
		if (format != LADE_FORMAT_LADE)
			return cli_decompress_foreign(work, format, in, out, &frames, err);
		if (gpu)
			status = decompress_gpu(work, in, out, &done, err);
		if (first && !done && status == LADE_OK)
			status = decompress_file(work, in, out, &done, err);
		if (done || status != LADE_OK)
			return name_option(status, err);
		status = decompress_pipe(work, in, out, err);
		if (status != LADE_OK)
			return name_option(status, err);
	}
}
