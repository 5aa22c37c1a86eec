/*
 * stage.cuh: a warp brings a range of a source from global to shared memory, and can do other
 * things until it is there.
 *
 *	LADE_SHARED(uint4, units, [512]);
 *	LADE_SHARED(unsigned long long, barrier);
 *	lade_stager s;
 *	lade_stage_open(&s, &barrier, lane);
 *	lade_stage_begin(&s, units, src + off, size, lane);    size <= sizeof(units)
 *	...
 *	lade_stage_wait<0>(&s);
 *
 * On sm_90 one lane asks for one bulk copy of a source that is aligned to 16 bytes; on sm_80 all
 * lanes ask for 16 bytes at a time; neither goes through registers.  Any other source is read in
 * aligned words that are shifted, which costs about what the warp's own loads would.
 *
 * All of these functions are for whole warps.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_STAGE_CUH
#define LADE_CUDA_STAGE_CUH

#include "gpu/kernels/batch.cuh"

#if LADE_ON_GPU && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define LADE_STAGE_BULK 1
#else
#define LADE_STAGE_BULK 0
#endif

/* A warp's registers for one place to stage to.  Two ranges in flight take two of these. */
struct lade_stager {
	unsigned long long *barrier; /* in shared memory, of this warp alone */
	uint32_t phase;
};

/* Makes a stager's barrier, by one thread; others may use it behind a __syncthreads(). */
LADE_DEVICE void lade_stage_make(unsigned long long *barrier)
{
#if LADE_STAGE_BULK
	asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;"
	             :
	             : "r"((unsigned)__cvta_generic_to_shared(barrier))
	             : "memory");
	asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
#else
	(void)barrier;
#endif
}

/* Once for each stager, before its first use. */
LADE_DEVICE void lade_stage_open(lade_stager *s, unsigned long long *barrier, uint32_t lane)
{
	s->barrier = barrier;
	s->phase = 0;
	if (lane == 0)
		lade_stage_make(barrier);
	__syncwarp();
}

/*
 * One thread's part of lade_stage_begin(), where all of that is one bulk copy: 'from' is aligned to
 * 16 bytes and 'size' a multiple of that.  For the first use of a barrier by a warp's stager, which
 * waits for it as for its own.  Only where LADE_STAGE_BULK.
 */
LADE_DEVICE void lade_stage_bulk(unsigned long long *barrier, uint4 *to, const uint8_t *from,
                                 uint32_t size)
{
#if LADE_STAGE_BULK
	unsigned bar = (unsigned)__cvta_generic_to_shared(barrier);
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
	             :
	             : "r"(bar), "r"(size)
	             : "memory");
	if (size)
		asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
			     "[%0], [%1], %2, [%3];"
		             :
		             : "r"((unsigned)__cvta_generic_to_shared(to)),
		               "l"(__cvta_generic_to_global(from)), "r"(size), "r"(bar)
		             : "memory");
#else
	(void)barrier, (void)to, (void)from, (void)size;
#endif
}

/* The aligned word of which byte 'first' is the first wanted; 'left' bytes from its begin on are
 * the range's.  Others are not read, and 0. */
LADE_DEVICE uint32_t lade_stage_word(const uint8_t *word, int32_t first, int32_t left)
{
	uint32_t value = 0;
	if (first <= 0 && left >= 4)
		return __ldg((const uint32_t *)word);
#pragma unroll
	for (int32_t k = 0; k < 4; k++)
		if (k >= first && k < left)
			value |= (uint32_t)__ldg(word + k) << (8 * k);
	return value;
}

/* Any alignment: a lane makes 16 bytes of five aligned words.  Zeros follow up to a unit of 16. */
LADE_DEVICE void lade_stage_shifted(uint4 *to, const uint8_t *from, uint32_t size, uint32_t lane)
{
	int32_t over = (int32_t)((uintptr_t)from & 3);
	const uint8_t *words = from - over;
	for (uint32_t unit = lane; 16 * unit < size; unit += 32) {
		uint32_t at = 16 * unit, w[5];
#pragma unroll
		for (uint32_t k = 0; k < 5; k++)
			w[k] = lade_stage_word(words + at + 4 * k, over - (int32_t)(at + 4 * k),
			                       over + (int32_t)(size - at) - (int32_t)(4 * k));
		to[unit] = make_uint4(__funnelshift_r(w[0], w[1], 8 * (uint32_t)over),
		                      __funnelshift_r(w[1], w[2], 8 * (uint32_t)over),
		                      __funnelshift_r(w[2], w[3], 8 * (uint32_t)over),
		                      __funnelshift_r(w[3], w[4], 8 * (uint32_t)over));
	}
}

/*
 * Begins to bring 'size' bytes at 'from' to 'to': shared memory that is aligned to 16 bytes and has
 * 'size' rounded up to 16.  The bytes of the last unit of 16 that are behind 'size' become 0; none
 * of them, and none before 'from', is read.  What the warp did with 'to' before is over.  'to' may
 * be read after lade_stage_wait(), and until then not be touched.
 */
LADE_DEVICE void lade_stage_begin(lade_stager *s, uint4 *to, const uint8_t *from, uint32_t size,
                                  uint32_t lane)
{
	bool aligned = !((uintptr_t)from & 15);
	uint32_t whole = aligned ? size & ~15u : 0;
#if LADE_STAGE_BULK
	/* What lanes wrote to 'to' comes before what the copy writes. */
	asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
#endif
	__syncwarp();
#if LADE_STAGE_BULK
	if (lane == 0)
		lade_stage_bulk(s->barrier, to, from, whole);
#else
	(void)s;
	for (uint32_t at = 16 * lane; at < whole; at += 512)
		lade_cp_async_16(to + at / 16, from + at);
	lade_cp_async_commit();
#endif
	/* The range's end, or all of it. */
	if (whole != size)
		lade_stage_shifted(to + whole / 16, from + whole, size - whole, lane);
}

/* Has 'size' bytes at 'from' brought to the second-level cache, by one thread.  A hint. */
LADE_DEVICE void lade_stage_ahead(const uint8_t *from, uint32_t size)
{
#if LADE_STAGE_BULK
	uint32_t skip = (uint32_t)(0 - (uintptr_t)from) & 15;
	if (size >= skip + 16)
		asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;"
		             :
		             : "l"(__cvta_generic_to_global(from + skip)), "r"((size - skip) & ~15u)
		             : "memory");
#else
	(void)from, (void)size;
#endif
}

/*
 * Waits for what the last lade_stage_begin() of 's' began.  'later' says how many ranges the warp
 * began after that with other stagers and has not waited for: they may stay open.
 */
template <int later> LADE_DEVICE void lade_stage_wait(lade_stager *s)
{
#if LADE_STAGE_BULK
	asm volatile("{ .reg .pred there;"
	             " lade_stage_again:"
	             " mbarrier.try_wait.parity.shared::cta.b64 there, [%0], %1;"
	             " @!there bra lade_stage_again; }"
	             :
	             : "r"((unsigned)__cvta_generic_to_shared(s->barrier)), "r"(s->phase)
	             : "memory");
	s->phase ^= 1;
#else
	(void)s;
	lade_cp_async_wait<later>();
#endif
	__syncwarp();
}

/*
 * Begins to store 'size' bytes, a multiple of 16 up to 2^20, from shared to global memory, both
 * aligned to 16: a warp.  What the warp's lanes wrote to 'from' is there, and is to stay until
 * lade_stage_out_end(); 'to' is not to be read before the kernel ends.
 */
LADE_DEVICE void lade_stage_out_begin(uint8_t *to, const uint4 *from, uint32_t size, uint32_t lane)
{
#if LADE_STAGE_BULK
	asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
	__syncwarp();
	if (lane == 0 && size) {
		asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
		             :
		             : "l"(__cvta_generic_to_global(to)),
		               "r"((unsigned)__cvta_generic_to_shared(from)), "r"(size)
		             : "memory");
		asm volatile("cp.async.bulk.commit_group;" : : : "memory");
	}
#elif LADE_ON_GPU
	for (uint32_t i = lane; i < size / 16; i += 32)
		((uint4 *)lade_global(to))[i] = from[i];
#else
	for (uint32_t i = lane; i < size / 16; i += 32)
		emu_store_late(to + 16 * i, from + i, emu_here());
#endif
}

/* Waits until what the warp began to store has been read. */
LADE_DEVICE void lade_stage_out_end(uint32_t lane)
{
#if LADE_STAGE_BULK
	if (lane == 0)
		asm volatile("cp.async.bulk.wait_group.read 0;" : : : "memory");
#else
	(void)lane;
#endif
	__syncwarp();
}

/* Both. */
LADE_DEVICE void lade_stage_out(uint8_t *to, const uint4 *from, uint32_t size, uint32_t lane)
{
	lade_stage_out_begin(to, from, size, lane);
	lade_stage_out_end(lane);
}

#endif
