/*
 * fake_cufile.c: stands in for libcufile: reads a file by pread(), and copies to the device by the
 * driver that the process has.  It shows how liblade calls libcufile, and nothing of what the real
 * one does.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "fake_cufile.h"
#include "store/cufile.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

fake_cufile fake_cufile_state;

cufile_error cuFileDriverOpen(void)
{
	atomic_fetch_add(&fake_cufile_state.opens, 1);
	return (cufile_error){fake_cufile_state.open_code, 0};
}

cufile_error cuFileHandleRegister(void **handle, cufile_descriptor *d)
{
	int *fd;
	if (fake_cufile_state.refuse || d->type != 1 || d->functions || !(fd = malloc(sizeof *fd)))
		return (cufile_error){5027, 0}; /* the file type is not supported */
	*fd = d->handle.fd;
	*handle = fd;
	atomic_fetch_add(&fake_cufile_state.handles, 1);
	if (fcntl(*fd, F_GETFL) & O_DIRECT)
		atomic_fetch_add(&fake_cufile_state.direct, 1);
	return (cufile_error){0, 0};
}

void cuFileHandleDeregister(void *handle)
{
	free(handle);
	atomic_fetch_sub(&fake_cufile_state.handles, 1);
}

/* As the real one, which wants a context of the calling thread. */
ssize_t cuFileRead(void *handle, void *base, size_t size, off_t off, off_t base_off)
{
	int (*copy)(unsigned long long, const void *, size_t, void *);
	int (*wait)(void *);
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	void *at = driver ? dlsym(driver, "cuMemcpyHtoDAsync_v2") : NULL;
	memcpy(&copy, &at, sizeof at);
	at = driver ? dlsym(driver, "cuStreamSynchronize") : NULL;
	memcpy(&wait, &at, sizeof at);
	atomic_fetch_add(&fake_cufile_state.reads, 1);
	if (fake_cufile_state.fail_with) {
		errno = EIO;
		return fake_cufile_state.fail_with;
	}
	size = fake_cufile_state.most && size > fake_cufile_state.most ? fake_cufile_state.most
	                                                               : size;
	/* O_DIRECT wants an aligned buffer and aligned places: whole blocks around the bytes. */
	size_t skip = (size_t)off % 4096, room = (skip + size + 4095) / 4096 * 4096;
	char *bytes = aligned_alloc(4096, room ? room : 4096);
	ssize_t got =
		bytes && copy && wait ? pread(*(int *)handle, bytes, room, off - (off_t)skip) : -1;
	got = got < 0 ? got : got > (ssize_t)skip ? got - (ssize_t)skip : 0;
	got = got > (ssize_t)size ? (ssize_t)size : got;
	if (got > 0 && (copy((unsigned long long)(uintptr_t)base + (unsigned long long)base_off,
	                     bytes + skip, (size_t)got, NULL) != 0 ||
	                wait(NULL) != 0))
		got = -5014;
	free(bytes);
	if (driver)
		dlclose(driver);
	return got;
}
