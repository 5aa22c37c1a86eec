/*
 * packbits.c: booleans, eight to a byte, as numcodecs has it (docs/format/filters.md, section 8).
 *
 * | unused bits of the last byte 1 | bits, the first one highest | ... |
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter/filters.h"

#include <string.h>

/* One byte in front, and one for each 8 that begin: exact for all sizes, and never decreases. */
static size_t bound(const lade_stage *stage, size_t size)
{
	(void)stage;
	return 1 + size / 8 + (size % 8 != 0);
}

static lade_status decoded_size(const lade_stage *stage, const void *src, size_t size,
                                uint64_t *decoded, lade_error *err)
{
	(void)stage;
	*decoded = 0;
	if (size == 0)
		return lade_fail(err, LADE_E_TRUNCATED, 0, "packbits: want 1 byte or more, have 0");
	if (!src)
		return lade_fail(err, LADE_E_UNKNOWN_SIZE, LADE_NO_OFFSET,
		                 "packbits: the decoded size is in the data, which was not given");
	unsigned unused = *(const uint8_t *)src;
	if (unused > 7 || (size == 1 && unused))
		return lade_fail(err, LADE_E_CORRUPT, 0,
		                 "packbits: %u unused bits in %zu bytes of bits", unused, size - 1);
	if (size - 1 > UINT64_MAX / 8)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "packbits: %zu bytes are too many", size);
	*decoded = (uint64_t)(size - 1) * 8 - unused;
	return LADE_OK;
}

/* Bytes that are not 0 count as true.  Eight at a time: a multiplication brings their lowest bits
 * together, byte m to bit 63 - m, without carries, since the products' bits are distinct. */
static uint8_t pack(const uint8_t *src)
{
	uint64_t x;
	memcpy(&x, src, sizeof x);
	x |= x >> 4;
	x |= x >> 2;
	x |= x >> 1;
	x &= 0x0101010101010101ULL;
	return (uint8_t)((x * 0x8040201008040201ULL) >> 56);
}

static lade_status encode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	const uint8_t *from = src.data;
	uint8_t *to = dst.data;
	size_t want = bound(run->stage, src.size), whole = src.size / 8, rest = src.size % 8;
	*dst_size = 0;
	if (dst.size < want)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "packbits: want %zu bytes, have %zu", want, dst.size);
	*to++ = (uint8_t)(rest ? 8 - rest : 0);
	for (size_t i = 0; i < whole; i++)
		to[i] = pack(from + 8 * i);
	if (rest) {
		uint8_t last[8] = {0};
		memcpy(last, from + 8 * whole, rest);
		to[whole] = pack(last);
	}
	*dst_size = want;
	return LADE_OK;
}

/* Bits [off, off + size), each to a byte. */
static void unpack(const uint8_t *bits, uint64_t off, uint8_t *dst, size_t size)
{
	size_t i = 0;
	for (; i < size && (off + i) % 8; i++)
		dst[i] = (bits[(off + i) / 8] >> (7 - (off + i) % 8)) & 1;
	for (; i + 8 <= size; i += 8) {
		/* A copy of the byte in each byte, of which each keeps one bit; then not 0
		 * becomes 1: adding 127 sets the top bit, and carries nothing out of a byte that
		 * is 128 at most. */
		uint64_t x = bits[(off + i) / 8] * 0x0101010101010101ULL & 0x0102040810204080ULL;
		x = (x + 0x7F7F7F7F7F7F7F7FULL) >> 7 & 0x0101010101010101ULL;
		memcpy(dst + i, &x, sizeof x);
	}
	for (; i < size; i++)
		dst[i] = (bits[(off + i) / 8] >> (7 - (off + i) % 8)) & 1;
}

static lade_status decode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	uint64_t size;
	*dst_size = 0;
	lade_status status = decoded_size(run->stage, src.data, src.size, &size, err);
	if (status != LADE_OK)
		return status;
	if (size > dst.size)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "packbits: want %llu bytes, have %zu", (unsigned long long)size,
		                 dst.size);
	unpack((const uint8_t *)src.data + 1, 0, dst.data, (size_t)size);
	*dst_size = (size_t)size;
	return LADE_OK;
}

static lade_status decode_range(const lade_run *run, lade_cspan src, uint64_t off, lade_span dst,
                                lade_error *err)
{
	uint64_t size;
	lade_status status = decoded_size(run->stage, src.data, src.size, &size, err);
	if (status != LADE_OK)
		return status;
	if (off > size || dst.size > size - off)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "packbits: the range %llu + %zu exceeds the size %llu",
		                 (unsigned long long)off, dst.size, (unsigned long long)size);
	unpack((const uint8_t *)src.data + 1, off, dst.data, dst.size);
	return LADE_OK;
}

/* Booleans come back, but a byte above 1 does as 1. */
static bool is_lossy(const lade_stage *stage)
{
	(void)stage;
	return true;
}

const lade_algorithm lade__filter_packbits = {
	.struct_size = sizeof(lade_algorithm),
	.name = "packbits",
	.id = 39,
	.kind = LADE_STAGE_FILTER,
	.flags = LADE_ALGORITHM_RANGES,
	.doc = "booleans, eight to a byte (docs/format/filters.md, 8)",
	.bound = bound,
	.decoded_size = decoded_size,
	.is_lossy = is_lossy,
	.ratio_max = LADE__FILTER_RATIO,
};

const lade_implementation lade__filter_packbits_encode = {
	.struct_size = sizeof(lade_implementation),
	.name = "packbits/lade",
	.algorithm = "packbits",
	.direction = LADE_ENCODE,
	.priority = LADE_PRIORITY_BUILTIN,
	.cost = lade__filter_cost,
	.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops), .run = encode},
};

const lade_implementation lade__filter_packbits_decode = {
	.struct_size = sizeof(lade_implementation),
	.name = "packbits/lade",
	.algorithm = "packbits",
	.direction = LADE_DECODE,
	.priority = LADE_PRIORITY_BUILTIN,
	.cost = lade__filter_cost,
	.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops),
	                                 .run = decode,
	                                 .run_range = decode_range},
};
