/*
 * codec.c: encoding and decoding of chunks in memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_node.h"

#include <stdlib.h>

#define COUNT_MAX (1u << 24)

/* A batch.  Results go to the destinations that are given, or to new arrays. */
typedef struct batch {
	node_task task;
	bool decode, given;
	lade_spec *spec;
	uint32_t count;
	lade_item *items;
	lade_segment *segments;
	lade_result *results;
	lade_array **arrays;
	uint64_t largest;
} batch;

static void batch_end(node_task *task)
{
	batch *b = (batch *)task;

	for (uint32_t i = 0; b->arrays && i < b->count; i++)
		lade_array_unref(b->arrays[i]);
	lade_spec_unref(b->spec);
	free(b->items);
	free(b->segments);
	free(b->results);
	free(b->arrays);
}

static lade_status make_room(batch *b, lade_error *err)
{
	for (uint32_t i = 0; i < b->count; i++) {
		size_t size = lade_spec_bound(b->spec, b->segments[i].size);
		if (size == SIZE_MAX)
			return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
			                 "item %u of %zu bytes is too large for the spec", i,
			                 b->segments[i].size);
		lade_status status =
			lade_array_new(size, LADE_PLACE_HOST, NULL, &b->arrays[i], err);
		if (status != LADE_OK)
			return status;
		b->items[i].dst = lade_array_span(b->arrays[i]);
	}
	return LADE_OK;
}

static lade_status encode(batch *b, const lade_batch_options *options, lade_error *err)
{
	lade_status status = b->given ? LADE_OK : make_room(b, err);

	if (status == LADE_OK)
		status = lade_encode_into(lade_engine_default(), b->spec, b->items, b->count,
		                          b->results, options, err);
	for (uint32_t i = 0; status == LADE_OK && !b->given && i < b->count; i++)
		status = lade_array_shrink(b->arrays[i], b->results[i].size, err);
	return status;
}

static lade_status decode(batch *b, const lade_batch_options *options, lade_error *err)
{
	lade_decode_new_options new_options = {.struct_size = sizeof new_options,
	                                       .spec = b->spec,
	                                       .batch = options,
	                                       .largest = b->largest};

	if (b->given)
		return lade_decode_into(lade_engine_default(), b->spec, b->items, b->count,
		                        b->results, options, err);
	return lade_decode_new(lade_engine_default(), b->items, b->count, b->arrays, &new_options,
	                       err);
}

static void batch_run(node_task *task)
{
	batch *b = (batch *)task;
	lade_batch_options options;
	lade_error *err = &task->err;

	lade_batch_options_init(&options);
	options.cancel = node_cancel_of(task);
	task->status = LADE_OK;
	if (b->given)
		task->status = lade_items_apart(b->decode ? LADE_DECODE : LADE_ENCODE, b->items,
		                                b->count, NULL, err);
	if (task->status == LADE_OK)
		task->status = b->decode ? decode(b, &options, err) : encode(b, &options, err);
}

static void unref(void *ctx)
{
	lade_array_unref(ctx);
}

/* For each item the bytes that were written, or an ArrayBuffer. */
static napi_value batch_done(napi_env env, node_task *task)
{
	batch *b = (batch *)task;
	napi_value out, one;

	if (napi_create_array_with_length(env, b->count, &out) != napi_ok)
		return NULL;
	for (uint32_t i = 0; i < b->count; i++) {
		if (b->given) {
			one = node_number(env, b->results[i].size);
		} else {
			lade_span span = lade_array_span(b->arrays[i]);
			one = node_external(env, span.data, span.size, unref, b->arrays[i]);
			b->arrays[i] = NULL;
		}
		if (!one)
			return NULL;
		napi_set_element(env, out, i, one);
	}
	return out;
}

/* Sources, and destinations if there are any, which are put into 'keep'. */
static bool items_in(napi_env env, napi_value sources, napi_value targets, napi_value keep,
                     batch *b)
{
	napi_value value;
	node_bytes bytes;

	for (uint32_t i = 0; i < b->count; i++) {
		if (napi_get_element(env, sources, i, &value) != napi_ok ||
		    !node_get_bytes(env, value, "data", &bytes))
			return false;
		b->segments[i] = (lade_segment){.data = bytes.data, .size = bytes.size};
		b->items[i] = (lade_item){.src = &b->segments[i], .src_count = 1};
		napi_set_element(env, keep, 2 * i, bytes.buffer);
		if (!b->given)
			continue;
		if (napi_get_element(env, targets, i, &value) != napi_ok ||
		    !node_get_bytes(env, value, "out", &bytes))
			return false;
		b->items[i].dst = lade_host_span(bytes.data, bytes.size);
		napi_set_element(env, keep, 2 * i + 1, bytes.buffer);
	}
	return true;
}

/* codecRun(sync, decode, spec, [data, ...], [out, ...] or null, the largest result or 0, token) */
static napi_value codec_run(napi_env env, napi_callback_info info)
{
	napi_value args[7], keep;
	uint32_t count = 0, targets = 0;
	char *text = NULL;
	lade_error err;
	batch *b;

	if (!node_arguments(env, info, 7, args) || napi_create_array(env, &keep) != napi_ok)
		return NULL;
	if (napi_get_array_length(env, args[3], &count) != napi_ok || count > COUNT_MAX)
		return node_throw_type(env, "data: want at most %u buffers", COUNT_MAX);
	bool given = !node_is_null(env, args[4]);
	if (given && (napi_get_array_length(env, args[4], &targets) != napi_ok || targets != count))
		return node_throw_type(env, "out: want %u buffers, as many as data", count);
	if (!node_get_text(env, args[2], "spec", &text))
		return NULL;
	b = node_task_new(env, sizeof *b, batch_run, batch_done, batch_end);
	if (!b) {
		free(text);
		return NULL;
	}
	b->decode = node_get_bool(env, args[1]);
	b->given = given;
	b->count = count;
	b->items = calloc(count + 1, sizeof *b->items);
	b->segments = calloc(count + 1, sizeof *b->segments);
	b->results = calloc(count + 1, sizeof *b->results);
	b->arrays = calloc(count + 1, sizeof *b->arrays);
	lade_fail(&err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %u buffers", count);
	if (!b->items || !b->segments || !b->results || !b->arrays ||
	    lade_spec_parse(NULL, text ? text : "", &b->spec, &err))
		node_throw(env, &err);
	else if (node_get_number(env, args[5], "largest", &b->largest) &&
	         node_task_cancel(env, args[6], &b->task) &&
	         items_in(env, args[3], args[4], keep, b)) {
		free(text);
		return node_task_start(env, node_get_bool(env, args[0]), &b->task, keep);
	}
	free(text);
	node_task_drop(&b->task);
	return NULL;
}

const node_function node_codec_functions[] = {{"codecRun", codec_run}, {NULL, NULL}};
