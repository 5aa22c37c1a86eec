/*
 * bits_reference.h: the bit shuffle written bit by bit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_BITS_REFERENCE_H
#define LADE_TESTS_BITS_REFERENCE_H

#include <stddef.h>
#include <stdint.h>
#include <vector>

typedef std::vector<uint8_t> bytes;

struct form {
	uint32_t size, msb, block;
};

/* One block; 'from' and 'to' are its bytes. */
inline void bits_block(const form &f, size_t size, const uint8_t *from, uint8_t *to)
{
	size_t bits = 8 * f.size, pitch = size / bits;
	for (size_t i = 0; i < size; i++)
		to[i] = i < pitch * bits ? 0 : from[i];
	for (size_t e = 0; e < 8 * pitch; e++)
		for (size_t b = 0; b < bits; b++) {
			unsigned bit = from[e * f.size + b / 8] >> (b % 8) & 1;
			size_t row = f.msb ? bits - 1 - b : b;
			to[row * pitch + e / 8] |= (uint8_t)(bit << (e % 8));
		}
}

inline bytes bits_reference(const form &f, const bytes &in)
{
	bytes out(in.size());
	size_t block = f.block ? f.block : in.size();
	for (size_t at = 0; at < in.size(); at += block)
		bits_block(f, in.size() - at < block ? in.size() - at : block, &in[at],
		                &out[at]);
	return out;
}

#endif
