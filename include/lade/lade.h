/*
 * lade.h: all of liblade.
 *
 * liblade decodes and encodes compressed arrays in batches, straight into the memory that the
 * caller chose.
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
#include <lade/spec.h>
#include <lade/status.h>
#include <lade/suggest.h>
#include <lade/version.h>

#endif
