/*
 * limits.h: what bounds all chunks, for C11 and CUDA C++ alike.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BASE_LIMITS_H
#define LADE_BASE_LIMITS_H

/* The most bytes of a chunk, encoded or decoded, for kernels and for formats with sizes of 32 bits:
 * positions, and twice a position, fit 32 bits. */
#define LADE_CHUNK_MAX (1u << 30)

#endif
