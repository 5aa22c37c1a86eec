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

/* The same of zigzag differences of values 'lag' apart; those before the sub-block are the base. */
INLINE vec NAME(turn_apart)(NAME(values) values, unsigned lag, vec least)
{
	const size_t first = values.first, count = values.count, step = lag * SIZE;
	const uint8_t *src = values.src + first * SIZE;
	uint8_t before[2 * VEC], *to = values.to;
	for (size_t i = 0; i < count; i += IN_VEC) {
		vec v = NAME(load)(src + i * SIZE);
		if (first + i) {
			v -= NAME(load)(src + i * SIZE - step);
		} else {
			NAME(store)(before, NAME(all)(values.base));
			memcpy(before + step, src, VEC);
			v -= NAME(load)(before);
		}
		if (values.next)
			PREFETCH_NEXT(values.next, i * SIZE, 0);
		v = NAME(folded)(v, LADE_BITCOMP_ZIGZAG);
		least = NAME(least)(v, least);
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
	switch (mode >> 8) {
#define LADE_X(lag) \
	case (lag)-1: \
		return NAME(turn_apart)(values, lag, least);
		LADE_BITCOMP_LAGS(LADE_X)
#undef LADE_X
	default:
		break;
	}
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
	static const uint16_t tries[] = {
#define LADE_X(number, mode) mode,
		LADE_BITCOMP_TRIES(LADE_X)
#undef LADE_X
#define LADE_X(lag) LADE_BITCOMP_LAGGED(lag),
		LADE_BITCOMP_LAGS(LADE_X)
#undef LADE_X
	};
	enum { ALL = sizeof tries / sizeof *tries, LAGS = 3, FIRST = ALL - LAGS };
	enum { MOST = ALL + 1, DICT = MOST - 1 };
	/* Step by step for all modes, so that these do not wait for one another. */
	_Alignas(64) uint8_t t[MOST][2 * LADE_BITCOMP_GROUP];
	uint8_t need[MOST][SAMPLE_UNITS + VEC];
	vec least[MOST];
	size_t best = SIZE_MAX;
	unsigned chosen = 0, count = how->sparse ? 2 : SIZE == 8 ? FIRST : ALL;
	NAME(values) values = {.src = src, .count = IN_GROUP, .base = NAME(base)(src)};
	for (unsigned i = 0; i < count; i++) {
		ELEM flip = NAME(flip)(tries[i], how->is_signed);
		if (SIZE == 1 && tries[i] >> LADE_BITCOMP_FOLD & LADE_BITCOMP_ROTATED)
			continue; /* bytes are not rotated */
		least[i] = NAME(all)((ELEM) ~(ELEM)0);
		for (unsigned k = 0; k < 2; k++) {
			values.first = NAME(sample_at)(groups, k);
			values.to = t[i] + k * LADE_BITCOMP_GROUP;
			least[i] = NAME(turn)(values, tries[i], flip, least[i]);
		}
	}
	for (unsigned i = 0; i < count; i++) {
		if (SIZE == 1 && tries[i] >> LADE_BITCOMP_FOLD & LADE_BITCOMP_ROTATED)
			continue;
		ELEM ref = NAME(least_in)(least[i]) ^ NAME(flip)(tries[i], how->is_signed);
		NAME(refer)(t[i], 2, tries[i] & LADE_BITCOMP_ABOVE, ref, need[i], NULL);
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
}

/* ---- masks ----------------------------------------------------------------------------------- */

/* A sub-block as it would be written with a mask. */
typedef struct NAME(marks) {
	unsigned mode, width;
	ELEM absent, ref;
	size_t values, some, size;
	uint8_t bits[BLOCK / 8];
} NAME(marks);

/* Whether a mask is tried, and which: by how many of the sample's values are as the one before, or
 * 0, or one value that two of three are.  'expected' is what the sample costs without one. */
INLINE bool NAME(marks_try)(const uint8_t *src, size_t groups, size_t expected, NAME(marks) * m)
{
	enum { IN_GROUP = LADE_BITCOMP_GROUP / SIZE };
	size_t at[2] = {NAME(sample_at)(groups, 0), NAME(sample_at)(groups, 1)};
	ELEM three[3];
	vec same = NAME(all)(0), none = NAME(all)(0), again = NAME(all)(0);
	memcpy(&three[0], src + at[0] * SIZE, SIZE);
	memcpy(&three[1], src + at[1] * SIZE, SIZE);
	memcpy(&three[2], src + (at[1] + IN_GROUP - 1) * SIZE, SIZE);
	m->absent = three[1] == three[2]                             ? three[1]
	            : three[0] == three[1] || three[0] == three[2] ? three[0]
	                                                           : 0;
	vec absent = NAME(all)(m->absent);
	for (unsigned k = 0; k < 2; k++)
		for (size_t i = 0; i < IN_GROUP; i += IN_VEC) {
			const uint8_t *p = src + (at[k] + i) * SIZE;
			uint8_t before[VEC];
			vec v = NAME(load)(p), last;
			/* The group's first value has none before it. */
			ELEM other = (ELEM)~v[0];
			memcpy(before, &other, SIZE);
			memcpy(before + SIZE, p, VEC - SIZE);
			last = NAME(load)(i ? p - SIZE : before);
			same -= (vec)(v == absent);
			none -= (vec)(v == 0);
			again -= (vec)(v == last);
		}
	size_t as_one = 0, as_none = 0, as_before = 0;
	for (unsigned i = 0; i < IN_VEC; i++) {
		as_one += same[i];
		as_none += none[i];
		as_before += again[i];
	}
	if (as_one <= as_none) {
		as_one = as_none;
		m->absent = 0;
	}
	bool repeat = as_before > as_one;
	m->mode = LADE_BITCOMP_MASK | (repeat ? LADE_BITCOMP_REPEAT : 0);
	if (LOG == 3 && !repeat && m->absent)
		m->mode |= LADE_BITCOMP_FAR;
	size_t absent_ones = repeat ? as_before : as_one;
	if (LOG == 0 && LADE_BITCOMP_MASK_COST(absent_ones) >= expected)
		return false;
	return LADE_BITCOMP_MASK_TRY(LOG) * absent_ones >= 2 * IN_GROUP;
}

/* Finds which values are present, of 'count' in whole groups, and what the sub-block takes. */
static TARGET void NAME(marks_make)(const lade_bitcomp_how *how, const uint8_t *src, size_t count,
                                    NAME(marks) * m)
{
	typedef ELEM eight __attribute__((vector_size(8 * SIZE)));
	typedef int8_t bytes_8 __attribute__((vector_size(8)));
	bool repeat = m->mode & LADE_BITCOMP_REPEAT;
	size_t bytes = (m->values + 7) / 8, present = 0;
	ELEM other, first;
	uint8_t before[8 * SIZE];
	eight absent = (eight){0} + m->absent, all = ~(eight){0};
	const ELEM top = how->is_signed ? (ELEM)((ELEM)1 << (BITS - 1)) : 0;
	eight flip = (eight){0} + top;
	eight low = all, high = all; /* of what is not absent; all bits of it flipped */
	memcpy(&first, src, SIZE);
	other = (ELEM)~first;
	memcpy(before, &other, SIZE);
	memcpy(before + SIZE, src, 7 * SIZE);
	m->some = 0;
	for (size_t i = 0; i < count; i += 8) {
		eight v, is = absent;
		bytes_8 eq;
		uint64_t word;
		memcpy(&v, src + i * SIZE, 8 * SIZE);
		if (repeat)
			memcpy(&is, i ? src + i * SIZE - SIZE : before, 8 * SIZE);
		is = (eight)(v == is);
		eq = __builtin_convertvector(is, bytes_8);
		v ^= flip;
		eight a = v | is, b = ~v | is, la = (eight)(a < low), hb = (eight)(b < high);
		low = (a & la) | (low & ~la);
		high = (b & hb) | (high & ~hb);
		if (i / 8 >= bytes)
			continue; /* as the last one, or absent */
		memcpy(&word, &eq, 8);
		word = (~word & UINT64_C(0x0101010101010101)) * UINT64_C(0x0102040810204080) >> 56;
		word &= m->values - i < 8 ? 0xFFu >> (8 - (m->values - i)) : 0xFFu;
		m->bits[i / 8] = (uint8_t)word;
		present += word != 0;
		m->some += (unsigned)__builtin_popcountll(word);
	}
	ELEM least = low[0], most = high[0];
	for (unsigned i = 1; i < 8; i++) {
		least = low[i] < least ? low[i] : least;
		most = high[i] < most ? high[i] : most;
	}
	least ^= flip[0];
	most = (ELEM)~most ^ flip[0];
	m->ref = m->some ? least : 0;
	m->width = m->some ? bits_of((ELEM)(most - least)) : 0;
	size_t whole = lade__bitcomp_up(bytes), less = lade__bitcomp_up((bytes + 7) / 8 + present);
	m->mode |= less < whole ? LADE_BITCOMP_SHORT : 0;
	m->size = LADE_BITCOMP_HEADER + (m->mode & LADE_BITCOMP_FAR ? 16u : 0u) +
	          (less < whole ? less : whole) + lade__bitcomp_up((m->some * m->width + 7) / 8);
}

static TARGET void NAME(marks_write)(const NAME(marks) * m, const uint8_t *src, unsigned more,
                                     uint8_t *dst)
{
	_Alignas(64) uint8_t x[BLOCK + 2 * VEC];
	size_t bytes = (m->values + 7) / 8, some = 0, at = (bytes + 7) / 8;
	uint8_t *to = dst + LADE_BITCOMP_HEADER;
	for (size_t i = 0; i < bytes; i++)
		for (unsigned b = m->bits[i]; b; b &= b - 1, some++) {
			ELEM v;
			memcpy(&v, src + (8 * i + (unsigned)__builtin_ctz(b)) * SIZE, SIZE);
			v = (ELEM)(v - m->ref);
			memcpy(x + some * SIZE, &v, SIZE);
		}
	memset(x + some * SIZE, 0, 64);
	memset(dst, 0, m->size);
	dst[0] = (uint8_t)m->mode;
	dst[1] = (uint8_t)m->width;
	dst[2] = (uint8_t)more;
	memcpy(dst + 8, &m->ref, SIZE);
	if (m->mode & LADE_BITCOMP_FAR) {
		memcpy(to, &m->absent, SIZE);
		to += 16;
	} else if (LOG < 3 && !(m->mode & LADE_BITCOMP_REPEAT)) {
		memcpy(dst + 4, &m->absent, SIZE);
	}
	if (m->mode & LADE_BITCOMP_SHORT) {
		for (size_t i = 0; i < bytes; i++) {
			to[i / 8] |= (uint8_t)((m->bits[i] != 0) << i % 8);
			to[at] = m->bits[i];
			at += m->bits[i] != 0;
		}
		/* The byte that was written behind the last one may be 0 or the payload's. */
		to += lade__bitcomp_up(at);
	} else {
		memcpy(to, m->bits, bytes);
		to += lade__bitcomp_up(bytes);
	}
	uint8_t *end = NAME(pack_same)(x, (some + EACH - 1) / EACH, m->width, to);
	if (end < dst + m->size)
		memset(end, 0, (size_t)(dst + m->size - end));
}

/* ---- decimals -------------------------------------------------------------------------------- */

#if LOG >= 2
/* The power of ten. */
INLINE REAL NAME(ten)(unsigned power)
{
	REAL ten = 1;
	for (unsigned i = 0; i < power; i++)
		ten *= 10;
	return ten;
}

/* Whether a float is an integer over 'ten', and that; or itself. */
INLINE bool NAME(decimal_of)(ELEM v, REAL ten, ELEM *integer)
{
	const REAL most = (REAL)LADE_BITCOMP_DECIMALS(LOG);
	REAL d, back;
	ELEM again;
	memcpy(&d, &v, SIZE);
	d *= ten;
	*integer = v;
	if (!(d > -most && d < most))
		return false;
	long long i = llrint((double)d);
	back = (REAL)i / ten;
	memcpy(&again, &back, SIZE);
	if (again != v || i <= -LADE_BITCOMP_DECIMALS(LOG) || i >= LADE_BITCOMP_DECIMALS(LOG))
		return false;
	*integer = (ELEM)i;
	return true;
}

/* The power of ten, and 1, with which most of the sample's values are decimals; 0: there is none.
 * Of both groups' values, one in each 16 bytes, the first that is not 0 must be. */
static TARGET unsigned NAME(decimal_try)(const uint8_t *src, size_t groups)
{
	enum { IN_GROUP = LADE_BITCOMP_GROUP / SIZE };
	size_t at[2] = {NAME(sample_at)(groups, 0), NAME(sample_at)(groups, 1)};
	unsigned power = 0;
	ELEM v[2], integer;
	for (unsigned k = 0; k < 2; k++) {
		size_t i = 0;
		for (v[k] = 0; i < IN_GROUP && !v[k]; i += 16 / SIZE)
			memcpy(&v[k], src + (at[k] + i) * SIZE, SIZE);
		if (!v[k])
			return 0;
	}
	while (!NAME(decimal_of)(v[0], NAME(ten)(power), &integer) ||
	       !NAME(decimal_of)(v[1], NAME(ten)(power), &integer))
		if (++power > LADE_BITCOMP_TEN_TRIED(LOG))
			return 0;
	for (; power <= LADE_BITCOMP_TEN_TRIED(LOG); power++) {
		REAL ten = NAME(ten)(power);
		size_t none = 0, some = 0;
		for (size_t i = 0; i < 2 * IN_GROUP; i++) {
			ELEM one;
			memcpy(&one, src + (at[i / IN_GROUP] + i % IN_GROUP) * SIZE, SIZE);
			bool is = NAME(decimal_of)(one, ten, &integer);
			none += !is;
			some += is && integer;
		}
		if (some && LADE_BITCOMP_DECIMAL_MOST * none <= some)
			return power + 1;
	}
	return 0;
}

/* All values as decimals, in whole groups; false: one is taken for a decimal that it is not. */
static TARGET bool NAME(decimals)(const uint8_t *src, size_t len, size_t count, unsigned power,
                                  uint8_t *to)
{
	REAL ten = NAME(ten)(power);
	ELEM v, integer;
	bool good = true;
	size_t whole = len / SIZE;
	for (size_t i = 0; i < whole; i++) {
		memcpy(&v, src + i * SIZE, SIZE);
		bool is = NAME(decimal_of)(v, ten, &integer);
		WORD as = (WORD)v;
		good &= is || as <= -(WORD)LADE_BITCOMP_DECIMALS(LOG) ||
		        as >= (WORD)LADE_BITCOMP_DECIMALS(LOG);
		memcpy(to + i * SIZE, &integer, SIZE);
	}
	if (len % SIZE)
		memcpy(&integer, src + whole * SIZE, SIZE);
	for (size_t i = whole; i < count; i++)
		memcpy(to + i * SIZE, &integer, SIZE);
	return good;
}
#endif

/* ---- a sub-block ----------------------------------------------------------------------------- */

INLINE void NAME(write)(const NAME(plan) * p, size_t units, const uint8_t *rank, unsigned more,
                        uint8_t *dst)
{
	memset(dst, 0, p->fixed);
	dst[0] = (uint8_t)p->mode;
	dst[1] = (uint8_t)p->width;
	dst[2] = (uint8_t)(p->words ? p->words - 1 : p->mode >> 8 | more);
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
	if (p->mode & LADE_BITCOMP_WIDTHS) {
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

/* The same of what is decimals, if 'more' says so. */
static TARGET size_t NAME(encode_as)(const lade_bitcomp_how *how, const subblock *in, unsigned more,
                                     uint8_t *dst)
{
	NAME(plan) first, second, *p = &first;
	NAME(marks) marks;
	uint8_t rank[256] = {0};
	size_t len = in->len, units = (len + UNIT_BYTES - 1) / UNIT_BYTES, expected;
	size_t groups = (len + LADE_BITCOMP_GROUP - 1) / LADE_BITCOMP_GROUP;
	size_t raw = lade__bitcomp_up(len), size = raw;
	unsigned mode = NAME(choose)(how, in->src, groups, rank, &expected);
	bool masked = NAME(marks_try)(in->src, groups, expected, &marks);
	if (masked) {
		marks.values = (len + SIZE - 1) / SIZE;
		NAME(marks_make)(how, in->src, groups * (LADE_BITCOMP_GROUP / SIZE), &marks);
	}
	if (expected < LADE_BITCOMP_SAMPLE) {
		NAME(make)(how, in, mode, rank, &first);
		/* A few values far out, not in the sample: zigzag differences bear these best. */
		if (first.size > LADE_BITCOMP_SECOND(expected, units, SAMPLE_UNITS) &&
		    !how->sparse && mode != LADE_BITCOMP_SECOND_MODE) {
			NAME(make)(how, in, LADE_BITCOMP_SECOND_MODE, rank, &second);
			p = second.size < first.size ? &second : &first;
		}
		size = p->size < raw ? p->size : raw;
	}
	if (masked && marks.size + LADE_BITCOMP_MASK_LEAST < size) {
		NAME(marks_write)(&marks, in->src, more, dst);
		return marks.size;
	}
	if (size < raw)
		NAME(write)(p, units, rank, more, dst);
	return size < raw ? size : 0;
}

static TARGET size_t NAME(encode)(const lade_bitcomp_how *how, const uint8_t *src, size_t len,
                                  const uint8_t *next, uint8_t *dst)
{
	subblock in = {src, len, next};
#if LOG >= 2
	_Alignas(64) uint8_t integers[BLOCK];
	size_t groups = (len + LADE_BITCOMP_GROUP - 1) / LADE_BITCOMP_GROUP;
	unsigned ten = how->real && !how->sparse ? NAME(decimal_try)(src, groups) : 0;
	if (ten && NAME(decimals)(src, len, groups * (LADE_BITCOMP_GROUP / SIZE), ten - 1,
	                          integers)) {
		lade_bitcomp_how as = *how;
		as.is_signed = 1;
		in.src = integers;
		return NAME(encode_as)(&as, &in,
		                       LADE_BITCOMP_DECIMAL | (ten - 1) << LADE_BITCOMP_TEN, dst);
	}
#endif
	return NAME(encode_as)(how, &in, 0, dst);
}
