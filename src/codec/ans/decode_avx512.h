/*
 * decode_avx512.h: decoding with all 32 lanes in a register, 16 bits each, and look-ups by VPERMI2B
 * and VPERMI2W: states stand in the order of their symbols, so that a symbol, and one number for
 * it, say all.  Included by avx512.c after lanes.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

/* Readers of 32 lanes, lane 0 first; 'left' is below 0 for damaged strings. */
typedef struct wide_reader {
	__m512i state, left, last;
} wide_reader;

/* Tables are read again each time: there are not registers enough to keep them. */
#define RELOAD(table) __asm__ volatile("" : "+r"(table))

/* What a table has for a quarter of the states, for 'count' readers' quarters: in the low bytes,
 * the high ones do not count. */
INLINE void quarters_of(const uint8_t *table, unsigned bits, const __m512i quarter[2],
                        unsigned count, __m512i out[2])
{
	__m512i v[2][4];
	RELOAD(table);
#pragma GCC unroll 4
	for (unsigned k = 0; k < 1U << (bits - 9); k++) {
		__m512i a = _mm512_load_si512(table + 128 * k);
		__m512i b = _mm512_load_si512(table + 128 * k + 64);
#pragma GCC unroll 2
		for (unsigned i = 0; i < count; i++)
			v[i][k] = _mm512_permutex2var_epi8(a, quarter[i], b);
	}
#pragma GCC unroll 2
	for (unsigned i = 0; i < count; i++) {
#pragma GCC unroll 2
		for (unsigned b = 9; b < bits; b++) {
			__mmask32 high = _mm512_test_epi16_mask(
				quarter[i], _mm512_set1_epi16((short)(1 << (b - 2))));
#pragma GCC unroll 2
			for (unsigned k = 0; k < 1U << (bits - 1 - b); k++)
				v[i][k] =
					_mm512_mask_blend_epi16(high, v[i][2 * k], v[i][2 * k + 1]);
		}
		out[i] = v[i][0];
	}
}

/* The numbers of 'count' readers' symbols, in the low bytes. */
INLINE void ranks_of(const lade__ans_look_ups *look_ups, unsigned bits, const wide_reader *r,
                     unsigned count, __m512i out[2])
{
	const __m512i three = _mm512_set1_epi16(3);
	__m512i quarter[2], next[2];
#pragma GCC unroll 2
	for (unsigned i = 0; i < count; i++)
		quarter[i] = _mm512_srli_epi16(r[i].state, 2);
	quarters_of(look_ups->next, bits, quarter, count, next);
	quarters_of(look_ups->rank, bits, quarter, count, out);
#pragma GCC unroll 2
	for (unsigned i = 0; i < count; i++) {
		__m512i by = _mm512_and_si512(r[i].state, three);
		next[i] = _mm512_srlv_epi16(next[i], _mm512_add_epi16(by, by));
		out[i] = _mm512_add_epi16(out[i], _mm512_and_si512(next[i], three));
	}
}

/* The symbols of numbers, a byte each; 'many': there are more than 128. */
INLINE __m512i symbols_of(const uint8_t symbol[256], bool many, __m512i rank)
{
	__m512i low = _mm512_permutex2var_epi8(_mm512_load_si512(symbol), rank,
	                                       _mm512_load_si512(symbol + 64));
	if (!many)
		return low;
	__m512i high = _mm512_permutex2var_epi8(_mm512_load_si512(symbol + 128), rank,
	                                        _mm512_load_si512(symbol + 192));
	return _mm512_mask_blend_epi8(_mm512_movepi8_mask(rank), low, high);
}

/* What a table has for the numbers of 'count' readers' symbols; 'many': there are more than 128. */
INLINE void numbers_of(const uint16_t number[256], bool many, const __m512i rank[2], unsigned count,
                       __m512i out[2])
{
	__m512i v[2][4];
	RELOAD(number);
#pragma GCC unroll 4
	for (unsigned k = 0; k < 2U << many; k++) {
		__m512i a = _mm512_load_si512(number + 64 * k);
		__m512i b = _mm512_load_si512(number + 64 * k + 32);
#pragma GCC unroll 2
		for (unsigned i = 0; i < count; i++)
			v[i][k] = _mm512_permutex2var_epi16(a, rank[i], b);
	}
#pragma GCC unroll 2
	for (unsigned i = 0; i < count; i++) {
		__mmask32 six = _mm512_test_epi16_mask(rank[i], _mm512_set1_epi16(64));
		if (!many) {
			out[i] = _mm512_mask_blend_epi16(six, v[i][0], v[i][1]);
			continue;
		}
		__mmask32 seven = _mm512_test_epi16_mask(rank[i], _mm512_set1_epi16(128));
		out[i] = _mm512_mask_blend_epi16(seven,
		                                 _mm512_mask_blend_epi16(six, v[i][0], v[i][1]),
		                                 _mm512_mask_blend_epi16(six, v[i][2], v[i][3]));
	}
}

/* The next 48 bits of each lane and more: 16 a vector, of which the highest come first. */
INLINE void wide_window(const wide_reader *r, const uint8_t *strings, __m512i window[4])
{
	const __m512i iota =
		_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	const __m512i pitch = _mm512_set1_epi32((int)ANS_PITCH);
	/* Words 3 of 8 lanes and of 8 more, then words 2; words 1 and 0. */
	const __m512i upper = _mm512_setr_epi64(
		0x000F000B00070003, 0x001F001B00170013, 0x002F002B00270023, 0x003F003B00370033,
		0x000E000A00060002, 0x001E001A00160012, 0x002E002A00260022, 0x003E003A00360032);
	const __m512i lower = _mm512_sub_epi16(upper, _mm512_set1_epi16(2));
	__m512i byte = _mm512_srai_epi16(r->left, 3), string = _mm512_mullo_epi32(iota, pitch);
	__m512i v[4], high[2], low[2];
#pragma GCC unroll 2
	for (unsigned k = 0; k < 2; k++) {
		__m256i half =
			k ? _mm512_extracti64x4_epi64(byte, 1) : _mm512_castsi512_si256(byte);
		__m512i at = _mm512_add_epi32(string, _mm512_cvtepi16_epi32(half));
		const uint8_t *from = strings + k * 16 * ANS_PITCH - 7;
		v[2 * k] = _mm512_i32gather_epi64(_mm512_castsi512_si256(at), from, 1);
		v[2 * k + 1] = _mm512_i32gather_epi64(_mm512_extracti64x4_epi64(at, 1), from, 1);
		high[k] = _mm512_permutex2var_epi16(v[2 * k], upper, v[2 * k + 1]);
		low[k] = _mm512_permutex2var_epi16(v[2 * k], lower, v[2 * k + 1]);
	}
	window[0] = _mm512_inserti64x4(high[0], _mm512_castsi512_si256(high[1]), 1);
	window[1] = _mm512_shuffle_i64x2(high[0], high[1], 0xEE);
	window[2] = _mm512_inserti64x4(low[0], _mm512_castsi512_si256(low[1]), 1);
	window[3] = _mm512_shuffle_i64x2(low[0], low[1], 0xEE);
	/* The byte at 'left' has 8 - left % 8 bits that are read already. */
	__m512i seven = _mm512_set1_epi16(7);
	__m512i over = _mm512_sub_epi16(_mm512_set1_epi16(8), _mm512_and_si512(r->left, seven));
#pragma GCC unroll 3
	for (unsigned k = 0; k < 3; k++)
		window[k] = _mm512_shldv_epi16(window[k], window[k + 1], over);
}

/*
 * As reader_unit(), for all lanes of 'count' sub-blocks, step by step, so that these wait for one
 * another's look-ups: words of two symbols each, the first ones and the last ones.
 */
INLINE void wide_unit(wide_reader *r, unsigned count, const lade__ans_lanes *lanes, unsigned p,
                      unsigned bits, bool many, __m512i out[][2])
{
	const __m512i low_byte = _mm512_set1_epi16(0xFF);
	const lade__ans_look_ups *look_ups = lanes->look_ups[p];
	__m512i window[2][4], rank[ANS_UNIT][2];
#pragma GCC unroll 2
	for (unsigned i = 0; i < count; i++)
		wide_window(&r[i], lanes[i].strings, window[i]);
#pragma GCC unroll 4
	for (unsigned k = 0; k < ANS_UNIT; k++) {
		__m512i adds[2];
		ranks_of(look_ups, bits, r, count, rank[k]);
		numbers_of(look_ups->add, many, rank[k], count, adds);
#pragma GCC unroll 2
		for (unsigned i = 0; i < count; i++) {
			__m512i x = r[i].state, *w = window[i];
			__m512i y = _mm512_add_epi16(x, adds[i]);
			/* As many as bring y's highest bit to its place. */
			__m512i take =
				_mm512_or_si512(_mm512_lzcnt_epi32(_mm512_slli_epi32(y, 16)),
			                        _mm512_slli_epi32(_mm512_lzcnt_epi32(y), 16));
			take = _mm512_sub_epi16(take, _mm512_set1_epi16((short)(15 - bits)));
			/* A shift by 16 gives 0. */
			__m512i over = _mm512_sub_epi16(_mm512_set1_epi16(16), take);
			x = _mm512_sub_epi16(_mm512_sllv_epi16(y, take),
			                     _mm512_set1_epi16((short)(1 << bits)));
			r[i].state = _mm512_add_epi16(x, _mm512_srlv_epi16(w[0], over));
			w[0] = _mm512_shldv_epi16(w[0], w[1], take);
			w[1] = _mm512_shldv_epi16(w[1], w[2], take);
			w[2] = _mm512_sllv_epi16(w[2], take);
			r[i].left = _mm512_sub_epi16(r[i].left, take);
			r[i].last = take;
		}
	}
#pragma GCC unroll 2
	for (unsigned i = 0; i < count; i++)
		for (unsigned k = 0; k < 2; k++)
			out[i][k] =
				symbols_of(look_ups->symbol, many,
			                   _mm512_ternarylogic_epi32(
						   rank[2 * k][i], low_byte,
						   _mm512_slli_epi16(rank[2 * k + 1][i], 8), 0xEA));
}

/* Stores a row: unit u is that of lane u - row. */
INLINE void wide_store(uint8_t *to, uint32_t row, const __m512i out[2])
{
	const __m512i units =
		_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	__m512i lane = _mm512_sub_epi32(units, _mm512_set1_epi32((int)row));
	for (unsigned k = 0; k < 2; k++) {
		/* Word 'lane' of the first vector, and the same of the second. */
		__m512i l = _mm512_and_si512(lane, _mm512_set1_epi32(31));
		l = _mm512_or_si512(l, _mm512_slli_epi32(l, 16));
		l = _mm512_or_si512(l, _mm512_set1_epi32(32 << 16));
		_mm512_storeu_si512(to + 64 * k, _mm512_permutex2var_epi16(out[0], l, out[1]));
		lane = _mm512_add_epi32(lane, _mm512_set1_epi32(16));
	}
}

/* The full rows of 'count' sub-blocks of one length. */
INLINE void wide_rows(wide_reader *r, unsigned count, const lade__ans_lanes *lanes, unsigned bits,
                      bool many)
{
	for (uint32_t g = 0; g < lanes->units / ANS_LANES; g++) {
		for (unsigned p = 0; p < lanes->coded; p++) {
			__m512i out[2][2];
			wide_unit(r, count, lanes, p, bits, many, out);
#pragma GCC unroll 2
			for (unsigned i = 0; i < count; i++)
				wide_store(lanes[i].plane[p] + 4 * ANS_LANES * (size_t)g, g,
				           out[i]);
		}
	}
}

/* False: a lane's state cannot be read, or it has one though it has no symbols. */
INLINE bool wide_open(wide_reader *r, const lade__ans_lanes *lanes)
{
	uint32_t rows = lanes->units / ANS_LANES, rest = lanes->units % ANS_LANES;
	int16_t state[ANS_LANES], left[ANS_LANES];
	bool fine = true;
	for (uint32_t l = 0; l < ANS_LANES; l++) {
		lane_reader reader;
		bool open = reader_open(&reader, lanes->strings + l * ANS_PITCH, lanes->length[l],
		                        lanes->bits);
		bool has = rows || (l + rows) % ANS_LANES < rest;
		fine &= has ? open : !lanes->length[l];
		state[l] = (int16_t)reader.state;
		left[l] = (int16_t)reader.left;
	}
	*r = (wide_reader){_mm512_loadu_si512(state), _mm512_loadu_si512(left),
	                   _mm512_setzero_si512()};
	return fine;
}

INLINE bool wide_close(const wide_reader *r, const lade__ans_lanes *lanes)
{
	int16_t state[ANS_LANES], left[ANS_LANES], last[ANS_LANES];
	bool fine = true;
	_mm512_storeu_si512(state, r->state);
	_mm512_storeu_si512(left, r->left);
	_mm512_storeu_si512(last, r->last);
	for (uint32_t l = 0; l < ANS_LANES; l++) {
		lane_reader reader = {.string = lanes->strings + l * ANS_PITCH,
		                      .state = (uint16_t)state[l],
		                      .left = left[l],
		                      .last = (uint16_t)last[l]};
		fine &= reader_close(&reader, lanes, l);
	}
	return fine;
}

/* With constants for 'count' and the bits; gives which are damaged. */
INLINE unsigned decode_some(const lade__ans_lanes *lanes, unsigned count)
{
	wide_reader r[2];
	unsigned damaged = 0;
	for (unsigned i = 0; i < count; i++)
		damaged |= (unsigned)!wide_open(&r[i], &lanes[i]) << i;
	if (damaged)
		return damaged;
	bool many = false;
	for (unsigned p = 0; p < lanes->coded; p++)
		many |= lanes->look_ups[p]->count > 128;
#define ROWS(bits) \
	case bits: \
		if (many) \
			wide_rows(r, count, lanes, bits, true); \
		else \
			wide_rows(r, count, lanes, bits, false); \
		break;
	switch (lanes->bits) {
		ROWS(9)
		ROWS(10)
		ROWS(11)
	}
#undef ROWS
	for (unsigned i = 0; i < count; i++)
		damaged |= (unsigned)!wide_close(&r[i], &lanes[i]) << i;
	return damaged;
}

static TARGET unsigned decode(const lade__ans_lanes *lanes, unsigned count)
{
	if (count == 2 && lanes[0].units == lanes[1].units) {
		unsigned damaged = decode_some(lanes, 2);
		/* What could not be opened leaves open what the other one is. */
		if (damaged != 2)
			return damaged;
	}
	unsigned damaged = 0;
	for (unsigned i = 0; i < count; i++)
		damaged |= decode_some(&lanes[i], 1) << i;
	return damaged;
}
