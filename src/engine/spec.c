/*
 * spec.c: specs as objects.  The text form is in spec_text.c, the binary one in spec_bytes.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "engine/registry.h"
#include "engine/spec.h"

#include <lade/dtype.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

bool lade__name_equal(const char *name, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!name[i] || lower(name[i]) != lower(text[i]))
			return false;
	return name[length] == 0;
}

size_t lade__option_find(const lade_algorithm *algorithm, const char *name, size_t length)
{
	size_t i = 0;
	while (i < algorithm->option_count &&
	       !lade__name_equal(algorithm->options[i].name, name, length))
		i++;
	return i;
}

void lade__stage_defaults(lade_stage *stage, const lade_algorithm *algorithm)
{
	memset(stage, 0, sizeof *stage);
	stage->algorithm = algorithm;
	for (size_t i = 0; i < algorithm->option_count; i++)
		if (!algorithm->options[i].required)
			stage->option[i] = algorithm->options[i].fallback;
}

/* Floats compare by their bits, so that -0.0 and 0.0 stay apart as they do in files. */
static bool value_equal(lade_option_type type, lade_value a, lade_value b)
{
	if (type == LADE_OPTION_FLOAT)
		return memcmp(&a.f, &b.f, sizeof a.f) == 0;
	return a.i == b.i;
}

bool lade__value_is_silent(const lade_option *option, lade_value value)
{
	return !option->required && !option->always &&
	       value_equal(option->type, value, option->fallback);
}

lade_status lade__value_check(const lade_stage *stage, size_t index, lade_error *err)
{
	const lade_option *option = &stage->algorithm->options[index];
	lade_value value = stage->option[index];
	int64_t max = 0;
	switch (option->type) {
	case LADE_OPTION_INT:
		if (value.i >= option->min && value.i <= option->max)
			return LADE_OK;
		return lade_fail(err, LADE_E_SPEC, LADE_NO_OFFSET,
		                 "%s: %s is %lld, want %lld to %lld", stage->algorithm->name,
		                 option->name, (long long)value.i, (long long)option->min,
		                 (long long)option->max);
	case LADE_OPTION_FLOAT:
		if (isfinite(value.f))
			return LADE_OK;
		return lade_fail(err, LADE_E_SPEC, LADE_NO_OFFSET, "%s: %s is not a finite number",
		                 stage->algorithm->name, option->name);
	case LADE_OPTION_BOOL:
		max = 1;
		break;
	case LADE_OPTION_ENUM:
		while (option->names[max + 1])
			max++;
		break;
	case LADE_OPTION_DTYPE:
		/* A default of "none" may be left as it is; a given type must be one. */
		if (value.i >= 0 && value.i <= 255 && (lade_dtype_size((lade_dtype)value.i) ||
		    (!option->required && value.i == option->fallback.i)))
			return LADE_OK;
		return lade_fail(err, LADE_E_SPEC, LADE_NO_OFFSET,
		                 "%s: %s is %lld, which is not a data type", stage->algorithm->name,
		                 option->name, (long long)value.i);
	}
	if (value.i >= 0 && value.i <= max)
		return LADE_OK;
	return lade_fail(err, LADE_E_SPEC, LADE_NO_OFFSET, "%s: %s is %lld, want 0 to %lld",
	                 stage->algorithm->name, option->name, (long long)value.i, (long long)max);
}

lade_status lade__stage_check(const lade_stage *stage, lade_error *err)
{
	if (!stage->algorithm)
		return lade_fail(err, LADE_E_SPEC, LADE_NO_OFFSET, "a stage without an algorithm");
	for (size_t i = 0; i < stage->algorithm->option_count; i++) {
		lade_status status = lade__value_check(stage, i, err);
		if (status != LADE_OK)
			return status;
	}
	return stage->algorithm->check ? stage->algorithm->check(stage, err) : LADE_OK;
}

lade_status lade_spec_new(const lade_stage *stages, size_t count, lade_spec **out, lade_error *err)
{
	if (!out || !stages)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 out ? "stages" : "out");
	*out = NULL;
	if (count == 0 || count > LADE_STAGES_MAX)
		return lade_fail(err, LADE_E_SPEC, LADE_NO_OFFSET, "%zu stages, want 1 to %d",
		                 count, LADE_STAGES_MAX);
	for (size_t i = 0; i < count; i++) {
		lade_status status = lade__stage_check(&stages[i], err);
		if (status != LADE_OK)
			return status;
	}
	size_t text_size = lade__spec_print(stages, count, NULL, 0);
	size_t bytes_size = lade__spec_pack(stages, count, NULL, 0);
	lade_spec *spec = malloc(sizeof *spec + text_size + 1 + bytes_size);
	if (!spec)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for a spec of %zu stages", count);
	memset(spec, 0, sizeof *spec);
	atomic_init(&spec->refs, 1);
	spec->count = (uint8_t)count;
	for (size_t i = 0; i < count; i++) {
		/* Unused values are zeroed, so that they cannot be compared by chance. */
		spec->stage[i].algorithm = stages[i].algorithm;
		memcpy(spec->stage[i].option, stages[i].option,
		       stages[i].algorithm->option_count * sizeof(lade_value));
		spec->slot[i] = lade__engine_slot(NULL, stages[i].algorithm);
	}
	char *text = (char *)(spec + 1);
	uint8_t *bytes = (uint8_t *)text + text_size + 1;
	lade__spec_print(stages, count, text, text_size + 1);
	lade__spec_pack(stages, count, bytes, bytes_size);
	spec->text = text;
	spec->bytes = bytes;
	spec->bytes_size = bytes_size;
	*out = spec;
	return LADE_OK;
}

lade_spec *lade_spec_ref(const lade_spec *spec)
{
	/* Specs are in memory from malloc(); only the count ever changes. */
	lade_spec *counted = (lade_spec *)(uintptr_t)spec;
	atomic_fetch_add_explicit(&counted->refs, 1, memory_order_relaxed);
	return counted;
}

void lade_spec_unref(lade_spec *spec)
{
	if (spec && atomic_fetch_sub_explicit(&spec->refs, 1, memory_order_acq_rel) == 1)
		free(spec);
}

size_t lade_spec_count(const lade_spec *spec)
{
	return spec->count;
}

const lade_stage *lade_spec_stage(const lade_spec *spec, size_t index)
{
	return index < spec->count ? &spec->stage[index] : NULL;
}

const char *lade_spec_text(const lade_spec *spec)
{
	return spec->text;
}

const void *lade_spec_bytes(const lade_spec *spec, size_t *size)
{
	*size = spec->bytes_size;
	return spec->bytes;
}

bool lade_spec_equal(const lade_spec *a, const lade_spec *b)
{
	if (a == b)
		return true;
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		const lade_algorithm *algorithm = a->stage[i].algorithm;
		if (algorithm != b->stage[i].algorithm)
			return false;
		for (size_t k = 0; k < algorithm->option_count; k++)
			if (!value_equal(algorithm->options[k].type, a->stage[i].option[k],
			                 b->stage[i].option[k]))
				return false;
	}
	return true;
}

uint64_t lade_spec_decoded_max(const lade_spec *spec, uint64_t size)
{
	for (size_t i = spec->count; i-- > 0;) {
		const lade_algorithm *a = spec->stage[i].algorithm;
		uint64_t most = UINT64_MAX;
		if (a->ratio_max && size < UINT64_MAX / a->ratio_max - 8)
			most = (size + 8) * a->ratio_max;
		size = a->decoded_max && a->decoded_max < most ? a->decoded_max : most;
	}
	return size;
}

bool lade_spec_is_lossy(const lade_spec *spec)
{
	for (size_t i = 0; i < spec->count; i++) {
		const lade_algorithm *algorithm = spec->stage[i].algorithm;
		if ((algorithm->flags & LADE_ALGORITHM_LOSSY) ||
		    (algorithm->is_lossy && algorithm->is_lossy(&spec->stage[i])))
			return true;
	}
	return false;
}

size_t lade_spec_bound(const lade_spec *spec, size_t size)
{
	for (size_t i = 0; i < spec->count && size != SIZE_MAX; i++)
		size = spec->stage[i].algorithm->bound(&spec->stage[i], size);
	return size;
}

lade_status lade__bound_fail(const lade_stage *stage, size_t count, size_t size, lade_error *err)
{
	size_t next, most = 0;
	for (; count > 1 && (next = stage->algorithm->bound(stage, size)) != SIZE_MAX; count--) {
		size = next;
		stage++;
	}
	for (size_t bit = SIZE_MAX / 2 + 1; bit; bit /= 2)
		if (stage->algorithm->bound(stage, most | bit) != SIZE_MAX)
			most |= bit;
	return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
	                 "%s: %zu bytes, a chunk holds at most %zu", stage->algorithm->name, size,
	                 most);
}
