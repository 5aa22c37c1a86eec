/*
 * flat.h: reads tables of FlatBuffers, the metadata of Arrow's files.  Nothing is trusted: a place
 * outside the bytes sets 'bad' and reads as absent.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_SHARE_FLAT_H
#define LADE_SHARE_FLAT_H

#include "base/support.h"

typedef struct lade__flat {
	const uint8_t *bytes;
	size_t size;
	bool bad;
} lade__flat;

/* A table, and where its vtable is; slots 0: a table without fields. */
typedef struct lade__flat_table {
	lade__flat *in;
	size_t at, size, vtable, slots;
} lade__flat_table;

/* A vector: where its elements are, and how many. */
typedef struct lade__flat_vector {
	size_t at, count;
} lade__flat_vector;

static inline const uint8_t *lade__flat_bytes(lade__flat *f, size_t at, size_t size)
{
	if (at > f->size || size > f->size - at) {
		f->bad = true;
		return NULL;
	}
	return f->bytes + at;
}

/* The position that 4 bytes at 'at' lead to; 0: outside. */
static inline size_t lade__flat_follow(lade__flat *f, size_t at)
{
	const uint8_t *p = lade__flat_bytes(f, at, 4);
	size_t to = p ? at + lade__le32(p) : 0;

	return p && lade__flat_bytes(f, to, 4) ? to : 0;
}

static inline lade__flat_table lade__flat_table_at(lade__flat *f, size_t at)
{
	lade__flat_table t = {.in = f, .at = at};
	const uint8_t *p = lade__flat_bytes(f, at, 4);
	int64_t vtable = p ? (int64_t)at - (int32_t)lade__le32(p) : -1;

	p = vtable >= 0 ? lade__flat_bytes(f, (size_t)vtable, 4) : NULL;
	if (!p || lade__le16(p) < 4 || lade__le16(p + 2) < 4 ||
	    !lade__flat_bytes(f, (size_t)vtable, lade__le16(p)) ||
	    !lade__flat_bytes(f, at, lade__le16(p + 2))) {
		f->bad = true;
		return t;
	}
	t.vtable = (size_t)vtable;
	t.slots = (lade__le16(p) - 4u) / 2;
	t.size = lade__le16(p + 2);
	return t;
}

static inline lade__flat_table lade__flat_root(lade__flat *f)
{
	return lade__flat_table_at(f, lade__flat_follow(f, 0));
}

/* Where field 'slot' of 'size' bytes is; 0: it is absent. */
static inline size_t lade__flat_field(const lade__flat_table *t, size_t slot, size_t size)
{
	size_t off = slot < t->slots ? lade__le16(t->in->bytes + t->vtable + 4 + 2 * slot) : 0;

	if (off && (off < 4 || off > t->size || size > t->size - off)) {
		t->in->bad = true;
		return 0;
	}
	return off ? t->at + off : 0;
}

/* An integer of 1, 2, 4 or 8 bytes, with its sign. */
static inline int64_t lade__flat_int(const lade__flat_table *t, size_t slot, size_t size,
                                     int64_t absent)
{
	size_t at = lade__flat_field(t, slot, size);
	const uint8_t *p = t->in->bytes + at;

	if (!at)
		return absent;
	return size == 1   ? (int8_t)p[0]
	       : size == 2 ? (int16_t)lade__le16(p)
	       : size == 4 ? (int32_t)lade__le32(p)
	                   : (int64_t)lade__le64(p);
}

/* The table that a field leads to; false: it is absent. */
static inline bool lade__flat_sub(const lade__flat_table *t, size_t slot, lade__flat_table *out)
{
	size_t at = lade__flat_field(t, slot, 4);

	*out = (lade__flat_table){.in = t->in};
	if (at)
		*out = lade__flat_table_at(t->in, lade__flat_follow(t->in, at));
	return at && !t->in->bad;
}

/* A vector of elements of 'size' bytes; one that is absent has none. */
static inline lade__flat_vector lade__flat_vector_of(const lade__flat_table *t, size_t slot,
                                                     size_t size)
{
	size_t at = lade__flat_field(t, slot, 4), to = at ? lade__flat_follow(t->in, at) : 0;
	lade__flat_vector none = {0, 0}, v = {to + 4, to ? lade__le32(t->in->bytes + to) : 0};

	if (!to)
		return none;
	if (!lade__flat_bytes(t->in, v.at, v.count * size))
		return none;
	return v;
}

/* Table 'i' of a vector of tables. */
static inline lade__flat_table lade__flat_element(lade__flat *f, lade__flat_vector v, size_t i)
{
	return lade__flat_table_at(f, lade__flat_follow(f, v.at + 4 * i));
}

#endif
