/*
 * block_encode.h: encodes sub-blocks of elements of one size; block_size.h includes it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

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
