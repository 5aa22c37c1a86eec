/*
 * map.h: a map of signs, which shows how well parts of an array or a table are compressed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CLI_MAP_H
#define LADE_CLI_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLI_MAP_ROWS 20  /* at most */
#define CLI_MAP_MARGIN 4 /* columns in front of the map */

/* A sign: some chunks or pages, and their bytes; decoded 0: not known. */
typedef struct cli_sign {
	uint64_t present, stored, decoded; /* chunks, and their bytes */
} cli_sign;

typedef struct cli_map {
	size_t rows, columns;
	const cli_sign *signs;
	const char *what;          /* "chunk" or "page" */
	const char *const *labels; /* in front of each row; or NULL */
	int label_width;
	bool missing; /* say what the sign for nothing means */
} cli_map;

/* How many of 'count' things a sign stands for if there are at most 'most' signs; returns how many
 * signs there are. */
size_t cli_map_divide(uint64_t count, size_t most, uint64_t *of_sign);

/* Draws the signs, and a line for each shade. */
void cli_map_draw(const cli_map *map, size_t width);

#endif
