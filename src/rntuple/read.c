/*
 * read.c: the calls that read, and zeros for what is not stored.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple/read.h"

#include "base/options.h"

#include <stdlib.h>
#include <time.h>

/* Zeros for elements that are not stored, in places that the host cannot touch. */
#define ZEROS_SIZE ((size_t)256 << 10)

/* ---- zeros ---------------------------------------------------------------------------------- */

/* Items that copy zeros to a blank on a device; with 'items' NULL they are counted. */
static size_t clear_items(const rnt_read *r, const rnt_blank *b, lade_segment *segments,
                          lade_item *items, const uint8_t *zeros)
{
	lade_span to = r->goal[b->target].to;
	size_t count = 0;
	for (size_t done = 0, size; done < b->size; done += size, count++) {
		size = b->size - done < ZEROS_SIZE ? b->size - done : ZEROS_SIZE;
		if (!items)
			continue;
		segments[count] = (lade_segment){.data = zeros, .size = size, .decoded_size = size};
		items[count] =
			(lade_item){.src = &segments[count],
		                    .src_count = 1,
		                    .dst = {(uint8_t *)to.data + b->at + done, size, to.place}};
	}
	return count;
}

static lade_status clear_devices(rnt_read *r, size_t count, lade_error *err)
{
	lade_batch_options options = lade__rnt_reading(r);
	lade_spec *copy = NULL;
	uint8_t *zeros = calloc(1, ZEROS_SIZE);
	lade_segment *segments = malloc(count * sizeof *segments);
	lade_item *items = malloc(count * sizeof *items);
	lade_status status = zeros && segments && items ? LADE_OK : lade__rnt_nomem(err);
	if (status == LADE_OK)
		status = lade_spec_parse(r->engine, "copy", &copy, err);
	count = 0;
	for (size_t i = 0; i < r->blank_count && status == LADE_OK; i++)
		if (!lade_kind_is_host(r->goal[r->blank[i].target].to.place.kind))
			count += clear_items(r, &r->blank[i], segments + count, items + count,
			                     zeros);
	if (status == LADE_OK)
		status = lade_decode_into(r->engine, copy, items, count, NULL, &options, err);
	lade_spec_unref(copy);
	free(zeros);
	free(segments);
	free(items);
	return status;
}

static lade_status clear_all(rnt_read *r, lade_error *err)
{
	size_t there = 0;
	for (size_t i = 0; i < r->blank_count; i++) {
		const rnt_blank *b = &r->blank[i];
		lade_span to = r->goal[b->target].to;
		if (lade_kind_is_host(to.place.kind))
			memset((uint8_t *)to.data + b->at, 0, b->size);
		else
			there += clear_items(r, b, NULL, NULL, NULL);
	}
	return there ? clear_devices(r, there, err) : LADE_OK;
}

/* ---- the calls ------------------------------------------------------------------------------ */

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Offsets for devices that do not add them up are added up in memory of the call's. */
static lade_status make_buffers(rnt_read *r, lade_error *err)
{
	for (size_t i = 0; i < r->goal_count; i++) {
		rnt_goal *g = &r->goal[i];
		if (!g->adds_up || g->there || lade_kind_is_host(g->to.place.kind))
			continue;
		g->own = malloc(g->size);
		if (!g->own)
			return lade__rnt_nomem(err);
		g->to = lade_host_span(g->own, g->size);
	}
	return LADE_OK;
}

/* A variant's column in host memory; those on devices are not looked at. */
static bool is_switch(const rnt_read *r, const rnt_goal *g)
{
	return r->tuple->column[g->target.column].kind == LADE_RNTUPLE_SWITCH &&
	       lade_kind_is_host(g->to.place.kind);
}

static lade_status run(rnt_read *r, lade_error *err)
{
	lade_status status = make_buffers(r, err);
	if (status == LADE_OK)
		status = clear_all(r, err);
	bool all = false;
	if (status == LADE_OK && r->fed)
		status = lade__rnt_run_fed(r, &all, err);
	if (status == LADE_OK && !all)
		status = lade__rnt_run_waves(r, err);
	for (size_t i = 0; i < r->goal_count && status == LADE_OK; i++)
		if (r->goal[i].adds_up && !r->goal[i].there)
			status = lade__rnt_add_up(r, &r->goal[i], err);
	for (size_t i = 0; i < r->goal_count && status == LADE_OK; i++)
		if (is_switch(r, &r->goal[i]))
			status = lade__rnt_check_switches(r, &r->goal[i], err);
	return status == LADE_OK ? lade__rnt_ends_add_up(r, err) : status;
}

static lade_status begin(rnt_read *r, const lade_rntuple_report *report, lade_error *err)
{
	lade_rntuple_report given;
	*r = (rnt_read){.began_ns = now_ns(),
	                .caller = pthread_self(),
	                .mutex = PTHREAD_MUTEX_INITIALIZER,
	                .reading = PTHREAD_MUTEX_INITIALIZER};
	return lade__options_read(&given, sizeof given, report, "lade_rntuple_report", err);
}

/* Frees the read, and brings its report to the caller. */
static lade_status end(rnt_read *r, lade_status status, lade_rntuple_report *report)
{
	if (status == LADE_OK && report) {
		size_t size = report->struct_size;
		r->report.ns = now_ns() - r->began_ns;
		r->report.struct_size = size;
		memcpy(report, &r->report, size < sizeof r->report ? size : sizeof r->report);
	}
	lade__rnt_plan_free(r);
	return status;
}

lade_status lade_rntuple_read(lade_rntuple *tuple, const lade_rntuple_target *targets, size_t count,
                              const lade_rntuple_read_options *options, lade_rntuple_report *report,
                              lade_error *err)
{
	rnt_read r;
	lade_status status = begin(&r, report, err);
	if (status == LADE_OK)
		status = lade__rnt_plan(&r, tuple, targets, count, options, err);
	if (status == LADE_OK)
		status = run(&r, err);
	return end(&r, status, report);
}

lade_status lade_rntuple_explain(lade_rntuple *tuple, const lade_rntuple_target *targets,
                                 size_t count, const lade_rntuple_read_options *options,
                                 lade_rntuple_report *report, lade_error *err)
{
	rnt_read r;
	lade_status status = begin(&r, report, err);
	if (status == LADE_OK)
		status = lade__rnt_plan(&r, tuple, targets, count, options, err);
	return end(&r, status, report);
}
