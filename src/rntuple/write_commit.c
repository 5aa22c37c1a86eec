/*
 * write_commit.c: page lists, the footer, and the anchor, behind which readers find all of it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple/write.h"

#include "base/try.h"

#include <stdlib.h>

lade_status lade__rnt_write_header(lade_rntuple_writer *w, lade_error *err)
{
	rnt_out payload = {0}, out = {0};
	if (w->header.size)
		return LADE_OK;
	lade__rnt_put_header(&payload, w);
	lade__rnt_put_envelope(&out);
	lade__rnt_put_bytes(&out, payload.data, payload.size);
	out.failed |= payload.failed;
	lade__rnt_put_envelope_end(&out, RNT_HEADER, &w->header_sum);
	lade_status status = lade__rnt_write_envelope(&w->file, &out, &w->anchor.header, err);
	lade__rnt_out_free(&out);
	if (status == LADE_OK)
		w->header = payload;
	else
		lade__rnt_out_free(&payload);
	return status;
}

/* | header's checksum 8 | clusters { first 8, entries 8 } | clusters { columns { pages } } */
lade_status lade__rnt_write_group(lade_rntuple_writer *w, lade_error *err)
{
	rnt_group *g = &w->group;
	rnt_out out = {0};
	rnt_link link;
	uint64_t sum;
	if (g->count == 0)
		return LADE_OK;
	lade__rnt_put_envelope(&out);
	lade__rnt_put(&out, w->header_sum, 8);
	size_t begin = lade__rnt_put_list(&out);
	lade__rnt_put_bytes(&out, g->summaries.data, g->summaries.size);
	lade__rnt_put_list_end(&out, begin, g->count);
	begin = lade__rnt_put_list(&out);
	lade__rnt_put_bytes(&out, g->columns.data, g->columns.size);
	lade__rnt_put_list_end(&out, begin, g->count);
	lade__rnt_put_envelope_end(&out, RNT_PAGES, &sum);
	lade_status status = lade__rnt_write_envelope(&w->file, &out, &link, err);
	lade__rnt_out_free(&out);
	if (status != LADE_OK)
		return status;
	begin = lade__rnt_put_begin(&w->groups);
	lade__rnt_put(&w->groups, g->first, 8);
	lade__rnt_put(&w->groups, g->entry_count, 8);
	lade__rnt_put(&w->groups, g->count, 4);
	lade__rnt_put_link(&w->groups, &link);
	lade__rnt_put_end(&w->groups, begin);
	if (w->groups.failed)
		return lade__rnt_nomem(err);
	w->group_count++;
	g->first += g->entry_count;
	g->entry_count = g->count = 0;
	g->summaries.size = g->columns.size = 0;
	return LADE_OK;
}

/* | features 8 | header's checksum 8 | extension | groups | attribute sets | */
static lade_status write_footer(lade_rntuple_writer *w, lade_error *err)
{
	rnt_out out = {0};
	uint64_t sum;
	lade__rnt_put_envelope(&out);
	lade__rnt_put(&out, 0, 8);
	lade__rnt_put(&out, w->header_sum, 8);
	size_t begin = lade__rnt_put_begin(&out);
	lade__rnt_put_lists(&out, &w->extension);
	lade__rnt_put_end(&out, begin);
	begin = lade__rnt_put_list(&out);
	lade__rnt_put_bytes(&out, w->groups.data, w->groups.size);
	lade__rnt_put_list_end(&out, begin, w->group_count);
	lade__rnt_put_bytes(&out, w->rest.data, w->rest.size);
	lade__rnt_put_envelope_end(&out, RNT_FOOTER, &sum);
	lade_status status = lade__rnt_write_envelope(&w->file, &out, &w->anchor.footer, err);
	lade__rnt_out_free(&out);
	return status;
}

/* Everything that a new file needs, then its name. */
static lade_status commit_new(lade_rntuple_writer *w, lade_error *err)
{
	rnt_sinkfile *f = &w->file;
	bool sync = w->options.flags & LADE_RNTUPLE_SYNC;
	lade_status status;
	f->root.compress = w->codec.setting;
	TRY(lade__rnt_root_finish(f, w->name, &w->anchor, err));
	TRY(lade__rnt_root_free(f, err));
	TRY(lade__rnt_root_head(f, err));
	TRY(lade__file_draft_name(f->draft, sync, err));
	f->named = true;
out:
	return status;
}

/*
 * The bytes that the anchor needs are on the disk before it is; readers see the old footer or the
 * new one.  No reader needs what the header then says of the file's end.
 */
static lade_status commit_old(lade_rntuple_writer *w, lade_error *err)
{
	rnt_sinkfile *f = &w->file;
	uint8_t bytes[78];
	struct iovec piece = {bytes, sizeof bytes};
	lade_status status;
	TRY(lade__rnt_root_free(f, err));
	TRY(lade__rnt_sync(f, err));
	lade__rnt_anchor_bytes(&w->anchor, bytes);
	TRY(lade__rnt_write_at(f, &piece, 1, f->anchor, err));
	if (w->options.flags & LADE_RNTUPLE_SYNC)
		TRY(lade__rnt_sync(f, err));
	TRY(lade__rnt_root_head(f, err));
out:
	return status;
}

lade_status lade_rntuple_writer_commit(lade_rntuple_writer *w, lade_error *err)
{
	if (!w || w->failed)
		return lade_fail(err, w ? LADE_E_STATE : LADE_E_ARG, LADE_NO_OFFSET,
		                 w ? "rntuple: an earlier commit failed" : "rntuple: no writer");
	if (!w->dirty)
		return LADE_OK;
	lade_status status;
	TRY(lade__rnt_write_header(w, err));
	TRY(lade__rnt_write_group(w, err));
	TRY(write_footer(w, err));
	TRY(w->file.named ? commit_old(w, err) : commit_new(w, err));
	w->dirty = false;
out:
	w->failed = status != LADE_OK;
	return status;
}
