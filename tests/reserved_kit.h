/*
 * reserved_kit.h: the list of what version 1 of the library's own formats reserves
 * (golden/reserved.txt), and the stored chunks that it changes.  For C and C++.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_RESERVED_KIT_H
#define LADE_TESTS_RESERVED_KIT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { RESERVED_CAP = 1 << 16 };

typedef struct reserved {
	char file[64], what[96];
	unsigned long at;
	unsigned bits;
	size_t size;
	uint8_t chunk[RESERVED_CAP]; /* as it is stored */
} reserved;

static inline FILE *reserved_open(const char *name)
{
	char path[512];
	snprintf(path, sizeof path, "%s/golden/%s", LADE_TESTS_DIR, name);
	FILE *f = fopen(path, "rb");
	if (!f)
		fail_msg("%s: cannot be opened", path);
	return f;
}

/* The list's next line; false: there is none. */
static inline bool reserved_next(FILE *list, reserved *r)
{
	char line[256];
	do {
		if (!fgets(line, sizeof line, list))
			return false;
	} while (line[0] == '#');
	assert_int_equal(sscanf(line, "%63s %lu %u %95[^\n]", r->file, &r->at, &r->bits, r->what),
	                 4);
	FILE *f = reserved_open(r->file);
	r->size = fread(r->chunk, 1, RESERVED_CAP, f);
	fclose(f);
	assert_true(r->at < r->size && r->size < RESERVED_CAP);
	assert_true(r->bits > 0 && r->bits < 256);
	return true;
}

/* Whether the file is in 'folder', which is named as its codec. */
static inline bool reserved_is(const reserved *r, const char *folder)
{
	return !strncmp(r->file, folder, strlen(folder)) && r->file[strlen(folder)] == '/';
}

#endif
