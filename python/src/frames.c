/*
 * frames.c: NVCOMP_NATIVE: frames (docs/format/frame.md) in memory of any kind, without the
 * interpreter.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_py.h"

#include <string.h>

static lade_frame_options write_options(const py_codec *codec)
{
	return (lade_frame_options){
		.struct_size = sizeof(lade_frame_options),
		.spec = codec->spec,
		.chunk_size = codec->chunk_size,
		.no_checksums = !codec->checksums,
	};
}

size_t py_frame_bound(const py_codec *codec, size_t size)
{
	lade_frame_options options = write_options(codec);

	options.has_size = true;
	options.size = size;
	return lade_frame_bound(&options, size);
}

/* What the three calls are given. */
typedef struct given {
	lade_batch_options batch;
	lade_frame_read_options read;
	lade_frame_options write;
	lade_frames_options options;
} given;

static const lade_frames_options *options_of(const py_work *work, given *g)
{
	g->batch = py_work_options(work);
	g->read = (lade_frame_read_options){.struct_size = sizeof(g->read),
	                                    .verify = work->codec->verify};
	g->write = write_options(work->codec);
	g->options = (lade_frames_options){sizeof(g->options), &g->read, &g->write, &g->batch};
	return &g->options;
}

void py_frames_open(py_work *work)
{
	const py_codec *codec = work->codec;
	given g;
	lade_error err;

	lade_frames_open(codec->engine, work->items, work->count, work->frames,
	                 options_of(work, &g), &err);
	for (size_t i = 0; i < work->count; i++) {
		lade_error *own = work->item_errors ? &work->item_errors[i] : &err;
		if (work->frames[i]) {
			work->sizes[i] = lade_frame_get_info(work->frames[i])->size;
			continue;
		}
		if ((own != &err || work->failed == SIZE_MAX) && !own->offset)
			py_hint(codec, work->items[i].src, own);
		py_work_note(work, i, own);
	}
}

lade_status py_frames_read(py_work *work)
{
	given g;
	lade_error err;

	return py_work_settle(work,
	                      lade_frames_read(work->frames, work->items, work->count,
	                                       work->results, options_of(work, &g), &err), &err);
}

lade_status py_frames_write(py_work *work)
{
	given g;
	lade_error err;

	return py_work_settle(work,
	                      lade_frames_write(work->codec->engine, work->items, work->count,
	                                        work->results, options_of(work, &g), &err), &err);
}
