/*
 * bare.h: encoded bytes without a container, with or without their decoded size in front
 * (docs/format/bare.md).
 *
 *	lade_bare_options options = {.struct_size = sizeof options, .spec = spec,
 *	                             .kind = LADE_BARE_WITH_SIZE};
 *	size_t decoded;
 *	if (lade_bare_encode(engine, lade_host_cspan(field, sizeof field),
 *	                     lade_host_span(packed, sizeof packed), &size, &options, &err) ||
 *	    lade_bare_decoded_size(engine, lade_host_cspan(packed, size), &decoded, &options, &err)
 *	    || lade_bare_decode(engine, lade_host_cspan(packed, size),
 *	                     lade_host_span(back, decoded), &decoded, &options, &err))
 *		return fprintf(stderr, "%s\n", err.message);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BARE_H
#define LADE_BARE_H

#include <lade/batch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is in front of the encoded bytes.  The numbers are nvCOMP's. */
typedef enum lade_bare {
	LADE_BARE_RAW = 1,           /* nothing: only the spec's bytes */
	LADE_BARE_WITH_SIZE = 2,     /* decoded size (4 bytes for lz4, 8 for the rest), then RAW */
	LADE_BARE_WITH_SIZE_16 = 3,  /* the same with RAW at byte 16; bytes between are 0 */
} lade_bare;

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_bare_options {
	size_t struct_size;
	const lade_spec *spec; /* for items without their own */
	lade_bare kind;        /* 0: LADE_BARE_RAW */
	const lade_batch_options *batch; /* NULL: all defaults */
} lade_bare_options;

/* ---- N items ---------------------------------------------------------------------------- */

/*
 * Like lade_decode_into() and lade_encode_into(), but for bare bytes in memory of any kind.  The
 * call copies the size fields of all items from or to a device at once.
 *
 * Decoding: each item has one segment.  The call checks its size field before it decodes anything,
 * also against lade_spec_decoded_max().  Raw bytes that claim more than that are LADE_E_CORRUPT,
 * not LADE_E_NOSPACE: no destination would be large enough.
 * Encoding: lade_spec_bound() + 16 bytes always suffice.
 *
 * Returns: as lade_decode_into()
 * Fails:   as lade_decode_into(); LADE_E_TRUNCATED and LADE_E_CORRUPT for the size field
 *          (err->offset counts from the item's first byte) and for a size that is not the data's;
 *          LADE_E_LIMIT for a size that does not fit the field
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
 * Stores the decoded size that item i claims in 'results[i].size'.  For LADE_BARE_RAW it is what
 * lade_decoded_sizes() returns.
 *
 * The call refuses a large claim for few bytes (LADE_E_CORRUPT) if it is above
 * lade_spec_decoded_max(), or if the size field and the data's own header differ.  You can allocate
 * what it returns.
 *
 * Returns: as lade_decode_into(); LADE_E_UNKNOWN_SIZE is a failure too
 */
LADE_API lade_status lade_bare_decoded_sizes(lade_engine *engine, const lade_item *items,
                                             size_t count, lade_result *results,
                                             const lade_bare_options *options,
                                             lade_error *err);

/* The number of bytes in front of the data: 0, 4, 8 or 16.  '*field', unless 'field' is NULL, gets
 * how many of them hold the size.  Both are 0 for an unknown kind. */
LADE_API size_t lade_bare_head(const lade_spec *spec, lade_bare kind, size_t *field);

/* ---- one buffer ------------------------------------------------------------------------- */

/*
 * The calls above for one item.  '*dst_size' gets the bytes written, '*size' the bytes that the
 * data claims to decode to; both are 0 on failure.  The struct sizes in options->batch are ignored.
 */
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
