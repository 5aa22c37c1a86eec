/*
 * barrier.cc: __syncthreads() and its counting forms, and named barriers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <emu/machine.h>

static bool full(const emu_block_state *b, const emu_barrier_state *bar)
{
	return bar->arrived && bar->arrived == (bar->threads ? bar->threads : b->living);
}

static void open(emu_block_state *b, unsigned id)
{
	emu_warp_state *warp = &emu__machine->warp[b->slot * b->warps];
	emu_barrier_state *bar = &b->barrier[id];
	bar->result = bar->sum;
	bar->sum = 0;
	bar->arrived = 0;
	for (unsigned i = 0; i < b->warps; i++) {
		warp[i].ready |= warp[i].barred[id];
		warp[i].barred[id] = 0;
	}
}

void emu_barrier_left(emu_block_state *b)
{
	/* Only barriers of all living threads become full by a thread's leaving. */
	if (!b->barrier[0].threads && full(b, &b->barrier[0]))
		open(b, 0);
}

static void check(const emu_lane *self, emu_kind kind, unsigned id, unsigned threads, emu_site at)
{
	const emu_warp_state *w = self->warp;
	const emu_barrier_state *bar = &w->block->barrier[id];
	bool named = kind == EMU_BAR_SYNC || kind == EMU_BAR_ARRIVE;
	if (named && (!threads || threads % EMU_LANES || threads > w->block->threads))
		emu_fail(EMU_BARRIER, "%s: barrier %u for %u threads, the block has %u",
		         emu_where(kind, at), id, threads, w->block->threads);
	if (!named)
		for (uint32_t rest = w->waiting; rest; rest &= rest - 1) {
			const emu_lane *other = &w->lane[__builtin_ctz(rest)];
			if (other->op.mask >> self->index & 1)
				emu_fail(EMU_DIVERGENT, "%s, but lane %u is at %s with mask 0x%08x",
				         emu_where(kind, at), other->index,
				         emu_where(other->op.kind, other->op.at), other->op.mask);
		}
	if (!bar->arrived)
		return;
	bool differs = named ? bar->threads != threads :
	                       bar->kind != kind || bar->at.line != at.line ||
	                               strcmp(bar->at.file, at.file);
	if (differs)
		emu_fail(EMU_BARRIER, "%s for %u threads, but others are at %s for %u",
		         emu_where(kind, at), threads ? threads : w->block->living,
		         emu_where(bar->kind, bar->at),
		         bar->threads ? bar->threads : w->block->living);
}

int emu_barrier(emu_kind kind, unsigned id, unsigned threads, int value, emu_site at)
{
	emu_lane *self = emu_self();
	emu_warp_state *w = self->warp;
	emu_block_state *b = w->block;
	emu_step();
	self->op = {kind, 0, at, 0, id, 32};
	self->met++;
	if (id >= EMU_BARRIERS)
		emu_fail(EMU_BARRIER, "%s: barrier %u, the last is 15", emu_where(kind, at), id);
	check(self, kind, id, threads, at);
	emu_barrier_state *bar = &b->barrier[id];
	bar->kind = kind;
	bar->at = at;
	bar->threads = threads;
	bar->arrived++;
	bar->sum += value;
	if (full(b, bar)) {
		open(b, id);
		if (emu__machine->config.seed)
			emu_next();
	} else if (kind != EMU_BAR_ARRIVE) {
		w->barred[id] |= 1u << self->index;
		w->ready &= ~(1u << self->index);
		emu_next();
	}
	return bar->result;
}
