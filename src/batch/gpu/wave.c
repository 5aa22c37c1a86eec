/*
 * wave.c: units that go through a device together: their tables, and what is enqueued.
 *
 *     block:  | src[] | src_size[] | dst[] | dst_cap[] | copies in | copies out | boxes |
 *             | size[] | status[] | staged sources | staged results | workspace of the stages |
 *
 * The first line is what the host fills.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "batch/gpu/gpu.h"
#include "engine/spec.h"

#include <string.h>

/* Staged sources begin at multiples of 16 bytes, so that kernels load words of them, unless they
 * stand in pinned memory so near to each other that one copy brings several. */
#define IN_ALIGN 16u
#define NEAR 64u

/* Blocks of copies between the host and a device: enough bytes in flight for the link, and room for
 * the kernels beside them. */
#define COPY_BLOCKS 128u


static size_t round_in(size_t size)
{
	return (size + (IN_ALIGN - 1)) / IN_ALIGN * IN_ALIGN;
}

/* Whether a unit's source stands right behind that of the one before, in memory that the device
 * can copy from: then they are staged as they stand.  What is between them, less than a page, is
 * on pages that hold bytes of the one or the other. */
static bool follows(const lade__gpu_unit *unit, const lade__gpu_unit *before)
{
	uintptr_t end = (uintptr_t)before->src + before->src_size, at = (uintptr_t)unit->src;
	return before->stage_in && unit->stage_in && !before->pageable && !unit->pageable &&
	       !before->gathered && !unit->gathered &&
	       before->foreign == unit->foreign && at >= end && at - end < NEAR;
}

/* Long runs of sources are the driver's to copy, as are those of other devices, which kernels do
 * not reach; short ones a kernel's, which takes many at once, but wants a list of them copied
 * first: not worth it for a few. */
#define RUN_LEAST ((size_t)256 << 10)
#define RUNS_FEW 4u

static bool is_drivers(const lade__gpu_wave *w, const lade__gpu_unit *first)
{
	return first->foreign || first->run_size >= RUN_LEAST || w->few_runs;
}

/* Counts a run that has come to its end. */
static void count_run(lade__gpu_wave *w, const lade__gpu_unit *first)
{
	if (first && !is_drivers(w, first)) {
		w->copies_in++;
		w->pieces_in += lade__gpu_pieces(first->run_size);
	}
}

/* Gives units their places until one would be too many; counts those that have one, and what there
 * is to copy. */
static void place_units(const lade_engine *engine, const lade__route *route, lade__gpu_wave *w,
                        size_t count, const lade__gpu_most *most)
{
	bool decode = route->direction == LADE_DECODE, stages = route->spec->count > 1;
	size_t between = 0; /* what stands between the stages, for a unit like the largest */
	lade__gpu_unit *run = NULL, *u = w->units;
	for (size_t i = 0; i < count; i++, u++) {
		uint64_t decoded = decode ? u->cap : u->src_size;
		size_t in = w->in_size, out = w->out_size;
		if (u->cap > SIZE_MAX / 8 - out || u->src_size > SIZE_MAX / 8 - in ||
		    w->total > SIZE_MAX / 8 - decoded)
			break;
		bool more = i && follows(u, u - 1);
		u->in_at = more ? u[-1].in_at + (size_t)((uintptr_t)u->src - (uintptr_t)u[-1].src)
		                : round_in(in);
		u->out_at = out;
		if (u->stage_in)
			in = u->in_at + u->src_size;
		if (u->stage_out)
			out += lade__gpu_round(u->cap);
		if (stages && (i == 0 || decoded > w->largest))
			between = lade__gpu_pipe_workspace(engine, route, 1, decoded + !decoded, 0);
		if (i && (in > most->in || out > most->out ||
		          (stages && between > most->between / (i + 1))))
			break;
		u->run_size = u->run_count = 0;
		if (!more) {
			count_run(w, run);
			run = u->stage_in && !u->pageable && !u->gathered ? u : NULL;
		}
		if (run) {
			run->run_count++;
			run->run_size = in - run->in_at;
		}
		if (lade__gpu_unit_copies(u)) {
			w->copies_out++;
			w->pieces_out += lade__gpu_pieces(u->size);
		}
		w->boxes += u->boxes;
		w->axes += u->axes;
		w->box_pieces += u->pieces;
		w->pageable_in |= u->pageable;
		w->pageable_out |= u->stage_out && u->to_host;
		w->in_size = in;
		w->out_size = out;
		w->total += decoded;
		w->largest = decoded > w->largest ? decoded : w->largest;
		w->count++;
	}
	count_run(w, run);
	w->few_runs = w->copies_in <= RUNS_FEW;
	if (w->few_runs)
		w->copies_in = 0, w->pieces_in = 0;
}

lade_status lade__gpu_wave_plan(const lade_engine *engine, const lade__route *route,
                                const lade__gpu_most *most, lade__gpu_wave *w, lade_error *err)
{
	size_t count = w->count;
	*w = (lade__gpu_wave){.units = w->units};
	place_units(engine, route, w, count, most);
	if (count && w->count == 0)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET, "item %zu is too large",
		                 w->units[0].item);
	count = w->count;
	if (count > INT32_MAX / 2 || w->pieces_in > UINT32_MAX / 2 ||
	    w->pieces_out > UINT32_MAX / 2 || w->boxes > UINT32_MAX / 2 ||
	    w->box_pieces > UINT32_MAX / 2)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "%zu items with %zu bytes to copy are too many at once", count,
		                 w->in_size + w->out_size);
	/* A largest of 0 would be "not known". */
	w->largest = w->largest ? w->largest : 1;
	w->boxes_off = count * 32 + (w->copies_in + w->copies_out) * sizeof(lade_gpu_copy);
	w->tables_size = lade__gpu_round(w->boxes_off + w->boxes * sizeof(lade_box) +
	                                 w->axes * sizeof(lade_box_axis));
	w->result_off = w->tables_size;
	w->result_size = count * 12;
	w->in_off = w->result_off + lade__gpu_round(w->result_size);
	w->out_off = w->in_off + lade__gpu_round(w->in_size);
	w->pipe_off = w->out_off + w->out_size;
	w->pipe_size = lade__gpu_pipe_workspace(engine, route, count, w->largest, w->total);
	if (w->pipe_size > SIZE_MAX / 2 - w->pipe_off)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "the workspace of %zu items of up to %llu bytes is too large",
		                 count, (unsigned long long)w->largest);
	w->size = w->pipe_off + w->pipe_size;
	return LADE_OK;
}

void lade__gpu_wave_fill(const lade__gpu_wave *w, void *pinned_out, void *tables)
{
	uint64_t *src = tables, *src_size = src + w->count, *dst = src_size + w->count,
		 *cap = dst + w->count;
	lade_gpu_copy *in_copy = (lade_gpu_copy *)(cap + w->count),
		       *out_copy = in_copy + w->copies_in;
	uint64_t in_first = 0, out_first = 0;
	for (size_t i = 0; i < w->count; i++) {
		const lade__gpu_unit *u = &w->units[i];
		lade__address staged = w->base + w->in_off + u->in_at,
			      scratch = w->base + w->out_off + u->out_at;
		src[i] = u->stage_in ? staged : lade__address_of(u->src);
		src_size[i] = u->src_size;
		dst[i] = u->stage_out ? scratch : lade__address_of(u->dst);
		cap[i] = u->cap;
		if (u->run_size && !is_drivers(w, u)) {
			*in_copy++ = (lade_gpu_copy){.src = lade__address_of(u->src),
			                              .dst = staged,
			                              .size = u->run_size,
			                              .unit = (uint32_t)i,
			                              .first = (uint32_t)in_first};
			in_first += lade__gpu_pieces(u->run_size);
		}
		if (lade__gpu_unit_copies(u)) {
			/* Pageable results go where the host finds them, plain. */
			void *to = u->to_host ? (uint8_t *)pinned_out + u->out_at : u->to;
			*out_copy++ = (lade_gpu_copy){.src = scratch + u->skip,
			                               .dst = lade__address_of(to),
			                               .size = u->size,
			                               .skip = u->skip,
			                               .at = u->to_host ? 0 : u->at,
			                               .unit = (uint32_t)i,
			                               .first = (uint32_t)out_first};
			out_first += lade__gpu_pieces(u->size);
		}
	}
	memset(out_copy, 0, w->tables_size - w->boxes_off);
	if (w->boxes)
		lade__gpu_wave_fill_boxes(w, tables);
}

static const lade__kernel copy_kernel = {"copy", "lade_copy", 0};

lade_status lade__gpu_copy_kernel(lade__device *device, lade_stream stream, lade_gpu_copies c,
                                  lade_error *err)
{
	if (c.pieces == 0)
		return LADE_OK;
	unsigned blocks = (c.pieces + LADE_COPY_THREADS / 32 - 1) / (LADE_COPY_THREADS / 32);
	lade__launch launch = {.blocks = blocks < COPY_BLOCKS ? blocks : COPY_BLOCKS,
	                       .threads = LADE_COPY_THREADS,
	                       .stream = stream};
	void *arguments[] = {&c};
	return lade__kernel_launch(device, &copy_kernel, &launch, arguments, err);
}

/* Neighbours may be allocations of their own, and a copy over the end of one the driver refuses:
 * then each goes by itself. */
static lade_status copy_run(lade__device *device, lade_stream stream, const lade__gpu_unit *u,
                            lade__address to, lade_error *err)
{
	size_t count = u->run_count;
	lade_status status = LADE_OK;
	int result = device->driver->cuMemcpyAsync(to + u->in_at, lade__address_of(u->src),
	                                           u->run_size, stream);
	if (result != LADE__CU_INVALID_VALUE || count == 1)
		return lade__driver_check(device->driver, result, device->number, "cuMemcpyAsync",
		                          err);
	for (; count && status == LADE_OK; count--, u++)
		status = LADE__CU(device, cuMemcpyAsync, to + u->in_at, lade__address_of(u->src),
		                  u->src_size, stream);
	return status;
}

lade_status lade__gpu_wave_in(lade__device *device, lade_stream stream, const lade__gpu_wave *w,
                              lade_error *err)
{
	lade_gpu_copies in = {.list = w->base + 32 * w->count,
	                      .count = (uint32_t)w->copies_in,
	                      .pieces = (uint32_t)w->pieces_in};
	lade_status status = LADE_OK;
	for (size_t i = 0; i < w->count && status == LADE_OK;) {
		const lade__gpu_unit *u = &w->units[i];
		if (u->run_size && is_drivers(w, u))
			status = copy_run(device, stream, u, w->base + w->in_off, err);
		i += u->run_size ? u->run_count : 1;
	}
	return status == LADE_OK ? lade__gpu_copy_kernel(device, stream, in, err) : status;
}

lade_status lade__gpu_wave_stages(const lade_engine *engine, const lade__route *route,
                                  lade__device *device, lade_stream stream,
                                  const lade__gpu_wave *w, lade_error *err)
{
	size_t n = w->count;
	lade__address at = w->host_tables ? w->host_tables : w->base;
	lade__gpu_tables tables = {.src = at,
	                           .src_size = at + 8 * n,
	                           .dst = at + 16 * n,
	                           .dst_cap = at + 24 * n,
	                           .dst_size = w->dst_size,
	                           .status = w->status,
	                           .count = n,
	                           .in_flight = w->in_flight,
	                           .largest = w->largest,
	                           .total = w->total,
	                           .workspace = w->base + w->pipe_off,
	                           .workspace_size = w->pipe_size};
	return lade__gpu_pipe_enqueue(engine, route, device, stream, &tables, err);
}

lade_status lade__gpu_wave_out(lade__device *device, lade_stream stream, const lade__gpu_wave *w,
                               lade_error *err)
{
	lade__address copies = w->base + 32 * w->count;
	lade_gpu_copies out = {.list = copies + w->copies_in * sizeof(lade_gpu_copy),
	                       .sizes = w->dst_size,
	                       .statuses = w->status,
	                       .count = (uint32_t)w->copies_out,
	                       .pieces = (uint32_t)w->pieces_out};
	return lade__gpu_copy_kernel(device, stream, out, err);
}

static const lade__kernel put_kernel = {"copy", "lade_put", 0};
static const lade__kernel put_few_kernel = {"copy", "lade_put_few", 0};

lade_status lade__gpu_put(lade__device *device, lade_stream stream, lade__address to,
                          const void *from, size_t size, lade_error *err)
{
	lade_gpu_put put;
	lade_status status = LADE_OK;
	for (size_t at = 0; at < size && status == LADE_OK; at += sizeof put.word) {
		size_t n = size - at < sizeof put.word ? size - at : sizeof put.word;
		bool few = n <= LADE_PUT_FEW * sizeof(uint64_t);
		put.to = to + at;
		put.words = n / 8;
		memcpy(put.word, (const uint8_t *)from + at, n);
		lade__launch launch = {.blocks = 1, .threads = 128, .stream = stream};
		void *arguments[] = {&put};
		status = lade__kernel_launch(device, few ? &put_few_kernel : &put_kernel, &launch,
		                             arguments, err);
	}
	return status;
}
