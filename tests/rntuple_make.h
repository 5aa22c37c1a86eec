/*
 * rntuple_make.h: makes RNTuples that the library's writer never would: beyond 4 GiB, with payloads
 * in several keys, with large locators, in any type of column.
 *
 * Payloads go to a file, or stay as pieces of an object with holes, which has a source.  There are
 * no keys around payloads: readers find them through locators alone.
 *
 *     make m = {.fd = -1, .big = true};
 *     uint32_t field = make_field(&m, "x", "float", MAKE_TOP, 0, 0);
 *     uint32_t column = make_column(&m, field, 0x0B, 32);
 *     make_page(&m, column, data, size, elements);
 *     make_cluster(&m, entries);
 *     make_finish(&m, "name");
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_RNTUPLE_MAKE_H
#define LADE_TESTS_RNTUPLE_MAKE_H

#include "base/support.h"

#include <lade/checksum.h>
#include <lade/io.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAKE_TOP UINT32_MAX

typedef struct make_bytes {
	uint8_t *data;
	size_t size;
} make_bytes;

typedef struct make_piece {
	uint64_t off;
	make_bytes bytes;
} make_piece;

typedef struct make_page_place {
	uint64_t off, size;
	uint32_t column, cluster, count;
	bool none; /* no page: the column is suppressed, and lacks 'count' elements */
} make_page_place;

enum { MAKE_COLUMNS = 256 };

typedef struct make {
	int fd;           /* -1: pieces */
	bool big;         /* 8-byte seeks, large locators */
	uint64_t key_max; /* 0: payloads are in one key */
	uint64_t at;      /* where the next payload goes; grows by hand, too */
	make_piece *pieces;
	size_t piece_count;
	make_bytes fields, columns; /* records */
	uint32_t field_count, column_count;
	uint64_t first[MAKE_COLUMNS]; /* elements of a column that are not stored */
	uint32_t groups;              /* so many times the same one; 0: once */
	uint32_t attributes;          /* linked attribute sets, whose anchors are nowhere */
	make_page_place *pages;
	size_t page_count;
	uint64_t entries[4096];
	uint32_t cluster_count;
} make;

/* Tests end where there is no memory. */
static inline void *make_need(void *p)
{
	if (!p)
		abort();
	return p;
}

/* ---- bytes -------------------------------------------------------------------------------- */

static inline void make_add(make_bytes *b, const void *data, size_t size)
{
	b->data = make_need(realloc(b->data, b->size + size + 1));
	if (size)
		memcpy(b->data + b->size, data, size);
	b->size += size;
}

static inline void make_le(make_bytes *b, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		make_add(b, &(uint8_t){i < 8 ? (uint8_t)(value >> 8 * i) : 0}, 1);
}

static inline void make_be(make_bytes *b, uint64_t value, size_t size)
{
	while (size-- > 0)
		make_add(b, &(uint8_t){size < 8 ? (uint8_t)(value >> 8 * size) : 0}, 1);
}

static inline void make_text(make_bytes *b, const char *text)
{
	make_le(b, strlen(text), 4);
	make_add(b, text, strlen(text));
}

/* A frame around 'content', which is freed; 'count' NULL: a record. */
static inline void make_frame(make_bytes *b, make_bytes content, const uint32_t *count)
{
	size_t size = content.size + (count ? 12 : 8);
	make_le(b, count ? 0 - (uint64_t)size : size, 8);
	if (count)
		make_le(b, *count, 4);
	make_add(b, content.data, content.size);
	free(content.data);
}

static inline void make_locator(const make *m, make_bytes *b, uint64_t off, uint64_t size)
{
	if (m->big)
		make_le(b, 0 - (uint64_t)0x01000014, 4);
	make_le(b, size, m->big ? 8 : 4);
	make_le(b, off, 8);
}

/* ---- payloads ------------------------------------------------------------------------------ */

/* Puts bytes at an offset. */
static inline void make_put(make *m, uint64_t off, const void *data, size_t size)
{
	if (m->fd >= 0) {
		if (pwrite(m->fd, data, size, (off_t)off) != (ssize_t)size)
			abort();
		return;
	}
	m->pieces = make_need(realloc(m->pieces, (m->piece_count + 1) * sizeof *m->pieces));
	make_piece *p = &m->pieces[m->piece_count++];
	*p = (make_piece){.off = off};
	make_add(&p->bytes, data, size);
}

/* Appends a payload, in several keys if it is too large for one; returns where the first is. */
static inline uint64_t make_payload(make *m, const uint8_t *data, size_t n)
{
	uint64_t max = m->key_max, first;
	m->at = m->at ? m->at : 1000; /* behind the file's head */
	if (max == 0 || n <= max) {
		make_put(m, m->at, data, n);
		m->at += n;
		return m->at - n;
	}
	uint64_t k = n / max + (n % max != 0), slack = n % max ? max - n % max : 0;
	k += 8 * (k - 1) > slack;
	size_t done = (size_t)(max - 8 * (k - 1));
	make_bytes head = {0};
	make_add(&head, data, done);
	first = m->at;
	m->at += max + 13; /* keys are not neighbours */
	while (done < n) {
		size_t part = n - done < max ? n - done : (size_t)max;
		make_put(m, m->at, data + done, part);
		make_le(&head, m->at, 8);
		m->at += part + 7;
		done += part;
	}
	make_put(m, first, head.data, head.size);
	free(head.data);
	return first;
}

typedef struct make_link {
	uint64_t off, size, sum;
} make_link;

/* Wraps a payload, which is freed, as an envelope, and appends it. */
static inline make_link make_envelope(make *m, unsigned type, make_bytes payload)
{
	make_bytes b = {0};
	make_le(&b, type | (uint64_t)(payload.size + 16) << 16, 8);
	make_add(&b, payload.data, payload.size);
	uint64_t sum = lade_checksum_of(LADE_XXH3, b.data, b.size);
	make_le(&b, sum, 8);
	make_link link = {make_payload(m, b.data, b.size), b.size, sum};
	free(b.data);
	free(payload.data);
	return link;
}

/* ---- schema and pages ---------------------------------------------------------------------- */

/* Roles as lade_rntuple_role; 'array': elements of a fixed array, or 0. */
static inline uint32_t make_field(make *m, const char *name, const char *type, uint32_t parent,
                                  unsigned role, uint64_t array)
{
	make_bytes b = {0};
	uint32_t id = m->field_count++;
	make_le(&b, 0, 8);
	make_le(&b, parent == MAKE_TOP ? id : parent, 4);
	make_le(&b, role, 2);
	make_le(&b, array != 0, 2);
	make_text(&b, name);
	make_text(&b, type);
	make_text(&b, "");
	make_text(&b, "");
	if (array)
		make_le(&b, array, 8);
	make_frame(&m->fields, b, NULL);
	return id;
}

/* 'type': the format's number.  Real32Quant goes from -2 to 3.  Elements before 'first' are not
 * stored. */
static inline uint32_t make_late_column(make *m, uint32_t field, unsigned type, unsigned bits,
                                        unsigned representation, uint64_t first)
{
	static const double range[2] = {-2, 3};
	make_bytes b = {0};
	bool quant = type == 0x1D;
	if (m->column_count == MAKE_COLUMNS)
		abort();
	m->first[m->column_count] = first;
	make_le(&b, type, 2);
	make_le(&b, bits, 2);
	make_le(&b, field, 4);
	make_le(&b, (first ? 1u : 0u) | (quant ? 2u : 0u), 2);
	make_le(&b, representation, 2);
	if (first)
		make_le(&b, first, 8);
	if (quant)
		make_add(&b, range, sizeof range);
	make_frame(&m->columns, b, NULL);
	return m->column_count++;
}

static inline uint32_t make_column(make *m, uint32_t field, unsigned type, unsigned bits)
{
	return make_late_column(m, field, type, bits, 0, 0);
}

static inline void make_place(make *m, make_page_place place)
{
	m->pages = make_need(realloc(m->pages, (m->page_count + 1) * sizeof *m->pages));
	place.cluster = m->cluster_count;
	m->pages[m->page_count++] = place;
}

/* In the next cluster another representation has the elements of this column. */
static inline void make_none(make *m, uint32_t column, uint32_t elements)
{
	make_place(m, (make_page_place){.column = column, .count = elements, .none = true});
}

/* A page of the next cluster, with a checksum. */
static inline void make_page(make *m, uint32_t column, const void *stored, size_t size,
                             uint32_t elements)
{
	make_bytes b = {0};
	make_add(&b, stored, size);
	make_le(&b, lade_checksum_of(LADE_XXH3, stored, size), 8);
	make_place(m, (make_page_place){.off = make_payload(m, b.data, b.size),
	                                .size = size,
	                                .column = column,
	                                .count = elements});
	free(b.data);
}

static inline void make_cluster(make *m, uint64_t entries)
{
	if (m->cluster_count == sizeof m->entries / sizeof m->entries[0])
		abort();
	m->entries[m->cluster_count++] = entries;
}

/* ---- the file's end ------------------------------------------------------------------------ */

static inline make_link make_page_list(make *m, uint64_t header_sum)
{
	make_bytes payload = {0}, summaries = {0}, clusters = {0};
	uint64_t first = 0, next[MAKE_COLUMNS];
	size_t page = 0;
	memcpy(next, m->first, sizeof next);
	make_le(&payload, header_sum, 8);
	for (uint32_t k = 0; k < m->cluster_count; k++) {
		make_bytes summary = {0}, columns = {0};
		size_t begin = page;
		make_le(&summary, first, 8);
		make_le(&summary, m->entries[k], 8);
		make_frame(&summaries, summary, NULL);
		first += m->entries[k];
		while (page < m->page_count && m->pages[page].cluster == k)
			page++;
		for (uint32_t c = 0; c < m->column_count; c++) {
			make_bytes pages = {0};
			uint64_t elements = 0;
			uint32_t count = 0;
			bool none = false;
			for (size_t i = begin; i < page; i++) {
				const make_page_place *p = &m->pages[i];
				if (p->column != c)
					continue;
				elements += p->count;
				none |= p->none;
				if (p->none)
					continue;
				make_le(&pages, 0 - (uint64_t)p->count, 4);
				make_locator(m, &pages, p->off, p->size);
				count++;
			}
			/* The frame's size and count are of the pages; offset and setting
			 * follow. */
			make_le(&pages, none ? (uint64_t)INT64_MIN : next[c], 8);
			make_le(&pages, 505, none ? 0 : 4);
			next[c] += elements;
			make_frame(&columns, pages, &count);
		}
		make_frame(&clusters, columns, &m->column_count);
	}
	make_frame(&payload, summaries, &m->cluster_count);
	make_frame(&payload, clusters, &m->cluster_count);
	return make_envelope(m, 3, payload);
}

static inline make_link make_footer(make *m, const make_link *header, const make_link *pages)
{
	make_bytes payload = {0}, extension = {0}, group = {0}, groups = {0}, sets = {0};
	const uint32_t none = 0, one = 1;
	uint64_t entries = 0;
	for (uint32_t k = 0; k < m->cluster_count; k++)
		entries += m->entries[k];
	make_le(&payload, 0, 8);
	make_le(&payload, header->sum, 8);
	for (int i = 0; i < 4; i++)
		make_frame(&extension, (make_bytes){0}, &none);
	make_frame(&payload, extension, NULL);
	make_le(&group, 0, 8);
	make_le(&group, entries, 8);
	make_le(&group, m->cluster_count, 4);
	make_le(&group, pages->size, 8);
	make_locator(m, &group, pages->off, pages->size);
	for (uint32_t i = 1; i < m->groups; i++) {
		make_le(&groups, group.size + 8, 8);
		make_add(&groups, group.data, group.size);
	}
	make_frame(&groups, group, NULL);
	make_frame(&payload, groups, m->groups ? &m->groups : &one);
	for (uint32_t i = 0; i < m->attributes; i++) {
		make_bytes set = {0};
		make_le(&set, 1, 2);
		make_le(&set, 0, 2);
		make_le(&set, 78, 4);
		make_locator(m, &set, UINT32_MAX, 78);
		make_text(&set, "tags");
		make_frame(&sets, set, NULL);
	}
	make_frame(&payload, sets, &m->attributes);
	return make_envelope(m, 2, payload);
}

/* A key's image; 'size' of what follows it. */
static inline make_bytes make_key(const make *m, uint64_t off, const char *class, const char *name,
                                  size_t size)
{
	make_bytes b = {0};
	size_t key = (m->big ? 34u : 26u) + 3 + strlen(class) + strlen(name);
	make_be(&b, key + size, 4);
	make_be(&b, m->big ? 1004 : 4, 2);
	make_be(&b, size, 4);
	make_be(&b, 0, 4);
	make_be(&b, key, 2);
	make_be(&b, 1, 2);
	make_be(&b, off, m->big ? 8 : 4);
	make_be(&b, 100, m->big ? 8 : 4);
	make_be(&b, strlen(class), 1);
	make_add(&b, class, strlen(class));
	make_be(&b, strlen(name), 1);
	make_add(&b, name, strlen(name));
	make_be(&b, 0, 1);
	return b;
}

/* The anchor with its key, the list of keys, and the head: directory at byte 200. */
static inline void make_container(make *m, const char *name, const make_link *header,
                                  const make_link *footer)
{
	make_bytes anchor = {0}, head = {0};
	uint64_t off = m->at;
	make_be(&anchor, 0x40000042, 4);
	make_be(&anchor, 2, 2);
	make_be(&anchor, 0x0001000000000000, 8);
	const make_link *links[2] = {header, footer};
	for (int i = 0; i < 2; i++) {
		make_be(&anchor, links[i]->off, 8);
		make_be(&anchor, links[i]->size, 8);
		make_be(&anchor, links[i]->size, 8);
	}
	make_be(&anchor, m->key_max, 8);
	make_be(&anchor, lade_checksum_of(LADE_XXH3, anchor.data + 6, 64), 8);
	make_bytes key = make_key(m, off, "ROOT::RNTuple", name, anchor.size);
	make_bytes list = make_key(m, off + key.size + anchor.size, "", "f", key.size + 4);
	make_put(m, off, key.data, key.size);
	make_put(m, off + key.size, anchor.data, anchor.size);
	uint64_t list_off = off + key.size + anchor.size;
	make_be(&list, 1, 4);
	make_add(&list, key.data, key.size);
	make_put(m, list_off, list.data, list.size);
	m->at = list_off + list.size;
	make_add(&head, "root", 4);
	make_be(&head, m->big ? 1062400 : 62400, 4);
	make_be(&head, 100, 4);
	make_be(&head, m->at, m->big ? 8 : 4);
	make_be(&head, 0, m->big ? 16 : 12);
	make_be(&head, 100, 4); /* up to the directory */
	while (head.size < 200)
		make_be(&head, 0, 1);
	make_be(&head, m->big ? 1005 : 5, 2);
	make_be(&head, 0, 8);
	make_be(&head, list.size, 4);
	make_be(&head, 100, 4);
	make_be(&head, 200, m->big ? 8 : 4);
	make_be(&head, 0, m->big ? 8 : 4);
	make_be(&head, list_off, m->big ? 8 : 4);
	make_be(&head, 0, 18);
	make_put(m, 0, head.data, head.size);
	free(anchor.data);
	free(key.data);
	free(list.data);
	free(head.data);
}

/* Writes all that is not a page.  Afterwards 'at' is the file's size. */
static inline void make_finish(make *m, const char *name)
{
	make_bytes payload = {0};
	const uint32_t none = 0;
	make_le(&payload, 0, 8);
	make_text(&payload, name);
	make_text(&payload, "");
	make_text(&payload, "liblade's tests");
	make_frame(&payload, m->fields, &m->field_count);
	make_frame(&payload, m->columns, &m->column_count);
	make_frame(&payload, (make_bytes){0}, &none);
	make_frame(&payload, (make_bytes){0}, &none);
	make_link header = make_envelope(m, 1, payload);
	make_link pages = make_page_list(m, header.sum);
	make_link footer = make_footer(m, &header, &pages);
	make_container(m, name, &header, &footer);
}

static inline void make_free(make *m)
{
	for (size_t i = 0; i < m->piece_count; i++)
		free(m->pieces[i].bytes.data);
	free(m->pieces);
	free(m->pages);
}

/* The whole file, which is not large: 'at' bytes, to be freed. */
static inline uint8_t *make_flat(const make *m)
{
	uint8_t *data = make_need(calloc(1, (size_t)m->at));
	for (size_t i = 0; i < m->piece_count; i++)
		if (m->pieces[i].bytes.size)
			memcpy(data + m->pieces[i].off, m->pieces[i].bytes.data,
			       m->pieces[i].bytes.size);
	return data;
}

/* ---- the object with holes ------------------------------------------------------------------ */

static inline void make_read(void *ctx, lade_reading *reading, size_t count)
{
	const make *m = ctx;
	for (size_t i = 0; i < count; i++) {
		lade_range *range = lade_reading_range(reading, i);
		lade_error err = {.status = LADE_OK};
		uint64_t off, end;
		range->object_size = m->at;
		lade_status status = lade_range_place(range, m->at, &off, &range->size, &err);
		end = off + range->size;
		if (status == LADE_OK && range->size)
			memset(range->dst.data, 0, range->size);
		for (size_t k = 0; k < m->piece_count && status == LADE_OK; k++) {
			const make_piece *p = &m->pieces[k];
			uint64_t from = p->off > off ? p->off : off, to = p->off + p->bytes.size;
			to = to < end ? to : end;
			if (from < to)
				memcpy((uint8_t *)range->dst.data + (from - off),
				       p->bytes.data + (from - p->off), (size_t)(to - from));
		}
		lade_reading_done(reading, i, status, &err);
	}
}

static inline lade_source make_source(make *m)
{
	static const lade_source_ops ops = {
		.struct_size = sizeof ops, .flags = LADE_SOURCE_LOCAL, .read = make_read};
	return (lade_source){&ops, m};
}

#endif
