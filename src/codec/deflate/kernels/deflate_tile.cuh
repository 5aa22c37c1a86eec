/*
 * deflate_tile.cuh: the symbols of a Deflate block, by all lanes of a team at once.
 *
 * A tile of the source is cut into parts of as many bits, one a lane.  Only the first lane knows
 * where a symbol begins.  Each other one begins LADE_DEFLATE_AHEAD bits before its part, at any
 * bit: codes of a prefix code fall into step soon.  From the first symbol in its part on it keeps
 * literals, and for each match a token:
 *
 *     | literals of the lane before it 9 | length less 3 8 | distance less 1 15 |, from the highest
 *
 * Then each lane compares where it began with where the one before it ended.  Those that differ
 * decode their part again from there, until all agree up to the first lane that met the block's
 * end, a fault, or has no room: there the tile ends.  Sums over lanes say where sequences (literals
 * and a match) stand among all; the executor of LZ formats makes them, one a lane.
 *
 * Bounds: what lanes read is on the stage, with zeros behind the source's end.  A symbol takes a
 * bit at least; a round of repairs mends a lane at least.  A lane checks its own room for each
 * symbol.  Output is checked before the executor has a sequence.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_DEFLATE_TILE_CUH
#define LADE_CUDA_DEFLATE_TILE_CUH

#include "codec/deflate/kernels/deflate_codes.cuh"

#define LADE_DEFLATE_AHEAD 640u

/* Why a lane stopped before its part's end. */
enum {
	LADE_DEFLATE_GO,
	LADE_DEFLATE_STOP_END,   /* the block's */
	LADE_DEFLATE_STOP_WRONG, /* a codeword that the code does not have */
	LADE_DEFLATE_STOP_CUT,   /* the source's end */
	LADE_DEFLATE_STOP_FULL,
};

/* team.said: where a lane ended, and why. */
#define LADE_DEFLATE_AT 0x0FFFFFFFu

/* Where a lane reads: 'lo' is the word that bit 'at' of the stage is in, then those behind it. */
struct lade_deflate_reader {
	const uint32_t *stage, *table;
	uint32_t at, lo, hi, on;
	uint32_t from, mask; /* the part of the table for the next codeword, and bits to look at */
};

/* The next codeword is a distance's, or it is not. */
static __device__ __forceinline__ void lade_deflate_turn(lade_deflate_reader *r, bool far)
{
	r->from = far ? LADE_DEFLATE_CODES : 0;
	r->mask = far ? (1u << LADE_DEFLATE_FAR) - 1 : LADE_DEFLATE_CODES - 1;
}

static __device__ __forceinline__ void lade_deflate_go(lade_deflate_reader *r, uint32_t at)
{
	const uint32_t *word = r->stage + at / 32;
	r->at = at;
	r->lo = word[0];
	r->hi = word[1];
	r->on = word[2];
	lade_deflate_turn(r, false);
}

template <int W>
static __device__ __noinline__ uint32_t lade_deflate_long(const lade_deflate_team<W> *t, uint32_t v,
                                                          bool far)
{
	t = lade_shared(t);
	return far ? lade_deflate_seek(&t->distance, v, LADE_DEFLATE_FAR)
	           : lade_deflate_seek(&t->literal, v, LADE_DEFLATE_LOOK);
}

/* The entry of the next codeword; *v are the bits from it on. */
static __device__ __forceinline__ uint32_t lade_deflate_look(const lade_deflate_reader &r,
                                                             uint32_t *v)
{
	*v = __funnelshift_r(r.lo, r.hi, r.at);
	return r.table[r.from + (*v & r.mask)];
}

static __device__ __forceinline__ bool lade_deflate_rare(uint32_t e)
{
	return (e & LADE_DEFLATE_RARE) == LADE_DEFLATE_RARE;
}

/* The entry itself, or that of a codeword which is longer than the table looks. */
template <int W>
static __device__ __forceinline__ uint32_t lade_deflate_look_again(const lade_deflate_team<W> *t,
                                                                   const lade_deflate_reader &r,
                                                                   uint32_t e, uint32_t v)
{
	bool longer = (e & (LADE_DEFLATE_RARE | 0x7FFF)) == (LADE_DEFLATE_RARE | LADE_DEFLATE_LONG);
	return longer ? lade_deflate_long(t, v, r.from != 0) : e;
}

/* The number that an entry and the bits behind its codeword say.  Of an amount of a shift the low
 * five bits count. */
static __device__ __forceinline__ uint32_t lade_deflate_number(uint32_t e, uint32_t v)
{
	uint32_t behind = __funnelshift_r(v, 0, e >> 15);
	return (behind & ~__funnelshift_l(0, ~0u, e >> 20)) + (e & 0x7FFF);
}

/* Goes behind the entry's codeword and number. */
static __device__ __forceinline__ void lade_deflate_pass(lade_deflate_reader *r, uint32_t e)
{
	uint32_t at = r->at + (e >> 27);
	bool next = (at ^ r->at) >= 32;
	r->lo = next ? r->hi : r->lo;
	r->hi = next ? r->on : r->hi;
	r->on = r->stage[at / 32 + 2];
	r->at = at;
}

/* Reads until it stands at a symbol that begins at 'end' or behind. */
template <int W>
static __device__ __forceinline__ void lade_deflate_skip(const lade_deflate_team<W> *t,
                                                         lade_deflate_reader *r, uint32_t end)
{
#pragma unroll 1
	while (r->at < end || r->from) {
		uint32_t v, e = lade_deflate_look(*r, &v);
		if (lade_deflate_rare(e))
			e = lade_deflate_look_again(t, *r, e, v);
		lade_deflate_pass(r, e);
		lade_deflate_turn(r, (e & LADE_DEFLATE_RARE) == LADE_DEFLATE_LENGTH);
	}
}

/* What a lane found in its part. */
struct lade_deflate_part {
	uint32_t stop, literals, tokens;
	uint32_t run;   /* literals before the last token */
	uint32_t bytes; /* of output, and 'reach': how far matches reach before its first byte; */
	uint32_t reach; /* where nothing is kept */
};

/* A lane's part, from 'entry' to 'end', where the source has 'left' bits; and 'lane' bytes of its
 * own memory: literals come first, and tokens stand from its end down. */
struct lade_deflate_task {
	uint32_t entry, end, left, lane;
	uint32_t *memory;
};

/* Decodes the lane's part from where the reader is.  KEEP: keeps literals and tokens.  Else it only
 * counts, and any number has room.  It is the loop that takes the time: what is rare is put aside,
 * and the kinds of symbols are no branches. */
template <bool KEEP, int W>
static __device__ __forceinline__ lade_deflate_part lade_deflate_decode(
	const lade_deflate_team<W> *t, lade_deflate_reader *r, const lade_deflate_task &task)
{
	lade_deflate_part d = {LADE_DEFLATE_GO, 0, 0, 0, 0, 0};
	uint32_t left = task.left, end = task.end < left ? task.end : left;
	uint32_t four = 0, length = 0, top = task.lane;
#pragma unroll 1
	while ((r->from != 0) | ((r->at < end) & (!KEEP | (top - d.literals >= 8)))) {
		uint32_t v, e = lade_deflate_look(*r, &v);
		if (lade_deflate_rare(e) | (r->at + (e >> 27) > left)) {
			e = lade_deflate_look_again(t, *r, e, v);
			bool cut = r->at + (e >> 27) > left;
			if (cut || lade_deflate_rare(e)) {
				bool ends = (e & 0x7FFF) == LADE_DEFLATE_END;
				r->at += e >> 27;
				d.stop = cut    ? LADE_DEFLATE_STOP_CUT
				         : ends ? LADE_DEFLATE_STOP_END
				                : LADE_DEFLATE_STOP_WRONG;
				break;
			}
		}
		uint32_t kind = e & LADE_DEFLATE_RARE, number = lade_deflate_number(e, v);
		bool literal = kind == LADE_DEFLATE_LITERAL;
		lade_deflate_pass(r, e);
		lade_deflate_turn(r, kind == LADE_DEFLATE_LENGTH);
		length = kind == LADE_DEFLATE_LENGTH ? number : length;
		four = literal ? __funnelshift_r(four, number, 8) : four;
		d.literals += literal;
		if (KEEP && literal && (d.literals & 3) == 0)
			task.memory[d.literals / 4 - 1] = four;
		if (KEEP && kind == LADE_DEFLATE_DISTANCE) {
			top -= 4;
			task.memory[top / 4] =
				(d.literals << 23) + (length << 15) + number - ((3u << 15) + 1);
		}
		if (!KEEP && kind == LADE_DEFLATE_DISTANCE) {
			uint32_t before = number - d.bytes;
			d.reach = number > d.bytes && before > d.reach ? before : d.reach;
			d.bytes += length;
		}
		d.bytes += literal;
	}
	if (KEEP && d.stop == LADE_DEFLATE_GO && r->at < end)
		d.stop = LADE_DEFLATE_STOP_FULL;
	if (KEEP && (d.literals & 3))
		task.memory[d.literals / 4] = four >> (32 - 8 * (d.literals & 3));
	d.tokens = (task.lane - top) / 4;
	d.run = KEEP && d.tokens ? task.memory[top / 4] >> 23 : 0;
	return d;
}

/* ---- a team's votes ------------------------------------------------------------------------ */

/* The first threads for which 'a' is so, and 'b'; all: for none. */
template <int W>
static __device__ __forceinline__ void lade_deflate_first(lade_deflate_team<W> *t, bool a, bool b,
                                                          uint32_t *at_a, uint32_t *at_b,
                                                          lade_deflate_me me)
{
	uint32_t warp = me.warp, x = __ballot_sync(LADE_FULL, a), y = __ballot_sync(LADE_FULL, b);
	x = x ? 32 * warp + __ffs(x) - 1 : t->LANES;
	y = y ? 32 * warp + __ffs(y) - 1 : t->LANES;
	if (W > 1) {
		__syncthreads();
		if (me.lane == 0) {
			t->first[0][warp] = x;
			t->first[1][warp] = y;
		}
		__syncthreads();
#pragma unroll
		for (uint32_t w = 0; w < W; w++) {
			x = t->first[0][w] < x ? t->first[0][w] : x;
			y = t->first[1][w] < y ? t->first[1][w] : y;
		}
	}
	*at_a = x;
	*at_b = y;
}

/* The sums of 'a' and 'b' before the thread's; those of all threads come in their place. */
template <int W>
static __device__ __forceinline__ void lade_deflate_sums(lade_deflate_team<W> *t, uint32_t *a,
                                                         uint32_t *b, uint32_t *before_a,
                                                         uint32_t *before_b, lade_deflate_me me)
{
	uint32_t x = lade_warp_scan(*a, me.lane), y = lade_warp_scan(*b, me.lane);
	*before_a = x - *a;
	*before_b = y - *b;
	*a = __shfl_sync(LADE_FULL, x, 31);
	*b = __shfl_sync(LADE_FULL, y, 31);
	if (W == 1)
		return;
	__syncthreads();
	if (me.lane == 0) {
		t->total[me.warp] = *a;
		t->pieces[me.warp] = *b;
	}
	__syncthreads();
	*a = *b = 0;
#pragma unroll
	for (uint32_t w = 0; w < W; w++) {
		if (w == me.warp) {
			*before_a += *a;
			*before_b += *b;
		}
		*a += t->total[w];
		*b += t->pieces[w];
	}
}

/* ---- a tile -------------------------------------------------------------------------------- */

/* The team's memory, 'lane' bytes for each, and how many words of the source a lane may have, at
 * most and now; and the bits that a block may have left: as many as the one before it had. */
struct lade_deflate_memory {
	uint8_t *lanes;
	uint32_t lane, words, now;
	uint32_t block, rest; /* 0: not known */
};

/* Words of the source for each lane, where 'left' bits are: such that tiles of a block are
 * alike, and the last one's lanes have work. */
template <int W>
static __device__ __forceinline__ uint32_t lade_deflate_share(const lade_deflate_memory &m,
                                                              uint32_t left)
{
	uint32_t most = m.now;
	left = m.rest && m.rest < left ? m.rest : left;
	uint32_t words = left / (32 * 32 * W) + 1, tiles = (words + most - 1) / most;
	words = ((words + tiles - 1) / tiles) | 1;
	return words < 3 ? 3 : words < most ? words : most;
}

/* Has lanes agree where symbols begin; the number of those that count. */
template <bool KEEP, int W>
static __device__ __forceinline__ uint32_t lade_deflate_agree(lade_deflate_team<W> *t,
                                                              lade_deflate_reader *r,
                                                              lade_deflate_part *d,
                                                              lade_deflate_task task,
                                                              lade_deflate_me me)
{
	uint32_t wrong, stop;
	for (;;) {
		t->said[me.thread] = r->at | d->stop << 28;
		lade_team_sync<W>();
		uint32_t led = me.thread ? t->said[me.thread - 1] : task.entry;
		bool differs = led <= LADE_DEFLATE_AT && led != task.entry;
		lade_deflate_first(t, differs, d->stop != LADE_DEFLATE_GO, &wrong, &stop, me);
		if (wrong >= t->LANES || wrong > stop)
			break;
		lade_team_sync<W>();
		if (differs) {
			task.entry = led;
			lade_deflate_go(r, led);
			*d = lade_deflate_decode<KEEP>(t, r, task);
		}
		__syncwarp();
	}
	return stop < t->LANES ? stop + 1 : t->LANES;
}

/* The lane whose sequence is number 'g', which is in the thread's warp's 32 from 'from' on. */
template <int W>
static __device__ __forceinline__ uint32_t lade_deflate_owner(const lade_deflate_team<W> *t,
                                                              uint32_t from, uint32_t lane)
{
	uint32_t before = 0, heads = 0;
#pragma unroll
	for (uint32_t w = 0; w < W; w++) {
		uint32_t off = t->base[32 * w + lane] - from;
		before += __popc(__ballot_sync(LADE_FULL, (int32_t)off <= 0));
		heads |= off - 1 < 31 ? 1u << off : 0;
	}
	heads = __reduce_or_sync(LADE_FULL, heads);
	return before - 1 + __popc(heads & ((2u << lane) - 1));
}

/* Asks for the thread's sequence in the round that begins with number 'g' of 'count'. */
template <int W>
static __device__ __forceinline__ void lade_deflate_ask(lade_deflate_team<W> *t,
                                                        const lade_deflate_memory &m, uint32_t g,
                                                        uint32_t count, lade_deflate_me me)
{
	lade_deflate_asked *next = &t->asked[me.thread];
	uint32_t from = g + 32 * me.warp, place = 0;
	if (from < count) { /* alike for the warp */
		uint32_t owner = lade_deflate_owner(t, from, me.lane);
		if (from + me.lane < count) {
			uint32_t k = from + me.lane - t->base[owner];
			const uint32_t *token =
				(const uint32_t *)(m.lanes + (owner + 1) * m.lane) - 1 - k;
			if (k < (t->count[owner] & 0xFFFF))
				lade_cp_async_4(&next->token, token);
			if (k)
				lade_cp_async_4(&next->before, token + 1);
			place = 1u << 31 | k << 8 | owner;
		}
	}
	next->place = place;
	lade_cp_async_commit();
}

/* The sequence that the thread asked for: literals behind the last token have no match. */
template <int W>
static __device__ __forceinline__ lade_lz_sequence lade_deflate_get(const lade_deflate_team<W> *t,
                                                                    const lade_deflate_memory &m,
                                                                    lade_deflate_me me)
{
	lade_lz_sequence q = {{0, 0}, {0, 0}, {false, true}};
	const lade_deflate_asked *next = &t->asked[me.thread];
	lade_cp_async_wait<0>();
	if (next->place == 0)
		return q;
	uint32_t owner = next->place & 255, k = next->place >> 8 & 0x7FFFFF, n = t->count[owner];
	uint32_t before = k ? next->before >> 23 : 0;
	if (k < (n & 0xFFFF)) {
		uint32_t v = next->token;
		q.size[0] = (v >> 23) - before;
		q.size[1] = 3 + (v >> 15 & 255);
		q.from[1] = 1 + (v & 0x7FFF);
	} else {
		q.size[0] = (n >> 16) - before;
	}
	q.from[0] = owner * m.lane + before;
	return q;
}

/* The status of the lane's sequence: literals come first. */
static __device__ __forceinline__ uint32_t lade_deflate_verdict(const lade_lz_sequence &q,
                                                                uint32_t start, uint32_t begin,
                                                                uint32_t cap)
{
	if (q.size[0] > cap - start)
		return LADE_GPU_NOSPACE;
	start += q.size[0];
	if (q.size[1] && q.from[1] > start - begin)
		return LADE_GPU_CORRUPT;
	return q.size[1] > cap - start ? LADE_GPU_NOSPACE : LADE_GPU_OK;
}

/* Of the sequences of a round, of which one is bad: the first one's status. */
template <int W>
static __device__ __noinline__ uint32_t lade_deflate_failed(lade_deflate_team<W> *t,
                                                            const lade_lz_sequence &q,
                                                            uint32_t start, uint32_t begin,
                                                            uint32_t cap, lade_deflate_me me)
{
	/* Behind the first bad one 'start' may be past the end. */
	uint32_t status =
		start > cap ? LADE_GPU_NOSPACE : lade_deflate_verdict(q, start, begin, cap);
	uint32_t bad, none;
	lade_deflate_first(t, status != LADE_GPU_OK, false, &bad, &none, me);
	lade_team_sync<W>();
	if (me.thread == bad)
		t->total[0] = status;
	lade_team_sync<W>();
	return t->total[0];
}

/* Whether the lane's match goes on where the one of the lane before it ends, from as far: they are
 * one piece then. */
static __device__ __forceinline__ bool lade_deflate_goes_on(const lade_lz_sequence &q,
                                                            uint32_t lane)
{
	uint32_t far = q.size[1] ? q.from[1] : 0, before = __shfl_up_sync(LADE_FULL, far, 1);
	return lane && far && far == before && q.size[0] == 0;
}

/* Gives the lane before the matches that go on, of the lanes 'going', all their bytes; the lane's
 * sequence begins at 'start'. */
static __device__ __forceinline__ void lade_deflate_join(lade_lz_sequence *q, uint32_t going,
                                                         uint32_t start, uint32_t lane)
{
	uint32_t others = ~going & ~((2u << lane) - 1);
	uint32_t last = (others ? __ffs(others) - 1 : 32) - 1;
	uint32_t end = __shfl_sync(LADE_FULL, start + q->size[0] + q->size[1], last);
	if (going >> lane & 1)
		q->size[1] = 0;
	else if (q->size[1])
		q->size[1] = end - start - q->size[0];
}

/* Hands the tile's sequences, 'count' of all lanes, to the executor, a round of one a thread at a
 * time, while the tokens of the next one are on their way; *done is the output. */
template <int W>
static __device__ __forceinline__ uint32_t lade_deflate_make(lade_deflate_team<W> *t,
                                                             const lade_deflate_memory &m,
                                                             uint32_t count, uint32_t *done,
                                                             lade_deflate_me me)
{
	const lade_gpu_chunk &c = t->job.c;
	uint32_t warp = me.warp, lane = me.lane, cap = c.dst_cap, begin = t->job.begin;
	lade_deflate_ask(t, m, 0, count, me);
	lade_lz_out o =
		lade_lz_begin<W>(&t->x.lz, m.lanes, t->LANES * m.lane, c.dst, cap, warp, lane);
	uint32_t shift = o.done;
	o.done = o.end = shift + *done;
	if (o.full != LADE_FULL)
		o.full = (o.done + LADE_LZ_TILE - 1) / LADE_LZ_TILE * LADE_LZ_TILE;
	lade_team_sync<W>();
#pragma unroll 1
	for (uint32_t g = 0; g < count; g += t->LANES) {
		lade_lz_sequence q = lade_deflate_get(t, m, me);
		lade_deflate_ask(t, m, g + t->LANES, count, me);
		uint32_t size = q.size[0] + q.size[1];
		/* Eight warps make windows that few such pieces fill. */
		bool goes_on = W < 8 && lade_deflate_goes_on(q, lane);
		uint32_t going = W < 8 ? __ballot_sync(LADE_FULL, goes_on) : 0;
		uint32_t pieces = (q.size[0] != 0) + (q.size[1] != 0 && !goes_on);
		uint32_t start, piece;
		lade_deflate_sums(t, &size, &pieces, &start, &piece, me);
		uint32_t at = o.end - shift + start;
		bool bad = size > cap - (o.end - shift) ||
		           (q.size[1] && q.from[1] > at + q.size[0] - begin);
		if (lade_team_any<W>(bad))
			return lade_deflate_failed(t, q, at, begin, cap, me);
		if (going)
			lade_deflate_join(&q, going, start, lane);
		lade_lz_group group = {o.end + start, o.pieces + piece, o.end + size, pieces,
		                       g + t->LANES >= count};
		lade_lz_make<W>(&t->x.lz, &o, m.lanes, q, group, &t->x.place[me.thread], warp,
		                lane);
	}
	*done = o.end - shift;
	lade_team_sync<W>();
	return LADE_GPU_OK;
}

/* What is only counted: whether matches begin in the output, and it does not pass the limit. */
template <int W>
static __device__ __forceinline__ uint32_t lade_deflate_count(lade_deflate_team<W> *t,
                                                              const lade_deflate_part &d,
                                                              uint32_t *done, lade_deflate_me me)
{
	/* A tile's output is below 2^28: 992 bits a lane, 129 bytes a bit. */
	uint32_t bytes = d.bytes, none = 0, before, nothing, far, full;
	lade_deflate_sums(t, &bytes, &none, &before, &nothing, me);
	before += *done;
	lade_deflate_first(t, d.reach > before - t->job.begin, before + d.bytes > LADE_CHUNK_MAX,
	                   &far, &full, me);
	*done += bytes;
	return far < t->LANES && far <= full ? LADE_GPU_CORRUPT
	       : full < t->LANES             ? LADE_GPU_LIMIT
	                                     : LADE_GPU_OK;
}

/* How many words a lane may have after a tile: fewer where one was full, as then those behind it
 * have worked in vain. */
static __device__ __forceinline__ uint32_t lade_deflate_adapt(const lade_deflate_memory &m,
                                                              uint32_t stop)
{
	uint32_t words = stop == LADE_DEFLATE_STOP_FULL ? m.now / 2 : m.now + 2;
	return words < 3 ? 3 : words < m.words ? words | 1 : m.words;
}

/*
 * Decodes a tile from job.at on; all threads.  *stop says why it ended: LADE_DEFLATE_STOP_END,
 * where the block does, or LADE_DEFLATE_GO.  A status.
 */
template <bool KEEP, int W>
static __device__ __forceinline__ uint32_t lade_deflate_tile(lade_deflate_team<W> *t,
                                                             lade_deflate_memory &m, uint32_t *done,
                                                             uint32_t *stop, lade_deflate_me me)
{
	uint32_t thread = me.thread;
	uint64_t at = t->job.at;
	uint32_t left = lade_deflate_left(t->job.c, at), first = (uint32_t)at & 31;
	if (first >= left)
		return LADE_GPU_TRUNCATED;
	uint32_t words = lade_deflate_share<W>(m, left - first), part = 32 * words;
	lade_deflate_fetch(t, t->job.c, at, t->LANES * words + 6, thread);
	lade_deflate_reader r = {t->stage, t->table, 0, 0, 0, 0, 0, 0};
	uint32_t begin = first + thread * part, ahead = begin - first;
	ahead = ahead < LADE_DEFLATE_AHEAD ? ahead : LADE_DEFLATE_AHEAD;
	if (begin < left) {
		lade_deflate_go(&r, begin - ahead);
		lade_deflate_skip(t, &r, begin);
	} else { /* the lane before it ends there */
		r.at = left;
	}
	__syncwarp();
	lade_deflate_task task = {r.at, begin + part, left, m.lane,
	                          KEEP ? (uint32_t *)(m.lanes + thread * m.lane) : nullptr};
	lade_deflate_part d = lade_deflate_decode<KEEP>(t, &r, task);
	__syncwarp();
	uint32_t lanes = lade_deflate_agree<KEEP>(t, &r, &d, task, me);
	if (thread >= lanes)
		d = lade_deflate_part{LADE_DEFLATE_GO, 0, 0, 0, 0, 0};
	uint32_t said = t->said[lanes - 1], status;
	if (KEEP) {
		uint32_t mine = d.tokens + (d.literals > d.run), none = 0, base, nothing,
			 all = mine;
		lade_deflate_sums(t, &all, &none, &base, &nothing, me);
		t->base[thread] = mine ? base : 0x7FFFFFFF;
		t->count[thread] = d.tokens | d.literals << 16;
		lade_team_sync<W>(); /* the stage is free, and what lanes kept is there for all */
		status = lade_deflate_make(t, m, all, done, me);
	} else {
		status = lade_deflate_count(t, d, done, me);
		lade_team_sync<W>();
	}
	*stop = said >> 28;
	m.now = lade_deflate_adapt(m, *stop);
	uint32_t read = (said & LADE_DEFLATE_AT) - first, little = m.block / 8;
	m.rest = m.rest > read + little ? m.rest - read : little;
	if (thread == 0)
		t->job.at = at + read;
	lade_team_sync<W>();
	if (status != LADE_GPU_OK)
		return status;
	return *stop == LADE_DEFLATE_STOP_WRONG ? LADE_GPU_CORRUPT
	       : *stop == LADE_DEFLATE_STOP_CUT ? LADE_GPU_TRUNCATED
	                                        : LADE_GPU_OK;
}

#endif
