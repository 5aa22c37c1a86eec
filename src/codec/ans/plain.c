/*
 * plain.c: the loops of the ANS format in plain C, and the choice of an instruction set's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define TARGET
#include "codec/ans/lanes.h"

/* Lanes that one loop works on, so that their chains overlap. */
#define TEAM 4

/* As many of a number's low bits as the low 6 of 'n' say. */
INLINE uint64_t low_bits(uint64_t v, uint32_t n)
{
	return v & (((uint64_t)1 << (n & 63)) - 1);
}

INLINE void store_32(uint8_t *p, uint32_t v)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	v = __builtin_bswap32(v);
#endif
	memcpy(p, &v, 4);
}

/* The units of lane 'lane': row g of a sub-block is 32 units, of which it has the (lane + g)th. */
INLINE uint32_t unit_of(uint32_t lane, uint32_t row)
{
	return row * ANS_LANES + ((lane + row) % ANS_LANES);
}

/* ---- decoding --------------------------------------------------------------------------- */

/*
 * A lane while it decodes.  'left' bits of its string are not read yet; below 0 for a damaged one,
 * and then for good.
 */
typedef struct lane_reader {
	const uint8_t *string;
	uint64_t state;
	int64_t left;
	uint32_t last; /* what the last symbol took, though it has no bits */
} lane_reader;

/* The state's leading 1 is the first bit that is not 0, and is in the string's top half. */
INLINE bool reader_open(lane_reader *r, const uint8_t *string, uint32_t length, unsigned bits)
{
	uint64_t top = lade__le64(string + length / 8 - 8);
	*r = (lane_reader){.string = string};
	if (!length || !(top >> 48))
		return false;
	unsigned zeros = (unsigned)__builtin_clzll(top);
	r->left = (int64_t)length - zeros - bits - 1;
	r->state = (top << zeros >> (63 - bits)) - (1U << bits);
	return r->left >= 0;
}

/* The next 4 symbols of a plane, the first in the low byte.  They take at most 44 bits, and one
 * load has 56 or more. */
INLINE uint32_t reader_unit(lane_reader *r, const uint32_t *table)
{
	uint64_t window = lade__le64(r->string + (r->left >> 3) - 7);
	uint64_t have = (uint64_t)(r->left & 7) + 56, state = r->state;
	uint32_t out = 0, entry = 0;
#pragma GCC unroll 4
	for (unsigned k = 0; k < ANS_UNIT; k++) {
		entry = table[state];
		have -= entry; /* its low byte counts */
		state = (entry >> 16) + low_bits(window >> (have & 63), entry);
		out |= (entry >> 8 & 0xFF) << 8 * k;
	}
	r->left = (r->left & ~(int64_t)7) - 56 + (int64_t)(have & 0xFF);
	r->state = state;
	r->last = entry & 0xFF;
	return out;
}

/* The lane's unit of the last, partial row, if it has one; whether the string ends there. */
INLINE bool reader_close(lane_reader *r, const lade__ans_lanes *lanes, uint32_t lane)
{
	uint32_t rows = lanes->units / ANS_LANES, rest = lanes->units % ANS_LANES;
	if ((lane + rows) % ANS_LANES < rest) {
		for (unsigned p = 0; p < lanes->coded; p++)
			store_32(lanes->plane[p] + 4 * unit_of(lane, rows),
			         reader_unit(r, lanes->table[p]));
	}
	return r->left + r->last == 0;
}

/* A unit of a plane for each lane of a team, symbol by symbol: so that the lanes' chains overlap
 * without the processor having to look far ahead. */
INLINE void reader_row(lane_reader *r, const uint32_t *table, uint32_t lane, uint32_t row,
                       uint8_t *plane)
{
	uint64_t window[TEAM], have[TEAM], state[TEAM];
	uint32_t out[TEAM], entry[TEAM];
#pragma GCC unroll 8
	for (uint32_t j = 0; j < TEAM; j++) {
		window[j] = lade__le64(r[j].string + (r[j].left >> 3) - 7);
		have[j] = (uint64_t)(r[j].left & 7) + 56;
		state[j] = r[j].state;
		out[j] = 0;
	}
#pragma GCC unroll 4
	for (unsigned k = 0; k < ANS_UNIT; k++) {
#pragma GCC unroll 8
		for (uint32_t j = 0; j < TEAM; j++) {
			entry[j] = table[state[j]];
			have[j] -= entry[j]; /* its low byte counts */
			state[j] =
				(entry[j] >> 16) + low_bits(window[j] >> (have[j] & 63), entry[j]);
			out[j] |= (entry[j] >> 8 & 0xFF) << 8 * k;
		}
	}
#pragma GCC unroll 8
	for (uint32_t j = 0; j < TEAM; j++) {
		r[j].left = (r[j].left & ~(int64_t)7) - 56 + (int64_t)(have[j] & 0xFF);
		r[j].state = state[j];
		r[j].last = entry[j] & 0xFF;
		store_32(plane + 4 * unit_of(lane + j, row), out[j]);
	}
}

/* Lanes [lane, lane + TEAM): the full rows together, each one's unit of the last row alone. */
INLINE bool decode_team(const lade__ans_lanes *lanes, uint32_t lane)
{
	lane_reader reader[TEAM];
	uint32_t rows = lanes->units / ANS_LANES, rest = lanes->units % ANS_LANES;
	bool fine = true;
#pragma GCC unroll 8
	for (uint32_t j = 0; j < TEAM; j++) {
		bool open = reader_open(&reader[j], lanes->strings + (lane + j) * ANS_PITCH,
		                        lanes->length[lane + j], lanes->bits);
		bool has = rows || (lane + j + rows) % ANS_LANES < rest;
		fine &= has ? open : !lanes->length[lane + j];
	}
	if (!fine)
		return false;
	for (uint32_t g = 0; g < rows; g++) {
		for (unsigned p = 0; p < lanes->coded; p++) {
			reader_row(reader, lanes->table[p], lane, g, lanes->plane[p]);
		}
	}
	for (uint32_t j = 0; j < TEAM; j++)
		fine &= reader_close(&reader[j], lanes, lane + j);
	return fine;
}

static unsigned decode(const lade__ans_lanes *lanes, unsigned count)
{
	unsigned damaged = 0;
	for (unsigned i = 0; i < count; i++) {
		uint32_t lane = 0;
		while (lane < ANS_LANES && decode_team(&lanes[i], lane))
			lane += TEAM;
		damaged |= (unsigned)(lane < ANS_LANES) << i;
	}
	return damaged;
}

/* ---- encoding --------------------------------------------------------------------------- */

/*
 * A lane while it encodes, from its last symbol to its first: 'count' bits of 'bits' are not
 * written yet, below 8 between units, and the state stands above them.  As a number, these change
 * by a symbol's 'first' above the bits that it gives away, and by nothing else: what is given away
 * is there already.
 */
typedef struct lane_writer {
	uint8_t *string;
	uint64_t bits;
	uint64_t count;
} lane_writer;

INLINE uint64_t writer_symbol(lane_writer *w, uint64_t state, const lade__ans_symbol *s)
{
	uint64_t size = (uint32_t)(state + s->bits) >> 16, first = s->first;
	w->count += size;
	w->bits += first << (w->count & 63);
	return (state >> (size & 63)) + first;
}

INLINE void writer_flush(lane_writer *w)
{
	store_64(w->string, w->bits);
	w->string += w->count / 8;
	w->bits >>= w->count & 56;
	w->count &= 7;
}

/* Symbols 'k' to 0 of a unit: at most 44 bits, and 12 of the state. */
INLINE void writer_unit(lane_writer *w, const lade__ans_encoder *encoder, uint32_t word, int k)
{
	uint64_t state = w->bits >> w->count;
#pragma GCC unroll 4
	for (; k >= 0; k--)
		state = writer_symbol(w, state, &encoder->symbol[word >> 8 * k & 0xFF]);
	writer_flush(w);
}

/* A lane's last unit: its last symbol only chooses the state. */
INLINE void writer_open(lane_writer *w, const lade__ans_lanes *lanes, uint32_t unit)
{
	unsigned p = lanes->coded - 1;
	uint32_t word = lade__le32(lanes->plane[p] + 4 * unit);
	w->bits = lanes->encoder[p]->start[word >> 24];
	writer_unit(w, lanes->encoder[p], word, 2);
	while (p-- > 0)
		writer_unit(w, lanes->encoder[p], lade__le32(lanes->plane[p] + 4 * unit), 3);
}

/* What a lane has in the last full row and the partial one behind it, if there are such. */
INLINE void writer_first(lane_writer *w, const lade__ans_lanes *lanes, uint32_t lane)
{
	uint32_t rows = lanes->units / ANS_LANES, rest = lanes->units % ANS_LANES;
	bool more = (lane + rows) % ANS_LANES < rest;
	*w = (lane_writer){.string = lanes->strings + lane * ANS_PITCH};
	if (more)
		writer_open(w, lanes, unit_of(lane, rows));
	if (!more && rows)
		writer_open(w, lanes, unit_of(lane, rows - 1));
	else if (rows)
		for (unsigned p = lanes->coded; p-- > 0;)
			writer_unit(w, lanes->encoder[p],
			            lade__le32(lanes->plane[p] + 4 * unit_of(lane, rows - 1)), 3);
}

/* The lane's first state, and its string's length. */
INLINE void writer_last(lane_writer *w, lade__ans_lanes *lanes, uint32_t lane)
{
	if (lanes->units >= ANS_LANES || lane < lanes->units)
		w->count += lanes->bits + 1;
	uint32_t size = (uint32_t)(w->string - (lanes->strings + lane * ANS_PITCH));
	lanes->length[lane] = (size * 8 + (uint32_t)w->count + 15) / 16 * 16;
	/* Zeros follow to the end of the last word. */
	store_64(w->string, w->bits);
}

/* A unit of a plane for each lane of a team, as reader_row(). */
INLINE void writer_row(lane_writer *w, const lade__ans_encoder *encoder, uint32_t lane,
                       uint32_t row, const uint8_t *plane)
{
	uint32_t word[TEAM];
	uint64_t state[TEAM];
#pragma GCC unroll 8
	for (uint32_t j = 0; j < TEAM; j++) {
		word[j] = lade__le32(plane + 4 * unit_of(lane + j, row));
		state[j] = w[j].bits >> w[j].count;
	}
#pragma GCC unroll 4
	for (int k = 3; k >= 0; k--) {
#pragma GCC unroll 8
		for (uint32_t j = 0; j < TEAM; j++)
			state[j] = writer_symbol(&w[j], state[j],
			                         &encoder->symbol[word[j] >> 8 * k & 0xFF]);
	}
#pragma GCC unroll 8
	for (uint32_t j = 0; j < TEAM; j++)
		writer_flush(&w[j]);
}

INLINE void encode_team(lade__ans_lanes *lanes, uint32_t lane)
{
	lane_writer writer[TEAM];
	uint32_t rows = lanes->units / ANS_LANES;
#pragma GCC unroll 8
	for (uint32_t j = 0; j < TEAM; j++)
		writer_first(&writer[j], lanes, lane + j);
	for (uint32_t g = rows > 0 ? rows - 1 : 0; g-- > 0;) {
		for (unsigned p = lanes->coded; p-- > 0;) {
			writer_row(writer, lanes->encoder[p], lane, g, lanes->plane[p]);
		}
	}
#pragma GCC unroll 8
	for (uint32_t j = 0; j < TEAM; j++)
		writer_last(&writer[j], lanes, lane + j);
}

static void encode(lade__ans_lanes *lanes)
{
	for (uint32_t lane = 0; lane < ANS_LANES; lane += TEAM)
		encode_team(lanes, lane);
}

/* ---- strings ---------------------------------------------------------------------------- */

static void gather(uint8_t *strings, const uint8_t *words, const unsigned halves[ANS_LANES],
                   unsigned full)
{
	unsigned most = 0;
	/* 16 rows at once: a line of each string. */
	for (unsigned at = 0; at < full; at += 16) {
		unsigned n = full - at < 16 ? full - at : 16;
		for (size_t l = 0; l < ANS_LANES; l++) {
			for (unsigned r = at; r < at + n; r++)
				memcpy(strings + l * ANS_PITCH + 4 * (size_t)r,
				       words + 4 * (r * ANS_LANES + l), 4);
		}
	}
	words += 4 * (size_t)full * ANS_LANES;
	for (size_t l = 0; l < ANS_LANES; l++)
		most = halves[l] > most ? halves[l] : most;
	for (unsigned r = full; 2 * r < most; r++) {
		for (size_t l = 0; l < ANS_LANES; l++) {
			if (halves[l] <= 2 * r)
				continue;
			uint8_t *to = strings + l * ANS_PITCH + 4 * (size_t)r;
			memcpy(to, words, 2);
			words += 2;
			if (halves[l] == 2 * r + 1)
				continue;
			memcpy(to + 2, words, 2);
			words += 2;
		}
	}
}

static void scatter(const uint8_t *strings, uint8_t *words, const uint32_t length[ANS_LANES],
                    unsigned full)
{
	for (unsigned at = 0; at < full; at += 16) {
		unsigned n = full - at < 16 ? full - at : 16;
		for (size_t l = 0; l < ANS_LANES; l++) {
			for (unsigned r = at; r < at + n; r++)
				memcpy(words + 4 * (r * ANS_LANES + l),
				       strings + l * ANS_PITCH + 4 * (size_t)r, 4);
		}
	}
	words += 4 * (size_t)full * ANS_LANES;
	unsigned most = 0;
	for (size_t l = 0; l < ANS_LANES; l++)
		most = length[l] > most ? length[l] : most;
	for (unsigned r = full; 32 * r < most; r++) {
		for (size_t l = 0; l < ANS_LANES; l++) {
			const uint8_t *from = strings + l * ANS_PITCH + 4 * (size_t)r;
			if (length[l] <= 32 * r)
				continue;
			memcpy(words, from, 2);
			words += 2;
			if (length[l] == 32 * r + 16)
				continue;
			memcpy(words, from + 2, 2);
			words += 2;
		}
	}
}

const lade__ans_kernels lade__ans_plain = {
	LADE_CPU_PLAIN, false, decode, encode, gather, scatter, cross, count_by_tables,
};

const lade__ans_kernels *lade__ans_kernels_of(lade_cpu cpu)
{
#if defined(__x86_64__)
	if (cpu >= LADE_CPU_AVX512)
		return &lade__ans_avx512;
	if (cpu >= LADE_CPU_AVX2)
		return &lade__ans_avx2;
#endif
	(void)cpu;
	return &lade__ans_plain;
}
