/*
 * ipc.c: publishes Arrow's files, and writes versions as such.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "share/ipc.h"

#include "base/try.h"

#include <stdlib.h>

/* Shared memory that was made for a file. */
typedef struct made {
	lade_share *share;
	lade_array **arrays;
	size_t count, cap;
} made;

static lade_status make(void *ctx, size_t size, uint8_t **out, lade_error *err)
{
	made *m = ctx;
	lade_status status;

	if (m->count == m->cap) {
		size_t cap = m->cap ? m->cap * 2 : 8;
		lade_array **larger = realloc(m->arrays, cap * sizeof *larger);
		if (!larger)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "no memory for an Arrow file");
		m->arrays = larger;
		m->cap = cap;
	}
	status = lade_share_alloc(m->share, size, &m->arrays[m->count], err);
	if (status == LADE_OK)
		*out = lade_array_span(m->arrays[m->count++]).data;
	return status;
}

/* The arrays of the C interface, and the list of them. */
static lade_status export_batches(const lade__ipc *ipc, struct ArrowArray *arrays,
                                  const struct ArrowArray **list, lade_error *err)
{
	lade_status status = LADE_OK;

	for (size_t i = 0; i < ipc->batch_count && status == LADE_OK; i++) {
		status = lade__column_export(ipc->batches[i], NULL, &arrays[i], err);
		list[i] = &arrays[i];
	}
	return status;
}

static void release_all(struct ArrowArray *arrays, size_t count)
{
	for (size_t i = 0; arrays && i < count; i++)
		if (arrays[i].release)
			arrays[i].release(&arrays[i]);
	free(arrays);
}

lade_status lade_share_publish_ipc(lade_share *share, const char *name, lade_source source,
                                   uint32_t wait_ms, lade_share_published *out, lade_error *err)
{
	made m = {.share = share};
	lade__ipc ipc = {0};
	struct ArrowArray *arrays = NULL;
	const struct ArrowArray **list = NULL;
	lade_status status;

	if (!share || !source.ops)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "share or source is NULL");
	TRY(lade__ipc_read(source, (lade__ipc_memory){&m, make}, &ipc, err));
	arrays = calloc(ipc.batch_count + 1, sizeof *arrays);
	list = calloc(ipc.batch_count + 1, sizeof *list);
	TRY(arrays && list ? LADE_OK
	                   : lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
	                               "no memory for an Arrow file"));
	TRY(export_batches(&ipc, arrays, list, err));
	lade_share_table table = {.struct_size = sizeof table,
	                          .schema = ipc.top,
	                          .batches = list,
	                          .batch_count = ipc.batch_count,
	                          .wait_ms = wait_ms};
	TRY(lade_share_publish(share, name, &table, out, err));
out:
	release_all(arrays, ipc.batch_count);
	free(list);
	lade__ipc_free(&ipc);
	while (m.count)
		lade_array_unref(m.arrays[--m.count]);
	free(m.arrays);
	return status;
}

lade_status lade_share_version_write_ipc(lade_share_version *version, lade_output output,
                                         bool stream, lade_error *err)
{
	struct ArrowSchema schema = {0};
	struct ArrowArray *arrays = NULL;
	const struct ArrowArray **list = NULL;
	size_t count = 0;
	lade_status status;

	if (!version || !output.write)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "version or output is NULL");
	TRY(lade_share_version_schema(version, &schema, err));
	count = lade_share_version_info(version)->batches;
	arrays = calloc(count + 1, sizeof *arrays);
	list = calloc(count + 1, sizeof *list);
	TRY(arrays && list ? LADE_OK
	                   : lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
	                               "no memory for an Arrow file"));
	for (size_t i = 0; i < count; i++) {
		list[i] = &arrays[i];
		TRY(lade_share_version_array(version, i, &arrays[i], err));
	}
	TRY(lade__ipc_write(&schema, list, count, stream, output, err));
out:
	release_all(arrays, count);
	free(list);
	if (schema.release)
		schema.release(&schema);
	return status;
}
