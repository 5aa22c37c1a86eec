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

lade__memory *lade__shelf_memory(const lade__shelf *s, dev_t dev, ino_t ino)
{
	size_t at = memory_place(s, dev, ino);
	lade__memory *m = at < s->memory_count ? s->memories[at] : NULL;

	return m && m->dev == dev && m->ino == ino ? m : NULL;
}

/* Takes it into the sums, or out of them. */
static void count_bytes(lade__shelf *s, const lade__memory *m, bool in)
{
	uint64_t bytes = in ? m->taken : 0 - m->taken;

	if (m->fd >= 0)
		s->descriptors += in ? 1 : (size_t)-1;
	if (m->form == LADE__BLOCK_FILE)
		s->file_bytes += bytes;
	else if (lade__is_far(m->form))
		s->device_bytes += bytes;
	else
		s->bytes += bytes;
	if (m->form == LADE__BLOCK_PACKED)
		s->packed_bytes += bytes;
}

/* It leaves the place where it is. */
static void leave(lade__shelf *s, lade__memory *m)
{
	cut((void **)s->memories, &s->memory_count, memory_place(s, m->dev, m->ino));
	count_bytes(s, m, false);
	if (m->fd >= 0)
		close(m->fd);
	if (m->form == LADE__BLOCK_FILE && s->gone)
		s->gone(s->gone_ctx, m->ino, false);
}

void lade__shelf_unref(lade__shelf *s, lade__memory *m)
{
	if (!m || --m->refs)
		return;
	leave(s, m);
	free(m);
}

/* What a block of a message is in: form, device, number, size and bytes taken. */
static lade_status look(const lade__block *b, lade__memory *out, lade_error *err)
{
	struct stat st;

	*out = (lade__memory){.form = b->kind, .fd = b->fd, .size = b->size};
	if (b->kind == LADE__BLOCK_FILE) {
		out->dev = LADE__DEV_FILE;
		out->ino = b->version;
		return LADE_OK;
	}
	/* What is a device's is only held: those who map it see what it is. */
	if (lade__is_far(b->kind)) {
		out->ino = b->id;
		out->taken = b->size;
		out->device = b->device;
		memcpy(out->handle, b->handle, sizeof out->handle);
		return LADE_OK;
	}
	/* First: a descriptor that is no memory may be anything, and asking for its size may
	 * hang. */
	int seals = fcntl(b->fd, F_GET_SEALS);

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(b->fd, &st))
		return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                 "a block is not a sealed memfd: seals 0x%x, want 0x%x",
		                 seals < 0 ? 0u : (unsigned)seals, (unsigned)SEALS);
	if (st.st_size < 0 || (b->kind == LADE__BLOCK_HOST && (uint64_t)st.st_size < b->size))
		return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                 "a block of %llu bytes is in a memfd of %lld",
		                 (unsigned long long)b->size, (long long)st.st_size);
	out->dev = st.st_dev;
	out->ino = st.st_ino;
	out->taken = (uint64_t)st.st_size;
	if (b->kind == LADE__BLOCK_HOST)
		out->size = out->taken;
	return LADE_OK;
}

/* The memory of a block, whose descriptor it takes on success. */
static lade_status memory_of(lade__shelf *s, const lade__block *b, lade__memory **out,
                             lade_error *err)
{
	lade__memory is, *m;
	lade_status status = look(b, &is, err);

	if (status != LADE_OK)
		return status;
	m = lade__shelf_memory(s, is.dev, is.ino);
	if (m && lade__is_far(is.form) &&
	    (m->form != is.form || m->size != is.size || m->device != is.device ||
	     memcmp(m->handle, is.handle, sizeof m->handle)))
		return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                 "a block of %llu bytes has the number of another, of %llu",
		                 (unsigned long long)is.size, (unsigned long long)m->size);
	if (m) {
		if (b->fd >= 0)
			close(b->fd);
		if (m->size < is.size)
			m->size = is.size; /* compressed: blocks of it may be smaller */
		m->refs++;
		*out = m;
		return LADE_OK;
	}
	m = malloc(sizeof *m);
	if (!m || !grow((void ***)&s->memories, s->memory_count, &s->memory_cap)) {
		free(m);
		return no_memory(err);
	}
	*m = is;
	m->refs = 1;
	m->used = ++s->clock;
	insert((void **)s->memories, &s->memory_count, memory_place(s, m->dev, m->ino), m);
	count_bytes(s, m, true);
	*out = m;
	return LADE_OK;
}

lade_status lade__shelf_swap(lade__shelf *s, lade__memory *m, const lade__block *to,
                             lade_error *err)
{
	lade__memory is;
	lade_status status = look(to, &is, err);

	if (status == LADE_OK && lade__shelf_memory(s, is.dev, is.ino))
		status = lade_fail(err, LADE_E_STATE, LADE_NO_OFFSET, "a block is there already");
	if (status != LADE_OK) {
		if (to->fd >= 0)
			close(to->fd);
		return status;
	}
	leave(s, m);
	is.refs = m->refs;
	is.used = m->used;
	is.held = m->held;
	is.hard = m->hard;
	*m = is;
	/* It has left a place free. */
	insert((void **)s->memories, &s->memory_count, memory_place(s, m->dev, m->ino), m);
	count_bytes(s, m, true);
	return LADE_OK;
}

static lade_status find_memory(lade__shelf *s, lade__block *b, lade__memory **out, lade_error *err)
{
	lade__kept *from;

	if (b->kind != LADE__BLOCK_REF) {
		lade_status status = memory_of(s, b, out, err);
		if (status == LADE_OK)
			b->fd = -1; /* the memory's */
		return status;
	}
	from = lade__shelf_find(s, b->version);
	if (!from || b->index >= from->record.block_count)
		return lade_fail(err, LADE_E_NOT_FOUND, LADE_NO_OFFSET,
		                 "block %u of version %llu is not here", b->index,
		                 (unsigned long long)b->version);
	const lade__memory *m = from->memories[b->index];
	/* It ends with another's connection. */
	if (m->form == LADE__BLOCK_LEASE)
		return lade_fail(err, LADE_E_NOT_FOUND, LADE_NO_OFFSET,
		                 "block %u of version %llu is a lease", b->index,
		                 (unsigned long long)b->version);
	if (lade__is_far(m->form) ? b->size != m->size : b->size > m->size)
		return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                 "a block of %llu bytes is in one of %llu",
		                 (unsigned long long)b->size, (unsigned long long)m->size);
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

const lade__record *lade__kept_record(lade__kept *kept)
{
	for (size_t i = 0; i < kept->record.block_count; i++) {
		const lade__memory *m = kept->memories[i];
		kept->blocks[i].kind = m->form;
		kept->blocks[i].fd = m->fd;
		kept->blocks[i].version = m->form == LADE__BLOCK_FILE ? m->ino : 0;
	}
	return &kept->record;
}

void lade__kept_hold(lade__shelf *s, lade__kept *kept, int count)
{
	for (size_t i = 0; i < kept->record.block_count; i++) {
		kept->memories[i]->held += (size_t)count;
		kept->memories[i]->used = ++s->clock;
	}
}

uint32_t lade__kept_place(const lade__kept *kept)
{
	uint32_t place = 0;

	for (size_t i = 0; i < kept->record.block_count; i++) {
		uint8_t form = kept->memories[i]->form;
		if (form == LADE__BLOCK_FILE)
			return LADE__RECORD_FILE;
		if (form == LADE__BLOCK_PACKED)
			place = LADE__RECORD_PACKED;
	}
	return place;
}

/* They must stay as they are while somebody has them. */
void lade__shelf_drop_copies(lade__shelf *s, lade__kept *kept)
{
	for (size_t i = 0; kept->copies && i < kept->record.block_count; i++) {
		if (kept->copies[i])
			kept->copies[i]->held--;
		lade__shelf_unref(s, kept->copies[i]);
	}
	free(kept->copies);
	kept->copies = NULL;
}

lade_status lade__shelf_copies(lade__shelf *s, lade__kept *kept, lade__record *from,
                               uint64_t bytes_cap, lade_error *err)
{
	uint64_t had = s->bytes;
	size_t next = 0;
	lade_status status = LADE_OK;

	lade__shelf_drop_copies(s, kept);
	kept->copies = calloc(kept->record.block_count, sizeof(lade__memory *));
	TRY(kept->copies ? LADE_OK : no_memory(err));
	for (size_t i = 0; i < kept->record.block_count; i++) {
		if (!lade__is_far(kept->memories[i]->form))
			continue;
		lade__block *b = &from->blocks[next++];
		if (next > from->block_count || b->kind != LADE__BLOCK_HOST ||
		    b->size != kept->blocks[i].size)
			TRY(lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
			              "%zu copies of version %llu", from->block_count,
			              (unsigned long long)kept->record.version));
		TRY(find_memory(s, b, &kept->copies[i], err));
		kept->copies[i]->held++;
		if (bytes_cap && s->bytes > bytes_cap)
			TRY(lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
			              "a copy of '%s' on the host has more than %llu bytes, and "
			              "%llu of %llu are taken",
			              kept->record.name, (unsigned long long)(s->bytes - had),
			              (unsigned long long)had, (unsigned long long)bytes_cap));
	}
out:
	lade__record_close(from);
	if (status != LADE_OK)
		lade__shelf_drop_copies(s, kept);
	return status;
}

static void kept_free(lade__shelf *s, lade__kept *kept)
{
	if (kept)
		lade__shelf_drop_copies(s, kept);
	if (kept && kept->noted && s->gone)
		s->gone(s->gone_ctx, kept->record.version, true);
	for (size_t i = 0; kept && i < kept->record.block_count; i++) {
		if (kept->memories[i])
			kept->memories[i]->held -= kept->held + kept->pinned;
		lade__shelf_unref(s, kept->memories[i]);
	}
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
	bool fits = true;
	for (size_t i = 0; i < r->block_count && fits; i++) {
		TRY(find_memory(s, &r->blocks[i], &kept->memories[i], err));
		const lade__memory *m = kept->memories[i];
		kept->blocks[i] = (lade__block){.size = r->blocks[i].size};
		if (lade__is_far(m->form)) {
			kept->blocks[i].id = m->ino;
			kept->blocks[i].device = m->device;
			memcpy(kept->blocks[i].handle, m->handle, sizeof m->handle);
			kept->record.flags |= LADE__RECORD_DEVICE;
			if (m->form == LADE__BLOCK_LEASE)
				kept->record.flags |= LADE__RECORD_LEASE;
		}
		fits = !bytes_cap || (s->bytes >= had && s->bytes - had <= bytes_cap);
	}
	if (bytes_cap && (!fits || r->head_size > bytes_cap - (s->bytes - had)))
		TRY(lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		              "%llu bytes for '%s', and %llu of %llu are taken",
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
