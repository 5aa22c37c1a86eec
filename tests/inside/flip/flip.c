/*
 * flip.c: a codec of the library's own, as small as one can be (docs/adding-a-codec.md): the host's
 * implementations, those for devices, and the folder's set.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/codecs.h"
#include "codec/flip/args.h"
#include "gpu/work.h"

/* ---- the algorithm --------------------------------------------------------------------------- */

/* The header and as many bytes. */
static size_t bound(const lade_stage *stage, size_t size)
{
	(void)stage;
	return size > LADE_CHUNK_MAX - LADE_FLIP_HEADER ? SIZE_MAX : size + LADE_FLIP_HEADER;
}

static lade_status decoded_size(const lade_stage *stage, const void *src, size_t size,
                                uint64_t *decoded, lade_error *err)
{
	const uint8_t *p = src;
	(void)stage;
	if (!p)
		return lade_fail(err, LADE_E_UNKNOWN_SIZE, 0, "flip: the header tells the size");
	if (size < LADE_FLIP_HEADER)
		return lade_fail(err, LADE_E_TRUNCATED, size, "flip: %zu bytes, the header has %u",
		                 size, LADE_FLIP_HEADER);
	if (p[0] != LADE_FLIP_MARK)
		return lade_fail(err, LADE_E_CORRUPT, 0, "flip: mark %u, want %u", p[0],
		                 LADE_FLIP_MARK);
	*decoded = lade__le32(p + 1);
	return LADE_OK;
}

static const char *const suggest[] = {"flip", NULL};

static const lade_algorithm flip = {
	.struct_size = sizeof(lade_algorithm),
	.name = "flip",
	.id = 99,
	.kind = LADE_STAGE_CODEC,
	.doc = "bytes with each bit the other way",
	.bound = bound,
	.decoded_size = decoded_size,
	.header_size = LADE_FLIP_HEADER,
	.ratio_max = 1,
	.decoded_max = LADE_CHUNK_MAX,
	.suggest = suggest,
};

/* ---- the host -------------------------------------------------------------------------------- */

static void flip_bytes(uint8_t *dst, const uint8_t *src, size_t size)
{
	for (size_t i = 0; i < size; i++)
		dst[i] = (uint8_t)~src[i];
}

static lade_status encode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	size_t want = bound(run->stage, src.size);
	uint8_t *to = dst.data;
	*dst_size = 0;
	if (want > dst.size)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "flip: want %zu bytes, have %zu", want, dst.size);
	to[0] = LADE_FLIP_MARK;
	lade__le_put(to + 1, src.size, 4);
	flip_bytes(to + LADE_FLIP_HEADER, src.data, src.size);
	*dst_size = want;
	return LADE_OK;
}

static lade_status decode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	uint64_t size;
	*dst_size = 0;
	lade_status status = decoded_size(run->stage, src.data, src.size, &size, err);
	if (status != LADE_OK)
		return status;
	if (size != src.size - LADE_FLIP_HEADER)
		return lade_fail(err, LADE_E_CORRUPT, 1, "flip: %llu bytes, and %zu are there",
		                 (unsigned long long)size, src.size - LADE_FLIP_HEADER);
	if (size > dst.size)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "flip: want %llu bytes, have %zu", (unsigned long long)size,
		                 dst.size);
	flip_bytes(dst.data, (const uint8_t *)src.data + LADE_FLIP_HEADER, (size_t)size);
	*dst_size = (size_t)size;
	return LADE_OK;
}

static double cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	return lade__codec_cost(workload, 20, 5.0);
}

#define HOST(way, verb)                                                                       \
	static const lade_implementation verb##_host = {                                      \
		.struct_size = sizeof(lade_implementation), .name = "flip/lade",              \
		.algorithm = "flip", .direction = way,                                        \
		.priority = LADE_PRIORITY_BUILTIN, .cost = cost,                              \
		.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops),       \
		                                 .run = verb},                                \
	};
HOST(LADE_ENCODE, encode)
HOST(LADE_DECODE, decode)

/* ---- devices --------------------------------------------------------------------------------- */

static const lade__kernel encode_kernel = {"flip", "lade_flip_encode", 0};
static const lade__kernel decode_kernel = {"flip", "lade_flip_decode", 0};

static size_t workspace(const lade_stage *stage, size_t count, uint64_t largest, uint64_t total)
{
	(void)stage, (void)count, (void)largest, (void)total;
	return 0;
}

static lade_status launch(const lade__gpu_work *work, const lade__kernel *kernel, lade_error *err)
{
	lade_gpu_batch batch = lade__gpu_batch_of(work, 0);
	void *arguments[] = {&batch};
	lade__launch l = {.blocks = (unsigned)work->count,
	                  .threads = LADE_FLIP_THREADS,
	                  .stream = work->stream};
	return lade__kernel_launch(work->device, kernel, &l, arguments, err);
}

static lade_status enqueue_encode(const lade__gpu_work *work, lade_error *err)
{
	return launch(work, &encode_kernel, err);
}

static lade_status enqueue_decode(const lade__gpu_work *work, lade_error *err)
{
	return launch(work, &decode_kernel, err);
}

static double gpu_cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	return workload->largest > LADE_CHUNK_MAX ? -1 : 5000 + (double)workload->total / 1000;
}

static const lade__gpu_codec encode_codec = {.workspace = workspace, .enqueue = enqueue_encode};
static const lade__gpu_codec decode_codec = {.workspace = workspace, .enqueue = enqueue_decode};
static const lade__gpu_implementation encode_gpu =
	LADE__GPU_RECORD("flip", LADE_ENCODE, encode_codec, gpu_cost);
static const lade__gpu_implementation decode_gpu =
	LADE__GPU_RECORD("flip", LADE_DECODE, decode_codec, gpu_cost);

/* ---- the folder's set ------------------------------------------------------------------------ */

static const lade_algorithm *const algorithms[] = {&flip, NULL};
static const lade_implementation *const implementations[] = {&encode_host, &decode_host, NULL};
static const lade__gpu_implementation *const gpu[] = {&encode_gpu, &decode_gpu, NULL};
const lade__set lade__codec_flip = {algorithms, implementations, gpu};
