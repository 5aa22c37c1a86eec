/*
 * npy.h: the header of NumPy's .npy files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CLI_NPY_H
#define LADE_CLI_NPY_H

#include <lade/frame.h>

typedef struct npy {
	lade_dtype dtype;
	char descr[32]; /* as the header has it */
	bool fortran_order;
	unsigned ndim;
	uint64_t shape[LADE_NDIM_MAX];
	size_t header_size;
	uint64_t data_size; /* of the array: the product of shape and element size */
} npy;

/* A header that npy_write() makes is never longer. */
#define NPY_HEADER_MAX 1024

/*
 * Reads the header of a file that begins with 'size' bytes at 'data' (all of it, or at least
 * NPY_HEADER_MAX).  Versions 1, 2 and 3.
 * Gives NULL; or why it cannot be taken apart and put together again: then the file is bytes.
 * '*out' has its dtype even then, when that much was understood.
 */
const char *npy_read(const void *data, size_t size, npy *out);

/* Reads a header that may have another spelling, and another type: then its dtype is
 * LADE_DTYPE_NONE, and 'data_size' is 0.  Types of structs are not understood. */
const char *npy_read_any(const void *data, size_t size, npy *out);

/* Writes the header that today's NumPy writes, NPY_HEADER_MAX bytes at most; gives its size. */
size_t npy_write(const npy *header, char *out);

/* The same for any type, whose 'descr' is a Python literal: "'<i4'", "[('a', '<i4')]".  'out' has
 * NPY_HEADER_MAX bytes and those of the literal.  Version 1; 2 for long headers; 3 if the literal
 * is not ASCII. */
size_t npy_write_descr(const npy *header, const char *descr, char *out);

#endif
