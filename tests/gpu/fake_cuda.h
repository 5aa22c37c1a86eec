/*
 * fake_cuda.h: what the tests of failures say to the driver that stands in for the real one, and
 * what they learn from it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_FAKE_CUDA_H
#define LADE_TESTS_FAKE_CUDA_H

typedef struct fake_cuda_state {
	int fail_at;        /* the call that fails, counted from 1; 0: none */
	int fail_code;      /* what it returns */
	int devices;        /* 2 */
	int calls;          /* so far */
	const char *failed; /* the function that failed; NULL: none yet */
	/* What was made and not given back. */
	int streams, blocks, pools, modules, pushed;
	int retained; /* primary contexts, ever */
} fake_cuda_state;

/* The library gives it out under this name. */
fake_cuda_state *fake_cuda(void);

/* The text of every code. */
#define FAKE_ERROR_NAME "CUDA_ERROR_FAKE"

#endif
