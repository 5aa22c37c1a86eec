/*
 * bitshuffle.c: the bit shuffle of whole buffers, of blocks, and of tiles.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter/blocks.h"
#include "filter/shuffle.h"

/* Rows are counted by the bit that they hold, from the lowest on; 'pitch' is the way from one to
 * the next, and below 0 where the highest bit's row comes first.  Pointers to rows are at bit
 * 0's. */
static ptrdiff_t row_off(size_t row, ptrdiff_t pitch)
{
	return (ptrdiff_t)row * pitch;
}

/* ---- single bits ---------------------------------------------------------------------------- */

/* Elements that do not fill a byte of the rows: [off, off + count), inside one group of 8.  A
 * group's first bits set the whole byte, later ones are added to it. */
static void bits_to_rows(size_t elem, ptrdiff_t pitch, size_t off, size_t count,
                         const uint8_t *src, uint8_t *dst)
{
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

static void bits_from_rows(size_t elem, ptrdiff_t pitch, size_t off, size_t count,
                           const uint8_t *src, uint8_t *dst)
{
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
static void groups_to_rows(const lade__shuffle_kernels *kernels, size_t elem, ptrdiff_t pitch,
                           size_t off, size_t count, const uint8_t *src, uint8_t *dst, bool stream)
{
	_Alignas(64) uint8_t planes[PLANES_BYTES], rows[ENCODE_COUNT];
	size_t block = block_count(elem, encode_bytes(elem), ENCODE_COUNT), n;
	for (size_t done = 0; done < count; done += n) {
		uint8_t *to = dst + (off + done) / 8;
		n = block_next(block, count - done, 8 * to_line(to));
		kernels->to_planes(src + done * elem, planes, n, elem, n + LINE);
		for (size_t j = 0; j < elem; j++) {
			kernels->to_rows(planes + j * (n + LINE), rows, n, n / 8);
			for (size_t k = 0; k < 8; k++)
				copy_out(to + row_off(8 * j + k, pitch), rows + k * (n / 8), n / 8,
				         stream);
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

static void groups_from_rows(const lade__shuffle_kernels *kernels, size_t elem, ptrdiff_t pitch,
                             size_t off, size_t count, const uint8_t *src, uint8_t *dst,
                             bool stream)
{
	_Alignas(64) uint8_t planes[PLANES_BYTES], elements[DECODE_COUNT];
	size_t block = block_count(elem, PLANES_BYTES, DECODE_COUNT), n;
	for (size_t done = 0; done < count; done += n) {
		const uint8_t *from = src + (off + done) / 8;
		n = block_next(block, count - done, 8 * to_line(from));
		const uint8_t *last = done + n < count ? from + n / 8 : from;
		for (size_t j = 0; j < elem; j++) {
			const uint8_t *row = from + row_off(8 * j, pitch);
			const uint8_t *next = j + 1 < elem ? row + row_off(8, pitch) : last;
			plane_from_rows(kernels, pitch, n, row, next, planes + j * (n + LINE));
		}
		if (!stream) {
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

/* The way from row to row of a buffer of 'total' bytes, and how far from its start bit 0's is. */
static ptrdiff_t pitch_of(size_t elem, size_t total, bool msb, size_t *first)
{
	size_t row = total / elem / 8;
	*first = msb ? (8 * elem - 1) * row : 0;
	return msb ? -(ptrdiff_t)row : (ptrdiff_t)row;
}

/* Elements [off, off + count) of a buffer of 'total' bytes that is one block. */
static void shuffle_part(size_t elem, bool msb, size_t total, size_t off, size_t count,
                         const uint8_t *from, uint8_t *to, lade_cpu cpu)
{
	size_t first;
	ptrdiff_t pitch = pitch_of(elem, total, msb, &first);
	bool stream = total >= STREAM_BYTES;
	parts p = parts_of(elem, total, off, count);
	if (p.head)
		bits_to_rows(elem, pitch, off, p.head, from, to + first);
	off += p.head;
	from += p.head * elem;
	groups_to_rows(lade__shuffle_kernels_of(cpu), elem, pitch, off, p.groups, from, to + first,
	               stream);
	stream_end(stream);
	off += p.groups;
	from += p.groups * elem;
	if (p.tail)
		bits_to_rows(elem, pitch, off, p.tail, from, to + first);
	if (p.rest)
		memcpy(to + (off + p.tail) * elem, from + p.tail * elem, p.rest);
}

static void unshuffle_part(size_t elem, bool msb, size_t total, size_t off, size_t count,
                           const uint8_t *from, uint8_t *to, lade_cpu cpu)
{
	size_t first;
	ptrdiff_t pitch = pitch_of(elem, total, msb, &first);
	bool stream = count * elem >= STREAM_BYTES;
	parts p = parts_of(elem, total, off, count);
	if (p.head)
		bits_from_rows(elem, pitch, off, p.head, from + first, to);
	off += p.head;
	to += p.head * elem;
	groups_from_rows(lade__shuffle_kernels_of(cpu), elem, pitch, off, p.groups, from + first,
	                 to, stream);
	stream_end(stream);
	off += p.groups;
	to += p.groups * elem;
	if (p.tail)
		bits_from_rows(elem, pitch, off, p.tail, from + first, to);
	if (p.rest)
		memcpy(to + p.tail * elem, from + (off + p.tail) * elem, p.rest);
}

/* ---- blocks ------------------------------------------------------------------------- */

/* The part of a tile that lies in one block. */
typedef struct piece {
	size_t begin, total; /* of the block: bytes before it, and its own */
	size_t off, count;   /* elements, from the block's first one */
} piece;

/* The first piece of elements [off, off + count) of 'total' bytes.  With none, at the end of all,
 * it is that of the bytes behind them. */
static piece piece_of(size_t elem, size_t block, size_t total, size_t off, size_t count)
{
	if (!block)
		return (piece){0, total, off, count};
	size_t each = block / elem, begin = off / each * block, left = each - off % each;
	return (piece){.begin = begin,
	               .total = total - begin < block ? total - begin : block,
	               .off = off % each,
	               .count = count < left ? count : left};
}

/* Whether elements up to 'end' are all, and fill their blocks, so that the bytes behind them have a
 * block of their own. */
static bool has_rest(size_t elem, size_t block, size_t total, size_t end)
{
	return block && end == total / elem && total % elem && end % (block / elem) == 0;
}

void lade__bitshuffle_tile(const lade__bit_form *form, size_t total, size_t off, size_t count,
                           const void *src, void *dst, lade_cpu cpu)
{
	const uint8_t *from = src;
	size_t elem = form->elem, end = off + count;
	piece p;
	do {
		p = piece_of(elem, form->block, total, off, end - off);
		shuffle_part(elem, form->msb, p.total, p.off, p.count, from,
		             (uint8_t *)dst + p.begin, cpu);
		off += p.count;
		from += p.count * elem;
	} while (off < end || (p.count && has_rest(elem, form->block, total, end)));
}

void lade__bitunshuffle_tile(const lade__bit_form *form, size_t total, size_t off, size_t count,
                             const void *src, void *dst, lade_cpu cpu)
{
	uint8_t *to = dst;
	size_t elem = form->elem, end = off + count;
	piece p;
	do {
		p = piece_of(elem, form->block, total, off, end - off);
		unshuffle_part(elem, form->msb, p.total, p.off, p.count,
		               (const uint8_t *)src + p.begin, to, cpu);
		off += p.count;
		to += p.count * elem;
	} while (off < end || (p.count && has_rest(elem, form->block, total, end)));
}

void lade__bitshuffle(size_t elem, size_t size, const void *src, void *dst, lade_cpu cpu)
{
	lade__bit_form form = {.elem = elem};
	lade__bitshuffle_tile(&form, size, 0, size / elem, src, dst, cpu);
}

void lade__bitunshuffle(size_t elem, size_t size, const void *src, void *dst, lade_cpu cpu)
{
	lade__bit_form form = {.elem = elem};
	lade__bitunshuffle_tile(&form, size, 0, size / elem, src, dst, cpu);
}
