/*
 * stages.c: the table of the library's own checksums.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/builtin.h"

static const lade_algorithm *const algorithms[] = {
	NULL,
};

static const lade_implementation *const implementations[] = {
	NULL,
};

const lade__set lade__checksums = {algorithms, implementations};
