/*
 * bitround.c: rounding of reals to fewer bits of mantissa, as numcodecs has it
 * (docs/format/filters.md, section 7).  Lossy: decoding gives the rounded values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter/filters.h"

#include <string.h>

static const lade_option options[] = {
	{.name = "dtype", .type = LADE_OPTION_DTYPE, .required = true, .doc = "the reals' type"},
	{.name = "keepbits", .type = LADE_OPTION_INT, .required = true, .min = 0, .max = 52,
	 .doc = "bits of the mantissa that stay"},
};

static void sizes(const lade_stage *stage, size_t *decoded, size_t *encoded)
{
	*decoded = *encoded = lade_dtype_size((lade_dtype)stage->option[0].i);
}

/* Bits of the whole mantissa, without the hidden one. */
static unsigned mantissa(const lade_stage *stage)
{
	size_t size = lade_dtype_size((lade_dtype)stage->option[0].i);
	return size == 2 ? 10 : size == 4 ? 23 : 52;
}

static lade_status check(const lade_stage *stage, lade_error *err)
{
	lade_status status = lade__filter_check_dtype(stage, 0, "f", err);
	if (status == LADE_OK && stage->option[1].i > (int64_t)mantissa(stage))
		return lade_fail(err, LADE_E_SPEC, LADE_NO_OFFSET,
		                 "bitround: keepbits %lld is more than the %u of %s",
		                 (long long)stage->option[1].i, mantissa(stage),
		                 lade_dtype_text((lade_dtype)stage->option[0].i));
	return status;
}

/* Adds half of the last bit that stays, less one where that bit is 0, so that ties go to even;
 * and clears the bits below.  A carry goes into the exponent, as it should. */
#define ROUND(type)                                                                           \
	static void round_##type(const uint8_t *src, uint8_t *dst, size_t count, unsigned drop) \
	{                                                                                     \
		type half = (type)(((type)1 << (drop - 1)) - 1);                              \
		type mask = (type) ~(((type)1 << drop) - 1);                                  \
		for (size_t i = 0; i < count; i++) {                                          \
			type x;                                                               \
			memcpy(&x, src + i * sizeof x, sizeof x);                             \
			x = (type)((x + ((x >> drop) & 1) + half) & mask);                    \
			memcpy(dst + i * sizeof x, &x, sizeof x);                             \
		}                                                                             \
	}

ROUND(uint16_t)
ROUND(uint32_t)
ROUND(uint64_t)

static lade_status copy(const lade_run *run, const lade_elements *tile, lade_error *err)
{
	(void)err;
	size_t size = lade_dtype_size((lade_dtype)run->stage->option[0].i);
	if (tile->src != tile->dst && tile->elem_count)
		memcpy(tile->dst, tile->src, tile->elem_count * size);
	return LADE_OK;
}

static lade_status encode(const lade_run *run, const lade_elements *tile, lade_error *err)
{
	lade_status status = lade__filter_whole(run->stage, tile->total, err);
	if (status != LADE_OK)
		return status;
	unsigned drop = mantissa(run->stage) - (unsigned)run->stage->option[1].i;
	if (drop == 0)
		return copy(run, tile, err);
	switch (lade_dtype_size((lade_dtype)run->stage->option[0].i)) {
	case 2:
		round_uint16_t(tile->src, tile->dst, tile->elem_count, drop);
		break;
	case 4:
		round_uint32_t(tile->src, tile->dst, tile->elem_count, drop);
		break;
	default:
		round_uint64_t(tile->src, tile->dst, tile->elem_count, drop);
		break;
	}
	return LADE_OK;
}

LADE__TILE_FILTER(bitround, 38, LADE_ALGORITHM_LOSSY,
                  "reals rounded to fewer bits (docs/format/filters.md, 7)", options, check, sizes,
                  false, LADE_TILE_IN_ORDER, encode, LADE_TILE_IN_ORDER, copy)
