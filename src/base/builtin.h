/*
 * builtin.h: the sets of algorithms and implementations that come with the library.  Each
 * folder gathers its own in one table; the engine copies them all.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BASE_BUILTIN_H
#define LADE_BASE_BUILTIN_H

#include <lade/codec.h>

/* Both lists are ended by NULL. */
typedef struct lade__set {
	const lade_algorithm *const *algorithms;
	const lade_implementation *const *implementations;
} lade__set;

extern const lade__set lade__codecs;    /* src/codec/codecs.c */
extern const lade__set lade__filters;   /* src/filter/filters.c */
extern const lade__set lade__checksums; /* src/checksum/stages.c */

#endif
