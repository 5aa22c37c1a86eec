/*
 * version.h: the version of liblade.  It is written only here; the build reads it from this file.
 *
 *	#if LADE_VERSION < 200
 *	#error "liblade 0.2.0 or later is needed"
 *	#endif
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_VERSION_H
#define LADE_VERSION_H

#define LADE_VERSION_MAJOR 0
#define LADE_VERSION_MINOR 2
#define LADE_VERSION_PATCH 0

/* The version as one number that can be compared: 1.2.3 is 10203. */
#define LADE_VERSION \
	(LADE_VERSION_MAJOR * 10000 + LADE_VERSION_MINOR * 100 + LADE_VERSION_PATCH)

#endif
