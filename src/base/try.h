/*
 * try.h: the one macro for passing a failure on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BASE_TRY_H
#define LADE_BASE_TRY_H

#include <lade/status.h>

/* Inside a function with 'lade_status status' and a label 'out'. */
#define TRY(call)                              \
	do {                                   \
		status = (call);               \
		if (status != LADE_OK)         \
			goto out;              \
	} while (0)

#endif
