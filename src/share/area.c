/*
 * area.c: memory that a connection has mapped: its own, which can be published, and that of opened
 * versions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "share/area.h"

#include "base/try.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static lade_status failed(const char *what, size_t size, lade_error *err)
{
	int code = errno;
	lade_status status = code == ENOMEM || code == ENOSPC ? LADE_E_NOMEM : LADE_E_IO;

	return lade_fail(err, status, LADE_NO_OFFSET, "%s of %zu bytes: %s", what, size,
	                 strerror(code));
}

/* ---- memfds ----------------------------------------------------------------------------- */

lade_status lade__memfd_new(size_t size, int *out, lade_error *err)
{
	int fd = -1;

	*out = -1;
	if (size <= PTRDIFF_MAX)
		fd = memfd_create("lade-share", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	else
		errno = ENOMEM;
	if (fd < 0 || ftruncate(fd, (off_t)size)) {
		lade_status status = failed("shared memory", size, err);
		if (fd >= 0)
			close(fd);
		return status;
	}
	*out = fd;
	return LADE_OK;
}

lade_status lade__memfd_seal(int fd, lade_error *err)
{
	if (!fcntl(fd, F_ADD_SEALS, SEALS))
		return LADE_OK;
	return lade_fail(err, errno == EBUSY ? LADE_E_STATE : LADE_E_IO, LADE_NO_OFFSET,
	                 "sealing shared memory: %s", strerror(errno));
}

/* ---- the list --------------------------------------------------------------------------- */

lade__areas *lade__areas_new(void)
{
	lade__areas *areas = calloc(1, sizeof *areas);

	if (areas) {
		pthread_mutex_init(&areas->mutex, NULL);
		areas->refs = 1;
	}
	return areas;
}

void lade__areas_unref(lade__areas *areas)
{
	if (!areas)
		return;
	pthread_mutex_lock(&areas->mutex);
	bool last = --areas->refs == 0;
	pthread_mutex_unlock(&areas->mutex);
	if (!last)
		return;
	pthread_mutex_destroy(&areas->mutex);
	for (size_t i = 0; i < areas->lease_count; i++) {
		lade__vmm_unref(areas->leases[i]->vmm);
		free(areas->leases[i]);
	}
	free(areas->leases);
	free(areas->areas);
	free(areas);
}

/* The index of the first area that begins above 'data'; the lock is held. */
static size_t above(const lade__areas *areas, const uint8_t *data)
{
	size_t low = 0, high = areas->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if ((uintptr_t)areas->areas[mid]->data <= (uintptr_t)data)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

lade__area *lade__area_find(lade__areas *areas, const void *data, size_t size)
{
	lade__area *area = NULL;

	pthread_mutex_lock(&areas->mutex);
	size_t at = above(areas, data);
	if (at) {
		lade__area *a = areas->areas[at - 1];
		size_t off = (uintptr_t)data - (uintptr_t)a->data;
		if (off <= a->size && size <= a->size - off && !a->private &&
		    !(a->vmm && a->vmm->lease))
			area = a;
	}
	pthread_mutex_unlock(&areas->mutex);
	return area;
}

static bool add(lade__areas *areas, lade__area *area)
{
	bool good = true;

	pthread_mutex_lock(&areas->mutex);
	if (areas->count == areas->cap) {
		size_t cap = areas->cap ? areas->cap * 2 : 16;
		lade__area **larger = realloc(areas->areas, cap * sizeof *larger);
		good = larger != NULL;
		if (larger) {
			areas->areas = larger;
			areas->cap = cap;
		}
	}
	if (good) {
		size_t at = above(areas, area->data);
		memmove(areas->areas + at + 1, areas->areas + at,
		        (areas->count - at) * sizeof *areas->areas);
		areas->areas[at] = area;
		areas->count++;
		areas->refs++;
	}
	pthread_mutex_unlock(&areas->mutex);
	return good;
}

/* Takes the map and the descriptor; on failure it gives them back. */
static lade_status make(lade__areas *areas, void *data, size_t size, int fd, lade__area **out,
                        lade_error *err)
{
	lade__area *area = malloc(sizeof *area);

	if (area)
		*area = (lade__area){.of = areas, .data = data, .size = size, .fd = fd};
	if (!area || !add(areas, area)) {
		free(area);
		munmap(data, size);
		if (fd >= 0)
			close(fd);
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a map");
	}
	*out = area;
	return LADE_OK;
}

void lade__area_free(lade__area *area)
{
	lade__areas *areas = area->of;

	/* Before the memory goes: then another map may get the address. */
	pthread_mutex_lock(&areas->mutex);
	size_t at = above(areas, area->data) - 1;
	/* A block of a device that several versions have is at one address. */
	while (areas->areas[at] != area)
		at--;
	areas->count--;
	memmove(areas->areas + at, areas->areas + at + 1,
	        (areas->count - at) * sizeof *areas->areas);
	pthread_mutex_unlock(&areas->mutex);
	if (area->vmm)
		lade__vmm_unref(area->vmm);
	else
		munmap(area->data, area->size);
	if (area->fd >= 0)
		close(area->fd);
	free(area);
	lade__areas_unref(areas);
}

/* An allocation that was lent before has the same handle, and keeps its area. */
lade_status lade__areas_lease(lade__areas *areas, lade__device *device, const void *data,
                              size_t size, lade__area **out, lade_error *err)
{
	lade__vmm *vmm;
	lade__area *area = NULL, **larger;
	lade_status status = lade__vmm_lease(device, data, &vmm, err);

	if (status != LADE_OK)
		return status;
	if (size > vmm->at + vmm->size - lade__address_of(data)) {
		status = lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                   "a buffer of %zu bytes passes the end of its allocation of %zu",
		                   size, vmm->size);
		lade__vmm_unref(vmm);
		return status;
	}
	pthread_mutex_lock(&areas->mutex);
	for (size_t i = 0; i < areas->lease_count && !area; i++)
		if (!memcmp(&areas->leases[i]->vmm->ipc, &vmm->ipc, sizeof vmm->ipc) &&
		    areas->leases[i]->vmm->at == vmm->at &&
		    areas->leases[i]->vmm->size == vmm->size)
			area = areas->leases[i];
	if (area) {
		lade__vmm_unref(vmm);
	} else {
		area = malloc(sizeof *area);
		larger = realloc(areas->leases, (areas->lease_count + 1) * sizeof *larger);
		if (larger)
			areas->leases = larger;
		if (area && larger) {
			*area = (lade__area){.of = areas,
			                     .data = (uint8_t *)(uintptr_t)vmm->at,
			                     .size = vmm->size,
			                     .fd = -1,
			                     .vmm = vmm};
			areas->leases[areas->lease_count++] = area;
		} else {
			free(area);
			area = NULL;
			lade__vmm_unref(vmm);
			status = lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                   "no memory for a map");
		}
	}
	pthread_mutex_unlock(&areas->mutex);
	*out = area;
	return status;
}

lade_status lade__area_of(lade__areas *areas, lade__vmm *vmm, size_t size, lade__area **out,
                          lade_error *err)
{
	lade__area *area = malloc(sizeof *area);

	if (area)
		*area = (lade__area){.of = areas,
		                     .data = (uint8_t *)(uintptr_t)vmm->at,
		                     .size = size,
		                     .fd = -1,
		                     .vmm = vmm};
	if (!area || !add(areas, area)) {
		free(area);
		lade__vmm_unref(vmm);
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a map");
	}
	*out = area;
	return LADE_OK;
}

/* ---- maps ------------------------------------------------------------------------------- */

lade_status lade__area_new(lade__areas *areas, size_t size, lade__area **out, lade_error *err)
{
	int fd;
	lade_status status = lade__memfd_new(size, &fd, err);

	if (status != LADE_OK)
		return status;
	void *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED) {
		status = failed("a map", size, err);
		close(fd);
		return status;
	}
	return make(areas, data, size, fd, out, err);
}

lade_status lade__area_map(lade__areas *areas, int fd, size_t size, bool private, lade__area **out,
                           lade_error *err)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);
	void *data;

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) || st.st_size < 0 ||
	    (uint64_t)st.st_size < size || !size)
		return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                 "a block of %zu bytes is not a sealed memfd of that size: seals "
		                 "0x%x, want 0x%x",
		                 size, seals < 0 ? 0u : (unsigned)seals, (unsigned)SEALS);
	/* Linux before 6.7 refuses shared maps of sealed memory, even to read. */
	if (private)
		data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	else
		data = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED && errno == EPERM)
		data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return failed("a map", size, err);
	lade_status status = make(areas, data, size, -1, out, err);
	if (status == LADE_OK)
		(*out)->private = private;
	return status;
}

/*
 * A shared map that may be written counts against the seal, so a private one takes its place first,
 * at once.  A shared one can be pinned for a device; where the kernel allows none it stays
 * private.  A map that fails at a fixed address may leave a hole there: so it is tried elsewhere.
 */
lade_status lade__area_seal(lade__area *a, bool writable, lade_error *err)
{
	int access = writable ? PROT_READ | PROT_WRITE : PROT_READ;
	lade_status status = LADE_OK;
	void *trial;

	pthread_mutex_lock(&a->of->mutex);
	if (a->sealed || a->fd < 0)
		goto out;
	if (mmap(a->data, a->size, access, MAP_PRIVATE | MAP_FIXED, a->fd, 0) == MAP_FAILED)
		TRY(failed("a private map", a->size, err));
	status = lade__memfd_seal(a->fd, err);
	if (status != LADE_OK) {
		mmap(a->data, a->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, a->fd, 0);
		goto out;
	}
	a->sealed = true;
	a->private = writable;
	if (writable)
		goto out;
	trial = mmap(NULL, a->size, PROT_READ, MAP_SHARED, a->fd, 0);
	if (trial != MAP_FAILED) {
		munmap(trial, a->size);
		mmap(a->data, a->size, PROT_READ, MAP_SHARED | MAP_FIXED, a->fd, 0);
	}
out:
	pthread_mutex_unlock(&a->of->mutex);
	return status;
}
