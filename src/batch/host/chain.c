/*
 * chain.c: chains of filters, run tile by tile, so that the data passes through main memory
 * once whatever the number of filters.
 *
 *     input --[GATHER or STREAM]--> tile --[STREAM]--> tile ... --[STREAM or SCATTER]--> output
 *
 * A tile is about 16 KiB where it is widest, half a first-level cache.  A chain of one filter
 * whose output is not windowed runs as one big tile.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/host/chain.h"

#include "engine/spec.h"

#include <string.h>

#define TILE_BYTES_MAX ((size_t)256 << 10)

static const lade_stage *stage_at(const lade__pipe *pipe, const lade__chain *chain, size_t i)
{
	size_t at = chain->step > 0 ? chain->first + i : chain->first - i;
	return &pipe->route->spec->stage[at];
}

static const lade_implementation *impl_at(const lade__pipe *pipe, const lade__chain *chain,
                                          size_t i)
{
	size_t at = chain->step > 0 ? chain->first + i : chain->first - i;
	return lade__route_at(pipe->worker->engine, pipe->route, at);
}

/* Bytes an element where a stage's input comes in and where its output goes out. */
static void elem_sizes(const lade__pipe *pipe, const lade__chain *chain, size_t i, size_t *in,
                       size_t *out)
{
	if (chain->step > 0)
		impl_at(pipe, chain, i)->tile->sizes(stage_at(pipe, chain, i), in, out);
	else
		impl_at(pipe, chain, i)->tile->sizes(stage_at(pipe, chain, i), out, in);
}

/* The output's size for an input of 'size' bytes. */
static lade_status size_after(const lade_stage *stage, int step, size_t size, size_t *out,
                              lade_error *err)
{
	if (step > 0) {
		*out = stage->algorithm->bound(stage, size);
		if (*out != SIZE_MAX)
			return LADE_OK;
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "%s: %zu bytes are more than it can hold", stage->algorithm->name,
		                 size);
	}
	uint64_t decoded;
	lade_status status = stage->algorithm->decoded_size(stage, NULL, size, &decoded, err);
	if (status == LADE_OK && decoded > SIZE_MAX / 2)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET, "%s: %llu bytes are too many",
		                 stage->algorithm->name, (unsigned long long)decoded);
	*out = (size_t)decoded;
	return status;
}

/* Whether tiles of 'elems' elements of the first stage are whole elements for all stages, in steps
 * of 8 elements, as bit shuffles need them. */
static bool tile_fits(const lade__pipe *pipe, const lade__chain *chain, size_t elems)
{
	size_t bytes = 0;
	for (size_t i = 0; i < chain->count; i++) {
		size_t in, out;
		elem_sizes(pipe, chain, i, &in, &out);
		if (i == 0)
			bytes = elems * in;
		if (bytes % (8 * in))
			return false;
		bytes = bytes / in * out;
	}
	return true;
}

/* Elements of the first stage in a tile; 0 when none fits the limit. */
static size_t tile_elems(const lade__pipe *pipe, const lade__chain *chain)
{
	size_t in, out, unit = 64;
	elem_sizes(pipe, chain, 0, &in, &out);
	size_t wide = in > out ? in : out;
	while (!tile_fits(pipe, chain, unit)) {
		unit += 64;
		if (unit * wide > TILE_BYTES_MAX)
			return 0;
	}
	size_t times = LADE__TILE_BYTES / (unit * wide);
	return unit * (times ? times : 1);
}

lade_status lade__chain_make(const lade__pipe *pipe, size_t left, lade__chain *chain,
                             lade_error *err)
{
	chain->count = 0;
	chain->out_size = chain->in_size;
	while (chain->count < left) {
		const lade_tile_ops *ops = impl_at(pipe, chain, chain->count)->tile;
		if (!ops || (ops->kind == LADE_TILE_GATHER && chain->count))
			break;
		size_t size = chain->out_size;
		lade_status status = size_after(stage_at(pipe, chain, chain->count), chain->step,
		                                size, &chain->out_size, err);
		if (status != LADE_OK)
			return status;
		chain->count++;
		chain->tile = tile_elems(pipe, chain);
		if (chain->tile == 0 && chain->count > 1) {
			/* The element sizes do not go together: leave this one to the next
			 * chain. */
			chain->count--;
			chain->out_size = size;
			chain->tile = tile_elems(pipe, chain);
			break;
		}
		if (ops->kind == LADE_TILE_SCATTER)
			break;
	}
	return LADE_OK;
}

/* ---- running ---------------------------------------------------------------------------- */

/* One stage of a chain in the making: where it stands and what it hands on. */
typedef struct member {
	const lade_implementation *impl;
	lade_run run;
	lade_carry carry;
	size_t in, out;     /* bytes an element */
	size_t in_off;      /* elements before the tile */
	size_t total;       /* bytes of the whole decoded side */
	size_t out_total;   /* bytes of the whole output */
} member;

static lade_status members_init(const lade__pipe *pipe, const lade__chain *chain, member *members,
                                lade_error *err)
{
	size_t size = chain->in_size;
	for (size_t i = 0; i < chain->count; i++) {
		member *m = &members[i];
		size_t at = chain->step > 0 ? chain->first + i : chain->first - i;
		memset(m, 0, sizeof *m);
		m->impl = impl_at(pipe, chain, i);
		lade_status status = lade__pipe_run(pipe, at, &m->run, err);
		if (status == LADE_OK)
			status = size_after(m->run.stage, chain->step, size, &m->out_total, err);
		if (status != LADE_OK)
			return status;
		elem_sizes(pipe, chain, i, &m->in, &m->out);
		m->total = chain->step > 0 ? size : m->out_total;
		size = m->out_total;
	}
	return LADE_OK;
}

/* A chain's way over its input. */
typedef struct pass {
	const lade__pipe *pipe;
	const lade__chain *chain;
	member members[LADE_STAGES_MAX];
	const uint8_t *src;
	uint8_t *dst;
	const lade__sink *sink; /* NULL: the output goes to 'dst' */
	uint8_t *buffers[2];    /* between members, and before a sink */
	size_t count, tile;     /* the first member's whole elements, and those of a tile */
} pass;

/*
 * Sends one tile through all members.  'elems' are the first member's; with 'last' the remaining
 * bytes, partial elements included, go along.  The result is in 'dst' at the last member's place,
 * or, with a sink, is handed to it.
 */
static lade_status tile_run(pass *p, size_t elems, bool last, lade_error *err)
{
	member *members = p->members;
	const uint8_t *at = members[0].impl->tile->kind == LADE_TILE_GATHER ?
		p->src : p->src + members[0].in_off * members[0].in;
	int held = -1; /* the buffer that 'at' points into */
	for (size_t i = 0; i < p->chain->count; i++) {
		member *m = &members[i];
		bool end = i + 1 == p->chain->count;
		size_t out_off = m->in_off * m->out;
		size_t bytes = last ? m->out_total - out_off : elems * m->out;
		uint8_t *to;
		int hold = -1;
		if (end && !p->sink) {
			to = m->impl->tile->kind == LADE_TILE_SCATTER ? p->dst : p->dst + out_off;
		} else {
			hold = held >= 0 && m->in == m->out ? held : held == 0;
			to = p->buffers[hold];
		}
		lade_elements tile = {at, to, m->in_off, elems, m->total, &m->carry};
		lade_status status = m->impl->tile->run(&m->run, &tile, err);
		if (status != LADE_OK)
			return status;
		if (end && p->sink)
			lade__sink_write(p->sink, out_off, to, bytes);
		m->in_off += elems;
		at = to;
		held = hold;
		if (!end)
			elems = bytes / members[i + 1].in;
	}
	return LADE_OK;
}

/*
 * The buffers between members.  Behind the elements of the last tile stands what the member's
 * output has beyond the whole elements: partial ones, and what the members behind make of them.
 */
static lade_status buffers_get(pass *p, lade_error *err)
{
	size_t wide = 0, n = p->tile, whole = p->count;
	for (size_t i = 0; i < p->chain->count; i++) {
		const member *m = &p->members[i];
		if (i > 0) {
			n = n * m[-1].out / m->in;
			whole = whole * m[-1].out / m->in;
		}
		size_t rest = m->out_total - whole * m->out;
		if (n * m->out + rest > wide)
			wide = n * m->out + rest;
	}
	for (unsigned k = 0; k < 2; k++) {
		p->buffers[k] = lade__worker_block(p->pipe->worker, LADE__SCRATCH_TILE + k, wide);
		if (!p->buffers[k])
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "no memory for tiles of %zu bytes", wide);
	}
	return LADE_OK;
}

lade_status lade__chain_run(const lade__pipe *pipe, const lade__chain *chain, const void *src,
                            void *dst, const lade__sink *sink, lade_error *err)
{
	pass p;
	member *members = p.members;
	p.pipe = pipe;
	p.chain = chain;
	p.src = src;
	p.dst = dst;
	p.sink = sink;
	p.buffers[0] = p.buffers[1] = NULL;
	lade_status status = members_init(pipe, chain, members, err);
	if (status != LADE_OK || chain->in_size == 0)
		return status;
	size_t count = members[0].total /
	               (chain->step > 0 ? members[0].in : members[0].out); /* whole elements */
	size_t tile = chain->tile;
	if ((chain->count == 1 && !sink) || tile == 0 || tile > count)
		tile = count;
	p.count = count;
	p.tile = tile;
	if (chain->count > 1 || sink) {
		status = buffers_get(&p, err);
		if (status != LADE_OK)
			return status;
	}
	size_t off = 0;
	/* A lone GATHER carries nothing from tile to tile: begin where the window begins. */
	if (sink && tile && chain->count == 1 && members[0].impl->tile->kind == LADE_TILE_GATHER &&
	    sink->off > sink->base) {
		off = (sink->off - sink->base) / (tile * members[0].out) * tile;
		if (off > count)
			off = count / tile * tile;
		members[0].in_off = off;
	}
	for (;;) {
		size_t elems = count - off < tile ? count - off : tile;
		bool last = off + elems == count;
		status = tile_run(&p, elems, last, err);
		off += elems;
		if (status != LADE_OK || last)
			return status;
		const member *m = &members[chain->count - 1];
		if (sink && sink->base + m->in_off * m->out >= sink->off + sink->size)
			return LADE_OK;
	}
}
