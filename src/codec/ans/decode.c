/*
 * decode.c: decodes chunks of the ANS format, whole or in part (docs/format/ans.md, section 6).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "codec/ans/ans.h"
#include "filter/shuffle.h"

#include <string.h>

#define BLOCK_MAX ((size_t)1 << ANS_BLOCK_LOG_MAX)

/* A worker's scratch. */
typedef struct work {
	uint32_t entries[ANS_ENTRIES_MAX];
	lade__ans_look_ups look_ups[8];
	uint8_t result[BLOCK_MAX]; /* of a sub-block that is wanted in part */
	/* Of sub-blocks that are decoded together: byte positions, block / width apart. */
	uint8_t planes[ANS_SIDE][BLOCK_MAX], uncrossed[BLOCK_MAX];
	_Alignas(64) uint8_t strings[ANS_SIDE][ANS_STRINGS_SIZE];
	lade__ans_lanes lanes[ANS_SIDE];
} work;

/* What decoding a chunk goes by. */
typedef struct chunk {
	lade__ans_info info;
	const lade__ans_kernels *kernels;
	const lade__shuffle_kernels *shuffle;
	const uint8_t *src;
	size_t src_size;
	work *work;
} chunk;

static lade_status no_room(lade_error *err, size_t want, size_t have)
{
	return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET, "ans: want %zu bytes, have %zu", want,
	                 have);
}

/* ---- tables ----------------------------------------------------------------------------- */

/* Makes the tables, and the planes that are the same in every sub-block. */
static lade_status prepare(chunk *c, lade_error *err)
{
	const lade__ans_info *info = &c->info;
	work *w = c->work;
	uint32_t at = info->tables, *table = w->entries;
	uint32_t pitch = info->block / info->width;
	unsigned k = 0;
	w->lanes[0].bits = info->bits;
	w->lanes[0].coded = info->coded;
	for (unsigned p = 0; p < info->width; p++) {
		uint16_t freq[256];
		if (info->mode[p] == ANS_PLANE_CONSTANT)
			for (unsigned i = 0; i < ANS_SIDE; i++)
				memset(w->planes[i] + p * pitch, (int)info->value[p], pitch);
		if (info->mode[p] != ANS_PLANE_CODED)
			continue;
		if (!lade__ans_read(c->src + at, info->value[p], info->bits, freq))
			return lade_fail(err, LADE_E_CORRUPT, at,
			                 "ans: the table of byte %u in %u words is not one of "
			                 "2^%u states",
			                 p, info->value[p], info->bits);
		if (c->kernels->by_look_ups)
			lade__ans_look_ups_of(freq, info->bits, &w->look_ups[k]);
		else
			lade__ans_decoder_of(freq, info->bits, table);
		w->lanes[0].table[k] = table;
		w->lanes[0].look_ups[k] = &w->look_ups[k];
		k++;
		table += (size_t)1 << info->bits;
		at += 4 * info->value[p];
	}
	for (unsigned i = 1; i < ANS_SIDE; i++)
		w->lanes[i] = w->lanes[0];
	for (unsigned i = 0; i < ANS_SIDE; i++) {
		w->lanes[i].strings = w->strings[i] + ANS_SLACK;
		for (unsigned p = k = 0; p < info->width; p++) {
			if (info->mode[p] == ANS_PLANE_CODED)
				w->lanes[i].plane[k++] = w->planes[i] + p * pitch;
		}
	}
	return LADE_OK;
}

/* ---- sub-blocks ------------------------------------------------------------------------- */

static lade_status damaged(lade_error *err, uint64_t off, uint32_t block, const char *what)
{
	return lade_fail(err, LADE_E_CORRUPT, off, "ans: sub-block %u: %s", block, what);
}

/* A sub-block between its reading and its end. */
typedef struct block {
	uint32_t i;
	uint8_t *dst; /* room for all of it */
	bool coded;    /* its lanes are to be decoded */
	unsigned slot; /* its place in the scratch */
	uint64_t off;  /* of these, in the chunk */
} block;

/* Brings the strings of a sub-block's lanes, from its 'size' bytes behind the raw planes. */
static lade_status open_lanes(const chunk *c, const block *b, size_t size, bool wide,
                              lade_error *err)
{
	lade__ans_lanes *lanes = &c->work->lanes[b->slot];
	const uint8_t *src = c->src + b->off;
	unsigned halves[ANS_LANES], sum = 0, most = 0;
	size_t head = wide ? ANS_LANES : ANS_LANES / 2;
	if (size < head)
		return damaged(err, b->off, b->i, "too short for the lanes' lengths");
	for (unsigned l = 0; l < ANS_LANES; l++) {
		halves[l] = wide ? src[l] : src[l / 2] >> l % 2 * 4 & 15;
		sum += halves[l];
	}
	size_t have = (size - head) / 2;
	if (have < sum || (have - sum) % (2 * ANS_LANES) > 7)
		return damaged(err, b->off, b->i, "its size does not fit the lanes' lengths");
	size_t full = (have - sum) / (2 * ANS_LANES);
	for (unsigned l = 0; l < ANS_LANES && full <= c->info.rows; l++) {
		halves[l] += 2 * (unsigned)full;
		most = halves[l] > most ? halves[l] : most;
		lanes->length[l] = halves[l] * 16;
	}
	if (full > c->info.rows || most > 2 * c->info.rows)
		return damaged(err, b->off, b->i, "a lane is longer than the header says");
	c->kernels->gather(lanes->strings, src + head, halves, (unsigned)full);
	return LADE_OK;
}

/* A sub-block's elements, of its planes. */
static void join(const chunk *c, unsigned slot, uint8_t *dst, size_t count)
{
	const lade__ans_info *info = &c->info;
	const uint8_t *planes = c->work->planes[slot];
	size_t pitch = info->block / info->width;
	if (info->crossed) {
		c->kernels->cross(planes, c->work->uncrossed, pitch, count);
		planes = c->work->uncrossed;
	}
	c->shuffle->from_planes(planes, dst, count, info->width, pitch);
}

/* Reads all of a sub-block, the lanes' strings for decoding. */
static lade_status read_block(const chunk *c, block *b, lade_error *err)
{
	lade_status status;
	const lade__ans_info *info = &c->info;
	work *w = c->work;
	const uint32_t mask = ((uint32_t)1 << ANS_OFF_BITS) - 1;
	uint64_t at = info->directory + 4 * (uint64_t)b->i;
	uint32_t entry = lade__le32(c->src + at), next = lade__le32(c->src + at + 4);
	uint32_t kind = entry >> ANS_OFF_BITS, begin = entry & mask, end = next & mask;
	size_t count = lade__ans_elements(info, b->i), size = count * info->width;
	uint32_t pitch = info->block / info->width;
	uint32_t first = lade__le32(c->src + info->directory) & mask;
	uint32_t last = lade__le32(c->src + info->tables - 4) & mask;
	b->coded = false;
	if (kind > ANS_STORED || begin < first || end < begin || end > last)
		return damaged(err, at, b->i, "its place in the directory cannot be");
	const uint8_t *src = c->src + (size_t)begin * 16;
	size_t left = (size_t)(end - begin) * 16;
	if (kind == ANS_STORED) {
		if (left != (size + 15) / 16 * 16)
			return damaged(err, at, b->i, "its size is not that of its bytes");
		memcpy(b->dst, src, size);
		return LADE_OK;
	}
	if (left < info->raw * count)
		return damaged(err, at, b->i, "too short for the raw bytes");
	for (unsigned p = 0; p < info->width; p++) {
		if (info->mode[p] != ANS_PLANE_RAW)
			continue;
		memcpy(w->planes[b->slot] + p * pitch, src, count);
		src += count;
		left -= count;
	}
	b->off = (uint64_t)(src - c->src);
	if (info->coded) {
		lade__ans_lanes *lanes = &w->lanes[b->slot];
		lanes->units = (uint32_t)count / ANS_UNIT;
		if (info->width == 1)
			lanes->plane[0] = b->dst;
		TRY(open_lanes(c, b, left, kind == ANS_WIDE, err));
		b->coded = true;
	} else if (left > 15) {
		return damaged(err, at, b->i, "its size is not that of its bytes");
	} else if (info->width > 1) {
		join(c, b->slot, b->dst, count);
	} else {
		memcpy(b->dst, w->planes[b->slot], count);
	}
	return LADE_OK;
out:
	return status;
}

/* Decodes up to ANS_SIDE sub-blocks; of errors the first one's counts. */
static lade_status decode_blocks(const chunk *c, block *b, unsigned count, lade_error *err)
{
	const lade__ans_info *info = &c->info;
	lade_status status = LADE_OK;
	unsigned have = 0, coded = 0, bad = 0;
	while (have < count && status == LADE_OK) {
		b[have].slot = coded;
		status = read_block(c, &b[have], err);
		coded += status == LADE_OK && b[have].coded;
		have += status == LADE_OK;
	}
	if (coded)
		bad = c->kernels->decode(c->work->lanes, coded);
	for (unsigned k = 0; k < have; k++) {
		if (!b[k].coded)
			continue;
		if (bad >> b[k].slot & 1)
			return damaged(err, b[k].off, b[k].i,
			               "the lanes' bits do not end with their symbols");
		if (info->width > 1)
			join(c, b[k].slot, b[k].dst, lade__ans_elements(info, b[k].i));
	}
	return status;
}

/* ---- chunks ----------------------------------------------------------------------------- */

/* Bytes [off, off + size) of a constant chunk. */
static void fill(const uint8_t *value, unsigned width, uint64_t off, uint8_t *dst, size_t size)
{
	size_t first = size < 64 ? size : 64, n;
	for (size_t i = 0; i < first; i++)
		dst[i] = value[(off + i) % width];
	for (size_t done = first; done < size; done += n) {
		n = size - done < done ? size - done : done;
		memcpy(dst + done, dst, n);
	}
}

/* Bytes [off, off + size) of the chunk; the range is inside it. */
static lade_status decode_range(chunk *c, size_t off, uint8_t *dst, size_t size, lade_error *err)
{
	const lade__ans_info *info = &c->info;
	lade_status status = LADE_OK;
	if (!size)
		return LADE_OK;
	if (info->kind == ANS_RAW) {
		memcpy(dst, c->src + ANS_HEADER + off, size);
		return LADE_OK;
	}
	if (info->kind == ANS_CONSTANT) {
		fill(c->src + ANS_AT_VALUE, info->width, off, dst, size);
		return LADE_OK;
	}
	TRY(prepare(c, err));
	size_t end = off + size, body = info->size - info->tail;
	for (size_t at = off; at < end && at < body;) {
		block b[ANS_SIDE] = {{.i = (uint32_t)(at / info->block)}};
		size_t skip = at % info->block, want[ANS_SIDE], done = 0;
		unsigned count = 0;
		/* Whole ones, or one. */
		for (; count < ANS_SIDE && at + done < end && at + done < body; count++) {
			b[count].i = b[0].i + count;
			size_t whole = lade__ans_elements(info, b[count].i) * (size_t)info->width;
			size_t left = whole - (count ? 0 : skip), room = end - at - done;
			bool part = left != whole || room < whole;
			if (part && count)
				break;
			want[count] = left < room ? left : room;
			b[count].dst = part ? c->work->result : dst + (at + done - off);
			done += want[count];
			if (part) {
				count++;
				break;
			}
		}
		TRY(decode_blocks(c, b, count, err));
		if (b[0].dst == c->work->result)
			memcpy(dst + (at - off), c->work->result + skip, want[0]);
		at += done;
	}
	if (end > body) {
		size_t from = off > body ? off - body : 0;
		memcpy(dst + (body + from - off), c->src + c->src_size - info->tail + from,
		       end - body - from);
	}
out:
	return status;
}

static lade_status open_chunk(const lade_run *run, lade_cspan src, chunk *c, lade_error *err)
{
	lade_status status;
	*c = (chunk){.src = lade__bytes(src), .src_size = src.size};
	TRY(lade__ans_parse(c->src, src.size, &c->info, err));
	if (c->info.kind != ANS_CODED)
		return LADE_OK;
	c->kernels = lade__ans_kernels_of(run->cpu);
	c->shuffle = lade__shuffle_kernels_of(run->cpu);
	c->work = lade_worker_scratch(run->worker, 0, sizeof *c->work);
	if (!c->work)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "ans: no memory for %zu bytes of scratch", sizeof *c->work);
out:
	return status;
}

lade_status lade__ans_run_decode(const lade_run *run, lade_cspan src, lade_span dst,
                                 size_t *dst_size, lade_error *err)
{
	lade_status status;
	chunk c;
	uint8_t nothing;
	*dst_size = 0;
	TRY(open_chunk(run, src, &c, err));
	if (c.info.size > dst.size)
		return no_room(err, c.info.size, dst.size);
	TRY(decode_range(&c, 0, lade__room(dst, &nothing), c.info.size, err));
	*dst_size = c.info.size;
out:
	return status;
}

lade_status lade__ans_run_range(const lade_run *run, lade_cspan src, uint64_t off, lade_span dst,
                                lade_error *err)
{
	lade_status status;
	chunk c;
	TRY(open_chunk(run, src, &c, err));
	if (off > c.info.size || dst.size > c.info.size - off)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "ans: the range %llu + %zu exceeds the size %u",
		                 (unsigned long long)off, dst.size, c.info.size);
	TRY(decode_range(&c, (size_t)off, dst.data, dst.size, err));
out:
	return status;
}

/* ---- parts ------------------------------------------------------------------------------ */

/* Decoded bytes of a part: whole sub-blocks, and enough that making the tables again hardly
 * counts. */
#define PART ((size_t)256 * 1024)

lade_status lade__ans_run_parts(const lade_run *run, lade_cspan src, size_t *part_count,
                                size_t *decoded_size, lade_error *err)
{
	lade__ans_info info;
	lade_status status;
	(void)run;
	*part_count = *decoded_size = 0;
	TRY(lade__ans_parse(lade__bytes(src), src.size, &info, err));
	*decoded_size = info.size;
	if (info.kind == ANS_CODED)
		*part_count = (info.size + PART - 1) / PART;
out:
	return status;
}

lade_status lade__ans_run_part(const lade_run *run, lade_cspan src, size_t part, lade_span dst,
                               lade_error *err)
{
	lade_status status;
	chunk c;
	TRY(open_chunk(run, src, &c, err));
	size_t off = part * PART, left = c.info.size - off;
	TRY(decode_range(&c, off, (uint8_t *)dst.data + off, left < PART ? left : PART, err));
out:
	return status;
}
