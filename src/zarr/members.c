/*
 * members.c: the members that consolidated metadata has.  Their keys are sorted once, when the
 * group is opened: a member is found by bisection, and the members below a node are neighbours.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr/zarr.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lade__members_unref(shared_doc *shared)
{
	if (!shared || atomic_fetch_sub_explicit(&shared->refs, 1, memory_order_acq_rel) != 1)
		return;
	lade__json_free(&shared->doc);
	lade__arena_free(&shared->arena);
	free(shared->keys);
	free(shared->text);
	free(shared);
}

/* ---- sorting ------------------------------------------------------------------------- */

static int compare_text(const member_key *key, const char *text, size_t size)
{
	int order = memcmp(key->text, text, key->size < size ? key->size : size);
	return order ? order : (key->size > size) - (key->size < size);
}

/* Of equal keys, the one later in the document comes later. */
static int compare(const void *a, const void *b)
{
	const member_key *x = a, *y = b;
	int order = compare_text(x, y->text, y->size);
	return order ? order : (x->value > y->value) - (x->value < y->value);
}

lade_status lade__members_sort(shared_doc *shared, lade_error *err)
{
	const json *doc = &shared->doc;
	size_t count = lade__json_count(doc, shared->metadata), kept = 0;
	bool sorted = true;
	member_key *keys = shared->keys = calloc(count + 1, sizeof *keys), *key = keys;
	if (!keys)
		goto nomem;
	for (uint32_t c = lade__json_child(doc, shared->metadata, 0); c != JSON_NONE;
	     c = lade__json_child(doc, shared->metadata, c), key++) {
		const json_node *node = &doc->nodes[c];
		*key = (member_key){.text = doc->text + node->at, .size = node->size,
		                    .value = c + 1};
		if (node->escaped) {
			char *text = lade__arena(&shared->arena, (size_t)node->size + 1, 1);
			if (!text)
				goto nomem;
			key->size = (uint32_t)lade__json_string(doc, c, text);
			key->text = text;
		}
		sorted = sorted && (key == keys || compare(key - 1, key) <= 0);
	}
	/* Writers sort them, so that mostly nothing is to be done. */
	if (!sorted)
		qsort(keys, count, sizeof *keys, compare);
	for (size_t i = 0; i < count; i++)
		if (i + 1 == count || compare_text(&keys[i], keys[i + 1].text, keys[i + 1].size))
			keys[kept++] = keys[i];
	shared->key_count = kept;
	return LADE_OK;
nomem:
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "%s: no memory for %zu members",
	                 doc->name, count);
}

/* The first key that is not before 'text'. */
static size_t first_from(const shared_doc *shared, const char *text, size_t size)
{
	size_t low = 0, high = shared->key_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (compare_text(&shared->keys[middle], text, size) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- use ----------------------------------------------------------------------------- */

uint32_t lade__members_find(const lade_zarr *group, const char *path, const char *name)
{
	const shared_doc *shared = group->members;
	char key[2 * LADE_KEY_MAX + 32];
	int size = snprintf(key, sizeof key, "%s%s%s%s", group->member_prefix, path,
	                    name ? "/" : "", name ? name : "");
	size_t i = first_from(shared, key, (size_t)size);
	if (i == shared->key_count || compare_text(&shared->keys[i], key, (size_t)size) != 0)
		return JSON_NONE;
	return shared->keys[i].value;
}

/* How much of a key's text behind the prefix is a member's path; 0: it is no member's. */
static size_t path_size(uint32_t format, const char *text, size_t size)
{
	static const char *const names[] = {"/.zarray", "/.zgroup"};
	if (format == 3)
		return size;
	for (int i = 0; i < 2; i++) {
		size_t name = strlen(names[i]);
		if (size > name && memcmp(text + size - name, names[i], name) == 0)
			return size - name;
	}
	return 0;
}

lade_status lade__members_list(lade_zarr *node, lade_error *err)
{
	const shared_doc *shared = node->members;
	size_t prefix = strlen(node->member_prefix);
	size_t first = first_from(shared, node->member_prefix, prefix), end = first;
	while (end < shared->key_count && shared->keys[end].size >= prefix &&
	       memcmp(shared->keys[end].text, node->member_prefix, prefix) == 0)
		end++;
	node->member_paths = lade__arena(&node->arena, end - first + 1,
	                                 sizeof *node->member_paths);
	for (size_t i = first; node->member_paths && i < end; i++) {
		const member_key *key = &shared->keys[i];
		size_t size = path_size(node->format, key->text + prefix, key->size - prefix);
		char *path = size ? lade__arena(&node->arena, size + 1, 1) : NULL;
		if (size && !path)
			node->member_paths = NULL;
		if (!path)
			continue;
		memcpy(path, key->text + prefix, size);
		node->member_paths[node->member_count++] = path;
	}
	if (node->member_paths)
		return LADE_OK;
	node->member_count = 0;
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "%s: no memory for members",
	                 shared->doc.name);
}
