/*
 * fetch.c: runs a plan: one reading of its requests, and what has to be read again.
 *
 *	requests --> the store --> versions of a key differ?  read the key again, once
 *	                       --> a request of several ranges failed?  read each alone
 *	                       --> the ranges' answers
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static lade_source source_of(const lade__fetch *p, lade_source_ops *ops)
{
	*ops = (lade_source_ops){.struct_size = sizeof *ops, .read = p->store->ops.read};
	return (lade_source){ops, p->store->ctx};
}

/* Bytes that requests brought. */
static uint64_t bytes_of(const lade_range *requests, size_t count)
{
	uint64_t bytes = 0;
	for (size_t r = 0; r < count; r++)
		bytes += requests[r].size;
	return bytes;
}

static void account(lade__fetch *p, const lade_range *requests, size_t count, bool again)
{
	if (p->store->ops.flags & LADE__STORE_PASSES)
		return;
	/* Stores' threads may add to it at the same time. */
	__atomic_fetch_add(&p->report->request_count, count, __ATOMIC_RELAXED);
	__atomic_fetch_add(&p->report->retry_count, again ? count : 0, __ATOMIC_RELAXED);
	__atomic_fetch_add(&p->report->moved_size, bytes_of(requests, count), __ATOMIC_RELAXED);
}

static void all_answered(void *ctx)
{
	lade__fetch *p = ctx;
	p->answered_ns = lade__now_ns();
	p->answered(p->answered_ctx);
}

void lade__fetch_begin(lade__fetch *p)
{
	lade_error err;
	lade_source_ops ops;
	p->options = *p->outer->options;
	lade_status status = lade__fetch_plan(p, &p->options, &err);
	if (status != LADE_OK) {
		for (size_t k = 0; k < p->count; k++)
			lade_reading_done(p->outer, p->index ? p->index[k] : k, status, &err);
		if (p->answered)
			p->answered(p->answered_ctx);
		return;
	}
	p->options.errors = p->errors;
	p->began_ns = lade__now_ns();
	lade__reading_init(&p->reading, p->requests, p->request_count, &p->options);
	p->reading.parts = (lade__parts){p->parts, p->first};
	p->reading.note = p->report;
	p->reading.later = p->later;
	p->reading.answered_all = p->answered ? all_answered : NULL;
	p->reading.all_ctx = p;
	if (p->request_count)
		lade__reading_start(&p->reading, source_of(p, &ops));
	else if (p->answered)
		p->answered(p->answered_ctx);
}

/* ---- reading again --------------------------------------------------------------------------- */

/* The requests behind 'r' that are of the same key and want the same version. */
static size_t key_end(const lade__fetch *p, size_t r)
{
	const lade_range *requests = p->requests;
	size_t end = r + 1;
	while (end < p->request_count && requests[end].want == requests[r].want &&
	       (requests[end].key == requests[r].key ||
	        strcmp(requests[end].key, requests[r].key) == 0))
		end++;
	return end;
}

/* True if what requests of a key gave is of several versions. */
static bool is_mixed(const lade_range *requests, size_t count)
{
	const lade_object_version *version = NULL;
	for (size_t r = 0; r < count; r++) {
		if (requests[r].status == LADE_E_CHANGED && !requests[r].want)
			return true;
		if (requests[r].status != LADE_OK || !requests[r].version->size)
			continue;
		if (version && !lade_object_version_equal(version, requests[r].version))
			return true;
		version = requests[r].version;
	}
	return false;
}

/* Reads all of a key's requests again, if they are of several versions; then they fail. */
static void mend_versions(lade__fetch *p, size_t r, size_t count)
{
	lade_source_ops ops;
	if (!is_mixed(p->requests + r, count))
		return;
	lade_reading again;
	lade_io_options options = p->options;
	options.errors = p->errors + r;
	lade__reading_init(&again, p->requests + r, count, &options);
	again.parts = (lade__parts){p->parts, p->first + r};
	again.note = p->report;
	lade__reading_start(&again, source_of(p, &ops));
	lade__reading_end(&again, NULL);
	account(p, p->requests + r, count, true);
	if (!is_mixed(p->requests + r, count))
		return;
	for (size_t i = r; i < r + count; i++)
		if (p->requests[i].status == LADE_OK)
			p->requests[i].status =
				lade_fail(&p->errors[i], LADE_E_CHANGED, LADE_NO_OFFSET,
			                  "it changed twice while it was read");
}

/* A failure that ranges of one request may have brought to one another. */
static bool is_shared(const lade__fetch *p, size_t r)
{
	lade_status status = p->requests[r].status;
	return p->first[r + 1] - p->first[r] > 1 &&
	       (status == LADE_E_RANGE || status == LADE_E_TRUNCATED || status == LADE_E_IO);
}

/* ---- answers ------------------------------------------------------------------------------- */

static void fail_range(lade__fetch *p, size_t k, lade_status status, const lade_error *err)
{
	const lade_range *range = lade__fetch_range(p, k);
	char which[80];
	lade_error own;
	if (range->kind == LADE_RANGE_LAST)
		snprintf(which, sizeof which, "the last %zu bytes", range->dst.size);
	else if (range->kind == LADE_RANGE_REST)
		snprintf(which, sizeof which, "bytes from %" PRIu64 " on", range->off);
	else
		snprintf(which, sizeof which, "%zu bytes at %" PRIu64, range->dst.size, range->off);
	lade_fail(&own, status, err->offset, "%.70s: key '%.100s', %s: %s", p->store->name,
	          lade__fetch_key(p, k), which, err->message);
	lade_reading_done(p->outer, p->index ? p->index[k] : k, status, &own);
}

/* What a request gave to a range: 'got' bytes of it. */
static void answer_part(lade__fetch *p, size_t k, const lade_range *request, size_t got,
                        const lade_error *err)
{
	lade_range *range = lade__fetch_range(p, k);
	if (range->status != LADE__PENDING)
		return;
	if (request->status != LADE_OK) {
		if (p->store->ops.flags & LADE__STORE_PASSES)
			lade_reading_done(p->outer, p->index ? p->index[k] : k, request->status,
			                  err);
		else
			fail_range(p, k, request->status, err);
		return;
	}
	range->size += got;
	range->object_size = request->object_size;
	if (range->version)
		*range->version = *request->version;
}

/* Reads the parts of a request, each by itself; 'version': of the rest of its key. */
static void read_alone(lade__fetch *p, size_t r, const lade_object_version *version)
{
	const lade_part *parts = p->parts + p->first[r];
	size_t count = p->first[r + 1] - p->first[r];
	size_t each = sizeof(lade_range) + sizeof(lade_error) + sizeof(lade_object_version);
	lade_range *alone = malloc(count * each);
	lade_source_ops ops;
	lade_reading again;
	if (!alone) {
		lade_fail(&p->errors[r], LADE_E_NOMEM, LADE_NO_OFFSET, "no memory to read again");
		p->requests[r].status = LADE_E_NOMEM;
		return;
	}
	lade_error *errors = (lade_error *)(void *)(alone + count);
	lade_object_version *versions = (lade_object_version *)(void *)(errors + count);
	lade_io_options options = p->options;
	options.errors = errors;
	for (size_t i = 0; i < count; i++) {
		alone[i] = p->requests[r];
		alone[i].off += parts[i].at;
		alone[i].dst = parts[i].dst;
		alone[i].version = &versions[i];
	}
	lade__reading_init(&again, alone, count, &options);
	again.note = p->report;
	lade__reading_start(&again, source_of(p, &ops));
	lade__reading_end(&again, NULL);
	account(p, alone, count, true);
	for (size_t i = 0; i < count; i++) {
		if (alone[i].status == LADE_OK && version && versions[i].size &&
		    !lade_object_version_equal(version, &versions[i]))
			alone[i].status = lade_fail(&errors[i], LADE_E_CHANGED, LADE_NO_OFFSET,
			                            "it changed while it was read");
		if (!version && alone[i].status == LADE_OK && versions[i].size)
			version = &versions[i];
		answer_part(p, p->owners[p->first[r] + i], &alone[i], alone[i].size, &errors[i]);
	}
	free(alone);
}

/* What all requests of a key gave. */
static void answer_key(lade__fetch *p, size_t first, size_t end)
{
	const lade_object_version *version = NULL;
	for (size_t r = first; r < end && !version; r++)
		if (p->requests[r].status == LADE_OK && p->versions[r].size)
			version = &p->versions[r];
	for (size_t r = first; r < end; r++) {
		const lade_range *request = &p->requests[r];
		if (is_shared(p, r)) {
			read_alone(p, r, version);
			if (request->status != LADE_E_NOMEM)
				continue;
		}
		for (size_t i = p->first[r]; i < p->first[r + 1]; i++)
			answer_part(p, p->owners[i], request,
			            request->kind == LADE_RANGE_AT ? p->parts[i].dst.size
			                                           : request->size,
			            &p->errors[r]);
	}
}

void lade__fetch_end(lade__fetch *p)
{
	if (!p->memory)
		return;
	lade_status status = lade__reading_end(&p->reading, NULL);
	uint64_t ns = (p->answered_ns ? p->answered_ns : lade__now_ns()) - p->began_ns;
	bool passes = p->store->ops.flags & LADE__STORE_PASSES;
	account(p, p->requests, p->request_count, false);
	if (status == LADE_OK && p->request_count && !passes)
		lade__store_measured(p->store, p->request_count,
		                     bytes_of(p->requests, p->request_count), ns);
	for (size_t r = 0, end; r < p->request_count && !passes; r = end) {
		end = key_end(p, r);
		mend_versions(p, r, end - r);
	}
	for (size_t r = 0, end; r < p->request_count; r = end) {
		end = key_end(p, r);
		answer_key(p, r, end);
	}
	for (size_t k = 0; k < p->count; k++) {
		lade_range *range = lade__fetch_range(p, k);
		if (range->status != LADE__PENDING)
			continue;
		p->report->wanted_size += passes ? 0 : range->size;
		lade_reading_done(p->outer, p->index ? p->index[k] : k, LADE_OK, NULL);
	}
	lade__fetch_free(p);
}
