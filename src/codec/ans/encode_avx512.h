/*
 * encode_avx512.h: encoding with all 32 lanes in a register, and look-ups by VPERMI2B.  Included by
 * avx512.c after lanes.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

/* Writers of 32 lanes.  'state' has 16 bits a lane, lane 0 first; the others have 64: part j has
 * lanes 8 q + 2 j and the next one in its quarter q. */
#define PARTS 4
typedef struct wide_writer {
	__m512i state, string[PARTS], bits[PARTS], count[PARTS];
} wide_writer;

/* Where part j has lane 'lane'. */
#define PART_OF(lane) ((lane) % 8 / 2)
#define PLACE_OF(lane) ((lane) / 8 * 2 + (lane) % 2)

/* What a table of bytes has for the bytes of two vectors, whose highest bits are 'high'. */
INLINE void look_up(const uint8_t table[256], const __m512i at[2], const __mmask64 high[2],
                    __m512i out[2])
{
	__m512i t[4];
#pragma GCC unroll 4
	for (unsigned k = 0; k < 4; k++)
		t[k] = _mm512_load_si512(table + 64 * k);
#pragma GCC unroll 2
	for (unsigned i = 0; i < 2; i++)
		out[i] =
			_mm512_mask_blend_epi8(high[i], _mm512_permutex2var_epi8(t[0], at[i], t[1]),
		                               _mm512_permutex2var_epi8(t[2], at[i], t[3]));
}

/* Two symbols of each lane: what they give away, 'size' bits in fields of 16 bits; the bits, in
 * fields of 32, of lanes 0 to 3 and 8 to 11 and so on, and of the others. */
typedef struct wide_pair {
	__m512i bits[2], size;
} wide_pair;

/* 'to' are what the tables have for the symbols: in quarter q for the first ones of lanes 8 q to
 * 8 q + 7, then for the second ones. */
INLINE wide_pair wide_two(__m512i *state, const __m512i to[4])
{
	const __m512i one = _mm512_set1_epi16(1);
	__m512i size[2], low[2], x = *state;
	wide_pair pair;
#pragma GCC unroll 2
	for (unsigned k = 0; k < 2; k++) {
		__m512i first =
			k ? _mm512_unpackhi_epi8(to[0], to[1]) : _mm512_unpacklo_epi8(to[0], to[1]);
		__m512i number =
			k ? _mm512_unpackhi_epi8(to[2], to[3]) : _mm512_unpacklo_epi8(to[2], to[3]);
		size[k] = _mm512_srli_epi16(_mm512_add_epi16(x, number), 12);
		__m512i rest = _mm512_srlv_epi16(x, size[k]);
		low[k] = _mm512_sub_epi16(x, _mm512_sllv_epi16(rest, size[k]));
		x = _mm512_add_epi16(rest, first);
	}
	*state = x;
	/* The first symbol's bits, and above them the second's. */
	__m512i power = _mm512_sllv_epi16(one, size[0]);
	pair.bits[0] = _mm512_madd_epi16(_mm512_unpacklo_epi16(low[0], low[1]),
	                                 _mm512_unpacklo_epi16(one, power));
	pair.bits[1] = _mm512_madd_epi16(_mm512_unpackhi_epi16(low[0], low[1]),
	                                 _mm512_unpackhi_epi16(one, power));
	pair.size = _mm512_add_epi16(size[0], size[1]);
	return pair;
}

/* Fields of 32 bits, those of part j, to 64. */
INLINE __m512i part_of(__m512i v, unsigned j)
{
	const __m512i zero = _mm512_setzero_si512();
	return j % 2 ? _mm512_unpackhi_epi32(v, zero) : _mm512_unpacklo_epi32(v, zero);
}

/* Row 'row' of a plane, the lanes' units from their last symbol to their first. */
INLINE void wide_write(wide_writer *w, const lade__ans_encoder *encoder, const uint8_t *plane,
                       uint32_t row)
{
	const __m512i zero = _mm512_setzero_si512();
	/* Symbol 3 of units 8 q to 8 q + 7 in quarter q, then symbol 2. */
	const __m512i last = _mm512_add_epi8(
		_mm512_set1_epi64(0x1C1814100C080400),
		_mm512_setr_epi64(0x0303030303030303, 0x0202020202020202, 0x2323232323232323,
	                          0x2222222222222222, 0x4343434343434343, 0x4242424242424242,
	                          0x6363636363636363, 0x6262626262626262));
	const uint8_t *from = plane + 4 * ANS_LANES * (size_t)row;
	__m512i a = _mm512_loadu_si512(from), b = _mm512_loadu_si512(from + 64);
	/* Lane l has unit l + row; of places the lowest 7 bits count. */
	__m512i at = _mm512_add_epi8(last, _mm512_set1_epi8((char)(4 * row)));
	__m512i before = _mm512_sub_epi8(at, _mm512_set1_epi8(2));
	const __m512i symbol[2] = {_mm512_permutex2var_epi8(a, at, b),
	                           _mm512_permutex2var_epi8(a, before, b)};
	const __mmask64 high[2] = {_mm512_movepi8_mask(symbol[0]), _mm512_movepi8_mask(symbol[1])};
	__m512i to[2][4];
#pragma GCC unroll 4
	for (unsigned k = 0; k < 4; k++) {
		__m512i out[2];
		look_up(encoder->look_up[k], symbol, high, out);
		to[0][k] = out[0];
		to[1][k] = out[1];
	}
	wide_pair p = wide_two(&w->state, to[0]);
	wide_pair q = wide_two(&w->state, to[1]);
	__m512i both = _mm512_add_epi16(p.size, q.size);
	_Alignas(64) uint64_t string[PARTS][8], bits[PARTS][8];
#pragma GCC unroll 4
	for (unsigned j = 0; j < PARTS; j++) {
		__m512i half = j / 2 ? _mm512_unpackhi_epi16(p.size, zero)
		                     : _mm512_unpacklo_epi16(p.size, zero);
		__m512i all = j / 2 ? _mm512_unpackhi_epi16(both, zero)
		                    : _mm512_unpacklo_epi16(both, zero);
		__m512i unit = _mm512_or_si512(
			part_of(p.bits[j / 2], j),
			_mm512_sllv_epi64(part_of(q.bits[j / 2], j), part_of(half, j)));
		__m512i out = _mm512_or_si512(w->bits[j], _mm512_sllv_epi64(unit, w->count[j]));
		__m512i count = _mm512_add_epi64(w->count[j], part_of(all, j));
		_mm512_storeu_si512(string[j], w->string[j]);
		_mm512_storeu_si512(bits[j], out);
		w->string[j] = _mm512_add_epi64(w->string[j], _mm512_srli_epi64(count, 3));
		w->bits[j] =
			_mm512_srlv_epi64(out, _mm512_and_si512(count, _mm512_set1_epi64(0x78)));
		w->count[j] = _mm512_and_si512(count, _mm512_set1_epi64(7));
	}
	/* Through memory: taking the vectors apart would cost shuffles. */
	__asm__ volatile("" : "+m"(string), "+m"(bits));
#pragma GCC unroll 4
	for (unsigned j = 0; j < PARTS; j++) {
#pragma GCC unroll 8
		for (unsigned i = 0; i < 8; i++)
			store_64((uint8_t *)(uintptr_t)string[j][i], bits[j][i]);
	}
}

static TARGET void encode(lade__ans_lanes *lanes)
{
	lane_writer writer[ANS_LANES];
	uint64_t string[PARTS][8], bits[PARTS][8], count_of[PARTS][8];
	uint16_t state[ANS_LANES];
	uint32_t rows = lanes->units / ANS_LANES;
	wide_writer w;
	for (uint32_t l = 0; l < ANS_LANES; l++) {
		writer_first(&writer[l], lanes, l);
		state[l] = (uint16_t)writer[l].state;
		string[PART_OF(l)][PLACE_OF(l)] = (uintptr_t)writer[l].string;
		bits[PART_OF(l)][PLACE_OF(l)] = writer[l].bits;
		count_of[PART_OF(l)][PLACE_OF(l)] = writer[l].count;
	}
	w.state = _mm512_loadu_si512(state);
	for (unsigned j = 0; j < PARTS; j++) {
		w.string[j] = _mm512_loadu_si512(string[j]);
		w.bits[j] = _mm512_loadu_si512(bits[j]);
		w.count[j] = _mm512_loadu_si512(count_of[j]);
	}
	for (uint32_t g = rows > 0 ? rows - 1 : 0; g-- > 0;) {
		for (unsigned p = lanes->coded; p-- > 0;)
			wide_write(&w, lanes->encoder[p], lanes->plane[p], g);
	}
	_mm512_storeu_si512(state, w.state);
	for (unsigned j = 0; j < PARTS; j++) {
		_mm512_storeu_si512(string[j], w.string[j]);
		_mm512_storeu_si512(bits[j], w.bits[j]);
		_mm512_storeu_si512(count_of[j], w.count[j]);
	}
	for (uint32_t l = 0; l < ANS_LANES; l++) {
		writer[l] = (lane_writer){
			.string = (uint8_t *)(uintptr_t)string[PART_OF(l)][PLACE_OF(l)],
			.bits = bits[PART_OF(l)][PLACE_OF(l)],
			.state = state[l],
			.count = (unsigned)count_of[PART_OF(l)][PLACE_OF(l)]};
		writer_last(&writer[l], lanes, l);
	}
}
