/*
 * emulated.h: what tests say to the emulated device, and what they learn from it: a libcuda.so.1 of
 * our own whose kernels run on the emulated warp (docs/emulated-warp.md, "The emulated device").
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_EMULATED_H
#define LADE_TESTS_EMULATED_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#define EMULATED_DEVICES 2

/* How enqueued work is run. */
enum {
	EMULATED_LAZY = 0,  /* when it is waited for, and no more than that needs */
	EMULATED_EAGER = 1, /* before the call that enqueues it returns */
	/* Any other seed: at random among what streams and events allow. */
};

/* Device memory that changes while kernels run, as if somebody else wrote there: bytes that a
 * kernel is about to touch get other values now and then. */
typedef struct emulated_change {
	uint64_t at, size;
	uint64_t *most; /* NULL: any bytes; else of words of 64 bits, each at most most[i] */
} emulated_change;

typedef struct emulated_state {
	uint64_t seed; /* as above; LADE_EMULATED_SEED in the environment sets it at first */
	int protect;   /* 1: the host's touch of device memory is a fault.  0 is faster */

	int fail_at;        /* the call that fails, counted from 1; 0: none */
	int fail_code;      /* what it returns */
	int calls;          /* so far; texts of errors are not counted */
	const char *failed; /* the function that failed; NULL: none yet */

	int devices; /* 2; this and the next may be changed before the library looks */
	struct {
		int major, minor, managed, pools;
	} device[EMULATED_DEVICES];

	/* What was made and not given back. */
	int streams, events, blocks, pools, modules, pushed, graphs;
	int handles, reserved, maps; /* of memory by cuMemCreate() or from descriptors */
	int retained; /* primary contexts, ever */
	/* What was done, ever. */
	int syncs;          /* calls that wait: of streams, of events, and cuMemFree() */
	int launches, copies; /* run, not enqueued */
	int pending;        /* operations that are enqueued and have not run */
	int checked;        /* 1: a kernel's access to what is not the device's is found */
	char message[512];  /* the first thing that went wrong on a device; also on stderr */

	emulated_change *changing; /* 'changing_count' ranges, found in checked builds */
	int changing_count;
	int change_every; /* about one access to them in so many; 0: none changes */
	uint64_t steps;   /* a kernel's most; 0: what emu_config has */

	/* Takes a device's error back, which a real one keeps until the process ends. */
	void (*recover)(void);
} emulated_state;

/* The state, or NULL when libcuda.so.1 is another. */
static inline emulated_state *emulated_open(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	return library ? (emulated_state *)dlsym(library, "emulated") : NULL;
}

#endif
