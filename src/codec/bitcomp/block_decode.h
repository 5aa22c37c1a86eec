/*
 * block_decode.h: decodes sub-blocks of elements of one size; block_size.h includes it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

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

/* Sums up values that are 'lag' apart. */
INLINE void NAME(sum_apart)(uint8_t *data, size_t bytes, ELEM base, unsigned lag)
{
	ELEM sum[4] = {base, base, base, base}, v;
	size_t step = lag * SIZE;
	for (size_t i = 0; i < bytes; i += step)
		for (unsigned k = 0; k < lag && i + k * SIZE < bytes; k++) {
			memcpy(&v, data + i + k * SIZE, SIZE);
			sum[k] = (ELEM)(sum[k] + v);
			memcpy(data + i + k * SIZE, &sum[k], SIZE);
		}
}

/* With a mask: the values that are present to their places, and each absent one. */
static TARGET void NAME(decode_masked)(const lade__bitcomp_parts *p, uint8_t *dst)
{
	_Alignas(64) uint8_t x[BLOCK + SLACK], runs[BLOCK + SLACK];
	const uint8_t *from = p->payload, *next = x;
	bool repeat = p->mode & LADE_BITCOMP_REPEAT;
	uint8_t *to = repeat ? runs : dst;
	unsigned w = p->width;
	vec absent = NAME(all)((ELEM)p->base);
	for (size_t u = 0; u < p->units; u++, from += w * (EACH / 8))
		NAME(unpack)(from, w, x + u * UNIT_BYTES);
	if (p->reference)
		NAME(back)(x, p->units * UNIT_BYTES, (ELEM)p->reference, false, LADE_BITCOMP_PLAIN);
	for (size_t i = 0; !repeat && i < p->values; i += IN_VEC)
		NAME(store)(to + i * SIZE, absent);
	size_t at = 0; /* with repeat: where the run of 'absent' begins */
	for (size_t i = 0; i < p->values; i += 64) {
		uint64_t m = load64(p->present + i / 8);
		m &= low_bits(p->values - i < 64 ? (unsigned)(p->values - i) : 64);
		for (; m; m &= m - 1, next += SIZE) {
			size_t place = i + (unsigned)__builtin_ctzll(m);
			ELEM v;
			memcpy(&v, next, SIZE);
			/* Whole vectors: what is written behind the run is written again. */
			for (; repeat && at < place; at += IN_VEC)
				NAME(store)(to + at * SIZE, absent);
			at = place;
			if (repeat)
				absent = NAME(all)(v);
			else
				memcpy(to + place * SIZE, &v, SIZE);
		}
	}
	for (; repeat && at < p->values; at += IN_VEC)
		NAME(store)(to + at * SIZE, absent);
	if (repeat)
		memcpy(dst, runs, p->values * SIZE);
}

#if LOG >= 2
/* Integers to the decimals that they are, where they are below the greatest. */
INLINE void NAME(undecimal)(uint8_t *data, size_t bytes, unsigned ten)
{
	const wec most = (wec)NAME(all)((ELEM)LADE_BITCOMP_DECIMALS(LOG));
	/* A float whose lowest bit is 1, in the middle of those: to add to its bits adds to it. */
	const vec middle = NAME(all)(LOG == 3 ? (ELEM)0x4338000000000000 : (ELEM)0x4B400000);
	REAL by = 1;
	for (unsigned i = 0; i < ten; i++)
		by *= 10;
	for (size_t i = 0; i < bytes; i += VEC) {
		vec v = NAME(load)(data + i);
		vec is = (vec)((wec)v < most) & (vec)((wec)v > -most);
		vec d = (vec)(((rec)(v + middle) - (rec)middle) / by);
		NAME(store)(data + i, (d & is) | (v & ~is));
	}
}
#endif

static TARGET void NAME(decode_bits)(const lade__bitcomp_parts *p, uint8_t *dst)
{
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
	if (p->mode & LADE_BITCOMP_DELTA && p->lag == 1)
		NAME(sum_up)(dst, bytes, (ELEM)p->base);
	else if (p->mode & LADE_BITCOMP_DELTA)
		NAME(sum_apart)(dst, bytes, (ELEM)p->base, p->lag);
}

static TARGET void NAME(decode)(const lade__bitcomp_parts *p, uint8_t *dst)
{
	if (p->mode & LADE_BITCOMP_MASK)
		NAME(decode_masked)(p, dst);
	else
		NAME(decode_bits)(p, dst);
#if LOG >= 2
	if (p->ten) {
		/* An element that is cut off is none. */
		uint8_t last[SIZE], *cut = dst + p->whole * SIZE;
		bool is_cut = p->values > p->whole;
		if (is_cut)
			memcpy(last, cut, SIZE);
		NAME(undecimal)(dst, p->whole * SIZE, p->ten - 1);
		if (is_cut)
			memcpy(cut, last, SIZE);
	}
#endif
}
