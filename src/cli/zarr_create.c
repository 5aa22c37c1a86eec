/*
 * zarr_create.c: 'lade zarr create', makes a group or an array in a directory, or in a new zip
 * file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cli/files.h"
#include "cli/measure.h"
#include "cli/npy.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/zarr.h"

/* Bytes of a chunk, about, where nothing says its shape. */
#define CHUNK_DEFAULT ((uint64_t)1 << 20)

/* A description under construction, and what it points to. */
typedef struct making {
	sample file; /* with --from: the .npy file */
	npy header;
	lade_zarr_description d;
	uint64_t shape[LADE_DIMS_MAX], chunks[LADE_DIMS_MAX], shards[LADE_DIMS_MAX];
	const char *names[LADE_DIMS_MAX];
	char *name_text;
	lade_spec *spec;
} making;

/* Reads "100,200"; brackets around it and spaces do not matter. */
static int read_list(const char *option, const char *text, uint64_t *out, size_t *count)
{
	char *end;

	*count = 0;
	text += strspn(text, " ([");
	while (*text && *text != ')' && *text != ']') {
		errno = 0;
		uint64_t value = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
		if (*text < '0' || *text > '9' || errno || *count == LADE_DIMS_MAX)
			return cli_usage("--%s: want up to %d numbers, such as 100,200", option,
			                 LADE_DIMS_MAX);
		out[(*count)++] = value;
		text = end + strspn(end, " ");
		if (*text != ',' && *text != 0 && *text != ')' && *text != ']')
			return cli_usage("--%s: want a comma between numbers, not '%s'", option,
			                 text);
		text += strspn(text, ", ");
	}
	return CLI_OK;
}

/* The shape of chunks or shards, which has as many numbers as the array's. */
static int read_shape(const char *option, const char *text, uint64_t *out, size_t ndim)
{
	size_t count = 0;
	int rc = read_list(option, text, out, &count);

	if (rc == CLI_OK && count != ndim)
		rc = cli_usage("--%s has %zu numbers, the shape has %zu", option, count, ndim);
	return rc;
}

/* Halves the longest axis until a chunk is small enough.  'size' is an element's. */
static void guess_chunks(making *m, uint64_t size)
{
	memcpy(m->chunks, m->shape, sizeof m->chunks);
	for (;;) {
		uint64_t bytes = size ? size : 16;
		size_t longest = 0;
		for (size_t i = 0; i < m->d.ndim; i++) {
			m->chunks[i] = m->chunks[i] ? m->chunks[i] : 1;
			bytes = zarr_times(bytes, m->chunks[i]);
			longest = m->chunks[i] > m->chunks[longest] ? i : longest;
		}
		if (bytes <= CHUNK_DEFAULT || m->d.ndim == 0 || m->chunks[longest] == 1)
			return;
		m->chunks[longest] = (m->chunks[longest] - 1) / 2 + 1;
	}
}

/* "t,y,x"; an empty name is none. */
static int read_names(making *m, const char *text)
{
	size_t count = 0;
	char *rest = m->name_text = cli_need(strdup(text)), *name;

	while ((name = strsep(&rest, ",")) && count < LADE_DIMS_MAX)
		m->names[count++] = *name ? name : NULL;
	if (name || count != m->d.ndim)
		return cli_usage("--names has %s%zu names, the shape has %zu numbers",
		                 name ? "more than " : "", count, m->d.ndim);
	m->d.dimension_names = m->names;
	return CLI_OK;
}

/* Maps the .npy file and reads its header. */
static int read_npy(making *m, const char *name)
{
	const char *why;

	if (sample_open(name, &m->file) != CLI_OK)
		return CLI_FAILED;
	why = npy_read_any(m->file.map, m->file.map_size, &m->header);
	if (!why && m->header.descr[0] == '>')
		why = "its elements are big-endian; save them little-endian";
	if (why) {
		cli_error("%s: %s", name, why);
		return CLI_FAILED;
	}
	m->d.ndim = m->header.ndim;
	m->d.type = m->header.descr;
	memcpy(m->shape, m->header.shape, m->d.ndim * sizeof *m->shape);
	return CLI_OK;
}

static int describe_array(making *m, const zarr_new *n)
{
	lade_error err = {.offset = LADE_NO_OFFSET};
	lade_dtype dtype = LADE_DTYPE_NONE;
	lade_zarr_description *d = &m->d;
	int rc = CLI_OK;

	d->kind = LADE_ZARR_ARRAY;
	d->type = n->dtype;
	d->fill = n->fill;
	d->fortran = n->fortran;
	d->shape = m->shape;
	if (n->from && (n->shape || n->dtype))
		return cli_usage("zarr create: --from gives the shape and the type");
	if (!n->from && (!n->shape || !n->dtype))
		return cli_usage("zarr create: want --shape and --dtype, or --from, or --group");
	rc = n->from ? read_npy(m, n->from) : read_list("shape", n->shape, m->shape, &d->ndim);
	if (rc == CLI_OK && n->chunks)
		rc = read_shape("chunks", n->chunks, m->chunks, d->ndim);
	else if (rc == CLI_OK && lade_dtype_parse(d->type, &dtype, NULL) == LADE_OK)
		guess_chunks(m, lade_dtype_size(dtype));
	else
		guess_chunks(m, 0);
	d->chunk_shape = m->chunks;
	if (rc == CLI_OK && n->shards) {
		rc = read_shape("shards", n->shards, m->shards, d->ndim);
		d->chunk_shape = m->shards;
		d->inner_shape = m->chunks;
	}
	if (rc == CLI_OK && n->names)
		rc = read_names(m, n->names);
	if (rc == CLI_OK && n->codec && *n->codec == '[')
		d->codecs = n->codec;
	else if (rc == CLI_OK && n->codec &&
	         lade_spec_parse(NULL, n->codec, &m->spec, &err) != LADE_OK)
		rc = cli_usage("--codec=%s: %s", n->codec, err.message);
	d->spec = m->spec;
	return rc;
}

/* ---- elements ----------------------------------------------------------------------------- */

/* Writes the elements of the .npy file, in whole rows of chunks. */
static lade_status write_elements(const zarr_settings *s, const making *m, const lade_zarr *zarr,
                                  lade_error *err)
{
	const lade_zarr_array *array = lade_zarr_as_array(zarr);
	uint64_t size = zarr_decoded_size(array), have = m->file.map_size - m->header.header_size;
	uint64_t count = array->ndim ? array->axes[0].size : 1, rows = count;
	lade_zarr_write_options options = {.struct_size = sizeof options,
	                                   .threads = s->threads,
	                                   .flags = LADE_ZARR_SKIP_FILL};
	ptrdiff_t strides[LADE_DIMS_MAX];
	lade_status status = LADE_OK;

	if (size > have)
		return lade_fail(err, LADE_E_TRUNCATED, LADE_NO_OFFSET, "%s: want %" PRIu64
		                 " bytes of elements, have %" PRIu64, m->file.name, size, have);
	if (size == 0)
		return LADE_OK;
	uint64_t stride = array->type.size;
	for (size_t i = 0; i < array->ndim; i++) {
		size_t axis = m->header.fortran_order ? i : array->ndim - 1 - i;
		strides[axis] = (ptrdiff_t)stride;
		stride *= array->axes[axis].size;
	}
	if (array->ndim && m->d.chunk_shape[0] < count) {
		uint64_t chunk = m->d.chunk_shape[0], row = size / count * chunk;
		rows = row < s->memory ? s->memory / row * chunk : chunk;
	}
	progress_start(m->file.name, "writing", size);
	for (uint64_t first = 0; first < count && status == LADE_OK; first += rows) {
		uint64_t end = rows < count - first ? first + rows : count;
		lade_zarr_index index = {.kind = LADE_ZARR_SLICE,
		                         .start = (int64_t)first,
		                         .stop = (int64_t)end};
		lade_zarr_selection selection = {.struct_size = sizeof selection,
		                                 .axis_count = array->ndim ? 1 : 0,
		                                 .axes = &index,
		                                 .index_size = sizeof index};
		lade_zarr_source source = {
			.struct_size = sizeof source,
			.span = lade_host_cspan((const uint8_t *)m->file.map +
			                        m->header.header_size, (size_t)size),
			.offset = array->ndim ? (size_t)first * (size_t)strides[0] : 0,
			.strides = array->ndim ? strides : NULL};
		lade_zarr_write_report report = {.struct_size = sizeof report};
		status = lade_zarr_write(zarr, &selection, &source, &options, &report, err);
		progress_add(size / count * (end - first), report.written_size);
	}
	progress_end();
	return status;
}

/* ---- where -------------------------------------------------------------------------------- */

static bool is_zip(const char *path)
{
	size_t size = strlen(path);

	return size > 4 && strcasecmp(path + size - 4, ".zip") == 0;
}

/* 'made' says whether a directory was made, which is removed if nothing gets into it. */
static int open_store(const zarr_settings *s, const char *path, lade_store **store, bool *made)
{
	lade_directory_options options = {.struct_size = sizeof options,
	                                  .flags = LADE_DIRECTORY_CREATE};
	lade_error err = {.offset = LADE_NO_OFFSET};
	bool exists = access(path, F_OK) == 0, zip = is_zip(path);

	*made = false;
	if (cli_is_url(path) || (zip && exists && !s->force)) {
		cli_error("%s: %s", path, exists ? "exists already (-f replaces it)"
		                                 : "web servers are only read");
		return CLI_FAILED;
	}
	if (zip ? lade_store_zip_create(path, NULL, store, &err)
	        : lade_store_directory_open(path, &options, store, &err))
		return cli_lade_error(path, &err);
	*made = !exists && !zip;
	return CLI_OK;
}

int zarr_create(const zarr_settings *s, const char *path)
{
	const zarr_new *n = &s->new;
	lade_zarr_create_options options = {.struct_size = sizeof options};
	lade_error err = {.offset = LADE_NO_OFFSET};
	making m = {.d = {.struct_size = sizeof m.d,
	                  .kind = LADE_ZARR_GROUP,
	                  .format = s->format,
	                  .attributes = n->attributes}};
	lade_store *store = NULL;
	lade_zarr *zarr = NULL;
	bool made = false;
	int rc = CLI_OK;

	options.exists = s->force ? LADE_ZARR_REPLACE : LADE_ZARR_KEEP;
	if (n->group && (n->shape || n->dtype || n->from))
		rc = cli_usage("zarr create: a group has no --shape, --dtype or --from");
	else if (!n->group)
		rc = describe_array(&m, n);
	if (rc == CLI_OK)
		rc = open_store(s, path, &store, &made);
	if (rc == CLI_OK) {
		lade_status status = lade_zarr_create(store, "", &m.d, &options, &zarr, &err);
		if (status == LADE_OK && n->from) {
			status = write_elements(s, &m, zarr, &err);
			/* Other files of the user's may be in an older directory. */
			if (status != LADE_OK && made)
				lade_zarr_delete(store, "", NULL);
		}
		if (status == LADE_OK && is_zip(path))
			status = lade_store_zip_finish(store, NULL, &err);
		if (status == LADE_E_CHANGED && !s->force)
			cli_error("%s: %s (-f replaces it)", path, err.message);
		else if (status != LADE_OK)
			cli_lade_error(path, &err);
		rc = status == LADE_OK ? CLI_OK : CLI_FAILED;
		if (status != LADE_OK && made)
			rmdir(path);
	}
	lade_zarr_unref(zarr);
	lade_store_unref(store);
	lade_spec_unref(m.spec);
	free(m.name_text);
	if (m.file.map)
		sample_close(&m.file);
	return rc;
}
