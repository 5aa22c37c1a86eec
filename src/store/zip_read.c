/*
 * zip_read.c: reads the directory of a zip file, and finds keys in it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/support.h"
#include "base/try.h"
#include "store/zip.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ---- the table ----------------------------------------------------------------------------- */

static size_t bucket_of(const lade__zip *zip, const char *key, size_t size)
{
	return XXH3_64bits(key, size) & (zip->bucket_count - 1);
}

static bool rehash(lade__zip *zip, size_t count)
{
	uint32_t *buckets = calloc(count, sizeof *buckets);
	if (!buckets)
		return false;
	free(zip->buckets);
	zip->buckets = buckets;
	zip->bucket_count = count;
	for (size_t i = 0; i < zip->count; i++) {
		lade__zip_entry *e = &zip->entries[i];
		uint32_t *at = &buckets[bucket_of(zip, zip->text + e->name, e->key_size)];
		e->next = *at;
		*at = (uint32_t)i + 1;
	}
	return true;
}

static lade__zip_entry *find(const lade__zip *zip, const char *key, size_t size)
{
	uint32_t at = zip->count ? zip->buckets[bucket_of(zip, key, size)] : 0;
	for (; at; at = zip->entries[at - 1].next) {
		lade__zip_entry *e = &zip->entries[at - 1];
		if (!e->gone && e->key_size == size && memcmp(zip->text + e->name, key, size) == 0)
			return e;
	}
	return NULL;
}

lade__zip_entry *lade__zip_find(const lade__zip *zip, const char *key)
{
	return find(zip, key, strlen(key));
}

lade_status lade__zip_add(lade__zip *zip, const char *name, size_t size, lade__zip_entry **out,
                          lade_error *err)
{
	if (zip->count >= UINT32_MAX - 1)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET, "more than %" PRIu32 " entries",
		                 UINT32_MAX - 1);
	if (!lade__grow((void **)&zip->text, &zip->text_cap, zip->text_size, size + 1, 1) ||
	    !lade__grow((void **)&zip->entries, &zip->room, zip->count, 1, sizeof *zip->entries) ||
	    (zip->count >= zip->bucket_count &&
	     !rehash(zip, zip->bucket_count ? zip->bucket_count * 2 : 64)))
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for entry %zu",
		                 zip->count);
	lade__zip_entry *old = find(zip, name, size), *e = &zip->entries[zip->count];
	if (old)
		old->gone = true;
	uint32_t *bucket = &zip->buckets[bucket_of(zip, name, size)];
	*e = (lade__zip_entry){.name = zip->text_size, .key_size = size, .next = *bucket};
	*bucket = (uint32_t)++zip->count;
	memcpy(zip->text + zip->text_size, name, size);
	zip->text[zip->text_size + size] = 0;
	zip->text_size += size + 1;
	*out = e;
	return LADE_OK;
}

void lade__zip_reset(lade__zip *zip)
{
	free(zip->entries);
	free(zip->text);
	free(zip->buckets);
	*zip = (lade__zip){0};
}

bool lade__zip_gather(const lade__zip *zip, const lade_store_listing *listing, lade__names *names)
{
	for (size_t i = 0; i < zip->count; i++) {
		const lade__zip_entry *e = &zip->entries[i];
		if (!e->gone && !lade__names_add_key(names, zip->text + e->name, e->size, listing))
			return false;
	}
	return lade__names_sort(names);
}

/* ---- the end ------------------------------------------------------------------------------- */

/* What is being read: the last bytes of the object, and what they say of the directory. */
typedef struct parse {
	lade_source source;
	const lade_object_version *version;
	uint64_t object_size;
	uint8_t tail[ZIP64_LOCATOR_SIZE + ZIP_END_SIZE + ZIP_COMMENT_MAX];
	uint64_t tail_off; /* of tail[0] in the object */
	size_t tail_size;
	uint64_t count, size, off; /* of the directory */
	uint64_t end_off;          /* of what follows it */
	lade_error *err;
} parse;

static lade_status corrupt(const parse *p, uint64_t off, const char *what)
{
	return lade_fail(p->err, LADE_E_CORRUPT, off, "zip: %s (byte %" PRIu64 " of %" PRIu64 ")",
	                 what, off, p->object_size);
}

/* Reads bytes that are in the object. */
static lade_status read_at(const parse *p, uint64_t off, void *to, size_t size)
{
	lade_range range = {.off = off, .dst = lade_host_span(to, size)};
	range.want = p->version->size ? p->version : NULL;
	return lade_source_read(p->source, &range, 1, NULL, p->err);
}

/*
 * | signature 4 | size of what follows 8 | made by 2 | needs 2 | disk 4 | directory's disk 4 |
 * | entries here 8 | entries 8 | size 8 | offset 8 |
 */
static lade_status read_zip64_end(parse *p, uint64_t locator_off, const uint8_t *locator)
{
	uint8_t end[ZIP64_END_SIZE];
	uint64_t off = lade__le64(locator + 8);
	if (lade__le32(locator + 4) != 0 || lade__le32(locator + 16) > 1)
		return lade_fail(p->err, LADE_E_UNSUPPORTED, locator_off,
		                 "zip: it has several disks");
	if (locator_off < ZIP64_END_SIZE || off > locator_off - ZIP64_END_SIZE)
		return corrupt(p, locator_off, "the zip64 end is not before its locator");
	lade_status status = read_at(p, off, end, sizeof end);
	if (status != LADE_OK)
		return status;
	if (lade__le32(end) != ZIP64_END)
		return corrupt(p, off, "there is no zip64 end where the locator says");
	if (lade__le32(end + 16) != 0 || lade__le32(end + 20) != 0 ||
	    lade__le64(end + 24) != lade__le64(end + 32))
		return lade_fail(p->err, LADE_E_UNSUPPORTED, off, "zip: it has several disks");
	p->count = lade__le64(end + 32);
	p->size = lade__le64(end + 40);
	p->off = lade__le64(end + 48);
	p->end_off = off;
	return LADE_OK;
}

/*
 * | signature 4 | disk 2 | directory's disk 2 | entries here 2 | entries 2 | size 4 | offset 4 |
 * | comment's size 2 | comment |
 *
 * The comment ends with the object: of all signatures, that of the end is the last for which this
 * holds.
 */
static lade_status read_end(parse *p)
{
	size_t most = sizeof p->tail, at;
	p->tail_size = p->object_size < most ? (size_t)p->object_size : most;
	p->tail_off = p->object_size - p->tail_size;
	if (p->tail_size < ZIP_END_SIZE)
		return lade_fail(p->err, LADE_E_TRUNCATED, p->object_size,
		                 "zip: it has %" PRIu64 " bytes, the end alone has %d",
		                 p->object_size, ZIP_END_SIZE);
	lade_status status = read_at(p, p->tail_off, p->tail, p->tail_size);
	if (status != LADE_OK)
		return status;
	for (at = p->tail_size - ZIP_END_SIZE;; at--) {
		if (lade__le32(p->tail + at) == ZIP_END &&
		    at + ZIP_END_SIZE + lade__le16(p->tail + at + 20) == p->tail_size)
			break;
		if (at == 0)
			return corrupt(p, p->object_size, "no directory ends there");
	}
	const uint8_t *end = p->tail + at;
	p->end_off = p->tail_off + at;
	p->count = lade__le16(end + 10);
	p->size = lade__le32(end + 12);
	p->off = lade__le32(end + 16);
	bool large = p->count == UINT16_MAX || p->size == UINT32_MAX || p->off == UINT32_MAX;
	if (large && at >= ZIP64_LOCATOR_SIZE &&
	    lade__le32(end - ZIP64_LOCATOR_SIZE) == ZIP64_LOCATOR)
		return read_zip64_end(p, p->end_off - ZIP64_LOCATOR_SIZE, end - ZIP64_LOCATOR_SIZE);
	if (lade__le16(end + 4) != 0 || lade__le16(end + 6) != 0 || lade__le16(end + 8) != p->count)
		return lade_fail(p->err, LADE_E_UNSUPPORTED, p->end_off,
		                 "zip: it has several disks");
	return LADE_OK;
}

/* ---- entries ------------------------------------------------------------------------------- */

/*
 * Numbers that do not fit 32 bits stand in an extra field | id 2 = 1 | size 2 | numbers 8 each |:
 * those that are 0xffffffff in the entry, in the order size, stored size, offset.
 */
static bool read_zip64(const uint8_t *extra, size_t extra_size, uint64_t *const numbers[3])
{
	bool wanted = false;
	for (size_t i = 0; i < 3; i++)
		wanted |= *numbers[i] == UINT32_MAX;
	if (!wanted)
		return true;
	for (size_t at = 0; extra_size - at >= 4;) {
		size_t size = lade__le16(extra + at + 2), id = lade__le16(extra + at);
		at += 4;
		if (size > extra_size - at)
			return false;
		size_t from = at;
		for (size_t i = 0; i < 3 && id == 1; i++) {
			if (*numbers[i] != UINT32_MAX)
				continue;
			if (at + size - from < 8)
				return false;
			*numbers[i] = lade__le64(extra + from);
			from += 8;
		}
		if (id == 1)
			return true;
		at += size;
	}
	return true; /* then it is a file of 4 GiB - 1 */
}

/*
 * | signature 4 | made by 2 | needs 2 | flags 2 | method 2 | time 4 | crc 4 | stored size 4 |
 * | size 4 | name's 2 | extra's 2 | comment's 2 | disk 2 | attributes 2 + 4 | offset 4 |
 * | name | extra | comment |
 *
 * '*used' gets its bytes.
 */
static lade_status read_entry(parse *p, lade__zip *zip, const uint8_t *from, size_t left,
                              size_t *used)
{
	uint64_t here = p->off + (p->size - left);
	if (left < ZIP_ENTRY_SIZE || lade__le32(from) != ZIP_ENTRY)
		return corrupt(p, here, "an entry of the directory is missing");
	size_t name_size = lade__le16(from + 28), extra_size = lade__le16(from + 30);
	*used = ZIP_ENTRY_SIZE + name_size + extra_size + lade__le16(from + 32);
	if (*used > left)
		return corrupt(p, here, "an entry is longer than the directory");
	uint64_t stored = lade__le32(from + 20), size = lade__le32(from + 24);
	uint64_t off = lade__le32(from + 42);
	if (!read_zip64(from + ZIP_ENTRY_SIZE + name_size, extra_size,
	                (uint64_t *const[]){&size, &stored, &off}))
		return corrupt(p, here, "an entry's zip64 field is too short");
	if (off > p->off || p->off - off < ZIP_LOCAL_SIZE || stored > p->off - off - ZIP_LOCAL_SIZE)
		return corrupt(p, here, "an entry's bytes are not before the directory");
	uint16_t method = lade__le16(from + 10);
	if (method == ZIP_STORED && stored != size)
		return corrupt(p, here, "an entry that is stored has two sizes");
	char key[LADE_KEY_MAX + 1];
	const char *name = (const char *)from + ZIP_ENTRY_SIZE;
	if (name_size > LADE_KEY_MAX || memchr(name, 0, name_size))
		return LADE_OK;
	memcpy(key, name, name_size);
	key[name_size] = 0;
	if (lade_key_check(key, NULL) != LADE_OK)
		return LADE_OK;
	lade__zip_entry *e;
	lade_status status = lade__zip_add(zip, key, name_size, &e, p->err);
	if (status != LADE_OK)
		return status;
	e->local_off = off;
	e->stored_size = stored;
	e->size = size;
	e->crc = lade__le32(from + 16);
	e->method = method;
	e->flags = lade__le16(from + 8);
	return LADE_OK;
}

lade_status lade__zip_read(lade__zip *zip, lade_source source, const lade_object_version *version,
                           uint64_t object_size, uint64_t size_max, lade_error *err)
{
	parse *p = malloc(sizeof *p);
	uint8_t *directory = NULL;
	lade_status status;
	if (!p)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a zip file");
	*p = (parse){.source = source, .version = version, .object_size = object_size, .err = err};
	TRY(read_end(p));
	if (p->off > p->end_off || p->size > p->end_off - p->off ||
	    p->count > p->size / ZIP_ENTRY_SIZE)
		TRY(corrupt(p, p->end_off, "the directory does not fit before its end"));
	if (p->size > size_max || p->size > SIZE_MAX)
		TRY(lade_fail(err, LADE_E_LIMIT, p->end_off,
		              "zip: the directory has %" PRIu64 " bytes, the limit is %" PRIu64,
		              p->size, size_max));
	zip->directory_off = p->off;
	directory = malloc((size_t)p->size + 1);
	if (!directory)
		TRY(lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		              "no memory for a zip directory of %" PRIu64 " bytes", p->size));
	TRY(read_at(p, p->off, directory, (size_t)p->size));
	size_t at = 0, used;
	for (uint64_t i = 0; i < p->count; i++, at += used)
		TRY(read_entry(p, zip, directory + at, (size_t)p->size - at, &used));
out:
	free(directory);
	free(p);
	if (status != LADE_OK)
		lade__zip_reset(zip);
	return status;
}
