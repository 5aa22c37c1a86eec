/*
 * device.cuh: the one header that every .cu file includes first.  With nvcc it stands on CUDA's own
 * names; compiled as C++17 for the CPU it takes them from the emulated warp (emu/emu.h).  What
 * CUDA has no name for, or has only as PTX, is here under a lade_ name, with a body for each side.
 *
 * Kernels use CUDA's names, these, and nothing else: no std::, no cooperative groups, no statics.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_DEVICE_CUH
#define LADE_CUDA_DEVICE_CUH

#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define LADE_ON_GPU 1
#else
#define LADE_ON_GPU 0
#include <emu/emu.h>
#endif

#define LADE_DEVICE static __device__ __forceinline__

/*
 * Shared memory.  Declared in a kernel's (or device function's) body, once a variable:
 *
 *	LADE_SHARED(uint32_t, total);             a scalar or a struct
 *	LADE_SHARED(uint32_t, table, [4][256]);   an array; sizeof(table) is the array's
 *	LADE_SHARED_DYNAMIC(uint8_t, bytes);      a pointer to the launch's dynamic part
 *
 * All are aligned to 16 bytes, and hold garbage until written.  The dynamic part of a kernel is
 * one: each LADE_SHARED_DYNAMIC points to its start.  LADE_SHARED_DYNAMIC_AT(256, type, name) has
 * it aligned to more on GPUs.
 */
#if LADE_ON_GPU
#define LADE_SHARED(type, name, ...) __shared__ __align__(16) type name __VA_ARGS__
#define LADE_SHARED_DYNAMIC(type, name) LADE_SHARED_DYNAMIC_AT(16, type, name)
#define LADE_SHARED_DYNAMIC_AT(align, type, name)                                                  \
	extern __shared__ __align__(align) unsigned char lade__dynamic[];                          \
	type *name = reinterpret_cast<type *>(lade__dynamic)
#else
#define LADE_SHARED(type, name, ...)                                                               \
	typedef type lade__type_##name __VA_ARGS__;                                                \
	static const char lade__key_##name = 0;                                                    \
	lade__type_##name &name = *static_cast<lade__type_##name *>(                               \
		emu_shared(&lade__key_##name, #name, sizeof(lade__type_##name), 16))
#define LADE_SHARED_DYNAMIC(type, name) type *name = static_cast<type *>(emu_shared_dynamic())
#define LADE_SHARED_DYNAMIC_AT(align, type, name) LADE_SHARED_DYNAMIC(type, name)
#endif

/*
 * Loads and stores with a stated order, of uint32_t and of 64-bit unsigned words, naturally
 * aligned, in shared or global memory:
 *
 *	lade_ld_volatile, lade_st_volatile           neither cached nor reordered among themselves
 *	lade_ld_relaxed_gpu, lade_st_relaxed_gpu     whole words, seen by the whole GPU
 *	lade_ld_acquire_cta, lade_st_release_cta     hand-off between warps of a block
 *	lade_ld_acquire_gpu, lade_st_release_gpu     hand-off between blocks
 *
 * The acquiring side sees all that the releasing thread wrote, or saw at a barrier, before.
 */
#if LADE_ON_GPU
#define LADE__LOAD(name, T, B, ptx, reg)                                                           \
	LADE_DEVICE T name(const T *from)                                                          \
	{                                                                                          \
		B value;                                                                           \
		asm volatile(ptx " %0, [%1];" : "=" reg(value) : "l"(from) : "memory");            \
		return (T)value;                                                                   \
	}
#define LADE__STORE(name, T, B, ptx, reg)                                                          \
	LADE_DEVICE void name(T *to, T value)                                                      \
	{                                                                                          \
		asm volatile(ptx " [%0], %1;" : : "l"(to), reg((B)value) : "memory");              \
	}
#else
#define LADE__LOAD(name, T, B, ptx, reg)                                                           \
	LADE_DEVICE T name(const T *from, emu_site at = emu_here())                                \
	{                                                                                          \
		return (T)emu_load(from, sizeof(T), at);                                           \
	}
#define LADE__STORE(name, T, B, ptx, reg)                                                          \
	LADE_DEVICE void name(T *to, T value, emu_site at = emu_here())                            \
	{                                                                                          \
		emu_store(to, sizeof(T), value, at);                                               \
	}
#endif
#define LADE__ACCESSES(DEFINE, name, ptx)                                                          \
	DEFINE(name, unsigned, unsigned, ptx ".u32", "r")                                          \
	DEFINE(name, unsigned long, unsigned long long, ptx ".u64", "l")                           \
	DEFINE(name, unsigned long long, unsigned long long, ptx ".u64", "l")
LADE__ACCESSES(LADE__LOAD, lade_ld_volatile, "ld.volatile")
LADE__ACCESSES(LADE__LOAD, lade_ld_relaxed_gpu, "ld.relaxed.gpu")
LADE__ACCESSES(LADE__LOAD, lade_ld_acquire_cta, "ld.acquire.cta")
LADE__ACCESSES(LADE__LOAD, lade_ld_acquire_gpu, "ld.acquire.gpu")
LADE__ACCESSES(LADE__STORE, lade_st_volatile, "st.volatile")
LADE__ACCESSES(LADE__STORE, lade_st_relaxed_gpu, "st.relaxed.gpu")
LADE__ACCESSES(LADE__STORE, lade_st_release_cta, "st.release.cta")
LADE__ACCESSES(LADE__STORE, lade_st_release_gpu, "st.release.gpu")

/*
 * The first thing that a kernel does which may be launched early (lade__launch), or before one that
 * is: it lets the next one begin, and waits until the one before it has ended.
 */
LADE_DEVICE void lade_begin_early(void)
{
#if LADE_ON_GPU && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
	asm volatile("griddepcontrol.wait;" : : : "memory");
#endif
}

/*
 * Adds to a word of global memory and returns what it was; who sees the sum, and a fence behind it,
 * sees all that the thread wrote, or saw at a barrier, before.  (A fence of the whole GPU empties
 * the first-level cache of the multiprocessor, whoever asks for it; this does not.)
 */
#if LADE_ON_GPU
LADE_DEVICE uint32_t lade_add_release_gpu(uint32_t *to, uint32_t value)
{
	uint32_t before;
	asm volatile("atom.add.release.gpu.global.u32 %0, [%1], %2;"
	             : "=r"(before)
	             : "l"(__cvta_generic_to_global(to)), "r"(value)
	             : "memory");
	return before;
}
#else
LADE_DEVICE uint32_t lade_add_release_gpu(uint32_t *to, uint32_t value)
{
	return atomicAdd(to, value);
}
#endif

/*
 * A byte of global memory.  (A pointer that is chosen between two is generic to the compiler, and a
 * generic load is slower.)
 */
LADE_DEVICE uint32_t lade_ld_global_byte(const uint8_t *from)
{
#if LADE_ON_GPU
	uint32_t value;
	asm volatile("ld.global.u8 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
	return value;
#else
	return *from;
#endif
}

/* Asks the second-level cache for the line of global memory that the byte is in. */
LADE_DEVICE void lade_prefetch(const void *from)
{
#if LADE_ON_GPU
	asm volatile("prefetch.global.L2 [%0];" : : "l"(from));
#else
	(void)from;
#endif
}

/*
 * Copies from global to shared memory that do not pass through registers, sm_80 and later.  Both
 * sides are aligned to the size.  The bytes are there for the issuing thread after
 * lade_cp_async_wait<n>() has left at most n of its committed groups open, and for other threads
 * after a barrier behind that.
 *
 *	lade_cp_async_4, _8, _16(to, from)      'from' is read whole
 *	lade_cp_async_16_fill(to, from, size)   reads 'size' <= 16 bytes, zeros follow
 */
#if LADE_ON_GPU
#define LADE__CP_ASYNC(bytes, how)                                                                 \
	LADE_DEVICE void lade_cp_async_##bytes(void *to, const void *from)                         \
	{                                                                                          \
		asm volatile("cp.async." how ".shared.global [%0], [%1], " #bytes ";"              \
		             :                                                                     \
		             : "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from)              \
		             : "memory");                                                          \
	}
LADE__CP_ASYNC(4, "ca")
LADE__CP_ASYNC(8, "ca")
LADE__CP_ASYNC(16, "cg")

LADE_DEVICE void lade_cp_async_16_fill(void *to, const void *from, unsigned size)
{
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
	             :
	             : "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(size)
	             : "memory");
}

LADE_DEVICE void lade_cp_async_commit(void)
{
	asm volatile("cp.async.commit_group;" : : : "memory");
}

template <int groups_left> LADE_DEVICE void lade_cp_async_wait(void)
{
	asm volatile("cp.async.wait_group %0;" : : "n"(groups_left) : "memory");
}
#else
#define LADE__CP_ASYNC(bytes, how)                                                                 \
	LADE_DEVICE void lade_cp_async_##bytes(void *to, const void *from,                         \
	                                       emu_site at = emu_here())                           \
	{                                                                                          \
		emu_copy_async(to, from, bytes, bytes, at);                                        \
	}
LADE__CP_ASYNC(4, "ca")
LADE__CP_ASYNC(8, "ca")
LADE__CP_ASYNC(16, "cg")

LADE_DEVICE void lade_cp_async_16_fill(void *to, const void *from, unsigned size,
                                       emu_site at = emu_here())
{
	emu_copy_async(to, from, 16, size, at);
}

LADE_DEVICE void lade_cp_async_commit(void)
{
	emu_copy_commit();
}

template <int groups_left> LADE_DEVICE void lade_cp_async_wait(void)
{
	emu_copy_wait(groups_left);
}
#endif

/*
 * Named barriers: 'id' 1..15, 'threads' a multiple of 32 that counts all who sync or arrive, whole
 * warps each.  lade_bar_arrive() does not wait.  Id 0 is __syncthreads().
 *
 * A multiprocessor has 64 barriers.  A block reserves all 16 where one of its numbers is known at
 * run time only, so that 4 blocks fit; with constant numbers it reserves those up to the highest.
 */
#if LADE_ON_GPU
LADE_DEVICE void lade_bar_sync(unsigned id, unsigned threads)
{
	asm volatile("bar.sync %0, %1;" : : "r"(id), "r"(threads) : "memory");
}

template <unsigned id> LADE_DEVICE void lade_bar_sync(unsigned threads)
{
	asm volatile("bar.sync %0, %1;" : : "n"(id), "r"(threads) : "memory");
}

template <unsigned id> LADE_DEVICE void lade_bar_arrive(unsigned threads)
{
	asm volatile("bar.arrive %0, %1;" : : "n"(id), "r"(threads) : "memory");
}
#else
LADE_DEVICE void lade_bar_sync(unsigned id, unsigned threads, emu_site at = emu_here())
{
	emu_barrier(EMU_BAR_SYNC, id, threads, 0, at);
}

template <unsigned id> LADE_DEVICE void lade_bar_sync(unsigned threads, emu_site at = emu_here())
{
	emu_barrier(EMU_BAR_SYNC, id, threads, 0, at);
}

template <unsigned id> LADE_DEVICE void lade_bar_arrive(unsigned threads, emu_site at = emu_here())
{
	emu_barrier(EMU_BAR_ARRIVE, id, threads, 0, at);
}
#endif

#endif
