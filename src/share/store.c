/*
 * store.c: what the broker and the keeper hold: versions, their memory, the index of names.
 *
 * Sorted arrays of pointers: versions come in ascending order, and 10,000 names are 80 KB to move.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "share/store.h"

#include "base/try.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static lade_status no_memory(lade_error *err)
{
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a version");
}

/* ---- sorted arrays ---------------------------------------------------------------------- */

/* Room for one more pointer.  False: there is no memory. */
static bool grow(void ***array, size_t count, size_t *cap)
{
	if (count < *cap)
		return true;
	size_t more = *cap ? *cap * 2 : 8;
	void **larger = realloc(*array, more * sizeof *larger);
	if (!larger)
		return false;
	*array = larger;
	*cap = more;
	return true;
}

static void insert(void **array, size_t *count, size_t at, void *what)
{
	memmove(array + at + 1, array + at, (*count - at) * sizeof *array);
	array[at] = what;
	++*count;
}

static void cut(void **array, size_t *count, size_t at)
{
	--*count;
	memmove(array + at, array + at + 1, (*count - at) * sizeof *array);
}

/* ---- memory ----------------------------------------------------------------------------- */

static size_t memory_place(const lade__shelf *s, dev_t dev, ino_t ino)
{
	size_t low = 0, high = s->memory_count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const lade__memory *m = s->memories[mid];
		if (m->dev < dev || (m->dev == dev && m->ino < ino))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void memory_unref(lade__shelf *s, lade__memory *m)
{
	if (!m || --m->refs)
		return;
	cut((void **)s->memories, &s->memory_count, memory_place(s, m->dev, m->ino));
	s->bytes -= m->size;
	close(m->fd);
	free(m);
}

/* The memory of a descriptor, which it takes on success. */
static lade_status memory_of(lade__shelf *s, int fd, uint64_t need, lade__memory **out,
                             lade_error *err)
{
	struct stat st;
	/* First: a descriptor that is no memory may be anything, and asking for its size may
	 * hang. */
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st))
		return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                 "a block is not a sealed memfd: seals 0x%x, want 0x%x",
		                 seals < 0 ? 0u : (unsigned)seals, (unsigned)SEALS);
	if (st.st_size < 0 || (uint64_t)st.st_size < need)
		return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                 "a block of %llu bytes is in a memfd of %lld",
		                 (unsigned long long)need, (long long)st.st_size);
	size_t at = memory_place(s, st.st_dev, st.st_ino);
	lade__memory *m = at < s->memory_count ? s->memories[at] : NULL;
	if (m && m->dev == st.st_dev && m->ino == st.st_ino) {
		close(fd);
		m->refs++;
		*out = m;
		return LADE_OK;
	}
	m = malloc(sizeof *m);
	if (!m || !grow((void ***)&s->memories, s->memory_count, &s->memory_cap)) {
		free(m);
		return no_memory(err);
	}
	*m = (lade__memory){st.st_dev, st.st_ino, fd, (uint64_t)st.st_size, 1};
	insert((void **)s->memories, &s->memory_count, at, m);
	s->bytes += m->size;
	*out = m;
	return LADE_OK;
}

static lade_status find_memory(lade__shelf *s, lade__block *b, lade__memory **out, lade_error *err)
{
	lade__kept *from;

	if (b->kind != LADE__BLOCK_REF) {
		lade_status status = memory_of(s, b->fd, b->size, out, err);
		if (status == LADE_OK)
			b->fd = -1; /* the memory's */
		return status;
	}
	from = lade__shelf_find(s, b->version);
	if (!from || b->index >= from->record.block_count)
		return lade_fail(err, LADE_E_NOT_FOUND, LADE_NO_OFFSET,
		                 "block %u of version %llu is not here", b->index,
		                 (unsigned long long)b->version);
	if (b->size > from->memories[b->index]->size)
		return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                 "a block of %llu bytes is in one of %llu",
		                 (unsigned long long)b->size,
		                 (unsigned long long)from->memories[b->index]->size);
	*out = from->memories[b->index];
	(*out)->refs++;
	return LADE_OK;
}

/* ---- names ------------------------------------------------------------------------------ */

size_t lade__shelf_after(const lade__shelf *s, const char *name, bool or_equal)
{
	size_t low = 0, high = s->name_count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = strcmp(s->names[mid]->name, name);
		if (order < 0 || (order == 0 && !or_equal))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

lade__names *lade__shelf_name(const lade__shelf *s, const char *name)
{
	size_t at = lade__shelf_after(s, name, true);

	return at < s->name_count && !strcmp(s->names[at]->name, name) ? s->names[at] : NULL;
}

lade__kept *lade__names_latest(const lade__names *names)
{
	for (size_t i = names ? names->count : 0; i-- > 0;)
		if (names->versions[i]->visible)
			return names->versions[i];
	return NULL;
}

static void drop_name(lade__shelf *s, lade__names *names)
{
	cut((void **)s->names, &s->name_count, lade__shelf_after(s, names->name, true));
	free(names->versions);
	free(names->name);
	free(names);
}

/* The name's entry, with room for one more version. */
static lade_status make_name(lade__shelf *s, const lade__record *r, lade__names **out,
                             lade_error *err)
{
	lade__names *names = lade__shelf_name(s, r->name);

	if (!names) {
		names = calloc(1, sizeof *names);
		if (names)
			names->name = strdup(r->name);
		if (!names || !names->name ||
		    !grow((void ***)&s->names, s->name_count, &s->name_cap)) {
			if (names)
				free(names->name);
			free(names);
			return no_memory(err);
		}
		names->uid = r->uid;
		insert((void **)s->names, &s->name_count, lade__shelf_after(s, r->name, true),
		       names);
	}
	*out = names;
	if (names->uid != r->uid)
		return lade_fail(err, LADE_E_STATE, LADE_NO_OFFSET,
		                 "'%s' is a name of user %u, not of %u", r->name, names->uid,
		                 r->uid);
	return grow((void ***)&names->versions, names->count, &names->cap) ? LADE_OK
	                                                                   : no_memory(err);
}

/* ---- versions --------------------------------------------------------------------------- */

static size_t version_place(lade__kept *const *versions, size_t count, uint64_t version)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (versions[mid]->record.version < version)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

lade__kept *lade__shelf_find(const lade__shelf *s, uint64_t version)
{
	size_t at = version_place(s->versions, s->count, version);

	return at < s->count && s->versions[at]->record.version == version ? s->versions[at] : NULL;
}

static void kept_free(lade__shelf *s, lade__kept *kept)
{
	for (size_t i = 0; kept && i < kept->record.block_count; i++)
		memory_unref(s, kept->memories[i]);
	free(kept);
}

/* A copy of the record: | lade__kept | blocks | memories | head |.  It has no memories yet. */
static lade__kept *kept_new(const lade__record *r)
{
	size_t blocks = r->block_count * sizeof(lade__block);
	size_t memories = r->block_count * sizeof(lade__memory *);
	lade__kept *kept = calloc(1, sizeof *kept + blocks + memories + r->head_size);

	if (!kept)
		return NULL;
	kept->record = *r;
	kept->record.blocks = kept->blocks;
	kept->memories = (lade__memory **)((char *)kept->blocks + blocks);
	uint8_t *head = (uint8_t *)kept->memories + memories;
	if (r->head_size)
		memcpy(head, r->head, r->head_size);
	kept->record.head = head;
	return kept;
}

lade_status lade__shelf_add(lade__shelf *s, lade__record *r, uint64_t bytes_cap, lade__kept **out,
                            lade_error *err)
{
	lade__kept *kept = kept_new(r);
	lade__names *names = NULL;
	lade_status status;
	uint64_t had = s->bytes;

	*out = NULL;
	if (!kept || lade__shelf_find(s, r->version)) {
		status = kept ? lade_fail(err, LADE_E_STATE, LADE_NO_OFFSET,
		                          "version %llu is there already",
		                          (unsigned long long)r->version)
		              : no_memory(err);
		goto out;
	}
	/* Not all at once: the sum of sizes that are only claimed may wrap. */
	for (size_t i = 0; i < r->block_count && (!bytes_cap || s->bytes <= bytes_cap); i++) {
		TRY(find_memory(s, &r->blocks[i], &kept->memories[i], err));
		kept->blocks[i] = (lade__block){.kind = LADE__BLOCK_HOST,
		                                .fd = kept->memories[i]->fd,
		                                .size = r->blocks[i].size};
	}
	if (bytes_cap && (s->bytes > bytes_cap || r->head_size > bytes_cap - s->bytes))
		TRY(lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		              "%llu bytes for '%s', and %llu of %llu are in use",
		              (unsigned long long)(s->bytes - had + r->head_size), r->name,
		              (unsigned long long)had, (unsigned long long)bytes_cap));
	if (!grow((void ***)&s->versions, s->count, &s->cap))
		TRY(no_memory(err));
	TRY(make_name(s, r, &names, err));
	insert((void **)s->versions, &s->count, version_place(s->versions, s->count, r->version),
	       kept);
	insert((void **)names->versions, &names->count,
	       version_place(names->versions, names->count, r->version), kept);
	s->bytes += r->head_size;
	*out = kept;
	kept = NULL;
out:
	if (names && !names->count)
		drop_name(s, names);
	kept_free(s, kept);
	lade__record_close(r);
	return status;
}

void lade__shelf_drop(lade__shelf *s, lade__kept *kept)
{
	uint64_t version = kept->record.version;
	lade__names *names = lade__shelf_name(s, kept->record.name);

	cut((void **)s->versions, &s->count, version_place(s->versions, s->count, version));
	cut((void **)names->versions, &names->count,
	    version_place(names->versions, names->count, version));
	if (!names->count)
		drop_name(s, names);
	s->bytes -= kept->record.head_size;
	kept_free(s, kept);
}

void lade__shelf_reset(lade__shelf *s)
{
	while (s->count)
		lade__shelf_drop(s, s->versions[s->count - 1]);
	free(s->versions);
	free(s->names);
	free(s->memories);
	memset(s, 0, sizeof *s);
}
