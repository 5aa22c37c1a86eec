/*
 * runs.c: the codec of runs.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "runs.h"

#include <string.h>

#define HEADER 8

static size_t element(const lade_stage *stage)
{
	return (size_t)stage->option[0].i;
}

/* ---- the algorithm: what a spec names --------------------------------------------------- */

/*
 * The worst case is a run for each of the size / e elements: 1 + e bytes for e.  The rest is not
 * encoded, so the sum is HEADER + size + size / e.
 */
static size_t bound(const lade_stage *stage, size_t size)
{
	if (size > SIZE_MAX / 2 - HEADER)
		return SIZE_MAX;
	return HEADER + size + size / element(stage);
}

/* What the header claims; decoding finds out whether the runs give as much. */
static lade_status decoded_size(const lade_stage *stage, const void *src, size_t size,
                                uint64_t *decoded, lade_error *err)
{
	(void)stage;
	const uint8_t *in = src;
	if (!in)
		return lade_fail(err, LADE_E_UNKNOWN_SIZE, LADE_NO_OFFSET, "runs: no data at hand");
	if (size < HEADER)
		return lade_fail(err, LADE_E_TRUNCATED, size,
		                 "runs: want a header of %d bytes, have %zu", HEADER, size);
	*decoded = 0;
	for (int i = HEADER; i-- > 0;)
		*decoded = *decoded << 8 | in[i];
	return LADE_OK;
}

static const lade_option options[] = {
	{
		.name = "size",
		.type = LADE_OPTION_INT,
		.fallback = {.i = 1},
		.min = 1,
		.max = 8,
		.doc = "bytes an element",
	},
};

const lade_algorithm runs_algorithm = {
	.struct_size = sizeof(lade_algorithm),
	.name = "runs",
	.kind = LADE_STAGE_CODEC,
	.options = options,
	.option_count = 1,
	.doc = "run lengths; examples/add_codec/runs.h",
	.bound = bound,
	.decoded_size = decoded_size,
};

/* ---- the implementations: what runs ------------------------------------------------------- */

static lade_status encode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	size_t e = element(run->stage), rest = src.size % e, whole = src.size - rest;
	const uint8_t *in = src.data;
	uint8_t *out = dst.data;
	size_t at = HEADER;
	*dst_size = 0;
	if (dst.size < HEADER)
		goto too_small;
	for (int i = 0; i < HEADER; i++)
		out[i] = (uint8_t)((uint64_t)src.size >> (8 * i));
	for (size_t begin = 0, end; begin < whole; begin = end) {
		size_t length = 1;
		for (end = begin + e; end < whole && length < 256; end += e, length++)
			if (memcmp(in + begin, in + end, e) != 0)
				break;
		if (dst.size - at < 1 + e)
			goto too_small;
		out[at] = (uint8_t)(length - 1);
		memcpy(out + at + 1, in + begin, e);
		at += 1 + e;
	}
	if (dst.size - at < rest)
		goto too_small;
	if (rest)
		memcpy(out + at, in + whole, rest);
	*dst_size = at + rest;
	return LADE_OK;
too_small:
	return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
	                 "runs: want up to %zu bytes, have %zu", bound(run->stage, src.size),
	                 dst.size);
}

/* Checks every length against both sides before it writes a byte: sources are hostile. */
static lade_status decode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	size_t e = element(run->stage), at = HEADER, done = 0;
	const uint8_t *in = src.data;
	uint8_t *out = dst.data;
	uint64_t size = 0;
	*dst_size = 0;
	lade_status status =
		decoded_size(run->stage, in ? in : (const void *)"", src.size, &size, err);
	if (status != LADE_OK)
		return status;
	if (size > dst.size)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "runs: want %llu bytes, have %zu", (unsigned long long)size,
		                 dst.size);
	size_t rest = (size_t)size % e, whole = (size_t)size - rest;
	while (done < whole) {
		if (src.size - at < 1 + e)
			return lade_fail(err, LADE_E_TRUNCATED, src.size,
			                 "runs: the run at %zu wants %zu bytes, %zu are left", at,
			                 1 + e, src.size - at);
		size_t length = (size_t)in[at] + 1;
		if (length > (whole - done) / e)
			return lade_fail(err, LADE_E_CORRUPT, at,
			                 "runs: the run at %zu has %zu elements, %zu are missing",
			                 at, length, (whole - done) / e);
		for (; length > 0; length--, done += e)
			memcpy(out + done, in + at + 1, e);
		at += 1 + e;
	}
	if (src.size - at != rest)
		return lade_fail(err, src.size - at < rest ? LADE_E_TRUNCATED : LADE_E_CORRUPT, at,
		                 "runs: want %zu last bytes, have %zu", rest, src.size - at);
	if (rest)
		memcpy(out + done, in + at, rest);
	*dst_size = (size_t)size;
	return LADE_OK;
}

/* About 1 byte a nanosecond on one core. */
static double cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	return (double)workload->total / (workload->threads ? workload->threads : 1);
}

const lade_implementation runs_encode = {
	.struct_size = sizeof(lade_implementation),
	.name = "runs/example",
	.algorithm = "runs",
	.direction = LADE_ENCODE,
	.priority = LADE_PRIORITY_BUILTIN,
	.cost = cost,
	.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops), .run = encode},
};

const lade_implementation runs_decode = {
	.struct_size = sizeof(lade_implementation),
	.name = "runs/example",
	.algorithm = "runs",
	.direction = LADE_DECODE,
	.priority = LADE_PRIORITY_BUILTIN,
	.cost = cost,
	.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops), .run = decode},
};
