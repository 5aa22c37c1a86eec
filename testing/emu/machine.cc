/*
 * machine.cc: launches, the order in which lanes run, and the report of what went wrong.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <emu/machine.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#if EMU_ASAN
#include <sanitizer/asan_interface.h>
#endif

__thread emu_place *emu__place;
__thread emu_machine *emu__machine;
__thread int64_t emu__fuel;
__thread uintptr_t emu__arenas, emu__arenas_size;

/* Under ASan frames grow by their red zones.  The first page of each stack is a guard. */
static const size_t stack_size = EMU_ASAN ? 256 << 10 : 128 << 10;

static const char *const kind_names[] = {
	"__syncwarp",
	"__shfl_sync",
	"__shfl_up_sync",
	"__shfl_down_sync",
	"__shfl_xor_sync",
	"__ballot_sync",
	"__any_sync",
	"__all_sync",
	"__match_any_sync",
	"__match_all_sync",
	"__reduce_add_sync",
	"__reduce_min_sync",
	"__reduce_max_sync",
	"__reduce_min_sync",
	"__reduce_max_sync",
	"__reduce_and_sync",
	"__reduce_or_sync",
	"__reduce_xor_sync",
	"__syncthreads",
	"__syncthreads_count",
	"__syncthreads_and",
	"__syncthreads_or",
	"lade_bar_sync",
	"lade_bar_arrive",
};

const char *emu_where(emu_kind kind, emu_site at)
{
	static __thread char ring[4][256];
	static __thread unsigned turn;
	char *text = ring[turn++ & 3];
	const char *slash = at.file ? strrchr(at.file, '/') : NULL;
	snprintf(text, sizeof(ring[0]), "%s at %s:%d", kind_names[kind],
	         slash ? slash + 1 : at.file ? at.file : "(start)", at.line);
	return text;
}

void emu_fail(emu_error error, const char *format, ...)
{
	emu_machine *m = emu__machine;
	emu_lane *self = emu_self();
	emu_result *r = &m->result;
	va_list args;
	int used = snprintf(r->message, sizeof(r->message),
	                    "kernel %s, block (%u,%u,%u), warp %u, lane %u: ", m->config.kernel,
	                    self->block.x, self->block.y, self->block.z, self->warp->index,
	                    self->index);
	va_start(args, format);
	if (used > 0 && (size_t)used < sizeof(r->message))
		vsnprintf(r->message + used, sizeof(r->message) - (size_t)used, format, args);
	va_end(args);
	r->ok = false;
	r->error = error;
	emu__place = NULL;
	emu_fiber_switch(&self->fiber, &m->host);
	__builtin_unreachable();
}

uint3 emu_thread(void)
{
	return emu__place->thread;
}

uint3 emu_block(void)
{
	return emu__place->block;
}

dim3 emu_block_dim(void)
{
	return emu__place->block_dim;
}

dim3 emu_grid_dim(void)
{
	return emu__place->grid_dim;
}

/* ---- Who runs -------------------------------------------------------------------------------- */
static void go(emu_lane *from, emu_lane *to)
{
	emu_machine *m = emu__machine;
	if (from == to)
		return;
	m->switches++;
	m->turn = to->warp;
	emu__place = to;
	emu_fiber_switch(&from->fiber, &to->fiber);
}

/* Every lane of the launch that lives waits: says for what. */
static void deadlock(void)
{
	emu_machine *m = emu__machine;
	const emu_lane *lane = NULL;
	for (unsigned i = 0; i < m->warps * EMU_LANES; i++) {
		emu_warp_state *w = &m->warp[i / EMU_LANES];
		if (w->waiting >> (i % EMU_LANES) & 1)
			lane = &m->lane[i];
	}
	for (unsigned s = 0; s < m->slots; s++) {
		emu_block_state *b = &m->block[s];
		for (unsigned i = 0; i < EMU_BARRIERS; i++) {
			emu_barrier_state *bar = &b->barrier[i];
			if (!b->busy || !bar->arrived)
				continue;
			emu_fail(EMU_BARRIER,
			         "%s is not reached by all: %u of %u threads are there%s%s",
			         emu_where(bar->kind, bar->at), bar->arrived,
			         bar->threads ? bar->threads : b->living,
			         lane ? "; one waits in " : "",
			         lane ? emu_where(lane->op.kind, lane->op.at) : "");
		}
	}
	if (!lane)
		emu_fail(EMU_DEADLOCK, "no lane can go on");
	emu_fail(EMU_DEADLOCK, "no lane can go on; warp %u, lane %u waits in %s for lanes 0x%08x",
	         lane->warp->index, lane->index, emu_where(lane->op.kind, lane->op.at),
	         lane->op.mask & ~lane->warp->waiting);
}

/* A bit of 'set', which is not 0: at random, or the next above 'after'. */
static unsigned pick(uint32_t set, unsigned after)
{
	emu_machine *m = emu__machine;
	unsigned turn = m->config.seed ? (unsigned)(emu_random(m) >> 59) : (after + 1) % 32;
	uint32_t turned = (uint32_t)(((uint64_t)set << 32 | set) >> turn);
	return ((unsigned)__builtin_ctz(turned) + turn) % 32;
}

void emu_next(void)
{
	emu_machine *m = emu__machine;
	emu_lane *self = emu_self();
	emu_warp_state *w = m->turn;
	uint32_t can = w->ready & ~w->yielded;
	/* Under a seed a warp is at times left in its middle. */
	if (!can || (m->config.seed && m->warps > 1 && (emu_random(m) >> 60) == 0)) {
		unsigned at = (unsigned)(w - m->warp), tried;
		w->yielded = 0;
		if (m->config.seed)
			at = (unsigned)((emu_random(m) >> 32) * m->warps >> 32);
		for (tried = 0; tried < m->warps; tried++) {
			at = at + 1 == m->warps ? 0 : at + 1;
			if (m->warp[at].ready)
				break;
		}
		if (tried == m->warps)
			deadlock();
		w = &m->warp[at];
		can = w->ready & ~w->yielded;
		if (!can) {
			w->yielded = 0;
			can = w->ready;
		}
	}
	go(self, &w->lane[pick(can, self->warp == w ? self->index : 31)]);
}

void emu_yield(void)
{
	emu_lane *self = emu_self();
	self->warp->yielded |= 1u << self->index;
	emu_next();
}

/*
 * The fuel is up: the budget is charged, and others get a turn.  Calls from the host's own code,
 * which may be compiled with the same hooks as the kernels, only fill it up.
 */
void emu_refuel(void)
{
	emu_machine *m = emu__machine;
	emu_lane *self = emu_self();
	if (!self) {
		emu__fuel = INT64_MAX / 2;
		return;
	}
	m->steps_left -= m->granted < m->steps_left ? m->granted : m->steps_left;
	emu__fuel = 0;
	m->granted = 0;
	if (!m->steps_left)
		emu_fail(EMU_STEPS, "the budget of %llu steps is used up; last primitive: %s",
		         (unsigned long long)m->config.steps,
		         emu_where(self->op.kind, self->op.at));
	m->granted = m->config.seed ? (emu_random(m) >> 55) + 1 : (uint64_t)EMU_QUANTUM;
	if (m->granted > m->steps_left)
		m->granted = m->steps_left;
	emu__fuel = (int64_t)m->granted;
	emu_yield();
}

long long clock64(void)
{
	emu_machine *m = emu__machine;
	return (long long)(m->config.steps - m->steps_left + m->granted) - emu__fuel;
}

void __nanosleep(unsigned)
{
	emu_step();
	emu_yield();
}

void __trap(void)
{
	emu_lane *self = emu_self();
	emu_fail(EMU_TRAP, "__trap(); last primitive: %s", emu_where(self->op.kind, self->op.at));
}

/* ---- Blocks ---------------------------------------------------------------------------------- */
/* Puts the next block of the grid into a slot; false when there is none. */
static bool block_begin(unsigned slot)
{
	emu_machine *m = emu__machine;
	emu_block_state *b = &m->block[slot];
	const dim3 grid = m->config.grid, dim = m->config.block;
	b->busy = m->next_block < m->blocks;
	if (!b->busy)
		return false;
	uint64_t n = (uint64_t)(((unsigned __int128)m->next_block++ * m->block_step +
	                         m->first_block) %
	                        m->blocks);
	uint3 index = {(unsigned)(n % grid.x), (unsigned)(n / grid.x % grid.y),
	               (unsigned)(n / grid.x / grid.y)};
	b->living = b->threads;
	memset(b->barrier, 0, sizeof(b->barrier));
	emu_memory_begin(b);
	for (unsigned i = 0; i < b->warps; i++) {
		emu_warp_state *w = &m->warp[slot * b->warps + i];
		unsigned rest = b->threads - i * EMU_LANES;
		w->present = rest >= EMU_LANES ? 0xFFFFFFFF : (1u << rest) - 1;
		w->alive = w->ready = w->present;
		w->waiting = w->yielded = 0;
		memset(w->barred, 0, sizeof(w->barred));
	}
	for (unsigned i = 0; i < b->threads; i++) {
		emu_lane *lane = &m->lane[slot * b->warps * EMU_LANES + i];
		lane->thread = {i % dim.x, i / dim.x % dim.y, i / dim.x / dim.y};
		lane->block = index;
		lane->block_dim = dim;
		lane->grid_dim = grid;
		lane->op.kind = EMU_SYNCWARP;
		lane->op.at = {NULL, 0};
		lane->met = 0;
		lane->polled = NULL;
		lane->copies = 0;
		lane->group = 0;
	}
	return true;
}

/* The kernel has returned in this lane. */
static void leave(emu_lane *self)
{
	emu_machine *m = emu__machine;
	emu_warp_state *w = self->warp;
	uint32_t bit = 1u << self->index;
	for (uint32_t rest = w->waiting; rest; rest &= rest - 1) {
		emu_lane *other = &w->lane[__builtin_ctz(rest)];
		if (other->op.mask & bit)
			emu_fail(EMU_EXITED,
			         "exits while lane %u waits for it in %s with mask 0x%08x",
			         other->index, emu_where(other->op.kind, other->op.at),
			         other->op.mask);
	}
	w->alive &= ~bit;
	w->ready &= ~bit;
	emu_block_state *b = w->block;
	b->living--;
	if (b->living) {
		emu_barrier_left(b);
	} else if (!block_begin(b->slot)) {
		bool any = false;
		for (unsigned s = 0; s < m->slots; s++)
			any |= m->block[s].busy;
		if (!any) {
			emu__place = NULL;
			emu_fiber_switch(&self->fiber, &m->host);
			return;
		}
	}
	emu_next();
}

/* A fiber serves the same lane of one block after the other, and of one launch after the other. */
static void lane_main(void)
{
	emu_lane *self = emu_self();
	emu_fiber_entered();
	for (;;) {
		emu_machine *m = emu__machine;
		m->body(m->arg);
		leave(self);
	}
}

/* ---- The machine ----------------------------------------------------------------------------- */
static void *pages(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
	                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return at == MAP_FAILED ? NULL : at;
}

static void machine_free(emu_machine *m)
{
#if EMU_ASAN
	__asan_unpoison_memory_region(m->stacks, m->stacks_size);
	__asan_unpoison_memory_region(m->arenas, m->slots_cap * EMU_ARENA);
#endif
	if (m->stacks)
		munmap(m->stacks, m->stacks_size);
	if (m->arenas)
		munmap(m->arenas, m->slots_cap * EMU_ARENA);
	if (m->shadows)
		munmap(m->shadows, m->slots_cap * EMU_ARENA);
	free(m->lane);
	free(m->warp);
	free(m->block);
	free(m->copy);
	free(m->late);
	*m = {};
}

static void stack_make(emu_machine *m, unsigned i)
{
	/* Tops at distances that are no power of two: hot ends must not share a cache set. */
	size_t shift = i % 61 * 192;
	unsigned char *stack = m->stacks + i * stack_size;
	emu_fiber_make(&m->lane[i].fiber, stack + 4096, stack_size - 4096 - shift, lane_main);
}

/* Room for this many lanes and slots; what is there is kept when it is enough. */
static bool machine_grow(emu_machine *m, size_t lanes, size_t slots)
{
	if (lanes <= m->lanes_cap && slots <= m->slots_cap)
		return true;
	if (lanes < m->lanes_cap)
		lanes = m->lanes_cap;
	if (slots < m->slots_cap)
		slots = m->slots_cap;
	machine_free(m);
	m->stacks_size = lanes * stack_size;
	m->stacks = (unsigned char *)pages(m->stacks_size);
	m->arenas = (unsigned char *)pages(slots * EMU_ARENA);
	m->shadows = (unsigned char *)pages(slots * EMU_ARENA);
	m->lane = (emu_lane *)calloc(lanes, sizeof(emu_lane));
	m->warp = (emu_warp_state *)calloc(lanes / EMU_LANES, sizeof(emu_warp_state));
	m->block = (emu_block_state *)calloc(slots, sizeof(emu_block_state));
	m->copy = (emu_copy *)calloc(lanes, EMU_COPIES * sizeof(emu_copy));
	m->lanes_cap = lanes;
	m->slots_cap = slots;
	if (!m->stacks || !m->arenas || !m->shadows || !m->lane || !m->warp || !m->block ||
	    !m->copy)
		return false;
	for (size_t i = 0; i < lanes; i++)
		if (mprotect(m->stacks + i * stack_size, 4096, PROT_NONE))
			return false;
	return true;
}

/* The machine of a thread is kept for its next launch and freed with the thread. */
struct emu_owner {
	emu_machine machine;
	~emu_owner()
	{
		machine_free(&machine);
	}
};

static emu_machine *machine_get(void)
{
	static thread_local emu_owner owner;
	return &owner.machine;
}

static bool refuse(emu_result *r, const emu_config *c, const char *text, uint64_t have,
                   uint64_t most)
{
	r->ok = false;
	r->error = EMU_BAD_LAUNCH;
	snprintf(r->message, sizeof(r->message), "kernel %s: %s %llu, at most %llu", c->kernel,
	         text, (unsigned long long)have, (unsigned long long)most);
	return false;
}

static bool launch_check(const emu_config *c, emu_result *r)
{
	const dim3 g = c->grid, b = c->block;
	uint64_t threads = (uint64_t)b.x * b.y * b.z;
	if (!g.x || !g.y || !g.z || !threads)
		return refuse(r, c, "a grid or block of size", 0, 0);
	if (b.x > 1024 || b.y > 1024 || b.z > 64 || threads > 1024)
		return refuse(r, c, "threads a block", threads, 1024);
	if (g.x > 0x7FFFFFFF || g.y > 65535 || g.z > 65535)
		return refuse(r, c, "blocks in y or z", g.y > g.z ? g.y : g.z, 65535);
	if (c->shared > EMU_SHARED_MAX)
		return refuse(r, c, "bytes of shared memory", c->shared, EMU_SHARED_MAX);
	if (!c->resident || c->resident > 64)
		return refuse(r, c, "resident blocks (at least 1)", c->resident, 64);
	return true;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* Blocks run in the order first + i * step modulo their number; a step without common divisor
 * meets each once. */
static void order_blocks(emu_machine *m)
{
	m->next_block = 0;
	m->first_block = 0;
	m->block_step = 1;
	if (!m->config.seed)
		return;
	m->first_block = emu_random(m) % m->blocks;
	do
		m->block_step = emu_random(m) % m->blocks + 1;
	while (common_divisor(m->block_step, m->blocks) != 1);
}

static void machine_begin(emu_machine *m, unsigned threads)
{
	unsigned warps = (threads + EMU_LANES - 1) / EMU_LANES;
	m->warps = warps * m->slots;
	for (unsigned s = 0; s < m->slots; s++) {
		emu_block_state *b = &m->block[s];
		b->slot = s;
		b->warps = warps;
		b->threads = threads;
		b->arena = m->arenas + (size_t)s * EMU_ARENA;
		b->shadow = m->shadows + (size_t)s * EMU_ARENA;
	}
	for (unsigned i = 0; i < m->warps; i++) {
		emu_warp_state *w = &m->warp[i];
		w->index = i % warps;
		w->block = &m->block[i / warps];
		w->lane = &m->lane[i * EMU_LANES];
		w->present = w->alive = w->ready = w->waiting = w->yielded = 0;
	}
	for (unsigned i = 0; i < m->warps * EMU_LANES; i++) {
		m->lane[i].warp = &m->warp[i / EMU_LANES];
		m->lane[i].index = i % EMU_LANES;
		m->lane[i].copy = m->copy + (size_t)i * EMU_COPIES;
	}
	for (; m->lanes_made < m->warps * EMU_LANES; m->lanes_made++)
		stack_make(m, m->lanes_made);
	m->variables = 0;
	m->static_size = 0;
	for (unsigned s = 0; s < m->slots; s++)
		block_begin(s);
}

emu_result emu_run(const emu_config &config, void (*body)(void *), void *arg)
{
	emu_result bad = {};
	if (!launch_check(&config, &bad))
		return bad;
	emu_machine *m = machine_get();
	unsigned threads = config.block.x * config.block.y * config.block.z;
	size_t room = (threads + EMU_LANES - 1) / EMU_LANES * EMU_LANES;
	uint64_t blocks = (uint64_t)config.grid.x * config.grid.y * config.grid.z;
	unsigned slots = blocks < config.resident ? (unsigned)blocks : config.resident;
	if (emu__place) {
		refuse(&bad, &config, "launches inside of a launch", 1, 0);
		return bad;
	}
	if (!machine_grow(m, room * slots, slots)) {
		machine_free(m);
		refuse(&bad, &config, "no memory for lanes", room * slots, 0);
		return bad;
	}
	emu__machine = m;
	m->config = config;
	m->body = body;
	m->arg = arg;
	m->blocks = blocks;
	m->slots = slots;
	m->switches = 0;
	m->lates = 0;
	m->random = config.seed * 0x9E3779B97F4A7C15ULL | 1;
	for (int i = 0; i < 4; i++)
		emu_random(m);
	m->result = {};
	m->result.ok = true;
	m->steps_left = config.steps;
	m->granted = config.steps < EMU_QUANTUM ? config.steps : (uint64_t)EMU_QUANTUM;
	emu__fuel = (int64_t)m->granted;
	emu__arenas = (uintptr_t)m->arenas;
	emu__arenas_size = m->slots_cap * EMU_ARENA;
	order_blocks(m);
	machine_begin(m, threads);
	if (!m->host.stack)
		emu_fiber_host(&m->host);
	m->turn = m->warp;
	emu_lane *first = &m->warp->lane[pick(m->warp->ready, 31)];
	emu__place = first;
	emu_fiber_switch(&m->host, &first->fiber);

	m->result.steps = (uint64_t)clock64();
	m->result.switches = m->switches;
	emu__fuel = INT64_MAX / 2;
	emu__arenas_size = 0;
	if (m->result.ok)
		emu_memory_end(m);
	emu__machine = NULL;
	/* Fibers of a launch that failed stand anywhere in the kernel: they begin anew. */
	if (!m->result.ok)
		m->lanes_made = 0;
	return m->result;
}
