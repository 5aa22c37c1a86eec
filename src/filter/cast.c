/*
 * cast.c: elements in another type, with a choice of rounding, of what happens out of range, and of
 * what stands for NaN and the infinities: Zarr's cast_value (docs/format/filters.md, section 13).
 *
 * Each element becomes a number m * 2^e with 64 bits of m, so that all is exact but the one
 * rounding that was asked for.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter/reals.h"

#include <string.h>

enum { DTYPE, ASTYPE, ROUNDING, RANGE, MAP, MAP_NAN, MAP_INF, MAP_NINF, OPTION_COUNT };
enum { NEAREST_EVEN, TOWARDS_ZERO, TOWARDS_POSITIVE, TOWARDS_NEGATIVE, NEAREST_AWAY };
enum { RANGE_ERROR, RANGE_CLAMP, RANGE_WRAP };

static const char *const roundings[] = {"nearest-even",     "towards-zero", "towards-positive",
                                        "towards-negative", "nearest-away", NULL};
static const char *const ranges[] = {"error", "clamp", "wrap", NULL};

static const lade_option options[OPTION_COUNT] = {
	{.name = "dtype", .type = LADE_OPTION_DTYPE, .required = true, .doc = "the elements' type"},
	{.name = "astype", .type = LADE_OPTION_DTYPE, .required = true,
	 .doc = "the stored elements' type"},
	{.name = "rounding", .type = LADE_OPTION_ENUM, .names = roundings,
	 .doc = "where a value has no place in the other type"},
	{.name = "range", .type = LADE_OPTION_ENUM, .names = ranges,
	 .doc = "values beyond the other type: refused, its limits, or modulo 2^bits"},
	{.name = "map", .type = LADE_OPTION_INT, .max = 63,
	 .doc = "bits: 1, 2, 4: encoding stores nan, inf, ninf for those; 8, 16, 32: decoding "
	        "gives them back"},
	{.name = "nan", .type = LADE_OPTION_FLOAT, .doc = "what stands for NaN"},
	{.name = "inf", .type = LADE_OPTION_FLOAT, .doc = "what stands for infinity"},
	{.name = "ninf", .type = LADE_OPTION_FLOAT, .doc = "what stands for -infinity"},
};

/* ---- numbers ------------------------------------------------------------------------- */

typedef struct number {
	enum { FINITE, INFINITE, NOT_A_NUMBER } kind;
	bool negative;
	uint64_t m;
	int e;
} number;

typedef struct type {
	size_t size;
	char cls;
	unsigned bits, mant; /* of a float: bits of its mantissa */
	int bias;
} type;

static type type_of(lade_dtype dtype)
{
	type t = {.size = lade_dtype_size(dtype), .cls = lade_dtype_class(dtype)};
	t.bits = 8 * (unsigned)t.size;
	t.mant = t.size == 2 ? 10 : t.size == 4 ? 23 : 52;
	t.bias = t.size == 2 ? 15 : t.size == 4 ? 127 : 1023;
	return t;
}

static uint64_t ones(unsigned bits)
{
	return bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
}

static number number_of(type t, uint64_t bits)
{
	number x = {.m = bits};
	bool top = bits >> (t.bits - 1) & 1;
	if (t.cls == 'i' && top) {
		x.negative = true;
		x.m = (0 - bits) & ones(t.bits);
	} else if (t.cls == 'f') {
		uint64_t top_exponent = ones(t.bits - 1 - t.mant);
		uint64_t exponent = bits >> t.mant & top_exponent;
		x.m = bits & ones(t.mant);
		x.negative = top;
		if (exponent == top_exponent)
			x.kind = x.m ? NOT_A_NUMBER : INFINITE;
		x.m |= exponent ? (uint64_t)1 << t.mant : 0;
		x.e = (int)(exponent ? exponent : 1) - t.bias - (int)t.mant;
	}
	return x;
}

/* m / 2^shift, for a shift above 0. */
static uint64_t shifted(const number *x, unsigned shift, int rounding)
{
	uint64_t whole = shift < 64 ? x->m >> shift : 0, rest = x->m, half = 0;
	int order = -1; /* of the rest against a half */
	if (shift < 64)
		rest &= ones(shift);
	if (shift <= 64) {
		half = (uint64_t)1 << (shift - 1);
		order = rest < half ? -1 : rest > half;
	}
	switch (rounding) {
	case NEAREST_EVEN:
		return whole + (order > 0 || (order == 0 && whole & 1));
	case NEAREST_AWAY:
		return whole + (order >= 0);
	case TOWARDS_POSITIVE:
		return whole + (rest && !x->negative);
	case TOWARDS_NEGATIVE:
		return whole + (rest && x->negative);
	default:
		return whole;
	}
}

/* ---- storing ------------------------------------------------------------------------- */

/* The conversion of a tile; also the numbers that stand for others. */
typedef struct cast {
	type from, to;
	int rounding, range;
	unsigned map; /* bits 1, 2, 4 are those of this direction */
	bool encodes;
	number stands[3];
} cast;

/* False: the number has no value in the type. */
static bool to_integer(const cast *c, const number *x, uint64_t *out)
{
	bool is_signed = c->to.cls == 'i', beyond = x->kind == INFINITE;
	uint64_t most = ones(c->to.bits - is_signed), value = 0;
	if (x->kind == NOT_A_NUMBER)
		return false;
	if (x->e < 0) {
		value = shifted(x, (unsigned)-x->e, c->rounding);
	} else if (x->kind == FINITE && x->m) {
		beyond = x->e >= 64 || (x->e && x->m >> (64 - x->e));
		value = x->e < 64 ? x->m << x->e : 0;
	}
	if (x->negative)
		most = is_signed ? most + 1 : 0;
	beyond |= x->kind == FINITE && value > most;
	if (beyond && (c->range == RANGE_ERROR || (c->range == RANGE_WRAP && x->kind != FINITE)))
		return false;
	if (beyond && c->range == RANGE_CLAMP)
		value = most;
	*out = x->negative ? 0 - value : value;
	return true;
}

static bool to_float(const cast *c, const number *x, uint64_t *out)
{
	const type *t = &c->to;
	uint64_t infinity = ones(t->bits - 1 - t->mant) << t->mant, bits = 0;
	if (x->kind == NOT_A_NUMBER) {
		bits = infinity | (uint64_t)1 << (t->mant - 1);
	} else if (x->kind == INFINITE) {
		bits = infinity;
	} else if (x->m) {
		/* The weight of the last bit, 2^low, and how much of m is below it. */
		int high = 63 - __builtin_clzll(x->m) + x->e, lowest = 1 - t->bias - (int)t->mant;
		int low = high - (int)t->mant > lowest ? high - (int)t->mant : lowest;
		uint64_t value = low > x->e ? shifted(x, (unsigned)(low - x->e), c->rounding)
		                            : x->m << (x->e - low);
		/* A carry out of the mantissa goes into the exponent, as it should. */
		if (low - lowest >= 2 * t->bias + 1)
			bits = infinity;
		else
			bits = ((uint64_t)(low - lowest) << t->mant) + value;
		if (bits >= infinity) {
			if (c->range != RANGE_CLAMP)
				return false;
			bits = infinity;
		}
	}
	*out = bits | (uint64_t)x->negative << (t->bits - 1);
	return true;
}

static bool same(const number *a, const number *b)
{
	if (a->kind != FINITE || b->kind != FINITE || !a->m || !b->m)
		return a->kind == FINITE && b->kind == FINITE && a->m == b->m;
	int x = __builtin_ctzll(a->m), y = __builtin_ctzll(b->m);
	return a->negative == b->negative && a->m >> x == b->m >> y && a->e + x == b->e + y;
}

/* What stands for NaN and the infinities, or the reverse. */
static number mapped(const cast *c, number x)
{
	static const number special[3] = {{.kind = NOT_A_NUMBER},
	                                  {.kind = INFINITE},
	                                  {.kind = INFINITE, .negative = true}};
	for (int i = 0; i < 3; i++) {
		if (!(c->map >> i & 1))
			continue;
		if (!c->encodes && same(&x, &c->stands[i]))
			return special[i];
		if (c->encodes && x.kind == special[i].kind &&
		    (i == 0 || x.negative == special[i].negative))
			return c->stands[i];
	}
	return x;
}

static lade_status run_cast(const lade_run *run, const lade_elements *tile, bool encodes,
                            lade_error *err)
{
	const lade_value *o = run->stage->option;
	lade_dtype from = (lade_dtype)o[encodes ? DTYPE : ASTYPE].i;
	lade_dtype to = (lade_dtype)o[encodes ? ASTYPE : DTYPE].i;
	cast c = {.from = type_of(from), .to = type_of(to), .rounding = (int)o[ROUNDING].i,
	          .range = (int)o[RANGE].i, .encodes = encodes,
	          .map = (unsigned)(encodes ? o[MAP].i : o[MAP].i >> 3) & 7};
	const uint8_t *src = tile->src;
	uint8_t *dst = tile->dst;
	for (int i = 0; i < 3; i++) {
		uint64_t bits;
		memcpy(&bits, &o[MAP_NAN + i].f, sizeof bits);
		c.stands[i] = number_of(type_of(LADE_F8), bits);
	}
	lade_status status = lade__filter_whole(run->stage, tile->total, err);
	for (size_t i = 0; status == LADE_OK && i < tile->elem_count; i++) {
		uint64_t bits = 0;
		memcpy(&bits, src + i * c.from.size, c.from.size);
		number x = number_of(c.from, bits);
		if (c.map)
			x = mapped(&c, x);
		if (!(c.to.cls == 'f' ? to_float : to_integer)(&c, &x, &bits))
			return lade__value_error(run->stage, tile->elem_off + i, from, to, err);
		memcpy(dst + i * c.to.size, &bits, c.to.size);
	}
	return status;
}

static lade_status encode(const lade_run *run, const lade_elements *tile, lade_error *err)
{
	return run_cast(run, tile, true, err);
}

static lade_status decode(const lade_run *run, const lade_elements *tile, lade_error *err)
{
	return run_cast(run, tile, false, err);
}

bool lade__cast_widens(const lade_stage *stage)
{
	type to = type_of((lade_dtype)stage->option[DTYPE].i);
	type from = type_of((lade_dtype)stage->option[ASTYPE].i);
	bool apart = from.cls == 'u' && to.cls == 'i';
	return stage->option[MAP].i >> 3 == 0 && from.size < to.size &&
	       (from.cls == to.cls || apart);
}

static void sizes(const lade_stage *stage, size_t *decoded, size_t *encoded)
{
	*decoded = lade_dtype_size((lade_dtype)stage->option[DTYPE].i);
	*encoded = lade_dtype_size((lade_dtype)stage->option[ASTYPE].i);
}

static lade_status check(const lade_stage *stage, lade_error *err)
{
	lade_status status = lade__filter_check_dtype(stage, DTYPE, "iuf", err);
	if (status == LADE_OK)
		status = lade__filter_check_dtype(stage, ASTYPE, "iuf", err);
	if (status == LADE_OK && stage->option[RANGE].i == RANGE_WRAP &&
	    lade_dtype_class((lade_dtype)stage->option[ASTYPE].i) == 'f')
		return lade_fail(err, LADE_E_SPEC, LADE_NO_OFFSET,
		                 "cast: range=wrap with the real type %s",
		                 lade_dtype_text((lade_dtype)stage->option[ASTYPE].i));
	return status;
}

LADE__TILE_FILTER(cast, 44, LADE_ALGORITHM_LOSSY,
                  "elements in another type, by rules (docs/format/filters.md, 13)", options, check,
                  sizes, false, LADE_TILE_IN_ORDER, encode, LADE_TILE_IN_ORDER, decode)
