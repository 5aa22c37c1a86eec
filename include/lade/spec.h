/*
 * spec.h: specs: the pipelines that turn an array's bytes into stored bytes.
 *
 *	lade_spec *pipeline;
 *	if (lade_spec_parse(NULL, "shuffle(4)|zstd(level=3)|crc32c", &pipeline, &err))
 *		return fprintf(stderr, "%s\n", err.message);
 *	printf("%s: %zu bytes at most\n", lade_spec_text(pipeline),
 *	       lade_spec_bound(pipeline, sizeof field));
 *	lade_spec_unref(pipeline);
 *
 * This spec shuffles the bytes of 4-byte elements, compresses them, and appends a checksum.
 * Encoding runs the stages from left to right, decoding from right to left.  A spec says what the
 * stored bytes are, not where they are or what makes them.
 *
 *     spec   = stage { "|" stage }
 *     stage  = name [ "(" value-or-option { "," option } ")" ]
 *     option = name "=" value
 *
 * Spaces between these parts are ignored.  Names match in any case.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_SPEC_H
#define LADE_SPEC_H

#include <lade/codec.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Immutable and reference-counted; any number of threads may share one. */
typedef struct lade_spec lade_spec;

#define LADE_STAGES_MAX 16

/*
 * Makes a spec from its text.  With 'engine' NULL, only the library's algorithms are known.  With
 * an engine, those that were added to it are known too: free such a spec before the engine.
 *
 * Fails: LADE_E_SPEC (err->offset is the bad character, value or stage); LADE_E_NOT_FOUND for an
 *        unknown algorithm or option (the message lists the known ones); LADE_E_DTYPE and
 *        LADE_E_VALUE for a type or value that the stage cannot use; LADE_E_NOMEM
 * Owns:  the caller, until lade_spec_unref()
 */
LADE_API lade_status lade_spec_parse(const lade_engine *engine, const char *text,
                                     lade_spec **out, lade_error *err);

/* Like lade_spec_parse(), but takes stages that the caller filled in.  They are checked and
 * copied. */
LADE_API lade_status lade_spec_new(const lade_stage *stages, size_t count, lade_spec **out,
                                   lade_error *err);

/* Adds or drops a reference.  Dropping the last one frees the spec.  lade_spec_ref() returns its
 * argument, without const. */
LADE_API lade_spec *lade_spec_ref(const lade_spec *spec);
LADE_API void lade_spec_unref(lade_spec *spec); /* NULL is fine */

/* The number of stages, and one of them, in the order of encoding.  Valid as long as the spec. */
LADE_API size_t lade_spec_count(const lade_spec *spec);
LADE_API const lade_stage *lade_spec_stage(const lade_spec *spec, size_t index);

/*
 * The canonical text: it leaves out defaults except levels, and has one spelling for each value.
 * Equal specs have equal texts.  Valid as long as the spec.
 */
LADE_API const char *lade_spec_text(const lade_spec *spec);

/*
 * The short binary form (docs/format/spec.md).  Equal specs have equal bytes.
 *
 * lade_spec_bytes() returns the bytes, valid as long as the spec.
 * lade_spec_from_bytes() reads exactly 'size' bytes; hostile input is fine.
 *
 * Fails: LADE_E_TRUNCATED, LADE_E_VERSION, LADE_E_CORRUPT, and as lade_spec_parse(), always with
 *        the offset
 */
LADE_API const void *lade_spec_bytes(const lade_spec *spec, size_t *size);
LADE_API lade_status lade_spec_from_bytes(const lade_engine *engine, const void *data,
                                          size_t size, lade_spec **out, lade_error *err);

/* True if both specs have the same stages with the same option values. */
LADE_API bool lade_spec_equal(const lade_spec *a, const lade_spec *b);

/*
 * The most bytes that 'size' encoded bytes can decode to, from the limits of the algorithms
 * (ratio_max and decoded_max of lade_algorithm).  UINT64_MAX if an algorithm has no limit.  A
 * larger claim is wrong, whatever the bytes are.
 */
LADE_API uint64_t lade_spec_decoded_max(const lade_spec *spec, uint64_t size);

/* True if a stage is lossy: always (bitround), or with these options (delta of floats). */
LADE_API bool lade_spec_is_lossy(const lade_spec *spec);

/*
 * The most bytes that encoding 'size' bytes can give.  SIZE_MAX if a stage cannot hold that many.
 *
 * It applies the bounds of the stages one after the other.  Each bound never decreases as the size
 * grows, so the chain is a bound too.
 */
LADE_API size_t lade_spec_bound(const lade_spec *spec, size_t size);

#ifdef __cplusplus
}
#endif

#endif
