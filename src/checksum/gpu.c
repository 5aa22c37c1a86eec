/*
 * gpu.c: checksums on devices: the constants of a CRC's arithmetic, into how many units chunks are
 * cut, and the stages' records.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "checksum/gpu.h"

#include "base/try.h"
#include "checksum/args.h"
#include "checksum/checksum.h"

#include <pthread.h>

/* ---- CRCs ----------------------------------------------------------------------------------- */

/* Of each preset, with all but what depends on the units. */
static lade_gpu_crc crcs[LADE_CRC32_CDROM + 1];
static pthread_once_t crcs_once = PTHREAD_ONCE_INIT;

/* a times b; bit i is x^i. */
static uint32_t times(uint32_t a, uint32_t b, uint32_t poly)
{
	uint32_t r = 0;
	for (int i = 31; i >= 0; i--) {
		r = (r << 1) ^ (r >> 31 ? poly : 0);
		r ^= a >> i & 1 ? b : 0;
	}
	return r;
}

/* a to the power of n. */
static uint32_t power(uint32_t a, uint64_t n, uint32_t poly)
{
	uint32_t r = 1;
	for (; n > 0; n >>= 1) {
		if (n & 1)
			r = times(r, a, poly);
		a = times(a, a, poly);
	}
	return r;
}

static uint32_t turn(uint32_t word, bool reflected)
{
	return reflected ? lade__reverse_bits(word) : __builtin_bswap32(word);
}

static void crcs_init(void)
{
	for (int kind = LADE_CRC32; kind <= LADE_CRC32_CDROM; kind++) {
		lade_gpu_crc *c = &crcs[kind];
		lade_crc32_spec spec = {0};
		lade_crc32_spec_of((lade_checksum)kind, &spec, NULL);
		/* All polynomials of CRCs have the term 1, so that x divides the rest. */
		uint32_t poly = spec.poly, back = power(poly >> 1 | 0x80000000U, 8, poly);
		uint32_t row = power(2, 4096, poly), word = power(2, 32, poly);
		*c = (lade_gpu_crc){.poly = poly,
		                     .init = spec.init,
		                     .first = turn(spec.init, spec.reflect_in),
		                     .reflected = spec.reflect_in,
		                     .mirrored = spec.reflect_out,
		                     .xor_out = spec.xor_out};
		for (unsigned b = 0; b < 32; b++)
			c->basis[b] = turn(times(turn(1U << b, spec.reflect_in), row, poly),
			                   spec.reflect_in);
		c->weight[127] = word;
		for (int i = 126; i >= 0; i--)
			c->weight[i] = times(c->weight[i + 1], word, poly);
		c->undo[0] = 1;
		for (int i = 1; i < 16; i++)
			c->undo[i] = times(c->undo[i - 1], back, poly);
	}
}

/* What depends on the units. */
static void crc_units(lade_gpu_crc *c, uint32_t unit, uint32_t parts)
{
	uint32_t apart = power(2, 8 * (uint64_t)unit, c->poly);
	uint32_t leap = power(apart, 32, c->poly);
	c->step[0] = c->leap[0] = 1;
	for (int i = 1; i < 32; i++)
		c->step[i] = times(c->step[i - 1], apart, c->poly);
	for (int i = 1; i < 8; i++)
		c->leap[i] = times(c->leap[i - 1], leap, c->poly);
	c->stride = power(leap, 8, c->poly);
	c->hop = power(apart, parts, c->poly);
}

/* ---- units ---------------------------------------------------------------------------------- */

#define UNIT_LEAST 4096u
#define UNIT_USUAL 65536u
#define PARTS_MOST 4096u
#define PARTS_ALL (1u << 20) /* of all chunks, as long as they are fewer */
#define PARTS_UNKNOWN 16u    /* of a chunk whose size is unknown */

#define XXH64_CHUNKS (LADE_XXH64_THREADS / LADE_XXH64_LANES) /* of a block */

static const lade__kernel crc32_kernel = {"checksum", "lade_crc32_units", LADE_CRC_SHARED};
static const lade__kernel adler32_kernel = {"checksum", "lade_adler32_units", 0};
static const lade__kernel xxh64_kernel = {"checksum", "lade_xxh64_units", 0};
static const lade__kernel finish_kernel = {"checksum", "lade_checksum_finish", 0};
static const lade__kernel copy_kernel = {"checksum", "lade_checksum_copy", 0};

static uint32_t family(lade_checksum kind)
{
	return kind == LADE_XXH64     ? LADE_SUM_XXH64
	       : kind == LADE_ADLER32 ? LADE_SUM_ADLER
	                              : LADE_SUM_CRC;
}

bool lade__gpu_checksum_known(lade_checksum kind)
{
	return kind >= LADE_CRC32 && kind <= LADE_XXH64;
}

/* Units of a chunk of 'size' bytes at any address. */
static uint64_t units_of(uint64_t size, uint32_t unit)
{
	return size / unit + (size % unit + 15 + unit - 1) / unit;
}

/* What a chunk is cut into, so that one large chunk among many small ones does not cost a place for
 * its parts in each: a part then makes several units. */
static uint32_t parts_of(uint64_t largest, uint32_t unit, size_t count)
{
	uint64_t parts = largest ? units_of(largest, unit) : PARTS_UNKNOWN;
	uint64_t most = count < PARTS_ALL / PARTS_MOST ? PARTS_MOST : PARTS_ALL / count;
	parts = parts < most ? parts : most;
	return parts ? (uint32_t)parts : 1;
}

/* What suffices for fewer and smaller chunks, too: parts_of() gives as many chunks as these no more
 * parts together. */
size_t lade__gpu_checksum_workspace(lade_checksum kind, size_t count, uint64_t largest)
{
	size_t places = count;
	if (kind != LADE_XXH64 && count < PARTS_ALL) {
		uint64_t parts = largest ? units_of(largest, UNIT_LEAST) : PARTS_UNKNOWN;
		parts = parts < PARTS_MOST ? parts : PARTS_MOST;
		places = parts * count < PARTS_ALL ? (size_t)(parts * count) : PARTS_ALL;
	}
	return places > SIZE_MAX / 8 ? SIZE_MAX : 8 * places;
}

/* Units large enough to be worth a warp's beginning and end, and small enough that there are two
 * for each warp that is at work at once. */
static uint32_t unit_of(const lade__gpu_work *work, uint64_t warps)
{
	uint64_t total = work->total;
	uint32_t unit = UNIT_USUAL;
	if (!total)
		total = work->largest > UINT64_MAX / work->count ? UINT64_MAX
		                                                 : work->largest * work->count;
	while (total && unit > UNIT_LEAST && total / unit < 2 * warps)
		unit /= 2;
	while (unit < LADE_SUM_UNIT_MAX && units_of(work->largest, unit) > PARTS_MOST)
		unit *= 2;
	return unit;
}

/* ---- launches ------------------------------------------------------------------------------- */

/* Blocks for 'want' warps' work, as many as the device has at once. */
static lade_status launch_units(const lade__gpu_work *work, const lade__kernel *kernel,
                                unsigned threads, uint64_t want, void **arguments, lade_error *err)
{
	size_t most;
	lade_status status;
	TRY(lade__gpu_resident(work, kernel, threads, kernel->shared, &most, err));
	uint64_t blocks = (want + threads / 32 - 1) / (threads / 32);
	blocks = blocks < most ? blocks : most;
	lade__launch launch = {.blocks = (unsigned)blocks,
	                       .threads = threads,
	                       .shared = kernel->shared,
	                       .stream = work->stream};
	TRY(lade__kernel_launch(work->device, kernel, &launch, arguments, err));
out:
	return status;
}

/* Warps that are at work at once. */
static lade_status warps_of(const lade__gpu_work *work, uint32_t kind, uint64_t *warps,
                            lade_error *err)
{
	unsigned an_sm, threads = kind == LADE_SUM_CRC ? LADE_CRC_THREADS : LADE_ADLER_THREADS;
	const lade__kernel *kernel = kind == LADE_SUM_CRC ? &crc32_kernel : &adler32_kernel;
	lade_status status = lade__kernel_occupancy(work->device, kernel, threads, kernel->shared,
	                                            &an_sm, err);
	*warps = status == LADE_OK
	                 ? (uint64_t)an_sm * work->device->info.multiprocessors * (threads / 32)
	                 : 0;
	return status;
}

/* Fills what is left of 's' and runs the kernels. */
static lade_status enqueue(const lade__gpu_work *work, lade_checksum kind, lade_gpu_sums *s,
                           lade_error *err)
{
	static const lade_gpu_crc none;
	lade_gpu_crc crc;
	lade_status status;
	uint64_t warps = 1;
	s->batch = lade__gpu_batch_of(work, 0);
	s->partial = work->workspace;
	s->kind = family(kind);
	s->parts = 1;
	s->unit = UNIT_USUAL;
	if (s->kind != LADE_SUM_XXH64 && s->use != LADE_SUM_STRIP) {
		TRY(warps_of(work, s->kind, &warps, err));
		s->unit = unit_of(work, warps);
		s->parts = parts_of(work->largest, s->unit, work->count);
	}
	crc = none;
	if (s->kind == LADE_SUM_CRC) {
		pthread_once(&crcs_once, crcs_init);
		crc = crcs[kind];
		crc_units(&crc, s->unit, s->parts);
	}
	void *arguments[] = {s, &crc};
	uint64_t units = (uint64_t)s->parts * work->count;
	if (s->use == LADE_SUM_STRIP) {
		status = LADE_OK;
	} else if (s->kind == LADE_SUM_CRC) {
		TRY(launch_units(work, &crc32_kernel, LADE_CRC_THREADS, units, arguments, err));
	} else if (s->kind == LADE_SUM_ADLER) {
		TRY(launch_units(work, &adler32_kernel, LADE_ADLER_THREADS, units, arguments, err));
	} else {
		lade__launch l = {
			.blocks = (unsigned)((work->count + XXH64_CHUNKS - 1) / XXH64_CHUNKS),
			.threads = LADE_XXH64_THREADS,
			.stream = work->stream};
		TRY(lade__kernel_launch(work->device, &xxh64_kernel, &l, arguments, err));
	}
	lade__launch last = {.blocks = (unsigned)work->count,
	                     .threads = s->parts > 32 ? LADE_SUM_FINISH_THREADS : 32,
	                     .stream = work->stream};
	if (s->copy) {
		/* Before the verdicts, which may replace what is read. */
		lade_gpu_sums c = *s;
		c.parts = parts_of(work->largest, c.unit, work->count);
		void *copy[] = {&c};
		TRY(launch_units(work, &copy_kernel, LADE_SUM_COPY_THREADS,
		                 (uint64_t)c.parts * work->count, copy, err));
	}
	TRY(lade__kernel_launch(work->device, &finish_kernel, &last, arguments, err));
out:
	return status;
}

lade_status lade__gpu_checksum_tell(const lade__gpu_work *work, lade_checksum kind,
                                    lade__address sums, lade_error *err)
{
	lade_gpu_sums s = {.sums = sums, .use = LADE_SUM_TELL};
	return enqueue(work, kind, &s, err);
}

/* ---- stages --------------------------------------------------------------------------------- */

static lade_checksum kind_of(const lade_stage *stage)
{
	return (lade_checksum)(stage->algorithm->id - LADE__CHECKSUM_ID);
}

static size_t workspace(const lade_stage *stage, size_t count, uint64_t largest, uint64_t total)
{
	(void)total;
	return lade__gpu_checksum_workspace(kind_of(stage), count, largest);
}

static lade_status run_stage(const lade__gpu_work *work, uint32_t use, lade_error *err)
{
	lade_checksum kind = kind_of(work->stage);
	uint32_t extra = (uint32_t)lade_checksum_size(kind);
	lade_gpu_sums s = {.use = use,
	                    .extra = extra,
	                    .first = work->stage->option[0].i == 1 ? extra : 0,
	                    .copy = !work->in_place};
	return enqueue(work, kind, &s, err);
}

static lade_status encode(const lade__gpu_work *work, lade_error *err)
{
	return run_stage(work, LADE_SUM_ENCODE, err);
}

static lade_status decode(const lade__gpu_work *work, lade_error *err)
{
	return run_stage(work, work->ignore_checksums ? LADE_SUM_STRIP : LADE_SUM_DECODE, err);
}

/* Bytes a nanosecond that an H200 reads. */
#define RATE 2600.0

static double cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	if (!lade__gpu_checksum_known(kind_of(workload->stage)) ||
	    workload->largest > LADE_CHUNK_MAX)
		return -1;
	return 8000 + (double)workload->total / RATE;
}

static const lade__gpu_codec encode_codec = {workspace, encode, NULL, NULL, false, NULL};
static const lade__gpu_codec decode_codec = {workspace, decode, NULL, NULL, false, NULL};

#define LADE_X(NAME, value, text, bytes) \
	[2 * (value)-2] = LADE__GPU_RECORD(text, LADE_ENCODE, encode_codec, cost), \
		    [2 * (value)-1] = LADE__GPU_RECORD(text, LADE_DECODE, decode_codec, cost),
const lade__gpu_implementation lade__checksum_gpu[] = {LADE_CHECKSUM_LIST(LADE_X)};
#undef LADE_X
