/*
 * bitshuffle.c: the bit shuffle of whole buffers, of blocks, and of tiles.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter/blocks.h"
#include "filter/shuffle.h"

/* How the rows of a buffer are stored.  They are counted by the bit that they hold, from the
 * lowest on; pointers to rows are at bit 0's. */
typedef struct rows {
	size_t elem;
	ptrdiff_t pitch; /* from one to the next; below 0 where the highest bit's comes first */
	size_t first;    /* bytes before bit 0's */
} rows;

static ptrdiff_t row_off(size_t row, ptrdiff_t pitch)
{
	return (ptrdiff_t)row * pitch;
}

/* ---- single bits ---------------------------------------------------------------------------- */

/* Elements that do not fill a byte of the rows: [off, off + count), inside one group of 8.  A
 * group's first bits set the whole byte, later ones are added to it. */
static void bits_to_rows(rows r, size_t off, size_t count, const uint8_t *src, uint8_t *dst)
{
	const size_t elem = r.elem;
	const ptrdiff_t pitch = r.pitch;
	for (size_t j = 0; j < elem; j++) {
		for (size_t k = 0; k < 8; k++) {
			uint8_t *byte = dst + row_off(8 * j + k, pitch) + off / 8;
			unsigned bits = off % 8 ? *byte : 0;
			for (size_t i = 0; i < count; i++)
				bits |= ((src[i * elem + j] >> k) & 1u) << (off % 8 + i);
			*byte = (uint8_t)bits;
		}
	}
}

static void bits_from_rows(rows r, size_t off, size_t count, const uint8_t *src, uint8_t *dst)
{
	const size_t elem = r.elem;
	const ptrdiff_t pitch = r.pitch;
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < elem; j++) {
			unsigned byte = 0;
			for (size_t k = 0; k < 8; k++) {
				const uint8_t *row = src + row_off(8 * j + k, pitch);
				byte |= ((row[off / 8] >> (off % 8 + i)) & 1u) << k;
			}
			dst[i * elem + j] = (uint8_t)byte;
		}
	}
}

/* ---- whole groups of 8 elements ----------------------------------------------------- */

/* 'off' and 'count' are multiples of 8. */

typedef struct groups {
	size_t off, count;
	const lade__shuffle_kernels *kernels;
	bool nontemporal; /* the output goes past the caches */
} groups;

/* A block's planes, together, and its elements.  128 * 255 bytes are the least that block_count()
 * takes. */
#define PLANES_BYTES 32768
#define ENCODE_COUNT 2048
#define DECODE_COUNT 8192

/* The planes of an encoder's block stay in the first-level cache, unless the elements are so large
 * that fewer than 1024 would fit. */
static size_t encode_bytes(size_t elem)
{
	size_t least = elem * (1024 + LINE);
	return least <= 10240 ? 10240 : least <= PLANES_BYTES ? least : PLANES_BYTES;
}

/* The rows of large buffers often start a power of two apart, so that what is written to each would
 * fall into the same few sets of the cache.  The 8 rows of a plane are collected, therefore, and
 * copied out one after the other. */
static void groups_to_rows(rows r, const groups *g, const uint8_t *src, uint8_t *dst)
{
	_Alignas(64) uint8_t planes[PLANES_BYTES], eight[ENCODE_COUNT];
	const size_t elem = r.elem;
	size_t block = block_count(elem, encode_bytes(elem), ENCODE_COUNT), n;
	for (size_t done = 0; done < g->count; done += n) {
		uint8_t *to = dst + (g->off + done) / 8;
		n = block_next(block, g->count - done, 8 * to_line(to));
		g->kernels->to_planes(src + done * elem, planes, n, elem, n + LINE);
		for (size_t j = 0; j < elem; j++) {
			g->kernels->to_rows(planes + j * (n + LINE), eight, n, n / 8);
			for (size_t k = 0; k < 8; k++)
				copy_out(to + row_off(8 * j + k, r.pitch), eight + k * (n / 8),
				         n / 8, g->nontemporal);
		}
	}
}

/* Elements between prefetches, a line of each of the 8 rows; and how far ahead they look. */
#define STEP (8 * LINE)
#define LOOK_AHEAD (2 * STEP)

/* Asks for what from_rows() will read.  Pieces of rows are too short for the processor to foresee
 * them; and as the rows may share a set of the cache, few lines of each are asked for. */
static void prefetch_rows(const uint8_t *src, ptrdiff_t pitch)
{
	for (size_t k = 0; k < 8; k++)
		__builtin_prefetch(src + row_off(k, pitch));
}

/* One plane of 'n' elements; 'next' is where the rows of the one after it begin. */
static void plane_from_rows(const lade__shuffle_kernels *kernels, ptrdiff_t pitch, size_t n,
                            const uint8_t *row, const uint8_t *next, uint8_t *plane)
{
	for (size_t i = 0; i < n; i += STEP) {
		size_t m = n - i < STEP ? n - i : STEP, at = i + LOOK_AHEAD;
		if (at < n)
			prefetch_rows(row + at / 8, pitch);
		else if (at - n < n)
			prefetch_rows(next + (at - n) / 8, pitch);
		kernels->from_rows(row + i / 8, plane + i, m, pitch);
	}
}

static void groups_from_rows(rows r, const groups *g, const uint8_t *src, uint8_t *dst)
{
	_Alignas(64) uint8_t planes[PLANES_BYTES], elements[DECODE_COUNT];
	const lade__shuffle_kernels *kernels = g->kernels;
	const size_t elem = r.elem, count = g->count;
	const ptrdiff_t pitch = r.pitch;
	size_t block = block_count(elem, PLANES_BYTES, DECODE_COUNT), n;
	for (size_t done = 0; done < count; done += n) {
		const uint8_t *from = src + (g->off + done) / 8;
		n = block_next(block, count - done, 8 * to_line(from));
		const uint8_t *last = done + n < count ? from + n / 8 : from;
		for (size_t j = 0; j < elem; j++) {
			const uint8_t *row = from + row_off(8 * j, pitch);
			const uint8_t *next = j + 1 < elem ? row + row_off(8, pitch) : last;
			plane_from_rows(kernels, pitch, n, row, next, planes + j * (n + LINE));
		}
		if (!g->nontemporal) {
			kernels->from_planes(planes, dst + done * elem, n, elem, n + LINE);
			continue;
		}
		size_t most = sizeof elements / elem;
		for (size_t i = 0, m; i < n; i += m) {
			m = most < n - i ? most : n - i;
			kernels->from_planes(planes + i, elements, m, elem, n + LINE);
			copy_out(dst + (done + i) * elem, elements, m * elem, true);
		}
	}
}

/* ---- tiles -------------------------------------------------------------------------- */

/* How a tile falls apart: bits up to a multiple of 8, whole groups, bits, and the bytes after the
 * last group of the whole buffer, which are not transposed. */
typedef struct parts {
	size_t head, groups, tail; /* elements */
	size_t rest;               /* bytes */
} parts;

static parts parts_of(size_t elem, size_t total, size_t off, size_t count)
{
	size_t all = total / elem, end = all / 8 * 8;
	size_t in = off >= end ? 0 : count < end - off ? count : end - off;
	parts p = {.head = off % 8 ? 8 - off % 8 : 0};
	if (p.head > in)
		p.head = in;
	p.groups = (in - p.head) / 8 * 8;
	p.tail = in - p.head - p.groups;
	p.rest = (count - in) * elem + (off + count == all ? total % elem : 0);
	return p;
}

static rows rows_of(size_t elem, bool msb, size_t total)
{
	size_t row = total / elem / 8;
	return (rows){.elem = elem,
	              .pitch = msb ? -(ptrdiff_t)row : (ptrdiff_t)row,
	              .first = msb ? (8 * elem - 1) * row : 0};
}

/* A tile of a buffer that is one block. */
static void shuffle_part(const lade__bit_form *form, const lade_elements *tile, lade_cpu cpu)
{
	const uint8_t *from = tile->src;
	uint8_t *to = tile->dst;
	size_t elem = form->elem, off = tile->elem_off;
	rows r = rows_of(elem, form->msb, tile->total);
	parts p = parts_of(elem, tile->total, off, tile->elem_count);
	if (p.head)
		bits_to_rows(r, off, p.head, from, to + r.first);
	off += p.head;
	from += p.head * elem;
	groups g = {off, p.groups, lade__shuffle_kernels_of(cpu), tile->total >= NONTEMPORAL_BYTES};
	groups_to_rows(r, &g, from, to + r.first);
	nontemporal_end(g.nontemporal);
	off += p.groups;
	from += p.groups * elem;
	if (p.tail)
		bits_to_rows(r, off, p.tail, from, to + r.first);
	if (p.rest)
		memcpy(to + (off + p.tail) * elem, from + p.tail * elem, p.rest);
}

static void unshuffle_part(const lade__bit_form *form, const lade_elements *tile, lade_cpu cpu)
{
	const uint8_t *from = tile->src;
	uint8_t *to = tile->dst;
	size_t elem = form->elem, off = tile->elem_off;
	rows r = rows_of(elem, form->msb, tile->total);
	parts p = parts_of(elem, tile->total, off, tile->elem_count);
	if (p.head)
		bits_from_rows(r, off, p.head, from + r.first, to);
	off += p.head;
	to += p.head * elem;
	groups g = {off, p.groups, lade__shuffle_kernels_of(cpu),
	            tile->elem_count * elem >= NONTEMPORAL_BYTES};
	groups_from_rows(r, &g, from + r.first, to);
	nontemporal_end(g.nontemporal);
	off += p.groups;
	to += p.groups * elem;
	if (p.tail)
		bits_from_rows(r, off, p.tail, from + r.first, to);
	if (p.rest)
		memcpy(to + p.tail * elem, from + (off + p.tail) * elem, p.rest);
}

/* ---- blocks ------------------------------------------------------------------------- */

/*
 * The part of a tile that is in its first block, as a tile of that block; '*begin' are the bytes
 * before the block.  A tile without elements, at the end of all, has that of the bytes behind them.
 */
static lade_elements first_part(const lade__bit_form *form, const lade_elements *tile,
                                 size_t *begin)
{
	*begin = 0;
	if (!form->block)
		return *tile;
	size_t each = form->block / form->elem, left = each - tile->elem_off % each;
	*begin = tile->elem_off / each * form->block;
	lade_elements part = *tile;
	part.elem_off = tile->elem_off % each;
	part.elem_count = tile->elem_count < left ? tile->elem_count : left;
	part.total = tile->total - *begin < form->block ? tile->total - *begin : form->block;
	return part;
}

/* Takes the first part off; whether anything is left.  Where the elements are all of the buffer's
 * and fill their blocks, the bytes behind them have a block of their own. */
static bool next_part(const lade__bit_form *form, lade_elements *left, size_t count)
{
	size_t elem = form->elem, block = form->block;
	left->elem_off += count;
	left->elem_count -= count;
	return left->elem_count || (count && block && left->elem_off == left->total / elem &&
	                       left->total % elem && left->elem_off % (block / elem) == 0);
}

void lade__bitshuffle_tile(const lade__bit_form *form, const lade_elements *tile, lade_cpu cpu)
{
	lade_elements left = *tile, part;
	size_t begin;
	do {
		part = first_part(form, &left, &begin);
		part.dst = (uint8_t *)tile->dst + begin;
		shuffle_part(form, &part, cpu);
		left.src = (const uint8_t *)left.src + part.elem_count * form->elem;
	} while (next_part(form, &left, part.elem_count));
}

void lade__bitunshuffle_tile(const lade__bit_form *form, const lade_elements *tile, lade_cpu cpu)
{
	lade_elements left = *tile, part;
	size_t begin;
	do {
		part = first_part(form, &left, &begin);
		part.src = (const uint8_t *)tile->src + begin;
		unshuffle_part(form, &part, cpu);
		left.dst = (uint8_t *)left.dst + part.elem_count * form->elem;
	} while (next_part(form, &left, part.elem_count));
}

void lade__bitshuffle(size_t elem, size_t size, const void *src, void *dst, lade_cpu cpu)
{
	lade__bit_form form = {.elem = elem};
	lade_elements all = {src, dst, 0, size / elem, size, NULL};
	lade__bitshuffle_tile(&form, &all, cpu);
}

void lade__bitunshuffle(size_t elem, size_t size, const void *src, void *dst, lade_cpu cpu)
{
	lade__bit_form form = {.elem = elem};
	lade_elements all = {src, dst, 0, size / elem, size, NULL};
	lade__bitunshuffle_tile(&form, &all, cpu);
}
