/*
 * pipeline.c: specs from short texts, completed by what is known of the data.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pipeline.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/table.h"

char *pipeline_next(const char **list, char mark)
{
	const char *s = *list;
	unsigned depth = 0;

	if (!s || !*s)
		return NULL;
	size_t n = 0;
	while (s[n] && (depth > 0 || s[n] != mark)) {
		if (s[n] == '(')
			depth++;
		else if (s[n] == ')' && depth > 0)
			depth--;
		n++;
	}
	*list = s + n + (s[n] != 0);
	while (n > 0 && s[n - 1] == ' ')
		n--;
	while (n > 0 && *s == ' ')
		s++, n--;
	return cli_need(strndup(s, n));
}

/* The algorithm that a stage's text names, or NULL; '*args' is what stands in its brackets, or
 * NULL where there are none. */
static const lade_algorithm *stage_algorithm(const char *stage, const char **args)
{
	char name[64];
	size_t n = strcspn(stage, "( ");

	*args = strchr(stage, '(');
	if (n >= sizeof name)
		return NULL;
	memcpy(name, stage, n);
	name[n] = 0;
	return lade_engine_find(NULL, name);
}

/* True when 'args', "(a, name=b)", gives the option of that index. */
static bool option_given(const lade_algorithm *algorithm, size_t index, const char *args)
{
	if (!args)
		return false;
	char *inside = cli_need(strdup(args + 1));
	inside[strcspn(inside, ")")] = 0;
	bool given = false, first = true;
	const char *list = inside;
	for (char *arg; (arg = pipeline_next(&list, ',')); first = false) {
		const char *equals = strchr(arg, '=');
		size_t n = equals ? (size_t)(equals - arg) : 0;
		while (n > 0 && arg[n - 1] == ' ')
			n--;
		if (equals ? strlen(algorithm->options[index].name) == n &&
		                     strncasecmp(arg, algorithm->options[index].name, n) == 0
		           : first && index == 0 && *arg)
			given = true;
		free(arg);
	}
	free(inside);
	return given;
}

static const lade_option *level_option(const lade_algorithm *algorithm, const char *args)
{
	for (size_t i = 0; algorithm && i < algorithm->option_count; i++) {
		const lade_option *option = &algorithm->options[i];
		if (option->type == LADE_OPTION_INT && strcmp(option->name, "level") == 0)
			return option_given(algorithm, i, args) ? NULL : option;
	}
	return NULL;
}

bool pipeline_takes_level(const char *text, int64_t level)
{
	bool takes = false;

	for (char *stage; (stage = pipeline_next(&text, '|'));) {
		const char *args;
		const lade_algorithm *algorithm = stage_algorithm(stage, &args);
		const lade_option *option = level_option(algorithm, args);
		takes |= option && level >= option->min && level <= option->max;
		free(stage);
	}
	return takes;
}

/* True for options that ask for the bytes of an element. */
static bool is_size(const lade_option *option)
{
	return option->type == LADE_OPTION_INT &&
	       (strcmp(option->name, "size") == 0 || strcmp(option->name, "typesize") == 0);
}

/* True for options that ask for the type of the elements that come in. */
static bool is_dtype(const lade_option *option)
{
	return option->type == LADE_OPTION_DTYPE && strcmp(option->name, "dtype") == 0;
}

/* The text of an option's value if the data gives it; false if it does not. */
static bool fill_option(const lade_option *option, lade_dtype dtype, int64_t level, char *text,
                        size_t cap)
{
	if (is_dtype(option) && dtype != LADE_DTYPE_NONE)
		snprintf(text, cap, "%s=%s", option->name, lade_dtype_text(dtype));
	else if (is_size(option) && dtype != LADE_DTYPE_NONE)
		snprintf(text, cap, "%s=%zu", option->name, lade_dtype_size(dtype));
	else if (option->type == LADE_OPTION_INT && strcmp(option->name, "level") == 0 &&
	         level != PIPELINE_NO_LEVEL)
		snprintf(text, cap, "%s=%" PRId64, option->name, level);
	else
		return false;
	return true;
}

/* Writes one stage with its missing options to 'out'. */
static lade_status complete_stage(FILE *out, const char *stage, lade_dtype dtype, int64_t level,
                                  lade_error *err)
{
	const char *args;
	const lade_algorithm *algorithm = stage_algorithm(stage, &args);
	size_t end = strlen(stage);

	/* What is not understood here goes to the library as it is, which says what is wrong. */
	if (!algorithm || (args && stage[end - 1] != ')')) {
		fputs(stage, out);
		return LADE_OK;
	}
	fwrite(stage, 1, args ? end - 1 : end, out);
	bool open = args != NULL, comma = args && args[1] != ')';
	for (size_t i = 0; i < algorithm->option_count; i++) {
		const lade_option *option = &algorithm->options[i];
		char text[96];
		if (option_given(algorithm, i, args))
			continue;
		if (!fill_option(option, dtype, level, text, sizeof text)) {
			if (option->required && dtype == LADE_DTYPE_NONE &&
			    (is_dtype(option) || is_size(option)))
				return lade_fail(err, LADE_E_DTYPE, LADE_NO_OFFSET,
				                 "%s wants to know the elements: give --dtype, "
				                 "or write %s(%s=...)",
				                 algorithm->name, algorithm->name, option->name);
			continue;
		}
		fprintf(out, "%s%s", !open ? "(" : comma ? "," : "", text);
		open = comma = true;
	}
	if (open)
		fputc(')', out);
	return LADE_OK;
}

lade_status pipeline_parse(const char *text, lade_dtype dtype, int64_t level, lade_spec **out,
                           lade_error *err)
{
	char *full = NULL;
	size_t size;
	FILE *f = cli_need(open_memstream(&full, &size));
	lade_status status = LADE_OK;
	bool first = true;

	for (char *stage; status == LADE_OK && (stage = pipeline_next(&text, '|')); first = false) {
		if (!first)
			fputc('|', f);
		status = complete_stage(f, stage, dtype, level, err);
		free(stage);
	}
	if (fclose(f) != 0)
		cli_need(NULL);
	if (status == LADE_OK)
		status = lade_spec_parse(NULL, full, out, err);
	free(full);
	return status;
}
