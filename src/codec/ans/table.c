/*
 * table.c: frequencies of the ANS format and the tables made of them (docs/format/ans.md,
 * sections 3 and 4).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/ans/ans.h"

#include <float.h>
#include <string.h>

static unsigned log2_floor(uint32_t v)
{
	return 31 - (unsigned)__builtin_clz(v);
}

/* ---- frequencies ------------------------------------------------------------------------ */

/*
 * Symbols below one part get 1; what is left of the parts is shared by the others in proportion,
 * which may put more of them below 1.  Gives the parts that are missing, below 0: too many.
 */
static int32_t share(const uint32_t count[256], uint64_t total, uint32_t parts, uint16_t freq[256])
{
	uint64_t left = total;
	uint32_t room = parts, least = 0; /* counts below 'least' get 1 */
	for (bool again = true; again;) {
		/* One part's share, rounded up.  It grows, as those that are left have more. */
		uint32_t below = least, now = (uint32_t)((left + room - 1) / room);
		again = false;
		least = now > least ? now : least;
		for (unsigned s = 0; s < 256; s++) {
			bool small = count[s] && count[s] >= below && count[s] < least;
			again |= small;
			left -= small ? count[s] : 0;
			room -= small;
		}
	}
	/* Less than 2^43 is divided, to numbers up to 2^11: in 53 bits the quotient's whole part is
	 * exact, as no fraction is nearer to 1 than 2^-31. */
	double half = (double)(left / 2), all = (double)left;
	int32_t missing = (int32_t)parts;
	for (unsigned s = 0; s < 256; s++) {
		int32_t share = (int32_t)(((double)(int32_t)count[s] * room + half) / all);
		share = count[s] < least ? count[s] > 0 : share;
		freq[s] = (uint16_t)share;
		missing -= share;
	}
	return missing;
}

/* What a symbol's bits gain by one part more, or lose by one less; those that cannot: -DBL_MAX. */
static double slope_of(uint32_t count, unsigned freq, bool more)
{
	if (!count || (!more && freq == 1))
		return -DBL_MAX;
	return more ? count / (freq + 0.5) : -(count / (freq - 0.5));
}

/* The first of the highest of 'n' numbers. */
static unsigned highest(const double *v, unsigned n)
{
	unsigned at = 0;
	for (unsigned i = 1; i < n; i++)
		at = v[i] > v[at] ? i : at;
	return at;
}

void lade__ans_normalise(const uint32_t count[256], unsigned bits, uint16_t freq[256])
{
	uint64_t total = 0;
	for (unsigned s = 0; s < 256; s++)
		total += count[s];
	int32_t missing = share(count, total, (uint32_t)1 << bits, freq);
	/* Rounding leaves a few parts: each goes where it saves most, or is taken where it costs
	 * least.  At most one for each symbol; the sum never passes 256 too many. */
	if (!missing)
		return;
	bool more = missing > 0;
	double slope[256], best[16]; /* the best one's of 16 symbols each */
	for (unsigned s = 0; s < 256; s++)
		slope[s] = slope_of(count[s], freq[s], more);
	for (unsigned k = 0; k < 16; k++)
		best[k] = slope[16 * k + highest(slope + 16 * k, 16)];
	for (; missing; missing += more ? -1 : 1) {
		unsigned k = highest(best, 16), s = 16 * k + highest(slope + 16 * k, 16);
		freq[s] = (uint16_t)(freq[s] + (more ? 1 : -1));
		slope[s] = slope_of(count[s], freq[s], more);
		best[k] = slope[16 * k + highest(slope + 16 * k, 16)];
	}
}

/* log2 in 1/65536, to 0.001: a cubic between the powers of two. */
static uint32_t log2_parts(uint32_t v)
{
	unsigned q = log2_floor(v);
	uint64_t m = (((uint64_t)v << 16) >> q) - 65536;
	return (q << 16) +
	       (uint32_t)(m + ((m * (65536 - m) >> 16) * (27584 - (m * 10191 >> 16)) >> 16));
}

uint64_t lade__ans_estimate(const uint32_t count[256], const uint16_t freq[256], unsigned bits)
{
	uint64_t sum = 0;
	for (unsigned s = 0; s < 256; s++) {
		if (count[s])
			sum += (uint64_t)count[s] * ((bits << 16) - log2_parts(freq[s]));
	}
	return sum >> 16;
}

uint64_t lade__ans_entropy(const uint32_t count[256], uint32_t total)
{
	uint64_t sum = 0;
	for (unsigned s = 0; s < 256; s++) {
		if (count[s])
			sum += (uint64_t)count[s] * (log2_parts(total) - log2_parts(count[s]));
	}
	return sum >> 16;
}

/* ---- descriptions ----------------------------------------------------------------------- */

unsigned lade__ans_describe(const uint16_t freq[256], uint8_t *out)
{
	memset(out, 0, ANS_TABLE_WORDS_MAX * 4);
	unsigned present = 0;
	uint16_t of[256]; /* those above 0 */
	for (unsigned s = 0; s < 256; s++) {
		out[s / 8] = (uint8_t)(out[s / 8] | (freq[s] > 0) << s % 8);
		of[present] = freq[s];
		present += freq[s] > 0;
	}
	for (unsigned i = 0; i < present; i++)
		out[32 + i / 2] = (uint8_t)(out[32 + i / 2] | log2_floor(of[i]) << i % 2 * 4);
	size_t at = 32 + (size_t)(present + 1) / 2;
	uint32_t bits = 0;
	unsigned held = 0; /* bits that are not written yet, below 8 */
	for (unsigned i = 0; i < present; i++) {
		unsigned q = log2_floor(of[i]);
		bits |= (of[i] - (1U << q)) << held;
		for (held += q; held >= 8; held -= 8, bits >>= 8)
			out[at++] = (uint8_t)bits;
	}
	if (held)
		out[at++] = (uint8_t)bits;
	return (unsigned)((at + 3) / 4);
}

bool lade__ans_read(const uint8_t *src, unsigned words, unsigned bits, uint16_t freq[256])
{
	size_t size = (size_t)words * 4;
	unsigned present = 0;
	if (size < 32)
		return false;
	for (unsigned i = 0; i < 32; i++)
		present += (unsigned)__builtin_popcount(src[i]);
	size_t at = (32 + (size_t)(present + 1) / 2) * 8;
	if (at > size * 8)
		return false;
	uint32_t sum = 0;
	unsigned nth = 0;
	for (unsigned s = 0; s < 256; s++) {
		freq[s] = 0;
		if (!(src[s / 8] >> s % 8 & 1))
			continue;
		unsigned q = src[32 + nth / 2] >> nth % 2 * 4 & 15;
		nth++;
		if (q > bits || q > size * 8 - at)
			return false;
		uint32_t f = (uint32_t)1 << q;
		for (unsigned b = 0; b < q; b++, at++)
			f |= (uint32_t)(src[at / 8] >> at % 8 & 1) << b;
		sum += f;
		freq[s] = (uint16_t)f;
	}
	return sum == (uint32_t)1 << bits && (at + 31) / 32 == words;
}

/* ---- tables ----------------------------------------------------------------------------- */

void lade__ans_decoder_of(const uint16_t freq[256], unsigned bits, uint32_t *table)
{
	for (unsigned s = 0; s < 256; s++) {
		for (uint32_t y = freq[s]; y < 2U * freq[s]; y++) {
			unsigned take = bits - log2_floor(y);
			*table++ = ANS_ENTRY((y << take) - (1U << bits), s, take);
		}
	}
}

void lade__ans_look_ups_of(const uint16_t freq[256], unsigned bits, lade__ans_look_ups *to)
{
	uint8_t rank[1 << ANS_BITS_MAX];
	unsigned first = 0, present = 0;
	for (unsigned s = 0; s < 256; s++) {
		if (!freq[s])
			continue;
		memset(rank + first, (int)present, freq[s]);
		to->symbol[present] = (uint8_t)s;
		to->add[present] = (uint16_t)(freq[s] - first - (1U << bits));
		first += freq[s];
		present++;
	}
	to->count = present;
	for (unsigned i = 0; i < (1U << bits) / 4; i++) {
		unsigned from = rank[4 * i];
		to->rank[i] = (uint8_t)from;
		to->next[i] =
			(uint8_t)((rank[4 * i + 1] - from) << 2 | (rank[4 * i + 2] - from) << 4 |
		                  (rank[4 * i + 3] - from) << 6);
	}
}

void lade__ans_encoder_of(const uint16_t freq[256], unsigned bits, lade__ans_encoder *encoder)
{
	unsigned first = 0;
	encoder->folded = true;
	for (unsigned s = 0; s < 128; s++)
		encoder->folded &= !freq[s] || !freq[128 + s];
	for (unsigned s = 0; s < 256; s++) {
		if (freq[s]) {
			unsigned at = encoder->folded ? s % 128 : s;
			unsigned most = bits - log2_floor(freq[s]);
			encoder->symbol[s].bits = (most << 16) - ((uint32_t)freq[s] << most);
			encoder->symbol[s].first = (1U << bits) + first - freq[s];
			encoder->start[s] = (uint16_t)((1U << bits) + first);
			uint32_t number = (most << 12) - ((uint32_t)freq[s] << most);
			encoder->number[s] = number << 16 | encoder->symbol[s].first;
			for (unsigned k = 0; k < 2; k++) {
				encoder->look_up[k][at] =
					(uint8_t)(encoder->symbol[s].first >> 8 * k);
				encoder->look_up[2 + k][at] = (uint8_t)(number >> 8 * k);
			}
		}
		first += freq[s];
	}
}
