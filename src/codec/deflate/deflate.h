/*
 * deflate.h: what raw Deflate, zlib and gzip share: contexts, and Deflate streams (RFC 1951) in
 * both directions.  libdeflate does the work; zlib does what libdeflate cannot: dictionaries,
 * saying where a stream is bad, and refusing all that is (LADE_BATCH_STRICT).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CODEC_DEFLATE_DEFLATE_H
#define LADE_CODEC_DEFLATE_DEFLATE_H

#include "codec/codecs.h"

#include <libdeflate.h>
/* zlib reads through pointers to const that way, and never writes there. */
#define ZLIB_CONST
#include <zlib.h>

#define LADE__DEFLATE_LEVEL_MAX 12

/* The one option of all three: level. */
extern const lade_option lade__deflate_options[1];

static inline int lade__deflate_level(const lade_stage *stage)
{
	return (int)stage->option[0].i;
}

/* What a worker keeps for encoding: libdeflate's compressor of each level that was used. */
typedef struct lade__deflater {
	const lade_allocator *host;
	struct libdeflate_compressor *level[LADE__DEFLATE_LEVEL_MAX + 1];
	z_stream z; /* for dictionaries */
	int z_level, z_bits;
	bool z_ready;
} lade__deflater;

/* And for decoding. */
typedef struct lade__inflater {
	const lade_allocator *host;
	struct libdeflate_decompressor *d; /* NULL: all is zlib's */
	z_stream z; /* for dictionaries */
	bool z_ready;
} lade__inflater;

void *lade__deflater_new(void *ctx, const lade_allocator *host);
void lade__deflater_free(void *ctx, void *state);
void *lade__inflater_new(void *ctx, const lade_allocator *host);
void *lade__inflater_strict_new(void *ctx, const lade_allocator *host);
void lade__inflater_free(void *ctx, void *state);

/* The compressor of a level; NULL: out of memory. */
struct libdeflate_compressor *lade__deflater_level(lade__deflater *state, int level);

/*
 * The most bytes of a Deflate stream for 'size' bytes by either library, plus 'extra' for a
 * container; SIZE_MAX where that does not fit in a size_t.
 */
size_t lade__deflate_bound(size_t size, size_t extra);

double lade__deflate_encode_cost(void *ctx, const lade_workload *workload);
double lade__deflate_decode_cost(void *ctx, const lade_workload *workload);
double lade__deflate_strict_cost(void *ctx, const lade_workload *workload);

lade_status lade__deflate_unknown_size(const lade_stage *stage, const void *src, size_t size,
                                       uint64_t *decoded, lade_error *err);

/* The failures of an encoder. */
lade_status lade__deflate_nospace(const lade_run *run, size_t want, size_t have, lade_error *err);
lade_status lade__deflate_nomem(const lade_run *run, lade_error *err);

/* A raw Deflate stream to decode. */
typedef struct lade__deflated {
	const uint8_t *src;
	size_t size; /* other bytes may follow the stream */
	uint64_t off; /* of 'src' in the chunk, for messages */
	uint8_t *dst;
	size_t cap;
	size_t done;           /* decoded bytes before 'dst', for messages */
	const lade_dict *dict; /* or NULL */
	size_t used, written;  /* set by decoding */
} lade__deflated;

/* Decodes a stream with the run's state. */
lade_status lade__inflate(const lade_run *run, lade__deflated *stream, lade_error *err);

/*
 * Encodes with the run's dictionary, as zlib's deflate() does with 'bits': -15 for a raw stream,
 * 15 for zlib's container.
 */
lade_status lade__deflate_with_dict(const lade_run *run, int bits, lade_cspan src, lade_span dst,
                                    size_t *dst_size, lade_error *err);

/* The same as lade__inflate(), by zlib; 'name' is the codec's. */
lade_status lade__inflate_by_zlib(lade__inflater *state, const char *name, lade__deflated *stream,
                                  lade_error *err);

/*
 * Says why libdeflate refused a stream.  'full': because it decodes to more than 'cap' bytes; that
 * stays the error even if zlib refuses the stream for another reason.
 */
lade_status lade__inflate_diagnose(lade__inflater *state, const char *name,
                                   const lade__deflated *stream, bool full, lade_error *err);

LADE__RECORDS(deflate)
LADE__RECORDS(zlib)
LADE__RECORDS(gzip)
/* By zlib, for LADE_BATCH_STRICT. */
extern const lade_implementation lade__deflate_strict, lade__zlib_strict, lade__gzip_strict;
extern const lade__gpu_implementation lade__deflate_decode_gpu, lade__zlib_decode_gpu,
	lade__gzip_decode_gpu;

/* Defines a format's three implementations; its file has the functions encode() and decode(). */
#define LADE__DEFLATE_IMPLEMENTATION(format, kind, by, way, function, new_state, free_state) \
	const lade_implementation lade__##format##_##kind = { \
		.struct_size = sizeof(lade_implementation), \
		.name = #format "/" by, \
		.algorithm = #format, \
		.direction = way, \
		.priority = LADE_PRIORITY_BUILTIN, \
		.cost = lade__deflate_##kind##_cost, \
		.state_new = new_state, \
		.state_free = free_state, \
		.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops), \
		                                 .run = function}, \
	};
#define LADE__DEFLATE_IMPLEMENTATIONS(format) \
	LADE__DEFLATE_IMPLEMENTATION(format, encode, "libdeflate", LADE_ENCODE, encode, \
	                             lade__deflater_new, lade__deflater_free) \
	LADE__DEFLATE_IMPLEMENTATION(format, decode, "libdeflate", LADE_DECODE, decode, \
	                             lade__inflater_new, lade__inflater_free) \
	LADE__DEFLATE_IMPLEMENTATION(format, strict, "strict", LADE_DECODE, decode, \
	                             lade__inflater_strict_new, lade__inflater_free)

#endif
