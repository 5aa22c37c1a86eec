/*
 * deflate_streams.h: random valid Deflate streams with all that the format has: stored, fixed and
 * dynamic blocks, codes of any shape, lengths given by any repeats, matches of any length and
 * distance.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_DEFLATE_STREAMS_H
#define LADE_TESTS_DEFLATE_STREAMS_H

#include "lz_data.h"

#include <algorithm>

struct bit_writer {
	bytes out;
	unsigned used = 0; /* bits of the last byte */

	void put(uint32_t value, unsigned count)
	{
		for (unsigned i = 0; i < count; i++) {
			if (used == 0)
				out.push_back(0);
			out.back() |= (uint8_t)((value >> i & 1) << used);
			used = (used + 1) & 7;
		}
	}
	/* A codeword, first bit first. */
	void word(uint32_t value, unsigned count)
	{
		while (count--)
			put(value >> count, 1);
	}
};

/* A prefix code: codewords and their lengths by symbol; 0: it has none. */
struct prefix_code {
	std::vector<uint8_t> length;
	std::vector<uint32_t> value;

	explicit prefix_code(size_t symbols) : length(symbols), value(symbols)
	{
	}
	void number()
	{
		uint32_t next = 0;
		for (unsigned n = 1; n < 16; n++, next <<= 1)
			for (size_t i = 0; i < length.size(); i++)
				if (length[i] == n)
					value[i] = next++;
	}
	void put(bit_writer *w, size_t symbol) const
	{
		assert_true(length[symbol]);
		w->word(value[symbol], length[symbol]);
	}
};

/* A complete code of the symbols, of at most 'most' bits: skewed, or flat.  One symbol: 1 bit. */
static void code_of(rng *r, prefix_code *c, std::vector<size_t> symbols, unsigned most)
{
	std::vector<unsigned> leaf = {0};
	bool skewed = rng_below(r, 2);
	while (leaf.size() < symbols.size()) {
		size_t k = skewed && rng_below(r, 4) ? leaf.size() - 1 : rng_below(r, leaf.size());
		unsigned n = leaf[k];
		/* What is left must fit below the leaves that can be split. */
		if (n >= most - (skewed ? 0 : 1)) {
			k = (size_t)(std::min_element(leaf.begin(), leaf.end()) - leaf.begin());
			n = leaf[k];
		}
		leaf[k] = n + 1;
		leaf.push_back(n + 1);
	}
	if (symbols.size() == 1)
		leaf[0] = 1;
	for (size_t i = symbols.size(); i > 1; i--)
		std::swap(symbols[i - 1], symbols[rng_below(r, i)]);
	for (size_t i = 0; i < symbols.size(); i++)
		c->length[symbols[i]] = (uint8_t)leaf[i];
	c->number();
}

/* Stores the lengths of both codes, in any of the ways that there are. */
static void put_lengths(rng *r, bit_writer *w, const std::vector<uint8_t> &all)
{
	static const uint8_t order[] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
	                                11, 4,  12, 3, 13, 2, 14, 1, 15};
	struct step {
		uint8_t symbol, extra, bits;
	};
	std::vector<step> steps;
	for (size_t i = 0; i < all.size();) {
		size_t same = 1;
		while (i + same < all.size() && all[i + same] == all[i])
			same++;
		same = 1 + rng_below(r, same);
		if (all[i] == 0 && same >= 11 && rng_below(r, 4)) {
			same = std::min<size_t>(same, 138);
			steps.push_back({18, (uint8_t)(same - 11), 7});
		} else if (all[i] == 0 && same >= 3 && rng_below(r, 4)) {
			same = std::min<size_t>(same, 10);
			steps.push_back({17, (uint8_t)(same - 3), 3});
		} else if (i && all[i] == all[i - 1] && same >= 3 && rng_below(r, 4)) {
			same = std::min<size_t>(same, 6);
			steps.push_back({16, (uint8_t)(same - 3), 2});
		} else {
			same = 1;
			steps.push_back({all[i], 0, 0});
		}
		i += same;
	}
	prefix_code c(19);
	std::vector<size_t> used;
	for (size_t s = 0; s < 19; s++)
		for (const step &one : steps)
			if (one.symbol == s) {
				used.push_back(s);
				break;
			}
	while (used.size() < 2 || rng_below(r, 4) == 0) {
		size_t more = rng_below(r, 19);
		if (std::find(used.begin(), used.end(), more) == used.end())
			used.push_back(more);
	}
	code_of(r, &c, used, 7);
	size_t count = 19;
	while (count > 4 && c.length[order[count - 1]] == 0 && rng_below(r, 8))
		count--;
	w->put((uint32_t)count - 4, 4);
	for (size_t i = 0; i < count; i++)
		w->put(c.length[order[i]], 3);
	for (const step &one : steps) {
		c.put(w, one.symbol);
		w->put(one.extra, one.bits);
	}
}

/* Symbols of a random set, at most 'count' of those from 'from' to before 'end'. */
static void some_of(rng *r, std::vector<size_t> *to, size_t from, size_t end, size_t count)
{
	std::vector<size_t> all;
	for (size_t s = from; s < end; s++)
		all.push_back(s);
	for (; count && !all.empty(); count--) {
		size_t k = rng_below(r, all.size());
		to->push_back(all[k]);
		all.erase(all.begin() + (ptrdiff_t)k);
	}
}

static const uint16_t length_base[] = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                       15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                       67, 83, 99, 115, 131, 163, 195, 227, 258};

static unsigned length_extra(size_t k)
{
	return k < 8 || k == 28 ? 0 : (unsigned)(k / 4 - 1);
}

/* Puts symbols of a block until 'most' bytes, and its end. */
static void put_symbols(rng *r, bit_writer *w, const prefix_code &literal, const prefix_code &far,
                        bytes *raw, size_t begin, size_t most)
{
	std::vector<size_t> literals, lengths, distances;
	for (size_t s = 0; s < 286; s++)
		if (literal.length[s] && s != 256)
			(s < 256 ? literals : lengths).push_back(s);
	for (size_t s = 0; s < std::min<size_t>(far.length.size(), 30); s++)
		if (far.length[s])
			distances.push_back(s);
	size_t size = rng_below(r, 6) == 0 ? rng_below(r, 3) : rng_below(r, 6000);
	unsigned matches = (unsigned)rng_below(r, 5);
	for (size_t end = raw->size() + size; raw->size() < end && raw->size() < most;) {
		bool match = !lengths.empty() && !distances.empty() &&
		             (literals.empty() || rng_below(r, 4) < matches);
		if (!match && literals.empty())
			break;
		if (!match) {
			size_t s = literals[rng_below(r, literals.size())];
			literal.put(w, s);
			raw->push_back((uint8_t)s);
			continue;
		}
		size_t k = lengths[rng_below(r, lengths.size())] - 257;
		size_t d = distances[rng_below(r, distances.size())];
		unsigned more = length_extra(k), wide = d < 4 ? 0 : (unsigned)(d / 2 - 1);
		uint32_t plus = (uint32_t)rng_below(r, (uint64_t)1 << more);
		uint32_t away = (uint32_t)rng_below(r, (uint64_t)1 << wide);
		size_t length = length_base[k] + plus;
		size_t distance = 1 + (d < 4 ? d : ((2 + (d & 1)) << wide)) + away;
		if (distance > raw->size() - begin || raw->size() + length > most) {
			if (literals.empty())
				break;
			matches = 0;
			continue;
		}
		literal.put(w, k + 257);
		w->put(plus, more);
		far.put(w, d);
		w->put(away, wide);
		for (; length; length--)
			raw->push_back((*raw)[raw->size() - distance]);
	}
	literal.put(w, 256);
}

/* Appends a stream of up to 'blocks' blocks to 'w', and to 'raw' what it decodes to, up to 'most'
 * bytes in all. */
static void put_stream(rng *r, bit_writer *w, bytes *raw, size_t most, size_t blocks)
{
	size_t begin = raw->size();
	for (size_t b = 1 + rng_below(r, blocks); b; b--) {
		unsigned kind = (unsigned)rng_below(r, 4);
		kind = kind == 3 ? 2 : kind;
		w->put(b == 1, 1);
		w->put(kind, 2);
		if (kind == 0) {
			bytes some = make_data(r, rng_below(r, 3) ? rng_below(r, 900) : 0);
			if (some.size() > most - raw->size())
				some.resize(most - raw->size());
			w->used = 0;
			w->put((uint32_t)some.size(), 16);
			w->put(~(uint32_t)some.size() & 0xFFFF, 16);
			w->out.insert(w->out.end(), some.begin(), some.end());
			raw->insert(raw->end(), some.begin(), some.end());
			continue;
		}
		prefix_code literal(288), far(32);
		if (kind == 1) {
			for (size_t s = 0; s < 288; s++)
				literal.length[s] = s < 144 ? 8 : s < 256 ? 9 : s < 280 ? 7 : 8;
			for (size_t s = 0; s < 32; s++)
				far.length[s] = 5;
			literal.number();
			far.number();
		} else {
			std::vector<size_t> symbols = {256}, distances;
			some_of(r, &symbols, 0, 256,
			        rng_below(r, 3) ? 1 + rng_below(r, 256) : rng_below(r, 4));
			some_of(r, &symbols, 257, 286, rng_below(r, 3) ? 1 + rng_below(r, 29) : 0);
			some_of(r, &distances, 0, 30,
			        rng_below(r, 3) ? 1 + rng_below(r, 30) : rng_below(r, 2));
			code_of(r, &literal, symbols, 15);
			if (!distances.empty())
				code_of(r, &far, distances, 15);
			size_t n = 286, m = 30;
			while (n > 257 && literal.length[n - 1] == 0 && rng_below(r, 12))
				n--;
			while (m > 1 && far.length[m - 1] == 0 && rng_below(r, 12))
				m--;
			w->put((uint32_t)n - 257, 5);
			w->put((uint32_t)m - 1, 5);
			std::vector<uint8_t> all(literal.length.begin(),
			                         literal.length.begin() + (ptrdiff_t)n);
			all.insert(all.end(), far.length.begin(),
			           far.length.begin() + (ptrdiff_t)m);
			put_lengths(r, w, all);
		}
		put_symbols(r, w, literal, far, raw, begin, most);
	}
	w->used = 0;
}

#endif
