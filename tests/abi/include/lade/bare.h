/*
 * bare.h: encoded bytes without a container, alone or behind their decoded size
 * (docs/format/bare.md).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BARE_H
#define LADE_BARE_H

#include <lade/batch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes without a container (docs/format/bare.md); the numbers are nvCOMP's. */
typedef enum lade_bare {
	LADE_BARE_RAW = 1,           /* just the spec's bytes */
	LADE_BARE_WITH_SIZE = 2,     /* decoded size (4 bytes for lz4, 8 for the rest), then RAW */
	LADE_BARE_WITH_SIZE_16 = 3,  /* the same, RAW at byte 16; bytes between are 0 */
} lade_bare;

/* Zero-initialise, set struct_size, then what is wanted. */
typedef struct lade_bare_options {
	size_t struct_size;
	const lade_spec *spec; /* of items without their own */
	lade_bare kind;        /* 0: LADE_BARE_RAW */
	const lade_batch_options *batch; /* NULL: all defaults */
} lade_bare_options;

/* ---- N items ---------------------------------------------------------------------------- */

/*
 * lade_bare_decode_into() and lade_bare_encode_into() are lade_decode_into() and
 * lade_encode_into() of bare bytes in any place: the sizes before the data of all items are fetched
 * from devices at once, and stored there at once.
 *
 * Decoding: an item has one segment.  Its size field is checked before anything is decoded, also
 * against lade_spec_decoded_max().  Raw bytes that had too little room are LADE_E_CORRUPT if they
 * claim more than that: no room would do.
 * Encoding: 16 bytes more than lade_spec_bound() suffice.
 *
 * Returns: as lade_decode_into()
 * Fails:   as lade_decode_into(); LADE_E_TRUNCATED, LADE_E_CORRUPT for the size field (the error's
 *          offset counts from the item's first byte) and for a size that is not the data's;
 *          LADE_E_LIMIT for a size that the field does not hold
 * Threads: any number of callers per engine
 * Owns:    nothing; all spans stay the caller's
 */
LADE_API lade_status lade_bare_decode_into(lade_engine *engine, const lade_item *items,
                                           size_t count, lade_result *results,
                                           const lade_bare_options *options, lade_error *err);
LADE_API lade_status lade_bare_encode_into(lade_engine *engine, const lade_item *items,
                                           size_t count, lade_result *results,
                                           const lade_bare_options *options, lade_error *err);

/*
 * 'results[i].size' is the decoded size that item i claims; of LADE_BARE_RAW as
 * lade_decoded_sizes() tells it.  A claim of much memory for few bytes is compared with
 * lade_spec_decoded_max(), and where a size stands before the data, with what the data says of
 * itself (LADE_E_CORRUPT): what is left can be allocated.
 * Returns: as lade_decode_into(); LADE_E_UNKNOWN_SIZE is a failure too
 */
LADE_API lade_status lade_bare_decoded_sizes(lade_engine *engine, const lade_item *items,
                                             size_t count, lade_result *results,
                                             const lade_bare_options *options,
                                             lade_error *err);

/* The bytes before the data: 0, 4, 8 or 16; 'field', if not NULL, gets how many of them are the
 * size.  0 for a kind that is none. */
LADE_API size_t lade_bare_head(const lade_spec *spec, lade_bare kind, size_t *field);

/* ---- one buffer ------------------------------------------------------------------------- */

/* Shells over the calls above for one item; '*dst_size' is what was written, '*size' what the bytes
 * claim to decode to, both 0 on failure.  The options' sizes of structs are not looked at. */
LADE_API lade_status lade_bare_encode(lade_engine *engine, lade_cspan src, lade_span dst,
                                      size_t *dst_size, const lade_bare_options *options,
                                      lade_error *err);
LADE_API lade_status lade_bare_decode(lade_engine *engine, lade_cspan src, lade_span dst,
                                      size_t *dst_size, const lade_bare_options *options,
                                      lade_error *err);
LADE_API lade_status lade_bare_decoded_size(lade_engine *engine, lade_cspan src, size_t *size,
                                            const lade_bare_options *options, lade_error *err);

#ifdef __cplusplus
}
#endif

#endif
