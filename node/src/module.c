/*
 * module.c: the functions of the add-on.  It has no state: each environment, of a worker too, gets
 * its own objects.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_node.h"

#include <stdlib.h>

/* detach(buffer): its memory goes when nobody else uses it. */
static napi_value detach(napi_env env, napi_callback_info info)
{
	napi_value buffer;

	if (node_arguments(env, info, 1, &buffer))
		napi_detach_arraybuffer(env, buffer);
	return NULL;
}

static void largest_gone(napi_env env, void *data, void *hint)
{
	(void)env, (void)hint;
	free(data);
}

/* setLargest(size): the most bytes that an ArrayBuffer has */
static napi_value set_largest(napi_env env, napi_callback_info info)
{
	uint64_t *largest = malloc(sizeof *largest);
	napi_value size;

	if (!largest || !node_arguments(env, info, 1, &size) ||
	    !node_get_number(env, size, "size", largest) ||
	    napi_set_instance_data(env, largest, largest_gone, NULL) != napi_ok)
		free(largest);
	return NULL;
}

static const node_function general[] = {
	{"detach", detach}, {"setLargest", set_largest}, {NULL, NULL}};

NAPI_MODULE_INIT()
{
	const node_function *const parts[] = {general,
	                                      node_task_functions,
	                                      node_share_functions,
	                                      node_events_functions,
	                                      node_codec_functions,
	                                      node_file_functions,
	                                      node_zarr_functions,
	                                      node_device_functions};

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		for (const node_function *f = parts[i]; f->name; f++) {
			napi_value function;
			if (napi_create_function(env, f->name, NAPI_AUTO_LENGTH, f->call, NULL,
			                         &function) != napi_ok)
				return NULL;
			node_set(env, exports, f->name, function);
		}
	}
	node_set(env, exports, "version", node_text(env, lade_version_text()));
	return exports;
}
