/*
 * table.h: aligned tables on a terminal, and the bars of a histogram.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CLI_TABLE_H
#define LADE_CLI_TABLE_H

#include <lade/status.h>

#include <stdint.h>
#include <stdio.h>

/* Cells of text in rows and columns.  Zero-initialise, then table_init(). */
typedef struct table {
	size_t columns, rows, cap;
	const char *const *titles;
	const char *align; /* one 'l' or 'r' for each column */
	char **cells;      /* row after row; NULL: empty */
	bool *marked;      /* likewise */
} table;

/* 'titles' has one text for each letter of 'align'; both outlive the table. */
void table_init(table *t, const char *align, const char *const *titles);

/* Adds a row of empty cells; then fills the cells of the last row. */
void table_row(table *t);
void table_set(table *t, size_t column, const char *format, ...) LADE_PRINTF(3, 4);

/* Marks a cell as the best of its column: a star behind it, and green where there are colours. */
void table_mark(table *t, size_t row, size_t column);

void table_print(const table *t, FILE *out);
void table_free(table *t);

/* A bar of 'share' (0 to 1) of 'width' characters, in eighths where the terminal's character
 * set has blocks for them, and of '#' elsewhere. */
void table_bar(FILE *out, double share, unsigned width);

/* Whether the terminal's character set has blocks and lines: it is UTF-8. */
bool table_has_blocks(void);

/* The columns of standard output: of the terminal, or COLUMNS, or 80; 20 to 200. */
size_t table_width(void);

/* Emphasis, where 'out' takes colours: "1" bold, "2" faint, "32" green, "0" none again. */
void table_style(FILE *out, const char *code);

/* The name in front of a line of a description. */
void table_label(const char *text);

/* A named row of at most 'rows' lines, cut where more would follow.  Frees the text. */
void table_cut(const char *name, char *text, size_t width, size_t rows);

/* A text under construction; write to 'file'. */
typedef struct cli_text {
	FILE *file;
	char *text;
	size_t size;
} cli_text;

void cli_text_open(cli_text *t);
/* Returns the text with its control characters escaped, to be freed. */
char *cli_text_take(cli_text *t);

/* "1.50 MiB (1572864 bytes)".  Returns 'text', of at least 64 bytes. */
const char *cli_size_text(uint64_t size, char *text);

/* Gives 'p' back; with NULL says that memory is out and ends the program. */
void *cli_need(void *p);

#endif
