/*
 * zstd_sequences.cuh: sequences (RFC 8878, 3.1.1.3.2): one warp reads them, another executes them.
 *
 * A sequence's bits are known only when those of all before it are.  So one lane walks from state
 * to state, and leaves behind where each sequence's bits begin and its three states; then a lane a
 * sequence reads its numbers.  Rounds of 32 sequences go to the other warp by a ring.  That warp
 * finds the offsets that repeat: each sequence is a map of the last three offsets, and maps are
 * composed by a scan.  Then it hands the round to the executor (lz_exec.cuh).
 *
 * Bounds: a round takes 32 * 89 bits at most, and so much stands before it in the ring; states
 * stay in their tables.  Literals, offsets and sizes are checked before a round is executed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_ZSTD_SEQUENCES_CUH
#define LADE_CUDA_ZSTD_SEQUENCES_CUH

#include "codec/lz/kernels/lz_exec.cuh"
#include "codec/zstd/kernels/zstd_fse.cuh"

#define LADE_ZSTD_SLOTS 2u /* rounds of the ring */
#define LADE_ZSTD_ROUND_WORDS 96u /* more than 32 * 89 bits, and what is read on both sides */
#define LADE_ZSTD_STREAM 256u     /* words of the ring: more than those of two rounds, and 32 */

/* Named barriers of a block's two warps, and those of the other slot.  Their numbers are constants
 * (device.cuh).  Barrier 0 is that of __syncthreads(), too: when a warp gets there, each slot that
 * was said to be empty has been filled again.  So a block has four, and 16 blocks the 64 of a
 * multiprocessor. */
#define LADE_ZSTD_BAR_EMPTY 0u
#define LADE_ZSTD_BAR_FULL 2u

/* A round on its way from warp to warp. */
struct lade_zstd_slot {
	uint32_t literals[32], match[32], offset[32]; /* as the format has it: 1 to 3 repeat */
	uint32_t count;                               /* sequences; 0: they are wrong */
};

/* A sequence that was walked: where its bits end, and the entries of its states. */
struct alignas(16) lade_zstd_seen {
	uint32_t at, length, match, offset;
};

/* What a walker has once it has its tables. */
struct lade_zstd_flow {
	lade_zstd_seen seen[32];
	/* Words of the stream: word i is at i % LADE_ZSTD_STREAM + 3, the last three also before
	 * the first. */
	uint32_t stream[LADE_ZSTD_STREAM + 3];
	lade_zstd_slot ring[LADE_ZSTD_SLOTS];
};

/* Waits at the barrier of a slot, or arrives there. */
template <unsigned first> static __device__ __forceinline__ void lade_zstd_sync(uint32_t slot)
{
	if (slot)
		lade_bar_sync<first + 1>(64);
	else
		lade_bar_sync<first>(64);
}

template <unsigned first> static __device__ __forceinline__ void lade_zstd_arrive(uint32_t slot)
{
	if (slot)
		lade_bar_arrive<first + 1>(64);
	else
		lade_bar_arrive<first>(64);
}

/* The warp that reads sequences.  Tables are made when nobody needs the rounds of a block any more,
 * and before those of the next one. */
struct lade_zstd_walker {
	union {
		lade_zstd_maker maker;
		lade_zstd_flow flow;
	};
	uint32_t lengths[1u << LADE_ZSTD_LENGTH_LOG], matches[1u << LADE_ZSTD_LENGTH_LOG];
	uint32_t offsets[1u << LADE_ZSTD_OFFSET_LOG];
	uint32_t log[3]; /* of the tables, by what they are for; LADE_ZSTD_NO_TABLE: none yet */
};

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
			table[0] = lade_zstd_meaning(kind, s) | 1u << 22;
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
	uint32_t most = end - *at < LADE_ZSTD_MOST ? end - *at : LADE_ZSTD_MOST, p = 0;
	lade_zstd_fetch(&w->maker, src, *at, end, lane);
	if (!lade_zstd_table_read(w, LADE_ZSTD_LENGTHS, modes >> 6, &p, most, lane) ||
	    !lade_zstd_table_read(w, LADE_ZSTD_OFFSETS, modes >> 4 & 3, &p, most, lane) ||
	    !lade_zstd_table_read(w, LADE_ZSTD_MATCHES, modes >> 2 & 3, &p, most, lane))
		return false;
	*at += p;
	return true;
}

/* ---- the walk ------------------------------------------------------------------------------ */

/* Where the walk stands.  Bits are counted from the word of memory that the stream begins in. */
struct lade_zstd_walk {
	const uint8_t *src;
	uint32_t n, from;   /* bytes of the source, and where the stream begins */
	uint32_t at, begin; /* the bit behind what is left, and the stream's first */
	int32_t have;       /* words from this one on are in the ring, or on their way */
	uint32_t lengths, matches, offsets; /* states */
};

/* The 32 bits that end before bit 'at'. */
static __device__ __forceinline__ uint32_t lade_zstd_above(const lade_zstd_walker *w, uint32_t at)
{
	uint32_t word = at / 32;
	const uint32_t *below = &w->flow.stream[word % LADE_ZSTD_STREAM];
	return __funnelshift_r(below[2], below[3], at);
}

/* Begins to bring those words of the stream to the ring that this round and the next one
 * may want.  Of words that are not all of the source only its bytes are read. */
static __device__ __forceinline__ void lade_zstd_bring(lade_zstd_walker *w, lade_zstd_walk *k,
                                                       uint32_t lane)
{
	const uint8_t *src = k->src;
	/* Bytes before the source wrap: they are not below 'n', which is below 2^31. */
	uint32_t n = k->n, first = k->from - ((uint32_t)(uintptr_t)(src + k->from) & 3);
	int32_t want = (int32_t)(k->at / 32) - 2 * (int32_t)LADE_ZSTD_ROUND_WORDS;
	while (k->have > want) {
		k->have -= 32;
		uint32_t word = (uint32_t)k->have + lane, at = first + 4 * word;
		uint32_t place = word % LADE_ZSTD_STREAM + 3;
		uint32_t *to = &w->flow.stream[place], *again = to - LADE_ZSTD_STREAM;
		bool twice = place >= LADE_ZSTD_STREAM;
		if (at < n && n - at >= 4) {
			lade_cp_async_4(to, src + at);
			if (twice)
				lade_cp_async_4(again, src + at);
		} else {
			uint32_t value = 0;
			for (uint32_t i = 0; i < 4; i++)
				if (at + i < n)
					value |= (uint32_t)src[at + i] << (8 * i);
			*to = value;
			if (twice)
				*again = value;
		}
	}
	lade_cp_async_commit();
}

/*
 * A walker's memory by addresses of 32 bits.  The compiler cannot take them apart: it adds one
 * number to a state, in one instruction.
 */
static __device__ __forceinline__ uint32_t lade_zstd_address(const lade_zstd_walker *w,
                                                             const void *p, uint32_t before)
{
#if LADE_ON_GPU
	(void)w;
	uint32_t at = (uint32_t)__cvta_generic_to_shared(p) - before;
	asm volatile("" : "+r"(at));
	return at;
#else
	return (uint32_t)((const uint8_t *)p - (const uint8_t *)w) - before;
#endif
}

static __device__ __forceinline__ uint32_t lade_zstd_at(const lade_zstd_walker *w, uint32_t address)
{
#if LADE_ON_GPU
	(void)w;
	uint32_t value;
	asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
	return value;
#else
	return *(const uint32_t *)((const uint8_t *)w + address);
#endif
}

/* Word 'word' of the stream and the three below it, from the lowest on. */
struct lade_zstd_words {
	uint32_t of[4];
};

static __device__ __forceinline__ lade_zstd_words lade_zstd_words_at(const lade_zstd_walker *w,
                                                                     uint32_t stream, uint32_t at)
{
	uint32_t below = stream + (at / 8 & (4 * LADE_ZSTD_STREAM - 4));
	return lade_zstd_words{{lade_zstd_at(w, below), lade_zstd_at(w, below + 4),
	                        lade_zstd_at(w, below + 8), lade_zstd_at(w, below + 12)}};
}

/*
 * Walks 'count' sequences, by one lane; of the last one of a block no states are read.  The chain
 * from state to state is what takes the time, and its instructions are most of the kernel's: there
 * is no branch, and an entry is its own amount of a shift, of which the low five bits count.
 *
 * FEW: for few chunks.  The 96 bits below a sequence's place are loaded before its entries, and
 * its extra bits choose among them: that takes a load out of the chain, and more instructions.
 */
template <bool FEW>
static __device__ __forceinline__ void lade_zstd_walk_round(lade_zstd_walker *w, lade_zstd_walk *k,
                                                            uint32_t count, bool last)
{
	uint32_t lengths = lade_zstd_address(w, w->lengths, 4u << w->log[LADE_ZSTD_LENGTHS]);
	uint32_t matches = lade_zstd_address(w, w->matches, 4u << w->log[LADE_ZSTD_MATCHES]);
	uint32_t offsets = lade_zstd_address(w, w->offsets, 4u << w->log[LADE_ZSTD_OFFSETS]);
	uint32_t stream = lade_zstd_address(w, w->flow.stream, 0);
	uint32_t at = k->at, sl = k->lengths, sm = k->matches, so = k->offsets, p = at, v;
	lade_zstd_words words = FEW ? lade_zstd_words_at(w, stream, at) : lade_zstd_words{};
#pragma unroll 4
	for (uint32_t i = 0; i < count; i++) {
		uint32_t l = lade_zstd_at(w, lengths + 4 * sl);
		uint32_t m = lade_zstd_at(w, matches + 4 * sm);
		uint32_t o = lade_zstd_at(w, offsets + 4 * so), sum = l + m + o;
		w->flow.seen[i] = lade_zstd_seen{at, l, m, o};
		p = at - (sum >> 5 & 63);
		if (FEW) {
			uint32_t high = __funnelshift_r(words.of[2], words.of[3], at);
			uint32_t mid = __funnelshift_r(words.of[1], words.of[2], at);
			uint32_t low = __funnelshift_r(words.of[0], words.of[1], at);
			uint32_t near = __funnelshift_l(mid, high, sum >> 5);
			uint32_t far = __funnelshift_l(low, mid, sum >> 5);
			v = sum >> 5 & 32 ? far : near;
			at = p - (sum & 31);
			words = lade_zstd_words_at(w, stream, at);
		} else {
			uint32_t below = stream + (p / 8 & (4 * LADE_ZSTD_STREAM - 4));
			v = __funnelshift_r(lade_zstd_at(w, below + 8), lade_zstd_at(w, below + 12),
			                    p);
			at = p - (sum & 31);
		}
		sl = __funnelshift_l(v, l >> 22, l);
		v = __funnelshift_l(0, v, l);
		sm = __funnelshift_l(v, m >> 22, m);
		v = __funnelshift_l(0, v, m);
		so = __funnelshift_l(v, o >> 22, o);
	}
	k->at = last ? p : at;
	k->lengths = sl;
	k->matches = sm;
	k->offsets = so;
}

/* The number of 'extra' bits, below 32, before '*at', which moves on; 'high' stands above them. */
static __device__ __forceinline__ uint32_t lade_zstd_number(const lade_zstd_walker *w,
                                                            uint32_t high, uint32_t extra,
                                                            uint32_t *at)
{
	uint32_t v = lade_zstd_above(w, *at);
	*at -= extra;
	return __funnelshift_l(v, high, extra);
}

static __device__ __forceinline__ uint32_t lade_zstd_base(uint32_t entry)
{
	uint32_t extra = entry >> 5 & 63;
	return extra < 11 ? entry >> 11 & 0x7FF : 1u << extra;
}

/* A sequence of a round, as the format has its offset. */
struct lade_zstd_taken {
	uint32_t run, match, offset;
	bool have;
};

/* The lane's sequence. */
static __device__ __forceinline__ lade_zstd_taken lade_zstd_extract(const lade_zstd_walker *w,
                                                                    uint32_t lane)
{
	lade_zstd_seen s = w->flow.seen[lane];
	lade_zstd_taken t;
	uint32_t at = s.at;
	t.offset = lade_zstd_number(w, 1, s.offset >> 5 & 63, &at);
	t.match = 3 + lade_zstd_base(s.match) + lade_zstd_number(w, 0, s.match >> 5 & 63, &at);
	t.run = lade_zstd_base(s.length) + lade_zstd_number(w, 0, s.length >> 5 & 63, &at);
	t.have = true;
	return t;
}

/* A state of 1 << log, and the bits that are read for it. */
static __device__ __forceinline__ uint32_t lade_zstd_first(const lade_zstd_walker *w,
                                                           lade_zstd_walk *k, int kind)
{
	uint32_t log = w->log[kind];
	return lade_zstd_number(w, 1, log, &k->at);
}

/* Begins the stream from k->from to 'end': whether it has the first states. */
static __device__ __forceinline__ bool lade_zstd_walk_begin(lade_zstd_walker *w, lade_zstd_walk *k,
                                                            uint32_t end, uint32_t lane)
{
	uint32_t at = k->from, top = at < end ? k->src[end - 1] : 0;
	top = __shfl_sync(LADE_FULL, top, 0);
	if (top == 0)
		return false;
	k->begin = 8 * ((uint32_t)(uintptr_t)(k->src + at) & 3);
	k->at = k->begin + 8 * (end - 1 - at) + lade_zstd_log2(top);
	k->have = (int32_t)(k->at / 32 + 1);
	lade_zstd_bring(w, k, lane);
	lade_cp_async_wait<0>();
	__syncwarp();
	k->lengths = lade_zstd_first(w, k, LADE_ZSTD_LENGTHS);
	k->offsets = lade_zstd_first(w, k, LADE_ZSTD_OFFSETS);
	k->matches = lade_zstd_first(w, k, LADE_ZSTD_MATCHES);
	return (int32_t)(k->at - k->begin) >= 0;
}

/* Reads a block's sequences, by a warp, and hands them over round by round; 'turn' counts rounds
 * of this block alone.  What is wrong is handed over as well.  'few': see the walk. */
static __device__ __forceinline__ void lade_zstd_read(lade_zstd_walker *w, const uint8_t *src,
                                                      uint32_t n, const lade_zstd_block &b,
                                                      bool few, uint32_t lane)
{
	lade_zstd_slot *ring = w->flow.ring;
	uint32_t end = b.at + b.size, rounds = (b.seq_count + 31) / 32;
	lade_zstd_walk k = {src, n, b.seq_at};
	bool right = lade_zstd_tables_read(w, src, &k.from, end, b.modes, lane) &&
	             lade_zstd_walk_begin(w, &k, end, lane);
#pragma unroll 1
	for (uint32_t turn = 0; turn < rounds; turn++) {
		bool last = turn + 1 == rounds;
		uint32_t count = last ? b.seq_count - 32 * turn : 32, slot = turn % LADE_ZSTD_SLOTS;
		if (right) {
			lade_cp_async_wait<0>(); /* what the round before has asked for */
			__syncwarp();
			lade_zstd_bring(w, &k, lane);
			if (lane == 0 && few)
				lade_zstd_walk_round<true>(w, &k, count, last);
			else if (lane == 0)
				lade_zstd_walk_round<false>(w, &k, count, last);
			__syncwarp();
			k.at = __shfl_sync(LADE_FULL, k.at, 0);
			right = last ? k.at == k.begin : (int32_t)(k.at - k.begin) >= 0;
		}
		if (turn >= LADE_ZSTD_SLOTS)
			lade_zstd_sync<LADE_ZSTD_BAR_EMPTY>(slot);
		if (right && lane < count) {
			lade_zstd_taken t = lade_zstd_extract(w, lane);
			ring[slot].offset[lane] = t.offset;
			ring[slot].match[lane] = t.match;
			ring[slot].literals[lane] = t.run;
		}
		if (lane == 0)
			ring[slot].count = right ? count : 0;
		__syncwarp();
		lade_zstd_arrive<LADE_ZSTD_BAR_FULL>(slot);
	}
	lade_cp_async_wait<0>();
	__syncwarp();
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

/* The lane's offset where each sequence has a new one, 'fresh', or repeats the last one. */
static __device__ __forceinline__ uint32_t lade_zstd_offset_plain(lade_zstd_map *last,
                                                                  uint32_t offset, uint32_t fresh,
                                                                  uint32_t lane)
{
	uint32_t here = fresh & ((2u << lane) - 1), value[3];
	uint32_t own = __shfl_sync(LADE_FULL, offset, lade_zstd_log2(here) & 31);
	own = here ? own : last->to[0];
	uint32_t count = __popc(fresh);
#pragma unroll
	for (uint32_t k = 0; k < 3; k++) {
		uint32_t from = lade_zstd_log2(fresh) & 31;
		value[k] = __shfl_sync(LADE_FULL, offset, from);
		fresh &= ~(1u << from);
	}
	lade_zstd_map old = *last;
	last->to[0] = count > 0 ? value[0] : old.to[0];
	last->to[1] = count > 1 ? value[1] : count ? old.to[0] : old.to[1];
	last->to[2] = count > 2   ? value[2]
	              : count > 1 ? old.to[0]
	              : count     ? old.to[1]
	                          : old.to[2];
	return own;
}

/* The lane's offset; 'last' are the last three before the round, and then those behind it.  Of the
 * offsets behind one that is 0 nothing is known. */
static __device__ __forceinline__ uint32_t lade_zstd_offset(lade_zstd_map *last, uint32_t offset,
                                                            bool literals, bool have, uint32_t lane)
{
	bool fresh = have && offset > 3, keep = !have || offset - 1 + !literals == 0;
	uint32_t number = offset - 3 < LADE_ZSTD_FORMER ? offset - 3 : LADE_ZSTD_FORMER - 1;
	if (__all_sync(LADE_FULL, fresh || keep))
		return lade_zstd_offset_plain(last, number, __ballot_sync(LADE_FULL, fresh), lane);
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
	uint32_t room, block_max; /* bytes that the frame may have, and a block */
	uint32_t full;            /* the status of a frame that has more */
	const uint8_t *before;    /* what stands before the frame: a dictionary's content */
	uint32_t before_size;
};

struct lade_zstd_run {
	lade_lz_out out;
	lade_zstd_map last;  /* offsets */
	uint32_t begin;      /* v: the frame's first byte */
	const uint8_t *from; /* literals */
};

/* Goes on where the output ends, all before which is made; x->lz is as it may be. */
static __device__ __forceinline__ void lade_zstd_resume(lade_zstd_exec *x, lade_zstd_run *r,
                                                        uint32_t lane)
{
	uint32_t full = (r->out.end + LADE_LZ_TILE - 1) & ~(LADE_LZ_TILE - 1);
	lade_lz_clear<1>(&x->lz, 0, lane);
	r->out.done = r->out.end;
	r->out.pieces = 0;
	r->out.full = r->out.full > full ? r->out.full : full;
	__syncwarp();
}

/* Hands 'q' to the executor; 'end' is the sum of sizes up to the lane's.  False: it has no room. */
static __device__ __forceinline__ bool lade_zstd_make(lade_zstd_exec *x, lade_zstd_run *r,
                                                      const lade_lz_sequence &q, uint32_t end,
                                                      bool finish, uint32_t lane)
{
	uint32_t total = __shfl_sync(LADE_FULL, end, 31);
	uint32_t first = __ballot_sync(LADE_FULL, q.size[0] != 0);
	uint32_t second = __ballot_sync(LADE_FULL, q.size[1] != 0), below = (1u << lane) - 1;
	uint32_t piece = r->out.pieces + __popc(first & below) + __popc(second & below);
	if (total > x->room - (r->out.end - r->begin))
		return false;
	lade_lz_group group = {r->out.end + end - q.size[0] - q.size[1], piece, r->out.end + total,
	                       (uint32_t)(__popc(first) + __popc(second)), finish};
	lade_lz_make<1>(&x->lz, &r->out, r->from, q, group, &x->place[lane], 0, lane);
	return true;
}

/*
 * Executes a round of which some matches begin in what stands before the frame: one sequence after
 * the other, in two steps, as the bytes from there are a run.  All sizes have been checked.  'r'
 * and 'q' are copies, so that those of other rounds stay in registers; returns r->out.
 */
static __device__ __noinline__ lade_lz_out lade_zstd_make_apart(lade_zstd_exec *x, lade_zstd_run r,
                                                                lade_lz_sequence q, uint32_t count,
                                                                uint32_t lane)
{
	const uint8_t *literals = r.from;
	x = lade_shared(x);
#pragma unroll 1
	for (uint32_t k = 0; k < 2 * count; k++) {
		bool second = k & 1, mine = lane == 0;
		uint32_t run = __shfl_sync(LADE_FULL, q.size[0], (int)(k / 2));
		uint32_t match = __shfl_sync(LADE_FULL, q.size[1], (int)(k / 2));
		uint32_t at = __shfl_sync(LADE_FULL, q.from[0], (int)(k / 2));
		uint32_t offset = __shfl_sync(LADE_FULL, q.from[1], (int)(k / 2));
		uint32_t behind = r.out.end - r.begin + (second ? 0 : run);
		uint32_t back = offset > behind ? offset - behind : 0;
		uint32_t part = back < match ? back : match;
		if (second && part == 0)
			continue;
		uint32_t one = second ? part : run, two = second ? match - part : part ? 0 : match;
		lade_lz_sequence own = {{mine ? one : 0, mine ? two : 0},
		                        {second ? 0 : at, offset},
		                        {false, true}};
		r.from = second ? x->before + (x->before_size - back) : literals;
		lade_zstd_make(x, &r, own, one + two, false, lane);
	}
	return r.out;
}

/* Takes round 'turn' of 'rounds', when it is there; false: it is wrong. */
static __device__ __forceinline__ bool lade_zstd_take(lade_zstd_slot *ring, uint32_t turn,
                                                      uint32_t rounds, lade_zstd_taken *q,
                                                      uint32_t lane)
{
	uint32_t slot = turn % LADE_ZSTD_SLOTS;
	lade_zstd_sync<LADE_ZSTD_BAR_FULL>(slot);
	uint32_t count = ring[slot].count;
	q->have = lane < count;
	q->run = q->have ? ring[slot].literals[lane] : 0;
	q->match = q->have ? ring[slot].match[lane] : 0;
	q->offset = q->have ? ring[slot].offset[lane] : 0;
	if (turn + LADE_ZSTD_SLOTS < rounds)
		lade_zstd_arrive<LADE_ZSTD_BAR_EMPTY>(slot);
	return count != 0;
}

/*
 * Executes a block's sequences, and makes all of its output; a status.  'status' is that of the
 * block so far: where it is not LADE_GPU_OK the rounds are taken, and nothing is made.  DICT:
 * something may stand before the frame.
 */
template <bool DICT>
static __device__ __forceinline__ uint32_t lade_zstd_execute(lade_zstd_exec *x, lade_zstd_run *r,
                                                             lade_zstd_slot *ring,
                                                             const lade_zstd_block &b,
                                                             uint32_t status, uint32_t lane)
{
	uint32_t rounds = (b.seq_count + 31) / 32, used = 0, made = 0;
#pragma unroll 1
	for (uint32_t turn = 0; turn <= rounds; turn++) { /* the last: what literals are left */
		bool rest = turn == rounds;
		lade_zstd_taken t = {rest && lane == 0 ? b.lit_size - used : 0, 0, 0, false};
		if (!rest && !lade_zstd_take(ring, turn, rounds, &t, lane))
			status = status != LADE_GPU_OK ? status : LADE_GPU_CORRUPT;
		if (status != LADE_GPU_OK)
			continue;
		uint32_t offset =
			lade_zstd_offset(&r->last, t.offset, t.run != 0, t.have, lane);
		uint32_t runs = lade_warp_scan(t.run, lane);
		uint32_t end = lade_warp_scan(t.run + t.match, lane);
		uint32_t total = __shfl_sync(LADE_FULL, end, 31);
		uint32_t behind =
			r->out.end - r->begin + end - t.match; /* what an offset may reach */
		lade_lz_sequence q = {
			{t.run, t.match}, {used + runs - t.run, offset}, {false, true}};
		used += __shfl_sync(LADE_FULL, runs, 31);
		made += total;
		bool far = t.have && offset - 1 >= behind;
		/* One of LADE_ZSTD_FORMER - 1 may have been larger (lade_zstd_map_of). */
		bool bad = far && (!DICT || offset == LADE_ZSTD_FORMER - 1 ||
		                   offset - 1 - behind >= x->before_size);
		if (__any_sync(LADE_FULL, bad) || used > b.lit_size || made > x->block_max)
			status = LADE_GPU_CORRUPT;
		else if (DICT && total <= x->room - (r->out.end - r->begin) &&
		         __any_sync(LADE_FULL, far))
			r->out = lade_zstd_make_apart(
				x, *r, q, __popc(__ballot_sync(LADE_FULL, t.have)), lane);
		else if (!lade_zstd_make(x, r, q, end, rest, lane))
			status = x->full;
	}
	return status;
}

#endif
