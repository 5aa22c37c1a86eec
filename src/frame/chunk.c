/*
 * chunk.c: one chunk of a frame (docs/format/frame.md, section 2).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/chunk.h"

#include <inttypes.h>

/* Chunks that a route is asked for: a frame has many. */
#define ROUTE_CHUNKS 64

static lade_status coder_route(const lade__coder *coder, const lade_spec *spec,
                               lade__route *route, lade_error *err)
{
	bool strict = (coder->job.flags & LADE_BATCH_STRICT) != 0;
	return lade__route_host(coder->engine, spec, coder->direction, ROUTE_CHUNKS,
	                        coder->info->chunk_size, coder->job.dict != NULL, strict, route,
	                        err);
}

lade_status lade__coder_init(lade__coder *coder, lade_engine *engine, const lade_frame_info *info,
                             lade_direction direction, const lade_dict *dict, lade_policy policy,
                             uint32_t flags, lade_error *err)
{
	memset(coder, 0, sizeof *coder);
	coder->engine = engine;
	coder->info = info;
	coder->direction = direction;
	coder->job = (lade__job_options){dict, flags};
	coder->verify = info->checksum != LADE_CHECKSUM_NONE &&
	                policy >= LADE_NO_COMPUTE_AND_VERIFY_IF_PRESENT;
	return coder_route(coder, info->spec, &coder->route, err);
}

/* Passes a failure on with the chunk's index, and its offset made one of the frame. */
static lade_status chunk_fail(lade_error *err, lade_status status, const lade_error *inner,
                              uint64_t index, uint64_t off)
{
	uint64_t at = inner->offset == LADE_NO_OFFSET ? off : off + inner->offset;
	return lade_fail(err, status, off == LADE_NO_OFFSET ? off : at, "chunk %" PRIu64 ": %s",
	                 index, inner->message);
}

/* ---- encoding ----------------------------------------------------------------------------- */

static bool is_constant(const uint8_t *data, size_t size, size_t element)
{
	return size % element == 0 && memcmp(data, data + element, size - element) == 0;
}

/*
 * What decoding 'data' after a lossy encoding gives, and the encoded bytes, both in the worker's
 * scratch; the caller stores the one or the other.
 */
static lade_status encode_lossy(const lade__coder *coder, lade_worker *worker,
                                const lade_spec *spec, const lade__route *route,
                                const uint8_t **data, size_t size, const uint8_t **coded,
                                size_t *coded_size, lade_error *err)
{
	size_t bound = lade_spec_bound(spec, size);
	if (bound > SIZE_MAX / 2 - size)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "%zu bytes are too many for the spec", size);
	uint8_t *scratch = lade__worker_block(worker, LADE__SCRATCH_FRAME, bound + size + 64);
	if (!scratch)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for %zu bytes of scratch", bound + size + 64);
	uint8_t *back = scratch + ((bound + 63) & ~(size_t)63);
	lade__route decode;
	size_t got;
	lade_status status = lade__worker_encode(worker, route, &coder->job, *data, size, scratch,
	                                         bound, coded_size, err);
	if (status == LADE_OK)
		status = lade__route_host(coder->engine, spec, LADE_DECODE, 1, size,
		                          coder->job.dict != NULL, false, &decode, err);
	if (status == LADE_OK)
		status = lade__worker_decode(worker, &decode, &coder->job, scratch, *coded_size,
		                             back, size, &got, err);
	if (status == LADE_OK && got != size)
		status = lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                   "the spec makes %zu bytes of %zu when decoding", got, size);
	if (status == LADE_OK) {
		*data = back;
		*coded = scratch;
	}
	return status;
}

/* Encodes to 'payload', 'size' - 1 bytes; '*coded_size' is 'size' when that is too little. */
static lade_status encode_payload(const lade__coder *coder, lade_worker *worker,
                                  const lade_spec *spec, const lade__route *route,
                                  const uint8_t **data, size_t size, uint8_t *payload,
                                  size_t *coded_size, lade_error *err)
{
	lade_status status;
	if (lade_spec_is_lossy(spec)) {
		const uint8_t *coded = NULL;
		status = encode_lossy(coder, worker, spec, route, data, size, &coded, coded_size,
		                      err);
		if (status == LADE_OK && *coded_size < size)
			memcpy(payload, coded, *coded_size);
		else
			*coded_size = size;
	} else {
		status = lade__worker_encode(worker, route, &coder->job, *data, size, payload,
		                             size - 1, coded_size, err);
	}
	/* A last chunk that is no whole number of elements is none of an arithmetic filter's. */
	bool partial = status == LADE_E_DTYPE && size < coder->info->chunk_size;
	if (status == LADE_E_NOSPACE || partial || (status == LADE_OK && *coded_size == 0)) {
		*coded_size = size;
		status = LADE_OK;
	}
	return status;
}

lade_status lade__block_encode(const lade__coder *coder, lade_worker *worker, const lade_spec *own,
                               uint64_t index, const uint8_t *data, size_t size, uint8_t *dst,
                               lade__chunk *chunk, lade_error *err)
{
	const lade_frame_info *info = coder->info;
	const lade_spec *spec = own ? own : info->spec;
	const lade__route *route = &coder->route;
	lade_status status = LADE_OK;
	lade_error inner = {.offset = LADE_NO_OFFSET};
	lade__route own_route;
	const void *spec_bytes = NULL;
	size_t spec_size = 0, coded_size = size;
	if (own) {
		spec_bytes = lade_spec_bytes(own, &spec_size);
		status = coder_route(coder, own, &own_route, &inner);
		route = &own_route;
	}
	size_t element = lade__element_size(info->dtype);
	bool lossy = lade_spec_is_lossy(spec);
	bool constant = !lossy && is_constant(data, size, element);
	uint8_t *payload = dst + LADE__PART_HEADER + lade__pad(spec_size);
	if (status == LADE_OK && !constant)
		status = encode_payload(coder, worker, spec, route, &data, size, payload,
		                        &coded_size, &inner);
	if (status != LADE_OK)
		return chunk_fail(err, status, &inner, index, LADE_NO_OFFSET);
	if (lossy)
		constant = is_constant(data, size, element);
	*chunk = (lade__chunk){.size = (uint32_t)coded_size, .decoded_size = (uint32_t)size};
	if (constant || coded_size == size) {
		chunk->flags = constant ? LADE_CHUNK_CONSTANT : LADE_CHUNK_STORED;
		chunk->size = (uint32_t)(constant ? element : size);
		payload = dst + LADE__PART_HEADER;
		memcpy(payload, data, chunk->size);
	} else if (own) {
		chunk->flags = LADE_CHUNK_OWN_SPEC;
		chunk->spec_size = (uint16_t)spec_size;
	}
	if (info->checksum != LADE_CHECKSUM_NONE)
		chunk->checksum = lade_checksum_of(info->checksum, data, size);
	memset(payload + chunk->size, 0, (size_t)lade__pad(chunk->size) - chunk->size);
	lade__chunk_pack(chunk, index, spec_bytes, dst);
	return LADE_OK;
}

/* ---- decoding ----------------------------------------------------------------------------- */

/* Repeats the first 'element' bytes: what is filled doubles until it is a page, then goes on by
 * pages, so that the source stays in the nearest cache. */
static void fill_constant(uint8_t *dst, size_t size, const uint8_t *value, size_t element)
{
	if (element == 1) {
		memset(dst, value[0], size);
		return;
	}
	memcpy(dst, value, element);
	for (size_t have = element; have < size;) {
		size_t n = have < 4096 ? have : 4096;
		n = n < size - have ? n : size - have;
		memcpy(dst + have, dst, n);
		have += n;
	}
}

lade_status lade__block_padding(uint64_t index, const lade__chunk *chunk, const uint8_t *body,
                                uint64_t off, lade_error *err)
{
	size_t spec_end = (size_t)lade__pad(chunk->spec_size), end = spec_end + chunk->size;
	lade_error inner = {.offset = LADE_NO_OFFSET};
	lade_status status = lade__check_zero(body + chunk->spec_size, spec_end - chunk->spec_size,
	                                      off + LADE__PART_HEADER + chunk->spec_size,
	                                      "behind the spec", &inner);
	if (status == LADE_OK)
		status = lade__check_zero(body + end, (size_t)lade__pad(chunk->size) - chunk->size,
		                          off + LADE__PART_HEADER + end, "behind the payload",
		                          &inner);
	return status == LADE_OK ? status : chunk_fail(err, status, &inner, index, 0);
}

lade_status lade__block_spec(const lade__coder *coder, uint64_t index, const lade__chunk *chunk,
                             const uint8_t *body, uint64_t off, lade_spec **own, lade__route *route,
                             lade_error *err)
{
	*own = NULL;
	*route = coder->route;
	if (chunk->flags != LADE_CHUNK_OWN_SPEC)
		return LADE_OK;
	lade_error inner = {.offset = LADE_NO_OFFSET};
	lade_status status =
		lade_spec_from_bytes(coder->engine, body, chunk->spec_size, own, &inner);
	if (status == LADE_OK)
		status = coder_route(coder, *own, route, &inner);
	if (status == LADE_OK)
		return status;
	lade_spec_unref(*own);
	*own = NULL;
	return chunk_fail(err, status, &inner, index, off + LADE__PART_HEADER);
}

lade_status lade__block_decoded(uint64_t index, const lade__chunk *chunk, uint64_t off,
                                lade_status status, const lade_error *inner, size_t got,
                                lade_error *err)
{
	off += LADE__PART_HEADER + lade__pad(chunk->spec_size);
	if (status == LADE_E_NOSPACE) {
		return lade_fail(err, LADE_E_CORRUPT, off,
		                 "chunk %" PRIu64 ": payload at %" PRIu64
		                 " decodes to more than %u bytes",
		                 index, off, chunk->decoded_size);
	}
	if (status != LADE_OK)
		return chunk_fail(err, status, inner, index, off);
	if (got != chunk->decoded_size)
		return lade_fail(err, LADE_E_CORRUPT, off,
		                 "chunk %" PRIu64 ": payload at %" PRIu64
		                 " decodes to %zu bytes, want %u",
		                 index, off, got, chunk->decoded_size);
	return LADE_OK;
}

static lade_status decode_coded(const lade__coder *coder, lade_worker *worker, uint64_t index,
                                const lade__chunk *chunk, const uint8_t *body, uint64_t off,
                                uint8_t *dst, lade_error *err)
{
	const uint8_t *payload = body + lade__pad(chunk->spec_size);
	lade_error inner = {.offset = LADE_NO_OFFSET};
	lade_spec *own;
	lade__route route;
	size_t got = 0;
	lade_status status = lade__block_spec(coder, index, chunk, body, off, &own, &route, err);
	if (status != LADE_OK)
		return status;
	status = lade__worker_decode(worker, &route, &coder->job, payload, chunk->size, dst,
	                             chunk->decoded_size, &got, &inner);
	lade_spec_unref(own);
	return lade__block_decoded(index, chunk, off, status, &inner, got, err);
}

lade_status lade__block_decode(const lade__coder *coder, lade_worker *worker, uint64_t index,
                               const lade__chunk *chunk, const uint8_t *body, uint64_t off,
                               uint8_t *dst, lade_error *err)
{
	lade_status status = lade__block_padding(index, chunk, body, off, err);
	if (status != LADE_OK)
		return status;
	if (chunk->flags == LADE_CHUNK_STORED)
		memcpy(dst, body, chunk->size);
	else if (chunk->flags == LADE_CHUNK_CONSTANT)
		fill_constant(dst, chunk->decoded_size, body, chunk->size);
	else
		status = decode_coded(coder, worker, index, chunk, body, off, dst, err);
	return status != LADE_OK ? status : lade__block_verify(coder, index, chunk, off, dst, err);
}

lade_status lade__block_verify(const lade__coder *coder, uint64_t index, const lade__chunk *chunk,
                               uint64_t off, const uint8_t *decoded, lade_error *err)
{
	if (!coder->verify)
		return LADE_OK;
	uint64_t made = lade_checksum_of(coder->info->checksum, decoded, chunk->decoded_size);
	if (made != chunk->checksum)
		return lade_fail(err, LADE_E_CHECKSUM, off + 16,
		                 "chunk %" PRIu64 " at %" PRIu64 ": %s %016" PRIx64
		                 " is stored, the decoded bytes have %016" PRIx64, index, off,
		                 lade_checksum_name(coder->info->checksum), chunk->checksum, made);
	return LADE_OK;
}
