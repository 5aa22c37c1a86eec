/*
 * spec.h: a specification, the pipeline that turns an array's bytes into stored bytes.
 *
 * A spec is an ordered list of stages; encoding runs them from left to right, decoding from
 * right to left.  It says what the stored bytes are, never where or by what they are made.
 *
 *     spec   = stage { "|" stage }
 *     stage  = name [ "(" value-or-option { "," option } ")" ]
 *     option = name "=" value
 *
 * "shuffle(4)|zstd(level=3)|crc32c": shuffle the bytes of 4-byte elements, compress, append a
 * checksum.  Spaces around the marks are ignored, names match in any case.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_SPEC_H
#define LADE_SPEC_H

#include <lade/codec.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Never changes once it is made; counted; safe to share between threads. */
typedef struct lade_spec lade_spec;

#define LADE_STAGES_MAX 16

/*
 * Makes a spec from its text.  'engine' knows the caller's own algorithms (the spec must not
 * outlive it then); NULL knows only ours.
 * Fails: LADE_E_SPEC with err->offset at the bad character, value or stage; LADE_E_NOT_FOUND for an
 *        unknown algorithm or option, naming the known ones; LADE_E_DTYPE and LADE_E_VALUE for a
 *        type or a value that the stage cannot use; LADE_E_NOMEM
 * Owns:  the caller, until lade_spec_unref()
 */
LADE_API lade_status lade_spec_parse(const lade_engine *engine, const char *text,
                                     lade_spec **out, lade_error *err);

/* The same from stages that the caller filled in; they are copied and checked. */
LADE_API lade_status lade_spec_new(const lade_stage *stages, size_t count, lade_spec **out,
                                   lade_error *err);

/* Count up, and down; the last takes the spec with it.  lade_spec_ref() returns its argument, as
 * one that may be counted down. */
LADE_API lade_spec *lade_spec_ref(const lade_spec *spec);
LADE_API void lade_spec_unref(lade_spec *spec); /* NULL is fine */

/* The stages, in the order of encoding.  Valid as long as the spec. */
LADE_API size_t lade_spec_count(const lade_spec *spec);
LADE_API const lade_stage *lade_spec_stage(const lade_spec *spec, size_t index);

/*
 * The canonical text: defaults left out except levels, one spelling for each value.  Equal specs
 * give equal texts.  Valid as long as the spec.
 */
LADE_API const char *lade_spec_text(const lade_spec *spec);

/*
 * The short binary form (docs/format/spec.md).  Equal specs give equal bytes.
 * lade_spec_bytes(): the bytes, valid as long as the spec.
 * lade_spec_from_bytes(): reads all of 'size' bytes; hostile input is LADE_E_TRUNCATED,
 * LADE_E_VERSION, LADE_E_CORRUPT, or fails as in lade_spec_parse(), always with the offset.
 */
LADE_API const void *lade_spec_bytes(const lade_spec *spec, size_t *size);
LADE_API lade_status lade_spec_from_bytes(const lade_engine *engine, const void *data,
                                          size_t size, lade_spec **out, lade_error *err);

/* True when both have the same stages with the same options' values. */
LADE_API bool lade_spec_equal(const lade_spec *a, const lade_spec *b);

/*
 * The most bytes that 'size' encoded bytes can decode to, by the limits of the algorithms
 * (lade_algorithm.ratio_max, decoded_max); UINT64_MAX where one has none.  A larger claim is
 * wrong whatever the bytes are.
 */
LADE_API uint64_t lade_spec_decoded_max(const lade_spec *spec, uint64_t size);

/* True when a stage is lossy: always (bitround), or with its options (delta of reals). */
LADE_API bool lade_spec_is_lossy(const lade_spec *spec);

/*
 * The most bytes that encoding 'size' bytes with this spec can give: the stages' bounds, one
 * after the other; each is non-decreasing, so that the chain is a bound too.  SIZE_MAX: a stage
 * cannot hold so much.
 */
LADE_API size_t lade_spec_bound(const lade_spec *spec, size_t size);

#ifdef __cplusplus
}
#endif

#endif
