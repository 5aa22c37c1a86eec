/*
 * machine.h: the emulated machine's inside, shared by the .cc files of this folder: lanes, warps,
 * blocks, who may run, and how a launch fails.
 *
 * A lane is in exactly one state, by its bits in its warp: not alive; ready (the running lane
 * is ready too); waiting at a warp primitive; or in barred[] at a barrier.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_EMU_MACHINE_H
#define LADE_EMU_MACHINE_H

#include <emu/emu.h>
#include <emu/fiber.h>

enum {
	EMU_LANES = 32,
	EMU_WARPS = 32,             /* a block */
	EMU_BARRIERS = 16,          /* a block */
	EMU_COPIES = 128,           /* asynchronous copies in flight, a lane */
	EMU_VARIABLES = 64,         /* static shared variables of a launch */
	EMU_STATIC_MAX = 48 << 10,  /* bytes of static shared memory: the device's limit */
	EMU_SHARED_MAX = 227 << 10, /* static and dynamic, a block, on sm_90 */
	EMU_GAP = 64,               /* untouchable bytes around each shared variable */
	/* Variables, their gaps, and the dynamic part fit; a multiple of a page. */
	EMU_ARENA = 320 << 10,
	/* Steps that a lane runs at most before others get their turn, whatever it does. */
	EMU_QUANTUM = 4096
};

/* What a byte of shared memory is, in the shadow of an arena. */
enum {
	EMU_BYTE_GAP,
	EMU_BYTE_UNWRITTEN,
	EMU_BYTE_WRITTEN
};

/* A primitive at which a lane waits. */
struct emu_op {
	emu_kind kind;
	uint32_t mask;
	emu_site at;
	uint64_t value;
	uint32_t arg;
	int width;
};

struct emu_copy {
	void *to;
	const void *from;
	unsigned size, from_size;
	uint64_t group;
};

/* 16 bytes of a bulk store: on the device they may come when the kernel ends. */
struct emu_late {
	void *to;
	unsigned char bytes[16];
};

struct emu_warp_state;

struct emu_lane : emu_place {
	emu_fiber fiber;
	emu_warp_state *warp;
	unsigned index; /* in the warp */
	emu_op op;      /* the last primitive, for waiting and for messages */
	uint64_t met;   /* primitives so far */
	uint64_t result;
	const volatile void *polled; /* the last ordered load and what it found */
	uint64_t polled_value;
	unsigned copies; /* asynchronous copies in flight; their group numbers ascend */
	uint64_t group;
	emu_copy *copy;
};

struct emu_barrier_state {
	emu_kind kind;
	emu_site at;
	unsigned threads; /* 0: all that live */
	unsigned arrived;
	int sum, result;
};

struct emu_block_state {
	unsigned slot;
	bool busy;
	unsigned warps, threads, living;
	uint32_t variables; /* known to the launch and begun in this block: a count */
	emu_barrier_state barrier[EMU_BARRIERS];
	unsigned char *arena, *shadow; /* EMU_ARENA bytes each */
	unsigned char *dynamic;
};

struct emu_warp_state {
	emu_lane *lane; /* 32 of them */
	emu_block_state *block;
	unsigned index;
	uint32_t present; /* lanes that the block has */
	uint32_t alive, ready, waiting;
	uint32_t yielded; /* ready, but after the others */
	bool uniform;     /* all waiting lanes wait for the same */
	emu_op common;    /* that, when uniform and any waits */
	uint32_t barred[EMU_BARRIERS];
};

struct emu_variable {
	const void *key;
	const char *name;
	size_t size, off;
};

struct emu_machine {
	emu_fiber host;
	emu_config config;
	void (*body)(void *);
	void *arg;
	uint64_t blocks, next_block, first_block, block_step; /* the order of blocks */
	unsigned slots, lanes_made, warps;
	emu_lane *lane;
	emu_warp_state *warp;
	emu_block_state *block;
	emu_copy *copy;
	emu_late *late;
	size_t lates, lates_cap;
	emu_warp_state *turn; /* whose lane runs */
	unsigned char *stacks;
	size_t stacks_size, lanes_cap, slots_cap;
	unsigned char *arenas, *shadows;
	emu_variable variable[EMU_VARIABLES];
	unsigned variables;
	size_t static_size;
	uint64_t random;
	uint64_t steps_left, granted; /* granted: what emu__fuel began with */
	uint64_t switches;
	emu_result result;
};

extern __thread emu_machine *emu__machine;
/* Steps until emu_refuel(): then the budget is checked and others get a turn. */
extern __thread int64_t emu__fuel;
/* The launch's arenas, for the quick test whether an address is shared memory. */
extern __thread uintptr_t emu__arenas, emu__arenas_size;

static inline emu_lane *emu_self(void)
{
	return static_cast<emu_lane *>(emu__place);
}

static inline uint64_t emu_random(emu_machine *m)
{
	m->random ^= m->random >> 12;
	m->random ^= m->random << 25;
	m->random ^= m->random >> 27;
	return m->random * 0x2545F4914F6CDD1DULL;
}

/* machine.cc */
/* Ends the launch with this error; the message begins with kernel, block, warp and lane. */
[[noreturn]] void emu_fail(emu_error error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Runs somebody else until this lane is ready again. */
void emu_next(void);
/* Lets others run; the lane stays ready. */
void emu_yield(void);
void emu_refuel(void);
/* "__shfl_sync at file:line", in a ring of buffers. */
const char *emu_where(emu_kind kind, emu_site at);

static inline void emu_step(void)
{
	if (__builtin_expect(--emu__fuel < 0, 0))
		emu_refuel();
}

/* barrier.cc */
/* After a thread has left: barriers may be complete, and nobody may wait for it. */
void emu_barrier_left(emu_block_state *block);

/* memory.cc */
void emu_memory_begin(emu_block_state *block);
/* Does the launch's late stores. */
void emu_memory_end(emu_machine *m);
/* An access by the emulator itself: always checked for range and alignment. */
void emu_touch(const volatile void *at, unsigned size, bool reads, bool writes, const char *what,
               emu_site site);

#endif
