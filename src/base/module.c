/*
 * module.c: loads images on devices, finds kernels in them, and launches these.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/device.h"

#include "base/try.h"

#include <stdio.h>
#include <string.h>

/* What a block may have without being prepared for more. */
#define SHARED_PLAIN ((size_t)48 << 10)

/* CUfunction_attribute and CUjit_option. */
enum {
	FUNCTION_THREADS_MAX = 0,
	FUNCTION_SHARED_SIZE = 1,
	FUNCTION_LOCAL_SIZE = 3,
	FUNCTION_REGISTERS = 4,
	FUNCTION_ARCH = 6,
	FUNCTION_DYNAMIC_SHARED_MAX = 8,
	JIT_ERROR_LOG = 5,
	JIT_ERROR_LOG_SIZE = 6,
};

static const struct {
	const char *image, *function;
	size_t shared;
} kernels[] = {
#define LADE_X(name, image, function, shared) {#image, #function, shared},
	LADE__KERNELS(LADE_X)
#undef LADE_X
};

const char *lade__kernel_name(lade__kernel kernel)
{
	return kernels[kernel].function;
}

/* ---- what was built -------------------------------------------------------------------------- */

const char *lade__arch_for(const char *const *archs, int major, int minor)
{
	const char *best = NULL;
	int best_value = 0, at;

	/* Machine code is worth more than intermediate code: 100000 is above all capabilities. */
	for (; *archs; archs++) {
		int value = 0;
		if (sscanf(*archs, "sm_%d", &at) == 1 && at / 10 == major && at % 10 <= minor)
			value = 100000 + at;
		else if (sscanf(*archs, "compute_%d", &at) == 1 && at <= major * 10 + minor)
			value = at;
		if (value > best_value) {
			best_value = value;
			best = *archs;
		}
	}
	return best;
}

static char archs_text[128];
static pthread_once_t archs_once = PTHREAD_ONCE_INIT;

static void join_archs(void)
{
	size_t at = 0;
	for (const char *const *a = lade__image_archs; *a; a++) {
		size_t room = sizeof archs_text - at;
		int n = snprintf(archs_text + at, room, "%s%s", at ? " " : "", *a);
		if (n < 0 || (size_t)n >= room)
			return;
		at += (size_t)n;
	}
}

const char *lade_device_kernels(void)
{
	pthread_once(&archs_once, join_archs);
	return *archs_text ? archs_text : NULL;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* One line of the driver's compiler, in place of its many. */
static void flatten(char *text)
{
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ')
			*c = ' ';
}

static lade_status load_image(lade__device *d, size_t image, lade_error *err)
{
	char log[160] = "";
	int options[] = {JIT_ERROR_LOG, JIT_ERROR_LOG_SIZE};
	void *values[] = {log, (void *)(uintptr_t)sizeof log};
	/* Loading touches nothing that a capture under way depends on; the driver takes it only
	 * from a thread that says so. */
	int mode = LADE__CAPTURE_RELAXED;
	lade_status ready = LADE__CU(d, cuThreadExchangeStreamCaptureMode, &mode);
	if (ready != LADE_OK)
		return ready;
	int result = d->driver->cuModuleLoadDataEx(&d->modules[image], lade__images[image].data, 2,
	                                           options, values);
	d->driver->cuThreadExchangeStreamCaptureMode(&mode);
	if (result == 0)
		return LADE_OK;
	lade_error why = {.message = ""};
	log[sizeof log - 1] = 0;
	flatten(log);
	d->modules[image] = NULL;
	lade_status status = lade__driver_fail(d->driver, result, d->number, "cuModuleLoadDataEx",
	                                       &why);
	return lade_fail(err, status, LADE_NO_OFFSET, "%s (image %s, for %s)%s%s", why.message,
	                 lade__images[image].name, d->info.kernels, *log ? ": " : "", log);
}

/* Room that is asked for must be there: the driver's own message does not say how much there is. */
static lade_status prepare(lade__device *d, lade__kernel kernel, void *function, lade_error *err)
{
	size_t shared = kernels[kernel].shared;

	if (shared <= SHARED_PLAIN)
		return LADE_OK;
	if (shared > d->info.block_shared_max)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "device %d: %s wants %zu bytes of shared memory, a block has %u",
		                 (int)d->number, kernels[kernel].function, shared,
		                 (unsigned)d->info.block_shared_max);
	return LADE__CU(d, cuFuncSetAttribute, function, FUNCTION_DYNAMIC_SHARED_MAX, (int)shared);
}

/* The caller holds the device's mutex. */
static lade_status find_kernel(lade__device *d, lade__kernel kernel, void **function,
                               lade_error *err)
{
	const char *name = kernels[kernel].image;
	size_t image = 0;
	lade_status status;

	while (image < LADE__IMAGES_MAX && lade__images[image].name &&
	       strcmp(lade__images[image].name, name) != 0)
		image++;
	if (image == LADE__IMAGES_MAX || !lade__images[image].name)
		return lade_fail(err, LADE_E_INTERNAL, LADE_NO_OFFSET,
		                 "there is no image %s among the library's kernels", name);
	if (!d->modules[image])
		TRY(load_image(d, image, err));
	TRY(LADE__CU(d, cuModuleGetFunction, function, d->modules[image],
	             kernels[kernel].function));
	TRY(prepare(d, kernel, *function, err));
out:
	return status;
}

lade_status lade__kernel_get(lade__device *device, lade__kernel kernel, void **function,
                             lade_error *err)
{
	void *found = __atomic_load_n(&device->functions[kernel], __ATOMIC_ACQUIRE);
	lade_status status = LADE_OK;

	*function = found;
	if (found)
		return LADE_OK;
	if (!lade_device_kernels())
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "device %d: this build of the library has no kernels: nvcc was "
		                 "not there", (int)device->number);
	if (!device->info.kernels)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "device %d: %s has compute capability %d.%d, and the kernels are "
		                 "for %s", (int)device->number, device->info.name,
		                 (int)device->info.major, (int)device->info.minor,
		                 lade_device_kernels());
	pthread_mutex_lock(&device->mutex);
	found = device->functions[kernel];
	if (!found)
		status = find_kernel(device, kernel, &found, err);
	if (status == LADE_OK)
		__atomic_store_n(&device->functions[kernel], found, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&device->mutex);
	*function = status == LADE_OK ? found : NULL;
	return status;
}

/* ---- using ----------------------------------------------------------------------------------- */

lade_status lade__kernel_launch(lade__device *device, lade__kernel kernel,
                                const lade__launch *launch, void **arguments, lade_error *err)
{
	void *function;
	lade_status status = lade__kernel_get(device, kernel, &function, err);

	if (status != LADE_OK)
		return status;
	if (launch->shared > UINT32_MAX)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%zu bytes of shared memory",
		                 launch->shared);
	int result = device->driver->cuLaunchKernel(function, launch->blocks, 1, 1, launch->threads,
	                                            1, 1, (unsigned)launch->shared,
	                                            launch->stream, arguments, NULL);
	if (result == 0)
		return LADE_OK;
	lade_error why = {.message = ""};
	status = lade__driver_fail(device->driver, result, device->number, "cuLaunchKernel", &why);
	return lade_fail(err, status, LADE_NO_OFFSET, "%s (%s, %u blocks of %u threads, %zu bytes)",
	                 why.message, kernels[kernel].function, launch->blocks, launch->threads,
	                 launch->shared);
}

lade_status lade__kernel_occupancy(lade__device *device, lade__kernel kernel, unsigned threads,
                                   size_t shared, unsigned *blocks, lade_error *err)
{
	void *function;
	int count = 0;
	lade_status status;

	uint32_t known = __atomic_load_n(&device->occupancy[kernel], __ATOMIC_RELAXED);
	*blocks = known & UINT16_MAX;
	if (known && known >> 16 == threads && shared == kernels[kernel].shared)
		return LADE_OK;
	*blocks = 0;
	TRY(lade__kernel_get(device, kernel, &function, err));
	TRY(LADE__CU(device, cuOccupancyMaxActiveBlocksPerMultiprocessor, &count, function,
	             (int)threads, shared));
	*blocks = count > 0 ? (unsigned)count : 0;
	if (shared == kernels[kernel].shared)
		__atomic_store_n(&device->occupancy[kernel], threads << 16 | *blocks,
		                 __ATOMIC_RELAXED);
out:
	return status;
}

lade_status lade__kernel_look(lade__device *device, lade__kernel kernel, lade__kernel_use *use,
                              lade_error *err)
{
	void *f;
	lade_status status;

	memset(use, 0, sizeof *use);
	TRY(lade__kernel_get(device, kernel, &f, err));
	TRY(LADE__CU(device, cuFuncGetAttribute, &use->registers, FUNCTION_REGISTERS, f));
	TRY(LADE__CU(device, cuFuncGetAttribute, &use->local_size, FUNCTION_LOCAL_SIZE, f));
	TRY(LADE__CU(device, cuFuncGetAttribute, &use->shared_size, FUNCTION_SHARED_SIZE, f));
	TRY(LADE__CU(device, cuFuncGetAttribute, &use->threads_max, FUNCTION_THREADS_MAX, f));
	TRY(LADE__CU(device, cuFuncGetAttribute, &use->arch, FUNCTION_ARCH, f));
out:
	return status;
}
