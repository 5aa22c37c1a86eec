/*
 * api.h: what the driver's functions share: the lock, failing on command, contexts, handles, and
 * the checks that come first.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_EMULATED_API_H
#define LADE_TESTS_EMULATED_API_H

#include "gpu/driver.h"
#include "emu/device/inside.h"

#include <pthread.h>

#define API extern "C" __attribute__((visibility("default"))) int

struct context {
	int device;
};

extern pthread_mutex_t mutex;
extern context contexts[EMULATED_DEVICES];
/* Streams, events, pools, modules, functions, graphs. */
extern std::set<const void *> &handles;
extern std::vector<pool *> &pools;

struct guard {
	guard()
	{
		pthread_mutex_lock(&mutex);
	}
	~guard()
	{
		pthread_mutex_unlock(&mutex);
	}
};

/* Counts a call; its result is what the test wants of it. */
int fails(const char *name);

/* Whether the thread has a context, and its device. */
bool in_context(void);
int device_now(void);

/* Whether the thread's capture mode is CU_STREAM_CAPTURE_MODE_RELAXED. */
bool relaxed(void);

/* Between seeing that a thing is not there and making it is time for another thread to come. */
void dawdle(void);

/* NULL where there is no such stream: 0 and 1 are the legacy default stream, 2 is the thread's,
 * which all threads share here. */
stream *stream_of(void *handle, int device);

/* NULL: it is none, or none any more. */
template <typename T> static inline T *known(void *handle)
{
	return handles.count(handle) ? static_cast<T *>(handle) : NULL;
}

template <typename T> static inline void forget(T *thing)
{
	handles.erase(thing);
	delete thing;
}

static inline op operation(op_kind kind)
{
	op o = {};
	o.kind = kind;
	return o;
}

/* A call that is made to fail does nothing; one that gives something back does so, and fails
 * then. */
#define ENTER                              \
	guard locked;                      \
	do {                               \
		int rc_ = fails(__func__); \
		if (rc_)                   \
			return rc_;        \
	} while (0)

#define REFUSE(condition, code)      \
	do {                         \
		if (condition)       \
			return code; \
	} while (0)

/* On the current context's device, whose error comes first. */
#define ENTER_DEVICE                                  \
	ENTER;                                        \
	REFUSE(!in_context(), INVALID_CONTEXT);       \
	int device = device_now();                    \
	REFUSE(device_error[device], device_error[device])

/* Not while anything is captured: it might wait for, or change, what the capture depends on. */
#define UNSAFE                                                \
	do {                                                  \
		if (captures && !relaxed()) {                 \
			captures_invalidate();                \
			return CAPTURE_UNSUPPORTED;           \
		}                                             \
	} while (0)

#define STREAM(s, handle)                      \
	stream *s = stream_of(handle, device); \
	REFUSE(!s, INVALID_HANDLE)

/* Enqueuing wants the stream's own context. */
#define STREAM_HERE(s, handle) \
	STREAM(s, handle);     \
	REFUSE(s->device != device, INVALID_HANDLE)

#endif
