/*
 * chain.h: what builds a chain of codecs, stage by stage.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ZARR_CHAIN_H
#define LADE_ZARR_CHAIN_H

#include "zarr/zarr.h"

#define STEPS_MAX 32
#define AXES_MAX (LADE_DIMS_MAX + 1) /* a shard's index has one axis more */

/* Array to array, array to bytes, bytes to bytes; the order in a chain. */
typedef enum codec_kind { AA = 0, AB = 1, BB = 2 } codec_kind;

typedef struct builder {
	const scan *s;
	lade_zarr_chain *chain;
	size_t ndim;
	const lade_zarr_type *type; /* of the array's elements */
	lade_zarr_type now;         /* after the codecs so far */
	size_t order[AXES_MAX];     /* axis i of the stored chunk is axis order[i] */
	bool transposed;
	const uint64_t *shape; /* of the chunk, in the array's axes; NULL: the grid's */
	bool ended;            /* no codec may follow */
	bool fixed; /* codecs before need the order of axes that they have */
	codec_kind kind;
	size_t serial_count; /* codecs of kind AB */

	/* The spec under construction. */
	char text[1000];
	size_t text_size, stage_count;
	lade_zarr_step steps[STEPS_MAX];
} builder;

/* What a chain is in: another chain's shard, or the array. */
typedef struct around {
	const uint64_t *shape; /* of the chunk; NULL: the array's axes */
	bool index;            /* the chain of a shard's index */
	builder *before;       /* its stages become the first of the chain */
} around;

/* The chain of a list of codecs of format 3. */
lade_status lade__chain_build(const scan *s, uint32_t list, lade_zarr_chain *chain,
                              const lade_zarr_type *type, size_t ndim, const around *outer);

/* Adds a codec of format 3. */
lade_status lade__chain_codec(builder *b, uint32_t at, const around *outer);

/* chain_shard.c, chain_wrap.c */
lade_status lade__chain_shard(builder *b, uint32_t name, uint32_t config, const around *outer);
lade_status lade__chain_n5(builder *b, uint32_t name, uint32_t config, const around *outer);
lade_status lade__chain_conditional(builder *b, uint32_t name, uint32_t config,
                                    const around *outer);

/* Adds a stage to the spec under construction. */
lade_status lade__chain_stage(builder *b, const char *format, ...) LADE_PRINTF(2, 3);

/* Ends the step; 'header_size' as in lade_zarr_step. */
lade_status lade__chain_flush(builder *b, size_t header_size);

/* Whether a spec adds the same number of bytes to data of any size: '*extra'. */
bool lade__spec_adds(const lade_spec *spec, size_t *extra);
bool lade__chain_adds(const builder *b, const char *text, size_t *extra);

/* Adds stages whose text was not made here. */
lade_status lade__chain_spec(builder *b, const char *text);

/*
 * extra.c: adds a codec that the library does not run: asks the caller's 'codec' for a spec.
 * Without one the chain gets a step without a spec ('why'), or the call fails (why NULL: the codec
 * is not known).  '*kind' is set for a caller's.
 */
lade_status lade__chain_foreign(builder *b, uint32_t name, uint32_t configuration, codec_kind *kind,
                                const char *why);

/* Adds a step without a spec. */
lade_status lade__chain_closed(builder *b, uint32_t name, uint32_t configuration, const char *why);

/* What the codecs after a filter see; 'text' is a type of dtype.h. */
void lade__chain_becomes(builder *b, const char *text);

/* Elements of a chunk along an axis of what is stored; 0: chunks differ. */
uint64_t lade__chain_axis(const builder *b, size_t axis);

/* numcodecs' LZMA. */
lade_status lade__chain_lzma(builder *b, uint32_t config, bool strict);

lade_status lade__chain_reshape(builder *b, uint32_t config);
lade_status lade__chain_cast(builder *b, uint32_t name, uint32_t config);
lade_status lade__chain_packbits(builder *b, uint32_t name, uint32_t config);

/* A whole number of a configuration, also as text ("1", as NCZarr has it). */
lade_status lade__chain_int(builder *b, uint32_t config, const char *key, int64_t fallback,
                            int64_t *out);

/* A codec that numcodecs has: 'name' is its id.  '*known' says whether it is one. */
lade_status lade__chain_numcodec(builder *b, const char *name, uint32_t at, uint32_t config,
                                 codec_kind *kind, bool *known);

/* Those of both formats. */
lade_status lade__chain_zstd(builder *b, uint32_t config, bool strict);
lade_status lade__chain_gzip(builder *b, uint32_t config, bool strict);
lade_status lade__chain_blosc(builder *b, uint32_t config, bool strict);
lade_status lade__chain_bitround(builder *b, uint32_t config, bool strict);

#endif
