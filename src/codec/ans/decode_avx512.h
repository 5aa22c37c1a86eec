/*
 * decode_avx512.h: decoding with all 32 lanes in a register, 16 bits each, and look-ups by VPERMI2B
 * and VPERMI2W: states stand in the order of their symbols, so that a symbol, and one number for
 * it, say all.  Included by avx512.c after lanes.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

/* Readers of 32 lanes, lane 0 first: states with their leading 1; 'left' is below 0 for damaged
 * strings.  They are stored as rows: of the lowest 16 bits of all lanes, of the next ones, .... */
typedef struct wide_reader {
	__m512i state, left, last;
} wide_reader;

/* Of numbers above 0. */
INLINE __m512i leading_zeros(__m512i v)
{
	return _mm512_or_si512(_mm512_lzcnt_epi32(_mm512_slli_epi32(v, 16)),
	                       _mm512_slli_epi32(_mm512_lzcnt_epi32(v), 16));
}

/* Tables are read again each time: there are not registers enough to keep them. */
#define RELOAD(table) __asm__ volatile("" : "+r"(table))

/* What a table has for a quarter of the states, for 'count' readers' quarters: in the low bytes,
 * the high ones do not count. */
INLINE void quarters_of(const uint8_t *table, unsigned bits, const __m512i quarter[],
                        unsigned count, __m512i out[])
{
	__m512i v[ANS_SIDE][4];
	RELOAD(table);
#pragma GCC unroll 4
	for (unsigned k = 0; k < 1U << (bits - 9); k++) {
		__m512i a = _mm512_load_si512(table + 128 * k);
		__m512i b = _mm512_load_si512(table + 128 * k + 64);
#pragma GCC unroll 4
		for (unsigned i = 0; i < count; i++)
			v[i][k] = _mm512_permutex2var_epi8(a, quarter[i], b);
	}
#pragma GCC unroll 4
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
                     unsigned count, __m512i out[])
{
	const __m512i three = _mm512_set1_epi16(3);
	__m512i quarter[ANS_SIDE], next[ANS_SIDE];
#pragma GCC unroll 4
	for (unsigned i = 0; i < count; i++)
		quarter[i] = _mm512_srli_epi16(r[i].state, 2);
	quarters_of(look_ups->next, bits, quarter, count, next);
	quarters_of(look_ups->rank, bits, quarter, count, out);
#pragma GCC unroll 4
	for (unsigned i = 0; i < count; i++) {
		__m512i by = _mm512_and_si512(r[i].state, three);
		next[i] = _mm512_srlv_epi16(next[i], _mm512_add_epi16(by, by));
		out[i] = _mm512_add_epi16(out[i], _mm512_and_si512(next[i], three));
	}
}

/* The symbols of numbers, a byte each. */
INLINE __m512i symbols_of(const uint8_t symbol[256], unsigned size_log, __m512i rank)
{
	__m512i first = _mm512_load_si512(symbol);
	if (size_log == 6)
		return _mm512_permutexvar_epi8(rank, first);
	__m512i low = _mm512_permutex2var_epi8(first, rank, _mm512_load_si512(symbol + 64));
	if (size_log == 7)
		return low;
	__m512i high = _mm512_permutex2var_epi8(_mm512_load_si512(symbol + 128), rank,
	                                        _mm512_load_si512(symbol + 192));
	return _mm512_mask_blend_epi8(_mm512_movepi8_mask(rank), low, high);
}

/* What a table has for the numbers of 'count' readers' symbols. */
INLINE void numbers_of(const uint16_t number[256], unsigned size_log, const __m512i rank[],
                       unsigned count, __m512i out[])
{
	__m512i v[ANS_SIDE][4];
	RELOAD(number);
#pragma GCC unroll 4
	for (unsigned k = 0; k < 1U << (size_log - 6); k++) {
		__m512i a = _mm512_load_si512(number + 64 * k);
		__m512i b = _mm512_load_si512(number + 64 * k + 32);
#pragma GCC unroll 4
		for (unsigned i = 0; i < count; i++)
			v[i][k] = _mm512_permutex2var_epi16(a, rank[i], b);
	}
#pragma GCC unroll 4
	for (unsigned i = 0; i < count; i++) {
#pragma GCC unroll 2
		for (unsigned b = 6; b < size_log; b++) {
			__mmask32 high = _mm512_test_epi16_mask(rank[i],
			                                        _mm512_set1_epi16((short)(1 << b)));
#pragma GCC unroll 2
			for (unsigned k = 0; k < 1U << (size_log - 1 - b); k++)
				v[i][k] = _mm512_mask_blend_epi16(high, v[i][2 * k],
				                                  v[i][2 * k + 1]);
		}
		out[i] = v[i][0];
	}
}

/* Halves t - 1 to t - 4 of each lane, where 'below' is what its t is below 'top', the highest one:
 * less than 'spread'.  A row for all lanes, and then that of each lane by the bits of 'below'. */
INLINE void near_halves(const uint8_t *rows, int top, unsigned spread, __m512i below,
                        __m512i half[4])
{
	__m512i v[19];
#pragma GCC unroll 19
	for (unsigned k = 0; k < spread + 3; k++)
		v[k] = _mm512_load_si512(rows + (top - 1 - (int)k) * ROW_SIZE);
#pragma GCC unroll 4
	for (unsigned step = spread / 2; step > 0; step /= 2) {
		__mmask32 far = _mm512_test_epi16_mask(below, _mm512_set1_epi16((short)step));
#pragma GCC unroll 11
		for (unsigned k = 0; k < step + 3; k++)
			v[k] = _mm512_mask_blend_epi16(far, v[k], v[k + step]);
	}
#pragma GCC unroll 4
	for (unsigned k = 0; k < 4; k++)
		half[k] = v[k];
}

/* The highest of 32 numbers, or 0. */
INLINE int highest_of(__m512i v)
{
	__m256i half =
		_mm256_max_epi16(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
	__m128i few =
		_mm_max_epi16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
	/* The lowest of their complements. */
	few = _mm_minpos_epu16(_mm_subs_epu16(_mm_set1_epi16(INT16_MAX),
	                                      _mm_max_epi16(few, _mm_setzero_si128())));
	return INT16_MAX - _mm_extract_epi16(few, 0);
}

/* The same of lanes that are anywhere: of the highest ones, and those within 16 rows below them;
 * then of the highest of the others.  Below the rows nothing counts. */
static TARGET __attribute__((noinline)) void far_halves(const uint8_t *rows, const __m512i *all,
                                                        __m512i half[4])
{
	__m512i t = _mm512_max_epi16(*all, _mm512_setzero_si512());
	for (__mmask32 left = UINT32_MAX; left;) {
		int top = highest_of(_mm512_maskz_mov_epi16(left, t));
		__m512i below = _mm512_sub_epi16(_mm512_set1_epi16((short)top), t), found[4];
		__mmask32 here =
			_mm512_mask_cmplt_epu16_mask(left, below, _mm512_set1_epi16(16));
		near_halves(rows, top, 16, below, found);
#pragma GCC unroll 4
		for (unsigned k = 0; k < 4; k++)
			half[k] = _mm512_mask_mov_epi16(half[k], here, found[k]);
		left &= ~here;
	}
}

/* The next 48 bits of each lane, and some: 16 a vector, of which the highest come first. */
INLINE void wide_window(const wide_reader *r, const uint8_t *rows, __m512i window[4])
{
	__m512i t = _mm512_srai_epi16(_mm512_add_epi16(r->left, _mm512_set1_epi16(15)), 4);
	int top = highest_of(t);
	__m512i below = _mm512_sub_epi16(_mm512_set1_epi16((short)top), t);
	if (!_mm512_cmpgt_epu16_mask(below, _mm512_set1_epi16(3))) {
		near_halves(rows, top, 4, below, window);
	} else if (!_mm512_cmpgt_epu16_mask(below, _mm512_set1_epi16(7))) {
		near_halves(rows, top, 8, below, window);
	} else {
		__m512i half[4];
		far_halves(rows, &t, half);
#pragma GCC unroll 4
		for (unsigned k = 0; k < 4; k++)
			window[k] = half[k];
	}
	/* The first half's bits that are read already. */
	__m512i over = _mm512_and_si512(_mm512_sub_epi16(_mm512_setzero_si512(), r->left),
	                                _mm512_set1_epi16(15));
#pragma GCC unroll 3
	for (unsigned k = 0; k < 3; k++)
		window[k] = _mm512_shldv_epi16(window[k], window[k + 1], over);
}

/* What a table has for quarters of at most 256, a byte each. */
INLINE __m512i bytes_of(const uint8_t *table, unsigned bits, __m512i quarter)
{
	__m512i low = _mm512_permutex2var_epi8(_mm512_load_si512(table), quarter,
	                                       _mm512_load_si512(table + 64));
	if (bits == 9)
		return low;
	__m512i high = _mm512_permutex2var_epi8(_mm512_load_si512(table + 128), quarter,
	                                        _mm512_load_si512(table + 192));
	return _mm512_mask_blend_epi8(_mm512_movepi8_mask(quarter), low, high);
}

/* ranks_of() two readers of at most 1024 states: those of the second one are in the high bytes, so
 * that both take one look-up. */
INLINE void ranks_of_two(const lade__ans_look_ups *look_ups, unsigned bits, const wide_reader r[2],
                         __m512i out[2])
{
	const __m512i low_byte = _mm512_set1_epi16(0xFF);
	const __m512i place = _mm512_set1_epi64(0x3830282018100800);
	const uint8_t *next_of = look_ups->next, *rank_of = look_ups->rank;
	RELOAD(next_of);
	RELOAD(rank_of);
	/* Bits of the first where the mask is 1, and of the second. */
	__m512i quarter = _mm512_ternarylogic_epi32(low_byte, _mm512_srli_epi16(r[0].state, 2),
	                                            _mm512_slli_epi16(r[1].state, 6), 0xCA);
	__m512i by = _mm512_ternarylogic_epi32(low_byte, _mm512_slli_epi16(r[0].state, 1),
	                                       _mm512_slli_epi16(r[1].state, 9), 0xCA);
	/* Where the two bits of each byte begin in the 64 around it. */
	by = _mm512_ternarylogic_epi32(place, by, _mm512_set1_epi8(6), 0xF8);
	__m512i next = _mm512_multishift_epi64_epi8(by, bytes_of(next_of, bits, quarter));
	next = _mm512_and_si512(next, _mm512_set1_epi8(3));
	out[0] = _mm512_add_epi8(bytes_of(rank_of, bits, quarter), next);
	out[1] = _mm512_srli_epi16(out[0], 8);
}

/* What loops have as constants: sub-blocks, bits of a state, log2 of the symbols' number. */
typedef struct wide_shape {
	unsigned count, bits, size_log;
} wide_shape;

/*
 * As reader_unit(), for all lanes of shape.count sub-blocks, step by step, so that these wait for
 * one another's look-ups: words of two symbols each, the first ones and the last ones.
 */
INLINE void wide_unit(wide_reader *r, const lade__ans_lanes *lanes, unsigned p, wide_shape shape,
                      __m512i out[][2])
{
	const unsigned count = shape.count, bits = shape.bits, size_log = shape.size_log;
	const __m512i low_byte = _mm512_set1_epi16(0xFF);
	const lade__ans_look_ups *look_ups = lanes->look_ups[p];
	__m512i window[ANS_SIDE][4], rank[ANS_UNIT][ANS_SIDE];
#pragma GCC unroll 4
	for (unsigned i = 0; i < count; i++)
		wide_window(&r[i], lanes[i].strings + ROWS_AT, window[i]);
#pragma GCC unroll 4
	for (unsigned k = 0; k < ANS_UNIT; k++) {
		__m512i adds[ANS_SIDE];
		if (count % 2 == 0 && bits <= 10)
			for (unsigned i = 0; i < count; i += 2)
				ranks_of_two(look_ups, bits, r + i, rank[k] + i);
		else
			ranks_of(look_ups, bits, r, count, rank[k]);
		numbers_of(look_ups->add, size_log, rank[k], count, adds);
#pragma GCC unroll 4
		for (unsigned i = 0; i < count; i++) {
			__m512i *w = window[i], y = _mm512_add_epi16(r[i].state, adds[i]);
			/* As many as bring y's highest bit to its place. */
			__m512i take = _mm512_sub_epi16(leading_zeros(y),
			                                _mm512_set1_epi16((short)(15 - bits)));
			r[i].state = _mm512_shldv_epi16(y, w[0], take);
			w[0] = _mm512_shldv_epi16(w[0], w[1], take);
			w[1] = _mm512_shldv_epi16(w[1], w[2], take);
			w[2] = _mm512_sllv_epi16(w[2], take);
			r[i].left = _mm512_sub_epi16(r[i].left, take);
			r[i].last = take;
		}
	}
#pragma GCC unroll 4
	for (unsigned i = 0; i < count; i++)
		for (unsigned k = 0; k < 2; k++)
			out[i][k] =
				symbols_of(look_ups->symbol, size_log,
			                   _mm512_ternarylogic_epi32(
						   rank[2 * k][i], low_byte,
						   _mm512_slli_epi16(rank[2 * k + 1][i], 8), 0xEA));
}

/* Stores the first 'count' units of a row, of which unit u is that of lane u - row. */
INLINE void wide_store(uint8_t *to, uint32_t row, uint32_t count, const __m512i out[2])
{
	const __m512i units =
		_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	__m512i lane = _mm512_sub_epi32(units, _mm512_set1_epi32((int)row));
	uint32_t there = _bzhi_u32(UINT32_MAX, count);
	for (unsigned k = 0; k < 2; k++) {
		/* Word 'lane' of the first vector, and the same of the second. */
		__m512i l = _mm512_and_si512(lane, _mm512_set1_epi32(31));
		l = _mm512_or_si512(l, _mm512_slli_epi32(l, 16));
		l = _mm512_or_si512(l, _mm512_set1_epi32(32 << 16));
		l = _mm512_permutex2var_epi16(out[0], l, out[1]);
		if (count >= ANS_LANES) /* a store by a mask takes four cycles */
			_mm512_storeu_si512(to + 64 * k, l);
		else
			_mm512_mask_storeu_epi32(to + 64 * k, (__mmask16)(there >> 16 * k), l);
		lane = _mm512_add_epi32(lane, _mm512_set1_epi32(16));
	}
}

/* The lanes that have a unit of the last, partial row. */
INLINE __mmask32 lanes_of_rest(const lade__ans_lanes *lanes)
{
	uint32_t rows = lanes->units / ANS_LANES, rest = lanes->units % ANS_LANES;
	uint64_t first = _bzhi_u32(UINT32_MAX, rest);
	/* Unit u is lane (u - rows) mod 32's. */
	return (__mmask32)((first << 32 | first) >> rows % ANS_LANES);
}

/* Sub-blocks of one length; in a partial row the lanes that have none stay where they are. */
INLINE void wide_rows(wide_reader *r, const lade__ans_lanes *lanes, wide_shape shape)
{
	const unsigned count = shape.count;
	for (uint32_t g = 0; g * ANS_LANES < lanes->units; g++) {
		uint32_t units = lanes->units - g * ANS_LANES;
		wide_reader old[ANS_SIDE];
		if (units < ANS_LANES)
			memcpy(old, r, count * sizeof *r);
		for (unsigned p = 0; p < lanes->coded; p++) {
			__m512i out[ANS_SIDE][2];
			wide_unit(r, lanes, p, shape, out);
#pragma GCC unroll 4
			for (unsigned i = 0; i < count; i++)
				wide_store(lanes[i].plane[p] + 4 * ANS_LANES * (size_t)g, g, units,
				           out[i]);
		}
		if (units >= ANS_LANES)
			continue;
		__mmask32 has = lanes_of_rest(lanes);
#pragma GCC unroll 4
		for (unsigned i = 0; i < count; i++) {
			r[i].state = _mm512_mask_mov_epi16(old[i].state, has, r[i].state);
			r[i].left = _mm512_mask_mov_epi16(old[i].left, has, r[i].left);
			r[i].last = _mm512_mask_mov_epi16(old[i].last, has, r[i].last);
		}
	}
}

/* The lanes that have symbols. */
INLINE __mmask32 lanes_of(const lade__ans_lanes *lanes)
{
	return lanes->units < ANS_LANES ? lanes_of_rest(lanes) : UINT32_MAX;
}

/* False: a lane's state cannot be read, or it has one though it has no symbols. */
INLINE bool wide_open(wide_reader *r, const lade__ans_lanes *lanes)
{
	__m512i low = _mm512_loadu_si512(lanes->length), window[4];
	__m512i high = _mm512_loadu_si512(lanes->length + 16);
	__mmask32 has = lanes_of(lanes), fine;
	r->left = _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi32_epi16(low)),
	                             _mm512_cvtepi32_epi16(high), 1);
	if (_mm512_test_epi16_mask(r->left, r->left) != has)
		return false;
	wide_window(r, lanes->strings + ROWS_AT, window);
	/* The state's leading 1 is the first bit that is not 0, and is in the first half. */
	fine = _mm512_test_epi16_mask(window[0], window[0]);
	__m512i zeros = leading_zeros(window[0]);
	r->state = _mm512_srl_epi16(_mm512_shldv_epi16(window[0], window[1], zeros),
	                            _mm_cvtsi32_si128(15 - (int)lanes->bits));
	r->left = _mm512_sub_epi16(r->left, zeros);
	r->left = _mm512_sub_epi16(r->left, _mm512_set1_epi16((short)(lanes->bits + 1)));
	r->last = _mm512_setzero_si512();
	fine &= ~_mm512_movepi16_mask(r->left);
	return (fine & has) == has;
}

INLINE bool wide_close(const wide_reader *r, const lade__ans_lanes *lanes)
{
	__m512i over = _mm512_add_epi16(r->left, r->last);
	return !(_mm512_test_epi16_mask(over, over) & lanes_of(lanes));
}

/* wide_rows() with constants. */
#define ROWS(name, count, bits, size_log) \
	static TARGET __attribute__((noinline)) void name(wide_reader *all, \
	                                                  const lade__ans_lanes *lanes) \
	{ \
		wide_reader r[ANS_SIDE]; \
		memcpy(r, all, (count) * sizeof *r); \
		wide_rows(r, lanes, (wide_shape){count, bits, size_log}); \
		memcpy(all, r, (count) * sizeof *r); \
	}
ROWS(one_9, 1, 9, 8)
ROWS(one_10, 1, 10, 8)
ROWS(one_11, 1, 11, 8)
ROWS(two_9, 2, 9, 8)
ROWS(two_10, 2, 10, 8)
ROWS(two_11, 2, 11, 8)
ROWS(four_9, 4, 9, 8)
ROWS(four_10, 4, 10, 8)
ROWS(four_11, 4, 11, 8)
ROWS(four_10_many, 4, 10, 7)
ROWS(four_10_few, 4, 10, 6)
#undef ROWS

typedef void rows_function(wide_reader *r, const lade__ans_lanes *lanes);

/* Few symbols with the usual number of states have loops of their own. */
static rows_function *rows_of(unsigned count, const lade__ans_lanes *lanes)
{
	static rows_function *const rows[][3] = {{one_9, one_10, one_11},
	                                         {two_9, two_10, two_11},
	                                         {four_9, four_10, four_11}};
	unsigned most = 0;
	for (unsigned p = 0; p < lanes->coded; p++)
		most = lanes->look_ups[p]->count > most ? lanes->look_ups[p]->count : most;
	if (count == 4 && lanes->bits == 10 && most <= 128)
		return most <= 64 ? four_10_few : four_10_many;
	return rows[count / 2][lanes->bits - ANS_BITS_MIN];
}

/* 1, 2, or 4 sub-blocks of one length; gives which are damaged. */
static TARGET unsigned decode_some(const lade__ans_lanes *lanes, unsigned count)
{
	wide_reader r[ANS_SIDE];
	unsigned damaged = 0;
	for (unsigned i = 0; i < count; i++)
		damaged |= (unsigned)!wide_open(&r[i], &lanes[i]) << i;
	if (damaged)
		return damaged;
	rows_of(count, lanes)(r, lanes);
	for (unsigned i = 0; i < count; i++)
		damaged |= (unsigned)!wide_close(&r[i], &lanes[i]) << i;
	return damaged;
}

static TARGET unsigned decode(const lade__ans_lanes *lanes, unsigned count)
{
	unsigned damaged = 0;
	for (unsigned i = 0, n; i < count; i += n) {
		n = count - i >= 4 ? 4 : count - i >= 2 ? 2 : 1;
		/* Only a chunk's last one may be shorter. */
		while (n > 1 && lanes[i + n - 1].units != lanes[i].units)
			n /= 2;
		unsigned bad = decode_some(&lanes[i], n);
		if (bad && n > 1) {
			/* One leaves open what the others are. */
			bad = 0;
			for (unsigned k = 0; k < n; k++)
				bad |= decode_some(&lanes[i + k], 1) << k;
		}
		damaged |= bad << i;
	}
	return damaged;
}
