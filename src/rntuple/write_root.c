/*
 * write_root.c: TFile's records around an RNTuple.  All numbers are big-endian.
 *
 *     | header 100 | key, directory | ... | anchor | list of keys | streamer infos | free list |
 *
 * Offsets above 2,000,000,000 take 8 bytes; each record says whether its own do.  Dates and UUIDs
 * are constants: the same entries give the same file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple/write.h"

#include "base/try.h"

#include <lade/checksum.h>

#include <stdlib.h>

enum {
	BEGIN = 100,
	VERSION = 63400,   /* of ROOT: 6.34.00, the first with this format */
	DATE = 0x00420000, /* 1995-01-01 00:00:00 */
	DIRECTORY = 60,    /* bytes of a directory's record */
	INFO_DECODED = 1226,
};

/* The list of streamer infos that ROOT 6.35 writes for ROOT::RNTuple: one compressed block. */
static const uint8_t infos[] = {
	0x5a, 0x4c, 0x08, 0x46, 0x01, 0x00, 0xca, 0x04, 0x00, 0x78, 0x01, 0xbd, 0x92, 0xcf, 0x4a,
	0xc3, 0x40, 0x10, 0xc6, 0xbf, 0xc6, 0x08, 0xd6, 0xaa, 0xe0, 0x4d, 0xe9, 0xc5, 0x87, 0x10,
	0x0f, 0x3d, 0xc5, 0x82, 0xa2, 0xf4, 0x4f, 0xa4, 0x49, 0x3d, 0xb4, 0x88, 0x6c, 0xdb, 0x49,
	0x9b, 0x6a, 0x77, 0xc3, 0x26, 0x05, 0xe3, 0xa9, 0xcf, 0xe1, 0xd1, 0x27, 0xf0, 0x29, 0x04,
	0x1f, 0xc8, 0xb3, 0x4e, 0xd2, 0xa2, 0x2d, 0x58, 0xac, 0x81, 0xfa, 0xc1, 0x4e, 0x92, 0xd9,
	0xd9, 0xf9, 0x85, 0x6f, 0xd6, 0x82, 0xf9, 0x8a, 0x4d, 0xe4, 0x30, 0xa7, 0x9c, 0x05, 0xf3,
	0xe5, 0x83, 0xe5, 0x3a, 0x91, 0x26, 0x31, 0x22, 0x7d, 0x29, 0x3d, 0x05, 0xce, 0x3e, 0x21,
	0x6f, 0x01, 0x45, 0x2e, 0x9f, 0x1e, 0xe0, 0xb8, 0xdb, 0xb0, 0x6d, 0xb7, 0x54, 0x6a, 0xd4,
	0xdd, 0x71, 0x70, 0x4f, 0xa8, 0x3c, 0x17, 0xdf, 0xb9, 0x95, 0xc1, 0xc5, 0xa3, 0xb4, 0x85,
	0xdd, 0x19, 0x9e, 0x6a, 0x2d, 0xe2, 0xe4, 0x78, 0x1b, 0x1b, 0x8b, 0xa4, 0x02, 0x97, 0xf2,
	0x06, 0xc6, 0x0b, 0xb4, 0xb2, 0x08, 0xfd, 0xae, 0x1b, 0x07, 0x94, 0x6c, 0xb5, 0x60, 0x70,
	0x74, 0x61, 0x72, 0xfc, 0x06, 0x83, 0xc1, 0xde, 0x35, 0xe9, 0xd0, 0x57, 0xf2, 0x2c, 0x50,
	0xdd, 0x01, 0x27, 0xb0, 0xc3, 0xcb, 0x48, 0x5e, 0x96, 0x69, 0x6f, 0x2c, 0x43, 0xbf, 0x2f,
	0xa9, 0x77, 0x14, 0x0e, 0x94, 0x8e, 0x2c, 0xa0, 0x33, 0x01, 0xde, 0xf8, 0xf9, 0x3b, 0xa5,
	0x26, 0x86, 0x4a, 0x27, 0x8d, 0xd7, 0x4b, 0xf1, 0xe5, 0x3f, 0x50, 0xae, 0x44, 0x94, 0xd9,
	0xb1, 0xf6, 0xcc, 0x31, 0x07, 0x86, 0x05, 0xd4, 0xd2, 0xb9, 0x1c, 0x7e, 0x5d, 0x08, 0x00,
	0x05, 0xcf, 0x21, 0xba, 0xbb, 0x20, 0xd1, 0xa3, 0xd4, 0xaf, 0x7d, 0xce, 0x6d, 0xf1, 0x5a,
	0xaa, 0x7c, 0xb3, 0xaa, 0x64, 0xff, 0xe4, 0xf8, 0x36, 0x19, 0xc8, 0xcd, 0x64, 0x3a, 0x90,
	0x26, 0x0c, 0xfe, 0xb2, 0x7f, 0x1a, 0x7b, 0xbd, 0x1c, 0x47, 0x14, 0x66, 0x05, 0xb4, 0x66,
	0x80, 0x46, 0x0a, 0xa8, 0xa6, 0x80, 0x83, 0xf9, 0xff, 0xdf, 0xf6, 0xaa, 0x24, 0xb3, 0x76,
	0x5f, 0xd1, 0x9d, 0x73, 0xa5, 0xa2, 0xb5, 0xba, 0x93, 0x15, 0xb0, 0x9a, 0x3b, 0x59, 0xbb,
	0xaf, 0xe0, 0x4e, 0x4d, 0x3c, 0x54, 0x28, 0x76, 0xfc, 0x47, 0x02, 0xeb, 0x0f, 0x77, 0x07,
	0x9f, 0xa1, 0x0b, 0xad, 0xa1,
};

/* ---- records -------------------------------------------------------------------------------- */

typedef struct head {
	uint64_t size; /* behind the key */
	uint64_t decoded_size;
	uint64_t off; /* of the record */
	uint64_t parent;
	const char *class, *name, *title;
} head;

/* | size 1 | bytes |, or | 255 | size 4 | bytes | */
static void put_text(rnt_out *out, const char *text)
{
	size_t size = strlen(text);
	if (size >= 255)
		lade__rnt_put_be(out, 255, 1);
	lade__rnt_put_be(out, size, size < 255 ? 1 : 4);
	lade__rnt_put_bytes(out, text, size);
}

/* | size 4 | version 2 | decoded size 4 | date 4 | key size 2 | cycle 2 | seeks | 3 texts | */
static void put_key(rnt_out *out, const head *h)
{
	bool big = h->off > RNT_BIG;
	size_t begin = out->size, seek = big ? 8 : 4;
	lade__rnt_put_be(out, 0, 4);
	lade__rnt_put_be(out, big ? 1004 : 4, 2);
	lade__rnt_put_be(out, h->decoded_size, 4);
	lade__rnt_put_be(out, DATE, 4);
	lade__rnt_put_be(out, 0, 2);
	lade__rnt_put_be(out, 1, 2);
	lade__rnt_put_be(out, h->off, seek);
	lade__rnt_put_be(out, h->parent, seek);
	put_text(out, h->class);
	put_text(out, h->name);
	put_text(out, h->title);
	if (out->failed)
		return;
	size_t key = out->size - begin, all = key + (size_t)h->size;
	for (size_t i = 0; i < 4; i++)
		out->data[begin + i] = (uint8_t)(all >> 8 * (3 - i));
	out->data[begin + 14] = (uint8_t)(key >> 8);
	out->data[begin + 15] = (uint8_t)key;
}

void lade__rnt_put_blob_key(rnt_out *out, const rnt_sinkfile *file, uint64_t size,
                            uint64_t decoded_size)
{
	head h = {.size = size,
	          .decoded_size = decoded_size,
	          .off = file->at,
	          .parent = file->root.begin,
	          .class = "RBlob",
	          .name = "",
	          .title = ""};
	put_key(out, &h);
}

/* | version 2 | made, changed 8 | bytes of keys 4 | of the name 4 | seeks 3 x 4 or 8 | UUID 18 | */
static void put_directory(rnt_out *out, const rnt_root *root, uint64_t keys_off, size_t keys_size)
{
	bool big = keys_off > RNT_BIG;
	size_t begin = out->size, seek = big ? 8 : 4;
	lade__rnt_put_be(out, big ? 1005 : 5, 2);
	lade__rnt_put_be(out, DATE, 4);
	lade__rnt_put_be(out, DATE, 4);
	lade__rnt_put_be(out, keys_size, 4);
	lade__rnt_put_be(out, root->name_size, 4);
	lade__rnt_put_be(out, BEGIN, seek);
	lade__rnt_put_be(out, 0, seek);
	lade__rnt_put_be(out, keys_off, seek);
	lade__rnt_put_be(out, 1, 2);
	while (!out->failed && out->size - begin < DIRECTORY)
		lade__rnt_put_be(out, 0, 1);
}

static void put_first(rnt_out *out, rnt_sinkfile *file, uint64_t keys_off, size_t keys_size)
{
	size_t text = strlen(file->name) + (strlen(file->name) < 255 ? 1 : 5) + 1;
	head h = {.size = text + DIRECTORY,
	          .decoded_size = text + DIRECTORY,
	          .off = BEGIN,
	          .class = "TFile",
	          .name = file->name,
	          .title = ""};
	put_key(out, &h);
	file->root.name_size = (uint32_t)(out->size + text);
	put_text(out, file->name);
	put_text(out, "");
	put_directory(out, &file->root, keys_off, keys_size);
}

/* Writes 'out' at 'off' and frees it. */
static lade_status write_out(rnt_sinkfile *file, rnt_out *out, uint64_t off, lade_error *err)
{
	struct iovec piece = {out->data, out->size};
	lade_status status =
		out->failed ? lade__rnt_nomem(err) : lade__rnt_write_at(file, &piece, 1, off, err);
	lade__rnt_out_free(out);
	return status;
}

lade_status lade__rnt_root_begin(rnt_sinkfile *file, lade_error *err)
{
	static const uint8_t zeros[BEGIN];
	rnt_out out = {0};
	file->root = (rnt_root){.version = VERSION, .begin = BEGIN, .uuid = {0, 1}};
	put_first(&out, file, 0, 0);
	rnt_out all = {0};
	lade__rnt_put_bytes(&all, zeros, sizeof zeros);
	lade__rnt_put_bytes(&all, out.data, out.size);
	all.failed |= out.failed;
	file->at = all.size;
	lade__rnt_out_free(&out);
	return write_out(file, &all, 0, err);
}

/* ---- the anchor ----------------------------------------------------------------------------- */

/*
 * | byte count 4 | class version 2 | epoch, major, minor, patch 8 |
 * | header: off, stored, decoded 24 | footer 24 | largest key 8 | XXH3 8 |
 */
void lade__rnt_anchor_bytes(const rnt_anchor *a, uint8_t out[78])
{
	const rnt_link *links[2] = {&a->header, &a->footer};
	uint8_t *at = out;
	uint64_t values[13] = {0x40000042,   2, a->version[0], a->version[1], a->version[2],
	                       a->version[3]};
	size_t sizes[13] = {4, 2, 2, 2, 2, 2, 8, 8, 8, 8, 8, 8, 8}, n = 6;
	for (size_t i = 0; i < 2; i++) {
		values[n++] = links[i]->at.off;
		values[n++] = links[i]->at.size;
		values[n++] = links[i]->decoded_size;
	}
	values[n++] = a->key_max;
	for (size_t i = 0; i < n; i++)
		for (size_t k = sizes[i]; k-- > 0;)
			*at++ = (uint8_t)(values[i] >> 8 * k);
	uint64_t sum = lade_checksum_of(LADE_XXH3, out + 6, 64);
	for (size_t k = 8; k-- > 0;)
		*at++ = (uint8_t)(sum >> 8 * k);
}

/* ---- what is behind the footer -------------------------------------------------------------- */

/* The anchor and the list of keys, which has its key once more. */
static void put_anchor(rnt_out *out, rnt_sinkfile *file, const char *name, const rnt_anchor *anchor,
                       uint64_t *keys_off, size_t *keys_size)
{
	uint8_t bytes[78];
	head a = {.size = sizeof bytes,
	          .decoded_size = sizeof bytes,
	          .off = file->at,
	          .parent = BEGIN,
	          .class = "ROOT::RNTuple",
	          .name = name,
	          .title = ""};
	lade__rnt_anchor_bytes(anchor, bytes);
	put_key(out, &a);
	size_t image = out->size;
	file->anchor = file->at + out->size;
	lade__rnt_put_bytes(out, bytes, sizeof bytes);
	*keys_off = file->at + out->size;
	size_t begin = out->size;
	head list = {.size = 4 + image,
	             .decoded_size = 4 + image,
	             .off = *keys_off,
	             .parent = BEGIN,
	             .class = "",
	             .name = file->name,
	             .title = ""};
	put_key(out, &list);
	lade__rnt_put_be(out, 1, 4);
	put_key(out, &a);
	*keys_size = out->size - begin;
}

lade_status lade__rnt_root_finish(rnt_sinkfile *file, const char *name, const rnt_anchor *anchor,
                                  lade_error *err)
{
	rnt_out out = {0}, first = {0};
	uint64_t keys_off;
	size_t keys_size;
	put_anchor(&out, file, name, anchor, &keys_off, &keys_size);
	size_t begin = out.size;
	head info = {.size = sizeof infos,
	             .decoded_size = INFO_DECODED,
	             .off = file->at + out.size,
	             .parent = BEGIN,
	             .class = "TList",
	             .name = "StreamerInfo",
	             .title = "Doubly linked list"};
	put_key(&out, &info);
	lade__rnt_put_bytes(&out, infos, sizeof infos);
	file->root.info_off = info.off;
	file->root.info_size = (uint32_t)(out.size - begin);
	uint64_t at = file->at;
	file->at += out.size;
	lade_status status = write_out(file, &out, at, err);
	put_first(&first, file, keys_off, keys_size);
	if (status == LADE_OK)
		return write_out(file, &first, BEGIN, err);
	lade__rnt_out_free(&first);
	return status;
}

/* The file ends behind this record, which says that all behind it is free. */
lade_status lade__rnt_root_free(rnt_sinkfile *file, lade_error *err)
{
	rnt_out out = {0};
	rnt_root *root = &file->root;
	/* Its end may need 8 bytes before it does. */
	bool big = file->at > RNT_BIG - 4096;
	head h = {.size = big ? 18 : 10,
	          .off = file->at,
	          .parent = BEGIN,
	          .class = "",
	          .name = file->name,
	          .title = ""};
	h.decoded_size = h.size;
	put_key(&out, &h);
	uint64_t end = file->at + out.size + h.size;
	lade__rnt_put_be(&out, big ? 1001 : 1, 2);
	lade__rnt_put_be(&out, end, big ? 8 : 4);
	lade__rnt_put_be(&out, big ? (end / 1000000000 + 1) * 1000000000 : RNT_BIG, big ? 8 : 4);
	root->free_off = file->at;
	root->free_size = (uint32_t)out.size;
	root->end = end;
	file->at = end;
	return write_out(file, &out, root->free_off, err);
}

/* | "root" | version 4 | begin 4 | end | free off | free size 4 | free count 4 | name size 4 |
 * | 4 or 8 | compression 4 | infos off | infos size 4 | UUID 18 | */
lade_status lade__rnt_root_head(rnt_sinkfile *file, lade_error *err)
{
	rnt_out out = {0};
	const rnt_root *r = &file->root;
	bool big = r->end > RNT_BIG || r->info_off > RNT_BIG;
	size_t seek = big ? 8 : 4;
	lade__rnt_put_bytes(&out, "root", 4);
	lade__rnt_put_be(&out, r->version % 1000000 + (big ? 1000000 : 0), 4);
	lade__rnt_put_be(&out, r->begin, 4);
	lade__rnt_put_be(&out, r->end, seek);
	lade__rnt_put_be(&out, r->free_off, seek);
	lade__rnt_put_be(&out, r->free_size, 4);
	lade__rnt_put_be(&out, 1, 4);
	lade__rnt_put_be(&out, r->name_size, 4);
	lade__rnt_put_be(&out, seek, 1);
	lade__rnt_put_be(&out, r->compress, 4);
	lade__rnt_put_be(&out, r->info_off, seek);
	lade__rnt_put_be(&out, r->info_size, 4);
	lade__rnt_put_bytes(&out, r->uuid, sizeof r->uuid);
	return write_out(file, &out, 0, err);
}

static uint64_t take(const uint8_t **at, size_t size)
{
	uint64_t value = 0;
	for (size_t i = 0; i < size; i++)
		value = value << 8 | *(*at)++;
	return value;
}

bool lade__rnt_root_parse(const uint8_t bytes[80], rnt_root *out)
{
	const uint8_t *at = bytes + 4;
	if (memcmp(bytes, "root", 4) != 0)
		return false;
	out->version = (uint32_t)take(&at, 4);
	size_t seek = out->version >= 1000000 ? 8 : 4;
	out->begin = (uint32_t)take(&at, 4);
	out->end = take(&at, seek);
	out->free_off = take(&at, seek);
	out->free_size = (uint32_t)take(&at, 4);
	take(&at, 4);
	out->name_size = (uint32_t)take(&at, 4);
	take(&at, 1);
	out->compress = (uint32_t)take(&at, 4);
	out->info_off = take(&at, seek);
	out->info_size = (uint32_t)take(&at, 4);
	memcpy(out->uuid, at, sizeof out->uuid);
	return true;
}
