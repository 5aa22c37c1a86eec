/*
 * fuzz_arrow_ipc.c: Arrow's files and streams.  What is read is written as a stream, and that is
 * read again: it has as many rows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "share/ipc.h"

#include <stdlib.h>
#include <string.h>

#define PARTS_MAX 4096
#define SIZE_MOST ((size_t)1 << 26) /* compressed sizes may claim more */

typedef struct memory {
	void *parts[PARTS_MAX];
	size_t count, size;
} memory;

static lade_status make(void *ctx, size_t size, uint8_t **out, lade_error *err)
{
	memory *m = ctx;
	void *part = NULL;

	m->size += size;
	if (m->count == PARTS_MAX || m->size > SIZE_MOST || posix_memalign(&part, 64, size))
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory");
	memset(part, 0, size);
	m->parts[m->count++] = part;
	*out = part;
	return LADE_OK;
}

static lade_status append(void *ctx, const void *bytes, size_t size, lade_error *err)
{
	lade__bytes_out *to = ctx;

	lade__out_bytes(to, bytes, size);
	if (to->failed || to->size > SIZE_MOST)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory");
	return LADE_OK;
}

static lade_status write_again(const lade__ipc *ipc, lade__bytes_out *to, lade_error *err)
{
	struct ArrowArray *arrays = calloc(ipc->batch_count + 1, sizeof *arrays);
	const struct ArrowArray **list = calloc(ipc->batch_count + 1, sizeof *list);
	lade_status status = arrays && list ? LADE_OK : LADE_E_NOMEM;

	for (size_t i = 0; i < ipc->batch_count && status == LADE_OK; i++) {
		list[i] = &arrays[i];
		status = lade__column_export(ipc->batches[i], NULL, &arrays[i], err);
	}
	if (status == LADE_OK)
		status = lade__ipc_write(ipc->top, list, ipc->batch_count, true,
		                         (lade_output){to, append}, err);
	for (size_t i = 0; arrays && i < ipc->batch_count; i++)
		if (arrays[i].release)
			arrays[i].release(&arrays[i]);
	free(list);
	free(arrays);
	return status;
}

/* Reads; 'again': it was written by us, and must be as the first. */
static void read_one(const uint8_t *data, size_t size, const lade__ipc *first)
{
	memory m = {.count = 0};
	lade__ipc ipc;
	lade__bytes_out again = {0};
	lade_source source;
	lade_error err = {.offset = LADE_NO_OFFSET};

	if (lade_source_memory_open((lade_cspan){.data = data, .size = size}, &source, &err) !=
	    LADE_OK)
		return;
	lade_status status = lade__ipc_read(source, (lade__ipc_memory){&m, make}, &ipc, &err);
	if (status != LADE_OK && !err.message[0])
		abort();
	if (first && status != LADE_E_NOMEM) {
		if (status != LADE_OK || ipc.batch_count != first->batch_count)
			abort();
		for (size_t i = 0; i < ipc.batch_count; i++)
			if (ipc.batches[i]->length != first->batches[i]->length)
				abort();
	}
	if (status == LADE_OK && !first && write_again(&ipc, &again, &err) == LADE_OK)
		read_one(again.bytes, again.size, &ipc);
	free(again.bytes);
	lade__ipc_free(&ipc);
	lade_source_close(source);
	while (m.count)
		free(m.parts[--m.count]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_one(data, size, NULL);
	return 0;
}
