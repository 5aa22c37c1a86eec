/*
 * args.h: the bytes of flip, and what its host code and its kernels agree on.
 *
 *     | mark 1 | decoded size 4, little-endian | the bytes, each bit the other way |
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CODEC_FLIP_ARGS_H
#define LADE_CODEC_FLIP_ARGS_H

#include "gpu/args.h"

#define LADE_FLIP_MARK 0xF1u
#define LADE_FLIP_HEADER 5u

#define LADE_FLIP_THREADS 128u /* of a block */

#endif
