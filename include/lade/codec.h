/*
 * codec.h: algorithms and the implementations that run them, ours and yours.
 *
 * An algorithm is what gets written down: a name, options, sizes.  An implementation is what
 * runs: one algorithm, one direction, one place, with a priority and a cost.  The library's
 * own stand in the same records as a caller's (docs/adding-a-codec.md walks through one).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CODEC_H
#define LADE_CODEC_H

#include <lade/cpu.h>
#include <lade/dtype.h>
#include <lade/memory.h>
#include <lade/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lade_engine lade_engine;
typedef struct lade_dict lade_dict;
typedef struct lade_worker lade_worker;
typedef struct lade_algorithm lade_algorithm;
typedef struct lade_stage lade_stage;

/* What a stage of a pipeline does. */
typedef enum lade_stage_kind {
	LADE_STAGE_CODEC = 0,    /* bytes to fewer bytes */
	LADE_STAGE_FILTER = 1,   /* elements to elements */
	LADE_STAGE_CHECKSUM = 2, /* bytes to the same bytes with a checksum at one end */
} lade_stage_kind;

typedef enum lade_direction {
	LADE_ENCODE = 0,
	LADE_DECODE = 1,
} lade_direction;

/* ---- options ------------------------------------------------------------------------ */

typedef enum lade_option_type {
	LADE_OPTION_INT = 0,   /* value.i, from min to max */
	LADE_OPTION_FLOAT = 1, /* value.f, finite */
	LADE_OPTION_BOOL = 2,  /* value.i, 0 or 1; written true, false */
	LADE_OPTION_ENUM = 3,  /* value.i, an index of 'names' */
	LADE_OPTION_DTYPE = 4, /* value.i, a lade_dtype */
} lade_option_type;

typedef union lade_value {
	int64_t i;
	double f;
} lade_value;

/* One option of an algorithm.  The first option of a list may be given without its name. */
typedef struct lade_option {
	const char *name;
	lade_option_type type;
	bool required;            /* no default: the text must give it */
	bool always;              /* written even where it is the default (levels) */
	lade_value fallback;      /* the default */
	int64_t min, max;         /* of an INT, inclusive */
	const char *const *names; /* of an ENUM, ended by NULL */
	const char *doc;          /* half a line */
} lade_option;

#define LADE_OPTIONS_MAX 8

/* An algorithm with its options' values, in the order of 'algorithm->options'. */
struct lade_stage {
	const lade_algorithm *algorithm;
	lade_value option[LADE_OPTIONS_MAX];
};

/* ---- algorithms --------------------------------------------------------------------- */

enum {
	/* Decoding does not give back what was encoded, only something near it, whatever the
	 * options are (where they decide, is_lossy() tells). */
	LADE_ALGORITHM_LOSSY = 1,
	/* encoded size == bound(size), always; decoded_size() looks at the size only. */
	LADE_ALGORITHM_FIXED_SIZE = 2,
	/* Decodes a range without decoding the rest (the implementations have run_range). */
	LADE_ALGORITHM_RANGES = 4,
};

struct lade_algorithm {
	size_t struct_size; /* sizeof(lade_algorithm) */
	const char *name;   /* [a-z][a-z0-9_-]*, at most 31 characters; matched in any case */
	uint16_t id;        /* in the binary form of a spec; 0: the name is written instead */
	lade_stage_kind kind;
	uint32_t flags;
	const lade_option *options; /* at most LADE_OPTIONS_MAX */
	size_t option_count;
	const char *doc; /* one line: what it is, and the document that defines its bytes */
	void *ctx;       /* yours; reached as stage->algorithm->ctx */

	/* Checks what the options' own limits cannot say.  NULL: nothing to check. */
	lade_status (*check)(const lade_stage *stage, lade_error *err);

	/* The most bytes that encoding 'size' bytes can give; SIZE_MAX if 'size' is more than the
	 * format can hold.  Never decreases as 'size' grows.  The definition proves it in a
	 * comment. */
	size_t (*bound)(const lade_stage *stage, size_t size);

	/*
	 * The size of what 'src' decodes to, without decoding it.  'src' is NULL, or lies on the
	 * host; with LADE_ALGORITHM_FIXED_SIZE it is not read.  The answer is the source's claim:
	 * hostile input may claim anything.
	 * Fails: LADE_E_UNKNOWN_SIZE where the format does not tell; LADE_E_CORRUPT,
	 * LADE_E_TRUNCATED
	 */
	lade_status (*decoded_size)(const lade_stage *stage, const void *src, size_t size,
	                            uint64_t *decoded, lade_error *err);

	/* Whether there is any input that this stage does not give back to the bit.  NULL:
	 * LADE_ALGORITHM_LOSSY says it. */
	bool (*is_lossy)(const lade_stage *stage);

	/* The bytes at the start of 'src' that decoded_size() reads at most, so that no more of a
	 * source on a device need be at hand; 0: it may read all of them. */
	size_t header_size;

	/* n encoded bytes decode to at most (n + 8) * ratio_max bytes; 0: no limit is known. */
	uint32_t ratio_max;

	/* Bytes of the decoded size in front of bare data (lade/bare.h): 4, or 8, also for 0. */
	uint32_t size_field;

	/* The most bytes that a chunk decodes to; 0: no such limit. */
	uint64_t decoded_max;

	/* Of a codec: the texts of stages that lade_suggest() tries, "zstd(level=3)", ended by
	 * NULL; each behind several filters.  Where the first option is a type (LADE_OPTION_DTYPE)
	 * they are names, which get the elements' type and no filter.  NULL: none. */
	const char *const *suggest;
};

/* ---- implementations ---------------------------------------------------------------- */

/* What an implementation's functions are called with. */
typedef struct lade_run {
	const lade_stage *stage;
	void *ctx;             /* the implementation's */
	void *state;           /* what state_new gave on this worker; NULL without it */
	lade_worker *worker;   /* for lade_worker_scratch() */
	const lade_dict *dict; /* the caller's dictionary, or NULL */
	lade_cpu cpu;          /* the highest instruction set to use; never AUTO */
} lade_run;

/* What a cost function is asked about: one stage of one call. */
typedef struct lade_workload {
	const lade_stage *stage;
	lade_direction direction;
	size_t count;       /* chunks */
	uint64_t total;     /* decoded bytes of all of them, as far as known */
	size_t largest;     /* decoded bytes of the largest */
	lade_place src, dst; /* where the first chunk's source and destination lie */
	unsigned threads;   /* host threads that the call may use */
	bool has_dict;
	bool strict;        /* LADE_BATCH_STRICT */
	lade_cpu cpu;
} lade_workload;

/*
 * What an implementation of a codec does, or of a filter whose sizes are not fixed.  Both spans are
 * host memory, of any alignment, and do not overlap.  Sources are hostile: the functions read
 * nothing outside 'src' and write nothing outside 'dst'.  Zero-initialise, set struct_size and run,
 * then what is wanted.
 * Fail: LADE_E_NOSPACE when 'dst' is too small; LADE_E_CORRUPT and others, with the offset of the
 *       bad byte in 'src'
 */
typedef struct lade_codec_ops {
	size_t struct_size; /* sizeof(lade_codec_ops) */

	/* Encodes or decodes all of 'src' into 'dst' and stores the count of bytes written. */
	lade_status (*run)(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
	                   lade_error *err);

	/*
	 * Optional, decoding: writes bytes [off, off + dst.size) of the result to 'dst'.  The range
	 * has been checked against the decoded size where the format tells it.
	 */
	lade_status (*run_range)(const lade_run *run, lade_cspan src, uint64_t off, lade_span dst,
	                         lade_error *err);

	/*
	 * Optional, decoding: independent parts, so that several threads share one item.  'parts'
	 * checks the source's structure, stores the decoded size, and gives the number of parts
	 * (0 or 1: use 'run'); 'run_part' decodes one to its place in 'dst', the whole destination,
	 * of at least that size.  Both or neither.
	 */
	lade_status (*parts)(const lade_run *run, lade_cspan src, size_t *part_count,
	                     size_t *decoded_size, lade_error *err);
	lade_status (*run_part)(const lade_run *run, lade_cspan src, size_t part, lade_span dst,
	                        lade_error *err);
} lade_codec_ops;

/* What a filter's tiles are; see lade_tile_ops. */
typedef enum lade_tile {
	LADE_TILE_IN_ORDER = 1, /* a tile in, the same elements out, in order */
	LADE_TILE_GATHER = 2,   /* the whole input, a tile out */
	LADE_TILE_SCATTER = 3,  /* a tile in, into the whole output */
} lade_tile;

/* What a filter carries from tile to tile of one item; zeroed before the first. */
typedef struct lade_carry {
	uint64_t word[4];
} lade_carry;

/* The elements of a tile. */
typedef struct lade_elements {
	const void *src;
	void *dst;
	size_t elem_off;   /* the first one, among all of the item */
	size_t elem_count;
	size_t total;      /* bytes of the whole decoded side */
	lade_carry *carry;
} lade_elements;

/*
 * What an implementation of a filter of a fixed size does: one tile of the work, so that a chain of
 * filters passes over the data once, in the cache.  IN_ORDER: 'src' and 'dst' point at the tile,
 * may be equal where both sides have elements of one size, and do not overlap otherwise.  GATHER:
 * 'src' is the whole input, 'dst' the tile.  SCATTER: 'src' is the tile, 'dst' the whole output.  A
 * last partial element belongs to the last tile.
 */
typedef struct lade_tile_ops {
	size_t struct_size; /* sizeof(lade_tile_ops) */
	lade_tile kind;

	/* Bytes an element on the decoded and the encoded side. */
	void (*sizes)(const lade_stage *stage, size_t *decoded, size_t *encoded);

	lade_status (*run)(const lade_run *run, const lade_elements *tile, lade_error *err);
} lade_tile_ops;

/* What an implementation of a checksum does, in both directions. */
typedef struct lade_checksum_ops {
	size_t struct_size; /* sizeof(lade_checksum_ops) */

	/* Stores the checksum of 'src' in the low bits of '*sum'. */
	lade_status (*run)(const lade_run *run, lade_cspan src, uint64_t *sum, lade_error *err);
} lade_checksum_ops;

#define LADE_PRIORITY_BUILTIN 0

/*
 * An implementation: whose it is, when it is chosen, and one table of what it does.  It runs on the
 * host.  All functions may be called from several threads at once, each with another worker and
 * state.
 */
typedef struct lade_implementation {
	size_t struct_size;    /* sizeof(lade_implementation) */
	const char *name;      /* "zstd/libzstd": the algorithm, a slash, what does the work */
	const char *algorithm; /* the algorithm's name */
	lade_direction direction;
	int priority;    /* the highest that accepts the work wins; among equals the cheapest */
	void *ctx;

	/* Nanoseconds expected for the whole workload; a negative number refuses it.  NULL: 1 a
	 * byte. */
	double (*cost)(void *ctx, const lade_workload *workload);

	/* What a worker keeps between calls (codec contexts).  Both or neither. */
	void *(*state_new)(void *ctx, const lade_allocator *host);
	void (*state_free)(void *ctx, void *state);

	/* One of them; the others are NULL. */
	const lade_codec_ops *codec;
	const lade_tile_ops *tile;         /* the algorithm has LADE_ALGORITHM_FIXED_SIZE */
	const lade_checksum_ops *checksum; /* the algorithm is a checksum */
} lade_implementation;

/*
 * Adds a caller's algorithm or implementation to an engine.  The name of an algorithm must be
 * new there; an implementation's algorithm must be known.  Not while other threads use the
 * engine.
 * Fails: LADE_E_ARG with the field that is wrong, LADE_E_NOMEM
 * Owns:  the record and an implementation's table are copied; strings, options and what 'ctx'
 *        points to stay the caller's and outlive the engine
 */
LADE_API lade_status lade_engine_add_algorithm(lade_engine *engine,
                                               const lade_algorithm *algorithm,
                                               lade_error *err);
LADE_API lade_status lade_engine_add_implementation(lade_engine *engine,
                                                    const lade_implementation *implementation,
                                                    lade_error *err);

/* The algorithms that an engine (NULL: any engine) knows, ours first; NULL past the last. */
LADE_API const lade_algorithm *lade_engine_algorithm(const lade_engine *engine, size_t index);

/* Finds one by name, in any case; NULL when there is none. */
LADE_API const lade_algorithm *lade_engine_find(const lade_engine *engine, const char *name);

/*
 * Scratch memory of a worker for the time of one call of an implementation: at least 'size'
 * bytes, 64-byte aligned, contents unspecified.  'slot' is 0 or 1; asking again for a slot
 * gives the same block, or a larger one in its stead.  NULL: out of memory.
 */
LADE_API void *lade_worker_scratch(lade_worker *worker, unsigned slot, size_t size);

/* ---- dictionaries ------------------------------------------------------------------- */

/*
 * A dictionary for codecs that take one (lz4, zstd, deflate, zlib).  The bytes are copied.
 * May be used by several engines and threads at once; must outlive the calls that use it.
 * Fails: LADE_E_ARG for an empty one, LADE_E_NOMEM
 */
LADE_API lade_status lade_dict_new(const void *data, size_t size, lade_dict **out,
                                   lade_error *err);
LADE_API void lade_dict_free(lade_dict *dict);
LADE_API lade_cspan lade_dict_data(const lade_dict *dict);

/*
 * For implementations: the form of 'dict' prepared under ('key', 'variant'), made by 'make' the
 * first time (one thread makes it, others wait) and freed with the dictionary.  NULL when
 * 'make' gave NULL.
 */
LADE_API const void *lade_dict_prepared(const lade_dict *dict, const void *key, int variant,
                                        void *(*make)(lade_cspan data, int variant),
                                        void (*free_fn)(void *prepared));

#ifdef __cplusplus
}
#endif

#endif
