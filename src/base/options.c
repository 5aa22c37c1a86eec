/*
 * options.c: reads the structs that begin with their size, as callers of other versions give them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/options.h"

#include <stdlib.h>
#include <string.h>

size_t lade__struct_copy(void *to, size_t to_size, const void *from, size_t from_size)
{
	const unsigned char *bytes = from;
	size_t both = from_size < to_size ? from_size : to_size;
	memcpy(to, from, both);
	memset((unsigned char *)to + both, 0, to_size - both);
	for (size_t i = both; i < from_size; i++)
		if (bytes[i])
			return i;
	return SIZE_MAX;
}

lade_status lade__options_read(void *to, size_t to_size, const void *from, const char *name,
                               lade_error *err)
{
	size_t size = to_size;
	if (!from) {
		memset(to, 0, to_size);
		memcpy(to, &to_size, sizeof to_size);
		return LADE_OK;
	}
	memcpy(&size, from, sizeof size);
	if (size < sizeof size || size > LADE__STRUCT_SIZE_MAX)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "%s: struct_size is %zu, want %zu (%zu to %d are accepted)", name,
		                 size, to_size, sizeof size, LADE__STRUCT_SIZE_MAX);
	size_t bad = lade__struct_copy(to, to_size, from, size);
	memcpy(to, &to_size, sizeof to_size);
	if (bad != SIZE_MAX)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "%s: struct_size is %zu, this library's is %zu, and byte %zu is "
		                 "not zero: this version has no such field",
		                 name, size, to_size, bad);
	return LADE_OK;
}

lade_status lade__size_given(size_t *size, size_t first, const char *name, lade_error *err)
{
	if (*size == 0)
		*size = first;
	if (*size >= first && *size <= LADE__STRUCT_SIZE_MAX)
		return LADE_OK;
	return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "options: %s is %zu, want %zu to %d",
	                 name, *size, first, LADE__STRUCT_SIZE_MAX);
}

lade_status lade__array_open(lade__array *a, size_t caller_size, const char *what, lade_error *err)
{
	if (!a->own || a->count == 0 || caller_size == a->own_size)
		return LADE_OK;
	unsigned char *own = calloc(a->count, a->own_size);
	if (!own)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for %zu structs of this version", a->count);
	a->caller = a->own;
	a->caller_size = caller_size;
	a->own = own;
	for (size_t i = 0; what && i < a->count; i++) {
		size_t bad = lade__struct_copy(own + i * a->own_size, a->own_size,
		                               a->caller + i * caller_size, caller_size);
		if (bad == SIZE_MAX)
			continue;
		lade__array_close(a, false);
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "%s %zu: it has %zu bytes, this library's have %zu, and byte %zu "
		                 "is not zero: this version has no such field",
		                 what, i, caller_size, a->own_size, bad);
	}
	return LADE_OK;
}

void lade__array_close(lade__array *a, bool bring)
{
	if (!a->caller)
		return;
	for (size_t i = 0; bring && i < a->count; i++)
		lade__struct_copy(a->caller + i * a->caller_size, a->caller_size,
		                  (unsigned char *)a->own + i * a->own_size, a->own_size);
	free(a->own);
	a->own = a->caller;
	a->caller = NULL;
}
