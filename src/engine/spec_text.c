/*
 * spec_text.c: the text form of a spec: grammar in lade/spec.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "engine/registry.h"
#include "engine/spec.h"

#include <lade/dtype.h>

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- printing ------------------------------------------------------------------------- */

typedef struct printer {
	char *text;
	size_t cap, size;
} printer;

static void put(printer *p, const char *s)
{
	size_t n = strlen(s);
	for (size_t i = 0; i < n; i++, p->size++)
		if (p->size + 1 < p->cap)
			p->text[p->size] = s[i];
}

/* The shortest of the decimal forms that reads back as the same double; the locale's decimal mark
 * becomes a point. */
static void put_float(printer *p, double f)
{
	char text[40];
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, f);
		if (strtod(text, NULL) == f)
			break;
	}
	const char *mark = localeconv()->decimal_point;
	char *at = strstr(text, mark);
	if (at && strcmp(mark, ".") != 0) {
		*at = '.';
		memmove(at + 1, at + strlen(mark), strlen(at + strlen(mark)) + 1);
	}
	put(p, text);
}

static void put_value(printer *p, const lade_option *option, lade_value value)
{
	char text[32];
	switch (option->type) {
	case LADE_OPTION_INT:
		snprintf(text, sizeof text, "%lld", (long long)value.i);
		put(p, text);
		break;
	case LADE_OPTION_FLOAT:
		put_float(p, value.f);
		break;
	case LADE_OPTION_BOOL:
		put(p, value.i ? "true" : "false");
		break;
	case LADE_OPTION_ENUM:
		put(p, option->names[value.i]);
		break;
	case LADE_OPTION_DTYPE:
		put(p, lade_dtype_text((lade_dtype)value.i));
		break;
	}
}

static void put_stage(printer *p, const lade_stage *stage)
{
	const lade_algorithm *algorithm = stage->algorithm;
	put(p, algorithm->name);
	const char *mark = "(";
	for (size_t i = 0; i < algorithm->option_count; i++) {
		const lade_option *option = &algorithm->options[i];
		if (lade__value_is_silent(option, stage->option[i]))
			continue;
		put(p, mark);
		mark = ",";
		/* The first option goes without its name where it cannot be missed. */
		if (i > 0 || !option->required) {
			put(p, option->name);
			put(p, "=");
		}
		put_value(p, option, stage->option[i]);
	}
	if (*mark == ',')
		put(p, ")");
}

size_t lade__spec_print(const lade_stage *stages, size_t count, char *text, size_t cap)
{
	printer p = {text, cap, 0};
	for (size_t i = 0; i < count; i++) {
		if (i)
			put(&p, "|");
		put_stage(&p, &stages[i]);
	}
	if (cap)
		text[p.size < cap ? p.size : cap - 1] = 0;
	return p.size;
}

/* ---- reading -------------------------------------------------------------------------- */

/* Texts longer than this are refused, so that errors can quote them and nothing overflows. */
#define TEXT_MAX 4096

typedef struct reader {
	const lade_engine *engine;
	const char *text; /* the whole, ended by NUL */
	const char *at;
	lade_error *err;
} reader;

static lade_status bad(reader *r, const char *at, lade_status status, const char *what)
{
	size_t rest = strlen(at);
	return lade_fail(r->err, status, (uint64_t)(at - r->text),
	                 "spec: %s at character %zu, \"%.*s%s\"", what, (size_t)(at - r->text),
	                 (int)(rest < 24 ? rest : 24), at, rest > 24 ? "..." : "");
}

static void skip_space(reader *r)
{
	while (*r->at == ' ' || *r->at == '\t' || *r->at == '\n')
		r->at++;
}

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

/* The names of the options, or of an enum's values, for a message. */
static void list_names(const lade_algorithm *algorithm, const char *const *names, char *text,
                       size_t cap)
{
	printer p = {text, cap, 0};
	for (size_t i = 0; algorithm ? i < algorithm->option_count : names[i] != NULL; i++) {
		if (i)
			put(&p, ", ");
		put(&p, algorithm ? algorithm->options[i].name : names[i]);
	}
	text[p.size < cap ? p.size : cap - 1] = 0;
}

static lade_status unknown_algorithm(reader *r, const char *name, size_t length)
{
	char known[160];
	printer p = {known, sizeof known, 0};
	const lade_algorithm *algorithm;
	for (size_t i = 0; (algorithm = lade_engine_algorithm(r->engine, i)); i++) {
		if (i)
			put(&p, " ");
		put(&p, algorithm->name);
	}
	known[p.size < sizeof known ? p.size : sizeof known - 1] = 0;
	return lade_fail(r->err, LADE_E_NOT_FOUND, (uint64_t)(name - r->text),
	                 "no algorithm is called \"%.*s\"; there are: %s%s",
	                 (int)(length < 31 ? length : 31), name, known,
	                 p.size < sizeof known ? "" : " ...");
}

/* A number in the C locale's spelling: digits, sign, point, exponent. */
static bool read_float(const char *text, size_t length, double *out)
{
	char copy[64];
	if (length == 0 || length >= sizeof copy)
		return false;
	for (size_t i = 0; i < length; i++)
		if (!strchr("0123456789+-.eE", text[i]))
			return false;
	/* strtod() wants the locale's mark; ours is one byte, so a longer one does not fit in
	 * place. */
	const char *mark = localeconv()->decimal_point;
	size_t n = 0;
	for (size_t i = 0; i < length; i++) {
		if (text[i] != '.') {
			copy[n++] = text[i];
			continue;
		}
		if (n + strlen(mark) >= sizeof copy)
			return false;
		memcpy(copy + n, mark, strlen(mark));
		n += strlen(mark);
	}
	if (n >= sizeof copy)
		return false;
	copy[n] = 0;
	char *end;
	*out = strtod(copy, &end);
	return end == copy + n;
}

static bool read_int(const char *text, size_t length, int64_t *out)
{
	char copy[24];
	if (length == 0 || length >= sizeof copy || !strchr("-+0123456789", text[0]))
		return false;
	memcpy(copy, text, length);
	copy[length] = 0;
	char *end;
	errno = 0;
	long long v = strtoll(copy, &end, 10);
	*out = v;
	return errno == 0 && end == copy + length;
}

static lade_status read_enum(reader *r, const lade_option *option, const char *text, size_t length,
                             lade_value *value)
{
	for (value->i = 0; option->names[value->i]; value->i++)
		if (lade__name_equal(option->names[value->i], text, length))
			return LADE_OK;
	char known[120], what[200];
	list_names(NULL, option->names, known, sizeof known);
	snprintf(what, sizeof what, "%s must be one of %s", option->name, known);
	return bad(r, text, LADE_E_SPEC, what);
}

static lade_status read_value(reader *r, const lade_option *option, const char *text, size_t length,
                              lade_value *value)
{
	char what[120], name[32];
	const char *want = "";
	switch (option->type) {
	case LADE_OPTION_INT:
		if (read_int(text, length, &value->i))
			return LADE_OK;
		want = "a whole number";
		break;
	case LADE_OPTION_FLOAT:
		if (read_float(text, length, &value->f))
			return LADE_OK;
		want = "a number";
		break;
	case LADE_OPTION_BOOL:
		value->i = lade__name_equal("true", text, length) ||
		           lade__name_equal("1", text, length);
		if (value->i || lade__name_equal("false", text, length) ||
		    lade__name_equal("0", text, length))
			return LADE_OK;
		want = "true or false";
		break;
	case LADE_OPTION_ENUM:
		return read_enum(r, option, text, length, value);
	case LADE_OPTION_DTYPE:
		if (length < sizeof name) {
			lade_dtype dtype;
			memcpy(name, text, length);
			name[length] = 0;
			if (lade_dtype_parse(name, &dtype, NULL) == LADE_OK) {
				value->i = dtype;
				return LADE_OK;
			}
		}
		want = "a data type such as <f4";
		break;
	}
	snprintf(what, sizeof what, "%s must be %s", option->name, want);
	return bad(r, text, LADE_E_SPEC, what);
}

/* Passes the status of a check on; its error is one of the text at 'at'. */
static lade_status at_text(reader *r, const char *at, lade_status status)
{
	if (status != LADE_OK && r->err)
		r->err->offset = (uint64_t)(at - r->text);
	return status;
}

/* One "value" or "name=value"; 'seen' has a bit for each option given. */
static lade_status read_option(reader *r, lade_stage *stage, uint32_t *seen)
{
	const lade_algorithm *algorithm = stage->algorithm;
	skip_space(r);
	const char *start = r->at;
	while (*r->at && *r->at != ',' && *r->at != ')' && *r->at != '=')
		r->at++;
	const char *value = start;
	size_t index = 0;
	/* "=f4" is a data type; a name before the mark makes it an option. */
	if (*r->at == '=' && r->at > start) {
		size_t length = (size_t)(r->at - start);
		while (length && start[length - 1] == ' ')
			length--;
		index = lade__option_find(algorithm, start, length);
		if (index == algorithm->option_count) {
			char known[120], what[200];
			list_names(algorithm, NULL, known, sizeof known);
			snprintf(what, sizeof what, "%s has no such option (it has: %s)",
			         algorithm->name, algorithm->option_count ? known : "none");
			return bad(r, start, LADE_E_NOT_FOUND, what);
		}
		r->at++;
		skip_space(r);
		value = r->at;
	} else if (*seen || algorithm->option_count == 0) {
		return bad(r, start, LADE_E_SPEC,
		           algorithm->option_count ? "only the first value may stand without a name"
		                                   : "there are no options");
	}
	while (*r->at && *r->at != ',' && *r->at != ')')
		r->at++;
	size_t length = (size_t)(r->at - value);
	while (length && value[length - 1] == ' ')
		length--;
	if (*seen & (1u << index))
		return bad(r, start, LADE_E_SPEC, "an option is given twice");
	*seen |= 1u << index;
	lade_status status = read_value(r, &algorithm->options[index], value, length,
	                                &stage->option[index]);
	if (status != LADE_OK)
		return status;
	return at_text(r, value, lade__value_check(stage, index, r->err));
}

static lade_status read_stage(reader *r, lade_stage *stage)
{
	skip_space(r);
	const char *name = r->at;
	while (is_name(*r->at))
		r->at++;
	size_t length = (size_t)(r->at - name);
	if (length == 0)
		return bad(r, name, LADE_E_SPEC, "an algorithm's name is missing");
	const lade_algorithm *algorithm = lade__engine_find_name(r->engine, name, length);
	if (!algorithm)
		return unknown_algorithm(r, name, length);
	lade__stage_defaults(stage, algorithm);
	uint32_t seen = 0;
	skip_space(r);
	if (*r->at == '(') {
		r->at++;
		skip_space(r);
		while (*r->at != ')') {
			lade_status status = read_option(r, stage, &seen);
			if (status != LADE_OK)
				return status;
			if (*r->at == ')')
				break;
			if (*r->at != ',')
				return bad(r, r->at, LADE_E_SPEC,
				           "a closing parenthesis is missing");
			r->at++;
			skip_space(r);
			if (*r->at == ')')
				return bad(r, r->at, LADE_E_SPEC, "an option is missing");
		}
		r->at++;
		skip_space(r);
	}
	for (size_t i = 0; i < algorithm->option_count; i++) {
		char what[100];
		if (!algorithm->options[i].required || (seen & (1u << i)))
			continue;
		snprintf(what, sizeof what, "%s needs %s", algorithm->name,
		         algorithm->options[i].name);
		return bad(r, name, LADE_E_SPEC, what);
	}
	return at_text(r, name, lade__stage_check(stage, r->err));
}

lade_status lade_spec_parse(const lade_engine *engine, const char *text, lade_spec **out,
                            lade_error *err)
{
	if (!text || !out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 text ? "out" : "text");
	*out = NULL;
	size_t size = strlen(text);
	if (size > TEXT_MAX)
		return lade_fail(err, LADE_E_SPEC, TEXT_MAX,
		                 "spec: %zu characters, at most %d are read", size, TEXT_MAX);
	reader r = {engine, text, text, err};
	lade_stage stages[LADE_STAGES_MAX];
	size_t count = 0;
	for (;;) {
		if (count == LADE_STAGES_MAX)
			return bad(&r, r.at, LADE_E_SPEC, "more than 16 stages");
		lade_status status = read_stage(&r, &stages[count++]);
		if (status != LADE_OK)
			return status;
		if (*r.at == 0)
			break;
		if (*r.at != '|')
			return bad(&r, r.at, LADE_E_SPEC, "a \"|\" is missing");
		r.at++;
	}
	lade_status status = lade_spec_new(stages, count, out, err);
	if (status == LADE_OK)
		for (size_t i = 0; i < count; i++)
			(*out)->slot[i] = lade__engine_slot(engine, stages[i].algorithm);
	return status;
}
