/*
 * measure.h: how fast and how small a spec makes some data, for 'bench' and 'suggest'.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CLI_MEASURE_H
#define LADE_CLI_MEASURE_H

#include <lade/lade.h>

/* ---- data ---- */

/* A file's array bytes: those of a .npy file without its header, else all. */
typedef struct sample {
	const char *name;
	const uint8_t *data;
	size_t size;
	lade_dtype dtype; /* of the .npy file, or LADE_DTYPE_NONE */
	bool cut;         /* 'size' was lowered: not all of the array is used */
	void *map;
	size_t map_size;
} sample;

/* Maps a file; messages are printed.  Gives an exit code.  An empty file is an error: there is
 * nothing to measure. */
int sample_open(const char *path, sample *out);
void sample_close(sample *s);

/* ---- times ---- */

typedef struct measure_plan {
	const uint8_t *data;
	size_t size, chunk_size;
	unsigned threads;
	double seconds; /* for each direction, at least; 0: one pass */
} measure_plan;

/* Encoding that was not measured took 0 seconds. */
typedef lade_measurement measure;

/* lade_measure() of the plan's data. */
static inline lade_status measure_spec(lade_engine *engine, const lade_spec *spec,
				       const measure_plan *plan, measure *out, lade_error *err)
{
	lade_measure_options o = {.struct_size = sizeof o,
				  .chunk_size = plan->chunk_size,
				  .threads = plan->threads,
				  .seconds = plan->seconds};

	return lade_measure(engine, spec, lade_host_cspan(plan->data, plan->size), &o, out, err);
}

/* What a device is given: bytes in its memory, or in the host's, pinned or not. */
enum { MEASURE_RESIDENT, MEASURE_PINNED, MEASURE_PAGEABLE, MEASURE_GPU_WAYS };

/*
 * The same for a device that decodes the spec; results stay in its memory.  Where it cannot encode,
 * the host has encoded what it decodes.
 */
lade_status measure_gpu(lade_engine *engine, const lade_spec *spec, const measure_plan *plan,
			int32_t device, measure out[MEASURE_GPU_WAYS], lade_error *err);

/* Passes that are timed: pass(ctx, n, err) makes n.  Several are timed as one where they take less
 * than 'least' seconds. */
typedef struct measure_passes {
	lade_status (*pass)(void *ctx, size_t n, lade_error *err);
	void *ctx;
	double seconds, least;
} measure_passes;

/* The median time of a pass, and how many there were. */
lade_status measure_time(const measure_passes *passes, double *median, size_t *count,
			 lade_error *err);

/* The same for memcpy(), one thread. */
void measure_memcpy(const measure_plan *plan, measure *out);

static inline double measure_ratio(const measure *m)
{
	return m->encoded_size ? (double)m->size / (double)m->encoded_size : 0;
}

/* Decoded bytes a second; 0: not measured. */
static inline double measure_encode_rate(const measure *m)
{
	return m->encode_seconds > 0 ? (double)m->size / m->encode_seconds : 0;
}

static inline double measure_decode_rate(const measure *m)
{
	return (double)m->size / m->decode_seconds;
}

#endif
