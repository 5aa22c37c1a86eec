/*
 * oom.h: fails the k-th allocation of a scenario, for every k, and looks for leaks.
 *
 * wrap.c stands between the library's objects and malloc, the constructors of the codec libraries,
 * mmap and pthread_create (the linker's --wrap): each call is one that can be made to fail.  What
 * happens inside another library's shared object is not seen.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_OOM_H
#define LADE_TESTS_OOM_H

#include <lade/status.h>

/*
 * Does a piece of work from making its objects to freeing them, and checks its own results.
 * Returns the first failure.  Allocates nothing by itself.
 */
typedef lade_status (*oom_scenario)(void *ctx, lade_error *err);

enum {
	OOM_FAIL_ONE = 0,  /* the k-th call fails, those after it do not */
	OOM_FAIL_FROM = 1, /* the k-th call fails and all after it */
};

/*
 * Runs 'scenario' without a failure, then with the k-th call failing, until none was left to fail.
 * Each run must return LADE_OK or LADE_E_NOMEM with a message, and give back all it took; the
 * first must be LADE_OK.  A breach fails the cmocka test.  Returns the number of calls seen.
 */
size_t oom_run(const char *name, oom_scenario scenario, void *ctx);

/* For a scenario on an object that lives on: arms the k-th call, and disarms.  The latter tells
 * whether the call came. */
void oom_arm(long k, int mode);
bool oom_disarm(void);

/* Blocks that were taken since the last oom_track() and not given back. */
void oom_track(void);
size_t oom_live(void);

#endif
