/*
 * encode.c: encoding chunks of the cascaded codec (docs/format/cascaded.md), and the algorithm's
 * record.
 *
 * The cascades that may be tried are measured for each block; the one that gives the fewest units
 * is written, among equals the first: nothing, differences, their runs; outer runs, their
 * differences, the runs of these; then a sub-block of bitcomp.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/bitcomp/bitcomp.h"
#include "codec/cascaded/cascaded.h"
#include "codec/cascaded/kernels.h"
#include "filter/ints.h"

#include <string.h>

/* ---- options --------------------------------------------------------------------------------- */

static const char *const modes[] = {"strong", "fast", NULL};

static const lade_option options[] = {
	[LADE__CASCADED_DTYPE] = {.name = "dtype",
                                  .type = LADE_OPTION_DTYPE,
                                  .fallback = {.i = LADE_U1},
                                  .doc = "the elements' type"},
	[LADE__CASCADED_MODE] = {.name = "mode",
                                 .type = LADE_OPTION_ENUM,
                                 .names = modes,
                                 .doc = "fast: as level 2, no runs of differences"},
	[LADE__CASCADED_LEVEL] = {.name = "level",
                                  .type = LADE_OPTION_INT,
                                  .always = true,
                                  .fallback = {.i = 3},
                                  .max = 7,
                                  .doc = "how many cascades are tried; 3 and above: all"},
	[LADE__CASCADED_ENCODINGS] = {.name = "encodings",
                                      .type = LADE_OPTION_INT,
                                      .fallback = {.i = 3},
                                      .max = 7,
                                      .doc = "1: differences, 2: runs, 4: packing (always done)"},
	[LADE__CASCADED_RLES] = {.name = "rles",
                                 .type = LADE_OPTION_INT,
                                 .fallback = {.i = -1},
                                 .min = -1,
                                 .max = 7,
                                 .doc = "layers of runs; -1: chosen"},
	[LADE__CASCADED_DELTAS] = {.name = "deltas",
                                   .type = LADE_OPTION_INT,
                                   .fallback = {.i = -1},
                                   .min = -1,
                                   .max = 3,
                                   .doc = "layers of differences; -1: chosen"},
	[LADE__CASCADED_BITPACK] = {.name = "bitpack",
                                    .type = LADE_OPTION_BOOL,
                                    .fallback = {.i = 1},
                                    .doc = "false: arrays of whole elements"},
	[LADE__CASCADED_BLOCK] = {.name = "block",
                                  .type = LADE_OPTION_INT,
                                  .fallback = {.i = 8192},
                                  .min = 4096,
                                  .max = 8192,
                                  .doc = "decoded bytes of a block, 4096 or 8192"},
};

#define BIT(layers) (1u << (layers))
#define PACK BIT(0)
#define ROTATED BIT(LADE_CASCADED_ROTATED)
#define DELTA (BIT(LADE_CASCADED_DELTA) | BIT(LADE_CASCADED_DELTA | LADE_CASCADED_PARTS))
#define OUTER BIT(LADE_CASCADED_OUTER)
#define OUTER_DELTA BIT(LADE_CASCADED_OUTER | LADE_CASCADED_DELTA)
#define DELTA_INNER BIT(LADE_CASCADED_DELTA | LADE_CASCADED_INNER)
#define ALL_THREE BIT(LADE_CASCADED_OUTER | LADE_CASCADED_DELTA | LADE_CASCADED_INNER)

static uint32_t tried_of(const lade_value *v)
{
	static const uint32_t by_level[] = {
		PACK, PACK | ROTATED | DELTA, PACK | ROTATED | DELTA | OUTER | OUTER_DELTA,
		PACK | ROTATED | DELTA | OUTER | OUTER_DELTA | DELTA_INNER | ALL_THREE};
	int64_t level = v[LADE__CASCADED_LEVEL].i, rles = v[LADE__CASCADED_RLES].i;
	int64_t deltas = v[LADE__CASCADED_DELTAS].i;
	if (rles >= 0 || deltas >= 0) {
		/* Runs, differences, runs: what of it is asked for, or none of it. */
		uint32_t layers = (rles > 0 ? LADE_CASCADED_OUTER : 0) |
		                  (deltas > 0 ? LADE_CASCADED_DELTA : 0);
		return PACK | BIT(layers | (rles > 1 && deltas > 0 ? LADE_CASCADED_INNER : 0));
	}
	if (v[LADE__CASCADED_MODE].i && level > 2)
		level = 2;
	uint32_t tried = by_level[level < 3 ? level : 3];
	if (!(v[LADE__CASCADED_ENCODINGS].i & 1))
		tried &= PACK | ROTATED | OUTER;
	if (!(v[LADE__CASCADED_ENCODINGS].i & 2))
		tried &= PACK | ROTATED | DELTA;
	return tried;
}

lade_cas_choice lade__cascaded_choice_of(const lade_stage *stage)
{
	const lade_value *v = stage->option;
	lade_dtype dtype = (lade_dtype)v[LADE__CASCADED_DTYPE].i;
	bool real = lade_dtype_class(dtype) == 'f' && lade_dtype_size(dtype) >= 4;
	bool fast = v[LADE__CASCADED_MODE].i || v[LADE__CASCADED_LEVEL].i < 3;
	bool all = v[LADE__CASCADED_ENCODINGS].i % 4 == 3 && v[LADE__CASCADED_RLES].i < 0 &&
	           v[LADE__CASCADED_DELTAS].i < 0 && v[LADE__CASCADED_BITPACK].i &&
	           v[LADE__CASCADED_LEVEL].i > 1;
	return (lade_cas_choice){
		.log2 = lade__log2(lade_dtype_size(dtype)),
		.block = v[LADE__CASCADED_BLOCK].i == 4096 ? LADE_CASCADED_BLOCK_MIN
	                                                   : LADE_CASCADED_BLOCK_MAX,
		.is_signed = lade_dtype_class(dtype) == 'i',
		.bitpack = v[LADE__CASCADED_BITPACK].i != 0,
		.tried = tried_of(v),
		.bitcomp = all && (!fast || real),
		.real = real,
	};
}

static lade_status check(const lade_stage *stage, lade_error *err)
{
	int64_t block = stage->option[LADE__CASCADED_BLOCK].i;
	if (block != 4096 && block != 8192)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "cascaded: block is %lld, want 4096 or 8192", (long long)block);
	return lade__little_check(stage, (lade_dtype)stage->option[LADE__CASCADED_DTYPE].i, err);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static void chunk_of(const lade_cas_choice *choice, uint32_t size, lade_cascaded_chunk *c)
{
	*c = (lade_cascaded_chunk){.log2 = choice->log2, .block = choice->block, .size = size};
	lade_cascaded_chunk_fill(c);
}

/* The header, the directory, and blocks that are all raw, whole units but for the last one; no
 * block is ever larger.  All of it grows with the size. */
static size_t bound(const lade_stage *stage, size_t size)
{
	lade_cas_choice choice = lade__cascaded_choice_of(stage);
	lade_cascaded_chunk c;
	if (size > LADE_CASCADED_SIZE_MAX)
		return SIZE_MAX;
	chunk_of(&choice, (uint32_t)size, &c);
	return (size_t)(c.first + lade_cascaded_units(c.body)) * LADE_CASCADED_UNIT;
}

static lade_status decoded_size(const lade_stage *stage, const void *src, size_t size,
                                uint64_t *decoded, lade_error *err)
{
	lade_cascaded_chunk c;
	(void)stage;
	if (!src)
		return lade_fail(err, LADE_E_UNKNOWN_SIZE, LADE_NO_OFFSET,
		                 "cascaded: the decoded size is in the data, which was not given");
	lade_status status = lade__cascaded_open(lade_host_cspan(src, size), 0, false, &c, err);
	if (status == LADE_OK)
		*decoded = c.size;
	return status;
}

/* ---- a block --------------------------------------------------------------------------------- */

#define HALF (LADE_CASCADED_BLOCK_BYTES / 2)

/* A worker's memory.  Runs are tried where they leave at most half of the elements. */
typedef struct scratch {
	uint8_t rotated[LADE_CASCADED_BLOCK_BYTES]; /* the elements, rotated */
	uint8_t delta[LADE_CASCADED_BLOCK_BYTES];   /* their differences */
	uint8_t outer[HALF];                        /* the elements without outer runs */
	uint8_t outer_delta[HALF];                  /* their differences */
	uint8_t inner[HALF], outer_inner[HALF / 2]; /* 'delta', 'outer_delta' without runs */
	uint16_t outer_counts[LADE_CASCADED_RUNS_TRIED], inner_counts[LADE_CASCADED_RUNS_TRIED],
		outer_inner_counts[LADE_CASCADED_RUNS_TRIED];
	uint8_t packed[LADE_CASCADED_BLOCK_BYTES + SLACK];
} scratch;

/* A way to write a block. */
typedef struct plan {
	lade_cascaded_block b;
	uint64_t base, start;
	const uint8_t *values;
	const uint16_t *outer, *inner;
} plan;

typedef struct encoder {
	lade_cas_choice choice;
	const lade__cascaded_kernels *kernels;
	const lade__int_kernels *ints;
	lade_cpu cpu;
	scratch *s;
} encoder;

static uint32_t bits_of(uint64_t v)
{
	return v ? 64 - (uint32_t)__builtin_clzll(v) : 0;
}

static uint64_t elem_mask(uint32_t log2)
{
	return UINT64_MAX >> (64 - (8u << log2));
}

/*
 * Base and width of 'count' values, and what parts' widths are below that; differences and elements
 * of signed types have signs.  Gives the range, without the signs' flip undone.
 */
static lade__cascaded_range values_measure(const encoder *e, plan *p, const uint8_t *values,
                                           uint32_t count, bool has_sign)
{
	uint32_t log2 = e->choice.log2, bits = 8u << log2, each = 1u << (LADE_CASCADED_PART - log2);
	uint64_t flip = has_sign ? (uint64_t)1 << (bits - 1) : 0;
	lade__cascaded_range r = {UINT64_MAX, 0},
			     part[LADE_CASCADED_BLOCK_BYTES >> LADE_CASCADED_PART];
	uint32_t parts = 0;
	for (uint32_t at = 0; at < count; at += each) {
		uint32_t n = count - at < each ? count - at : each;
		part[parts] = e->kernels->range[log2](values + ((size_t)at << log2), n, flip);
		r.low = part[parts].low < r.low ? part[parts].low : r.low;
		r.high = part[parts].high > r.high ? part[parts].high : r.high;
		parts++;
	}
	p->values = values;
	p->base = (r.low ^ flip) & elem_mask(log2);
	p->b.width = e->choice.bitpack ? bits_of(r.high - r.low) : bits;
	p->b.less = 0;
	for (uint32_t k = 0; k < parts && e->choice.bitpack; k++) {
		uint32_t less = p->b.width - bits_of(part[k].high - r.low);
		p->b.less |= (less < 15 ? less : 15) << 4 * k;
	}
	return r;
}

static uint32_t counts_measure(const encoder *e, const uint16_t *counts, uint32_t runs)
{
	lade__cascaded_range r = e->kernels->range[1](counts, runs, 0);
	return e->choice.bitpack ? bits_of(r.high - 1) : LADE_CASCADED_COUNT_WIDTH;
}

/* The differences of 'count' values; the first is made equal to the second.  Gives the start. */
static uint64_t differences(const encoder *e, const void *values, uint32_t count, uint8_t *to)
{
	uint32_t log2 = e->choice.log2, size = 1u << log2;
	uint64_t first = lade__int_at(values, log2, 0);
	e->ints->diff[log2](values, to, count, first);
	if (count > 1)
		memcpy(to, to + size, size);
	return (first - lade__int_at(to, log2, 0)) & elem_mask(log2);
}

/* Takes 'p', whose numbers of elements and widths are known, if it is better than 'best'. */
static void consider(const encoder *e, plan *p, uint32_t layers, plan *best)
{
	p->b.layers = layers;
	lade_cascaded_block_fill(&p->b, e->choice.log2);
	if (e->choice.tried & BIT(layers) &&
	    lade_cascaded_fits(&p->b, e->choice.log2, e->choice.block) &&
	    p->b.units < best->b.units)
		*best = *p;
}

static uint32_t runs_most(uint32_t count)
{
	return count / 2 < LADE_CASCADED_RUNS_TRIED ? count / 2 : LADE_CASCADED_RUNS_TRIED;
}

/* What the layers within outer runs, or within none, work on. */
typedef struct inside {
	uint32_t layers; /* those around */
	const uint8_t *values;
	/* Memory for the values' differences, and for these without runs. */
	uint8_t *delta, *inner;
	uint16_t *counts;
} inside;

/*
 * Tries the cascades that begin with in->layers on the p->b.n1 values, in this order: as they are,
 * rotated where they may be numbers with signs of their own, their differences, with parts where
 * these are the best so far, the runs of these.
 */
static void consider_values(const encoder *e, plan *p, const inside *in, plan *best)
{
	const uint8_t *values = in->values;
	uint8_t *delta = in->delta;
	uint32_t layers = in->layers;
	uint32_t n1 = p->b.n1, with_delta = layers | LADE_CASCADED_DELTA;
	uint32_t with_inner = with_delta | LADE_CASCADED_INNER, log2 = e->choice.log2;
	p->b.n2 = n1;
	p->b.inner_width = 0;
	if (e->choice.tried & BIT(layers)) {
		lade__cascaded_range r = values_measure(e, p, values, n1, e->choice.is_signed);
		consider(e, p, layers, best);
		if (e->choice.tried & BIT(layers | LADE_CASCADED_ROTATED) &&
		    lade_cascaded_may_rotate(log2, e->choice.is_signed, r.low, r.high)) {
			e->kernels->turn[log2](values, e->s->rotated, n1, (8u << log2) - 1);
			values_measure(e, p, e->s->rotated, n1, false);
			consider(e, p, layers | LADE_CASCADED_ROTATED, best);
		}
	}
	if (!(e->choice.tried & (BIT(with_delta) | BIT(with_inner))))
		return;
	p->start = differences(e, values, n1, delta);
	values_measure(e, p, delta, n1, true);
	consider(e, p, with_delta, best);
	if (best->b.layers == LADE_CASCADED_DELTA)
		consider(e, p, with_delta | LADE_CASCADED_PARTS, best);
	if (!(e->choice.tried & BIT(with_inner)))
		return;
	p->b.n2 = (uint32_t)e->kernels->runs[log2](delta, n1, in->inner, in->counts, runs_most(n1));
	if (!p->b.n2)
		return;
	p->values = in->inner;
	p->inner = in->counts;
	p->b.inner_width = counts_measure(e, in->counts, p->b.n2);
	consider(e, p, with_inner, best);
}

static void write_values(const encoder *e, const plan *best, uint8_t *to)
{
	const lade_cascaded_block *b = &best->b;
	uint32_t log2 = e->choice.log2;
	uint32_t each = b->layers & LADE_CASCADED_PARTS ? 1u << (LADE_CASCADED_PART - log2) : b->n2;
	for (uint32_t at = 0, k = 0; at < b->n2; at += each, k++) {
		uint32_t n = b->n2 - at < each ? b->n2 - at : each;
		uint32_t width = lade_cascaded_part_width(b, k);
		e->kernels->pack[log2](best->values + ((size_t)at << log2), n, width, best->base,
		                       to);
		to += 4 * (size_t)lade_cascaded_words(n, width);
	}
}

/* Writes a coded block of 'best' to e->s->packed. */
static void write_block(const encoder *e, const plan *best)
{
	const lade_cascaded_block *b = &best->b;
	uint8_t *to = e->s->packed;
	memset(to, 0, (size_t)b->units * LADE_CASCADED_UNIT);
	to[0] = (uint8_t)b->layers;
	to[1] = (uint8_t)b->width;
	lade__le_put(to + 8, best->base, 8);
	if (b->layers & LADE_CASCADED_DELTA)
		lade__le_put(to + 16, best->start, 8);
	if (b->layers & LADE_CASCADED_OUTER) {
		to[2] = (uint8_t)b->outer_width;
		lade__le_put(to + 4, b->n1, 2);
		e->kernels->pack[1](best->outer, b->n1, b->outer_width, 1, to + 4 * b->outer);
	}
	if (b->layers & LADE_CASCADED_INNER) {
		to[3] = (uint8_t)b->inner_width;
		lade__le_put(to + 6, b->n2, 2);
		e->kernels->pack[1](best->inner, b->n2, b->inner_width, 1, to + 4 * b->inner);
	}
	if (b->layers & LADE_CASCADED_PARTS)
		lade__le_put(to + 4, b->less, 4);
	write_values(e, best, to + 4 * b->values);
}

/* Encodes the block of 'n' elements at 'x'; gives its bytes and stores its units. */
static const uint8_t *encode_block(const encoder *e, const uint8_t *x, uint32_t n, uint32_t *units)
{
	const uint32_t outer = OUTER | OUTER_DELTA | ALL_THREE;
	uint32_t raw = lade_cascaded_units(n << e->choice.log2);
	scratch *s = e->s;
	plan p = {.b = {.n = n, .n1 = n}}, best = {.b = {.units = raw}}, q = p;
	inside all = {0, x, s->delta, s->inner, s->inner_counts};
	consider_values(e, &p, &all, &best);
	if (e->choice.tried & outer)
		q.b.n1 = (uint32_t)e->kernels->runs[e->choice.log2](x, n, s->outer, s->outer_counts,
		                                                    runs_most(n));
	if (e->choice.tried & outer && q.b.n1) {
		q.outer = s->outer_counts;
		q.b.outer_width = counts_measure(e, q.outer, q.b.n1);
		inside runs = {LADE_CASCADED_OUTER, s->outer, s->outer_delta, s->outer_inner,
		               s->outer_inner_counts};
		consider_values(e, &q, &runs, &best);
	}
	if (e->choice.bitcomp) {
		lade_bitcomp_how how = {.log = e->choice.log2,
		                        .is_signed = e->choice.is_signed,
		                        .real = e->choice.real};
		size_t size = lade__bitcomp_block_encode(e->cpu, &how, x,
		                                         (size_t)n << e->choice.log2, s->packed);
		if (size && size / LADE_CASCADED_UNIT < best.b.units) {
			s->packed[0] |= LADE_CASCADED_BITCOMP;
			*units = (uint32_t)(size / LADE_CASCADED_UNIT);
			return s->packed;
		}
	}
	*units = best.b.units;
	if (best.b.units < raw) {
		write_block(e, &best);
	} else {
		size_t bytes = (size_t)n << e->choice.log2;
		memcpy(s->packed, x, bytes);
		memset(s->packed + bytes, 0, (size_t)raw * LADE_CASCADED_UNIT - bytes);
	}
	return s->packed;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static lade_status no_space(size_t want, size_t have, lade_error *err)
{
	return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
	                 "cascaded: want %zu bytes and more, have %zu", want, have);
}

static lade_status encode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	encoder e = {.choice = lade__cascaded_choice_of(run->stage),
	             .kernels = lade__cascaded_kernels_of(run->cpu),
	             .ints = lade__int_kernels_of(run->cpu),
	             .cpu = run->cpu};
	lade_cascaded_chunk c;
	const uint8_t *x = lade__bytes(src);
	uint8_t *out = dst.data;
	*dst_size = 0;
	if (src.size > LADE_CASCADED_SIZE_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "cascaded: %zu bytes, a chunk holds at most %u", src.size,
		                 LADE_CASCADED_SIZE_MAX);
	chunk_of(&e.choice, (uint32_t)src.size, &c);
	size_t at = (size_t)c.first * LADE_CASCADED_UNIT;
	if (dst.size < at)
		return no_space(at, dst.size, err);
	e.s = lade_worker_scratch(run->worker, 0, sizeof *e.s);
	if (!e.s)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "cascaded: no memory for %zu bytes of scratch", sizeof *e.s);
	memset(out, 0, at);
	out[0] = LADE_CASCADED_VERSION;
	out[1] = (uint8_t)c.log2;
	out[2] = (uint8_t)c.block;
	lade__le_put(out + 4, c.size, 4);
	memcpy(out + LADE_CASCADED_TAIL, x + c.body, c.size - c.body);
	for (uint32_t i = 0; i < c.blocks; i++) {
		uint32_t units, n = lade_cascaded_block_bytes(&c, i) >> c.log2;
		const uint8_t *block = encode_block(&e, x + ((size_t)i << c.block), n, &units);
		size_t size = (size_t)units * LADE_CASCADED_UNIT;
		if (size > dst.size - at)
			return no_space(at + size, dst.size, err);
		memcpy(out + at, block, size);
		at += size;
		lade__le_put(out + LADE_CASCADED_HEADER + 4 * (size_t)i, at / LADE_CASCADED_UNIT,
		             4);
	}
	*dst_size = at;
	return LADE_OK;
}

static double cost(void *ctx, const lade_workload *work)
{
	(void)ctx;
	return lade__codec_cost(work, 300, 0.8);
}

/* ---- records --------------------------------------------------------------------------------- */

static const char *const suggest[] = {"cascaded", NULL};

const lade_algorithm lade__cascaded = {
	.struct_size = sizeof(lade_algorithm),
	.name = "cascaded",
	.id = 13,
	.kind = LADE_STAGE_CODEC,
	.flags = LADE_ALGORITHM_RANGES,
	.options = options,
	.option_count = LADE__CASCADED_OPTIONS,
	.doc = "runs, differences and packed bits of integers (docs/format/cascaded.md)",
	.check = check,
	.bound = bound,
	.decoded_size = decoded_size,
	.ratio_max = 2048, /* 4 bytes of the directory give 8 KiB */
	.suggest = suggest,
};

const lade_implementation lade__cascaded_encode = {
	.struct_size = sizeof(lade_implementation),
	.name = "cascaded/lade",
	.algorithm = "cascaded",
	.direction = LADE_ENCODE,
	.priority = LADE_PRIORITY_BUILTIN,
	.cost = cost,
	.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops), .run = encode},
};
