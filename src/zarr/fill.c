/*
 * fill.c: fill values, from their many spellings to the bytes of an element.
 *
 * Accepts what zarr-python 3.4.2 does: integers as 4.0, "4" and true, floats as "1.5" and "nan".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr/zarr.h"

#include "base/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Members of an object that gives a struct: each field looks through them. */
#define FILL_MEMBERS_MAX 4096

/* ---- numbers ------------------------------------------------------------------------- */

/* Rounds to nearest, ties to even; what is too large becomes infinite. */
uint64_t lade__float_bits(double value, unsigned exponent, unsigned mantissa)
{
	int64_t bias = ((int64_t)1 << (exponent - 1)) - 1;
	uint64_t inf = (((uint64_t)1 << exponent) - 1) << mantissa;
	uint64_t sign = signbit(value) ? (uint64_t)1 << (exponent + mantissa) : 0;
	int power;
	if (isnan(value))
		return sign | inf | (uint64_t)1 << (mantissa - 1);
	if (isinf(value))
		return sign | inf;
	double fraction = frexp(fabs(value), &power); /* value = fraction * 2^power, from 1/2 */
	if (fraction == 0)
		return sign;
	/* 'steps' counts units of the last place; a subnormal has fewer of them. */
	int64_t scale = power - 1 + bias >= 1 ? (int64_t)mantissa + 1
	                                      : (int64_t)mantissa + power + bias - 1;
	if (scale < -1)
		return sign;
	uint64_t steps = (uint64_t)nearbyint(ldexp(fraction, (int)scale));
	int64_t field = power - 1 + bias >= 1 ? power - 2 + bias : 0;
	/* A carry out of the mantissa raises the exponent by itself. */
	uint64_t bits = ((uint64_t)field << mantissa) + steps;
	return sign | (field >= (int64_t)1 << exponent || bits > inf ? inf : bits);
}

/* The floats of 8 bits: which bit patterns are not finite. */
static const struct small {
	const char *name;
	int8_t exponent, bias;
	enum { IEEE, FN, FNUZ, SCALE } kind;
} smalls[] = {
	{"float8_e4m3fn", 4, 7, FN},       {"float8_e3m4", 3, 3, IEEE},
	{"float8_e4m3", 4, 7, IEEE},       {"float8_e4m3b11fnuz", 4, 11, FNUZ},
	{"float8_e4m3fnuz", 4, 8, FNUZ},   {"float8_e5m2", 5, 15, IEEE},
	{"float8_e5m2fnuz", 5, 16, FNUZ},  {"float8_e8m0fnu", 8, 127, SCALE},
};

/* The value of a bit pattern; NaN and infinities too. */
static double small_value(const struct small *t, unsigned bits)
{
	if (t->kind == SCALE)
		return bits == 0xff ? NAN : ldexp(1, (int)bits - t->bias);
	int mantissa = 7 - t->exponent;
	unsigned low = bits & ((1u << mantissa) - 1);
	unsigned high = (bits & 0x7f) >> mantissa, top = (1u << t->exponent) - 1;
	if (t->kind == FNUZ ? bits == 0x80 : t->kind == FN ? (bits & 0x7f) == 0x7f
	                                                   : high == top && low)
		return NAN;
	if (t->kind == IEEE && high == top)
		return bits & 0x80 ? -INFINITY : INFINITY;
	double value = high ? ldexp(1 + ldexp(low, -mantissa), (int)high - t->bias)
	                    : ldexp(low, 1 - t->bias - mantissa);
	return bits & 0x80 ? -value : value;
}

/* The nearest of all 256 patterns; of two, the even one.  What is beyond the largest becomes
 * infinite, or NaN in a type without infinities. */
static uint64_t small_bits(const struct small *t, double value)
{
	unsigned best = 0, nan = t->kind == FNUZ ? 0x80 : t->kind == SCALE ? 0xff : 0x7f, inf = nan;
	double least = INFINITY, most = 0;
	for (unsigned bits = 0; bits < 256; bits++) {
		double v = small_value(t, bits);
		if (isinf(v) && v > 0)
			inf = bits;
		if (isnan(v) || isinf(v))
			continue;
		most = v > most ? v : most;
		double away = fabs(v - value);
		bool side = signbit(v) == signbit(value);
		if (away < least || (away == least && side && !(bits & 1))) {
			least = away;
			best = bits;
		}
	}
	if (t->kind == IEEE)
		nan = inf | 1u << (6 - t->exponent);
	if (isnan(value))
		return nan;
	/* Half a step above the largest. */
	double step = t->kind == SCALE ? most
	                               : most - small_value(t, (t->kind == IEEE ? inf - 2
	                                                        : t->kind == FN ? 0x7d
	                                                                        : 0x7e));
	if (fabs(value) >= most + step / 2)
		return inf == nan && t->kind == FNUZ ? nan : inf | (value < 0 ? 0x80u : 0);
	return best;
}

static uint64_t real_bits(const lade_zarr_type *type, size_t size, double value)
{
	float f = (float)value;
	uint64_t bits = 0;
	uint32_t bits32;
	if (type->cls == LADE_ZARR_FLOAT_X && size == 1) {
		for (size_t i = 0; i < sizeof smalls / sizeof smalls[0]; i++)
			if (strcmp(smalls[i].name, type->name) == 0)
				bits = small_bits(&smalls[i], value);
	} else if (type->cls == LADE_ZARR_FLOAT_X) {
		bits = lade__float_bits(value, 8, 7);
	} else if (size == 2) {
		bits = lade__float_bits(value, 5, 10);
	} else if (size == 4) {
		memcpy(&bits32, &f, 4);
		bits = isnan(value) ? 0x7fc00000 : bits32;
	} else {
		memcpy(&bits, &value, 8);
		bits = isnan(value) ? 0x7ff8000000000000 : bits;
	}
	return bits;
}

/* "0x7fc00001": the bits themselves, all of them: for zarr-python "0x7fc0" is a float of 16 bits,
 * whatever the array's type is. */
static bool read_bits(const char *text, size_t size, size_t bytes, uint64_t *out)
{
	uint64_t bits = 0;
	unsigned base = size > 2 && text[1] == 'x' ? 16 : 2;
	if (size < 3 || text[0] != '0' || (text[1] != 'x' && text[1] != 'b') ||
	    size - 2 != bytes * (base == 16 ? 2 : 8))
		return false;
	for (size_t i = 2; i < size; i++) {
		char c = text[i];
		unsigned digit = c >= '0' && c <= '9' ? (unsigned)(c - '0') :
		                 c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10) :
		                 c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10) : 99;
		if (digit >= base || bits > (UINT64_MAX - digit) / base)
			return false;
		bits = bits * base + digit;
	}
	*out = bits;
	return true;
}

static lade_status fill_real(const scan *s, uint32_t at, const lade_zarr_type *type, size_t size,
                             uint8_t *to)
{
	json_type is = lade__json_type(s->doc, at);
	const json_node *node = &s->doc->nodes[at];
	const char *text = s->doc->text + node->at;
	double value = is == JSON_TRUE;
	uint64_t bits = 0;
	if (is == JSON_STRING && read_bits(text, node->size, size, &bits)) {
		lade__le_put(to, bits, size);
		return LADE_OK;
	}
	bool hex = is == JSON_STRING && memchr(text, 'x', node->size);
	if (is != JSON_TRUE && is != JSON_FALSE &&
	    !((is == JSON_NUMBER || is == JSON_STRING) && !hex &&
	      lade__text_double(text, node->size, &value)))
		return BAD(s, at,
		           "want a number, or \"NaN\", \"Infinity\" or \"0x...\" of %zu bits",
		           size * 8);
	lade__le_put(to, real_bits(type, size, value), size);
	return LADE_OK;
}

/* A whole number as 4, 4.0, "4", true or false. */
static bool read_whole(const scan *s, uint32_t at, bool is_signed, int64_t *i, uint64_t *u)
{
	json_node node = s->doc->nodes[at];
	json one = {.text = s->doc->text, .size = s->doc->size, .nodes = &node, .count = 1};
	double real;
	if (node.type == JSON_TRUE || node.type == JSON_FALSE) {
		*i = node.type == JSON_TRUE;
		*u = (uint64_t)*i;
		return true;
	}
	bool text = node.type == JSON_STRING && node.size > 0;
	if (text)
		node.type = JSON_NUMBER;
	if (is_signed ? lade__json_i64(&one, 0, i) : lade__json_u64(&one, 0, false, u))
		return true;
	/* 99999999999999999999 is no number of these types, whatever its double is. */
	if (text || node.type != JSON_NUMBER || !memchr(one.text + node.at, '.', node.size) ||
	    !lade__json_double(&one, 0, &real) || real != floor(real) ||
	    real < (is_signed ? -0x1p63 : 0) || real >= (is_signed ? 0x1p63 : 0x1p64))
		return false;
	*i = is_signed ? (int64_t)real : 0;
	*u = is_signed ? 0 : (uint64_t)real;
	return true;
}

static lade_status fill_whole(const scan *s, uint32_t at, const lade_zarr_type *type, uint8_t *to)
{
	bool is_signed = type->cls != LADE_ZARR_UINT;
	unsigned bits = (unsigned)type->size * 8;
	int64_t i = 0, low = INT64_MIN >> (64 - bits);
	uint64_t u = 0;
	if (!read_whole(s, at, is_signed, &i, &u) ||
	    (is_signed ? i < low || i > -(low + 1) : bits < 64 && u >> bits))
		return BAD(s, at, "want a whole number of %u bits, %s", bits,
		           is_signed ? "signed" : "unsigned");
	lade__le_put(to, is_signed ? (uint64_t)i : u, type->size);
	return LADE_OK;
}

static lade_status fill_bool(const scan *s, uint32_t at, uint8_t *to)
{
	double value = 0;
	switch (lade__json_type(s->doc, at)) {
	case JSON_TRUE:
		*to = 1;
		return LADE_OK;
	case JSON_FALSE:
		*to = 0;
		return LADE_OK;
	case JSON_NUMBER:
		*to = lade__json_double(s->doc, at, &value) && value != 0;
		return LADE_OK;
	default:
		return BAD(s, at, "want true or false");
	}
}

/* ---- bytes --------------------------------------------------------------------------- */

static int base64_digit(char c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 :
	       c >= '0' && c <= '9' ? c - '0' + 52 : c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes base64 with its padding into memory of the node. */
static lade_status base64(const scan *s, uint32_t at, uint8_t **out, size_t *size)
{
	if (lade__json_type(s->doc, at) != JSON_STRING)
		return BAD(s, at, "want a string of base64");
	const char *text = lade__scan_text(s, at);
	size_t n = 0, used = 0, length = text ? strlen(text) : 0;
	uint32_t bits = 0;
	uint8_t *to = text ? lade__arena(&s->node->arena, length / 4 * 3 + 4, 1) : NULL;
	if (!to)
		return lade__scan_nomem(s, "a fill value");
	for (; used < length && base64_digit(text[used]) >= 0; used++) {
		bits = bits << 6 | (uint32_t)base64_digit(text[used]);
		for (int k = 16; used % 4 == 3 && k >= 0; k -= 8)
			to[n++] = (uint8_t)(bits >> k);
	}
	size_t rest = used % 4, pads = length - used;
	if (strspn(text + used, "=") != pads || rest == 1 || pads != (rest ? 4 - rest : 0))
		return BAD(s, at, "want base64, whole groups of 4 characters");
	if (rest >= 2)
		to[n++] = (uint8_t)(bits >> (rest == 2 ? 4 : 10));
	if (rest == 3)
		to[n++] = (uint8_t)(bits >> 2);
	*out = to;
	*size = n;
	return LADE_OK;
}

/* An array of numbers from 0 to 255. */
static lade_status byte_list(const scan *s, uint32_t at, uint8_t **out, size_t *size)
{
	size_t count = lade__json_count(s->doc, at), n = 0;
	uint8_t *to = lade__arena(&s->node->arena, count + 1, 1);
	if (!to)
		return lade__scan_nomem(s, "a fill value");
	for (uint32_t c = lade__json_child(s->doc, at, 0); c != JSON_NONE;
	     c = lade__json_child(s->doc, at, c)) {
		uint64_t byte;
		if (!lade__json_u64(s->doc, c, false, &byte) || byte > 255)
			return BAD(s, c, "want a byte, 0 to 255");
		to[n++] = (uint8_t)byte;
	}
	*out = to;
	*size = n;
	return LADE_OK;
}

static lade_status any_bytes(const scan *s, uint32_t at, uint8_t **out, size_t *size)
{
	return lade__json_type(s->doc, at) == JSON_ARRAY ? byte_list(s, at, out, size)
	                                                 : base64(s, at, out, size);
}

/* Up to 'type->size' bytes; CHARS are cut, as NumPy does. */
static lade_status fill_bytes(const scan *s, uint32_t at, const lade_zarr_type *type, uint8_t *to)
{
	uint8_t *bytes;
	size_t size;
	uint64_t zero;
	if (lade__json_u64(s->doc, at, false, &zero) && zero == 0)
		return LADE_OK; /* zarr-python 2 writes 0 */
	lade_status status = any_bytes(s, at, &bytes, &size);
	if (status != LADE_OK)
		return status;
	if (size > type->size && type->cls != LADE_ZARR_CHARS)
		return BAD(s, at, "want at most %llu bytes", (unsigned long long)type->size);
	memcpy(to, bytes, size < type->size ? size : (size_t)type->size);
	return LADE_OK;
}

/* Characters as numbers of 4 bytes; what is too long is cut. */
static lade_status fill_utf32(const scan *s, uint32_t at, const lade_zarr_type *type, uint8_t *to)
{
	uint64_t zero, put = 0;
	if (lade__json_u64(s->doc, at, false, &zero) && zero == 0)
		return LADE_OK;
	if (lade__json_type(s->doc, at) != JSON_STRING)
		return BAD(s, at, "want a string");
	const uint8_t *text = (const uint8_t *)lade__scan_text(s, at);
	if (!text)
		return lade__scan_nomem(s, "a fill value");
	for (; *text && put < type->size; put += 4) {
		uint32_t c = *text++;
		unsigned more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;
		c &= more ? 0x3fu >> more : 0x7fu;
		while (more-- && *text)
			c = c << 6 | (*text++ & 0x3f);
		lade__le_put(to + put, c, 4);
	}
	return LADE_OK;
}

/* ---- all ----------------------------------------------------------------------------- */

static lade_status fill_element(const scan *s, uint32_t at, const lade_zarr_type *type,
                                uint8_t *to);

static lade_status fill_complex(const scan *s, uint32_t at, const lade_zarr_type *type, uint8_t *to)
{
	uint32_t real = lade__json_child(s->doc, at, 0);
	if (lade__json_type(s->doc, at) != JSON_ARRAY || lade__json_count(s->doc, at) != 2)
		return BAD(s, at, "want [real, imaginary]");
	lade_status status = fill_real(s, real, type, type->swap_size, to);
	if (status == LADE_OK)
		status = fill_real(s, lade__json_child(s->doc, at, real), type, type->swap_size,
		                   to + type->swap_size);
	return status;
}

static lade_status fill_time(const scan *s, uint32_t at, const lade_zarr_type *type, uint8_t *to)
{
	int64_t value = INT64_MIN;
	if (!lade__json_is(s->doc, at, "NaT") && !lade__json_i64(s->doc, at, &value))
		return BAD(s, at, "want a whole number of 64 bits or \"NaT\"");
	lade__le_put(to, (uint64_t)value, type->size);
	return LADE_OK;
}

/* Turns the numbers that are stored big-endian, as the bytes of a format 2 struct are. */
static void to_little(const lade_zarr_type *type, uint8_t *bytes)
{
	for (size_t i = 0; i < type->field_count; i++)
		to_little(&type->fields[i].type, bytes + type->fields[i].off);
	if (!type->big)
		return;
	for (uint64_t at = 0; at < type->size; at += type->swap_size)
		for (size_t i = 0, k = type->swap_size - 1; i < k; i++, k--) {
			uint8_t byte = bytes[at + i];
			bytes[at + i] = bytes[at + k];
			bytes[at + k] = byte;
		}
}

/* As an object of fields, those that are missing are zeros; or the bytes of the whole element. */
static lade_status fill_struct(const scan *s, uint32_t at, const lade_zarr_type *type, uint8_t *to)
{
	uint8_t *bytes;
	size_t size;
	uint64_t zero;
	if (lade__json_type(s->doc, at) == JSON_OBJECT) {
		if (lade__json_count(s->doc, at) > FILL_MEMBERS_MAX)
			return lade__json_fail(s->doc, at, LADE_E_LIMIT, s->err,
			                       "more than %d members", FILL_MEMBERS_MAX);
		for (size_t i = 0; i < type->field_count; i++) {
			const lade_zarr_field *field = &type->fields[i];
			uint32_t value = lade__json_get(s->doc, at, field->name);
			lade_status status = value == JSON_NONE ? LADE_OK :
				fill_element(s, value, &field->type, to + field->off);
			if (status != LADE_OK)
				return status;
		}
		return LADE_OK;
	}
	if (lade__json_u64(s->doc, at, false, &zero) && zero == 0)
		return LADE_OK;
	lade_status status = base64(s, at, &bytes, &size);
	if (status != LADE_OK)
		return status;
	if (size != type->size)
		return BAD(s, at, "want %llu bytes in base64, have %zu",
		           (unsigned long long)type->size, size);
	memcpy(to, bytes, size);
	to_little(type, to);
	return LADE_OK;
}

static lade_status fill_element(const scan *s, uint32_t at, const lade_zarr_type *type, uint8_t *to)
{
	switch (type->cls) {
	case LADE_ZARR_BOOL:
		return fill_bool(s, at, to);
	case LADE_ZARR_INT:
	case LADE_ZARR_UINT:
		return fill_whole(s, at, type, to);
	case LADE_ZARR_FLOAT:
	case LADE_ZARR_FLOAT_X:
		return fill_real(s, at, type, type->size, to);
	case LADE_ZARR_COMPLEX:
		return fill_complex(s, at, type, to);
	case LADE_ZARR_DATETIME:
	case LADE_ZARR_TIMEDELTA:
		return fill_time(s, at, type, to);
	case LADE_ZARR_UTF32:
		return fill_utf32(s, at, type, to);
	case LADE_ZARR_STRUCT:
		return fill_struct(s, at, type, to);
	default:
		return fill_bytes(s, at, type, to);
	}
}

/* STRING: characters, or a number, which zarr-python takes for its digits. */
static lade_status fill_of_any_length(const scan *s, uint32_t at, lade_zarr_array *array)
{
	uint8_t *bytes = NULL;
	if (array->type.cls == LADE_ZARR_BYTES) {
		uint64_t zero;
		lade_status status =
			lade__json_u64(s->doc, at, false, &zero) && zero == 0
				? LADE_OK : any_bytes(s, at, &bytes, &array->fill_size);
		array->fill = bytes ? (const void *)bytes : "";
		return status;
	}
	json_type is = lade__json_type(s->doc, at);
	if (is != JSON_STRING && is != JSON_NUMBER)
		return BAD(s, at, "want a string");
	char *text = lade__arena(&s->node->arena, s->doc->nodes[at].size + 1, 1);
	if (!text)
		return lade__scan_nomem(s, "a fill value");
	array->fill_size = lade__json_string(s->doc, at, text);
	array->fill = text;
	return LADE_OK;
}

/* Format 2: 'null' and a missing value are zeros; GDAL writes strings, NCZarr arrays of one. */
lade_status lade__zarr_fill(const scan *s, uint32_t at)
{
	lade_zarr_array *array = &s->node->array;
	const lade_zarr_type *type = &array->type;
	bool old = s->node->format == 2;
	json_type is = lade__json_type(s->doc, at);
	array->fill_given = !(old && (is == JSON_ABSENT || is == JSON_NULL));
	if (old && is == JSON_ARRAY && type->cls != LADE_ZARR_COMPLEX &&
	    lade__json_count(s->doc, at) == 1)
		at = lade__json_child(s->doc, at, 0);
	if (array->fill_given && type->size == 0)
		return fill_of_any_length(s, at, array);
	uint8_t *to = lade__arena(&s->node->arena, (size_t)type->size + 1, 1);
	if (!to)
		return lade__scan_nomem(s, "a fill value");
	array->fill = to;
	array->fill_size = (size_t)type->size;
	return array->fill_given ? fill_element(s, at, type, to) : LADE_OK;
}
