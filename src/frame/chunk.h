/*
 * chunk.h: one chunk of a frame, encoded and decoded on one worker while it is in the cache:
 * codec, checksum, constant detection.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_FRAME_CHUNK_H
#define LADE_FRAME_CHUNK_H

#include "batch/engine.h"
#include "frame/layout.h"

/* What all chunks of a frame share in one direction. */
typedef struct lade__coder {
	lade_engine *engine;
	const lade_frame_info *info;
	lade_direction direction;
	lade__route route; /* of info->spec */
	lade__job_options job;
	bool verify;
} lade__coder;

/* 'info' outlives the coder; 'flags' are those of the batch (LADE_BATCH_...). */
lade_status lade__coder_init(lade__coder *coder, lade_engine *engine, const lade_frame_info *info,
                             lade_direction direction, const lade_dict *dict, lade_policy policy,
                             uint32_t flags, lade_error *err);

/*
 * Writes the whole block of a chunk, header to padding, to 'dst': at most
 * lade__block_bound(size, own spec's size) bytes.  'own' is NULL for the frame's spec.
 */
lade_status lade__block_encode(const lade__coder *coder, lade_worker *worker, const lade_spec *own,
                               uint64_t index, const uint8_t *data, size_t size, uint8_t *dst,
                               lade__chunk *chunk, lade_error *err);

/* A stored payload is the largest: one that is coded is smaller than the decoded bytes. */
static inline uint64_t lade__block_bound(uint64_t size, size_t spec_size)
{
	return LADE__PART_HEADER + lade__pad(spec_size) + lade__pad(size);
}

/*
 * Decodes 'chunk' to 'dst', chunk->decoded_size bytes, and verifies it.  'body' is what follows
 * the chunk's header, to the end of its padding; 'off' is the chunk's offset in the frame.
 */
lade_status lade__block_decode(const lade__coder *coder, lade_worker *worker, uint64_t index,
                               const lade__chunk *chunk, const uint8_t *body, uint64_t off,
                               uint8_t *dst, lade_error *err);

/*
 * The steps of that for a coded chunk, for those who decode many at once.  _spec: the chunk's own
 * spec, to be unreferenced, or NULL for the frame's; and the host's route for it.  _decoded: what
 * decoding the payload came to, 'inner' being told of the payload alone and 'got' its bytes.
 */
lade_status lade__block_spec(const lade__coder *coder, uint64_t index, const lade__chunk *chunk,
                             const uint8_t *body, uint64_t off, lade_spec **own, lade__route *route,
                             lade_error *err);
lade_status lade__block_decoded(uint64_t index, const lade__chunk *chunk, uint64_t off,
                                lade_status status, const lade_error *inner, size_t got,
                                lade_error *err);

/* The zeros behind a spec and a payload; 'body' and 'off' as above. */
lade_status lade__block_padding(uint64_t index, const lade__chunk *chunk, const uint8_t *body,
                                uint64_t off, lade_error *err);

/* The checksum of the decoded bytes, where the policy asks for it. */
lade_status lade__block_verify(const lade__coder *coder, uint64_t index, const lade__chunk *chunk,
                               uint64_t off, const uint8_t *decoded, lade_error *err);

#endif
