/*
 * packints.c: some bits of each element, one after the other, the lowest first: Zarr's packbits
 * (docs/format/filters.md, section 14).
 *
 *     | padding bits 1, if first | bits | padding bits 1, if last |
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter/filters.h"

#include <string.h>

enum { DTYPE, FIRST, LAST, PADDING, OPTION_COUNT };
enum { PADDING_NONE, PADDING_FIRST, PADDING_LAST };

static const char *const paddings[] = {"none", "first", "last", NULL};

static const lade_option options[OPTION_COUNT] = {
	{.name = "dtype", .type = LADE_OPTION_DTYPE, .required = true, .doc = "the elements' type"},
	{.name = "first", .type = LADE_OPTION_INT, .max = 63, .doc = "the lowest bit that is kept"},
	{.name = "last", .type = LADE_OPTION_INT, .fallback = {.i = -1}, .min = -1, .max = 63,
	 .doc = "the highest bit that is kept; -1: the type's highest"},
	{.name = "padding", .type = LADE_OPTION_ENUM, .names = paddings,
	 .doc = "where the number of unused bits is"},
};

lade__packing lade__packing_of(const lade_stage *stage)
{
	const lade_value *o = stage->option;
	lade_dtype dtype = (lade_dtype)o[DTYPE].i;
	char cls = lade_dtype_class(dtype);
	lade__packing p = {.size = lade_dtype_size(dtype), .first = (unsigned)o[FIRST].i,
	             .is_bool = cls == 'b', .front = o[PADDING].i == PADDING_FIRST,
	             .back = o[PADDING].i == PADDING_LAST};
	unsigned all = p.is_bool ? 1 : 8 * (unsigned)p.size;
	unsigned last = o[LAST].i < 0 ? all - 1 : (unsigned)o[LAST].i;
	p.bits = last - p.first + 1;
	p.extend = cls == 'i' ? 63 - last : 0;
	return p;
}

static lade_status check(const lade_stage *stage, lade_error *err)
{
	lade_dtype dtype = (lade_dtype)stage->option[DTYPE].i;
	lade_status status = lade__little_check(stage, dtype, err);
	long long all = lade_dtype_class(dtype) == 'b' ? 1 : 8 * (long long)lade_dtype_size(dtype);
	long long first = stage->option[FIRST].i, last = stage->option[LAST].i;
	last = last < 0 ? all - 1 : last;
	if (status == LADE_OK && (first > last || last >= all))
		return lade_fail(err, LADE_E_SPEC, LADE_NO_OFFSET,
		                 "packints: bits %lld to %lld of %lld", first, last, all);
	return status;
}

/* Whole bytes for the bits of all elements, a partial one included: exact for whole elements, and
 * never decreases. */
static size_t bound(const lade_stage *stage, size_t size)
{
	lade__packing p = lade__packing_of(stage);
	size_t count = size / p.size + (size % p.size != 0);
	if (size > SIZE_MAX - 16)
		return SIZE_MAX;
	/* Elements have no more bits than bytes * 8: no overflow. */
	return count / 8 * p.bits + (count % 8 * p.bits + 7) / 8 + p.front + p.back;
}

/* The number of elements; without a number of unused bits, up to 7 more than there were. */
static lade_status count_of(const lade__packing *p, const uint8_t *src, size_t size,
                            uint64_t *count, lade_error *err)
{
	size_t around = p->front + p->back;
	*count = 0;
	if (size < around)
		return lade_fail(err, LADE_E_TRUNCATED, 0,
		                 "packints: want 1 byte or more, have 0");
	if (size - around > UINT64_MAX / 8)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "packints: %zu bytes are too many", size);
	uint64_t bits = (uint64_t)(size - around) * 8;
	if (around) {
		size_t at = p->front ? 0 : size - 1;
		unsigned unused = src[at];
		if (unused > 7 || unused > bits || (bits - unused) % p->bits)
			return lade_fail(err, LADE_E_CORRUPT, at,
			                 "packints: %u unused bits of %llu, elements have %u",
			                 unused, (unsigned long long)bits, p->bits);
		bits -= unused;
	}
	*count = bits / p->bits;
	return LADE_OK;
}

static lade_status decoded_size(const lade_stage *stage, const void *src, size_t size,
                                uint64_t *decoded, lade_error *err)
{
	lade__packing p = lade__packing_of(stage);
	*decoded = 0;
	if (!src || !(p.front + p.back))
		return lade_fail(err, LADE_E_UNKNOWN_SIZE, LADE_NO_OFFSET,
		                 "packints: the number of elements is %s",
		                 src ? "not stored" : "in the data, which was not given");
	lade_status status = count_of(&p, src, size, decoded, err);
	*decoded *= p.size;
	return status;
}

static lade_status nospace(uint64_t want, size_t have, lade_error *err)
{
	return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET, "packints: want %llu bytes, have %zu",
	                 (unsigned long long)want, have);
}

static lade_status encode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	lade__packing p = lade__packing_of(run->stage);
	size_t want = bound(run->stage, src.size), count = src.size / p.size, have = 0;
	uint64_t held = 0, mask = p.bits == 64 ? UINT64_MAX : ((uint64_t)1 << p.bits) - 1;
	*dst_size = 0;
	if (src.size % p.size)
		return lade_fail(err, LADE_E_DTYPE, src.size - src.size % p.size,
		                 "packints: %zu bytes are not a multiple of the element's %zu",
		                 src.size, p.size);
	if (dst.size < want)
		return nospace(want, dst.size, err);
	if (want == 0)
		return LADE_OK;
	uint8_t *to = (uint8_t *)dst.data + p.front, unused = (uint8_t)(-(count % 8 * p.bits) % 8);
	for (size_t i = 0; i < count; i++) {
		uint64_t x = 0;
		memcpy(&x, (const uint8_t *)src.data + i * p.size, p.size);
		x = (p.is_bool ? x != 0 : x >> p.first) & mask;
		held |= x << have;
		/* 'have' is below 8: what does not fit comes in a second word. */
		uint64_t over = have && p.bits + have > 64 ? x >> (64 - have) : 0;
		for (have += p.bits; have >= 8; have -= 8) {
			*to++ = (uint8_t)held;
			held = held >> 8 | (have > 64 ? over << 56 : 0);
		}
	}
	if (have)
		*to++ = (uint8_t)held;
	if (p.front)
		*(uint8_t *)dst.data = unused;
	if (p.back)
		*to = unused;
	*dst_size = want;
	return LADE_OK;
}

static lade_status decode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	lade__packing p = lade__packing_of(run->stage);
	uint64_t count, mask = p.bits == 64 ? UINT64_MAX : ((uint64_t)1 << p.bits) - 1, at = 0;
	*dst_size = 0;
	lade_status status = count_of(&p, lade__bytes(src), src.size, &count, err);
	if (status != LADE_OK)
		return status;
	/* Without a number of unused bits, those of the last byte may look like elements. */
	uint64_t room = dst.size / p.size;
	if (count > room && (p.front + p.back || (count - room) * p.bits >= 8))
		return nospace(count * p.size, dst.size, err);
	count = count < room ? count : room;
	const uint8_t *from = (const uint8_t *)src.data + p.front;
	size_t size = src.size - p.front - p.back;
	for (uint64_t i = 0; i < count; i++, at += p.bits) {
		size_t byte = (size_t)(at / 8), n = size - byte < 8 ? size - byte : 8;
		unsigned shift = (unsigned)(at % 8);
		uint64_t x = 0;
		memcpy(&x, from + byte, n);
		x >>= shift;
		if (shift + p.bits > 64)
			x |= (uint64_t)from[byte + 8] << (64 - shift);
		x = (x & mask) << p.first;
		if (p.extend)
			x = (uint64_t)((int64_t)(x << p.extend) >> p.extend);
		memcpy((uint8_t *)dst.data + i * p.size, &x, p.size);
	}
	*dst_size = (size_t)count * p.size;
	return LADE_OK;
}

/* Without all bits of an element; and a boolean above 1 comes back as 1. */
static bool is_lossy(const lade_stage *stage)
{
	lade__packing p = lade__packing_of(stage);
	return p.is_bool || p.bits < 8 * p.size;
}

const lade_algorithm lade__filter_packints = {
	.struct_size = sizeof(lade_algorithm),
	.name = "packints",
	.id = 45,
	.kind = LADE_STAGE_FILTER,
	.options = options,
	.option_count = OPTION_COUNT,
	.doc = "some bits of each element (docs/format/filters.md, 14)",
	.check = check,
	.bound = bound,
	.decoded_size = decoded_size,
	.is_lossy = is_lossy,
	/* A bit becomes 8 bytes. */
	.ratio_max = 64,
};

const lade_implementation lade__filter_packints_encode = {
	.struct_size = sizeof(lade_implementation),
	.name = "packints/lade",
	.algorithm = "packints",
	.direction = LADE_ENCODE,
	.priority = LADE_PRIORITY_BUILTIN,
	.cost = lade__filter_cost,
	.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops), .run = encode},
};

const lade_implementation lade__filter_packints_decode = {
	.struct_size = sizeof(lade_implementation),
	.name = "packints/lade",
	.algorithm = "packints",
	.direction = LADE_DECODE,
	.priority = LADE_PRIORITY_BUILTIN,
	.cost = lade__filter_cost,
	.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops), .run = decode},
};
