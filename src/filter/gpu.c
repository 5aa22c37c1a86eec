/*
 * gpu.c: filters on devices: the shuffles, zigzag, byteswap, and delta of integers; packints,
 * levels and cast when decoding; which of them are done at once, with how many warps, and what the
 * kernels cannot do.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/work.h"
#include "base/try.h"
#include "filter/args.h"
#include "filter/filters.h"

/* Several filters at once; one alone. */
static const lade__kernel filters_encode_kernel = {"filters", "lade_filters_encode", 0};
static const lade__kernel filters_decode_kernel = {"filters", "lade_filters_decode", 0};
static const lade__kernel filters_sum_kernel = {"filters", "lade_filters_sum", 0};
static const lade__kernel shuffle_encode_kernel = {"shuffle", "lade_shuffle_encode", 0};
static const lade__kernel shuffle_decode_kernel = {"shuffle", "lade_shuffle_decode", 0};
static const lade__kernel bitshuffle_encode_kernel = {"bitshuffle", "lade_bitshuffle_encode", 0};
static const lade__kernel bitshuffle_decode_kernel = {"bitshuffle", "lade_bitshuffle_decode", 0};
static const lade__kernel stream_kernel = {"stream", "lade_stream", 0};
static const lade__kernel delta_ranges_kernel = {"stream", "lade_delta_ranges", 0};
static const lade__kernel delta_decode_kernel = {"stream", "lade_delta_decode", 0};
static const lade__kernel unpack_kernel = {"unpack", "lade_unpack_decode", 0};

/* Warps of a multiprocessor that are at work at once. */
#define RESIDENT 28u

/* The most warps of a launch; more tiles than that are taken in turns. */
#define WARPS_MAX ((size_t)1 << 24)

static size_t workspace(const lade_stage *stage, size_t count, uint64_t largest, uint64_t total)
{
	(void)stage, (void)count, (void)largest, (void)total;
	return 0;
}

static uint64_t tiles_of(uint64_t size)
{
	return size / LADE_TILE_BYTES + (size % LADE_TILE_BYTES != 0);
}

/*
 * Warps of a chunk: one for each tile of the largest.  Where the others are much smaller, most of
 * these would find nothing to do: then four times as many as an average chunk wants, or as fill the
 * device.
 */
static size_t parts_of(const lade__gpu_work *work)
{
	uint64_t parts = work->largest ? tiles_of(work->largest) : 16;
	if (work->total) {
		uint64_t average = 4 * (tiles_of(work->total / work->count) + 1);
		uint64_t resident = (uint64_t)RESIDENT * work->device->info.multiprocessors;
		uint64_t fill = resident / work->count;
		uint64_t enough = average > fill ? average : fill;
		parts = parts < enough ? parts : enough;
	}
	uint64_t most = work->count < WARPS_MAX ? WARPS_MAX / work->count : 1;
	parts = parts < most ? parts : most;
	return parts ? (size_t)parts : 1;
}

/* ---- filters that follow each other --------------------------------------------------------- */

/*
 * Adds a stage to those before it, in the order of encoding; false: they cannot be done at once.
 * One pass swaps bytes, takes differences, zigzags and then shuffles, each or not, all of them
 * elements of one size.  Sums need blocks of rows of bits that are whole tiles.
 */
static bool add(lade_filters *f, const lade_stage *stage)
{
	const lade_algorithm *a = stage->algorithm;
	const lade_value *option = stage->option;
	bool bytes = a == &lade__filter_shuffle || a == &lade__filter_split;
	bool bits = a == &lade__filter_bitshuffle, swap = a == &lade__filter_byteswap;
	uint32_t op = swap                        ? LADE_WORDS_SWAP
	              : a == &lade__filter_delta  ? LADE_WORDS_DIFF
	              : a == &lade__filter_zigzag ? LADE_WORDS_ZIG
	                                          : 0;
	uint32_t size = op && !swap ? (uint32_t)lade_dtype_size(lade__filter_dtype(stage, 0))
	                            : (uint32_t)option[0].i;
	uint32_t block = bits ? (uint32_t)option[2].i : 0;
	if (f->size) {
		if (size != f->size || f->rows || (op && f->ops >= op) || (bytes && size == 1))
			return false;
		if (f->ops & LADE_WORDS_DIFF && block % LADE_TILE_BYTES)
			return false;
	}
	f->size = size;
	f->ops |= op;
	f->rows = bytes ? LADE_ROWS_BYTES : bits ? LADE_ROWS_BITS : LADE_ROWS_NONE;
	f->msb = bits && option[1].i;
	f->block = block;
	/* The shuffles take parts of elements, as they are, and see a lack of room before the
	 * others see a part. */
	f->partial |= op || a == &lade__filter_split;
	f->late = f->partial && f->rows && a != &lade__filter_split;
	return true;
}

static size_t join(const lade_stage *stage, size_t count)
{
	lade_filters f = {0};
	size_t n = 0;
	while (n < count && add(&f, &stage[n]))
		n++;
	return n;
}

static lade_filters filters_of(const lade__gpu_work *work, bool encode)
{
	lade_filters f = {0};
	for (size_t i = 0; i < work->stages; i++)
		add(&f, &work->stage[i]);
	if (!encode && f.ops & LADE_WORDS_ZIG)
		f.ops = (f.ops & ~LADE_WORDS_ZIG) | LADE_WORDS_ZAG;
	f.partial = !f.partial ? LADE_OK : encode ? LADE_E_DTYPE : LADE_E_CORRUPT;
	f.late = !encode && f.late;
	return f;
}

/* A decoder can undo a shuffle of bytes alone. */
static bool unshuffle(const lade_stage *stage, size_t count, lade__gpu_work *work)
{
	lade__gpu_work own = {.stage = stage, .stages = count};
	lade_filters f = filters_of(&own, false);
	if (count > 1 || f.rows != LADE_ROWS_BYTES || (f.size != 2 && f.size != 4 && f.size != 8))
		return false;
	work->unshuffle = f.size;
	work->partial = (lade_status)f.partial;
	return true;
}

/* A kernel whose warps take tiles; 'args' is a lade_filters or lade_unpack. */
static lade_status launch(const lade__gpu_work *work, const lade__kernel *kernel, void *args,
                          lade_error *err)
{
	lade_gpu_batch batch = lade__gpu_batch_of(work, 0);
	void *arguments[] = {&batch, args};
	size_t warps = work->count * parts_of(work);
	if (warps > WARPS_MAX)
		warps = WARPS_MAX;
	lade__launch l = {.blocks = (unsigned)((warps + LADE_TILE_WARPS - 1) / LADE_TILE_WARPS),
	                  .threads = 32 * LADE_TILE_WARPS,
	                  .stream = work->stream};
	return lade__kernel_launch(work->device, kernel, &l, arguments, err);
}

/* ---- sums ----------------------------------------------------------------------------------- */

#define SLAB (LADE_TILE_WARPS * LADE_TILE_BYTES) /* bytes that a block works on at once */

/* The most blocks that share a chunk: their sums are read by each of them. */
#define RANGES_MAX 1024u

/* The most bytes that the sums of all ranges take: where more would be wanted chunks are many. */
#define RANGES_ROOM ((size_t)64 << 10)

/* Ranges of the largest chunk, as far as there is room. */
static uint32_t ranges_of(size_t count, uint64_t largest)
{
	uint64_t slabs = largest ? largest / SLAB + (largest % SLAB != 0) : 4;
	size_t room = RANGES_ROOM / sizeof(uint64_t) / count;
	uint64_t most = room < RANGES_MAX ? room : RANGES_MAX;
	slabs = slabs < most ? slabs : most;
	return slabs ? (uint32_t)slabs : 1;
}

static size_t delta_workspace(const lade_stage *stage, size_t count, uint64_t largest,
                              uint64_t total)
{
	size_t most = RANGES_ROOM / sizeof(uint64_t), sums = ranges_of(1, largest) - 1;
	(void)stage, (void)total;
	/* ranges_of(count) would not do: what it gives grows where 'count' shrinks. */
	return sizeof(uint64_t) * (sums == 0 || count <= most / sums ? count * sums : most);
}

static lade_status sum(const lade__gpu_work *work, lade_filters f, lade_error *err)
{
	lade_gpu_batch batch = lade__gpu_batch_of(work, 0);
	lade__address partial = work->workspace;
	uint32_t parts = ranges_of(work->count, work->largest);
	size_t resident;
	lade_status status;
	bool alone = work->stages == 1;
	const lade__kernel *kernel = alone ? &delta_decode_kernel : &filters_sum_kernel;
	TRY(lade__gpu_resident(work, kernel, 32 * LADE_TILE_WARPS, 0, &resident, err));
	/* A chunk that is one block's needs no sums beforehand. */
	if (work->count >= resident)
		parts = 1;
	lade__launch l = {.threads = 32 * LADE_TILE_WARPS, .stream = work->stream};
	uint64_t blocks = (uint64_t)work->count * (parts - 1);
	uint32_t ranges = 1;
	void *arguments[] = {&batch, &f, &parts, &partial, &ranges};
	if (parts > 1) {
		l.blocks = (unsigned)blocks; /* of RANGES_ROOM / 8 sums at most */
		TRY(lade__kernel_launch(work->device, alone ? &delta_ranges_kernel : kernel,
		                        &l, arguments, err));
	}
	ranges = 0;
	blocks += work->count;
	l.blocks = (unsigned)(blocks < WARPS_MAX ? blocks : WARPS_MAX);
	TRY(lade__kernel_launch(work->device, kernel, &l, arguments, err));
out:
	return status;
}

/* ---- both ways ------------------------------------------------------------------------------ */

static lade_status filter_encode(const lade__gpu_work *work, lade_error *err)
{
	lade_filters f = filters_of(work, true);
	return launch(work,
	              work->stages > 1       ? &filters_encode_kernel
	              : f.rows == LADE_ROWS_BYTES ? &shuffle_encode_kernel
	              : f.rows == LADE_ROWS_BITS  ? &bitshuffle_encode_kernel
	                                     : &stream_kernel,
	              &f, err);
}

static lade_status filter_decode(const lade__gpu_work *work, lade_error *err)
{
	lade_filters f = filters_of(work, false);
	if (f.ops & LADE_WORDS_DIFF)
		return sum(work, f, err);
	return launch(work,
	              work->stages > 1       ? &filters_decode_kernel
	              : f.rows == LADE_ROWS_BYTES ? &shuffle_decode_kernel
	              : f.rows == LADE_ROWS_BITS  ? &bitshuffle_decode_kernel
	                                     : &stream_kernel,
	              &f, err);
}

/* ---- elements from bits ---------------------------------------------------------------------- */

/*
 * Adds a stage to those before it, in the order of encoding: cast, levels, packints, each or not.
 * '*stored' is the type that these store; packints ends the row.
 */
static bool add_unpack(lade_unpack *u, lade_dtype *stored, const lade_stage *stage)
{
	lade_dtype dtype = lade__filter_dtype(stage, 0);
	bool first = u->size == 0;
	if (stage->algorithm == &lade__filter_cast) {
		lade_dtype as = lade__filter_dtype(stage, 1);
		uint32_t from = (uint32_t)lade_dtype_size(as);
		if (!first)
			return false;
		u->size = (uint32_t)lade_dtype_size(dtype);
		u->bits = 8 * from;
		u->extend = lade_dtype_class(as) == 'i' ? 64 - u->bits : 0;
		u->whole = u->real = from;
		u->ops = lade_dtype_class(as) == 'f' ? LADE_UNPACK_REALS : 0;
		*stored = as;
		return true;
	}
	if (stage->algorithm == &lade__filter_levels) {
		lade__leveling l = lade__leveling_of(stage);
		if (!first && *stored != LADE_F4)
			return false;
		u->size = first ? 4 : u->size;
		u->bits = 32;
		u->whole = 4;
		u->ops |= LADE_UNPACK_LEVELS;
		u->min = l.min;
		u->scale = l.scale;
		u->max = l.max;
		*stored = LADE_U4;
		return true;
	}
	lade__packing p = lade__packing_of(stage);
	if (!first && *stored != dtype)
		return false;
	u->size = first ? (uint32_t)p.size : u->size;
	u->bits = p.bits;
	u->first = p.first;
	u->extend = p.extend;
	u->front = (uint32_t)p.front;
	u->back = (uint32_t)p.back;
	u->whole = 0;
	u->rooms = first ? 0 : LADE_ROOM_FILTER;
	*stored = LADE_DTYPE_NONE;
	return true;
}

static size_t join_unpack(const lade_stage *stage, size_t count)
{
	lade_unpack u = {0};
	lade_dtype stored = LADE_DTYPE_NONE;
	size_t n = 0;
	while (n < count && add_unpack(&u, &stored, &stage[n]))
		n++;
	return n;
}

static lade_status unpack_decode(const lade__gpu_work *work, lade_error *err)
{
	lade_unpack u = {0};
	lade_dtype stored = LADE_DTYPE_NONE;
	for (size_t i = 0; i < work->stages; i++)
		add_unpack(&u, &stored, &work->stage[i]);
	u.rooms |= work->before ? LADE_ROOM_CODEC : 0;
	return launch(work, &unpack_kernel, &u, err);
}

/* Of the codec "copy": no filter at all. */
static lade_status copy_bytes(const lade__gpu_work *work, lade_error *err)
{
	lade_filters f = {.size = 1};
	return launch(work, &stream_kernel, &f, err);
}

/* ---- costs ---------------------------------------------------------------------------------- */

/* Bytes a nanosecond, read and written again, as one H200 does. */
#define RATE 1700.0

static double cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	return workload->largest > LADE_CHUNK_MAX ? -1 : 4000 + (double)workload->total / RATE;
}

static double bitshuffle_cost(void *ctx, const lade_workload *workload)
{
	int64_t size = workload->stage->option[0].i;
	return size > 8 || (size & (size - 1)) ? -1 : cost(ctx, workload);
}

/* Integers whose differences are of their own type. */
static double delta_cost(void *ctx, const lade_workload *workload)
{
	lade_dtype dtype = lade__filter_dtype(workload->stage, 0);
	return lade_dtype_class(dtype) == 'f' || lade__filter_dtype(workload->stage, 1) != dtype
	               ? -1
	               : cost(ctx, workload);
}

static double cast_cost(void *ctx, const lade_workload *workload)
{
	return lade__cast_widens(workload->stage) ? cost(ctx, workload) : -1;
}

/* ---- records -------------------------------------------------------------------------------- */

#define RECORD(filter, DIRECTION, way, workspace_fn, cost_fn) \
	static const lade__gpu_codec filter##_##way##_codec = { \
		workspace_fn, filter_##way, NULL, join, false, unshuffle}; \
	const lade__gpu_implementation lade__filter_##filter##_##way##_gpu = \
		LADE__GPU_RECORD(#filter, DIRECTION, filter##_##way##_codec, cost_fn);
#define RECORDS(filter, workspace_fn, cost_fn) \
	RECORD(filter, LADE_ENCODE, encode, workspace, cost_fn) \
	RECORD(filter, LADE_DECODE, decode, workspace_fn, cost_fn)
RECORDS(bitshuffle, workspace, bitshuffle_cost)
RECORDS(shuffle, workspace, cost)
RECORDS(split, workspace, cost)
RECORDS(zigzag, workspace, cost)
RECORDS(byteswap, workspace, cost)
RECORDS(delta, delta_workspace, delta_cost)

static const lade__gpu_codec copy_codec = {.workspace = workspace, .enqueue = copy_bytes};
const lade__gpu_implementation lade__copy_encode_gpu =
	LADE__GPU_RECORD("copy", LADE_ENCODE, copy_codec, cost);
const lade__gpu_implementation lade__copy_decode_gpu =
	LADE__GPU_RECORD("copy", LADE_DECODE, copy_codec, cost);

static const lade__gpu_codec unpack_codec = {workspace, unpack_decode, NULL, join_unpack, false,
                                             NULL};
#define UNPACK(filter, cost_fn) \
	const lade__gpu_implementation lade__filter_##filter##_decode_gpu = \
		LADE__GPU_RECORD(#filter, LADE_DECODE, unpack_codec, cost_fn);
UNPACK(packints, cost)
UNPACK(levels, cost)
UNPACK(cast, cast_cost)
