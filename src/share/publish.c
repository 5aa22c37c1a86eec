/*
 * publish.c: memory that can be shared, and publishing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "share/client.h"

#include "base/options.h"
#include "base/try.h"
#include "share/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- memory ----------------------------------------------------------------------------- */

static void gone(void *ctx)
{
	lade__area_free(ctx);
}

lade_status lade_share_alloc(lade_share *s, size_t size, lade_array **out, lade_error *err)
{
	lade__area *area;
	lade_array_options options = {.struct_size = sizeof options, .gone = gone};
	lade_status status;

	if (!s || !out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 s ? "out" : "share");
	*out = NULL;
	if (!size)
		return lade_array_new(0, LADE_PLACE_HOST, NULL, out, err);
	status = lade__area_new(s->areas, size, &area, err);
	if (status != LADE_OK)
		return status;
	options.gone_ctx = area;
	status = lade_array_wrap(lade_host_span(area->data, size), &options, out, err);
	if (status != LADE_OK)
		lade__area_free(area);
	return status;
}

lade_status lade_share_alloc_in(lade_share *s, size_t size, lade_place place, lade_array **out,
                                lade_error *err)
{
	lade_array_options options = {.struct_size = sizeof options, .gone = gone};
	lade__vmm *vmm;
	lade__area *area = NULL;
	lade_status status;

	if (place.kind == LADE_HOST)
		return lade_share_alloc(s, size, out, err);
	if (!s || !out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 s ? "out" : "share");
	*out = NULL;
	if (place.kind != LADE_DEVICE)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "%s memory cannot be shared", lade_kind_name(place.kind));
	if (!size)
		return lade_array_new(0, place, NULL, out, err);
	TRY(lade__vmm_new(place.device, size, &vmm, err));
	TRY(lade__area_of(s->areas, vmm, size, &area, err));
	options.gone_ctx = area;
	TRY(lade_array_wrap((lade_span){area->data, size, place}, &options, out, err));
	area->array = *out;
out:
	if (status != LADE_OK && area)
		lade__area_free(area);
	return status;
}

/* ---- publishing ------------------------------------------------------------------------- */

/* What of a version this call makes: the copies, in a memfd or on a device, and a large head. */
typedef struct made {
	int copies, head;
	lade__vmm *device_copies;
} made;

static void close_made(made *m)
{
	if (m->copies >= 0)
		close(m->copies);
	if (m->head >= 0)
		close(m->head);
	m->copies = m->head = -1;
	lade__vmm_unref(m->device_copies);
	m->device_copies = NULL;
}

static uint32_t columns_of(const lade__emitted *p)
{
	return p->root->type.layout == LADE__AS_STRUCT ? (uint32_t)p->root->child_count : 1;
}

static lade_status write_memfd(const lade__emitted *p, const uint8_t *head, size_t size, int *fd,
                               lade_error *err)
{
	lade__job job = {.kind = LADE__JOB_BYTES, .src = head, .size = size};
	lade__emitted only = {.jobs = &job, .job_count = 1};
	lade_status status;

	TRY(lade__memfd_new(size, fd, err));
	TRY(lade__emit_copy(head ? &only : p, NULL, *fd, err));
	TRY(lade__memfd_seal(*fd, err));
out:
	return status;
}

static lade_status copy_on_device(const lade__emitted *p, lade__vmm **out, lade_error *err)
{
	lade_status status;

	TRY(lade__vmm_new(p->device->number, (size_t)p->data_size, out, err));
	TRY(lade__emit_copy_device(p, (*out)->at, err));
	TRY(lade__vmm_publish(*out, err));
out:
	return status;
}

/* Memory that this connection got from no other.  Its descriptor goes with the message. */
static bool is_own(const lade__area *a)
{
	return a->fd >= 0 || (a->vmm && (a->array || a->vmm->lease));
}

/* The record's blocks.  Own memory is sealed here; then the caller's map is read-only. */
static lade_status fill_blocks(const lade__emitted *p, const lade_share_table *table,
                               const made *m, size_t head_size, lade__record *r, lade_error *err)
{
	lade_status status = LADE_OK;

	for (size_t i = 0; i < p->used_count; i++) {
		lade__area *a = p->used[i];
		if (is_own(a) && a->vmm) {
			TRY(lade__vmm_publish(a->vmm, err));
			r->blocks[r->block_count++] = lade__vmm_block(a->vmm);
			continue;
		}
		if (a->fd >= 0)
			TRY(lade__area_seal(a, table->writable, err));
		r->blocks[r->block_count++] = a->fd >= 0 ? (lade__block){.kind = LADE__BLOCK_HOST,
		                                                         .fd = a->fd,
		                                                         .size = a->size}
		                                         : (lade__block){.kind = LADE__BLOCK_REF,
		                                                         .fd = -1,
		                                                         .index = a->index,
		                                                         .version = a->version,
		                                                         .size = a->size};
	}
	if (m->copies >= 0)
		r->blocks[r->block_count++] = (lade__block){
			.kind = LADE__BLOCK_HOST, .fd = m->copies, .size = p->data_size};
	if (m->device_copies)
		r->blocks[r->block_count++] = lade__vmm_block(m->device_copies);
	if (m->head >= 0) {
		r->blocks[r->block_count++] =
			(lade__block){.kind = LADE__BLOCK_HOST, .fd = m->head, .size = head_size};
		r->flags = LADE__RECORD_HEAD_BLOCK;
	}
out:
	return status;
}

static lade_status send(lade_share *s, const char *name, const lade__emitted *p, lade__record *r,
                        lade_share_published *out, lade_error *err)
{
	lade_status status = lade__share_begin(s, LADE__PUBLISH, err);

	if (status != LADE_OK)
		return status;
	s->wait_ms = (uint32_t)r->time;
	/* What an earlier connection had opened is not open in this one. */
	for (size_t i = 0; i < p->used_count; i++) {
		s->bound |= !is_own(p->used[i]);
		if (!is_own(p->used[i]) && p->used[i]->generation != s->generation)
			TRY(lade_fail(err, LADE_E_STATE, LADE_NO_OFFSET,
			              "the broker that had version %llu has ended",
			              (unsigned long long)p->used[i]->version));
	}
	snprintf(r->name, sizeof r->name, "%s", name);
	lade__wire_record(&s->out, r);
	TRY(lade__share_ask(s, LADE__DONE, false, err));
	lade__cursor c = lade__packet_body(&s->in);
	lade__packet_close(&s->in);
	out->version = lade__take(&c, 8);
out:
	lade__share_end(s);
	return status;
}

static lade_status publish(lade_share *s, const char *name, const lade_share_table *table,
                           lade__emitted *p, lade_share_published *out, lade_error *err)
{
	lade__block blocks[LADE__WIRE_FDS];
	lade__record r = {.time = table->wait_ms,
	                  .rows = p->rows,
	                  .bytes = p->shared + p->copied,
	                  .columns = columns_of(p),
	                  .batches = (uint32_t)table->batch_count,
	                  .blocks = blocks};
	size_t head_size = lade__emit_head_size(p), data_size = 0;
	bool small = !p->device && !p->used_count && head_size + p->data_size <= LADE__HEAD_SMALL;
	made m = {-1, -1, NULL};
	uint8_t *head = NULL;
	lade_status status;

	if (small)
		data_size = (size_t)p->data_size;
	head = calloc(1, head_size + data_size);
	TRY(head ? LADE_OK
	         : lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu bytes",
	                     head_size + data_size));
	lade__emit_head(p, small ? LADE__BLOCK_INLINE : (uint32_t)p->used_count, table->batch_count,
	                head);
	if (small)
		TRY(lade__emit_copy(p, head + head_size, -1, err));
	else if (p->data_size && p->device)
		TRY(copy_on_device(p, &m.device_copies, err));
	else if (p->data_size)
		TRY(write_memfd(p, NULL, (size_t)p->data_size, &m.copies, err));
	if (!small && head_size > LADE__HEAD_SMALL)
		TRY(write_memfd(p, head, head_size, &m.head, err));
	TRY(fill_blocks(p, table, &m, head_size, &r, err));
	if (m.head < 0) {
		r.head = head;
		r.head_size = (uint32_t)(head_size + data_size);
	}
	TRY(send(s, name, p, &r, out, err));
	out->shared = p->shared;
	out->copied = p->copied;
	out->staged = p->staged;
	out->leased = p->leased;
	memcpy(out->why, p->why, sizeof out->why);
out:
	close_made(&m);
	free(head);
	return status;
}

/* Small versions are copied whole: they travel in messages. */
static lade_status plan_for(lade_share *s, const lade_share_table *table, lade__emitted *p,
                            lade_error *err)
{
	lade_status status = lade__emit_make(p, table, s->areas, table->copy, err);

	if (status != LADE_OK || table->copy != LADE_SHARE_COPY_IF_NEEDED || !p->used_count ||
	    p->device ||
	    p->shared + p->data_size + lade__emit_head_size(p) > LADE__HEAD_SMALL)
		return status;
	lade__emit_free(p);
	status = lade__emit_make(p, table, s->areas, LADE_SHARE_COPY_ALWAYS, err);
	if (status == LADE_OK)
		snprintf(p->why, sizeof p->why, "it is small and travels in messages");
	return status;
}

lade_status lade_share_publish(lade_share *s, const char *name, const lade_share_table *given,
                               lade_share_published *out, lade_error *err)
{
	lade_share_table table;
	lade_share_published done = {.struct_size = sizeof done};
	size_t size = out ? out->struct_size : sizeof done;
	lade__emitted plan = {0};
	lade_error own;
	lade_status status;

	TRY(lade__options_read(&table, sizeof table, given, "lade_share_table", err));
	TRY(lade__share_name(name, err));
	if (!s || !table.schema || size < sizeof size || size > LADE__STRUCT_SIZE_MAX ||
	    (table.batch_count && !table.batches == !table.device_batches) ||
	    (unsigned)table.copy > LADE_SHARE_COPY_ALWAYS || table.batch_count > UINT32_MAX ||
	    table.writable > 1)
		TRY(lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		              "share or schema is NULL, there are no batches or two lists of "
		              "them, or 'copy', 'writable' or a struct_size is not valid"));
	TRY(plan_for(s, &table, &plan, err));
	status = publish(s, name, &table, &plan, &done, &own);
	/* Memory that could not be sealed, or that the broker does not have any more. */
	if (table.copy == LADE_SHARE_COPY_IF_NEEDED && plan.used_count &&
	    (status == LADE_E_STATE || status == LADE_E_NOT_FOUND)) {
		lade__emit_free(&plan);
		TRY(lade__emit_make(&plan, &table, s->areas, LADE_SHARE_COPY_ALWAYS, err));
		snprintf(plan.why, sizeof plan.why, "%.110s", own.message);
		status = publish(s, name, &table, &plan, &done, &own);
	}
	if (status != LADE_OK && err)
		*err = own;
	if (status == LADE_OK && out) {
		lade__struct_copy(out, size, &done, sizeof done);
		out->struct_size = size;
	}
out:
	lade__emit_free(&plan);
	return status;
}
