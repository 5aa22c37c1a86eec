/*
 * limits.h: what bounds all chunks, for C11 and CUDA C++ alike.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BASE_LIMITS_H
#define LADE_BASE_LIMITS_H

/* The most bytes of a chunk, encoded or decoded, for kernels and for formats with sizes of 32 bits:
 * 2 GiB - 1.  A position is below 2^31, and the sum of two fits 32 bits; that of three, or of bits,
 * need not. */
#define LADE_CHUNK_MAX 0x7FFFFFFFu

#endif
