/*
 * lade_node.h: what the files of the add-on share: errors, handles, tasks, Arrow trees.
 *
 * Only the files of lib call the add-on's functions, which check their arguments all the same.
 * They run on their environment's thread, but for a task's run().
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_NODE_H
#define LADE_NODE_H

#define NAPI_VERSION 8
#include <node_api.h>

#include <lade/lade.h>

/* ---- the Arrow C data interface ------------------------------------------------------------ */

struct ArrowSchema {
	const char *format, *name, *metadata;
	int64_t flags, n_children;
	struct ArrowSchema **children, *dictionary;
	void (*release)(struct ArrowSchema *);
	void *private_data;
};

struct ArrowArray {
	int64_t length, null_count, offset, n_buffers, n_children;
	const void **buffers;
	struct ArrowArray **children, *dictionary;
	void (*release)(struct ArrowArray *);
	void *private_data;
};

/* ---- values -------------------------------------------------------------------------------- */

/* Returns NULL from a function of the add-on, with an exception pending. */
napi_value node_throw(napi_env env, const lade_error *err);
napi_value node_throw_type(napi_env env, const char *format, ...) LADE_PRINTF(2, 3);
/* The same as a value: an Error with code, and offset where there is one. */
napi_value node_error(napi_env env, const lade_error *err);

/* The arguments of a call; those left out are undefined.  False: an exception is pending. */
bool node_arguments(napi_env env, napi_callback_info info, size_t count, napi_value *out);

bool node_is_null(napi_env env, napi_value value); /* null or undefined */
/* Each throws a TypeError that names 'what'.  A number is an integer from 0 to 2^53. */
bool node_get_number(napi_env env, napi_value value, const char *what, uint64_t *out);
bool node_get_int64(napi_env env, napi_value value, const char *what, int64_t *out);
bool node_get_bool(napi_env env, napi_value value);
/* Text without NUL, to be freed; null and undefined give NULL. */
bool node_get_text(napi_env env, napi_value value, const char *what, char **out);

/* Bytes of an ArrayBuffer or a view of one, and the ArrayBuffer, which keeps them unless it is
 * transferred: Node-API has nothing that keeps or locks them then.  lib does not detach what a
 * call uses, and docs/node.md forbids transfers.  Others than plain ones are refused: their memory
 * can change or go while a thread uses it. */
typedef struct node_bytes {
	void *data;
	size_t size;
	napi_value buffer;
} node_bytes;
bool node_get_bytes(napi_env env, napi_value value, const char *what, node_bytes *out);

napi_value node_text(napi_env env, const char *text); /* NULL: null */
napi_value node_number(napi_env env, uint64_t value);
void node_set(napi_env env, napi_value object, const char *name, napi_value value);
napi_value node_get(napi_env env, napi_value object, const char *name);

/* An ArrayBuffer of 'size' bytes at 'data'; 'gone' is called on this thread when it is collected,
 * or if this fails. */
napi_value node_external(napi_env env, void *data, size_t size, void (*gone)(void *ctx), void *ctx);

/* ---- handles ------------------------------------------------------------------------------- */

/* Something of the library's that an object of JavaScript owns. */
typedef struct node_kind {
	const char *name;
	napi_type_tag tag;
	void (*free)(void *thing);
} node_kind;

/* It ends when it is closed, or its object is collected, and nothing uses it any more. */
typedef struct node_handle {
	const node_kind *kind;
	void *thing;
	size_t uses;
	bool closed, gone; /* gone: its object was collected */
} node_handle;

/* An object for 'thing', which it owns, also if this fails. */
napi_value node_handle_new(napi_env env, const node_kind *kind, void *thing);
/* NULL: it is none of that kind, or closed; an exception is pending. */
node_handle *node_handle_get(napi_env env, napi_value value, const node_kind *kind);
node_handle *node_handle_use(node_handle *handle); /* returns it */
void node_handle_unuse(node_handle *handle);

/* ---- tasks --------------------------------------------------------------------------------- */

/*
 * A call of the library's that may take time.  The first member of a struct from calloc(), which
 * has its arguments.  run() is called by a thread of the pool, or by the caller's for a ...Sync
 * function; it sets status and err.  Then, on the environment's thread, done() makes the value,
 * unless run() has failed, and end() frees what the struct has.
 */
typedef struct node_task {
	napi_async_work work;
	napi_deferred deferred;
	napi_ref kept;
	lade_status status;
	lade_error err;
	void (*run)(struct node_task *task);
	napi_value (*done)(napi_env env, struct node_task *task);
	void (*end)(struct node_task *task);
	node_handle *handle, *cancel; /* of node_handle_use(), or NULL; unused at the end */
} node_task;

/* A struct of 'size' bytes that begins with a task; NULL: an exception is pending. */
void *node_task_new(napi_env env, size_t size, void (*run)(node_task *task),
                    napi_value (*done)(napi_env env, node_task *task),
                    void (*end)(node_task *task));
/* Starts a task, or runs it.  'keep' is an object that must live until the end, or NULL.
 * Returns a promise, or the value; NULL with an exception pending. */
napi_value node_task_start(napi_env env, bool sync, node_task *task, napi_value keep);
/* Ends a task that was not started. */
void node_task_drop(node_task *task);
/* The token that cancels a task, of cancelNew(); null: none.  False: an exception is pending. */
bool node_task_cancel(napi_env env, napi_value value, node_task *task);
lade_cancel *node_cancel_of(const node_task *task);

/* ---- Arrow trees --------------------------------------------------------------------------- */

/* A schema as {format, name, flags, metadata, children, dictionary}. */
napi_value node_schema_out(napi_env env, const struct ArrowSchema *schema);
/* An array as {length, nullCount, offset, buffers, children, dictionary}, its buffers as
 * ArrayBuffers in place.  It takes the array, which is released with the last of them. */
napi_value node_array_out(napi_env env, const struct ArrowSchema *schema, struct ArrowArray *array);

/* Memory that goes all at once. */
typedef struct node_arena {
	struct node_arena_block *last;
} node_arena;
void *node_arena_alloc(node_arena *arena, size_t count, size_t size); /* zeros; NULL: none */
void node_arena_free(node_arena *arena);

/* The reverse.  Buffers are checked for their sizes, and put into the array 'keep'. */
bool node_schema_in(napi_env env, napi_value tree, node_arena *arena, struct ArrowSchema **out);
bool node_array_in(napi_env env, napi_value tree, const struct ArrowSchema *schema,
                   node_arena *arena, napi_value keep, struct ArrowArray **out);

/* Bytes of buffer 'i' of an array, up to its last row; those before it have been checked.
 * Fails: LADE_E_UNSUPPORTED (the format), LADE_E_ARG */
lade_status node_buffer_size(const struct ArrowSchema *schema, const struct ArrowArray *array,
                             size_t i, uint64_t *size, lade_error *err);

/* ---- the parts ----------------------------------------------------------------------------- */

typedef struct node_function {
	const char *name;
	napi_callback call;
} node_function;

extern const node_function node_task_functions[];
extern const node_function node_share_functions[];
extern const node_function node_events_functions[];
extern const node_function node_codec_functions[];
extern const node_function node_file_functions[];
extern const node_function node_zarr_functions[];
extern const node_function node_device_functions[];
/* A handle of a subscription, which it owns, also if this fails. */
napi_value node_events_new(napi_env env, lade_share_events *events);

#endif
