/*
 * pages.c: page lists: the clusters, and where the pages of their columns are.
 *
 *     clusters { | first entry 8 | entries 7, flags 1 | }
 *     clusters { columns { pages { | elements 4 | locator | } | first element 8 | setting 4 | } }
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple/rntuple.h"

#include <inttypes.h>
#include <stdlib.h>

/* Bytes of the smallest items, their frames included: a summary, a cluster's list, a column's list
 * with its offset, a page. */
enum { SUMMARY_MIN = 24, CLUSTER_MIN = 12, COLUMN_MIN = 20, PAGE_MIN = 16 };

#define ENTRIES_MAX ((uint64_t)1 << 56)

static bool room(rnt_in *in, void *table, size_t *cap, size_t count, size_t size)
{
	if (lade__rnt_grow(table, cap, count, size))
		return true;
	lade__rnt_bad(in, LADE_E_NOMEM, "no memory for %zu items", count + 1);
	return false;
}

static void read_summary(lade_rntuple *t, rnt_in *list)
{
	rnt_in in = lade__rnt_record(list);
	if (!lade__rnt_ok(&in) ||
	    !room(&in, &t->cluster, &t->cluster_cap, t->cluster_count, sizeof *t->cluster))
		return;
	uint64_t first = lade__rnt_int(&in, 8), word = lade__rnt_int(&in, 8);
	uint64_t have = t->info.entry_count, count = word & (ENTRIES_MAX - 1);
	if (lade__rnt_ok(&in) && word >> 56)
		lade__rnt_bad(&in, LADE_E_UNSUPPORTED, "cluster %zu has flags %u, none is known",
		              t->cluster_count, (unsigned)(word >> 56));
	if (lade__rnt_ok(&in) && (first != have || count > ENTRIES_MAX - have))
		lade__rnt_bad(&in, LADE_E_CORRUPT,
		              "cluster %zu has %" PRIu64 " entries from %" PRIu64
		              " on, want them from %" PRIu64 " on",
		              t->cluster_count, count, first, have);
	if (!lade__rnt_ok(&in))
		return;
	t->cluster[t->cluster_count++] = (rnt_cluster){.first = first, .count = count};
	t->info.entry_count += count;
}

/* ---- the pages of a column in a cluster ----------------------------------------------------- */

static bool page_fits(const lade_rntuple *t, const rnt_page *page, uint64_t decoded)
{
	uint64_t sum = page->sum ? 8 : 0, size = t->file.size;
	if (page->size > decoded)
		return false;
	if (size == LADE_SIZE_UNKNOWN)
		return page->off <= UINT64_MAX - page->size - sum;
	if (page->size + sum > size)
		return false;
	if (t->file.key_max && page->size + sum > t->file.key_max)
		return true; /* in several keys: their places are checked when it is read */
	return page->off <= size - page->size - sum;
}

static void read_page(lade_rntuple *t, rnt_in *in, const rnt_physical *p, uint64_t first)
{
	if (!room(in, &t->page, &t->page_cap, t->page_count, sizeof *t->page))
		return;
	int64_t n = (int32_t)lade__rnt_int(in, 4);
	rnt_locator at = lade__rnt_locator(in);
	rnt_page page = {.off = at.off,
	                 .size = at.size,
	                 .first = first,
	                 .count = (uint32_t)(n < 0 ? -n : n),
	                 .sum = n < 0};
	uint64_t decoded = lade__rnt_page_size(p, page.count);
	if (lade__rnt_ok(in) && !page_fits(t, &page, decoded))
		lade__rnt_bad(in, LADE_E_CORRUPT,
		              "a page of %" PRIu32 " elements has %" PRIu64
		              " bytes at byte %" PRIu64 "; decoded they are %" PRIu64
		              ", and the file has %" PRIu64,
		              page.count, page.size, page.off, decoded, t->file.size);
	if (!lade__rnt_ok(in))
		return;
	t->page[t->page_count++] = page;
}

static void read_run(lade_rntuple *t, rnt_in *list, uint32_t physical)
{
	uint32_t count;
	rnt_in in = lade__rnt_list(list, PAGE_MIN, &count);
	if (!lade__rnt_ok(&in) || !room(&in, &t->run, &t->run_cap, t->run_count, sizeof *t->run))
		return;
	const rnt_physical *p = &t->physical[physical];
	rnt_run run = {.page = t->page_count, .page_count = count};
	uint64_t elements = 0;
	for (uint32_t i = 0; i < count && lade__rnt_ok(&in); i++) {
		read_page(t, &in, p, elements);
		if (lade__rnt_ok(&in))
			elements += t->page[t->page_count - 1].count;
	}
	int64_t first = (int64_t)lade__rnt_int(&in, 8);
	run.stored = first >= 0;
	if (lade__rnt_ok(&in) && !run.stored && count)
		lade__rnt_bad(&in, LADE_E_CORRUPT,
		              "column %" PRIu32 " is suppressed and has %" PRIu32 " pages",
		              physical, count);
	if (run.stored)
		run.setting = (uint32_t)lade__rnt_int(&in, 4);
	run.first = run.stored ? (uint64_t)first : 0;
	run.count = elements;
	/* Fewer than 2^32 pages of fewer than 2^32 elements: the sum cannot wrap. */
	if (lade__rnt_ok(&in) && run.first > INT64_MAX - elements)
		lade__rnt_bad(&in, LADE_E_CORRUPT, "column %" PRIu32 " begins at %" PRIu64,
		              physical, run.first);
	for (size_t i = run.page; lade__rnt_ok(&in) && i < t->page_count; i++)
		t->page[i].first += run.first;
	if (lade__rnt_ok(&in))
		t->run[t->run_count++] = run;
}

static void read_cluster(lade_rntuple *t, rnt_in *list, rnt_cluster *c)
{
	uint32_t count;
	rnt_in in = lade__rnt_list(list, COLUMN_MIN, &count);
	if (lade__rnt_ok(&in) && count > t->physical_count)
		lade__rnt_bad(&in, LADE_E_CORRUPT, "a cluster has %" PRIu32 " columns of %zu",
		              count, t->physical_count);
	c->run = t->run_count;
	for (uint32_t i = 0; i < count && lade__rnt_ok(&in); i++)
		read_run(t, &in, i);
	c->run_count = t->run_count - c->run;
}

/* ---- page lists ----------------------------------------------------------------------------- */

static lade_status parse(lade_rntuple *t, rnt_in *in, uint64_t header_sum, uint64_t want)
{
	uint32_t count, lists;
	size_t first = t->cluster_count;
	uint64_t sum = lade__rnt_int(in, 8);
	if (lade__rnt_ok(in) && sum != header_sum)
		return lade__rnt_bad(in, LADE_E_CORRUPT,
		                     "it is for a header with checksum %016" PRIx64
		                     ", the header's is %016" PRIx64,
		                     sum, header_sum);
	rnt_in summaries = lade__rnt_list(in, SUMMARY_MIN, &count);
	for (uint32_t i = 0; i < count && lade__rnt_ok(in); i++)
		read_summary(t, &summaries);
	rnt_in clusters = lade__rnt_list(in, CLUSTER_MIN, &lists);
	if (lade__rnt_ok(in) && (lists != count || count != want))
		return lade__rnt_bad(in, LADE_E_CORRUPT,
		                     "%" PRIu32 " summaries and %" PRIu32
		                     " lists of columns, the footer says %" PRIu64,
		                     count, lists, want);
	for (uint32_t i = 0; i < lists && lade__rnt_ok(in); i++)
		read_cluster(t, &clusters, &t->cluster[first + i]);
	return in->fault->status;
}

lade_status lade__rnt_pages(lade_rntuple *t, uint64_t header_sum, lade_error *err)
{
	lade_status status = LADE_OK;
	rnt_locator lists[RNT_HELD_MAX];
	uint64_t total = 0, most = t->file.metadata_max;
	/* Groups may name the same list, so the file's size says nothing. */
	for (size_t i = 0; i < t->group_count; i++) {
		uint64_t size = t->group[i].decoded_size;
		if (size > most - total)
			return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
			                 "rntuple: page list %zu of %zu has %" PRIu64
			                 " bytes, those before it %" PRIu64
			                 ", the limit is %" PRIu64,
			                 i + 1, t->group_count, size, total, most);
		total += size;
	}
	for (size_t i = 0; i < t->group_count && i < RNT_HELD_MAX; i++)
		lists[i] = t->group[i].at;
	lade__rnt_hold(&t->file, lists,
	               t->group_count < RNT_HELD_MAX ? t->group_count : RNT_HELD_MAX);
	for (size_t i = 0; i < t->group_count && status == LADE_OK; i++) {
		rnt_fault fault = {.err = err};
		rnt_in in = {.fault = &fault};
		uint64_t sum;
		status = lade__rnt_envelope(&t->file, &t->group[i], RNT_PAGES, &in, &sum, err);
		if (status == LADE_OK)
			status = parse(t, &in, header_sum, t->group_clusters[i]);
		free((void *)(uintptr_t)in.data);
	}
	return status;
}
