/*
 * snappy.c: raw Snappy (format_description.txt of the Snappy sources), by libsnappy.  The framing
 * format for files is in src/frame.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/lz/gpu.h"
#include "codec/snappy/snappy.h"

#include <snappy-c.h>
#include <string.h>

/* The preamble is the decoded size in 32 bits. */
#define SIZE_LIMIT UINT32_MAX

/*
 * The library's proof (snappy::MaxCompressedLength): a literal of 60 bytes costs 2 more, a copy of
 * 4 bytes takes 3, and one of 5 or more at most 5; so the worst is a literal of one byte (2 bytes)
 * before each copy of 5: 7 bytes for 6.  With the preamble: 32 + n + n/6.
 */
static size_t bound(const lade_stage *stage, size_t size)
{
	(void)stage;
	return size > SIZE_LIMIT ? SIZE_MAX : snappy_max_compressed_length(size);
}

/* Reads the preamble, a varint of at most 5 bytes and 32 bits; gives its length, 0: bad. */
static size_t preamble(const uint8_t *src, size_t size, uint64_t *decoded, lade_error *err,
                       lade_status *status)
{
	uint64_t value = 0;
	for (size_t i = 0; i < 5; i++) {
		if (i == size) {
			*status = lade_fail(
				err, LADE_E_TRUNCATED, size,
				"snappy: the decoded size is incomplete after %zu bytes", size);
			return 0;
		}
		value |= (uint64_t)(src[i] & 0x7F) << (7 * i);
		if (!(src[i] & 0x80)) {
			if (value > SIZE_LIMIT)
				break;
			*decoded = value;
			return i + 1;
		}
	}
	*status = lade_fail(err, LADE_E_CORRUPT, 0,
	                    "snappy: the decoded size does not fit in 32 bits");
	return 0;
}

static lade_status decoded_size(const lade_stage *stage, const void *src, size_t size,
                                uint64_t *decoded, lade_error *err)
{
	(void)stage;
	lade_status status = LADE_OK;
	if (!src)
		return lade_fail(err, LADE_E_UNKNOWN_SIZE, LADE_NO_OFFSET,
		                 "snappy: the decoded size is in the data, which was not given");
	preamble(src, size, decoded, err, &status);
	return status;
}

static double encode_cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	return lade__codec_cost(workload, 400, 0.6);
}

static double decode_cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	return workload->strict ? -1 : lade__codec_cost(workload, 60, 1.6);
}

static lade_status encode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	*dst_size = 0;
	if (src.size > SIZE_LIMIT)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "snappy: %zu bytes, a block holds at most %u", src.size,
		                 (unsigned)SIZE_LIMIT);
	/* The library wants room for the worst case; with less, the result is made aside. */
	size_t want = snappy_max_compressed_length(src.size);
	char *out = dst.data;
	size_t size = dst.size;
	if (dst.size < want) {
		out = lade_worker_scratch(run->worker, 0, want);
		size = want;
		if (!out)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "snappy: no memory for %zu bytes of scratch", want);
	}
	snappy_status result =
		snappy_compress((const char *)lade__bytes(src), src.size, out, &size);
	if (result != SNAPPY_OK)
		return lade_fail(err, LADE_E_INTERNAL, LADE_NO_OFFSET,
		                 "snappy: libsnappy failed with %d", (int)result);
	if (size > dst.size)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "snappy: want %zu bytes, have %zu", size, dst.size);
	if (out != dst.data)
		memcpy(dst.data, out, size);
	*dst_size = size;
	return LADE_OK;
}

/*
 * Says what is wrong with a block that the library refused: walks its tags as
 * format_description.txt, section 2, has them.  The slow path, for messages only.
 */
static lade_status diagnose(const uint8_t *src, size_t size, lade_error *err)
{
	uint64_t total = 0, out = 0;
	lade_status status = LADE_OK;
	size_t in = preamble(src, size, &total, err, &status);
	if (!in)
		return status;
	while (in < size) {
		size_t tag = in;
		uint64_t length, offset = 0;
		unsigned kind = src[tag] & 3, high = src[tag] >> 2;
		size_t extra = kind == 0 ? (high >= 60 ? high - 59 : 0) : kind == 3 ? 4 : kind;
		if (size - tag - 1 < extra)
			return lade_fail(
				err, LADE_E_TRUNCATED, size,
				"snappy: the tag at %zu needs %zu more bytes, %zu are left", tag,
				extra, size - tag - 1);
		in += 1 + extra;
		uint64_t number = 0;
		for (size_t i = 0; i < extra; i++)
			number |= (uint64_t)src[tag + 1 + i] << (8 * i);
		if (kind == 0) {
			length = (high >= 60 ? number : high) + 1;
			if (length > size - in)
				return lade_fail(err, LADE_E_TRUNCATED, size,
				                 "snappy: the literal at %zu needs %llu bytes, %zu "
				                 "are left",
				                 tag, (unsigned long long)length, size - in);
			in += (size_t)length;
		} else {
			length = kind == 1 ? (high & 7) + 4 : high + 1;
			offset = kind == 1 ? (uint64_t)(high >> 3) << 8 | number : number;
			if (offset == 0 || offset > out)
				return lade_fail(err, LADE_E_CORRUPT, tag,
				                 "snappy: the copy at %zu has offset %llu, "
				                 "the output has %llu",
				                 tag, (unsigned long long)offset,
				                 (unsigned long long)out);
		}
		if (length > total - out)
			return lade_fail(
				err, LADE_E_CORRUPT, tag,
				"snappy: the element at %zu decodes to %llu bytes, the block has "
				"room for %llu",
				tag, (unsigned long long)length, (unsigned long long)(total - out));
		out += length;
	}
	if (out < total)
		return lade_fail(err, LADE_E_TRUNCATED, size,
		                 "snappy: the block states %llu bytes and decodes to %llu",
		                 (unsigned long long)total, (unsigned long long)out);
	return lade_fail(err, LADE_E_CORRUPT, 0, "snappy: libsnappy refuses the block");
}

static lade_status decode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	(void)run;
	uint8_t nothing;
	*dst_size = 0;
	const char *in = (const char *)lade__bytes(src);
	size_t size = dst.size;
	snappy_status result =
		snappy_uncompress(in, src.size, (char *)lade__room(dst, &nothing), &size);
	if (result == SNAPPY_OK) {
		*dst_size = size;
		return LADE_OK;
	}
	uint64_t total = 0;
	if (result == SNAPPY_BUFFER_TOO_SMALL &&
	    decoded_size(run->stage, in, src.size, &total, NULL) == LADE_OK && total > dst.size)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "snappy: want %llu bytes, have %zu", (unsigned long long)total,
		                 dst.size);
	return diagnose(lade__bytes(src), src.size, err);
}

static const lade_option options[] = {LADE__ELEM_OPTION};

static const char *const suggest[] = {"snappy", NULL};

const lade_algorithm lade__snappy = {
	.struct_size = sizeof(lade_algorithm),
	.name = "snappy",
	.id = 3,
	.kind = LADE_STAGE_CODEC,
	.options = options,
	.option_count = 1,
	.check = lade__elem_check,
	.doc = "raw Snappy; format_description.txt of google/snappy",
	.bound = bound,
	.decoded_size = decoded_size,
	.header_size = 5,
	.ratio_max = 64,
	.suggest = suggest,
};

const lade_implementation lade__snappy_encode = {
	.struct_size = sizeof(lade_implementation),
	.name = "snappy/libsnappy",
	.algorithm = "snappy",
	.direction = LADE_ENCODE,
	.priority = LADE_PRIORITY_BUILTIN,
	.cost = encode_cost,
	.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops), .run = encode},
};

const lade_implementation lade__snappy_decode = {
	.struct_size = sizeof(lade_implementation),
	.name = "snappy/libsnappy",
	.algorithm = "snappy",
	.direction = LADE_DECODE,
	.priority = LADE_PRIORITY_BUILTIN,
	.cost = decode_cost,
	.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops), .run = decode},
};
