/*
 * emu.h: the emulated warp.  A .cu file that is compiled as C++17 for the CPU finds here what nvcc
 * would have given it: threadIdx, warp primitives, barriers, shared memory, atomics, intrinsics.
 * Kernels do not include this file; they include
 * gpu/kernels/device.cuh, which picks nvcc's or this.
 *
 * Each thread of a block is a fiber with a stack of its own.  A lane runs until it meets a
 * primitive, waits there until every lane of the mask has come, and then goes on with its result.
 * One CPU thread runs everything, so a run with one seed is the same each time; another seed takes
 * lanes, warps and blocks in another order, and fills shared memory with other garbage.
 *
 * A misuse ends the launch: emu_launch() returns what happened, in words, and never aborts.  See
 * docs/emulated-warp.md for what can be reported and what cannot.
 *
 *	emu_result r = emu_launch({"scan", 4, 128, 1024}, [&] { scan<32>(src, dst); });
 *	if (!r.ok)
 *		puts(r.message);
 *
 * Leaves out: textures, cooperative groups, tensor cores, clusters, dynamic parallelism, timing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_EMU_H
#define LADE_EMU_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Where a primitive is called.  As a default argument it is the place of the kernel's own line. */
struct emu_site {
	const char *file;
	int line;
};

static constexpr inline emu_site emu_here(const char *file = __builtin_FILE(),
                                          int line = __builtin_LINE())
{
	return {file, line};
}

/* ---- CUDA's words ---------------------------------------------------------------------------- */
#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
/* Empty, since system headers write __attribute__((__noinline__)). */
#define __noinline__
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __grid_constant__

#include <emu/intrinsics.h>

struct dim3 {
	unsigned x, y, z;
	constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
	{
	}
};

/* What the running lane knows of its place; NULL outside of a launch. */
struct emu_place {
	uint3 thread;
	uint3 block;
	dim3 block_dim;
	dim3 grid_dim;
};
extern __thread emu_place *emu__place;

/* Constant for one lane, and so for one call of a kernel: the compiler may ask once. */
uint3 emu_thread(void) __attribute__((const));
uint3 emu_block(void) __attribute__((const));
dim3 emu_block_dim(void) __attribute__((const));
dim3 emu_grid_dim(void) __attribute__((const));

#define threadIdx (emu_thread())
#define blockIdx (emu_block())
#define blockDim (emu_block_dim())
#define gridDim (emu_grid_dim())
enum {
	warpSize = 32
};

/* ---- Launching ------------------------------------------------------------------------------- */
enum emu_error {
	EMU_OK,
	EMU_BAD_LAUNCH, /* a size that a device refuses; a null or too large shared memory */
	EMU_BAD_MASK,   /* the mask does not name the caller, or a width is no power of two */
	EMU_EXITED,     /* a mask names a lane that has exited, or that the block never had */
	EMU_DIVERGENT,  /* lanes that name one another stand at different primitives */
	EMU_LANE,       /* a shuffle reads from a lane outside its mask */
	EMU_BARRIER,    /* a barrier not reached by all living threads, or misused */
	EMU_DEADLOCK,   /* every lane waits */
	EMU_STEPS,      /* the step budget is used up: an endless loop */
	EMU_UNWRITTEN,  /* shared memory is read that no lane of the block wrote (checked) */
	EMU_RANGE,      /* shared memory beside a variable is touched (checked; atomics always) */
	EMU_GLOBAL,     /* emu_config.global refused an address (checked; atomics always) */
	EMU_MISALIGNED, /* an address that the device would refuse (checked; atomics always) */
	EMU_TRAP,       /* the kernel called __trap() */
	EMU_LIMIT       /* a limit of the emulator itself */
};

struct emu_config {
	const char *kernel = "kernel"; /* its name, for messages */
	dim3 grid = 1;
	dim3 block = 32;
	size_t shared = 0;             /* bytes of dynamic shared memory */
	uint64_t seed = 0;             /* 0: ascending order, few switches; others: random order */
	uint64_t steps = 1000000000; /* basic blocks, checked accesses and primitives, all lanes */
	unsigned resident = 1;         /* blocks that run interleaved; others wait for their end */
	/* Asked of each access to neither shared memory nor a lane's stack; NULL: all are allowed.
	 * Runs as a part of the lane: no primitives, and no memset() or its like. */
	bool (*global)(const volatile void *at, size_t size) = NULL;
};

struct emu_result {
	bool ok;
	emu_error error;
	char message[480]; /* kernel, block, warp, lane, primitive, file:line; empty when ok */
	uint64_t steps;    /* used by this launch */
	uint64_t switches; /* from one lane to another */
};

/* Runs 'body(arg)' once for each thread.  One launch a CPU thread at a time; not from a kernel. */
emu_result emu_run(const emu_config &config, void (*body)(void *arg), void *arg);

template <typename F> static inline emu_result emu_launch(const emu_config &config, F body)
{
	return emu_run(config, [](void *arg) { (*static_cast<F *>(arg))(); }, &body);
}

template <typename F>
static inline emu_result emu_launch(dim3 grid, dim3 block, size_t shared, F body)
{
	emu_config config;
	config.grid = grid;
	config.block = block;
	config.shared = shared;
	return emu_launch(config, body);
}

/*
 * True where the kernels of this program are compiled with checks of every access (the CMake
 * function lade_kernel_test does it), so that EMU_UNWRITTEN, EMU_RANGE and EMU_MISALIGNED are
 * reported for plain loads and stores too.  False in builds under ASan, which does its own.
 */
bool emu_checked(void);

/* ---- Shared memory: used by the macros LADE_SHARED and LADE_SHARED_DYNAMIC of device.cuh ----- */
void *emu_shared(const void *key, const char *name, size_t size, size_t align);
void *emu_shared_dynamic(void);

/* ---- Warp primitives ------------------------------------------------------------------------- */
enum emu_kind {
	EMU_SYNCWARP,
	EMU_SHFL,
	EMU_SHFL_UP,
	EMU_SHFL_DOWN,
	EMU_SHFL_XOR,
	EMU_BALLOT,
	EMU_ANY,
	EMU_ALL,
	EMU_MATCH_ANY,
	EMU_MATCH_ALL,
	EMU_REDUCE_ADD,
	EMU_REDUCE_MIN_U,
	EMU_REDUCE_MAX_U,
	EMU_REDUCE_MIN_S,
	EMU_REDUCE_MAX_S,
	EMU_REDUCE_AND,
	EMU_REDUCE_OR,
	EMU_REDUCE_XOR,
	EMU_SYNCTHREADS,
	EMU_SYNCTHREADS_COUNT,
	EMU_SYNCTHREADS_AND,
	EMU_SYNCTHREADS_OR,
	EMU_BAR_SYNC,
	EMU_BAR_ARRIVE
};

/* Waits for the lanes of 'mask' and returns this lane's result. */
uint64_t emu_warp(emu_kind kind, uint32_t mask, uint64_t value, uint32_t arg, int width,
                  emu_site at);

template <typename T> static inline uint64_t emu_bits(T value)
{
	uint64_t bits = 0;
	__builtin_memcpy(&bits, &value, sizeof(T));
	return bits;
}

template <typename T> static inline T emu_value(uint64_t bits)
{
	T value;
	__builtin_memcpy(&value, &bits, sizeof(T));
	return value;
}

/*
 * The result of a shuffle is the PTX text's: a lane outside [0, width) of its segment gives the
 * caller's own value back, and only the low 5 bits of lane, delta and xor count.
 */
#define EMU_SHUFFLES(T)                                                                            \
	static inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32,              \
	                            emu_site at = emu_here())                                      \
	{                                                                                          \
		return emu_value<T>(                                                               \
			emu_warp(EMU_SHFL, mask, emu_bits(value), (uint32_t)lane, width, at));     \
	}                                                                                          \
	static inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,     \
	                               emu_site at = emu_here())                                   \
	{                                                                                          \
		return emu_value<T>(                                                               \
			emu_warp(EMU_SHFL_UP, mask, emu_bits(value), delta, width, at));           \
	}                                                                                          \
	static inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,   \
	                                 emu_site at = emu_here())                                 \
	{                                                                                          \
		return emu_value<T>(                                                               \
			emu_warp(EMU_SHFL_DOWN, mask, emu_bits(value), delta, width, at));         \
	}                                                                                          \
	static inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32,          \
	                                emu_site at = emu_here())                                  \
	{                                                                                          \
		return emu_value<T>(                                                               \
			emu_warp(EMU_SHFL_XOR, mask, emu_bits(value), (uint32_t)bits, width, at)); \
	}

/* As CUDA has them: no half, and a match compares bits. */
#define EMU_MATCHES(T)                                                                             \
	static inline unsigned __match_any_sync(unsigned mask, T value, emu_site at = emu_here())  \
	{                                                                                          \
		return (unsigned)emu_warp(EMU_MATCH_ANY, mask, emu_bits(value), 0, 32, at);        \
	}                                                                                          \
	static inline unsigned __match_all_sync(unsigned mask, T value, int *all,                  \
	                                        emu_site at = emu_here())                          \
	{                                                                                          \
		unsigned same = (unsigned)emu_warp(EMU_MATCH_ALL, mask, emu_bits(value), 0, 32,    \
		                                   at);                                            \
		*all = same != 0;                                                                  \
		return same;                                                                       \
	}
#define EMU_TYPES(DEFINE)                                                                          \
	DEFINE(int)                                                                                \
	DEFINE(unsigned)                                                                           \
	DEFINE(long)                                                                               \
	DEFINE(unsigned long)                                                                      \
	DEFINE(long long)                                                                          \
	DEFINE(unsigned long long)                                                                 \
	DEFINE(float)                                                                              \
	DEFINE(double)
EMU_TYPES(EMU_SHUFFLES)
EMU_TYPES(EMU_MATCHES)

static inline void __syncwarp(unsigned mask = 0xFFFFFFFF, emu_site at = emu_here())
{
	emu_warp(EMU_SYNCWARP, mask, 0, 0, 32, at);
}

static inline unsigned __ballot_sync(unsigned mask, int predicate, emu_site at = emu_here())
{
	return (unsigned)emu_warp(EMU_BALLOT, mask, predicate != 0, 0, 32, at);
}

static inline int __any_sync(unsigned mask, int predicate, emu_site at = emu_here())
{
	return (int)emu_warp(EMU_ANY, mask, predicate != 0, 0, 32, at);
}

static inline int __all_sync(unsigned mask, int predicate, emu_site at = emu_here())
{
	return (int)emu_warp(EMU_ALL, mask, predicate != 0, 0, 32, at);
}

#define EMU_REDUCE(name, T, kind)                                                                  \
	static inline T name(unsigned mask, T value, emu_site at = emu_here())                     \
	{                                                                                          \
		return (T)emu_warp(kind, mask, (uint32_t)value, 0, 32, at);                        \
	}
EMU_REDUCE(__reduce_add_sync, unsigned, EMU_REDUCE_ADD)
EMU_REDUCE(__reduce_add_sync, int, EMU_REDUCE_ADD)
EMU_REDUCE(__reduce_min_sync, unsigned, EMU_REDUCE_MIN_U)
EMU_REDUCE(__reduce_min_sync, int, EMU_REDUCE_MIN_S)
EMU_REDUCE(__reduce_max_sync, unsigned, EMU_REDUCE_MAX_U)
EMU_REDUCE(__reduce_max_sync, int, EMU_REDUCE_MAX_S)
EMU_REDUCE(__reduce_and_sync, unsigned, EMU_REDUCE_AND)
EMU_REDUCE(__reduce_or_sync, unsigned, EMU_REDUCE_OR)
EMU_REDUCE(__reduce_xor_sync, unsigned, EMU_REDUCE_XOR)

/*
 * The caller and any other lanes that live: CUDA promises no more.  Seed 0 gives all living lanes
 * of the warp, other seeds a random part, so that code which takes the answer for a mask of lanes
 * that come along is found out.
 */
unsigned __activemask(void);

/* ---- Barriers of the block ------------------------------------------------------------------- */
/* 'threads' 0: all living threads; 'value' is what the counting forms count.  Returns the count. */
int emu_barrier(emu_kind kind, unsigned id, unsigned threads, int value, emu_site at);

static inline void __syncthreads(emu_site at = emu_here())
{
	emu_barrier(EMU_SYNCTHREADS, 0, 0, 0, at);
}

static inline int __syncthreads_count(int predicate, emu_site at = emu_here())
{
	return emu_barrier(EMU_SYNCTHREADS_COUNT, 0, 0, predicate != 0, at);
}

static inline int __syncthreads_and(int predicate, emu_site at = emu_here())
{
	return emu_barrier(EMU_SYNCTHREADS_AND, 0, 0, predicate == 0, at) == 0;
}

static inline int __syncthreads_or(int predicate, emu_site at = emu_here())
{
	return emu_barrier(EMU_SYNCTHREADS_OR, 0, 0, predicate != 0, at) != 0;
}

/* ---- Memory ---------------------------------------------------------------------------------- */
/* Lets other lanes and warps go on.  A polling loop makes progress with it and, slower, without. */
void __nanosleep(unsigned nanoseconds);
void __trap(void);
/* Steps taken so far in this launch: it grows, and means nothing else. */
long long clock64(void);

/* The emulated machine keeps one order of all accesses, so fences have nothing to do. */
static inline void __threadfence(void)
{
}

static inline void __threadfence_block(void)
{
}

static inline void __threadfence_system(void)
{
}

/*
 * Volatile, relaxed, acquire and release accesses of device.cuh: 'size' is 4 or 8.  A load that
 * finds what the lane's last such load found there is taken for polling and lets others run.
 */
uint64_t emu_load(const volatile void *from, unsigned size, emu_site at);
void emu_store(volatile void *to, unsigned size, uint64_t value, emu_site at);

/* cp.async: bytes arrive when the lane waits for their group, not before.  See device.cuh. */
void emu_copy_async(void *to, const void *from, unsigned size, unsigned from_size, emu_site at);
void emu_copy_commit(void);
void emu_copy_wait(unsigned groups_left);

/* 16 bytes of a bulk store from shared to global memory, both aligned to that: they are read now
 * and written when the launch ends, which is the latest that the device may. */
void emu_store_late(void *to, const void *from, emu_site at);

enum emu_atom {
	EMU_ADD,
	EMU_SUB,
	EMU_EXCH,
	EMU_CAS,
	EMU_MIN_S,
	EMU_MIN_U,
	EMU_MAX_S,
	EMU_MAX_U,
	EMU_AND,
	EMU_OR,
	EMU_XOR,
	EMU_INC,
	EMU_DEC,
	EMU_ADD_F
};
/* Returns the old value; 'size' is 2, 4 or 8. */
uint64_t emu_atomic(emu_atom op, void *at_address, unsigned size, uint64_t value, uint64_t expected,
                    emu_site at);

#define EMU_ATOMIC1(name, T, op)                                                                   \
	static inline T name(T *address, T value, emu_site at = emu_here())                        \
	{                                                                                          \
		return emu_value<T>(                                                               \
			emu_atomic(op, address, sizeof(T), emu_bits(value), 0, at));               \
	}
#define EMU_ATOMIC(name, T, op) EMU_ATOMIC1(name, T, op) EMU_ATOMIC1(name##_block, T, op)
/* The overloads that CUDA has and no others: uint64_t is unsigned long there and has none. */
EMU_ATOMIC(atomicAdd, int, EMU_ADD)
EMU_ATOMIC(atomicAdd, unsigned, EMU_ADD)
EMU_ATOMIC(atomicAdd, unsigned long long, EMU_ADD)
EMU_ATOMIC(atomicAdd, float, EMU_ADD_F)
EMU_ATOMIC(atomicAdd, double, EMU_ADD_F)
EMU_ATOMIC(atomicSub, int, EMU_SUB)
EMU_ATOMIC(atomicSub, unsigned, EMU_SUB)
EMU_ATOMIC(atomicExch, int, EMU_EXCH)
EMU_ATOMIC(atomicExch, unsigned, EMU_EXCH)
EMU_ATOMIC(atomicExch, unsigned long long, EMU_EXCH)
EMU_ATOMIC(atomicExch, float, EMU_EXCH)
EMU_ATOMIC(atomicMin, int, EMU_MIN_S)
EMU_ATOMIC(atomicMin, unsigned, EMU_MIN_U)
EMU_ATOMIC(atomicMin, long long, EMU_MIN_S)
EMU_ATOMIC(atomicMin, unsigned long long, EMU_MIN_U)
EMU_ATOMIC(atomicMax, int, EMU_MAX_S)
EMU_ATOMIC(atomicMax, unsigned, EMU_MAX_U)
EMU_ATOMIC(atomicMax, long long, EMU_MAX_S)
EMU_ATOMIC(atomicMax, unsigned long long, EMU_MAX_U)
EMU_ATOMIC(atomicAnd, int, EMU_AND)
EMU_ATOMIC(atomicAnd, unsigned, EMU_AND)
EMU_ATOMIC(atomicAnd, unsigned long long, EMU_AND)
EMU_ATOMIC(atomicOr, int, EMU_OR)
EMU_ATOMIC(atomicOr, unsigned, EMU_OR)
EMU_ATOMIC(atomicOr, unsigned long long, EMU_OR)
EMU_ATOMIC(atomicXor, int, EMU_XOR)
EMU_ATOMIC(atomicXor, unsigned, EMU_XOR)
EMU_ATOMIC(atomicXor, unsigned long long, EMU_XOR)
EMU_ATOMIC(atomicInc, unsigned, EMU_INC)
EMU_ATOMIC(atomicDec, unsigned, EMU_DEC)

#define EMU_ATOMIC_CAS1(name, T)                                                                   \
	static inline T name(T *address, T expected, T value, emu_site at = emu_here())            \
	{                                                                                          \
		return emu_value<T>(emu_atomic(EMU_CAS, address, sizeof(T), emu_bits(value),       \
		                               emu_bits(expected), at));                           \
	}
#define EMU_ATOMIC_CAS(T) EMU_ATOMIC_CAS1(atomicCAS, T) EMU_ATOMIC_CAS1(atomicCAS_block, T)
EMU_ATOMIC_CAS(int)
EMU_ATOMIC_CAS(unsigned)
EMU_ATOMIC_CAS(unsigned short)
EMU_ATOMIC_CAS(unsigned long long)

/* Cache hints change nothing here. */
#define EMU_LOAD_HINT(name)                                                                        \
	template <typename T> static inline T name(const T *from)                                  \
	{                                                                                          \
		return *from;                                                                      \
	}
#define EMU_STORE_HINT(name)                                                                       \
	template <typename T> static inline void name(T *to, T value)                              \
	{                                                                                          \
		*to = value;                                                                       \
	}
EMU_LOAD_HINT(__ldg)
EMU_LOAD_HINT(__ldca)
EMU_LOAD_HINT(__ldcg)
EMU_LOAD_HINT(__ldcs)
EMU_LOAD_HINT(__ldlu)
EMU_STORE_HINT(__stwb)
EMU_STORE_HINT(__stcg)
EMU_STORE_HINT(__stcs)

#endif
