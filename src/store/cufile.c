/*
 * cufile.c: opens libcufile, and reads files into memory of devices by it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/cufile.h"

#include "base/library.h"
#include "gpu/device.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

lade_status lade__cufile_open(lade__cufile *c, const char *name, lade_error *err)
{
	static const char *const functions[] = {"cuFileDriverOpen", "cuFileHandleRegister",
	                                        "cuFileHandleDeregister", "cuFileRead", NULL};
	const char *files[] = {name ? name : "libcufile.so.0", name ? NULL : "libcufile.so", NULL};
	c->library = lade__library_open(files, functions, &c->driver_open);
	if (!c->library)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "LADE_DIRECTORY_CUFILE: %s cannot be opened, or lacks a function",
		                 files[0]);
	cufile_error rc = c->driver_open();
	if (rc.code == 0)
		return LADE_OK;
	return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
	                 "LADE_DIRECTORY_CUFILE: cuFileDriverOpen() returns %d, driver code %d",
	                 rc.code, rc.cuda);
}

void *lade__cufile_handle(const lade__cufile *c, int fd)
{
	cufile_descriptor descriptor = {.type = 1, .handle = {.fd = fd}};
	void *handle = NULL;
	cufile_error rc = c->handle_register(&handle, &descriptor);
	return rc.code == 0 ? handle : NULL;
}

lade_status lade__cufile_read(const lade__cufile *c, void *handle, lade_span *to, uint64_t off,
                              lade_stream stream, lade_error *err)
{
	lade__device *device;
	lade_status status = lade_stream_wait(to->place.device, stream, err);
	if (status == LADE_OK)
		status = lade__device_use(to->place.device, &device, err);
	if (status != LADE_OK)
		return status;
	ssize_t n = c->read(handle, to->data, to->size, (off_t)off, 0);
	int why = errno;
	lade__device_leave(device);
	if (n >= 0 && (size_t)n <= to->size) {
		to->size = (size_t)n;
		return LADE_OK;
	}
	if (n == -1)
		return lade_fail(err, LADE_E_IO, off, "cuFileRead() at %" PRIu64 ": %s", off,
		                 strerror(why));
	return lade_fail(err, LADE_E_IO, off, "cuFileRead() at %" PRIu64 " returns %lld", off,
	                 (long long)n);
}
