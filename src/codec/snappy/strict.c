/*
 * strict.c: raw Snappy (format_description.txt of the Snappy sources) by the library's own decoder,
 * which takes and refuses what the kernels do (docs/verdicts.md).
 *
 * An element is judged when its tag is read: first what the source lacks (LADE_E_TRUNCATED), then
 * where a copy begins, then whether it passes the decoded size (LADE_E_CORRUPT both).  The first
 * element that fails is the one that is reported.  Two functions decode: fast() takes elements
 * while both ends are far and nothing is wrong, with wide copies; one() takes any element, to the
 * byte, and says what is wrong.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/lz/lz.h"
#include "codec/snappy/snappy.h"

typedef struct decoder {
	const uint8_t *src;
	uint8_t *dst;
	size_t size, total; /* 'total' bytes are decoded, as the source says */
	size_t in, out;     /* of the next element */
} decoder;

/*
 * Bytes that fast() wants behind a tag and behind the output so far: an element that its tag alone
 * describes has 64 bytes at most, a tag and its number 5, and LADE__LZ_SLACK for the copies.
 */
#define FAR_IN 104
#define FAR_OUT 96

/*
 * Decodes elements until one begins near an end, needs more than is known to be there, or may be
 * bad; leaves 'in' and 'out' where that one begins.
 */
static void fast(decoder *d)
{
	static const uint32_t mask[5] = {0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF};
	if (d->size - d->in < FAR_IN || d->total - d->out < FAR_OUT)
		return;
	const uint8_t *in = d->src + d->in, *in_far = d->src + (d->size - FAR_IN);
	uint8_t *out = d->dst + d->out, *out_far = d->dst + (d->total - FAR_OUT);
	while (in <= in_far && out <= out_far) {
		unsigned tag = in[0], kind = tag & 3;
		uint32_t number = lade__le32(in + 1);
		if (kind == 0) {
			size_t length = (size_t)(tag >> 2) + 1, head = 1;
			if (length > 60) {
				head = length - 59;
				uint64_t all = (uint64_t)(number & mask[head - 1]) + 1;
				if (all > (uint64_t)(in_far - in) ||
				    all > (uint64_t)(out_far - out))
					break;
				length = (size_t)all;
				lade__lz_run(out, in + head, length);
			} else {
				lade__lz_copy16(out, in + 1);
				if (length > 16)
					lade__lz_run(out + 16, in + 17, length - 16);
			}
			in += head + length;
			out += length;
			continue;
		}
		size_t length = (size_t)(tag >> 2) + 1, offset = number & 0xFFFF, head = 3;
		if (kind == 1) {
			length = (tag >> 2 & 7) + 4;
			offset = (number & 0xFF) | (tag & 0xE0) << 3;
			head = 2;
		} else if (kind == 3) {
			offset = number;
			head = 5;
		}
		if (offset - 1 >= (size_t)(out - d->dst))
			break;
		lade__lz_match(out, offset, length);
		in += head;
		out += length;
	}
	d->in = (size_t)(in - d->src);
	d->out = (size_t)(out - d->dst);
}

/* ---- one element, to the byte --------------------------------------------------------------- */

static lade_status one(decoder *d, lade_error *err)
{
	const uint8_t *at = d->src + d->in;
	size_t left = d->size - d->in - 1; /* behind the tag */
	unsigned kind = at[0] & 3, high = at[0] >> 2;
	size_t extra = kind == 0 ? (high >= 60 ? high - 59 : 0) : kind == 3 ? 4 : kind;
	if (left < extra)
		return lade_fail(err, LADE_E_TRUNCATED, d->size,
		                 "snappy: the tag at %zu needs %zu more bytes, %zu are left", d->in,
		                 extra, left);
	uint64_t number = 0;
	for (size_t i = 0; i < extra; i++)
		number |= (uint64_t)at[1 + i] << (8 * i);
	left -= extra;
	uint64_t length, offset = 0;
	if (kind == 0) {
		length = (high >= 60 ? number : high) + 1;
		if (length > left)
			return lade_fail(
				err, LADE_E_TRUNCATED, d->size,
				"snappy: the literal at %zu needs %llu bytes, %zu are left", d->in,
				(unsigned long long)length, left);
	} else {
		length = kind == 1 ? (high & 7) + 4 : high + 1;
		offset = kind == 1 ? (uint64_t)(high >> 3) << 8 | number : number;
		if (offset == 0 || offset > d->out)
			return lade_fail(err, LADE_E_CORRUPT, d->in,
			                 "snappy: the copy at %zu has offset %llu, the output "
			                 "has %zu",
			                 d->in, (unsigned long long)offset, d->out);
	}
	if (length > d->total - d->out)
		return lade_fail(
			err, LADE_E_CORRUPT, d->in,
			"snappy: the element at %zu decodes to %llu bytes, the block has room "
			"for %zu",
			d->in, (unsigned long long)length, d->total - d->out);
	if (kind == 0)
		memcpy(d->dst + d->out, at + 1 + extra, (size_t)length);
	else
		lade__lz_match_exact(d->dst + d->out, (size_t)offset, (size_t)length);
	d->in += 1 + extra + (kind == 0 ? (size_t)length : 0);
	d->out += (size_t)length;
	return LADE_OK;
}

/* Reads the decoded size, a varint of at most 5 bytes and 32 bits. */
static lade_status begin(decoder *d, size_t cap, lade_error *err)
{
	uint64_t value = 0;
	uint8_t byte = 0x80;
	while (byte & 0x80 && d->in < 5) {
		if (d->in == d->size)
			return lade_fail(err, LADE_E_TRUNCATED, d->size,
			                 "snappy: the decoded size is incomplete after %zu bytes",
			                 d->size);
		byte = d->src[d->in];
		value |= (uint64_t)(byte & 0x7F) << (7 * d->in++);
	}
	if (byte & 0x80 || value > UINT32_MAX)
		return lade_fail(err, LADE_E_CORRUPT, 0,
		                 "snappy: the decoded size has more than 32 bits in %zu bytes",
		                 d->in);
	if (value > LADE__LZ_CHUNK_MAX)
		return lade_fail(err, LADE_E_LIMIT, 0,
		                 "snappy: the block states %llu bytes, at most %zu are allowed",
		                 (unsigned long long)value, LADE__LZ_CHUNK_MAX);
	if (value > cap)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "snappy: want %llu bytes, have %zu", (unsigned long long)value,
		                 cap);
	d->total = (size_t)value;
	return LADE_OK;
}

static lade_status decode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	(void)run;
	uint8_t nothing;
	*dst_size = 0;
	if (src.size > LADE__LZ_CHUNK_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "snappy: a block of %zu bytes, the largest has %zu", src.size,
		                 LADE__LZ_CHUNK_MAX);
	decoder d = {
		.src = lade__bytes(src),
		.dst = lade__room(dst, &nothing),
		.size = src.size,
	};
	lade_status status = begin(&d, dst.size, err);
	/* Every turn takes an element at least, which is two bytes at least of the source. */
	while (status == LADE_OK && d.in < d.size) {
		fast(&d);
		status = one(&d, err);
	}
	if (status == LADE_OK && d.out < d.total)
		status = lade_fail(err, LADE_E_TRUNCATED, d.size,
		                   "snappy: the block states %zu bytes and decodes to %zu", d.total,
		                   d.out);
	if (status == LADE_OK)
		*dst_size = d.out;
	return status;
}

static double cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	return workload->strict ? lade__codec_cost(workload, 60, 1.4) : -1;
}

const lade_implementation lade__snappy_strict = {
	.struct_size = sizeof(lade_implementation),
	.name = "snappy/strict",
	.algorithm = "snappy",
	.direction = LADE_DECODE,
	.priority = LADE_PRIORITY_BUILTIN,
	.cost = cost,
	.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops), .run = decode},
};
