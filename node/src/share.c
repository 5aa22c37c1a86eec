/*
 * share.c: connections to a broker of shared columns, and opened versions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_node.h"

#include <stdlib.h>
#include <string.h>

static void share_free(void *thing)
{
	lade_share_close(thing);
}

static void version_free(void *thing)
{
	lade_share_version_unref(thing);
}

static const node_kind share_kind = {"connection", {0x6c616465736861, 0x1}, share_free};
static const node_kind version_kind = {"data set", {0x6c616465736861, 0x2}, version_free};

/* ---- what is asked ------------------------------------------------------------------------- */

/* The arguments and results of all calls of a connection. */
typedef struct ask {
	node_task task;
	char *name; /* of a version, a prefix, or a socket's path */
	uint64_t number;
	uint32_t timeout_ms;
	lade_share *share; /* connected */
	lade_share_open_options open;
	lade_share_version *version;
	lade_share_events *events;
	lade_share_table table;
	lade_share_published published;
	node_arena arena;
	lade_share_statistics statistics;
	struct infos {
		lade_share_info *list; /* names are copies */
		size_t count, cap;
	} infos;
} ask;

static void ask_end(node_task *task)
{
	ask *a = (ask *)task;

	lade_share_close(a->share);
	lade_share_version_unref(a->version);
	lade_share_events_close(a->events);
	node_arena_free(&a->arena);
	for (size_t i = 0; i < a->infos.count; i++)
		free((char *)(uintptr_t)a->infos.list[i].name);
	free(a->infos.list);
	free(a->name);
}

/* A call of the connection in argument 1, with the text in argument 2; NULL: an exception. */
static ask *ask_new(napi_env env, napi_value *args, const node_kind *kind, const char *what)
{
	node_handle *h = NULL;
	char *name;

	if (kind && !(h = node_handle_get(env, args[1], kind)))
		return NULL;
	if (!node_get_text(env, args[2], what, &name))
		return NULL;
	ask *a = node_task_new(env, sizeof *a, NULL, NULL, ask_end);
	if (!a) {
		free(name);
		return NULL;
	}
	a->name = name;
	if (h)
		a->task.handle = node_handle_use(h);
	return a;
}

static lade_share *share_of(const node_task *task)
{
	return task->handle->thing;
}

static napi_value start(napi_env env, napi_value *args, ask *a, void (*run)(node_task *),
                        napi_value (*done)(napi_env, node_task *))
{
	a->task.run = run;
	a->task.done = done;
	return node_task_start(env, node_get_bool(env, args[0]), &a->task, NULL);
}

static napi_value nothing(napi_env env, node_task *task)
{
	napi_value out = NULL;

	(void)task;
	napi_get_undefined(env, &out);
	return out;
}

static napi_value info_out(napi_env env, const lade_share_info *info)
{
	static const char *const places[] = {"memory", "compressed", "disk"};
	napi_value out = NULL, time;

	if (napi_create_object(env, &out) != napi_ok)
		return NULL;
	node_set(env, out, "name", node_text(env, info->name));
	node_set(env, out, "version", node_number(env, info->version));
	node_set(env, out, "rows", node_number(env, info->rows));
	node_set(env, out, "bytes", node_number(env, info->bytes));
	if (napi_create_date(env, (double)(info->time / 1000000), &time) == napi_ok)
		node_set(env, out, "time", time);
	node_set(env, out, "columns", node_number(env, info->columns));
	node_set(env, out, "batches", node_number(env, info->batches));
	node_set(env, out, "uid", node_number(env, info->uid));
	node_set(env, out, "pid", node_number(env, info->pid));
	node_set(env, out, "place", node_text(env, places[info->place]));
	return out;
}

/* ---- connections --------------------------------------------------------------------------- */

static void connect_run(node_task *task)
{
	ask *a = (ask *)task;
	lade_share_options options = {
		.struct_size = sizeof options, .path = a->name, .timeout_ms = a->timeout_ms};

	task->status = lade_share_connect(&options, &a->share, &task->err);
}

static napi_value connect_done(napi_env env, node_task *task)
{
	ask *a = (ask *)task;
	lade_share *share = a->share;

	a->share = NULL;
	return node_handle_new(env, &share_kind, share);
}

/* shareConnect(sync, undefined, path, timeout in ms) */
static napi_value share_connect(napi_env env, napi_callback_info info)
{
	napi_value args[4];
	uint64_t timeout;
	ask *a;

	if (!node_arguments(env, info, 4, args) ||
	    !node_get_number(env, args[3], "timeout", &timeout) ||
	    !(a = ask_new(env, args, NULL, "socket")))
		return NULL;
	a->timeout_ms = timeout < UINT32_MAX ? (uint32_t)timeout : UINT32_MAX;
	return start(env, args, a, connect_run, connect_done);
}

static void array_gone(void *ctx)
{
	lade_array_unref(ctx);
}

/* shareAlloc(connection, size): an ArrayBuffer */
static napi_value share_alloc(napi_env env, napi_callback_info info)
{
	napi_value args[2];
	lade_array *array;
	node_handle *h;
	uint64_t size;
	lade_error err;

	if (!node_arguments(env, info, 2, args) ||
	    !(h = node_handle_get(env, args[0], &share_kind)) ||
	    !node_get_number(env, args[1], "byteLength", &size))
		return NULL;
	if (lade_share_alloc(h->thing, (size_t)size, &array, &err))
		return node_throw(env, &err);
	return node_external(env, lade_array_span(array).data, (size_t)size, array_gone, array);
}

/* ---- publishing ---------------------------------------------------------------------------- */

static void publish_run(node_task *task)
{
	ask *a = (ask *)task;

	task->status =
		lade_share_publish(share_of(task), a->name, &a->table, &a->published, &task->err);
}

static napi_value publish_done(napi_env env, node_task *task)
{
	const lade_share_published *p = &((ask *)task)->published;
	napi_value out = NULL;

	if (napi_create_object(env, &out) != napi_ok)
		return NULL;
	node_set(env, out, "version", node_number(env, p->version));
	node_set(env, out, "shared", node_number(env, p->shared));
	node_set(env, out, "copied", node_number(env, p->copied));
	node_set(env, out, "why", node_text(env, p->why));
	return out;
}

/* The schema and the arrays of it.  Buffers are put into 'keep'. */
static bool table_in(napi_env env, napi_value schema_tree, napi_value list, napi_value keep, ask *a)
{
	struct ArrowSchema *schema;
	struct ArrowArray **arrays;
	uint32_t count = 0;
	napi_value tree;

	if (!node_schema_in(env, schema_tree, &a->arena, &schema))
		return false;
	if (napi_get_array_length(env, list, &count) != napi_ok)
		return node_throw_type(env, "batches: want an array");
	arrays = node_arena_alloc(&a->arena, count, sizeof *arrays);
	if (!arrays)
		return node_throw(
			env, &(lade_error){LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a table"});
	for (uint32_t i = 0; i < count; i++)
		if (napi_get_element(env, list, i, &tree) != napi_ok ||
		    !node_array_in(env, tree, schema, &a->arena, keep, &arrays[i]))
			return false;
	a->table = (lade_share_table){.struct_size = sizeof a->table,
	                              .schema = schema,
	                              .batches = (const struct ArrowArray *const *)arrays,
	                              .batch_count = count,
	                              .writable = 1};
	return true;
}

/* sharePublish(sync, connection, name, schema, [array, ...], copy) */
static napi_value share_publish(napi_env env, napi_callback_info info)
{
	napi_value args[6], keep;
	uint64_t copy;
	ask *a;

	if (!node_arguments(env, info, 6, args) || !node_get_number(env, args[5], "copy", &copy) ||
	    napi_create_array(env, &keep) != napi_ok ||
	    !(a = ask_new(env, args, &share_kind, "name")))
		return NULL;
	if (!table_in(env, args[3], args[4], keep, a)) {
		node_task_drop(&a->task);
		return NULL;
	}
	a->table.copy = (lade_share_copy)copy;
	a->published.struct_size = sizeof a->published;
	a->task.run = publish_run;
	a->task.done = publish_done;
	return node_task_start(env, node_get_bool(env, args[0]), &a->task, keep);
}

static void remove_run(node_task *task)
{
	ask *a = (ask *)task;

	task->status = lade_share_remove(share_of(task), a->name, a->number, &task->err);
}

/* shareRemove(sync, connection, name, version) */
static napi_value share_remove(napi_env env, napi_callback_info info)
{
	napi_value args[4];
	uint64_t version;
	ask *a;

	if (!node_arguments(env, info, 4, args) ||
	    !node_get_number(env, args[3], "version", &version) ||
	    !(a = ask_new(env, args, &share_kind, "name")))
		return NULL;
	a->number = version;
	return start(env, args, a, remove_run, nothing);
}

/* ---- opening ------------------------------------------------------------------------------- */

static void open_run(node_task *task)
{
	ask *a = (ask *)task;

	task->status = lade_share_open(share_of(task), a->name, &a->open, &a->version, &task->err);
}

static napi_value open_done(napi_env env, node_task *task)
{
	ask *a = (ask *)task;
	lade_share_version *version = a->version;

	a->version = NULL;
	return node_handle_new(env, &version_kind, version);
}

/* shareOpen(sync, connection, name, version, check, writable) */
static napi_value share_open(napi_env env, napi_callback_info info)
{
	napi_value args[6];
	uint64_t version, check;
	ask *a;

	if (!node_arguments(env, info, 6, args) ||
	    !node_get_number(env, args[3], "version", &version) ||
	    !node_get_number(env, args[4], "check", &check) ||
	    !(a = ask_new(env, args, &share_kind, "name")))
		return NULL;
	a->open = (lade_share_open_options){.struct_size = sizeof a->open,
	                                    .version = version,
	                                    .check = (lade_share_check)check,
	                                    .writable = node_get_bool(env, args[5]),
	                                    .host = true}; /* of a device's: a copy */
	return start(env, args, a, open_run, open_done);
}

/* versionInfo(version) */
static napi_value version_info(napi_env env, napi_callback_info info)
{
	napi_value arg;
	node_handle *h;

	if (!node_arguments(env, info, 1, &arg) || !(h = node_handle_get(env, arg, &version_kind)))
		return NULL;
	return info_out(env, lade_share_version_info(h->thing));
}

/* versionSchema(version) */
static napi_value version_schema(napi_env env, napi_callback_info info)
{
	napi_value arg, out;
	struct ArrowSchema schema;
	node_handle *h;
	lade_error err;

	if (!node_arguments(env, info, 1, &arg) || !(h = node_handle_get(env, arg, &version_kind)))
		return NULL;
	if (lade_share_version_schema(h->thing, &schema, &err))
		return node_throw(env, &err);
	out = node_schema_out(env, &schema);
	schema.release(&schema);
	return out;
}

/* versionArray(version, index) */
static napi_value version_array(napi_env env, napi_callback_info info)
{
	napi_value args[2], out = NULL;
	struct ArrowSchema schema;
	struct ArrowArray array;
	node_handle *h;
	uint64_t index;
	lade_error err;

	if (!node_arguments(env, info, 2, args) ||
	    !(h = node_handle_get(env, args[0], &version_kind)) ||
	    !node_get_number(env, args[1], "batch", &index))
		return NULL;
	if (lade_share_version_schema(h->thing, &schema, &err))
		return node_throw(env, &err);
	if (lade_share_version_array(h->thing, (size_t)index, &array, &err))
		node_throw(env, &err);
	else
		out = node_array_out(env, &schema, &array);
	schema.release(&schema);
	return out;
}

/* ---- names --------------------------------------------------------------------------------- */

static lade_status visit(void *ctx, const lade_share_info *info)
{
	struct infos *all = ctx;

	if (all->count == all->cap) {
		size_t cap = all->cap ? all->cap * 2 : 64;
		lade_share_info *larger = realloc(all->list, cap * sizeof *larger);
		if (!larger)
			return LADE_E_NOMEM;
		all->list = larger;
		all->cap = cap;
	}
	lade_share_info *one = &all->list[all->count];
	*one = *info;
	one->name = strdup(info->name);
	all->count += one->name != NULL;
	return one->name ? LADE_OK : LADE_E_NOMEM;
}

static void list_run(node_task *task)
{
	ask *a = (ask *)task;
	lade_share_listing listing = {
		.struct_size = sizeof listing, .prefix = a->name, .visit = visit, .ctx = &a->infos};

	lade_fail(&task->err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a list of names");
	task->status = lade_share_list(share_of(task), &listing, &task->err);
}

static napi_value list_done(napi_env env, node_task *task)
{
	struct infos *all = &((ask *)task)->infos;
	napi_value out = NULL;

	if (napi_create_array_with_length(env, all->count, &out) != napi_ok)
		return NULL;
	for (size_t i = 0; i < all->count; i++)
		napi_set_element(env, out, (uint32_t)i, info_out(env, &all->list[i]));
	return out;
}

/* shareList(sync, connection, prefix) */
static napi_value share_list(napi_env env, napi_callback_info info)
{
	napi_value args[3];
	ask *a;

	if (!node_arguments(env, info, 3, args) || !(a = ask_new(env, args, &share_kind, "prefix")))
		return NULL;
	return start(env, args, a, list_run, list_done);
}

static void statistics_run(node_task *task)
{
	ask *a = (ask *)task;

	a->statistics.struct_size = sizeof a->statistics;
	task->status = lade_share_statistics_get(share_of(task), &a->statistics, &task->err);
}

static napi_value statistics_done(napi_env env, node_task *task)
{
	const lade_share_statistics *s = &((ask *)task)->statistics;
	const struct {
		const char *name;
		uint64_t value;
	} all[] = {
		{"names", s->names},
		{"versions", s->versions},
		{"bytes", s->bytes},
		{"bytesCap", s->bytes_cap},
		{"descriptors", s->descriptors},
		{"descriptorCap", s->descriptor_cap},
		{"clients", s->clients},
		{"clientCap", s->client_cap},
		{"held", s->held},
		{"published", s->published},
		{"opened", s->opened},
		{"removed", s->removed},
		{"refused", s->refused},
		{"keeperPid", s->keeper_pid},
		{"keeperStarts", s->keeper_starts},
		{"compressed", s->compressed},
		{"disk", s->disk},
		{"diskCap", s->disk_cap},
		{"evicted", s->evicted},
		{"stored", s->stored},
		{"returned", s->returned},
		{"waiting", s->waiting},
	};
	napi_value out = NULL;

	if (napi_create_object(env, &out) != napi_ok)
		return NULL;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		node_set(env, out, all[i].name, node_number(env, all[i].value));
	return out;
}

/* shareStatistics(sync, connection) */
static napi_value share_statistics(napi_env env, napi_callback_info info)
{
	napi_value args[3];
	ask *a;

	if (!node_arguments(env, info, 3, args) || !(a = ask_new(env, args, &share_kind, "")))
		return NULL;
	return start(env, args, a, statistics_run, statistics_done);
}

static void subscribe_run(node_task *task)
{
	ask *a = (ask *)task;

	task->status = lade_share_subscribe(share_of(task), a->name, &a->events, &task->err);
}

static napi_value subscribe_done(napi_env env, node_task *task)
{
	ask *a = (ask *)task;
	lade_share_events *events = a->events;

	a->events = NULL;
	return node_events_new(env, events);
}

/* shareSubscribe(sync, connection, prefix) */
static napi_value share_subscribe(napi_env env, napi_callback_info info)
{
	napi_value args[3];
	ask *a;

	if (!node_arguments(env, info, 3, args) || !(a = ask_new(env, args, &share_kind, "prefix")))
		return NULL;
	return start(env, args, a, subscribe_run, subscribe_done);
}

/* The latest version of a name, above 'number'; 0: there is none yet. */
static void newer_run(node_task *task)
{
	ask *a = (ask *)task;
	uint64_t found = 0;

	task->status = lade_share_wait(share_of(task), a->name, a->number, 0, &found, &task->err);
	if (task->status == LADE_E_NOT_FOUND)
		task->status = LADE_OK;
	a->number = found;
}

static napi_value newer_done(napi_env env, node_task *task)
{
	return node_number(env, ((ask *)task)->number);
}

/* shareNewer(sync, connection, name, version) */
static napi_value share_newer(napi_env env, napi_callback_info info)
{
	napi_value args[4];
	uint64_t version;
	ask *a;

	if (!node_arguments(env, info, 4, args) ||
	    !node_get_number(env, args[3], "after", &version) ||
	    !(a = ask_new(env, args, &share_kind, "name")))
		return NULL;
	a->number = version;
	return start(env, args, a, newer_run, newer_done);
}

const node_function node_share_functions[] = {
	{"shareConnect", share_connect},
	{"shareAlloc", share_alloc},
	{"sharePublish", share_publish},
	{"shareRemove", share_remove},
	{"shareOpen", share_open},
	{"shareList", share_list},
	{"shareStatistics", share_statistics},
	{"shareSubscribe", share_subscribe},
	{"shareNewer", share_newer},
	{"versionInfo", version_info},
	{"versionSchema", version_schema},
	{"versionArray", version_array},
	{NULL, NULL},
};
