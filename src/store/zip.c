/*
 * zip.c: the store of a zip file's entries, for reading.
 *
 * A call reads in three steps: the local headers of entries that were never read (only they say
 * where the data begins), then all stored ranges at once, straight into their spans, then deflated
 * entries, each whole, several at once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/options.h"
#include "base/pool.h"
#include "base/support.h"
#include "base/try.h"
#include "store/zip.h"

#include <inttypes.h>
#include <libdeflate.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Limits that options leave to the library. */
#define DIRECTORY_MAX ((uint64_t)1 << 30)
#define VALUE_MAX ((uint64_t)1 << 30)

/* No Deflate stream gives more bytes for one. */
#define DEFLATE_MOST 1032

/* Threads that inflate, the caller's among them, and what they have before them: entries, and their
 * bytes, if there is more than one. */
#define THREADS 4
#define WAVE_ENTRIES 32
#define WAVE_BYTES ((uint64_t)64 << 20)

typedef struct zip_store {
	lade_source source;
	lade_object_version version; /* of the whole file */
	lade_zip_options options;
	lade__zip zip;
	lade__pool pool;
	pthread_t helpers[THREADS - 1];
} zip_store;

/* A call: requests are its ranges. */
typedef struct call {
	zip_store *zip;
	lade_reading *reading;
	size_t count;
	lade_io_options options;
	lade__zip_entry **entries; /* NULL: the request is answered */
	lade_range *ranges;        /* of the source */
	size_t *owners;            /* of 'ranges': requests */
	lade_error *errors;
	uint8_t (*headers)[ZIP_LOCAL_SIZE];
} call;

static void done(call *c, size_t i, lade_status status, const lade_error *err)
{
	lade_reading_done(c->reading, i, status, err);
	c->entries[i] = NULL;
}

static const lade_object_version *wanted_version(const zip_store *zip)
{
	return zip->version.size ? &zip->version : NULL;
}

/* Reads some ranges of the file; each gets a status, and an error in c->errors. */
static void read_source(call *c, size_t count)
{
	lade_reading reading;
	c->options.errors = c->errors;
	lade__reading_init(&reading, c->ranges, count, &c->options);
	reading.note = NULL;
	if (count)
		lade__reading_start(&reading, c->zip->source);
	lade__reading_end(&reading, NULL);
}

/* ---- where data begins --------------------------------------------------------------------- */

/*
 * | signature 4 | needs 2 | flags 2 | method 2 | time 4 | crc 4 | stored size 4 | size 4 |
 * | name's 2 | extra's 2 | name | extra | data |
 *
 * Only the sizes of name and extra are used: the directory has said the rest.
 */
static lade_status begin_of(const call *c, lade__zip_entry *e, const uint8_t *header,
                            lade_error *err)
{
	uint64_t off =
		e->local_off + ZIP_LOCAL_SIZE + lade__le16(header + 26) + lade__le16(header + 28);
	uint64_t end = c->zip->zip.directory_off;
	if (lade__le32(header) != ZIP_LOCAL || off > end || e->stored_size > end - off)
		return lade_fail(err, LADE_E_CORRUPT, e->local_off,
		                 "zip: its local header, at byte %" PRIu64 ", is not valid",
		                 e->local_off);
	e->data_off = off;
	return LADE_OK;
}

static void find_data(call *c)
{
	size_t n = 0;
	lade_error err;
	for (size_t i = 0; i < c->count; i++) {
		lade__zip_entry *e = c->entries[i];
		if (!e || e->data_off || (n && c->entries[c->owners[n - 1]] == e))
			continue;
		c->owners[n] = i;
		c->ranges[n] = (lade_range){.off = e->local_off,
		                            .want = wanted_version(c->zip),
		                            .dst = lade_host_span(c->headers[n], ZIP_LOCAL_SIZE)};
		n++;
	}
	read_source(c, n);
	for (size_t k = 0; k < n; k++) {
		lade__zip_entry *e = c->entries[c->owners[k]];
		lade_status status = c->ranges[k].status;
		const lade_error *why = &c->errors[k];
		if (status == LADE_OK) {
			status = begin_of(c, e, c->headers[k], &err);
			why = &err;
		}
		/* The requests of a key stand together. */
		for (size_t i = c->owners[k]; i < c->count && status != LADE_OK; i++)
			if (c->entries[i] == e)
				done(c, i, status, why);
	}
}

/* ---- stored entries ------------------------------------------------------------------------ */

/* True if a request's bytes can be compared with the entry's checksum. */
static bool can_check(const zip_store *zip, const lade__zip_entry *e, const lade_range *range)
{
	return range->size == e->size && lade_kind_is_host(range->dst.place.kind) &&
	       !(zip->options.flags & LADE_ZIP_IGNORE_CHECKSUMS);
}

static lade_status check(const lade__zip_entry *e, const void *data, size_t size, lade_error *err)
{
	uint32_t have = libdeflate_crc32(0, data ? data : "", size);
	if (have == e->crc)
		return LADE_OK;
	return lade_fail(err, LADE_E_CHECKSUM, e->local_off,
	                 "zip: the checksum is %08" PRIx32 ", stored is %08" PRIx32, have, e->crc);
}

static void read_stored(call *c)
{
	size_t n = 0;
	for (size_t i = 0; i < c->count; i++) {
		const lade__zip_entry *e = c->entries[i];
		if (!e || e->method != ZIP_STORED)
			continue;
		const lade_range *range = lade_reading_range(c->reading, i);
		lade_span dst = range->dst;
		uint64_t off = range->kind == LADE_RANGE_LAST ? e->size - range->size : range->off;
		dst.size = range->size;
		c->owners[n] = i;
		c->ranges[n++] = (lade_range){
			.off = e->data_off + off, .want = wanted_version(c->zip), .dst = dst};
	}
	read_source(c, n);
	for (size_t k = 0; k < n; k++) {
		size_t i = c->owners[k];
		lade_status status = c->ranges[k].status;
		const lade_range *range = lade_reading_range(c->reading, i);
		if (status == LADE_OK && can_check(c->zip, c->entries[i], range))
			status = check(c->entries[i], range->dst.data, range->size, &c->errors[k]);
		done(c, i, status, &c->errors[k]);
	}
}

/* ---- deflated entries ---------------------------------------------------------------------- */

/* An entry that requests [first, end) are of. */
typedef struct job {
	const lade__zip_entry *entry;
	size_t first, end;
	uint8_t *stored, *data;
	lade_status status;
	lade_error err;
} job;

/* Entries that are in memory at once; threads inflate them. */
typedef struct wave {
	call *call;
	job jobs[WAVE_ENTRIES];
	size_t count;
	uint64_t bytes;
	atomic_size_t next;
} wave;

/* Whether an entry's sizes can be true, and memory for it.  Then its bytes are the wave's next
 * range. */
static lade_status begin_job(wave *w, job *j, size_t *range_count)
{
	const lade__zip_entry *e = j->entry;
	uint64_t most = w->call->zip->options.value_max;
	if (lade_reading_cancelled(w->call->reading))
		return lade_fail(&j->err, LADE_E_CANCELLED, LADE_NO_OFFSET, "it was cancelled");
	if (e->size > most || e->stored_size > most)
		return lade_fail(&j->err, LADE_E_LIMIT, e->local_off,
		                 "zip: it has %" PRIu64 " bytes, deflated %" PRIu64
		                 ", the limit is %" PRIu64,
		                 e->size, e->stored_size, most);
	if (e->size / DEFLATE_MOST > e->stored_size)
		return lade_fail(&j->err, LADE_E_CORRUPT, e->local_off,
		                 "zip: %" PRIu64 " bytes cannot give %" PRIu64, e->stored_size,
		                 e->size);
	j->stored = malloc((size_t)e->stored_size + 1);
	j->data = malloc((size_t)e->size + 1);
	if (!j->stored || !j->data)
		return lade_fail(&j->err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory to inflate %" PRIu64 " bytes", e->size);
	w->bytes += e->stored_size + e->size;
	w->call->owners[*range_count] = (size_t)(j - w->jobs);
	w->call->ranges[(*range_count)++] =
		(lade_range){.off = e->data_off,
	                     .want = wanted_version(w->call->zip),
	                     .dst = lade_host_span(j->stored, (size_t)e->stored_size)};
	return LADE_OK;
}

static lade_status inflate_job(const call *c, struct libdeflate_decompressor *d, job *j)
{
	const lade__zip_entry *e = j->entry;
	size_t got = 0;
	if (lade_reading_cancelled(c->reading))
		return lade_fail(&j->err, LADE_E_CANCELLED, LADE_NO_OFFSET, "it was cancelled");
	if (!d)
		return lade_fail(&j->err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory to inflate %" PRIu64 " bytes", e->size);
	enum libdeflate_result result = libdeflate_deflate_decompress(
		d, j->stored, (size_t)e->stored_size, j->data, (size_t)e->size, &got);
	if (result != LIBDEFLATE_SUCCESS || got != e->size)
		return lade_fail(&j->err, LADE_E_CORRUPT, e->local_off,
		                 "zip: its Deflate stream does not give %" PRIu64 " bytes",
		                 e->size);
	return c->zip->options.flags & LADE_ZIP_IGNORE_CHECKSUMS ? LADE_OK
	                                                         : check(e, j->data, got, &j->err);
}

/* Answers an entry's requests, and frees its bytes. */
static void end_job(call *c, job *j)
{
	for (size_t k = j->first; k < j->end; k++) {
		const lade_range *range = lade_reading_range(c->reading, k);
		lade_status status = j->status;
		if (!c->entries[k])
			continue;
		uint64_t off =
			range->kind == LADE_RANGE_LAST ? j->entry->size - range->size : range->off;
		if (status == LADE_OK)
			status = lade_reading_put(c->reading, k, 0,
			                          lade_host_cspan(j->data + off, range->size),
			                          &j->err);
		done(c, k, status, &j->err);
	}
	free(j->stored);
	free(j->data);
}

static void inflate_jobs(void *ctx)
{
	wave *w = ctx;
	struct libdeflate_decompressor *d = NULL;
	for (size_t i; (i = atomic_fetch_add(&w->next, 1)) < w->count;) {
		job *j = &w->jobs[i];
		if (j->status == LADE_OK && !d)
			d = libdeflate_alloc_decompressor();
		if (j->status == LADE_OK)
			j->status = inflate_job(w->call, d, j);
		end_job(w->call, j);
	}
	libdeflate_free_decompressor(d);
}

/* Reads the wave's entries by one call of the source, and inflates them. */
static void run_wave(wave *w, size_t range_count)
{
	call *c = w->call;
	unsigned threads = c->options.threads;
	threads = threads && threads < THREADS ? threads : THREADS;
	threads = threads < w->count ? threads : (unsigned)w->count;
	read_source(c, range_count);
	for (size_t k = 0; k < range_count; k++) {
		job *j = &w->jobs[c->owners[k]];
		j->status = c->ranges[k].status;
		if (j->status != LADE_OK)
			j->err = c->errors[k];
	}
	atomic_store(&w->next, 0);
	lade__pool_run(&c->zip->pool, threads ? threads - 1 : 0, inflate_jobs, w);
	w->count = 0;
	w->bytes = 0;
}

/* Each entry once: the requests of a key stand together. */
static void read_deflated(call *c)
{
	wave w = {.call = c};
	size_t range_count = 0;
	for (size_t i = 0, end; i < c->count; i = end) {
		const lade__zip_entry *e = c->entries[i];
		end = i + 1;
		if (!e)
			continue;
		while (end < c->count && (!c->entries[end] || c->entries[end] == e))
			end++;
		if (w.count == WAVE_ENTRIES || (w.count && w.bytes + e->size > WAVE_BYTES)) {
			run_wave(&w, range_count);
			range_count = 0;
		}
		job *j = &w.jobs[w.count++];
		*j = (job){.entry = e, .first = i, .end = end};
		j->status = begin_job(&w, j, &range_count);
	}
	if (w.count)
		run_wave(&w, range_count);
}

/* ---- a call -------------------------------------------------------------------------------- */

/* Finds a request's entry, and answers what needs no data. */
static void begin_request(call *c, size_t i)
{
	lade_range *range = lade_reading_range(c->reading, i);
	lade__zip_entry *e = lade__zip_find(&c->zip->zip, range->key);
	lade_error err = {0};
	uint64_t off;
	lade_status status = LADE_OK;
	if (!e)
		status = lade__key_absent(&err);
	else if (e->flags & 1)
		status = lade_fail(&err, LADE_E_UNSUPPORTED, e->local_off, "zip: it is encrypted");
	else if (e->method != ZIP_STORED && e->method != ZIP_DEFLATED)
		status = lade_fail(&err, LADE_E_UNSUPPORTED, e->local_off,
		                   "zip: its method is %d, known are 0 (stored) and 8 (Deflate)",
		                   e->method);
	else
		status = lade__range_answer(range, e->size, &c->zip->version, &off, &err);
	c->entries[i] = e;
	if (status != LADE_OK || range->size == 0)
		done(c, i, status, &err);
}

static void zip_read(void *ctx, lade_reading *reading, size_t count)
{
	call c = {.zip = ctx,
	          .reading = reading,
	          .count = count,
	          .options = *lade_reading_options(reading)};
	const size_t each = sizeof *c.ranges + sizeof *c.errors + sizeof *c.entries +
	                    sizeof *c.owners + sizeof *c.headers;
	lade_error err;
	c.ranges = count <= SIZE_MAX / each ? malloc(count * each) : NULL;
	if (!c.ranges) {
		lade_status status = lade_fail(&err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                               "no memory to read %zu ranges", count);
		for (size_t i = 0; i < count; i++)
			lade_reading_done(reading, i, status, &err);
		return;
	}
	c.errors = (lade_error *)(void *)(c.ranges + count);
	c.entries = (lade__zip_entry **)(void *)(c.errors + count);
	c.owners = (size_t *)(void *)(c.entries + count);
	c.headers = (uint8_t(*)[ZIP_LOCAL_SIZE])(void *)(c.owners + count);
	for (size_t i = 0; i < count; i++)
		begin_request(&c, i);
	find_data(&c);
	read_stored(&c);
	read_deflated(&c);
	free(c.ranges);
}

static lade_status zip_list(void *ctx, const lade_store_listing *listing, lade_error *err)
{
	const zip_store *zip = ctx;
	lade__names names = {0};
	lade_status status =
		lade__zip_gather(&zip->zip, listing, &names)
			? lade__names_visit(&names, listing, err)
			: lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a listing");
	lade__names_free(&names);
	return status;
}

/* ---- life ---------------------------------------------------------------------------------- */

static void zip_close(void *ctx)
{
	zip_store *zip = ctx;
	lade__pool_reset(&zip->pool);
	lade__zip_reset(&zip->zip);
	lade_source_close(zip->source);
	free(zip);
}

/* The file's size and version. */
static lade_status look(zip_store *zip, uint64_t *size, lade_error *err)
{
	lade_range range = {.version = &zip->version};
	lade_status status = lade_source_read(zip->source, &range, 1, NULL, err);
	*size = range.object_size;
	if (status == LADE_OK && *size == LADE_SIZE_UNKNOWN)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "zip: the source does not state its size");
	return status;
}

lade_status lade_store_zip_open(lade_source source, const lade_zip_options *given, lade_store **out,
                                lade_error *err)
{
	if (!out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "out is NULL");
	*out = NULL;
	lade_status status = lade__source_check(source, err);
	if (status != LADE_OK)
		return status;
	zip_store *zip = calloc(1, sizeof *zip);
	if (!zip)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a store");
	lade_store_ops ops = {.struct_size = sizeof ops,
	                      .request_ns = 1000,
	                      .request_rate = 3000000000,
	                      .read = zip_read,
	                      .list = zip_list,
	                      .close = zip_close};
	uint64_t size;
	zip->source = source;
	TRY(lade__options_read(&zip->options, sizeof zip->options, given, "zip options", err));
	if (zip->options.flags & ~(uint64_t)LADE_ZIP_IGNORE_CHECKSUMS)
		TRY(lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		              "zip options: flags 0x%" PRIx64 ", known are 0x%x",
		              zip->options.flags, LADE_ZIP_IGNORE_CHECKSUMS));
	if (!zip->options.directory_max)
		zip->options.directory_max = DIRECTORY_MAX;
	if (!zip->options.value_max)
		zip->options.value_max = VALUE_MAX;
	TRY(look(zip, &size, err));
	TRY(lade__zip_read(&zip->zip, source, &zip->version, size, zip->options.directory_max,
	                   err));
	ops.flags = (source.ops->flags & LADE_SOURCE_ANY_PLACE ? LADE_STORE_ANY_PLACE : 0) |
	            (source.ops->flags & LADE_SOURCE_LOCAL ? LADE_STORE_LOCAL : 0);
	TRY(lade__pool_init(&zip->pool, zip->helpers, THREADS - 1, err));
	TRY(lade__store_new(&ops, zip, "zip file", out, err));
	return LADE_OK;
out:
	lade__zip_reset(&zip->zip);
	free(zip);
	return status;
}
