/*
 * deflate_sums.cuh: the checksums of zlib and gzip, Adler-32 and CRC-32, by a team of W warps, of
 * output that grows: what is new is added while the second-level cache still has it.
 *
 * Bounds: each read is of bytes of the output so far.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_DEFLATE_SUMS_CUH
#define LADE_CUDA_DEFLATE_SUMS_CUH

#include "checksum/kernels/adler32.cuh"
#include "codec/deflate/kernels/deflate_codes.cuh"

#define LADE_DEFLATE_CRC 0xEDB88320u /* CRC-32's polynomial; bit 31 is x^0 */
#define LADE_DEFLATE_NEW 1024u       /* bytes a lane that are worth adding */
#define LADE_DEFLATE_TURN 2048u      /* bytes a lane that Adler-32 adds in 32 bits */

/* A thread's part of a member's checksum; all but rows are alike in all threads. */
struct lade_deflate_sum {
	uint32_t format;
	uint32_t at;      /* bytes added */
	uint32_t value;   /* Adler-32; or what CRC-32 adds to its next word */
	bool rows;        /* CRC-32: there are any; and the last 32 ones */
	uint32_t row[32];
};

/* ---- Adler-32 ------------------------------------------------------------------------------ */

/* The sums of 'a' and 'b' of all threads, each modulo 65521. */
template <int W>
static __device__ __forceinline__ void lade_deflate_adler_all(lade_deflate_team<W> *t, uint64_t *a,
                                                              uint64_t *b, uint32_t thread)
{
	uint32_t x = __reduce_add_sync(LADE_FULL, (uint32_t)(*a % LADE_ADLER));
	uint32_t y = __reduce_add_sync(LADE_FULL, (uint32_t)(*b % LADE_ADLER));
	if (W > 1) {
		__syncthreads();
		if ((thread & 31) == 0) {
			t->total[thread / 32] = x;
			t->pieces[thread / 32] = y;
		}
		__syncthreads();
		x = y = 0;
		for (uint32_t w = 0; w < W; w++) {
			x += t->total[w];
			y += t->pieces[w];
		}
	}
	*a = x;
	*b = y;
}

/*
 * Adds 'n' bytes at 'p', at most LADE_DEFLATE_TURN a lane; all threads.  A byte counts as often as
 * its distance from the end.  Vectors are of 16 bytes: thread i has the i-th of each row.
 */
template <int W>
static __device__ __forceinline__ uint32_t lade_deflate_adler_add(lade_deflate_team<W> *t,
                                                                  uint32_t value, const uint8_t *p,
                                                                  uint32_t n, uint32_t thread)
{
	uint32_t head = (0 - (uint32_t)(uintptr_t)p) & 15;
	head = head < n ? head : n;
	uint32_t count = (n - head) / 16, tail = head + 16 * count;
	const uint4 *vector = (const uint4 *)lade_global(p + head);
	uint32_t last = thread; /* of the lane's vectors, or 'thread' itself */
	lade_adler_lane sum;
	sum.begin();
#pragma unroll 8
	for (uint32_t i = thread; i < count; i += t->LANES) {
		sum.row(vector[i]);
		last = i;
	}
	uint64_t a = sum.a, b = sum.by(16 * t->LANES, n - head - 16 * (last + 1));
	uint32_t at = thread < head ? thread : thread - head + tail;
	if (at < n) { /* at most 30 threads */
		a += p[at];
		b += (uint64_t)(n - at) * p[at];
	}
	lade_deflate_adler_all(t, &a, &b, thread);
	uint32_t low = value & 0xFFFF, high = value >> 16;
	high = (uint32_t)((high + (uint64_t)n * low + b) % LADE_ADLER);
	return high << 16 | (uint32_t)((low + a) % LADE_ADLER);
}

/* Adds the output up to 'size'; all threads.  team.total and team.pieces are free. */
template <int W>
static __device__ __noinline__ void lade_deflate_adler(lade_deflate_team<W> *t, lade_deflate_sum *s,
                                                       const uint8_t *p, uint32_t size,
                                                       uint32_t thread)
{
	while (s->at < size) {
		uint32_t n = size - s->at, most = t->LANES * LADE_DEFLATE_TURN;
		n = n < most ? n : most;
		s->value = lade_deflate_adler_add(t, s->value, p + s->at, n, thread);
		s->at += n;
	}
}

/* ---- CRC-32 -------------------------------------------------------------------------------- */

/* a times b modulo the polynomial. */
static __device__ constexpr uint32_t lade_deflate_times(uint32_t a, uint32_t b)
{
	uint32_t r = 0;
	for (uint32_t k = 0; k < 32; k++) {
		r ^= (0 - (a >> 31)) & b;
		a <<= 1;
		b = b >> 1 ^ ((0 - (b & 1)) & LADE_DEFLATE_CRC);
	}
	return r;
}

/* Constants: x^(32 n), and for rows of 32, 64, 128 and 256 words five bits of a word times x to
 * the bits of a row, in seven parts: a part is a line of memory. */
struct alignas(128) lade_deflate_powers {
	uint32_t row[4][7][32];
	uint32_t word[257];
};

static __device__ constexpr lade_deflate_powers lade_deflate_powers_make()
{
	lade_deflate_powers p = {};
	p.word[0] = 0x80000000;
	p.word[1] = LADE_DEFLATE_CRC;
	for (uint32_t n = 2; n <= 256; n++)
		p.word[n] = lade_deflate_times(p.word[n - 1], LADE_DEFLATE_CRC);
	for (uint32_t k = 0; k < 4; k++)
		for (uint32_t bit = 0; bit < 32; bit++) {
			uint32_t basis = lade_deflate_times(1u << bit, p.word[32 << k]);
			for (uint32_t e = 0; e < 32; e++)
				p.row[k][bit / 5][e] ^= e >> bit % 5 & 1 ? basis : 0;
		}
	return p;
}

static __device__ constexpr lade_deflate_powers lade_deflate_power = lade_deflate_powers_make();

static __device__ __forceinline__ uint32_t lade_deflate_crc_bytes(uint32_t s, const uint8_t *p,
                                                                  uint32_t size)
{
	for (uint32_t i = 0; i < size; i++) {
		s ^= p[i];
		for (uint32_t k = 0; k < 8; k++)
			s = s >> 1 ^ ((0 - (s & 1)) & LADE_DEFLATE_CRC);
	}
	return s;
}

/*
 * Adds 'units' of 32 rows at 'word'; all threads.  A thread has a word of each row, so that a row
 * on is y = x^(32 lanes).  The lanes are a power of two, so that the polynomial in y instead of x
 * is a multiple of the polynomial: a row may go where its terms are, without a multiplication:
 *
 *     y^32 = y^26 + y^23 + y^22 + y^16 + y^12 + y^11 + y^10 + y^8 + y^7 + y^5 + y^4 + y^2 + y + 1
 *
 * Nine of these terms are (1 + y^15 + y^21) / y^21 times y^26, y^23 and y^22: q[k] has the sum of
 * three rows, which is made once and taken three times.
 */
template <int W>
static __device__ __forceinline__ void
lade_deflate_crc_units(lade_deflate_sum *s, const uint32_t *word, uint32_t units, uint32_t thread)
{
	constexpr uint32_t LANES = 32 * W;
	uint32_t r[32], v[32], q[32]; /* rows, and words of a unit that are on their way */
	word = lade_global(word) + thread;
#pragma unroll
	for (uint32_t k = 0; k < 32; k++)
		v[k] = word[k * LANES];
#pragma unroll
	for (uint32_t k = 0; k < 32; k++)
		r[k] = s->row[k];
	r[0] ^= thread ? 0 : s->value;
	s->value = 0;
#define LADE_DEFLATE_ROW(k, back) r[((k) + 32 - (back)) % 32]
#pragma unroll
	for (uint32_t k = 22; k < 26; k++)
		q[k] = r[k] ^ LADE_DEFLATE_ROW(k, 15) ^ LADE_DEFLATE_ROW(k, 21);
#pragma unroll 1
	for (;;) {
		units--;
		word += 32 * LANES;
#pragma unroll
		for (uint32_t h = 0; h < 32; h += 16) {
#pragma unroll
			for (uint32_t k = h; k < h + 16; k++) {
#define R(back) LADE_DEFLATE_ROW(k, back)
				q[(k + 26) % 32] = R(6) ^ R(21) ^ R(27);
				r[k] ^= v[k] ^ q[(k + 26) % 32] ^ q[(k + 23) % 32] ^
				        q[(k + 22) % 32] ^ R(16) ^ R(20) ^ R(22) ^ R(28);
#undef R
			}
			if (units) {
#pragma unroll
				for (uint32_t k = h; k < h + 16; k++)
					v[k] = word[k * LANES];
			}
		}
		if (units == 0)
			break;
	}
#undef LADE_DEFLATE_ROW
#pragma unroll
	for (uint32_t k = 0; k < 32; k++)
		s->row[k] = r[k];
}

/* The same, called: with several warps that leaves registers to the rest. */
template <int W>
static __device__ __noinline__ void lade_deflate_crc_units_called(lade_deflate_sum *s,
                                                                  const uint32_t *word,
                                                                  uint32_t units, uint32_t thread)
{
	lade_deflate_crc_units<W>(s, word, units, thread);
}

/* Takes back what rows gave to others among the last 32: they are the remainder then. */
static __device__ __noinline__ void lade_deflate_crc_rest(lade_deflate_sum *s)
{
	constexpr uint32_t back[] = {6, 9, 10, 16, 20, 21, 22, 24, 25, 27, 28, 30, 31};
	uint32_t r[32];
#pragma unroll
	for (uint32_t k = 0; k < 32; k++)
		r[k] = s->row[k];
#pragma unroll
	for (uint32_t k = 31; k; k--) {
#pragma unroll
		for (uint32_t i = 0; i < 13; i++)
			r[k] ^= back[i] <= k ? r[(k + 32 - back[i]) % 32] : 0;
	}
#pragma unroll
	for (uint32_t k = 0; k < 32; k++)
		s->row[k] = r[k];
}

/* The last 'count' of the rows become s->value; all threads.  team.total is free. */
template <int W>
static __device__ __noinline__ void
lade_deflate_crc_join(lade_deflate_team<W> *t, lade_deflate_sum *s, uint32_t count, uint32_t thread)
{
	/* Each lane has an entry of each part of the table. */
	const uint32_t(*table)[32] = lade_deflate_power.row[W == 8 ? 3 : W / 2];
	uint32_t state = 0, place = lade_deflate_power.word[t->LANES - thread], part[7];
#pragma unroll
	for (uint32_t p = 0; p < 7; p++)
		part[p] = table[p][thread & 31];
#pragma unroll 2
	for (uint32_t k = 32 - count; k < 32; k++) {
		uint32_t next = s->row[k];
#pragma unroll
		for (uint32_t p = 0; p < 7; p++)
			next ^= __shfl_sync(LADE_FULL, part[p], state >> (5 * p) & 31);
		state = next;
	}
	state = __reduce_xor_sync(LADE_FULL, lade_deflate_times(state, place));
	if (W > 1) {
		__syncthreads();
		if ((thread & 31) == 0)
			t->total[thread / 32] = state;
		__syncthreads();
		state = 0;
		for (uint32_t w = 0; w < W; w++)
			state ^= t->total[w];
	}
	s->value = state;
}

/* Adds what is before the first whole word of 'size' bytes; there are no rows yet. */
static __device__ __noinline__ void lade_deflate_crc_begin(lade_deflate_sum *s, const uint8_t *p,
                                                           uint32_t size)
{
	uint32_t head = (0 - (uint32_t)(uintptr_t)p) & 3;
	s->at = head < size ? head : size;
	s->value = lade_deflate_crc_bytes(s->value, p, s->at);
	s->rows = false;
#pragma unroll
	for (uint32_t k = 0; k < 32; k++)
		s->row[k] = 0;
}

/* Adds the whole units of the output up to 'size'; all threads. */
template <int W>
static __device__ __forceinline__ void lade_deflate_crc_grow(lade_deflate_sum *s, const uint8_t *p,
                                                             uint32_t size, uint32_t thread)
{
	constexpr uint32_t UNIT = 32 * 4 * 32 * W;
	/* The first whole word is found where there is a unit behind it. */
	if (size - s->at < UNIT + (s->at ? 0 : 3))
		return;
	if (s->at == 0)
		lade_deflate_crc_begin(s, p, size);
	uint32_t units = (size - s->at) / UNIT;
	const uint32_t *word = (const uint32_t *)(p + s->at);
	if constexpr (W == 1) /* called, each load would take three instructions */
		lade_deflate_crc_units<W>(s, word, units, thread);
	else
		lade_deflate_crc_units_called<W>(s, word, units, thread);
	s->at += units * UNIT;
	s->rows = true;
}

/* Adds all of the output up to 'size', and s->value is the register behind it; all threads.
 * team.total is free. */
template <int W>
static __device__ __noinline__ void lade_deflate_crc_end(lade_deflate_team<W> *t,
                                                         lade_deflate_sum *s, const uint8_t *p,
                                                         uint32_t size, uint32_t thread)
{
	constexpr uint32_t LANES = 32 * W;
	if (s->at == 0)
		lade_deflate_crc_begin(s, p, size);
	if (s->rows) {
		lade_deflate_crc_rest(s);
		lade_deflate_crc_join(t, s, 32, thread);
	}
#pragma unroll 1
	while (size - s->at >= 4) { /* most often less than a unit is left */
		uint32_t words = (size - s->at) / 4;
		words = words < 32 * LANES ? words : 32 * LANES;
		uint32_t rows = (words + LANES - 1) / LANES;
		const uint32_t *word = (const uint32_t *)lade_global(p + s->at);
		/* Zeros before the first one change nothing. */
		uint32_t i = thread - (rows * LANES - words); /* wraps below 0 */
#pragma unroll 4
		for (uint32_t k = 32 - rows; k < 32; k++, i += LANES)
			s->row[k] = i < words ? word[i] ^ (i == 0 ? s->value : 0) : 0;
		lade_deflate_crc_join(t, s, rows, thread);
		s->at += 4 * words;
	}
	s->value = lade_deflate_crc_bytes(s->value, p + s->at, size - s->at);
	s->at = size;
}

/* ---- both ---------------------------------------------------------------------------------- */

static __device__ __forceinline__ void lade_deflate_sum_begin(lade_deflate_sum *s)
{
	s->at = 0;
	s->rows = false;
	s->value = s->format == LADE_DEFLATE_ZLIB ? 1 : ~0u;
}

/* Adds what the member's output has grown by, up to 'done', where it is worth it; of a CRC-32 also
 * at a block's end, so that little is left for the last time.  All threads, and there is a barrier
 * behind the output's stores. */
template <int W>
static __device__ __forceinline__ void lade_deflate_sum_grow(lade_deflate_team<W> *t,
                                                             lade_deflate_sum *s, uint32_t done,
                                                             bool block_ends, lade_deflate_me me)
{
	uint32_t begin = t->job.begin, size = done - begin;
	bool little = size - s->at < t->LANES * LADE_DEFLATE_NEW;
	if (s->format == LADE_DEFLATE_ZLIB && !little)
		lade_deflate_adler(t, s, t->job.c.dst + begin, size, me.thread);
	if (s->format == LADE_DEFLATE_GZIP && (block_ends || !little))
		lade_deflate_crc_grow<W>(s, t->job.c.dst + begin, size, me.thread);
}

/* Adds the rest of the member's output, which ends at 'done'; likewise. */
template <int W>
static __device__ __forceinline__ void lade_deflate_sum_end(lade_deflate_team<W> *t,
                                                            lade_deflate_sum *s, uint32_t done,
                                                            lade_deflate_me me)
{
	uint32_t begin = t->job.begin;
	if (s->format == LADE_DEFLATE_ZLIB)
		lade_deflate_adler(t, s, t->job.c.dst + begin, done - begin, me.thread);
	else
		lade_deflate_crc_end(t, s, t->job.c.dst + begin, done - begin, me.thread);
}

#endif
