/*
 * fuzz_foreign_gz.c: the reader of .gz files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define FUZZ_FORMAT LADE_FORMAT_GZ
#include "fuzz_foreign.h"
