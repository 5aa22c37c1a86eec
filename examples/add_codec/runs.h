/*
 * runs.h: "runs", a run-length codec for elements of 1 to 8 bytes, to be added to liblade.
 *
 *     | decoded size 8, little-endian | run | run | ... | rest |
 *     run:  | length - 1, 1 byte | element, 'size' bytes |
 *     rest: the last decoded size modulo 'size' bytes, not encoded
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RUNS_H
#define RUNS_H

#include <lade/lade.h>

extern const lade_algorithm runs_algorithm;
extern const lade_implementation runs_encode, runs_decode;

#endif
