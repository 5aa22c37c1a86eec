/*
 * encode_avx2.h: encoding with the 32 lanes in four registers, 32 bits each.  Included by avx2.c
 * after decode_avx2.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * Writers of 32 lanes.  'past' has the last 64 bits of the lanes' strings, the latest on top of
 * past[0]; 'length' bits were written.  A unit's go to the string with some that are there already,
 * so that no lane has bits that wait.
 */
typedef struct wide_writer {
	__m256i state[EIGHTS], length[EIGHTS], past[2][EIGHTS];
} wide_writer;

/* 8 bytes for each lane's string, of lanes 0, 1, 4, 5, 2, 3, 6 and 7 of each eight; and where they
 * end. */
typedef struct wide_bytes {
	_Alignas(32) uint64_t bytes[ANS_LANES];
	uint32_t end[ANS_LANES];
} wide_bytes;

/* A row's symbols, lane by lane, of units of which 'count' are there. */
INLINE void wide_load(const uint8_t *plane, uint32_t row, uint32_t count, uint8_t *to)
{
	const uint8_t *from = plane + 4 * ANS_LANES * (size_t)row;
	/* Lane l has unit l + row: some come from the next register. */
	__m256i at = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
	                              _mm256_set1_epi32((int)(row % 8)));
	__m256i next = _mm256_cmpgt_epi32(at, _mm256_set1_epi32(7)), v[EIGHTS];
	uint8_t aside[4 * ANS_LANES];
	if (count < ANS_LANES)
		from = memcpy(aside, from, 4 * (size_t)count);
#pragma GCC unroll 4
	for (unsigned j = 0; j < EIGHTS; j++) {
		const uint8_t *eight = from + 32 * ((j + row / 8) % EIGHTS);
		v[j] = _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i *)eight), at);
	}
#pragma GCC unroll 4
	for (unsigned j = 0; j < EIGHTS; j++)
		put(to + 32 * j, _mm256_blendv_epi8(v[j], v[(j + 1) % EIGHTS], next));
}

/* The numbers of a symbol each of 8 units; 'symbol' is the first one's. */
INLINE __m256i numbers_of(const uint32_t number[256], const uint8_t *symbol)
{
#define SYMBOL(i) symbol[4 * (i)]
	return EIGHT_OF(number, SYMBOL);
}

/* What a symbol's number has for states: the bits to give away, and 'first'. */
INLINE __m256i size_of(__m256i number, __m256i state)
{
	return _mm256_srli_epi32(_mm256_add_epi32(_mm256_slli_epi32(state, 16), number), 28);
}

INLINE __m256i first_of(__m256i number)
{
	return _mm256_and_si256(number, _mm256_set1_epi32(0xFFFF));
}

/* Appends the low 'size' bits, at most 31, of 8 lanes' numbers. */
INLINE void wide_push(wide_writer *w, unsigned j, __m256i bits, __m256i size)
{
	__m256i up = _mm256_sub_epi32(_mm256_set1_epi32(32), size);
	w->past[1][j] = _mm256_or_si256(_mm256_srlv_epi32(w->past[1][j], size),
	                                _mm256_sllv_epi32(w->past[0][j], up));
	w->past[0][j] = _mm256_or_si256(_mm256_srlv_epi32(w->past[0][j], size),
	                                _mm256_sllv_epi32(bits, up));
	w->length[j] = _mm256_add_epi32(w->length[j], size);
}

/* What was appended to 8 lanes, at most 64 bits less 'unit', with zeros to a multiple of that. */
INLINE void wide_flush(const wide_writer *w, unsigned j, int unit, wide_bytes *to)
{
	const __m256i over = _mm256_set1_epi32(unit - 1);
	__m256i down =
		_mm256_and_si256(_mm256_sub_epi32(_mm256_setzero_si256(), w->length[j]), over);
	__m256i end = _mm256_srli_epi32(_mm256_add_epi32(w->length[j], down), 3);
	__m256i high = _mm256_srlv_epi32(w->past[0][j], down);
	__m256i low = _mm256_or_si256(
		_mm256_srlv_epi32(w->past[1][j], down),
		_mm256_sllv_epi32(w->past[0][j], _mm256_sub_epi32(_mm256_set1_epi32(32), down)));
	put(to->bytes + 8 * j, _mm256_unpacklo_epi32(low, high));
	put(to->bytes + 8 * j + 4, _mm256_unpackhi_epi32(low, high));
	put(to->end + 8 * j, end);
}

/* The bytes go to the strings. */
INLINE void wide_empty(const wide_bytes *from, uint8_t *strings)
{
	static const uint8_t place[8] = {0, 1, 4, 5, 2, 3, 6, 7};
#pragma GCC unroll 32
	for (unsigned l = 0; l < ANS_LANES; l++)
		store_64(strings + l * ANS_PITCH + from->end[l] - 8,
		         from->bytes[l / 8 * 8 + place[l % 8]]);
}

/* A unit of each of 8 lanes, the last symbol first. */
INLINE void write_eight(wide_writer *w, unsigned j, const uint32_t number[256], const uint8_t *unit)
{
#pragma GCC unroll 2
	for (unsigned k = 3; k < 4; k -= 2) {
		/* Both symbols' bits, with the state on top, as in lane_writer. */
		__m256i a = numbers_of(number, unit + k), b = numbers_of(number, unit + k - 1);
		__m256i state = w->state[j], size = size_of(a, state);
		__m256i bits = _mm256_add_epi32(state, _mm256_sllv_epi32(first_of(a), size));
		state = _mm256_add_epi32(_mm256_srlv_epi32(state, size), first_of(a));
		__m256i more = size_of(b, state);
		size = _mm256_add_epi32(size, more);
		bits = _mm256_add_epi32(bits, _mm256_sllv_epi32(first_of(b), size));
		w->state[j] = _mm256_add_epi32(_mm256_srlv_epi32(state, more), first_of(b));
		wide_push(w, j, bits, size);
	}
}

/* Of eight lanes, those that have a unit, and those for which it is the first one. */
typedef struct wide_lanes {
	__m256i has, opens;
} wide_lanes;

/* The same of the lanes that have the unit alone; the last symbol of those that open only chooses
 * the state, the first of its own. */
INLINE void begin_eight(wide_writer *w, unsigned j, unsigned bits, const uint32_t number[256],
                        const uint8_t *unit, wide_lanes which)
{
	__m256i has = which.has, opens = which.opens;
	const __m256i highest = _mm256_set1_epi32((2 << bits) - 1);
	for (unsigned k = ANS_UNIT; k-- > 0; opens = _mm256_setzero_si256()) {
		__m256i a = numbers_of(number, unit + k), state = w->state[j];
		__m256i now = _mm256_andnot_si256(opens, has);
		__m256i size = _mm256_and_si256(size_of(a, state), now);
		__m256i next = _mm256_add_epi32(_mm256_srlv_epi32(state, size), first_of(a));
		/* The highest state gives the most bits away, and frequency << most is the lowest
		 * that does. */
		__m256i most = size_of(a, highest);
		__m256i least =
			_mm256_sub_epi32(_mm256_slli_epi32(most, 12), _mm256_srli_epi32(a, 16));
		__m256i frequency = _mm256_srlv_epi32(first_of(least), most);
		wide_push(w, j, state, size);
		state = _mm256_blendv_epi8(state, next, now);
		w->state[j] =
			_mm256_blendv_epi8(state, _mm256_add_epi32(frequency, first_of(a)), opens);
	}
}

/* A row in which lanes open, or that not all have. */
static TARGET __attribute__((noinline)) void open_row(wide_writer *w, const lade__ans_lanes *lanes,
                                                      uint32_t row, const __m256i has[EIGHTS],
                                                      const __m256i opens[EIGHTS])
{
	uint32_t units = lanes->units - row * ANS_LANES;
	_Alignas(32) uint8_t symbols[4 * ANS_LANES];
	wide_bytes bytes;
	for (unsigned p = lanes->coded; p-- > 0;) {
		wide_load(lanes->plane[p], row, units, symbols);
		for (unsigned j = 0; j < EIGHTS; j++) {
			wide_lanes which = {has[j], _mm256_setzero_si256()};
			if (p + 1 == lanes->coded)
				which.opens = opens[j];
			begin_eight(w, j, lanes->bits, lanes->encoder[p]->number, symbols + 32 * j,
			            which);
			wide_flush(w, j, 8, &bytes);
		}
		wide_empty(&bytes, lanes->strings);
	}
}

/* Rows [0, rows), from the last one on.  A unit's symbols are brought, and its bytes taken away,
 * while the next one is encoded, as loads of what was just stored are slow. */
INLINE void whole_rows(wide_writer *writer, const lade__ans_lanes *lanes, uint32_t rows)
{
	_Alignas(32) uint8_t symbols[2][4 * ANS_LANES];
	wide_bytes queue[2];
	wide_writer w = *writer; /* strings' bytes may be anything's, but not a local variable's */
	unsigned turn = 0, last = lanes->coded - 1;
	memset(queue, 0, sizeof queue);
	if (rows)
		wide_load(lanes->plane[last], rows - 1, ANS_LANES, symbols[0]);
	size_t size = 4 * ANS_LANES * (size_t)lanes->width; /* of a row */
	while (rows-- > 0) {
		/* What may be behind the destination's end. */
		for (size_t i = rows * size; i < (rows + 1) * size; i += 64)
			__builtin_prefetch((const void *)((uintptr_t)lanes->result + i), 1);
		for (unsigned p = lanes->coded; p-- > 0; turn ^= 1) {
			if (p || rows)
				wide_load(lanes->plane[p ? p - 1 : last], p ? rows : rows - 1,
				          ANS_LANES, symbols[turn ^ 1]);
			wide_empty(&queue[turn], lanes->strings);
#pragma GCC unroll 4
			for (unsigned j = 0; j < EIGHTS; j++) {
				write_eight(&w, j, lanes->encoder[p]->number,
				            symbols[turn] + 32 * j);
				wide_flush(&w, j, 8, &queue[turn]);
			}
		}
	}
	wide_empty(&queue[turn], lanes->strings);
	wide_empty(&queue[turn ^ 1], lanes->strings);
	*writer = w;
}

static TARGET void encode(lade__ans_lanes *lanes)
{
	const __m256i size = _mm256_set1_epi32((int)lanes->bits + 1), over = _mm256_set1_epi32(15);
	uint32_t rows = lanes->units / ANS_LANES, rest = lanes->units % ANS_LANES;
	__m256i has[EIGHTS], all[EIGHTS], others[EIGHTS];
	wide_writer w;
	wide_bytes bytes;
	memset(&w, 0, sizeof w);
	lanes_of_rest(lanes, has);
	for (unsigned j = 0; j < EIGHTS; j++) {
		all[j] = _mm256_set1_epi32(-1);
		others[j] = _mm256_xor_si256(has[j], all[j]);
	}
	if (rest)
		open_row(&w, lanes, rows, has, has);
	if (rows) {
		open_row(&w, lanes, rows - 1, all, others);
		whole_rows(&w, lanes, rows - 1);
	}
	/* The lanes' first states, and zeros to the end of a half. */
	for (unsigned j = 0; j < EIGHTS; j++) {
		wide_push(&w, j, w.state[j], rows ? size : _mm256_and_si256(size, has[j]));
		wide_flush(&w, j, 16, &bytes);
		__m256i length = _mm256_andnot_si256(over, _mm256_add_epi32(w.length[j], over));
		_mm256_storeu_si256((__m256i *)(lanes->length + 8 * j), length);
	}
	wide_empty(&bytes, lanes->strings);
}
