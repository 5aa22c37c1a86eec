/*
 * numcodecs.c: the codecs of format 2, which format 3 has as "numcodecs.<id>".
 *
 * Their options only matter for writing, except where the bytes differ; they are checked anyway.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr/chain.h"

#include <stdio.h>
#include <string.h>

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
	return value < low ? low : value > high ? high : value;
}

lade_status lade__chain_int(builder *b, uint32_t config, const char *key, int64_t fallback,
                            int64_t *out)
{
	uint32_t at = lade__json_get(b->s->doc, config, key);
	*out = fallback;
	if (at == JSON_NONE || lade__json_type(b->s->doc, at) == JSON_NULL)
		return LADE_OK;
	json_node node = b->s->doc->nodes[at];
	json one = {.text = b->s->doc->text, .size = b->s->doc->size, .nodes = &node, .count = 1};
	if (node.type == JSON_STRING && node.size)
		node.type = JSON_NUMBER;
	if (node.type == JSON_NUMBER && lade__json_i64(&one, 0, out))
		return LADE_OK;
	return BAD(b->s, at, "want a whole number of 64 bits");
}

typedef struct limits {
	int64_t low, high, fallback;
	bool strict; /* refuses others; numcodecs takes the nearest */
} limits;

/* An integer between limits. */
static lade_status limited(builder *b, uint32_t config, const char *key, limits l, int64_t *out)
{
	uint32_t at = lade__json_get(b->s->doc, config, key);
	if (l.strict && at != JSON_NONE && lade__json_type(b->s->doc, at) != JSON_NUMBER)
		return BAD(b->s, at, "want a whole number");
	lade_status status = lade__chain_int(b, config, key, l.fallback, out);
	if (status != LADE_OK)
		return status;
	if (l.strict && (*out < l.low || *out > l.high))
		return BAD(b->s, at, "want %lld to %lld", (long long)l.low, (long long)l.high);
	*out = clamp(*out, l.low, l.high);
	return LADE_OK;
}

lade_status lade__chain_zstd(builder *b, uint32_t config, bool strict)
{
	const limits levels = {-131072, 22, 0, strict};
	int64_t level;
	uint32_t checksum = lade__json_get(b->s->doc, config, "checksum");
	json_type is = lade__json_type(b->s->doc, checksum);
	if (is != JSON_ABSENT && is != JSON_TRUE && is != JSON_FALSE && (strict || is != JSON_NULL))
		return BAD(b->s, checksum, "want true or false");
	lade_status status = limited(b, config, "level", levels, &level);
	if (status != LADE_OK)
		return status;
	return lade__chain_stage(b, "zstd(level=%lld,checksum=%s)", (long long)level,
	                         is == JSON_TRUE ? "true" : "false");
}

static lade_status deflate(builder *b, const char *name, uint32_t config, bool strict)
{
	const limits levels = {strict ? 0 : -1, 9, 1, strict};
	int64_t level;
	lade_status status = limited(b, config, "level", levels, &level);
	if (status != LADE_OK)
		return status;
	return lade__chain_stage(b, "%s(level=%lld)", name, (long long)(level < 0 ? 6 : level));
}

lade_status lade__chain_gzip(builder *b, uint32_t config, bool strict)
{
	return deflate(b, "gzip", config, strict);
}

static lade_status zlib(builder *b, uint32_t config, bool strict)
{
	return deflate(b, "zlib", config, strict);
}

static const char *const cnames[] = {"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"};
static const char *const shuffles[] = {"noshuffle", "shuffle", "bitshuffle"};

/* The index of a string among names; -1: it is none. */
static int64_t one_of(builder *b, uint32_t at, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (lade__json_is(b->s->doc, at, names[i]))
			return (int64_t)i;
	return -1;
}

lade_status lade__chain_blosc(builder *b, uint32_t config, bool strict)
{
	const json *doc = b->s->doc;
	uint32_t cname = lade__json_get(doc, config, "cname");
	uint32_t mode = lade__json_get(doc, config, "shuffle");
	uint64_t elem = b->now.size && b->now.size <= 255 ? b->now.size : 1;
	const limits levels = {0, 9, 5, strict}, sizes = {0, 715827542, 0, strict};
	const limits types = {1, 255, (int64_t)elem, false};
	/* Format 3's defaults are zstd, and bits for single bytes; numcodecs' are LZ4 and bytes. */
	int64_t level, size, type, shuffle = strict && elem == 1 ? 2 : 1, codec = strict ? 5 : 1;
	if (cname != JSON_NONE && (codec = one_of(b, cname, cnames, 6)) < 0)
		return BAD(b->s, cname, "no compressor of Blosc");
	lade_status status = LADE_OK;
	if (lade__json_type(doc, mode) == JSON_STRING && one_of(b, mode, shuffles, 3) >= 0)
		shuffle = one_of(b, mode, shuffles, 3);
	else if (strict && mode != JSON_NONE && lade__json_type(doc, mode) != JSON_NULL)
		return BAD(b->s, mode, "want noshuffle, shuffle or bitshuffle");
	else
		status = lade__chain_int(b, config, "shuffle", shuffle, &shuffle);
	if (shuffle == -1)
		shuffle = elem == 1 ? 2 : 1;
	if (status == LADE_OK && (shuffle < 0 || shuffle > 2))
		return BAD(b->s, mode, "want -1 to 2");
	if (status == LADE_OK)
		status = limited(b, config, "clevel", levels, &level);
	if (status == LADE_OK)
		status = limited(b, config, "blocksize", sizes, &size);
	if (status == LADE_OK)
		status = limited(b, config, "typesize", types, &type);
	if (status != LADE_OK)
		return status;
	return lade__chain_stage(b, "blosc(cname=%s,level=%lld,shuffle=%s,typesize=%lld,"
	                         "blocksize=%lld)", cnames[codec], (long long)level,
	                         shuffles[shuffle], (long long)type, (long long)size);
}

/* A size in front, which no spec has: the step ends here.  The stages before are in the same step
 * if they keep the size, which then is the step's. */
static lade_status lz4(builder *b, uint32_t config, bool strict)
{
	int64_t acceleration;
	size_t extra;
	(void)strict;
	lade_status status = lade__chain_int(b, config, "acceleration", 1, &acceleration);
	if (status == LADE_OK && (!lade__chain_adds(b, b->text, &extra) || extra))
		status = lade__chain_flush(b, 0);
	if (status != LADE_OK)
		return status;
	acceleration = clamp(acceleration, 1, 65536);
	status = lade__chain_stage(b, "lz4(level=%lld)",
	                           (long long)(acceleration == 1 ? 1 : 1 - acceleration));
	return status == LADE_OK ? lade__chain_flush(b, 4) : status;
}

static lade_status checksum(builder *b, uint32_t config, const char *name, const char *fallback)
{
	static const char *const places[] = {"start", "end"};
	uint32_t at = lade__json_get(b->s->doc, config, "location");
	int64_t place = one_of(b, at, places, 2);
	if (place < 0 && at != JSON_NONE && lade__json_type(b->s->doc, at) != JSON_NULL)
		return BAD(b->s, at, "want \"start\" or \"end\"");
	return lade__chain_stage(b, "%s(location=%s)", name, place < 0 ? fallback : places[place]);
}

static lade_status crc32(builder *b, uint32_t config, bool strict)
{
	(void)strict;
	return checksum(b, config, "crc32", "start");
}

static lade_status adler32(builder *b, uint32_t config, bool strict)
{
	(void)strict;
	return checksum(b, config, "adler32", "start");
}

static lade_status crc32c(builder *b, uint32_t config, bool strict)
{
	(void)strict;
	return checksum(b, config, "crc32c", "end");
}

static lade_status fletcher32(builder *b, uint32_t config, bool strict)
{
	(void)config, (void)strict;
	return lade__chain_stage(b, "fletcher32");
}

/* numcodecs can only write a null prefix to JSON. */
static lade_status jenkins_lookup3(builder *b, uint32_t config, bool strict)
{
	uint32_t prefix = lade__json_get(b->s->doc, config, "prefix");
	int64_t init;
	(void)strict;
	lade_status status = lade__chain_int(b, config, "initval", 0, &init);
	if (status == LADE_OK && (init < 0 || init > UINT32_MAX))
		return BAD(b->s, config, "want an 'initval' of 32 bits");
	if (status == LADE_OK && lade__json_type(b->s->doc, prefix) > JSON_NULL)
		return UNKNOWN(b->s, prefix, "a prefix");
	return status == LADE_OK ? lade__chain_stage(b, "lookup3(init=%lld)", (long long)init)
	                         : status;
}

static lade_status bz2(builder *b, uint32_t config, bool strict)
{
	const limits levels = {1, 9, 1, strict};
	int64_t level;
	lade_status status = limited(b, config, "level", levels, &level);
	return status == LADE_OK ? lade__chain_stage(b, "bz2(level=%lld)", (long long)level)
	                         : status;
}

static lade_status shuffle(builder *b, uint32_t config, bool strict)
{
	int64_t size;
	(void)strict;
	lade_status status = lade__chain_int(b, config, "elementsize", 4, &size);
	if (status != LADE_OK || size <= 1)
		return status; /* numcodecs copies */
	return lade__chain_stage(b, "shuffle(%lld)", (long long)size);
}

/* ---- filters of arrays ------------------------------------------------------------------ */

/* An element that a filter sees. */
typedef struct element {
	char text[32]; /* its type, little-endian */
	size_t swap;   /* bytes of a number that is stored big-endian; 0: there is none */
	char now[32];  /* its type as it is */
} element;

static void set_element(element *e, const char *text)
{
	lade_dtype dtype = LADE_DTYPE_NONE;
	snprintf(e->now, sizeof e->now, "%s", text);
	snprintf(e->text, sizeof e->text, "%s", text);
	e->swap = 0;
	if (lade_dtype_parse(text, &dtype, NULL) != LADE_OK || !lade_dtype_is_big(dtype))
		return;
	e->swap = lade_dtype_size(dtype);
	snprintf(e->text, sizeof e->text, "%s",
	         lade_dtype_text((lade_dtype)(dtype & ~LADE_DTYPE_BIG)));
}

/* The type string of a configuration, or 'fallback'; NULL: the type so far. */
static lade_status take_element(builder *b, uint32_t config, const char *key,
                                const element *fallback, element *out)
{
	uint32_t at = lade__json_get(b->s->doc, config, key);
	if (at == JSON_NONE || lade__json_type(b->s->doc, at) == JSON_NULL) {
		if (fallback)
			*out = *fallback;
		else
			set_element(out, lade_dtype_text(b->now.dtype));
		return LADE_OK;
	}
	const json_node *node = &b->s->doc->nodes[at];
	const char *from = b->s->doc->text + node->at;
	char text[32];
	if (node->type != JSON_STRING || node->size == 0 || node->size > 31 || node->escaped ||
	    strspn(from, "<>|=[]_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") <
	            node->size)
		return BAD(b->s, at, "want a type string such as \"<f4\"");
	snprintf(text, sizeof text, "%.*s", (int)node->size, from);
	set_element(out, text);
	return LADE_OK;
}

/* The types of a filter: "dtype" and "astype" in most. */
typedef struct cast_of {
	element from, to;
} cast_of;

static lade_status take_cast(builder *b, uint32_t config, cast_of *cast)
{
	lade_status status = take_element(b, config, "dtype", NULL, &cast->from);
	return status == LADE_OK ? take_element(b, config, "astype", &cast->from, &cast->to)
	                         : status;
}

/* Adds a filter: it runs on little-endian numbers, with stages around it that reverse bytes. */
static lade_status add_filter(builder *b, const cast_of *cast, const char *stage)
{
	lade_status status = LADE_OK;
	if (cast->from.swap)
		status = lade__chain_stage(b, "byteswap(%zu)", cast->from.swap);
	if (status == LADE_OK)
		status = lade__chain_stage(b, "%s", stage);
	if (status == LADE_OK && cast->to.swap)
		status = lade__chain_stage(b, "byteswap(%zu)", cast->to.swap);
	lade__chain_becomes(b, cast->to.now);
	return status;
}

/* A number's text as the document has it; NaN and infinities are none. */
static lade_status number_text(builder *b, uint32_t config, const char *key, const char *fallback,
                               char text[64])
{
	uint32_t at = lade__json_get(b->s->doc, config, key);
	if (at == JSON_NONE && fallback) {
		snprintf(text, 64, "%s", fallback);
		return LADE_OK;
	}
	const json_node *node = at == JSON_NONE ? NULL : &b->s->doc->nodes[at];
	if (!node || node->type != JSON_NUMBER || node->size > 63 ||
	    memchr(b->s->doc->text + node->at, 'N', node->size) ||
	    memchr(b->s->doc->text + node->at, 'I', node->size))
		return BAD(b->s, node ? at : config, "want a number '%s'", key);
	snprintf(text, 64, "%.*s", (int)node->size, b->s->doc->text + node->at);
	return LADE_OK;
}

static lade_status delta(builder *b, uint32_t config, bool strict)
{
	cast_of cast;
	char stage[100];
	(void)strict;
	lade_status status = take_cast(b, config, &cast);
	if (status != LADE_OK)
		return status;
	snprintf(stage, sizeof stage, "delta(%s,astype=%s)", cast.from.text, cast.to.text);
	b->fixed = true;
	return add_filter(b, &cast, stage);
}

static lade_status fixedscaleoffset(builder *b, uint32_t config, bool strict)
{
	cast_of cast;
	char scale[64], offset[64], stage[300];
	(void)strict;
	lade_status status = take_cast(b, config, &cast);
	if (status == LADE_OK)
		status = number_text(b, config, "scale", NULL, scale);
	if (status == LADE_OK)
		status = number_text(b, config, "offset", NULL, offset);
	if (status != LADE_OK)
		return status;
	snprintf(stage, sizeof stage, "fixedscaleoffset(%s,astype=%s,scale=%s,offset=%s)",
	         cast.from.text, cast.to.text, scale, offset);
	return add_filter(b, &cast, stage);
}

static lade_status quantize(builder *b, uint32_t config, bool strict)
{
	cast_of cast;
	char stage[120];
	int64_t digits;
	(void)strict;
	lade_status status = take_cast(b, config, &cast);
	if (status == LADE_OK)
		status = lade__chain_int(b, config, "digits", INT64_MIN, &digits);
	if (status == LADE_OK && digits == INT64_MIN)
		return BAD(b->s, config, "want 'digits'");
	if (status != LADE_OK)
		return status;
	snprintf(stage, sizeof stage, "quantize(%s,digits=%lld,astype=%s)", cast.from.text,
	         (long long)digits, cast.to.text);
	return add_filter(b, &cast, stage);
}

lade_status lade__chain_bitround(builder *b, uint32_t config, bool strict)
{
	int64_t keep;
	lade_status status = lade__chain_int(b, config, "keepbits", -1, &keep);
	if (status == LADE_OK && keep < strict)
		return BAD(b->s, config, "want 'keepbits' from %d", strict);
	/* Decoding is nothing to do, whatever the type is; a spec is made where it can encode. */
	if (status == LADE_OK && b->now.cls == LADE_ZARR_FLOAT && !b->now.big)
		status = lade__chain_stage(b, "bitround(%s,keepbits=%lld)",
		                           lade_dtype_text(b->now.dtype), (long long)keep);
	return status;
}

static lade_status packbits(builder *b, uint32_t config, bool strict)
{
	(void)config, (void)strict;
	lade_status status = lade__chain_stage(b, "packbits");
	b->fixed = true;
	lade__chain_becomes(b, "|u1");
	return status;
}

static lade_status astype(builder *b, uint32_t config, bool strict)
{
	cast_of cast;
	char stage[100];
	(void)strict;
	lade_status status = take_element(b, config, "decode_dtype", NULL, &cast.from);
	if (status == LADE_OK)
		status = take_element(b, config, "encode_dtype", NULL, &cast.to);
	if (status != LADE_OK)
		return status;
	snprintf(stage, sizeof stage, "astype(%s,astype=%s)", cast.from.text, cast.to.text);
	return add_filter(b, &cast, stage);
}

/* ---- the table --------------------------------------------------------------------------- */

static const struct numcodec {
	const char *id;
	codec_kind kind;
	const char *keys; /* of its configuration, with a space behind each; NULL: any */
	lade_status (*add)(builder *b, uint32_t config, bool strict); /* NULL: cannot run it */
} numcodecs[] = {
	{"zstd", BB, "level checksum ", lade__chain_zstd},
	{"gzip", BB, "level ", lade__chain_gzip},
	{"zlib", BB, "level ", zlib},
	{"blosc", BB, "cname clevel shuffle blocksize typesize ", lade__chain_blosc},
	{"lz4", BB, "acceleration ", lz4},
	{"crc32", BB, "location ", crc32},
	{"adler32", BB, "location ", adler32},
	{"crc32c", BB, "location ", crc32c},
	{"fletcher32", BB, "", fletcher32},
	{"shuffle", BB, "elementsize ", shuffle},
	{"bz2", BB, "level ", bz2},
	{"lzma", BB, "format check preset filters ", lade__chain_lzma},
	{"jenkins_lookup3", BB, "initval prefix ", jenkins_lookup3},
	{"delta", AA, "dtype astype ", delta},
	{"fixedscaleoffset", AA, "scale offset dtype astype ", fixedscaleoffset},
	{"quantize", AA, "digits dtype astype ", quantize},
	{"bitround", AA, "keepbits ", lade__chain_bitround},
	{"packbits", AA, "", packbits},
	{"astype", AA, "encode_dtype decode_dtype ", astype},
	{"categorize", AA, NULL, NULL},
	{"base64", BB, "", NULL},
	{"pcodec", AB, NULL, NULL},
	{"zfpy", AB, NULL, NULL},
};

lade_status lade__chain_numcodec(builder *b, const char *name, uint32_t at, uint32_t config,
                                 codec_kind *kind, bool *known)
{
	char keys[128];
	for (size_t i = 0; i < sizeof numcodecs / sizeof numcodecs[0]; i++) {
		const struct numcodec *codec = &numcodecs[i];
		if (strcmp(codec->id, name) != 0)
			continue;
		*kind = codec->kind;
		*known = true;
		if (codec->keys) {
			snprintf(keys, sizeof keys, "id %s", codec->keys);
			lade_status status = config == JSON_NONE
				? LADE_OK : lade__scan_members(b->s, config, keys);
			if (status != LADE_OK)
				return status;
		}
		if (codec->add)
			return codec->add(b, config, false);
		b->fixed |= codec->kind == AA;
		return lade__chain_foreign(b, at, config, kind, "this version has no such codec");
	}
	*known = false;
	return LADE_OK;
}
