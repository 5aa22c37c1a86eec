/*
 * write_append.c: goes on with an RNTuple of a file.  Its header, page lists and pages stay where
 * they are; the footer is written again, with the groups of clusters that are there.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple/write.h"

#include "base/try.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

enum { ANCHOR_SIZE = 78, ROOT_HEAD = 80, RECORD_MIN = 8 };

lade_status lade__rnt_open_locked(const char *path, int *fd, lade_source *source, lade_error *err)
{
	struct stat st, named;
	*source = (lade_source){0};
	*fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	lade_status status;
	if (*fd < 0)
		return lade_fail(err, errno == ENOENT ? LADE_E_NOT_FOUND : LADE_E_IO,
		                 LADE_NO_OFFSET, "rntuple: %s: opening it: %s", path,
		                 strerror(errno));
	if (fstat(*fd, &st) != 0 || !S_ISREG(st.st_mode))
		TRY(lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		              "rntuple: %s: is not a regular file", path));
	if (flock(*fd, LOCK_EX | LOCK_NB) != 0)
		TRY(lade_fail(err, LADE_E_STATE, LADE_NO_OFFSET,
		              "rntuple: %s: locking it: %s: another writer has it", path,
		              strerror(errno)));
	/* Who replaces the file does not wait for the lock. */
	if (stat(path, &named) != 0 || named.st_ino != st.st_ino)
		TRY(lade_fail(err, LADE_E_CHANGED, LADE_NO_OFFSET,
		              "rntuple: %s: was replaced while it was opened", path));
	status = lade_source_file_open(path, NULL, source, err);
out:
	if (status != LADE_OK) {
		close(*fd);
		*fd = -1;
	}
	return status;
}

/* | size 4 | version 2 | decoded size 4 | date 4 | key size 2 | ... */
lade_status lade__rnt_anchor_at(const rnt_file *file, uint64_t key_off, uint64_t *off,
                                lade_error *err)
{
	uint8_t key[16];
	lade_status status = lade__rnt_fetch(file, key_off, key, sizeof key, err);
	if (status != LADE_OK)
		return status;
	uint32_t key_size = (uint32_t)key[14] << 8 | key[15];
	*off = key_off + key_size;
	if (lade__be32(key) - key_size == ANCHOR_SIZE && lade__be32(key + 6) == ANCHOR_SIZE)
		return LADE_OK;
	return lade_fail(err, LADE_E_UNSUPPORTED, key_off,
	                 "rntuple: the anchor has %" PRIu32 " bytes, decoded %" PRIu32
	                 ": only one of %d bytes can be replaced",
	                 lade__be32(key) - key_size, lade__be32(key + 6), ANCHOR_SIZE);
}

/* ---- the footer that is there --------------------------------------------------------------- */

static void copy_list(rnt_in *in, rnt_out *out, uint32_t *count)
{
	rnt_in items = lade__rnt_list(in, RECORD_MIN, count);
	lade__rnt_put_bytes(out, items.data + items.at, items.end - items.at);
}

static lade_status take_footer(lade_rntuple_writer *w, rnt_in *in, lade_error *err)
{
	lade__rnt_features(in);
	lade__rnt_int(in, 8);
	rnt_in extension = lade__rnt_record(in);
	bool failed = false;
	for (size_t i = 0; i < RNT_LISTS; i++) {
		copy_list(&extension, &w->extension.items[i], &w->extension.count[i]);
		failed |= w->extension.items[i].failed;
	}
	copy_list(in, &w->groups, &w->group_count);
	lade__rnt_put_bytes(&w->rest, in->data + in->at, in->end - in->at);
	if (!lade__rnt_ok(in))
		return in->fault->status;
	return failed || w->groups.failed || w->rest.failed ? lade__rnt_nomem(err) : LADE_OK;
}

static lade_status take_envelopes(lade_rntuple_writer *w, const rnt_file *file, lade_error *err)
{
	rnt_fault faults[2] = {{.err = err}, {.err = err}};
	rnt_in header = {.fault = &faults[0]}, footer = {.fault = &faults[1]};
	uint64_t footer_sum;
	lade_status status;
	TRY(lade__rnt_envelope(file, &w->anchor.header, RNT_HEADER, &header, &w->header_sum, err));
	TRY(lade__rnt_envelope(file, &w->anchor.footer, RNT_FOOTER, &footer, &footer_sum, err));
	lade__rnt_put_bytes(&w->header, header.data + header.at, header.end - header.at);
	status = w->header.failed ? lade__rnt_nomem(err) : take_footer(w, &footer, err);
out:
	free((void *)(uintptr_t)header.data);
	free((void *)(uintptr_t)footer.data);
	return status;
}

/* ---- the schema that is there --------------------------------------------------------------- */

static lade_status take_schema(lade_rntuple_writer *w, const lade_rntuple *tuple, lade_error *err)
{
	lade_status status = lade__rnt_schema(w, &w->extension, &w->schema, err);
	if (status == LADE_OK)
		status = lade__rnt_add_sinks(w, w->schema, 0, NULL, 0, err);
	for (size_t i = 0; i < tuple->field_count && status == LADE_OK; i++)
		if (tuple->field[i].hidden)
			status = lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
			                   "rntuple: field %s cannot be written: %s",
			                   tuple->field[i].path, tuple->field[i].hidden);
	for (size_t i = 0; i < w->sink_count && status == LADE_OK; i++) {
		const rnt_physical *p = &tuple->physical[i];
		w->sink[i].next = tuple->column[p->column].element_count;
	}
	w->entry_count = w->group.first = tuple->info.entry_count;
	return status;
}

static lade_status take_root(lade_rntuple_writer *w, const rnt_file *file, lade_error *err)
{
	uint8_t head[ROOT_HEAD];
	struct stat st;
	lade_status status = lade__rnt_fetch(file, 0, head, sizeof head, err);
	if (status == LADE_OK &&
	    (!lade__rnt_root_parse(head, &w->file.root) || fstat(w->file.fd, &st) != 0))
		status = lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "rntuple: %s: looking at it",
		                   w->file.path);
	if (status != LADE_OK)
		return status;
	/* An append that was not committed left bytes behind the end. */
	uint64_t size = (uint64_t)st.st_size, end = w->file.root.end;
	w->file.at = size > end ? size : end;
	if (end > INT64_MAX / 2)
		return lade_fail(err, LADE_E_CORRUPT, 12, "rntuple: %s: it ends at %" PRIu64,
		                 w->file.path, end);
	return LADE_OK;
}

static lade_status append_to(lade_rntuple_writer *w, lade_rntuple *tuple, lade_error *err)
{
	const rnt_file *file = &tuple->file;
	uint64_t key_off;
	uint32_t key_size;
	lade_status status;
	TRY(lade__rnt_file_find(file, w->options.name, &key_off, &key_size, err));
	TRY(lade__rnt_anchor_read(file, key_off, key_size, &w->anchor, err));
	TRY(lade__rnt_anchor_at(file, key_off, &w->file.anchor, err));
	if (w->anchor.key_max && w->anchor.key_max < LADE__RNT_KEY_MAX)
		TRY(lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		              "rntuple: %s: keys have %" PRIu64 " bytes at most, want %u",
		              w->file.path, w->anchor.key_max, LADE__RNT_KEY_MAX));
	TRY(take_envelopes(w, file, err));
	TRY(take_schema(w, tuple, err));
	TRY(take_root(w, file, err));
	w->file.named = true;
out:
	return status;
}

lade_status lade__rnt_append_open(lade_rntuple_writer *w, lade_error *err)
{
	lade_rntuple_options options = {.struct_size = sizeof options,
	                                .name = w->options.name,
	                                .engine = w->engine,
	                                .cancel = w->options.cancel};
	lade_source source;
	lade_rntuple *tuple;
	if (options.name && !options.name[0])
		options.name = NULL;
	w->options.name = options.name;
	lade_status status = lade__rnt_open_locked(w->file.path, &w->file.fd, &source, err);
	if (status != LADE_OK)
		return status;
	status = lade_rntuple_open(source, &options, &tuple, err);
	if (status != LADE_OK) {
		lade_source_close(source);
		return status;
	}
	status = append_to(w, tuple, err);
	lade_rntuple_unref(tuple);
	return status;
}
