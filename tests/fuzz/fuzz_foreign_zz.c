/*
 * fuzz_foreign_zz.c: the reader of .zz files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define FUZZ_FORMAT LADE_FORMAT_ZZ
#include "fuzz_foreign.h"
