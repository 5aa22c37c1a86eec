/*
 * encode_avx512.h: encoding with all 32 lanes in a register, and look-ups by VPERMI2B.  Included by
 * avx512.c after lanes.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * Writers of 32 lanes, 16 bits each, lane 0 first.  'past' has the last bits of the lanes' strings,
 * the latest on top of past[0]; 'length' bits were written.  A unit's go to the string with some
 * that are there already, so that no lane has bits that wait.
 */
#define PAST_MAX 4

/* 8 bytes for each lane's string, and where they end.  Number j of the first has lanes 8 q + 2 j
 * and the next one in its quarter q. */
typedef struct wide_bytes {
	uint64_t bytes[4][8];
	uint16_t end[ANS_LANES];
} wide_bytes;

/* Vectors are taken apart through memory, as shuffles would cost more; and this many units later,
 * as part of a vector that is not in the cache yet takes 1.5 cycles to load. */
#define DELAY 2

typedef struct wide_writer {
	__m512i state, length, past[PAST_MAX];
	wide_bytes *queue; /* DELAY of them */
	unsigned turn;
} wide_writer;

/* Numbers of 16 bits that go with the symbols of a unit, the last symbol's first: 'bits' for the
 * bits to give away, and 'first'. */
typedef struct wide_symbols {
	__m512i bits[ANS_UNIT], first[ANS_UNIT];
} wide_symbols;

/* What a table of bytes has for the bytes of two vectors; 'folded': only 128 entries count. */
INLINE void look_up(const uint8_t table[256], bool folded, const __m512i at[2],
                    const __mmask64 high[2], __m512i out[2])
{
	const __m512i t0 = _mm512_load_si512(table), t1 = _mm512_load_si512(table + 64);
	const __m512i t2 = _mm512_load_si512(table + 128), t3 = _mm512_load_si512(table + 192);
#pragma GCC unroll 2
	for (unsigned i = 0; i < 2; i++) {
		out[i] = _mm512_permutex2var_epi8(t0, at[i], t1);
		__m512i more = _mm512_permutex2var_epi8(t2, at[i], t3);
		out[i] = folded ? out[i] : _mm512_mask_blend_epi8(high[i], out[i], more);
	}
}

/* For row 'row' of a plane, of which 'size' bytes are there. */
INLINE wide_symbols wide_look_up(const lade__ans_encoder *encoder, bool folded,
                                 const uint8_t *plane, uint32_t row, unsigned size)
{
	/* Symbol 3 of units 8 q to 8 q + 7 in quarter q, then symbol 2. */
	const __m512i last = _mm512_add_epi8(
		_mm512_set1_epi64(0x1C1814100C080400),
		_mm512_setr_epi64(0x0303030303030303, 0x0202020202020202, 0x2323232323232323,
	                          0x2222222222222222, 0x4343434343434343, 0x4242424242424242,
	                          0x6363636363636363, 0x6262626262626262));
	const uint8_t *from = plane + 4 * ANS_LANES * (size_t)row;
	__m512i a, b;
	if (size == 4 * ANS_LANES) {
		a = _mm512_loadu_si512(from);
		b = _mm512_loadu_si512(from + 64);
	} else {
		unsigned behind = size > 64 ? size - 64 : 0;
		a = _mm512_maskz_loadu_epi8(_bzhi_u64(UINT64_MAX, size < 64 ? size : 64), from);
		b = _mm512_maskz_loadu_epi8(_bzhi_u64(UINT64_MAX, behind), from + 64);
	}
	/* Lane l has unit l + row; of places the lowest 7 bits count. */
	__m512i at = _mm512_add_epi8(last, _mm512_set1_epi8((char)(4 * row)));
	__m512i before = _mm512_sub_epi8(at, _mm512_set1_epi8(2));
	const __m512i symbol[2] = {_mm512_permutex2var_epi8(a, at, b),
	                           _mm512_permutex2var_epi8(a, before, b)};
	const __mmask64 high[2] = {_mm512_movepi8_mask(symbol[0]), _mm512_movepi8_mask(symbol[1])};
	__m512i to[4][2];
#pragma GCC unroll 4
	for (unsigned k = 0; k < 4; k++)
		look_up(encoder->look_up[k], folded, symbol, high, to[k]);
	wide_symbols u;
#pragma GCC unroll 2
	for (unsigned i = 0; i < 2; i++) {
		u.first[2 * i] = _mm512_unpacklo_epi8(to[0][i], to[1][i]);
		u.first[2 * i + 1] = _mm512_unpackhi_epi8(to[0][i], to[1][i]);
		u.bits[2 * i] = _mm512_unpacklo_epi8(to[2][i], to[3][i]);
		u.bits[2 * i + 1] = _mm512_unpackhi_epi8(to[2][i], to[3][i]);
	}
	return u;
}

/* Appends the low 'size' bits, at most 15, of the lanes' numbers. */
INLINE void wide_push(wide_writer *w, unsigned past, __m512i number, __m512i size)
{
#pragma GCC unroll 4
	for (unsigned j = past; j-- > 1;)
		w->past[j] = _mm512_shrdv_epi16(w->past[j], w->past[j - 1], size);
	w->past[0] = _mm512_shrdv_epi16(w->past[0], number, size);
	w->length = _mm512_add_epi16(w->length, size);
}

/* The bytes that have waited longest go to the strings. */
INLINE wide_bytes *wide_empty(wide_writer *w, uint8_t *strings)
{
	wide_bytes *oldest = &w->queue[w->turn++ % DELAY];
	__asm__ volatile("" : "+m"(*oldest));
#pragma GCC unroll 32
	for (unsigned l = 0; l < ANS_LANES; l++)
		store_64(strings + l * ANS_PITCH + oldest->end[l] - 8,
		         oldest->bytes[l % 8 / 2][l / 8 * 2 + l % 2]);
	return oldest;
}

/* Queues what was appended, at most 16 * past - 7 bits, and zeros behind it. */
INLINE void wide_flush(wide_writer *w, unsigned past, uint8_t *strings)
{
	const __m512i zero = _mm512_setzero_si512(), seven = _mm512_set1_epi16(7);
	__m512i shift = _mm512_and_si512(_mm512_sub_epi16(zero, w->length), seven);
	/* Above what the past has. */
	const __m512i more = _mm512_set1_epi16((short)(7 + 16 * (PAST_MAX - past)));
	__m512i end = _mm512_srli_epi16(_mm512_add_epi16(w->length, more), 3);
	__m512i half[PAST_MAX], pair[2][2];
	half[PAST_MAX - 1] = zero;
#pragma GCC unroll 4
	for (unsigned j = 0; j < past; j++)
		half[past - 1 - j] =
			_mm512_shrdv_epi16(w->past[j], j ? w->past[j - 1] : zero, shift);
#pragma GCC unroll 2
	for (unsigned k = 0; k < 2; k++) {
		pair[0][k] = _mm512_unpacklo_epi16(half[2 * k], half[2 * k + 1]);
		pair[1][k] = _mm512_unpackhi_epi16(half[2 * k], half[2 * k + 1]);
	}
	wide_bytes *to = wide_empty(w, strings);
#pragma GCC unroll 2
	for (unsigned k = 0; k < 2; k++) {
		_mm512_store_si512(to->bytes[2 * k], _mm512_unpacklo_epi32(pair[k][0], pair[k][1]));
		_mm512_store_si512(to->bytes[2 * k + 1],
		                   _mm512_unpackhi_epi32(pair[k][0], pair[k][1]));
	}
	_mm512_store_si512(to->end, end);
}

/* A unit's symbols, the last one first. */
INLINE void wide_write(wide_writer *w, unsigned past, const wide_symbols *u)
{
#pragma GCC unroll 4
	for (unsigned k = 0; k < ANS_UNIT; k++) {
		__m512i size = _mm512_srli_epi16(_mm512_add_epi16(w->state, u->bits[k]), 12);
		wide_push(w, past, w->state, size);
		w->state = _mm512_add_epi16(_mm512_srlv_epi16(w->state, size), u->first[k]);
	}
}

/* The same for the lanes 'has' alone; the last symbol of those in 'opens' only chooses the state,
 * the first of its own. */
INLINE void wide_begin(wide_writer *w, unsigned bits, const wide_symbols *u, __mmask32 has,
                      __mmask32 opens)
{
	/* The highest state gives the most bits away, and frequency << most is the lowest that
	 * does. */
	__m512i most = _mm512_srli_epi16(
		_mm512_add_epi16(u->bits[0], _mm512_set1_epi16((short)((2 << bits) - 1))), 12);
	__m512i least = _mm512_sub_epi16(_mm512_slli_epi16(most, 12), u->bits[0]);
	w->state = _mm512_mask_add_epi16(w->state, opens, _mm512_srlv_epi16(least, most),
	                                 u->first[0]);
	for (unsigned k = 0; k < ANS_UNIT; k++) {
		__mmask32 now = k ? has : has & ~opens;
		__m512i size = _mm512_maskz_srli_epi16(
			now, _mm512_add_epi16(w->state, u->bits[k]), 12);
		wide_push(w, PAST_MAX, w->state, size);
		w->state = _mm512_mask_add_epi16(w->state, now, _mm512_srlv_epi16(w->state, size),
		                                 u->first[k]);
	}
}

/* A row in which lanes open, or that not all have. */
static TARGET void open_row(wide_writer *w, const lade__ans_lanes *lanes, uint32_t row,
                            __mmask32 has, __mmask32 opens)
{
	unsigned units = lanes->units - row * ANS_LANES;
	for (unsigned p = lanes->coded; p-- > 0; opens = 0) {
		wide_symbols u = wide_look_up(lanes->encoder[p], lanes->encoder[p]->folded,
		                           lanes->plane[p], row,
		                           4 * (units < ANS_LANES ? units : ANS_LANES));
		wide_begin(w, lanes->bits, &u, has, opens);
		wide_flush(w, PAST_MAX, lanes->strings);
	}
}

/* Units of at most 16 * past - 7 bits. */
INLINE void whole_rows(wide_writer *writer, unsigned past, const lade__ans_lanes *lanes,
                       uint32_t rows)
{
	wide_writer w = *writer; /* strings' bytes may be anything's, but not a local variable's */
	size_t size = 4 * ANS_LANES * (size_t)lanes->width; /* of a row */
	while (rows-- > 0) {
		/* What may be behind the destination's end. */
		for (size_t i = rows * size; i < (rows + 1) * size; i += 64)
			__builtin_prefetch((const void *)((uintptr_t)lanes->result + i), 1);
		for (unsigned p = lanes->coded; p-- > 0;) {
			const lade__ans_encoder *encoder = lanes->encoder[p];
			const uint8_t *plane = lanes->plane[p];
			wide_symbols u;
			if (encoder->folded)
				u = wide_look_up(encoder, true, plane, rows, 4 * ANS_LANES);
			else
				u = wide_look_up(encoder, false, plane, rows, 4 * ANS_LANES);
			wide_write(&w, past, &u);
			wide_flush(&w, past, lanes->strings);
		}
	}
	*writer = w;
}

static TARGET void encode(lade__ans_lanes *lanes)
{
	const __m512i zero = _mm512_setzero_si512();
	uint32_t rows = lanes->units / ANS_LANES, rest = lanes->units % ANS_LANES;
	_Alignas(64) wide_bytes queue[DELAY];
	wide_writer w = {zero, zero, {zero, zero, zero, zero}, queue, 0};
	memset(queue, 0, sizeof queue);
	/* Of the partial row lane l has unit l + rows. */
	__mmask32 has = _bzhi_u32(UINT32_MAX, rest);
	has = rows % 32 ? has >> rows % 32 | has << (32 - rows % 32) : has;
	if (rest)
		open_row(&w, lanes, rows, has, has);
	if (rows) {
		open_row(&w, lanes, rows - 1, UINT32_MAX, ~has);
		if (lanes->bits * ANS_UNIT <= 16 * 3 - 7)
			whole_rows(&w, 3, lanes, rows - 1);
		else
			whole_rows(&w, 4, lanes, rows - 1);
	}
	/* The lanes' first states. */
	wide_push(&w, 3, w.state,
	          _mm512_maskz_set1_epi16(rows ? UINT32_MAX : has, (short)(lanes->bits + 1)));
	wide_flush(&w, 3, lanes->strings);
	for (unsigned i = 0; i < DELAY; i++)
		wide_empty(&w, lanes->strings);
	__m512i length = _mm512_and_si512(_mm512_add_epi16(w.length, _mm512_set1_epi16(15)),
	                                  _mm512_set1_epi16(~15));
	_mm512_storeu_si512(lanes->length,
	                    _mm512_cvtepu16_epi32(_mm512_castsi512_si256(length)));
	_mm512_storeu_si512(lanes->length + 16,
	                    _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(length, 1)));
}
