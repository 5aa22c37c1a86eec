/*
 * device.h: blocks of device memory that processes share, by the driver's virtual memory management
 * (VMM): each is mapped once in a process.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_SHARE_DEVICE_H
#define LADE_SHARE_DEVICE_H

#include "gpu/device.h"
#include "share/wire.h"

/* A block.  Its fields but 'refs', 'fd' and 'next' never change. */
typedef struct lade__vmm {
	struct lade__vmm *next;
	lade__device *device;
	uint64_t id;       /* random; the same in all processes */
	size_t size;       /* of the whole block */
	lade__address at;
	lade__block_handle handle; /* of memory made here; 0: it came by a descriptor */
	int fd;            /* of memory made here and published; -1: none */
	bool lease;        /* cuMemAlloc()'s memory, of this process or of another */
	lade__ipc_handle ipc;
	bool opened;       /* by that handle */
	size_t refs;
} lade__vmm;

/* What stands for a device between processes: 8 bytes of its UUID.  Numbers differ. */
uint64_t lade__vmm_key(const lade__device *device);

/* New memory of zeros, of at least 'size' bytes.
 * Fails: LADE_E_NO_DEVICE, LADE_E_UNSUPPORTED (the device cannot share), LADE_E_NOMEM,
 *        LADE_E_DEVICE */
lade_status lade__vmm_new(int32_t device, size_t size, lade__vmm **out, lade_error *err);

/*
 * The block of a DEVICE or a LEASE that came with a message; its descriptor stays the caller's.  It
 * can only be read.  One that this process has already is given out again, without a call to the
 * driver.
 * Fails: LADE_E_CORRUPT (the descriptor is no device memory, or not of that size or device),
 *        LADE_E_NO_DEVICE (this process does not have the device), LADE_E_NOMEM, LADE_E_DEVICE (the
 *        memory of a lease is gone)
 */
lade_status lade__vmm_open(const lade__block *block, lade__vmm **out, lade_error *err);

/* A lease of the allocation that has 'data', which stays the caller's.
 * Fails: LADE_E_UNSUPPORTED (it is of no cuMemAlloc()), LADE_E_DEVICE, LADE_E_NOMEM */
lade_status lade__vmm_lease(lade__device *device, const void *data, lade__vmm **out,
                            lade_error *err);

/* As it goes to others: after lade__vmm_publish(), but for a lease. */
lade__block lade__vmm_block(const lade__vmm *block);

/* Makes memory of lade__vmm_new() read-only in this process, and its descriptor.
 * Fails: LADE_E_DEVICE, LADE_E_NOMEM */
lade_status lade__vmm_publish(lade__vmm *block, lade_error *err);

/* The last one waits for the device's work, which may still read the block. */
void lade__vmm_unref(lade__vmm *block);

/* Copies between the host and a device, and wait: after nothing that is enqueued elsewhere. */
lade_status lade__device_read(lade__device *device, const void *from, size_t size, void *to,
                              lade_error *err);
lade_status lade__device_write(lade__device *device, const void *from, size_t size,
                               lade__address to, lade_error *err);

#endif
