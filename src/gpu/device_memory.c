/*
 * device_memory.c: pinned, managed and device memory from the driver.
 *
 * Device memory comes from a pool of the library's own on each device, in stream order: nothing
 * waits, and a block that was freed serves the next request on its stream without a call to the
 * operating system.  The device's default pool is left to the rest of the process.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/device.h"

#include "base/try.h"

enum {
	HOST_PORTABLE = 1,     /* pinned for all devices, not only the current one */
	MANAGED_GLOBAL = 1,    /* any stream of any device may use it */
	POOL_THRESHOLD = 4,    /* CUmemPool_attribute: bytes kept when a stream is waited for */
	POOL_RESERVED = 5,     /* bytes taken from the device */
	POOL_USED = 7,         /* bytes in use by blocks */
	STREAM_NON_BLOCKING = 1, /* it does not wait for the default stream */
	RESERVE_SHIFT = 4,     /* a sixteenth of the device's memory is kept at most */
};

/* ---- the pool -------------------------------------------------------------------------------- */

/* Other devices reach a pool's memory, and be it by the driver's copies, only where they were given
 * access; those that cannot have it are left out. */
static lade_status share_pool(lade__device *device, void *pool, lade_error *err)
{
	lade_status status = LADE_OK;
	int count = 0;

	TRY(LADE__CU(device, cuDeviceGetCount, &count));
	for (int i = 0; i < count; i++) {
		lade__pool_access access = {.location_type = 1, .location_id = i, .flags = 3};
		int can = 0;
		if (i != device->number &&
		    !device->driver->cuDeviceCanAccessPeer(&can, i, device->handle) && can)
			TRY(LADE__CU(device, cuMemPoolSetAccess, pool, &access, 1));
	}
out:
	return status;
}

static lade_status make_pool(lade__device *device, void **pool, lade_error *err)
{
	lade__pool_props props = {
		.alloc_type = 1,
		.location_type = 1,
		.location_id = device->number,
	};
	uint64_t threshold = device->info.memory_size >> RESERVE_SHIFT;
	lade_status status;

	*pool = NULL;
	TRY(LADE__CU(device, cuMemPoolCreate, pool, &props));
	TRY(LADE__CU(device, cuMemPoolSetAttribute, *pool, POOL_THRESHOLD, &threshold));
	TRY(share_pool(device, *pool, err));
out:
	if (status != LADE_OK && *pool) {
		device->driver->cuMemPoolDestroy(*pool);
		*pool = NULL;
	}
	return status;
}

lade_status lade__device_pool(lade__device *device, void **pool, lade_error *err)
{
	lade_status status = LADE_OK;

	*pool = __atomic_load_n(&device->pool, __ATOMIC_ACQUIRE);
	if (*pool || !device->info.pools)
		return LADE_OK;
	pthread_mutex_lock(&device->mutex);
	*pool = device->pool;
	if (!*pool) {
		status = make_pool(device, pool, err);
		__atomic_store_n(&device->pool, *pool, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&device->mutex);
	return status;
}

lade_status lade__device_order(int32_t number, lade_stream *out, lade_error *err)
{
	lade__device *d;
	lade_status status = lade__device_use(number, &d, err);

	*out = NULL;
	if (status != LADE_OK)
		return status;
	*out = __atomic_load_n(&d->order, __ATOMIC_ACQUIRE);
	if (!*out) {
		pthread_mutex_lock(&d->mutex);
		if (!d->order) {
			void *stream = NULL;
			status = LADE__CU(d, cuStreamCreate, &stream, STREAM_NON_BLOCKING);
			__atomic_store_n(&d->order, status == LADE_OK ? stream : NULL,
			                 __ATOMIC_RELEASE);
		}
		*out = d->order;
		pthread_mutex_unlock(&d->mutex);
	}
	lade__device_leave(d);
	return status;
}

lade_status lade_device_memory(int32_t device, uint64_t *free_size, uint64_t *reserve_size,
                               lade_error *err)
{
	lade__device *d;
	size_t total, left;
	uint64_t reserved, used;

	if (!free_size || !reserve_size)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 free_size ? "reserve_size" : "free_size");
	*free_size = *reserve_size = 0;
	lade_status status = lade__device_use(device, &d, err);
	if (status != LADE_OK)
		return status;
	TRY(LADE__CU(d, cuMemGetInfo, &left, &total));
	*free_size = left;
	void *pool = __atomic_load_n(&d->pool, __ATOMIC_ACQUIRE);
	if (pool) {
		TRY(LADE__CU(d, cuMemPoolGetAttribute, pool, POOL_RESERVED, &reserved));
		TRY(LADE__CU(d, cuMemPoolGetAttribute, pool, POOL_USED, &used));
		*reserve_size = reserved > used ? reserved - used : 0;
	}
out:
	lade__device_leave(d);
	return status;
}

lade_status lade_device_trim(int32_t device, uint64_t keep, lade_error *err)
{
	lade__device *d;
	uint64_t used;
	lade_status status = lade__device_use(device, &d, err);

	if (status != LADE_OK)
		return status;
	void *pool = __atomic_load_n(&d->pool, __ATOMIC_ACQUIRE);
	if (pool) {
		/* The driver counts blocks in use among those to be kept. */
		TRY(LADE__CU(d, cuMemPoolGetAttribute, pool, POOL_USED, &used));
		size_t total = keep > SIZE_MAX - used ? SIZE_MAX : (size_t)(used + keep);
		TRY(LADE__CU(d, cuMemPoolTrimTo, pool, total));
	}
out:
	lade__device_leave(d);
	return status;
}

/* ---- allocators ------------------------------------------------------------------------------ */

typedef lade_status (*take_fn)(lade__device *device, size_t size, lade_stream stream, void **out);
typedef void (*give_fn)(lade__device *device, void *ptr, lade_stream stream);

/*
 * The driver aligns to a page or to 256 bytes and takes no wishes; a block that happens not to be
 * aligned as asked for goes back, so that the caller sees that there is none.
 */
static void *take(take_fn taker, give_fn giver, int32_t number, size_t size, size_t align,
                  lade_stream stream)
{
	lade__device *device;
	void *ptr = NULL;

	if (lade__device_use(number, &device, NULL) != LADE_OK)
		return NULL;
	if (taker(device, size, stream, &ptr) != LADE_OK)
		ptr = NULL;
	if (ptr && ((uintptr_t)ptr & (align - 1))) {
		giver(device, ptr, stream);
		ptr = NULL;
	}
	lade__device_leave(device);
	return ptr;
}

/* In a forked child lade__device_get() fails and the block stays: it is the parent's.  Without the
 * context it is tried all the same; the driver knows where most blocks belong. */
static void give(give_fn giver, int32_t number, void *ptr, lade_stream stream)
{
	lade__device *device;

	if (!ptr || lade__device_get(number, &device, NULL) != LADE_OK)
		return;
	bool entered = lade__device_enter(device, NULL) == LADE_OK;
	giver(device, ptr, stream);
	if (entered)
		lade__device_leave(device);
}

static lade_status pinned_take(lade__device *device, size_t size, lade_stream stream, void **out)
{
	lade_error *err = NULL;
	(void)stream;
	return LADE__CU(device, cuMemHostAlloc, out, size, HOST_PORTABLE);
}

static void pinned_give(lade__device *device, void *ptr, lade_stream stream)
{
	(void)stream;
	device->driver->cuMemFreeHost(ptr);
}

static void *pinned_alloc(void *ctx, size_t size, size_t align, lade_place place,
                          lade_stream stream)
{
	(void)ctx;
	return take(pinned_take, pinned_give, place.device, size, align, stream);
}

static void pinned_free(void *ctx, void *ptr, size_t size, size_t align, lade_place place,
                        lade_stream stream)
{
	(void)ctx, (void)size, (void)align;
	give(pinned_give, place.device, ptr, stream);
}

static lade_status managed_take(lade__device *device, size_t size, lade_stream stream, void **out)
{
	lade_error *err = NULL;
	lade__address ptr;
	(void)stream;
	if (!device->info.managed)
		return LADE_E_UNSUPPORTED;
	lade_status status = LADE__CU(device, cuMemAllocManaged, &ptr, size, MANAGED_GLOBAL);
	if (status == LADE_OK)
		*out = (void *)(uintptr_t)ptr;
	return status;
}

/* cuMemFree() waits for all work of the device, so that a stream's is over as well. */
static void plain_give(lade__device *device, void *ptr, lade_stream stream)
{
	(void)stream;
	device->driver->cuMemFree(lade__address_of(ptr));
}

static void *managed_alloc(void *ctx, size_t size, size_t align, lade_place place,
                           lade_stream stream)
{
	(void)ctx;
	return take(managed_take, plain_give, place.device, size, align, stream);
}

static void managed_free(void *ctx, void *ptr, size_t size, size_t align, lade_place place,
                         lade_stream stream)
{
	(void)ctx, (void)size, (void)align;
	give(plain_give, place.device, ptr, stream);
}

static lade_status device_take(lade__device *device, size_t size, lade_stream stream, void **out)
{
	lade_error *err = NULL;
	lade__address ptr;
	void *pool;
	lade_status status;

	TRY(lade__device_pool(device, &pool, NULL));
	if (pool)
		TRY(LADE__CU(device, cuMemAllocFromPoolAsync, &ptr, size, pool, stream));
	else
		TRY(LADE__CU(device, cuMemAlloc, &ptr, size));
	*out = (void *)(uintptr_t)ptr;
out:
	return status;
}

static void device_give(lade__device *device, void *ptr, lade_stream stream)
{
	if (device->info.pools)
		device->driver->cuMemFreeAsync(lade__address_of(ptr), stream);
	else
		plain_give(device, ptr, stream);
}

static void *device_alloc(void *ctx, size_t size, size_t align, lade_place place,
                          lade_stream stream)
{
	(void)ctx;
	return take(device_take, device_give, place.device, size, align, stream);
}

static void device_free(void *ctx, void *ptr, size_t size, size_t align, lade_place place,
                        lade_stream stream)
{
	(void)ctx, (void)size, (void)align;
	give(device_give, place.device, ptr, stream);
}

const lade_allocator lade__allocator_pinned = {NULL, pinned_alloc, pinned_free};
const lade_allocator lade__allocator_managed = {NULL, managed_alloc, managed_free};
const lade_allocator lade__allocator_device = {NULL, device_alloc, device_free};
