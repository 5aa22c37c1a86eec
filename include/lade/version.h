/*
 * version.h: the version of liblade.  The only place where it is written; the
 * build reads it from here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_VERSION_H
#define LADE_VERSION_H

#define LADE_VERSION_MAJOR 0
#define LADE_VERSION_MINOR 2
#define LADE_VERSION_PATCH 0

/* One comparable number: 1.2.3 is 10203. */
#define LADE_VERSION \
	(LADE_VERSION_MAJOR * 10000 + LADE_VERSION_MINOR * 100 + LADE_VERSION_PATCH)

#endif
