/*
 * module.c: loads images on devices, finds kernels in them, and launches these.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/device.h"

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
static lade_status prepare(lade__device *d, const lade__kernel *kernel, void *function,
                           lade_error *err)
{
	if (kernel->shared <= SHARED_PLAIN)
		return LADE_OK;
	if (kernel->shared > d->info.block_shared_max)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "device %d: %s wants %zu bytes of shared memory, a block has %u",
		                 (int)d->number, kernel->function, kernel->shared,
		                 (unsigned)d->info.block_shared_max);
	return LADE__CU(d, cuFuncSetAttribute, function, FUNCTION_DYNAMIC_SHARED_MAX,
	                (int)kernel->shared);
}

/* The caller holds the device's mutex. */
static lade_status find_kernel(lade__device *d, const lade__kernel *kernel, void **function,
                               lade_error *err)
{
	size_t image = 0;
	lade_status status;

	while (image < LADE__IMAGES_MAX && lade__images[image].name &&
	       strcmp(lade__images[image].name, kernel->image) != 0)
		image++;
	if (image == LADE__IMAGES_MAX || !lade__images[image].name)
		return lade_fail(err, LADE_E_INTERNAL, LADE_NO_OFFSET,
		                 "there is no image %s among the library's kernels",
		                 kernel->image);
	if (!d->modules[image])
		TRY(load_image(d, image, err));
	TRY(LADE__CU(d, cuModuleGetFunction, function, d->modules[image], kernel->function));
	TRY(prepare(d, kernel, *function, err));
out:
	return status;
}

/*
 * The slot that has the kernel, or the free one for it; NULL: all slots have others.  Records of
 * one table follow each other in memory, so that their slots do, too.
 */
static lade__loaded *slot_of(lade__device *d, const lade__kernel *kernel)
{
	size_t first = (uintptr_t)kernel / sizeof *kernel;

	for (size_t i = 0; i < LADE__KERNELS_MAX; i++) {
		lade__loaded *slot = &d->kernels[(first + i) % LADE__KERNELS_MAX];
		const lade__kernel *has = __atomic_load_n(&slot->kernel, __ATOMIC_ACQUIRE);
		if (has == kernel || !has)
			return slot;
	}
	return NULL;
}

/* Another thread may give a free slot to another kernel at any time but under the mutex. */
static bool has_kernel(const lade__loaded *slot, const lade__kernel *kernel)
{
	return slot && __atomic_load_n(&slot->kernel, __ATOMIC_ACQUIRE) == kernel;
}

/* Fills a slot, under the device's mutex. */
static lade_status load_kernel(lade__device *d, const lade__kernel *kernel, lade__loaded **out,
                               lade_error *err)
{
	lade__loaded *slot;
	lade_status status = LADE_OK;

	pthread_mutex_lock(&d->mutex);
	slot = *out = slot_of(d, kernel);
	if (!slot)
		status = lade_fail(err, LADE_E_INTERNAL, LADE_NO_OFFSET,
		                   "device %d: %s would be kernel %d, and there is room for %d",
		                   (int)d->number, kernel->function, LADE__KERNELS_MAX + 1,
		                   LADE__KERNELS_MAX);
	else if (!has_kernel(slot, kernel))
		status = find_kernel(d, kernel, &slot->function, err);
	if (status == LADE_OK)
		__atomic_store_n(&slot->kernel, kernel, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&d->mutex);
	return status;
}

static lade_status loaded(lade__device *device, const lade__kernel *kernel, lade__loaded **out,
                          lade_error *err)
{
	*out = slot_of(device, kernel);
	if (has_kernel(*out, kernel))
		return LADE_OK;
	if (!lade_device_kernels())
		return lade_fail(
			err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
			"device %d: this build of the library has no kernels: it was built "
			"without nvcc",
			(int)device->number);
	if (!device->info.kernels)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "device %d: %s has compute capability %d.%d, and the kernels are "
		                 "for %s", (int)device->number, device->info.name,
		                 (int)device->info.major, (int)device->info.minor,
		                 lade_device_kernels());
	return load_kernel(device, kernel, out, err);
}

lade_status lade__kernel_get(lade__device *device, const lade__kernel *kernel, void **function,
                             lade_error *err)
{
	lade__loaded *slot;
	lade_status status = loaded(device, kernel, &slot, err);

	*function = status == LADE_OK ? slot->function : NULL;
	return status;
}

/* ---- using ----------------------------------------------------------------------------------- */

/* Whether that is possible.  Not in graphs: older drivers do not take such a launch there. */
static bool can_be_early(lade__device *device, lade_stream stream)
{
	const lade__driver *driver = device->driver;
	int capturing = 0;
	return device->info.major >= 9 && driver->cuLaunchKernelEx &&
	       driver->cuStreamIsCapturing(stream, &capturing) == 0 && !capturing;
}

static int launch_early(lade__device *device, void *function, const lade__launch *launch,
                        void **arguments)
{
	lade__launch_attribute early = {.id = LADE__CU_LAUNCH_EARLY, .value = 1};
	lade__launch_config config = {.grid_x = launch->blocks,
	                              .grid_y = 1,
	                              .grid_z = 1,
	                              .block_x = launch->threads,
	                              .block_y = 1,
	                              .block_z = 1,
	                              .shared = (unsigned)launch->shared,
	                              .stream = launch->stream,
	                              .attributes = &early,
	                              .attribute_count = 1};
	return device->driver->cuLaunchKernelEx(&config, function, arguments, NULL);
}

lade_status lade__kernel_launch(lade__device *device, const lade__kernel *kernel,
                                const lade__launch *launch, void **arguments, lade_error *err)
{
	void *function;
	lade_status status = lade__kernel_get(device, kernel, &function, err);

	if (status != LADE_OK)
		return status;
	if (launch->shared > UINT32_MAX)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%zu bytes of shared memory",
		                 launch->shared);
	bool early = launch->early && can_be_early(device, launch->stream);
	int result = early ? launch_early(device, function, launch, arguments)
	                   : device->driver->cuLaunchKernel(
				     function, launch->blocks, 1, 1, launch->threads, 1, 1,
				     (unsigned)launch->shared, launch->stream, arguments, NULL);
	if (result == 0)
		return LADE_OK;
	lade_error why = {.message = ""};
	status = lade__driver_fail(device->driver, result, device->number, "cuLaunchKernel", &why);
	return lade_fail(err, status, LADE_NO_OFFSET, "%s (%s, %u blocks of %u threads, %zu bytes)",
	                 why.message, kernel->function, launch->blocks, launch->threads,
	                 launch->shared);
}

lade_status lade__kernel_occupancy(lade__device *device, const lade__kernel *kernel,
                                   unsigned threads, size_t shared, unsigned *blocks,
                                   lade_error *err)
{
	lade__loaded *slot;
	int count = 0;
	lade_status status;

	*blocks = 0;
	TRY(loaded(device, kernel, &slot, err));
	uint32_t known = __atomic_load_n(&slot->occupancy, __ATOMIC_RELAXED);
	if (known && known >> 16 == threads && shared == kernel->shared) {
		*blocks = known & UINT16_MAX;
		return LADE_OK;
	}
	TRY(LADE__CU(device, cuOccupancyMaxActiveBlocksPerMultiprocessor, &count, slot->function,
	             (int)threads, shared));
	*blocks = count > 0 ? (unsigned)count : 0;
	if (shared == kernel->shared)
		__atomic_store_n(&slot->occupancy, threads << 16 | *blocks, __ATOMIC_RELAXED);
out:
	return status;
}

lade_status lade__kernel_look(lade__device *device, const lade__kernel *kernel,
                              lade__kernel_use *use, lade_error *err)
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
