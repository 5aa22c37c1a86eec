/*
 * home.c: streams that somebody else owns: their handles are used during a call, and never after.
 *
 * The owner of a stream may end it as soon as a call is over, and a driver that is given the handle
 * of a stream that has ended crashes the process.  So what a call leaves behind, arrays and
 * results, is never on such a stream, but on its home: a stream of our own that goes on behind all
 * that the call enqueued.  Whoever waits, copies, gives memory back or follows later does so there.
 * A default stream does not end, and what CudaStream.make_new() made is kept alive: these are their
 * own homes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_py.h"

/* Homes of different streams wait for each other's work, so each has its own, up to so many. */
#define HOMES_MOST 64

/* Handles up to this one are default streams. */
#define SPECIAL_MOST 2

struct py_homes {
	pthread_mutex_t mutex;
	size_t count;
	struct {
		int32_t device;
		uintptr_t handle;
		lade_stream own;
	} home[HOMES_MOST];
};

struct py_homes *py_homes_new(void)
{
	struct py_homes *homes = calloc(1, sizeof(*homes));

	if (homes)
		pthread_mutex_init(&homes->mutex, NULL);
	return homes;
}

void py_homes_free(struct py_homes *homes)
{
	if (!homes)
		return;
	for (size_t i = 0; i < homes->count; i++)
		lade_stream_free(homes->home[i].device, homes->home[i].own);
	pthread_mutex_destroy(&homes->mutex);
	free(homes);
}

bool py_stream_lives(uintptr_t stream, PyObject *keeper)
{
	return stream <= SPECIAL_MOST || (keeper && PyCapsule_CheckExact(keeper));
}

bool py_is_home(py_state *st, uintptr_t stream)
{
	struct py_homes *homes = st->homes;
	bool found = false;

	pthread_mutex_lock(&homes->mutex);
	for (size_t i = 0; i < homes->count && !found; i++)
		found = (uintptr_t)homes->home[i].own == stream;
	pthread_mutex_unlock(&homes->mutex);
	return found;
}

/* Finds or makes one; of many streams some share one.  The default stream, which waits for all,
 * where there is none. */
static uintptr_t find(struct py_homes *homes, int32_t device, uintptr_t stream)
{
	uintptr_t other = 0;
	lade_stream own;
	size_t at = 0;

	for (; at < homes->count; at++) {
		if (homes->home[at].device != device)
			continue;
		if (homes->home[at].handle == stream)
			return (uintptr_t)homes->home[at].own;
		other = (uintptr_t)homes->home[at].own;
	}
	if (at == HOMES_MOST || lade_stream_new(device, &own, NULL))
		return other;
	homes->home[at].device = device;
	homes->home[at].handle = stream;
	homes->home[at].own = own;
	homes->count++;
	return (uintptr_t)own;
}

uintptr_t py_home(py_state *st, int32_t device, uintptr_t stream, PyObject *keeper)
{
	uintptr_t own;

	if (py_stream_lives(stream, keeper) || py_is_home(st, stream))
		return stream;
	pthread_mutex_lock(&st->homes->mutex);
	own = find(st->homes, device, stream);
	pthread_mutex_unlock(&st->homes->mutex);
	return own;
}

bool py_go_home(py_state *st, int32_t device, uintptr_t *stream, PyObject *keeper)
{
	uintptr_t home = py_home(st, device, *stream, keeper);
	bool ok = home == *stream || py_follow(st, device, home, *stream);

	*stream = home;
	return ok;
}

void py_home_after_all(py_state *st, int32_t device, uintptr_t home)
{
	lade_mark *mark = NULL;

	if (home > SPECIAL_MOST && py_is_home(st, home) &&
	    !lade_mark_new(device, LADE_ALL_STREAMS, &mark, NULL))
		lade_stream_follow(mark, (lade_stream)home, NULL);
	lade_mark_free(mark);
}
