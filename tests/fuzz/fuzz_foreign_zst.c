/*
 * fuzz_foreign_zst.c: the reader of .zst files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define FUZZ_FORMAT LADE_FORMAT_ZST
#include "fuzz_foreign.h"
