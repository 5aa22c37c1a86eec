/*
 * encode.c: makes chunks of the ANS format (docs/format/ans.md, section 7).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "codec/ans/ans.h"
#include "filter/shuffle.h"

#include <string.h>

/* Bytes that are counted at once, whole sub-blocks; their byte positions are apart, in lines of the
 * cache that do not exclude one another. */
#define PIECE ((size_t)65536)
#define PIECE_PITCH(width) (PIECE / (width) + 192)

/* A worker's scratch. */
typedef struct work {
	uint32_t count[8][256];
	uint16_t freq[8][256];
	lade__ans_encoder encoder[8];
	uint8_t planes[PIECE + 8 * 192], crossed[PIECE + 8 * 192];
	_Alignas(64) uint8_t strings[ANS_STRINGS_SIZE];
	lade__ans_lanes lanes;
} work;

/* What encoding a chunk goes by. */
typedef struct chunk {
	lade__ans_info info;
	const lade__ans_kernels *kernels;
	const lade__shuffle_kernels *shuffle;
	const uint8_t *src;
	uint8_t *dst;
	size_t dst_size; /* that may be used: less than a raw chunk takes */
	const uint8_t *planes; /* of all sub-blocks, PIECE_PITCH apart; NULL: made one by one */
	work *work;
} chunk;

/* ---- raw and constant chunks ------------------------------------------------------------ */

static void put_header(uint8_t *dst, const lade__ans_info *info, unsigned block_log)
{
	memset(dst, 0, ANS_HEADER);
	dst[0] = ANS_VERSION;
	dst[ANS_AT_KIND] = (uint8_t)info->kind;
	dst[ANS_AT_FORM] = (uint8_t)__builtin_ctz(info->width);
	if (info->crossed)
		dst[ANS_AT_FORM] |= ANS_CROSSED;
	dst[ANS_AT_BLOCK] = (uint8_t)block_log;
	lade__le_put(dst + ANS_AT_SIZE, info->size, 4);
}

static lade_status put_simple(chunk *c, lade_span dst, size_t *dst_size, lade_error *err)
{
	size_t body = c->info.kind == ANS_RAW ? c->info.size : 0;
	if (dst.size < ANS_HEADER + body)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "ans: want %zu bytes, have %zu", ANS_HEADER + body, dst.size);
	put_header(dst.data, &c->info, 0);
	if (c->info.kind == ANS_CONSTANT)
		memcpy(c->dst + ANS_AT_VALUE, c->src, c->info.width);
	else if (body)
		memcpy(c->dst + ANS_HEADER, c->src, body);
	*dst_size = ANS_HEADER + body;
	return LADE_OK;
}

/* ---- what becomes of the byte positions ------------------------------------------------- */

/* Whether signs of bfloat16 are noise: of the elements of 32 units at least a quarter are negative,
 * and a quarter are not. */
static bool signs_vary(const chunk *c)
{
	uint64_t units = c->info.size / (2 * ANS_UNIT);
	unsigned negative = 0, most = 32 * ANS_UNIT;
	for (uint64_t k = 0; k < 32; k++) {
		const uint8_t *unit = c->src + k * units / 32 * (2 * ANS_UNIT);
		for (unsigned i = 0; i < ANS_UNIT; i++)
			negative += unit[2 * i + 1] >> 7;
	}
	return negative >= most / 4 && negative <= most - most / 4;
}

/* The planes of 'count' elements from 'off' on, 'pitch' apart; of bytes the source itself. */
static const uint8_t *planes_of(const chunk *c, size_t off, size_t count, size_t pitch)
{
	const uint8_t *src = c->src + off;
	if (c->info.width == 1)
		return src;
	c->shuffle->to_planes(src, c->work->planes, count, c->info.width, pitch);
	if (!c->info.crossed)
		return c->work->planes;
	c->kernels->cross(c->work->planes, c->work->crossed, pitch, count);
	return c->work->crossed;
}

static void count_all(chunk *c)
{
	size_t all = c->info.size - c->info.tail, pitch = PIECE_PITCH(c->info.width);
	memset(c->work->count, 0, c->info.width * sizeof c->work->count[0]);
	for (size_t off = 0; off < all; off += PIECE) {
		size_t count = (all - off < PIECE ? all - off : PIECE) / c->info.width;
		const uint8_t *planes = planes_of(c, off, count, pitch);
		c->planes = all <= PIECE ? planes : NULL;
		for (unsigned p = 0; p < c->info.width; p++) {
			const uint8_t *plane = planes + p * pitch;
			if (memcmp(plane, plane + 1, count - 1) == 0)
				c->work->count[p][*plane] += (uint32_t)count;
			else
				c->kernels->count(plane, count, c->work->count[p]);
		}
	}
}

/* A plane is coded where that saves one byte of 64 and more, a table of 'present' symbols, of about
 * this many bits, included. */
#define TABLE_BITS(present) (256 + 7 * (present))
#define WORTH(bits, total) ((bits) < (uint64_t)(total)*63 / 8)

/*
 * Chooses each position's mode, and log2 of the states where 'bits' is 0: 10, and 11 where rare
 * symbols would cost half a percent more.  False: nothing is worth coding.
 */
static bool choose(chunk *c, unsigned bits)
{
	lade__ans_info *info = &c->info;
	work *w = c->work;
	uint32_t total = (info->size - info->tail) / info->width;
	uint64_t least = 0, sum = 0;
	for (unsigned p = 0; p < info->width; p++) {
		unsigned present = 0, any = 0;
		for (unsigned s = 0; s < 256; s++) {
			present += w->count[p][s] > 0;
			any = w->count[p][s] ? s : any;
		}
		info->mode[p] = ANS_PLANE_CONSTANT;
		info->value[p] = any;
		if (present == 1)
			continue;
		uint64_t fewest = lade__ans_entropy(w->count[p], total);
		info->value[p] = 0;
		info->mode[p] = WORTH(fewest + TABLE_BITS(present), total) ? ANS_PLANE_CODED
		                                                           : ANS_PLANE_RAW;
		info->raw += info->mode[p] == ANS_PLANE_RAW;
		if (info->mode[p] == ANS_PLANE_RAW)
			continue;
		info->coded++;
		lade__ans_normalise(w->count[p], bits ? bits : 10, w->freq[p]);
		least += fewest;
		sum += lade__ans_estimate(w->count[p], w->freq[p], bits ? bits : 10);
	}
	info->bits = bits ? bits : sum - least > least / 200 ? 11 : 10;
	while (info->coded << info->bits > ANS_ENTRIES_MAX)
		info->bits--;
	for (unsigned p = 0; p < info->width && info->bits != (bits ? bits : 10); p++) {
		if (info->mode[p] == ANS_PLANE_CODED)
			lade__ans_normalise(w->count[p], info->bits, w->freq[p]);
	}
	return info->raw < info->width;
}

/* Writes header, planes and tables, and makes the encoders; gives where the sub-blocks begin, 0:
 * there is no room. */
static size_t put_tables(chunk *c)
{
	lade__ans_info *info = &c->info;
	work *w = c->work;
	unsigned k = 0;
	info->directory = (ANS_AT_PLANES + 2 * info->width + 3) / 4 * 4;
	info->tables = info->directory + 4 * (info->block_count + 1);
	size_t at = info->tables;
	if (c->dst_size < at)
		return 0;
	put_header(c->dst, info, (unsigned)__builtin_ctz(info->block));
	memset(c->dst + ANS_AT_PLANES, 0, at - ANS_AT_PLANES);
	c->dst[ANS_AT_BITS] = (uint8_t)info->bits;
	for (unsigned p = 0; p < info->width; p++) {
		if (info->mode[p] == ANS_PLANE_CODED) {
			uint8_t text[ANS_TABLE_WORDS_MAX * 4];
			info->value[p] = lade__ans_describe(w->freq[p], text);
			if (c->dst_size - at < 4 * info->value[p])
				return 0;
			memcpy(c->dst + at, text, 4 * info->value[p]);
			at += 4 * info->value[p];
			lade__ans_encoder_of(w->freq[p], info->bits, &w->encoder[k]);
			w->lanes.encoder[k] = &w->encoder[k];
			k++;
		}
		c->dst[ANS_AT_PLANES + 2 * p] = (uint8_t)info->mode[p];
		c->dst[ANS_AT_PLANES + 2 * p + 1] = (uint8_t)info->value[p];
	}
	if (c->dst_size - at < 15)
		return 0;
	for (; at % 16; at++)
		c->dst[at] = 0;
	w->lanes.bits = info->bits;
	w->lanes.coded = info->coded;
	w->lanes.strings = w->strings + ANS_SLACK;
	return at;
}

/* ---- sub-blocks ------------------------------------------------------------------------- */

/* The lengths and words of the lanes, from 'at'; gives their end, 0: no room before 'limit', or
 * they cannot be said. */
static size_t put_lanes(chunk *c, size_t at, size_t limit, uint32_t *kind)
{
	const lade__ans_lanes *lanes = &c->work->lanes;
	unsigned least = UINT32_MAX, most = 0, sum = 0;
	for (unsigned l = 0; l < ANS_LANES; l++) {
		unsigned halves = lanes->length[l] / 16;
		least = halves < least ? halves : least;
		most = halves > most ? halves : most;
		sum += halves;
	}
	unsigned full = least / 2;
	size_t head = most - 2 * full < 16 ? ANS_LANES / 2 : ANS_LANES;
	*kind = head == ANS_LANES ? ANS_WIDE : ANS_NARROW;
	/* A length has 8 bits beside the full rows: a sub-block of 16 KiB may want more. */
	if (most - 2 * full > UINT8_MAX || limit < at + head + 2 * (size_t)sum)
		return 0;
	memset(c->dst + at, 0, head);
	for (unsigned l = 0; l < ANS_LANES; l++) {
		unsigned more = lanes->length[l] / 16 - 2 * full;
		if (head == ANS_LANES)
			c->dst[at + l] = (uint8_t)more;
		else
			c->dst[at + l / 2] = (uint8_t)(c->dst[at + l / 2] | more << l % 2 * 4);
	}
	at += head;
	c->kernels->scatter(lanes->strings, c->dst + at, lanes->length, full);
	at += 2 * (size_t)sum;
	if ((most + 1) / 2 > c->info.rows)
		c->info.rows = (most + 1) / 2;
	return at;
}

/* Writes sub-block 'i' at 'at', coded or as it is; gives its end, 0: no room. */
static size_t put_block(chunk *c, uint32_t i, size_t at)
{
	lade__ans_info *info = &c->info;
	lade__ans_lanes *lanes = &c->work->lanes;
	size_t count = lade__ans_elements(info, i), size = count * info->width;
	size_t limit = at + size, off = (size_t)i * info->block;
	size_t pitch = c->planes ? PIECE_PITCH(info->width) : info->block / info->width;
	const uint8_t *planes =
		c->planes ? c->planes + off / info->width : planes_of(c, off, count, pitch);
	uint32_t kind = ANS_NARROW;
	size_t end = at;
	unsigned k = 0;
	limit = limit < c->dst_size ? limit : c->dst_size;
	if (limit - at < info->raw * count)
		end = 0;
	for (unsigned p = 0; p < info->width; p++) {
		if (info->mode[p] == ANS_PLANE_RAW && end) {
			memcpy(c->dst + end, planes + p * pitch, count);
			end += count;
		}
		if (info->mode[p] == ANS_PLANE_CODED)
			lanes->plane[k++] = (uint8_t *)(uintptr_t)(planes + p * pitch);
	}
	if (end && info->coded) {
		lanes->units = (uint32_t)count / ANS_UNIT;
		lanes->width = info->width;
		lanes->result = c->dst + end;
		c->kernels->encode(lanes);
		end = put_lanes(c, end, limit, &kind);
	}
	if (!end) {
		kind = ANS_STORED;
		if (c->dst_size - at < size)
			return 0;
		memcpy(c->dst + at, c->src + off, size);
		end = at + size;
	}
	lade__le_put(c->dst + info->directory + 4 * (size_t)i, at / 16 | kind << ANS_OFF_BITS, 4);
	if (c->dst_size < (end + 15) / 16 * 16)
		return 0;
	for (; end % 16; end++)
		c->dst[end] = 0;
	return end;
}

/* Codes the chunk; false: it would not be smaller than a raw one, or there is no room. */
static bool put_coded(chunk *c, unsigned bits, size_t *dst_size)
{
	lade__ans_info *info = &c->info;
	count_all(c);
	size_t at = choose(c, bits) ? put_tables(c) : 0;
	for (uint32_t i = 0; i < info->block_count && at; i++)
		at = put_block(c, i, at);
	if (!at || c->dst_size - at < info->tail)
		return false;
	lade__le_put(c->dst + info->directory + 4 * (size_t)info->block_count, at / 16, 4);
	c->dst[ANS_AT_ROWS] = (uint8_t)info->rows;
	memcpy(c->dst + at, c->src + info->size - info->tail, info->tail);
	*dst_size = at + info->tail;
	return true;
}

lade_status lade__ans_run_encode(const lade_run *run, lade_cspan src, lade_span dst,
                                 size_t *dst_size, lade_error *err)
{
	size_t width = lade_dtype_size((lade_dtype)run->stage->option[ANS_OPTION_DTYPE].i);
	unsigned bits = (unsigned)run->stage->option[ANS_OPTION_BITS].i;
	*dst_size = 0;
	if (src.size > ANS_SIZE_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "ans: %zu bytes, a chunk holds at most %u", src.size,
		                 (unsigned)ANS_SIZE_MAX);
	chunk c = {.src = lade__bytes(src), .dst = dst.data, .dst_size = dst.size};
	c.info.size = (uint32_t)src.size;
	c.info.width = (unsigned)width;
	c.info.kind = ANS_CONSTANT;
	if (src.size >= width && memcmp(c.src, c.src + width, src.size - width) == 0)
		return put_simple(&c, dst, dst_size, err);
	if (src.size >= width * ANS_UNIT) {
		c.info.kind = ANS_CODED;
		c.info.block = (uint32_t)run->stage->option[ANS_OPTION_BLOCK].i;
		if (!c.info.block)
			c.info.block = 1u << ANS_BLOCK_LOG_OF(src.size, width);
		c.info.tail = c.info.size % (c.info.width * ANS_UNIT);
		c.info.block_count = (c.info.size - c.info.tail + c.info.block - 1) / c.info.block;
		c.kernels = lade__ans_kernels_of(run->cpu);
		c.shuffle = lade__shuffle_kernels_of(run->cpu);
		c.work = lade_worker_scratch(run->worker, 0, sizeof *c.work);
		if (!c.work)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "ans: no memory for %zu bytes of scratch", sizeof *c.work);
		if (run->stage->option[ANS_OPTION_DTYPE].i == LADE_BF16)
			c.info.crossed = signs_vary(&c);
		if (c.dst_size > ANS_HEADER + src.size - 1)
			c.dst_size = ANS_HEADER + src.size - 1;
		if (put_coded(&c, bits, dst_size))
			return LADE_OK;
	}
	c.info = (lade__ans_info){
		.kind = ANS_RAW, .size = (uint32_t)src.size, .width = (unsigned)width};
	return put_simple(&c, dst, dst_size, err);
}
