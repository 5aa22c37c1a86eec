/*
 * set.h: what a room gives to the engine: its algorithms and implementations.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BASE_SET_H
#define LADE_BASE_SET_H

#include <lade/codec.h>

/* Both lists end with NULL. */
typedef struct lade__set {
	const lade_algorithm *const *algorithms;
	const lade_implementation *const *implementations;
} lade__set;

#endif
