/*
 * header.c: the frame's header and the chunks' headers (docs/format/frame.md, sections 1 and 2).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/layout.h"

#include "base/try.h"

#include <inttypes.h>
#include <xxhash.h>

static const uint8_t magic[8] = {0x89, 'L', 'A', 'D', 'E', '\r', '\n', 0x1A};

enum {
	FLAG_SHAPE = 1,
	FLAG_FORTRAN = 2,
};

lade_status lade__check_zero(const uint8_t *p, size_t size, uint64_t off, const char *what,
                             lade_error *err)
{
	for (size_t i = 0; i < size; i++)
		if (p[i])
			return lade_fail(err, LADE_E_CORRUPT, off + i,
			                 "%s: the byte at %" PRIu64 " is %u, want 0", what, off + i,
			                 p[i]);
	return LADE_OK;
}

/* ---- the frame's header ----------------------------------------------------------------- */

static size_t header_size(unsigned ndim, size_t spec_size)
{
	return (size_t)lade__pad(LADE__HEADER_FIXED + 8 * (size_t)ndim + spec_size + 8);
}

/* The rules that writers and readers share, on a filled 'info'; 'status' is what a breach gives. */
static lade_status info_check(const lade_frame_info *info, lade_status status, lade_error *err)
{
	size_t element = lade__element_size(info->dtype);
	if (element == 0)
		return lade_fail(err, status == LADE_E_ARG ? status : LADE_E_UNSUPPORTED, 31,
		                 "frame header: dtype %u is not known", info->dtype);
	if (info->checksum != LADE_CHECKSUM_NONE && info->checksum != LADE_XXH64 &&
	    info->checksum != LADE_CRC32C)
		return lade_fail(err, status == LADE_E_ARG ? status : LADE_E_UNSUPPORTED, 30,
		                 "frame header: checksum is %d, want 0, %d or %d",
		                 (int)info->checksum, LADE_CRC32C, LADE_XXH64);
	if (info->chunk_size < LADE_FRAME_CHUNK_MIN || info->chunk_size > LADE_FRAME_CHUNK_MAX)
		return lade_fail(err, status, 24,
		                 "frame header: chunk size %zu is not from %d to %d",
		                 info->chunk_size, LADE_FRAME_CHUNK_MIN, LADE_FRAME_CHUNK_MAX);
	if (info->chunk_size % element)
		return lade_fail(
			err, status, 24,
			"frame header: chunk size %zu is not a multiple of the element's size %zu",
			info->chunk_size, element);
	if (info->ndim > LADE_NDIM_MAX)
		return lade_fail(err, status, 32, "frame header: %u dimensions, at most %d",
		                 info->ndim, LADE_NDIM_MAX);
	if (!info->has_shape) {
		if (info->ndim || info->fortran_order)
			return lade_fail(
				err, status, 32,
				"frame header: %u dimensions, Fortran order %d, but no shape",
				info->ndim, info->fortran_order);
		return LADE_OK;
	}
	if (info->dtype == LADE_DTYPE_NONE)
		return lade_fail(err, status, 31, "frame header: %u dimensions and no dtype",
		                 info->ndim);
	uint64_t product = element;
	bool zero = false, overflow = false;
	for (unsigned i = 0; i < info->ndim; i++) {
		zero |= info->shape[i] == 0;
		overflow |= __builtin_mul_overflow(product, info->shape[i], &product);
	}
	if (zero)
		product = 0;
	else if (overflow || product == LADE_SIZE_UNKNOWN)
		return lade_fail(err, status, LADE__HEADER_FIXED,
		                 "frame header: the shape has more than 2^64 - 2 bytes");
	if (product != info->size)
		return lade_fail(err, status, 16,
		                 "frame header: the shape has %" PRIu64
		                 " bytes, total size is %" PRIu64,
		                 product, info->size);
	return LADE_OK;
}

static lade_status options_check(const lade_frame_options *options, lade_error *err)
{
	if (!options->spec)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "frame options: spec is NULL");
	if (options->ndim > LADE_NDIM_MAX || (options->ndim && !options->shape))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "frame options: %u dimensions, at most %d, and a shape for them",
		                 options->ndim, LADE_NDIM_MAX);
	if (options->has_size && options->size == LADE_SIZE_UNKNOWN)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "frame options: size 2^64 - 1 is too large");
	size_t spec_size;
	lade_spec_bytes(options->spec, &spec_size);
	if (spec_size > LADE__SPEC_MAX)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "frame options: the spec takes %zu bytes, at most %d", spec_size,
		                 LADE__SPEC_MAX);
	return LADE_OK;
}

lade_status lade__header_make(const lade_frame_options *options, lade__header *header,
                              lade_error *err)
{
	memset(header, 0, sizeof *header);
	lade_status status = options_check(options, err);
	if (status != LADE_OK)
		return status;
	lade_frame_info *info = &header->info;
	info->spec = options->spec;
	info->chunk_size = options->chunk_size ? options->chunk_size : (size_t)1 << 20;
	info->encoded_size = info->chunk_count = LADE_SIZE_UNKNOWN;
	info->version = LADE__FRAME_VERSION;
	info->dtype = options->dtype;
	info->has_shape = options->shape != NULL;
	info->ndim = options->ndim;
	info->fortran_order = options->fortran_order;
	if (info->ndim)
		memcpy(info->shape, options->shape, info->ndim * sizeof *info->shape);
	info->size = options->has_size ? options->size : LADE_SIZE_UNKNOWN;
	if (info->has_shape && !options->has_size) {
		info->size = lade__element_size(info->dtype);
		for (unsigned i = 0; i < info->ndim; i++)
			info->size *= info->shape[i]; /* info_check() finds an overflow */
	}
	if (!options->no_checksums)
		info->checksum = options->checksum ? options->checksum : LADE_XXH64;
	size_t spec_size;
	lade_spec_bytes(options->spec, &spec_size);
	header->size = header_size(info->ndim, spec_size);
	return info_check(info, LADE_E_ARG, err);
}

void lade__header_pack(lade__header *header, uint8_t *dst)
{
	const lade_frame_info *info = &header->info;
	size_t spec_size;
	const void *spec = lade_spec_bytes(info->spec, &spec_size);
	memset(dst, 0, header->size);
	memcpy(dst, magic, sizeof magic);
	lade__le_put(dst + 8, LADE__FRAME_VERSION, 2);
	lade__le_put(dst + 10, (info->has_shape ? FLAG_SHAPE : 0u) |
	                            (info->fortran_order ? FLAG_FORTRAN : 0u), 2);
	lade__le_put(dst + 12, header->size, 4);
	lade__le_put(dst + 16, info->size, 8);
	lade__le_put(dst + 24, info->chunk_size, 4);
	lade__le_put(dst + 28, spec_size, 2);
	dst[30] = (uint8_t)info->checksum;
	dst[31] = info->dtype;
	dst[32] = (uint8_t)info->ndim;
	for (unsigned i = 0; i < info->ndim; i++)
		lade__le_put(dst + LADE__HEADER_FIXED + 8 * i, info->shape[i], 8);
	memcpy(dst + LADE__HEADER_FIXED + 8 * info->ndim, spec, spec_size);
	header->check = XXH64(dst, header->size - 8, 0);
	lade__le_put(dst + header->size - 8, header->check, 8);
}

lade_status lade__header_size(const uint8_t *src, size_t size, size_t *out, lade_error *err)
{
	for (size_t i = 0; i < sizeof magic && i < size; i++)
		if (src[i] != magic[i])
			return lade_fail(err, LADE_E_CORRUPT, i,
			                 "not a .lade frame: byte %zu is 0x%02x, want 0x%02x", i,
			                 src[i], magic[i]);
	if (size >= 10 && lade__le16(src + 8) != LADE__FRAME_VERSION)
		return lade_fail(err, LADE_E_VERSION, 8,
		                 "frame version %u is unknown, this reads %d", lade__le16(src + 8),
		                 LADE__FRAME_VERSION);
	if (size < 16)
		return lade_fail(err, LADE_E_TRUNCATED, size,
		                 "frame header: want 16 bytes, have %zu", size);
	uint32_t claim = lade__le32(src + 12);
	if (claim % LADE__ALIGN || claim < LADE__HEADER_MIN || claim > LADE__HEADER_MAX)
		return lade_fail(err, LADE_E_CORRUPT, 12,
		                 "frame header: size %u is not a multiple of 16 from %d to %d",
		                 claim, LADE__HEADER_MIN, LADE__HEADER_MAX);
	*out = claim;
	return LADE_OK;
}

/* Everything but the spec, from bytes whose XXH64 is right. */
static lade_status header_fields(const uint8_t *src, size_t size, lade_frame_info *info,
                                 lade_error *err)
{
	unsigned flags = lade__le16(src + 10);
	if (flags & ~(unsigned)(FLAG_SHAPE | FLAG_FORTRAN))
		return lade_fail(err, LADE_E_UNSUPPORTED, 10,
		                 "frame header: flags 0x%x, known are 0x%x", flags,
		                 FLAG_SHAPE | FLAG_FORTRAN);
	info->version = LADE__FRAME_VERSION;
	info->has_shape = (flags & FLAG_SHAPE) != 0;
	info->fortran_order = (flags & FLAG_FORTRAN) != 0;
	info->size = lade__le64(src + 16);
	info->encoded_size = info->chunk_count = LADE_SIZE_UNKNOWN;
	info->chunk_size = lade__le32(src + 24);
	info->checksum = (lade_checksum)src[30];
	info->dtype = src[31];
	info->ndim = src[32];
	lade_status status = lade__check_zero(src + 33, 7, 33, "frame header", err);
	if (status != LADE_OK)
		return status;
	size_t spec_size = lade__le16(src + 28);
	if (info->ndim > LADE_NDIM_MAX || spec_size == 0 || spec_size > LADE__SPEC_MAX ||
	    header_size(info->ndim, spec_size) != size)
		return lade_fail(
			err, LADE_E_CORRUPT, 28,
			"frame header: %u dimensions and a spec of %zu bytes in a header of %zu",
			info->ndim, spec_size, size);
	for (unsigned i = 0; i < info->ndim; i++)
		info->shape[i] = lade__le64(src + LADE__HEADER_FIXED + 8 * i);
	if (info->size != LADE_SIZE_UNKNOWN && info->chunk_size)
		info->chunk_count = lade__div_up(info->size, info->chunk_size);
	size_t end = LADE__HEADER_FIXED + 8 * (size_t)info->ndim + spec_size;
	status = lade__check_zero(src + end, size - 8 - end, end, "frame header", err);
	return status != LADE_OK ? status : info_check(info, LADE_E_CORRUPT, err);
}

lade_status lade__header_parse(const lade_engine *engine, const uint8_t *src, size_t size,
                               lade__header *header, lade_error *err)
{
	memset(header, 0, sizeof *header);
	header->size = size;
	header->check = XXH64(src, size - 8, 0);
	uint64_t stored = lade__le64(src + size - 8);
	if (stored != header->check)
		return lade_fail(err, LADE_E_CHECKSUM, size - 8,
		                 "frame header: XXH64 %016" PRIx64
		                 " is stored, its bytes have %016" PRIx64,
		                 stored, header->check);
	lade_status status = header_fields(src, size, &header->info, err);
	if (status != LADE_OK)
		return status;
	size_t at = LADE__HEADER_FIXED + 8 * (size_t)header->info.ndim;
	status = lade_spec_from_bytes(engine, src + at, lade__le16(src + 28), &header->spec, err);
	if (status != LADE_OK) {
		if (err && err->offset != LADE_NO_OFFSET)
			err->offset += at;
		return status;
	}
	header->info.spec = header->spec;
	return LADE_OK;
}

/* ---- chunk headers ------------------------------------------------------------------------ */

static uint64_t chunk_hash(const uint8_t *src, const void *spec, size_t spec_size, uint64_t index)
{
	return XXH64(spec, spec_size, XXH64(src, 24, index));
}

void lade__chunk_pack(const lade__chunk *chunk, uint64_t index, const void *spec, uint8_t *dst)
{
	lade__le_put(dst, LADE_FRAME_CHUNK_MARK, 4);
	lade__le_put(dst + 4, chunk->size, 4);
	lade__le_put(dst + 8, chunk->decoded_size, 4);
	lade__le_put(dst + 12, chunk->flags, 2);
	lade__le_put(dst + 14, chunk->spec_size, 2);
	lade__le_put(dst + 16, chunk->checksum, 8);
	lade__le_put(dst + 24, chunk_hash(dst, spec, chunk->spec_size, index), 8);
	if (chunk->spec_size) {
		size_t padded = (size_t)lade__pad(chunk->spec_size);
		memcpy(dst + 32, spec, chunk->spec_size);
		memset(dst + 32 + chunk->spec_size, 0, padded - chunk->spec_size);
	}
}

lade_status lade__chunk_peek(const uint8_t src[LADE__PART_HEADER], uint64_t index, uint64_t off,
                             size_t *spec_size, lade_error *err)
{
	if (lade__le32(src) != LADE_FRAME_CHUNK_MARK)
		return lade_fail(err, LADE_E_CORRUPT, off,
		                 "chunk %" PRIu64 ": mark 0x%08x at %" PRIu64 ", want 0x%08x",
		                 index, lade__le32(src), off, LADE_FRAME_CHUNK_MARK);
	*spec_size = lade__le16(src + 14);
	if (*spec_size > LADE__SPEC_MAX)
		return lade_fail(err, LADE_E_CORRUPT, off + 14,
		                 "chunk %" PRIu64 ": a spec of %zu bytes, at most %d", index,
		                 *spec_size, LADE__SPEC_MAX);
	return LADE_OK;
}

lade_status lade__chunk_check(const lade__chunk *chunk, uint64_t index, uint64_t off,
                              lade_error *err)
{
	unsigned flags = chunk->flags;
	if (flags > LADE_CHUNK_OWN_SPEC || (flags & (flags - 1)))
		return lade_fail(err, LADE_E_UNSUPPORTED, off,
		                 "chunk %" PRIu64 ": flags 0x%x, known are 0, 1, 2 and 4", index,
		                 flags);
	if ((flags == LADE_CHUNK_OWN_SPEC) != (chunk->spec_size != 0) ||
	    chunk->spec_size > LADE__SPEC_MAX)
		return lade_fail(err, LADE_E_CORRUPT, off,
		                 "chunk %" PRIu64
		                 ": flags 0x%x with a spec of %u bytes, at most %d",
		                 index, flags, chunk->spec_size, LADE__SPEC_MAX);
	uint32_t size = chunk->size, decoded = chunk->decoded_size;
	bool fits;
	if (flags == LADE_CHUNK_STORED)
		fits = size == decoded;
	else if (flags == LADE_CHUNK_CONSTANT)
		fits = (size == 1 || size == 2 || size == 4 || size == 8) && decoded % size == 0;
	else
		fits = size > 0 && size < decoded;
	if (!fits)
		return lade_fail(err, LADE_E_CORRUPT, off,
		                 "chunk %" PRIu64
		                 ": payload of %u bytes for %u decoded, flags 0x%x",
		                 index, size, decoded, flags);
	return LADE_OK;
}

lade_status lade__chunk_parse(const uint8_t *src, const lade__located *at,
                              const lade_frame_info *info, lade__chunk *out, lade_error *err)
{
	const uint64_t index = at->index, off = at->off;
	const uint32_t want = at->chunk.decoded_size;
	out->size = lade__le32(src + 4);
	out->decoded_size = lade__le32(src + 8);
	out->flags = lade__le16(src + 12);
	out->spec_size = lade__le16(src + 14);
	out->checksum = lade__le64(src + 16);
	uint64_t stored = lade__le64(src + 24);
	uint64_t made = chunk_hash(src, src + LADE__PART_HEADER, out->spec_size, index);
	if (stored != made)
		return lade_fail(err, LADE_E_CHECKSUM, off + 24,
		                 "chunk %" PRIu64 ": header at %" PRIu64 " has XXH64 %016" PRIx64
		                 " stored, its bytes have %016" PRIx64, index, off, stored, made);
	if (want ? out->decoded_size != want
	         : out->decoded_size == 0 || out->decoded_size > info->chunk_size)
		return lade_fail(err, LADE_E_CORRUPT, off + 8,
		                 "chunk %" PRIu64 ": decoded size %u, want %s%zu", index,
		                 out->decoded_size, want ? "" : "1 to ",
		                 want ? want : info->chunk_size);
	lade_status status = lade__chunk_check(out, index, off + 12, err);
	if (status != LADE_OK)
		return status;
	if (info->checksum == LADE_CHECKSUM_NONE && out->checksum)
		return lade_fail(err, LADE_E_CORRUPT, off + 16,
		                 "chunk %" PRIu64 ": checksum %016" PRIx64
		                 " in a frame without, want 0",
		                 index, out->checksum);
	if (info->checksum == LADE_CRC32C && out->checksum > UINT32_MAX)
		return lade_fail(err, LADE_E_CORRUPT, off + 20,
		                 "chunk %" PRIu64 ": checksum %016" PRIx64
		                 " exceeds a CRC's maximum, %08x",
		                 index, out->checksum, UINT32_MAX);
	return LADE_OK;
}
