/*
 * driver.cc: the driver's functions for devices, contexts, streams and events, as gpu/driver.h
 * declares them.  They check what a driver checks when it is called; what goes wrong later is a
 * device's error, given by every call on that device from then on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "emu/device/api.h"

#include <emu/emu.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void recover(void);

__attribute__((visibility("default"))) emulated_state emulated = {
	.seed = EMULATED_LAZY,
	.protect = 1,
	.devices = EMULATED_DEVICES,
	.device = {{9, 0, 1, 1}, {9, 0, 1, 1}},
	.recover = recover,
};

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
context contexts[EMULATED_DEVICES] = {{0}, {1}};
static thread_local context *stack[16];
static thread_local int depth;
static thread_local int capture_mode; /* CUstreamCaptureMode */
static stream *defaults[EMULATED_DEVICES][2]; /* the legacy one, and the one of threads */
std::set<const void *> &handles = *new std::set<const void *>;
std::vector<pool *> &pools = *new std::vector<pool *>;

static void recover(void)
{
	guard locked;
	/* What was enqueued and not waited for does nothing any more: its memory may be gone. */
	for (int i = 0; i < EMULATED_DEVICES; i++)
		if (device_error[i])
			device_drain(i);
	memset(device_error, 0, sizeof(device_error));
	*emulated.message = 0;
}

__attribute__((constructor)) static void begin(void)
{
	const char *seed = getenv("LADE_EMULATED_SEED");
	if (seed)
		emulated.seed = strtoull(seed, NULL, 0);
}

int fails(const char *name)
{
	if (++emulated.calls != emulated.fail_at)
		return OK;
	emulated.failed = name;
	return emulated.fail_code;
}

bool in_context(void)
{
	return depth > 0;
}

bool relaxed(void)
{
	return capture_mode == 2;
}

int device_now(void)
{
	return stack[depth - 1]->device;
}

void dawdle(void)
{
	timespec t = {0, 500000};
	pthread_mutex_unlock(&mutex);
	nanosleep(&t, NULL);
	pthread_mutex_lock(&mutex);
}

static stream *make_stream(int device, bool legacy, bool blocking)
{
	stream *s = new stream{};
	s->device = device;
	s->legacy = legacy;
	s->blocking = blocking;
	streams.push_back(s);
	return s;
}

/* A real driver need not notice: it crashes, or takes another stream for it. */
static stream *living(void *handle)
{
	if (gone_streams.count(handle) && !*emulated.message) {
		snprintf(emulated.message, sizeof(emulated.message),
		         "stream %p is used after it was destroyed", handle);
		fprintf(stderr, "emulated device: %s\n", emulated.message);
	}
	return known<stream>(handle);
}

stream *stream_of(void *handle, int device)
{
	uintptr_t number = (uintptr_t)handle;
	if (number > 2)
		return living(handle);
	bool legacy = number < 2;
	stream **s = &defaults[device][legacy ? 0 : 1];
	if (!*s)
		*s = make_stream(device, legacy, !legacy);
	return *s;
}

/* ---- results --------------------------------------------------------------------------------- */

static const struct {
	int code;
	const char *name, *text;
} results[] = {
	{OK, "CUDA_SUCCESS", "no error"},
	{INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	{OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{LADE__CU_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
	{INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
	{INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
	{INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
	{INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
	{NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
	{NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
	{ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
	{LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out"},
	{MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
	{LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
	{NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
	{CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
	 "operation not permitted when stream is capturing"},
	{CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
	 "operation failed due to a previous error during capture"},
	{CAPTURE_MERGE, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "two captures would be merged"},
	{CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "not begun in this stream"},
	{CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "a stream was not joined"},
	{CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
	 "dependency created on uncaptured work in another stream"},
	{CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
	 "operation would make the legacy stream depend on a capturing blocking stream"},
	{CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT",
	 "operation not permitted on an event last recorded in a capturing stream"},
	{UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

API cuGetErrorName(int result, const char **text)
{
	for (const auto &r : results)
		if (r.code == result) {
			*text = r.name;
			return OK;
		}
	*text = NULL;
	return INVALID_VALUE;
}

API cuGetErrorString(int result, const char **text)
{
	for (const auto &r : results)
		if (r.code == result) {
			*text = r.text;
			return OK;
		}
	*text = NULL;
	return INVALID_VALUE;
}

/* ---- devices --------------------------------------------------------------------------------- */

API cuInit(unsigned flags)
{
	ENTER;
	emulated.checked = emu_checked();
	return flags ? INVALID_VALUE : OK;
}

API cuDriverGetVersion(int *version)
{
	ENTER;
	*version = 13000;
	return OK;
}

API cuDeviceGetCount(int *count)
{
	ENTER;
	*count = emulated.devices;
	return OK;
}

API cuDeviceGet(int *device, int ordinal)
{
	ENTER;
	REFUSE(ordinal < 0 || ordinal >= emulated.devices, INVALID_DEVICE);
	*device = ordinal;
	return OK;
}

API cuDeviceGetName(char *name, int size, int device)
{
	ENTER;
	snprintf(name, (size_t)size, "emulated %d", device);
	return OK;
}

API cuDeviceGetUuid_v2(void *uuid, int device)
{
	ENTER;
	memset(uuid, device + 1, 16);
	return OK;
}

API cuDeviceGetPCIBusId(char *text, int size, int device)
{
	ENTER;
	snprintf(text, (size_t)size, "0000:0%d:00.0", device);
	return OK;
}

API cuDeviceTotalMem_v2(size_t *size, int)
{
	ENTER;
	*size = DEVICE_MEMORY;
	return OK;
}

/* Few SMs, so that grids which fill the device are small. */
API cuDeviceGetAttribute(int *value, int attribute, int device)
{
	ENTER;
	REFUSE(device < 0 || device >= EMULATED_DEVICES, INVALID_DEVICE);
	const int values[][2] = {
		{1, 1024},     /* threads of a block */
		{8, 48 << 10}, /* shared memory of a block */
		{10, 32},      /* lanes of a warp */
		{13, 1000000}, /* kHz */
		{16, 2},       /* SMs */
		{36, 1000000}, /* kHz of memory */
		{37, 1024},    /* bits of its bus */
		{38, 1 << 20}, /* L2 */
		{39, 2048},    /* threads of an SM */
		{40, 1},       /* copy engines */
		{41, 1},       /* unified addresses */
		{75, emulated.device[device].major},
		{76, emulated.device[device].minor},
		{81, 228 << 10}, /* shared memory of an SM */
		{82, 65536},     /* registers of an SM */
		{83, emulated.device[device].managed},
		{88, 0}, /* pageable memory from kernels */
		{89, 1}, /* managed memory from both sides at once */
		{97, 227 << 10}, /* shared memory of a block that asks for it */
		{100, 0}, /* the host's page tables for that */
		{102, 1}, /* memory by cuMemCreate() */
		{103, 1}, /* and descriptors of it */
		{115, emulated.device[device].pools},
	};
	for (const auto &v : values)
		if (v[0] == attribute) {
			*value = v[1];
			return OK;
		}
	return INVALID_VALUE;
}

/* ---- contexts -------------------------------------------------------------------------------- */

API cuDevicePrimaryCtxRetain(void **out, int device)
{
	ENTER;
	REFUSE(device < 0 || device >= EMULATED_DEVICES, INVALID_DEVICE);
	dawdle();
	emulated.retained++;
	*out = &contexts[device];
	return OK;
}

API cuCtxPushCurrent_v2(void *handle)
{
	ENTER;
	REFUSE(depth == 16, UNKNOWN);
	REFUSE(handle != &contexts[0] && handle != &contexts[1], INVALID_CONTEXT);
	stack[depth++] = static_cast<context *>(handle);
	emulated.pushed++;
	return OK;
}

API cuCtxPopCurrent_v2(void **out)
{
	guard locked;
	int rc = fails(__func__);
	REFUSE(!in_context(), INVALID_CONTEXT);
	*out = stack[--depth];
	emulated.pushed--;
	return rc;
}

API cuCtxGetCurrent(void **out)
{
	guard locked;
	*out = in_context() ? stack[depth - 1] : NULL;
	return OK;
}

/* As cuCtxGetCurrent() it is not used by the library, but by its tests. */
API cuCtxSynchronize(void)
{
	ENTER_DEVICE;
	UNSAFE;
	emulated.syncs++;
	device_drain(device);
	return device_error[device];
}

/* ---- streams --------------------------------------------------------------------------------- */

API cuThreadExchangeStreamCaptureMode(int *mode)
{
	ENTER;
	REFUSE(*mode < 0 || *mode > 2, INVALID_VALUE);
	int before = capture_mode;
	capture_mode = *mode;
	*mode = before;
	return OK;
}

API cuStreamCreate(void **out, unsigned flags)
{
	ENTER_DEVICE;
	REFUSE(flags > 1, INVALID_VALUE);
	stream *s = make_stream(device, false, flags == 0);
	handles.insert(s);
	emulated.streams++;
	*out = s;
	return OK;
}

/* Priorities are hints, and not taken. */
API cuStreamCreateWithPriority(void **out, unsigned flags, int)
{
	return cuStreamCreate(out, flags);
}

API cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	ENTER_DEVICE;
	*least = 0;
	*greatest = -5;
	return OK;
}

/* What is left in it will run yet, when something else depends on it. */
API cuStreamDestroy_v2(void *handle)
{
	guard locked;
	int rc = fails(__func__);
	stream *s = living(handle);
	REFUSE(!s, INVALID_HANDLE);
	handles.erase(s);
	emulated.streams--;
	s->dead = true;
	gone_streams.insert(s);
	if (s->of)
		s->of->invalid = true;
	if (s->ops.empty() && !s->of) {
		for (size_t i = 0; i < streams.size(); i++)
			if (streams[i] == s) {
				streams.erase(streams.begin() + (ptrdiff_t)i);
				break;
			}
	}
	return rc;
}

/* When work has been waited for, a pool keeps no more than its threshold. */
static void trim_pool(int device)
{
	for (pool *p : pools)
		if (p->device == device && p->reserved > p->threshold && p->reserved > p->used)
			p->reserved = p->used > p->threshold ? p->used : p->threshold;
}

API cuStreamSynchronize(void *handle)
{
	ENTER_DEVICE;
	STREAM(s, handle);
	UNSAFE;
	emulated.syncs++;
	stream_drain(s);
	trim_pool(s->device);
	return device_error[s->device];
}

API cuStreamQuery(void *handle)
{
	ENTER_DEVICE;
	STREAM(s, handle);
	UNSAFE;
	bool ready = s->ops.empty();
	stream_step(s);
	REFUSE(device_error[s->device], device_error[s->device]);
	return ready ? OK : NOT_READY;
}

API cuStreamIsCapturing(void *handle, int *capturing)
{
	ENTER_DEVICE;
	STREAM(s, handle);
	*capturing = !s->of ? 0 : s->of->invalid ? 2 : 1;
	return OK;
}

API cuStreamGetCtx(void *handle, void **out)
{
	ENTER;
	stream *s = (uintptr_t)handle > 2 ? living(handle) : NULL;
	REFUSE((uintptr_t)handle > 2 && !s, INVALID_HANDLE);
	REFUSE(!s && !in_context(), INVALID_CONTEXT);
	*out = &contexts[s ? s->device : device_now()];
	return OK;
}

/* ---- events ---------------------------------------------------------------------------------- */

API cuEventCreate(void **out, unsigned)
{
	ENTER_DEVICE;
	event *e = new event{};
	e->device = device;
	events.push_back(e);
	handles.insert(e);
	emulated.events++;
	*out = e;
	return OK;
}

/* It stays while streams may know of it: until the process ends. */
API cuEventDestroy_v2(void *handle)
{
	guard locked;
	int rc = fails(__func__);
	REFUSE(!handles.erase(handle), INVALID_HANDLE);
	emulated.events--;
	return rc;
}

#define EVENT(e, handle)               \
	event *e = known<event>(handle); \
	REFUSE(!e, INVALID_HANDLE)

API cuEventRecord(void *handle, void *to)
{
	ENTER_DEVICE;
	EVENT(e, handle);
	STREAM(s, to);
	REFUSE(e->device != s->device, INVALID_HANDLE);
	return stream_record(s, e);
}

/* Behind what all streams of the device have now. */
API cuCtxRecordEvent(void *, void *handle)
{
	ENTER_DEVICE;
	EVENT(e, handle);
	REFUSE(captures, CAPTURE_UNSUPPORTED);
	stream *all = make_stream(device, false, false);
	std::vector<stream *> now = streams; /* some may run, and end, meanwhile */
	for (stream *s : now) {
		if (s == all || s->device != device || s->ops.empty())
			continue;
		event *one = new event{};
		one->device = device;
		events.push_back(one);
		stream_record(s, one);
		stream_wait(all, one);
	}
	all->dead = true;
	return stream_record(all, e);
}

API cuStreamWaitEvent(void *to, void *handle, unsigned)
{
	ENTER_DEVICE;
	EVENT(e, handle);
	STREAM(s, to);
	return stream_wait(s, e);
}

API cuEventSynchronize(void *handle)
{
	ENTER_DEVICE;
	EVENT(e, handle);
	UNSAFE;
	REFUSE(e->of, CAPTURED_EVENT);
	emulated.syncs++;
	event_drain(e);
	return device_error[e->device];
}

API cuEventQuery(void *handle)
{
	ENTER_DEVICE;
	EVENT(e, handle);
	UNSAFE;
	REFUSE(e->of, CAPTURED_EVENT);
	bool ready = !e->awaited.count(e->recorded);
	event_step(e);
	REFUSE(device_error[e->device], device_error[e->device]);
	return ready ? OK : NOT_READY;
}

API cuEventElapsedTime(float *ms, void *start, void *end)
{
	ENTER_DEVICE;
	EVENT(from, start);
	EVENT(to, end);
	REFUSE(!from->recorded || !to->recorded, INVALID_HANDLE);
	REFUSE(from->awaited.count(from->recorded) || to->awaited.count(to->recorded), NOT_READY);
	*ms = (float)(1e3 * (to->time - from->time));
	return OK;
}
