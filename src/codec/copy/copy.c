/*
 * copy.c: the codec that does nothing, for chunks that are stored as they are.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/codecs.h"
#include "filter/filters.h"

#include <string.h>

/* Exactly the input's size. */
static size_t bound(const lade_stage *stage, size_t size)
{
	(void)stage;
	return size;
}

static lade_status decoded_size(const lade_stage *stage, const void *src, size_t size,
                                uint64_t *decoded, lade_error *err)
{
	(void)stage;
	(void)src;
	(void)err;
	*decoded = size;
	return LADE_OK;
}

static double cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	return lade__codec_cost(workload, 20, 10.0);
}

static lade_status run(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                       lade_error *err)
{
	(void)run;
	*dst_size = 0;
	if (src.size > dst.size)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "copy: want %zu bytes, have %zu", src.size, dst.size);
	if (src.size)
		memcpy(dst.data, src.data, src.size);
	*dst_size = src.size;
	return LADE_OK;
}

static lade_status run_range(const lade_run *run, lade_cspan src, uint64_t off, lade_span dst,
                             lade_error *err)
{
	(void)run;
	if (off > src.size || dst.size > src.size - off)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "copy: the range %llu + %zu exceeds the size %zu",
		                 (unsigned long long)off, dst.size, src.size);
	if (dst.size)
		memcpy(dst.data, (const uint8_t *)src.data + off, dst.size);
	return LADE_OK;
}

static const lade_algorithm copy = {
	.struct_size = sizeof(lade_algorithm),
	.name = "copy",
	.id = 1,
	.kind = LADE_STAGE_CODEC,
	.flags = LADE_ALGORITHM_FIXED_SIZE | LADE_ALGORITHM_RANGES,
	.doc = "the bytes as they are",
	.bound = bound,
	.decoded_size = decoded_size,
	.ratio_max = 1,
};

static const lade_implementation encode = {
	.struct_size = sizeof(lade_implementation),
	.name = "copy/memcpy",
	.algorithm = "copy",
	.direction = LADE_ENCODE,
	.priority = LADE_PRIORITY_BUILTIN,
	.cost = cost,
	.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops), .run = run},
};

static const lade_implementation decode = {
	.struct_size = sizeof(lade_implementation),
	.name = "copy/memcpy",
	.algorithm = "copy",
	.direction = LADE_DECODE,
	.priority = LADE_PRIORITY_BUILTIN,
	.cost = cost,
	.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops),
	                                 .run = run,
	                                 .run_range = run_range},
};

static const lade_algorithm *const algorithms[] = {&copy, NULL};
static const lade_implementation *const implementations[] = {&encode, &decode, NULL};
static const lade__gpu_implementation *const gpu[] = {&lade__copy_encode_gpu,
                                                      &lade__copy_decode_gpu, NULL};
const lade__set lade__codec_copy = {algorithms, implementations, gpu};
