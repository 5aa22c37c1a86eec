/*
 * decode.c: decoding chunks of the cascaded codec (docs/format/cascaded.md): whole, in ranges, and
 * in parts for several threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/bitcomp/bitcomp.h"
#include "codec/cascaded/cascaded.h"
#include "codec/cascaded/kernels.h"
#include "filter/ints.h"

#include <string.h>

/* Blocks are handed out to threads in parts of this many bytes. */
#define PART_BYTES (256u << 10)

/* A worker's memory: the arrays between layers, counts, and a block of which a part is wanted. */
typedef struct scratch {
	uint8_t outer[LADE_CASCADED_ROOM_MAX], inner[LADE_CASCADED_ROOM_MAX];
	uint8_t whole[LADE_CASCADED_BLOCK_BYTES];
	uint16_t counts[LADE_CASCADED_ROOM_MAX];
} scratch;

/* What decoding a chunk needs. */
typedef struct decoder {
	lade_cascaded_chunk c;
	const uint8_t *src, *end;
	const lade__cascaded_kernels *kernels;
	const lade__int_kernels *sums;
	lade_cpu cpu;
	scratch *s;
} decoder;

lade_status lade__cascaded_open(lade_cspan src, size_t cap, bool whole, lade_cascaded_chunk *c,
                                lade_error *err)
{
	const uint8_t *p = src.data;
	if (src.size < LADE_CASCADED_HEADER)
		return lade_fail(err, LADE_E_TRUNCATED, src.size,
		                 "cascaded: want a header of %u bytes, have %zu",
		                 LADE_CASCADED_HEADER, src.size);
	if (!lade_cascaded_chunk_read(lade__le32(p), lade__le32(p + 4), c))
		return lade_fail(err, LADE_E_CORRUPT, 0,
		                 "cascaded: version %u, element %u, block %u, %u, size %u, want 1, "
		                 "0 to 3, 12 or 13, 0, at most %u",
		                 p[0], p[1], p[2], p[3], lade__le32(p + 4), LADE_CASCADED_SIZE_MAX);
	if (!whole)
		return LADE_OK;
	if (cap < c->size)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "cascaded: want %u bytes, have %zu", c->size, cap);
	uint64_t want = (uint64_t)c->first * LADE_CASCADED_UNIT;
	if (src.size >= want && c->blocks > 0)
		want = (uint64_t)lade__le32(p + LADE_CASCADED_HEADER + 4 * (c->blocks - 1)) *
		       LADE_CASCADED_UNIT;
	if (src.size < want)
		return lade_fail(err, LADE_E_TRUNCATED, src.size,
		                 "cascaded: want %llu bytes, have %zu", (unsigned long long)want,
		                 src.size);
	if (src.size > want)
		return lade_fail(err, LADE_E_CORRUPT, (size_t)want,
		                 "cascaded: the chunk ends at %llu, have %zu",
		                 (unsigned long long)want, src.size);
	return LADE_OK;
}

/* ---- a block --------------------------------------------------------------------------------- */

/* Takes 'runs' counts out, which must sum up to 'want'. */
static bool counts_read(const decoder *d, const uint8_t *array, uint32_t runs, uint32_t width,
                        uint32_t want)
{
	uint32_t sum = 0;
	d->kernels->unpack[1](array, d->end, d->s->counts, runs, width, 1);
	for (uint32_t i = 0; i < runs; i++)
		sum += d->s->counts[i];
	return sum == want;
}

/* The values of a block: their parts, or all of them. */
static void values_read(const decoder *d, const uint8_t *block, const lade_cascaded_block *b,
                        uint8_t *to)
{
	const uint32_t log2 = d->c.log2;
	const uint8_t *from = block + 4 * (size_t)b->values;
	uint32_t each = b->layers & LADE_CASCADED_PARTS ? 1u << (LADE_CASCADED_PART - log2) : b->n2;
	for (uint32_t at = 0, k = 0; at < b->n2; at += each, k++) {
		uint32_t n = b->n2 - at < each ? b->n2 - at : each;
		uint32_t width = lade_cascaded_part_width(b, k);
		d->kernels->unpack[log2](from, d->end, to + ((size_t)at << log2), n, width,
		                         lade__le64(block + 8));
		from += 4 * (size_t)lade_cascaded_words(n, width);
	}
	if (b->layers & LADE_CASCADED_ROTATED)
		d->kernels->turn[log2](to, to, b->n2, 1);
}

/*
 * Decodes a coded block to 'dst', which has b->n elements; false: counts do not sum up.
 * The scratch arrays are large enough: the arrays fit in the room.
 */
static bool decode_coded(const decoder *d, const uint8_t *block, const lade_cascaded_block *b,
                         uint8_t *dst)
{
	const uint32_t log2 = d->c.log2;
	/* Where the values, the elements without inner runs, and those without outer ones go. */
	uint8_t *at1 = b->layers & LADE_CASCADED_OUTER ? d->s->outer : dst;
	uint8_t *at2 = b->layers & LADE_CASCADED_INNER ? d->s->inner : at1;
	values_read(d, block, b, at2);
	if (b->layers & LADE_CASCADED_INNER) {
		if (!counts_read(d, block + 4 * (size_t)b->inner, b->n2, b->inner_width, b->n1))
			return false;
		d->kernels->expand[log2](at2, d->s->counts, b->n2, at1, b->n1);
	}
	if (b->layers & LADE_CASCADED_DELTA)
		d->sums->sum[log2](at1, at1, b->n1, lade__le64(block + 16));
	if (b->layers & LADE_CASCADED_OUTER) {
		if (!counts_read(d, block + 4 * (size_t)b->outer, b->n1, b->outer_width, b->n))
			return false;
		d->kernels->expand[log2](at1, d->s->counts, b->n1, dst, b->n);
	}
	return true;
}

static lade_status decode_block(const decoder *d, uint32_t i, uint8_t *dst, lade_error *err)
{
	const lade_cascaded_chunk *c = &d->c;
	const uint8_t *ends = d->src + LADE_CASCADED_HEADER;
	uint32_t begin = i ? lade__le32(ends + 4 * (size_t)(i - 1)) : c->first;
	uint32_t end = lade__le32(ends + 4 * (size_t)i);
	uint32_t last = (uint32_t)((d->end - d->src) / LADE_CASCADED_UNIT);
	uint32_t bytes = lade_cascaded_block_bytes(c, i), raw = lade_cascaded_units(bytes);
	if (begin < c->first || begin >= end || end - begin > raw || end > last)
		return lade_fail(err, LADE_E_CORRUPT, LADE_CASCADED_HEADER + 4 * (size_t)i,
		                 "cascaded: block %u is from unit %u to %u, want 1 to %u units "
		                 "before unit %u",
		                 i, begin, end, raw, last);
	const uint8_t *block = d->src + (size_t)begin * LADE_CASCADED_UNIT;
	if (end - begin == raw) {
		memcpy(dst, block, bytes);
		return LADE_OK;
	}
	lade_cascaded_block b = {.n = bytes >> c->log2, .units = end - begin};
	size_t at = (size_t)(block - d->src);
	if (*block & LADE_CASCADED_BITCOMP) {
		uint8_t in[BLOCK + SLACK];
		size_t size = (size_t)(end - begin) * LADE_CASCADED_UNIT;
		memcpy(in, block, size);
		memset(in + size, 0, SLACK);
		in[0] &= (uint8_t)~LADE_CASCADED_BITCOMP;
		if (lade__bitcomp_block_decode(d->cpu, c->log2, in, size, bytes, dst))
			return LADE_OK;
		return lade_fail(err, LADE_E_CORRUPT, at,
		                 "cascaded: block %u, %u units, is no sub-block of bitcomp with "
		                 "mode %02x, width %u",
		                 i, end - begin, in[0], in[1]);
	}
	if (!lade_cascaded_block_read(lade__le32(block), lade__le32(block + 4), c->log2, c->block,
	                              &b))
		return lade_fail(err, LADE_E_CORRUPT, at,
		                 "cascaded: block %u, %u units, cannot have layers %u, widths %u, "
		                 "%u, %u, runs %u, %u",
		                 i, end - begin, block[0], block[1], block[2], block[3],
		                 lade__le16(block + 4), lade__le16(block + 6));
	if (!decode_coded(d, block, &b, dst))
		return lade_fail(err, LADE_E_CORRUPT, at,
		                 "cascaded: the counts of block %u do not give %u and %u elements",
		                 i, b.n1, b.n);
	return LADE_OK;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static lade_status decoder_open(const lade_run *run, lade_cspan src, size_t cap, decoder *d,
                                lade_error *err)
{
	lade_status status = lade__cascaded_open(src, cap, true, &d->c, err);
	if (status != LADE_OK)
		return status;
	d->src = src.data;
	d->end = d->src + src.size;
	d->kernels = lade__cascaded_kernels_of(run->cpu);
	d->sums = lade__int_kernels_of(run->cpu);
	d->cpu = run->cpu;
	d->s = lade_worker_scratch(run->worker, 0, sizeof *d->s);
	if (!d->s)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "cascaded: no memory for %zu bytes of scratch", sizeof *d->s);
	return LADE_OK;
}

static lade_status decode_blocks(const decoder *d, uint32_t from, uint32_t to, uint8_t *dst,
                                 lade_error *err)
{
	lade_status status = LADE_OK;
	for (uint32_t i = from; i < to && status == LADE_OK; i++)
		status = decode_block(d, i, dst + ((size_t)i << d->c.block), err);
	return status;
}

static void put_tail(const decoder *d, uint8_t *dst)
{
	memcpy(dst, d->src + LADE_CASCADED_TAIL, d->c.size - d->c.body);
}

static lade_status decode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	decoder d;
	uint8_t nothing, *out = lade__room(dst, &nothing);
	*dst_size = 0;
	lade_status status = decoder_open(run, src, dst.size, &d, err);
	if (status == LADE_OK)
		status = decode_blocks(&d, 0, d.c.blocks, out, err);
	if (status != LADE_OK)
		return status;
	put_tail(&d, out + d.c.body);
	*dst_size = d.c.size;
	return LADE_OK;
}

static lade_status decode_range(const lade_run *run, lade_cspan src, uint64_t off, lade_span dst,
                                lade_error *err)
{
	decoder d;
	uint8_t *out = dst.data;
	lade_status status = decoder_open(run, src, SIZE_MAX, &d, err);
	if (status != LADE_OK)
		return status;
	if (off > d.c.size || dst.size > d.c.size - off)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "cascaded: want %zu bytes from %llu on, have %u in all", dst.size,
		                 (unsigned long long)off, d.c.size);
	size_t at = (size_t)off, end = at + dst.size;
	while (at < end && at < d.c.body) {
		uint32_t i = (uint32_t)(at >> d.c.block);
		size_t begin = (size_t)i << d.c.block, size = lade_cascaded_block_bytes(&d.c, i);
		size_t take = begin + size < end ? begin + size - at : end - at;
		status = decode_block(&d, i, take == size ? out : d.s->whole, err);
		if (status != LADE_OK)
			return status;
		if (take != size)
			memcpy(out, d.s->whole + (at - begin), take);
		at += take;
		out += take;
	}
	if (at < end)
		memcpy(out, d.src + LADE_CASCADED_TAIL + (at - d.c.body), end - at);
	return LADE_OK;
}

static uint32_t blocks_a_part(const lade_cascaded_chunk *c)
{
	return PART_BYTES >> c->block;
}

static lade_status parts(const lade_run *run, lade_cspan src, size_t *part_count,
                         size_t *decoded_size, lade_error *err)
{
	lade_cascaded_chunk c;
	(void)run;
	lade_status status = lade__cascaded_open(src, SIZE_MAX, true, &c, err);
	if (status != LADE_OK)
		return status;
	uint32_t each = blocks_a_part(&c);
	*decoded_size = c.size;
	*part_count = (c.blocks + each - 1) / each;
	return LADE_OK;
}

static lade_status decode_part(const lade_run *run, lade_cspan src, size_t part, lade_span dst,
                               lade_error *err)
{
	decoder d;
	lade_status status = decoder_open(run, src, dst.size, &d, err);
	if (status != LADE_OK)
		return status;
	uint32_t each = blocks_a_part(&d.c), from = (uint32_t)part * each;
	uint32_t to = d.c.blocks - from < each ? d.c.blocks : from + each;
	if (to == d.c.blocks)
		put_tail(&d, (uint8_t *)dst.data + d.c.body);
	return decode_blocks(&d, from, to, dst.data, err);
}

static double cost(void *ctx, const lade_workload *work)
{
	(void)ctx;
	return lade__codec_cost(work, 150, 5);
}

const lade_implementation lade__cascaded_decode = {
	.struct_size = sizeof(lade_implementation),
	.name = "cascaded/lade",
	.algorithm = "cascaded",
	.direction = LADE_DECODE,
	.priority = LADE_PRIORITY_BUILTIN,
	.cost = cost,
	.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops),
	                                 .run = decode,
	                                 .run_range = decode_range,
	                                 .parts = parts,
	                                 .run_part = decode_part},
};
