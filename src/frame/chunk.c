/*
 * chunk.c: one chunk of a frame (docs/format/frame.md, section 2).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/chunk.h"

#include "engine/spec.h"

#include <inttypes.h>

/* Chunks that a route is asked for: a frame has many. */
#define ROUTE_CHUNKS 64

static lade_status coder_route(const lade__coder *coder, const lade_spec *spec,
                               lade__route *route, lade_error *err)
{
	lade_workload work = {.direction = coder->direction,
	                      .count = ROUTE_CHUNKS,
	                      .largest = coder->info->chunk_size,
	                      .has_dict = coder->job.dict != NULL,
	                      .strict = (coder->job.flags & LADE_BATCH_STRICT) != 0};
	return lade__route_host(coder->engine, spec, work, route, err);
}

lade_status lade__coder_init(lade__coder *coder, lade_verify verify, lade_error *err)
{
	coder->verify =
		coder->info->checksum != LADE_CHECKSUM_NONE && verify != LADE_VERIFY_NEVER;
	return coder_route(coder, coder->info->spec, &coder->route, err);
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
static lade_status encode_lossy(const lade__coder *coder, const lade__pipe *pipe, lade_cspan *data,
                                lade_cspan *coded, lade_error *err)
{
	const lade_spec *spec = pipe->route->spec;
	size_t size = data->size, bound = lade_spec_bound(spec, size);
	if (bound > SIZE_MAX / 2 - size)
		return lade__bound_fail(spec->stage, spec->count, size, err);
	uint8_t *scratch = lade__worker_block(pipe->worker, LADE__SCRATCH_FRAME, bound + size + 64);
	if (!scratch)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for %zu bytes of scratch", bound + size + 64);
	uint8_t *back = scratch + ((bound + 63) & ~(size_t)63);
	lade__route decode;
	lade__pipe way_back = {pipe->worker, &decode, &coder->job};
	lade_workload work = {.direction = LADE_DECODE, .count = 1, .largest = size,
	                      .has_dict = coder->job.dict != NULL};
	size_t got;
	*coded = lade_host_cspan(scratch, 0);
	lade_status status =
		lade__pipe_encode(pipe, *data, lade_host_span(scratch, bound), &coded->size, err);
	if (status == LADE_OK)
		status = lade__route_host(coder->engine, spec, work, &decode, err);
	if (status == LADE_OK)
		status = lade__pipe_decode(&way_back, *coded, lade_host_span(back, size), &got,
		                           err);
	if (status == LADE_OK && got != size)
		status = lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                   "the spec decodes to %zu bytes, %zu were encoded", got, size);
	if (status == LADE_OK)
		data->data = back;
	return status;
}

/* Encodes to 'payload', one byte fewer than the data; '*coded_size' is the data's size when that is
 * too little. */
static lade_status encode_payload(const lade__coder *coder, const lade__pipe *pipe,
                                  lade_cspan *data, uint8_t *payload, size_t *coded_size,
                                  lade_error *err)
{
	lade_status status;
	size_t size = data->size;
	if (lade_spec_is_lossy(pipe->route->spec)) {
		lade_cspan coded;
		status = encode_lossy(coder, pipe, data, &coded, err);
		*coded_size = status == LADE_OK && coded.size < size ? coded.size : size;
		if (*coded_size < size)
			memcpy(payload, coded.data, coded.size);
	} else {
		status = lade__pipe_encode(pipe, *data, lade_host_span(payload, size - 1),
		                           coded_size, err);
	}
	/* A last chunk that is no whole number of elements is none of an arithmetic filter's. */
	bool partial = status == LADE_E_DTYPE && size < coder->info->chunk_size;
	if (status == LADE_E_NOSPACE || partial || (status == LADE_OK && *coded_size == 0)) {
		*coded_size = size;
		status = LADE_OK;
	}
	return status;
}

lade_status lade__block_encode(const lade__coder *coder, lade_worker *worker,
                               const lade__chunk_source *from, uint8_t *dst, lade__chunk *chunk,
                               lade_error *err)
{
	const lade_frame_info *info = coder->info;
	const lade_spec *own = from->own, *spec = own ? own : info->spec;
	lade__route own_route;
	lade__pipe pipe = {worker, own ? &own_route : &coder->route, &coder->job};
	lade_status status = LADE_OK;
	lade_error inner = {.offset = LADE_NO_OFFSET};
	const void *spec_bytes = NULL;
	const size_t size = from->data.size;
	size_t spec_size = 0, coded_size = size;
	if (own) {
		spec_bytes = lade_spec_bytes(own, &spec_size);
		status = coder_route(coder, own, &own_route, &inner);
	}
	size_t element = lade__element_size(info->dtype);
	lade_cspan data = from->data;
	bool lossy = lade_spec_is_lossy(spec);
	bool constant = !lossy && is_constant(data.data, size, element);
	uint8_t *payload = dst + LADE__PART_HEADER + lade__pad(spec_size);
	if (status == LADE_OK && !constant)
		status = encode_payload(coder, &pipe, &data, payload, &coded_size, &inner);
	if (status != LADE_OK)
		return chunk_fail(err, status, &inner, from->index, LADE_NO_OFFSET);
	if (lossy)
		constant = is_constant(data.data, size, element);
	*chunk = (lade__chunk){.size = (uint32_t)coded_size, .decoded_size = (uint32_t)size};
	if (constant || coded_size == size) {
		chunk->flags = constant ? LADE_CHUNK_CONSTANT : LADE_CHUNK_STORED;
		chunk->size = (uint32_t)(constant ? element : size);
		payload = dst + LADE__PART_HEADER;
		memcpy(payload, data.data, chunk->size);
	} else if (own) {
		chunk->flags = LADE_CHUNK_OWN_SPEC;
		chunk->spec_size = (uint16_t)spec_size;
	}
	if (info->checksum != LADE_CHECKSUM_NONE)
		chunk->checksum = lade_checksum_of(info->checksum, data.data, size);
	memset(payload + chunk->size, 0, (size_t)lade__pad(chunk->size) - chunk->size);
	lade__chunk_pack(chunk, from->index, spec_bytes, dst);
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

lade_status lade__block_padding(const lade__found *block, lade_error *err)
{
	const lade__chunk *chunk = block->chunk;
	const uint8_t *body = block->body;
	uint64_t off = block->off;
	size_t spec_end = (size_t)lade__pad(chunk->spec_size), end = spec_end + chunk->size;
	lade_error inner = {.offset = LADE_NO_OFFSET};
	lade_status status = lade__check_zero(body + chunk->spec_size, spec_end - chunk->spec_size,
	                                      off + LADE__PART_HEADER + chunk->spec_size,
	                                      "behind the spec", &inner);
	if (status == LADE_OK)
		status = lade__check_zero(body + end, (size_t)lade__pad(chunk->size) - chunk->size,
		                          off + LADE__PART_HEADER + end, "behind the payload",
		                          &inner);
	return status == LADE_OK ? status : chunk_fail(err, status, &inner, block->index, 0);
}

lade_status lade__block_spec(const lade__coder *coder, const lade__found *block, lade_spec **own,
                             lade__route *route, lade_error *err)
{
	const lade__chunk *chunk = block->chunk;
	*own = NULL;
	*route = coder->route;
	if (chunk->flags != LADE_CHUNK_OWN_SPEC)
		return LADE_OK;
	lade_error inner = {.offset = LADE_NO_OFFSET};
	lade_status status =
		lade_spec_from_bytes(coder->engine, block->body, chunk->spec_size, own, &inner);
	if (status == LADE_OK)
		status = coder_route(coder, *own, route, &inner);
	if (status == LADE_OK)
		return status;
	lade_spec_unref(*own);
	*own = NULL;
	return chunk_fail(err, status, &inner, block->index, block->off + LADE__PART_HEADER);
}

lade_status lade__block_decoded(const lade__found *block, lade_status status,
                                const lade_error *inner, size_t got, lade_error *err)
{
	const lade__chunk *chunk = block->chunk;
	const uint64_t index = block->index;
	const uint64_t off = block->off + LADE__PART_HEADER + lade__pad(chunk->spec_size);
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

static lade_status decode_coded(const lade__coder *coder, lade_worker *worker,
                                const lade__found *block, uint8_t *dst, lade_error *err)
{
	const lade__chunk *chunk = block->chunk;
	const uint8_t *payload = block->body + lade__pad(chunk->spec_size);
	lade_error inner = {.offset = LADE_NO_OFFSET};
	lade_spec *own;
	lade__route route;
	size_t got = 0;
	lade_status status = lade__block_spec(coder, block, &own, &route, err);
	if (status != LADE_OK)
		return status;
	lade__pipe pipe = {worker, &route, &coder->job};
	status = lade__pipe_decode(&pipe, lade_host_cspan(payload, chunk->size),
	                           lade_host_span(dst, chunk->decoded_size), &got, &inner);
	lade_spec_unref(own);
	return lade__block_decoded(block, status, &inner, got, err);
}

lade_status lade__block_decode(const lade__coder *coder, lade_worker *worker,
                               const lade__found *block, uint8_t *dst, lade_error *err)
{
	const lade__chunk *chunk = block->chunk;
	const uint8_t *body = block->body;
	lade_status status = lade__block_padding(block, err);
	if (status != LADE_OK)
		return status;
	if (chunk->flags == LADE_CHUNK_STORED)
		memcpy(dst, body, chunk->size);
	else if (chunk->flags == LADE_CHUNK_CONSTANT)
		fill_constant(dst, chunk->decoded_size, body, chunk->size);
	else
		status = decode_coded(coder, worker, block, dst, err);
	return status != LADE_OK ? status
	                         : lade__block_verify(coder, block->index, chunk, block->off, dst,
	                                              err);
}

lade_status lade__block_verify(const lade__coder *coder, uint64_t index, const lade__chunk *chunk,
                               uint64_t off, const uint8_t *decoded, lade_error *err)
{
	if (!coder->verify)
		return LADE_OK;
	uint64_t made = lade_checksum_of(coder->info->checksum, decoded, chunk->decoded_size);
	return lade__block_compare(coder, index, chunk, off, made, err);
}

lade_status lade__block_compare(const lade__coder *coder, uint64_t index, const lade__chunk *chunk,
                                uint64_t off, uint64_t made, lade_error *err)
{
	if (made != chunk->checksum)
		return lade_fail(err, LADE_E_CHECKSUM, off + 16,
		                 "chunk %" PRIu64 " at %" PRIu64 ": %s %016" PRIx64
		                 " is stored, the decoded bytes have %016" PRIx64, index, off,
		                 lade_checksum_name(coder->info->checksum), chunk->checksum, made);
	return LADE_OK;
}
