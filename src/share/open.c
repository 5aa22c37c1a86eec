/*
 * open.c: opened versions: their maps, their life, and how they are given out.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "share/client.h"

#include "base/options.h"
#include "base/try.h"

#include <lade/dlpack.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of private copies of heads: data in them are aligned as in a block. */
#define ALIGN 64

/* ---- life ------------------------------------------------------------------------------- */

lade_share_version *lade_share_version_ref(lade_share_version *v)
{
	if (v)
		atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
	return v;
}

static void version_free(lade_share_version *v)
{
	for (size_t i = 0; i < v->area_count; i++)
		if (v->areas[i])
			lade__area_free(v->areas[i]);
	lade__head_free(&v->head);
	free(v->bytes);
	lade__share_unref(v->share);
	free(v);
}

void lade_share_version_unref(lade_share_version *v)
{
	lade_share *s;

	if (!v || atomic_fetch_sub_explicit(&v->refs, 1, memory_order_acq_rel) != 1)
		return;
	s = v->share;
	pthread_mutex_lock(&s->cache_mutex);
	if (v->cached) {
		lade_share_version **at = &s->cache;
		while (*at != v)
			at = &(*at)->next;
		*at = v->next;
	}
	pthread_mutex_unlock(&s->cache_mutex);
	lade__share_release(s, v->info.version, v->generation);
	version_free(v);
}

/* An opened one, with a reference more; NULL: there is none.  Another connection's version of that
 * number may be another. */
static lade_share_version *find(lade_share *s, uint64_t version, uint64_t generation, bool copied)
{
	lade_share_version *v;

	pthread_mutex_lock(&s->cache_mutex);
	for (v = s->cache; v && (v->info.version != version || v->generation != generation ||
	                         v->info.copied != copied);)
		v = v->next;
	if (v) {
		/* The last reference may be going: then it is not to be had. */
		size_t refs = atomic_load(&v->refs);
		while (refs && !atomic_compare_exchange_weak(&v->refs, &refs, refs + 1))
			;
		if (!refs)
			v = NULL;
	}
	pthread_mutex_unlock(&s->cache_mutex);
	return v;
}

/* ---- opening ---------------------------------------------------------------------------- */

/* The head in private memory: nobody else can change it. */
static lade_status copy_head(const lade__record *r, uint8_t **out, size_t *size, lade_error *err)
{
	const lade__block *last = r->block_count ? &r->blocks[r->block_count - 1] : NULL;
	void *copy = NULL;
	struct stat st = {0};

	*size = r->head_size;
	if (r->flags & LADE__RECORD_HEAD_BLOCK) {
		*size = (size_t)last->size;
		if (last->size > LADE__HEAD_MAX || fstat(last->fd, &st) ||
		    (uint64_t)st.st_size < last->size)
			return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
			                 "a head of %llu bytes: its block has %lld, at most %u",
			                 (unsigned long long)last->size, (long long)st.st_size,
			                 LADE__HEAD_MAX);
	}
	if (posix_memalign(&copy, ALIGN, *size + 1))
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu bytes",
		                 *size);
	*out = copy;
	if (!(r->flags & LADE__RECORD_HEAD_BLOCK)) {
		memcpy(copy, r->head, *size);
		return LADE_OK;
	}
	for (size_t at = 0; at < *size;) {
		ssize_t n = pread(last->fd, (uint8_t *)copy + at, *size - at, (off_t)at);
		if (n <= 0)
			return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET,
			                 "a head: read %zu of %zu bytes", at, *size);
		at += (size_t)n;
	}
	return LADE_OK;
}

/* So that it can be published again. */
static void name_area(lade_share_version *v, const lade__record *r, size_t i)
{
	v->areas[i]->version = r->version;
	v->areas[i]->index = (uint32_t)i;
	v->areas[i]->generation = v->generation;
}

static lade_status map_blocks(lade_share_version *v, const lade__record *r, size_t count,
                              bool writable, lade_error *err)
{
	lade_status status = LADE_OK;

	for (size_t i = 0; i < count; i++) {
		const lade__block *b = &r->blocks[i];
		if (b->kind == LADE__BLOCK_DEVICE || b->kind == LADE__BLOCK_LEASE) {
			lade__vmm *vmm;
			if (writable)
				TRY(lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
				              "'%s' is on a device: it cannot be opened to write",
				              r->name));
			TRY(lade__vmm_open(b, &vmm, err));
			TRY(lade__area_of(v->share->areas, vmm, vmm->size, &v->areas[i], err));
			name_area(v, r, i);
			continue;
		}
		if (b->kind != LADE__BLOCK_HOST || b->size > PTRDIFF_MAX)
			TRY(lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
			              "block %zu of kind %d and %llu bytes is not valid", i,
			              b->kind, (unsigned long long)b->size));
		TRY(lade__area_map(v->share->areas, b->fd, (size_t)b->size, writable, &v->areas[i],
		                   err));
		name_area(v, r, i);
	}
out:
	return status;
}

/* Checks all values, once, if the caller wants it so. */
static lade_status check_version(lade_share_version *v, lade_share_check check, lade_error *err)
{
	lade_status status = LADE_OK;

	if (check == LADE_SHARE_CHECK_LAYOUT ||
	    (check == LADE_SHARE_CHECK_DEFAULT && v->info.uid == geteuid()) ||
	    atomic_load(&v->checked))
		return LADE_OK;
	for (size_t i = 0; i < v->head.batch_count; i++)
		TRY(v->head.devices[i]
		            ? lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                        "'%s' is on device %d: only a copy on the host can be "
		                        "checked in full",
		                        v->name, (int)v->head.devices[i]->number)
		            : lade__column_check(v->head.batches[i], err));
	atomic_store(&v->checked, true);
out:
	return status;
}

static lade_status make_version(lade_share *s, const lade__record *r,
                                const lade_share_open_options *o, uint64_t generation,
                                lade_share_version **out, lade_error *err)
{
	size_t count = r->block_count - (r->flags & LADE__RECORD_HEAD_BLOCK), size = 0;
	lade__buffer memory[LADE__WIRE_FDS];
	lade_share_version *v = calloc(1, sizeof *v + count * sizeof *v->areas);
	lade_status status;

	if (!v)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a version");
	atomic_init(&v->refs, 1);
	atomic_fetch_add(&s->refs, 1);
	v->share = s;
	v->generation = generation;
	v->area_count = count;
	strcpy(v->name, r->name);
	v->info = lade__share_info(r);
	v->info.name = v->name;
	TRY(copy_head(r, &v->bytes, &size, err));
	TRY(map_blocks(v, r, count, o->writable, err));
	for (size_t i = 0; i < count; i++)
		memory[i] = (lade__buffer){v->areas[i]->data, v->areas[i]->size, v->areas[i]->vmm};
	TRY(lade__head_read(v->bytes, size, memory, count, &v->head, err));
	/* Those of the listing are what the publisher says. */
	v->info.rows = v->head.rows;
	v->info.batches = (uint32_t)v->head.batch_count;
	for (size_t i = 0; i < v->head.batch_count; i++)
		if (v->head.devices[i])
			v->info.device = v->head.devices[i]->number;
	v->info.on_device = v->info.device >= 0;
	TRY(check_version(v, o->check, err));
	*out = v;
	v = NULL;
out:
	if (v)
		version_free(v);
	return status;
}

static void add_to_cache(lade_share *s, lade_share_version *v)
{
	pthread_mutex_lock(&s->mutex); /* the generation stays */
	pthread_mutex_lock(&s->cache_mutex);
	if (v->generation == s->generation) {
		v->cached = true;
		v->next = s->cache;
		s->cache = v;
	}
	pthread_mutex_unlock(&s->cache_mutex);
	pthread_mutex_unlock(&s->mutex);
}

/* A record whose descriptors and head are the caller's. */
typedef struct answer {
	lade__record r;
	lade__block room[LADE__WIRE_FDS];
	uint8_t *head;
	uint64_t generation; /* of the connection that has the version open */
} answer;

/* Asks for the record of a version. */
static lade_status ask(lade_share *s, const char *name, uint64_t version, bool host, answer *a,
                       lade_error *err)
{
	lade_status status = lade__share_begin(s, host ? LADE__OPEN_COPY : LADE__OPEN, err);

	if (status != LADE_OK)
		return status;
	lade__wire_put(&s->out, version, 8);
	lade__wire_bytes(&s->out, name, strlen(name));
	TRY(lade__share_ask(s, LADE__RECORD, true, err));
	status = lade__read_record(&s->in, &a->r, a->room, err);
	if (status != LADE_OK) {
		lade__packet_close(&s->in);
		goto out;
	}
	a->generation = s->generation;
	a->head = malloc((size_t)a->r.head_size + 1);
	TRY(a->head ? LADE_OK
	            : lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a version"));
	memcpy(a->head, a->r.head, a->r.head_size);
	a->r.head = a->head;
out:
	lade__share_end(s);
	return status;
}

lade_status lade_share_open(lade_share *s, const char *name, const lade_share_open_options *given,
                            lade_share_version **out, lade_error *err)
{
	lade_share_open_options o;
	answer a = {.head = NULL};
	lade_share_version *v = NULL;
	lade_status status;

	if (!s || !out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 s ? "out" : "share");
	*out = NULL;
	TRY(lade__options_read(&o, sizeof o, given, "lade_share_open_options", err));
	TRY(lade__share_name(name, err));
	if ((unsigned)o.check > LADE_SHARE_CHECK_FULL)
		TRY(lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "check %d is unknown",
		              (int)o.check));
	TRY(ask(s, name, o.version, o.host, &a, err));
	if (!o.writable)
		v = find(s, a.r.version, a.generation, a.r.flags & LADE__RECORD_COPIED);
	if (v) {
		/* The broker has counted it once more. */
		lade__share_release(s, a.r.version, a.generation);
		status = check_version(v, o.check, err);
	} else {
		status = make_version(s, &a.r, &o, a.generation, &v, err);
		if (status != LADE_OK)
			lade__share_release(s, a.r.version, a.generation);
		else if (!o.writable)
			add_to_cache(s, v);
	}
	if (status != LADE_OK) {
		lade_share_version_unref(v);
		v = NULL;
	}
	*out = v;
out:
	lade__record_close(&a.r);
	free(a.head);
	return status;
}

/* ---- giving out ------------------------------------------------------------------------- */

const lade_share_info *lade_share_version_info(const lade_share_version *v)
{
	return v ? &v->info : NULL;
}

lade_status lade_share_version_schema(lade_share_version *v, struct ArrowSchema *out,
                                      lade_error *err)
{
	if (!v || !out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 v ? "out" : "version");
	return lade__nodes_export(v->head.root, out, err);
}

lade_status lade_share_version_array(lade_share_version *v, size_t index, struct ArrowArray *out,
                                     lade_error *err)
{
	if (!v || !out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 v ? "out" : "version");
	if (index >= v->head.batch_count)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET, "array %zu of %zu", index,
		                 v->head.batch_count);
	if (v->head.devices[index])
		return lade_fail(err, LADE_E_STATE, LADE_NO_OFFSET,
		                 "'%s' is in the memory of device %d: take it as a device's array, "
		                 "or open a copy on the host",
		                 v->name, (int)v->head.devices[index]->number);
	return lade__column_export(v->head.batches[index], v, out, err);
}

lade_status lade_share_version_device_array(lade_share_version *v, size_t index,
                                            struct ArrowDeviceArray *out, lade_error *err)
{
	const lade__device *d;
	lade_place place = LADE_PLACE_HOST;

	if (!v || !out || index >= v->head.batch_count)
		return !v || !out ? lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                              v ? "out" : "version")
		                  : lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET, "array %zu of %zu",
		                              index, v->head.batch_count);
	d = v->head.devices[index];
	if (d)
		place = (lade_place){LADE_DEVICE, d->number};
	*out = (struct ArrowDeviceArray){.device_id = d ? d->number : -1};
	lade_place_to_dlpack(place, &out->device_type, NULL);
	return lade__column_export(v->head.batches[index], v, &out->array, err);
}
