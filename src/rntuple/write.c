/*
 * write.c: opens, fills and closes a writer.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple/write.h"

#include "base/options.h"
#include "base/try.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { GROUP_DEFAULT = 1000 };

static const uint32_t known_flags =
	LADE_RNTUPLE_NO_CHECKSUMS | LADE_RNTUPLE_SYNC | LADE_RNTUPLE_NO_SPLIT;

lade_batch_options lade__rnt_batch(const lade_rntuple_writer *w)
{
	return (lade_batch_options){LADE__OUR_SIZES,
	                            .threads = w->options.threads,
	                            .cancel = w->options.cancel,
	                            .where = w->options.where,
	                            .device = w->options.device,
	                            .stream = w->options.stream};
}

/* ---- opening -------------------------------------------------------------------------------- */

static void free_lists(rnt_lists *lists)
{
	for (size_t i = 0; i < RNT_LISTS; i++)
		lade__rnt_out_free(&lists->items[i]);
}

static void free_writer(lade_rntuple_writer *w)
{
	if (w->file.draft)
		lade__file_draft_free(w->file.draft);
	else if (w->file.fd >= 0)
		close(w->file.fd);
	if (w->schema)
		lade__rnt_free(w->schema);
	lade__rnt_sinks_free(w->sink, w->sink_count);
	free(w->sink);
	free_lists(&w->lists);
	free_lists(&w->extension);
	lade__rnt_out_free(&w->header);
	lade__rnt_out_free(&w->group.summaries);
	lade__rnt_out_free(&w->group.columns);
	lade__rnt_out_free(&w->groups);
	lade__rnt_out_free(&w->rest);
	lade_spec_unref(w->codec.spec);
	free((void *)(uintptr_t)w->options.codec);
	free(w->file.path);
	free(w->file.name);
	free(w->name);
	free(w->description);
	free(w);
}

/* The caller's texts live as long as its call: the writer has its own. */
static lade_status keep_texts(lade_rntuple_writer *w, const char *path, lade_error *err)
{
	const char *slash = strrchr(path, '/'), *codec = w->options.codec;
	w->options.codec = codec ? strdup(codec) : NULL;
	w->name = strdup(w->options.name ? w->options.name : "");
	w->description = strdup(w->options.description ? w->options.description : "");
	w->file.path = strdup(path);
	w->file.name = strdup(slash ? slash + 1 : path);
	w->options.name = w->name;
	w->options.description = w->description;
	return w->name && w->description && w->file.path && w->file.name &&
	                       (w->options.codec || !codec)
	               ? LADE_OK
	               : lade__rnt_nomem(err);
}

static lade_status open_new(lade_rntuple_writer *w, lade_error *err)
{
	lade_write_kind kind =
		w->options.mode == LADE_RNTUPLE_NEW ? LADE_WRITE_IF_ABSENT : LADE_WRITE_ALWAYS;
	lade_status status;
	if (!w->name[0] || strchr(w->name, '/') || strlen(w->name) > 200 ||
	    strlen(w->file.name) > 255)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "rntuple: the name is \"%s\": want 1 to 200 bytes without '/'",
		                 w->name);
	w->anchor = (rnt_anchor){.version = {1, 0, 0, 0}, .key_max = LADE__RNT_KEY_MAX};
	TRY(lade__rnt_schema(w, &w->extension, &w->schema, err));
	TRY(lade__file_draft_new(w->file.path, kind, &w->file.draft, &w->file.fd, err));
	TRY(lade__rnt_root_begin(&w->file, err));
	w->dirty = true;
out:
	return status;
}

lade_status lade_rntuple_writer_open(const char *path, const lade_rntuple_writer_options *options,
                                     lade_rntuple_writer **out, lade_error *err)
{
	if (!path || !path[0] || !out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "rntuple: no %s",
		                 out ? "path" : "place for the writer");
	*out = NULL;
	lade_rntuple_writer *w = calloc(1, sizeof *w);
	if (!w)
		return lade__rnt_nomem(err);
	lade_rntuple_writer_options *o = &w->options;
	w->file.fd = -1;
	lade_status status =
		lade__options_read(o, sizeof *o, options, "lade_rntuple_writer_options", err);
	if (status == LADE_OK &&
	    (o->flags & ~known_flags || (unsigned)o->mode > LADE_RNTUPLE_APPEND))
		status = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                   "rntuple: flags 0x%" PRIx32 ", known are 0x%" PRIx32
		                   "; mode %d, the last is %d",
		                   o->flags, known_flags, (int)o->mode, LADE_RNTUPLE_APPEND);
	if (status != LADE_OK) {
		free(w);
		return status;
	}
	w->engine = o->engine ? o->engine : lade_engine_default();
	status = w->engine ? keep_texts(w, path, err) : lade__rnt_nomem(err);
	if (status == LADE_OK)
		status = lade__rnt_codec(w->engine, o->codec, &w->codec, err);
	if (status == LADE_OK)
		status = o->mode == LADE_RNTUPLE_APPEND ? lade__rnt_append_open(w, err)
		                                        : open_new(w, err);
	if (status != LADE_OK) {
		free_writer(w);
		return status;
	}
	*out = w;
	return LADE_OK;
}

void lade_rntuple_writer_close(lade_rntuple_writer *writer)
{
	if (writer)
		free_writer(writer);
}

/* ---- the calls ------------------------------------------------------------------------------ */

const lade_rntuple *lade_rntuple_writer_schema(const lade_rntuple_writer *writer)
{
	return writer->schema;
}

lade_status lade_rntuple_writer_add(lade_rntuple_writer *writer,
                                    const lade_rntuple_new_field *fields, size_t count,
                                    lade_error *err)
{
	if (!writer || (count && !fields))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "rntuple: no %s",
		                 writer ? "fields" : "writer");
	if (writer->failed)
		return lade_fail(err, LADE_E_STATE, LADE_NO_OFFSET,
		                 "rntuple: an earlier commit failed");
	lade_status status = lade__rnt_add_fields(writer, fields, count, err);
	if (status == LADE_OK && count)
		writer->dirty = true;
	return status;
}

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* What a fill that fails takes back. */
typedef struct before {
	rnt_group group;
	lade_rntuple_write_report report;
	size_t groups_size;
	uint32_t group_count;
	uint64_t entry_count, at;
	bool header;
} before;

static void take_back(lade_rntuple_writer *w, const before *b)
{
	rnt_group *g = &w->group;
	g->summaries.size = b->group.summaries.size;
	g->columns.size = b->group.columns.size;
	g->summaries.failed = g->columns.failed = w->groups.failed = false;
	g->count = b->group.count;
	g->first = b->group.first;
	g->entry_count = b->group.entry_count;
	w->groups.size = b->groups_size;
	w->group_count = b->group_count;
	w->entry_count = b->entry_count;
	/* The header stays. */
	w->file.at = b->header || !w->header.size
	                     ? b->at
	                     : w->anchor.header.at.off + w->anchor.header.at.size;
	w->report = b->report;
	for (size_t i = 0; i < w->sink_count; i++)
		w->sink[i].next = w->sink[i].mark;
}

lade_status lade_rntuple_writer_fill(lade_rntuple_writer *writer, uint64_t entry_count,
                                     const lade_rntuple_fill *columns, size_t count,
                                     lade_rntuple_write_report *report, lade_error *err)
{
	lade_rntuple_writer *w = writer;
	lade_rntuple_write_report given;
	uint64_t begin = now_ns();
	if (!w || (count && !columns))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "rntuple: no %s",
		                 w ? "columns" : "writer");
	if (w->failed)
		return lade_fail(err, LADE_E_STATE, LADE_NO_OFFSET,
		                 "rntuple: an earlier commit failed");
	lade_status status =
		lade__options_read(&given, sizeof given, report, "lade_rntuple_write_report", err);
	if (status != LADE_OK)
		return status;
	before b = {w->group,       w->report,  w->groups.size,    w->group_count,
	            w->entry_count, w->file.at, w->header.size > 0};
	for (size_t i = 0; i < w->sink_count; i++)
		w->sink[i].mark = w->sink[i].next;
	status = lade__rnt_fill(w, entry_count, columns, count, err);
	uint32_t group = w->options.group_size ? w->options.group_size : GROUP_DEFAULT;
	if (status == LADE_OK && w->group.count >= group)
		status = lade__rnt_write_group(w, err);
	if (status != LADE_OK)
		take_back(w, &b);
	else if (entry_count)
		w->dirty = true;
	w->report.ns += now_ns() - begin;
	w->report.file_size += w->file.at - b.at;
	if (status == LADE_OK && report) {
		size_t size = report->struct_size;
		w->report.struct_size = size;
		memcpy(report, &w->report, size < sizeof w->report ? size : sizeof w->report);
	}
	return status;
}
