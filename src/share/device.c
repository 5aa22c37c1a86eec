/*
 * device.c: blocks of device memory that processes share.
 *
 * Measured on an H200 (driver 580, 2026-11-23): an import and its map take 0.06 to 0.2 ms up to
 * 1 GiB, and get slower the more maps of one block there are.  So a table of the process has each
 * block that is mapped, by the number that its maker gave it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "share/device.h"

#include "base/support.h"
#include "base/try.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define BUCKETS 256
enum { ACCESS_READ = 1, ACCESS_ALL = 3, POSIX_FD = 1, LAZY_PEER_ACCESS = 1 };
enum {
	ATTRIBUTE_IPC = 10, /* of pointers: whether cuIpcGetMemHandle() takes them */
	ATTRIBUTE_RANGE_START = 11,
	ATTRIBUTE_RANGE_SIZE = 12,
	ATTRIBUTE_POSIX_FD = 103, /* of devices */
};

static struct {
	pthread_mutex_t mutex;
	lade__vmm *buckets[BUCKETS];
} table = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* ---- the driver ------------------------------------------------------------------------- */

uint64_t lade__vmm_key(const lade__device *device)
{
	return lade__le64(device->info.uuid);
}

static lade__block_props props_of(const lade__device *device)
{
	return (lade__block_props){.alloc_type = 1,
	                           .handle_types = POSIX_FD,
	                           .location_type = 1,
	                           .location_id = device->number};
}

/* Older drivers lack the functions, and some devices descriptors of memory. */
static lade_status can_share(lade__device *d, lade_error *err)
{
	bool all = true;
	int can = 0;
	lade_status status = LADE_OK;

#define LADE_X(name, symbol, arguments) all = all && d->driver->name;
	LADE__DRIVER_SHARING(LADE_X)
#undef LADE_X
	if (all)
		status = LADE__CU(d, cuDeviceGetAttribute, &can, ATTRIBUTE_POSIX_FD, d->handle);
	if (status == LADE_OK && !can)
		status = lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                   "device %d cannot share its memory with other processes",
		                   (int)d->number);
	return status;
}

static lade_status set_access(const lade__vmm *b, int access, lade_error *err)
{
	lade__pool_access all = {1, b->device->number, access};

	return LADE__CU(b->device, cuMemSetAccess, b->at, b->size, &all, 1);
}

/* Maps all of 'handle', or leaves nothing behind. */
static lade_status map(lade__vmm *b, lade__block_handle handle, int access, lade_error *err)
{
	lade__device *d = b->device;
	lade_status status = LADE__CU(d, cuMemAddressReserve, &b->at, b->size, 0, 0, 0);

	if (status != LADE_OK)
		return status;
	status = LADE__CU(d, cuMemMap, b->at, b->size, 0, handle, 0);
	if (status == LADE_OK) {
		status = set_access(b, access, err);
		if (status != LADE_OK)
			d->driver->cuMemUnmap(b->at, b->size);
	}
	if (status != LADE_OK)
		d->driver->cuMemAddressFree(b->at, b->size);
	return status;
}

/* ---- the table -------------------------------------------------------------------------- */

static lade__vmm **bucket_of(uint64_t id)
{
	return &table.buckets[id % BUCKETS];
}

static void add(lade__vmm *b)
{
	b->next = *bucket_of(b->id);
	*bucket_of(b->id) = b;
}

static lade__vmm *find(uint64_t id)
{
	lade__vmm *b = *bucket_of(id);

	while (b && b->id != id)
		b = b->next;
	return b;
}

static lade_status block_new(lade__device *d, uint64_t id, size_t size, lade__vmm **out,
                             lade_error *err)
{
	*out = malloc(sizeof **out);
	if (!*out)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a block");
	**out = (lade__vmm){.device = d, .id = id, .size = size, .fd = -1, .refs = 1};
	return LADE_OK;
}

static lade_status new_id(uint64_t *id, lade_error *err)
{
	if (getrandom(id, sizeof *id, 0) == (ssize_t)sizeof *id)
		return LADE_OK;
	return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "getrandom: %s", strerror(errno));
}

lade_status lade__vmm_new(int32_t number, size_t size, lade__vmm **out, lade_error *err)
{
	lade__device *d;
	lade__vmm *b = NULL;
	lade__block_props props;
	size_t granule;
	uint64_t id;
	lade_status status = lade__device_use(number, &d, err);

	*out = NULL;
	if (status != LADE_OK)
		return status;
	TRY(can_share(d, err));
	props = props_of(d);
	TRY(LADE__CU(d, cuMemGetAllocationGranularity, &granule, &props, 0));
	if (!size || !granule || size > d->info.memory_size)
		TRY(lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		              "%zu bytes of device %d, which has %llu", size, (int)number,
		              (unsigned long long)d->info.memory_size));
	TRY(new_id(&id, err));
	TRY(block_new(d, id, (size + granule - 1) / granule * granule, &b, err));
	TRY(LADE__CU(d, cuMemCreate, &b->handle, b->size, &props, 0));
	status = map(b, b->handle, ACCESS_ALL, err);
	if (status != LADE_OK) {
		d->driver->cuMemRelease(b->handle);
		goto out;
	}
	pthread_mutex_lock(&table.mutex);
	add(b);
	pthread_mutex_unlock(&table.mutex);
	*out = b;
	b = NULL;
out:
	free(b);
	lade__device_leave(d);
	return status;
}

/* The device that 8 bytes of a UUID name.  '*number' is -1 if this process has none. */
static lade_status device_of(uint64_t key, int32_t *number, lade_error *err)
{
	const lade_device_info *info;
	int32_t count;
	lade_status status = lade_device_count(&count, err);

	*number = -1;
	for (int32_t i = 0; status == LADE_OK && i < count; i++)
		if (lade_device_get_info(i, &info, NULL) == LADE_OK &&
		    lade__le64(info->uuid) == key)
			*number = i;
	if (status == LADE_OK && *number < 0)
		status = lade_fail(err, LADE_E_NO_DEVICE, LADE_NO_OFFSET,
		                   "the memory of a device that this process does not see");
	return status;
}

/* Imports a descriptor; the table is locked and the device entered. */
static lade_status import(lade__device *d, int fd, uint64_t id, size_t size, lade__vmm **out,
                          lade_error *err)
{
	lade__block_handle handle;
	lade__block_props props = {0};
	lade__vmm *b = NULL;
	lade_error why;
	lade_status status;
	int rc;

	TRY(can_share(d, err));
	TRY(block_new(d, id, size, &b, err));
	rc = d->driver->cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd, POSIX_FD);
	if (rc) {
		lade__driver_fail(d->driver, rc, d->number, "cuMemImportFromShareableHandle", &why);
		TRY(lade_fail(err, rc == LADE__CU_OUT_OF_MEMORY ? LADE_E_NOMEM : LADE_E_CORRUPT,
		              LADE_NO_OFFSET, "a descriptor is no device memory: %.140s",
		              why.message));
	}
	rc = d->driver->cuMemGetAllocationPropertiesFromHandle(&props, handle);
	if (rc || props.location_type != 1 || props.location_id != d->number)
		status = lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                   "a block is in the memory of device %d, want %d",
		                   rc ? -1 : props.location_id, (int)d->number);
	else
		status = map(b, handle, ACCESS_READ, &why);
	/* The driver takes no other size than the block's. */
	if (status == LADE_E_DEVICE)
		status = lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                   "a block cannot be mapped with its %zu bytes: %.120s", size,
		                   why.message);
	else if (status == LADE_E_NOMEM)
		lade_fail(err, status, LADE_NO_OFFSET, "%s", why.message);
	d->driver->cuMemRelease(handle);
	if (status == LADE_OK) {
		add(b);
		*out = b;
		b = NULL;
	}
out:
	free(b);
	return status;
}

/* What a pointer's allocation is. */
static lade_status range_of(lade__device *d, lade__address at, lade__address *start, size_t *size,
                            lade_error *err)
{
	lade_status status;

	TRY(LADE__CU(d, cuPointerGetAttribute, start, ATTRIBUTE_RANGE_START, at));
	TRY(LADE__CU(d, cuPointerGetAttribute, size, ATTRIBUTE_RANGE_SIZE, at));
out:
	return status;
}

/* Opens a lease of another process; likewise.  What the driver gives for a handle is checked. */
static lade_status import_lease(lade__device *d, const lade__block *from, lade__vmm **out,
                                lade_error *err)
{
	lade__address start = 0;
	lade__vmm *b = NULL;
	size_t size = 0;
	lade_status status;

	TRY(can_share(d, err));
	TRY(block_new(d, from->id, (size_t)from->size, &b, err));
	b->lease = true;
	memcpy(b->ipc.bytes, from->handle, sizeof b->ipc.bytes);
	TRY(LADE__CU(d, cuIpcOpenMemHandle, &b->at, b->ipc, LAZY_PEER_ACCESS));
	status = range_of(d, b->at, &start, &size, err);
	if (status == LADE_OK && (start != b->at || size < b->size))
		status = lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                   "a lease of %zu bytes is of an allocation of %zu",
		                   b->size, size);
	if (status != LADE_OK) {
		d->driver->cuIpcCloseMemHandle(b->at);
		goto out;
	}
	b->opened = true;
	add(b);
	*out = b;
	b = NULL;
out:
	free(b);
	return status;
}

lade_status lade__vmm_lease(lade__device *d, const void *data, lade__vmm **out, lade_error *err)
{
	lade__address start;
	lade__vmm *b = NULL;
	unsigned can = 0;
	uint64_t id;
	size_t size;
	lade_status status = lade__device_enter(d, err);

	*out = NULL;
	if (status != LADE_OK)
		return status;
	TRY(can_share(d, err));
	TRY(LADE__CU(d, cuPointerGetAttribute, &can, ATTRIBUTE_IPC, lade__address_of(data)));
	if (!can)
		TRY(lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		              "memory of pools and the like cannot be leased"));
	TRY(range_of(d, lade__address_of(data), &start, &size, err));
	TRY(new_id(&id, err));
	TRY(block_new(d, id, size, &b, err));
	b->lease = true;
	b->at = start;
	TRY(LADE__CU(d, cuIpcGetMemHandle, &b->ipc, start));
	pthread_mutex_lock(&table.mutex);
	add(b);
	pthread_mutex_unlock(&table.mutex);
	*out = b;
	b = NULL;
out:
	free(b);
	lade__device_leave(d);
	return status;
}

lade__block lade__vmm_block(const lade__vmm *b)
{
	lade__block out = {.kind = b->lease ? LADE__BLOCK_LEASE : LADE__BLOCK_DEVICE,
	                   .fd = b->fd,
	                   .id = b->id,
	                   .device = lade__vmm_key(b->device),
	                   .size = b->size};

	memcpy(out.handle, b->ipc.bytes, sizeof out.handle);
	return out;
}

lade_status lade__vmm_open(const lade__block *from, lade__vmm **out, lade_error *err)
{
	uint64_t size = from->size;
	lade__device *d;
	int32_t number;
	lade_status status = device_of(from->device, &number, err);

	*out = NULL;
	if (status == LADE_OK)
		status = lade__device_use(number, &d, err);
	if (status != LADE_OK)
		return status;
	pthread_mutex_lock(&table.mutex);
	*out = find(from->id);
	if (*out && ((*out)->size != size || (*out)->device != d)) {
		status = lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                   "a block of %llu bytes has the number of another, of %zu",
		                   (unsigned long long)size, (*out)->size);
		*out = NULL;
	} else if (*out) {
		(*out)->refs++;
	} else if (!size || size > d->info.memory_size) {
		status = lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                   "a block of %llu bytes of device %d, which has %llu",
		                   (unsigned long long)size, (int)number,
		                   (unsigned long long)d->info.memory_size);
	} else if (from->kind == LADE__BLOCK_LEASE) {
		status = import_lease(d, from, out, err);
	} else {
		status = import(d, from->fd, from->id, (size_t)size, out, err);
	}
	pthread_mutex_unlock(&table.mutex);
	lade__device_leave(d);
	return status;
}

lade_status lade__vmm_publish(lade__vmm *b, lade_error *err)
{
	lade__device *d = b->device;
	lade_status status = lade__device_enter(d, err);

	if (status != LADE_OK)
		return status;
	pthread_mutex_lock(&table.mutex);
	if (b->fd < 0 && b->handle) {
		TRY(set_access(b, ACCESS_READ, err));
		TRY(LADE__CU(d, cuMemExportToShareableHandle, &b->fd, b->handle, POSIX_FD, 0));
	}
out:
	pthread_mutex_unlock(&table.mutex);
	lade__device_leave(d);
	return status;
}

void lade__vmm_unref(lade__vmm *b)
{
	lade_mark *all = NULL;
	lade__vmm **at;

	/* A child that was forked has no device: what its parent mapped is not there. */
	if (!b || lade__driver_lost())
		return;
	pthread_mutex_lock(&table.mutex);
	bool last = --b->refs == 0;
	for (at = bucket_of(b->id); last && *at; at = &(*at)->next)
		if (*at == b) {
			*at = b->next;
			break;
		}
	pthread_mutex_unlock(&table.mutex);
	if (!last)
		return;
	if ((b->opened || !b->lease) &&
	    lade_mark_new(b->device->number, LADE_ALL_STREAMS, &all, NULL) == LADE_OK)
		lade_mark_wait(all, NULL);
	lade_mark_free(all);
	bool entered = lade__device_enter(b->device, NULL) == LADE_OK;
	if (b->opened) {
		b->device->driver->cuIpcCloseMemHandle(b->at);
	} else if (!b->lease) {
		b->device->driver->cuMemUnmap(b->at, b->size);
		b->device->driver->cuMemAddressFree(b->at, b->size);
	}
	if (b->handle)
		b->device->driver->cuMemRelease(b->handle);
	if (entered)
		lade__device_leave(b->device);
	if (b->fd >= 0)
		close(b->fd);
	free(b);
}

/* ---- copies ----------------------------------------------------------------------------- */

static lade_status copy(lade__device *d, lade__address to, lade__address from, size_t size,
                        lade_error *err)
{
	lade_stream stream = NULL;
	lade_status status = lade__device_enter(d, err);

	if (status != LADE_OK)
		return status;
	TRY(lade_stream_new(d->number, &stream, err));
	TRY(LADE__CU(d, cuMemcpyAsync, to, from, size, stream));
	TRY(LADE__CU(d, cuStreamSynchronize, stream));
out:
	lade_stream_free(d->number, stream);
	lade__device_leave(d);
	return status;
}

lade_status lade__device_read(lade__device *d, const void *from, size_t size, void *to,
                              lade_error *err)
{
	return copy(d, lade__address_of(to), lade__address_of(from), size, err);
}

lade_status lade__device_write(lade__device *d, const void *from, size_t size, lade__address to,
                               lade_error *err)
{
	return copy(d, to, lade__address_of(from), size, err);
}
