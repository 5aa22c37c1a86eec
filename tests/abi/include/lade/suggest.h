/*
 * suggest.h: how small and how fast a pipeline makes some data, by trying; and which pipelines suit
 * them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_SUGGEST_H
#define LADE_SUGGEST_H

#include <lade/batch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fields may be added at the end. */
typedef struct lade_measurement {
	uint64_t size, encoded_size;
	/* Of all the data: the median of the passes. */
	double encode_seconds, decode_seconds;
	size_t passes; /* of decoding */
	bool lossy;
} lade_measurement;

/* Zero-initialise, set struct_size, then what is wanted. */
typedef struct lade_measure_options {
	size_t struct_size;
	size_t chunk_size; /* 0: 1 MiB */
	unsigned threads;  /* 0: the engine's */
	double seconds;    /* for each direction, at least; 0: one pass */
	size_t measurement_size; /* sizeof(lade_measurement); 0: as in 0.2.0 */
	lade_cancel *cancel;     /* or NULL */
} lade_measure_options;

/*
 * Encodes and decodes host memory on the host, in chunks, over and over.  The first pass is not
 * timed: what it gives is compared with the data, unless the spec is lossy (then the size must be
 * right).
 * Memory:  the data's size, and what all their chunks can encode to
 * Fails:   LADE_E_ARG (no data, options), LADE_E_UNSUPPORTED (data elsewhere), LADE_E_LIMIT,
 *          LADE_E_NOMEM, LADE_E_CORRUPT when something else comes back, and what encoding and
 *          decoding fail with; '*out' is zeroed then
 * Threads: any number of callers per engine, but who times should be alone
 */
LADE_API lade_status lade_measure(lade_engine *engine, const lade_spec *spec, lade_cspan data,
                                  const lade_measure_options *options, lade_measurement *out,
                                  lade_error *err);

/* What a pipeline is the best one for. */
enum {
	/* Least time to encode and decode, of those that save a third of what the smallest
	 * saves. */
	LADE_GOAL_SPEED = 1,
	/* Least time to encode, store, load and decode at the bandwidth given. */
	LADE_GOAL_BETWEEN = 2,
	/* The smallest; of those within half a percent, the fastest. */
	LADE_GOAL_RATIO = 4,
};

/* Zero-initialise, set struct_size, then what is wanted. */
typedef struct lade_suggest_options {
	size_t struct_size;
	lade_dtype dtype;   /* what the data are; LADE_DTYPE_NONE: bytes, or see 'guess' */
	bool guess;         /* find the size of the elements by trying, where 'dtype' is not set */
	size_t chunk_size;  /* 0: 1 MiB */
	size_t sample_size; /* of the data, spread evenly: so many bytes at most; 0: 4 MiB */
	unsigned threads;   /* 0: the engine's */
	double seconds;     /* each pipeline is timed for so long in each direction; 0: 0.05 */
	double bandwidth;   /* bytes a second, of the disk or network; 0: 500 million */
	/* Told each pipeline before it is tried, and again with the error of one that fails on
	 * these data (it is left out); or NULL. */
	void (*progress)(void *ctx, const char *pipeline, const lade_error *failed);
	void *progress_ctx;
	lade_cancel *cancel; /* or NULL */
} lade_suggest_options;

/* Of the library's memory, as the next one: fields may be added at the end. */
typedef struct lade_suggestion {
	const lade_spec *spec;
	const lade_measurement *measured; /* of the sample */
	uint32_t goals;                   /* LADE_GOAL_... */
} lade_suggestion;

typedef struct lade_suggestions {
	size_t count;
	const lade_suggestion *const *items; /* in the order in which they were tried */
	size_t sample_size;
	lade_dtype dtype; /* what filters were made for */
	bool guessed;     /* it stands for a size of elements that was found by trying */
} lade_suggestions;

/*
 * Tries pipelines on a sample of the data.  Filters are sorted out by their sizes with LZ4 and with
 * Zstandard; those that are left are timed with every codec.  Each goal is that of one pipeline at
 * most; of none when nothing saves 2 % of the bytes: then they are best stored as they are.
 * Fails:   LADE_E_ARG, LADE_E_UNSUPPORTED, LADE_E_NOMEM as above, and what the last pipeline fails
 *          with if none can be tried
 * Threads: as lade_measure()
 * Owns:    the caller, until lade_suggestions_free() (NULL is fine)
 */
LADE_API lade_status lade_suggest(lade_engine *engine, lade_cspan data,
                                  const lade_suggest_options *options, lade_suggestions **out,
                                  lade_error *err);
LADE_API void lade_suggestions_free(lade_suggestions *suggestions);

#ifdef __cplusplus
}
#endif

#endif
