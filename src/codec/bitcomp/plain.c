/*
 * plain.c: sub-blocks of bitcomp for any machine, and the ranks of bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define TARGET
#define VEC 16

#include "codec/bitcomp/block.h"

const lade__bitcomp_kernels lade__bitcomp_plain = BITCOMP_KERNELS(LADE_CPU_PLAIN);

/* Numbers by their highest two bits: 0, 1, 2, 3, 4 (of 4, 5), 5 (of 6, 7), 6 (of 8 to 11) ... */
static unsigned bucket_of(unsigned count)
{
	unsigned log = bits_of(count);
	return count < 2 ? count : 2 * log - 2 + (count >> (log - 2) & 1);
}

void lade__bitcomp_ranks(const uint16_t count[256], uint8_t rank[256])
{
	unsigned first[2 * 16 + 2] = {0}, before = 0;
	for (unsigned i = 0; i < 256; i++)
		first[bucket_of(count[i])]++;
	for (unsigned b = sizeof first / sizeof *first; b-- > 0;) {
		unsigned n = first[b];
		first[b] = before;
		before += n;
	}
	for (unsigned i = 0; i < 256; i++)
		rank[i] = (uint8_t)first[bucket_of(count[i])]++;
}
