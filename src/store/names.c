/*
 * names.c: the names of a listing, sorted.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

bool lade__grow(void **table, size_t *room, size_t count, size_t more, size_t size)
{
	if (more <= *room - count)
		return true;
	size_t want = *room < 64 ? 64 : *room;
	while (want - count < more)
		if (__builtin_mul_overflow(want, (size_t)2, &want))
			return false;
	void *bigger = want <= SIZE_MAX / size ? realloc(*table, want * size) : NULL;
	if (!bigger)
		return false;
	*table = bigger;
	*room = want;
	return true;
}

bool lade__names_add(lade__names *n, const char *name, size_t size, bool slash, uint64_t value_size)
{
	if (!lade__grow((void **)&n->text, &n->cap, n->size, size + 2, 1) ||
	    !lade__grow((void **)&n->names, &n->room, n->count, 1, sizeof *n->names))
		return false;
	n->names[n->count++] = (struct lade__name){n->size, value_size};
	memcpy(n->text + n->size, name, size);
	n->size += size;
	if (slash)
		n->text[n->size++] = '/';
	n->text[n->size++] = 0;
	return true;
}

bool lade__names_add_key(lade__names *n, const char *key, uint64_t value_size,
                         const lade_store_listing *listing)
{
	size_t base = strlen(listing->prefix);
	if (strncmp(key, listing->prefix, base) != 0)
		return true;
	const char *slash = listing->level ? strchr(key + base, '/') : NULL;
	size_t size = slash ? (size_t)(slash - key) : strlen(key);
	return lade__names_add(n, key, size, slash,
	                       slash || !listing->sizes ? LADE_SIZE_UNKNOWN : value_size);
}

/* Merge sort: qsort() has no context in C11, and glibc's allocates. */
static void sort_names(const char *text, struct lade__name *names, struct lade__name *other,
                       size_t count)
{
	if (count < 2)
		return;
	size_t half = count / 2, i = 0, j = half;
	sort_names(text, names, other, half);
	sort_names(text, names + half, other, count - half);
	memcpy(other, names, half * sizeof *names);
	for (size_t k = 0; i < half; k++)
		names[k] = j < count && strcmp(text + names[j].at, text + other[i].at) < 0
		                   ? names[j++]
		                   : other[i++];
}

bool lade__names_sort(lade__names *n)
{
	struct lade__name *other = malloc((n->count / 2 + 1) * sizeof *other);
	if (!other)
		return false;
	sort_names(n->text, n->names, other, n->count);
	free(other);
	return true;
}

lade_status lade__names_visit(const lade__names *n, const lade_store_listing *listing,
                              lade_error *err)
{
	lade__stop stop = lade__stop_of(listing->cancel);
	const char *last = NULL;
	for (size_t i = 0; i < n->count; i++) {
		lade_store_entry entry = {sizeof entry, n->text + n->names[i].at, n->names[i].size};
		if (last && strcmp(last, entry.key) == 0)
			continue;
		last = entry.key;
		if (lade__stopped(&stop))
			return lade__stop_fail(err);
		lade_status status = listing->visit(listing->ctx, &entry);
		if (status != LADE_OK)
			return status;
	}
	return LADE_OK;
}

void lade__names_free(lade__names *n)
{
	free(n->text);
	free(n->names);
	*n = (lade__names){0};
}
