/*
 * set.h: what a room gives to the engine: its algorithms and implementations.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BASE_SET_H
#define LADE_BASE_SET_H

#include <lade/codec.h>

/* An implementation for devices.  Its record has none of the tables: what runs is in gpu/work.h.
 * Its cost() returns the nanoseconds of the kernels alone, and refuses what they cannot do. */
typedef struct lade__gpu_implementation {
	lade_implementation record;
	const struct lade__gpu_codec *codec;
} lade__gpu_implementation;

/* The lists end with NULL. */
typedef struct lade__set {
	const lade_algorithm *const *algorithms;
	const lade_implementation *const *implementations;
	const lade__gpu_implementation *const *gpu; /* NULL: none */
} lade__set;

#endif
