/*
 * cufile.h: the part of libcufile (GPUDirect Storage) that the directory store uses.  The library
 * is opened at run time; types and numbers are part of its ABI.
 *
 * Source: NVIDIA, cuFile API reference guide, sections 4.1 to 4.4
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_STORE_CUFILE_H
#define LADE_STORE_CUFILE_H

#include <lade/memory.h>

#include <sys/types.h>

/* 0: it is well; or libcufile's code, and the driver's behind it. */
typedef struct cufile_error {
	int code, cuda;
} cufile_error;

typedef struct cufile_descriptor {
	int type; /* 1: a file descriptor */
	union {
		int fd;
		void *handle;
	} handle;
	const void *functions; /* NULL */
} cufile_descriptor;

typedef struct lade__cufile {
	void *library; /* NULL: it is not used */
	/* In the order of their names in cufile.c. */
	cufile_error (*driver_open)(void);
	cufile_error (*handle_register)(void **handle, cufile_descriptor *descriptor);
	void (*handle_deregister)(void *handle);
	ssize_t (*read)(void *handle, void *base, size_t size, off_t off, off_t base_off);
} lade__cufile;

/* Opens the library: the file 'name', or what the system has (NULL).  It stays open until the
 * process ends, as other stores and the program may use it.
 * Fails: LADE_E_UNSUPPORTED */
lade_status lade__cufile_open(lade__cufile *cufile, const char *name, lade_error *err);

/* A handle of a file, for reads; NULL: libcufile cannot read it. */
void *lade__cufile_handle(const lade__cufile *cufile, int fd);

/*
 * Reads up to to->size bytes at 'off' into memory of a device, after the work of 'stream'.
 * 'to->size' becomes the number of bytes: 0 at the file's end.
 * Fails: LADE_E_IO, LADE_E_NO_DEVICE, LADE_E_DEVICE
 */
lade_status lade__cufile_read(const lade__cufile *cufile, void *handle, lade_span *to, uint64_t off,
                              lade_stream stream, lade_error *err);

#endif
