/*
 * spec_bytes.c: the binary form of a spec: docs/format/spec.md, version 1.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "engine/registry.h"
#include "engine/spec.h"

#include <string.h>

#define SPEC_VERSION 1

/* ---- writing -------------------------------------------------------------------------- */

typedef struct writer {
	uint8_t *bytes;
	size_t cap, size;
} writer;

static void put(writer *w, const void *data, size_t n)
{
	if (n <= w->cap && w->size <= w->cap - n)
		memcpy(w->bytes + w->size, data, n);
	w->size += n;
}

static void put_byte(writer *w, size_t v)
{
	uint8_t b = (uint8_t)v;
	put(w, &b, 1);
}

static void put_varint(writer *w, uint64_t v)
{
	while (v >= 0x80) {
		put_byte(w, (v & 0x7F) | 0x80);
		v >>= 7;
	}
	put_byte(w, v);
}

static void put_value(writer *w, const lade_option *option, lade_value value)
{
	uint64_t bits = (uint64_t)value.i;
	switch (option->type) {
	case LADE_OPTION_INT:
		put_varint(w, (bits << 1) ^ (value.i < 0 ? UINT64_MAX : 0));
		break;
	case LADE_OPTION_FLOAT:
		memcpy(&bits, &value.f, 8);
		for (int i = 0; i < 8; i++)
			put_byte(w, (bits >> (8 * i)) & 0xFF);
		break;
	case LADE_OPTION_BOOL:
	case LADE_OPTION_ENUM:
	case LADE_OPTION_DTYPE:
		put_varint(w, bits);
		break;
	}
}

size_t lade__spec_pack(const lade_stage *stages, size_t count, uint8_t *bytes, size_t cap)
{
	writer w = {bytes, cap, 0};
	put_byte(&w, SPEC_VERSION);
	put_byte(&w, count);
	for (size_t s = 0; s < count; s++) {
		const lade_algorithm *algorithm = stages[s].algorithm;
		put_byte(&w, algorithm->id & 0xFF);
		put_byte(&w, algorithm->id >> 8);
		if (algorithm->id == 0) {
			size_t n = strlen(algorithm->name);
			put_byte(&w, n);
			put(&w, algorithm->name, n);
		}
		size_t given = 0;
		for (size_t i = 0; i < algorithm->option_count; i++)
			given +=
				!lade__value_is_silent(&algorithm->options[i], stages[s].option[i]);
		put_byte(&w, given);
		for (size_t i = 0; i < algorithm->option_count; i++) {
			if (lade__value_is_silent(&algorithm->options[i], stages[s].option[i]))
				continue;
			put_byte(&w, i);
			put_value(&w, &algorithm->options[i], stages[s].option[i]);
		}
	}
	return w.size;
}

/* ---- reading -------------------------------------------------------------------------- */

typedef struct reader {
	const lade_engine *engine;
	const uint8_t *bytes;
	size_t size, at;
	lade_error *err;
} reader;

static lade_status corrupt(reader *r, size_t at, const char *what)
{
	return lade_fail(r->err, LADE_E_CORRUPT, at, "spec: %s at byte %zu of %zu", what, at,
	                 r->size);
}

static lade_status get_byte(reader *r, unsigned *v)
{
	*v = 0;
	if (r->at == r->size)
		return lade_fail(r->err, LADE_E_TRUNCATED, r->at, "spec: ends after %zu bytes",
		                 r->size);
	*v = r->bytes[r->at++];
	return LADE_OK;
}

static lade_status get_varint(reader *r, uint64_t *v)
{
	size_t start = r->at;
	*v = 0;
	for (unsigned shift = 0; shift < 70; shift += 7) {
		unsigned b;
		lade_status status = get_byte(r, &b);
		if (status != LADE_OK)
			return status;
		/* The tenth byte has room for one bit; a last byte of 0 could have been left
		 * out. */
		if ((shift == 63 && b > 1) || (shift && b == 0))
			break;
		*v |= (uint64_t)(b & 0x7F) << shift;
		if (b < 0x80)
			return LADE_OK;
	}
	return corrupt(r, start, "a number that is too long");
}

static lade_status get_value(reader *r, const lade_option *option, lade_value *value)
{
	uint64_t bits = 0;
	if (option->type == LADE_OPTION_FLOAT) {
		for (int i = 0; i < 8; i++) {
			unsigned b;
			lade_status status = get_byte(r, &b);
			if (status != LADE_OK)
				return status;
			bits |= (uint64_t)b << (8 * i);
		}
		memcpy(&value->f, &bits, 8);
		return LADE_OK;
	}
	size_t start = r->at;
	lade_status status = get_varint(r, &bits);
	if (status != LADE_OK)
		return status;
	if (option->type == LADE_OPTION_INT)
		bits = (bits >> 1) ^ (0 - (bits & 1));
	else if (bits > INT64_MAX)
		return corrupt(r, start, "a number that is too large");
	value->i = (int64_t)bits;
	return LADE_OK;
}

static lade_status get_algorithm(reader *r, const lade_algorithm **out)
{
	size_t start = r->at;
	unsigned low, high, length;
	lade_status status = get_byte(r, &low);
	if (status == LADE_OK)
		status = get_byte(r, &high);
	if (status != LADE_OK)
		return status;
	unsigned id = low | high << 8;
	if (id) {
		*out = lade__engine_find_id(r->engine, id);
		if (*out)
			return LADE_OK;
		return lade_fail(r->err, LADE_E_NOT_FOUND, start,
		                 "spec: no algorithm has the number %u", id);
	}
	status = get_byte(r, &length);
	if (status != LADE_OK)
		return status;
	if (length == 0 || length > 31 || length > r->size - r->at)
		return corrupt(r, start, "a name of a wrong length");
	const char *name = (const char *)r->bytes + r->at;
	r->at += length;
	for (unsigned i = 0; i < length; i++)
		if (name[i] < 0x20 || name[i] > 0x7E)
			return corrupt(r, start, "a name with a character that names cannot have");
	*out = lade__engine_find_name(r->engine, name, length);
	if (*out && (*out)->id)
		return corrupt(r, start, "a name where there is a number");
	if (*out && memcmp((*out)->name, name, length) != 0)
		return corrupt(r, start, "a name in upper case");
	if (!*out)
		return lade_fail(r->err, LADE_E_NOT_FOUND, start,
		                 "spec: no algorithm is called \"%.*s\"", (int)length, name);
	return LADE_OK;
}

static lade_status get_stage(reader *r, lade_stage *stage)
{
	const lade_algorithm *algorithm = NULL;
	unsigned given, index;
	uint32_t seen = 0;
	size_t start = r->at;
	lade_status status = get_algorithm(r, &algorithm);
	if (status == LADE_OK)
		status = get_byte(r, &given);
	if (status != LADE_OK)
		return status;
	lade__stage_defaults(stage, algorithm);
	for (unsigned i = 0; i < given; i++) {
		size_t at = r->at;
		status = get_byte(r, &index);
		if (status != LADE_OK)
			return status;
		if (index >= algorithm->option_count || seen >> index)
			return corrupt(r, at, "an option that is unknown or out of order");
		seen |= 1u << index;
		status = get_value(r, &algorithm->options[index], &stage->option[index]);
		if (status == LADE_OK)
			status = lade__value_check(stage, index, r->err);
		if (status != LADE_OK) {
			if (r->err && status == LADE_E_SPEC)
				r->err->offset = at;
			return status;
		}
		if (lade__value_is_silent(&algorithm->options[index], stage->option[index]))
			return corrupt(r, at, "a default value that must not be written");
	}
	for (size_t i = 0; i < algorithm->option_count; i++) {
		const lade_option *option = &algorithm->options[i];
		if ((option->required || option->always) && !(seen & (1u << i)))
			return corrupt(r, start, "an option is missing");
	}
	status = lade__stage_check(stage, r->err);
	if (status != LADE_OK && r->err)
		r->err->offset = start;
	return status;
}

lade_status lade_spec_from_bytes(const lade_engine *engine, const void *data, size_t size,
                                 lade_spec **out, lade_error *err)
{
	if ((!data && size) || !out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 out ? "data" : "out");
	*out = NULL;
	reader r = {engine, data, size, 0, err};
	lade_stage stages[LADE_STAGES_MAX];
	unsigned version, count;
	lade_status status = get_byte(&r, &version);
	if (status == LADE_OK)
		status = get_byte(&r, &count);
	if (status != LADE_OK)
		return status;
	if (version != SPEC_VERSION)
		return lade_fail(err, LADE_E_VERSION, 0, "spec: version %u, this library reads %d",
		                 version, SPEC_VERSION);
	if (count == 0 || count > LADE_STAGES_MAX)
		return corrupt(&r, 1, "a number of stages that is not from 1 to 16");
	for (unsigned i = 0; i < count; i++) {
		status = get_stage(&r, &stages[i]);
		if (status != LADE_OK)
			return status;
	}
	if (r.at != r.size)
		return corrupt(&r, r.at, "bytes left over");
	status = lade_spec_new(stages, count, out, err);
	if (status == LADE_OK)
		for (size_t i = 0; i < count; i++)
			(*out)->slot[i] = lade__engine_slot(engine, stages[i].algorithm);
	return status;
}
