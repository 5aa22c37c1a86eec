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
