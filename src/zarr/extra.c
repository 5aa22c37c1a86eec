/*
 * extra.c: codecs of zarr-extensions that are more than a line, and a caller's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr/chain.h"

#include <stdio.h>
#include <string.h>

uint64_t lade__chain_axis(const builder *b, size_t axis)
{
	size_t own = b->order[axis];
	if (b->shape)
		return b->shape[own];
	return own < b->s->node->array.ndim ? b->s->node->array.axes[own].chunk_size : 0;
}

void lade__chain_becomes(builder *b, const char *text)
{
	static const char letters[] = "biufe";
	lade_dtype dtype = LADE_DTYPE_NONE;
	if (lade_dtype_parse(text, &dtype, NULL) != LADE_OK)
		dtype = LADE_DTYPE_NONE;
	const char *letter = dtype ? strchr(letters, lade_dtype_class(dtype)) : NULL;
	size_t size = lade_dtype_size(dtype);
	b->now = (lade_zarr_type){
		.cls = letter ? (lade_zarr_class)(LADE_ZARR_BOOL + (letter - letters))
		              : LADE_ZARR_RAW,
		.dtype = dtype,
		.size = size,
		.swap_size = size > 1 ? size : 0,
		.name = "filtered",
		.big = lade_dtype_is_big(dtype)};
}

/* ---- a caller's codecs ------------------------------------------------------------------ */

lade_status lade__chain_foreign(builder *b, uint32_t name, uint32_t config, codec_kind *kind,
                                const char *why)
{
	const lade_zarr_options *options = &b->s->node->options;
	lade_zarr_codec codec = {.struct_size = sizeof codec,
	                         .type = &b->now,
	                         .ndim = b->ndim,
	                         .kind = (lade_zarr_codec_kind)*kind,
	                         .becomes = b->now.dtype};
	uint64_t shape[AXES_MAX];
	lade_error err = {0};
	lade_status status = LADE_E_NOT_FOUND;
	if (options->codec) {
		codec.name = lade__scan_text(b->s, name);
		codec.configuration = config == JSON_NONE ? "{}" : lade__scan_text(b->s, config);
		if (!codec.name || !codec.configuration)
			return lade__scan_nomem(b->s, "a codec");
		for (size_t i = 0; i < b->ndim; i++)
			shape[i] = lade__chain_axis(b, i);
		codec.chunk_shape = shape;
		status = options->codec(options->codec_ctx, &codec, &err);
	}
	if (status == LADE_E_NOT_FOUND)
		return why ? lade__chain_closed(b, name, config, why)
		           : UNKNOWN(b->s, name, "no known codec");
	if (status == LADE_OK && (unsigned)codec.kind > LADE_ZARR_BYTES_BYTES)
		return lade__json_fail(b->s->doc, name, LADE_E_ARG, b->s->err,
		                       "the caller's kind is %d, want 0 to 2", (int)codec.kind);
	if (status != LADE_OK)
		return lade__json_fail(b->s->doc, name, status, b->s->err, "%s", err.message);
	*kind = (codec_kind)codec.kind;
	if (codec.kind == LADE_ZARR_ARRAY_ARRAY && codec.becomes != b->now.dtype)
		lade__chain_becomes(b, lade_dtype_text(codec.becomes));
	b->fixed |= codec.kind != LADE_ZARR_BYTES_BYTES;
	codec.spec[sizeof codec.spec - 1] = 0;
	return lade__chain_spec(b, codec.spec);
}

/* ---- reshape ---------------------------------------------------------------------------- */

/* A product that saturates; 0 if a factor is 0: not known. */
static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t out;
	return __builtin_mul_overflow(a, b, &out) ? UINT64_MAX : out;
}

/* The elements along the axes that a list names, which follow 'after'. */
static lade_status listed_axes(builder *b, uint32_t list, uint64_t *after, uint64_t *size)
{
	const json *doc = b->s->doc;
	uint64_t axis;
	*size = 1;
	for (uint32_t c = lade__json_child(doc, list, 0); c != JSON_NONE;
	     c = lade__json_child(doc, list, c)) {
		if (!lade__json_u64(doc, c, false, &axis) || axis >= b->ndim || axis < *after)
			return BAD(b->s, c, "want axes below %zu, ascending", b->ndim);
		*after = axis + 1;
		*size = times(*size, lade__chain_axis(b, axis));
	}
	return LADE_OK;
}

/* Elements keep their C order: nothing is to be done but to check the shape. */
lade_status lade__chain_reshape(builder *b, uint32_t config)
{
	const json *doc = b->s->doc;
	uint32_t shape = lade__json_get(doc, config, "shape");
	uint64_t want = 1, have = 1, after = 0, size;
	bool automatic = false;
	if (lade__json_type(doc, shape) != JSON_ARRAY)
		return BAD(b->s, shape == JSON_NONE ? config : shape, "want a shape");
	if (b->fixed)
		return UNKNOWN(b->s, shape, "reshape behind a codec that changes the shape");
	for (size_t i = 0; i < b->ndim; i++)
		want = times(want, lade__chain_axis(b, i));
	for (uint32_t c = lade__json_child(doc, shape, 0); c != JSON_NONE;
	     c = lade__json_child(doc, shape, c)) {
		int64_t number = 0;
		lade_status status = LADE_OK;
		if (lade__json_type(doc, c) == JSON_ARRAY)
			status = listed_axes(b, c, &after, &size);
		else if (!lade__json_i64(doc, c, &number) || number < -1 || number == 0 ||
		         (number == -1 && automatic))
			return BAD(b->s, c, "want a size from 1, a list of axes, or -1 once");
		else
			size = number == -1 ? 1 : (uint64_t)number;
		if (status != LADE_OK)
			return status;
		automatic |= number == -1;
		have = times(have, size);
	}
	if (want && have && (automatic ? want % have : want != have))
		return BAD(b->s, shape, "want %llu elements, have %llu", (unsigned long long)want,
		           (unsigned long long)have);
	b->fixed = true;
	return LADE_OK;
}

/* ---- lzma ------------------------------------------------------------------------------- */

/* Python's numbers. */
enum { FORMAT_XZ = 1, FORMAT_ALONE = 2, FORMAT_RAW = 3 };
#define FILTER_DELTA 3
#define FILTER_LZMA2 33
#define FILTER_LZMA1 INT64_C(0x4000000000000001)
#define PRESET_EXTREME ((int64_t)1 << 31) /* more time for encoding */

typedef struct lzma {
	int64_t format, check, level, delta, dict, lc, lp, pb;
	bool one, other; /* LZMA, not LZMA2; a filter that the codec has not */
} lzma;

static lade_status lzma_filter(builder *b, uint32_t at, lzma *l)
{
	static const char *const keys[] = {"preset", "dict_size", "lc", "lp", "pb"};
	int64_t *values[] = {&l->level, &l->dict, &l->lc, &l->lp, &l->pb}, id;
	lade_status status = lade__chain_int(b, at, "id", -1, &id);
	if (status == LADE_OK && id == FILTER_DELTA && !l->delta)
		return lade__chain_int(b, at, "dist", 1, &l->delta);
	l->other |= id != FILTER_LZMA1 && id != FILTER_LZMA2;
	l->one |= id == FILTER_LZMA1;
	for (size_t i = 0; status == LADE_OK && i < sizeof keys / sizeof keys[0]; i++)
		status = lade__chain_int(b, at, keys[i], *values[i], values[i]);
	return status;
}

lade_status lade__chain_lzma(builder *b, uint32_t config, bool strict)
{
	static const char *const checks[] = {"none", "crc32", NULL, NULL, "crc64", NULL, NULL, NULL,
	                                     NULL, NULL, "sha256"};
	const json *doc = b->s->doc;
	uint32_t filters = lade__json_get(doc, config, "filters");
	lzma l = {.lc = -1, .lp = -1, .pb = -1};
	char text[200];
	(void)strict;
	lade_status status = lade__chain_int(b, config, "format", FORMAT_XZ, &l.format);
	if (status == LADE_OK)
		status = lade__chain_int(b, config, "check", -1, &l.check);
	if (status == LADE_OK)
		status = lade__chain_int(b, config, "preset", 6, &l.level);
	for (uint32_t c = lade__json_child(doc, filters, 0); status == LADE_OK && c != JSON_NONE;
	     c = lade__json_child(doc, filters, c))
		status = lzma_filter(b, c, &l);
	if (status != LADE_OK)
		return status;
	l.level &= ~PRESET_EXTREME;
	if (l.format < FORMAT_XZ || l.format > FORMAT_RAW || l.level < 0 || l.level > 9 ||
	    l.check < -1 || l.check > 10 || (l.check >= 0 && !checks[l.check]))
		return BAD(b->s, config, "want the format 1 to 3, a check and a preset of xz");
	if (l.format == FORMAT_RAW && l.other)
		return UNKNOWN(b->s, filters, "filters beside delta and LZMA");
	/* What .xz and .lzma have is in their headers: decoding needs no more than the format. */
	if (l.format == FORMAT_ALONE || l.other)
		l.delta = 0;
	snprintf(text, sizeof text, "lzma(%lld,format=%s,check=%s,delta=%lld,dict=%lld,lc=%lld,"
	         "lp=%lld,pb=%lld)", (long long)l.level,
	         l.format == FORMAT_XZ ? "xz" : l.format == FORMAT_ALONE ? "alone"
	                                    : l.one ? "raw1" : "raw",
	         checks[l.check < 0 || l.format != FORMAT_XZ ? 4 : l.check], (long long)l.delta,
	         (long long)l.dict, (long long)l.lc, (long long)l.lp, (long long)l.pb);
	return lade__chain_stage(b, "%s", text);
}

/* ---- cast_value ------------------------------------------------------------------------- */

/* A special value's place in the filter's list; -1: an ordinary value. */
static int special_of(const json *doc, uint32_t at)
{
	static const char *const names[] = {"NaN", "Infinity", "-Infinity", "+Infinity"};
	for (int i = 0; i < 4; i++)
		if (lade__json_is(doc, at, names[i]))
			return i == 3 ? 1 : i;
	return -1;
}

typedef struct value_map {
	unsigned bits; /* the filter's option 'map' */
	bool known[3];
	double stands[3];
	bool other; /* what the filter cannot do */
} value_map;

/* One side of a scalar_map: pairs of special values and the numbers that stand for them. */
static lade_status read_map(builder *b, uint32_t list, bool decodes, value_map *map)
{
	const json *doc = b->s->doc;
	for (uint32_t c = lade__json_child(doc, list, 0); c != JSON_NONE;
	     c = lade__json_child(doc, list, c)) {
		uint32_t from = lade__json_child(doc, c, 0);
		uint32_t to = from == JSON_NONE ? JSON_NONE : lade__json_child(doc, c, from);
		double number = 0;
		if (lade__json_type(doc, c) != JSON_ARRAY || lade__json_count(doc, c) != 2)
			return BAD(b->s, c, "want a pair of scalars");
		int special = special_of(doc, decodes ? to : from);
		unsigned bit = special < 0 ? 0 : 1u << (special + (decodes ? 3 : 0));
		bool good = special >= 0 &&
		            lade__json_type(doc, decodes ? from : to) == JSON_NUMBER &&
		            lade__json_double(doc, decodes ? from : to, &number) &&
		            number > -0x1p53 && number < 0x1p53 && !(map->bits & bit) &&
		            (!map->known[special] || map->stands[special] == number);
		if (!good) {
			map->other = true;
			continue;
		}
		map->bits |= bit;
		map->known[special] = true;
		map->stands[special] = number;
	}
	return LADE_OK;
}

/* A word of the configuration, or the first of 'words'. */
static lade_status word_of(builder *b, uint32_t config, const char *key, const char *const *words,
                           const char **out)
{
	uint32_t at = lade__json_get(b->s->doc, config, key);
	*out = words[0];
	if (lade__json_type(b->s->doc, at) <= JSON_NULL)
		return LADE_OK;
	for (; *words; words++)
		if (lade__json_is(b->s->doc, at, *words))
			return *out = *words, LADE_OK;
	return BAD(b->s, at, "no known word");
}

lade_status lade__chain_cast(builder *b, uint32_t name, uint32_t config)
{
	static const char *const roundings[] = {"nearest-even",     "towards-zero",
	                                        "towards-positive", "towards-negative",
	                                        "nearest-away",     NULL};
	static const char *const ranges[] = {"error", "clamp", "wrap", NULL};
	const json *doc = b->s->doc;
	uint32_t type = lade__json_get(doc, config, "data_type");
	uint32_t maps = lade__json_get(doc, config, "scalar_map");
	lade_zarr_type from = b->now, *now = &b->now;
	const char *rounding, *range;
	value_map map = {0};
	lade_status status = lade__scan_members(b->s, config,
	                                        "data_type rounding out_of_range scalar_map ");
	if (status == LADE_OK && type == JSON_NONE)
		return BAD(b->s, config, "want a 'data_type'");
	if (status == LADE_OK)
		status = lade__zarr_type_v3(b->s, type, now);
	if (status == LADE_OK)
		status = word_of(b, config, "rounding", roundings, &rounding);
	if (status == LADE_OK)
		status = word_of(b, config, "out_of_range", ranges, &range);
	if (status == LADE_OK)
		status = read_map(b, lade__json_get(doc, maps, "encode"), false, &map);
	if (status == LADE_OK)
		status = read_map(b, lade__json_get(doc, maps, "decode"), true, &map);
	if (status != LADE_OK)
		return status;
	bool real = now->cls == LADE_ZARR_FLOAT, good = real || now->cls == LADE_ZARR_INT ||
	                                                now->cls == LADE_ZARR_UINT;
	if (!good || (from.cls != LADE_ZARR_FLOAT && from.cls != LADE_ZARR_INT &&
	              from.cls != LADE_ZARR_UINT))
		return lade__chain_closed(b, name, config, "casts of this type are not known");
	if (strcmp(range, "wrap") == 0 && real)
		return BAD(b->s, config, "want an integer type for \"wrap\"");
	if (map.other)
		return lade__chain_closed(b, name, config,
		                          "scalar_map with other values than NaN and infinities");
	return lade__chain_stage(
		b,
		"cast(%s,astype=%s,rounding=%s,range=%s,map=%u,nan=%.17g,inf=%.17g,"
		"ninf=%.17g)",
		lade_dtype_text(from.dtype), lade_dtype_text(now->dtype), rounding, range, map.bits,
		map.stands[0], map.stands[1], map.stands[2]);
}

/* ---- packbits --------------------------------------------------------------------------- */

lade_status lade__chain_packbits(builder *b, uint32_t name, uint32_t config)
{
	static const char *const paddings[] = {"none", "first_byte", "last_byte", NULL};
	static const struct {
		size_t size;
		const char *text;
	} complex_parts[] = {{8, "<f4"}, {16, "<f8"}};
	const char *padding, *text = lade_dtype_text(b->now.dtype);
	int64_t first, last;
	lade_status status = word_of(b, config, "padding_encoding", paddings, &padding);
	if (status == LADE_OK)
		status = lade__chain_int(b, config, "first_bit", 0, &first);
	if (status == LADE_OK)
		status = lade__chain_int(b, config, "last_bit", -1, &last);
	if (status != LADE_OK)
		return status;
	bool simple = b->now.cls <= LADE_ZARR_FLOAT_X && b->now.dtype;
	for (size_t i = 0; i < 2; i++)
		if (b->now.cls == LADE_ZARR_COMPLEX && b->now.size == complex_parts[i].size)
			text = complex_parts[i].text, simple = true;
	if (!simple)
		return lade__chain_closed(b, name, config, "packbits of this type is not known");
	lade_dtype dtype = LADE_DTYPE_NONE;
	lade_dtype_parse(text, &dtype, NULL);
	uint32_t given = lade__json_get(b->s->doc, config, "last_bit");
	int64_t bits = dtype == LADE_B1 ? 1 : 8 * (int64_t)lade_dtype_size(dtype);
	bool negative = last < 0 && lade__json_type(b->s->doc, given) > JSON_NULL;
	if (negative || first < 0 || last >= bits || first > (last < 0 ? bits - 1 : last))
		return BAD(b->s, config, "want bits of 0 to %lld, first_bit up to last_bit",
		           (long long)bits - 1);
	return lade__chain_stage(b, "packints(%s,first=%lld,last=%lld,padding=%.*s)", text,
	                         (long long)first, (long long)last,
	                         (int)(strcspn(padding, "_")), padding);
}
