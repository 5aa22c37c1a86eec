/*
 * file.c: ROOT's container, TFile: the header, directories, keys, and the anchor of an RNTuple.
 * All numbers are big-endian.  Free lists and streamer infos are not read.
 *
 *     | header | key, directory | ... | key of an anchor, anchor | ... | list of keys | ... |
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple/rntuple.h"

#include "base/try.h"

#include <lade/checksum.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	HEAD_SIZE = 64,      /* what is read of the header: fields up to fNbytesName */
	DIRECTORY_SIZE = 42, /* up to fSeekKeys, with 8-byte seeks */
	ANCHOR_SIZE = 78,
	ANCHOR_MAX = 4096,
	NAME_MAX_SIZE = 1024, /* of a path */
	DEPTH_MAX = 32,
	DIRECTORIES_MAX = 10000,
	KEY_LIST_MAX = 16 << 20,
	TUPLES_MAX = 1000,
};

lade_status lade__rnt_fetch(const rnt_file *file, uint64_t off, void *to, size_t size,
                            lade_error *err)
{
	lade_range range = {.off = off, .dst = lade_host_span(to, size)};
	lade_io_options options = {.struct_size = sizeof options,
	                           .request_size = sizeof range,
	                           .cancel = file->cancel};
	if (file->size != LADE_SIZE_UNKNOWN && (off > file->size || size > file->size - off))
		return lade_fail(err, LADE_E_TRUNCATED, off,
		                 "rntuple: want %zu bytes at byte %" PRIu64
		                 ", the file has %" PRIu64,
		                 size, off, file->size);
	const uint8_t *held = lade__rnt_held(file, off, size);
	if (held && size) {
		memcpy(to, held, size);
		return LADE_OK;
	}
	range.want = file->version.size ? &file->version : NULL;
	lade_status status = lade_source_read(file->source, &range, 1, &options, err);
	if (status == LADE_E_RANGE)
		return lade_fail(err, LADE_E_TRUNCATED, off,
		                 "rntuple: want %zu bytes at byte %" PRIu64
		                 ", the file ends before",
		                 size, off);
	return status;
}

/* ---- keys ----------------------------------------------------------------------------------- */

static uint64_t be(const uint8_t *p, size_t size)
{
	uint64_t value = 0;
	for (size_t i = 0; i < size; i++)
		value = value << 8 | p[i];
	return value;
}

typedef struct text {
	const uint8_t *data;
	size_t size;
} text;

typedef struct key {
	uint32_t size;         /* of the record, the key included */
	uint32_t decoded_size; /* of what follows the key */
	uint16_t key_size, cycle;
	uint64_t off; /* of the record */
	text class, name;
	size_t image; /* bytes that were parsed */
} key;

static bool take_text(const uint8_t *data, size_t size, size_t *at, text *out)
{
	if (*at >= size)
		return false;
	size_t n = data[(*at)++];
	if (n == 255) {
		if (size - *at < 4)
			return false;
		n = (size_t)be(data + *at, 4);
		*at += 4;
	}
	if (n > size - *at)
		return false;
	*out = (text){data + *at, n};
	*at += n;
	return true;
}

/* | size 4 | version 2 | decoded size 4 | date 4 | key size 2 | cycle 2 | seeks | 3 texts | */
static bool take_key(const uint8_t *data, size_t size, key *out)
{
	if (size < 26)
		return false;
	bool big = (int16_t)be(data + 4, 2) > 1000;
	size_t at = big ? 34 : 26;
	if (size < at || (int32_t)be(data, 4) < 0 || (int32_t)be(data + 6, 4) < 0)
		return false;
	int16_t cycle = (int16_t)be(data + 16, 2);
	*out = (key){.size = (uint32_t)be(data, 4),
	             .decoded_size = (uint32_t)be(data + 6, 4),
	             .key_size = (uint16_t)be(data + 14, 2),
	             .cycle = (uint16_t)(cycle < 0 ? -cycle : cycle),
	             .off = be(data + 18, big ? 8 : 4)};
	text title;
	if (out->key_size > INT16_MAX || !take_text(data, size, &at, &out->class) ||
	    !take_text(data, size, &at, &out->name) || !take_text(data, size, &at, &title))
		return false;
	out->image = at;
	return out->key_size >= at && out->size >= out->key_size;
}

static bool text_is(text t, const char *want)
{
	return t.size == strlen(want) && memcmp(t.data, want, t.size) == 0;
}

/* ---- directories ---------------------------------------------------------------------------- */

/* | "root" | version 4 | begin 4 | end 4/8 | free 4/8 | 4 | 4 | name 4 | ... */
lade_status lade__rnt_file_begin(rnt_file *file, lade_error *err)
{
	uint8_t head[HEAD_SIZE];
	lade_status status = lade__rnt_hold_ends(file, err);
	if (status == LADE_OK)
		status = lade__rnt_fetch(file, 0, head, sizeof head, err);
	if (status == LADE_E_TRUNCATED)
		return lade_fail(err, LADE_E_TRUNCATED, 0,
		                 "rntuple: a ROOT file has at least %d bytes, this one fewer",
		                 HEAD_SIZE);
	if (status == LADE_OK && memcmp(head, "root", 4) != 0)
		return lade_fail(err, LADE_E_CORRUPT, 0,
		                 "rntuple: not a ROOT file: it does not begin with \"root\"");
	return status;
}

/* Where the list of keys is that the directory record at 'off' names; size 0: it has none. */
static lade_status read_directory(const rnt_file *file, uint64_t off, rnt_locator *keys,
                                  lade_error *err)
{
	uint8_t d[DIRECTORY_SIZE];
	/* A small record may end the file: its own fields and its UUID have as many bytes. */
	lade_status status = lade__rnt_fetch(file, off, d, sizeof d, err);
	if (status != LADE_OK)
		return status;
	bool big = (int16_t)be(d, 2) > 1000;
	*keys = (rnt_locator){.off = big ? be(d + 34, 8) : be(d + 26, 4), .size = be(d + 10, 4)};
	if (keys->off == 0)
		keys->size = 0;
	if (keys->size > KEY_LIST_MAX)
		return lade_fail(err, LADE_E_LIMIT, off + 10,
		                 "rntuple: a list of keys has %" PRIu64 " bytes, the limit is %d",
		                 keys->size, KEY_LIST_MAX);
	return LADE_OK;
}

typedef struct walk {
	const rnt_file *file;
	rnt_visit *visit;
	void *ctx;
	size_t directory_count, tuple_count;
	char path[NAME_MAX_SIZE];
} walk;

static lade_status walk_directory(walk *w, uint64_t off, size_t path_size, unsigned depth,
                                  lade_error *err);

/* A later key of the same class and name with a higher cycle replaces this one. */
static bool replaced(const key *k, const uint8_t *data, size_t size, size_t at, uint32_t left)
{
	key other;
	for (; left && take_key(data + at, size - at, &other); left--, at += other.image)
		if (other.cycle > k->cycle && other.name.size == k->name.size &&
		    memcmp(other.name.data, k->name.data, k->name.size) == 0 &&
		    text_is(other.class, "ROOT::RNTuple"))
			return true;
	return false;
}

static lade_status visit_key(walk *w, const key *k, size_t path_size, unsigned depth,
                             lade_error *err)
{
	bool directory = text_is(k->class, "TDirectory") || text_is(k->class, "TDirectoryFile");
	bool old = text_is(k->class, "ROOT::Experimental::RNTuple");
	if (!directory && !old && !text_is(k->class, "ROOT::RNTuple"))
		return LADE_OK;
	if (k->name.size > sizeof w->path - 2 - path_size || memchr(k->name.data, 0, k->name.size))
		return lade_fail(err, LADE_E_LIMIT, k->off,
		                 "rntuple: a name of %zu bytes has a NUL or is too long",
		                 k->name.size);
	memcpy(w->path + path_size, k->name.data, k->name.size);
	path_size += k->name.size;
	w->path[path_size] = 0;
	if (old)
		return w->visit(w->ctx, w->path, 0, 0, err);
	if (!directory)
		return w->visit(w->ctx, w->path, k->off, k->size, err);
	w->path[path_size++] = '/';
	w->path[path_size] = 0;
	return walk_directory(w, k->off + k->key_size, path_size, depth + 1, err);
}

/* 'data' has the list of keys. */
static lade_status walk_keys(walk *w, const uint8_t *data, rnt_locator list, size_t path_size,
                             unsigned depth, lade_error *err)
{
	key k;
	size_t size = (size_t)list.size;
	uint64_t off = list.off;
	if (!take_key(data, size, &k) || k.key_size > size || size - k.key_size < 4)
		return lade_fail(err, LADE_E_CORRUPT, off,
		                 "rntuple: the list of keys at byte %" PRIu64 " is not valid", off);
	size_t at = k.key_size + (size_t)4;
	uint32_t count = (uint32_t)be(data + k.key_size, 4);
	for (uint32_t i = 0; i < count; i++) {
		if (!take_key(data + at, size - at, &k))
			return lade_fail(err, LADE_E_CORRUPT, off + at,
			                 "rntuple: key %" PRIu32 " of %" PRIu32 ", at byte %" PRIu64
			                 ", is not valid",
			                 i, count, off + at);
		at += k.image;
		if (!text_is(k.class, "ROOT::RNTuple")) {
			/* A directory, or something else. */
		} else if (++w->tuple_count > TUPLES_MAX) {
			return lade_fail(err, LADE_E_LIMIT, off + at,
			                 "rntuple: the file has more than %d RNTuples", TUPLES_MAX);
		} else if (replaced(&k, data, size, at, count - i - 1)) {
			continue;
		}
		lade_status status = visit_key(w, &k, path_size, depth, err);
		if (status != LADE_OK)
			return status;
	}
	return LADE_OK;
}

static lade_status walk_directory(walk *w, uint64_t off, size_t path_size, unsigned depth,
                                  lade_error *err)
{
	rnt_locator keys = {0, 0};
	if (depth > DEPTH_MAX || ++w->directory_count > DIRECTORIES_MAX)
		return lade_fail(err, LADE_E_LIMIT, off,
		                 "rntuple: more than %d levels or %d directories", DEPTH_MAX,
		                 DIRECTORIES_MAX);
	lade_status status = read_directory(w->file, off, &keys, err);
	if (status != LADE_OK || keys.size == 0)
		return status;
	/* A size beyond the file's is refused before it is allocated, where the size is known. */
	if (w->file->size != LADE_SIZE_UNKNOWN && keys.size > w->file->size)
		return lade_fail(err, LADE_E_TRUNCATED, keys.off,
		                 "rntuple: a list of keys has %" PRIu64 " bytes, the file %" PRIu64,
		                 keys.size, w->file->size);
	uint8_t *data = malloc((size_t)keys.size);
	if (!data)
		return lade__rnt_nomem(err);
	status = lade__rnt_fetch(w->file, keys.off, data, (size_t)keys.size, err);
	if (status == LADE_OK)
		status = walk_keys(w, data, keys, path_size, depth, err);
	free(data);
	return status;
}

lade_status lade__rnt_file_walk(const rnt_file *file, rnt_visit *visit, void *ctx, lade_error *err)
{
	uint8_t head[HEAD_SIZE];
	walk w = {.file = file, .visit = visit, .ctx = ctx};
	lade_status status = lade__rnt_fetch(file, 0, head, sizeof head, err);
	if (status != LADE_OK)
		return status;
	bool big = (int32_t)be(head + 4, 4) >= 1000000;
	uint64_t begin = be(head + 8, 4), name = be(head + (big ? 36 : 28), 4);
	return walk_directory(&w, begin + name, 0, 0, err);
}

/* ---- the anchor ----------------------------------------------------------------------------- */

/*
 * | byte count 4 | class version 2 | epoch, major, minor, patch 8 |
 * | header: off, stored, decoded 24 | footer 24 | largest key 8 | ... | XXH3 8 |
 * The XXH3 is of all before it from byte 6 on.
 */
static lade_status parse_anchor(const uint8_t *a, size_t size, uint64_t off, rnt_anchor *out,
                                lade_error *err)
{
	if (size < ANCHOR_SIZE)
		return lade_fail(err, size >= 58 ? LADE_E_VERSION : LADE_E_CORRUPT, off,
		                 "rntuple: the anchor has %zu bytes, want %d", size, ANCHOR_SIZE);
	for (size_t i = 0; i < 4; i++)
		out->version[i] = (uint16_t)be(a + 6 + 2 * i, 2);
	if (out->version[0] != 1)
		return lade_fail(err, LADE_E_VERSION, off + 6,
		                 "rntuple: epoch %u of the format, this library reads epoch 1",
		                 out->version[0]);
	uint64_t have = lade_checksum_of(LADE_XXH3, a + 6, size - 14);
	if (be(a + size - 8, 8) != have)
		return lade_fail(err, LADE_E_CHECKSUM, off + size - 8,
		                 "rntuple: the anchor's checksum is %016" PRIx64
		                 ", stored is %016" PRIx64,
		                 have, be(a + size - 8, 8));
	out->header = (rnt_link){{be(a + 14, 8), be(a + 22, 8)}, be(a + 30, 8)};
	out->footer = (rnt_link){{be(a + 38, 8), be(a + 46, 8)}, be(a + 54, 8)};
	out->key_max = be(a + 62, 8);
	return LADE_OK;
}

lade_status lade__rnt_anchor_read(const rnt_file *file, uint64_t key_off, uint32_t key_size,
                                  rnt_anchor *out, lade_error *err)
{
	uint8_t data[ANCHOR_MAX], decoded[ANCHOR_MAX];
	key k;
	if (key_size > sizeof data)
		return lade_fail(err, LADE_E_LIMIT, key_off,
		                 "rntuple: the anchor's record has %u bytes, the limit is %d",
		                 key_size, ANCHOR_MAX);
	lade_status status = lade__rnt_fetch(file, key_off, data, key_size, err);
	if (status != LADE_OK)
		return status;
	if (!take_key(data, key_size, &k) || k.size > key_size ||
	    !text_is(k.class, "ROOT::RNTuple"))
		return lade_fail(err, LADE_E_CORRUPT, key_off,
		                 "rntuple: the anchor's key at byte %" PRIu64 " is not valid",
		                 key_off);
	const uint8_t *payload = data + k.key_size;
	size_t size = k.size - k.key_size;
	if (k.decoded_size > size) {
		if (k.decoded_size > sizeof decoded)
			return lade_fail(err, LADE_E_LIMIT, key_off,
			                 "rntuple: the anchor has %u bytes, the limit is %d",
			                 k.decoded_size, ANCHOR_MAX);
		status = lade__rnt_inflate(file, payload, size, decoded, k.decoded_size, err);
		if (status != LADE_OK)
			return status;
		payload = decoded;
		size = k.decoded_size;
	}
	return parse_anchor(payload, size, key_off + k.key_size, out, err);
}
