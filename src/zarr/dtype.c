/*
 * dtype.c: the element types of both formats.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr/zarr.h"

#include <stdio.h>
#include <string.h>

/* Fields of a struct and of those in it. */
#define FIELDS_MAX 4096
/* Bytes of an element: the fill value takes as many when an array is opened. */
#define ELEMENT_MAX ((uint64_t)1 << 24)

/* name in format 3, type string of format 2 without its byte order, class, bytes, number, dtype */
static const struct simple {
	const char *name, *v2;
	uint8_t cls, size, swap, dtype;
} simple[] = {
	{"bool", "b1", LADE_ZARR_BOOL, 1, 0, LADE_B1},
	{"int8", "i1", LADE_ZARR_INT, 1, 0, LADE_I1},
	{"int16", "i2", LADE_ZARR_INT, 2, 2, LADE_I2},
	{"int32", "i4", LADE_ZARR_INT, 4, 4, LADE_I4},
	{"int64", "i8", LADE_ZARR_INT, 8, 8, LADE_I8},
	{"uint8", "u1", LADE_ZARR_UINT, 1, 0, LADE_U1},
	{"uint16", "u2", LADE_ZARR_UINT, 2, 2, LADE_U2},
	{"uint32", "u4", LADE_ZARR_UINT, 4, 4, LADE_U4},
	{"uint64", "u8", LADE_ZARR_UINT, 8, 8, LADE_U8},
	{"float16", "f2", LADE_ZARR_FLOAT, 2, 2, LADE_F2},
	{"float32", "f4", LADE_ZARR_FLOAT, 4, 4, LADE_F4},
	{"float64", "f8", LADE_ZARR_FLOAT, 8, 8, LADE_F8},
	{"complex64", "c8", LADE_ZARR_COMPLEX, 8, 4, LADE_DTYPE_NONE},
	{"complex128", "c16", LADE_ZARR_COMPLEX, 16, 8, LADE_DTYPE_NONE},
	{"bfloat16", NULL, LADE_ZARR_FLOAT_X, 2, 2, LADE_BF16},
	{"float8_e4m3fn", NULL, LADE_ZARR_FLOAT_X, 1, 0, LADE_F8_E4M3},
	{"float8_e3m4", NULL, LADE_ZARR_FLOAT_X, 1, 0, LADE_DTYPE_NONE},
	{"float8_e4m3", NULL, LADE_ZARR_FLOAT_X, 1, 0, LADE_DTYPE_NONE},
	{"float8_e4m3b11fnuz", NULL, LADE_ZARR_FLOAT_X, 1, 0, LADE_DTYPE_NONE},
	{"float8_e4m3fnuz", NULL, LADE_ZARR_FLOAT_X, 1, 0, LADE_DTYPE_NONE},
	{"float8_e5m2", NULL, LADE_ZARR_FLOAT_X, 1, 0, LADE_DTYPE_NONE},
	{"float8_e5m2fnuz", NULL, LADE_ZARR_FLOAT_X, 1, 0, LADE_DTYPE_NONE},
	{"float8_e8m0fnu", NULL, LADE_ZARR_FLOAT_X, 1, 0, LADE_DTYPE_NONE},
};

static void set_simple(lade_zarr_type *type, const struct simple *from, bool big)
{
	*type = (lade_zarr_type){.cls = (lade_zarr_class)from->cls, .size = from->size,
	                         .swap_size = from->swap, .name = from->name,
	                         .big = big && from->swap};
	type->dtype = from->dtype == LADE_DTYPE_NONE || !type->big
		? from->dtype : (lade_dtype)(from->dtype | LADE_DTYPE_BIG);
}

/* The units of NumPy's times. */
static const char *const units[] = {"Y",  "M",  "W",  "D",  "h",  "m",  "s", "ms",
                                    "us", "ns", "ps", "fs", "as", "generic"};

static const char *find_unit(const char *text, size_t size)
{
	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
		if (strlen(units[i]) == size && memcmp(units[i], text, size) == 0)
			return units[i];
	return size == 3 && memcmp(text, "\xce\xbcs", 3) == 0 ? "us" : NULL;
}

static lade_zarr_type time_type(bool date, const char *unit, uint32_t count, bool big)
{
	return (lade_zarr_type){.cls = date ? LADE_ZARR_DATETIME : LADE_ZARR_TIMEDELTA, .size = 8,
	                        .swap_size = 8, .big = big, .unit = unit, .unit_count = count,
	                        .name = date ? "numpy.datetime64" : "numpy.timedelta64"};
}

/* Digits only, 1 to 'max'. */
static bool read_count(const char *text, size_t size, uint64_t max, uint64_t *out)
{
	uint64_t value = 0;
	for (size_t i = 0; i < size; i++) {
		if (text[i] < '0' || text[i] > '9' || value > max)
			return false;
		value = value * 10 + (uint64_t)(text[i] - '0');
	}
	*out = value;
	return size > 0 && value > 0 && value <= max;
}

/* "[25us]" behind M8 or m8; nothing: generic. */
static bool read_time_v2(const char *text, size_t size, bool date, bool big, lade_zarr_type *type)
{
	uint64_t count = 1;
	size_t digits = 0;
	const char *unit = "generic";
	if (size > 0) {
		if (size < 3 || text[0] != '[' || text[size - 1] != ']')
			return false;
		text++;
		size -= 2;
		while (digits < size && text[digits] >= '0' && text[digits] <= '9')
			digits++;
		unit = find_unit(text + digits, size - digits);
		if (!unit || (digits && !read_count(text, digits, INT32_MAX, &count)))
			return false;
	}
	*type = time_type(date, unit, (uint32_t)count, big);
	return true;
}

/* The types of format 2 with a length. */
static bool read_sized_v2(const char *text, size_t size, bool big, lade_zarr_type *type)
{
	uint64_t length;
	if (!read_count(text + 1, size - 1, ELEMENT_MAX / 4, &length))
		return false;
	if (text[0] == 'S')
		*type = (lade_zarr_type){.cls = LADE_ZARR_CHARS, .size = length,
		                         .name = "null_terminated_bytes"};
	else if (text[0] == 'U')
		*type = (lade_zarr_type){.cls = LADE_ZARR_UTF32, .size = length * 4, .swap_size = 4,
		                         .big = big, .name = "fixed_length_utf32"};
	else
		*type = (lade_zarr_type){.cls = LADE_ZARR_RAW, .size = length, .name = "raw_bytes"};
	return true;
}

static lade_status object_type(const scan *s, uint32_t at, const char *codec, lade_zarr_type *type)
{
	if (codec && strcmp(codec, "vlen-utf8") == 0)
		*type = (lade_zarr_type){.cls = LADE_ZARR_STRING, .name = "string"};
	else if (codec && strcmp(codec, "vlen-bytes") == 0)
		*type = (lade_zarr_type){.cls = LADE_ZARR_BYTES, .name = "variable_length_bytes"};
	else if (codec)
		return UNKNOWN(s, at, "objects of the codec '%s' are not read", codec);
	else
		return BAD(s, at, "objects want a codec such as vlen-utf8");
	return LADE_OK;
}

static lade_status type_v2(const scan *s, uint32_t at, lade_zarr_type *type, size_t *budget);

/* [[name, type], ...]; zarr-python refuses fields with a shape, too. */
static lade_status struct_v2(const scan *s, uint32_t at, lade_zarr_type *type, size_t *budget)
{
	size_t count = lade__json_count(s->doc, at), i = 0;
	if (count == 0)
		return BAD(s, at, "a struct without fields");
	if (count > *budget)
		return lade__json_fail(s->doc, at, LADE_E_LIMIT, s->err, "more than %d fields",
		                       FIELDS_MAX);
	*budget -= count;
	lade_zarr_field *fields = lade__arena(&s->node->arena, count, sizeof *fields);
	if (!fields)
		return lade__scan_nomem(s, "fields");
	*type = (lade_zarr_type){.cls = LADE_ZARR_STRUCT, .name = "struct", .field_count = count,
	                         .fields = fields};
	for (uint32_t c = lade__json_child(s->doc, at, 0); c != JSON_NONE;
	     c = lade__json_child(s->doc, at, c), i++) {
		uint32_t name = lade__json_child(s->doc, c, 0);
		if (lade__json_type(s->doc, c) != JSON_ARRAY || lade__json_count(s->doc, c) != 2 ||
		    lade__json_type(s->doc, name) != JSON_STRING)
			return BAD(s, c, "want [name, type]");
		fields[i].name = lade__scan_text(s, name);
		fields[i].off = type->size;
		if (!fields[i].name)
			return lade__scan_nomem(s, "a name");
		lade_status status =
			type_v2(s, lade__json_child(s->doc, c, name), &fields[i].type, budget);
		if (status != LADE_OK)
			return status;
		type->size += fields[i].type.size;
		if (type->size > ELEMENT_MAX)
			return BAD(s, at, "an element has more than %llu bytes",
			           (unsigned long long)ELEMENT_MAX);
	}
	return LADE_OK;
}

/* As zarr-python, takes any byte order where it has no meaning, and '|' only there. */
static lade_status type_v2(const scan *s, uint32_t at, lade_zarr_type *type, size_t *budget)
{
	if (lade__json_type(s->doc, at) == JSON_ARRAY)
		return struct_v2(s, at, type, budget);
	if (lade__json_type(s->doc, at) != JSON_STRING)
		return BAD(s, at, "want a type string or a list of fields");
	for (size_t i = 0; i < sizeof simple / sizeof simple[0]; i++)
		if (!simple[i].v2 && lade__json_is(s->doc, at, simple[i].name)) {
			set_simple(type, &simple[i], false); /* tensorstore writes "bfloat16" */
			return LADE_OK;
		}
	const char *text = s->doc->text + s->doc->nodes[at].at;
	size_t size = s->doc->nodes[at].size;
	if (size < 3 || !strchr("<>|", text[0]))
		return BAD(s, at, "want a type string such as \"<f4\"");
	bool big = text[0] == '>', none = text[0] == '|', there = false;
	text++;
	size--;
	for (size_t i = 0; !there && i < sizeof simple / sizeof simple[0]; i++) {
		there = simple[i].v2 && strlen(simple[i].v2) == size &&
		        memcmp(simple[i].v2, text, size) == 0;
		if (there)
			set_simple(type, &simple[i], big);
	}
	if (!there && (text[0] == 'M' || text[0] == 'm') && text[1] == '8')
		there = read_time_v2(text + 2, size - 2, text[0] == 'M', big, type);
	else if (!there && (text[0] == 'S' || text[0] == 'U' || text[0] == 'V'))
		there = (text[0] != 'S' || none) && read_sized_v2(text, size, big, type);
	if (!there)
		return UNKNOWN(s, at, "no known type");
	if (none && type->swap_size)
		return BAD(s, at, "want '<' or '>' for numbers of %zu bytes", type->swap_size);
	return LADE_OK;
}

lade_status lade__zarr_type_v2(const scan *s, uint32_t at, const char *object_codec,
                               lade_zarr_type *type)
{
	size_t budget = FIELDS_MAX;
	if (lade__json_is(s->doc, at, "|O"))
		return object_type(s, at, object_codec, type);
	if (object_codec)
		return UNKNOWN(s, at, "the codec '%s' is for objects only", object_codec);
	return type_v2(s, at, type, &budget);
}

/* ---- format 3 ------------------------------------------------------------------------- */

static lade_status type_v3(const scan *s, uint32_t at, lade_zarr_type *type, size_t *budget);

/* A field: {"name", "data_type"}, or [name, type] as older writers have it. */
static lade_status field_v3(const scan *s, uint32_t at, lade_zarr_field *field, size_t *budget)
{
	uint32_t name, type;
	if (lade__json_type(s->doc, at) == JSON_ARRAY && lade__json_count(s->doc, at) == 2) {
		name = lade__json_child(s->doc, at, 0);
		type = lade__json_child(s->doc, at, name);
	} else {
		name = lade__json_get(s->doc, at, "name");
		type = lade__json_get(s->doc, at, "data_type");
	}
	if (lade__json_type(s->doc, name) != JSON_STRING || type == JSON_NONE)
		return BAD(s, at, "want {\"name\", \"data_type\"}");
	field->name = lade__scan_text(s, name);
	if (!field->name)
		return lade__scan_nomem(s, "a name");
	lade_status status = type_v3(s, type, &field->type, budget);
	if (status == LADE_OK && field->type.size == 0)
		return UNKNOWN(s, type, "a field of no fixed size");
	return status;
}

static lade_status struct_v3(const scan *s, uint32_t config, lade_zarr_type *type, size_t *budget)
{
	uint32_t list = lade__json_get(s->doc, config, "fields");
	size_t count = lade__json_count(s->doc, list), i = 0;
	if (lade__json_type(s->doc, list) != JSON_ARRAY || count == 0)
		return BAD(s, list == JSON_NONE ? config : list, "want a list of fields");
	if (count > *budget)
		return lade__json_fail(s->doc, list, LADE_E_LIMIT, s->err, "more than %d fields",
		                       FIELDS_MAX);
	*budget -= count;
	lade_zarr_field *fields = lade__arena(&s->node->arena, count, sizeof *fields);
	if (!fields)
		return lade__scan_nomem(s, "fields");
	*type = (lade_zarr_type){.cls = LADE_ZARR_STRUCT, .name = "struct", .field_count = count,
	                         .fields = fields};
	for (uint32_t c = lade__json_child(s->doc, list, 0); c != JSON_NONE;
	     c = lade__json_child(s->doc, list, c), i++) {
		lade_status status = field_v3(s, c, &fields[i], budget);
		if (status != LADE_OK)
			return status;
		fields[i].off = type->size;
		type->size += fields[i].type.size;
		if (type->size > ELEMENT_MAX)
			return BAD(s, list, "an element has more than %llu bytes",
			           (unsigned long long)ELEMENT_MAX);
	}
	return LADE_OK;
}

static lade_status time_v3(const scan *s, uint32_t config, bool date, lade_zarr_type *type)
{
	uint32_t unit = lade__json_get(s->doc, config, "unit");
	uint32_t factor = lade__json_get(s->doc, config, "scale_factor");
	uint64_t count;
	lade_status status = lade__scan_members(s, config, "unit scale_factor ");
	if (status != LADE_OK)
		return status;
	const char *found = lade__json_type(s->doc, unit) == JSON_STRING
		? find_unit(s->doc->text + s->doc->nodes[unit].at, s->doc->nodes[unit].size)
		: NULL;
	if (!found)
		return BAD(s, unit == JSON_NONE ? config : unit, "want a unit such as \"ns\"");
	if (!lade__json_u64(s->doc, factor, false, &count) || count < 1 || count > INT32_MAX)
		return BAD(s, factor == JSON_NONE ? config : factor,
		           "want a scale_factor from 1 to %d", INT32_MAX);
	*type = time_type(date, found, (uint32_t)count, false);
	return LADE_OK;
}

/* The types with "length_bytes". */
static lade_status sized_v3(const scan *s, uint32_t config, const char *name, lade_zarr_type *type)
{
	uint32_t at = lade__json_get(s->doc, config, "length_bytes");
	bool utf32 = strcmp(name, "fixed_length_utf32") == 0;
	uint64_t length;
	if (!lade__json_u64(s->doc, at, false, &length) || length < 1 || length > ELEMENT_MAX ||
	    (utf32 && length % 4))
		return BAD(s, at == JSON_NONE ? config : at, "want length_bytes from 1 to %llu%s",
		           (unsigned long long)ELEMENT_MAX, utf32 ? ", a multiple of 4" : "");
	*type = (lade_zarr_type){.name = name, .size = length,
	                         .cls = utf32 ? LADE_ZARR_UTF32 :
	                                name[0] == 'n' ? LADE_ZARR_CHARS : LADE_ZARR_RAW,
	                         .swap_size = utf32 ? 4 : 0};
	return LADE_OK;
}

/* A type that is its name. */
static lade_status named_v3(const scan *s, uint32_t name, lade_zarr_type *type)
{
	uint64_t bits;
	for (size_t i = 0; i < sizeof simple / sizeof simple[0]; i++)
		if (lade__json_is(s->doc, name, simple[i].name)) {
			set_simple(type, &simple[i], false);
			return LADE_OK;
		}
	if (lade__json_is(s->doc, name, "string")) {
		*type = (lade_zarr_type){.cls = LADE_ZARR_STRING, .name = "string"};
		return LADE_OK;
	}
	if (lade__json_is(s->doc, name, "bytes") ||
	    lade__json_is(s->doc, name, "variable_length_bytes")) {
		*type = (lade_zarr_type){.cls = LADE_ZARR_BYTES, .name = "variable_length_bytes"};
		return LADE_OK;
	}
	const json_node *node = &s->doc->nodes[name];
	const char *text = s->doc->text + node->at;
	if (node->size > 1 && text[0] == 'r' &&
	    read_count(text + 1, node->size - 1, ELEMENT_MAX * 8, &bits) && bits % 8 == 0) {
		*type = (lade_zarr_type){.cls = LADE_ZARR_RAW, .size = bits / 8,
		                         .name = lade__scan_text(s, name)};
		return type->name ? LADE_OK : lade__scan_nomem(s, "a name");
	}
	return UNKNOWN(s, name, "no known data type");
}

static lade_status type_v3(const scan *s, uint32_t at, lade_zarr_type *type, size_t *budget)
{
	static const char *const sized[] = {"fixed_length_utf32", "null_terminated_bytes",
	                                    "raw_bytes"};
	uint32_t name, config;
	lade_status status = lade__scan_named(s, at, false, &name, &config);
	if (status != LADE_OK)
		return status;
	if (config == JSON_NONE || lade__json_count(s->doc, config) == 0)
		return named_v3(s, name, type);
	if (lade__json_is(s->doc, name, "numpy.datetime64"))
		return time_v3(s, config, true, type);
	if (lade__json_is(s->doc, name, "numpy.timedelta64"))
		return time_v3(s, config, false, type);
	if (lade__json_is(s->doc, name, "struct") || lade__json_is(s->doc, name, "structured"))
		return struct_v3(s, config, type, budget);
	for (size_t i = 0; i < sizeof sized / sizeof sized[0]; i++)
		if (lade__json_is(s->doc, name, sized[i]))
			return sized_v3(s, config, sized[i], type);
	return UNKNOWN(s, name, "no known data type with a configuration");
}

lade_status lade__zarr_type_v3(const scan *s, uint32_t at, lade_zarr_type *type)
{
	size_t budget = FIELDS_MAX;
	return type_v3(s, at, type, &budget);
}
