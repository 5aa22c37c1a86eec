/*
 * stages.c: the checksums as stages of a pipeline, and the table of them.
 *
 * Encoding puts the checksum of the bytes, little-endian, behind them or in front of them; decoding
 * takes it off and compares.  The engine places and compares; the records here compute.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "checksum/checksum.h"
#include "checksum/gpu.h"

static const char *const locations[] = {"end", "start", NULL};

static const lade_option options[] = {
	{
		.name = "location",
		.type = LADE_OPTION_ENUM,
		.names = locations,
		.doc = "where the checksum stands; numcodecs has crc32 and adler32 at the start",
	},
};

static lade_checksum kind_of(const lade_stage *stage)
{
	return (lade_checksum)(stage->algorithm->id - LADE__CHECKSUM_ID);
}

/* Always the bytes and the checksum, neither more nor less. */
static size_t bound(const lade_stage *stage, size_t size)
{
	size_t extra = lade_checksum_size(kind_of(stage));
	return size > SIZE_MAX - 1 - extra ? SIZE_MAX : size + extra;
}

static lade_status decoded_size(const lade_stage *stage, const void *src, size_t size,
                                uint64_t *decoded, lade_error *err)
{
	(void)src;
	size_t extra = lade_checksum_size(kind_of(stage));
	if (size < extra)
		return lade_fail(err, LADE_E_TRUNCATED, size,
		                 "%s: want a checksum of %zu bytes, have %zu bytes in all",
		                 stage->algorithm->name, extra, size);
	*decoded = size - extra;
	return LADE_OK;
}

static lade_status checksum(const lade_run *run, lade_cspan src, uint64_t *sum, lade_error *err)
{
	(void)err;
	*sum = lade__checksum(kind_of(run->stage), run->cpu, src.data, src.size);
	return LADE_OK;
}

static const lade_checksum_ops ops = {.struct_size = sizeof ops, .run = checksum};

/* Nanoseconds a byte, rounded up from bench_checksums; they only rank. */
static double cost(void *ctx, const lade_workload *work)
{
	(void)ctx;
	unsigned threads = work->threads ? work->threads : 1;
	return 20.0 * (double)work->count + 0.1 * (double)work->total / threads;
}

#define LADE_X(NAME, value, text, bytes) \
	static const lade_algorithm algorithm_##NAME = { \
		.struct_size = sizeof(lade_algorithm), \
		.name = text, \
		.id = LADE__CHECKSUM_ID + (value), \
		.kind = LADE_STAGE_CHECKSUM, \
		.flags = LADE_ALGORITHM_FIXED_SIZE, \
		.options = options, \
		.option_count = 1, \
		.doc = "the " text " checksum of the bytes (docs/format/checksums.md)", \
		.bound = bound, \
		.decoded_size = decoded_size, \
		.ratio_max = 1, \
	}; \
	static const lade_implementation encode_##NAME = { \
		.struct_size = sizeof(lade_implementation), \
		.name = text "/lade", \
		.algorithm = text, \
		.direction = LADE_ENCODE, \
		.cost = cost, \
		.checksum = &ops, \
	}; \
	static const lade_implementation decode_##NAME = { \
		.struct_size = sizeof(lade_implementation), \
		.name = text "/lade", \
		.algorithm = text, \
		.direction = LADE_DECODE, \
		.cost = cost, \
		.checksum = &ops, \
	};
LADE_CHECKSUM_LIST(LADE_X)
#undef LADE_X

/* ---- lookup3, which has no number: frames do not store it ------------------------------- */

#define LOOKUP3_SIZE 4

static const lade_option lookup3_options[] = {
	{
		.name = "location",
		.type = LADE_OPTION_ENUM,
		.names = locations,
		.doc = "where the checksum stands",
	},
	{
		.name = "init",
		.type = LADE_OPTION_INT,
		.max = UINT32_MAX,
		.doc = "the value to begin with",
	},
};

static size_t lookup3_bound(const lade_stage *stage, size_t size)
{
	(void)stage;
	return size > SIZE_MAX - 1 - LOOKUP3_SIZE ? SIZE_MAX : size + LOOKUP3_SIZE;
}

static lade_status lookup3_decoded_size(const lade_stage *stage, const void *src, size_t size,
                                        uint64_t *decoded, lade_error *err)
{
	(void)stage, (void)src;
	if (size < LOOKUP3_SIZE)
		return lade_fail(err, LADE_E_TRUNCATED, size,
		                 "lookup3: want a checksum of %d bytes, have %zu bytes in all",
		                 LOOKUP3_SIZE, size);
	*decoded = size - LOOKUP3_SIZE;
	return LADE_OK;
}

static lade_status lookup3(const lade_run *run, lade_cspan src, uint64_t *sum, lade_error *err)
{
	(void)err;
	*sum = lade_lookup3(src.data, src.size, (uint32_t)run->stage->option[1].i);
	return LADE_OK;
}

static const lade_checksum_ops lookup3_ops = {.struct_size = sizeof lookup3_ops, .run = lookup3};

static const lade_algorithm algorithm_lookup3 = {
	.struct_size = sizeof(lade_algorithm),
	.name = "lookup3",
	.id = 16,
	.kind = LADE_STAGE_CHECKSUM,
	.flags = LADE_ALGORITHM_FIXED_SIZE,
	.options = lookup3_options,
	.option_count = 2,
	.doc = "Bob Jenkins' lookup3 of the bytes (docs/format/checksums.md)",
	.bound = lookup3_bound,
	.decoded_size = lookup3_decoded_size,
	.ratio_max = 1,
};

static const lade_implementation encode_lookup3 = {
	.struct_size = sizeof(lade_implementation),
	.name = "lookup3/lade",
	.algorithm = "lookup3",
	.direction = LADE_ENCODE,
	.cost = cost,
	.checksum = &lookup3_ops,
};

static const lade_implementation decode_lookup3 = {
	.struct_size = sizeof(lade_implementation),
	.name = "lookup3/lade",
	.algorithm = "lookup3",
	.direction = LADE_DECODE,
	.cost = cost,
	.checksum = &lookup3_ops,
};

static const lade_algorithm *const algorithms[] = {
#define LADE_X(NAME, value, text, bytes) &algorithm_##NAME,
	LADE_CHECKSUM_LIST(LADE_X)
#undef LADE_X
		&algorithm_lookup3,
	NULL,
};

static const lade_implementation *const implementations[] = {
#define LADE_X(NAME, value, text, bytes) &encode_##NAME, &decode_##NAME,
	LADE_CHECKSUM_LIST(LADE_X)
#undef LADE_X
		&encode_lookup3, &decode_lookup3,
	NULL,
};

static const lade__gpu_implementation *const gpu[] = {
#define LADE_X(NAME, value, text, bytes) \
	&lade__checksum_gpu[2 * (value)-2], &lade__checksum_gpu[2 * (value)-1],
		LADE_CHECKSUM_LIST(LADE_X)
#undef LADE_X
			NULL,
};

const lade__set lade__checksums = {algorithms, implementations, gpu};
