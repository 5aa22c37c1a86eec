/*
 * task.c: handles, and calls that run on another thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_node.h"

#include <stdlib.h>

/* ---- handles ------------------------------------------------------------------------------- */

/* The bytes that the collector is told of for a handle, so that it does not let thousands of maps
 * and descriptors pile up.  More would make it run at each open; it sees ArrayBuffers by itself. */
#define PRESSURE 65536

static void let_go(node_handle *h)
{
	if (h->uses)
		return;
	if (h->closed && h->thing)
		h->kind->free(h->thing);
	if (h->closed)
		h->thing = NULL;
	if (h->gone)
		free(h);
}

static void handle_close(napi_env env, node_handle *h)
{
	int64_t now;

	if (!h->closed)
		napi_adjust_external_memory(env, -PRESSURE, &now);
	h->closed = true;
	let_go(h);
}

static void handle_gone(napi_env env, void *data, void *hint)
{
	(void)hint;
	((node_handle *)data)->gone = true;
	handle_close(env, data);
}

napi_value node_handle_new(napi_env env, const node_kind *kind, void *thing)
{
	node_handle *h = malloc(sizeof *h);
	napi_value object = NULL;
	int64_t now;

	if (h)
		*h = (node_handle){.kind = kind, .thing = thing};
	if (!h || napi_create_object(env, &object) != napi_ok ||
	    napi_type_tag_object(env, object, &kind->tag) != napi_ok ||
	    napi_wrap(env, object, h, handle_gone, NULL, NULL) != napi_ok) {
		kind->free(thing);
		free(h);
		return NULL;
	}
	napi_adjust_external_memory(env, PRESSURE, &now);
	return object;
}

node_handle *node_handle_get(napi_env env, napi_value value, const node_kind *kind)
{
	bool tagged = false;
	void *h = NULL;

	if (napi_check_object_type_tag(env, value, &kind->tag, &tagged) != napi_ok || !tagged ||
	    napi_unwrap(env, value, &h) != napi_ok) {
		node_throw_type(env, "want a handle of a %s", kind->name);
		return NULL;
	}
	if (((node_handle *)h)->closed) {
		lade_error err;
		lade_fail(&err, LADE_E_STATE, LADE_NO_OFFSET, "the %s is closed", kind->name);
		node_throw(env, &err);
		return NULL;
	}
	return h;
}

node_handle *node_handle_use(node_handle *h)
{
	h->uses++;
	return h;
}

void node_handle_unuse(node_handle *h)
{
	h->uses--;
	let_go(h);
}

/* close(handle) */
static napi_value node_close(napi_env env, napi_callback_info info)
{
	napi_value object;
	void *h = NULL;

	/* Only handles are wrapped here. */
	if (node_arguments(env, info, 1, &object) && napi_unwrap(env, object, &h) == napi_ok)
		handle_close(env, h);
	return NULL;
}

/* ---- tasks --------------------------------------------------------------------------------- */

void *node_task_new(napi_env env, size_t size, void (*run)(node_task *),
                    napi_value (*done)(napi_env, node_task *), void (*end)(node_task *))
{
	node_task *t = calloc(1, size);

	if (!t) {
		node_throw(env,
		           &(lade_error){LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a call"});
		return NULL;
	}
	t->run = run;
	t->done = done;
	t->end = end;
	return t;
}

static void task_end(napi_env env, node_task *t)
{
	if (t->work)
		napi_delete_async_work(env, t->work);
	if (t->kept)
		napi_delete_reference(env, t->kept);
	node_task_drop(t);
}

void node_task_drop(node_task *t)
{
	if (t->end)
		t->end(t);
	if (t->handle)
		node_handle_unuse(t->handle);
	if (t->cancel)
		node_handle_unuse(t->cancel);
	free(t);
}

static void execute(napi_env env, void *data)
{
	node_task *t = data;

	(void)env;
	t->run(t);
}

/* The value, or NULL with an exception pending. */
static napi_value result(napi_env env, node_task *t)
{
	return t->status == LADE_OK ? t->done(env, t) : node_throw(env, &t->err);
}

static void complete(napi_env env, napi_status status, void *data)
{
	node_task *t = data;
	napi_value value = NULL, error = NULL;
	napi_handle_scope scope;

	if (napi_open_handle_scope(env, &scope) == napi_ok) {
		if (status == napi_cancelled)
			t->status = lade_fail(&t->err, LADE_E_CANCELLED, LADE_NO_OFFSET,
			                      "the environment ended before the call began");
		value = result(env, t);
		if (value) {
			napi_resolve_deferred(env, t->deferred, value);
		} else if (napi_get_and_clear_last_exception(env, &error) == napi_ok) {
			napi_reject_deferred(env, t->deferred, error);
		}
		napi_close_handle_scope(env, scope);
	}
	task_end(env, t);
}

napi_value node_task_start(napi_env env, bool sync, node_task *t, napi_value keep)
{
	napi_value out = NULL, name = node_text(env, "liblade");

	if (sync) {
		t->run(t);
		out = result(env, t);
		task_end(env, t);
		return out;
	}
	if ((keep && napi_create_reference(env, keep, 1, &t->kept) != napi_ok) ||
	    napi_create_promise(env, &t->deferred, &out) != napi_ok ||
	    napi_create_async_work(env, NULL, name, execute, complete, t, &t->work) != napi_ok ||
	    napi_queue_async_work(env, t->work) != napi_ok) {
		task_end(env, t);
		return node_throw(
			env, &(lade_error){LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a call"});
	}
	return out;
}

/* ---- tokens -------------------------------------------------------------------------------- */

static void cancel_free(void *thing)
{
	lade_cancel_free(thing);
}

static const node_kind cancel_kind = {"token", {0x6c616465736861, 0x3}, cancel_free};

/* cancelNew() */
static napi_value cancel_new(napi_env env, napi_callback_info info)
{
	lade_cancel *cancel;
	lade_error err;

	(void)info;
	if (lade_cancel_new(NULL, NULL, &cancel, &err))
		return node_throw(env, &err);
	return node_handle_new(env, &cancel_kind, cancel);
}

/* cancelSet(token) */
static napi_value cancel_set(napi_env env, napi_callback_info info)
{
	napi_value arg;
	node_handle *h;

	if (node_arguments(env, info, 1, &arg) && (h = node_handle_get(env, arg, &cancel_kind)))
		lade_cancel_set(h->thing);
	return NULL;
}

bool node_task_cancel(napi_env env, napi_value value, node_task *t)
{
	node_handle *h = NULL;

	if (!node_is_null(env, value) && !(h = node_handle_get(env, value, &cancel_kind)))
		return false;
	if (h)
		t->cancel = node_handle_use(h);
	return true;
}

lade_cancel *node_cancel_of(const node_task *t)
{
	return t->cancel ? t->cancel->thing : NULL;
}

const node_function node_task_functions[] = {
	{"close", node_close},
	{"cancelNew", cancel_new},
	{"cancelSet", cancel_set},
	{NULL, NULL},
};
