/*
 * suggest.h: measures how small and how fast a spec is on your data, and suggests specs for it.
 *
 *	lade_suggest_options options = {.struct_size = sizeof options, .dtype = LADE_F4,
 *	                                .seconds = 0.001};
 *	lade_suggestions *found;
 *	if (lade_suggest(engine, lade_host_cspan(field, sizeof field), &options, &found, &err))
 *		return fprintf(stderr, "%s\n", err.message);
 *	for (size_t i = 0; i < found->count; i++)
 *		if (found->items[i]->goals & LADE_GOAL_RATIO)
 *			printf("smallest: %s\n", lade_spec_text(found->items[i]->spec));
 *	lade_suggestions_free(found);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_SUGGEST_H
#define LADE_SUGGEST_H

#include <lade/batch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Later versions may add fields at the end. */
typedef struct lade_measurement {
	uint64_t size, encoded_size;
	/* For all of the data: the median of the passes. */
	double encode_seconds, decode_seconds;
	size_t passes; /* that decoding was timed for */
	bool lossy;
} lade_measurement;

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_measure_options {
	size_t struct_size;
	size_t chunk_size; /* 0: 1 MiB */
	unsigned threads;  /* 0: the engine's */
	double seconds;    /* at least, for each direction; 0: one pass */
	size_t measurement_size; /* sizeof(lade_measurement); 0: as in 0.2.0 */
	lade_cancel *cancel;     /* or NULL */
} lade_measure_options;

/*
 * Encodes and decodes data in host memory on the host, in chunks, several times.  The first pass is
 * not timed: its result is compared with the data (for a lossy spec, only the size is).
 *
 * Run it on an idle machine for meaningful timings.
 *
 * Memory:  the size of the data, and the bound of all its chunks
 * Fails:   LADE_E_ARG (no data, options), LADE_E_UNSUPPORTED (data not in host memory),
 *          LADE_E_LIMIT, LADE_E_NOMEM, LADE_E_CORRUPT if the result differs from the data, and what
 *          encoding and decoding fail with; then '*out' is zeroed
 * Threads: any number of callers per engine
 */
LADE_API lade_status lade_measure(lade_engine *engine, const lade_spec *spec, lade_cspan data,
                                  const lade_measure_options *options, lade_measurement *out,
                                  lade_error *err);

/* What a spec is best at. */
enum {
	/* Least time to encode and decode, among those that save at least a third of the bytes that
	 * the smallest one saves. */
	LADE_GOAL_SPEED = 1,
	/* Least time to encode, store, load and decode at the given bandwidth. */
	LADE_GOAL_BETWEEN = 2,
	/* The smallest; among those within half a percent, the fastest. */
	LADE_GOAL_RATIO = 4,
};

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_suggest_options {
	size_t struct_size;
	lade_dtype dtype;   /* the elements' type; LADE_DTYPE_NONE: bytes, or see 'guess' */
	bool guess;         /* if 'dtype' is not set, find the size of the elements by trying */
	size_t chunk_size;  /* 0: 1 MiB */
	size_t sample_size; /* the most bytes of the data to try, spread evenly; 0: 4 MiB */
	unsigned threads;   /* 0: the engine's */
	double seconds;     /* to time each spec, for each direction; 0: 0.05 */
	double bandwidth;   /* bytes a second, of the disk or network; 0: 500 million */
	/* Called before each spec is tried, and again with the error if it fails on this data (then
	 * it is left out); or NULL. */
	void (*progress)(void *ctx, const char *pipeline, const lade_error *failed);
	void *progress_ctx;
	lade_cancel *cancel; /* or NULL */
} lade_suggest_options;

/* These two are in memory of the library; later versions may add fields at the end. */
typedef struct lade_suggestion {
	const lade_spec *spec;
	const lade_measurement *measured; /* of the sample */
	uint32_t goals;                   /* LADE_GOAL_... */
} lade_suggestion;

typedef struct lade_suggestions {
	size_t count;
	const lade_suggestion *const *items; /* in the order in which they were tried */
	size_t sample_size;
	lade_dtype dtype; /* the type that the filters were made for */
	bool guessed;     /* 'dtype' has an element size that was found by trying */
} lade_suggestions;

/*
 * Tries specs on a sample of the data.  It first picks filters by their sizes with LZ4 and
 * Zstandard, then times the best filters with every codec.  At most one spec has each goal.  No
 * spec has a goal if none saves 2 % of the bytes: then store the data as it is.
 *
 * Fails:   LADE_E_ARG, LADE_E_UNSUPPORTED, LADE_E_NOMEM as lade_measure(), and what the last spec
 *          fails with if none works
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
