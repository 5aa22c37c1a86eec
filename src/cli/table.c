/*
 * table.c: aligned tables on a terminal, and the bars of a histogram.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/table.h"

#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/commands.h"

void *cli_need(void *p)
{
	if (!p) {
		cli_error("out of memory");
		exit(CLI_FAILED);
	}
	return p;
}

void table_init(table *t, const char *align, const char *const *titles)
{
	*t = (table){.columns = strlen(align), .titles = titles, .align = align};
}

void table_row(table *t)
{
	if (t->rows == t->cap) {
		t->cap = t->cap ? 2 * t->cap : 16;
		t->cells = cli_need(realloc(t->cells, t->cap * t->columns * sizeof *t->cells));
		t->marked = cli_need(realloc(t->marked, t->cap * t->columns * sizeof *t->marked));
	}
	for (size_t i = 0; i < t->columns; i++) {
		t->cells[t->rows * t->columns + i] = NULL;
		t->marked[t->rows * t->columns + i] = false;
	}
	t->rows++;
}

void table_set(table *t, size_t column, const char *format, ...)
{
	char text[512], shown[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	char **cell = &t->cells[(t->rows - 1) * t->columns + column];
	free(*cell);
	*cell = cli_need(strdup(cli_escape(text, shown, sizeof shown)));
}

void table_mark(table *t, size_t row, size_t column)
{
	t->marked[row * t->columns + column] = true;
}

static const char *cell_text(const table *t, size_t row, size_t column)
{
	const char *text = t->cells[row * t->columns + column];
	return text ? text : "";
}

void table_style(FILE *out, const char *code)
{
	if (cli_colour(out))
		fprintf(out, "\033[%sm", code);
}

static void print_cell(FILE *out, const char *text, size_t width, char align, bool last)
{
	int fill = (int)(width - strlen(text));

	if (align == 'r')
		fprintf(out, "%*s%s", fill, "", text);
	else
		fprintf(out, "%s%*s", text, last ? 0 : fill, "");
}

void table_print(const table *t, FILE *out)
{
	size_t *width = cli_need(calloc(t->columns + 1, sizeof *width));
	bool *starred = cli_need(calloc(t->columns + 1, sizeof *starred));

	for (size_t c = 0; c < t->columns; c++) {
		width[c] = strlen(t->titles[c]);
		for (size_t r = 0; r < t->rows; r++) {
			size_t n = strlen(cell_text(t, r, c));
			width[c] = n > width[c] ? n : width[c];
			starred[c] |= t->marked[r * t->columns + c];
		}
	}
	table_style(out, "1");
	for (size_t c = 0; c < t->columns; c++) {
		bool last = c + 1 == t->columns;
		print_cell(out, t->titles[c], width[c], t->align[c], last);
		fputs(last ? "" : starred[c] ? "    " : "  ", out);
	}
	table_style(out, "0");
	fputc('\n', out);
	for (size_t r = 0; r < t->rows; r++) {
		for (size_t c = 0; c < t->columns; c++) {
			bool mark = t->marked[r * t->columns + c], last = c + 1 == t->columns;
			if (mark)
				table_style(out, "1;32");
			print_cell(out, cell_text(t, r, c), width[c], t->align[c], last && !mark);
			if (starred[c])
				fputs(mark ? " *" : last ? "" : "  ", out);
			if (mark)
				table_style(out, "0");
			fputs(last ? "" : "  ", out);
		}
		fputc('\n', out);
	}
	free(starred);
	free(width);
}

void table_free(table *t)
{
	for (size_t i = 0; i < t->rows * t->columns; i++)
		free(t->cells[i]);
	free(t->cells);
	free(t->marked);
	*t = (table){0};
}

bool table_has_blocks(void)
{
	static int blocks = -1;

	if (blocks < 0) {
		setlocale(LC_CTYPE, "");
		blocks = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	}
	return blocks;
}

size_t table_width(void)
{
	struct winsize size;
	const char *columns = getenv("COLUMNS");
	uint64_t width = 80;

	if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
		width = size.ws_col;
	else if (columns && !cli_parse_uint(columns, 1, 10000, &width))
		width = 80;
	return width < 20 ? 20 : width > 200 ? 200 : (size_t)width;
}

void table_bar(FILE *out, double share, unsigned width)
{
	static const char *const eighths[8] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	bool blocks = table_has_blocks();
	double length = share * width;
	unsigned whole = (unsigned)length;
	unsigned part = (unsigned)((length - whole) * 8);
	/* Something that is there shows, however little it is. */
	if (share > 0 && whole == 0 && part == 0)
		part = 1;
	for (unsigned i = 0; i < whole; i++)
		fputs(blocks ? "█" : "#", out);
	if (blocks)
		fputs(eighths[part], out);
	else if (share > 0 && whole == 0)
		fputc('#', out);
}

/* ---- descriptions ----------------------------------------------------------------------- */

void table_label(const char *text)
{
	table_style(stdout, "1");
	printf("  %-12s", text);
	table_style(stdout, "0");
}

void table_cut(const char *name, char *text, size_t width, size_t rows)
{
	const size_t margin = 14;
	size_t most = (width - margin) * rows, size = strlen(text);

	table_label(name);
	if (size > most && most > 3) {
		size_t cut = most - 3;
		/* At a whole character. */
		while (cut > 0 && ((unsigned char)text[cut] & 0xC0) == 0x80)
			cut--;
		strcpy(text + cut, "...");
	}
	puts(text);
	free(text);
}

void cli_text_open(cli_text *t)
{
	*t = (cli_text){0};
	t->file = cli_need(open_memstream(&t->text, &t->size));
}

char *cli_text_take(cli_text *t)
{
	if (fclose(t->file) != 0)
		cli_need(NULL);
	/* A byte becomes at most "\ooo". */
	char *shown = cli_need(malloc(4 * t->size + 1));
	cli_escape(t->text, shown, 4 * t->size + 1);
	free(t->text);
	return shown;
}

const char *cli_size_text(uint64_t size, char *text)
{
	char human[16];

	if (size == UINT64_MAX)
		return "more than 16 EiB";
	if (size < 1024)
		snprintf(text, 64, "%" PRIu64 " byte%s", size, size == 1 ? "" : "s");
	else
		snprintf(text, 64, "%s (%" PRIu64 " bytes)", cli_format_size(size, human), size);
	return text;
}
