/*
 * worker.c: scratch memory and states of implementations, for one thread at a time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "worker/worker.h"

#include <stdlib.h>
#include <string.h>

lade_worker *lade__worker_new(const lade_allocator *host)
{
	lade_worker *worker = calloc(1, sizeof *worker);
	if (worker)
		worker->host = host;
	return worker;
}

static void block_free(lade_worker *worker, lade__block *block)
{
	lade__host_free(worker->host, block->data, block->size);
	*block = (lade__block){NULL, 0};
}

void lade__worker_trim(lade_worker *worker, size_t keep)
{
	for (int i = 0; i < LADE__SCRATCH_COUNT; i++)
		if (worker->scratch[i].size > keep)
			block_free(worker, &worker->scratch[i]);
}

void lade__worker_free(lade_worker *worker)
{
	for (size_t i = 0; i < worker->state_count; i++) {
		lade__state *s = &worker->states[i];
		if (s->state)
			s->state_free(s->ctx, s->state);
	}
	free(worker->states);
	lade__worker_trim(worker, 0);
	free(worker);
}

void *lade__worker_block(lade_worker *worker, unsigned slot, size_t size)
{
	lade__block *block = &worker->scratch[slot];
	if (size <= block->size && block->data)
		return block->data;
	/* Rounded up, so that chunks of slightly growing sizes do not allocate each time. */
	size_t want = size < 4096 ? 4096 : size;
	if (want > SIZE_MAX / 2)
		return NULL;
	want += want / 16;
	want = (want + 4095) & ~(size_t)4095;
	block_free(worker, block);
	block->data = lade__host_alloc(worker->host, want);
	block->size = block->data ? want : 0;
	return block->data;
}

void *lade_worker_scratch(lade_worker *worker, unsigned slot, size_t size)
{
	return slot < 2 ? lade__worker_block(worker, LADE__SCRATCH_IMPL + slot, size) : NULL;
}

lade_status lade__worker_state(lade_worker *worker, const lade_implementation *p, size_t index,
                               size_t count, void **state, lade_error *err)
{
	*state = NULL;
	if (!p->state_new)
		return LADE_OK;
	if (index >= worker->state_count) {
		lade__state *states = realloc(worker->states, count * sizeof *states);
		if (!states)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "no memory for %zu states", count);
		memset(states + worker->state_count, 0,
		       (count - worker->state_count) * sizeof *states);
		worker->states = states;
		worker->state_count = count;
	}
	lade__state *s = &worker->states[index];
	if (!s->state)
		*s = (lade__state){p->state_new(p->ctx, worker->host), p->ctx, p->state_free};
	*state = s->state;
	return *state ? LADE_OK : lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
	                                    "no memory for the state of %s", p->name);
}
