/*
 * value.c: arguments, results and errors.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_node.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors -------------------------------------------------------------------------------- */

napi_value node_error(napi_env env, const lade_error *err)
{
	napi_value message, error = NULL;

	message = node_text(env, err->message);
	if (!message || napi_create_error(env, node_text(env, lade_status_name(err->status)),
	                                  message, &error) != napi_ok)
		return NULL;
	if (err->offset <= (uint64_t)1 << 53)
		node_set(env, error, "offset", node_number(env, err->offset));
	return error;
}

napi_value node_throw(napi_env env, const lade_error *err)
{
	napi_value error = node_error(env, err);

	if (error)
		napi_throw(env, error);
	return NULL;
}

napi_value node_throw_type(napi_env env, const char *format, ...)
{
	char message[LADE_MESSAGE_CAP];
	va_list args;
	bool pending = false;

	va_start(args, format);
	vsnprintf(message, sizeof message, format, args);
	va_end(args);
	napi_is_exception_pending(env, &pending);
	if (!pending)
		napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", message);
	return NULL;
}

/* ---- arguments ----------------------------------------------------------------------------- */

bool node_arguments(napi_env env, napi_callback_info info, size_t count, napi_value *out)
{
	size_t given = count;

	return napi_get_cb_info(env, info, &given, out, NULL, NULL) == napi_ok;
}

static napi_valuetype type_of(napi_env env, napi_value value)
{
	napi_valuetype type = napi_undefined;

	napi_typeof(env, value, &type);
	return type;
}

bool node_is_null(napi_env env, napi_value value)
{
	napi_valuetype type = type_of(env, value);

	return type == napi_undefined || type == napi_null;
}

bool node_get_number(napi_env env, napi_value value, const char *what, uint64_t *out)
{
	double number = -1;

	napi_get_value_double(env, value, &number);
	if (!(number >= 0 && number <= 9007199254740992.0) || number != (double)(uint64_t)number)
		return node_throw_type(env, "%s: want an integer from 0 to 2^53", what);
	*out = (uint64_t)number;
	return true;
}

bool node_get_int64(napi_env env, napi_value value, const char *what, int64_t *out)
{
	double number = 0;

	if (napi_get_value_double(env, value, &number) != napi_ok ||
	    !(number >= -9007199254740992.0 && number <= 9007199254740992.0) ||
	    number != (double)(int64_t)number)
		return node_throw_type(env, "%s: want an integer of at most 2^53", what);
	*out = (int64_t)number;
	return true;
}

bool node_get_bool(napi_env env, napi_value value)
{
	bool out = false;

	napi_get_value_bool(env, value, &out);
	return out;
}

bool node_get_text(napi_env env, napi_value value, const char *what, char **out)
{
	size_t size = 0;

	*out = NULL;
	if (node_is_null(env, value))
		return true;
	if (napi_get_value_string_utf8(env, value, NULL, 0, &size) != napi_ok)
		return node_throw_type(env, "%s: want a string", what);
	char *text = malloc(size + 1);
	if (!text || napi_get_value_string_utf8(env, value, text, size + 1, &size) != napi_ok ||
	    strlen(text) != size) {
		free(text);
		return node_throw_type(env,
		                       "%s: a string without NUL is wanted, of a size that "
		                       "memory has",
		                       what);
	}
	*out = text;
	return true;
}

bool node_get_bytes(napi_env env, napi_value value, const char *what, node_bytes *out)
{
	static const uint8_t sizes[] = {1, 1, 1, 2, 2, 4, 4, 4, 8, 8, 8}; /* napi_typedarray_type */
	bool is = false, resizable = false;
	napi_value flag;

	*out = (node_bytes){NULL, 0, value};
	if (napi_is_typedarray(env, value, &is) == napi_ok && is) {
		napi_typedarray_type type;
		size_t length;
		napi_get_typedarray_info(env, value, &type, &length, &out->data, &out->buffer,
		                         NULL);
		/* Of its class, not of 'byteLength', which an object may have as it likes. */
		if ((size_t)type >= sizeof sizes)
			return node_throw_type(env, "%s: typed arrays of class %d are not known",
			                       what, (int)type);
		out->size = length * sizes[type];
	} else if (napi_is_dataview(env, value, &is) == napi_ok && is) {
		napi_get_dataview_info(env, value, &out->size, &out->data, &out->buffer, NULL);
	} else if (napi_is_arraybuffer(env, value, &is) == napi_ok && is) {
		napi_get_arraybuffer_info(env, value, &out->data, &out->size);
	} else {
		return node_throw_type(env, "%s: want a typed array, a Buffer or an ArrayBuffer",
		                       what);
	}
	if (napi_is_arraybuffer(env, out->buffer, &is) != napi_ok || !is)
		return node_throw_type(env,
		                       "%s: a SharedArrayBuffer can change while it is used; "
		                       "copy it",
		                       what);
	flag = node_get(env, out->buffer, "resizable");
	if (flag)
		napi_get_value_bool(env, flag, &resizable);
	if (resizable)
		return node_throw_type(env,
		                       "%s: a resizable ArrayBuffer can shrink while it is "
		                       "used; copy it",
		                       what);
	return true;
}

/* ---- results ------------------------------------------------------------------------------- */

napi_value node_text(napi_env env, const char *text)
{
	napi_value out = NULL;

	if (text)
		napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &out);
	else
		napi_get_null(env, &out);
	return out;
}

napi_value node_number(napi_env env, uint64_t value)
{
	napi_value out = NULL;

	napi_create_double(env, (double)value, &out);
	return out;
}

void node_set(napi_env env, napi_value object, const char *name, napi_value value)
{
	if (object && value)
		napi_set_named_property(env, object, name, value);
}

napi_value node_get(napi_env env, napi_value object, const char *name)
{
	napi_value out = NULL;

	return napi_get_named_property(env, object, name, &out) == napi_ok ? out : NULL;
}

typedef struct external {
	void (*gone)(void *ctx);
	void *ctx;
} external;

static void external_gone(napi_env env, void *data, void *hint)
{
	external *e = hint;

	(void)env, (void)data;
	e->gone(e->ctx);
	free(e);
}

napi_value node_external(napi_env env, void *data, size_t size, void (*gone)(void *ctx), void *ctx)
{
	uint64_t *largest = NULL;
	napi_value out = NULL;
	lade_error err;

	if (!size) {
		/* Some engines want an address of no bytes, too. */
		gone(ctx);
		napi_create_arraybuffer(env, 0, &data, &out);
		return out;
	}
	if (napi_get_instance_data(env, (void **)&largest) == napi_ok && largest &&
	    size > *largest) {
		lade_fail(&err, LADE_E_LIMIT, LADE_NO_OFFSET,
		          "a buffer of %zu bytes: an ArrayBuffer of this runtime has at most %llu; "
		          "smaller batches have smaller buffers",
		          size, (unsigned long long)*largest);
		gone(ctx);
		return node_throw(env, &err);
	}
	external *e = malloc(sizeof *e);
	napi_status status = napi_no_external_buffers_allowed;
	if (e) {
		*e = (external){gone, ctx};
		status = napi_create_external_arraybuffer(env, data, size, external_gone, e, &out);
	}
	/* An environment that ends has not looked at it; after other failures external_gone() is
	 * called. */
	bool ended = status == napi_pending_exception || status == napi_closing ||
	             status == napi_cannot_run_js;
	if (ended || status == napi_no_external_buffers_allowed) {
		gone(ctx);
		free(e);
	}
	if (status == napi_no_external_buffers_allowed) {
		lade_fail(&err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		          "this runtime allows no ArrayBuffer in memory of others");
		return node_throw(env, &err);
	}
	return out;
}
