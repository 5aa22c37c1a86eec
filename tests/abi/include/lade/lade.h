/*
 * lade.h: includes all of liblade, which compresses and decompresses arrays in chunks.
 *
 *	lade_segment chunk = {.data = packed, .size = size};    // one of N
 *	lade_item item = {.src = &chunk, .src_count = 1,
 *	                  .dst = lade_host_span(back, sizeof back)};
 *	if (lade_decode_into(engine, spec, &item, 1, NULL, NULL, &err))
 *		return fprintf(stderr, "%s\n", err.message);
 *
 * Start with batch.h (chunks in memory) and frame.h (files).
 *
 * The examples at the heads of these headers share some variables: 'engine' is
 * lade_engine_default(), 'err' a lade_error, and 'spec' the spec "shuffle(4)|zstd".  'field' and
 * 'back' are arrays of 16384 floats.  'packed' has 80000 bytes; the first 'size' of them are
 * 'field', encoded with 'spec'.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_LADE_H
#define LADE_LADE_H

#include <lade/array.h>
#include <lade/async.h>
#include <lade/bare.h>
#include <lade/batch.h>
#include <lade/cancel.h>
#include <lade/checksum.h>
#include <lade/codec.h>
#include <lade/cpu.h>
#include <lade/device.h>
#include <lade/dlpack.h>
#include <lade/dtype.h>
#include <lade/foreign.h>
#include <lade/frame.h>
#include <lade/frames.h>
#include <lade/io.h>
#include <lade/layout.h>
#include <lade/memory.h>
#include <lade/rntuple.h>
#include <lade/rntuple_write.h>
#include <lade/share.h>
#include <lade/spec.h>
#include <lade/status.h>
#include <lade/store.h>
#include <lade/suggest.h>
#include <lade/version.h>
#include <lade/zarr.h>
#include <lade/zarr_read.h>
#include <lade/zarr_write.h>

#endif
