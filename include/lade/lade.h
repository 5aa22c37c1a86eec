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

#include <lade/async.h>
#include <lade/batch.h>
#include <lade/checksum.h>
#include <lade/codec.h>
#include <lade/cpu.h>
#include <lade/device.h>
#include <lade/dtype.h>
#include <lade/foreign.h>
#include <lade/frame.h>
#include <lade/memory.h>
#include <lade/spec.h>
#include <lade/status.h>
#include <lade/suggest.h>
#include <lade/version.h>

#endif
