/*
 * cut.c: how large a call's waves are, and how many units the device has at the same time.  The
 * numbers are those of tuning.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/gpu/gpu.h"

/* The most units of a wave. */
#define WAVE_UNITS ((size_t)1 << 20)

/* Units that the first wave is thought to take at least. */
#define GUESS 64
#define GUESS_MOST 4096

/* The most bytes of a wave, and of the smallest ones. */
static size_t wave_size(const lade__gpu_cut *c, uint64_t total, size_t most, size_t limit,
                        size_t *least)
{
	const lade__tuning *t = c->tuning;
	uint64_t few = c->count ? total / c->count * t->wave_few : 0;
	if (few > t->wave_large)
		most = few < limit ? (size_t)few : limit;
	*least = few > t->wave_least ? (few < most ? (size_t)few : most) : t->wave_least;
	if (total == 0)
		return most;
	return total > most ? most : total < *least ? *least : (size_t)total;
}

size_t lade__gpu_cut_memory(const lade__device *device)
{
	return (size_t)(device->info.memory_size / lade__tuning_of(device)->memory_part);
}

lade__gpu_cut lade__gpu_cut_of(const lade__gpu_feed *feed, const lade__device *device)
{
	const lade__tuning *t = lade__tuning_of(device);
	size_t limit = lade__gpu_cut_memory(device) / LADE__GPU_FLIGHTS;
	uint64_t link = feed->in > feed->out ? feed->in : feed->out;
	lade__gpu_cut c = {.tuning = t, .count = feed->count, .in = feed->in, .out = feed->out,
	                   .arrive = feed->planner->call->arrivals != NULL};
	c.slow = feed->group->where.device.cost > (double)link / t->link_rate;
	c.cut = feed->pageable ? &t->pageable : feed->out ? &t->out : c.slow ? &t->slow : &t->in;
	const lade__arrivals *a = feed->planner->call->arrivals;
	size_t most = a && a->wave < c.cut->most ? a->wave : c.cut->most;
	c.most = (lade__gpu_most){.in = wave_size(&c, c.in, most, a ? most : limit / 2, &c.few_in),
	                          .out = wave_size(&c, c.out, t->wave_out, limit / 2, &c.few_out),
	                          .between = limit};
	return c;
}

/* The most bytes of the next wave on one side, of whose 'total' waves have taken 'done'. */
static size_t next_bytes(const lade__gpu_cut *c, size_t most, size_t least, uint64_t total,
                         uint64_t done)
{
	uint64_t left = total > done ? total - done : 0;
	/* Where little is left to do behind the last copy, the last waves are small. */
	bool small_end = !c->slow && c->cut != &c->tuning->out;
	uint64_t size = left / (small_end ? c->tuning->wave_last : 1);
	uint64_t grown = least > c->tuning->wave_least ? least : c->tuning->wave_first;
	if (total == 0 || c->single)
		return most;
	for (size_t i = 1; i < c->waves && grown < most; i++)
		grown *= c->cut->growth;
	size = size > least ? size : least;
	if (size > grown)
		size = grown;
	else if (left < size + least / 2) /* no wave for so little; and 'total' is a guess */
		size = left + least / 2;
	return size < most ? (size_t)size : most;
}

lade__gpu_most lade__gpu_cut_next(const lade__gpu_cut *c)
{
	return (lade__gpu_most){.in = next_bytes(c, c->most.in, c->few_in, c->in, c->in_done),
	                        .out = next_bytes(c, c->most.out, c->few_out, c->out, c->out_done),
	                        .between = c->most.between};
}

size_t lade__gpu_cut_units(const lade__gpu_cut *c)
{
	size_t most = c->tuning->units_most;
	if (c->in || c->out)
		return WAVE_UNITS;
	size_t grown = c->waves < 8 ? c->tuning->units_first << c->waves : most;
	return grown < most ? grown : most;
}

size_t lade__gpu_cut_guess(const lade__gpu_cut *c, const lade__gpu_most *most)
{
	double part = 1;
	if (c->in && (double)most->in < part * (double)c->in)
		part = (double)most->in / (double)c->in;
	if (c->out && (double)most->out < part * (double)c->out)
		part = (double)most->out / (double)c->out;
	size_t guess = (size_t)(1.125 * part * (double)c->count);
	size_t least = c->arrive ? 1 : GUESS; /* it is waited for */
	return guess > least ? guess < GUESS_MOST ? guess : GUESS_MOST : least;
}

double lade__gpu_cut_growth(const lade__gpu_cut *c, const lade__gpu_most *first)
{
	double in = (double)c->most.in / (double)first->in;
	double out = (double)c->most.out / (double)first->out;
	if (!c->in && !c->out)
		return (double)(c->tuning->units_most / c->tuning->units_first);
	return in > out ? in : out;
}

void lade__gpu_cut_take(lade__gpu_cut *c, const lade__gpu_wave *w)
{
	c->units += w->count;
	c->in_done += w->in_size;
	c->out_done += w->out_size;
	c->waves++;
	/* Nobody knew how large sources were that have not come yet. */
	if (c->arrive)
		c->in = (uint64_t)((double)c->in_done / (double)c->units * (double)c->count);
}

/*
 * Where kernels are slower than the link, in the end all units are there.  Else the device has
 * those of a few waves like this one, and the last ones, with less to come, get kernels with more
 * warps for a chunk.
 */
size_t lade__gpu_cut_beside(const lade__gpu_cut *c, const lade__gpu_wave *w, size_t pending,
                            bool end)
{
	size_t left = !end && c->count > c->units ? c->count - c->units : pending;
	size_t few = (c->tuning->concurrent - 1) * w->count;
	if (c->slow)
		return c->units - w->count + left;
	return few < left ? few : left;
}
