/*
 * chunk.h: one chunk of a frame, encoded and decoded on one worker while it is in the cache:
 * codec, checksum, constant detection.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_FRAME_CHUNK_H
#define LADE_FRAME_CHUNK_H

#include "batch/host/item.h"
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

/* Makes the route of a coder whose engine, info, direction and job are set; 'info' outlives it. */
lade_status lade__coder_init(lade__coder *coder, lade_verify verify, lade_error *err);

/* A chunk to encode. */
typedef struct lade__chunk_source {
	uint64_t index;
	lade_cspan data;
	const lade_spec *own; /* NULL: the frame's */
} lade__chunk_source;

/*
 * Writes the whole block of a chunk, header to padding, to 'dst': at most
 * lade__block_bound(its size, own spec's size) bytes.
 */
lade_status lade__block_encode(const lade__coder *coder, lade_worker *worker,
                               const lade__chunk_source *from, uint8_t *dst, lade__chunk *chunk,
                               lade_error *err);

/* A stored payload is the largest: one that is coded is smaller than the decoded bytes. */
static inline uint64_t lade__block_bound(uint64_t size, size_t spec_size)
{
	return LADE__PART_HEADER + lade__pad(spec_size) + lade__pad(size);
}

/* A chunk's block where it was found. */
typedef struct lade__found {
	uint64_t index;
	const lade__chunk *chunk; /* its header */
	const uint8_t *body;      /* what follows the header, to the end of the padding */
	uint64_t off;             /* of the block in the frame */
} lade__found;

/* Decodes a chunk to 'dst', chunk->decoded_size bytes, and verifies it. */
lade_status lade__block_decode(const lade__coder *coder, lade_worker *worker,
                               const lade__found *block, uint8_t *dst, lade_error *err);

/*
 * The steps of that for a coded chunk, for those who decode many at once.  _spec: the chunk's own
 * spec, to be unreferenced, or NULL for the frame's; and the host's route for it.  _decoded: what
 * decoding the payload came to: 'inner' is the verdict on the payload alone, 'got' its bytes.
 */
lade_status lade__block_spec(const lade__coder *coder, const lade__found *block, lade_spec **own,
                             lade__route *route, lade_error *err);
lade_status lade__block_decoded(const lade__found *block, lade_status status,
                                const lade_error *inner, size_t got, lade_error *err);

/* The zeros behind a spec and a payload. */
lade_status lade__block_padding(const lade__found *block, lade_error *err);

/* The checksum of the decoded bytes, unless the options say never. */
lade_status lade__block_verify(const lade__coder *coder, uint64_t index, const lade__chunk *chunk,
                               uint64_t off, const uint8_t *decoded, lade_error *err);

/* Compares 'made', the checksum of the decoded bytes, with the chunk's. */
lade_status lade__block_compare(const lade__coder *coder, uint64_t index, const lade__chunk *chunk,
                                uint64_t off, uint64_t made, lade_error *err);

#endif
