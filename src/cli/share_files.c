/*
 * share_files.c: 'lade share put' and 'get': arrays and tables between files and names.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "cli/share_files.h"

#include <lade/frame.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/npy.h"

static bool ends_with(const char *text, const char *end)
{
	size_t size = strlen(text), tail = strlen(end);

	return size > tail && !strcmp(text + size - tail, end);
}

/* Arrow's: the file format, and the stream. */
static bool is_arrow(const char *path)
{
	return ends_with(path, ".arrow") || ends_with(path, ".arrows") ||
	       ends_with(path, ".feather");
}

static lade_status refuse_name(lade_error *err)
{
	return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
	                 "want a name that ends in .npy, .lade, .arrow, .arrows or .feather");
}

static lade_status failed(const char *what, lade_error *err)
{
	return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "%s: %s", what, strerror(errno));
}

/* ---- put -------------------------------------------------------------------------------- */

/* Memory for the array's bytes, which is published without a copy. */
static lade_status make(lade_share *share, size_t size, lade_array **memory, lade_share_tensor *t,
                        lade_error *err)
{
	lade_status status = lade_share_alloc(share, size, memory, err);

	if (status == LADE_OK)
		t->data = lade_array_span(*memory).data;
	return status;
}

static lade_status read_npy(lade_share *share, const char *path, lade_array **memory,
                            lade_share_tensor *t, lade_error *err)
{
	char head[NPY_HEADER_MAX];
	npy h;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : pread(fd, head, sizeof head, 0);
	const char *why = got < 0 ? NULL : npy_read(head, (size_t)got, &h);
	lade_status status = LADE_OK;

	if (got < 0)
		status = failed("reading", err);
	else if (why)
		status = lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET, "%s", why);
	else if (h.ndim > LADE_SHARE_NDIM_MAX || (h.fortran_order && h.ndim > 1))
		status = lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                   "%u dimensions in Fortran's order: want C's", h.ndim);
	if (status == LADE_OK)
		status = make(share, (size_t)h.data_size, memory, t, err);
	for (uint64_t at = 0; status == LADE_OK && at < h.data_size;) {
		ssize_t n = pread(fd, (char *)lade_array_span(*memory).data + at, h.data_size - at,
		                  (off_t)(h.header_size + at));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			status = failed("reading", err);
		else if (!n)
			status = lade_fail(err, LADE_E_TRUNCATED, h.header_size + at,
			                   "it has %llu bytes of data, want %llu",
			                   (unsigned long long)at,
			                   (unsigned long long)h.data_size);
		else
			at += (uint64_t)n;
	}
	if (status == LADE_OK) {
		t->dtype = h.dtype;
		t->ndim = h.ndim;
		memcpy(t->shape, h.shape, h.ndim * sizeof *h.shape);
	}
	if (fd >= 0)
		close(fd);
	return status;
}

static lade_status read_lade(lade_share *share, const char *path, lade_array **memory,
                             lade_share_tensor *t, lade_error *err)
{
	lade_engine *engine = NULL;
	lade_frame *frame = NULL;
	const lade_frame_info *info;
	lade_frame_range range = {0};
	lade_status status = lade_engine_new(NULL, &engine, err);

	if (status == LADE_OK)
		status = lade_frame_open_path(engine, path, NULL, &frame, err);
	if (status == LADE_OK) {
		info = lade_frame_get_info(frame);
		t->dtype = info->dtype == LADE_DTYPE_NONE ? LADE_U1 : info->dtype;
		t->ndim = info->has_shape ? info->ndim : 1;
		t->shape[0] = info->size / lade_dtype_size(t->dtype);
		if (info->has_shape)
			memcpy(t->shape, info->shape, info->ndim * sizeof *info->shape);
		if (info->fortran_order && t->ndim > 1)
			status = lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
			                   "%u dimensions in Fortran's order: want C's", t->ndim);
		if (status == LADE_OK)
			status = make(share, (size_t)info->size, memory, t, err);
		if (status == LADE_OK && info->size) {
			range.dst = lade_array_span(*memory);
			status = lade_frame_read(frame, &range, 1, NULL, NULL, err);
		}
	}
	lade_frame_close(frame);
	lade_engine_free(engine);
	return status;
}

static int put_arrow(lade_share *share, const char *name, const char *path)
{
	lade_source source = {0};
	lade_error err = {.offset = LADE_NO_OFFSET};
	lade_status status = lade_source_file_open(path, NULL, &source, &err);

	if (status == LADE_OK) {
		status = lade_share_publish_ipc(share, name, source, 0, NULL, &err);
		lade_source_close(source);
	}
	return status == LADE_OK ? CLI_OK : cli_lade_error(path, &err);
}

int cli_share_put(lade_share *share, const char *name, const char *path)
{
	if (is_arrow(path))
		return put_arrow(share, name, path);
	lade_share_tensor t = {.struct_size = sizeof t};
	lade_array *memory = NULL;
	lade_error err = {.offset = LADE_NO_OFFSET};
	lade_status status = ends_with(path, ".npy")    ? read_npy(share, path, &memory, &t, &err)
	                     : ends_with(path, ".lade") ? read_lade(share, path, &memory, &t, &err)
	                                                : refuse_name(&err);

	if (status == LADE_OK)
		status = lade_share_publish_tensor(share, name, &t, NULL, &err);
	lade_array_unref(memory);
	return status == LADE_OK ? CLI_OK : cli_lade_error(path, &err);
}

/* ---- get -------------------------------------------------------------------------------- */

static lade_status write_file(void *ctx, const void *bytes, size_t size, lade_error *err)
{
	return !size || fwrite(bytes, size, 1, ctx) == 1 ? LADE_OK : failed("writing", err);
}

/* The shape of all batches, whose rows follow each other. */
static lade_status measure(lade_share_version *v, uint32_t batches, lade_share_tensor *all,
                           lade_error *err)
{
	lade_share_tensor one;
	lade_status status = batches ? LADE_OK
	                             : lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
	                                         "it has no batches");

	for (uint32_t i = 0; i < batches && status == LADE_OK; i++) {
		one = (lade_share_tensor){.struct_size = sizeof one};
		status = lade_share_version_tensor(v, i, &one, err);
		uint64_t rows = i ? all->shape[0] : 0;
		*all = one;
		all->shape[0] += rows;
	}
	return status;
}

static lade_status write_rows(lade_share_version *v, uint32_t batches, lade_output out,
                              lade_error *err)
{
	lade_status status = LADE_OK;

	for (uint32_t i = 0; i < batches && status == LADE_OK; i++) {
		lade_share_tensor one = {.struct_size = sizeof one};
		status = lade_share_version_tensor(v, i, &one, err);
		size_t size = lade_dtype_size(one.dtype);
		for (unsigned d = 0; d < one.ndim; d++)
			size *= (size_t)one.shape[d];
		if (status == LADE_OK)
			status = out.write(out.ctx, one.data, size, err);
	}
	return status;
}

static lade_status write_npy(lade_share_version *v, uint32_t batches, FILE *file,
                             const lade_share_tensor *all, lade_error *err)
{
	char head[NPY_HEADER_MAX];
	npy h = {.dtype = all->dtype, .ndim = all->ndim};
	lade_status status;

	snprintf(h.descr, sizeof h.descr, "%s", lade_dtype_text(all->dtype));
	memcpy(h.shape, all->shape, all->ndim * sizeof *h.shape);
	status = write_file(file, head, npy_write(&h, head), err);
	return status == LADE_OK ? write_rows(v, batches, (lade_output){file, write_file}, err)
	                         : status;
}

static lade_status write_to_frame(void *ctx, const void *bytes, size_t size, lade_error *err)
{
	return lade_frame_writer_write(ctx, bytes, size, err);
}

static lade_status write_lade(lade_share_version *v, uint32_t batches, FILE *file,
                              const lade_share_tensor *all, lade_error *err)
{
	lade_engine *engine = NULL;
	lade_spec *spec = NULL;
	lade_frame_writer *writer = NULL;
	char text[40];
	lade_status status = lade_engine_new(NULL, &engine, err);

	snprintf(text, sizeof text, "shuffle(%zu)|zstd", lade_dtype_size(all->dtype));
	if (status == LADE_OK)
		status = lade_spec_parse(engine, text, &spec, err);
	lade_frame_options o = {.struct_size = sizeof o,
	                        .spec = spec,
	                        .dtype = all->dtype,
	                        .ndim = all->ndim,
	                        .shape = all->shape};
	if (status == LADE_OK)
		status = lade_frame_writer_new(engine, (lade_output){file, write_file}, &o, &writer,
		                               err);
	if (status == LADE_OK)
		status = write_rows(v, batches, (lade_output){writer, write_to_frame}, err);
	if (status == LADE_OK)
		status = lade_frame_writer_finish(writer, err);
	lade_frame_writer_free(writer);
	lade_spec_unref(spec);
	lade_engine_free(engine);
	return status;
}

int cli_share_get(lade_share *share, const char *name, uint64_t version, const char *path)
{
	lade_share_open_options o = {.struct_size = sizeof o, .version = version, .host = true};
	lade_share_tensor all = {.struct_size = sizeof all};
	lade_share_version *v = NULL;
	lade_error err = {.offset = LADE_NO_OFFSET};
	bool is_npy = ends_with(path, ".npy"), arrow = is_arrow(path);
	const char *about = path;
	FILE *file = NULL;
	lade_status status =
		is_npy || arrow || ends_with(path, ".lade") ? LADE_OK : refuse_name(&err);

	if (status == LADE_OK) {
		about = name;
		status = lade_share_open(share, name, &o, &v, &err);
	}
	uint32_t batches = v ? lade_share_version_info(v)->batches : 0;
	if (status == LADE_OK && !arrow)
		status = measure(v, batches, &all, &err);
	if (status == LADE_OK) {
		about = path;
		file = fopen(path, "wbx"); /* never over another */
		if (!file)
			status = failed("making it", &err);
	}
	if (file) {
		status = arrow ? lade_share_version_write_ipc(
					 v, (lade_output){file, write_file},
					 ends_with(path, ".arrows"), &err)
		         : is_npy ? write_npy(v, batches, file, &all, &err)
		                  : write_lade(v, batches, file, &all, &err);
		if (fclose(file) && status == LADE_OK)
			status = failed("writing", &err);
		if (status != LADE_OK)
			unlink(path);
	}
	lade_share_version_unref(v);
	return status == LADE_OK ? CLI_OK : cli_lade_error(about, &err);
}
