/*
 * codec.h: algorithms, the implementations that run them, and dictionaries.  Read it to list the
 * library's algorithms or to add your own.
 *
 *	const lade_algorithm *algorithm;
 *	for (size_t i = 0; (algorithm = lade_engine_algorithm(engine, i)) != NULL; i++)
 *		printf("%s: %s\n", algorithm->name, algorithm->doc);
 *
 * An algorithm is what specs name: a name, options, sizes.  An implementation is what runs: one
 * algorithm in one direction, with a priority and a cost.  The library's own use the same structs
 * as yours.  docs/adding-a-codec.md adds a codec step by step.
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

/* What a stage of a spec does. */
typedef enum lade_stage_kind {
	LADE_STAGE_CODEC = 0,    /* bytes to fewer bytes */
	LADE_STAGE_FILTER = 1,   /* elements to elements */
	LADE_STAGE_CHECKSUM = 2, /* adds a checksum at one end of the bytes */
} lade_stage_kind;

typedef enum lade_direction {
	LADE_ENCODE = 0,
	LADE_DECODE = 1,
} lade_direction;

/* ---- options ------------------------------------------------------------------------ */

typedef enum lade_option_type {
	LADE_OPTION_INT = 0,   /* value.i, from min to max */
	LADE_OPTION_FLOAT = 1, /* value.f, finite */
	LADE_OPTION_BOOL = 2,  /* value.i, 0 or 1; in text: false, true */
	LADE_OPTION_ENUM = 3,  /* value.i, an index into 'names' */
	LADE_OPTION_DTYPE = 4, /* value.i, a lade_dtype */
} lade_option_type;

typedef union lade_value {
	int64_t i;
	double f;
} lade_value;

/* One option of an algorithm.  In text, the first option of a list needs no name. */
typedef struct lade_option {
	const char *name;
	lade_option_type type;
	bool required;            /* no default: the text must give it */
	bool always;              /* written even if it is the default (levels) */
	lade_value fallback;      /* the default */
	int64_t min, max;         /* INT: the limits, inclusive */
	const char *const *names; /* ENUM: the names, then NULL */
	const char *doc;          /* a few words */
} lade_option;

#define LADE_OPTIONS_MAX 8

/* An algorithm with the values of its options, in the order of 'algorithm->options'. */
struct lade_stage {
	const lade_algorithm *algorithm;
	lade_value option[LADE_OPTIONS_MAX];
};

/* ---- algorithms --------------------------------------------------------------------- */

enum {
	/* Decoding returns something near what was encoded, not the same, for all options.  If the
	 * options decide, define is_lossy() instead. */
	LADE_ALGORITHM_LOSSY = 1,
	/* The encoded size is always bound(size), and decoded_size() uses the size only. */
	LADE_ALGORITHM_FIXED_SIZE = 2,
	/* A range can be decoded without the rest: implementations have run_range. */
	LADE_ALGORITHM_RANGES = 4,
};

struct lade_algorithm {
	size_t struct_size; /* sizeof(lade_algorithm) */
	const char *name;   /* [a-z][a-z0-9_-]*, at most 31 characters; matched in any case */
	uint16_t id;        /* in a spec's binary form; 0: the name is stored instead */
	lade_stage_kind kind;
	uint32_t flags;
	const lade_option *options; /* at most LADE_OPTIONS_MAX */
	size_t option_count;
	const char *doc; /* one line: what it is, and the document that defines its bytes */
	void *ctx;       /* yours: stage->algorithm->ctx */

	/* Checks what the limits of the options cannot express.  NULL: nothing to check. */
	lade_status (*check)(const lade_stage *stage, lade_error *err);

	/* The most bytes that encoding 'size' bytes can give; SIZE_MAX if the format cannot hold
	 * that many.  It never decreases as 'size' grows.  Prove it in a comment. */
	size_t (*bound)(const lade_stage *stage, size_t size);

	/*
	 * Stores the size that 'src' claims to decode to, without decoding it.  'src' is NULL or in
	 * host memory; with LADE_ALGORITHM_FIXED_SIZE do not read it.  Hostile input may claim
	 * anything.
	 * Fails: LADE_E_UNKNOWN_SIZE if the format does not store it; LADE_E_CORRUPT,
	 * LADE_E_TRUNCATED
	 */
	lade_status (*decoded_size)(const lade_stage *stage, const void *src, size_t size,
	                            uint64_t *decoded, lade_error *err);

	/* True if some input does not come back bit by bit.  NULL: LADE_ALGORITHM_LOSSY decides. */
	bool (*is_lossy)(const lade_stage *stage);

	/* The most bytes at the start of 'src' that decoded_size() reads; only these are copied
	 * from a device.  0: it may read all of them. */
	size_t header_size;

	/* n encoded bytes decode to at most (n + 8) * ratio_max bytes; 0: no known limit. */
	uint32_t ratio_max;

	/* Bytes of the size field in front of bare data (bare.h): 4 or 8; 0 means 8. */
	uint32_t size_field;

	/* The most bytes that a chunk can decode to; 0: no limit. */
	uint64_t decoded_max;

	/* Codecs: the stages that lade_suggest() tries after several filters, such as
	 * "zstd(level=3)", then NULL.  If the first option is a type (LADE_OPTION_DTYPE), these are
	 * names: they get the elements' type and no filter.  NULL: none. */
	const char *const *suggest;
};

/* ---- implementations ---------------------------------------------------------------- */

/* What the functions of an implementation get. */
typedef struct lade_run {
	const lade_stage *stage;
	void *ctx;             /* the implementation's */
	void *state;           /* what state_new() returned for this worker; NULL without it */
	lade_worker *worker;   /* for lade_worker_scratch() */
	const lade_dict *dict; /* the caller's dictionary, or NULL */
	lade_cpu cpu;          /* the highest instruction set to use; never AUTO */
} lade_run;

/* One stage of one call, for a cost function. */
typedef struct lade_workload {
	const lade_stage *stage;
	lade_direction direction;
	size_t count;       /* chunks */
	uint64_t total;     /* decoded bytes of all chunks, as far as known */
	size_t largest;     /* decoded bytes of the largest chunk */
	lade_place src, dst; /* of the first chunk */
	unsigned threads;   /* host threads that the call may use */
	bool has_dict;
	bool strict;        /* LADE_BATCH_STRICT */
	lade_cpu cpu;
} lade_workload;

/*
 * Where the pieces of a result go.  place() returns where byte 'off' is wanted, and in '*size' how
 * many bytes from there on are contiguous; NULL: as many are not wanted.  It may be NULL itself:
 * then, and for pieces in scratch memory, take() copies bytes to their places.
 */
typedef struct lade_pieces {
	void *ctx;
	size_t first, end;
	void *(*place)(void *ctx, size_t off, size_t *size);
	void (*take)(void *ctx, size_t off, const void *data, size_t size);
	bool large; /* what the caller reads in all is larger than caches: write past them */
} lade_pieces;

/*
 * The functions of a codec, or of a filter without LADE_ALGORITHM_FIXED_SIZE.  Zero-initialise, set
 * struct_size and run, then the others you have.
 *
 * Both spans are host memory of any alignment and do not overlap.  Sources are hostile: read
 * nothing outside 'src', and write nothing outside 'dst'.
 *
 * Fail with: LADE_E_NOSPACE if 'dst' is too small; LADE_E_CORRUPT and others, with the offset of
 *            the bad byte in 'src'
 */
typedef struct lade_codec_ops {
	size_t struct_size; /* sizeof(lade_codec_ops) */

	/* Encodes or decodes all of 'src' into 'dst' and stores the number of bytes written. */
	lade_status (*run)(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
	                   lade_error *err);

	/*
	 * Optional, decoding: writes bytes [off, off + dst.size) of the result to 'dst'.  If the
	 * format stores the decoded size, the caller has checked the range against it.
	 */
	lade_status (*run_range)(const lade_run *run, lade_cspan src, uint64_t off, lade_span dst,
	                         lade_error *err);

	/*
	 * Optional, decoding: independent parts, so that several threads can share one item.
	 * 'parts' checks the structure of the source and stores its decoded size and the number of
	 * parts (0 or 1: 'run' is used).  'run_part' decodes one part to its place in 'dst', which
	 * is the whole destination of at least that size.  Set both or neither.
	 */
	lade_status (*parts)(const lade_run *run, lade_cspan src, size_t *part_count,
	                     size_t *decoded_size, lade_error *err);
	lade_status (*run_part)(const lade_run *run, lade_cspan src, size_t part, lade_span dst,
	                        lade_error *err);

	/*
	 * Optional, decoding: gives the result to 'to', from its first byte to its last, for
	 * layouts.  What is outside [to->first, to->end) need not be decoded.  The source says its
	 * decoded size, which the caller has checked.
	 */
	lade_status (*run_pieces)(const lade_run *run, lade_cspan src, const lade_pieces *to,
	                          lade_error *err);
} lade_codec_ops;

/* What a filter's run() gets: see lade_tile_ops. */
typedef enum lade_tile {
	LADE_TILE_IN_ORDER = 1, /* a tile in, the same elements out, in order */
	LADE_TILE_GATHER = 2,   /* the whole input, a tile out */
	LADE_TILE_SCATTER = 3,  /* a tile in, into the whole output */
} lade_tile;

/* What a filter keeps from tile to tile of one item.  Zeros before the first tile. */
typedef struct lade_carry {
	uint64_t word[4];
} lade_carry;

/* The elements of a tile. */
typedef struct lade_elements {
	const void *src;
	void *dst;
	size_t elem_off;   /* index of the first one in the item */
	size_t elem_count;
	size_t total;      /* bytes of the item's whole decoded side */
	lade_carry *carry;
} lade_elements;

/*
 * The functions of a filter with LADE_ALGORITHM_FIXED_SIZE.  run() handles one tile, so that a
 * chain of filters makes one pass over the data, in the cache.
 *
 * IN_ORDER: 'src' and 'dst' are the tile.  They may be equal if both sides have elements of one
 * size, and do not overlap otherwise.
 * GATHER: 'src' is the whole input, 'dst' the tile.
 * SCATTER: 'src' is the tile, 'dst' the whole output.
 *
 * A partial element at the end belongs to the last tile.
 */
typedef struct lade_tile_ops {
	size_t struct_size; /* sizeof(lade_tile_ops) */
	lade_tile kind;

	/* Stores the bytes of an element on the decoded and on the encoded side. */
	void (*sizes)(const lade_stage *stage, size_t *decoded, size_t *encoded);

	lade_status (*run)(const lade_run *run, const lade_elements *tile, lade_error *err);
} lade_tile_ops;

/* The function of a checksum, for both directions. */
typedef struct lade_checksum_ops {
	size_t struct_size; /* sizeof(lade_checksum_ops) */

	/* Stores the checksum of 'src' in the low bits of '*sum'. */
	lade_status (*run)(const lade_run *run, lade_cspan src, uint64_t *sum, lade_error *err);
} lade_checksum_ops;

#define LADE_PRIORITY_BUILTIN 0

/*
 * An implementation of an algorithm in one direction: when it is chosen, and a table of functions.
 * It runs on the host.  All functions must allow calls from several threads at once; each thread
 * has its own worker and state.
 */
typedef struct lade_implementation {
	size_t struct_size;    /* sizeof(lade_implementation) */
	const char *name;      /* "zstd/libzstd": the algorithm and what does the work */
	const char *algorithm; /* the algorithm's name */
	lade_direction direction;
	int priority;    /* the highest that accepts wins; among equals, the cheapest */
	void *ctx;

	/* Returns the expected nanoseconds for the whole workload; a negative number refuses it.
	 * NULL: 1 ns a byte. */
	double (*cost)(void *ctx, const lade_workload *workload);

	/* Make and free what a worker keeps between calls, such as a codec context.  Set both or
	 * neither. */
	void *(*state_new)(void *ctx, const lade_allocator *host);
	void (*state_free)(void *ctx, void *state);

	/* Set one of these. */
	const lade_codec_ops *codec;
	const lade_tile_ops *tile;         /* with LADE_ALGORITHM_FIXED_SIZE */
	const lade_checksum_ops *checksum; /* for checksums */
} lade_implementation;

/*
 * Add an algorithm or an implementation of yours to an engine.  An algorithm needs a new name; an
 * implementation needs a known algorithm.
 *
 * Fails:   LADE_E_ARG (the message names the wrong field), LADE_E_NOMEM
 * Threads: no other thread may use the engine meanwhile
 * Owns:    the engine copies the struct and an implementation's table.  Strings, options and what
 *          'ctx' points to stay the caller's and must outlive the engine
 */
LADE_API lade_status lade_engine_add_algorithm(lade_engine *engine,
                                               const lade_algorithm *algorithm,
                                               lade_error *err);
LADE_API lade_status lade_engine_add_implementation(lade_engine *engine,
                                                    const lade_implementation *implementation,
                                                    lade_error *err);

/* Algorithm number 'index' that an engine knows, the library's own first; NULL past the last one.
 * With 'engine' NULL: the library's own. */
LADE_API const lade_algorithm *lade_engine_algorithm(const lade_engine *engine, size_t index);

/* The algorithm of that name, in any case; NULL if there is none. */
LADE_API const lade_algorithm *lade_engine_find(const lade_engine *engine, const char *name);

/*
 * For implementations: scratch memory during one call of run(): at least 'size' bytes, aligned to
 * 64 bytes, contents unspecified.  'slot' is 0 or 1.  A second request for a slot returns the same
 * block, or a larger one that replaces it.  NULL: out of memory.
 */
LADE_API void *lade_worker_scratch(lade_worker *worker, unsigned slot, size_t size);

/* ---- dictionaries ------------------------------------------------------------------- */

/*
 * Makes a dictionary for codecs that take one (lz4, zstd, deflate, zlib), from a copy of the bytes.
 *
 * Fails:   LADE_E_ARG if it is empty, LADE_E_NOMEM
 * Threads: several engines and threads may use it at once
 * Owns:    the caller; it must outlive the calls that use it
 */
LADE_API lade_status lade_dict_new(const void *data, size_t size, lade_dict **out,
                                   lade_error *err);
LADE_API void lade_dict_free(lade_dict *dict);
LADE_API lade_cspan lade_dict_data(const lade_dict *dict);

/*
 * For implementations: returns the prepared form of 'dict' for ('key', 'variant').  The first call
 * makes it with 'make' while other threads wait; it is freed with the dictionary.  NULL if 'make'
 * returned NULL.
 */
LADE_API const void *lade_dict_prepared(const lade_dict *dict, const void *key, int variant,
                                        void *(*make)(lade_cspan data, int variant),
                                        void (*free_fn)(void *prepared));

#ifdef __cplusplus
}
#endif

#endif
