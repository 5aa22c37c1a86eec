/*
 * json.c: reads JSON documents.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr/json.h"

#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- parsing ------------------------------------------------------------------------- */

typedef struct parser {
	json *doc;
	uint32_t at, cap;
	lade_error *err;
} parser;

static lade_status bad(const parser *p, uint32_t at, const char *what)
{
	return lade_fail(p->err, LADE_E_CORRUPT, at, "%s: %s at byte %u of %zu", p->doc->name, what,
	                 at, p->doc->size);
}

static lade_status add(parser *p, json_type type, uint32_t at, uint32_t *index)
{
	json *doc = p->doc;
	if (doc->count == p->cap) {
		uint32_t cap = p->cap ? p->cap * 2 : 64;
		json_node *nodes = realloc(doc->nodes, cap * sizeof *nodes);
		if (!nodes)
			return lade_fail(p->err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "%s: no memory for %u values", doc->name, cap);
		doc->nodes = nodes;
		p->cap = cap;
	}
	*index = doc->count++;
	doc->nodes[*index] = (json_node){.at = at, .next = doc->count, .type = (uint8_t)type};
	return LADE_OK;
}

/* The byte at p->at; 0 at the end, which no value can have. */
static unsigned char peek(const parser *p)
{
	return p->at < p->doc->size ? (unsigned char)p->doc->text[p->at] : 0;
}

static void skip_space(parser *p)
{
	while (peek(p) == ' ' || peek(p) == '\t' || peek(p) == '\n' || peek(p) == '\r')
		p->at++;
}

static bool is_digit(unsigned char c)
{
	return c >= '0' && c <= '9';
}

static int hex(unsigned char c)
{
	return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 :
	       c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Bytes of the UTF-8 character at 'text'; 0: it is none.  Overlong forms, surrogates and numbers
 * above U+10FFFF are none. */
static uint32_t utf8_size(const unsigned char *text, size_t size)
{
	unsigned char c = text[0];
	uint32_t n = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
	if (n == 0 || n > size)
		return 0;
	for (uint32_t i = 1; i < n; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	if ((c == 0xe0 && text[1] < 0xa0) || (c == 0xed && text[1] > 0x9f) ||
	    (c == 0xf0 && text[1] < 0x90) || (c == 0xf4 && text[1] > 0x8f))
		return 0;
	return n;
}

size_t lade__utf8_prefix(const uint8_t *text, size_t size)
{
	const uint64_t high = 0x8080808080808080;
	uint64_t word;
	uint32_t n;
	for (size_t at = 0;; at += n) {
		while (size - at >= 8 && (memcpy(&word, text + at, 8), !(word & high)))
			at += 8;
		n = at < size ? utf8_size(text + at, size - at) : 0;
		if (n == 0)
			return at;
	}
}

static lade_status read_escape(parser *p)
{
	unsigned char c = peek(p);
	if (c == 0 || !strchr("\"\\/bfnrtu", c))
		return bad(p, p->at, "an unknown escape");
	p->at++;
	for (int i = 0; c == 'u' && i < 4; i++, p->at++)
		if (hex(peek(p)) < 0)
			return bad(p, p->at, "no hexadecimal digit");
	return LADE_OK;
}

/* Reads a string; p->at is behind its first quote. */
static lade_status read_string(parser *p, uint32_t index)
{
	const unsigned char *text = (const unsigned char *)p->doc->text;
	bool escaped = false;
	for (unsigned char c; (c = peek(p)) != '"';) {
		if (p->at >= p->doc->size)
			return bad(p, p->at, "a string without an end");
		if (c < 0x20)
			return bad(p, p->at, "a control character");
		if (c == '\\') {
			escaped = true;
			p->at++;
			lade_status status = read_escape(p);
			if (status != LADE_OK)
				return status;
			continue;
		}
		uint32_t n = utf8_size(text + p->at, p->doc->size - p->at);
		if (n == 0)
			return bad(p, p->at, "bytes that are not UTF-8");
		p->at += n;
	}
	p->doc->nodes[index].size = p->at - p->doc->nodes[index].at;
	p->doc->nodes[index].escaped = escaped;
	p->at++;
	return LADE_OK;
}

static bool take(parser *p, const char *word)
{
	size_t n = strlen(word);
	if (p->doc->size - p->at < n || memcmp(p->doc->text + p->at, word, n) != 0)
		return false;
	p->at += (uint32_t)n;
	return true;
}

static bool take_digits(parser *p)
{
	uint32_t from = p->at;
	while (is_digit(peek(p)))
		p->at++;
	return p->at > from;
}

static lade_status read_number(parser *p, uint32_t index)
{
	if (peek(p) == '-')
		p->at++;
	if (!take(p, "Infinity")) {
		unsigned char first = peek(p);
		uint32_t from = p->at;
		if (!take_digits(p) || (first == '0' && p->at > from + 1))
			return bad(p, from, "no value");
		if (peek(p) == '.') {
			p->at++;
			if (!take_digits(p))
				return bad(p, p->at, "no digit");
		}
		if (peek(p) == 'e' || peek(p) == 'E') {
			p->at++;
			if (peek(p) == '+' || peek(p) == '-')
				p->at++;
			if (!take_digits(p))
				return bad(p, p->at, "no digit");
		}
	}
	p->doc->nodes[index].size = p->at - p->doc->nodes[index].at;
	return LADE_OK;
}

static lade_status read_value(parser *p, unsigned depth);

/* Reads the key and the colon of a member. */
static lade_status read_key(parser *p)
{
	uint32_t index;
	skip_space(p);
	if (peek(p) != '"')
		return bad(p, p->at, "no key");
	lade_status status = add(p, JSON_STRING, ++p->at, &index);
	if (status == LADE_OK)
		status = read_string(p, index);
	if (status != LADE_OK)
		return status;
	skip_space(p);
	if (peek(p) != ':')
		return bad(p, p->at, "no ':'");
	p->at++;
	return LADE_OK;
}

/* Reads the children of an array or object; p->at is behind the bracket. */
static lade_status read_children(parser *p, uint32_t index, unsigned depth)
{
	bool object = p->doc->nodes[index].type == JSON_OBJECT;
	unsigned char end = object ? '}' : ']';
	if (depth >= JSON_DEPTH_MAX)
		return lade_fail(p->err, LADE_E_LIMIT, p->at - 1,
		                 "%s: deeper than %d levels at byte %u", p->doc->name,
		                 JSON_DEPTH_MAX, p->at - 1);
	skip_space(p);
	bool more = peek(p) != end;
	while (more) {
		lade_status status = object ? read_key(p) : LADE_OK;
		if (status == LADE_OK)
			status = read_value(p, depth + 1);
		if (status != LADE_OK)
			return status;
		skip_space(p);
		more = peek(p) == ',';
		if (more)
			p->at++;
		else if (peek(p) != end)
			return bad(p, p->at, object ? "no ',' or '}'" : "no ',' or ']'");
	}
	p->at++;
	p->doc->nodes[index].size = p->at - p->doc->nodes[index].at;
	p->doc->nodes[index].next = p->doc->count;
	return LADE_OK;
}

static lade_status read_value(parser *p, unsigned depth)
{
	static const struct {
		const char *word;
		json_type type;
	} words[] = {
		{"null", JSON_NULL},
		{"true", JSON_TRUE},
		{"false", JSON_FALSE},
		{"NaN", JSON_NUMBER},
	};
	skip_space(p);
	uint32_t index, from = p->at;
	unsigned char c = peek(p);
	json_type type = c == '{' ? JSON_OBJECT : c == '[' ? JSON_ARRAY :
	                 c == '"' ? JSON_STRING : JSON_NUMBER;
	lade_status status = add(p, type, from + (c == '"'), &index);
	if (status != LADE_OK)
		return status;
	if (type != JSON_NUMBER) {
		p->at++;
		return type == JSON_STRING ? read_string(p, index) : read_children(p, index, depth);
	}
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		if (!take(p, words[i].word))
			continue;
		p->doc->nodes[index].type = (uint8_t)words[i].type;
		p->doc->nodes[index].size = p->at - from;
		return LADE_OK;
	}
	return read_number(p, index);
}

lade_status lade__json_parse(json *doc, const char *name, const char *text, size_t size,
                             lade_error *err)
{
	*doc = (json){.name = name, .text = text, .size = size};
	parser p = {.doc = doc, .err = err};
	if (size > JSON_SIZE_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET, "%s: %zu bytes, at most %u",
		                 name, size, JSON_SIZE_MAX);
	lade_status status = read_value(&p, 0);
	skip_space(&p);
	if (status == LADE_OK && p.at < size)
		status = bad(&p, p.at, "something after the document");
	if (status != LADE_OK)
		lade__json_free(doc);
	return status;
}

void lade__json_free(json *doc)
{
	free(doc->nodes);
	doc->nodes = NULL;
	doc->count = 0;
}

/* ---- looking ------------------------------------------------------------------------- */

uint32_t lade__json_child(const json *doc, uint32_t at, uint32_t child)
{
	json_type type = lade__json_type(doc, at);
	if (type != JSON_ARRAY && type != JSON_OBJECT)
		return JSON_NONE;
	uint32_t next = child == 0 ? at + 1 : doc->nodes[child].next;
	if (child && type == JSON_OBJECT)
		next = doc->nodes[next].next; /* over the value */
	return next < doc->nodes[at].next ? next : JSON_NONE;
}

size_t lade__json_count(const json *doc, uint32_t at)
{
	size_t count = 0;
	for (uint32_t c = lade__json_child(doc, at, 0); c != JSON_NONE;
	     c = lade__json_child(doc, at, c))
		count++;
	return count;
}

uint32_t lade__json_get(const json *doc, uint32_t at, const char *key)
{
	uint32_t found = JSON_NONE;
	if (lade__json_type(doc, at) != JSON_OBJECT)
		return JSON_NONE;
	for (uint32_t c = lade__json_child(doc, at, 0); c != JSON_NONE;
	     c = lade__json_child(doc, at, c))
		if (lade__json_is(doc, c, key))
			found = c + 1;
	return found;
}

static unsigned code_unit(const char *text)
{
	unsigned unit = 0;
	for (int i = 0; i < 4; i++)
		unit = unit << 4 | (unsigned)hex((unsigned char)text[i]);
	return unit;
}

static size_t put_utf8(char *to, unsigned c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	for (size_t i = n; i-- > 1; c >>= 6)
		to[i] = (char)(0x80 | (c & 0x3f));
	to[0] = (char)((n == 2 ? 0xc0u : n == 3 ? 0xe0u : 0xf0u) | c);
	return n;
}

/* The character of an escape behind '\', as UTF-8; '*size' gets the bytes of the escape.  A lone
 * surrogate becomes U+FFFD. */
static size_t unescape(const char *text, size_t left, char *to, size_t *size)
{
	static const char names[] = "bfnrt", values[] = "\b\f\n\r\t";
	const char *named = strchr(names, text[0]);
	*size = 1;
	if (text[0] != 'u') {
		to[0] = named ? values[named - names] : text[0];
		return 1;
	}
	unsigned c = code_unit(text + 1);
	*size = 5;
	if (c >= 0xd800 && c < 0xe000) {
		unsigned low =
			left >= 11 && text[5] == '\\' && text[6] == 'u' ? code_unit(text + 7) : 0;
		bool pair = c < 0xdc00 && low >= 0xdc00 && low < 0xe000;
		*size = pair ? 11 : 5;
		c = pair ? 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00) : 0xfffd;
	}
	return put_utf8(to, c);
}

/* An escape is never shorter than its character: 2 bytes give 1, 6 at most 3, 12 give 4. */
size_t lade__json_string(const json *doc, uint32_t at, char *to)
{
	const json_node *node = &doc->nodes[at];
	const char *text = doc->text + node->at;
	size_t n = 0;
	for (size_t i = 0, size; i < node->size; i += size) {
		size = 1;
		if (text[i] != '\\') {
			to[n++] = text[i];
			continue;
		}
		n += unescape(text + i + 1, node->size - i - 1, to + n, &size);
		size++;
	}
	to[n] = 0;
	return n;
}

bool lade__json_is(const json *doc, uint32_t at, const char *text)
{
	char copy[256];
	if (lade__json_type(doc, at) != JSON_STRING)
		return false;
	const json_node *node = &doc->nodes[at];
	if (!node->escaped)
		return strlen(text) == node->size &&
		       memcmp(doc->text + node->at, text, node->size) == 0;
	if (node->size >= sizeof copy)
		return false;
	size_t size = lade__json_string(doc, at, copy);
	return strlen(text) == size && memcmp(copy, text, size) == 0;
}

/* ---- numbers ------------------------------------------------------------------------- */

bool lade__json_u64(const json *doc, uint32_t at, bool integral, uint64_t *out)
{
	if (lade__json_type(doc, at) != JSON_NUMBER)
		return false;
	const json_node *node = &doc->nodes[at];
	const char *text = doc->text + node->at;
	uint64_t value = 0;
	for (uint32_t i = 0; i < node->size; i++) {
		unsigned digit = (unsigned)(text[i] - '0');
		if (digit > 9) {
			double real;
			if (!integral || !lade__json_double(doc, at, &real) || !(real >= 0) ||
			    real >= 0x1p64 || real != (double)(uint64_t)real)
				return false;
			*out = (uint64_t)real;
			return true;
		}
		if (value > (UINT64_MAX - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*out = value;
	return true;
}

bool lade__json_i64(const json *doc, uint32_t at, int64_t *out)
{
	if (lade__json_type(doc, at) != JSON_NUMBER)
		return false;
	const json_node *node = &doc->nodes[at];
	const char *text = doc->text + node->at;
	bool minus = text[0] == '-';
	uint64_t value = 0, most = (uint64_t)INT64_MAX + minus;
	for (uint32_t i = minus; i < node->size; i++) {
		unsigned digit = (unsigned)(text[i] - '0');
		if (digit > 9 || value > (most - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*out = minus ? (int64_t)(0 - value) : (int64_t)value;
	return true;
}

bool lade__text_double(const char *text, size_t size, double *out)
{
	char small[128], *copy = small, *end;
	const char *mark = localeconv()->decimal_point;
	size_t n = 0, cap = size + strlen(mark) + 1;
	if (cap > sizeof small && !(copy = malloc(cap)))
		return false;
	for (size_t i = 0; i < size; i++) {
		if (text[i] != '.') {
			copy[n++] = text[i];
			continue;
		}
		memcpy(copy + n, mark, strlen(mark));
		n += strlen(mark);
	}
	copy[n] = 0;
	*out = strtod(copy, &end);
	bool whole = n > 0 && end == copy + n;
	if (copy != small)
		free(copy);
	return whole;
}

bool lade__json_double(const json *doc, uint32_t at, double *out)
{
	return lade__json_type(doc, at) == JSON_NUMBER &&
	       lade__text_double(doc->text + doc->nodes[at].at, doc->nodes[at].size, out);
}

/* ---- messages ------------------------------------------------------------------------ */

/* The JSON pointer of a value; a long one is cut. */
static void pointer(const json *doc, uint32_t at, char *to, size_t cap)
{
	uint32_t node = 0;
	size_t n = 0;
	to[0] = 0;
	while (node != at && n < cap - 1) {
		uint32_t child = 0, found = JSON_NONE;
		size_t index = 0;
		bool object = doc->nodes[node].type == JSON_OBJECT;
		for (child = lade__json_child(doc, node, 0); child != JSON_NONE;
		     child = lade__json_child(doc, node, child), index++)
			if (child <= at)
				found = child;
			else
				break;
		if (found == JSON_NONE)
			return;
		int put = object ? snprintf(to + n, cap - n, "/%.*s", (int)doc->nodes[found].size,
		                            doc->text + doc->nodes[found].at)
		                 : snprintf(to + n, cap - n, "/%zu", index - 1);
		n += (size_t)put;
		if (object && found == at)
			return; /* a key: its member */
		node = object ? found + 1 : found;
	}
}

lade_status lade__json_fail(const json *doc, uint32_t at, lade_status status, lade_error *err,
                            const char *format, ...)
{
	char where[96], what[160];
	va_list args;
	if (!err)
		return status;
	va_start(args, format);
	vsnprintf(what, sizeof what, format, args);
	va_end(args);
	if (at == JSON_NONE)
		return lade_fail(err, status, LADE_NO_OFFSET, "%s: %s", doc->name, what);
	const json_node *node = &doc->nodes[at];
	pointer(doc, at, where, sizeof where);
	return lade_fail(err, status, node->at, "%s%s%s: %s, have %.*s%s", doc->name,
	                 where[0] ? " at " : "", where, what,
	                 node->size > 40 ? 40 : (int)node->size, doc->text + node->at,
	                 node->size > 40 ? "..." : "");
}
