/*
 * codec.c: the records of the ANS codec (docs/format/ans.md).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/ans/ans.h"

static lade_status check(const lade_stage *stage, lade_error *err)
{
	int64_t block = stage->option[ANS_OPTION_BLOCK].i, bits = stage->option[ANS_OPTION_BITS].i;
	if (block && (block < 1 << ANS_BLOCK_LOG_MIN || block & (block - 1)))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "ans: block is %lld, want 0, 4096, 8192 or 16384",
		                 (long long)block);
	if (bits && bits < ANS_BITS_MIN)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "ans: bits is %lld, want 0 or %d to %d", (long long)bits,
		                 ANS_BITS_MIN, ANS_BITS_MAX);
	return lade__little_check(stage, (lade_dtype)stage->option[ANS_OPTION_DTYPE].i, err);
}

/* A chunk that coding does not make smaller is raw: its bytes behind a header of 16. */
static size_t bound(const lade_stage *stage, size_t size)
{
	(void)stage;
	return size > ANS_SIZE_MAX ? SIZE_MAX : size + ANS_HEADER;
}

static lade_status decoded_size(const lade_stage *stage, const void *src, size_t size,
                                uint64_t *decoded, lade_error *err)
{
	(void)stage;
	const uint8_t *bytes = src;
	if (!src)
		return lade_fail(err, LADE_E_UNKNOWN_SIZE, LADE_NO_OFFSET,
		                 "ans: the decoded size is in the data, which was not given");
	if (size < ANS_HEADER)
		return lade_fail(err, LADE_E_TRUNCATED, size,
		                 "ans: the header needs %d bytes, have %zu", ANS_HEADER, size);
	if (bytes[0] != ANS_VERSION)
		return lade_fail(err, LADE_E_CORRUPT, 0, "ans: version %u, want %d", bytes[0],
		                 ANS_VERSION);
	*decoded = lade__le32(bytes + ANS_AT_SIZE);
	return LADE_OK;
}

static double encode_cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	return lade__codec_cost(workload, 8000, 0.9);
}

static double decode_cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	return lade__codec_cost(workload, 3000, 1.6);
}

static const lade_option options[] = {
	[ANS_OPTION_DTYPE] = {.name = "dtype",
                              .type = LADE_OPTION_DTYPE,
                              .fallback = {.i = LADE_U1},
                              .doc = "the elements' type: byte positions are coded apart"},
	[ANS_OPTION_BLOCK] = {.name = "block",
                              .type = LADE_OPTION_INT,
                              .fallback = {.i = 0},
                              .min = 0,
                              .max = 1 << ANS_BLOCK_LOG_MAX,
                              .doc = "decoded bytes of a sub-block, 4096, 8192 or 16384; 0: by the "
                                     "chunk's size"},
	[ANS_OPTION_BITS] = {.name = "bits",
                             .type = LADE_OPTION_INT,
                             .fallback = {.i = 0},
                             .min = 0,
                             .max = ANS_BITS_MAX,
                             .doc = "log2 of the states, 9 to 11; 0: by the data"},
};

static const char *const suggest[] = {"ans", NULL};

const lade_algorithm lade__ans = {
	.struct_size = sizeof(lade_algorithm),
	.name = "ans",
	.id = 11,
	.kind = LADE_STAGE_CODEC,
	.flags = LADE_ALGORITHM_RANGES,
	.options = options,
	.option_count = sizeof options / sizeof options[0],
	.doc = "asymmetric numeral systems; docs/format/ans.md",
	.check = check,
	.bound = bound,
	.decoded_size = decoded_size,
	.decoded_max = ANS_SIZE_MAX,
	.suggest = suggest,
};

const lade_implementation lade__ans_encode = {
	.struct_size = sizeof(lade_implementation),
	.name = "ans/lade",
	.algorithm = "ans",
	.direction = LADE_ENCODE,
	.priority = LADE_PRIORITY_BUILTIN,
	.cost = encode_cost,
	.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops),
	                                 .run = lade__ans_run_encode},
};

const lade_implementation lade__ans_decode = {
	.struct_size = sizeof(lade_implementation),
	.name = "ans/lade",
	.algorithm = "ans",
	.direction = LADE_DECODE,
	.priority = LADE_PRIORITY_BUILTIN,
	.cost = decode_cost,
	.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops),
	                                 .run = lade__ans_run_decode,
	                                 .run_range = lade__ans_run_range,
	                                 .parts = lade__ans_run_parts,
	                                 .run_part = lade__ans_run_part},
};
