/*
 * fuzz_foreign_lz4.c: the reader of .lz4 files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define FUZZ_FORMAT LADE_FORMAT_LZ4
#include "fuzz_foreign.h"
