/*
 * zip.h: the directory of a zip file.  What is implemented: APPNOTE.TXT 6.3, sections 4.3 and
 * 4.5.3; not: several disks, encryption, compressed directories.
 *
 *	| local header, name, extra field, data | ... | directory | [zip64 end, its locator] | end |
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_STORE_ZIP_H
#define LADE_STORE_ZIP_H

#include "store/store.h"

#define ZIP_LOCAL 0x04034b50u
#define ZIP_ENTRY 0x02014b50u
#define ZIP_END 0x06054b50u
#define ZIP64_END 0x06064b50u
#define ZIP64_LOCATOR 0x07064b50u

enum {
	ZIP_LOCAL_SIZE = 30,
	ZIP_ENTRY_SIZE = 46,
	ZIP_END_SIZE = 22,
	ZIP64_END_SIZE = 56,
	ZIP64_LOCATOR_SIZE = 20,
	ZIP_COMMENT_MAX = 65535,
	ZIP_STORED = 0,
	ZIP_DEFLATED = 8,
};

typedef struct lade__zip_entry {
	size_t name; /* in 'text' */
	size_t key_size;
	uint64_t local_off; /* of the local header */
	uint64_t stored_size, size;
	_Atomic uint64_t data_off; /* 0: not looked up yet */
	uint32_t crc;
	uint16_t method, flags;
	uint32_t next; /* of the same bucket, + 1; 0: none */
	bool gone;     /* a later entry has its name, or it was deleted */
} lade__zip_entry;

typedef struct lade__zip {
	uint64_t directory_off; /* entries' data ends before it */
	lade__zip_entry *entries;
	size_t count, room;
	char *text; /* keys, each with a NUL */
	size_t text_size, text_cap;
	uint32_t *buckets;   /* an entry's number + 1; 0: none */
	size_t bucket_count; /* a power of two */
} lade__zip;

/* Adds an entry whose name is a key; one of the same name is gone then.  '*out' gets it.
 * Fails: LADE_E_NOMEM, LADE_E_LIMIT */
lade_status lade__zip_add(lade__zip *zip, const char *name, size_t size, lade__zip_entry **out,
                          lade_error *err);
/* NULL: there is none */
lade__zip_entry *lade__zip_find(const lade__zip *zip, const char *key);
void lade__zip_reset(lade__zip *zip);

/* A store's listing.  The caller keeps the archive from being changed meanwhile. */
bool lade__zip_gather(const lade__zip *zip, const lade_store_listing *listing, lade__names *names);

/*
 * Reads the directory of an object of 'object_size' bytes.  'version' is that of all its bytes.
 * Names that are no keys are left out.
 * Fails: LADE_E_CORRUPT, LADE_E_TRUNCATED, LADE_E_UNSUPPORTED, LADE_E_LIMIT (the directory has more
 *        than 'size_max' bytes), LADE_E_NOMEM, and what reading fails with
 */
lade_status lade__zip_read(lade__zip *zip, lade_source source, const lade_object_version *version,
                           uint64_t object_size, uint64_t size_max, lade_error *err);

#endif
