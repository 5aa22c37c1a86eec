/*
 * schema.c: the header and the footer: fields, columns and where the page lists are.
 *
 * The footer's schema extension continues the header's lists.  Records may be longer than what is
 * known of them; the rest is passed over.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple/rntuple.h"

#include <inttypes.h>

/* Bytes of the smallest items of the lists, their frames included. */
enum { FIELD_MIN = 40, COLUMN_MIN = 20, ALIAS_MIN = 16, INFO_MIN = 8, GROUP_MIN = 48 };

enum { FIELD_ARRAY = 1, FIELD_PROJECTED = 2, FIELD_SUM = 4 };
enum { COLUMN_DEFERRED = 1, COLUMN_RANGE = 2 };

/* A type's name, least and most bits, class, decoded type; split, zigzag, delta. */
static const rnt_type types[] = {
	[0x00] = {"Bit", 1, 1, 'b', LADE_B1, 0, 0, 0},
	[0x01] = {"Byte", 8, 8, 'u', LADE_U1, 0, 0, 0},
	[0x02] = {"Char", 8, 8, 'u', LADE_U1, 0, 0, 0},
	[0x03] = {"Int8", 8, 8, 'i', LADE_I1, 0, 0, 0},
	[0x04] = {"UInt8", 8, 8, 'u', LADE_U1, 0, 0, 0},
	[0x05] = {"Int16", 16, 16, 'i', LADE_I2, 0, 0, 0},
	[0x06] = {"UInt16", 16, 16, 'u', LADE_U2, 0, 0, 0},
	[0x07] = {"Int32", 32, 32, 'i', LADE_I4, 0, 0, 0},
	[0x08] = {"UInt32", 32, 32, 'u', LADE_U4, 0, 0, 0},
	[0x09] = {"Int64", 64, 64, 'i', LADE_I8, 0, 0, 0},
	[0x0A] = {"UInt64", 64, 64, 'u', LADE_U8, 0, 0, 0},
	[0x0B] = {"Real16", 16, 16, 'f', LADE_F2, 0, 0, 0},
	[0x0C] = {"Real32", 32, 32, 'f', LADE_F4, 0, 0, 0},
	[0x0D] = {"Real64", 64, 64, 'f', LADE_F8, 0, 0, 0},
	[0x0E] = {"Index32", 32, 32, 'o', LADE_U4, 0, 0, 0},
	[0x0F] = {"Index64", 64, 64, 'o', LADE_U8, 0, 0, 0},
	[0x10] = {"Switch", 96, 96, 's', LADE_DTYPE_NONE, 0, 0, 0},
	[0x11] = {"SplitInt16", 16, 16, 'i', LADE_I2, 1, 1, 0},
	[0x12] = {"SplitUInt16", 16, 16, 'u', LADE_U2, 1, 0, 0},
	[0x13] = {"SplitInt32", 32, 32, 'i', LADE_I4, 1, 1, 0},
	[0x14] = {"SplitUInt32", 32, 32, 'u', LADE_U4, 1, 0, 0},
	[0x15] = {"SplitInt64", 64, 64, 'i', LADE_I8, 1, 1, 0},
	[0x16] = {"SplitUInt64", 64, 64, 'u', LADE_U8, 1, 0, 0},
	[0x17] = {"SplitReal16", 16, 16, 'f', LADE_F2, 1, 0, 0},
	[0x18] = {"SplitReal32", 32, 32, 'f', LADE_F4, 1, 0, 0},
	[0x19] = {"SplitReal64", 64, 64, 'f', LADE_F8, 1, 0, 0},
	[0x1A] = {"SplitIndex32", 32, 32, 'o', LADE_U4, 1, 0, 1},
	[0x1B] = {"SplitIndex64", 64, 64, 'o', LADE_U8, 1, 0, 1},
	[0x1C] = {"Real32Trunc", 10, 31, 'f', LADE_F4, 0, 0, 0},
	[0x1D] = {"Real32Quant", 1, 32, 'f', LADE_F4, 0, 0, 0},
};

const rnt_type *lade__rnt_type(uint16_t type)
{
	return type < sizeof types / sizeof types[0] ? &types[type] : NULL;
}

/* Room for one more element of a table of the tuple. */
static bool room(rnt_in *in, void *table, size_t *cap, size_t count, size_t size)
{
	if (count < RNT_NONE && lade__rnt_grow(table, cap, count, size))
		return true;
	lade__rnt_bad(in, LADE_E_NOMEM, "no memory for %zu items", count + 1);
	return false;
}

/* ---- fields --------------------------------------------------------------------------------- */

static void read_field(lade_rntuple *t, rnt_in *list)
{
	rnt_in in = lade__rnt_record(list);
	size_t id = t->field_count;
	if (!lade__rnt_ok(&in) || !room(&in, &t->field, &t->field_cap, id, sizeof *t->field) ||
	    !room(&in, &t->field_more, &t->more_cap, id, sizeof *t->field_more))
		return;
	lade_rntuple_field *f = &t->field[id];
	rnt_field *m = &t->field_more[id];
	memset(f, 0, sizeof *f);
	*m = (rnt_field){.source = RNT_NONE};
	uint32_t version = (uint32_t)lade__rnt_int(&in, 4);
	lade__rnt_int(&in, 4);
	f->parent = lade__rnt_int(&in, 4);
	uint16_t role = (uint16_t)lade__rnt_int(&in, 2);
	m->flags = (uint32_t)lade__rnt_int(&in, 2);
	f->role = (lade_rntuple_role)role;
	f->name = lade__rnt_text(&in, &t->memory);
	f->type = lade__rnt_text(&in, &t->memory);
	f->type_alias = lade__rnt_text(&in, &t->memory);
	f->description = lade__rnt_text(&in, &t->memory);
	if (m->flags & FIELD_ARRAY)
		f->array_size = lade__rnt_int(&in, 8);
	if (m->flags & FIELD_PROJECTED)
		m->source = (uint32_t)lade__rnt_int(&in, 4);
	f->projected = (m->flags & FIELD_PROJECTED) != 0;
	if (version != 0)
		f->hidden = "its version of fields is not known";
	if (role > LADE_RNTUPLE_STREAMER) {
		f->hidden = "its role is not known";
		f->role = LADE_RNTUPLE_PLAIN;
	}
	if ((m->flags & FIELD_ARRAY) && f->array_size == 0)
		f->hidden = "an array of no elements";
	t->field_count++;
}

/* Parents come before their children, so no field is above itself. */
static lade_status check_fields(const lade_rntuple *t, rnt_in *in)
{
	for (size_t i = 0; i < t->field_count; i++) {
		uint64_t parent = t->field[i].parent;
		if (parent >= t->field_count || parent > i)
			return lade__rnt_bad(in, LADE_E_CORRUPT,
			                     "field %zu has parent %" PRIu64
			                     ", which does not come before it",
			                     i, parent);
		uint32_t source = t->field_more[i].source;
		if (source != RNT_NONE && source >= t->field_count)
			return lade__rnt_bad(in, LADE_E_CORRUPT,
			                     "field %zu projects field %" PRIu32 " of %zu", i,
			                     source, t->field_count);
	}
	return LADE_OK;
}

/* ---- columns -------------------------------------------------------------------------------- */

static void read_column(lade_rntuple *t, rnt_in *list)
{
	rnt_in in = lade__rnt_record(list);
	size_t id = t->physical_count;
	if (!lade__rnt_ok(&in) ||
	    !room(&in, &t->physical, &t->physical_cap, id, sizeof *t->physical))
		return;
	rnt_physical *p = &t->physical[id];
	*p = (rnt_physical){.type = (uint16_t)lade__rnt_int(&in, 2), .column = RNT_NONE};
	p->bits = (uint16_t)lade__rnt_int(&in, 2);
	p->field = (uint32_t)lade__rnt_int(&in, 4);
	p->flags = (uint16_t)lade__rnt_int(&in, 2);
	p->representation = (uint16_t)lade__rnt_int(&in, 2);
	if (p->flags & COLUMN_DEFERRED)
		p->first = (int64_t)lade__rnt_int(&in, 8);
	if (p->flags & COLUMN_RANGE) {
		uint64_t bits[2] = {lade__rnt_int(&in, 8), 0};
		bits[1] = lade__rnt_int(&in, 8);
		memcpy(&p->min, &bits[0], 8);
		memcpy(&p->max, &bits[1], 8);
	}
	const rnt_type *type = lade__rnt_type(p->type);
	if (lade__rnt_ok(&in) && p->field >= t->field_count)
		lade__rnt_bad(&in, LADE_E_CORRUPT, "column %zu is of field %" PRIu32 " of %zu", id,
		              p->field, t->field_count);
	if (lade__rnt_ok(&in) && type && (p->bits < type->bits_min || p->bits > type->bits_max))
		lade__rnt_bad(&in, LADE_E_CORRUPT, "column %zu, %s, has %u bits, want %u to %u", id,
		              type->name, p->bits, type->bits_min, type->bits_max);
	/* !(a < b) is true for NaN, too. */
	if (lade__rnt_ok(&in) && p->type == 0x1D &&
	    (!(p->flags & COLUMN_RANGE) || !(p->min < p->max) || !(p->max - p->min < 1e308)))
		lade__rnt_bad(&in, LADE_E_CORRUPT, "column %zu, %s, has no range", id, type->name);
	t->physical_count++;
}

static void read_alias(lade_rntuple *t, rnt_in *list)
{
	rnt_in in = lade__rnt_record(list);
	if (!lade__rnt_ok(&in) ||
	    !room(&in, &t->alias, &t->alias_cap, t->alias_count, sizeof *t->alias))
		return;
	rnt_alias a = {.physical = (uint32_t)lade__rnt_int(&in, 4),
	               .field = (uint32_t)lade__rnt_int(&in, 4)};
	if (lade__rnt_ok(&in) && (a.physical >= t->physical_count || a.field >= t->field_count))
		lade__rnt_bad(&in, LADE_E_CORRUPT,
		              "an alias of column %" PRIu32 " of %zu for field %" PRIu32 " of %zu",
		              a.physical, t->physical_count, a.field, t->field_count);
	t->alias[t->alias_count++] = a;
}

/* The four lists: fields, columns, aliases, and extra infos of types, which nothing here needs. */
static lade_status read_schema(lade_rntuple *t, rnt_in *in)
{
	static const struct {
		void (*read)(lade_rntuple *t, rnt_in *list);
		size_t min;
	} lists[] = {{read_field, FIELD_MIN}, {read_column, COLUMN_MIN}, {read_alias, ALIAS_MIN}};
	uint32_t count;
	for (size_t k = 0; k < sizeof lists / sizeof lists[0]; k++) {
		rnt_in list = lade__rnt_list(in, lists[k].min, &count);
		for (uint32_t i = 0; i < count && lade__rnt_ok(in); i++)
			lists[k].read(t, &list);
	}
	lade__rnt_list(in, INFO_MIN, &count);
	return lade__rnt_ok(in) ? check_fields(t, in) : in->fault->status;
}

/* ---- header and footer ---------------------------------------------------------------------- */

lade_status lade__rnt_header(lade_rntuple *t, rnt_in *in)
{
	if (lade__rnt_features(in) != LADE_OK)
		return in->fault->status;
	t->info.name = lade__rnt_text(in, &t->memory);
	t->info.description = lade__rnt_text(in, &t->memory);
	t->info.writer = lade__rnt_text(in, &t->memory);
	return read_schema(t, in);
}

static void read_group(lade_rntuple *t, rnt_in *list)
{
	rnt_in in = lade__rnt_record(list);
	size_t id = t->group_count;
	if (!lade__rnt_ok(&in) || !room(&in, &t->group, &t->group_cap, id, sizeof *t->group) ||
	    !room(&in, &t->group_clusters, &t->clusters_cap, id, sizeof *t->group_clusters))
		return;
	lade__rnt_int(&in, 8);
	lade__rnt_int(&in, 8);
	t->group_clusters[id] = lade__rnt_int(&in, 4);
	t->group[id] = lade__rnt_link(&in);
	t->group_count++;
}

/* Linked attribute sets, which follow the groups, are RNTuples of their own and are passed over. */
lade_status lade__rnt_footer(lade_rntuple *t, rnt_in *in, uint64_t header_sum)
{
	uint32_t count;
	if (lade__rnt_features(in) != LADE_OK)
		return in->fault->status;
	uint64_t sum = lade__rnt_int(in, 8);
	if (lade__rnt_ok(in) && sum != header_sum)
		return lade__rnt_bad(in, LADE_E_CORRUPT,
		                     "it is for a header with checksum %016" PRIx64
		                     ", the header's is %016" PRIx64,
		                     sum, header_sum);
	rnt_in extension = lade__rnt_record(in);
	if (lade__rnt_ok(in))
		read_schema(t, &extension);
	rnt_in groups = lade__rnt_list(in, GROUP_MIN, &count);
	for (uint32_t i = 0; i < count && lade__rnt_ok(in); i++)
		read_group(t, &groups);
	return in->fault->status;
}
