/*
 * avx512.c: the loops of the ANS format for AVX-512: decoding takes 16 lanes to a register, with
 * gathers from the tables and the strings.  Encoding is faster with a lane to a register.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi,bmi2")))
#define LOW_BITS(v, n) _bzhi_u64((v), (n))
#define OWN_DECODE
#include "codec/ans/lanes.h"

#define WIDE 16

/* A lane_reader of 16 lanes; 'string' is where theirs begin, in bytes from lane 0's. */
typedef struct wide_reader {
	__m512i string, state, left, last;
} wide_reader;

INLINE wide_reader wide_open(const lane_reader *r, uint32_t lane)
{
	uint32_t string[WIDE], state[WIDE], left[WIDE];
	for (uint32_t j = 0; j < WIDE; j++) {
		string[j] = (lane + j) * (uint32_t)ANS_PITCH;
		state[j] = (uint32_t)r[lane + j].state;
		left[j] = (uint32_t)r[lane + j].left;
	}
	return (wide_reader){_mm512_loadu_si512(string), _mm512_loadu_si512(state),
	                     _mm512_loadu_si512(left), _mm512_setzero_si512()};
}

INLINE void wide_close(const wide_reader *v, lane_reader *r, uint32_t lane)
{
	int32_t state[WIDE], left[WIDE], last[WIDE];
	_mm512_storeu_si512(state, v->state);
	_mm512_storeu_si512(left, v->left);
	_mm512_storeu_si512(last, v->last);
	for (uint32_t j = 0; j < WIDE; j++) {
		r[lane + j].state = (uint32_t)state[j];
		r[lane + j].left = left[j];
		r[lane + j].last = (uint32_t)last[j];
	}
}

/* As reader_unit(), for 16 lanes.  32 bits of a string have 24 or more to come: two symbols'. */
INLINE __m512i wide_unit(wide_reader *v, const uint8_t *strings, const uint32_t *table)
{
	const __m512i low_5 = _mm512_set1_epi32(31), low_3 = _mm512_set1_epi32(7);
	__m512i out = _mm512_setzero_si512(), take = out;
#pragma GCC unroll 4
	for (unsigned k = 0; k < ANS_UNIT; k++) {
		__m512i window, entry, symbol;
		if (k % 2 == 0) {
			__m512i at = _mm512_add_epi32(v->string, _mm512_srai_epi32(v->left, 3));
			__m512i over = _mm512_andnot_si512(v->left, low_3);
			window = _mm512_i32gather_epi32(at, strings - 3, 1);
			window = _mm512_slli_epi32(_mm512_sllv_epi32(window, over), 1);
		}
		entry = _mm512_i32gather_epi32(v->state, table, 4);
		take = _mm512_and_si512(entry, low_5);
		/* A shift by 32 gives 0. */
		v->state = _mm512_add_epi32(
			_mm512_srli_epi32(entry, 16),
			_mm512_srlv_epi32(window, _mm512_sub_epi32(_mm512_set1_epi32(32), take)));
		window = _mm512_sllv_epi32(window, take);
		v->left = _mm512_sub_epi32(v->left, take);
		symbol = _mm512_and_si512(_mm512_srli_epi32(entry, 8), _mm512_set1_epi32(0xFF));
		out = _mm512_or_si512(out, _mm512_slli_epi32(symbol, 8 * k));
	}
	v->last = take;
	return out;
}

/* Stores a row: lane l has word (l + row) mod 32 of it. */
INLINE void wide_store(uint8_t *to, uint32_t row, __m512i low, __m512i high)
{
	uint32_t word[2 * ANS_LANES], turn = row % ANS_LANES;
	_mm512_storeu_si512(word + turn, low);
	_mm512_storeu_si512(word + turn + WIDE, high);
	memcpy(to + 4 * turn, word + turn, 4 * (ANS_LANES - turn));
	memcpy(to, word + ANS_LANES, 4 * turn);
}

static TARGET bool decode(const lade__ans_lanes *lanes)
{
	lane_reader reader[ANS_LANES];
	uint32_t rows = lanes->units / ANS_LANES, rest = lanes->units % ANS_LANES;
	for (uint32_t l = 0; l < ANS_LANES; l++) {
		bool open = reader_open(&reader[l], lanes->strings + l * ANS_PITCH,
		                        lanes->length[l], lanes->bits);
		bool has = rows || (l + rows) % ANS_LANES < rest;
		if (has ? !open : lanes->length[l] != 0)
			return false;
	}
	wide_reader low = wide_open(reader, 0), high = wide_open(reader, WIDE);
	for (uint32_t g = 0; g < rows; g++) {
		for (unsigned p = 0; p < lanes->coded; p++) {
			__m512i a = wide_unit(&low, lanes->strings, lanes->table[p]);
			__m512i b = wide_unit(&high, lanes->strings, lanes->table[p]);
			wide_store(lanes->plane[p] + 4 * ANS_LANES * (size_t)g, g, a, b);
		}
	}
	wide_close(&low, reader, 0);
	wide_close(&high, reader, WIDE);
	bool fine = true;
	for (uint32_t l = 0; l < ANS_LANES; l++)
		fine &= reader_close(&reader[l], lanes, l);
	return fine;
}

const lade__ans_kernels lade__ans_avx512 = {
	LADE_CPU_AVX512, decode, encode, gather, scatter, count,
};
#endif
