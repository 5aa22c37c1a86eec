/*
 * open.c: opens an RNTuple, and says what it has.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple/rntuple.h"

#include "base/options.h"
#include "base/try.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define METADATA_MAX ((uint64_t)1 << 30)

/* ---- finding it ----------------------------------------------------------------------------- */

typedef struct search {
	const char *name; /* NULL: any */
	size_t count, old_count;
	uint64_t key_off;
	uint32_t key_size;
	char list[160]; /* names that were seen */
	size_t list_size;
} search;

static lade_status look_at(void *ctx, const char *name, uint64_t key_off, uint32_t key_size,
                           lade_error *err)
{
	search *s = ctx;
	(void)err;
	size_t room = sizeof s->list - s->list_size;
	int n = snprintf(s->list + s->list_size, room, "%s%s", s->list_size ? ", " : "", name);
	if (n > 0)
		s->list_size += (size_t)n < room ? (size_t)n : room - 1;
	if (s->name && strcmp(s->name, name) != 0)
		return LADE_OK;
	if (key_size == 0) {
		s->old_count++;
		return LADE_OK;
	}
	s->count++;
	s->key_off = key_off;
	s->key_size = key_size;
	return LADE_OK;
}

static lade_status find_key(const rnt_file *file, const char *name, search *s, lade_error *err)
{
	*s = (search){.name = name};
	lade_status status = lade__rnt_file_walk(file, look_at, s, err);
	if (status != LADE_OK || s->count == 1)
		return status;
	if (s->count == 0 && s->old_count)
		return lade_fail(err, LADE_E_VERSION, LADE_NO_OFFSET,
		                 "rntuple: %s was written before version 1 of the format", s->list);
	if (s->count == 0 && s->list_size == 0)
		return lade_fail(err, LADE_E_NOT_FOUND, LADE_NO_OFFSET,
		                 "rntuple: the file has no RNTuple");
	return lade_fail(err, LADE_E_NOT_FOUND, LADE_NO_OFFSET,
	                 "rntuple: %zu RNTuples are named %s; the file has: %s", s->count,
	                 name ? name : "anything: give a name", s->list);
}

lade_status lade__rnt_file_find(const rnt_file *file, const char *name, uint64_t *key_off,
                                uint32_t *key_size, lade_error *err)
{
	search s;
	lade_status status = find_key(file, name, &s, err);
	*key_off = s.key_off;
	*key_size = s.key_size;
	return status;
}

typedef struct listing {
	lade_status (*visit)(void *ctx, const char *name);
	void *ctx;
} listing;

static lade_status list_one(void *ctx, const char *name, uint64_t key_off, uint32_t key_size,
                            lade_error *err)
{
	listing *l = ctx;
	(void)key_off;
	if (key_size == 0)
		return LADE_OK;
	lade_status status = l->visit(l->ctx, name);
	return status == LADE_OK ? status
	                         : lade_fail(err, status, LADE_NO_OFFSET,
	                                     "rntuple: the caller ended the listing at %s", name);
}

lade_status lade_rntuple_list(lade_source source, lade_status (*visit)(void *ctx, const char *name),
                              void *ctx, lade_error *err)
{
	rnt_file file = {.source = source};
	listing l = {visit, ctx};
	if (!source.ops || !visit)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "rntuple: no %s",
		                 source.ops ? "function" : "source");
	lade_status status = lade__rnt_file_begin(&file, err);
	if (status == LADE_OK)
		status = lade__rnt_file_walk(&file, list_one, &l, err);
	lade__rnt_hold_none(&file);
	return status;
}

/* ---- opening -------------------------------------------------------------------------------- */

void lade__rnt_free(lade_rntuple *t)
{
	lade__rnt_hold_none(&t->file);
	free(atomic_load(&t->spare));
	free(t->field);
	free(t->field_more);
	free(t->physical);
	free(t->alias);
	free(t->group);
	free(t->group_clusters);
	free(t->cluster);
	free(t->run);
	free(t->page);
	lade__rnt_memory_free(&t->memory);
	free(t);
}

lade_status lade__rnt_envelopes(lade_rntuple *t, const rnt_anchor *anchor, lade_error *err)
{
	rnt_fault fault = {.err = err};
	rnt_in header = {.fault = &fault}, footer = {.fault = &fault};
	uint64_t sum, footer_sum;
	lade_status status;
	lade__rnt_hold(&t->file, (rnt_locator[]){anchor->header.at, anchor->footer.at}, 2);
	TRY(lade__rnt_envelope(&t->file, &anchor->header, RNT_HEADER, &header, &sum, err));
	TRY(lade__rnt_header(t, &header));
	TRY(lade__rnt_envelope(&t->file, &anchor->footer, RNT_FOOTER, &footer, &footer_sum, err));
	TRY(lade__rnt_footer(t, &footer, sum));
	TRY(lade__rnt_pages(t, sum, err));
	TRY(lade__rnt_resolve(t, err));
out:
	free((void *)(uintptr_t)header.data);
	free((void *)(uintptr_t)footer.data);
	return status;
}

lade_status lade_rntuple_open(lade_source source, const lade_rntuple_options *options,
                              lade_rntuple **out, lade_error *err)
{
	lade_rntuple_options o;
	search s;
	rnt_anchor anchor;
	if (!out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "rntuple: 'out' is NULL");
	*out = NULL;
	lade_status status = lade__options_read(&o, sizeof o, options, "lade_rntuple_options", err);
	if (status != LADE_OK)
		return status;
	if (!source.ops)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "rntuple: no source");
	lade_rntuple *t = calloc(1, sizeof *t);
	if (!t)
		return lade__rnt_nomem(err);
	atomic_init(&t->refs, 1);
	atomic_init(&t->spare, NULL);
	t->file = (rnt_file){.source = source,
	                     .cancel = o.cancel,
	                     .metadata_max = o.metadata_max ? o.metadata_max : METADATA_MAX,
	                     .engine = o.engine ? o.engine : lade_engine_default()};
	if (!t->file.engine) {
		status = lade__rnt_nomem(err);
		goto out;
	}
	TRY(lade__rnt_file_begin(&t->file, err));
	TRY(find_key(&t->file, o.name, &s, err));
	TRY(lade__rnt_anchor_read(&t->file, s.key_off, s.key_size, &anchor, err));
	t->file.key_max = anchor.key_max;
	t->info.epoch = anchor.version[0];
	t->info.major = anchor.version[1];
	t->info.minor = anchor.version[2];
	t->info.patch = anchor.version[3];
	TRY(lade__rnt_envelopes(t, &anchor, err));
	t->file.cancel = NULL;
	lade__rnt_hold_none(&t->file);
	if (source.ops->view)
		t->view = source.ops->view(source.ctx);
	if (!lade_kind_is_host(t->view.place.kind))
		t->view.data = NULL;
	*out = t;
	t = NULL;
out:
	if (t)
		lade__rnt_free(t);
	return status;
}

lade_rntuple *lade_rntuple_ref(lade_rntuple *tuple)
{
	atomic_fetch_add(&tuple->refs, 1);
	return tuple;
}

void lade_rntuple_unref(lade_rntuple *tuple)
{
	if (!tuple || atomic_fetch_sub(&tuple->refs, 1) != 1)
		return;
	lade_source_close(tuple->file.source);
	lade__rnt_free(tuple);
}

/* ---- what it has ---------------------------------------------------------------------------- */

const lade_rntuple_info *lade_rntuple_about(const lade_rntuple *tuple)
{
	return &tuple->info;
}

const lade_rntuple_field *lade_rntuple_field_at(const lade_rntuple *tuple, uint64_t index)
{
	return index < tuple->field_count ? &tuple->field[index] : NULL;
}

const lade_rntuple_column *lade_rntuple_column_at(const lade_rntuple *tuple, uint64_t index)
{
	return index < tuple->column_count ? &tuple->column[index] : NULL;
}

lade_status lade_rntuple_find_field(const lade_rntuple *tuple, const char *path, uint64_t *field,
                                    lade_error *err)
{
	if (!tuple || !path || !field)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "rntuple: an argument is NULL");
	size_t slot = (size_t)lade__rnt_path_hash(path) & (tuple->path_slots - 1);
	uint32_t i = tuple->by_path[slot];
	while (i != RNT_NONE && strcmp(tuple->field[i].path, path) != 0)
		i = tuple->field_more[i].same;
	if (i == RNT_NONE)
		return lade_fail(err, LADE_E_NOT_FOUND, LADE_NO_OFFSET,
		                 "rntuple: %s has no field %s", tuple->info.name, path);
	*field = i;
	return LADE_OK;
}

lade_status lade_rntuple_find(const lade_rntuple *tuple, const char *path, uint64_t *column,
                              lade_error *err)
{
	uint64_t i;
	if (!column)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "rntuple: 'column' is NULL");
	lade_status status = lade_rntuple_find_field(tuple, path, &i, err);
	if (status != LADE_OK)
		return status;
	if (tuple->field[i].hidden)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "rntuple: field %s cannot be read: %s", path,
		                 tuple->field[i].hidden);
	for (; tuple->field[i].column_count == 0; i = tuple->field_more[i].child)
		if (tuple->field_more[i].child_count != 1)
			return lade_fail(err, LADE_E_NOT_FOUND, LADE_NO_OFFSET,
			                 "rntuple: field %s has no column: read its children",
			                 path);
	*column = tuple->field[i].column;
	return LADE_OK;
}

lade_status lade_rntuple_cluster(const lade_rntuple *tuple, uint64_t cluster,
                                 lade_rntuple_part *entries, lade_error *err)
{
	if (cluster >= tuple->cluster_count)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "rntuple: cluster %" PRIu64 " of %zu", cluster,
		                 tuple->cluster_count);
	const rnt_cluster *c = &tuple->cluster[cluster];
	*entries = (lade_rntuple_part){c->first, c->count};
	return LADE_OK;
}

lade_status lade_rntuple_cluster_elements(const lade_rntuple *tuple, uint64_t column,
                                          uint64_t cluster, lade_rntuple_part *elements,
                                          lade_error *err)
{
	if (column >= tuple->column_count || cluster >= tuple->cluster_count)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "rntuple: column %" PRIu64 " of %zu in cluster %" PRIu64 " of %zu",
		                 column, tuple->column_count, cluster, tuple->cluster_count);
	const rnt_extent *x = &tuple->column_more[column].extents[cluster];
	*elements = (lade_rntuple_part){x->first, x->count};
	return LADE_OK;
}

/* ---- pages ---------------------------------------------------------------------------------- */

uint64_t lade_rntuple_page_count(const lade_rntuple *tuple, uint64_t column, uint64_t cluster)
{
	if (column >= tuple->column_count || cluster >= tuple->cluster_count)
		return 0;
	return tuple->column_more[column].extents[cluster].page_count;
}

lade_status lade_rntuple_page_at(const lade_rntuple *tuple, uint64_t column, uint64_t cluster,
                                 uint64_t index, lade_rntuple_page *out, lade_error *err)
{
	uint64_t count = lade_rntuple_page_count(tuple, column, cluster);
	lade_rntuple_page given;
	lade_status status =
		lade__options_read(&given, sizeof given, out, "lade_rntuple_page", err);
	if (status != LADE_OK)
		return status;
	if (!out || index >= count)
		return lade_fail(err, out ? LADE_E_RANGE : LADE_E_ARG, LADE_NO_OFFSET,
		                 "rntuple: column %" PRIu64 " in cluster %" PRIu64
		                 ": page %" PRIu64 " of %" PRIu64,
		                 column, cluster, index, count);
	const rnt_extent *x = &tuple->column_more[column].extents[cluster];
	const rnt_page *page = &tuple->page[x->page + index];
	const rnt_physical *p = &tuple->physical[x->physical];
	size_t size = out->struct_size;
	given = (lade_rntuple_page){.struct_size = size,
	                            .first = page->first,
	                            .count = page->count,
	                            .off = page->off,
	                            .stored_size = page->size,
	                            .decoded_size = lade__rnt_page_size(p, page->count),
	                            .stored = lade__rnt_type(p->type)->name,
	                            .bits = p->bits,
	                            .setting = x->setting,
	                            .checksum = page->sum};
	memcpy(out, &given, size < sizeof given ? size : sizeof given);
	return LADE_OK;
}
