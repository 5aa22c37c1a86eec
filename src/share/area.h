/*
 * area.h: memory that a connection has mapped: its own, which can be published, and that of opened
 * versions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_SHARE_AREA_H
#define LADE_SHARE_AREA_H

#include "share/device.h"
#include "share/wire.h"

#include <pthread.h>

/* One map.  Its fields but 'sealed' and 'fd' never change. */
typedef struct lade__area {
	struct lade__areas *of;
	uint8_t *data;
	size_t size; /* bytes that were asked for; the map has whole pages */
	int fd;      /* of own memory; -1: the memory of a version */
	bool sealed;
	bool private;     /* its pages may differ from the memory's */
	uint64_t version; /* of an opened version: which block of which connection it is */
	uint32_t index;
	uint64_t generation;
	lade__vmm *vmm;    /* of a device's memory; NULL: the host's */
	lade_array *array; /* the array of own memory of a device, which may be in use still */
} lade__area;

/* All maps of a connection, by address.  Lives until the last of them is gone. */
typedef struct lade__areas {
	pthread_mutex_t mutex;
	size_t refs;
	lade__area **areas;
	size_t count, cap;
	lade__area **leases; /* memory of others that was lent; not among the areas */
	size_t lease_count;
} lade__areas;

lade__areas *lade__areas_new(void); /* NULL: there is no memory */
void lade__areas_unref(lade__areas *areas);

/* Own memory of zeros.  Fails: LADE_E_NOMEM, LADE_E_IO */
lade_status lade__area_new(lade__areas *areas, size_t size, lade__area **out, lade_error *err);

/*
 * Maps 'size' bytes of a block that came with a message, after it has looked at seals and size.
 * The descriptor stays the caller's.  'private': pages may be written, as the process's own.
 * Fails: LADE_E_CORRUPT, LADE_E_NOMEM, LADE_E_IO
 */
lade_status lade__area_map(lade__areas *areas, int fd, size_t size, bool private, lade__area **out,
                           lade_error *err);
void lade__area_free(lade__area *area);

/* Device memory, whose reference it takes, also on failure.  Fails: LADE_E_NOMEM */
lade_status lade__area_of(lade__areas *areas, lade__vmm *vmm, size_t size, lade__area **out,
                          lade_error *err);

/* An area of memory of others on a device, for as long as the areas.  Fails: as lade__vmm_lease();
 * LADE_E_RANGE (the allocation ends before 'size' bytes) */
lade_status lade__areas_lease(lade__areas *areas, lade__device *device, const void *data,
                              size_t size, lade__area **out, lade_error *err);

/* The area that has these bytes and can be shared; NULL: none has.  It stays while the bytes' owner
 * keeps it. */
lade__area *lade__area_find(lade__areas *areas, const void *data, size_t size);

/*
 * Makes own memory read-only, at its address, and seals it.  'writable': it may be written, also
 * meanwhile, as the process's own, and is not found any more.
 * Fails: LADE_E_STATE: others have it mapped for writing; then nothing has changed.  LADE_E_IO
 */
lade_status lade__area_seal(lade__area *area, bool writable, lade_error *err);

/* A new memfd of 'size' bytes that can be sealed, and its seals.  Fails: LADE_E_IO, LADE_E_NOMEM */
lade_status lade__memfd_new(size_t size, int *out, lade_error *err);
lade_status lade__memfd_seal(int fd, lade_error *err);

#endif
