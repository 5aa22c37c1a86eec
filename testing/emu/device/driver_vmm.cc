/*
 * driver_vmm.cc: the driver's functions for memory that other processes can map: cuMemCreate() and
 * its descriptors, and the older handles of cuMemAlloc()'s blocks.
 *
 * The memory is a memfd, whose name says which device it is of; its descriptors are the driver's.
 * So a process of its own that loads this library maps the same bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "emu/device/api.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>

#define MARK "/memfd:emulated-device-"

/* What cuMemCreate() or an import made; handles and maps refer to it. */
struct memory {
	int device, fd;
	size_t size;
	bool imported;
	int refs;
};

static auto &known_handles = *new std::map<lade__block_handle, memory *>;
static auto &maps = *new std::map<uint64_t, memory *>;
static lade__block_handle last_handle = 0x1000;

static void unref(memory *m)
{
	if (--m->refs)
		return;
	if (!m->imported)
		memory_used[m->device] -= m->size;
	close(m->fd);
	delete m;
}

static lade__block_handle new_handle(memory *m)
{
	m->refs++;
	known_handles[++last_handle] = m;
	emulated.handles++;
	return last_handle;
}

static memory *of_handle(lade__block_handle handle)
{
	auto it = known_handles.find(handle);
	return it == known_handles.end() ? NULL : it->second;
}

static bool valid(const lade__block_props *p)
{
	return p->alloc_type == 1 && (p->handle_types & ~1) == 0 && p->location_type == 1 &&
	       p->location_id >= 0 && p->location_id < EMULATED_DEVICES;
}

API cuMemGetAllocationGranularity(size_t *size, const lade__block_props *props, int option)
{
	ENTER;
	REFUSE(!valid(props) || option < 0 || option > 1, INVALID_VALUE);
	*size = VMM_GRANULE;
	return OK;
}

API cuMemCreate(lade__block_handle *out, size_t size, const lade__block_props *props,
                unsigned long long flags)
{
	ENTER;
	REFUSE(!valid(props) || flags || !size || size % VMM_GRANULE, INVALID_VALUE);
	int device = props->location_id;
	REFUSE(size > DEVICE_MEMORY || memory_used[device] + size > DEVICE_MEMORY, OUT_OF_MEMORY);
	char name[32];
	snprintf(name, sizeof(name), "%s%d", strchr(MARK, ':') + 1, device);
	int fd = memfd_create(name, MFD_CLOEXEC);
	REFUSE(fd < 0, OUT_OF_MEMORY);
	if (ftruncate(fd, (off_t)size)) {
		close(fd);
		return OUT_OF_MEMORY;
	}
	memory_used[device] += size;
	*out = new_handle(new memory{device, fd, size, false, 0});
	return OK;
}

API cuMemRelease(lade__block_handle handle)
{
	guard locked;
	int rc = fails(__func__);
	memory *m = of_handle(handle);
	REFUSE(!m, INVALID_VALUE);
	known_handles.erase(handle);
	emulated.handles--;
	unref(m);
	return rc;
}

API cuMemExportToShareableHandle(void *out, lade__block_handle handle, int type,
                                 unsigned long long flags)
{
	ENTER;
	memory *m = of_handle(handle);
	/* What was imported cannot be exported: its descriptor is passed on. */
	REFUSE(!m || m->imported || type != 1 || flags, INVALID_VALUE);
	int fd = fcntl(m->fd, F_DUPFD_CLOEXEC, 0);
	REFUSE(fd < 0, OUT_OF_MEMORY);
	memcpy(out, &fd, sizeof(fd));
	return OK;
}

API cuMemImportFromShareableHandle(lade__block_handle *out, void *from, int type)
{
	ENTER;
	REFUSE(type != 1, INVALID_VALUE);
	int fd = (int)(intptr_t)from;
	char path[32], name[64] = "";
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	struct stat st;
	/* Whatever else it is, the driver says the same. */
	REFUSE(readlink(path, name, sizeof(name) - 1) < 0, UNKNOWN);
	int device = name[strlen(MARK)] - '0';
	REFUSE(strncmp(name, MARK, strlen(MARK)) || device < 0 || device >= EMULATED_DEVICES,
	       UNKNOWN);
	REFUSE(fstat(fd, &st), UNKNOWN);
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	REFUSE(own < 0, OUT_OF_MEMORY);
	*out = new_handle(new memory{device, own, (size_t)st.st_size, true, 0});
	return OK;
}

API cuMemGetAllocationPropertiesFromHandle(lade__block_props *props, lade__block_handle handle)
{
	ENTER;
	memory *m = of_handle(handle);
	REFUSE(!m, INVALID_VALUE);
	*props = {};
	props->alloc_type = props->handle_types = props->location_type = 1;
	props->location_id = m->device;
	return OK;
}

API cuMemAddressReserve(lade__address *ptr, size_t size, size_t align, lade__address,
                        unsigned long long flags)
{
	ENTER;
	REFUSE(flags || !size || size % VMM_GRANULE || align & (align - 1), INVALID_VALUE);
	block *b = memory_reserve(size);
	REFUSE(!b, OUT_OF_MEMORY);
	emulated.reserved++;
	*ptr = b->at;
	return OK;
}

/* A reservation that begins there and has that size. */
static block *reserved(lade__address ptr, size_t size)
{
	block *b = memory_find(ptr);
	return b && b->mapped && b->at == ptr && b->size == size ? b : NULL;
}

API cuMemAddressFree(lade__address ptr, size_t size)
{
	guard locked;
	int rc = fails(__func__);
	block *b = reserved(ptr, size);
	REFUSE(!b || b->live, INVALID_VALUE);
	memory_drop(b);
	emulated.reserved--;
	return rc;
}

API cuMemMap(lade__address ptr, size_t size, size_t off, lade__block_handle handle,
             unsigned long long flags)
{
	ENTER;
	memory *m = of_handle(handle);
	block *b = reserved(ptr, size);
	REFUSE(!m || !b || b->live || flags, INVALID_VALUE);
	/* Only all of it. */
	REFUSE(off || size != m->size, NOT_SUPPORTED);
	REFUSE(!memory_map(b, m->fd, m->device), OUT_OF_MEMORY);
	m->refs++;
	maps[ptr] = m;
	emulated.maps++;
	return OK;
}

API cuMemUnmap(lade__address ptr, size_t size)
{
	guard locked;
	int rc = fails(__func__);
	block *b = reserved(ptr, size);
	REFUSE(!b || !b->live, INVALID_VALUE);
	memory_map(b, -1, -1);
	unref(maps[ptr]);
	maps.erase(ptr);
	emulated.maps--;
	return rc;
}

API cuMemSetAccess(lade__address ptr, size_t size, const lade__pool_access *access, size_t count)
{
	ENTER;
	block *b = reserved(ptr, size);
	REFUSE(!b || !b->live || count != 1, INVALID_VALUE);
	REFUSE(access->location_type != 1 || access->location_id != b->device ||
	               (access->flags != 0 && access->flags != 1 && access->flags != 3),
	       INVALID_VALUE);
	memory_access(b, access->flags);
	return OK;
}

/* ---- handles of cuMemAlloc()'s blocks -------------------------------------------------------- */

/* A handle has the process, its descriptor of the block, the block's size and device. */
struct ipc {
	int pid, fd, device;
	size_t size, from; /* from: the block's first byte among its pages */
};

static_assert(sizeof(ipc) <= sizeof(lade__ipc_handle), "a handle");

/* What was opened: its reservation, by the block's address. */
static auto &opened_handles = *new std::map<uint64_t, block *>;

API cuIpcGetMemHandle(lade__ipc_handle *out, lade__address ptr)
{
	ENTER_DEVICE;
	block *b = memory_find(ptr);
	REFUSE(!b || b->leaving || b->mapped || b->from || b->kind != ON_DEVICE, INVALID_VALUE);
	int fd = memory_descriptor(b);
	REFUSE(fd < 0, OUT_OF_MEMORY);
	ipc i = {getpid(), fd, b->device, b->size, b->at - b->pages};
	memset(out, 0, sizeof(*out));
	memcpy(out, &i, sizeof(i));
	return OK;
}

API cuIpcOpenMemHandle_v2(lade__address *ptr, lade__ipc_handle handle, unsigned flags)
{
	ENTER_DEVICE;
	ipc i;
	char path[64];
	struct stat st;
	memcpy(&i, &handle, sizeof(i));
	REFUSE(flags != 1, INVALID_VALUE);
	REFUSE(i.pid == getpid(), INVALID_CONTEXT);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", i.pid, i.fd);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	REFUSE(fd < 0, INVALID_HANDLE);
	if (fstat(fd, &st) || i.device < 0 || i.device >= EMULATED_DEVICES || st.st_size < 1 ||
	    i.from > (size_t)st.st_size || i.size > (size_t)st.st_size - i.from) {
		close(fd);
		return INVALID_VALUE;
	}
	block *b = memory_reserve((size_t)st.st_size);
	bool mapped = b && memory_map(b, fd, i.device);
	close(fd);
	REFUSE(!mapped, OUT_OF_MEMORY);
	memory_access(b, 3);
	b->at += i.from;
	b->size = i.size;
	opened_handles[b->at] = b;
	emulated.maps++;
	*ptr = b->at;
	return OK;
}

API cuIpcCloseMemHandle(lade__address ptr)
{
	guard locked;
	int rc = fails(__func__);
	auto it = opened_handles.find(ptr);
	REFUSE(it == opened_handles.end(), INVALID_VALUE);
	memory_map(it->second, -1, -1);
	memory_drop(it->second);
	opened_handles.erase(it);
	emulated.maps--;
	return rc;
}
