/*
 * emit.c: writes JSON, types and fill values, byte for byte as zarr-python 3.4.2 does.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr/emit.h"

#include "base/support.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- text ---------------------------------------------------------------------------- */

/* Room for 'more' bytes and a NUL. */
static bool grow(lade__text *text, size_t more)
{
	size_t cap = text->cap ? text->cap : 512;
	if (text->failed || more > SIZE_MAX / 4 - text->size) {
		text->failed = true;
		return false;
	}
	while (cap - text->size <= more)
		cap *= 2;
	char *data = cap > text->cap ? realloc(text->data, cap) : text->data;
	if (!data) {
		text->failed = true;
		return false;
	}
	text->data = data;
	text->cap = cap;
	return true;
}

void lade__text_add(lade__text *text, const char *bytes, size_t size)
{
	if (!grow(text, size))
		return;
	memcpy(text->data + text->size, bytes, size);
	text->size += size;
	text->data[text->size] = 0;
}

void lade__text_put(lade__text *text, const char *format, ...)
{
	va_list args, again;
	va_start(args, format);
	va_copy(again, args);
	int size = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (size >= 0 && grow(text, (size_t)size)) {
		vsnprintf(text->data + text->size, (size_t)size + 1, format, again);
		text->size += (size_t)size;
	}
	va_end(again);
}

void lade__text_free(lade__text *text)
{
	free(text->data);
	*text = (lade__text){0};
}

/* ---- strings ------------------------------------------------------------------------- */

static void put_char(lade__text *text, uint32_t c)
{
	static const char named[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
	const char *name = c ? strchr(named, (int)(c < 0x80 ? c : 0x80)) : NULL;
	char plain = (char)c;
	if (name)
		lade__text_put(text, "\\%c", letters[name - named]);
	else if (c >= 0x20 && c < 0x7f)
		lade__text_add(text, &plain, 1);
	else if (c < 0x10000)
		lade__text_put(text, "\\u%04" PRIx32, c);
	else
		lade__text_put(text, "\\u%04" PRIx32 "\\u%04" PRIx32,
		               0xd800 + ((c - 0x10000) >> 10), 0xdc00 + (c & 0x3ff));
}

/* The character at 'bytes', and how many bytes it has; bytes that are no UTF-8 are U+FFFD. */
static uint32_t take_utf8(const unsigned char *bytes, size_t size, size_t *used)
{
	unsigned char c = bytes[0];
	size_t more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;
	uint32_t value = more ? c & (0x3fu >> more) : c;
	*used = 1;
	if (c >= 0x80 && (c < 0xc2 || c > 0xf4))
		return 0xfffd;
	for (size_t i = 1; i <= more; i++) {
		if (i >= size || (bytes[i] & 0xc0) != 0x80)
			return 0xfffd;
		value = value << 6 | (bytes[i] & 0x3f);
	}
	*used = more + 1;
	return value > 0x10ffff || (value >= 0xd800 && value < 0xe000) ? 0xfffd : value;
}

void lade__text_string(lade__text *text, const char *bytes, size_t size)
{
	lade__text_put(text, "\"");
	for (size_t i = 0, used; i < size; i += used)
		put_char(text, take_utf8((const unsigned char *)bytes + i, size - i, &used));
	lade__text_put(text, "\"");
}

/* A string of a document.  Escapes of single surrogates stay what they are. */
static void put_string(lade__text *text, const json *doc, uint32_t at)
{
	static const char letters[] = "bfnrt", values[] = "\b\f\n\r\t";
	const json_node *node = &doc->nodes[at];
	const char *from = doc->text + node->at;
	lade__text_put(text, "\"");
	for (size_t i = 0, used; i < node->size; i += used) {
		if (from[i] != '\\') {
			put_char(text, take_utf8((const unsigned char *)from + i, node->size - i,
			                         &used));
			continue;
		}
		const char *letter = strchr(letters, from[i + 1]);
		char digits[5] = "";
		used = from[i + 1] == 'u' ? 6 : 2;
		if (used == 6)
			memcpy(digits, from + i + 2, 4);
		put_char(text, used == 6 ? (uint32_t)strtoul(digits, NULL, 16)
		                         : (unsigned char)(letter ? values[letter - letters]
		                                                  : from[i + 1]));
	}
	lade__text_put(text, "\"");
}

/* ---- values -------------------------------------------------------------------------- */

void lade__text_number(lade__text *text, double value)
{
	char digits[40], plain[32];
	int n = 0, precision = 0;
	if (isnan(value) || isinf(value)) {
		lade__text_put(text, isnan(value) ? "\"NaN\"" : value < 0 ? "\"-Infinity\""
		                                                          : "\"Infinity\"");
		return;
	}
	do
		snprintf(digits, sizeof digits, "%.*e", precision, value);
	while (strtod(digits, NULL) != value && ++precision < 17);
	char *mark = strchr(digits, 'e');
	int power = (int)strtol(mark + 1, NULL, 10);
	for (char *c = digits; c < mark; c++)
		if (*c >= '0' && *c <= '9')
			plain[n++] = *c;
	plain[n] = 0;
	if (signbit(value))
		lade__text_put(text, "-");
	if (power < -4 || power >= 16)
		lade__text_put(text, "%c%s%se%c%02d", plain[0], n > 1 ? "." : "", plain + 1,
		               power < 0 ? '-' : '+', abs(power));
	else if (power < 0)
		lade__text_put(text, "0.%.*s%s", -power - 1, "000", plain);
	else if (n <= power + 1)
		lade__text_put(text, "%s%.*s.0", plain, power + 1 - n, "0000000000000000");
	else
		lade__text_put(text, "%.*s.%s", power + 1, plain, plain + power + 1);
}

void lade__text_raw(lade__text *text, const json *doc, uint32_t at)
{
	const json_node *node = &doc->nodes[at];
	size_t quote = node->type == JSON_STRING;
	lade__text_add(text, doc->text + node->at - quote, node->size + 2 * quote);
}

static void new_line(lade__text *text, unsigned depth)
{
	lade__text_put(text, "\n%*s", (int)(2 * depth), "");
}

void lade__text_pretty(lade__text *text, const json *doc, uint32_t at, unsigned depth)
{
	json_type type = lade__json_type(doc, at);
	bool object = type == JSON_OBJECT, first = true;
	if (type == JSON_STRING) {
		put_string(text, doc, at);
		return;
	}
	if (type != JSON_ARRAY && !object) {
		lade__text_raw(text, doc, at);
		return;
	}
	lade__text_put(text, object ? "{" : "[");
	for (uint32_t c = lade__json_child(doc, at, 0); c != JSON_NONE;
	     c = lade__json_child(doc, at, c), first = false) {
		lade__text_put(text, first ? "" : ",");
		new_line(text, depth + 1);
		if (object) {
			put_string(text, doc, c);
			lade__text_put(text, ": ");
		}
		lade__text_pretty(text, doc, object ? c + 1 : c, depth + 1);
	}
	if (!first)
		new_line(text, depth);
	lade__text_put(text, object ? "}" : "]");
}

void lade__text_with(lade__text *text, const json *doc, uint32_t at, unsigned depth,
                     const lade__member *member)
{
	const char *comma = "{";
	bool done = false, there = lade__json_get(doc, at, member->key) != JSON_NONE;
	for (uint32_t c = lade__json_child(doc, at, 0);; c = lade__json_child(doc, at, c)) {
		bool own = c != JSON_NONE && lade__json_is(doc, c, member->key);
		bool here = own || (!there && (c == JSON_NONE || (member->before &&
		                               lade__json_is(doc, c, member->before))));
		if (here && !done) {
			lade__text_put(text, "%s", comma);
			new_line(text, depth + 1);
			lade__text_put(text, "\"%s\": ", member->key);
			lade__text_pretty(text, member->value, 0, depth + 1);
			comma = ",";
			done = true;
		}
		if (c == JSON_NONE)
			break;
		if (own)
			continue;
		lade__text_put(text, "%s", comma);
		new_line(text, depth + 1);
		put_string(text, doc, c);
		lade__text_put(text, ": ");
		lade__text_pretty(text, doc, c + 1, depth + 1);
		comma = ",";
	}
	new_line(text, depth);
	lade__text_put(text, "}");
}

/* ---- types --------------------------------------------------------------------------- */

static bool put_fields(lade__text *text, const lade_zarr_type *type, uint32_t format)
{
	bool known = true;
	lade__text_put(text, format == 2
	               ? "[" : "{\"name\":\"struct\",\"configuration\":{\"fields\":[");
	for (size_t i = 0; i < type->field_count; i++) {
		const lade_zarr_field *field = &type->fields[i];
		lade__text_put(text, format == 2 ? "%s[" : "%s{\"name\":", i ? "," : "");
		lade__text_string(text, field->name, strlen(field->name));
		lade__text_put(text, format == 2 ? "," : ",\"data_type\":");
		known &= lade__text_type(text, &field->type, format);
		lade__text_put(text, format == 2 ? "]" : "}");
	}
	lade__text_put(text, format == 2 ? "]" : "]}}");
	return known;
}

/* Format 2: NumPy's type strings. */
static bool put_type_v2(lade__text *text, const lade_zarr_type *type)
{
	static const char letters[] = {[LADE_ZARR_BOOL] = 'b', [LADE_ZARR_INT] = 'i',
	                               [LADE_ZARR_UINT] = 'u', [LADE_ZARR_FLOAT] = 'f',
	                               [LADE_ZARR_COMPLEX] = 'c', [LADE_ZARR_RAW] = 'V',
	                               [LADE_ZARR_CHARS] = 'S', [LADE_ZARR_UTF32] = 'U',
	                               [LADE_ZARR_DATETIME] = 'M', [LADE_ZARR_TIMEDELTA] = 'm'};
	char order = type->swap_size ? type->big ? '>' : '<' : '|';
	switch (type->cls) {
	case LADE_ZARR_STRUCT:
		return put_fields(text, type, 2);
	case LADE_ZARR_STRING:
	case LADE_ZARR_BYTES:
		lade__text_put(text, "\"|O\"");
		return true;
	case LADE_ZARR_FLOAT_X:
		lade__text_put(text, "\"%s\"", type->name); /* as tensorstore */
		return true;
	case LADE_ZARR_DATETIME:
	case LADE_ZARR_TIMEDELTA:
		lade__text_put(text, "\"%c%c8", order, letters[type->cls]);
		if (strcmp(type->unit, "generic") != 0 && type->unit_count > 1)
			lade__text_put(text, "[%" PRIu32 "%s]\"", type->unit_count, type->unit);
		else if (strcmp(type->unit, "generic") != 0)
			lade__text_put(text, "[%s]\"", type->unit);
		else
			lade__text_put(text, "\"");
		return true;
	default:
		lade__text_put(text, "\"%c%c%" PRIu64 "\"", order, letters[type->cls],
		               type->cls == LADE_ZARR_UTF32 ? type->size / 4 : type->size);
		return type->size > 0;
	}
}

bool lade__text_type(lade__text *text, const lade_zarr_type *type, uint32_t format)
{
	if (format == 2)
		return put_type_v2(text, type);
	switch (type->cls) {
	case LADE_ZARR_STRUCT:
		return put_fields(text, type, 3);
	case LADE_ZARR_DATETIME:
	case LADE_ZARR_TIMEDELTA:
		lade__text_put(text,
		               "{\"name\":\"%s\",\"configuration\":{\"unit\":\"%s\","
		               "\"scale_factor\":%" PRIu32 "}}",
		               type->name, type->unit, type->unit_count);
		return true;
	case LADE_ZARR_RAW:
	case LADE_ZARR_CHARS:
	case LADE_ZARR_UTF32:
		if (type->name[0] != 'r' || strcmp(type->name, "raw_bytes") == 0) {
			lade__text_put(text,
			               "{\"name\":\"%s\",\"configuration\":{"
			               "\"length_bytes\":%" PRIu64 "}}",
			               type->name, type->size);
			return true;
		}
		break;
	default:
		break;
	}
	lade__text_put(text, "\"%s\"", type->name);
	return true;
}

/* ---- fill values --------------------------------------------------------------------- */

static void put_base64(lade__text *text, const uint8_t *bytes, size_t size)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	lade__text_put(text, "\"");
	for (size_t i = 0; i < size; i += 3) {
		size_t n = size - i < 3 ? size - i : 3;
		uint32_t bits = (uint32_t)bytes[i] << 16;
		bits |= n > 1 ? (uint32_t)bytes[i + 1] << 8 : 0;
		bits |= n > 2 ? bytes[i + 2] : 0;
		char four[4] = {digits[bits >> 18], digits[bits >> 12 & 63],
		                n > 1 ? digits[bits >> 6 & 63] : '=',
		                n > 2 ? digits[bits & 63] : '='};
		lade__text_add(text, four, 4);
	}
	lade__text_put(text, "\"");
}

/* A float of 'size' bytes: a number if only that reads as these bits, or its bits. */
static void put_real(lade__text *text, const lade_zarr_type *type, const uint8_t *bytes,
                     size_t size)
{
	uint64_t bits = 0;
	unsigned exponent = type->cls == LADE_ZARR_FLOAT_X ? 8 : size == 2 ? 5 : size == 4 ? 8 : 11;
	unsigned mantissa = (unsigned)size * 8 - 1 - exponent;
	for (size_t i = 0; i < size; i++)
		bits |= (uint64_t)bytes[i] << 8 * i;
	if (size == 1) { /* float8: each type has its own idea of what is finite */
		lade__text_put(text, bits ? "\"0x%02" PRIx64 "\"" : "0.0", bits);
		return;
	}
	uint64_t inf = (((uint64_t)1 << exponent) - 1) << mantissa, sign = bits >> (size * 8 - 1);
	uint64_t rest = bits & (((uint64_t)1 << (size * 8 - 1)) - 1);
	uint64_t low = bits & (((uint64_t)1 << mantissa) - 1);
	if (rest > inf && bits != (inf | (uint64_t)1 << (mantissa - 1))) {
		lade__text_put(text, "\"0x%0*" PRIx64 "\"", (int)size * 2, bits);
		return;
	}
	int power = (int)(rest >> mantissa), bias = (1 << (exponent - 1)) - 1;
	double value = rest > inf    ? (double)NAN
	               : rest == inf ? (double)INFINITY
	               : power       ? ldexp((double)(low | (uint64_t)1 << mantissa),
	                                     power - bias - (int)mantissa)
	                             : ldexp((double)low, 1 - bias - (int)mantissa);
	lade__text_number(text, sign ? -value : value);
}

static void put_utf32(lade__text *text, const uint8_t *bytes, size_t size)
{
	while (size >= 4 && lade__le32(bytes + size - 4) == 0)
		size -= 4;
	lade__text_put(text, "\"");
	for (size_t i = 0; i + 4 <= size; i += 4)
		put_char(text, lade__le32(bytes + i));
	lade__text_put(text, "\"");
}

/* A struct of format 2: its bytes as they are stored. */
static void to_stored(const lade_zarr_type *type, uint8_t *bytes)
{
	for (size_t i = 0; i < type->field_count; i++)
		to_stored(&type->fields[i].type, bytes + type->fields[i].off);
	for (uint64_t at = 0; type->big && at < type->size; at += type->swap_size)
		for (size_t i = 0, k = type->swap_size - 1; i < k; i++, k--) {
			uint8_t byte = bytes[at + i];
			bytes[at + i] = bytes[at + k];
			bytes[at + k] = byte;
		}
}

static void put_struct(lade__text *text, const lade_zarr_type *type, const uint8_t *bytes,
                       uint32_t format)
{
	if (format == 2) {
		uint8_t *stored = malloc((size_t)type->size + 1);
		text->failed |= !stored;
		if (!stored)
			return;
		memcpy(stored, bytes, (size_t)type->size);
		to_stored(type, stored);
		put_base64(text, stored, (size_t)type->size);
		free(stored);
		return;
	}
	for (size_t i = 0; i < type->field_count; i++) {
		const lade_zarr_field *field = &type->fields[i];
		lade__text_put(text, i ? "," : "{");
		lade__text_string(text, field->name, strlen(field->name));
		lade__text_put(text, ":");
		lade__text_fill(text, &field->type, bytes + field->off, (size_t)field->type.size,
		                format);
	}
	lade__text_put(text, "}");
}

void lade__text_fill(lade__text *text, const lade_zarr_type *type, const void *fill, size_t size,
                     uint32_t format)
{
	const uint8_t *bytes = fill;
	uint64_t bits = 0;
	for (size_t i = 0; i < size && i < 8; i++)
		bits |= (uint64_t)bytes[i] << 8 * i;
	unsigned unused = size && size < 8 ? 64 - 8 * (unsigned)size : 0;
	switch (type->cls) {
	case LADE_ZARR_BOOL:
		lade__text_put(text, bits ? "true" : "false");
		return;
	case LADE_ZARR_UINT:
		lade__text_put(text, "%" PRIu64, bits);
		return;
	case LADE_ZARR_INT:
	case LADE_ZARR_DATETIME:
	case LADE_ZARR_TIMEDELTA:
		lade__text_put(text, "%" PRId64, (int64_t)(bits << unused) >> unused);
		return;
	case LADE_ZARR_FLOAT:
	case LADE_ZARR_FLOAT_X:
		put_real(text, type, bytes, size);
		return;
	case LADE_ZARR_COMPLEX:
		lade__text_put(text, "[");
		put_real(text, type, bytes, type->swap_size);
		lade__text_put(text, ",");
		put_real(text, type, bytes + type->swap_size, type->swap_size);
		lade__text_put(text, "]");
		return;
	case LADE_ZARR_UTF32:
		put_utf32(text, bytes, size);
		return;
	case LADE_ZARR_STRING:
		lade__text_string(text, fill, size);
		return;
	case LADE_ZARR_STRUCT:
		put_struct(text, type, bytes, format);
		return;
	case LADE_ZARR_CHARS:
		while (size && bytes[size - 1] == 0)
			size--;
		put_base64(text, bytes, size);
		return;
	case LADE_ZARR_RAW:
		if (strcmp(type->name, "raw_bytes") != 0) { /* r16: a list of bytes */
			for (size_t i = 0; i < size; i++)
				lade__text_put(text, "%c%u", i ? ',' : '[', bytes[i]);
			lade__text_put(text, "]");
			return;
		}
		break;
	default:
		break;
	}
	put_base64(text, bytes, size);
}
