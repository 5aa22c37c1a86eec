/*
 * fletcher.c: Fletcher-32 as HDF5 computes it.
 *
 * The input is 16-bit big-endian words w[0..n); an odd last byte is the high byte of a last word.
 * sum1 is the sum of the words, sum2 the sum of (n - i) w[i], both with end-around carries, which
 * is: modulo 65535, where a multiple of 65535 gives 65535 unless the sum itself is 0.
 *
 * The words are dealt out to LANES columns.  Of a block of 'rows' rows, column l keeps
 * s1[l] = sum of w, and s2[l] = sum of (rows - r) w[r]; the word in row r and column l has
 * LANES (rows - r) - l words of the block from itself on, so that the block's own sum2 is
 * sum over l of LANES s2[l] - l s1[l].
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "checksum/checksum.h"

#include <string.h>

#define LANES 32

/* s2[l] <= 65535 * rows (rows + 1) / 2 < 2^32 for up to 361 rows. */
#define ROWS_MAX 360

typedef uint16_t words __attribute__((vector_size(LANES * 2)));
typedef uint32_t sums __attribute__((vector_size(LANES * 4)));

/* The block's sums; rows <= ROWS_MAX.  *sum2 < LANES * LANES * 2^32. */
static inline __attribute__((always_inline)) void block_body(const uint8_t *p, size_t rows,
                                                             uint64_t *sum1, uint64_t *sum2)
{
	sums s1 = {0}, s2 = {0};
	for (size_t r = 0; r < rows; r++, p += sizeof(words)) {
		words w;
		memcpy(&w, p, sizeof w);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
		w = (w << 8) | (w >> 8);
#endif
		s1 += __builtin_convertvector(w, sums);
		s2 += s1;
	}
	uint64_t a = 0, b = 0;
	for (uint64_t l = 0; l < LANES; l++) {
		a += s1[l];
		b += LANES * (uint64_t)s2[l] - l * s1[l];
	}
	*sum1 = a;
	*sum2 = b;
}

static void block_plain(const uint8_t *p, size_t rows, uint64_t *sum1, uint64_t *sum2)
{
	block_body(p, rows, sum1, sum2);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void block_avx2(const uint8_t *p, size_t rows,
                                                       uint64_t *sum1, uint64_t *sum2)
{
	block_body(p, rows, sum1, sum2);
}

__attribute__((target("avx512f,avx512bw,avx512vl"))) static void
block_avx512(const uint8_t *p, size_t rows, uint64_t *sum1, uint64_t *sum2)
{
	block_body(p, rows, sum1, sum2);
}
#endif

/* A sum kept modulo 65535 in 1..65535, or 0 where nothing but zeros was added. */
static uint64_t reduced(uint64_t sum)
{
	return sum ? (sum - 1) % 65535 + 1 : 0;
}

uint32_t lade__fletcher32(lade_cpu cpu, const void *data, size_t size)
{
	void (*block)(const uint8_t *, size_t, uint64_t *, uint64_t *) = block_plain;
#if defined(__x86_64__)
	if (cpu >= LADE_CPU_AVX2)
		block = block_avx2;
	if (cpu >= LADE_CPU_AVX512)
		block = block_avx512;
#else
	(void)cpu;
#endif
	const uint8_t *p = data;
	uint64_t sum1 = 0, sum2 = 0;
	while (size >= sizeof(words)) {
		size_t rows = size / sizeof(words);
		if (rows > ROWS_MAX)
			rows = ROWS_MAX;
		uint64_t own1, own2;
		block(p, rows, &own1, &own2);
		/* The words before count once more for each word of this block. */
		sum2 = reduced(sum2 + sum1 * (rows * LANES) + own2);
		sum1 = reduced(sum1 + own1);
		p += rows * sizeof(words);
		size -= rows * sizeof(words);
	}
	for (; size > 0; p += 2) {
		sum1 += (uint64_t)p[0] << 8 | (size > 1 ? p[1] : 0);
		sum2 += sum1;
		size -= size > 1 ? 2 : 1;
	}
	return (uint32_t)(reduced(sum2) << 16 | reduced(sum1));
}
