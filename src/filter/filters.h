/*
 * filters.h: the records of the library's own filters, and what they share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_FILTER_FILTERS_H
#define LADE_FILTER_FILTERS_H

#include "base/set.h"
#include "base/support.h"

#include <lade/codec.h>

#define LADE__FILTERS(X) \
	X(shuffle)       \
	X(bitshuffle)    \
	X(delta)         \
	X(zigzag)        \
	X(split)         \
	X(scaleoffset)   \
	X(bitround)      \
	X(packbits)      \
	X(quantize)      \
	X(fixedscaleoffset) \
	X(astype)        \
	X(byteswap)      \
	X(cast)          \
	X(packints)      \
	X(levels)

#define LADE_X(name)                                         \
	extern const lade_algorithm lade__filter_##name;            \
	extern const lade_implementation lade__filter_##name##_encode; \
	extern const lade_implementation lade__filter_##name##_decode;
LADE__FILTERS(LADE_X)
#undef LADE_X

/* On devices (gpu.c). */
#define LADE__FILTERS_GPU(X) \
	X(bitshuffle) \
	X(shuffle) \
	X(split) \
	X(zigzag) \
	X(byteswap) \
	X(delta)

/* On devices, decoding alone. */
#define LADE__FILTERS_GPU_DECODE(X) \
	X(packints) \
	X(levels) \
	X(cast)

#define LADE_X(name) extern const lade__gpu_implementation lade__filter_##name##_encode_gpu;
LADE__FILTERS_GPU(LADE_X)
#undef LADE_X
#define LADE_X(name) extern const lade__gpu_implementation lade__filter_##name##_decode_gpu;
LADE__FILTERS_GPU(LADE_X)
LADE__FILTERS_GPU_DECODE(LADE_X)
#undef LADE_X

/* And of the codec "copy", which is a filter that does nothing. */
extern const lade__gpu_implementation lade__copy_encode_gpu;
extern const lade__gpu_implementation lade__copy_decode_gpu;

/* ---- records ------------------------------------------------------------------------------ */

typedef lade_status lade__tile_fn(const lade_run *run, const lade_elements *tile, lade_error *err);

/* Bytes an element on both sides; the ctx of a filter's algorithm, so that the functions below
 * can be shared. */
typedef struct lade__filter_info {
	void (*sizes)(const lade_stage *stage, size_t *decoded, size_t *encoded);
	bool partial; /* takes a partial last element; both sides have one size then */
} lade__filter_info;

/* The encoded size, with a last partial element (which is refused when the data come) rounded up:
 * never decreases, and is exact for whole elements, which all become elements of one size. */
size_t lade__filter_bound(const lade_stage *stage, size_t size);

lade_status lade__filter_decoded_size(const lade_stage *stage, const void *src, size_t size,
                                      uint64_t *decoded, lade_error *err);

double lade__filter_cost(void *ctx, const lade_workload *workload);

/* Filters make at most this many bytes of one: no type has more, and packbits makes 8. */
#define LADE__FILTER_RATIO 16

/* An algorithm of a fixed size and its implementations; 'size_fn' and 'partly' are the fields of
 * lade__filter_info, 'enc_fn' and 'dec_fn' are tile functions.  The second macro is for those
 * whose options say whether they are lossy. */
#define LADE__TILE_FILTER(sym, number, what, about, table, check_fn, size_fn, partly, enc_kind, \
                          enc_fn, dec_kind, dec_fn)                                         \
	LADE__TILE_FILTER_MAYBE_LOSSY(sym, number, what, NULL, about, table, check_fn, size_fn, \
	                              partly, enc_kind, enc_fn, dec_kind, dec_fn)

#define LADE__TILE_FILTER_MAYBE_LOSSY(sym, number, what, lossy_fn, about, table, check_fn,  \
                                      size_fn, partly, enc_kind, enc_fn, dec_kind, dec_fn)  \
	static const lade__filter_info sym##_info = {size_fn, partly};                      \
	const lade_algorithm lade__filter_##sym = {                                         \
		.struct_size = sizeof(lade_algorithm),                                      \
		.name = #sym,                                                               \
		.id = number,                                                               \
		.kind = LADE_STAGE_FILTER,                                                  \
		.flags = LADE_ALGORITHM_FIXED_SIZE | (what),                                \
		.options = table,                                                           \
		.option_count = sizeof(table) / sizeof(table)[0],                           \
		.doc = about,                                                               \
		.ctx = (void *)(uintptr_t)&sym##_info,                                      \
		.check = check_fn,                                                          \
		.bound = lade__filter_bound,                                                \
		.decoded_size = lade__filter_decoded_size,                                  \
		.is_lossy = lossy_fn,                                                       \
		.ratio_max = LADE__FILTER_RATIO,                                            \
	};                                                                                  \
	LADE__TILE_IMPLEMENTATION(sym, encode, LADE_ENCODE, size_fn, enc_kind, enc_fn)      \
	LADE__TILE_IMPLEMENTATION(sym, decode, LADE_DECODE, size_fn, dec_kind, dec_fn)

#define LADE__TILE_IMPLEMENTATION(sym, way, dir, size_fn, way_kind, fn)                     \
	const lade_implementation lade__filter_##sym##_##way = {                            \
		.struct_size = sizeof(lade_implementation),                                 \
		.name = #sym "/lade",                                                       \
		.algorithm = #sym,                                                          \
		.direction = dir,                                                           \
		.priority = LADE_PRIORITY_BUILTIN,                                          \
		.cost = lade__filter_cost,                                                  \
		.tile = &(const lade_tile_ops){.struct_size = sizeof(lade_tile_ops),        \
		                               .kind = way_kind,                            \
		                               .sizes = size_fn,                            \
		                               .run = fn},                                  \
	};

/* ---- options ------------------------------------------------------------------------------ */

/* What the options of packints say. */
typedef struct lade__packing {
	size_t size;          /* bytes of an element */
	unsigned first, bits; /* of an element */
	unsigned extend;      /* bits above them that take the sign; 0: none */
	size_t front, back;   /* bytes around the bits */
	bool is_bool;
} lade__packing;

lade__packing lade__packing_of(const lade_stage *stage);

/* Of levels, when decoding: a level is 'scale' * number + 'min', at most 'max'. */
typedef struct lade__leveling {
	double min, scale, max;
} lade__leveling;

lade__leveling lade__leveling_of(const lade_stage *stage);

/* Whether decoding is exact and cannot fail: to a wider type of the same class, or from unsigned
 * integers to wider signed ones, without numbers that stand for others. */
bool lade__cast_widens(const lade_stage *stage);

/* ---- checks ------------------------------------------------------------------------------- */

/* The type in option 'index', or the one in option 0 where it is left out. */
lade_dtype lade__filter_dtype(const lade_stage *stage, size_t index);

/*
 * Refuses a type whose class is not among 'classes' ("iuf"), and big-endian ones, saying what to do
 * about them.  Fails: LADE_E_DTYPE
 */
lade_status lade__filter_check_dtype(const lade_stage *stage, size_t index, const char *classes,
                                     lade_error *err);

/* Refuses a decoded side of 'total' bytes that ends with a partial element.  Fails: LADE_E_DTYPE */
lade_status lade__filter_whole(const lade_stage *stage, size_t total, lade_error *err);

/* The room's own, for the engine. */
extern const lade__set lade__filters;

#endif
