/*
 * warp.cc: warp primitives.  Lanes gather until all of a mask are there; the last one works out
 * everybody's result.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <emu/machine.h>

static bool same_site(emu_site a, emu_site b)
{
	return a.line == b.line && (a.file == b.file || !strcmp(a.file, b.file));
}

static bool same_op(const emu_op *a, const emu_op *b)
{
	return a->kind == b->kind && a->mask == b->mask && same_site(a->at, b->at);
}

/* ---- What a primitive gives ------------------------------------------------------------------ */
/* The lane whose value lane 'at' gets: the PTX text of shfl.sync, with its segment mask. */
static unsigned shuffle_source(const emu_op *op, unsigned at)
{
	unsigned segment = 32 - (unsigned)op->width, low = at & segment;
	unsigned high = low | (31 & ~segment), by = op->arg & 31, from;
	if (op->kind == EMU_SHFL_UP)
		return at >= by + low ? at - by : at;
	if (op->kind == EMU_SHFL_DOWN)
		from = at + by;
	else if (op->kind == EMU_SHFL_XOR)
		from = at ^ by;
	else
		from = low | (by & ~segment);
	return from <= high ? from : at;
}

static void shuffle(emu_warp_state *w, uint32_t mask)
{
	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		emu_lane *lane = &w->lane[__builtin_ctz(rest)];
		unsigned from = shuffle_source(&lane->op, lane->index);
		if (!(mask >> from & 1))
			emu_fail(EMU_LANE,
			         "%s: lane %u reads from lane %u, which mask 0x%08x does not name",
			         emu_where(lane->op.kind, lane->op.at), lane->index, from, mask);
		lane->result = w->lane[from].op.value;
	}
}

static void match(emu_warp_state *w, uint32_t mask, bool all)
{
	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		emu_lane *lane = &w->lane[__builtin_ctz(rest)];
		uint32_t same = 0;
		for (uint32_t other = mask; other; other &= other - 1) {
			unsigned i = (unsigned)__builtin_ctz(other);
			if (w->lane[i].op.value == lane->op.value)
				same |= 1u << i;
		}
		lane->result = all && same != mask ? 0 : same;
	}
}

static uint32_t combine(emu_kind kind, uint32_t a, uint32_t b)
{
	switch (kind) {
	case EMU_REDUCE_ADD:
		return a + b;
	case EMU_REDUCE_MIN_U:
		return a < b ? a : b;
	case EMU_REDUCE_MAX_U:
		return a > b ? a : b;
	case EMU_REDUCE_MIN_S:
		return (int32_t)a < (int32_t)b ? a : b;
	case EMU_REDUCE_MAX_S:
		return (int32_t)a > (int32_t)b ? a : b;
	case EMU_REDUCE_AND:
		return a & b;
	case EMU_REDUCE_OR:
		return a | b;
	default:
		return a ^ b;
	}
}

static void give(emu_warp_state *w, uint32_t mask, uint64_t result)
{
	for (uint32_t rest = mask; rest; rest &= rest - 1)
		w->lane[__builtin_ctz(rest)].result = result;
}

static void reduce(emu_warp_state *w, uint32_t mask, emu_kind kind)
{
	uint32_t rest = mask & (mask - 1);
	uint32_t sum = (uint32_t)w->lane[__builtin_ctz(mask)].op.value;
	for (; rest; rest &= rest - 1)
		sum = combine(kind, sum, (uint32_t)w->lane[__builtin_ctz(rest)].op.value);
	give(w, mask, sum);
}

static uint32_t ballot(const emu_warp_state *w, uint32_t mask)
{
	uint32_t votes = 0;
	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		unsigned i = (unsigned)__builtin_ctz(rest);
		votes |= (uint32_t)w->lane[i].op.value << i;
	}
	return votes;
}

static void carry_out(emu_warp_state *w, const emu_op *op)
{
	switch (op->kind) {
	case EMU_SYNCWARP:
		break;
	case EMU_SHFL:
	case EMU_SHFL_UP:
	case EMU_SHFL_DOWN:
	case EMU_SHFL_XOR:
		shuffle(w, op->mask);
		break;
	case EMU_BALLOT:
		give(w, op->mask, ballot(w, op->mask));
		break;
	case EMU_ANY:
		give(w, op->mask, ballot(w, op->mask) != 0);
		break;
	case EMU_ALL:
		give(w, op->mask, ballot(w, op->mask) == op->mask);
		break;
	case EMU_MATCH_ANY:
	case EMU_MATCH_ALL:
		match(w, op->mask, op->kind == EMU_MATCH_ALL);
		break;
	default:
		reduce(w, op->mask, op->kind);
	}
}

/* ---- Gathering ----------------------------------------------------------------------------- */
static void check_mask(const emu_lane *self, const emu_op *op)
{
	const emu_warp_state *w = self->warp;
	uint32_t gone = op->mask & ~w->alive;
	if (!(op->mask >> self->index & 1))
		emu_fail(EMU_BAD_MASK, "%s: mask 0x%08x does not name the calling lane",
		         emu_where(op->kind, op->at), op->mask);
	if (gone)
		emu_fail(EMU_EXITED, "%s: mask 0x%08x names lane %d, which %s",
		         emu_where(op->kind, op->at), op->mask, __builtin_ctz(gone),
		         gone & w->present ? "has exited" : "the block does not have");
	if (op->width < 1 || op->width > 32 || (op->width & (op->width - 1)))
		emu_fail(EMU_BAD_MASK, "%s: width %d is not 1, 2, 4, 8, 16 or 32",
		         emu_where(op->kind, op->at), op->width);
	/* __syncthreads() would wait for this lane for ever, and this lane for those in it. */
	uint32_t barred = op->mask & w->barred[0];
	if (barred && !w->block->barrier[0].threads)
		emu_fail(EMU_DIVERGENT, "%s with mask 0x%08x, but lane %d is at %s",
		         emu_where(op->kind, op->at), op->mask, __builtin_ctz(barred),
		         emu_where(w->block->barrier[0].kind, w->block->barrier[0].at));
}

/* Lanes that wait for this one must wait for the same. */
static void check_others(const emu_lane *self, const emu_op *op)
{
	const emu_warp_state *w = self->warp;
	for (uint32_t rest = w->waiting & op->mask; rest; rest &= rest - 1) {
		const emu_lane *other = &w->lane[__builtin_ctz(rest)];
		if ((other->op.mask >> self->index & 1) && !same_op(&other->op, op))
			emu_fail(EMU_DIVERGENT,
			         "%s with mask 0x%08x, but lane %u is at %s with mask 0x%08x",
			         emu_where(op->kind, op->at), op->mask, other->index,
			         emu_where(other->op.kind, other->op.at), other->op.mask);
	}
}

static bool gathered(const emu_warp_state *w, const emu_op *op)
{
	if ((w->waiting & op->mask) != op->mask)
		return false;
	if (w->uniform)
		return true;
	for (uint32_t rest = op->mask; rest; rest &= rest - 1)
		if (!same_op(&w->lane[__builtin_ctz(rest)].op, op))
			return false;
	return true;
}

uint64_t emu_warp(emu_kind kind, uint32_t mask, uint64_t value, uint32_t arg, int width,
                  emu_site at)
{
	emu_lane *self = emu_self();
	emu_warp_state *w = self->warp;
	emu_op *op = &self->op;
	emu_step();
	*op = {kind, mask, at, value, arg, width};
	self->met++;
	check_mask(self, op);
	if (!w->waiting) {
		w->uniform = true;
		w->common = *op;
	} else if (!w->uniform || w->common.kind != kind || w->common.mask != mask ||
	           !same_site(w->common.at, at)) {
		/* (The arguments are compared, and not *op: it was written a moment ago in other
		 * pieces than it would be read, which stalls.) */
		w->uniform = false;
		check_others(self, op);
	}
	w->waiting |= 1u << self->index;
	if (!gathered(w, op)) {
		w->ready &= ~(1u << self->index);
		emu_next();
		return self->result;
	}
	carry_out(w, op);
	w->waiting &= ~mask;
	w->ready |= mask;
	/* Who goes first after the meeting is left to chance. */
	if (emu__machine->config.seed)
		emu_next();
	return self->result;
}

unsigned __activemask(void)
{
	emu_machine *m = emu__machine;
	emu_lane *self = emu_self();
	uint32_t some = m->config.seed ? (uint32_t)(emu_random(m) >> 32) : 0xFFFFFFFF;
	return self->warp->alive & (some | 1u << self->index);
}
