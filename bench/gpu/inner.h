/*
 * inner.h: the streams inside of Blosc1 containers, as chunks of their own for a codec's kernel.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BENCH_INNER_H
#define LADE_BENCH_INNER_H

#include "gpu.h"

#include <lade/async.h>

/* A batch of streams: tables on the device, of 'count' entries. */
typedef struct inner {
	const gpu *g;
	lade_engine *engine;
	const lade_spec *spec; /* of the streams */
	char failed[160];      /* why it cannot be done, or what was wrong; empty: nothing */
	size_t count, largest, bytes; /* of output */
	void *workspace;
	size_t workspace_size;
	uint64_t *table[4];           /* src, src_size, dst, dst_cap */
	uint64_t *sizes;
	uint32_t *statuses;
} inner;

static inline uint32_t inner_le(const unsigned char *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Notes the coded streams of the container at 'c', from entry 'n' on; how many entries there are
 * then.  'row' NULL: only counts.  What is stored has none. */
static inline size_t inner_note(const unsigned char *c, uint64_t src, uint64_t dst,
                                uint64_t *const row[4], size_t n)
{
	uint32_t flags = c[2], typesize = c[3], nbytes = inner_le(c + 4), size = inner_le(c + 8);
	bool split = !(flags & 0x10) && typesize <= 16 && size / typesize >= 128;
	for (uint32_t b = 0; !(flags & 2) && b < (nbytes + size - 1) / size; b++) {
		uint32_t at = inner_le(c + 16 + 4 * b), left = nbytes - b * size;
		uint32_t of = left < size ? left : size, parts = split && of == size ? typesize : 1;
		for (uint32_t k = 0; k < parts; k++) {
			uint32_t coded = inner_le(c + at), each = of / parts;
			if (coded != each && row) {
				row[0][n] = src + at + 4;
				row[1][n] = coded;
				row[2][n] = dst + b * size + k * each;
				row[3][n] = each;
			}
			n += coded != each;
			at += 4 + coded;
		}
	}
	return n;
}

static inline lade_arrays inner_arrays(const inner *in)
{
	return (lade_arrays){.struct_size = sizeof(lade_arrays),
	                     .src = (const void *const *)(const void *)in->table[0],
	                     .src_size = in->table[1],
	                     .dst = (void *const *)(void *)in->table[2],
	                     .dst_cap = in->table[3],
	                     .count = in->count,
	                     .largest = in->largest,
	                     .total = in->bytes};
}

/* The streams of 'count' containers, alike after 'distinct' ones: those are at 'containers' on the
 * host, and all 'slot' bytes apart at 'coded' on the device. */
static inline void inner_new(inner *in, const unsigned char *containers, size_t distinct,
                             size_t count, const void *coded, size_t slot, void *decoded,
                             size_t chunk)
{
	uint64_t *row[4];
	lade_error err;
	for (size_t i = 0; i < count; i++)
		in->count = inner_note(containers + i % distinct * slot, 0, 0, NULL, in->count);
	for (size_t t = 0; t < 4; t++)
		row[t] = bench_alloc((in->count + 1) * sizeof *row[t]);
	for (size_t i = 0, n = 0; i < count; i++)
		n = inner_note(containers + i % distinct * slot, lade__address_of(coded) + i * slot,
		               lade__address_of(decoded) + i * chunk, row, n);
	for (size_t n = 0; n < in->count; n++) {
		in->bytes += row[3][n];
		in->largest = row[3][n] > in->largest ? row[3][n] : in->largest;
	}
	for (size_t t = 0; t < 4; t++) {
		in->table[t] = gpu_alloc(in->g, (in->count + 1) * sizeof *row[t]);
		gpu_up(in->g, in->table[t], row[t], in->count * sizeof *row[t]);
		free(row[t]);
	}
	in->sizes = gpu_alloc(in->g, (in->count + 1) * sizeof *in->sizes);
	in->statuses = gpu_alloc(in->g, (in->count + 1) * sizeof *in->statuses);
	lade_arrays a = inner_arrays(in);
	if (in->count == 0)
		snprintf(in->failed, sizeof in->failed, "all is stored");
	else if (lade_workspace_size(in->engine, in->spec, LADE_DECODE, &a, &in->workspace_size,
	                             &err) != LADE_OK)
		snprintf(in->failed, sizeof in->failed, "%.150s", err.message);
	if (in->workspace_size)
		in->workspace = gpu_alloc(in->g, in->workspace_size);
}

static inline void inner_free(inner *in)
{
	for (size_t t = 0; t < 4; t++)
		gpu_free(in->g, in->table[t]);
	gpu_free(in->g, in->sizes);
	gpu_free(in->g, in->statuses);
	gpu_free(in->g, in->workspace);
}

static inline void inner_call(void *ctx)
{
	inner *in = ctx;
	lade_error err;
	lade_arrays a = inner_arrays(in);
	lade_async_options o = {.struct_size = sizeof o,
	                        .device = in->g->device->number,
	                        .stream = in->g->stream,
	                        .workspace = in->workspace,
	                        .workspace_size = in->workspace_size,
	                        .statuses = in->statuses,
	                        .sizes = in->sizes};
	if (lade_decode_arrays_async(in->engine, in->spec, &a, &o, &err) != LADE_OK)
		snprintf(in->failed, sizeof in->failed, "%.150s", err.message);
}

/* Runs it once: all streams must be decoded to their sizes. */
static inline void inner_check(inner *in)
{
	uint64_t *size = bench_alloc((in->count + 1) * sizeof *size);
	uint64_t *want = bench_alloc((in->count + 1) * sizeof *want);
	uint32_t *status = bench_alloc((in->count + 1) * sizeof *status);
	if (!in->failed[0])
		inner_call(in);
	gpu_wait(in->g);
	gpu_down(in->g, size, in->sizes, in->count * sizeof *size);
	gpu_down(in->g, want, in->table[3], in->count * sizeof *want);
	gpu_down(in->g, status, in->statuses, in->count * sizeof *status);
	for (size_t n = 0; n < in->count && !in->failed[0]; n++)
		if (status[n] != 0 || size[n] != want[n])
			snprintf(in->failed, sizeof in->failed, "stream %zu: status %u", n,
			         status[n]);
	free(size);
	free(want);
	free(status);
}

#endif
