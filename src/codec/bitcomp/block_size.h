/*
 * block_size.h: sub-blocks of elements of one size; block.h includes it once for each.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define NAME_(name, log) name##_##log
#define NAME__(name, log) NAME_(name, log)
#define NAME(name) NAME__(name, LOG)
#define SIZE (1u << LOG)
#define BITS (8u * SIZE)
#define EACH (SIZE == 1 ? 16u : 8u) /* values of a unit */
#define UNIT_BYTES (EACH * SIZE)
#define SAMPLE_UNITS (2 * LADE_BITCOMP_GROUP / UNIT_BYTES)
#define IN_VEC (VEC / SIZE)
#define vec NAME(vec)
#define wec NAME(wec)

typedef ELEM vec __attribute__((vector_size(VEC)));
typedef WORD wec __attribute__((vector_size(VEC)));

INLINE vec NAME(load)(const void *p)
{
	vec v;
	memcpy(&v, p, VEC);
	return v;
}

INLINE void NAME(store)(void *p, vec v)
{
	memcpy(p, &v, VEC);
}

INLINE vec NAME(all)(ELEM v)
{
	return (vec){0} + v;
}

#if LOG > 0
#include "codec/bitcomp/quantise.h"
#endif

/* ---- units ----------------------------------------------------------------------------------- */

/* The values of a unit from its bits; reads 16 bytes behind these at most. */
INLINE void NAME(unpack)(const uint8_t *from, unsigned width, uint8_t *to)
{
#ifdef UNPACK_WORDS
	if (LOG >= 2 && width <= 32) {
		UNPACK_WORDS(LOG, from, width, to);
		return;
	}
#endif
	if (LOG == 0) {
		store64(to, spread(load64(from), width, 8));
		store64(to + 8, spread(load64(from + width), width, 8));
	} else if (LOG == 1) {
		/* 4 * width is at most 64 and begins at bit 0 or 4, which leaves room. */
		store64(to, spread(load64(from), width, 16));
		store64(to + 8, spread(load64(from + width / 2) >> (4 * width & 7), width, 16));
	} else if (LOG == 2) {
		for (unsigned i = 0; i < 8; i++) {
			uint32_t v = (uint32_t)(load64(from + (i * width >> 3)) >> (i * width & 7) &
			                        low_bits(width));
			memcpy(to + 4 * i, &v, 4);
		}
	} else {
		for (unsigned i = 0; i < 8; i++) {
			unsigned shift = i * width & 7;
			const uint8_t *at = from + (i * width >> 3);
			uint64_t v = load64(at) >> shift;
			if (width > 57)
				v |= (uint64_t)at[8] << 1 << (63 - shift);
			store64(to + 8 * i, v & low_bits(width));
		}
	}
}

/*
 * Stores 'bits' bits of 'v', which begin 'have' bits, 0 to 7, behind 'to'; 'acc' has these in its
 * lowest ones.  have + bits < 64.
 */
INLINE uint8_t *NAME(append)(uint8_t *to, uint64_t v, unsigned bits, uint64_t *acc, unsigned *have)
{
	*acc |= v << *have;
	store64(to, *acc);
	*have += bits;
	to += *have / 8;
	*acc >>= *have & 0x38;
	*have &= 7;
	return to;
}

/* The bits of a unit from its values; writes up to 16 bytes behind these. */
INLINE void NAME(pack)(const uint8_t *from, unsigned width, uint8_t *to)
{
#ifdef PACK_WORDS
	if (LOG >= 1 && width <= PACKED_MOST) {
		PACK_WORDS(LOG, from, width, to);
		return;
	}
#endif
	uint64_t acc = 0;
	unsigned have = 0;
	if (LOG == 0) {
		store64(to, squeeze(load64(from), width, 8));
		store64(to + width, squeeze(load64(from + 8), width, 8));
	} else if (LOG == 1) {
		/* Each half is 4 * width bits; of the first, 0 or 4 stand in the second's byte. */
		uint64_t a = squeeze(load64(from), width, 16);
		uint64_t b = squeeze(load64(from + 8), width, 16);
		unsigned whole = 4 * width & 0x78;
		store64(to, a);
		store64(to + whole / 8, b << (4 * width & 7) | a >> whole / 2 >> whole / 2);
	} else if (LOG == 2 && width <= 28) {
		for (unsigned i = 0; i < 32; i += 8)
			to = NAME(append)(to, squeeze(load64(from + i), width, 32), 2 * width, &acc,
			                  &have);
	} else if (LOG == 2 || width <= 56) {
		for (unsigned i = 0; i < 8; i++) {
			ELEM v;
			memcpy(&v, from + SIZE * i, SIZE);
			to = NAME(append)(to, v, width, &acc, &have);
		}
	} else {
		for (unsigned i = 0; i < 8; i++) {
			uint64_t v = load64(from + 8 * i);
			acc |= v << have;
			if (have + width >= 64) {
				store64(to, acc);
				to += 8;
				acc = v >> 1 >> (63 - have);
				have += width - 64;
			} else {
				have += width;
			}
		}
		store64(to, acc);
	}
}

/* The bits of all units, of a width each, or of one width; gives their end. */
INLINE uint8_t *NAME(pack_all)(const uint8_t *x, size_t units, const uint8_t *widths, uint8_t *to)
{
#ifdef PACK_ALL
	return PACK_ALL(LOG, x, units, widths, to);
#else
	for (size_t u = 0; u < units; u++, x += UNIT_BYTES) {
		NAME(pack)(x, widths[u], to);
		to += widths[u] * (EACH / 8);
	}
	return to;
#endif
}

INLINE uint8_t *NAME(pack_same)(const uint8_t *x, size_t units, unsigned width, uint8_t *to)
{
#ifdef PACK_SAME
	return PACK_SAME(LOG, x, units, width, to);
#else
	for (size_t u = 0; u < units; u++, x += UNIT_BYTES, to += width * (EACH / 8))
		NAME(pack)(x, width, to);
	return to;
#endif
}

/* The bits that the largest of a unit's values needs. */
INLINE unsigned NAME(need)(const uint8_t *from)
{
	uint64_t w = load64(from) | load64(from + 8);
	for (unsigned i = 16; i < UNIT_BYTES; i += 8)
		w |= load64(from + i);
	if (LOG <= 2)
		w |= w >> 32;
	if (LOG <= 1)
		w |= w >> 16;
	if (LOG == 0)
		w |= w >> 8;
	return bits_of((ELEM)w);
}

/* ---- encoding -------------------------------------------------------------------------------- */

INLINE vec NAME(folded)(vec d, unsigned fold)
{
	if (fold == LADE_BITCOMP_ZIGZAG && LOG == 0)
		return (d + d) ^ (vec)((wec)d < 0); /* bytes have no shifts */
	if (fold == LADE_BITCOMP_ZIGZAG)
		return (d << 1) ^ (vec)((wec)d >> (BITS - 1));
	if (fold == LADE_BITCOMP_ROTATED)
		return d << 1 | d >> (BITS - 1);
	return d;
}

/* The lesser, element by element. */
INLINE vec NAME(least)(vec a, vec b)
{
#ifdef MIN_OF
	return (vec)MIN_OF(LOG, a, b);
#else
	vec m = (vec)(a < b);
	return (a & m) | (b & ~m);
#endif
}

/* The least of a vector's elements. */
INLINE ELEM NAME(least_in)(vec v)
{
#ifdef LEAST_IN
	return (ELEM)LEAST_IN(LOG, v);
#else
	ELEM least = v[0];
	for (unsigned i = 1; i < IN_VEC; i++)
		least = v[i] < least ? v[i] : least;
	return least;
#endif
}

/* Values to turn: 'count' from value 'first' of a sub-block on, whole groups. */
typedef struct NAME(values) {
	const uint8_t *src; /* the sub-block */
	size_t first, count;
	ELEM base;           /* with delta: the value before the sub-block */
	uint8_t *to;         /* where the first one's result goes */
	const uint8_t *next; /* asked for; NULL, unless these are all of a sub-block */
} NAME(values);

/*
 * The t of section 3 (step 3 undone).  Gives the least and 'least', where t is XORed with 'flip' to
 * be compared.
 */
INLINE vec NAME(turn_as)(NAME(values) values, unsigned fold, bool delta, vec flip,
                         vec least)
{
	const size_t first = values.first, count = values.count;
	const uint8_t *src = values.src + first * SIZE, *next = values.next;
	const ELEM base = values.base;
	uint8_t *to = values.to;
	for (size_t i = 0; i < count; i += IN_VEC) {
		vec v = NAME(load)(src + i * SIZE);
		if (delta && first + i) {
			v -= NAME(load)(src + i * SIZE - SIZE);
		} else if (delta) {
			uint8_t before[VEC];
			memcpy(before, &base, SIZE);
			memcpy(before + SIZE, src, VEC - SIZE);
			v -= NAME(load)(before);
		}
		if (next)
			PREFETCH_NEXT(next, i * SIZE, 0);
		v = NAME(folded)(v, fold);
		least = NAME(least)(v ^ flip, least);
		NAME(store)(to + i * SIZE, v);
	}
	return least;
}

/* What elements are XORed with, so that the least unsigned one is the reference of a mode. */
INLINE ELEM NAME(flip)(unsigned mode, bool is_signed)
{
	ELEM top = (ELEM)1 << (BITS - 1);
	if (mode & LADE_BITCOMP_ABOVE)
		return (ELEM) ~(ELEM)0;
	return !(mode >> LADE_BITCOMP_FOLD & 3) && (mode & LADE_BITCOMP_DELTA || is_signed) ? top
	                                                                                    : 0;
}

/* The same with a loop for each fold. */
INLINE vec NAME(turn)(NAME(values) values, unsigned mode, ELEM flip, vec least)
{
	vec turned = NAME(all)(flip);
#define TURN(fold, delta) \
	case fold << LADE_BITCOMP_FOLD | (delta ? LADE_BITCOMP_DELTA : 0): \
		return NAME(turn_as)(values, fold, delta, turned, least);
	switch (mode & ~(unsigned)LADE_BITCOMP_ABOVE) {
		TURN(LADE_BITCOMP_ZIGZAG, false)
		TURN(LADE_BITCOMP_ZIGZAG, true)
		TURN(LADE_BITCOMP_ROTATED, false)
		TURN(LADE_BITCOMP_PLAIN, true)
	default:
		TURN(LADE_BITCOMP_PLAIN, false)
	}
#undef TURN
}

/*
 * The x of section 3 from the t of whole groups, in place, and the bits that each unit needs.
 * 'next' is asked for; NULL: only the bits count.
 */
INLINE void NAME(refer)(uint8_t *t, size_t groups, bool above, ELEM reference, uint8_t *need,
                        const uint8_t *next)
{
#ifdef REFER_AS
#define HOW(above_is, keep_is) \
	(lade__bitcomp_refer) { .log = LOG, .above = above_is, .keep = keep_is }
	if (!next && above)
		REFER_AS(HOW(true, false), t, groups, reference, need, NULL);
	else if (!next)
		REFER_AS(HOW(false, false), t, groups, reference, need, NULL);
	else if (above)
		REFER_AS(HOW(true, true), t, groups, reference, need, next);
	else if (reference)
		REFER_AS(HOW(false, true), t, groups, reference, need, next);
	else /* they are there already */
		REFER_AS(HOW(false, false), t, groups, reference, need, next);
#undef HOW
#else
	vec ref = NAME(all)(reference);
	size_t size = groups * LADE_BITCOMP_GROUP;
	for (size_t i = 0; i < size; i += VEC) {
		vec v = NAME(load)(t + i);
		NAME(store)(t + i, above ? ref - v : v - ref);
		if (next)
			PREFETCH_NEXT(next, i, 1);
	}
	for (size_t i = 0; i < size; i += UNIT_BYTES)
		*need++ = (uint8_t)NAME(need)(t + i);
#endif
}

/* About what a sample costs, in half bytes: with widths that are what units need, or with one, if
 * that is less. */
INLINE size_t NAME(cost)(const uint8_t *need, size_t units)
{
	unsigned width = most_of(need, units);
	size_t each = EACH / 4, sum = 0;
	for (size_t u = 0; u < units; u++)
		sum += need[u];
	size_t own = sum * each + units, one = width * units * each;
	return own < one ? own : one;
}

/* The sample: the groups a quarter and three quarters of the way. */
INLINE size_t NAME(sample_at)(size_t groups, unsigned i)
{
	return (2 * i + 1) * groups / 4 * (LADE_BITCOMP_GROUP / SIZE);
}

/* The base that makes the first difference equal to the second. */
INLINE ELEM NAME(base)(const uint8_t *src)
{
	ELEM first, second;
	memcpy(&first, src, SIZE);
	memcpy(&second, src + SIZE, SIZE);
	return (ELEM)(2 * first - second);
}

/* The mode that does best for the sample, and its cost; rank: those of bytes, if it is the
 * dictionary. */
INLINE unsigned NAME(choose)(const lade_bitcomp_how *how, const uint8_t *src, size_t groups,
                             uint8_t *rank, size_t *expected)
{
	enum { IN_GROUP = LADE_BITCOMP_GROUP / SIZE };
	static const uint8_t tries[] = {
#define LADE_X(number, mode) mode,
		LADE_BITCOMP_TRIES(LADE_X)
#undef LADE_X
	};
	enum { MOST = sizeof tries + 1, DICT = MOST - 1 };
	/* Step by step for all modes, so that these do not wait for one another. */
	_Alignas(64) uint8_t t[MOST][2 * LADE_BITCOMP_GROUP];
	uint8_t need[MOST][SAMPLE_UNITS + VEC];
	vec least[MOST];
	size_t best = SIZE_MAX;
	unsigned chosen = 0, count = how->sparse ? 2 : SIZE == 1 ? 4 : sizeof tries;
	NAME(values) values = {.src = src, .count = IN_GROUP, .base = NAME(base)(src)};
	for (unsigned i = 0; i < count; i++) {
		ELEM flip = NAME(flip)(tries[i], how->is_signed);
		least[i] = NAME(all)((ELEM) ~(ELEM)0);
		for (unsigned k = 0; k < 2; k++) {
			values.first = NAME(sample_at)(groups, k);
			values.to = t[i] + k * LADE_BITCOMP_GROUP;
			least[i] = NAME(turn)(values, tries[i], flip, least[i]);
		}
	}
	for (unsigned i = 0; i < count; i++) {
		ELEM ref = NAME(least_in)(least[i]) ^ NAME(flip)(tries[i], how->is_signed);
		NAME(refer)(t[i], 2, tries[i] & LADE_BITCOMP_ABOVE, ref, need[i], NULL);
	}
	for (unsigned i = 0; i < count; i++) {
		memset(need[i] + SAMPLE_UNITS, 0, VEC);
		size_t cost = NAME(cost)(need[i], SAMPLE_UNITS);
		if (cost < best) {
			best = cost;
			chosen = tries[i];
		}
	}
	if (SIZE == 1 && !how->sparse) {
		uint16_t counts[256];
		for (unsigned k = 0; k < 2; k++)
			memcpy(t[DICT] + k * LADE_BITCOMP_GROUP, src + NAME(sample_at)(groups, k),
			       LADE_BITCOMP_GROUP);
		if (count_bytes(t[DICT], sizeof t[DICT], counts) <= LADE_BITCOMP_DICT_MOST) {
			RANKS(counts, rank);
			look_up_all(rank, 256, t[DICT], sizeof t[DICT], t[DICT]);
			memset(need[DICT] + SAMPLE_UNITS, 0, VEC);
			NAME(refer)(t[DICT], 2, false, 0, need[DICT], NULL);
			size_t cost = NAME(cost)(need[DICT], SAMPLE_UNITS);
			if (cost < best) {
				best = cost;
				chosen = LADE_BITCOMP_DICT;
			}
		}
	}
	*expected = best;
	return chosen;
}

/* Values to ranks; gives the words that the dictionary has. */
INLINE unsigned NAME(ranks)(const uint8_t *src, size_t count, const uint8_t *rank,
                            const uint8_t *next, uint8_t *to)
{
	unsigned words = most_of(src, count) + 1;
	for (size_t i = 0; i < count; i += LADE_BITCOMP_GROUP) {
		look_up_all(rank, words, src + i, LADE_BITCOMP_GROUP, to + i);
		for (size_t k = 0; k < LADE_BITCOMP_GROUP; k += 128)
			PREFETCH_NEXT(next, i + k, 0);
	}
	return most_of(to, count) + 1;
}

/* A sub-block as it would be written. */
typedef struct NAME(plan) {
	unsigned mode, words, width, step;
	ELEM base, ref;
	size_t values;
	size_t fixed, size; /* bytes before the payload, and in all */
	uint8_t need[BLOCK / UNIT_BYTES + VEC];
	_Alignas(64) uint8_t x[BLOCK];
} NAME(plan);

/* How many of a plan's values are not 0; those behind the last one repeat it. */
INLINE size_t NAME(some)(const NAME(plan) * p, size_t count)
{
	vec none = NAME(all)(0);
	size_t some, last = p->values - 1;
	ELEM behind;
	for (size_t i = 0; i < count; i += IN_VEC)
		none -= (vec)(NAME(load)(p->x + i * SIZE) == 0);
	some = count;
	for (unsigned i = 0; i < IN_VEC; i++)
		some -= none[i];
	memcpy(&behind, p->x + last * SIZE, SIZE);
	return behind ? some - (count - p->values) : some;
}

static TARGET void NAME(make)(const lade_bitcomp_how *how, const subblock *in, unsigned mode,
                              const uint8_t *rank, NAME(plan) * p)
{
	const uint8_t *src = in->src, *next = in->next;
	size_t len = in->len;
	size_t groups = (len + LADE_BITCOMP_GROUP - 1) / LADE_BITCOMP_GROUP;
	size_t count = groups * (LADE_BITCOMP_GROUP / SIZE);
	unsigned units = (unsigned)((len + UNIT_BYTES - 1) / UNIT_BYTES);
	p->words = 0;
	p->base = mode & LADE_BITCOMP_DELTA ? NAME(base)(src) : 0;
	p->ref = 0;
	if (mode & LADE_BITCOMP_DICT) {
		p->words = NAME(ranks)(src, count, rank, next, p->x);
	} else {
		ELEM flip = NAME(flip)(mode, how->is_signed);
		NAME(values) values = {src, 0, count, p->base, p->x, next};
		vec least = NAME(turn)(values, mode, flip, NAME(all)((ELEM) ~(ELEM)0));
		p->ref = NAME(least_in)(least) ^ flip;
	}
	NAME(refer)(p->x, groups, mode & LADE_BITCOMP_ABOVE, p->ref, p->need, next);
	/* Of the units: what follows the last one repeats a value, and needs nothing more. */
	memset(p->need + units, 0, VEC);
	unsigned width = most_of(p->need, units), step = 0;
	size_t own = widths_sum(p->need, units, width, &step) * (EACH / 8);
	size_t fixed = parts_size(LOG, mode, p->words, units);
	size_t fixed_own = parts_size(LOG, mode | LADE_BITCOMP_WIDTHS, p->words, units);
	size_t one_size = fixed + lade__bitcomp_up(width * units * (EACH / 8));
	size_t own_size = fixed_own + lade__bitcomp_up(own);
	bool widths = own_size < one_size;
	p->mode = widths ? mode | LADE_BITCOMP_WIDTHS : mode;
	p->width = width;
	p->step = widths ? step : 0;
	p->fixed = widths ? fixed_own : fixed;
	p->size = widths ? own_size : one_size;
	p->values = (len + SIZE - 1) / SIZE;
	if (LOG && !((mode | LADE_BITCOMP_MASK) & ~LADE_BITCOMP_MASKED) && p->ref == 0) {
		fixed = LADE_BITCOMP_HEADER + lade__bitcomp_up((p->values + 7) / 8);
		size_t size = fixed + lade__bitcomp_up((NAME(some)(p, count) * width + 7) / 8);
		if (size + LADE_BITCOMP_MASK_LEAST < p->size) {
			p->mode = mode | LADE_BITCOMP_MASK;
			p->step = 0;
			p->fixed = fixed;
			p->size = size;
		}
	}
}

/* The mask of a plan's values, to 'mask', and the bits of those that are not 0; gives their end. */
static TARGET uint8_t *NAME(write_masked)(const NAME(plan) * p, uint8_t *mask, uint8_t *to)
{
	_Alignas(64) uint8_t x[BLOCK + 2 * VEC];
	size_t some = 0;
#ifdef MASK_OUT
	some = MASK_OUT(LOG, p->x, p->values, mask, x);
#else
	for (size_t i = 0; i < p->values; i += 64) {
		const uint8_t *from = p->x + i * SIZE;
		size_t count = p->values - i < 64 ? p->values - i : 64;
		uint64_t m = 0;
		for (size_t k = 0; k < count; k++) {
			ELEM v;
			memcpy(&v, from + k * SIZE, SIZE);
			m |= (uint64_t)(v != 0) << k;
		}
		memcpy(mask + i / 8, &m, (count + 7) / 8);
		for (; m; m &= m - 1, some++)
			memcpy(x + some * SIZE, from + (unsigned)__builtin_ctzll(m) * SIZE, SIZE);
	}
#endif
	memset(x + some * SIZE, 0, 64);
	return NAME(pack_same)(x, (some + EACH - 1) / EACH, p->width, to);
}

INLINE void NAME(write)(const NAME(plan) * p, size_t units, const uint8_t *rank, uint8_t *dst)
{
	memset(dst, 0, p->fixed);
	dst[0] = (uint8_t)p->mode;
	dst[1] = (uint8_t)p->width;
	dst[2] = (uint8_t)(p->words ? p->words - 1 : 0);
	dst[3] = (uint8_t)p->step;
	memcpy(dst + 8, &p->ref, SIZE);
	uint8_t *at = dst + LADE_BITCOMP_HEADER;
	if (LOG == 3 && (p->mode & LADE_BITCOMP_DELTA)) {
		memcpy(at, &p->base, SIZE);
		at += 16;
	} else if (LOG < 3) {
		memcpy(dst + 4, &p->base, SIZE);
	}
	if (p->words) {
		uint8_t word[256];
		for (unsigned i = 0; i < 256; i++)
			word[rank[i]] = (uint8_t)i;
		memcpy(at, word, p->words);
		at += lade__bitcomp_up(p->words);
	}
	if (p->mode & LADE_BITCOMP_MASK) {
		at = NAME(write_masked)(p, at, dst + p->fixed);
	} else if (p->mode & LADE_BITCOMP_WIDTHS) {
		uint8_t codes[BLOCK / UNIT_BYTES / 2 + VEC], widths[BLOCK / UNIT_BYTES + VEC];
		widths_put(p->need, units, p->width, p->step, widths, codes);
		memcpy(at, codes, (units + 1) / 2);
		if (units & 1)
			at[units / 2] &= 15;
		at = NAME(pack_all)(p->x, units, widths, dst + p->fixed);
	} else {
		at = NAME(pack_same)(p->x, units, p->width, at);
	}
	if (at < dst + p->size)
		memset(at, 0, (size_t)(dst + p->size - at));
}

static TARGET size_t NAME(encode)(const lade_bitcomp_how *how, const uint8_t *src, size_t len,
                                  const uint8_t *next, uint8_t *dst)
{
	NAME(plan) first, second, *p = &first;
	uint8_t rank[256] = {0};
	size_t units = (len + UNIT_BYTES - 1) / UNIT_BYTES, expected;
	unsigned mode = NAME(choose)(how, src, (len + LADE_BITCOMP_GROUP - 1) / LADE_BITCOMP_GROUP,
	                             rank, &expected);
	if (expected >= LADE_BITCOMP_SAMPLE)
		return 0;
	subblock in = {src, len, next};
	NAME(make)(how, &in, mode, rank, &first);
	/* A few values far out, not in the sample: zigzag differences bear these best. */
	if (first.size > LADE_BITCOMP_SECOND(expected, units, SAMPLE_UNITS) && !how->sparse &&
	    mode != LADE_BITCOMP_SECOND_MODE) {
		NAME(make)(how, &in, LADE_BITCOMP_SECOND_MODE, rank, &second);
		p = second.size < first.size ? &second : &first;
	}
	if (p->size >= lade__bitcomp_up(len))
		return 0;
	NAME(write)(p, units, rank, dst);
	return p->size;
}

/* ---- decoding -------------------------------------------------------------------------------- */

/* A vector's sums up to each value, in 16 bytes each; 'sum' is all before these, in each value. */
typedef ELEM NAME(quad) __attribute__((vector_size(16)));

INLINE NAME(quad) NAME(sums)(NAME(quad) v)
{
	NAME(quad) zero = {0};
#if LOG == 0
	v += __builtin_shufflevector(zero, v, 0, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
	                             29, 30);
	v += __builtin_shufflevector(zero, v, 0, 0, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27,
	                             28, 29);
	v += __builtin_shufflevector(zero, v, 0, 0, 0, 0, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
	                             26, 27);
	v += __builtin_shufflevector(zero, v, 0, 0, 0, 0, 0, 0, 0, 0, 16, 17, 18, 19, 20, 21, 22,
	                             23);
#elif LOG == 1
	v += __builtin_shufflevector(zero, v, 0, 8, 9, 10, 11, 12, 13, 14);
	v += __builtin_shufflevector(zero, v, 0, 0, 8, 9, 10, 11, 12, 13);
	v += __builtin_shufflevector(zero, v, 0, 0, 0, 0, 8, 9, 10, 11);
#elif LOG == 2
	v += __builtin_shufflevector(zero, v, 0, 4, 5, 6);
	v += __builtin_shufflevector(zero, v, 0, 0, 4, 5);
#else
	v += __builtin_shufflevector(zero, v, 0, 2);
#endif
	return v;
}

INLINE NAME(quad) NAME(last)(NAME(quad) v)
{
#if LOG == 0
	return __builtin_shufflevector(v, v, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15,
	                               15, 15);
#elif LOG == 1
	return __builtin_shufflevector(v, v, 7, 7, 7, 7, 7, 7, 7, 7);
#elif LOG == 2
	return __builtin_shufflevector(v, v, 3, 3, 3, 3);
#else
	return __builtin_shufflevector(v, v, 1, 1);
#endif
}

INLINE void NAME(sum_up)(uint8_t *data, size_t bytes, ELEM base)
{
	NAME(quad) sum = (NAME(quad)){0} + base, v;
	for (size_t i = 0; i < bytes; i += 16) {
		memcpy(&v, data + i, 16);
		v = NAME(sums)(v);
		NAME(quad) all = NAME(last)(v);
		v += sum;
		sum += all;
		memcpy(data + i, &v, 16);
	}
}

/* Steps 2 and 3 of section 3, of a vector. */
INLINE vec NAME(unfold)(vec x, vec ref, bool above, unsigned fold)
{
	vec u = above ? ref - x : ref + x;
	if (fold == LADE_BITCOMP_ZIGZAG)
		return u >> 1 ^ -(u & 1);
	if (fold == LADE_BITCOMP_ROTATED)
		return u >> 1 | u << (BITS - 1);
	return u;
}

INLINE void NAME(back)(uint8_t *data, size_t bytes, ELEM reference, bool above, unsigned fold)
{
	vec ref = NAME(all)(reference);
	for (size_t i = 0; i < bytes; i += VEC)
		NAME(store)(data + i, NAME(unfold)(NAME(load)(data + i), ref, above, fold));
}

/* With a mask: the values that are not 0, then their places. */
static TARGET void NAME(decode_masked)(const lade__bitcomp_parts *p, uint8_t *dst)
{
	_Alignas(64) uint8_t x[BLOCK + SLACK];
	const uint8_t *from = p->payload, *next = x;
	unsigned w = p->width;
	for (size_t u = 0; u < p->units; u++, from += w * (EACH / 8))
		NAME(unpack)(from, w, x + u * UNIT_BYTES);
	if (p->mode & LADE_BITCOMP_ZIGZAG << LADE_BITCOMP_FOLD)
		NAME(back)
	(x, p->units * UNIT_BYTES, (ELEM)p->reference, false, LADE_BITCOMP_ZIGZAG);
	else if (p->reference)
		NAME(back)(x, p->units * UNIT_BYTES, (ELEM)p->reference, false, LADE_BITCOMP_PLAIN);
	memset(dst, 0, p->values * SIZE);
	for (size_t i = 0; i < p->values; i += 64) {
		uint64_t m = load64(p->mask + i / 8);
		m &= low_bits(p->values - i < 64 ? (unsigned)(p->values - i) : 64);
		for (; m; m &= m - 1, next += SIZE)
			memcpy(dst + (i + (unsigned)__builtin_ctzll(m)) * SIZE, next, SIZE);
	}
}

static TARGET void NAME(decode)(const lade__bitcomp_parts *p, uint8_t *dst)
{
	if (LOG && p->mode & LADE_BITCOMP_MASK) {
		NAME(decode_masked)(p, dst);
		return;
	}
	const uint8_t *from = p->payload;
	size_t bytes = p->units * UNIT_BYTES;
	unsigned fold = p->mode >> LADE_BITCOMP_FOLD & 3;
	if (p->mode & LADE_BITCOMP_WIDTHS) {
		for (size_t u = 0; u < p->units; u++) {
			unsigned w = p->widths[u];
			NAME(unpack)(from, w, dst + u * UNIT_BYTES);
			from += w * (EACH / 8);
		}
	} else {
		unsigned w = p->width;
		for (size_t u = 0; u < p->units; u++, from += w * (EACH / 8))
			NAME(unpack)(from, w, dst + u * UNIT_BYTES);
	}
	if (p->mode & LADE_BITCOMP_DICT) {
		uint8_t word[256] = {0};
		memcpy(word, p->dict, p->words);
		look_up_all(word, p->width < 8 ? 1u << p->width : 256, dst, bytes, dst);
		return;
	}
	/* Whole vectors: what is written behind the units is slack. */
	ELEM ref = (ELEM)p->reference;
	bool above = p->mode & LADE_BITCOMP_ABOVE;
	if (fold == LADE_BITCOMP_ZIGZAG)
		NAME(back)(dst, bytes, ref, above, LADE_BITCOMP_ZIGZAG);
	else if (fold == LADE_BITCOMP_ROTATED)
		NAME(back)(dst, bytes, ref, above, LADE_BITCOMP_ROTATED);
	else if (ref || above)
		NAME(back)(dst, bytes, ref, above, LADE_BITCOMP_PLAIN);
	if (p->mode & LADE_BITCOMP_DELTA)
		NAME(sum_up)(dst, bytes, (ELEM)p->base);
}

#undef NAME
#undef NAME_
#undef NAME__
#undef SIZE
#undef BITS
#undef EACH
#undef UNIT_BYTES
#undef SAMPLE_UNITS
#undef IN_VEC
#undef vec
#undef wec
#undef ELEM
#undef WORD
#undef LOG
