/*
 * zstd_sequences.cuh: sequences (RFC 8878, 3.1.1.3.2): one warp reads them, another executes them.
 *
 * A sequence's bits are known only when those of all before it are.  So one lane walks from state
 * to state, and leaves behind where each sequence's bits begin and its three states; then a lane a
 * sequence reads its numbers.  Rounds of 32 sequences go to the other warp by a ring.  That warp
 * finds the offsets that repeat: each sequence is a map of the last three offsets, and maps are
 * composed by a scan.  Then it hands the round to the executor (lz_exec.cuh).
 *
 * Bounds: a round takes 32 * 89 bits at most, and so much stands in front of it in 'words'; states
 * stay in their tables.  Literals, offsets and sizes are checked before a round is executed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_ZSTD_SEQUENCES_CUH
#define LADE_CUDA_ZSTD_SEQUENCES_CUH

#include "codec/lz/kernels/lz_exec.cuh"
#include "codec/zstd/kernels/zstd_fse.cuh"

#define LADE_ZSTD_SLOTS 4u /* rounds of the ring */
#define LADE_ZSTD_ROUND_WORDS 92u /* more than 32 * 89 bits */
#define LADE_ZSTD_LENGTH_LOG 9u
#define LADE_ZSTD_OFFSET_LOG 8u

/* Named barriers of the warps of a block. */
#define LADE_ZSTD_BAR_LITERALS 1u
#define LADE_ZSTD_BAR_FULL 2u /* and those of the other slots */
#define LADE_ZSTD_BAR_EMPTY 6u

/* A round on its way from warp to warp. */
struct lade_zstd_slot {
	uint32_t literals[32], match[32], offset[32]; /* as the format has it: 1 to 3 repeat */
	uint32_t count;                               /* sequences; 0: they are wrong */
};

struct lade_zstd_seen {
	uint32_t at, states;
};

/* The warp that reads sequences. */
struct lade_zstd_walker {
	lade_zstd_maker maker;
	uint32_t lengths[1u << LADE_ZSTD_LENGTH_LOG], matches[1u << LADE_ZSTD_LENGTH_LOG];
	uint32_t offsets[1u << LADE_ZSTD_OFFSET_LOG];
	lade_zstd_seen seen[32];
	uint32_t log[3]; /* of the tables, by what they are for; LADE_ZSTD_NO_TABLE: none yet */
	uint32_t at;
};
#define LADE_ZSTD_NO_TABLE 32u

/* ---- tables -------------------------------------------------------------------------------- */

static __device__ __forceinline__ uint32_t *lade_zstd_table_of(lade_zstd_walker *w, int kind)
{
	return kind == LADE_ZSTD_LENGTHS ? w->lengths
	       : kind == LADE_ZSTD_OFFSETS ? w->offsets
	                                   : w->matches;
}

/* Makes the table of a kind, by its mode; its description is at byte '*at' of the words, which end
 * before 'end'.  Whether it is right. */
static __device__ __noinline__ bool lade_zstd_table_read(lade_zstd_walker *w, int kind,
                                                         uint32_t mode, uint32_t *at, uint32_t end,
                                                         uint32_t lane)
{
	uint32_t symbols = kind == LADE_ZSTD_LENGTHS ? 36 : kind == LADE_ZSTD_OFFSETS ? 32 : 53;
	uint32_t log = kind == LADE_ZSTD_OFFSETS ? 5 : 6;
	uint32_t *table = lade_zstd_table_of(w, kind);
	if (mode == LADE_ZSTD_REPEAT)
		return w->log[kind] != LADE_ZSTD_NO_TABLE;
	if (mode == LADE_ZSTD_RLE) {
		uint32_t s = ((const uint8_t *)w->maker.words)[*at];
		if (*at >= end || s >= symbols)
			return false;
		(*at)++;
		log = 0;
		if (lane == 0)
			table[0] = lade_zstd_meaning(kind, s);
	} else if (mode == LADE_ZSTD_RAW) {
		for (uint32_t s = lane; s < symbols; s += 32)
			w->maker.count[s] = (int16_t)lade_zstd_predefined(kind, s);
	} else {
		log = 0;
		if (lane == 0)
			log = lade_zstd_counts_read(&w->maker, at, end, symbols,
			                            kind == LADE_ZSTD_OFFSETS
			                                    ? LADE_ZSTD_OFFSET_LOG
			                                    : LADE_ZSTD_LENGTH_LOG);
		log = __shfl_sync(LADE_FULL, log, 0);
		*at = __shfl_sync(LADE_FULL, *at, 0);
		if (log == 0)
			return false;
	}
	if (log)
		lade_zstd_table_make(&w->maker, table, kind, log, symbols, lane);
	__syncwarp();
	if (lane == 0)
		w->log[kind] = log;
	__syncwarp();
	return true;
}

/* Makes the three tables of a block whose content ends at 'end'; *at is then where its bits
 * begin. */
static __device__ __forceinline__ bool lade_zstd_tables_read(lade_zstd_walker *w,
                                                             const uint8_t *src, uint32_t *at,
                                                             uint32_t end, uint32_t modes,
                                                             uint32_t lane)
{
	uint32_t most = end - *at < 380 ? end - *at : 380, p = 0;
	lade_zstd_fetch(&w->maker, src, *at, end, lane);
	if (!lade_zstd_table_read(w, LADE_ZSTD_LENGTHS, modes >> 6, &p, most, lane) ||
	    !lade_zstd_table_read(w, LADE_ZSTD_OFFSETS, modes >> 4 & 3, &p, most, lane) ||
	    !lade_zstd_table_read(w, LADE_ZSTD_MATCHES, modes >> 2 & 3, &p, most, lane))
		return false;
	*at += p;
	return true;
}

/* ---- the walk ------------------------------------------------------------------------------ */

static __device__ __forceinline__ uint32_t lade_zstd_low(uint32_t value, uint32_t bits)
{
	return value & ((1u << bits) - 1);
}

/* Where the walk stands: bits that are left, and states. */
struct lade_zstd_walk {
	int32_t left;
	uint32_t lengths, matches, offsets;
};

/* Brings the words before bit 'left' of the stream in [at, end) to the walker; that bit's number
 * in them. */
static __device__ __forceinline__ uint32_t lade_zstd_bring(lade_zstd_walker *w, const uint8_t *src,
                                                           uint32_t at, uint32_t end, int32_t left,
                                                           uint32_t lane)
{
	int32_t first = left / 32 - (int32_t)LADE_ZSTD_ROUND_WORDS;
	__syncwarp();
#pragma unroll
	for (uint32_t i = lane; i < 96; i += 32) {
		int32_t word = first + (int32_t)i;
		/* Words before the stream are 0. */
		w->maker.words[i] =
			word < 0 ? 0 : lade_zstd_word(src, at, end, (int32_t)at + 4 * word);
	}
	__syncwarp();
	return (uint32_t)(left - 32 * first);
}

/* Walks 'count' sequences, by one lane; of the last one of a block no states are read. */
static __device__ __forceinline__ void lade_zstd_walk_round(lade_zstd_walker *w, lade_zstd_walk *k,
                                                            uint32_t at, uint32_t count, bool last)
{
	const uint32_t *words = w->maker.words;
	uint32_t begin = at, sl = k->lengths, sm = k->matches, so = k->offsets;
#pragma unroll 1
	for (uint32_t i = 0; i < count; i++) {
		uint32_t l = w->lengths[sl], m = w->matches[sm], o = w->offsets[so];
		uint32_t sum = l + m + o;
		w->seen[i] = lade_zstd_seen{at, sl | sm << 9 | so << 18};
		at -= sum & 63;
		if (last && i + 1 == count)
			break;
		at -= sum >> 6 & 31;
		uint32_t v = lade_zstd_peek(words, at), no = o >> 6 & 31, nm = m >> 6 & 31;
		so = (o >> 23) + lade_zstd_low(v, no);
		v >>= no;
		sm = (m >> 23) + lade_zstd_low(v, nm);
		v >>= nm;
		sl = (l >> 23) + lade_zstd_low(v, l >> 6 & 31);
	}
	k->left -= (int32_t)(begin - at);
	k->lengths = sl;
	k->matches = sm;
	k->offsets = so;
}

/* The number that an entry and the bits before 'at' say; '*at' moves on. */
static __device__ __forceinline__ uint32_t lade_zstd_number(const uint32_t *words, uint32_t entry,
                                                            uint32_t *at)
{
	uint32_t extra = entry & 63;
	*at -= extra;
	uint32_t base = extra < 12 ? entry >> 11 & 0xFFF : 1u << extra;
	return base + lade_zstd_low(lade_zstd_peek(words, *at), extra);
}

/* The lane's sequence. */
static __device__ __forceinline__ void lade_zstd_extract(const lade_zstd_walker *w,
                                                         lade_zstd_slot *slot, uint32_t lane)
{
	lade_zstd_seen s = w->seen[lane];
	const uint32_t *words = w->maker.words;
	uint32_t at = s.at, o = w->offsets[s.states >> 18], m = w->matches[s.states >> 9 & 511];
	uint32_t extra = o & 63;
	at -= extra;
	slot->offset[lane] = (1u << extra) + lade_zstd_low(lade_zstd_peek(words, at), extra);
	slot->match[lane] = 3 + lade_zstd_number(words, m, &at);
	slot->literals[lane] = lade_zstd_number(words, w->lengths[s.states & 511], &at);
}

/* Begins the stream in [at, end): whether it has the first states. */
static __device__ __forceinline__ bool lade_zstd_walk_begin(lade_zstd_walker *w, lade_zstd_walk *k,
                                                            const uint8_t *src, uint32_t at,
                                                            uint32_t end, uint32_t lane)
{
	uint32_t top = at < end ? src[end - 1] : 0;
	top = __shfl_sync(LADE_FULL, top, 0);
	if (top == 0)
		return false;
	int32_t left = 8 * (int32_t)(end - 1 - at) + (int32_t)lade_zstd_log2(top);
	uint32_t p = lade_zstd_bring(w, src, at, end, left, lane);
	uint32_t nl = w->log[LADE_ZSTD_LENGTHS], no = w->log[LADE_ZSTD_OFFSETS],
		 nm = w->log[LADE_ZSTD_MATCHES];
	k->left = left - (int32_t)(nl + no + nm);
	p -= nl;
	k->lengths = lade_zstd_low(lade_zstd_peek(w->maker.words, p), nl);
	p -= no;
	k->offsets = lade_zstd_low(lade_zstd_peek(w->maker.words, p), no);
	p -= nm;
	k->matches = lade_zstd_low(lade_zstd_peek(w->maker.words, p), nm);
	return k->left >= 0;
}

/* Reads a block's sequences, by a warp, and hands them over round by round; 'turn' counts rounds
 * of this block alone.  What is wrong is handed over as well. */
static __device__ __forceinline__ void lade_zstd_read(lade_zstd_walker *w, lade_zstd_slot *ring,
                                                      const uint8_t *src, const lade_zstd_block &b,
                                                      uint32_t lane)
{
	uint32_t at = b.seq_at, end = b.at + b.size, rounds = (b.seq_count + 31) / 32;
	lade_zstd_walk k = {0, 0, 0, 0};
	bool right = lade_zstd_tables_read(w, src, &at, end, b.modes, lane) &&
	             lade_zstd_walk_begin(w, &k, src, at, end, lane);
#pragma unroll 1
	for (uint32_t turn = 0; turn < rounds; turn++) {
		bool last = turn + 1 == rounds;
		uint32_t count = last ? b.seq_count - 32 * turn : 32, slot = turn % LADE_ZSTD_SLOTS;
		if (right) {
			uint32_t p = lade_zstd_bring(w, src, at, end, k.left, lane);
			if (lane == 0)
				lade_zstd_walk_round(w, &k, p, count, last);
			__syncwarp();
			k.left = __shfl_sync(LADE_FULL, k.left, 0);
			right = last ? k.left == 0 : k.left >= 0;
		}
		if (turn >= LADE_ZSTD_SLOTS)
			lade_bar_sync(LADE_ZSTD_BAR_EMPTY + slot, 64);
		if (right && lane < count)
			lade_zstd_extract(w, &ring[slot], lane);
		if (lane == 0)
			ring[slot].count = right ? count : 0;
		__syncwarp();
		lade_bar_arrive(LADE_ZSTD_BAR_FULL + slot, 64);
	}
}

/* ---- offsets that repeat ------------------------------------------------------------------- */

/* A map of the last three offsets: each is a number, or one of the former three less some. */
#define LADE_ZSTD_FORMER 0x80000000u /* | which 2 | less 29 | */
struct lade_zstd_map {
	uint32_t to[3];
};

static __device__ __forceinline__ uint32_t lade_zstd_map_look(const lade_zstd_map &m, uint32_t v)
{
	uint32_t which = v & 3;
	uint32_t former = which == 0 ? m.to[0] : which == 1 ? m.to[1] : m.to[2];
	uint32_t less = v >> 2 & 0x1FFFFFFF;
	former = former & LADE_ZSTD_FORMER ? former + 4 * less : former - less;
	return v & LADE_ZSTD_FORMER ? former : v;
}

/* First 'm', and then 'next'. */
static __device__ __forceinline__ lade_zstd_map lade_zstd_map_then(const lade_zstd_map &m,
                                                                   const lade_zstd_map &next)
{
	return lade_zstd_map{{lade_zstd_map_look(m, next.to[0]), lade_zstd_map_look(m, next.to[1]),
	                      lade_zstd_map_look(m, next.to[2])}};
}

/* What a sequence makes of the last three; lanes that have none leave them. */
static __device__ __forceinline__ lade_zstd_map lade_zstd_map_of(uint32_t offset, bool literals,
                                                                 bool have)
{
	constexpr uint32_t F = LADE_ZSTD_FORMER;
	lade_zstd_map keep = {{F, F | 1, F | 2}};
	uint32_t which = offset - 1 + !literals;
	if (!have || which == 0)
		return keep;
	if (offset > 3) /* what is too large for any chunk stays so */
		return lade_zstd_map{{offset - 3 < F ? offset - 3 : F - 1, F, F | 1}};
	if (which == 1)
		return lade_zstd_map{{F | 1, F, F | 2}};
	return lade_zstd_map{{which == 2 ? F | 2 : F | 1 << 2, F, F | 1}};
}

/* The lane's offset; 'last' are the last three before the round, and then those behind it.  Of the
 * offsets behind one that is 0 nothing is told. */
static __device__ __forceinline__ uint32_t lade_zstd_offset(lade_zstd_map *last, uint32_t offset,
                                                            bool literals, bool have, uint32_t lane)
{
	lade_zstd_map m = lade_zstd_map_of(offset, literals, have);
#pragma unroll
	for (uint32_t d = 1; d < 32; d *= 2) {
		lade_zstd_map before;
#pragma unroll
		for (uint32_t k = 0; k < 3; k++)
			before.to[k] = __shfl_up_sync(LADE_FULL, m.to[k], d);
		if (lane >= d)
			m = lade_zstd_map_then(before, m);
	}
	m = lade_zstd_map_then(*last, m);
#pragma unroll
	for (uint32_t k = 0; k < 3; k++)
		last->to[k] = __shfl_sync(LADE_FULL, m.to[k], 31);
	return m.to[0];
}

/* ---- execution ----------------------------------------------------------------------------- */

/* A frame that is executed. */
struct lade_zstd_exec {
	lade_lz_exec<1> lz;
	lade_lz_place place[32];
};

struct lade_zstd_run {
	lade_lz_out out;
	lade_zstd_map last; /* offsets */
	uint32_t begin;     /* v: the frame's first byte */
	uint32_t room;      /* bytes that the frame may have */
};

/* Hands 'q' to the executor; false: it has no room. */
static __device__ __forceinline__ bool lade_zstd_make(lade_zstd_exec *x, lade_zstd_run *r,
                                                      const uint8_t *from,
                                                      const lade_lz_sequence &q, uint32_t end,
                                                      uint32_t total, bool finish, uint32_t lane)
{
	uint32_t first = __ballot_sync(LADE_FULL, q.size[0] != 0);
	uint32_t second = __ballot_sync(LADE_FULL, q.size[1] != 0), below = (1u << lane) - 1;
	uint32_t piece = r->out.pieces + __popc(first & below) + __popc(second & below);
	if (total > r->room - (r->out.end - r->begin))
		return false;
	lade_lz_make<1>(&x->lz, &r->out, from, q, r->out.end + end - q.size[0] - q.size[1], piece,
	                r->out.end + total, __popc(first) + __popc(second), finish, &x->place[lane],
	                0, lane);
	return true;
}

/* A run of 'size' bytes at 'from', and a match of the last byte, 'again' bytes long. */
static __device__ __forceinline__ bool lade_zstd_one(lade_zstd_exec *x, lade_zstd_run *r,
                                                     const uint8_t *from, uint32_t size,
                                                     uint32_t again, bool finish, uint32_t lane)
{
	bool mine = lane == 0;
	lade_lz_sequence q = {{mine ? size : 0, mine ? again : 0}, {0, 1}, {false, true}};
	return lade_zstd_make(x, r, from, q, size + again, size + again, finish, lane);
}

/* Executes a block's sequences, 'literals' being its literals; a status. */
static __device__ __forceinline__ uint32_t lade_zstd_execute(lade_zstd_exec *x, lade_zstd_run *r,
                                                             lade_zstd_slot *ring,
                                                             const uint8_t *literals,
                                                             const lade_zstd_block &b,
                                                             uint32_t most, uint32_t full,
                                                             uint32_t lane)
{
	uint32_t rounds = (b.seq_count + 31) / 32, used = 0, made = 0, status = LADE_GPU_OK;
#pragma unroll 1
	for (uint32_t turn = 0; turn < rounds; turn++) {
		uint32_t slot = turn % LADE_ZSTD_SLOTS;
		lade_bar_sync(LADE_ZSTD_BAR_FULL + slot, 64);
		uint32_t count = ring[slot].count;
		bool have = lane < count;
		uint32_t run = have ? ring[slot].literals[lane] : 0;
		uint32_t match = have ? ring[slot].match[lane] : 0;
		uint32_t offset = have ? ring[slot].offset[lane] : 0;
		if (turn + LADE_ZSTD_SLOTS < rounds)
			lade_bar_arrive(LADE_ZSTD_BAR_EMPTY + slot, 64);
		if (count == 0 || status != LADE_GPU_OK) { /* the reader goes on to the last */
			status = status != LADE_GPU_OK ? status : LADE_GPU_CORRUPT;
			continue;
		}
		offset = lade_zstd_offset(&r->last, offset, run != 0, have, lane);
		uint32_t runs = lade_warp_scan(run, lane), end = lade_warp_scan(run + match, lane);
		uint32_t total = __shfl_sync(LADE_FULL, end, 31);
		uint32_t behind = r->out.end - r->begin + end - match; /* what an offset may reach */
		lade_lz_sequence q = {{run, match}, {used + runs - run, offset}, {false, true}};
		used += __shfl_sync(LADE_FULL, runs, 31);
		made += total;
		bool bad = have && offset - 1 >= behind;
		if (__any_sync(LADE_FULL, bad) || used > b.lit_size || made > most)
			status = LADE_GPU_CORRUPT;
		else if (!lade_zstd_make(x, r, literals, q, end, total, false, lane))
			status = full;
	}
	if (status != LADE_GPU_OK)
		return status;
	uint32_t rest = b.lit_size - used;
	if (rest > most - made)
		return LADE_GPU_CORRUPT;
	return lade_zstd_one(x, r, literals + used, rest, 0, false, lane) ? LADE_GPU_OK : full;
}

#endif
