/*
 * store.h: what the stores of this library share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_STORE_INTERNAL_H
#define LADE_STORE_INTERNAL_H

#include "io/io.h"

#include <lade/store.h>

#include <stdatomic.h>

/* Of lade_store_ops.flags, for stores that only hand on: the planner leaves their ranges as they
 * are, and the stores below fill the report. */
#define LADE__STORE_PASSES 0x80000000u

/*
 * What a request costs.  n requests of V bytes, of which P run at once, are expected to take
 *
 *	request_ns * (ceil(n / P) + n / 50) + max(V / (min(n, P) * request_rate), V / store_rate)
 */
typedef struct lade__cost {
	double request_ns;
	double request_rate, store_rate; /* bytes a nanosecond */
	unsigned parallel;
	bool whole; /* a request brings the whole value, whatever was asked for */
	uint64_t measured_count;
} lade__cost;

struct lade_store {
	atomic_size_t refs;
	lade_store_ops ops;
	void *ctx;
	/* Removes what killed writers left below a prefix where no value is; NULL: nothing is. */
	void (*tidy)(void *ctx, const char *prefix);
	char name[128];
	pthread_mutex_t mutex; /* guards 'cost' */
	lade__cost cost;
	struct lade__service *service; /* NULL: no call has needed one */
};

/* Drops a reference; true: it was the last one, and the store is gone. */
bool lade__store_drop(lade_store *store);

/* Work for the threads of a store (async.c). */
typedef struct lade__task {
	struct lade__task *next;
	/* Returns a store to drop a reference of, or NULL. */
	lade_store *(*run)(struct lade__task *task);
} lade__task;

/* Has a thread of the store run a task.  It cannot fail while another task runs.
 * Fails: LADE_E_NOMEM: there is no thread */
lade_status lade__store_later(lade_store *store, lade__task *task, lade_error *err);

/* Ends a store's threads, which have nothing to do. */
void lade__service_free(struct lade__service *service);

double lade__cost_ns(const lade__cost *cost, double requests, double bytes);

lade__cost lade__store_cost(lade_store *store);

/* A call has taken so long. */
void lade__store_measured(lade_store *store, size_t requests, uint64_t bytes, uint64_t ns);

/* Requests of this store bring whole values. */
void lade__store_is_whole(lade_store *store);

uint64_t lade__now_ns(void);

/* ---- a call --------------------------------------------------------------------------------- */

/* Some of a reading's ranges, as requests of a store. */
typedef struct lade__fetch {
	lade_store *store;
	lade_reading *outer; /* NULL: only planned */
	lade_range *ranges;  /* the outer reading's, or the caller's */
	size_t count;
	const size_t *index;     /* the ranges' own; NULL: the first 'count' ones */
	const char *const *keys; /* by range; NULL: each has its own */
	lade_io_options options;
	lade__cost cost;
	void *memory; /* of all tables */
	size_t request_count;
	lade_range *requests;
	lade_object_version *versions;
	lade_error *errors;
	lade_part *parts;
	size_t *first;  /* of a request's parts; request_count + 1 */
	size_t *owners; /* of parts: a range */
	size_t merged_count, split_count;
	size_t spare; /* cuts that the tables have room for */
	uint64_t gap_size, wanted_size, moved_size;
	uint64_t began_ns, answered_ns;
	lade_store_report *report;
	lade_reading reading; /* of the requests */
	/* NULL, or called once when all requests have answers, perhaps by lade__fetch_begin(): then
	 * lade__fetch_end() need not wait. */
	void (*answered)(void *ctx);
	void *answered_ctx;
	lade_store *later; /* NULL, or whose threads run what is left to do */
} lade__fetch;

/* The range and the key of number k of a plan. */
static inline lade_range *lade__fetch_range(const lade__fetch *p, size_t k)
{
	return &p->ranges[p->index ? p->index[k] : k];
}

static inline const char *lade__fetch_key(const lade__fetch *p, size_t k)
{
	return p->keys ? p->keys[k] : lade__fetch_range(p, k)->key;
}

/* Decides on requests; store, ranges, count, index and keys are set.  Ranges that need no request,
 * as their keys are none, are left out.  Fails: LADE_E_NOMEM; then there is nothing to free */
lade_status lade__fetch_plan(lade__fetch *plan, const lade_io_options *options, lade_error *err);
void lade__fetch_free(lade__fetch *plan);

/* Makes the plan, and has the store begin; lade__fetch_end() waits, answers the outer reading's
 * ranges, and frees.  They cannot fail: the ranges do. */
void lade__fetch_begin(lade__fetch *plan);
void lade__fetch_end(lade__fetch *plan);

/* Reads a caller's report; brings it to the caller.  Fails: LADE_E_ARG */
lade_status lade__report_begin(lade_store_report *own, const lade_store_report *given,
                               lade_error *err);
void lade__report_end(lade_store_report *own, lade_store_report *given, uint64_t began_ns);

/* What a store is as a source; read() is for store.c. */
lade_source_ops lade__store_source_ops(const lade_store *store);

/* As lade_store_new() for a store of the library, which has the flags of both kinds. */
lade_status lade__store_new(const lade_store_ops *ops, void *ctx, const char *name,
                            lade_store **out, lade_error *err);

/* The context of a store if it has these functions; or NULL. */
void *lade__store_context(lade_store *store, void (*read)(void *, lade_reading *, size_t));

/* For callers that have deleted values: removes directories below a prefix that have no files, or
 * only temporary ones that no process has locked.  What cannot be removed stays. */
void lade__store_tidy(lade_store *store, const char *prefix);

/* The failure of a key that has no value. */
lade_status lade__key_absent(lade_error *err);

/* A range's bytes of a value of known size and version: sets the answer's fields, and
 * '*off'.  Fails: LADE_E_CHANGED, and as lade_range_place() */
lade_status lade__range_answer(lade_range *range, uint64_t object_size,
                               const lade_object_version *version, uint64_t *off, lade_error *err);

/* Makes room for 'more' elements of 'size' bytes behind 'count' ones.  False: no memory */
bool lade__grow(void **table, size_t *room, size_t count, size_t more, size_t size);

/* Whether a prefix is "" or a key with a '/' behind it.  Fails: LADE_E_ARG */
lade_status lade__prefix_check(const char *prefix, lade_error *err);

/* A table of entries that a listing sorts: texts one behind the other. */
typedef struct lade__names {
	char *text;
	size_t size, cap;
	struct lade__name {
		size_t at;
		uint64_t size;
	} * names;
	size_t count, room;
} lade__names;
/* 'slash': adds a '/'.  False: no memory */
bool lade__names_add(lade__names *names, const char *name, size_t size, bool slash,
                     uint64_t value_size);
/* Adds what a key of a store is in a listing: nothing, itself, or what a level begins with. */
bool lade__names_add_key(lade__names *names, const char *key, uint64_t value_size,
                         const lade_store_listing *listing);
bool lade__names_sort(lade__names *names); /* false: no memory */
/* Visits them in their order; those that are equal once. */
lade_status lade__names_visit(const lade__names *names, const lade_store_listing *listing,
                              lade_error *err);
void lade__names_free(lade__names *names);

#endif
