/*
 * checksums.c: checksums of many buffers: on the host over an engine's threads, where they are on
 * devices by these.  The planner sorts items by spec and cost; spans have neither, and their place
 * alone says where they go.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "engine/engine.h"
#include "batch/gpu/gpu.h"
#include "checksum/checksum.h"

/* Less work than this is done by the caller's thread alone: waking another takes about as long. */
#define ALONE_MAX ((uint64_t)128 * 1024)

typedef struct job {
	lade_checksum kind;
	lade_cpu cpu;
	const lade_cspan *spans;
	uint64_t *sums;
} job;

static void one(void *ctx, size_t index, lade_worker *worker)
{
	const job *j = ctx;
	(void)worker;
	if (lade_kind_is_host(j->spans[index].place.kind))
		j->sums[index] =
			lade__checksum(j->kind, j->cpu, j->spans[index].data, j->spans[index].size);
}

static lade_status span_check(const lade_cspan *span, size_t index, lade_error *err)
{
	if (!span->data && span->size)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "span %zu is NULL and has %zu bytes", index, span->size);
	if ((unsigned)span->place.kind >= LADE_KIND_COUNT)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "span %zu: memory kind %d is unknown", index,
		                 (int)span->place.kind);
	if (!lade_kind_is_host(span->place.kind) && span->place.device < 0)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "span %zu: device %d is none",
		                 index, (int)span->place.device);
	return LADE_OK;
}

lade_status lade_checksums(lade_engine *engine, lade_checksum kind, const lade_cspan *spans,
                           size_t count, uint64_t *sums, lade_error *err)
{
	if (!engine)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "lade_checksums: no engine");
	if (lade_checksum_size(kind) == 0)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "there is no checksum %d",
		                 (int)kind);
	if (count > 0 && (!spans || !sums))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "lade_checksums: %zu spans, but the pointer to %s is NULL", count,
		                 spans ? "the sums" : "them");
	uint64_t total = 0; /* on the host */
	bool devices = false;
	for (size_t i = 0; i < count; i++) {
		const lade_cspan *s = &spans[i];
		lade_status status = span_check(s, i, err);
		if (status != LADE_OK)
			return status;
		if (!lade_kind_is_host(s->place.kind))
			devices = true;
		else
			total = s->size > UINT64_MAX - total ? UINT64_MAX : total + s->size;
	}
	if (devices) {
		lade_status status = lade__gpu_checksums(engine, kind, spans, count, sums, err);
		if (status != LADE_OK)
			return status;
	}
	job j = {kind, engine->cpu, spans, sums};
	if (count > 1 && total > ALONE_MAX)
		return lade__engine_parallel(engine, &(lade__calls){one, &j, .count = count}, err);
	for (size_t i = 0; i < count; i++)
		one(&j, i, NULL);
	return LADE_OK;
}
