/*
 * events.c: subscriptions to names.  The event loop watches the descriptor: no thread waits.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_node.h"

#include <stdlib.h>
#include <string.h>
#include <uv.h>

/* A subscription, and what calls back when there may be an event. */
typedef struct watch {
	uv_poll_t poll;
	napi_env env;
	napi_ref call;
	lade_share_events *events;
	bool polls; /* 'poll' is initialised */
} watch;

static void watch_closed(uv_handle_t *handle)
{
	watch *w = handle->data;

	lade_share_events_close(w->events);
	free(w);
}

/* The descriptor is closed after the loop has let it go. */
static void watch_free(void *thing)
{
	watch *w = thing;

	if (w->call)
		napi_delete_reference(w->env, w->call);
	w->call = NULL;
	if (w->polls) {
		uv_close((uv_handle_t *)&w->poll, watch_closed);
		return;
	}
	lade_share_events_close(w->events);
	free(w);
}

static const node_kind events_kind = {"subscription", {0x6c616465736861, 0x6}, watch_free};

napi_value node_events_new(napi_env env, lade_share_events *events)
{
	watch *w = calloc(1, sizeof *w);
	uv_loop_t *loop;

	if (!w) {
		lade_share_events_close(events);
		return NULL;
	}
	w->env = env;
	w->events = events;
	if (napi_get_uv_event_loop(env, &loop) == napi_ok &&
	    !uv_poll_init(loop, &w->poll, lade_share_events_fd(events))) {
		w->poll.data = w;
		w->polls = true;
	}
	return node_handle_new(env, &events_kind, w);
}

/* Calls the function once. */
static void readable(uv_poll_t *poll, int status, int what)
{
	watch *w = poll->data;
	napi_handle_scope scope;
	napi_value call, global, error;

	(void)status, (void)what;
	uv_poll_stop(poll);
	if (napi_open_handle_scope(w->env, &scope) != napi_ok)
		return;
	if (w->call && napi_get_reference_value(w->env, w->call, &call) == napi_ok &&
	    napi_get_global(w->env, &global) == napi_ok) {
		napi_delete_reference(w->env, w->call);
		w->call = NULL;
		if (napi_make_callback(w->env, NULL, global, call, 0, NULL, NULL) ==
		    napi_pending_exception)
			napi_get_and_clear_last_exception(w->env, &error);
	}
	napi_close_handle_scope(w->env, scope);
}

/* eventsWait(subscription, call): calls it once when there may be an event; the process stays for
 * that */
static napi_value events_wait(napi_env env, napi_callback_info info)
{
	napi_value args[2];
	node_handle *h;

	if (!node_arguments(env, info, 2, args) ||
	    !(h = node_handle_get(env, args[0], &events_kind)))
		return NULL;
	watch *w = h->thing;
	if (w->call)
		napi_delete_reference(env, w->call);
	w->call = NULL;
	if (!w->polls || napi_create_reference(env, args[1], 1, &w->call) != napi_ok ||
	    uv_poll_start(&w->poll, UV_READABLE | UV_DISCONNECT, readable))
		return node_throw(env, &(lade_error){LADE_E_IO, LADE_NO_OFFSET,
		                                     "the event loop cannot watch a subscription"});
	return NULL;
}

/* eventsNext(subscription): an event that is there, or null */
static napi_value events_next(napi_env env, napi_callback_info info)
{
	static const char *const whats[] = {"", "published", "removed", "lost"};
	lade_share_event event = {.struct_size = sizeof event};
	napi_value arg, out;
	node_handle *h;
	lade_error err;

	if (!node_arguments(env, info, 1, &arg) || !(h = node_handle_get(env, arg, &events_kind)))
		return NULL;
	lade_status status = lade_share_events_next(((watch *)h->thing)->events, 0, &event, &err);
	if (status == LADE_E_NOT_FOUND)
		return node_text(env, NULL);
	if (status)
		return node_throw(env, &err);
	if (napi_create_object(env, &out) != napi_ok)
		return NULL;
	node_set(env, out, "what",
	         node_text(env, (unsigned)event.what < 4 ? whats[event.what] : ""));
	node_set(env, out, "name", node_text(env, event.name));
	node_set(env, out, "version", node_number(env, event.version));
	return out;
}

const node_function node_events_functions[] = {
	{"eventsNext", events_next},
	{"eventsWait", events_wait},
	{NULL, NULL},
};
