/*
 * unpack.cu: elements of 1, 2, 4 or 8 bytes from some bits of each, one after the other: packints,
 * levels, and cast to a wider type, alone or in this order at once (docs/format/filters.md,
 * sections 13 to 15).  A cast or levels alone take whole elements as bits.
 *
 *     | padding bits 1, if first | element 0 | element 1 | ... | padding bits 1, if last |
 *
 * A lane makes 16 bytes of elements, those of a warp are adjacent.  Before the first such piece
 * that begins at a multiple of 16, and behind the last one, it makes one element.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter/kernels/tile.cuh"

/* Bits of a source from any of them on. */
struct lade_bit_reader {
	const uint8_t *src;
	uint32_t size, at; /* the next word's byte, a multiple of 4 */
	uint64_t held;
	uint32_t have; /* bits of it */
};

/* The next 32 bits; behind the source's end they are 0. */
static __device__ __forceinline__ uint32_t lade_bits_next(lade_bit_reader *r)
{
	uint32_t at = r->at;
	r->at += 4;
	return at < r->size ? lade_tile_load_some(r->src + at, (int32_t)(r->size - at)) : 0;
}

static __device__ __forceinline__ lade_bit_reader lade_bits_from(const uint8_t *src, uint32_t size,
                                                                 uint64_t bit)
{
	lade_bit_reader r = {src, size, (uint32_t)(bit / 32) * 4, 0, 32 - (uint32_t)(bit % 32)};
	r.held = lade_bits_next(&r) >> (bit % 32);
	return r;
}

/* The next 'bits' of them, 1 to 32. */
static __device__ __forceinline__ uint32_t lade_bits_take(lade_bit_reader *r, uint32_t bits)
{
	if (r->have < bits) {
		r->held |= (uint64_t)lade_bits_next(r) << r->have;
		r->have += 32;
	}
	uint32_t value = (uint32_t)r->held & 0xFFFFFFFFu >> (32 - bits);
	r->held >>= bits;
	r->have -= bits;
	return value;
}

/* The <f4 of a level: a product, a sum and a conversion, of which each rounds by itself. */
static __device__ __forceinline__ uint32_t lade_level(const lade_unpack &u, uint32_t level)
{
#if LADE_ON_GPU
	double x = __dadd_rn(__dmul_rn((double)level, u.scale), u.min);
	return __float_as_uint(__double2float_rn(x < u.max ? x : u.max));
#else
	volatile double product = level * u.scale; /* not to be contracted with the sum */
	double x = product + u.min;
	return __float_as_uint((float)(x < u.max ? x : u.max));
#endif
}

/* A real of 'from' bytes, 2 or 4, as one of SIZE, 4 or 8, that is wider: exact.  NaNs lose all but
 * the sign. */
template <uint32_t SIZE>
static __device__ __forceinline__ uint64_t lade_wider_real(uint64_t bits, uint32_t from)
{
	uint32_t mant = from == 2 ? 10 : 23, bias = from == 2 ? 15 : 127;
	constexpr uint32_t MANT = SIZE == 4 ? 23 : 52, BIAS = SIZE == 4 ? 127 : 1023;
	uint64_t m = bits & (((uint64_t)1 << mant) - 1);
	uint64_t sign = bits >> (8 * from - 1) << (8 * SIZE - 1);
	uint32_t e = (uint32_t)(bits >> mant) & (2 * bias + 1);
	if (e == 2 * bias + 1) {
		e = 2 * BIAS + 1;
		m = m ? (uint64_t)1 << (mant - 1) : 0;
	} else if (e) {
		e += BIAS - bias;
	} else if (m) {
		uint32_t shift = mant - (63 - (uint32_t)__clzll((long long)m));
		m = m << shift & (((uint64_t)1 << mant) - 1);
		e = BIAS - bias + 1 - shift;
	}
	return sign | (uint64_t)e << MANT | m << (MANT - mant);
}

template <uint32_t SIZE> struct lade_unpacked {
	typedef uint32_t word;
};
template <> struct lade_unpacked<8> {
	typedef uint64_t word;
};

/* The next element, in the lowest SIZE bytes. */
template <uint32_t SIZE>
static __device__ __forceinline__ typename lade_unpacked<SIZE>::word
lade_unpack_one(const lade_unpack &u, lade_bit_reader *r)
{
	typedef typename lade_unpacked<SIZE>::word word;
	word x = lade_bits_take(r, u.bits < 32 ? u.bits : 32);
	if (SIZE == 8 && u.bits > 32)
		x |= (word)((uint64_t)lade_bits_take(r, u.bits - 32) << 32);
	x <<= u.first;
	if (u.extend) {
		/* Bits above the element's that take its sign, of the 64 of a number. */
		uint32_t above = u.extend - (64 - 8 * (uint32_t)sizeof x);
		x = SIZE == 8 ? (word)((int64_t)((uint64_t)x << above) >> above)
		              : (word)((int32_t)((uint32_t)x << above) >> above);
	}
	if (SIZE >= 4 && u.ops & LADE_UNPACK_LEVELS)
		x = lade_level(u, (uint32_t)x);
	if (SIZE >= 4 && u.ops & LADE_UNPACK_REALS)
		x = (word)lade_wider_real<SIZE == 4 ? 4 : 8>(x, u.real);
	return x;
}

/* Elements of a chunk, by warp 'part' of 'parts'. */
template <uint32_t SIZE>
static __device__ __forceinline__ void lade_unpack_chunk(const lade_unpack &u,
                                                         const lade_gpu_chunk &c, uint32_t count,
                                                         uint32_t part, uint32_t parts)
{
	constexpr uint32_t EACH = 16 / SIZE;
	constexpr uint32_t MASK = SIZE == 1 ? 0xFF : SIZE == 2 ? 0xFFFF : 0xFFFFFFFFu;
	typedef typename lade_unpacked<SIZE>::word word;
	const uint8_t *src = c.src + u.front;
	uint32_t size = c.src_size - u.front - u.back, over = (uint32_t)(0 - (uintptr_t)c.dst) & 15;
	uint32_t first = 32 * part + lade_lane(), step = 32 * parts;
	uint32_t head = over % SIZE || over / SIZE > count ? count : over / SIZE;
	uint32_t pieces = (count - head) / EACH, alone = count - pieces * EACH;
	for (uint32_t i = first; i < pieces; i += step) {
		uint32_t at = head + i * EACH, w[4] = {0, 0, 0, 0};
		lade_bit_reader r = lade_bits_from(src, size, (uint64_t)at * u.bits);
#pragma unroll
		for (uint32_t k = 0; k < EACH; k++) {
			word x = lade_unpack_one<SIZE>(u, &r);
			if (SIZE == 8) {
				w[2 * (k & 1)] = (uint32_t)x;
				w[2 * (k & 1) + 1] = (uint32_t)((uint64_t)x >> 32);
			} else {
				w[k * SIZE / 4] |= ((uint32_t)x & MASK) << (8 * (k * SIZE % 4));
			}
		}
		*(uint4 *)(c.dst + (size_t)at * SIZE) = make_uint4(w[0], w[1], w[2], w[3]);
	}
	for (uint32_t i = first; i < alone; i += step) {
		uint32_t at = i < head ? i : i + pieces * EACH;
		lade_bit_reader r = lade_bits_from(src, size, (uint64_t)at * u.bits);
		word x = lade_unpack_one<SIZE>(u, &r);
#pragma unroll
		for (uint32_t k = 0; k < SIZE; k++)
			c.dst[(size_t)at * SIZE + k] = (uint8_t)(x >> (8 * k));
	}
}

/* How many elements a chunk has, and whether there is room for them. */
static __device__ __forceinline__ uint32_t lade_unpack_count(const lade_unpack &u,
                                                             const lade_gpu_chunk &c,
                                                             uint32_t *count)
{
	uint32_t around = u.front + u.back, fits = c.dst_cap / u.size;
	uint32_t part = c.dst_cap % u.size != 0;
	uint32_t room = fits + (u.rooms & LADE_ROOM_FILTER ? part : 0);
	if (u.rooms & LADE_ROOM_CODEC &&
	    c.src_size > ((uint64_t)(fits + part) * u.bits + 7) / 8 + around)
		return LADE_GPU_NOSPACE;
	if (c.src_size < around)
		return LADE_GPU_TRUNCATED;
	if (u.whole && c.src_size % u.whole)
		return LADE_GPU_CORRUPT;
	uint64_t bits = (uint64_t)(c.src_size - around) * 8, all;
	if (around) {
		uint32_t unused = c.src[u.front ? 0 : c.src_size - 1];
		if (unused > 7 || unused > bits || (bits - unused) % u.bits)
			return LADE_GPU_CORRUPT;
		bits -= unused;
	}
	all = bits / u.bits;
	/* Without a number of unused bits, those of the last byte may look like elements. */
	if (all > room && (around || u.whole || (all - room) * u.bits >= 8))
		return LADE_GPU_NOSPACE;
	*count = all < room ? (uint32_t)all : room;
	return *count > fits ? LADE_GPU_NOSPACE : LADE_GPU_OK;
}

/*
 * Map: a block is 128 threads, each warp of it on its own; the grid has less than 2^28 blocks, best
 * a warp for each 4 KiB of elements.  Sources and destinations have any alignment and do not
 * overlap.  'next' is not used.  No shared memory.
 */
extern "C" __global__ void __launch_bounds__(32 * LADE_TILE_WARPS)
	lade_unpack_decode(lade_gpu_batch batch, lade_unpack u)
{
	lade_tile_batch(batch, [=](uint32_t i, uint32_t part, uint32_t parts) {
		lade_gpu_chunk c;
		uint32_t count = 0, status = lade_chunk_get(batch, i, &c);
		if (status == LADE_GPU_OK)
			status = lade_unpack_count(u, c, &count);
		if (status != LADE_GPU_OK)
			;
		else if (u.size == 1)
			lade_unpack_chunk<1>(u, c, count, part, parts);
		else if (u.size == 2)
			lade_unpack_chunk<2>(u, c, count, part, parts);
		else if (u.size == 4)
			lade_unpack_chunk<4>(u, c, count, part, parts);
		else
			lade_unpack_chunk<8>(u, c, count, part, parts);
		lade_tile_verdict(batch, i, part, status, count * u.size, lade_lane());
	});
}
