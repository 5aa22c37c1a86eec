/*
 * chain.c: from the codecs of a document to specs, orders of axes, byte orders and shards.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr/chain.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- steps --------------------------------------------------------------------------- */

/* The node frees the spec at its end. */
static lade_status keep(builder *b, lade_spec *spec)
{
	kept_spec *kept = lade__arena(&b->s->node->arena, 1, sizeof *kept);
	if (!kept) {
		lade_spec_unref(spec);
		return lade__scan_nomem(b->s, "a spec");
	}
	kept->spec = spec;
	kept->next = b->s->node->specs;
	b->s->node->specs = kept;
	return LADE_OK;
}

static const char *copy_text(builder *b, const char *text)
{
	char *copy = lade__arena(&b->s->node->arena, strlen(text) + 1, 1);
	return copy ? strcpy(copy, text) : NULL;
}

static lade_status add_step(builder *b, lade_zarr_step step)
{
	if (b->chain->step_count == STEPS_MAX)
		return lade__json_fail(b->s->doc, JSON_NONE, LADE_E_LIMIT, b->s->err,
		                       "more than %d steps in a chain of codecs", STEPS_MAX);
	b->steps[b->chain->step_count++] = step;
	return LADE_OK;
}

lade_status lade__chain_flush(builder *b, size_t header_size)
{
	lade_zarr_step step = {.header_size = header_size,
	                       .header =
	                               header_size ? LADE_ZARR_HEADER_SIZE : LADE_ZARR_HEADER_NONE};
	lade_spec *spec;
	lade_error err;
	if (b->text_size == 0)
		return LADE_OK;
	lade_status status = lade_spec_parse(b->s->node->options.engine, b->text, &spec, &err);
	if (status == LADE_E_NOMEM)
		return lade__scan_nomem(b->s, "a spec");
	if (status == LADE_OK) {
		status = keep(b, spec);
		if (status != LADE_OK)
			return status;
		step.spec = spec;
	} else {
		step.name = copy_text(b, b->text);
		step.configuration = "{}";
		step.why = copy_text(b, err.message);
		if (!step.name || !step.why)
			return lade__scan_nomem(b->s, "a codec");
	}
	b->text_size = b->stage_count = 0;
	b->text[0] = 0;
	return add_step(b, step);
}

lade_status lade__chain_stage(builder *b, const char *format, ...)
{
	char stage[400];
	va_list args;
	va_start(args, format);
	int size = vsnprintf(stage, sizeof stage, format, args);
	va_end(args);
	if (b->stage_count == LADE_STAGES_MAX ||
	    b->text_size + (size_t)size + 2 > sizeof b->text) {
		lade_status status = lade__chain_flush(b, 0);
		if (status != LADE_OK)
			return status;
	}
	b->text_size += (size_t)snprintf(b->text + b->text_size, sizeof b->text - b->text_size,
	                                 "%s%s", b->text_size ? "|" : "", stage);
	b->stage_count++;
	return LADE_OK;
}

lade_status lade__chain_spec(builder *b, const char *text)
{
	lade_spec *spec;
	lade_status status = lade_spec_parse(b->s->node->options.engine, text, &spec, b->s->err);
	if (status != LADE_OK)
		return status;
	size_t count = lade_spec_count(spec), size = strlen(lade_spec_text(spec));
	if (b->stage_count + count > LADE_STAGES_MAX || b->text_size + size + 2 > sizeof b->text)
		status = lade__chain_flush(b, 0);
	if (status == LADE_OK && size + 2 > sizeof b->text)
		status = lade__json_fail(b->s->doc, JSON_NONE, LADE_E_LIMIT, b->s->err,
		                         "a spec of %zu bytes, at most %zu", size,
		                         sizeof b->text - 2);
	if (status == LADE_OK) {
		b->text_size +=
			(size_t)snprintf(b->text + b->text_size, sizeof b->text - b->text_size,
		                         "%s%s", b->text_size ? "|" : "", lade_spec_text(spec));
		b->stage_count += count;
	}
	lade_spec_unref(spec);
	return status;
}

lade_status lade__chain_closed(builder *b, uint32_t name, uint32_t config, const char *why)
{
	lade_status status = lade__chain_flush(b, 0);
	if (status != LADE_OK)
		return status;
	const char *text = lade__scan_text(b->s, name);
	const char *options = config == JSON_NONE ? "{}" : lade__scan_text(b->s, config);
	if (!text || !options)
		return lade__scan_nomem(b->s, "a codec");
	return add_step(b, (lade_zarr_step){.name = text, .configuration = options, .why = why});
}

bool lade__spec_adds(const lade_spec *spec, size_t *extra)
{
	const size_t one = (size_t)1 << 16;
	for (size_t k = 0; k < lade_spec_count(spec); k++)
		if (!(lade_spec_stage(spec, k)->algorithm->flags & LADE_ALGORITHM_FIXED_SIZE))
			return false;
	*extra = lade_spec_bound(spec, one) - one;
	return lade_spec_bound(spec, 2 * one) == 2 * one + *extra && *extra < one;
}

bool lade__chain_adds(const builder *b, const char *text, size_t *extra)
{
	lade_spec *spec;
	*extra = 0;
	if (!text[0])
		return true;
	if (lade_spec_parse(b->s->node->options.engine, text, &spec, NULL) != LADE_OK)
		return false;
	bool adds = lade__spec_adds(spec, extra);
	lade_spec_unref(spec);
	return adds;
}

static lade_status finish(builder *b)
{
	lade_status status = lade__chain_flush(b, 0);
	if (status != LADE_OK)
		return status;
	size_t count = b->chain->step_count;
	lade_zarr_step *steps = lade__arena(&b->s->node->arena, count + 1, sizeof *steps);
	if (!steps)
		return lade__scan_nomem(b->s, "steps");
	memcpy(steps, b->steps, count * sizeof *steps);
	b->chain->steps = steps;
	if (!b->transposed)
		return LADE_OK;
	size_t *order = lade__arena(&b->s->node->arena, b->ndim, sizeof *order);
	if (!order)
		return lade__scan_nomem(b->s, "an order of axes");
	for (size_t i = 0; i < b->ndim; i++)
		order[b->order[i]] = i;
	b->chain->order = order;
	return LADE_OK;
}

/* A builder on the heap: nested shards would take much of a stack. */
static builder *begin(const scan *s, lade_zarr_chain *chain, const lade_zarr_type *type,
                      size_t ndim, const uint64_t *shape)
{
	builder *b = malloc(sizeof *b);
	if (!b)
		return NULL;
	memset(b, 0, offsetof(builder, steps));
	b->s = s;
	b->chain = chain;
	b->ndim = ndim;
	b->shape = shape;
	b->type = type;
	b->now = *type;
	for (size_t i = 0; i < ndim; i++)
		b->order[i] = i;
	return b;
}

/* ---- format 2 ------------------------------------------------------------------------ */

/* Those that say how objects are stored: type_v2() has taken them, or refused the type. */
static bool is_object_codec(const json *doc, uint32_t id)
{
	return lade__json_is(doc, id, "vlen-utf8") || lade__json_is(doc, id, "vlen-bytes");
}

static lade_status codec_v2(builder *b, uint32_t at)
{
	const json *doc = b->s->doc;
	uint32_t id = lade__json_get(doc, at, "id");
	char name[64];
	codec_kind kind = BB;
	bool known = false;
	if (lade__json_type(doc, id) != JSON_STRING)
		return BAD(b->s, at, "want an object with \"id\"");
	if (is_object_codec(doc, id))
		return LADE_OK;
	if (doc->nodes[id].size < sizeof name) {
		lade__json_string(doc, id, name);
		lade_status status = lade__chain_numcodec(b, name, id, at, &kind, &known);
		if (status != LADE_OK)
			return status;
	}
	return known ? LADE_OK : lade__chain_foreign(b, id, at, &kind, NULL);
}

static lade_status build_v2(builder *b, uint32_t root)
{
	const json *doc = b->s->doc;
	uint32_t order = lade__json_get(doc, root, "order");
	uint32_t filters = lade__json_get(doc, root, "filters");
	uint32_t compressor = lade__json_get(doc, root, "compressor");
	json_type is = lade__json_type(doc, filters);
	lade_status status = LADE_OK;
	bool fortran = lade__json_is(doc, order, "F");
	if (!fortran && !lade__json_is(doc, order, "C"))
		return BAD(b->s, order == JSON_NONE ? root : order,
		           "want the order \"C\" or \"F\"");
	b->transposed = fortran && b->ndim > 1;
	for (size_t i = 0; fortran && i < b->ndim; i++)
		b->order[i] = b->ndim - 1 - i;
	if (is != JSON_ABSENT && is != JSON_NULL && is != JSON_ARRAY)
		return BAD(b->s, filters, "want null or a list");
	for (uint32_t c = lade__json_child(doc, filters, 0); status == LADE_OK && c != JSON_NONE;
	     c = lade__json_child(doc, filters, c))
		status = codec_v2(b, c);
	is = lade__json_type(doc, compressor);
	if (status == LADE_OK && is != JSON_ABSENT && is != JSON_NULL)
		status = codec_v2(b, compressor);
	b->chain->swap_size = b->type->big ? b->type->swap_size : 0;
	return status == LADE_OK ? finish(b) : status;
}

lade_status lade__zarr_chain_v2(const scan *s, uint32_t root)
{
	lade_zarr_array *array = &s->node->array;
	builder *b = begin(s, &array->chain, &array->type, array->ndim, NULL);
	if (!b)
		return lade__scan_nomem(s, "codecs");
	lade_status status = build_v2(b, root);
	free(b);
	return status;
}

/* ---- format 3 ------------------------------------------------------------------------ */

static void set_big(lade_zarr_type *type)
{
	type->big = type->swap_size > 0;
	if (type->big && type->dtype)
		type->dtype = (lade_dtype)(type->dtype | LADE_DTYPE_BIG);
	for (size_t i = 0; i < type->field_count; i++)
		set_big((lade_zarr_type *)(uintptr_t)&type->fields[i].type);
}

static bool has_order(const lade_zarr_type *type)
{
	for (size_t i = 0; i < type->field_count; i++)
		if (has_order(&type->fields[i].type))
			return true;
	return type->swap_size > 0;
}

/* The byte order is the layout's business where it can be, and a stage's behind filters. */
static lade_status add_bytes(builder *b, uint32_t config, const around *outer)
{
	lade_zarr_type *own = &b->s->node->array.type;
	uint32_t endian = lade__json_get(b->s->doc, config, "endian");
	json_type is = lade__json_type(b->s->doc, endian);
	bool big = lade__json_is(b->s->doc, endian, "big"), multi = has_order(&b->now);
	if (is != JSON_ABSENT && is != JSON_NULL && !big &&
	    !lade__json_is(b->s->doc, endian, "little"))
		return BAD(b->s, endian, "want \"little\" or \"big\"");
	if (b->type->size == 0)
		return UNKNOWN(b->s, config == JSON_NONE ? 0 : config,
		               "elements of any length in the codec 'bytes'");
	if (multi && b->now.cls != LADE_ZARR_STRUCT && (is == JSON_ABSENT || is == JSON_NULL))
		return BAD(b->s, config == JSON_NONE ? 0 : config,
		           "want 'endian' for numbers of %zu bytes", b->now.swap_size);
	bool behind = b->stage_count || b->chain->step_count;
	if (!multi || big == (behind && b->now.big))
		return LADE_OK;
	if (behind)
		return lade__chain_stage(b, "byteswap(%zu)", b->now.swap_size);
	b->chain->swap_size = b->now.swap_size;
	if (!outer->index)
		set_big(own);
	return LADE_OK;
}

static lade_status add_vlen(builder *b, uint32_t name, lade_zarr_class want)
{
	if (b->now.cls != want)
		return BAD(b->s, name, "a codec for %s, with elements of %s",
		           want == LADE_ZARR_STRING ? "string" : "bytes", b->now.name);
	return LADE_OK;
}

static lade_status add_transpose(builder *b, uint32_t config)
{
	const json *doc = b->s->doc;
	uint32_t list = lade__json_get(doc, config, "order");
	size_t order[AXES_MAX], i = 0;
	uint64_t axis, seen = 0;
	bool reverse = lade__json_is(doc, list, "F"); /* early writers */
	if (!reverse && !lade__json_is(doc, list, "C")) {
		if (lade__json_type(doc, list) != JSON_ARRAY ||
		    lade__json_count(doc, list) != b->ndim)
			return BAD(b->s, list == JSON_NONE ? config : list,
			           "want an order of %zu axes", b->ndim);
		for (uint32_t c = lade__json_child(doc, list, 0); c != JSON_NONE;
		     c = lade__json_child(doc, list, c)) {
			if (!lade__json_u64(doc, c, false, &axis) || axis >= b->ndim ||
			    seen >> axis & 1)
				return BAD(b->s, c, "want each of %zu axes once", b->ndim);
			seen |= (uint64_t)1 << axis;
			order[i++] = b->order[axis];
		}
	} else {
		for (; i < b->ndim; i++)
			order[i] = b->order[reverse ? b->ndim - 1 - i : i];
	}
	if (b->fixed)
		return UNKNOWN(b->s, list, "transpose behind a filter that depends on the order");
	memcpy(b->order, order, b->ndim * sizeof order[0]);
	b->transposed = true;
	return LADE_OK;
}

static lade_status add_scale_offset(builder *b, uint32_t name, uint32_t config)
{
	const char *keys[2] = {"scale", "offset"};
	char text[2][64] = {"1", "0"};
	for (int i = 0; i < 2; i++) {
		uint32_t at = lade__json_get(b->s->doc, config, keys[i]);
		if (at == JSON_NONE)
			continue;
		const json_node *node = &b->s->doc->nodes[at];
		const char *from = b->s->doc->text + node->at;
		if (node->type != JSON_NUMBER || node->size > 63 ||
		    memchr(from, 'N', node->size) || memchr(from, 'I', node->size))
			return lade__chain_closed(b, name, config, "want numbers of JSON");
		snprintf(text[i], sizeof text[i], "%.*s", (int)node->size, from);
	}
	return lade__chain_stage(b, "scaleoffset(%s,scale=%s,offset=%s)",
	                         lade_dtype_text(b->now.dtype), text[0], text[1]);
}

/* ---- the list of codecs ---------------------------------------------------------------- */

enum { ANY_CONFIG = 0, WANTED = 1 };
static const char no_codec[] = "this version has no such codec";

static lade_status add_crc32c(builder *b, uint32_t name, uint32_t config, const around *outer)
{
	(void)name, (void)config, (void)outer;
	return lade__chain_stage(b, "crc32c");
}

static lade_status bytes_codec(builder *b, uint32_t name, uint32_t config, const around *outer)
{
	(void)name;
	return add_bytes(b, config, outer);
}

static lade_status utf8_codec(builder *b, uint32_t name, uint32_t config, const around *outer)
{
	(void)config, (void)outer;
	return add_vlen(b, name, LADE_ZARR_STRING);
}

static lade_status blobs_codec(builder *b, uint32_t name, uint32_t config, const around *outer)
{
	(void)config, (void)outer;
	return add_vlen(b, name, LADE_ZARR_BYTES);
}

static lade_status transpose_codec(builder *b, uint32_t name, uint32_t config, const around *outer)
{
	(void)name, (void)outer;
	return add_transpose(b, config);
}

static lade_status shard_codec(builder *b, uint32_t name, uint32_t config, const around *outer)
{
	if (outer->index)
		return BAD(b->s, name, "codecs of an index must keep its size");
	return lade__chain_shard(b, name, config, outer);
}

static lade_status zstd_codec(builder *b, uint32_t name, uint32_t config, const around *outer)
{
	(void)name, (void)outer;
	return lade__chain_zstd(b, config, true);
}

static lade_status gzip_codec(builder *b, uint32_t name, uint32_t config, const around *outer)
{
	(void)name, (void)outer;
	return lade__chain_gzip(b, config, true);
}

static lade_status blosc_codec(builder *b, uint32_t name, uint32_t config, const around *outer)
{
	(void)name, (void)outer;
	return lade__chain_blosc(b, config, true);
}

static lade_status bitround_codec(builder *b, uint32_t name, uint32_t config, const around *outer)
{
	(void)name, (void)outer;
	return lade__chain_bitround(b, config, true);
}

static lade_status scale_codec(builder *b, uint32_t name, uint32_t config, const around *outer)
{
	(void)outer;
	return add_scale_offset(b, name, config);
}

static lade_status cast_codec(builder *b, uint32_t name, uint32_t config, const around *outer)
{
	(void)outer;
	return lade__chain_cast(b, name, config);
}

static lade_status packbits_codec(builder *b, uint32_t name, uint32_t config, const around *outer)
{
	(void)outer;
	return lade__chain_packbits(b, name, config);
}

static lade_status reshape_codec(builder *b, uint32_t name, uint32_t config, const around *outer)
{
	(void)name, (void)outer;
	return lade__chain_reshape(b, config);
}

static lade_status foreign_codec(builder *b, uint32_t name, uint32_t config, const around *outer)
{
	codec_kind kind = AB;
	(void)outer;
	b->fixed = true;
	return lade__chain_foreign(b, name, config, &kind, no_codec);
}

static const struct codec {
	const char *name;
	codec_kind kind;
	int config;
	const char *keys; /* NULL: any */
	lade_status (*add)(builder *b, uint32_t name, uint32_t config, const around *outer);
} codecs[] = {
	{"bytes", AB, ANY_CONFIG, "endian ", bytes_codec},
	{"endian", AB, ANY_CONFIG, "endian ", bytes_codec}, /* its name before 3.0 */
	{"zstd", BB, WANTED, "level checksum ", zstd_codec},
	{"blosc", BB, WANTED, "cname clevel shuffle typesize blocksize ", blosc_codec},
	{"gzip", BB, WANTED, "level ", gzip_codec},
	{"crc32c", BB, ANY_CONFIG, NULL, add_crc32c},
	{"sharding_indexed", AB, WANTED, "chunk_shape codecs index_codecs index_location ",
         shard_codec},
	{"transpose", AA, WANTED, "order ", transpose_codec},
	{"vlen-utf8", AB, ANY_CONFIG, NULL, utf8_codec},
	{"vlen-bytes", AB, ANY_CONFIG, NULL, blobs_codec},
	{"bitround", AA, WANTED, "keepbits ", bitround_codec},
	{"scale_offset", AA, ANY_CONFIG, "scale offset ", scale_codec},
	{"cast_value", AA, WANTED, NULL, cast_codec},
	{"reshape", AA, WANTED, "shape ", reshape_codec},
	{"packbits", AB, ANY_CONFIG, "padding_encoding first_bit last_bit ", packbits_codec},
	{"n5_default", AB, WANTED, "codecs ", lade__chain_n5},
	{"zfp", AB, ANY_CONFIG, NULL, foreign_codec},
	{"conditional", BB, WANTED, "codecs header_bits ", lade__chain_conditional},
};

static const struct codec *find_codec(const scan *s, uint32_t name)
{
	for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++)
		if (lade__json_is(s->doc, name, codecs[i].name))
			return &codecs[i];
	return NULL;
}

/* "numcodecs.lz4" */
static lade_status add_numcodec(builder *b, uint32_t name, uint32_t config, codec_kind *kind)
{
	static const char prefix[] = "numcodecs.";
	const json_node *node = &b->s->doc->nodes[name];
	char text[64] = "";
	bool known = false;
	if (node->size >= sizeof prefix && node->size < sizeof text)
		lade__json_string(b->s->doc, name, text);
	if (memcmp(text, prefix, sizeof prefix - 1) == 0) {
		lade_status status = lade__chain_numcodec(b, text + sizeof prefix - 1, name, config,
		                                          kind, &known);
		if (status != LADE_OK)
			return status;
	}
	return known ? LADE_OK : lade__chain_foreign(b, name, config, kind, NULL);
}

lade_status lade__chain_codec(builder *b, uint32_t at, const around *outer)
{
	uint32_t name, config;
	codec_kind kind = BB;
	lade_status status = lade__scan_named(b->s, at, false, &name, &config);
	if (status != LADE_OK)
		return status;
	if (b->ended)
		return UNKNOWN(b->s, at, "a codec behind n5_default");
	const struct codec *codec = find_codec(b->s, name);
	if (!codec) {
		status = add_numcodec(b, name, config, &kind);
	} else {
		kind = codec->kind;
		if (codec->config == WANTED && config == JSON_NONE)
			return BAD(b->s, at, "want a configuration");
		if (codec->keys && config != JSON_NONE)
			status = lade__scan_members(b->s, config, codec->keys);
		if (status == LADE_OK)
			status = codec->add(b, name, config, outer);
	}
	if (status != LADE_OK)
		return status;
	if (kind < b->kind)
		return BAD(b->s, at, kind == AA ? "a codec of arrays behind one of bytes"
		                                : "a codec of arrays to bytes behind one of bytes");
	b->kind = kind;
	b->serial_count += kind == AB;
	return LADE_OK;
}

/* All steps so far become the first of another chain. */
static void move_stages(builder *from, builder *to)
{
	memcpy(to->text, from->text, sizeof to->text);
	memcpy(to->steps, from->steps, sizeof to->steps);
	to->text_size = from->text_size;
	to->stage_count = from->stage_count;
	to->chain->step_count = from->chain->step_count;
	from->text[0] = 0;
	from->text_size = from->stage_count = from->chain->step_count = 0;
}

static lade_status build_list(builder *b, uint32_t list, const around *outer)
{
	lade_status status = LADE_OK;
	if (lade__json_type(b->s->doc, list) != JSON_ARRAY)
		return BAD(b->s, list, "want a list of codecs");
	for (uint32_t c = lade__json_child(b->s->doc, list, 0); status == LADE_OK && c != JSON_NONE;
	     c = lade__json_child(b->s->doc, list, c))
		status = lade__chain_codec(b, c, outer);
	if (status == LADE_OK && b->serial_count != 1)
		return BAD(b->s, list, "want one codec from arrays to bytes, there are %zu",
		           b->serial_count);
	return status == LADE_OK ? finish(b) : status;
}

lade_status lade__chain_build(const scan *s, uint32_t list, lade_zarr_chain *chain,
                            const lade_zarr_type *type, size_t ndim, const around *outer)
{
	builder *b = begin(s, chain, type, ndim, outer->shape);
	if (!b)
		return lade__scan_nomem(s, "codecs");
	if (outer->before)
		move_stages(outer->before, b);
	lade_status status = build_list(b, list, outer);
	free(b);
	return status;
}

lade_status lade__zarr_chain_v3(const scan *s, uint32_t at)
{
	lade_zarr_array *array = &s->node->array;
	around outside = {0};
	return lade__chain_build(s, at, &array->chain, &array->type, array->ndim, &outside);
}
