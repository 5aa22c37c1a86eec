/*
 * http_answer.c: HTTP's heads, ranges and URLs: RFC 9110, sections 8.3, 10.2.3, 14 and 15.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/http.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <xxhash.h>

/* ---- heads --------------------------------------------------------------------------------- */

/* Reads digits; false if there are none or too many.  '*at' moves behind them. */
static bool number(const char **at, const char *end, uint64_t *out)
{
	const char *from = *at;
	*out = 0;
	while (*at < end && **at >= '0' && **at <= '9') {
		if (__builtin_mul_overflow(*out, 10u, out) ||
		    __builtin_add_overflow(*out, (uint64_t)(**at - '0'), out))
			return false;
		++*at;
	}
	return *at > from;
}

/* A version of a kind and a text; a long text becomes its hash. */
static void version_of(lade_object_version *version, char kind, const char *text, size_t size)
{
	XXH128_hash_t hash;
	if (size > sizeof version->bytes - 1) {
		hash = XXH3_128bits(text, size);
		text = (const char *)&hash;
		size = sizeof hash;
		kind = (char)(kind - 'A' + 'a');
	}
	version->bytes[0] = (uint8_t)kind;
	memcpy(version->bytes + 1, text, size);
	version->size = (uint8_t)(size + 1);
}

/* "bytes 0-99/1234", "bytes 0-99/" "*", "bytes " "*" "/1234". */
static void content_range(lade__http_answer *a, const char *at, const char *end)
{
	uint64_t last;
	if (end - at < 6 || strncasecmp(at, "bytes", 5) != 0)
		return;
	at += 5;
	while (at < end && *at == ' ')
		at++;
	if (at < end && *at == '*') {
		at++;
	} else {
		if (!number(&at, end, &a->off) || at >= end || *at++ != '-' ||
		    !number(&at, end, &last) || last < a->off || last == UINT64_MAX)
			return;
		a->end = last + 1;
		a->part = true;
	}
	if (at < end && *at++ == '/' && number(&at, end, &last)) {
		a->total = last;
		a->part = a->part && last >= a->end;
	}
}

static bool named(const char *line, size_t name_size, const char *name)
{
	return strlen(name) == name_size && strncasecmp(line, name, name_size) == 0;
}

void lade__http_line(lade__http_answer *a, const char *line, size_t size)
{
	while (size && (line[size - 1] == '\n' || line[size - 1] == '\r' || line[size - 1] == ' '))
		size--;
	if (size > 5 && strncasecmp(line, "HTTP/", 5) == 0) {
		/* After a redirection, or a 100: what was said before counts no more. */
		*a = (lade__http_answer){.length = LADE_SIZE_UNKNOWN, .total = LADE_SIZE_UNKNOWN};
		return;
	}
	const char *colon = memchr(line, ':', size), *end = line + size;
	if (!colon)
		return;
	size_t name = (size_t)(colon - line);
	const char *at = colon + 1;
	uint64_t n;
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	if (named(line, name, "content-length") && number(&at, end, &n))
		a->length = n;
	else if (named(line, name, "content-range"))
		content_range(a, at, end);
	else if (named(line, name, "content-encoding"))
		a->coded = !named(at, (size_t)(end - at), "identity");
	else if (named(line, name, "etag") && at < end)
		version_of(&a->tag, 'E', at, (size_t)(end - at));
	else if (named(line, name, "last-modified") && at < end)
		version_of(&a->date, 'M', at, (size_t)(end - at));
	else if (named(line, name, "retry-after") && number(&at, end, &n))
		a->retry_ns = n < 3600 ? n * 1000000000 : 3600000000000;
}

/* ---- answers ------------------------------------------------------------------------------- */

static lade_status wrong_part(const lade__http_answer *a, const lade_range *range, lade_error *err)
{
	return lade_fail(err, LADE_E_IO, range->off,
	                 "the server gives bytes %" PRIu64 " to %" PRIu64 " of %" PRIu64
	                 ", and others were asked for",
	                 a->off, a->end, a->total);
}

/* An answer with bytes: 200 or 206. */
static lade_status good_answer(const lade__http_answer *a, lade_range *range, lade__http_body *body,
                               lade_error *err)
{
	uint64_t size = a->code == 206 ? a->total : a->length, off = range->off;
	lade_object_version version = a->tag;
	lade_status status;
	if (!version.size && a->date.size && size != LADE_SIZE_UNKNOWN &&
	    a->date.size < sizeof version.bytes - sizeof size) {
		version = a->date;
		memcpy(version.bytes + version.size, &size, sizeof size);
		version.size = (uint8_t)(version.size + sizeof size);
	}
	if (a->coded)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "the server gives it with a Content-Encoding");
	*body = (lade__http_body){.at = a->code == 206 ? a->off : 0, .off = range->off};
	if (size != LADE_SIZE_UNKNOWN) {
		status = lade__range_answer(range, size, &version, &off, err);
		body->off = off;
		body->size = range->size;
		if (status == LADE_OK && a->code == 206 && range->size &&
		    (a->off != off || a->end - a->off != range->size))
			return wrong_part(a, range, err);
		return status;
	}
	/* The size comes with the end of the body, or never. */
	if (range->kind == LADE_RANGE_LAST)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "the server does not state its size");
	if (range->version)
		*range->version = version;
	if (range->want && !lade_object_version_equal(range->want, &version))
		return lade_fail(err, LADE_E_CHANGED, LADE_NO_OFFSET,
		                 "it is not the version that was asked for");
	body->size = range->dst.size;
	body->to_end = a->code == 200;
	if (a->code == 206 &&
	    (a->off != range->off || a->end - a->off > range->dst.size ||
	     (range->kind == LADE_RANGE_AT && a->end - a->off != range->dst.size)))
		return wrong_part(a, range, err);
	if (a->code == 206)
		body->size = a->end - a->off;
	range->size = (size_t)body->size;
	return LADE_OK;
}

lade_status lade__http_judge(const lade__http_answer *a, lade_range *range, lade__http_body *body,
                             bool *again, lade_error *err)
{
	static const lade_object_version none = {0};
	uint64_t off;
	*again = false;
	*body = (lade__http_body){0};
	if (a->code == 200 || (a->code == 206 && a->part))
		return good_answer(a, range, body, err);
	if (a->code == 404 || a->code == 410)
		return lade__key_absent(err);
	if (a->code == 416 && a->total != LADE_SIZE_UNKNOWN) {
		lade_status status = lade__range_answer(range, a->total,
		                                        a->tag.size ? &a->tag : &none, &off, err);
		if (status != LADE_OK || range->size == 0)
			return status;
	}
	if (a->code == 416 && range->kind == LADE_RANGE_AT)
		return lade_fail(err, LADE_E_RANGE, range->off, "the server has no such bytes");
	*again = a->code == 408 || a->code == 425 || a->code == 429 || a->code == 500 ||
	         a->code == 502 || a->code == 503 || a->code == 504;
	return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "the server answers with code %d",
	                 a->code);
}

/* ---- requests ------------------------------------------------------------------------------ */

bool lade__http_range(const lade_range *range, char *text)
{
	uint64_t last = range->off + range->dst.size - 1;
	if (range->kind == LADE_RANGE_LAST)
		snprintf(text, 48, "-%zu", range->dst.size);
	else if (range->kind == LADE_RANGE_REST)
		snprintf(text, 48, "%" PRIu64 "-", range->off);
	else
		snprintf(text, 48, "%" PRIu64 "-%" PRIu64, range->off,
		         last >= range->off ? last : UINT64_MAX);
	/* All of a value is asked for without one: an empty value has no ranges. */
	return range->kind != LADE_RANGE_REST || range->off;
}

static bool plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       strchr("-._~/", c);
}

char *lade__http_url(const char *base, const char *key)
{
	size_t path = strcspn(base, "?"), query = strlen(base + path);
	char *url = malloc(path + query + 3 * strlen(key) + 2), *to = url;
	if (!url)
		return NULL;
	memcpy(to, base, path);
	to += path;
	if (path && to[-1] != '/')
		*to++ = '/';
	for (const char *from = key; *from; from++) {
		if (plain(*from)) {
			*to++ = *from;
			continue;
		}
		*to++ = '%';
		*to++ = "0123456789ABCDEF"[(unsigned char)*from >> 4];
		*to++ = "0123456789ABCDEF"[*from & 15];
	}
	memcpy(to, base + path, query + 1);
	return url;
}

lade_status lade__http_base_check(const char *base, char *shown, size_t shown_size, lade_error *err)
{
	size_t scheme = strncmp(base, "http://", 7) == 0    ? 7
	                : strncmp(base, "https://", 8) == 0 ? 8
	                                                    : 0;
	size_t host = strcspn(base + scheme, "/?"), size = strlen(base);
	if (!scheme || !host)
		return lade_fail(err, LADE_E_ARG, 0,
		                 "a URL begins with http:// or https:// and a host");
	if (size > 8192)
		return lade_fail(err, LADE_E_ARG, 8192, "a URL has %zu bytes, the limit is 8192",
		                 size);
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)base[i] <= 0x20 || base[i] == 0x7f || base[i] == '#')
			return lade_fail(err, LADE_E_ARG, i, "a URL has the byte 0x%02x at %zu",
			                 (unsigned char)base[i], i);
	/* Neither "user:password@" nor the query is for messages. */
	const char *from = base + scheme;
	for (size_t i = 0; i < host; i++)
		if (base[scheme + i] == '@')
			from = base + scheme + i + 1;
	snprintf(shown, shown_size, "%.*s%.*s", (int)scheme, base, (int)strcspn(from, "?"), from);
	return LADE_OK;
}
