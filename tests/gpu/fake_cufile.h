/*
 * fake_cufile.h: what tests say to the stand-in for libcufile, and what they learn from it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_FAKE_CUFILE_H
#define LADE_TESTS_FAKE_CUFILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct fake_cufile {
	int open_code;     /* of cuFileDriverOpen() */
	bool refuse;       /* files */
	ssize_t fail_with; /* of cuFileRead(); 0: it reads */
	size_t most;       /* bytes of one read; 0: any */
	atomic_int opens, reads, direct;
	atomic_int handles; /* registered and not given back */
} fake_cufile;

extern fake_cufile fake_cufile_state;

#endif
