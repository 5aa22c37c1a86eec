/*
 * fuzz_foreign_sz.c: the reader of .sz files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define FUZZ_FORMAT LADE_FORMAT_SZ
#include "fuzz_foreign.h"
