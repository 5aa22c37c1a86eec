/*
 * codecs.c: the table of the library's own codecs.
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

const lade__set lade__codecs = {algorithms, implementations};
