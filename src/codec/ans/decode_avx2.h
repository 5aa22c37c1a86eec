/*
 * decode_avx2.h: decoding with the 32 lanes in four registers, 32 bits each, in two sub-blocks side
 * by side.  Included by avx2.c after lanes.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

/* Sub-blocks side by side: more of them want more registers than there are. */
#define SIDE 2

/*
 * Readers of 32 lanes: states without their leading 1, so that all of them have an entry in the
 * table; 'left' has what the lanes have not read yet, and 15 more, and is below 15 for damaged
 * strings.
 */
typedef struct wide_reader {
	_Alignas(32) uint32_t state[ANS_LANES];
	__m256i left[EIGHTS];
	__m256i entry[ANS_UNIT][EIGHTS]; /* those of the last unit's symbols */
} wide_reader;

/* The highest of 32 numbers, or 0. */
INLINE int highest_of(const __m256i v[2])
{
	__m256i most = _mm256_max_epi16(v[0], v[1]);
	__m128i few =
		_mm_max_epi16(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
	/* The lowest of their complements. */
	few = _mm_minpos_epu16(
		_mm_subs_epu16(_mm_set1_epi16(INT16_MAX), _mm_max_epi16(few, _mm_setzero_si128())));
	return INT16_MAX - _mm_extract_epi16(few, 0);
}

/* Halves t - 1 to t - 4 of 16 lanes, where 'below' is what a lane's t is below 'top', the highest
 * one: less than 'spread', 4 or 8.  A row for all lanes, and then that of each lane by the bits of
 * 'below'. */
INLINE void near_halves(const uint8_t *rows, int top, unsigned spread, __m256i below,
                        __m256i half[4])
{
	__m256i v[11];
#pragma GCC unroll 11
	for (unsigned k = 0; k < spread + 3; k++)
		v[k] = _mm256_load_si256((const __m256i *)(rows + (top - 1 - (int)k) * ROW_SIZE));
#pragma GCC unroll 3
	for (unsigned step = spread / 2; step > 0; step /= 2) {
		__m256i bit = _mm256_set1_epi16((short)step);
		__m256i far = _mm256_cmpeq_epi16(_mm256_and_si256(below, bit), bit);
#pragma GCC unroll 7
		for (unsigned k = 0; k < step + 3; k++)
			v[k] = _mm256_blendv_epi8(v[k], v[k + step], far);
	}
#pragma GCC unroll 4
	for (unsigned k = 0; k < 4; k++)
		half[k] = v[k];
}

/* The same of all lanes, which are anywhere.  Below the rows nothing counts. */
static TARGET __attribute__((noinline)) void far_halves(const uint8_t *rows, const __m256i t[2],
                                                        __m256i half[2][4])
{
	_Alignas(32) int16_t at[ANS_LANES];
	_Alignas(32) uint16_t found[4][ANS_LANES];
	for (unsigned i = 0; i < 2; i++)
		put(at + 16 * i, _mm256_max_epi16(t[i], _mm256_setzero_si256()));
	for (unsigned l = 0; l < ANS_LANES; l++) {
		const uint8_t *from = rows + at[l] * ROW_SIZE + 2 * l;
		for (int k = 0; k < 4; k++)
			memcpy(&found[k][l], from - (k + 1) * ROW_SIZE, 2);
	}
	for (unsigned i = 0; i < 2; i++)
		for (unsigned k = 0; k < 4; k++)
			half[i][k] = _mm256_load_si256((const __m256i *)(found[k] + 16 * i));
}

/* The next 49 bits of each lane, and some: 32, of which the highest come first, and those that
 * follow. */
INLINE void wide_window(const wide_reader *r, const uint8_t *rows, __m256i first[EIGHTS],
                        __m256i second[EIGHTS])
{
	const __m256i most = _mm256_set1_epi32(15), all = _mm256_set1_epi32(32);
	__m256i t[2], below[2], half[2][4];
#pragma GCC unroll 2
	for (unsigned i = 0; i < 2; i++)
		t[i] = _mm256_packs_epi32(_mm256_srai_epi32(r->left[2 * i], 4),
		                          _mm256_srai_epi32(r->left[2 * i + 1], 4));
	int top = highest_of(t);
#pragma GCC unroll 2
	for (unsigned i = 0; i < 2; i++)
		below[i] = _mm256_sub_epi16(_mm256_set1_epi16((short)top), t[i]);
	__m256i any = _mm256_or_si256(below[0], below[1]);
	if (_mm256_testz_si256(any, _mm256_set1_epi16(~3))) {
#pragma GCC unroll 2
		for (unsigned i = 0; i < 2; i++)
			near_halves(rows + 32 * i, top, 4, below[i], half[i]);
	} else if (_mm256_testz_si256(any, _mm256_set1_epi16(~7))) {
#pragma GCC unroll 2
		for (unsigned i = 0; i < 2; i++)
			near_halves(rows + 32 * i, top, 8, below[i], half[i]);
	} else {
		__m256i at[2] = {t[0], t[1]}, found[2][4];
		far_halves(rows, at, found);
		memcpy(half, found, sizeof half);
	}
#pragma GCC unroll 4
	for (unsigned j = 0; j < EIGHTS; j++) {
		const __m256i *h = half[j / 2];
		__m256i a = j % 2 ? _mm256_unpackhi_epi16(h[1], h[0])
		                  : _mm256_unpacklo_epi16(h[1], h[0]);
		__m256i b = j % 2 ? _mm256_unpackhi_epi16(h[3], h[2])
		                  : _mm256_unpacklo_epi16(h[3], h[2]);
		/* The first half's bits that are read already. */
		__m256i over = _mm256_andnot_si256(r->left[j], most);
		first[j] = _mm256_or_si256(_mm256_sllv_epi32(a, over),
		                           _mm256_srlv_epi32(b, _mm256_sub_epi32(all, over)));
		second[j] = _mm256_sllv_epi32(b, over);
	}
}

/* The bits that the symbols of entries took. */
INLINE __m256i taken_by(__m256i entry)
{
	return _mm256_and_si256(entry, _mm256_set1_epi32(0xFF));
}

/* Symbol 'k' of a unit for 8 lanes.  'window' has 32 bits before the first and before the third
 * symbol, and enough for the one that follows; 'more' what comes behind the first 32. */
INLINE void wide_symbol(wide_reader *r, unsigned k, unsigned j, const uint32_t *table,
                        __m256i *window, __m256i more)
{
	/* Shifts by 32 leave nothing. */
	const __m256i all = _mm256_set1_epi32(32);
#define STATE(i) r->state[8 * j + (i)]
	__m256i e = EIGHT_OF(table, STATE), take = taken_by(e);
	__m256i bits = _mm256_srlv_epi32(*window, _mm256_sub_epi32(all, take));
	put(r->state + 8 * j, _mm256_add_epi32(_mm256_srli_epi32(e, 16), bits));
	put(&r->entry[k][j], e);
	*window = _mm256_sllv_epi32(*window, take);
	if (k == 1) {
		take = _mm256_add_epi32(take, taken_by(r->entry[0][j]));
		more = _mm256_srlv_epi32(more, _mm256_sub_epi32(all, take));
		*window = _mm256_or_si256(*window, more);
	}
}

/* The unit's symbols of 8 lanes, and what they took off 'left'. */
INLINE __m256i wide_symbols(wide_reader *r, unsigned j)
{
	const __m256i high = _mm256_set1_epi16((short)0xFF00);
	/* Symbols 0 and 2, 1 and 3 in a word, each above what it took. */
	__m256i third = _mm256_slli_epi32(r->entry[2][j], 16);
	__m256i fourth = _mm256_slli_epi32(r->entry[3][j], 16);
	__m256i even = _mm256_blend_epi16(r->entry[0][j], third, 0xAA);
	__m256i odd = _mm256_blend_epi16(r->entry[1][j], fourth, 0xAA);
	__m256i sum = _mm256_andnot_si256(high, _mm256_add_epi16(even, odd));
	r->left[j] = _mm256_sub_epi32(r->left[j], _mm256_madd_epi16(sum, _mm256_set1_epi16(1)));
	return _mm256_blendv_epi8(_mm256_srli_epi16(even, 8), odd, high);
}

/* A unit of a plane for all lanes of 'count' sub-blocks, symbol by symbol, so that these wait for
 * one another's look-ups. */
INLINE void wide_unit(wide_reader *r, unsigned count, const lade__ans_lanes *lanes, unsigned p,
                      __m256i out[][EIGHTS])
{
	const uint32_t *table = lanes->table[p];
	__m256i window[SIDE][EIGHTS], more[SIDE][EIGHTS];
#pragma GCC unroll 2
	for (unsigned i = 0; i < count; i++)
		wide_window(&r[i], lanes[i].strings + ROWS_AT, window[i], more[i]);
#pragma GCC unroll 4
	for (unsigned k = 0; k < ANS_UNIT; k++) {
#pragma GCC unroll 2
		for (unsigned i = 0; i < count; i++) {
#pragma GCC unroll 4
			for (unsigned j = 0; j < EIGHTS; j++)
				wide_symbol(&r[i], k, j, table, &window[i][j], more[i][j]);
		}
	}
#pragma GCC unroll 2
	for (unsigned i = 0; i < count; i++) {
#pragma GCC unroll 4
		for (unsigned j = 0; j < EIGHTS; j++)
			out[i][j] = wide_symbols(&r[i], j);
	}
}

/* Stores a row, of which unit u is that of lane u - row. */
INLINE void wide_store(uint8_t *to, uint32_t row, const __m256i out[EIGHTS])
{
	const __m256i eight = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
	/* Lanes go on by row / 8 registers and row % 8 places, some to the next register. */
	__m256i by = _mm256_set1_epi32((int)(row % 8)), v[EIGHTS];
	__m256i next = _mm256_cmpgt_epi32(by, eight), from = _mm256_sub_epi32(eight, by);
#pragma GCC unroll 4
	for (unsigned j = 0; j < EIGHTS; j++)
		v[j] = _mm256_permutevar8x32_epi32(out[j], from);
#pragma GCC unroll 4
	for (unsigned j = 0; j < EIGHTS; j++)
		_mm256_storeu_si256((__m256i *)(to + 32 * ((j + row / 8) % EIGHTS)),
		                    _mm256_blendv_epi8(v[j], v[(j + EIGHTS - 1) % EIGHTS], next));
}

/* Which lanes have a unit of the last, partial row: unit u is lane (u - rows) mod 32's. */
INLINE void lanes_of_rest(const lade__ans_lanes *lanes, __m256i has[EIGHTS])
{
	uint32_t rows = lanes->units / ANS_LANES, rest = lanes->units % ANS_LANES;
	__m256i unit = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
	                                _mm256_set1_epi32((int)rows));
	for (unsigned j = 0; j < EIGHTS; j++) {
		__m256i at = _mm256_and_si256(unit, _mm256_set1_epi32(ANS_LANES - 1));
		has[j] = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)rest), at);
		unit = _mm256_add_epi32(unit, _mm256_set1_epi32(8));
	}
}

/* The partial row: lanes that have none of it stay where they are. */
static TARGET __attribute__((noinline)) void wide_rest(wide_reader *r, const lade__ans_lanes *lanes)
{
	uint32_t row = lanes->units / ANS_LANES, rest = lanes->units % ANS_LANES;
	wide_reader old = *r;
	__m256i has[EIGHTS], out[1][EIGHTS];
	uint8_t aside[4 * ANS_LANES];
	for (unsigned p = 0; p < lanes->coded; p++) {
		wide_unit(r, 1, lanes, p, out);
		wide_store(aside, row, out[0]);
		memcpy(lanes->plane[p] + 4 * ANS_LANES * (size_t)row, aside, 4 * (size_t)rest);
	}
	lanes_of_rest(lanes, has);
	for (unsigned j = 0; j < EIGHTS; j++) {
		r->left[j] = _mm256_blendv_epi8(old.left[j], r->left[j], has[j]);
		r->entry[3][j] = _mm256_blendv_epi8(old.entry[3][j], r->entry[3][j], has[j]);
	}
}

/* 'has' says which lanes have symbols.  False: a lane's state cannot be read, or it has one though
 * it has no symbols. */
INLINE bool wide_open(wide_reader *r, const lade__ans_lanes *lanes, const __m256i has[EIGHTS])
{
	const __m256i zero = _mm256_setzero_si256();
	const __m256i size = _mm256_set1_epi32((int)lanes->bits + 1);
	__m256i first[EIGHTS], second[EIGHTS], bad = zero;
	for (unsigned j = 0; j < EIGHTS; j++) {
		__m256i length = _mm256_loadu_si256((const __m256i *)(lanes->length + 8 * j));
		__m256i some = _mm256_cmpgt_epi32(length, zero);
		bad = _mm256_or_si256(bad, _mm256_xor_si256(some, has[j]));
		r->left[j] = _mm256_add_epi32(length, _mm256_set1_epi32(15));
	}
	wide_window(r, lanes->strings + ROWS_AT, first, second);
	for (unsigned j = 0; j < EIGHTS; j++) {
		/* The state's leading 1 is the first bit that is not 0, and is in the first half,
		 * so a float's exponent gives its place. */
		__m256i half = _mm256_srli_epi32(first[j], 16);
		__m256i real = _mm256_castps_si256(_mm256_cvtepi32_ps(half));
		__m256i zeros =
			_mm256_sub_epi32(_mm256_set1_epi32(127 + 15), _mm256_srli_epi32(real, 23));
		/* Less the leading 1. */
		__m256i bits = _mm256_slli_epi32(_mm256_sllv_epi32(first[j], zeros), 1);
		put(r->state + 8 * j,
		    _mm256_srl_epi32(bits, _mm_cvtsi32_si128(32 - (int)lanes->bits)));
		r->left[j] = _mm256_sub_epi32(r->left[j], _mm256_add_epi32(zeros, size));
		/* What is too short for a state does not end with its symbols either. */
		__m256i nothing = _mm256_cmpeq_epi32(half, zero);
		bad = _mm256_or_si256(bad, _mm256_and_si256(nothing, has[j]));
	}
	return _mm256_testz_si256(bad, bad);
}

/* The last symbol's bits are not there. */
INLINE bool wide_close(const wide_reader *r, const __m256i has[EIGHTS])
{
	__m256i bad = _mm256_setzero_si256();
	for (unsigned j = 0; j < EIGHTS; j++) {
		__m256i end = _mm256_add_epi32(r->left[j], taken_by(r->entry[3][j]));
		end = _mm256_xor_si256(end, _mm256_set1_epi32(15));
		bad = _mm256_or_si256(bad, _mm256_and_si256(end, has[j]));
	}
	return _mm256_testz_si256(bad, bad);
}

/* 'count' sub-blocks of one length; gives which are damaged.  Where one cannot be opened, nothing
 * is said about the others. */
INLINE unsigned decode_some(const lade__ans_lanes *lanes, unsigned count)
{
	wide_reader r[SIDE];
	__m256i has[EIGHTS];
	unsigned damaged = 0;
	uint32_t rows = lanes->units / ANS_LANES;
	if (rows)
		memset(has, 0xFF, sizeof has);
	else
		lanes_of_rest(lanes, has);
	for (unsigned i = 0; i < count; i++)
		damaged |= (unsigned)!wide_open(&r[i], &lanes[i], has) << i;
	if (damaged)
		return damaged;
	for (uint32_t g = 0; g < rows; g++) {
		for (unsigned p = 0; p < lanes->coded; p++) {
			__m256i out[SIDE][EIGHTS];
			wide_unit(r, count, lanes, p, out);
#pragma GCC unroll 2
			for (unsigned i = 0; i < count; i++)
				wide_store(lanes[i].plane[p] + 4 * ANS_LANES * (size_t)g, g,
				           out[i]);
		}
	}
	for (unsigned i = 0; i < count; i++) {
		if (lanes->units % ANS_LANES)
			wide_rest(&r[i], &lanes[i]);
		damaged |= (unsigned)!wide_close(&r[i], has) << i;
	}
	return damaged;
}

static TARGET __attribute__((noinline)) unsigned decode_one(const lade__ans_lanes *lanes)
{
	return decode_some(lanes, 1);
}

static TARGET __attribute__((noinline)) unsigned decode_two(const lade__ans_lanes *lanes)
{
	return decode_some(lanes, 2);
}

static TARGET unsigned decode(const lade__ans_lanes *lanes, unsigned count)
{
	unsigned damaged = 0, i = 0;
	/* Only a chunk's last one may be shorter. */
	for (; i + 1 < count && lanes[i].units == lanes[i + 1].units; i += 2) {
		if (decode_two(&lanes[i]))
			break;
	}
	for (; i < count; i++)
		damaged |= decode_one(&lanes[i]) << i;
	return damaged;
}
