/*
 * compress.c: one file to a .lade frame, or to a .zst, .gz or .lz4 file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/work.h"

#include <inttypes.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/npy.h"
#include "cli/pipeline.h"

/* ---- what kind of bytes they are ------------------------------------------------------------ */

static bool ends_with(const char *text, const char *end)
{
	size_t size = strlen(text), n = strlen(end);
	return size >= n && strcmp(text + size - n, end) == 0;
}

/*
 * Looks whether the file is an array that can be taken out of its .npy header and put back.  If so
 * the header is taken off and '*typed' is true; '*header' has a dtype, if any is known.
 */
static lade_status look_for_npy(const cli_work *work, cli_in *in, npy *header, bool *typed,
                                lade_error *err)
{
	const uint8_t *data;
	size_t have;

	*typed = false;
	*header = (npy){.dtype = LADE_DTYPE_NONE};
	if (work->options->raw || in->is_stdin || !in->has_size || !ends_with(in->name, ".npy"))
		return LADE_OK;
	lade_status status = cli_in_peek(in, NPY_HEADER_MAX, &data, &have, err);
	if (status != LADE_OK)
		return status;
	const char *why = npy_read(data, have, header);
	if (!why && header->data_size != (uint64_t)in->stat.st_size - header->header_size)
		why = "its size does not fit its shape";
	if (!why && header->dtype == LADE_DTYPE_NONE)
		why = "its elements have no type";
	if (why) {
		cli_warn("%s: stored as plain bytes: %s", in->name, why);
		/* The type still says how wide elements are. */
		header->ndim = 0;
		return LADE_OK;
	}
	cli_in_skip(in, header->header_size);
	*typed = true;
	return LADE_OK;
}

/* ---- .lade -------------------------------------------------------------------------- */

static lade_status make_spec(const cli_work *work, lade_dtype dtype, lade_spec **spec,
                             lade_error *err)
{
	int64_t level = work->options->has_level ? work->options->level : PIPELINE_NO_LEVEL;
	lade_status status = pipeline_parse(work->pipeline, dtype, level, spec, err);

	/* The offset counts the text's characters, not the file's bytes. */
	if (status != LADE_OK && err)
		err->offset = LADE_NO_OFFSET;
	return status;
}

static lade_status compress_lade(const cli_work *work, cli_in *in, cli_out *out, lade_error *err)
{
	const cli_options *o = work->options;
	lade_frame_options f = {.struct_size = sizeof f};
	lade_frame_writer *writer = NULL;
	lade_spec *spec = NULL;
	npy header;
	bool typed;

	lade_status status = look_for_npy(work, in, &header, &typed, err);
	if (status != LADE_OK)
		return status;
	lade_dtype dtype = o->dtype && !typed ? o->dtype : header.dtype;
	status = make_spec(work, dtype, &spec, err);
	if (status != LADE_OK)
		return status;
	out->lossy = lade_spec_is_lossy(spec);
	if (out->lossy)
		cli_warn("%s: %s is lossy: not every bit will come back", in->name,
		         lade_spec_text(spec));
	f.spec = spec;
	f.chunk_size = (size_t)o->chunk_size;
	f.checksum = o->checksum;
	f.no_checksums = !o->checksum;
	f.threads = work->threads;
	f.dict = work->dict;
	if (typed) {
		f.dtype = header.dtype;
		f.ndim = header.ndim;
		f.shape = header.shape;
		f.fortran_order = header.fortran_order;
	} else {
		f.dtype = o->dtype;
		f.has_size = in->has_size;
		f.size = in->has_size ? (uint64_t)in->stat.st_size : 0;
	}
	status = lade_frame_writer_new(work->engine, cli_out_output(out), &f, &writer, err);
	if (status == LADE_OK)
		status = lade_frame_writer_copy(writer, cli_in_input(in), err);
	if (status == LADE_OK)
		status = lade_frame_writer_finish(writer, err);
	lade_frame_writer_free(writer);
	lade_spec_unref(spec);
	return status;
}

/* ---- others ------------------------------------------------------------------------- */

/* The formats' own scales: a level above the highest is the highest, as zstd(1) does. */
static int level_of(const cli_options *o)
{
	int64_t max = o->format == LADE_FORMAT_ZST ? 22 : 12;

	if (!o->has_level)
		return 0;
	return (int)(o->level > max ? max : o->level < -100000 ? -100000 : o->level);
}

static lade_status compress_foreign(const cli_work *work, cli_in *in, cli_out *out,
                                    lade_error *err)
{
	const cli_options *o = work->options;
	lade_foreign_options f = {.struct_size = sizeof f,
	                          .threads = work->threads,
	                          .level = level_of(o),
	                          .max_window = o->window_log ? UINT64_C(1) << o->window_log : 0,
	                          .checksum = o->checksum != LADE_CHECKSUM_NONE,
	                          .size = in->has_size ? (uint64_t)in->stat.st_size : 0,
	                          .dict = work->dict};
	lade_foreign_writer *writer = NULL;

	lade_status status = lade_foreign_writer_new(work->engine, o->format, cli_out_output(out),
	                                             &f, &writer, err);
	if (status == LADE_OK)
		status = lade_foreign_writer_copy(writer, cli_in_input(in), err);
	if (status == LADE_OK)
		status = lade_foreign_writer_finish(writer, err);
	lade_foreign_writer_free(writer);
	return status;
}

lade_status cli_compress(const cli_work *work, cli_in *in, cli_out *out, lade_error *err)
{
	in->fixed = in->has_size;
	if (work->options->format == LADE_FORMAT_LADE)
		return compress_lade(work, in, out, err);
	return compress_foreign(work, in, out, err);
}
